/* search_network.c - plans of networks that are no stack of equal layers, convolutional ones above
 * all: data parallelism, parts of each image, of the filters, of the channels, consecutive layers,
 * and their products with data parallelism over p1 x p2 devices.
 *
 * The p2 devices that share a replica are neighbours: they fill a node (p2 at most its devices) or
 * span nodes. Pipelines, by far the most, try every micro-batch, schedule and 2 to
 * DL_SEARCH_VIRTUAL virtual stages, and come from tables (search_pipes.c). The others share nothing
 * with each other, each has shapes of its own: they are predicted whole (dl_predict). Data
 * parallelism tries every micro-batch whose gradients add up.
 */
#include "model/search/search_parts.h"
#include "model/parallel/strategy.h"

/* Data parallelism comes first: it alone serves a stack that no framework splits. */
static const enum dl_split_way ways[] = {DL_WAY_DATA, DL_WAY_SPATIAL, DL_WAY_FILTER, DL_WAY_CHANNEL,
                                         DL_WAY_STAGES};
enum { WAYS = sizeof ways / sizeof ways[0] };

bool dl_search_serves_network(const struct dl_strategy *strategy) {
    for (int i = 0; strategy != NULL && i < WAYS; i++) {
        if (strategy->way == ways[i]) return true;
    }
    return false;
}

/* The strategy that splits one replica, or each of several, that way. */
static const struct dl_strategy *strategy_of(enum dl_split_way way, bool replicas) {
    const struct dl_strategy *const *s = dl_strategies;
    for (; *s != NULL; s++) {
        const bool replicated = ((*s)->axes & DL_AXIS_DP) != 0;
        if ((*s)->way == way && (way == DL_WAY_DATA || replicated == replicas)) break;
    }
    return *s;
}

static struct dl_transformer_split split_of(const struct dl_search *s, enum dl_split_way way,
                                            int64_t nodes, int64_t parts, int64_t replicas) {
    struct dl_transformer_split split = {.tp = 1,
                                         .sp = 1,
                                         .ep = 1,
                                         .pp = 1,
                                         .dp = replicas,
                                         .nodes = nodes,
                                         .devices_per_node = s->request.fixed.devices_per_node,
                                         .mapping = s->request.fixed.mapping};
    if (way == DL_WAY_SPATIAL) split.sp = parts;
    if (way == DL_WAY_FILTER || way == DL_WAY_CHANNEL) split.tp = parts;
    if (way == DL_WAY_STAGES) split.pp = parts;
    return split;
}

static bool as_given(const struct dl_plan *fixed, const struct dl_transformer_split *split) {
    return (fixed->tp <= 0 || fixed->tp == split->tp) &&
           (fixed->sp <= 0 || fixed->sp == split->sp) &&
           (fixed->pp <= 0 || fixed->pp == split->pp) &&
           (fixed->dp <= 0 || fixed->dp == split->dp) && fixed->ep <= 1;
}

enum dl_code dl_search_network_tasks(struct dl_search *s, int64_t nodes, struct dl_err *err) {
    const struct dl_plan *fixed = &s->request.fixed;
    const int64_t devices = nodes * fixed->devices_per_node,
                  batch = (int64_t)fixed->global_batch_samples;
    struct dl_search_divisors ranks;
    if ((fixed->strategy != NULL && !dl_search_serves_network(fixed->strategy)) ||
        (devices > 1 && ((!s->request.any_shard && fixed->shard > 0) || fixed->shard_group > 0))) {
        return DL_OK;
    }
    dl_search_list_divisors(devices, 0, &ranks);
    /* A framework that splits no stack replicates one, unless another strategy is asked for. */
    const bool replicates =
        fixed->strategy == NULL && fixed->pp <= 1 && dl_transformer_is_stack(s->request.workload);
    for (int w = 0; w < (replicates ? 1 : WAYS); w++) {
        const enum dl_split_way way = ways[w];
        for (int i = 0; i < ranks.count; i++) {
            const int64_t parts = ranks.value[i], replicas = devices / parts;
            const struct dl_transformer_split split = split_of(s, way, nodes, parts, replicas);
            const struct dl_strategy *strategy = strategy_of(way, replicas > 1);
            if ((way == DL_WAY_DATA) != (parts == 1) || !as_given(fixed, &split)) continue;
            if (fixed->strategy != NULL &&
                (way != fixed->strategy->way || (strategy->axes & ~fixed->strategy->axes) != 0))
                continue;
            if (batch % replicas != 0)
                s->rejected_count[DL_NOT_BATCH]++;
            else
                DL_TRY(dl_search_add_task(s, &split, strategy, err));
        }
    }
    return DL_OK;
}

