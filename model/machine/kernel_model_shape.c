/* kernel_model_shape.c - the properties of a kernel that a kernel-time model uses: sides of its
 * (implicit) GEMM, classes, features. Not here: the time (kernel_model_time.c). */
#include "model/machine/kernel_model.h"
#include "model/machine/kernel_model_math.h"
#include "model/machine/kernel_model_tiles.h"

enum {
    BATCH,
    POSITIONS,
    CHANNELS = DL_AXIS_CHANNELS,
    FILTERS = DL_AXIS_FILTERS,
    TAPS,
    STRIDE = DL_AXIS_STRIDE,
    EXCESS,
    WAVES,
    SQUARE_3X3,
    PADDING,
    BATCH_PADDING = DL_AXIS_BATCH_PADDING,
    STEPS = DL_AXIS_STEPS,
    COLUMNS,
    SUMMED,
    DEPTH
};
static const char *const conv_features[] = {[BATCH] = "batch",
                                            [POSITIONS] = "positions",
                                            [CHANNELS] = "channels",
                                            [FILTERS] = "filters",
                                            [TAPS] = "taps",
                                            [STRIDE] = "stride",
                                            [EXCESS] = "excess",
                                            [WAVES] = "waves",
                                            [SQUARE_3X3] = "square_3x3",
                                            [PADDING] = "padding",
                                            [BATCH_PADDING] = "batch_padding",
                                            [STEPS] = "steps",
                                            [COLUMNS] = "columns",
                                            [SUMMED] = "summed",
                                            [DEPTH] = "depth",
                                            NULL};
enum {
    LONG_SIDE,
    SHORT_SIDE,
    SUMMED_SIDE,
    LONG_TRANSPOSED,
    SHORT_TRANSPOSED,
    UNALIGNED,
    GEMM_EXCESS,
    GEMM_COUNT,
    GEMM_BLOCKS,
};
static const char *const gemm_features[] = {[LONG_SIDE] = "long_side",
                                            [SHORT_SIDE] = "short_side",
                                            [SUMMED_SIDE] = "summed_side",
                                            [LONG_TRANSPOSED] = "long_transposed",
                                            [SHORT_TRANSPOSED] = "short_transposed",
                                            [UNALIGNED] = "unaligned",
                                            [GEMM_EXCESS] = "excess",
                                            [GEMM_COUNT] = "count",
                                            [GEMM_BLOCKS] = "blocks",
                                            NULL};
static const char *const stream_features[] = {"bytes",    "vendor", "elements",
                                              "compiled", "rows",   NULL};
enum { QUERIES, SEEN, HEADS, HEAD_DIM, CAUSAL, SHARED, ATTENTION_EXCESS, PAGED, ENGINE };
static const char *const attention_features[] = {[QUERIES] = "queries",
                                                 [SEEN] = "seen",
                                                 [HEADS] = "heads",
                                                 [HEAD_DIM] = "head_dim",
                                                 [CAUSAL] = "causal",
                                                 [SHARED] = "shared",
                                                 [ATTENTION_EXCESS] = "excess",
                                                 [PAGED] = "paged",
                                                 [ENGINE] = "engine",
                                                 NULL};
const char *const *const dl_kernel_model_features[] = {[DL_OP_GEMM] = gemm_features,
                                                       [DL_OP_CONV] = conv_features,
                                                       [DL_OP_STREAM] = stream_features,
                                                       [DL_OP_ATTENTION] = attention_features};

/* Flags are 2 octaves apart (the lengths scale it). */
static const float FLAG = 4.0F, FLAG_OCTAVES = 2.0F, DEPTH_OCTAVES = 6.0F;
/* Images that a direct or Winograd convolution kernel takes at once. */
static const double IMAGE_TILE = 16.0;
/* Largest batch of the convolution samples (DeepBench). Beyond it more images are more of the same
 * tiles: the base scales, the correction stays. */
static const double LARGE_BATCH = 32.0;

/* Winograd F(4x4, 3x3). With fewer channels there is too little to sum in the transformed domain;
 * no sample uses it there. */
