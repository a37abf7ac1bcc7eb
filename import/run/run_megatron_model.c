/* run_megatron_model.c - the model that arguments of Megatron-LM describe, as gpt: or bert_base:.
 * What is not given has Megatron's default. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "import/run/megatron_internal.h"

/* Largest numbers that are believed. */
static const double MOST = 1e9;

enum dl_code dl_megatron_number(struct dl_megatron_reader *r, const char *names, double *inout) {
    return dl_arguments_number(r->a, names, 0, MOST, inout, r->err);
}

static enum dl_code needed(struct dl_megatron_reader *r, const char *names, double *out) {
    *out = NAN;
    DL_TRY(dl_arguments_number(r->a, names, 1, MOST, out, r->err));
    if (dl_known(*out)) return DL_OK;
    return dl_fail_at(r->err, r->a->path, 1, 1, NULL, "no %.*s: it is needed",
                      (int)strcspn(names, "|"), names);
}

static void key(struct dl_megatron_reader *r, const char *name, double value) {
    dl_text_printf(r->out->workload, ",%s=%.15g", name, value);
}

static void key_word(struct dl_megatron_reader *r, const char *name, const char *value) {
    dl_text_printf(r->out->workload, ",%s=%s", name, value);
}

/* ---- which model ---- */

/* Models other than decoder-only transformers: the key or program that identifies them, and the
 * part that is not modelled. */
static const struct foreign {
    const char *keys, *programs, *what;
} foreign[] = {
    {"vision_model_type|language_model_type|vision_config.num_layers|mm_cfg.llm",
     "vlm vision mimo multimodal llava", "a vision tower"},
    {"patch_size|spatial_merge_size|mrope_section|disable_vision_class_token", "",
     "a vision tower"},
    {"decoder_num_layers|decoder_seq_length|encoder.num_layers|decoder.num_layers|"
     "pipeline_model_parallel_split_rank",
     "pretrain_t5 t5_", "an encoder and a decoder (T5)"},
    {"model_provider|language_model_checkpoint", "",
     "parts that the program puts together (model_provider)"},
    {"qa_data_dev|qa_data_test", "", "no training: it evaluates a retriever"},
    {"retro_workdir|retro_add_retriever|retro.retro_project_dir", "retro",
     "retrieval layers (Retro)"},
    {"linear_attention_freq|experimental_attention_variant|linear_attention_type", "",
     "linear attention layers"},
    {"biencoder_projection_dim|ict_head_size", "pretrain_ict", "two encoders (ICT)"},
    {"", "text_generation inference generate", "no training: it serves or generates"},
    {"", "pretrain_vision", "a vision model"},
    {"heterogeneous_layers_config_path|heterogeneous_layers_config_encoded_json", "",
     "layers that differ (heterogeneous_layers_config)"},
};

static bool names_program(const char *list, const char *program) {
    for (const char *at = list; *at != '\0';) {
        const size_t length = strcspn(at, " ");
        char word[40];
        snprintf(word, sizeof word, "%.*s", (int)length, at);
        if (length > 0 && strstr(program, word) != NULL) return true;
        at += length;
        at += strspn(at, " ");
    }
    return false;
}

static enum dl_code refuse_foreign(struct dl_megatron_reader *r) {
    const char *program = r->run->program != NULL ? r->run->program : "";
    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++) {
        const struct foreign *f = &foreign[i];
        const bool idle = strncmp(f->what, "no training", 11) == 0;
        const char *text =
            dl_arena_printf(r->a->arena, "%s %s%s", idle ? "there is" : "the model has", f->what,
                            idle ? "" : ", for which no workload has a layer");
        if (f->keys[0] != '\0' && dl_arguments_flag(r->a, f->keys))
            return dl_arguments_fail(r->a, f->keys, r->err, "%s", text);
        if (names_program(f->programs, program))
            return dl_fail_at(r->err, r->a->path, 1, 1, program, "%s", text);
    }
    return DL_OK;
}

