/* run_formats.c - formats that a table of keys describes: DeepSpeed's JSON, Accelerate's
 * YAML, llm-foundry's YAML for Composer, and command lines of other programs. */
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
    {"sequence_parallel_size", DL_SLOT_CP, NULL, NULL},
    {NULL, 0, NULL, NULL}};
/* The framework is the one that shards so; frameworks that split layers stand for DeepSpeed's
 * tensor ranks (AutoTP) and sequence ranks (Ulysses). */
static enum dl_code deepspeed_framework(struct dl_run *run, struct dl_run_slots *s) {
    const char *stage = s->words[DL_SLOT_SHARDING];
    const bool tensor = s->numbers[DL_SLOT_TP] > 1, sequence = s->numbers[DL_SLOT_CP] > 1;
    DL_TRY(dl_run_offload_deepspeed(run, stage));
    if (tensor || sequence) {
        const bool shards = stage != NULL && stage[0] >= '2' && !tensor;
        s->words[DL_SLOT_FRAMEWORK] = shards ? "pytorch-fsdp2" : "megatron-core";
        if (sequence) dl_plan_words_add(run->out, "cp-comm", "alltoall");
        dl_arguments_note(&run->arguments,
                          "layers split over tensor or sequence ranks of DeepSpeed: predicted as "
                          "--framework %s with the same ZeRO stage",
                          s->words[DL_SLOT_FRAMEWORK]);
        return DL_OK;
    }
    s->words[DL_SLOT_FRAMEWORK] = stage == NULL     ? "pytorch-ddp"
                                  : stage[0] == '1' ? "deepspeed-zero1"
                                  : stage[0] == '2' ? "deepspeed-zero2"
                                                    : "deepspeed-zero3";
    s->words[DL_SLOT_SHARDING] = NULL;
    return DL_OK;
}

/* Gradients in 16 bits on the wire; wider than they are kept is not modelled. */
static void read_wire(struct dl_run *run, struct dl_run_slots *s) {
    static const struct dl_word_pair types[] = {
        {"fp16", "fp16"}, {"bf16|bfp16", "bf16"}, {NULL, NULL}};
    const char *word = dl_arguments_peek(&run->arguments, "communication_data_type"),
               *type = word != NULL ? dl_paired(types, word) : NULL;
    if (type == NULL) return;
    (void)dl_arguments_find(&run->arguments, "communication_data_type");
    s->words[DL_SLOT_COMPRESSION] = type;
}

enum dl_code dl_deepspeed_plan(struct dl_run *run) {
    struct dl_run_slots s;
    DL_TRY(dl_run_slots_read(run, deepspeed_keys, &s));
    read_wire(run, &s);
    DL_TRY(deepspeed_framework(run, &s));
    return dl_run_slots_plan(run, &s, NULL);
}

/* ---- Accelerate ---- */

static const struct dl_word_pair distributed_types[] = {{"FSDP", "pytorch-fsdp"},
                                                        {"MULTI_GPU|NO", "pytorch-ddp"},
                                                        {"DEEPSPEED", "deepspeed"},
                                                        {"MEGATRON_LM", "megatron-core"},
                                                        {NULL, NULL}};
/* FULL_SHARD gathers again in backward, HYBRID_SHARD does so within nodes. */
static const struct dl_word_pair shardings[] = {
    {"FULL_SHARD|1", "3"},
    {"SHARD_GRAD_OP|2", "2"},
    {"NO_SHARD|3", "0"},
    {"HYBRID_SHARD|4", "hybrid3"},
    {"_HYBRID_SHARD_ZERO2|HYBRID_SHARD_ZERO2|5", "hybrid2"},
    {NULL, NULL}};
/* The second version of FSDP says it by this flag, the first by the words above. */
static const struct dl_word_pair resharding[] = {
    {"true|FULL_SHARD", "3"},    {"false|SHARD_GRAD_OP", "2"},      {"NO_SHARD", "0"},
    {"HYBRID_SHARD", "hybrid3"}, {"HYBRID_SHARD_ZERO2", "hybrid2"}, {NULL, NULL}};
