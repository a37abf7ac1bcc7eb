/* python_run.c - statements, functions and modules. */
#include <string.h>

#include "import/run/python_internal.h"
#include "model/catalog/data_internal.h"

enum { MAX_MODULES = 12, MAX_BYTES = 4 << 20 };
/* What a statement did. */
enum ended { GOES_ON, RETURNS };

static enum dl_code run_lines(struct dl_py_frame *f, int from, int to, enum ended *ended,
                              struct dl_py_value **out);

/* ---- lines and blocks ---- */

/* The next logical line. */
static int line_end(const struct dl_py_module *m, int at) {
    do at++;
    while (at < m->count && !m->tokens[at].starts);
    return at;
}

/* Behind the lines that are further to the right than the one that starts at `at`. */
static int block_end(const struct dl_py_module *m, int at) {
    const int indent = m->tokens[at].indent;
    int end = line_end(m, at);
    while (end < m->count && m->tokens[end].indent > indent) end = line_end(m, end);
    return end;
}

/* Behind the colon that ends a header. */
static int header_end(const struct dl_py_module *m, int at, int stop) {
    int depth = 0;
    for (; at < stop; at++) {
        const struct dl_py_token *t = &m->tokens[at];
        if (t->kind != DL_PY_OPERATOR || t->text[1] != '\0') continue;
        if (strchr("([{", t->text[0]) != NULL) depth++;
        if (strchr(")]}", t->text[0]) != NULL) depth--;
        if (t->text[0] == ':' && depth == 0) return at + 1;
    }
    return stop;
}

static bool word_at(const struct dl_py_module *m, int at, const char *word) {
    return at < m->count && m->tokens[at].kind == DL_PY_NAME &&
           strcmp(m->tokens[at].text, word) == 0;
}

/* ---- assignments ---- */

static void bind(struct dl_py_frame *f, const char *name, struct dl_py_value *value, int def) {
    struct dl_py_variable **list = f->locals != NULL ? &f->locals : &f->module->globals;
    struct dl_py_variable *v = dl_py_find(*list, name);
    if (v == NULL) {
        v = dl_arena_alloc(f->py->arena, 1, sizeof *v);
        *v = (struct dl_py_variable){.name = name, .next = *list};
        *list = v;
    }
    v->value = value;
    v->def = def;
}

/* "config.training.steps", with the object before the last name; *name NULL: no target that is
 * followed. */
static void target_of(struct dl_py_frame *f, int stop, struct dl_py_value **object,
                      const char **name) {
    *object = NULL;
    *name = dl_py_peek(f)->kind == DL_PY_NAME ? dl_py_peek(f)->text : NULL;
    while (*name != NULL && ++f->at < stop) {
        struct dl_py_value *next = NULL;
        const struct dl_py_variable *v = dl_py_find(f->locals, *name);
        if (!dl_py_take(f, ".") || dl_py_peek(f)->kind != DL_PY_NAME) {
            *name = NULL;
            return;
        }
        if (*object != NULL)
            next = dl_py_member(*object, *name);
        else if (v != NULL || (v = dl_py_find(f->module->globals, *name)) != NULL)
            next = v->value;
        if (next == NULL || next->kind == DL_PY_UNKNOWN) {
            if (*object == NULL) {
                *name = NULL;
                return;
            }
            next = dl_py_new(f->py, DL_PY_OBJECT, "", dl_py_peek(f)->line);
            dl_py_set(f->py, *object, *name, next);
        }
        *object = next;
        *name = dl_py_peek(f)->text;
    }
}

static bool is_target(const struct dl_py_token *t) {
    static const char *const all[] = {"=", "+=", "-=", "*=", "/=", "//=", NULL};
    for (int i = 0; t->kind == DL_PY_OPERATOR && all[i] != NULL; i++)
        if (strcmp(t->text, all[i]) == 0) return true;
    return false;
}