static bool is_bert(struct dl_megatron_reader *r) {
    const char *program = r->run->program != NULL ? r->run->program : "";
    const bool by_key =
        dl_arguments_find(r->a, "bert_binary_head|bert_no_binary_head|bert_embedder_type") != NULL;
    return strstr(program, "bert") != NULL ||
           (by_key && strncmp(dl_arguments_word(r->a, "tokenizer_type", ""), "BertWord", 8) == 0);
}

/* ---- its parts ---- */

/* Padded as Megatron does, unless --make-vocab-size-divisible-by is 1. */
/* The words of the tokenizer that is named, or, of Pai's types, the padded vocabulary. */
static enum dl_code words_of_tokenizer(struct dl_megatron_reader *r, bool bert, double *words,
                                       double *padded) {
    const char *type = dl_arguments_word(r->a, "tokenizer_type", ""),
               *model = dl_arguments_word(
                   r->a, "tokenizer_model|tokenizer_name_or_path|tokenizer_path", ""),
               *of_run = dl_arguments_word(r->a, "run.name|exp_manager.name|name", ""),
               *patched = dl_arguments_word(r->a, "patch_tokenizer_type", ""),
               *folder = dl_arguments_word(r->a, "load", ""),
               *name = model[0] != '\0' ? model : type;
    double extra = 0;
    DL_TRY(dl_megatron_number(r, "extra_vocab_size", &extra));
    if (name[0] == '\0' && dl_arguments_find(r->a, "merge_file") != NULL) name = "gpt2bpe";
    if (name[0] == '\0' && bert) name = "BertWordPieceLowerCase";
    if (patched[0] != '\0') {
        *padded = *words = dl_patched_tokenizer_words(name = patched, folder, extra);
    } else {
        *words = dl_tokenizer_words(name);
        if (!dl_known(*words)) *words = dl_tokenizer_words(type);
        if (!dl_known(*words) && name[0] == '\0') *words = dl_tokenizer_words(name = of_run);
    }
    if (!dl_known(*words))
        return dl_fail_at(r->err, r->a->path, 1, 1, NULL,
                          "no vocab_size, and the size of the tokenizer \"%.80s\" is not known: "
                          "give it by --vocab-size N",
                          name);
    dl_arguments_note(r->a, "vocabulary: %.0f words of the tokenizer \"%.80s\"", *words, name);
    return DL_OK;
}

static enum dl_code read_vocabulary(struct dl_megatron_reader *r, bool bert) {
    double padded = NAN, vocab = r->run->vocabulary, divisor = 128;
    DL_TRY(dl_megatron_number(r, "padded_vocab_size|override_vocab_size", &padded));
    if (!dl_known(vocab)) DL_TRY(dl_megatron_number(r, "vocab_size", &vocab));
    DL_TRY(dl_arguments_number(r->a, "make_vocab_size_divisible_by", 1, MOST, &divisor, r->err));
    (void)dl_arguments_find(r->a, "tokenizer_type|tokenizer_library|extra_vocab_size|"
                                  "tokenizer_model|patch_tokenizer_type");
    if (!(padded > 0) && !dl_known(vocab)) DL_TRY(words_of_tokenizer(r, bert, &vocab, &padded));
    if (divisor > 1) divisor *= r->tp;
    key(r, "vocab", padded > 0 ? padded : ceil(vocab / divisor) * divisor);
    return DL_OK;
}

static enum dl_code read_mlp(struct dl_megatron_reader *r) {
    static const struct dl_word_pair activations[] = {{"gelu|fast-gelu|openai_gelu", "gelu"},
                                                      {"swiglu|fast-swiglu", "swiglu"},
                                                      {"geglu|fast-geglu|quick-geglu", "geglu"},
                                                      {"squared-relu|squared_relu", "relu2"},
                                                      {NULL, NULL}};
    const char *mlp = dl_paired(activations, dl_arguments_word(r->a, "activation", "gelu"));
    if (mlp == NULL)
        return dl_megatron_unknown(r, "activation", "gelu, swiglu, geglu or squared-relu");
    (void)dl_arguments_flag(r->a, "openai_gelu|gated_linear_unit");
    if (dl_arguments_flag(r->a, "swiglu")) mlp = "swiglu";
    if (dl_arguments_flag(r->a, "quick_geglu")) mlp = "geglu";
    if (dl_arguments_flag(r->a, "squared_relu")) mlp = "relu2";
    const bool gated = strcmp(mlp, "swiglu") == 0 || strcmp(mlp, "geglu") == 0;
    double ffn = gated ? floor(4 * r->hidden * 2 / 3 / 64) * 64 : 4 * r->hidden;
    DL_TRY(dl_megatron_number(r, "ffn_hidden_size", &ffn));
    if (strcmp(mlp, "gelu") != 0) key_word(r, "mlp", mlp);
    key(r, "ffn", ffn);
    return DL_OK;
}

