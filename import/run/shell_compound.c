/* shell_compound.c - if, case, for, while, groups and functions. */
#include <fnmatch.h>
#include <string.h>

#include "import/run/shell_internal.h"

enum { MAX_TURNS = 64 };

static bool mentions(const char *from, const char *to, const char *word) {
    const size_t length = strlen(word);
    for (; from + length <= to; from++)
        if (strncmp(from, word, length) == 0) return true;
    return false;
}

static void note_condition(struct dl_shell_reader *r, int line, bool taken) {
    struct dl_shell *s = r->shell;
    const char *text = dl_arena_printf(
        s->arena, "line %d of %s: the condition depends on the machine; taken as %s", line, r->path,
        taken ? "true" : "false");
    for (int i = 0; i < s->remarks.count; i++)
        if (strcmp(s->remarks.texts[i], text) == 0) return;
    dl_shell_push(s->arena, &s->remarks, text);
}

/* An open condition is false, unless then the script would end: its branches are looked at. */
static enum dl_code decide(struct dl_shell_reader *r, int line, bool *yes) {
    static const char *const ends[] = {"elif", "else", "fi", NULL};
    const struct dl_shell_reader here = *r;
    const char *then_end;
    DL_TRY(dl_shell_run_list(r, false, ends));
    then_end = r->at;
    bool else_ends = false,
         matters = mentions(here.at, then_end, "--") || mentions(here.at, then_end, "=");
    const bool then_ends = mentions(here.at, then_end, "exit");
    if (dl_shell_take(r, "else")) {
        const char *start = r->at;
        DL_TRY(dl_shell_run_list(r, false, ends));
        else_ends = mentions(start, r->at, "exit");
        matters = matters || mentions(start, r->at, "--");
    }
    *r = here;
    *yes = else_ends && !then_ends;
    if (matters && !then_ends && !else_ends) note_condition(r, line, *yes);
    return DL_OK;
}

enum dl_code dl_shell_run_if(struct dl_shell_reader *r, bool live) {
    static const char *const then[] = {"then", NULL};
    static const char *const ends[] = {"elif", "else", "fi", NULL};
    bool done = !live;
    do {
        const int line = dl_shell_line(r);
        bool yes = false;
        DL_TRY(dl_shell_run_list(r, !done, then));
        (void)dl_shell_take(r, "then");
        if (!done && !r->stopped) {
            yes = r->status == DL_SHELL_TRUE;
            if (r->status == DL_SHELL_OPEN_QUESTION) DL_TRY(decide(r, line, &yes));
        }
        DL_TRY(dl_shell_run_list(r, dl_shell_is_live(r, yes), ends));
        done = done || yes;
    } while (dl_shell_take(r, "elif"));
    if (dl_shell_take(r, "else")) DL_TRY(dl_shell_run_list(r, dl_shell_is_live(r, !done), ends));
    (void)dl_shell_take(r, "fi");
    r->status = DL_SHELL_TRUE;
    return DL_OK;
}

static enum dl_code case_matches(struct dl_shell_reader *r, const char *word, bool live,
                                 bool *out) {
    *out = false;
    dl_shell_skip(r, true);
    if (r->at < r->end && *r->at == '(') r->at++;
    while (r->at < r->end && *r->at != ')') {
        const char *from, *pattern;
        dl_shell_skip(r, false);
        from = r->at;
        DL_TRY(dl_shell_skip_word(r));
        if (live) {
            DL_TRY(dl_shell_expand_text(r, from, r->at, false, &pattern));
            *out = *out || fnmatch(pattern, word, 0) == 0;
        }
        dl_shell_skip(r, false);
        if (r->at < r->end && *r->at == '|')
            r->at++;
        else if (r->at < r->end && *r->at != ')')
            return dl_shell_fail(r, "expected ) of a case");
    }
    r->at += r->at < r->end;
    return DL_OK;
}

enum dl_code dl_shell_run_case(struct dl_shell_reader *r, bool live) {
    static const char *const ends[] = {";;", ";&", ";;&", "esac", NULL};
    const char *word = "", *from;
    bool done = !live, open = false;
    dl_shell_skip(r, false);
    from = r->at;
    DL_TRY(dl_shell_skip_word(r));
    if (live) DL_TRY(dl_shell_expand_text(r, from, r->at, false, &word));
    word = dl_shell_plain(r->shell->arena, word, &open);
    dl_shell_skip(r, true);
    if (!dl_shell_take(r, "in")) return dl_shell_fail(r, "expected in");
    for (;;) {
        bool yes;
        dl_shell_skip(r, true);
        if (r->at >= r->end || dl_shell_take(r, "esac")) break;
        DL_TRY(case_matches(r, word, !done, &yes));
        DL_TRY(dl_shell_run_list(r, dl_shell_is_live(r, yes && !done), ends));
        done = done || yes;
        while (r->at < r->end && (*r->at == ';' || *r->at == '&')) r->at++;
    }
    return DL_OK;
}

