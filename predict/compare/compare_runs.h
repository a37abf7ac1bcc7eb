/* compare_runs.h - rows of a table of runs, shared by the files that compare them:
 * compare_runs_read makes each row a run, compare_runs_group finds the runs that differ in devices
 * alone, compare_runs predicts them.
 */
#ifndef DL_PREDICT_COMPARE_COMPARE_RUNS_H
#define DL_PREDICT_COMPARE_COMPARE_RUNS_H

#include "predict/compare/compare.h"

enum dl_run_column {
    DL_RUN_ID,
    DL_RUN_SOURCE,
    DL_RUN_SYSTEM,
    DL_RUN_FRAMEWORK,
    DL_RUN_FRAMEWORK_VERSION,
    DL_RUN_STRATEGY,
    DL_RUN_BACKEND,
    DL_RUN_WORKLOAD,
    DL_RUN_INPUT,
    DL_RUN_LAYOUT,
    DL_RUN_PRECISION,
    DL_RUN_OPTIMIZER,
    DL_RUN_NODES,
    DL_RUN_DEVICES_PER_NODE,
    DL_RUN_BATCH_PER_DEVICE,
    DL_RUN_GLOBAL_BATCH,
    DL_RUN_DP,
    DL_RUN_TP,
    DL_RUN_PP,
    DL_RUN_MICRO_BATCH,
    DL_RUN_METRIC,
    DL_RUN_VALUE,
    DL_RUN_UNIT,
    DL_RUN_CORE_S,
    DL_RUN_COLUMNS
};

/* The columns of a table of runs, for `dlmodel schema runs`; the order of the enum. */
extern const struct dl_schema dl_run_row_schema;

struct dl_run_row { /* one row, resolved */
    const struct dl_system *system;
    const struct dl_workload *workload;
    const struct dl_framework *framework;
    struct dl_plan plan;
    bool throughput; /* else iteration */
    double measured;
    double core_ratio; /* slowdown of its core against the prediction; NAN: not measured */
    double global_batch_samples; /* of all devices together; 0: unknown */
    const char *why;             /* not predictable */
    /* remark on the prediction; NULL: nothing */
    const char *release_remark; /* no release covers its version */
    const char *host_remark;    /* its host or core was slower than the model's */
};

struct dl_run_rows {
    const struct dl_data *data;
    const struct dl_csv *csv;
    int columns[DL_RUN_COLUMNS]; /* -1: not in the table */
    struct dl_loaded_file *cache;
    int cache_count;
    struct dl_run_row *rows;
    struct dl_arena *arena;
};

/* Reads the whole table. A row that cannot be predicted has the reason in `why`; DL_ERR_INPUT for a
 * broken table. */
enum dl_code dl_run_rows_read(const struct dl_data *data, const struct dl_csv *csv,
                              struct dl_arena *arena, struct dl_run_rows *out, struct dl_err *err);

/* "" where the table has no such column. */
const char *dl_run_cell(const struct dl_run_rows *runs, int row, enum dl_run_column column);

int64_t dl_run_devices(const struct dl_run_row *run);

/* The runs that differ only in the number of devices: those of the same batch per device, or
 * else of the same global batch. */
struct dl_run_group {
    bool whole; /* of the same global batch */
    /* the first run with the fewest devices that can be predicted; -1: no runs with other device
     * counts */
    int anchor;
    double measured; /* of that run; the mean where it was measured several times */
};
struct dl_run_group dl_run_group_of(const struct dl_run_rows *runs, int row);

/* Fills `cause` of runs that are slower than their interval from the runs of their group. */
void dl_run_find_causes(const struct dl_run_rows *runs, const struct dl_prediction *kept,
                        struct dl_compared *rows);

#endif
