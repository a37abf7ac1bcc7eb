/* predict.h - system + workload + framework + plan -> prediction. Deterministic, no I/O, no
 * globals; thread-safe. How it is simulated (../parallel/) depends on what a plan splits; every
 * iteration is composed (compose.h) and diagnosed (diagnose.h) here. */
#ifndef DL_MODEL_ENGINE_PREDICT_H
#define DL_MODEL_ENGINE_PREDICT_H

#include "model/engine/resource.h"
#include "model/framework/cost.h"
#include "model/framework/framework.h"
#include "model/plan/plan.h"
#include "model/machine/system.h"
#include "model/workload/workload.h"

enum dl_bottleneck { /* order of dl_bottleneck_names, the contract's words */
                     DL_BOUND_COMPUTE,
                     DL_BOUND_MEMORY_BANDWIDTH,
                     DL_BOUND_LATENCY,
                     DL_BOUND_INTRA,
                     DL_BOUND_INTER,
                     DL_BOUND_HOST_COPY,
                     DL_BOUND_HOST,
                     DL_BOUND_PS,
                     DL_BOUND_INPUT,
                     DL_BOUND_BUBBLE,
                     DL_BOUND_FRAMEWORK,
                     DL_BOUND_CAPACITY,
                     DL_BOUND_SCALING,
                     DL_BOUNDS
};
extern const char *const dl_bottleneck_names[];

struct dl_memory {
    double weights_bytes, gradients_bytes, optimizer_bytes, activations_bytes, workspace_bytes,
        buffers_bytes, context_bytes, total_bytes, capacity_bytes;
    double reserved_bytes; /* of the total, by the framework's allocator: all but the context */
};

/* Spread of log(measured / predicted memory): tools/memory_fit.py. F-MEM-FITS */
#define DL_MEMORY_SIGMA_LOG 0.148
/* Share of a device's memory above which a plan that fits is called tight: it fits with less than
 * 90 %, exp(-1.2816 DL_MEMORY_SIGMA_LOG). */
#define DL_TIGHT_FRAC 0.827

struct dl_pipeline_pass;

/* One line of `explain`: a quantity and its derivation. */
struct dl_term {
    const char *name; /* "layer2.0.conv1 forward", "all-reduce bucket 3" */
    /* "forward", "backward", "update", "communication", "input", "overhead", "memory" */
    const char *group;
    const char *formula; /* id, e.g. "F-COLL-RING" */
    const char *inputs;  /* text: "p=64 S=25.0 MiB ..." */
    const char *origin;  /* "measured", "fitted", "datasheet: S13", ... */
    double start_s;      /* on the timeline; NAN: not on it */
    double value;        /* seconds, or bytes for memory */
    double sigma_log;
    /* of kernels: "arithmetic", "matrix-units", "memory-bandwidth" or "latency"; NULL: no kernels
     */
    const char *limit;
    /* "compute", "communication", "host", "copy", of stages "send forward", "receive backward" */
    const char *lane;
    double flop;            /* of kernels; 0: none */
    double bytes;           /* that kernels move, or of the message; 0: none */
    const char *collective; /* "all_reduce", ... of a message; NULL: none */
    bool critical;          /* a task on the critical path, where that is known (F-CRITICAL-PATH) */
    /* of a pipeline, else NULL and 0: the pass (schedule.h), or that which needs the message */
    const struct dl_pipeline_pass *pass;
    int stage, peer; /* peer: the other stage of a message */
    int needs; /* with a pass: the task that it waits for besides its lane; -1: none is listed */
};

struct dl_task_list {
    struct dl_term *list;
    int count;
};

/* Memory of a device at one time; between two of them it changes linearly. */
struct dl_memory_point {
    double s, bytes;
};
struct dl_memory_curve {
    const struct dl_memory_point *points;
    int count;
    struct dl_memory parts; /* at its largest; all but the activations stay */
};

/* The course of one iteration. Lists are there with the terms. */
struct dl_course {
    struct dl_resource_use path; /* F-CRITICAL-PATH, with input and the slowest device: all of it */
    const struct dl_term *tasks; /* with start and lane */
    int task_count;
    /* F-MEM-COURSE: of a device of each pipeline stage; the largest is memory.total_bytes */
    const struct dl_memory_curve *memory;
    int memory_count; /* 1: no pipeline */
    /* whole periods of a pipeline that are left out of tasks and memory; 0: none */
    int left_out_micro_batches;
    double left_from_s, left_to_s;
};

struct dl_heterogeneous_group; /* heterogeneous.h */

/* Standard deviations of logarithms. */
struct dl_spread {
    /* of the iteration from kernels and collectives alone; NAN: not known */
    double model_sigma_log;
    double sigma_log; /* of measured / iteration; NAN: not known */
    /* of measured / iteration around the mean of the plans of one job, and of the frameworks that
     * run it; 0: not known */
    double plans_sigma_log, frameworks_sigma_log;
    /* logarithm of the slow end of an 80 % interval where other jobs of the set-up were measured;
     * 0: not known */
    double job_end_log;
};

