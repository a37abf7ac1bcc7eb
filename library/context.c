/* context.c - the data that calls share. */
#include "library/library.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "model/catalog/store.h"

#ifndef DLMODEL_DATADIR
#define DLMODEL_DATADIR "/usr/local/share/dlmodel/data"
#endif
#ifndef DLMODEL_VERSION
#define DLMODEL_VERSION "unknown"
#endif

DL_PUBLIC const char *dlmodel_version(void) { return DLMODEL_VERSION; }

static const char *default_directory(void) {
    const char *environment = getenv("DLMODEL_DATA");
    return environment != NULL && environment[0] != 0 ? environment : DLMODEL_DATADIR;
}

DL_PUBLIC void dlmodel_context_close(struct dlmodel_context *c) {
    if (c == NULL) return;
    for (struct dl_lent_memo *m = c->memos, *next; m != NULL; m = next) {
        next = m->next;
        dl_arena_free(&m->arena);
        free(m);
    }
    pthread_mutex_destroy(&c->lock);
    dl_store_close(c->store);
    if (c->plain != (locale_t)0) freelocale(c->plain);
    free(c->directory);
    free(c->local_profile);
    free(c);
}

DL_PUBLIC struct dlmodel_context *dlmodel_context_open(const struct dlmodel_settings *settings) {
    static const struct dlmodel_settings defaults = {.data_directory = NULL};
    const struct dlmodel_settings *s = settings != NULL ? settings : &defaults;
    struct dlmodel_context *c = calloc(1, sizeof *c);
    if (c == NULL) return NULL;
    if (pthread_mutex_init(&c->lock, NULL) != 0) {
        free(c);
        return NULL;
    }
    c->store = dl_store_open();
    c->directory = strdup(s->data_directory != NULL ? s->data_directory : default_directory());
    c->local_profile = s->local_profile != NULL ? strdup(s->local_profile) : NULL;
    c->plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    c->names_only = s->names_only != 0;
    if (c->store == NULL || c->directory == NULL || c->plain == (locale_t)0 ||
        (s->local_profile != NULL && c->local_profile == NULL)) {
        dlmodel_context_close(c);
        return NULL;
    }
    c->directories[0] = c->directory;
    return c;
}

struct dl_data dl_library_data(struct dlmodel_context *context) {
    return (struct dl_data){.directories = context->directories,
                            .directory_count = 1,
                            .local_profile = context->local_profile,
                            .store = context->store,
                            .names_only = context->names_only};
}

enum dl_code dl_library_check(const struct dlmodel_context *context, struct dl_err *err) {
    struct stat status;
    if (stat(context->directory, &status) == 0 && S_ISDIR(status.st_mode)) return DL_OK;
    return dl_fail(err, DL_ERR_SYSTEM,
                   "no data directory %.300s: give it when opening, or set DLMODEL_DATA",
                   context->directory);
}

enum { MEMO_BYTES = 32 << 20 }; /* a memo that is larger begins again */

struct dl_lent_memo *dl_library_lend(struct dlmodel_context *context) {
    pthread_mutex_lock(&context->lock);
    struct dl_lent_memo *lent = context->memos;
    if (lent != NULL) context->memos = lent->next;
    pthread_mutex_unlock(&context->lock);
    if (lent == NULL) lent = calloc(1, sizeof *lent);
    if (lent != NULL) lent->memo.arena = &lent->arena;
    return lent;
}

static bool is_kept(void *user, const void *object) { return dl_store_holds(user, object); }

void dl_library_take_back(struct dlmodel_context *context, struct dl_lent_memo *lent,
                          enum dl_code code) {
    if (lent == NULL) return;
    if (code == DL_ERR_SYSTEM || lent->arena.total_bytes > MEMO_BYTES) {
        dl_arena_free(&lent->arena);
        memset(&lent->memo, 0, sizeof lent->memo);
    }
    dl_cost_memo_settle(&lent->memo, is_kept, context->store);
    pthread_mutex_lock(&context->lock);
    lent->next = context->memos;
    context->memos = lent;
    pthread_mutex_unlock(&context->lock);
}
