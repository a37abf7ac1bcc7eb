/* plan_choice.c - see plan_choice.h. */
#include "model/search/plan_choice.h"

#include <math.h>

#include "model/engine/canonical.h"
#include "model/engine/strategies/strategy.h"

static const struct dl_strategy *own_strategy(const struct dl_framework *framework) {
    return framework->strategy != NULL ? dl_strategy_find(framework->strategy) : NULL;
}

enum dl_code dl_plan_keep_states_whole(const struct dl_framework *framework,
                                       const struct dl_plan_given *given, struct dl_plan *plan,
                                       struct dl_err *err) {
    const struct dl_strategy *strategy = plan->strategy, *own = own_strategy(framework);
    if (!given->zero || plan->shard > 0) return DL_OK;
    if (strategy != NULL && strategy->shard > 0)
        return dl_fail(err, DL_ERR_USAGE,
                       "--zero 0: strategy %s shards states; leave one of the two out",
                       strategy->name);
    if (strategy != NULL || own == NULL || own->shard == 0) return DL_OK;
    const bool more = plan->tp > 1 || plan->pp > 1 || plan->sp > 1;
    plan->strategy = dl_strategy_find(plan->ep > 1 ? "expert" : more ? "3d" : "data");
    return DL_OK;
}

/* A strategy fixes the axes that it does not split at 1, and zero1 to zero3 fix the stage. */
static void fix_strategy(struct dl_search_request *r) {
    struct dl_plan *fixed = &r->fixed;
    if (fixed->strategy == NULL) return;
    const struct {
        unsigned axis;
        int64_t *ranks;
    } all[] = {{DL_AXIS_DP, &fixed->dp},
               {DL_AXIS_TP, &fixed->tp},
               {DL_AXIS_PP, &fixed->pp},
               {DL_AXIS_SP, &fixed->sp},
               {DL_AXIS_EP, &fixed->ep}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if ((fixed->strategy->axes & all[i].axis) == 0) *all[i].ranks = 1;
    }
    if (fixed->strategy->shard == 0) return;
    fixed->shard = fixed->strategy->shard;
    r->any_shard = false;
}

void dl_plan_search_request(const struct dl_plan_question *q, struct dl_search_request *out) {
    *out = (struct dl_search_request){
        .system = q->system,
        .workload = q->workload,
        .framework = q->framework,
        .fixed = q->plan,
        .nodes = {q->plan.nodes},
        .node_count = 1,
        .keep = 1,
        .objective = DL_BY_TIME,
        .any_schedule = !q->given.schedule,
        .any_mapping = !q->given.mapping,
        .any_sequence_parallel = !q->given.sequence_parallel,
        .any_shard = !q->given.zero,
        .memo = q->memo,
    };
    struct dl_plan *fixed = &out->fixed;
    if (fixed->devices_per_node <= 0) fixed->devices_per_node = q->system->devices_per_node;
    if (fixed->global_batch_samples <= 0)
        fixed->global_batch_samples =
            fixed->batch_per_device_samples * (double)(fixed->nodes * fixed->devices_per_node);
    fixed->batch_per_device_samples = 0;
    fix_strategy(out);
    /* the framework is one mode of sharding: deepspeed-zero2, pytorch-fsdp */
    const struct dl_strategy *own = own_strategy(q->framework);
    if (!out->any_shard || own == NULL || own->shard == 0 || q->framework->splits_layers) return;
    fixed->shard = own->shard;
    out->any_shard = false;
}

/* Whether the user described a whole plan: a strategy, which fills its own axes, ranks and the size
 * of micro-batches, or groups of data ranks that share states (HSDP) of a framework that shards by
 * itself. Then other options keep their plain defaults. */
static bool is_whole(const struct dl_plan *plan, const struct dl_framework *framework) {
    const bool ranks = plan->dp > 0 || plan->tp > 0 || plan->pp > 0 || plan->sp > 0 || plan->ep > 0;
    const struct dl_strategy *own = own_strategy(framework);
    const bool grouped = plan->shard_group > 0 && own != NULL && own->shard > 0;
    return plan->strategy != NULL || (ranks ? plan->micro_batch_samples > 0 : grouped);
}

