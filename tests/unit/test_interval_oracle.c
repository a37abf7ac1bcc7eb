/* F-POSTERIOR against conditional normal distributions written from covariances of the runs, where
 * model/ inverts a matrix of effects; F-INTERVAL against sums over what was measured. Random
 * models, runs and cases from a fixed seed. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/engine/correct.h"
#include "tests/check.h"
#include "tests/fake.h"

enum { MOST_RUNS = 9, KINDS = 4 };

/* Equal texts at other places. */
static const char *const networks[][2] = {{"vgg16", (char[]){"vgg16"}},
                                          {"vgg19", (char[]){"vgg19"}},
                                          {"bert", (char[]){"bert"}},
                                          {"gpt", (char[]){"gpt"}}};
static const char *const releases[][2] = {
    {NULL, NULL}, {"1.0", (char[]){"1.0"}}, {"1.1", (char[]){"1.1"}}};
/* Two batches of a row are one job: they differ by at most 1 % of the larger. */
static const double batches[][2] = {{99, 100}, {102, 102.5}, {0, 0}, {8, 8}};

struct lists {
    struct dl_interval_framework frameworks[3];
    struct dl_interval_release releases[4];
    struct dl_interval_device devices[3];
    struct dl_interval_arithmetic arithmetics[3];
    double network_parameters[2];
    const char *layer_kinds[2];
};

static double some(uint64_t *seed, double most) {
    return check_random(seed) % 5 == 0 ? 0 : most * check_uniform(seed);
}

/* Any spreads; of some frameworks, releases and devices the runs say more. */
static struct dl_interval_model random_model(uint64_t *seed, struct lists *l) {
    *l = (struct lists){
        .frameworks = {{"ftp", 0}, {"f", some(seed, 0.1)}, {"g", some(seed, 0.1)}},
        .releases = {{"g", "1.0", "fp32", 1},
                     {"f", "1.0", "fp32", some(seed, 0.1)},
                     {"f", "1.0", "fp16", some(seed, 0.1)},
                     {"f", "1.1", "bf16", some(seed, 0.1)}},
        .devices = {{"d", "kepler", 1}, {"c", "volta", 1}, {"d", "volta", some(seed, 0.1)}},
        .arithmetics = {{"d", "volta", "fp16", 5},
                        {"c", "volta", "fp32", 9},
                        {"d", "volta", "fp32", 2}},
        .network_parameters = {44e6, 25e6},
        .layer_kinds = {"decoder-experts", "encoder"}};
    struct dl_interval_model m = {.source_sigma_log = some(seed, 0.3),
                                  .framework_sigma_log = some(seed, 0.3),
                                  .release_sigma_log = some(seed, 0.3),
                                  .device_sigma_log = some(seed, 0.3),
                                  .workload_sigma_log = some(seed, 0.3),
                                  .job_sigma_log = some(seed, 0.3),
                                  .communication_sigma_log = some(seed, 1),
                                  .overhead_sigma_log = some(seed, 1),
                                  .row_sigma_log = some(seed, 0.1),
                                  .row_communication_sigma_log = some(seed, 0.5),
                                  .row_overhead_sigma_log = some(seed, 0.5),
                                  .row_narrow_sigma_log = some(seed, 0.2),
                                  .row_kernels_ratio = some(seed, 1),
                                  .update_ratio = 0.2 + 0.8 * check_uniform(seed),
                                  .frameworks = l->frameworks,
                                  .framework_count = 3,
                                  .releases = l->releases,
                                  .release_count = 4,
                                  .devices = l->devices,
                                  .device_count = 3,
                                  .arithmetics = l->arithmetics,
                                  .arithmetic_count = 3,
                                  .network_parameters = l->network_parameters,
                                  .network_count = 2,
                                  .layer_kinds = l->layer_kinds,
                                  .layer_kind_count = 2};
    for (int k = 0; k < DL_WIDTHS; k++) {
        m.widths.half_log[k] = some(seed, 0.5);
        m.anchored_widths.half_log[k] = some(seed, 0.5);
    }
    return m;
}

