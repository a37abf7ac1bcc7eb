/* inputs.h - the options that predict, explain and plot share, and what they load. */
#ifndef DL_PREDICT_INPUTS_INPUTS_H
#define DL_PREDICT_INPUTS_INPUTS_H

#include "model/cli/command.h"
#include "model/predict/energy.h"

extern const struct dl_option dl_input_options[];

enum { DL_MAX_LIST = 128, DL_MAX_LAYER_TIMES = 16 };

struct dl_heterogeneous_job; /* model/search/heterogeneous.h */

struct dl_inputs {
    const struct dl_system *system;
    const struct dl_workload *workload;
    const struct dl_framework *frameworks[64];
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
    /* as the rows of dl_input_options store them; NULL: not given and no default */
    const char *system_name, *workload_name, *framework_name, *release, *strategy_name, *nodes_text,
        *dataset, *measured;
    const char *layers_name; /* the last file of layer times that was used */
    int input;               /* 0 synthetic, 1 real */
    int64_t gpus;            /* devices in all, from which nodes follow; 0: not given */
    struct dl_run_length length;
    struct dl_rates rates; /* of commands that take dl_rates_options */
    bool all_frameworks;   /* with `all` also those that are retired, lossy or asynchronous */
    int left_out;          /* how many of these `all` leaves out */
    bool max_batch;        /* --batch-per-device max */
    bool max_micro_batch;  /* --micro-batch max */
    bool strict;
    struct dl_cost_memo *memo; /* of all predictions with these inputs; NULL: none */
    struct {
        bool system, nodes, gpus, batch_per_device, precision, optimizer, context, spatial,
            recompute, sequence_parallel, zero, mapping, schedule, input;
    } given;
};

/* The options alone: defaults, plan and checks that need no file but that of datasets. */
enum dl_code dl_inputs_read(struct dl_context *context, const struct dl_options *options,
                            struct dl_inputs *out, struct dl_err *err);

/* Loads everything that the options name; defaults: the machine's own profile if there is one,
 * else iris-v100; resnet50; all frameworks; one node. An unknown --set key is DL_ERR_USAGE. */
enum dl_code dl_inputs_load(struct dl_context *context, const struct dl_options *options,
                            struct dl_inputs *out, struct dl_err *err);

/* DL_ERR_USAGE where --framework lists several and `command` takes one. */
enum dl_code dl_inputs_one_framework(const struct dl_inputs *inputs, const char *command,
                                     struct dl_err *err);

/* --set KEY=VALUE options as overrides in the arena. */
enum dl_code dl_inputs_overrides(struct dl_context *context, const struct dl_options *options,
                                 struct dl_data *data, struct dl_err *err);

/* Default samples per device: 32 for images on a GPU, 8 for sequences on a GPU, a quarter of
 * either on a CPU socket. An arbitrary choice, printed with every result. */
double dl_default_batch(const struct dl_system *system, const struct dl_workload *workload);

/* bf16 on devices that have a rate for it (NVIDIA's from A100 on), else fp32. */
enum dl_precision dl_default_precision(const struct dl_system *system);

/* The optimizer that a network is usually trained with: Adam for transformers, else momentum. */
enum dl_optimizer dl_default_optimizer(const struct dl_workload *workload);

/* "32 samples per device", or "256 samples over all devices" where the global batch is given. */
const char *dl_inputs_batch(const struct dl_inputs *inputs, const struct dl_plan *plan,
                            struct dl_arena *arena);

/* One prediction of the loaded inputs; with max_batch the largest batch that fits. */
enum dl_code dl_inputs_predict(const struct dl_inputs *inputs, const struct dl_framework *framework,
                               int64_t nodes, bool terms, struct dl_arena *arena,
                               struct dl_plan *plan_out, struct dl_prediction *out,
                               struct dl_err *err);

/* The files that were read for a result, with hashes of their text. dl_inputs_files returns how
 * many, -1 when memory is exhausted. */
enum { DL_MAX_INPUT_FILES = 72 }; /* maximum number in files */
struct dl_input_file {
    const char *path;
    uint64_t hash;
}; /* FNV-1a, 64 bit */
int dl_inputs_files(struct dl_context *context, const struct dl_inputs *inputs,
                    struct dl_input_file *files);

/* "inputs" of a JSON result: names, options as given, --set, files. Written as a member of the open
 * object. */
void dl_inputs_json(struct dl_context *context, const struct dl_inputs *inputs,
                    const struct dl_options *options, struct dl_json_writer *writer);
/* With -v: version and files as messages. */
void dl_inputs_note_files(struct dl_context *context, const struct dl_inputs *inputs);

/* DL_ERR_USAGE with a suggestion for a --set key that is in no document. */
enum dl_code dl_inputs_overrides_used(struct dl_context *context, const struct dl_data *data,
                                      struct dl_err *err);

/* The framework as the user named it: the file given with --framework, else its name. */
const char *dl_inputs_framework_word(const struct dl_options *options,
                                     const struct dl_framework *framework);

/* The command line, quoted for a shell, that gives the same prediction again: the inputs that were
 * given and that `command` takes, one framework and one number of nodes. */
const char *dl_inputs_command(struct dl_context *context, const struct dl_options *options,
                              const char *command, const struct dl_framework *framework,
                              int64_t nodes);
/* The same with everything that the complete plan says, which replaces what was given of it. */
const char *dl_inputs_plan_command(struct dl_context *context, const struct dl_options *options,
                                   const char *command, const struct dl_framework *framework,
                                   const struct dl_plan *plan);

#endif
