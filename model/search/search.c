/* search.c - enumerates and evaluates plans of a transformer. See search.h. */
#include "model/search/search_parts.h"

#include <math.h>
#include <string.h>

#include "model/parallel/canonical.h"

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

/* Key of a cell: size of the system, tp, sp, ep, micro-batch, sequence parallelism. */
static int64_t cell_key(const struct dl_search *s, int size,
                        const struct dl_transformer_split *split, int micro) {
    int64_t key = size;
    key = key * s->tp.count + index_of(&s->tp, split->tp);
    key = key * s->sp.count + index_of(&s->sp, split->sp);
    key = key * s->ep.count + index_of(&s->ep, split->ep);
    key = key * s->batches.count + micro;
    return key * 2 + (split->sequence_parallel ? 1 : 0);
}

static int size_of(const struct dl_search *s, int64_t nodes) {
    for (int i = 0; i < s->request.node_count; i++) {
        if (s->request.nodes[i] == nodes) return i;
    }
    return 0;
}

enum dl_code dl_search_add_task(struct dl_search *s, const struct dl_transformer_split *split,
                                const struct dl_strategy *strategy, struct dl_err *err) {
    if (s->task_count == s->task_capacity) {
        const int64_t capacity = s->task_capacity > 0 ? 2 * s->task_capacity : 256;
        struct dl_search_task *more = dl_arena_alloc(s->arena, (size_t)capacity, sizeof *more);
        if (more == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
        if (s->task_count > 0) memcpy(more, s->tasks, (size_t)s->task_count * sizeof *more);
        s->tasks = more;
        s->task_capacity = capacity;
    }
    s->tasks[s->task_count] = (struct dl_search_task){*split, s->task_count, strategy};
    s->task_count++;
    return DL_OK;
}

/* One arrangement, in both mappings where they differ; or why it cannot be. */
static enum dl_code list_split(struct dl_search *s, const struct dl_transformer_split *given,
                               struct dl_err *err) {
    const struct dl_plan *fixed = &s->request.fixed;
    const int64_t batch = (int64_t)fixed->global_batch_samples, data = given->dp * given->ep;
    struct dl_transformer_split split = *given;
    if (fixed->dp > 0 && split.dp != fixed->dp) return DL_OK;
    if (fmod(s->tf.stack, (double)split.pp) != 0) {
        s->rejected_count[DL_NOT_LAYERS]++;
        return DL_OK;
    }
    if (batch % data != 0) {
        s->rejected_count[DL_NOT_BATCH]++;
        return DL_OK;
    }
    DL_TRY(dl_search_add_task(s, &split, NULL, err));
    if (!s->request.any_mapping || split.pp == 1 || data == 1) return DL_OK;
    split.mapping =
        split.mapping == DL_MAP_DATA_INSIDE ? DL_MAP_PIPELINE_INSIDE : DL_MAP_DATA_INSIDE;
    return dl_search_add_task(s, &split, NULL, err);
}

/* All numbers of stages for `inner` ranks of tensor, sequence and expert parallelism. */
static enum dl_code list_stages(struct dl_search *s, const struct dl_search_divisors *ranks,
                                struct dl_transformer_split split, struct dl_err *err) {
    const bool splits = s->request.framework->splits_layers && !s->tf.plain;
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
    const bool splits = s->request.framework->splits_layers && !s->tf.plain;
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

/* Micro-batches [first, end) of a task: divisors of what a data rank gets. */
static bool takes(const struct dl_search *s, const struct dl_search_task *task, int micro) {
    const int64_t share =
        (int64_t)s->request.fixed.global_batch_samples / (task->split.dp * task->split.ep);
    const int64_t b = s->batches.value[micro];
    return share % b == 0 && (s->request.fixed.micro_batch_samples <= 0 ||
                              (double)b == s->request.fixed.micro_batch_samples);
}

static bool sequence_allowed(const struct dl_search *s, const struct dl_transformer_split *split,
                             bool on) {
    if (!on)
        return s->request.any_sequence_parallel || !s->request.fixed.sequence_parallel ||
               split->tp == 1;
    if (!s->request.any_sequence_parallel && !s->request.fixed.sequence_parallel) return false;
    return split->tp > 1 && fmod(s->tf.tokens / (double)split->sp, (double)split->tp) == 0;
}

bool dl_search_mine(const struct dl_search *s, int64_t index) {
    return s->request.shard_count <= 1 || index % s->request.shard_count == s->request.shard_index;
}

static enum dl_code list_cells(struct dl_search *s, struct dl_err *err) {
    const int64_t keys = (int64_t)s->request.node_count * s->tp.count * s->sp.count * s->ep.count *
                         s->batches.count * 2;
    s->cells = dl_arena_alloc(s->arena, (size_t)keys, sizeof *s->cells);
    s->wanted = dl_arena_alloc(s->arena, (size_t)keys, sizeof *s->wanted);
    bool *seen = dl_arena_alloc(s->arena, (size_t)keys, sizeof *seen);
    if (s->cells == NULL || s->wanted == NULL || seen == NULL)
        return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    for (int64_t i = 0; i < s->task_count; i++) {
        struct dl_transformer_split split = s->tasks[i].split;
        const int size = size_of(s, split.nodes);
        if (!dl_search_mine(s, i) || s->tasks[i].strategy != NULL) continue;
        for (int m = 0; m < s->batches.count; m++) {
            if (!takes(s, &s->tasks[i], m)) continue;
            for (int on = 0; on < 2; on++) {
                split.sequence_parallel = on;
                if (!sequence_allowed(s, &s->tasks[i].split, on)) continue;
                const int64_t key = cell_key(s, size, &split, m);
                if (seen[key]) continue;
                seen[key] = true;
                s->cells[key] = dl_arena_alloc(s->arena, 1, sizeof **s->cells);
                if (s->cells[key] == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
                s->cells[key]->split = split;
                s->cells[key]->micro_samples = (double)s->batches.value[m];
                s->wanted[s->cell_count++] = key;
            }
        }
    }
    return DL_OK;
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

/* The ranks that there can be, as far as they are not given. */
static enum dl_code list_ranks(struct dl_search *s, struct dl_err *err) {
    const struct dl_search_request *r = &s->request;
    const bool splits = r->framework->splits_layers && !s->tf.plain;
    const int64_t tp = s->by_network ? 0 : r->fixed.tp, sp = s->by_network ? 0 : r->fixed.sp,
                  ep = s->by_network ? 0 : r->fixed.ep;
    dl_search_list_divisors(splits ? (int64_t)s->tf.heads : 1, tp, &s->tp);
    dl_search_list_divisors(splits && s->tf.by_tokens ? (int64_t)s->tf.tokens : 1, sp, &s->sp);
    dl_search_list_divisors(splits && s->tf.experts > 0 ? (int64_t)s->tf.experts : 1, ep, &s->ep);
    dl_search_list_divisors((int64_t)r->fixed.global_batch_samples, 0, &s->batches);
    if (s->tp.count == 0) {
        return dl_fail(
            err, DL_ERR_USAGE,
            "--tp %lld does not divide the %.0f heads of %s, or %s does not split layers",
            (long long)r->fixed.tp, s->tf.heads, r->workload->name, r->framework->name);
    }
    if (s->sp.count == 0) {
        return dl_fail(err, DL_ERR_USAGE, "--sp %lld does not divide the %.0f tokens of %s",
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
            "change --global-batch or --nodes, or leave --strategy, --tp, --sp, --pp, --dp open",
            batch);
    }
    return dl_fail(err, DL_ERR_USAGE,
                   "no arrangement of ranks is possible: of the devices' factors none divides "
                   "%.0f heads, %.0f layers "
                   "and a global batch of %.0f as asked; change --global-batch or --nodes, or "
                   "leave --tp, --pp, --dp open",
                   s->tf.heads, s->tf.stack, batch);
}

enum dl_code dl_search_prepare(const struct dl_search_request *request, struct dl_arena *arena,
                               struct dl_search **out, struct dl_err *err) {
    struct dl_search *s = dl_arena_alloc(arena, 1, sizeof *s);
    if (s == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    s->request = *request;
    s->arena = arena;
    struct dl_plan plan = request->fixed; /* whether there is a stack */
    plan.tp = plan.sp = plan.pp = plan.ep = 1;
    DL_TRY(dl_transformer_prepare(request->system, request->workload, request->framework, &plan,
                                  arena, &s->tf, err));
    s->by_network = !dl_plan_stacks(request->workload, request->framework);
    s->capacity_bytes =
        request->memory_bytes > 0 ? request->memory_bytes : request->system->device->memory_bytes;
    DL_TRY(list_ranks(s, err));
    for (int i = 0; i < request->node_count; i++) {
        if (s->by_network) DL_TRY(dl_search_network_tasks(s, request->nodes[i], err));
        if (!s->by_network || shards_network(request))
            DL_TRY(list_tasks(s, request->nodes[i], err));
    }
    if (s->task_count == 0) return no_task(s, err);
    DL_TRY(list_cells(s, err));
    DL_TRY(dl_search_network_pipes(s, err));
    *out = s;
    return DL_OK;
}

int64_t dl_search_cells(const struct dl_search *search) {
    return search->cell_count + dl_search_pipes_cells(search);
}
int64_t dl_search_tasks(const struct dl_search *search) { return search->task_count; }

/* Activations of one layer with full recomputation: no plan with this cell keeps less. */
static double least_kept_bytes(const struct dl_search *s, const struct dl_transformer_split *split,
                               double micro) {
    const double share = split->sequence_parallel ? (double)split->tp : 1;
    return micro * s->tf.tokens / (double)split->sp * s->tf.hidden *
           dl_precision_bytes(s->tf.precision) / share;
}

enum dl_code dl_search_make_cell(struct dl_search *s, int64_t index, struct dl_err *err) {
    if (index >= s->cell_count) return dl_search_pipes_make(s, index - s->cell_count, err);
    struct dl_transformer_micro_batch *cell = s->cells[s->wanted[index]];
    const struct dl_transformer_split split = cell->split;
    const double micro = cell->micro_samples;
    if (!s->request.every && dl_known(s->capacity_bytes) &&
        least_kept_bytes(s, &split, micro) > s->capacity_bytes) {
        cell->micro_samples = 0; /* never needed */
        return DL_OK;
    }
    return dl_transformer_micro_batch_make(&s->tf, &split, micro, cell, err);
}

double dl_search_score(const struct dl_search_request *r, const struct dl_found *f) {
    const double devices = (double)(f->split.nodes * f->split.devices_per_node),
                 nodes = (double)f->split.nodes;
    switch (r->objective) {
    case DL_BY_MEMORY: return f->memory_bytes;
    case DL_BY_DEVICES: return devices;
    case DL_BY_ENERGY: return devices * r->device_w * f->iteration_s;
    case DL_BY_COST: return nodes * r->node_price_per_hour / 3600 * f->iteration_s;
    default: return f->iteration_s; /* the global batch is one: throughput is its inverse */
    }
}

struct combination {
    const struct dl_search *s;
    const struct dl_search_task *task;
    struct dl_search_worker *w;
    int64_t order;
};

void dl_search_consider(const struct dl_search *s, struct dl_search_worker *w,
                        struct dl_found *found) {
    const struct dl_search_request *r = &s->request;
    w->evaluated_count++;
    found->fits = !dl_known(s->capacity_bytes) || found->memory_bytes <= s->capacity_bytes;
    if (!found->fits) {
        w->rejected_count[DL_NOT_MEMORY]++;
        if (!w->has_nearest || found->memory_bytes < w->nearest.memory_bytes) w->nearest = *found;
        w->has_nearest = true;
        return;
    }
    if (r->deadline_s > 0 && found->iteration_s > r->deadline_s) {
        w->rejected_count[DL_NOT_DEADLINE]++;
        return;
    }
    w->feasible_count++;
    found->score = dl_search_score(r, found);
    dl_search_keep(r, w, found);
}

static void try_plan(struct combination *c, const struct dl_transformer_mapping *layout,
                     const struct dl_transformer_micro_batch *cell,
                     const struct dl_collective_time *boundary,
                     const struct dl_transformer_choice *choice) {
    struct dl_transformer_result result;
    c->order++;
    dl_transformer_evaluate(&c->s->tf, layout, cell, boundary, choice, &result);
    struct dl_found found = {.split = layout->split,
                             .choice = *choice,
                             .micro_samples = cell->micro_samples,
                             .shard = layout->shard,
                             .iteration_s = result.iteration.iteration_s,
                             .memory_bytes = result.memory.total_bytes,
                             .order = c->task->order * 1000000 + c->order};
    found.split.sequence_parallel = cell->split.sequence_parallel;
    dl_search_consider(c->s, c->w, &found);
}

/* Schedules of one arrangement, micro-batch, shard and recomputation. `only` counts instead of
 * trying. */
static int64_t each_schedule(struct combination *c, const struct dl_transformer_mapping *layout,
                             const struct dl_transformer_micro_batch *cell,
                             const struct dl_collective_time *boundary,
                             struct dl_transformer_choice choice, bool only) {
    const struct dl_search_request *r = &c->s->request;
    const int64_t layers = (int64_t)layout->stage_layers, pp = layout->split.pp;
    int64_t count = 0;
    for (int schedule = DL_1F1B; schedule <= DL_ASYNC; schedule++) {
        if (!r->any_schedule ? schedule != (int)r->fixed.schedule : schedule == DL_ASYNC) continue;
        if (pp == 1 && schedule != DL_1F1B && r->any_schedule) continue;
        choice.schedule = (enum dl_schedule)schedule;
        const bool interleaved = schedule == DL_INTERLEAVED;
        if (interleaved && (pp == 1 || fmod(choice.micro_batches, (double)pp) != 0)) continue;
        for (int64_t v = interleaved ? 2 : 1; v <= (interleaved ? layers : 1); v++) {
            if (interleaved &&
                (layers % v != 0 || (r->fixed.virtual_stages > 0 && v != r->fixed.virtual_stages)))
                continue;
            choice.virtual_stages = v;
            count++;
            if (!only) try_plan(c, layout, cell, boundary, &choice);
        }
    }
    return count;
}

static int64_t each_recompute(struct combination *c, const struct dl_transformer_mapping *layout,
                              const struct dl_transformer_micro_batch *cell,
                              const struct dl_collective_time *boundary, double micro_batches,
                              bool only) {
    int64_t count = 0;
    for (int recompute = 0; recompute < DL_TRANSFORMER_RECOMPUTES; recompute++) {
        if (!c->s->request.fixed.recompute_open && recompute != (int)c->s->request.fixed.recompute)
            continue;
        if (c->s->tf.plain && recompute == DL_RECOMPUTE_FULL) continue;
        const double *kept_bytes = cell->kept_bytes[DL_TRANSFORMER_BODY];
        if (c->s->tf.plain && recompute == DL_RECOMPUTE_SELECTIVE &&
            kept_bytes[DL_RECOMPUTE_SELECTIVE] == kept_bytes[DL_RECOMPUTE_NONE] &&
            c->s->request.fixed.recompute_open)
            continue; /* nothing to recompute */
        const struct dl_transformer_choice choice = {.micro_batches = micro_batches,
                                                     .recompute = (enum dl_recompute)recompute};
        count += each_schedule(c, layout, cell, boundary, choice, only);
    }
    return count;
}

/* F-SEARCH-BOUND: what no plan of this layout (or cell) can go below. */
static bool states_fit(const struct dl_search *s, const struct dl_transformer_mapping *layout) {
    if (s->request.every || !dl_known(s->capacity_bytes)) return true;
    for (int i = 0; i < 2; i++) {
        const struct dl_memory *m = &layout->states[i];
        const double sum = m->weights_bytes + m->gradients_bytes + m->optimizer_bytes +
                           m->workspace_bytes + m->buffers_bytes + m->context_bytes;
        if (sum / (1 - s->request.framework->fragmentation_frac) > s->capacity_bytes) return false;
    }
    return true;
}

static bool may_be_faster(const struct dl_search *s, const struct dl_transformer_mapping *layout,
                          const struct dl_transformer_micro_batch *cell, double micro_batches,
                          const struct dl_search_worker *w) {
    const struct dl_search_request *r = &s->request;
    const bool by_time = r->objective == DL_BY_TIME || r->objective == DL_BY_THROUGHPUT;
    if (r->every || r->front || !by_time || w->best_count < r->keep) return true;
    const double each_s = cell->forward[DL_TRANSFORMER_BODY].step_s +
                          cell->backward[DL_TRANSFORMER_BODY][DL_RECOMPUTE_NONE].step_s;
    return micro_batches * layout->stage_layers * each_s + layout->update_s <
           w->best[w->best_count - 1].iteration_s;
}

static bool tries_shard(const struct dl_search *s, const struct dl_transformer_split *split,
                        int shard) {
    const struct dl_search_request *r = &s->request;
    const int64_t group = r->fixed.shard_group, ranks = split->dp * split->ep * split->sp;
    if (ranks == 1) return shard == 0 && !s->by_network; /* nothing to share: dl_plan_canonical */
    if (group > 0 && (shard == 0 || split->ep > 1 || split->dp * split->sp % group != 0))
        return false;
    if (!r->any_shard) return shard == (int)r->fixed.shard;
    return shard == 0 ? !s->by_network : r->framework->shards;
}

struct sharding { /* a task's layouts by ZeRO stage */
    struct dl_transformer_mapping layouts[4];
    bool tries[4], fits[4];
};

static enum dl_code make_layouts(const struct dl_search *s, const struct dl_search_task *task,
                                 struct sharding *out, struct dl_err *err) {
    for (int shard = 0; shard <= 3; shard++) {
        out->tries[shard] = tries_shard(s, &task->split, shard);
        if (!out->tries[shard]) continue;
        DL_TRY(dl_transformer_mapping_make(&s->tf, &task->split, shard, &out->layouts[shard], err));
        out->fits[shard] = states_fit(s, &out->layouts[shard]);
    }
    return DL_OK;
}

/* All plans of one cell, in every sharding that may fit and be faster. */
static enum dl_code run_cell(struct combination *c, const struct sharding *sharding,
                             const struct dl_transformer_micro_batch *cell, double micro_batches,
                             struct dl_err *err) {
    struct dl_collective_time boundary = {0};
    bool timed = false;
    for (int shard = 0; shard <= 3; shard++) {
        const struct dl_transformer_mapping *layout = &sharding->layouts[shard];
        if (!sharding->tries[shard]) continue;
        const bool small = sharding->fits[shard] && cell->micro_samples > 0,
                   fast = small && may_be_faster(c->s, layout, cell, micro_batches, c->w);
        if (!small || !fast) {
            const int64_t skipped = each_recompute(c, layout, cell, &boundary, micro_batches, true);
            c->w->rejected_count[small ? DL_NOT_FASTER : DL_NOT_MEMORY] += skipped;
            c->order += skipped;
            continue;
        }
        if (!timed) DL_TRY(dl_transformer_boundary(&c->s->tf, layout, cell, &boundary, err));
        timed = true;
        each_recompute(c, layout, cell, &boundary, micro_batches, false);
    }
    return DL_OK;
}

enum dl_code dl_search_run_task(const struct dl_search *s, int64_t index,
                                struct dl_search_worker *w, struct dl_err *err) {
    const struct dl_search_task *task = &s->tasks[index];
    struct combination c = {.s = s, .task = task, .w = w};
    if (!dl_search_mine(s, index)) return DL_OK;
    if (task->strategy != NULL) return dl_search_network_run(s, task, w, err);
    const int size = size_of(s, task->split.nodes);
    struct sharding sharding;
    DL_TRY(make_layouts(s, task, &sharding, err));
    const double share =
        s->request.fixed.global_batch_samples / (double)(task->split.dp * task->split.ep);
    for (int m = 0; m < s->batches.count; m++) {
        if (!takes(s, task, m)) continue;
        for (int on = 0; on < 2; on++) {
            struct dl_transformer_split split = task->split;
            split.sequence_parallel = on;
            if (!sequence_allowed(s, &task->split, on)) continue;
            DL_TRY(run_cell(&c, &sharding, s->cells[cell_key(s, size, &split, m)],
                            share / (double)s->batches.value[m], err));
        }
    }
    return DL_OK;
}

void dl_search_merge(const struct dl_search *s, struct dl_search_worker *into,
                     const struct dl_search_worker *from) {
    struct dl_search_request request = s->request;
    request.front = false;
    for (int i = 0; i < from->best_count; i++) dl_search_keep(&request, into, &from->best[i]);
    if (s->request.front) {
        struct dl_search_worker *all = into;
        for (int i = 0; i < from->front_count; i++) dl_search_keep_front(all, &from->front[i]);
    }
    if (from->has_nearest &&
        (!into->has_nearest || from->nearest.memory_bytes < into->nearest.memory_bytes)) {
        into->nearest = from->nearest;
        into->has_nearest = true;
    }
    into->evaluated_count += from->evaluated_count;
    into->feasible_count += from->feasible_count;
    for (int i = 0; i < DL_REJECTIONS; i++) into->rejected_count[i] += from->rejected_count[i];
}

void dl_search_rejected(const struct dl_search *s, struct dl_search_worker *into) {
    for (int i = 0; i < DL_REJECTIONS; i++) into->rejected_count[i] += s->rejected_count[i];
}

struct dl_plan dl_search_plan(const struct dl_search *s, const struct dl_found *f) {
    static const char *const sharded[] = {NULL, "zero1", "zero2", "zero3"};
    struct dl_plan plan = s->request.fixed;
    const bool data_only = f->split.tp * f->split.pp * f->split.sp * f->split.ep == 1;
    plan.strategy = f->strategy != NULL
                        ? f->strategy
                        : dl_strategy_find(f->split.ep > 1             ? "expert"
                                           : data_only && f->shard > 0 ? sharded[f->shard]
                                                                       : "3d");
    plan.nodes = f->split.nodes;
    plan.devices_per_node = f->split.devices_per_node;
    plan.dp = f->split.dp, plan.tp = f->split.tp, plan.pp = f->split.pp, plan.sp = f->split.sp,
    plan.ep = f->split.ep;
    plan.micro_batch_samples = f->micro_samples;
    plan.batch_per_device_samples = 0;
    plan.sequence_parallel = f->split.sequence_parallel;
    plan.mapping = f->split.mapping;
    plan.schedule = f->choice.schedule;
    plan.virtual_stages = f->choice.schedule == DL_INTERLEAVED ? f->choice.virtual_stages : 0;
    plan.recompute = f->choice.recompute;
    plan.recompute_open = false;
    plan.shard = data_only ? 0 : f->shard;
    return plan;
}
