/* name_hint.h - the error for an unknown name, with suggestions. */
#ifndef DL_MODEL_CORE_NAME_HINT_H
#define DL_MODEL_CORE_NAME_HINT_H

#include "model/core/arena.h"
#include "model/core/status.h"

/* DL_ERR_USAGE: there is no `word` called `name`. Suggests those of `names` (NULL-terminated) that
 * contain it, else the nearest one, else `dlmodel list LISTED`. */
enum dl_code dl_name_hint(const char *word, const char *listed, const char *name,
                          const char *const *names, struct dl_arena *arena, struct dl_err *err);

#endif
