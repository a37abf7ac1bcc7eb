/* coll_concurrent.c - several groups of one job that run the same collective at the same time
 * (F-COLL-CONCURRENT).
 *
 * Groups of p ranks, s apart, fill blocks of s x p ranks with s groups each: tensor groups have
 * s = 1, the data groups across them have s = p of the tensor groups. All groups run at the same
 * time, so flows that share an adapter get equal (max-min fair) shares, and the slowest group
 * stands for all. Not modelled: groups that start at different times, blocks that do not divide
 * into whole nodes (the fullest node counts). */
#include "model/network/coll_internal.h"

static int64_t divide_up(int64_t a, int64_t b) { return (a - 1) / b + 1; }

void dl_collective_domain(const struct dl_system *system,
                          const struct dl_collective_request *request,
                          struct dl_collective_request *out) {
    const int64_t most = dl_path_domain_nodes(system);
    *out = *request;
    if (!dl_libraries[request->library]->spans_domains || request->domain_nodes > 0) return;
    out->nodes = divide_up(request->nodes, most);
    out->domain_nodes = divide_up(request->nodes, out->nodes);
    out->ranks_per_node = divide_up(request->nodes * request->ranks_per_node, out->nodes);
}

void dl_collective_neighbours(const struct dl_system *system, int64_t nodes, int64_t ranks_per_node,
                              int64_t ranks, int64_t stride,
                              struct dl_collective_request *request) {
    const int64_t most =
        dl_libraries[request->library]->spans_domains ? dl_path_domain_nodes(system) : 1;
    const int64_t joined = most < nodes ? most : nodes, held = joined * ranks_per_node;
    const bool crosses = nodes > joined && stride * ranks > held;
    request->nodes = crosses ? 2 : 1, request->ranks_per_node = crosses ? 1 : 2;
    request->domain_nodes = joined, request->flows_per_adapter = 1.0;
    if (crosses) {
        const double senders = (double)(stride < held ? stride : held);
        struct dl_path path;
        dl_coll_path(system, request, &path);
        request->flows_per_adapter = fmax(1.0, senders / path.adapter_count);
        request->node_stride = stride / ranks_per_node, request->span_nodes = nodes;
    }
}

enum dl_code dl_collective_group(const struct dl_system *system,
                                 const struct dl_collective_request *request,
                                 struct dl_collective_request *out, struct dl_err *err) {
    struct dl_collective_request group = *request;
    int64_t stride = request->group_stride > 1 ? request->group_stride : 1,
            size = request->group_size;
    int64_t per_node = request->ranks_per_node,
            together = request->concurrent > 1 ? request->concurrent : 1;
    if (size > 0) {
        if (size > (request->nodes * per_node - 1) / stride + 1)
            return dl_fail(err, DL_ERR_USAGE,
                           "a group of %lld ranks, %lld apart, does not fit into %lld x %lld ranks",
                           (long long)size, (long long)stride, (long long)request->nodes,
                           (long long)per_node);
        int64_t on_node = stride < per_node ? (per_node - 1) / stride + 1 : 1;
        if (on_node > size) on_node = size;
        group.ranks_per_node = on_node, group.nodes = (size - 1) / on_node + 1;
        /* Communicating groups on one node. */
        int64_t held = stride >= per_node ? per_node : on_node < size ? stride : per_node / on_node;
        if (together > held) together = held;
    } else {
        stride = 1;
    }
    group.node_stride = stride / per_node;
    if (stride >= per_node || group.ranks_per_node == 1) stride = 1;
    if (group.nodes > 1 && together > 1) {
        struct dl_path path;
        dl_coll_path(system, request, &path);
        const double adapters = path.adapter_count;
        double mine = fmin(adapters, (double)group.ranks_per_node);
        group.flows_per_adapter =
            fmax(1.0, request->flows_per_adapter) * fmax(1.0, (double)together * mine / adapters);
    }
    group.group_size = 0, group.group_stride = stride, group.concurrent = together;
    *out = group;
    return DL_OK;
}
