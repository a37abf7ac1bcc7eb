/* plan_tables.c - what plans of one network share, computed once. F-TABLES. See plan_tables.h.
 *
 * A plan of data, spatial, filter or channel parallelism consists of
 *   a split: (kind, parts, samples of a replica, devices per node): sums over the layers, times at
 *     which gradients are ready, memory
 *   a group: (kind, parts, nodes, devices per node): the gradient messages with their durations,
 *     the straggler wait
 * so S splits and G groups make S x G plans. Pipelines, and frameworks whose messages depend on
 * when gradients are ready (Horovod's cycles) or that wait for each layer's message, keep the
 * finished terms of each plan instead.
 */
#include "model/search/plan_tables.h"

#include <math.h>
#include <string.h>

#include "model/framework/cost.h"
#include "model/framework/input.h"
#include "model/framework/shared_host.h"
#include "model/parallel/canonical.h"
#include "model/parallel/split_replica.h"
#include "model/predict/compose.h"
#include "model/predict/memory.h"

enum { NO_SPLIT = -1, STAGES = -2, NOT_SERVED = -3, FIRST_SLOTS = 1024 };

struct key {
    int64_t kind, parts, nodes, devices_per_node;
    double samples, micro_batch;
    int64_t schedule, virtual_stages;
};

struct split { /* a replica without gradient synchronization */
    double forward_s, backward_s, update_s, quiet_s, layer_comm_s, backward_end_s, update_start_s,
        update_end_s;
    const double *ready_s; /* of each gradient */
    double input_extra_s;
    struct dl_memory memory;
};

/* after gradient `last` is ready; -1: after backward */
struct sent {
    int last;
    double offset_s, duration_s;
};

struct group {
    struct sent *messages;
    int message_count;
    double device_copy_s, host_s, prologue_s;
    double straggler_frac; /* F-STRAGGLER */
};

struct entry {
    bool used;
    struct key key;
    const void *value;
};
struct map {
    struct entry *slots;
    size_t capacity, count;
};

struct dl_plan_tables {
    const struct dl_system *system;
    const struct dl_workload *workload;
    const struct dl_framework *framework;
    struct dl_plan base;
    struct dl_arena *arena;
    double slowdown_frac; /* F-SLOWDOWN */
    bool whole;           /* plans are kept as a whole */
    struct map splits, groups, plans;
};

/* How a plan splits its layers: enum dl_split_kind, NO_SPLIT, or one that tables do not split. */
static int kind_of(const struct dl_plan *plan) {
    switch (plan->strategy->way) {
    case DL_WAY_DATA: return NO_SPLIT;
    case DL_WAY_STAGES: return STAGES;
    case DL_WAY_SPATIAL: return DL_SPLIT_SPATIAL;
    case DL_WAY_FILTER: return DL_SPLIT_FILTER;
    case DL_WAY_CHANNEL: return DL_SPLIT_CHANNEL;
    case DL_WAY_MLSL:
    case DL_WAY_TRANSFORMER: break;
    }
    return NOT_SERVED;
}

static int64_t parts_of(const struct dl_plan *plan, int kind) {
    return kind == DL_SPLIT_SPATIAL                              ? plan->sp
           : kind == DL_SPLIT_FILTER || kind == DL_SPLIT_CHANNEL ? plan->tp
                                                                 : 1;
}

bool dl_plan_tables_serve(const struct dl_plan *plan) {
    return plan->strategy != NULL && kind_of(plan) != NOT_SERVED;
}

static uint64_t mix(uint64_t hash, uint64_t value) {
    hash ^= value;
    hash *= 0x9e3779b97f4a7c15u;
    return hash ^ (hash >> 29);
}

