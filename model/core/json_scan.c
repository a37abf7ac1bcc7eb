/* json_scan.c - parses a text into the tree of a document in one pass, strictly by RFC 8259. cJSON
 * has no positions, accepts more than JSON ("01", "1.", control characters, invalid UTF-8) and
 * nests a thousand levels; here every error has its line and column, and depth and size are
 * limited. cJSON decodes strings with escapes. */
#include "model/core/json_node.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_NUMBER = 60,      /* characters */
    MAX_VALUES = 4000000, /* bounds the memory that a document of 64 MiB can take */
};

struct scan {
    struct dl_json *doc;
    const char *text; /* a NUL follows it */
    size_t length, at;
    int depth, values;
    double *numbers; /* of the array being read, whose length is unknown yet */
    size_t number_room;
    struct dl_err *err;
    /* first semantic error, reported if the syntax is valid */
    enum dl_code later;
    struct dl_err later_err;
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
    return dl_fail_at(s->err, s->doc->name, line, col, NULL, "%s", message);
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

static enum dl_code out_of_memory(struct scan *s) {
    return dl_fail(s->err, DL_ERR_SYSTEM, "%.400s: out of memory", s->doc->name);
}

/* The current byte; 0 at the end. A byte of 0 is valid nowhere. */
static unsigned char peek(const struct scan *s) { return (unsigned char)s->text[s->at]; }

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

static void skip_space(struct scan *s) {
    const char *at = s->text + s->at;

    while (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r') at++;
    s->at = (size_t)(at - s->text);
}

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

/* At a backslash. \u0000 would end a C string; half a surrogate pair is not a character. */
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

/* Unescaped ASCII characters of a string. */
static bool is_plain(unsigned char c) { return c >= 0x20 && c < 0x80 && c != '"' && c != '\\'; }

static enum dl_code scan_string(struct scan *s, const char **out) {
    const size_t start = s->at++;
    bool escapes = false;

    for (;;) {
        const char *at = s->text + s->at;
        while (is_plain((unsigned char)*at)) at++;
        s->at = (size_t)(at - s->text);
        const unsigned char c = peek(s);

        if (c == '"') break;
        if (s->at >= s->length) return fault(s, start, "expected a closing quote for this string");
        if (c == '\\') {
            escapes = true;
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
    s->at++;
    const size_t length = s->at - start;
    *out = escapes ? dl_json_decode(s->doc, s->text + start, length)
                   : dl_arena_strndup(s->doc->arena, s->text + start + 1, length - 2);
    return *out != NULL ? DL_OK : out_of_memory(s);
}

static size_t scan_digits(struct scan *s) {
    const size_t start = s->at;

    while (peek(s) >= '0' && peek(s) <= '9') s->at++;
    return s->at - start;
}

static enum dl_code scan_number(struct scan *s, double *out) {
    const size_t start = s->at;

    if (peek(s) == '-') s->at++;
    const size_t first = s->at, whole = scan_digits(s);
    if (whole == 0) return unexpected(s, "a digit");
    if (s->text[first] == '0' && whole > 1)
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
    *out = strtod(s->text + start, NULL);
    return DL_OK;
}

static enum dl_code scan_word(struct scan *s, struct dl_json_node *node) {
    static const char *const words[] = {"true", "false", "null", NULL};

    for (int i = 0; words[i] != NULL; i++) {
        size_t length = strlen(words[i]);

        if (s->length - s->at >= length && memcmp(s->text + s->at, words[i], length) == 0) {
            s->at += length;
            node->kind = i < 2 ? DL_JSON_BOOL : DL_JSON_NULL;
            node->boolean = i == 0;
            return DL_OK;
        }
    }
    return unexpected(s, "a value");
}

static enum dl_code count_value(struct scan *s) {
    if (++s->values <= MAX_VALUES) return DL_OK;
    return fault(s, s->at, "expected at most %d values in a file", MAX_VALUES);
}

static bool at_number(const struct scan *s) {
    return peek(s) == '-' || (peek(s) >= '0' && peek(s) <= '9');
}

static bool more_numbers(struct scan *s) {
    const size_t room = s->number_room == 0 ? 1024 : 2 * s->number_room;
    double *numbers = realloc(s->numbers, room * sizeof *numbers);

    if (numbers == NULL) return false;
    s->numbers = numbers;
    s->number_room = room;
    return true;
}

/* Whether the text repeats the preceding number with its comma, as a third of the numbers of data
 * files do. */
static bool repeats(const char *at, size_t length) { return strncmp(at, at - length, length) == 0; }

/* Reads an array of numbers and its closing bracket without a node for each. *packed false: it
 * contains something else, or a number beyond doubles; nothing has been read. */
static enum dl_code scan_numbers(struct scan *s, struct dl_json_node *node, bool *packed) {
    const size_t first = s->at;
    const int values = s->values;
    size_t count = 0, length = 0; /* of the previous number with its comma */

    for (*packed = true;;) {
        if (count == s->number_room && !more_numbers(s)) return out_of_memory(s);
        if (length > 0 && repeats(s->text + s->at, length)) {
            DL_TRY(count_value(s));
            s->numbers[count] = s->numbers[count - 1];
            s->at += length;
            count++;
            continue;
        }
        skip_space(s);
        const size_t begin = s->at;
        *packed = at_number(s);
        if (!*packed) break;
        DL_TRY(count_value(s));
        DL_TRY(scan_number(s, &s->numbers[count]));
        *packed = isfinite(s->numbers[count++]);
        if (!*packed) break;
        skip_space(s);
        if (peek(s) == ']') break;
        if (peek(s) != ',') return unexpected(s, "',' or ']'");
        s->at++;
        length = s->at - begin;
    }
    if (!*packed) {
        s->at = first;
        s->values = values;
        return DL_OK;
    }
    s->at++;
    node->numbers = dl_arena_alloc(s->doc->arena, count, sizeof *node->numbers);
    memcpy(node->numbers, s->numbers, count * sizeof *node->numbers);
    node->child_count = (int)count;
    return DL_OK;
}

/* The key and colon of a member. */
static enum dl_code scan_key(struct scan *s, struct dl_json_node *member) {
    if (peek(s) != '"') return unexpected(s, "a key in double quotes");
    member->key_place = (uint32_t)s->at;
    DL_TRY(scan_string(s, &member->key));
    skip_space(s);
    if (peek(s) != ':') return unexpected(s, "':' after a key");
    s->at++;
    return DL_OK;
}

/* Reads the members of an object or elements of an array, and the closing bracket. */
static enum dl_code scan_children(struct scan *s, const struct dl_json_path *path,
                                  struct dl_json_node *node) {
    const bool object = node->kind == DL_JSON_OBJECT;
    struct dl_json_node **link = &node->child;

    for (;;) {
        struct dl_json_node *made = dl_arena_alloc(s->doc->arena, 1, sizeof *made);
        struct dl_json_path part = {path, NULL, node->child_count};

        made->key_place = DL_NO_PLACE;
        skip_space(s);
        if (object) {
            DL_TRY(scan_key(s, made));
            part.key = made->key;
        }
        DL_TRY(scan_value(s, &part, made));
        *link = made;
        link = &made->next;
        node->child_count++;
        skip_space(s);
        if (peek(s) == (object ? '}' : ']')) break;
        if (peek(s) != ',') return unexpected(s, object ? "',' or '}'" : "',' or ']'");
        s->at++;
    }
    s->at++;
    if (object && s->later == DL_OK)
        s->later = dl_json_check_keys(s->doc, node, path, &s->later_err);
    return DL_OK;
}

static enum dl_code scan_container(struct scan *s, const struct dl_json_path *path,
                                   struct dl_json_node *node) {
    const bool object = peek(s) == '{';
    bool packed = false;

    if (s->depth >= DL_JSON_DEPTH)
        return fault(s, s->at, "expected nesting of at most %d levels", DL_JSON_DEPTH);
    node->kind = object ? DL_JSON_OBJECT : DL_JSON_ARRAY;
    s->depth++;
    s->at++;
    skip_space(s);
    if (peek(s) == (object ? '}' : ']')) {
        s->at++;
    } else {
        if (!object && s->doc->packed && at_number(s)) DL_TRY(scan_numbers(s, node, &packed));
        if (!packed) DL_TRY(scan_children(s, path, node));
    }
    s->depth--;
    return DL_OK;
}

static void beyond_doubles(struct scan *s, const struct dl_json_path *path, size_t place) {
    char key[192];
    int line, col;

    if (s->later != DL_OK) return;
    dl_json_path_text(path, key, sizeof key);
    dl_json_position(s->text, s->length, place, &line, &col);
    s->later = dl_fail_at(&s->later_err, s->doc->name, line, col, key,
                          "expected a number within the range of a double");
}

static enum dl_code scan_value(struct scan *s, const struct dl_json_path *path,
                               struct dl_json_node *node) {
    skip_space(s);
    DL_TRY(count_value(s));
    node->place = (uint32_t)s->at;
    if (peek(s) == '{' || peek(s) == '[') return scan_container(s, path, node);
    if (peek(s) == '"') {
        node->kind = DL_JSON_STRING;
        return scan_string(s, &node->string);
    }
    if (!at_number(s)) return scan_word(s, node);
    node->kind = DL_JSON_NUMBER;
    DL_TRY(scan_number(s, &node->number));
    if (!isfinite(node->number)) beyond_doubles(s, path, node->place);
    return DL_OK;
}

/* The whole text; *root is set. */
static enum dl_code scan_text(struct scan *s, struct dl_json_node *root) {
    const struct dl_json_path path = {NULL, NULL, 0};

    if (s->length >= 3 && memcmp(s->text, "\xef\xbb\xbf", 3) == 0) s->at = 3;
    skip_space(s);
    if (s->at == s->length)
        return dl_fail_at(s->err, s->doc->name, 0, 0, NULL,
                          "expected a JSON object, got an empty file");
    DL_TRY(scan_value(s, &path, root));
    skip_space(s);
    if (s->at != s->length) return unexpected(s, "nothing after the JSON value");
    if (s->later != DL_OK && s->err != NULL) *s->err = s->later_err;
    return s->later;
}

enum dl_code dl_json_scan(struct dl_json *doc, struct dl_err *err) {
    struct scan s = {.doc = doc, .text = doc->text, .length = doc->length, .err = err};

    doc->root = dl_arena_alloc(doc->arena, 1, sizeof *doc->root);
    doc->root->key_place = DL_NO_PLACE;
    const enum dl_code code = scan_text(&s, doc->root);
    free(s.numbers);
    return code;
}
