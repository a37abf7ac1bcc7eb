/* import_pt2.h - a torch.export archive as a graph of ONNX operators, which import_layers.c turns
 * into layers. */
#ifndef DL_IMPORT_IMPORT_PT2_H
#define DL_IMPORT_IMPORT_PT2_H

#include "import/import_graph.h"
#include "model/core/json_node.h"

enum {
    DL_PT2_LIST = 64, /* most tensors or numbers of an argument */
    DL_PT2_ATTRIBUTES = 8
};

/* A call of an ATen operator, and the graph that receives ONNX's operators for it. */
struct dl_pt2_call {
    struct dl_onnx_graph *graph;
    int *node_capacity;
    const struct dl_json_node *inputs; /* its arguments, with their names */
    const char *operator_name;         /* "conv2d": without overload and the '_' of in-place */
    const char *name;
    int outputs[DL_PT2_LIST], output_count;
};

/* The archive's graph. DL_ERR_INPUT: no archive, damaged, or of another schema. */
enum dl_code dl_pt2_read(const struct dl_data *data, const char *path, struct dl_arena *arena,
                         struct dl_onnx_graph *out, struct dl_err *err);
/* The JSON of models/model.json. */
enum dl_code dl_pt2_parse(const char *path, const char *json, size_t length, struct dl_arena *arena,
                          struct dl_onnx_graph *out, struct dl_err *err);

/* Appends the operators that compute the call's outputs; an ATen operator without any keeps its
 * name, which no layer corresponds to. */
void dl_pt2_translate(struct dl_pt2_call *call);

/* ---- for the operators ---- */

/* The argument's value; NULL: it is not given, or None. */
const struct dl_json_node *dl_pt2_argument(const struct dl_pt2_call *call, const char *name);
/* Values of a tensor or list of tensors; how many. */
int dl_pt2_tensors(const struct dl_pt2_call *call, const struct dl_json_node *argument,
                   int out[DL_PT2_LIST]);
double dl_pt2_number(const struct dl_pt2_call *call, const char *name, double otherwise);
/* Whole numbers of a list; how many. */
int dl_pt2_numbers(const struct dl_pt2_call *call, const char *name, double out[DL_PT2_LIST]);

/* An operator of ONNX before it is appended. */
struct dl_pt2_build {
    struct dl_pt2_call *call;
    const char *op;
    int inputs[DL_PT2_LIST], input_count;
    struct dl_onnx_attribute attributes[DL_PT2_ATTRIBUTES];
    int attribute_count;
};

struct dl_pt2_build dl_pt2_begin(struct dl_pt2_call *call, const char *op, int input);
void dl_pt2_input(struct dl_pt2_build *b, int value);
void dl_pt2_attribute(struct dl_pt2_build *b, const char *name, double number);
void dl_pt2_attribute_list(struct dl_pt2_build *b, const char *name, const double *numbers,
                           int count);
/* Appends it: with these outputs, with the call's, or with one that only the translation has. */
void dl_pt2_finish(struct dl_pt2_build *b, const int *outputs, int count);
void dl_pt2_end(struct dl_pt2_build *b);
int dl_pt2_then(struct dl_pt2_build *b);
int dl_pt2_temporary(struct dl_pt2_call *call);
/* A constant; rank 0: one number, 1: a list. */
int dl_pt2_constant(struct dl_pt2_call *call, const double *numbers, int count, int rank);
struct dl_onnx_value *dl_pt2_value(const struct dl_pt2_call *call, int value);
/* The tensor of an argument; -1: none. dl_pt2_sample: what ATen calls `self` or `input`. */
int dl_pt2_tensor(const struct dl_pt2_call *call, const char *name);
int dl_pt2_sample(const struct dl_pt2_call *call);
/* A tensor, or a number as a constant; -1: neither. */
int dl_pt2_operand(struct dl_pt2_call *call, const char *name);
int dl_pt2_rank(const struct dl_pt2_call *call, int value);

#endif
