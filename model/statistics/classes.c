/* classes.c - a hash table with chains; lives only while the classes are made. */
#include "model/statistics/classes.h"

#include <stdlib.h>

/* Of each class by its first thing: the last one so far, and the class after it in its slot. */
struct chain {
    uint64_t hash;
    int last, after;
};

enum dl_code dl_classes_make(const struct dl_class_keys *keys, int count, struct dl_arena *arena,
                             struct dl_classes *out, struct dl_err *err) {
    size_t slot_count = 16;
    while (slot_count < 2 * (size_t)count) slot_count *= 2;
    int *slots = malloc(slot_count * sizeof *slots);
    struct chain *chains = malloc(((size_t)count + 1) * sizeof *chains);
    out->first = dl_arena_alloc(arena, (size_t)count, sizeof *out->first);
    out->next = dl_arena_alloc(arena, (size_t)count, sizeof *out->next);
    const bool room = slots != NULL && chains != NULL;
    for (size_t i = 0; i < slot_count && room; i++) slots[i] = -1;
    for (int i = 0; i < count && room; i++) {
        const uint64_t hash = keys->hash(keys->context, i);
        int *slot = &slots[(hash ^ hash >> 32) % slot_count], k = *slot;
        while (k >= 0 && (chains[k].hash != hash || !keys->equal(keys->context, k, i)))
            k = chains[k].after;
        out->next[i] = -1;
        out->first[i] = k >= 0 ? k : i;
        if (k >= 0) {
            out->next[chains[k].last] = i;
            chains[k].last = i;
        } else {
            chains[i] = (struct chain){hash, i, *slot};
            *slot = i;
        }
    }
    free(slots);
    free(chains);
    return room ? DL_OK : dl_fail(err, DL_ERR_SYSTEM, "out of memory");
}
