/* default_plan.c - see the header. */
#include "predict/inputs/default_plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/engine/strategies/strategy.h"
#include "model/search/search.h"

/* Longer sequences are worth context parallelism. */
static const double LONG_SEQUENCE = 16384;

static const struct dl_strategy *own_strategy(const struct dl_framework *framework) {
    return dl_strategy_find(framework->strategy != NULL ? framework->strategy : "data");
}

static bool is_open(const struct dl_inputs *inputs, const struct dl_plan *plan) {
    return plan->strategy == NULL && plan->dp <= 0 && plan->tp <= 0 && plan->pp <= 0 &&
           plan->sp <= 0 && plan->ep <= 0 && plan->micro_batch_samples <= 0 &&
           !inputs->max_micro_batch && !inputs->max_batch && !inputs->given.zero &&
           plan->shard_group <= 0 && plan->assume == DL_ASSUME_NOTHING;
}

static void read_request(const struct dl_inputs *inputs, const struct dl_framework *framework,
                         const struct dl_plan *plan, struct dl_search_request *r) {
    const struct dl_strategy *own = own_strategy(framework);
    const bool splits = (own->axes & DL_AXIS_TP) != 0;
    *r = (struct dl_search_request){
        .system = inputs->system,
        .workload = inputs->workload,
        .framework = framework,
        .fixed = *plan,
        .nodes = {plan->nodes},
        .node_count = 1,
        .objective = DL_BY_TIME,
        .keep = 1,
        .any_schedule = !inputs->given.schedule,
        .any_sequence_parallel = !inputs->given.sequence_parallel,
        .memory_bytes = DL_TIGHT_FRAC * inputs->system->device->memory_bytes,
        .memo = inputs->memo,
    };
    struct dl_plan *fixed = &r->fixed;
    if (fixed->devices_per_node <= 0) fixed->devices_per_node = inputs->system->devices_per_node;
    if (fixed->global_batch_samples <= 0)
        fixed->global_batch_samples =
            fixed->batch_per_device_samples * (double)(plan->nodes * fixed->devices_per_node);
    fixed->batch_per_device_samples = 0;
    if (!splits) {
        fixed->strategy = own;
        fixed->tp = fixed->pp = fixed->ep = 1;
    }
    fixed->shard = splits ? framework->shards : own->shard; /* split: a distributed optimizer */
    if (!(inputs->workload->sequence >= LONG_SEQUENCE) || !splits) fixed->sp = 1;
}

static enum dl_code run_search(const struct dl_search_request *r, struct dl_arena *arena,
                               struct dl_search_worker *worker, struct dl_plan *plan, bool *found,
                               struct dl_err *err) {
    struct dl_search *search;
    DL_TRY(dl_search_prepare(r, arena, &search, err));
    dl_search_worker_clear(worker);
    for (int64_t i = 0; i < dl_search_cost_count(search); i++)
        DL_TRY(dl_search_make_cost(search, i, err));
    for (int64_t i = 0; i < dl_search_tasks(search); i++)
        DL_TRY(dl_search_run_task(search, i, worker, err));
    *found = worker->best_count > 0;
    if (*found) *plan = dl_search_plan(search, &worker->best[0]);
    return DL_OK;
}

/* F-DEFAULT-PLAN */
enum dl_code dl_default_plan(const struct dl_inputs *inputs, const struct dl_framework *framework,
                             const struct dl_prediction *tried, struct dl_plan *plan, bool *changed,
                             struct dl_err *err) {
    const struct dl_strategy *own = own_strategy(framework);
    const bool splits = own != NULL && (own->axes & DL_AXIS_TP) != 0;
    struct dl_arena arena = {0};
    struct dl_search_request request;
    struct dl_err refused = {.code = DL_OK};
    *changed = false;
    if (own == NULL || !dl_known(inputs->workload->transformer_layers) ||
        !(splits ? tried == NULL : own->shard > 0 && tried != NULL) || !is_open(inputs, plan))
        return DL_OK;
    if (tried != NULL && tried->memory.total_bytes <= DL_TIGHT_FRAC * tried->memory.capacity_bytes)
        return DL_OK;
    struct dl_search_worker *worker = malloc(sizeof *worker);
    if (worker == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    read_request(inputs, framework, plan, &request);
    enum dl_code code = run_search(&request, &arena, worker, plan, changed, &refused);
    request.memory_bytes = 0; /* all of it */
    if (code == DL_OK && !*changed)
        code = run_search(&request, &arena, worker, plan, changed, &refused);
    const bool failed = arena.failed;
    dl_arena_free(&arena);
    free(worker);
    return failed ? dl_fail(err, DL_ERR_SYSTEM, "out of memory") : DL_OK;
}
