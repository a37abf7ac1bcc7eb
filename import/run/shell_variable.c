/* shell_variable.c - variables of a shell and their expansions ${NAME...}. */
#include <fnmatch.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "import/run/shell_internal.h"

void dl_shell_push(struct dl_arena *arena, struct dl_shell_list *list, const char *text) {
    list->texts = dl_arena_grow(arena, list->texts, (size_t)list->count, sizeof *list->texts);
    list->texts[list->count++] = text;
}

struct dl_shell_variable *dl_shell_find(const struct dl_shell *shell, const char *name) {
    for (int i = 0; i < shell->variable_count; i++)
        if (strcmp(shell->variables[i].name, name) == 0) return &shell->variables[i];
    return NULL;
}

static struct dl_shell_variable *made(struct dl_shell *shell, const char *name) {
    struct dl_shell_variable *found = dl_shell_find(shell, name);
    if (found != NULL) return found;
    shell->variables = dl_arena_grow(shell->arena, shell->variables, (size_t)shell->variable_count,
                                     sizeof *shell->variables);
    found = &shell->variables[shell->variable_count++];
    found->name = name;
    return found;
}

void dl_shell_clear(struct dl_shell *shell, const char *name) {
    struct dl_shell_variable *v = made(shell, name);
    *v = (struct dl_shell_variable){.name = v->name};
}

void dl_shell_assign(struct dl_shell *shell, const char *name, const char *key, const char *value,
                     bool append) {
    struct dl_shell_variable *v = made(shell, name);
    for (int i = 0; i < v->keys.count; i++) {
        if (strcmp(v->keys.texts[i], key) != 0) continue;
        if (append) value = dl_arena_printf(shell->arena, "%s%s", v->values.texts[i], value);
        v->values.texts[i] = value;
        return;
    }
    dl_shell_push(shell->arena, &v->keys, key);
    dl_shell_push(shell->arena, &v->values, value);
}

void dl_shell_set(struct dl_shell *shell, const char *name, const char *value) {
    dl_shell_clear(shell, name);
    dl_shell_assign(shell, name, "0", value, false);
}

void dl_shell_arguments(struct dl_shell *shell, const struct dl_shell_list *words) {
    dl_shell_clear(shell, "@");
    for (int i = 0; i < words->count; i++) {
        const char *number = dl_arena_printf(shell->arena, "%d", i + 1);
        dl_shell_assign(shell, "@", number, words->texts[i], false);
        dl_shell_set(shell, number, words->texts[i]);
    }
}

const char *dl_shell_get(const struct dl_shell *shell, const char *name) {
    const struct dl_shell_variable *v = dl_shell_find(shell, name);
    return v != NULL && v->values.count > 0 ? v->values.texts[0] : NULL;
}

bool dl_shell_is_marked(const char *text) { return strchr(text, DL_SHELL_OPEN) != NULL; }

const char *dl_shell_plain(struct dl_arena *arena, const char *text, bool *open) {
    if (!dl_shell_is_marked(text)) return text;
    struct dl_text plain = {.arena = arena};
    for (const char *at = text; *at != '\0'; at++) {
        if (*at != DL_SHELL_OPEN) {
            dl_text_add_bytes(&plain, at, 1);
            continue;
        }
        *open = *open || at[1] == DL_SHELL_PROGRAM;
        while (at[1] != '\0' && *at != DL_SHELL_CLOSE) at++;
    }
    return dl_text_string(&plain);
}

const char *dl_shell_shown(struct dl_arena *arena, const char *text) {
    if (!dl_shell_is_marked(text)) return text;
    struct dl_text shown = {.arena = arena};
    bool program = false;
    for (const char *at = text; *at != '\0'; at++) {
        if (*at == DL_SHELL_OPEN)
            dl_text_add(&shown, "$");
        else if (*at == DL_SHELL_PROGRAM)
            dl_text_add(&shown, "(");
        else if (*at != DL_SHELL_CLOSE)
            dl_text_add_bytes(&shown, at, 1);
        else if (program)
            dl_text_add(&shown, ")");
        if (*at == DL_SHELL_PROGRAM || *at == DL_SHELL_CLOSE) program = *at == DL_SHELL_PROGRAM;
    }
    return dl_text_string(&shown);
}

const char *dl_shell_mark(struct dl_shell *shell, const char *name) {
    return dl_arena_printf(shell->arena, "%c%s%c", DL_SHELL_OPEN, name, DL_SHELL_CLOSE);
}

void dl_shell_unset(struct dl_shell *shell, const char *from, const char *to) {
    const char *name = dl_arena_strndup(shell->arena, from, (size_t)(to - from));
    dl_shell_set(shell, name, dl_shell_mark(shell, name));
}

/* ---- operators on one value ---- */

