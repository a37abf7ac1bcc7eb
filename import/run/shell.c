/* shell.c - lists and pipelines of a shell script, and what else of it is a text; see shell.h. */
#include "import/run/shell.h"

#include <string.h>

#include "import/run/shell_internal.h"

enum { MAX_DEPTH = 60, MAX_STEPS = 50000 };

bool dl_shell_is_live(const struct dl_shell_reader *r, bool live) { return live && !r->stopped; }

/* Past the word if it is there. */
bool dl_shell_take(struct dl_shell_reader *r, const char *word) {
    const char *const words[] = {word, NULL};
    if (!dl_shell_at_word(r, words)) return false;
    r->at += strlen(word);
    return true;
}

/* ---- lists ---- */

/* (( ... )): true unless 0; assignments in it are not made. */
static enum dl_code run_arithmetic(struct dl_shell_reader *r, bool live) {
    const char *from = r->at + 2, *text;
    r->at--;
    DL_TRY(dl_shell_skip_dollar(r));
    if (!live) return DL_OK;
    DL_TRY(dl_shell_expand_text(r, from, r->at - 2, true, &text));
    text = dl_shell_arithmetic(r->shell, text, false);
    r->status = dl_shell_is_marked(text) ? DL_SHELL_OPEN_QUESTION
                : strcmp(text, "0") == 0 ? DL_SHELL_FALSE
                                         : DL_SHELL_TRUE;
    return DL_OK;
}

static enum dl_code run_command(struct dl_shell_reader *r, bool live, const char *input) {
    const char *from = r->at;
    if (r->shell->depth > MAX_DEPTH) return dl_shell_fail(r, "commands too deep");
    if (++r->shell->steps > MAX_STEPS)
        return dl_shell_fail(r, "more commands than a script of arguments has");
    if (dl_shell_take(r, "if")) return dl_shell_run_if(r, live);
    if (dl_shell_take(r, "case")) return dl_shell_run_case(r, live);
    if (dl_shell_take(r, "for") || dl_shell_take(r, "select")) return dl_shell_run_for(r, live);
    if (dl_shell_take(r, "while")) return dl_shell_run_while(r, live, false);
    if (dl_shell_take(r, "until")) return dl_shell_run_while(r, live, true);
    if (dl_shell_take(r, "[[")) {
        enum dl_shell_truth truth;
        DL_TRY(dl_shell_double_test(r, live, &truth));
        if (live) r->status = truth;
        return DL_OK;
    }
    if (dl_shell_take(r, "function")) {
        dl_shell_skip(r, false);
        from = r->at;
        DL_TRY(dl_shell_skip_word(r));
        const char *name = dl_arena_strndup(r->shell->arena, from, (size_t)(r->at - from));
        dl_shell_skip(r, false);
        if (r->end - r->at > 1 && *r->at == '(')
            r->at = memchr(r->at, ')', (size_t)(r->end - r->at));
        if (r->at == NULL) return dl_shell_fail(r, "expected ()");
        r->at += *r->at == ')';
        return dl_shell_define(r, name, live);
    }
    if (r->end - r->at > 1 && r->at[0] == '(' && r->at[1] == '(') return run_arithmetic(r, live);
    static const char *const brace[] = {"{", NULL};
    if (*r->at == '(' || dl_shell_at_word(r, brace)) return dl_shell_run_group(r, live);
    return dl_shell_run_simple(r, live, input);
}

static enum dl_code run_pipeline(struct dl_shell_reader *r, bool live) {
    struct dl_text *outer = r->output;
    bool *outer_known = r->output_known, negated = false, known = true;
    const char *input = NULL;
    enum dl_code code = DL_OK;
    dl_shell_skip(r, false);
    while (dl_shell_take(r, "!")) {
        negated = !negated;
        dl_shell_skip(r, false);
    }
    for (bool more = true; more && code == DL_OK;) {
        struct dl_text text = {.arena = r->shell->arena};
        known = true;
        if (dl_shell_is_live(r, live)) {
            r->output = &text;
            r->output_known = &known;
        }
        r->shell->depth++;
        code = run_command(r, dl_shell_is_live(r, live), input);
        r->shell->depth--;
        r->output = outer;
        r->output_known = outer_known;
        if (code == DL_OK) dl_shell_skip(r, false);
        more = code == DL_OK && r->at < r->end && *r->at == '|' &&
               !(r->at + 1 < r->end && r->at[1] == '|');
        input = dl_text_string(&text);
        if (more) {
            r->at += r->at + 1 < r->end && r->at[1] == '&' ? 2 : 1;
            dl_shell_skip(r, true);
        } else if (outer != NULL) {
            dl_text_add(outer, input);
            *outer_known = *outer_known && known;
        }
    }
    if (negated && dl_shell_is_live(r, live) && r->status != DL_SHELL_OPEN_QUESTION)
        r->status = r->status == DL_SHELL_TRUE ? DL_SHELL_FALSE : DL_SHELL_TRUE;
    return code;
}

