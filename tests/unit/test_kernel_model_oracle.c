/* F-KERNEL-MODEL as its header has it, in plain arithmetic of the C library: sides, classes and
 * features of random kernels, and their times by random models, whole and with samples. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/machine/kernel_model.h"
#include "tests/check.h"

static uint64_t seed = 47;

static int upto(int count) { return (int)(check_random(&seed) % (uint64_t)count); }
static bool half(void) { return upto(2) == 0; }
static double of(const double *list, int count) { return list[upto(count)]; }
#define ONE_OF(...)                                                                                \
    of((const double[]){__VA_ARGS__}, (int)(sizeof((const double[]){__VA_ARGS__}) / sizeof(double)))

static double most(double a, double b) { return a >= b ? a : b; }
static double least(double a, double b) { return a <= b ? a : b; }
static double octaves(double x) { return x > 1 ? log2(x) : 0; }
static bool by_8(double x) { return fmod(x, 8) == 0; }
static double points(const double *sides) { return sides[0] * sides[1] * sides[2]; }

/* ---- shapes ---- */

/* Tiles in whole waves of the units, over the points of the result. */
static double excess(double m, double n, double count, double units, double rows, double columns) {
    const double tiles = ceil(m / rows) * ceil(n / columns) * count,
                 waves = ceil(tiles / units - 1e-9);
    return m * n * count > 0 ? waves * units * rows * columns / (m * n * count) : 1;
}

static void set_gemm(const struct dl_kernel *k, double bytes, struct dl_kernel_model_shape *s,
                     double *f) {
    const bool turned = k->m < k->n; /* the transposed product */
    s->m = turned ? k->n : k->m, s->n = turned ? k->m : k->n, s->k = k->k, s->count = k->count;
    s->m_trans = turned ? !k->b_trans : k->a_trans;
    s->n_trans = turned ? !k->a_trans : k->b_trans;
    s->unaligned = bytes == 2 && (!by_8(k->m) || !by_8(k->k) || (k->b_trans && !by_8(k->n)));
    f[0] = octaves(s->m * most(1, s->count)), f[1] = octaves(s->n), f[2] = octaves(s->k);
    f[3] = s->m_trans ? 2 : 0, f[4] = s->n_trans ? 2 : 0, f[5] = s->unaligned ? 2 : 0;
    f[6] = octaves(excess(s->m, s->n, s->count, s->units, 128, 128));
    f[7] = octaves(s->count), f[8] = k->variant == DL_VARIANT_BLOCKS ? 2 : 0;
}

static void set_attention(const struct dl_kernel *k, struct dl_kernel_model_shape *s, double *f) {
    double pairs = 0;
    for (int i = 0; i < (int)k->queries; i++) { /* i places before the last */
        const double past = k->causal ? most(1, k->keys - i) : k->keys;
        pairs += k->window > 0 ? least(k->window, past) : past;
    }
    s->count = k->batch * k->heads, s->m = k->queries, s->n = k->value_dim;
    s->k = pairs / k->queries;
    f[0] = octaves(s->m), f[1] = octaves(s->k), f[2] = octaves(s->count);
    f[3] = octaves(k->head_dim), f[4] = k->causal ? 2 : 0;
    f[5] = octaves(k->heads / most(1, k->kv_heads));
    f[6] = octaves(excess(s->m, 1, s->count, s->units, 128, 1));
    f[7] = k->variant == DL_VARIANT_PAGED ? 2 : 0;
    f[8] = k->variant == DL_VARIANT_ENGINE ? 2 : 0;
}

/* Squares of more than a point: two sides alike, the third a point. */
static double square_of(const struct dl_kernel *k) {
    const double *s = k->kernel;
    if (s[0] == 1 && s[1] == s[2]) return s[1];
    if (s[1] == 1 && s[0] == s[2]) return s[0];
    return s[2] == 1 && s[0] == s[1] ? s[0] : 0;
}

