/* text.h - the string builder: text that grows in an arena. One check at the end covers all
 * additions: after a failure nothing is added, and dl_text_string returns NULL. */
#ifndef DL_MODEL_CORE_TEXT_H
#define DL_MODEL_CORE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "model/core/arena.h"

/* {.arena = ARENA} is a valid empty text. */
struct dl_text {
    struct dl_arena *arena;
    char *bytes; /* NUL-terminated; NULL while empty */
    size_t length, capacity;
    bool failed; /* out of memory, or NULL was added */
};

/* NULL fails: it is what the functions that make text in an arena return when memory runs out. */
void dl_text_add(struct dl_text *text, const char *more);
void dl_text_add_bytes(struct dl_text *text, const char *bytes, size_t length);
void dl_text_printf(struct dl_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* "" when empty; NULL after a failure of the text or of its arena: what went into it may lack
 * parts. */
const char *dl_text_string(const struct dl_text *text);

/* `text` as one word of a POSIX shell, in single quotes, whatever bytes it holds. NULL: out of
 * memory. */
const char *dl_shell_quote(struct dl_arena *arena, const char *text);

#endif
