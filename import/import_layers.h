/* import_layers.h - from the nodes of an ONNX graph to the layers of a workload.
 *
 * Each value of the graph is held by the output of a layer (a "flow"), perhaps in another
 * arrangement: reshape, transpose and cuts emit nothing until a layer needs them. Element-wise
 * chains of one value (x * sigmoid(x), the parts of a layer norm) stay open until something else
 * reads them, and then become one layer.
 */
#ifndef DL_IMPORT_IMPORT_LAYERS_H
#define DL_IMPORT_IMPORT_LAYERS_H

#include "model/workload/layer.h"
#include "import/import_graph.h"

/* held by the workload's input; by nothing (constants) */
enum { DL_FLOW_INPUT = -1, DL_FLOW_NONE = -2 };

/* What an open chain has done to its root. */
enum {
    /* a number in; the root or a function of it times another */
    DL_HOW_SCALAR = 1 << 0,
    DL_HOW_SELF = 1 << 1,
    DL_HOW_SUB = 1 << 2,
    DL_HOW_POW = 1 << 3,
    DL_HOW_MEAN = 1 << 4,   /* over the channels of each position */
    DL_HOW_WEIGHT = 1 << 5, /* times a learned value per channel */
    /* gate: hard sigmoid */
    DL_HOW_RELU = 1 << 6,
    DL_HOW_CLIP = 1 << 7,
    DL_HOW_SIGMOID = 1 << 8,
    DL_HOW_GATE = 1 << 9,
    DL_HOW_TANH = 1 << 10,
    DL_HOW_ERF = 1 << 11,
    DL_HOW_SOFTPLUS = 1 << 12,
    DL_HOW_EXP = 1 << 13,
    DL_HOW_FUNCTIONS = 0x3fc0,
};

struct dl_flow {
    int item; /* layer whose output holds it, or DL_FLOW_* */
    int root; /* open chain: the value that it is a function of; -1: closed */
    unsigned how;
    int scores;       /* 1 + index of the attention scores that it is; 0: none */
    int weight, bias; /* values: learned scale and shift of an open normalization; -1: none */
    /* of a Pad before it, to be taken over by the next window; NULL: none */
    const double *pad;
    int pad_rank;
    bool state; /* last state of an LSTM */
};

struct dl_scores {
    int queries, keys;                          /* values */
    double heads, query_count, key_count, size; /* size: channels of one head */
    double dropout;
    bool causal, softmax;
};

struct dl_import_item {
    /* geometry and what the kind's infer made of it; inputs are items or DL_FLOW_INPUT */
    struct dl_layer layer;
    const char *name;
    int tied;    /* item whose weight this one uses, -1: its own */
    bool affine; /* a normalization whose scale and shift may still come */
};

/* unknown: no layer corresponds to the operator */
struct dl_left_out {
    int node;
    const char *why;
    bool unknown;
};

struct dl_import_net {
    struct dl_onnx_graph *graph;
    struct dl_arena *arena;
    struct dl_flow *flows; /* one a value */
    struct dl_scores *scores;
    int score_count;
    struct dl_import_item *items;
    int item_count;
    struct dl_left_out *left;
    int left_count; /* at most one a node */
    /* of a constant that no other makes: 1 + the first item that learns it; 0: none */
    int *owner;
    struct dl_onnx_graph names; /* a set of the names that are taken */
    struct dl_shape input;      /* of the workload */
    bool tokens;                /* the input is a sequence of tokens */
    int node;                   /* being mapped */
    /* multiply-adds a sample, counted from the nodes that became layers */
    double forward_macs;
    /* operators that emit nothing; norms without learned values; weights counted twice */
    int scalar_count, unscaled_count, shared_count;
};

/* Maps all nodes. DL_ERR_INPUT: against ONNX's rules. Nodes without a layer are in left. */
enum dl_code dl_import_map(struct dl_onnx_graph *graph, struct dl_import_net *out,
                           struct dl_err *err);

/* ---- for import_layers.c, import_kinds.c, import_chain.c and import_attention.c ---- In these,
 * DL_ERR_INPUT: no layer corresponds to the node, for the reason in the message. */

const struct dl_shape *dl_net_shape(const struct dl_import_net *net, int item);
double dl_net_elements(const struct dl_import_net *net, int value); /* of one sample */
struct dl_onnx_value *dl_net_value(const struct dl_import_net *net, int value);
/* Appends a layer whose kind and geometry are in *layer; weight: value that names it and that it
 * learns, -1: none. */
enum dl_code dl_net_emit(struct dl_import_net *net, struct dl_layer *layer, const int *inputs,
                         int input_count, int weight, int *item, struct dl_err *err);
/* A unique name for an item, from the weight that it learns (-1: none) or its node. */
void dl_net_name(struct dl_import_net *net, struct dl_import_item *item, int weight);
struct dl_layer dl_net_layer(const struct dl_layer_kind *kind); /* neutral geometry */
/* Marks the initializers that a value comes from as learned by `item`; returns the item that had
 * the first of them, or -1. */
int dl_net_learn(struct dl_import_net *net, int value, int item);
/* Infers a layer again after its geometry changed (a bias that came later). */
enum dl_code dl_net_again(struct dl_import_net *net, int item, struct dl_err *err);
void dl_net_hold(struct dl_import_net *net, int value, int item);
/* Appends a layer that reads `item` and whose output holds the value `out`. */
enum dl_code dl_net_put(struct dl_import_net *net, struct dl_layer *layer, int item, int weight,
                        int out, struct dl_err *err);

/* Closes an open chain: afterwards the value's flow has an item. */
enum dl_code dl_net_close(struct dl_import_net *net, int value, struct dl_err *err);
/* Item that holds exactly this value, sliced where it is a part of one. */
enum dl_code dl_net_whole(struct dl_import_net *net, int value, int *item, struct dl_err *err);
/* Item that holds the value as positions of `channels` each: a sequence, a vector, or with *pixels
 * an image. */
enum dl_code dl_net_rows(struct dl_import_net *net, int value, double channels, int *item,
                         bool *pixels, struct dl_err *err);
/* Item that holds `item` as a sequence of `channels`, with tokens or a part put in where needed. */
enum dl_code dl_net_sequence(struct dl_import_net *net, int item, double channels, int *out,
                             struct dl_err *err);

typedef enum dl_code dl_map_fn(struct dl_import_net *net, const struct dl_onnx_node *n,
                               struct dl_err *err);
dl_map_fn dl_map_unary, dl_map_binary, dl_map_mean, dl_map_softmax, dl_map_matmul, dl_map_where,
    dl_map_norm, dl_map_dense, dl_map_attention_op, dl_map_conv, dl_map_pool, dl_map_global_pool,
    dl_map_batchnorm, dl_map_gather, dl_map_concat, dl_map_lstm, dl_map_resize, dl_map_pad,
    dl_map_lrn, dl_map_dropout;
enum dl_code dl_net_dense(struct dl_import_net *net, int x, int weight, double in, double out,
                          int *item, struct dl_err *err);

#endif