/* One plan: refused, or evaluated. */
static enum dl_code try_plan(const struct dl_search *s, const struct dl_found *wanted,
                             struct dl_search_worker *w, struct dl_err *err) {
    struct dl_arena scratch = {0};
    struct dl_prediction p;
    struct dl_found found = *wanted;
    const struct dl_plan plan = dl_search_plan(s, &found);
    const struct dl_predict_options options = {.brief = true};
    enum dl_code code = dl_predict(s->request.system, s->request.workload, s->request.framework,
                                   &plan, &options, &scratch, &p, err);
    dl_arena_free(&scratch);
    if (code == DL_ERR_USAGE) { /* scaling limits: more parts than a layer has */
        w->rejected_count[DL_NOT_PARTS]++;
        return DL_OK;
    }
    if (code != DL_OK) return code;
    found.iteration_s = p.iteration_s;
    found.memory_bytes = p.memory.total_bytes;
    dl_search_consider(s, w, &found);
    return DL_OK;
}

/* Calls `visit` with every schedule of one pipeline and micro-batch. */
typedef enum dl_code visit_fn(struct dl_search *writable, const struct dl_search *s, int micro,
                              const struct dl_plan *checked, struct dl_found *found,
                              struct dl_search_worker *w, struct dl_err *err);

static enum dl_code each_schedule(struct dl_search *writable, const struct dl_search *s, int micro,
                                  struct dl_found *found, visit_fn *visit,
                                  struct dl_search_worker *w, struct dl_err *err) {
    const struct dl_search_request *r = &s->request;
    struct dl_plan checked = dl_search_plan(s, found); /* but for the schedule */
    struct dl_err ignored = {.code = DL_OK};
    checked.schedule = DL_1F1B, checked.virtual_stages = 0;
    const enum dl_code code =
        dl_plan_complete(r->system, r->workload, r->framework, &checked, &ignored);
    if (code != DL_OK && code != DL_ERR_USAGE) {
        *err = ignored;
        return code;
    }
    for (int schedule = DL_1F1B; schedule <= DL_ASYNC; schedule++) {
        if (!r->any_schedule ? schedule != (int)r->fixed.schedule : schedule == DL_ASYNC) continue;
        const int64_t given = r->fixed.virtual_stages,
                      most = schedule == DL_INTERLEAVED ? DL_SEARCH_VIRTUAL : 1;
        for (int64_t v = schedule == DL_INTERLEAVED ? 2 : 1; v <= most; v++) {
            if (schedule == DL_INTERLEAVED && given > 0 && v != given) continue;
            found->choice.schedule = (enum dl_schedule)schedule;
            found->choice.virtual_stages = v;
            found->order++;
            DL_TRY(visit(writable, s, micro, code == DL_OK ? &checked : NULL, found, w, err));
        }
    }
    return DL_OK;
}

/* The plan with its schedule; false where it cannot be. */
static bool scheduled(const struct dl_search *s, const struct dl_plan *checked,
                      const struct dl_found *found, struct dl_plan *out) {
    struct dl_err ignored = {.code = DL_OK};
    if (checked == NULL) return false;
    *out = *checked;
    out->schedule = found->choice.schedule;
    out->virtual_stages =
        found->choice.schedule == DL_INTERLEAVED ? found->choice.virtual_stages : 0;
    return out->strategy->check(s->request.system, s->request.workload, s->request.framework, out,
                                &ignored) == DL_OK;
}

static enum dl_code want_pipeline(struct dl_search *writable, const struct dl_search *s, int micro,
                                  const struct dl_plan *checked, struct dl_found *found,
                                  struct dl_search_worker *w, struct dl_err *err) {
    struct dl_plan plan;
    (void)w;
    return scheduled(s, checked, found, &plan)
               ? dl_search_pipes_want(writable, micro, &plan, found->choice.micro_batches, err)
               : DL_OK;
}

