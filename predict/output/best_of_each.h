/* best_of_each.h - `predict` and `search` for a comma-separated list of systems: the best plan on
 * each, one line a system. */
#ifndef DL_PREDICT_OUTPUT_BEST_OF_EACH_H
#define DL_PREDICT_OUTPUT_BEST_OF_EACH_H

#include "model/catalog/command.h"
#include "model/engine/predict.h"

/* On one system, with one framework; all in the arena of the context. */
struct dl_best {
    const char *system, *framework, *precision, *plan;
    const char *command; /* that predicts it again */
    const struct dl_prediction *prediction;
    int64_t devices;
};
typedef enum dl_code dl_best_fn(struct dl_context *context, const struct dl_options *options,
                                struct dl_best *out, struct dl_err *err);

/* Whether option `name` is a list. */
bool dl_best_is_list(const struct dl_options *options, const char *name);

/* Calls `find` with each system of the list; each_framework: and with each framework of that list
 * in turn. Prints the fastest first, then why others have no plan. DL_ERR_USAGE for a system that
 * does not exist; DL_ERR_NO where none has a plan. */
enum dl_code dl_best_of_each(struct dl_context *context, const struct dl_options *options,
                             dl_best_fn *find, bool each_framework, struct dl_err *err);

#endif
