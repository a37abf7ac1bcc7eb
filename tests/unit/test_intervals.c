/* The fit of constants, the mixed model, the posterior of measured runs and the judgement of
 * decisions, against cases with known answers. */
#include "model/statistics/mixed_model.h"
#include "model/statistics/ranking.h"
#include "model/statistics/robust_fit.h"
#include "model/engine/correct.h"
#include "model/engine/interval.h"
#include "predict/compare/decisions.h"
#include "fits/interval_widths.h"
#include "tests/check.h"
#include "tests/load_workload.h"

/* Evenly distributed in (0, 1), the same in every run. */
static double uniform(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return ((double)(*state >> 11) + 0.5) / 9007199254740992.0;
}
/* Box and Muller. */
static double normal(uint64_t *state) {
    const double radius = sqrt(-2 * log(uniform(state)));
    return radius * cos(6.283185307179586 * uniform(state));
}

/* t = a u + b v with known a and b: residual log(t / measured), parameters log a and log b. Every
 * tenth measurement is wrong by a factor of 3. */
enum { POINTS = 200 };
struct two_terms {
    double u[POINTS], v[POINTS], measured[POINTS];
    int evaluations;
};
static enum dl_code two_term_residuals(void *context, const double *x, double *r,
                                       struct dl_err *err) {
    struct two_terms *t = context;
    (void)err;
    t->evaluations++;
    for (int i = 0; i < POINTS; i++)
        r[i] = log((exp(x[0]) * t->u[i] + exp(x[1]) * t->v[i]) / t->measured[i]);
    r[7] = NAN; /* does not count */
    return DL_OK;
}
static enum dl_code two_term_derivatives(void *context, const double *x, const double *r, size_t j,
                                         double *jacobian, struct dl_err *err) {
    double at[3] = {x[0], x[1], x[2]}, moved[POINTS];
    at[j] += 1e-4;
    DL_TRY(two_term_residuals(context, at, moved, err));
    for (int i = 0; i < POINTS; i++)
        jacobian[i * 3 + (int)j] = isnan(r[i]) ? 0 : (moved[i] - r[i]) / 1e-4;
    return DL_OK;
}

static void a_fit_finds_constants_despite_wrong_rows(void **state) {
    struct two_terms t = {.evaluations = 0};
    uint64_t seed = 3;
    double weights[POINTS], residuals[POINTS], jacobian[POINTS * 3];
    for (int i = 0; i < POINTS; i++) {
        t.u[i] = 1 + 9 * uniform(&seed);
        t.v[i] = 1 + 9 * uniform(&seed);
        t.measured[i] = (2e-3 * t.u[i] + 5e-4 * t.v[i]) * exp(0.01 * normal(&seed));
        if (i % 10 == 0) t.measured[i] *= 3;
        weights[i] = 1;
    }
    /* the third parameter concerns no row: its prior decides */
    const double low[] = {log(1e-5), log(1e-5), -1}, high[] = {log(1), log(1), 3},
                 prior[] = {log(3e-3), log(3e-3), 1}, sigma[] = {20, 20, 6};
    double x[] = {log(0.1), log(0.1), 2.5};
    const struct dl_robust_problem problem = {.row_count = POINTS,
                                              .parameter_count = 3,
                                              .weights = weights,
                                              .loss_scale = 0.02,
                                              .low = low,
                                              .high = high,
                                              .prior = prior,
                                              .prior_sigma = sigma,
                                              .residuals = two_term_residuals,
                                              .derivatives = two_term_derivatives,
                                              .context = &t};
    struct dl_robust_fit fit = {.x = x, .residuals = residuals};
    assert_int_equal(two_term_residuals(&t, x, residuals, NULL), DL_OK);
    for (size_t j = 0; j < 3; j++)
        assert_int_equal(two_term_derivatives(&t, x, residuals, j, jacobian, NULL), DL_OK);
    assert_int_equal(dl_robust_fit(&problem, jacobian, &fit, NULL), DL_OK);
    check_close(exp(x[0]), 2e-3, 0.02);
    check_close(exp(x[1]), 5e-4, 0.06);
    check_close(x[2], 1, 0.01);
    assert_true(t.evaluations < 100);
}

