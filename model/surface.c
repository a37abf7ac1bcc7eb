/* surface.c - evaluation of a fitted kernel-time surface, and its file. See surface.h for the formula.
 * Not here: the fit (calibrate/fit_kernel.c), the choice of a surface (kernel.c).
 */
#include "model/surface.h"

#include <math.h>

/* clang-format off */
#define NUMBER(key_, unit_, low_, high_, required_, help_) \
    {.key = #key_, .type = DL_FIELD_NUMBER, .offset = offsetof(struct dl_surface, key_), .min = (low_), .max = (high_), \
     .unit = (unit_), .required = (required_), .help = (help_)}
#define WITH_DEFAULT(key_, value_, low_, high_, help_) \
    {.key = #key_, .type = DL_FIELD_NUMBER, .offset = offsetof(struct dl_surface, key_), .min = (low_), .max = (high_), \
     .has_fallback = true, .fallback = (value_), .help = (help_)}
#define NUMBERS(key_, count_, help_) \
    {.key = #key_, .type = DL_FIELD_NUMBERS, .offset = offsetof(struct dl_surface, key_), \
     .count_offset = offsetof(struct dl_surface, count_), .help = (help_)}
/* clang-format on */

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
    WITH_DEFAULT(narrow_gain, 1.0, 1e-3, 1e3, "rate factor: fewer than 8 input channels"),
    WITH_DEFAULT(pointwise_gain, 1.0, 1e-3, 1e3, "rate factor: 1x1 kernels"),
    WITH_DEFAULT(grouped_gain, 1.0, 1e-3, 1e3, "rate factor: grouped convolution"),
    WITH_DEFAULT(base_sigma_log, 0.35, 0.0, 10.0, "standard deviation of log(time / base)"),
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

/* Flags are as far apart as this many octaves (the lengths scale it). */
static const double FLAG = 2.0;
static const double TILE_POINTS = 128.0 * 64.0; /* a common tile of GPU matrix libraries: cublasLt's enumeration */

static bool is_multiple_of_8(double x)
{
    return x == 8.0 * floor(x / 8.0);
}

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
    bool plain = kernel->groups <= 1.0, cube = true;
    s->stride_area = 1.0;
    for (int d = 0; d < DL_DIMS; d++) {
        in_points *= kernel->in[d];
        out_points *= kernel->out[d];
        taps *= kernel->kernel[d];
        s->stride_area *= kernel->stride[d];
        if (kernel->dilation[d] > 1.0) plain = false;
        if (kernel->kernel[d] <= 1.0) continue;
        wide++;
        if (largest > 1.0 && kernel->kernel[d] != largest) cube = false;
        largest = fmax(largest, kernel->kernel[d]);
    }
    double groups = fmax(kernel->groups, 1.0);
    double channels = kernel->in_channels / groups, filters = kernel->out_channels / groups;
    double pixels = kernel->batch * out_points;
    bool fast = plain && cube && wide == 2 && s->stride_area <= 1.0;
    s->fast_3x3 = fast && largest == 3.0;
    s->fast_5x5 = fast && largest > 3.0;
    s->pointwise = taps <= 1.0;
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
    s->features[0] = log2_of(pixels);
    s->features[1] = log2_of(channels);
    s->features[2] = log2_of(filters);
    s->features[3] = log2_of(taps);
    s->features[4] = log2_of(s->stride_area);
    s->features[5] = log2_of(kernel->flop);
    s->feature_count = 6;
}

