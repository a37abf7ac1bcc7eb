/* agreement.c - see agreement.h. */
#include "model/engine/agreement.h"

#include <math.h>

#include "model/statistics/stats.h"

static const double FAR_Z = 4, FREEDOM = 4; /* chosen */

static double square(double x) { return x * x; }

/* A run's own variance: that of an anchored run without what its job's other runs share. */
static double own_variance(const struct dl_interval_model *model,
                           const struct dl_interval_case *what) {
    struct dl_interval_model own = *model;
    struct dl_interval_case anchored = *what;
    own.communication_sigma_log = own.overhead_sigma_log = 0;
    anchored.anchored = true;
    return square(dl_interval_sigma_log(&own, &anchored));
}

/* log(measured / predicted) that the posterior expects, and its variance without the run's own. */
static double expected_log(const struct dl_posterior *posterior, const struct dl_measured_run *run,
                           double own, double *variance_out) {
    const struct dl_interval_case *c = &run->what;
    const struct dl_posterior_shift s = dl_posterior_shift(posterior, run->workload, c);
    *variance_out = fmax(0, square(s.sigma_log) - own);
    return (1 - c->exposed_frac) * s.compute_log + c->exposed_frac * s.communication_log +
           c->overhead_frac * s.overhead_log;
}

/* A kept run leaves the posterior by the update of a linear model: residual and variance without it
 * follow from those with it. */
static void judge(const struct dl_interval_model *model, const struct dl_posterior *posterior,
                  const struct dl_measured_run *run, bool kept, double *rest_log, double *z) {
    const double own = own_variance(model, &run->what);
    double variance;
    const double mean = expected_log(posterior, run, own, &variance),
                 residual = run->log_ratio - mean;
    if (!kept) {
        *rest_log = mean;
        *z = residual / sqrt(own + variance);
        return;
    }
    const double left = fmax(1e-12, own - fmin(variance, own));
    *rest_log = run->log_ratio - residual * own / left;
    *z = residual / sqrt(left);
}

struct judged {
    const struct dl_interval_model *model;
    const struct dl_measured_run *runs;
    size_t count, used;
    struct dl_measured_run *kept_runs;
    bool *left_out;
    double *rest_log, *z, *sizes, *scratch;
};

static enum dl_code posterior_of(struct judged *j, const struct dl_interval_model *model,
                                 struct dl_arena *arena, const struct dl_posterior **out,
                                 struct dl_err *err) {
    j->used = 0;
    for (size_t i = 0; i < j->count; i++)
        if (!j->left_out[i]) j->kept_runs[j->used++] = j->runs[i];
    return dl_posterior_make(model, j->kept_runs, j->used, arena, out, err);
}

/* Of the kept runs: median |z| of a normal distribution is 0.6745. */
static double usual_z(const struct judged *j) {
    size_t n = 0;
    for (size_t i = 0; i < j->count; i++)
        if (!j->left_out[i]) j->sizes[n++] = fabs(j->z[i]);
    return fmax(1, dl_median(j->sizes, n, j->scratch) / 0.6745);
}

/* Judges all runs; the kept one that is farthest off. */
static size_t judge_all(struct judged *j, const struct dl_posterior *posterior) {
    size_t farthest = 0;
    double most = -1;
    for (size_t i = 0; i < j->count; i++) {
        judge(j->model, posterior, &j->runs[i], !j->left_out[i], &j->rest_log[i], &j->z[i]);
        if (!j->left_out[i] && fabs(j->z[i]) > most) most = fabs(j->z[i]), farthest = i;
    }
    return farthest;
}

/* Of the kept runs. */
static double scale_of(const struct judged *j) {
    double sum = FREEDOM;
    for (size_t i = 0; i < j->count; i++)
        if (!j->left_out[i]) sum += square(j->z[i]);
    return sqrt(fmax(1, sum / (FREEDOM + (double)j->used)));
}

static const struct dl_interval_model *widened(const struct dl_interval_model *model, double ratio,
                                               struct dl_arena *arena) {
    struct dl_interval_model *wide = dl_arena_alloc(arena, 1, sizeof *wide);
    *wide = *model;
    double *const spreads[] = {&wide->source_sigma_log,
                               &wide->framework_sigma_log,
                               &wide->release_sigma_log,
                               &wide->device_sigma_log,
                               &wide->workload_sigma_log,
                               &wide->job_sigma_log,
                               &wide->row_sigma_log,
                               &wide->communication_sigma_log,
                               &wide->overhead_sigma_log,
                               &wide->row_kernels_ratio,
                               &wide->row_communication_sigma_log,
                               &wide->row_narrow_sigma_log,
                               &wide->row_overhead_sigma_log};
    for (size_t i = 0; i < sizeof spreads / sizeof spreads[0]; i++) *spreads[i] *= ratio;
    for (int k = 0; k < DL_WIDTHS; k++) {
        wide->widths.half_log[k] *= ratio;
        wide->fast_widths.half_log[k] *= ratio;
        wide->anchored_widths.half_log[k] *= ratio;
    }
    return wide;
}

enum dl_code dl_runs_agree(const struct dl_interval_model *model,
                           const struct dl_measured_run *runs, size_t count, struct dl_arena *arena,
                           struct dl_agreement *out, struct dl_err *err) {
    struct judged j = {.model = model,
                       .runs = runs,
                       .count = count,
                       .kept_runs = dl_arena_alloc(arena, count + 1, sizeof *j.kept_runs),
                       .left_out = dl_arena_alloc(arena, count + 1, sizeof *j.left_out),
                       .rest_log = dl_arena_alloc(arena, count + 1, sizeof *j.rest_log),
                       .z = dl_arena_alloc(arena, count + 1, sizeof *j.z),
                       .sizes = dl_arena_alloc(arena, count + 1, sizeof *j.sizes),
                       .scratch = dl_arena_alloc(arena, count + 1, sizeof *j.scratch)};
    const struct dl_posterior *posterior = NULL;
    *out = (struct dl_agreement){.intervals = model,
                                 .widened_ratio = 1,
                                 .left_out = j.left_out,
                                 .rest_log = j.rest_log,
                                 .off_ratio = j.z};
    if (count == 0) return DL_OK;
    DL_TRY(posterior_of(&j, model, arena, &posterior, err));
    size_t farthest = judge_all(&j, posterior);
    while (2 * (count - j.used + 1) < count && fabs(j.z[farthest]) > FAR_Z) {
        const size_t doubted = farthest;
        const struct dl_posterior *rest;
        j.left_out[doubted] = true;
        DL_TRY(posterior_of(&j, model, arena, &rest, err));
        farthest = judge_all(&j, rest);
        if (fabs(j.z[doubted]) > FAR_Z * usual_z(&j)) {
            posterior = rest;
            continue;
        }
        j.left_out[doubted] = false; /* the others disagree as much among themselves */
        j.used++;
        judge_all(&j, posterior);
        break;
    }
    out->used = j.used;
    out->widened_ratio = scale_of(&j);
    out->posterior = posterior;
    if (out->widened_ratio > 1) {
        out->intervals = widened(model, out->widened_ratio, arena);
        DL_TRY(posterior_of(&j, out->intervals, arena, &out->posterior, err));
    }
    return DL_OK;
}
