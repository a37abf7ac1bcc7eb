/* inputs.h - the options that predict, explain and plot share, and what they load. */
#ifndef DL_PREDICT_INPUTS_H
#define DL_PREDICT_INPUTS_H

#include "model/command.h"
#include "model/predict.h"

extern const struct dl_option dl_input_options[];

enum { DL_MAX_LIST = 128 };

struct dl_inputs {
    const struct dl_system *system;
    const struct dl_workload *workload;
    const struct dl_framework *frameworks[64];
    int framework_count;
    bool framework_all;            /* --framework all: those that cannot run here are skipped, not errors */
    int64_t nodes[DL_MAX_LIST];
    size_t node_count;
    struct dl_plan plan;           /* without nodes */
    bool max_batch;                /* --batch-per-device max */
    bool strict;
    const char *system_name, *workload_name;
};

/* Loads everything that the options name; defaults: the machine's own profile if there is one, else iris-v100; resnet50; all
 * frameworks; one node. A --set that nothing takes is DL_ERR_USAGE. */
enum dl_code dl_inputs_load(struct dl_context *context, const struct dl_options *options, struct dl_inputs *out,
                            struct dl_err *err);

/* --set KEY=VALUE options as overrides in the arena. */
enum dl_code dl_inputs_overrides(struct dl_context *context, const struct dl_options *options, struct dl_data *data,
                                 struct dl_err *err);

/* Samples per device when none are asked for: 32 for images on a GPU, 8 for sequences on a GPU, a quarter of either on a
 * CPU socket. A choice of ours, printed with every result. */
double dl_default_batch(const struct dl_system *system, const struct dl_workload *workload);

/* One prediction of the loaded inputs; with max_batch the largest batch that fits. */
enum dl_code dl_inputs_predict(const struct dl_inputs *inputs, const struct dl_framework *framework, int64_t nodes, bool terms,
                               struct dl_arena *arena, struct dl_plan *plan_out, struct dl_prediction *out,
                               struct dl_err *err);

/* "inputs" of a JSON result: names, files' plan, --set. Written as a member of the open object. */
void dl_inputs_json(const struct dl_inputs *inputs, const struct dl_options *options, struct dl_json_writer *writer);

#endif
