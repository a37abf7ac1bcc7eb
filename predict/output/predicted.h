/* predicted.h - results of `predict`: one row for each framework and number of nodes, the
 * recommendation (recommend.c), the matrix (matrix.c), warnings and omissions
 * (predicted_notes.c). */
#ifndef DL_PREDICT_OUTPUT_PREDICTED_H
#define DL_PREDICT_OUTPUT_PREDICTED_H

#include "model/engine/advice.h"
#include "predict/inputs/inputs.h"
#include "predict/output/gains.h"
#include "predict/output/rows.h"

struct dl_predicted_row {
    struct dl_plan plan;
    struct dl_prediction prediction;
    const struct dl_framework *framework;
};
struct dl_predicted_skip {
    const char *framework, *strategy, *why; /* strategy NULL: the only one requested */
    int64_t nodes;
    bool is_bound;
};
struct dl_predicted {
    const struct dl_inputs *inputs;
    struct dl_predicted_row *rows;
    struct dl_predicted_skip *skipped;
    int count, skipped_count;
    bool every_strategy; /* --strategy all */
    struct dl_advice_limits limits;
};

/* A plan and its prediction with the inputs that they are of. */
struct dl_prediction_row dl_row_of(const struct dl_inputs *inputs,
                                   const struct dl_framework *framework, const struct dl_plan *plan,
                                   const struct dl_prediction *prediction);
struct dl_prediction_row dl_predicted_row_of(const struct dl_inputs *inputs,
                                             const struct dl_predicted_row *row);

/* The fastest row that fits, of the best frameworks there are (maintained ones before retired ones,
 * these before lossy and asynchronous ones, a bound last); NULL: none fits. */
const struct dl_predicted_row *dl_recommend_fastest(const struct dl_predicted *p);
/* F-TIE: of the rows tied with that one, on as many nodes, the one whose plan splits and shards
 * least; the fastest of these. NULL: none fits. */
const struct dl_predicted_row *dl_recommend(const struct dl_predicted *p);
/* Sentences on both: speed, interval, bottleneck, ties; and the command that shows every term. */
const char *dl_recommend_text(struct dl_arena *arena, const struct dl_predicted *p);
const char *dl_recommend_command(struct dl_context *context, const struct dl_options *options,
                                 const struct dl_predicted *p);
/* A member "recommendation" of the open object; nothing where no plan fits. */
void dl_recommend_json(struct dl_json_writer *w, const struct dl_predicted *p,
                       const struct dl_gains *gains);

/* A row for each framework or number of nodes, the fastest framework first. Text: at most 100
 * columns; of several frameworks without the bound, plans that do not fit where another does, and
 * frameworks that behave exactly like one shown, which the line after the table names. every_row:
 * all rows and columns. CSV: every row, in the order of the prediction. */
const char *dl_predicted_table(struct dl_context *context, const struct dl_predicted *p,
                               enum dl_format format, bool every_row);

/* Frameworks x numbers of nodes, fastest first: throughput, and efficiency, memory and bottleneck
 * on the most nodes. */
const char *dl_predicted_matrix(struct dl_context *context, const struct dl_predicted *p);

/* Warnings, each kind once with its frameworks; omitted rows with their reasons. */
void dl_predicted_note_warnings(struct dl_context *context, const struct dl_predicted *p);
void dl_predicted_note_skipped(struct dl_context *context, const struct dl_predicted *p);

#endif
