/* run_formats.c - formats that a table of keys describes: DeepSpeed's JSON, Accelerate's and
 * MaxText's YAML, llm-foundry's YAML for Composer, and command lines of other programs. */
#include <math.h>
#include <string.h>

#include "import/run/run_table.h"

/* ---- DeepSpeed ---- */

static const struct dl_word_pair zero_stages[] = {{"1", "1"}, {"2", "2"}, {"3", "3"}, {NULL, NULL}};
static const struct dl_run_key deepspeed_keys[] = {
    {"train_batch_size", DL_SLOT_BATCH, NULL, NULL},
    {"train_micro_batch_size_per_gpu", DL_SLOT_MICRO, NULL, NULL},
    {"gradient_accumulation_steps", DL_SLOT_ACCUMULATE, NULL, NULL},
    {"zero_optimization.stage", DL_SLOT_SHARDING, zero_stages, NULL},
    {"bf16.enabled|bfloat16.enabled", DL_SLOT_PRECISION, NULL, "bf16"},
    {"fp16.enabled", DL_SLOT_PRECISION, NULL, "fp16"},
    {"optimizer.type", DL_SLOT_OPTIMIZER, dl_optimizer_pairs, NULL},
    {"tensor_parallel.autotp_size", DL_SLOT_TP, NULL, NULL},
    {NULL, 0, NULL, NULL}};
const struct dl_argument_class dl_deepspeed_classes[] = {
    DL_CERTAIN,
    {DL_NOT_MODELLED,
     "*offload* zero_optimization.* activation_checkpointing.* communication_data_type "
     "gradient_predivide* prescale_gradients sparse_gradients sparse_attention.* amp.* "
     "compression_training.* curriculum* data_efficiency.* progressive_layer_drop.* autotuning.* "
     "flops_profiler.* aio.* zero_allow_untested_optimizer fp16.* bf16.* data_types.* "
     "hybrid_engine.* compile.* quantize* graph_harvesting eigenvalue.* disable_allgather "
     "use_data_before_expert* domino.* *torch_autocast* sequence_parallel* "
     "zero_force_ds_cpu_optimizer"},
    {DL_COSTS_NOTHING, "steps_per_print wall_clock_breakdown dump_state optimizer.* scheduler.* "
                       "elasticity.* monitor* csv_monitor.* memory_breakdown comms_logger.*"},
    {0, NULL}};

/* The framework is the one that shards so. */
static void deepspeed_framework(struct dl_run_slots *s) {
    const char *stage = s->words[DL_SLOT_SHARDING];
    s->words[DL_SLOT_FRAMEWORK] = stage == NULL     ? "pytorch-ddp"
                                  : stage[0] == '1' ? "deepspeed-zero1"
                                  : stage[0] == '2' ? "deepspeed-zero2"
                                                    : "deepspeed-zero3";
    s->words[DL_SLOT_SHARDING] = NULL;
}

enum dl_code dl_deepspeed_plan(struct dl_run *run) {
    struct dl_run_slots s;
    DL_TRY(dl_run_slots_read(run, deepspeed_keys, &s));
    deepspeed_framework(&s);
    return dl_run_slots_plan(run, &s, NULL);
}

/* ---- Accelerate ---- */

static const struct dl_word_pair distributed_types[] = {
    {"FSDP", "pytorch-fsdp"}, {"MULTI_GPU", "pytorch-ddp"},     {"DEEPSPEED", "deepspeed"},
    {"NO", "pytorch-ddp"},    {"MEGATRON_LM", "megatron-core"}, {NULL, NULL}};
/* FULL_SHARD gathers again in backward, HYBRID_SHARD does so within nodes. */
static const struct dl_word_pair shardings[] = {{"FULL_SHARD", "3"},
                                                {"1", "3"},
                                                {"SHARD_GRAD_OP", "2"},
                                                {"2", "2"},
                                                {"NO_SHARD", "0"},
                                                {"3", "0"},
                                                {"HYBRID_SHARD", "hybrid3"},
                                                {"4", "hybrid3"},
                                                {"_HYBRID_SHARD_ZERO2", "hybrid2"},
                                                {"HYBRID_SHARD_ZERO2", "hybrid2"},
                                                {"5", "hybrid2"},
                                                {NULL, NULL}};
