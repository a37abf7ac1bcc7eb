/* kernel_model_time.c - evaluation of a kernel-time model (F-KERNEL-MODEL; kernel_model.h has
 * the formula). Written to be fast: a prediction evaluates a thousand kernels. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "model/machine/kernel_model.h"
#include "model/machine/kernel_model_math.h"
#include "model/machine/kernel_model_tiles.h"

/* `size` padded to a multiple. */
DL_INLINE double padded_to(double size, double multiple) {
    return dl_whole_up(size / multiple) * multiple;
}

/* Octaves by which the exponents lower the rate. */
DL_INLINE double slower_octaves(const struct dl_kernel_model *model,
                                const struct dl_kernel_model_shape *shape) {
    static const double REFERENCE = 8.0; /* 256 channels */
    const float *log2s = shape->features;
    double stride_exponent =
        model->exponents.stride_exponent +
        model->exponents.stride_channels_exponent * ((double)log2s[DL_AXIS_CHANNELS] - REFERENCE) +
        model->exponents.stride_filters_exponent * ((double)log2s[DL_AXIS_FILTERS] - REFERENCE);
    return model->exponents.batch_exponent_3x3 * (double)log2s[DL_AXIS_BATCH_PADDING] +
           stride_exponent * (double)log2s[DL_AXIS_STRIDE] +
           model->exponents.wave_exponent * (double)log2s[DL_AXIS_STEPS];
}

/* Octaves by which whole tiles, of the best size, are slower than the smooth loss of the sides. */
DL_INLINE double tile_octaves(const struct dl_kernel_model *model,
                              const struct dl_kernel_model_shape *shape, double smooth) {
    double best = dl_smaller(shape->tile_excess[0],
                             dl_smaller(shape->tile_excess[1] / model->algorithms.tile_64_gain,
                                        shape->tile_excess[2] / model->algorithms.tile_32_gain));
    return dl_log2_near(best / smooth);
}

DL_INLINE double gain_of(const struct dl_kernel_model *model,
                         const struct dl_kernel_model_shape *shape) {
    double gain = 1.0;
    if (shape->unaligned) gain *= model->gains.unaligned_gain;
    if (shape->m_trans) gain *= model->gains.m_trans_gain;
    if (shape->n_trans) gain *= model->gains.n_trans_gain;
    if (shape->fast_3x3) gain *= model->gains.gain_3x3;
    if (shape->fast_5x5) gain *= model->gains.gain_5x5;
    if (shape->narrow) gain *= model->gains.narrow_gain;
    if (shape->pointwise) gain *= model->gains.pointwise_gain;
    if (shape->grouped) gain *= model->gains.grouped_gain;
    if (shape->pointwise && shape->padded) gain *= model->gains.padded_pointwise_gain;
    return gain;
}

DL_INLINE double compute_time(const struct dl_kernel_model *model,
                              const struct dl_kernel_model_scale *scale,
                              const struct dl_kernel_model_shape *shape) {
    /* Inverse efficiency: built from half / size, so that time never falls as a side grows; over
     * one denominator. */
    const double tile = dl_tile_usual.m * dl_tile_usual.n, full = shape->m * shape->n * shape->k,
                 sides = (shape->m + model->half_m) * (shape->n + model->half_n),
                 waves = model->half_waves * tile * shape->units / shape->count; /* / waves, m n */
    /* What short sides lose: in proportion to `half`, so that more arithmetic never costs time. */
    const double lost = sides * (shape->k + model->half_k) - full + waves * model->half_k;
    double above = (sides + waves) * (shape->k + model->half_k) + lost * (scale->half - 1.0),
           below = full;
    if (shape->op == DL_OP_CONV) {
        double slower = slower_octaves(model, shape);
        if (model->exponents.tile_exponent != 0.0)
            slower += model->exponents.tile_exponent *
                      tile_octaves(model, shape, (sides + waves) / (shape->m * shape->n));
        if (slower != 0.0) above *= dl_exp2_near(slower);
        if (model->channel_multiple > 1.0) {
            above *= padded_to(shape->channels, model->channel_multiple) *
                     padded_to(shape->filters, model->channel_multiple);
            below *= shape->channels * shape->filters;
        }
    }
    return shape->flop * above /
           (below * model->rate_flop_per_s * scale->rate * gain_of(model, shape));
}

