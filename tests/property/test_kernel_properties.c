/* Kernel times of random kernels: finite, positive, at least what physics allows, not falling with
 * more work. */
#include "model/machine/device.h"
#include "model/core/json.h"
#include "model/machine/kernel.h"
#include "model/machine/kernel_model.h"
#include "tests/check.h"

enum { CASES = 1000 };
static const double ONES[DL_DIMS] = {1, 1, 1};

struct fixture {
    struct dl_arena arena;
    struct dl_device devices[3];
    struct dl_kernel_model_set sets[3];
};

static void load(struct fixture *f, int i, const char *name) {
    char path[1024];
    struct dl_json *doc;
    struct dl_err err = {0};
    snprintf(path, sizeof path, "%s/data/devices/%s.json", check_root(), name);
    if (dl_json_read(path, &f->arena, &doc, &err) != DL_OK ||
        dl_json_load(doc, &dl_device_schema, &f->arena, &f->devices[i], &err) != DL_OK)
        fail_msg("%s: %s", path, err.message);
    snprintf(path, sizeof path, "%s/data/kernels/%s.json", check_root(), name);
    if (dl_json_read(path, &f->arena, &doc, &err) != DL_OK ||
        dl_json_load(doc, &dl_kernel_model_set_schema, &f->arena, &f->sets[i], &err) != DL_OK)
        fail_msg("%s: %s", path, err.message);
    for (int s = 0; s < f->sets[i].kernel_model_count; s++) {
        assert_int_equal(
            dl_kernel_model_check(&f->sets[i].kernel_models[s], doc, "kernel_models", &err), DL_OK);
        assert_int_equal(dl_kernel_model_pack(&f->sets[i].kernel_models[s], &f->arena, &err),
                         DL_OK);
    }
    f->devices[i].kernel_models = f->sets[i].kernel_models;
    f->devices[i].kernel_model_count = f->sets[i].kernel_model_count;
}

static int set_up(void **state) {
    struct fixture *f = calloc(1, sizeof *f);
    if (f == NULL) return -1;
    load(f, 0, "v100_sxm2_16");
    load(f, 1, "p100_pcie16");
    load(f, 2, "knl7250");
    *state = f;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *f = *state;
    dl_arena_free(&f->arena);
    free(f);
    return 0;
}

/* Log-uniform whole number in [low, high]. */
static double size_in(uint64_t *random, double low, double high) {
    return floor(low * pow(high / low, check_uniform(random)));
}

static struct dl_kernel random_kernel(uint64_t *random, double batch_factor) {
    enum dl_pass pass = (enum dl_pass)(check_random(random) % 3);
    switch (check_random(random) % 3) {
    case 0: {
        double m = size_in(random, 1, 50000), n = size_in(random, 1, 10000),
               k = size_in(random, 1, 50000);
        struct dl_kernel gemm =
            dl_kernel_gemm(pass, m, n * batch_factor, k, size_in(random, 1, 64));
        gemm.a_trans = check_random(random) % 2;
        gemm.b_trans = check_random(random) % 2;
        return gemm;
    }
    case 1: {
        double width = size_in(random, 7, 300), side = size_in(random, 1, 7),
               step = size_in(random, 1, 2);
        const double in[DL_DIMS] = {1, width, width}, kernel[DL_DIMS] = {1, side, side};
        const double stride[DL_DIMS] = {1, step, step},
                     pad[DL_DIMS] = {0, floor(side / 2), floor(side / 2)};
        double batch = size_in(random, 1, 256), groups = check_random(random) % 8 == 0 ? 4 : 1;
        double channels = 4 * size_in(random, 1, 512), filters = 4 * size_in(random, 1, 512);
        return dl_kernel_conv(pass, &(struct dl_conv_shape){batch * batch_factor, channels, filters,
                                                            groups, in, kernel, stride, pad, ONES});
    }
    default:
        return dl_kernel_stream(pass, 0, size_in(random, 1, 1e9) * batch_factor,
                                size_in(random, 1, 1e9) * batch_factor);
    }
}