static void set_sides(const struct dl_kernel *k, struct dl_kernel_model_shape *s) {
    const double in = k->batch * points(k->in), out = k->batch * points(k->out);
    if (k->pass == DL_FORWARD) s->m = out, s->n = s->filters, s->k = s->channels * s->taps;
    if (k->pass == DL_BACKWARD_DATA) s->m = in, s->n = s->channels, s->k = s->filters * s->taps;
    if (k->pass == DL_BACKWARD_WEIGHTS) s->m = s->filters, s->n = s->channels * s->taps, s->k = out;
}

static void set_conv(const struct dl_kernel *k, double bytes, struct dl_kernel_model_shape *s,
                     double *f) {
    const double groups = most(1, k->groups), side = square_of(k);
    const bool fast = points(k->dilation) == 1 && groups == 1 && points(k->stride) == 1;
    s->count = groups, s->channels = k->in_channels / groups, s->filters = k->out_channels / groups;
    s->taps = points(k->kernel), s->stride_area = points(k->stride);
    s->fast_3x3 = fast && side == 3, s->fast_5x5 = fast && side > 3;
    s->pointwise = s->taps == 1, s->padded = k->pad[0] + k->pad[1] + k->pad[2] > 0;
    s->narrow = s->channels<8, s->grouped = groups> 1;
    s->unaligned = bytes == 2 && (!by_8(s->channels) || !by_8(s->filters));
    s->out_positions = k->batch * points(k->out);
    s->in_bytes = bytes * k->in_channels * k->batch * points(k->in);
    s->out_bytes = bytes * k->out_channels * s->out_positions;
    if (s->fast_3x3 && s->channels >= 16 && k->pass != DL_BACKWARD_WEIGHTS)
        s->winograd_tiles = k->batch * k->out[0] * ceil(k->out[1] / 4) * ceil(k->out[2] / 4);
    set_sides(k, s);
    static const double columns[] = {128, 64, 32};
    for (int i = 0; i < 3; i++)
        s->tile_excess[i] = excess(s->m, s->n, groups, s->units, 128, columns[i]);
    const double waves = s->m * s->n * groups / (128 * 64 * s->units);
    f[0] = octaves(least(32, k->batch)), f[1] = octaves(points(k->out)),
    f[2] = octaves(s->channels);
    f[3] = octaves(s->filters), f[4] = octaves(s->taps), f[5] = octaves(s->stride_area);
    f[6] = octaves(s->tile_excess[0]), f[7] = waves > 0 ? log2(waves) : 0;
    f[8] = s->fast_3x3 ? 2 : 0, f[9] = s->padded ? 2 : 0;
    f[10] = s->fast_3x3 ? octaves(ceil(k->batch / 16) * 16 / k->batch) : 0;
    f[11] = waves > 0 ? log2(s->tile_excess[1] * waves / (waves + 1)) : 0;
    f[12] = octaves(s->n);
    f[13] = octaves(k->pass == DL_BACKWARD_WEIGHTS && k->batch > 32 ? s->k * 32 / k->batch : s->k);
    f[14] = k->in[0] > 1 ? 6 : 0;
}

static void expected(const struct dl_kernel *k, double bytes, int units,
                     struct dl_kernel_model_shape *s, double f[DL_AXES]) {
    *s = (struct dl_kernel_model_shape){.op = k->op, .flop = k->flop, .element_bytes = bytes};
    s->units = units > 0 ? units : 1, s->count = 1;
    s->launches = most(1, k->launches);
    const double written = most(2, bytes);
    s->bytes = bytes * k->read_elements + written * k->write_elements + k->extra_bytes;
    for (int i = 0; i < DL_AXES; i++) f[i] = 0;
    if (k->op == DL_OP_GEMM) set_gemm(k, bytes, s, f);
    if (k->op == DL_OP_ATTENTION) set_attention(k, s, f);
    if (k->op == DL_OP_CONV) set_conv(k, bytes, s, f);
    if (k->op ==
        DL_OP_STREAM) { /* elements written; of what moves at most a half, at least a third */
        const double moved = s->bytes / written;
        f[0] = octaves(s->bytes), f[1] = k->variant == DL_VARIANT_VENDOR ? 2 : 0;
        f[2] = octaves(most(moved / 3, least(moved / 2, k->write_elements)));
    } else {
        s->waves = s->m * s->n * s->count / (128 * 64 * s->units);
    }
}