static const struct dl_run_key accelerate_keys[] = {
    {"distributed_type", DL_SLOT_FRAMEWORK, distributed_types, NULL},
    {"num_machines", DL_SLOT_NODES, NULL, NULL},
    {"num_processes", DL_SLOT_RANKS, NULL, NULL},
    {"mixed_precision", DL_SLOT_PRECISION, dl_precision_pairs, NULL},
    {"fsdp_config.fsdp_sharding_strategy", DL_SLOT_SHARDING, shardings, NULL},
    {"fsdp_config.fsdp_reshard_after_forward", DL_SLOT_SHARDING, resharding, NULL},
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
/* FSDP shards in full unless the file says otherwise. */
static void add_fsdp_offload(struct dl_run *run, const struct dl_run_slots *s, const char *names) {
    const char *stage = s->words[DL_SLOT_SHARDING];
    dl_run_offload_fsdp(run, names, stage != NULL ? stage[0] - '0' : 3);
}

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
    if (framework != NULL && strcmp(framework, "deepspeed") == 0)
        DL_TRY(deepspeed_framework(run, &s));
    else if (!fsdp)
        s.words[DL_SLOT_SHARDING] = NULL;
    if (fsdp) add_fsdp_offload(run, &s, "fsdp_config.fsdp_offload_params");
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
    {"model.pretrained_model_name_or_path|model.name_or_path|model.pretrained_model_name",
     DL_SLOT_MODEL, NULL, NULL},
    {NULL, 0, NULL, NULL}};
static const struct dl_run_shape mpt_shape[] = {
    {"model.d_model", "hidden", NAN},
    {"model.n_layers", "layers", NAN},
    {"model.n_heads", "heads", NAN},
    {"model.attn_config.kv_n_heads", "kv_heads", NAN},
    {"model.vocab_size", "vocab", NAN},
    {"max_seq_len|model.max_seq_len", "seq", 2048},
    {NULL, NULL, 0},
};

/* MPT's shape; a model of a hub is known by its name. */
static enum dl_code mpt_text(struct dl_run *run, const char **out) {
    struct dl_arguments *a = &run->arguments;
    struct dl_text text = {.arena = a->arena};
    double ratio = 4, hidden = NAN;
    DL_TRY(dl_arguments_number(a, "model.expansion_ratio", 0.1, 1e3, &ratio, run->err));
    DL_TRY(dl_arguments_number(a, "model.d_model", 1, 1e9, &hidden, run->err));
    if (!dl_known(hidden)) return DL_OK;
    const bool alibi = dl_arguments_flag(a, "model.attn_config.alibi"),
               rope = dl_arguments_flag(a, "model.attn_config.rope"),
               bare = dl_arguments_flag(a, "model.no_bias");
    dl_text_printf(&text, "gpt:pos=%s,tied=1,bias=%d,norm_bias=%d,dropout=0,flash=1,ffn=%.0f",
                   rope    ? "rope"
                   : alibi ? "none"
                           : "learned",
                   !bare, !bare, ratio * hidden);
    DL_TRY(dl_run_shape_add(run, mpt_shape, &text));
    *out = dl_text_string(&text);
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
    add_fsdp_offload(run, &s, "fsdp_config.cpu_offload");
    return dl_run_slots_plan(run, &s, text);
}

/* ---- command lines of other programs ---- */

static const struct dl_word_pair fsdp_words[] = {
    {"full_shard|full_shard auto_wrap|full_shard offload|full_shard auto_wrap offload|full_shard "
     "offload auto_wrap",
     "3"},
    {"shard_grad_op|shard_grad_op auto_wrap|shard_grad_op offload|shard_grad_op auto_wrap offload",
     "2"},
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
/* --fsdp "full_shard auto_wrap offload" of Hugging Face's trainer. */
static void launch_fsdp(struct dl_run *run, struct dl_run_slots *s) {
    const char *words = dl_arguments_word(&run->arguments, "fsdp", "");
    s->words[DL_SLOT_FRAMEWORK] = "pytorch-fsdp";
    if (strstr(words, "offload") != NULL) add_fsdp_offload(run, s, "fsdp");
}

enum dl_code dl_launch_plan(struct dl_run *run) {
    struct dl_run_slots s;
    DL_TRY(dl_run_slots_read(run, launch_keys, &s));
    const char *sharding = s.words[DL_SLOT_SHARDING];
    const bool deepspeed =
        dl_arguments_find(&run->arguments, "deepspeed|deepspeed_config") != NULL ||
        dl_arguments_find(&run->arguments, "zero_optimization.stage") != NULL;
    if (deepspeed)
        DL_TRY(deepspeed_framework(run, &s));
    else if (sharding != NULL && sharding[0] != '0')
        launch_fsdp(run, &s);
    else if (run->launcher != NULL && strcmp(run->launcher, "horovodrun") == 0)
        s.words[DL_SLOT_FRAMEWORK] = "horovod-pytorch";
    return dl_run_slots_plan(run, &s, NULL);
}
