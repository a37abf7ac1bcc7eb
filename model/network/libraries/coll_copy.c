/* coll_copy.c - see coll_copy.h. */
#include "model/network/libraries/coll_copy.h"
#include "model/network/libraries/nccl.h"

#include <string.h>

/* one asynchronous copy between devices or from the host, start to end (unverified) */
static const double COPY_S = 10e-6;

/* Bandwidth of one path between two devices, and of all paths out of one device. */
struct paths {
    double pair_bytes_per_s, out_bytes_per_s, host_bytes_per_s;
    double link_bytes_per_s; /* of one link, where the file has edges; NAN: it has none */
    const char *limit;       /* as dl_collective_time names it */
};

static bool paths_of(const struct dl_system *system, int64_t devices, struct paths *out) {
    struct paths paths = {NAN, NAN, NAN, NAN, "host-copy"};
    if (system->has_host) paths.host_bytes_per_s = system->host.copy_bandwidth_bytes_per_s;
    struct dl_collective_request request = {
        .op = DL_COLL_ALL_REDUCE, .library = DL_LIB_NCCL, .nodes = 1, .ranks_per_node = devices};
    struct dl_nccl_graph graph;
    if (system->has_intra && dl_nccl_graph_build(system, &request, &graph, NULL) == DL_OK) {
        double widest = fmax(graph.channels * graph.ring_bytes_per_s,
                             graph.tree_channels * graph.tree_bytes_per_s);
        paths.limit = graph.inside_limit;
        /* behind a switch or on a bus a pair gets all of it */
        paths.out_bytes_per_s = paths.pair_bytes_per_s = widest;
        if (dl_path_has_edges(system) && graph.nvlink)
            paths.pair_bytes_per_s = paths.link_bytes_per_s =
                fmax(graph.ring_bytes_per_s, graph.tree_bytes_per_s);
        else if (dl_path_inside_kind(system) == DL_PATH_NVLINK)
            paths.pair_bytes_per_s = widest / (double)(devices - 1); /* full mesh */
        /* up and down through host memory */
    } else if (!isnan(paths.host_bytes_per_s)) {
        paths.pair_bytes_per_s = paths.out_bytes_per_s = paths.host_bytes_per_s;
    }
    *out = paths;
    return paths.pair_bytes_per_s > 0.0;
}

/* Seconds per byte summed on a device: two reads and a write. */
static double sum_s_per_byte(const struct dl_system *system) {
    const struct dl_device *device = system->device;
    if (device == NULL || isnan(device->memory_bandwidth_bytes_per_s)) return 0.0;
    double efficiency = isnan(device->memory_efficiency) ? 1.0 : device->memory_efficiency;
    return 3.0 / (device->memory_bandwidth_bytes_per_s * efficiency);
}

const char *dl_copy_limit(const struct dl_system *system, int64_t devices) {
    struct paths paths;
    return paths_of(system, devices, &paths) ? paths.limit : "host-copy";
}

bool dl_copy_host_cost(const struct dl_system *system, int64_t devices, double bytes,
                       struct dl_cost_parts *out) {
    if (!system->has_host || !(system->host.copy_bandwidth_bytes_per_s > 0.0)) return false;
    double sharing =
        system->host.devices_per_copy_link > 1 ? (double)system->host.devices_per_copy_link : 1.0;
    double turns = fmin(sharing, (double)devices);
    double links_s = turns * bytes / system->host.copy_bandwidth_bytes_per_s;
    double memory = system->host.memory_bandwidth_bytes_per_s; /* all copies read host memory */
    if (memory > 0.0) links_s = fmax(links_s, (double)devices * bytes / memory);
    *out = (struct dl_cost_parts){turns * COPY_S, links_s, turns};
    return true;
}

int64_t dl_copy_staged_devices(const struct dl_system *system, int64_t devices) {
    if (!dl_path_has_peers(system)) return devices - 1;
    int64_t staged = 0;
    for (int64_t d = 1; d < devices; d++)
        if (dl_path_has_edges(system) ? dl_path_links_between(system, 0, d) == 0
                                      : dl_path_other_socket(system, 0, d))
            staged++;
    return staged;
}

/* Seconds per byte for device 0 to reach all others over single links: neighbours concurrently,
 * each over its own links; the others one after another through the host link of device 0 and, on
 * the other socket, the bridge between sockets. NAN: no such path. */