static struct dl_interval_case random_case(uint64_t *seed) {
    static const char *const frameworks[] = {"f", "f", "g", "h", NULL},
                             *const kernels[] = {"d", "d", "c", "e", NULL},
                             *const architectures[] = {"volta", "volta", "kepler", NULL};
    static const enum dl_precision precisions[] = {DL_FP32, DL_TF32, DL_MIXED, DL_FP16, DL_BF16};
    static const double parameters[] = {0, 25e6, 25.1e6, 44.3e6, 60e6};
    static const char *const layers[] = {NULL, NULL, "decoder", "encoder"};
    struct dl_interval_case c = {.framework = frameworks[check_random(seed) % 5],
                                 .release = releases[check_random(seed) % 3][0],
                                 .kernels = kernels[check_random(seed) % 5],
                                 .architecture = architectures[check_random(seed) % 4],
                                 .precision = precisions[check_random(seed) % 5],
                                 .exposed_frac = some(seed, 0.5),
                                 .overhead_frac = some(seed, 0.5),
                                 .waits_frac = some(seed, 0.5),
                                 .model_sigma_log = some(seed, 0.3),
                                 .parameters = parameters[check_random(seed) % 5],
                                 .layers = layers[check_random(seed) % 4],
                                 .release_assumed = check_random(seed) % 2 == 0,
                                 .anchored = check_random(seed) % 3 == 0};
    if (check_random(seed) % 4 == 0) c.model_sigma_log = NAN;
    return c;
}

static bool equal(const char *a, const char *b) {
    return (a == NULL) == (b == NULL) && (a == NULL || strcmp(a, b) == 0);
}

/* What is left of the spread of each, by the lists above. */
static double framework_log(const struct dl_interval_model *m, const struct dl_interval_case *c) {
    return equal(c->framework, "f")   ? m->frameworks[1].sigma_log
           : equal(c->framework, "g") ? m->frameworks[2].sigma_log
                                      : m->framework_sigma_log;
}
static double release_log(const struct dl_interval_model *m, const struct dl_interval_case *c) {
    const bool f = equal(c->framework, "f"), one = equal(c->release, "1.0"),
               two = equal(c->release, "1.1");
    if (equal(c->framework, "g") && one && c->precision == DL_FP32) return 1;
    if (f && one && c->precision == DL_FP32) return m->releases[1].sigma_log;
    if (f && one && c->precision == DL_FP16) return m->releases[2].sigma_log;
    if (f && two && c->precision == DL_BF16) return m->releases[3].sigma_log;
    return m->release_sigma_log;
}
static double device_log(const struct dl_interval_model *m, const struct dl_interval_case *c) {
    if (equal(c->kernels, "d") && equal(c->architecture, "kepler")) return 1;
    if (equal(c->kernels, "c") && equal(c->architecture, "volta")) return 1;
    if (equal(c->kernels, "d") && equal(c->architecture, "volta")) return m->devices[2].sigma_log;
    return m->device_sigma_log;
}

static double own_variance(const struct dl_interval_model *m, const struct dl_interval_case *c) {
    const bool wide = c->precision == DL_FP32 || c->precision == DL_TF32;
    const double parts[] = {
        m->row_sigma_log, c->exposed_frac * m->row_communication_sigma_log,
        c->overhead_frac * m->row_overhead_sigma_log, wide ? 0 : m->row_narrow_sigma_log,
        isnan(c->model_sigma_log) ? 0 : c->model_sigma_log * m->row_kernels_ratio};
    double length = 0;
    for (int i = 0; i < 5; i++) length = hypot(length, parts[i]);
    return length * length > 1e-6 ? length * length : 1e-6;
}

/* ---- what measured runs say ---- */

struct run {
    struct dl_measured_run r;
    int network, release, batch;
};

static struct run random_run(uint64_t *seed, const struct dl_interval_case *first) {
    struct run run = {.network = (int)(check_random(seed) % KINDS),
                      .release = (int)(check_random(seed) % 3),
                      .batch = (int)(check_random(seed) % KINDS)};
    const int copy = (int)(check_random(seed) % 2);
    run.r.what = random_case(seed);
    run.r.what.framework = first->framework;
    run.r.what.kernels = first->kernels, run.r.what.architecture = first->architecture;
    run.r.what.release = releases[run.release][copy];
    run.r.what.batch_per_device_samples = batches[run.batch][check_random(seed) % 2];
    run.r.workload = networks[run.network][1 - copy];
    run.r.log_ratio = check_uniform(seed) - 0.4;
    return run;
}

