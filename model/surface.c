/* surface.c - evaluation of a fitted kernel-time surface, and its file. See surface.h for the formula.
 * Not here: the fit (calibrate/fit_kernel.c), the choice of a surface (kernel.c).
 */
#include "model/surface.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "model/surface_tiles.h"

/* clang-format off */
#define NUMBER(key_, unit_, low_, high_, required_, help_) \
    {.key = #key_, .type = DL_FIELD_NUMBER, .offset = offsetof(struct dl_surface, key_),                    \
     .min = (low_), .max = (high_), .unit = (unit_), .required = (required_), .help = (help_)}
#define WITH_DEFAULT(key_, value_, low_, high_, help_) \
    {.key = #key_, .type = DL_FIELD_NUMBER, .offset = offsetof(struct dl_surface, key_),                    \
     .min = (low_), .max = (high_), .has_fallback = true, .fallback = (value_), .help = (help_)}
#define NUMBERS(key_, count_, help_) \
    {.key = #key_, .type = DL_FIELD_NUMBERS, .offset = offsetof(struct dl_surface, key_), \
     .count_offset = offsetof(struct dl_surface, count_), .help = (help_)}
/* clang-format on */

static const char *const distance_names[] = {"squares", "magnitudes", NULL};

static const struct dl_field surface_fields[] = {
    {.key = "op", .type = DL_FIELD_CHOICE, .offset = offsetof(struct dl_surface, op), .choices = dl_op_names,
     .required = true, .help = "operation"},
    {.key = "pass", .type = DL_FIELD_CHOICE, .offset = offsetof(struct dl_surface, pass), .choices = dl_pass_names,
     .required = true, .help = "forward, gradient of the data, gradient of the weights"},
    {.key = "precision", .type = DL_FIELD_CHOICE, .offset = offsetof(struct dl_surface, precision),
     .choices = dl_precision_names, .required = true, .help = "of the arithmetic"},
    NUMBER(latency_s, DL_UNIT_S, 0.0, 1.0, true, "shortest kernel"),
    NUMBER(rate_flop_per_s, DL_UNIT_FLOP_PER_S, 1.0, 1e18, true, "attained by large kernels"),
    NUMBER(bandwidth_bytes_per_s, DL_UNIT_BYTE_PER_S, 1.0, 1e16, true, "attained by large kernels"),
    WITH_DEFAULT(half_m, 0.0, 0.0, 1e9, "length of the result's first (GEMM: longer) side that runs at half rate"),
    WITH_DEFAULT(half_n, 0.0, 0.0, 1e9, "length of its other side that runs at half rate"),
    WITH_DEFAULT(half_k, 0.0, 0.0, 1e9, "length of the summed side that runs at half rate"),
    WITH_DEFAULT(half_waves, 0.0, 0.0, 1e9, "tiles of 128 x 64 a unit that run at half rate"),
    WITH_DEFAULT(unaligned_gain, 1.0, 1e-3, 1e3, "rate factor: 2-byte operands whose sides are no multiples of 8"),
    WITH_DEFAULT(m_trans_gain, 1.0, 1e-3, 1e3, "rate factor: operand of the longer side stored with k contiguous"),
    WITH_DEFAULT(n_trans_gain, 1.0, 1e-3, 1e3, "rate factor: operand of the other side stored with k contiguous"),
    WITH_DEFAULT(gain_3x3, 1.0, 1e-3, 1e3, "rate factor: 3x3, stride 1 (Winograd; direct-convolution flop)"),
    WITH_DEFAULT(gain_5x5, 1.0, 1e-3, 1e3, "rate factor: larger square kernels, stride 1 (FFT, Winograd)"),
    WITH_DEFAULT(stride_exponent, 0.0, -10.0, 10.0, "rate falls with (stride area)^-exponent"),
    WITH_DEFAULT(batch_exponent_3x3, 0.0, -10.0, 10.0,
                 "3x3, stride 1: rate falls with (batch padded to 16s / batch)^-exponent"),
    WITH_DEFAULT(wave_exponent, 0.0, -10.0, 10.0, "rate falls with (whole waves of 128 x 64 tiles / smooth ones)^-exponent"),
    WITH_DEFAULT(stride_channels_exponent, 0.0, -10.0, 10.0, "stride_exponent rises by it with each octave of channels over 256"),
    WITH_DEFAULT(stride_filters_exponent, 0.0, -10.0, 10.0, "stride_exponent rises by it with each octave of filters over 256"),
    WITH_DEFAULT(padded_pointwise_gain, 1.0, 1e-3, 1e3, "rate factor: 1x1 kernels with padding"),
    WITH_DEFAULT(narrow_gain, 1.0, 1e-3, 1e3, "rate factor: fewer than 8 input channels"),
    WITH_DEFAULT(pointwise_gain, 1.0, 1e-3, 1e3, "rate factor: 1x1 kernels"),
    WITH_DEFAULT(grouped_gain, 1.0, 1e-3, 1e3, "rate factor: grouped convolution"),
    WITH_DEFAULT(channel_multiple, 1.0, 1.0, 1024.0, "channels and filters are padded to this multiple"),
    WITH_DEFAULT(base_sigma_log, 0.35, 0.0, 10.0, "standard deviation of log(time / base)"),
    {.key = "distance", .type = DL_FIELD_CHOICE, .offset = offsetof(struct dl_surface, distance), .choices = distance_names,
     .help = "between kernels: sum of squares or of magnitudes of the differences of their features"},
    WITH_DEFAULT(offset, 0.0, -10.0, 10.0, "mean of log(time / base)"),
    NUMBERS(lengths, length_count, "length scale of each feature"),
    NUMBERS(points, point_count, "features / lengths of the samples, one feature after the other"),
    NUMBERS(weights, weight_count, "one a sample"),
    NUMBERS(domain_low, domain_low_count, "smallest value of each feature"),
    NUMBERS(domain_high, domain_high_count, "largest value of each feature"),
    NUMBER(sigma_log, DL_UNIT_NONE, 0.0, 10.0, true, "standard deviation of log(time / prediction), cross-validated"),
    {.key = "samples", .type = DL_FIELD_INTEGER, .offset = offsetof(struct dl_surface, samples), .min = 0.0,
     .max = 1e9, .unit = DL_UNIT_COUNT, .help = "kernels it was fitted to"},
    {.key = "source", .type = DL_FIELD_STRING, .offset = offsetof(struct dl_surface, source),
     .help = "key of data/SOURCES.md"},
    {.key = NULL},
};