static double graph_star_s_per_byte(const struct dl_system *system, int64_t devices,
                                    const struct paths *paths) {
    double direct = 0.0, staged = 0.0;
    for (int64_t d = 1; d < devices; d++) {
        const int64_t links = dl_path_links_between(system, 0, d);
        if (links > 0) {
            direct = fmax(direct, 1.0 / ((double)links * paths->link_bytes_per_s));
            continue;
        }
        staged += 1.0 / dl_path_staged_bytes_per_s(system, 0, d);
    }
    return isnan(staged) ? NAN : fmax(direct, staged);
}

bool dl_copy_star_cost(const struct dl_system *system, int64_t devices, double bytes,
                       struct dl_cost_parts *out) {
    struct paths paths;
    *out = (struct dl_cost_parts){0.0, 0.0, 0.0};
    if (devices <= 1) return true;
    if (!paths_of(system, devices, &paths)) return false;
    double others = (double)devices - 1.0, out_s = others * bytes / paths.out_bytes_per_s;
    /* no copy beats its own link */
    double one_s = bytes / paths.pair_bytes_per_s;
    if (!isnan(paths.link_bytes_per_s)) {
        double graph_s = bytes * graph_star_s_per_byte(system, devices, &paths);
        if (!isnan(graph_s)) out_s = one_s = graph_s;
    }
    *out = (struct dl_cost_parts){COPY_S, fmax(out_s, one_s), others};
    return true;
}

bool dl_copy_ring_cost(const struct dl_system *system, int64_t devices, double bytes,
                       struct dl_cost_parts *out) {
    struct paths paths;
    if (!paths_of(system, devices, &paths)) return false;
    double slowest = INFINITY;
    for (int64_t d = 0; d < devices; d++) {
        const int64_t next = (d + 1) % devices;
        double rate = paths.pair_bytes_per_s;
        if (!isnan(paths.link_bytes_per_s)) {
            const int64_t links = dl_path_links_between(system, d, next);
            rate = links > 0 ? (double)links * paths.link_bytes_per_s
                             : dl_path_staged_bytes_per_s(system, d, next);
        } else if (dl_path_other_socket(system, d, next)) {
            rate = fmin(rate, dl_path_bridge_bytes_per_s(system));
        }
        slowest = isnan(rate) ? NAN : fmin(slowest, rate);
    }
    if (isnan(slowest)) return false;
    const double steps = 2.0 * ((double)devices - 1.0), hop_s = dl_path_device_latency_s(system);
    const struct dl_hockney link = {isnan(hop_s) ? COPY_S : hop_s, 1.0 / slowest, 0.0};
    *out = dl_coll_ring_cost(&link, (double)devices, bytes, 2.0, steps, false);
    return true;
}

bool dl_copy_tree_cost(const struct dl_system *system, int64_t devices, double bytes,
                       struct dl_cost_parts *out) {
    struct paths paths;
    *out = (struct dl_cost_parts){0.0, 0.0, 0.0};
    if (devices <= 1) return true;
    if (!paths_of(system, devices, &paths)) return false;
    double rounds = dl_ceil_log2((double)devices);
    *out = (struct dl_cost_parts){rounds * COPY_S, rounds * bytes / paths.pair_bytes_per_s, rounds};
    return true;
}

bool dl_copy_sharded_cost(const struct dl_system *system, int64_t devices, double bytes,
                          struct dl_cost_parts *out) {
    struct paths paths;
    *out = (struct dl_cost_parts){0.0, 0.0, 0.0};
    if (devices <= 1) return true;
    if (!paths_of(system, devices, &paths)) return false;
    double share = ((double)devices - 1.0) / (double)devices;
    *out = (struct dl_cost_parts){
        2.0 * COPY_S, share * bytes * (2.0 / paths.out_bytes_per_s + sum_s_per_byte(system)), 2.0};
    return true;
}

bool dl_copy_hierarchical_cost(const struct dl_system *system, int64_t devices, double bytes,
                               struct dl_cost_parts *out) {
    struct dl_cost_parts star, pair;
    int64_t half = (devices + 1) / 2;
    if (!dl_copy_star_cost(system, half, bytes, &star) ||
        !dl_copy_tree_cost(system, 2, bytes, &pair))
        return false;
    double sums_s = (double)half * bytes * sum_s_per_byte(system);
    *out = (struct dl_cost_parts){2.0 * star.latency_s + pair.latency_s,
                                  2.0 * star.bandwidth_s + pair.bandwidth_s + sums_s,
                                  2.0 * star.steps + 1.0};
    return true;
}

