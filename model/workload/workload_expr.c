/* workload_expr.c - recursive descent over one short expression; no allocation.
 */
#include "model/workload/workload_expr.h"

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 32, NAME_BYTES = 64 };

struct parser {
    const char *text, *at;
    const struct dl_expr_names *names;
    struct dl_err *err;
    int depth;
    int muted; /* > 0 inside a branch that is not taken: syntax and names count, values do not */
};

static enum dl_code parse_choice(struct parser *p, double *out);

static enum dl_code syntax(struct parser *p, const char *expected) {
    if (*p->at == '\0') {
        return dl_fail(p->err, DL_ERR_INPUT, "in \"%.80s\": expected %s, found the end", p->text,
                       expected);
    }
    return dl_fail(p->err, DL_ERR_INPUT, "in \"%.80s\": expected %s, found '%.8s'", p->text,
                   expected, p->at);
}

static enum dl_code too_deep(struct parser *p) {
    return dl_fail(p->err, DL_ERR_INPUT, "an expression is nested deeper than %d", DEPTH_MAX);
}

static void skip_space(struct parser *p) {
    while (*p->at == ' ' || *p->at == '\t') p->at++;
}

static bool take(struct parser *p, const char *symbol) {
    skip_space(p);
    if (*p->at != *symbol) return false; /* nearly always: before any call */
    const size_t length = strlen(symbol);
    if (strncmp(p->at, symbol, length) != 0) return false;
    p->at += length;
    return true;
}

static enum dl_code parse_number(struct parser *p, double *out) {
    char *end = NULL;
    if (p->at[0] == '0' && (p->at[1] == 'x' || p->at[1] == 'X'))
        return syntax(p, "a decimal number");
    *out = strtod(p->at, &end);
    if (end == p->at || !isfinite(*out)) return syntax(p, "a number");
    p->at = end;
    if (isalpha((unsigned char)*p->at) || *p->at == '_')
        return syntax(p, "an operator after the number");
    return DL_OK;
}

enum function { MIN, MAX, FLOOR, CEIL, ROUND, FUNCTIONS };
static const char *const function_names[] = {"min", "max", "floor", "ceil", "round"};

static enum dl_code parse_call(struct parser *p, const char *name, double *out) {
    int which = 0;
    while (which < FUNCTIONS && strcmp(name, function_names[which]) != 0) which++;
    if (which == FUNCTIONS) {
        return dl_fail(p->err, DL_ERR_INPUT,
                       "in \"%.80s\": no function '%s'; expected min, max, floor, ceil or round",
                       p->text, name);
    }
    double second;
    DL_TRY(parse_choice(p, out));
    if (which == MIN || which == MAX) {
        if (!take(p, ",")) return syntax(p, "',' and a second argument");
        DL_TRY(parse_choice(p, &second));
        *out = which == MIN ? fmin(*out, second) : fmax(*out, second);
    }
    if (which == FLOOR) *out = floor(*out);
    if (which == CEIL) *out = ceil(*out);
    if (which == ROUND) *out = floor(*out + 0.5);
    return take(p, ")") ? DL_OK : syntax(p, "')'");
}

static enum dl_code parse_letter(struct parser *p, const char *name, double *out) {
    double index = 0;
    DL_TRY(parse_choice(p, &index));
    if (!take(p, "]")) return syntax(p, "']'");
    if (p->names->letter == NULL)
        return dl_fail(p->err, DL_ERR_INPUT, "in \"%.80s\": '%s' is no text of letters", p->text,
                       name);
    return p->names->letter(p->names->context, name, index, out, p->err);
}

static enum dl_code parse_name(struct parser *p, double *out) {
    char name[NAME_BYTES];
    size_t length = 0;
    while (isalnum((unsigned char)*p->at) || *p->at == '_') {
        if (length + 1 == sizeof name) {
            return dl_fail(p->err, DL_ERR_INPUT, "a name has more than %d letters", NAME_BYTES - 1);
        }
        name[length++] = *p->at++;
    }
    name[length] = '\0';
    if (take(p, "(")) return parse_call(p, name, out);
    if (take(p, "[")) return parse_letter(p, name, out);
    if (strcmp(name, "true") == 0 || strcmp(name, "false") == 0) {
        *out = name[0] == 't' ? 1.0 : 0.0;
        return DL_OK;
    }
    return p->names->find(p->names->context, name, out, p->err);
}

static enum dl_code parse_unary(struct parser *p, double *out) {
    if (++p->depth > DEPTH_MAX) return too_deep(p);
    enum dl_code code;
    *out = 0; /* of an expression that fails */
    skip_space(p);
    if (take(p, "-")) {
        code = parse_unary(p, out);
        *out = -*out;
    } else if (p->at[0] == '!' && p->at[1] != '=') {
        p->at++;
        code = parse_unary(p, out);
        *out = *out == 0.0 ? 1.0 : 0.0;
    } else if (take(p, "(")) {
        code = parse_choice(p, out);
        if (code == DL_OK && !take(p, ")")) code = syntax(p, "')'");
    } else if (isdigit((unsigned char)*p->at) || *p->at == '.') {
        code = parse_number(p, out);
    } else if (isalpha((unsigned char)*p->at) || *p->at == '_') {
        code = parse_name(p, out);
    } else if (p->at[0] == '\'' && p->at[1] != '\0' && p->at[2] == '\'') {
        *out = (unsigned char)p->at[1];
        p->at += 3;
        code = DL_OK;
    } else {
        code = syntax(p, "a number, a name or '('");
    }
    p->depth--;
    return code;
}

