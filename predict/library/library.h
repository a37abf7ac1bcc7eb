/* library.h - what the files of libdlmodel share. */
#ifndef DL_PREDICT_LIBRARY_LIBRARY_H
#define DL_PREDICT_LIBRARY_LIBRARY_H

#include <locale.h>

#include "include/dlmodel.h"
#include "model/cli/command.h"

#define DL_PUBLIC __attribute__((visibility("default")))

struct dlmodel_context {
    struct dl_store *store;
    char *directory, *local_profile;
    const char *directories[1];
    locale_t plain; /* numbers with a point, whatever locale the program has set */
    bool names_only;
};

/* The context as commands see it, for one call. */
struct dl_data dl_library_data(struct dlmodel_context *context);
/* DL_ERR_SYSTEM where the data directory is missing. */
enum dl_code dl_library_check(const struct dlmodel_context *context, struct dl_err *err);

#endif
