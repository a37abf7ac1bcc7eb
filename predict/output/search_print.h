/* search_print.h - the results of a search, as text, CSV and JSON. */
#ifndef DL_PREDICT_OUTPUT_SEARCH_PRINT_H
#define DL_PREDICT_OUTPUT_SEARCH_PRINT_H

#include "model/search/limits.h"
#include "model/search/search.h"
#include "predict/inputs/inputs.h"
#include "predict/output/rows.h"
#include "predict/output/search_neighbors.h"

struct dl_searched {
    const struct dl_plan *plan;
    const struct dl_prediction *prediction;
    const struct dl_framework *framework; /* with the plan's settings */
    const char *command;                  /* that gives the prediction again */
    bool front;                           /* nothing beats it in time, memory and devices */
    bool cost_front;                      /* of those: nothing beats it in time, cost and energy */
    bool tied;                            /* its interval reaches that of the best plan */
};

struct dl_search_report {
    const struct dl_inputs *inputs;
    const struct dl_framework *framework;
    const struct dl_search_worker *found;
    const struct dl_searched *rows;
    int row_count; /* best first */
    const struct dl_searched *front;
    int front_count;                                   /* by time */
    const struct dl_limits *limits;                    /* of the best; NULL: none */
    struct dl_search_neighbor neighbors[DL_NEIGHBORS]; /* of the best; text alone */
    int neighbor_count;
    const char *objective;
    double elapsed_s;
    int threads;
    bool every_row; /* --long */
};

struct dl_prediction_row dl_searched_row(const struct dl_search_report *report,
                                         const struct dl_searched *row);

enum dl_code dl_search_print(struct dl_context *context, const struct dl_options *options,
                             const struct dl_search_report *report, enum dl_format format,
                             struct dl_err *err);

/* "dp32 tp4 pp2 v4 mb1 zero2 sp"; sp: sequence parallelism. */
const char *dl_search_plan_text(const struct dl_plan *plan, struct dl_arena *arena);

/* Fails with why no plan is left, and which one is nearest. */
enum dl_code dl_search_nothing(struct dl_arena *arena, const struct dl_search *search,
                               const struct dl_search_request *request,
                               const struct dl_search_worker *found, struct dl_err *err);

/* Plans of files that --shard wrote as CSV, into the worker. */
enum dl_code dl_search_read(const char *path, const struct dl_search_request *request,
                            struct dl_arena *arena, struct dl_search_worker *into,
                            struct dl_err *err);

#endif
