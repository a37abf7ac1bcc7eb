/* Kernels: work from shapes, the base of a model, what is chosen when there is no model. */
#include "model/machine/device.h"
#include "model/machine/kernel.h"
#include "model/machine/kernel_model.h"
#include "model/machine/kernel_model_math.h"
#include "tests/check.h"
#include "tests/plain_device.h"

static const double ONES[DL_DIMS] = {1, 1, 1}, ZEROS[DL_DIMS] = {0, 0, 0};

static struct dl_kernel conv_of(enum dl_pass pass, double batch, double channels, double filters,
                                double groups, double size, double side, double stride) {
    const double in[DL_DIMS] = {1, size, size}, kernel[DL_DIMS] = {1, side, side};
    const double step[DL_DIMS] = {1, stride, stride},
                 pad[DL_DIMS] = {0, floor(side / 2), floor(side / 2)};
    return dl_kernel_conv(pass, &(struct dl_conv_shape){batch, channels, filters, groups, in,
                                                        kernel, step, pad, ONES});
}

static struct dl_rate RATES[] = {{DL_FP32, 0, 10e12, NULL, NAN}, {DL_FP16, 1, 80e12, NULL, NAN}};

static void work_of_gemm(void **state) {
    struct dl_kernel gemm = dl_kernel_gemm(DL_FORWARD, 3, 5, 7, 2);
    check_close(gemm.flop, 420, 0);          /* 2 x 3 x 5 x 7 x 2 */
    check_close(gemm.read_elements, 112, 0); /* (3 x 7 + 7 x 5) x 2 */
    check_close(gemm.write_elements, 30, 0); /* 3 x 5 x 2 */
    check_close(gemm.launches, 1, 0);
}

static void work_of_convolution(void **state) {
    /* ResNet-50's first layer, batch 2: 3 -> 64, 7x7 stride 2 pad 3, 224 -> floor((224 + 6 - 7) /
     * 2) + 1 = 112. flop = 2 x 2 x 64 x 112^2 x 3 x 49 = 472055808; x = 2 x 3 x 224^2 = 301056; w =
     * 64 x 3 x 49 = 9408; y = 2 x 64 x 112^2 = 1605632. */
    struct dl_kernel pass[3];
    for (int p = 0; p < 3; p++) pass[p] = conv_of((enum dl_pass)p, 2, 3, 64, 1, 224, 7, 2);
    check_close(pass[0].out[1], 112, 0);
    check_close(pass[0].out[0], 1, 0);
    for (int p = 0; p < 3; p++) check_close(pass[p].flop, 472055808.0, 0);
    check_close(pass[DL_FORWARD].read_elements, 301056 + 9408, 0);
    check_close(pass[DL_FORWARD].write_elements, 1605632, 0);
    check_close(pass[DL_BACKWARD_DATA].read_elements, 1605632 + 9408, 0);
    check_close(pass[DL_BACKWARD_DATA].write_elements, 301056, 0);
    check_close(pass[DL_BACKWARD_WEIGHTS].read_elements, 301056 + 1605632, 0);
    check_close(pass[DL_BACKWARD_WEIGHTS].write_elements, 9408, 0);
    /* 32 groups do 1/32 of the multiply-adds. */
    check_close(conv_of(DL_FORWARD, 1, 64, 64, 32, 8, 3, 1).flop,
                conv_of(DL_FORWARD, 1, 64, 64, 1, 8, 3, 1).flop / 32, 0);
    /* Dilation 2 of 3 taps reaches over 5 points: 9 + 2 x 0 - 5 + 1 = 5. */
    const double in[DL_DIMS] = {1, 9, 9}, kernel[DL_DIMS] = {1, 3, 3}, two[DL_DIMS] = {1, 2, 2};
    check_close(dl_kernel_conv(DL_FORWARD,
                               &(struct dl_conv_shape){1, 1, 1, 1, in, kernel, ONES, ZEROS, two})
                    .out[2],
                5, 0);
    /* A kernel larger than its input has no output and no work. */
    const double large[DL_DIMS] = {1, 11, 11};
    check_close(dl_kernel_conv(DL_FORWARD,
                               &(struct dl_conv_shape){1, 1, 1, 1, in, large, ONES, ZEROS, ONES})
                    .flop,
                0, 0);
}

static void skipped_rows(void **state) {
    /* 1x1 with stride 2 over 8 x 8 points: every other row is read, all of each. x = 2 x 4 x 64 =
     * 512, w = 4 x 6 = 24, y = 2 x 6 x 16 = 192. */
    struct dl_kernel forward = conv_of(DL_FORWARD, 2, 4, 6, 1, 8, 1, 2),
                     data = conv_of(DL_BACKWARD_DATA, 2, 4, 6, 1, 8, 1, 2);
    check_close(forward.read_elements, 256 + 24, 0);
    check_close(conv_of(DL_BACKWARD_WEIGHTS, 2, 4, 6, 1, 8, 1, 2).read_elements, 256 + 192, 0);
    check_close(data.read_elements, 192 + 24, 0);
    check_close(data.write_elements, 512, 0); /* zeros too */
}

