/* search_rows.h - plans that a search found as rows of a table: what people see of them, and CSV,
 * which `search --merge` reads again. */
#ifndef DL_PREDICT_OUTPUT_SEARCH_ROWS_H
#define DL_PREDICT_OUTPUT_SEARCH_ROWS_H

#include "predict/output/search_print.h"

/* What the text shows besides: tokens/s and MFU; time, cost, energy and device-hours of a run;
 * which rows of the front nothing beats in time, cost and energy; energy, cost of the samples. */
enum {
    DL_SEARCH_TOKENS = 1,
    DL_SEARCH_RUN = 2,
    DL_SEARCH_FRONT_ROWS = 4,
    DL_SEARCH_ENERGY = 8,
    DL_SEARCH_COST = 16
};
/* An empty table of plans. in_ms: times in ms; report: of the rows, for DL_SEARCH_ENERGY and
 * DL_SEARCH_COST (otherwise NULL). */
void dl_search_rows_init(struct dl_table *table, struct dl_arena *arena, bool in_ms, unsigned show,
                         const struct dl_search_report *report);
void dl_search_rows_add(struct dl_table *table, const struct dl_search_report *report,
                        const struct dl_searched *row);

#endif
