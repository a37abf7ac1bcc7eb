/* Which measured runs are believed: each against the posterior of the others, made without it. */
#include "model/engine/agreement.h"
#include "model/engine/correct.h"
#include "tests/check.h"
#include "tests/fake.h"

static const struct dl_interval_model model = {.source_sigma_log = 0.1,
                                               .device_sigma_log = 0.05,
                                               .workload_sigma_log = 0.05,
                                               .job_sigma_log = 0.03,
                                               .communication_sigma_log = 0.4,
                                               .overhead_sigma_log = 0.5,
                                               .row_sigma_log = 0.03,
                                               .row_communication_sigma_log = 0.2,
                                               .row_overhead_sigma_log = 0.3,
                                               .widths.half_log[DL_WIDTH_ALL] = 0.1,
                                               .fast_widths.half_log[DL_WIDTH_ALL] = 0.05,
                                               .update_ratio = 1};

static struct dl_measured_run run(double log_ratio, double exposed, double overhead, double batch) {
    return (struct dl_measured_run){.log_ratio = log_ratio,
                                    .what = {.precision = DL_FP32,
                                             .model_sigma_log = NAN,
                                             .exposed_frac = exposed,
                                             .overhead_frac = overhead,
                                             .batch_per_device_samples = batch},
                                    .workload = batch > 40 ? "vgg16" : "resnet50"};
}

/* What the posterior of all runs but one says of that one. */
static void without(const struct dl_measured_run *runs, size_t count, size_t one, double *rest,
                    double *z) {
    struct dl_arena arena = {0};
    struct dl_measured_run others[8];
    const struct dl_posterior *p;
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        if (i != one) others[n++] = runs[i];
    assert_int_equal(dl_posterior_make(&model, others, n, &arena, &p, NULL), DL_OK);
    const struct dl_interval_case *c = &runs[one].what;
    const struct dl_posterior_shift s = dl_posterior_shift(p, runs[one].workload, c);
    *rest = (1 - c->exposed_frac) * s.compute_log + c->exposed_frac * s.communication_log +
            c->overhead_frac * s.overhead_log;
    *z = (runs[one].log_ratio - *rest) / s.sigma_log;
    dl_arena_free(&arena);
}

static void each_run_is_judged_by_the_others(void **state) {
    struct dl_agreement agreed;
    const struct dl_measured_run runs[] = {run(0.1, 0, 0.1, 32), run(0.14, 0.2, 0.1, 32),
                                           run(0.05, 0.4, 0, 64), run(0.12, 0.1, 0.3, 16)};
    double sum = 4;
    assert_int_equal(dl_runs_agree(&model, runs, 4, &test_arena, &agreed, NULL), DL_OK);
    assert_int_equal(agreed.used, 4);
    for (size_t i = 0; i < 4; i++) {
        double rest, z;
        without(runs, 4, i, &rest, &z);
        check_close(agreed.off_ratio[i], z, 1e-6);
        check_close(agreed.rest_log[i], rest, 1e-6);
        assert_false(agreed.left_out[i]);
        sum += z * z;
    }
    check_close(agreed.widened_ratio, sqrt(fmax(1, sum / 8)), 1e-9);
    assert_int_equal(dl_posterior_runs(agreed.posterior), 4);
}

/* Twice the usual time in one of five is left out, and the rest is as without it. Where two of four
 * or one of two are off, nobody is to blame. */
