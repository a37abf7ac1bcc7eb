/* template.h - a file of a format to fill in: `schema KIND --template`. */
#ifndef DL_PREDICT_MANUAL_TEMPLATE_H
#define DL_PREDICT_MANUAL_TEMPLATE_H

#include "model/core/json.h"

/* A JSON text whose values say what belongs there; NULL: no template of that format. */
const char *dl_template_text(const struct dl_schema *schema, struct dl_arena *arena);

#endif