static void names_and_sizes(void **state) {
    assert_string_equal(dl_precision_names[DL_MIXED], "mixed");
    assert_null(dl_precision_names[DL_PRECISIONS]);
    assert_string_equal(dl_pass_names[DL_BACKWARD_WEIGHTS], "bwd_filter");
    assert_null(dl_pass_names[DL_PASSES]);
    assert_string_equal(dl_op_names[DL_OP_STREAM], "stream");
    assert_null(dl_op_names[DL_OPS]);
    /* activations in memory; operands of matrix arithmetic with their scales: one byte for 32
     * elements, one for 16 elements of half a byte */
    const double bytes[DL_PRECISIONS] = {4, 4, 2, 2, 2, 2, 2, 2};
    const double operands[DL_PRECISIONS] = {4, 4, 2, 2, 2, 1, 1.03125, 0.5625};
    for (int p = 0; p < DL_PRECISIONS; p++) {
        check_close(dl_precision_bytes((enum dl_precision)p), bytes[p], 0);
        check_close(dl_precision_operand_bytes((enum dl_precision)p), operands[p], 0);
    }
}

static const struct dl_kernel_model_scale OWN = {1, 1, 1, 1};

static void base_of_a_model(void **state) {
    struct dl_kernel_model model = plain_model(DL_OP_GEMM, DL_FP32);
    struct dl_kernel gemm = dl_kernel_gemm(DL_FORWARD, 1024, 1024, 1024, 1);
    struct dl_kernel_model_shape shape;
    dl_kernel_model_shape_of(&gemm, 4, 64, &shape);
    enum dl_limit limit;
    /* C = 2 x 1024^3 / 10e12 = 214.7484 us, B = 3 x 1024^2 x 4 / 500e9 = 25.1658 us,
     * t = 10 us + 214.7484 us x (1 + (25.1658 / 214.7484)^3)^(1/3) = 10 + 214.7484 x 1.0005359 =
     * 224.8634 us */
    check_close(dl_kernel_model_base(&model, &OWN, &shape, &limit), 224.8634e-6, 1e-5);
    assert_int_equal(limit, DL_LIMIT_COMPUTE);
    /* A side of half_m runs at half rate: C = 429.4967 us, (25.1658 / 429.4967)^3 = 2.0117e-4,
     * t = 10 + 429.4967 x 1.0000670 = 439.5255 us */
    model.half_m = 1024;
    check_close(dl_kernel_model_base(&model, &OWN, &shape, NULL), 439.5255e-6, 1e-5);
    /* waves = 1024 x 1024 / (128 x 64 x 64) = 2: half_waves 4 makes 1/e = 2 + 4/2 = 4: C = 858.9935
     * us */
    check_close(shape.waves, 2, 0);
    model.half_waves = 4;
    check_close(dl_kernel_model_base(&model, &OWN, &shape, NULL), 868.9935e-6 + 0.0072e-6, 1e-5);
}

static void base_of_a_stream(void **state) {
    struct dl_kernel_model model = plain_model(DL_OP_STREAM, DL_FP32);
    const struct dl_kernel copy = dl_kernel_stream(DL_FORWARD, 0, 1.5e6, 1.5e6);
    struct dl_kernel_model_shape shape;
    enum dl_limit limit;
    dl_kernel_model_shape_of(&copy, 4, 64, &shape);
    /* 10 us and 12e6 bytes / 500e9 = 24 us: their sum, or sqrt(10^2 + 24^2) = 26 us */
    check_close(dl_kernel_model_base(&model, &OWN, &shape, NULL), 34e-6, 1e-9);
    model.fixed_time = DL_FIXED_TIME_OVERLAPS;
    check_close(dl_kernel_model_base(&model, &OWN, &shape, &limit), 26e-6, 1e-9);
    assert_int_equal(limit, DL_LIMIT_MEMORY);
    model.latency_s = 70e-6; /* sqrt(70^2 + 24^2) = 74 */
    check_close(dl_kernel_model_base(&model, &OWN, &shape, &limit), 74e-6, 1e-9);
    assert_int_equal(limit, DL_LIMIT_LATENCY);
}

/* Worked by hand; tiles of 128 x 64 at 0.9 are the best in all three products, half_k doubles each.
 */
