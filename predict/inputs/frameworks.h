/* frameworks.h - the frameworks that --framework names, in the release that --release names. */
#ifndef DL_PREDICT_INPUTS_FRAMEWORKS_H
#define DL_PREDICT_INPUTS_FRAMEWORKS_H

#include "predict/inputs/inputs.h"

/* --release takes what column `framework_version` takes; a version that no file describes is noted.
 * DL_ERR_USAGE: no such framework, or a release that is no version and that none of them has. */
enum dl_code dl_inputs_frameworks(struct dl_context *context, const struct dl_data *data,
                                  struct dl_inputs *out, struct dl_err *err);

#endif
