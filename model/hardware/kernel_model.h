/* kernel_model.h - kernel time as a physical base times a fitted correction. Formula id
 * F-KERNEL-MODEL.
 *
 * One surface per device, precision, operation and pass; calibrate/fits/fit_kernel.c writes the
 * numbers from samples, the evaluation is here.
 *
 *   t = base(kernel) exp(offset + sum_i weights_i / (1 + d(x, points_i)))          x:
 * features(kernel) / lengths d(x, p) = sum_f (x_f - p_f)^2, or sum_f |x_f - p_f| where times change
 * in steps (distance) base = latency + (C^3 + B^3)^(1/3),   C = flop / (rate e g),   B = bytes /
 * bandwidth 1/e = (1 + half_k/K) ((1 + half_m/M) (1 + half_n/N) + half_waves/waves)
 *
 * where tile_exponent a > 0 the factor of the sides and waves, s, is s^(1 - a) q^a (whole tiles:
 * kernel_model_tiles.h)
 *
 * partial_waves w > 0 (convolutions of fp32 on GPUs): the algorithms of cuDNN instead, each a
 * product in the best of three tiles,
 *
 *   P(M, N, K, count) = (1 + half_k/K) min over tiles [ (tiles + w units) tile_m tile_n / (its gain
 * M N count) ] C = flop P(M, N, K, 1) / (rate g) 3x3, stride 1, 32 channels or more: C = 36
 * products T x N x K of T = batch ceil(out / 4) tiles (Winograd F(4x4, 3x3), Lavin and Gray 2015)
 * at rate winograd_gain, and its transforms: (1 + 2 36/16) (in + out) bytes / transform_bytes_per_s
 *   data behind a stride: the better (a quartic smooth minimum) of a product over every point of
 * the input, stride area times the work, / spread_gain; and of one over the output's points, /
 * gather_gain, whose columns are then summed (gather_bytes_per_s)
 *
 * M, N, K are the sides of the (implicit) matrix product, waves = M N count / (128 x 64 x units)
 * the tiles a unit gets, g the product of the gains that apply (Winograd, alignment, stride, whole
 * waves, ...). flop count channels padded for matrix units (cuDNN's tensor-core kernels need
 * multiples of 8). The cube is a smooth maximum (at most 26 % above it, where both are equal). e is
 * the smooth form of tile and wave quantization: a side of half_m runs at half speed. A feature is
 * the logarithm (base 2) of a quantity of the kernel; a surface says which ones it takes
 * (dl_kernel_model_features). The sum is a Gaussian process (Rasmussen and Williams 2006, chapters
 * 2 and 4: rational-quadratic covariance with alpha = 1; with the sum of magnitudes a mixture of
 * exponential covariances) on log(t / base); it fades to the base by itself away from the samples,
 * where `extrapolated` is set. Whole tiles and waves (kernel_model_tiles.h) are a feature of
 * convolutions. Not modelled: which of its algorithms and tile sizes the library chose, clocks that
 * change during a run, other work on the device.
 */
#ifndef DL_MODEL_HARDWARE_KERNEL_MODEL_H
#define DL_MODEL_HARDWARE_KERNEL_MODEL_H

#include "model/base/json.h"
#include "model/hardware/kernel.h"

/* WIDTH: samples that are evaluated at a time */
enum { DL_FEATURES_MAX = 10, DL_KERNEL_MODEL_WIDTH = 16 };
/* Places in dl_kernel_model_shape.features that the base reads too; the last two are not among the
 * features. */
enum {
    DL_AXIS_CHANNELS = 2,
    DL_AXIS_FILTERS = 3,
    DL_AXIS_STRIDE = 5,
    DL_AXIS_BATCH_PADDING = 10,
    DL_AXIS_STEPS = 11,
    DL_AXES = 16
};
enum { DL_DISTANCE_SQUARES, DL_DISTANCE_MAGNITUDES };

