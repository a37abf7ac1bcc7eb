/* Which kernel-time model of a device serves a kernel: of its operation and kind, in the precision
 * that comes nearest, of the pass or else the forward pass; told by the call_s of the model.
 * F-KERNEL-MODEL, F-KERNEL-WORK. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/hardware/device.h"
#include "tests/check.h"
#include "tests/plain_device.h"

static uint64_t seed = 24;
static int upto(int count) { return (int)(check_random(&seed) % (uint64_t)count); }

/* Nearest first; -1 ends. */
static const int NEAREST[DL_PRECISIONS][8] = {
    [DL_FP32] = {DL_FP32, -1},
    [DL_TF32] = {DL_TF32, DL_MIXED, DL_FP16, DL_BF16, DL_FP32, -1},
    [DL_MIXED] = {DL_MIXED, DL_FP16, DL_BF16, DL_FP32, -1},
    [DL_FP16] = {DL_FP16, DL_MIXED, DL_BF16, DL_FP32, -1},
    [DL_BF16] = {DL_BF16, DL_MIXED, DL_FP16, DL_FP32, -1},
    [DL_FP8] = {DL_FP8, DL_FP16, DL_MIXED, DL_BF16, DL_FP32, -1},
    [DL_MXFP8] = {DL_MXFP8, DL_FP8, DL_FP16, DL_MIXED, DL_BF16, DL_FP32, -1},
    [DL_NVFP4] = {DL_NVFP4, DL_MXFP8, DL_FP8, DL_FP16, DL_MIXED, DL_BF16, DL_FP32, -1},
};
static const int WIDE_STREAMS[] = {DL_FP32, DL_MIXED, -1};

/* call_s of the first of those precisions, of the pass or else the forward pass; of engines only
 * for a kernel of engines, or where nothing else is. */
static double expected_s(const struct dl_device *d, const struct dl_kernel *k, const int *order,
                         int work, int variant) {
    double engines_s = NAN;
    for (; *order >= 0; order++) {
        const struct dl_kernel_model *found = NULL;
        for (int own = 1; own >= 0 && found == NULL; own--) {
            for (int i = d->kernel_model_count - 1; i >= 0; i--) {
                const struct dl_kernel_model *m = &d->kernel_models[i];
                const int pass = own ? (int)k->pass : DL_FORWARD;
                if (m->op == (int)k->op && m->precision == *order && m->pass == pass &&
                    m->work == work && m->variant == variant)
                    found = m;
            }
        }
        if (found == NULL) continue;
        if (!found->of_engines || k->variant == DL_VARIANT_ENGINE) return found->call_s;
        if (isnan(engines_s)) engines_s = found->call_s;
    }
    return engines_s;
}

