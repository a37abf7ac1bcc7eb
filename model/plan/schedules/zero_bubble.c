/* zero_bubble.c - ZB-H1: stage s begins as with 1F1B; backward passes compute the gradients of
 * inputs alone, which the stage before waits for, and those of the weights follow s micro-batches
 * later: at the end they fill the wait for earlier stages. Equal stages take m (F + B + W) +
 * (p - 1) (F + B - W), with B and W the parts of backward, where W <= F, B. A micro-batch whose
 * weights' gradients are to come holds its activations, so that each stage holds p of them: an
 * upper bound, of a GPT layer 32 of 34 s b h. Source: zero-bubble (section 2, table 2;
 * schedules.py of torch delays W by the rank). F-PIPE-ZERO-BUBBLE */
#include <math.h>

#include "model/plan/pipeline_schedule.h"

static struct dl_stage_pass next(const struct dl_pipeline_order *o, int stage,
                                 const struct dl_stage_progress *done) {
    const int all = o->micro_batches, backward = done->count[DL_PASS_BACKWARD],
              late = backward - done->count[DL_PASS_WEIGHTS];
    if (late > stage || backward == all) return (struct dl_stage_pass){DL_PASS_WEIGHTS, 0, false};
    return dl_schedule_alternating(o, o->stages - 1 - stage, done);
}

static double held(double stage, double stages, double micro_batches, double parts) {
    (void)stage, (void)parts;
    return fmin(stages, micro_batches);
}

/* From the last stage the gradients of the last micro-batch go back through all, which then have
 * those of the weights of s + 1 micro-batches before them. */
static double least_s(const struct dl_pipeline_order *o, double micro_batches) {
    const int last = o->stages - 1;
    const double late = fmin(last, micro_batches - 1);
    double end_s = micro_batches * (o->forward_s[last] + o->backward_s[last]) -
                   (late + 1) * o->weights_s[last] + last * dl_schedule_messages_s(o);
    for (int s = 0; s < last; s++) end_s += o->forward_s[s] + o->backward_s[s] - o->weights_s[s];
    return end_s + o->weights_s[0];
}

const struct dl_schedule_row dl_schedule_zero_bubble = {
    .summary = "ZB-H1: as 1f1b, gradients of weights fill the waits",
    .formula = "F-PIPE-ZERO-BUBBLE",
    .source = "zero-bubble",
    .least_parts = 1,
    .most_parts = 1,
    .splits_backward = true,
    .next = next,
    .held = held,
    .least_s = least_s,
};
