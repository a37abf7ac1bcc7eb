/* brief.h - predicted rows on one screen: at most 100 columns, the fastest first. */
#ifndef DL_PREDICT_OUTPUT_BRIEF_H
#define DL_PREDICT_OUTPUT_BRIEF_H

#include "predict/output/predicted.h"

/* A row for each framework or number of nodes. Of several frameworks: without the bound, plans that
 * do not fit where another does, and frameworks that behave exactly like one shown, which the line
 * after the table names. DL_FORMAT_LATEX: the table alone. */
const char *dl_predicted_brief(struct dl_context *context, const struct dl_predicted *p,
                               enum dl_format format);

#endif
