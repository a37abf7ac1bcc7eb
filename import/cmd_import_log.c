/* cmd_import_log.c - `dlmodel import log`: a row of a table of runs for each log. */
#include <string.h>

#include "import/import.h"
#include "import/log.h"
#include "model/core/text.h"

enum { FILES = 64, COLUMNS = 128 };

/* Columns of all files, in the order in which they appear. */
static int columns_of(const struct dl_csv *files, int count, const char **out) {
    int columns = 0;
    for (int f = 0; f < count; f++) {
        for (int c = 0; c < files[f].column_count; c++) {
            int at = 0;
            while (at < columns && strcmp(out[at], files[f].header[c]) != 0) at++;
            if (at == columns && columns < COLUMNS) out[columns++] = files[f].header[c];
        }
    }
    return columns;
}

static void add_line(struct dl_text *text, const struct dl_csv *file, const char *const *columns,
                     int count) {
    for (int i = 0; i < count; i++) {
        const int c = file == NULL ? -1 : dl_csv_column(file, columns[i]);
        const char *cell = file == NULL ? columns[i] : c < 0 ? "" : file->rows[0][c];
        dl_text_add(text, i > 0 ? "," : NULL);
        dl_log_cell(text, cell);
    }
    dl_text_add(text, "\n");
}

/* Columns of a table of runs that no file holds. */
static void note_missing(struct dl_context *context, const struct dl_csv *file) {
    static const char *const needed[] = {"system", "framework", "workload", "nodes",
                                         "devices_per_node"};
    const char *missing = "";
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
        const int c = dl_csv_column(file, needed[i]);
        if (c >= 0 && file->rows[0][c][0] != '\0') continue;
        missing = dl_arena_printf(context->arena, "%s%s%s", missing, missing[0] != '\0' ? ", " : "",
                                  needed[i]);
    }
    if (missing[0] != '\0')
        context->note(context, "%s: the log does not say %s: options or --plan FILE do", file->name,
                      missing);
}

enum dl_code dl_import_log(struct dl_context *context, const struct dl_options *options,
                           const struct dl_import_asked *asked, struct dl_err *err) {
    struct dl_arena *arena = context->arena;
    const char *precision = dl_option_text(options, "precision"),
               *nodes = dl_option_text(options, "nodes");
    const char *devices = dl_option_text(options, "ranks");
    const struct dl_log_fill all[] = {{"system", asked->system, true},
                                      {"workload", asked->workload, true},
                                      {"framework", asked->framework, true},
                                      {"precision", precision, true},
                                      {"nodes", nodes, true},
                                      {"gpus", devices, true},
                                      {"batch_per_device", asked->batch, true}};
    struct dl_log_fill fills[8];
    struct dl_csv *files = dl_arena_alloc(arena, FILES, sizeof *files);
    struct dl_text text = {.arena = arena};
    const char *columns[COLUMNS] = {NULL};
    int fill_count = 0;
    DL_TRY(dl_import_files(options, FILES, err));
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i].value != NULL) fills[fill_count++] = all[i];
    const int count = options->positional_count - 1;
    for (int i = 0; i < count; i++) {
        const char *path = options->positional[1 + i], *csv;
        DL_TRY(dl_log_table(context, path, asked->plan, fills, fill_count, &csv, err));
        if (csv == NULL)
            return dl_fail_at(err, path, 1, 1, NULL, "no log of a training whose format is known");
        DL_TRY(dl_csv_parse(path, csv, strlen(csv), arena, &files[i], err));
        note_missing(context, &files[i]);
    }
    const int column_count = columns_of(files, count, columns);
    add_line(&text, NULL, columns, column_count);
    for (int i = 0; i < count; i++) add_line(&text, &files[i], columns, column_count);
    return context->output(options, dl_text_string(&text), err);
}