/* Whole tiles of the best size, of `more` times the rows, and `partial_waves`, over the points of
 * the result; by the half-rate summed side. */
struct product {
    double m, n, k, count;
};
DL_INLINE double gemm_in_tiles(const struct dl_kernel_model *model,
                               const struct dl_kernel_model_scale *scale, double units,
                               struct product p, double more) {
    const double m = p.m, n = p.n, k = p.k, count = p.count;
    const double partial = model->algorithms.partial_waves * units,
                 rows = dl_whole_up(m * more * (1.0 / dl_tile_usual.m)) * count;
    const double large = (rows * dl_whole_up(n * (1.0 / dl_tile_large.n)) + partial) *
                         (dl_tile_large.m * dl_tile_large.n);
    const double usual = (rows * dl_whole_up(n * (1.0 / dl_tile_usual.n)) + partial) *
                         (dl_tile_usual.m * dl_tile_usual.n);
    const double narrow = (rows * dl_whole_up(n * (1.0 / dl_tile_narrow.n)) + partial) *
                          (dl_tile_narrow.m * dl_tile_narrow.n);
    const double best = dl_smaller(large, dl_smaller(usual / model->algorithms.tile_64_gain,
                                                     narrow / model->algorithms.tile_32_gain));
    return best * (k + model->half_k * scale->half) / (m * n * count * k);
}

/* Smooth minimum of two times: (a^-4 + b^-4)^(-1/4). */
DL_INLINE double better(double a, double b) {
    const double less = dl_smaller(a, b), ratio = less / dl_larger(a, b), square = ratio * ratio;
    return less / sqrt(sqrt(1.0 + square * square));
}

/* Time of a convolution by the algorithms of a GPU library (partial_waves > 0). */
DL_INLINE double algorithm_time(const struct dl_kernel_model *model,
                                const struct dl_kernel_model_scale *scale,
                                const struct dl_kernel_model_shape *s) {
    enum { TRANSFORMED = 36, TILE_POINTS = 16 };
    const double units = s->units, rate = model->rate_flop_per_s * scale->rate;
    if (s->winograd_tiles > 0.0) {
        const double flop = 2.0 * TRANSFORMED * s->winograd_tiles * s->channels * s->filters;
        const double padded = dl_exp2_near(model->exponents.batch_exponent_3x3 *
                                           (double)s->features[DL_AXIS_BATCH_PADDING]);
        const double gemm = gemm_in_tiles(
            model, scale, units,
            (struct product){s->winograd_tiles, s->n, s->k / s->taps, TRANSFORMED}, padded);
        const double moved = (1.0 + 2.0 * TRANSFORMED / TILE_POINTS) * (s->in_bytes + s->out_bytes);
        return flop * gemm / (rate * model->algorithms.winograd_gain) +
               moved / (model->algorithms.transform_bytes_per_s * scale->bandwidth);
    }
    const double plain_s = s->flop / (rate * gain_of(model, s)),
                 whole_s =
                     plain_s * gemm_in_tiles(model, scale, units,
                                             (struct product){s->m, s->n, s->k, s->count}, 1.0);
    if (model->pass == DL_BACKWARD_DATA && s->stride_area > 1.0) {
        const double columns = s->channels * s->taps;
        const double gathered_s =
            plain_s / model->algorithms.gather_gain *
                gemm_in_tiles(model, scale, units,
                              (struct product){s->out_positions, columns, s->filters, s->count},
                              1.0) +
            (s->out_positions * columns * s->count * s->element_bytes + s->in_bytes) /
                (model->algorithms.gather_bytes_per_s * scale->bandwidth);
        return better(whole_s * s->stride_area / model->algorithms.spread_gain, gathered_s);
    }
    const double slower = model->exponents.stride_exponent * (double)s->features[DL_AXIS_STRIDE];
    return slower != 0.0 ? whole_s * dl_exp2_near(slower) : whole_s;
}

