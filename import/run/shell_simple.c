/* shell_simple.c - simple commands: assignments, words, redirections. */
#include <string.h>

#include "import/run/shell_internal.h"

struct simple {
    struct dl_shell_list words;
    const char *input, *target; /* here-document; file of the output */
};

/* The word that ends a here-document; *quoted: its text is taken as it is. */
static enum dl_code read_delimiter(struct dl_shell_reader *r, struct dl_text *out, bool *quoted) {
    const char *from = r->at;
    *quoted = false;
    DL_TRY(dl_shell_skip_word(r));
    for (; from < r->at; from++) {
        if (strchr("'\"\\", *from) != NULL)
            *quoted = true;
        else
            dl_text_add_bytes(out, from, 1);
    }
    return DL_OK;
}

/* Whether the line [from, to) is the delimiter alone, behind tabs if they do not count. */
static bool is_delimiter(const char *from, const char *to, bool tabs, const char *delimiter) {
    const size_t length = strlen(delimiter);
    while (tabs && from < to && *from == '\t') from++;
    if (to > from && to[-1] == '\r') to--;
    return (size_t)(to - from) == length && strncmp(from, delimiter, length) == 0;
}

/* The body of a here-document: lines up to the one that is its delimiter. */
static enum dl_code here_document(struct dl_shell_reader *r, bool live, struct simple *c) {
    struct dl_text delimiter = {.arena = r->shell->arena};
    const bool tabs = r->at < r->end && *r->at == '-';
    bool quoted;
    r->at += tabs;
    dl_shell_skip(r, false);
    DL_TRY(read_delimiter(r, &delimiter, &quoted));
    const char *line = r->jump, *stop = r->end;
    if (line == NULL) {
        line = memchr(r->at, '\n', (size_t)(r->end - r->at));
        line = line != NULL ? line + 1 : r->end;
    }
    const char *start = line;
    r->jump = r->end;
    while (line < r->end) {
        const char *end = memchr(line, '\n', (size_t)(r->end - line));
        if (end == NULL) end = r->end;
        const char *next = end < r->end ? end + 1 : r->end;
        if (is_delimiter(line, end, tabs, dl_text_string(&delimiter))) {
            stop = line;
            r->jump = next;
            break;
        }
        line = next;
    }
    if (live && quoted) c->input = dl_arena_strndup(r->shell->arena, start, (size_t)(stop - start));
    if (live && !quoted) DL_TRY(dl_shell_expand_text(r, start, stop, true, &c->input));
    return DL_OK;
}

/* "<", ">", ">>", "&>", "2>&1", "<<EOF", "<<<word" at r->at. */
static enum dl_code redirect(struct dl_shell_reader *r, bool live, struct simple *c) {
    const char *from = r->at, *word;
    while (r->at < r->end && strchr("<>&|", *r->at) != NULL && r->at - from < 3) r->at++;
    const size_t length = (size_t)(r->at - from);
    if (length >= 2 && strncmp(from, "<<", 2) == 0 && !(length == 3 && from[2] == '<')) {
        r->at = from + 2;
        return here_document(r, live, c);
    }
    dl_shell_skip(r, false);
    from = r->at;
    if (r->at < r->end && *r->at == '(') { /* process substitution */
        r->at--;
        DL_TRY(dl_shell_skip_dollar(r));
        return DL_OK;
    }
    DL_TRY(dl_shell_skip_word(r));
    if (!live) return DL_OK;
    DL_TRY(dl_shell_expand_text(r, from, r->at, false, &word));
    if (length == 3)
        c->input = word;
    else if (from[-1] == '>' || from[-2] == '>')
        c->target = word;
    return DL_OK;
}

/* "NAME=", "NAME+=", "NAME[KEY]=" at the start of [from, to): where the value begins. */
static const char *assignment(const char *from, const char *to, const char **name_end) {
    const char *at = from;
    while (at < to && dl_shell_is_name(*at, at == from)) at++;
    *name_end = at;
    if (at == from) return NULL;
    if (at < to && *at == '[') {
        while (at < to && *at != ']') at++;
        if (at < to) at++;
    }
    if (at < to && *at == '+') at++;
    return at < to && *at == '=' ? at + 1 : NULL;
}

