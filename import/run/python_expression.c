/* python_expression.c - the value of an expression. */
#include <math.h>
#include <string.h>

#include "import/run/python_internal.h"

struct dl_py_value *dl_py_new(struct dl_py *py, enum dl_py_kind kind, const char *text, int line) {
    struct dl_py_value *v = dl_arena_alloc(py->arena, 1, sizeof *v);
    *v = (struct dl_py_value){.kind = kind, .text = text, .line = line};
    return v;
}

void dl_py_append(struct dl_py *py, struct dl_py_value *to, const char *name,
                  struct dl_py_value *value) {
    struct dl_py_member **at = &to->members, *m = dl_arena_alloc(py->arena, 1, sizeof *m);
    while (*at != NULL) {
        at = &(*at)->next;
        py->steps++;
    }
    *m = (struct dl_py_member){.name = name, .value = value};
    *at = m;
}

bool dl_py_is_instance(const struct dl_py_value *value) {
    if (value->kind != DL_PY_OBJECT) return false;
    const char *dot = strrchr(value->text, '.'), *name = dot != NULL ? dot + 1 : value->text;
    return *name == '\0' || (*name >= 'A' && *name <= 'Z');
}

struct dl_py_value *dl_py_member(const struct dl_py_value *object, const char *name) {
    for (const struct dl_py_member *m = object->members; m != NULL; m = m->next)
        if (m->name != NULL && strcmp(m->name, name) == 0) return m->value;
    return NULL;
}

struct dl_py_value *dl_py_argument(const struct dl_py_value *object, int n) {
    for (const struct dl_py_member *m = object->members; m != NULL; m = m->next)
        if (m->name == NULL && n-- == 0) return m->value;
    return NULL;
}

void dl_py_set(struct dl_py *py, struct dl_py_value *object, const char *name,
               struct dl_py_value *value) {
    for (struct dl_py_member *m = object->members; m != NULL; m = m->next)
        if (m->name != NULL && strcmp(m->name, name) == 0) {
            m->value = value;
            return;
        }
    dl_py_append(py, object, name, value);
}

const struct dl_py_token *dl_py_peek(const struct dl_py_frame *f) {
    static const struct dl_py_token end = {.kind = DL_PY_END, .text = ""};
    return f->at < f->stop ? &f->module->tokens[f->at] : &end;
}

bool dl_py_is(const struct dl_py_frame *f, const char *text) {
    const struct dl_py_token *t = dl_py_peek(f);
    return (t->kind == DL_PY_OPERATOR || t->kind == DL_PY_NAME) && strcmp(t->text, text) == 0;
}

bool dl_py_take(struct dl_py_frame *f, const char *text) {
    const bool is = dl_py_is(f, text);
    f->at += is;
    return is;
}

enum dl_code dl_py_expected(const struct dl_py_frame *f, const char *what) {
    const int last = f->at < f->stop || f->at == 0 ? f->at : f->at - 1;
    const struct dl_py_token *t = &f->module->tokens[last];
    return dl_fail_at(f->py->err, f->module->path, t->line, t->column, NULL, "expected %s", what);
}

struct dl_py_variable *dl_py_find(struct dl_py_variable *list, const char *name) {
    while (list != NULL && strcmp(list->name, name) != 0) list = list->next;
    return list;
}

/* ---- operators ---- */

/* From the weakest: comparison to power. */
static const char *const levels[][12] = {
    {"==", "!=", "<", ">", "<=", ">=", "in", "is", NULL},
    {"|", "^", "&", "<<", ">>", NULL},
    {"+", "-", NULL},
    {"*", "/", "//", "%", "@", NULL},
};
enum { LEVELS = sizeof levels / sizeof levels[0] };

static bool numeric(const struct dl_py_value *v) {
    return v->kind == DL_PY_NUMBER || v->kind == DL_PY_BOOL;
}

static double combined(const char *op, double a, double b) {
    switch (op[0]) {
    case '+': return a + b;
    case '-': return a - b;
    case '*': return op[1] == '*' ? pow(a, b) : a * b;
    case '/': return op[1] == '/' ? floor(a / b) : a / b;
    case '%': return a - b * floor(a / b);
    default: return NAN;
    }
}

