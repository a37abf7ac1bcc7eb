/* search_inputs.h - which of the inputs a search takes. */
#ifndef DL_PREDICT_INPUTS_SEARCH_INPUTS_H
#define DL_PREDICT_INPUTS_SEARCH_INPUTS_H

#include "predict/inputs/inputs.h"

/* DL_ERR_USAGE: several frameworks, or what search finds itself. */
enum dl_code dl_search_check(const struct dl_inputs *inputs, struct dl_err *err);

/* The framework that was given; else Megatron for transformers, Megatron-Core where devices are
 * newer, and for other networks, which its axes cannot split, the bound. Notes what it chose. */
enum dl_code dl_search_choose_framework(struct dl_context *context, struct dl_inputs *inputs,
                                        const struct dl_framework **out, struct dl_err *err);

#endif
