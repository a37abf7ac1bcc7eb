/* strangers.h - runs as they were first compared (data/first_sight), with what intervals depend on
 * as it is predicted now. F-STRANGER */
#ifndef DL_FITS_STRANGERS_H
#define DL_FITS_STRANGERS_H

#include "fits/fit_rows.h"
#include "predict/compare/first_sight.h"

struct dl_strangers {
    uint64_t hash;                         /* of the record */
    struct dl_fit_rows rows;               /* of the tables that the record names */
    struct dl_fit_prediction *predictions; /* of each row, now */
    /* of each row: as it was recorded; NULL: not recorded, or one of the two predicted nothing */
    const struct dl_first_sight_row **seen;
};

/* Reads and predicts the tables of the record below the data directories. */
enum dl_code dl_strangers_read(const struct dl_data *data, struct dl_arena *arena,
                               struct dl_strangers *out, struct dl_err *err);
/* log(measured / predicted time) when it was first compared. */
double dl_stranger_error_log(const struct dl_first_sight_row *row);
/* Whether a run of data/runs is recorded as a first sight, where it counts. */
bool dl_stranger_recorded(const struct dl_strangers *strangers, const struct dl_fit_row *row);

#endif