const struct dl_schema dl_surface_schema = {
    .name = "surface",
    .summary = "times of one operation, pass and precision on one device",
    .size = sizeof(struct dl_surface),
    .fields = surface_fields,
};

static const struct dl_field set_fields[] = {
    {.key = "device", .type = DL_FIELD_STRING, .offset = offsetof(struct dl_surface_set, device), .required = true,
     .help = "name of the device file"},
    {.key = "library", .type = DL_FIELD_STRING, .offset = offsetof(struct dl_surface_set, library),
     .help = "library that was measured, with its version"},
    {.key = "source", .type = DL_FIELD_STRING, .offset = offsetof(struct dl_surface_set, source), .required = true,
     .help = "key of data/SOURCES.md"},
    {.key = "surfaces", .type = DL_FIELD_LIST, .offset = offsetof(struct dl_surface_set, surfaces),
     .count_offset = offsetof(struct dl_surface_set, surface_count), .child = &dl_surface_schema, .required = true,
     .help = "one for each operation, pass and precision"},
    {.key = NULL},
};

const struct dl_schema dl_surface_set_schema = {
    .name = "dlmodel-surfaces",
    .summary = "kernel-time surfaces of one device",
    .size = sizeof(struct dl_surface_set),
    .fields = set_fields,
    .top_level = true,
};

