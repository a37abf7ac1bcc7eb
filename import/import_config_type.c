/* import_config_type.c - which model a config describes: its text model where it is nested, the
 * family that has its layers, and layers that have no kind here. */
#include <string.h>

#include "model/core/text.h"
#include "import/import_config.h"
#include "import/run/arguments.h"

/* Members that stand for a layer that no workload has. */
static const struct foreign {
    const char *key, *what;
} foreign[] = {
    {"mamba_dt_rank", "layers of the first Mamba (selective scan)"},
    {"time_step_rank", "layers of the first Mamba (selective scan)"},
    {"num_mem_blocks", "blocks that several layers share (Zamba)"},
    {"hybrid_override_pattern", "Mamba (state-space) layers of another kind"},
    {"hybrid_layer_pattern", "Mamba (state-space) layers of another kind"},
    {"mamba_num_heads", "Mamba (state-space) layers of another kind"},
    {"mamba_d_state", "Mamba (state-space) layers of another kind"},
    {"ssm_state_size", "Mamba (state-space) layers of another kind"},
    {"state_size", "Mamba (state-space) layers of another kind"},
    {"d_state", "Mamba (state-space) layers of another kind"},
    {"ssm_cfg", "Mamba (state-space) layers of another kind"},
    {"linear_num_value_heads", "gated linear attention layers of another kind"},
    {"linear_attn_config", "linear attention layers of another kind"},
    {"attn_type_list", "linear attention layers"},
    {"moe_latent_size", "experts on a latent of the hidden state"},
    {"conv_L_cache", "short convolution layers"},
    {"sparse_attention_config", "attention over keys that an index selects (sparse attention)"},
    {"compress_ratios", "attention over compressed keys"},
    {"hc_mult", "hyper-connections"},
    {"global_head_dim", "attention layers whose heads differ in size"},
    {"attention_other_setting", "attention layers whose heads differ"},
    {"share_expert_dim", "experts and attention of a kind that is not known (share_expert_dim)"},
    {"hidden_size_per_layer_input", "embeddings for each layer"},
    {"attention_hidden_size", "recurrent layers (RWKV)"},
    {"lru_width", "recurrent layers (RG-LRU)"},
    {"draft_vocab_size", "a draft head (speculative decoding)"},
    {"eagle_config", "a draft head (speculative decoding)"},
    {"dflash_config", "a draft head (speculative decoding)"},
    {"relative_attention_num_buckets", "an encoder and a decoder (T5)"},
    {"num_decoder_layers", "an encoder and a decoder"},
    {"decoder_layers", "an encoder and a decoder"},
    {"num_key_value_memory_heads", "memory layers"},
    {"cross_attention_layers", "layers with cross-attention to images"},
};

static bool is_nothing(const struct dl_json_node *n) {
    bool ones = n->kind == DL_JSON_ARRAY; /* of a list of kinds of attention: full attention */
    for (const struct dl_json_node *e = ones ? n->child : NULL; e != NULL; e = e->next)
        ones = ones && e->kind == DL_JSON_NUMBER && e->number == 1;
    if (ones) return true;
    return n->kind == DL_JSON_NULL || (n->kind == DL_JSON_NUMBER && n->number == 0) ||
           (n->kind == DL_JSON_BOOL && !n->boolean);
}

/* Whether the family has a place for the member. */
static bool is_known(const struct dl_config_family *family, const char *key) {
    return family != NULL && dl_config_key_of(family, key) != NULL;
}

static enum dl_code refuse_foreign(const struct dl_json *document, const struct dl_json_node *text,
                                   const struct dl_config_family *family, const char *prefix,
                                   struct dl_arena *arena, struct dl_err *err) {
    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++) {
        const struct dl_json_node *n = dl_json_get(text, foreign[i].key);
        if (n == NULL || is_nothing(n) || is_known(family, foreign[i].key)) continue;
        return dl_json_fail(document, dl_arena_printf(arena, "%s%s", prefix, foreign[i].key), err,
                            "the model has %s, for which no workload has a layer", foreign[i].what);
    }
    const struct dl_json_node *types = dl_json_get(text, "layer_types");
    const struct dl_config_key *mixed =
        family != NULL ? dl_config_key_of(family, "layer_types") : NULL;
    if (mixed != NULL && mixed->use == DL_CONFIG_MIXED) return DL_OK;
    for (const struct dl_json_node *e = types != NULL ? types->child : NULL; e != NULL; e = e->next)
        if (e->kind == DL_JSON_STRING && strcmp(e->string, "full_attention") != 0 &&
            strcmp(e->string, "sliding_attention") != 0 &&
            strcmp(e->string, "deepseek_sparse_attention") != 0 &&
            strcmp(e->string, "chunked_attention") != 0)
            return dl_json_fail(
                document, dl_arena_printf(arena, "%slayer_types", prefix), err,
                "the model has layers of type \"%.40s\", for which no workload has a "
                "layer",
                e->string);
    return DL_OK;
}