static const struct dl_run_key accelerate_keys[] = {
    {"distributed_type", DL_SLOT_FRAMEWORK, distributed_types, NULL},
    {"num_machines", DL_SLOT_NODES, NULL, NULL},
    {"num_processes", DL_SLOT_RANKS, NULL, NULL},
    {"mixed_precision", DL_SLOT_PRECISION, dl_precision_pairs, NULL},
    {"fsdp_config.fsdp_sharding_strategy", DL_SLOT_SHARDING, shardings, NULL},
    {"fsdp_config.fsdp_activation_checkpointing", DL_SLOT_RECOMPUTE, NULL, "full"},
    {"deepspeed_config.zero_stage", DL_SLOT_SHARDING, zero_stages, NULL},
    {"deepspeed_config.gradient_accumulation_steps|gradient_accumulation_steps", DL_SLOT_ACCUMULATE,
     NULL, NULL},
    {"dynamo_config.dynamo_backend", DL_SLOT_COMPILER,
     (const struct dl_word_pair[]){{"INDUCTOR", "inductor"}, {"NO", "none"}, {NULL, NULL}}, NULL},
    {"megatron_lm_config.megatron_lm_tp_degree", DL_SLOT_TP, NULL, NULL},
    {"megatron_lm_config.megatron_lm_pp_degree", DL_SLOT_PP, NULL, NULL},
    {"parallelism_config.parallelism_config_tp_size", DL_SLOT_TP, NULL, NULL},
    {"parallelism_config.parallelism_config_cp_size", DL_SLOT_CP, NULL, NULL},
    {NULL, 0, NULL, NULL}};
const struct dl_argument_class dl_accelerate_classes[] = {
    DL_CERTAIN,
    {DL_NOT_MODELLED,
     "*offload* fsdp_config.fsdp_backward_prefetch* fsdp_config.fsdp_forward_prefetch "
     "fsdp_config.fsdp_use_orig* fsdp_config.fsdp_auto_wrap* fsdp_config.fsdp_transformer* "
     "fsdp_config.fsdp_min_num* fsdp_config.fsdp_version fsdp_config.fsdp_reshard* "
     "deepspeed_config.* dynamo_config.* megatron_lm_config.* fp8_config.* parallelism_config.* "
     "mpirun_config.* enable_cpu_affinity use_cpu ipex_config.*"},
    {DL_COSTS_NOTHING,
     "compute_environment debug downcast_bf16 machine_rank main_* rdzv* same_network tpu_* "
     "gpu_ids fsdp_config.fsdp_state* fsdp_config.fsdp_sync* fsdp_config.fsdp_cpu_ram* "
     "main_training_function num_cpu_threads* commands command_file"},
    {0, NULL}};

enum dl_code dl_accelerate_plan(struct dl_run *run) {
    struct dl_run_slots s;
    DL_TRY(dl_run_slots_read(run, accelerate_keys, &s));
    const char *sharding = s.words[DL_SLOT_SHARDING], *framework = s.words[DL_SLOT_FRAMEWORK];
    const double ranks = s.numbers[DL_SLOT_RANKS], nodes = s.numbers[DL_SLOT_NODES];
    const bool fsdp = framework != NULL && strcmp(framework, "pytorch-fsdp") == 0;
    if (dl_known(ranks) && dl_known(nodes)) s.numbers[DL_SLOT_PER_NODE] = ranks / nodes;
    if (sharding != NULL && strncmp(sharding, "hybrid", 6) == 0) {
        s.words[DL_SLOT_SHARDING] = sharding + 6;
        if (dl_known(ranks) && dl_known(nodes) && nodes > 1)
            s.numbers[DL_SLOT_GROUP] = ranks / nodes;
    }
    if (framework != NULL && strcmp(framework, "deepspeed") == 0) deepspeed_framework(&s);
    if (!fsdp) s.words[DL_SLOT_SHARDING] = NULL;
    const double *n = s.numbers;
    if (fsdp && (n[DL_SLOT_TP] > 1 || n[DL_SLOT_CP] > 1))
        s.words[DL_SLOT_FRAMEWORK] = "pytorch-fsdp2";
    const char *precision = s.words[DL_SLOT_PRECISION];
    if (precision != NULL && strcmp(precision, "fp8") == 0) {
        dl_arguments_note(&run->arguments,
                          "mixed_precision fp8: kernels and casts in 8 bits are not "
                          "modelled of this framework; predicted as --precision "
                          "bf16");
        s.words[DL_SLOT_PRECISION] = "bf16";
    }
    return dl_run_slots_plan(run, &s, NULL);
}

