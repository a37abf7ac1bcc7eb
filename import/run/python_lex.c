/* python_lex.c - Python as tokens; lines inside brackets are one. */
#include <ctype.h>
#include <string.h>

#include "import/run/python_internal.h"

struct lexer {
    struct dl_py *py;
    const char *path, *at, *end, *line_start;
    int line, depth, indent;
    bool fresh; /* at the start of a logical line */
    struct dl_py_module *out;
};

static enum dl_code fail(const struct lexer *l, const char *expected) {
    return dl_fail_at(l->py->err, l->path, l->line, (int)(l->at - l->line_start) + 1, NULL, "%s",
                      expected);
}

static struct dl_py_token *push(struct lexer *l, enum dl_py_token_kind kind) {
    struct dl_py_module *m = l->out;
    m->tokens = dl_arena_grow(l->py->arena, m->tokens, (size_t)m->count, sizeof *m->tokens);
    struct dl_py_token *t = &m->tokens[m->count++];
    *t = (struct dl_py_token){.kind = kind,
                              .starts = l->fresh,
                              .text = "",
                              .line = l->line,
                              .column = (int)(l->at - l->line_start) + 1,
                              .indent = l->indent};
    l->fresh = false;
    return t;
}

static void next_line(struct lexer *l) {
    l->line++;
    l->line_start = l->at;
}

/* One character of a string, after a backslash where one is read. */
static void add_escaped(struct lexer *l, struct dl_text *text, bool raw) {
    char c = *l->at;
    if (c == '\\' && l->at + 1 < l->end && !raw) {
        c = *++l->at;
        c = (char)(c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c);
        if (*l->at == '\n') {
            l->at++;
            next_line(l);
            return;
        }
    } else if (c == '\n') {
        l->at++;
        next_line(l);
        l->at--;
    }
    dl_text_add_bytes(text, &c, 1);
    l->at++;
}

static enum dl_code read_string(struct lexer *l, bool raw, bool formatted) {
    const char quote = *l->at;
    const bool triple = l->end - l->at >= 3 && l->at[1] == quote && l->at[2] == quote;
    struct dl_text text = {.arena = l->py->arena};
    struct dl_py_token *token = push(l, DL_PY_STRING);
    const int at = (int)(token - l->out->tokens);
    l->at += triple ? 3 : 1;
    for (;;) {
        if (l->at >= l->end || (!triple && *l->at == '\n'))
            return fail(l, "expected the end of the string");
        if (*l->at == '\0') return fail(l, "a zero byte");
        if (raw && *l->at == '\\' && l->at + 1 < l->end && l->at[1] != '\n') {
            dl_text_add_bytes(&text, l->at, 2);
            l->at += 2;
            continue;
        }
        const bool closes =
            !triple || (l->end - l->at >= 3 && l->at[1] == quote && l->at[2] == quote);
        if (*l->at == quote && closes) break;
        add_escaped(l, &text, raw);
    }
    l->at += triple ? 3 : 1;
    l->out->tokens[at].text = formatted ? NULL : dl_text_string(&text);
    return DL_OK;
}

static bool is_word(char c) {
    return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 128;
}

static enum dl_code read_word(struct lexer *l) {
    const char *from = l->at;
    while (l->at < l->end && is_word(*l->at)) l->at++;
    const size_t length = (size_t)(l->at - from);
    if (l->at < l->end && (*l->at == '"' || *l->at == '\'') && length <= 2 &&
        strspn(from, "rRbBfFuU") >= length) {
        const bool raw = memchr(from, 'r', length) != NULL || memchr(from, 'R', length) != NULL;
        const bool formatted =
            memchr(from, 'f', length) != NULL || memchr(from, 'F', length) != NULL;
        return read_string(l, raw, formatted);
    }
    push(l, DL_PY_NAME)->text = dl_arena_strndup(l->py->arena, from, length);
    return DL_OK;
}

/* Digits with what follows: 1_000, 1e-5, 0x10, 1.5. */
static void read_number(struct lexer *l) {
    char digits[64];
    size_t n = 0;
    struct dl_py_token *token = push(l, DL_PY_DIGITS);
    for (; l->at < l->end && (is_word(*l->at) || *l->at == '.' ||
                              ((*l->at == '+' || *l->at == '-') && n > 0 &&
                               (digits[n - 1] == 'e' || digits[n - 1] == 'E')));
         l->at++)
        if (*l->at != '_' && n + 1 < sizeof digits) digits[n++] = *l->at;
    token->text = dl_arena_strndup(l->py->arena, digits, n);
}

static enum dl_code read_operator(struct lexer *l) {
    static const char *const all[] = {
        "**=", "//=", ">>=", "<<=", "...", "->", "==", "!=", "<=", ">=", ":=", "+=", "-=",
        "*=",  "/=",  "%=",  "|=",  "&=",  "^=", "@=", "**", "//", ">>", "<<", NULL};
    const size_t left = (size_t)(l->end - l->at);
    size_t length = 1;
    for (int i = 0; all[i] != NULL && length == 1; i++)
        if (strlen(all[i]) <= left && strncmp(l->at, all[i], strlen(all[i])) == 0)
            length = strlen(all[i]);
    if (length == 1 && (*l->at == '\0' || strchr("()[]{},:.;=+-*/%<>@&|^~", *l->at) == NULL))
        return fail(l, "a character that Python does not have here");
    if (strchr("([{", *l->at) != NULL) l->depth++;
    if (strchr(")]}", *l->at) != NULL && --l->depth < 0)
        return fail(l, "a bracket that closes none");
    push(l, DL_PY_OPERATOR)->text = dl_arena_strndup(l->py->arena, l->at, length);
    l->at += length;
    return DL_OK;
}

/* Blanks, comments and ends of lines. */
static void skip(struct lexer *l) {
    while (l->at < l->end) {
        const char c = *l->at;
        if (c == '#') {
            while (l->at < l->end && *l->at != '\n') l->at++;
        } else if (c == '\n') {
            l->at++;
            next_line(l);
            l->indent = l->depth > 0 ? l->indent : 0;
            l->fresh = l->fresh || l->depth == 0;
        } else if (c == '\\' && l->end - l->at > 1 && l->at[1] == '\n') {
            l->at += 2;
            next_line(l);
        } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f') {
            l->at++;
            if (l->fresh && l->depth == 0) l->indent += c == '\t' ? 8 - l->indent % 8 : 1;
        } else {
            return;
        }
    }
}

enum dl_code dl_py_tokens(struct dl_py *py, const char *text, size_t length,
                          struct dl_py_module *out) {
    struct lexer l = {.py = py,
                      .path = out->path,
                      .at = text,
                      .end = text + length,
                      .line_start = text,
                      .line = 1,
                      .fresh = true,
                      .out = out};
    if (length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) l.at += 3;
    for (skip(&l); l.at < l.end; skip(&l)) {
        if (*l.at == '"' || *l.at == '\'')
            DL_TRY(read_string(&l, false, false));
        else if (isdigit((unsigned char)*l.at) ||
                 (*l.at == '.' && l.end - l.at > 1 && isdigit((unsigned char)l.at[1])))
            read_number(&l);
        else if (is_word(*l.at))
            DL_TRY(read_word(&l));
        else
            DL_TRY(read_operator(&l));
    }
    if (l.depth > 0) return fail(&l, "expected the end of a bracket");
    l.fresh = true;
    l.indent = 0;
    push(&l, DL_PY_END);
    out->count--;
    return DL_OK;
}
