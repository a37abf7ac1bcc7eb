/* transformer_kernels.c - the kernels of one layer of a transformer at its split: their types, the
 * casts of 8-bit training, attention shared out over context-parallel ranks.
 *
 * F-TRANSFORMER-CASTS: with 8-bit or 4-bit operands the GEMMs of linear layers in the body and of
 * experts run in that precision, all others in bf16. Each operand is cast from 16 bits by one pass
 * that writes it twice, as it is and transposed (backward needs the second; block formats scale
 * along the other dimension): 1R and 2 operand bytes a value. Forward casts the input, unless the
 * normalization before it writes 8 bits (casts: after-norm) or a compiler lets every producer do so
 * (fused), and the weight where that is not done once an iteration; backward casts the gradient of
 * the output. Scale factors from the tensor itself (current_scaling) read it once more before;
 * mxfp8 has scales of its blocks alone, nvfp4 one of the tensor besides.
 *
 * F-TRANSFORMER-CONTEXT: with context parallelism c of causal attention each rank has a piece of
 * the beginning and its mirror at the end, so that all work equally: one causal share of s/c
 * queries and keys, and c - 1 shares of s/c queries and s/2c keys without a mask, each merged into
 * the output (2R + 1W).
 */

#include "model/framework/facts.h"
#include "model/framework/kernel_scale.h"
#include "model/engine/transformer/micro_batch_builder.h"
#include "model/workload/layer.h"

bool dl_transformer_narrow(const struct dl_transformer *tf, const struct dl_transformer_layer *l) {
    return dl_precision_is_narrow(tf->precision) && l->in_layer &&
           (l->role == DL_TRANSFORMER_COLUMN || l->role == DL_TRANSFORMER_ROW ||
            l->role == DL_TRANSFORMER_EXPERTS);
}

static void add_kernel(const struct dl_micro_batch_builder *m,
                       const struct dl_kernel_scales *scales, const struct dl_kernel *kernel,
                       double sign, struct dl_transformer_pass *pass) {
    struct dl_kernel_time t;
    const enum dl_precision precision = kernel->has_type ? kernel->type : m->tf->precision;
    dl_kernel_time(m->tf->system->device, precision, kernel, &t);
    const double scale = (m->tf->compute_scale > 0 ? m->tf->compute_scale : 1) *
                         dl_kernel_scale_of(scales, m->tf->system->device, precision, kernel);
    const double time_s = sign * scale * t.time_s;
    pass->device_s += time_s;
    pass->by_limit_s[t.limit] += time_s;
    pass->launches += sign * kernel->launches;
    pass->error_s += time_s * t.sigma_log;
    if (t.extrapolated) pass->outside_s += time_s;
    pass->flop += sign * kernel->flop;
    pass->moved_bytes += sign * ((kernel->read_elements + kernel->write_elements) *
                                     dl_precision_bytes(m->tf->precision) +
                                 kernel->extra_bytes);
}

void dl_transformer_add_slow_stream(const struct dl_micro_batch_builder *m, enum dl_pass pass,
                                    double scale, double reads, double writes, double extra_bytes,
                                    double sign, struct dl_transformer_pass *out) {
    struct dl_kernel kernel = dl_kernel_stream(pass, reads, reads, writes);
    kernel.extra_bytes = extra_bytes;
    const struct dl_kernel_scales scales = {.stream_scale = scale};
    if (reads > 0 || writes > 0) add_kernel(m, &scales, &kernel, sign, out);
}

void dl_transformer_add_rest(const struct dl_micro_batch_builder *m, const struct dl_kernel *rest,
                             struct dl_transformer_pass *out) {
    const struct dl_kernel_scales none = {.stream_scale = 1};
    const double launches = out->launches;
    add_kernel(m, &none, rest, 1, out);
    out->launches = launches;
}

