/* search_list.c - what there is to search: arrangements of ranks (tasks), micro-batch costs.
 */
#include <math.h>
#include <string.h>

#include "model/engine/canonical.h"
#include "model/engine/predict.h"
#include "model/search/search_internal.h"
#include "model/framework/capabilities.h"
#include "model/framework/settings.h"

void dl_search_list_divisors(int64_t whole, int64_t only, struct dl_search_divisors *out) {
    out->count = 0;
    for (int64_t d = 1; d <= whole && d <= 1000000; d++) {
        if (whole % d == 0 && (only <= 0 || d == only) && out->count < DL_SEARCH_DIVISORS)
            out->value[out->count++] = d;
    }
}

static int index_of(const struct dl_search_divisors *d, int64_t value) {
    for (int i = 0; i < d->count; i++) {
        if (d->value[i] == value) return i;
    }
    return -1;
}

/* Place of a number of nodes among those that are searched. */
static int size_of(const struct dl_search *s, int64_t nodes) {
    for (int i = 0; i < s->request.node_count; i++) {
        if (s->request.nodes[i] == nodes) return i;
    }
    return 0;
}

int64_t dl_search_cost_key(const struct dl_search *s, const struct dl_search_task *task, int micro,
                           bool sequence_parallel) {
    int64_t key = size_of(s, task->split.nodes);
    key = key * s->tp.count + index_of(&s->tp, task->split.tp);
    key = key * s->sp.count + index_of(&s->sp, task->split.sp);
    key = key * s->ep.count + index_of(&s->ep, task->split.ep);
    key = key * s->strides.count + task->stride;
    key = key * s->batches.count + micro;
    return key * 2 + (sequence_parallel ? 1 : 0);
}

/* Place of the distance between the task's expert ranks; -1: no room for one more. */
static int stride_of(struct dl_search *s, const struct dl_transformer_split *split) {
    const int64_t stride = split->ep > 1 ? dl_transformer_group_of(split, DL_AXIS_EP).stride : 1;
    const int known = index_of(&s->strides, stride);
    if (known >= 0 || s->strides.count == DL_SEARCH_DIVISORS) return known;
    s->strides.value[s->strides.count] = stride;
    return s->strides.count++;
}

void dl_search_add_task(struct dl_search *s, struct dl_search_tasks *to,
                        const struct dl_search_task *task) {
    to->items = dl_arena_grow(s->arena, to->items, (size_t)to->count, sizeof *to->items);
    to->items[to->count++] = *task;
}

static enum dl_code add_split(struct dl_search *s, const struct dl_transformer_split *split,
                              struct dl_err *err) {
    const struct dl_search_task task = {
        .split = *split, .order = s->listed++, .stride = stride_of(s, split), .micro = -1};
    if (task.stride < 0)
        return dl_fail(err, DL_ERR_USAGE, "search: more than %d distances between expert ranks",
                       (int)DL_SEARCH_DIVISORS);
    dl_search_add_task(s, &s->tasks, &task);
    return DL_OK;
}

/* Whether a schedule of the search places the parts of a pipeline so. */
static bool tries_placing(const struct dl_search_request *r, int64_t pp, enum dl_placing placing) {
    if (pp <= 1) return placing == DL_PLACED_IN_TURN;
    for (int i = 0; i < DL_SCHEDULES; i++) {
        if (dl_schedules[i]->placing == placing && dl_search_tries_schedule(r, (enum dl_schedule)i))
            return true;
    }
    return false;
}

static enum dl_code add_placings(struct dl_search *s, struct dl_transformer_split split,
                                 struct dl_err *err) {
    for (int i = 0; i < DL_PLACINGS; i++) {
        split.placing = (enum dl_placing)i;
        if (tries_placing(&s->request, split.pp, split.placing)) DL_TRY(add_split(s, &split, err));
    }
    return DL_OK;
}

