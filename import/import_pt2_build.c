/* import_pt2_build.c - appends operators of ONNX to the graph of a torch.export archive. */
#include <math.h>
#include <string.h>

#include "import/import_pt2.h"

struct dl_onnx_value *dl_pt2_value(const struct dl_pt2_call *c, int value) {
    return &c->graph->values[value];
}

struct dl_pt2_build dl_pt2_begin(struct dl_pt2_call *c, const char *op, int input) {
    return (struct dl_pt2_build){.call = c, .op = op, .inputs = {input}, .input_count = 1};
}

void dl_pt2_input(struct dl_pt2_build *b, int value) {
    if (b->input_count < DL_PT2_LIST) b->inputs[b->input_count++] = value;
}

void dl_pt2_attribute(struct dl_pt2_build *b, const char *name, double number) {
    b->attributes[b->attribute_count++] =
        (struct dl_onnx_attribute){.name = name, .number = number, .value = -1};
}

void dl_pt2_attribute_list(struct dl_pt2_build *b, const char *name, const double *numbers,
                           int count) {
    double *kept = dl_arena_alloc(b->call->graph->arena, (size_t)count + 1, sizeof *kept);
    if (count > 0) memcpy(kept, numbers, (size_t)count * sizeof *kept);
    b->attributes[b->attribute_count++] =
        (struct dl_onnx_attribute){.name = name, .list = kept, .count = count, .value = -1};
}

/* A value of the translation alone. */
int dl_pt2_temporary(struct dl_pt2_call *c) {
    struct dl_onnx_graph *g = c->graph;
    return dl_onnx_value(g, dl_arena_printf(g->arena, " %d of %s", g->value_count, c->name));
}

/* rank 0: one number; 1: a list. */
int dl_pt2_constant(struct dl_pt2_call *c, const double *numbers, int count, int rank) {
    const int index = dl_pt2_temporary(c);
    double *kept = dl_arena_alloc(c->graph->arena, (size_t)count + 1, sizeof *kept);
    if (count > 0) memcpy(kept, numbers, (size_t)count * sizeof *kept);
    struct dl_onnx_value *v = dl_pt2_value(c, index);
    v->rank = rank;
    v->dims[0] = rank > 0 ? count : 0;
    v->made = v->known = v->constant = v->floating = true;
    v->numbers = kept;
    return index;
}

void dl_pt2_finish(struct dl_pt2_build *b, const int *outputs, int count) {
    struct dl_onnx_graph *g = b->call->graph;
    if (g->node_count == *b->call->node_capacity) {
        const int capacity = g->node_count == 0 ? 256 : 2 * g->node_count;
        struct dl_onnx_node *grown = dl_arena_alloc(g->arena, (size_t)capacity, sizeof *grown);
        if (g->node_count > 0) memcpy(grown, g->nodes, (size_t)g->node_count * sizeof *grown);
        g->nodes = grown;
        *b->call->node_capacity = capacity;
    }
    int *in = dl_arena_alloc(g->arena, (size_t)b->input_count + 1, sizeof *in),
        *out = dl_arena_alloc(g->arena, (size_t)count + 1, sizeof *out);
    struct dl_onnx_attribute *attributes =
        dl_arena_alloc(g->arena, (size_t)b->attribute_count + 1, sizeof *attributes);
    memcpy(in, b->inputs, (size_t)b->input_count * sizeof *in);
    memcpy(out, outputs, (size_t)count * sizeof *out);
    memcpy(attributes, b->attributes, (size_t)b->attribute_count * sizeof *attributes);
    for (int i = 0; i < count; i++) {
        dl_pt2_value(b->call, out[i])->made = true;
        dl_pt2_value(b->call, out[i])->node = g->node_count;
    }
    g->nodes[g->node_count++] = (struct dl_onnx_node){.op = b->op,
                                                      .name = b->call->name,
                                                      .domain = "",
                                                      .inputs = in,
                                                      .input_count = b->input_count,
                                                      .outputs = out,
                                                      .output_count = count,
                                                      .attributes = attributes,
                                                      .attribute_count = b->attribute_count};
}

/* Its output is the call's. */
void dl_pt2_end(struct dl_pt2_build *b) { dl_pt2_finish(b, b->call->outputs, 1); }

int dl_pt2_then(struct dl_pt2_build *b) {
    const int out = dl_pt2_temporary(b->call);
    dl_pt2_finish(b, &out, 1);
    return out;
}

int dl_pt2_tensor(const struct dl_pt2_call *c, const char *name) {
    int values[DL_PT2_LIST];
    return dl_pt2_tensors(c, dl_pt2_argument(c, name), values) > 0 ? values[0] : -1;
}

/* ATen calls what an operator computes on `self` or `input`. */
int dl_pt2_sample(const struct dl_pt2_call *c) {
    const int self = dl_pt2_tensor(c, "self");
    return self >= 0 ? self : dl_pt2_tensor(c, "input");
}

/* A tensor, or a number as a constant; -1: neither. */
int dl_pt2_operand(struct dl_pt2_call *c, const char *name) {
    const int value = dl_pt2_tensor(c, name);
    const double number = dl_pt2_number(c, name, NAN);
    return value < 0 && !isnan(number) ? dl_pt2_constant(c, &number, 1, 0) : value;
}

int dl_pt2_rank(const struct dl_pt2_call *c, int value) {
    const struct dl_onnx_value *v = dl_pt2_value(c, value);
    return v->declared_rank > 0 ? v->declared_rank : 0;
}
