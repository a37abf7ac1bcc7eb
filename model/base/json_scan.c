/* json_scan.c - strict check of a text against RFC 8259, before cJSON sees it.
 * cJSON has no positions, takes more than JSON ("01", "1.") and recurses a thousand levels; here
 * every fault gets its line and column, and depth and size are limited. Decodes nothing.
 */
#include "model/base/json_node.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    MAX_NUMBER = 60,      /* characters; cJSON copies numbers into 64 bytes */
    MAX_VALUES = 4000000, /* bounds the memory that a document of 64 MiB can take */
};

struct scan {
    const char *name, *text;
    size_t length, at;
    int depth, values;
    struct dl_err *err;
};

static enum dl_code scan_value(struct scan *s);

void dl_json_position(const char *text, size_t length, size_t place, int *line, int *col) {
    *line = *col = 0;
    if (place == DL_NO_PLACE || place > length) return;
    *line = *col = 1;
    for (size_t i = 0; i < place; i++) {
        if (text[i] == '\n') {
            ++*line;
            *col = 1;
        } else {
            ++*col;
        }
    }
}

size_t dl_utf8_bytes(const char *text, size_t length) {
    unsigned char first, second;
    size_t bytes;

    if (length == 0) return 0;
    first = (unsigned char)text[0];
    if (first < 0x80) return 1;
    bytes = first >= 0xc2 && first <= 0xdf   ? 2
            : (first & 0xf0) == 0xe0         ? 3
            : first >= 0xf0 && first <= 0xf4 ? 4
                                             : 0;
    if (bytes == 0 || bytes > length) return 0;
    for (size_t i = 1; i < bytes; i++)
        if (((unsigned char)text[i] & 0xc0) != 0x80) return 0;
    second = (unsigned char)text[1]; /* shortest form only, no surrogates, nothing above U+10FFFF */
    if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f)) return 0;
    if ((first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f)) return 0;
    return bytes;
}