static void times_are_sane(void **state) {
    struct fixture *f = *state;
    uint64_t random = 11;
    for (int i = 0; i < CASES; i++) {
        const struct dl_device *device = &f->devices[i % 3];
        enum dl_precision precision = i % 2 == 0 ? DL_FP32 : DL_MIXED;
        struct dl_kernel kernel = random_kernel(&random, 1);
        struct dl_kernel_time time;
        dl_kernel_time(device, precision, &kernel, &time);
        assert_true(isfinite(time.time_s) && time.time_s > 0 && isfinite(time.sigma_log) &&
                    time.sigma_log > 0);
        /* Winograd saves at most a factor of 4 with 4x4 tiles, FFT on large kernels more; the rest
         * has to be done. */
        if (kernel.op == DL_OP_GEMM &&
            kernel.flop / time.time_s > 1.2 * dl_device_peak(device, precision))
            fail_msg("product %g x %g x %g x %g runs above the peak: %g flop/s", kernel.m, kernel.n,
                     kernel.k, kernel.count, kernel.flop / time.time_s);
        if (kernel.op == DL_OP_CONV &&
            kernel.flop / time.time_s > 6 * dl_device_peak(device, precision))
            fail_msg("convolution runs above any algorithm: %g flop/s", kernel.flop / time.time_s);
    }
}

static void more_work_takes_longer(void **state) {
    struct fixture *f = *state;
    static const struct dl_kernel_model_scale own = {1, 1, 1, 1};
    for (int i = 0; i < CASES; i++) {
        uint64_t random = 1000 + (uint64_t)i, same = random;
        struct dl_kernel one = random_kernel(&random, 1), two = random_kernel(&same, 2);
        const struct dl_device *device = &f->devices[i % 3];
        struct dl_kernel_time time_one, time_two;
        dl_kernel_time(device, DL_FP32, &one, &time_one);
        dl_kernel_time(device, DL_FP32, &two, &time_two);
        /* Another algorithm may be faster on the larger call, but not by much. */
        if (!(time_two.time_s > 0.5 * time_one.time_s))
            fail_msg("case %d (%s): twice the batch takes %g s, once %g s", i, dl_op_names[one.op],
                     time_two.time_s, time_one.time_s);
        if (one.op == DL_OP_STREAM) continue;
        for (int s = 0; s < device->kernel_model_count; s++) {
            const struct dl_kernel_model *model = &device->kernel_models[s];
            if (model->op != (int)one.op || model->pass != (int)one.pass) continue;
            struct dl_kernel_model_shape shape_one, shape_two;
            dl_kernel_model_shape_of(&one, 4, device->unit_count, &shape_one);
            dl_kernel_model_shape_of(&two, 4, device->unit_count, &shape_two);
            double base_one = dl_kernel_model_base(model, &own, &shape_one, NULL);
            double base_two = dl_kernel_model_base(model, &own, &shape_two, NULL);
            /* The base rises with the batch, but where the batch changes which side is the longer
             * one; small batches of 3x3 convolutions are padded (batch_exponent_3x3), which may
             * cost a few percent more for fewer. */
            bool turned = one.op == DL_OP_GEMM && (one.m >= one.n) != (two.m >= two.n);
            if (!turned && !(base_two > base_one * (one.op == DL_OP_CONV ? 0.95 : 1 - 1e-9)))
                fail_msg("case %d: base %g then %g", i, base_one, base_two);
        }
    }
}

static double base_of(const struct dl_kernel_model *model,
                      const struct dl_kernel_model_shape *shape, double rate, double bandwidth) {
    const struct dl_kernel_model_scale scale = {rate, bandwidth, 1, fmax(rate / bandwidth, 1)};
    return dl_kernel_model_base(model, &scale, shape, NULL);
}

/* A model that another device borrows: more arithmetic or more bandwidth never costs time, both
 * double the speed. */
