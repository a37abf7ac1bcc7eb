/* report_advice.c - the part of a page about changes that save time (advise), and the page about
 * systems, networks and frameworks (match). */
#include <string.h>

#include "predict/inputs/adviser.h"
#include "predict/inputs/match.h"
#include "plots/reports/report.h"

/* ---- advise ---- */

static const struct dl_column advice_columns[] = {
    {"change", "change", "", DL_COLUMN_STRING, 0, 0},
    {"gain", "gain", "%", DL_COLUMN_NUMBER, 0.01, 3},
    {"low", "low", "%", DL_COLUMN_NUMBER, 0.01, 3},
    {"high", "high", "%", DL_COLUMN_NUMBER, 0.01, 3},
    {"effect", "mathematics", "", DL_COLUMN_STRING, 0, 0},
    {"setting", "setting", "", DL_COLUMN_STRING, 0, 0},
};

static void add_advice(struct dl_table *table, const struct dl_advised *a) {
    dl_table_add(table, {.string = a->change.text}, {.number = a->gain.ratio - 1},
                 {.number = a->gain.low - 1}, {.number = a->gain.high - 1},
                 {.string = dl_advise_effect_names[a->change.item->effect]},
                 {.string = a->change.setting});
}

static void add_combination(struct dl_report *r, const struct dl_advise_report *a) {
    struct dl_arena *arena = r->context->arena;
    if (a->step_count == 0) return;
    dl_document_paragraph(
        &r->page,
        dl_arena_printf(arena,
                        "Combined, the best one at a time and without changes of the training: "
                        "%+.1f %% (80 %% interval %+.1f to %+.1f %%) by",
                        100 * (a->gain.ratio - 1), 100 * (a->gain.low - 1),
                        100 * (a->gain.high - 1)));
    for (int i = 0; i < a->step_count; i++)
        dl_document_item(&r->page, dl_arena_printf(arena, "%s (%s)", a->steps[i].change.text,
                                                   a->steps[i].change.item->mathematics));
    dl_document_items_end(&r->page);
    dl_document_paragraph(&r->page, "Predicted by:");
    dl_document_code(&r->page, a->command);
}

enum dl_code dl_report_advice(struct dl_report *r, const struct dl_options *options,
                              struct dl_err *err) {
    struct dl_arena *arena = r->context->arena;
    struct dl_advise_report *a = dl_arena_alloc(arena, 1, sizeof *a);
    struct dl_options own = *options;
    struct dl_context quiet = *r->context;
    struct dl_err refusal = {.code = DL_OK};
    struct dl_table table;
    own.positional_count = 0;
    quiet.verbosity = -1;
    *a = (struct dl_advise_report){.allowed = DL_EFFECT_ROUNDING, .least_gain_frac = 0.005};
    const enum dl_code code = dl_adviser_run(&quiet, &own, a, &refusal);
    if (code == DL_ERR_SYSTEM) return dl_fail(err, code, "%s", refusal.message);
    dl_document_section(&r->page, "Faster settings");
    if (code != DL_OK) {
        dl_document_paragraph(&r->page, refusal.message);
        return DL_OK;
    }
    dl_table_init(&table, arena, advice_columns, sizeof advice_columns / sizeof *advice_columns);
    for (int i = 0; i < a->count; i++) {
        const struct dl_advised *one = &a->rows[i];
        const bool saves = one->gain.ratio >= 1 + a->least_gain_frac;
        if (one->verdict.possible && one->verdict.prediction.fits && saves &&
            dl_advised_is_first(a, i))
            add_advice(&table, one);
    }
    if (table.row_count == 0) {
        dl_document_paragraph(&r->page, "No change of the settings gains 0.5 % or more.");
        return DL_OK;
    }
    DL_TRY(dl_report_figure(r, options, dl_plot_advise, "advise",
                            "What each change of the settings gains, each alone.", err));
    dl_document_table(&r->page, &table,
                      "Changes of settings and network, each predicted alone (F-GAIN). Those that "
                      "change the training need a look at its accuracy.");
    add_combination(r, a);
    return DL_OK;
}

/* ---- match ---- */

static const struct dl_column match_columns[] = {
    {"workload", "network", "", DL_COLUMN_STRING, 0, 0},
    {"system", "system", "", DL_COLUMN_STRING, 0, 0},
    {"device", "device", "", DL_COLUMN_STRING, 0, 0},
    {"framework", "framework", "", DL_COLUMN_STRING, 0, 0},
    {"rate", "samples", "1/s", DL_COLUMN_NUMBER, 0, 3},
    {"rate_low", "low", "1/s", DL_COLUMN_NUMBER, 0, 3},
    {"rate_high", "high", "1/s", DL_COLUMN_NUMBER, 0, 3},
    {"per_j", "samples", "1/J", DL_COLUMN_NUMBER, 0, 3},
    {"per_j_low", "low", "1/J", DL_COLUMN_NUMBER, 0, 3},
    {"per_j_high", "high", "1/J", DL_COLUMN_NUMBER, 0, 3},
};

