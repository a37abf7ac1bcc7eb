/* import_fold.c - values of constants: ONNX operators that are computed element by element. */
#include <math.h>
#include <string.h>

#include "import/import_graph.h"

bool dl_onnx_fold(const char *op, double a, double b, double *out) {
    const struct {
        const char *op;
        double value;
    } results[] = {
        {"Add", a + b},
        {"Sub", a - b},
        {"Mul", a * b},
        {"Div", b != 0 ? a / b : NAN},
        {"Pow", pow(a, b)},
        {"Mod", b != 0 ? a - b * floor(a / b) : NAN},
        {"Equal", a == b},
        {"Less", a < b},
        {"Greater", a > b},
        {"LessOrEqual", a <= b},
        {"GreaterOrEqual", a >= b},
        {"And", a != 0 && b != 0},
        {"Or", a != 0 || b != 0},
        {"Min", fmin(a, b)},
        {"Max", fmax(a, b)},
        {"Sum", a + b},
        {"Neg", -a},
        {"Abs", fabs(a)},
        {"Sqrt", a >= 0 ? sqrt(a) : NAN},
        {"Floor", floor(a)},
        {"Ceil", ceil(a)},
        {"Not", a == 0},
        {"Identity", a},
        {"Exp", exp(a)},
        {"Log", a > 0 ? log(a) : NAN},
        {"Reciprocal", a != 0 ? 1 / a : NAN},
        {"Relu", fmax(a, 0)},
    };
    for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
        if (strcmp(op, results[i].op) != 0) continue;
        *out = results[i].value;
        return isfinite(*out);
    }
    return false;
}

/* Where element `index` of the broadcast shape lies in a value of fewer dimensions or extents of 1.
 */
static size_t broadcast_at(const struct dl_onnx_value *v, const struct dl_onnx_value *out,
                           size_t index) {
    size_t at = 0, stride = 1;
    for (int d = out->rank - 1, k = v->rank - 1; k >= 0; d--, k--) {
        const size_t extent = (size_t)out->dims[d], position = index % extent;
        index /= extent;
        if (v->dims[k] != 1) at += position * stride;
        stride *= (size_t)v->dims[k];
    }
    return at;
}

/* Division of whole numbers truncates, as Cast to a whole type does; halves of shapes rest on it.
 */
static double whole(double x) { return x < 0 ? ceil(x) : floor(x); }

/* The inputs of an operator whose result is computed element by element. */
struct operands {
    const struct dl_onnx_value *a, *b, *c; /* NULL: the operator has no such input */
    bool where, cast, divides_whole;
};

/* False: some number is unknown, or there are too many of them. */
static bool find_operands(struct dl_onnx_graph *g, const struct dl_onnx_node *n, bool binary,
                          struct operands *o) {
    *o = (struct operands){.a = dl_onnx_in(g, n, 0),
                           .where = strcmp(n->op, "Where") == 0,
                           .cast = strcmp(n->op, "Cast") == 0};
    if (binary) o->b = dl_onnx_in(g, n, 1);
    if (o->where) o->c = dl_onnx_in(g, n, 2);
    if (o->a == NULL || o->a->numbers == NULL || n->input_count > (o->where ? 3 : 2)) return false;
    if (binary && (o->b == NULL || o->b->numbers == NULL)) return false;
    if (o->where && (o->c == NULL || o->c->numbers == NULL)) return false;
    o->divides_whole = strcmp(n->op, "Div") == 0 && !o->a->floating && !o->b->floating;
    return true;
}

/* Element i of the result; false: this operator is not computed. */
static bool fold_one(const struct operands *o, const char *op, const struct dl_onnx_value *out,
                     size_t i, double *number) {
    const double x = o->a->numbers[broadcast_at(o->a, out, i)],
                 y = o->b != NULL ? o->b->numbers[broadcast_at(o->b, out, i)] : 0;
    if (o->where)
        *number = x != 0 ? y : o->c->numbers[broadcast_at(o->c, out, i)];
    else if (o->cast)
        *number = out->floating || fabs(x) > 9e15 ? x : whole(x);
    else if (!dl_onnx_fold(op, x, y, number))
        return false;
    if (o->divides_whole) *number = whole(*number);
    return true;
}

void dl_onnx_fold_elements(struct dl_onnx_graph *g, const struct dl_onnx_node *n, bool binary) {
    struct dl_onnx_value *out = dl_onnx_out(g, n, 0);
    const double count = out == NULL ? NAN : dl_onnx_elements(out);
    struct operands o;
    if (!(count <= DL_ONNX_NUMBERS) || !find_operands(g, n, binary, &o)) return;
    double *numbers = dl_arena_alloc(g->arena, (size_t)count, sizeof *numbers);
    for (size_t i = 0; i < (size_t)count; i++) {
        if (!fold_one(&o, n->op, out, i, &numbers[i])) return;
    }
    out->numbers = numbers;
}
