/* compare_runs.h - rows of a table of runs, shared by the files that compare them:
 * compare_runs_read makes each row a run, compare_runs_group finds the runs that differ in devices
 * alone, compare_runs predicts them.
 */
#ifndef DL_PREDICT_COMPARE_COMPARE_RUNS_H
#define DL_PREDICT_COMPARE_COMPARE_RUNS_H

#include "model/statistics/classes.h"
#include "predict/compare/compare.h"

enum dl_run_column {
    DL_RUN_ID,
    DL_RUN_SOURCE,
    DL_RUN_SYSTEM,
    DL_RUN_FRAMEWORK,
    DL_RUN_FRAMEWORK_VERSION,
    DL_RUN_PP_FIX,
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
    DL_RUN_DATA,
    DL_RUN_METRIC,
    DL_RUN_VALUE,
    DL_RUN_UNIT,
    DL_RUN_CORE_S,
    DL_RUN_POWER_LIMIT,
    DL_RUN_NCCL_VERSION,
    DL_RUN_NCCL_RINGS,
    DL_RUN_NODE_RATE,
    DL_RUN_GATHER_RATE,
    DL_RUN_NOTES,
    DL_RUN_COLUMNS
};

/* The columns of a table of runs but for plan options, for `dlmodel schema runs`; the order of the
 * enum. */
extern const struct dl_schema dl_run_row_schema;

/* A column that is a plan option of predict: recompute, cp, zero_group, ... */
enum { DL_RUN_PLAN_NAME = 48 };
struct dl_run_plan_column {
    char name[DL_RUN_PLAN_NAME]; /* the option's, with underscores */
    const struct dl_option *option;
    const char *type, *unit;
    double min, max; /* NAN: no range */
    int index;       /* in the table */
};
/* The column of that number from 0; false: there are no more. `index` is not set. */
bool dl_run_plan_column(int number, struct dl_run_plan_column *out);
/* Header line of a table with every column, and an example row. */
const char *dl_run_template(struct dl_arena *arena);

struct dl_shortfall; /* compare_cause.h */

struct dl_run_row { /* one row, resolved */
    const struct dl_system *system;
    const struct dl_workload *workload;
    const struct dl_framework *framework;
    /* the same object for runs that name this release and those for which it is assumed */
    const struct dl_framework *release;
    struct dl_plan plan;
    bool throughput; /* else iteration */
    double measured;
    double unit_ratio; /* measured / the value in the table's unit */
    double core_ratio; /* slowdown of its core against the prediction; NAN: not measured */
    double global_batch_samples; /* of all devices together; 0: unknown */
    const char *why;             /* not predictable */
    /* remark on the prediction; NULL: nothing */
    const char *release_remark; /* no release covers its version */
    const char *host_remark;    /* its host or core was slower than the model's */
};

/* The runs that differ only in the number of devices: those of the same batch per device, or
 * else of the same global batch. */
struct dl_run_group {
    bool whole; /* of the same global batch */
    /* the first run with the fewest devices that can be predicted; -1: no runs with other device
     * counts */
    int anchor;
    double measured; /* of that run; the median where it was measured several times */
};

struct dl_run_batch {
    int kind; /* the first row that is alike */
    double samples;
    int row;
};

struct dl_run_rows {
    const struct dl_data *data;
    const struct dl_csv *csv;
    int columns[DL_RUN_COLUMNS];             /* -1: not in the table */
    struct dl_run_plan_column *plan_columns; /* those in the table */
    int plan_column_count;
    struct dl_loaded_file *cache;
    int cache_count;
    struct dl_run_row *rows;
    struct dl_classes alike;     /* rows that differ in devices and batch alone */
    struct dl_classes batches;   /* of these, rows that differ in devices alone */
    struct dl_run_group *groups; /* of the first row of each such class */
    /* rows by kind and batch: of a device, of the whole job; room for rows of one batch */
    struct dl_run_batch *by_batch[2];
    int *near;
    struct dl_arena *arena;
};

/* Reads the whole table. A row that cannot be predicted has the reason in `why`; DL_ERR_INPUT for a
 * broken table. */
enum dl_code dl_run_rows_read(const struct dl_data *data, const struct dl_csv *csv,
                              struct dl_arena *arena, struct dl_run_rows *out, struct dl_err *err);

/* Parts of it: finds the columns of plan options; fills a plan from those of a row. DL_ERR_INPUT
 * for a cell that the option does not take. */
enum dl_code dl_run_plan_find(struct dl_run_rows *runs, struct dl_err *err);
enum dl_code dl_run_plan_read(const struct dl_run_rows *runs, int row, struct dl_plan *plan,
                              struct dl_err *err);
/* Real samples of a row without `dataset`: those of the workload's usual one, as for predict. */
enum dl_code dl_run_plan_dataset(const struct dl_run_rows *runs, const struct dl_workload *workload,
                                 struct dl_plan *plan, struct dl_err *err);
/* Whether all plan options of two rows have equal cells but for dp, which follows from devices. */
bool dl_run_plan_same(const struct dl_run_rows *runs, int row, int other);

/* "" where the table has no such column. */
const char *dl_run_cell(const struct dl_run_rows *runs, int row, enum dl_run_column column);
/* framework_version; where that is empty what pp_fix says ("pp_fix=True"). */
const char *dl_run_version(const struct dl_run_rows *r, int row);

int64_t dl_run_devices(const struct dl_run_row *run);

/* Fills `alike`, `batches` and `groups`; dl_run_rows_read calls it. */
void dl_run_groups_make(struct dl_run_rows *runs);
struct dl_run_group dl_run_group_of(const struct dl_run_rows *runs, int row);

/* What a run's cause is found from: the rows, their predictions, and what those of as many devices
 * share. */
struct dl_run_evidence {
    struct dl_run_rows runs;
    bool anchored;
    struct dl_prediction *kept;     /* numbers of each row's prediction */
    const struct dl_compared *rows; /* of the same numbers */
    struct dl_classes places;
    struct dl_shortfall *found; /* of the first row of each place; plan NULL: not looked for yet */
};
/* Finds the places; `runs`, `kept` and `rows` are there. */
void dl_run_evidence_make(struct dl_run_evidence *evidence);
/* Whether a run would be slower than its prediction's interval with that measured value. */
bool dl_run_is_slow(const struct dl_run_evidence *evidence, int row, double measured);
/* Why it is; a run that is. */
const struct dl_causes *dl_run_causes(const struct dl_run_evidence *evidence, int row,
                                      double measured, struct dl_arena *arena);
/* The program that measures the collectives of a run's library alone; NULL: none is known. */
const char *dl_run_benchmark(const struct dl_run_row *run);

#endif