static void add_match(struct dl_table *table, const struct dl_match_row *row) {
    dl_table_add(table, {.string = row->workload}, {.string = row->system}, {.string = row->device},
                 {.string = row->framework}, {.number = row->samples_per_s},
                 {.number = row->low_samples_per_s}, {.number = row->high_samples_per_s},
                 {.number = row->samples_per_j}, {.number = row->low_samples_per_j},
                 {.number = row->high_samples_per_j});
}

static void match_tables(struct dl_report *r, const struct dl_match *m) {
    struct dl_arena *arena = r->context->arena;
    struct dl_table best, all;
    const int columns = sizeof match_columns / sizeof *match_columns;
    dl_table_init(&best, arena, match_columns, columns);
    for (int w = 0; w < m->workload_count; w++) {
        for (int s = 0; s < m->system_count; s++) {
            const struct dl_match_row *row =
                dl_match_best(m, m->workloads[w], m->systems[s], false);
            if (row != NULL) add_match(&best, row);
        }
    }
    dl_document_table(&r->page, &best,
                      "The fastest framework of each network on each system; neither the bound nor "
                      "asynchronous training.");
    dl_document_section(&r->page, "Every combination");
    for (int w = 0; w < m->workload_count; w++) {
        dl_table_init(&all, arena, match_columns, columns);
        for (int i = 0; i < m->count; i++)
            if (strcmp(m->rows[i].workload, m->workloads[w]) == 0) add_match(&all, &m->rows[i]);
        if (all.row_count > 0)
            dl_document_table(&r->page, &all,
                              dl_arena_printf(arena,
                                              "%s: samples per second and per joule with "
                                              "their 80 %% intervals.",
                                              m->workloads[w]));
    }
}

static const char *match_answer(struct dl_arena *arena, const struct dl_match *m, int w) {
    const struct dl_match_row *fast = dl_match_best(m, m->workloads[w], NULL, false),
                              *frugal = dl_match_best(m, m->workloads[w], NULL, true);
    if (fast == NULL)
        return dl_arena_printf(arena, "%s fits on none of these systems.", m->workloads[w]);
    const char *text =
        dl_arena_printf(arena, "%s: %s on %s trains %.4g samples/s (%.4g to %.4g)", m->workloads[w],
                        fast->framework, fast->system, fast->samples_per_s, fast->low_samples_per_s,
                        fast->high_samples_per_s);
    return frugal == NULL
               ? dl_arena_printf(arena, "%s.", text)
               : dl_arena_printf(arena,
                                 "%s; the least energy takes %s on %s, %.3g samples/J "
                                 "(%.3g to %.3g).",
                                 text, frugal->framework, frugal->system, frugal->samples_per_j,
                                 frugal->low_samples_per_j, frugal->high_samples_per_j);
}

enum dl_code dl_report_of_match(struct dl_report *r, const char *title, struct dl_err *err) {
    struct dl_arena *arena = r->context->arena;
    struct dl_match *m = dl_arena_alloc(arena, 1, sizeof *m);
    struct dl_options own = r->options;
    own.positional_count = 0;
    DL_TRY(dl_match_run(r->context, &own, m, err));
    dl_document_begin(
        &r->page, arena, r->page.markdown, title != NULL ? title : "Machines compared",
        dl_arena_printf(arena, "%d systems, %d networks, %s", m->system_count, m->workload_count,
                        dl_report_count(arena, (long long)m->nodes, "node")));
    dl_document_section(&r->page, "Question and answer");
    dl_document_paragraph(&r->page, "Which of these systems, with which framework, trains each "
                                    "network fastest, and which with the least energy?");
    for (int w = 0; w < m->workload_count; w++)
        dl_document_answer(&r->page, match_answer(arena, m, w));
    dl_document_section(&r->page, "By system");
    if (m->workload_count <= DL_PLOT_CURVES)
        DL_TRY(dl_report_figure(r, &own, dl_plot_match, "match",
                                "Samples per second and per joule with the fastest framework; "
                                "joules of all nodes, hosts included.",
                                err));
    match_tables(r, m);
    dl_report_method(r, NULL, NULL, 0);
    return DL_OK;
}
