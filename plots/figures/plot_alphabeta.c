/* plot_alphabeta.c - samples of collectives, their alpha-beta pieces (F-COLL-FIT), the model of the
 * system file with the sizes at which the library changes its algorithm or protocol, and the
 * residuals of both. From tables of collectives or, without files, from a profile of calibrate. */
#include <math.h>
#include <string.h>

#include "model/network/coll_fit.h"
#include "plots/figures/plot.h"
#include "predict/compare/series.h"
#include "predict/options/where.h"

static const struct dl_column columns[] = {
    {"group", NULL, NULL, DL_COLUMN_INTEGER, 0, 0},
    {"kind", "kind", "", DL_COLUMN_INTEGER, 0, 0},
    {"size_bytes", "size", "B", DL_COLUMN_NUMBER, 0, 0},
    {"time_s", "time", "s", DL_COLUMN_NUMBER, 0, 0},
    {"fit_error_pct", "fit", "%", DL_COLUMN_NUMBER, 0, 0},
    {"model_error_pct", "model", "%", DL_COLUMN_NUMBER, 0, 0},
    {"label", "label", "", DL_COLUMN_STRING, 0, 0},
};
enum { SAMPLE = 1, FIT, MODEL, SWITCH, DOUBLED }; /* kinds of rows */
enum { CURVE_POINTS = 97 };

struct curve { /* one series to draw */
    struct dl_coll_measured measured;
    struct dl_system system;
    struct dl_collective_request request;
    double launches_s; /* that one host thread adds to each call (coll_match.h) */
    const char *label;
};

/* Adds a row; the caller fills the errors of a sample, or a label. */
static union dl_cell *put(struct dl_figure *out, int group, int kind, double bytes, double time_s) {
    union dl_cell *cells = dl_table_row(&out->table);
    cells[0].integer = group;
    cells[1].integer = kind;
    cells[2].number = bytes;
    cells[3].number = time_s;
    cells[4].number = cells[5].number = NAN;
    cells[6].string = "";
    return cells;
}

static bool model_at(const struct curve *curve, double bytes, struct dl_collective_time *out) {
    struct dl_collective_request request = curve->request;
    struct dl_err unused = {0};
    request.bytes = bytes, request.allow_decreasing = true;
    if (dl_collective_time(&curve->system, &request, out, &unused) != DL_OK || !(out->time_s > 0))
        return false;
    out->time_s += curve->launches_s;
    return true;
}

static const char *choice_name(struct dl_arena *arena, const struct dl_collective_time *t) {
    return t->protocol == NULL ? t->algorithm
                               : dl_arena_printf(arena, "%s/%s", t->algorithm, t->protocol);
}

static bool same_choice(const struct dl_collective_time *a, const struct dl_collective_time *b) {
    if ((a->protocol == NULL) != (b->protocol == NULL) || strcmp(a->algorithm, b->algorithm) != 0)
        return false;
    return a->protocol == NULL || strcmp(a->protocol, b->protocol) == 0;
}

/* The model from the first sample to the last; a switch is the first drawn size of the new choice.
 */
static void put_model(struct dl_figure *out, int group, const struct curve *curve) {
    const struct dl_coll_measured *m = &curve->measured;
    const double low = fmax(1, m->samples[0].bytes), high = m->samples[m->sample_count - 1].bytes;
    struct dl_collective_time before = {0}, now;
    for (int i = 0; i < CURVE_POINTS; i++) {
        const double bytes =
            i + 1 == CURVE_POINTS ? high : low * pow(high / low, (double)i / (CURVE_POINTS - 1));
        if (!model_at(curve, bytes, &now)) return;
        put(out, group, MODEL, bytes, now.time_s);
        if (before.algorithm == NULL || !same_choice(&before, &now))
            put(out, group, SWITCH, bytes, now.time_s)[6].string =
                choice_name(out->table.arena, &now);
        before = now;
    }
}

static void put_fit(struct dl_figure *out, int group, const struct curve *curve,
                    const struct dl_piece *pieces, int count) {
    const struct dl_coll_measured *m = &curve->measured;
    double from = fmax(1, m->samples[0].bytes);
    for (int k = 0; k < count; k++) {
        const double to = fmin(pieces[k].max_bytes, m->samples[m->sample_count - 1].bytes);
        const char *piece = dl_arena_printf(out->table.arena, "%d", k + 1);
        for (int i = 0; i <= 24; i++) {
            const double bytes = from * pow(to / from, i / 24.0);
            const double time_s = pieces[k].alpha_s + pieces[k].beta_s_per_byte * bytes;
            put(out, group, FIT, bytes, time_s)[6].string = piece;
        }
        put(out, group, FIT, to, NAN)[6].string = piece; /* a gap between the pieces */
        from = to;
    }
}