static void algorithms_of_a_model(void **state) {
    struct dl_kernel_model model = plain_model(DL_OP_CONV, DL_FP32);
    struct dl_kernel_model_shape shape;
    model.latency_s = 1e-9;
    model.bandwidth_bytes_per_s = 1e15;
    model.algorithms.partial_waves = 0.5; /* 32 tiles of 64 units */
    model.algorithms.tile_64_gain = 0.9;
    model.algorithms.tile_32_gain = 0.75;
    model.algorithms.winograd_gain = model.algorithms.gather_gain = 0.5;
    model.algorithms.spread_gain = 1;
    model.algorithms.transform_bytes_per_s = model.algorithms.gather_bytes_per_s = 5e11;
    /* Winograd: 16 x 14 x 14 = 3136 tiles; 36 products 3136 x 64 x 64 = 924.844 Mflop in 36 x 25 +
     * 32 = 932 tiles, 932 x 8192 / 0.9 / (3136 x 64 x 36) = 1.174099; 92.4844 us / 0.5 x 1.174099 x
     * 2 = 434.343 us; 5.5 x 25,690,112 B / 5e11 = 282.591 us */
    struct dl_kernel square = conv_of(DL_FORWARD, 16, 64, 64, 1, 56, 3, 1);
    model.half_k = 64;
    dl_kernel_model_shape_of(&square, 4, 64, &shape);
    check_close(shape.winograd_tiles, 3136, 0);
    check_close(dl_kernel_model_base(&model, &OWN, &shape, NULL), 716.934e-6, 1e-5);
    /* Weights' gradients and few channels: no Winograd. */
    square = conv_of(DL_BACKWARD_WEIGHTS, 16, 64, 64, 1, 56, 3, 1);
    dl_kernel_model_shape_of(&square, 4, 64, &shape);
    check_close(shape.winograd_tiles, 0, 0);
    /* Data behind a stride of 2 x 2, 20.5521 us of flop. Over every point of the input: 4 x 20.5521
     * x 2 x (392 + 32) 8192 / 0.9 / (50176 x 64) = 197.598 us. Columns: 20.5521 / 0.5 x 2 x (98 +
     * 32) 8192 / 0.9 / (12544 x 64) = 121.169 us and (3,211,264 + 12,845,056) B / 5e11 = 32.1126
     * us, 153.281 us together. (1 + (153.281 / 197.598)^4)^(1/4) = 1.080320 */
    struct dl_kernel strided = conv_of(DL_BACKWARD_DATA, 16, 64, 128, 1, 56, 1, 2);
    model.pass = DL_BACKWARD_DATA;
    model.half_k = 128;
    dl_kernel_model_shape_of(&strided, 4, 64, &shape);
    check_close(dl_kernel_model_base(&model, &OWN, &shape, NULL), 141.885e-6, 2e-5);
}

static void gains_of_a_model(void **state) {
    struct dl_kernel_model model = plain_model(DL_OP_CONV, DL_FP32);
    model.latency_s = 1e-9;
    model.bandwidth_bytes_per_s = 1e15; /* so that only the rate counts */
    struct dl_kernel square = conv_of(DL_FORWARD, 16, 64, 64, 1, 56, 3, 1);
    struct dl_kernel strided = conv_of(DL_FORWARD, 16, 64, 64, 1, 56, 3, 2);
    struct dl_kernel_model_shape shape, shape_strided;
    dl_kernel_model_shape_of(&square, 4, 64, &shape);
    dl_kernel_model_shape_of(&strided, 4, 64, &shape_strided);
    double plain = dl_kernel_model_base(&model, &OWN, &shape, NULL);
    double plain_strided = dl_kernel_model_base(&model, &OWN, &shape_strided, NULL);
    model.gains.gain_3x3 = 2;
    model.exponents.stride_exponent = 0.5;
    check_close(dl_kernel_model_base(&model, &OWN, &shape, NULL), plain / 2, 1e-3);
    /* stride 2 x 2: area 4, rate x 4^-0.5 = 1/2; no Winograd */
    check_close(dl_kernel_model_base(&model, &OWN, &shape_strided, NULL), plain_strided * 2, 1e-3);
    /* Matrix units work on 3 channels as on 8. */
    struct dl_kernel first = conv_of(DL_FORWARD, 16, 3, 64, 1, 224, 7, 2);
    dl_kernel_model_shape_of(&first, 2, 64, &shape);
    plain = dl_kernel_model_base(&model, &OWN, &shape, NULL);
    model.channel_multiple = 8;
    check_close(dl_kernel_model_base(&model, &OWN, &shape, NULL), plain * 8 / 3, 1e-3);
}

static void whole_tiles(void **state) {
    /* 16 x 14 x 14 = 3136 positions x 256 filters on 80 units. Tiles of 128 x 128: 25 x 2 = 50, one
     * wave: excess 80 x 16384 / 802816 = 1.632653. 128 x 64: 100, two waves: 1.632653 too, at 0.9
     * of the rate 1.814. 128 x 32: 200, three waves: 1.224490, at 0.7 1.749271. So q = 1.632653;
     * all of the loss (exponent 1) makes C q times that of the rate alone. */
    struct dl_kernel_model model = plain_model(DL_OP_CONV, DL_FP32);
    model.latency_s = 1e-9;
    model.bandwidth_bytes_per_s = 1e15;
    struct dl_kernel conv = conv_of(DL_FORWARD, 16, 64, 256, 1, 14, 1, 1);
    struct dl_kernel_model_shape shape;
    dl_kernel_model_shape_of(&conv, 4, 80, &shape);
    double plain = dl_kernel_model_base(&model, &OWN, &shape, NULL);
    model.exponents.tile_exponent = 1;
    model.algorithms.tile_64_gain = 0.9;
    model.algorithms.tile_32_gain = 0.7;
    check_close(dl_kernel_model_base(&model, &OWN, &shape, NULL), plain * 1.632653, 1e-3);
    model.algorithms.tile_32_gain = 0.9; /* 1.360544: now the best */
    check_close(dl_kernel_model_base(&model, &OWN, &shape, NULL), plain * 1.360544, 1e-3);
    model.exponents.tile_exponent = 0.5;
    check_close(dl_kernel_model_base(&model, &OWN, &shape, NULL), plain * sqrt(1.360544), 1e-3);
}