void dl_surface_shape_of(const struct dl_kernel *kernel, double bytes_per_element, int64_t unit_count,
                         struct dl_surface_shape *out)
{
    double units = unit_count > 0 ? (double)unit_count : 1.0;
    *out = (struct dl_surface_shape){.flop = kernel->flop, .stride_area = 1.0, .launches = fmax(kernel->launches, 1.0)};
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

static double saturation(double half, double size)
{
    return half > 0.0 ? 1.0 / (1.0 + half / fmax(size, 1e-9)) : 1.0;
}

double dl_surface_base(const struct dl_surface *surface, const struct dl_surface_scale *scale,
                       const struct dl_surface_shape *shape, enum dl_limit *limit)
{
    double latency_s = surface->latency_s * scale->latency * shape->launches;
    double memory_s = shape->bytes / (surface->bandwidth_bytes_per_s * scale->bandwidth);
    double compute_s = 0.0;
    if (surface->op != DL_OP_STREAM && shape->flop > 0.0) {
        double rate = surface->rate_flop_per_s * scale->rate;
        rate *= saturation(surface->half_m, shape->m) * saturation(surface->half_n, shape->n) *
                saturation(surface->half_k, shape->k) * saturation(surface->half_waves, shape->waves);
        if (shape->unaligned) rate *= surface->unaligned_gain;
        if (shape->m_trans) rate *= surface->m_trans_gain;
        if (shape->n_trans) rate *= surface->n_trans_gain;
        if (shape->fast_3x3) rate *= surface->gain_3x3;
        if (shape->fast_5x5) rate *= surface->gain_5x5;
        if (shape->narrow) rate *= surface->narrow_gain;
        if (shape->pointwise) rate *= surface->pointwise_gain;
        if (shape->grouped) rate *= surface->grouped_gain;
        if (shape->stride_area > 1.0) rate *= pow(shape->stride_area, -surface->stride_exponent);
        compute_s = shape->flop / rate;
    }
    if (limit != NULL) {
        *limit = compute_s > memory_s ? DL_LIMIT_COMPUTE : DL_LIMIT_MEMORY;
        if (latency_s > fmax(compute_s, memory_s)) *limit = DL_LIMIT_LATENCY;
    }
    double longer_s = fmax(compute_s, memory_s);
    if (!(longer_s > 0.0)) return latency_s;
    double ratio = fmin(compute_s, memory_s) / longer_s;
    return latency_s + longer_s * cbrt(1.0 + ratio * ratio * ratio);
}

/* Sum of weights / (1 + distance^2), and the smallest distance^2. Blocks of four samples, feature by feature, so that
 * the compiler can keep a block in vector registers. */
static double correction(const struct dl_surface *surface, const double x[DL_FEATURES_MAX], double *nearest)
{
    enum { BLOCK = 4 };
    int n = surface->weight_count, axes = surface->length_count, i = 0;
    double sum = 0.0, low = INFINITY, part[BLOCK] = {0}, least[BLOCK] = {INFINITY, INFINITY, INFINITY, INFINITY};
    for (; i + BLOCK <= n; i += BLOCK) {
        double d2[BLOCK] = {0};
        for (int f = 0; f < axes; f++) {
            const double *point = surface->points + (ptrdiff_t)f * n + i;
            for (int j = 0; j < BLOCK; j++) d2[j] += (x[f] - point[j]) * (x[f] - point[j]);
        }
        for (int j = 0; j < BLOCK; j++) {
            part[j] += surface->weights[i + j] / (1.0 + d2[j]);
            least[j] = d2[j] < least[j] ? d2[j] : least[j];
        }
    }
    for (; i < n; i++) {
        double d2 = 0.0;
        for (int f = 0; f < axes; f++) {
            double d = x[f] - surface->points[(ptrdiff_t)f * n + i];
            d2 += d * d;
        }
        sum += surface->weights[i] / (1.0 + d2);
        low = fmin(low, d2);
    }
    for (int j = 0; j < BLOCK; j++) {
        sum += part[j];
        low = fmin(low, least[j]);
    }
    *nearest = low;
    return sum;
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
    double unexplained = nearest / (1.0 + nearest);
    out->time_s = base_s * exp(log_ratio);
    out->sigma_log = sqrt(surface->sigma_log * surface->sigma_log +
                          surface->base_sigma_log * surface->base_sigma_log * unexplained * unexplained);
}
