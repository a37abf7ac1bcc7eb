/* import_plan.h - a training run's arguments as a workload and a plan: what import megatron, nemo
 * and torchtitan share. Reads text; runs nothing.
 *
 * The result is a command line of predict and, with --json, its parts. Arguments that no part of a
 * prediction depends on are named, never silently dropped. */
#ifndef DL_IMPORT_IMPORT_PLAN_H
#define DL_IMPORT_IMPORT_PLAN_H

#include "import/import.h"

enum { DL_ARGUMENTS = 1024, DL_PLAN_WORDS = 64 };

struct dl_argument {
    const char *name;  /* with underscores: "num_layers" */
    const char *value; /* NULL: a flag */
    int line;
    bool used;
};
struct dl_arguments {
    const char *path; /* of the file, for messages */
    struct dl_arena *arena;
    struct dl_argument *all;
    int count;
};

/* "--name value", "--name=value", "--flag" as a shell splits them: quotes, line continuations,
 * comments; NAME=VALUE before them gives $NAME a value. Nothing else is expanded. The last of
 * equal names counts. DL_ERR_INPUT with the line. */
enum dl_code dl_arguments_shell(const char *path, const char *text, size_t length,
                                struct dl_arena *arena, struct dl_arguments *out,
                                struct dl_err *err);
/* "key: value" lines of a configuration, at any depth: of nested keys the innermost counts. */
enum dl_code dl_arguments_yaml(const char *path, const char *text, size_t length,
                               struct dl_arena *arena, struct dl_arguments *out,
                               struct dl_err *err);
/* names: "a|b|c", the first that is there. They mark what they read as used. */
const struct dl_argument *dl_arguments_find(struct dl_arguments *arguments, const char *names);
const char *dl_arguments_word(struct dl_arguments *arguments, const char *names,
                              const char *fallback);
bool dl_arguments_flag(struct dl_arguments *arguments, const char *names);
/* DL_ERR_INPUT at its line: no number from low to high. */
enum dl_code dl_arguments_number(struct dl_arguments *arguments, const char *names, double low,
                                 double high, double *inout, struct dl_err *err);

struct dl_plan_words {
    struct dl_arena *arena;
    const char *kind, *path, *framework, *system;
    struct dl_text *workload; /* "gpt:layers=32,..." */
    struct {
        const char *option, *value; /* value NULL: a flag */
    } options[DL_PLAN_WORDS];
    int option_count;
    bool failed; /* out of memory, or too many */
};
/* value as printf says; NULL: a flag. */
void dl_plan_words_add(struct dl_plan_words *words, const char *option, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void dl_plan_words_flag(struct dl_plan_words *words, const char *option);

/* From arguments of Megatron or NeMo, and of torchtitan; ranks: devices in all, 0: as the file
 * says. Pure. */
enum dl_code dl_megatron_plan(struct dl_arguments *arguments, int64_t ranks,
                              struct dl_plan_words *out, struct dl_err *err);
struct dl_toml;
enum dl_code dl_torchtitan_plan(const struct dl_toml *toml, int64_t ranks,
                                const char *const **ignored_out, struct dl_plan_words *out,
                                struct dl_err *err);

/* Prints the command, or JSON. ignored: NULL-terminated. */
enum dl_code dl_plan_words_print(struct dl_context *context, const struct dl_options *options,
                                 const struct dl_plan_words *words, const char *const *ignored,
                                 struct dl_err *err);

#endif
