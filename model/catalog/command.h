/* command.h - the context that dlmodel.c passes to a command, and the description of a command. A
 * command is one file and one row of the table in dlmodel.c. */
#ifndef DL_MODEL_CATALOG_COMMAND_H
#define DL_MODEL_CATALOG_COMMAND_H

#include "model/catalog/data.h"
#include "model/core/option.h"
#include "model/core/table.h"

struct dl_command;
struct dl_context;

struct dl_cost_memo; /* model/framework/cost_memo.h */

struct dl_context {
    struct dl_data data; /* search path; each command adds its overrides */
    const char *program; /* path of this executable, to find probes next to it; "" when unknown */
    /* Folders with plots/ and slurm/, whose scripts this program runs: next to the executable or
     * installed. Never next to a data folder: data may come from anybody, scripts only from the
     * installation. */
    const char *const *script_roots;
    int script_root_count;
    const char *profile_path; /* path of the profile "local", which may not exist; NULL: none */
    const char *site; /* NAME or FILE of the user's site where --site names none; NULL: none */
    int verbosity;    /* -1 quiet, 0, 1 verbose */
    bool color;       /* stdout may be coloured */
    bool progress;    /* stderr is a terminal */
    const struct dl_command *const *commands; /* for help */
    struct dl_arena *arena;                   /* lives as long as the process */
    /* Text to stdout or, with -o, atomically to that file. A closed or full stdout is
     * DL_ERR_SYSTEM. */
    enum dl_code (*output)(const struct dl_options *options, const char *text, struct dl_err *err);
    /* The same in parts, for results larger than memory; `last` marks the last part, after which
     * the file replaces the old one. NULL: not supported. */
    enum dl_code (*output_part)(const struct dl_options *options, const char *text, bool last,
                                struct dl_err *err);
    /* A message line on stderr, unless quiet. */
    void (*note)(const struct dl_context *context, const char *format, ...)
        __attribute__((format(printf, 2, 3)));
    void *owner; /* caller's data for output and note */
    /* Progress callback of long commands; a non-zero return cancels with DL_ERR_CANCELLED. NULL:
     * none. */
    int (*watch)(void *user, double done_frac, double elapsed_s);
    void *watch_user;
    struct dl_cost_memo *memo;              /* kernel times of earlier calls; NULL: none */
    const struct dl_option *global_options; /* for help */
    /* schemas of file formats private to one folder (slurm/), for `schema`; NULL-terminated */
    const struct dl_schema *const *schemas;
};

struct dl_command {
    const char *name, *summary;
    const char *usage;   /* "[options] FILE..." */
    const char *purpose; /* one paragraph */
    /* command lines that run as printed, NULL-terminated; at least two */
    const char *const *examples;
    const struct dl_option *const *options; /* tables */
    /* names of the options that --help explains, between spaces; --help-all explains all. NULL: it
     * has few options */
    const char *common;
    const char *instead; /* which other command answers which related question; NULL: none */
    /* values of its first argument, for completion: "scaling efficiency"; NULL: a file, or none */
    const char *words;
    const char *exit_notes; /* meaning of exit status 1; NULL: the common one */
    bool latex;             /* its table can be printed for LaTeX */
    bool few_notes;         /* of more than three notes the program shows the first, and -v all */
    /* Returns DL_OK, or the code with *err filled. */
    enum dl_code (*run)(struct dl_context *context, const struct dl_options *options,
                        struct dl_err *err);
};

/* A `note` for calls whose messages nobody reads. */
void dl_drop_note(const struct dl_context *context, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* --format, --json, --csv; DL_ERR_USAGE when they conflict. */
enum dl_code dl_output_format(const struct dl_options *options, enum dl_format *out,
                              struct dl_err *err);
/* Outputs a part of a result. Without `output_part`, `held` collects the parts until the last one.
 * NULL text: out of memory. */
struct dl_text; /* model/core/text.h */
enum dl_code dl_output_part(const struct dl_context *context, const struct dl_options *options,
                            struct dl_text *held, const char *text, bool last, struct dl_err *err);
/* The command of that name; DL_ERR_USAGE lists the commands. */
enum dl_code dl_command_find(const struct dl_command *const *commands, const char *name,
                             const struct dl_command **out, struct dl_err *err);
/* "dlmodel VERSION (COMMIT)" of this program. */
extern const char dl_version_text[];
/* The common header of JSON results: format, version, dlmodel {version, commit}. Opens the top
 * object. */
void dl_output_header(struct dl_json_writer *writer, const char *format);
/* A result that is one table: its text, CSV or LaTeX, or a document of that format whose member
 * `list` has its rows. */
enum dl_code dl_output_table(const struct dl_context *context, const struct dl_options *options,
                             const struct dl_table *table, const char *format, const char *list,
                             struct dl_err *err);

extern const struct dl_option dl_output_options[]; /* --format --json --csv -o --help */

#endif
