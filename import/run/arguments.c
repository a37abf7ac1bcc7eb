/* arguments.c - see the header. */
#include "import/run/arguments.h"

#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

void dl_arguments_start(struct dl_arguments *out, const char *path, struct dl_arena *arena) {
    *out = (struct dl_arguments){.path = path, .arena = arena};
}

static int place_of(const struct dl_arguments *a, const char *name, size_t length) {
    for (int i = 0; i < a->count; i++)
        if (strncmp(a->all[i].name, name, length) == 0 && a->all[i].name[length] == '\0') return i;
    return a->count;
}

enum dl_code dl_arguments_add(struct dl_arguments *a, const char *name, const char *value, int line,
                              struct dl_err *err) {
    const int at = place_of(a, name, strlen(name));
    if (at == DL_ARGUMENTS)
        return dl_fail_at(err, a->path, line, 1, NULL, "more than %d arguments", DL_ARGUMENTS);
    if (at == a->count)
        a->all = dl_arena_grow(a->arena, a->all, (size_t)a->count++, sizeof *a->all);
    a->all[at] = (struct dl_argument){.name = name, .value = value, .line = line};
    return DL_OK;
}

static void push(struct dl_arena *arena, const char ***texts, int *count, const char *text) {
    *texts = dl_arena_grow(arena, *texts, (size_t)*count, sizeof **texts);
    (*texts)[(*count)++] = text;
}

void dl_arguments_note(struct dl_arguments *a, const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    for (int i = 0; i < a->remark_count; i++)
        if (strcmp(a->remarks[i], text) == 0) return;
    push(a->arena, &a->remarks, &a->remark_count, dl_arena_strdup(a->arena, text));
}

static void remember(struct dl_arguments *a, const char *name, size_t length) {
    for (int i = 0; i < a->asked_count; i++)
        if (strncmp(a->asked[i], name, length) == 0 && a->asked[i][length] == '\0') return;
    push(a->arena, &a->asked, &a->asked_count, dl_arena_strndup(a->arena, name, length));
}

const struct dl_argument *dl_arguments_find(struct dl_arguments *a, const char *names) {
    const struct dl_argument *found = NULL;
    for (const char *name = names;;) {
        const size_t length = strcspn(name, "|");
        const int at = place_of(a, name, length);
        remember(a, name, length);
        if (at < a->count) {
            a->all[at].used = true;
            if (found == NULL) found = &a->all[at];
        }
        if (name[length] == '\0') return found;
        name += length + 1;
    }
}

const char *dl_arguments_peek(const struct dl_arguments *a, const char *name) {
    const int at = place_of(a, name, strlen(name));
    return at < a->count ? a->all[at].value : NULL;
}

const char *dl_arguments_word(struct dl_arguments *a, const char *names, const char *fallback) {
    const struct dl_argument *found = dl_arguments_find(a, names);
    return found != NULL && found->value != NULL ? found->value : fallback;
}

bool dl_is_off(const char *value) {
    static const char *const off[] = {"", "false", "0", "no", "none", "off", "null", "nan", "~"};
    for (size_t i = 0; i < sizeof off / sizeof off[0]; i++)
        if (strcasecmp(value, off[i]) == 0) return true;
    return false;
}

bool dl_arguments_flag(struct dl_arguments *a, const char *names) {
    const struct dl_argument *found = dl_arguments_find(a, names);
    return found != NULL && (found->value == NULL || !dl_is_off(found->value));
}