/* Where latency ends: the first size at which the fit takes twice the time of the smallest. */
static void put_doubled(struct dl_figure *out, int group, const struct curve *curve,
                        const struct dl_piece *pieces, int count) {
    const struct dl_coll_measured *m = &curve->measured;
    const double low = fmax(1, m->samples[0].bytes), high = m->samples[m->sample_count - 1].bytes;
    const double twice_s = 2 * dl_coll_fit_s(pieces, count, low);
    enum { STEPS = 1000 };
    for (int i = 1; i <= STEPS && count > 0; i++) {
        const double bytes = low * pow(high / low, (double)i / STEPS);
        const double time_s = dl_coll_fit_s(pieces, count, bytes);
        if (time_s >= twice_s) {
            put(out, group, DOUBLED, bytes, time_s);
            return;
        }
    }
}

static void put_curve(struct dl_context *context, struct dl_figure *out, int group,
                      const struct curve *curve) {
    const struct dl_coll_measured *m = &curve->measured;
    struct dl_piece pieces[DL_COLL_FIT_PIECES];
    double fit_frac = NAN, model_sum = 0;
    int modelled = 0;
    const int count =
        dl_coll_fit(m->samples, m->sample_count, DL_COLL_FIT_PIECES, pieces, &fit_frac);
    for (int i = 0; i < m->sample_count; i++) {
        const struct dl_coll_sample *s = &m->samples[i];
        struct dl_collective_time t;
        double model_pct = NAN;
        if (model_at(curve, s->bytes, &t)) {
            model_pct = 100 * (t.time_s / s->time_s - 1);
            model_sum += fabs(model_pct);
            modelled++;
        }
        const double fit_pct =
            count > 0 ? 100 * (dl_coll_fit_s(pieces, count, s->bytes) / s->time_s - 1) : NAN;
        union dl_cell *cells = put(out, group, SAMPLE, fmax(1, s->bytes), s->time_s);
        cells[4].number = fit_pct;
        cells[5].number = model_pct;
    }
    if (count > 0) put_fit(out, group, curve, pieces, count);
    put_model(out, group, curve);
    if (count > 0) put_doubled(out, group, curve, pieces, count);
    out->labels[group - 1] = curve->label;
    out->notes[group - 1] = dl_arena_printf(
        context->arena, "mean |residual|: fit of %d piece%s %.1f %%, model %.0f %%", count,
        count == 1 ? "" : "s", 100 * fit_frac, modelled > 0 ? model_sum / modelled : NAN);
}

static enum dl_code too_many(struct dl_err *err) {
    return dl_fail(
        err, DL_ERR_USAGE,
        "more than %d series; choose some with --where COLUMN=VALUE, e.g. --where ranks=8 --where "
        "library=NCCL",
        (int)DL_PLOT_CURVES);
}