/* The operator of an assignment on the line; -1: no assignment. */
static int assignment_at(const struct dl_py_module *m, int at, int stop) {
    for (int depth = 0; at < stop; at++) {
        const struct dl_py_token *t = &m->tokens[at];
        if (t->kind != DL_PY_OPERATOR) continue;
        if (depth == 0 && is_target(t)) return at;
        if (t->text[1] != '\0') continue;
        if (strchr("([{", t->text[0]) != NULL) depth++;
        if (strchr(")]}", t->text[0]) != NULL) depth--;
    }
    return -1;
}

/* "name: type" ends before the colon. */
static int target_end(const struct dl_py_module *m, int at, int stop) {
    const int end = header_end(m, at, stop);
    return end < stop ? end - 1 : stop;
}

static enum dl_code assign(struct dl_py_frame *f, int from, int equals, int to) {
    struct dl_py_value *value, *object;
    const char *name;
    const bool plain = strcmp(f->module->tokens[equals].text, "=") == 0;
    f->at = equals + 1;
    f->stop = to;
    const int more = assignment_at(f->module, equals + 1, to);
    if (more >= 0) DL_TRY(assign(f, equals + 1, more, to)); /* a = b = value */
    f->at = (more >= 0 ? more : equals) + 1;
    DL_TRY(dl_py_expressions(f, &value));
    f->at = from;
    f->stop = equals;
    target_of(f, target_end(f->module, from, equals), &object, &name);
    if (!plain) value = dl_py_new(f->py, DL_PY_UNKNOWN, "changed in place", value->line);
    if (name != NULL && object != NULL)
        dl_py_set(f->py, object, name, value);
    else if (name != NULL)
        bind(f, name, value, 0);
    return DL_OK;
}

/* ---- statements ---- */

static enum dl_code run_body(struct dl_py_frame *f, int at, int colon, enum ended *ended,
                             struct dl_py_value **out) {
    const int line = line_end(f->module, at);
    return colon < line ? run_lines(f, colon, line, ended, out)
                        : run_lines(f, line, block_end(f->module, at), ended, out);
}

/* if, elif, else: *next behind them. */
static enum dl_code run_if(struct dl_py_frame *f, int at, int *next, enum ended *ended,
                           struct dl_py_value **out) {
    const struct dl_py_module *m = f->module;
    const int indent = m->tokens[at].indent;
    bool done = false;
    for (bool first = true;; first = false) {
        const bool last = word_at(m, at, "else");
        if (at >= m->count || m->tokens[at].indent != indent ||
            (!first && !last && !word_at(m, at, "elif")))
            break;
        const int colon = header_end(m, at, line_end(m, at)), line = m->tokens[at].line;
        struct dl_py_value *condition;
        bool holds = last;
        if (!done && !last) {
            f->at = at + 1;
            f->stop = colon - 1;
            DL_TRY(dl_py_expression(f, &condition));
            holds = dl_py_holds(f, condition, line);
        }
        if (!done && holds) DL_TRY(run_body(f, at, colon, ended, out));
        done = done || holds;
        at = block_end(m, at);
        if (last) break;
    }
    *next = at;
    return DL_OK;
}

/* for NAME in LIST; other loops run once, with what they set not known. */
static enum dl_code run_for(struct dl_py_frame *f, int at, enum ended *ended,
                            struct dl_py_value **out) {
    const struct dl_py_module *m = f->module;
    const int colon = header_end(m, at, line_end(m, at));
    struct dl_py_value *list;
    const char *name = m->tokens[at + 1].kind == DL_PY_NAME ? m->tokens[at + 1].text : "";
    f->at = at + 1;
    f->stop = colon - 1;
    while (f->at < f->stop && !dl_py_is(f, "in")) f->at++;
    f->at++;
    DL_TRY(dl_py_expressions(f, &list));
    if (list->kind != DL_PY_LIST || !word_at(m, at + 2, "in")) {
        dl_arguments_note(f->py->notes,
                          "line %d of %.80s: a loop over what is not known is left out",
                          m->tokens[at].line, m->path);
        return DL_OK;
    }
    for (const struct dl_py_member *i = list->members; i != NULL && *ended == GOES_ON;
         i = i->next) {
        bind(f, name, i->value, 0);
        DL_TRY(run_body(f, at, colon, ended, out));
    }
    return DL_OK;
}