/* ---- Composer, llm-foundry ---- */

static const struct dl_run_key composer_keys[] = {
    {"global_train_batch_size", DL_SLOT_BATCH, NULL, NULL},
    {"device_train_microbatch_size", DL_SLOT_MICRO, NULL, NULL},
    {"max_seq_len|model.max_seq_len|variables.max_seq_len", DL_SLOT_SEQ, NULL, NULL},
    {"precision", DL_SLOT_PRECISION, dl_precision_pairs, NULL},
    {"optimizer.name", DL_SLOT_OPTIMIZER, dl_optimizer_pairs, NULL},
    {"fsdp_config.sharding_strategy", DL_SLOT_SHARDING, shardings, NULL},
    {"fsdp_config.activation_checkpointing", DL_SLOT_RECOMPUTE, NULL, "full"},
    {"compute.gpus", DL_SLOT_RANKS, NULL, NULL},
    {"model.pretrained_model_name_or_path|model.name_or_path", DL_SLOT_MODEL, NULL, NULL},
    {NULL, 0, NULL, NULL}};
const struct dl_argument_class dl_composer_classes[] = {
    DL_CERTAIN,
    {DL_NOT_MODELLED, "fsdp_config.mixed_precision *offload* compile_config* "
                      "fsdp_config.activation_checkpointing_* fsdp_config.limit_all* "
                      "fsdp_config.backward_prefetch fsdp_config.forward_prefetch "
                      "model.attn_config.attn_impl model.fc_type tp_config.* *peft* *packing*"},
    {DL_COSTS_NOTHING,
     "variables.* run_name train_loader.* eval_loader.* scheduler.* optimizer.* algorithms.* "
     "max_duration seed device_eval* console* progress_bar callbacks.* loggers.* icl_* tokenizer.* "
     "dist_timeout autoresume model.init* model.loss* model.name fsdp_config.state_dict* "
     "fsdp_config.sync* image integrations* command compute.* parameters.* name load_weights* "
     "model.attn_config.* model.pretrained model.use_auth* expandable_segments python_log_level"},
    {0, NULL}};

/* MPT's shape; a model of a hub is known by its name. */
static enum dl_code mpt_text(struct dl_run *run, const char **out) {
    struct dl_arguments *a = &run->arguments;
    double hidden = NAN, layers = NAN, heads = NAN, kv = NAN, ratio = 4, vocab = NAN, seq = 2048;
    DL_TRY(dl_arguments_number(a, "model.d_model", 1, 1e9, &hidden, run->err));
    DL_TRY(dl_arguments_number(a, "model.n_layers", 1, 1e6, &layers, run->err));
    DL_TRY(dl_arguments_number(a, "model.n_heads", 1, 1e6, &heads, run->err));
    DL_TRY(dl_arguments_number(a, "model.attn_config.kv_n_heads", 1, 1e6, &kv, run->err));
    DL_TRY(dl_arguments_number(a, "model.expansion_ratio", 0.1, 1e3, &ratio, run->err));
    DL_TRY(dl_arguments_number(a, "model.vocab_size", 1, 1e9, &vocab, run->err));
    DL_TRY(dl_arguments_number(a, "max_seq_len|model.max_seq_len", 1, 1e9, &seq, run->err));
    if (!dl_known(hidden) || !dl_known(layers) || !dl_known(heads) || !dl_known(vocab))
        return DL_OK;
    const bool alibi = dl_arguments_flag(a, "model.attn_config.alibi"),
               rope = dl_arguments_flag(a, "model.attn_config.rope"),
               bare = dl_arguments_flag(a, "model.no_bias");
    *out = dl_arena_printf(a->arena,
                           "gpt:layers=%.0f,hidden=%.0f,heads=%.0f,ffn=%.0f,vocab=%.0f,seq=%.0f,"
                           "pos=%s,tied=1,bias=%d,norm_bias=%d,dropout=0,flash=1",
                           layers, hidden, heads, ratio * hidden, vocab, seq,
                           rope    ? "rope"
                           : alibi ? "none"
                                   : "learned",
                           !bare, !bare);
    if (alibi) *out = dl_arena_printf(a->arena, "%s", *out);
    if (dl_known(kv) && kv != heads) *out = dl_arena_printf(a->arena, "%s,kv_heads=%.0f", *out, kv);
    return DL_OK;
}

