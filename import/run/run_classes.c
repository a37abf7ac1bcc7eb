/* run_classes.c - arguments that cost no time, of every framework, and those of Megatron and NeMo
 * that would change a prediction and are not modelled. What costs no time is listed by its whole
 * name, or by a section that is about nothing else; any other name is shown as not known. */
#include <stddef.h>

#include "import/run/imported_run.h"

const struct dl_argument_class dl_common_classes[] = {
    /* frozen layers; masks of documents; timers that wait for the device; sums that logs need */
    {DL_NOT_MODELLED,
     "*freeze* *frozen* reset_attention_mask timing_log_level wall_clock_breakdown "
     "log_params_norm log_num_zeros_in_grad check_weight_hash_across_dp_replicas_interval "
     "empty_unused_memory_level torch_empty_cache_steps group_by_length"},
    {DL_COSTS_NOTHING,
     "exp_manager.* checkpoint.* profiling.* nsys_profile.* logger.* logging.* metrics.* "
     "comm.* debug.* run.* job.* hydra.* rng.* experiment.* validation.* tokenizer.* "
     "optim.sched.* optimizer.params.* scheduler.* lr_scheduler.* data.* dataset.* wandb.*"},
    {DL_COSTS_NOTHING,
     "lr min_lr decoupled_lr decoupled_min_lr learning_rate lr_decay_iters lr_decay_samples "
     "lr_decay_style lr_decay_tokens lr_mult_router lr_warmup_fraction lr_warmup_init "
     "lr_warmup_iters lr_warmup_samples lr_warmup_tokens lr_wsd_decay_samples "
     "lr_wsd_decay_iters lr_wsd_decay_style lr_scheduler_type warmup warmup_steps "
     "warmup_ratio start_weight_decay end_weight_decay weight_decay weight_decay_incr_style "
     "wd adam_beta1 adam_beta2 adam_eps adam_epsilon betas beta1 beta2 eps clip_grad "
     "max_grad_norm max_norm gradient_clipping gradient_clip_val momentum nesterov "
     "override_lr_scheduler override_opt_param_scheduler use_checkpoint_args "
     "use_checkpoint_opt_param_scheduler use_checkpoint_lr_scheduler loss_scale "
     "initial_loss_scale min_loss_scale loss_scale_window hysteresis initial_scale_power "
     "native_amp_init_scale native_amp_growth_interval init_method_std "
     "init_method_xavier_uniform use_scaled_init_method initializer_range seed rng_seed "
     "tau_init tau_decay check_for_large_grads check_for_nan_in_loss_and_grad "
     "no_check_for_nan_in_loss_and_grad check_for_spiky_loss label_smoothing_factor"},
    {DL_COSTS_NOTHING,
     "save load save_dir load_dir load_path save_path save_folder save_interval save_steps "
     "save_strategy save_total_limit save_retain_interval save_safetensors no_save_optim "
     "no_save_rng no_load_optim no_load_rng exit_on_missing_checkpoint pretrained_checkpoint "
     "exit_interval exit_duration_in_mins exit_signal_handler async_save "
     "auto_detect_ckpt_format ckpt_format ckpt_step ckpt_assume_constant_structure "
     "ckpt_drop_redundant_extra_state ckpt_convert_format ckpt_convert_save "
     "async_ckpt_use_cpu_shm use_dist_ckpt dist_ckpt_format dist_ckpt_strictness "
     "use_persistent_ckpt_worker verify_integrity resume_from_checkpoint resume output_dir "
     "logging_dir log_interval log_dir log_level log_energy "
     " log_progress log_straggler log_throughput "
     "log_throughput_to_tensorboard log_timers_to_tensorboard log_memory_interval "
     "log_memory_to_tensorboard log_batch_size_to_tensorboard "
     "log_optimizer_states_to_tensorboard log_validation_ppl_to_tensorboard "
     "log_learning_rate_to_tensorboard log_loss_scale_to_tensorboard "
     "no_log_learnig_rate_to_tensorboard log_world_size_to_tensorboard "
     "no_log_loss_scale_to_tensorboard log_every_n_steps logging_level logging_steps "
     "logging_strategy no_record_throughput timing_log_option "
     "tensorboard_dir tensorboard_log_interval tensorboard_queue_size wandb_project "
     "wandb_entity wandb_exp_name wandb_save_dir report_to run_name name project description "
     "profile profile_step_start profile_step_end profile_ranks use_pytorch_profiler "
     "nvtx_ranges steps_per_print debug verbose one_logger_async "
     "no_one_logger rerun_mode error_injection_rate error_injection_type "
     "straggler_minmax_count disable_straggler_on_startup eval_interval eval_iters "
     "eval_steps eval_micro_batch_size eval_global_batch_size evaluation_strategy "
     "eval_strategy per_device_eval_batch_size skip_train test_mode val_check_interval "
     "limit_val_batches limit_test_batches num_sanity_val_steps suspend_timeout "
     "suspend_resume_interval"},
    {DL_COSTS_NOTHING,
     "data_path data_file data_cache_path data_impl data_args_path per_split_data_args_path "
     "train_data valid_data test_data train_data_path valid_data_path test_data_path "
     "train_data_exact_num_epochs train_weighted_split_paths valid_weighted_split_paths "
     "test_weighted_split_paths dataset dataset_name dataset_config_name dataset_impl "
     "dataset_text_field train_file validation_file dataloader_type dataloader_seq_length "
     "dataloader_save dataloader_num_workers dataloader_pin_memory dataloader_drop_last "
     "num_workers num_dataset_builder_threads split split_string mock_data mmap_warmup "
     "no_mmap_bin_files tokenizer tokenizer_type tokenizer_model tokenizer_name "
     "tokenizer_path tokenizer_name_or_path tokenizer_library vocab_file merge_file "
     "vocab_extra_ids special_tokens tiktoken_pattern tiktoken_num_special_tokens "
     "tiktoken_special_tokens tokenizer_hf_include_special_tokens "
     "tokenizer_sentencepiece_legacy no_use_tokenizer_model_from_checkpoint_args "
     "eod_mask_loss reset_position_ids "
     "create_attention_mask_in_dataloader no_create_attention_mask_in_dataloader mask_prob "
     "short_seq_prob shuffle preprocessing_num_workers trust_remote_code"},
    {DL_COSTS_NOTHING,
     "master_addr master_port node_rank rank local_rank rdzv_id rdzv_backend rdzv_endpoint "
     "rdzv_conf max_restarts monitor_interval hostfile host host_rank distributed_backend "
     "distributed_timeout_minutes distributed_timeout_seconds_after_init ddp_timeout "
     "defaults config_file config_path job_name account partition time output error "
     "exclusive container_image container_mounts container_writable module"},
    {0, NULL},
};