static uint64_t hash_of(const struct key *key) {
    uint64_t samples, micro_batch, hash = 0x243f6a8885a308d3u;
    memcpy(&samples, &key->samples, sizeof samples);
    memcpy(&micro_batch, &key->micro_batch, sizeof micro_batch);
    hash = mix(hash, (uint64_t)key->kind * 131u + (uint64_t)key->parts);
    hash = mix(hash, (uint64_t)key->nodes * 8191u + (uint64_t)key->devices_per_node);
    hash = mix(hash, samples);
    return mix(hash, micro_batch + (uint64_t)key->schedule * 31u + (uint64_t)key->virtual_stages);
}

static bool same(const struct key *a, const struct key *b) {
    return a->kind == b->kind && a->parts == b->parts && a->nodes == b->nodes &&
           a->devices_per_node == b->devices_per_node && a->samples == b->samples &&
           a->micro_batch == b->micro_batch && a->schedule == b->schedule &&
           a->virtual_stages == b->virtual_stages;
}

static const void *find(const struct map *map, const struct key *key) {
    if (map->capacity == 0) return NULL;
    for (size_t i = hash_of(key) & (map->capacity - 1); map->slots[i].used;
         i = (i + 1) & (map->capacity - 1)) {
        if (same(&map->slots[i].key, key)) return map->slots[i].value;
    }
    return NULL;
}

static void put(struct map *map, const struct key *key, const void *value) {
    size_t i = hash_of(key) & (map->capacity - 1);
    while (map->slots[i].used) i = (i + 1) & (map->capacity - 1);
    map->slots[i] = (struct entry){true, *key, value};
    map->count++;
}