/* One arrangement, in both mappings where they differ; or why it cannot be. */
static enum dl_code list_split(struct dl_search *s, const struct dl_transformer_split *given,
                               struct dl_err *err) {
    const struct dl_plan *fixed = &s->request.fixed;
    const int64_t batch = (int64_t)fixed->global_batch_samples, data = given->dp * given->ep;
    struct dl_transformer_split split = *given;
    /* dp may count the expert ranks, as in dl_plan_complete */
    if (fixed->dp > 0 && split.dp != fixed->dp && data != fixed->dp) return DL_OK;
    if (!dl_transformer_takes_stages(&s->tf, split.pp, 1)) {
        s->rejected_count[DL_NOT_LAYERS]++;
        return DL_OK;
    }
    if (batch % data != 0) {
        s->rejected_count[DL_NOT_BATCH]++;
        return DL_OK;
    }
    DL_TRY(add_placings(s, split, err));
    if (!s->request.any_mapping || split.pp == 1 || data == 1 ||
        s->request.framework->capabilities.pipeline_outermost)
        return DL_OK;
    split.mapping =
        split.mapping == DL_MAP_DATA_INSIDE ? DL_MAP_PIPELINE_INSIDE : DL_MAP_DATA_INSIDE;
    return add_placings(s, split, err);
}

/* All numbers of stages for `inner` ranks of tensor, sequence and expert parallelism. */
static enum dl_code list_stages(struct dl_search *s, const struct dl_search_divisors *ranks,
                                struct dl_transformer_split split, struct dl_err *err) {
    const bool splits = s->request.framework->splits_layers && !s->tf.is_generic_stack;
    const int64_t devices = split.nodes * split.devices_per_node,
                  inner = split.tp * split.sp * split.ep, fixed_pp = s->request.fixed.pp;
    if (devices % inner != 0) return DL_OK;
    for (int p = 0; p < ranks->count; p++) {
        split.pp = ranks->value[p];
        if ((!splits && split.pp > 1) || (fixed_pp > 0 && split.pp != fixed_pp) ||
            (devices / inner) % split.pp != 0)
            continue;
        split.dp = devices / inner / split.pp;
        DL_TRY(list_split(s, &split, err));
    }
    return DL_OK;
}

/* All arrangements of one number of devices. */
static enum dl_code list_tasks(struct dl_search *s, int64_t nodes, struct dl_err *err) {
    const struct dl_plan *fixed = &s->request.fixed;
    const bool splits = s->request.framework->splits_layers && !s->tf.is_generic_stack;
    struct dl_search_divisors ranks;
    dl_search_list_divisors(nodes * fixed->devices_per_node, 0, &ranks);
    for (int t = 0; t < ranks.count; t++) {
        const int64_t tp = ranks.value[t];
        if ((!splits && tp > 1) || (fixed->tp > 0 && tp != fixed->tp)) continue;
        if (index_of(&s->tp, tp) < 0) {
            s->rejected_count[DL_NOT_HEADS]++;
            continue;
        }
        for (int c = 0; c < s->sp.count; c++) {
            if (!dl_transformer_takes_context(&s->tf, tp, s->sp.value[c])) {
                s->rejected_count[DL_NOT_HEADS]++;
                continue;
            }
            for (int e = 0; e < s->ep.count; e++) {
                const struct dl_transformer_split split = {.tp = tp,
                                                           .sp = s->sp.value[c],
                                                           .ep = s->ep.value[e],
                                                           .nodes = nodes,
                                                           .devices_per_node =
                                                               fixed->devices_per_node,
                                                           .mapping = fixed->mapping,
                                                           .shard_group = fixed->shard_group};
                DL_TRY(list_stages(s, &ranks, split, err));
            }
        }
    }
    return DL_OK;
}

bool dl_search_takes(const struct dl_search *s, const struct dl_search_task *task, int micro) {
    const int64_t share =
        (int64_t)s->request.fixed.global_batch_samples / (task->split.dp * task->split.ep);
    const int64_t b = s->batches.value[micro];
    return share % b == 0 && (s->request.fixed.micro_batch_samples <= 0 ||
                              (double)b == s->request.fixed.micro_batch_samples);
}

bool dl_search_sequence_allowed(const struct dl_search *s, const struct dl_transformer_split *split,
                                bool on) {
    if (!on && s->request.any_sequence_parallel && split->tp > 1 &&
        s->request.framework->capabilities.tensor_sequence)
        return false;
    if (!on)
        return s->request.any_sequence_parallel || !s->request.fixed.sequence_parallel ||
               split->tp == 1;
    if (!s->request.any_sequence_parallel && !s->request.fixed.sequence_parallel) return false;
    return split->tp > 1 && fmod(s->tf.tokens / (double)split->sp, (double)split->tp) == 0;
}

bool dl_search_mine(const struct dl_search *s, int64_t index) {
    return s->request.shard_count <= 1 || index % s->request.shard_count == s->request.shard_index;
}