/* Kept whole: one random device and kernel, and the order in which its models are asked. */
static void models(void **state) {
    (void)state;
    enum { MODELS = 12 };
    const double one[DL_DIMS] = {1, 1, 1}, none[DL_DIMS] = {0, 0, 0}, three[DL_DIMS] = {1, 3, 3};
    struct dl_kernel_model list[MODELS];
    int known = 0;
    for (int n = 0; n < 20000; n++) {
        struct dl_rate rates[] = {{.precision = DL_FP32, .unit = 0}, {.precision = DL_FP16}};
        rates[1].unit = upto(2);
        struct dl_device d = {.kernel_models = list,
                              .kernel_model_count = 1 + upto(MODELS),
                              .rates = rates,
                              .rate_count = 1 + upto(2)};
        const bool units = d.rate_count == 2 && rates[1].unit == 1;
        const enum dl_pass pass = (enum dl_pass)upto(3);
        const enum dl_op op = (enum dl_op)upto(DL_OPS);
        const int works[] = {DL_WORK_ANY, DL_WORK_ANY, DL_WORK_ROPE},
                  variants[] = {DL_VARIANT_PLAIN, DL_VARIANT_PLAIN, DL_VARIANT_ENGINE,
                                DL_VARIANT_DEPTHWISE, DL_VARIANT_VOLUME};
        for (int i = 0; i < d.kernel_model_count; i++)
            list[i] = (struct dl_kernel_model){.op = upto(3) > 0 ? (int)op : upto(DL_OPS),
                                               .pass = upto(3),
                                               .precision = upto(DL_PRECISIONS),
                                               .work = works[upto(3)],
                                               .variant = variants[upto(5)],
                                               .of_engines = upto(3) == 0,
                                               .call_s = i + 1};
        struct dl_kernel k;
        bool deep = false, depthwise = false;
        if (op == DL_OP_GEMM) {
            k = dl_kernel_gemm(pass, 8, 8, 8, 1);
        } else if (op == DL_OP_CONV) {
            const double in[DL_DIMS] = {upto(3) == 0 ? 4 : 1, 8, 8};
            depthwise = upto(4) == 0;
            k = dl_kernel_conv(pass, 2, 8, 8, depthwise ? 8 : 1, in, three, one, none, one);
            if (!depthwise && upto(4) == 0) k.variant = DL_VARIANT_VOLUME;
            deep = k.variant == DL_VARIANT_VOLUME || in[0] > 1;
        } else if (op == DL_OP_STREAM) {
            k = dl_kernel_stream(pass, 1, 8, 8);
            k.work = upto(2) == 0 ? DL_WORK_ROPE : DL_WORK_ANY;
        } else {
            k = dl_kernel_attention(pass,
                                    &(struct dl_attention_shape){1, 8, 8, 64, 64, 8, 8, 0, 0});
        }
        if ((op == DL_OP_STREAM || op == DL_OP_ATTENTION) && upto(3) == 0)
            k.variant = DL_VARIANT_ENGINE;
        const enum dl_precision precision = (enum dl_precision)upto(DL_PRECISIONS);
        const int *order = NEAREST[precision];
        if (op == DL_OP_STREAM && precision <= DL_TF32) order = WIDE_STREAMS;
        if (op == DL_OP_CONV && precision == DL_MIXED && !units) order = NEAREST[DL_FP32];
        double s = NAN;
        if (depthwise) {
            s = expected_s(&d, &k, order, DL_WORK_ANY, DL_VARIANT_DEPTHWISE);
        } else {
            if (deep) s = expected_s(&d, &k, order, DL_WORK_ANY, DL_VARIANT_VOLUME);
            if (op == DL_OP_STREAM && k.variant == DL_VARIANT_ENGINE)
                s = expected_s(&d, &k, order, (int)k.work, DL_VARIANT_ENGINE);
            if (isnan(s) && op == DL_OP_STREAM && k.work == DL_WORK_ROPE)
                s = expected_s(&d, &k, order, DL_WORK_ROPE, DL_VARIANT_PLAIN);
            if (isnan(s)) s = expected_s(&d, &k, order, DL_WORK_ANY, DL_VARIANT_PLAIN);
        }
        check_close(dl_kernel_call_s(&d, precision, &k), s, 0);
        known += !isnan(s);
    }
    assert_true(known > 5000);
}

/* A model of another 16-bit type is as good as one of the same, where the units have one rate for
 * both: fp16 and mixed always, bf16 within 1 %. */