static struct dl_kernel random_conv(enum dl_pass pass) {
    double in[3], side[3], stride[3], pad[3], dilation[3];
    const double usual = ONE_OF(1, 2, 3, 3, 3, 5, 7), step = ONE_OF(1, 1, 2),
                 far = ONE_OF(1, 1, 1, 2);
    const int flat = upto(5) > 0 ? 0 : upto(4); /* the axis of one point; 3: none */
    const double groups = ONE_OF(0, 1, 1, 1, 2, 4);
    for (int d = 0; d < 3; d++) {
        side[d] = d == flat ? 1 : upto(12) == 0 ? ONE_OF(1, 3, 5) : usual;
        in[d] = d == 0 && flat == 0 ? ONE_OF(1, 1, 2) : ONE_OF(7, 14, 30);
        stride[d] = d == flat ? 1 : step, pad[d] = upto(4) == 0 ? 0 : floor(side[d] / 2);
        dilation[d] = d == flat ? 1 : far;
    }
    if (upto(12) == 0) pad[upto(3)] = 1;
    if (upto(12) == 0) dilation[upto(3)] = 2;
    if (upto(12) == 0) stride[upto(3)] = 2;
    return dl_kernel_conv(pass, ONE_OF(1, 5, 16, 32, 33, 100), 4 * ONE_OF(1, 2, 3, 4, 5, 16, 30),
                          4 * ONE_OF(1, 2, 3, 16, 64), groups, in, side, stride, pad, dilation);
}

static struct dl_kernel random_kernel(void) {
    const enum dl_pass pass = (enum dl_pass)upto(3);
    struct dl_kernel k;
    switch (upto(6)) {
    case 0:
        k = dl_kernel_gemm(pass, ONE_OF(1, 7, 64, 128, 129, 1000), ONE_OF(1, 64, 72, 128, 1001),
                           ONE_OF(1, 9, 512), ONE_OF(0, 1, 3, 16));
        k.a_trans = half(), k.b_trans = half();
        if (half()) k.variant = DL_VARIANT_BLOCKS;
        break;
    case 1: {
        const struct dl_attention_shape a = {.batch = ONE_OF(1, 4),
                                             .heads = ONE_OF(1, 8),
                                             .kv_heads = ONE_OF(1, 8),
                                             .queries = ONE_OF(1, 40, 128, 129),
                                             .keys = ONE_OF(1, 40, 200),
                                             .head_dim = ONE_OF(1, 64),
                                             .value_dim = ONE_OF(64, 80),
                                             .window = ONE_OF(0, 1, 30, 400),
                                             .causal = half()};
        k = dl_kernel_attention(upto(2) == 0 ? DL_FORWARD : DL_BACKWARD_DATA, &a);
        k.variant =
            (enum dl_variant[]){DL_VARIANT_PLAIN, DL_VARIANT_PAGED, DL_VARIANT_ENGINE}[upto(3)];
        break;
    }
    case 2:
        k = dl_kernel_stream(pass, ONE_OF(0, 1e6), ONE_OF(0, 1, 1e3, 1e6), ONE_OF(0, 1, 1e3, 1e6));
        k.extra_bytes = ONE_OF(0, 64, 1e5);
        if (half()) k.variant = DL_VARIANT_VENDOR;
        break;
    default: k = random_conv(pass);
    }
    k.launches = ONE_OF(0, 1, 3);
    return k;
}

