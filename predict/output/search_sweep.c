/* search_sweep.c - each row becomes a command line of `search`, which runs with an output of its
 * own. What a row takes is freed with it, so that a sweep of any length needs the memory of its
 * result; inputs are loaded once. */
#include "predict/output/search_sweep.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/core/columns.h"
#include "model/core/figure.h"
#include "model/core/text.h"
#include "model/catalog/store.h"
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
static bool is_own(const char *name) {
    static const char *const own[] = {"sweep", "shard",   "format", "json", "csv",  "output",
                                      "quiet", "verbose", "color",  "data", "help", NULL};
    for (int i = 0; own[i] != NULL; i++) {
        if (strcmp(own[i], name) == 0) return true;
    }
    return false;
}

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
        if (is_own(g->option->name) || has(&given, g->option->name)) continue;
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

static void drop_note(const struct dl_context *context, const char *format, ...) {
    (void)context, (void)format;
}

bool dl_search_is_list(const struct dl_options *options) {
    const char *system = dl_option_text(options, "system"),
               *framework = dl_option_text(options, "framework");
    return (system != NULL && strchr(system, ',') != NULL) ||
           (framework != NULL && strchr(framework, ',') != NULL);
}

static enum dl_code search_row(const struct sweep *s, int row, struct dl_arena *arena,
                               const char **text, struct dl_err *err) {
    struct words w = {.arena = arena};
    struct dl_options *options = dl_arena_alloc(arena, 1, sizeof *options);
    struct dl_context context = *s->context;
    context.arena = arena;
    context.output = keep_output;
    context.output_part = NULL;
    context.note = drop_note;
    context.progress = false;
    words_of(s, row, &w);
    DL_TRY(dl_options_parse(s->options->tables, w.count, w.list, options, err));
    if (options->positional_count > 0 || dl_option_given(options, "sweep"))
        return dl_fail(err, DL_ERR_USAGE, "sweep: no option of search");
    if (dl_search_is_list(options))
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
        if (!known || is_own(name))
            return dl_fail_at(err, s->csv.name, 1, 1, s->csv.header[c],
                              "expected an option of search that takes a value");
    }
    return DL_OK;
}

/* Every count-th row from `index` on. */
static enum dl_code run_rows(struct sweep *s, int64_t index, int64_t count, struct dl_err *err) {
    struct dl_context *context = s->context;
    struct dl_store *own = context->data.store == NULL ? dl_store_open() : NULL;
    enum dl_code code = DL_OK;
    add_header(s);
    if (own != NULL) context->data.store = own;
    for (int row = (int)index; code == DL_OK && row < s->csv.row_count; row += (int)count) {
        code = take_row(s, row, err);
        if (code == DL_OK && context->watch != NULL &&
            context->watch(context->watch_user, (double)row / s->csv.row_count, 0) != 0)
            code = dl_fail(err, DL_ERR_CANCELLED, "stopped by the caller");
    }
    if (own != NULL) context->data.store = NULL;
    dl_store_close(own);
    return code;
}

