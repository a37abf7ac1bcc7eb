/* fake_cudnn.c - cuDNN of the fake device: convolution in any number of dimensions, with another
 * loop order than the checks of the probes. Other layers: fake_cudnn_layer.c. */
#include <cudnn.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fake_cuda/fake_gpu.h"
#include "tests/fake_cuda/fake_cudnn.h"

struct cudnnContext {
    int unused;
};
struct fakeConvolution {
    int dims, pad[3], stride[3], dilation[3], groups;
    cudnnMathType_t math;
};

size_t cudnnGetVersion(void) { return 91900; }
const char *cudnnGetErrorString(cudnnStatus_t status) {
    return status == CUDNN_STATUS_NOT_SUPPORTED ? "CUDNN_STATUS_NOT_SUPPORTED"
                                                : "a status of the fake";
}

#define MAKE(function, type, extra)                                                                \
    cudnnStatus_t function(type *out) {                                                            \
        *out = calloc(1, sizeof **out);                                                            \
        if (*out == NULL) return CUDNN_STATUS_NOT_INITIALIZED;                                     \
        extra;                                                                                     \
        return CUDNN_STATUS_SUCCESS;                                                               \
    }
#define DROP(function, type)                                                                       \
    cudnnStatus_t function(type d) {                                                               \
        free(d);                                                                                   \
        return CUDNN_STATUS_SUCCESS;                                                               \
    }
MAKE(cudnnCreate, cudnnHandle_t, )
MAKE(cudnnCreateTensorDescriptor, cudnnTensorDescriptor_t, )
DROP(cudnnDestroyTensorDescriptor, cudnnTensorDescriptor_t)
MAKE(cudnnCreateFilterDescriptor, cudnnFilterDescriptor_t, )
DROP(cudnnDestroyFilterDescriptor, cudnnFilterDescriptor_t)
MAKE(cudnnCreateConvolutionDescriptor, cudnnConvolutionDescriptor_t, (*out)->groups = 1)
DROP(cudnnDestroyConvolutionDescriptor, cudnnConvolutionDescriptor_t)

static enum fake_type fake_cudnn_type(cudnnDataType_t type) {
    return type == CUDNN_DATA_FLOAT ? FAKE_F32 : type == CUDNN_DATA_HALF ? FAKE_F16 : FAKE_BF16;
}

cudnnStatus_t cudnnSetTensorNdDescriptorEx(cudnnTensorDescriptor_t t, cudnnTensorFormat_t format,
                                           cudnnDataType_t type, int dims, const int *extents) {
    if (format != CUDNN_TENSOR_NCHW || dims < 4 || dims > 5) return CUDNN_STATUS_NOT_SUPPORTED;
    if (type == CUDNN_DATA_BFLOAT16 && fake_capability() < 80) return CUDNN_STATUS_NOT_SUPPORTED;
    t->type = fake_cudnn_type(type);
    t->dims = dims;
    t->count = 1;
    for (int i = 0; i < dims; i++) {
        if (extents[i] < 1) return CUDNN_STATUS_BAD_PARAM;
        t->extent[i] = extents[i];
        t->count *= (size_t)extents[i];
    }
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t t, cudnnTensorFormat_t format,
                                         cudnnDataType_t type, int n, int c, int h, int w) {
    const int extents[] = {n, c, h, w};
    return cudnnSetTensorNdDescriptorEx(t, format, type, 4, extents);
}
cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t f, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int dims, const int *extents) {
    return cudnnSetTensorNdDescriptorEx(f, format, type, dims, extents);
}
cudnnStatus_t cudnnSetConvolutionNdDescriptor(cudnnConvolutionDescriptor_t c, int dims,
                                              const int *pad, const int *stride,
                                              const int *dilation, cudnnConvolutionMode_t mode,
                                              cudnnDataType_t compute) {
    if (mode != CUDNN_CROSS_CORRELATION || compute != CUDNN_DATA_FLOAT || dims > 3)
        return CUDNN_STATUS_NOT_SUPPORTED;
    c->dims = dims;
    for (int i = 0; i < dims; i++) {
        c->pad[i] = pad[i];
        c->stride[i] = stride[i];
        c->dilation[i] = dilation[i];
    }
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t c, int groups) {
    c->groups = groups;
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t c, cudnnMathType_t math) {
    c->math = math;
    return CUDNN_STATUS_SUCCESS;
}

