/* dlmodel.h - predictions of dlmodel from a C program: what `dlmodel predict --json` prints,
 * without a process.
 *
 *     struct dlmodel *m = dlmodel_open(NULL);
 *     if (dlmodel_option(m, "workload", "vgg16") == DLMODEL_OK && dlmodel_option(m, "nodes", "16")
 * == DLMODEL_OK && dlmodel_predict(m) == DLMODEL_OK) printf("%g s\n", dlmodel_value(m,
 * "iteration_s")); else fprintf(stderr, "%s\n", dlmodel_error(m)); dlmodel_close(m);
 *
 * Compile with `pkg-config --cflags --libs dlmodel` (static: --static). No function prints, exits
 * or keeps state outside its `struct dlmodel`: several threads may each have one of their own. Text
 * that a function returns lives until the next call with the same `struct dlmodel`. Names of
 * options, values and texts are those of the program, which keeps them.
 */
#ifndef DLMODEL_H
#define DLMODEL_H

#ifdef __cplusplus
extern "C" {
#endif

/* The program's exit statuses. */
enum dlmodel_status {
    DLMODEL_OK = 0,
    DLMODEL_NO = 1,     /* not even one sample fits in memory (batch-per-device=max) */
    DLMODEL_USAGE = 2,  /* an unknown option or name, or an invalid combination */
    DLMODEL_INPUT = 3,  /* a bad file: FILE:LINE:COL: error: KEY: what was expected */
    DLMODEL_RANGE = 4,  /* extrapolated, with the option "strict" */
    DLMODEL_SYSTEM = 5, /* memory, files */
    DLMODEL_BACKEND = 6
};

struct dlmodel; /* options, the last prediction, the last error */

/* "0.1.0" */
const char *dlmodel_version(void);

/* data_directory: a folder with systems/, devices/, workloads/, frameworks/; NULL:
 * $DLMODEL_DATA, else where dlmodel is installed. NULL when memory is exhausted; a missing
 * folder is an error of dlmodel_predict. */
struct dlmodel *dlmodel_open(const char *data_directory);
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
/* The same for text: "bottleneck", "strategy", ...; NULL: none. */
const char *dlmodel_text(const struct dlmodel *m, const char *name);
/* A warning of the prediction, numbered from 0; NULL beyond the last. */
const char *dlmodel_warning(const struct dlmodel *m, int index);

/* Message of the last call, one sentence that says what to change; "" if it succeeded. */
const char *dlmodel_error(const struct dlmodel *m);

#ifdef __cplusplus
}
#endif
#endif
