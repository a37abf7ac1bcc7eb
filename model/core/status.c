/* status.c - the error record and the "did you mean" search.
 * Does not print, does not translate messages, does not keep a stack of causes.
 */
#include "model/core/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MAX_WORD = 128 }; /* longer words get no suggestion */

static void copy_text(char *out, size_t out_size, const char *text) {
    size_t length = strlen(text);

    if (length >= out_size) length = out_size - 1;
    memcpy(out, text, length);
    out[length] = '\0';
}

/* Bytes of the well-formed UTF-8 character that `text` begins with; 0: not well formed. */
static size_t utf8_length(const char *text) {
    const unsigned char first = (unsigned char)text[0];
    const size_t length = first < 0x80                     ? 1
                          : first >= 0xc2 && first <= 0xdf ? 2
                          : (first & 0xf0) == 0xe0         ? 3
                          : first >= 0xf0 && first <= 0xf4 ? 4
                                                           : 0;

    for (size_t i = 1; i < length; i++) {
        if (((unsigned char)text[i] & 0xc0) != 0x80) return 0;
    }
    return length;
}

/* A limit on length may have cut a character ("%.60s" too): what is left of it becomes '?'. */
static void replace_broken(char *text) {
    while (*text != '\0') {
        const size_t length = utf8_length(text);

        if (length == 0) *text = '?';
        text += length == 0 ? 1 : length;
    }
}

/* The arguments may point into *err itself, so the text is made before the record is cleared. */
static void fill(struct dl_err *err, struct dl_err made, const char *file, const char *key,
                 const char *format, va_list arguments) {
    vsnprintf(made.message, sizeof made.message, format, arguments);
    copy_text(made.file, sizeof made.file, file ? file : "");
    copy_text(made.key, sizeof made.key, key ? key : "");
    replace_broken(made.message);
    replace_broken(made.file);
    replace_broken(made.key);
    *err = made;
}

enum dl_code(dl_fail)(struct dl_err *err, enum dl_code code, const char *format, ...) {
    if (err != NULL) {
        va_list arguments;

        va_start(arguments, format);
        fill(err, (struct dl_err){.code = code}, NULL, NULL, format, arguments);
        va_end(arguments);
    }
    return code;
}

enum dl_code(dl_fail_at)(struct dl_err *err, const char *file, int line, int col, const char *key,
                         const char *format, ...) {
    if (err != NULL) {
        va_list arguments;

        va_start(arguments, format);
        fill(err, (struct dl_err){.code = DL_ERR_INPUT, .line = line, .col = col}, file, key,
             format, arguments);
        va_end(arguments);
    }
    return DL_ERR_INPUT;
}

void dl_text_printable(char *text, const char *kept) {
    for (char *c = text; *c != '\0'; c++) {
        unsigned char byte = (unsigned char)*c;
        unsigned char next = (unsigned char)c[1];

        if ((byte < 0x20 || byte == 0x7f) && strchr(kept, byte) == NULL)
            *c = '?';
        else if (byte == 0xc2 && next >= 0x80 && next <= 0x9f)
            c[0] = c[1] = '?';
    }
}

void dl_err_text(const struct dl_err *err, const char *who, char *out, size_t out_size) {
    char place[640];
    const char *key = err->key;
    const char *colon = key[0] != '\0' ? ": " : "";

    if (out_size == 0) return;
    if (err->file[0] == '\0') {
        copy_text(place, sizeof place, who != NULL ? who : "dlmodel");
    } else if (err->line > 0) {
        snprintf(place, sizeof place, "%s:%d:%d: error", err->file, err->line,
                 err->col > 0 ? err->col : 1);
    } else {
        snprintf(place, sizeof place, "%s: error", err->file);
    }
    snprintf(out, out_size, "%s: %s%s%s", place, key, colon, err->message);
    replace_broken(out);
    dl_text_printable(out, "");
}

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

/* Edit distance where a swap of neighbours counts one (optimal string alignment). Lengths below
 * MAX_WORD. */
static size_t edit_distance(const char *a, size_t a_length, const char *b, size_t b_length) {
    size_t rows[3][MAX_WORD + 1];
    size_t *before = rows[0], *last = rows[1], *now = rows[2];

    for (size_t j = 0; j <= b_length; j++) last[j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        size_t *free_row = before;

        now[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            size_t cost = a[i - 1] == b[j - 1] ? 0 : 1;

            now[j] = smaller(smaller(last[j] + 1, now[j - 1] + 1), last[j - 1] + cost);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = smaller(now[j], before[j - 2] + 1);
        }
        before = last;
        last = now;
        now = free_row;
    }
    return last[b_length];
}

const char *dl_suggest(const char *word, const char *const *names) {
    const char *best = NULL, *prefixed = NULL;
    size_t best_distance, length;

    if (word == NULL || names == NULL) return NULL;
    length = strlen(word);
    if (length == 0 || length >= MAX_WORD) return NULL;
    best_distance = length / 3 + 1; /* one slip in three letters, and one more */
    if (best_distance >= length) best_distance = length - 1;
    for (; *names != NULL; names++) {
        size_t name_length = strlen(*names), distance;

        if (name_length >= MAX_WORD) continue;
        if (length >= 3 && prefixed == NULL && strncmp(word, *names, length) == 0)
            prefixed = *names;
        if (name_length > length + best_distance || length > name_length + best_distance) continue;
        distance = edit_distance(word, length, *names, name_length);
        if (distance < best_distance || (distance == best_distance && best == NULL)) {
            best = *names;
            best_distance = distance;
        }
    }
    return best != NULL ? best : prefixed;
}
