/* heterogeneous_search.h - `search --heterogeneous`: which nodes a job takes, and which of several
 * jobs goes to which kind of node. */
#ifndef DL_PREDICT_OUTPUT_HETEROGENEOUS_SEARCH_H
#define DL_PREDICT_OUTPUT_HETEROGENEOUS_SEARCH_H

#include "model/search/placement.h"
#include "predict/inputs/inputs.h"

/* Prints at most `top` choices for inputs->heterogeneous, or with jobs ("resnet50,vgg16") their
 * placement. DL_ERR_NO when nothing fits. */
enum dl_code dl_heterogeneous_search(struct dl_context *context, const struct dl_options *options,
                                     const struct dl_inputs *inputs,
                                     const struct dl_framework *framework,
                                     enum dl_placement_objective objective, const char *jobs,
                                     int64_t top, enum dl_format format, struct dl_err *err);

#endif
