/* kernel.c - the model that times each kernel: one fitted to the device, one borrowed from a
 * related device, or the roofline. Kernels from shapes: kernel_make.c. Formulas F-KERNEL-ROOFLINE,
 * F-KERNEL-STREAM and F-KERNEL-WORK; F-KERNEL-MODEL is in kernel_model_time.c. Not modelled:
 * concurrent kernels on one device, clock changes, launch gaps (host time: framework files). */
#include "model/machine/kernel.h"

#include <math.h>
#include <stddef.h>

#include "model/machine/device.h"
#include "model/machine/kernel_norm.h"
#include "model/machine/kernel_model.h"

/* F-KERNEL-ROOFLINE: models for devices without samples, for GEMMs and for convolutions by pass.
 * Latency, rate and bandwidth are fractions of the device's, which the scale carries. Numbers:
 * medians over the nine devices of data/kernels (also the priors of calibrate/fits/fit_base.c).
 * base_sigma_log: 90th percentile of |log error| / 1.645 when those devices are predicted this way:
 * 0.2 to 0.6 (median 0.33) for GEMMs, 0.3 to 0.7 (0.5) for convolutions. */
#define BASE(op_, rate, bandwidth, m, n, k, waves, sigma)                                          \
    .op = (op_), .latency_s = 1.0, .rate_flop_per_s = (rate),                                      \
    .bandwidth_bytes_per_s = (bandwidth), .half_m = (m), .half_n = (n), .half_k = (k),             \
    .half_waves = (waves), .base_sigma_log = (sigma), .correction.sigma_log = (sigma)
/* Gains that the base of a GEMM, or of a convolution without tiles, does not read are left out. */
#define CONV_GAINS(by_3x3, by_5x5, narrow, pointwise)                                              \
    .gains = {.unaligned_gain = 0.9,                                                               \
              .grouped_gain = 1.0,                                                                 \
              .padded_pointwise_gain = 1.0,                                                        \
              .gain_3x3 = (by_3x3),                                                                \
              .gain_5x5 = (by_5x5),                                                                \
              .narrow_gain = (narrow),                                                             \
              .pointwise_gain = (pointwise)}
static const struct dl_kernel_model GENERIC_GEMM = {
    BASE(DL_OP_GEMM, 0.8, 0.9, 34.0, 14.0, 70.0, 0.12, 0.35),
    .gains = {.unaligned_gain = 0.9, .m_trans_gain = 1.0, .n_trans_gain = 1.0}};
static const struct dl_kernel_model GENERIC_CONV[] = {
    [DL_FORWARD] = {BASE(DL_OP_CONV, 0.95, 1.0, 250.0, 12.0, 50.0, 0.8, 0.5),
                    CONV_GAINS(1.45, 1.3, 1.0, 1.0), .exponents.stride_exponent = 0.03},
    [DL_BACKWARD_DATA] = {BASE(DL_OP_CONV, 1.0, 1.0, 250.0, 26.0, 40.0, 0.65, 0.5),
                          CONV_GAINS(1.7, 1.1, 1.0, 1.05), .exponents.stride_exponent = 0.7},
    [DL_BACKWARD_WEIGHTS] = {BASE(DL_OP_CONV, 0.95, 0.7, 17.0, 27.0, 500.0, 0.05, 0.5),
                             CONV_GAINS(1.4, 1.1, 1.5, 0.75), .exponents.stride_exponent = 0.05},
};
/* Matrix units: no Winograd, channels padded. */
static const double MATRIX_GAIN_3X3 = 1.1, MATRIX_CHANNEL_MULTIPLE = 8.0;
static const double GENERIC_LATENCY_S = 5e-6; /* a short kernel, start to end (unverified) */
/* Further uncertainty (log scale) of times outside the measured pass, precision or device. Devices:
 * 90th percentile of |log error| / 1.645 when one device's model predicts another's published
 * times: 0.1 to 0.2 within an architecture (GTX 1080 Ti and Titan Xp, M40 and Titan X), 0.2 to 0.6
 * across. Pass and precision are estimates (unverified). */
