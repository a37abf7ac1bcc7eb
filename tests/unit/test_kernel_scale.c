/* What a release and a device make of a kernel's time, worked by hand. F-FRAMEWORK-KERNELS,
 * F-DIRECT-CONV, F-DEVICE-NORM. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/framework/kernel_scale.h"
#include "tests/check.h"
#include "tests/fake.h"

static const double ONE[DL_DIMS] = {1, 1, 1}, NONE[DL_DIMS] = {0, 0, 0}, IN[DL_DIMS] = {1, 17, 17};

static struct dl_kernel conv(double height, double width, double stride) {
    const double kernel[DL_DIMS] = {1, height, width}, strides[DL_DIMS] = {1, stride, stride};
    return dl_kernel_conv(DL_FORWARD, 32, 64, 64, 1, IN, kernel, strides, NONE, ONE);
}

/* Winograd and FFT serve 3x3 and 5x5 at stride 1; not 1x1, 1x7, strided or grouped kernels, nor
 * products. */
static void fast_algorithms(void **state) {
    (void)state;
    const struct dl_kernel three = conv(3, 3, 1), five = conv(5, 5, 1), one = conv(1, 1, 1),
                           row = conv(1, 7, 1), strided = conv(3, 3, 2);
    assert_true(dl_kernel_has_fast_conv(&three) && dl_kernel_has_fast_conv(&five));
    assert_false(dl_kernel_has_fast_conv(&one) || dl_kernel_has_fast_conv(&row) ||
                 dl_kernel_has_fast_conv(&strided));
    struct dl_kernel grouped = conv(3, 3, 1);
    grouped.groups = 2;
    const struct dl_kernel product = dl_kernel_gemm(DL_FORWARD, 8, 8, 8, 1);
    assert_false(dl_kernel_has_fast_conv(&grouped) || dl_kernel_has_fast_conv(&product));
}

