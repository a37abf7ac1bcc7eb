/* dlmodel.h - dlmodel from a C program: the answers of `dlmodel predict`, `search`, `explain`,
 * `compare` and `campaign`, without a process.
 *
 * Two ways. A request in JSON, answered in the JSON that the program prints with --json:
 *
 *     struct dlmodel_context *c = dlmodel_context_open(NULL);
 *     const char *request =
 *         "{\"command\": \"predict\", \"options\": {\"workload\": \"vgg16\", \"nodes\": 16}}";
 *     struct dlmodel_answer *a = dlmodel_call(c, request, NULL);
 *     fputs(dlmodel_answer_json(a), stdout);
 *     dlmodel_answer_free(a);
 *     dlmodel_context_close(c);
 *
 * Or option by option, one prediction at a time, and its values by name:
 *
 *     struct dlmodel *m = dlmodel_open(NULL);
 *     if (dlmodel_option(m, "workload", "vgg16") == DLMODEL_OK &&
 *         dlmodel_option(m, "nodes", "16") == DLMODEL_OK && dlmodel_predict(m) == DLMODEL_OK)
 *         printf("%g s\n", dlmodel_value(m, "iteration_s"));
 *     else
 *         fprintf(stderr, "%s\n", dlmodel_error(m));
 *     dlmodel_close(m);
 *
 * Compile with `pkg-config --cflags --libs dlmodel` (static: --static). No function prints, exits
 * or keeps state outside the objects it is given.
 *
 * Threads: any number of them may use one dlmodel_context at once; what they load is read once and
 * shared. A dlmodel_answer never changes and belongs to the caller. A `struct dlmodel` serves
 * one thread at a time; several may share a context (dlmodel_open_in).
 *
 * Names of options, values and texts are those of the program, which keeps them.
 */
#ifndef DLMODEL_H
#define DLMODEL_H

