/* compare_counts.h - what of a comparison is said once for many rows. */
#ifndef DL_PREDICT_COMPARE_COMPARE_COUNTS_H
#define DL_PREDICT_COMPARE_COMPARE_COUNTS_H

#include "predict/compare/compare.h"

/* How many rows have each reason for not being predicted, and each remark on the prediction, under
 * a heading; "" when there are none. */
const char *dl_compare_reasons(const struct dl_comparison *comparison);
const char *dl_compare_remarks(const struct dl_comparison *comparison);

#endif