static enum dl_code run_import(struct dl_py_frame *f, int at, int to) {
    const struct dl_py_module *m = f->module;
    struct dl_text module = {.arena = f->py->arena};
    if (!word_at(m, at, "from")) return DL_OK;
    for (at++; at < to && !word_at(m, at, "import"); at++) dl_text_add(&module, m->tokens[at].text);
    for (at++; at < to; at++) {
        const struct dl_py_token *t = &m->tokens[at];
        if (t->kind != DL_PY_NAME) continue;
        struct dl_py_import *import = dl_arena_alloc(f->py->arena, 1, sizeof *import);
        *import =
            (struct dl_py_import){t->text, dl_text_string(&module), t->text, f->module->imports};
        if (word_at(m, at + 1, "as") && at + 2 < to) import->name = m->tokens[at += 2].text;
        f->module->imports = import;
    }
    return DL_OK;
}

static enum dl_code run_simple(struct dl_py_frame *f, int at, int to, enum ended *ended,
                               struct dl_py_value **out) {
    static const char *const passed[] = {"pass",  "assert", "raise",    "global", "nonlocal",
                                         "break", "del",    "continue", "yield",  NULL};
    const struct dl_py_module *m = f->module;
    struct dl_py_value *ignored;
    for (int i = 0; passed[i] != NULL; i++)
        if (word_at(m, at, passed[i])) return DL_OK;
    if (word_at(m, at, "import") || word_at(m, at, "from")) return run_import(f, at, to);
    if (m->tokens[at].kind == DL_PY_OPERATOR && m->tokens[at].text[0] == '@') return DL_OK;
    const int equals = assignment_at(m, at, to);
    f->at = at;
    f->stop = to;
    if (dl_py_take(f, "return")) {
        *ended = RETURNS;
        if (f->at < to) return dl_py_expressions(f, out);
        *out = dl_py_new(f->py, DL_PY_NONE, "None", m->tokens[at].line);
        return DL_OK;
    }
    if (equals >= 0) return assign(f, at, equals, to);
    if (target_end(m, at, to) < to) return DL_OK; /* a declaration */
    return dl_py_expressions(f, &ignored);
}

/* Parts between semicolons. */
static enum dl_code run_line(struct dl_py_frame *f, int at, int to, enum ended *ended,
                             struct dl_py_value **out) {
    while (at < to && *ended == GOES_ON) {
        int part = at;
        while (part < to && (f->module->tokens[part].kind != DL_PY_OPERATOR ||
                             strcmp(f->module->tokens[part].text, ";") != 0))
            part++;
        if (part > at) DL_TRY(run_simple(f, at, part, ended, out));
        at = part + 1;
    }
    return DL_OK;
}

static enum dl_code run_lines(struct dl_py_frame *f, int from, int to, enum ended *ended,
                              struct dl_py_value **out) {
    const struct dl_py_module *m = f->module;
    int next;
    for (int at = from; at < to && *ended == GOES_ON; at = next) {
        next = block_end(m, at) < to ? block_end(m, at) : to;
        const int header = word_at(m, at, "async") ? at + 1 : at;
        if (word_at(m, header, "def"))
            bind(f, header + 1 < m->count ? m->tokens[header + 1].text : "", NULL, header);
        else if (word_at(m, at, "class") || word_at(m, at, "while") || word_at(m, at, "except") ||
                 word_at(m, at, "match"))
            continue;
        else if (word_at(m, at, "if"))
            DL_TRY(run_if(f, at, &next, ended, out));
        else if (word_at(m, at, "for"))
            DL_TRY(run_for(f, at, ended, out));
        else if (word_at(m, at, "with") || word_at(m, at, "try") || word_at(m, at, "else") ||
                 word_at(m, at, "finally"))
            DL_TRY(run_body(f, at, header_end(m, at, line_end(m, at)), ended, out));
        else
            DL_TRY(run_line(f, at, line_end(m, at) < to ? line_end(m, at) : to, ended, out));
    }
    return DL_OK;
}

/* ---- functions ---- */

