/* Rings on link graphs. The cube mesh is DGX-1's with V100: each device has six NVLinks. */
#include "model/network/collective.h"
#include "model/machine/topology.h"
#include "tests/check.h"

static struct dl_edge cube_mesh[] = {
    {0, 1, 1, "nvlink2"}, {0, 2, 1, "nvlink2"}, {0, 3, 2, "nvlink2"}, {0, 4, 2, "nvlink2"},
    {1, 2, 2, "nvlink2"}, {1, 3, 1, "nvlink2"}, {1, 5, 2, "nvlink2"}, {2, 3, 2, "nvlink2"},
    {2, 6, 1, "nvlink2"}, {3, 7, 1, "nvlink2"}, {4, 5, 1, "nvlink2"}, {4, 6, 1, "nvlink2"},
    {4, 7, 2, "nvlink2"}, {5, 6, 2, "nvlink2"}, {5, 7, 1, "nvlink2"}, {6, 7, 2, "nvlink2"}};

static struct dl_system cube_mesh_system(void) {
    struct dl_system system = {.name = "cube mesh",
                               .nodes = 1,
                               .devices_per_node = 8,
                               .has_intra = true,
                               .has_host = true};
    system.host.copy_bandwidth_bytes_per_s = 11e9;
    system.host.memory_bandwidth_bytes_per_s = NAN;
    system.intra = (struct dl_link){.kind = "nvlink2",
                                    .bandwidth_bytes_per_s = NAN,
                                    .latency_s = NAN,
                                    .channels = DL_ABSENT,
                                    .channel_bandwidth_bytes_per_s = NAN,
                                    .edges = cube_mesh,
                                    .edge_count = 16,
                                    .peer_group = DL_ABSENT,
                                    .cross_bandwidth_bytes_per_s = NAN,
                                    .peer_to_peer = true};
    dl_topology_fill(&system.intra, 8);
    return system;
}

/* 2: one link. 3: the cycle 0-1-2, both ways. 4: 0-1-2-3 and 0-2-1-3. 5: device 4 hangs on device 0
 * alone. 6: the one link 4-5 is in every cycle. 7: devices 4 and 6 have four links each. 8: six
 * links each, three cycles. */
static void rings_of_the_cube_mesh(void **state) {
    static const int rings[9] = {0, 0, 1, 2, 4, 0, 2, 4, 6};
    struct dl_system system = cube_mesh_system();
    for (int n = 2; n <= 8; n++) {
        assert_int_equal(system.intra.ring_channels[n], rings[n]);
        assert_true(system.intra.connected[n]);
    }
    assert_int_equal(dl_topology_rings(cube_mesh, 16, 1), 0);
    assert_int_equal(dl_topology_rings(cube_mesh, 16, 9), 0);
    assert_false(dl_topology_connected(cube_mesh, 16, 9));
}

/* Links to devices that are not counted add no ring: the six of eight devices stay. */
static void links_outside(void **state) {
    struct dl_edge edges[20];
    memcpy(edges, cube_mesh, sizeof cube_mesh);
    edges[16] = (struct dl_edge){DL_LINK_DEVICES, 0, 9, "nvlink2"};
    edges[17] = (struct dl_edge){0, DL_LINK_DEVICES, 9, "nvlink2"};
    edges[18] = (struct dl_edge){1, 1, 9, "nvlink2"};
    edges[19] = (struct dl_edge){3, 8, 9, "nvlink2"};
    assert_int_equal(dl_topology_rings(edges, 20, 8), 6);
    assert_int_equal(dl_topology_rings(edges, 20, 4), 4);
}

/* Full mesh of 4 with double links (C4140): six links each, three cycles. A path: connected, no
 * ring. */
