/* run_megatron.c - arguments of Megatron-LM (megatron/training/arguments.py), of Megatron-DeepSpeed
 * and keys of NeMo's configurations as a plan. What is not given has Megatron's default. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "import/run/megatron_internal.h"
#include "model/core/text.h"

enum dl_code dl_megatron_unknown(struct dl_megatron_reader *r, const char *names,
                                 const char *expected) {
    return dl_arguments_fail(r->a, names, r->err, "expected %s, found \"%.60s\"", expected,
                             dl_arguments_word(r->a, names, ""));
}

static enum dl_code read_degrees(struct dl_megatron_reader *r) {
    double ulysses = 1;
    r->tp = r->pp = r->cp = r->ep = 1;
    DL_TRY(dl_arguments_number(r->a, "tensor_model_parallel_size|model_parallel_size", 1, 1e6,
                               &r->tp, r->err));
    DL_TRY(dl_arguments_number(r->a, "pipeline_model_parallel_size|pipe_parallel_size", 0, 1e6,
                               &r->pp, r->err)); /* 0 of DeepSpeed: no stages */
    r->pp = fmax(r->pp, 1);
    DL_TRY(dl_arguments_number(r->a, "context_parallel_size", 1, 1e6, &r->cp, r->err));
    DL_TRY(dl_arguments_number(r->a, "expert_model_parallel_size|moe_expert_parallel_size", 1, 1e6,
                               &r->ep, r->err));
    DL_TRY(dl_arguments_number(r->a, "ds_sequence_parallel_size", 1, 1e6, &ulysses, r->err));
    if (ulysses > 1) {
        r->cp *= ulysses;
        dl_plan_words_add(r->out, "cp-comm", "alltoall");
    }
    return DL_OK;
}

/* How context ranks exchange: of several words, one a layer, the first. */
static void add_context(struct dl_megatron_reader *r) {
    static const struct dl_word_pair ways[] = {
        {"p2p", "ring"}, {"all_gather|allgather", "allgather"}, {"a2a", "alltoall"}, {NULL, NULL}};
    const char *word = dl_arguments_word(r->a, "cp_comm_type", ""), *way = dl_paired(ways, word);
    if (word[0] == 0 || r->cp <= 1) return;
    if (way != NULL)
        dl_plan_words_add(r->out, "cp-comm", "%s", way);
    else
        dl_arguments_note(r->a,
                          "cp_comm_type %.40s changes the prediction and is not modelled: "
                          "predicted as the release's own",
                          word);
}

static enum dl_code add_degrees(struct dl_megatron_reader *r) {
    struct dl_run *run = r->run;
    DL_TRY(dl_arguments_number(r->a, "nnodes|num_nodes", 1, 1e7, &run->nodes, r->err));
    DL_TRY(
        dl_arguments_number(r->a, "nproc_per_node|gpus_per_node", 1, 1e5, &run->per_node, r->err));
    if (!dl_known(run->ranks))
        DL_TRY(dl_arguments_number(r->a, "world_size|num_gpus", 1, 1e8, &run->ranks, r->err));
    double each = NAN; /* tensor ranks of an expert; not given: those of other layers */
    DL_TRY(dl_arguments_number(r->a, "expert_tensor_parallel_size", 1, 1e6, &each, r->err));
    const double of_expert = dl_known(each) ? each : r->tp, inner = r->tp * r->cp;
    /* expert ranks are data, context and tensor ranks of the same stage */
    dl_launch_devices(run, r->pp * fmax(inner, r->ep > 1 ? of_expert * r->ep : 1));
    if (fmod(run->ranks, r->tp * r->pp * r->cp) != 0)
        return dl_fail_at(r->err, r->a->path, 1, 1, NULL,
                          "%.0f devices are no multiple of the %.0f of its tensor, pipeline and "
                          "context degrees; --ranks N gives another number",
                          run->ranks, r->tp * r->pp * r->cp);
    dl_plan_words_add(r->out, "strategy", "%s", r->ep > 1 ? "expert" : "3d");
    dl_plan_words_add(r->out, "tp", "%.0f", r->tp);
    dl_plan_words_add(r->out, "pp", "%.0f", r->pp);
    dl_plan_words_add(r->out, "cp", "%.0f", r->cp);
    add_context(r);
    if (r->ep > 1) dl_plan_words_add(r->out, "ep", "%.0f", r->ep);
    if (r->ep > 1 && r->tp > 1 && dl_known(each) && each != 1 && each != r->tp)
        dl_arguments_note(r->a,
                          "expert_tensor_parallel_size %.0f: predicted with experts split over "
                          "all %.0f tensor ranks",
                          each, r->tp);
    else if (r->ep > 1 && r->tp > 1 && dl_known(each))
        dl_plan_words_add(r->out, "etp", "%.0f", each);
    return DL_OK;
}

