/* text.c - see the header. */
#include "model/core/text.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { START_BYTES = 256 };

/* Room for `length` more bytes and the NUL. Doubling keeps the copies linear in the final length.
 */
static bool reserve(struct dl_text *text, size_t length) {
    if (text->failed) return false;
    if (text->bytes != NULL && length < text->capacity - text->length) return true;
    char *grown = NULL;
    size_t capacity = 0;
    if (length < SIZE_MAX / 4 && text->length < SIZE_MAX / 8) {
        capacity = 2 * (text->length + length) + START_BYTES;
        grown = dl_arena_alloc(text->arena, capacity, 1);
    }
    if (grown == NULL) {
        text->failed = true;
        return false;
    }
    if (text->length > 0) memcpy(grown, text->bytes, text->length);
    text->bytes = grown;
    text->capacity = capacity;
    return true;
}

void dl_text_add_bytes(struct dl_text *text, const char *bytes, size_t length) {
    if (!reserve(text, length)) return;
    if (length > 0) memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
    text->bytes[text->length] = '\0';
}

void dl_text_add(struct dl_text *text, const char *more) {
    if (more == NULL)
        text->failed = true;
    else
        dl_text_add_bytes(text, more, strlen(more));
}

void dl_text_printf(struct dl_text *text, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0) text->failed = true;
    if (!reserve(text, length < 0 ? 0 : (size_t)length)) return;
    va_start(arguments, format);
    vsnprintf(text->bytes + text->length, (size_t)length + 1, format, arguments);
    va_end(arguments);
    text->length += (size_t)length;
}

const char *dl_text_string(const struct dl_text *text) {
    if (text->failed || text->arena->failed) return NULL;
    return text->bytes == NULL ? "" : text->bytes;
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
