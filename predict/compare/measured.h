/* measured.h - --measured FILE: a few runs of one's own correct the predictions of everything else
 * on that system and framework. F-POSTERIOR */
#ifndef DL_PREDICT_COMPARE_MEASURED_H
#define DL_PREDICT_COMPARE_MEASURED_H

#include "predict/options/input_options.h"

/* Reads the table of runs, and corrects each framework of `inputs` (whose system is loaded) by its
 * runs on this system. DL_ERR_USAGE where no run is of this system and one of the frameworks,
 * unless the table is there for all predictions (`if_it_fits`). */
enum dl_code dl_measured_load(struct dl_context *context, const struct dl_data *data,
                              const char *path, struct dl_inputs *inputs, struct dl_err *err);

#endif
