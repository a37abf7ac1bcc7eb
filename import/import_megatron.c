/* import_megatron.c - arguments of Megatron-LM (megatron/training/arguments.py) and keys of NeMo's
 * configurations as a GPT and a plan. What is not given has Megatron's default. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "model/core/text.h"
#include "import/import_plan.h"

struct reader {
    struct dl_arguments *a;
    struct dl_plan_words *out;
    struct dl_err *err;
    double layers, hidden, heads, seq, tp, pp, cp, ep, micro, batch, nodes, each, ranks;
    bool plain_norm; /* layer norm, with which gpt: has biases, dropout and a tied head */
};

/* Largest numbers that are believed. */
static const double MOST = 1e9;

static enum dl_code number(struct reader *r, const char *names, double *inout) {
    return dl_arguments_number(r->a, names, 0, MOST, inout, r->err);
}

static enum dl_code needed(struct reader *r, const char *names, double *out) {
    *out = NAN;
    DL_TRY(dl_arguments_number(r->a, names, 1, MOST, out, r->err));
    if (dl_known(*out)) return DL_OK;
    return dl_fail_at(r->err, r->a->path, 1, 1, NULL, "no %.*s: it is needed",
                      (int)strcspn(names, "|"), names);
}

static void key(struct reader *r, const char *name, double value) {
    dl_text_printf(r->out->workload, ",%s=%.15g", name, value);
}

static void key_word(struct reader *r, const char *name, const char *value) {
    dl_text_printf(r->out->workload, ",%s=%s", name, value);
}

static enum dl_code unknown_word(struct reader *r, const char *names, const char *expected) {
    const struct dl_argument *found = dl_arguments_find(r->a, names);
    return dl_fail_at(r->err, r->a->path, found != NULL ? found->line : 1, 1,
                      found != NULL ? found->name : NULL, "expected %s, found \"%.60s\"", expected,
                      found != NULL && found->value != NULL ? found->value : "");
}

struct word_pair {
    const char *theirs, *ours;
};

/* Our word for theirs; NULL: none. Case does not count. */
static const char *paired(const struct word_pair *pairs, const char *word) {
    for (; pairs->theirs != NULL; pairs++) {
        if (strcasecmp(pairs->theirs, word) == 0) return pairs->ours;
    }
    return NULL;
}

static enum dl_code read_sizes(struct reader *r) {
    DL_TRY(needed(r, "num_layers|encoder_num_layers", &r->layers));
    DL_TRY(needed(r, "hidden_size", &r->hidden));
    DL_TRY(needed(r, "num_attention_heads", &r->heads));
    DL_TRY(needed(r, "seq_length|encoder_seq_length", &r->seq));
    dl_text_printf(r->out->workload, "gpt:layers=%.15g,hidden=%.15g,heads=%.15g,seq=%.15g",
                   r->layers, r->hidden, r->heads, r->seq);
    return DL_OK;
}

/* Padded as Megatron does, unless it is told to divide by 1. */
static enum dl_code read_vocabulary(struct reader *r) {
    double padded = NAN, vocab = NAN, divisor = 128;
    DL_TRY(number(r, "padded_vocab_size", &padded));
    DL_TRY(number(r, "vocab_size", &vocab));
    DL_TRY(dl_arguments_number(r->a, "make_vocab_size_divisible_by", 1, MOST, &divisor, r->err));
    if (!dl_known(padded) && !dl_known(vocab))
        return dl_fail_at(r->err, r->a->path, 1, 1, NULL,
                          "no vocab_size: it is needed; the tokenizer's file is not read");
    if (divisor > 1) divisor *= r->tp;
    key(r, "vocab", dl_known(padded) ? padded : ceil(vocab / divisor) * divisor);
    return DL_OK;
}

static enum dl_code read_mlp(struct reader *r) {
    static const struct word_pair activations[] = {
        {"gelu", "gelu"},          {"fast-gelu", "gelu"}, {"swiglu", "swiglu"},
        {"fast-swiglu", "swiglu"}, {"geglu", "geglu"},    {"fast-geglu", "geglu"},
        {"squared-relu", "relu2"}, {NULL, NULL}};
    const char *mlp = paired(activations, dl_arguments_word(r->a, "activation", "gelu"));
    if (mlp == NULL) return unknown_word(r, "activation", "gelu, swiglu, geglu or squared-relu");
    if (dl_arguments_flag(r->a, "swiglu")) mlp = "swiglu";
    if (dl_arguments_flag(r->a, "squared_relu")) mlp = "relu2";
    const bool gated = strcmp(mlp, "swiglu") == 0 || strcmp(mlp, "geglu") == 0;
    double ffn = gated ? floor(4 * r->hidden * 2 / 3 / 64) * 64 : 4 * r->hidden;
    DL_TRY(number(r, "ffn_hidden_size", &ffn));
    if (strcmp(mlp, "gelu") != 0) key_word(r, "mlp", mlp);
    key(r, "ffn", ffn);
    return DL_OK;
}

