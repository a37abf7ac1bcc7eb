/* probe_cudnn_conv.c - probe "gpu-conv": convolution by cuDNN in two or three dimensions, passes
 * fwd, bwd_data, bwd_filter; the fastest algorithm by the library's own search, as frameworks with
 * auto-tuning take it; NCHW. Shape "n= c= f= h= r= s= p=" as in probe_cpu_conv.c, and where they
 * differ w= (h), q= (kernel width: r), t= (padding in width: p), d= (depth; 1), z= (kernel depth: r
 * in three dimensions), g= (groups; 1), e= (dilation; 1), prec=. */
#include "calibrate/probes/cudnn/probe_cudnn.h"

#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_DIMS = 3, ALGORITHMS = 16 };
/* of the device's memory */
static const double WORKSPACE_BYTES = 1024.0 * 1024 * 1024, WORKSPACE_FRAC = 0.125;

struct conv {
    enum { FORWARD, DATA, WEIGHTS } pass;
    const struct dl_gpu_precision *precision;
    cudnnHandle_t handle;
    cudnnTensorDescriptor_t x, y;
    cudnnFilterDescriptor_t w;
    cudnnConvolutionDescriptor_t op;
    int dims, n, c, f, groups;
    int in[MAX_DIMS], kernel[MAX_DIMS], stride[MAX_DIMS], pad[MAX_DIMS], dilation[MAX_DIMS],
        out[MAX_DIMS];
    size_t x_count, w_count, y_count; /* elements, rounded up for alignment */
    int algorithm;
    size_t workspace_bytes;
    long sets;
    char *pool, *room;
    char name[48];
};

static void *workspace; /* kept for all points */
static size_t workspace_size, most_workspace;

static void conv_close(void *state) {
    struct conv *c = state;
    if (c->x != NULL) cudnnDestroyTensorDescriptor(c->x);
    if (c->y != NULL) cudnnDestroyTensorDescriptor(c->y);
    if (c->w != NULL) cudnnDestroyFilterDescriptor(c->w);
    if (c->op != NULL) cudnnDestroyConvolutionDescriptor(c->op);
}

static int number(const struct dl_point *point, const char *key, int fallback) {
    return (int)dl_point_number(point, key, fallback);
}

static enum dl_code read_shape(const struct dl_point *point, struct conv *c, struct dl_err *err) {
    const int depth = number(point, "d", 1), r = number(point, "r", 1), s = number(point, "s", 1),
              p = number(point, "p", 0);
    const int all_in[] = {depth, number(point, "h", 0), number(point, "w", number(point, "h", 0))};
    const int all_kernel[] = {depth > 1 ? number(point, "z", r) : 1, r, number(point, "q", r)};
    const int all_pad[] = {depth > 1 ? p : 0, p, number(point, "t", p)};
    c->pass = strcmp(point->pass, "fwd") == 0        ? FORWARD
              : strcmp(point->pass, "bwd_data") == 0 ? DATA
                                                     : WEIGHTS;
    c->precision = dl_gpu_precision_of(point);
    c->n = number(point, "n", 1);
    c->c = number(point, "c", 0);
    c->f = number(point, "f", 0);
    c->groups = number(point, "g", 1);
    c->dims = depth > 1 ? 3 : 2;
    double x = c->n * (double)c->c, y = c->n * (double)c->f, w = c->f * (double)c->c / c->groups;
    bool good = c->precision != NULL && c->precision->type != DL_GPU_F8 && c->n > 0 && c->c > 0 &&
                c->f > 0 && c->groups > 0 && s > 0;
    for (int i = 0; i < c->dims && good; i++) {
        const int from = i + MAX_DIMS - c->dims;
        c->in[i] = all_in[from];
        c->kernel[i] = all_kernel[from];
        c->pad[i] = all_pad[from];
        c->stride[i] = s;
        c->dilation[i] = number(point, "e", 1);
        c->out[i] = (c->in[i] + 2 * c->pad[i] - c->dilation[i] * (c->kernel[i] - 1) - 1) / s + 1;
        good = c->in[i] > 0 && c->kernel[i] > 0 && c->out[i] > 0;
        x *= c->in[i];
        y *= c->out[i];
        w *= c->kernel[i];
    }
    if (!good) return dl_fail(err, DL_ERR_SYSTEM, "cannot read the shape '%s'", point->shape);
    c->x_count = ((size_t)x + 255) / 256 * 256;
    c->y_count = ((size_t)y + 255) / 256 * 256;
    c->w_count = ((size_t)w + 255) / 256 * 256;
    return DL_OK;
}

