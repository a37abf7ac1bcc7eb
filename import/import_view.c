/* import_view.c - shapes and small constants of ONNX operators that rearrange: reshape, transpose,
 * slice, concatenate, look up. Those that make constants are in import_constant.c.
 */
#include <math.h>
#include <string.h>

#include "model/core/text.h"
#include "import/import_graph.h"

static bool axis_of(double axis, int rank, int *out) {
    if (axis < 0) axis += rank;
    const bool valid = axis >= 0 && axis < rank && axis == floor(axis);
    *out = valid ? (int)axis : 0; /* a file's number may be any */
    return valid;
}

/* The shape of a view, which keeps a constant's origin; numbers too when their order does not
 * change. */
static enum dl_code keep(struct dl_onnx_graph *g, const struct dl_onnx_node *n, int rank,
                         const int64_t *dims, bool same_order, struct dl_err *err) {
    const struct dl_onnx_value *x = dl_onnx_in(g, n, 0);
    struct dl_onnx_value *out = dl_onnx_out(g, n, 0);
    DL_TRY(dl_onnx_shape(g, n, 0, rank, dims, err));
    if (out == NULL || !x->constant) return DL_OK;
    out->origin = x->origin;
    if (same_order) out->numbers = x->numbers;
    return DL_OK;
}

static enum dl_code reshape(struct dl_onnx_graph *g, const struct dl_onnx_node *n,
                            struct dl_err *err) {
    const struct dl_onnx_value *x = dl_onnx_in(g, n, 0);
    const double *shape;
    const int rank = dl_onnx_list(g, n, 1, "shape", &shape);
    int64_t dims[DL_ONNX_RANK];
    int open = -1;
    double product = 1;
    if (rank < 0) return DL_OK;
    if (rank > DL_ONNX_RANK) return dl_onnx_fail(g, n, err, "expected at most 8 dimensions");
    for (int d = 0; d < rank; d++) {
        if (!(fabs(shape[d]) <= 9e15)) return dl_onnx_fail(g, n, err, "expected whole extents");
        dims[d] = (int64_t)shape[d];
        if (d < x->rank && dims[d] == 0 && dl_onnx_number(n, "allowzero", 0) == 0)
            dims[d] = x->dims[d];
        if (dims[d] == -1 && open < 0)
            open = d;
        else
            product *= (double)dims[d];
    }
    const double elements = dl_onnx_elements(x);
    if (open >= 0) {
        if (!(product > 0) || elements / product != floor(elements / product)) {
            return dl_onnx_fail(g, n, err, "%.0f elements do not divide into %.0f", elements,
                                product);
        }
        dims[open] = (int64_t)(elements / product);
    } else if (product != elements) {
        return dl_onnx_fail(g, n, err, "%.0f elements do not fill a shape of %.0f", elements,
                            product);
    }
    return keep(g, n, rank, dims, true, err);
}

static enum dl_code flatten(struct dl_onnx_graph *g, const struct dl_onnx_node *n,
                            struct dl_err *err) {
    const struct dl_onnx_value *x = dl_onnx_in(g, n, 0);
    double axis = dl_onnx_number(n, "axis", 1), rows = 1;
    if (axis < 0) axis += x->rank;
    if (!(axis >= 0 && axis <= x->rank))
        return dl_onnx_fail(g, n, err, "there is no axis %g", axis);
    for (int d = 0; d < (int)axis; d++) rows *= (double)x->dims[d];
    const double columns = rows > 0 ? dl_onnx_elements(x) / rows : 0;
    const int64_t dims[2] = {(int64_t)rows, (int64_t)columns};
    return keep(g, n, 2, dims, true, err);
}

static enum dl_code transpose(struct dl_onnx_graph *g, const struct dl_onnx_node *n,
                              struct dl_err *err) {
    const struct dl_onnx_value *x = dl_onnx_in(g, n, 0);
    const struct dl_onnx_attribute *order = dl_onnx_attribute(n, "perm");
    int64_t dims[DL_ONNX_RANK];
    unsigned seen = 0;
    if (order != NULL && order->count != x->rank)
        return dl_onnx_fail(g, n, err, "expected an order of %d axes", x->rank);
    for (int d = 0; d < x->rank; d++) {
        int from = x->rank - 1 - d;
        if (order != NULL &&
            (!axis_of(order->list[d], x->rank, &from) || (seen & 1u << from) != 0)) {
            return dl_onnx_fail(g, n, err, "expected each axis once");
        }
        seen |= 1u << from;
        dims[d] = x->dims[from];
    }
    return keep(g, n, x->rank, dims, x->rank < 2, err);
}

