/* interval.c - see interval.h. */
#include "model/predict/interval.h"

#include <math.h>
#include <string.h>

#include "model/base/linear.h"

#define I(member, type, ...) DL_FIELD(struct dl_interval_model, member, type, __VA_ARGS__)
#define SIGMA(member, text)                                                                        \
    I(member, NUMBER, DL_RANGE(0, 5, DL_UNIT_NONE), .required = true, .help = text)
static const struct dl_field framework_fields[] = {
    DL_FIELD(struct dl_interval_framework, framework, STRING, .required = true, .help = "its name"),
    DL_FIELD(struct dl_interval_framework, release, STRING, .required = true, .help = "release"),
    DL_FIELD(struct dl_interval_framework, precision, STRING, .required = true,
             .help = "precision of the runs"),
    DL_FIELD(struct dl_interval_framework, sigma_log, NUMBER, DL_RANGE(0, 5, DL_UNIT_NONE),
             .required = true, .help = "what the runs leave unknown of its effect"),
    {.key = NULL},
};
static const struct dl_schema framework_schema = {.name = "framework",
                                                  .summary = "a release in a precision",
                                                  .size = sizeof(struct dl_interval_framework),
                                                  .fields = framework_fields};
static const struct dl_field device_fields[] = {
    DL_FIELD(struct dl_interval_device, name, STRING, .required = true, .help = "file of devices/"),
    DL_FIELD(struct dl_interval_device, sigma_log, NUMBER, DL_RANGE(0, 5, DL_UNIT_NONE),
             .required = true, .help = "what the runs leave unknown of its effect"),
    {.key = NULL},
};
static const struct dl_schema device_schema = {.name = "device",
                                               .summary = "a device with measured runs",
                                               .size = sizeof(struct dl_interval_device),
                                               .fields = device_fields};
static const struct dl_field interval_fields[] = {
    SIGMA(source_sigma_log, "spread between those who measure"),
    SIGMA(framework_sigma_log, "spread between releases of frameworks in a precision"),
    SIGMA(device_sigma_log, "spread between devices"),
    SIGMA(workload_sigma_log, "spread between networks"),
    SIGMA(communication_sigma_log, "spread of exposed communication"),
    SIGMA(row_sigma_log, "spread of single runs"),
    SIGMA(anchored_sigma_log, "spread of all where a run of the same job was measured"),
    SIGMA(kernels_sigma_log, "usual spread of kernels and collectives, which is in the others"),
    I(quantile_ratio, NUMBER, DL_RANGE(0.1, 10, DL_UNIT_NONE), .required = true,
      .help = "ends of 80 % intervals / standard deviation"),
    I(constants_hash, STRING, .required = true, .help = "of the constants whose errors these are"),
    I(frameworks, LIST, .count_offset = offsetof(struct dl_interval_model, framework_count),
      .child = &framework_schema, .help = "releases with measured runs"),
    I(devices, LIST, .count_offset = offsetof(struct dl_interval_model, device_count),
      .child = &device_schema, .help = "devices with measured runs"),
    {.key = NULL},
};
const struct dl_schema dl_interval_schema = {
    .name = "dlmodel-intervals",
    .summary = "spread of the errors of runs that were in no fit, written by make generalize",
    .size = sizeof(struct dl_interval_model),
    .fields = interval_fields,
    .top_level = true,
};

static bool same(const char *a, const char *b) {
    return a != NULL && b != NULL && strcmp(a, b) == 0;
}

static double framework_sigma(const struct dl_interval_model *m, const struct dl_interval_case *c) {
    for (int i = 0; i < m->framework_count; i++) {
        const struct dl_interval_framework *f = &m->frameworks[i];
        if (same(f->framework, c->framework) && same(f->release, c->release) &&
            same(f->precision, dl_precision_names[c->precision]))
            return f->sigma_log;
    }
    return m->framework_sigma_log;
}

static double device_sigma(const struct dl_interval_model *m, const struct dl_interval_case *c) {
    for (int i = 0; i < m->device_count; i++) {
        if (same(m->devices[i].name, c->device)) return m->devices[i].sigma_log;
    }
    return m->device_sigma_log;
}

/* Squares that kernels and collectives add beyond the usual, which is part of what was seen. */
static double unusual_kernels(const struct dl_interval_model *m, double model_sigma_log) {
    if (!dl_known(model_sigma_log)) return 0;
    return fmax(0, model_sigma_log * model_sigma_log - m->kernels_sigma_log * m->kernels_sigma_log);
}

double dl_interval_shared_sigma_log(const struct dl_interval_model *m,
                                    const struct dl_interval_case *c) {
    return hypot(m->source_sigma_log, hypot(device_sigma(m, c), m->workload_sigma_log));
}

double dl_interval_sigma_log(const struct dl_interval_model *m, const struct dl_interval_case *c) {
    if (c->anchored) return m->anchored_sigma_log;
    const double parts[] = {m->source_sigma_log,
                            framework_sigma(m, c),
                            device_sigma(m, c),
                            m->workload_sigma_log,
                            c->exposed_frac * m->communication_sigma_log,
                            m->row_sigma_log};
    double sum = unusual_kernels(m, c->model_sigma_log);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) sum += parts[i] * parts[i];
    return sqrt(sum);
}

/* Effects: this system and framework, its communication, each precision, each network. */
enum { OWN, COMMUNICATION, FIRST_PRECISION };

