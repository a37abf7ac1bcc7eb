/* fit_base.c - F-KERNEL-MODEL: the physical base of a kernel-time model from samples: attained rate
 * and bandwidth, latency, half-rate sides, gains (see model/machine/kernel_model.h). Not here: the
 * correction (fit_process.c). */
#include "calibrate/fits/fit_internal.h"

#include <gsl/gsl_blas.h>
#include <gsl/gsl_errno.h>
#include <gsl/gsl_multifit_nlinear.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "model/statistics/stats.h"

/* A parameter with its prior for each kind of kernel: log-normal with this median and standard
 * deviation of the logarithm (exponents: normal). Medians and deviations are those of the nine
 * devices in data/kernels, rounded: what libraries have in common across hardware, so that a few
 * samples of a new device suffice. rate and bandwidth are shares of the datasheet values; the rate
 * of GEMMs has a tighter prior than the spread of the devices (0.2), because it determines large
 * GEMMs beyond the samples. A deviation of 0: not a parameter of this kind. */
enum kind {
    GEMM,
    CONV_FORWARD,
    CONV_DATA,
    CONV_WEIGHTS,
    FORWARD_BY_ALGORITHM,
    DATA_BY_ALGORITHM,
    KINDS
};
struct prior {
    double median, sd;
};
struct parameter {
    size_t offset;
    bool is_exponent;
    struct prior prior[KINDS];
};

