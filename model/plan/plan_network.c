/* plan_network.c - see dl_plan_network in plan.h. */
#include "model/plan/plan.h"
#include "model/workload/workload.h"

enum dl_code dl_plan_network(const struct dl_plan *plan, struct dl_arena *arena,
                             const struct dl_workload **workload, struct dl_err *err) {
    if (plan->tokens.packed_length_tokens > 0)
        DL_TRY(
            dl_workload_packed(*workload, plan->tokens.packed_length_tokens, arena, workload, err));
    if (plan->frozen_layers != NULL && plan->lora.rank > 0)
        return dl_fail(err, DL_ERR_USAGE, "--frozen-layers: --lora-rank freezes all layers");
    if (plan->frozen_layers != NULL)
        return dl_workload_frozen(*workload, plan->frozen_layers, arena, workload, err);
    if (plan->lora.rank > 0)
        *workload = dl_workload_adapted(*workload, plan->lora.rank, plan->lora.targets, arena);
    return DL_OK;
}
