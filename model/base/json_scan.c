/* json_scan.c - one pass over a text by RFC 8259 that makes the tree of its values.
 * Every fault gets its line and column; depth and size are limited.
 */
#include "model/base/json_node.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_NUMBER = 60, /* characters: more digits than any double needs */
    FEW_MEMBERS = 16,
    MAX_VALUES = 4000000, /* bounds the memory that a document of 64 MiB can take */
};

struct scan {
    struct dl_json *doc;
    const char *name, *text; /* the document's; text ends in 0 */
    size_t length, at;
    int depth, values;
    struct dl_err *err;
};

static enum dl_code scan_value(struct scan *s, const struct dl_json_path *path,
                               struct dl_json_node *node);

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

/* The same with the value's place in the document. */
static enum dl_code fault_at(struct scan *s, size_t at, const struct dl_json_path *path,
                             const char *message) {
    char key[192];
    int line, col;

    dl_json_path_text(path, key, sizeof key);
    dl_json_position(s->text, s->length, at, &line, &col);
    return dl_fail_at(s->err, s->name, line, col, key, "%s", message);
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

/* At a quote. */
static enum dl_code scan_string(struct scan *s, bool *escaped) {
    size_t start = s->at++;

    *escaped = false;
    for (;;) {
        int c = peek(s);

        if (c < 0) return fault(s, start, "expected a closing quote for this string");
        if (c == '"') {
            s->at++;
            return DL_OK;
        }
        if (c == '\\') {
            *escaped = true;
            DL_TRY(scan_escape(s));
        } else if (c < 0x20) {
            return fault(s, s->at, "expected no control character in a string, got byte 0x%02x",
                         (unsigned)c);
        } else if (c < 0x80) {
            s->at++;
        } else {
            size_t bytes = dl_utf8_bytes(s->text + s->at, s->length - s->at);

            if (bytes == 0)
                return fault(s, s->at, "expected UTF-8 text, got byte 0x%02x", (unsigned)c);
            s->at += bytes;
        }
    }
}

static enum dl_code out_of_memory(const struct scan *s) {
    return dl_fail(s->err, DL_ERR_SYSTEM, "%.400s: out of memory", s->name);
}

/* A code point as UTF-8; how many bytes. */
static size_t put_utf8(unsigned long code, char *out) {
    const size_t bytes = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;

    if (bytes == 1) {
        out[0] = (char)code;
        return 1;
    }
    for (size_t i = bytes - 1; i > 0; i--, code >>= 6) out[i] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)((0xf00u >> bytes & 0xf0u) | code);
    return bytes;
}

/* The character of the escape at `at`, which is valid; how many bytes of the text it takes. */
static size_t decode_escape(const struct scan *s, size_t at, char **out) {
    static const char letters[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    const char c = s->text[at + 1];
    unsigned long code;

    if (c != 'u') {
        *(*out)++ = values[strchr(letters, c) - letters];
        return 2;
    }
    code = (unsigned long)hex4(s, at + 2);
    if (code < 0xd800 || code > 0xdbff) {
        *out += put_utf8(code, *out);
        return 6;
    }
    code = 0x10000 + ((code - 0xd800) << 10) + ((unsigned long)hex4(s, at + 8) - 0xdc00);
    *out += put_utf8(code, *out);
    return 12;
}

/* Scans a string and returns its characters in *out. */
static enum dl_code take_string(struct scan *s, const char **out) {
    const size_t start = s->at + 1;
    bool escaped;
    char *text, *end;

    DL_TRY(scan_string(s, &escaped));
    *out = text = end = dl_arena_strndup(s->doc->arena, s->text + start, s->at - 1 - start);
    if (text == NULL) return out_of_memory(s);
    if (!escaped) return DL_OK;
    for (size_t at = start; at < s->at - 1;) { /* what an escape stands for is shorter */
        if (s->text[at] == '\\')
            at += decode_escape(s, at, &end);
        else
            *end++ = s->text[at++];
    }
    *end = 0;
    return DL_OK;
}

static size_t scan_digits(struct scan *s) {
    size_t start = s->at;

    while (peek(s) >= '0' && peek(s) <= '9') s->at++;
    return s->at - start;
}

/* The number between `start` and s->at. Up to 15 digits and a power of ten up to 22 are doubles, so
 * their product is the nearest one; strtod takes the others. */
static double number_of(const struct scan *s, size_t start) {
    static const double tens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                  1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                  1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const bool minus = s->text[start] == '-';
    int64_t digits = 0;
    int count = 0, power = 0;
    size_t at = start + (minus ? 1 : 0);

    for (bool behind_point = false; at < s->at; at++) {
        const char c = s->text[at];
        if (c == '.') {
            behind_point = true;
            continue;
        }
        if (c < '0' || c > '9') break;
        digits = digits * 10 + (c - '0');
        if (digits > 0 && ++count > 15) return strtod(s->text + start, NULL);
        if (behind_point) power--;
    }
    if (at < s->at) { /* an exponent */
        const long given = strtol(s->text + at + 1, NULL, 10);
        if (given > 400 || given < -400) return strtod(s->text + start, NULL);
        power += (int)given;
    }
    if (power < -22 || power > 22) return strtod(s->text + start, NULL);
    const double value = power < 0 ? (double)digits / tens[-power] : (double)digits * tens[power];
    return minus ? -value : value;
}

static enum dl_code scan_number(struct scan *s, const struct dl_json_path *path, double *out) {
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
    *out = number_of(s, start);
    if (isfinite(*out)) return DL_OK;
    return fault_at(s, start, path, "expected a number within the range of a double");
}

static enum dl_code scan_word(struct scan *s, struct dl_json_node *node) {
    static const struct {
        const char *word;
        enum dl_json_kind kind;
        bool value;
    } words[] = {{"true", DL_JSON_BOOL, true},
                 {"false", DL_JSON_BOOL, false},
                 {"null", DL_JSON_NULL, false}};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        size_t length = strlen(words[i].word);

        if (s->length - s->at >= length && memcmp(s->text + s->at, words[i].word, length) == 0) {
            s->at += length;
            node->kind = words[i].kind;
            node->boolean = words[i].value;
            return DL_OK;
        }
    }
    return unexpected(s, "a value");
}

