/* Which kernel-time model of a device serves a kernel: of its operation and kind, in the precision
 * that comes nearest, of the pass or else the forward pass; told by the call_s of the model.
 * F-KERNEL-MODEL, F-KERNEL-WORK. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/machine/device.h"
#include "model/machine/kernel_model.h"
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

/* ---- whose model, and what another device or precision makes of it ---- */

enum { EACH = 4, DEVICES = 3 };
struct family {
    struct dl_rate rates[DEVICES][3];
    struct dl_kernel_model models[DEVICES][EACH];
    struct dl_device devices[DEVICES]; /* each borrows of the next */
};

static void random_family(struct family *f, enum dl_op op) {
    static const char *const architectures[] = {"volta", "hopper", "blackwell", "ampere", NULL};
    const int same = upto(3); /* of them all, or of the first two */
    for (int d = 0; d < DEVICES; d++) {
        struct dl_rate *r = f->rates[d];
        r[0] = (struct dl_rate){DL_FP32, 0, 1e13 * (1 + d), NULL, upto(2) ? 8e12 : (double)NAN};
        r[1] = (struct dl_rate){DL_FP16, 1, 8e13 * (1 + d), NULL, upto(2) ? 7e13 : (double)NAN};
        r[2] = (struct dl_rate){DL_BF16, 1, upto(2) ? 8e13 * (1 + d) : 4e13, NULL, NAN};
        f->devices[d] = plain_device(r, 3, upto(3) ? 5e-6 + 1e-6 * d : (double)NAN);
        struct dl_device *v = &f->devices[d];
        v->name = d == 0 ? "first" : d == 1 ? "second" : "third";
        v->kind = upto(4) ? DL_DEVICE_GPU : DL_DEVICE_CPU;
        v->architecture = architectures[d > 0 && (same == 2 || d < 2 - same) ? 0 : upto(5)];
        v->memory_bandwidth_bytes_per_s = 1e11 * (5 + 3 * d);
        v->memory_efficiency = upto(2) ? 0.7 : (double)NAN;
        v->borrowed = NULL;
        v->kernel_models = f->models[d], v->kernel_model_count = upto(EACH + 1);
        if (d > 0 && upto(4) > 0) f->devices[d - 1].borrowed = v;
        for (int i = 0; i < EACH; i++)
            f->models[d][i] = (struct dl_kernel_model){
                .op = (int)op,
                .pass = upto(3) ? DL_FORWARD : upto(3),
                .precision = (int[]){DL_FP32, DL_FP16, DL_MIXED, DL_BF16}[upto(4)],
                .latency_s = 1e-6,
                .rate_flop_per_s = 5e12,
                .bandwidth_bytes_per_s = 4e11,
                .half_m = 20,
                .half_n = 30,
                .half_k = 40,
                .unaligned_gain = 0.9,
                .m_trans_gain = 1,
                .n_trans_gain = 1,
                .gain_3x3 = 1.4,
                .gain_5x5 = 1.2,
                .narrow_gain = 0.8,
                .pointwise_gain = 1.1,
                .padded_pointwise_gain = 1,
                .grouped_gain = 1,
                .tile_64_gain = 1,
                .tile_32_gain = 1,
                .base_sigma_log = 0.1 + 0.05 * i,
                .call_s = 1 + i};
    }
}

/* Told by its call_s. */
static const struct dl_kernel_model *own_model(const struct dl_device *d, enum dl_precision p,
                                               const struct dl_kernel *k) {
    const double call_s = dl_kernel_call_s(d, p, k);
    return isnan(call_s) ? NULL : &d->kernel_models[(int)call_s - 1];
}

static bool alike(const struct dl_device *a, const struct dl_device *b) {
    return a->architecture != NULL && b->architecture != NULL &&
           strcmp(a->architecture, b->architecture) == 0;
}

/* Whether arithmetic in both takes the same time on the device. */
static bool one_rate(const struct dl_device *d, int a, enum dl_precision b) {
    const bool a16 = a == DL_MIXED || a == DL_FP16, b16 = b == DL_MIXED || b == DL_FP16;
    if (a == (int)b || (a16 && b16)) return true;
    if (!((a16 && b == DL_BF16) || (b16 && a == DL_BF16))) return false;
    return d->rates[1].peak_flop_per_s == d->rates[2].peak_flop_per_s;
}