/* min (x - 5)^2 / s^2 within [0, 2] ends at 2; without its only row, at the prior's 1. */
static enum dl_code one_residual(void *context, const double *x, double *r, struct dl_err *err) {
    (void)context, (void)err;
    r[0] = x[0] - 5;
    return DL_OK;
}
static enum dl_code one_derivative(void *context, const double *x, const double *r, size_t j,
                                   double *jacobian, struct dl_err *err) {
    (void)context, (void)x, (void)r, (void)j, (void)err;
    jacobian[0] = 1;
    return DL_OK;
}
static void a_fit_stays_in_its_bounds(void **state) {
    const double low = 0, high = 2, prior = 1, sigma = 3;
    for (int seen = 0; seen < 2; seen++) {
        double weight = seen, x = 0.2, residual, jacobian = 1;
        const struct dl_robust_problem problem = {.row_count = 1,
                                                  .parameter_count = 1,
                                                  .weights = &weight,
                                                  .loss_scale = 10,
                                                  .low = &low,
                                                  .high = &high,
                                                  .prior = &prior,
                                                  .prior_sigma = &sigma,
                                                  .residuals = one_residual,
                                                  .derivatives = one_derivative};
        struct dl_robust_fit fit = {.x = &x, .residuals = &residual};
        /* with sigma 3 and scale 10 the free optimum of the seen row is (5/100 + 1/9)/(1/100 + 1/9)
         * = 1.33 */
        assert_int_equal(dl_robust_fit(&problem, &jacobian, &fit, NULL), DL_OK);
        check_close(x, seen ? (5.0 / 100 + 1.0 / 9) / (1.0 / 100 + 1.0 / 9) : 1, 2e-3);
    }
}

static const struct dl_interval_model model = {
    .source_sigma_log = 0.2,
    .framework_sigma_log = 0,
    .release_sigma_log = 0.3,
    .device_sigma_log = 0.1,
    .workload_sigma_log = 0,
    .communication_sigma_log = 0.4,
    .overhead_sigma_log = 0.6,
    .row_sigma_log = 0.05,
    .widths = {{0.3, 0.4, 0.5, 0.6, 0.8, 1.6, 0.7, 2, 0.9, 1.1, 0.12, 0.16}},
    .fast_widths = {{0.2, 9, 9, 0.4, 9, 9, 9, 9, 9, 9, 9, 0.7}},
    .anchored_widths = {{0.1, 9, 9, 9, 0.2, 0.4, 0.3, 1, 9, 9, 9, 9}},
    .update_ratio = 1,
    .frameworks = (struct dl_interval_framework[]){{"f", 0.01}},
    .framework_count = 1,
    .releases = (struct dl_interval_release[]){{"f", "1", "fp32", 0.05}},
    .release_count = 1,
    .devices = (struct dl_interval_device[]){{"d", "volta", 0.02}},
    .device_count = 1,
    .arithmetics = (struct dl_interval_arithmetic[]){{"d", "volta", "fp32", 3}},
    .arithmetic_count = 1,
    .pairs = (struct dl_interval_pair[]){{"s", "f"}, {"s", "g"}, {"t", "f"}},
    .pair_count = 3,
    .network_parameters = (double[]){44.18e6, 25.56e6, 1.5578e9},
    .network_count = 3,
    .layer_kinds = (const char *[]){"decoder"},
    .layer_kind_count = 1,
};

