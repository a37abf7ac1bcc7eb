/* input_options.h - the options that predict, explain, search and plot share. */
#ifndef DL_PREDICT_OPTIONS_INPUT_OPTIONS_H
#define DL_PREDICT_OPTIONS_INPUT_OPTIONS_H

#include "model/catalog/command.h"
#include "model/engine/energy.h"

extern const struct dl_option dl_input_options[];

enum { DL_MAX_LIST = 128, DL_MAX_LAYER_TIMES = 16, DL_MAX_FRAMEWORKS = 64 };

struct dl_input_given { /* which options were given */
    struct dl_plan_given plan;
    bool system, nodes, gpus, batch_per_device, context, spatial, input;
};

struct dl_input_words { /* as the options store them; NULL: not given and no default */
    const char *system, *workload, *framework, *release, *strategy, *nodes, *dataset, *measured;
    const char *layers;  /* the last file of layer times that was used */
    int input;           /* 0 synthetic, 1 real */
    int64_t gpus;        /* devices in all, from which nodes follow; 0: not given */
    bool all_frameworks; /* with `all` also those that are retired, lossy or asynchronous */
};

struct dl_heterogeneous_job; /* model/search/heterogeneous.h */

struct dl_inputs {
    const struct dl_system *system;
    const struct dl_workload *workload;
    const struct dl_framework *frameworks[DL_MAX_FRAMEWORKS];
    /* the network as the framework's release builds it; NULL: `workload` */
    const struct dl_workload *own_workloads[DL_MAX_FRAMEWORKS];
    int framework_count;
    /* --framework all or a list: those that cannot run here are skipped, not errors */
    bool framework_all, framework_listed;
    int64_t nodes[DL_MAX_LIST];
    size_t node_count;
    struct dl_plan plan;                              /* without nodes */
    const struct dl_heterogeneous_job *heterogeneous; /* NULL: one system */
    /* measured by frameworks' profilers, that fit */
    const struct dl_layer_times *layer_times[DL_MAX_LAYER_TIMES];
    int layer_times_count;
    struct dl_input_words words;
    struct dl_run_length length;
    struct dl_rates rates; /* of commands that take dl_rates_options */
    int left_out;          /* frameworks that `all` leaves out */
    bool max_batch;        /* --batch-per-device max */
    bool max_micro_batch;  /* --micro-batch max */
    bool strict;
    struct dl_cost_memo *memo; /* of all predictions with these inputs; NULL: none */
    struct dl_input_given given;
};

/* The options of these tables that most people need (struct dl_command, common). */
#define DL_COMMON_INPUTS                                                                           \
    "system workload framework set measured nodes gpus devices-per-node batch-per-device "         \
    "global-batch precision tp pp "

/* Whether the framework decides on recomputation, once the options are stored: a number of layers
 * means full recomputation. */
void dl_inputs_open_recompute(struct dl_inputs *in);

/* The options alone: defaults, plan and checks that need no file but that of datasets. */
enum dl_code dl_inputs_read(struct dl_context *context, const struct dl_options *options,
                            struct dl_inputs *out, struct dl_err *err);

#endif
