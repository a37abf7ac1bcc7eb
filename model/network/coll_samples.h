/* coll_samples.h - measured samples of one library, operation and rank set, read between and beyond
 * their sizes.
 *
 * What is interpolated is measured / model, not the time itself: the model bends from latency to
 * bandwidth and jumps where the library changes its algorithm or protocol, and the ratio is flat
 * where the time is not.
 */
#ifndef DL_MODEL_NETWORK_COLL_SAMPLES_H
#define DL_MODEL_NETWORK_COLL_SAMPLES_H

#include "model/network/coll_internal.h"

struct dl_coll_reading {
    double ratio_log; /* log(measured / model) at the requested size */
    double sigma_log;
    bool extrapolated; /* size outside the samples */
    bool fitted;       /* from the pieces of the fit, beyond the samples */
};

/* The samples of one rank set, and what they are asked. */
struct dl_coll_samples {
    const struct dl_system *system;
    const struct dl_coll_measured *measured;
    const struct dl_collective_request *request;
    dl_library_time_fn *model;
};

/* F-COLL-MEASURED: the ratio at `bytes`, given the model's time at that size (`base`: of the
 * samples' own rank set; its algorithm and protocol are those whose ratio is requested). Between
 * samples of the same algorithm and protocol: a monotone cubic in log bytes; at a switch: from
 * the nearest sample of the same side on, the trend there, damped; where there is none: a line
 * between the neighbours. F-COLL-FITTED: beyond the samples, the pieces of their fit, where
 * there are any. */
enum dl_code dl_coll_samples_read(const struct dl_coll_samples *samples,
                                  const struct dl_coll_base *base, struct dl_coll_reading *out,
                                  struct dl_err *err);

/* The model at one sample's size for the samples' rank set; no error: a model that cannot tell is 1
 * s everywhere, so that the times themselves are interpolated. */
struct dl_coll_base dl_coll_samples_base(const struct dl_system *system,
                                         const struct dl_coll_measured *measured,
                                         dl_library_time_fn *model,
                                         const struct dl_collective_request *request, double bytes);

#endif