static enum dl_code run_sweep(struct dl_context *context, const struct dl_options *options,
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

/* The best plan of one system and framework. */
struct best {
    const char *system, *framework, *precision, *plan, *bottleneck, *command, *why;
    double iteration_s, samples_per_s, memory_bytes;
    int64_t devices;
};
#define SHOWN(member, key, heading, unit, scale, digits)                                           \
    DL_SHOWN(struct best, member, key, heading, unit, scale, digits, 0, NULL)
static const struct dl_list_column best_columns[] = {
    SHOWN(system, "system", "system", "", 0, 0),
    SHOWN(framework, "framework", "framework", "", 0, 0),
    SHOWN(precision, "precision", "precision", "", 0, 0),
    SHOWN(devices, "devices", "devices", "", 0, 0),
    SHOWN(plan, "plan", "best plan", "", 0, 0),
    SHOWN(iteration_s, "iteration_s", "iteration", "s", 0, 3),
    SHOWN(samples_per_s, "throughput_samples_per_s", "samples/s", "", 0, 4),
    SHOWN(memory_bytes, "memory_bytes", "memory", "GiB", 1 << 30, 3),
    DL_HIDDEN(struct best, bottleneck, "bottleneck", NULL),
    DL_HIDDEN(struct best, command, "command", NULL),
    DL_HIDDEN(struct best, why, "why", NULL),
};

static const char *cell_of(const struct dl_csv *csv, int row, const char *column) {
    const int at = dl_csv_column(csv, column);
    return at < 0 ? "" : csv->rows[row][at];
}
static double number_of(const struct dl_csv *csv, int row, const char *column) {
    const char *text = cell_of(csv, row, column);
    return text[0] == 0 ? NAN : strtod(text, NULL);
}

/* What follows `option` in a command; "": nothing. */
static const char *word_of(const char *command, const char *option, struct dl_arena *arena) {
    const char *at = strstr(command, option);
    if (at == NULL) return "";
    at += strlen(option);
    return dl_arena_strndup(arena, at, strcspn(at, " "));
}

static struct best best_of(const struct dl_csv *csv, int row, struct dl_arena *arena) {
    const char *why = cell_of(csv, row, "why");
    struct best b = {.system = cell_of(csv, row, "sweep_system"),
                     .framework = cell_of(csv, row, "sweep_framework"),
                     .devices = DL_ABSENT,
                     .iteration_s = number_of(csv, row, "iteration_s"),
                     .samples_per_s = number_of(csv, row, "throughput_samples_per_s"),
                     .memory_bytes = number_of(csv, row, "memory_bytes")};
    if (why[0] != 0) {
        b.why = why;
        return b;
    }
    b.plan = cell_of(csv, row, "plan");
    b.bottleneck = cell_of(csv, row, "bottleneck");
    b.command = cell_of(csv, row, "command");
    b.devices = (int64_t)number_of(csv, row, "devices");
    b.system = word_of(b.command, "--system ", arena);
    b.framework = word_of(b.command, "--framework ", arena);
    b.precision = word_of(b.command, "--precision ", arena);
    return b;
}

/* The fastest first, then those without a plan. */
static int by_rate(const void *a, const void *b) {
    const struct best *x = a, *y = b;
    const double xs = isnan(x->samples_per_s) ? -1 : x->samples_per_s,
                 ys = isnan(y->samples_per_s) ? -1 : y->samples_per_s;
    return xs > ys ? -1 : xs < ys;
}

/* Each system with each framework, as a table of a sweep; "": as search chooses. */
static const char *each_text(const char *systems, const char *frameworks, struct dl_arena *arena) {
    struct dl_text text = {.arena = arena};
    dl_text_add(&text, "system,framework\n");
    for (const char *s = systems;; s += strcspn(s, ",") + 1) {
        const int length = (int)strcspn(s, ",");
        for (const char *f = frameworks;; f += strcspn(f, ",") + 1) {
            const int own = (int)strcspn(f, ",");
            dl_text_printf(&text, "%.*s,%.*s\n", length, s, own, f);
            if (f[own] == 0) break;
        }
        if (s[length] == 0) break;
    }
    return dl_text_string(&text);
}

static enum dl_code run_each(struct dl_context *context, const struct dl_options *options,
                             const struct dl_command *search, struct dl_err *err) {
    enum dl_format format = DL_FORMAT_TEXT;
    struct dl_arena *arena = context->arena;
    struct sweep s = {
        .context = context, .options = options, .search = search, .out = {.arena = arena}};
    const char *systems = dl_option_text(options, "system"),
               *frameworks = dl_option_text(options, "framework");
    const char *rows =
        each_text(systems != NULL ? systems : "", frameworks != NULL ? frameworks : "", arena);
    struct dl_csv found;
    struct dl_table table;
    DL_TRY(dl_output_format(options, &format, err));
    DL_TRY(dl_csv_parse("systems and frameworks", rows, strlen(rows), arena, &s.csv, err));
    DL_TRY(run_rows(&s, 0, 1, err));
    const char *text = dl_text_string(&s.out);
    DL_TRY(dl_csv_parse("plans", text, strlen(text), arena, &found, err));
    struct best *list = dl_arena_alloc(arena, (size_t)found.row_count, sizeof *list);
    for (int i = 0; i < found.row_count; i++) list[i] = best_of(&found, i, arena);
    qsort(list, (size_t)found.row_count, sizeof *list, by_rate);
    dl_list_table(&table, arena, DL_LIST(best_columns), 0);
    const bool people = format == DL_FORMAT_TEXT || format == DL_FORMAT_LATEX;
    for (int i = 0; i < found.row_count; i++)
        if (!people || list[i].why == NULL) dl_list_add(&table, best_columns, &list[i]);
    if (table.row_count == 0)
        return dl_fail(err, DL_ERR_NO, "no plan on any of them; %s with %s: %s", list[0].system,
                       list[0].framework, list[0].why);
    if (format != DL_FORMAT_TEXT)
        return context->output(options, dl_table_render(&table, format), err);
    struct dl_text out = {.arena = arena};
    dl_text_printf(&out, "Fastest: %s on %s: %s, %s samples/s.\n\n", list[0].framework,
                   list[0].system, list[0].plan, dl_figure_text(arena, list[0].samples_per_s, 4));
    dl_text_add(&out, dl_table_text(&table));
    for (int i = 0; i < found.row_count; i++)
        if (list[i].why != NULL)
            dl_text_printf(&out, "No plan: %s %s: %s\n", list[i].system, list[i].framework,
                           list[i].why);
    dl_text_printf(&out, "\nThe fastest: %s\n", list[0].command);
    return context->output(options, dl_text_string(&out), err);
}

enum dl_code dl_search_many(struct dl_context *context, const struct dl_options *options,
                            const struct dl_command *search, const char *path, struct dl_err *err) {
    return path != NULL ? run_sweep(context, options, search, path, err)
                        : run_each(context, options, search, err);
}
