/* classes.h - things that are equal, found in linear time: numbered things, a hash and a comparison
 * of two. */
#ifndef DL_MODEL_STATISTICS_CLASSES_H
#define DL_MODEL_STATISTICS_CLASSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/core/arena.h"
#include "model/core/hash.h"
#include "model/core/status.h"

struct dl_class_keys {
    uint64_t (*hash)(const void *context, int item); /* equal things have equal hashes */
    bool (*equal)(const void *context, int a, int b);
    const void *context;
};

struct dl_classes {
    int *first; /* the first thing that equals this one: itself, if there is none before it */
    int *next;  /* the next thing that equals this one; -1: none */
};

/* In the arena. DL_ERR_SYSTEM: out of memory. */
enum dl_code dl_classes_make(const struct dl_class_keys *keys, int count, struct dl_arena *arena,
                             struct dl_classes *out, struct dl_err *err);

#endif