DL_INLINE double base_of(const struct dl_kernel_model *model,
                         const struct dl_kernel_model_scale *scale,
                         const struct dl_kernel_model_shape *shape, enum dl_limit *limit) {
    double latency_s = model->latency_s * scale->latency * shape->launches;
    double memory_s = shape->bytes / (model->bandwidth_bytes_per_s * scale->bandwidth);
    double compute_s = 0.0;
    if (model->op != DL_OP_STREAM && shape->flop > 0.0)
        compute_s = model->algorithms.partial_waves > 0.0 ? algorithm_time(model, scale, shape)
                                                          : compute_time(model, scale, shape);
    if (limit != NULL) {
        *limit = compute_s > memory_s ? DL_LIMIT_COMPUTE : DL_LIMIT_MEMORY;
        if (latency_s > dl_larger(compute_s, memory_s)) *limit = DL_LIMIT_LATENCY;
    }
    if (isnan(compute_s) || isnan(memory_s)) return NAN; /* an unknown rate */
    if (model->fixed_time == DL_FIXED_TIME_OVERLAPS)
        return sqrt(latency_s * latency_s + memory_s * memory_s);
    double longer_s = dl_larger(compute_s, memory_s);
    if (!(longer_s > 0.0)) return latency_s;
    double ratio = dl_smaller(compute_s, memory_s) / longer_s;
    return latency_s + longer_s * dl_cube_root_near(1.0 + ratio * ratio * ratio);
}

double dl_kernel_model_base(const struct dl_kernel_model *model,
                            const struct dl_kernel_model_scale *scale,
                            const struct dl_kernel_model_shape *shape, enum dl_limit *limit) {
    return base_of(model, scale, shape, limit);
}

#if defined(__GNUC__) && !defined(__clang__)
#define UNROLL _Pragma("GCC unroll 10")
#else
#define UNROLL
#endif
struct sums {
    double weighted; /* sum of weights k, k = 1 / (1 + distance) */
    double nearest;  /* largest k */
};

DL_INLINE float smaller_of(float a, float b) { return a < b ? a : b; }

DL_INLINE struct sums totals(const dl_lanes *weighted, const dl_lanes *least) {
    const dl_lanes v = *weighted, w = *least;
    const float sum = ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
    const float low = smaller_of(smaller_of(smaller_of(w[0], w[4]), smaller_of(w[2], w[6])),
                                 smaller_of(smaller_of(w[1], w[5]), smaller_of(w[3], w[7])));
    return (struct sums){(double)sum, 1.0 / (double)low};
}

/* Adds the difference of one feature as it counts in the distance. By pointer: no vector crosses a
 * call. The subtraction reads the sample from memory. */
DL_INLINE void add_apart(dl_lanes *distance, float x, const dl_lanes_row *point, bool magnitudes) {
    const dl_lane_bits no_sign = (dl_lane_bits){0} + INT32_MAX;
    const dl_lanes apart = x - *point;
    *distance += magnitudes ? (dl_lanes)((dl_lane_bits)apart & no_sign) : (dl_lanes)(apart * apart);
}

DL_INLINE void keep_smaller(dl_lanes *least, const dl_lanes *value) {
    const dl_lane_bits smaller = *value < *least;
    *least = (dl_lanes)(((dl_lane_bits)*value & smaller) | ((dl_lane_bits)*least & ~smaller));
}

