/* compare_counts.h - what of a comparison is said once for many rows; and the rows of one part. */
#ifndef DL_PREDICT_COMPARE_COMPARE_COUNTS_H
#define DL_PREDICT_COMPARE_COMPARE_COUNTS_H

#include "predict/compare/compare.h"

/* How many rows have each reason for not being predicted, and each remark on the prediction, under
 * a heading; "" when there are none; NULL: out of memory. */
const char *dl_compare_reasons(const struct dl_comparison *comparison);
const char *dl_compare_remarks(const struct dl_comparison *comparison);

/* The lines of a CSV text of all rows that belong to this part, behind their numbers from 1 in a
 * first column `shard_row`. NULL: out of memory. */
const char *dl_compare_part_csv(const struct dl_comparison *comparison, const char *csv);

#endif