struct dl_kernel_model {
    /* enum dl_op */
    int op;
    /* enum dl_pass */
    int pass;
    /* enum dl_precision */
    int precision;
    /* base; the gains multiply the rate, absent ones are 1 (exponents and half sizes: 0) */
    double latency_s;
    /* attained by large kernels */
    double rate_flop_per_s;
    /* attained */
    double bandwidth_bytes_per_s;
    /* sides that run at half rate; GEMM: M is the longer side of the result */
    double half_m, half_n, half_k;
    double half_waves;
    /* 2-byte operands: a side that is no multiple of 8 */
    double unaligned_gain;
    /* GEMM: operand of that side stored with k contiguous */
    double m_trans_gain, n_trans_gain;
    /* convolution, stride 1: Winograd, FFT; direct-convolution flop are counted */
    double gain_3x3, gain_5x5;
    /* rate falls with (stride area)^-exponent */
    double stride_exponent;
    /* 3x3, stride 1: and with (batch padded to 16s / batch)^-exponent: Winograd kernels * work on
     * tiles of images */
    double batch_exponent_3x3;
    /* 1x1 kernels with padding, which are no plain matrix product */
    double padded_pointwise_gain;
    /* fewer than 8 input channels */
    double narrow_gain;
    /* 1x1 kernels */
    double pointwise_gain;
    /* grouped convolution (more than one channel a group) */
    double grouped_gain;
    /* and with (dl_tile_steps of 128 x 64)^-exponent */
    double wave_exponent;
    /* stride_exponent rises by these with each octave of * channels, filters above 256 */
    double stride_channels_exponent, stride_filters_exponent;
    /* the sides' part of 1/e, s, becomes s^(1 - a) q^a; q: work of whole tiles and waves / needed,
     * of */
    double tile_exponent;
    /* convolution; above 0: not the smooth 1/e, but whole tiles and their algorithms
     * (kernel_model.h, above) */
    double partial_waves;
    /* of its products over other ones */
    double winograd_gain;
    /* of the numbers that Winograd's transforms move */
    double transform_bytes_per_s;
    /* gradients of data behind a stride: every point of the input; columns, then summed */
    double spread_gain, gather_gain;
    /* of the columns that are summed */
    double gather_bytes_per_s;
    /* the best tile: 128 x 128, 128 x 64, 128 x 32, the last two at these shares of the rate */
    double tile_64_gain, tile_32_gain;
    /* matrix units work on channels and filters padded to this multiple (8), else 1 */
    double channel_multiple;
    /* standard deviation of log(t / base): uncertainty far from every sample */
    double base_sigma_log;
    /* correction; empty when there were too few samples */
    /* DL_DISTANCE_* */
    int distance;
    /* mean of log(t / base) over the samples; absent: 0 */
    double offset;
    /* names, as in dl_kernel_model_features; absent: see dl_kernel_model_pack */
    const char **features;
    int feature_count;
    double *lengths;
    /* length scale of each feature */
    int length_count;
    /* features / lengths of the samples, one feature after the other */
    double *points;
    int point_count;
    double *weights;
    /* one a sample: point_count = length_count * weight_count */
    int weight_count;
    /* domain of the samples in the features' axes */
    double *domain_low;
    int domain_low_count;
    double *domain_high;
    int domain_high_count;
    /* standard deviation of log(t / prediction), cross-validated */
    double sigma_log;
    /* how many kernels it was fitted to */
    int64_t samples;
    const char *source;
    /* made by dl_kernel_model_pack; without it a surface is its base alone */
    /* of the features */
    int axes[DL_AXES];
    /* by axis: 1 / length; the domain with its margin, over the length */
    float per_length[DL_AXES], low[DL_AXES], high[DL_AXES];
    /* for each block of DL_KERNEL_MODEL_WIDTH samples: points by feature, then weights; aligned */
    const float *packed;
    int block_count;
};

/* data/kernels/DEVICE.json */
struct dl_kernel_model_set {
    const char *device;  /* name of the device file */
    const char *library; /* as the source names it, with versions */
    const char *source;  /* key of data/SOURCES.md */
    struct dl_kernel_model *kernel_models;
    int kernel_model_count;
};

extern const struct dl_schema dl_kernel_model_schema;
extern const struct dl_schema dl_kernel_model_set_schema; /* "dlmodel-kernel-models" */

/* What a surface sees of a kernel. */
struct dl_kernel_model_shape {
    enum dl_op op;
    bool unaligned, m_trans, n_trans, fast_3x3, fast_5x5, narrow, pointwise, padded, grouped;
    double flop, bytes, m, n, k, waves;
    /* products in one call; units of the device */
    double count, units;
    /* convolution: dl_tile_excess of dl_tile_large, dl_tile_usual, dl_tile_narrow */
    double tile_excess[3];
    /* of one group; 0 for GEMM */
    double channels, filters;
    double element_bytes;
    /* convolution: of both activations */
    double in_bytes, out_bytes;
    /* convolution: points of the output in all images; of the kernel; and of a step */
    double out_positions, taps, stride_area;
    /* of 4 x 4 points of the output; 0: no Winograd */
    double winograd_tiles;
    double launches;
    /* log2 of the quantities, by axis: the place in dl_kernel_model_features[op] */
    float features[DL_AXES];
};

/* Names of the features of an operation (enum dl_op), NULL at the end; a feature's place here is
 * its axis. */
extern const char *const *const dl_kernel_model_features[];

/* bytes_per_element: of the operands; unit_count: SMs or cores, DL_ABSENT counts as 1. */
void dl_kernel_model_shape_of(const struct dl_kernel *kernel, double bytes_per_element,
                              int64_t unit_count, struct dl_kernel_model_shape *out);

/* Factors for a surface of another device or precision; all 1 for its own. half: of the half-rate
 * sides m, n and k; where arithmetic grew more than bandwidth a tile must be that much larger to
 * keep its unit busy. */
struct dl_kernel_model_scale {
    double rate, bandwidth, latency, half;
};

/* Time of the base alone, in seconds; *limit (may be NULL): the largest of the three terms.
 * NAN when a needed scale is NAN. */
double dl_kernel_model_base(const struct dl_kernel_model *model,
                            const struct dl_kernel_model_scale *scale,
                            const struct dl_kernel_model_shape *shape, enum dl_limit *limit);

/* Base and correction: fills time_s, sigma_log, limit and extrapolated of *out. */
void dl_kernel_model_eval(const struct dl_kernel_model *model,
                          const struct dl_kernel_model_scale *scale,
                          const struct dl_kernel_model_shape *shape, struct dl_kernel_time *out);

/* Derives what the evaluation reads (axes, per_length, packed) from the file's members, which
 * dl_kernel_model_check passed. */
enum dl_code dl_kernel_model_pack(struct dl_kernel_model *model, struct dl_arena *arena,
                                  struct dl_err *err);

/* Counts that must agree, and names of features. `path` ("surfaces[3]") is for the error. */
enum dl_code dl_kernel_model_check(const struct dl_kernel_model *model, const struct dl_json *doc,
                                   const char *path, struct dl_err *err);

#endif
