/* explain_interval.h - what makes the interval of a prediction wide, and what a measured run would
 * leave of it. */
#ifndef DL_PREDICT_OUTPUT_EXPLAIN_INTERVAL_H
#define DL_PREDICT_OUTPUT_EXPLAIN_INTERVAL_H

#include "predict/output/rows.h"

/* Lines on the largest parts of the interval, or "" where nothing is known of errors. */
const char *dl_explain_interval_text(const struct dl_prediction_row *row, struct dl_arena *arena);
/* The member "interval_parts" of the open object. */
void dl_explain_interval_json(const struct dl_prediction_row *row, struct dl_json_writer *writer);

#endif
