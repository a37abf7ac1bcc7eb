/* interval_fit.c - see interval_fit.h. Errors beyond what four robust standard deviations allow
 * count as that: one wrong row must not widen all intervals. */
#include "fits/interval_fit.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/core/file.h"
#include "model/core/text.h"
#include "model/statistics/mixed_model.h"
#include "model/statistics/stats.h"
#include "fits/interval_ends.h"
#include "fits/spread_of_alternatives.h"

enum { SOURCE, FRAMEWORK, RELEASE, DEVICE, WORKLOAD, JOB, COMMUNICATION, OVERHEAD, EFFECTS };
_Static_assert((int)EFFECTS <= (int)DL_MIXED_EFFECTS, "the mixed model has room");
enum { STEPS_ALL = 40 };

struct fit {
    struct dl_generalized *g;
    size_t n;
    double *errors;                     /* log(measured / predicted); NAN: none */
    double *y;                          /* the same without extremes */
    double *exposed, *overhead;         /* of each row */
    double *weights[DL_INTERVAL_PARTS]; /* of each row: what its own spread grows with */
    int *level[EFFECTS];                /* of each row */
    int level_count[EFFECTS];
    double *level_variance[EFFECTS]; /* remaining variance of each level */
    int *source;                     /* of each row: who measured it */
    bool *measured;                  /* of each source: room for sources_of */
    double most;                     /* larger errors count as that */
};

static const char *level_name(const struct dl_fit_row *row, const char *group, int effect,
                              struct dl_arena *arena) {
    switch (effect) {
    case FRAMEWORK: return row->framework;
    case RELEASE:
        return dl_arena_printf(arena, "%s\n%s\n%s", row->framework, row->release,
                               dl_precision_names[row->precision]);
    case DEVICE: return dl_arena_printf(arena, "%s\n%s", row->kernels, row->architecture);
    case WORKLOAD: return dl_arena_printf(arena, "%s\n%s", group, row->workload);
    case JOB:
        return dl_arena_printf(arena, "%s\n%s\n%s\n%s\n%s\n%s\n%.3g", group, row->system,
                               row->workload, row->framework, row->release,
                               dl_precision_names[row->precision],
                               row->samples / (double)row->devices);
    default: return group;
    }
}

/* Numbers the sources. */
static void find_sources(struct fit *f, struct dl_arena *arena) {
    const struct dl_fit_row *rows = f->g->rows->rows;
    int count = 0;
    f->source = dl_arena_alloc(arena, f->n + 1, sizeof *f->source);
    f->measured = dl_arena_alloc(arena, f->n + 1, sizeof *f->measured);
    const char **names = dl_arena_alloc(arena, f->n + 1, sizeof *names);
    for (size_t i = 0; i < f->n; i++)
        f->source[i] = dl_text_place(names, &count, INT_MAX, rows[i].source);
}

static void find_levels(struct fit *f, struct dl_arena *arena) {
    const struct dl_generalized *g = f->g;
    for (int e = 0; e < EFFECTS; e++) {
        f->level[e] = dl_arena_alloc(arena, f->n + 1, sizeof *f->level[e]);
        const char **names = dl_arena_alloc(arena, f->n + 1, sizeof *names);
        f->level_variance[e] = dl_arena_alloc(arena, f->n + 1, sizeof *f->level_variance[e]);
        for (size_t i = 0; i < f->n; i++) {
            f->level[e][i] = -1;
            if (isnan(f->y[i])) continue;
            const char *name = level_name(&g->rows->rows[i], g->groups[g->group_of[i]], e, arena);
            f->level[e][i] = dl_text_place(names, &f->level_count[e], INT_MAX, name);
        }
    }
}

static double errors_of(const struct dl_generalized *g, const struct dl_fit_prediction *p,
                        size_t row) {
    const double measured_s = g->rows->rows[row].measured_s;
    return log(measured_s / p[row].iteration_s);
}

static void find_weights(struct fit *f, size_t row) {
    double weights[DL_INTERVAL_PARTS] = {0};
    const struct dl_generalized *g = f->g;
    if (!isnan(f->y[row])) {
        const struct dl_interval_case c = dl_fit_case(&g->rows->rows[row], &g->held_out[row]);
        dl_interval_weights(&c, weights);
    }
    for (int p = 0; p < DL_INTERVAL_PARTS; p++) f->weights[p][row] = weights[p];
}