/* Whether the search completes the plan. */
static bool is_searched(const struct dl_plan_question *q) {
    const struct dl_plan *plan = &q->plan;
    const bool crowded = plan->ep > 0 && plan->experts.imbalance_ratio > (double)plan->ep;
    return !is_whole(plan, q->framework) && !crowded && plan->assume == DL_ASSUME_NOTHING &&
           plan->measured.layer_times == NULL && plan->backup_workers == 0 &&
           dl_plan_stacks(q->workload, q->framework);
}

static enum dl_code run_search(const struct dl_search_request *r, struct dl_arena *arena,
                               struct dl_search_worker *worker, struct dl_plan *plan,
                               struct dl_err *err) {
    struct dl_search *search;
    DL_TRY(dl_search_prepare(r, arena, &search, err));
    dl_search_worker_clear(worker);
    for (int64_t i = 0; i < dl_search_cost_count(search); i++)
        DL_TRY(dl_search_make_cost(search, i, err));
    for (int64_t i = 0; i < dl_search_tasks(search); i++)
        DL_TRY(dl_search_run_task(search, i, worker, err));
    if (worker->best_count > 0)
        *plan = dl_search_plan(search, dl_search_choice(worker));
    else if (worker->has_nearest)
        *plan = dl_search_plan(search, &worker->nearest);
    return DL_OK;
}

/* What is open in the plan, from the search; unchanged where a search cannot find any: then
 * dl_plan_complete says what is wrong. */
static enum dl_code choose(const struct dl_plan_question *q, struct dl_plan *plan,
                           struct dl_err *err) {
    struct dl_arena arena = {0};
    struct dl_err refused = {.code = DL_OK};
    struct dl_search_request request;
    if (!is_searched(q)) return DL_OK;
    struct dl_search_worker *worker = dl_arena_alloc(&arena, 1, sizeof *worker);
    dl_plan_search_request(q, &request);
    const enum dl_code code = run_search(&request, &arena, worker, plan, &refused);
    dl_arena_free(&arena);
    if (code != DL_ERR_SYSTEM) return DL_OK;
    *err = refused;
    return code;
}

static enum dl_code predict(const struct dl_plan_question *q, const struct dl_plan *plan,
                            const struct dl_predict_options *options, struct dl_arena *arena,
                            struct dl_plan *plan_out, struct dl_prediction *out,
                            struct dl_err *err) {
    *plan_out = *plan;
    DL_TRY(dl_plan_complete(q->system, q->workload, q->framework, plan_out, err));
    return dl_predict_complete(&(struct dl_predict_request){.system = q->system,
                                                            .workload = q->workload,
                                                            .framework = q->framework,
                                                            .plan = plan_out,
                                                            .options = options,
                                                            .arena = arena},
                               out, err);
}

static enum dl_code answer(const struct dl_plan_question *q,
                           const struct dl_predict_options *options, struct dl_arena *arena,
                           struct dl_plan *plan_out, struct dl_prediction *out,
                           struct dl_err *err) {
    struct dl_plan plan = q->plan;
    DL_TRY(choose(q, &plan, err));
    return predict(q, &plan, options, arena, plan_out, out, err);
}

/* Whether a batch per device fits; an impossible plan does not. */
static enum dl_code batch_fits(const struct dl_plan_question *q, double samples,
                               struct dl_arena *arena, bool *fits, struct dl_err *err) {
    const struct dl_predict_options options = {.memo = q->memo};
    struct dl_plan_question tried = *q;
    struct dl_plan plan;
    struct dl_prediction p;
    struct dl_err refused = {.code = DL_OK};
    tried.plan.batch_per_device_samples = samples;
    const enum dl_code code = answer(&tried, &options, arena, &plan, &p, &refused);
    *fits = code == DL_OK && p.fits;
    if (code != DL_ERR_SYSTEM) return DL_OK;
    *err = refused;
    return code;
}

/* F-MAX-BATCH: of the plan for one sample per device, how many times its micro-batch still fits
 * in as many micro-batches. */
