/* import_config_vision.c - the vision tower of a multimodal config and its projector: parameters of
 * `gpt` (F-TOWER). A tower that `gpt` cannot say is named among what is left out.
 */
#include <string.h>

#include "import/import_config.h"
#include "model/core/text.h"

/* A member of vision_config and the parameter that it sets; `otherwise`: where it is absent. */
struct tower_key {
    const char *key, *parameter;
    double otherwise;
};

/* model: of the config; tower: model_type of its vision_config, NULL: any. */
struct tower {
    const char *model, *tower;
    const char *const *always; /* parameter, text, ..., NULL */
    struct tower_key keys[8];
};

#define ALWAYS(...) ((const char *const[]){__VA_ARGS__, NULL})

static const struct tower towers[] = {
    {.model = "llava",
     .tower = "clip_vision_model",
     .always = ALWAYS("vision_merge", "1"),
     .keys = {{"hidden_size", "vision_hidden", 768},
              {"num_hidden_layers", "vision_layers", 12},
              {"num_attention_heads", "vision_heads", 12},
              {"intermediate_size", "vision_ffn", 3072},
              {"image_size", "vision_pixels", 224},
              {"patch_size", "vision_patch", 32}}},
    {.model = "llava",
     .tower = "siglip_vision_model",
     .always = ALWAYS("vision_bias", "1", "vision_class", "0", "vision_ln_pre", "0"),
     .keys = {{"hidden_size", "vision_hidden", 768},
              {"num_hidden_layers", "vision_layers", 12},
              {"num_attention_heads", "vision_heads", 12},
              {"intermediate_size", "vision_ffn", 3072},
              {"image_size", "vision_pixels", 224},
              {"patch_size", "vision_patch", 16}}},
    {.model = "qwen2_vl",
     .always = ALWAYS("vision_channels", "6", "vision_class", "0", "vision_positions", "0",
                      "vision_ln_pre", "0", "vision_merge", "4", "vision_pixels", "448",
                      "projector_hidden", "4*vision_hidden", "vision_ffn", "4*vision_hidden"),
     .keys = {{"embed_dim", "vision_hidden", 1280},
              {"depth", "vision_layers", 32},
              {"num_heads", "vision_heads", 16},
              {"patch_size", "vision_patch", 14}}},
};

static const char *const llama_defaults[] = {"hidden", "4096",  "layers", "32",    "heads", "32",
                                             "ffn",    "11008", "vocab",  "32000", NULL};

static const char *text_at(const struct dl_json_node *object, const char *key,
                           const char *otherwise) {
    const struct dl_json_node *n = dl_json_get(object, key);
    return n != NULL && n->kind == DL_JSON_STRING ? n->string : otherwise;
}

static enum dl_code add(const struct dl_json *doc, struct dl_config_model *model,
                        const char *parameter, const char *text, struct dl_err *err) {
    if (model->value_count == DL_CONFIG_VALUES)
        return dl_json_fail(doc, "vision_config", err, "more than %d values", DL_CONFIG_VALUES);
    model->values[model->value_count++] =
        (struct dl_config_value){.parameter = parameter, .text = text};
    return DL_OK;
}

static enum dl_code add_all(const struct dl_json *doc, struct dl_config_model *model,
                            const char *const *pairs, struct dl_err *err) {
    for (int i = 0; pairs[i] != NULL; i += 2) DL_TRY(add(doc, model, pairs[i], pairs[i + 1], err));
    return DL_OK;
}

static const struct tower *find_tower(const char *model, const char *type) {
    for (size_t i = 0; i < sizeof towers / sizeof towers[0]; i++)
        if (strcmp(model, towers[i].model) == 0 &&
            (towers[i].tower == NULL || strcmp(type, towers[i].tower) == 0))
            return &towers[i];
    return NULL;
}

enum dl_code dl_config_vision(const struct dl_json *document, struct dl_arena *arena,
                              struct dl_config_model *model, struct dl_err *err) {
    const struct dl_json_node *root = document->root, *vision = dl_json_get(root, "vision_config");
    if (vision == NULL || vision->kind != DL_JSON_OBJECT) return DL_OK;
    const struct tower *tower =
        find_tower(text_at(root, "model_type", ""), text_at(vision, "model_type", ""));
    if (tower == NULL) {
        model->left_out[model->left_out_count++] =
            "the vision tower (vision_config), which changes the prediction and is not modelled";
        return DL_OK;
    }
    DL_TRY(add_all(document, model, tower->always, err));
    /* such a config leaves out what LlamaConfig has by itself */
    if (strcmp(tower->model, "llava") == 0 && strcmp(model->type, "llama") == 0)
        DL_TRY(add_all(document, model, llama_defaults, err));
    for (const struct tower_key *k = tower->keys; k->key != NULL; k++) {
        const struct dl_json_node *n = dl_json_get(vision, k->key);
        const double number = n != NULL && n->kind == DL_JSON_NUMBER ? n->number : k->otherwise;
        if (!(number >= 1) || number > 1e6 || number != floor(number))
            return dl_json_fail(document, dl_arena_printf(arena, "vision_config.%s", k->key), err,
                                "expected a whole number of at least 1");
        DL_TRY(add(document, model, k->parameter, dl_arena_printf(arena, "%.0f", number), err));
    }
    return DL_OK;
}