static enum dl_code squeeze(struct dl_onnx_graph *g, const struct dl_onnx_node *n,
                            struct dl_err *err) {
    const struct dl_onnx_value *x = dl_onnx_in(g, n, 0);
    const double *axes;
    const int count = dl_onnx_list(g, n, 1, "axes", &axes);
    bool gone[DL_ONNX_RANK] = {false};
    int64_t dims[DL_ONNX_RANK];
    int rank = 0;
    if (count < 0 && n->input_count > 1) return DL_OK;
    for (int i = 0; i < count; i++) {
        int axis;
        if (!axis_of(axes[i], x->rank, &axis) || x->dims[axis] != 1)
            return dl_onnx_fail(g, n, err, "axis %g is not of extent 1", axes[i]);
        gone[axis] = true;
    }
    for (int d = 0; d < x->rank; d++) {
        if (!(count < 0 ? x->dims[d] == 1 : gone[d])) dims[rank++] = x->dims[d];
    }
    return keep(g, n, rank, dims, true, err);
}

static enum dl_code unsqueeze(struct dl_onnx_graph *g, const struct dl_onnx_node *n,
                              struct dl_err *err) {
    const struct dl_onnx_value *x = dl_onnx_in(g, n, 0);
    const double *axes;
    const int count = dl_onnx_list(g, n, 1, "axes", &axes);
    bool added[DL_ONNX_RANK] = {false};
    int64_t dims[DL_ONNX_RANK];
    if (count < 0) return DL_OK;
    const int rank = x->rank + count;
    if (rank > DL_ONNX_RANK) return dl_onnx_fail(g, n, err, "expected at most 8 dimensions");
    for (int i = 0; i < count; i++) {
        int axis;
        if (!axis_of(axes[i], rank, &axis) || added[axis])
            return dl_onnx_fail(g, n, err, "there is no axis %g to add", axes[i]);
        added[axis] = true;
    }
    for (int d = 0, from = 0; d < rank; d++) dims[d] = added[d] ? 1 : x->dims[from++];
    return keep(g, n, rank, dims, true, err);
}

static enum dl_code concat(struct dl_onnx_graph *g, const struct dl_onnx_node *n,
                           struct dl_err *err) {
    const struct dl_onnx_value *x = dl_onnx_in(g, n, 0);
    int64_t dims[DL_ONNX_RANK];
    int axis;
    bool numbers = true;
    if (!axis_of(dl_onnx_number(n, "axis", 0), x->rank, &axis))
        return dl_onnx_fail(g, n, err, "there is no axis to concatenate along");
    memcpy(dims, x->dims, sizeof dims);
    for (int i = 0; i < n->input_count; i++) {
        const struct dl_onnx_value *v = dl_onnx_in(g, n, i);
        if (v == NULL || !v->known) return DL_OK;
        numbers = numbers && v->numbers != NULL;
        for (int d = 0; d < x->rank; d++) {
            if (v->rank != x->rank || (d != axis && v->dims[d] != x->dims[d]))
                return dl_onnx_fail(g, n, err, "its inputs do not fit");
        }
        if (i > 0) dims[axis] += v->dims[axis];
    }
    DL_TRY(dl_onnx_shape(g, n, 0, x->rank, dims, err));
    struct dl_onnx_value *out = dl_onnx_out(g, n, 0);
    if (out == NULL || !numbers || axis != 0) return DL_OK;
    double *joined = dl_onnx_new_numbers(g, out);
    if (joined == NULL) return DL_OK;
    for (int i = 0, at = 0; i < n->input_count; i++) {
        const struct dl_onnx_value *v = dl_onnx_in(g, n, i);
        const int count = (int)dl_onnx_elements(v);
        if (count > 0) memcpy(joined + at, v->numbers, (size_t)count * sizeof *joined);
        at += count;
    }
    out->numbers = joined;
    return DL_OK;
}