enum dl_code dl_composer_plan(struct dl_run *run) {
    struct dl_run_slots s;
    const char *text = NULL;
    DL_TRY(dl_run_slots_read(run, composer_keys, &s));
    DL_TRY(mpt_text(run, &text));
    const char *sharding = s.words[DL_SLOT_SHARDING];
    if (sharding != NULL && strncmp(sharding, "hybrid", 6) == 0)
        s.words[DL_SLOT_SHARDING] = sharding + 6;
    return dl_run_slots_plan(run, &s, text);
}

/* ---- MaxText ---- */

static const struct dl_word_pair policies[] = {{"full", "full"},
                                               {"minimal", "selective"},
                                               {"none", "none"},
                                               {"save_qkv_proj", "selective"},
                                               {"save_out_proj", "selective"},
                                               {"save_dot_except_mlp", "selective"},
                                               {"save_dot_except_mlpwi", "selective"},
                                               {"save_dot_with_context_except_mlp", "selective"},
                                               {"minimal_with_context", "selective"},
                                               {"minimal_flash", "selective"},
                                               {"qkv_proj_offloaded", "selective"},
                                               {"minimal_offloaded", "selective"},
                                               {"custom", "selective"},
                                               {NULL, NULL}};
static const struct dl_run_key maxtext_keys[] = {
    {"model_name", DL_SLOT_MODEL, NULL, NULL},
    {"per_device_batch_size", DL_SLOT_EACH, NULL, NULL},
    {"gradient_accumulation_steps", DL_SLOT_ACCUMULATE, NULL, NULL},
    {"max_target_length", DL_SLOT_SEQ, NULL, NULL},
    {"steps", DL_SLOT_STEPS, NULL, NULL},
    {"quantization", DL_SLOT_PRECISION, dl_precision_pairs, NULL},
    {"dtype", DL_SLOT_PRECISION, dl_precision_pairs, NULL},
    {"remat_policy", DL_SLOT_RECOMPUTE, policies, NULL},
    {"opt_type", DL_SLOT_OPTIMIZER, dl_optimizer_pairs, NULL},
    {NULL, 0, NULL, NULL}};
const struct dl_argument_class dl_maxtext_classes[] = {
    DL_CERTAIN,
    {DL_NOT_MODELLED,
     "*offload* *remat* attention weight_dtype grad_dtype *_dtype *quant* *overlap* scan_layers "
     "use_iota_embed fused_* *_block_* sa_* megablox sparse_matmul capacity_factor "
     "use_ring_of_experts "
     "load_balance* num_pipeline* pipeline_* *pipeline* shard_* *shard* logits_dot_in_fp32 "
     "float32_* matmul_precision activations_in_float32 cast_logits* xla* mtp_* use_custom_sort* "
     "compile* compiled_* context_parallel_*"},
    {DL_COSTS_NOTHING,
     "base_config run_name hardware *checkpoint* dataset_type max_segments* reuse_example* "
     "learning_rate* adam_* gradient_clipping* enable_* rope_* head_dim_scale packing base_output* "
     "model_call_mode override_model_config tokenizer* hf_* grain_* metrics* upload_* profiler "
     "goodput* *goodput* skip_first* *eval* jax_* init_weights* *name eos* bos* allow_split* "
     "normalization_layer* decoder_block *custom_mesh* decode_* prefill_* ar_* autoregressive* "
     "add_bos add_eos *seed record_internal*"},
    {0, NULL}};

/* An axis over nodes and within them; -1: the devices that others leave. */
static enum dl_code axis(struct dl_run *run, const char *name, double *out) {
    double inside = 1, across = 1;
    struct dl_arena *arena = run->arguments.arena;
    DL_TRY(dl_arguments_number(&run->arguments, dl_arena_printf(arena, "ici_%s_parallelism", name),
                               -1, 1e7, &inside, run->err));
    DL_TRY(dl_arguments_number(&run->arguments, dl_arena_printf(arena, "dcn_%s_parallelism", name),
                               -1, 1e7, &across, run->err));
    *out = fmax(inside, 1) * fmax(across, 1);
    return DL_OK;
}

