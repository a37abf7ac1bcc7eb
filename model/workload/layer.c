/* layer.c - the table of layer kinds and what they share.
 *
 * A kind is added by one file (or one entry in the file of its family) and one row here.
 */
#include "model/workload/layer.h"

#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct dl_layer_kind *const dl_layer_kinds[] = {
    &dl_layer_conv,
    &dl_layer_conv_transpose,
    &dl_layer_dense,
    &dl_layer_batchnorm,
    &dl_layer_layernorm,
    &dl_layer_lrn,
    &dl_layer_relu,
    &dl_layer_relu6,
    &dl_layer_sigmoid,
    &dl_layer_tanh,
    &dl_layer_gelu,
    &dl_layer_swish,
    &dl_layer_softmax,
    &dl_layer_dropout,
    &dl_layer_maxpool,
    &dl_layer_avgpool,
    &dl_layer_global_pool,
    &dl_layer_adaptive_pool,
    &dl_layer_upsample,
    &dl_layer_add,
    &dl_layer_mul,
    &dl_layer_concat,
    &dl_layer_flatten,
    &dl_layer_tokens,
    &dl_layer_slice,
    &dl_layer_crop,
    &dl_layer_scale,
    &dl_layer_position,
    &dl_layer_prepend,
    &dl_layer_embedding,
    &dl_layer_attention,
    &dl_layer_lstm,
    &dl_layer_dot_interaction,
    &dl_layer_loss,
    &dl_layer_split,
    &dl_layer_moe,
    &dl_layer_rmsnorm,
    &dl_layer_head_norm,
    &dl_layer_qk_norm,
    &dl_layer_swiglu,
    &dl_layer_geglu,
    &dl_layer_relu2,
    &dl_layer_rope,
    &dl_layer_latent,
    &dl_layer_latent_keys,
    &dl_layer_view,
    &dl_layer_copy,
    &dl_layer_recorded,
    &dl_layer_ssd,
    &dl_layer_delta_rule,
    &dl_layer_lightning,
    &dl_layer_plain_norm,
    &dl_layer_groupnorm,
    &dl_layer_given,
    &dl_layer_join,
    &dl_layer_place,
    NULL,
};

const char *const dl_layer_key_names[] = {
    "out",      "kernel",   "stride",        "pad",    "dilation", "size",   "groups",  "heads",
    "kv_heads", "rows",     "tokens",        "scale",  "dropout",  "causal", "flash",   "bias",
    "ceil",     "in_place", "bidirectional", "sparse", "additive", "tied",   "experts", "topk",
    "capacity", "gated",    "router_bias",   "window", "sinks",    "rotary", "work",    NULL,
};

const struct dl_layer_kind *dl_layer_kind_find(const char *name) {
    for (size_t i = 0; name != NULL && dl_layer_kinds[i] != NULL; i++) {
        const struct dl_layer_kind *kind = dl_layer_kinds[i];
        if (strcmp(kind->name, name) == 0) return kind;
        if (kind->alias != NULL && strcmp(kind->alias, name) == 0) return kind;
    }
    return NULL;
}

double dl_layer_model_macs(const struct dl_layer *layer) {
    if (layer->kind != &dl_layer_attention) return layer->forward_macs;
    double keys = layer->requested.tokens * dl_layer_document_frac(layer);
    if (layer->attention.window > 0.0 && layer->attention.window < keys)
        keys = layer->attention.window;
    return layer->forward_macs * dl_layer_attention_pairs(layer) /
           (layer->out.size[DL_DIMS - 1] * keys);
}

double dl_layer_active_parameters(const struct dl_layer *layer) {
    double expert = 0.0; /* all tensors of experts; the router is used by every token */
    for (int i = 0; layer->kind == &dl_layer_moe && i < layer->parameter_count; i++)
        if (strncmp(layer->parameters[i].name, "router", 6) != 0)
            expert += layer->parameters[i].elements;
    if (!(expert > 0.0)) return layer->parameter_elements;
    return layer->parameter_elements - expert * (1.0 - layer->moe.top_k / layer->moe.experts);
}

