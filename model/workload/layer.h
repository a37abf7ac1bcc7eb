/* layer.h - what the files of layers/ share: the keys of an entry in a workload file, and how
 * kernels are emitted.
 *
 * A kind of layer is one `struct dl_layer_kind`, named in one row of dl_layer_kinds (layer.c). Its
 * `infer` derives shapes, parameters and work; its `kernels` lists what a device executes. Both see
 * one layer and nothing else. Not modelled: copies that a framework makes to change a memory
 * layout, fusion of neighbouring layers.
 */
#ifndef DL_MODEL_WORKLOAD_LAYER_H
#define DL_MODEL_WORKLOAD_LAYER_H

#include "model/workload/workload.h"

/* Keys of an entry other than kind, name, from, when and repeat, in the order of
 * dl_layer_key_names. */
enum dl_layer_key {
    DL_KEY_OUT = 1u << 0,
    DL_KEY_KERNEL = 1u << 1,
    DL_KEY_STRIDE = 1u << 2,
    DL_KEY_PAD = 1u << 3,
    DL_KEY_DILATION = 1u << 4,
    DL_KEY_SIZE = 1u << 5,
    DL_KEY_GROUPS = 1u << 6,
    DL_KEY_HEADS = 1u << 7,
    DL_KEY_KV_HEADS = 1u << 8,
    DL_KEY_ROWS = 1u << 9,
    DL_KEY_TOKENS = 1u << 10,
    DL_KEY_SCALE = 1u << 11,
    DL_KEY_DROPOUT = 1u << 12,
    DL_KEY_CAUSAL = 1u << 13,
    DL_KEY_FLASH = 1u << 14,
    DL_KEY_BIAS = 1u << 15,
    DL_KEY_CEIL = 1u << 16,
    DL_KEY_IN_PLACE = 1u << 17,
    DL_KEY_BIDIRECTIONAL = 1u << 18,
    DL_KEY_SPARSE = 1u << 19,
    DL_KEY_ADDITIVE = 1u << 20,
    DL_KEY_TIED = 1u << 21,
    DL_KEY_EXPERTS = 1u << 22,
    DL_KEY_TOPK = 1u << 23,
    DL_KEY_CAPACITY = 1u << 24,
    DL_KEY_GATED = 1u << 25,
    DL_KEY_ROUTER_BIAS = 1u << 26,
    DL_KEY_WINDOW = 1u << 27,
    DL_KEY_SINKS = 1u << 28,
    DL_KEY_ROTARY = 1u << 29,
    DL_KEY_WORK = 1u << 30,
};
enum { DL_LAYER_KEYS = 31 };
extern const char *const dl_layer_key_names[]; /* NULL-terminated */

extern const struct dl_layer_kind dl_layer_conv, dl_layer_conv_transpose, dl_layer_dense,
    dl_layer_batchnorm, dl_layer_layernorm, dl_layer_lrn, dl_layer_relu, dl_layer_relu6,
    dl_layer_sigmoid, dl_layer_tanh, dl_layer_gelu, dl_layer_swish, dl_layer_softmax,
    dl_layer_dropout, dl_layer_loss, dl_layer_maxpool, dl_layer_avgpool, dl_layer_global_pool,
    dl_layer_adaptive_pool, dl_layer_upsample, dl_layer_add, dl_layer_mul, dl_layer_concat,
    dl_layer_flatten, dl_layer_tokens, dl_layer_slice, dl_layer_crop, dl_layer_scale,
    dl_layer_position, dl_layer_prepend, dl_layer_embedding, dl_layer_attention, dl_layer_lstm,
    dl_layer_dot_interaction, dl_layer_split, dl_layer_moe, dl_layer_rmsnorm, dl_layer_head_norm,
    dl_layer_qk_norm, dl_layer_swiglu, dl_layer_geglu, dl_layer_relu2, dl_layer_rope,
    dl_layer_latent, dl_layer_latent_keys, dl_layer_view, dl_layer_copy, dl_layer_recorded,
    dl_layer_ssd, dl_layer_delta_rule, dl_layer_lightning, dl_layer_plain_norm, dl_layer_groupnorm,
    dl_layer_given, dl_layer_join, dl_layer_place;

/* Multiply-adds of a forward pass that model flop count: of attention only the pairs of a query
 * and a key that the mask leaves, of all else forward_macs. F-LAYER-ATTENTION */
double dl_layer_model_macs(const struct dl_layer *layer);
/* Query-key pairs of one head and sample that the mask leaves, mean over the ranks that share the
 * tokens out: causal, each query sees (k + 1) / 2 of k keys; a window of w leaves at most w. */
