/* run_print.c - the command line and JSON of an imported run, and what of its file stands for what:
 * taken, costs no time, would change the prediction and is not modelled. */
#include "import/run/imported_run.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "model/core/text.h"

static void put(struct dl_plan_words *w, const char *option, const char *value) {
    if (w->option_count == DL_PLAN_WORDS) return; /* more than predict has */
    w->options[w->option_count].option = option;
    w->options[w->option_count++].value = value;
}

void dl_plan_words_flag(struct dl_plan_words *w, const char *option) { put(w, option, NULL); }

void dl_plan_words_add(struct dl_plan_words *w, const char *option, const char *format, ...) {
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    put(w, option, dl_arena_strdup(w->arena, text));
}

static const char *command_of(const struct dl_plan_words *w) {
    struct dl_arena *arena = w->arena;
    struct dl_text line = {.arena = arena};
    dl_text_add(&line, "dlmodel predict");
    if (w->system != NULL) dl_text_printf(&line, " --system %s", dl_shell_word(arena, w->system));
    dl_text_printf(&line, " --workload %s --framework %s",
                   dl_shell_word(arena, dl_text_string(w->workload)),
                   dl_shell_word(arena, w->framework));
    for (int i = 0; i < w->option_count; i++) {
        dl_text_printf(&line, " --%s", w->options[i].option);
        if (w->options[i].value != NULL)
            dl_text_printf(&line, " %s", dl_shell_word(arena, w->options[i].value));
    }
    return dl_text_string(&line);
}

static void json_list(struct dl_json_writer *j, const char *name, const char *const *texts) {
    dl_jw_array(j, name);
    for (; *texts != NULL; texts++) dl_jw_string(j, NULL, *texts);
    dl_jw_end(j);
}

static const char *json_of(const struct dl_run *run, const struct dl_argument_lists *lists,
                           const char *command) {
    const struct dl_plan_words *w = run->out;
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
    json_list(&j, "taken", lists->taken);
    json_list(&j, "ignored", lists->costs_nothing);
    json_list(&j, "not_modelled", lists->not_modelled);
    json_list(&j, "unknown", lists->unknown);
    dl_jw_array(&j, "notes");
    for (int i = 0; i < run->arguments.remark_count; i++)
        dl_jw_string(&j, NULL, run->arguments.remarks[i]);
    dl_jw_end(&j);
    dl_jw_end(&j);
    return dl_arena_printf(w->arena, "%s\n", j.text);
}

/* "3 arguments cost no time: a, b, c"; of long lists the first ones. */
static void note_list(struct dl_context *context, const char *const *names, const char *one,
                      const char *many, int most) {
    struct dl_text text = {.arena = context->arena};
    int count = 0;
    for (; names[count] != NULL; count++)
        if (count < most) dl_text_printf(&text, "%s%s", count > 0 ? ", " : "", names[count]);
    if (count > most) dl_text_printf(&text, " and %d more (--json names all)", count - most);
    if (count > 0)
        context->note(context, "%d argument%s %s: %s", count, count > 1 ? "s" : "",
                      count > 1 ? many : one, dl_text_string(&text));
}

enum dl_code dl_run_print(struct dl_context *context, const struct dl_options *options,
                          const struct dl_run *run, const struct dl_argument_lists *lists,
                          struct dl_err *err) {
    enum dl_format format = DL_FORMAT_TEXT;
    DL_TRY(dl_output_format(options, &format, err));
    if (format == DL_FORMAT_CSV)
        return dl_fail(err, DL_ERR_USAGE, "import %s: prints a command line, or --json",
                       run->out->kind);
    const char *command = command_of(run->out);
    DL_TRY(context->output(options,
                           format == DL_FORMAT_JSON
                               ? json_of(run, lists, command)
                               : dl_arena_printf(context->arena, "%s\n", command),
                           err));
    for (int i = 0; i < run->arguments.remark_count; i++)
        context->note(context, "%s", run->arguments.remarks[i]);
    note_list(context, lists->taken, "is taken", "are taken", 60);
    note_list(context, lists->costs_nothing, "costs no time", "cost no time", 60);
    note_list(context, lists->not_modelled, "changes the prediction and is not modelled",
              "change the prediction and are not modelled", 200);
    note_list(context, lists->unknown, "is not known, and not modelled",
              "are not known, and not modelled", 60);
    return DL_OK;
}
