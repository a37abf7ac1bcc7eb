/* import_arguments.c - lists of arguments from text: as a shell splits a command line, and as lines
 * of a configuration. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "model/core/text.h"
#include "import/import_plan.h"

struct splitter {
    const char *path, *at, *end;
    int line, word_line;
    struct dl_arena *arena;
    struct dl_err *err;
};

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

/* Blanks, comments, continued lines. */
static void skip(struct splitter *s) {
    while (s->at < s->end) {
        const bool continued =
            *s->at == '\\' && s->at + 1 < s->end && (s->at[1] == '\n' || s->at[1] == '\r');
        if (*s->at == '#') {
            while (s->at < s->end && *s->at != '\n') s->at++;
        } else if (is_blank(*s->at) || continued) {
            s->line += *s->at == '\n';
            s->at++;
        } else {
            return;
        }
    }
}

/* The inside of quotes, up to the closing one. */
static enum dl_code read_quoted(struct splitter *s, struct dl_text *word) {
    const char quote = *s->at++;
    while (s->at < s->end && *s->at != quote) {
        if (quote == '"' && *s->at == '\\' && s->at + 1 < s->end) s->at++;
        s->line += *s->at == '\n';
        dl_text_add_bytes(word, s->at++, 1);
    }
    if (s->at == s->end)
        return dl_fail_at(s->err, s->path, s->word_line, 1, NULL, "expected the closing %c", quote);
    s->at++;
    return DL_OK;
}

/* The next word; NULL at the end. */
static enum dl_code next_word(struct splitter *s, const char **out) {
    struct dl_text word = {.arena = s->arena};
    *out = NULL;
    skip(s);
    if (s->at == s->end) return DL_OK;
    s->word_line = s->line;
    while (s->at < s->end && !is_blank(*s->at)) {
        if (*s->at == '\'' || *s->at == '"') {
            DL_TRY(read_quoted(s, &word));
            continue;
        }
        if (*s->at == '\\' && s->at + 1 < s->end) {
            s->at++;
            if (is_blank(*s->at)) break; /* a continued line ends the word */
        }
        dl_text_add_bytes(&word, s->at++, 1);
    }
    *out = dl_text_string(&word);
    return DL_OK;
}

/* An argument behind the others; a later one of the same name counts. */
static enum dl_code add(struct dl_arguments *out, const char *name, const char *value, int line,
                        struct dl_err *err) {
    char *plain = dl_arena_strdup(out->arena, name);
    for (char *c = plain; *c != '\0'; c++) *c = *c == '-' ? '_' : *c;
    int at = 0;
    while (at < out->count && strcmp(out->all[at].name, plain) != 0) at++;
    if (at == DL_ARGUMENTS)
        return dl_fail_at(err, out->path, line, 1, NULL, "more than %d arguments", DL_ARGUMENTS);
    if (at == out->count) out->count++;
    out->all[at] = (struct dl_argument){.name = plain, .value = value, .line = line};
    return DL_OK;
}

/* The value that NAME=VALUE gave to $NAME or ${NAME}; the word itself where there is none. */
static const char *substituted(const struct dl_arguments *variables, const char *word) {
    char name[128];
    size_t length = strlen(word), from = 1;
    if (word[0] != '$' || length < 2) return word;
    if (word[1] == '{') {
        if (word[length - 1] != '}') return word;
        from = 2;
        length--;
    }
    if (length - from >= sizeof name) return word;
    memcpy(name, word + from, length - from);
    name[length - from] = '\0';
    for (int i = 0; i < variables->count; i++) {
        if (strcmp(variables->all[i].name, name) == 0) return variables->all[i].value;
    }
    return word;
}

static bool is_option(const char *word) {
    return word != NULL && word[0] == '-' && word[1] == '-' && word[2] != '\0';
}

/* The end of an array of words: ")" behind the last one. */
static const char *without_bracket(struct dl_arena *arena, const char *word) {
    const size_t length = strlen(word);
    if (length == 0 || word[length - 1] != ')' || strchr(word, '(') != NULL) return word;
    return dl_arena_strndup(arena, word, length - 1);
}

static enum dl_code start(const char *path, const char *text, size_t length, struct dl_arena *arena,
                          struct dl_arguments *out, struct dl_err *err) {
    *out = (struct dl_arguments){.path = path, .arena = arena};
    out->all = dl_arena_alloc(arena, DL_ARGUMENTS + 1, sizeof *out->all);
    return memchr(text, '\0', length) == NULL
               ? DL_OK
               : dl_fail_at(err, path, 1, 1, NULL, "a zero byte: this is no text");
}

/* NAME=VALUE; an array's NAME=( gives nothing. */
static enum dl_code assign(const struct splitter *s, const char *word,
                           struct dl_arguments *variables) {
    const char *equals = strchr(word, '=');
    if (equals == NULL || equals == word || equals[1] == '(') return DL_OK;
    const char *name = dl_arena_strndup(s->arena, word, (size_t)(equals - word));
    return add(variables, name, substituted(variables, equals + 1), s->word_line, s->err);
}