static enum dl_code prepare(struct fit *f, struct dl_arena *arena, struct dl_err *err) {
    const struct dl_generalized *g = f->g;
    f->y = dl_arena_alloc(arena, (4 + DL_INTERVAL_PARTS) * (f->n + 1), sizeof *f->y);
    f->errors = f->y + f->n;
    double *known = f->errors + f->n, *scratch = known + f->n;
    for (int p = 0; p < DL_INTERVAL_PARTS; p++)
        f->weights[p] = scratch + (size_t)(p + 1) * (f->n + 1);
    f->exposed = f->weights[DL_INTERVAL_COMMUNICATION];
    f->overhead = f->weights[DL_INTERVAL_OVERHEAD];
    size_t count = 0;
    for (size_t i = 0; i < f->n; i++) {
        f->y[i] = f->errors[i] = errors_of(g, g->held_out, i);
        find_weights(f, i);
        if (isnan(f->y[i])) continue;
        known[count++] = f->y[i];
    }
    if (count == 0) return dl_fail(err, DL_ERR_INPUT, "no row could be predicted");
    f->most = 4 * 1.4826 * fmax(0.02, dl_mad(known, count, scratch));
    for (size_t i = 0; i < f->n; i++) {
        if (isnan(f->y[i])) continue;
        f->y[i] = fmax(-f->most, fmin(f->most, f->y[i]));
    }
    find_sources(f, arena);
    find_levels(f, arena);
    return DL_OK;
}

static struct dl_mixed_model start_of(const struct fit *f) {
    struct dl_mixed_model m = {.row_count = f->n,
                               .y = f->y,
                               .effect_count = EFFECTS,
                               .row_variance = 0.01,
                               .part_count = DL_INTERVAL_PARTS};
    for (int e = 0; e < EFFECTS; e++) {
        m.effects[e] = (struct dl_mixed_effect){
            .level_count = (size_t)f->level_count[e],
            .level = f->level[e],
            .covariate = e == COMMUNICATION ? f->exposed
                         : e == OVERHEAD    ? f->overhead
                                            : NULL,
            .variance = 0.01,
            .mean_variance = f->level_variance[e],
        };
    }
    for (int p = 0; p < DL_INTERVAL_PARTS; p++)
        m.parts[p] = (struct dl_mixed_part){.covariate = f->weights[p], .variance = 0.01};
    return m;
}

/* Sources of rows of the device and precision of a row. */
static int64_t sources_of(const struct fit *f, size_t row) {
    const struct dl_fit_row *rows = f->g->rows->rows;
    int64_t count = 0;
    memset(f->measured, 0, f->n * sizeof *f->measured);
    for (size_t i = 0; i < f->n; i++) {
        if (f->level[DEVICE][i] != f->level[DEVICE][row] || f->level[DEVICE][i] < 0 ||
            rows[i].precision != rows[row].precision)
            continue;
        count += !f->measured[f->source[i]];
        f->measured[f->source[i]] = true;
    }
    return count;
}

/* Devices in a precision with the sources that measured them. */
static void list_arithmetics(const struct fit *f, struct dl_arena *arena,
                             struct dl_interval_model *out) {
    const struct dl_fit_row *rows = f->g->rows->rows;
    out->arithmetics = dl_arena_alloc(arena, f->n + 1, sizeof *out->arithmetics);
    for (size_t i = 0; i < f->n; i++) {
        bool listed = f->level[DEVICE][i] < 0;
        for (size_t k = 0; k < i && !listed; k++)
            listed = f->level[DEVICE][k] == f->level[DEVICE][i] &&
                     rows[k].precision == rows[i].precision;
        if (listed) continue;
        out->arithmetics[out->arithmetic_count++] = (struct dl_interval_arithmetic){
            rows[i].kernels, rows[i].architecture, dl_precision_names[rows[i].precision],
            sources_of(f, i)};
    }
}

static void list_networks(const struct fit *f, struct dl_arena *arena,
                          struct dl_interval_model *out) {
    const struct dl_fit_row *rows = f->g->rows->rows;
    out->network_parameters = dl_arena_alloc(arena, f->n + 1, sizeof *out->network_parameters);
    out->layer_kinds = dl_arena_alloc(arena, f->n + 1, sizeof *out->layer_kinds);
    for (size_t i = 0; i < f->n; i++) {
        if (f->level[SOURCE][i] < 0) continue;
        bool listed = false;
        for (int k = 0; k < out->network_count && !listed; k++)
            listed = dl_interval_same_network(out->network_parameters[k], rows[i].parameters);
        if (!listed && rows[i].parameters > 0)
            out->network_parameters[out->network_count++] = rows[i].parameters;
        if (rows[i].layers != NULL)
            dl_text_place(out->layer_kinds, &out->layer_kind_count, INT_MAX, rows[i].layers);
    }
}

static void list_pairs(const struct fit *f, struct dl_arena *arena, struct dl_interval_model *out) {
    const struct dl_fit_row *rows = f->g->rows->rows;
    out->pairs = dl_arena_alloc(arena, f->n + 1, sizeof *out->pairs);
    for (size_t i = 0; i < f->n; i++) {
        bool listed = f->level[SOURCE][i] < 0;
        for (int k = 0; k < out->pair_count && !listed; k++)
            listed = strcmp(out->pairs[k].system, rows[i].system) == 0 &&
                     strcmp(out->pairs[k].framework, rows[i].framework) == 0;
        if (!listed)
            out->pairs[out->pair_count++] =
                (struct dl_interval_pair){rows[i].system, rows[i].framework};
    }
}

/* Standard deviation that remains of a level. */
static double sigma_of(const struct fit *f, int effect, int level) {
    return sqrt(f->level_variance[effect][level]);
}

