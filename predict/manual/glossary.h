/* glossary.h - the words of the answers, for 'dlmodel help'. */
#ifndef DL_PREDICT_MANUAL_GLOSSARY_H
#define DL_PREDICT_MANUAL_GLOSSARY_H

#include <stdbool.h>

#include "model/core/text.h"

/* All terms with their meanings. */
void dl_glossary(struct dl_text *t);

/* Finds a term by its name or synonym. Returns false if there is none. */
bool dl_glossary_term(struct dl_text *t, const char *name);

#endif
