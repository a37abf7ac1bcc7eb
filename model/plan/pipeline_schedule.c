/* pipeline_schedule.c - the rows, and what several of them share. */
#include "model/plan/pipeline_schedule.h"

#include <math.h>
#include <stddef.h>

#define NAME(index, row, name) name,
const char *const dl_schedule_names[] = {DL_SCHEDULE_ROWS(NAME) NULL};
#undef NAME
#define DECLARE(index, row, name) extern const struct dl_schedule_row dl_schedule_##row;
DL_SCHEDULE_ROWS(DECLARE)
#undef DECLARE
#define ADDRESS(index, row, name) &dl_schedule_##row,
const struct dl_schedule_row *const dl_schedules[] = {DL_SCHEDULE_ROWS(ADDRESS) NULL};
#undef ADDRESS

double dl_schedule_parts(enum dl_schedule schedule, double given) {
    const struct dl_schedule_row *row = dl_schedules[schedule];
    return row->most_parts > 1 && given > 0 ? given : row->least_parts;
}

bool dl_schedule_waits(enum dl_schedule schedule) {
    return !dl_schedules[schedule]->asynchronous && !dl_schedules[schedule]->splits_backward;
}

int dl_schedule_grouped_part(const struct dl_pipeline_order *o, int i, bool backward) {
    const int part = i % (o->stages * o->parts) / o->stages;
    return backward ? o->parts - 1 - part : part;
}

struct dl_stage_pass dl_schedule_alternating(const struct dl_pipeline_order *o, int first,
                                             const struct dl_stage_progress *done) {
    const int all = o->micro_batches * o->parts, forward = done->count[DL_PASS_FORWARD],
              backward = done->count[DL_PASS_BACKWARD];
    if (forward < all && forward - first <= backward)
        return (struct dl_stage_pass){DL_PASS_FORWARD, dl_schedule_grouped_part(o, forward, false)};
    return (struct dl_stage_pass){DL_PASS_BACKWARD, dl_schedule_grouped_part(o, backward, true)};
}

double dl_schedule_held_in_turn(double stage, double stages, double micro_batches, double parts) {
    (void)parts;
    return fmin(stages - stage, micro_batches);
}

double dl_schedule_messages_s(const struct dl_pipeline_order *o) {
    return o->stages > 1 ? 2 * o->message_s : 0;
}

double dl_schedule_round_trip_s(const struct dl_pipeline_order *o) {
    double sum_s = (o->stages - 1) * dl_schedule_messages_s(o);
    for (int s = 0; s < o->stages; s++) sum_s += (o->forward_s[s] + o->backward_s[s]) / o->parts;
    return sum_s;
}