/* Levels that were measured, which are numbered in the order of their first rows. */
static void list_known(const struct fit *f, struct dl_arena *arena, struct dl_interval_model *out) {
    out->frameworks = dl_arena_alloc(arena, f->n + 1, sizeof *out->frameworks);
    out->releases = dl_arena_alloc(arena, f->n + 1, sizeof *out->releases);
    out->devices = dl_arena_alloc(arena, f->n + 1, sizeof *out->devices);
    for (size_t i = 0; i < f->n; i++) {
        const struct dl_fit_row *row = &f->g->rows->rows[i];
        const int framework = out->framework_count, release = out->release_count,
                  device = out->device_count;
        if (f->level[FRAMEWORK][i] == framework)
            out->frameworks[out->framework_count++] =
                (struct dl_interval_framework){row->framework, sigma_of(f, FRAMEWORK, framework)};
        if (f->level[RELEASE][i] == release)
            out->releases[out->release_count++] = (struct dl_interval_release){
                row->framework, row->release, dl_precision_names[row->precision],
                sigma_of(f, RELEASE, release)};
        if (f->level[DEVICE][i] == device)
            out->devices[out->device_count++] = (struct dl_interval_device){
                row->kernels, row->architecture, sigma_of(f, DEVICE, device)};
    }
}

/* Of runs as their source is left out, and of first sights. */
static void find_spreads(const struct fit *f, const struct dl_strangers *strangers,
                         struct dl_arena *arena, struct dl_interval_model *out) {
    const struct dl_fit_row *runs = f->g->rows->rows, *others = strangers->rows.rows;
    const size_t count = f->n + strangers->rows.count;
    struct dl_alternative *list = dl_arena_alloc(arena, count + 1, sizeof *list);
    for (size_t i = 0; i < f->n; i++) {
        const bool counted = dl_stranger_recorded(strangers, &runs[i]);
        list[i] = (struct dl_alternative){&runs[i], counted ? NAN : f->y[i]};
    }
    for (size_t i = 0; i < strangers->rows.count; i++) {
        const struct dl_first_sight_row *seen = strangers->seen[i];
        const double error = seen != NULL ? dl_stranger_error_log(seen) : NAN;
        list[f->n + i] = (struct dl_alternative){
            &others[i], dl_known(error) ? fmax(-f->most, fmin(f->most, error)) : NAN};
    }
    out->plans_sigma_log = dl_spread_of_alternatives(list, count, false, arena);
    out->frameworks_sigma_log = dl_spread_of_alternatives(list, count, true, arena);
}

enum dl_code dl_interval_fit(struct dl_generalized *g, struct dl_strangers *strangers,
                             struct dl_arena *arena, struct dl_interval_model *out,
                             struct dl_err *err) {
    struct fit f = {.g = g, .n = g->rows->count};
    DL_TRY(prepare(&f, arena, err));
    struct dl_mixed_model m = start_of(&f);
    DL_TRY(dl_mixed_fit(&m, STEPS_ALL, err));
    DL_TRY(dl_mixed_fit(&m, 0, err)); /* the levels' variances */
    *out = (struct dl_interval_model){
        .source_sigma_log = sqrt(m.effects[SOURCE].variance),
        .framework_sigma_log = sqrt(m.effects[FRAMEWORK].variance),
        .release_sigma_log = sqrt(m.effects[RELEASE].variance),
        .device_sigma_log = sqrt(m.effects[DEVICE].variance),
        .workload_sigma_log = sqrt(m.effects[WORKLOAD].variance),
        .job_sigma_log = sqrt(m.effects[JOB].variance),
        .communication_sigma_log = sqrt(m.effects[COMMUNICATION].variance),
        .overhead_sigma_log = sqrt(m.effects[OVERHEAD].variance),
        .row_sigma_log = sqrt(m.row_variance),
        .row_communication_sigma_log = sqrt(m.parts[DL_INTERVAL_COMMUNICATION].variance),
        .row_overhead_sigma_log = sqrt(m.parts[DL_INTERVAL_OVERHEAD].variance),
        .row_narrow_sigma_log = sqrt(m.parts[DL_INTERVAL_NARROW].variance),
        .row_kernels_ratio = sqrt(m.parts[DL_INTERVAL_KERNELS].variance),
        .update_ratio = 1, /* until dl_learning_choose */
        .constants_hash = dl_arena_printf(arena, "%016" PRIx64, g->constants->hash),
        .first_sight_hash = dl_arena_printf(arena, "%016" PRIx64, strangers->hash),
    };
    find_spreads(&f, strangers, arena, out);
    DL_TRY(dl_interval_ends_fit(g, strangers, arena, out, err));
    list_pairs(&f, arena, out);
    list_arithmetics(&f, arena, out);
    list_networks(&f, arena, out);
    list_known(&f, arena, out);
    return DL_OK;
}

enum dl_code dl_interval_write(const struct dl_interval_model *model, const char *path,
                               struct dl_arena *arena, struct dl_err *err) {
    const char *text = dl_json_text(&dl_interval_schema, model, arena);
    return dl_file_write(path, text, strlen(text), err);
}
