/* shell_command.c - one expanded command: built-ins of the shell, filters whose output follows from
 * their input, programs that run a script, and the rest, which is recorded. */
#include <stdlib.h>
#include <string.h>

#include "import/run/shell_internal.h"

enum { MAX_COMMANDS = 4096, MAX_FUNCTIONS = 4096 };

static void say(struct dl_shell_reader *r, const char *text) {
    if (r->output != NULL) dl_text_add(r->output, text);
}

/* A program whose output is not known. */
static void say_unknown(struct dl_shell_reader *r, const char *program) {
    if (r->output == NULL) return;
    dl_text_printf(r->output, "%c%c%.60s%c", DL_SHELL_OPEN, DL_SHELL_PROGRAM, program,
                   DL_SHELL_CLOSE);
    *r->output_known = false;
}

static void record(struct dl_shell_reader *r, const struct dl_shell_list *words, int line) {
    struct dl_shell *s = r->shell;
    r->status = DL_SHELL_OPEN_QUESTION;
    say_unknown(r, words->texts[0]);
    if (s->command_count >= MAX_COMMANDS) return;
    s->commands =
        dl_arena_grow(s->arena, s->commands, (size_t)s->command_count, sizeof *s->commands);
    s->commands[s->command_count++] =
        (struct dl_shell_command){.words = *words, .path = r->path, .line = line};
}

static const char *joined(struct dl_arena *arena, const struct dl_shell_list *words, int from) {
    struct dl_text text = {.arena = arena};
    for (int i = from; i < words->count; i++)
        dl_text_printf(&text, "%s%s", i > from ? " " : "", words->texts[i]);
    return dl_text_string(&text);
}

static struct dl_shell_list from_word(const struct dl_shell_list *words, int from) {
    return (struct dl_shell_list){words->texts + from, words->count - from};
}

/* ---- built-ins ---- */

/* NAME=VALUE words of export, local and so on. */
static enum dl_code builtin_declare(struct dl_shell_reader *r, struct dl_shell_list *words) {
    for (int i = 1; i < words->count; i++) {
        const char *word = words->texts[i], *equals = strchr(word, '=');
        if (word[0] == '-' || equals == NULL || equals == word) continue;
        const bool append = equals[-1] == '+';
        const size_t length = (size_t)(equals - word) - append;
        const char *name = dl_arena_strndup(r->shell->arena, word, length);
        if (append)
            dl_shell_assign(r->shell, name, "0", equals + 1, true);
        else
            dl_shell_set(r->shell, name, equals + 1);
    }
    return DL_OK;
}

static enum dl_code builtin_echo(struct dl_shell_reader *r, struct dl_shell_list *words) {
    int from = 1;
    while (from < words->count && words->texts[from][0] == '-' &&
           strspn(words->texts[from] + 1, "neE") == strlen(words->texts[from] + 1))
        from++;
    say(r, joined(r->shell->arena, words, from));
    say(r, "\n");
    return DL_OK;
}

static enum dl_code builtin_eval(struct dl_shell_reader *r, struct dl_shell_list *words) {
    const char *text = joined(r->shell->arena, words, 1);
    return dl_shell_run_text(r, r->path, text, strlen(text), NULL);
}

/* The text of a file: what the script wrote to it, or what can be read. */
static const char *text_of_file(struct dl_shell *s, const char *name, size_t *length) {
    for (int i = s->file_count - 1; i >= 0; i--) {
        if (strcmp(s->files[i].path, name) != 0) continue;
        *length = strlen(s->files[i].text);
        return s->files[i].text;
    }
    return s->read != NULL ? s->read(s->data, name, length) : NULL;
}

/* "source FILE" and the script that a launcher is given, where the file can be read. */
static enum dl_code include(struct dl_shell_reader *r, const struct dl_shell_list *words) {
    struct dl_shell *s = r->shell;
    size_t length = 0;
    if (words->count == 0) return DL_OK;
    const char *text = s->depth < 20 ? text_of_file(s, words->texts[0], &length) : NULL;
    r->status = DL_SHELL_OPEN_QUESTION;
    if (text == NULL) {
        dl_shell_push(s->arena, &s->missing, words->texts[0]);
        return DL_OK;
    }
    const struct dl_shell_list arguments = from_word(words, 1);
    return dl_shell_run_text(r, dl_arena_strdup(s->arena, dl_base_name(words->texts[0])), text,
                             length, arguments.count > 0 ? &arguments : NULL);
}

static enum dl_code builtin_source(struct dl_shell_reader *r, struct dl_shell_list *words) {
    const struct dl_shell_list rest = from_word(words, 1);
    return include(r, &rest);
}