double dl_shape_positions(const struct dl_shape *shape) {
    return shape->size[0] * shape->size[1] * shape->size[2];
}

double dl_shape_elements(const struct dl_shape *shape) {
    return shape->channels * dl_shape_positions(shape);
}

bool dl_shape_same_size(const struct dl_shape *a, const struct dl_shape *b) {
    if (a->dims != b->dims) return false;
    for (int i = 0; i < DL_DIMS; i++) {
        if (a->size[i] != b->size[i]) return false;
    }
    return true;
}

bool dl_shape_same(const struct dl_shape *a, const struct dl_shape *b) {
    return a->channels == b->channels && dl_shape_same_size(a, b);
}

const char *dl_shape_text(const struct dl_shape *shape, char *out, size_t out_size) {
    int length = snprintf(out, out_size, "%.0f", shape->channels);
    for (int i = DL_DIMS - shape->dims; i < DL_DIMS; i++) {
        if (length < 0 || (size_t)length >= out_size) break;
        length += snprintf(out + length, out_size - (size_t)length, "x%.0f", shape->size[i]);
    }
    return out;
}

enum dl_code dl_layer_fail(struct dl_err *err, unsigned key, const char *format, ...) {
    char message[sizeof err->message];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    enum dl_code code = dl_fail(err, DL_ERR_INPUT, "%s", message);
    for (int i = 0; err != NULL && i < DL_LAYER_KEYS; i++) {
        if (key == 1u << i) snprintf(err->key, sizeof err->key, "%s", dl_layer_key_names[i]);
    }
    return code;
}

enum dl_code dl_layer_parameter(struct dl_layer *layer, struct dl_arena *arena, const char *name,
                                double elements, struct dl_err *err) {
    if (!(elements <= 9007199254740992.0)) { /* 2^53: beyond it a double does not count exactly */
        return dl_layer_fail(err, 0,
                             "parameter tensor '%s' would have %g elements; expected at most 2^53",
                             name, elements);
    }
    int count = layer->parameter_count;
    struct dl_parameter *grown = dl_arena_alloc(arena, (size_t)count + 1, sizeof *grown);
    if (count > 0) memcpy(grown, layer->parameters, (size_t)count * sizeof *grown);
    grown[count].name = name;
    grown[count].elements = elements;
    layer->parameters = grown;
    layer->parameter_count = count + 1;
    layer->parameter_elements += elements;
    return DL_OK;
}

enum dl_code dl_layer_infer_same(struct dl_layer *layer, const struct dl_shape *inputs,
                                 struct dl_arena *arena, struct dl_err *err) {
    (void)arena;
    (void)err;
    layer->out = inputs[0];
    return DL_OK;
}

bool dl_layer_is_norm(const struct dl_layer *layer) {
    return strstr(layer->kind->name, "norm") != NULL;
}

struct dl_emit dl_emit_begin(const struct dl_layer *layer, const struct dl_kernel_facts *facts,
                             enum dl_pass pass, double batch, struct dl_kernel *out) {
    struct dl_emit emit = {
        .layer = layer, .facts = facts, .pass = pass, .batch = batch, .out = out};
    emit.in_elements = batch * layer->in_elements;
    emit.out_elements = batch * dl_shape_elements(&layer->out);
    if (pass == DL_BACKWARD_DATA && layer->consumers > 1 && batch > 0.0) {
        /* One kernel represents all additions; each reads two tensors and writes one. */
        const double n = emit.out_elements, additions = (double)(layer->consumers - 1);
        const bool at_once = facts->sums == DL_SUM_AT_ONCE;
        struct dl_kernel join = dl_kernel_stream(
            pass, additions * n, at_once ? (additions + 1.0) * n : 2.0 * additions * n,
            at_once ? n : additions * n);
        join.launches = at_once ? 1.0 : additions;
        if (layer->out.dims == 1 && dl_fact_is_fp32(facts, DL_FACT_RESIDUAL)) {
            join.has_type = true;
            join.type = DL_FP32;
        }
        emit.out[emit.count++] = join;
    }
    return emit;
}