const struct dl_argument_class dl_megatron_classes[] = {
    DL_CERTAIN,
    {DL_COSTS_NOTHING, "mtp_loss_scaling_factor"},
    {DL_NOT_MODELLED_EVEN_OFF,
     "ENV_VARS.NVTE_* ENV_VARS.NCCL_* ENV_VARS.TORCH_NCCL_* ENV_VARS.CUDA_DEVICE_MAX_CONNECTIONS "
     "ENV_VARS.NVSHMEM_* ENV_VARS.NUM_OF_* ENV_VARS.NVLINK_DOMAIN_SIZE ENV_VARS.USE_MNNVL "
     "ENV_VARS.PYTORCH_CUDA_ALLOC_CONF env_vars.NVTE_* env_vars.NCCL_*"},
    {DL_NOT_MODELLED,
     "*reduced_precision* *sync_dtype *new_decoder_architecture *offload* cpu_optimizer "
     "cpu_torch_adam overlap_* no_overlap* *overlap* tp_comm* ub_tp* *cuda_graph* "
     "*cudagraph* nccl_ub use_nccl_ub nccl_communicator* ddp_bucket_size ddp_num_buckets "
     "grad_reduce_in_bf16 *grad_reduce_in_fp32 accumulate_allreduce_grads* *grads_dtype "
     "*params_dtype exp_avg* use_precision_aware* *param_gather fp8_param* fp8_wgrad "
     "no_fp8_wgrad recompute_layers distribute_saved* "
     "num_micro_batches_with_partial* activations_checkpoint_layers_per_pipeline "
     "partition_activations contigious_checkpointing checkpoint_in_cpu "
     "synchronize_each_layer"},
    {DL_NOT_MODELLED,
     "moe_token_dispatcher* moe_enable_deepep moe_flex* moe_permute* "
     "moe_shared_expert_overlap moe_token_drop* moe_pad* moe_a2a* delay_wgrad* "
     "*wgrad_deferral* defer_embedding* moe_router_force* moe_router_fusion moe_min_capacity "
     "moe_layer_recompute mlp_type mtp_* num_nextn* *pipeline_model_parallel_layout "
     "pipeline_* account_for_* standalone_embedding* embedding_in_pipeline* hierarchical_* "
     "cp_comm* no_pipeline_parallel rampup_batch_size no_gradient_accumulation_fusion "
     "gradient_accumulation_fusion no_*_fusion *_fusion no_persist* persist_layer_norm "
     "transformer_impl transformer_engine use_mcore_models use_legacy* deterministic* "
     "attention_softmax* *packed* packing* sft* *lora* peft.* *peft* use_te* no_rope_freq "
     "window_attn_skip* *curriculum* *random_ltd* compress* *compression* zero_* "
     "deepspeed_config hpz* zpg* use_flash_attn_builder batch_p2p_comm *sync_batch_comm "
     "fsdp_* *fsdp* nccl_* megatron_amp_O2 fp32_residual_connection *fp32_residual* sharp "
     "*sharp* use_ring_exchange* align_* num_weight_partitions* tp_only_amax* ds_* "
     "zero_optimization.* kd kd_* universal_checkpoint*"},
    {DL_NOT_MODELLED,
     "moe_router_num_groups moe_router_group_topk moe_router_topk_limited_devices "
     "moe_router_dtype moe_input_jitter_eps moe_use_legacy_grouped_gemm moe_latent_size "
     "moe_apply_probs_on_input moe_combine_bwd_dtype moe_dispatch_fwd_dtype moe_deepep_num_sms "
     "moe_expert_rank_capacity_factor moe_paged_stash* moe_single_grouped_* "
     "moe_use_grouped_tensor moe_ncclep_* moe_enable_routing_replay use_grouped_gemm_for_* "
     "high_priority_a2a_comm_stream hybrid_context_parallel dynamic_context_parallel "
     "max_seqlen_per_dp_cp_rank dataloader_inter_document_masking variable_seq_lengths "
     "activation_offload_fraction *pin_cpu_* fp16_lm_cross_entropy cross_entropy_fusion_impl "
     "gradient_as_bucket_view average_in_collective bucket_size pad_buckets_for_* "
     "*reduce_scatter_with_fp32* store_param_remainders enable_full_sharding_in_hsdp "
     "use_layer_wise_distributed_optimizer memory_efficient_layer_norm mlp_chunks_for_training "
     "fused_residual_rmsnorm fused_single_qkv_rope *transpose_cache *gtp_* *mhc_* use_kitchen* "
     "kitchen_* qk_clip* deallocate_pipeline_outputs batch_p2p_sync batch_invariant_*"},
    {DL_NOT_MODELLED,
     "data_types.* rl_* outer_dp_sharding_strategy megatron_fsdp_* first_last_layers_bf16 "
     "num_layers_at_start_in_bf16 num_layers_at_end_in_bf16 "
     "no_async_tensor_model_parallel_allreduce async_tensor_model_parallel_allreduce "
     "moe_router_padding_for_* high_priority_stream_groups "
     "ddp_average_in_collective ddp_pad_buckets_for_* reuse_grad_buf_* "
     "expert_tensor_parallel_num_weight_shards tensor_parallel_num_weight_shards "
     "microbatch_group_size_* use_fused_* use_transformer_engine_op_fuser use_flashinfer_* "
     "dsa_indexer_* moe_hybridep_* grad_allreduce_chunk_size_mb optim.dtype "
     "optim.bucket_cap_mb optim.contiguous_* qk_layernorm_* sync_batch_comm"},
    {DL_COSTS_NOTHING,
     "fp16.enabled fp16.loss_scale fp16.loss_scale_window fp16.initial_scale_power "
     "fp16.hysteresis fp16.min_loss_scale fp16.auto_cast bf16.enabled exit_signal_handler "
     "calculate_per_token_loss manual_gc manual_gc_interval gc_interval manual_gc_eval "
     " rotary_base "
     "rotary_percent rotary_interleaved rotary_scaling_factor rotary_scale_factor "
     "rotary_seq_len_interpolation_factor use_rope_scaling rope_type rope_scaling_factor "
     "seq_len_interpolation_factor mscale mscale_all_dim yarn_beta_fast yarn_beta_slow "
     "yarn_original_max_position_embeddings beta_fast beta_slow "
     "moe_router_load_balancing_type moe_router_score_function moe_router_pre_softmax "
     "moe_router_topk_scaling_factor "
     "moe_router_enable_expert_bias moe_router_bias_update_rate "
     "moe_router_topk moe_aux_loss_coeff moe_loss_coeff "
     "moe_z_loss_coeff moe_per_layer_logging moe_eval_capacity_factor "
     "moe_use_upcycling create_moe_param_group attention_type "
     "headscale normalize_attention_scores transformer_block_type pre_process post_process "
     "apply_query_key_layer_scaling no_query_key_layer_scaling layernorm_epsilon "
     "layernorm_zero_centered_gamma norm_epsilon apply_residual_connection_post_layernorm "
     "onnx_safe apex_transformer_log_level use_cpu_initialization "
     "bert_binary_head bert_no_binary_head bert_load bert_embedder_type fp8_margin "
     "fp8_interval fp8_amax_history_len fp8_amax_compute_algo fp8_recipe DDP_impl deepspeed "
     "deepspeed_mpi use_mup train_iters_skip iterations_to_skip seq_length_interpolation "
     "apply_wd_to_qk_layernorm mcore_gpt mcore_bert mcore_t5 model_type "
     "do_layer_norm_weight_decay use_distributed_sampler accelerator "
     "enable_checkpointing enable_progress_bar enable_model_summary max_epochs max_time "
     "benchmark enable_experimental use_legacy_models init_model_with_meta_device finetune "
     "start_weight_decay end_weight_decay consumed_train_samples consumed_valid_samples "
     "seq_length sequence_length encoder_seq_length vocab_size extra_vocab_size "
     "padded_vocab_size max_padding_length make_vocab_size_divisible_by override_vocab_size "
     "should_pad_vocab data_parallel_size inference_max_seq_length TEST_TYPE LAUNCHER "
     "AFTER_SCRIPT BEFORE_SCRIPT METRICS MODE N_REPEAT MODEL_ARGS_2.* MODEL_ARGS_3.* "
     "MODEL_ARGS_4.* MODEL_ARGS_5.* MODEL_ARGS_10.* THROUGHPUT_TEST_PARAMS.* "
     "disable_gloo_process_groups trainer.logger tensorboard_profile create_wandb_logger"},
    {0, NULL},
};