static void check_shape(const struct dl_kernel_model_shape *is,
                        const struct dl_kernel_model_shape *want, const double f[DL_AXES]) {
#define AT(member) offsetof(struct dl_kernel_model_shape, member)
    static const size_t flags[] = {AT(unaligned), AT(m_trans),  AT(n_trans),
                                   AT(fast_3x3),  AT(fast_5x5), AT(narrow),
                                   AT(pointwise), AT(padded),   AT(grouped)},
                        numbers[] = {AT(flop),
                                     AT(bytes),
                                     AT(m),
                                     AT(n),
                                     AT(k),
                                     AT(waves),
                                     AT(count),
                                     AT(units),
                                     AT(tile_excess[0]),
                                     AT(tile_excess[1]),
                                     AT(tile_excess[2]),
                                     AT(channels),
                                     AT(filters),
                                     AT(element_bytes),
                                     AT(in_bytes),
                                     AT(out_bytes),
                                     AT(out_positions),
                                     AT(taps),
                                     AT(stride_area),
                                     AT(winograd_tiles),
                                     AT(launches)};
    assert_int_equal(is->op, want->op);
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        assert_int_equal(*((const char *)is + flags[i]), *((const char *)want + flags[i]));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        double a, b;
        memcpy(&a, (const char *)is + numbers[i], sizeof a);
        memcpy(&b, (const char *)want + numbers[i], sizeof b);
        if (!(fabs(a - b) <= 1e-12 * fabs(b))) fail_msg("number %d: %g, expected %g", (int)i, a, b);
    }
    for (int i = 0; i < DL_AXES; i++)
        if (!(fabs((double)is->features[i] - f[i]) <= 2e-6 * fmax(1, fabs(f[i]))))
            fail_msg("op %d, feature %d: %.9g, expected %.9g", (int)is->op, i,
                     (double)is->features[i], f[i]);
}

static void shape_of(const struct dl_kernel *k, double bytes, int units,
                     struct dl_kernel_model_shape *s) {
    memset(s, 0x41, sizeof *s); /* what was there before does not count */
    dl_kernel_model_shape_of(k, bytes, units, s);
}

static void shapes_and_features(void **state) {
    (void)state;
    for (int round = 0; round < 20000; round++) {
        const struct dl_kernel k = random_kernel();
        const double bytes = ONE_OF(0.5625, 1, 2, 2, 4);
        const int units = upto(9) == 0 ? (int)DL_ABSENT : 1 + upto(130);
        struct dl_kernel_model_shape is, want;
        double f[DL_AXES];
        expected(&k, bytes, units, &want, f);
        shape_of(&k, bytes, units, &is);
        check_shape(&is, &want, f);
    }
}

/* ---- the base ---- */

static double some(double much) { return upto(3) == 0 ? 0 : much * check_uniform(&seed); }
static double gain(void) { return 0.5 + check_uniform(&seed); }

static struct dl_kernel_model random_model(const struct dl_kernel *k) {
    struct dl_kernel_model m = {.op = (int)k->op,
                                .pass = (int)k->pass,
                                .latency_s = 1e-6 * ONE_OF(0.001, 5, 500),
                                .rate_flop_per_s = 1e13 * gain(),
                                .bandwidth_bytes_per_s = 1e11 * ONE_OF(1, 5, 1000),
                                .half_m = some(200),
                                .half_n = some(200),
                                .half_k = some(200),
                                .half_waves = some(4),
                                .unaligned_gain = gain(),
                                .m_trans_gain = gain(),
                                .n_trans_gain = gain(),
                                .gain_3x3 = gain(),
                                .gain_5x5 = gain(),
                                .narrow_gain = gain(),
                                .pointwise_gain = gain(),
                                .padded_pointwise_gain = gain(),
                                .grouped_gain = gain(),
                                .stride_exponent = some(1),
                                .batch_exponent_3x3 = some(1),
                                .wave_exponent = some(1),
                                .stride_channels_exponent = some(0.1),
                                .stride_filters_exponent = some(0.1),
                                .tile_exponent = some(1),
                                .partial_waves = half() ? 0 : check_uniform(&seed),
                                .winograd_gain = gain(),
                                .transform_bytes_per_s = 5e11 * gain(),
                                .spread_gain = gain(),
                                .gather_gain = gain(),
                                .gather_bytes_per_s = 5e11 * gain(),
                                .tile_64_gain = gain(),
                                .tile_32_gain = gain(),
                                .channel_multiple = ONE_OF(1, 8),
                                .base_sigma_log = 0.3 * check_uniform(&seed),
                                .sigma_log = 0.2 * check_uniform(&seed),
                                .offset = check_uniform(&seed) - 0.5};
    if (k->op == DL_OP_STREAM) m.partial_waves = 0;
    return m;
}

