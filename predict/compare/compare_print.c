/* compare_print.c - see compare_print.h. Rows are printed some at a time: a table of any length is
 * read again for their names, and never kept. */
#include "predict/compare/compare_print.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "model/core/figure.h"
#include "model/core/text.h"
#include "predict/compare/compare_cause.h"
#include "predict/compare/compare_counts.h"
#include "predict/compare/compare_markdown.h"
#include "predict/compare/compare_runs.h"
#include "predict/compare/compare_worst.h"
#include "predict/compare/constants.h"
#include "predict/compare/decisions.h"
#include "model/core/columns.h"
#include "predict/options/results.h"

/* What the columns of rows show. */
struct row_facts {
    struct dl_compared row;
    const char *prediction; /* with its interval, for people */
    double time_error_pct;
    int64_t number; /* among all rows, from 1 */
};
enum { LONG = 1 }; /* text shows the column with --long alone */
#define COLUMN(member, key, heading, unit, digits, show, help)                                     \
    DL_SHOWN(struct row_facts, member, key, heading, unit, 0, digits, show, help)
#define SHOWN(member, key, heading, unit, digits, help)                                            \
    COLUMN(member, key, heading, unit, digits, 0, help)
#define HIDDEN(member, key, help) DL_HIDDEN(struct row_facts, member, key, help)
static const struct dl_list_column columns[] = {
    HIDDEN(number, "shard_row", "number of the row in the whole table, with --shard"),
    SHOWN(row.id, "id", "id", "", 0, "name of the row, or file and line"),
    HIDDEN(row.source, "source", "where it was measured"),
    COLUMN(row.system, "system", "system", "", 0, LONG, "system"),
    COLUMN(row.framework, "framework", "framework", "", 0, LONG, "framework, or library"),
    SHOWN(row.workload, "workload", "workload", "", 0, "network, collective or kernel"),
    SHOWN(row.devices, "devices", "dev", "", 0, "devices in use"),
    HIDDEN(row.predicted, "predicted", "predicted value"),
    SHOWN(prediction, NULL, "predicted", "", 0, NULL),
    SHOWN(row.measured, "measured", "measured", "", 4, "measured value"),
    HIDDEN(row.low, "predicted_low", "low end of the 80 % interval"),
    HIDDEN(row.high, "predicted_high", "high end of the 80 % interval"),
    SHOWN(row.unit, "unit", "unit", "", 0, "unit of the values"),
    HIDDEN(row.error_pct, "error_pct", "predicted over measured value, minus 1"),
    SHOWN(time_error_pct, "time_error_pct", "error", "%", 3,
          "predicted over measured time, minus 1; positive: predicted too slow"),
    HIDDEN(row.bottleneck, "bottleneck", "bottleneck of the prediction"),
    SHOWN(row.measured_bottleneck, "measured_bottleneck", "bottleneck", "", 0,
          "bottleneck of the measured run"),
    HIDDEN(row.cause, "cause", "likely causes where it is slower than the interval"),
    HIDDEN(row.skipped, "skipped", "the row could not be predicted"),
    COLUMN(row.why, "why", "not predicted because", "", 0, LONG,
           "why the row could not be predicted"),
    HIDDEN(row.remark, "remark", "what was assumed"),
};
enum { COLUMNS = sizeof columns / sizeof columns[0] - 1 };
static const struct dl_list_column *const row_columns = columns + 1;
const struct dl_result dl_comparison_result = {"comparison", "rows", columns + 1, COLUMNS};
enum { LONGEST = 56 };

/* Shortens names of groups, such as publications, to their beginning. Never splits a character. */
static const char *brief(struct dl_arena *arena, const char *text) {
    int length = LONGEST;
    if (text == NULL || strlen(text) <= (size_t)LONGEST) return text;
    while (length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80) length--;
    return dl_arena_printf(arena, "%.*s...", length, text);
}

static struct row_facts facts_of(const struct dl_compared *row, int number) {
    return (struct row_facts){
        .row = *row, .time_error_pct = dl_compared_time_error_pct(row), .number = number};
}