static const double WINOGRAD_TILE = 4.0, WINOGRAD_CHANNELS = 16.0;

static inline bool is_multiple_of_8(double x) { return x == 8.0 * dl_whole_up(x * (1.0 / 8.0)); }

/* log2 of quantities of at least 1. */
static inline float at_least_1(double x) { return x > 1.0 ? (float)x : 1.0F; }

static inline float flag(bool set) { return set ? FLAG : 1.0F; }

DL_INLINE void set_features(struct dl_kernel_model_shape *s, int at, const dl_lanes *numbers) {
    dl_lanes log2s = *numbers;
    dl_log2_lanes(&log2s);
    *(dl_lanes_in_memory *)(s->features + at) = log2s;
}

DL_INLINE void gemm_shape(const struct dl_kernel *kernel, bool two_byte, double unit_share,
                          struct dl_kernel_model_shape *s) {
    /* C = A B equals C^T = B^T A^T, so only the longer and the shorter side and the storage of
     * their operands matter. Column-major convention of the samples: A of a GEMM with m >= n,
     * "T" has k contiguous. */
    bool m_longer = kernel->m >= kernel->n;
    s->m = dl_larger(kernel->m, kernel->n);
    s->n = dl_smaller(kernel->m, kernel->n);
    s->k = kernel->k;
    s->count = kernel->count;
    s->waves = s->m * s->n * s->count * unit_share * (1.0 / (dl_tile_usual.m * dl_tile_usual.n));
    s->m_trans = m_longer ? kernel->a_trans : !kernel->b_trans;
    s->n_trans = m_longer ? kernel->b_trans : !kernel->a_trans;
    s->unaligned = two_byte && !(is_multiple_of_8(kernel->m) && is_multiple_of_8(kernel->k) &&
                                 (is_multiple_of_8(kernel->n) || !kernel->b_trans));
    const dl_lanes features = {
        /* by axis */
        at_least_1(s->m * dl_larger(s->count, 1.0)),
        at_least_1(s->n),
        at_least_1(s->k),
        flag(s->m_trans),
        flag(s->n_trans),
        flag(s->unaligned),
        at_least_1(dl_tile_excess(s->m, s->n, s->count, s->units, unit_share, dl_tile_large)),
        at_least_1(s->count)};
    set_features(s, 0, &features);
    s->features[GEMM_BLOCKS] = kernel->variant == DL_VARIANT_BLOCKS ? FLAG_OCTAVES : 0.0F;
}

/* Attention as count = batch heads GEMMs of queries x head_dim, summed over the keys that a query
 * sees on average. */
DL_INLINE void attention_shape(const struct dl_kernel *kernel, double unit_share,
                               struct dl_kernel_model_shape *s) {
    static const struct dl_tile tile = {128, 1}; /* queries of one head that a unit takes at once */
    s->count = kernel->batch * kernel->heads;
    s->m = kernel->queries;
    s->n = kernel->value_dim;
    s->k = dl_attention_pairs(kernel->queries, kernel->keys, kernel->causal, kernel->window) /
           kernel->queries;
    s->waves = s->m * s->n * s->count * unit_share * (1.0 / (dl_tile_usual.m * dl_tile_usual.n));
    const dl_lanes features = {
        /* by axis */
        at_least_1(s->m),
        at_least_1(s->k),
        at_least_1(s->count),
        at_least_1(kernel->head_dim),
        flag(kernel->causal),
        at_least_1(kernel->heads / dl_larger(kernel->kv_heads, 1.0)),
        at_least_1(dl_tile_excess(s->m, 1.0, s->count, s->units, unit_share, tile)),
        flag(kernel->variant == DL_VARIANT_PAGED)};
    set_features(s, 0, &features);
    s->features[ENGINE] = kernel->variant == DL_VARIANT_ENGINE ? FLAG_OCTAVES : 0.0F;
}