static double gains(const struct dl_kernel_model *m, const struct dl_kernel_model_shape *s) {
    return (s->unaligned ? m->unaligned_gain : 1) * (s->m_trans ? m->m_trans_gain : 1) *
           (s->n_trans ? m->n_trans_gain : 1) * (s->fast_3x3 ? m->gain_3x3 : 1) *
           (s->fast_5x5 ? m->gain_5x5 : 1) * (s->narrow ? m->narrow_gain : 1) *
           (s->pointwise ? m->pointwise_gain : 1) * (s->grouped ? m->grouped_gain : 1) *
           (s->pointwise && s->padded ? m->padded_pointwise_gain : 1);
}

/* 1/e with the sides at half rate, tiles, strides and padding. */
static double smooth_s(const struct dl_kernel_model *m, const struct dl_kernel_model_scale *by,
                       const struct dl_kernel_model_shape *s, const double f[DL_AXES]) {
    const double sides = (1 + m->half_m / s->m) * (1 + m->half_n / s->n),
                 waves = m->half_waves / s->waves, summed = 1 + m->half_k / s->k;
    /* all but the waves themselves is lost `half` times */
    double inverse = sides * summed + waves * summed;
    inverse += (by->half - 1) * (inverse - 1 - waves);
    if (s->op == DL_OP_CONV) {
        const double whole = least(s->tile_excess[0], least(s->tile_excess[1] / m->tile_64_gain,
                                                            s->tile_excess[2] / m->tile_32_gain)),
                     stride = m->stride_exponent + m->stride_channels_exponent * (f[2] - 8) +
                              m->stride_filters_exponent * (f[3] - 8),
                     multiple = m->channel_multiple;
        inverse *= pow(whole / (sides + waves), m->tile_exponent);
        inverse *= exp2(m->batch_exponent_3x3 * f[10] + stride * f[5] + m->wave_exponent * f[11]);
        inverse *= ceil(s->channels / multiple) * multiple / s->channels;
        inverse *= ceil(s->filters / multiple) * multiple / s->filters;
    }
    return s->flop * inverse / (m->rate_flop_per_s * by->rate * gains(m, s));
}

/* P of the header; more: times the rows. */
static double in_tiles(const struct dl_kernel_model *m, const struct dl_kernel_model_scale *by,
                       double units, double rows, double columns, double summed, double count,
                       double more) {
    static const double widths[] = {128, 64, 32};
    const double tile_gains[] = {1, m->tile_64_gain, m->tile_32_gain};
    double best = INFINITY;
    for (int i = 0; i < 3; i++) {
        const double tiles = ceil(rows * more / 128) * ceil(columns / widths[i]) * count;
        best = least(best, (tiles + m->partial_waves * units) * 128 * widths[i] / tile_gains[i]);
    }
    return best / (rows * columns * count) * (1 + by->half * m->half_k / summed);
}

static double algorithms_s(const struct dl_kernel_model *m, const struct dl_kernel_model_scale *by,
                           const struct dl_kernel_model_shape *s, const double f[DL_AXES]) {
    const double rate = m->rate_flop_per_s * by->rate, t = s->winograd_tiles;
    if (t > 0) {
        const double padded = exp2(m->batch_exponent_3x3 * f[10]);
        return 2 * t * 36 * s->channels * s->filters / (rate * m->winograd_gain) *
                   in_tiles(m, by, s->units, t, s->n, s->k / s->taps, 36, padded) +
               (1 + 72.0 / 16) * (s->in_bytes + s->out_bytes) /
                   (m->transform_bytes_per_s * by->bandwidth);
    }
    const double plain_s = s->flop / (rate * gains(m, s)),
                 direct_s = plain_s * in_tiles(m, by, s->units, s->m, s->n, s->k, s->count, 1);
    if (m->pass != DL_BACKWARD_DATA || s->stride_area <= 1)
        return direct_s * exp2(m->stride_exponent * f[5]);
    const double columns = s->channels * s->taps,
                 spread_s = direct_s * s->stride_area / m->spread_gain,
                 gather_s =
                     plain_s / m->gather_gain *
                         in_tiles(m, by, s->units, s->out_positions, columns, s->filters, s->count,
                                  1) +
                     (s->element_bytes * s->out_positions * columns * s->count + s->in_bytes) /
                         (m->gather_bytes_per_s * by->bandwidth);
    return pow(pow(spread_s, -4) + pow(gather_s, -4), -0.25);
}