enum group { COMPUTE, COMMUNICATION, OVERHEAD, GROUPS };

/* Covariance between an effect of one run and the same one of another. An effect that some run had
 * varies by 1e-8 at least. Spreads of the framework, device and release: of the first run's. */
static void shared_by(const struct dl_interval_model *m, const struct run *first,
                      const struct run *a, const struct run *b, double out[GROUPS], double least) {
    const double r2 = m->update_ratio * m->update_ratio, s2 = pow(m->source_sigma_log, 2);
    const bool precision = a->r.what.precision == b->r.what.precision,
               network = a->network == b->network,
               job = network && precision && a->release == b->release && a->batch == b->batch;
    struct dl_interval_case of_first = first->r.what;
    of_first.precision = a->r.what.precision;
    out[COMPUTE] = fmax(
        1e-8, r2 * (s2 + pow(framework_log(m, &of_first), 2) + pow(device_log(m, &of_first), 2)));
    if (precision) out[COMPUTE] += fmax(1e-8, pow(release_log(m, &of_first), 2));
    if (network) out[COMPUTE] += fmax(least, pow(m->workload_sigma_log, 2));
    if (job) out[COMPUTE] += fmax(least, pow(m->job_sigma_log, 2));
    out[COMMUNICATION] = fmax(1e-8, r2 * pow(m->communication_sigma_log, 2) + s2);
    out[OVERHEAD] = fmax(1e-8, r2 * pow(m->overhead_sigma_log, 2));
}

static double weight(const struct run *run, enum group g) {
    return g == COMMUNICATION ? run->r.what.exposed_frac
           : g == OVERHEAD    ? run->r.what.overhead_frac
                              : 1 - run->r.what.exposed_frac;
}

/* Solves a x = b by elimination with pivots; a and b are lost, b is x. */
static void solve(int n, double a[MOST_RUNS][MOST_RUNS], double *b) {
    for (int i = 0; i < n; i++) {
        int best = i;
        for (int j = i + 1; j < n; j++)
            if (fabs(a[j][i]) > fabs(a[best][i])) best = j;
        for (int k = 0; k < n; k++) {
            const double kept = a[i][k];
            a[i][k] = a[best][k], a[best][k] = kept;
        }
        const double kept = b[i];
        b[i] = b[best], b[best] = kept;
        for (int j = i + 1; j < n; j++) {
            const double f = a[j][i] / a[i][i];
            for (int k = i; k < n; k++) a[j][k] -= f * a[i][k];
            b[j] -= f * b[i];
        }
    }
    for (int i = n - 1; i >= 0; i--) {
        for (int k = i + 1; k < n; k++) b[i] -= a[i][k] * b[k];
        b[i] /= a[i][i];
    }
}

/* Of jointly normal x and y: the mean of x where y is known is cov(x, y) cov(y, y)^-1 y, its
 * variance var(x) - cov(x, y) cov(y, y)^-1 cov(y, x). */