enum dl_code dl_arguments_shell(const char *path, const char *text, size_t length,
                                struct dl_arena *arena, struct dl_arguments *out,
                                struct dl_err *err) {
    struct splitter s = {
        .path = path, .at = text, .end = text + length, .line = 1, .arena = arena, .err = err};
    struct dl_arguments variables;
    const char *word, *value;
    DL_TRY(start(path, text, length, arena, out, err));
    DL_TRY(start(path, text, length, arena, &variables, err));
    DL_TRY(next_word(&s, &word));
    while (word != NULL) {
        const int line = s.word_line;
        if (!is_option(word)) {
            DL_TRY(assign(&s, word, &variables));
            DL_TRY(next_word(&s, &word));
            continue;
        }
        const char *equals = strchr(word, '=');
        const char *name = dl_arena_strndup(
            arena, word + 2, equals != NULL ? (size_t)(equals - word - 2) : strlen(word + 2));
        if (name != NULL) name = without_bracket(arena, name);
        DL_TRY(next_word(&s, &value));
        const char *given = equals != NULL ? equals + 1 : is_option(value) ? NULL : value;
        if (given != NULL) given = without_bracket(arena, given);
        if (given != NULL) given = substituted(&variables, given);
        /* a flag before ")" or before the program that follows it */
        if (given != NULL && given[0] == '\0') given = NULL;
        DL_TRY(add(out, name, given, line, err));
        if (equals != NULL || is_option(value))
            word = value;
        else
            DL_TRY(next_word(&s, &word));
    }
    return out->count > 0 ? DL_OK
                          : dl_fail_at(err, path, 1, 1, NULL, "expected arguments, --NAME VALUE");
}

static void trim(const char **from, const char **to) {
    while (*from < *to && is_blank(**from)) (*from)++;
    while (*to > *from && is_blank((*to)[-1])) (*to)--;
}

/* One "key: value" line; false: no such line. A comment ends it. */
static bool split_line(struct dl_arena *arena, const char *line, size_t length, const char **key,
                       const char **value) {
    const char *end = line + length, *colon = memchr(line, ':', length), *key_end = colon;
    if (colon == NULL) return false;
    trim(&line, &key_end);
    if (line == key_end || *line == '#' || *line == '-') return false;
    const char *from = colon + 1, *to = from;
    while (to < end && !(*to == '#' && is_blank(to[-1]))) to++;
    trim(&from, &to);
    if (to - from >= 2 && (*from == '"' || *from == '\'') && to[-1] == *from) from++, to--;
    *key = dl_arena_strndup(arena, line, (size_t)(key_end - line));
    *value = dl_arena_strndup(arena, from, (size_t)(to - from));
    return true;
}

/* "${.key}" or "${model.key}": the value that the key has here, which is then its own. */
static void resolve(struct dl_arguments *a) {
    for (int i = 0; i < a->count; i++) {
        const char *value = a->all[i].value;
        const size_t length = strlen(value);
        if (strncmp(value, "${", 2) != 0 || value[length - 1] != '}') continue;
        size_t from = length - 1;
        while (from > 2 && value[from - 1] != '.') from--;
        const size_t name = length - 1 - from;
        for (int k = 0; k < a->count; k++) {
            if (k != i && strlen(a->all[k].name) == name &&
                strncmp(a->all[k].name, value + from, name) == 0)
                a->all[i].value = a->all[k].value;
        }
    }
}

enum dl_code dl_arguments_yaml(const char *path, const char *text, size_t length,
                               struct dl_arena *arena, struct dl_arguments *out,
                               struct dl_err *err) {
    const char *end = text + length;
    int line = 1;
    DL_TRY(start(path, text, length, arena, out, err));
    for (const char *at = text; at < end; line++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at)), *key, *value;
        const size_t size = (size_t)((stop != NULL ? stop : end) - at);
        if (split_line(arena, at, size, &key, &value)) {
            const bool absent = value[0] == '\0' || strcmp(value, "null") == 0 ||
                                strcmp(value, "~") == 0 || strcmp(value, "None") == 0;
            if (!absent) DL_TRY(add(out, key, value, line, err));
        }
        at += size + 1;
    }
    resolve(out);
    return out->count > 0 ? DL_OK : dl_fail_at(err, path, 1, 1, NULL, "expected lines KEY: VALUE");
}

const struct dl_argument *dl_arguments_find(struct dl_arguments *a, const char *names) {
    for (const char *name = names;;) {
        const size_t length = strcspn(name, "|");
        for (int i = 0; i < a->count; i++) {
            if (strlen(a->all[i].name) != length || strncmp(a->all[i].name, name, length) != 0)
                continue;
            a->all[i].used = true;
            return &a->all[i];
        }
        if (name[length] == '\0') return NULL;
        name += length + 1;
    }
}

const char *dl_arguments_word(struct dl_arguments *a, const char *names, const char *fallback) {
    const struct dl_argument *found = dl_arguments_find(a, names);
    return found != NULL && found->value != NULL ? found->value : fallback;
}

bool dl_arguments_flag(struct dl_arguments *a, const char *names) {
    const struct dl_argument *found = dl_arguments_find(a, names);
    return found != NULL && (found->value == NULL || (strcasecmp(found->value, "false") != 0 &&
                                                      strcmp(found->value, "0") != 0));
}

enum dl_code dl_arguments_number(struct dl_arguments *a, const char *names, double low, double high,
                                 double *inout, struct dl_err *err) {
    const struct dl_argument *found = dl_arguments_find(a, names);
    char *end;
    if (found == NULL) return DL_OK;
    const char *text = found->value != NULL ? found->value : "";
    const double value = strtod(text, &end);
    const bool plain =
        text[0] != '\0' && *end == '\0' && text[strspn(text, "+-0123456789.eE")] == '\0';
    if (!plain || !(value >= low && value <= high))
        return dl_fail_at(err, a->path, found->line, 1, found->name,
                          "expected a number from %g to %g, found \"%.60s\"%s", low, high, text,
                          strchr(text, '$') != NULL ? ": write the variable's value" : "");
    *inout = value;
    return DL_OK;
}