static double base(const struct dl_kernel_model *m, const struct dl_kernel_model_scale *by,
                   const struct dl_kernel_model_shape *s, const double f[DL_AXES],
                   enum dl_limit *limit) {
    const double latency_s = m->latency_s * by->latency * s->launches,
                 memory_s = s->bytes / (m->bandwidth_bytes_per_s * by->bandwidth);
    double compute_s = 0;
    if (s->op != DL_OP_STREAM && s->flop > 0)
        compute_s = m->partial_waves > 0 ? algorithms_s(m, by, s, f) : smooth_s(m, by, s, f);
    *limit = latency_s > compute_s && latency_s > memory_s ? DL_LIMIT_LATENCY
             : compute_s > memory_s                        ? DL_LIMIT_COMPUTE
                                                           : DL_LIMIT_MEMORY;
    return latency_s + cbrt(pow(compute_s, 3) + pow(memory_s, 3));
}

static struct dl_kernel_model_scale random_scale(void) {
    return (struct dl_kernel_model_scale){gain(), gain(), gain(), upto(3) == 0 ? 1 : 1 + gain()};
}

static void bases(void **state) {
    (void)state;
    int limits[3] = {0};
    for (int round = 0; round < 30000; round++) {
        const struct dl_kernel k = random_kernel();
        const struct dl_kernel_model m = random_model(&k);
        const struct dl_kernel_model_scale by = random_scale();
        const double bytes = ONE_OF(1, 2, 4);
        const int units = 1 + upto(130);
        struct dl_kernel_model_shape s, want;
        double f[DL_AXES];
        enum dl_limit is_limit, limit;
        expected(&k, bytes, units, &want, f);
        shape_of(&k, bytes, units, &s);
        const double time_s = base(&m, &by, &want, f, &limit);
        check_close(dl_kernel_model_base(&m, &by, &s, &is_limit), time_s, 1e-6);
        check_close(dl_kernel_model_base(&m, &by, &s, NULL), time_s, 1e-6);
        assert_int_equal(is_limit, limit);
        limits[limit]++;
        struct dl_kernel_time t; /* without samples */
        dl_kernel_model_eval(&m, &by, &s, &t);
        check_close(t.time_s, time_s * exp(m.offset), 1e-6);
        check_close(t.sigma_log, most(m.sigma_log, m.base_sigma_log), 0);
        assert_true(t.extrapolated);
        assert_int_equal(t.limit, limit);
        struct dl_kernel_model_scale unknown = by;
        unknown.bandwidth = NAN;
        check_nan(dl_kernel_model_base(&m, &unknown, &s, NULL));
        unknown = by, unknown.rate = NAN;
        if (k.op != DL_OP_STREAM && k.flop > 0)
            check_nan(dl_kernel_model_base(&m, &unknown, &s, NULL));
        else
            check_close(dl_kernel_model_base(&m, &unknown, &s, NULL), time_s, 1e-6);
    }
    for (int i = 0; i < 3; i++) assert_true(limits[i] > 1000);
}

/* ---- the correction ---- */

enum { FEATURES = 10, SAMPLES = 40 };
struct samples {
    double lengths[FEATURES], points[FEATURES * SAMPLES], weights[SAMPLES], low[FEATURES],
        high[FEATURES];
    const char *names[FEATURES];
    int axes[FEATURES];
};

static int features_of(enum dl_op op) {
    int count = 0;
    while (dl_kernel_model_features[op][count] != NULL) count++;
    return count;
}

/* Some features of the operation in any order, or the first ones without names; samples around the
 * kernel's own. */
