/* checkpoint_inputs.h - --checkpoint: reads the option and prints its result. */
#ifndef DL_PREDICT_OUTPUT_CHECKPOINT_INPUTS_H
#define DL_PREDICT_OUTPUT_CHECKPOINT_INPUTS_H

#include "model/search/checkpoint.h"
#include "predict/inputs/inputs.h"
#include "predict/output/rows.h"

extern const struct dl_option dl_checkpoint_options[];

/* Names of the formats that --checkpoint-format gives, in names[DL_CHECKPOINT_FORMATS]; without it
 * one that is NULL, the framework's own. */
enum { DL_CHECKPOINT_FORMATS = 32 };
enum dl_code dl_checkpoint_formats_asked(struct dl_context *context,
                                         const struct dl_options *options, const char **names,
                                         int *count, struct dl_err *err);

/* The format and its costs that the options give for the row's framework, or for `name` instead.
 * The costs come from --checkpoint-probe, else from a table of a probe in data/checkpoints/. *way's
 * parts live in the arena. DL_ERR_USAGE: no such format. */
enum dl_code dl_checkpoint_way_read(struct dl_context *context, const struct dl_options *options,
                                    const struct dl_framework *framework, const char *name,
                                    struct dl_checkpoint_way *way, struct dl_err *err);

/* Costs of each format that --checkpoint-format lists, or of the framework's own, and sentences
 * about the first of them; "" and an empty table without --checkpoint. */
enum dl_code dl_checkpoint_table(struct dl_context *context, const struct dl_options *options,
                                 const struct dl_prediction_row *row, struct dl_table *table,
                                 const char **sentences, struct dl_err *err);
/* Sentences for the row, with a table where --checkpoint-format lists several; "" without
 * --checkpoint. */
enum dl_code dl_checkpoint_text(struct dl_context *context, const struct dl_options *options,
                                const struct dl_prediction_row *row, const char **out,
                                struct dl_err *err);
/* The member "checkpoint" of the open object; nothing without --checkpoint. */
enum dl_code dl_checkpoint_json(struct dl_context *context, const struct dl_options *options,
                                const struct dl_prediction_row *row, struct dl_json_writer *writer,
                                struct dl_err *err);

#endif