static enum dl_code split(struct dl_onnx_graph *g, const struct dl_onnx_node *n,
                          struct dl_err *err) {
    const struct dl_onnx_value *x = dl_onnx_in(g, n, 0);
    const double *parts;
    const int count = dl_onnx_list(g, n, 1, "split", &parts);
    int64_t dims[DL_ONNX_RANK];
    int axis;
    if (count < 0 && n->input_count > 1) return DL_OK;
    if (!axis_of(dl_onnx_number(n, "axis", 0), x->rank, &axis))
        return dl_onnx_fail(g, n, err, "there is no axis to slice");
    if (n->output_count < 1 || (count >= 0 && count != n->output_count))
        return dl_onnx_fail(g, n, err, "expected an extent for each output");
    memcpy(dims, x->dims, sizeof dims);
    const int64_t each = (x->dims[axis] + n->output_count - 1) / n->output_count;
    for (int i = 0; i < n->output_count; i++) {
        const int64_t rest = x->dims[axis] - each * i;
        dims[axis] = count >= 0 ? (int64_t)parts[i] : rest < each ? rest : each;
        DL_TRY(dl_onnx_shape(g, n, i, x->rank, dims, err));
    }
    return DL_OK;
}

static double clamp(double value, double low, double high) {
    return value < low ? low : value > high ? high : value;
}

/* One axis of Slice: the requested range, and the elements kept. */
struct range {
    double start, end, step;
};
struct cut {
    double first, step, length;
};

static enum dl_code cut_axis(struct dl_onnx_graph *g, const struct dl_onnx_node *n, double extent,
                             struct range asked, struct cut *out, struct dl_err *err) {
    const double start = asked.start, end = asked.end, step = asked.step;
    if (step == 0) return dl_onnx_fail(g, n, err, "expected a step other than 0");
    const double low = step > 0 ? 0 : -1, high = step > 0 ? extent : extent - 1;
    const double first = clamp(start < 0 ? start + extent : start, 0, high),
                 last = clamp(end < 0 ? end + extent : end, low, high);
    *out = (struct cut){first, step, fmax(0, ceil((last - first) / step))};
    return DL_OK;
}

static enum dl_code slice(struct dl_onnx_graph *g, const struct dl_onnx_node *n,
                          struct dl_err *err) {
    const struct dl_onnx_value *x = dl_onnx_in(g, n, 0);
    const double *starts, *ends, *axes, *steps;
    const int count = dl_onnx_list(g, n, 1, "starts", &starts),
              end_count = dl_onnx_list(g, n, 2, "ends", &ends);
    const int axis_count = dl_onnx_list(g, n, 3, "axes", &axes),
              step_count = dl_onnx_list(g, n, 4, "steps", &steps);
    int64_t dims[DL_ONNX_RANK];
    struct cut cut = {.step = 1};
    if (count < 0 || end_count != count || (dl_onnx_in(g, n, 3) != NULL && axis_count != count))
        return DL_OK;
    if (dl_onnx_in(g, n, 4) != NULL && step_count != count) return DL_OK;
    memcpy(dims, x->dims, sizeof dims);
    for (int i = 0; i < count; i++) {
        int axis;
        if (!axis_of(axis_count == count ? axes[i] : i, x->rank, &axis))
            return dl_onnx_fail(g, n, err, "there is no such axis to slice");
        DL_TRY(cut_axis(g, n, (double)x->dims[axis],
                        (struct range){starts[i], ends[i], step_count == count ? steps[i] : 1},
                        &cut, err));
        dims[axis] = (int64_t)cut.length;
    }
    DL_TRY(dl_onnx_shape(g, n, 0, x->rank, dims, err));
    struct dl_onnx_value *out = dl_onnx_out(g, n, 0);
    if (out == NULL) return DL_OK;
    if (x->constant) out->origin = x->origin;
    if (x->numbers == NULL || x->rank != 1 || count != 1) return DL_OK;
    double *numbers = dl_onnx_new_numbers(g, out);
    for (int64_t i = 0; numbers != NULL && i < out->dims[0]; i++)
        numbers[i] = x->numbers[(int)(cut.first + (double)i * cut.step)];
    out->numbers = numbers;
    return DL_OK;
}