/* The value without the shortest or longest start or end that the pattern matches. */
static const char *without(struct dl_arena *arena, const char *value, const char *pattern, bool end,
                           bool longest) {
    const size_t length = strlen(value);
    for (size_t i = 0; i <= length && length < 4096; i++) {
        const size_t size = longest ? length - i : i;
        const char *piece = end ? value + length - size : dl_arena_strndup(arena, value, size);
        if (fnmatch(pattern, piece, 0) != 0) continue;
        return end ? dl_arena_strndup(arena, value, length - size)
                   : dl_arena_strdup(arena, value + size);
    }
    return value;
}

/* ${NAME/PATTERN/WITH}, of plain texts; every: ${NAME//...} */
static const char *replaced(struct dl_arena *arena, const char *value, const char *pattern,
                            const char *with, bool every) {
    struct dl_text out = {.arena = arena};
    const size_t length = strlen(pattern);
    while (*value != '\0') {
        if (length > 0 && strncmp(value, pattern, length) == 0) {
            dl_text_add(&out, with);
            value += length;
            if (every) continue;
            dl_text_add(&out, value);
            break;
        }
        dl_text_add_bytes(&out, value++, 1);
    }
    return dl_text_string(&out);
}

static const char *cut(struct dl_shell *shell, const char *value, const char *range) {
    const char *colon = strchr(range, ':');
    const char *first =
        colon == NULL ? range : dl_arena_strndup(shell->arena, range, (size_t)(colon - range));
    const double length = (double)strlen(value);
    double from = strtod(dl_shell_arithmetic(shell, first, false), NULL),
           count =
               colon == NULL ? length : strtod(dl_shell_arithmetic(shell, colon + 1, false), NULL);
    if (from < 0) from += length;
    if (!(from >= 0 && from <= length)) return "";
    if (count < 0) count += length - from;
    if (!(count >= 0)) return "";
    if (count > length - from) count = length - from;
    return dl_arena_strndup(shell->arena, value + (size_t)from, (size_t)count);
}

static const char *cased(struct dl_arena *arena, const char *value, const char *operator) {
    char *copy = dl_arena_strdup(arena, value);
    for (char *c = copy; *c != '\0'; c++) {
        *c = (char)(operator[0] == '^' ? toupper((unsigned char)*c) : tolower((unsigned char)*c));
        if (operator[1] != operator[0]) break;
    }
    return copy;
}

static enum dl_code operate(struct dl_shell_reader *r, const char *from, const char *to,
                            const char *value, const char **out) {
    struct dl_arena *arena = r->shell->arena;
    const char *operator= from, *pattern;
    const bool doubled = to - from > 1 && from[1] == from[0];
    *out = value;
    if (from == to || *from == '@') return DL_OK;
    from += doubled ? 2 : 1;
    const char *slash = *operator== '/' ? memchr(from, '/', (size_t)(to - from)) : NULL;
    DL_TRY(dl_shell_expand_text(r, from, slash != NULL ? slash : to, false, &pattern));
    switch (*operator) {
    case '#':
    case '%': *out = without(arena, value, pattern, *operator== '%', doubled); return DL_OK;
    case '^':
    case ',': *out = cased(arena, value, operator); return DL_OK;
    case ':': *out = cut(r->shell, value, pattern); return DL_OK;
    case '/': {
        const char *with = "";
        if (slash != NULL) DL_TRY(dl_shell_expand_text(r, slash + 1, to, false, &with));
        *out = replaced(arena, value, pattern, with, doubled);
        return DL_OK;
    }
    default: return DL_OK;
    }
}

/* ---- the whole expansion ---- */

/* ":-", "-", ":=", ":+", "+", ":?": the operator's letter behind an optional colon, else 0. */
static char default_operator(const char *from, const char *to) {
    if (from < to && *from == ':') from++;
    return (char)(from < to && strchr("-=+?", *from) != NULL ? *from : '\0');
}

/* "-", "=", "+" and "?"; set: the variable has a value. */
static enum dl_code take_default(struct dl_shell_reader *r, const char *name, const char *from,
                                 const char *to, bool set, struct dl_shell_list *out) {
    const char operator= default_operator(from, to);
    const char *word;
    from += *from == ':' ? 2 : 1;
    if (operator== '?') {
        dl_shell_push(r->shell->arena, out, dl_shell_mark(r->shell, name));
        return DL_OK;
    }
    if (set != (operator== '+')) return DL_OK;
    DL_TRY(dl_shell_expand_text(r, from, to, false, &word));
    dl_shell_push(r->shell->arena, out, word);
    if (operator== '=') dl_shell_set(r->shell, name, word);
    if (operator!= '+' && word[0] != '\0') {
        struct dl_shell_list *defaults = &r->shell->defaults;
        const char *text = dl_arena_printf(r->shell->arena, "%s=%s", name, word);
        int at = 0;
        while (at < defaults->count && strcmp(defaults->texts[at], text) != 0) at++;
        if (at == defaults->count) dl_shell_push(r->shell->arena, defaults, text);
    }
    return DL_OK;
}