static void transposed_product_is_the_same(void **state) {
    /* C = A B and C^T = B^T A^T are one product. */
    struct dl_kernel gemm = dl_kernel_gemm(DL_FORWARD, 4096, 128, 1024, 1);
    struct dl_kernel other = dl_kernel_gemm(DL_FORWARD, 128, 4096, 1024, 1);
    gemm.a_trans = true;
    other.b_trans = false;
    other.a_trans = true;
    struct dl_kernel_model_shape a, b;
    dl_kernel_model_shape_of(&gemm, 2, 64, &a);
    dl_kernel_model_shape_of(&other, 2, 64, &b);
    for (int f = 0; f < 3; f++) check_close((double)a.features[f], (double)b.features[f], 0);
    check_close(a.m, 4096, 0);
    check_close(b.m, 4096, 0);
    assert_true(a.m_trans);
    assert_true(b.m_trans);
}

static void correction_of_a_model(void **state) {
    /* Two samples one length apart on one axis: x = 10 and 12 octaves, length 2, weights 0.2 and
     * -0.1. At x = 11: distances^2 0.25 and 0.25, k = 0.8: log ratio = 0.05 + 0.8 x 0.1 = 0.13. */
    double lengths[] = {2}, points[] = {5, 6}, weights[] = {0.2, -0.1}, low[] = {10}, high[] = {12};
    struct dl_kernel_model model = plain_model(DL_OP_STREAM, DL_FP32);
    model.correction.offset = 0.05;
    model.correction.lengths = lengths;
    model.correction.points = points;
    model.correction.weights = weights;
    model.correction.domain_low = low;
    model.correction.domain_high = high;
    model.correction.length_count = model.correction.domain_low_count =
        model.correction.domain_high_count = 1;
    model.correction.point_count = model.correction.weight_count = 2;
    /* what an earlier fit left of other axes does not count */
    for (int axis = 0; axis < DL_AXES; axis++)
        model.packed.axes[axis] = 1, model.packed.per_length[axis] = 7,
        model.packed.low[axis] = model.packed.high[axis] = 1000;
    /* 2048 bytes: 11 octaves */
    struct dl_kernel stream = dl_kernel_stream(DL_FORWARD, 0, 256, 256);
    struct dl_kernel_model_shape shape;
    dl_kernel_model_shape_of(&stream, 4, 64, &shape);
    struct dl_kernel_time time;
    /* before it is packed: the base, and said so */
    dl_kernel_model_eval(&model, &OWN, &shape, &time);
    check_close(time.time_s, 10.004096e-6 * exp(0.05), 1e-9);
    assert_true(time.extrapolated);
    assert_int_equal(dl_kernel_model_pack(&model, &test_arena, NULL), DL_OK);
    dl_kernel_model_eval(&model, &OWN, &shape, &time);
    /* base = 10 us + 2048 / 500e9 = 10.004096 us; the sum is taken in single precision */
    check_close(time.time_s, 10.004096e-6 * exp(0.13), 1e-7);
    assert_false(time.extrapolated);
    /* largest k = 0.8; sigma^2 = 0.1^2 + (0.2 x 0.2)^2 */
    check_close(time.sigma_log, sqrt(0.01 + 0.04 * 0.04), 1e-6);
    /* Far away: the base alone (times the mean), marked, with both deviations. */
    stream = dl_kernel_stream(DL_FORWARD, 0, 0, 1099511627776.0); /* 2^42 bytes */
    dl_kernel_model_shape_of(&stream, 4, 64, &shape);
    dl_kernel_model_eval(&model, &OWN, &shape, &time);
    check_close(time.time_s, (10e-6 + 4398046511104.0 / 500e9) * exp(0.05), 5e-3);
    check_close(time.sigma_log, sqrt(0.01 + 0.04), 2e-2);
    assert_true(time.extrapolated);
}

static void features_by_name(void **state) {
    /* The same model over features in another order, with a flag that both samples share, gives
     * the same time. */
    double lengths[] = {3, 2}, turned_lengths[] = {2, 3};
    double points[] = {5, 6, 1, 2}, turned_points[] = {1, 2, 5, 6}, weights[] = {0.2, -0.1},
           low[] = {0, 0}, high[] = {20, 20};
    const char *names[] = {"channels", "taps"}, *turned_names[] = {"taps", "channels"};
    struct dl_kernel conv = conv_of(DL_FORWARD, 8, 100, 64, 1, 28, 3, 1);
    struct dl_kernel_model_shape shape;
    struct dl_kernel_time a, b;
    struct dl_kernel_model model = plain_model(DL_OP_CONV, DL_FP32);
    model.correction.features = names;
    model.correction.lengths = lengths;
    model.correction.points = points;
    model.correction.weights = weights;
    model.correction.domain_low = low;
    model.correction.domain_high = high;
    model.correction.feature_count = model.correction.length_count =
        model.correction.domain_low_count = model.correction.domain_high_count = 2;
    model.correction.point_count = 4;
    model.correction.weight_count = 2;
    struct dl_kernel_model turned = model;
    turned.correction.features = turned_names;
    turned.correction.lengths = turned_lengths;
    turned.correction.points = turned_points;
    assert_int_equal(dl_kernel_model_pack(&model, &test_arena, NULL), DL_OK);
    assert_int_equal(dl_kernel_model_pack(&turned, &test_arena, NULL), DL_OK);
    dl_kernel_model_shape_of(&conv, 4, 64, &shape);
    dl_kernel_model_eval(&model, &OWN, &shape, &a);
    dl_kernel_model_eval(&turned, &OWN, &shape, &b);
    check_close(a.time_s, b.time_s, 1e-6);
    /* x = (log2 100 / 3, log2 9 / 2) = (2.214619, 1.584963): squares of distances 7.758347 +
     * 0.342181, 14.329109 + 0.172256; sum = 0.2 / 9.100528 - 0.1 / 15.501365 = 0.0155257 */
    check_close(a.time_s, dl_kernel_model_base(&model, &OWN, &shape, NULL) * exp(0.0155257), 1e-6);
}

