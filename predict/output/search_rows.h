/* search_rows.h - plans that a search found as rows of a table: what people see of them, and CSV,
 * which `search --merge` reads again. */
#ifndef DL_PREDICT_OUTPUT_SEARCH_ROWS_H
#define DL_PREDICT_OUTPUT_SEARCH_ROWS_H

#include "predict/output/search_print.h"

/* An empty table of plans. in_ms: times in ms; csv: numbers as they are. DL_ERR_SYSTEM: out of
 * memory. */
enum dl_code dl_search_rows_init(struct dl_table *table, struct dl_arena *arena, bool in_ms,
                                 bool csv, bool tokens, struct dl_err *err);
enum dl_code dl_search_rows_add(struct dl_table *table, const struct dl_search_report *report,
                                const struct dl_searched *row, struct dl_err *err);
/* For people: whole micro-batches, nothing where the batch is not split. */
void dl_search_rows_name_micro_batches(struct dl_table *table);

/* ZeRO stage of a plan, whether its strategy or --zero says it. */
int64_t dl_search_rows_zero(const struct dl_plan *plan);

#endif
