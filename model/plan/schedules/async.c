/* async.c - the order of 1F1B, and no end to wait for: a stage applies gradients to weights that
 * later micro-batches have used. */
#include "model/plan/pipeline_schedule.h"

static struct dl_stage_pass next(const struct dl_pipeline_order *o, int stage,
                                 const struct dl_stage_progress *done) {
    return dl_schedule_alternating(o, o->stages - 1 - stage, done);
}

const struct dl_schedule_row dl_schedule_async = {
    .summary = "as 1f1b, and no iteration waits for the end of the one before",
    .formula = "F-PIPE-ORDER",
    .source = "pipedream",
    .least_parts = 1,
    .most_parts = 1,
    .asynchronous = true,
    .usual = true,
    .next = next,
    .held = dl_schedule_held_in_turn,
};
