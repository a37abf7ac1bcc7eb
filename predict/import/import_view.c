/* import_view.c - shapes and small constants of ONNX operators that rearrange: reshape, transpose,
 * cut, join, look up, and those that make constants.
 */
#include <math.h>
#include <string.h>

#include "model/base/json.h"
#include "predict/import/import_graph.h"

typedef enum dl_code infer_fn(struct dl_onnx_graph *g, const struct dl_onnx_node *n,
                              struct dl_err *err);

static enum dl_code no_memory(struct dl_err *err) {
    return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
}

/* Numbers of a list that is an input, or before that opset an attribute; -1: not known. */
static int list_of(const struct dl_onnx_graph *g, const struct dl_onnx_node *n, int input,
                   const char *name, const double **out) {
    const struct dl_onnx_value *v = dl_onnx_in(g, n, input);
    const struct dl_onnx_attribute *a = dl_onnx_attribute(n, name);
    if (v != NULL) {
        *out = v->numbers;
        return v->numbers == NULL || !(dl_onnx_elements(v) <= DL_ONNX_NUMBERS)
                   ? -1
                   : (int)dl_onnx_elements(v);
    }
    *out = a != NULL ? a->list : NULL;
    return a != NULL ? a->count : -1;
}

static bool axis_of(double axis, int rank, int *out) {
    if (axis < 0) axis += rank;
    *out = (int)axis;
    return axis >= 0 && axis < rank && axis == floor(axis);
}

/* A view keeps a constant's origin; numbers too when their order does not change. */
static void keep(struct dl_onnx_graph *g, const struct dl_onnx_node *n, bool same_order) {
    const struct dl_onnx_value *x = dl_onnx_in(g, n, 0);
    struct dl_onnx_value *out = dl_onnx_out(g, n, 0);
    if (out == NULL || !x->constant) return;
    out->origin = x->origin;
    if (same_order) out->numbers = x->numbers;
}

static double *new_numbers(struct dl_onnx_graph *g, const struct dl_onnx_value *v) {
    const double count = dl_onnx_elements(v);
    return count <= DL_ONNX_NUMBERS ? dl_arena_alloc(g->arena, (size_t)count, sizeof(double))
                                    : NULL;
}

static enum dl_code reshape(struct dl_onnx_graph *g, const struct dl_onnx_node *n,
                            struct dl_err *err) {
    const struct dl_onnx_value *x = dl_onnx_in(g, n, 0);
    const double *shape;
    const int rank = list_of(g, n, 1, "shape", &shape);
    int64_t dims[DL_ONNX_RANK];
    int open = -1;
    double product = 1;
    if (!x->known || rank < 0) return DL_OK;
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
    DL_TRY(dl_onnx_shape(g, n, 0, rank, dims, err));
    keep(g, n, true);
    return DL_OK;
}

static enum dl_code flatten(struct dl_onnx_graph *g, const struct dl_onnx_node *n,
                            struct dl_err *err) {
    const struct dl_onnx_value *x = dl_onnx_in(g, n, 0);
    double axis = dl_onnx_number(n, "axis", 1), rows = 1;
    if (!x->known) return DL_OK;
    if (axis < 0) axis += x->rank;
    if (!(axis >= 0 && axis <= x->rank))
        return dl_onnx_fail(g, n, err, "there is no axis %g", axis);
    for (int d = 0; d < (int)axis; d++) rows *= (double)x->dims[d];
    const double columns = rows > 0 ? dl_onnx_elements(x) / rows : 0;
    const int64_t dims[2] = {(int64_t)rows, (int64_t)columns};
    DL_TRY(dl_onnx_shape(g, n, 0, 2, dims, err));
    keep(g, n, true);
    return DL_OK;
}

static enum dl_code transpose(struct dl_onnx_graph *g, const struct dl_onnx_node *n,
                              struct dl_err *err) {
    const struct dl_onnx_value *x = dl_onnx_in(g, n, 0);
    const struct dl_onnx_attribute *order = dl_onnx_attribute(n, "perm");
    int64_t dims[DL_ONNX_RANK];
    unsigned seen = 0;
    if (!x->known) return DL_OK;
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
    DL_TRY(dl_onnx_shape(g, n, 0, x->rank, dims, err));
    keep(g, n, x->rank < 2);
    return DL_OK;
}