#define AT(member) offsetof(struct dl_kernel_model, member)
/* clang-format off */
static const struct parameter PARAMETERS[] = {
    {AT(latency_s), false,
     {{8e-6, 0.7}, {6e-6, 0.5}, {7e-6, 0.5}, {15e-6, 0.6}, {6e-6, 0.5}, {7e-6, 0.5}}},
    {AT(rate_flop_per_s), false,
     {{0.85, 0.07}, {0.95, 0.2}, {1.0, 0.2}, {0.95, 0.2}, {0.95, 0.2}, {1.0, 0.2}}},
    {AT(bandwidth_bytes_per_s), false,
     {{0.6, 0.5}, {0.8, 0.3}, {0.8, 0.4}, {0.55, 0.4}, {0.8, 0.3}, {0.8, 0.4}}},
    {AT(half_m), false,
     {{34, 0.5}, {250, 0.6}, {250, 0.6}, {17, 0.6}, {0, 0}, {0, 0}}},
    {AT(half_n), false,
     {{14, 0.6}, {12, 0.6}, {26, 0.5}, {27, 0.5}, {0, 0}, {0, 0}}},
    {AT(half_k), false,
     {{70, 0.5}, {50, 0.7}, {40, 0.8}, {500, 0.7}, {50, 0.7}, {40, 0.8}}},
    {AT(half_waves), false,
     {{0.12, 0.8}, {0.8, 0.6}, {0.65, 0.6}, {0.05, 0.8}, {0, 0}, {0, 0}}},
    {AT(gains.unaligned_gain), false,
     {{0.95, 0.3}, {0.9, 0.3}, {1, 0.3}, {1, 0.3}, {0.9, 0.3}, {1, 0.3}}},
    {AT(gains.m_trans_gain), false,
     {{0.91, 0.15}, {1, 0}, {1, 0}, {1, 0}, {1, 0}, {1, 0}}},
    {AT(gains.n_trans_gain), false,
     {{1.05, 0.15}, {1, 0}, {1, 0}, {1, 0}, {1, 0}, {1, 0}}},
    {AT(gains.gain_3x3), false,
     {{1, 0}, {1.45, 0.3}, {1.7, 0.4}, {1.4, 0.35}, {1, 0}, {1, 0}}},
    {AT(gains.gain_5x5), false,
     {{1, 0}, {1.3, 0.4}, {1.1, 0.3}, {1.1, 0.35}, {1.3, 0.35}, {1.1, 0.35}}},
    {AT(exponents.stride_exponent), true,
     {{0, 0}, {0.03, 0.12}, {0.7, 0.15}, {0.05, 0.12}, {0.03, 0.15}, {0, 0}}},
    {AT(exponents.batch_exponent_3x3), true,
     {{0, 0}, {0.05, 0.2}, {0.05, 0.2}, {0.05, 0.2}, {0.2, 0.3}, {0.2, 0.3}}},
    {AT(gains.padded_pointwise_gain), false,
     {{1, 0}, {1, 0.5}, {1.2, 0.8}, {0.8, 0.8}, {1, 0.5}, {1, 0.5}}},
    {AT(gains.narrow_gain), false,
     {{1, 0}, {1, 0.4}, {4, 1.0}, {1.5, 0.4}, {1, 0.5}, {4, 0.5}}},
    {AT(exponents.wave_exponent), true,
     {{0, 0}, {0, 0}, {0.2, 0.2}, {0, 0}, {0, 0}, {0, 0}}},
    {AT(exponents.stride_channels_exponent), true,
     {{0, 0}, {0, 0}, {0, 0.2}, {0, 0}, {0, 0}, {0, 0}}},
    {AT(exponents.stride_filters_exponent), true,
     {{0, 0}, {0, 0}, {0, 0.2}, {0, 0}, {0, 0}, {0, 0}}},
    {AT(exponents.tile_exponent), true,
     {{0, 0}, {0.5, 0.3}, {0, 0}, {0, 0}, {0, 0}, {0, 0}}},
    {AT(algorithms.tile_64_gain), false,
     {{1, 0}, {0.9, 0.15}, {1, 0}, {1, 0}, {0.9, 0.2}, {0.9, 0.2}}},
    {AT(algorithms.tile_32_gain), false,
     {{1, 0}, {0.75, 0.2}, {1, 0}, {1, 0}, {0.75, 0.2}, {0.75, 0.2}}},
    {AT(algorithms.partial_waves), false,
     {{0, 0}, {0, 0}, {0, 0}, {0, 0}, {0.5, 0.5}, {0.5, 0.5}}},
    {AT(algorithms.winograd_gain), false,
     {{1, 0}, {1, 0}, {1, 0}, {1, 0}, {0.8, 0.3}, {0.8, 0.3}}},
    {AT(algorithms.transform_bytes_per_s), false,
     {{1e12, 0}, {1e12, 0}, {1e12, 0}, {1e12, 0}, {0.7, 0.4}, {0.7, 0.4}}},
    {AT(algorithms.spread_gain), false,
     {{1, 0}, {1, 0}, {1, 0}, {1, 0}, {1, 0}, {1, 0.2}}},
    {AT(algorithms.gather_gain), false,
     {{1, 0}, {1, 0}, {1, 0}, {1, 0}, {1, 0}, {0.8, 0.3}}},
    {AT(algorithms.gather_bytes_per_s), false,
     {{1e12, 0}, {1e12, 0}, {1e12, 0}, {1e12, 0}, {1e12, 0}, {0.5, 0.5}}},
    {AT(gains.pointwise_gain), false,
     {{1, 0}, {1, 0.15}, {1.05, 0.2}, {0.75, 0.25}, {1, 0.2}, {1.05, 0.2}}},
};
/* clang-format on */
enum {
    PARAMETER_COUNT = sizeof PARAMETERS / sizeof PARAMETERS[0],
    LATENCY = 0,
    RATE = 1,
    BANDWIDTH = 2
};

/* Priors for calibrate's own samples of a CPU. CPU libraries use register tiles of 16 to 64 by 6 to
 * 14 numbers and launch no kernels: small sides lose little, convolutions run at one rate whatever
 * their filter size, a call takes less than 1 us. The rate is that of the best sample, because one
 * library may attain half the rate of another (OpenBLAS without kernels for the CPU). Wide, so that
 * the samples decide. */
static const struct prior CPU_LATENCY = {1e-6, 1.0}, CPU_SIDE = {4.0, 1.0}, CPU_WAVES = {0.01, 1.0},
                          CPU_GAIN = {1.0, 0.15}, CPU_EXPONENT = {0.0, 0.1};

/* Priors of fused attention: shares of the peak from 0.2 to 0.75 (FlashAttention-2 and -3 papers,
 * Dao 2023, Shah et al. 2024); tiles of 64 to 128 queries. */
