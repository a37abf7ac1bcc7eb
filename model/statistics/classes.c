/* classes.c - a hash table with chains; lives only while the classes are made. */
#include "model/statistics/classes.h"

#include <string.h>

/* Of each class by its first thing: the last one so far, and the class after it in its slot. */
struct chain {
    uint64_t hash;
    int last, after;
};

struct dl_classes dl_classes_make(const struct dl_class_keys *keys, int count,
                                  struct dl_arena *arena) {
    size_t slot_count = 16;
    while (slot_count < 2 * (size_t)count) slot_count *= 2;
    struct dl_arena scratch = {0};
    int *slots = dl_arena_alloc(&scratch, slot_count, sizeof *slots);
    struct chain *chains = dl_arena_alloc(&scratch, (size_t)count, sizeof *chains);
    struct dl_classes out = {dl_arena_alloc(arena, (size_t)count, sizeof *out.first),
                             dl_arena_alloc(arena, (size_t)count, sizeof *out.next)};
    for (size_t i = 0; i < slot_count; i++) slots[i] = -1;
    for (int i = 0; i < count; i++) {
        const uint64_t hash = keys->hash(keys->context, i);
        int *slot = &slots[(hash ^ hash >> 32) % slot_count], k = *slot;
        while (k >= 0 && (chains[k].hash != hash || !keys->equal(keys->context, k, i)))
            k = chains[k].after;
        out.next[i] = -1;
        out.first[i] = k >= 0 ? k : i;
        if (k >= 0) {
            out.next[chains[k].last] = i;
            chains[k].last = i;
        } else {
            chains[i] = (struct chain){hash, i, *slot};
            *slot = i;
        }
    }
    dl_arena_free(&scratch);
    return out;
}

struct texts {
    const char *(*text_of)(const void *context, int item);
    const void *context;
};

static uint64_t text_hash(const void *context, int item) {
    const struct texts *t = context;
    return dl_hash_text(DL_HASH_START, t->text_of(t->context, item));
}

static bool text_equal(const void *context, int a, int b) {
    const struct texts *t = context;
    return strcmp(t->text_of(t->context, a), t->text_of(t->context, b)) == 0;
}

struct dl_classes dl_text_classes(const char *(*text_of)(const void *context, int item),
                                  const void *context, int count, struct dl_arena *arena) {
    const struct texts texts = {text_of, context};
    return dl_classes_make(&(struct dl_class_keys){text_hash, text_equal, &texts}, count, arena);
}
