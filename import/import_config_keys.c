/* import_config_keys.c - model types of Hugging Face's transformers: which members of their
 * config.json set which parameters of a workload. */
#include "import/import_config.h"

#define KEY(key_, use_)                                                                            \
    { .keys = key_, .use = DL_CONFIG_##use_ }
#define SETS(key_, use_, to)                                                                       \
    { .keys = key_, .use = DL_CONFIG_##use_, .parameter = to }
#define NUMBER(key_, to) SETS(key_, NUMBER, to)

/* Names as Llama introduced them; most later families share them. */
static const struct dl_config_key llama_keys[] = {
    NUMBER("hidden_size", "hidden"),
    NUMBER("num_hidden_layers", "layers"),
    NUMBER("num_attention_heads", "heads"),
    NUMBER("num_key_value_heads", "kv_heads"),
    NUMBER("head_dim", "head_dim"),
    NUMBER("intermediate_size", "ffn"),
    NUMBER("vocab_size", "vocab"),
    SETS("hidden_act hidden_activation", ACTIVATION, "mlp"),
    SETS("tie_word_embeddings", FLAG, "tied"),
    KEY("max_position_embeddings", LENGTH),
    SETS("attention_dropout hidden_dropout resid_pdrop embd_pdrop", DROPOUT, "dropout"),
    KEY("attention_bias", HALVES),
    SETS("mlp_bias", FLAG, "bias"),
    SETS("qkv_bias attention_qkv_bias", FLAG, "qkv_bias"),
    SETS("attention_out_bias", FLAG, "proj_bias"),
    SETS("use_qk_norm", FLAG, "head_norm"),
    NUMBER("rotary_dim", "rotary"),
    KEY("lm_head_bias add_cross_attention", FALSE),
    KEY("use_sliding_window", WINDOWED),
    SETS("num_nextn_predict_layers", NOTED,
         "the layers that predict further tokens (num_nextn_predict_layers)"),
    SETS("num_mtp_modules", NOTED, "the layers that predict further tokens (num_mtp_modules)"),
    KEY("partial_rotary_factor", FRACTION),
    SETS("sliding_window", NUMBER, "window"),
    KEY("layer_types", LAYERS),
    KEY("max_window_layers sliding_window_size use_mrope no_rope_layers no_rope_layer_interval "
        "embedding_multiplier residual_multiplier attention_multiplier logits_scaling "
        "mtp_transformer_layers use_mtp",
        IGNORED),
    {0},
};

/* Mixtures of experts on top of those. */
#define EXPERTS                                                                                    \
    NUMBER("num_local_experts num_experts n_routed_experts num_routed_experts", "experts"),        \
        NUMBER("num_experts_per_tok experts_per_token moe_topk", "topk"),                          \
        NUMBER("moe_intermediate_size", "expert_ffn"),                                             \
        NUMBER("n_shared_experts num_shared_experts", "shared_experts"),                           \
        NUMBER("shared_expert_intermediate_size shared_intermediate_size", "shared_ffn"),          \
        NUMBER("first_k_dense_replace", "dense_layers"),                                           \
        NUMBER("moe_layer_freq decoder_sparse_step interleave_moe_layer_step", "moe_every"),       \
        KEY("mlp_only_layers", EMPTY),                                                             \
        SETS("capacity_factor", NOTED, "the capacity of experts (capacity_factor)"),               \
        SETS("use_routing_bias use_moe_router_bias", FLAG, "router_bias"),                         \
        KEY("moe_layers router_jitter_noise router_aux_loss_coef output_router_logits "            \
            "norm_topk_prob "                                                                      \
            "scoring_func routed_scaling_factor topk_method topk_group n_group aux_loss_alpha "    \
            "seq_aux "                                                                             \
            "ep_size",                                                                             \
            IGNORED)
static const struct dl_config_key expert_keys[] = {EXPERTS, {0}};

/* Mixtures of experts and Mamba-2: the keys of Bamba, Granite, Falcon-H1 and Nemotron-H. */
static const struct dl_config_key state_keys[] = {
    EXPERTS,
    NUMBER("mamba_n_heads mamba_num_heads", "ssm_heads"),
    SETS("mamba_d_head mamba_head_dim", AUTO, "ssm_head_dim"),
    NUMBER("mamba_n_groups n_groups", "ssm_groups"),
    NUMBER("mamba_d_state ssm_state_size state_size", "ssm_state"),
    NUMBER("mamba_d_conv conv_kernel", "ssm_kernel"),
    NUMBER("mamba_chunk_size chunk_size", "ssm_chunk"),
    NUMBER("mamba_expand expand", "ssm_expand"),
    SETS("mamba_proj_bias", FLAG, "ssm_bias"),
    SETS("mamba_conv_bias use_conv_bias", FLAG, "ssm_conv_bias"),
    SETS("layer_types layers_block_type", MIXED, "M"),
    SETS("position_embedding_type", POSITION, "pos"),
    KEY("mamba_dt_min mamba_dt_max mamba_dt_limit mamba_dt_init_floor mamba_hidden_act "
        "mamba_ssm_cache_dtype use_mamba_kernels time_step_min time_step_max time_step_limit "
        "time_step_floor residual_in_fp32 rescale_prenorm_residual num_logits_to_keep "
        "z_loss_coefficient normalization_function norm_eps time_step_rank layer_norm_epsilon "
        "mamba_norm_before_gate "
        "logits_to_keep",
        IGNORED),
    {0},
};

static const struct dl_config_key none[] = {{0}};

static const struct dl_config_key qwen_keys[] = {
    KEY("use_sliding_window", WINDOWED),
    {0},
};

static const struct dl_config_key minimax_keys[] = {
    SETS("use_qk_norm", FLAG, "qk_norm"),
    KEY("qk_norm_type attn_type_list", IGNORED),
    {0},
};

static const struct dl_config_key minimax_text_keys[] = {
    SETS("attn_type_list layer_types", MIXED, "L"),
    NUMBER("block_size", "linear_chunk"),
    KEY("layernorm_full_attention_alpha layernorm_full_attention_beta "
        "layernorm_linear_attention_alpha layernorm_linear_attention_beta layernorm_mlp_alpha "
        "layernorm_mlp_beta full_attn_alpha_factor full_attn_beta_factor linear_attn_alpha_factor "
        "linear_attn_beta_factor mlp_alpha_factor mlp_beta_factor postnorm shared_moe_mode",
        IGNORED),
    {0},
};

static const struct dl_config_key qwen_next_keys[] = {
    NUMBER("linear_num_value_heads", "linear_heads"),
    NUMBER("linear_num_key_heads", "linear_key_heads"),
    NUMBER("linear_key_head_dim", "linear_key_dim"),
    NUMBER("linear_value_head_dim", "linear_value_dim"),
    NUMBER("linear_conv_kernel_dim", "linear_kernel"),
    SETS("full_attention_interval layer_types", MIXED, "G"),
    SETS("mtp_num_hidden_layers", NOTED,
         "the layers that predict further tokens (mtp_num_hidden_layers)"),
    KEY("attn_output_gate", TRUE),
    KEY("mtp_use_dedicated_embeddings mamba_ssm_dtype output_gate_type", IGNORED),
    {0},
};

static const struct dl_config_key mamba2_keys[] = {
    NUMBER("hidden_size", "hidden"),
    NUMBER("num_hidden_layers", "layers"),
    NUMBER("vocab_size", "vocab"),
    NUMBER("num_heads", "ssm_heads"),
    NUMBER("head_dim", "ssm_head_dim"),
    SETS("use_bias", FLAG, "ssm_bias"),
    SETS("tie_word_embeddings", FLAG, "tied"),
    KEY("rms_norm", TRUE),
    KEY("hidden_act time_step_rank fuse_cross_entropy norm_before_gate", IGNORED),
    {0},
};

static const struct dl_config_key nemotron_h_keys[] = {
    SETS("hybrid_override_pattern", MIXED, "M"),
    NUMBER("attention_head_dim", "head_dim"),
    SETS("mlp_hidden_act", ACTIVATION, "mlp"),
    NUMBER("moe_shared_expert_intermediate_size", "shared_ffn"),
    KEY("use_bias", FALSE),
    KEY("moe_shared_expert_overlap mtp_layers_block_type mtp_hybrid_override_pattern", IGNORED),
    {0},
};

static const struct dl_config_key bamba_keys[] = {
    SETS("attn_layer_indices", PLACES, "M"),
    NUMBER("attn_rotary_emb", "rotary"),
    {0},
};

static const struct dl_config_key falcon_h1_keys[] = {
    SETS("mamba_rms_norm", FLAG, "ssm_norm"),
    KEY("projectors_bias", FALSE),
    KEY("mamba_use_mlp", TRUE),
    KEY("mamba_d_ssm layer_types layers_block_type attention_in_multiplier "
        "attention_out_multiplier key_multiplier "
        "lm_head_multiplier mlp_multipliers mlp_expansion_factor ssm_in_multiplier "
        "ssm_multipliers ssm_out_multiplier attn_layer_indices",
        IGNORED),
    {0},
};

static const struct dl_config_key llama4_keys[] = {
    NUMBER("intermediate_size", "expert_ffn"),
    NUMBER("intermediate_size_mlp", "ffn"),
    SETS("attention_chunk_size", NOTED, "the chunks of attention (attention_chunk_size)"),
    KEY("use_qk_norm attn_temperature_tuning attn_scale floor_scale "
        "for_llm_compressor layer_types",
        IGNORED),
    {0},
};

static const struct dl_config_key opt_keys[] = {
    NUMBER("hidden_size", "hidden"),
    NUMBER("num_hidden_layers", "layers"),
    NUMBER("num_attention_heads", "heads"),
    NUMBER("ffn_dim", "ffn"),
    NUMBER("vocab_size", "vocab"),
    /* two more rows than tokens */
    {.keys = "max_position_embeddings",
     .use = DL_CONFIG_LENGTH,
     .parameter = "positions",
     .only = 2},
    SETS("activation_function", ACTIVATION, "mlp"),
    SETS("tie_word_embeddings", FLAG, "tied"),
    SETS("dropout", DROPOUT, "dropout"),
    SETS("enable_bias", FLAG, "bias"),
    NUMBER("word_embed_proj_dim", "embedded"),
    KEY("do_layer_norm_before layer_norm_elementwise_affine", TRUE),
    KEY("_remove_final_layer_norm", FALSE),
    {.keys = "layerdrop", .use = DL_CONFIG_ONLY, .only = 0},
    KEY("attention_dropout activation_dropout init_std", IGNORED),
    {0},
};

static const struct dl_config_key starcoder_keys[] = {
    SETS("use_bias", FLAG, "bias"),
    SETS("embedding_dropout residual_dropout", DROPOUT, "dropout"),
    {0},
};

static const struct dl_config_key deepseek_keys[] = {
    NUMBER("q_lora_rank", "q_rank"),
    NUMBER("kv_lora_rank", "kv_rank"),
    NUMBER("qk_rope_head_dim", "rotary"),
    NUMBER("qk_nope_head_dim", "qk_nope"),
    NUMBER("v_head_dim", "value_dim"),
    KEY("attention_bias", FALSE),
    KEY("head_dim qk_head_dim", IGNORED),
    SETS("index_topk", SELECTED, "window"),
    KEY("index_head_dim index_n_heads indexer_rope_interleave index_share_for_mtp_iteration "
        "index_skip_topk_offset index_topk_freq index_topk_pattern indexer_types "
        "mlp_layer_types moe_router_dtype",
        IGNORED),
    {0},
};

static const struct dl_config_key gemma_keys[] = {
    SETS("sliding_window_pattern _sliding_window_pattern", NUMBER, "full_every"),
    KEY("use_bidirectional_attention", FALSE),
    KEY("query_pre_attn_scalar attn_logit_softcapping final_logit_softcapping rope_local_base_freq",
        IGNORED),
    {0},
};

static const struct dl_config_key neox_keys[] = {
    KEY("rotary_pct", FRACTION),
    SETS("use_parallel_residual", FLAG, "parallel"),
    KEY("rotary_emb_base classifier_dropout", IGNORED),
    {0},
};

static const struct dl_config_key gpt2_keys[] = {
    NUMBER("n_embd", "hidden"),
    NUMBER("n_layer", "layers"),
    NUMBER("n_head", "heads"),
    NUMBER("n_inner", "ffn"),
    NUMBER("vocab_size", "vocab"),
    SETS("n_positions", LENGTH, "positions"),
    SETS("activation_function", ACTIVATION, "mlp"),
    SETS("tie_word_embeddings", FLAG, "tied"),
    SETS("embd_pdrop attn_pdrop resid_pdrop", DROPOUT, "dropout"),
    KEY("add_cross_attention", FALSE),
    KEY("n_ctx layer_norm_epsilon reorder_and_upcast_attn scale_attn_by_inverse_layer_idx "
        "scale_attn_weights summary_activation summary_first_dropout summary_proj_to_labels "
        "summary_type summary_use_proj",
        IGNORED),
    {0},
};

static const struct dl_config_key mpt_keys[] = {
    NUMBER("d_model", "hidden"),
    NUMBER("n_layers", "layers"),
    NUMBER("n_heads", "heads"),
    NUMBER("vocab_size", "vocab"),
    NUMBER("kv_n_heads", "kv_heads"),
    SETS("expansion_ratio", RATIO, "ffn"),
    KEY("max_seq_len", LENGTH),
    KEY("no_bias", NO_BIAS),
    SETS("norm_type", NORM, "norm"),
    SETS("tie_word_embeddings", FLAG, "tied"),
    SETS("emb_pdrop resid_pdrop attn_pdrop", DROPOUT, "dropout"),
    KEY("attn_config", INSIDE),
    SETS("alibi", FLAG, "alibi"),
    SETS("learned_pos_emb", FLAG, "learned"),
    KEY("qk_ln prefix_lm rope", FALSE),
    KEY("alibi_bias_max attn_impl attn_type attn_uses_sequence_id clip_qkv softmax_scale "
        "model_type embedding_fraction init_config init_device logit_scale tokenizer_name verbose",
        IGNORED),
    {0},
};

static const struct dl_config_key bert_keys[] = {
    NUMBER("hidden_size", "hidden"),
    NUMBER("num_hidden_layers", "layers"),
    NUMBER("num_attention_heads", "heads"),
    NUMBER("intermediate_size", "ffn"),
    NUMBER("vocab_size", "vocab"),
    NUMBER("max_position_embeddings", "positions"),
    SETS("hidden_act", ACTIVATION, "mlp"),
    SETS("attention_probs_dropout_prob hidden_dropout_prob", DROPOUT, "dropout"),
    SETS("gradient_checkpointing", NOTED, "recomputation (gradient_checkpointing)"),
    {.keys = "type_vocab_size", .use = DL_CONFIG_ONLY, .only = 2},
    KEY("classifier_dropout position_embedding_type", IGNORED),
    {0},
};

/* Of every family: numerics, tokens, generation, storage, and members of old classes. */
const struct dl_config_key dl_config_ignored[] = {
    KEY("is_encoder_decoder", FALSE),
    KEY("model_type architectures auto_map _name_or_path _attn_implementation_autoset name_or_path "
        "torch_dtype dtype transformers_version initializer_range initializer_factor rms_norm_eps "
        "layer_norm_eps norm_epsilon rope_theta rope_scaling rope_parameters rope_interleave "
        "use_cache cache_implementation pretraining_tp bos_token_id eos_token_id pad_token_id "
        "unk_token_id task_specific_params quantization_config output_attentions "
        "output_hidden_states return_dict id2label label2id use_flash_attn _num_labels num_labels "
        "is_decoder image_token_id video_token_id vision_start_token_id vision_end_token_id "
        "vision_token_id tokenizer_class use_bfloat16 vision_config "
        "audio_config attn_implementation _attn_implementation bad_words_ids begin_suppress_tokens "
        "chunk_size_feed_forward cross_attention_hidden_size decoder_start_token_id "
        "diversity_penalty do_sample early_stopping encoder_no_repeat_ngram_size "
        "exponential_decay_length_penalty finetuning_task forced_bos_token_id forced_eos_token_id "
        "length_penalty max_length min_length no_repeat_ngram_size num_beam_groups num_beams "
        "num_return_sequences output_scores prefix problem_type pruned_heads remove_invalid_values "
        "repetition_penalty return_dict_in_generate sep_token_id suppress_tokens temperature "
        "tf_legacy_loss tie_encoder_decoder top_k top_p torchscript typical_p sampler "
        "unsloth_version _commit_hash",
        IGNORED),
    {0},
};

/* Types whose layers are those of another: the family's members count. */
const struct dl_config_alias dl_config_aliases[] = {
    {"kimi_k2 deepseek_v32 glm_moe_dsa", "deepseek_v3"},
    {"qwen3_vl_text", "qwen3"},
    {"qwen3_vl_moe_text", "qwen3_moe"},
    {"qwen2_vl qwen2_5_vl qwen2_vl_text qwen2_5_vl_text mimo", "qwen2"},
    {"granite smollm3 seed_oss yi internlm3", "llama"},
    {"ministral mistral3", "mistral"},
    {"granitemoe", "mixtral"},
    {"gemma3", "gemma3_text"},
    {"olmo3", "olmo2"},
    {"glm", "glm4_moe"},
    {"distilgpt2", "gpt2"},
    {"minimax_text_01", "minimax"},
    {"qwen3_5_text qwen3_5_moe_text", "qwen3_next"},
    {NULL, NULL},
};

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})
#define KEYS(...) ((const struct dl_config_key[]){__VA_ARGS__, {0}})
#define LLAMA                                                                                      \
    "mlp=swiglu", "norm=rmsnorm", "pos=rope", "bias=0", "qkv_bias=0", "proj_bias=0", "dropout=0",  \
        "flash=1"