/* Whether the members are those that every Llama has. */
static bool is_llama_like(const struct dl_json_node *text) {
    static const char *const needed[] = {"hidden_size",       "num_hidden_layers",
                                         "vocab_size",        "num_attention_heads",
                                         "intermediate_size", "rms_norm_eps"};
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++)
        if (dl_json_get(text, needed[i]) == NULL) return false;
    const struct dl_json_node *act = dl_json_get(text, "hidden_act");
    return act == NULL || (act->kind == DL_JSON_STRING && strcmp(act->string, "silu") == 0);
}

static const struct dl_config_family *family_of(const char *type) {
    for (const struct dl_config_alias *a = dl_config_aliases; a->types != NULL; a++)
        if (dl_has_word(a->types, type)) type = a->family;
    for (const struct dl_config_family *f = dl_config_families; f->model_type != NULL; f++)
        if (strcmp(f->model_type, type) == 0) return f;
    return NULL;
}

/* The text model of a multimodal config; the wrapper's other members are left out. */
static const struct dl_json_node *text_of(const struct dl_json_node *root, const char **prefix) {
    static const char *const sections[] = {"text_config", "llm_config", "language_config"};
    *prefix = "";
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++) {
        const struct dl_json_node *n = dl_json_get(root, sections[i]);
        if (n == NULL || n->kind != DL_JSON_OBJECT || n->child == NULL) continue;
        *prefix = i == 0 ? "text_config." : i == 1 ? "llm_config." : "language_config.";
        return n;
    }
    return root;
}

static void note_audio(const struct dl_json_node *root, struct dl_config_model *model) {
    const struct dl_json_node *n = dl_json_get(root, "audio_config");
    if (n != NULL && n->kind == DL_JSON_OBJECT)
        model->left_out[model->left_out_count++] =
            "the audio tower (audio_config), which changes the prediction and is not modelled";
}

/* A misspelling, not the digits of another release. */
static const char *near_type(const char *type) {
    if (strpbrk(type, "0123456789") != NULL || strlen(type) < 4) return NULL;
    for (const struct dl_config_family *f = dl_config_families; f->model_type != NULL; f++)
        if (dl_one_slip(type, f->model_type)) return f->model_type;
    return NULL;
}

static const char *known_types(struct dl_arena *arena) {
    const char *all = "";
    for (const struct dl_config_family *f = dl_config_families; f->model_type != NULL; f++)
        all = dl_arena_printf(arena, "%s%s%s", all, all[0] != '\0' ? ", " : "", f->model_type);
    return all;
}

enum dl_code dl_config_find(const struct dl_json *document, struct dl_config_model *model,
                            struct dl_arena *arena, const struct dl_json_node **out,
                            struct dl_err *err) {
    const struct dl_json_node *root = document->root;
    const char *prefix;
    if (root->kind != DL_JSON_OBJECT || dl_json_get(root, "model_type") == NULL)
        return dl_json_fail(document, "", err, "expected a config.json with a 'model_type'");
    const struct dl_json_node *text = text_of(root, &prefix),
                              *type = dl_json_get(text, "model_type");
    if (type == NULL) type = dl_json_get(root, "model_type");
    if (type->kind != DL_JSON_STRING)
        return dl_json_fail(document, "model_type", err,
                            "expected a config.json with a 'model_type'");
    *out = text;
    model->type = type->string;
    model->family = family_of(type->string);
    note_audio(root, model);
    DL_TRY(refuse_foreign(document, text, model->family, prefix, arena, err));
    if (model->family != NULL) return DL_OK;
    if (is_llama_like(text)) {
        model->family = &dl_config_llama_like;
        model->by_members = true;
        return DL_OK;
    }
    const char *near = near_type(type->string);
    return dl_json_fail(document, dl_arena_printf(arena, "%smodel_type", prefix), err,
                        "\"%.60s\" is not known%s%s%s, and its members are not those of a Llama; "
                        "there are %s",
                        type->string, near != NULL ? "; did you mean '" : "",
                        near != NULL ? near : "", near != NULL ? "'?" : "", known_types(arena));
}