static enum dl_code describe(struct conv *c, struct dl_err *err) {
    const cudnnDataType_t type = (cudnnDataType_t)dl_cudnn_type(c->precision->type);
    int x[2 + MAX_DIMS] = {c->n, c->c}, y[2 + MAX_DIMS] = {c->n, c->f},
              w[2 + MAX_DIMS] = {c->f, c->c / c->groups};
    for (int i = 0; i < c->dims; i++) {
        x[2 + i] = c->in[i];
        y[2 + i] = c->out[i];
        w[2 + i] = c->kernel[i];
    }
    DL_TRY(dl_cudnn_check((int)cudnnCreateTensorDescriptor(&c->x), "input", err));
    DL_TRY(dl_cudnn_check((int)cudnnCreateTensorDescriptor(&c->y), "output", err));
    DL_TRY(dl_cudnn_check((int)cudnnCreateFilterDescriptor(&c->w), "weights", err));
    DL_TRY(dl_cudnn_check((int)cudnnCreateConvolutionDescriptor(&c->op), "convolution", err));
    DL_TRY(dl_cudnn_check(
        (int)cudnnSetTensorNdDescriptorEx(c->x, CUDNN_TENSOR_NCHW, type, 2 + c->dims, x), "input",
        err));
    DL_TRY(dl_cudnn_check(
        (int)cudnnSetTensorNdDescriptorEx(c->y, CUDNN_TENSOR_NCHW, type, 2 + c->dims, y), "output",
        err));
    DL_TRY(dl_cudnn_check(
        (int)cudnnSetFilterNdDescriptor(c->w, type, CUDNN_TENSOR_NCHW, 2 + c->dims, w), "weights",
        err));
    DL_TRY(dl_cudnn_check((int)cudnnSetConvolutionNdDescriptor(c->op, c->dims, c->pad, c->stride,
                                                               c->dilation, CUDNN_CROSS_CORRELATION,
                                                               CUDNN_DATA_FLOAT),
                          "convolution", err));
    DL_TRY(dl_cudnn_check((int)cudnnSetConvolutionGroupCount(c->op, c->groups), "groups", err));
    /* Since cuDNN 8 the default lets fp32 run as tf32; FMA forbids it. */
    const bool exact = c->precision->type == DL_GPU_F32 && c->precision->input_error_frac <= 0;
    const cudnnMathType_t math = exact                              ? CUDNN_FMA_MATH
                                 : c->precision->type == DL_GPU_F32 ? CUDNN_DEFAULT_MATH
                                                                    : CUDNN_TENSOR_OP_MATH;
    return dl_cudnn_check((int)cudnnSetConvolutionMathType(c->op, math), "math type", err);
}

/* Elements of the two operands and of the result, in the order of the pool. */
static void sizes(const struct conv *c, size_t *first, size_t *second, size_t *result) {
    *first = c->pass == DATA ? c->y_count : c->x_count;
    *second = c->pass == WEIGHTS ? c->y_count : c->w_count;
    *result = c->pass == FORWARD ? c->y_count : c->pass == DATA ? c->x_count : c->w_count;
}

struct operands {
    void *first, *second, *result;
};

static struct operands operands_of(const struct conv *c, long set) {
    size_t first, second, result;
    const size_t in = dl_gpu_type_bytes(c->precision->type),
                 out = dl_gpu_type_bytes(c->precision->out);
    sizes(c, &first, &second, &result);
    char *at = c->pool + (size_t)set * (first + second) * in;
    return (struct operands){at, at + first * in, c->room + (size_t)set * result * out};
}