struct dl_posterior {
    const struct dl_interval_model *model;
    const char **workloads; /* of the runs */
    size_t workload_count, run_count, effect_count;
    double *mean;
    gsl_matrix *covariance;
};

static size_t workload_effect(const struct dl_posterior *p, const char *workload) {
    size_t i = 0;
    while (i < p->workload_count && strcmp(p->workloads[i], workload) != 0) i++;
    return FIRST_PRECISION + DL_PRECISIONS + i;
}

static double square(double x) { return x * x; }

static double prior_variance(const struct dl_interval_model *m, size_t effect) {
    if (effect == OWN) return square(m->source_sigma_log) + square(m->device_sigma_log);
    if (effect == COMMUNICATION)
        return square(m->communication_sigma_log) + square(m->source_sigma_log);
    return effect < FIRST_PRECISION + DL_PRECISIONS ? square(m->framework_sigma_log)
                                                    : square(m->workload_sigma_log);
}

enum { TERMS = 4 };
/* The effects of a run and their weights; the last one may be a network without runs. */
static void terms_of(const struct dl_posterior *p, const char *workload,
                     enum dl_precision precision, double exposed_frac, size_t effects[TERMS],
                     double weights[TERMS]) {
    const size_t of[TERMS] = {OWN, COMMUNICATION, FIRST_PRECISION + (size_t)precision,
                              workload_effect(p, workload)};
    for (int t = 0; t < TERMS; t++) {
        effects[t] = of[t];
        weights[t] = of[t] == COMMUNICATION ? exposed_frac : 1 - exposed_frac;
    }
}

/* Inverse prior + sum of z z' / row variance, and sum of z y / row variance. */
static void add_runs(const struct dl_posterior *p, const struct dl_measured_run *runs,
                     double row_variance, double *right) {
    for (size_t e = 0; e < p->effect_count; e++)
        gsl_matrix_set(p->covariance, e, e, 1 / fmax(1e-8, prior_variance(p->model, e)));
    for (size_t i = 0; i < p->run_count; i++) {
        size_t effects[TERMS];
        double weights[TERMS];
        terms_of(p, runs[i].workload, runs[i].precision, runs[i].exposed_frac, effects, weights);
        for (int a = 0; a < TERMS; a++) {
            right[effects[a]] += weights[a] * runs[i].log_ratio / row_variance;
            for (int b = 0; b < TERMS; b++)
                *gsl_matrix_ptr(p->covariance, effects[a], effects[b]) +=
                    weights[a] * weights[b] / row_variance;
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
    const size_t most = FIRST_PRECISION + DL_PRECISIONS + count;
    double *room = dl_arena_alloc(arena, 2 * most + most * most, sizeof *room);
    gsl_matrix *matrix = dl_arena_alloc(arena, 1, sizeof *matrix);
    if (p == NULL || room == NULL || matrix == NULL)
        return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    *p = (struct dl_posterior){.model = model, .run_count = count, .mean = room};
    p->workloads = dl_arena_alloc(arena, count, sizeof *p->workloads);
    if (p->workloads == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    for (size_t i = 0; i < count; i++) {
        if (workload_effect(p, runs[i].workload) ==
            FIRST_PRECISION + DL_PRECISIONS + p->workload_count)
            p->workloads[p->workload_count++] = runs[i].workload;
    }
    p->effect_count = FIRST_PRECISION + DL_PRECISIONS + p->workload_count;
    /* the matrix in the arena, so that nothing has to be freed */
    *matrix = gsl_matrix_view_array(room + 2 * most, p->effect_count, p->effect_count).matrix;
    p->covariance = matrix;
    double *right = room + most;
    add_runs(p, runs, fmax(1e-6, square(model->row_sigma_log)), right);
    if (!dl_cholesky_invert(p->covariance))
        return dl_fail(err, DL_ERR_SYSTEM, "measured runs: singular equations");
    for (size_t a = 0; a < p->effect_count; a++)
        for (size_t b = 0; b < p->effect_count; b++)
            p->mean[a] += gsl_matrix_get(p->covariance, a, b) * right[b];
    *out = p;
    return DL_OK;
}

struct dl_posterior_shift dl_posterior_shift(const struct dl_posterior *p, const char *workload,
                                             enum dl_precision precision, double exposed_frac) {
    size_t effects[TERMS];
    double weights[TERMS], variance = square(p->model->row_sigma_log);
    struct dl_posterior_shift shift = {0, 0, 0};
    terms_of(p, workload, precision, exposed_frac, effects, weights);
    for (int a = 0; a < TERMS; a++) {
        if (effects[a] >= p->effect_count) { /* a network without runs */
            variance += square(weights[a]) * prior_variance(p->model, effects[a]);
            continue;
        }
        if (effects[a] == COMMUNICATION)
            shift.communication_log += p->mean[effects[a]];
        else
            shift.compute_log += p->mean[effects[a]];
        for (int b = 0; b < TERMS; b++) {
            if (effects[b] < p->effect_count)
                variance +=
                    weights[a] * weights[b] * gsl_matrix_get(p->covariance, effects[a], effects[b]);
        }
    }
    shift.sigma_log = sqrt(variance);
    return shift;
}

size_t dl_posterior_runs(const struct dl_posterior *p) { return p->run_count; }
