/* import_shape.c - shapes and small constants of ONNX operators that compute: element-wise,
 * convolution, pooling, GEMM, reductions, LSTM. Those that only rearrange are in import_view.c.
 * Semantics: the ONNX operator reference (onnx-operators).
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "model/core/text.h"
#include "import/import_graph.h"

struct dl_onnx_value *dl_onnx_in(const struct dl_onnx_graph *g, const struct dl_onnx_node *n,
                                 int i) {
    return i < n->input_count && n->inputs[i] >= 0 ? &g->values[n->inputs[i]] : NULL;
}

struct dl_onnx_value *dl_onnx_out(const struct dl_onnx_graph *g, const struct dl_onnx_node *n,
                                  int i) {
    return i < n->output_count && n->outputs[i] >= 0 ? &g->values[n->outputs[i]] : NULL;
}

enum dl_code dl_onnx_fail(const struct dl_onnx_graph *g, const struct dl_onnx_node *n,
                          struct dl_err *err, const char *format, ...) {
    char message[400];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    const int index = (int)(n - g->nodes);
    return dl_fail_at(err, g->file, 0, 0, NULL, "node %d (%.40s%s%.80s): %s", index, n->op,
                      n->name[0] != 0 ? " " : "", n->name, message);
}

enum dl_code dl_onnx_shape(const struct dl_onnx_graph *g, const struct dl_onnx_node *n, int output,
                           int rank, const int64_t *dims, struct dl_err *err) {
    struct dl_onnx_value *v = dl_onnx_out(g, n, output);
    double elements = 1;
    if (v == NULL) return DL_OK;
    if (rank < 0 || rank > DL_ONNX_RANK)
        return dl_onnx_fail(g, n, err, "expected at most 8 dimensions, found %d", rank);
    for (int i = 0; i < rank; i++) {
        if (dims[i] < 0)
            return dl_onnx_fail(g, n, err, "dimension %d of its output would be %lld", i,
                                (long long)dims[i]);
        /* what is empty has factors that are products elsewhere */
        if (dims[i] > 0) elements *= (double)dims[i];
        v->dims[i] = dims[i];
    }
    if (!(elements <= 9007199254740992.0))
        return dl_onnx_fail(g, n, err, "its output has more than 2^53 elements");
    v->rank = rank;
    v->known = true;
    return DL_OK;
}

static enum dl_code infer_broadcast(struct dl_onnx_graph *g, const struct dl_onnx_node *n,
                                    struct dl_err *err) {
    int64_t dims[DL_ONNX_RANK] = {0};
    int rank = 0;
    for (int i = 0; i < n->input_count; i++) {
        const struct dl_onnx_value *v = dl_onnx_in(g, n, i);
        if (v == NULL || !v->known) return DL_OK;
        if (v->rank > rank) rank = v->rank;
    }
    for (int d = 0; d < rank; d++) dims[d] = 1;
    for (int i = 0; i < n->input_count; i++) {
        const struct dl_onnx_value *v = dl_onnx_in(g, n, i);
        for (int k = 0; k < v->rank; k++) {
            int64_t *extent = &dims[rank - v->rank + k];
            if (*extent == 1)
                *extent = v->dims[k];
            else if (v->dims[k] != 1 && v->dims[k] != *extent) {
                return dl_onnx_fail(g, n, err,
                                    "its inputs do not fit: %lld and %lld in one dimension",
                                    (long long)*extent, (long long)v->dims[k]);
            }
        }
    }
    DL_TRY(dl_onnx_shape(g, n, 0, rank, dims, err));
    dl_onnx_fold_elements(g, n, true);
    return DL_OK;
}

/* ---- windows ---- */

/* Output extent along one dimension; NAN: does not fit. */
static double window_extent(const struct dl_onnx_node *n, int d, int dims, double in, double kernel,
                            bool transposed) {
    const double stride = dl_onnx_list_at(n, "strides", d, 1),
                 dilation = dl_onnx_list_at(n, "dilations", d, 1);
    const double pads = dl_onnx_list_at(n, "pads", d, 0) + dl_onnx_list_at(n, "pads", d + dims, 0),
                 reach = dilation * (kernel - 1) + 1;
    const struct dl_onnx_attribute *automatic = dl_onnx_attribute(n, "auto_pad");
    if (!(stride >= 1) || !(dilation >= 1) || !(kernel >= 1)) return NAN;
    if (automatic != NULL && automatic->text != NULL && strncmp(automatic->text, "SAME", 4) == 0) {
        return transposed ? in * stride : ceil(in / stride);
    }
    if (transposed)
        return (in - 1) * stride - pads + reach + dl_onnx_list_at(n, "output_padding", d, 0);
    const double steps = (in + pads - reach) / stride;
    double out = (dl_onnx_number(n, "ceil_mode", 0) != 0 ? ceil(steps) : floor(steps)) + 1;
    /* as PyTorch */
    if (dl_onnx_number(n, "ceil_mode", 0) != 0 &&
        (out - 1) * stride >= in + dl_onnx_list_at(n, "pads", d, 0))
        out -= 1;
    return steps >= 0 ? out : NAN;
}

