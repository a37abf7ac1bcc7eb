/* layer_inputs.h - times of layers that a framework's profiler measured, for predictions: --layers
 * FILE, or those of data/layers/. */
#ifndef DL_PREDICT_INPUTS_LAYER_INPUTS_H
#define DL_PREDICT_INPUTS_LAYER_INPUTS_H

#include "model/framework/layer_times.h"
#include "predict/inputs/inputs.h"

/* Fills inputs->layer_times from the file that --layers names, else from the files of data/layers/
 * that match. A named file that does not match is DL_ERR_USAGE with the reason. */
enum dl_code dl_layer_inputs_load(struct dl_context *context, struct dl_inputs *inputs,
                                  struct dl_err *err);
/* For many workloads at once (compare): data->layer_times is every --layers, or all of
 * data/layers/. */
enum dl_code dl_layer_inputs_all(struct dl_context *context, const struct dl_options *options,
                                 struct dl_data *data, struct dl_err *err);
/* Those for one framework; NULL: none. */
const struct dl_layer_times *dl_layer_inputs_for(const struct dl_inputs *inputs,
                                                 const struct dl_framework *framework);

#endif