static void list_costs(struct dl_search *s) {
    const int64_t keys = (int64_t)s->request.node_count * s->tp.count * s->sp.count * s->ep.count *
                         s->strides.count * s->batches.count * 2;
    s->costs = dl_arena_alloc(s->arena, (size_t)keys, sizeof *s->costs);
    s->wanted = dl_arena_alloc(s->arena, (size_t)keys, sizeof *s->wanted);
    bool *seen = dl_arena_alloc(s->arena, (size_t)keys, sizeof *seen);
    for (int64_t i = 0; i < s->tasks.count; i++) {
        struct dl_transformer_split split = s->tasks.items[i].split;
        if (!dl_search_mine(s, i) || s->tasks.items[i].strategy != NULL) continue;
        for (int m = 0; m < s->batches.count; m++) {
            if (!dl_search_takes(s, &s->tasks.items[i], m)) continue;
            for (int on = 0; on < 2; on++) {
                split.sequence_parallel = on;
                if (!dl_search_sequence_allowed(s, &s->tasks.items[i].split, on)) continue;
                const int64_t key = dl_search_cost_key(s, &s->tasks.items[i], m, on);
                if (seen[key]) continue;
                seen[key] = true;
                s->costs[key] = dl_arena_alloc(s->arena, 1, sizeof **s->costs);
                s->costs[key]->split = split;
                s->costs[key]->micro_samples = (double)s->batches.value[m];
                s->wanted[s->cost_count++] = key;
            }
        }
    }
}

/* Whether data parallelism with sharded states, which is left to this file, is wanted of a network
 * whose other plans are search_network.c's. */
static bool shards_network(const struct dl_search_request *r) {
    const struct dl_plan *fixed = &r->fixed;
    if (fixed->tp > 1 || fixed->sp > 1 || fixed->pp > 1 || fixed->ep > 1 ||
        dl_search_serves_network(fixed->strategy))
        return false;
    return r->any_shard ? r->framework->shards : fixed->shard > 0;
}

/* Candidate degrees of the axes that the user left open. */
static enum dl_code list_ranks(struct dl_search *s, struct dl_err *err) {
    const struct dl_search_request *r = &s->request;
    const bool splits = r->framework->splits_layers && !s->tf.is_generic_stack;
    const int64_t tp = s->by_network ? 0 : r->fixed.tp, sp = s->by_network ? 0 : r->fixed.sp,
                  ep = s->by_network ? 0 : r->fixed.ep;
    if (r->fixed.experts.tp == 1)
        return dl_fail(err, DL_ERR_USAGE,
                       "--etp 1: a search splits experts as other layers; leave it out");
    dl_search_list_divisors(splits ? dl_transformer_tensor_parts(&s->tf) : 1, tp, &s->tp);
    const bool context = r->framework->capabilities.context_parallel == DL_YES || sp > 1;
    dl_search_list_divisors(splits && s->tf.by_tokens && context ? (int64_t)s->tf.tokens : 1, sp,
                            &s->sp);
    dl_search_list_divisors(splits && s->tf.experts > 0 ? (int64_t)s->tf.experts : 1, ep, &s->ep);
    dl_search_list_divisors((int64_t)r->fixed.global_batch_samples, 0, &s->batches);
    if (s->tp.count == 0) {
        return dl_fail(
            err, DL_ERR_USAGE,
            "--tp %lld does not divide the %.0f heads of %s, or %s does not split layers",
            (long long)r->fixed.tp, s->tf.heads, r->workload->name, r->framework->name);
    }
    if (s->sp.count == 0) {
        return dl_fail(err, DL_ERR_USAGE, "--cp %lld does not divide the %.0f tokens of %s",
                       (long long)r->fixed.sp, s->tf.tokens, r->workload->name);
    }
    if (s->ep.count > 0) return DL_OK;
    return dl_fail(err, DL_ERR_USAGE, "--ep %lld: %s has %.0f experts", (long long)r->fixed.ep,
                   r->workload->name, s->tf.experts);
}