static enum dl_code read_norm(struct dl_megatron_reader *r) {
    static const struct dl_word_pair norms[] = {{"layernorm|layernorm1p|low_precision_layernorm",
                                                 "layernorm"},
                                                {"rmsnorm", "rmsnorm"},
                                                {NULL, NULL}},
                                     positions[] = {{"learned_absolute", "learned"},
                                                    {"rope|rotary|yarn", "rope"},
                                                    {"alibi", "alibi"},
                                                    {"none", "none"},
                                                    {NULL, NULL}};
    const char *word = dl_arguments_word(r->a, "position_embedding_type", "learned_absolute");
    const char *norm = dl_paired(norms, dl_arguments_word(r->a, "normalization", "layernorm")),
               *pos = dl_paired(positions, word);
    (void)dl_arguments_flag(r->a, "apply_layernorm_1p");
    if (norm == NULL) return dl_megatron_unknown(r, "normalization", "LayerNorm or RMSNorm");
    if (pos == NULL)
        return dl_megatron_unknown(r, "position_embedding_type",
                                   "learned_absolute, rope, alibi or none");
    if (dl_arguments_flag(r->a, "no_position_embedding") && strcmp(pos, "learned") == 0)
        pos = "none";
    if (dl_arguments_flag(r->a, "use_rotary_position_embeddings")) pos = "rope";
    r->plain_norm = strcmp(norm, "layernorm") == 0;
    if (!r->plain_norm) key_word(r, "norm", norm);
    if (strcmp(pos, "learned") != 0) key_word(r, "pos", pos);
    double count = r->seq;
    DL_TRY(dl_megatron_number(r, "max_position_embeddings", &count));
    if (strcmp(pos, "learned") == 0 && count != r->seq) key(r, "positions", count);
    return DL_OK;
}

/* True unless the value is false. */
static bool not_denied(struct dl_megatron_reader *r, const char *names) {
    return dl_arguments_find(r->a, names) == NULL || dl_arguments_flag(r->a, names);
}

/* What gpt: takes from the norm by default. */
static enum dl_code read_rest(struct dl_megatron_reader *r) {
    const bool shares = not_denied(r, "share_embeddings_and_output_weights"),
               tied = shares && !dl_arguments_flag(r->a, "untie_embeddings_and_output_weights"),
               has_bias = not_denied(r, "bias|add_bias_linear"),
               bias = has_bias && !dl_arguments_flag(r->a, "disable_bias_linear"),
               qkv = dl_arguments_flag(r->a, "add_qkv_bias|qkv_bias");
    double attention = 0.1, hidden = 0.1;
    DL_TRY(dl_megatron_number(r, "attention_dropout", &attention));
    DL_TRY(dl_megatron_number(r, "hidden_dropout", &hidden));
    if (tied != r->plain_norm) key(r, "tied", tied);
    if (bias != r->plain_norm) key(r, "bias", bias);
    if (r->plain_norm && !bias) key(r, "norm_bias", 1); /* of linear layers alone */
    if (qkv && !bias) key(r, "qkv_bias", 1);
    if (dl_arguments_flag(r->a, "parallel_attention|mcore_customization_config.parallel_attention"))
        key(r, "parallel", 1);
    if (fmax(attention, hidden) != (r->plain_norm ? 0.1 : 0))
        key(r, "dropout", fmax(attention, hidden));
    return DL_OK;
}

