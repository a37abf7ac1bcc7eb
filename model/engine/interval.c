/* interval.c - see interval.h. */
#include "model/engine/interval.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "model/statistics/linear.h"

#define SAME_NETWORK_LOG 0.005 /* ResNet-101 and ResNeXt-101 32x4d differ by 0.0084 */

static bool same(const char *a, const char *b) {
    return a != NULL && b != NULL && strcmp(a, b) == 0;
}

/* NULL where it was never measured. */
static const double *release_of(const struct dl_interval_model *m,
                                const struct dl_interval_case *c) {
    for (int i = 0; i < m->release_count; i++) {
        const struct dl_interval_release *f = &m->releases[i];
        if (same(f->framework, c->framework) && same(f->release, c->release) &&
            same(f->precision, dl_precision_names[c->precision]))
            return &f->sigma_log;
    }
    return NULL;
}

static const double *framework_of(const struct dl_interval_model *m,
                                  const struct dl_interval_case *c) {
    for (int i = 0; i < m->framework_count; i++)
        if (same(m->frameworks[i].name, c->framework)) return &m->frameworks[i].sigma_log;
    return NULL;
}

static const double *device_of(const struct dl_interval_model *m,
                               const struct dl_interval_case *c) {
    for (int i = 0; i < m->device_count; i++) {
        if (same(m->devices[i].kernels, c->kernels) &&
            same(m->devices[i].architecture, c->architecture))
            return &m->devices[i].sigma_log;
    }
    return NULL;
}

/* Sources that measured the device in the precision of a case. */
static int64_t device_sources(const struct dl_interval_model *m, const struct dl_interval_case *c) {
    for (int i = 0; i < m->arithmetic_count; i++) {
        const struct dl_interval_arithmetic *a = &m->arithmetics[i];
        if (same(a->kernels, c->kernels) && same(a->architecture, c->architecture) &&
            same(a->precision, dl_precision_names[c->precision]))
            return a->source_count;
    }
    return 0;
}

static bool pair_of(const struct dl_interval_model *m, const struct dl_interval_case *c) {
    for (int i = 0; i < m->pair_count; i++)
        if (same(m->pairs[i].system, c->system) && same(m->pairs[i].framework, c->framework))
            return true;
    return false;
}

bool dl_interval_same_network(double x, double y) {
    return x > 0 && y > 0 && fabs(log(x / y)) <= SAME_NETWORK_LOG;
}

static bool network_of(const struct dl_interval_model *m, const struct dl_interval_case *c) {
    for (int i = 0; i < m->network_count; i++)
        if (dl_interval_same_network(m->network_parameters[i], c->parameters)) return true;
    for (int i = 0; i < m->layer_kind_count; i++)
        if (same(m->layer_kinds[i], c->layers)) return true;
    return false;
}

bool dl_interval_measured_device(const struct dl_interval_model *model, const char *kernels,
                                 const char *architecture) {
    const struct dl_interval_case c = {.kernels = kernels, .architecture = architecture};
    return device_of(model, &c) != NULL;
}

static double release_sigma(const struct dl_interval_model *m, const struct dl_interval_case *c) {
    const double *measured = release_of(m, c);
    return measured != NULL ? *measured : m->release_sigma_log;
}

static double framework_sigma(const struct dl_interval_model *m, const struct dl_interval_case *c) {
    const double *measured = framework_of(m, c);
    return measured != NULL ? *measured : m->framework_sigma_log;
}

static double device_sigma(const struct dl_interval_model *m, const struct dl_interval_case *c) {
    const double *measured = device_of(m, c);
    return measured != NULL ? *measured : m->device_sigma_log;
}

static bool is_narrow(enum dl_precision precision) {
    return precision != DL_FP32 && precision != DL_TF32;
}

void dl_interval_weights(const struct dl_interval_case *c, double weights[DL_INTERVAL_PARTS]) {
    weights[DL_INTERVAL_COMMUNICATION] = c->exposed_frac;
    weights[DL_INTERVAL_OVERHEAD] = c->overhead_frac;
    weights[DL_INTERVAL_NARROW] = is_narrow(c->precision) ? 1 : 0;
    weights[DL_INTERVAL_KERNELS] = dl_known(c->model_sigma_log) ? c->model_sigma_log : 0;
}

static double square(double x) { return x * x; }

