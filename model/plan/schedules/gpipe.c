/* gpipe.c - all forward passes, then all backward passes. */
#include <math.h>

#include "model/plan/pipeline_schedule.h"

static struct dl_stage_pass next(const struct dl_pipeline_order *o, int stage,
                                 const struct dl_stage_progress *done) {
    (void)stage;
    return dl_schedule_alternating(o, o->micro_batches * o->parts, done);
}

static double held(double stage, double stages, double micro_batches, double parts) {
    (void)stage, (void)stages, (void)parts;
    return micro_batches;
}

/* Two flow shops of equal jobs, the second from the last stage back. */
static double least_s(const struct dl_pipeline_order *o, double micro_batches) {
    double forward_s = dl_schedule_messages_s(o) / 2, backward_s = forward_s;
    for (int s = 0; s < o->stages; s++) {
        forward_s = fmax(forward_s, o->forward_s[s]);
        backward_s = fmax(backward_s, o->backward_s[s]);
    }
    return dl_schedule_round_trip_s(o) + (micro_batches - 1) * (forward_s + backward_s);
}

const struct dl_schedule_row dl_schedule_gpipe = {
    .summary = "all forward passes, then all backward passes",
    .formula = "F-PIPE-ORDER",
    .source = "praxis-source",
    .torch_name = "GPipe",
    .least_parts = 1,
    .most_parts = 1,
    .all_forward_first = true,
    .usual = true,
    .next = next,
    .held = held,
    .least_s = least_s,
};