static const struct dl_kernel_model *served_by(const struct dl_device **owner, enum dl_precision p,
                                               const struct dl_kernel *k) {
    const struct dl_device *d = *owner, *next = d->borrowed;
    const struct dl_kernel_model *own = own_model(d, p, k), *lent;
    if (next == NULL) return own;
    if (k->op == DL_OP_STREAM && (own != NULL || !alike(d, next))) return own;
    lent = served_by(&next, p, k);
    bool take = own == NULL;
    if (own != NULL && lent != NULL && one_rate(next, lent->precision, p)) {
        take = !one_rate(d, own->precision, p); /* the own one is of another arithmetic */
        if (k->op == DL_OP_ATTENTION && own->pass != (int)k->pass && lent->pass == (int)k->pass)
            take = true;
    }
    if (lent == NULL || !take) return own;
    *owner = next;
    return lent;
}

static double streamed(const struct dl_device *d) {
    return d->memory_bandwidth_bytes_per_s * (isnan(d->memory_efficiency) ? 0.8 : 0.7);
}
static double shortest(const struct dl_device *d) {
    return isnan(d->kernel_latency_s) ? 5e-6 : d->kernel_latency_s;
}

static struct dl_kernel some_kernel(enum dl_op op) {
    const double one[DL_DIMS] = {1, 1, 1}, none[DL_DIMS] = {0, 0, 0}, three[DL_DIMS] = {1, 3, 3},
                 in[DL_DIMS] = {1, 16, 16};
    const enum dl_pass pass = (enum dl_pass)upto(3);
    if (op == DL_OP_GEMM) return dl_kernel_gemm(pass, 512, 256, 1024, 1);
    if (op == DL_OP_CONV) return dl_kernel_conv(pass, 32, 64, 48, 1, in, three, one, none, one);
    if (op == DL_OP_STREAM) return dl_kernel_stream(pass, 1, 1e6, 1e6);
    struct dl_kernel k =
        dl_kernel_attention(pass == DL_FORWARD ? DL_FORWARD : DL_BACKWARD_DATA,
                            &(struct dl_attention_shape){2, 8, 8, 512, 512, 64, 64, 0, false});
    if (upto(2)) k.variant = DL_VARIANT_FLASH2;
    return k;
}

/* F-KERNEL-MODEL, F-KERNEL-ROOFLINE: the time by the model of its owner, at the rates of this
 * device, and what widens its interval.
 * Kept whole: one random family and kernel. */