static struct dl_posterior_shift by_covariance(const struct dl_interval_model *m,
                                               const struct run *runs, int n,
                                               const struct run *next) {
    double all[MOST_RUNS][MOST_RUNS], left[MOST_RUNS][MOST_RUNS], y[MOST_RUNS], gain[MOST_RUNS],
        cross[GROUPS][MOST_RUNS], total[MOST_RUNS] = {0}, means[GROUPS] = {0}, own[GROUPS];
    bool network = false, job = false;
    for (int i = 0; i < n; i++) {
        double shared[GROUPS];
        for (int j = 0; j < n; j++) {
            shared_by(m, &runs[0], &runs[i], &runs[j], shared, 1e-8);
            all[i][j] = i == j ? own_variance(m, &runs[i].r.what) : 0;
            for (enum group g = 0; g < GROUPS; g++)
                all[i][j] += weight(&runs[i], g) * weight(&runs[j], g) * shared[g];
        }
        shared_by(m, &runs[0], next, &runs[i], shared, 1e-8);
        for (enum group g = 0; g < GROUPS; g++) {
            cross[g][i] = weight(&runs[i], g) * shared[g];
            total[i] += weight(next, g) * cross[g][i];
        }
        y[i] = runs[i].r.log_ratio, gain[i] = total[i];
        network = network || runs[i].network == next->network;
        job = job ||
              (runs[i].network == next->network && runs[i].release == next->release &&
               runs[i].batch == next->batch && runs[i].r.what.precision == next->r.what.precision);
    }
    memcpy(left, all, sizeof left);
    solve(n, left, y);
    memcpy(left, all, sizeof left);
    solve(n, left, gain);
    shared_by(m, &runs[0], next, next, own, 0);
    if (network) own[COMPUTE] += fmax(0, 1e-8 - pow(m->workload_sigma_log, 2));
    if (job) own[COMPUTE] += fmax(0, 1e-8 - pow(m->job_sigma_log, 2));
    double variance = own_variance(m, &next->r.what);
    for (enum group g = 0; g < GROUPS; g++) {
        for (int i = 0; i < n; i++) means[g] += cross[g][i] * y[i];
        variance += weight(next, g) * weight(next, g) * own[g];
    }
    for (int i = 0; i < n; i++) variance -= total[i] * gain[i];
    return (struct dl_posterior_shift){means[COMPUTE], means[COMMUNICATION], means[OVERHEAD],
                                       sqrt(variance)};
}

static void posteriors_by_covariance(void **state) {
    (void)state;
    uint64_t seed = 2024;
    struct dl_arena arena = {0};
    struct dl_err err = {0};
    for (int round = 0; round < 600; round++) {
        struct lists lists;
        const struct dl_interval_model m = random_model(&seed, &lists);
        const int n = 1 + (int)(check_random(&seed) % MOST_RUNS);
        struct run runs[MOST_RUNS];
        struct dl_measured_run given[MOST_RUNS];
        const struct dl_interval_case first = random_case(&seed);
        for (int i = 0; i < n; i++) {
            runs[i] = random_run(&seed, &first);
            given[i] = runs[i].r;
        }
        const struct dl_posterior *p;
        assert_int_equal(dl_posterior_make(&m, given, (size_t)n, &arena, &p, &err), DL_OK);
        assert_int_equal(dl_posterior_runs(p), n);
        for (int k = 0; k < 6; k++) {
            const struct run next = random_run(&seed, &first);
            const struct dl_posterior_shift is = dl_posterior_shift(p, next.r.workload,
                                                                    &next.r.what),
                                            want = by_covariance(&m, runs, n, &next);
            check_close(is.compute_log, want.compute_log,
                        1e-6 * fmax(1, 1 / fabs(want.compute_log)));
            check_close(is.communication_log, want.communication_log,
                        1e-6 * fmax(1, 1 / fabs(want.communication_log)));
            check_close(is.overhead_log, want.overhead_log,
                        1e-6 * fmax(1, 1 / fabs(want.overhead_log)));
            check_close(is.sigma_log, want.sigma_log, 1e-6);
        }
    }
    dl_arena_free(&arena);
}

/* Numbers that are none leave no answer. */
static void runs_without_numbers(void **state) {
    (void)state;
    struct dl_arena arena = {0};
    struct dl_err err = {0};
    struct lists lists;
    uint64_t seed = 3;
    const struct dl_interval_model m = random_model(&seed, &lists);
    struct dl_interval_case c = random_case(&seed);
    c.exposed_frac = NAN;
    const struct dl_measured_run run = {0.1, c, "bert"};
    const struct dl_posterior *p = (const void *)&run;
    assert_int_equal(dl_posterior_make(&m, &run, 1, &arena, &p, &err), DL_ERR_SYSTEM);
    assert_string_equal(err.message, "measured runs: singular equations");
    assert_null(p);
    assert_int_equal(dl_posterior_make(&m, &run, 0, &arena, &p, &err), DL_OK);
    assert_null(p);
    dl_arena_free(&arena);
}

