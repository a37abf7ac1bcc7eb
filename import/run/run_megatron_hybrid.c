/* run_megatron_hybrid.c - the layers of Megatron-LM's pretrain_mamba.py: Mamba-2, attention, MLPs
 * and experts, one letter each. */
#include <math.h>
#include <string.h>

#include "import/run/megatron_internal.h"

/* Megatron's default order: attention evenly between sections of Mamba, then MLPs evenly in the
 * place of Mamba layers, the last one at the end. */
static void allot(char *pattern, size_t layers, double attention_frac, double mlp_frac) {
    const double attention = rint((double)layers * attention_frac),
                 mlps = rint((double)layers * mlp_frac),
                 section = ((double)layers - attention) / (attention + 1),
                 between = mlps > 0 ? ((double)layers - attention - mlps) / mlps : 0;
    double left = section;
    for (size_t i = 0; i < layers; i++) {
        const bool here = left < 0.5;
        pattern[i] = here ? '*' : 'M';
        left += here ? section : -1;
    }
    left = between;
    for (size_t i = 0; i < layers && mlps > 0; i++) {
        if (pattern[i] != 'M') continue;
        const bool here = left < 0.5;
        if (here) pattern[i] = '-';
        left += here ? between : -1;
    }
}

/* The pattern that is given, without the bars between stages; or the one that follows from shares
 * of attention and MLPs. */
enum dl_code dl_megatron_hybrid(struct dl_megatron_reader *r) {
    static const char given[] = "hybrid_override_pattern|hybrid_layer_pattern",
                      *const sizes[][2] = {{"mamba_state_dim", "ssm_state"},
                                           {"mamba_head_dim", "ssm_head_dim"},
                                           {"mamba_num_groups", "ssm_groups"},
                                           {"mamba_num_heads", "ssm_heads"}};
    const char *program = r->run->program != NULL ? r->run->program : "",
               *word = dl_arguments_word(r->a, given, "");
    double attention_frac = 0, mlp_frac = 0;
    const bool shares = dl_arguments_find(r->a, "hybrid_attention_ratio|hybrid_mlp_ratio") != NULL,
               named = strstr(program, "mamba") != NULL || strstr(program, "hybrid") != NULL ||
                       dl_arguments_flag(r->a, "is_hybrid_model");
    if (word[0] == '\0' && !shares && !named) return DL_OK;
    DL_TRY(dl_arguments_number(r->a, "hybrid_attention_ratio", 0, 1, &attention_frac, r->err));
    DL_TRY(dl_arguments_number(r->a, "hybrid_mlp_ratio", 0, 1, &mlp_frac, r->err));
    const size_t layers = (size_t)r->layers;
    (void)dl_arguments_find(r->a, "spec"); /* that of these layers */
    if (r->layers > 10000 || attention_frac + mlp_frac > 1)
        return dl_arguments_fail(r->a, "hybrid_attention_ratio|num_layers", r->err,
                                 "expected shares of at most 1 together, and at most 10000 layers");
    char *pattern = dl_arena_alloc(r->a->arena, layers + 1, 1);
    size_t length = 0;
    for (; *word != '\0' && length <= layers; word++) {
        if (strchr(" '\"|", *word) != NULL) continue;
        if (strchr("M*-E", *word) == NULL)
            return dl_arguments_fail(r->a, given, r->err,
                                     "expected the letters M, *, - and E, found '%.8s'", word);
        if (length++ < layers) pattern[length - 1] = *word;
    }
    if (length == 0) allot(pattern, layers, attention_frac, mlp_frac);
    if (length != 0 && length != layers)
        return dl_arguments_fail(r->a, given, r->err, "expected a letter for each of %zu layers",
                                 layers);
    dl_text_printf(r->out->workload, ",pattern=%s,ssm_chunk=128", pattern);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        double value = NAN;
        DL_TRY(dl_megatron_number(r, sizes[i][0], &value));
        if (dl_known(value)) dl_text_printf(r->out->workload, ",%s=%.15g", sizes[i][1], value);
    }
    return DL_OK;
}