/* Squares add; what was measured is narrower, communication and overhead are wider. */
static void intervals_by_hand(void **state) {
    struct dl_interval_case c = {.framework = "f",
                                 .release = "1",
                                 .kernels = "d",
                                 .architecture = "volta",
                                 .precision = DL_FP32,
                                 .model_sigma_log = NAN};
    const double known = dl_interval_sigma_log(&model, &c), rest = 0.04 + 0.0001 + 0.0025;
    check_close(known, sqrt(rest + 0.0025 + 0.0004), 1e-12);
    c.precision = DL_MIXED;
    check_close(dl_interval_sigma_log(&model, &c), sqrt(rest + 0.09 + 0.0004), 1e-12);
    c.precision = DL_FP32;
    c.architecture = "ampere"; /* borrows the kernel times, measured on volta alone */
    check_close(dl_interval_sigma_log(&model, &c), sqrt(rest + 0.0025 + 0.01), 1e-12);
    c.architecture = "volta";
    c.exposed_frac = 0.5;
    check_close(dl_interval_sigma_log(&model, &c), hypot(known, 0.2), 1e-12);
    c.overhead_frac = 0.25;
    check_close(dl_interval_sigma_log(&model, &c), hypot(hypot(known, 0.2), 0.15), 1e-12);
}

/* Ends of intervals: squares of the widths that concern a run add. */
static void widths_by_hand(void **state) {
    struct dl_interval_case c = {.framework = "f",
                                 .release = "1",
                                 .kernels = "d",
                                 .architecture = "volta",
                                 .precision = DL_FP32,
                                 .model_sigma_log = NAN,
                                 .system = "s",
                                 .devices = 4,
                                 .parameters = 25.56e6};
    const double fp32 = 0.09 + 0.36 / 4; /* three sources measured the device: half its width */
    check_close(dl_interval_end_log(&model, &c, DL_SLOW_END, NULL), sqrt(fp32), 1e-12);
    c.parameters = 25.66e6; /* padded: 0.4 % */
    check_close(dl_interval_end_log(&model, &c, DL_SLOW_END, NULL), sqrt(fp32), 1e-12);
    c.parameters = 25.43e6; /* 0.51 % less: another network, which nobody measured */
    check_close(dl_interval_end_log(&model, &c, DL_SLOW_END, NULL), sqrt(fp32 + 0.81), 1e-12);
    c.parameters = 0; /* not known which */
    check_close(dl_interval_end_log(&model, &c, DL_SLOW_END, NULL), sqrt(fp32 + 0.81), 1e-12);
    c.parameters = 44.18e6, c.release_assumed = true;
    check_close(dl_interval_end_log(&model, &c, DL_SLOW_END, NULL), sqrt(fp32 + 1.21), 1e-12);
    c.release_assumed = false, c.model_sigma_log = 0.2;
    check_close(dl_interval_end_log(&model, &c, DL_SLOW_END, NULL), sqrt(fp32 + 0.16), 1e-12);
    c.model_sigma_log = 0, c.exposed_frac = 0.5;
    check_close(dl_interval_end_log(&model, &c, DL_SLOW_END, NULL), sqrt(fp32 + 0.16), 1e-12);
    c.exposed_frac = 0, c.waits_frac = 0.25, c.overhead_frac = 0.75; /* which moves no end */
    check_close(dl_interval_end_log(&model, &c, DL_SLOW_END, NULL), sqrt(fp32 + 0.16), 1e-12);
    c.waits_frac = c.overhead_frac = 0,
    c.precision = DL_MIXED; /* device and release: measured in fp32 alone */
    check_close(dl_interval_end_log(&model, &c, DL_SLOW_END, NULL), sqrt(0.09 + 0.36 + 0.25 + 0.49),
                1e-12);
    c.precision = DL_BF16;
    check_close(dl_interval_end_log(&model, &c, DL_SLOW_END, NULL), sqrt(0.09 + 0.36 + 0.25),
                1e-12);
    c.precision = DL_FP32, c.framework = "g"; /* nothing of it was measured */
    check_close(dl_interval_end_log(&model, &c, DL_SLOW_END, NULL), sqrt(fp32 + 0.16 + 0.25),
                1e-12);
    c.framework = "f", c.architecture = "ampere";
    check_close(dl_interval_end_log(&model, &c, DL_SLOW_END, NULL), hypot(0.3, 0.6), 1e-12);
    /* F-STRANGER: on a machine where nobody measured the framework, more on several devices */
    c.architecture = "volta", c.system = "u";
    check_close(dl_interval_end_log(&model, &c, DL_SLOW_END, NULL), sqrt(fp32 + 0.0144 + 0.0256),
                1e-12);
    double parts[DL_WIDTHS];
    check_close(dl_interval_end_log(&model, &c, DL_FAST_END, parts),
                sqrt(0.04 + 0.16 / 4 + 81 + 0.49), 1e-12);
    check_close(parts[DL_WIDTH_SETUP], 0.49, 1e-12);
    check_close(parts[DL_WIDTH_DEVICE], 0.04, 1e-12);
    c.devices = 1;
    check_close(dl_interval_end_log(&model, &c, DL_SLOW_END, NULL), sqrt(fp32 + 0.0144), 1e-12);
    c.system = "t", c.framework = "g"; /* each was measured, but not together */
    check_close(dl_interval_end_log(&model, &c, DL_SLOW_END, NULL),
                sqrt(fp32 + 0.16 + 0.25 + 0.0144), 1e-12);
    c.anchored = c.release_assumed = true, c.precision = DL_MIXED,
    c.parameters = 1; /* its own job was measured: nothing is new */
    check_close(dl_interval_end_log(&model, &c, DL_SLOW_END, NULL), hypot(0.1, 0.3), 1e-12);
}

