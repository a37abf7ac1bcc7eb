/* run_maxtext.c - MaxText's YAML: the decoder that it describes, its mesh of devices, and what it
 * recomputes. What is not given has the default of MaxText's base.yml. */
#include <math.h>
#include <string.h>

#include "import/run/run_table.h"

static const struct dl_word_pair policies[] = {
    {"full", "full"},
    {"minimal|minimal_with_context|minimal_flash|minimal_with_quantization|minimal_offloaded|"
     "minimal_with_context_and_quantization|save_qkv_proj|save_out_proj|save_dot_except_mlp|"
     "save_dot_except_mlpwi|save_dot_with_context_except_mlp|qkv_proj_offloaded|custom",
     "selective"},
    {"none", "none"},
    {NULL, NULL}};
static const struct dl_run_key maxtext_keys[] = {
    {"model_name", DL_SLOT_MODEL, NULL, NULL},
    {"gradient_accumulation_steps", DL_SLOT_ACCUMULATE, NULL, NULL},
    {"max_target_length", DL_SLOT_SEQ, NULL, NULL},
    {"steps", DL_SLOT_STEPS, NULL, NULL},
    {"quantization", DL_SLOT_PRECISION, dl_precision_pairs, NULL},
    {"dtype", DL_SLOT_PRECISION, dl_precision_pairs, NULL},
    {"remat_policy", DL_SLOT_RECOMPUTE, policies, NULL},
    {"opt_type", DL_SLOT_OPTIMIZER, dl_optimizer_pairs, NULL},
    {NULL, 0, NULL, NULL}};
/* ---- the model ---- */

/* Properties of a kind of decoder that are no numbers. */
static const struct decoder {
    const char *name, *parameters;
    bool windows; /* sliding_window_size is that of its local layers */
    int layers;   /* of the model for one of the file, which joins a local and a global one */
} decoders[] = {
    {"llama2", "norm=rmsnorm,pos=rope", false, 1},
    {"llama3", "norm=rmsnorm,pos=rope", false, 1},
    {"mistral", "norm=rmsnorm,pos=rope", false, 1},
    {"mixtral", "norm=rmsnorm,pos=rope", false, 1},
    {"gemma", "norm=rmsnorm,pos=rope", false, 1},
    {"gemma2", "norm=rmsnorm,pos=rope,post_norm=1,full_every=2", true, 2},
    {"gemma3", "norm=rmsnorm,pos=rope,post_norm=1,head_norm=1,full_every=6", true, 1},
    {"qwen2", "norm=rmsnorm,pos=rope,qkv_bias=1", false, 1},
    {"qwen3", "norm=rmsnorm,pos=rope,head_norm=1", false, 1},
    {"qwen3_moe", "norm=rmsnorm,pos=rope,head_norm=1", false, 1},
    {"gpt3", "norm=layernorm,pos=learned,bias=1,dropout=0", false, 1},
    {"deepseek", "norm=rmsnorm,pos=rope", false, 1},
    {"llama4", "norm=rmsnorm,pos=rope", false, 1},
    {"gpt_oss",
     "norm=rmsnorm,pos=rope,qkv_bias=1,proj_bias=1,sinks=1,expert_bias=1,router_bias=1,full_every="
     "2",
     true, 1},
    {"olmo3", "norm=rmsnorm,pos=rope,pre_norm=0,post_norm=1,qk_norm=1,full_every=4", true, 1},
};

static const struct dl_run_shape shape[] = {
    {"base_emb_dim", "hidden", 2048},
    {"base_num_query_heads", "heads", 16},
    {"base_num_kv_heads", "kv_heads", 16},
    {"base_mlp_dim", "ffn", 7168},
    {"vocab_size", "vocab", 32000},
    {"trainable_position_size", "positions", NAN},
    {NULL, NULL, 0},
};
static const struct dl_run_shape expert_shape[] = {
    {"num_experts", "experts", NAN},
    {"num_experts_per_tok", "topk", 1},
    {"base_moe_mlp_dim", "expert_ffn", NAN},
    {"shared_experts", "shared_experts", NAN},
    {"first_num_dense_layers", "dense_layers", NAN},
    {"interleave_moe_layer_step", "moe_every", NAN},
    {NULL, NULL, 0},
};
static const struct dl_run_shape latent_shape[] = {
    {"q_lora_rank", "q_rank", NAN},
    {"kv_lora_rank", "kv_rank", 512},
    {"qk_rope_head_dim", "rotary", 64},
    {"v_head_dim", "value_dim", 128},
    {NULL, NULL, 0},
};