/* The parts of an iteration, each times its factor; what the two parts leave, if anything. */
static void factors_of_parts(void **state) {
    (void)state;
    const struct dl_posterior_shift s = {
        .compute_log = log(2), .communication_log = log(3), .overhead_log = log(5)};
    static const double cases[][3] = {/* exposed, overhead, factor */
                                      {0, 0, 2},
                                      {0.25, 0, 0.75 * 2 + 0.25 * 3},
                                      {0, 0.25, 0.75 * 2 + 0.25 * 10},
                                      {0.5, 0.25, 0.25 * 2 + 0.25 * 10 + 0.5 * 3},
                                      {0.5, 0.5, 0.5 * 10 + 0.5 * 3},
                                      {0.75, 0.5, 0.5 * 10 + 0.75 * 3}};
    for (int i = 0; i < 6; i++) {
        const struct dl_interval_case c = {.exposed_frac = cases[i][0],
                                           .overhead_frac = cases[i][1]};
        check_close(dl_posterior_factor(&s, &c), cases[i][2], 1e-12);
    }
}

/* ---- intervals ---- */

static void spreads_of_parts(void **state) {
    (void)state;
    uint64_t seed = 11;
    for (int round = 0; round < 4000; round++) {
        struct lists lists;
        const struct dl_interval_model m = random_model(&seed, &lists);
        const struct dl_interval_case c = random_case(&seed);
        const double row = own_variance(&m, &c) +
                           pow(c.exposed_frac * m.communication_sigma_log, 2) +
                           pow(c.overhead_frac * m.overhead_sigma_log, 2),
                     shared = pow(m.source_sigma_log, 2) + pow(m.workload_sigma_log, 2) +
                              pow(device_log(&m, &c), 2),
                     others = pow(framework_log(&m, &c), 2) + pow(release_log(&m, &c), 2) +
                              pow(m.job_sigma_log, 2);
        check_close(dl_interval_sigma_log(&m, &c), sqrt(c.anchored ? row : row + shared + others),
                    1e-12);
        check_close(dl_interval_shared_sigma_log(&m, &c), sqrt(shared), 1e-12);
        assert_int_equal(
            dl_interval_measured_device(&m, c.kernels, c.architecture),
            (equal(c.architecture, "volta") && (equal(c.kernels, "c") || equal(c.kernels, "d"))) ||
                (equal(c.architecture, "kepler") && equal(c.kernels, "d")));
    }
}

/* Sources that measured a device in a precision, by the list above. */
static int sources_of(const struct dl_interval_case *c) {
    if (!equal(c->architecture, "volta")) return 0;
    if (equal(c->kernels, "c")) return c->precision == DL_FP32 ? 9 : 0;
    if (!equal(c->kernels, "d")) return 0;
    return c->precision == DL_FP16 ? 5 : c->precision == DL_FP32 ? 2 : 0;
}

