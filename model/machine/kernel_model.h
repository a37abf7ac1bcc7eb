/* kernel_model.h - kernel time as a physical base times a fitted correction (F-KERNEL-MODEL).
 *
 * A device has one model per precision, operation and pass. calibrate/fits/fit_kernel.c fits the
 * numbers to samples; kernel_model_time.c evaluates them.
 *
 *   t = base(kernel) exp(offset + sum_i weights_i / (1 + d(x, points_i)))
 *   x = features(kernel) / lengths
 *   d(x, p) = sum_f (x_f - p_f)^2, or sum_f |x_f - p_f| where times change in steps (distance)
 *   base = latency + (C^3 + B^3)^(1/3),   C = flop / (rate e g),   B = bytes / bandwidth
 *   base = sqrt(latency^2 + B^2) of streams whose fixed time overlaps with their bytes (fixed_time)
 *   1/e = (1 + half_k/K) ((1 + half_m/M) (1 + half_n/N) + half_waves/waves)
 *
 * With tile_exponent a > 0, the factor s of sides and waves becomes s^(1 - a) q^a, q being that of
 * whole tiles (kernel_model_tiles.h).
 *
 * With partial_waves w > 0 (fp32 convolutions on GPUs) cuDNN's algorithms replace 1/e, each a GEMM
 * in the best of three tile sizes:
 *
 *   P(M, N, K, count) = (1 + half_k/K)
 *                       min over tiles [ (tiles + w units) tile_m tile_n / (its gain M N count) ]
 *   C = flop P(M, N, K, 1) / (rate g)
 *
 *   - 3x3, stride 1, 16 channels or more (Winograd F(4x4, 3x3), Lavin and Gray 2015):
 *     C = 36 GEMMs T x N x K of T = batch ceil(out / 4) tiles at the rate winograd_gain, and the
 *     transforms, (1 + 2 36/16) (in + out) bytes / transform_bytes_per_s
 *   - data gradients of strided convolutions, the better (a quartic smooth minimum) of
 *     a GEMM over every point of the input, stride area times the work, / spread_gain; and
 *     a GEMM over the output's points, / gather_gain, whose columns are then summed
 *     (gather_bytes_per_s)
 *
 * M, N, K are the sides of the (implicit) GEMM; waves = M N count / (128 x 64 x units) is the
 * number of tiles per unit; g is the product of the gains that apply (Winograd, alignment, stride,
 * whole waves, ...). flop count channels padded for matrix units (cuDNN's tensor-core kernels need
 * multiples of 8). The cube is a smooth maximum, at most 26 % above the maximum, where both are
 * equal. e is the smooth form of tile and wave quantization: a side of half_m runs at half speed.
 *
 * A feature is the base-2 logarithm of a quantity of the kernel; a model names those it uses
 * (dl_kernel_model_features). The sum is a Gaussian process on log(t / base) (Rasmussen and
 * Williams 2006, chapters 2 and 4: rational-quadratic covariance with alpha = 1; with the sum of
 * magnitudes a mixture of exponential covariances). It fades to the base far from the samples,
 * where `extrapolated` is set.
 *
 * Not modelled: the algorithm and tile size that the library really chose, clocks that change
 * during a run, other work on the device.
 */
#ifndef DL_MODEL_MACHINE_KERNEL_MODEL_H
#define DL_MODEL_MACHINE_KERNEL_MODEL_H

#include "model/core/json.h"
#include "model/machine/kernel.h"

enum {
    DL_FEATURES_MAX = 10,
    DL_KERNEL_MODEL_WIDTH = 16, /* samples evaluated at a time */
};
/* Axes that the base reads too: places in dl_kernel_model_shape.features. The last two are not
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
enum { DL_FIXED_TIME_ADDS, DL_FIXED_TIME_OVERLAPS };

/* Factors on the rate; 1 where absent. */
struct dl_kernel_gains {
    double unaligned_gain;             /* 2-byte operands: a side that is not a multiple of 8 */
    double m_trans_gain, n_trans_gain; /* GEMM: operand of that side stored with k contiguous */
    /* convolution, stride 1: Winograd, FFT; the flop counted are those of direct convolution */
    double gain_3x3, gain_5x5;
    double padded_pointwise_gain; /* 1x1 kernels with padding, which are not plain GEMMs */
    double narrow_gain;           /* fewer than 8 input channels */
    double pointwise_gain;        /* 1x1 kernels */
    double grouped_gain;          /* grouped convolution, more than one channel per group */
};

/* The rate falls with a quantity^-exponent; 0 where absent. */
struct dl_kernel_exponents {
    double stride_exponent;    /* stride area */
    double batch_exponent_3x3; /* 3x3, stride 1: batch padded to 16s / batch, because Winograd
                                  kernels work on tiles of images */
    double wave_exponent;      /* dl_tile_steps of 128 x 64 */
    /* stride_exponent rises by these with each octave of channels, filters above 256 */
    double stride_channels_exponent, stride_filters_exponent;
    double tile_exponent; /* a above: share of whole tiles and waves */
};

/* cuDNN's algorithms for fp32 convolutions. */
struct dl_kernel_algorithms {
    double partial_waves;         /* w above; 0: the smooth 1/e */
    double winograd_gain;         /* of Winograd's GEMMs over other ones */
    double transform_bytes_per_s; /* of what Winograd's transforms move */
    double spread_gain;           /* data gradients of strides: over every point of the input */
    double gather_gain;           /* data gradients of strides: columns, then summed */
    double gather_bytes_per_s;    /* of the columns that are summed */
    double tile_64_gain;          /* rate of 128 x 64 tiles / that of 128 x 128 tiles */
    double tile_32_gain;          /* rate of 128 x 32 tiles / that of 128 x 128 tiles */
};

