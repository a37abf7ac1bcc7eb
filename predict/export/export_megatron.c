/* export_megatron.c - a plan as the command line of Megatron-LM's pretrain_gpt.py or
 * pretrain_mamba.py: names of
 * megatron/training/arguments.py. Data, tokenizer, checkpoints and learning rate are the user's. */
#include <math.h>
#include <string.h>

#include "model/framework/facts.h"
#include "model/engine/strategies/strategy.h"
#include "predict/export/export.h"

static void flag(struct dl_text *out, bool on, const char *name) {
    if (on) dl_text_printf(out, " \\\n    --%s", name);
}

static void number(struct dl_text *out, const char *name, double value) {
    dl_text_printf(out, " \\\n    --%s %.15g", name, value);
}

static void word(struct dl_text *out, const char *name, const char *value) {
    dl_text_printf(out, " \\\n    --%s %s", name, value);
}

/* Its word for the workload's positions; NULL: none. */
static const char *positions_of(const struct dl_workload *w) {
    const char *pos = dl_export_word(w, "pos", "learned");
    if (strcmp(pos, "learned") == 0) return "learned_absolute";
    if (strcmp(pos, "rope") == 0) return "rope";
    return strcmp(pos, "none") == 0 ? "none" : NULL;
}

/* Parameters without which there is no command line. */
static enum dl_code check_model(const struct dl_workload *w, struct dl_err *err) {
    static const char *const needed[] = {"layers", "hidden", "heads", "seq", "vocab", NULL};
    static const char *const lacking[] = {"post_norm", "parallel", "sinks", "full_every", NULL};
    for (int i = 0; needed[i] != NULL; i++) {
        if (!dl_known(dl_export_number(w, needed[i], NAN)) || !dl_known(w->transformer_layers))
            return dl_fail(err, DL_ERR_USAGE,
                           "--export megatron: %s is no GPT: it has no parameter \"%s\"", w->name,
                           needed[i]);
    }
    if (strcmp(dl_export_word(w, "mlp", "gelu"), "geglu") == 0)
        return dl_fail(err, DL_ERR_USAGE, "--export megatron: it has no geglu");
    for (int i = 0; lacking[i] != NULL; i++) {
        if (dl_export_number(w, lacking[i], 0) > 0)
            return dl_fail(err, DL_ERR_USAGE, "--export megatron: it has no %s of %s", lacking[i],
                           w->name);
    }
    const char *pattern = dl_export_word(w, "pattern", "0");
    const bool mixed = strcmp(pattern, "0") != 0;
    if (mixed &&
        (dl_export_number(w, "pattern_mlp", 0) > 0 || pattern[strspn(pattern, "M*-E")] != '\0' ||
         !(dl_export_number(w, "ssm_norm", 1) > 0)))
        return dl_fail(err, DL_ERR_USAGE,
                       "--export megatron: pretrain_mamba.py has layers of one kind each, of "
                       "Mamba-2 with a norm, attention, MLP or experts, not those of %s",
                       w->name);
    if (positions_of(w) == NULL)
        return dl_fail(err, DL_ERR_USAGE, "--export megatron: it has no positions \"%.60s\"",
                       dl_export_word(w, "pos", "learned"));
    return DL_OK;
}

/* Kernels of attention where something decides them; else Megatron chooses too. */
static void add_kernels(const struct dl_prediction_row *row, struct dl_text *out) {
    const struct dl_plan *plan = row->plan;
    const enum dl_attention_kernel kernel =
        dl_framework_facts(row->framework, row->system->device, plan->precision, plan->attention)
            .attention;
    const bool open = kernel == DL_ATTENTION_OPEN,
               flash = open ? dl_export_number(row->workload, "flash", 0) > 0
                            : kernel == DL_ATTENTION_FLASH;
    if (flash || !open) word(out, "attention-backend", flash ? "flash" : "unfused");
    flag(out, kernel == DL_ATTENTION_COMPOSED, "no-masked-softmax-fusion");
}

