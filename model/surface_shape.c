/* surface_shape.c - what a surface sees of a kernel: sides of its (implicit) matrix product, classes, features.
 * Not here: the time (surface_time.c).
 */
#include "model/surface.h"
#include "model/surface_math.h"
#include "model/surface_tiles.h"

enum { BATCH, POSITIONS, CHANNELS = DL_AXIS_CHANNELS, FILTERS = DL_AXIS_FILTERS, TAPS, STRIDE = DL_AXIS_STRIDE, EXCESS, WAVES,
       SQUARE_3X3, PADDING, BATCH_PADDING = DL_AXIS_BATCH_PADDING, STEPS = DL_AXIS_STEPS };
static const char *const conv_features[] = {
    [BATCH] = "batch", [POSITIONS] = "positions", [CHANNELS] = "channels", [FILTERS] = "filters", [TAPS] = "taps",
    [STRIDE] = "stride", [EXCESS] = "excess", [WAVES] = "waves", [SQUARE_3X3] = "square_3x3", [PADDING] = "padding", NULL};
enum { LONG_SIDE, SHORT_SIDE, SUMMED_SIDE, LONG_TRANSPOSED, SHORT_TRANSPOSED, UNALIGNED };
static const char *const gemm_features[] = {
    [LONG_SIDE] = "long_side", [SHORT_SIDE] = "short_side", [SUMMED_SIDE] = "summed_side",
    [LONG_TRANSPOSED] = "long_transposed", [SHORT_TRANSPOSED] = "short_transposed", [UNALIGNED] = "unaligned", NULL};
static const char *const stream_features[] = {"bytes", NULL};
const char *const *const dl_surface_features[] = {
    [DL_OP_GEMM] = gemm_features, [DL_OP_CONV] = conv_features, [DL_OP_STREAM] = stream_features};

/* Flags are 2 octaves apart (the lengths scale it). */
static const float FLAG = 4.0F;
/* Images that a direct or Winograd convolution kernel takes at once. */
static const double IMAGE_TILE = 16.0;
/* Largest batch of the convolution samples (DeepBench). From there on more images are more of the same tiles: the base scales, the
 * correction stays. */
static const double LARGE_BATCH = 32.0;

static bool is_multiple_of_8(double x)
{
    return x == 8.0 * dl_whole_up(x * (1.0 / 8.0));
}

/* Quantities that count from 1 up. */
static float at_least_1(double x)
{
    return x > 1.0 ? (float)x : 1.0F;
}

static float flag(bool set)
{
    return set ? FLAG : 1.0F;
}

static void gemm_shape(const struct dl_kernel *kernel, bool two_byte, struct dl_surface_shape *s)
{
    /* C = A B is C^T = B^T A^T: only the longer and the shorter side matter, and how their operands are stored.
     * Column-major convention of the samples: A of an m >= n product "T" has k contiguous. */
    bool m_longer = kernel->m >= kernel->n;
    s->m = m_longer ? kernel->m : kernel->n;
    s->n = m_longer ? kernel->n : kernel->m;
    s->k = kernel->k;
    s->count = kernel->count;
    s->waves = s->m * s->n * s->count / (dl_tile_usual.m * dl_tile_usual.n * s->units);
    s->m_trans = m_longer ? kernel->a_trans : !kernel->b_trans;
    s->n_trans = m_longer ? kernel->b_trans : !kernel->a_trans;
    s->unaligned = two_byte && !(is_multiple_of_8(kernel->m) && is_multiple_of_8(kernel->k) &&
                                 (is_multiple_of_8(kernel->n) || !kernel->b_trans));
    s->features[LONG_SIDE] = at_least_1(s->m * dl_larger(s->count, 1.0));
    s->features[SHORT_SIDE] = at_least_1(s->n);
    s->features[SUMMED_SIDE] = at_least_1(s->k);
    s->features[LONG_TRANSPOSED] = flag(s->m_trans);
    s->features[SHORT_TRANSPOSED] = flag(s->n_trans);
    s->features[UNALIGNED] = flag(s->unaligned);
    s->features[UNALIGNED + 1] = s->features[UNALIGNED + 2] = 1.0F; /* of eight lanes */
}

