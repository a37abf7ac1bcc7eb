/* rates.h - options for what a job costs: price of a node, power, carbon of the electricity. */
#ifndef DL_PREDICT_INPUTS_RATES_H
#define DL_PREDICT_INPUTS_RATES_H

#include "model/core/option.h"
#include "model/engine/advice.h"
#include "predict/inputs/inputs.h"

extern const struct dl_option dl_rates_options[];
/* Strings of *out live as long as the options and the arena. DL_ERR_USAGE names the option. */
enum dl_code dl_rates_read(const struct dl_options *options, struct dl_arena *arena,
                           struct dl_rates *out, struct dl_err *err);

extern const struct dl_option dl_limits_options[];
/* --deadline and --budget of a run, whose length and price must be known. DL_ERR_USAGE otherwise,
 * and where the budget has another currency than the price. */
enum dl_code dl_limits_read(const struct dl_options *options, const struct dl_inputs *inputs,
                            struct dl_arena *arena, struct dl_advice_limits *out,
                            struct dl_err *err);

/* "500", "500EUR", "3.5 USD": an amount above 0 and its currency, or NULL. */
enum dl_code dl_amount_parse(const char *option, const char *text, struct dl_arena *arena,
                             double *amount, const char **currency, struct dl_err *err);

#endif
