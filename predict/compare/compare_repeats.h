/* compare_repeats.h - runs that were repeated count once, with the median of what was measured. */
#ifndef DL_PREDICT_COMPARE_COMPARE_REPEATS_H
#define DL_PREDICT_COMPARE_COMPARE_REPEATS_H

#include "model/core/csv.h"

/* In rows that were disturbed (column "disturbed": yes) the value becomes that of the column
 * quartile_s, the lower quartile of the run's steps, which other programs made longer now and then;
 * the others, and tables without these columns, stay as they are. */
void dl_compare_take_quartiles(const struct dl_csv *csv, struct dl_arena *arena,
                               struct dl_csv *out);

/* Rows of runs that differ in id, value and notes alone become the first of them, its id without
 * "-rN"; other tables stay as they are. Refers to the old one's cells. */
enum dl_code dl_compare_join_repeats(const struct dl_csv *csv, struct dl_arena *arena,
                                     struct dl_csv *out, struct dl_err *err);

#endif
