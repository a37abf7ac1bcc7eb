/* report_parts.c - parts of both kinds of pages: figures, the machine and the quality of its
 * data, errors, method. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "model/core/file.h"
#include "model/statistics/stats.h"
#include "plots/reports/report.h"
#include "predict/compare/headline.h"

enum {
    NARROW_WIDTH = 620,
    NARROW_HEIGHT = 680,
    WIDE_WIDTH = 1100,
    WIDE_HEIGHT = 660,
    LIST_MOST = 60
};

const char *dl_report_count(struct dl_arena *arena, long long count, const char *what) {
    return dl_arena_printf(arena, "%lld %s%s", count, what, count == 1 ? "" : "s");
}

const char *dl_report_quantity(struct dl_arena *arena, double value, enum dl_unit unit) {
    char text[64];
    dl_units_format(value, unit, text, sizeof text);
    return dl_arena_strdup(arena, text);
}

struct dl_options dl_report_with(const struct dl_options *options, const char *name,
                                 const char *value) {
    struct dl_options own = *options;
    for (int t = 0; own.tables[t] != NULL; t++) {
        for (const struct dl_option *o = own.tables[t]; o->name != NULL; o++) {
            if (strcmp(o->name, name) != 0) continue;
            int at = 0;
            while (at < own.given_count && (dl_option_repeatable(o) || own.given[at].option != o))
                at++;
            if (at == DL_MAX_REPEATS) return own;
            own.given[at].option = o;
            own.given[at].value = value;
            if (at == own.given_count) own.given_count++;
            return own;
        }
    }
    return own;
}

/* A drawing of characters in place, without empty lines before and after it and blanks at the ends
 * of lines. */
static const char *trimmed(char *text) {
    char *to = text, *begin = text;
    for (const char *line = text + (text[0] == '\f'); *line != 0;) {
        const size_t length = strcspn(line, "\n");
        const char *next = line + length + (line[length] != 0);
        size_t kept = length;
        while (kept > 0 && line[kept - 1] == ' ') kept--;
        if (kept > 0 || to != begin) {
            if (to != begin) *to++ = '\n';
            memmove(to, line, kept);
            to += kept;
        }
        line = next;
    }
    *to = 0;
    while (to > begin && to[-1] == '\n') *--to = 0;
    return begin;
}

/* A figure as files to attach to a paper: FOLDER/figure-N-KIND.pdf and .csv. */
static enum dl_code attach(struct dl_report *r, struct dl_figure *figure, const char *script,
                           struct dl_err *err) {
    struct dl_plot_file pdf;
    struct dl_arena *arena = r->context->arena;
    const char *csv = dl_table_csv(&figure->table);
    const int number = ++r->attached;
    const char *path = dl_arena_printf(arena, "%s/figure-%d-%s.pdf", r->attach, number, script),
               *table = dl_arena_printf(arena, "%s/figure-%d-%s.csv", r->attach, number, script);
    DL_TRY(dl_file_mkdirs(r->attach, err));
    DL_TRY(dl_plot_render(r->context, figure, script, DL_PLOT_PDF, &pdf, err));
    DL_TRY(dl_file_write(path, pdf.bytes, pdf.length, err));
    return dl_file_write(table, csv, strlen(csv), err);
}

enum dl_code dl_report_drawn(struct dl_report *r, struct dl_figure *figure, const char *script,
                             const char *caption, struct dl_err *err) {
    struct dl_plot_file wide, narrow;
    if (!r->figures) return DL_OK;
    if (r->attach != NULL) DL_TRY(attach(r, figure, script, err));
    if (r->page.markdown) {
        struct dl_context plain = *r->context;
        plain.color = false;
        DL_TRY(dl_plot_render(&plain, figure, script, DL_PLOT_TERMINAL, &wide, err));
        dl_document_drawing(&r->page, trimmed(wide.bytes), caption);
        return DL_OK;
    }
    figure->width = WIDE_WIDTH, figure->height = WIDE_HEIGHT;
    DL_TRY(dl_plot_render(r->context, figure, script, DL_PLOT_SVG, &wide, err));
    figure->width = NARROW_WIDTH, figure->height = NARROW_HEIGHT;
    DL_TRY(dl_plot_render(r->context, figure, script, DL_PLOT_SVG, &narrow, err));
    return dl_document_figure(&r->page, wide.bytes, narrow.bytes, caption, err);
}

enum dl_code dl_report_figure(struct dl_report *r, const struct dl_options *options,
                              dl_plot_builder *build, const char *script, const char *caption,
                              struct dl_err *err) {
    struct dl_figure figure = {.group_count = 0};
    struct dl_context quiet = *r->context; /* its message is on the page */
    if (!r->figures) return DL_OK;
    quiet.verbosity = -1;
    DL_TRY(build(&quiet, options, &figure, err));
    return dl_report_drawn(r, &figure, script, caption, err);
}