static enum dl_code gather(struct dl_onnx_graph *g, const struct dl_onnx_node *n,
                           struct dl_err *err) {
    const struct dl_onnx_value *x = dl_onnx_in(g, n, 0), *index = dl_onnx_in(g, n, 1);
    int64_t dims[2 * DL_ONNX_RANK];
    int axis, rank = 0;
    if (index == NULL || !index->known) return DL_OK;
    if (!axis_of(dl_onnx_number(n, "axis", 0), x->rank, &axis))
        return dl_onnx_fail(g, n, err, "there is no axis to look up");
    for (int d = 0; d < axis; d++) dims[rank++] = x->dims[d];
    for (int d = 0; d < index->rank; d++) dims[rank++] = index->dims[d];
    for (int d = axis + 1; d < x->rank; d++) dims[rank++] = x->dims[d];
    DL_TRY(dl_onnx_shape(g, n, 0, rank, dims, err));
    struct dl_onnx_value *out = dl_onnx_out(g, n, 0);
    if (out == NULL) return DL_OK;
    if (x->constant && index->constant) out->origin = x->origin;
    if (x->numbers == NULL || index->numbers == NULL || x->rank != 1) return DL_OK;
    double *numbers = dl_onnx_new_numbers(g, out);
    for (int i = 0; numbers != NULL && i < (int)dl_onnx_elements(index); i++) {
        double at = index->numbers[i];
        if (at < 0) at += (double)x->dims[0];
        if (!(at >= 0 && at < (double)x->dims[0]))
            return dl_onnx_fail(g, n, err, "there is no element %g of %lld", index->numbers[i],
                                (long long)x->dims[0]);
        numbers[i] = x->numbers[(int)at];
    }
    out->numbers = numbers;
    return DL_OK;
}

static bool is_tile(const struct dl_onnx_node *n) { return strcmp(n->op, "Tile") == 0; }

/* The extent of one dimension of Expand and Tile. */
static enum dl_code expand_extent(struct dl_onnx_graph *g, const struct dl_onnx_node *n, double own,
                                  double asked, int64_t *out, struct dl_err *err) {
    const bool tile = is_tile(n);
    if (!(asked >= 0 && asked <= 9e15 && own * asked <= 9e15))
        return dl_onnx_fail(g, n, err, "expected extents of at least 0 and at most 9e15, found %g",
                            asked);
    if (!tile && own != asked && own != 1 && asked != 1)
        return dl_onnx_fail(g, n, err, "%.0f does not expand to %.0f", own, asked);
    *out = (int64_t)(tile ? own * asked : own == 1 ? asked : own);
    return DL_OK;
}

static enum dl_code expand(struct dl_onnx_graph *g, const struct dl_onnx_node *n,
                           struct dl_err *err) {
    const struct dl_onnx_value *x = dl_onnx_in(g, n, 0);
    const double *shape;
    const int count = dl_onnx_list(g, n, 1, "shape", &shape);
    int64_t dims[DL_ONNX_RANK];
    if (count < 0) return DL_OK;
    const int rank = count > x->rank ? count : x->rank;
    if (rank > DL_ONNX_RANK || (is_tile(n) && count != x->rank))
        return dl_onnx_fail(g, n, err, "expected as many extents as dimensions");
    for (int d = 0; d < rank; d++) {
        const int k = d - (rank - x->rank), s = d - (rank - count);
        DL_TRY(expand_extent(g, n, k >= 0 ? (double)x->dims[k] : 1, s >= 0 ? shape[s] : 1, &dims[d],
                             err));
    }
    DL_TRY(keep(g, n, rank, dims, false, err));
    struct dl_onnx_value *out = dl_onnx_out(g, n, 0);
    if (out == NULL || x->numbers == NULL || dl_onnx_elements(x) != 1) return DL_OK;
    double *numbers = dl_onnx_new_numbers(g, out);
    for (int i = 0; numbers != NULL && i < (int)dl_onnx_elements(out); i++)
        numbers[i] = x->numbers[0];
    out->numbers = numbers;
    return DL_OK;
}