static void borrowed_models(void **state) {
    (void)state;
    static const double backward[] = {1, 1.23, 1.2};
    int fitted = 0, borrowed = 0, passes = 0, later = 0;
    for (int n = 0; n < 20000; n++) {
        struct family f;
        const enum dl_op op = (enum dl_op)upto(DL_OPS);
        const enum dl_precision p =
            (enum dl_precision[]){DL_FP32, DL_FP16, DL_MIXED, DL_BF16}[upto(4)];
        random_family(&f, op);
        const struct dl_device *d = &f.devices[0], *owner = d;
        const struct dl_kernel k = some_kernel(op);
        const struct dl_kernel_model *m = served_by(&owner, p, &k);
        struct dl_kernel_time t, want;
        dl_kernel_time(d, p, &k, &t);
        if (m == NULL) {
            assert_string_equal(t.formula,
                                op == DL_OP_STREAM ? "F-KERNEL-STREAM" : "F-KERNEL-ROOFLINE");
            assert_string_equal(t.origin, "datasheet");
            assert_string_equal(t.origin_device, "first");
            continue;
        }
        struct dl_kernel_model_scale by = {1, 1, 1, 1};
        if (owner != d || m->precision != (int)p) {
            const double set = dl_device_sustained(d, p) /
                               dl_device_sustained(owner, (enum dl_precision)m->precision),
                         peak = dl_device_peak(d, p) /
                                dl_device_peak(owner, (enum dl_precision)m->precision);
            if (op != DL_OP_STREAM) by.rate = isnan(set) ? peak : set;
            by.bandwidth = streamed(d) / streamed(owner);
            by.latency = shortest(d) / shortest(owner);
            const double bytes = alike(d, owner) && by.bandwidth < 1 ? 1 : by.bandwidth;
            by.half = by.rate > bytes ? by.rate / bytes : 1;
        }
        struct dl_kernel as = k;
        const bool forward = op == DL_OP_CONV && d->kind == DL_DEVICE_GPU && m->pass == DL_FORWARD;
        if (forward) as.pass = DL_FORWARD;
        struct dl_kernel_model_shape shape;
        dl_kernel_model_shape_of(&as, p == DL_FP32 ? 4 : 2, d->unit_count, &shape);
        dl_kernel_model_eval(m, &by, &shape, &want);
        const bool other_pass = m->pass != (int)k.pass;
        double sigma = want.sigma_log;
        if (op != DL_OP_STREAM && !one_rate(d, m->precision, p)) sigma = hypot(sigma, 0.2);
        if (forward) want.time_s *= backward[k.pass];
        if (op == DL_OP_CONV && other_pass) sigma = hypot(sigma, 0.4);
        if (op == DL_OP_ATTENTION && k.variant == DL_VARIANT_FLASH2 && d->architecture != NULL &&
            (d->architecture[0] == 'h' || d->architecture[0] == 'b'))
            want.time_s *= 1.6, later++;
        if (op == DL_OP_ATTENTION && other_pass)
            want.time_s *= 73.0 / 63, sigma = hypot(sigma, 0.2), passes++;
        if (owner != d) sigma = hypot(sigma, alike(d, owner) ? 0.12 : 0.35);
        check_close(t.time_s, want.time_s, 1e-12);
        check_close(t.sigma_log, sigma, 1e-12);
        assert_int_equal(t.limit, want.limit);
        assert_string_equal(t.formula, "F-KERNEL-MODEL");
        assert_string_equal(t.origin, owner == d ? "fitted" : "borrowed");
        assert_string_equal(t.origin_device, owner->name);
        *(owner == d ? &fitted : &borrowed) += 1;
    }
    assert_true(fitted > 3000 && borrowed > 2000 && passes > 200 && later > 200);
}

/* F-KERNEL-WORK: the factor of the kind of work and pass in the nearest precision; gradients of
 * weights go with those of data. */
static void factors_of_work(void **state) {
    (void)state;
    int found = 0;
    for (int n = 0; n < 5000; n++) {
        struct dl_rate rates[] = {{DL_FP32, 0, 1e13, NULL, NAN}};
        struct dl_work_factor works[5];
        struct dl_device d = plain_device(rates, 1, 5e-6);
        for (int i = 0; i < 5; i++)
            works[i] = (struct dl_work_factor){.work = upto(2) ? DL_WORK_SOFTMAX : DL_WORK_ROPE,
                                               .pass = upto(3),
                                               .precision = upto(DL_PRECISIONS),
                                               .factor = 2 + i};
        struct dl_kernel k = dl_kernel_stream((enum dl_pass)upto(3), 1, 1e6, 1e6);
        struct dl_kernel_time plain, t;
        const enum dl_precision p = (enum dl_precision)upto(DL_PRECISIONS);
        k.work = (enum dl_work[]){DL_WORK_ANY, DL_WORK_SOFTMAX, DL_WORK_ROPE}[upto(3)];
        dl_kernel_time(&d, p, &k, &plain);
        d.works = works, d.work_count = upto(6);
        const int pass = k.pass == DL_BACKWARD_WEIGHTS ? DL_BACKWARD_DATA : (int)k.pass;
        double factor = 1;
        for (const int *at = NEAREST[p]; *at >= 0 && factor == 1 && k.work != DL_WORK_ANY; at++)
            for (int i = d.work_count - 1; i >= 0; i--)
                if (works[i].precision == *at && works[i].work == (int)k.work &&
                    works[i].pass == pass)
                    factor = 2 + i;
        dl_kernel_time(&d, p, &k, &t);
        check_close(t.time_s, factor * plain.time_s, 1e-12);
        found += factor > 1;
        k.has_type = true, k.type = DL_FP32; /* of its own type, whatever the plan's is */
        dl_kernel_time(&d, DL_FP32, &k, &plain);
        dl_kernel_time(&d, p, &k, &t);
        check_close(t.time_s, plain.time_s, 0);
    }
    assert_true(found > 500);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models), cmocka_unit_test(equal_rates), cmocka_unit_test(ties_and_lenders),
        cmocka_unit_test(borrowed_models), cmocka_unit_test(factors_of_work)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