static enum dl_code divide(struct parser *p, const char *operator_text, double divisor,
                           double *out) {
    if (divisor == 0.0) {
        if (p->muted == 0)
            return dl_fail(p->err, DL_ERR_INPUT, "in \"%.80s\": division by zero", p->text);
        divisor = 1.0;
    }
    if (operator_text[0] == '%') {
        *out -= floor(*out / divisor) * divisor;
    } else {
        *out = operator_text[1] == '/' ? floor(*out / divisor) : *out / divisor;
    }
    return DL_OK;
}

static enum dl_code parse_term(struct parser *p, double *out) {
    double right = 0;
    DL_TRY(parse_unary(p, out));
    for (;;) {
        const char *symbol = take(p, "*")    ? "*"
                             : take(p, "//") ? "//"
                             : take(p, "/")  ? "/"
                             : take(p, "%")  ? "%"
                                             : NULL;
        if (symbol == NULL) return DL_OK;
        DL_TRY(parse_unary(p, &right));
        if (symbol[0] == '*')
            *out *= right;
        else
            DL_TRY(divide(p, symbol, right, out));
    }
}

static enum dl_code parse_sum(struct parser *p, double *out) {
    double right = 0;
    DL_TRY(parse_term(p, out));
    for (;;) {
        bool plus = take(p, "+");
        if (!plus && !take(p, "-")) return DL_OK;
        DL_TRY(parse_term(p, &right));
        *out += plus ? right : -right;
    }
}

static enum dl_code parse_comparison(struct parser *p, double *out) {
    static const char *const symbols[] = {"<=", ">=", "==", "!=", "<", ">"};
    double right = 0;
    DL_TRY(parse_sum(p, out));
    for (int i = 0; i < 6; i++) {
        if (!take(p, symbols[i])) continue;
        DL_TRY(parse_sum(p, &right));
        const bool truth[] = {*out <= right, *out >= right, *out == right, *out != right,
                              *out<right, *out> right};
        *out = truth[i] ? 1.0 : 0.0;
        return DL_OK;
    }
    return DL_OK;
}

static enum dl_code parse_logic(struct parser *p, double *out) {
    double right = 0;
    DL_TRY(parse_comparison(p, out));
    for (;;) { /* && and || bind alike, from left to right; parentheses say otherwise */
        bool both = take(p, "&&");
        if (!both && !take(p, "||")) return DL_OK;
        bool decided = both ? *out == 0.0 : *out != 0.0;
        p->muted += decided;
        enum dl_code code = parse_comparison(p, &right);
        p->muted -= decided;
        if (code != DL_OK) return code;
        *out = (both ? *out != 0.0 && right != 0.0 : *out != 0.0 || right != 0.0) ? 1.0 : 0.0;
    }
}

static enum dl_code parse_branch(struct parser *p, bool taken, double *out) {
    p->muted += !taken;
    enum dl_code code = parse_choice(p, out);
    p->muted -= !taken;
    return code;
}

static enum dl_code parse_choice(struct parser *p, double *out) {
    if (++p->depth > DEPTH_MAX) return too_deep(p);
    DL_TRY(parse_logic(p, out));
    if (take(p, "?")) {
        bool condition = *out != 0.0;
        double yes = 0, no = 0;
        DL_TRY(parse_branch(p, condition, &yes));
        if (!take(p, ":")) return syntax(p, "':' of a choice");
        DL_TRY(parse_branch(p, !condition, &no));
        *out = condition ? yes : no;
    }
    p->depth--;
    return DL_OK;
}

/* Most expressions of workload files are a number and nothing else. */
static bool is_number(const char *text, double *out) {
    char *end;
    if (!isdigit((unsigned char)text[0]) || text[1] == 'x' || text[1] == 'X') return false;
    *out = strtod(text, &end);
    return *end == '\0' && isfinite(*out);
}

/* A name alone, which most expressions are; false: something else, or too long a name. */
static bool is_name(const char *text) {
    size_t length = 0;
    if (isdigit((unsigned char)*text)) return false;
    while (isalnum((unsigned char)text[length]) || text[length] == '_') length++;
    return length > 0 && length < NAME_BYTES && text[length] == '\0' && strcmp(text, "true") != 0 &&
           strcmp(text, "false") != 0;
}

enum dl_code dl_expr_eval(const char *text, const struct dl_expr_names *names, double *value_out,
                          struct dl_err *err) {
    struct parser p = {.text = text, .at = text, .names = names, .err = err};
    double value = 0.0;
    if (is_number(text, value_out)) return DL_OK;
    if (is_name(text)) {
        DL_TRY(names->find(names->context, text, &value, err));
    } else {
        DL_TRY(parse_choice(&p, &value));
        skip_space(&p);
        if (*p.at != '\0') return syntax(&p, "an operator or the end");
    }
    if (!isfinite(value))
        return dl_fail(err, DL_ERR_INPUT, "\"%.80s\" is not a finite number", text);
    *value_out = value;
    return DL_OK;
}
