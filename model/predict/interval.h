/* interval.h - how far a prediction may be off, from the errors of runs that were in no fit
 * (`make generalize` writes data/intervals.json), and what measured runs of one's own say about the
 * rest. F-INTERVAL, F-POSTERIOR
 *
 * log(measured / predicted) of a run is a sum of independent normal effects: of who measured
 * where (source), of a framework's release in a precision, of the device, of the network, of the
 * exposed communication's share (times that share), and the run's own. */
#ifndef DL_MODEL_PREDICT_INTERVAL_H
#define DL_MODEL_PREDICT_INTERVAL_H

#include "model/base/json.h"
#include "model/hardware/kernel.h"

/* A framework's release in a precision that was measured. */
struct dl_interval_framework {
    const char *framework, *release, *precision;
    double sigma_log; /* what the runs leave unknown of its effect */
};
struct dl_interval_device {
    const char *name;
    double sigma_log;
};

struct dl_interval_model {
    double source_sigma_log, framework_sigma_log, device_sigma_log, workload_sigma_log,
        communication_sigma_log, row_sigma_log;
    double anchored_sigma_log;  /* of all that is left when a run of the same job was measured */
    double kernels_sigma_log;   /* usual spread of kernels and collectives, which is in the above */
    double quantile_ratio;      /* ends of 80 % intervals / standard deviation */
    const char *constants_hash; /* of the constants whose errors these are */
    struct dl_interval_framework *frameworks;
    int framework_count;
    struct dl_interval_device *devices;
    int device_count;
};

extern const struct dl_schema dl_interval_schema;

/* What an interval depends on. */
struct dl_interval_case {
    const char *framework, *release, *device;
    enum dl_precision precision;
    double exposed_frac;    /* exposed communication / iteration */
    double model_sigma_log; /* of kernels and collectives; NAN: not known */
    bool anchored;          /* a run of the same job was measured */
};

/* F-INTERVAL: standard deviation of log(measured / predicted). More where the framework's release
 * in this precision or the device was never measured; kernels and collectives add what they are
 * less certain than usual. */
double dl_interval_sigma_log(const struct dl_interval_model *model,
                             const struct dl_interval_case *c);

/* Its part that alternatives on one machine have in common: of who measures, of the device, of the
 * network. */
double dl_interval_shared_sigma_log(const struct dl_interval_model *model,
                                    const struct dl_interval_case *c);

/* One measured run of the user's system and framework. */
struct dl_measured_run {
    double log_ratio;    /* log(measured / predicted iteration) */
    double exposed_frac; /* of the prediction */
    const char *workload;
    enum dl_precision precision;
};

/* What measured runs say: normal distributions of the effects of this system and framework. */
struct dl_posterior;

/* F-POSTERIOR. NULL with DL_OK where there are no runs. In the arena. */
enum dl_code dl_posterior_make(const struct dl_interval_model *model,
                               const struct dl_measured_run *runs, size_t count,
                               struct dl_arena *arena, const struct dl_posterior **out,
                               struct dl_err *err);

struct dl_posterior_shift {
    double compute_log, communication_log; /* logarithms of factors on the prediction's parts */
    double sigma_log;                      /* of log(measured / corrected) */
};
/* For a run with that share of exposed communication. */
struct dl_posterior_shift dl_posterior_shift(const struct dl_posterior *posterior,
                                             const char *workload, enum dl_precision precision,
                                             double exposed_frac);
/* Runs that it is made from. */
size_t dl_posterior_runs(const struct dl_posterior *posterior);

#endif