static enum dl_code insert(struct dl_plan_tables *tables, struct map *map, const struct key *key,
                           const void *value, struct dl_err *err) {
    if (2 * (map->count + 1) > map->capacity) {
        struct map grown = {.capacity = map->capacity == 0 ? FIRST_SLOTS : 2 * map->capacity};
        grown.slots = dl_arena_alloc(tables->arena, grown.capacity, sizeof *grown.slots);
        if (grown.slots == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
        for (size_t i = 0; i < map->capacity; i++) {
            if (map->slots[i].used) put(&grown, &map->slots[i].key, map->slots[i].value);
        }
        *map = grown;
    }
    put(map, key, value);
    return DL_OK;
}

/* Through each device's kernels: the fullest device sets the pace of data parallelism. */
static double samples_of(const struct dl_plan *plan, int64_t parts) {
    return parts > 1 ? plan->batch_per_device_samples * (double)parts
                     : ceil(plan->batch_per_device_samples - 1e-9);
}

static struct key split_key(const struct dl_plan *plan, int kind, int64_t parts) {
    return (struct key){.kind = parts > 1 ? kind : NO_SPLIT,
                        .parts = parts,
                        .devices_per_node = plan->devices_per_node,
                        .nodes = plan->nodes * plan->devices_per_node > 1,
                        .samples = samples_of(plan, parts)};
}

static struct key group_key(const struct dl_plan *plan, int kind, int64_t parts) {
    return (struct key){.kind = parts > 1 ? kind : NO_SPLIT,
                        .parts = parts,
                        .nodes = plan->nodes,
                        .devices_per_node = plan->devices_per_node};
}

static struct key plan_key(const struct dl_plan *plan) {
    const int kind = kind_of(plan);
    struct key key = {.kind = kind,
                      .parts = kind == STAGES ? plan->pp : parts_of(plan, kind),
                      .nodes = plan->nodes,
                      .devices_per_node = plan->devices_per_node,
                      .samples = plan->batch_per_device_samples};
    key.micro_batch = plan->micro_batch_samples;
    if (kind != STAGES) return key;
    key.schedule = plan->schedule;
    key.virtual_stages = plan->virtual_stages;
    return key;
}

enum dl_code dl_plan_tables_build(const struct dl_system *system,
                                  const struct dl_workload *workload,
                                  const struct dl_framework *framework, const struct dl_plan *base,
                                  struct dl_arena *arena, struct dl_plan_tables **out,
                                  struct dl_err *err) {
    struct dl_plan_tables *tables = dl_arena_alloc(arena, 1, sizeof *tables);
    struct dl_cost cost;
    if (tables == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    /* has rates */
    DL_TRY(dl_cost_compute(system->device, workload, framework, base, 1, arena, &cost, err));
    *tables = (struct dl_plan_tables){
        .system = system,
        .workload = workload,
        .framework = framework,
        .base = *base,
        .slowdown_frac = dl_replica_slowdown_frac(system, framework, base),
        .whole = framework->host.single_process || dl_shared_host_matters(system) ||
                 dl_plan_stacks(workload, framework),
        .arena = arena};
    *out = tables;
    return DL_OK;
}

static enum dl_code keep_whole(struct dl_plan_tables *tables, const struct dl_plan *plan,
                               struct dl_err *err) {
    const struct key key = plan_key(plan);
    struct dl_prediction p;
    if (find(&tables->plans, &key) != NULL) return DL_OK;
    struct dl_plan_value *value = dl_arena_alloc(tables->arena, 1, sizeof *value);
    if (value == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    struct dl_arena scratch = {0};
    const enum dl_code code = dl_predict(tables->system, tables->workload, tables->framework, plan,
                                         NULL, &scratch, &p, err);
    dl_arena_free(&scratch);
    if (code != DL_OK) return code;
    *value = (struct dl_plan_value){.iteration_s = p.iteration_s,
                                    .throughput_samples_per_s = p.throughput_samples_per_s,
                                    .forward_s = p.forward_s,
                                    .backward_s = p.backward_s,
                                    .update_s = p.update_s,
                                    .compute_s = p.compute_s,
                                    .comm_s = p.comm_s,
                                    .exposed_comm_s = p.exposed_comm_s,
                                    .input_s = p.input_s,
                                    .exposed_input_s = p.exposed_input_s,
                                    .bubble_s = p.bubble_s,
                                    .overhead_s = p.overhead_s,
                                    .memory = p.memory,
                                    .fits = p.fits};
    return insert(tables, &tables->plans, &key, value, err);
}

static enum dl_code keep_split(struct dl_plan_tables *tables, const struct key *key,
                               const struct dl_replica *replica, const struct dl_replica_profile *m,
                               struct dl_err *err) {
    struct split *split = dl_arena_alloc(tables->arena, 1, sizeof *split);
    double *ready_s = dl_arena_alloc(tables->arena, (size_t)m->gradient_count + 1, sizeof *ready_s);
    if (split == NULL || ready_s == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    for (int g = 0; g < m->gradient_count; g++) ready_s[g] = m->gradients[g].ready_s;
    *split = (struct split){.forward_s = m->forward_s,
                            .backward_s = m->backward_s,
                            .update_s = m->update_s,
                            .quiet_s = m->quiet_s,
                            .layer_comm_s = m->layer_comm_s,
                            .backward_end_s = m->backward_end_s,
                            .update_start_s = m->update_start_s,
                            .update_end_s = m->update_end_s,
                            .ready_s = ready_s,
                            .input_extra_s = replica->input_extra_s,
                            .memory = m->memory};
    return insert(tables, &tables->splits, key, split, err);
}

static enum dl_code keep_group(struct dl_plan_tables *tables, const struct key *key,
                               const struct dl_replica_profile *m, const struct dl_plan *plan,
                               struct dl_err *err) {
    const struct dl_gradient_sync *x = &m->sync;
    struct group *group = dl_arena_alloc(tables->arena, 1, sizeof *group);
    struct sent *sent = dl_arena_alloc(tables->arena, (size_t)x->message_count + 1, sizeof *sent);
    if (group == NULL || sent == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    for (int i = 0; i < x->message_count; i++) {
        const struct dl_message *message = &x->messages[i];
        const int last = message->first + message->count - 1;
        const bool after =
            !tables->framework->sync.overlaps_backward || last < 0 || last >= m->gradient_count;
        const double ready_s = after ? m->backward_end_s : m->gradients[last].ready_s;
        sent[i] = (struct sent){after ? -1 : last, message->ready_s - ready_s - x->prologue_s,
                                message->duration_s};
    }
    *group = (struct group){.messages = sent,
                            .message_count = x->message_count,
                            .device_copy_s = x->device_copy_s,
                            .host_s = x->host_s,
                            .prologue_s = x->prologue_s,
                            .straggler_frac =
                                dl_straggler_frac(tables->system, tables->framework, plan)};
    return insert(tables, &tables->groups, key, group, err);
}

/* True when the messages' number, sizes and order follow from the gradients alone, and the update
 * waits for all of them. */
static bool is_plain(const struct dl_framework *framework, const struct dl_gradient_sync *x) {
    const struct dl_framework_behaviour *behaviour = framework->behaviour;
    return !behaviour->timing_dependent && !x->wait_each && !x->update_remote;
}

/* Pipelines, micro-batches, hosts that devices share, and jitter that depends on the batch: plans
 * that share too little. */
static bool is_whole(const struct dl_plan_tables *tables, const struct dl_plan *plan, int kind) {
    return kind == STAGES || tables->whole || plan->micro_batch_samples > 0 ||
           plan->layer_times != NULL;
}

enum dl_code dl_plan_tables_add(struct dl_plan_tables *tables, struct dl_plan *plan,
                                struct dl_err *err) {
    if (!dl_plan_tables_serve(plan)) {
        return dl_fail(err, DL_ERR_USAGE, "strategy %s has no tables",
                       plan->strategy != NULL ? plan->strategy->name : "?");
    }
    DL_TRY(dl_plan_complete(tables->system, tables->workload, tables->framework, plan, err));
    const int kind = kind_of(plan);
    if (is_whole(tables, plan, kind)) return keep_whole(tables, plan, err);
    const int64_t parts = parts_of(plan, kind);
    const struct key split = split_key(plan, kind, parts), group = group_key(plan, kind, parts);
    if (find(&tables->splits, &split) != NULL && find(&tables->groups, &group) != NULL)
        return DL_OK;
    struct dl_arena scratch = {0};
    const struct dl_predict_request request = {.system = tables->system,
                                               .workload = tables->workload,
                                               .framework = tables->framework,
                                               .plan = plan,
                                               .arena = &scratch};
    struct dl_replica replica;
    struct dl_replica_profile profile;
    enum dl_code code = DL_OK;
    if (parts > 1)
        code = dl_split_replica_replica(&request, (enum dl_split_kind)kind, parts, &replica, err);
    else
        replica = dl_replica_of_device(&request);
    if (code == DL_OK) code = dl_replica_measure(&replica, &profile, err);
    if (code == DL_OK && !is_plain(tables->framework, &profile.sync)) {
        tables->whole = true; /* for this framework */
        dl_arena_free(&scratch);
        return keep_whole(tables, plan, err);
    }
    if (code == DL_OK && find(&tables->splits, &split) == NULL)
        code = keep_split(tables, &split, &replica, &profile, err);
    if (code == DL_OK && find(&tables->groups, &group) == NULL)
        code = keep_group(tables, &group, &profile, plan, err);
    dl_arena_free(&scratch);
    return code;
}

/* The lane of timeline.c, once: every message begins when its gradients are ready and the one
 * before is through. */
static double sync_end_s(const struct split *split, const struct group *group, double begin_s,
                         double slowdown_frac, double *comm_s, double *slowdown_s) {
    const double backward_end_s = begin_s + split->backward_end_s;
    double free_s = 0, busy_s = 0;
    for (int m = 0; m < group->message_count; m++) {
        const struct sent *sent = &group->messages[m];
        const double ready_s =
            begin_s + sent->offset_s +
            (sent->last < 0 ? split->backward_end_s : split->ready_s[sent->last]);
        const double start_s = ready_s > free_s ? ready_s : free_s;
        free_s = start_s + sent->duration_s;
        *comm_s += sent->duration_s;
        if (start_s < backward_end_s)
            busy_s += (free_s < backward_end_s ? free_s : backward_end_s) - start_s;
    }
    *slowdown_s = slowdown_frac * busy_s;
    *comm_s += group->device_copy_s + group->host_s + group->prologue_s;
    const double device_s = backward_end_s + *slowdown_s + group->device_copy_s;
    return (device_s > free_s ? device_s : free_s) + group->host_s;
}

static void compose(const struct dl_plan_tables *tables, const struct dl_plan *plan, int64_t parts,
                    const struct split *split, const struct group *group,
                    struct dl_plan_value *out) {
    struct dl_evidence e = {.forward_s = split->forward_s,
                            .update_s = split->update_s,
                            .comm_s = split->layer_comm_s,
                            .straggler_frac = group->straggler_frac};
    double slowdown_s;
    const double end_s =
        sync_end_s(split, group, group->prologue_s, tables->slowdown_frac, &e.comm_s, &slowdown_s);
    /* the host may end after gradient synchronization */
    const double update_s = split->update_end_s - split->update_start_s;
    const double period_s =
        (end_s > split->update_start_s ? end_s : split->update_start_s) + update_s;
    e.backward_s = split->backward_s + slowdown_s;
    e.exposed_comm_s = fmax(0, period_s - slowdown_s - split->quiet_s);
    e.comm_s = fmax(e.comm_s, e.exposed_comm_s);
    e.host_s = fmax(0, split->quiet_s - (split->forward_s + split->backward_s + split->update_s));
    struct dl_plan local = *plan;
    local.batch_per_device_samples = samples_of(plan, parts);
    struct dl_workload seen = *tables->workload;
    if (kind_of(plan) == DL_SPLIT_SPATIAL) seen.input_bytes_per_sample /= (double)parts;
    const struct dl_input_time input =
        dl_input_compute(tables->system, &seen, tables->framework, &local);
    dl_compose_input(&input, tables->framework, split->input_extra_s, &e);
    struct dl_iteration i;
    dl_compose_iteration(&e, &i);
    *out = (struct dl_plan_value){.iteration_s = i.iteration_s,
                                  .throughput_samples_per_s =
                                      plan->global_batch_samples / i.iteration_s,
                                  .forward_s = e.forward_s,
                                  .backward_s = e.backward_s,
                                  .update_s = e.update_s,
                                  .compute_s = i.compute_s,
                                  .comm_s = e.comm_s,
                                  .exposed_comm_s = e.exposed_comm_s,
                                  .input_s = e.load_s + e.feed_s,
                                  .exposed_input_s = i.exposed_input_s,
                                  .overhead_s = i.overhead_s,
                                  .memory = split->memory,
                                  .fits = dl_memory_fits(&split->memory)};
}

bool dl_plan_tables_evaluate(const struct dl_plan_tables *tables, const struct dl_plan *plan,
                             struct dl_plan_value *out) {
    const int kind = kind_of(plan);
    if (is_whole(tables, plan, kind)) {
        const struct key key = plan_key(plan);
        const struct dl_plan_value *value = find(&tables->plans, &key);
        if (value != NULL) *out = *value;
        return value != NULL;
    }
    const int64_t parts = parts_of(plan, kind);
    const struct key split_at = split_key(plan, kind, parts),
                     group_at = group_key(plan, kind, parts);
    const struct split *split = find(&tables->splits, &split_at);
    const struct group *group = find(&tables->groups, &group_at);
    if (split == NULL || group == NULL) return false;
    compose(tables, plan, parts, split, group, out);
    return true;
}

void dl_plan_tables_count(const struct dl_plan_tables *tables, int *splits_out, int *groups_out) {
    *splits_out = (int)(tables->splits.count + tables->plans.count);
    *groups_out = (int)tables->groups.count;
}
