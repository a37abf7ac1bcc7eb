/* compare.h - predictions next to measurements: runs, collectives, kernels. */
#ifndef DL_PREDICT_COMPARE_COMPARE_H
#define DL_PREDICT_COMPARE_COMPARE_H

#include "model/catalog/command.h"
#include "model/core/csv.h"
#include "model/engine/predict.h"

/* The plan that a row of runs became, and the numbers of its prediction without terms and warnings.
 */
struct dl_modelled {
    const struct dl_system *system;
    const struct dl_workload *workload;
    const struct dl_framework *framework;
    const struct dl_plan *plan;
    const struct dl_prediction *prediction;
};

/* What a run has in common with the alternatives of a job, and what it is among them (decisions.h).
 * "" or NULL: no job. */
struct dl_decision_keys {
    const char *plans, *plan;           /* alternatives: plans */
    const char *frameworks, *framework; /* alternatives: frameworks */
};

struct dl_run_evidence; /* compare_runs.h */
struct dl_causes;       /* compare_cause.h */

struct dl_compared {
    const char *id, *source, *system, *unit;
    double predicted, measured, error_pct; /* error = (predicted - measured) / measured */
    double low, high;                      /* 80 % interval of the prediction; NAN: none */
    const char *bottleneck;                /* runs; NULL for others */
    const char *framework, *workload;      /* runs */
    int64_t devices;
    /* why a row is slower than its interval: the ranked causes, and their text; NULL: it is not */
    const struct dl_causes *causes;
    const char *cause;
    /* of the measured run: the prediction's, or the likeliest cause's; NULL: unknown */
    const char *measured_bottleneck;
    const char *remark; /* remark on the prediction; NULL */
    bool skipped;
    const char *why;                  /* of a skipped row */
    double samples_per_iteration;     /* runs: of all devices; NAN when not predicted */
    struct dl_modelled modelled;      /* runs; all NULL when not predicted */
    struct dl_decision_keys decision; /* runs: the job of which it is an alternative */
    double iteration_s;               /* runs: predicted; NAN when not */
    bool elsewhere;                   /* another part of the comparison does it */
    /* runs: where the causes of slow ones come from, and its number there; NULL for others */
    const struct dl_run_evidence *evidence;
    int run;
};

/* Rows by their case and their measured value, 12 bytes each. */
enum { DL_ROW_BLOCK = 16384 };
struct dl_row_block {
    int of[DL_ROW_BLOCK];          /* the case */
    double measured[DL_ROW_BLOCK]; /* in the unit of the table; NAN: the case's own */
};
struct dl_row_list {
    struct dl_row_block **blocks;
    int count;
};
/* DL_ERR_SYSTEM: more than INT_MAX rows. */
enum dl_code dl_row_list_add(struct dl_row_list *list, int of, double measured,
                             struct dl_arena *arena, struct dl_err *err);

struct dl_comparison {
    struct dl_compared
        *rows; /* rows of the tables or, with `listed`, cases: what equal runs share */
    int count;
    struct dl_arena *arena;
    /* this process does part I of N of the rows; 0 of 0 or 1: all */
    int64_t part_index, part_count;
    bool listed;             /* the rows are in `list` */
    struct dl_row_list list; /* `of`: number in `rows` */
};
/* The number of rows of the tables. */
int dl_comparison_row_count(const struct dl_comparison *comparison);
/* The number in `rows` of that row's case. */
int dl_comparison_case(const struct dl_comparison *comparison, int row);
/* Row number `row`. A row that shares its case has the id of the case's first row. `scratch`: for
 * its causes; NULL: `cause` is NULL, or any text where there is one. */
struct dl_compared dl_comparison_row(const struct dl_comparison *comparison, int row,
                                     struct dl_arena *scratch);
/* Whether this shard has item number `place`. */
bool dl_comparison_mine(const struct dl_comparison *comparison, int64_t place);

/* Room for one more row. */
struct dl_compared *dl_comparison_add(struct dl_comparison *comparison);
/* Sets the causes of a row, their text and the bottleneck that follows; NULL: as predicted. */
void dl_compared_explain(struct dl_compared *row, const struct dl_causes *causes,
                         struct dl_arena *arena);

/* One table of measurements each; the header determines their kind. DL_ERR_INPUT for a broken
 * table; a row that cannot be predicted is added as skipped, with the reason. */
/* Whether the header is that of a table of runs. */
bool dl_compare_is_runs(const struct dl_csv *csv);
/* Names of the columns of a table of runs that have no part in a prediction; NULL: none. */
const char *dl_run_columns_left_out(const struct dl_csv *csv, struct dl_arena *arena);
/* Any of the four kinds; anchor is an error for all but runs. */
enum dl_code dl_compare_table(const struct dl_data *data, const struct dl_csv *csv, bool anchor,
                              struct dl_comparison *out, struct dl_err *err);
enum dl_code dl_compare_runs(const struct dl_data *data, const struct dl_csv *csv, bool anchor,
                             struct dl_comparison *out, struct dl_err *err);
enum dl_code dl_compare_collectives(const struct dl_data *data, const struct dl_csv *csv,
                                    struct dl_comparison *out, struct dl_err *err);
/* The same from samples of the same machine in the table, as a calibrated profile holds them: five
 * folds over the sizes of each series, or every rank count from the others. DL_ERR_USAGE for other
 * tables. */
enum dl_calibrated { DL_CALIBRATED_SIZES, DL_CALIBRATED_RANKS };
enum dl_code dl_compare_calibrated(const struct dl_data *data, const struct dl_csv *csv,
                                   enum dl_calibrated mode, struct dl_comparison *out,
                                   struct dl_err *err);
/* Two rows each: size and time; costs from the probe in the table (checkpoint_cost.h). */
enum dl_code dl_compare_checkpoints(const struct dl_data *data, const struct dl_csv *csv,
                                    struct dl_comparison *out, struct dl_err *err);
enum dl_code dl_compare_kernels(const struct dl_data *data, const struct dl_csv *csv,
                                struct dl_comparison *out, struct dl_err *err);

/* Errors of a group of rows; rows that are not predicted are counted separately. */
struct dl_error_summary {
    const char *kind, *group; /* "source", "system", "all" */
    int64_t rows, skipped;
    double mape_pct, median_ape_pct, p90_ape_pct, max_ape_pct;
    double bias_pct; /* NAN where some rows hold times and others rates: their signs differ */
    /* interval coverage: measurements inside the 80 % interval of their prediction; NAN: none */
    double inside_pct;
    double interval_ratio_median; /* upper end / lower end of the intervals; NAN: none */
    /* of the errors of the time, positive where the prediction is too slow: their sizes, and their
     * mean */
    double time_mape_pct, time_median_ape_pct, time_p90_ape_pct, time_max_ape_pct, time_bias_pct;
    double interval_score; /* F-INTERVAL-SCORE, mean; smaller is better; NAN: no intervals */
};

/* (predicted - measured) / measured of the time [%], also where the row holds a rate; NAN where it
 * is not predicted. */
double dl_compared_time_error_pct(const struct dl_compared *row);

/* By source, by system, "all" and "all-by-source" (macro-average over sources). *out
 * in the arena. */
void dl_compare_summarize(const struct dl_comparison *comparison, struct dl_error_summary **out,
                          int *count_out);

/* A table of summaries. */
void dl_compare_summary_init(struct dl_table *table, struct dl_arena *arena);
void dl_compare_summary_row(struct dl_table *table, const struct dl_error_summary *summary);

#endif
