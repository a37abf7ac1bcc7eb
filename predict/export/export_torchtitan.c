/* export_torchtitan.c - a plan as torchtitan's TOML: names of torchtitan/config/job_config.py. Its
 * models come in flavors; the number of devices is that of the launch, printed as a comment. */
#include <math.h>
#include <string.h>

#include "import/run/torchtitan_models.h"
#include "model/engine/strategies/strategy.h"
#include "predict/export/export.h"

static const struct dl_torchtitan_model *model_of(const struct dl_workload *workload) {
    const struct dl_torchtitan_model *m = dl_torchtitan_models;
    while (m->workload != NULL && strcmp(m->workload, workload->name) != 0) m++;
    return m->workload != NULL && workload->transformer_layers == m->layers ? m : NULL;
}

static enum dl_code check(const struct dl_plan *plan, const struct dl_workload *workload,
                          struct dl_err *err) {
    const char *why = NULL;
    if (!dl_known(workload->sequence) || !dl_known(workload->transformer_layers))
        why = "the workload is no stack of transformer layers with a sequence length";
    else if (dl_workload_has_state(workload))
        why = "it has no models with Mamba or linear attention layers";
    else if (plan->precision != DL_BF16 && plan->precision != DL_FP32 &&
             plan->precision != DL_FP8 && plan->precision != DL_MXFP8)
        why = "it trains in bf16, fp32, fp8 or mxfp8";
    else if (dl_schedules[plan->schedule]->torch_name == NULL)
        why = "torch.distributed.pipelining has no such pipeline schedule";
    else if (plan->optimizer != DL_ADAM)
        why = "its optimizer is Adam";
    return why == NULL ? DL_OK : dl_fail(err, DL_ERR_USAGE, "--export torchtitan: %s", why);
}

/* A flavor, or what to register as one. */
static void add_model(const struct dl_workload *w, struct dl_text *out) {
    static const char *const keys[] = {"layers", "hidden",  "heads", "kv_heads", "ffn",
                                       "vocab",  "experts", "topk",  NULL};
    const struct dl_torchtitan_model *model = model_of(w);
    dl_text_add(out, "[model]\n");
    if (model != NULL) {
        dl_text_printf(out, "name = \"%s\"\nflavor = \"%s\"\n", model->name, model->flavor);
        return;
    }
    dl_text_add(out, "# torchtitan has no flavor of this size; register one with");
    for (int i = 0; keys[i] != NULL; i++) {
        const double value = dl_export_number(w, keys[i], NAN);
        if (dl_known(value)) dl_text_printf(out, " %s=%.15g", keys[i], value);
    }
    dl_text_add(out, "\nname = \"llama3\"\nflavor = \"custom\"\n");
}

static void add_parallelism(const struct dl_plan *plan, struct dl_text *out) {
    const int64_t zero = dl_rows_zero(plan), data = plan->dp * plan->ep,
                  group = plan->shard_group > 0 ? plan->shard_group / plan->sp : data,
                  shards = zero > 0 && group > 0 ? group : 1;
    dl_text_printf(out,
                   "\n[parallelism]\ndata_parallel_replicate_degree = %lld\n"
                   "data_parallel_shard_degree = %lld\n",
                   (long long)(data / shards), (long long)shards);
    if (zero > 0)
        dl_text_printf(out, "fsdp_reshard_after_forward = \"%s\"\n",
                       zero == 3 ? "always" : "never");
    dl_text_printf(out,
                   "tensor_parallel_degree = %lld\ncontext_parallel_degree = %lld\n"
                   "expert_parallel_degree = %lld\npipeline_parallel_degree = %lld\n",
                   (long long)plan->tp, (long long)plan->sp, (long long)dl_plan_expert_ranks(plan),
                   (long long)plan->pp);
    if (plan->pp > 1)
        dl_text_printf(out,
                       "pipeline_parallel_schedule = \"%s\"\npipeline_parallel_microbatch_size = "
                       "%.15g\n",
                       dl_schedules[plan->schedule]->torch_name, dl_export_micro_batch(plan));
}

