/* surface_shape.c - what a surface sees of a kernel: sides of its (implicit) matrix product, classes, features.
 * Not here: the time (surface_time.c).
 */
#include "model/surface.h"
#include "model/surface_math.h"
#include "model/surface_tiles.h"

enum { BATCH, POSITIONS, CHANNELS, FILTERS, TAPS, STRIDE, EXCESS, WAVES, SQUARE_3X3, PADDING };
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

/* Flags are as far apart as this many octaves (the lengths scale it). */
static const double FLAG = 2.0;
/* Images that a direct or Winograd convolution kernel takes at once. */
static const double IMAGE_TILE = 16.0;
/* Largest batch of the convolution samples (DeepBench). From there on more images are more of the same tiles: the base scales, the
 * correction stays. */
static const double LARGE_BATCH = 32.0;

static bool is_multiple_of_8(double x)
{
    return x == 8.0 * dl_whole_up(x / 8.0);
}

static double octaves(double x)
{
    return x > 1.0 ? dl_log2_near(x) : 0.0;
}

static double flag(bool set)
{
    return set ? FLAG : 0.0;
}

static double conv_feature(const struct dl_surface_shape *s, int axis)
{
    switch (axis) {
    case BATCH: return octaves(dl_smaller(s->batch, LARGE_BATCH));
    case POSITIONS: return octaves(s->positions);
    case CHANNELS: return octaves(s->channels);
    case FILTERS: return octaves(s->filters);
    case TAPS: return octaves(s->taps);
    case STRIDE: return octaves(s->stride_area);
    case EXCESS: return octaves(dl_tile_excess(s->m, s->n, s->count, s->units, dl_tile_large));
    case WAVES: return s->waves > 0.0 ? dl_log2_near(s->waves) : 0.0;
    case SQUARE_3X3: return flag(s->fast_3x3);
    case PADDING: return flag(s->padded);
    default: return 0.0;
    }
}

static double gemm_feature(const struct dl_surface_shape *s, int axis)
{
    switch (axis) {
    case LONG_SIDE: return octaves(s->m * dl_larger(s->count, 1.0));
    case SHORT_SIDE: return octaves(s->n);
    case SUMMED_SIDE: return octaves(s->k);
    case LONG_TRANSPOSED: return flag(s->m_trans);
    case SHORT_TRANSPOSED: return flag(s->n_trans);
    case UNALIGNED: return flag(s->unaligned);
    default: return 0.0;
    }
}

double dl_surface_feature(const struct dl_surface_shape *shape, int axis)
{
    switch (shape->op) {
    case DL_OP_CONV: return conv_feature(shape, axis);
    case DL_OP_GEMM: return gemm_feature(shape, axis);
    case DL_OP_STREAM:
    case DL_OPS: break;
    }
    return octaves(shape->bytes);
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
    s->m_trans = m_longer ? kernel->a_trans : !kernel->b_trans;
    s->n_trans = m_longer ? kernel->b_trans : !kernel->a_trans;
    s->unaligned = two_byte && !(is_multiple_of_8(kernel->m) && is_multiple_of_8(kernel->k) &&
                                 (is_multiple_of_8(kernel->n) || !kernel->b_trans));
}

static void conv_shape(const struct dl_kernel *kernel, bool two_byte, struct dl_surface_shape *s)
{
    double in_points = 1.0, out_points = 1.0, taps = 1.0, largest = 1.0;
    int wide = 0; /* dimensions in which the kernel is wider than one point */
    bool plain = kernel->groups <= 1.0, cube = true, padded = false;
    for (int d = 0; d < DL_DIMS; d++) {
        in_points *= kernel->in[d];
        out_points *= kernel->out[d];
        taps *= kernel->kernel[d];
        s->stride_area *= kernel->stride[d];
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
    bool fast = plain && cube && wide == 2 && s->stride_area <= 1.0;
    s->batch = kernel->batch;
    s->positions = out_points;
    s->channels = channels;
    s->filters = filters;
    s->taps = taps;
    s->fast_3x3 = fast && largest == 3.0;
    s->fast_5x5 = fast && largest > 3.0;
    s->pointwise = taps <= 1.0;
    s->padded = padded;
    if (s->fast_3x3 && kernel->batch > 0.0)
        s->batch_padding = dl_whole_up(kernel->batch * (1.0 / IMAGE_TILE)) * IMAGE_TILE / kernel->batch;
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
}

void dl_surface_shape_of(const struct dl_kernel *kernel, double bytes_per_element, int64_t unit_count,
                         struct dl_surface_shape *out)
{
    double units = unit_count > 0 ? (double)unit_count : 1.0;
    *out = (struct dl_surface_shape){.op = kernel->op, .flop = kernel->flop, .stride_area = 1.0, .batch_padding = 1.0, .count = 1.0,
                                     .units = units, .launches = dl_larger(kernel->launches, 1.0)};
    out->bytes = (kernel->read_elements + kernel->write_elements) * bytes_per_element + kernel->extra_bytes;
    if (kernel->op == DL_OP_GEMM) gemm_shape(kernel, bytes_per_element == 2.0, out);
    if (kernel->op == DL_OP_CONV) conv_shape(kernel, bytes_per_element == 2.0, out);
    out->waves = out->m * out->n * out->count / (dl_tile_usual.m * dl_tile_usual.n * units);
}