enum dl_code dl_shell_run_list(struct dl_shell_reader *r, bool live, const char *const *ends) {
    for (;;) {
        dl_shell_skip(r, true);
        if (r->at >= r->end || *r->at == ')' || dl_shell_at_word(r, ends)) return DL_OK;
        const char *from = r->at;
        bool run = true;
        for (bool more = true; more;) {
            const enum dl_shell_truth before = r->status;
            DL_TRY(run_pipeline(r, dl_shell_is_live(r, live && run)));
            if (!run) r->status = before;
            dl_shell_skip(r, false);
            more = r->end - r->at > 1 && r->at[0] == r->at[1] && (*r->at == '&' || *r->at == '|');
            if (!more) break;
            run = (*r->at == '&') == (r->status != DL_SHELL_FALSE);
            r->at += 2;
            dl_shell_skip(r, true);
            if (r->at >= r->end) return DL_OK;
        }
        if (r->at < r->end && *r->at == '&') r->at++;
        if (r->at == from) return dl_shell_fail(r, "expected a command");
        if (dl_shell_at_word(r, ends)) return DL_OK;
    }
}

/* ---- texts ---- */

enum dl_code dl_shell_run_text(struct dl_shell_reader *outer, const char *path, const char *text,
                               size_t length, const struct dl_shell_list *arguments) {
    static const char *const none[] = {NULL};
    struct dl_shell *s = outer->shell;
    struct dl_shell_reader r = *outer;
    r.path = path;
    r.text = r.at = text;
    r.end = text + length;
    r.jump = r.counted = NULL;
    r.stopped = DL_SHELL_RUNS;
    if (s->depth > MAX_DEPTH / 2) return dl_shell_fail(outer, "scripts too deep");
    if (memchr(text, '\0', length) != NULL)
        return dl_shell_fail(&r, "a zero byte: this is no text");
    if (arguments != NULL) dl_shell_arguments(s, arguments);
    dl_shell_batch_lines(s, text, length);
    s->depth++;
    DL_TRY(dl_shell_run_list(&r, true, none));
    s->depth--;
    outer->status = r.status;
    return r.at < r.end ? dl_shell_fail(&r, "expected a command") : DL_OK;
}

enum dl_code dl_shell_run_function(struct dl_shell_reader *outer, const struct dl_shell_function *f,
                                   const struct dl_shell_list *words) {
    struct dl_shell *s = outer->shell;
    struct dl_shell_reader r = *outer;
    r.path = f->path;
    r.text = f->text;
    r.at = f->body;
    r.end = f->end;
    r.jump = r.counted = NULL;
    if (s->depth > MAX_DEPTH / 2) return dl_shell_fail(outer, "functions too deep");
    const struct dl_shell_list arguments = {words->texts + 1, words->count - 1};
    dl_shell_arguments(s, &arguments);
    s->depth++;
    DL_TRY(dl_shell_run_group(&r, true));
    s->depth--;
    outer->status = r.status;
    return DL_OK;
}

enum dl_code dl_shell_output_of(struct dl_shell_reader *r, const char *text, size_t length,
                                const char **out) {
    struct dl_text output = {.arena = r->shell->arena};
    struct dl_shell_reader inner = *r;
    bool known = true;
    inner.output = &output;
    inner.output_known = &known;
    if (length > 0 && *text == '<') { /* $(<file) */
        *out = dl_arena_printf(r->shell->arena, "%c%ccat%c", DL_SHELL_OPEN, DL_SHELL_PROGRAM,
                               DL_SHELL_CLOSE);
        return DL_OK;
    }
    const int commands = r->shell->command_count;
    DL_TRY(dl_shell_run_text(&inner, r->path, text, length, NULL));
    r->shell->command_count = commands; /* they ask something of the machine */
    char *plain = dl_arena_strdup(r->shell->arena, dl_text_string(&output));
    size_t size = strlen(plain);
    while (size > 0 && plain[size - 1] == '\n') plain[--size] = '\0';
    *out = plain;
    return DL_OK;
}

enum dl_code dl_shell_run(struct dl_shell *shell, const char *path, const char *text, size_t length,
                          struct dl_err *err) {
    struct dl_shell_reader r = {.shell = shell, .path = path, .err = err, .text = text, .at = text};
    const enum dl_code code = dl_shell_run_text(&r, path, text, length, NULL);
    if (code != DL_ERR_INPUT || shell->command_count == 0) return code;
    dl_shell_push(shell->arena, &shell->remarks,
                  dl_arena_printf(shell->arena, "line %d of %s: not read from there on: %s",
                                  err->line, path, err->message));
    return DL_OK;
}
