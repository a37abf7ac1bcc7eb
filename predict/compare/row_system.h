/* row_system.h - the system file that a row of measurements names. */
#ifndef DL_PREDICT_COMPARE_ROW_SYSTEM_H
#define DL_PREDICT_COMPARE_ROW_SYSTEM_H

#include "model/catalog/data.h"

/* Values of a row that replace those of the system file. */
struct dl_row_machine {
    double power_limit_w;     /* of each device; NAN: not said */
    const char *nccl_version; /* "2.3.7"; NULL or "": not said */
    int64_t nccl_rings;       /* 0: not said */
};

/* Loads it. `said`: NULL where rows have none. DL_OK with *out NULL and
 * the reason in *why_out where there is no such file: the row is not predicted, and nothing is
 * guessed. An invalid file is an error. */
enum dl_code dl_row_system(const struct dl_data *data, const char *name,
                           const struct dl_row_machine *said, struct dl_arena *arena,
                           const struct dl_system **out, const char **why_out, struct dl_err *err);

#endif
