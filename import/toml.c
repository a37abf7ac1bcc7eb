/* toml.c - see toml.h. */
#include "import/toml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/core/text.h"

struct reader {
    const char *name, *text, *at, *end;
    struct dl_arena *arena;
    struct dl_toml *out;
    struct dl_err *err;
    char table[DL_TOML_PATH];
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
        if (length + strlen(part) + 2 > DL_TOML_PATH) return fail(r, "the key is too long");
        snprintf(path + length, DL_TOML_PATH - length, "%s%s", length > 0 ? "." : "", part);
        skip_blanks(r);
        if (peek(r) != '.') return DL_OK;
        r->at++;
    }
}

/* The characters of a number or word. */
static enum dl_code read_plain(struct reader *r, struct dl_toml_entry *e) {
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
    e->text = dl_arena_strdup(r->arena, digits);
    e->type = DL_TOML_BOOL;
    e->number = strcmp(digits, "true") == 0;
    if (e->number > 0 || strcmp(digits, "false") == 0) return DL_OK;
    char *end;
    e->type = DL_TOML_NUMBER;
    e->number = strtod(digits, &end);
    if (n > 0 && *end == '\0' && digits[strspn(digits, "+-0123456789.eE")] == '\0' &&
        e->number - e->number == 0)
        return DL_OK;
    r->at = from;
    return fail(r, "expected a number, true, false, a string or an array");
}

static enum dl_code read_scalar(struct reader *r, struct dl_toml_entry *e) {
    if (peek(r) != '"' && peek(r) != '\'') return read_plain(r, e);
    e->type = DL_TOML_STRING;
    return read_string(r, &e->text);
}

/* Blanks, comments and line ends inside an array. */
static void skip_lines(struct reader *r) {
    for (;;) {
        skip_comment(r);
        if (peek(r) != '\n' && peek(r) != '\r') return;
        r->at++;
    }
}

static enum dl_code read_array(struct reader *r, struct dl_toml_entry *e) {
    struct dl_text text = {.arena = r->arena};
    e->type = DL_TOML_ARRAY;
    e->number = 0;
    r->at++;
    for (;;) {
        struct dl_toml_entry element = {0};
        skip_lines(r);
        if (peek(r) == ']') break;
        if (r->at >= r->end) return fail(r, "expected the end of the array");
        DL_TRY(read_scalar(r, &element));
        dl_text_printf(&text, "%s\n", element.text);
        e->number++;
        skip_lines(r);
        if (peek(r) == ',')
            r->at++;
        else if (peek(r) != ']')
            return fail(r, "expected ',' or ']'");
    }
    r->at++;
    e->text = dl_text_string(&text);
    return DL_OK;
}

const struct dl_toml_entry *dl_toml_find(const struct dl_toml *toml, const char *path) {
    for (int i = 0; i < toml->count; i++) {
        if (strcmp(toml->entries[i].path, path) == 0) return &toml->entries[i];
    }
    return NULL;
}

static enum dl_code read_entry(struct reader *r) {
    char path[DL_TOML_PATH];
    struct dl_toml_entry e = {0};
    struct dl_toml_entry *place = &r->out->entries[r->out->count];
    const char *start = r->at;
    memcpy(path, r->table, sizeof path);
    DL_TRY(read_key(r, path));
    if (dl_toml_find(r->out, path) != NULL) {
        r->at = start;
        return fail(r, "the key was given before");
    }
    if (r->out->count == DL_TOML_ENTRIES) return fail(r, "more keys than a configuration has");
    if (peek(r) != '=') return fail(r, "expected '='");
    r->at++;
    skip_blanks(r);
    e.line = 1, e.col = 1;
    for (const char *c = r->text; c < start; c++) e.line += *c == '\n';
    e.path = dl_arena_strdup(r->arena, path);
    DL_TRY(peek(r) == '[' ? read_array(r, &e) : read_scalar(r, &e));
    *place = e;
    r->out->count++;
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

enum dl_code dl_toml_parse(const char *name, const char *text, size_t length,
                           struct dl_arena *arena, struct dl_toml *out, struct dl_err *err) {
    struct reader r = {.name = name,
                       .text = text,
                       .at = text,
                       .end = text + length,
                       .arena = arena,
                       .out = out,
                       .err = err};
    *out = (struct dl_toml){.name = name};
    out->entries = dl_arena_alloc(arena, DL_TOML_ENTRIES + 1, sizeof *out->entries);
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