void dl_transformer_add_stream(const struct dl_micro_batch_builder *m, enum dl_pass pass,
                               double reads, double writes, double extra_bytes, double sign,
                               struct dl_transformer_pass *out) {
    dl_transformer_add_slow_stream(m, pass, 1, reads, writes, extra_bytes, sign, out);
}

bool dl_transformer_current_scaling(const struct dl_transformer *tf) {
    return tf->framework->transformer.current_scaling && tf->precision != DL_MXFP8;
}

/* Time of torchao's casts for each dimension, scales put in the order of the products included,
 * over that of their bytes: on B200 2,225 us where the bytes take 1,183 (torchao-moe). */
static const double EACH_WAY_SCALE = 1.88;

/* Casts `elements` of one tensor, in `scale` times the time of the bytes. */
static void add_cast(const struct dl_micro_batch_builder *m, enum dl_pass pass, double scale,
                     double elements, double sign, struct dl_transformer_pass *out) {
    const double bytes = 2 * dl_precision_operand_bytes(m->tf->precision);
    if (dl_transformer_current_scaling(m->tf))
        dl_transformer_add_stream(m, pass, elements, 0, 0, sign, out);
    dl_transformer_add_slow_stream(m, pass, scale, elements, 0, bytes * elements, sign, out);
}

static bool follows_norm(const struct dl_transformer *tf, const struct dl_layer *layer) {
    const int from = layer->inputs[0];
    return from >= 0 && dl_layer_is_norm(&tf->workload->layers[from]);
}

/* Whether each operand of experts is cast by a kernel for each of its dimensions, which reads it
 * again, weights too: as torchao does before PyTorch's grouped kernels where blocks have scales. */
static bool casts_each_way(const struct dl_transformer *tf) {
    return tf->framework->transformer.experts.grouped_gemms &&
           (tf->precision == DL_MXFP8 || tf->precision == DL_NVFP4);
}

/* Casts of the experts' operands in one pass: the two products of the forward pass read rows of h
 * and of f elements, which have moved in 16 bits since the last normalization; those of the
 * backward pass the gradients of their outputs. */
static void add_expert_casts(const struct dl_micro_batch_builder *m, const struct dl_layer *layer,
                             enum dl_pass pass, double sign, struct dl_transformer_pass *out) {
    const double rows = m->micro_samples * dl_shape_positions(&layer->in) *
                        dl_transformer_rows_per_token(m->tf, m->split),
                 h = layer->in.channels, f = layer->requested.hidden,
                 wide = layer->moe.gated ? 2 : 1,
                 weights = layer->moe.held_experts * (wide + 1) * h * f;
    const double elements[] = {pass == DL_FORWARD ? rows * h : 0, pass == DL_FORWARD ? rows * f : 0,
                               pass == DL_BACKWARD_DATA ? rows * (wide * f + h) : 0,
                               pass == DL_FORWARD && casts_each_way(m->tf) ? weights : 0};
    const double scale = casts_each_way(m->tf) ? EACH_WAY_SCALE : 1;
    for (size_t i = 0; i < sizeof elements / sizeof *elements; i++) {
        add_cast(m, pass, scale, elements[i], sign, out);
        /* the second kernel writes what the first one left out */
        if (casts_each_way(m->tf))
            dl_transformer_add_slow_stream(m, pass, scale, elements[i], 0, 0, sign, out);
    }
}

