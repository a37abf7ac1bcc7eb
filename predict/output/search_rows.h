/* search_rows.h - plans that a search found as rows of a table: what people see of them, and CSV,
 * which `search --merge` reads again. */
#ifndef DL_PREDICT_OUTPUT_SEARCH_ROWS_H
#define DL_PREDICT_OUTPUT_SEARCH_ROWS_H

#include "predict/output/search_print.h"

/* Which columns the text shows besides plan, iteration, rate, memory and bottleneck. RUN: time of a
 * run; COST, ENERGY: of the samples; FRONT_ROWS: which rows of the front nothing beats in time,
 * cost and energy; with --long, LONG: ties and parts of the iteration, TOKENS: MFU, LONG_RUN:
 * energy and device-hours of the run. */
enum {
    DL_SEARCH_STRATEGY = 1,
    DL_SEARCH_NODES = 2,
    DL_SEARCH_RUN = 4,
    DL_SEARCH_RUN_COST = 8,
    DL_SEARCH_COST = 16,
    DL_SEARCH_ENERGY = 32,
    DL_SEARCH_FRONT_ROWS = 64,
    DL_SEARCH_LONG = 128,
    DL_SEARCH_TOKENS = 256,
    DL_SEARCH_LONG_RUN = 512
};
/* An empty table with the columns that the report's rows need, and those of `show`; report NULL:
 * for the keys alone. */
void dl_search_rows_init(struct dl_table *table, struct dl_arena *arena, unsigned show,
                         const struct dl_search_report *report);
void dl_search_rows_add(struct dl_table *table, const struct dl_search_report *report,
                        const struct dl_searched *row);
/* All rows, or of each split the best one, at most ten. */
void dl_search_rows_table(struct dl_table *table, struct dl_arena *arena,
                          const struct dl_search_report *report);
/* People read iterations of less than a second in ms. */
bool dl_search_is_short(const struct dl_search_report *report);

#endif