static enum dl_code builtin_set(struct dl_shell_reader *r, struct dl_shell_list *words) {
    for (int i = 1; i < words->count; i++) {
        if (strcmp(words->texts[i], "--") != 0) continue;
        const struct dl_shell_list rest = from_word(words, i + 1);
        dl_shell_arguments(r->shell, &rest);
        return DL_OK;
    }
    return DL_OK;
}

static enum dl_code builtin_shift(struct dl_shell_reader *r, struct dl_shell_list *words) {
    struct dl_shell *s = r->shell;
    const struct dl_shell_variable *v = dl_shell_find(s, "@");
    const int by = words->count > 1 ? atoi(words->texts[1]) : 1;
    struct dl_shell_list rest = {NULL, 0};
    for (int i = 0; v != NULL && i < v->values.count; i++) {
        dl_shell_clear(s, dl_arena_printf(s->arena, "%d", i + 1));
        v = dl_shell_find(s, "@");
        if (i >= by) dl_shell_push(s->arena, &rest, v->values.texts[i]);
    }
    dl_shell_arguments(s, &rest);
    return DL_OK;
}

static enum dl_code builtin_test(struct dl_shell_reader *r, struct dl_shell_list *words) {
    const bool bracket = strcmp(words->texts[0], "[") == 0;
    r->status = dl_shell_test(r->shell, words->texts + 1, words->count - 1 - bracket);
    return DL_OK;
}

static enum dl_code builtin_stop(struct dl_shell_reader *r, struct dl_shell_list *words) {
    r->stopped = words->texts[0][0] == 'c'   ? DL_SHELL_CONTINUE
                 : words->texts[0][0] == 'b' ? DL_SHELL_BREAK
                                             : DL_SHELL_EXIT;
    return DL_OK;
}

static enum dl_code builtin_nothing(struct dl_shell_reader *r, struct dl_shell_list *words) {
    if (strcmp(words->texts[0], "false") == 0) r->status = DL_SHELL_FALSE;
    return DL_OK;
}

static enum dl_code builtin_unset(struct dl_shell_reader *r, struct dl_shell_list *words) {
    for (int i = 1; i < words->count; i++)
        if (words->texts[i][0] != '-') dl_shell_clear(r->shell, words->texts[i]);
    return DL_OK;
}

static enum dl_code builtin_path(struct dl_shell_reader *r, struct dl_shell_list *words) {
    const char *word = words->count > 1 ? words->texts[words->count - 1] : "";
    const char *slash = strrchr(word, '/');
    if (strcmp(words->texts[0], "pwd") == 0)
        say(r, ".");
    else if (strcmp(words->texts[0], "basename") == 0)
        say(r, dl_base_name(word));
    else if (strcmp(words->texts[0], "dirname") != 0)
        say(r, word); /* realpath, readlink */
    else
        say(r,
            slash == NULL ? "." : dl_arena_strndup(r->shell->arena, word, (size_t)(slash - word)));
    return DL_OK;
}

static enum dl_code builtin_expr(struct dl_shell_reader *r, struct dl_shell_list *words) {
    say(r, dl_shell_arithmetic(r->shell, joined(r->shell->arena, words, 1), false));
    return DL_OK;
}

static const struct builtin {
    const char *names;
    enum dl_code (*run)(struct dl_shell_reader *r, struct dl_shell_list *words);
} builtins[] = {
    {"export local readonly declare typeset", builtin_declare},
    {"echo printf", builtin_echo},
    {"eval", builtin_eval},
    {"source .", builtin_source},
    {"set", builtin_set},
    {"shift", builtin_shift},
    {"[ test", builtin_test},
    {"exit return break continue", builtin_stop},
    {": true false cd pushd popd trap ulimit umask shopt wait sleep mkdir rm cp mv chmod touch ln "
     "module conda hash type alias let",
     builtin_nothing},
    {"unset", builtin_unset},
    {"pwd dirname basename realpath readlink", builtin_path},
    {"expr", builtin_expr},
    {NULL, NULL},
};

/* ---- filters ---- */

/* sed s/A/B/ of plain texts */
static const char *substituted(struct dl_arena *arena, const char *input, const char *script) {
    const char mark = script[0] == 's' ? script[1] : '\0';
    const char *from = script + 2, *to = mark != '\0' ? strchr(from, mark) : NULL,
               *end = to != NULL ? strchr(to + 1, mark) : NULL;
    struct dl_text out = {.arena = arena};
    if (end == NULL || to == from) return NULL;
    const size_t length = (size_t)(to - from);
    while (*input != '\0') {
        if (strncmp(input, from, length) == 0) {
            dl_text_add_bytes(&out, to + 1, (size_t)(end - to - 1));
            input += length;
        } else {
            dl_text_add_bytes(&out, input++, 1);
        }
    }
    return dl_text_string(&out);
}

