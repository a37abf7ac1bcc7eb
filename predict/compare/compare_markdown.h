/* compare_markdown.h - a comparison for a README, a wiki or an issue. */
#ifndef DL_PREDICT_COMPARE_COMPARE_MARKDOWN_H
#define DL_PREDICT_COMPARE_COMPARE_MARKDOWN_H

#include "predict/compare/compare.h"

extern const char dl_compare_markdown_head[];
/* A line of the table, and the sentence below it, "" without `all` (a summary over all rows). */
const char *dl_compare_markdown_row(const struct dl_compared *row, struct dl_arena *arena);
const char *dl_compare_markdown_end(const struct dl_error_summary *all, struct dl_arena *arena);

#endif