/* Two networks of one depth that are 0.8 % apart are two; a vocabulary padded from 50,257 to 51,200
 * is not, where the network is large; which network has no parameters nobody knows. */
static void networks_by_their_parameters(void **state) {
    const double resnet101 = 44549160, resnext101 = 44177704, gpt2_xl = 1.5578e9;
    assert_false(dl_interval_same_network(resnet101, resnext101));
    assert_false(dl_interval_same_network(resnext101, resnet101));
    assert_true(dl_interval_same_network(resnet101, resnet101));
    assert_true(dl_interval_same_network(gpt2_xl, gpt2_xl + (51200 - 50257) * 1600.0));
    assert_true(dl_interval_same_network(gpt2_xl + (51200 - 50257) * 1600.0, gpt2_xl));
    assert_false(dl_interval_same_network(0, 0));
    assert_false(dl_interval_same_network(0, resnet101));
    assert_false(dl_interval_same_network(resnet101, NAN));
}

/* A decoder tells of decoders of all sizes, but not of those with experts; other networks tell of
 * themselves. */
static void networks_of_one_kind(void **state) {
    struct dl_interval_case c = {.framework = "f",
                                 .release = "1",
                                 .kernels = "d",
                                 .architecture = "volta",
                                 .precision = DL_FP32,
                                 .model_sigma_log = NAN,
                                 .system = "s",
                                 .devices = 4,
                                 .parameters = 70e9};
    const double fp32 = 0.09 + 0.36 / 4;
    check_close(dl_interval_end_log(&model, &c, DL_SLOW_END, NULL), sqrt(fp32 + 0.81), 1e-12);
    c.layers = "decoder";
    check_close(dl_interval_end_log(&model, &c, DL_SLOW_END, NULL), sqrt(fp32), 1e-12);
    c.layers = "decoder-experts";
    check_close(dl_interval_end_log(&model, &c, DL_SLOW_END, NULL), sqrt(fp32 + 0.81), 1e-12);
    c.parameters = 1.5578e9; /* nothing else has so many */
    check_close(dl_interval_end_log(&model, &c, DL_SLOW_END, NULL), sqrt(fp32), 1e-12);
}

/* By what the layers do, not by names: attention to earlier tokens alone, and parameters that a
 * token does not meet. */