/* Files of the first releases name no features: the first axes in turn, but for weight gradients of
 * convolutions, whose sixth is the seventh axis. */
static void features_without_names(void **state) {
    static const enum dl_pass passes[] = {DL_FORWARD, DL_BACKWARD_DATA, DL_BACKWARD_WEIGHTS};
    double lengths[] = {1, 2, 3, 4, 5, 6}, low[] = {0, 0, 0, 0, 0, 0}, high[] = {9, 9, 9, 9, 9, 9},
           points[] = {1, 2, 3, 1, 2, 3}, weights[] = {0.1};
    for (int i = 0; i < 3; i++) {
        struct dl_kernel_model model = plain_model(DL_OP_CONV, DL_FP32);
        model.pass = passes[i];
        model.correction.lengths = lengths, model.correction.domain_low = low,
        model.correction.domain_high = high;
        model.correction.points = points, model.correction.weights = weights,
        model.correction.weight_count = 1;
        model.correction.length_count = model.correction.domain_low_count =
            model.correction.domain_high_count = 6;
        model.correction.point_count = 6;
        assert_int_equal(dl_kernel_model_pack(&model, &test_arena, NULL), DL_OK);
        for (int f = 0; f < 6; f++) {
            const int axis = f == 5 && passes[i] == DL_BACKWARD_WEIGHTS ? 6 : f;
            assert_int_equal(model.packed.axes[f], axis);
            check_close((double)model.packed.per_length[axis], 1 / lengths[f], 1e-6);
        }
    }
}

/* The arithmetic of kernel_model_math.h against that of the C library. */
static void fast_arithmetic(void **state) {
    for (double x = 1e-6; x < 1e12; x *= 1.37) {
        dl_lanes lanes;
        for (int i = 0; i < DL_LANES; i++) lanes[i] = (float)(x * (1 + i));
        const dl_lanes given = lanes;
        dl_log2_lanes(&lanes);
        for (int i = 0; i < DL_LANES; i++) {
            double right = log2((double)given[i]);
            assert_true(fabs((double)lanes[i] - right) < 3e-7 + 1.2e-7 * fabs(right));
        }
        assert_true(fabs(dl_log2_near(x) - log2(x)) < 1e-11);
        check_close(dl_whole_up(x), ceil(x), 0);
        check_close(dl_whole_up(-x), ceil(-x), 0);
    }
    dl_lanes powers = {1, 2, 4, 0.5F, 0.125F, 1024, 1048576, 3};
    dl_log2_lanes(&powers);
    const double exact[] = {0, 1, 2, -1, -3, 10, 20};
    for (int i = 0; i < 7; i++) check_close((double)powers[i], exact[i], 0);
    for (double x = -1000; x <= 1000; x += 0.37) check_close(dl_exp2_near(x), exp2(x), 1e-10);
    for (double x = -1000; x <= 1000; x++) check_close(dl_exp2_near(x), exp2(x), 0);
    assert_true(isnan(dl_exp2_near(NAN)));
    check_close(dl_exp2_near(-2000), exp2(-1000), 0);
    for (double u = 1; u <= 2; u += 0.01) check_close(dl_cube_root_near(u), cbrt(u), 2e-9);
}

