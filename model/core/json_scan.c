/* json_scan.c - from a text to the tree of a document. cJSON parses; one walk over its tree and the
 * text together gives each value its place and refuses what cJSON accepts beyond RFC 8259: leading
 * zeros, control characters, invalid UTF-8, keys twice. Where cJSON refuses the text, a second look
 * finds the place and what was expected there. */
#include "model/core/json_node.h"

#include <cjson/cJSON.h>
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
    struct dl_err *err;
};

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

/* The current byte; 0 at the end. A byte of 0 is valid nowhere. */
static unsigned char peek(const struct scan *s) { return (unsigned char)s->text[s->at]; }

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

/* ---- tokens: each function passes over one ---- */

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
static enum dl_code pass_escape(struct scan *s) {
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

static enum dl_code pass_string(struct scan *s) {
    const size_t start = s->at++;

    for (;;) {
        const char *at = s->text + s->at;
        while (is_plain((unsigned char)*at)) at++;
        s->at = (size_t)(at - s->text);
        const unsigned char c = peek(s);

        if (c == '"') break;
        if (s->at >= s->length) return fault(s, start, "expected a closing quote for this string");
        if (c == '\\') {
            DL_TRY(pass_escape(s));
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
    return DL_OK;
}

static size_t pass_digits(struct scan *s) {
    const size_t start = s->at;

    while (peek(s) >= '0' && peek(s) <= '9') s->at++;
    return s->at - start;
}

static enum dl_code pass_number(struct scan *s) {
    const size_t start = s->at;

    if (peek(s) == '-') s->at++;
    const size_t first = s->at, whole = pass_digits(s);
    if (whole == 0) return unexpected(s, "a digit");
    if (s->text[first] == '0' && whole > 1)
        return fault(s, start, "expected a number without leading zeros");
    if (peek(s) == '.') {
        s->at++;
        if (pass_digits(s) == 0) return unexpected(s, "a digit after the decimal point");
    }
    if (peek(s) == 'e' || peek(s) == 'E') {
        s->at++;
        if (peek(s) == '+' || peek(s) == '-') s->at++;
        if (pass_digits(s) == 0) return unexpected(s, "a digit in the exponent");
    }
    if (s->at - start > MAX_NUMBER)
        return fault(s, start, "expected a number of at most %d characters", MAX_NUMBER);
    return DL_OK;
}

static enum dl_code pass_scalar(struct scan *s) {
    static const char *const words[] = {"true", "false", "null", NULL};

    if (peek(s) == '"') return pass_string(s);
    if (peek(s) == '-' || (peek(s) >= '0' && peek(s) <= '9')) return pass_number(s);
    for (int i = 0; words[i] != NULL; i++) {
        const size_t length = strlen(words[i]);

        if (strncmp(s->text + s->at, words[i], length) != 0) continue;
        s->at += length;
        return DL_OK;
    }
    return unexpected(s, "a value");
}

static enum dl_code too_deep(struct scan *s) {
    return fault(s, s->at, "expected nesting of at most %d levels", DL_JSON_DEPTH);
}

/* ---- the second look at a text that cJSON refuses ---- */

/* A bracket may close where those from ELEMENT on are expected. */
enum expected { VALUE, KEY, COLON, ELEMENT, MEMBER, MORE };

struct look {
    enum expected expected;
    char closers[DL_JSON_DEPTH]; /* the brackets that are still to come */
    int depth;
};

static enum dl_code pass_opening(struct scan *s, struct look *l) {
    const bool object = peek(s) == '{';

    if (l->depth == DL_JSON_DEPTH) return too_deep(s);
    l->closers[l->depth++] = object ? '}' : ']';
    l->expected = object ? MEMBER : ELEMENT;
    s->at++;
    return DL_OK;
}

static enum dl_code pass_separator(struct scan *s, struct look *l, bool object) {
    const bool more = l->expected == MORE;

    if (peek(s) != (more ? ',' : ':'))
        return unexpected(s, !more ? "':' after a key" : object ? "',' or '}'" : "',' or ']'");
    l->expected = more && object ? KEY : VALUE;
    s->at++;
    return DL_OK;
}

static enum dl_code pass_token(struct scan *s, struct look *l) {
    const char c = (char)peek(s), closer = l->depth > 0 ? l->closers[l->depth - 1] : '\0';

    if (c == closer && l->depth > 0 && l->expected >= ELEMENT) {
        l->depth--;
        l->expected = MORE;
        s->at++;
        return DL_OK;
    }
    switch (l->expected) {
    case COLON:
    case MORE: return pass_separator(s, l, closer == '}');
    case KEY:
    case MEMBER:
        if (c != '"') return unexpected(s, "a key in double quotes");
        l->expected = COLON;
        return pass_string(s);
    default:
        if (c == '{' || c == '[') return pass_opening(s, l);
        l->expected = MORE;
        return pass_scalar(s);
    }
}

/* DL_OK: there is nothing to refuse in the text. */
static enum dl_code find_fault(struct scan *s) {
    struct look look = {.expected = VALUE};

    do {
        DL_TRY(pass_token(s, &look));
        skip_space(s);
    } while (look.depth > 0 || look.expected != MORE);
    return DL_OK;
}

/* ---- the walk over cJSON's tree and the text ---- */

static enum dl_code check_key(struct scan *s, struct dl_json_node *member, const char *key) {
    if (peek(s) != '"') return unexpected(s, "a key in double quotes");
    member->key_place = (uint32_t)s->at;
    member->key = dl_arena_strdup(s->doc->arena, key);
    DL_TRY(pass_string(s));
    skip_space(s);
    if (peek(s) != ':') return unexpected(s, "':' after a key");
    s->at++;
    return DL_OK;
}

static enum dl_code take(struct scan *s, const cJSON *item, const struct dl_json_path *path,
                         int depth, struct dl_json_node *node);

static enum dl_code take_children(struct scan *s, const cJSON *item,
                                  const struct dl_json_path *path, int depth,
                                  struct dl_json_node *node) {
    const bool object = node->kind == DL_JSON_OBJECT;
    struct dl_json_node **link = &node->child;

    if (depth == DL_JSON_DEPTH) return too_deep(s);
    s->at++;
    for (const cJSON *child = item->child; child != NULL; child = child->next) {
        struct dl_json_node *made = dl_arena_alloc(s->doc->arena, 1, sizeof *made);
        struct dl_json_path part = {path, NULL, node->child_count};

        made->key_place = DL_NO_PLACE;
        skip_space(s);
        if (object) DL_TRY(check_key(s, made, child->string));
        part.key = made->key;
        DL_TRY(take(s, child, &part, depth + 1, made));
        *link = made;
        link = &made->next;
        node->child_count++;
        skip_space(s);
        if (child->next == NULL) break;
        if (peek(s) != ',') return unexpected(s, "','");
        s->at++;
    }
    skip_space(s);
    if (peek(s) != (object ? '}' : ']')) return unexpected(s, object ? "'}'" : "']'");
    s->at++;
    return object ? dl_json_check_keys(s->doc, node, path, s->err) : DL_OK;
}

static enum dl_code beyond_doubles(struct scan *s, const struct dl_json_path *path, size_t place) {
    char key[192];
    int line, col;

    dl_json_path_text(path, key, sizeof key);
    dl_json_position(s->text, s->length, place, &line, &col);
    return dl_fail_at(s->err, s->doc->name, line, col, key,
                      "expected a number within the range of a double");
}

static enum dl_code take(struct scan *s, const cJSON *item, const struct dl_json_path *path,
                         int depth, struct dl_json_node *node) {
    skip_space(s);
    node->place = (uint32_t)s->at;
    if (cJSON_IsObject(item) || cJSON_IsArray(item)) {
        node->kind = cJSON_IsObject(item) ? DL_JSON_OBJECT : DL_JSON_ARRAY;
        if (peek(s) != '{' && peek(s) != '[') return unexpected(s, "a value");
        return take_children(s, item, path, depth, node);
    }
    DL_TRY(pass_scalar(s));
    if (cJSON_IsString(item)) {
        node->kind = DL_JSON_STRING;
        node->string = dl_arena_strdup(s->doc->arena, item->valuestring);
    } else if (cJSON_IsNumber(item)) {
        node->kind = DL_JSON_NUMBER;
        node->number = item->valuedouble;
        if (!isfinite(node->number)) return beyond_doubles(s, path, node->place);
    } else if (cJSON_IsBool(item)) {
        node->kind = DL_JSON_BOOL;
        node->boolean = cJSON_IsTrue(item);
    }
    return DL_OK;
}

/* More commas and brackets than a document may have. */
static enum dl_code check_size(struct scan *s) {
    int values = 0;

    if (s->length <= MAX_VALUES) return DL_OK;
    for (size_t i = 0; i < s->length; i++) {
        values += s->text[i] == ',' || s->text[i] == '[' || s->text[i] == '{';
        if (values > MAX_VALUES)
            return fault(s, i, "expected at most %d values in a file", MAX_VALUES);
    }
    return DL_OK;
}

enum dl_code dl_json_scan(struct dl_json *doc, struct dl_err *err) {
    const struct dl_json_path path = {NULL, NULL, 0};
    struct scan s = {.doc = doc, .text = doc->text, .length = doc->length, .err = err};

    if (s.length >= 3 && memcmp(s.text, "\xef\xbb\xbf", 3) == 0) s.at = 3;
    skip_space(&s);
    if (s.at == s.length)
        return dl_fail_at(err, doc->name, 0, 0, NULL, "expected a JSON object, got an empty file");
    DL_TRY(check_size(&s));
    cJSON *tree = cJSON_ParseWithLengthOpts(s.text + s.at, s.length - s.at, NULL, false);
    if (tree == NULL) {
        DL_TRY(find_fault(&s));
        return dl_fail(err, DL_ERR_SYSTEM, "%.400s: out of memory", doc->name);
    }
    doc->root = dl_arena_alloc(doc->arena, 1, sizeof *doc->root);
    doc->root->key_place = DL_NO_PLACE;
    const enum dl_code code = take(&s, tree, &path, 0, doc->root);
    cJSON_Delete(tree);
    DL_TRY(code);
    skip_space(&s);
    return s.at == s.length ? DL_OK : unexpected(&s, "nothing after the JSON value");
}