/* Needs the sides of the implicit GEMM. */
DL_INLINE void conv_features_of(const struct dl_kernel *kernel, double positions, double taps,
                                double stride_area, double unit_share,
                                struct dl_kernel_model_shape *s) {
    const double m = s->m, n = s->n, count = s->count, units = s->units;
    s->tile_excess[0] = dl_tile_excess(m, n, count, units, unit_share, dl_tile_large);
    s->tile_excess[1] = dl_tile_excess(m, n, count, units, unit_share, dl_tile_usual);
    s->tile_excess[2] = dl_tile_excess(m, n, count, units, unit_share, dl_tile_narrow);
    float batch_padding = 1.0F;
    if (s->fast_3x3)
        batch_padding = at_least_1(dl_whole_up(kernel->batch * (1.0 / IMAGE_TILE)) * IMAGE_TILE /
                                   kernel->batch);
    const dl_lanes first = {/* by axis */
                            at_least_1(dl_smaller(kernel->batch, LARGE_BATCH)),
                            at_least_1(positions),
                            at_least_1(s->channels),
                            at_least_1(s->filters),
                            at_least_1(taps),
                            at_least_1(stride_area),
                            at_least_1(s->tile_excess[0]),
                            s->waves > 1e-30 ? (float)s->waves : 1.0F};
    const double images = kernel->pass == DL_BACKWARD_WEIGHTS && kernel->batch > LARGE_BATCH
                              ? LARGE_BATCH / kernel->batch
                              : 1.0;
    const dl_lanes second = {flag(s->fast_3x3),
                             flag(s->padded),
                             batch_padding,
                             (float)dl_tile_steps(s->tile_excess[1], s->waves),
                             at_least_1(n),
                             at_least_1(s->k * images),
                             1.0F,
                             1.0F};
    set_features(s, 0, &first);
    set_features(s, DL_LANES, &second);
    s->features[DEPTH] = kernel->in[0] > 1.0 ? DEPTH_OCTAVES : 0.0F;
}

DL_INLINE void conv_shape(const struct dl_kernel *kernel, double bytes_per_element,
                          double unit_share, struct dl_kernel_model_shape *s) {
    const double *in = kernel->in, *out = kernel->out, *sides = kernel->kernel,
                 *stride = kernel->stride;
    const double *pad = kernel->pad, *dilation = kernel->dilation;
    const double in_points = in[0] * in[1] * in[2], out_points = out[0] * out[1] * out[2],
                 taps = sides[0] * sides[1] * sides[2];
    const double stride_area = stride[0] * stride[1] * stride[2];
    const double groups = dl_larger(kernel->groups, 1.0);
    /* A fast algorithm serves squares of more than one point. */
    const double largest = dl_larger(dl_larger(sides[0], sides[1]), dl_larger(sides[2], 1.0));
    int wide = 0, equal = 0;
    for (int d = 0; d < DL_DIMS; d++) {
        wide += sides[d] > 1.0;
        equal += (sides[d] > 1.0) & (sides[d] >= largest);
    }
    const bool dense = !((dilation[0] > 1.0) | (dilation[1] > 1.0) | (dilation[2] > 1.0));
    const bool fast = dense & (groups <= 1.0) & (wide == 2) & (equal == 2) & (stride_area <= 1.0);
    const double channels = kernel->in_channels / groups, filters = kernel->out_channels / groups;
    s->channels = channels;
    s->filters = filters;
    s->fast_3x3 = fast & (largest == 3.0);
    s->fast_5x5 = fast & (largest > 3.0);
    s->pointwise = taps <= 1.0;
    s->padded = (pad[0] > 0.0) | (pad[1] > 0.0) | (pad[2] > 0.0);
    s->narrow = channels < 8.0;
    s->grouped = groups > 1.0;
    s->unaligned =
        bytes_per_element == 2.0 && !(is_multiple_of_8(channels) && is_multiple_of_8(filters));
    s->count = groups;
    s->out_positions = kernel->batch * out_points;
    s->taps = taps;
    s->stride_area = stride_area;
    s->in_bytes = kernel->batch * in_points * kernel->in_channels * bytes_per_element;
    s->out_bytes = s->out_positions * kernel->out_channels * bytes_per_element;
    if (s->fast_3x3 & (channels >= WINOGRAD_CHANNELS) & (kernel->pass != DL_BACKWARD_WEIGHTS))
        s->winograd_tiles = kernel->batch * out[0] * dl_whole_up(out[1] * (1.0 / WINOGRAD_TILE)) *
                            dl_whole_up(out[2] * (1.0 / WINOGRAD_TILE));
    if (kernel->pass == DL_BACKWARD_DATA) {
        s->m = kernel->batch * in_points;
        s->n = channels;
        s->k = filters * taps;
    } else if (kernel->pass == DL_BACKWARD_WEIGHTS) {
        s->m = filters;
        s->n = channels * taps;
        s->k = kernel->batch * out_points;
    } else {
        s->m = kernel->batch * out_points;
        s->n = filters;
        s->k = channels * taps;
    }
    s->waves = s->m * s->n * groups * unit_share * (1.0 / (dl_tile_usual.m * dl_tile_usual.n));
    conv_features_of(kernel, out_points, taps, stride_area, unit_share, s);
}