static void add_attention(const struct dl_prediction_row *row, struct dl_text *out) {
    const struct dl_workload *w = row->workload;
    const double heads = dl_export_number(w, "heads", NAN),
                 kv = dl_export_number(w, "kv_heads", heads),
                 head_dim = dl_export_number(w, "head_dim", NAN),
                 rotary = dl_export_number(w, "rotary", head_dim),
                 window = dl_export_number(w, "window", 0),
                 kv_rank = dl_export_number(w, "kv_rank", 0),
                 q_rank = dl_export_number(w, "q_rank", 0);
    number(out, "num-attention-heads", heads);
    if (kv < heads) {
        flag(out, true, "group-query-attention");
        number(out, "num-query-groups", kv);
    }
    if (kv_rank > 0) {
        flag(out, true, "multi-latent-attention");
        number(out, "kv-lora-rank", kv_rank);
        if (q_rank > 0) number(out, "q-lora-rank", q_rank);
        number(out, "qk-head-dim", head_dim - rotary);
        number(out, "qk-pos-emb-head-dim", rotary);
        number(out, "v-head-dim", dl_export_number(w, "value_dim", head_dim));
    } else if (dl_known(head_dim) && head_dim * heads != dl_export_number(w, "hidden", NAN)) {
        number(out, "kv-channels", head_dim);
    }
    if (kv_rank <= 0 && rotary < head_dim && strcmp(dl_export_word(w, "pos", ""), "rope") == 0)
        number(out, "rotary-percent", rotary / head_dim);
    flag(out, dl_export_number(w, "head_norm", 0) > 0, "qk-layernorm");
    if (window > 0) dl_text_printf(out, " \\\n    --window-size '(%.15g,0)'", window - 1);
    add_kernels(row, out);
}

static void add_dispatcher(const struct dl_framework *framework, struct dl_text *out) {
    static const char *const types[] = {[DL_EXPERT_ALL_TO_ALL] = "alltoall",
                                        [DL_EXPERT_GATHER] = "allgather",
                                        [DL_EXPERT_ONCE] = "flex"};
    const struct dl_transformer_policy *policy = &framework->transformer;
    word(out, "moe-token-dispatcher-type", types[policy->experts.exchange]);
    if (policy->experts.exchange != DL_EXPERT_ONCE) return;
    if (policy->experts.rows == DL_ROWS_DIRECT)
        word(out, "moe-flex-dispatcher-backend", "hybridep");
    else
        flag(out, true, "moe-enable-deepep");
}

static void add_experts(const struct dl_framework *framework, const struct dl_workload *w,
                        struct dl_text *out) {
    const double experts = dl_export_number(w, "experts", 0),
                 dense = dl_export_number(w, "dense_layers", 0),
                 every = dl_export_number(w, "moe_every", 1),
                 shared = dl_export_number(w, "shared_ffn", 0),
                 capacity = dl_export_number(w, "capacity", 0),
                 layers = dl_export_number(w, "layers", NAN);
    if (!(experts > 0)) return;
    number(out, "num-experts", experts);
    number(out, "moe-router-topk", dl_export_number(w, "topk", 2));
    number(out, "moe-ffn-hidden-size",
           dl_export_number(w, "expert_ffn", dl_export_number(w, "ffn", NAN)));
    if (shared > 0) number(out, "moe-shared-expert-intermediate-size", shared);
    if (dense > 0)
        dl_text_printf(out, " \\\n    --moe-layer-freq '([0]*%.15g+[1]*%.15g)'", dense,
                       layers - dense);
    else if (every > 1)
        number(out, "moe-layer-freq", every);
    if (capacity > 0) number(out, "moe-expert-capacity-factor", capacity);
    add_dispatcher(framework, out);
    flag(out, true, "moe-grouped-gemm");
    flag(out, dl_export_number(w, "shared_gate", 0) > 0, "moe-shared-expert-gate");
}

/* A letter for each layer. */
static void add_mixed(const struct dl_workload *w, struct dl_text *out) {
    const char *pattern = dl_export_word(w, "pattern", "0");
    const size_t length = strlen(pattern), layers = (size_t)w->transformer_layers;
    if (strcmp(pattern, "0") == 0) return;
    word(out, "spec", "megatron.core.models.mamba.mamba_layer_specs mamba_stack_spec");
    dl_text_add(out, " \\\n    --hybrid-override-pattern '");
    for (size_t i = 0; i < layers; i++) dl_text_printf(out, "%c", pattern[i % length]);
    dl_text_add(out, "'");
    number(out, "mamba-state-dim", dl_export_number(w, "ssm_state", NAN));
    number(out, "mamba-head-dim", dl_export_number(w, "ssm_head_dim", NAN));
    number(out, "mamba-num-groups", dl_export_number(w, "ssm_groups", NAN));
    number(out, "mamba-num-heads", dl_export_number(w, "ssm_heads", NAN));
}

