/* transformer_lora.c - low-rank adapters of frozen linear layers.
 *
 * F-LORA: y = W x + B A drop(x) with A of r x in and B of out x r elements. Frozen weights have no
 * gradients to compute or to reduce, no optimizer states, no master copy and, in 8-bit training, no
 * 16-bit copy: a frozen linear layer takes 4 flop per weight and token instead of 6. Dropout keeps
 * a mask of one byte per element of the input, and a copy of attention's result, which attention
 * keeps as well. What only frozen layers without an adapter read is not kept. An adapter is split
 * like its layer.
 */

#include "model/engine/transformer/micro_batch_builder.h"
#include "model/workload/layer.h"

static bool is_linear(const struct dl_transformer_layer *l) {
    return l->part == DL_TRANSFORMER_BODY &&
           (l->role == DL_TRANSFORMER_COLUMN || l->role == DL_TRANSFORMER_ROW);
}

/* Targets: qkv before attention, proj after it; of the MLP's layers fc2 is the last one. */
static void mark_adapted(struct dl_transformer *tf) {
    const unsigned given = tf->input.lora.targets,
                   targets = given != 0 ? given : 1u << DL_LORA_QKV | 1u << DL_LORA_PROJ;
    bool after = false, projected = false;
    for (int i = 0; i < tf->layer_count; i++) {
        struct dl_transformer_layer *l = &tf->layers[i];
        after = after || (l->part == DL_TRANSFORMER_BODY &&
                          tf->workload->layers[l->index].kind == &dl_layer_attention);
        if (!is_linear(l)) continue;
        const enum dl_lora_target target = !after           ? DL_LORA_QKV
                                           : !projected     ? DL_LORA_PROJ
                                           : l->ends_module ? DL_LORA_FC2
                                                            : DL_LORA_FC1;
        projected = after;
        l->adapted = (targets >> target & 1) != 0;
    }
}

void dl_transformer_freeze(struct dl_transformer *tf) {
    if (tf->input.lora.rank <= 0) return;
    const double rank = (double)tf->input.lora.rank;
    mark_adapted(tf);
    for (int p = 0; p < DL_TRANSFORMER_PARTS; p++) {
        tf->frozen[p] = (struct dl_transformer_elements){
            tf->split_elements[p], tf->whole_elements[p], tf->expert_elements[p]};
        tf->split_elements[p] = tf->whole_elements[p] = tf->expert_elements[p] = 0;
        tf->tensor_count[p] = 0;
    }
    tf->tied_elements = 0;
    for (int i = 0; i < tf->layer_count; i++) {
        const struct dl_transformer_layer *l = &tf->layers[i];
        const struct dl_layer *layer = &tf->workload->layers[l->index];
        if (!l->adapted) continue;
        tf->split_elements[l->part] += rank * (layer->in.channels + layer->out.channels);
        tf->tensor_count[l->part] += 2;
    }
}

double dl_transformer_frozen_elements(const struct dl_transformer *tf,
                                      const struct dl_transformer_mapping *out,
                                      enum dl_transformer_stage_kind kind) {
    double times[DL_TRANSFORMER_PARTS], sum = 0;
    dl_transformer_kind_times(out, kind, times);
    for (int p = 0; p < DL_TRANSFORMER_PARTS; p++)
        sum += times[p] * dl_transformer_rank_elements(&tf->frozen[p], &out->split);
    return sum * dl_transformer_chains(&out->split);
}

void dl_transformer_add_adapter(const struct dl_micro_batch_builder *m,
                                const struct dl_transformer_layer *l, const struct dl_layer *layer,
                                struct dl_transformer_layer_passes *p) {
    struct dl_layer down = *layer, up = *layer;
    const double rows = m->micro_samples * dl_shape_positions(&layer->in),
                 in = rows * layer->in.channels, out = rows * layer->out.channels;
    if (!l->adapted) return;
    down.out.channels = up.in.channels = (double)m->tf->input.lora.rank;
    down.bias = up.bias = false;
    const struct dl_layer *both[] = {&down, &up};
    for (int i = 0; i < 2; i++) {
        dl_transformer_add_kernels(m, l, both[i], DL_FORWARD, 1, &p->forward);
        dl_transformer_add_kernels(m, l, both[i], DL_BACKWARD_DATA, 1, &p->data);
        dl_transformer_add_kernels(m, l, both[i], DL_BACKWARD_WEIGHTS, 1, &p->weights);
    }
    dl_transformer_add_stream(m, DL_FORWARD, in, in, in, 1, &p->forward); /* dropout, its mask */
    dl_transformer_add_stream(m, DL_FORWARD, 2 * out, out, 0, 1, &p->forward);
    dl_transformer_add_stream(m, DL_BACKWARD_DATA, 2 * in, in, in, 1, &p->data);
}

/* Whether linear layers of the body alone read it, none with an adapter. */
static bool feeds_frozen(const struct dl_transformer *tf, const struct dl_transformer_layer *l) {
    int readers = 0;
    for (int i = 0; i < tf->layer_count; i++) {
        const struct dl_transformer_layer *reader = &tf->layers[i];
        const struct dl_layer *layer = &tf->workload->layers[reader->index];
        for (int j = 0; j < layer->input_count; j++) {
            if (layer->inputs[j] != l->index) continue;
            if (!is_linear(reader) || reader->adapted) return false;
            readers++;
        }
    }
    return readers > 0;
}

double dl_transformer_lora_bytes(const struct dl_transformer *tf,
                                 const struct dl_transformer_layer *l, const struct dl_layer *layer,
                                 double result_bytes) {
    const struct dl_layer *whole = &tf->workload->layers[l->index];
    const int from = whole->inputs[0];
    const double in = dl_shape_elements(&layer->in);
    if (tf->input.lora.rank <= 0 || l->part != DL_TRANSFORMER_BODY) return 0;
    if (l->adapted) {
        const bool copies = from >= 0 && tf->workload->layers[from].kind == &dl_layer_attention;
        return in * (1 + (copies ? dl_precision_bytes(tf->precision) : 0));
    }
    const bool reads_input = whole->kind != &dl_layer_attention;
    return reads_input && feeds_frozen(tf, l) ? -result_bytes : 0;
}