/* A release with convolutions at 1.5, streams at 2 and normalisations at 1.25 of that: 2.5. */
static void release(void **state) {
    (void)state;
    struct dl_fake f;
    fake_make(&f);
    f.framework.kernels.conv_scale = 1.5;
    f.framework.kernels.grouped_scale = 3;
    f.framework.kernels.stream_scale = 2;
    f.framework.kernels.composed_scale = 4;
    f.framework.kernels.norm_scale = 1.25;
    f.framework.kernels.loss_scale = 0.5;
    f.framework.memory.conv_workspace_bytes = 100;
    const struct {
        const char *kind;
        double groups, conv, stream;
    } cases[] = {
        {"conv", 1, 1.5, 2},        {"conv", 2, 3, 2},        {"relu", 1, 1.5, 2},
        {"batchnorm", 1, 1.5, 2.5}, {"layernorm", 1, 1.5, 4}, {"loss", 1, 1.5, 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct dl_layer layer = {.kind = dl_layer_kind_find(cases[i].kind),
                                       .groups = cases[i].groups};
        const struct dl_kernel_scales s = dl_kernel_scales(&f.framework, DL_FP32, &layer);
        check_close(s.op_scale[DL_OP_CONV], cases[i].conv, 1e-12);
        check_close(s.op_scale[DL_OP_STREAM], cases[i].stream, 1e-12);
        check_close(s.op_scale[DL_OP_GEMM], 1, 0);
        check_close(s.workspace_bytes, 100, 0);
    }
    /* Unequal sides at 2 besides: 3. */
    f.framework.kernels.unequal_scale = 2;
    struct dl_layer row = {
        .kind = dl_layer_kind_find("conv"), .groups = 1, .kernel = {1, 1, 7}, .out = {.dims = 2}};
    check_close(dl_kernel_scales(&f.framework, DL_FP32, &row).op_scale[DL_OP_CONV], 3, 1e-12);
    row.kernel[1] = 7;
    check_close(dl_kernel_scales(&f.framework, DL_FP32, &row).op_scale[DL_OP_CONV], 1.5, 1e-12);
    f.framework.memory.conv_workspace_bytes = NAN;
    const struct dl_layer relu = {.kind = dl_layer_kind_find("relu"), .groups = 1};
    assert_true(isinf(dl_kernel_scales(&f.framework, DL_MIXED, &relu).workspace_bytes));
    /* Composed layers: the fp32 factor counts in mixed precision too, until the file has one for
     * it. */
    f.framework.kernels.mixed_composed_scale = NAN;
    const struct dl_layer norm = {.kind = dl_layer_kind_find("layernorm"), .groups = 1};
    check_close(dl_kernel_scales(&f.framework, DL_MIXED, &norm).op_scale[DL_OP_STREAM], 4, 0);
    f.framework.kernels.mixed_composed_scale = 3;
    check_close(dl_kernel_scales(&f.framework, DL_MIXED, &norm).op_scale[DL_OP_STREAM], 3, 0);
    /* mixed_stream_scale: not given */
    check_close(dl_kernel_scales(&f.framework, DL_MIXED, &relu).op_scale[DL_OP_STREAM], 1, 0);
    dl_arena_free(&f.arena);
}

/* A device whose direct convolutions take 1.7 times what it borrows: 1x1 1.5 x 1.7 = 2.55, 3x3
 * stays at 1.5, grouped ones too. */
static void device(void **state) {
    (void)state;
    struct dl_fake f;
    fake_make(&f);
    f.device.direct_conv_scale = 1.7;
    const struct dl_kernel_scales s = {
        {[DL_OP_GEMM] = 1, [DL_OP_CONV] = 1.5, [DL_OP_STREAM] = 2}, INFINITY, false};
    struct dl_kernel k = conv(1, 1, 1);
    check_close(dl_kernel_scale_of(&s, &f.device, DL_FP32, &k), 2.55, 1e-12);
    k.groups = 64;
    check_close(dl_kernel_scale_of(&s, &f.device, DL_FP32, &k), 1.5, 1e-12);
    k = conv(3, 3, 1);
    check_close(dl_kernel_scale_of(&s, &f.device, DL_FP32, &k), 1.5, 1e-12);
    k = dl_kernel_stream(DL_FORWARD, 1, 1, 1);
    check_close(dl_kernel_scale_of(&s, &f.device, DL_FP32, &k), 2, 1e-12);
    f.device.direct_conv_scale = NAN;
    k = conv(1, 7, 1);
    check_close(dl_kernel_scale_of(&s, &f.device, DL_FP32, &k), 1.5, 1e-12);
    dl_arena_free(&f.arena);
}

/* Batch normalisation on a device of cuDNN 5's time: 2.5 where the release tells nothing, the
 * release's 1.25 where it does; nothing on activations or convolutions. F-DEVICE-NORM */
static void device_norm(void **state) {
    (void)state;
    struct dl_fake f;
    fake_make(&f);
    f.device.norm_scale = 2.5;
    f.framework.kernels.norm_scale = NAN;
    const struct dl_layer norm = {.kind = dl_layer_kind_find("batchnorm"), .groups = 1},
                          relu = {.kind = dl_layer_kind_find("relu"), .groups = 1};
    const struct dl_kernel stream = dl_kernel_stream(DL_FORWARD, 0, 1e6, 1e6),
                           three = conv(3, 3, 1);
    struct dl_kernel_scales s = dl_kernel_scales(&f.framework, DL_FP32, &norm);
    check_close(dl_kernel_scale_of(&s, &f.device, DL_FP32, &stream), 2.5, 1e-12);
    check_close(dl_kernel_scale_of(&s, &f.device, DL_FP32, &three), 1, 1e-12);
    s = dl_kernel_scales(&f.framework, DL_FP32, &relu);
    check_close(dl_kernel_scale_of(&s, &f.device, DL_FP32, &stream), 1, 1e-12);
    f.framework.kernels.norm_scale = 1.25;
    s = dl_kernel_scales(&f.framework, DL_FP32, &norm);
    check_close(dl_kernel_scale_of(&s, &f.device, DL_FP32, &stream), 1.25, 1e-12);
    dl_arena_free(&f.arena);
}

/* Factors that a file does not give come from the framework that runs the same kernels; those that
 * it gives stay. */
static void shared_kernels(void **state) {
    (void)state;
    struct dl_fake f, g;
    fake_make(&f);
    fake_make(&g);
    f.framework.kernels.grouped_scale = NAN;
    f.framework.kernels.stream_scale = 1.5;
    f.framework.kernels.norm_scale = NAN;
    g.framework.kernels.grouped_scale = 3;
    g.framework.kernels.stream_scale = 2;
    g.framework.kernels.norm_scale = 1.25;
    dl_framework_share_kernels(&f.framework, &g.framework);
    check_close(f.framework.kernels.grouped_scale, 3, 0);
    check_close(f.framework.kernels.stream_scale, 1.5, 0);
    check_close(f.framework.kernels.norm_scale, 1.25, 0);
    dl_arena_free(&f.arena);
    dl_arena_free(&g.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(fast_algorithms), cmocka_unit_test(release),
                                       cmocka_unit_test(device), cmocka_unit_test(device_norm),
                                       cmocka_unit_test(shared_kernels)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
