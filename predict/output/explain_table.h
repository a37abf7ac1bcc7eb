/* explain_table.h - the terms of a prediction as a table for people, within 120 columns. */
#ifndef DL_PREDICT_OUTPUT_EXPLAIN_TABLE_H
#define DL_PREDICT_OUTPUT_EXPLAIN_TABLE_H

#include "model/core/columns.h"
#include "model/engine/predict.h"

/* A row of a table of terms: seconds, or bytes of memory; the other is NAN. */
struct dl_explained {
    struct dl_term term;
    double seconds, bytes;
};
/* Columns of CSV and JSON; people get dl_explain_table_text. */
extern const struct dl_list_column dl_explain_columns[];
enum dl_explain_column {
    DL_EXPLAIN_TERM,
    DL_EXPLAIN_GROUP,
    DL_EXPLAIN_FORMULA,
    DL_EXPLAIN_INPUTS,
    DL_EXPLAIN_START,
    DL_EXPLAIN_SECONDS,
    DL_EXPLAIN_BYTES,
    DL_EXPLAIN_SIGMA,
    DL_EXPLAIN_ORIGIN,
    DL_EXPLAIN_LIMIT,
    DL_EXPLAIN_COLUMNS
};
enum { DL_EXPLAIN_WIDTH = 120 };

/* Names are cut, inputs and origin share a last column that wraps. */
const char *dl_explain_table_text(const struct dl_table *terms);

/* The name of a term in at most 30 columns: its end says more than its middle
 * ("..downsample.0 backward"). */
const char *dl_explain_short_name(struct dl_arena *arena, const char *name);

#endif
