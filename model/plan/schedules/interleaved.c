/* interleaved.c - v parts on each stage: stage s begins with min(v m, 2 (p - 1 - s) + (v - 1) p)
 * forward passes, then goes on as 1F1B; groups of p micro-batches pass through part after part. */
#include <limits.h>
#include <math.h>

#include "model/plan/pipeline_schedule.h"

static int ahead_of(const struct dl_pipeline_order *o, int stage) {
    return 2 * (o->stages - 1 - stage) + (o->parts - 1) * o->stages;
}

static struct dl_stage_pass next(const struct dl_pipeline_order *o, int stage,
                                 const struct dl_stage_progress *done) {
    return dl_schedule_alternating(o, ahead_of(o, stage), done);
}

static double held(double stage, double stages, double micro_batches, double parts) {
    return fmin(micro_batches, ((parts - 1) * stages + 2 * (stages - stage) - 1) / parts);
}

/* On the first stage pass i backward ends before pass i + 1 + ahead forward begins. */
static double least_s(const struct dl_pipeline_order *o, double micro_batches) {
    const int all = (int)micro_batches * o->parts, last_part = o->parts - 1,
              ahead = ahead_of(o, 0) < all ? ahead_of(o, 0) : all;
    const double round_s = dl_schedule_round_trip_s(o);
    double end_s = 0;
    int backward = 0;
    for (int i = 0; i < all; i = backward + 1 + ahead) {
        const int laps = last_part - dl_schedule_grouped_part(o, i, false); /* before the trip */
        end_s += laps * (round_s + dl_schedule_messages_s(o)) + round_s;
        backward = i + (2 * laps - last_part) * o->stages;
    }
    return end_s + (all - 1 - backward) * o->backward_s[0] / o->parts;
}

const struct dl_schedule_row dl_schedule_interleaved = {
    .summary = "as 1f1b with several virtual stages on each device",
    .formula = "F-PIPE-ORDER",
    .source = "megatron-source",
    .torch_name = "Interleaved1F1B",
    .least_parts = 2,
    .most_parts = INT_MAX,
    .in_groups = true,
    .p2p_behind = true,
    .usual = true,
    .next = next,
    .held = held,
    .least_s = least_s,
};
