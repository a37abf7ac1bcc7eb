/* json_writer.c - JSON text piece by piece.
 * Does not check that keys are unique.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/core/json_node.h"

/* As "%" PRId64 writes it, without printf: most numbers of data files are whole. */
static void whole_text(int64_t value, char out[DL_NUMBER_TEXT]) {
    char digits[20];
    int count = 0;
    for (uint64_t rest = (uint64_t)(value < 0 ? -value : value); rest > 0 || count == 0; rest /= 10)
        digits[count++] = (char)('0' + rest % 10);
    if (value < 0) *out++ = '-';
    while (count > 0) *out++ = digits[--count];
    *out = '\0';
}

void dl_number_text(double value, char out[DL_NUMBER_TEXT]) {
    if (!isfinite(value)) {
        snprintf(out, DL_NUMBER_TEXT, "null");
        return;
    }
    /* Whole numbers that have their digits in a double: what "%.15g" writes too. */
    if (fabs(value) < 1e15 && value == floor(value) && !(value == 0 && signbit(value))) {
        whole_text((int64_t)value, out);
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(out, DL_NUMBER_TEXT, "%.*g", digits, value);
        if (strtod(out, NULL) == value) return;
    }
}

static void put(struct dl_json_writer *w, const char *text, size_t length) {
    if (length >= w->capacity - w->length) {
        size_t capacity =
            w->capacity * 2 > w->length + length + 1 ? w->capacity * 2 : w->length + length + 1;
        char *grown = dl_arena_alloc(w->arena, capacity, 1);

        memcpy(grown, w->text, w->length);
        w->text = grown;
        w->capacity = capacity;
    }
    memcpy(w->text + w->length, text, length);
    w->length += length;
    w->text[w->length] = '\0';
}

static void put_text(struct dl_json_writer *w, const char *text) { put(w, text, strlen(text)); }

static void put_quoted(struct dl_json_writer *w, const char *text) {
    put(w, "\"", 1);
    while (*text != '\0') {
        unsigned char c = (unsigned char)*text;
        size_t bytes = dl_utf8_bytes(text, strlen(text) < 4 ? strlen(text) : 4);
        char escape[8];

        if (c == '"' || c == '\\')
            snprintf(escape, sizeof escape, "\\%c", c);
        else if (c == '\n')
            snprintf(escape, sizeof escape, "\\n");
        else if (c == '\t')
            snprintf(escape, sizeof escape, "\\t");
        else if (c == '\r')
            snprintf(escape, sizeof escape, "\\r");
        else if (c < 0x20)
            snprintf(escape, sizeof escape, "\\u%04x", c);
        /* not UTF-8: U+FFFD in its place */
        else if (bytes == 0)
            snprintf(escape, sizeof escape, "\xef\xbf\xbd");
        else
            escape[0] = '\0';
        if (escape[0] != '\0') {
            put_text(w, escape);
            text++;
        } else {
            put(w, text, bytes);
            text += bytes;
        }
    }
    put(w, "\"", 1);
}

static void new_line(struct dl_json_writer *w) {
    if (w->compact) return;
    put(w, "\n", 1);
    for (int i = 0; i < w->depth; i++) put(w, "  ", 2);
}

/* Comma, indent and key before a value. */
static void begin(struct dl_json_writer *w, const char *key) {
    if (w->need_comma) put_text(w, ",");
    if (w->depth > 0) new_line(w);
    if (key != NULL) {
        put_quoted(w, key);
        put_text(w, w->compact ? ":" : ": ");
    }
    w->need_comma = true;
}

static void open_level(struct dl_json_writer *w, const char *key, char opener, char closer) {
    begin(w, key);
    put(w, &opener, 1);
    assert(w->depth < DL_JSON_DEPTH);
    w->closers[w->depth++] = closer;
    w->need_comma = false;
}

void dl_jw_init(struct dl_json_writer *w, struct dl_arena *arena, bool compact) {
    enum { START_BYTES = 256 };

    *w = (struct dl_json_writer){.arena = arena, .compact = compact, .capacity = START_BYTES};
    w->text = dl_arena_alloc(arena, START_BYTES, 1);
}

void dl_jw_object(struct dl_json_writer *w, const char *key) { open_level(w, key, '{', '}'); }

void dl_jw_array(struct dl_json_writer *w, const char *key) { open_level(w, key, '[', ']'); }

void dl_jw_end(struct dl_json_writer *w) {
    const bool empty = !w->need_comma;

    assert(w->depth > 0);
    w->depth--;
    if (!empty) new_line(w);
    put(w, &w->closers[w->depth], 1);
    w->need_comma = true;
}

void dl_jw_number(struct dl_json_writer *w, const char *key, double value) {
    char text[DL_NUMBER_TEXT];

    begin(w, key);
    dl_number_text(value, text);
    put_text(w, text);
}

void dl_jw_integer(struct dl_json_writer *w, const char *key, int64_t value) {
    char text[DL_NUMBER_TEXT];

    begin(w, key);
    snprintf(text, sizeof text, "%" PRId64, value);
    put_text(w, text);
}

void dl_jw_bool(struct dl_json_writer *w, const char *key, bool value) {
    begin(w, key);
    put_text(w, value ? "true" : "false");
}

void dl_jw_string(struct dl_json_writer *w, const char *key, const char *value) {
    begin(w, key);
    if (value == NULL)
        put_text(w, "null");
    else
        put_quoted(w, value);
}

char *dl_jw_text(struct dl_json_writer *w) {
    while (w->depth > 0) dl_jw_end(w);
    put_text(w, "\n");
    return w->text;
}