enum dl_code dl_surface_check(const struct dl_surface *surface, const struct dl_json *doc, const char *path,
                              struct dl_err *err)
{
    int axes = surface->length_count;
    if (axes > DL_FEATURES_MAX)
        return dl_json_fail(doc, path, err, "at most %d lengths are known, found %d", DL_FEATURES_MAX, axes);
    if (surface->point_count != axes * surface->weight_count)
        return dl_json_fail(doc, path, err, "points has %d numbers, expected lengths x weights = %d x %d",
                            surface->point_count, axes, surface->weight_count);
    if (surface->domain_low_count != surface->domain_high_count ||
        (axes > 0 && surface->domain_low_count != axes))
        return dl_json_fail(doc, path, err, "domain_low, domain_high and lengths must have the same count");
    for (int f = 0; f < axes; f++)
        if (!(surface->lengths[f] > 0.0))
            return dl_json_fail(doc, path, err, "lengths must be positive, found %g", surface->lengths[f]);
    return DL_OK;
}

static double log2_of(double x)
{
    return x > 1.0 ? log2(x) : 0.0;
}

static double log2_signed(double x)
{
    return x > 0.0 ? log2(x) : 0.0;
}

/* Flags are as far apart as this many octaves (the lengths scale it). */
static const double FLAG = 2.0;
static const double TILE_POINTS = 128.0 * 64.0; /* a common tile of GPU matrix libraries: cublasLt's enumeration */

static bool is_multiple_of_8(double x)
{
    return x == 8.0 * floor(x / 8.0);
}

/* `size` padded to a multiple, over itself. */
static double padding(double size, double multiple)
{
    return size > 0.0 ? ceil(size / multiple) * multiple / size : 1.0;
}

/* Images that a direct or Winograd convolution kernel takes at once. */
static const double IMAGE_TILE = 16.0;
/* Largest batch of the convolution samples (DeepBench). */
static const double LARGE_BATCH = 32.0;

static void gemm_shape(const struct dl_kernel *kernel, double units, bool two_byte, struct dl_surface_shape *s)
{
    /* C = A B is C^T = B^T A^T: only the longer and the shorter side matter, and how their operands are stored.
     * Column-major convention of the samples: A of an m >= n product "T" has k contiguous. */
    bool m_longer = kernel->m >= kernel->n;
    s->m = m_longer ? kernel->m : kernel->n;
    s->n = m_longer ? kernel->n : kernel->m;
    s->k = kernel->k;
    s->m_trans = m_longer ? kernel->a_trans : !kernel->b_trans;
    s->n_trans = m_longer ? kernel->b_trans : !kernel->a_trans;
    s->unaligned = two_byte && !(is_multiple_of_8(kernel->m) && is_multiple_of_8(kernel->k) &&
                                 (is_multiple_of_8(kernel->n) || !kernel->b_trans));
    s->waves = s->m * s->n * kernel->count / (TILE_POINTS * units);
    s->features[0] = log2_of(s->m * fmax(kernel->count, 1.0));
    s->features[1] = log2_of(s->n);
    s->features[2] = log2_of(s->k);
    s->features[3] = s->m_trans ? FLAG : 0.0;
    s->features[4] = s->n_trans ? FLAG : 0.0;
    s->features[5] = s->unaligned ? FLAG : 0.0;
    s->feature_count = 6;
}