/* Checks shapes and groups as the library does. */
static bool fits(const struct fakeTensor *x, const struct fakeTensor *w, const struct fakeTensor *y,
                 const struct fakeConvolution *c) {
    if (x->dims != c->dims + 2 || w->dims != x->dims || y->dims != x->dims || x->type != w->type ||
        x->type != y->type)
        return false;
    if (x->extent[0] != y->extent[0] || x->extent[1] != w->extent[1] * c->groups ||
        y->extent[1] != w->extent[0] || w->extent[0] % c->groups != 0)
        return false;
    for (int i = 0; i < c->dims; i++) {
        const int reach = c->dilation[i] * (w->extent[2 + i] - 1) + 1;
        if (y->extent[2 + i] != (x->extent[2 + i] + 2 * c->pad[i] - reach) / c->stride[i] + 1)
            return false;
    }
    return true;
}

/* As n of an operation: all shapes padded to three dimensions. */
struct shape {
    long n, c, f, groups, in[3], kernel[3], out[3], stride[3], pad[3], dilation[3];
};
static struct shape shape_of(const struct fakeTensor *x, const struct fakeTensor *w,
                             const struct fakeTensor *y, const struct fakeConvolution *c) {
    struct shape s = {.n = x->extent[0], .c = x->extent[1], .f = y->extent[1], .groups = c->groups};
    for (int i = 0; i < 3; i++) {
        const int from = i - (3 - c->dims);
        s.in[i] = from < 0 ? 1 : x->extent[2 + from];
        s.kernel[i] = from < 0 ? 1 : w->extent[2 + from];
        s.out[i] = from < 0 ? 1 : y->extent[2 + from];
        s.stride[i] = from < 0 ? 1 : c->stride[from];
        s.pad[i] = from < 0 ? 0 : c->pad[from];
        s.dilation[i] = from < 0 ? 1 : c->dilation[from];
    }
    return s;
}
_Static_assert(sizeof(struct shape) <= sizeof(((struct fake_op *)0)->n), "a shape is kept in n");

static size_t at3(size_t base, const long *extent, long a, long b, long c) {
    return ((base * (size_t)extent[0] + (size_t)a) * (size_t)extent[1] + (size_t)b) *
               (size_t)extent[2] +
           (size_t)c;
}
static size_t split3(size_t index, const long *extent, long *at) {
    for (int i = 2; i >= 0; i--) {
        at[i] = (long)(index % (size_t)extent[i]);
        index /= (size_t)extent[i];
    }
    return index; /* what stands before the positions */
}

static double forward(const struct fake_op *op, size_t index) {
    struct shape s;
    long at[3];
    memcpy(&s, op->n, sizeof s);
    const size_t image = split3(index, s.out, at), n = image / (size_t)s.f, f = image % (size_t)s.f;
    const size_t each = (size_t)(s.c / s.groups), group = f / (size_t)(s.f / s.groups);
    double sum = 0;
    for (long a = 0; a < s.kernel[0]; a++)
        for (long b = 0; b < s.kernel[1]; b++)
            for (long c = 0; c < s.kernel[2]; c++) {
                const long p = at[0] * s.stride[0] - s.pad[0] + a * s.dilation[0],
                           q = at[1] * s.stride[1] - s.pad[1] + b * s.dilation[1],
                           r = at[2] * s.stride[2] - s.pad[2] + c * s.dilation[2];
                if (p < 0 || q < 0 || r < 0 || p >= s.in[0] || q >= s.in[1] || r >= s.in[2])
                    continue;
                for (size_t k = 0; k < each; k++)
                    sum += fake_load(op->in[0], op->in_type,
                                     at3(n * (size_t)s.c + group * each + k, s.in, p, q, r),
                                     op->sequence) *
                           fake_load(op->in[1], op->in_type, at3(f * each + k, s.kernel, a, b, c),
                                     op->sequence);
            }
    return sum;
}