/* Seconds below one as ms or us. */
static void scale_time(struct dl_compared *row) {
    const double time_s = dl_known(row->predicted) ? row->predicted : row->measured;
    if (row->unit == NULL || strcmp(row->unit, "s") != 0 || !(time_s < 1)) return;
    const double scale = time_s < 1e-3 ? 1e6 : 1e3;
    row->unit = time_s < 1e-3 ? "us" : "ms";
    row->predicted *= scale, row->measured *= scale, row->low *= scale, row->high *= scale;
}

/* The same for people: an interval in the cell of its value, no folder before a file's line. */
static struct row_facts text_facts_of(const struct dl_compared *compared, struct dl_arena *arena) {
    struct row_facts facts = facts_of(compared, 0);
    struct dl_compared *row = &facts.row;
    scale_time(row);
    if (row->id != NULL) row->id = dl_base_name(row->id);
    if (row->skipped || !dl_known(row->predicted)) return facts;
    const char *value = dl_figure_text(arena, row->predicted, 4);
    facts.prediction = dl_known(row->low) ? dl_arena_printf(arena, "%s (%s-%s)", value,
                                                            dl_figure_text(arena, row->low, 3),
                                                            dl_figure_text(arena, row->high, 3))
                                          : value;
    return facts;
}

/* The widths of rows with the common columns: within a page. */
static void narrow_rows(const struct dl_table *table, struct dl_table_layout *layout) {
    dl_table_narrow(table, layout, "workload", 8);
    dl_table_narrow(table, layout, "bottleneck", 11);
    dl_table_narrow(table, layout, "id", 12);
}

static void causes_json(struct dl_json_writer *w, const struct dl_causes *causes) {
    dl_jw_array(w, "causes");
    for (int i = 0; causes != NULL && i < causes->count; i++) {
        const struct dl_cause *cause = &causes->list[i];
        dl_jw_object(w, NULL);
        dl_jw_string(w, "cause", cause->name);
        dl_jw_number(w, "probability", cause->probability_frac);
        dl_jw_number(w, "factor", cause->factor);
        dl_jw_string(w, "bottleneck", cause->bottleneck);
        dl_jw_string(w, "evidence", cause->text);
        dl_jw_string(w, "test", cause->test);
        dl_jw_end(w);
    }
    dl_jw_end(w);
}

/* The precision and batch of a run that was predicted. */
static void run_json(struct dl_json_writer *w, const struct dl_compared *row) {
    if (row->evidence == NULL || row->skipped) return;
    const struct dl_run_row *run = &row->evidence->runs.rows[row->run];
    dl_jw_string(w, "precision", dl_precision_names[run->plan.precision]);
    dl_jw_number(w, "global_batch_samples", row->samples_per_iteration);
}

/* The row, its interval as a pair, and its causes. */
static void row_json(struct dl_json_writer *w, const struct row_facts *facts) {
    dl_jw_object(w, NULL);
    dl_list_json(w, row_columns, COLUMNS, facts);
    if (dl_known(facts->row.low)) {
        dl_jw_array(w, "interval");
        dl_jw_number(w, NULL, facts->row.low);
        dl_jw_number(w, NULL, facts->row.high);
        dl_jw_end(w);
    } else {
        dl_jw_string(w, "interval", NULL);
    }
    run_json(w, &facts->row);
    causes_json(w, facts->row.causes);
    dl_jw_end(w);
}

/* What is printed, and how. */
struct printer {
    struct dl_context *context;
    const struct dl_options *options;
    const struct dl_comparison *c;
    const struct dl_compare_tables *tables;
    enum dl_format format;
    struct dl_text held;
};

static enum dl_code put(struct printer *p, const char *text, bool last, struct dl_err *err) {
    return dl_output_part(p->context, p->options, &p->held, text, last, err);
}

/* ---- rows, some at a time ---- */

static bool all_columns(const struct printer *p) { return dl_option_given(p->options, "long"); }

enum shape { MEASURE, TEXT, CSV, JSON, PART, MARKDOWN };
enum { ROWS_AT_A_TIME = 1024 };
struct writer {
    struct printer *p;
    enum shape shape;
    int next;              /* row */
    struct dl_arena arena; /* of the rows not yet printed */
    const struct dl_list_column *columns;
    struct dl_table table;
    struct dl_text markdown;
    int held;  /* rows that are not printed yet */
    bool head; /* the heading is still to come */
    struct dl_table_layout layout;
    struct dl_json_writer *json;
};

