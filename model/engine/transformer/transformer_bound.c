/* transformer_bound.c - the cheapest way to sum and to gather the parameters of a stack, which the
 * bound takes. F-FW-IDEAL. See micro_batch_builder.h. */
#include <string.h>

#include "model/framework/gradient_sync.h"
#include "model/engine/transformer/micro_batch_builder.h"

static void scale_time(struct dl_collective_time *t, double by) {
    t->time_s *= by;
    t->latency_s *= by;
    t->bandwidth_s *= by;
}

enum dl_code dl_transformer_bound_reduce(const struct dl_transformer *tf,
                                         const struct dl_transformer_split *s,
                                         struct dl_transformer_group group, double bytes,
                                         struct dl_collective_time *out, struct dl_err *err) {
    const struct dl_plan plan = {.nodes = s->nodes,
                                 .devices_per_node = s->devices_per_node,
                                 .dp = group.ranks,
                                 .tp = group.stride,
                                 .library = tf->input.library};
    const struct dl_gradient_sync_request request = {.system = tf->system,
                                                     .workload = tf->workload,
                                                     .framework = tf->framework,
                                                     .plan = &plan,
                                                     .total_bytes = bytes,
                                                     .library = tf->library};
    struct dl_message m;
    memset(out, 0, sizeof *out);
    if (group.ranks <= 1) return DL_OK;
    DL_TRY(dl_gradient_sync_cheapest(&request, &m, err));
    const double times = m.bytes > 0 ? bytes / m.bytes : 0;
    *out = (struct dl_collective_time){.time_s = times * m.duration_s,
                                       .latency_s = times * m.latency_s,
                                       .bandwidth_s = times * m.bandwidth_s,
                                       .sigma_log = m.sigma_log,
                                       .algorithm = m.algorithm,
                                       .protocol = m.protocol,
                                       .formula = m.formula,
                                       .limit = m.limit,
                                       .origin = m.origin,
                                       .extrapolated = m.extrapolated};
    return DL_OK;
}

enum dl_code dl_transformer_bound_half(const struct dl_transformer *tf,
                                       const struct dl_transformer_split *s,
                                       struct dl_transformer_group group, enum dl_collective_op op,
                                       double bytes, double all_bytes,
                                       struct dl_collective_time *out, struct dl_err *err) {
    enum { HALVINGS = 12 };
    struct dl_collective_time sum;
    memset(out, 0, sizeof *out);
    if (group.ranks <= 1 || !(bytes > 0)) return DL_OK;
    double size = all_bytes;
    for (int i = 0; i < HALVINGS && size > 1; i++, size /= 2) {
        struct dl_collective_time t;
        DL_TRY(dl_transformer_collective(tf, s, group, op, size, &t, err));
        if (i == 0 || bytes / size * t.time_s < out->time_s) {
            *out = t;
            scale_time(out, bytes / size);
        }
    }
    DL_TRY(dl_transformer_bound_reduce(tf, s, group, all_bytes, &sum, err));
    scale_time(&sum, bytes / all_bytes / 2);
    if (sum.time_s < out->time_s) *out = sum;
    return DL_OK;
}