static enum dl_code squeeze(struct dl_onnx_graph *g, const struct dl_onnx_node *n,
                            struct dl_err *err) {
    const struct dl_onnx_value *x = dl_onnx_in(g, n, 0);
    const double *axes;
    const int count = list_of(g, n, 1, "axes", &axes);
    bool gone[DL_ONNX_RANK] = {false};
    int64_t dims[DL_ONNX_RANK];
    int rank = 0;
    if (!x->known || (count < 0 && n->input_count > 1)) return DL_OK;
    for (int i = 0; i < count; i++) {
        int axis;
        if (!axis_of(axes[i], x->rank, &axis) || x->dims[axis] != 1)
            return dl_onnx_fail(g, n, err, "axis %g is not of extent 1", axes[i]);
        gone[axis] = true;
    }
    for (int d = 0; d < x->rank; d++) {
        if (!(count < 0 ? x->dims[d] == 1 : gone[d])) dims[rank++] = x->dims[d];
    }
    DL_TRY(dl_onnx_shape(g, n, 0, rank, dims, err));
    keep(g, n, true);
    return DL_OK;
}

static enum dl_code unsqueeze(struct dl_onnx_graph *g, const struct dl_onnx_node *n,
                              struct dl_err *err) {
    const struct dl_onnx_value *x = dl_onnx_in(g, n, 0);
    const double *axes;
    const int count = list_of(g, n, 1, "axes", &axes);
    bool added[DL_ONNX_RANK] = {false};
    int64_t dims[DL_ONNX_RANK];
    if (!x->known || count < 0) return DL_OK;
    const int rank = x->rank + count;
    if (rank > DL_ONNX_RANK) return dl_onnx_fail(g, n, err, "expected at most 8 dimensions");
    for (int i = 0; i < count; i++) {
        int axis;
        if (!axis_of(axes[i], rank, &axis) || added[axis])
            return dl_onnx_fail(g, n, err, "there is no axis %g to add", axes[i]);
        added[axis] = true;
    }
    for (int d = 0, from = 0; d < rank; d++) dims[d] = added[d] ? 1 : x->dims[from++];
    DL_TRY(dl_onnx_shape(g, n, 0, rank, dims, err));
    keep(g, n, true);
    return DL_OK;
}

