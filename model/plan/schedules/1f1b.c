/* 1f1b.c - stage s of p begins with min(m, p - 1 - s) forward passes, then one forward and one
 * backward pass alternate, then the backward passes that are left. */
#include <math.h>

#include "model/plan/pipeline_schedule.h"

static struct dl_stage_pass next(const struct dl_pipeline_order *o, int stage,
                                 const struct dl_stage_progress *done) {
    return dl_schedule_alternating(o, o->stages - 1 - stage, done);
}

/* A stage that is `held` stages from the end holds so many micro-batches; of those that follow each
 * waits for the round trip of one of these. */
static double least_s(const struct dl_pipeline_order *o, double micro_batches) {
    double through_s = 0, least_s = 0, round_s = dl_schedule_round_trip_s(o);
    for (int s = 0; s < o->stages; s++) {
        const double count = o->stages - s, rounds = floor((micro_batches - 1) / count),
                     rest = micro_batches - 1 - rounds * count,
                     step_s = o->forward_s[s] + o->backward_s[s] + dl_schedule_messages_s(o);
        least_s = fmax(least_s, through_s + (rounds + 1) * round_s + rest * o->backward_s[s]);
        through_s += step_s;
        round_s -= step_s;
    }
    return least_s;
}

const struct dl_schedule_row dl_schedule_1f1b = {
    .summary = "one forward and one backward pass alternate",
    .formula = "F-PIPE-ORDER",
    .source = "megatron-source",
    .torch_name = "1F1B",
    .least_parts = 1,
    .most_parts = 1,
    .usual = true,
    .next = next,
    .held = dl_schedule_held_in_turn,
    .least_s = least_s,
};