static void give_samples(struct dl_kernel_model *m, struct samples *g, const double f[DL_AXES]) {
    static const int of_weights[] = {0, 1, 2, 3, 4, 6};
    const int all = features_of((enum dl_op)m->op), n = 1 + upto(SAMPLES);
    const bool named = half(), weights = m->op == DL_OP_CONV && m->pass == DL_BACKWARD_WEIGHTS;
    int count = 1 + upto(all < FEATURES ? all : FEATURES), order[DL_AXES];
    if (!named && weights && count > 6) count = 6;
    for (int i = 0; i < all; i++) order[i] = i;
    for (int i = all - 1; named && i > 0; i--) {
        const int j = upto(i + 1), kept = order[i];
        order[i] = order[j], order[j] = kept;
    }
    for (int i = 0; i < count; i++) {
        const int axis = named ? order[i] : weights ? of_weights[i] : i;
        g->axes[i] = axis, g->names[i] = dl_kernel_model_features[m->op][axis];
        g->lengths[i] = 1 + 3 * check_uniform(&seed);
        /* the domain ends an octave before what counts as outside */
        g->low[i] = f[axis] - 3 * check_uniform(&seed) + (upto(30) == 0 ? 2 : 0);
        g->high[i] = f[axis] + 3 * check_uniform(&seed) - (upto(30) == 0 ? 2 : 0);
        for (int p = 0; p < n; p++)
            g->points[i * n + p] =
                (f[axis] + ONE_OF(1, 1, 4) * (2 * check_uniform(&seed) - 1)) / g->lengths[i];
    }
    for (int p = 0; p < n; p++) g->weights[p] = 0.2 * (2 * check_uniform(&seed) - 1);
    m->distance = upto(2);
    m->features = named ? g->names : NULL, m->feature_count = named ? count : 0;
    m->lengths = g->lengths, m->length_count = count;
    m->points = g->points, m->point_count = count * n;
    m->weights = g->weights, m->weight_count = n;
    m->domain_low = g->low, m->domain_high = g->high;
    m->domain_low_count = m->domain_high_count = count;
}

static void corrections(void **state) {
    (void)state;
    struct dl_arena arena = {0};
    struct dl_err err = {0};
    int outside_count = 0, far_count = 0, both = 0;
    for (int round = 0; round < 8000; round++) {
        const struct dl_kernel k = random_kernel();
        struct dl_kernel_model m = random_model(&k);
        const struct dl_kernel_model_scale by = random_scale();
        const double bytes = ONE_OF(1, 2, 4);
        const int units = 1 + upto(130);
        struct dl_kernel_model_shape s, want;
        struct samples g;
        double f[DL_AXES], sum = 0, nearest = 0;
        bool outside = false, engines = false;
        expected(&k, bytes, units, &want, f);
        shape_of(&k, bytes, units, &s);
        give_samples(&m, &g, f);
        assert_int_equal(dl_kernel_model_pack(&m, &arena, &err), DL_OK);
        for (int p = 0; p < m.weight_count; p++) {
            double apart = 0;
            for (int i = 0; i < m.length_count; i++) {
                const double d = f[g.axes[i]] / g.lengths[i] - g.points[i * m.weight_count + p];
                apart += m.distance == DL_DISTANCE_MAGNITUDES ? fabs(d) : d * d;
            }
            sum += g.weights[p] / (1 + apart);
            nearest = most(nearest, 1 / (1 + apart));
        }
        double margin = INFINITY;
        for (int i = 0; i < m.length_count; i++) {
            const double x = f[g.axes[i]], low = x - (g.low[i] - 1), high = g.high[i] + 1 - x;
            outside = outside || low < 0 || high < 0;
            margin = least(margin, least(fabs(low), fabs(high)));
            engines = engines ||
                      (m.feature_count > 0 && strcmp(g.names[i], "engine") == 0 && g.low[i] > 0);
        }
        struct dl_kernel_time t;
        enum dl_limit limit;
        dl_kernel_model_eval(&m, &by, &s, &t);
        check_close(t.time_s, base(&m, &by, &want, f, &limit) * exp(m.offset + sum), 3e-5);
        check_close(1 + t.sigma_log, 1 + hypot(m.sigma_log, m.base_sigma_log * (1 - nearest)),
                    1e-6);
        assert_int_equal(t.limit, limit);
        assert_int_equal(m.of_engines, engines);
        if (margin > 1e-4 && fabs(nearest - 0.25) > 1e-4)
            assert_int_equal(t.extrapolated, outside || nearest < 0.25);
        outside_count += outside, far_count += nearest < 0.25, both += outside && nearest < 0.25;
    }
    assert_true(outside_count > 500 && far_count > 100 && both < far_count);
    dl_arena_free(&arena);
}