static const double OTHER_PASS_SIGMA = 0.4, OTHER_PRECISION_SIGMA = 0.2;
static const double SAME_ARCHITECTURE_SIGMA = 0.12, OTHER_ARCHITECTURE_SIGMA = 0.35;
/* The last-level cache is about twice as fast as memory (unverified: V100 reads it at 2.2 TB/s, its
 * memory at 0.9 TB/s). */
static const double CACHE_SPEEDUP = 2.0;
/* F-KERNEL-DEPTHWISE. Depthwise convolution reads each input point kernel-area times through the
 * cache and reuses it poorly: fraction of the stream bandwidth that each pass attains (unverified:
 * cuDNN 7 depthwise kernels reach 0.2 to 0.6). */
static const double DEPTHWISE_FRAC[DL_PASSES] = {0.5, 0.4, 0.2, 0.5};
/* Instructions of a lane for one multiply-add in the frameworks' own kernels: one thread computes a
 * point, with the indices and the borders of each tap. Forward: KernelBench on A10, A100, L4 and
 * L40S (29 to 32); weights: printed by Paddle's pull requests 46332 and 46896 for PyTorch on a V100
 * (36); data: what these leave of the whole of the three passes (92). */
static const double DEPTHWISE_INSTRUCTIONS[DL_PASSES] = {30.0, 26.0, 36.0, 0.0};
static const double DEPTHWISE_SIGMA = 0.4;
static const double STREAM_SIGMA = 0.15; /* (unverified) */

/* Backward attention takes so much longer, at equal arithmetic, where a device has forward samples
 * alone: FlashAttention-2 on an A100 attains 73 % of the peak forward and 63 % backward (Dao 2023).
 * Further uncertainty: from 1.0 to 1.7 on Hopper and Blackwell (data/kernels). */
static const double ATTENTION_BACKWARD = 73.0 / 63.0, ATTENTION_BACKWARD_SIGMA = 0.2;

/* FlashAttention-2 on a GPU with asynchronous matrix units (Hopper, Blackwell) / the kernels made
 * for them (FlashAttention-3, cuDNN): 1.4, 1.6 and 1.6 in NVIDIA/TransformerEngine's printed times
 * on an H100; 1.5 to 2 by Shah et al. 2024. */
static const double FLASH2_LATER = 1.6;

/* Backward convolutions take so much longer than the forward one where a GPU has forward samples
 * alone: medians of DeepBench on the V100's matrix units (data/kernels). Evaluated as the forward
 * kernel: a library splits the long sum of a weight gradient, the forward model does not. */
static const double CONV_BACKWARD[DL_PASSES] = {1.0, 1.23, 1.20, 1.0};

static double device_latency(const struct dl_device *device) {
    return dl_known(device->kernel_latency_s) ? device->kernel_latency_s : GENERIC_LATENCY_S;
}
/* F-KERNEL-STREAM: t = launches latency + bytes / (efficiency bandwidth); faster where the bytes
 * fit in the cache. */
static void stream_time(const struct dl_device *device, const struct dl_kernel *kernel,
                        double bytes, double share, struct dl_kernel_time *out) {
    double speedup = 1.0;
    if (device->l2_bytes > 0.0) { /* known */
        /* Smooth from CACHE_SPEEDUP (bytes well inside the cache) to 1 (well outside). */
        double ratio = bytes / device->l2_bytes;
        speedup += (CACHE_SPEEDUP - 1.0) / (1.0 + ratio * ratio);
    }
    double latency_s = fmax(kernel->launches, 1.0) * device_latency(device);
    double memory_s = bytes / (dl_device_stream_bandwidth(device) * share * speedup);
    out->time_s = latency_s + memory_s;
    out->sigma_log = STREAM_SIGMA;
    out->limit = latency_s > memory_s ? DL_LIMIT_LATENCY : DL_LIMIT_MEMORY;
    out->extrapolated = false;
    out->formula = "F-KERNEL-STREAM";
    out->origin = "datasheet";
    out->origin_device = device->name;
}

