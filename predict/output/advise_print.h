/* advise_print.h - advice as a table with its best combination, and as JSON. */
#ifndef DL_PREDICT_OUTPUT_ADVISE_PRINT_H
#define DL_PREDICT_OUTPUT_ADVISE_PRINT_H

#include "predict/inputs/adviser.h"

enum dl_code dl_advise_print(struct dl_context *context, const struct dl_options *options,
                             const struct dl_advise_report *report, enum dl_format format,
                             struct dl_err *err);

#endif
