/* fw_local_steps.c - local SGD: each rank trains alone and parameters are averaged once in
 * local_step_count steps.
 *
 * F-FW-LOCAL-STEPS. Every H steps one all-reduce averages all parameters, after the step and hidden
 * by nothing; an iteration takes 1/H of it and of the division (read and write of every parameter).
 * The wait for the slowest rank is counted as in synchronous training, so that the gain is a lower
 * bound. Source: local-sgd.
 */
#include <math.h>
#include <stddef.h>

#include "model/framework/gradient_sync.h"

struct policy {
    double local_step_count; /* between two averagings of the parameters */
};
_Static_assert(sizeof(struct policy) <= DL_OWN_BYTES, "own constants fit");

static const struct dl_field fields[] = {
    DL_FIELD(struct policy, local_step_count, NUMBER, DL_RANGE(1, 1e6, DL_UNIT_COUNT),
             .required = true, .help = "local SGD: steps between two averagings of the parameters"),
    {.key = NULL},
};

static enum dl_code synchronize(const struct dl_gradient_sync_request *r,
                                struct dl_gradient_sync *out, struct dl_err *err) {
    const double steps = fmax(1, DL_OWN(struct policy, r->framework)->local_step_count);
    dl_gradient_sync_messages(r, 1, out);
    struct dl_message *all = &out->messages[0];
    all->count = r->gradient_count;
    DL_TRY(dl_gradient_sync_collective(r, DL_COLL_ALL_REDUCE, r->parameter_bytes, all, err));
    all->duration_s /= steps;
    all->latency_s /= steps;
    all->bandwidth_s /= steps;
    all->ready_s = r->backward_end_s;
    out->device_copy_s = dl_gradient_sync_device_stream_s(r, 2 * r->parameter_bytes) / steps;
    return DL_OK;
}

const struct dl_framework_behaviour dl_fw_local_steps = {
    .name = "local-steps",
    .lossy = true,
    .summary = "ranks train alone; parameters are averaged every few steps",
    .source = "local-sgd",
    .fields = fields,
    .synchronize = synchronize,
};
