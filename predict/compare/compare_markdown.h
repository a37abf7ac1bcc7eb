/* compare_markdown.h - a comparison for a README, a wiki or an issue. */
#ifndef DL_PREDICT_COMPARE_COMPARE_MARKDOWN_H
#define DL_PREDICT_COMPARE_COMPARE_MARKDOWN_H

#include "predict/compare/compare.h"

/* Every row, then a sentence with the errors of `all` (NULL: none). NULL when memory is exhausted.
 */
const char *dl_compare_markdown(const struct dl_comparison *comparison,
                                const struct dl_error_summary *all, struct dl_arena *arena);

#endif