/* Layers and parts of layers that no workload has, by the key that switches them on. */
static const struct dl_word_pair foreign[] = {
    {"use_indexer", "attention over keys that an index selects (sparse attention)"},
    {"gdn_num_key_heads", "gated linear attention layers"},
    {"attention_output_dim|moe_expert_input_dim", "experts of another width than the layers"},
    {"engram_layers", "lookup layers (engram)"},
    {NULL, NULL},
};

static enum dl_code read_experts(struct dl_run *run, struct dl_text *out) {
    struct dl_arguments *a = &run->arguments;
    double experts = 1;
    DL_TRY(dl_arguments_number(a, "num_experts", 1, 1e6, &experts, run->err));
    if (experts <= 1) {
        (void)dl_arguments_find(a, "num_experts_per_tok|base_moe_mlp_dim|shared_experts|"
                                   "first_num_dense_layers|interleave_moe_layer_step");
        return DL_OK;
    }
    if (dl_arguments_flag(a, "routed_bias") && strstr(dl_text_string(out), "router_bias") == NULL)
        dl_text_add(out, ",router_bias=1");
    return dl_run_shape_add(run, expert_shape, out);
}

static enum dl_code read_heads(struct dl_run *run, struct dl_text *out) {
    struct dl_arguments *a = &run->arguments;
    double head = 128, rope = 64;
    const bool latent = strcmp(dl_arguments_word(a, "attention_type", "global"), "mla") == 0;
    DL_TRY(
        dl_arguments_number(a, latent ? "qk_nope_head_dim" : "head_dim", 1, 1e6, &head, run->err));
    if (latent) DL_TRY(dl_arguments_number(a, "qk_rope_head_dim", 1, 1e6, &rope, run->err));
    dl_text_printf(out, ",head_dim=%.0f", latent ? head + rope : head);
    return latent ? dl_run_shape_add(run, latent_shape, out) : DL_OK;
}

/* ["silu", "linear"] is swiglu, ["gelu", "linear"] geglu, ["gelu"] gelu. */
static const char *mlp_of(struct dl_arguments *a) {
    const char *list = dl_arguments_word(a, "mlp_activations", "silu\nlinear");
    const bool gelu = strstr(list, "gelu") != NULL;
    return strstr(list, "linear") == NULL ? "gelu" : gelu ? "geglu" : "swiglu";
}

/* Products of attention as operations of XLA alone have no kernel that joins them. The choice among
 * kernels that do is not modelled. */
static bool flash_of(struct dl_arguments *a) {
    const char *kernel = dl_arguments_peek(a, "attention");
    const bool products = kernel != NULL && strcmp(kernel, "dot_product") == 0;
    if (products || (kernel != NULL && strcmp(kernel, "autoselected") == 0))
        (void)dl_arguments_find(a, "attention");
    return !products;
}

static enum dl_code find_decoder(struct dl_run *run, const struct decoder **out) {
    struct dl_arguments *a = &run->arguments;
    const char *block = dl_arguments_word(a, "decoder_block", "llama2");
    for (const struct dl_word_pair *f = foreign; f->theirs != NULL; f++)
        if (dl_arguments_flag(a, f->theirs))
            return dl_arguments_fail(a, f->theirs, run->err,
                                     "the model has %s, for which no workload has a layer",
                                     f->ours);
    for (size_t i = 0; i < sizeof decoders / sizeof decoders[0]; i++) {
        *out = &decoders[i];
        if (strcmp(decoders[i].name, block) == 0) return DL_OK;
    }
    return dl_arguments_fail(a, "decoder_block", run->err,
                             "no workload has the layers of a decoder of \"%.40s\": give a "
                             "workload by --workload",
                             block);
}

/* Parts of a layer that the decoder's kind has, or that the file switches off; what it switches on
 * and the kind lacks is left to the list of what is not modelled. */
static void take_parts(struct dl_arguments *a, const char *workload) {
    static const struct dl_word_pair parts[] = {
        {"use_qk_norm", "head_norm=1"},        {"use_qk_norm", "qk_norm=1"},
        {"use_post_attn_norm", "post_norm=1"}, {"use_post_ffw_norm", "post_norm=1"},
        {"attention_bias", "qkv_bias=1"},      {"attention_sink", "sinks=1"},
        {"mlp_bias", "expert_bias=1"},         {NULL, NULL}};
    for (const struct dl_word_pair *p = parts; p->theirs != NULL; p++) {
        const char *value = dl_arguments_peek(a, p->theirs);
        if (value != NULL && (dl_is_off(value) || strstr(workload, p->ours) != NULL))
            (void)dl_arguments_flag(a, p->theirs);
    }
    (void)dl_arguments_flag(a, "inhomogeneous_layer_cycle_interval");
}

