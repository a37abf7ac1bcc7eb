/* explain_table.h - the terms of a prediction as a table for people, within 120 columns. */
#ifndef DL_PREDICT_OUTPUT_EXPLAIN_TABLE_H
#define DL_PREDICT_OUTPUT_EXPLAIN_TABLE_H

#include "model/core/table.h"

/* Columns of a table of terms, as CSV and JSON have them. */
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

#endif
