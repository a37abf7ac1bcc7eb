/* dualpipev.c - DualPipeV: the first half of a DualPipe of 2 p stages, whose micro-batches return
 * through the second part of each stage: a V, with one copy of the parameters on p devices. Equal
 * parts take m (F + B) + (p - 1) (F&B + B - 3 W), of both parts and of one, and hold 2 p + 1 parts
 * of micro-batches. Sources: dualpipe; torch's ScheduleDualPipeV. F-PIPE-DUALPIPE */
#include <stddef.h>

#include "model/plan/pipeline_schedule.h"

static struct dl_stage_pass next(const struct dl_pipeline_order *o, int stage,
                                 const struct dl_stage_progress *done) {
    return dl_schedule_dualpipe_pass(2 * o->stages, o->micro_batches, stage, done->position);
}

static double held(double stage, double stages, double micro_batches, double parts) {
    (void)stage, (void)micro_batches;
    return (2 * stages + 1) / parts;
}

static double held_first(double stages, double micro_batches) {
    (void)micro_batches;
    return 2 * stages;
}

static const char *refuses(double stages, double micro_batches) {
    return micro_batches >= 2 * stages ? NULL
                                       : "needs at least two micro-batches for each stage: change "
                                         "--global-batch, --micro-batch or --pp";
}

const struct dl_schedule_row dl_schedule_dualpipev = {
    .summary = "DualPipe folded into a V: one copy of the parameters, two parts on each device",
    .formula = "F-PIPE-DUALPIPE",
    .source = "dualpipe",
    .torch_name = "DualPipeV",
    .least_parts = 2,
    .most_parts = 2,
    .placing = DL_PLACED_IN_V,
    .splits_backward = true,
    .pairs = true,
    .refuses = refuses,
    .next = next,
    .held = held,
    .held_first = held_first,
};