static enum dl_code from_files(struct dl_context *context, const struct dl_options *options,
                               struct curve *curves, int *count, struct dl_err *err) {
    const int files = options->positional_count - 1;
    struct dl_filters *filters = dl_arena_alloc(context->arena, 1, sizeof *filters);
    struct dl_csv *csvs = dl_arena_alloc(context->arena, (size_t)files, sizeof *csvs);
    struct dl_data data;
    DL_TRY(dl_filters_read(options, context->arena, filters, err));
    for (int i = 0; i < files; i++) {
        DL_TRY(dl_csv_read(options->positional[i + 1], context->arena, &csvs[i], err));
        if (dl_csv_column(&csvs[i], "collective") < 0)
            return dl_fail_at(
                err, csvs[i].name, 1, 1, NULL,
                "expected a table of collectives (columns collective, size_bytes, ...)");
    }
    DL_TRY(dl_filters_check(filters, csvs, files, err));
    DL_TRY(dl_inputs_overrides(context, options, &data, err));
    for (int i = 0; i < files; i++) {
        struct dl_series series;
        struct dl_csv chosen;
        dl_filters_apply(filters, &csvs[i], context->arena, &chosen);
        DL_TRY(dl_series_read(&chosen, context->arena, &series, err));
        for (int r = 0; r < series.count; r++) {
            const struct dl_series_row *row = &series.rows[r];
            if (row->series != r || row->sizes < 2) continue;
            if (*count == DL_PLOT_CURVES) return too_many(err);
            struct curve *curve = &curves[*count];
            const char *why;
            dl_series_measured(&series, r, -1, &curve->measured);
            DL_TRY(dl_series_system(&data, row, context->arena, &curve->system, &why, err));
            if (why != NULL) {
                context->note(context, "%s: not drawn: %s", row->id, why);
                continue;
            }
            ++*count;
            curve->request = row->match.request;
            const double launch_s = curve->system.device->launch_s;
            curve->launches_s = dl_known(launch_s) ? row->match.launches * launch_s : 0;
            curve->label = dl_arena_printf(
                context->arena, "%s %s, %s, %lld x %lld devices", row->text.library,
                dl_collective_op_names[curve->request.op], row->match.system,
                (long long)curve->request.nodes, (long long)curve->request.ranks_per_node);
        }
    }
    return dl_inputs_overrides_used(context, &data, err);
}

static enum dl_code from_profile(struct dl_context *context, const struct dl_options *options,
                                 struct curve *curves, int *count, struct dl_err *err) {
    const char *name = dl_option_text(options, "system");
    const struct dl_system *system;
    struct dl_data data;
    DL_TRY(dl_inputs_overrides(context, options, &data, err));
    DL_TRY(dl_data_system(&data, name != NULL ? name : "local", context->arena, &system, err));
    DL_TRY(dl_inputs_overrides_used(context, &data, err));
    for (int i = 0; i < system->collective_count; i++) {
        const struct dl_coll_measured *m = &system->collectives[i];
        const int library = dl_library_find(m->library), op = dl_collective_op_find(m->operation);
        if (library < 0 || op < 0 || m->sample_count < 2 || m->ranks % m->nodes != 0) continue;
        if (*count == DL_PLOT_CURVES) break;
        struct curve *curve = &curves[(*count)++];
        *curve = (struct curve){.measured = *m, .system = *system};
        curve->system.collective_count = 0;
        curve->request = (struct dl_collective_request){.op = (enum dl_collective_op)op,
                                                        .library = (enum dl_library)library,
                                                        .nodes = m->nodes,
                                                        .ranks_per_node = m->ranks / m->nodes,
                                                        .flows_per_adapter = 1};
        curve->label = dl_arena_printf(context->arena, "%s %s, %s, %lld x %lld devices", m->library,
                                       m->operation, system->name, (long long)m->nodes,
                                       (long long)(m->ranks / m->nodes));
    }
    return DL_OK;
}

enum dl_code dl_plot_alphabeta(struct dl_context *context, const struct dl_options *options,
                               struct dl_figure *out, struct dl_err *err) {
    struct curve *curves = dl_arena_alloc(context->arena, DL_PLOT_CURVES, sizeof *curves);
    int count = 0;
    if (options->positional_count > 1)
        DL_TRY(from_files(context, options, curves, &count, err));
    else
        DL_TRY(from_profile(context, options, curves, &count, err));
    if (count == 0) {
        return dl_fail(
            err, DL_ERR_USAGE,
            "no series of two sizes or more to draw; give a table of collectives, such as "
            "data/collectives/published.csv --where ranks=8, or a --system with measured "
            "collectives");
    }
    dl_table_init(&out->table, context->arena, columns, sizeof columns / sizeof columns[0]);
    for (int g = 0; g < count; g++) put_curve(context, out, g + 1, &curves[g]);
    out->group_count = count;
    out->title = "Time of a collective by message size: measured, alpha-beta fit, model";
    out->subtitle = "circles: measured; solid: fit in pieces; dotted: model of the system file";
    out->curves = (struct dl_plot_curves){.x = 2,
                                          .curve = 3,
                                          .point = 3,
                                          .kind = 1,
                                          .curve_kind = FIT,
                                          .point_kind = SAMPLE,
                                          .log_x = true,
                                          .log_y = true,
                                          .x_scale = 1,
                                          .y_scale = 1e-6,
                                          .x_name = "message size (bytes)",
                                          .y_name = "time (µs)",
                                          .point_note = ", measured; line: fit"};
    return DL_OK;
}
