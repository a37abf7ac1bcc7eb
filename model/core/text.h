/* text.h - the string builder: text that grows in an arena. */
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
};

/* NULL adds nothing. */
void dl_text_add(struct dl_text *text, const char *more);
void dl_text_add_bytes(struct dl_text *text, const char *bytes, size_t length);
void dl_text_printf(struct dl_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* "" when empty; never NULL. */
const char *dl_text_string(const struct dl_text *text);

/* What follows the last slash of a path. */
const char *dl_base_name(const char *path);
/* The next of the items that commas separate, "" between two commas; NULL after the last one.
 * *rest: the list, then what is left of it. */
const char *dl_list_next(const char **rest, struct dl_arena *arena);
bool dl_ends_in(const char *text, const char *end);
/* The next of the words that characters of `blanks` separate, with its length; NULL after the last
 * one. *rest: the words, then what is left of them. */
const char *dl_word_next(const char **rest, const char *blanks, size_t *length);
/* Whether a word is one of those that blanks separate. */
bool dl_has_word(const char *words, const char *word);
/* The index of the text in a list, to whose end a new one is added; -1: `most` are there. */
int dl_text_place(const char **list, int *count, int most, const char *text);

/* `text` as one word of a POSIX shell, in single quotes, whatever bytes it holds. */
const char *dl_shell_quote(struct dl_arena *arena, const char *text);
/* The same, but a word in which a shell changes nothing stays as it is. */
const char *dl_shell_word(struct dl_arena *arena, const char *text);

#endif
