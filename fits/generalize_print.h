/* generalize_print.h - `compare --generalize BY` and `compare --fit-constants`. */
#ifndef DL_FITS_GENERALIZE_PRINT_H
#define DL_FITS_GENERALIZE_PRINT_H

#include "fits/generalize.h"

struct dl_context;
struct dl_options;

/* Whether one of the options that are handled here was given. */
bool dl_generalize_wanted(const struct dl_options *options);
enum dl_code dl_generalize_run(struct dl_context *context, const struct dl_options *options,
                               const struct dl_data *data, const struct dl_csv *csvs, int count,
                               struct dl_err *err);

/* Fits the constants to all rows, prints them and with --write stores them. DL_ERR_NO where one
 * serves fewer than two sources or hangs on one source. */
enum dl_code dl_fit_constants_run(struct dl_context *context, const struct dl_options *options,
                                  const struct dl_data *data, const struct dl_generalized *g,
                                  struct dl_err *err);

struct dl_table;
/* Its table. */
void dl_fit_constants_table(const struct dl_generalized *g, struct dl_arena *arena,
                            struct dl_table *table);

#endif