static int by_key(const void *a, const void *b) {
    const struct dl_json_node *const *left = a, *const *right = b;

    return strcmp((*left)->key, (*right)->key);
}

static enum dl_code duplicate(struct scan *s, const struct dl_json_node *a,
                              const struct dl_json_node *b, const struct dl_json_path *path) {
    const struct dl_json_node *second = a->key_place > b->key_place ? a : b;
    const struct dl_json_path part = {path, second->key, 0};

    return fault_at(s, second->key_place, &part,
                    "expected each key once in an object, got it twice");
}

static enum dl_code check_duplicates(struct scan *s, const struct dl_json_node *object,
                                     const struct dl_json_path *path) {
    size_t count = (size_t)object->child_count, i = 0;
    const struct dl_json_node **sorted;
    enum dl_code code = DL_OK;

    if (count <= FEW_MEMBERS) {
        for (const struct dl_json_node *a = object->child; a != NULL; a = a->next)
            for (const struct dl_json_node *b = a->next; b != NULL; b = b->next)
                if (strcmp(a->key, b->key) == 0) return duplicate(s, a, b, path);
        return DL_OK;
    }
    /* a file may have a million keys: avoid quadratic time */
    sorted = malloc(count * sizeof *sorted);
    if (sorted == NULL) return out_of_memory(s);
    for (const struct dl_json_node *node = object->child; node != NULL; node = node->next)
        sorted[i++] = node;
    qsort(sorted, count, sizeof *sorted, by_key);
    for (i = 1; i < count && code == DL_OK; i++)
        if (strcmp(sorted[i - 1]->key, sorted[i]->key) == 0)
            code = duplicate(s, sorted[i - 1], sorted[i], path);
    free(sorted);
    return code;
}

/* One member or element, behind white space. */
static enum dl_code scan_child(struct scan *s, const struct dl_json_path *path,
                               struct dl_json_node *parent, struct dl_json_node *child) {
    struct dl_json_path part = {path, NULL, parent->child_count};

    child->key_place = DL_NO_PLACE;
    if (parent->kind == DL_JSON_OBJECT) {
        if (peek(s) != '"') return unexpected(s, "a key in double quotes");
        child->key_place = s->at;
        DL_TRY(take_string(s, &child->key));
        part.key = child->key;
        skip_space(s);
        if (peek(s) != ':') return unexpected(s, "':' after a key");
        s->at++;
    }
    return scan_value(s, &part, child);
}

/* The members of an object or elements of an array, up to the closing bracket. */
static enum dl_code scan_container(struct scan *s, const struct dl_json_path *path,
                                   struct dl_json_node *node) {
    const bool object = node->kind == DL_JSON_OBJECT;
    const int closer = object ? '}' : ']';
    struct dl_json_node **link = &node->child;

    if (s->depth >= DL_JSON_DEPTH)
        return fault(s, s->at, "expected nesting of at most %d levels", DL_JSON_DEPTH);
    s->depth++;
    s->at++;
    skip_space(s);
    while (peek(s) != closer || node->child_count > 0) {
        struct dl_json_node *child = dl_arena_alloc(s->doc->arena, 1, sizeof *child);
        if (child == NULL) return out_of_memory(s);
        skip_space(s);
        DL_TRY(scan_child(s, path, node, child));
        *link = child;
        link = &child->next;
        node->child_count++;
        skip_space(s);
        if (peek(s) == closer) break;
        if (peek(s) != ',') return unexpected(s, object ? "',' or '}'" : "',' or ']'");
        s->at++;
    }
    s->at++;
    s->depth--;
    return object ? check_duplicates(s, node, path) : DL_OK;
}

static enum dl_code scan_value(struct scan *s, const struct dl_json_path *path,
                               struct dl_json_node *node) {
    int c;

    skip_space(s);
    if (++s->values > MAX_VALUES)
        return fault(s, s->at, "expected at most %d values in a file", MAX_VALUES);
    node->place = s->at;
    c = peek(s);
    if (c == '{' || c == '[') {
        node->kind = c == '{' ? DL_JSON_OBJECT : DL_JSON_ARRAY;
        return scan_container(s, path, node);
    }
    if (c == '"') {
        node->kind = DL_JSON_STRING;
        return take_string(s, &node->string);
    }
    if (c != '-' && (c < '0' || c > '9')) return scan_word(s, node);
    node->kind = DL_JSON_NUMBER;
    return scan_number(s, path, &node->number);
}

enum dl_code dl_json_scan(struct dl_json *doc, struct dl_err *err) {
    const struct dl_json_path root_path = {NULL, NULL, 0};
    struct scan s = {
        .doc = doc, .name = doc->name, .text = doc->text, .length = doc->length, .err = err};

    if (s.length >= 3 && memcmp(s.text, "\xef\xbb\xbf", 3) == 0) s.at = 3;
    skip_space(&s);
    if (s.at == s.length)
        return dl_fail_at(err, s.name, 0, 0, NULL, "expected a JSON object, got an empty file");
    doc->root->key_place = DL_NO_PLACE;
    DL_TRY(scan_value(&s, &root_path, doc->root));
    skip_space(&s);
    if (s.at != s.length) return unexpected(&s, "nothing after the JSON value");
    return DL_OK;
}