static void add_model(const struct dl_prediction_row *row, struct dl_text *out) {
    const struct dl_workload *w = row->workload;
    const double seq = dl_export_number(w, "seq", NAN), hidden = dl_export_number(w, "hidden", NAN);
    const char *mlp = dl_export_word(w, "mlp", "gelu");
    const double bias = dl_export_number(w, "bias", 1), dropout = dl_export_number(w, "dropout", 0),
                 further = dl_export_number(w, "mtp_layers", 0);
    number(out, "num-layers", dl_export_number(w, "layers", NAN));
    number(out, "hidden-size", hidden);
    number(out, "ffn-hidden-size", dl_export_number(w, "ffn", 4 * hidden));
    number(out, "seq-length", seq);
    number(out, "max-position-embeddings", dl_export_number(w, "positions", seq));
    number(out, "vocab-size", dl_export_number(w, "vocab", NAN));
    number(out, "make-vocab-size-divisible-by", 1);
    flag(out, strcmp(mlp, "swiglu") == 0, "swiglu");
    flag(out, strcmp(mlp, "relu2") == 0, "squared-relu");
    word(out, "normalization",
         strcmp(dl_export_word(w, "norm", "layernorm"), "rmsnorm") == 0 ? "RMSNorm" : "LayerNorm");
    word(out, "position-embedding-type", positions_of(w));
    flag(out, !(dl_export_number(w, "tied", 1) > 0), "untie-embeddings-and-output-weights");
    flag(out, !(bias > 0), "disable-bias-linear");
    flag(out, !(bias > 0) && dl_export_number(w, "qkv_bias", 0) > 0, "add-qkv-bias");
    number(out, "attention-dropout", dropout);
    number(out, "hidden-dropout", dropout);
    add_attention(row, out);
    add_experts(row->framework, w, out);
    if (further > 0) number(out, "mtp-num-layers", further);
    add_mixed(w, out);
}

static enum dl_code add_listed(const struct dl_plan *plan, struct dl_text *out,
                               struct dl_err *err) {
    const int count = dl_plan_stage_layers(plan->stage_layers, NULL, 0);
    double *layers = dl_arena_alloc(out->arena, (size_t)count + 1, sizeof *layers);
    dl_plan_stage_layers(plan->stage_layers, layers, count);
    for (int i = 2; i < count - 1; i++)
        if (layers[i] < layers[1] || layers[i] > layers[1])
            return dl_fail(err, DL_ERR_USAGE,
                           "--export megatron: stages between the first and the last take equally "
                           "many layers, not %s",
                           plan->stage_layers);
    number(out, "decoder-first-pipeline-num-layers", layers[0]);
    number(out, "decoder-last-pipeline-num-layers", layers[count - 1]);
    return DL_OK;
}

/* Stages: Megatron takes separate sizes of the first and the last, and equal ones between. */
static enum dl_code add_stages(const struct dl_workload *w, const struct dl_plan *plan,
                               struct dl_text *out, struct dl_err *err) {
    const double layers = dl_export_number(w, "layers", NAN), pp = (double)plan->pp;
    number(out, "pipeline-model-parallel-size", pp);
    const double parts = dl_schedule_parts(plan->schedule, (double)plan->virtual_stages);
    if (parts > 1) number(out, "num-virtual-stages-per-pipeline-rank", parts);
    if (plan->stage_layers != NULL) return add_listed(plan, out, err);
    if (fmod(layers, pp) == 0) return DL_OK;
    /* F-TRANSFORMER-STAGES */
    const double most = ceil(layers / pp), missing = most * pp - layers;
    if (missing > 2 || (missing > 0 && plan->pp < 2))
        return dl_fail(err, DL_ERR_USAGE,
                       "--export megatron: %.0f layers on %.0f stages: only the first and the last "
                       "stage may have fewer than the others",
                       layers, pp);
    if (missing >= 2) number(out, "decoder-first-pipeline-num-layers", most - 1);
    number(out, "decoder-last-pipeline-num-layers", most - 1);
    return DL_OK;
}