/* Precisions whose model serves `wanted`, best first: those of the same kind of unit, then fp32. */
static const enum dl_precision *stand_ins(enum dl_precision wanted) {
    static const enum dl_precision of_fp32[] = {DL_FP32, DL_PRECISIONS};
    static const enum dl_precision of_tf32[] = {DL_TF32, DL_MIXED, DL_FP16,
                                                DL_BF16, DL_FP32,  DL_PRECISIONS};
    static const enum dl_precision of_mixed[] = {DL_MIXED, DL_FP16, DL_BF16, DL_FP32,
                                                 DL_PRECISIONS};
    static const enum dl_precision of_fp16[] = {DL_FP16, DL_MIXED, DL_BF16, DL_FP32, DL_PRECISIONS};
    static const enum dl_precision of_bf16[] = {DL_BF16, DL_MIXED, DL_FP16, DL_FP32, DL_PRECISIONS};
    static const enum dl_precision of_fp8[] = {DL_FP8,  DL_FP16, DL_MIXED,
                                               DL_BF16, DL_FP32, DL_PRECISIONS};
    static const enum dl_precision of_mxfp8[] = {DL_MXFP8, DL_FP8,  DL_FP16,      DL_MIXED,
                                                 DL_BF16,  DL_FP32, DL_PRECISIONS};
    static const enum dl_precision of_nvfp4[] = {DL_NVFP4, DL_MXFP8, DL_FP8,  DL_FP16,
                                                 DL_MIXED, DL_BF16,  DL_FP32, DL_PRECISIONS};
    switch (wanted) {
    case DL_TF32: return of_tf32;
    case DL_MIXED: return of_mixed;
    case DL_FP16: return of_fp16;
    case DL_BF16: return of_bf16;
    case DL_FP8: return of_fp8;
    case DL_MXFP8: return of_mxfp8;
    case DL_NVFP4: return of_nvfp4;
    case DL_FP32:
    case DL_PRECISIONS: break;
    }
    return of_fp32;
}

static const struct dl_kernel_model *find_model(const struct dl_device *device, enum dl_op op,
                                                enum dl_pass pass, enum dl_precision precision,
                                                enum dl_work work, enum dl_variant variant) {
    for (int i = 0; i < device->kernel_model_count; i++) {
        const struct dl_kernel_model *model = &device->kernel_models[i];
        if (model->op == (int)op && model->pass == (int)pass &&
            model->precision == (int)precision &&
            (model->work > 0 ? model->work : DL_WORK_ANY) == (int)work &&
            (model->variant > 0 ? model->variant : DL_VARIANT_PLAIN) == (int)variant)
            return model;
    }
    return NULL;
}

/* Convolutions on matrix units know no Winograd: those of vector units say nothing about them. */
static bool other_units(const struct dl_device *device, enum dl_precision wanted,
                        const struct dl_kernel_model *model) {
    return model->op == DL_OP_CONV && model->precision == DL_FP32 &&
           dl_device_on_matrix_units(device, wanted) && !dl_device_on_matrix_units(device, DL_FP32);
}

/* A GEMM is the same in every pass; other kernels without samples of their pass take the forward
 * model. */