static const char *link_text(struct dl_arena *arena, const struct dl_link *link, bool present) {
    if (!present) return NULL;
    return dl_arena_printf(
        arena, "%s, %s per direction, %s for a small message%s",
        link->kind != NULL ? link->kind : "of unknown kind",
        dl_report_quantity(arena, link->bandwidth_bytes_per_s, DL_UNIT_BYTE_PER_S),
        dl_report_quantity(arena, link->latency_s, DL_UNIT_S),
        link->assumed ? " (assumed, not measured)" : "");
}

void dl_report_system(struct dl_report *r, const struct dl_system *s, enum dl_precision precision) {
    struct dl_arena *arena = r->context->arena;
    const struct dl_device *d = s->device;
    const char *fabric = s->has_fabric && s->fabric.topology != NULL
                             ? dl_arena_printf(arena, "%s%s", s->fabric.topology,
                                               s->fabric.oversubscription > 1
                                                   ? dl_arena_printf(arena, ", %g : 1 at the leaf",
                                                                     s->fabric.oversubscription)
                                                   : "")
                             : NULL;
    const struct dl_fact facts[] = {
        {"System", dl_arena_printf(arena, "%s: %s", s->name, s->summary != NULL ? s->summary : "")},
        {"Nodes", dl_arena_printf(arena, "%" PRId64 " with %s each", s->nodes,
                                  dl_report_count(arena, s->devices_per_node, "device"))},
        {"Device", dl_arena_printf(arena, "%s: %s", d->name, d->summary != NULL ? d->summary : "")},
        {"Peak", dl_arena_printf(
                     arena, "%s in %s",
                     dl_report_quantity(arena, dl_device_peak(d, precision), DL_UNIT_FLOP_PER_S),
                     dl_precision_names[precision])},
        {"Device memory",
         dl_arena_printf(
             arena, "%s at %s", dl_report_quantity(arena, d->memory_bytes, DL_UNIT_BYTE),
             dl_report_quantity(arena, d->memory_bandwidth_bytes_per_s, DL_UNIT_BYTE_PER_S))},
        {"Host", s->has_host ? s->host.cpu : NULL},
        {"Within a node", link_text(arena, &s->intra, s->has_intra)},
        {"Between nodes", link_text(arena, &s->inter, s->has_inter)},
        {"Network", fabric},
        {"Source",
         s->calibration.measured_on != NULL ? "measured by dlmodel calibrate" : s->source},
    };
    dl_document_facts(&r->page, facts, (int)(sizeof facts / sizeof facts[0]));
}

/* The precision of the medians of a calibrated profile, and how often other work interfered. */
static const char *samples_text(struct dl_arena *arena, const struct dl_system *s) {
    double *widths = dl_arena_alloc(arena, (size_t)s->calibration.sample_count + 1, sizeof *widths),
           half = NAN, most = NAN;
    int known = 0, disturbed = 0;
    if (s->calibration.sample_count == 0) return NULL;
    for (int i = 0; i < s->calibration.sample_count; i++) {
        const struct dl_raw_sample *x = &s->calibration.samples[i];
        const int64_t lost = x->preempted == DL_ABSENT ? 0 : x->preempted;
        disturbed += (lost + x->outliers) * 10 > x->repeats + lost;
        if (x->high_s > x->low_s && x->median_s > 0)
            widths[known++] = 100 * (x->high_s - x->low_s) / 2 / x->median_s;
    }
    dl_sort(widths, (size_t)known);
    if (known > 0)
        half = dl_quantile_sorted(widths, (size_t)known, 0.5),
        most = dl_quantile_sorted(widths, (size_t)known, 0.9);
    return dl_arena_printf(arena,
                           "%d; 95 %% interval of the median +-%.1f %% (median), +-%.1f %% (90th "
                           "percentile); in %d more than a tenth "
                           "of the repeats were disturbed",
                           s->calibration.sample_count, half, most, disturbed);
}

static const struct dl_column kernel_columns[] = {
    {"op", "kernels", "", DL_COLUMN_STRING, 0, 0},
    {"pass", "pass", "", DL_COLUMN_STRING, 0, 0},
    {"precision", "precision", "", DL_COLUMN_STRING, 0, 0},
    {"samples", "samples", "", DL_COLUMN_INTEGER, 0, 0},
    {"error", "error on held-out shapes", "%", DL_COLUMN_NUMBER, 0, 3},
    {"source", "source", "", DL_COLUMN_STRING, 0, 0},
};

static void kernel_times(struct dl_report *r, const struct dl_device *owner, bool borrowed) {
    struct dl_table table;
    dl_table_init(&table, r->context->arena, kernel_columns,
                  sizeof kernel_columns / sizeof kernel_columns[0]);
    for (int i = 0; i < owner->kernel_model_count && i < LIST_MOST; i++) {
        const struct dl_kernel_model *s = &owner->kernel_models[i];
        dl_table_add(
            &table, {.string = dl_op_names[s->op]}, {.string = dl_pass_names[s->pass]},
            {.string = dl_precision_names[s->precision]}, {.integer = s->correction.samples},
            {.number = dl_known(s->correction.sigma_log) ? 100 * (exp(s->correction.sigma_log) - 1)
                                                         : NAN},
            {.string = s->source});
    }
    if (table.row_count == 0) {
        dl_document_paragraph(
            &r->page, "No kernel of this device was measured: its kernel times follow from a "
                      "roofline with the efficiencies of similar devices, and predictions "
                      "are marked as extrapolated.");
        return;
    }
    dl_document_table(&r->page, &table,
                      borrowed
                          ? dl_arena_printf(r->context->arena,
                                            "Kernel times are borrowed from %s, scaled by the "
                                            "ratios of peaks; errors are those on that device.",
                                            owner->name)
                          : "Kernel-time models: number of measured samples, and one standard "
                            "deviation of the error on held-out samples.");
}