static void borrowed_models_obey_rates(void **state) {
    struct fixture *f = *state;
    uint64_t random = 5;
    int compared = 0;
    for (int i = 0; i < CASES; i++) {
        const struct dl_device *device = &f->devices[i % 3];
        const struct dl_kernel kernel = random_kernel(&random, 1);
        const double rate = pow(10, 2 * check_uniform(&random) - 1),
                     bandwidth = pow(10, 2 * check_uniform(&random) - 1),
                     more = 1 + 3 * check_uniform(&random);
        struct dl_kernel_model_shape shape;
        dl_kernel_model_shape_of(&kernel, 4, device->unit_count, &shape);
        for (int s = 0; s < device->kernel_model_count; s++) {
            struct dl_kernel_model model = device->kernel_models[s];
            if (model.op != (int)kernel.op || model.pass != (int)kernel.pass) continue;
            model.latency_s = 0;
            const double time_s = base_of(&model, &shape, rate, bandwidth),
                         limit_s = time_s * (1 + 1e-9);
            if (!(base_of(&model, &shape, rate * more, bandwidth) <= limit_s))
                fail_msg("case %d: slower with %g times the rate %g, bandwidth %g", i, more, rate,
                         bandwidth);
            if (!(base_of(&model, &shape, rate, bandwidth * more) <= limit_s))
                fail_msg("case %d: slower with %g times the bandwidth %g, rate %g", i, more,
                         bandwidth, rate);
            assert_true(fabs(2 * base_of(&model, &shape, 2 * rate, 2 * bandwidth) / time_s - 1) <
                        1e-9);
            compared++;
        }
    }
    assert_true(compared > CASES / 2);
}

static void far_from_samples_says_so(void **state) {
    struct fixture *f = *state;
    struct dl_kernel huge = dl_kernel_gemm(DL_FORWARD, 4e6, 4e6, 4e6, 1);
    for (int i = 0; i < 3; i++) {
        struct dl_kernel_time time;
        dl_kernel_time(&f->devices[i], DL_FP32, &huge, &time);
        assert_true(time.extrapolated);
        double rate = huge.flop / time.time_s, peak = dl_device_peak(&f->devices[i], DL_FP32);
        if (rate < 0.4 * peak || rate > 1.2 * peak)
            fail_msg("%s: %g of the peak", f->devices[i].name, rate / peak);
    }
}

/* From the samples outwards, batch by batch: no jump, and far away the base with the mean
 * correction. */
static void fades_to_the_base(void **state) {
    struct fixture *f = *state;
    static const struct dl_kernel_model_scale own = {1, 1, 1, 1};
    for (int i = 0; i < 3; i++) {
        for (int s = 0; s < f->devices[i].kernel_model_count; s++) {
            const struct dl_kernel_model *model = &f->devices[i].kernel_models[s];
            struct dl_kernel kernel =
                model->op == DL_OP_GEMM
                    ? dl_kernel_gemm(DL_FORWARD, 1760, 128, 1760, 1)
                    : dl_kernel_conv((enum dl_pass)model->pass,
                                     &(struct dl_conv_shape){16, 256, 256, 1, (double[]){1, 14, 14},
                                                             ONES, ONES, (double[]){0, 0, 0},
                                                             ONES});
            struct dl_kernel_model_shape shape;
            dl_kernel_model_shape_of(&kernel, 4, f->devices[i].unit_count, &shape);
            double before = 0;
            for (double step = 0; step < 60; step += 0.01) {
                struct dl_kernel_time time;
                for (int axis = 0; axis < 5; axis++) shape.features[axis] += 0.01F;
                dl_kernel_model_eval(model, &own, &shape, &time);
                double correction =
                    log(time.time_s / dl_kernel_model_base(model, &own, &shape, NULL));
                if (step > 0 && fabs(correction - before) > 0.1)
                    fail_msg("%s, model %d: correction %g, then %g", f->devices[i].name, s, before,
                             correction);
                before = correction;
                if (step > 40) assert_true(time.extrapolated);
            }
            assert_true(fabs(before - model->correction.offset) < 0.3);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_are_sane),
        cmocka_unit_test(more_work_takes_longer),
        cmocka_unit_test(borrowed_models_obey_rates),
        cmocka_unit_test(far_from_samples_says_so),
        cmocka_unit_test(fades_to_the_base),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