#ifdef __cplusplus
extern "C" {
#endif

/* The program's exit statuses, and one more. */
enum dlmodel_status {
    DLMODEL_OK = 0,
    DLMODEL_NO = 1,     /* the answer is no: nothing fits in memory, no plan meets the deadline */
    DLMODEL_USAGE = 2,  /* an unknown option or name, or an invalid combination */
    DLMODEL_INPUT = 3,  /* a bad file: FILE:LINE:COL: error: KEY: what was expected */
    DLMODEL_RANGE = 4,  /* extrapolated, with the option "strict" */
    DLMODEL_SYSTEM = 5, /* memory, files */
    DLMODEL_BACKEND = 6,
    DLMODEL_CANCELLED = 7 /* the caller stopped it */
};

/* "0.2.0" */
const char *dlmodel_version(void);

/* ---- contexts: data that are loaded once ---- */

struct dlmodel_context;

struct dlmodel_settings { /* zeros: the defaults */
    /* a folder with systems/, devices/, workloads/, frameworks/; NULL: $DLMODEL_DATA, else where
     * dlmodel is installed */
    const char *data_directory;
    /* the profile that `dlmodel calibrate` wrote, for the system "local"; NULL: none */
    const char *local_profile;
    /* Requests come from strangers: they name data of the data folder and files that they
     * bring along, and no other file. */
    int names_only;
};

/* NULL when memory is exhausted; a missing folder is an error of each call. settings NULL: all
 * defaults. Files are read when they are first needed; a change of one shows in a new context.
 * Kernel times of networks of the data folder are kept too, up to 32 MB for each call at once. */
struct dlmodel_context *dlmodel_context_open(const struct dlmodel_settings *settings);
/* After the last call in it has returned, and after dlmodel_close of those opened in it. Answers
 * live on. context may be NULL. */
void dlmodel_context_close(struct dlmodel_context *context);

/* ---- requests ---- */

/* Follows and stops a long call. `progress` is called about twice a second by one of the call's own
 * threads, with the part that is done (0 to 1) and the time since the start; it returns 0 to go on,
 * anything else to stop. */
struct dlmodel_watch {
    int (*progress)(void *user, double done_frac, double elapsed_s);
    void *user;
};

/* request: a JSON object,
 *     "command":   "predict", "search", "explain", "compare", "campaign", "advise", "match",
 *                  "list", "schema"
 *     "options":   {NAME: VALUE}, as on the command line without dashes; of an option without a
 *                  value, true (given) or false (not given)
 *     "set":       {KEY: VALUE}, what-ifs, as --set KEY=VALUE
 *     "where":     {COLUMN: VALUE}, rows of compare, as --where COLUMN=VALUE
 *     "arguments": ["FILE", ...], what is no option: the tables of compare, the kind of list
 *     "files":     {NAME: TEXT}, files that come with the request: options and arguments that name
 *                  one are read from its text
 * Options that write files or choose a format are refused.
 *
 * watch may be NULL. Never NULL but when memory is exhausted. */
struct dlmodel_answer;
struct dlmodel_answer *dlmodel_call(struct dlmodel_context *context, const char *request,
                                    const struct dlmodel_watch *watch);

enum dlmodel_status dlmodel_answer_status(const struct dlmodel_answer *answer);
/* What `dlmodel COMMAND ... --json` prints, byte for byte; where it prints nothing, the error. */
const char *dlmodel_answer_json(const struct dlmodel_answer *answer);
/* NULL where the status is DLMODEL_OK; else {"error": {"status": 3, "kind": "input", "message",
 * "file", "line", "column", "key", "text"}}: what is not known is left out; "text" is the program's
 * line. With DLMODEL_NO and DLMODEL_RANGE there may be results besides. */
const char *dlmodel_answer_error(const struct dlmodel_answer *answer);
/* A line that the program prints on standard error besides (warnings, notes), from 0; NULL beyond
 * the last. */
const char *dlmodel_answer_message(const struct dlmodel_answer *answer, int index);
void dlmodel_answer_free(struct dlmodel_answer *answer); /* answer may be NULL */

/* ---- one prediction, option by option ---- */

struct dlmodel; /* options, the last prediction, the last error */

/* data_directory as in dlmodel_settings. NULL when memory is exhausted; a missing folder is an
 * error of dlmodel_predict. */
struct dlmodel *dlmodel_open(const char *data_directory);
/* The same with the loaded data of a context, which must outlive it. */
struct dlmodel *dlmodel_open_in(struct dlmodel_context *context);
void dlmodel_close(struct dlmodel *m); /* m may be NULL */

/* An option of `dlmodel predict` without its dashes: "system" (a name or a file, as calibrate
 * writes it), "workload", "framework" (one; default pytorch-ddp), "nodes" (one number),
 * "batch-per-device", "precision", "tp", "set"
 * ("links.inter.bandwidth=25GB/s"), ... Given again it replaces the earlier value; "set" adds.
 * value NULL for options that take none ("first-epoch"). Defaults are the program's, but system is
 * iris-v100 when none is given. */
enum dlmodel_status dlmodel_option(struct dlmodel *m, const char *name, const char *value);
/* All options as after dlmodel_open. */
void dlmodel_reset(struct dlmodel *m);

/* Predicts what the options say. A plan that does not fit in memory is not an error:
 * dlmodel_value(m, "fits") is 0. */
enum dlmodel_status dlmodel_predict(struct dlmodel *m);

/* Of the last prediction, by its name in the JSON: "iteration_s", "throughput_samples_per_s",
 * "memory.total_bytes", ... (all: dlmodel schema prediction); SI units, truths are 0 and 1. NAN: no
 * such number, unknown, or no prediction. */
double dlmodel_value(const struct dlmodel *m, const char *name);
/* The same for text: "bottleneck", "strategy", ...; NULL: none. Text that a function returns lives
 * until the next call with the same `struct dlmodel`. */
const char *dlmodel_text(const struct dlmodel *m, const char *name);
/* All of it at once: values[i] and texts[i] are what dlmodel_value and dlmodel_text give for column
 * i. Returns the number of columns, 0: no prediction; at most `count` of each are written. */
int dlmodel_row(const struct dlmodel *m, double *values, const char **texts, int count);
/* The name of a column, numbered from 0; NULL beyond the last. *type: "string", "number",
 * "integer" or "boolean"; type may be NULL. */
const char *dlmodel_column(int index, const char **type);
/* A warning of the prediction, numbered from 0; NULL beyond the last. */
const char *dlmodel_warning(const struct dlmodel *m, int index);

/* Message of the last call, one sentence that says what to change; "" if it succeeded. */
const char *dlmodel_error(const struct dlmodel *m);

#ifdef __cplusplus
}
#endif
#endif