static const struct dl_kernel_model *choose_of(const struct dl_device *device,
                                               enum dl_precision precision,
                                               const struct dl_kernel *kernel, enum dl_work work,
                                               enum dl_variant variant) {
    static const enum dl_precision of_streams[] = {DL_FP32, DL_MIXED, DL_PRECISIONS};
    const bool wide = kernel->op == DL_OP_STREAM && dl_precision_bytes(precision) >= 4.0;
    /* Without matrix units frameworks ask cuDNN for fp32 arithmetic on 16-bit tensors in mixed
     * precision; benchmarks of convolutions on GP100 compute in fp16, which fp16 alone may take. */
    const bool fp32 = kernel->op == DL_OP_CONV && precision == DL_MIXED &&
                      !dl_device_on_matrix_units(device, DL_MIXED);
    const struct dl_kernel_model *engines = NULL;
    for (const enum dl_precision *p = wide ? of_streams : stand_ins(fp32 ? DL_FP32 : precision);
         *p != DL_PRECISIONS; p++) {
        const struct dl_kernel_model *model =
            find_model(device, kernel->op, kernel->pass, *p, work, variant);
        if (model == NULL) model = find_model(device, kernel->op, DL_FORWARD, *p, work, variant);
        if (model == NULL || other_units(device, precision, model)) continue;
        /* Attention of serving engines in 8 bits takes up to twice as long as a training library's:
         * that one's samples in the next precision tell more. */
        if (!model->packed.of_engines || kernel->variant == DL_VARIANT_ENGINE) return model;
        if (engines == NULL) engines = model;
    }
    return engines;
}

/* Best model of a device for a kernel; NULL: none. */
static const struct dl_kernel_model *choose(const struct dl_device *device,
                                            enum dl_precision precision,
                                            const struct dl_kernel *kernel) {
    const struct dl_kernel_model *model = NULL;
    const bool stream = kernel->op == DL_OP_STREAM;
    if (dl_kernel_is_depthwise(kernel)) /* no other convolution resembles it */
        return choose_of(device, precision, kernel, DL_WORK_ANY, DL_VARIANT_DEPTHWISE);
    if (kernel->op == DL_OP_CONV && (kernel->variant == DL_VARIANT_VOLUME || kernel->in[0] > 1.0))
        model = choose_of(device, precision, kernel, DL_WORK_ANY, DL_VARIANT_VOLUME);
    if (kernel->op == DL_OP_GEMM &&
        (kernel->variant == DL_VARIANT_ENGINE || kernel->variant == DL_VARIANT_BLOCKS))
        model =
            find_model(device, DL_OP_GEMM, DL_FORWARD, precision, DL_WORK_ANY, DL_VARIANT_ENGINE);
    if (stream && kernel->variant == DL_VARIANT_ENGINE)
        model = choose_of(device, precision, kernel, kernel->work, DL_VARIANT_ENGINE);
    if (model == NULL && stream && kernel->work != DL_WORK_ANY)
        model = choose_of(device, precision, kernel, kernel->work, DL_VARIANT_PLAIN);
    return model != NULL ? model
                         : choose_of(device, precision, kernel, DL_WORK_ANY, DL_VARIANT_PLAIN);
}

static void widen(struct dl_kernel_time *out, double sigma) {
    out->sigma_log = sqrt(out->sigma_log * out->sigma_log + sigma * sigma);
    out->extrapolated = true;
}

static bool is_16_bit(enum dl_precision p) { return p == DL_MIXED || p == DL_FP16 || p == DL_BF16; }

/* The same operations take the same time: fp16, mixed, and bf16 on units of both types. */
static bool same_rate(const struct dl_device *device, enum dl_precision a, enum dl_precision b) {
    if (a == b) return true;
    if (!is_16_bit(a) || !is_16_bit(b)) return false;
    if (a != DL_BF16 && b != DL_BF16) return true;
    const double ratio = dl_device_peak(device, a) / dl_device_peak(device, b);
    return ratio > 0.99 && ratio < 1.01;
}

/* Bytes of an element: operands of matrix arithmetic, else activations. */
static double element_bytes(const struct dl_kernel *kernel, enum dl_precision precision) {
    return kernel->op == DL_OP_STREAM ? dl_precision_bytes(precision)
                                      : dl_precision_operand_bytes(precision);
}

