/* report_runs.c - the page about measured runs: how accurate is the model, what limits each run,
 * why are some slower, and what would help? */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/statistics/stats.h"
#include "model/core/text.h"
#include "plots/reports/report.h"

enum {
    SHOWN_RUNS = 60,
    SHOWN_CAUSES = 12,
    SHOWN_LIMITS = 4,
    SHOWN_PAIRS = 8,
    MACHINES = 40,
    DETAILED = 3,
    NAMED = 3
};

struct runs {
    struct dl_plot_runs all;
    struct dl_comparison compared;
    int predicted, inside;
    double median_pct;
};

static const struct dl_compared *row_of(const struct runs *x, int i) {
    return x->all.rows[i].compared;
}

static void measure(struct dl_report *r, struct runs *x) {
    double *errors = dl_arena_alloc(r->context->arena, (size_t)x->all.count + 1, sizeof *errors);
    x->compared.arena = r->context->arena;
    for (int i = 0; i < x->all.count; i++) {
        const struct dl_compared *c = row_of(x, i);
        struct dl_compared *copy = dl_comparison_add(&x->compared);
        *copy = *c;
        if (c->skipped || !dl_known(c->error_pct)) continue;
        errors[x->predicted++] = fabs(dl_compared_time_error_pct(c));
        x->inside += c->measured >= c->low && c->measured <= c->high;
    }
    dl_sort(errors, (size_t)x->predicted);
    x->median_pct = x->predicted > 0 ? dl_quantile_sorted(errors, (size_t)x->predicted, 0.5) : NAN;
}

/* Distinct values of a key in order of appearance, at most `max`; returns how many. */
static int values_of(const struct runs *x, int key, const char **out, int max) {
    int count = 0;
    for (int i = 0; i < x->all.count; i++) {
        const char *value = x->all.rows[i].keys[key];
        if (value[0] != 0) dl_text_place(out, &count, max, value);
    }
    return count;
}

/* Values of a key for a title: three of them and "others". */
static const char *named(struct dl_arena *arena, const struct runs *x, int key) {
    const char *values[NAMED + 1], *text = "";
    const int count = values_of(x, key, values, NAMED + 1);
    for (int i = 0; i < count && i < NAMED && text != NULL; i++)
        text = dl_plot_join(arena, text, values[i]);
    return count <= NAMED || text == NULL ? text : dl_arena_printf(arena, "%s and others", text);
}

/* "compute in 30 runs, inter-link in 12" */
static const char *bottlenecks(struct dl_arena *arena, const struct runs *x) {
    const char *text = "";
    for (int b = 0; b < DL_BOUNDS && dl_bottleneck_names[b] != NULL; b++) {
        int count = 0;
        for (int i = 0; i < x->all.count; i++) {
            const char *name = row_of(x, i)->bottleneck;
            count += name != NULL && strcmp(name, dl_bottleneck_names[b]) == 0;
        }
        if (count > 0)
            text = dl_plot_join(arena, text,
                                dl_arena_printf(arena, "%s in %s", dl_bottleneck_names[b],
                                                dl_report_count(arena, count, "run")));
    }
    return text;
}

static enum dl_code answer(struct dl_report *r, const struct runs *x) {
    struct dl_arena *arena = r->context->arena;
    int slower = 0;
    for (int i = 0; i < x->all.count; i++) slower += row_of(x, i)->cause != NULL;
    dl_document_section(&r->page, "Question and answer");
    dl_document_paragraph(&r->page, "How fast are these runs, how accurate is the model for them, "
                                    "what limits each run, and what would make it faster?");
    if (x->predicted == 0) {
        dl_document_answer(&r->page,
                           dl_arena_printf(arena, "None of the %d runs can be predicted: %s",
                                           x->all.count, row_of(x, 0)->why));
        return DL_OK;
    }
    dl_document_answer(
        &r->page,
        dl_arena_printf(
            arena,
            "%d of %s are predicted, with a median error of the time of %.1f %%; %.0f %% of the "
            "measurements "
            "lie within the predicted 80 %% interval, and %s slower than that. Bottlenecks: %s.",
            x->predicted, dl_report_count(arena, x->all.count, "run"), x->median_pct,
            100.0 * x->inside / x->predicted,
            slower == 1 ? "1 run is" : dl_arena_printf(arena, "%d runs are", slower),
            bottlenecks(arena, x)));
    return DL_OK;
}

