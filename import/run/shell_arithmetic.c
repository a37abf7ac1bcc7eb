/* shell_arithmetic.c - expressions of $((...)), and of bc, which has fractions. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "import/run/shell_internal.h"

struct reader {
    struct dl_shell *shell;
    const char *at;
    const char *unknown; /* a mark that the value depends on; NULL: none */
    bool fractions, wrong;
    int depth;
};

static double expression(struct reader *r, int level);

static void skip(struct reader *r) {
    while (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '"') r->at++;
}

/* A name's value, which may be an expression itself. */
static double variable(struct reader *r) {
    const char *from = r->at;
    while (dl_shell_is_name(*r->at, false)) r->at++;
    const char *name = dl_arena_strndup(r->shell->arena, from, (size_t)(r->at - from));
    const char *value = dl_shell_get(r->shell, name);
    if (value == NULL) {
        r->unknown =
            dl_arena_printf(r->shell->arena, "%c%s%c", DL_SHELL_OPEN, name, DL_SHELL_CLOSE);
        return NAN;
    }
    struct reader inner = {
        .shell = r->shell, .at = value, .fractions = r->fractions, .depth = r->depth + 1};
    if (inner.depth > 20) r->wrong = true;
    const double result = r->wrong || *value == '\0' ? 0 : expression(&inner, 0);
    r->wrong = r->wrong || inner.wrong;
    if (inner.unknown != NULL) r->unknown = inner.unknown;
    return result;
}

static double primary(struct reader *r) {
    skip(r);
    if (++r->depth > 40) r->wrong = true;
    double value = NAN;
    char *end;
    if (r->wrong) {
        value = NAN;
    } else if (*r->at == '-' || *r->at == '+' || *r->at == '!' || *r->at == '~') {
        const char sign = *r->at++;
        value = primary(r);
        value = sign == '-' ? -value : sign == '!' ? value == 0 : sign == '~' ? -value - 1 : value;
    } else if (*r->at == '(') {
        r->at++;
        value = expression(r, 0);
        skip(r);
        if (*r->at == ')')
            r->at++;
        else
            r->wrong = true;
    } else if (*r->at == DL_SHELL_OPEN) {
        const char *close = strchr(r->at, DL_SHELL_CLOSE);
        if (close == NULL) close = r->at + strlen(r->at) - 1;
        r->unknown = dl_arena_strndup(r->shell->arena, r->at, (size_t)(close + 1 - r->at));
        r->at = close + 1;
    } else if (dl_shell_is_name(*r->at, true)) {
        value = variable(r);
    } else {
        value = strtod(r->at, &end);
        r->wrong = r->wrong || end == r->at || (!r->fractions && value != floor(value));
        r->at = end;
    }
    r->depth--;
    return value;
}

static const struct operation {
    const char *text;
    int level;
} operations[] = {{"||", 1}, {"&&", 2}, {"==", 3}, {"!=", 3}, {"<=", 4}, {">=", 4},
                  {"<<", 5}, {">>", 5}, {"<", 4},  {">", 4},  {"+", 6},  {"-", 6},
                  {"**", 8}, {"*", 7},  {"/", 7},  {"%", 7},  {NULL, 0}};

static double compare(const char *o, double a, double b) {
    switch (o[0]) {
    case '|': return a != 0 || b != 0;
    case '&': return a != 0 && b != 0;
    case '=': return a == b;
    case '!': return a != b;
    case '<': return o[1] == '=' ? a <= b : o[1] == '<' ? a * exp2(b) : a < b;
    default: return o[1] == '=' ? a >= b : o[1] == '>' ? floor(a / exp2(b)) : a > b;
    }
}

static double apply(struct reader *r, const char *o, double a, double b) {
    switch (o[0]) {
    case '+': return a + b;
    case '-': return a - b;
    case '*': return o[1] == '*' ? pow(a, b) : a * b;
    case '%': r->wrong = r->wrong || b == 0; return fmod(a, b);
    case '/': r->wrong = r->wrong || b == 0; return r->fractions ? a / b : trunc(a / b);
    default: return compare(o, a, b);
    }
}

static double expression(struct reader *r, int level) {
    double value = primary(r);
    for (;;) {
        const struct operation *o = operations;
        skip(r);
        while (o->text != NULL && strncmp(r->at, o->text, strlen(o->text)) != 0) o++;
        if (*r->at == '?' && level == 0) {
            r->at++;
            const double yes = expression(r, 0);
            skip(r);
            if (*r->at == ':')
                r->at++;
            else
                r->wrong = true;
            const double no = expression(r, 0);
            return value != 0 ? yes : no;
        }
        if (o->text == NULL || o->level <= level || r->wrong) return value;
        r->at += strlen(o->text);
        value = apply(r, o->text, value, expression(r, o->level - (o->text[1] == '*')));
    }
}

const char *dl_shell_arithmetic(struct dl_shell *shell, const char *text, bool fractions) {
    struct reader r = {.shell = shell, .at = text, .fractions = fractions};
    const double value = expression(&r, 0);
    skip(&r);
    if (r.unknown != NULL) return r.unknown;
    if (r.wrong || *r.at != '\0' || !isfinite(value) || fabs(value) > 1e18)
        return dl_arena_printf(shell->arena, "%c%carithmetic%c", DL_SHELL_OPEN, DL_SHELL_PROGRAM,
                               DL_SHELL_CLOSE);
    return fractions && value != floor(value) ? dl_arena_printf(shell->arena, "%.12g", value)
                                              : dl_arena_printf(shell->arena, "%.0f", value);
}