static enum dl_code try_pipeline(struct dl_search *writable, const struct dl_search *s, int micro,
                                 const struct dl_plan *checked, struct dl_found *found,
                                 struct dl_search_worker *w, struct dl_err *err) {
    struct dl_plan plan;
    struct dl_found one = *found;
    (void)writable;
    /* scaling limits: more parts than there are layers */
    if (!scheduled(s, checked, found, &plan)) {
        w->rejected_count[DL_NOT_PARTS]++;
        return DL_OK;
    }
    DL_TRY(dl_search_pipes_evaluate(s, micro, &plan, &one.iteration_s, &one.memory_bytes, err));
    dl_search_consider(s, w, &one);
    return DL_OK;
}

/* Every micro-batch of a task, from the first order on. */
static struct dl_found first_of(const struct dl_search *s, const struct dl_search_task *task) {
    const struct dl_search_request *r = &s->request;
    struct dl_found found = {
        .split = task->split, .strategy = task->strategy, .order = task->order * 1000000};
    found.choice = (struct dl_transformer_choice){
        .micro_batches = 1,
        .schedule = r->fixed.schedule,
        .virtual_stages = 1,
        .recompute = r->fixed.recompute_open ? DL_RECOMPUTE_NONE : r->fixed.recompute};
    return found;
}

static bool takes(const struct dl_search *s, int64_t share, int micro) {
    const double given = s->request.fixed.micro_batch_samples;
    return share % s->batches.value[micro] == 0 &&
           (given <= 0 || (double)s->batches.value[micro] == given);
}

enum dl_code dl_search_network_pipes(struct dl_search *s, struct dl_err *err) {
    for (int64_t i = 0; i < s->task_count; i++) {
        const struct dl_search_task *task = &s->tasks[i];
        if (task->strategy == NULL || task->strategy->way != DL_WAY_STAGES || !dl_search_mine(s, i))
            continue;
        const int64_t share = (int64_t)s->request.fixed.global_batch_samples / task->split.dp;
        struct dl_found found = first_of(s, task);
        for (int m = 0; m < s->batches.count; m++) {
            if (!takes(s, share, m)) continue;
            found.micro_samples = (double)s->batches.value[m];
            const int64_t micro_batches = share / s->batches.value[m]; /* divides */
            found.choice.micro_batches = (double)micro_batches;
            DL_TRY(each_schedule(s, s, m, &found, want_pipeline, NULL, err));
        }
    }
    return DL_OK;
}

enum dl_code dl_search_network_run(const struct dl_search *s, const struct dl_search_task *task,
                                   struct dl_search_worker *w, struct dl_err *err) {
    const struct dl_search_request *r = &s->request;
    const enum dl_split_way way = task->strategy->way;
    const int64_t share = (int64_t)r->fixed.global_batch_samples / task->split.dp;
    struct dl_found found = first_of(s, task);
    if (way != DL_WAY_DATA && way != DL_WAY_STAGES) {
        found.order++;
        return r->fixed.micro_batch_samples > 0 ? DL_OK : try_plan(s, &found, w, err);
    }
    for (int m = 0; m < s->batches.count; m++) {
        const int64_t b = s->batches.value[m];
        if (!takes(s, share, m)) continue;
        const bool whole = way == DL_WAY_DATA && b == share; /* the batch of a device at once */
        found.micro_samples = whole ? 0 : (double)b;
        const int64_t micro_batches = share / b; /* divides */
        found.choice.micro_batches = (double)micro_batches;
        if (way == DL_WAY_STAGES) {
            found.order++;
            DL_TRY(each_schedule(NULL, s, m, &found, try_pipeline, w, err));
            continue;
        }
        const bool open = r->fixed.recompute_open && dl_known(r->workload->transformer_layers);
        for (int mode = DL_RECOMPUTE_NONE; mode <= (open ? DL_RECOMPUTE_FULL : 0); mode++) {
            found.order++;
            if (open) found.choice.recompute = (enum dl_recompute)mode;
            DL_TRY(try_plan(s, &found, w, err));
        }
    }
    return DL_OK;
}
