/* rows.h - predictions as rows of a table: one declaration for text, CSV and JSON. */
#ifndef DL_PREDICT_OUTPUT_ROWS_H
#define DL_PREDICT_OUTPUT_ROWS_H

#include "model/core/table.h"
#include "model/engine/energy.h"

struct dl_prediction_row {
    const struct dl_system *system;
    const struct dl_workload *workload;
    const struct dl_framework *framework;
    const struct dl_plan *plan;
    const struct dl_prediction *prediction;
    const struct dl_run_length *length; /* of a whole run; NULL: not asked for */
    const struct dl_rates *rates;       /* NULL: the system's own */
};
struct dl_throughput dl_rows_throughput(const struct dl_prediction_row *row);
struct dl_run_total dl_rows_total(const struct dl_prediction_row *row);

/* Power while the row's plan runs, and energy, carbon dioxide and cost of `time_s` of it. Of jobs
 * on nodes of different kinds only what the rates give. */
struct dl_power dl_rows_power(const struct dl_prediction_row *row);
struct dl_spending dl_rows_spending(const struct dl_prediction_row *row, double time_s);

/* Which columns the text shows besides iteration, rate, memory and bottleneck. PLAN: how the row
 * splits, shards and recomputes; RUN: time and cost of a whole run; with --long, LONG: the parts of
 * the iteration, TOKENS: tokens, model flop/s, MFU and HFU, LONG_RUN: energy and device-hours. */
enum {
    DL_ROWS_FRAMEWORK = 1,
    DL_ROWS_STRATEGY = 2,
    DL_ROWS_PLAN = 4,
    DL_ROWS_NODES = 8,
    DL_ROWS_RUN = 16,
    DL_ROWS_INPUT = 32,
    DL_ROWS_SCALING = 64,
    DL_ROWS_LONG = 128,
    DL_ROWS_TOKENS = 256,
    DL_ROWS_LONG_RUN = 512,
    DL_ROWS_RELEASE = 1024
};
struct dl_rows_style {
    unsigned show;
    bool in_s;       /* times in s instead of ms */
    bool tokens;     /* the rate is of tokens */
    bool no_gpus;    /* devices are no GPUs */
    bool short_plan; /* without micro-batch, schedule and virtual stages */
    bool no_share;   /* the bottleneck without its share */
    bool no_texts;   /* columns of text alone are absent */
};
/* The ZeRO stage that the strategy implies or the plan has; 0: none. */
int64_t dl_rows_zero(const struct dl_plan *plan);
/* "tp4 pp8 v2 mb1 selective zero1"; NULL: plain data parallelism. */
const char *dl_rows_plan_words(const struct dl_plan *plan, struct dl_arena *arena);
/* Whether a plan has more than data ranks. */
bool dl_rows_is_chosen(const struct dl_plan *plan);
/* "Plan of megatron-core: dp 8, tp 4, ...\n"; "" for plain data parallelism. */
const char *dl_rows_plan_text(const struct dl_prediction_row *row, struct dl_arena *arena);
void dl_rows_init(struct dl_table *table, struct dl_arena *arena,
                  const struct dl_rows_style *style);
void dl_rows_add(struct dl_table *table, const struct dl_prediction_row *row,
                 const struct dl_rows_style *style);
/* "148 (127-209)": with its 80 % interval; "7.22 of 16" GiB. */
const char *dl_rows_iteration_text(const struct dl_prediction *prediction, bool in_s,
                                   struct dl_arena *arena);
const char *dl_rows_memory_text(const struct dl_memory *memory, struct dl_arena *arena);
/* Begins the object of a row in the open JSON array, warnings included; the caller may add members
 * and ends it. */
void dl_rows_json_open(struct dl_json_writer *writer, const struct dl_prediction_row *row);

/* "15T tokens: 894070 iterations, 54.1 days ..., 2.13e+07 GPU-hours.\n"; "" without --tokens and
 * --epochs. */
const char *dl_rows_length_text(const struct dl_prediction_row *row, struct dl_arena *arena);

/* Memory of each pipeline stage with its margin, and the largest micro-batch that fits; "" where
 * the model has no stages. */
const char *dl_rows_stages_text(const struct dl_prediction *prediction, struct dl_arena *arena);

/* The shown-th longest of the prediction's times, in s; -INFINITY when there are no more terms.
 */
double dl_terms_least_shown_s(const struct dl_prediction *prediction, size_t shown,
                              struct dl_arena *arena);

#endif