static enum dl_code read_norm(struct reader *r) {
    static const struct word_pair norms[] = {{"layernorm", "layernorm"},
                                             {"layernorm1p", "layernorm"},
                                             {"low_precision_layernorm", "layernorm"},
                                             {"rmsnorm", "rmsnorm"},
                                             {NULL, NULL}},
                                  positions[] = {{"learned_absolute", "learned"},
                                                 {"rope", "rope"},
                                                 {"alibi", "alibi"},
                                                 {"none", "none"},
                                                 {NULL, NULL}};
    const char *norm = paired(norms, dl_arguments_word(r->a, "normalization", "layernorm")),
               *pos = paired(positions, dl_arguments_word(r->a, "position_embedding_type",
                                                          "learned_absolute"));
    if (norm == NULL) return unknown_word(r, "normalization", "LayerNorm or RMSNorm");
    if (pos == NULL)
        return unknown_word(r, "position_embedding_type", "learned_absolute, rope, alibi or none");
    if (dl_arguments_flag(r->a, "use_rotary_position_embeddings")) pos = "rope";
    r->plain_norm = strcmp(norm, "layernorm") == 0;
    if (!r->plain_norm) key_word(r, "norm", norm);
    if (strcmp(pos, "learned") != 0) key_word(r, "pos", pos);
    double positions_count = r->seq;
    DL_TRY(number(r, "max_position_embeddings", &positions_count));
    if (strcmp(pos, "learned") == 0 && positions_count != r->seq)
        key(r, "positions", positions_count);
    return DL_OK;
}

/* What gpt: takes from the norm unless it is said. */
static enum dl_code read_rest(struct reader *r) {
    const bool shares = dl_arguments_find(r->a, "share_embeddings_and_output_weights") == NULL ||
                        dl_arguments_flag(r->a, "share_embeddings_and_output_weights"),
               tied = shares && !dl_arguments_flag(r->a, "untie_embeddings_and_output_weights"),
               has_bias =
                   dl_arguments_find(r->a, "bias") == NULL || dl_arguments_flag(r->a, "bias"),
               bias = has_bias && !dl_arguments_flag(r->a, "disable_bias_linear"),
               qkv = dl_arguments_flag(r->a, "add_qkv_bias");
    double attention = 0.1, hidden = 0.1;
    DL_TRY(number(r, "attention_dropout", &attention));
    DL_TRY(number(r, "hidden_dropout", &hidden));
    if (tied != r->plain_norm) key(r, "tied", tied);
    if (bias != r->plain_norm) key(r, "bias", bias);
    if (r->plain_norm && !bias) key(r, "norm_bias", 1); /* of linear layers alone */
    if (qkv && !bias) key(r, "qkv_bias", 1);
    if (fmax(attention, hidden) != (r->plain_norm ? 0.1 : 0))
        key(r, "dropout", fmax(attention, hidden));
    return DL_OK;
}

static enum dl_code read_latent(struct reader *r) {
    double kv = 512, q = 0, head = 128, rotary = 64, value = 128;
    if (!dl_arguments_flag(r->a, "multi_latent_attention")) return DL_OK;
    DL_TRY(number(r, "kv_lora_rank", &kv));
    DL_TRY(number(r, "q_lora_rank", &q));
    DL_TRY(number(r, "qk_head_dim", &head));
    DL_TRY(number(r, "qk_pos_emb_head_dim", &rotary));
    DL_TRY(number(r, "v_head_dim", &value));
    key(r, "kv_rank", kv);
    if (q > 0) key(r, "q_rank", q);
    key(r, "head_dim", head + rotary);
    key(r, "rotary", rotary);
    key(r, "value_dim", value);
    return DL_OK;
}

