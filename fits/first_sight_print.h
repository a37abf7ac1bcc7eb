/* first_sight_print.h - errors and intervals of first sights by kind of run. */
#ifndef DL_FITS_FIRST_SIGHT_PRINT_H
#define DL_FITS_FIRST_SIGHT_PRINT_H

#include "fits/strangers.h"
#include "model/core/table.h"

/* A row for all first sights and for each part of their kinds; all but `rows` are averages over
 * sources. Left out: intervals of this version fitted without the source (dl_interval_fit). */
void dl_first_sight_table(const struct dl_strangers *strangers, struct dl_arena *arena,
                          struct dl_table *out);

/* Each first sight with the ends of this version's interval, left out: what the averages come from.
 */
void dl_first_sight_rows_table(const struct dl_strangers *strangers, struct dl_arena *arena,
                               struct dl_table *out);

#endif
