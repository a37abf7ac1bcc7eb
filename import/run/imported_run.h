/* imported_run.h - a training run (a launch script, a configuration, a log) as a command line of
 * predict: the model, the plan, and the settings of the file that do not affect time. Reads text;
 * runs nothing. A format is one row of dl_run_formats: how its text becomes arguments, and how they
 * become a plan. */
#ifndef DL_IMPORT_RUN_IMPORTED_RUN_H
#define DL_IMPORT_RUN_IMPORTED_RUN_H

#include "import/import.h"
#include "import/run/arguments.h"
#include "import/run/shell.h"
#include "model/core/text.h"

enum { DL_PLAN_WORDS = 64 };

/* The command line of predict. */
struct dl_plan_words {
    struct dl_arena *arena;
    const char *kind, *path, *framework, *system;
    struct dl_text *workload; /* "gpt:layers=32,..." */
    struct {
        const char *option, *value; /* value NULL: a flag */
    } options[DL_PLAN_WORDS];
    int option_count;
};
/* value: a printf format. */
void dl_plan_words_add(struct dl_plan_words *words, const char *option, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void dl_plan_words_flag(struct dl_plan_words *words, const char *option);

/* The text of a file, and what reads other files that it names. */
struct dl_run_source {
    struct dl_context *context;
    const char *path, *text;
    size_t length;
    const char *const *environment; /* NAME=VALUE, NULL-terminated */
    const char *arguments;          /* of the script, between blanks; NULL */
    const char *config;             /* of a Python configuration: function or variable; NULL */
    bool alone;                     /* no other file is read */
};

struct dl_run {
    struct dl_context *context; /* for the catalog; NULL: none */
    struct dl_arguments arguments;
    struct dl_plan_words *out;
    struct dl_err *err;
    const char *program;  /* that a script starts: "pretrain_bert.py"; NULL: unknown */
    const char *launcher; /* "torchrun"; NULL: unknown */
    const char *workload; /* of --workload; NULL */
    /* "ENV MODEL_SIZE": variables of a script that take its arguments, which --args did not give;
     * NULL: none */
    const char *script_arguments;
    double vocabulary;             /* of --vocab-size */
    double nodes, per_node, ranks; /* devices; NAN: unknown */
    bool framework_asked;          /* by --framework */
    bool one_device;               /* a program without a launcher */
    bool complete;                 /* every argument is there, at its default too */
};

struct dl_run_format {
    const char *name;
    const char *const *frameworks; /* the first that is in the catalog; NULL-terminated */
    enum dl_code (*read)(const struct dl_run_source *source, struct dl_run *run);
    enum dl_code (*plan)(struct dl_run *run);
    const char *arguments; /* format of its rows in data/run_arguments.csv */
};
extern const struct dl_run_format dl_run_formats[]; /* ended by name NULL */
/* The classes of the arguments of a format, and those of every format: rows of
 * data/run_arguments.csv. DL_ERR_INPUT: no such table, or a row without a use. */
enum dl_code dl_argument_classes_read(const struct dl_data *data, const char *format,
                                      struct dl_arena *arena, const struct dl_argument_class **own,
                                      const struct dl_argument_class **common, struct dl_err *err);

/* ---- readers of text ---- */
enum dl_code dl_run_read_script(const struct dl_run_source *source, struct dl_run *run);
enum dl_code dl_run_read_json(const struct dl_run_source *source, struct dl_run *run);
enum dl_code dl_run_add_json(const char *name, const char *text, size_t length,
                             struct dl_arguments *out, struct dl_err *err);
enum dl_code dl_run_read_yaml(const struct dl_run_source *source, struct dl_run *run);
enum dl_code dl_run_read_megatron(const struct dl_run_source *source, struct dl_run *run);
enum dl_code dl_run_read_torchtitan(const struct dl_run_source *source, struct dl_run *run);
enum dl_code dl_run_read_nemo(const struct dl_run_source *source, struct dl_run *run);

/* ---- plans ---- */
enum dl_code dl_megatron_plan(struct dl_run *run);
enum dl_code dl_torchtitan_plan(struct dl_run *run);
enum dl_code dl_deepspeed_plan(struct dl_run *run);
enum dl_code dl_accelerate_plan(struct dl_run *run);
enum dl_code dl_composer_plan(struct dl_run *run);
enum dl_code dl_maxtext_plan(struct dl_run *run);
enum dl_code dl_launch_plan(struct dl_run *run);

/* Number of devices as options: nodes and devices of a node, or devices in all. least: devices
 * that the degrees require; the number is a multiple of it. A missing number is assumed, with a
 * note. */
void dl_launch_devices(struct dl_run *run, double least);
/* Reads the launcher's number of devices from the options before the program. */
void dl_launch_options(struct dl_run *run, const struct dl_shell_list *words, int count);

/* --offload from DeepSpeed's keys, with ZeRO stage "1" to "3" or NULL; from the flag `names` of
 * FSDP, with stage 2 (weights stay gathered after forward) or 3. Where they do not apply, or the
 * device is no CPU, the arguments stay unused. */
enum dl_code dl_run_offload_deepspeed(struct dl_run *run, const char *stage);
void dl_run_offload_fsdp(struct dl_run *run, const char *names, int stage);

/* Our word for theirs, "a|b|c"; NULL: none. Case does not count. Pairs end by NULL. */
struct dl_word_pair {
    const char *theirs, *ours;
};
const char *dl_paired(const struct dl_word_pair *pairs, const char *word);

/* The workload of a model or recipe by its name; NULL: not known. */
const char *dl_run_workload_of(struct dl_run *run, const char *name);

/* Words of a tokenizer by its name or type, before padding; NAN: not known. */
double dl_tokenizer_words(const char *name);
/* The same of a tokenizer type of Pai-Megatron-Patch, after its padding. folder: of the tokenizer;
 * extra: of --extra-vocab-size. */
double dl_patched_tokenizer_words(const char *type, const char *folder, double extra);

/* A file of a format (row `kind`) as a run; of `file` path, environment and alone count. */
struct dl_imported_run {
    struct dl_run run;
    struct dl_argument_lists lists;
};
enum dl_code dl_run_import(struct dl_context *context, const struct dl_run_source *file,
                           const char *kind, const struct dl_import_asked *asked,
                           struct dl_imported_run *out, struct dl_err *err);

/* Prints the command, or JSON. */
enum dl_code dl_run_print(struct dl_context *context, const struct dl_options *options,
                          const struct dl_run *run, const struct dl_argument_lists *lists,
                          struct dl_err *err);

#endif