/* Channels of a convolution's output; those of its input must fit the kernel. */
static enum dl_code window_channels(struct dl_onnx_graph *g, const struct dl_onnx_node *n,
                                    const struct dl_onnx_value *x, const struct dl_onnx_value *w,
                                    bool transposed, int64_t *out, struct dl_err *err) {
    const double channels = (double)w->dims[1] * dl_onnx_number(n, "group", 1);
    if (!(channels >= 0 && channels <= 9e15))
        return dl_onnx_fail(g, n, err, "%g channels in its groups", channels);
    *out = transposed ? (int64_t)channels : w->dims[0];
    if (transposed || channels == (double)x->dims[1]) return DL_OK;
    return dl_onnx_fail(g, n, err, "a kernel for %g channels, an input of %lld", channels,
                        (long long)x->dims[1]);
}

static enum dl_code infer_window(struct dl_onnx_graph *g, const struct dl_onnx_node *n,
                                 struct dl_err *err) {
    const bool conv = strncmp(n->op, "Conv", 4) == 0,
               transposed = strcmp(n->op, "ConvTranspose") == 0;
    const struct dl_onnx_value *x = dl_onnx_in(g, n, 0), *w = dl_onnx_in(g, n, 1);
    int64_t dims[DL_ONNX_RANK];
    if (x == NULL || !x->known || (conv && (w == NULL || !w->known))) return DL_OK;
    if (x->rank < 3 || (conv && w->rank != x->rank)) {
        return dl_onnx_fail(g, n, err, "expected an input of 3 to 5 dimensions%s",
                            conv ? " and a kernel of as many" : "");
    }
    dims[0] = x->dims[0];
    dims[1] = x->dims[1];
    if (conv) DL_TRY(window_channels(g, n, x, w, transposed, &dims[1], err));
    for (int d = 0; d < x->rank - 2; d++) {
        const double kernel =
            conv ? (double)w->dims[d + 2] : dl_onnx_list_at(n, "kernel_shape", d, NAN);
        const double out =
            window_extent(n, d, x->rank - 2, (double)x->dims[d + 2], kernel, transposed);
        if (!(out >= 1 && out <= 9e15))
            return dl_onnx_fail(g, n, err, "its window does not fit an input of %lld",
                                (long long)x->dims[d + 2]);
        dims[d + 2] = (int64_t)out;
    }
    return dl_onnx_shape(g, n, 0, x->rank, dims, err);
}

/* ---- GEMM and LSTM ---- */

static enum dl_code infer_gemm(struct dl_onnx_graph *g, const struct dl_onnx_node *n,
                               struct dl_err *err) {
    const struct dl_onnx_value *a = dl_onnx_in(g, n, 0), *b = dl_onnx_in(g, n, 1);
    if (a == NULL || b == NULL || !a->known || !b->known) return DL_OK;
    if (a->rank != 2 || b->rank != 2) return dl_onnx_fail(g, n, err, "expected two matrices");
    const bool ta = dl_onnx_number(n, "transA", 0) != 0, tb = dl_onnx_number(n, "transB", 0) != 0;
    const int64_t dims[2] = {a->dims[ta ? 1 : 0], b->dims[tb ? 0 : 1]};
    if (a->dims[ta ? 0 : 1] != b->dims[tb ? 1 : 0]) {
        return dl_onnx_fail(g, n, err, "%lld columns do not fit %lld rows",
                            (long long)a->dims[ta ? 0 : 1], (long long)b->dims[tb ? 1 : 0]);
    }
    return dl_onnx_shape(g, n, 0, 2, dims, err);
}