/* Binds the arguments of a call to the parameters; a default where there is no argument. */
static enum dl_code bind_parameters(struct dl_py_frame *f, int *at, const struct dl_py_value *call,
                                    bool *all) {
    const struct dl_py_module *m = f->module;
    int position = 0;
    *all = true;
    for (f->stop = m->count; f->at < f->stop && !dl_py_take(f, ")");) {
        struct dl_py_value *value = NULL, *fallback = NULL;
        const bool stars = dl_py_take(f, "*") || dl_py_take(f, "**");
        if (dl_py_take(f, ",") || dl_py_take(f, "/")) continue;
        if (dl_py_peek(f)->kind != DL_PY_NAME) return dl_py_expected(f, "a parameter");
        const char *name = dl_py_peek(f)->text;
        f->at++;
        if (dl_py_take(f, ":")) DL_TRY(dl_py_expression(f, &value));
        if (dl_py_take(f, "=")) DL_TRY(dl_py_expression(f, &fallback));
        value = call != NULL ? dl_py_member(call, name) : NULL;
        if (value == NULL && call != NULL && !stars) value = dl_py_argument(call, position++);
        if (value == NULL) value = fallback;
        if (value == NULL && !stars) *all = false;
        if (value == NULL) value = dl_py_new(f->py, DL_PY_UNKNOWN, name, m->tokens[*at].line);
        bind(f, name, value, 0);
        if (!dl_py_take(f, ",") && !dl_py_is(f, ")")) return dl_py_expected(f, "',' or ')'");
    }
    *at = f->at;
    return DL_OK;
}

/* A function of the module at token `def`, with the arguments of a call; NULL: without; *all: every
 * parameter has a default. */
static enum dl_code run_function(struct dl_py *py, struct dl_py_module *m, int def,
                                 const struct dl_py_value *call, bool *all,
                                 struct dl_py_value **out) {
    struct dl_py_variable *first = dl_arena_alloc(py->arena, 1, sizeof *first);
    struct dl_py_frame f = {.py = py, .module = m, .locals = first, .stop = m->count};
    enum ended ended = GOES_ON;
    *first = (struct dl_py_variable){.name = "", .next = NULL};
    int at = def;
    f.at = def + 2;
    *out = dl_py_new(py, DL_PY_NONE, "None", m->tokens[def].line);
    if (!dl_py_take(&f, "(")) return dl_py_expected(&f, "'('");
    DL_TRY(bind_parameters(&f, &at, call, all));
    if (call == NULL) return DL_OK;
    const int start =
        def > 0 && m->tokens[def - 1].starts && !m->tokens[def].starts ? def - 1 : def;
    return run_body(&f, start, header_end(m, at, line_end(m, start)), &ended, out);
}

/* ---- modules ---- */

static enum dl_code load(struct dl_py *py, const char *path, const char *text, size_t length,
                         struct dl_py_module **out) {
    struct dl_py_module *m = dl_arena_alloc(py->arena, 1, sizeof *m);
    *m = (struct dl_py_module){.path = path, .next = py->modules};
    py->modules = m;
    py->module_count++;
    DL_TRY(dl_py_tokens(py, text, length, m));
    struct dl_py_frame f = {.py = py, .module = m};
    struct dl_py_value *ignored;
    enum ended ended = GOES_ON;
    *out = m;
    return run_lines(&f, 0, m->count, &ended, &ignored);
}

/* Another configuration, which needs no argument: "a.b.config_registry" as a file in the folder of
 * `near` or one above; NULL: none is read. */
