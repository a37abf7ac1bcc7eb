/* heterogeneous_inputs.h - --heterogeneous and --split: reads and prints jobs whose nodes are of
 * several systems. */
#ifndef DL_PREDICT_INPUTS_HETEROGENEOUS_INPUTS_H
#define DL_PREDICT_INPUTS_HETEROGENEOUS_INPUTS_H

#include "model/search/heterogeneous.h"
#include "predict/inputs/inputs.h"

extern const struct dl_option dl_heterogeneous_options[];

/* Reads the job that --heterogeneous names into inputs->heterogeneous (NULL without it) and its
 * systems through `data`; inputs->system becomes one named after all of them. DL_ERR_USAGE together
 * with --system or --nodes. */
enum dl_code dl_heterogeneous_load(struct dl_context *context, const struct dl_data *data,
                                   const struct dl_options *options, struct dl_inputs *inputs,
                                   struct dl_err *err);

/* A table of the groups of the prediction, one row each; "" when the job is homogeneous. */
const char *dl_heterogeneous_text(struct dl_arena *arena, const struct dl_prediction *prediction);
/* The member "groups" of the open object; nothing when the job is homogeneous. */
void dl_heterogeneous_json(struct dl_json_writer *writer, const struct dl_prediction *prediction);

#endif