/* Distinct machines of the runs that were predicted, at most MACHINES. */
static int machines_of(const struct runs *x, const struct dl_modelled **out) {
    int count = 0;
    for (int i = 0; i < x->all.count && count < MACHINES; i++) {
        const struct dl_modelled *m = &row_of(x, i)->modelled;
        bool known = m->system == NULL;
        for (int k = 0; k < count && !known; k++)
            known = strcmp(out[k]->system->name, m->system->name) == 0;
        if (!known) out[count++] = m;
    }
    return count;
}

static const struct dl_column machine_columns[] = {
    {"system", "system", "", DL_COLUMN_STRING, 0, 0},
    {"nodes", "nodes", "", DL_COLUMN_INTEGER, 0, 0},
    {"devices", "devices per node", "", DL_COLUMN_INTEGER, 0, 0},
    {"device", "device", "", DL_COLUMN_STRING, 0, 0},
    {"memory", "memory", "GiB", DL_COLUMN_NUMBER, 1073741824, 3},
    {"intra", "within a node", "GB/s", DL_COLUMN_NUMBER, 1e9, 3},
    {"inter", "between nodes", "GB/s", DL_COLUMN_NUMBER, 1e9, 3},
    {"source", "source", "", DL_COLUMN_STRING, 0, 0},
};

static void machine_table(struct dl_report *r, const struct dl_modelled **list, int count) {
    struct dl_table table;
    dl_table_init(&table, r->context->arena, machine_columns,
                  sizeof machine_columns / sizeof machine_columns[0]);
    for (int i = 0; i < count; i++) {
        const struct dl_system *s = list[i]->system;
        dl_table_add(&table, {.string = s->name}, {.integer = s->nodes},
                     {.integer = s->devices_per_node}, {.string = s->device->name},
                     {.number = s->device->memory_bytes},
                     {.number = s->has_intra ? s->intra.bandwidth_bytes_per_s : NAN},
                     {.number = s->has_inter ? s->inter.bandwidth_bytes_per_s : NAN},
                     {.string = s->calibration.measured_on != NULL ? "measured" : s->source});
    }
    dl_document_table(&r->page, &table,
                      "The machines; bandwidths are per direction, between nodes of one adapter.");
}

/* A few machines are described individually, many in a table. */
static enum dl_code machines(struct dl_report *r, const struct runs *x, bool calibration,
                             struct dl_err *err) {
    (void)err;
    const struct dl_modelled *list[MACHINES];
    const int count = machines_of(x, list);
    if (count > DETAILED && !calibration) {
        machine_table(r, list, count);
        return DL_OK;
    }
    if (count > DETAILED) {
        dl_document_paragraph(&r->page, "These are too many to describe here: dlmodel report "
                                        "--system NAME describes the calibration of one.");
        return DL_OK;
    }
    for (int i = 0; i < count; i++) {
        if (calibration)
            dl_report_calibration(r, list[i]->system);
        else
            dl_report_system(r, list[i]->system, list[i]->plan->precision);
    }
    return DL_OK;
}

/* One figure of all rows, or one for each pair of system and workload where they are too many for
 * one. */
static enum dl_code scaling(struct dl_report *r, const struct runs *x, struct dl_err *err) {
    struct dl_err why = {0};
    struct dl_arena *arena = r->context->arena;
    const char *systems[SHOWN_PAIRS], *workloads[SHOWN_PAIRS];
    dl_document_section(&r->page, "Scaling");
    const char *caption = "Points: measured; lines and bands: predicted, with 80 % intervals; "
                          "grey: linear from the smallest run.";
    enum dl_code code = dl_report_figure(r, &r->options, dl_plot_scaling, "scaling", caption, &why);
    if (code == DL_OK) return DL_OK;
    if (code != DL_ERR_USAGE) {
        *err = why;
        return code;
    }
    const int s_count = values_of(x, DL_KEY_SYSTEM, systems, SHOWN_PAIRS),
              w_count = values_of(x, DL_KEY_WORKLOAD, workloads, SHOWN_PAIRS);
    int drawn = 0;
    for (int s = 0; s < s_count; s++) {
        for (int w = 0; w < w_count && drawn < SHOWN_PAIRS; w++) {
            const struct dl_options one = dl_report_with(&r->options, "system", systems[s]);
            const struct dl_options both = dl_report_with(&one, "workload", workloads[w]);
            why = (struct dl_err){0};
            code = dl_report_figure(
                r, &both, dl_plot_scaling, "scaling",
                dl_arena_printf(arena, "%s on %s. %s", workloads[w], systems[s], caption), &why);
            if (code == DL_OK)
                drawn++;
            else if (code != DL_ERR_USAGE) {
                *err = why;
                return code;
            }
        }
    }
    if (drawn == 0)
        dl_document_paragraph(
            &r->page,
            dl_arena_printf(arena, "The runs are too different for figures of their scaling (%s).",
                            why.message));
    else
        dl_document_paragraph(&r->page,
                              dl_arena_printf(arena,
                                              "Of %d systems and %d workloads those that fit into "
                                              "a figure are drawn, at most %d; "
                                              "--system, --workload and --where choose others.",
                                              s_count, w_count, (int)SHOWN_PAIRS));
    return DL_OK;
}