/* A shape of base_*. */
static enum dl_code maxtext_text(struct dl_run *run, double seq, const char **out) {
    struct dl_arguments *a = &run->arguments;
    double hidden = NAN, layers = NAN, heads = NAN, kv = NAN, ffn = NAN, head = NAN, vocab = 32000,
           experts = 1, topk = 1;
    DL_TRY(dl_arguments_number(a, "base_emb_dim", 1, 1e9, &hidden, run->err));
    DL_TRY(dl_arguments_number(a, "base_num_decoder_layers", 1, 1e6, &layers, run->err));
    DL_TRY(dl_arguments_number(a, "base_num_query_heads", 1, 1e6, &heads, run->err));
    DL_TRY(dl_arguments_number(a, "base_num_kv_heads", 1, 1e6, &kv, run->err));
    DL_TRY(dl_arguments_number(a, "base_mlp_dim", 1, 1e9, &ffn, run->err));
    DL_TRY(dl_arguments_number(a, "head_dim", 1, 1e6, &head, run->err));
    DL_TRY(dl_arguments_number(a, "vocab_size", 1, 1e9, &vocab, run->err));
    DL_TRY(dl_arguments_number(a, "num_experts", 1, 1e6, &experts, run->err));
    DL_TRY(dl_arguments_number(a, "num_experts_per_tok", 1, 1e6, &topk, run->err));
    if (!dl_known(hidden) || !dl_known(layers) || !dl_known(heads) || !dl_known(ffn)) return DL_OK;
    const char *block = dl_arguments_word(a, "decoder_block", "llama2");
    static const char known[] = " llama2 mistral mixtral llama3 ";
    if (strstr(known, dl_arena_printf(a->arena, " %s ", block)) == NULL)
        return dl_arguments_fail(a, "decoder_block", run->err,
                                 "no workload is known for a decoder of \"%.40s\": give one by "
                                 "--workload",
                                 block);
    (void)dl_arguments_word(a, "mlp_activations|base_moe_mlp_dim", "");
    *out = dl_arena_printf(
        a->arena,
        "gpt:layers=%.0f,hidden=%.0f,heads=%.0f,kv_heads=%.0f,ffn=%.0f,vocab=%.0f,seq=%.0f,"
        "mlp=swiglu,norm=rmsnorm,pos=rope,tied=%d,flash=1",
        layers, hidden, heads, dl_known(kv) ? kv : heads, ffn, vocab, seq,
        dl_arguments_flag(a, "logits_via_embedding"));
    if (dl_known(head) && head * heads != hidden)
        *out = dl_arena_printf(a->arena, "%s,head_dim=%.0f", *out, head);
    if (experts > 1)
        *out = dl_arena_printf(a->arena, "%s,experts=%.0f,topk=%.0f", *out, experts, topk);
    return DL_OK;
}

enum dl_code dl_maxtext_plan(struct dl_run *run) {
    struct dl_run_slots s;
    const char *text = NULL;
    double tp = 1, ts = 1, cp = 1, sp = 1, ep = 1, pp = 1, data = 1, fsdp = 1, transposed = 1;
    DL_TRY(dl_run_slots_read(run, maxtext_keys, &s));
    DL_TRY(axis(run, "tensor", &tp));
    DL_TRY(axis(run, "tensor_sequence", &ts));
    DL_TRY(axis(run, "context", &cp));
    DL_TRY(axis(run, "sequence", &sp));
    DL_TRY(axis(run, "expert", &ep));
    DL_TRY(axis(run, "pipeline", &pp));
    DL_TRY(axis(run, "data", &data));
    DL_TRY(axis(run, "fsdp", &fsdp));
    DL_TRY(axis(run, "fsdp_transpose", &transposed));
    s.numbers[DL_SLOT_TP] = tp * ts;
    s.numbers[DL_SLOT_CP] = cp * sp;
    s.numbers[DL_SLOT_EP] = ep;
    s.numbers[DL_SLOT_PP] = pp;
    if (!dl_known(s.numbers[DL_SLOT_SEQ])) s.numbers[DL_SLOT_SEQ] = 2048; /* of base.yml */
    if (s.words[DL_SLOT_PRECISION] == NULL) s.words[DL_SLOT_PRECISION] = "bf16";
    DL_TRY(maxtext_text(run, s.numbers[DL_SLOT_SEQ], &text));
    return dl_run_slots_plan(run, &s, text);
}

