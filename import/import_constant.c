/* import_constant.c - ONNX operators that make constants, and lists of numbers. */
#include <math.h>
#include <string.h>

#include "import/import_graph.h"

int dl_onnx_list(const struct dl_onnx_graph *g, const struct dl_onnx_node *n, int input,
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

double *dl_onnx_new_numbers(struct dl_onnx_graph *g, const struct dl_onnx_value *v) {
    const double count = dl_onnx_elements(v);
    return count <= DL_ONNX_NUMBERS ? dl_arena_alloc(g->arena, (size_t)count, sizeof(double))
                                    : NULL;
}

enum dl_code dl_onnx_infer_constant(struct dl_onnx_graph *g, const struct dl_onnx_node *n,
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

enum dl_code dl_onnx_infer_filled(struct dl_onnx_graph *g, const struct dl_onnx_node *n,
                                  struct dl_err *err) {
    const struct dl_onnx_attribute *value = dl_onnx_attribute(n, "value");
    const double *shape;
    const int rank = dl_onnx_list(g, n, strncmp(n->op, "Random", 6) == 0 ? 99 : 0, "shape", &shape);
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
    double *numbers = dl_onnx_new_numbers(g, out);
    for (int i = 0; numbers != NULL && i < (int)dl_onnx_elements(out); i++) {
        numbers[i] = fill != NULL && fill->numbers != NULL && dl_onnx_elements(fill) >= 1
                         ? fill->numbers[0]
                         : 0;
    }
    out->numbers = numbers;
    return DL_OK;
}

enum dl_code dl_onnx_infer_range(struct dl_onnx_graph *g, const struct dl_onnx_node *n,
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
    double *numbers = out == NULL ? NULL : dl_onnx_new_numbers(g, out);
    for (int i = 0; numbers != NULL && i < (int)count; i++) numbers[i] = at[0] + i * at[2];
    if (out != NULL) out->numbers = numbers;
    return DL_OK;
}
