/* arena.h - whoever loads a document owns an arena; everything reachable from the document dies
 * with it; nothing else is freed.
 */
#ifndef DL_MODEL_BASE_ARENA_H
#define DL_MODEL_BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>

struct dl_arena {
    /* newest block first; NULL when empty */
    struct dl_arena_block *head;
    /* handed out, for limits and tests */
    size_t total_bytes;
    /* something did not fit: what was made since may lack parts, and must not be shown */
    bool failed;
};

/* A struct dl_arena set to {0} is a valid empty arena. */

/* Zeroed memory for `count` objects of `bytes_each`, aligned for any type.
 * NULL only when memory is exhausted or the product overflows. count = 0 gives a valid pointer. */
void *dl_arena_alloc(struct dl_arena *arena, size_t count, size_t bytes_each);
/* NULL text gives NULL */
char *dl_arena_strdup(struct dl_arena *arena, const char *text);
char *dl_arena_strndup(struct dl_arena *arena, const char *text, size_t length);
char *dl_arena_printf(struct dl_arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void dl_arena_free(struct dl_arena *arena); /* leaves it empty and usable */

#endif
