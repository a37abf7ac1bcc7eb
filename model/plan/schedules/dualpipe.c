/* dualpipe.c - DualPipe: micro-batches enter at both ends of the pipeline, so that each device has
 * two parts and the parameters of both. A forward pass and a backward pass of the other direction
 * run as one where both are there; in the second half of the end, backward passes compute the
 * gradients of inputs alone. Of p devices stage s and p - 1 - s do the same with their directions
 * exchanged. Equal stages take m (F + B) + (p/2 - 1) (F&B + B - 3 W), B with W in it, where F = B -
 * W = W, and hold p + 1 micro-batches. Sources: dualpipe (README; the eight steps of its step()).
 * F-PIPE-DUALPIPE */
#include <math.h>
#include <stddef.h>

#include "model/plan/pipeline_schedule.h"

/* After all blocks: h + 1 weights' gradients wait, those of the two directions in turn, the last
 * one of direction 0. Then i follows each of `after`, and the rest comes at the end. */
static struct dl_stage_pass tail(int position, int half, int after) {
    const bool turns = position < 2 * after;
    const int nth = turns ? position / 2 : position - after;
    if (turns && position % 2 == 1) return (struct dl_stage_pass){DL_PASS_BACKWARD, 0, false};
    return (struct dl_stage_pass){DL_PASS_WEIGHTS, nth <= half ? (half - nth) % 2 : 0, false};
}

struct dl_stage_pass dl_schedule_dualpipe_pass(int stages, int each, int stage, int position) {
    const int last = stages - 1;
    const bool second = stage > last - stage,
               middle = stage == last / 2 || last - stage == last / 2;
    const int half = second ? last - stage : stage, inner = stages / 2 - half - 1,
              main_steps = each - stages + half + 1, whole = (half + 1) / 2;
    const struct dl_schedule_block blocks[] = {
        {2 * inner, "f"},
        {half + 1, "fF"},
        {inner, "IWF"},
        {middle, "fI&WF&i&w"}, /* its first pair does not run as one */
        {main_steps - middle, "f&I&WF&i&w"},
        {inner, "I&WF&i&w"},
        {whole, "I&Wi&w"},
        {1, half % 2 == 0 ? "I&Wi" : "Ii"},
        {half - whole, "Ii"}};
    struct dl_stage_pass out;
    if (!dl_schedule_find(blocks, sizeof blocks / sizeof *blocks, &position, &out))
        out = tail(position, half, inner);
    if (second) out.part = 1 - out.part;
    return out;
}

static struct dl_stage_pass next(const struct dl_pipeline_order *o, int stage,
                                 const struct dl_stage_progress *done) {
    return dl_schedule_dualpipe_pass(o->stages, o->micro_batches / 2, stage, done->position);
}

static double held(double stage, double stages, double micro_batches, double parts) {
    (void)stage, (void)micro_batches, (void)parts;
    return stages + 1;
}

static double held_first(double stages, double micro_batches) {
    (void)micro_batches;
    return stages;
}

static const char *refuses(double stages, double micro_batches) {
    if (fmod(stages, 2) != 0) return "needs an even number of stages: change --pp";
    if (fmod(micro_batches, 2) != 0 || micro_batches < 2 * stages)
        return "needs an even number of micro-batches, at least two for each stage: change "
               "--global-batch or --micro-batch";
    return NULL;
}

const struct dl_schedule_row dl_schedule_dualpipe = {
    .summary = "DualPipe: micro-batches from both ends, each device with two stages' parameters",
    .formula = "F-PIPE-DUALPIPE",
    .source = "dualpipe",
    .least_parts = 2,
    .most_parts = 2,
    .placing = DL_PLACED_BOTH_WAYS,
    .splits_backward = true,
    .pairs = true,
    .refuses = refuses,
    .next = next,
    .held = held,
    .held_first = held_first,
};