/* Fitted to samples; empty where they were too few. */
struct dl_kernel_correction {
    int distance;          /* DL_DISTANCE_* */
    double offset;         /* mean of log(t / base) over the samples; absent: 0 */
    const char **features; /* of dl_kernel_model_features; absent: see dl_kernel_model_pack */
    int feature_count;
    double *lengths; /* length scale of each feature */
    int length_count;
    double *points; /* features / lengths of the samples, one feature after the other */
    int point_count;
    double *weights; /* one per sample: point_count = length_count * weight_count */
    int weight_count;
    double *domain_low; /* domain of the samples, by feature */
    int domain_low_count;
    double *domain_high;
    int domain_high_count;
    double sigma_log; /* standard deviation of log(t / prediction), cross-validated */
    int64_t samples;  /* kernels it was fitted to */
    double call_s;    /* shortest time of a call that the host of the samples timed from outside;
                         NAN: none was */
};

/* The correction as the evaluation reads it: made by dl_kernel_model_pack. */
struct dl_kernel_packed {
    int axes[DL_AXES];                 /* of the features */
    float per_length[DL_AXES];         /* 1 / length, by axis */
    float low[DL_AXES], high[DL_AXES]; /* the domain with its margin over the length, by axis */
    bool of_engines;                   /* all samples are kernels of serving engines */
    const float *blocks; /* of DL_KERNEL_MODEL_WIDTH samples: points by feature, weights */
    int block_count;
};

struct dl_kernel_model {
    int op;        /* enum dl_op */
    int pass;      /* enum dl_pass */
    int precision; /* enum dl_precision */
    int work;      /* enum dl_work: of streams; DL_WORK_ANY: all that no other model covers */
    int variant; /* enum dl_variant: of streams, PLAIN or ENGINE; of convolutions, PLAIN, DEPTHWISE
                      or VOLUME */

    /* The base. */
    double latency_s;
    double rate_flop_per_s;       /* attained by large kernels */
    double bandwidth_bytes_per_s; /* attained by large kernels */
    int fixed_time;               /* DL_FIXED_TIME_*: of streams: latency_s is added */
    /* sides that run at half rate; GEMM: M is the longer side of the result */
    double half_m, half_n, half_k;
    double half_waves;
    double channel_multiple; /* matrix units pad channels and filters to it (8), else 1 */
    double base_sigma_log;   /* standard deviation of log(t / base), far from any sample */
    struct dl_kernel_gains gains;
    struct dl_kernel_exponents exponents;
    struct dl_kernel_algorithms algorithms;

    struct dl_kernel_correction correction;
    struct dl_kernel_packed packed; /* a model without it is its base alone */
    const char *source;
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

/* The properties of a kernel that a model uses. */
struct dl_kernel_model_shape {
    enum dl_op op;
    bool unaligned, m_trans, n_trans, fast_3x3, fast_5x5, narrow, pointwise, padded, grouped;
    double flop, bytes, m, n, k, waves;
    double count;          /* GEMMs in one call */
    double units;          /* of the device */
    double tile_excess[3]; /* convolution: dl_tile_excess of tiles large, usual, narrow */
    double channels;       /* of one group; 0 for GEMM */
    double filters;        /* of one group; 0 for GEMM */
    double element_bytes;
    double in_bytes, out_bytes; /* convolution: of the activations */
    double out_positions;       /* convolution: points of the output in all images */
    double taps;                /* convolution: points of the kernel */
    double stride_area;         /* convolution: points of a step */
    double winograd_tiles;      /* of 4 x 4 points of the output; 0: no Winograd */
    double launches;
    float features[DL_AXES]; /* log2 of the quantities, by axis */
};

/* Names of the features of an operation (enum dl_op), NULL at the end; a feature's place here is
 * its axis. */
extern const char *const *const dl_kernel_model_features[];

/* The shape of a kernel. bytes_per_element: of the operands; unit_count: SMs or cores, DL_ABSENT
 * counts as 1. */
void dl_kernel_model_shape_of(const struct dl_kernel *kernel, double bytes_per_element,
                              int64_t unit_count, struct dl_kernel_model_shape *out);

/* Factors that apply a model to another device or precision; all 1 for its own. half multiplies
 * what the half-rate sides m, n and k lose together, 1/e - 1 without the waves: where arithmetic
 * grew more than bandwidth, a tile must be that much larger to keep its unit busy. With half = rate
 * / bandwidth the lost time is that of the bytes, which more arithmetic does not change. */
struct dl_kernel_model_scale {
    double rate, bandwidth, latency, half;
};

/* Time of the base alone [s]; NAN when a scale that it needs is NAN. *limit (may be NULL): the
 * largest of the three terms. */
double dl_kernel_model_base(const struct dl_kernel_model *model,
                            const struct dl_kernel_model_scale *scale,
                            const struct dl_kernel_model_shape *shape, enum dl_limit *limit);

/* Base and correction: sets time_s, sigma_log, limit and extrapolated of *out. */
void dl_kernel_model_eval(const struct dl_kernel_model *model,
                          const struct dl_kernel_model_scale *scale,
                          const struct dl_kernel_model_shape *shape, struct dl_kernel_time *out);

/* Derives what the evaluation reads (axes, per_length, packed) from the file's members, which
 * dl_kernel_model_check passed. */
enum dl_code dl_kernel_model_pack(struct dl_kernel_model *model, struct dl_arena *arena,
                                  struct dl_err *err);

/* Counts that must agree, and names of features. `path` ("kernel_models[3]") is for the error. */
enum dl_code dl_kernel_model_check(const struct dl_kernel_model *model, const struct dl_json *doc,
                                   const char *path, struct dl_err *err);

#endif
