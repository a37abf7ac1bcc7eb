/* name_hint.h - what to say about a name that there is not. */
#ifndef DL_MODEL_BASE_NAME_HINT_H
#define DL_MODEL_BASE_NAME_HINT_H

#include "model/base/arena.h"
#include "model/base/status.h"

/* DL_ERR_USAGE: no `word` of that name, with the names (NULL-terminated) that hold it, or the
 * nearest one, or how to list them all (dlmodel list `listed`). */
enum dl_code dl_name_hint(const char *word, const char *listed, const char *name,
                          const char *const *names, struct dl_arena *arena, struct dl_err *err);

#endif
