/* checkpoint_inputs.h - --checkpoint: reads the option and prints its result. */
#ifndef DL_PREDICT_INPUTS_CHECKPOINT_INPUTS_H
#define DL_PREDICT_INPUTS_CHECKPOINT_INPUTS_H

#include "model/search/checkpoint.h"
#include "predict/inputs/inputs.h"
#include "predict/output/rows.h"

extern const struct dl_option dl_checkpoint_options[];

/* Sentences for the row; "" without --checkpoint. */
enum dl_code dl_checkpoint_text(struct dl_context *context, const struct dl_options *options,
                                const struct dl_prediction_row *row, const char **out,
                                struct dl_err *err);
/* The member "checkpoint" of the open object; nothing without --checkpoint. */
enum dl_code dl_checkpoint_json(const struct dl_options *options,
                                const struct dl_prediction_row *row, struct dl_json_writer *writer,
                                struct dl_err *err);

#endif