static const struct dl_column run_columns[] = {
    {"id", "run", "", DL_COLUMN_STRING, 0, 0},
    {"system", "system", "", DL_COLUMN_STRING, 0, 0},
    {"workload", "workload", "", DL_COLUMN_STRING, 0, 0},
    {"framework", "framework", "", DL_COLUMN_STRING, 0, 0},
    {"devices", "devices", "", DL_COLUMN_INTEGER, 0, 0},
    {"measured", "measured", "", DL_COLUMN_NUMBER, 0, 4},
    {"predicted", "predicted", "", DL_COLUMN_NUMBER, 0, 4},
    {"low", "low", "", DL_COLUMN_NUMBER, 0, 3},
    {"high", "high", "", DL_COLUMN_NUMBER, 0, 3},
    {"unit", "unit", "", DL_COLUMN_STRING, 0, 0},
    {"error", "time error", "%", DL_COLUMN_NUMBER, 0, 3},
    {"compute", "compute", "ms", DL_COLUMN_NUMBER, 1e-3, 3},
    {"exposed", "exposed", "ms", DL_COLUMN_NUMBER, 1e-3, 3},
    {"overhead", "other", "ms", DL_COLUMN_NUMBER, 1e-3, 3},
    {"bottleneck", "bottleneck", "", DL_COLUMN_STRING, 0, 0},
};

enum { RUN_COLUMNS = sizeof run_columns / sizeof run_columns[0] };

static void run_table(struct dl_report *r, const struct runs *x) {
    static const int keys[] = {DL_KEY_SYSTEM, DL_KEY_WORKLOAD, DL_KEY_FRAMEWORK};
    struct dl_table table;
    struct dl_column *columns = dl_arena_alloc(r->context->arena, RUN_COLUMNS, sizeof *columns);
    memcpy(columns, run_columns, sizeof run_columns);
    if (x->predicted == 0) columns[14].heading = NULL; /* the answer gives the reason */
    for (int k = 0; k < 3; k++) {                      /* keys that all runs share are omitted */
        const char *two[2];
        if (values_of(x, keys[k], two, 2) < 2) columns[k + 1].heading = NULL;
    }
    dl_table_init(&table, r->context->arena, columns, RUN_COLUMNS);
    for (int i = 0; i < x->all.count && table.row_count < SHOWN_RUNS; i++) {
        const struct dl_compared *c = row_of(x, i);
        const struct dl_prediction *p = c->modelled.prediction;
        union dl_cell *cells = dl_table_row(&table);
        cells[0].string = c->id;
        cells[1].string = c->system;
        cells[2].string = c->workload;
        cells[3].string = c->framework;
        cells[4].integer = c->devices;
        const double values[] = {c->measured, c->predicted, c->low, c->high};
        for (int v = 0; v < 4; v++) cells[5 + v].number = values[v];
        cells[9].string = c->unit;
        cells[10].number = dl_compared_time_error_pct(c);
        cells[14].string = c->skipped ? c->why : c->bottleneck;
        if (p == NULL) continue;
        cells[11].number = p->compute_s;
        cells[12].number = p->exposed_comm_s;
        cells[13].number = p->iteration_s - p->compute_s - p->exposed_comm_s;
    }
    dl_document_table(
        &r->page, &table,
        x->all.count > SHOWN_RUNS
            ? dl_arena_printf(r->context->arena,
                              "The first %d of %d runs; dlmodel compare --rows --csv prints all.",
                              (int)SHOWN_RUNS, x->all.count)
        : x->predicted == 0
            ? "Each run."
            : "Each run, its prediction with the ends of the 80 % interval, and the predicted "
              "parts of an iteration.");
}

