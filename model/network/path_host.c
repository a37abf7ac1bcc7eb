/* path_host.c - a path as alpha, beta and gamma, for libraries that run on the host
 * (F-COLL-LINKS). Buffers are in host memory; copies from and to a device belong to the framework.
 * Not modelled: NUMA placement, message matching. */
#include "model/network/coll_internal.h"

#include <string.h>

/* A message inside a node passes through a shared buffer (copy in, copy out). In an exchange both
 * ends copy both ways, so each message moves at half the copy rate of one core (unverified:
 * 4 GB/s). */
static const double CORE_COPY_BYTES_PER_S = 4e9;
/* What a message from and to device memory takes more: the same at each step from 32 to 256 ranks
 * (tools/staging.py; key "converged-performance-study"). */
static const double STAGING_S = 26e-6;
/* one message between processes of a node (unverified) */
static const double SHARED_MEMORY_LATENCY_S = 0.5e-6;

/* Sums on the host run at a third of the memory bandwidth (two reads and a write), at most at what
 * one core streams (unverified). */
static double sum_s_per_byte(const struct dl_system *system, double ranks_per_node) {
    const double core = 1.0 / CORE_COPY_BYTES_PER_S;
    const double share =
        system->has_host ? 3.0 * ranks_per_node / system->host.memory_bandwidth_bytes_per_s : 0.0;
    return share > core ? share : core; /* an unknown share compares as smaller */
}

/* Cost by the piece that serves a message of this size; never below the cost at the end of the
 * piece before. */
static struct dl_hockney piece_for(const struct dl_link *link, double bytes) {
    int at = 0;
    while (at + 1 < link->piece_count && bytes > link->pieces[at].max_bytes) at++;
    struct dl_hockney out = {.alpha_s = link->pieces[at].alpha_s,
                             .beta_s_per_byte = link->pieces[at].beta_s_per_byte};
    if (at > 0) {
        const struct dl_piece *below = &link->pieces[at - 1];
        double floor_s = below->alpha_s + below->max_bytes * below->beta_s_per_byte;
        double here_s = out.alpha_s + bytes * out.beta_s_per_byte;
        if (here_s < floor_s) out.alpha_s += floor_s - here_s;
    }
    return out;
}

/* Links of the host, not of devices. */
static bool between_processes(const char *kind) {
    static const char *const kinds[] = {"shm", "upi", "qpi"};
    for (size_t i = 0; kind != NULL && i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kind, kinds[i]) == 0) return true;
    return false;
}

/* Bandwidth between two devices: the link's bandwidth sums all rings, of which a pair has only its
 * own links. */
static double pair_bytes_per_s(const struct dl_system *system, int64_t stride) {
    const struct dl_link *link = &system->intra;
    const int64_t all = system->devices_per_node;
    if (link->edge_count > 0) {
        if (all > DL_LINK_DEVICES || stride * 2 > all || link->ring_channels[all] <= 0)
            return link->bandwidth_bytes_per_s;
        const int links = link->group_channels[stride < 1 ? 1 : stride][2];
        return links > 0
                   ? link->bandwidth_bytes_per_s * (double)links / (double)link->ring_channels[all]
                   : 0.0;
    }
    const bool direct = link->kind != NULL && strncmp(link->kind, "nvlink", 6) == 0 && all > 2;
    return direct ? link->bandwidth_bytes_per_s / (double)(all - 1) : link->bandwidth_bytes_per_s;
}