static struct prior attention_prior(size_t offset, struct prior usual) {
    static const struct prior NONE = {1.0, 0.0};
    if (offset == AT(latency_s) || offset == AT(bandwidth_bytes_per_s)) return usual;
    if (offset == AT(rate_flop_per_s)) return (struct prior){0.6, 0.5};
    if (offset == AT(half_m)) return (struct prior){40.0, 0.8};
    if (offset == AT(half_n)) return (struct prior){20.0, 0.8};
    if (offset == AT(half_k)) return (struct prior){100.0, 0.8};
    if (offset == AT(half_waves)) return (struct prior){0.3, 0.8};
    return usual.median > 0.0 ? NONE : (struct prior){0.0, 0.0};
}

/* Relative error at which the loss turns from quadratic to linear. Streams of many timers take, at
 * equal bytes, one of two times (MI300X: 4.6 us mostly, else 1.5 to 2.5): nearly least absolute
 * errors, whose estimate is the time of most. */
static const double RESIDUAL_UNIT = 0.15, RESIDUAL_UNIT_OF_TIMERS = 0.05;

struct problem {
    const struct dl_fit_set *set;
    struct dl_kernel_model *model; /* scratch: the parameters of the current step */
    double median[PARAMETER_COUNT], sd[PARAMETER_COUNT];
    int index[PARAMETER_COUNT]; /* of the parameters in use */
    size_t count;
    double residual_unit;
};

static double *member(struct dl_kernel_model *model, size_t offset) {
    return (double *)(void *)((char *)model + offset);
}

static void set_parameters(const struct problem *problem, const gsl_vector *theta) {
    for (size_t i = 0; i < problem->count; i++) {
        int p = problem->index[i];
        double t = gsl_vector_get(theta, i);
        *member(problem->model, PARAMETERS[p].offset) = PARAMETERS[p].is_exponent ? t : exp(t);
    }
}

static double soft(double r) {
    double magnitude = sqrt(2.0 * (sqrt(1.0 + r * r) - 1.0));
    return r < 0.0 ? -magnitude : magnitude;
}

static int residuals(const gsl_vector *theta, void *data, gsl_vector *out) {
    static const struct dl_kernel_model_scale own = {1.0, 1.0, 1.0, 1.0};
    const struct problem *problem = data;
    set_parameters(problem, theta);
    size_t n = problem->set->count;
    for (size_t i = 0; i < n; i++) {
        double base_s = dl_kernel_model_base(problem->model, &own, &problem->set->shapes[i], NULL);
        gsl_vector_set(out, i,
                       soft((log(base_s) - problem->set->log_times[i]) / problem->residual_unit));
    }
    for (size_t i = 0; i < problem->count; i++) {
        int p = problem->index[i];
        double centre = PARAMETERS[p].is_exponent ? problem->median[p] : log(problem->median[p]);
        gsl_vector_set(out, n + i, (gsl_vector_get(theta, i) - centre) / problem->sd[p]);
    }
    return GSL_SUCCESS;
}

static bool is_byte_rate(int p) {
    size_t offset = PARAMETERS[p].offset;
    return p == BANDWIDTH || offset == AT(algorithms.transform_bytes_per_s) ||
           offset == AT(algorithms.gather_bytes_per_s);
}

/* Attained rate of large GEMMs: the 90th percentile of the rates of samples whose sides all exceed
 * 1,024 and whose work exceeds 1e11 flop; NAN: fewer than four. Power and clocks keep a device
 * below a datasheet's rate by its own share (MI300X 0.41 and 0.33, H100 0.80 and 0.66 in 16 and 8
 * bits). */
static double sustained_rate(const struct dl_fit_set *set) {
    enum { LEAST = 4 };
    static const double LEAST_SIDE = 1024.0, LEAST_FLOP = 1e11;
    double *rates = malloc(set->count * sizeof *rates), rate = NAN;
    size_t large = 0;
    for (size_t i = 0; i < set->count && rates != NULL; i++) {
        const struct dl_kernel_model_shape *s = &set->shapes[i];
        if (s->flop >= LEAST_FLOP && fmin(s->n, s->k) >= LEAST_SIDE)
            rates[large++] = s->flop / exp(set->log_times[i]);
    }
    if (large >= LEAST) {
        dl_sort(rates, large);
        rate = dl_quantile_sorted(rates, large, 0.9);
    }
    free(rates);
    return rate;
}

/* Medians of latency, rate and bandwidth: shares of the datasheet values where known, else the best
 * samples. */