static void begin_rows(struct writer *w) {
    dl_arena_free(&w->arena);
    w->columns = w->shape == PART ? columns : row_columns;
    dl_list_table(&w->table, &w->arena, w->columns, COLUMNS + (w->shape == PART ? 1 : 0),
                  all_columns(w->p) ? LONG : 0);
    w->held = 0;
    w->markdown = (struct dl_text){.arena = &w->arena};
}

static enum dl_code flush_rows(struct writer *w, struct dl_err *err) {
    struct printer *p = w->p;
    const bool head = w->head;
    w->head = false;
    switch (w->shape) {
    case MEASURE:
        dl_table_measure(&w->table, p->context->arena, &w->layout);
        if (!all_columns(p)) narrow_rows(&w->table, &w->layout);
        return DL_OK;
    case TEXT: return put(p, dl_table_text_part(&w->table, &w->layout, head), false, err);
    case CSV:
    case PART: return put(p, dl_table_csv_part(&w->table, head), false, err);
    case MARKDOWN:
        if (head) DL_TRY(put(p, dl_compare_markdown_head, false, err));
        return put(p, dl_text_string(&w->markdown), false, err);
    case JSON:
        DL_TRY(put(p, w->json->text, false, err));
        w->json->length = 0;
        w->json->text[0] = 0;
        return DL_OK;
    }
    return DL_OK;
}

static enum dl_code add_row(void *user, const char *id, struct dl_err *err) {
    struct writer *w = user;
    const int number = w->next++;
    struct dl_compared row = dl_comparison_row(w->p->c, number, &w->arena);
    if (w->shape == PART && row.elsewhere) return DL_OK;
    row.id = dl_arena_strdup(&w->arena, id); /* it lives until the next one is read */
    const struct row_facts facts = w->shape == MEASURE || w->shape == TEXT
                                       ? text_facts_of(&row, &w->arena)
                                       : facts_of(&row, number + 1);
    if (w->shape == MARKDOWN)
        dl_text_add(&w->markdown, dl_compare_markdown_row(&row, &w->arena));
    else if (w->shape == JSON)
        row_json(w->json, &facts);
    else
        dl_list_add(&w->table, w->columns, &facts);
    if (++w->held < ROWS_AT_A_TIME) return DL_OK;
    DL_TRY(flush_rows(w, err));
    begin_rows(w);
    return DL_OK;
}

/* All rows with their names, in the order of the files. */
static enum dl_code each_row(const struct printer *p,
                             enum dl_code (*visit)(void *user, const char *id, struct dl_err *err),
                             void *user, struct dl_err *err) {
    for (int t = 0; t < p->tables->count; t++) {
        const struct dl_compare_table *table = &p->tables->list[t];
        if (table->streamed) {
            DL_TRY(dl_run_cases_names(&table->cases, p->tables->filters, visit, user, err));
            continue;
        }
        for (int i = table->first_row; i < table->first_row + table->row_count; i++)
            DL_TRY(visit(user, dl_comparison_row(p->c, i, NULL).id, err));
    }
    return DL_OK;
}

static enum dl_code write_rows(struct writer *w, enum shape shape, struct dl_err *err) {
    w->shape = shape;
    w->next = 0;
    w->head = true;
    begin_rows(w);
    enum dl_code code = each_row(w->p, add_row, w, err);
    if (code == DL_OK && (w->head || w->held > 0)) code = flush_rows(w, err);
    dl_arena_free(&w->arena);
    return code;
}

/* ---- the results ---- */

static void fill_summary(struct dl_table *table, const struct dl_error_summary *list, int count,
                         bool people) {
    for (int i = 0; i < count; i++) {
        struct dl_error_summary s = list[i];
        if (people)
            s.group = strcmp(s.group, "all-by-source") == 0 ? "macro-average over sources"
                                                            : brief(table->arena, s.group);
        dl_compare_summary_row(table, &s);
    }
}