static enum dl_code read_latent(struct dl_megatron_reader *r) {
    double kv = 512, q = 0, head = 128, rotary = 64, value = 128;
    if (!dl_arguments_flag(r->a, "multi_latent_attention")) return DL_OK;
    DL_TRY(dl_megatron_number(r, "kv_lora_rank", &kv));
    DL_TRY(dl_megatron_number(r, "q_lora_rank", &q));
    DL_TRY(dl_megatron_number(r, "qk_head_dim", &head));
    DL_TRY(dl_megatron_number(r, "qk_pos_emb_head_dim", &rotary));
    DL_TRY(dl_megatron_number(r, "v_head_dim", &value));
    key(r, "kv_rank", kv);
    if (q > 0) key(r, "q_rank", q);
    key(r, "head_dim", head + rotary);
    key(r, "rotary", rotary);
    key(r, "value_dim", value);
    return DL_OK;
}

static enum dl_code read_window(struct dl_megatron_reader *r) {
    const struct dl_argument *window = dl_arguments_find(r->a, "window_size");
    if (window == NULL || window->value == NULL || dl_is_off(window->value)) return DL_OK;
    const char *digits = window->value + strspn(window->value, "([ ");
    const double keys = strtod(digits, NULL);
    if (!(keys >= 1 && keys <= MOST)) return dl_megatron_unknown(r, "window_size", "(LEFT,RIGHT)");
    key(r, "window", keys + 1);
    return DL_OK;
}

static enum dl_code read_attention(struct dl_megatron_reader *r) {
    double groups = NAN, channels = NAN, turning = 1;
    const char *backend = dl_arguments_word(r->a, "attention_backend", "auto");
    const bool latent = dl_arguments_flag(r->a, "multi_latent_attention"),
               grouped = not_denied(r, "group_query_attention");
    DL_TRY(dl_megatron_number(r, "num_query_groups|num_key_value_heads", &groups));
    DL_TRY(dl_megatron_number(r, "kv_channels", &channels));
    DL_TRY(dl_megatron_number(r, "rotary_percent|rotary_percentage", &turning));
    if (dl_known(groups) && grouped && groups != r->heads && groups > 0 && !latent)
        key(r, "kv_heads", groups);
    if (dl_known(channels) && channels * r->heads != r->hidden && !latent)
        key(r, "head_dim", channels);
    if (turning > 0 && turning < 1 && !latent)
        key(r, "rotary",
            floor(turning * (dl_known(channels) ? channels : r->hidden / r->heads) + 1e-9));
    if (dl_arguments_flag(r->a, "qk_layernorm")) key(r, "head_norm", 1);
    DL_TRY(read_window(r));
    const bool flash =
        dl_arguments_flag(r->a, "use_flash_attn|use_flash_attention|use_flash_attn_v2"
                                "|use_flash_attn_v1|use_flash_attn_triton");
    if (flash || strcmp(backend, "flash") == 0 || strcmp(backend, "fused") == 0)
        key(r, "flash", 1);
    else if (strcmp(backend, "unfused") == 0)
        dl_plan_words_add(r->out, "attention", "%s",
                          dl_arguments_flag(r->a, "no_masked_softmax_fusion") ? "composed"
                                                                              : "fused-softmax");
    return read_latent(r);
}

/* "([0]*1+[1]*1)*24" and "([0,1]*24)": one layer of several has experts. */
static bool read_turns(struct dl_megatron_reader *r, const char *pattern) {
    long long dense = 1, moe, turns;
    char rest;
    const bool pairs =
        sscanf(pattern, "([0,1]*%lld)%c", &turns, &rest) == 1 && (double)(2 * turns) == r->layers;
    if (!pairs &&
        !(sscanf(pattern, "([0]*%lld+[1]*%lld)*%lld%c", &dense, &moe, &turns, &rest) == 3 &&
          moe == 1))
        return false;
    key(r, "moe_every", (double)(dense + 1));
    return true;
}