/* *out stays NULL where the file describes no model. */
static enum dl_code read_model(struct dl_run *run, double seq, const char **out) {
    struct dl_arguments *a = &run->arguments;
    const struct decoder *decoder;
    double layers = NAN, window = 0, further = 0;
    DL_TRY(dl_arguments_number(a, "base_num_decoder_layers", 1, 1e6, &layers, run->err));
    DL_TRY(dl_arguments_number(a, "sliding_window_size", 0, 1e9, &window, run->err));
    DL_TRY(dl_arguments_number(a, "mtp_num_layers", 0, 16, &further, run->err));
    if (further > 0) dl_plan_words_add(run->out, "mtp-layers", "%.0f", further);
    if (!dl_known(layers) || run->workload != NULL) return DL_OK;
    if (dl_arguments_find(a, "base_emb_dim") == NULL &&
        dl_arguments_find(a, "model_name") != NULL) {
        dl_plan_words_add(run->out, "set", "layers=%.0f", layers); /* of the model that is named */
        return DL_OK;
    }
    DL_TRY(find_decoder(run, &decoder));
    struct dl_text text = {.arena = a->arena};
    dl_text_printf(&text, "gpt:layers=%.0f,seq=%.0f,%s,mlp=%s,tied=%d,flash=%d",
                   layers * decoder->layers, seq, decoder->parameters, mlp_of(a),
                   dl_arguments_flag(a, "logits_via_embedding"), flash_of(a));
    DL_TRY(dl_run_shape_add(run, shape, &text));
    DL_TRY(read_heads(run, &text));
    DL_TRY(read_experts(run, &text));
    if (decoder->windows && window > 0) dl_text_printf(&text, ",window=%.0f", window);
    take_parts(a, dl_text_string(&text));
    if (dl_arguments_find(a, "vision_encoder_block|use_multimodal|use_audio") != NULL)
        dl_arguments_note(a, "left out: the encoders of images and sound; the decoder is read");
    *out = dl_text_string(&text);
    return DL_OK;
}

/* ---- the plan ---- */

/* Axes of the mesh within a slice and across slices. */
struct axes {
    double devices; /* of the sizes that are given */
    bool rest;      /* one takes the devices that the other axes leave: -1 */
};

/* ici, dcn: sizes where the file does not say them. */
static enum dl_code add_axis(struct dl_run *run, const char *name, double ici, double dcn,
                             struct axes *out) {
    struct dl_arguments *a = &run->arguments;
    DL_TRY(dl_arguments_number(a, dl_arena_printf(a->arena, "ici_%s_parallelism", name), -1, 1e7,
                               &ici, run->err));
    DL_TRY(dl_arguments_number(a, dl_arena_printf(a->arena, "dcn_%s_parallelism", name), -1, 1e7,
                               &dcn, run->err));
    out->devices *= fmax(ici, 1) * fmax(dcn, 1);
    if (ici < 0 || dcn < 0) out->rest = true;
    return DL_OK;
}

/* The devices that share states are those of the fsdp axes; the data axes replicate them. */
static void share_states(struct dl_run *run, struct dl_run_slots *s, double ranks, double replicas,
                         bool given) {
    double *n = s->numbers;
    const double group = ranks / replicas / (n[DL_SLOT_TP] * n[DL_SLOT_CP] * n[DL_SLOT_PP]);
    if (given && group <= 1)
        s->words[DL_SLOT_SHARDING] = "0";
    else if (given && replicas > 1)
        n[DL_SLOT_GROUP] = group;
    else if (!given && ranks > (dl_known(run->per_node) ? run->per_node : 8))
        dl_arguments_note(&run->arguments,
                          "dcn_data_parallelism, ici_fsdp_parallelism: not given; all devices "
                          "share the states, as in one slice");
}

static enum dl_code read_degrees(struct dl_run *run, struct dl_run_slots *s, double *devices) {
    static const struct {
        const char *name;
        enum dl_run_slot slot;
    } split[] = {{"tensor", DL_SLOT_TP},  {"tensor_sequence", DL_SLOT_TP},
                 {"context", DL_SLOT_CP}, {"sequence", DL_SLOT_CP},
                 {"expert", DL_SLOT_EP},  {"pipeline", DL_SLOT_PP}};
    double *n = s->numbers;
    n[DL_SLOT_TP] = n[DL_SLOT_CP] = n[DL_SLOT_EP] = n[DL_SLOT_PP] = 1;
    for (size_t i = 0; i < sizeof split / sizeof split[0]; i++) {
        struct axes one = {1, false};
        DL_TRY(add_axis(run, split[i].name, 1, 1, &one));
        n[split[i].slot] *= one.devices;
        *devices *= one.devices;
    }
    return DL_OK;
}