static bool same(const struct dl_py_value *a, const struct dl_py_value *b) {
    if (numeric(a) && numeric(b)) return a->number == b->number;
    if (a->kind != b->kind) return false;
    return a->kind == DL_PY_NONE || (a->kind == DL_PY_TEXT && strcmp(a->text, b->text) == 0);
}

static bool decidable(const struct dl_py_value *v) {
    return numeric(v) || v->kind == DL_PY_TEXT || v->kind == DL_PY_NONE || v->kind == DL_PY_LIST;
}

/* 1, 0; -1: not known. */
static int compared(const char *op, const struct dl_py_value *a, const struct dl_py_value *b) {
    if (strcmp(op, "in") == 0) {
        if (b->kind != DL_PY_LIST || !decidable(a)) return -1;
        for (const struct dl_py_member *m = b->members; m != NULL; m = m->next)
            if (same(a, m->value)) return 1;
        return 0;
    }
    const bool object = dl_py_is_instance(a) && b->kind == DL_PY_NONE;
    if ((!decidable(a) && !object) || !decidable(b)) return -1;
    if (strcmp(op, "==") == 0 || strcmp(op, "is") == 0) return same(a, b);
    if (strcmp(op, "!=") == 0) return !same(a, b);
    if (!numeric(a) || !numeric(b)) return -1;
    const double x = a->number, y = b->number;
    return op[0] == '<' ? (op[1] == '=' ? x <= y : x < y) : (op[1] == '=' ? x >= y : x > y);
}

static struct dl_py_value *joined(struct dl_py *py, const char *op, const struct dl_py_value *a,
                                  const struct dl_py_value *b, bool negated) {
    struct dl_py_value *v = dl_py_new(py, DL_PY_UNKNOWN, op, a->line);
    const int verdict =
        strchr("=!<>i", op[0]) != NULL && strcmp(op, "<<") != 0 && strcmp(op, ">>") != 0
            ? compared(op, a, b)
            : -1;
    if (verdict >= 0) {
        v->kind = DL_PY_BOOL;
        v->number = negated ? !verdict : verdict;
    } else if (numeric(a) && numeric(b) && isfinite(combined(op, a->number, b->number))) {
        v->kind = DL_PY_NUMBER;
        v->number = combined(op, a->number, b->number);
    } else if (op[0] == '+' && a->kind == DL_PY_TEXT && b->kind == DL_PY_TEXT) {
        v->kind = DL_PY_TEXT;
        v->text = dl_arena_printf(py->arena, "%.4000s%.4000s", a->text, b->text);
    } else if (op[0] == '+' && a->kind == DL_PY_LIST && b->kind == DL_PY_LIST) {
        v->kind = DL_PY_LIST;
        for (int i = 0; i < 2; i++)
            for (const struct dl_py_member *m = (i == 0 ? a : b)->members; m != NULL; m = m->next)
                dl_py_append(py, v, NULL, m->value);
    }
    return v;
}

static enum dl_code unary(struct dl_py_frame *f, struct dl_py_value **out) {
    const bool minus = dl_py_take(f, "-");
    struct dl_py_value *right;
    if (++f->py->steps > DL_PY_STEPS) return dl_py_expected(f, "a shorter configuration");
    if (f->py->depth > DL_PY_NESTING) return dl_py_expected(f, "fewer levels");
    f->py->depth++;
    if (!minus && (dl_py_take(f, "+") || dl_py_take(f, "~")))
        DL_TRY(unary(f, out));
    else if (minus)
        DL_TRY(unary(f, out));
    else
        DL_TRY(dl_py_atom(f, out));
    f->py->depth--;
    if (dl_py_take(f, "**")) {
        DL_TRY(unary(f, &right));
        *out = joined(f->py, "**", *out, right, false);
    }
    if (minus) {
        struct dl_py_value *zero = dl_py_new(f->py, DL_PY_NUMBER, "0", (*out)->line);
        *out = joined(f->py, "-", zero, *out, false);
    }
    return DL_OK;
}

