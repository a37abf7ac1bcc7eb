/* toml.c - see toml.h. */
#include "import/run/toml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/core/text.h"

enum { LONGEST_PATH = 256 };

struct reader {
    const char *name, *text, *at, *end;
    struct dl_arena *arena;
    struct dl_arguments *out;
    struct dl_err *err;
    char table[LONGEST_PATH];
};

static enum dl_code fail(const struct reader *r, const char *what) {
    int line = 1, col = 1;
    for (const char *c = r->text; c < r->at; c++) {
        col++;
        if (*c == '\n') line++, col = 1;
    }
    return dl_fail_at(r->err, r->name, line, col, NULL, "%s", what);
}

static char peek(const struct reader *r) { return r->at < r->end ? *r->at : '\0'; }

static void skip_blanks(struct reader *r) {
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t')) r->at++;
}

static void skip_comment(struct reader *r) {
    skip_blanks(r);
    if (peek(r) != '#') return;
    while (r->at < r->end && *r->at != '\n') r->at++;
}

/* The end of a line, after a comment. */
static enum dl_code end_line(struct reader *r) {
    skip_comment(r);
    if (peek(r) == '\r') r->at++;
    if (r->at == r->end) return DL_OK;
    if (*r->at != '\n') return fail(r, "expected the end of the line");
    r->at++;
    return DL_OK;
}

static bool is_bare(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
}

/* What follows a backslash in "..."; 0: not allowed. \u is not needed and refused. */
static char escaped(char c) {
    switch (c) {
    case 'n': return '\n';
    case 't': return '\t';
    case 'r': return '\r';
    case 'b': return '\b';
    case 'f': return '\f';
    case '"':
    case '\\': return c;
    default: return '\0';
    }
}

/* "basic" or 'literal', on one line. */
static enum dl_code read_string(struct reader *r, const char **out) {
    const char quote = *r->at;
    struct dl_text text = {.arena = r->arena};
    if (r->end - r->at >= 3 && r->at[1] == quote && r->at[2] == quote)
        return fail(r, "strings of several lines are not read");
    for (r->at++; peek(r) != quote; r->at++) {
        if (r->at >= r->end || *r->at == '\n') return fail(r, "expected the end of the string");
        char c = *r->at;
        if ((unsigned char)c < 0x20 && c != '\t') return fail(r, "a control character in a string");
        if (quote == '"' && c == '\\') {
            r->at++;
            c = escaped(peek(r));
            if (c == '\0')
                return fail(r, "an escape that is not read; there are \\\" \\\\ \\n \\t");
        }
        dl_text_add_bytes(&text, &c, 1);
    }
    r->at++;
    *out = dl_text_string(&text);
    return DL_OK;
}

/* "a.b.c" behind what `path` has. */
static enum dl_code read_key(struct reader *r, char *path) {
    for (;;) {
        const char *part, *from = r->at;
        size_t length = strlen(path);
        skip_blanks(r);
        if (peek(r) == '"' || peek(r) == '\'') {
            DL_TRY(read_string(r, &part));
        } else {
            from = r->at;
            while (r->at < r->end && is_bare(*r->at)) r->at++;
            part = dl_arena_strndup(r->arena, from, (size_t)(r->at - from));
        }
        if (part[0] == '\0') return fail(r, "expected a key");
        if (length + strlen(part) + 2 > LONGEST_PATH) return fail(r, "the key is too long");
        snprintf(path + length, LONGEST_PATH - length, "%s%s", length > 0 ? "." : "", part);
        skip_blanks(r);
        if (peek(r) != '.') return DL_OK;
        r->at++;
    }
}

/* The characters of a number or word. */
static enum dl_code read_plain(struct reader *r, const char **out) {
    char digits[64];
    size_t n = 0;
    const char *from = r->at;
    while (r->at < r->end && (is_bare(*r->at) || *r->at == '+' || *r->at == '.')) {
        if (*r->at != '_') digits[n++] = *r->at;
        if (n >= sizeof digits)
            return fail(r, "expected a number, true, false, a string or an array");
        r->at++;
    }
    digits[n] = '\0';
    *out = dl_arena_strdup(r->arena, digits);
    if (strcmp(digits, "true") == 0 || strcmp(digits, "false") == 0) return DL_OK;
    char *end;
    const double number = strtod(digits, &end);
    if (n > 0 && *end == '\0' && digits[strspn(digits, "+-0123456789.eE")] == '\0' &&
        number - number == 0)
        return DL_OK;
    r->at = from;
    return fail(r, "expected a number, true, false, a string or an array");
}

static enum dl_code read_scalar(struct reader *r, const char **out) {
    return peek(r) == '"' || peek(r) == '\'' ? read_string(r, out) : read_plain(r, out);
}

/* Blanks, comments and line ends inside an array. */
static void skip_lines(struct reader *r) {
    for (;;) {
        skip_comment(r);
        if (peek(r) != '\n' && peek(r) != '\r') return;
        r->at++;
    }
}

/* Its elements, one a line. */
static enum dl_code read_array(struct reader *r, const char **out) {
    struct dl_text text = {.arena = r->arena};
    r->at++;
    for (;;) {
        const char *element;
        skip_lines(r);
        if (peek(r) == ']') break;
        if (r->at >= r->end) return fail(r, "expected the end of the array");
        DL_TRY(peek(r) == '[' ? fail(r, "expected a number, true, false or a string")
                              : read_scalar(r, &element));
        dl_text_printf(&text, "%s\n", element);
        skip_lines(r);
        if (peek(r) == ',')
            r->at++;
        else if (peek(r) != ']')
            return fail(r, "expected ',' or ']'");
    }
    r->at++;
    *out = dl_text_string(&text);
    return DL_OK;
}

static enum dl_code read_entry(struct reader *r) {
    char path[LONGEST_PATH];
    const char *start = r->at, *value;
    int line = 1;
    memcpy(path, r->table, sizeof path);
    DL_TRY(read_key(r, path));
    for (int i = 0; i < r->out->count; i++) {
        if (strcmp(r->out->all[i].name, path) != 0) continue;
        r->at = start;
        return fail(r, "the key was given before");
    }
    if (peek(r) != '=') return fail(r, "expected '='");
    r->at++;
    skip_blanks(r);
    for (const char *c = r->text; c < start; c++) line += *c == '\n';
    const bool array = peek(r) == '[';
    DL_TRY(array ? read_array(r, &value) : read_scalar(r, &value));
    DL_TRY(dl_arguments_add(r->out, dl_arena_strdup(r->arena, path), value, line, r->err));
    r->out->all[r->out->count - 1].list = array;
    return end_line(r);
}

static enum dl_code read_table(struct reader *r) {
    r->at++;
    if (peek(r) == '[') return fail(r, "arrays of tables are not read");
    r->table[0] = '\0';
    DL_TRY(read_key(r, r->table));
    if (peek(r) != ']') return fail(r, "expected ']'");
    r->at++;
    return end_line(r);
}

enum dl_code dl_toml_read(const char *text, size_t length, struct dl_arguments *out,
                          struct dl_err *err) {
    struct reader r = {.name = out->path,
                       .text = text,
                       .at = text,
                       .end = text + length,
                       .arena = out->arena,
                       .out = out,
                       .err = err};
    if (memchr(text, '\0', length) != NULL) return fail(&r, "a zero byte: this is no text");
    while (r.at < r.end) {
        skip_comment(&r);
        const char c = peek(&r);
        if (r.at == r.end) break;
        if (c == '\n' || c == '\r')
            r.at++;
        else
            DL_TRY(c == '[' ? read_table(&r) : read_entry(&r));
    }
    return DL_OK;
}