static enum dl_code read_attention(struct reader *r) {
    double groups = r->heads, channels = NAN, turning = 1;
    const char *backend = dl_arguments_word(r->a, "attention_backend", "auto");
    const struct dl_argument *window = dl_arguments_find(r->a, "window_size");
    DL_TRY(number(r, "num_query_groups", &groups));
    DL_TRY(number(r, "kv_channels", &channels));
    (void)dl_arguments_flag(r->a, "group_query_attention");
    if (groups != r->heads && groups > 0) key(r, "kv_heads", groups);
    if (dl_known(channels) && channels * r->heads != r->hidden) key(r, "head_dim", channels);
    DL_TRY(number(r, "rotary_percent|rotary_percentage", &turning));
    if (turning > 0 && turning < 1)
        key(r, "rotary",
            floor(turning * (dl_known(channels) ? channels : r->hidden / r->heads) + 1e-9));
    if (dl_arguments_flag(r->a, "qk_layernorm")) key(r, "head_norm", 1);
    if (window != NULL && window->value != NULL) {
        const char *digits = window->value + strspn(window->value, "([ ");
        const double keys = strtod(digits, NULL);
        if (!(keys >= 1 && keys <= MOST)) return unknown_word(r, "window_size", "(LEFT,RIGHT)");
        key(r, "window", keys + 1);
    }
    if (dl_arguments_flag(r->a, "use_flash_attn|use_flash_attention") ||
        strcmp(backend, "flash") == 0 || strcmp(backend, "fused") == 0)
        key(r, "flash", 1);
    else if (strcmp(backend, "unfused") == 0)
        dl_plan_words_add(r->out, "attention", "%s",
                          dl_arguments_flag(r->a, "no_masked_softmax_fusion") ? "composed"
                                                                              : "fused-softmax");
    return read_latent(r);
}

/* "([0]*3+[1]*58)" or a number: dense layers that come first, or every how many layers one has
 * experts. */
static enum dl_code read_pattern(struct reader *r) {
    const char *pattern = dl_arguments_word(r->a, "moe_layer_freq", "1");
    long long dense, moe, every;
    char rest;
    if (sscanf(pattern, "([0]*%lld+[1]*%lld)%c", &dense, &moe, &rest) == 2 && dense >= 0 &&
        (double)(dense + moe) == r->layers) {
        key(r, "dense_layers", (double)dense);
        return DL_OK;
    }
    if (sscanf(pattern, "%lld%c", &every, &rest) != 1 || every < 1 || every > 1000)
        return unknown_word(r, "moe_layer_freq", "a number or ([0]*DENSE+[1]*MOE)");
    if (every > 1) key(r, "moe_every", (double)every);
    return DL_OK;
}

static enum dl_code read_experts(struct reader *r) {
    double experts = 0, topk = 2, ffn = NAN, shared = 0, capacity = 0;
    DL_TRY(number(r, "num_experts|num_moe_experts", &experts));
    DL_TRY(number(r, "moe_router_topk", &topk));
    DL_TRY(number(r, "moe_ffn_hidden_size", &ffn));
    DL_TRY(number(r, "moe_shared_expert_intermediate_size", &shared));
    DL_TRY(number(r, "moe_expert_capacity_factor", &capacity));
    (void)dl_arguments_flag(r->a, "moe_grouped_gemm|moe_token_dispatcher_type");
    if (!(experts > 0)) return DL_OK;
    key(r, "experts", experts);
    key(r, "topk", topk);
    double dense = NAN;
    DL_TRY(number(r, "ffn_hidden_size", &dense));
    if (dl_known(ffn) && ffn != dense) key(r, "expert_ffn", ffn);
    if (shared > 0) {
        key(r, "shared_experts", 1);
        key(r, "shared_ffn", shared);
        if (dl_arguments_flag(r->a, "moe_shared_expert_gate")) key(r, "shared_gate", 1);
    }
    if (capacity > 0) key(r, "capacity", capacity);
    return read_pattern(r);
}