void dl_report_calibration(struct dl_report *r, const struct dl_system *s) {
    struct dl_arena *arena = r->context->arena;
    const struct dl_device *d = s->device;
    const struct dl_device *owner =
        d->kernel_model_count == 0 && d->borrowed != NULL ? d->borrowed : d;
    if (s->calibration.measured_on == NULL) {
        dl_document_paragraph(
            &r->page,
            dl_arena_printf(arena,
                            "%s was not measured here: its numbers come from the sources named in "
                            "its file (dlmodel schema system; data/SOURCES.md)%s.",
                            s->name,
                            s->collective_count > 0 ? "; collectives are measured"
                                                    : "; collectives are modelled from its links"));
    } else {
        struct dl_fact facts[3 + 32] = {
            {"Measured",
             dl_arena_printf(arena, "%s on %s",
                             s->calibration.measured_at != NULL ? s->calibration.measured_at
                                                                : "at an unknown time",
                             s->calibration.measured_on)},
            {"Samples", samples_text(arena, s)},
            {"Collectives", dl_arena_printf(arena, "%d measured series", s->collective_count)},
        };
        int count = 3;
        for (int i = 0; i < s->calibration.measurement_count && count < 3 + 32; i++) {
            facts[count++] = (struct dl_fact){s->calibration.measurement[i].key,
                                              s->calibration.measurement[i].text};
        }
        dl_document_facts(&r->page, facts, count);
    }
    kernel_times(r, owner, owner != d);
}

enum dl_code dl_report_headline(struct dl_report *r, struct dl_err *err) {
    const char *headline;
    DL_TRY(dl_headline(&r->context->data, r->context->arena, &headline, err));
    if (headline[0] != 0) dl_document_paragraph(&r->page, headline);
    return DL_OK;
}

void dl_report_errors(struct dl_report *r, const struct dl_comparison *c, const char *caption) {
    struct dl_error_summary *list = NULL;
    int count = 0;
    struct dl_table table;
    dl_compare_summarize(c, &list, &count);
    dl_compare_summary_init(&table, r->context->arena);
    for (int i = 0; i < count && i < LIST_MOST; i++) dl_compare_summary_row(&table, &list[i]);
    dl_document_table(&r->page, &table, caption);
}

/* Ids of the formulas that a prediction used, each once. */
static const char *formulas_of(struct dl_arena *arena, const struct dl_prediction *p) {
    const char *text = "F-ITERATION, F-BOUND, F-INTERVAL";
    for (int i = 0; i < p->term_count; i++) {
        const char *id = p->terms[i].formula, *found = strstr(text, id);
        while (found != NULL && found[strlen(id)] != 0 && found[strlen(id)] != ',')
            found = strstr(found + 1, id);
        if (found == NULL) text = dl_arena_printf(arena, "%s, %s", text, id);
    }
    return text;
}

void dl_report_method(struct dl_report *r, const struct dl_prediction *p, const char *const *files,
                      int file_count) {
    struct dl_arena *arena = r->context->arena;
    dl_document_section(&r->page, "Method");
    dl_document_paragraph(
        &r->page,
        "Each layer becomes kernels, whose times come from kernel-time models fitted to measured "
        "samples or from a roofline. Gradients are synchronized with the messages of the "
        "framework's release. The time of a collective is that of the algorithm that the library "
        "chooses, on the machine's links. A simulated timeline of host, device and network yields "
        "the overlap. An iteration is compute + exposed communication + exposed input + bubble + "
        "overhead. Intervals are 80 % intervals of a log-normal error of kernels, collectives and "
        "the framework's release (the part that the model does not explain).");
    dl_document_paragraph(
        &r->page,
        "Not modelled: several communication streams, congestion from other jobs, variance of the "
        "file system, undocumented power limits. "
        "Derivations: dlmodel help theory; every term of one prediction: dlmodel explain.");
    if (p != NULL)
        dl_document_paragraph(&r->page,
                              dl_arena_printf(arena, "Formulas used: %s (dlmodel help theory ID).",
                                              formulas_of(arena, p)));
    if (file_count > 0) {
        dl_document_paragraph(&r->page, "Input files, with hashes of their text (FNV-1a):");
        for (int i = 0; i < file_count; i++) dl_document_item(&r->page, files[i]);
        dl_document_items_end(&r->page);
    }
}
