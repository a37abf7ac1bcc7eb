/* surface_time.c - evaluation of a fitted kernel-time surface: F-KERNEL-SURFACE, see surface.h for the formula.
 * Written to be fast: a prediction asks for a thousand kernels.
 */
#include <math.h>
#include <stdint.h>

#include "model/surface.h"
#include "model/surface_math.h"
#include "model/surface_tiles.h"

/* Half-rate size over the size. */
static double half_over(double half, double size)
{
    return half > 0.0 ? half / dl_larger(size, 1e-9) : 0.0;
}

/* `size` padded to a multiple, over itself. */
static double padding(double size, double multiple)
{
    return size > 0.0 ? dl_whole_up(size / multiple) * multiple / size : 1.0;
}

static double stride_exponent(const struct dl_surface *surface, const struct dl_surface_shape *shape)
{
    static const double REFERENCE = 256.0; /* channels */
    double exponent = surface->stride_exponent;
    if (surface->stride_channels_exponent != 0.0)
        exponent += surface->stride_channels_exponent * dl_log2_near(dl_larger(shape->channels, 1.0) / REFERENCE);
    if (surface->stride_filters_exponent != 0.0)
        exponent += surface->stride_filters_exponent * dl_log2_near(dl_larger(shape->filters, 1.0) / REFERENCE);
    return exponent;
}

/* Octaves by which the powers lower the rate. */
static double slower_octaves(const struct dl_surface *surface, const struct dl_surface_shape *shape)
{
    double slower = 0.0;
    if (shape->batch_padding > 1.0) slower += surface->batch_exponent_3x3 * dl_log2_near(shape->batch_padding);
    if (shape->stride_area > 1.0) slower += stride_exponent(surface, shape) * dl_log2_near(shape->stride_area);
    if (surface->wave_exponent != 0.0)
        slower += surface->wave_exponent *
                  dl_log2_near(dl_tile_steps(shape->m, shape->n, shape->count, shape->units, dl_tile_usual));
    return slower;
}

static double gain_of(const struct dl_surface *surface, const struct dl_surface_shape *shape)
{
    double gain = 1.0;
    if (shape->unaligned) gain *= surface->unaligned_gain;
    if (shape->m_trans) gain *= surface->m_trans_gain;
    if (shape->n_trans) gain *= surface->n_trans_gain;
    if (shape->fast_3x3) gain *= surface->gain_3x3;
    if (shape->fast_5x5) gain *= surface->gain_5x5;
    if (shape->narrow) gain *= surface->narrow_gain;
    if (shape->pointwise) gain *= surface->pointwise_gain;
    if (shape->grouped) gain *= surface->grouped_gain;
    if (shape->pointwise && shape->padded) gain *= surface->padded_pointwise_gain;
    return gain;
}

static double compute_time(const struct dl_surface *surface, const struct dl_surface_scale *scale, const struct dl_surface_shape *shape)
{
    /* Inverse efficiency: products and sums of half / size, so that time never falls as a side grows. */
    double sides = (1.0 + half_over(surface->half_m * scale->half, shape->m)) *
                   (1.0 + half_over(surface->half_n * scale->half, shape->n));
    double slowness = (1.0 + half_over(surface->half_k * scale->half, shape->k)) * (sides + half_over(surface->half_waves, shape->waves));
    double slower = slower_octaves(surface, shape);
    if (slower != 0.0) slowness *= exp2(slower);
    if (surface->channel_multiple > 1.0)
        slowness *= padding(shape->channels, surface->channel_multiple) * padding(shape->filters, surface->channel_multiple);
    return shape->flop * slowness / (surface->rate_flop_per_s * scale->rate * gain_of(surface, shape));
}

double dl_surface_base(const struct dl_surface *surface, const struct dl_surface_scale *scale,
                       const struct dl_surface_shape *shape, enum dl_limit *limit)
{
    double latency_s = surface->latency_s * scale->latency * shape->launches;
    double memory_s = shape->bytes / (surface->bandwidth_bytes_per_s * scale->bandwidth);
    double compute_s = surface->op != DL_OP_STREAM && shape->flop > 0.0 ? compute_time(surface, scale, shape) : 0.0;
    if (limit != NULL) {
        *limit = compute_s > memory_s ? DL_LIMIT_COMPUTE : DL_LIMIT_MEMORY;
        if (latency_s > dl_larger(compute_s, memory_s)) *limit = DL_LIMIT_LATENCY;
    }
    if (isnan(compute_s) || isnan(memory_s)) return NAN; /* a rate that is unknown */
    double longer_s = dl_larger(compute_s, memory_s);
    if (!(longer_s > 0.0)) return latency_s;
    double ratio = dl_smaller(compute_s, memory_s) / longer_s;
    return latency_s + longer_s * dl_cube_root_near(1.0 + ratio * ratio * ratio);
}

