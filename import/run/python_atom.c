/* python_atom.c - names, literals, calls and members. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "import/run/python_internal.h"

static enum dl_code unknown(struct dl_py_frame *f, int from, struct dl_py_value **out) {
    const struct dl_py_token *t = &f->module->tokens[from];
    *out = dl_py_new(f->py, DL_PY_UNKNOWN, t->text != NULL ? t->text : "", t->line);
    return DL_OK;
}

/* To the end of the brackets that are open here. */
static void skip_to_close(struct dl_py_frame *f) {
    for (int depth = 0; f->at < f->stop; f->at++) {
        const struct dl_py_token *t = dl_py_peek(f);
        if (t->kind != DL_PY_OPERATOR || t->text[1] != '\0') continue;
        if (strchr("([{", t->text[0]) != NULL) depth++;
        if (strchr(")]}", t->text[0]) != NULL && depth-- == 0) return;
    }
}

/* To the comma or bracket that ends a lambda. */
static void skip_lambda(struct dl_py_frame *f) {
    bool body = false;
    for (int depth = 0; f->at < f->stop; f->at++) {
        const struct dl_py_token *t = dl_py_peek(f);
        if (t->kind != DL_PY_OPERATOR) continue;
        if (depth == 0 && strcmp(t->text, ":") == 0) body = true;
        if (depth == 0 && body && strcmp(t->text, ",") == 0) return;
        if (t->text[1] == '\0' && strchr("([{", t->text[0]) != NULL) depth++;
        if (t->text[1] == '\0' && strchr(")]}", t->text[0]) != NULL && depth-- == 0) return;
    }
}

static bool is_comprehension(const struct dl_py_frame *f) {
    return dl_py_is(f, "for") || dl_py_is(f, "async");
}

/* "a, b)" up to the bracket that closes; a comprehension is not known. */
static enum dl_code items(struct dl_py_frame *f, const char *close, struct dl_py_value *list) {
    while (!dl_py_take(f, close)) {
        struct dl_py_value *value;
        const bool spread = dl_py_take(f, "*");
        DL_TRY(dl_py_expression(f, &value));
        if (is_comprehension(f)) {
            skip_to_close(f);
            list->kind = DL_PY_UNKNOWN;
            list->text = "comprehension";
            continue;
        }
        if (spread && value->kind == DL_PY_LIST) {
            for (const struct dl_py_member *m = value->members; m != NULL; m = m->next)
                dl_py_append(f->py, list, NULL, m->value);
        } else {
            dl_py_append(f->py, list, NULL, value);
        }
        if (!dl_py_take(f, ",") && !dl_py_is(f, close))
            return dl_py_expected(f, "',' or a bracket");
    }
    return DL_OK;
}

static void merge(struct dl_py *py, struct dl_py_value *into, const struct dl_py_value *from) {
    for (const struct dl_py_member *m = from->members; m != NULL; m = m->next)
        if (m->name != NULL) dl_py_set(py, into, m->name, m->value);
}

/* "key: value, **more}"; of a set a list. */
static enum dl_code read_dict(struct dl_py_frame *f, int line, struct dl_py_value **out) {
    struct dl_py_value *dict = dl_py_new(f->py, DL_PY_DICT, "dict", line), *key, *value;
    *out = dict;
    while (!dl_py_take(f, "}")) {
        if (dl_py_take(f, "**")) {
            DL_TRY(dl_py_expression(f, &value));
            merge(f->py, dict, value);
        } else {
            DL_TRY(dl_py_expression(f, &key));
            if (!dl_py_take(f, ":")) {
                dict->kind = DL_PY_LIST;
                dl_py_append(f->py, dict, NULL, key);
            } else {
                DL_TRY(dl_py_expression(f, &value));
                if (key->kind == DL_PY_TEXT) dl_py_set(f->py, dict, key->text, value);
            }
        }
        if (is_comprehension(f)) {
            skip_to_close(f);
            dict->kind = DL_PY_UNKNOWN;
            dict->text = "comprehension";
        } else if (!dl_py_take(f, ",") && !dl_py_is(f, "}")) {
            return dl_py_expected(f, "',' or '}'");
        }
    }
    return DL_OK;
}

/* "(a, b)" a tuple, "(a)" a. */
static enum dl_code read_parenthesis(struct dl_py_frame *f, int line, struct dl_py_value **out) {
    struct dl_py_value *list = dl_py_new(f->py, DL_PY_LIST, "", line);
    const int from = f->at;
    DL_TRY(items(f, ")", list));
    const bool comma = f->at - 2 >= from && f->module->tokens[f->at - 2].kind == DL_PY_OPERATOR &&
                       strcmp(f->module->tokens[f->at - 2].text, ",") == 0;
    const bool one =
        list->kind == DL_PY_LIST && list->members != NULL && list->members->next == NULL && !comma;
    *out = one ? list->members->value : list;
    return DL_OK;
}