/* "([0]*3+[1]*58)", "[0, 1, 1]" or a number: dense layers that come first, or every how many layers
 * one has experts. */
static enum dl_code read_pattern(struct dl_megatron_reader *r) {
    char pattern[128];
    const char *word = dl_arguments_word(r->a, "moe_layer_freq", "1");
    size_t length = 0;
    for (; *word != '\0' && length < sizeof pattern - 1; word++)
        if (strchr(" '\"\n", *word) == NULL) pattern[length++] = *word;
    pattern[length] = '\0';
    long long dense, moe, every;
    char rest;
    const bool listed = (sscanf(pattern, "([0]*%lld+[1]*%lld)%c", &dense, &moe, &rest) == 2 ||
                         sscanf(pattern, "[0]*%lld+[1]*%lld%c", &dense, &moe, &rest) == 2 ||
                         (sscanf(pattern, "([0]+[1]*%lld)%c", &moe, &rest) == 1 && (dense = 1)));
    if (listed && dense >= 0 && (double)(dense + moe) == r->layers) {
        key(r, "dense_layers", (double)dense);
        return DL_OK;
    }
    dense = 0;
    if (sscanf(pattern, "([1]*%lld%*[)+[0]*%lld)%c", &moe, &dense, &rest) >= 1 && dense == 0 &&
        (double)moe == r->layers)
        return DL_OK;
    if (read_turns(r, pattern)) return DL_OK;
    if (sscanf(pattern, "%lld%c", &every, &rest) != 1 || every < 1 || every > 1000)
        return dl_megatron_unknown(r, "moe_layer_freq", "a number or ([0]*DENSE+[1]*MOE)");
    if (every > 1) key(r, "moe_every", (double)every);
    return DL_OK;
}

static enum dl_code read_experts(struct dl_megatron_reader *r) {
    double experts = 0, topk = 2, ffn = NAN, shared = 0, capacity = 0, dense = NAN;
    const bool deepspeed =
        dl_arguments_find(r->a, "moe_train_capacity_factor|expert_interval|topk") != NULL;
    DL_TRY(dl_megatron_number(r, "num_experts|num_moe_experts", &experts));
    if (deepspeed) topk = 1;
    DL_TRY(dl_megatron_number(r, "moe_router_topk|topk", &topk));
    DL_TRY(dl_megatron_number(r, "moe_ffn_hidden_size", &ffn));
    DL_TRY(dl_megatron_number(r, "moe_shared_expert_intermediate_size", &shared));
    DL_TRY(
        dl_megatron_number(r, "moe_expert_capacity_factor|moe_train_capacity_factor", &capacity));
    (void)dl_arguments_flag(r->a, "moe_grouped_gemm");
    if (!(experts > 1)) return DL_OK;
    key(r, "experts", experts);
    key(r, "topk", topk);
    DL_TRY(dl_megatron_number(r, "ffn_hidden_size", &dense));
    if (dl_known(ffn) && ffn != dense) key(r, "expert_ffn", ffn);
    if (shared > 0) {
        key(r, "shared_experts", 1);
        key(r, "shared_ffn", shared);
        if (dl_arguments_flag(r->a, "moe_shared_expert_gate")) key(r, "shared_gate", 1);
    }
    if (capacity > 0 && !dl_arguments_flag(r->a, "disable_moe_token_dropping"))
        key(r, "capacity", capacity);
    double every = 2;
    if (!deepspeed) return read_pattern(r);
    DL_TRY(dl_megatron_number(r, "expert_interval", &every));
    if (every > 1) key(r, "moe_every", every);
    return DL_OK;
}

static enum dl_code bert(struct dl_megatron_reader *r) {
    double ffn = 4 * r->hidden, positions = r->seq, dropout = 0.1, other = 0.1;
    dl_text_printf(r->out->workload, "bert_base:layers=%.15g,hidden=%.15g,heads=%.15g,seq=%.15g",
                   r->layers, r->hidden, r->heads, r->seq);
    DL_TRY(dl_megatron_number(r, "ffn_hidden_size", &ffn));
    DL_TRY(dl_megatron_number(r, "max_position_embeddings", &positions));
    DL_TRY(dl_megatron_number(r, "attention_dropout", &other));
    DL_TRY(dl_megatron_number(r, "hidden_dropout", &dropout));
    key(r, "ffn", ffn);
    key(r, "positions", positions);
    DL_TRY(read_vocabulary(r, true));
    if (fmax(other, dropout) != 0.1) key(r, "dropout", fmax(other, dropout));
    if (dl_arguments_flag(r->a, "use_flash_attn")) key(r, "flash", 1);
    return DL_OK;
}

