/* interval.h - how far a prediction may be off, from the errors of runs that were in no fit
 * (`make generalize` writes data/intervals.json), and what measured runs of one's own say about the
 * rest. F-INTERVAL, F-POSTERIOR
 *
 * The ends of an interval have widths of their own (F-INTERVAL). What runs say of others follows
 * from a model of their errors (F-POSTERIOR): log(measured / predicted) of a run is a sum of
 * independent normal effects: of who measured where (source), of the framework, of its release in
 * a precision, of the device's kernel-time model, of the network, of the job (the network in one
 * release, precision and batch per device, on any number of devices), of exposed communication and
 * of overhead (times their shares of the iteration), and the run's own, whose spread grows with
 * these shares, with arithmetic below 32 bit and with the spread of kernels and collectives. */
#ifndef DL_MODEL_ENGINE_INTERVAL_H
#define DL_MODEL_ENGINE_INTERVAL_H

#include "model/core/json.h"
#include "model/machine/kernel.h"

/* 90 % quantile of the normal distribution: end of an 80 % interval / standard deviation */
#define DL_NORMAL_80 1.2815515655446004

/* What was measured, with what the runs leave unknown of its effect. */
struct dl_interval_release {
    const char *framework, *release, *precision;
    double sigma_log;
};
struct dl_interval_framework {
    const char *name;
    double sigma_log;
};
/* Devices of one architecture that share a kernel-time model. */
struct dl_interval_device {
    const char *kernels, *architecture;
    double sigma_log;
};
/* Such devices in one precision: how many sources measured them. */
struct dl_interval_arithmetic {
    const char *kernels, *architecture, *precision;
    int64_t source_count;
};

/* A machine and a framework that were measured together. */
struct dl_interval_pair {
    const char *system, *framework;
};

/* The logarithm of an end of an 80 % interval is the root of the sum of squares of widths times
 * what a run has of them. */
enum dl_interval_width {
    DL_WIDTH_ALL,           /* 1 */
    DL_WIDTH_FRAMEWORK,     /* 1 where the framework was never measured */
    DL_WIDTH_RELEASE,       /* 1 where its release in this precision was never measured */
    DL_WIDTH_DEVICE,        /* dl_interval_device_covariate */
    DL_WIDTH_COMMUNICATION, /* exposed communication / iteration */
    DL_WIDTH_OVERHEAD,      /* waits_frac */
    DL_WIDTH_MIXED,         /* 1 where a framework chooses what runs in fp16 */
    DL_WIDTH_KERNELS,       /* spread of kernels and collectives */
    DL_WIDTH_NETWORK,       /* 1 where the network was never measured */
    DL_WIDTH_ASSUMED,       /* 1 where nobody said which release ran */
    DL_WIDTH_STRANGER,      /* F-STRANGER: 1 where nobody measured the framework on the machine */
    DL_WIDTH_SETUP,         /* the same on several devices: transport, topology, input, host */
    DL_WIDTH_STRANGER_COMMUNICATION, /* exposed communication / iteration of a stranger */
    DL_WIDTH_STRANGER_OVERHEAD,      /* waits_frac of a stranger */
    DL_WIDTHS
};
struct dl_interval_widths {
    double half_log[DL_WIDTHS];
};

struct dl_interval_model {
    double source_sigma_log, framework_sigma_log, release_sigma_log, device_sigma_log,
        workload_sigma_log, job_sigma_log, communication_sigma_log, overhead_sigma_log;
    /* a run's own: of all, of communication, of overhead, of arithmetic below 32 bit */
    double row_sigma_log, row_communication_sigma_log, row_overhead_sigma_log, row_narrow_sigma_log;
    double row_kernels_ratio; /* of a run's own to that of its kernels and collectives */
    /* of an alternative's error around the mean error of its job: of plans, of frameworks (F-TIE);
     * 0: not known */
    double plans_sigma_log, frameworks_sigma_log;
    struct dl_interval_widths widths;          /* of the slow end */
    struct dl_interval_widths fast_widths;     /* of the fast end */
    struct dl_interval_widths anchored_widths; /* of both where a run of the job was measured */
    /* spread of what all runs of a system share (its own effect, communication, overhead) that
     * measured runs may move / its spread over all sources, whose tails would let one run move the
     * others too far */
    double update_ratio;
    const char *constants_hash;   /* of the constants whose errors these are */
    const char *first_sight_hash; /* of the record of first sights */
    struct dl_interval_framework *frameworks;
    int framework_count;
    struct dl_interval_release *releases;
    int release_count;
    struct dl_interval_device *devices;
    int device_count;
    struct dl_interval_arithmetic *arithmetics;
    int arithmetic_count;
    struct dl_interval_pair *pairs;
    int pair_count;
    double *network_parameters; /* trainable ones of each network that was measured */
    int network_count;
    const char **layer_kinds; /* dl_workload_layers of those that have one */
    int layer_kind_count;
};

extern const struct dl_schema dl_interval_schema;