/* Rate of a device in a precision / rate of the owner of a model in that of the model: attained
 * ones where both are known, else those of the datasheets. */
static double rate_ratio(const struct dl_device *device, enum dl_precision precision,
                         const struct dl_device *owner, enum dl_precision fitted) {
    const double ratio = dl_device_attained(device, precision) / dl_device_attained(owner, fitted);
    return ratio > 0.0 ? ratio : dl_device_peak(device, precision) / dl_device_peak(owner, fitted);
}

bool dl_kernel_has_later_attention(const struct dl_device *device) {
    return dl_generation_of(device->architecture) >= DL_HOPPER;
}

/* Corrections for attention variants that the model was not fitted to. */
static void attention_time(const struct dl_device *device, const struct dl_kernel_model *model,
                           const struct dl_kernel *kernel, struct dl_kernel_time *out) {
    if (kernel->variant == DL_VARIANT_FLASH2 && dl_kernel_has_later_attention(device))
        out->time_s *= FLASH2_LATER;
    if (model->pass != (int)kernel->pass) {
        out->time_s *= ATTENTION_BACKWARD;
        widen(out, ATTENTION_BACKWARD_SIGMA);
    }
}

/* Factor of `half` in a borrowed model. Where arithmetic grew more than bandwidth, what short sides
 * lose keeps the time of the bytes. Chips of one architecture lose it on the chip, whose caches and
 * units they have in common: memory that is slower than the lender's costs them nothing there (H100
 * by H200: the same kernels of attention took 1.16 of their time else). */
static double half_scale(const struct dl_device *device, const struct dl_device *owner,
                         const struct dl_kernel_model_scale *scale) {
    const bool same = dl_device_same_architecture(device, owner);
    return fmax(scale->rate / fmax(scale->bandwidth, same ? 1.0 : 0.0), 1.0);
}

static void model_time(const struct dl_device *device, const struct dl_device *owner,
                       const struct dl_kernel_model *model, enum dl_precision precision,
                       const struct dl_kernel *kernel, struct dl_kernel_time *out) {
    enum dl_precision fitted = (enum dl_precision)model->precision;
    struct dl_kernel_model_scale scale = {1.0, 1.0, 1.0, 1.0};
    if (owner != device || fitted != precision) {
        if (kernel->op != DL_OP_STREAM) scale.rate = rate_ratio(device, precision, owner, fitted);
        scale.bandwidth = dl_device_stream_bandwidth(device) / dl_device_stream_bandwidth(owner);
        scale.latency = device_latency(device) / device_latency(owner);
        scale.half = half_scale(device, owner, &scale);
    }
    struct dl_kernel_model_shape shape;
    const bool as_forward = kernel->op == DL_OP_CONV && device->kind == DL_DEVICE_GPU &&
                            model->pass == DL_FORWARD && kernel->pass != DL_FORWARD;
    struct dl_kernel forward;
    if (as_forward) {
        forward = *kernel;
        forward.pass = DL_FORWARD;
    }
    dl_kernel_model_shape_of(as_forward ? &forward : kernel, element_bytes(kernel, precision),
                             device->unit_count, &shape);
    dl_kernel_model_eval(model, &scale, &shape, out);
    out->formula = "F-KERNEL-MODEL";
    out->origin = "fitted";
    out->origin_device = device->name;
    if (kernel->op != DL_OP_STREAM && !same_rate(device, fitted, precision))
        widen(out, OTHER_PRECISION_SIGMA);
    if (as_forward) out->time_s *= CONV_BACKWARD[kernel->pass];
    if (kernel->op == DL_OP_CONV && model->pass != (int)kernel->pass) widen(out, OTHER_PASS_SIGMA);
    if (kernel->op == DL_OP_ATTENTION) attention_time(device, model, kernel, out);
    if (owner != device) {
        widen(out, dl_device_same_architecture(device, owner) ? SAME_ARCHITECTURE_SIGMA
                                                              : OTHER_ARCHITECTURE_SIGMA);
        out->origin = "borrowed";
        out->origin_device = owner->name;
    }
}

