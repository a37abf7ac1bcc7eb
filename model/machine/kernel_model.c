/* kernel_model.c - the file of a kernel-time model: its members, their checks, and its samples
 * packed for evaluation. Not here: the evaluation (kernel_model_time.c), the fit
 * (calibrate/fits/fit_kernel.c), the choice of a model (kernel.c).
 */
#include "model/machine/kernel_model.h"

#include <string.h>

#define NUMBER(member, unit_, low, high, text)                                                     \
    DL_FIELD(struct dl_kernel_model, member, NUMBER, DL_RANGE(low, high, unit_), .required = true, \
             .help = text)
#define FALLBACK(value, low, high, text)                                                           \
    DL_RANGE(low, high, DL_UNIT_NONE), .has_fallback = true, .fallback = (value), .help = text
#define WITH_DEFAULT(member, value, low, high, text)                                               \
    DL_FIELD(struct dl_kernel_model, member, NUMBER, FALLBACK(value, low, high, text))
#define WITH_DEFAULT_IN(group, member, value, low, high, text)                                     \
    DL_FIELD_IN(struct dl_kernel_model, group, member, NUMBER, FALLBACK(value, low, high, text))
#define GAIN(group, member, text) WITH_DEFAULT_IN(group, member, 1.0, 1e-3, 1e3, text)
#define EXPONENT(member, text) WITH_DEFAULT_IN(exponents, member, 0.0, -10.0, 10.0, text)
#define NUMBERS(member, count, text)                                                               \
    DL_FIELD_IN(struct dl_kernel_model, correction, member, NUMBERS,                               \
                .count_offset = offsetof(struct dl_kernel_model, correction.count), .help = text)

static const char *const distance_names[] = {"squares", "magnitudes", NULL};
static const char *const fixed_time_names[] = {"adds", "overlaps", NULL};

