/* run_classes.c - arguments that cost no time, of every framework, and those of Megatron and NeMo
 * that would change a prediction and are not modelled. */
#include <stddef.h>

#include "import/run/imported_run.h"

const struct dl_argument_class dl_common_classes[] = {
    {DL_COSTS_NOTHING,
     "lr lr_* *_lr *_lr_* learning_rate* min_lr* decoupled_* *warmup* *decay* weight_decay* wd_* "
     "adam_* adam.* *beta1 *beta2 betas beta1 beta2 eps *_eps *epsilon* clip_grad *clip* max_norm "
     "max_grad_norm momentum nesterov *scheduler.* sched.* *sched* override_opt* "
     "use_checkpoint_opt* "
     "loss_scale* initial_loss_scale min_loss_scale hysteresis native_amp_* init_method* "
     "initializer* "
     "*init_std* *_init use_scaled_init* seed *_seed rng* *random_init* "},
    {DL_COSTS_NOTHING, "save save_* *save* load load_* *load_* resume* *resume* ckpt_* dist_ckpt* "
                       "*ckpt* checkpoint.* "
                       "*checkpoint_callback* exp_manager.* exit_* *_dir *_dirs *_path *_paths "
                       "*_file *_folder *_project "
                       "*_name *_interval *_every_n_steps log_* *logging* *logger* logger.* wandb* "
                       "tensorboard* *_tensorboard "
                       "comet* mlflow* timing_* *throughput* profile profile_* profiling.* nsys* "
                       "*profil* use_pytorch_profiler "
                       "record_* one_logger* no_one_logger app_tag* otel* ft_* enable_ft* "
                       "inprocess* rerun* error_injection* "
                       "straggler* *straggler* adlr* description *description* run.* job.* "
                       "experiment.* name project comm.* "
                       "comm_* fault_tolerance.* metrics.* debug.* debug validation.* validation* "
                       "eval eval_* *eval* test_* "
                       "*val_check* limit_* valid* "},
    {DL_COSTS_NOTHING, "data_* data.* train_data* dataset dataset.* *dataset* dataloader* "
                       "*dataloader* num_workers split "
                       "splits_string mock_data *mmap* *data_path* *data_impl* tokenizer "
                       "tokenizer.* tokenizer_* *tokenizer* "
                       "vocab_file merge_file vocab_extra* special_tokens* *_token *_token_id "
                       "tiktoken* eod_mask* reset_* "
                       "create_attention_mask* no_create_attention* mask_* short_seq* *shuffle* "
                       "sampler* fim* num_dataset* "
                       "object_storage* per_split* blend* "},
    {DL_COSTS_NOTHING,
     "master_* node_rank rank *_rank local_rank rdzv* rdzv_* max_restarts monitor_interval host* "
     "hostfile "
     "distributed_backend distributed_timeout* *timeout* nccl_comm* backend port *_port conda* "
     "container* job_* hydra.* defaults* env_vars.* ENV_VARS.* TEST_TYPE LAUNCHER AFTER_SCRIPT "
     "BEFORE_SCRIPT METRICS* THROUGHPUT* MODE* N_REPEAT* NODES GPUS launcher module bind* export "
     "exclusive partition account time output error "},
    {0, NULL},
};

