/* store.c - see the header. A lock guards the hash tables; loading happens outside it. */
#include "model/catalog/store.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/catalog/data_internal.h"
#include "model/core/hash.h"

enum { BUCKETS = 1024, STORE_BYTES = 256 << 20 };

struct kept {
    struct kept *next, *next_value; /* of its buckets by key and by value */
    struct dl_arena arena;          /* holds the value and what it refers to */
    uint64_t hash;
    const char *key;
    const void *value;
};

struct dl_store {
    pthread_mutex_t lock;
    struct kept *buckets[BUCKETS], *values[BUCKETS];
    const void *intervals; /* those of the data directories, to which frameworks refer */
    size_t bytes;
};

struct dl_store *dl_store_open(void) {
    struct dl_store *store = calloc(1, sizeof *store);
    if (store == NULL) return NULL;
    if (pthread_mutex_init(&store->lock, NULL) == 0) return store;
    free(store);
    return NULL;
}

void dl_store_close(struct dl_store *store) {
    if (store == NULL) return;
    for (int i = 0; i < BUCKETS; i++) {
        for (struct kept *k = store->buckets[i], *next; k != NULL; k = next) {
            next = k->next;
            dl_arena_free(&k->arena);
            free(k);
        }
    }
    pthread_mutex_destroy(&store->lock);
    free(store);
}

static const struct kept *find(struct dl_store *store, uint64_t hash, const char *key) {
    pthread_mutex_lock(&store->lock);
    const struct kept *k = store->buckets[hash % BUCKETS];
    while (k != NULL && (k->hash != hash || strcmp(k->key, key) != 0)) k = k->next;
    pthread_mutex_unlock(&store->lock);
    return k;
}

static struct kept **value_bucket(struct dl_store *store, const void *value) {
    return &store->values[(uintptr_t)value / 16 % BUCKETS];
}

bool dl_store_holds(struct dl_store *store, const void *value) {
    pthread_mutex_lock(&store->lock);
    const struct kept *k = *value_bucket(store, value);
    while (k != NULL && k->value != value) k = k->next_value;
    pthread_mutex_unlock(&store->lock);
    return k != NULL;
}

/* Adds the entry unless another thread added it first; returns the one in the table, NULL where
 * there is no room. */
static const struct kept *add(struct dl_store *store, struct kept *made, bool intervals) {
    pthread_mutex_lock(&store->lock);
    struct kept **bucket = &store->buckets[made->hash % BUCKETS];
    const struct kept *k = *bucket;
    while (k != NULL && (k->hash != made->hash || strcmp(k->key, made->key) != 0)) k = k->next;
    if (k == NULL && store->bytes + made->arena.total_bytes <= STORE_BYTES) {
        store->bytes += made->arena.total_bytes;
        if (intervals) store->intervals = made->value;
        made->next = *bucket;
        *bucket = made;
        struct kept **by_value = value_bucket(store, made->value);
        made->next_value = *by_value;
        *by_value = made;
        k = made;
    }
    pthread_mutex_unlock(&store->lock);
    return k;
}

static bool touches_device(const struct dl_data *data) {
    const char *prefix = dl_data_kinds[DL_DATA_DEVICE].prefix;
    for (int i = 0; i < data->override_count; i++)
        if (strncmp(data->overrides[i].key, prefix, strlen(prefix)) == 0) return true;
    return false;
}

static bool may_keep(const struct dl_data *data, enum dl_data_kind kind, const char *name) {
    if (data->store == NULL || strcmp(name, "local") == 0 || dl_data_attachment(data, name) != NULL)
        return false;
    if (kind == DL_DATA_HASH)
        return dl_data_is_inside(data, name) &&
               (data->local_profile == NULL || strcmp(name, data->local_profile) != 0);
    if (kind == DL_DATA_INTERVALS) return true;
    if (dl_data_is_path(name)) return false;
    if (kind == DL_DATA_FRAMEWORK && data->intervals != NULL &&
        data->intervals != data->store->intervals)
        return false;
    return kind == DL_DATA_DEVICE ? !touches_device(data) : data->override_count == 0;
}

static const char *known(const char *text) { return text != NULL ? text : ""; }

/* Key of an entry: everything in `data` that loading this kind depends on. */
static const char *key_of(const struct dl_data *data, enum dl_data_kind kind, const char *name,
                          struct dl_arena *arena) {
    if (kind == DL_DATA_FRAMEWORK)
        return dl_arena_printf(arena, "%d|%d|%s|%s|%s|%s", (int)kind, data->intervals != NULL,
                               known(data->release), known(data->kernels_release),
                               known(data->architecture), name);
    return dl_arena_printf(arena, "%d|%d|%s", (int)kind, kind == DL_DATA_WORKLOAD && data->training,
                           name);
}

enum dl_code dl_store_load(const struct dl_data *data, enum dl_data_kind kind, const char *name,
                           dl_load_fn *load, struct dl_arena *arena, const void **out,
                           struct dl_err *err) {
    if (!may_keep(data, kind, name)) return load(data, name, arena, out, err);
    const char *key = key_of(data, kind, name, arena);
    const uint64_t hash = dl_hash_text(DL_HASH_START, key);
    const struct kept *kept = find(data->store, hash, key);
    if (kept != NULL) {
        *out = kept->value;
        return DL_OK;
    }
    if (dl_data_is_loose(data, kind, name)) return load(data, name, arena, out, err);
    struct kept *made = calloc(1, sizeof *made);
    if (made == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    made->hash = hash;
    made->key = dl_arena_strdup(&made->arena, key);
    const enum dl_code code = load(data, name, &made->arena, &made->value, err);
    if (code == DL_OK) kept = add(data->store, made, kind == DL_DATA_INTERVALS);
    if (kept != made) {
        dl_arena_free(&made->arena);
        free(made);
    }
    if (code != DL_OK) return code;
    if (kept == NULL) return load(data, name, arena, out, err); /* no room */
    *out = kept->value;
    return DL_OK;
}