/* NAME=( ... ): its words may expand what it was before. */
static enum dl_code assign_array(struct dl_shell_reader *r, const char *name, const char *from,
                                 const char *to, bool append) {
    struct dl_shell *s = r->shell;
    struct dl_shell_reader inside = *r;
    struct dl_shell_list values = {NULL, 0}, keys = {NULL, 0};
    inside.at = from + 1;
    inside.end = to - 1;
    for (dl_shell_skip(&inside, true); inside.at < inside.end; dl_shell_skip(&inside, true)) {
        const char *word = inside.at, *close, *key = NULL;
        DL_TRY(dl_shell_skip_word(&inside));
        if (inside.at == word) return dl_shell_fail(&inside, "expected words of an array");
        close = *word == '[' ? memchr(word, ']', (size_t)(inside.at - word)) : NULL;
        if (close != NULL && close + 1 < inside.at && close[1] == '=') {
            const char *value;
            DL_TRY(dl_shell_expand_text(r, word + 1, close, false, &key));
            DL_TRY(dl_shell_expand_text(r, close + 2, inside.at, false, &value));
            dl_shell_push(s->arena, &values, value);
        } else {
            DL_TRY(dl_shell_expand(r, word, inside.at, true, &values));
        }
        while (keys.count < values.count) dl_shell_push(s->arena, &keys, key);
    }
    if (!append) dl_shell_clear(s, name);
    const struct dl_shell_variable *v = dl_shell_find(s, name);
    int next = v != NULL ? v->keys.count : 0;
    for (int i = 0; i < values.count; i++) {
        const char *key =
            keys.texts[i] != NULL ? keys.texts[i] : dl_arena_printf(s->arena, "%d", next++);
        dl_shell_assign(s, name, key, values.texts[i], false);
    }
    return DL_OK;
}

static enum dl_code assign(struct dl_shell_reader *r, const char *from, const char *name_end,
                           const char *value, const char *to) {
    struct dl_shell *s = r->shell;
    const char *name = dl_arena_strndup(s->arena, from, (size_t)(name_end - from)), *text;
    const bool append = value[-2] == '+';
    const char *key = "0";
    if (value < to && *value == '(' && to[-1] == ')')
        return assign_array(r, name, value, to, append);
    if (*name_end == '[') {
        const char *close = value - (append ? 3 : 2);
        DL_TRY(dl_shell_expand_text(r, name_end + 1, close, false, &key));
    }
    DL_TRY(dl_shell_expand_text(r, value, to, false, &text));
    if (*name_end != '[' && !append) dl_shell_clear(s, name);
    dl_shell_assign(s, name, key, text, append);
    return DL_OK;
}

static bool is_declaration(const struct dl_shell_list *words) {
    return words->count > 0 &&
           dl_has_word("export local declare readonly typeset", words->texts[0]);
}

static enum dl_code write_file(struct dl_shell_reader *r, const struct simple *c,
                               const char *text) {
    struct dl_shell *s = r->shell;
    if (strncmp(c->target, "/dev/", 5) == 0 || text[0] == '\0') return DL_OK;
    s->files = dl_arena_grow(s->arena, s->files, (size_t)s->file_count, sizeof *s->files);
    s->files[s->file_count++] = (struct dl_shell_file){.path = c->target, .text = text};
    return DL_OK;
}

