/* fit_base.c - the physical base of a kernel-time surface from samples: attained rate and bandwidth, latency, half-rate
 * sides, gains. Formula id F-KERNEL-SURFACE (see model/surface.h).
 * Not here: the correction (fit_process.c).
 */
#include "calibrate/fit_parts.h"

#include <gsl/gsl_blas.h>
#include <gsl/gsl_errno.h>
#include <gsl/gsl_multifit_nlinear.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* A parameter with its prior: log-normal with this median and standard deviation of the logarithm. The medians are
 * rough physics (a tile side of 32 to 128 runs at half rate, Winograd on 3x3 saves about a third of the time ...);
 * the deviations let the samples move them by factors of 2 to 3, except the rate, which must stay near the peak. */
struct parameter {
    size_t offset;
    double gemm_median, gemm_sd, conv_median, conv_sd; /* sd 0: not a parameter of this operation */
    bool is_exponent;                                  /* the value itself is normal, not its logarithm */
};

#define AT(member) offsetof(struct dl_surface, member)
static const struct parameter PARAMETERS[] = {
    {AT(latency_s), 0, 0.7, 0, 0.7, false},             /* medians of the first three: see first_medians */
    {AT(rate_flop_per_s), 0, 0.2, 0, 0.25, false},
    {AT(bandwidth_bytes_per_s), 0, 0.4, 0, 0.5, false},
    {AT(half_m), 32, 1.2, 64, 1.2, false},
    {AT(half_n), 32, 1.2, 24, 1.2, false},
    {AT(half_k), 64, 1.2, 64, 1.2, false},
    {AT(half_waves), 0.3, 1.0, 0.5, 1.0, false},
    {AT(unaligned_gain), 1, 1.0, 1, 0.5, false},
    {AT(m_trans_gain), 1, 0.3, 1, 0, false},
    {AT(n_trans_gain), 1, 0.3, 1, 0, false},
    {AT(gain_3x3), 1, 0, 1.35, 0.6, false},
    {AT(gain_5x5), 1, 0, 1.35, 0.6, false},
    {AT(stride_exponent), 0, 0, 0, 0.5, true},
    {AT(narrow_gain), 1, 0, 1, 1.0, false},
    {AT(pointwise_gain), 1, 0, 1, 0.4, false},
};
enum { PARAMETER_COUNT = sizeof PARAMETERS / sizeof PARAMETERS[0] };

/* One unit of the loss is this relative error: larger ones count linearly. */
static const double RESIDUAL_UNIT = 0.15;

struct problem {
    const struct dl_fit_set *set;
    struct dl_surface *surface; /* scratch: the parameters of the current step */
    double median[PARAMETER_COUNT], sd[PARAMETER_COUNT];
    int index[PARAMETER_COUNT]; /* of the parameters in use */
    size_t count;
};

static double *member(struct dl_surface *surface, size_t offset)
{
    return (double *)(void *)((char *)surface + offset);
}

static void set_parameters(const struct problem *problem, const gsl_vector *theta)
{
    for (size_t i = 0; i < problem->count; i++) {
        int p = problem->index[i];
        double t = gsl_vector_get(theta, i);
        *member(problem->surface, PARAMETERS[p].offset) = PARAMETERS[p].is_exponent ? t : exp(t);
    }
}

static double soft(double r)
{
    double magnitude = sqrt(2.0 * (sqrt(1.0 + r * r) - 1.0));
    return r < 0.0 ? -magnitude : magnitude;
}

static int residuals(const gsl_vector *theta, void *data, gsl_vector *out)
{
    static const struct dl_surface_scale own = {1.0, 1.0, 1.0, 1.0};
    const struct problem *problem = data;
    set_parameters(problem, theta);
    size_t n = problem->set->count;
    for (size_t i = 0; i < n; i++) {
        double base_s = dl_surface_base(problem->surface, &own, &problem->set->shapes[i], NULL);
        gsl_vector_set(out, i, soft((log(base_s) - problem->set->log_times[i]) / RESIDUAL_UNIT));
    }
    for (size_t i = 0; i < problem->count; i++) {
        int p = problem->index[i];
        double centre = PARAMETERS[p].is_exponent ? problem->median[p] : log(problem->median[p]);
        gsl_vector_set(out, n + i, (gsl_vector_get(theta, i) - centre) / problem->sd[p]);
    }
    return GSL_SUCCESS;
}

