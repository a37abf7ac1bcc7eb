/* import_graph.h - an ONNX graph as dlmodel reads it: values with shapes, nodes in order of
 * execution, constants.
 *
 * import_onnx.c fills it from a file, import_shape.c adds shapes and constants, import_layers.c
 * turns it into layers.
 */
#ifndef DL_IMPORT_IMPORT_GRAPH_H
#define DL_IMPORT_IMPORT_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include "model/core/arena.h"
#include "model/core/status.h"
#include "model/catalog/data.h"

enum {
    DL_ONNX_RANK = 8,       /* most dimensions of a tensor */
    DL_ONNX_NUMBERS = 4096, /* most elements of a constant whose numbers are kept */
    DL_ONNX_INPUTS = 4096,  /* most inputs or outputs of a node */
};

struct dl_onnx_value {
    const char *name;
    bool made;  /* a node, an initializer or an input gives it */
    bool known; /* its shape is */
    int rank;
    int64_t dims[DL_ONNX_RANK];
    /* names of dimensions without a number, of graph inputs and declared shapes */
    const char *symbols[DL_ONNX_RANK];
    int declared_rank;              /* of the declared shape; -1: not declared */
    int64_t declared[DL_ONNX_RANK]; /* 0: symbolic */
    bool floating;                  /* its elements are floating-point numbers */
    bool constant;                  /* does not depend on the graph's inputs */
    bool initializer;
    /* of a constant with at most DL_ONNX_NUMBERS elements; NULL: not known */
    const double *numbers;
    /* of a constant: the value it is a view of (Transpose, Reshape, ...), itself when none */
    int origin;
    int node; /* that makes it, -1: none */
};

struct dl_onnx_attribute {
    const char *name;
    double number; /* f or i */
    const double *list;
    int count;        /* floats or ints */
    const char *text; /* s, NULL: none */
    int value;        /* of a tensor: an initializer-like value, -1: none */
};

struct dl_onnx_node {
    const char *op, *name, *domain; /* domain: "" of ONNX itself */
    int *inputs;
    int input_count; /* values; -1: left out */
    int *outputs;
    int output_count;
    struct dl_onnx_attribute *attributes;
    int attribute_count;
};

struct dl_onnx_graph {
    const char *file, *name, *producer;
    const char *format; /* "ONNX" */
    int64_t opset;
    struct dl_onnx_value *values;
    int value_count;
    struct dl_onnx_node *nodes;
    int node_count;
    int *inputs;
    int input_count; /* without initializers */
    int *outputs;
    int output_count;
    int64_t batch;      /* samples in the shapes */
    int stripped_count; /* initializers without data */
    struct dl_arena *arena;
    int *table;
    int table_size; /* hash table of names */
};

/* --dim NAME=N: the number of a symbolic dimension. */
struct dl_onnx_dim {
    const char *name;
    int64_t extent;
};

/* Reads a model. DL_ERR_INPUT: not a model, damaged, or against ONNX's rules (a value made twice or
 * used before it is made). DL_ERR_BACKEND: this program was built without protobuf-c. */
enum dl_code dl_onnx_read(const struct dl_data *data, const char *path, struct dl_arena *arena,
                          struct dl_onnx_graph *out, struct dl_err *err);
enum dl_code dl_onnx_parse(const char *name, const unsigned char *bytes, size_t length,
                           struct dl_arena *arena, struct dl_onnx_graph *out, struct dl_err *err);

/* Index of the value of that name, created if absent. */
int dl_onnx_value(struct dl_onnx_graph *graph, const char *name);
const struct dl_onnx_attribute *dl_onnx_attribute(const struct dl_onnx_node *node,
                                                  const char *name);
/* Element i of a list, or `otherwise`. */
double dl_onnx_list_at(const struct dl_onnx_node *node, const char *name, int i, double otherwise);
double dl_onnx_number(const struct dl_onnx_node *node, const char *name, double otherwise);
double dl_onnx_elements(const struct dl_onnx_value *value); /* NAN when the shape is not known */

/* Numbers for the symbolic dimensions of the graph's inputs: the first of the first input is the
 * batch, 1; others must be among `dims`. DL_ERR_USAGE names one that is missing, or one that the
 * graph does not have. */
enum dl_code dl_onnx_set_inputs(struct dl_onnx_graph *graph, const struct dl_onnx_dim *dims,
                                int dim_count, struct dl_err *err);

/* Shapes and constants of a node's outputs from its inputs; unsupported ones stay unknown. A
 * contradiction is DL_ERR_INPUT. Pure but for the graph's values. */
enum dl_code dl_onnx_infer(struct dl_onnx_graph *graph, int node, struct dl_err *err);
/* Values of constants of element-wise operators and comparisons: false for any other
 * operator. */
bool dl_onnx_fold(const char *op, double a, double b, double *out);
/* Numbers of a node's first output whose inputs are small constants; binary: it takes two of them,
 * broadcast. Leaves them unknown where it cannot compute them. */
void dl_onnx_fold_elements(struct dl_onnx_graph *graph, const struct dl_onnx_node *node,
                           bool binary);
/* The shape operators (Reshape, Slice, ...): *done is false for any other operator. */
enum dl_code dl_onnx_infer_view(struct dl_onnx_graph *graph, const struct dl_onnx_node *node,
                                bool *done, struct dl_err *err);
/* Numbers of a list that is an input, or before that opset an attribute; -1: not known. */
int dl_onnx_list(const struct dl_onnx_graph *graph, const struct dl_onnx_node *node, int input,
                 const char *name, const double **out);
/* Room for the numbers of a value; NULL: they are too many, or memory is exhausted. */
double *dl_onnx_new_numbers(struct dl_onnx_graph *graph, const struct dl_onnx_value *value);
typedef enum dl_code dl_onnx_infer_fn(struct dl_onnx_graph *graph, const struct dl_onnx_node *node,
                                      struct dl_err *err);
dl_onnx_infer_fn dl_onnx_infer_constant, dl_onnx_infer_filled, dl_onnx_infer_range;
/* For both: input or output `i` of a node, NULL when it is left out; a fault of a node. */
struct dl_onnx_value *dl_onnx_in(const struct dl_onnx_graph *graph, const struct dl_onnx_node *node,
                                 int i);
struct dl_onnx_value *dl_onnx_out(const struct dl_onnx_graph *graph,
                                  const struct dl_onnx_node *node, int i);
enum dl_code dl_onnx_fail(const struct dl_onnx_graph *graph, const struct dl_onnx_node *node,
                          struct dl_err *err, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Sets the shape of output 0; elements beyond 2^53 are an error. */
enum dl_code dl_onnx_shape(const struct dl_onnx_graph *graph, const struct dl_onnx_node *node,
                           int output, int rank, const int64_t *dims, struct dl_err *err);

#endif