/* What an interval depends on. */
struct dl_interval_case {
    const char *framework, *release, *kernels, *architecture, *system;
    int64_t devices; /* of the run */
    enum dl_precision precision;
    double exposed_frac;             /* exposed communication / iteration */
    double overhead_frac;            /* host, bubble and waits / iteration */
    double waits_frac;               /* dl_prediction_waits_s() / iteration; F-PACED */
    double model_sigma_log;          /* of kernels and collectives; NAN: not known */
    double batch_per_device_samples; /* of an iteration; 0: not known */
    double parameters;               /* trainable ones of the network; 0: not known */
    const char *layers;              /* dl_workload_layers of the network; NULL: of no kind */
    bool release_assumed;            /* nobody said which release ran */
    bool anchored;                   /* a run of the same job was measured */
};

/* What a run's own spread grows with; weights of the rows' parts in the model. */
enum dl_interval_part {
    DL_INTERVAL_COMMUNICATION,
    DL_INTERVAL_OVERHEAD,
    DL_INTERVAL_NARROW,
    DL_INTERVAL_KERNELS,
    DL_INTERVAL_PARTS
};
void dl_interval_weights(const struct dl_interval_case *c, double weights[DL_INTERVAL_PARTS]);

/* F-POSTERIOR: standard deviation of log(measured / predicted). More where the framework's release
 * in this precision or the device was never measured. Anchored: the run's own and what its
 * communication and overhead add. */
double dl_interval_sigma_log(const struct dl_interval_model *model,
                             const struct dl_interval_case *c);
/* What an interval knows of others' runs. */
struct dl_interval_known {
    bool framework, release, network; /* were measured */
    bool pair;                        /* the framework on the machine was */
    int64_t device_sources;           /* that measured the device in this precision */
};
/* F-SAME-NETWORK: whether networks of x and y trainable parameters are one network, whatever
 * tables and files call it: within 0.5 %, so that padded vocabularies and longer tables of
 * positions do not count. false where one is not known (0). */
bool dl_interval_same_network(double x, double y);
/* F-SOURCES: how much of the width of a device remains when `sources` measured it in a precision:
 * (1 + sources)^-1/2, 1 where nobody did. */
double dl_interval_device_covariate(int64_t sources);
/* Which widths concern a run, times how much. */
void dl_interval_covariates(const struct dl_interval_case *c, const struct dl_interval_known *known,
                            double covariate[DL_WIDTHS]);
enum dl_interval_end { DL_SLOW_END, DL_FAST_END };
/* F-INTERVAL: distance of an end of the 80 % interval from the prediction, log(high / predicted) or
 * log(predicted / low) of the time. `parts` (NULL: not wanted): what each width adds to its square.
 */
double dl_interval_end_log(const struct dl_interval_model *model, const struct dl_interval_case *c,
                           enum dl_interval_end end, double parts[DL_WIDTHS]);

/* Whether runs of a device with these kernel-time models and architecture were measured. */
bool dl_interval_measured_device(const struct dl_interval_model *model, const char *kernels,
                                 const char *architecture);

/* F-TIE: spread of a framework's error around the mean error of the frameworks that run a job. Each
 * communicates in its own way, so that exposed communication adds what runs of one machine differ
 * by. 0: not known. */
double dl_interval_frameworks_sigma_log(const struct dl_interval_model *model,
                                        const struct dl_interval_case *c);

/* F-TIE: half of the 80 % interval of an alternative around the mean of its job: by the spread of
 * alternatives, or, where that is not known (0), of the prediction's own interval. */
double dl_interval_half_log(double alternatives_sigma_log, double low_s, double high_s);

/* One measured run of the user's system and framework. */
struct dl_measured_run {
    double log_ratio;             /* log(measured / predicted iteration) */
    struct dl_interval_case what; /* of its prediction */
    const char *workload;
};

/* What measured runs say: normal distributions of the effects of this system and framework. */
struct dl_posterior;

/* F-POSTERIOR. NULL with DL_OK where there are no runs. In the arena. */
enum dl_code dl_posterior_make(const struct dl_interval_model *model,
                               const struct dl_measured_run *runs, size_t count,
                               struct dl_arena *arena, const struct dl_posterior **out,
                               struct dl_err *err);

struct dl_posterior_shift {
    /* logarithms of factors on the prediction's parts; overhead: of that of compute */
    double compute_log, communication_log, overhead_log;
    double sigma_log; /* of log(measured / corrected) */
};
struct dl_posterior_shift dl_posterior_shift(const struct dl_posterior *posterior,
                                             const char *workload,
                                             const struct dl_interval_case *c);
/* Corrected / predicted iteration. */
double dl_posterior_factor(const struct dl_posterior_shift *shift,
                           const struct dl_interval_case *c);
/* F-FEW-RUNS: an end of the 80 % interval after the runs: what they leave of their own spread, and,
 * of the end before any run, a part that falls with their number, because a stranger's runs differ
 * by more than those that the spreads were fitted to. Never wider than before. */
double dl_posterior_end_log(const struct dl_posterior *posterior,
                            const struct dl_posterior_shift *shift, double end_log);
/* Runs that it is made from. */
size_t dl_posterior_runs(const struct dl_posterior *posterior);

#endif