/* Eight samples at a time: GCC's and clang's vector type, lowered to what the machine has. */
typedef float lanes __attribute__((vector_size(32)));
typedef float lanes_in_memory __attribute__((vector_size(32), aligned(4), may_alias));
typedef int32_t lane_bits __attribute__((vector_size(32)));
enum { LANES = 8 };

/* The same operations in the same order with and without AVX (no fused multiply-add), so results do not depend on the
 * machine. Sanitizers and clang get the plain version. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define WIDE __attribute__((target_clones("avx2", "default")))
#else
#define WIDE
#endif
#define INLINE static inline __attribute__((always_inline))

struct sums {
    double weighted; /* sum of weights k, k = 1 / (1 + distance) */
    double nearest;  /* largest k */
};

/* Adds the difference of one feature as it counts in the distance. By pointer: no vector crosses a call. */
INLINE void add_apart(lanes *sum, const float *point, float x, bool magnitudes)
{
    const lane_bits no_sign = {INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX};
    const lanes apart = *(const lanes_in_memory *)point - x;
    *sum += magnitudes ? (lanes)((lane_bits)apart & no_sign) : (lanes)(apart * apart);
}

INLINE void keep_smaller(lanes *least, const lanes *value)
{
    const lane_bits smaller = *value < *least;
    *least = (lanes)(((lane_bits)*value & smaller) | ((lane_bits)*least & ~smaller));
}

INLINE struct sums sum_weights(const struct dl_surface *surface, const float *x, int axes, bool magnitudes)
{
    const lanes one = {1.0F, 1.0F, 1.0F, 1.0F, 1.0F, 1.0F, 1.0F, 1.0F};
    lanes sum = {0.0F}, least = one * 1e30F;
    const int row = surface->packed_row;
    for (int i = 0; i < row; i += DL_SURFACE_WIDTH) {
        lanes a = one, b = one;
        const float *point = surface->packed + i;
        for (int f = 0; f < axes; f++, point += row) {
            add_apart(&a, point, x[f], magnitudes);
            add_apart(&b, point + LANES, x[f], magnitudes);
        }
        sum += *(const lanes_in_memory *)point / a + *(const lanes_in_memory *)(point + LANES) / b;
        keep_smaller(&least, &a);
        keep_smaller(&least, &b);
    }
    float low = least[0];
    for (int i = 1; i < LANES; i++) low = least[i] < low ? least[i] : low;
    float total = ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
    return (struct sums){(double)total, 1.0 / (double)low};
}

/* One loop for each usual number of features, which the compiler can then unroll. */
#define BY_AXES(magnitudes)                                     \
    switch (surface->length_count) {                            \
    case 6: return sum_weights(surface, x, 6, magnitudes);      \
    case 7: return sum_weights(surface, x, 7, magnitudes);      \
    case 8: return sum_weights(surface, x, 8, magnitudes);      \
    case 9: return sum_weights(surface, x, 9, magnitudes);      \
    default: return sum_weights(surface, x, surface->length_count, magnitudes); \
    }
WIDE static struct sums correction(const struct dl_surface *surface, const float *x)
{
    if (surface->distance == DL_DISTANCE_MAGNITUDES) BY_AXES(true)
    BY_AXES(false)
}

/* Outside the samples' box by more than this many octaves: extrapolated. */
static const double DOMAIN_MARGIN = 1.0;

void dl_surface_eval(const struct dl_surface *surface, const struct dl_surface_scale *scale,
                     const struct dl_surface_shape *shape, struct dl_kernel_time *out)
{
    double base_s = dl_surface_base(surface, scale, shape, &out->limit);
    out->extrapolated = false;
    if (surface->packed == NULL) {
        out->time_s = base_s * exp(surface->offset);
        out->sigma_log = dl_larger(surface->base_sigma_log, surface->sigma_log);
        out->extrapolated = true;
        return;
    }
    float x[DL_FEATURES_MAX];
    for (int f = 0; f < surface->length_count; f++) {
        double feature = dl_surface_feature(shape, surface->axes[f]);
        x[f] = (float)(feature * surface->per_length[f]);
        if (feature < surface->domain_low[f] - DOMAIN_MARGIN || feature > surface->domain_high[f] + DOMAIN_MARGIN)
            out->extrapolated = true;
    }
    struct sums sums = correction(surface, x);
    /* Share of the base's variance that the nearest sample leaves unexplained (it alone: an upper bound). */
    double unexplained = surface->base_sigma_log * (1.0 - sums.nearest);
    out->time_s = base_s * exp(surface->offset + sums.weighted);
    out->sigma_log = sqrt(surface->sigma_log * surface->sigma_log + unexplained * unexplained);
}