static enum dl_code fault(struct scan *s, size_t at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static enum dl_code fault(struct scan *s, size_t at, const char *format, ...) {
    char message[256];
    va_list arguments;
    int line, col;

    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    dl_json_position(s->text, s->length, at, &line, &col);
    return dl_fail_at(s->err, s->name, line, col, NULL, "%s", message);
}

static enum dl_code unexpected(struct scan *s, const char *expected) {
    unsigned char c;

    if (s->at >= s->length)
        return fault(s, s->at, "expected %s, got the end of the file", expected);
    c = (unsigned char)s->text[s->at];
    if (c > 0x20 && c < 0x7f) return fault(s, s->at, "expected %s, got '%c'", expected, c);
    if (s->at == 0 && s->length > 1 &&
        (memcmp(s->text, "\xff\xfe", 2) == 0 || memcmp(s->text, "\xfe\xff", 2) == 0))
        return fault(s, s->at, "expected UTF-8 text, got UTF-16: save the file as UTF-8");
    return fault(s, s->at, "expected %s, got byte 0x%02x", expected, c);
}

static int peek(const struct scan *s) {
    return s->at < s->length ? (unsigned char)s->text[s->at] : -1;
}

size_t dl_json_skip_space(const char *text, size_t length, size_t at) {
    while (at < length &&
           (text[at] == ' ' || text[at] == '\t' || text[at] == '\n' || text[at] == '\r'))
        at++;
    return at;
}

size_t dl_json_skip_scalar(const char *text, size_t length, size_t at) {
    if (at < length && text[at] == '"') {
        for (at++; at < length && text[at] != '"'; at++)
            if (text[at] == '\\') at++;
        return at < length ? at + 1 : length;
    }
    static const char ends[] = ",]} \t\r\n";
    while (at < length && memchr(ends, text[at], sizeof ends - 1) == NULL) at++;
    return at;
}

static void skip_space(struct scan *s) { s->at = dl_json_skip_space(s->text, s->length, s->at); }

/* Four hex digits at `at`, or -1. */
static long hex4(const struct scan *s, size_t at) {
    long value = 0;

    if (s->length - at < 4) return -1;
    for (size_t i = at; i < at + 4; i++) {
        char c = s->text[i];
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;

        if (digit < 0) return -1;
        value = value * 16 + digit;
    }
    return value;
}

/* At a backslash. A code point of 0 would end a C string; half a surrogate pair is not a
 * character. */
static enum dl_code scan_escape(struct scan *s) {
    size_t start = s->at;
    long code;

    s->at++;
    if (s->at >= s->length) return unexpected(s, "the rest of an escape");
    if (s->text[s->at] != 'u') {
        if (strchr("\"\\/bfnrt", s->text[s->at]) == NULL || s->text[s->at] == '\0')
            return fault(s, start, "expected an escape such as \\n or \\u00e9 in a string");
        s->at++;
        return DL_OK;
    }
    code = hex4(s, s->at + 1);
    if (code < 0) return fault(s, start, "expected four hexadecimal digits after \\u");
    if (code == 0) return fault(s, start, "expected no \\u0000 in a string");
    s->at += 5;
    if (code >= 0xdc00 && code <= 0xdfff)
        return fault(s, start, "expected a high surrogate before a low one");
    if (code >= 0xd800 && code <= 0xdbff) {
        bool escape = s->length - s->at >= 6 && s->text[s->at] == '\\' && s->text[s->at + 1] == 'u';
        long low = escape ? hex4(s, s->at + 2) : -1;

        if (low < 0xdc00 || low > 0xdfff)
            return fault(s, start, "expected a low surrogate after a high one");
        s->at += 6;
    }
    return DL_OK;
}

static enum dl_code scan_string(struct scan *s) {
    size_t start = s->at++;

    for (;;) {
        int c = peek(s);

        if (c < 0) return fault(s, start, "expected a closing quote for this string");
        if (c == '"') {
            s->at++;
            return DL_OK;
        }
        if (c == '\\') {
            DL_TRY(scan_escape(s));
        } else if (c < 0x20) {
            return fault(s, s->at, "expected no control character in a string, got byte 0x%02x",
                         (unsigned)c);
        } else {
            size_t bytes = dl_utf8_bytes(s->text + s->at, s->length - s->at);

            if (bytes == 0)
                return fault(s, s->at, "expected UTF-8 text, got byte 0x%02x", (unsigned)c);
            s->at += bytes;
        }
    }
}

static size_t scan_digits(struct scan *s) {
    size_t start = s->at;

    while (peek(s) >= '0' && peek(s) <= '9') s->at++;
    return s->at - start;
}

static enum dl_code scan_number(struct scan *s) {
    size_t start = s->at, digits;

    if (peek(s) == '-') s->at++;
    digits = s->at;
    if (scan_digits(s) == 0) return unexpected(s, "a digit");
    if (s->text[digits] == '0' && s->at - digits > 1)
        return fault(s, start, "expected a number without leading zeros");
    if (peek(s) == '.') {
        s->at++;
        if (scan_digits(s) == 0) return unexpected(s, "a digit after the decimal point");
    }
    if (peek(s) == 'e' || peek(s) == 'E') {
        s->at++;
        if (peek(s) == '+' || peek(s) == '-') s->at++;
        if (scan_digits(s) == 0) return unexpected(s, "a digit in the exponent");
    }
    if (s->at - start > MAX_NUMBER)
        return fault(s, start, "expected a number of at most %d characters", MAX_NUMBER);
    return DL_OK;
}

static enum dl_code scan_word(struct scan *s) {
    static const char *const words[] = {"true", "false", "null", NULL};

    for (int i = 0; words[i] != NULL; i++) {
        size_t length = strlen(words[i]);

        if (s->length - s->at >= length && memcmp(s->text + s->at, words[i], length) == 0) {
            s->at += length;
            return DL_OK;
        }
    }
    return unexpected(s, "a value");
}

/* The members of an object or elements of an array, up to the closing bracket. */
static enum dl_code scan_container(struct scan *s, bool object) {
    const int closer = object ? '}' : ']';

    if (s->depth >= DL_JSON_DEPTH)
        return fault(s, s->at, "expected nesting of at most %d levels", DL_JSON_DEPTH);
    s->depth++;
    s->at++;
    skip_space(s);
    if (peek(s) == closer) goto done;
    for (;;) {
        skip_space(s);
        if (object) {
            if (peek(s) != '"') return unexpected(s, "a key in double quotes");
            DL_TRY(scan_string(s));
            skip_space(s);
            if (peek(s) != ':') return unexpected(s, "':' after a key");
            s->at++;
        }
        DL_TRY(scan_value(s));
        skip_space(s);
        if (peek(s) == closer) break;
        if (peek(s) != ',') return unexpected(s, object ? "',' or '}'" : "',' or ']'");
        s->at++;
    }
done:
    s->at++;
    s->depth--;
    return DL_OK;
}

static enum dl_code scan_value(struct scan *s) {
    int c;

    skip_space(s);
    if (++s->values > MAX_VALUES)
        return fault(s, s->at, "expected at most %d values in a file", MAX_VALUES);
    c = peek(s);
    if (c == '{' || c == '[') return scan_container(s, c == '{');
    if (c == '"') return scan_string(s);
    if (c == '-' || (c >= '0' && c <= '9')) return scan_number(s);
    return scan_word(s);
}

enum dl_code dl_json_scan(const char *name, const char *text, size_t length, size_t *start,
                          struct dl_err *err) {
    struct scan s = {.name = name, .text = text, .length = length, .err = err};

    if (length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) s.at = 3;
    *start = s.at;
    skip_space(&s);
    if (s.at == length)
        return dl_fail_at(err, name, 0, 0, NULL, "expected a JSON object, got an empty file");
    DL_TRY(scan_value(&s));
    skip_space(&s);
    if (s.at != length) return unexpected(&s, "nothing after the JSON value");
    return DL_OK;
}