static void conv_shape(const struct dl_kernel *kernel, double units, bool two_byte, struct dl_surface_shape *s)
{
    double in_points = 1.0, out_points = 1.0, taps = 1.0, largest = 1.0;
    int wide = 0; /* dimensions in which the kernel is wider than one point */
    bool plain = kernel->groups <= 1.0, cube = true, padded = false;
    s->stride_area = 1.0;
    for (int d = 0; d < DL_DIMS; d++) {
        in_points *= kernel->in[d];
        out_points *= kernel->out[d];
        taps *= kernel->kernel[d];
        s->stride_area *= kernel->stride[d];
        if (kernel->dilation[d] > 1.0) plain = false;
        if (kernel->pad[d] > 0.0) padded = true;
        if (kernel->kernel[d] <= 1.0) continue;
        wide++;
        if (largest > 1.0 && kernel->kernel[d] != largest) cube = false;
        largest = fmax(largest, kernel->kernel[d]);
    }
    double groups = fmax(kernel->groups, 1.0);
    double channels = kernel->in_channels / groups, filters = kernel->out_channels / groups;
    double pixels = kernel->batch * out_points;
    s->channels = channels;
    s->filters = filters;
    bool fast = plain && cube && wide == 2 && s->stride_area <= 1.0;
    s->fast_3x3 = fast && largest == 3.0;
    s->fast_5x5 = fast && largest > 3.0;
    s->pointwise = taps <= 1.0;
    s->padded_pointwise = s->pointwise && padded;
    s->batch_padding = padding(kernel->batch, IMAGE_TILE);
    s->narrow = channels < 8.0;
    s->grouped = groups > 1.0;
    s->unaligned = two_byte && !(is_multiple_of_8(channels) && is_multiple_of_8(filters));
    if (kernel->pass == DL_BACKWARD_DATA) {
        s->m = kernel->batch * in_points;
        s->n = channels;
        s->k = filters * taps;
    } else if (kernel->pass == DL_BACKWARD_WEIGHTS) {
        s->m = filters;
        s->n = channels * taps;
        s->k = pixels;
    } else {
        s->m = pixels;
        s->n = filters;
        s->k = channels * taps;
    }
    s->waves = s->m * s->n * groups / (TILE_POINTS * units);
    s->wave_steps = dl_tile_steps(s->m, s->n, groups, units, dl_tile_usual);
    /* From some batch on, more images are more of the same tiles: the base scales, the correction stays. */
    s->features[0] = log2_of(fmin(kernel->batch, LARGE_BATCH));
    s->features[1] = log2_of(out_points);
    s->features[2] = log2_of(channels);
    s->features[3] = log2_of(filters);
    s->features[4] = log2_of(taps);
    /* Which features tell, pass by pass: chosen by cross-validation on the published samples. */
    double excess = log2(dl_tile_excess(s->m, s->n, groups, units, dl_tile_large));
    s->features[5] = kernel->pass == DL_BACKWARD_WEIGHTS ? excess : log2_of(s->stride_area);
    s->feature_count = 6;
    if (kernel->pass == DL_BACKWARD_WEIGHTS) return;
    s->features[6] = excess;
    s->feature_count = 7;
    if (kernel->pass == DL_BACKWARD_DATA) return;
    s->features[7] = log2_signed(s->waves);
    s->features[8] = s->fast_3x3 ? FLAG : 0.0;
    s->feature_count = 9;
}

void dl_surface_shape_of(const struct dl_kernel *kernel, double bytes_per_element, int64_t unit_count,
                         struct dl_surface_shape *out)
{
    double units = unit_count > 0 ? (double)unit_count : 1.0;
    *out = (struct dl_surface_shape){.flop = kernel->flop, .stride_area = 1.0, .wave_steps = 1.0, .batch_padding = 1.0,
                                    .launches = fmax(kernel->launches, 1.0)};
    out->bytes = (kernel->read_elements + kernel->write_elements) * bytes_per_element + kernel->extra_bytes;
    switch (kernel->op) {
    case DL_OP_GEMM: gemm_shape(kernel, units, bytes_per_element == 2.0, out); break;
    case DL_OP_CONV: conv_shape(kernel, units, bytes_per_element == 2.0, out); break;
    case DL_OP_STREAM:
    case DL_OPS:
        out->features[0] = log2_of(out->bytes);
        out->feature_count = 1;
        break;
    }
}

static double half_over(double half, double size)
{
    return half > 0.0 ? half / fmax(size, 1e-9) : 0.0;
}

static double stride_exponent(const struct dl_surface *surface, const struct dl_surface_shape *shape)
{
    static const double REFERENCE = 256.0; /* channels */
    return surface->stride_exponent + surface->stride_channels_exponent * log2(fmax(shape->channels, 1.0) / REFERENCE) +
           surface->stride_filters_exponent * log2(fmax(shape->filters, 1.0) / REFERENCE);
}