static void other_graphs(void **state) {
    struct dl_edge mesh[6], path[] = {{0, 1, 2, ""}, {1, 2, 2, ""}};
    int count = 0;
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < i; j++) mesh[count++] = (struct dl_edge){i, j, 2, ""};
    assert_int_equal(dl_topology_rings(mesh, 6, 4), 6);
    assert_int_equal(dl_topology_rings(mesh, 6, 3), 4);
    assert_int_equal(dl_topology_rings(mesh, 6, 2), 2);
    assert_int_equal(dl_topology_rings(path, 2, 3), 0);
    assert_true(dl_topology_connected(path, 2, 3));
}

/* Measured with 1 GiB over 2 to 8 V100 (vTrain tables): 22.55 45.14 85.36 37.17 45.74 87.01 134.5
 * GB/s on the bus. The graph alone gives them: not monotonic, with 5 devices below 4. */
static void bus_bandwidth_is_not_monotonic(void **state) {
    static const double measured[9] = {0, 0, 22.55, 45.14, 85.36, 37.17, 45.74, 87.01, 134.5};
    struct dl_system system = cube_mesh_system();
    for (int n = 2; n <= 8; n++) {
        struct dl_collective_request r = {.op = DL_COLL_ALL_REDUCE,
                                          .library = DL_LIB_NCCL,
                                          .bytes = 1073741824.0,
                                          .nodes = 1,
                                          .ranks_per_node = n,
                                          .flows_per_adapter = 1};
        struct dl_collective_time t;
        assert_int_equal(dl_collective_time(&system, &r, &t, NULL), DL_OK);
        check_close(1.073741824 / t.time_s * 2.0 * (n - 1) / n, measured[n], 0.12);
    }
}

/* Four devices, every pair with two links of 20 GB/s: six rings, 120 GB/s in all. A message between
 * two of them by MPI on device memory has the pair's two links, 40 GB/s: 100 MB in 2.5 ms and a
 * latency. NCCL held to two rings takes 1.5 x 120 MB / 40 GB/s = 4.5 ms, with all six 1.5. */
static void pairs_and_fewer_rings(void **state) {
    struct dl_edge mesh[6];
    int count = 0;
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < i; j++) mesh[count++] = (struct dl_edge){j, i, 2, "nvlink2"};
    struct dl_system system = cube_mesh_system();
    system.devices_per_node = 4;
    system.software.nccl_version = "2.4.8";
    system.intra.edges = mesh, system.intra.edge_count = count;
    system.intra.bandwidth_bytes_per_s = 120e9, system.intra.latency_s = 2e-6;
    dl_topology_fill(&system.intra, 4);
    struct dl_collective_request request = {.op = DL_COLL_P2P,
                                            .library = DL_LIB_MPI,
                                            .bytes = 100e6,
                                            .nodes = 1,
                                            .ranks_per_node = 2,
                                            .flows_per_adapter = 1,
                                            .device_direct = true};
    struct dl_collective_time t;
    struct dl_err err = {0};
    if (dl_collective_time(&system, &request, &t, &err) != DL_OK) fail_msg("%s", err.message);
    check_close(t.bandwidth_s, 2.5e-3, 1e-9);
    request = (struct dl_collective_request){.op = DL_COLL_ALL_REDUCE,
                                             .library = DL_LIB_NCCL,
                                             .bytes = 120e6,
                                             .nodes = 1,
                                             .ranks_per_node = 4,
                                             .flows_per_adapter = 1};
    assert_int_equal(dl_collective_time(&system, &request, &t, &err), DL_OK);
    check_close(t.time_s, 1.5e-3, 0.1);
    system.intra.channels = 2;
    assert_int_equal(dl_collective_time(&system, &request, &t, &err), DL_OK);
    check_close(t.time_s, 4.5e-3, 0.1);
    system.intra.channels = 12; /* more than the links allow: as they do */
    assert_int_equal(dl_collective_time(&system, &request, &t, &err), DL_OK);
    check_close(t.time_s, 1.5e-3, 0.1);
}