#define FAMILY(type, extends_, gated_, keys_, shared_, base_, needs_, ...)                         \
    {                                                                                              \
        .model_type = type, .extends = extends_, .gated = gated_, .keys = keys_,                   \
        .shared = shared_, .base = base_, .needs = needs_, .always = LIST(__VA_ARGS__)             \
    }
#define NEEDED LIST("hidden", "layers", "heads", "ffn", "vocab")
#define MIXED "pattern_mlp=1", LLAMA, "tied=0"
#define NEEDED_BUT_FFN LIST("hidden", "layers", "heads", "vocab")
#define GPT_FAMILY(type, keys_, shared_, ...)                                                      \
    FAMILY(type, "gpt", true, keys_, shared_, llama_keys, NEEDED, __VA_ARGS__)

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
    GPT_FAMILY("gpt_oss", KEYS(KEY("swiglu_limit initial_context_length", IGNORED)), expert_keys,
               LLAMA, "tied=0", "qkv_bias=1", "proj_bias=1", "sinks=1", "full_every=2",
               "expert_bias=1", "router_bias=1"),
    GPT_FAMILY("olmo2", none, none, LLAMA, "tied=0", "pre_norm=0", "post_norm=1", "qk_norm=1"),
    GPT_FAMILY("glm4_moe", KEYS(SETS("attention_bias", FLAG, "qkv_bias")), expert_keys, LLAMA,
               "tied=0", "rotary=floor(0.5*head_dim)", "router_bias=1"),
    GPT_FAMILY("minimax_m2", minimax_keys, expert_keys, LLAMA, "tied=0"),
    GPT_FAMILY("llama4_text", llama4_keys, expert_keys, LLAMA, "tied=0", "hidden=5120", "layers=48",
               "heads=40", "kv_heads=8", "head_dim=128", "vocab=202048", "ffn=16384",
               "expert_ffn=8192", "experts=16", "topk=1", "shared_experts=1"),
    GPT_FAMILY(
        "phi3",
        KEYS(KEY("original_max_position_embeddings full_attn_mod interpolate_factor", IGNORED)),
        none, LLAMA, "tied=0"),
    GPT_FAMILY("gemma", gemma_keys, none, LLAMA, "mlp=geglu", "tied=1", "head_dim=256"),
    GPT_FAMILY("gemma2", gemma_keys, none, LLAMA, "mlp=geglu", "tied=1", "head_dim=256",
               "post_norm=1", "full_every=2"),
    GPT_FAMILY("gemma3_text", gemma_keys, none, LLAMA, "mlp=geglu", "tied=1", "head_dim=256",
               "post_norm=1", "full_every=6", "head_norm=1"),
    FAMILY("nemotron", "gpt", false, KEYS(KEY("norm_eps", IGNORED)), none, llama_keys, NEEDED,
           "mlp=relu2", "norm=layernorm", "norm_bias=1", "pos=rope", "bias=0", "qkv_bias=0",
           "proj_bias=0", "tied=0", "dropout=0", "flash=1", "rotary=head_dim/2"),
    FAMILY("qwen3_next", "gpt", true, qwen_next_keys, expert_keys, llama_keys, NEEDED_BUT_FFN,
           MIXED, "pattern=GGG*", "head_norm=1", "attn_gate=1", "shared_gate=1",
           "rotary=floor(0.25*head_dim)"),
    GPT_FAMILY("minimax", minimax_text_keys, expert_keys, MIXED, "pattern=*L", "linear_chunk=256"),
    {.model_type = "granitemoehybrid",
     .extends = "gpt",
     .gated = true,
     .keys = none,
     .shared = state_keys,
     .base = llama_keys,
     .needs = NEEDED,
     .shared_mlp = true,
     .always = LIST(MIXED, "pattern=M", "pos=none")},
    GPT_FAMILY("bamba", bamba_keys, state_keys, MIXED, "pattern=M", "rotary=floor(head_dim/2)"),
    GPT_FAMILY("falcon_h1", falcon_h1_keys, state_keys, MIXED, "pattern=P", "ssm_norm=0"),
    FAMILY("nemotron_h", "gpt", false, nemotron_h_keys, state_keys, llama_keys,
           LIST("hidden", "heads", "vocab", "pattern"), "mlp=relu2", "norm=rmsnorm", "pos=none",
           "bias=0", "qkv_bias=0", "proj_bias=0", "tied=0", "dropout=0", "flash=1", "router_bias=1",
           "ssm_chunk=128"),
    FAMILY("mamba2", "gpt", false, mamba2_keys, state_keys, none, LIST("hidden", "layers", "vocab"),
           "pattern=M", "norm=rmsnorm", "pos=none", "bias=0", "tied=0", "dropout=0"),
    FAMILY("starcoder2", "gpt", false, starcoder_keys, none, llama_keys, NEEDED, "mlp=gelu",
           "norm=layernorm", "pos=rope", "bias=1", "tied=1", "dropout=0", "flash=1"),
    FAMILY("opt", "gpt", false, opt_keys, none, none, NEEDED, "mlp=gelu", "norm=layernorm",
           "pos=learned", "bias=1", "tied=1", "dropout=0.1"),
    FAMILY("gpt_neox", "gpt", false, neox_keys, none, llama_keys, NEEDED, "mlp=gelu",
           "norm=layernorm", "pos=rope", "bias=1", "tied=0", "dropout=0", "parallel=1",
           "rotary=head_dim/4"),
    FAMILY("gpt2", "gpt", false, gpt2_keys, none, none, NEEDED_BUT_FFN, "mlp=gelu",
           "norm=layernorm", "pos=learned", "bias=1", "tied=1", "dropout=0.1"),
    FAMILY("mpt", "gpt", false, mpt_keys, none, none, NEEDED_BUT_FFN, "mlp=gelu", "norm=layernorm",
           "pos=none", "bias=1", "tied=1", "dropout=0", "flash=1"),
    FAMILY("bert", "bert_base", false, bert_keys, none, none, NEEDED, "dropout=0.1"),
    {0},
};

/* A type that no row names, with the members of a Llama, experts or not. */
const struct dl_config_family dl_config_llama_like =
    GPT_FAMILY("llama", none, expert_keys, LLAMA, "tied=0");