double dl_surface_base(const struct dl_surface *surface, const struct dl_surface_scale *scale,
                       const struct dl_surface_shape *shape, enum dl_limit *limit)
{
    double latency_s = surface->latency_s * scale->latency * shape->launches;
    double memory_s = shape->bytes / (surface->bandwidth_bytes_per_s * scale->bandwidth);
    double compute_s = 0.0;
    if (surface->op != DL_OP_STREAM && shape->flop > 0.0) {
        double rate = surface->rate_flop_per_s * scale->rate;
        /* Inverse efficiency: products and sums of half / size, so that time never falls as a side grows. */
        double sides = (1.0 + half_over(surface->half_m * scale->half, shape->m)) *
                       (1.0 + half_over(surface->half_n * scale->half, shape->n));
        rate /= (1.0 + half_over(surface->half_k * scale->half, shape->k)) *
                (sides + half_over(surface->half_waves, shape->waves));
        if (shape->unaligned) rate *= surface->unaligned_gain;
        if (shape->m_trans) rate *= surface->m_trans_gain;
        if (shape->n_trans) rate *= surface->n_trans_gain;
        if (shape->fast_3x3) rate *= surface->gain_3x3;
        if (shape->fast_5x5) rate *= surface->gain_5x5;
        if (shape->narrow) rate *= surface->narrow_gain;
        if (shape->pointwise) rate *= surface->pointwise_gain;
        if (shape->grouped) rate *= surface->grouped_gain;
        if (shape->padded_pointwise) rate *= surface->padded_pointwise_gain;
        if (shape->fast_3x3 && shape->batch_padding > 1.0)
            rate *= pow(shape->batch_padding, -surface->batch_exponent_3x3);
        if (shape->stride_area > 1.0) rate *= pow(shape->stride_area, -stride_exponent(surface, shape));
        if (surface->wave_exponent != 0.0) rate *= pow(shape->wave_steps, -surface->wave_exponent);
        compute_s = shape->flop / rate;
        if (surface->channel_multiple > 1.0)
            compute_s *= padding(shape->channels, surface->channel_multiple) *
                         padding(shape->filters, surface->channel_multiple);
    }
    if (limit != NULL) {
        *limit = compute_s > memory_s ? DL_LIMIT_COMPUTE : DL_LIMIT_MEMORY;
        if (latency_s > fmax(compute_s, memory_s)) *limit = DL_LIMIT_LATENCY;
    }
    if (isnan(compute_s) || isnan(memory_s)) return NAN; /* a rate that is unknown; fmax would drop it */
    double longer_s = fmax(compute_s, memory_s);
    if (!(longer_s > 0.0)) return latency_s;
    double ratio = fmin(compute_s, memory_s) / longer_s;
    return latency_s + longer_s * cbrt(1.0 + ratio * ratio * ratio);
}

/* Four samples at a time: GCC's and clang's vector type, lowered to what the machine has. */
typedef double quad __attribute__((vector_size(32)));

/* The same operations in the same order with and without AVX (no fused multiply-add), so results do not depend on the
 * machine. Sanitizers and clang get the plain version. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define WIDE __attribute__((target_clones("avx2", "default")))
#else
#define WIDE
#endif

typedef int64_t quad_bits __attribute__((vector_size(32)));

#define INLINE static inline __attribute__((always_inline))

/* Adds the difference of one feature as it counts in the distance. By pointer: no vector crosses a call. */
INLINE void add_apart(quad *sum, const quad *d, bool magnitudes)
{
    const quad_bits no_sign = {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX};
    *sum += magnitudes ? (quad)((quad_bits)*d & no_sign) : *d * *d;
}

/* Sum of weights k with k = 1 / (1 + distance), and the largest k: (sum k^8)^(1/8), which needs no branches and is
 * at most a little above it where samples crowd. */
