/* shell_expand.c - a word as the shell passes it on: quotes, expansions, splitting. */
#include <string.h>

#include "import/run/shell_internal.h"

enum { LONGEST_WORD = 1 << 18 };

struct fields {
    struct dl_shell_reader *r;
    struct dl_text word;
    bool begun; /* the word is there even if it is empty */
    bool split;
    struct dl_shell_list *out;
};

static void end_field(struct fields *f) {
    if (f->begun || f->word.length > 0)
        dl_shell_push(f->r->shell->arena, f->out, dl_text_string(&f->word));
    f->word = (struct dl_text){.arena = f->r->shell->arena};
    f->begun = false;
}

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

/* A value outside of quotes: blanks in it end fields. */
static void add_split(struct fields *f, const char *value) {
    for (; *value != '\0'; value++) {
        if (f->split && is_blank(*value))
            end_field(f);
        else
            dl_text_add_bytes(&f->word, value, 1);
    }
}

static void add_values(struct fields *f, const struct dl_shell_list *values, bool quoted,
                       bool separate) {
    for (int i = 0; i < values->count; i++) {
        const bool apart = f->split && (separate || !quoted);
        if (i > 0 && apart) end_field(f);
        if (i > 0 && !apart) dl_text_add(&f->word, " ");
        if (quoted)
            dl_text_add(&f->word, values->texts[i]);
        else
            add_split(f, values->texts[i]);
        f->begun = f->begun || (quoted && separate);
    }
}

static enum dl_code arithmetic(struct fields *f, const char *from, const char *to,
                               struct dl_shell_list *values) {
    const char *text;
    DL_TRY(dl_shell_expand_text(f->r, from, to, true, &text));
    dl_shell_push(f->r->shell->arena, values, dl_shell_arithmetic(f->r->shell, text, false));
    return DL_OK;
}

static enum dl_code output(struct fields *f, const char *from, const char *to,
                           struct dl_shell_list *values) {
    const char *text;
    DL_TRY(dl_shell_output_of(f->r, from, (size_t)(to - from), &text));
    dl_shell_push(f->r->shell->arena, values, text);
    return DL_OK;
}

/* "$..." at *at, which moves behind it. */
static enum dl_code add_dollar(struct fields *f, const char **at, const char *to, bool quoted) {
    struct dl_shell_reader *r = f->r, walk = *r;
    struct dl_shell_list values = {NULL, 0};
    const char *from = *at;
    bool separate = false;
    walk.at = from;
    walk.end = to;
    if (from + 1 < to && (from[1] == '(' || from[1] == '{')) {
        DL_TRY(dl_shell_skip_dollar(&walk));
        *at = walk.at;
        if (from[1] == '{')
            DL_TRY(dl_shell_parameter(r, from + 2, walk.at - 1, &values, &separate));
        else if (from[2] == '(' && walk.at - from >= 5 && walk.at[-2] == ')')
            DL_TRY(arithmetic(f, from + 3, walk.at - 2, &values));
        else
            DL_TRY(output(f, from + 2, walk.at - 1, &values));
    } else {
        const char *end = from + 1;
        if (end < to && strchr("@*#?$!-0123456789", *end) != NULL)
            end++;
        else
            while (end < to && dl_shell_is_name(*end, end == from + 1)) end++;
        *at = end;
        if (end == from + 1) { /* a dollar alone, or $"..." */
            if (!(end < to && (*end == '"' || *end == '\''))) dl_text_add(&f->word, "$");
            return DL_OK;
        }
        DL_TRY(dl_shell_parameter(r, from + 1, end, &values, &separate));
    }
    add_values(f, &values, quoted, separate);
    return DL_OK;
}

static enum dl_code add_backquote(struct fields *f, const char **at, const char *to, bool quoted) {
    struct dl_shell_reader walk = *f->r;
    struct dl_shell_list values = {NULL, 0};
    const char *from = *at;
    walk.at = from;
    walk.end = to;
    DL_TRY(dl_shell_skip_backquote(&walk));
    *at = walk.at;
    DL_TRY(output(f, from + 1, walk.at - 1, &values));
    add_values(f, &values, quoted, false);
    return DL_OK;
}

