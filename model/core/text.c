/* text.c - see the header. */
#include "model/core/text.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { START_BYTES = 256 };

/* Room for `length` more bytes and the NUL. Doubling keeps copies linear in the final length. */
static void reserve(struct dl_text *text, size_t length) {
    if (text->bytes != NULL && length < text->capacity - text->length) return;
    const bool fits = length < SIZE_MAX / 4 && text->length < SIZE_MAX / 8;
    const size_t capacity = fits ? 2 * (text->length + length) + START_BYTES : SIZE_MAX;
    char *grown = dl_arena_alloc(text->arena, capacity, 1);
    if (text->length > 0) memcpy(grown, text->bytes, text->length);
    text->bytes = grown;
    text->capacity = capacity;
}

void dl_text_add_bytes(struct dl_text *text, const char *bytes, size_t length) {
    reserve(text, length);
    if (length > 0) memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
    text->bytes[text->length] = '\0';
}

void dl_text_add(struct dl_text *text, const char *more) {
    if (more != NULL) dl_text_add_bytes(text, more, strlen(more));
}

void dl_text_printf(struct dl_text *text, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0) return;
    reserve(text, (size_t)length);
    va_start(arguments, format);
    vsnprintf(text->bytes + text->length, (size_t)length + 1, format, arguments);
    va_end(arguments);
    text->length += (size_t)length;
}

const char *dl_text_string(const struct dl_text *text) {
    return text->bytes == NULL ? "" : text->bytes;
}

const char *dl_base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

const char *dl_list_next(const char **rest, struct dl_arena *arena) {
    if (*rest == NULL) return NULL;
    const size_t length = strcspn(*rest, ",");
    const char *item = dl_arena_strndup(arena, *rest, length);
    *rest = (*rest)[length] == ',' ? *rest + length + 1 : NULL;
    return item;
}

bool dl_ends_in(const char *text, const char *end) {
    const size_t length = strlen(text), size = strlen(end);
    return length >= size && strcmp(text + length - size, end) == 0;
}

const char *dl_word_next(const char **rest, const char *blanks, size_t *length) {
    const char *word = *rest + strspn(*rest, blanks);
    *length = strcspn(word, blanks);
    *rest = word + *length;
    return *length > 0 ? word : NULL;
}

bool dl_has_word(const char *words, const char *word) {
    const size_t size = strlen(word);
    size_t length;
    for (const char *next; (next = dl_word_next(&words, " ", &length)) != NULL;)
        if (length == size && strncmp(next, word, length) == 0) return true;
    return false;
}

int dl_text_place(const char **list, int *count, int most, const char *text) {
    int i = 0;
    while (i < *count && strcmp(list[i], text) != 0) i++;
    if (i == most) return -1;
    if (i == *count) list[(*count)++] = text;
    return i;
}

/* Inside single quotes, only the quote itself has a special meaning. */
const char *dl_shell_quote(struct dl_arena *arena, const char *text) {
    struct dl_text out = {.arena = arena};
    dl_text_add(&out, "'");
    for (size_t length; *text != 0; text += length) {
        length = *text == '\'' ? 1 : strcspn(text, "'");
        if (*text == '\'')
            dl_text_add(&out, "'\\''");
        else
            dl_text_add_bytes(&out, text, length);
    }
    dl_text_add(&out, "'");
    return dl_text_string(&out);
}

const char *dl_shell_word(struct dl_arena *arena, const char *text) {
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./%@";
    return text[0] != 0 && text[strspn(text, plain)] == 0 ? text : dl_shell_quote(arena, text);
}