INLINE double sum_weights(const struct dl_surface *surface, const double x[DL_FEATURES_MAX], bool magnitudes, double *largest)
{
    ptrdiff_t n = surface->weight_count, axes = surface->length_count, i = 0;
    quad sum = {0.0}, powers = {0.0};
    const quad one = {1.0, 1.0, 1.0, 1.0};
    for (; i + 8 <= n; i += 8) {
        const double *point = surface->points + i;
        quad a = one, b = one, weight_a, weight_b;
        for (ptrdiff_t f = 0; f < axes; f++, point += n) {
            quad to_a, to_b; /* memcpy: unaligned loads */
            memcpy(&to_a, point, sizeof to_a);
            memcpy(&to_b, point + 4, sizeof to_b);
            to_a -= x[f];
            to_b -= x[f];
            add_apart(&a, &to_a, magnitudes);
            add_apart(&b, &to_b, magnitudes);
        }
        quad inverse = one / (a * b), k_a = inverse * b, k_b = inverse * a; /* one division for both */
        memcpy(&weight_a, surface->weights + i, sizeof weight_a);
        memcpy(&weight_b, surface->weights + i + 4, sizeof weight_b);
        sum += weight_a * k_a + weight_b * k_b;
        k_a *= k_a;
        k_b *= k_b;
        k_a *= k_a;
        k_b *= k_b;
        powers += k_a * k_a + k_b * k_b;
    }
    double rest = 0.0, rest_powers = 0.0;
    for (; i < n; i++) {
        double a = 1.0;
        for (ptrdiff_t f = 0; f < axes; f++) {
            double d = x[f] - surface->points[f * n + i];
            a += magnitudes ? fabs(d) : d * d;
        }
        double k = 1.0 / a;
        rest += surface->weights[i] * k;
        k *= k;
        k *= k;
        rest_powers += k * k;
    }
    double all_powers = (powers[0] + powers[1]) + (powers[2] + powers[3]) + rest_powers;
    *largest = fmin(sqrt(sqrt(sqrt(all_powers))), 1.0);
    return (sum[0] + sum[1]) + (sum[2] + sum[3]) + rest;
}

WIDE static double correction(const struct dl_surface *surface, const double x[DL_FEATURES_MAX], double *largest)
{
    return surface->distance == DL_DISTANCE_MAGNITUDES ? sum_weights(surface, x, true, largest)
                                                       : sum_weights(surface, x, false, largest);
}

/* Outside the samples' box by more than this many octaves: extrapolated. */
static const double DOMAIN_MARGIN = 1.0;

void dl_surface_eval(const struct dl_surface *surface, const struct dl_surface_scale *scale,
                     const struct dl_surface_shape *shape, struct dl_kernel_time *out)
{
    double base_s = dl_surface_base(surface, scale, shape, &out->limit);
    out->extrapolated = surface->weight_count == 0;
    if (surface->weight_count == 0 || surface->length_count != shape->feature_count) {
        out->time_s = base_s * exp(surface->offset);
        out->sigma_log = fmax(surface->base_sigma_log, surface->sigma_log);
        out->extrapolated = true;
        return;
    }
    double x[DL_FEATURES_MAX] = {0}, nearest;
    for (int f = 0; f < shape->feature_count; f++) {
        x[f] = shape->features[f] / surface->lengths[f];
        if (f < surface->domain_low_count && (shape->features[f] < surface->domain_low[f] - DOMAIN_MARGIN ||
                                              shape->features[f] > surface->domain_high[f] + DOMAIN_MARGIN))
            out->extrapolated = true;
    }
    double log_ratio = surface->offset + correction(surface, x, &nearest);
    /* Share of the base's variance that the nearest sample leaves unexplained (it alone: an upper bound). */
    double unexplained = 1.0 - nearest;
    out->time_s = base_s * exp(log_ratio);
    out->sigma_log = sqrt(surface->sigma_log * surface->sigma_log +
                          surface->base_sigma_log * surface->base_sigma_log * unexplained * unexplained);
}
