/* surface_time.c - evaluation of a fitted kernel-time surface: F-KERNEL-SURFACE, see surface.h for the formula.
 * Written to be fast: a prediction asks for a thousand kernels.
 */
#include <math.h>
#include <stdint.h>

#include "model/surface.h"
#include "model/surface_math.h"
#include "model/surface_tiles.h"

/* `size` padded to a multiple. */
static double padded_to(double size, double multiple)
{
    return dl_whole_up(size / multiple) * multiple;
}

/* Octaves by which the powers lower the rate. */
static double slower_octaves(const struct dl_surface *surface, const struct dl_surface_shape *shape)
{
    static const double REFERENCE = 8.0; /* 256 channels */
    const float *log2s = shape->features;
    double stride_exponent = surface->stride_exponent +
                             surface->stride_channels_exponent * ((double)log2s[DL_AXIS_CHANNELS] - REFERENCE) +
                             surface->stride_filters_exponent * ((double)log2s[DL_AXIS_FILTERS] - REFERENCE);
    return surface->batch_exponent_3x3 * (double)log2s[DL_AXIS_BATCH_PADDING] + stride_exponent * (double)log2s[DL_AXIS_STRIDE] +
           surface->wave_exponent * (double)log2s[DL_AXIS_STEPS];
}

/* Octaves by which whole tiles, of the best size, are slower than the smooth loss of the sides. */
static double tile_octaves(const struct dl_surface *surface, const struct dl_surface_shape *shape, double smooth)
{
    double best = dl_smaller(shape->tile_excess[0], dl_smaller(shape->tile_excess[1] / surface->tile_64_gain,
                                                               shape->tile_excess[2] / surface->tile_32_gain));
    return dl_log2_near(best / smooth);
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
    /* Inverse efficiency: products and sums of half / size, so that time never falls as a side grows; over one denominator. */
    double tile = dl_tile_usual.m * dl_tile_usual.n;
    double sides = (shape->m + surface->half_m * scale->half) * (shape->n + surface->half_n * scale->half) +
                   surface->half_waves * tile * shape->units / shape->count; /* half_waves / waves, times m n */
    double above = sides * (shape->k + surface->half_k * scale->half), below = shape->m * shape->n * shape->k;
    if (shape->op == DL_OP_CONV) {
        double slower = slower_octaves(surface, shape);
        if (surface->tile_exponent != 0.0)
            slower += surface->tile_exponent * tile_octaves(surface, shape, sides / (shape->m * shape->n));
        if (slower != 0.0) above *= exp2(slower);
        if (surface->channel_multiple > 1.0) {
            above *= padded_to(shape->channels, surface->channel_multiple) * padded_to(shape->filters, surface->channel_multiple);
            below *= shape->channels * shape->filters;
        }
    }
    return shape->flop * above / (below * surface->rate_flop_per_s * scale->rate * gain_of(surface, shape));
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

/* The same operations in the same order with and without AVX (no fused multiply-add), so results do not depend on the
 * machine. Sanitizers and clang get the plain version; so does coverage (DL_ONE_COPY), which
 * would count every copy of a branch. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__) && !defined(DL_ONE_COPY)
#define WIDE __attribute__((target_clones("avx2", "default")))
#else
#define WIDE
#endif
#if defined(DL_ONE_COPY)
#define INLINE static inline
#else
#define INLINE static inline __attribute__((always_inline))
#endif
#if defined(__GNUC__) && !defined(__clang__)
#define UNROLL _Pragma("GCC unroll 9")
#else
#define UNROLL
#endif

struct sums {
    double weighted; /* sum of weights k, k = 1 / (1 + distance) */
    double nearest;  /* largest k */
    bool outside;    /* of the samples' box */
};

/* Adds the difference of one feature as it counts in the distance. By pointer: no vector crosses a call. */
INLINE void add_apart(dl_lanes *sum, const float *point, float x, bool magnitudes)
{
    const dl_lane_bits no_sign = {INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX};
    const dl_lanes apart = *(const dl_lanes_in_memory *)point - x;
    *sum += magnitudes ? (dl_lanes)((dl_lane_bits)apart & no_sign) : (dl_lanes)(apart * apart);
}

INLINE void keep_smaller(dl_lanes *least, const dl_lanes *value)
{
    const dl_lane_bits smaller = *value < *least;
    *least = (dl_lanes)(((dl_lane_bits)*value & smaller) | ((dl_lane_bits)*least & ~smaller));
}

INLINE struct sums sum_weights(const struct dl_surface *surface, const float *x, int axes, bool magnitudes)
{
    const dl_lanes one = {1.0F, 1.0F, 1.0F, 1.0F, 1.0F, 1.0F, 1.0F, 1.0F};
    dl_lanes sum = {0.0F}, least = one * 1e30F;
    const int row = surface->packed_row;
    for (int i = 0; i < row; i += DL_SURFACE_WIDTH) {
        dl_lanes a = one, b = one;
        const float *point = surface->packed + i;
        UNROLL for (int f = 0; f < axes; f++, point += row) {
            add_apart(&a, point, x[f], magnitudes);
            add_apart(&b, point + DL_LANES, x[f], magnitudes);
        }
        sum += *(const dl_lanes_in_memory *)point / a + *(const dl_lanes_in_memory *)(point + DL_LANES) / b;
        keep_smaller(&least, &a);
        keep_smaller(&least, &b);
    }
    dl_lane_bits outside = {0};
    for (int f = 0; f < DL_AXES; f += DL_LANES) {
        const dl_lanes at = *(const dl_lanes_in_memory *)(x + f);
        outside |= (at < *(const dl_lanes_in_memory *)(surface->low + f)) | (at > *(const dl_lanes_in_memory *)(surface->high + f));
    }
    outside[0] |= outside[4], outside[1] |= outside[5], outside[2] |= outside[6], outside[3] |= outside[7];
    float low = least[0];
    for (int i = 1; i < DL_LANES; i++) low = least[i] < low ? least[i] : low;
    float total = ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
    return (struct sums){(double)total, 1.0 / (double)low, (outside[0] | outside[1] | outside[2] | outside[3]) != 0};
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

void dl_surface_eval(const struct dl_surface *surface, const struct dl_surface_scale *scale,
                     const struct dl_surface_shape *shape, struct dl_kernel_time *out)
{
    double base_s = dl_surface_base(surface, scale, shape, &out->limit);
    if (surface->packed == NULL) {
        out->time_s = base_s * exp(surface->offset);
        out->sigma_log = dl_larger(surface->base_sigma_log, surface->sigma_log);
        out->extrapolated = true;
        return;
    }
    float x[DL_AXES] = {0.0F};
    for (int f = 0; f < surface->length_count; f++) x[f] = shape->features[surface->axes[f]] * surface->per_length[f];
    struct sums sums = correction(surface, x);
    /* Share of the base's variance that the nearest sample leaves unexplained (it alone: an upper bound). */
    double unexplained = surface->base_sigma_log * (1.0 - sums.nearest);
    out->time_s = base_s * exp(surface->offset + sums.weighted);
    out->sigma_log = sqrt(surface->sigma_log * surface->sigma_log + unexplained * unexplained);
    out->extrapolated = sums.outside;
}