/* The sides of the implicit product are known. */
static void conv_features_of(const struct dl_kernel *kernel, double positions, double taps, double stride_area,
                             struct dl_surface_shape *s)
{
    s->features[BATCH] = at_least_1(dl_smaller(kernel->batch, LARGE_BATCH));
    s->features[POSITIONS] = at_least_1(positions);
    s->features[CHANNELS] = at_least_1(s->channels);
    s->features[FILTERS] = at_least_1(s->filters);
    s->features[TAPS] = at_least_1(taps);
    s->features[STRIDE] = at_least_1(stride_area);
    s->tile_excess[0] = dl_tile_excess(s->m, s->n, s->count, s->units, dl_tile_large);
    s->tile_excess[1] = dl_tile_excess(s->m, s->n, s->count, s->units, dl_tile_usual);
    s->tile_excess[2] = dl_tile_excess(s->m, s->n, s->count, s->units, dl_tile_narrow);
    s->features[EXCESS] = at_least_1(s->tile_excess[0]);
    s->features[WAVES] = s->waves > 1e-30 ? (float)s->waves : 1.0F;
    s->features[SQUARE_3X3] = flag(s->fast_3x3);
    s->features[PADDING] = flag(s->padded);
    s->features[BATCH_PADDING] =
        s->fast_3x3 ? at_least_1(dl_whole_up(kernel->batch * (1.0 / IMAGE_TILE)) * IMAGE_TILE / kernel->batch) : 1.0F;
    s->features[STEPS] = (float)dl_tile_steps(s->tile_excess[1], s->waves);
    for (int i = STEPS + 1; i < DL_AXES; i++) s->features[i] = 1.0F;
}

static void conv_shape(const struct dl_kernel *kernel, bool two_byte, struct dl_surface_shape *s)
{
    double in_points = 1.0, out_points = 1.0, taps = 1.0, stride_area = 1.0, largest = 1.0;
    int wide = 0; /* dimensions in which the kernel is wider than one point */
    bool plain = kernel->groups <= 1.0, cube = true, padded = false;
    for (int d = 0; d < DL_DIMS; d++) {
        in_points *= kernel->in[d];
        out_points *= kernel->out[d];
        taps *= kernel->kernel[d];
        stride_area *= kernel->stride[d];
        if (kernel->dilation[d] > 1.0) plain = false;
        if (kernel->pad[d] > 0.0) padded = true;
        if (kernel->kernel[d] <= 1.0) continue;
        wide++;
        if (largest > 1.0 && kernel->kernel[d] != largest) cube = false;
        largest = dl_larger(largest, kernel->kernel[d]);
    }
    double groups = dl_larger(kernel->groups, 1.0);
    double channels = kernel->in_channels, filters = kernel->out_channels;
    if (groups > 1.0) {
        channels /= groups;
        filters /= groups;
    }
    bool fast = plain && cube && wide == 2 && stride_area <= 1.0;
    s->channels = channels;
    s->filters = filters;
    s->fast_3x3 = fast && largest == 3.0;
    s->fast_5x5 = fast && largest > 3.0;
    s->pointwise = taps <= 1.0;
    s->padded = padded;
    s->narrow = channels < 8.0;
    s->grouped = groups > 1.0;
    s->unaligned = two_byte && !(is_multiple_of_8(channels) && is_multiple_of_8(filters));
    s->count = groups;
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
    s->waves = s->m * s->n * groups / (dl_tile_usual.m * dl_tile_usual.n * s->units);
    conv_features_of(kernel, out_points, taps, stride_area, s);
}

void dl_surface_shape_of(const struct dl_kernel *kernel, double bytes_per_element, int64_t unit_count,
                         struct dl_surface_shape *out)
{
    *out = (struct dl_surface_shape){.op = kernel->op, .flop = kernel->flop, .count = 1.0,
                                     .units = unit_count > 0 ? (double)unit_count : 1.0, .launches = dl_larger(kernel->launches, 1.0)};
    out->bytes = (kernel->read_elements + kernel->write_elements) * bytes_per_element + kernel->extra_bytes;
    switch (kernel->op) {
    case DL_OP_GEMM: gemm_shape(kernel, bytes_per_element == 2.0, out); break;
    case DL_OP_CONV: conv_shape(kernel, bytes_per_element == 2.0, out); break;
    case DL_OP_STREAM:
    case DL_OPS:
        for (int i = 1; i < DL_LANES; i++) out->features[i] = 1.0F;
        out->features[0] = at_least_1(out->bytes);
        break;
    }
    dl_log2_lanes(out->features);
    if (kernel->op == DL_OP_CONV) dl_log2_lanes(out->features + DL_LANES);
}
