/* pipeline_schedule.c - the rows, and what several of them share. */
#include "model/plan/pipeline_schedule.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

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

enum dl_code dl_schedule_check(enum dl_schedule schedule, double given_parts, double stages,
                               double micro_batches, struct dl_err *err) {
    const struct dl_schedule_row *row = dl_schedules[schedule];
    if (row->least_parts == row->most_parts && row->most_parts > 1 && given_parts > 0 &&
        given_parts != row->most_parts)
        return dl_fail(err, DL_ERR_USAGE,
                       "--virtual-stages %.0f: --schedule %s has %d parts on each device",
                       given_parts, dl_schedule_names[schedule], row->most_parts);
    const char *why = row->refuses != NULL ? row->refuses(stages, micro_batches) : NULL;
    if (why == NULL) return DL_OK;
    return dl_fail(err, DL_ERR_USAGE, "--schedule %s %s (%.0f stages, %.0f micro-batches)",
                   dl_schedule_names[schedule], why, stages, micro_batches);
}

int dl_placing_chains(enum dl_placing placing) { return placing == DL_PLACED_BOTH_WAYS ? 2 : 1; }

/* Odd laps of the stages go back. */
static int turned(enum dl_placing placing, int stages, int lap, int at) {
    return placing != DL_PLACED_IN_TURN && lap % 2 == 1 ? stages - 1 - at : at;
}

int dl_placing_place(enum dl_placing placing, int stages, int stage, int part) {
    return part * stages + turned(placing, stages, part, stage);
}

int dl_placing_stage(enum dl_placing placing, int stages, int place) {
    return turned(placing, stages, place / stages, place % stages);
}

bool dl_placing_begins(enum dl_placing placing, int stages, int place) {
    return place == 0 || (placing == DL_PLACED_BOTH_WAYS && place % stages == 0);
}

bool dl_placing_ends(enum dl_placing placing, int stages, int parts, int place) {
    return place == stages * parts - 1 || dl_placing_begins(placing, stages, place + 1);
}

static struct dl_stage_pass pass_of(const char *letter) {
    struct dl_stage_pass out = {.part = *letter < 'a', .with_next = letter[1] == '&'};
    out.kind = strchr("fF", *letter) != NULL   ? DL_PASS_FORWARD
               : strchr("iI", *letter) != NULL ? DL_PASS_BACKWARD
                                               : DL_PASS_WEIGHTS;
    return out;
}

bool dl_schedule_find(const struct dl_schedule_block *blocks, int count, int *position,
                      struct dl_stage_pass *out) {
    for (int i = 0; i < count; i++) {
        const char *at = blocks[i].passes;
        int passes = 0;
        for (const char *c = at; *c != 0; c++) passes += *c != '&';
        if (*position >= blocks[i].times * passes) {
            *position -= blocks[i].times * passes;
            continue;
        }
        for (int skip = *position % passes; skip > 0; skip--) at += at[1] == '&' ? 2 : 1;
        *out = pass_of(at);
        return true;
    }
    return false;
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
        return (struct dl_stage_pass){DL_PASS_FORWARD, dl_schedule_grouped_part(o, forward, false),
                                      false};
    return (struct dl_stage_pass){DL_PASS_BACKWARD, dl_schedule_grouped_part(o, backward, true),
                                  false};
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