static void first_medians(struct problem *problem) {
    static const double UNKNOWN_SD = 0.5;
    const struct dl_fit_set *set = problem->set;
    double shortest_s = INFINITY, rate = 0.0, bandwidth = 0.0;
    for (size_t i = 0; i < set->count; i++) {
        double time_s = exp(set->log_times[i]);
        shortest_s = fmin(shortest_s, time_s);
        rate = fmax(rate, set->shapes[i].flop / time_s);
        bandwidth = fmax(bandwidth, set->shapes[i].bytes / time_s);
    }
    problem->median[LATENCY] = fmax(fmin(problem->median[LATENCY], shortest_s * 0.9), 1e-8);
    if (isfinite(set->latency_s)) problem->median[LATENCY] = set->latency_s;
    bool rate_known = isfinite(set->peak_flop_per_s),
         bandwidth_known = isfinite(set->peak_bytes_per_s);
    problem->median[RATE] =
        rate_known ? problem->median[RATE] * set->peak_flop_per_s : fmax(rate, 1.0);
    for (int p = BANDWIDTH; p < PARAMETER_COUNT; p++) /* shares of the bandwidth */
        if (is_byte_rate(p) && problem->sd[p] > 0.0)
            problem->median[p] =
                bandwidth_known ? problem->median[p] * set->peak_bytes_per_s : fmax(bandwidth, 1.0);
    if (!rate_known) problem->sd[RATE] = UNKNOWN_SD;
    const double sustained = set->op == DL_OP_GEMM && set->of_many ? sustained_rate(set) : NAN;
    if (sustained > 0.0) problem->median[RATE] = sustained;
    if (!bandwidth_known) problem->sd[BANDWIDTH] = UNKNOWN_SD;
}

static struct prior cpu_prior(int p, struct prior usual) {
    size_t offset = PARAMETERS[p].offset;
    if (usual.sd <= 0.0 || p == RATE || p == BANDWIDTH) return usual;
    if (p == LATENCY) return CPU_LATENCY;
    if (PARAMETERS[p].is_exponent) return CPU_EXPONENT;
    if (offset == AT(half_waves)) return CPU_WAVES;
    return offset == AT(half_m) || offset == AT(half_n) || offset == AT(half_k) ? CPU_SIDE
                                                                                : CPU_GAIN;
}

/* These do not apply to matrix units, for which libraries use other and larger tiles. */
static bool is_tile_parameter(int p) {
    size_t offset = PARAMETERS[p].offset;
    return offset == AT(exponents.tile_exponent) || offset == AT(algorithms.tile_64_gain) ||
           offset == AT(algorithms.tile_32_gain);
}

/* Tables of many sources do not tell how operands are stored; few samples do not show it. */
static bool is_transposed(int p) {
    size_t offset = PARAMETERS[p].offset;
    return offset == AT(gains.m_trans_gain) || offset == AT(gains.n_trans_gain);
}

static enum kind kind_of(const struct dl_fit_set *set) {
    if (set->op != DL_OP_CONV) return GEMM;
    if (set->by_algorithm && set->pass == DL_BACKWARD_DATA) return DATA_BY_ALGORITHM;
    if (set->by_algorithm && set->pass == DL_FORWARD) return FORWARD_BY_ALGORITHM;
    return set->pass == DL_BACKWARD_DATA      ? CONV_DATA
           : set->pass == DL_BACKWARD_WEIGHTS ? CONV_WEIGHTS
                                              : CONV_FORWARD;
}

static void prepare(struct problem *problem) {
    enum kind kind = kind_of(problem->set);
    problem->count = 0;
    for (int p = 0; p < PARAMETER_COUNT; p++) {
        struct prior prior = PARAMETERS[p].prior[kind];
        if (problem->set->own_cpu) prior = cpu_prior(p, prior);
        if (problem->set->op == DL_OP_ATTENTION)
            prior = attention_prior(PARAMETERS[p].offset, prior);
        if (problem->set->channel_multiple > 1.0 && is_tile_parameter(p))
            prior = (struct prior){PARAMETERS[p].is_exponent ? 0.0 : 1.0, 0.0};
        if (problem->set->of_many && problem->set->count < DL_FIT_MIN_SAMPLES && is_transposed(p))
            prior = (struct prior){1.0, 0.0};
        problem->median[p] = prior.median;
        problem->sd[p] = prior.sd;
    }
    first_medians(problem);
    bool stream = problem->set->op == DL_OP_STREAM;
    for (int p = 0; p < PARAMETER_COUNT; p++) {
        if (stream && p != LATENCY && p != BANDWIDTH) problem->sd[p] = 0.0;
        if (problem->sd[p] > 0.0)
            problem->index[problem->count++] = p;
        else
            *member(problem->model, PARAMETERS[p].offset) = problem->median[p];
    }
}

