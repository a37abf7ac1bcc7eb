/* command.c - options and headers that all commands share. */
#include "model/catalog/command.h"

#include "model/core/text.h"

#include <stdio.h>
#include <string.h>

#ifndef DLMODEL_VERSION
#define DLMODEL_VERSION "unknown"
#endif
#ifndef DLMODEL_COMMIT
#define DLMODEL_COMMIT "unknown"
#endif

const char dl_version_text[] = "dlmodel " DLMODEL_VERSION " (" DLMODEL_COMMIT ")";

void dl_drop_note(const struct dl_context *context, const char *format, ...) {
    (void)context, (void)format;
}

static const char *const format_names[] = {"table", "csv", "json", "latex", NULL};

const struct dl_option dl_output_options[] = {
    {"format", 0, "table|csv|json|latex", "Output",
     "format of the result; default table; latex: the table of predict, search, compare, match and "
     "advise as a tabular",
     NULL},
    {"json", 0, NULL, "Output", "same as --format json", NULL},
    {"csv", 0, NULL, "Output", "same as --format csv", NULL},
    {"output", 'o', "FILE", "Output",
     "write to FILE instead of stdout; FILE is replaced only when the result is complete", NULL},
    {"help", 'h', NULL, "Output", "print this text", NULL},
    {.name = NULL},
};

enum dl_code dl_command_find(const struct dl_command *const *commands, const char *name,
                             const struct dl_command **out, struct dl_err *err) {
    const char *names[32];
    char all[256] = "";
    int count = 0;
    for (int i = 0; commands[i] != NULL; i++) {
        if (strcmp(commands[i]->name, name) == 0) {
            *out = commands[i];
            return DL_OK;
        }
        if (count < 24) names[count++] = commands[i]->name;
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i > 0 ? ", " : "",
                 commands[i]->name);
    }
    names[count] = NULL;
    const char *near = dl_suggest(name, names);
    if (near != NULL)
        return dl_fail(err, DL_ERR_USAGE, "no command '%.60s'; did you mean '%s'?", name, near);
    return dl_fail(err, DL_ERR_USAGE, "no command '%.60s'; there are %s", name, all);
}

/* By name, not by row: calibrate and slurm describe these options in tables of their own. */
enum dl_code dl_output_format(const struct dl_options *options, enum dl_format *out,
                              struct dl_err *err) {
    int format = DL_FORMAT_TEXT;
    DL_TRY(dl_option_choice(options, "format", format_names, &format, err));
    const bool json = dl_option_given(options, "json"), csv = dl_option_given(options, "csv"),
               given = dl_option_given(options, "format");
    if ((json && csv) ||
        (given && ((json && format != DL_FORMAT_JSON) || (csv && format != DL_FORMAT_CSV)))) {
        return dl_fail(err, DL_ERR_USAGE,
                       "--format, --json and --csv contradict each other; give one");
    }
    *out = json ? DL_FORMAT_JSON : csv ? DL_FORMAT_CSV : (enum dl_format)format;
    return DL_OK;
}

enum dl_code dl_output_part(const struct dl_context *context, const struct dl_options *options,
                            struct dl_text *held, const char *text, bool last, struct dl_err *err) {
    if (context->output_part != NULL) return context->output_part(options, text, last, err);
    dl_text_add(held, text);
    return last ? context->output(options, dl_text_string(held), err) : DL_OK;
}

void dl_output_header(struct dl_json_writer *writer, const char *format) {
    dl_jw_object(writer, NULL);
    dl_jw_string(writer, "format", format);
    dl_jw_integer(writer, "version", 1);
    dl_jw_object(writer, "dlmodel");
    dl_jw_string(writer, "version", DLMODEL_VERSION);
    dl_jw_string(writer, "commit", DLMODEL_COMMIT);
    dl_jw_end(writer);
}

enum dl_code dl_output_table(const struct dl_context *context, const struct dl_options *options,
                             const struct dl_table *table, const char *format, const char *list,
                             struct dl_err *err) {
    enum dl_format form = DL_FORMAT_TEXT;
    DL_TRY(dl_output_format(options, &form, err));
    if (form != DL_FORMAT_JSON) return context->output(options, dl_table_render(table, form), err);
    struct dl_json_writer w;
    dl_jw_init(&w, context->arena, false);
    dl_output_header(&w, format);
    dl_jw_array(&w, list);
    dl_table_json(table, &w);
    return context->output(options, dl_jw_text(&w), err);
}
