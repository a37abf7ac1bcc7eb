/* plan.c - names of optimizers and recomputation modes. */
#include "model/plan/plan.h"

#include <string.h>

const char *const dl_optimizer_names[] = {"sgd", "momentum", "adam", "lamb", NULL};
const char *const dl_recompute_names[] = {"none", "selective", "full", NULL};
const char *const dl_assume_names[] = {"nothing", "paradl", NULL};
const char *const dl_master_weights_names[] = {"fp32", "none", NULL};
const char *const dl_compiler_names[] = {"open", "none", "xla", "inductor", NULL};
const char *const dl_switch_names[] = {"open", "0", "1", NULL};
const char *const dl_gradient_compression_names[] = {"open", "none", "fp16", "bf16", NULL};
const char *const dl_allreduce_names[] = {"auto", "flat", "hierarchical", NULL};
const char *const dl_moe_dispatch_names[] = {"open",   "alltoall", "allgather",
                                             "deepep", "hybridep", NULL};
const char *const dl_transport_names[] = {"open", "rdma", "tcp", NULL};

int64_t dl_plan_expert_ranks(const struct dl_plan *plan) {
    return plan->ep * (plan->experts.ep_within_tp_cp > 0 ? plan->experts.ep_within_tp_cp : 1);
}

const char *const dl_mapping_names[] = {"data-inside", "pipeline-inside", NULL};