static void roofline_time(const struct dl_device *device, enum dl_precision precision,
                          const struct dl_kernel *kernel, struct dl_kernel_time *out) {
    double peak = dl_device_peak(device, precision);
    struct dl_kernel_model_scale scale = {.rate = peak,
                                          .bandwidth = dl_device_stream_bandwidth(device),
                                          .latency = device_latency(device),
                                          .half = 1.0};
    struct dl_kernel_model_shape shape;
    dl_kernel_model_shape_of(kernel, element_bytes(kernel, precision), device->unit_count, &shape);
    enum dl_pass pass = kernel->pass == DL_UPDATE ? DL_FORWARD : kernel->pass;
    struct dl_kernel_model generic = kernel->op == DL_OP_CONV ? GENERIC_CONV[pass] : GENERIC_GEMM;
    /* A rate above the fp32 rate comes from matrix units. */
    if (kernel->op == DL_OP_CONV && !(peak <= dl_device_peak(device, DL_FP32))) {
        generic.gains.gain_3x3 = MATRIX_GAIN_3X3;
        generic.channel_multiple = MATRIX_CHANNEL_MULTIPLE;
    }
    dl_kernel_model_eval(&generic, &scale, &shape, out); /* without samples: extrapolated */
    out->formula = "F-KERNEL-ROOFLINE";
    out->origin = "datasheet";
    out->origin_device = device->name;
}

/* F-KERNEL-DEPTHWISE: t = launches latency + max(bytes / (share bandwidth), taps points
 * instructions / integer rate). Points: of the output; of the input for its gradient, where each
 * tap is looked at. The second term: 32-bit numbers on a GPU, where frameworks run their own
 * kernels; 16-bit ones are the library's. */
static void depthwise_time(const struct dl_device *device, enum dl_precision precision,
                           const struct dl_kernel *kernel, double bytes,
                           struct dl_kernel_time *out) {
    stream_time(device, kernel, bytes, DEPTHWISE_FRAC[kernel->pass], out);
    out->sigma_log = DEPTHWISE_SIGMA;
    out->extrapolated = true;
    out->formula = "F-KERNEL-DEPTHWISE";
    if (device->kind != DL_DEVICE_GPU || dl_precision_bytes(precision) < 4.0) return;
    const double *points = kernel->pass == DL_BACKWARD_DATA ? kernel->in : kernel->out;
    double steps = kernel->batch * kernel->out_channels * DEPTHWISE_INSTRUCTIONS[kernel->pass];
    for (int d = 0; d < DL_DIMS; d++) steps *= points[d] * kernel->kernel[d];
    const double latency_s = fmax(kernel->launches, 1.0) * device_latency(device),
                 issue_s = steps / dl_device_integer_rate(device);
    if (!(latency_s + issue_s > out->time_s)) return;
    out->time_s = latency_s + issue_s;
    out->limit = issue_s > latency_s ? DL_LIMIT_COMPUTE : DL_LIMIT_LATENCY;
}

/* F-KERNEL-WORK: measured times of one kind of work (layer normalization, softmax, a whole
 * attention) / times of the same kernels by the model that all kinds share. A kind without samples
 * in a precision takes those of the next best one; weight gradients go with data gradients. */
static double work_factor(const struct dl_device *device, enum dl_precision precision,
                          const struct dl_kernel *kernel) {
    const enum dl_pass pass = kernel->pass == DL_BACKWARD_WEIGHTS ? DL_BACKWARD_DATA : kernel->pass;
    if (kernel->work == DL_WORK_ANY) return 1.0;
    for (const enum dl_precision *p = stand_ins(precision); *p != DL_PRECISIONS; p++)
        for (int i = 0; i < device->work_count; i++) {
            const struct dl_work_factor *w = &device->works[i];
            if (w->work == (int)kernel->work && w->pass == (int)pass && w->precision == (int)*p)
                return w->factor;
        }
    return 1.0;
}