/* The name at `from` with an index: its end. */
static const char *name_end(const char *from, const char *to) {
    const char *at = from;
    if (at < to && strchr("@*#?$!-", *at) != NULL) return at + 1;
    if (at < to && *at >= '0' && *at <= '9') {
        while (at < to && *at >= '0' && *at <= '9') at++;
        return at;
    }
    while (at < to && dl_shell_is_name(*at, at == from)) at++;
    return at;
}

/* The key of NAME[...]. */
static enum dl_code index_of(struct dl_shell_reader *r, const struct dl_shell_variable *v,
                             const char *from, const char *to, const char **out) {
    DL_TRY(dl_shell_expand_text(r, from, to, false, out));
    for (int i = 0; v != NULL && i < v->keys.count; i++)
        if (strcmp(v->keys.texts[i], *out) == 0) return DL_OK;
    *out = dl_shell_arithmetic(r->shell, *out, false);
    if (**out == '-' && v != NULL)
        *out = dl_arena_printf(r->shell->arena, "%d", v->keys.count + atoi(*out));
    return DL_OK;
}

/* Values of the name at [from, to) into out; all: those of every element. */
static enum dl_code values_of(struct dl_shell_reader *r, const char *name, const char *from,
                              const char *to, bool keys, bool *all, struct dl_shell_list *out) {
    struct dl_shell_variable *v = dl_shell_find(r->shell, name);
    const bool listed = to - from == 1 && (*from == '@' || *from == '*');
    const char *key = "0";
    *all = listed || strcmp(name, "@") == 0 || strcmp(name, "*") == 0;
    if (strcmp(name, "*") == 0) v = dl_shell_find(r->shell, "@");
    if (!*all && from < to) DL_TRY(index_of(r, v, from, to, &key));
    for (int i = 0; v != NULL && i < v->values.count; i++)
        if (*all || strcmp(v->keys.texts[i], key) == 0)
            dl_shell_push(r->shell->arena, out, keys ? v->keys.texts[i] : v->values.texts[i]);
    return DL_OK;
}

static void push_count(struct dl_shell_reader *r, size_t count, struct dl_shell_list *out) {
    dl_shell_push(r->shell->arena, out, dl_arena_printf(r->shell->arena, "%zu", count));
}

/* Values as an operator of the expansion leaves them, or its default. */
static enum dl_code take_operator(struct dl_shell_reader *r, const char *name, bool all,
                                  const char *from, const char *to, struct dl_shell_list *values,
                                  struct dl_shell_list *out) {
    struct dl_arena *arena = r->shell->arena;
    const char operator= default_operator(from, to);
    if (operator!= '\0') {
        const bool empty = *from == ':' && values->count == 1 && values->texts[0][0] == '\0',
                   set = values->count > 0 && !empty;
        if (!set || operator== '+') return take_default(r, name, from, to, set, out);
        from = to;
    }
    if (values->count == 0 && !all) dl_shell_push(arena, out, dl_shell_mark(r->shell, name));
    for (int i = 0; i < values->count; i++) {
        DL_TRY(operate(r, from, to, values->texts[i], &values->texts[i]));
        dl_shell_push(arena, out, values->texts[i]);
    }
    return DL_OK;
}

/* Past "[KEY]" at `from`, if there is one. */
static const char *index_end(const char *from, const char *to, const char **key,
                             const char **key_end) {
    if (from >= to || *from != '[') return from;
    *key = *key_end = from + 1;
    while (*key_end < to && **key_end != ']') ++*key_end;
    return *key_end < to ? *key_end + 1 : to;
}

enum dl_code dl_shell_parameter(struct dl_shell_reader *r, const char *from, const char *to,
                                struct dl_shell_list *out, bool *separate) {
    struct dl_shell_list values = {NULL, 0};
    const bool length = to - from > 1 && *from == '#', indirect = to - from > 1 && *from == '!';
    bool all = false;
    if (length || indirect) from++;
    const char *end = name_end(from, to), *key = end, *key_end = end,
               *name = dl_arena_strndup(r->shell->arena, from, (size_t)(end - from));
    end = index_end(end, to, &key, &key_end);
    if (strcmp(name, "#") == 0) { /* $# */
        const struct dl_shell_variable *v = dl_shell_find(r->shell, "@");
        push_count(r, v != NULL ? (size_t)v->values.count : 0, out);
        return DL_OK;
    }
    DL_TRY(values_of(r, name, key, key_end, indirect && key < key_end, &all, &values));
    *separate = all && strcmp(name, "*") != 0 && !(key < key_end && *key == '*');
    if (length) {
        push_count(r,
                   all                 ? (size_t)values.count
                   : values.count == 0 ? 0
                                       : strlen(values.texts[0]),
                   out);
        return DL_OK;
    }
    if (indirect && key == key_end && values.count > 0) {
        name = values.texts[0];
        values.count = 0;
        DL_TRY(values_of(r, name, "", "", false, &all, &values));
    }
    return take_operator(r, name, all, end, to, &values, out);
}