/* Kept whole: what each width concerns, in one sum. */
static void widths_of_parts(void **state) {
    (void)state;
    uint64_t seed = 12;
    for (int round = 0; round < 4000; round++) {
        struct lists lists;
        const struct dl_interval_model m = random_model(&seed, &lists);
        struct dl_interval_case c = random_case(&seed);
        const bool was_g = equal(c.framework, "g") && equal(c.release, "1.0"),
                   was_f = equal(c.framework, "f"), fp32 = c.precision == DL_FP32,
                   release =
                       (was_g && fp32) ||
                       (was_f && equal(c.release, "1.0") && (fp32 || c.precision == DL_FP16)) ||
                       (was_f && equal(c.release, "1.1") && c.precision == DL_BF16);
        const double *w = c.anchored ? m.anchored_widths.half_log : m.widths.half_log;
        double sum = w[DL_WIDTH_ALL] * w[DL_WIDTH_ALL] +
                     pow(w[DL_WIDTH_COMMUNICATION] * c.exposed_frac, 2) +
                     pow(w[DL_WIDTH_OVERHEAD] * c.waits_frac, 2);
        if (c.precision == DL_MIXED || c.precision == DL_FP16) sum += pow(w[DL_WIDTH_MIXED], 2);
        if (!isnan(c.model_sigma_log)) sum += pow(w[DL_WIDTH_KERNELS] * c.model_sigma_log, 2);
        if (!c.anchored) {
            if (!was_f && !equal(c.framework, "g")) sum += pow(w[DL_WIDTH_FRAMEWORK], 2);
            if (!release) sum += pow(w[DL_WIDTH_RELEASE], 2);
            sum += pow(w[DL_WIDTH_DEVICE], 2) / (1 + sources_of(&c));
            if (c.parameters != 25e6 && c.parameters != 25.1e6 && !equal(c.layers, "encoder"))
                sum += pow(w[DL_WIDTH_NETWORK], 2);
            if (c.release_assumed) sum += pow(w[DL_WIDTH_ASSUMED], 2);
        }
        check_close(dl_interval_half_log(&m, &c), sqrt(sum), 1e-12);
        const struct dl_interval_known known = {was_f, release, fp32, round % 4};
        const double fp16 = c.precision == DL_MIXED || c.precision == DL_FP16 ? 1 : 0,
                     spread = isnan(c.model_sigma_log) ? 0 : c.model_sigma_log;
        const double want[] = {1,
                               was_f ? 0 : 1,
                               release ? 0 : 1,
                               pow(1 + round % 4, -0.5),
                               c.exposed_frac,
                               c.waits_frac,
                               fp16,
                               spread,
                               fp32 ? 0 : 1,
                               c.release_assumed ? 1 : 0};
        double covariates[DL_WIDTHS];
        dl_interval_covariates(&c, &known, covariates);
        for (int k = 0; k < DL_WIDTHS; k++) {
            const bool of_all = k == DL_WIDTH_ALL || k == DL_WIDTH_COMMUNICATION ||
                                k == DL_WIDTH_OVERHEAD || k == DL_WIDTH_MIXED ||
                                k == DL_WIDTH_KERNELS;
            check_close(covariates[k], c.anchored && !of_all ? 0 : want[k], 1e-12);
        }
    }
}

/* Within 0.5 %, of any size; nobody knows what has none. */
static void one_network_or_two(void **state) {
    (void)state;
    static const double sizes[] = {1e-3, 0.5, 1, 2, 1e9};
    for (int i = 0; i < 5; i++) {
        const double x = sizes[i];
        assert_true(dl_interval_same_network(x, x));
        assert_true(dl_interval_same_network(x, x * 1.0049));
        assert_true(dl_interval_same_network(x * 1.0049, x));
        assert_false(dl_interval_same_network(x, x * 1.0051));
        assert_false(dl_interval_same_network(x * 1.0051, x));
        assert_false(dl_interval_same_network(-x, -x));
        assert_false(dl_interval_same_network(x, -x));
        assert_false(dl_interval_same_network(x, 0));
        assert_false(dl_interval_same_network(0, x));
    }
    assert_false(dl_interval_same_network(INFINITY, INFINITY));
}

/* ---- corrected predictions ---- */

/* Any prediction, corrected by any runs: the parts by their factors, their sum, what follows from
 * the sum, and the narrower of both intervals.
 * Kept whole: one random prediction and all that is corrected. */
