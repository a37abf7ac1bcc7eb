/* wrap.h - paragraphs broken into lines. */
#ifndef DL_PREDICT_MANUAL_WRAP_H
#define DL_PREDICT_MANUAL_WRAP_H

#include "model/core/text.h"

/* A paragraph broken at blanks before `width` columns. Its first line continues a line that is
 * `indent` columns long; the others are indented by as many. A newline begins another one. NULL
 * fails. */
void dl_text_wrap(struct dl_text *t, const char *text, int indent, int width);

#endif