static const struct dl_field model_fields[] = {
    DL_FIELD(struct dl_kernel_model, op, CHOICE, .choices = dl_op_names, .required = true,
             .help = "operation"),
    DL_FIELD(struct dl_kernel_model, pass, CHOICE, .choices = dl_pass_names, .required = true,
             .help = "forward, data gradient or weight gradient"),
    DL_FIELD(struct dl_kernel_model, precision, CHOICE, .choices = dl_precision_names,
             .required = true, .help = "precision of the arithmetic"),
    DL_FIELD(struct dl_kernel_model, work, CHOICE, .choices = dl_work_names,
             .help = "stream: kind of work; absent: all without a model of their own"),
    DL_FIELD(struct dl_kernel_model, variant, CHOICE, .choices = dl_variant_names,
             .help = "stream: engine for kernels of serving engines; convolution: depthwise, "
                     "volume; absent: all others"),
    NUMBER(latency_s, DL_UNIT_S, 0.0, 1.0, "shortest kernel"),
    NUMBER(rate_flop_per_s, DL_UNIT_FLOP_PER_S, 1.0, 1e18, "attained by large kernels"),
    NUMBER(bandwidth_bytes_per_s, DL_UNIT_BYTE_PER_S, 1.0, 1e16, "attained by large kernels"),
    DL_FIELD(struct dl_kernel_model, fixed_time, CHOICE, .choices = fixed_time_names,
             .help = "stream: whether latency_s adds to the time of the bytes (absent) or overlaps "
                     "with it: the root of the sum of their squares"),
    WITH_DEFAULT(half_m, 0.0, 0.0, 1e9,
                 "length of the result's first (GEMM: longer) side that runs at half rate"),
    WITH_DEFAULT(half_n, 0.0, 0.0, 1e9, "length of the result's other side that runs at half rate"),
    WITH_DEFAULT(half_k, 0.0, 0.0, 1e9, "length of the summed side that runs at half rate"),
    WITH_DEFAULT(half_waves, 0.0, 0.0, 1e9, "tiles of 128 x 64 per unit that run at half rate"),
    GAIN(gains, unaligned_gain,
         "rate factor: 2-byte operands with a side that is not a multiple of 8"),
    GAIN(gains, m_trans_gain, "rate factor: operand of the longer side stored with k contiguous"),
    GAIN(gains, n_trans_gain, "rate factor: operand of the other side stored with k contiguous"),
    GAIN(gains, gain_3x3, "rate factor: 3x3, stride 1 (Winograd; direct-convolution flop)"),
    GAIN(gains, gain_5x5, "rate factor: larger square kernels, stride 1 (FFT, Winograd)"),
    EXPONENT(stride_exponent, "rate falls with (stride area)^-exponent"),
    EXPONENT(batch_exponent_3x3,
             "3x3, stride 1: rate falls with (batch padded to 16s / batch)^-exponent"),
    EXPONENT(wave_exponent,
             "rate falls with (whole waves of 128 x 64 tiles / smooth ones)^-exponent"),
    EXPONENT(stride_channels_exponent,
             "increase of stride_exponent with each octave of channels above 256"),
    EXPONENT(stride_filters_exponent,
             "increase of stride_exponent with each octave of filters above 256"),
    GAIN(gains, padded_pointwise_gain, "rate factor: 1x1 kernels with padding"),
    GAIN(gains, narrow_gain, "rate factor: fewer than 8 input channels"),
    GAIN(gains, pointwise_gain, "rate factor: 1x1 kernels"),
    GAIN(gains, grouped_gain, "rate factor: grouped convolution"),
    EXPONENT(tile_exponent,
             "weight of whole tiles (1) against the smooth form (0) in the loss of short "
             "sides, as an exponent"),
    WITH_DEFAULT_IN(algorithms, partial_waves, 0.0, 0.0, 1e3,
                    "waves lost to units without a tile; above 0: whole tiles by algorithm, no "
                    "half_m, half_n, half_waves"),
    GAIN(algorithms, winograd_gain, "rate factor: GEMMs of Winograd's algorithm"),
    DL_FIELD_IN(struct dl_kernel_model, algorithms, transform_bytes_per_s, NUMBER,
                DL_RANGE(1.0, 1e16, DL_UNIT_BYTE_PER_S), .has_fallback = true, .fallback = 1e12,
                .help = "attained by Winograd's transforms"),
    GAIN(algorithms, spread_gain,
         "rate factor: data gradients of strided convolutions, over every point of the input"),
    GAIN(algorithms, gather_gain,
         "rate factor: data gradients of strided convolutions, as columns that are summed"),
    DL_FIELD_IN(struct dl_kernel_model, algorithms, gather_bytes_per_s, NUMBER,
                DL_RANGE(1.0, 1e16, DL_UNIT_BYTE_PER_S), .has_fallback = true, .fallback = 1e12,
                .help = "attained by the sum of the columns"),
    GAIN(algorithms, tile_64_gain, "rate factor: tiles of 128 x 64"),
    GAIN(algorithms, tile_32_gain, "rate factor: tiles of 128 x 32"),
    WITH_DEFAULT(channel_multiple, 1.0, 1.0, 1024.0,
                 "channels and filters are padded to this multiple"),
    WITH_DEFAULT(base_sigma_log, 0.35, 0.0, 10.0, "standard deviation of log(time / base)"),
    DL_FIELD_IN(struct dl_kernel_model, correction, distance, CHOICE, .choices = distance_names,
                .help =
                    "distance between kernels: sum of squares or of magnitudes of the differences "
                    "of their features"),
    WITH_DEFAULT_IN(correction, offset, 0.0, -10.0, 10.0, "mean of log(time / base)"),
    DL_FIELD_IN(struct dl_kernel_model, correction, features, STRINGS,
                .count_offset = offsetof(struct dl_kernel_model, correction.feature_count),
                .help =
                    "features that the distance compares, by name; absent: those of dlmodel 0.1"),
    NUMBERS(lengths, length_count, "length scale of each feature"),
    NUMBERS(points, point_count, "features / lengths of the samples, one feature after the other"),
    NUMBERS(weights, weight_count, "one per sample"),
    NUMBERS(domain_low, domain_low_count, "smallest value of each feature"),
    NUMBERS(domain_high, domain_high_count, "largest value of each feature"),
    DL_FIELD_IN(struct dl_kernel_model, correction, sigma_log, NUMBER,
                DL_RANGE(0.0, 10.0, DL_UNIT_NONE), .required = true,
                .help = "standard deviation of log(time / prediction), cross-validated"),
    DL_FIELD_IN(struct dl_kernel_model, correction, samples, INTEGER,
                DL_RANGE(0.0, 1e9, DL_UNIT_COUNT), .help = "kernels it was fitted to"),
    DL_FIELD_IN(struct dl_kernel_model, correction, call_s, NUMBER, DL_RANGE(0.0, 1.0, DL_UNIT_S),
                .help = "shortest time of a call that the host of the samples timed from outside"),
    DL_FIELD(struct dl_kernel_model, source, STRING, .help = "key of data/SOURCES.md"),
    {.key = NULL},
};

const struct dl_schema dl_kernel_model_schema = {
    .name = "kernel-time model",
    .summary = "times of one operation, pass and precision on one device",
    .size = sizeof(struct dl_kernel_model),
    .fields = model_fields,
};

static const struct dl_field set_fields[] = {
    DL_FIELD(struct dl_kernel_model_set, device, STRING, .required = true,
             .help = "name of the device file"),
    DL_FIELD(struct dl_kernel_model_set, library, STRING,
             .help = "measured library, with its version"),
    DL_FIELD(struct dl_kernel_model_set, source, STRING, .required = true,
             .help = "key of data/SOURCES.md"),
    {.key = "kernel_models",
     .alias = "surfaces",
     .type = DL_FIELD_LIST,
     .offset = offsetof(struct dl_kernel_model_set, kernel_models),
     .count_offset = offsetof(struct dl_kernel_model_set, kernel_model_count),
     .child = &dl_kernel_model_schema,
     .required = true,
     .help = "one for each operation, pass and precision"},
    {.key = NULL},
};