static bool whole(double layers) { return layers >= 0 && layers == floor(layers); }

/* Layers of the stages where the script gives them, or counts the embedding and the loss as layers.
 */
static void add_stage_layers(struct dl_megatron_reader *r, double first, double last) {
    const bool embedding = dl_arguments_flag(r->a, "account_for_embedding_in_pipeline_split"),
               loss = dl_arguments_flag(r->a, "account_for_loss_in_pipeline_split"),
               listed = dl_known(first) || dl_known(last);
    if (r->pp <= 1 || !dl_known(r->layers) || !(listed || embedding || loss)) return;
    const double counted = r->layers + embedding + loss, known = dl_known(first) + dl_known(last);
    if (!listed) {
        first = counted / r->pp - embedding;
        last = counted / r->pp - loss;
    }
    const double between = r->pp - (listed ? known : 2),
                 rest = r->layers - (dl_known(first) ? first : 0) - (dl_known(last) ? last : 0),
                 each = between > 0 ? rest / between : 0;
    if (!dl_known(first)) first = each;
    if (!dl_known(last)) last = each;
    if (!whole(each) || !whole(first) || !whole(last) || (between <= 0 && rest > 0)) {
        dl_arguments_note(r->a, "stages: %.0f layers do not divide into %.0f stages as given",
                          r->layers, r->pp);
        return;
    }
    if (r->pp > 2)
        dl_plan_words_add(r->out, "stage-layers", "%.0f,%.0fx%.0f,%.0f", first, r->pp - 2, each,
                          last);
    else
        dl_plan_words_add(r->out, "stage-layers", "%.0f,%.0f", first, last);
}

static enum dl_code read_stages(struct dl_megatron_reader *r) {
    double v = 0, each = 0, first = NAN, last = NAN, further = 0;
    DL_TRY(dl_megatron_number(r, "mtp_num_layers|num_nextn_predict_layers", &further));
    if (further > 0) dl_plan_words_add(r->out, "mtp-layers", "%.0f", further);
    DL_TRY(dl_megatron_number(
        r, "num_virtual_stages_per_pipeline_rank|virtual_pipeline_model_parallel_size", &v));
    DL_TRY(dl_megatron_number(r, "num_layers_per_virtual_pipeline_stage", &each));
    if (each > 0 && dl_known(r->layers)) v = r->layers / r->pp / each;
    r->virtual_stages = (int)v;
    if (v > 1 && r->pp > 1) {
        dl_plan_words_add(r->out, "schedule", "interleaved");
        dl_plan_words_add(r->out, "virtual-stages", "%.0f", v);
    } else if (r->pp > 1) {
        dl_plan_words_add(r->out, "schedule", "1f1b");
    }
    DL_TRY(dl_megatron_number(
        r, "decoder_first_pipeline_num_layers|num_layers_in_first_pipeline_stage", &first));
    DL_TRY(dl_megatron_number(
        r, "decoder_last_pipeline_num_layers|num_layers_in_last_pipeline_stage", &last));
    add_stage_layers(r, first, last);
    return DL_OK;
}

static bool names_sharded_optimizer(const char *name) {
    return strcmp(name, "distributed_fused_adam") == 0 ||
           strcmp(name, "mcore_distributed_optim") == 0;
}