/* The model is elsewhere: given by --workload. */
static enum dl_code given(struct dl_megatron_reader *r) {
    double seq = NAN;
    r->layers = NAN;
    dl_text_add(r->out->workload, r->run->workload);
    DL_TRY(dl_arguments_number(r->a, "seq_length|encoder_seq_length", 1, MOST, &seq, r->err));
    r->seq = seq;
    if (dl_known(seq)) dl_plan_words_add(r->out, "set", "seq=%.0f", seq);
    return DL_OK;
}

/* A recipe of NeMo or Megatron-Bridge holds the model, and what the file does not override. */
static void take_recipe(struct dl_megatron_reader *r, const char *recipe) {
    static const char *const decided[] = {"tensor_model_parallel_size",
                                          "pipeline_model_parallel_size", "context_parallel_size",
                                          "global_batch_size", "micro_batch_size"};
    struct dl_text missing = {.arena = r->a->arena};
    r->run->workload = dl_run_workload_of(r->run, recipe);
    if (r->run->workload == NULL) return;
    for (size_t i = 0; i < sizeof decided / sizeof decided[0]; i++)
        if (dl_arguments_find(r->a, decided[i]) == NULL)
            dl_text_printf(&missing, "%s%s", missing.length > 0 ? ", " : "", decided[i]);
    r->recipe = true;
    if (missing.length > 0)
        dl_arguments_note(r->a,
                          "recipe \"%.60s\": it also decides %s, which the file does not say and "
                          "which are predicted as 1",
                          recipe, dl_text_string(&missing));
}

enum dl_code dl_megatron_model(struct dl_megatron_reader *r) {
    const char *recipe = dl_arguments_word(r->a, "recipe|model_recipe_name|recipe_name", NULL),
               *size = dl_arguments_word(r->a, "model_size", NULL);
    if (recipe == NULL && size != NULL && dl_arguments_find(r->a, "model_name") != NULL)
        recipe =
            dl_arena_printf(r->a->arena, "%s_%s", dl_arguments_word(r->a, "model_name", ""), size);
    (void)dl_arguments_find(r->a, "model_family_name");
    if (r->run->workload == NULL && recipe != NULL && dl_arguments_find(r->a, "num_layers") == NULL)
        take_recipe(r, recipe);
    if (r->run->workload != NULL) return given(r);
    DL_TRY(refuse_foreign(r));
    if (dl_arguments_find(r->a, "num_layers|encoder_num_layers") == NULL)
        return dl_fail_at(
            r->err, r->a->path, 1, 1, recipe != NULL ? recipe : "num_layers",
            "there is none: where a recipe or another file holds the model, give it by "
            "--workload NAME");
    DL_TRY(needed(r, "num_layers|encoder_num_layers", &r->layers));
    DL_TRY(needed(r, "hidden_size", &r->hidden));
    DL_TRY(needed(r, "num_attention_heads", &r->heads));
    DL_TRY(needed(r, "seq_length|encoder_seq_length", &r->seq));
    if (is_bert(r)) return bert(r);
    dl_text_printf(r->out->workload, "gpt:layers=%.15g,hidden=%.15g,heads=%.15g,seq=%.15g",
                   r->layers, r->hidden, r->heads, r->seq);
    DL_TRY(read_vocabulary(r, false));
    DL_TRY(read_mlp(r));
    DL_TRY(read_norm(r));
    DL_TRY(read_rest(r));
    DL_TRY(read_attention(r));
    DL_TRY(dl_megatron_hybrid(r));
    return read_experts(r);
}