static enum dl_code largest_batch(const struct dl_plan_question *q, struct dl_arena *arena,
                                  double *samples, struct dl_err *err) {
    const struct dl_predict_options options = {.memo = q->memo};
    struct dl_plan_question one = *q;
    struct dl_plan plan;
    struct dl_prediction p;
    bool fits = true;
    one.plan.batch_per_device_samples = 1;
    if (q->plan.micro_batch_samples > 0)
        return dl_fail(err, DL_ERR_USAGE,
                       "--batch-per-device max: micro-batches of a given size fit in any number; "
                       "leave --micro-batch out, or give a number");
    DL_TRY(answer(&one, &options, arena, &plan, &p, err));
    if (!p.fits)
        return dl_fail(err, DL_ERR_NO, "%s on %s: not even one sample per device fits in memory",
                       q->workload->name, q->system->name);
    const double share = plan.global_batch_samples / (double)(plan.dp * plan.ep),
                 micro = plan.micro_batch_samples > 0 ? plan.micro_batch_samples : share;
    const double most =
        floor(p.stage_count > 0 ? p.max_micro_batch_samples / micro : p.max_batch_samples);
    if (!dl_known(most))
        return dl_fail(err, DL_ERR_USAGE,
                       "--batch-per-device max: the memory of %s is unknown; give a number",
                       q->system->device->name);
    double low = 1, high = fmax(most, 1);
    DL_TRY(batch_fits(q, high, arena, &fits, err));
    *samples = high;
    while (!fits && high - low > 1) {
        const double middle = floor((low + high) / 2);
        bool more;
        DL_TRY(batch_fits(q, middle, arena, &more, err));
        *(more ? &low : &high) = middle;
        *samples = low;
    }
    if (!fits) *samples = low;
    return DL_OK;
}

/* The largest micro-batch that divides the share of a data rank and fits. The first that is tried
 * is the model's own bound, which a schedule or the division may refuse. */
static enum dl_code largest_micro_batch(const struct dl_plan_question *q, struct dl_plan *plan,
                                        struct dl_arena *arena, struct dl_err *err) {
    const struct dl_predict_options options = {.memo = q->memo};
    struct dl_plan one = *plan;
    struct dl_prediction p;
    one.micro_batch_samples = 1;
    DL_TRY(predict(q, &one, &options, arena, &one, &p, err));
    if (p.stage_count == 0 || !dl_known(p.max_micro_batch_samples))
        return dl_fail(err, DL_ERR_USAGE,
                       "--micro-batch max: known of transformers that %s splits or shards, on "
                       "devices of known memory; give a number",
                       q->framework->name);
    const double share = one.global_batch_samples / (double)(one.dp * one.ep);
    for (double b = floor(fmin(share, p.max_micro_batch_samples)); b >= 1; b--) {
        struct dl_err ignored = {.code = DL_OK};
        struct dl_plan tried = one;
        tried.micro_batch_samples = b;
        if (fmod(share, b) != 0 ||
            predict(q, &tried, &options, arena, &tried, &p, &ignored) != DL_OK || !p.fits)
            continue;
        plan->micro_batch_samples = b;
        return DL_OK;
    }
    return dl_fail(err, DL_ERR_NO, "%s on %s: not even micro-batches of one sample fit in memory",
                   q->workload->name, q->system->name);
}

/* F-DEFAULT-PLAN */
enum dl_code dl_plan_predict(const struct dl_plan_question *question, bool terms,
                             struct dl_arena *arena, struct dl_plan *plan_out,
                             struct dl_prediction *out, struct dl_err *err) {
    const struct dl_predict_options options = {.terms = terms, .memo = question->memo};
    struct dl_plan_question q = *question;
    DL_TRY(dl_plan_keep_states_whole(q.framework, &q.given, &q.plan, err));
    if (q.max_batch) DL_TRY(largest_batch(&q, arena, &q.plan.batch_per_device_samples, err));
    if (!q.max_micro_batch) return answer(&q, &options, arena, plan_out, out, err);
    struct dl_plan plan = q.plan;
    DL_TRY(choose(&q, &plan, err));
    DL_TRY(largest_micro_batch(&q, &plan, arena, err));
    return predict(&q, &plan, &options, arena, plan_out, out, err);
}