/* The body of a loop at r->at, once. */
static enum dl_code run_body(struct dl_shell_reader *r, bool live, bool *broken) {
    static const char *const done[] = {"done", NULL};
    DL_TRY(dl_shell_run_list(r, live, done));
    *broken = r->stopped == DL_SHELL_BREAK;
    if (r->stopped != DL_SHELL_EXIT) r->stopped = DL_SHELL_RUNS;
    return DL_OK;
}

/* "((A; B; C))": its turns are not counted, one is made. */
static void skip_counter(struct dl_shell_reader *r) {
    while (r->at < r->end && *r->at != '\n' && strncmp(r->at, "))", 2) != 0) r->at++;
    r->at += r->end - r->at > 1 ? 2 : r->end - r->at;
}

/* "NAME in WORDS" */
static enum dl_code loop_words(struct dl_shell_reader *r, bool live, const char **name,
                               struct dl_shell_list *values) {
    const char *from = r->at;
    DL_TRY(dl_shell_skip_word(r));
    *name = dl_arena_strndup(r->shell->arena, from, (size_t)(r->at - from));
    dl_shell_skip(r, false);
    if (!dl_shell_take(r, "in")) return DL_OK;
    for (dl_shell_skip(r, false); r->at < r->end && *r->at != '\n' && *r->at != ';';
         dl_shell_skip(r, false)) {
        from = r->at;
        DL_TRY(dl_shell_skip_word(r));
        if (r->at == from) return dl_shell_fail(r, "expected words and do");
        if (live) DL_TRY(dl_shell_expand(r, from, r->at, true, values));
    }
    return DL_OK;
}

enum dl_code dl_shell_run_for(struct dl_shell_reader *r, bool live) {
    struct dl_shell_list values = {NULL, 0};
    const char *name = "";
    bool broken = false;
    dl_shell_skip(r, false);
    if (r->end - r->at > 1 && *r->at == '(') {
        skip_counter(r);
        dl_shell_push(r->shell->arena, &values, "");
    } else {
        DL_TRY(loop_words(r, live, &name, &values));
    }
    dl_shell_skip(r, true);
    if (!dl_shell_take(r, "do")) return dl_shell_fail(r, "expected do");
    const struct dl_shell_reader body = *r;
    for (int i = 0; live && i < values.count && i < MAX_TURNS && !r->stopped && !broken; i++) {
        r->at = body.at;
        r->jump = body.jump;
        if (name[0] != '\0') dl_shell_set(r->shell, name, values.texts[i]);
        DL_TRY(run_body(r, true, &broken));
    }
    r->at = body.at;
    r->jump = body.jump;
    DL_TRY(run_body(r, false, &broken));
    (void)dl_shell_take(r, "done");
    return DL_OK;
}

enum dl_code dl_shell_run_while(struct dl_shell_reader *r, bool live, bool until) {
    static const char *const ends[] = {"do", NULL};
    const struct dl_shell_reader condition = *r;
    bool broken = false;
    for (int i = 0; live && i < MAX_TURNS && !r->stopped && !broken; i++) {
        r->at = condition.at;
        r->jump = condition.jump;
        DL_TRY(dl_shell_run_list(r, true, ends));
        if (r->status != (until ? DL_SHELL_FALSE : DL_SHELL_TRUE)) break;
        (void)dl_shell_take(r, "do");
        DL_TRY(run_body(r, true, &broken));
    }
    r->at = condition.at;
    r->jump = condition.jump;
    DL_TRY(dl_shell_run_list(r, false, ends));
    (void)dl_shell_take(r, "do");
    DL_TRY(run_body(r, false, &broken));
    (void)dl_shell_take(r, "done");
    r->status = DL_SHELL_TRUE;
    return DL_OK;
}

enum dl_code dl_shell_run_group(struct dl_shell_reader *r, bool live) {
    static const char *const brace[] = {"}", NULL}, *const none[] = {NULL};
    const bool subshell = *r->at++ == '(';
    const int stopped = r->stopped;
    DL_TRY(dl_shell_run_list(r, live, subshell ? none : brace));
    if (r->at >= r->end) return dl_shell_fail(r, "expected the end of a group");
    if (*r->at != (subshell ? ')' : '}')) return dl_shell_fail(r, "expected a command");
    r->at++;
    if (subshell) r->stopped = stopped;
    return DL_OK;
}

enum dl_code dl_shell_define(struct dl_shell_reader *r, const char *name, bool live) {
    struct dl_shell *s = r->shell;
    dl_shell_skip(r, true);
    if (r->at >= r->end || (*r->at != '{' && *r->at != '('))
        return dl_shell_fail(r, "expected { of a function");
    if (live) {
        s->functions =
            dl_arena_grow(s->arena, s->functions, (size_t)s->function_count, sizeof *s->functions);
        s->functions[s->function_count++] = (struct dl_shell_function){
            .name = name, .path = r->path, .text = r->text, .body = r->at, .end = r->end};
    }
    return dl_shell_run_group(r, false);
}