/* A run's own variance. */
static double row_variance(const struct dl_interval_model *m, const struct dl_interval_case *c) {
    const double sigmas[DL_INTERVAL_PARTS] = {[DL_INTERVAL_COMMUNICATION] =
                                                  m->row_communication_sigma_log,
                                              [DL_INTERVAL_OVERHEAD] = m->row_overhead_sigma_log,
                                              [DL_INTERVAL_NARROW] = m->row_narrow_sigma_log,
                                              [DL_INTERVAL_KERNELS] = m->row_kernels_ratio};
    double weights[DL_INTERVAL_PARTS], sum = square(m->row_sigma_log);
    dl_interval_weights(c, weights);
    for (int p = 0; p < DL_INTERVAL_PARTS; p++) sum += square(weights[p] * sigmas[p]);
    return fmax(1e-6, sum);
}

double dl_interval_sigma_log(const struct dl_interval_model *m, const struct dl_interval_case *c) {
    double sum = row_variance(m, c) + square(c->exposed_frac * m->communication_sigma_log) +
                 square(c->overhead_frac * m->overhead_sigma_log);
    if (!c->anchored)
        sum += square(m->source_sigma_log) + square(framework_sigma(m, c)) +
               square(release_sigma(m, c)) + square(device_sigma(m, c)) +
               square(m->workload_sigma_log) + square(m->job_sigma_log);
    return sqrt(sum);
}

double dl_interval_frameworks_sigma_log(const struct dl_interval_model *m,
                                        const struct dl_interval_case *c) {
    return m->frameworks_sigma_log > 0
               ? hypot(m->frameworks_sigma_log, c->exposed_frac * m->row_communication_sigma_log)
               : 0;
}

double dl_interval_half_log(double alternatives_sigma_log, double low_s, double high_s) {
    return alternatives_sigma_log > 0 ? DL_NORMAL_80 * alternatives_sigma_log
                                      : log(high_s / low_s) / 2;
}

double dl_interval_device_covariate(int64_t sources) { return 1 / sqrt(1 + (double)sources); }

void dl_interval_covariates(const struct dl_interval_case *c, const struct dl_interval_known *known,
                            double covariate[DL_WIDTHS]) {
    const bool mixed = c->precision == DL_MIXED || c->precision == DL_FP16;
    covariate[DL_WIDTH_ALL] = 1;
    covariate[DL_WIDTH_FRAMEWORK] = c->anchored || known->framework ? 0 : 1;
    covariate[DL_WIDTH_RELEASE] = c->anchored || known->release ? 0 : 1;
    covariate[DL_WIDTH_DEVICE] =
        c->anchored ? 0 : dl_interval_device_covariate(known->device_sources);
    covariate[DL_WIDTH_COMMUNICATION] = c->exposed_frac;
    covariate[DL_WIDTH_OVERHEAD] = c->waits_frac;
    covariate[DL_WIDTH_MIXED] = mixed ? 1 : 0;
    covariate[DL_WIDTH_KERNELS] = dl_known(c->model_sigma_log) ? c->model_sigma_log : 0;
    covariate[DL_WIDTH_NETWORK] = c->anchored || known->network ? 0 : 1;
    covariate[DL_WIDTH_ASSUMED] = !c->anchored && c->release_assumed ? 1 : 0; /* F-UNVERSIONED */
    covariate[DL_WIDTH_STRANGER] = c->anchored || known->pair ? 0 : 1;
    covariate[DL_WIDTH_SETUP] = c->devices > 1 ? covariate[DL_WIDTH_STRANGER] : 0;
    covariate[DL_WIDTH_STRANGER_COMMUNICATION] = covariate[DL_WIDTH_STRANGER] * c->exposed_frac;
    covariate[DL_WIDTH_STRANGER_OVERHEAD] = covariate[DL_WIDTH_STRANGER] * c->waits_frac;
}

double dl_interval_end_log(const struct dl_interval_model *m, const struct dl_interval_case *c,
                           enum dl_interval_end end, double parts[DL_WIDTHS]) {
    const struct dl_interval_known known = {framework_of(m, c) != NULL, release_of(m, c) != NULL,
                                            network_of(m, c), pair_of(m, c), device_sources(m, c)};
    const struct dl_interval_widths *widths = c->anchored          ? &m->anchored_widths
                                              : end == DL_FAST_END ? &m->fast_widths
                                                                   : &m->widths;
    double covariate[DL_WIDTHS], sum = 0;
    dl_interval_covariates(c, &known, covariate);
    for (int k = 0; k < DL_WIDTHS; k++) {
        const double part = square(widths->half_log[k] * covariate[k]);
        if (parts != NULL) parts[k] = part;
        sum += part;
    }
    return sqrt(sum);
}

/* Effects: this system and framework, its communication, its overhead, each precision, each
 * network, each job. */