static enum dl_code read_ranks(struct reader *r) {
    r->tp = r->pp = r->cp = r->ep = 1;
    DL_TRY(dl_arguments_number(r->a, "tensor_model_parallel_size", 1, 1e6, &r->tp, r->err));
    DL_TRY(dl_arguments_number(r->a, "pipeline_model_parallel_size", 1, 1e6, &r->pp, r->err));
    DL_TRY(dl_arguments_number(r->a, "context_parallel_size", 1, 1e6, &r->cp, r->err));
    DL_TRY(dl_arguments_number(r->a, "expert_model_parallel_size", 1, 1e6, &r->ep, r->err));
    r->nodes = r->each = NAN;
    DL_TRY(dl_arguments_number(r->a, "nnodes|num_nodes", 1, 1e7, &r->nodes, r->err));
    DL_TRY(dl_arguments_number(r->a, "nproc_per_node|devices|gpus_per_node", 1, 1e5, &r->each,
                               r->err));
    if (r->ranks <= 0 && !(dl_known(r->nodes) && dl_known(r->each)))
        return dl_fail_at(r->err, r->a->path, 1, 1, NULL,
                          "no nnodes and nproc_per_node (num_nodes and devices): how many devices? "
                          "Give --ranks N");
    if (r->ranks <= 0) {
        r->ranks = r->nodes * r->each;
        dl_plan_words_add(r->out, "nodes", "%.0f", r->nodes);
        dl_plan_words_add(r->out, "devices-per-node", "%.0f", r->each);
    } else {
        dl_plan_words_add(r->out, "gpus", "%.0f", r->ranks);
    }
    dl_plan_words_add(r->out, "strategy", "%s", r->ep > 1 ? "expert" : "3d");
    dl_plan_words_add(r->out, "tp", "%.0f", r->tp);
    dl_plan_words_add(r->out, "pp", "%.0f", r->pp);
    dl_plan_words_add(r->out, "cp", "%.0f", r->cp);
    if (r->ep > 1) dl_plan_words_add(r->out, "ep", "%.0f", r->ep);
    double each = NAN; /* tensor ranks of an expert; not given: those of other layers */
    DL_TRY(dl_arguments_number(r->a, "expert_tensor_parallel_size", 1, 1e6, &each, r->err));
    if (r->ep > 1 && r->tp > 1 && dl_known(each)) dl_plan_words_add(r->out, "etp", "%.0f", each);
    return DL_OK;
}

static enum dl_code read_stages(struct reader *r) {
    double v = 0, each = 0, first = NAN, last = NAN;
    const double most = ceil(r->layers / r->pp), missing = most * r->pp - r->layers;
    DL_TRY(
        number(r, "num_virtual_stages_per_pipeline_rank|virtual_pipeline_model_parallel_size", &v));
    DL_TRY(number(r, "num_layers_per_virtual_pipeline_stage", &each));
    if (each > 0) v = r->layers / r->pp / each;
    if (v > 1 && r->pp > 1) {
        dl_plan_words_add(r->out, "schedule", "interleaved");
        dl_plan_words_add(r->out, "virtual-stages", "%.0f", v);
    } else {
        dl_plan_words_add(r->out, "schedule", "1f1b");
    }
    DL_TRY(number(r, "decoder_first_pipeline_num_layers", &first));
    DL_TRY(number(r, "decoder_last_pipeline_num_layers", &last));
    /* F-TRANSFORMER-STAGES gives the ends one layer less */
    const bool first_fits = !dl_known(first) || first == most - (missing >= 2 ? 1 : 0),
               last_fits = !dl_known(last) || last == most - (missing >= 1 ? 1 : 0);
    if (first_fits && last_fits) return DL_OK;
    return dl_fail_at(
        r->err, r->a->path, 1, 1,
        first_fits ? "decoder_last_pipeline_num_layers" : "decoder_first_pipeline_num_layers",
        "%.0f layers on %.0f stages: predictions give the ends at most one layer less "
        "than the others",
        r->layers, r->pp);
}

/* ZeRO: the distributed optimizer is stage 1, FSDP as it says. */
static enum dl_code read_sharding(struct reader *r) {
    static const struct word_pair stages[] = {{"no_shard", "0"},
                                              {"optim", "1"},
                                              {"optim_grads", "2"},
                                              {"optim_grads_params", "3"},
                                              {NULL, NULL}};
    const char *word = dl_arguments_word(r->a, "data_parallel_sharding_strategy", "no_shard"),
               *name = dl_arguments_word(r->a, "name", "");
    const char *stage = paired(stages, word);
    double copies = 1;
    if (stage == NULL)
        return unknown_word(r, "data_parallel_sharding_strategy",
                            "no_shard, optim, optim_grads or optim_grads_params");
    const bool fsdp = dl_arguments_flag(r->a, "use_megatron_fsdp|use_custom_fsdp"),
               torch = dl_arguments_flag(r->a, "use_torch_fsdp2"),
               shares = dl_arguments_flag(r->a, "use_distributed_optimizer") ||
                        strcmp(name, "distributed_fused_adam") == 0 ||
                        strcmp(name, "mcore_distributed_optim") == 0;
    if (torch) stage = "3";
    if (!fsdp && !torch) stage = shares ? "1" : "0";
    if (stage[0] != '0') dl_plan_words_add(r->out, "zero", "%s", stage);
    DL_TRY(number(r, "num_distributed_optimizer_instances", &copies));
    const double data = r->ranks / (r->tp * r->pp);
    if (copies > 1 && stage[0] != '0')
        dl_plan_words_add(r->out, "zero-group", "%.0f", floor(data / copies));
    return DL_OK;
}

