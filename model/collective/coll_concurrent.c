/* coll_concurrent.c - several groups of one job that run the same collective at the same time
 * (F-COLL-CONCURRENT).
 *
 * Groups of p ranks, s apart, fill blocks of s x p ranks with s groups each: tensor groups have
 * s = 1, the data groups across them have s = p of the tensor groups. All groups run at the same
 * time, so flows that share an adapter get equal (max-min fair) shares, and the slowest group
 * stands for all. Not modelled: groups that start at different times, blocks that do not divide
 * into whole nodes (the fullest node counts). */
#include "model/collective/coll_parts.h"

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
    if (stride >= per_node || group.ranks_per_node == 1) stride = 1;
    if (group.nodes > 1 && together > 1) {
        double adapters =
            system->inter.adapters_per_node > 1 ? (double)system->inter.adapters_per_node : 1.0;
        double mine = dl_least(adapters, (double)group.ranks_per_node);
        group.flows_per_adapter = dl_most(1.0, request->flows_per_adapter) *
                                  dl_most(1.0, (double)together * mine / adapters);
    }
    group.group_size = 0, group.group_stride = stride, group.concurrent = together;
    *out = group;
    return DL_OK;
}
