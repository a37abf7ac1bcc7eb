/* zbv.c - ZB-V: two parts on each stage, the second ones in reverse order, so that the first stage
 * has both ends of the network. Stage s of p runs 2 (p - s) - 1 forward passes of its first part
 * (f), s times F f, p - s times F I W, then f i w F I W until no forward pass is left, s times i I,
 * p - s times i w, and the gradients of weights that are left. With F = I = W every stage is busy
 * from its first pass to its last, and begins one pass after the stage before: m (F + I + W) +
 * (p - 1) F / 2 of equal stages, F of both parts. Fewer than 2 p - 1 micro-batches leave out the
 * passes of those that are missing. Sources: zero-bubble; torch's ScheduleZBVZeroBubble.
 * F-PIPE-ZBV */
#include <math.h>

#include "model/plan/pipeline_schedule.h"

static struct dl_stage_pass next(const struct dl_pipeline_order *o, int stage,
                                 const struct dl_stage_progress *done) {
    const int later = o->stages - stage, fill = 2 * o->stages - 1,
              all = o->micro_batches > fill ? o->micro_batches : fill;
    const struct dl_schedule_block blocks[] = {
        {2 * later - 1, "f"}, {stage, "Ff"},
        {later, "FIW"},       {all - o->stages - later + 1, "fiwFIW"},
        {later - 1, "iwFIW"}, {stage, "iI"},
        {later, "iw"},        {stage, "W"},
        {stage, "w"}};
    struct dl_stage_pass out = {.kind = DL_PASS_WEIGHTS};
    int position = done->position;
    dl_schedule_find(blocks, sizeof blocks / sizeof *blocks, &position, &out);
    return out;
}

/* Before its first backward pass of the second part: 2 p - s - 1 and s + 1 of the two parts. */
static double held(double stage, double stages, double micro_batches, double parts) {
    return (fmin(2 * stages - stage - 1, micro_batches) + fmin(stage + 1, micro_batches)) / parts;
}

static double held_first(double stages, double micro_batches) {
    return fmin(2 * stages - 1, micro_batches);
}

const struct dl_schedule_row dl_schedule_zbv = {
    .summary = "ZB-V: two parts on each device in a V, gradients of weights fill the waits",
    .formula = "F-PIPE-ZBV",
    .source = "zero-bubble",
    .torch_name = "ZBVZeroBubble",
    .least_parts = 2,
    .most_parts = 2,
    .placing = DL_PLACED_IN_V,
    .splits_backward = true,
    .p2p_behind = true,
    .next = next,
    .held = held,
    .held_first = held_first,
};