/* Tries all output positions: slow, but obviously correct. */
static double data(const struct fake_op *op, size_t index) {
    struct shape s;
    long at[3];
    memcpy(&s, op->n, sizeof s);
    const size_t image = split3(index, s.in, at), n = image / (size_t)s.c,
                 channel = image % (size_t)s.c;
    const size_t each = (size_t)(s.c / s.groups), filters = (size_t)(s.f / s.groups),
                 group = channel / each;
    double sum = 0;
    for (long p = 0; p < s.out[0]; p++)
        for (long q = 0; q < s.out[1]; q++)
            for (long r = 0; r < s.out[2]; r++) {
                const long d[3] = {at[0] + s.pad[0] - p * s.stride[0],
                                   at[1] + s.pad[1] - q * s.stride[1],
                                   at[2] + s.pad[2] - r * s.stride[2]};
                bool hit = true;
                for (int i = 0; i < 3; i++)
                    hit = hit && d[i] >= 0 && d[i] % s.dilation[i] == 0 &&
                          d[i] / s.dilation[i] < s.kernel[i];
                for (size_t f = group * filters; hit && f < (group + 1) * filters; f++)
                    sum += fake_load(op->in[0], op->in_type,
                                     at3(n * (size_t)s.f + f, s.out, p, q, r), op->sequence) *
                           fake_load(op->in[1], op->in_type,
                                     at3(f * each + channel % each, s.kernel, d[0] / s.dilation[0],
                                         d[1] / s.dilation[1], d[2] / s.dilation[2]),
                                     op->sequence);
            }
    return sum;
}

static double weights(const struct fake_op *op, size_t index) {
    struct shape s;
    long tap[3];
    memcpy(&s, op->n, sizeof s);
    const size_t each = (size_t)(s.c / s.groups), row = split3(index, s.kernel, tap),
                 f = row / each, k = row % each;
    const size_t channel = f / (size_t)(s.f / s.groups) * each + k;
    double sum = 0;
    for (long p = 0; p < s.out[0]; p++)
        for (long q = 0; q < s.out[1]; q++)
            for (long r = 0; r < s.out[2]; r++) {
                const long a = p * s.stride[0] - s.pad[0] + tap[0] * s.dilation[0],
                           b = q * s.stride[1] - s.pad[1] + tap[1] * s.dilation[1],
                           c = r * s.stride[2] - s.pad[2] + tap[2] * s.dilation[2];
                if (a < 0 || b < 0 || c < 0 || a >= s.in[0] || b >= s.in[1] || c >= s.in[2])
                    continue;
                for (size_t n = 0; n < (size_t)s.n; n++)
                    sum += fake_load(op->in[0], op->in_type,
                                     at3(n * (size_t)s.c + channel, s.in, a, b, c), op->sequence) *
                           fake_load(op->in[1], op->in_type,
                                     at3(n * (size_t)s.f + f, s.out, p, q, r), op->sequence);
            }
    return sum;
}

static cudnnStatus_t run(double (*value)(const struct fake_op *, size_t),
                         const struct fakeTensor *x, const struct fakeTensor *w,
                         const struct fakeTensor *y, const struct fakeConvolution *c,
                         const void *first, const void *second, const struct fakeTensor *out,
                         void *result) {
    if (!fits(x, w, y, c)) return CUDNN_STATUS_BAD_PARAM;
    const struct shape s = shape_of(x, w, y, c);
    const double taps =
                     (double)(s.kernel[0] * s.kernel[1] * s.kernel[2]) * (double)(s.c / s.groups),
                 pixels = (double)y->count / (double)s.f;
    struct fake_op op = {.out = result,
                         .count = out->count,
                         .type = out->type,
                         .in_type = x->type,
                         .value = value,
                         .in = {first, second}};
    memcpy(op.n, &s, sizeof s);
    fake_kernel(2 * (double)y->count * taps,
                (double)(x->count + w->count + y->count) * (double)fake_bytes(x->type), x->type,
                x->type == FAKE_F32 && c->math != CUDNN_FMA_MATH && fake_capability() >= 80, pixels,
                (double)s.f, taps);
    fake_record(op);
    return CUDNN_STATUS_SUCCESS;
}