DL_INLINE struct sums sum_weights(const struct dl_kernel_model *model, const float *x, int axes,
                                  bool magnitudes) {
    const dl_lanes one = (dl_lanes){0} + 1.0F;
    dl_lanes sum_a = {0}, sum_b = {0}, least = one * 1e30F;
    float at[DL_AXES];
    for (int f = 0; f < axes; f++) at[f] = x[model->packed.axes[f]];
    const dl_lanes_row *row = (const dl_lanes_row *)(const void *)model->packed.blocks,
                       *end = row + 2 * model->packed.block_count * (axes + 1);
    for (; row < end; row += 2 * (axes + 1)) {
        dl_lanes a = one, b = one;
        UNROLL for (int f = 0; f < axes; f++) {
            add_apart(&a, at[f], &row[2 * f], magnitudes);
            add_apart(&b, at[f], &row[2 * f + 1], magnitudes);
        }
        sum_a += row[2 * axes] / a;
        sum_b += row[2 * axes + 1] / b;
        keep_smaller(&least, &a);
        keep_smaller(&least, &b);
    }
    sum_a += sum_b;
    return totals(&sum_a, &least);
}

/* One loop for each usual number of features, which the compiler can then unroll. x: by axis. */
#define BY_AXES(magnitudes)                                                                        \
    switch (model->correction.length_count) {                                                      \
    case 6: return sum_weights(model, x, 6, magnitudes);                                           \
    case 7: return sum_weights(model, x, 7, magnitudes);                                           \
    case 8: return sum_weights(model, x, 8, magnitudes);                                           \
    case 9: return sum_weights(model, x, 9, magnitudes);                                           \
    default: return sum_weights(model, x, model->correction.length_count, magnitudes);             \
    }

DL_INLINE struct sums correction(const struct dl_kernel_model *model, const float *x) {
    if (model->correction.distance == DL_DISTANCE_MAGNITUDES) BY_AXES(true)
    BY_AXES(false)
}

/* Scales the features; returns whether any lies outside the domain of the samples. */
DL_INLINE bool place(const struct dl_kernel_model *model, const float *features, float *x) {
    dl_lane_bits outside = {0};
    UNROLL for (int i = 0; i < DL_AXES; i += DL_LANES) {
        const dl_lanes at = *(const dl_lanes_in_memory *)(features + i) *
                            *(const dl_lanes_in_memory *)(model->packed.per_length + i);
        *(dl_lanes_in_memory *)(x + i) = at;
        outside |= (at < *(const dl_lanes_in_memory *)(model->packed.low + i)) |
                   (at > *(const dl_lanes_in_memory *)(model->packed.high + i));
    }
    uint64_t words[4];
    memcpy(words, &outside, sizeof words);
    return ((words[0] | words[1]) | (words[2] | words[3])) != 0;
}

/* A kernel is extrapolated beyond three length scales from every sample: in each model of
 * data/kernels, all samples but one or two are closer to the others than that. */
static const double FAR = 0.25;

DL_INLINE void dl_kernel_model_eval_inline(const struct dl_kernel_model *model,
                                           const struct dl_kernel_model_scale *scale,
                                           const struct dl_kernel_model_shape *shape,
                                           struct dl_kernel_time *out) {
    const double base_s = base_of(model, scale, shape, &out->limit);
    if (model->packed.blocks == NULL) {
        out->time_s = base_s * exp(model->correction.offset);
        out->sigma_log = dl_larger(model->base_sigma_log, model->correction.sigma_log);
        out->extrapolated = true;
        return;
    }
    float x[DL_AXES]; /* by axis */
    const bool outside = place(model, shape->features, x);
    const struct sums sums = correction(model, x);
    out->extrapolated = outside || sums.nearest < FAR;
    /* Share of the base's variance that the nearest sample leaves unexplained (it alone: an upper
     * bound). */
    const double unexplained = model->base_sigma_log * (1.0 - sums.nearest);
    /* 1 / ln 2 */
    out->time_s =
        base_s * dl_exp2_near(1.4426950408889634 * (model->correction.offset + sums.weighted));
    out->sigma_log =
        sqrt(model->correction.sigma_log * model->correction.sigma_log + unexplained * unexplained);
}

DL_WIDE(dl_kernel_model_eval,
        (const struct dl_kernel_model *model, const struct dl_kernel_model_scale *scale,
         const struct dl_kernel_model_shape *shape, struct dl_kernel_time *out),
        (model, scale, shape, out))