static enum dl_code infer_matmul(struct dl_onnx_graph *g, const struct dl_onnx_node *n,
                                 struct dl_err *err) {
    const struct dl_onnx_value *a = dl_onnx_in(g, n, 0), *b = dl_onnx_in(g, n, 1);
    int64_t dims[DL_ONNX_RANK];
    if (a == NULL || b == NULL || !a->known || !b->known) return DL_OK;
    if (a->rank < 1 || b->rank < 2) return dl_onnx_fail(g, n, err, "expected matrices");
    const int rank = a->rank > b->rank ? a->rank : b->rank;
    if (a->rank < 2 && b->rank > 2) return dl_onnx_fail(g, n, err, "expected matrices");
    if (a->dims[a->rank - 1] != b->dims[b->rank - 2]) {
        return dl_onnx_fail(g, n, err, "%lld columns do not fit %lld rows",
                            (long long)a->dims[a->rank - 1], (long long)b->dims[b->rank - 2]);
    }
    for (int d = 0; d < rank - 2; d++) {
        const int da = d - (rank - a->rank), db = d - (rank - b->rank);
        const int64_t x = da >= 0 ? a->dims[da] : 1, y = db >= 0 ? b->dims[db] : 1;
        if (x != y && x != 1 && y != 1)
            return dl_onnx_fail(g, n, err, "its inputs do not fit: inner extents %lld and %lld",
                                (long long)x, (long long)y);
        dims[d] = x == 1 ? y : x;
    }
    if (a->rank == 1) return dl_onnx_shape(g, n, 0, 1, &b->dims[1], err);
    dims[rank - 2] = a->dims[a->rank - 2];
    dims[rank - 1] = b->dims[b->rank - 1];
    return dl_onnx_shape(g, n, 0, rank, dims, err);
}

static enum dl_code infer_lstm(struct dl_onnx_graph *g, const struct dl_onnx_node *n,
                               struct dl_err *err) {
    const struct dl_onnx_value *x = dl_onnx_in(g, n, 0), *r = dl_onnx_in(g, n, 2);
    if (x == NULL || r == NULL || !x->known || !r->known) return DL_OK;
    if (x->rank != 3 || r->rank != 3 || dl_onnx_number(n, "layout", 0) != 0) {
        return dl_onnx_fail(g, n, err,
                            "expected [tokens, batch, features] and weights of 3 dimensions");
    }
    const int64_t y[4] = {x->dims[0], r->dims[0], x->dims[1], r->dims[2]},
                  state[3] = {r->dims[0], x->dims[1], r->dims[2]};
    DL_TRY(dl_onnx_shape(g, n, 0, 4, y, err));
    DL_TRY(dl_onnx_shape(g, n, 1, 3, state, err));
    return dl_onnx_shape(g, n, 2, 3, state, err);
}

/* ---- reductions ---- */

/* Marks the axes that the node reduces: those of an input or an attribute, one of ArgMax and
 * ArgMin, all when none are named. */
static enum dl_code reduced_axes(struct dl_onnx_graph *g, const struct dl_onnx_node *n, int rank,
                                 bool *gone, struct dl_err *err) {
    const struct dl_onnx_value *axes = dl_onnx_in(g, n, 1);
    const bool argument = strncmp(n->op, "Arg", 3) == 0;
    const struct dl_onnx_attribute *listed = dl_onnx_attribute(n, argument ? "axis" : "axes");
    const double first = dl_onnx_number(n, "axis", 0);
    const double *list = argument         ? &first
                         : axes != NULL   ? axes->numbers
                         : listed != NULL ? listed->list
                                          : NULL;
    const int count = argument         ? 1
                      : axes != NULL   ? (int)dl_onnx_elements(axes)
                      : listed != NULL ? listed->count
                                       : 0;
    for (int d = 0; d < rank; d++) gone[d] = count == 0;
    for (int i = 0; i < count; i++) {
        const double axis = list[i] < 0 ? list[i] + rank : list[i];
        if (!(axis >= 0 && axis < rank))
            return dl_onnx_fail(g, n, err, "there is no axis %g", axis);
        gone[(int)axis] = true;
    }
    return DL_OK;
}

static enum dl_code infer_reduce(struct dl_onnx_graph *g, const struct dl_onnx_node *n,
                                 struct dl_err *err) {
    const struct dl_onnx_value *x = dl_onnx_in(g, n, 0), *axes = dl_onnx_in(g, n, 1);
    bool gone[DL_ONNX_RANK] = {false};
    int64_t dims[DL_ONNX_RANK];
    if (x == NULL || !x->known || (axes != NULL && axes->numbers == NULL)) return DL_OK;
    DL_TRY(reduced_axes(g, n, x->rank, gone, err));
    const bool keep = dl_onnx_number(n, "keepdims", 1) != 0;
    int rank = 0;
    for (int d = 0; d < x->rank; d++) {
        if (!gone[d] || keep) dims[rank++] = gone[d] ? 1 : x->dims[d];
    }
    DL_TRY(dl_onnx_shape(g, n, 0, rank, dims, err));
    struct dl_onnx_value *out = dl_onnx_out(g, n, 0);
    if (out == NULL || strcmp(n->op, "ReduceProd") != 0 || x->numbers == NULL ||
        dl_onnx_elements(out) != 1)
        return DL_OK;
    double product = 1;
    for (size_t i = 0; i < (size_t)dl_onnx_elements(x); i++) product *= x->numbers[i];
    double *number = dl_arena_alloc(g->arena, 1, sizeof *number);
    *number = product;
    out->numbers = number;
    return DL_OK;
}