double dl_fit_round(double value, int digits) {
    char text[64];
    snprintf(text, sizeof text, "%.*g", digits, value);
    return strtod(text, NULL);
}

/* Fits the parameters of *model, whose form (fixed_time) is given. *loss: half the sum of squares
 * at the end, of the samples and the priors. */
static enum dl_code fit_form(const struct dl_fit_set *set, struct dl_kernel_model *model,
                             double *loss, struct dl_err *err) {
    enum { ITERATIONS = 200, DIGITS = 5 };
    static const double TOLERANCE = 1e-10;
    struct problem problem = {.set = set, .model = model, .residual_unit = RESIDUAL_UNIT};
    if (set->op == DL_OP_STREAM && set->of_many) problem.residual_unit = RESIDUAL_UNIT_OF_TIMERS;
    prepare(&problem);
    if (set->op == DL_OP_STREAM)
        model->half_m = model->half_n = model->half_k = model->half_waves = 0.0;
    size_t rows = set->count + problem.count;
    gsl_multifit_nlinear_parameters settings = gsl_multifit_nlinear_default_parameters();
    gsl_multifit_nlinear_workspace *work =
        gsl_multifit_nlinear_alloc(gsl_multifit_nlinear_trust, &settings, rows, problem.count);
    if (work == NULL)
        return dl_fail(err, DL_ERR_SYSTEM, "out of memory while fitting kernel times");
    double first[PARAMETER_COUNT];
    for (size_t i = 0; i < problem.count; i++) {
        int p = problem.index[i];
        first[i] = PARAMETERS[p].is_exponent ? problem.median[p] : log(problem.median[p]);
    }
    gsl_multifit_nlinear_fdf function = {
        .f = residuals, .n = rows, .p = problem.count, .params = &problem};
    int info = 0;
    const gsl_vector_view start = gsl_vector_view_array(first, problem.count);
    int status = gsl_multifit_nlinear_init(&start.vector, &function, work);
    /* No further progress (GSL_ENOPROG) or too many iterations still give the best point so far. */
    if (status == GSL_SUCCESS)
        gsl_multifit_nlinear_driver(ITERATIONS, TOLERANCE, TOLERANCE, 0.0, NULL, NULL, &info, work);
    if (status == GSL_SUCCESS) {
        const double norm = gsl_blas_dnrm2(gsl_multifit_nlinear_residual(work));
        *loss = norm * norm / 2.0;
        set_parameters(&problem, work->x);
    }
    for (size_t i = 0; i < problem.count; i++) {
        double *value = member(model, PARAMETERS[problem.index[i]].offset);
        *value = dl_fit_round(*value, DIGITS);
    }
    gsl_multifit_nlinear_free(work);
    if (status != GSL_SUCCESS || !isfinite(model->rate_flop_per_s))
        return dl_fail(err, DL_ERR_INPUT, "the fit of kernel times failed: %s",
                       gsl_strerror(status));
    return DL_OK;
}

enum dl_code dl_fit_base(const struct dl_fit_set *set, struct dl_kernel_model *model,
                         struct dl_err *err) {
    const bool stream = set->op == DL_OP_STREAM;
    double adds = INFINITY, overlaps = INFINITY;
    model->gains.grouped_gain = 1.0;
    model->channel_multiple = set->channel_multiple;
    model->fixed_time = DL_FIXED_TIME_ADDS;
    DL_TRY(fit_form(set, model, &adds, err));
    if (!stream || !set->of_many || set->count < DL_FIT_MIN_SAMPLES) return DL_OK;
    struct dl_kernel_model other = *model;
    other.fixed_time = DL_FIXED_TIME_OVERLAPS;
    DL_TRY(fit_form(set, &other, &overlaps, err));
    if (overlaps < adds) *model = other;
    return DL_OK;
}