/* The inside of double quotes, or a here-document: up to `to`. */
static enum dl_code add_double(struct fields *f, const char *at, const char *to, bool here) {
    while (at < to) {
        if (*at == '\\' && at + 1 < to && strchr(here ? "$`\\\n" : "$`\"\\\n", at[1]) != NULL) {
            if (at[1] != '\n') dl_text_add_bytes(&f->word, at + 1, 1);
            at += 2;
        } else if (*at == '$') {
            DL_TRY(add_dollar(f, &at, to, true));
        } else if (*at == '`') {
            DL_TRY(add_backquote(f, &at, to, true));
        } else {
            dl_text_add_bytes(&f->word, at++, 1);
        }
    }
    return DL_OK;
}

/* One quote as a whole. "${empty[@]}" expands to no field. */
static enum dl_code add_quote(struct fields *f, const char **at, const char *to) {
    struct dl_shell_reader walk = *f->r;
    const char *from = *at + 1;
    static const char all[] = "[@]}";
    walk.at = *at;
    walk.end = to;
    if (**at == '\'') {
        const char *close = memchr(from, '\'', (size_t)(to - from));
        *at = close != NULL ? close + 1 : to;
        dl_text_add_bytes(&f->word, from, (size_t)((close != NULL ? close : to) - from));
        f->begun = true;
        return DL_OK;
    }
    struct dl_shell_reader end = walk;
    DL_TRY(dl_shell_skip_word(&end));
    /* the end of this quote alone */
    const char *close = from;
    while (close < to && *close != '"') {
        struct dl_shell_reader inside = walk;
        inside.at = close;
        if (*close == '\\' && close + 1 < to)
            inside.at += 2;
        else if (*close == '$')
            DL_TRY(dl_shell_skip_dollar(&inside));
        else if (*close == '`')
            DL_TRY(dl_shell_skip_backquote(&inside));
        else
            inside.at++;
        close = inside.at;
    }
    const bool list = close - from > 4 && strncmp(close - 4, all, 4) == 0 && *from == '$',
               arguments = close - from == 2 && strncmp(from, "$@", 2) == 0;
    if (!list && !arguments) f->begun = true;
    *at = close < to ? close + 1 : to;
    return add_double(f, from, close, false);
}

static enum dl_code add_word(struct fields *f, const char *at, const char *to) {
    while (at < to) {
        if (f->word.length > LONGEST_WORD || f->r->shell->arena->total_bytes > (256u << 20))
            return dl_shell_fail(f->r, "more text than a script of arguments has");
        if (*at == '\\' && at + 1 < to) {
            if (at[1] != '\n') dl_text_add_bytes(&f->word, at + 1, 1);
            at += 2;
        } else if (*at == '\'' || *at == '"') {
            DL_TRY(add_quote(f, &at, to));
        } else if (*at == '$') {
            DL_TRY(add_dollar(f, &at, to, false));
        } else if (*at == '`') {
            DL_TRY(add_backquote(f, &at, to, false));
        } else {
            dl_text_add_bytes(&f->word, at++, 1);
        }
    }
    return DL_OK;
}

enum dl_code dl_shell_expand(struct dl_shell_reader *r, const char *from, const char *to,
                             bool split, struct dl_shell_list *out) {
    struct fields f = {.r = r, .split = split, .out = out, .word = {.arena = r->shell->arena}};
    if (r->shell->depth > 60) return dl_shell_fail(r, "expansions too deep");
    r->shell->depth++;
    const enum dl_code code = add_word(&f, from, to);
    r->shell->depth--;
    f.begun = f.begun || !split;
    end_field(&f);
    return code;
}

enum dl_code dl_shell_expand_text(struct dl_shell_reader *r, const char *from, const char *to,
                                  bool here, const char **out) {
    struct dl_shell_list list = {NULL, 0};
    struct fields f = {.r = r, .out = &list, .begun = true, .word = {.arena = r->shell->arena}};
    if (r->shell->depth > 60) return dl_shell_fail(r, "expansions too deep");
    r->shell->depth++;
    const enum dl_code code = here ? add_double(&f, from, to, true) : add_word(&f, from, to);
    r->shell->depth--;
    *out = dl_text_string(&f.word);
    return code;
}
