/* gains.h - what 10 % more of each resource saves: the first thing to know about a bottleneck. */
#ifndef DL_PREDICT_OUTPUT_GAINS_H
#define DL_PREDICT_OUTPUT_GAINS_H

#include "model/search/limits.h"
#include "predict/output/rows.h"

struct dl_gains {
    struct dl_saving list[DL_MAX_LIMITS]; /* the most effective first */
    int count;
};
/* Of a row on nodes of one kind; none of others. */
enum dl_code dl_gains_find(const struct dl_prediction_row *row, struct dl_cost_memo *memo,
                           struct dl_arena *arena, struct dl_gains *out, struct dl_err *err);
/* "10 % more of a resource saves: peak 6.8 %, ...\n", and where the most effective one is not that
 * of the bottleneck, a sentence that says so. "" without gains. */
const char *dl_gains_text(const struct dl_prediction_row *row, const struct dl_gains *gains,
                          struct dl_arena *arena);
/* A member "gains" of the open object. */
void dl_gains_json(struct dl_json_writer *w, const struct dl_gains *gains);

#endif