static void corrections(void **state) {
    (void)state;
    uint64_t seed = 13;
    struct dl_err err = {0};
    int narrower = 0, wider = 0;
    for (int round = 0; round < 3000; round++) {
        struct lists lists;
        struct dl_fake f;
        fake_make(&f);
        struct dl_interval_model m = random_model(&seed, &lists);
        m.plans_sigma_log = some(&seed, 0.1);
        m.widths.half_log[0] *= 3, m.anchored_widths.half_log[0] *= 3;
        const bool measured = check_random(&seed) % 3 > 0;
        f.workload.name = "bert", f.framework.name = "f", f.framework.release = "1.0";
        f.framework.release_assumed = check_random(&seed) % 2 == 0;
        f.plan.compute_scale = check_random(&seed) % 3 == 0 ? 1.25 : 0;
        f.framework.intervals = check_random(&seed) % 9 > 0 ? &m : NULL;
        struct dl_prediction p = {.forward_s = some(&seed, 1),
                                  .backward_s = some(&seed, 1),
                                  .update_s = 0.1,
                                  .exposed_comm_s = some(&seed, 1),
                                  .exposed_input_s = some(&seed, 1),
                                  .bubble_s = some(&seed, 1),
                                  .straggler_s = some(&seed, 0.2),
                                  .paced_s = some(&seed, 0.3),
                                  .iteration_low_s = 3,
                                  .iteration_high_s = 4,
                                  .epoch_s = 100,
                                  .scaling_efficiency = 0.9,
                                  .model_sigma_log = some(&seed, 0.1)};
        p.comm_s = p.exposed_comm_s + some(&seed, 1), p.overhead_s = p.straggler_s + 0.1;
        p.compute_s = p.forward_s + p.backward_s + p.update_s;
        p.iteration_s =
            p.compute_s + p.exposed_comm_s + p.exposed_input_s + p.bubble_s + p.overhead_s;
        p.throughput_samples_per_s = 8 * 32 / p.iteration_s; /* 32 on each of 8 devices */
        const struct dl_prediction was = p;
        const struct dl_interval_case c =
            dl_interval_case_of(&f.system, &f.workload, &f.framework, &f.plan, &p);
        check_close(c.exposed_frac, p.exposed_comm_s / p.iteration_s, 1e-12);
        check_close(c.overhead_frac, (p.overhead_s + p.bubble_s) / p.iteration_s, 1e-12);
        const double idle_s = fmax(p.paced_s, p.overhead_s - p.straggler_s);
        check_close(c.waits_frac * p.iteration_s * c.waits_frac * p.iteration_s,
                    idle_s * idle_s + p.straggler_s * p.straggler_s + p.bubble_s * p.bubble_s,
                    1e-12);
        check_close(c.batch_per_device_samples, 32, 1e-12);
        assert_int_equal(c.anchored, f.plan.compute_scale > 0);
        assert_int_equal(c.release_assumed, f.framework.release_assumed);
        assert_string_equal(c.framework, "f");
        assert_string_equal(c.release, "1.0");
        const struct dl_measured_run runs[] = {
            {check_uniform(&seed) - 0.5, c, "bert"},
            {check_uniform(&seed) - 0.5, c, check_random(&seed) % 2 ? "bert" : "gpt"}};
        f.framework.measured = NULL;
        if (measured)
            assert_int_equal(dl_posterior_make(&m, runs, 2, &f.arena, &f.framework.measured, &err),
                             DL_OK);
        const struct dl_predict_request r = {&f.system, &f.workload, &f.framework,
                                             &f.plan,   NULL,        &f.arena};
        dl_predict_correct(&r, &p);
        if (f.framework.intervals == NULL) {
            assert_memory_equal(&p, &was, sizeof p);
            dl_arena_free(&f.arena);
            continue;
        }
        double half = dl_interval_half_log(&m, &c), sigma = dl_interval_sigma_log(&m, &c), a = 1,
               b = 1, o = 1;
        if (measured) {
            const struct dl_posterior_shift s =
                dl_posterior_shift(f.framework.measured, "bert", &c);
            a = exp(s.compute_log), b = exp(s.communication_log);
            o = exp(s.compute_log + s.overhead_log);
            const bool narrow = 1.2815515655446004 * s.sigma_log < half;
            if (narrow) sigma = s.sigma_log, half = 1.2815515655446004 * s.sigma_log;
            *(narrow ? &narrower : &wider) += 1;
        }
        const double now_s = a * was.compute_s + b * was.exposed_comm_s + was.exposed_input_s +
                             o * (was.bubble_s + was.overhead_s),
                     by = now_s / was.iteration_s;
        check_close(p.forward_s, a * was.forward_s, 1e-12);
        check_close(p.backward_s, a * was.backward_s, 1e-12);
        check_close(p.update_s, a * was.update_s, 1e-12);
        check_close(p.compute_s, a * was.compute_s, 1e-12);
        check_close(p.comm_s, b * was.comm_s, 1e-12);
        check_close(p.exposed_comm_s, b * was.exposed_comm_s, 1e-12);
        check_close(p.exposed_input_s, was.exposed_input_s, 0);
        check_close(p.bubble_s, o * was.bubble_s, 1e-12);
        check_close(p.straggler_s, o * was.straggler_s, 1e-12);
        check_close(p.overhead_s, o * was.overhead_s, 1e-12);
        check_close(p.iteration_s, now_s, 1e-12);
        check_close(p.throughput_samples_per_s, was.throughput_samples_per_s / by, 1e-12);
        check_close(p.epoch_s, 100 * by, 1e-12);
        check_close(p.scaling_efficiency, 0.9 * a / by, 1e-12);
        check_close(p.sigma_log, sigma, 1e-12);
        check_close(p.plans_sigma_log, m.plans_sigma_log, 0);
        const double shared = dl_interval_shared_sigma_log(&m, &c);
        check_close(p.shared_sigma_log, shared < sigma ? shared : sigma, 1e-12);
        check_close(p.iteration_low_s, now_s * exp(-half), 1e-12);
        check_close(p.iteration_high_s, now_s * exp(half), 1e-12);
        /* what is the plan's own, and what one plan of a job has against another */
        const double own = half * sqrt(1 - pow(p.shared_sigma_log / sigma, 2));
        check_close(dl_prediction_own_half_log(&p), own, 1e-6 * fmax(1, half / fmax(own, 1e-9)));
        check_close(dl_prediction_plan_half_log(&p),
                    m.plans_sigma_log > 0 ? 1.2815515655446004 * m.plans_sigma_log
                                          : dl_prediction_own_half_log(&p),
                    1e-9);
        dl_arena_free(&f.arena);
    }
    if (narrower < 100 || wider < 100) fail_msg("%d narrower, %d wider", narrower, wider);
}