/* Place of a model's precision among those that serve `wanted`. */
static int rank_of(enum dl_precision wanted, const struct dl_kernel_model *model) {
    const enum dl_precision *p = stand_ins(wanted);
    int rank = 0;
    for (; *p != DL_PRECISIONS && (int)*p != model->precision; p++) rank++;
    return rank;
}

/* The model for a kernel and its *owner, `device` at first: the device's own, else the borrowed
 * one, which its owner may have borrowed too; one of the same arithmetic before one of another.
 * Streams by another device's bandwidth would know less than the datasheet, unless both are of one
 * architecture. */
static const struct dl_kernel_model *choose_owner(const struct dl_device **owner,
                                                  enum dl_precision precision,
                                                  const struct dl_kernel *kernel) {
    const struct dl_device *device = *owner, *lender = device->borrowed;
    const struct dl_kernel_model *own = choose(device, precision, kernel);
    if (lender == NULL || (kernel->op == DL_OP_STREAM &&
                           (own != NULL || !dl_device_same_architecture(device, lender))))
        return own;
    const struct dl_kernel_model *lent = choose_owner(&lender, precision, kernel);
    const bool of_pass = kernel->op != DL_OP_ATTENTION || own == NULL || lent == NULL ||
                         own->pass == (int)kernel->pass || lent->pass != (int)kernel->pass;
    if (own != NULL && of_pass && same_rate(device, (enum dl_precision)own->precision, precision))
        return own;
    if (lent == NULL ||
        (own != NULL && !same_rate(lender, (enum dl_precision)lent->precision, precision) &&
         rank_of(precision, own) <= rank_of(precision, lent)))
        return own;
    *owner = lender;
    return lent;
}

static double traffic_bytes(enum dl_precision precision, const struct dl_kernel *kernel) {
    return (kernel->read_elements + kernel->write_elements) * dl_precision_bytes(precision) +
           kernel->extra_bytes;
}

static void shape_time(const struct dl_device *device, enum dl_precision precision,
                       const struct dl_kernel *kernel, struct dl_kernel_time *out) {
    const double bytes = traffic_bytes(precision, kernel);
    const struct dl_device *owner = device;
    const struct dl_kernel_model *model = choose_owner(&owner, precision, kernel);
    if (model == NULL && dl_kernel_is_depthwise(kernel))
        depthwise_time(device, precision, kernel, bytes, out);
    else if (model != NULL)
        model_time(device, owner, model, precision, kernel, out);
    else if (kernel->op == DL_OP_STREAM)
        stream_time(device, kernel, bytes, 1.0, out);
    else
        roofline_time(device, precision, kernel, out);
    out->time_s /= dl_norm_share(precision, kernel, model);
}

/* F-KERNEL-LAWS: causal attention takes at most as long as full one, and this for each pair. */
static void masked_time(const struct dl_device *device, enum dl_precision precision,
                        enum dl_pass pass, const struct dl_kernel *kernel,
                        struct dl_kernel_time *out) {
    struct dl_attention_shape shape = {.batch = kernel->batch,
                                       .heads = kernel->heads,
                                       .kv_heads = kernel->kv_heads,
                                       .queries = kernel->queries,
                                       .keys = kernel->keys,
                                       .head_dim = kernel->head_dim,
                                       .value_dim = kernel->value_dim,
                                       .window = kernel->window,
                                       .causal = kernel->causal};
    struct dl_kernel own = dl_kernel_attention(pass, &shape), other;
    struct dl_kernel_time bound;
    shape.causal = !kernel->causal;
    other = dl_kernel_attention(pass, &shape);
    own.variant = other.variant = kernel->variant;
    shape_time(device, precision, &own, out);
    shape_time(device, precision, &other, &bound);
    out->time_s = fmin(out->time_s, bound.time_s * fmax(own.flop / other.flop, 1.0));
}