/* Layers of a virtual stage, from which torchtitan finds their number. */
static void add_virtual_stages(const struct dl_workload *w, const struct dl_plan *plan,
                               struct dl_text *out) {
    const double v = dl_schedule_parts(plan->schedule, (double)plan->virtual_stages);
    if (plan->pp > 1 && v > 1)
        dl_text_printf(out, "pipeline_parallel_layers_per_stage = %.0f\n",
                       ceil(w->transformer_layers / ((double)plan->pp * v)));
}

/* Its selective mode repeats operations, or one of several layers. */
static enum dl_code add_recompute(const struct dl_plan *plan, struct dl_text *out,
                                  struct dl_err *err) {
    const struct dl_plan_recomputed *some = &plan->recomputed;
    const bool every = plan->recompute == DL_RECOMPUTE_FULL && some->every > 1;
    if (some->layers > 0 || some->modules != 0)
        return dl_fail(err, DL_ERR_USAGE,
                       "--export torchtitan: it recomputes operations, all layers or one of "
                       "several: give --recompute or --recompute-every");
    dl_text_printf(out, "\n[activation_checkpoint]\nmode = \"%s\"\n",
                   every ? "selective" : dl_recompute_names[plan->recompute]);
    if (every)
        dl_text_printf(out, "selective_ac_option = \"%lld\"\n", (long long)some->every);
    else if (plan->recompute == DL_RECOMPUTE_SELECTIVE)
        dl_text_add(out, "selective_ac_option = \"op\"\n");
    return DL_OK;
}

/* Its offload moves shards, gradients and states together; weights gathered for the whole step stay
 * on the device. */
static enum dl_code add_offload(const struct dl_plan *plan, struct dl_text *out,
                                struct dl_err *err) {
    const bool resharded = dl_rows_zero(plan) == 3;
    const unsigned all = 1u << (resharded ? DL_OFFLOAD_WEIGHTS : DL_OFFLOAD_OPTIMIZER);
    if (plan->offload.what == 0) return DL_OK;
    if (dl_rows_zero(plan) < 2 || plan->offload.what != all ||
        (plan->offload.frac > 0 && plan->offload.frac < 1))
        return dl_fail(err, DL_ERR_USAGE,
                       "--export torchtitan: enable_cpu_offload moves all shards, gradients and "
                       "states: give --zero 3 --offload weights, or --zero 2 --offload optimizer");
    dl_text_add(out, "enable_cpu_offload = true\n");
    return DL_OK;
}

enum dl_code dl_export_torchtitan(const struct dl_export_request *request, struct dl_text *out,
                                  struct dl_err *err) {
    const struct dl_prediction_row *row = request->row;
    const struct dl_plan *plan = row->plan;
    const double steps = dl_rows_total(row).iteration_count, share = dl_export_share(plan);
    DL_TRY(check(plan, row->workload, err));
    dl_text_printf(out,
                   "# %lld nodes of %lld devices: torchrun --nnodes %lld --nproc-per-node %lld\n",
                   (long long)plan->nodes, (long long)plan->devices_per_node,
                   (long long)plan->nodes, (long long)plan->devices_per_node);
    add_model(row->workload, out);
    if (plan->precision == DL_FP8) dl_text_add(out, "converters = [\"float8\"]\n");
    if (plan->precision == DL_MXFP8) dl_text_add(out, "converters = [\"mx\"]\n");
    dl_text_printf(out,
                   "\n[optimizer]\nname = \"AdamW\"\n\n[training]\nlocal_batch_size = %.15g\n"
                   "global_batch_size = %.15g\nseq_len = %.15g\nmixed_precision_param = \"%s\"\n",
                   plan->pp > 1 ? share : dl_export_micro_batch(plan), plan->global_batch_samples,
                   row->workload->sequence, plan->precision == DL_FP32 ? "float32" : "bfloat16");
    if (dl_known(steps)) dl_text_printf(out, "steps = %.0f\n", steps);
    DL_TRY(add_offload(plan, out, err));
    add_parallelism(plan, out);
    add_virtual_stages(row->workload, plan, out);
    DL_TRY(add_recompute(plan, out, err));
    dl_text_printf(out, "\n[compile]\nenable = %s\n",
                   plan->compiler == DL_COMPILER_INDUCTOR ? "true" : "false");
    return DL_OK;
}