/* The casts of a linear layer or of experts in one pass. */
static void add_casts(const struct dl_micro_batch_builder *m, const struct dl_transformer_layer *l,
                      const struct dl_layer *layer, enum dl_pass pass, double sign,
                      struct dl_transformer_pass *out) {
    const struct dl_transformer_policy *policy = &m->tf->framework->transformer;
    const double rows = m->micro_samples * dl_shape_positions(&layer->in),
                 in = rows * layer->in.channels, back = rows * layer->out.channels;
    if (!dl_transformer_narrow(m->tf, l)) return;
    if (l->role == DL_TRANSFORMER_EXPERTS) {
        if (policy->casts != DL_CASTS_FUSED) add_expert_casts(m, layer, pass, sign, out);
        return;
    }
    if (pass == DL_FORWARD && policy->casts != DL_CASTS_FUSED) {
        const bool free = policy->casts == DL_CASTS_AFTER_NORM && follows_norm(m->tf, layer);
        if (!free) add_cast(m, pass, 1, in, sign, out);
    }
    if (pass == DL_FORWARD && !policy->casts_weights_once)
        add_cast(m, pass, 1, layer->in.channels * layer->out.channels, sign, out);
    if (pass == DL_BACKWARD_DATA && policy->casts != DL_CASTS_FUSED)
        add_cast(m, pass, 1, back, sign, out);
}

static void add_own(const struct dl_micro_batch_builder *m, const struct dl_transformer_layer *l,
                    const struct dl_layer *layer, enum dl_pass pass, double sign,
                    struct dl_transformer_pass *out) {
    struct dl_kernel kernels[DL_LAYER_KERNELS], unfused[DL_TRANSFORMER_SOFTMAX_KERNELS];
    const bool wide = dl_precision_is_narrow(m->tf->precision) && !dl_transformer_narrow(m->tf, l);
    const struct dl_kernel_scales scales =
        dl_kernel_scales(m->tf->framework, m->tf->system->device, layer);
    const int n = layer->kind->kernels(layer, &m->facts, pass, m->micro_samples, kernels);
    for (int i = 0; i < n; i++) {
        if (wide && kernels[i].op != DL_OP_STREAM && !kernels[i].has_type) {
            kernels[i].has_type = true;
            kernels[i].type = DL_BF16;
        }
        add_kernel(m, &scales, &kernels[i], sign, out);
    }
    const int more = dl_transformer_softmax_kernels(m->tf->framework, m->tf->precision, layer, pass,
                                                    m->micro_samples, unfused);
    for (int i = 0; i < more; i++) add_kernel(m, &scales, &unfused[i], sign, out);
}

/* Attention of one context-parallel rank. `layer` has its queries and all keys. */
static void add_shared_attention(const struct dl_micro_batch_builder *m,
                                 const struct dl_transformer_layer *l, const struct dl_layer *layer,
                                 enum dl_pass pass, double sign, struct dl_transformer_pass *out) {
    const double ranks = (double)m->split->sp;
    struct dl_layer share = *layer;
    share.requested.tokens = layer->requested.tokens / ranks;
    add_own(m, l, &share, pass, sign, out);
    share.consumers = 1; /* gradients were added up with the first share */
    if (layer->attention.causal) {
        share.requested.tokens /= 2;
        share.attention.causal = false;
    }
    struct dl_transformer_pass one = {0};
    add_own(m, l, &share, pass, sign, &one);
    const double elements = m->micro_samples * dl_shape_elements(&layer->out);
    if (pass != DL_BACKWARD_WEIGHTS)
        dl_transformer_add_stream(m, pass, 2 * elements, elements, 0, sign, &one);
    dl_transformer_add_pass(out, &one, ranks - 1);
}

void dl_transformer_add_kernels(const struct dl_micro_batch_builder *m,
                                const struct dl_transformer_layer *l, const struct dl_layer *layer,
                                enum dl_pass pass, double sign, struct dl_transformer_pass *out) {
    if (layer->kind == &dl_layer_attention && m->split->sp > 1 &&
        m->tf->framework->transformer.context_exchange != DL_CONTEXT_ALL_TO_ALL)
        add_shared_attention(m, l, layer, pass, sign, out);
    else
        add_own(m, l, layer, pass, sign, out);
    add_casts(m, l, layer, pass, sign, out);
    if (l->role == DL_TRANSFORMER_EXPERTS) dl_transformer_add_experts(m, l, layer, pass, sign, out);
}
