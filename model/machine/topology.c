/* topology.c - see topology.h. Exhaustive search for edge-disjoint Hamiltonian cycles with a bound
 * on the work. */
#include "model/machine/topology.h"

#include <string.h>

enum { NODE_BUDGET = 400000 }; /* search steps; an 8-device cube mesh needs a few thousand */

struct search {
    int capacity[DL_LINK_DEVICES][DL_LINK_DEVICES]; /* links left between two devices */
    int devices, best, bound;
    long steps;
};

static void add_edges(struct search *search, const struct dl_edge *edges, int edge_count) {
    for (int i = 0; i < edge_count; i++) {
        const struct dl_edge *edge = &edges[i];
        if (edge->from < 0 || edge->to < 0 || edge->from >= search->devices ||
            edge->to >= search->devices)
            continue;
        if (edge->from == edge->to || edge->links < 1) continue;
        search->capacity[edge->from][edge->to] += (int)edge->links;
        search->capacity[edge->to][edge->from] += (int)edge->links;
    }
}

/* Upper bound: half the links of the device that has fewest. */
static int cycle_bound(const struct search *search) {
    int bound = -1;
    for (int i = 0; i < search->devices; i++) {
        int links = 0;
        for (int j = 0; j < search->devices; j++) links += search->capacity[i][j];
        if (bound < 0 || links / 2 < bound) bound = links / 2;
    }
    return bound;
}

/* Extends the path that ends in `at`. Each closed cycle counts, and the search continues for the
 * next one on the links that are left; it stops as soon as the bound is met. */
static void extend(struct search *search, int at, unsigned visited, int depth, int found) {
    if (search->best >= search->bound || search->steps++ > NODE_BUDGET) return;
    if (depth == search->devices) {
        if (search->capacity[at][0] < 1) return;
        search->capacity[at][0]--, search->capacity[0][at]--;
        if (found + 1 > search->best) search->best = found + 1;
        extend(search, 0, 1u, 1, found + 1);
        search->capacity[at][0]++, search->capacity[0][at]++;
        return;
    }
    unsigned widths = 0; /* bit n: a device that n links lead to, 16 or more */
    for (int next = 1; next < search->devices; next++) {
        const int left = search->capacity[at][next];
        if (left > 0) widths |= 1u << (left > 16 ? 16 : left);
    }
    /* Widest links first: further cycles can share those. */
    for (int links = 16; links >= 1; links--) {
        if ((widths >> links & 1u) == 0) continue;
        for (int next = 1; next < search->devices; next++) {
            int left = search->capacity[at][next];
            if ((visited >> next & 1u) != 0 || (left > 16 ? 16 : left) != links) continue;
            search->capacity[at][next]--, search->capacity[next][at]--;
            extend(search, next, visited | 1u << next, depth + 1, found);
            search->capacity[at][next]++, search->capacity[next][at]++;
        }
    }
}

int dl_topology_rings(const struct dl_edge *edges, int edge_count, int64_t devices) {
    if (devices < 2 || devices > DL_LINK_DEVICES) return 0;
    struct search search = {.devices = (int)devices};
    add_edges(&search, edges, edge_count);
    if (devices == 2) return search.capacity[0][1];
    search.bound = cycle_bound(&search);
    extend(&search, 0, 1u, 1, 0);
    return 2 * search.best;
}

bool dl_topology_connected(const struct dl_edge *edges, int edge_count, int64_t devices) {
    if (devices < 1 || devices > DL_LINK_DEVICES) return false;
    struct search search = {.devices = (int)devices};
    add_edges(&search, edges, edge_count);
    unsigned reached = 1u, all = (1u << devices) - 1u;
    for (int round = 0; round < search.devices; round++)
        for (int i = 0; i < search.devices; i++)
            for (int j = 0; j < search.devices; j++)
                if ((reached >> i & 1u) != 0 && search.capacity[i][j] > 0) reached |= 1u << j;
    return reached == all;
}

/* Rings over devices first, first + stride, ...: the same search on their own graph. */
static int group_rings(const struct dl_link *link, int64_t first, int64_t stride, int64_t devices) {
    struct dl_edge edges[DL_LINK_DEVICES * DL_LINK_DEVICES];
    int count = 0;
    for (int i = 0; i < link->edge_count && count < DL_LINK_DEVICES * DL_LINK_DEVICES; i++) {
        const struct dl_edge *edge = &link->edges[i];
        int64_t from = edge->from - first, to = edge->to - first;
        if (from < 0 || to < 0 || from % stride != 0 || to % stride != 0) continue;
        edges[count++] = (struct dl_edge){from / stride, to / stride, edge->links, edge->kind};
    }
    if (!dl_topology_connected(edges, count, devices)) return DL_GROUP_APART;
    int rings = dl_topology_rings(edges, count, devices);
    return rings > 0 ? rings : DL_GROUP_CHAIN;
}

/* Order by bandwidth: apart, a chain, which is below any number of rings, rings. */
static int worse(int a, int b) {
    if (a == DL_GROUP_APART || b == DL_GROUP_APART) return DL_GROUP_APART;
    return a < b ? a : b;
}

/* Groups of n devices, `stride` apart, fill blocks of stride x n devices; a block that does not fit
 * is left out. */
static void fill_groups(struct dl_link *link, int64_t devices) {
    for (int64_t n = 2; n <= devices; n++) {
        for (int64_t stride = 1; stride * n <= devices; stride++) {
            int worst = DL_GROUP_UNKNOWN;
            for (int64_t block = 0; block + stride * n <= devices; block += stride * n) {
                for (int64_t offset = 0; offset < stride; offset++) {
                    int rings = group_rings(link, block + offset, stride, n);
                    worst = worst == DL_GROUP_UNKNOWN ? rings : worse(worst, rings);
                }
            }
            link->group_channels[stride][n] = worst;
        }
    }
}

void dl_topology_fill(struct dl_link *link, int64_t devices) {
    memset(link->ring_channels, 0, sizeof link->ring_channels);
    memset(link->connected, 0, sizeof link->connected);
    memset(link->group_channels, 0, sizeof link->group_channels);
    if (link->edge_count == 0) return;
    if (devices > DL_LINK_DEVICES) devices = DL_LINK_DEVICES;
    for (int64_t n = 2; n <= devices; n++) {
        link->connected[n] = dl_topology_connected(link->edges, link->edge_count, n);
        if (link->connected[n])
            link->ring_channels[n] = dl_topology_rings(link->edges, link->edge_count, n);
    }
    fill_groups(link, devices);
}
