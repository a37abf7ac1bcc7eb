/* search_sweep.c - each row becomes a command line of `search`, which runs with an output of its
 * own. What a row takes is freed with it, so that a sweep of any length needs the memory of its
 * result; inputs are loaded once. */
#include "predict/output/search_sweep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/core/text.h"
#include "predict/output/best_of_each.h"
#include "predict/output/search_rows.h"

enum dl_code dl_part_read(const char *text, int64_t *index, int64_t *count, struct dl_err *err) {
    long long i = 0, n = 1;
    char rest;
    if (text != NULL && (sscanf(text, "%lld/%lld%c", &i, &n, &rest) != 2 || n < 1 || i < 0 ||
                         i >= n || n > 1000000))
        return dl_fail(err, DL_ERR_USAGE, "--shard: expected I/N with 0 <= I < N, got \"%s\"",
                       text);
    *index = i;
    *count = n;
    return DL_OK;
}

struct sweep {
    struct dl_context *context;
    const struct dl_options *options;
    const struct dl_command *search;
    struct dl_csv csv;
    const char *header; /* of search --csv */
    int columns;        /* of it */
    struct dl_text out;
};

/* Not passed on: the sweep's own, and those of output. */
static const char own_options[] =
    "sweep shard format json csv output quiet verbose color data help";

/* A column's option, with dashes. */
static const char *option_of(const char *column, struct dl_arena *arena) {
    char *name = dl_arena_strdup(arena, column);
    for (char *c = name; c != NULL && *c != 0; c++) {
        if (*c == '_') *c = '-';
    }
    return name;
}

struct words {
    struct dl_arena *arena;
    char **list;
    int count;
};

static bool has(const struct words *w, const char *name) {
    for (int i = 0; i < w->count; i++) {
        const char *word = w->list[i] + 2;
        const size_t length = strcspn(word, "=");
        if (strlen(name) == length && strncmp(word, name, length) == 0) return true;
    }
    return false;
}

/* The row's command line: its cells, then the options of the sweep that it does not give. One plan
 * a row and one thread, unless these say otherwise: counts of what bounds exclude depend on the
 * number of threads. */
static void words_of(const struct sweep *s, int row, struct words *w) {
    const int most = s->csv.column_count + s->options->given_count + 3;
    w->list = dl_arena_alloc(w->arena, (size_t)most, sizeof *w->list);
    for (int c = 0; c < s->csv.column_count; c++) {
        const char *cell = s->csv.rows[row][c], *name = option_of(s->csv.header[c], w->arena);
        if (cell[0] != 0 && name != NULL)
            w->list[w->count++] = dl_arena_printf(w->arena, "--%s=%s", name, cell);
    }
    const int cells = w->count;
    for (int i = 0; i < s->options->given_count; i++) {
        const struct dl_given *g = &s->options->given[i];
        const struct words given = {w->arena, w->list, cells};
        if (dl_has_word(own_options, g->option->name) || has(&given, g->option->name)) continue;
        w->list[w->count++] = dl_arena_printf(w->arena, g->value == NULL ? "--%s" : "--%s=%s",
                                              g->option->name, g->value);
    }
    if (!has(w, "top")) w->list[w->count++] = dl_arena_strdup(w->arena, "--top=1");
    if (!has(w, "threads")) w->list[w->count++] = dl_arena_strdup(w->arena, "--threads=1");
    w->list[w->count++] = dl_arena_strdup(w->arena, "--csv");
}

static enum dl_code keep_output(const struct dl_options *options, const char *text,
                                struct dl_err *err) {
    (void)err;
    const char **out = options->owner;
    *out = text;
    return DL_OK;
}

static enum dl_code search_row(const struct sweep *s, int row, struct dl_arena *arena,
                               const char **text, struct dl_err *err) {
    struct words w = {.arena = arena};
    struct dl_options *options = dl_arena_alloc(arena, 1, sizeof *options);
    struct dl_context context = *s->context;
    context.arena = arena;
    context.output = keep_output;
    context.output_part = NULL;
    context.note = dl_drop_note;
    context.progress = false;
    words_of(s, row, &w);
    DL_TRY(dl_options_parse(s->options->tables, w.count, w.list, options, err));
    if (options->positional_count > 0 || dl_option_given(options, "sweep"))
        return dl_fail(err, DL_ERR_USAGE, "sweep: no option of search");
    if (dl_best_is_list(options, "system") || dl_best_is_list(options, "framework"))
        return dl_fail(err, DL_ERR_USAGE, "one system and one framework a row");
    options->owner = text;
    return s->search->run(&context, options, err);
}