/* *limit: "intra" where the link of the file is used, else cores copy. */
static struct dl_hockney inside(const struct dl_system *system,
                                const struct dl_collective_request *request, double bytes,
                                const char **limit) {
    struct dl_hockney out = {.alpha_s = SHARED_MEMORY_LATENCY_S,
                             .beta_s_per_byte = 2.0 / CORE_COPY_BYTES_PER_S};
    const struct dl_link *link = &system->intra;
    *limit = "intra";
    if (request->device_direct && system->has_intra && link->peer_to_peer) {
        const double pair = pair_bytes_per_s(system, request->group_stride);
        if (pair > 0.0) {
            out.alpha_s = isnan(link->latency_s) ? out.alpha_s : link->latency_s;
            out.beta_s_per_byte = 1.0 / pair;
            return out;
        }
    }
    *limit = "host";
    if (system->has_host && !isnan(system->host.memory_bandwidth_bytes_per_s)) {
        /* every byte is written and read twice; all ranks of the node at once */
        double groups = request->concurrent > 1 ? (double)request->concurrent : 1.0;
        double share = 4.0 * groups * (double)request->ranks_per_node /
                       system->host.memory_bandwidth_bytes_per_s;
        out.beta_s_per_byte = fmax(out.beta_s_per_byte, share);
    }
    if (!system->has_intra || !between_processes(link->kind)) return out;
    *limit = "intra";
    if (link->piece_count > 0) return piece_for(link, bytes);
    if (!isnan(link->latency_s)) out.alpha_s = link->latency_s;
    if (!isnan(link->bandwidth_bytes_per_s))
        out.beta_s_per_byte = 1.0 / link->bandwidth_bytes_per_s;
    return out;
}

enum dl_code dl_coll_links(const struct dl_system *system,
                           const struct dl_collective_request *request, double message_bytes,
                           struct dl_coll_links *out, struct dl_err *err) {
    struct dl_path path;
    struct dl_path_adapter adapter;
    dl_coll_path(system, request, &path);
    struct dl_coll_links links = {.nodes = path.nodes,
                                  .per_node = path.per_node,
                                  .ranks = path.ranks,
                                  .flows = fmax(1.0, request->flows_per_adapter),
                                  .bisection = 1.0};
    double gamma = sum_s_per_byte(system, links.per_node);
    if (request->ranks_per_node > 1)
        links.intra = inside(system, request, message_bytes, &links.inside_limit);
    if (request->nodes > 1) {
        const struct dl_link *link = &system->inter;
        if (!dl_path_adapter_of(system, false, &adapter) ||
            (link->piece_count == 0 && !(adapter.bytes_per_s > 0.0)))
            return dl_fail(
                err, DL_ERR_INPUT,
                "system %s has no network between nodes, needed for %lld nodes: give --set "
                "links.inter.kind=KIND --set links.inter.bandwidth=RATE",
                system->name != NULL ? system->name : "?", (long long)request->nodes);
        if (link->piece_count > 0)
            links.inter = piece_for(link, message_bytes);
        else
            links.inter = (struct dl_hockney){(isnan(adapter.latency_s) ? 0.0 : adapter.latency_s) +
                                                  2.0 * adapter.message_cpu_s,
                                              1.0 / adapter.bytes_per_s, 0.0};
        /* Without an adapter the cores copy: a rank's sends and receives time-slice its core. */
        if (dl_path_is_loopback(system)) links.inter.beta_s_per_byte *= 2.0;
        links.inter.beta_s_per_byte *= links.flows / path.rail_count;
        const double crossing = fmax(1.0, path.uplink_load);
        links.inter.beta_s_per_byte *= crossing;
        links.inter.alpha_s += path.fabric_latency_s,
            links.bisection = path.oversubscription / crossing;
    }
    if (request->device_buffers) {
        if (request->ranks_per_node > 1) links.intra.alpha_s += STAGING_S;
        if (request->nodes > 1) links.inter.alpha_s += STAGING_S;
    }
    if (request->device_direct) gamma = 0.0; /* summed on the device, at its memory's rate */
    links.intra.gamma_s_per_byte = links.inter.gamma_s_per_byte = gamma;
    *out = links;
    return DL_OK;
}

const char *dl_coll_links_limit(const struct dl_coll_links *links, dl_links_cost_fn *cost,
                                double bytes, const void *context) {
    struct dl_coll_links across = *links, inside = *links, sums = *links;
    const char *limits[] = {"inter", links->inside_limit, "host"};
    double least_s = INFINITY;
    int limit = 0;
    across.inter.beta_s_per_byte = inside.intra.beta_s_per_byte = 0.0;
    sums.inter.gamma_s_per_byte = sums.intra.gamma_s_per_byte = 0.0;
    const struct dl_coll_links *without[] = {&across, &inside, &sums};
    for (int i = links->nodes > 1.0 ? 0 : 1; i < 3; i++) {
        const double time_s = cost(without[i], bytes, context).bandwidth_s;
        if (time_s < least_s) least_s = time_s, limit = i;
    }
    return limits[limit];
}