/* One device, none, or more than a node holds have no ring, whatever links there are. */
static void rings_of_no_group(void **state) {
    const struct dl_edge edges[] = {{.from = 0, .to = 1, .links = 2},
                                    {.from = 0, .to = 0, .links = 4}};
    assert_int_equal(dl_topology_rings(edges, 2, 2), 2);
    assert_int_equal(dl_topology_rings(edges, 2, 1), 0);
    assert_int_equal(dl_topology_rings(edges, 2, 0), 0);
    assert_int_equal(dl_topology_rings(edges, 2, DL_LINK_DEVICES + 1), 0);
    struct dl_edge ring[DL_LINK_DEVICES + 1]; /* one more than there may be, all in a ring */
    for (int i = 0; i <= DL_LINK_DEVICES; i++)
        ring[i] = (struct dl_edge){i, (i + 1) % (DL_LINK_DEVICES + 1), 2, ""};
    assert_int_equal(dl_topology_rings(ring, DL_LINK_DEVICES + 1, DL_LINK_DEVICES + 1), 0);
    assert_false(dl_topology_connected(ring, DL_LINK_DEVICES + 1, DL_LINK_DEVICES + 1));
    assert_true(dl_topology_connected(edges, 2, 1));
    assert_true(dl_topology_connected(edges, 2, 2));
    assert_false(dl_topology_connected(edges, 2, 3));
    assert_false(dl_topology_connected(edges, 2, 0));
    assert_false(dl_topology_connected(edges, 2, DL_LINK_DEVICES + 1));
}

/* ---- random graphs, by trying all ---- */

enum { MOST = 6 };
struct graph {
    int n, links[MOST][MOST];
};

static struct graph part_of(const struct dl_edge *edges, int count, int first, int stride, int n) {
    struct graph g = {.n = n};
    for (int i = 0; i < count; i++) {
        for (int a = 0; a < n; a++) {
            for (int b = 0; b < n; b++) {
                if (a == b || edges[i].from != first + a * stride ||
                    edges[i].to != first + b * stride)
                    continue;
                g.links[a][b] += (int)edges[i].links, g.links[b][a] += (int)edges[i].links;
            }
        }
    }
    return g;
}

/* Cycles through all places, as orders that begin with 0; each with its reverse. */
static int orders_of(int n, int orders[][MOST]) {
    int count = 0, at[MOST] = {0, 1, 2, 3, 4, 5};
    for (int all = 1, k = 0; k < 3125; k++) { /* 5 digits of base 5: places 1 to 5 */
        int digits = k, used = 1;
        all = 1;
        for (int i = 1; i < n; i++, digits /= 5) {
            at[i] = 1 + digits % 5;
            if (at[i] >= n || (used >> at[i] & 1) != 0) all = 0;
            used |= 1 << at[i];
        }
        if (all == 0 || digits != 0 || (n > 2 && at[1] > at[n - 1])) continue;
        memcpy(orders[count++], at, sizeof at);
    }
    return count;
}

static int most_cycles(struct graph *g, int orders[][MOST], int count, int from) {
    int best = 0;
    for (int o = from; o < count; o++) {
        bool possible = true;
        for (int i = 0; i < g->n; i++) {
            const int a = orders[o][i], b = orders[o][(i + 1) % g->n];
            if (--g->links[a][b] < 0) possible = false;
            --g->links[b][a];
        }
        if (possible) {
            const int more = 1 + most_cycles(g, orders, count, o);
            if (more > best) best = more;
        }
        for (int i = 0; i < g->n; i++) {
            const int a = orders[o][i], b = orders[o][(i + 1) % g->n];
            g->links[a][b]++, g->links[b][a]++;
        }
    }
    return best;
}

static bool joined(const struct graph *g) {
    bool reached[MOST] = {true};
    for (int i = 0; i < g->n * g->n * g->n; i++) { /* as often as could matter */
        const int a = i % g->n, b = i / g->n % g->n;
        if (reached[a] && g->links[a][b] > 0) reached[b] = true;
    }
    for (int a = 0; a < g->n; a++)
        if (!reached[a]) return false;
    return true;
}

