/* arena.h - memory that is freed as a whole. Whoever loads a document owns an arena; everything
 * reachable from the document lives in it and is freed with it. */
#ifndef DL_MODEL_CORE_ARENA_H
#define DL_MODEL_CORE_ARENA_H

#include <stdbool.h>
#include <stddef.h>

#include "model/core/status.h"

/* {0} is a valid empty arena. */
struct dl_arena {
    struct dl_arena_block *head; /* newest block first; NULL when empty */
    size_t total_bytes;          /* bytes allocated, for limits and tests */
};

/* Runs run(state). Where an allocation of this thread in an arena fails meanwhile, run is abandoned
 * and the result is DL_ERR_SYSTEM, "out of memory": no other place notices. Scratch arenas and
 * files that run held are lost. Guards nest. Every thread of the program allocates within one. */
enum dl_code dl_guarded(enum dl_code (*run)(void *state, struct dl_err *err), void *state,
                        struct dl_err *err);

/* Makes room for objects of that many bytes in all at once, where they are sure to come. */
void dl_arena_reserve(struct dl_arena *arena, size_t bytes);

/* Zeroed memory for `count` objects of `bytes_each`, aligned for any type; never NULL within
 * dl_guarded. count = 0 gives a valid pointer. */
void *dl_arena_alloc(struct dl_arena *arena, size_t count, size_t bytes_each);
/* `items` with room behind the first `count`: themselves, or a copy in an array twice as long. An
 * array that grows one by one by this alone; NULL while it is empty. */
void *dl_arena_grow(struct dl_arena *arena, void *items, size_t count, size_t bytes_each);
/* Copies in the arena; NULL for NULL text. */
char *dl_arena_strdup(struct dl_arena *arena, const char *text);
char *dl_arena_strndup(struct dl_arena *arena, const char *text, size_t length);
char *dl_arena_printf(struct dl_arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void dl_arena_free(struct dl_arena *arena); /* leaves it empty and usable */
/* The same, but keeps its last block, of at most a few MiB, for what follows: an arena that is
 * filled and cleared again and again asks the system for no memory. */
void dl_arena_clear(struct dl_arena *arena);

#endif