/* Backward attention takes at least as long as the forward pass. */
static void attention_time_s(const struct dl_device *device, enum dl_precision precision,
                             const struct dl_kernel *kernel, struct dl_kernel_time *out) {
    struct dl_kernel_time forward;
    masked_time(device, precision, DL_FORWARD, kernel, &forward);
    masked_time(device, precision, kernel->pass, kernel, out);
    out->time_s = fmax(out->time_s, forward.time_s);
}

double dl_kernel_call_s(const struct dl_device *device, enum dl_precision precision,
                        const struct dl_kernel *kernel) {
    const struct dl_kernel_model *model = choose(device, precision, kernel);
    return model != NULL ? model->correction.call_s : NAN;
}

void dl_kernel_time(const struct dl_device *device, enum dl_precision precision,
                    const struct dl_kernel *kernel, struct dl_kernel_time *out) {
    if (kernel->has_type) precision = kernel->type;
    struct dl_kernel stream = *kernel;
    if (dl_batchnorm_by_channel(device, kernel)) stream.m = 0.0;
    (kernel->op == DL_OP_ATTENTION ? attention_time_s : shape_time)(device, precision, &stream,
                                                                    out);
    if (kernel->op == DL_OP_STREAM && kernel->work == DL_WORK_BATCHNORM)
        out->time_s = dl_batchnorm_s(device, precision, kernel, traffic_bytes(precision, kernel),
                                     out->time_s);
    if (device->work_count > 0) out->time_s *= work_factor(device, precision, kernel);
}

/* Winograd F(4x4, 3x3): 6 x 6 numbers for each tile of 4 x 4 outputs, of inputs, outputs and
 * filters (Lavin and Gray 2015). Few channels leave nothing to sum in the transformed domain: none
 * of the samples' first layers takes it. */
double dl_kernel_workspace_bytes(const struct dl_kernel *kernel, double element_bytes) {
    enum { TILE = 4, TRANSFORMED = 36, FEW_CHANNELS = 32 };
    if (kernel->op != DL_OP_CONV || kernel->groups > 1 || kernel->kernel[0] > 1 ||
        kernel->in_channels < FEW_CHANNELS)
        return 0;
    double tiles = kernel->batch;
    for (int d = 1; d < DL_DIMS; d++) {
        if (kernel->kernel[d] != 3 || kernel->stride[d] > 1 || kernel->dilation[d] > 1) return 0;
        tiles *= ceil(kernel->out[d] / TILE);
    }
    const double in = kernel->in_channels, out = kernel->out_channels;
    return element_bytes * TRANSFORMED * (tiles * in + tiles * out + in * out);
}

double dl_kernel_workspace_factor(const struct dl_device *device, enum dl_precision precision,
                                  const struct dl_kernel *kernel, double limit_bytes) {
    if (!(dl_kernel_workspace_bytes(kernel, dl_precision_bytes(precision)) > limit_bytes))
        return 1.0;
    const struct dl_kernel_model *model = choose(device, precision, kernel);
    if (model == NULL && device->borrowed != NULL)
        model = choose(device->borrowed, precision, kernel);
    if (model == NULL) return 1.0;
    if (model->algorithms.partial_waves > 0.0) {
        static const struct dl_kernel_model_scale own = {1.0, 1.0, 1.0, 1.0};
        struct dl_kernel_model_shape shape;
        dl_kernel_model_shape_of(kernel, dl_precision_operand_bytes(precision), device->unit_count,
                                 &shape);
        const double granted_s = dl_kernel_model_base(model, &own, &shape, NULL);
        shape.winograd_tiles = 0.0;
        return fmax(dl_kernel_model_base(model, &own, &shape, NULL) / granted_s, 1.0);
    }
    return model->gains.gain_3x3 > 1.0 ? model->gains.gain_3x3 : 1.0;
}
