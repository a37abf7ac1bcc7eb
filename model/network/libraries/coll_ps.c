/* coll_ps.c - synchronous parameter servers (F-PS-PUSH-PULL) and the library ps-lite. Not modelled:
 * stragglers among workers, asynchronous staleness, retries. */
#include "model/network/coll_internal.h"

/* Time of one direction [s]: a worker's link carries what the worker sends, a server's link what
 * all workers send to that server. With servers on the workers' nodes, 1/W of the bytes stay inside
 * a node, and a node's link carries its worker's and its server's traffic in opposite directions,
 * for push and again for pull. */
static double direction_s(const struct dl_system *system,
                          const struct dl_parameter_server_request *r, double bytes_per_s,
                          const char **limit) {
    double remote = r->colocated ? (r->workers - 1.0) / r->workers : 1.0;
    double uplinks =
        dl_path_server_load(system, r->workers, r->colocated ? 0.0 : r->workers, r->servers);
    double worker_s = fmax(remote, uplinks) * r->total_bytes / bytes_per_s;
    double server_s = remote * r->workers * r->largest_server_bytes / bytes_per_s;
    *limit = server_s > worker_s ? "server" : "worker";
    return fmax(worker_s, server_s);
}

enum dl_code dl_parameter_server_time(const struct dl_system *system,
                                      const struct dl_parameter_server_request *request,
                                      struct dl_parameter_server_time *out, struct dl_err *err) {
    if (!(request->workers >= 1.0) || !(request->servers >= 1.0) || !(request->total_bytes >= 0.0))
        return dl_fail(err, DL_ERR_USAGE,
                       "expected at least one worker, one server and a size of parameters");
    struct dl_parameter_server_request r = *request;
    if (!(r.largest_server_bytes >= r.total_bytes / r.servers))
        r.largest_server_bytes = r.total_bytes / r.servers;
    bool network = !(r.colocated && r.workers <= 1.0);
    double one_way_s = 0.0, alpha_s = 0.0;
    const char *limit = "worker";
    if (network) {
        struct dl_collective_request link_request = {.op = DL_COLL_P2P,
                                                     .library = DL_LIB_PSLITE,
                                                     .bytes = r.total_bytes,
                                                     .nodes = 2,
                                                     .ranks_per_node = 1};
        struct dl_coll_links links;
        double message = r.message_count > 0.0 ? r.total_bytes / r.message_count : r.total_bytes;
        DL_TRY(dl_coll_links(system, &link_request, message, &links, err));
        struct dl_path path;
        dl_coll_path(system, &link_request, &path);
        double bytes_per_s = path.adapter_count / links.inter.beta_s_per_byte;
        /* Copies on the host bound the rate of the node's message streams. */
        if (!isnan(r.copy_bytes_per_s) && r.copy_bytes_per_s < bytes_per_s)
            bytes_per_s = r.copy_bytes_per_s;
        one_way_s = direction_s(system, &r, bytes_per_s, &limit);
        alpha_s = links.inter.alpha_s;
    } else if (!isnan(r.copy_bytes_per_s)) {
        one_way_s = r.total_bytes / r.copy_bytes_per_s;
    }
    double update = r.update_bytes_per_s;
    if (isnan(update) && system->has_host) update = system->host.memory_bandwidth_bytes_per_s / 3.0;
    struct dl_parameter_server_time time = {
        .push_s = one_way_s, .pull_s = one_way_s, .formula = "F-PS-PUSH-PULL", .limit = limit};
    time.server_s = isnan(update) ? 0.0 : r.workers * r.largest_server_bytes / update;
    /* Full duplex: with more than one parameter, later ones are pushed while earlier ones are
     * pulled.
     */
    double links_s = !r.half_duplex && r.message_count > 1.0
                         ? one_way_s + one_way_s / r.message_count
                         : 2.0 * one_way_s;
    double share =
        r.largest_server_bytes > 0.0 ? r.largest_server_bytes / r.total_bytes : 1.0 / r.servers;
    double worker_messages_s = 2.0 * r.message_count * r.message_s;
    double server_messages_s = 2.0 * r.message_count * r.workers * share * r.message_s;
    double messages_s = fmax(worker_messages_s, server_messages_s);
    time.latency_s = 2.0 * alpha_s + messages_s;
    time.bandwidth_s = links_s + time.server_s;
    time.time_s = time.latency_s + time.bandwidth_s;
    if (time.server_s > links_s) time.limit = "update";
    if (messages_s > fmax(links_s, time.server_s)) time.limit = "message";
    *out = time;
    return DL_OK;
}

static const struct dl_collective_algorithm algorithms[] = {
    {"push_pull", "gradients pushed to servers on all nodes, weights pulled", DL_ON(ALL_REDUCE),
     "F-PS-PUSH-PULL", "mxnet-source"},
    {.name = NULL}};

static enum dl_code pslite_time(const struct dl_system *system,
                                const struct dl_collective_request *request,
                                struct dl_collective_time *out, struct dl_err *err) {
    /* MXNet shards keys of 1e6 elements and more over all servers */
    static const double BIG_KEY_BYTES = 4e6;
    static const double MESSAGE_S = 50e-6; /* one ZeroMQ message, both ends (unverified) */
    if (request->op != DL_COLL_ALL_REDUCE) return dl_mpi_plain_time(system, request, out, err);
    double nodes = (double)request->nodes;
    struct dl_parameter_server_request servers = {.workers = nodes,
                                                  .servers = nodes,
                                                  .total_bytes = request->bytes,
                                                  .largest_server_bytes = request->bytes / nodes,
                                                  .colocated = true,
                                                  .message_count =
                                                      request->bytes > BIG_KEY_BYTES ? nodes : 1.0,
                                                  .message_s = MESSAGE_S,
                                                  .copy_bytes_per_s = NAN,
                                                  .update_bytes_per_s = NAN};
    struct dl_parameter_server_time time = {0};
    DL_TRY(dl_parameter_server_time(system, &servers, &time, err));
    if (servers.message_count > 1.0 && !request->allow_decreasing) {
        /* pushes and pulls of shards overlap, yet no larger key takes less than the largest
         * whole */
        struct dl_parameter_server_time whole = {0};
        servers.total_bytes = BIG_KEY_BYTES, servers.largest_server_bytes = BIG_KEY_BYTES / nodes;
        servers.message_count = 1.0;
        DL_TRY(dl_parameter_server_time(system, &servers, &whole, err));
        if (whole.time_s > time.time_s)
            time = whole;
        else
            servers.message_count = nodes;
    }
    struct dl_cost_parts cost = {time.latency_s, time.bandwidth_s, 2.0 * servers.message_count};
    dl_coll_set(out, cost);
    out->algorithm = algorithms[0].name, out->formula = algorithms[0].formula,
    out->sigma_log = DL_COLL_UNCHECKED_SIGMA_LOG;
    out->limit = request->nodes > 1 ? "inter" : "host";
    return DL_OK;
}

static const char *const spellings[] = {NULL};

const struct dl_collective_library dl_library_pslite = {
    .summary = "ps-lite: MXNet's parameter servers, in host memory",
    .formula = "F-PS-PUSH-PULL",
    .source = "mxnet-source",
    .spellings = spellings,
    .on_gpus = true,
    .on_cpus = true,
    .algorithms = algorithms,
    .time = pslite_time,
};