/* One algorithm, with some workspace. */
#define FIND(wanted, found, best, x, w, y, c)                                                      \
    do {                                                                                           \
        *(found) = 0;                                                                              \
        if (!fits(x, w, y, c)) return CUDNN_STATUS_BAD_PARAM;                                      \
        if ((wanted) < 1) return CUDNN_STATUS_BAD_PARAM;                                           \
        memset((best), 0, sizeof *(best));                                                         \
        (best)->memory = 1 << 20;                                                                  \
        (best)->mathType = (c)->math;                                                              \
        *(found) = 1;                                                                              \
    } while (0)

cudnnStatus_t cudnnFindConvolutionForwardAlgorithmEx(
    cudnnHandle_t h, cudnnTensorDescriptor_t xd, const void *x, cudnnFilterDescriptor_t wd,
    const void *w, cudnnConvolutionDescriptor_t c, cudnnTensorDescriptor_t yd, void *y, int wanted,
    int *found, cudnnConvolutionFwdAlgoPerf_t *best, void *workspace, size_t workspace_size) {
    (void)h, (void)x, (void)w, (void)y, (void)workspace, (void)workspace_size;
    FIND(wanted, found, best, xd, wd, yd, c);
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnFindConvolutionBackwardDataAlgorithmEx(
    cudnnHandle_t h, cudnnFilterDescriptor_t wd, const void *w, cudnnTensorDescriptor_t yd,
    const void *y, cudnnConvolutionDescriptor_t c, cudnnTensorDescriptor_t xd, void *x, int wanted,
    int *found, cudnnConvolutionBwdDataAlgoPerf_t *best, void *workspace, size_t workspace_size) {
    (void)h, (void)x, (void)w, (void)y, (void)workspace, (void)workspace_size;
    FIND(wanted, found, best, xd, wd, yd, c);
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnFindConvolutionBackwardFilterAlgorithmEx(
    cudnnHandle_t h, cudnnTensorDescriptor_t xd, const void *x, cudnnTensorDescriptor_t yd,
    const void *y, cudnnConvolutionDescriptor_t c, cudnnFilterDescriptor_t wd, void *w, int wanted,
    int *found, cudnnConvolutionBwdFilterAlgoPerf_t *best, void *workspace, size_t workspace_size) {
    (void)h, (void)x, (void)w, (void)y, (void)workspace, (void)workspace_size;
    FIND(wanted, found, best, xd, wd, yd, c);
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t h, const void *alpha,
                                      cudnnTensorDescriptor_t xd, const void *x,
                                      cudnnFilterDescriptor_t wd, const void *w,
                                      cudnnConvolutionDescriptor_t c,
                                      cudnnConvolutionFwdAlgo_t algorithm, void *workspace,
                                      size_t workspace_size, const void *beta,
                                      cudnnTensorDescriptor_t yd, void *y) {
    (void)h, (void)alpha, (void)beta, (void)algorithm, (void)workspace;
    return workspace_size < 1 << 20 ? CUDNN_STATUS_BAD_PARAM
                                    : run(forward, xd, wd, yd, c, x, w, yd, y);
}
cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t h, const void *alpha,
                                           cudnnFilterDescriptor_t wd, const void *w,
                                           cudnnTensorDescriptor_t yd, const void *y,
                                           cudnnConvolutionDescriptor_t c,
                                           cudnnConvolutionBwdDataAlgo_t algorithm, void *workspace,
                                           size_t workspace_size, const void *beta,
                                           cudnnTensorDescriptor_t xd, void *x) {
    (void)h, (void)alpha, (void)beta, (void)algorithm, (void)workspace;
    return workspace_size < 1 << 20 ? CUDNN_STATUS_BAD_PARAM
                                    : run(data, xd, wd, yd, c, y, w, xd, x);
}
cudnnStatus_t cudnnConvolutionBackwardFilter(
    cudnnHandle_t h, const void *alpha, cudnnTensorDescriptor_t xd, const void *x,
    cudnnTensorDescriptor_t yd, const void *y, cudnnConvolutionDescriptor_t c,
    cudnnConvolutionBwdFilterAlgo_t algorithm, void *workspace, size_t workspace_size,
    const void *beta, cudnnFilterDescriptor_t wd, void *w) {
    (void)h, (void)alpha, (void)beta, (void)algorithm, (void)workspace;
    return workspace_size < 1 << 20 ? CUDNN_STATUS_BAD_PARAM
                                    : run(weights, xd, wd, yd, c, x, y, wd, w);
}
