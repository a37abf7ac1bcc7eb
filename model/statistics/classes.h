/* classes.h - equivalence classes of numbered items in linear time, by a hash and an equality. */
#ifndef DL_MODEL_STATISTICS_CLASSES_H
#define DL_MODEL_STATISTICS_CLASSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/core/arena.h"
#include "model/core/hash.h"

struct dl_class_keys {
    uint64_t (*hash)(const void *context, int item); /* equal items have equal hashes */
    bool (*equal)(const void *context, int a, int b);
    const void *context;
};

struct dl_classes {
    int *first; /* the first item equal to this one; itself if there is none before */
    int *next;  /* the next item equal to this one; -1: none */
};

/* In the arena. */
struct dl_classes dl_classes_make(const struct dl_class_keys *keys, int count,
                                  struct dl_arena *arena);
/* Of items with the same text. */
struct dl_classes dl_text_classes(const char *(*text_of)(const void *context, int item),
                                  const void *context, int count, struct dl_arena *arena);

#endif