static enum dl_code read_strings(struct dl_py_frame *f, struct dl_py_value **out) {
    struct dl_text text = {.arena = f->py->arena};
    const int from = f->at;
    bool known = true;
    for (; dl_py_peek(f)->kind == DL_PY_STRING; f->at++) {
        known = known && dl_py_peek(f)->text != NULL;
        if (known) dl_text_add(&text, dl_py_peek(f)->text);
    }
    if (!known) return unknown(f, from, out);
    *out = dl_py_new(f->py, DL_PY_TEXT, dl_text_string(&text), f->module->tokens[from].line);
    return DL_OK;
}

static struct dl_py_value *name_of(struct dl_py_frame *f, const struct dl_py_token *t) {
    const struct dl_py_variable *v = dl_py_find(f->locals, t->text);
    static const char *const constants[] = {"False", "True"};
    for (int i = 0; i < 2; i++)
        if (strcmp(t->text, constants[i]) == 0) {
            struct dl_py_value *value = dl_py_new(f->py, DL_PY_BOOL, t->text, t->line);
            value->number = i;
            return value;
        }
    if (strcmp(t->text, "None") == 0) return dl_py_new(f->py, DL_PY_NONE, "None", t->line);
    if (v == NULL) v = dl_py_find(f->module->globals, t->text);
    return v != NULL && v->value != NULL ? v->value
                                         : dl_py_new(f->py, DL_PY_PATH, t->text, t->line);
}

static enum dl_code atom(struct dl_py_frame *f, struct dl_py_value **out) {
    const struct dl_py_token *t = dl_py_peek(f);
    const int from = f->at;
    char *end;
    switch (t->kind) {
    case DL_PY_STRING: return read_strings(f, out);
    case DL_PY_DIGITS:
        f->at++;
        *out = dl_py_new(f->py, DL_PY_NUMBER, t->text, t->line);
        (*out)->number = strtod(t->text, &end);
        if (*end != '\0' || !isfinite((*out)->number)) return unknown(f, from, out);
        return DL_OK;
    case DL_PY_NAME:
        f->at++;
        if (strcmp(t->text, "lambda") == 0) {
            skip_lambda(f);
            return unknown(f, from, out);
        }
        *out = name_of(f, t);
        return DL_OK;
    default: break;
    }
    if (dl_py_take(f, "(")) return read_parenthesis(f, t->line, out);
    if (dl_py_take(f, "{")) return read_dict(f, t->line, out);
    if (dl_py_take(f, "...")) return unknown(f, from, out);
    if (!dl_py_take(f, "[")) return dl_py_expected(f, "an expression");
    *out = dl_py_new(f->py, DL_PY_LIST, "", t->line);
    return items(f, "]", *out);
}

/* ---- calls, members ---- */

static enum dl_code read_arguments(struct dl_py_frame *f, struct dl_py_value *object) {
    while (!dl_py_take(f, ")")) {
        struct dl_py_value *value;
        const char *name = NULL;
        const bool named = dl_py_peek(f)->kind == DL_PY_NAME && f->at + 1 < f->stop &&
                           f->module->tokens[f->at + 1].kind == DL_PY_OPERATOR &&
                           strcmp(f->module->tokens[f->at + 1].text, "=") == 0;
        const bool spread = dl_py_take(f, "**");
        if (!spread) (void)dl_py_take(f, "*");
        if (named) name = dl_py_peek(f)->text;
        if (named) f->at += 2;
        DL_TRY(dl_py_expression(f, &value));
        if (is_comprehension(f)) {
            skip_to_close(f);
            value = dl_py_new(f->py, DL_PY_UNKNOWN, "comprehension", value->line);
        }
        if (spread)
            merge(f->py, object, value);
        else if (name != NULL)
            dl_py_set(f->py, object, name, value);
        else
            dl_py_append(f->py, object, NULL, value);
        if (!dl_py_take(f, ",") && !dl_py_is(f, ")")) return dl_py_expected(f, "',' or ')'");
    }
    return DL_OK;
}

static struct dl_py_value *copy_of(struct dl_py *py, const struct dl_py_value *v, int depth) {
    struct dl_py_value *copy = dl_py_new(py, v->kind, v->text, v->line);
    copy->number = v->number;
    copy->path = v->path;
    for (const struct dl_py_member *m = v->members; m != NULL && depth < DL_PY_NESTING;
         m = m->next) {
        py->steps++;
        dl_py_append(py, copy, m->name,
                     py->steps < DL_PY_STEPS ? copy_of(py, m->value, depth + 1) : m->value);
    }
    return copy;
}

static bool ends_in(const char *text, const char *end) {
    const size_t a = strlen(text), b = strlen(end);
    return a >= b && strcmp(text + a - b, end) == 0 && (a == b || text[a - b - 1] == '.');
}