/* Messages of an iteration. */
struct dl_sent {
    const char *algorithm, *protocol;
    double bytes;
    int count;
};

struct dl_prediction {
    /* iteration_s is a lower bound and above options->limit_s; nothing else is known */
    bool beyond_limit;
    double iteration_s, iteration_low_s, iteration_high_s; /* 80 % interval */
    struct dl_spread spread;
    double throughput_samples_per_s, scaling_efficiency, epoch_s;
    /* with an empty page cache, where the data set fits in it; 0: as all other epochs, or not
     * computed (dl_inputs_predict) */
    double first_epoch_iteration_s;
    double forward_s, backward_s, update_s;
    double compute_s, comm_s, exposed_comm_s, input_s, exposed_input_s, bubble_s, overhead_s;
    double straggler_s;   /* part of overhead_s: the wait for the slowest device */
    double host_bound_s;  /* F-PACED: what follows the host's pace, on top of the kernels or not */
    double by_limit_s[3]; /* time of kernels by enum dl_limit; compute_s holds slowdowns as well */
    struct dl_memory memory;
    bool fits;
    double fits_probability_frac; /* F-MEM-FITS; NAN: the capacity is unknown */
    enum dl_bottleneck bottleneck;
    double bottleneck_share;  /* of the iteration, 0..1 */
    double max_batch_samples; /* largest batch per device that fits; NAN: not computed */
    /* of a stack of equal layers (transformer.h), else 0 and NULL: memory of each pipeline stage,
     * first stage first, in the arena; the largest micro-batch with which all fit, NAN: unknown */
    const struct dl_memory *stages;
    int stage_count;
    double max_micro_batch_samples;
    bool extrapolated;
    const char **warnings;
    int warning_count;
    struct dl_term *terms;
    int term_count; /* only on request */
    struct dl_course course;
    struct dl_sent messages;
    /* of a job on nodes of different kinds (heterogeneous.h), in the arena */
    const struct dl_heterogeneous_group *groups;
    int group_count;
};

struct dl_predict_options {
    bool terms;
    bool times_only; /* memory may be left out: then the plan fits */
    /* only times of the iteration and the memory are read: the efficiency against one device, the
     * largest batch, stages, advice and warnings may be left out */
    bool brief;
    /* of a brief prediction of data parallelism: dl_cost_compute() of what each device takes at
     * once; NULL: not known yet */
    const struct dl_cost *cost;
    /* above 0: the caller discards slower plans; a brief prediction may end as soon as it is known
     * to be slower (beyond_limit) */
    double limit_s;
    struct dl_cost_memo *memo; /* of predictions that share kernels; NULL: none */
};

/* The inputs of a prediction. */
struct dl_predict_request {
    const struct dl_system *system;
    const struct dl_workload *workload;
    const struct dl_framework *framework;
    const struct dl_plan *plan;               /* a strategy gets it complete */
    const struct dl_predict_options *options; /* NULL: the defaults */
    struct dl_arena *arena;
};

/* Errors: DL_ERR_INPUT or DL_ERR_USAGE, which say what to change (no rate for this precision,
 * more nodes than the system has, strategy not available). `out` is written only on success; its
 * pointers live in the arena. */
enum dl_code dl_predict(const struct dl_predict_request *request, struct dl_prediction *out,
                        struct dl_err *err);

/* The same for a plan that dl_plan_complete completed. */
enum dl_code dl_predict_complete(const struct dl_predict_request *request,
                                 struct dl_prediction *out, struct dl_err *err);

/* USAGE for what no version of the framework runs: a network, a device, a precision. */
enum dl_code dl_plan_check_support(const struct dl_system *system,
                                   const struct dl_workload *workload,
                                   const struct dl_framework *framework, const struct dl_plan *plan,
                                   struct dl_err *err);
/* USAGE for settings of a plan with a strategy that do not go together or with the network. */
enum dl_code dl_plan_check_settings(const struct dl_workload *workload,
                                    const struct dl_framework *framework,
                                    const struct dl_plan *plan, struct dl_err *err);
/* Whether the framework runs on the system's devices with the plan's nodes, servers and spare
 * workers. DL_ERR_USAGE says why not. */
enum dl_code dl_plan_check_framework(const struct dl_system *system,
                                     const struct dl_framework *framework,
                                     const struct dl_plan *plan, struct dl_err *err);

/* The strategy of a plan: the one asked for, or else the framework's own, with the axes and sharded
 * states that the plan has. */
void dl_plan_complete_strategy(const struct dl_workload *workload,
                               const struct dl_framework *framework, struct dl_plan *plan);

/* Fills the absent members of a plan (0 or negative dp, batch, ...) from system, workload and
 * framework, and checks it. */
enum dl_code dl_plan_complete(const struct dl_system *system, const struct dl_workload *workload,
                              const struct dl_framework *framework, struct dl_plan *plan,
                              struct dl_err *err);

#endif