static enum dl_code causes(struct dl_report *r, const struct runs *x) {
    int shown = 0;
    for (int i = 0; i < x->all.count && shown < SHOWN_CAUSES; i++) {
        const struct dl_compared *c = row_of(x, i);
        if (c->cause == NULL) continue;
        if (shown++ == 0)
            dl_document_paragraph(&r->page, "Runs slower than predicted, with the likely cause:");
        dl_document_item(&r->page, dl_arena_printf(r->context->arena, "%s: %s", c->id, c->cause));
    }
    if (shown > 0) dl_document_items_end(&r->page);
    return DL_OK;
}

static int by_devices(const void *a, const void *b) {
    const struct dl_compared *const *x = a, *const *y = b;
    return (*x)->devices < (*y)->devices   ? 1
           : (*x)->devices > (*y)->devices ? -1
                                           : strcmp((*x)->id, (*y)->id);
}

/* Changes for the largest runs, one for each system, workload and framework. */
static enum dl_code limits(struct dl_report *r, const struct runs *x, struct dl_err *err) {
    const struct dl_compared **largest =
        dl_arena_alloc(r->context->arena, (size_t)x->all.count + 1, sizeof *largest);
    int count = 0, shown = 0;
    for (int i = 0; i < x->all.count; i++) {
        if (row_of(x, i)->modelled.prediction != NULL) largest[count++] = row_of(x, i);
    }
    qsort(largest, (size_t)count, sizeof *largest, by_devices);
    for (int i = 0; i < count && shown < SHOWN_LIMITS; i++) {
        const struct dl_modelled *m = &largest[i]->modelled;
        bool known = false;
        for (int k = 0; k < i && !known; k++) {
            const struct dl_modelled *o = &largest[k]->modelled;
            known = strcmp(o->system->name, m->system->name) == 0 &&
                    strcmp(o->workload->name, m->workload->name) == 0 &&
                    strcmp(o->framework->name, m->framework->name) == 0;
        }
        if (known) continue;
        shown++;
        DL_TRY(dl_report_limits(r, m, err));
    }
    return DL_OK;
}

/* Sections about predictions of the runs. */
static enum dl_code judged(struct dl_report *r, const struct runs *x, struct dl_err *err) {
    const char *sources[2];
    dl_document_section(&r->page, "Limits, and what to change");
    DL_TRY(causes(r, x));
    DL_TRY(limits(r, x, err));
    dl_document_section(&r->page, "Accuracy");
    DL_TRY(dl_report_headline(r, err));
    dl_report_errors(r, &x->compared,
                     "Error of the predicted time: absolute values, except for the bias.");
    const struct dl_options by =
        dl_option_given(&r->options, "by")
            ? r->options
            : dl_report_with(&r->options, "by",
                             values_of(x, DL_KEY_SOURCE, sources, 2) > 1 ? "source" : "workload");
    return dl_report_figure(r, &by, dl_plot_error, "error", "Signed error of every run.", err);
}

enum dl_code dl_report_of_runs(struct dl_report *r, const char *title, struct dl_err *err) {
    struct dl_arena *arena = r->context->arena;
    struct runs *x = dl_arena_alloc(arena, 1, sizeof *x);
    DL_TRY(dl_plot_runs_read(r->context, &r->options, true, &x->all, err));
    measure(r, x);
    const char *what = named(arena, x, DL_KEY_WORKLOAD), *where = named(arena, x, DL_KEY_SYSTEM);
    dl_document_begin(
        &r->page, arena, r->page.markdown,
        title != NULL ? title : dl_arena_printf(arena, "Measured runs of %s on %s", what, where),
        dl_arena_printf(arena, "%s from %s", dl_report_count(arena, x->all.count, "run"),
                        named(arena, x, DL_KEY_SOURCE)));
    DL_TRY(answer(r, x));
    if (x->predicted > 0) {
        dl_document_section(&r->page, "The machines");
        DL_TRY(machines(r, x, false, err));
        DL_TRY(scaling(r, x, err));
    }
    dl_document_section(&r->page, x->predicted > 0 ? "Where the time goes" : "The runs");
    run_table(r, x);
    if (x->predicted > 0) DL_TRY(judged(r, x, err));
    DL_TRY(dl_report_repeats(r, err));
    if (x->predicted > 0) {
        dl_document_section(&r->page, "Calibration of the machines");
        DL_TRY(machines(r, x, true, err));
    }
    const char *files[DL_MAX_POSITIONAL];
    for (int i = 1; i < r->options.positional_count; i++) files[i - 1] = r->options.positional[i];
    dl_report_method(r, NULL, files, r->options.positional_count - 1);
    return DL_OK;
}
