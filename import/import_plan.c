/* import_plan.c - the command line and JSON of an imported run; the commands import megatron, nemo
 * and torchtitan. */
#include "import/import_plan.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "model/core/file.h"
#include "model/core/text.h"
#include "import/toml.h"

enum { MOST_BYTES = 4 << 20 };

static void put(struct dl_plan_words *w, const char *option, const char *value) {
    if (w->option_count == DL_PLAN_WORDS) {
        w->failed = true;
        return;
    }
    w->options[w->option_count].option = option;
    w->options[w->option_count++].value = value;
}

void dl_plan_words_flag(struct dl_plan_words *w, const char *option) { put(w, option, NULL); }

void dl_plan_words_add(struct dl_plan_words *w, const char *option, const char *format, ...) {
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    const char *value =
        length >= 0 && length < (int)sizeof text ? dl_arena_strdup(w->arena, text) : NULL;
    w->failed = w->failed || value == NULL;
    put(w, option, value);
}

/* A word of a shell, quoted where necessary. */
static void add_word(struct dl_text *line, const char *word) {
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./%@";
    dl_text_add(line, " ");
    dl_text_add(line, word[0] != '\0' && word[strspn(word, plain)] == '\0'
                          ? word
                          : dl_shell_quote(line->arena, word));
}

static const char *command_of(const struct dl_plan_words *w) {
    struct dl_text line = {.arena = w->arena};
    dl_text_add(&line, "dlmodel predict");
    if (w->system != NULL) {
        dl_text_add(&line, " --system");
        add_word(&line, w->system);
    }
    dl_text_add(&line, " --workload");
    add_word(&line, dl_text_string(w->workload));
    dl_text_add(&line, " --framework");
    add_word(&line, w->framework);
    for (int i = 0; i < w->option_count; i++) {
        dl_text_printf(&line, " --%s", w->options[i].option);
        if (w->options[i].value != NULL) add_word(&line, w->options[i].value);
    }
    return dl_text_string(&line);
}

static const char *json_of(const struct dl_plan_words *w, const char *const *ignored,
                           const char *command) {
    struct dl_json_writer j;
    dl_jw_init(&j, w->arena, false);
    dl_output_header(&j, "dlmodel-plan");
    dl_jw_string(&j, "from", w->kind);
    dl_jw_string(&j, "file", w->path);
    dl_jw_string(&j, "system", w->system);
    dl_jw_string(&j, "workload", dl_text_string(w->workload));
    dl_jw_string(&j, "framework", w->framework);
    dl_jw_object(&j, "options");
    for (int i = 0; i < w->option_count; i++) {
        if (w->options[i].value != NULL)
            dl_jw_string(&j, w->options[i].option, w->options[i].value);
        else
            dl_jw_bool(&j, w->options[i].option, true);
    }
    dl_jw_end(&j);
    dl_jw_string(&j, "command", command);
    dl_jw_array(&j, "ignored");
    for (; *ignored != NULL; ignored++) dl_jw_string(&j, NULL, *ignored);
    dl_jw_end(&j);
    dl_jw_end(&j);
    return j.failed ? NULL : dl_arena_printf(w->arena, "%s\n", j.text);
}

enum dl_code dl_plan_words_print(struct dl_context *context, const struct dl_options *options,
                                 const struct dl_plan_words *w, const char *const *ignored,
                                 struct dl_err *err) {
    enum dl_format format = DL_FORMAT_TEXT;
    DL_TRY(dl_output_format(options, &format, err));
    if (format == DL_FORMAT_CSV)
        return dl_fail(err, DL_ERR_USAGE, "import %s: prints a command line, or --json", w->kind);
    const char *command = command_of(w);
    DL_TRY(context->output(options,
                           format == DL_FORMAT_JSON
                               ? json_of(w, ignored, command)
                               : dl_arena_printf(context->arena, "%s\n", command),
                           err));
    struct dl_text names = {.arena = context->arena};
    int count = 0;
    for (; ignored[count] != NULL; count++)
        dl_text_printf(&names, "%s%s", count > 0 ? ", " : "", ignored[count]);
    if (count > 0)
        context->note(context, "%d arguments have no part in a prediction: %s", count,
                      dl_text_string(&names));
    return DL_OK;
}

/* The first of the names that is a framework here. */
static const char *framework_of(struct dl_context *context, const struct dl_import_asked *asked,
                                const char *const *names) {
    struct dl_err ignored;
    const char *path;
    if (asked->framework != NULL) return asked->framework;
    for (; names[1] != NULL; names++) {
        if (dl_data_path(&context->data, DL_DATA_FRAMEWORK, names[0], context->arena, &path,
                         &ignored) == DL_OK)
            break;
    }
    return names[0];
}

static enum dl_code read_text(struct dl_context *context, const struct dl_options *options,
                              char **text, size_t *length, struct dl_err *err) {
    DL_TRY(dl_import_files(options, 1, err));
    return dl_data_read(&context->data, options->positional[1], MOST_BYTES, context->arena, text,
                        length, err);
}

static struct dl_plan_words begin(struct dl_context *context, const struct dl_options *options,
                                  const struct dl_import_asked *asked, struct dl_text *workload) {
    *workload = (struct dl_text){.arena = context->arena};
    return (struct dl_plan_words){.arena = context->arena,
                                  .kind = options->positional[0],
                                  .path = options->positional[1],
                                  .system = asked->system,
                                  .workload = workload};
}

/* Arguments that were not used. */
static const char *const *unused(const struct dl_arguments *a, struct dl_arena *arena) {
    const char **names = dl_arena_alloc(arena, (size_t)a->count + 1, sizeof *names);
    int count = 0;
    for (int i = 0; names != NULL && i < a->count; i++) {
        if (!a->all[i].used) names[count++] = a->all[i].name;
    }
    return names;
}

enum dl_code dl_import_megatron(struct dl_context *context, const struct dl_options *options,
                                const struct dl_import_asked *asked, struct dl_err *err) {
    static const char *const frameworks[] = {"megatron-core", "megatron", NULL};
    struct dl_arguments arguments;
    struct dl_text workload;
    char *text;
    size_t length;
    DL_TRY(read_text(context, options, &text, &length, err));
    struct dl_plan_words words = begin(context, options, asked, &workload);
    words.framework = framework_of(context, asked, frameworks);
    const bool nemo = strcmp(words.kind, "nemo") == 0;
    DL_TRY((nemo ? dl_arguments_yaml : dl_arguments_shell)(words.path, text, length, context->arena,
                                                           &arguments, err));
    DL_TRY(dl_megatron_plan(&arguments, asked->ranks, &words, err));
    const char *const *ignored = unused(&arguments, context->arena);
    return dl_plan_words_print(context, options, &words, ignored, err);
}

enum dl_code dl_import_torchtitan(struct dl_context *context, const struct dl_options *options,
                                  const struct dl_import_asked *asked, struct dl_err *err) {
    static const char *const frameworks[] = {"pytorch-fsdp2", "pytorch-fsdp", NULL};
    struct dl_toml toml;
    struct dl_text workload;
    const char *const *ignored;
    char *text;
    size_t length;
    DL_TRY(read_text(context, options, &text, &length, err));
    struct dl_plan_words words = begin(context, options, asked, &workload);
    words.framework = framework_of(context, asked, frameworks);
    DL_TRY(dl_toml_parse(words.path, text, length, context->arena, &toml, err));
    if (asked->workload != NULL) dl_text_add(&workload, asked->workload);
    DL_TRY(dl_torchtitan_plan(&toml, asked->ranks, &ignored, &words, err));
    return dl_plan_words_print(context, options, &words, ignored, err);
}
