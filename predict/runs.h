/* runs.h - rows of a table of measured runs (the CSV of the contract) as cases that the model can predict.
 */
#ifndef DL_PREDICT_RUNS_H
#define DL_PREDICT_RUNS_H

#include "model/csv.h"
#include "model/data.h"
#include "model/predict.h"

/* As in the file: text NULL and numbers NAN where the cell is empty. */
struct dl_run {
    const char *file; int line;
    const char *id, *source, *system, *framework, *strategy, *backend, *workload, *input, *precision, *optimizer;
    double nodes, devices_per_node, batch_per_device_samples, global_batch_samples, dp, tp, pp, micro_batch_samples;
    bool throughput;  /* value is samples/s of the whole job; else seconds of an iteration */
    double value;
};

/* What several rows share is loaded once. Frameworks and systems by name, workloads by name and input. */
struct dl_shelf {
    struct dl_data data;              /* with the user's --set */
    struct dl_arena *arena;
    struct dl_shelf_entry { int kind; const char *name, *input; const void *loaded; struct dl_err err; } *entries;
    int entry_count, entry_capacity;
};

struct dl_run_case {
    const struct dl_system *system;
    const struct dl_workload *workload;
    const struct dl_framework *framework;
    struct dl_plan plan;
};

/* True when the header is that of a table of runs. */
bool dl_runs_header(const struct dl_csv *csv);

/* All rows. DL_ERR_INPUT with the line: a column is missing, a number is none or not positive, metric is neither
 * "throughput" nor "iteration". */
enum dl_code dl_runs_read(const struct dl_csv *csv, struct dl_arena *arena, struct dl_run **out, int *count, struct dl_err *err);

enum dl_code dl_shelf_system(struct dl_shelf *shelf, const char *name, const struct dl_system **out, struct dl_err *err);

/* The plan of a run. An unknown name, an absent batch size, something that this version does not predict: DL_ERR_USAGE with
 * the reason (the row is to be skipped); a broken data file: DL_ERR_INPUT. An optimizer that is not given is momentum. */
enum dl_code dl_run_case(struct dl_shelf *shelf, const struct dl_run *run, struct dl_run_case *out, struct dl_err *err);

/* Kernel times are multiplied by compute_scale. */
enum dl_code dl_run_predict(const struct dl_run_case *c, double compute_scale, struct dl_arena *arena, struct dl_prediction *out,
                            struct dl_err *err);

#endif