static void equal_rates(void **state) {
    (void)state;
    static const struct {
        enum dl_precision fitted, wanted;
        double bf16_flop_per_s;
        bool other;
    } cases[] = {{DL_FP16, DL_MIXED, 1e14, false},    {DL_MIXED, DL_FP16, 1e14, false},
                 {DL_FP16, DL_BF16, 1e14, false},     {DL_BF16, DL_FP16, 1e14, false},
                 {DL_MIXED, DL_BF16, 1e14, false},    {DL_FP16, DL_BF16, 0.995e14, false},
                 {DL_FP16, DL_BF16, 1.005e14, false}, {DL_FP16, DL_BF16, 0.985e14, true},
                 {DL_FP16, DL_BF16, 1.015e14, true},  {DL_FP16, DL_BF16, 2e14, true},
                 {DL_BF16, DL_MIXED, 0.5e14, true},   {DL_FP32, DL_MIXED, 1e14, true},
                 {DL_FP16, DL_TF32, 1e14, true},      {DL_TF32, DL_TF32, 1e14, false},
                 {DL_FP16, DL_FP8, 1e14, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dl_rate rates[] = {{DL_FP32, 0, 1e13, NULL, NAN},
                                  {DL_FP16, 1, 1e14, NULL, NAN},
                                  {DL_BF16, 1, 1e14, NULL, NAN},
                                  {DL_TF32, 1, 5e13, NULL, NAN},
                                  {DL_FP8, 1, 2e14, NULL, NAN}};
        rates[2].peak_flop_per_s = cases[i].bf16_flop_per_s;
        struct dl_kernel_model model = {.op = DL_OP_GEMM,
                                        .precision = (int)cases[i].fitted,
                                        .latency_s = 1e-6,
                                        .rate_flop_per_s = 5e12,
                                        .bandwidth_bytes_per_s = 4e11,
                                        .half_m = NAN,
                                        .half_n = NAN,
                                        .half_k = NAN,
                                        .half_waves = NAN,
                                        .base_sigma_log = 0.1};
        struct dl_device d = plain_device(rates, 5, 5e-6);
        d.kernel_models = &model, d.kernel_model_count = 1;
        const struct dl_kernel k = dl_kernel_gemm(DL_FORWARD, 4096, 4096, 4096, 1);
        struct dl_kernel_time t, same;
        dl_kernel_time(&d, cases[i].wanted, &k, &t);
        dl_kernel_time(&d, cases[i].fitted, &k, &same);
        if ((t.sigma_log > same.sigma_log * (1 + 1e-9)) != cases[i].other)
            fail_msg("case %zu: %g, %g where it was fitted", i, t.sigma_log, same.sigma_log);
    }
}

/* Of units of one peak the matrix units count; a device that lends nothing leaves the own model, of
 * another pass too. */
static void ties_and_lenders(void **state) {
    (void)state;
    struct dl_rate rates[] = {{DL_FP16, 0, 1e14, NULL, 5e13},
                              {DL_FP16, 1, 1e14, NULL, 7e13},
                              {DL_FP32, 0, 1e13, NULL, NAN}};
    struct dl_device d = plain_device(rates, 3, 5e-6), lender = d;
    check_close(dl_device_sustained(&d, DL_FP16), 7e13, 0);
    check_close(dl_device_sustained(&d, DL_MIXED), 7e13, 0);
    rates[0].peak_flop_per_s = 1.1e14;
    check_close(dl_device_sustained(&d, DL_FP16), 5e13, 0);
    struct dl_kernel_model own = {.op = DL_OP_ATTENTION,
                                  .precision = DL_FP16,
                                  .pass = DL_FORWARD,
                                  .latency_s = 1e-6,
                                  .rate_flop_per_s = 5e12,
                                  .bandwidth_bytes_per_s = 4e11,
                                  .base_sigma_log = 0.1};
    d.kernel_models = &own, d.kernel_model_count = 1, d.borrowed = &lender;
    lender.name = "lender";
    for (int pass = DL_FORWARD; pass <= DL_BACKWARD_DATA; pass++) {
        const struct dl_kernel k = dl_kernel_attention(
            (enum dl_pass)pass, &(struct dl_attention_shape){2, 8, 8, 512, 512, 64, 64, 0, false});
        struct dl_kernel_time t;
        dl_kernel_time(&d, DL_FP16, &k, &t);
        assert_string_equal(t.origin, "fitted");
        assert_string_equal(t.origin_device, "plain");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(models), cmocka_unit_test(equal_rates),
                                       cmocka_unit_test(ties_and_lenders)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
