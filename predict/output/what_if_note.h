/* what_if_note.h - reports each --set of the machine that changed nothing, with the reason. */
#ifndef DL_PREDICT_OUTPUT_WHAT_IF_NOTE_H
#define DL_PREDICT_OUTPUT_WHAT_IF_NOTE_H

#include "predict/inputs/inputs.h"

/* F-WHAT-IF: predicts the frameworks (`framework`, or all of the inputs where it is NULL) without
 * each --set of the system or its device in turn. One on which no figure depends is named on
 * stderr, with the reason. */
enum dl_code dl_what_if_note(struct dl_context *context, const struct dl_options *options,
                             const struct dl_inputs *inputs, const struct dl_framework *framework,
                             struct dl_err *err);

#endif