/* Two devices need no way back of its own. */
static int rings_of(struct graph g) {
    int orders[120][MOST];
    if (g.n == 2) return g.links[0][1];
    const int count = orders_of(g.n, orders);
    return 2 * most_cycles(&g, orders, count, 0);
}

/* Groups of a size and stride that fill the node: the worst of them, apart before a chain before
 * fewer rings. */
static int worst_group(const struct dl_edge *edges, int count, int devices, int stride, int n) {
    int worst = INT32_MAX;
    bool apart = false, chain = false;
    for (int first = 0; first < devices; first++) {
        const int block = first / (stride * n) * stride * n;
        if (first - block >= stride || block + stride * n > devices) continue;
        const struct graph g = part_of(edges, count, first, stride, n);
        const int rings = rings_of(g);
        apart = apart || !joined(&g), chain = chain || rings == 0;
        worst = rings < worst ? rings : worst;
    }
    return apart ? DL_GROUP_APART : chain ? DL_GROUP_CHAIN : worst;
}

static void random_graphs(void **state) {
    uint64_t seed = 8;
    int chains = 0, aparts = 0, several = 0;
    for (int round = 0; round < 400; round++) {
        struct dl_edge edges[DL_LINK_DEVICES * DL_LINK_DEVICES];
        const int devices = 2 + (int)(check_random(&seed) % (MOST - 1)),
                  /* seldom as many as there may be, most of them without links */
            count = round % 20 == 0 ? DL_LINK_DEVICES * DL_LINK_DEVICES
                                    : 1 + (int)(check_random(&seed) % 24);
        for (int i = 0; i < count; i++) {
            const int from = (int)(check_random(&seed) % (uint64_t)devices);
            /* at times outside, to itself, or without links */
            const int other = (int)(check_random(&seed) % (uint64_t)(devices + 1)) -
                              (check_random(&seed) % 20 == 0);
            edges[i] = (struct dl_edge){from, other, (int)(check_random(&seed) % 3), ""};
            if (i >= 24) edges[i].links = 0;
            if (i % 2 == 0) edges[i].from = other, edges[i].to = from;
        }
        struct dl_link link = {.edges = edges, .edge_count = count};
        memset(link.ring_channels, 1, sizeof link.ring_channels);
        dl_topology_fill(&link, devices);
        for (int n = 2; n <= devices; n++) {
            const struct graph g = part_of(edges, count, 0, 1, n);
            assert_int_equal(dl_topology_connected(edges, count, n), joined(&g));
            assert_int_equal(dl_topology_rings(edges, count, n), rings_of(g));
            assert_int_equal(link.connected[n], joined(&g));
            assert_int_equal(link.ring_channels[n], joined(&g) ? rings_of(g) : 0);
            for (int stride = 1; stride * n <= devices; stride++) {
                const int worst = worst_group(edges, count, devices, stride, n);
                assert_int_equal(link.group_channels[stride][n], worst);
                chains += worst == DL_GROUP_CHAIN, aparts += worst == DL_GROUP_APART;
                several += worst > 2;
            }
            assert_int_equal(link.group_channels[devices / n + 1][n], DL_GROUP_UNKNOWN);
        }
        assert_int_equal(link.ring_channels[0], 0);
        assert_int_equal(link.ring_channels[1], 0);
        assert_int_equal(link.ring_channels[devices + 1], 0);
    }
    assert_true(chains > 50 && aparts > 50 && several > 50);
    struct dl_link none = {.edge_count = 0};
    memset(none.ring_channels, 1, sizeof none.ring_channels);
    dl_topology_fill(&none, 4);
    for (int n = 0; n <= DL_LINK_DEVICES; n++) assert_int_equal(none.ring_channels[n], 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_and_fewer_rings), cmocka_unit_test(rings_of_the_cube_mesh),
        cmocka_unit_test(links_outside),         cmocka_unit_test(other_graphs),
        cmocka_unit_test(rings_of_no_group),     cmocka_unit_test(bus_bandwidth_is_not_monotonic),
        cmocka_unit_test(random_graphs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