/* Medians of latency, rate and bandwidth: shares of the datasheet where it is known, else the best of the samples. */
static void first_medians(struct problem *problem)
{
    const struct dl_fit_set *set = problem->set;
    double shortest_s = INFINITY, rate = 0.0, bandwidth = 0.0;
    for (size_t i = 0; i < set->count; i++) {
        double time_s = exp(set->log_times[i]);
        shortest_s = fmin(shortest_s, time_s);
        rate = fmax(rate, set->shapes[i].flop / time_s);
        bandwidth = fmax(bandwidth, set->shapes[i].bytes / time_s);
    }
    bool rate_known = isfinite(set->peak_flop_per_s), bandwidth_known = isfinite(set->peak_bytes_per_s);
    problem->median[0] = fmax(isfinite(set->latency_s) ? set->latency_s : fmin(shortest_s * 0.7, 1e-5), 1e-7);
    problem->median[1] = rate_known ? 0.8 * set->peak_flop_per_s : fmax(rate, 1.0);
    problem->median[2] = bandwidth_known ? 0.7 * set->peak_bytes_per_s : fmax(bandwidth, 1.0);
    if (!rate_known) problem->sd[1] = 0.5;
    if (!bandwidth_known) problem->sd[2] = 0.5;
}

static void prepare(struct problem *problem)
{
    problem->count = 0;
    for (int p = 0; p < PARAMETER_COUNT; p++) {
        const struct parameter *parameter = &PARAMETERS[p];
        bool conv = problem->set->op == DL_OP_CONV;
        problem->median[p] = conv ? parameter->conv_median : parameter->gemm_median;
        problem->sd[p] = conv ? parameter->conv_sd : parameter->gemm_sd;
        if (problem->set->op == DL_OP_STREAM && p != 0 && p != 2) problem->sd[p] = 0.0;
    }
    first_medians(problem);
    for (int p = 0; p < PARAMETER_COUNT; p++) {
        bool used = problem->sd[p] > 0.0;
        if (used) problem->index[problem->count++] = p;
        if (!used) *member(problem->surface, PARAMETERS[p].offset) = problem->median[p];
    }
}

double dl_fit_round(double value, int digits)
{
    char text[64];
    snprintf(text, sizeof text, "%.*g", digits, value);
    return strtod(text, NULL);
}

enum dl_code dl_fit_base(const struct dl_fit_set *set, struct dl_surface *surface, struct dl_err *err)
{
    enum { ITERATIONS = 200, DIGITS = 5 };
    static const double TOLERANCE = 1e-10;
    struct problem problem = {.set = set, .surface = surface};
    prepare(&problem);
    surface->grouped_gain = 1.0;
    surface->channel_multiple = set->channel_multiple;
    if (set->op == DL_OP_STREAM) surface->half_m = surface->half_n = surface->half_k = surface->half_waves = 0.0;

    size_t rows = set->count + problem.count;
    gsl_multifit_nlinear_parameters settings = gsl_multifit_nlinear_default_parameters();
    gsl_multifit_nlinear_workspace *work =
        gsl_multifit_nlinear_alloc(gsl_multifit_nlinear_trust, &settings, rows, problem.count);
    gsl_vector *start = gsl_vector_alloc(problem.count);
    if (work == NULL || start == NULL) {
        if (work != NULL) gsl_multifit_nlinear_free(work);
        if (start != NULL) gsl_vector_free(start);
        return dl_fail(err, DL_ERR_SYSTEM, "out of memory while fitting kernel times");
    }
    for (size_t i = 0; i < problem.count; i++) {
        int p = problem.index[i];
        gsl_vector_set(start, i, PARAMETERS[p].is_exponent ? problem.median[p] : log(problem.median[p]));
    }
    gsl_multifit_nlinear_fdf function = {.f = residuals, .n = rows, .p = problem.count, .params = &problem};
    int info = 0;
    int status = gsl_multifit_nlinear_init(start, &function, work);
    /* No further progress (GSL_ENOPROG) and too many iterations still leave the best point so far. */
    if (status == GSL_SUCCESS) gsl_multifit_nlinear_driver(ITERATIONS, TOLERANCE, TOLERANCE, 0.0, NULL, NULL, &info, work);
    if (status == GSL_SUCCESS) set_parameters(&problem, work->x);
    for (size_t i = 0; i < problem.count; i++) {
        double *value = member(surface, PARAMETERS[problem.index[i]].offset);
        *value = dl_fit_round(*value, DIGITS);
    }
    gsl_vector_free(start);
    gsl_multifit_nlinear_free(work);
    if (status != GSL_SUCCESS || !isfinite(surface->rate_flop_per_s))
        return dl_fail(err, DL_ERR_INPUT, "the fit of kernel times failed: %s", gsl_strerror(status));
    return DL_OK;
}