static void json_inputs(const struct printer *p, struct dl_json_writer *w) {
    const struct dl_options *options = p->options;
    dl_jw_object(w, "inputs");
    dl_jw_array(w, "files");
    for (int i = 0; i < options->positional_count; i++)
        dl_jw_string(w, NULL, options->positional[i]);
    dl_jw_end(w);
    dl_jw_array(w, "set");
    for (int i = 0; i < options->given_count; i++) {
        if (strcmp(options->given[i].option->name, "set") == 0)
            dl_jw_string(w, NULL, options->given[i].value);
    }
    dl_jw_end(w);
    struct dl_constants constants;
    struct dl_err absent;
    if (dl_constants_read(&p->context->data, p->context->arena, &constants, &absent) == DL_OK)
        dl_jw_string(w, "constants_hash",
                     dl_arena_printf(p->context->arena, "%016" PRIx64, constants.hash));
    dl_jw_bool(w, "anchor", dl_option_given(options, "anchor"));
    if (dl_option_given(options, "calibrated"))
        dl_jw_string(w, "calibrated", dl_option_text(options, "calibrated"));
    dl_jw_end(w);
}

static enum dl_code print_json(struct printer *p, const struct dl_table *summary,
                               const struct dl_decision_list *decisions, struct dl_err *err) {
    struct dl_json_writer w;
    struct writer rows = {.p = p, .json = &w};
    dl_jw_init(&w, p->context->arena, false);
    dl_output_header(&w, "dlmodel-comparison");
    json_inputs(p, &w);
    dl_jw_array(&w, "rows");
    DL_TRY(write_rows(&rows, JSON, err));
    dl_jw_end(&w);
    dl_jw_array(&w, "summary");
    dl_table_json(summary, &w);
    dl_jw_end(&w);
    dl_decisions_json(decisions, &w);
    return put(p, dl_jw_text(&w), true, err);
}

/* The rows with the largest errors as a table, "" when there are none; NULL when memory is
 * exhausted. */
static const char *worst_text(const struct printer *p, const struct dl_worst *worst) {
    struct dl_table table;
    struct dl_table_layout layout = {0};
    struct dl_arena *arena = p->context->arena;
    dl_list_table(&table, arena, row_columns, COLUMNS, 0);
    for (int i = 0; i < worst->count; i++) {
        const struct dl_compared row = dl_worst_row(p->c, &worst->list[i], arena);
        const struct row_facts facts = text_facts_of(&row, arena);
        dl_list_add(&table, row_columns, &facts);
    }
    if (worst->count == 0) return "";
    dl_table_measure(&table, arena, &layout);
    narrow_rows(&table, &layout);
    return dl_arena_printf(arena, "\nThe largest errors\n\n%s",
                           dl_table_text_part(&table, &layout, true));
}

/* Runs slower than their interval, the worst first, with the likely cause of each. */
static const char *causes_text(const struct printer *p, const struct dl_worst *slow) {
    struct dl_arena *arena = p->context->arena;
    struct dl_text text = {.arena = arena};
    if (slow->count > 0)
        dl_text_add(&text, "\nSlower than predicted, and why (probability of each cause)\n");
    for (int i = 0; i < slow->count; i++) {
        const struct dl_compared row = dl_worst_row(p->c, &slow->list[i], arena);
        dl_text_printf(&text, "  %s: %s\n", row.id, row.cause);
    }
    return dl_text_string(&text);
}

static const char *sentence(struct dl_arena *arena, const struct dl_error_summary *list,
                            int count) {
    if (count == 0 || list[count - 1].rows == 0) return "\nNo row could be predicted.\n";
    const struct dl_error_summary *all = &list[count - 2], *by_source = &list[count - 1];
    const char *inside =
        dl_known(all->inside_pct)
            ? dl_arena_printf(arena, "; interval coverage %.0f %% (of 80 %% intervals)",
                              all->inside_pct)
            : "";
    return dl_arena_printf(arena,
                           "\nMean absolute error of the time %.3g %%, median %.3g %% (%" PRId64
                           " row%s); macro-average over sources %.3g %%%s.\n",
                           all->time_mape_pct, all->time_median_ape_pct, all->rows,
                           all->rows == 1 ? "" : "s", by_source->time_mape_pct, inside);
}