static enum dl_code take(struct conv *c, int status, int algorithm, int math, size_t memory,
                         const char *what, struct dl_err *err) {
    if (status != CUDNN_STATUS_SUCCESS)
        return dl_fail(err, DL_ERR_SYSTEM, "cuDNN has no algorithm for this shape (%s)", what);
    c->algorithm = algorithm;
    c->workspace_bytes = memory;
    if (memory > most_workspace) { /* of all shapes so far */
        char text[32];
        most_workspace = memory;
        snprintf(text, sizeof text, "%zu", memory);
        dl_print_fact("gpu_workspace_bytes", text);
    }
    snprintf(c->name, sizeof c->name, "cudnn:%s algorithm %d math %d", what, algorithm, math);
    return c->precision->type == DL_GPU_F32 && c->precision->input_error_frac <= 0
               ? DL_OK
               : dl_cudnn_check((int)cudnnSetConvolutionMathType(c->op, (cudnnMathType_t)math),
                                "math type", err);
}

/* The three searches differ in the type of their results. */
#define SEARCH(type, function, what, ...)                                                          \
    do {                                                                                           \
        type best[ALGORITHMS] = {{.status = CUDNN_STATUS_NOT_SUPPORTED}};                          \
        int found = 0;                                                                             \
        const cudnnStatus_t status = function(c->handle, __VA_ARGS__, o.result, ALGORITHMS,        \
                                              &found, best, workspace, workspace_size);            \
        DL_TRY(dl_cudnn_check((int)status, "searching for an algorithm", err));                    \
        return take(c, (int)best[0].status, (int)best[0].algo, (int)best[0].mathType,              \
                    best[0].memory, what, err);                                                    \
    } while (0)

static enum dl_code search(struct conv *c, struct dl_err *err) {
    const struct operands o = operands_of(c, 0);
    if (c->pass == FORWARD)
        SEARCH(cudnnConvolutionFwdAlgoPerf_t, cudnnFindConvolutionForwardAlgorithmEx, "fwd", c->x,
               o.first, c->w, o.second, c->op, c->y);
    if (c->pass == DATA)
        SEARCH(cudnnConvolutionBwdDataAlgoPerf_t, cudnnFindConvolutionBackwardDataAlgorithmEx,
               "bwd_data", c->w, o.second, c->y, o.first, c->op, c->x);
    SEARCH(cudnnConvolutionBwdFilterAlgoPerf_t, cudnnFindConvolutionBackwardFilterAlgorithmEx,
           "bwd_filter", c->x, o.first, c->y, o.second, c->op, c->w);
}

static enum dl_code conv_open(const struct dl_point *point, void *state, struct dl_err *err) {
    struct conv *c = state;
    const struct dl_gpu *gpu;
    void *handle, *pool, *room;
    size_t first, second, result;
    DL_TRY(read_shape(point, c, err));
    DL_TRY(dl_gpu_open(&gpu, err));
    if (gpu->capability < c->precision->capability)
        return dl_fail(err, DL_ERR_SYSTEM, "%s needs compute capability %d.%d", c->precision->name,
                       c->precision->capability / 10, c->precision->capability % 10);
    DL_TRY(dl_cudnn_open(&handle, err));
    c->handle = handle;
    if (workspace == NULL) {
        workspace_size = (size_t)fmin(WORKSPACE_BYTES, WORKSPACE_FRAC * gpu->memory_bytes);
        DL_TRY(dl_gpu_check((int)cudaMalloc(&workspace, workspace_size), "workspace", err));
    }
    sizes(c, &first, &second, &result);
    const size_t in = dl_gpu_type_bytes(c->precision->type),
                 out = dl_gpu_type_bytes(c->precision->out);
    c->sets = dl_gpu_sets((double)(first + second) * (double)in + (double)result * (double)out);
    DL_TRY(dl_gpu_pool(c->precision->type, (size_t)c->sets * (first + second), &pool, err));
    DL_TRY(dl_gpu_room((size_t)c->sets * result * out, &room, err));
    c->pool = pool;
    c->room = room;
    DL_TRY(describe(c, err));
    return search(c, err);
}

