/* cal_profile.h - makes a system profile from samples: rates, kernel-time models, links,
 * collectives, storage. Pure.
 *
 * The cores that the process may use are one device, as CPU builds of the frameworks use them; with
 * --cores N, a device is N cores. One node cannot measure a network: links.inter is then TCP over
 * loopback, marked "assumed". */
#ifndef DL_CALIBRATE_PROFILE_CAL_PROFILE_H
#define DL_CALIBRATE_PROFILE_CAL_PROFILE_H

#include "calibrate/run/cal_host.h"
#include "calibrate/run/cal_journal.h"

struct dl_cal_run { /* facts missing from the journal */
    struct dl_cal_host host;
    const char *finished;       /* date and time */
    double load_after, seconds; /* NAN: unknown */
    bool resumed;
};

/* DL_ERR_BACKEND when memory bandwidth or a GEMM was not measured: every profile needs both. */
enum dl_code dl_cal_profile(const struct dl_cal_journal *journal, const struct dl_cal_run *run,
                            struct dl_arena *arena, struct dl_system *out, struct dl_err *err);

/* The text of the profile file, validated by loading it again. */
enum dl_code dl_cal_profile_text(const struct dl_system *profile, const char *name,
                                 struct dl_arena *arena, char **text, struct dl_err *err);

/* Work of a sample: flop of a GEMM or convolution, else bytes moved. */
double dl_cal_work(const struct dl_raw_sample *sample);

#endif
