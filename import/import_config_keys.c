/* import_config_keys.c - model types of Hugging Face's transformers: which members of their
 * config.json set which parameters of a workload. */
#include "import/import_config.h"

#define KEY(key_, use_)                                                                            \
    { .key = #key_, .use = DL_CONFIG_##use_ }
#define SETS(key_, use_, to)                                                                       \
    { .key = #key_, .use = DL_CONFIG_##use_, .parameter = to }
#define NUMBER(key_, to) SETS(key_, NUMBER, #to)

/* Names as Llama introduced them; most later families share them. */
static const struct dl_config_key llama_keys[] = {
    NUMBER(hidden_size, hidden),
    NUMBER(num_hidden_layers, layers),
    NUMBER(num_attention_heads, heads),
    NUMBER(num_key_value_heads, kv_heads),
    NUMBER(head_dim, head_dim),
    NUMBER(intermediate_size, ffn),
    NUMBER(vocab_size, vocab),
    SETS(hidden_act, ACTIVATION, "mlp"),
    SETS(hidden_activation, ACTIVATION, "mlp"),
    SETS(tie_word_embeddings, FLAG, "tied"),
    KEY(max_position_embeddings, LENGTH),
    SETS(attention_dropout, DROPOUT, "dropout"),
    SETS(hidden_dropout, DROPOUT, "dropout"),
    SETS(resid_pdrop, DROPOUT, "dropout"),
    SETS(embd_pdrop, DROPOUT, "dropout"),
    KEY(attention_bias, HALVES),
    SETS(mlp_bias, FLAG, "bias"),
    SETS(qkv_bias, FLAG, "qkv_bias"),
    SETS(attention_qkv_bias, FLAG, "qkv_bias"),
    SETS(attention_out_bias, FLAG, "proj_bias"),
    SETS(use_qk_norm, FLAG, "head_norm"),
    NUMBER(rotary_dim, rotary),
    KEY(lm_head_bias, FALSE),
    KEY(add_cross_attention, FALSE),
    KEY(use_sliding_window, WINDOWED),
    KEY(max_window_layers, IGNORED),
    KEY(sliding_window_size, IGNORED),
    KEY(use_mrope, IGNORED),
    KEY(no_rope_layers, IGNORED),
    KEY(no_rope_layer_interval, IGNORED),
    KEY(embedding_multiplier, IGNORED),
    KEY(residual_multiplier, IGNORED),
    KEY(attention_multiplier, IGNORED),
    KEY(logits_scaling, IGNORED),
    SETS(num_nextn_predict_layers, NOTED,
         "the layers that predict further tokens (num_nextn_predict_layers)"),
    SETS(num_mtp_modules, NOTED, "the layers that predict further tokens (num_mtp_modules)"),
    KEY(mtp_transformer_layers, IGNORED),
    KEY(use_mtp, IGNORED),
    KEY(partial_rotary_factor, FRACTION),
    SETS(sliding_window, WINDOW, "window"),
    KEY(layer_types, LAYERS),
    {0},
};

/* Mixtures of experts on top of those. */
static const struct dl_config_key expert_keys[] = {
    NUMBER(num_local_experts, experts),
    NUMBER(num_experts, experts),
    NUMBER(n_routed_experts, experts),
    NUMBER(num_experts_per_tok, topk),
    NUMBER(experts_per_token, topk),
    NUMBER(moe_intermediate_size, expert_ffn),
    NUMBER(n_shared_experts, shared_experts),
    NUMBER(shared_expert_intermediate_size, shared_ffn),
    NUMBER(first_k_dense_replace, dense_layers),
    NUMBER(moe_layer_freq, moe_every),
    NUMBER(decoder_sparse_step, moe_every),
    KEY(mlp_only_layers, EMPTY),
    SETS(use_routing_bias, FLAG, "router_bias"),
    SETS(use_moe_router_bias, FLAG, "router_bias"),
    NUMBER(moe_topk, topk),
    NUMBER(num_shared_experts, shared_experts),
    NUMBER(shared_intermediate_size, shared_ffn),
    NUMBER(interleave_moe_layer_step, moe_every),
    KEY(moe_layers, IGNORED),
    KEY(router_jitter_noise, IGNORED),
    KEY(router_aux_loss_coef, IGNORED),
    KEY(output_router_logits, IGNORED),
    KEY(norm_topk_prob, IGNORED),
    KEY(scoring_func, IGNORED),
    KEY(routed_scaling_factor, IGNORED),
    KEY(topk_method, IGNORED),
    KEY(topk_group, IGNORED),
    KEY(n_group, IGNORED),
    KEY(aux_loss_alpha, IGNORED),
    KEY(seq_aux, IGNORED),
    KEY(ep_size, IGNORED),
    {0},
};

static const struct dl_config_key none[] = {{0}};

static const struct dl_config_key qwen_keys[] = {KEY(use_sliding_window, WINDOWED), {0}};

static const struct dl_config_key glm_keys[] = {SETS(attention_bias, FLAG, "qkv_bias"), {0}};

static const struct dl_config_key minimax_keys[] = {SETS(use_qk_norm, FLAG, "qk_norm"),
                                                    KEY(qk_norm_type, IGNORED),
                                                    KEY(attn_type_list, IGNORED),
                                                    {0}};

static const struct dl_config_key llama4_keys[] = {
    NUMBER(intermediate_size, expert_ffn),
    NUMBER(intermediate_size_mlp, ffn),
    KEY(use_qk_norm, IGNORED),
    KEY(attention_chunk_size, IGNORED),
    KEY(attn_temperature_tuning, IGNORED),
    KEY(attn_scale, IGNORED),
    KEY(floor_scale, IGNORED),
    KEY(for_llm_compressor, IGNORED),
    KEY(layer_types, IGNORED),
    {0},
};

static const struct dl_config_key opt_keys[] = {
    NUMBER(hidden_size, hidden),
    NUMBER(num_hidden_layers, layers),
    NUMBER(num_attention_heads, heads),
    NUMBER(ffn_dim, ffn),
    NUMBER(vocab_size, vocab),
    /* two more rows than tokens */
    {.key = "max_position_embeddings",
     .use = DL_CONFIG_LENGTH,
     .parameter = "positions",
     .only = 2},
    SETS(activation_function, ACTIVATION, "mlp"),
    SETS(tie_word_embeddings, FLAG, "tied"),
    SETS(dropout, DROPOUT, "dropout"),
    SETS(attention_dropout, IGNORED, ""),
    SETS(enable_bias, FLAG, "bias"),
    NUMBER(word_embed_proj_dim, embedded),
    KEY(do_layer_norm_before, TRUE),
    KEY(layer_norm_elementwise_affine, TRUE),
    KEY(_remove_final_layer_norm, FALSE),
    KEY(activation_dropout, IGNORED),
    KEY(layerdrop, IGNORED),
    KEY(init_std, IGNORED),
    {0},
};

static const struct dl_config_key starcoder_keys[] = {SETS(use_bias, FLAG, "bias"),
                                                      SETS(embedding_dropout, DROPOUT, "dropout"),
                                                      SETS(residual_dropout, DROPOUT, "dropout"),
                                                      {0}};

static const struct dl_config_key deepseek_keys[] = {
    NUMBER(q_lora_rank, q_rank),
    NUMBER(kv_lora_rank, kv_rank),
    NUMBER(qk_rope_head_dim, rotary),
    NUMBER(qk_nope_head_dim, qk_nope),
    NUMBER(v_head_dim, value_dim),
    KEY(head_dim, IGNORED),
    KEY(qk_head_dim, IGNORED),
    KEY(attention_bias, FALSE),
    SETS(num_nextn_predict_layers, NOTED,
         "the layers that predict further tokens (num_nextn_predict_layers)"),
    {0},
};

static const struct dl_config_key oss_keys[] = {
    KEY(swiglu_limit, IGNORED), KEY(initial_context_length, IGNORED), {0}};

static const struct dl_config_key gemma_keys[] = {
    SETS(sliding_window_pattern, PATTERN, "full_every"),
    SETS(_sliding_window_pattern, PATTERN, "full_every"),
    KEY(query_pre_attn_scalar, IGNORED),
    KEY(attn_logit_softcapping, IGNORED),
    KEY(final_logit_softcapping, IGNORED),
    KEY(rope_local_base_freq, IGNORED),
    KEY(use_bidirectional_attention, FALSE),
    {0},
};

static const struct dl_config_key phi3_keys[] = {KEY(original_max_position_embeddings, IGNORED),
                                                 KEY(full_attn_mod, IGNORED),
                                                 KEY(interpolate_factor, IGNORED),
                                                 {0}};

static const struct dl_config_key nemotron_keys[] = {KEY(norm_eps, IGNORED), {0}};

static const struct dl_config_key neox_keys[] = {
    KEY(rotary_pct, FRACTION),
    SETS(use_parallel_residual, FLAG, "parallel"),
    KEY(rotary_emb_base, IGNORED),
    KEY(classifier_dropout, IGNORED),
    {0},
};

static const struct dl_config_key gpt2_keys[] = {
    NUMBER(n_embd, hidden),
    NUMBER(n_layer, layers),
    NUMBER(n_head, heads),
    NUMBER(n_inner, ffn),
    NUMBER(vocab_size, vocab),
    SETS(n_positions, LENGTH, "positions"),
    KEY(n_ctx, IGNORED),
    SETS(activation_function, ACTIVATION, "mlp"),
    SETS(tie_word_embeddings, FLAG, "tied"),
    SETS(embd_pdrop, DROPOUT, "dropout"),
    SETS(attn_pdrop, DROPOUT, "dropout"),
    SETS(resid_pdrop, DROPOUT, "dropout"),
    KEY(add_cross_attention, FALSE),
    KEY(layer_norm_epsilon, IGNORED),
    KEY(reorder_and_upcast_attn, IGNORED),
    KEY(scale_attn_by_inverse_layer_idx, IGNORED),
    KEY(scale_attn_weights, IGNORED),
    KEY(summary_activation, IGNORED),
    KEY(summary_first_dropout, IGNORED),
    KEY(summary_proj_to_labels, IGNORED),
    KEY(summary_type, IGNORED),
    KEY(summary_use_proj, IGNORED),
    {0},
};

static const struct dl_config_key mpt_keys[] = {
    NUMBER(d_model, hidden),
    NUMBER(n_layers, layers),
    NUMBER(n_heads, heads),
    NUMBER(vocab_size, vocab),
    NUMBER(kv_n_heads, kv_heads), /* inside attn_config */
    SETS(expansion_ratio, RATIO, "ffn"),
    KEY(max_seq_len, LENGTH),
    KEY(no_bias, NO_BIAS),
    SETS(norm_type, NORM, "norm"),
    SETS(tie_word_embeddings, FLAG, "tied"),
    SETS(emb_pdrop, DROPOUT, "dropout"),
    SETS(resid_pdrop, DROPOUT, "dropout"),
    KEY(attn_config, INSIDE),
    SETS(alibi, FLAG, "alibi"),
    SETS(learned_pos_emb, FLAG, "learned"),
    SETS(attn_pdrop, DROPOUT, "dropout"),
    KEY(qk_ln, FALSE),
    KEY(prefix_lm, FALSE),
    KEY(rope, FALSE),
    KEY(alibi_bias_max, IGNORED),
    KEY(attn_impl, IGNORED),
    KEY(attn_type, IGNORED),
    KEY(attn_uses_sequence_id, IGNORED),
    KEY(clip_qkv, IGNORED),
    KEY(softmax_scale, IGNORED),
    KEY(model_type, IGNORED),
    KEY(embedding_fraction, IGNORED),
    KEY(init_config, IGNORED),
    KEY(init_device, IGNORED),
    KEY(logit_scale, IGNORED),
    KEY(tokenizer_name, IGNORED),
    KEY(verbose, IGNORED),
    {0},
};

static const struct dl_config_key bert_keys[] = {
    NUMBER(hidden_size, hidden),
    NUMBER(num_hidden_layers, layers),
    NUMBER(num_attention_heads, heads),
    NUMBER(intermediate_size, ffn),
    NUMBER(vocab_size, vocab),
    NUMBER(max_position_embeddings, positions),
    SETS(hidden_act, ACTIVATION, "mlp"),
    SETS(attention_probs_dropout_prob, DROPOUT, "dropout"),
    SETS(hidden_dropout_prob, DROPOUT, "dropout"),
    {.key = "type_vocab_size", .use = DL_CONFIG_ONLY, .only = 2},
    KEY(classifier_dropout, IGNORED),
    KEY(position_embedding_type, IGNORED),
    KEY(gradient_checkpointing, IGNORED),
    {0},
};

/* Of every family: numerics, tokens, generation, storage. */
const struct dl_config_key dl_config_ignored[] = {
    KEY(model_type, IGNORED),
    KEY(architectures, IGNORED),
    KEY(auto_map, IGNORED),
    KEY(_name_or_path, IGNORED),
    KEY(_attn_implementation_autoset, IGNORED),
    KEY(name_or_path, IGNORED),
    KEY(torch_dtype, IGNORED),
    KEY(dtype, IGNORED),
    KEY(transformers_version, IGNORED),
    KEY(initializer_range, IGNORED),
    KEY(initializer_factor, IGNORED),
    KEY(rms_norm_eps, IGNORED),
    KEY(layer_norm_eps, IGNORED),
    KEY(norm_epsilon, IGNORED),
    KEY(rope_theta, IGNORED),
    KEY(rope_scaling, IGNORED),
    KEY(rope_parameters, IGNORED),
    KEY(rope_interleave, IGNORED),
    KEY(use_cache, IGNORED),
    KEY(cache_implementation, IGNORED),
    KEY(pretraining_tp, IGNORED),
    KEY(bos_token_id, IGNORED),
    KEY(eos_token_id, IGNORED),
    KEY(pad_token_id, IGNORED),
    KEY(unk_token_id, IGNORED),
    KEY(task_specific_params, IGNORED),
    KEY(quantization_config, IGNORED),
    KEY(output_attentions, IGNORED),
    KEY(output_hidden_states, IGNORED),
    KEY(return_dict, IGNORED),
    KEY(id2label, IGNORED),
    KEY(label2id, IGNORED),
    KEY(use_flash_attn, IGNORED),
    KEY(_num_labels, IGNORED),
    KEY(num_labels, IGNORED),
    KEY(is_encoder_decoder, FALSE),
    KEY(is_decoder, IGNORED),
    KEY(image_token_id, IGNORED),
    KEY(video_token_id, IGNORED),
    KEY(tokenizer_class, IGNORED),
    KEY(use_bfloat16, IGNORED),
    KEY(vision_config, IGNORED),
    KEY(audio_config, IGNORED),
    KEY(attn_implementation, IGNORED),
    KEY(_attn_implementation, IGNORED),
    {0},
};

/* Of generation and of old classes, which every config may hold. */
const char *const dl_config_harmless[] = {"bad_words_ids",
                                          "begin_suppress_tokens",
                                          "chunk_size_feed_forward",
                                          "cross_attention_hidden_size",
                                          "decoder_start_token_id",
                                          "diversity_penalty",
                                          "do_sample",
                                          "early_stopping",
                                          "encoder_no_repeat_ngram_size",
                                          "exponential_decay_length_penalty",
                                          "finetuning_task",
                                          "forced_bos_token_id",
                                          "forced_eos_token_id",
                                          "length_penalty",
                                          "max_length",
                                          "min_length",
                                          "no_repeat_ngram_size",
                                          "num_beam_groups",
                                          "num_beams",
                                          "num_return_sequences",
                                          "output_scores",
                                          "prefix",
                                          "problem_type",
                                          "pruned_heads",
                                          "remove_invalid_values",
                                          "repetition_penalty",
                                          "return_dict_in_generate",
                                          "sep_token_id",
                                          "suppress_tokens",
                                          "temperature",
                                          "tf_legacy_loss",
                                          "tie_encoder_decoder",
                                          "top_k",
                                          "top_p",
                                          "torchscript",
                                          "typical_p",
                                          "sampler",
                                          "unsloth_version",
                                          "_commit_hash",
                                          NULL};

/* Types whose layers are those of another: the family's members count. */
const struct dl_config_alias dl_config_aliases[] = {
    {"kimi_k2", "deepseek_v3"},   {"qwen3_vl_text", "qwen3"}, {"qwen3_vl_moe_text", "qwen3_moe"},
    {"qwen2_vl", "qwen2"},        {"qwen2_5_vl", "qwen2"},    {"qwen2_vl_text", "qwen2"},
    {"qwen2_5_vl_text", "qwen2"}, {"mimo", "qwen2"},          {"granite", "llama"},
    {"smollm3", "llama"},         {"ministral", "mistral"},   {"mistral3", "mistral"},
    {"granitemoe", "mixtral"},    {"seed_oss", "llama"},      {"gemma3", "gemma3_text"},
    {"olmo3", "olmo2"},           {"glm", "glm4_moe"},        {"yi", "llama"},
    {"internlm3", "llama"},       {"distilgpt2", "gpt2"},     {NULL, NULL},
};

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})
#define LLAMA                                                                                      \
    "mlp=swiglu", "norm=rmsnorm", "pos=rope", "bias=0", "qkv_bias=0", "proj_bias=0", "dropout=0",  \
        "flash=1"