static enum dl_code find_worst(const struct printer *p, bool errors, struct dl_worst *worst,
                               struct dl_worst *slow, struct dl_err *err) {
    struct dl_worst_names names = {.c = p->c, .arena = p->context->arena, .slow = slow};
    if (errors) names.worst = worst;
    dl_worst_begin(&names);
    if (names.wanted == 0) return DL_OK;
    return each_row(p, dl_worst_name, &names, err);
}

static enum dl_code print_text(struct printer *p, const struct dl_table *summary, const char *end,
                               struct dl_err *err) {
    const bool all = dl_option_given(p->options, "rows") || all_columns(p);
    struct dl_worst worst = {0}, slow = {0};
    DL_TRY(find_worst(p, !all, &worst, &slow, err));
    struct dl_table_layout layout = {0};
    dl_table_measure(summary, p->context->arena, &layout);
    dl_table_narrow(summary, &layout, "group", 20);
    const char *errors = dl_table_text_part(summary, &layout, true),
               *largest = all ? "" : worst_text(p, &worst), *causes = causes_text(p, &slow),
               *reasons = dl_compare_reasons(p->c), *remarks = dl_compare_remarks(p->c);
    if (all) {
        struct writer rows = {.p = p};
        DL_TRY(write_rows(&rows, MEASURE, err));
        DL_TRY(write_rows(&rows, TEXT, err));
        DL_TRY(put(p, "\n", false, err));
    }
    return put(p,
               dl_arena_printf(p->context->arena, "%s%s%s%s%s%s", errors, largest, causes, reasons,
                               remarks, end),
               true, err);
}

static enum dl_code print_rows(struct printer *p, enum shape shape, const char *end,
                               struct dl_err *err) {
    struct writer rows = {.p = p};
    DL_TRY(write_rows(&rows, shape, err));
    return put(p, end, true, err);
}

/* In the shape that the options ask for. */
static enum dl_code print(struct printer *p, const struct dl_error_summary *list, int count,
                          const struct dl_decision_list *decisions, const char *end,
                          struct dl_err *err) {
    struct dl_table summary;
    dl_compare_summary_init(&summary, p->context->arena);
    fill_summary(&summary, list, count,
                 p->format == DL_FORMAT_TEXT || p->format == DL_FORMAT_LATEX);
    if (p->format == DL_FORMAT_JSON) return print_json(p, &summary, decisions, err);
    if (p->format == DL_FORMAT_CSV && dl_option_given(p->options, "rows"))
        return print_rows(p, CSV, "", err);
    if (p->format == DL_FORMAT_CSV || p->format == DL_FORMAT_LATEX)
        return put(p, dl_table_render(&summary, p->format), true, err);
    if (!dl_option_given(p->options, "markdown")) return print_text(p, &summary, end, err);
    return print_rows(
        p, MARKDOWN,
        dl_compare_markdown_end(count > 1 ? &list[count - 2] : NULL, p->context->arena), err);
}

enum dl_code dl_compare_print(struct dl_context *context, const struct dl_options *options,
                              const struct dl_comparison *c, const struct dl_compare_tables *tables,
                              enum dl_format format, double *overall_out, struct dl_err *err) {
    struct printer p = {context, options, c, tables, format, {.arena = context->arena}};
    struct dl_error_summary *list = NULL;
    int count = 0;
    *overall_out = NAN;
    if (c->part_count > 1) return print_rows(&p, PART, "", err);
    dl_compare_summarize(c, &list, &count);
    const struct dl_decision_list decisions = dl_decisions_of(c);
    const char *end = dl_arena_printf(context->arena, "%s%s", sentence(context->arena, list, count),
                                      dl_decisions_text(&decisions, context->arena));
    DL_TRY(print(&p, list, count, &decisions, end, err));
    if (format != DL_FORMAT_TEXT)
        context->note(context, "%.*s", (int)strcspn(end + 1, "\n"), end + 1);
    if (count > 0 && list[count - 1].rows > 0) *overall_out = list[count - 1].mape_pct;
    return DL_OK;
}
