/* library.h - what the files of libdlmodel share. */
#ifndef DL_LIBRARY_LIBRARY_H
#define DL_LIBRARY_LIBRARY_H

#include <locale.h>
#include <pthread.h>

#include "include/dlmodel.h"
#include "model/catalog/command.h"
#include "model/framework/cost_memo.h"

#define DL_PUBLIC __attribute__((visibility("default")))

/* Kernel times that calls leave to later ones, each in the hands of one call at a time. */
struct dl_lent_memo {
    struct dl_lent_memo *next;
    struct dl_arena arena;
    struct dl_cost_memo memo;
};

struct dlmodel_context {
    struct dl_store *store;
    char *directory, *local_profile;
    const char *directories[1];
    locale_t plain; /* numbers with a decimal point in every locale */
    bool names_only;
    pthread_mutex_t lock; /* of `memos` */
    struct dl_lent_memo *memos;
};

/* The context as commands see it, for one call. */
struct dl_data dl_library_data(struct dlmodel_context *context);
/* DL_ERR_SYSTEM where the data directory is missing. */
enum dl_code dl_library_check(const struct dlmodel_context *context, struct dl_err *err);

/* A memo for one call; NULL where memory is exhausted. It goes back when the call's objects end,
 * with the call's code: a call that ran out of memory may have left an entry half made. */
struct dl_lent_memo *dl_library_lend(struct dlmodel_context *context);
void dl_library_take_back(struct dlmodel_context *context, struct dl_lent_memo *lent,
                          enum dl_code code);

#endif