static void add_cell(struct dl_text *out, const char *text) {
    if (text[strcspn(text, ",\"\r\n")] == 0) {
        dl_text_add(out, text);
        return;
    }
    dl_text_add(out, "\"");
    for (; *text != 0; text++) dl_text_printf(out, *text == '"' ? "\"\"" : "%c", *text);
    dl_text_add(out, "\"");
}

/* `row`, the cells and the reason; what follows is the line of the search, or as many empty
 * cells. */
static void add_line(struct sweep *s, int row, const char *why, const char *line, size_t length) {
    dl_text_printf(&s->out, "%d", row + 1);
    for (int c = 0; c < s->csv.column_count; c++) {
        dl_text_add(&s->out, ",");
        add_cell(&s->out, s->csv.rows[row][c]);
    }
    dl_text_add(&s->out, ",");
    add_cell(&s->out, why);
    dl_text_add(&s->out, ",");
    if (line != NULL) {
        dl_text_printf(&s->out, "%.*s\n", (int)length, line);
        return;
    }
    for (int c = 1; c < s->columns; c++) dl_text_add(&s->out, ",");
    dl_text_add(&s->out, "\n");
}

/* No cell of a search has a newline. */
static enum dl_code take_row(struct sweep *s, int row, struct dl_err *err) {
    struct dl_arena arena = {0};
    struct dl_err why = {.code = DL_OK};
    const char *text = NULL;
    const enum dl_code code = search_row(s, row, &arena, &text, &why);
    if (code == DL_OK && text != NULL) {
        for (const char *line = text + strcspn(text, "\n"); line[0] == '\n' && line[1] != 0;) {
            const size_t length = strcspn(line + 1, "\n");
            add_line(s, row, "", line + 1, length);
            line += 1 + length;
        }
    } else if (code == DL_ERR_NO || code == DL_ERR_USAGE) {
        add_line(s, row, why.message, NULL, 0);
    }
    dl_arena_free(&arena);
    if (code == DL_OK || code == DL_ERR_NO || code == DL_ERR_USAGE) return DL_OK;
    *err = why;
    return code;
}

static void add_header(struct sweep *s) {
    struct dl_table empty;
    dl_search_rows_init(&empty, s->context->arena, 0, NULL);
    s->header = dl_table_csv(&empty);
    s->columns = 1;
    for (const char *c = s->header; *c != 0; c++) s->columns += *c == ',';
    dl_text_add(&s->out, "row,");
    for (int c = 0; c < s->csv.column_count; c++) {
        dl_text_add(&s->out, "sweep_");
        add_cell(&s->out, s->csv.header[c]);
        dl_text_add(&s->out, ",");
    }
    dl_text_printf(&s->out, "why,%s", s->header);
}

/* Reports a column that is no option once, not as the reason of each row. */
static enum dl_code check_columns(const struct sweep *s, struct dl_err *err) {
    for (int c = 0; c < s->csv.column_count; c++) {
        const char *name = option_of(s->csv.header[c], s->context->arena);
        bool known = false;
        for (int t = 0; name != NULL && s->search->options[t] != NULL && !known; t++) {
            for (const struct dl_option *o = s->search->options[t]; o->name != NULL; o++)
                known = known || (strcmp(o->name, name) == 0 && o->argument != NULL);
        }
        if (!known || dl_has_word(own_options, name))
            return dl_fail_at(err, s->csv.name, 1, 1, s->csv.header[c],
                              "expected an option of search that takes a value");
    }
    return DL_OK;
}

/* Every count-th row from `index` on. */
static enum dl_code run_rows(struct sweep *s, int64_t index, int64_t count, struct dl_err *err) {
    struct dl_context *context = s->context;
    enum dl_code code = DL_OK;
    add_header(s);
    for (int row = (int)index; code == DL_OK && row < s->csv.row_count; row += (int)count) {
        code = take_row(s, row, err);
        if (code == DL_OK && context->watch != NULL &&
            context->watch(context->watch_user, (double)row / s->csv.row_count, 0) != 0)
            code = dl_fail(err, DL_ERR_CANCELLED, "stopped by the caller");
    }
    return code;
}

enum dl_code dl_search_sweep(struct dl_context *context, const struct dl_options *options,
                             const struct dl_command *search, const char *path,
                             struct dl_err *err) {
    struct sweep s = {
        .context = context, .options = options, .search = search, .out = {.arena = context->arena}};
    int64_t index, count;
    DL_TRY(dl_part_read(dl_option_text(options, "shard"), &index, &count, err));
    DL_TRY(dl_data_csv(&context->data, path, context->arena, &s.csv, err));
    DL_TRY(check_columns(&s, err));
    DL_TRY(run_rows(&s, index, count, err));
    return context->output(options, dl_text_string(&s.out), err);
}
