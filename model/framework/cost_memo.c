/* cost_memo.c - see the header. */
#include "model/framework/cost_memo.h"

#include <stddef.h>

#include "model/core/hash.h"

static int bucket_of(const struct dl_memo_entry *e) {
    const uintptr_t objects[] = {(uintptr_t)e->device, (uintptr_t)e->workload,
                                 (uintptr_t)e->framework};
    uint64_t hash = dl_hash_bytes(DL_HASH_START, objects, sizeof objects);
    hash = dl_hash_bytes(hash, &e->samples, sizeof e->samples);
    hash = dl_hash_bytes(hash, &e->parts, sizeof e->parts);
    return (int)((hash ^ hash >> 32) % DL_MEMO_BUCKETS);
}

const struct dl_memo_entry *dl_cost_memo_first(const struct dl_cost_memo *memo,
                                               enum dl_memo_kind kind,
                                               const struct dl_memo_entry *asked) {
    return memo->entries[kind][bucket_of(asked)];
}

bool dl_memo_entry_same(const struct dl_memo_entry *a, const struct dl_memo_entry *b) {
    return a->device == b->device && a->workload == b->workload && a->framework == b->framework &&
           a->layer_times == b->layer_times && a->samples == b->samples && a->parts == b->parts;
}

void dl_cost_memo_add(struct dl_cost_memo *memo, enum dl_memo_kind kind,
                      struct dl_memo_entry *made) {
    struct dl_memo_entry **bucket = &memo->entries[kind][bucket_of(made)];
    made->next = *bucket;
    *bucket = made;
    made->older = memo->newest;
    memo->newest = made;
}

const struct dl_device *dl_cost_memo_device(const struct dl_cost_memo *memo,
                                            const struct dl_device *of, int resource,
                                            double by_ratio) {
    for (const struct dl_memo_device *d = memo->devices; d != NULL; d = d->next)
        if (d->of == of && d->resource == resource && d->by_ratio == by_ratio) return &d->device;
    return NULL;
}

static bool is_made(const struct dl_cost_memo *memo, const struct dl_device *device) {
    for (const struct dl_memo_device *d = memo->devices; d != NULL; d = d->next)
        if (&d->device == device) return true;
    return false;
}

static void drop_devices(struct dl_cost_memo *memo, dl_memo_stays_fn *stays, void *user) {
    struct dl_memo_device **link = &memo->devices;
    while (*link != NULL) {
        if (stays(user, (*link)->of))
            link = &(*link)->next;
        else
            *link = (*link)->next;
    }
}

static void drop(struct dl_cost_memo *memo, const struct dl_memo_entry *gone) {
    const int bucket = bucket_of(gone);
    for (int kind = 0; kind < DL_MEMO_KINDS; kind++) {
        struct dl_memo_entry **link = &memo->entries[kind][bucket];
        while (*link != NULL && *link != gone) link = &(*link)->next;
        if (*link == gone) *link = gone->next;
    }
}

void dl_cost_memo_settle(struct dl_cost_memo *memo, dl_memo_stays_fn *stays, void *user) {
    drop_devices(memo, stays, user);
    for (const struct dl_memo_entry *e = memo->newest; e != NULL; e = e->older) {
        if ((!stays(user, e->device) && !is_made(memo, e->device)) || !stays(user, e->workload) ||
            !stays(user, e->framework) || (e->layer_times != NULL && !stays(user, e->layer_times)))
            drop(memo, e);
    }
    memo->newest = NULL;
}