/* ZeRO: stage 1 for the distributed optimizer, else the stage of FSDP or of DeepSpeed. */
static enum dl_code read_sharding(struct dl_megatron_reader *r) {
    static const struct dl_word_pair stages[] = {{"no_shard", "0"},
                                                 {"optim", "1"},
                                                 {"optim_grads", "2"},
                                                 {"optim_grads_params", "3"},
                                                 {NULL, NULL}};
    const char *word = dl_arguments_word(r->a, "data_parallel_sharding_strategy", "no_shard"),
               *name = dl_arguments_word(r->a, "optimizer_name", "");
    const char *stage = dl_paired(stages, word);
    double copies = 1, deepspeed = 0;
    if (stage == NULL)
        return dl_megatron_unknown(r, "data_parallel_sharding_strategy",
                                   "no_shard, optim, optim_grads or optim_grads_params");
    const bool fsdp = dl_arguments_flag(r->a, "use_megatron_fsdp|use_custom_fsdp"),
               torch = dl_arguments_flag(r->a, "use_torch_fsdp2"),
               shares = dl_arguments_flag(r->a, "use_distributed_optimizer") ||
                        names_sharded_optimizer(name);
    DL_TRY(
        dl_arguments_number(r->a, "zero_stage|zero_optimization.stage", 0, 3, &deepspeed, r->err));
    if (torch) stage = "3";
    if (!fsdp && !torch) stage = shares ? "1" : "0";
    if (r->recipe && !shares && !fsdp &&
        dl_arguments_find(r->a, "use_distributed_optimizer") == NULL) {
        stage = "1";
        dl_arguments_note(r->a, "the distributed optimizer is on, as in recipes of pretraining");
    }
    if (deepspeed > 0) stage = deepspeed == 1 ? "1" : deepspeed == 2 ? "2" : "3";
    if (stage[0] != '0') dl_plan_words_add(r->out, "zero", "%s", stage);
    DL_TRY(dl_megatron_number(r, "num_distributed_optimizer_instances", &copies));
    const double data = r->run->ranks / (r->tp * r->pp);
    if (copies > 1 && stage[0] != '0')
        dl_plan_words_add(r->out, "zero-group", "%.0f", floor(data / copies));
    return DL_OK;
}

static enum dl_code read_batch(struct dl_megatron_reader *r) {
    const double data = r->run->ranks / (r->tp * r->pp * r->cp);
    double accumulate = 1;
    r->micro = NAN;
    DL_TRY(dl_arguments_number(r->a, "micro_batch_size|batch_size|train_micro_batch_size_per_gpu",
                               1, 1e7, &r->micro, r->err));
    DL_TRY(dl_arguments_number(r->a, "accumulate_grad_batches", 1, 1e7, &accumulate, r->err));
    const bool said = dl_known(r->micro);
    if (!said) r->micro = 1;
    r->batch = r->micro * data * accumulate;
    const bool global = dl_arguments_find(r->a, "global_batch_size|train_batch_size") != NULL;
    DL_TRY(
        dl_arguments_number(r->a, "global_batch_size|train_batch_size", 1, 1e9, &r->batch, r->err));
    if (fmod(r->batch, r->micro * data) != 0) {
        const double nearest = fmax(1, rint(r->batch / (r->micro * data))) * r->micro * data;
        dl_arguments_note(r->a,
                          "batch: %.0f samples are no multiple of micro-batches of %.0f on %.0f "
                          "data ranks; %.0f taken (--ranks N gives another number of devices)",
                          r->batch, r->micro, data, nearest);
        r->batch = nearest;
    }
    if (global || said) {
        dl_plan_words_add(r->out, "global-batch", "%.15g", r->batch);
        dl_plan_words_add(r->out, "micro-batch", "%.15g", r->micro);
    }
    double steps = 0, samples = 0, tokens = 0;
    DL_TRY(dl_arguments_number(r->a, "train_iters|max_steps|max_step", 0, 1e9, &steps, r->err));
    DL_TRY(dl_arguments_number(r->a, "train_samples", 0, 1e15, &samples, r->err));
    DL_TRY(dl_arguments_number(r->a, "train_tokens", 0, 1e18, &tokens, r->err));
    if (samples <= 0) samples = steps * r->batch;
    if (tokens <= 0 && dl_known(r->seq)) tokens = samples * r->seq;
    if (tokens > 0) dl_plan_words_add(r->out, "tokens", "%.17g", tokens);
    return DL_OK;
}

/* Full recomputation: uniform repeats all layers, in groups; block the first `count` of each
 * virtual stage. */
static const char *some_layers(struct dl_megatron_reader *r, double count) {
    const char *method =
        dl_arguments_word(r->a, "recompute_method|activations_checkpoint_method", "uniform");
    const double stage = ceil(r->layers / r->pp), all = count * fmax(1, r->virtual_stages);
    if (strcmp(method, "block") != 0 || !dl_known(stage) || all >= stage) return "full";
    if (all <= 0) return "none";
    dl_plan_words_add(r->out, "recompute-layers", "%.0f", all);
    return "full";
}

