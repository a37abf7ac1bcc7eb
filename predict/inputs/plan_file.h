/* plan_file.h - --plan FILE: the options that a script, a configuration or a log of a training
 * says, as if they stood on the command line, whose own options win. */
#ifndef DL_PREDICT_INPUTS_PLAN_FILE_H
#define DL_PREDICT_INPUTS_PLAN_FILE_H

#include "model/catalog/command.h"

/* Adds the options of the file that the command takes and that are not given; notes say what
 * differs and what is not modelled. Without --plan: nothing. DL_ERR_INPUT, DL_ERR_USAGE. */
enum dl_code dl_plan_file_apply(struct dl_context *context, const struct dl_command *command,
                                struct dl_options *options, struct dl_err *err);

#endif
