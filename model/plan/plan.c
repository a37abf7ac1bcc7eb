/* plan.c - names of optimizers and recomputation modes. */
#include "model/plan/plan.h"

#include <math.h>
#include <stdlib.h>

#include "model/core/text.h"

const char *const dl_optimizer_names[] = {"sgd", "momentum", "adam", "lamb", NULL};
const char *const dl_recompute_names[] = {"none", "selective", "full", NULL};
const char *const dl_module_names[] = {"attention", "mlp", "norm", "moe", "latent", NULL};
const char *const dl_assume_names[] = {"nothing", "paradl", NULL};
const char *const dl_master_weights_names[] = {"fp32", "none", NULL};
const char *const dl_compiler_names[] = {"open", "none", "xla", "inductor", NULL};
const char *const dl_switch_names[] = {"open", "0", "1", NULL};
const char *const dl_gradient_compression_names[] = {"open", "none", "fp16", "bf16", NULL};
const char *const dl_allreduce_names[] = {"auto", "flat", "hierarchical", NULL};
const char *const dl_moe_dispatch_names[] = {"open",   "alltoall", "allgather",
                                             "deepep", "hybridep", NULL};
const char *const dl_cp_comm_names[] = {"open", "ring", "allgather", "alltoall", NULL};
const char *const dl_fp8_store_names[] = {"attention", "mlp", NULL};
const char *const dl_cuda_graphs_names[] = {"open", "none", "layer", "iteration", NULL};
const char *const dl_offload_names[] = {"optimizer", "activations", "weights", NULL};
const char *const dl_transport_names[] = {"open", "rdma", "tcp", NULL};

int64_t dl_plan_expert_ranks(const struct dl_plan *plan) {
    return plan->ep * (plan->experts.ep_within_tp_cp > 0 ? plan->experts.ep_within_tp_cp : 1);
}

const char *const dl_mapping_names[] = {"data-inside", "pipeline-inside", NULL};

int dl_plan_stage_layers(const char *text, double *layers, int room) {
    enum { STAGES = 1 << 16, LAYERS = 1000000 };
    int count = 0;
    for (const char *at = text;; at++) {
        char *end;
        if (*at < '0' || *at > '9') return 0;
        long long each = strtoll(at, &end, 10), times = 1;
        if (*end == 'x' && end[1] >= '0' && end[1] <= '9')
            times = each, each = strtoll(end + 1, &end, 10);
        if (times < 1 || times > STAGES - count || each > LAYERS) return 0;
        for (; times > 0; times--, count++)
            if (layers != NULL && count < room) layers[count] = (double)each;
        at = end;
        if (*at == 0) return count;
        if (*at != ',') return 0;
    }
}

double dl_plan_recomputed_frac(const struct dl_plan *plan, double stage_layers) {
    const struct dl_plan_recomputed *r = &plan->recomputed;
    if (plan->recompute != DL_RECOMPUTE_FULL) return 1;
    if (r->every > 0) return 1 / (double)r->every;
    return r->layers > 0 ? fmin(1, (double)r->layers / stage_layers) : 1;
}

const char *dl_plan_recompute_text(const struct dl_plan *plan, struct dl_arena *arena) {
    struct dl_text text = {.arena = arena};
    if (plan->recompute != DL_RECOMPUTE_SELECTIVE || plan->recomputed.modules == 0)
        return dl_recompute_names[plan->recompute];
    for (int i = 0; dl_module_names[i] != NULL; i++) {
        if ((plan->recomputed.modules >> i & 1) == 0) continue;
        dl_text_printf(&text, "%s%s", text.length > 0 ? "," : "", dl_module_names[i]);
    }
    return dl_text_string(&text);
}

int64_t dl_common_divisor(int64_t a, int64_t b) { return b == 0 ? a : dl_common_divisor(b, a % b); }