double dl_layer_attention_pairs(const struct dl_layer *layer);
/* The same layer run by that kernel of attention: what it keeps for backward follows. No change to
 * other kinds, or when it is OPEN. */
/* Mean length of a document / sequence. */
static inline double dl_layer_document_frac(const struct dl_layer *layer) {
    return layer->attention.document_frac > 0.0 ? layer->attention.document_frac : 1.0;
}
/* F-PACKED: tokens see those of their own document alone. */
void dl_layer_pack_attention(struct dl_layer *layer, double document_tokens);
void dl_layer_set_attention(struct dl_layer *layer, enum dl_attention_kernel attention);
/* Parameters that one token uses: of a mixture of experts only those that it goes to. */
double dl_layer_active_parameters(const struct dl_layer *layer);

/* Elements that a mixture of experts keeps in addition to its input, at the layer's tokens and
 * hidden channels. */
double dl_layer_moe_own_elements(const struct dl_layer *layer);

/* From the order of layers: `first`, `consumers` and what is kept for backward. */
void dl_layers_mark_gradients(struct dl_layer *layers, int count, struct dl_arena *scratch);

/* Whether it normalizes its input, of whatever kind. */
bool dl_layer_is_norm(const struct dl_layer *layer);

/* Number of positions: pixels, voxels or tokens; 1 for a vector. */
double dl_shape_positions(const struct dl_shape *shape);
/* Whether all extents and channels agree. */
bool dl_shape_same(const struct dl_shape *a, const struct dl_shape *b);
/* Whether the spatial extents agree. */
bool dl_shape_same_size(const struct dl_shape *a, const struct dl_shape *b);
/* "64x112x112" into out (at least 64 bytes); returns out. */
const char *dl_shape_text(const struct dl_shape *shape, char *out, size_t out_size);

/* For infer: appends a trainable tensor. DL_ERR_SYSTEM without memory, DL_ERR_INPUT above 2^53
 * elements. */
enum dl_code dl_layer_parameter(struct dl_layer *layer, struct dl_arena *arena, const char *name,
                                double elements, struct dl_err *err);
/* For infer: reports a fault in the entry's `key` (one of DL_KEY_*; 0: the layer as a whole). */
enum dl_code dl_layer_fail(struct dl_err *err, unsigned key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* `infer` of layers whose output has the shape of their first input. */
enum dl_code dl_layer_infer_same(struct dl_layer *layer, const struct dl_shape *inputs,
                                 struct dl_arena *arena, struct dl_err *err);

/* The kernels of one pass under construction. Amounts are totals of the call. Backward-data work of
 * a layer that needs none is dropped. */
struct dl_emit {
    const struct dl_layer *layer;
    const struct dl_kernel_facts *facts;
    enum dl_pass pass;
    double batch;
    double in_elements, out_elements; /* of the whole batch */
    struct dl_kernel *out;
    int count;
};
/* Starts a pass. DL_BACKWARD_DATA first adds the gradients of the layer's `consumers`: (consumers -
 * 1) times 2R + 1W. */
struct dl_emit dl_emit_begin(const struct dl_layer *layer, const struct dl_kernel_facts *facts,
                             enum dl_pass pass, double batch, struct dl_kernel *out);
/* Emits a bandwidth-bound kernel, unless it moves nothing. extra_bytes: of fixed width (masks,
 * indices). */
void dl_emit_stream(struct dl_emit *emit, double flop, double read_elements, double write_elements,
                    double extra_bytes);
/* Emits `count` GEMMs in one call, column-major as in BLAS and DeepBench: C[m,n] = op(A)[m,k]
 * op(B)[k,n]. */
void dl_emit_gemm(struct dl_emit *emit, double m, double n, double k, double count, bool a_trans,
                  bool b_trans);
void dl_emit_kernel(struct dl_emit *emit, struct dl_kernel kernel);
/* Emits the kernels of a composed operation over n elements as one, and the casts that mixed
 * precision puts next to it. F-KERNEL-FACTS */
void dl_emit_passes(struct dl_emit *emit, const struct dl_passes *passes, double flop, double n,
                    enum dl_fact_op op);
/* Gives the last kernel its type where the policy of mixed precision keeps `op` in fp32. */
void dl_emit_type(struct dl_emit *emit, enum dl_fact_op op);

/* The repeated block that a layer's name begins with. */
struct dl_layer_block dl_layer_block(const char *name);

#endif
