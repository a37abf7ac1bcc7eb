/* heterogeneous_search.h - `search --heterogeneous`: which nodes a job takes, which of its parts
 * runs where, and which of several jobs goes to which kind of node. */
#ifndef DL_PREDICT_OUTPUT_HETEROGENEOUS_SEARCH_H
#define DL_PREDICT_OUTPUT_HETEROGENEOUS_SEARCH_H

#include "model/search/placement.h"
#include "model/core/table.h"
#include "predict/inputs/inputs.h"

/* What is placed: whole replicas, stages of a pipeline, or workers, servers and input. */
enum dl_place { DL_PLACE_NODES, DL_PLACE_STAGES, DL_PLACE_PARTS };
extern const char *const dl_place_names[]; /* "nodes","stages","parts", NULL */

struct dl_heterogeneous_request {
    const struct dl_options *options; /* of the command */
    const struct dl_inputs *inputs;
    const struct dl_framework *framework;
    enum dl_placement_objective objective;
    enum dl_place place;
    const char *jobs; /* "resnet50,vgg16": their placement instead; NULL: none */
    int64_t top;      /* choices to print at most */
    enum dl_format format;
};

/* Prints choices for inputs->heterogeneous. DL_ERR_NO when nothing fits. */
enum dl_code dl_heterogeneous_search(struct dl_context *context,
                                     const struct dl_heterogeneous_request *request,
                                     struct dl_err *err);

/* Table and sentence as text, or as CSV or JSON named `format_name`. */
enum dl_code dl_heterogeneous_put(struct dl_context *context,
                                  const struct dl_heterogeneous_request *request,
                                  const char *format_name, struct dl_table *table,
                                  const char *sentence, struct dl_err *err);
/* Stages and parts (heterogeneous_parts.c). */
enum dl_code dl_heterogeneous_stages(struct dl_context *context,
                                     const struct dl_heterogeneous_request *request,
                                     struct dl_err *err);
enum dl_code dl_heterogeneous_parts(struct dl_context *context,
                                    const struct dl_heterogeneous_request *request,
                                    struct dl_err *err);

#endif