static enum dl_code concat(struct dl_onnx_graph *g, const struct dl_onnx_node *n,
                           struct dl_err *err) {
    const struct dl_onnx_value *x = dl_onnx_in(g, n, 0);
    int64_t dims[DL_ONNX_RANK];
    int axis;
    bool numbers = true;
    if (!x->known) return DL_OK;
    if (!axis_of(dl_onnx_number(n, "axis", 0), x->rank, &axis))
        return dl_onnx_fail(g, n, err, "there is no axis to join along");
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
    double *joined = new_numbers(g, out);
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
    const int count = list_of(g, n, 1, "split", &parts);
    int64_t dims[DL_ONNX_RANK];
    int axis;
    if (!x->known || (count < 0 && n->input_count > 1)) return DL_OK;
    if (!axis_of(dl_onnx_number(n, "axis", 0), x->rank, &axis))
        return dl_onnx_fail(g, n, err, "there is no axis to cut");
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

static enum dl_code slice(struct dl_onnx_graph *g, const struct dl_onnx_node *n,
                          struct dl_err *err) {
    const struct dl_onnx_value *x = dl_onnx_in(g, n, 0);
    const double *starts, *ends, *axes, *steps;
    const int count = list_of(g, n, 1, "starts", &starts),
              end_count = list_of(g, n, 2, "ends", &ends);
    const int axis_count = list_of(g, n, 3, "axes", &axes),
              step_count = list_of(g, n, 4, "steps", &steps);
    int64_t dims[DL_ONNX_RANK];
    double first = 0, step = 1;
    if (!x->known || count < 0 || end_count != count ||
        (dl_onnx_in(g, n, 3) != NULL && axis_count != count))
        return DL_OK;
    if (dl_onnx_in(g, n, 4) != NULL && step_count != count) return DL_OK;
    memcpy(dims, x->dims, sizeof dims);
    for (int i = 0; i < count; i++) {
        int axis;
        if (!axis_of(axis_count == count ? axes[i] : i, x->rank, &axis))
            return dl_onnx_fail(g, n, err, "there is no such axis to cut");
        const double extent = (double)x->dims[axis];
        step = step_count == count ? steps[i] : 1;
        if (step == 0) return dl_onnx_fail(g, n, err, "expected a step other than 0");
        const double low = step > 0 ? 0 : -1, high = step > 0 ? extent : extent - 1;
        first = clamp(starts[i] < 0 ? starts[i] + extent : starts[i], 0, high);
        const double last = clamp(ends[i] < 0 ? ends[i] + extent : ends[i], low, high);
        const double length = ceil((last - first) / step);
        dims[axis] = length > 0 ? (int64_t)length : 0;
    }
    DL_TRY(dl_onnx_shape(g, n, 0, x->rank, dims, err));
    struct dl_onnx_value *out = dl_onnx_out(g, n, 0);
    if (out == NULL) return DL_OK;
    if (x->constant) out->origin = x->origin;
    if (x->numbers == NULL || x->rank != 1 || count != 1) return DL_OK;
    double *numbers = new_numbers(g, out);
    for (int64_t i = 0; numbers != NULL && i < out->dims[0]; i++)
        numbers[i] = x->numbers[(int)(first + (double)i * step)];
    out->numbers = numbers;
    return DL_OK;
}

static enum dl_code gather(struct dl_onnx_graph *g, const struct dl_onnx_node *n,
                           struct dl_err *err) {
    const struct dl_onnx_value *x = dl_onnx_in(g, n, 0), *index = dl_onnx_in(g, n, 1);
    int64_t dims[2 * DL_ONNX_RANK];
    int axis, rank = 0;
    if (index == NULL || !x->known || !index->known) return DL_OK;
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
    double *numbers = new_numbers(g, out);
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

static enum dl_code expand(struct dl_onnx_graph *g, const struct dl_onnx_node *n,
                           struct dl_err *err) {
    const struct dl_onnx_value *x = dl_onnx_in(g, n, 0);
    const double *shape;
    const int count = list_of(g, n, 1, "shape", &shape);
    const bool tile = strcmp(n->op, "Tile") == 0;
    int64_t dims[DL_ONNX_RANK];
    if (!x->known || count < 0) return DL_OK;
    const int rank = count > x->rank ? count : x->rank;
    if (rank > DL_ONNX_RANK || (tile && count != x->rank))
        return dl_onnx_fail(g, n, err, "expected as many extents as dimensions");
    for (int d = 0; d < rank; d++) {
        const int k = d - (rank - x->rank), s = d - (rank - count);
        const double own = k >= 0 ? (double)x->dims[k] : 1, asked = s >= 0 ? shape[s] : 1;
        if (!(asked >= 0 && asked <= 9e15))
            return dl_onnx_fail(g, n, err, "expected extents of at least 0, found %g", asked);
        if (!tile && own != asked && own != 1 && asked != 1)
            return dl_onnx_fail(g, n, err, "%.0f does not expand to %.0f", own, asked);
        dims[d] = (int64_t)(tile ? own * asked : own == 1 ? asked : own);
    }
    DL_TRY(dl_onnx_shape(g, n, 0, rank, dims, err));
    keep(g, n, false);
    struct dl_onnx_value *out = dl_onnx_out(g, n, 0);
    if (out == NULL || x->numbers == NULL || dl_onnx_elements(x) != 1) return DL_OK;
    double *numbers = new_numbers(g, out);
    for (int i = 0; numbers != NULL && i < (int)dl_onnx_elements(out); i++)
        numbers[i] = x->numbers[0];
    out->numbers = numbers;
    return DL_OK;
}

static enum dl_code shape_of(struct dl_onnx_graph *g, const struct dl_onnx_node *n,
                             struct dl_err *err) {
    const struct dl_onnx_value *x = dl_onnx_in(g, n, 0);
    if (!x->known) return DL_OK;
    double start = dl_onnx_number(n, "start", 0), end = dl_onnx_number(n, "end", x->rank);
    start = clamp(start < 0 ? start + x->rank : start, 0, x->rank);
    end = clamp(end < 0 ? end + x->rank : end, start, x->rank);
    const bool size = strcmp(n->op, "Size") == 0;
    const int64_t dims[1] = {(int64_t)(end - start)};
    DL_TRY(dl_onnx_shape(g, n, 0, size ? 0 : 1, dims, err));
    struct dl_onnx_value *out = dl_onnx_out(g, n, 0);
    double *numbers = out == NULL ? NULL : new_numbers(g, out);
    if (numbers == NULL) return DL_OK;
    for (int d = 0; !size && d < (int)dims[0]; d++) numbers[d] = (double)x->dims[(int)start + d];
    if (size) numbers[0] = dl_onnx_elements(x);
    out->numbers = numbers;
    return DL_OK;
}

static enum dl_code constant(struct dl_onnx_graph *g, const struct dl_onnx_node *n,
                             struct dl_err *err) {
    static const char *const names[] = {"value", "value_int", "value_float", "value_ints",
                                        "value_floats"};
    struct dl_onnx_value *out = dl_onnx_out(g, n, 0);
    for (int i = 0; out != NULL && i < 5; i++) {
        const struct dl_onnx_attribute *a = dl_onnx_attribute(n, names[i]);
        if (a == NULL) continue;
        if (a->value >= 0) {
            const struct dl_onnx_value *v = &g->values[a->value];
            DL_TRY(dl_onnx_shape(g, n, 0, v->rank, v->dims, err));
            out->numbers = v->numbers;
            out->floating = v->floating;
            return DL_OK;
        }
        const int64_t dims[1] = {a->count};
        double *numbers = dl_arena_alloc(g->arena, (size_t)a->count + 1, sizeof *numbers);
        if (numbers == NULL) return no_memory(err);
        if (i >= 3 && a->count > 0)
            memcpy(numbers, a->list, (size_t)a->count * sizeof *numbers);
        else
            numbers[0] = a->number;
        out->floating = i == 2 || i == 4;
        out->numbers = numbers;
        return dl_onnx_shape(g, n, 0, i >= 3 ? 1 : 0, dims, err);
    }
    return DL_OK;
}

static enum dl_code filled(struct dl_onnx_graph *g, const struct dl_onnx_node *n,
                           struct dl_err *err) {
    const struct dl_onnx_attribute *value = dl_onnx_attribute(n, "value");
    const double *shape;
    const int rank = list_of(g, n, strncmp(n->op, "Random", 6) == 0 ? 99 : 0, "shape", &shape);
    int64_t dims[DL_ONNX_RANK];
    if (rank < 0) return DL_OK;
    if (rank > DL_ONNX_RANK) return dl_onnx_fail(g, n, err, "expected at most 8 dimensions");
    for (int d = 0; d < rank; d++) dims[d] = fabs(shape[d]) <= 9e15 ? (int64_t)shape[d] : -1;
    DL_TRY(dl_onnx_shape(g, n, 0, rank, dims, err));
    struct dl_onnx_value *out = dl_onnx_out(g, n, 0);
    if (out == NULL || strncmp(n->op, "Random", 6) == 0) return DL_OK;
    const struct dl_onnx_value *fill =
        value != NULL && value->value >= 0 ? &g->values[value->value] : NULL;
    out->floating = fill == NULL || fill->floating;
    double *numbers = new_numbers(g, out);
    for (int i = 0; numbers != NULL && i < (int)dl_onnx_elements(out); i++) {
        numbers[i] = fill != NULL && fill->numbers != NULL && dl_onnx_elements(fill) >= 1
                         ? fill->numbers[0]
                         : 0;
    }
    out->numbers = numbers;
    return DL_OK;
}

static enum dl_code range(struct dl_onnx_graph *g, const struct dl_onnx_node *n,
                          struct dl_err *err) {
    double at[3];
    for (int i = 0; i < 3; i++) {
        const struct dl_onnx_value *v = dl_onnx_in(g, n, i);
        if (v == NULL || v->numbers == NULL || dl_onnx_elements(v) < 1) return DL_OK;
        at[i] = v->numbers[0];
    }
    const double count = at[2] != 0 ? fmax(ceil((at[1] - at[0]) / at[2]), 0) : NAN;
    if (!(count <= 9e15)) return dl_onnx_fail(g, n, err, "expected a step other than 0");
    const int64_t dims[1] = {(int64_t)count};
    DL_TRY(dl_onnx_shape(g, n, 0, 1, dims, err));
    struct dl_onnx_value *out = dl_onnx_out(g, n, 0);
    double *numbers = out == NULL ? NULL : new_numbers(g, out);
    for (int i = 0; numbers != NULL && i < (int)count; i++) numbers[i] = at[0] + i * at[2];
    if (out != NULL) out->numbers = numbers;
    return DL_OK;
}

static enum dl_code pad(struct dl_onnx_graph *g, const struct dl_onnx_node *n, struct dl_err *err) {
    const struct dl_onnx_value *x = dl_onnx_in(g, n, 0);
    const double *pads;
    const int count = list_of(g, n, 1, "pads", &pads);
    int64_t dims[DL_ONNX_RANK];
    if (!x->known || count < 0) return DL_OK;
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
    const int scale_count = list_of(g, n, newer ? 2 : 1, "scales", &scales);
    const int size_count = newer ? list_of(g, n, 3, "sizes", &sizes) : -1;
    int64_t dims[DL_ONNX_RANK];
    if (!x->known || (scale_count != x->rank && size_count != x->rank)) return DL_OK;
    for (int d = 0; d < x->rank; d++) {
        const double extent =
            size_count == x->rank ? sizes[d] : floor((double)x->dims[d] * scales[d]);
        dims[d] = extent >= 1 && extent <= 9e15 ? (int64_t)extent : -1;
    }
    return dl_onnx_shape(g, n, 0, x->rank, dims, err);
}

static const struct {
    const char *op;
    infer_fn *infer;
} views[] = {
    {"Reshape", reshape},
    {"Flatten", flatten},
    {"Transpose", transpose},
    {"Squeeze", squeeze},
    {"Unsqueeze", unsqueeze},
    {"Concat", concat},
    {"Split", split},
    {"Slice", slice},
    {"Gather", gather},
    {"Expand", expand},
    {"Tile", expand},
    {"Shape", shape_of},
    {"Size", shape_of},
    {"Constant", constant},
    {"ConstantOfShape", filled},
    {"RandomNormal", filled},
    {"RandomUniform", filled},
    {"Range", range},
    {"Pad", pad},
    {"Resize", resize},
    {"Upsample", resize},
    {NULL, NULL},
};

enum dl_code dl_onnx_infer_view(struct dl_onnx_graph *g, int node, bool *done, struct dl_err *err) {
    static const char *const sourceless[] = {"Constant", "RandomNormal", "RandomUniform", NULL};
    const struct dl_onnx_node *n = &g->nodes[node];
    for (int i = 0; views[i].op != NULL; i++) {
        if (strcmp(views[i].op, n->op) != 0) continue;
        bool free_of_inputs = false;
        for (int k = 0; sourceless[k] != NULL; k++)
            free_of_inputs = free_of_inputs || strcmp(sourceless[k], n->op) == 0;
        *done = true;
        if (!free_of_inputs && dl_onnx_in(g, n, 0) == NULL)
            return dl_onnx_fail(g, n, err, "expected an input");
        return views[i].infer(g, n, err);
    }
    return DL_OK;
}