static enum dl_code no_task(const struct dl_search *s, struct dl_err *err) {
    const double batch = s->request.fixed.global_batch_samples;
    if (s->by_network) {
        return dl_fail(
            err, DL_ERR_USAGE,
            "no arrangement of ranks is possible: a global batch of %.0f does not divide among "
            "data ranks as asked; "
            "change --global-batch or --nodes, or leave --strategy, --tp, --cp, --pp, --dp open",
            batch);
    }
    return dl_fail(err, DL_ERR_USAGE,
                   "no arrangement of ranks is possible: of the devices' factors none divides "
                   "%.0f heads, %.0f layers "
                   "and a global batch of %.0f as asked; change --global-batch or --nodes, or "
                   "leave --tp, --pp, --dp open",
                   s->tf.heads, s->tf.stack, batch);
}

static enum dl_code prepare_one(const struct dl_search_request *request, struct dl_arena *arena,
                                struct dl_search **out, struct dl_err *err) {
    struct dl_search *s = dl_arena_alloc(arena, 1, sizeof *s);
    s->request = *request;
    s->arena = arena;
    struct dl_plan plan = request->fixed; /* whether there is a stack */
    plan.tp = plan.sp = plan.pp = plan.ep = 1;
    plan.nodes = request->nodes[0];
    DL_TRY(
        dl_plan_check_support(request->system, request->workload, request->framework, &plan, err));
    DL_TRY(dl_plan_check_framework(request->system, request->framework, &plan, err));
    DL_TRY(dl_transformer_prepare(request->system, request->workload, request->framework, &plan,
                                  arena, &s->tf, err));
    s->tf.memo = request->memo;
    s->by_network = !dl_plan_stacks(request->workload, request->framework);
    s->capacity_bytes =
        request->memory_bytes > 0 ? request->memory_bytes : request->system->device->memory_bytes;
    DL_TRY(list_ranks(s, err));
    for (int i = 0; i < request->node_count; i++) {
        if (s->by_network) dl_search_network_tasks(s, request->nodes[i]);
        if (!s->by_network || shards_network(request))
            DL_TRY(list_tasks(s, request->nodes[i], err));
    }
    if (s->listed == 0) return no_task(s, err);
    if (s->by_network) dl_search_network_share(s);
    list_costs(s);
    *out = s;
    return DL_OK;
}

static bool has_experts(const struct dl_workload *workload) {
    for (int i = 0; i < workload->layer_count; i++)
        if (workload->layers[i].moe.experts > 0) return true;
    return false;
}

/* A combination that cannot be on this system or network is left out, but for the given one. */
static enum dl_code prepare_variant(const struct dl_search_request *request,
                                    const struct dl_plan *plan, struct dl_arena *arena,
                                    struct dl_search **out, struct dl_err *err) {
    struct dl_search_request varied = *request;
    struct dl_plan alone = *plan;
    alone.strategy = dl_strategy_find("3d");
    alone.nodes = alone.devices_per_node = alone.dp = alone.tp = alone.pp = alone.sp = alone.ep = 1;
    alone.micro_batch_samples = 1;
    varied.fixed = *plan;
    DL_TRY(dl_plan_check_settings(request->workload, request->framework, &alone, err));
    DL_TRY(dl_settings_apply(plan, arena, &varied.system, &varied.framework, err));
    if (plan->offload.what != request->fixed.offload.what)
        DL_TRY(dl_transformer_check_offload(varied.system, plan, 3, err));
    return prepare_one(&varied, arena, out, err);
}

enum dl_code dl_search_prepare(const struct dl_search_request *request, struct dl_arena *arena,
                               struct dl_search **out, struct dl_err *err) {
    const double layers = request->workload->transformer_layers;
    const struct dl_settings_scope scope = {.layers = dl_known(layers) ? (int64_t)layers : 1,
                                            .has_experts = has_experts(request->workload)};
    struct dl_search *first;
    struct dl_plan *plans;
    int count;
    DL_TRY(prepare_one(request, arena, &first, err));
    DL_TRY(dl_settings_variants(request->framework, &request->fixed, request->vary, &scope, arena,
                                &plans, &count, err));
    first->variants = dl_arena_alloc(arena, (size_t)count, sizeof *first->variants);
    first->variants[first->variant_count++] = first;
    for (int i = 1; i < count; i++) {
        struct dl_err ignored = {.code = DL_OK};
        struct dl_search *s;
        const enum dl_code code = prepare_variant(request, &plans[i], arena, &s, &ignored);
        if (code == DL_ERR_SYSTEM) return dl_fail(err, code, "%s", ignored.message);
        if (code != DL_OK) continue;
        s->variant = first->variant_count;
        first->variants[first->variant_count++] = s;
    }
    *out = first;
    return DL_OK;
}
