/* advice_print.h - what a job costs, and how many nodes to take, as text and JSON. */
#ifndef DL_PREDICT_OUTPUT_ADVICE_PRINT_H
#define DL_PREDICT_OUTPUT_ADVICE_PRINT_H

#include "model/core/json.h"
#include "model/engine/advice.h"
#include "predict/output/rows.h"

/* "Power: 15.3 kW (8 devices ...); 90 epochs: 52 kWh, 298 USD ...\n"; "" without a run length
 * and rates. */
const char *dl_spending_text(const struct dl_prediction_row *row, struct dl_arena *arena);

/* A clause: why a framework that is retired or asynchronous is not recommended. */
const char *dl_reservation_text(const struct dl_framework *framework);

enum { DL_ADVICE_ROWS = 64 };
/* Predictions of one framework on several numbers of nodes. */
struct dl_advice_request {
    struct dl_prediction_row rows[DL_ADVICE_ROWS]; /* ascending nodes: dl_advice_add */
    struct dl_advice_point points[DL_ADVICE_ROWS];
    int count;
    struct dl_advice_limits limits;
    struct dl_arena *arena;
};
/* Beyond DL_ADVICE_ROWS rows are left out. */
void dl_advice_add(struct dl_advice_request *request, const struct dl_prediction_row *row);
/* "" for fewer than two rows. */
const char *dl_advice_text(const struct dl_advice_request *request);
/* A member "advice" of the open object; nothing for fewer than two rows. */
void dl_advice_json(struct dl_json_writer *writer, const struct dl_advice_request *request);

#endif
