/* data_parts.h - shared by data.c and data_find.c. Private to them. */
#ifndef DL_MODEL_CLI_DATA_PARTS_H
#define DL_MODEL_CLI_DATA_PARTS_H

#include "model/cli/data.h"

extern const struct dl_data_kind_words {
    const char *word, *folder, *prefix; /* prefix: of --set keys */
} dl_data_kinds[];                      /* by enum dl_data_kind */
extern const int dl_data_kind_count;

/* A name that contains '/' or ends in ".json". */
bool dl_data_is_path(const char *name);
/* Existing but unreadable files count as present: reading them reports the error. */
bool dl_data_exists(const char *path);

#endif