/* Elements that the threads of a stream go through: those written, each of which moves two to three
 * (itself and one or two operands). Short kernels whose operands come from the cache follow them
 * rather than the bytes. Where a pass is fused into others and moves less, or more, it counts as
 * one of these. */
static inline double stream_elements(double written, double moved) {
    return dl_larger(moved * (1.0 / 3.0), dl_smaller(moved * (1.0 / 2.0), written));
}

/* Member by member: clearing a structure this size takes longer than the rest. */
DL_INLINE void clear(struct dl_kernel_model_shape *s) {
    s->unaligned = s->m_trans = s->n_trans = s->fast_3x3 = s->fast_5x5 = s->narrow = s->pointwise =
        s->padded = s->grouped = false;
    s->m = s->n = s->k = s->waves = s->channels = s->filters = 0.0;
    s->tile_excess[0] = s->tile_excess[1] = s->tile_excess[2] = 0.0;
    s->in_bytes = s->out_bytes = s->out_positions = s->taps = s->stride_area = s->winograd_tiles =
        0.0;
    s->count = 1.0;
    for (int i = DL_LANES; i < DL_AXES; i++) s->features[i] = 0.0F;
}

DL_INLINE void dl_kernel_model_shape_of_inline(const struct dl_kernel *kernel,
                                               double bytes_per_element, int64_t unit_count,
                                               struct dl_kernel_model_shape *out) {
    clear(out);
    out->op = kernel->op;
    out->flop = kernel->flop;
    out->element_bytes = bytes_per_element;
    out->units = unit_count > 0 ? (double)unit_count : 1.0;
    out->launches = dl_larger(kernel->launches, 1.0);
    /* Results of operands narrower than 16 bits are 16 bits wide. */
    out->bytes = kernel->read_elements * bytes_per_element +
                 kernel->write_elements * dl_larger(bytes_per_element, 2.0) + kernel->extra_bytes;
    const double unit_share = 1.0 / out->units;
    if (kernel->op == DL_OP_GEMM) {
        gemm_shape(kernel, bytes_per_element == 2.0, unit_share, out);
    } else if (kernel->op == DL_OP_ATTENTION) {
        attention_shape(kernel, unit_share, out);
    } else if (kernel->op == DL_OP_CONV) {
        conv_shape(kernel, bytes_per_element, unit_share, out);
    } else {
        const double moved = out->bytes / dl_larger(bytes_per_element, 2.0);
        const dl_lanes features = {at_least_1(out->bytes),
                                   flag(kernel->variant == DL_VARIANT_VENDOR),
                                   at_least_1(stream_elements(kernel->write_elements, moved)),
                                   flag(kernel->variant == DL_VARIANT_COMPILED),
                                   at_least_1(kernel->m),
                                   1.0F,
                                   1.0F,
                                   1.0F};
        set_features(out, 0, &features);
    }
}

DL_WIDE(dl_kernel_model_shape_of,
        (const struct dl_kernel *kernel, double bytes_per_element, int64_t unit_count,
         struct dl_kernel_model_shape *out),
        (kernel, bytes_per_element, unit_count, out))
