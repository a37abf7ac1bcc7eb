/* canonical.c - see canonical.h. */
#include "model/engine/canonical.h"

#include <math.h>

#include "model/engine/transformer/transformer.h"
#include "model/engine/transformer/transformer_internal.h"

extern const struct dl_strategy dl_st_data, dl_st_data_pipeline, dl_st_3d, dl_st_expert;

bool dl_plan_stacks(const struct dl_workload *workload, const struct dl_framework *framework) {
    return (framework->splits_layers || framework->shards) && dl_transformer_is_stack(workload);
}

/* Resets options that have no effect with one rank or one stage. */
static void drop_idle(struct dl_plan *plan) {
    const int64_t data = plan->dp * plan->ep * plan->sp;
    if (plan->strategy->shard > 0) plan->shard = plan->strategy->shard;
    if (data <= 1) plan->shard = 0;
    if (plan->shard <= 0 || plan->shard_group >= data) plan->shard_group = 0;
    if (plan->tp <= 1) plan->sequence_parallel = false;
    if (plan->pp <= 1) plan->schedule = DL_1F1B;
    if (dl_schedules[plan->schedule]->most_parts == 1) plan->virtual_stages = 0;
    if (plan->pp <= 1 || plan->dp * plan->ep <= 1) plan->mapping = DL_MAP_DATA_INSIDE;
    const double share = plan->global_batch_samples / (double)(plan->dp * plan->ep);
    if (plan->pp <= 1 && plan->micro_batch_samples >= share) plan->micro_batch_samples = 0;
}

/* Profiled times are of whole layers, and ParaDL's forms of data, filters and channels. Stages of
 * transformer.h hold whole layers, the parts of an interleaved one equally many; its micro-batches
 * are whole. */
static bool stack_serves(const struct dl_workload *workload, const struct dl_framework *framework,
                         const struct dl_plan *plan) {
    if (plan->measured.layer_times != NULL || plan->assume != DL_ASSUME_NOTHING) return false;
    if (!dl_plan_stacks(workload, framework)) return false;
    struct dl_transformer_choice choice;
    double micro_samples;
    dl_transformer_choice_of(plan, &choice, &micro_samples);
    const double m = choice.micro_batches;
    return (plan->stage_layers != NULL ||
            dl_transformer_takes_parts(
                workload->transformer_layers, plan->pp,
                choice.virtual_stages /
                    dl_placing_chains(dl_schedules[plan->schedule]->placing))) &&
           fabs(m - round(m)) < 1e-6;
}

struct dl_plan dl_plan_canonical(const struct dl_workload *workload,
                                 const struct dl_framework *framework,
                                 const struct dl_plan *given) {
    struct dl_plan plan = *given;
    const enum dl_partitioning way = given->strategy->partitioning;
    const int64_t parts = plan.tp * plan.sp;
    drop_idle(&plan);
    if (dl_partitions_layers(way) && parts > 1) return plan;
    const bool splits = parts * plan.pp * plan.ep > 1;
    if ((way == DL_PARTITION_TRANSFORMER && (splits || plan.shard > 0)) ||
        stack_serves(workload, framework, &plan))
        plan.strategy = plan.ep > 1 ? &dl_st_expert : &dl_st_3d;
    else
        plan.strategy = plan.pp > 1 ? &dl_st_data_pipeline : &dl_st_data;
    return plan;
}
