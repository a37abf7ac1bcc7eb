/* search_sweep.h - many searches, one for each row of a table; parts of them for the jobs of an
 * array. */
#ifndef DL_PREDICT_OUTPUT_SEARCH_SWEEP_H
#define DL_PREDICT_OUTPUT_SEARCH_SWEEP_H

#include "model/catalog/command.h"

/* "I/N" with 0 <= I < N. DL_ERR_USAGE. text NULL: all, 0 of 1. */
enum dl_code dl_part_read(const char *text, int64_t *index, int64_t *count, struct dl_err *err);

/* Many searches, one for each row of the table `path`, whose columns are options of `search`, with
 * underscores; `options`, but for those of output, hold for all. Prints CSV: `row`, the row's cells
 * as sweep_NAME, why nothing was found, and the columns of search --csv. Rows i (from 0) with
 * i mod N = I of --shard I/N: `dlmodel merge` joins the parts. */
enum dl_code dl_search_sweep(struct dl_context *context, const struct dl_options *options,
                             const struct dl_command *search, const char *path, struct dl_err *err);

#endif