/* ---- command lines of other programs ---- */

static const struct dl_word_pair fsdp_words[] = {{"full_shard", "3"},
                                                 {"full_shard auto_wrap", "3"},
                                                 {"shard_grad_op", "2"},
                                                 {"shard_grad_op auto_wrap", "2"},
                                                 {"", "0"},
                                                 {NULL, NULL}};
static const struct dl_run_key launch_keys[] = {
    {"per_device_train_batch_size|train_micro_batch_size_per_gpu", DL_SLOT_MICRO, NULL, NULL},
    {"batch_size|local_batch_size|batch_size_per_device|batch_per_gpu", DL_SLOT_EACH, NULL, NULL},
    {"global_batch_size|train_batch_size", DL_SLOT_BATCH, NULL, NULL},
    {"gradient_accumulation_steps", DL_SLOT_ACCUMULATE, NULL, NULL},
    {"max_seq_length|max_seq_len|seq_len|block_size|model_max_length", DL_SLOT_SEQ, NULL, NULL},
    {"max_steps|num_steps", DL_SLOT_STEPS, NULL, NULL},
    {"model_name_or_path|model|arch|model_name|a", DL_SLOT_MODEL, NULL, NULL},
    {"bf16|bf16.enabled", DL_SLOT_PRECISION, NULL, "bf16"},
    {"fp16|fp16.enabled", DL_SLOT_PRECISION, NULL, "fp16"},
    {"amp|use_amp", DL_SLOT_PRECISION, NULL, "mixed"},
    {"tf32", DL_SLOT_PRECISION, NULL, "tf32"},
    {"mixed_precision|precision|dtype", DL_SLOT_PRECISION, dl_precision_pairs, NULL},
    {"optim|optimizer|optimizer.type", DL_SLOT_OPTIMIZER, dl_optimizer_pairs, NULL},
    {"gradient_checkpointing", DL_SLOT_RECOMPUTE, NULL, "full"},
    {"torch_compile", DL_SLOT_COMPILER, NULL, "inductor"},
    {"fsdp", DL_SLOT_SHARDING, fsdp_words, NULL},
    {"zero_optimization.stage|zero_stage", DL_SLOT_SHARDING, zero_stages, NULL},
    {NULL, 0, NULL, NULL}};
const struct dl_argument_class dl_launch_classes[] = {
    DL_CERTAIN,
    {DL_NOT_MODELLED,
     "*offload* deepspeed* zero_optimization.* fp16_allreduce use_adasum *lora* *qlora* "
     "fsdp_* *packing use_flash* attn_implementation ddp_* *compression* torch_compile_* "
     "*cudnn_benchmark* use_liger* *quant*"},
    {DL_COSTS_NOTHING,
     "epochs num_train_epochs num_epochs num_iters num_warmup* num_batches* bf16_full* "
     "report_to remove_unused* overwrite_* do_* push_to* local_rank dist_* world_size "
     "multiprocessing* workers j gpu verbose no_cuda"},
    {0, NULL}};

enum dl_code dl_launch_plan(struct dl_run *run) {
    struct dl_run_slots s;
    DL_TRY(dl_run_slots_read(run, launch_keys, &s));
    const char *sharding = s.words[DL_SLOT_SHARDING];
    const bool deepspeed =
        dl_arguments_find(&run->arguments, "deepspeed|deepspeed_config") != NULL ||
        dl_arguments_find(&run->arguments, "zero_optimization.stage") != NULL;
    if (deepspeed)
        deepspeed_framework(&s);
    else if (sharding != NULL && sharding[0] != '0')
        s.words[DL_SLOT_FRAMEWORK] = "pytorch-fsdp";
    else if (run->launcher != NULL && strcmp(run->launcher, "horovodrun") == 0)
        s.words[DL_SLOT_FRAMEWORK] = "horovod-pytorch";
    return dl_run_slots_plan(run, &s, NULL);
}