static void a_minority_is_left_out(void **state) {
    struct dl_agreement agreed, four;
    struct dl_measured_run runs[5];
    for (int i = 0; i < 4; i++) runs[i] = run(0.1 + 0.005 * i, 0.05, 0.1, 32);
    runs[4] = run(0.7, 0.05, 0.1, 32);
    assert_int_equal(dl_runs_agree(&model, runs, 4, &test_arena, &four, NULL), DL_OK);
    check_close(four.widened_ratio, 1, 0);
    assert_ptr_equal(four.intervals, &model);
    assert_int_equal(dl_runs_agree(&model, runs, 5, &test_arena, &agreed, NULL), DL_OK);
    assert_int_equal(agreed.used, 4);
    assert_true(agreed.left_out[4] && agreed.off_ratio[4] > 4);
    const struct dl_interval_case c = run(0, 0.3, 0, 8).what;
    const struct dl_posterior_shift a = dl_posterior_shift(agreed.posterior, "vgg16", &c),
                                    b = dl_posterior_shift(four.posterior, "vgg16", &c);
    check_close(a.compute_log, b.compute_log, 1e-12);
    check_close(a.sigma_log, b.sigma_log, 1e-12);

    runs[3] = run(0.7, 0.05, 0.1, 32);
    assert_int_equal(dl_runs_agree(&model, &runs[1], 4, &test_arena, &agreed, NULL), DL_OK);
    assert_int_equal(agreed.used, 4);
    assert_true(agreed.widened_ratio > 1.5);
    assert_int_equal(dl_runs_agree(&model, &runs[2], 2, &test_arena, &agreed, NULL), DL_OK);
    assert_int_equal(agreed.used, 2);
    const double wide = dl_posterior_shift(agreed.posterior, "vgg16", &c).sigma_log;
    assert_true(agreed.widened_ratio > 1.5 && wide > 1.5 * b.sigma_log);
    check_close(agreed.intervals->widths.half_log[DL_WIDTH_ALL], 0.1 * agreed.widened_ratio, 1e-12);
    check_close(agreed.intervals->fast_widths.half_log[DL_WIDTH_ALL], 0.05 * agreed.widened_ratio,
                1e-12);
}

/* One run: its distance from what was known before, in that spread: 0.1^2 + 0.05^2 + 0.05^2 +
 * 0.03^2 + 0.03^2 = 0.0168. No run: nothing. */
static void one_run_and_none(void **state) {
    struct dl_agreement agreed;
    const struct dl_measured_run one = run(0.5, 0, 0, 32);
    assert_int_equal(dl_runs_agree(&model, &one, 1, &test_arena, &agreed, NULL), DL_OK);
    check_close(agreed.off_ratio[0], 0.5 / sqrt(0.0168), 1e-6);
    check_close(agreed.widened_ratio, sqrt((4 + 0.25 / 0.0168) / 5), 1e-6);
    assert_int_equal(dl_runs_agree(&model, &one, 0, &test_arena, &agreed, NULL), DL_OK);
    assert_null(agreed.posterior);
    assert_ptr_equal(agreed.intervals, &model);
}

/* A run without communication says what the devices' part takes: the time of messages and of input
 * stays, and the parts add up to the iteration. */
static void measured_compute_moves_the_parts_of_devices(void **state) {
    struct dl_fake f;
    struct dl_prediction p = {.compute_s = 4,
                              .exposed_comm_s = 2,
                              .exposed_input_s = 0.5,
                              .bubble_s = 0.25,
                              .overhead_s = 1.25,
                              .iteration_s = 8,
                              .throughput_samples_per_s = 80,
                              .scaling_efficiency = 0.5};
    fake_make(&f);
    f.framework.errors.intervals = &model;
    struct dl_measured_run quiet = {
        0.3, dl_interval_case_of(&f.system, &f.workload, &f.framework, &f.plan, &p), "resnet50"};
    quiet.what.exposed_frac = quiet.what.overhead_frac = quiet.what.waits_frac = 0;
    assert_int_equal(
        dl_posterior_make(&model, &quiet, 1, &test_arena, &f.framework.errors.measured, NULL),
        DL_OK);
    const double factor = exp(
                     dl_posterior_shift(f.framework.errors.measured, f.workload.name, &quiet.what)
                         .compute_log),
                 iteration_s = 5.5 * factor + 2.5;
    assert_true(factor > 1.05);
    dl_predict_correct(&(struct dl_predict_request){&f.system, &f.workload, &f.framework, &f.plan,
                                                    NULL, &test_arena},
                       &p);
    check_close(p.compute_s, 4 * factor, 1e-12);
    check_close(p.bubble_s + p.overhead_s, 1.5 * factor, 1e-12);
    check_close(p.iteration_s, iteration_s, 1e-12);
    check_close(p.throughput_samples_per_s, 640 / iteration_s, 1e-12);
    check_close(p.scaling_efficiency, 4 * factor / iteration_s, 1e-12);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_run_is_judged_by_the_others),
        cmocka_unit_test(a_minority_is_left_out), cmocka_unit_test(one_run_and_none),
        cmocka_unit_test(measured_compute_moves_the_parts_of_devices)};
    return cmocka_run_group_tests(tests, NULL, check_free);
}