static enum dl_code shape_of(struct dl_onnx_graph *g, const struct dl_onnx_node *n,
                             struct dl_err *err) {
    const struct dl_onnx_value *x = dl_onnx_in(g, n, 0);
    double start = dl_onnx_number(n, "start", 0), end = dl_onnx_number(n, "end", x->rank);
    start = clamp(start < 0 ? start + x->rank : start, 0, x->rank);
    end = clamp(end < 0 ? end + x->rank : end, start, x->rank);
    const bool size = strcmp(n->op, "Size") == 0;
    const int64_t dims[1] = {(int64_t)(end - start)};
    DL_TRY(dl_onnx_shape(g, n, 0, size ? 0 : 1, dims, err));
    struct dl_onnx_value *out = dl_onnx_out(g, n, 0);
    double *numbers = out == NULL ? NULL : dl_onnx_new_numbers(g, out);
    if (numbers == NULL) return DL_OK;
    for (int d = 0; !size && d < (int)dims[0]; d++) numbers[d] = (double)x->dims[(int)start + d];
    if (size) numbers[0] = dl_onnx_elements(x);
    out->numbers = numbers;
    return DL_OK;
}

static enum dl_code pad(struct dl_onnx_graph *g, const struct dl_onnx_node *n, struct dl_err *err) {
    const struct dl_onnx_value *x = dl_onnx_in(g, n, 0);
    const double *pads;
    const int count = dl_onnx_list(g, n, 1, "pads", &pads);
    int64_t dims[DL_ONNX_RANK];
    if (count < 0) return DL_OK;
    if (count != 2 * x->rank)
        return dl_onnx_fail(g, n, err, "expected two numbers for each dimension");
    for (int d = 0; d < x->rank; d++) {
        const double extent = (double)x->dims[d] + pads[d] + pads[d + x->rank];
        dims[d] = fabs(extent) <= 9e15 ? (int64_t)extent : -1;
    }
    return dl_onnx_shape(g, n, 0, x->rank, dims, err);
}

static enum dl_code resize(struct dl_onnx_graph *g, const struct dl_onnx_node *n,
                           struct dl_err *err) {
    const struct dl_onnx_value *x = dl_onnx_in(g, n, 0);
    const bool newer = strcmp(n->op, "Resize") == 0 && n->input_count > 2;
    const double *scales, *sizes = NULL;
    const int scale_count = dl_onnx_list(g, n, newer ? 2 : 1, "scales", &scales);
    const int size_count = newer ? dl_onnx_list(g, n, 3, "sizes", &sizes) : -1;
    int64_t dims[DL_ONNX_RANK];
    if (scale_count != x->rank && size_count != x->rank) return DL_OK;
    for (int d = 0; d < x->rank; d++) {
        const double extent =
            size_count == x->rank ? sizes[d] : floor((double)x->dims[d] * scales[d]);
        dims[d] = extent >= 1 && extent <= 9e15 ? (int64_t)extent : -1;
    }
    return dl_onnx_shape(g, n, 0, x->rank, dims, err);
}

/* Operators with an input whose shape must be known, except the first rows. */
static const struct {
    const char *ops;
    dl_onnx_infer_fn *infer;
    bool no_input;
} views[] = {
    {"Constant", dl_onnx_infer_constant, true},
    {"RandomNormal RandomUniform", dl_onnx_infer_filled, true},
    {"ConstantOfShape", dl_onnx_infer_filled, false},
    {"Range", dl_onnx_infer_range, false},
    {"Reshape", reshape, false},
    {"Flatten", flatten, false},
    {"Transpose", transpose, false},
    {"Squeeze", squeeze, false},
    {"Unsqueeze", unsqueeze, false},
    {"Concat", concat, false},
    {"Split", split, false},
    {"Slice", slice, false},
    {"Gather", gather, false},
    {"Expand Tile", expand, false},
    {"Shape Size", shape_of, false},
    {"Pad", pad, false},
    {"Resize Upsample", resize, false},
};

enum dl_code dl_onnx_infer_view(struct dl_onnx_graph *g, const struct dl_onnx_node *n, bool *done,
                                struct dl_err *err) {
    const struct dl_onnx_value *x = dl_onnx_in(g, n, 0);
    for (size_t i = 0; i < sizeof views / sizeof *views; i++) {
        if (!dl_has_word(views[i].ops, n->op)) continue;
        *done = true;
        if (views[i].no_input) return views[i].infer(g, n, err);
        if (x == NULL) return dl_onnx_fail(g, n, err, "expected an input");
        return x->known ? views[i].infer(g, n, err) : DL_OK;
    }
    return DL_OK;
}