/* Functions of Python that configurations use. */
static struct dl_py_value *builtin(struct dl_py *py, const struct dl_py_value *call) {
    struct dl_py_value *first = dl_py_argument(call, 0), *second = dl_py_argument(call, 1);
    if (first == NULL) return strcmp(call->text, "dict") == 0 ? copy_of(py, call, 0) : NULL;
    if (strcmp(call->text, "cast") == 0 && second != NULL) return second;
    if (strcmp(call->text, "int") == 0 && first->kind == DL_PY_NUMBER) {
        struct dl_py_value *whole = dl_py_new(py, DL_PY_NUMBER, "", call->line);
        whole->number = trunc(first->number);
        return whole;
    }
    if (ends_in(call->text, "deepcopy") || strcmp(call->text, "copy.copy") == 0)
        return copy_of(py, first, 0);
    if (ends_in(call->text, "replace") && first->kind == DL_PY_OBJECT) {
        struct dl_py_value *copy = copy_of(py, first, 0);
        merge(py, copy, call);
        return copy;
    }
    return NULL;
}

/* What a list does to itself. */
static void change_list(struct dl_py *py, struct dl_py_value *list, const char *method,
                        const struct dl_py_value *call) {
    const struct dl_py_value *first = dl_py_argument(call, 0);
    if (first == NULL) return;
    if (strcmp(method, "append") == 0) dl_py_append(py, list, NULL, dl_py_argument(call, 0));
    if (strcmp(method, "extend") == 0 && first->kind == DL_PY_LIST && first != list)
        for (const struct dl_py_member *m = first->members; m != NULL; m = m->next)
            dl_py_append(py, list, NULL, m->value);
}

static enum dl_code call(struct dl_py_frame *f, struct dl_py_value *callee,
                         struct dl_py_value *self, const char *method, struct dl_py_value **out) {
    const char *text = callee->kind == DL_PY_PATH ? callee->text : "";
    struct dl_py_value *object = dl_py_new(f->py, DL_PY_OBJECT, text, callee->line), *value;
    bool known = false;
    object->path = f->module->path;
    DL_TRY(read_arguments(f, object));
    *out = object;
    if (self != NULL && self->kind == DL_PY_LIST) change_list(f->py, self, method, object);
    if (callee->kind != DL_PY_PATH) {
        *out = dl_py_new(f->py, DL_PY_UNKNOWN, method != NULL ? method : "call", callee->line);
        return DL_OK;
    }
    DL_TRY(dl_py_call(f, object, &known, &value));
    if (!known) value = builtin(f->py, object);
    if (value != NULL) *out = value;
    return DL_OK;
}

static struct dl_py_value *member_of(struct dl_py_frame *f, const struct dl_py_value *of,
                                     const char *name) {
    struct dl_py_value *member = NULL;
    if (of->kind == DL_PY_PATH)
        return dl_py_new(f->py, DL_PY_PATH,
                         dl_arena_printf(f->py->arena, "%.200s.%s", of->text, name), of->line);
    if (of->kind == DL_PY_OBJECT || of->kind == DL_PY_DICT) member = dl_py_member(of, name);
    return member != NULL ? member : dl_py_new(f->py, DL_PY_UNKNOWN, name, of->line);
}

static enum dl_code subscript(struct dl_py_frame *f, struct dl_py_value **inout) {
    struct dl_py_value *of = *inout, *key = NULL;
    const int from = f->at;
    if (!dl_py_is(f, ":")) DL_TRY(dl_py_expressions(f, &key));
    if (!dl_py_is(f, "]")) skip_to_close(f);
    if (!dl_py_take(f, "]")) return dl_py_expected(f, "']'");
    *inout = NULL;
    if (key != NULL && key->kind == DL_PY_TEXT && of->kind == DL_PY_DICT)
        *inout = dl_py_member(of, key->text);
    if (key != NULL && key->kind == DL_PY_NUMBER && of->kind == DL_PY_LIST && key->number >= 0 &&
        key->number < 1e6)
        *inout = dl_py_argument(of, (int)key->number);
    return *inout != NULL ? DL_OK : unknown(f, from, inout);
}

enum dl_code dl_py_atom(struct dl_py_frame *f, struct dl_py_value **out) {
    struct dl_py_value *self = NULL;
    const char *method = NULL;
    (void)dl_py_take(f, "await");
    DL_TRY(atom(f, out));
    for (;;) {
        if (dl_py_take(f, ".")) {
            if (dl_py_peek(f)->kind != DL_PY_NAME) return dl_py_expected(f, "a name");
            self = *out;
            method = dl_py_peek(f)->text;
            f->at++;
            *out = member_of(f, self, method);
        } else if (dl_py_take(f, "(")) {
            DL_TRY(call(f, *out, self, method, out));
            self = NULL;
        } else if (dl_py_take(f, "[")) {
            DL_TRY(subscript(f, out));
            self = NULL;
        } else {
            return DL_OK;
        }
    }
}