static enum dl_code read_mesh(struct dl_run *run, struct dl_run_slots *s) {
    double mesh = 1;
    struct axes data = {1, false}, fsdp = {1, false};
    DL_TRY(read_degrees(run, s, &mesh));
    DL_TRY(add_axis(run, "data", 1, -1, &data));
    DL_TRY(add_axis(run, "fsdp", -1, 1, &fsdp));
    DL_TRY(add_axis(run, "fsdp_transpose", 1, 1, &fsdp));
    mesh *= data.devices * fsdp.devices;
    const bool open = data.rest || fsdp.rest; /* an axis takes the devices that are left */
    const double ranks = dl_known(run->ranks) || open ? run->ranks : mesh;
    if (!dl_known(ranks) && (data.devices > 1 || !fsdp.rest))
        return dl_fail_at(run->err, run->arguments.path, 1, 1, NULL,
                          "its mesh is of a multiple of %.0f devices: give them by --ranks N",
                          mesh);
    if (!dl_known(ranks)) return DL_OK;
    if (fmod(ranks, mesh) != 0 || (!open && ranks != mesh))
        return dl_fail_at(run->err, run->arguments.path, 1, 1, NULL,
                          "its mesh is of %.0f devices%s, not of %.0f", mesh,
                          open ? " or a multiple" : "", ranks);
    s->numbers[DL_SLOT_RANKS] = ranks;
    share_states(run, s, ranks, fsdp.rest ? data.devices : data.devices * ranks / mesh,
                 !data.rest || !fsdp.rest);
    return DL_OK;
}

/* Says where selective recomputation keeps other results than the policy. */
static void note_policy(struct dl_run *run) {
    static const struct dl_word_pair kept[] = {
        {"minimal|minimal_with_quantization", "every linear layer's results, not attention's"},
        {"minimal_with_context|minimal_flash|minimal_with_context_and_quantization",
         "every linear layer's results and attention's"},
        {"save_dot_with_context_except_mlp", "attention's results and those of its linear layers"},
        {"save_dot_except_mlp", "those of attention's linear layers alone"},
        {"save_dot_except_mlpwi", "those of the linear layers but the first of the MLP"},
        {"save_qkv_proj", "those of the query, key and value layers alone"},
        {"save_out_proj", "those of attention's output layer alone"},
        {"qkv_proj_offloaded", "those of the query, key and value layers, on the host"},
        {"minimal_offloaded", "every linear layer's results, on the host"},
        {"custom", "those that the file lists"},
        {NULL, NULL}};
    const char *policy = dl_arguments_word(&run->arguments, "remat_policy", "full");
    const char *words = dl_paired(kept, policy);
    if (words != NULL)
        dl_arguments_note(&run->arguments,
                          "remat_policy %s keeps %s; predicted as selective, which keeps "
                          "attention's results and half of the linear layers'",
                          policy, words);
}

/* The batch of all devices, those of a tensor-parallel group too; a fraction of a sample where such
 * a group shares it. */
static enum dl_code read_batch(struct dl_run *run, struct dl_run_slots *s) {
    double *n = s->numbers, each = 12;
    DL_TRY(
        dl_arguments_number(&run->arguments, "per_device_batch_size", 1e-6, 1e6, &each, run->err));
    n[DL_SLOT_EACH] = each * n[DL_SLOT_TP] * n[DL_SLOT_CP] * n[DL_SLOT_PP];
    return DL_OK;
}

enum dl_code dl_maxtext_plan(struct dl_run *run) {
    struct dl_run_slots s;
    const char *text = NULL;
    DL_TRY(dl_run_slots_read(run, maxtext_keys, &s));
    DL_TRY(read_mesh(run, &s));
    DL_TRY(read_batch(run, &s));
    if (!dl_known(s.numbers[DL_SLOT_SEQ])) s.numbers[DL_SLOT_SEQ] = 2048;
    if (s.words[DL_SLOT_PRECISION] == NULL) s.words[DL_SLOT_PRECISION] = "bf16";
    if (s.words[DL_SLOT_RECOMPUTE] == NULL) s.words[DL_SLOT_RECOMPUTE] = "full";
    note_policy(run);
    DL_TRY(read_model(run, s.numbers[DL_SLOT_SEQ], &text));
    return dl_run_slots_plan(run, &s, text);
}
