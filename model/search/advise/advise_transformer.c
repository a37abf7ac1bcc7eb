/* advise_transformer.c - changes that only a transformer has: rows of dl_advise_items. */
#include <math.h>

#include "model/search/advise/advise.h"

void dl_advise_attention(const struct dl_advise_state *s, struct dl_advise_list *out) {
    if (!(s->workload->heads > 0) || s->plan->attention != DL_ATTENTION_OPEN) return;
    dl_advise_add(out, "attention", "flash", "FlashAttention",
                  dl_advise_is(s, "mega") ? "--use-flash-attn"
                                          : "scaled_dot_product_attention, or flash-attn");
    dl_advise_add(out, "attention", "fused-softmax", "scale, mask and softmax fused",
                  "a fused softmax kernel");
}

void dl_advise_kv_heads(const struct dl_advise_state *s, struct dl_advise_list *out) {
    const double heads = dl_advise_parameter(s->workload, "heads"),
                 now = dl_advise_parameter(s->workload, "kv_heads");
    if (!(heads > 0) || !(now > 0) || now < heads) return;
    for (int group = 4; group <= 8; group *= 2) {
        if (fmod(heads, group) != 0) continue;
        const char *value = dl_arena_printf(s->arena, "kv_heads=%.0f", heads / group);
        dl_advise_add(
            out, "set", value,
            dl_arena_printf(s->arena, "grouped queries: %d heads share keys and values", group),
            dl_arena_printf(s->arena, "--group-query-attention, %s", value));
    }
}

void dl_advise_vocabulary(const struct dl_advise_state *s, struct dl_advise_list *out) {
    const double now = dl_advise_parameter(s->workload, "vocab"), padded = 128 * ceil(now / 128);
    if (!(now > 0) || padded == now) return;
    const char *value = dl_arena_printf(s->arena, "vocab=%.0f", padded);
    dl_advise_add(out, "set", value,
                  dl_arena_printf(s->arena, "vocabulary padded from %.0f to %.0f", now, padded),
                  "--make-vocab-size-divisible-by 128, padded logits masked");
}

void dl_advise_recompute(const struct dl_advise_state *s, struct dl_advise_list *out) {
    for (int r = 0; dl_recompute_names[r] != NULL; r++) {
        if (r == (int)s->plan->recompute) continue;
        /* more than what is in force only where memory is short */
        if (r > (int)s->plan->recompute && s->prediction->fits) continue;
        dl_advise_add(
            out, "recompute", dl_recompute_names[r],
            dl_arena_printf(s->arena, "recomputation: %s", dl_recompute_names[r]),
            dl_arena_printf(s->arena, "activation checkpointing: %s", dl_recompute_names[r]));
    }
}

void dl_advise_sequence_parallel(const struct dl_advise_state *s, struct dl_advise_list *out) {
    if (s->plan->tp <= 1 || s->plan->sequence_parallel) return;
    dl_advise_add(out, "sequence-parallel", NULL, "sequence parallelism between the tensor ranks",
                  dl_advise_is(s, "megatron") ? "--sequence-parallel"
                                              : "norms and dropout with SequenceParallel()");
}

void dl_advise_interleave(const struct dl_advise_state *s, struct dl_advise_list *out) {
    const double layers = s->workload->transformer_layers;
    if (s->plan->pp <= 1 || s->plan->schedule != DL_1F1B || !(layers > 0)) return;
    for (int stages = 2; stages <= 8; stages++) {
        if (fmod(layers, (double)(s->plan->pp * stages)) != 0) continue;
        struct dl_advise_change *c = dl_advise_add(
            out, "schedule", "interleaved",
            dl_arena_printf(s->arena, "interleaved schedule, %d virtual stages a device", stages),
            dl_arena_printf(s->arena, "--num-layers-per-virtual-pipeline-stage %.0f",
                            layers / (double)(s->plan->pp * stages)));
        dl_advise_also(c, "virtual-stages", dl_arena_printf(s->arena, "%d", stages));
    }
}