void dl_emit_kernel(struct dl_emit *emit, struct dl_kernel kernel) {
    if (emit->pass == DL_BACKWARD_DATA && emit->layer->first) return;
    if (emit->pass == DL_BACKWARD_WEIGHTS && emit->layer->frozen) return;
    if (emit->count < DL_LAYER_KERNELS) emit->out[emit->count++] = kernel;
}

void dl_emit_stream(struct dl_emit *emit, double flop, double read_elements, double write_elements,
                    double extra_bytes) {
    if (!(read_elements + write_elements + extra_bytes > 0.0)) return;
    struct dl_kernel kernel = dl_kernel_stream(emit->pass, flop, read_elements, write_elements);
    kernel.extra_bytes = extra_bytes;
    kernel.work = emit->layer->kind->work;
    if (kernel.work == DL_WORK_LAYERNORM)
        kernel.m = emit->batch * dl_shape_positions(&emit->layer->out);
    dl_emit_kernel(emit, kernel);
}

void dl_emit_type(struct dl_emit *emit, enum dl_fact_op op) {
    if (emit->count == 0 || !dl_fact_is_fp32(emit->facts, op)) return;
    emit->out[emit->count - 1].has_type = true;
    emit->out[emit->count - 1].type = DL_FP32;
}

void dl_emit_passes(struct dl_emit *emit, const struct dl_passes *passes, double flop, double n,
                    enum dl_fact_op op) {
    enum { CAST_BYTES = 6 }; /* 4 of one type and 2 of the other */
    const double casts = dl_fact_casts(emit->facts, op), kernels = passes->kernels + casts;
    const int before = emit->count;
    dl_emit_stream(emit, flop, passes->reads * n, passes->writes * n,
                   (passes->fixed_bytes + CAST_BYTES * casts) * n);
    if (emit->count == before) return;
    struct dl_kernel *kernel = &emit->out[emit->count - 1];
    kernel->launches = kernels;
    if (passes->kernels > 1) kernel->work = DL_WORK_ANY; /* elementwise kernels, no library's own */
    dl_emit_type(emit, op);
}

void dl_emit_gemm(struct dl_emit *emit, double m, double n, double k, double count, bool a_trans,
                  bool b_trans) {
    if (!(m * n * k * count > 0.0)) return;
    struct dl_kernel kernel = dl_kernel_gemm(emit->pass, m, n, k, count);
    kernel.a_trans = a_trans;
    kernel.b_trans = b_trans;
    /* F-GEMM-ALIGNED: the arithmetic of fp32, the bytes of 16 bits */
    if (emit->facts->aligned_gemm && dl_precision_bytes(emit->facts->precision) < 4 &&
        (fmod(m, 8) != 0 || fmod(k, 8) != 0 || (b_trans && fmod(n, 8) != 0))) {
        kernel.has_type = true;
        kernel.type = DL_FP32;
        kernel.read_elements /= 2;
        kernel.write_elements /= 2;
    }
    dl_emit_kernel(emit, kernel);
}

struct dl_layer_block dl_layer_block(const char *name) {
    for (const char *dot = strchr(name, '.'); dot != NULL; dot = strchr(dot + 1, '.')) {
        char *end;
        if (dot[1] < '0' || dot[1] > '9') continue;
        const long number = strtol(dot + 1, &end, 10);
        if (*end != '.' || number > INT_MAX) continue;
        return (struct dl_layer_block){(int)number, (size_t)(end + 1 - name)};
    }
    return (struct dl_layer_block){0};
}
