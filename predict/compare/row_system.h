/* row_system.h - the system file that a row of measurements names. */
#ifndef DL_PREDICT_COMPARE_ROW_SYSTEM_H
#define DL_PREDICT_COMPARE_ROW_SYSTEM_H

#include "model/cli/data.h"

/* Loads it; limit_w: power limit of its devices, NAN: that of the file. DL_OK with *out NULL and
 * the reason in *why_out where there is no such file: the row is not predicted, and nothing is
 * guessed. An invalid file is an error. */
enum dl_code dl_row_system(const struct dl_data *data, const char *name, double limit_w,
                           struct dl_arena *arena, const struct dl_system **out,
                           const char **why_out, struct dl_err *err);

#endif