/* Runs it with the output of what came before as input; the output goes to `out`. */
static enum dl_code finish(struct dl_shell_reader *r, struct simple *c, const char *input,
                           int line) {
    struct dl_text *outer = r->output;
    struct dl_text written = {.arena = r->shell->arena};
    bool *outer_known = r->output_known, known = true;
    if (c->words.count == 0) {
        r->status = DL_SHELL_TRUE;
        return DL_OK;
    }
    if (c->target != NULL) {
        r->output = &written;
        r->output_known = &known;
    }
    const enum dl_code code =
        dl_shell_dispatch(r, &c->words, c->input != NULL ? c->input : input, line);
    r->output = outer;
    r->output_known = outer_known;
    if (code == DL_OK && c->target != NULL && known)
        return write_file(r, c, dl_text_string(&written));
    return code;
}

/* NAME=<what to write here>...: nothing that runs, but what examples hold. */
static bool take_placeholder(struct dl_shell_reader *r) {
    const char *at = r->at;
    if (at >= r->end || *at != '<' || (at + 1 < r->end && strchr("<( ", at[1]) != NULL))
        return false;
    while (at < r->end && *at != '>' && *at != '\n') at++;
    if (at >= r->end || *at != '>') return false;
    while (at < r->end && strchr(" \t\r\n;", *at) == NULL) at++;
    r->at = at;
    return true;
}

/* "NAME ()" in front of a function's body; its text: [from, r->at). */
static bool take_function(struct dl_shell_reader *r, const char *from) {
    struct dl_shell_reader next = *r;
    const char *name_end;
    dl_shell_skip(&next, false);
    if (next.at >= r->end || *next.at != '(' || assignment(from, r->at, &name_end) != NULL)
        return false;
    const char *close = memchr(next.at, ')', (size_t)(r->end - next.at));
    if (close == NULL) return false;
    r->at = close + 1;
    return true;
}

/* A digit that belongs to the redirection behind it. */
static bool is_descriptor(const struct dl_shell_reader *r, const char *from) {
    return r->at - from == 1 && *from >= '0' && *from <= '9' && r->at < r->end &&
           (*r->at == '<' || *r->at == '>');
}

/* Whether a command ends here. */
static bool at_end(const struct dl_shell_reader *r) {
    if (r->at >= r->end || strchr("\n;|)", *r->at) != NULL) return true;
    return *r->at == '&' && !(r->at + 1 < r->end && r->at[1] == '>');
}

/* An assignment or a word of a command, [from, r->at). */
static enum dl_code take_word(struct dl_shell_reader *r, bool live, const char *from, int *seen,
                              struct simple *c) {
    const char *to = r->at, *name_end, *value = assignment(from, to, &name_end);
    if (value == NULL || (*seen > 0 && !is_declaration(&c->words))) {
        ++*seen;
        return live ? dl_shell_expand(r, from, to, true, &c->words) : DL_OK;
    }
    const bool placeholder = value == to && take_placeholder(r);
    if (live && placeholder) dl_shell_unset(r->shell, from, name_end);
    return live && !placeholder ? assign(r, from, name_end, value, to) : DL_OK;
}

enum dl_code dl_shell_run_simple(struct dl_shell_reader *r, bool live, const char *input) {
    struct simple c = {.input = NULL};
    struct dl_arena *arena = r->shell->arena;
    const int line = live ? dl_shell_line(r) : 0;
    int seen = 0;
    for (dl_shell_skip(r, false); !at_end(r); dl_shell_skip(r, false)) {
        const char *from = r->at;
        if (take_placeholder(r)) {
            if (live) dl_shell_push(arena, &c.words, dl_shell_mark(r->shell, "placeholder"));
            continue;
        }
        if (strchr("<>&", *r->at) != NULL) {
            DL_TRY(redirect(r, live, &c));
            continue;
        }
        DL_TRY(dl_shell_skip_word(r));
        if (r->at == from) return dl_shell_fail(r, "expected a command");
        const size_t length = (size_t)(r->at - from);
        if (seen == 0 && take_function(r, from))
            return dl_shell_define(r, dl_arena_strndup(arena, from, length), live);
        if (!is_descriptor(r, from)) DL_TRY(take_word(r, live, from, &seen, &c));
    }
    return live ? finish(r, &c, input, line) : DL_OK;
}