/* Whether the command is a filter with a known output. */
static bool filter(struct dl_shell_reader *r, const struct dl_shell_list *words,
                   const char *input) {
    struct dl_shell *s = r->shell;
    const char *program = words->texts[0], *last = words->texts[words->count - 1];
    size_t length;
    if (strcmp(program, "bc") == 0 && input != NULL) {
        const char *scale = strrchr(input, ';');
        char *line = dl_arena_strdup(s->arena, scale != NULL ? scale + 1 : input);
        line[strcspn(line, "\n")] = '\0';
        const bool fractions = scale != NULL || (words->count > 1 && strstr(last, "-l") != NULL);
        say(r, dl_shell_arithmetic(s, line, fractions));
        return true;
    }
    if (input == NULL && words->count > 1 && s->read != NULL && dl_has_word("sed cat", program))
        input = s->read(s->data, last, &length);
    if (input == NULL) return false;
    if (strcmp(program, "sed") == 0 && words->count > 1)
        input = substituted(s->arena, input, words->texts[1]);
    if (input == NULL || !dl_has_word("sed cat tee", program)) return false;
    say(r, input);
    return true;
}

/* ---- programs that start another ---- */

static bool is_shell(const char *word) { return dl_has_word("bash sh zsh", dl_base_name(word)); }

/* Where a shell or a script of one stands among the words; their count: nowhere; -1: behind a
 * program of Python. */
static int shell_at(const struct dl_shell_list *words) {
    for (int i = 0; i < words->count; i++) {
        const char *word = words->texts[i];
        if (dl_ends_in(word, ".py")) return -1;
        if (is_shell(word) || dl_ends_in(word, ".sh") || dl_ends_in(word, ".sbatch")) return i;
    }
    return words->count;
}

static void put_before(struct dl_shell *s, struct dl_shell_command *command,
                       const struct dl_shell_list *prefix, int line) {
    struct dl_shell_list all = {NULL, 0};
    for (int k = 0; k < prefix->count; k++) dl_shell_push(s->arena, &all, prefix->texts[k]);
    for (int k = 0; k < command->words.count; k++)
        dl_shell_push(s->arena, &all, command->words.texts[k]);
    command->words = all;
    command->line = line;
}

/* "... bash -c TEXT", "... bash FILE", "sbatch FILE", "srun FILE.sh": the script with what stands
 * before it, which may say how many nodes there are. */
static enum dl_code launch(struct dl_shell_reader *r, const struct dl_shell_list *words,
                           const char *input, int line, bool *done) {
    struct dl_shell *s = r->shell;
    const int before = s->command_count;
    int at = shell_at(words);
    *done = false;
    const bool batch = strcmp(words->texts[0], "sbatch") == 0;
    if (at == words->count && !(batch && input != NULL)) return DL_OK;
    if (at < 0 || s->depth > 20) return DL_OK;
    const struct dl_shell_list prefix = {words->texts, at};
    if (at < words->count && is_shell(words->texts[at])) at++;
    while (at < words->count && words->texts[at][0] == '-' && !dl_ends_in(words->texts[at], "c"))
        at++;
    if (at == words->count && input == NULL) return DL_OK;
    *done = true;
    if (batch) dl_shell_batch(s, &prefix);
    const struct dl_shell_list rest = from_word(words, at);
    if (rest.count == 0)
        DL_TRY(dl_shell_run_text(r, r->path, input, strlen(input), NULL));
    else if (rest.texts[0][0] != '-')
        DL_TRY(include(r, &rest));
    else if (rest.count > 1)
        DL_TRY(dl_shell_run_text(r, r->path, rest.texts[1], strlen(rest.texts[1]), NULL));
    for (int i = before; i < s->command_count; i++) put_before(s, &s->commands[i], &prefix, line);
    return DL_OK;
}

enum dl_code dl_shell_dispatch(struct dl_shell_reader *r, struct dl_shell_list *words,
                               const char *input, int line) {
    struct dl_shell *s = r->shell;
    const char *name = words->texts[0];
    bool done;
    while (words->count > 1 && dl_has_word("exec command time nohup", name)) {
        *words = from_word(words, 1);
        name = words->texts[0];
    }
    r->status = DL_SHELL_TRUE;
    for (int i = 0; i < s->function_count; i++)
        if (strcmp(s->functions[i].name, name) == 0)
            return dl_shell_run_function(r, &s->functions[i], words);
    for (const struct builtin *b = builtins; b->names != NULL; b++)
        if (dl_has_word(b->names, name)) return b->run(r, words);
    if (filter(r, words, input)) return DL_OK;
    DL_TRY(launch(r, words, input, line, &done));
    if (!done) record(r, words, line);
    return DL_OK;
}