/* Its block method counts the layers of a virtual stage. */
static enum dl_code add_recompute(const struct dl_plan *plan, struct dl_text *out,
                                  struct dl_err *err) {
    static const char *const modules[] = {"core_attn", "mlp", "layernorm", "moe", "mla_up_proj"};
    const struct dl_plan_recomputed *some = &plan->recomputed;
    const double layers =
        (double)some->layers / dl_schedule_parts(plan->schedule, (double)plan->virtual_stages);
    if (plan->recompute == DL_RECOMPUTE_NONE) return DL_OK;
    word(out, "recompute-granularity", plan->recompute == DL_RECOMPUTE_FULL ? "full" : "selective");
    if (plan->recompute == DL_RECOMPUTE_SELECTIVE) {
        if (some->modules != 0) dl_text_add(out, " \\\n    --recompute-modules");
        for (unsigned i = 0; i < sizeof modules / sizeof *modules; i++)
            if ((some->modules >> i & 1) != 0) dl_text_printf(out, " %s", modules[i]);
        return DL_OK;
    }
    if (some->every > 1 || layers != floor(layers))
        return dl_fail(err, DL_ERR_USAGE,
                       "--export megatron: it recomputes whole layers of each virtual stage, not "
                       "one of several: give --recompute-layers, a multiple of --virtual-stages");
    word(out, "recompute-method", layers > 0 ? "block" : "uniform");
    number(out, "recompute-num-layers", layers > 0 ? layers : 1);
    return DL_OK;
}

/* A share of the optimizer's states, or activations of the first layers: fewer than all, in one
 * stage, with nothing recomputed (its checks of cpu_offloading). */
static enum dl_code add_offload(const struct dl_workload *w, const struct dl_plan *plan,
                                struct dl_text *out, struct dl_err *err) {
    const double frac = plan->offload.frac > 0 ? plan->offload.frac : 1,
                 layers = w->transformer_layers * frac;
    if (plan->offload.what == 1u << DL_OFFLOAD_OPTIMIZER) {
        flag(out, true, "optimizer-cpu-offload");
        number(out, "optimizer-offload-fraction", frac);
    } else if (plan->offload.what == 1u << DL_OFFLOAD_ACTIVATIONS) {
        if (plan->pp > 1 || plan->recompute != DL_RECOMPUTE_NONE || frac >= 1 ||
            layers != floor(layers))
            return dl_fail(err, DL_ERR_USAGE,
                           "--export megatron: it offloads activations of whole layers, fewer than "
                           "the %.0f, with --pp 1 and --recompute none: give --offload-fraction",
                           w->transformer_layers);
        number(out, "cpu-offloading-num-layers", layers);
    } else if (plan->offload.what != 0)
        return dl_fail(err, DL_ERR_USAGE,
                       "--export megatron: of --offload it takes optimizer or activations, one of "
                       "them");
    return DL_OK;
}

/* Settings that it has an option for; others are refused. */
static enum dl_code add_settings(const struct dl_workload *w, const struct dl_plan *plan,
                                 struct dl_text *out, struct dl_err *err) {
    DL_TRY(add_offload(w, plan, out, err));
    if (plan->settings.fp8_store != 0)
        return dl_fail(err, DL_ERR_USAGE,
                       "--export megatron: pretrain_gpt.py has no option for --fp8-store; leave it "
                       "out");
    if (plan->tokens.packed_length_tokens > 0)
        return dl_fail(err, DL_ERR_USAGE,
                       "--export megatron: pretrain_gpt.py packs no sequences: leave out "
                       "--packed-length");
    return DL_OK;
}