static void kinds_of_layers(void **state) {
    static const struct {
        const char *name, *kind;
    } networks[] = {{"llama3_8b", "decoder"},
                    {"mixtral_8x7b", "decoder-experts"},
                    {"bert_large", NULL},
                    {"resnet50", NULL}};
    for (size_t i = 0; i < sizeof networks / sizeof networks[0]; i++) {
        struct dl_workload workload = {0};
        load_name(networks[i].name, NULL, 0, &test_arena, &workload);
        const char *kind = dl_workload_layers(&workload);
        if (networks[i].kind == NULL)
            assert_null(kind);
        else
            assert_string_equal(kind, networks[i].kind);
    }
}

/* Errors of 10 % in all runs and, independent of them, of twice the covariate in half of them:
 * the ends of 80 % intervals of both, 1.2816 standard deviations each. */
static void widths_find_quantiles(void **state) {
    enum { ROWS = 20000 };
    static struct dl_width_row rows[ROWS];
    uint64_t seed = 9;
    for (int i = 0; i < ROWS; i++) {
        const double overhead = i % 2 == 0 ? 0 : 0.1;
        rows[i] = (struct dl_width_row){.error_log = fabs(hypot(0.1, 2 * overhead) * normal(&seed)),
                                        .weight_ratio = 1};
        rows[i].covariate[DL_WIDTH_ALL] = 1;
        rows[i].covariate[DL_WIDTH_OVERHEAD] = overhead;
    }
    for (int i = 0; i < ROWS; i += 10)
        rows[i].error_log = 9, rows[i].weight_ratio = 0; /* left out */
    struct dl_interval_widths widths;
    assert_int_equal(dl_widths_fit(rows, ROWS, 0.2, &widths, NULL), DL_OK);
    check_close(widths.half_log[DL_WIDTH_ALL], 0.12816, 0.03);
    check_close(widths.half_log[DL_WIDTH_OVERHEAD], 2 * 1.2816, 0.05);
    check_close(widths.half_log[DL_WIDTH_DEVICE], exp(-3), 1e-3); /* concerns no row */
}

/* What a run's own spread grows with. */
static void rows_spread_by_hand(void **state) {
    struct dl_interval_model m = {.row_sigma_log = 0.05,
                                  .row_communication_sigma_log = 0.2,
                                  .row_overhead_sigma_log = 0.4,
                                  .row_narrow_sigma_log = 0.03,
                                  .row_kernels_ratio = 0.5};
    struct dl_interval_case c = {.precision = DL_TF32, .model_sigma_log = NAN};
    check_close(dl_interval_sigma_log(&m, &c), 0.05, 1e-12);
    c.precision = DL_FP8;
    check_close(dl_interval_sigma_log(&m, &c), hypot(0.05, 0.03), 1e-12);
    c.precision = DL_FP32;
    c.model_sigma_log = 0.24;
    check_close(dl_interval_sigma_log(&m, &c), 0.13, 1e-12);
    c.exposed_frac = 0.5, c.overhead_frac = 0.25, c.model_sigma_log = 0;
    check_close(dl_interval_sigma_log(&m, &c), sqrt(0.0025 + 0.01 + 0.01), 1e-12);
}

/* Rows of two kinds, one with standard deviation 0.1, the other with hypot(0.1, 2 x 0.2). */
static void a_mixed_model_finds_parts_of_rows(void **state) {
    enum { ROWS = 4000 };
    static double y[ROWS], weight[ROWS];
    static int level[ROWS];
    uint64_t seed = 5;
    for (int i = 0; i < ROWS; i++) {
        weight[i] = i % 2 == 0 ? 0 : 2;
        y[i] = hypot(0.1, 0.2 * weight[i]) * normal(&seed);
    }
    struct dl_mixed_model m = {.row_count = ROWS,
                               .y = y,
                               .effects = {{1, level, NULL, 0.01, NULL, NULL}},
                               .effect_count = 1,
                               .row_variance = 0.01,
                               .parts = {{weight, 0.01}},
                               .part_count = 1};
    assert_int_equal(dl_mixed_fit(&m, 60, NULL), DL_OK);
    check_close(sqrt(m.row_variance), 0.1, 0.05);
    check_close(sqrt(m.parts[0].variance), 0.2, 0.05);
    check_close(dl_mixed_row_variance(&m, 1), m.row_variance + 4 * m.parts[0].variance, 1e-12);
}