enum dl_code dl_arguments_fail(struct dl_arguments *a, const char *names, struct dl_err *err,
                               const char *format, ...) {
    char message[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    const struct dl_argument *found = dl_arguments_find(a, names);
    return dl_fail_at(err, a->path, found != NULL ? found->line : 1, 1,
                      found != NULL ? found->name : NULL, "%s", message);
}

/* "$NAME" of a variable that a script leaves to its environment. */
static const char *variable_hint(struct dl_arena *arena, const char *text) {
    const char *dollar = strchr(text, '$');
    if (dollar == NULL || (dollar[1] >= '0' && dollar[1] <= '9')) return "";
    if (dollar[1] == '(' || dollar[1] == '{') return ": give a file where it has its value";
    const size_t length =
        strspn(dollar + 1, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    return dl_arena_printf(arena, ": the file does not set it; give it by --env %.*s=N",
                           (int)length, dollar + 1);
}

enum dl_code dl_arguments_number(struct dl_arguments *a, const char *names, double low, double high,
                                 double *inout, struct dl_err *err) {
    const struct dl_argument *found = dl_arguments_find(a, names);
    char *end;
    if (found == NULL || (found->value != NULL && found->value[0] != '0' &&
                          (dl_is_off(found->value) || strcasecmp(found->value, "auto") == 0)))
        return DL_OK; /* "auto": a program decides it when it runs */
    const char *text = found->value != NULL ? found->value : "";
    char plain[64];
    size_t length = 0;
    for (const char *c = text; *c != '\0' && length < sizeof plain - 1; c++)
        if (*c != '_') plain[length++] = *c;
    plain[length] = '\0';
    const double value = strtod(plain, &end);
    const bool number =
        text[0] != '\0' && *end == '\0' && text[strspn(text, "+-0123456789._eE")] == '\0';
    if (!number || !(value >= low && value <= high))
        return dl_fail_at(err, a->path, found->line, 1, found->name,
                          "expected a number from %g to %g, found \"%.60s\"%s", low, high, text,
                          variable_hint(a->arena, text));
    *inout = value;
    return DL_OK;
}

/* ---- arguments that no reader requested ---- */

/* Argument names are matched by their last part, too: "optim.lr" by "lr". */
static bool matches(const char *pattern, const char *name) {
    const char *dot = strrchr(name, '.');
    return fnmatch(pattern, name, 0) == 0 ||
           (dot != NULL && strchr(pattern, '.') == NULL && fnmatch(pattern, dot + 1, 0) == 0);
}

static enum dl_argument_use use_of(const struct dl_argument *argument,
                                   const struct dl_argument_class *row) {
    for (; row->pattern != NULL; row++)
        if (matches(row->pattern, argument->name)) return row->use;
    return 0;
}

/* Words in a name that speak of a degree, a precision, a compiler or an offload. */
static const char *suspicion(const char *name) {
    static const char *const words[][2] = {
        {"parallel", "a degree of parallelism"},
        {"_degree", "a degree of parallelism"},
        {"shard", "a sharding"},
        {"offload", "an offload"},
        {"compile", "a compiler"},
        {"precision", "a precision"},
        {"dtype", "a precision"},
        {"fp8", "a precision"},
        {"float8", "a precision"},
        {"fp4", "a precision"},
        {"bf16", "a precision"},
        {"fp16", "a precision"},
        {"quant", "a precision"},
        {"zero_stage", "a sharding"},
        {"recompute", "a recomputation"},
        {"checkpoint_activation", "a recomputation"},
    };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strstr(name, words[i][0]) != NULL) return words[i][1];
    return NULL;
}

static enum dl_code refuse(struct dl_arguments *a, const struct dl_argument *argument,
                           const char *what, struct dl_err *err) {
    const char **names = dl_arena_alloc(a->arena, (size_t)a->asked_count + 1, sizeof *names);
    for (int i = 0; i < a->asked_count; i++) names[i] = a->asked[i];
    const char *near = dl_suggest(argument->name, names);
    return dl_fail_at(err, a->path, argument->line, 1, argument->name,
                      "looks like %s, and no such argument is known%s%s%s; --skip-unknown leaves "
                      "it out",
                      what, near != NULL ? "; did you mean '" : "", near != NULL ? near : "",
                      near != NULL ? "'?" : "");
}

/* One letter too much, too few or wrong, or two in the wrong order. */
bool dl_one_slip(const char *a, const char *b) {
    const size_t n = strlen(a), m = strlen(b), longer = n > m ? n : m, shorter = n > m ? m : n;
    size_t front = 0, back = 0;
    while (front < shorter && a[front] == b[front]) front++;
    while (back < shorter - front && a[n - 1 - back] == b[m - 1 - back]) back++;
    const bool swapped =
        n == m && front + back + 2 == n && a[front] == b[front + 1] && a[front + 1] == b[front];
    return longer - shorter <= 1 && (front + back + 1 >= longer || swapped);
}

/* A name that is one slip away from one that a plan asks for. */
static bool is_misspelt(const struct dl_arguments *a, const char *name) {
    for (int i = 0; i < a->asked_count && strlen(name) >= 6; i++)
        if (dl_one_slip(name, a->asked[i])) return true;
    return false;
}

static bool is_off(const struct dl_argument *argument) {
    return argument->value != NULL &&
           (dl_is_off(argument->value) || strcmp(argument->value, "1") == 0 ||
            strcmp(argument->value, "1.0") == 0);
}

enum { TAKEN, COSTS_NOTHING, NOT_MODELLED, UNKNOWN };

/* The list of an argument; *what: why it should not be passed over, NULL: no reason. */
static int list_of(const struct dl_arguments *a, const struct dl_argument *argument,
                   const struct dl_argument_class *own, const struct dl_argument_class *common,
                   const char **what) {
    const bool off = argument->value != NULL && dl_is_off(argument->value);
    *what = suspicion(argument->name);
    if (argument->used) return TAKEN;
    enum dl_argument_use use = use_of(argument, own);
    if (use == 0 && *what == NULL) use = use_of(argument, common);
    if (use == DL_NOT_MODELLED_EVEN_OFF) return NOT_MODELLED;
    if (use == DL_COSTS_NOTHING || off) return COSTS_NOTHING;
    if (use == DL_NOT_MODELLED) return NOT_MODELLED;
    if (*what != NULL && is_off(argument)) return COSTS_NOTHING;
    if (*what == NULL && is_misspelt(a, argument->name)) *what = "a misspelling";
    return UNKNOWN;
}

enum dl_code dl_arguments_sort(struct dl_arguments *a, const struct dl_argument_class *own,
                               const struct dl_argument_class *common, bool skip,
                               struct dl_argument_lists *out, struct dl_err *err) {
    const char **lists[4];
    int counts[4] = {0, 0, 0, 0};
    for (int i = 0; i < 4; i++)
        lists[i] = dl_arena_alloc(a->arena, (size_t)a->count + 1, sizeof *lists[i]);
    for (int i = 0; i < a->count; i++) {
        const char *what;
        const int list = list_of(a, &a->all[i], own, common, &what);
        if (list == UNKNOWN && what != NULL && !skip) return refuse(a, &a->all[i], what, err);
        lists[list][counts[list]++] = a->all[i].name;
    }
    out->taken = lists[0];
    out->costs_nothing = lists[1];
    out->not_modelled = lists[2];
    out->unknown = lists[3];
    return DL_OK;
}