enum { OWN, COMMUNICATION, OVERHEAD, FIRST_PRECISION };
enum { FIRST_WORKLOAD = FIRST_PRECISION + DL_PRECISIONS };

struct job {
    const char *workload, *release;
    enum dl_precision precision;
    double batch_per_device_samples;
};

struct dl_posterior {
    const struct dl_interval_model *model;
    struct dl_interval_case first; /* of the first run: all have its framework and device */
    const char **workloads;        /* of the runs */
    struct job *jobs;              /* of the runs */
    size_t workload_count, job_count, run_count, effect_count;
    double *mean;
    gsl_matrix *covariance;
};

static size_t find_workload(const struct dl_posterior *p, const char *workload) {
    size_t i = 0;
    while (i < p->workload_count && strcmp(p->workloads[i], workload) != 0) i++;
    return i;
}

/* Batches within 1 %: they may be printed with rounding. */
static bool same_job(const struct job *a, const struct job *b) {
    const double x = a->batch_per_device_samples, y = b->batch_per_device_samples;
    return a->precision == b->precision && strcmp(a->workload, b->workload) == 0 &&
           (a->release == b->release || same(a->release, b->release)) &&
           fabs(x - y) <= 0.01 * fmax(x, y);
}

static size_t find_job(const struct dl_posterior *p, const struct job *job) {
    size_t i = 0;
    while (i < p->job_count && !same_job(&p->jobs[i], job)) i++;
    return i;
}

static struct job job_of(const char *workload, const struct dl_interval_case *c) {
    return (struct job){workload, c->release, c->precision, c->batch_per_device_samples};
}

enum term { TERM_OWN, TERM_COMMUNICATION, TERM_OVERHEAD, TERM_PRECISION, TERM_WORKLOAD, TERM_JOB };
enum { TERMS = TERM_JOB + 1 };

/* Before any run: narrower where the framework, its release or the device was measured. */
static double prior_variance(const struct dl_posterior *p, enum term term,
                             enum dl_precision precision) {
    const struct dl_interval_model *m = p->model;
    const double ratio = square(m->update_ratio);
    struct dl_interval_case c = p->first;
    c.precision = precision;
    switch (term) {
    case TERM_OWN:
        return ratio * (square(m->source_sigma_log) + square(framework_sigma(m, &c)) +
                        square(device_sigma(m, &c)));
    case TERM_COMMUNICATION:
        return ratio * square(m->communication_sigma_log) + square(m->source_sigma_log);
    case TERM_OVERHEAD: return ratio * square(m->overhead_sigma_log);
    case TERM_PRECISION: return square(release_sigma(m, &c));
    case TERM_WORKLOAD: return square(m->workload_sigma_log);
    default: return square(m->job_sigma_log);
    }
}

/* The effects of a run and their weights; NO_RUNS: a network or job that no run had. */
#define NO_RUNS SIZE_MAX
static void terms_of(const struct dl_posterior *p, const char *workload,
                     const struct dl_interval_case *c, size_t effects[TERMS],
                     double weights[TERMS]) {
    const struct job job = job_of(workload, c);
    const size_t w = find_workload(p, workload), j = find_job(p, &job);
    effects[TERM_OWN] = OWN;
    effects[TERM_COMMUNICATION] = COMMUNICATION;
    effects[TERM_OVERHEAD] = OVERHEAD;
    effects[TERM_PRECISION] = FIRST_PRECISION + (size_t)c->precision;
    effects[TERM_WORKLOAD] = w < p->workload_count ? FIRST_WORKLOAD + w : NO_RUNS;
    effects[TERM_JOB] = j < p->job_count ? FIRST_WORKLOAD + p->workload_count + j : NO_RUNS;
    for (int t = 0; t < TERMS; t++) {
        weights[t] = t == TERM_COMMUNICATION ? c->exposed_frac
                     : t == TERM_OVERHEAD    ? c->overhead_frac
                                             : 1 - c->exposed_frac;
    }
}

static enum term term_of(const struct dl_posterior *p, size_t effect) {
    if (effect < FIRST_PRECISION) return (enum term)effect;
    if (effect < FIRST_WORKLOAD) return TERM_PRECISION;
    return effect < FIRST_WORKLOAD + p->workload_count ? TERM_WORKLOAD : TERM_JOB;
}