static enum dl_code binary(struct dl_py_frame *f, int level, struct dl_py_value **out) {
    if (level == LEVELS) return unary(f, out);
    DL_TRY(binary(f, level + 1, out));
    for (;;) {
        const char *op = NULL;
        struct dl_py_value *right;
        const int from = f->at;
        bool negated = level == 0 && dl_py_take(f, "not");
        for (int i = 0; levels[level][i] != NULL && op == NULL; i++)
            if (dl_py_take(f, levels[level][i])) op = levels[level][i];
        if (op == NULL) f->at = from;
        if (op == NULL) return DL_OK;
        if (strcmp(op, "is") == 0 && dl_py_take(f, "not")) negated = true;
        DL_TRY(binary(f, level + 1, &right));
        *out = joined(f->py, op, *out, right, negated);
    }
}

/* 1, 0; -1: not known. */
static int truth(const struct dl_py_value *v) {
    switch (v->kind) {
    case DL_PY_NONE: return 0;
    case DL_PY_BOOL:
    case DL_PY_NUMBER: return v->number != 0;
    case DL_PY_TEXT: return v->text[0] != '\0';
    case DL_PY_LIST:
    case DL_PY_DICT: return v->members != NULL;
    case DL_PY_OBJECT: return dl_py_is_instance(v) ? 1 : -1;
    default: return -1;
    }
}

bool dl_py_holds(struct dl_py_frame *f, const struct dl_py_value *condition, int line) {
    const int verdict = truth(condition);
    if (verdict < 0)
        dl_arguments_note(
            f->py->notes,
            "line %d of %.80s: the file does not decide the condition; taken as false", line,
            f->module->path);
    return verdict == 1;
}

static enum dl_code negation(struct dl_py_frame *f, struct dl_py_value **out) {
    if (!dl_py_take(f, "not")) return binary(f, 0, out);
    if (++f->py->steps > DL_PY_STEPS) return dl_py_expected(f, "a shorter configuration");
    DL_TRY(f->py->depth++ < DL_PY_NESTING ? negation(f, out) : dl_py_expected(f, "fewer levels"));
    f->py->depth--;
    const int verdict = truth(*out);
    *out = dl_py_new(f->py, verdict < 0 ? DL_PY_UNKNOWN : DL_PY_BOOL, "not", (*out)->line);
    (*out)->number = verdict == 0;
    return DL_OK;
}

/* "a and b or c", from the left. */
static enum dl_code logic(struct dl_py_frame *f, bool any, struct dl_py_value **out) {
    const char *word = any ? "or" : "and";
    struct dl_py_value *right;
    DL_TRY(any ? logic(f, false, out) : negation(f, out));
    while (dl_py_take(f, word)) {
        DL_TRY(any ? logic(f, false, &right) : negation(f, &right));
        const int verdict = truth(*out);
        if (verdict < 0 && truth(right) != any) continue;
        if (verdict != any) *out = right;
    }
    return DL_OK;
}

enum dl_code dl_py_expression(struct dl_py_frame *f, struct dl_py_value **out) {
    struct dl_py_value *condition, *other;
    const int line = dl_py_peek(f)->line;
    DL_TRY(logic(f, true, out));
    if (dl_py_take(f, ":=")) return dl_py_expression(f, out);
    if (!dl_py_take(f, "if")) return DL_OK;
    DL_TRY(logic(f, true, &condition));
    if (!dl_py_take(f, "else")) return dl_py_expected(f, "else");
    DL_TRY(dl_py_expression(f, &other));
    if (!dl_py_holds(f, condition, line)) *out = other;
    return DL_OK;
}

enum dl_code dl_py_expressions(struct dl_py_frame *f, struct dl_py_value **out) {
    struct dl_py_value *list, *next;
    DL_TRY(dl_py_expression(f, out));
    if (!dl_py_is(f, ",")) return DL_OK;
    list = dl_py_new(f->py, DL_PY_LIST, "", (*out)->line);
    dl_py_append(f->py, list, NULL, *out);
    while (dl_py_take(f, ",") && f->at < f->stop && !dl_py_is(f, "=") && !dl_py_is(f, "]") &&
           !dl_py_is(f, ")")) {
        DL_TRY(dl_py_expression(f, &next));
        dl_py_append(f->py, list, NULL, next);
    }
    *out = list;
    return DL_OK;
}