static struct dl_py_module *imported(struct dl_py *py, const char *near, const char *name) {
    const char *last = strrchr(name, '.') != NULL ? strrchr(name, '.') + 1 : name;
    char *path = dl_arena_strdup(py->arena, name + strspn(name, "."));
    if (py->source->alone || py->source->context == NULL || strstr(last, "config") == NULL)
        return NULL;
    for (char *c = path; *c != '\0'; c++)
        if (*c == '.') *c = '/';
    char *folder = dl_arena_strdup(py->arena, near);
    for (int up = 0; up < 12 && py->module_count < MAX_MODULES; up++) {
        char *slash = strrchr(folder, '/');
        const char *file = slash != NULL ? dl_arena_printf(py->arena, "%.*s/%s.py",
                                                           (int)(slash - folder), folder, path)
                                         : dl_arena_printf(py->arena, "%s.py", path);
        struct dl_py_module *m = py->modules;
        while (m != NULL && strcmp(m->path, file) != 0) m = m->next;
        if (m != NULL) return m;
        struct dl_err ignored;
        char *text;
        size_t length;
        const struct dl_data *data = &py->source->context->data;
        if (dl_data_exists(file) &&
            dl_data_read(data, file, MAX_BYTES, py->arena, &text, &length, &ignored) == DL_OK)
            return load(py, file, text, length, &m) == DL_OK ? m : NULL;
        if (slash == NULL) return NULL;
        *slash = '\0';
    }
    return NULL;
}

enum dl_code dl_py_call(struct dl_py_frame *f, const struct dl_py_value *object, bool *known,
                        struct dl_py_value **out) {
    struct dl_py *py = f->py;
    struct dl_py_module *m = f->module;
    const struct dl_py_variable *v = dl_py_find(f->locals, object->text);
    const struct dl_py_import *import = m->imports;
    bool all;
    if (v == NULL) v = dl_py_find(m->globals, object->text);
    while (v == NULL && import != NULL && strcmp(import->name, object->text) != 0)
        import = import->next;
    if (v == NULL && import != NULL && object->members == NULL &&
        (m = imported(py, m->path, import->module)) != NULL)
        v = dl_py_find(m->globals, import->original);
    *known = v != NULL && v->value == NULL;
    *out = NULL;
    return *known ? run_function(py, m, v->def, object, &all, out) : DL_OK;
}

/* Whether it can be a configuration: an object, or a function that needs no argument. */
static enum dl_code is_candidate(struct dl_py *py, struct dl_py_module *m,
                                 const struct dl_py_variable *v, bool *is) {
    struct dl_py_value *ignored;
    *is = v->value != NULL && v->value->kind == DL_PY_OBJECT;
    if (v->value != NULL || v->name[0] == '_') return DL_OK;
    return run_function(py, m, v->def, NULL, is, &ignored);
}

static enum dl_code choose(struct dl_py *py, struct dl_py_module *m, const char *name,
                           const struct dl_py_variable **out) {
    const char *names = "";
    int count = 0;
    for (const struct dl_py_variable *v = m->globals; v != NULL; v = v->next) {
        bool is;
        if (name != NULL && strcmp(v->name, name) != 0) continue;
        DL_TRY(is_candidate(py, m, v, &is));
        if (!is) continue;
        names = dl_arena_printf(py->arena, "%s%s%s", v->name, count > 0 ? ", " : "", names);
        *out = v;
        count++;
    }
    if (count == 1) return DL_OK;
    if (count > 1)
        return dl_fail_at(py->err, m->path, 1, 1, NULL,
                          "several configurations: give one by --config NAME, of %.400s", names);
    if (name != NULL)
        return dl_fail_at(py->err, m->path, 1, 1, NULL,
                          "--config %.80s: expected a function without arguments, or an object",
                          name);
    return dl_fail_at(py->err, m->path, 1, 1, NULL,
                      "expected a function without arguments that returns a configuration");
}

enum dl_code dl_py_evaluate(const struct dl_run_source *source, const char *name,
                            struct dl_arguments *notes, struct dl_py_value **out,
                            const char **name_out, struct dl_err *err) {
    struct dl_py py = {.source = source, .arena = notes->arena, .err = err, .notes = notes};
    struct dl_py_module *m;
    const struct dl_py_variable *v = NULL;
    struct dl_py_value none = {.kind = DL_PY_OBJECT};
    bool all;
    DL_TRY(load(&py, source->path, source->text, source->length, &m));
    DL_TRY(choose(&py, m, name, &v));
    *name_out = v->name;
    *out = v->value;
    return v->value != NULL ? DL_OK : run_function(&py, m, v->def, &none, &all, out);
}
