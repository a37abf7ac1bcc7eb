/* inputs.h - loads what the options that predict, explain and plot share name. */
#ifndef DL_PREDICT_INPUTS_INPUTS_H
#define DL_PREDICT_INPUTS_INPUTS_H

#include "model/search/plan_choice.h"
#include "predict/options/input_options.h"

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

/* "32 samples per device", or "256 samples over all devices" where the global batch is given. */
const char *dl_inputs_batch(const struct dl_inputs *inputs, const struct dl_plan *plan,
                            struct dl_arena *arena);

/* The network as the framework's release builds it. */
const struct dl_workload *dl_inputs_workload(const struct dl_inputs *inputs,
                                             const struct dl_framework *framework);

/* The open plan of the inputs for one framework and number of nodes. */
void dl_inputs_question(const struct dl_inputs *inputs, const struct dl_framework *framework,
                        int64_t nodes, struct dl_plan_question *out);

/* One prediction of the loaded inputs: dl_plan_predict of their question. */
struct dl_inputs_case {
    const struct dl_inputs *inputs;
    const struct dl_framework *framework;
    int64_t nodes;
    bool terms;
};
enum dl_code dl_inputs_predict(const struct dl_inputs_case *one, struct dl_arena *arena,
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
/* The same with all options of the complete plan, which replace those that were given. */
const char *dl_inputs_plan_command(struct dl_context *context, const struct dl_options *options,
                                   const char *command, const struct dl_framework *framework,
                                   const struct dl_plan *plan);

#endif