#define NEEDED "hidden", "layers", "heads", "ffn", "vocab"
#define GPT_FAMILY(type, keys_, shared_, ...)                                                      \
    {                                                                                              \
        .model_type = type, .extends = "gpt", .always = LIST(__VA_ARGS__), .gated = true,          \
        .keys = keys_, .shared = shared_, .base = llama_keys, .needs = {                           \
            NEEDED                                                                                 \
        }                                                                                          \
    }

const struct dl_config_family dl_config_families[] = {
    GPT_FAMILY("llama", none, none, LLAMA, "tied=0"),
    GPT_FAMILY("mistral", none, none, LLAMA, "tied=0"),
    GPT_FAMILY("mixtral", none, expert_keys, LLAMA, "tied=0"),
    GPT_FAMILY("qwen2", qwen_keys, none, LLAMA, "tied=0", "qkv_bias=1"),
    GPT_FAMILY("qwen2_moe", qwen_keys, expert_keys, LLAMA, "tied=0", "qkv_bias=1", "shared_gate=1"),
    GPT_FAMILY("qwen3", qwen_keys, none, LLAMA, "tied=0", "head_norm=1"),
    GPT_FAMILY("qwen3_moe", qwen_keys, expert_keys, LLAMA, "tied=0", "head_norm=1"),
    GPT_FAMILY("deepseek_v2", deepseek_keys, expert_keys, LLAMA, "tied=0"),
    GPT_FAMILY("deepseek_v3", deepseek_keys, expert_keys, LLAMA, "tied=0", "router_bias=1"),
    GPT_FAMILY("gpt_oss", oss_keys, expert_keys, LLAMA, "tied=0", "qkv_bias=1", "proj_bias=1",
               "sinks=1", "full_every=2", "expert_bias=1", "router_bias=1"),
    GPT_FAMILY("olmo2", none, none, LLAMA, "tied=0", "pre_norm=0", "post_norm=1", "qk_norm=1"),
    GPT_FAMILY("glm4_moe", glm_keys, expert_keys, LLAMA, "tied=0", "rotary=floor(0.5*head_dim)",
               "router_bias=1"),
    GPT_FAMILY("minimax_m2", minimax_keys, expert_keys, LLAMA, "tied=0"),
    GPT_FAMILY("llama4_text", llama4_keys, expert_keys, LLAMA, "tied=0", "hidden=5120", "layers=48",
               "heads=40", "kv_heads=8", "head_dim=128", "vocab=202048", "ffn=16384",
               "expert_ffn=8192", "experts=16", "topk=1", "shared_experts=1"),
    GPT_FAMILY("phi3", phi3_keys, none, LLAMA, "tied=0"),
    GPT_FAMILY("gemma", gemma_keys, none, LLAMA, "mlp=geglu", "tied=1", "head_dim=256"),
    GPT_FAMILY("gemma2", gemma_keys, none, LLAMA, "mlp=geglu", "tied=1", "head_dim=256",
               "post_norm=1", "full_every=2"),
    GPT_FAMILY("gemma3_text", gemma_keys, none, LLAMA, "mlp=geglu", "tied=1", "head_dim=256",
               "post_norm=1", "full_every=6", "head_norm=1"),
    {.model_type = "nemotron",
     .extends = "gpt",
     .always =
         LIST("mlp=relu2", "norm=layernorm", "norm_bias=1", "pos=rope", "bias=0", "qkv_bias=0",
              "proj_bias=0", "tied=0", "dropout=0", "flash=1", "rotary=head_dim/2"),
     .keys = nemotron_keys,
     .shared = none,
     .base = llama_keys,
     .needs = {NEEDED}},
    {.model_type = "starcoder2",
     .extends = "gpt",
     .always =
         LIST("mlp=gelu", "norm=layernorm", "pos=rope", "bias=1", "tied=1", "dropout=0", "flash=1"),
     .keys = starcoder_keys,
     .shared = none,
     .base = llama_keys,
     .needs = {NEEDED}},
    {.model_type = "opt",
     .extends = "gpt",
     .always = LIST("mlp=gelu", "norm=layernorm", "pos=learned", "bias=1", "tied=1", "dropout=0.1"),
     .keys = opt_keys,
     .shared = none,
     .base = none,
     .needs = {NEEDED}},
    {.model_type = "gpt_neox",
     .extends = "gpt",
     .always = LIST("mlp=gelu", "norm=layernorm", "pos=rope", "bias=1", "tied=0", "dropout=0",
                    "parallel=1", "rotary=head_dim/4"),
     .keys = neox_keys,
     .shared = none,
     .base = llama_keys,
     .needs = {NEEDED}},
    {.model_type = "gpt2",
     .extends = "gpt",
     .always = LIST("mlp=gelu", "norm=layernorm", "pos=learned", "bias=1", "tied=1", "dropout=0.1"),
     .keys = gpt2_keys,
     .shared = none,
     .base = none,
     .needs = {"hidden", "layers", "heads", "vocab"}},
    {.model_type = "mpt",
     .extends = "gpt",
     .always =
         LIST("mlp=gelu", "norm=layernorm", "pos=none", "bias=1", "tied=1", "dropout=0", "flash=1"),
     .keys = mpt_keys,
     .shared = none,
     .base = none,
     .needs = {"hidden", "layers", "heads", "vocab"}},
    {.model_type = "bert",
     .extends = "bert_base",
     .always = LIST("dropout=0.1"),
     .keys = bert_keys,
     .shared = none,
     .base = none,
     .needs = {NEEDED}},
    {0},
};

/* A type that no row names, with the members of a Llama, experts or not. */
const struct dl_config_family dl_config_llama_like =
    GPT_FAMILY("llama", none, expert_keys, LLAMA, "tied=0");