static void streams(void **state) {
    struct dl_device device = plain_device(RATES, 2, 5e-6);
    struct dl_kernel stream = dl_kernel_stream(DL_FORWARD, 1e6, 50e6, 50e6);
    struct dl_kernel_time time;
    dl_kernel_time(&device, DL_FP32, &stream, &time);
    /* 5 us + 100e6 x 4 / (0.8 x 500e9) = 1005 us */
    check_close(time.time_s, 1005e-6, 1e-9);
    assert_string_equal(time.formula, "F-KERNEL-STREAM");
    assert_int_equal(time.limit, DL_LIMIT_MEMORY);
    dl_kernel_time(&device, DL_MIXED, &stream, &time);
    check_close(time.time_s, 505e-6, 1e-9);
    /* F-KERNEL-WORK: layer normalisation took 1.5 times as long in fp32; mixed has no samples and
     * takes that too; gradients of weights go with those of data, of which there are none */
    struct dl_work_factor rows[] = {{DL_WORK_SOFTMAX, DL_FORWARD, DL_FP32, 9, NULL},
                                    {DL_WORK_LAYERNORM, DL_FORWARD, DL_FP32, 1.5, NULL}};
    device.works = rows;
    device.work_count = 2;
    stream.work = DL_WORK_LAYERNORM;
    dl_kernel_time(&device, DL_MIXED, &stream, &time);
    check_close(time.time_s, 1.5 * 505e-6, 1e-9);
    stream.pass = DL_BACKWARD_WEIGHTS;
    dl_kernel_time(&device, DL_MIXED, &stream, &time);
    check_close(time.time_s, 505e-6 / 0.55, 1e-9); /* F-NORM-BACKWARD */
    stream.pass = DL_FORWARD;
    stream.work = DL_WORK_ANY;
    stream.extra_bytes = 4e6; /* 10 us more */
    stream.launches = 3;      /* two more latencies */
    dl_kernel_time(&device, DL_MIXED, &stream, &time);
    check_close(time.time_s, 525e-6, 1e-9);
    /* Inside the cache: bytes / l2 = 0.01, nearly twice as fast. 1e6 x 4 / 400e9 = 10 us -> 5.0005
     * us */
    device.l2_bytes = 400e6;
    stream = dl_kernel_stream(DL_FORWARD, 0, 1e6, 0);
    dl_kernel_time(&device, DL_FP32, &stream, &time);
    check_close(time.time_s, 5e-6 + 10e-6 / (1 + 1 / 1.0001), 1e-9);
    device.memory_bandwidth_bytes_per_s = NAN;
    dl_kernel_time(&device, DL_FP32, &stream, &time);
    check_nan(time.time_s);
}

static void without_model(void **state) {
    struct dl_device device = plain_device(RATES, 2, 5e-6);
    struct dl_kernel gemm = dl_kernel_gemm(DL_FORWARD, 8192, 8192, 8192, 1);
    struct dl_kernel_time time;
    dl_kernel_time(&device, DL_FP32, &gemm, &time);
    /* Large and square: close to 0.8 of the peak, 2 x 8192^3 / 8e12 = 137.4 ms, never faster. */
    assert_true(time.time_s > 137.4e-3 && time.time_s < 1.05 * 137.4e-3);
    assert_string_equal(time.formula, "F-KERNEL-ROOFLINE");
    assert_string_equal(time.origin, "datasheet");
    assert_true(time.extrapolated);
    assert_true(time.sigma_log >= 0.3);
    dl_kernel_time(&device, DL_BF16, &gemm, &time); /* no such unit */
    check_nan(time.time_s);
}

static void depthwise(void **state) {
    struct dl_device device = plain_device(RATES, 2, 5e-6);
    struct dl_kernel conv = conv_of(DL_FORWARD, 32, 256, 256, 256, 28, 3, 1);
    struct dl_kernel_time time;
    device.kind = DL_DEVICE_CPU;
    dl_kernel_time(&device, DL_FP32, &conv, &time);
    /* bytes = 4 x (2 x 32 x 256 x 784 + 256 x 9) = 51389440; 5 us + bytes / (0.5 x 400e9) = 261.95
     * us */
    check_close(time.time_s, 261.9472e-6, 1e-6);
    assert_true(time.extrapolated);
    assert_string_equal(time.formula, "F-KERNEL-DEPTHWISE");
}

/* F-KERNEL-DEPTHWISE: 32 x 256 x 28^2 points of 9 taps = 57802752 steps. */
static void depthwise_by_instructions(void **state) {
    struct dl_device device = plain_device(RATES, 2, 5e-6);
    struct dl_kernel_time time;
    device.kind = DL_DEVICE_GPU;
    device.architecture = "volta";
    device.unit_count = 50;
    device.clock_hz = 1e9;
    device.memory_bandwidth_bytes_per_s = 5000e9;
    /* 64 x 50 x 1e9 = 3.2e12 instructions/s: 5 us + steps x 30, 26, 36 / 3.2e12 */
    const double times_s[] = {546.9008e-6, 474.6474e-6, 655.2810e-6};
    for (int pass = DL_FORWARD; pass <= DL_BACKWARD_WEIGHTS; pass++) {
        struct dl_kernel conv = conv_of((enum dl_pass)pass, 32, 256, 256, 256, 28, 3, 1);
        dl_kernel_time(&device, DL_FP32, &conv, &time);
        check_close(time.time_s, times_s[pass], 1e-6);
        assert_int_equal(time.limit, DL_LIMIT_COMPUTE);
    }
    /* stride 2: the output and the weights have a quarter of the points, the input has all */
    struct dl_kernel wide = conv_of(DL_BACKWARD_DATA, 32, 256, 256, 256, 28, 3, 2);
    dl_kernel_time(&device, DL_FP32, &wide, &time);
    check_close(time.time_s, 474.6474e-6, 1e-6);
    wide = conv_of(DL_BACKWARD_WEIGHTS, 32, 256, 256, 256, 28, 3, 2);
    dl_kernel_time(&device, DL_FP32, &wide, &time);
    check_close(time.time_s, 5e-6 + 650.2810e-6 / 4, 1e-6);
    /* before Volta indices are computed on all lanes: 10e12 / 2; 16 bits are the library's */
    device.architecture = "pascal";
    struct dl_kernel conv = conv_of(DL_BACKWARD_WEIGHTS, 32, 256, 256, 256, 28, 3, 1);
    dl_kernel_time(&device, DL_FP32, &conv, &time);
    check_close(time.time_s, 421.1798e-6, 1e-6);
    /* 51389440 bytes / 2 at 0.2 x 4000e9 bytes/s */
    dl_kernel_time(&device, DL_MIXED, &conv, &time);
    check_close(time.time_s, 37.1184e-6, 1e-6);
    assert_int_equal(time.limit, DL_LIMIT_MEMORY);
}

