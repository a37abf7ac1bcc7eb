/* export_deepspeed.c - a plan as DeepSpeed's configuration: names of its documentation, "DeepSpeed
 * Configuration JSON". The model is the program's; tensor, pipeline and context ranks are arguments
 * of the program too. */
#include <math.h>

#include "model/engine/strategies/strategy.h"
#include "predict/export/export.h"

/* Optimizer states of each stage, all of them below stage 3; with weights, all of both. */
static enum dl_code check_offload(const struct dl_plan *plan, struct dl_err *err) {
    const int64_t zero = dl_rows_zero(plan);
    const bool weights = plan->offload.what == 1u << DL_OFFLOAD_WEIGHTS,
               part = plan->offload.frac > 0 && plan->offload.frac < 1;
    if (plan->offload.what == 0) return DL_OK;
    if (!weights && plan->offload.what != 1u << DL_OFFLOAD_OPTIMIZER)
        return dl_fail(err, DL_ERR_USAGE,
                       "--export deepspeed: of --offload it takes optimizer or weights, one of "
                       "them");
    if (zero == 0 || (part && (weights || zero < 3)))
        return dl_fail(err, DL_ERR_USAGE, "--export deepspeed: %s",
                       zero == 0 ? "it offloads states with ZeRO stages 1 to 3"
                                 : "--offload-fraction goes with --offload optimizer of ZeRO "
                                   "stage 3");
    return DL_OK;
}

static enum dl_code check(const struct dl_plan *plan, struct dl_err *err) {
    if (plan->pp > 1 || plan->sp > 1 || plan->ep > 1)
        return dl_fail(
            err, DL_ERR_USAGE,
            "--export deepspeed: pipeline, context and expert ranks are arguments of the "
            "program, not of the configuration; --export megatron prints those of "
            "Megatron-DeepSpeed's kind");
    if (plan->precision == DL_FP8 || plan->precision == DL_MXFP8 || plan->precision == DL_NVFP4 ||
        plan->precision == DL_TF32)
        return dl_fail(err, DL_ERR_USAGE, "--export deepspeed: its configuration has no %s",
                       dl_precision_names[plan->precision]);
    return check_offload(plan, err);
}

static void add_host(struct dl_json_writer *w, const char *name, double frac) {
    dl_jw_object(w, name);
    dl_jw_string(w, "device", "cpu");
    dl_jw_bool(w, "pin_memory", true);
    if (frac > 0 && frac < 1) dl_jw_number(w, "ratio", frac);
    dl_jw_end(w);
}

static void add_zero(struct dl_json_writer *w, const struct dl_prediction_row *row) {
    const struct dl_plan *plan = row->plan;
    const double bucket = row->framework->sync.bucket_bytes;
    const int64_t zero = dl_rows_zero(plan);
    dl_jw_object(w, "zero_optimization");
    dl_jw_integer(w, "stage", zero);
    dl_jw_bool(w, "overlap_comm", row->framework->sync.overlaps_backward);
    if (zero > 0 && dl_known(bucket)) /* elements of 2 bytes */
        dl_jw_integer(w, "reduce_bucket_size", (int64_t)(bucket / 2));
    if (plan->shard_group > 0) dl_jw_integer(w, "mics_shard_size", plan->shard_group);
    if (plan->offload.what != 0) {
        add_host(w, "offload_optimizer", plan->offload.frac);
        if (plan->offload.what == 1u << DL_OFFLOAD_WEIGHTS) add_host(w, "offload_param", 0);
    }
    dl_jw_end(w);
}

static void add_optimizer(struct dl_json_writer *w, enum dl_optimizer optimizer) {
    static const char *const names[] = {"SGD", "SGD", "Adam", "Lamb"};
    dl_jw_object(w, "optimizer");
    dl_jw_string(w, "type", names[optimizer]);
    dl_jw_object(w, "params");
    if (optimizer == DL_MOMENTUM) dl_jw_number(w, "momentum", 0.9);
    dl_jw_end(w);
    dl_jw_end(w);
}

enum dl_code dl_export_deepspeed(const struct dl_export_request *request, struct dl_text *out,
                                 struct dl_err *err) {
    const struct dl_prediction_row *row = request->row;
    const struct dl_plan *plan = row->plan;
    const double micro = dl_export_micro_batch(plan), share = dl_export_share(plan);
    struct dl_json_writer w;
    DL_TRY(check(plan, err));
    dl_jw_init(&w, request->arena, false);
    dl_jw_object(&w, NULL);
    dl_jw_number(&w, "train_batch_size", plan->global_batch_samples);
    dl_jw_number(&w, "train_micro_batch_size_per_gpu", micro);
    dl_jw_number(&w, "gradient_accumulation_steps", round(share / micro));
    if (plan->precision == DL_FP16 || plan->precision == DL_MIXED || plan->precision == DL_BF16) {
        dl_jw_object(&w, plan->precision == DL_BF16 ? "bf16" : "fp16");
        dl_jw_bool(&w, "enabled", true);
        dl_jw_end(&w);
    }
    if (plan->settings.gradient_compression > 1 /* "none" */)
        dl_jw_string(&w, "communication_data_type",
                     dl_gradient_compression_names[plan->settings.gradient_compression]);
    add_zero(&w, row);
    if (plan->tp > 1) {
        dl_jw_object(&w, "tensor_parallel");
        dl_jw_integer(&w, "autotp_size", plan->tp);
        dl_jw_end(&w);
    }
    add_optimizer(&w, plan->optimizer);
    dl_jw_end(&w);
    dl_text_add(out, w.text);
    dl_text_add(out, "\n");
    return DL_OK;
}