/* The modules of selective recomputation in this program's words; those that it does not model are
 * reported. */
static const char *some_modules(struct dl_megatron_reader *r, const char *given) {
    static const struct dl_word_pair modules[] = {
        {"core_attn", "attention"}, {"layernorm", "norm"}, {"mlp", "mlp"}, {"moe", "moe"},
        {"mla_up_proj", "latent"},  {NULL, NULL}};
    struct dl_text out = {.arena = r->a->arena};
    while (*given != 0) {
        const size_t length = strcspn(given, " ,[]'\"\n");
        const char *word = dl_arena_printf(out.arena, "%.*s", (int)length, given),
                   *ours = dl_paired(modules, word);
        given += length > 0 ? length : 1;
        if (length == 0) continue;
        if (ours == NULL)
            dl_arguments_note(r->a, "recomputation of %.40s is not modelled", word);
        else
            dl_text_printf(&out, "%s%s", out.length > 0 ? "," : "", ours);
    }
    return out.length > 0 ? dl_text_string(&out) : "none";
}

/* Activations that FP8 training also stores in FP8, in addition to GEMM operands. */
static void read_store(struct dl_megatron_reader *r) {
    const bool attention = dl_arguments_flag(r->a, "fp8_dot_product_attention|"
                                                   "fp8_multi_head_attention"),
               mlp = dl_arguments_flag(r->a, "activation_func_fp8_input_store|"
                                             "fp8_activation_input_store"),
               narrow = dl_arguments_find(r->a, "fp8|fp8_format|fp8_hybrid|fp8_e4m3") != NULL;
    if (narrow && (attention || mlp))
        dl_plan_words_add(r->out, "fp8-store", "%s%s%s", attention ? "attention" : "",
                          attention && mlp ? "," : "", mlp ? "mlp" : "");
}

/* The optimizer's states on the host; activations of the first layers. A configuration may give
 * their number and leave them on the device. */
static enum dl_code read_offload(struct dl_megatron_reader *r) {
    const bool states = dl_arguments_flag(r->a, "optimizer_cpu_offload"),
               off = dl_arguments_find(r->a, "cpu_offloading") != NULL &&
                     !dl_arguments_flag(r->a, "cpu_offloading");
    double frac = 1, layers = 0;
    read_store(r);
    DL_TRY(dl_run_offload_deepspeed(
        r->run, dl_arguments_word(r->a, "zero_stage|zero_optimization.stage", NULL)));
    DL_TRY(dl_arguments_number(r->a, "optimizer_offload_fraction", 0, 1, &frac, r->err));
    DL_TRY(dl_megatron_number(r, "cpu_offloading_num_layers", &layers));
    const bool kept = layers > 0 && dl_known(r->layers) && !off;
    if (states && frac > 0 && kept)
        dl_arguments_note(r->a, "activations of %.0f layers on the host: predicted on the device",
                          layers);
    if (states && frac > 0) {
        dl_plan_words_add(r->out, "offload", "optimizer");
        if (frac < 1) dl_plan_words_add(r->out, "offload-fraction", "%.6g", frac);
    } else if (kept) {
        dl_plan_words_add(r->out, "offload", "activations");
        if (layers < r->layers)
            dl_plan_words_add(r->out, "offload-fraction", "%.6g", layers / r->layers);
    }
    return DL_OK;
}

static enum dl_code read_recompute(struct dl_megatron_reader *r) {
    static const struct dl_word_pair modes[] = {
        {"full|uniform", "full"}, {"selective", "selective"}, {"none", "none"}, {NULL, NULL}};
    const char *names = "recompute_granularity|activations_checkpoint_granularity",
               *mode = dl_paired(modes, dl_arguments_word(r->a, names, "none"));
    if (mode == NULL) return dl_megatron_unknown(r, names, "full or selective");
    double layers = NAN;
    DL_TRY(dl_megatron_number(r,
                              "recompute_num_layers|activations_checkpoint_num_layers|"
                              "checkpoint_num_layers",
                              &layers));
    const bool old =
        dl_arguments_flag(r->a, "checkpoint_activations|deepspeed_activation_checkpointing");
    const bool by_method = strcmp(mode, "none") == 0 && dl_arguments_find(r->a, names) == NULL &&
                           dl_arguments_flag(r->a, "activations_checkpoint_method");
    if (old || by_method) mode = "full";
    if (dl_arguments_flag(r->a, "recompute_activations") ||
        (r->recipe && dl_arguments_flag(r->a, "recompute_modules")))
        mode = "selective";
    if (strcmp(mode, "full") == 0 && dl_known(layers)) mode = some_layers(r, layers);
    const char *modules = dl_arguments_word(r->a, "recompute_modules", "");
    if (strcmp(mode, "selective") == 0 && modules[0] != 0 && strcmp(modules, "core_attn") != 0)
        mode = some_modules(r, modules);
    dl_plan_words_add(r->out, "recompute", "%s", mode);
    if (dl_arguments_flag(r->a, "sequence_parallel") && r->tp > 1)
        dl_plan_words_flag(r->out, "sequence-parallel");
    if (dl_arguments_flag(r->a, "use_tp_pp_dp_mapping"))
        dl_plan_words_add(r->out, "mapping", "pipeline-inside");
    return DL_OK;
}

