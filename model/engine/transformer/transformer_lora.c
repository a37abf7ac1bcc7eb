/* transformer_lora.c - low-rank adapters of frozen linear layers.
 *
 * F-LORA: y = W x + B A drop(x) with A of r x in and B of out x r elements. Frozen weights
 * (F-FROZEN) have no gradients to compute or to reduce, no optimizer states, no master copy and, in
 * 8-bit training, no 16-bit copy: a frozen linear layer takes 4 flop per weight and token instead
 * of 6. Dropout keeps a mask of one byte per element of the input, and a copy of attention's
 * result, which attention keeps as well. An adapter is split like its layer.
 */

#include "model/engine/transformer/micro_batch_builder.h"
#include "model/workload/layer.h"

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
    if (!(layer->adapter_rank > 0)) return;
    down.out.channels = up.in.channels = (double)layer->adapter_rank;
    down.bias = up.bias = down.frozen = up.frozen = false;
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

double dl_transformer_lora_bytes(const struct dl_transformer *tf,
                                 const struct dl_transformer_layer *l,
                                 const struct dl_layer *layer) {
    const struct dl_layer *whole = &tf->workload->layers[l->index];
    const int from = whole->inputs[0];
    const bool copies = from >= 0 && tf->workload->layers[from].kind == &dl_layer_attention;
    if (!(whole->adapter_rank > 0)) return 0;
    return dl_shape_elements(&layer->in) * (1 + (copies ? dl_precision_bytes(tf->precision) : 0));
}