const struct dl_argument_class dl_megatron_classes[] = {
    DL_CERTAIN,
    {DL_NOT_MODELLED,
     "*reduced_precision* *sync_dtype *new_decoder_architecture *offload* cpu_optimizer "
     "cpu_torch_adam overlap_* "
     "no_overlap* *overlap* tp_comm* ub_tp* *cuda_graph* "
     "*cudagraph* nccl_ub use_nccl_ub nccl_communicator* ddp_bucket_size ddp_num_buckets "
     "grad_reduce_in_bf16 *grad_reduce_in_fp32 accumulate_allreduce_grads* *grads_dtype "
     "*params_dtype "
     "exp_avg* use_precision_aware* *param_gather fp8_param* fp8_wgrad no_fp8_wgrad "
     "recompute_modules recompute_layers distribute_saved* num_micro_batches_with_partial* "
     "activations_checkpoint_layers_per_pipeline partition_activations contigious_checkpointing "
     "checkpoint_in_cpu synchronize_each_layer "},
    {DL_NOT_MODELLED,
     "moe_token_dispatcher* moe_enable_deepep moe_flex* moe_permute* moe_shared_expert_overlap "
     "moe_token_drop* moe_pad* moe_a2a* delay_wgrad* *wgrad_deferral* defer_embedding* "
     "moe_router_force* moe_router_fusion moe_min_capacity moe_layer_recompute mlp_type "
     "mtp_* num_nextn* *pipeline_model_parallel_layout pipeline_* account_for_* "
     "standalone_embedding* "
     "embedding_in_pipeline* hierarchical_* cp_comm* no_pipeline_parallel rampup_batch_size "
     "no_gradient_accumulation_fusion gradient_accumulation_fusion no_*_fusion *_fusion "
     "no_persist* persist_layer_norm "
     "transformer_impl transformer_engine use_mcore_models use_legacy* deterministic* "
     "attention_softmax* "
     "*packed* packing* sft* *lora* peft.* *peft* use_te* no_rope_freq window_attn_skip* "
     "*curriculum* *random_ltd* compress* *compression* zero_* deepspeed_config hpz* zpg* "
     "use_flash_attn_builder batch_p2p_comm *sync_batch_comm fsdp_* *fsdp* nccl_* "
     "megatron_amp_O2 fp32_residual_connection *fp32_residual* sharp *sharp* use_ring_exchange* "
     "align_* num_weight_partitions* tp_only_amax* ds_* zero_optimization.* kd kd_* "
     "universal_checkpoint* "},
    {DL_COSTS_NOTHING,
     "fp16.* bf16.* exit_signal* calculate_per_token* manual_gc* gc_* *gc_interval empty_unused* "
     "check_for* "
     "no_check* "
     "rotary_* use_rope_scaling rope_* no_rope_fusion *rope_scaling* yarn_* mscale* beta_fast "
     "beta_slow "
     "moe_router* moe_aux* moe_z* moe_loss* moe_per_layer* moe_eval* moe_use_upcycling "
     "moe_input_jitter* "
     "enable_expert_tensor* create_moe_param_group moe_use_legacy* "
     "attention_type headscale normalize_attention* transformer_block_type pre_process "
     "post_process "
     "apply_query_key* no_query_key* *softmax_in_fp32 layernorm* norm_epsilon *layernorm_eps* "
     "apply_residual* onnx_safe apex_* use_cpu_init* gradient_as_bucket* bert_* "
     "grad_allreduce_chunk* grad_div* fp8_margin fp8_interval fp8_amax* fp8_recipe "
     "DDP_impl ddp_impl deepspeed deepspeed_mpi use_mup train_sync* train_iters_skip* "
     "iterations_to_skip "
     "no_async_tensor* async_tensor* use_emha *_scaling *_per_token_loss "
     "mcore_gpt mcore_bert mcore_t5 model_type retro* do_layer_norm* ffn_dropout llm.* "
     "fp16_lm_cross* use_distributed_sampler accelerator enable_progress* enable_model_summary "
     "max_epochs "
     "max_time benchmark logits_save* enable_msc disable_msc mid_level* "
     "enable_experimental bias_gelu* use_persistent* async_save rerun_mode "
     "init_model_with_meta* use_legacy_models use_dist_ckpt enable_each_rank* vision* "
     "verify_integrity legacy* finetune gradient_clip_val use_checkpoint* "
     "data_parallel_random* data_parallel_size consumed_* start_weight* end_weight* inference* "
     "first_last_layers* num_layers_at_* sequence_length seq_length encoder_seq_length* "
     "hidden_size_* test_mode lazy_mpu* *vocab_size* "},
    {0, NULL},
};