/* No communication, one network: own and precision effects have variance 0.05 and 0.09 together,
 * so that n runs of log ratio y give y 0.14 n / (0.14 n + 0.0025). A later run with communication
 * moves that part alone. */
static void a_posterior_in_closed_form(void **state) {
    const struct dl_posterior *p;
    const struct dl_interval_case quiet = {.precision = DL_FP32, .model_sigma_log = NAN},
                                  loud = {.precision = DL_FP32,
                                          .model_sigma_log = NAN,
                                          .exposed_frac = 0.5},
                                  mixed = {.precision = DL_MIXED, .model_sigma_log = NAN};
    struct dl_measured_run runs[] = {
        {0.2, quiet, "resnet50"}, {0.2, quiet, "resnet50"}, {0.6, loud, "resnet50"}};
    assert_int_equal(dl_posterior_make(&model, runs, 0, &test_arena, &p, NULL), DL_OK);
    assert_null(p);
    assert_int_equal(dl_posterior_make(&model, runs, 2, &test_arena, &p, NULL), DL_OK);
    struct dl_posterior_shift s = dl_posterior_shift(p, "resnet50", &quiet);
    check_close(s.compute_log, 0.2 * 2 * 0.14 / (2 * 0.14 + 0.0025), 1e-5);
    check_close(s.sigma_log, sqrt(0.14 * 0.0025 / (2 * 0.14 + 0.0025) + 0.0025), 1e-4);
    /* F-FEW-RUNS: a third of the end remains after two runs; no end grows */
    check_close(dl_posterior_end_log(p, &s, 0.9), hypot(1.2815516 * s.sigma_log, 0.3), 1e-8);
    check_close(dl_posterior_end_log(p, &s, 0.01), 0.01, 0);
    const double unknown_part = dl_posterior_shift(p, "resnet50", &loud).sigma_log;
    assert_true(unknown_part > s.sigma_log);
    /* another precision shares the system's effect: 0.05 of 0.14 */
    const struct dl_posterior_shift other = dl_posterior_shift(p, "vgg16", &mixed);
    check_close(other.compute_log, 0.2 * 2 * 0.05 / (2 * 0.14 + 0.0025), 1e-4);
    assert_true(other.sigma_log > 2 * s.sigma_log);
    assert_int_equal(dl_posterior_make(&model, runs, 3, &test_arena, &p, NULL), DL_OK);
    s = dl_posterior_shift(p, "resnet50", &loud);
    check_close(s.compute_log, 0.2, 0.05);
    check_close(s.communication_log, 1, 0.06);
    assert_true(s.sigma_log < unknown_part);
    check_close(dl_posterior_factor(&s, &loud),
                0.5 * exp(s.compute_log) + 0.5 * exp(s.communication_log), 1e-12);
    /* a run with overhead alone: the rest keeps its factor */
    const struct dl_interval_case late = {.framework = "f",
                                          .release = "1",
                                          .kernels = "d",
                                          .architecture = "volta",
                                          .precision = DL_FP32,
                                          .model_sigma_log = NAN,
                                          .overhead_frac = 0.5};
    const struct dl_measured_run slow = {0.3, late, "resnet50"};
    assert_int_equal(dl_posterior_make(&model, &slow, 1, &test_arena, &p, NULL), DL_OK);
    s = dl_posterior_shift(p, "resnet50", &late);
    assert_true(s.overhead_log > 2 * s.compute_log);
    check_close(dl_posterior_factor(&s, &late),
                0.5 * exp(s.compute_log) + 0.5 * exp(s.compute_log + s.overhead_log), 1e-12);
}