const struct dl_schema dl_kernel_model_set_schema = {
    .name = "dlmodel-kernel-models",
    .alias = "dlmodel-surfaces",
    .summary = "kernel-time models of one device",
    .size = sizeof(struct dl_kernel_model_set),
    .fields = set_fields,
    .top_level = true,
};

static int axis_of(int op, const char *name) {
    for (int i = 0; dl_kernel_model_features[op][i] != NULL; i++)
        if (strcmp(dl_kernel_model_features[op][i], name) == 0) return i;
    return -1;
}

enum dl_code dl_kernel_model_check(const struct dl_kernel_model *model, const struct dl_json *doc,
                                   const char *path, struct dl_err *err) {
    int axes = model->correction.length_count;
    if (axes > DL_FEATURES_MAX)
        return dl_json_fail(doc, path, err, "expected at most %d lengths, found %d",
                            DL_FEATURES_MAX, axes);
    if (model->correction.point_count != axes * model->correction.weight_count)
        return dl_json_fail(doc, path, err,
                            "points has %d numbers, expected lengths x weights = %d x %d",
                            model->correction.point_count, axes, model->correction.weight_count);
    if (model->correction.domain_low_count != model->correction.domain_high_count ||
        (axes > 0 && model->correction.domain_low_count != axes))
        return dl_json_fail(doc, path, err,
                            "domain_low, domain_high and lengths must have the same count");
    for (int f = 0; f < axes; f++)
        if (!(model->correction.lengths[f] > 0.0))
            return dl_json_fail(doc, path, err, "lengths must be positive, found %g",
                                model->correction.lengths[f]);
    if (model->correction.feature_count > 0 && model->correction.feature_count != axes)
        return dl_json_fail(doc, path, err, "features and lengths must have the same count");
    for (int f = 0; f < model->correction.feature_count; f++)
        if (axis_of(model->op, model->correction.features[f]) < 0)
            return dl_json_fail(doc, path, err, "no feature of %s is called \"%.40s\"",
                                dl_op_names[model->op], model->correction.features[f]);
    return DL_OK;
}

/* Files of the first releases name no features: theirs are the first axes, except for weight
 * gradients of convolutions. */
static int unnamed_axis(const struct dl_kernel_model *model, int f) {
    static const int of_weights[] = {0, 1, 2, 3, 4, 6};
    return model->op == DL_OP_CONV && model->pass == DL_BACKWARD_WEIGHTS && f < 6 ? of_weights[f]
                                                                                  : f;
}

enum dl_code dl_kernel_model_pack(struct dl_kernel_model *model, struct dl_arena *arena,
                                  struct dl_err *err) {
    (void)err;
    static const float FAR = 1e6F; /* its covariance with anything vanishes */
    /* octaves beyond the samples that do not count as extrapolation */
    static const double DOMAIN_MARGIN = 1.0;
    static const uintptr_t ALIGNMENT = 64; /* bytes */
    enum { WIDTH = DL_KERNEL_MODEL_WIDTH };
    int n = model->correction.weight_count, axes = model->correction.length_count,
        blocks = (n + WIDTH - 1) / WIDTH;
    model->packed.blocks = NULL;
    model->packed.of_engines = false;
    if (n == 0) return DL_OK;
    char *room = dl_arena_alloc(
        arena, (size_t)blocks * (size_t)(axes + 1) * WIDTH * sizeof(float) + ALIGNMENT, 1);
    float *packed = (float *)(void *)(room + (ALIGNMENT - (uintptr_t)room % ALIGNMENT) % ALIGNMENT);
    /* An axis without a feature is 0 at any length scale, and so within the domain. */
    for (int axis = 0; axis < DL_AXES; axis++)
        model->packed.per_length[axis] = model->packed.low[axis] = model->packed.high[axis] = 0.0F;
    for (int f = 0; f < axes; f++) {
        const int axis = model->correction.feature_count > 0
                             ? axis_of(model->op, model->correction.features[f])
                             : unnamed_axis(model, f);
        model->packed.axes[f] = axis;
        if (model->correction.feature_count > 0 &&
            strcmp(model->correction.features[f], "engine") == 0)
            model->packed.of_engines = model->correction.domain_low[f] > 0.0;
        model->packed.per_length[axis] = (float)(1.0 / model->correction.lengths[f]);
        model->packed.low[axis] = (float)((model->correction.domain_low[f] - DOMAIN_MARGIN) /
                                          model->correction.lengths[f]);
        model->packed.high[axis] = (float)((model->correction.domain_high[f] + DOMAIN_MARGIN) /
                                           model->correction.lengths[f]);
    }
    for (int i = 0; i < blocks * WIDTH; i++) {
        float *block = packed + i / WIDTH * (axes + 1) * WIDTH + i % WIDTH;
        for (int f = 0; f < axes; f++)
            block[f * WIDTH] = i < n ? (float)model->correction.points[f * n + i] : FAR;
        block[axes * WIDTH] = i < n ? (float)model->correction.weights[i] : 0.0F;
    }
    model->packed.blocks = packed;
    model->packed.block_count = blocks;
    return DL_OK;
}