/* ---- all ---- */

static void set_kind(struct dl_onnx_graph *g, const struct dl_onnx_node *n) {
    static const char whole_ops[] = "Shape Size Equal Less Greater LessOrEqual GreaterOrEqual Not "
                                    "And Or ArgMax ArgMin NonZero",
                      first_ops[] = "Gather Transpose Reshape Slice Unsqueeze Squeeze Expand";
    bool constant = true, floating = false;
    for (int i = 0; i < n->input_count; i++) {
        const struct dl_onnx_value *v = dl_onnx_in(g, n, i);
        if (v == NULL) continue;
        constant = constant && v->constant;
        floating = floating || (v->floating && (i == 0 || !dl_has_word(first_ops, n->op)));
    }
    if (dl_has_word(whole_ops, n->op)) floating = false;
    if (strcmp(n->op, "Cast") == 0) {
        const double to = dl_onnx_number(n, "to", 1);
        floating = to == 1 || to == 10 || to == 11 || to == 16;
    }
    if (strncmp(n->op, "Random", 6) == 0) floating = true;
    for (int i = 0; i < n->output_count; i++) {
        struct dl_onnx_value *v = dl_onnx_out(g, n, i);
        if (v == NULL) continue;
        v->constant = constant || dl_has_word("Shape Size", n->op);
        v->floating = floating;
    }
}

static enum dl_code infer_same(struct dl_onnx_graph *g, const struct dl_onnx_node *n,
                               struct dl_err *err) {
    const struct dl_onnx_value *x = dl_onnx_in(g, n, 0);
    if (x == NULL || !x->known) return DL_OK;
    DL_TRY(dl_onnx_shape(g, n, 0, x->rank, x->dims, err));
    if (strcmp(n->op, "Dropout") == 0) DL_TRY(dl_onnx_shape(g, n, 1, x->rank, x->dims, err));
    struct dl_onnx_value *out = dl_onnx_out(g, n, 0);
    if (out != NULL && x->constant && dl_has_word("Identity Cast", n->op)) out->origin = x->origin;
    if (out != NULL && out->constant && n->input_count == 1) dl_onnx_fold_elements(g, n, false);
    return DL_OK;
}

static enum dl_code infer_global(struct dl_onnx_graph *g, const struct dl_onnx_node *n,
                                 struct dl_err *err) {
    const struct dl_onnx_value *x = dl_onnx_in(g, n, 0);
    if (x == NULL || !x->known || x->rank < 3) return DL_OK;
    const int64_t dims[DL_ONNX_RANK] = {x->dims[0], x->dims[1], 1, 1, 1, 1, 1, 1};
    return dl_onnx_shape(g, n, 0, x->rank, dims, err);
}

static const struct {
    const char *ops;
    dl_onnx_infer_fn *infer;
} rules[] = {
    {"Add Sub Mul Div Pow Mod Equal Less Greater LessOrEqual GreaterOrEqual And Or Xor Min Max Sum "
     "Mean Where",
     infer_broadcast},
    {"Relu LeakyRelu PRelu Elu Selu Celu Sigmoid HardSigmoid HardSwish Tanh Erf Exp Log Sqrt Neg "
     "Abs Clip Softmax LogSoftmax Dropout Identity Cast BatchNormalization LRN "
     "InstanceNormalization GroupNormalization LayerNormalization RMSNormalization "
     "SimplifiedLayerNormalization Gelu Softplus Softsign Mish Swish ThresholdedRelu Floor Ceil "
     "Round Not Sin Cos Sign Reciprocal CumSum Trilu Hardmax CastLike IsNaN EyeLike "
     "LpNormalization MeanVarianceNormalization",
     infer_same},
    {"Conv ConvTranspose MaxPool AveragePool LpPool", infer_window},
    {"GlobalAveragePool GlobalMaxPool GlobalLpPool", infer_global},
    {"Gemm", infer_gemm},
    {"MatMul", infer_matmul},
    {"LSTM", infer_lstm},
    {"ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd "
     "ReduceSum ReduceSumSquare ArgMax ArgMin",
     infer_reduce},
};

enum dl_code dl_onnx_infer(struct dl_onnx_graph *g, int node, struct dl_err *err) {
    const struct dl_onnx_node *n = &g->nodes[node];
    bool done = false;
    set_kind(g, n);
    if (n->domain[0] != 0) return DL_OK;
    DL_TRY(dl_onnx_infer_view(g, n, &done, err));
    for (size_t i = 0; !done && i < sizeof rules / sizeof *rules; i++) {
        if (dl_has_word(rules[i].ops, n->op)) return rules[i].infer(g, n, err);
    }
    return DL_OK;
}