/* Two plans tie where they are no further apart than the root of their squares; of widths 0.3 and
 * 0.4 that is 0.5. */
static void ties(void **state) {
    (void)state;
    struct dl_prediction a = {.iteration_s = 1,
                              .iteration_high_s = exp(0.3),
                              .throughput_samples_per_s = 100,
                              .sigma_log = NAN,
                              .shared_sigma_log = NAN},
                         b = a;
    b.iteration_high_s = exp(0.4);
    for (int sign = -1; sign <= 1; sign += 2) {
        b.throughput_samples_per_s = 100 * exp(0.499 * sign);
        assert_true(dl_prediction_ties(&a, &b) && dl_prediction_ties(&b, &a));
        assert_true(dl_prediction_plans_tie(&a, &b) && dl_prediction_plans_tie(&b, &a));
        b.throughput_samples_per_s = 100 * exp(0.501 * sign);
        assert_false(dl_prediction_ties(&a, &b) || dl_prediction_ties(&b, &a));
        assert_false(dl_prediction_plans_tie(&a, &b) || dl_prediction_plans_tie(&b, &a));
    }
    /* by the spread of plans where it is known: 1.28 sqrt(2) 0.1 = 0.181 */
    a.plans_sigma_log = b.plans_sigma_log = 0.1;
    b.throughput_samples_per_s = 100 * exp(0.181);
    assert_true(dl_prediction_plans_tie(&a, &b));
    b.throughput_samples_per_s = 100 * exp(0.182);
    assert_false(dl_prediction_plans_tie(&a, &b));
    /* what is not known of the spreads leaves the whole width */
    a.sigma_log = 0.5;
    check_close(dl_prediction_own_half_log(&a), 0.3, 1e-12);
    a.shared_sigma_log = 0.3; /* sqrt(1 - 0.36) = 0.8 */
    check_close(dl_prediction_own_half_log(&a), 0.24, 1e-12);
    a.sigma_log = NAN;
    check_close(dl_prediction_own_half_log(&a), 0.3, 1e-12);
    a.sigma_log = 0;
    check_close(dl_prediction_own_half_log(&a), 0.3, 1e-12);
    a.sigma_log = 0.3, a.shared_sigma_log = 0.4;
    check_close(dl_prediction_own_half_log(&a), 0, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(posteriors_by_covariance),
        cmocka_unit_test(factors_of_parts),
        cmocka_unit_test(spreads_of_parts),
        cmocka_unit_test(widths_of_parts),
        cmocka_unit_test(runs_without_numbers),
        cmocka_unit_test(one_network_or_two),
        cmocka_unit_test(corrections),
        cmocka_unit_test(ties),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