/* Of terms that are equal memory limits; a sample as far as counts is near enough.
 * Kept whole: one kernel of each kind. */
static void edges_by_hand(void **state) {
    (void)state;
    const struct dl_kernel_model_scale one = {1, 1, 1, 1};
    struct dl_kernel_model m = {.op = DL_OP_GEMM,
                                .latency_s = 0x1p-30,
                                .rate_flop_per_s = 0x1p40,
                                .bandwidth_bytes_per_s = 49152 * 0x1p21,
                                .m_trans_gain = 1,
                                .n_trans_gain = 1};
    const struct dl_kernel gemm = dl_kernel_gemm(DL_FORWARD, 64, 64, 64, 1);
    struct dl_kernel_model_shape s;
    enum dl_limit limit;
    dl_kernel_model_shape_of(&gemm, 4, 1, &s); /* 2^19 flop, 49152 bytes: 2^-21 s both */
    dl_kernel_model_base(&m, &one, &s, &limit);
    assert_int_equal(limit, DL_LIMIT_MEMORY);
    m.latency_s = 0x1p-21;
    dl_kernel_model_base(&m, &one, &s, &limit);
    assert_int_equal(limit, DL_LIMIT_MEMORY);
    m.bandwidth_bytes_per_s *= 2;
    dl_kernel_model_base(&m, &one, &s, &limit);
    assert_int_equal(limit, DL_LIMIT_COMPUTE);
    m.latency_s *= 2;
    dl_kernel_model_base(&m, &one, &s, &limit);
    assert_int_equal(limit, DL_LIMIT_LATENCY);
    /* 2^10 bytes, with samples 3 octaves away: 1 / (1 + 3) of their weight */
    struct dl_arena arena = {0};
    struct dl_err err = {0};
    struct dl_kernel_time t;
    double length = 1, point = 13, weight = 0.5, low = 10, high = 10;
    struct dl_kernel_model stream = {.op = DL_OP_STREAM,
                                     .latency_s = 1e-6,
                                     .bandwidth_bytes_per_s = 1e11,
                                     .distance = DL_DISTANCE_MAGNITUDES,
                                     .lengths = &length,
                                     .length_count = 1,
                                     .points = &point,
                                     .point_count = 1,
                                     .weights = &weight,
                                     .weight_count = 1,
                                     .domain_low = &low,
                                     .domain_low_count = 1,
                                     .domain_high = &high,
                                     .domain_high_count = 1};
    const struct dl_kernel k = dl_kernel_stream(DL_FORWARD, 0, 128, 128);
    dl_kernel_model_shape_of(&k, 4, 1, &s);
    assert_int_equal(dl_kernel_model_pack(&stream, &arena, &err), DL_OK);
    dl_kernel_model_eval(&stream, &one, &s, &t);
    check_close(t.time_s, (1e-6 + 1024 / 1e11) * exp(0.125), 1e-9);
    assert_false(t.extrapolated);
    /* an octave beyond the domain is still inside, on either side */
    for (int side = -1; side <= 1; side += 2) {
        low = high = 10 + side;
        assert_int_equal(dl_kernel_model_pack(&stream, &arena, &err), DL_OK);
        dl_kernel_model_eval(&stream, &one, &s, &t);
        assert_false(t.extrapolated);
        low = high = 10 + 1.0001 * side;
        assert_int_equal(dl_kernel_model_pack(&stream, &arena, &err), DL_OK);
        dl_kernel_model_eval(&stream, &one, &s, &t);
        assert_true(t.extrapolated);
    }
    low = high = 10, point = 13.001;
    assert_int_equal(dl_kernel_model_pack(&stream, &arena, &err), DL_OK);
    dl_kernel_model_eval(&stream, &one, &s, &t);
    assert_true(t.extrapolated);
    dl_arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(shapes_and_features),
                                       cmocka_unit_test(bases), cmocka_unit_test(corrections),
                                       cmocka_unit_test(edges_by_hand)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