/* Inverse prior + sum of z z' / row variance, and sum of z y / row variance. */
static void add_runs(const struct dl_posterior *p, const struct dl_measured_run *runs,
                     double *right) {
    for (size_t e = 0; e < p->effect_count; e++) {
        const enum term term = term_of(p, e);
        const enum dl_precision precision =
            (enum dl_precision)(term == TERM_PRECISION ? e - FIRST_PRECISION : 0);
        gsl_matrix_set(p->covariance, e, e, 1 / fmax(1e-8, prior_variance(p, term, precision)));
    }
    for (size_t i = 0; i < p->run_count; i++) {
        size_t effects[TERMS];
        double weights[TERMS];
        const double variance = row_variance(p->model, &runs[i].what);
        terms_of(p, runs[i].workload, &runs[i].what, effects, weights);
        for (int a = 0; a < TERMS; a++) {
            right[effects[a]] += weights[a] * runs[i].log_ratio / variance;
            for (int b = 0; b < TERMS; b++)
                *gsl_matrix_ptr(p->covariance, effects[a], effects[b]) +=
                    weights[a] * weights[b] / variance;
        }
    }
}

enum dl_code dl_posterior_make(const struct dl_interval_model *model,
                               const struct dl_measured_run *runs, size_t count,
                               struct dl_arena *arena, const struct dl_posterior **out,
                               struct dl_err *err) {
    *out = NULL;
    if (count == 0) return DL_OK;
    struct dl_posterior *p = dl_arena_alloc(arena, 1, sizeof *p);
    const size_t most = FIRST_WORKLOAD + 2 * count;
    double *room = dl_arena_alloc(arena, 2 * most, sizeof *room);
    gsl_matrix *matrix = dl_arena_alloc(arena, 1, sizeof *matrix);
    *p = (struct dl_posterior){
        .model = model, .first = runs[0].what, .run_count = count, .mean = room};
    p->workloads = dl_arena_alloc(arena, count, sizeof *p->workloads);
    p->jobs = dl_arena_alloc(arena, count, sizeof *p->jobs);
    for (size_t i = 0; i < count; i++) {
        const struct job job = job_of(runs[i].workload, &runs[i].what);
        if (find_workload(p, job.workload) == p->workload_count)
            p->workloads[p->workload_count++] = job.workload;
        if (find_job(p, &job) == p->job_count) p->jobs[p->job_count++] = job;
    }
    p->effect_count = FIRST_WORKLOAD + p->workload_count + p->job_count;
    double *cells = dl_arena_alloc(arena, p->effect_count * p->effect_count, sizeof *cells);
    *matrix = gsl_matrix_view_array(cells, p->effect_count, p->effect_count).matrix;
    p->covariance = matrix;
    double *right = room + most;
    add_runs(p, runs, right);
    if (!dl_cholesky_invert(p->covariance))
        return dl_fail(err, DL_ERR_SYSTEM, "measured runs: singular equations");
    for (size_t a = 0; a < p->effect_count; a++)
        for (size_t b = 0; b < p->effect_count; b++)
            p->mean[a] += gsl_matrix_get(p->covariance, a, b) * right[b];
    *out = p;
    return DL_OK;
}

struct dl_posterior_shift dl_posterior_shift(const struct dl_posterior *p, const char *workload,
                                             const struct dl_interval_case *c) {
    size_t effects[TERMS];
    double weights[TERMS], variance = row_variance(p->model, c);
    struct dl_posterior_shift shift = {0, p->mean[COMMUNICATION], p->mean[OVERHEAD], 0};
    terms_of(p, workload, c, effects, weights);
    for (int a = 0; a < TERMS; a++) {
        if (effects[a] == NO_RUNS) {
            variance += square(weights[a]) * prior_variance(p, (enum term)a, c->precision);
            continue;
        }
        if (a != TERM_COMMUNICATION && a != TERM_OVERHEAD) shift.compute_log += p->mean[effects[a]];
        for (int b = 0; b < TERMS; b++) {
            if (effects[b] != NO_RUNS)
                variance +=
                    weights[a] * weights[b] * gsl_matrix_get(p->covariance, effects[a], effects[b]);
        }
    }
    shift.sigma_log = sqrt(variance);
    return shift;
}

double dl_posterior_factor(const struct dl_posterior_shift *shift,
                           const struct dl_interval_case *c) {
    const double rest = fmax(0, 1 - c->exposed_frac - c->overhead_frac);
    return rest * exp(shift->compute_log) +
           c->overhead_frac * exp(shift->compute_log + shift->overhead_log) +
           c->exposed_frac * exp(shift->communication_log);
}

double dl_posterior_end_log(const struct dl_posterior *p, const struct dl_posterior_shift *shift,
                            double end_log) {
    const double rest_log = end_log / (1 + (double)p->run_count);
    return fmin(end_log, hypot(DL_NORMAL_80 * shift->sigma_log, rest_log));
}

size_t dl_posterior_runs(const struct dl_posterior *p) { return p->run_count; }