/* A run of one job: its batch on other devices gets the job's share too (variance 0.09 next to
 * 0.14), another batch does not, and its spread keeps that variance. With half the spread to move,
 * the system's effect has a quarter of its 0.05. */
static void a_job_is_a_network_with_its_batch(void **state) {
    const struct dl_posterior *p;
    struct dl_interval_model jobs = model;
    jobs.job_sigma_log = 0.3;
    const struct dl_interval_case small = {.precision = DL_FP32,
                                           .release = "1",
                                           .model_sigma_log = NAN,
                                           .batch_per_device_samples = 32};
    struct dl_interval_case other = small;
    const struct dl_measured_run run = {0.2, small, "resnet50"};
    const double all = 0.05 + 0.09 + 0.09 + 0.0025;
    assert_int_equal(dl_posterior_make(&jobs, &run, 1, &test_arena, &p, NULL), DL_OK);
    other.batch_per_device_samples = 32.2; /* as printed */
    check_close(dl_posterior_shift(p, "resnet50", &other).compute_log, 0.2 * 0.23 / all, 1e-4);
    other.batch_per_device_samples = 64;
    struct dl_posterior_shift s = dl_posterior_shift(p, "resnet50", &other);
    check_close(s.compute_log, 0.2 * 0.14 / all, 1e-4);
    check_close(s.sigma_log, sqrt(0.14 - 0.14 * 0.14 / all + 0.09 + 0.0025), 1e-4);
    other = small, other.release = "2";
    check_close(dl_posterior_shift(p, "resnet50", &other).compute_log, 0.2 * 0.14 / all, 1e-4);
    jobs.update_ratio = 0.5;
    assert_int_equal(dl_posterior_make(&jobs, &run, 1, &test_arena, &p, NULL), DL_OK);
    other.batch_per_device_samples = 64, other.precision = DL_BF16;
    check_close(dl_posterior_shift(p, "resnet50", &other).compute_log,
                0.2 * 0.0125 / (all - 0.0375), 1e-3);
}

static void regret_and_ranks_by_hand(void **state) {
    const double predicted[] = {3, 1, 2, 4}, measured[] = {30, 12, 10, 50};
    double scratch[8];
    check_close(dl_regret_frac(predicted, measured, 4), 0.2, 1e-12);
    /* ranks 3 1 2 4 and 3 2 1 4: 1 - 6 (0 + 1 + 1 + 0) / (4 x 15) = 0.8 */
    check_close(dl_rank_correlation(predicted, measured, 4, scratch), 0.8, 1e-12);
    const double equal[] = {1, 1}, two[] = {10, 20};
    check_close(dl_regret_frac(equal, two, 2), 0.5, 1e-12); /* either of them */
    assert_true(isnan(dl_rank_correlation(equal, two, 2, scratch)));
    assert_true(isnan(dl_regret_frac(equal, two, 0)));
}