static enum dl_code add_plan(const struct dl_prediction_row *row, struct dl_text *out,
                             struct dl_err *err) {
    const struct dl_plan *plan = row->plan;
    const int64_t zero = dl_rows_zero(plan);
    static const char *const shards[] = {"", "", "optim_grads", "optim_grads_params"};
    static const char *const exchanges[] = {[DL_CONTEXT_RING] = "p2p",
                                            [DL_CONTEXT_GATHER] = "all_gather",
                                            [DL_CONTEXT_ALL_TO_ALL] = "a2a"};
    number(out, "tensor-model-parallel-size", (double)plan->tp);
    DL_TRY(add_stages(row->workload, plan, out, err));
    number(out, "context-parallel-size", (double)plan->sp);
    if (plan->sp > 1 && plan->settings.cp_comm > 0)
        word(out, "cp-comm-type", exchanges[row->framework->transformer.context_exchange]);
    if (dl_plan_expert_ranks(plan) > 1)
        number(out, "expert-model-parallel-size", (double)dl_plan_expert_ranks(plan));
    if (plan->experts.ep_within_tp_cp > 0) number(out, "expert-tensor-parallel-size", 1);
    flag(out, plan->sequence_parallel && plan->tp > 1, "sequence-parallel");
    flag(out, plan->mapping == DL_MAP_PIPELINE_INSIDE && plan->pp > 1, "use-tp-pp-dp-mapping");
    flag(out, zero > 0, "use-distributed-optimizer");
    if (zero > 1) {
        flag(out, true, "use-megatron-fsdp");
        word(out, "data-parallel-sharding-strategy", shards[zero]);
        flag(out, true, "no-gradient-accumulation-fusion");
        word(out, "ckpt-format", "fsdp_dtensor");
    }
    if (plan->shard_group > 0)
        number(out, "num-distributed-optimizer-instances",
               (double)(plan->dp * plan->sp / plan->shard_group));
    flag(out, row->framework->sync.overlaps_backward, "overlap-grad-reduce");
    flag(out, zero > 0 && row->framework->transformer.overlaps_gather, "overlap-param-gather");
    flag(out,
         row->plan->sequence_parallel &&
             row->framework->transformer.tensor_overlap == DL_TENSOR_PIECES,
         "tp-comm-overlap");
    number(out, "micro-batch-size", dl_export_micro_batch(plan));
    number(out, "global-batch-size", plan->global_batch_samples);
    DL_TRY(add_settings(row->workload, plan, out, err));
    flag(out, plan->settings.moe_overlap, "overlap-moe-expert-parallel-comm");
    if (plan->settings.cuda_graphs == DL_GRAPHS_LAYER)
        word(out, "cuda-graph-impl", "transformer_engine");
    if (plan->settings.cuda_graphs == DL_GRAPHS_ITERATION) {
        word(out, "cuda-graph-impl", "local");
        word(out, "cuda-graph-scope", "full_iteration");
    }
    return add_recompute(plan, out, err);
}

static enum dl_code add_arithmetic(const struct dl_plan *plan, struct dl_text *out,
                                   struct dl_err *err) {
    switch (plan->precision) {
    case DL_FP32: break;
    case DL_MIXED:
    case DL_FP16: flag(out, true, "fp16"); break;
    case DL_BF16: flag(out, true, "bf16"); break;
    case DL_FP8:
        flag(out, true, "bf16");
        word(out, "fp8-format", "hybrid");
        break;
    case DL_MXFP8:
        flag(out, true, "bf16");
        word(out, "fp8-format", "e4m3");
        word(out, "fp8-recipe", "mxfp8");
        break;
    case DL_NVFP4:
        flag(out, true, "bf16");
        word(out, "fp4-format", "e2m1");
        word(out, "fp4-recipe", "nvfp4");
        break;
    default:
        return dl_fail(err, DL_ERR_USAGE, "--export megatron: it has no precision %s",
                       dl_precision_names[plan->precision]);
    }
    if (plan->optimizer == DL_LAMB)
        return dl_fail(err, DL_ERR_USAGE, "--export megatron: it has no optimizer lamb");
    word(out, "optimizer", plan->optimizer == DL_ADAM ? "adam" : "sgd");
    if (plan->optimizer != DL_ADAM)
        number(out, "sgd-momentum", plan->optimizer == DL_MOMENTUM ? 0.9 : 0);
    return DL_OK;
}

enum dl_code dl_export_megatron(const struct dl_export_request *request, struct dl_text *out,
                                struct dl_err *err) {
    const struct dl_prediction_row *row = request->row;
    const struct dl_plan *plan = row->plan;
    const double steps = dl_rows_total(row).iteration_count;
    DL_TRY(check_model(row->workload, err));
    if (!dl_known(row->workload->transformer_layers) || plan->measured.layer_times != NULL)
        return dl_fail(err, DL_ERR_USAGE, "--export megatron: the plan is of no transformer");
    dl_text_printf(out, "torchrun --nnodes %lld --nproc-per-node %lld pretrain_%s.py",
                   (long long)plan->nodes, (long long)plan->devices_per_node,
                   dl_workload_has_state(row->workload) ? "mamba" : "gpt");
    add_model(row, out);
    DL_TRY(add_plan(row, out, err));
    DL_TRY(add_arithmetic(plan, out, err));
    if (dl_known(steps)) number(out, "train-iters", steps);
    dl_text_add(out, "\n");
    return DL_OK;
}
