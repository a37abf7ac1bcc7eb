/* mutate_onnx.h - mutations of a model that stay a model: the message is read, one node, tensor or
 * name of it changes, and it is written again. Where protobuf-c is not there, or the bytes are no
 * model, bytes are mutated. */
#ifndef DL_TESTS_FUZZ_MUTATE_ONNX_H
#define DL_TESTS_FUZZ_MUTATE_ONNX_H

#include <stdlib.h>

#include "tests/fuzz/mutate.h"

#ifdef DL_HAVE_PROTOBUF_C
#include "import/onnx.pb-c.h"

static const int64_t mutate_extents[] = {0,
                                         1,
                                         2,
                                         3,
                                         4,
                                         7,
                                         8,
                                         64,
                                         224,
                                         1000,
                                         65536,
                                         -1,
                                         -2,
                                         4096,
                                         2147483648,
                                         9007199254740992,
                                         9000000000000000,
                                         4611686018427387904,
                                         INT64_MAX,
                                         INT64_MIN};
static const char *const mutate_operators[] = {"Add",
                                               "Mul",
                                               "Div",
                                               "Where",
                                               "Reshape",
                                               "Flatten",
                                               "Transpose",
                                               "Squeeze",
                                               "Unsqueeze",
                                               "Concat",
                                               "Split",
                                               "Slice",
                                               "Gather",
                                               "Expand",
                                               "Tile",
                                               "Shape",
                                               "Constant",
                                               "Range",
                                               "Conv",
                                               "MatMul",
                                               "Gemm",
                                               "MaxPool",
                                               "Relu",
                                               "Softmax",
                                               "Resize",
                                               "Pad",
                                               "Cast",
                                               "ReduceMean",
                                               "LSTM",
                                               "Identity",
                                               "Attention",
                                               "ConstantOfShape",
                                               "ConvTranspose",
                                               "BatchNormalization",
                                               "GlobalAveragePool",
                                               "LayerNormalization",
                                               "AveragePool",
                                               "DepthToSpace",
                                               "ReduceProd"};
enum {
    MUTATE_EXTENTS = sizeof mutate_extents / sizeof mutate_extents[0],
    MUTATE_OPERATORS = sizeof mutate_operators / sizeof mutate_operators[0]
};

static int64_t mutate_extent(uint32_t *state) {
    return mutate_extents[mutate_below(state, MUTATE_EXTENTS)];
}

static void mutate_tensor(DlOnnx__TensorProto *t, uint32_t *state) {
    if (t == NULL) return;
    if (t->n_dims > 0 && mutate_below(state, 2) == 0)
        t->dims[mutate_below(state, t->n_dims)] = mutate_extent(state);
    else if (t->n_int64_data > 0)
        t->int64_data[mutate_below(state, t->n_int64_data)] = mutate_extent(state);
    else if (t->raw_data.len >= 8)
        memcpy(t->raw_data.data + 8 * mutate_below(state, t->raw_data.len / 8),
               &mutate_extents[mutate_below(state, MUTATE_EXTENTS)], 8);
    else
        t->data_type = (int32_t)mutate_below(state, 17);
}

static void mutate_attribute(DlOnnx__AttributeProto *a, uint32_t *state) {
    if (a == NULL) return;
    if (a->n_ints > 0) a->ints[mutate_below(state, a->n_ints)] = mutate_extent(state);
    if (a->has_i) a->i = mutate_extent(state);
    if (a->has_f) a->f = (float)mutate_extent(state);
}

static void mutate_node(DlOnnx__GraphProto *g, DlOnnx__NodeProto *n, uint32_t *state) {
    const DlOnnx__NodeProto *other = g->node[mutate_below(state, g->n_node)];
    DlOnnx__AttributeProto *a =
        n->n_attribute > 0 ? n->attribute[mutate_below(state, n->n_attribute)] : NULL;
    char *name = other->n_output > 0 ? other->output[0] : NULL;
    switch (mutate_below(state, 6)) {
    case 0:
        free(n->op_type);
        n->op_type = strdup(mutate_operators[mutate_below(state, MUTATE_OPERATORS)]);
        break;
    case 1: /* it reads another value */
        if (n->n_input == 0 || name == NULL) break;
        char **input = &n->input[mutate_below(state, n->n_input)];
        name = strdup(name);
        free(*input);
        *input = name;
        break;
    case 2: /* an input or an output less */
        if (mutate_below(state, 2) == 0 && n->n_input > 0) free(n->input[--n->n_input]);
        if (mutate_below(state, 4) == 0 && n->n_output > 0) free(n->output[--n->n_output]);
        break;
    case 3: mutate_attribute(a, state); break;
    case 4:
        if (a != NULL) mutate_tensor(a->t, state);
        break;
    default: { /* the nodes swap their operators, so that attributes no longer fit */
        DlOnnx__NodeProto *with = g->node[mutate_below(state, g->n_node)];
        char *op = with->op_type;
        with->op_type = n->op_type;
        n->op_type = op;
    }
    }
}

static void mutate_graph(DlOnnx__GraphProto *g, uint32_t *state) {
    const size_t kind = mutate_below(state, 8);
    if (kind == 0 && g->n_initializer > 0) {
        mutate_tensor(g->initializer[mutate_below(state, g->n_initializer)], state);
    } else if (kind == 1 && g->n_input > 0) {
        const DlOnnx__ValueInfoProto *v = g->input[mutate_below(state, g->n_input)];
        DlOnnx__TensorShapeProto *shape =
            v->type != NULL && v->type->tensor_type != NULL ? v->type->tensor_type->shape : NULL;
        if (shape == NULL || shape->n_dim == 0) return;
        shape->dim[mutate_below(state, shape->n_dim)]->has_dim_value = 1;
        shape->dim[mutate_below(state, shape->n_dim)]->dim_value = mutate_extent(state);
    } else if (kind == 2 && g->n_node > 1) {
        dl_onnx__node_proto__free_unpacked(g->node[--g->n_node], NULL);
    } else if (g->n_node > 0) {
        mutate_node(g, g->node[mutate_below(state, g->n_node)], state);
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
    uint32_t state = seed * 2654435761u + 1;
    DlOnnx__ModelProto *model =
        mutate_below(&state, 5) == 0 ? NULL : dl_onnx__model_proto__unpack(NULL, size, data);
    if (model == NULL || model->graph == NULL) {
        if (model != NULL) dl_onnx__model_proto__free_unpacked(model, NULL);
        return LLVMFuzzerMutate(data, size, max_size);
    }
    for (size_t i = 0, count = 1 + mutate_below(&state, 3); i < count; i++)
        mutate_graph(model->graph, &state);
    const size_t length = dl_onnx__model_proto__get_packed_size(model);
    if (length <= max_size) size = dl_onnx__model_proto__pack(model, data);
    dl_onnx__model_proto__free_unpacked(model, NULL);
    return size;
}
#endif
#endif