static void decisions_by_hand(void **state) {
    const struct dl_decision_row rows[] = {
        {{"j", "tp=1", "", ""}, 1, 1.1, 0.5, 9}, {{"j", "tp=2", "", ""}, 2, 1.0, 0.47, 9},
        {{"j", "tp=1", "", ""}, 1, 1.3, 0.5, 9}, /* measured twice: 1.2 */
        {{"k", "tp=1", "f", "a"}, 1, 1, 9, 0.5}, {{"l", "tp=1", "f", "b"}, 2, 3, 9, 0.49},
        {{"j", "tp=4", "", ""}, NAN, 1, 0, 0},
    };
    const struct dl_decision_list found = dl_decisions(rows, 6, &test_arena);
    const struct dl_decision *list = found.list;
    assert_int_equal(found.count, 2);
    assert_string_equal(list[0].group, "j");
    assert_int_equal(list[0].alternatives, 2);
    check_close(list[0].regret_pct, 20, 1e-9);
    check_close(list[0].rank_correlation, -1, 1e-9);
    assert_true(list[0].distinguished); /* log(2) = 0.6931 > hypot(0.5, 0.47) = 0.6862 */
    assert_true(list[1].frameworks);
    assert_false(list[1].distinguished); /* hypot(0.5, 0.49) = 0.7001 */
    assert_true(fabs(list[1].regret_pct) < 1e-9);
    const struct dl_decision_summary s = dl_decision_summary(&found, false);
    assert_int_equal(s.jobs, 1);
    check_close(s.regret_max_pct, 20, 1e-9);
    assert_int_equal(s.distinguished_jobs, 1);
    check_close(s.distinguished_mean_pct, 20, 1e-9);
    const struct dl_decision_summary f = dl_decision_summary(&found, true);
    assert_int_equal(f.distinguished_jobs, 0);
    assert_true(isnan(f.distinguished_mean_pct));
}

/* 10 % apart: distinguished where 80 % intervals of the difference are 2 %, not where 20 %. */
static void ties(void **state) {
    const struct dl_prediction a = {.iteration_s = 1,
                                    .iteration_low_s = 1 / 1.02,
                                    .iteration_high_s = 1.02,
                                    .throughput_samples_per_s = 100},
                               b = {.iteration_s = 1.1,
                                    .iteration_low_s = 1.1 / 1.02,
                                    .iteration_high_s = 1.122,
                                    .throughput_samples_per_s = 100 / 1.1};
    struct dl_prediction c = a, d = b;
    assert_false(dl_prediction_frameworks_tie(&a, &b));
    assert_true(dl_prediction_frameworks_tie(&a, &a));
    c.iteration_low_s = 1 / 1.2, c.iteration_high_s = 1.2;
    d.iteration_low_s = 1.1 / 1.2, d.iteration_high_s = 1.32;
    assert_true(dl_prediction_frameworks_tie(&c, &d));
    /* of one job: 1.2816 x sqrt(2) x 0.05 = 9.1 %, less than log(1.1); 0.06: 10.9 % */
    c.spread.frameworks_sigma_log = d.spread.frameworks_sigma_log = 0.05;
    assert_false(dl_prediction_frameworks_tie(&c, &d));
    assert_true(dl_prediction_plans_tie(&c, &d)); /* not known: as their intervals */
    c.spread.plans_sigma_log = d.spread.plans_sigma_log = 0.05;
    assert_false(dl_prediction_plans_tie(&c, &d));
    c.spread.plans_sigma_log = d.spread.plans_sigma_log = 0.06;
    assert_true(dl_prediction_plans_tie(&c, &d));
    c.spread.plans_sigma_log = d.spread.plans_sigma_log = 0; /* not known: as others */
    assert_true(dl_prediction_plans_tie(&c, &d));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fit_finds_constants_despite_wrong_rows),
        cmocka_unit_test(a_fit_stays_in_its_bounds),

        cmocka_unit_test(intervals_by_hand),
        cmocka_unit_test(widths_by_hand),
        cmocka_unit_test(networks_by_their_parameters),
        cmocka_unit_test(networks_of_one_kind),
        cmocka_unit_test(kinds_of_layers),
        cmocka_unit_test(widths_find_quantiles),
        cmocka_unit_test(rows_spread_by_hand),
        cmocka_unit_test(a_mixed_model_finds_parts_of_rows),
        cmocka_unit_test(a_posterior_in_closed_form),
        cmocka_unit_test(a_job_is_a_network_with_its_batch),
        cmocka_unit_test(regret_and_ranks_by_hand),
        cmocka_unit_test(decisions_by_hand),
        cmocka_unit_test(ties),
    };
    return cmocka_run_group_tests(tests, NULL, check_free);
}