static void add_overlap(struct dl_megatron_reader *r, const char *names, const char *option,
                        bool matters) {
    const bool given = dl_arguments_find(r->a, names) != NULL, on = dl_arguments_flag(r->a, names);
    if (matters && (given || !r->recipe)) dl_plan_words_add(r->out, option, "%d", on ? 1 : 0);
}

/* Off unless given in Megatron-LM; recipes of NeMo and Megatron-Bridge choose, as the framework's
 * release does. DeepSpeed has its own. */
static enum dl_code read_overlap(struct dl_megatron_reader *r) {
    const double data = r->run->ranks / (r->tp * r->pp);
    if (r->out->framework != NULL && strcmp(r->out->framework, "megatron-core") != 0) return DL_OK;
    add_overlap(r, "overlap_grad_reduce", "overlap-grad-reduce", data > 1);
    add_overlap(r, "overlap_param_gather", "overlap-param-gather",
                data > 1 && dl_arguments_flag(r->a, "use_distributed_optimizer"));
    add_overlap(r, "tp_comm_overlap|ub_tp_comm_overlap", "tp-comm-overlap",
                r->tp > 1 && dl_arguments_flag(r->a, "sequence_parallel"));
    return DL_OK;
}

/* How tokens reach experts: by default Megatron-LM gathers all of them. */
static enum dl_code read_dispatch(struct dl_megatron_reader *r) {
    static const char type_names[] = "moe_token_dispatcher_type",
                      backend_names[] = "moe_flex_dispatcher_backend";
    static const struct dl_word_pair types[] = {{"allgather", "allgather"},
                                                {"alltoall|alltoall_seq", "alltoall"},
                                                {"flex", "deepep"},
                                                {NULL, NULL}};
    static const struct dl_word_pair backends[] = {
        {"deepep", "deepep"}, {"hybridep", "hybridep"}, {NULL, NULL}};
    const bool given = dl_arguments_find(r->a, type_names) != NULL,
               direct = dl_arguments_flag(r->a, "moe_enable_deepep");
    /* random logits: all experts get the same number of tokens */
    if (r->ep > 1 && dl_arguments_flag(r->a, "moe_router_force_load_balancing"))
        dl_plan_words_add(r->out, "expert-imbalance", "1");
    const char *type = dl_paired(types, dl_arguments_word(r->a, type_names, "allgather")),
               *backend = dl_paired(backends, dl_arguments_word(r->a, backend_names, "deepep"));
    if (type == NULL) return dl_megatron_unknown(r, type_names, "allgather, alltoall or flex");
    if (backend == NULL) return dl_megatron_unknown(r, backend_names, "deepep or hybridep");
    if (r->ep <= 1 || (r->recipe && !given && !direct)) return DL_OK;
    if (r->out->framework != NULL && strcmp(r->out->framework, "megatron-core") != 0) return DL_OK;
    dl_plan_words_add(r->out, "moe-dispatch", "%s",
                      direct || strcmp(type, "deepep") == 0 ? backend : type);
    return DL_OK;
}