static enum dl_code read_batch(struct reader *r) {
    const double data = r->ranks / (r->tp * r->pp * r->cp);
    r->micro = 1;
    DL_TRY(dl_arguments_number(r->a, "micro_batch_size", 1, 1e7, &r->micro, r->err));
    r->batch = r->micro * data;
    DL_TRY(dl_arguments_number(r->a, "global_batch_size", 1, 1e9, &r->batch, r->err));
    dl_plan_words_add(r->out, "global-batch", "%.15g", r->batch);
    dl_plan_words_add(r->out, "micro-batch", "%.15g", r->micro);
    double steps = 0, samples = 0;
    DL_TRY(dl_arguments_number(r->a, "train_iters|max_steps", 0, 1e9, &steps, r->err));
    DL_TRY(dl_arguments_number(r->a, "train_samples", 0, 1e15, &samples, r->err));
    if (samples <= 0) samples = steps * r->batch;
    if (samples > 0) dl_plan_words_add(r->out, "tokens", "%.17g", samples * r->seq);
    return DL_OK;
}

static enum dl_code read_recompute(struct reader *r) {
    static const struct word_pair modes[] = {
        {"full", "full"}, {"selective", "selective"}, {"none", "none"}, {NULL, NULL}};
    const char *names = "recompute_granularity|activations_checkpoint_granularity",
               *mode = paired(modes, dl_arguments_word(r->a, names, "none"));
    if (mode == NULL) return unknown_word(r, names, "full or selective");
    if (dl_arguments_flag(r->a, "recompute_activations")) mode = "selective";
    (void)dl_arguments_find(r->a, "recompute_method|activations_checkpoint_method");
    double layers = 1;
    DL_TRY(number(r, "recompute_num_layers|activations_checkpoint_num_layers", &layers));
    dl_plan_words_add(r->out, "recompute", "%s", mode);
    if (dl_arguments_flag(r->a, "sequence_parallel") && r->tp > 1)
        dl_plan_words_flag(r->out, "sequence-parallel");
    if (dl_arguments_flag(r->a, "use_tp_pp_dp_mapping"))
        dl_plan_words_add(r->out, "mapping", "pipeline-inside");
    return DL_OK;
}

static enum dl_code read_arithmetic(struct reader *r) {
    static const struct word_pair precisions[] = {
        {"bf16", "bf16"},     {"bf16-mixed", "bf16"}, {"16", "fp16"},   {"fp16", "fp16"},
        {"16-mixed", "fp16"}, {"32", "fp32"},         {"fp32", "fp32"}, {NULL, NULL}};
    const char *precision = paired(precisions, dl_arguments_word(r->a, "precision", "32"));
    if (precision == NULL) return unknown_word(r, "precision", "bf16, 16 or 32");
    if (dl_arguments_flag(r->a, "bf16")) precision = "bf16";
    if (dl_arguments_flag(r->a, "fp16")) precision = "fp16";
    const char *recipe = dl_arguments_word(r->a, "fp8_recipe", "delayed");
    if (dl_arguments_flag(r->a, "fp8|fp8_format"))
        precision = strcmp(recipe, "mxfp8") == 0 ? "mxfp8" : "fp8";
    if (dl_arguments_flag(r->a, "fp4|fp4_format")) precision = "nvfp4";
    (void)dl_arguments_find(r->a, "fp4_recipe");
    dl_plan_words_add(r->out, "precision", "%s", precision);
    double momentum = 0.9;
    const bool sgd = strcmp(dl_arguments_word(r->a, "optimizer", "adam"), "sgd") == 0;
    DL_TRY(number(r, "sgd_momentum", &momentum));
    dl_plan_words_add(r->out, "optimizer", "%s", !sgd ? "adam" : momentum > 0 ? "momentum" : "sgd");
    return DL_OK;
}

enum dl_code dl_megatron_plan(struct dl_arguments *arguments, int64_t ranks,
                              struct dl_plan_words *out, struct dl_err *err) {
    static enum dl_code (*const steps[])(struct reader *) = {
        read_ranks, read_sizes,     read_vocabulary, read_mlp,    read_norm,
        read_rest,  read_attention, read_experts,    read_stages, read_sharding,
        read_batch, read_recompute, read_arithmetic};
    struct reader r = {.a = arguments, .out = out, .err = err, .ranks = (double)ranks};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) DL_TRY(steps[i](&r));
    return DL_OK;
}