/* A depthwise convolution takes a model of such ones, and no other model; a three-dimensional one
 * takes that of three-dimensional ones, else that of all. */
static void convolutions_of_their_own(void **state) {
    struct dl_kernel_model models[] = {plain_model(DL_OP_CONV, DL_FP32),
                                       plain_model(DL_OP_CONV, DL_FP32),
                                       plain_model(DL_OP_CONV, DL_FP32)};
    struct dl_device device = plain_device(RATES, 2, 5e-6);
    struct dl_kernel depthwise_conv = conv_of(DL_FORWARD, 1, 8, 8, 8, 4, 3, 1),
                     flat = conv_of(DL_FORWARD, 1, 8, 8, 1, 4, 3, 1), deep = flat;
    struct dl_kernel_time time;
    deep.variant = DL_VARIANT_VOLUME;
    device.kernel_models = models;
    device.kernel_model_count = 1;
    dl_kernel_time(&device, DL_FP32, &depthwise_conv, &time);
    assert_string_equal(time.formula, "F-KERNEL-DEPTHWISE");
    dl_kernel_time(&device, DL_FP32, &deep, &time);
    check_close(time.time_s, 10e-6, 1e-3);
    device.kernel_model_count = 3;
    models[1].variant = DL_VARIANT_DEPTHWISE;
    models[1].latency_s = 20e-6;
    models[2].variant = DL_VARIANT_VOLUME;
    models[2].latency_s = 40e-6;
    dl_kernel_time(&device, DL_FP32, &depthwise_conv, &time);
    assert_string_equal(time.formula, "F-KERNEL-MODEL");
    check_close(time.time_s, 20e-6, 1e-3);
    dl_kernel_time(&device, DL_FP32, &deep, &time);
    check_close(time.time_s, 40e-6, 1e-3);
    dl_kernel_time(&device, DL_FP32, &flat, &time);
    check_close(time.time_s, 10e-6, 1e-3);
}

static void borrowed(void **state) {
    struct dl_kernel_model models[] = {plain_model(DL_OP_GEMM, DL_FP32)};
    struct dl_device owner = plain_device(RATES, 2, 5e-6), device = plain_device(RATES, 2, 5e-6);
    struct dl_rate faster[] = {{DL_FP32, 0, 20e12, NULL, NAN}};
    owner.name = "owner";
    owner.kernel_models = models;
    owner.kernel_model_count = 1;
    device.borrowed = &owner;
    device.rates = faster;
    device.rate_count = 1;
    device.memory_bandwidth_bytes_per_s = 1000e9;
    device.kernel_latency_s = 2.5e-6;
    struct dl_kernel gemm = dl_kernel_gemm(DL_FORWARD, 1024, 1024, 1024, 1);
    struct dl_kernel_time own, other;
    dl_kernel_time(&owner, DL_FP32, &gemm, &own);
    dl_kernel_time(&device, DL_FP32, &gemm, &other);
    /* Twice the rate, twice the bandwidth, half the latency: half the time; less certain, and said
     * so. */
    check_close(other.time_s, own.time_s / 2, 1e-9);
    assert_true(other.sigma_log > own.sigma_log);
    assert_string_equal(own.origin, "fitted");
    assert_string_equal(other.origin, "borrowed");
    assert_string_equal(other.origin_device, "owner");
    assert_true(other.extrapolated);
    /* The backward pass of a product is a product. */
    gemm.pass = DL_BACKWARD_WEIGHTS;
    dl_kernel_time(&owner, DL_FP32, &gemm, &other);
    check_close(other.time_s, own.time_s, 0);
}

/* Short sides double this product's time: 512 x 512 x 512 with a half-rate summed side of 512. On
 * memory of half the speed, a chip of the lender's architecture loses nothing more. */