/* Graphs of Megatron-LM before 0.15 are of layers; what a recipe does not say, it decides. */
static enum dl_code read_graphs(struct dl_megatron_reader *r) {
    const char *way = dl_arguments_word(r->a, "cuda_graph_impl", "none"),
               *scope = dl_arguments_word(r->a, "cuda_graph_scope|cuda_graph_modules", "");
    const bool whole =
                   strcmp(way, "full_iteration") == 0 || strstr(scope, "full_iteration") != NULL,
               old = dl_arguments_flag(r->a, "enable_cuda_graph|external_cuda_graph"),
               overlap = dl_arguments_flag(r->a, "overlap_moe_expert_parallel_comm|"
                                                 "moe_a2a_overlap");
    if (whole || old || strcmp(way, "none") != 0)
        dl_plan_words_add(r->out, "cuda-graphs", "%s", whole ? "iteration" : "layer");
    if (overlap && r->ep > 1) dl_plan_words_flag(r->out, "moe-overlap");
    return DL_OK;
}

static enum dl_code read_precision(struct dl_megatron_reader *r) {
    static const struct dl_word_pair precisions[] = {
        {"bf16|bf16-mixed|bf16_mixed|bf16-true", "bf16"},
        {"16|fp16|16-mixed|fp16_mixed", "fp16"},
        {"32|32-true|fp32", "fp32"},
        /* fp8_cs, fp8_ds, fp8_sc: --compute_dtype of Megatron-Bridge, how it scales */
        {"bf16_with_fp8_delayed_scaling_mixed|bf16_with_fp8_current_scaling_mixed|"
         "bf16_with_fp8_subchannel_scaling_mixed|fp8_cs|fp8_ds|fp8_sc",
         "fp8"},
        {"bf16_with_mxfp8_mixed|fp8_mx", "mxfp8"},
        {"bf16_with_nvfp4_mixed|nvfp4", "nvfp4"},
        {NULL, NULL}};
    static const char names[] = "precision|mixed_precision|compute_dtype";
    const char *precision = dl_paired(precisions, dl_arguments_word(r->a, names, "32"));
    if (precision == NULL) return dl_megatron_unknown(r, names, "bf16, 16 or 32");
    if (dl_arguments_flag(r->a, "bf16|bf16.enabled")) precision = "bf16";
    if (dl_arguments_flag(r->a, "fp16|fp16.enabled")) precision = "fp16";
    const char *recipe = dl_arguments_word(r->a, "fp8_recipe", "delayed");
    if (dl_arguments_flag(r->a, "fp8|fp8_format|fp8_hybrid|fp8_e4m3"))
        precision = strcmp(recipe, "mxfp8") == 0 ? "mxfp8" : "fp8";
    if (dl_arguments_flag(r->a, "fp4|fp4_format")) precision = "nvfp4";
    (void)dl_arguments_find(r->a, "fp4_recipe");
    dl_plan_words_add(r->out, "precision", "%s", precision);
    return DL_OK;
}

static enum dl_code read_optimizer(struct dl_megatron_reader *r) {
    static const struct dl_word_pair names[] = {
        {"adam|adamw|fused_adam|distributed_fused_adam|mcore_distributed_optim|megatron_fused_adam",
         "adam"},
        {"sgd", "sgd"},
        {"lamb", "lamb"},
        {NULL, NULL}};
    double momentum = 0.9;
    const char *word = dl_arguments_word(r->a, "optimizer_name|optimizer", "adam"),
               *optimizer = dl_paired(names, word);
    DL_TRY(dl_megatron_number(r, "sgd_momentum", &momentum));
    if (optimizer == NULL) {
        dl_arguments_note(r->a, "optimizer: \"%.40s\" is not modelled; predicted as adam", word);
        optimizer = "adam";
    }
    if (strcmp(optimizer, "sgd") == 0 && momentum > 0) optimizer = "momentum";
    dl_plan_words_add(r->out, "optimizer", "%s", optimizer);
    return DL_OK;
}

static enum dl_code read_framework(struct dl_megatron_reader *r) {
    if (dl_arguments_find(r->a, "deepspeed|deepspeed_config") != NULL && !r->run->framework_asked)
        r->out->framework = "megatron-deepspeed";
    return DL_OK;
}

enum dl_code dl_megatron_plan(struct dl_run *run) {
    static enum dl_code (*const steps[])(struct dl_megatron_reader *) = {
        read_degrees,  dl_megatron_model, add_degrees,    read_stages,    read_sharding,
        read_offload,  read_framework,    read_batch,     read_recompute, read_overlap,
        read_dispatch, read_graphs,       read_precision, read_optimizer};
    struct dl_megatron_reader r = {
        .run = run, .a = &run->arguments, .out = run->out, .err = run->err};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) DL_TRY(steps[i](&r));
    return DL_OK;
}