static enum dl_code once(void *state, long call, struct dl_err *err) {
    static const float one = 1, zero = 0;
    const struct conv *c = state;
    const struct operands o = operands_of(c, call % c->sets);
    cudnnStatus_t status;
    if (c->pass == FORWARD)
        status = cudnnConvolutionForward(c->handle, &one, c->x, o.first, c->w, o.second, c->op,
                                         (cudnnConvolutionFwdAlgo_t)c->algorithm, workspace,
                                         c->workspace_bytes, &zero, c->y, o.result);
    else if (c->pass == DATA)
        status = cudnnConvolutionBackwardData(c->handle, &one, c->w, o.second, c->y, o.first, c->op,
                                              (cudnnConvolutionBwdDataAlgo_t)c->algorithm,
                                              workspace, c->workspace_bytes, &zero, c->x, o.result);
    else
        status =
            cudnnConvolutionBackwardFilter(c->handle, &one, c->x, o.first, c->y, o.second, c->op,
                                           (cudnnConvolutionBwdFilterAlgo_t)c->algorithm, workspace,
                                           c->workspace_bytes, &zero, c->w, o.result);
    return dl_cudnn_check((int)status, "convolution", err);
}

static double conv_run(void *state, long calls, struct dl_err *err) {
    return dl_gpu_time(once, state, calls, err);
}
static const char *implementation(const void *state) { return ((const struct conv *)state)->name; }

/* Naive sums for single elements. A position has an index per dimension. */
struct walk {
    const struct conv *c;
    size_t first, second; /* where the operands begin in the pool */
};

static size_t row_of(int outer, int channels, int channel) {
    return (size_t)outer * (size_t)channels + (size_t)channel;
}

static double pool_at(const struct conv *c, size_t base, size_t row, const int *extent,
                      const int *at) {
    size_t index = row;
    for (int i = 0; i < c->dims; i++) index = index * (size_t)extent[i] + (size_t)at[i];
    return dl_gpu_pool_value(c->precision->type, base + index);
}

/* Next position below `extent`; false after the last. */
static bool advance(const struct conv *c, const int *extent, int *at) {
    for (int i = c->dims - 1; i >= 0; i--) {
        if (++at[i] < extent[i]) return true;
        at[i] = 0;
    }
    return false;
}

/* Input position that tap `tap` of output position `out` reads; false: padding. */
static bool reach(const struct conv *c, const int *out, const int *tap, int *in) {
    for (int i = 0; i < c->dims; i++) {
        in[i] = out[i] * c->stride[i] - c->pad[i] + tap[i] * c->dilation[i];
        if (in[i] < 0 || in[i] >= c->in[i]) return false;
    }
    return true;
}

static double sum_forward(const struct walk *w, int n, int f, const int *out) {
    const struct conv *c = w->c;
    const int each = c->c / c->groups, group = f / (c->f / c->groups);
    double sum = 0;
    for (int k = 0; k < each; k++) {
        int tap[MAX_DIMS] = {0}, in[MAX_DIMS];
        do {
            if (reach(c, out, tap, in))
                sum += pool_at(c, w->first, row_of(n, c->c, group * each + k), c->in, in) *
                       pool_at(c, w->second, row_of(f, each, k), c->kernel, tap);
        } while (advance(c, c->kernel, tap));
    }
    return sum;
}