static void slower_memory_than_the_lender(void **state) {
    struct dl_kernel_model models[] = {plain_model(DL_OP_GEMM, DL_FP32)};
    struct dl_rate rates[] = {{DL_FP32, 0, 10e12, NULL, NAN}};
    struct dl_device owner = plain_device(rates, 1, 5e-6), device = plain_device(rates, 1, 5e-6);
    models[0].latency_s = 1e-9;
    models[0].rate_flop_per_s = 10e12;
    models[0].half_m = models[0].half_n = models[0].half_waves = 0;
    models[0].half_k = 512;
    models[0].bandwidth_bytes_per_s = 100e12; /* the bytes hide behind the arithmetic */
    owner.kernel_models = models;
    owner.kernel_model_count = 1;
    owner.architecture = device.architecture = "hopper";
    device.borrowed = &owner;
    device.memory_bandwidth_bytes_per_s = owner.memory_bandwidth_bytes_per_s / 2;
    const struct dl_kernel gemm = dl_kernel_gemm(DL_FORWARD, 512, 512, 512, 1);
    const double plain_s = 2.0 * 512 * 512 * 512 / 10e12;
    struct dl_kernel_time own, lent, other;
    dl_kernel_time(&owner, DL_FP32, &gemm, &own);
    check_close(own.time_s, 2 * plain_s, 1e-3);
    dl_kernel_time(&device, DL_FP32, &gemm, &lent);
    check_close(lent.time_s, 2 * plain_s, 1e-3);
    /* More arithmetic shortens the sum, not the loss. */
    struct dl_rate faster[] = {{DL_FP32, 0, 20e12, NULL, NAN}};
    device.rates = faster;
    dl_kernel_time(&device, DL_FP32, &gemm, &lent);
    check_close(lent.time_s, 1.5 * plain_s, 1e-3);
    /* Of another architecture nothing is known: the loss keeps the time of the bytes. */
    device.rates = rates;
    device.architecture = "blackwell";
    dl_kernel_time(&device, DL_FP32, &gemm, &other);
    check_close(other.time_s, 3 * plain_s, 1e-3);
}

static void empty_kernels(void **state) {
    struct dl_device device = plain_device(RATES, 2, 5e-6);
    struct dl_kernel nothing[] = {dl_kernel_gemm(DL_FORWARD, 0, 0, 0, 0),
                                  dl_kernel_stream(DL_FORWARD, 0, 0, 0),
                                  conv_of(DL_FORWARD, 0, 0, 0, 0, 0, 0, 0)};
    for (size_t i = 0; i < sizeof nothing / sizeof nothing[0]; i++) {
        struct dl_kernel_time time;
        dl_kernel_time(&device, DL_FP32, &nothing[i], &time);
        check_close(time.time_s, 5e-6, 1e-9); /* a launch */
        assert_int_equal(time.limit, DL_LIMIT_LATENCY);
    }
}

/* F-NORM-BACKWARD: 3 passes over 2^26 elements at 0.8 of 1 TB/s and 0.65 of it in 32 bits; the
 * forward pass, cuDNN's kernels and composed ones move their bytes at the full rate. */
static void norms_backward(void **state) {
    const double n = 67108864.0, full_s = 3.0 * n * 4.0 / 0.8e12;
    const struct dl_device device = {.name = "x",
                                     .memory_bandwidth_bytes_per_s = 1e12,
                                     .memory_efficiency = 0.8,
                                     .l2_bytes = 1.0,
                                     .kernel_latency_s = 1e-9};
    const struct {
        enum dl_pass pass;
        enum dl_variant variant;
        double launches, share;
        enum dl_precision precision;
    } cases[] = {{DL_FORWARD, DL_VARIANT_PLAIN, 1, 1.0, DL_FP32},
                 {DL_BACKWARD_DATA, DL_VARIANT_PLAIN, 1, 0.65, DL_FP32},
                 {DL_BACKWARD_DATA, DL_VARIANT_PLAIN, 1, 1.1, DL_BF16},
                 {DL_BACKWARD_DATA, DL_VARIANT_VENDOR, 1, 1.0, DL_FP32},
                 {DL_BACKWARD_DATA, DL_VARIANT_PLAIN, 3, 1.0, DL_FP32}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct dl_kernel kernel = dl_kernel_stream(cases[i].pass, n, 2.0 * n, n);
        struct dl_kernel_time time;
        kernel.work = DL_WORK_LAYERNORM;
        kernel.variant = cases[i].variant;
        kernel.launches = cases[i].launches;
        dl_kernel_time(&device, cases[i].precision, &kernel, &time);
        assert_true(fabs(time.time_s * cases[i].share / full_s - 1.0) < 1e-3);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(work_of_gemm),
                                       cmocka_unit_test(work_of_convolution),
                                       cmocka_unit_test(names_and_sizes),
                                       cmocka_unit_test(base_of_a_model),
                                       cmocka_unit_test(base_of_a_stream),
                                       cmocka_unit_test(algorithms_of_a_model),
                                       cmocka_unit_test(gains_of_a_model),
                                       cmocka_unit_test(transposed_product_is_the_same),
                                       cmocka_unit_test(correction_of_a_model),
                                       cmocka_unit_test(features_by_name),
                                       cmocka_unit_test(features_without_names),
                                       cmocka_unit_test(fast_arithmetic),
                                       cmocka_unit_test(whole_tiles),
                                       cmocka_unit_test(skipped_rows),
                                       cmocka_unit_test(streams),
                                       cmocka_unit_test(without_model),
                                       cmocka_unit_test(depthwise),
                                       cmocka_unit_test(depthwise_by_instructions),
                                       cmocka_unit_test(convolutions_of_their_own),
                                       cmocka_unit_test(borrowed),
                                       cmocka_unit_test(slower_memory_than_the_lender),
                                       cmocka_unit_test(empty_kernels),
                                       cmocka_unit_test(norms_backward)};
    return cmocka_run_group_tests(tests, NULL, check_free);
}
