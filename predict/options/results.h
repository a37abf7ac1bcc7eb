/* results.h - the columns of each command's results in JSON and CSV, for `schema` and the typed
 * rows of Python. */
#ifndef DL_PREDICT_OPTIONS_RESULTS_H
#define DL_PREDICT_OPTIONS_RESULTS_H

#include "model/core/columns.h"

struct dl_result {
    const char *name;  /* of the document: "match" in "dlmodel-match" */
    const char *array; /* member that holds the rows */
    const struct dl_list_column *columns;
    int count;
};
extern const struct dl_result dl_prediction_result, dl_match_result, dl_advice_result,
    dl_campaign_result, dl_comparison_result;

/* A column, with what it means: key (a dot: member of a nested object), type and SI unit. False
 * beyond the last. */
struct dl_row_field {
    const char *key, *type, *unit, *help;
};
bool dl_result_field(const struct dl_result *result, int index, struct dl_row_field *out);

#endif