/* Output positions that read this input position through a tap. */
static double sum_data(const struct walk *w, int n, int channel, const int *in) {
    const struct conv *c = w->c;
    const int each = c->c / c->groups, filters = c->f / c->groups, group = channel / each;
    double sum = 0;
    int tap[MAX_DIMS] = {0};
    do {
        int out[MAX_DIMS];
        bool there = true;
        for (int i = 0; i < c->dims; i++) {
            const int at = in[i] + c->pad[i] - tap[i] * c->dilation[i];
            there = there && at >= 0 && at % c->stride[i] == 0 && at / c->stride[i] < c->out[i];
            out[i] = at / c->stride[i];
        }
        for (int k = 0; k < filters && there; k++)
            sum += pool_at(c, w->first, row_of(n, c->f, group * filters + k), c->out, out) *
                   pool_at(c, w->second, row_of(group * filters + k, each, channel % each),
                           c->kernel, tap);
    } while (advance(c, c->kernel, tap));
    return sum;
}

static double sum_weights(const struct walk *w, int f, int k, const int *tap) {
    const struct conv *c = w->c;
    const int each = c->c / c->groups, group = f / (c->f / c->groups);
    double sum = 0;
    for (int n = 0; n < c->n; n++) {
        int out[MAX_DIMS] = {0}, in[MAX_DIMS];
        do {
            if (reach(c, out, tap, in))
                sum += pool_at(c, w->first, row_of(n, c->c, group * each + k), c->in, in) *
                       pool_at(c, w->second, row_of(n, c->f, f), c->out, out);
        } while (advance(c, c->out, out));
    }
    return sum;
}

static double product_of(const struct conv *c, const int *extent) {
    double product = 1;
    for (int i = 0; i < c->dims; i++) product *= extent[i];
    return product;
}

static enum dl_code conv_verify(void *state, struct dl_err *err) {
    enum { SOME = 6 };
    /* Winograd and FFT round more than a plain sum (unverified: a few times for 3x3 tiles in fp32,
     * more with fp16 transforms). */
    static const double SLACK = 30;
    struct conv *c = state;
    size_t first, second, result;
    uint64_t random = 4711;
    sizes(c, &first, &second, &result);
    const long set = c->sets - 1;
    const struct walk w = {c, (size_t)set * (first + second),
                           (size_t)set * (first + second) + first};
    const int rows = c->pass == WEIGHTS ? c->f : c->n;
    const int columns = c->pass == FORWARD ? c->f : c->pass == DATA ? c->c : c->c / c->groups;
    const int *extent = c->pass == FORWARD ? c->out : c->pass == DATA ? c->in : c->kernel;
    const double terms = c->pass == FORWARD ? c->c / c->groups * product_of(c, c->kernel)
                         : c->pass == DATA  ? c->f / c->groups * product_of(c, c->kernel)
                                            : c->n * product_of(c, c->out);
    DL_TRY(once(c, set, err));
    for (int t = 0; t < SOME; t++) {
        int at[MAX_DIMS];
        double got = 0;
        const int row = (int)(dl_random_next(&random) % (uint64_t)rows),
                  column = (int)(dl_random_next(&random) % (uint64_t)columns);
        size_t index = (size_t)row * (size_t)columns + (size_t)column;
        for (int i = 0; i < c->dims; i++) {
            at[i] = (int)(dl_random_next(&random) % (uint64_t)extent[i]);
            index = index * (size_t)extent[i] + (size_t)at[i];
        }
        const double sum = c->pass == FORWARD ? sum_forward(&w, row, column, at)
                           : c->pass == DATA  ? sum_data(&w, row, column, at)
                                              : sum_weights(&w, row, column, at);
        DL_TRY(dl_gpu_read(c->precision->out, operands_of(c, set).result, index, &got, err));
        DL_TRY(dl_gpu_judge(c->precision, terms, SLACK, index, got, sum, err));
    }
    return DL_OK;
}

const struct dl_probe dl_probe_gpu_conv =
    DL_PROBE("gpu-conv", "convolution, three passes, cuDNN", 1e-3, dl_gpu_absent, struct conv,
             conv_open, conv_run, .verify = conv_verify, .implementation = implementation,
             .close = conv_close, .preemptions = dl_gpu_disturbances);
