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

/* Columns of a prediction, with what each means, for `schema prediction`: key (a dot: member of a
 * nested object), type and SI unit. False beyond the last. */
struct dl_row_field {
    const char *key, *type, *unit, *help;
};
bool dl_rows_field(int index, struct dl_row_field *out);

/* What the text shows besides: the strategy of each row; tokens, model flop/s, MFU and HFU; how
 * the row splits, shards and recomputes; time, cost, energy and device-hours of a whole run. */
enum { DL_ROWS_STRATEGY = 1, DL_ROWS_TOKENS = 2, DL_ROWS_PLAN = 4, DL_ROWS_RUN = 8 };
/* The ZeRO stage that the strategy implies or the plan has; 0: none. */
int64_t dl_rows_zero(const struct dl_plan *plan);
/* "tp4 pp8 v2 mb1 selective zero1"; NULL: plain data parallelism. */
const char *dl_rows_plan_words(const struct dl_plan *plan, struct dl_arena *arena);
/* Whether a plan has more than data ranks. */
bool dl_rows_is_chosen(const struct dl_plan *plan);
/* "Plan of megatron-core: dp 8, tp 4, ...\n"; "" for plain data parallelism. */
const char *dl_rows_plan_text(const struct dl_prediction_row *row, struct dl_arena *arena);
void dl_rows_init(struct dl_table *table, struct dl_arena *arena, unsigned show);
void dl_rows_add(struct dl_table *table, const struct dl_prediction_row *row);
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