/* An all-reduce: reduce and broadcast by the same pattern, with the sums in between. */
static bool there_and_back(bool known, const struct dl_system *system, int64_t devices,
                           double bytes, struct dl_cost_parts *cost) {
    cost->latency_s *= 2.0, cost->steps *= 2.0;
    cost->bandwidth_s =
        2.0 * cost->bandwidth_s + (double)(devices - 1) * bytes * sum_s_per_byte(system);
    return known;
}

#define FROM_ROOT                                                                                  \
    (DL_ON(P2P) | DL_ON(BROADCAST) | DL_ON(REDUCE) | DL_ON(GATHER) | DL_ON(SCATTER) |              \
     DL_ON(ALL_REDUCE))
#define FROM_ALL (DL_ON(ALL_REDUCE) | DL_ON(REDUCE_SCATTER) | DL_ON(ALL_GATHER))
static const struct dl_collective_algorithm algorithms[] = {
    {"star", "device 0 to or from each other device", FROM_ROOT, "F-COPY-STAR", "unverified"},
    {"tree", "rounds of pairs of devices", FROM_ROOT, "F-COPY-TREE", "caffe-source"},
    {"host", "host memory to or from each device", FROM_ROOT, "F-COPY-HOST", "unverified"},
    {"sharded", "each device gathers, sums and returns its shard", FROM_ALL, "F-COPY-SHARDED",
     "tf-source"},
    {"ring", "a ring in the order of device numbers", FROM_ALL, "F-COPY-RING", "nccl-source"},
    {"hierarchical", "a star in each half of the devices, a transfer between their roots", FROM_ALL,
     "F-COPY-HIERARCHICAL", "tf-source"},
    {.name = NULL}};
/* In the order of `algorithms`. */
static const struct pattern {
    bool (*cost)(const struct dl_system *, int64_t, double, struct dl_cost_parts *);
    bool is_all_reduce; /* the cost is that of an all-reduce, else of one direction */
} patterns[] = {{dl_copy_star_cost, false}, {dl_copy_tree_cost, false},
                {dl_copy_host_cost, false}, {dl_copy_sharded_cost, true},
                {dl_copy_ring_cost, true},  {dl_copy_hierarchical_cost, true}};

static enum dl_code copy_time(const struct dl_system *system,
                              const struct dl_collective_request *request,
                              struct dl_collective_time *out, struct dl_err *err) {
    int at = 0;
    if (request->nodes > 1)
        return dl_fail(err, DL_ERR_INPUT,
                       "one process copies between the devices of one node, not of %lld nodes",
                       (long long)request->nodes);
    while (request->algorithm != NULL && algorithms[at].name != NULL &&
           strcmp(algorithms[at].name, request->algorithm) != 0)
        at++;
    if (algorithms[at].name == NULL)
        return dl_fail(
            err, DL_ERR_USAGE,
            "no copy pattern '%s'; expected star, tree, host, sharded, ring or hierarchical",
            request->algorithm);
    const struct pattern *pattern = &patterns[at];
    const int64_t devices = request->op == DL_COLL_P2P ? 2 : request->ranks_per_node;
    struct dl_cost_parts cost = {0.0, 0.0, 0.0};
    bool known = pattern->cost(system, devices, request->bytes, &cost);
    const bool all_reduce = request->op == DL_COLL_ALL_REDUCE;
    if (all_reduce && !pattern->is_all_reduce)
        known = there_and_back(known, system, devices, request->bytes, &cost);
    if (!all_reduce && pattern->is_all_reduce) cost.latency_s /= 2.0, cost.bandwidth_s /= 2.0;
    if (!known)
        return dl_fail(err, DL_ERR_INPUT,
                       "system %s has no bandwidth between the devices of a node: set links.intra "
                       "or host.copy_bandwidth_bytes_per_s",
                       system->name != NULL ? system->name : "?");
    dl_coll_set(out, cost);
    out->algorithm = algorithms[at].name, out->formula = algorithms[at].formula,
    out->limit = pattern->cost == dl_copy_host_cost ? "host-copy" : dl_copy_limit(system, devices);
    out->sigma_log = DL_COLL_UNCHECKED_SIGMA_LOG;
    return DL_OK;
}

static const char *const spellings[] = {NULL};

const struct dl_collective_library dl_library_copy = {
    .summary = "plain copies of one process between the devices of a node",
    .formula = "F-COPY-STAR",
    .source = "unverified",
    .spellings = spellings,
    .on_gpus = true,
    .on_cpus = true,
    .single_node = true,
    .takes_gpu_memory = true,
    .algorithms = algorithms,
    .time = copy_time,
};
