/* stage_plan.c - see stage_plan.h. */
#include "model/search/stage_plan.h"

#include <math.h>
#include <string.h>

#include "model/framework/gradient_width.h"
#include "model/framework/input.h"
#include "model/engine/pipe.h"
#include "model/engine/schedule.h"
#include "model/engine/pipeline.h"
#include "model/engine/diagnose.h"
#include "model/engine/energy.h"
#include "model/engine/memory.h"
#include "model/engine/replica.h"
#include "model/engine/strategies/strategy.h"
#include "model/search/stage_pieces.h"

enum { MICRO_BATCH_CHOICES = 9 }; /* 1, 2, 4, ..., 256 micro-batches */
/* One possible stage: some pieces on n nodes of a kind. */
struct part {
    double step_s, compute_s, forward_s, backward_s, update_s, sync_s;
    double forward_step_s, backward_step_s; /* step_s by direction */
    double in_s, out_s; /* a message of a micro-batch across its ends, one way */
    int held_max;       /* micro-batches that its memory holds; 0: not even one */
};

/* One kind of node for one size of micro-batch: [n - 1][from][to]. */
struct kind {
    struct dl_cost *costs; /* [n - 1]: of all layers at the batch of each device */
    struct part *parts;
};

struct planner {
    const struct dl_heterogeneous_job *all;
    const struct dl_workload *workload;
    const struct dl_framework *framework;
    const struct dl_plan *plan;
    struct dl_arena *arena;
    struct dl_system *systems; /* of the kinds, over the slowest network */
    double *cuts;              /* elements of a sample across each cut */
    struct dl_stage_pieces cut;
    struct dl_layer *layers; /* room for the network's */
    struct kind kinds[DL_MIXED_GROUPS];
    double samples, micro_samples, micro_batches; /* of an iteration and the whole pipeline */
};

static int64_t devices_of(const struct planner *p, int kind) {
    const int64_t own = p->all->groups[kind].system->devices_per_node,
                  asked = p->plan->devices_per_node;
    return asked > 0 && asked < own ? asked : own;
}

/* ---- costs of possible stages ---- */

static struct part *part_of(const struct planner *p, int kind, int64_t n, int from, int to) {
    return &p->kinds[kind].parts[((n - 1) * p->cut.count + from) * (p->cut.count + 1) + to];
}

/* Batch of each device of a stage; below 1 the stage has more devices than samples. */
static double device_batch(const struct planner *p, int kind, int64_t n) {
    return p->micro_samples / (double)(n * devices_of(p, kind));
}

/* A plan for the devices of a stage, as needed by the memory and collective models. */
static struct dl_plan stage_plan(const struct planner *p, int kind, int64_t n) {
    struct dl_plan plan = *p->plan;
    plan.nodes = n;
    plan.devices_per_node = devices_of(p, kind);
    plan.dp = n * plan.devices_per_node;
    plan.tp = plan.pp = plan.sp = plan.ep = 1;
    plan.micro_batch_samples = plan.batch_per_device_samples = device_batch(p, kind, n);
    plan.global_batch_samples = p->micro_samples;
    plan.schedule = DL_1F1B;
    plan.replica_devices = 1;
    return plan;
}

/* A message across a cut by one node of a stage of n nodes. */
static enum dl_code message_s(const struct planner *p, int kind, int64_t n, int cut, double *out,
                              struct dl_err *err) {
    const double width = dl_precision_bytes(p->plan->precision);
    const struct dl_system *system = &p->systems[kind];
    struct dl_collective_time t;
    const struct dl_collective_request one = {
        .op = DL_COLL_P2P,
        .library = dl_replica_library(system, p->framework, p->plan),
        .bytes = p->cuts[cut] * p->micro_samples * width / (double)n,
        .nodes = 2,
        .ranks_per_node = 1,
        .flows_per_adapter = 1};
    *out = 0;
    if (cut == 0 || cut == p->workload->layer_count) return DL_OK;
    DL_TRY(dl_collective_time(system, &one, &t, err));
    *out = t.time_s + p->framework->sync.collective_launch_s;
    return DL_OK;
}

/* The gradients of a stage among its devices. */
static enum dl_code sync_s(const struct planner *p, int kind, int64_t n, double elements,
                           double *out, struct dl_err *err) {
    const struct dl_plan plan = stage_plan(p, kind, n);
    const double bytes =
        elements * dl_framework_gradient_width(p->framework, plan.precision).sent_bytes;
    const struct dl_collective_request sum = {
        .op = DL_COLL_ALL_REDUCE,
        .library = dl_replica_library(&p->systems[kind], p->framework, &plan),
        .bytes = bytes,
        .nodes = n,
        .ranks_per_node = plan.devices_per_node,
        .flows_per_adapter = 1};
    struct dl_collective_time t;
    *out = 0;
    if (plan.dp == 1 || !(bytes > 0)) return DL_OK;
    DL_TRY(dl_collective_time(&p->systems[kind], &sum, &t, err));
    *out = t.time_s + p->framework->sync.collective_launch_s;
    return DL_OK;
}

/* The pieces as the last stage of a pipeline of two (or of one, where they begin the network). */
struct pipe {
    struct dl_pipe p;
    struct dl_predict_request request;
    struct dl_plan plan;
    int first[3], stage;
    double step_s[2], compute_s[2], parameters[2], forward_s[2], backward_s[2], weights_s[2];
};
static void make_pipe(const struct planner *p, int kind, int64_t n, int from, int to,
                      struct pipe *out) {
    out->plan = stage_plan(p, kind, n);
    out->stage = from > 0;
    out->first[0] = 0;
    out->first[out->stage] = p->cut.first[from];
    out->first[out->stage + 1] = p->cut.first[to];
    out->request = (struct dl_predict_request){.system = &p->systems[kind],
                                               .workload = p->workload,
                                               .framework = p->framework,
                                               .plan = &out->plan,
                                               .arena = p->arena};
    out->p = (struct dl_pipe){.stages = out->stage + 1,
                              .parts = out->stage + 1,
                              .first = out->first,
                              .step_s = out->step_s,
                              .compute_s = out->compute_s,
                              .parameters = out->parameters,
                              .forward_step_s = out->forward_s,
                              .backward_step_s = out->backward_s,
                              .weights_step_s = out->weights_s,
                              .cut_elements = p->cuts,
                              .request = &out->request,
                              .plan = out->plan,
                              .micro_batches = p->micro_batches};
}

/* The most micro-batches that fit, up to all of them; memory grows with them. */
static int held_max(const struct planner *p, const struct pipe *pipe) {
    const int most = (int)fmin(p->micro_batches, DL_STAGES);
    int fits = 0, none = most + 1;
    for (int held = most; none - fits > 1; held = (fits + none) / 2) {
        struct dl_memory m;
        const char *unknown;
        dl_pipe_stage_memory(&pipe->p, pipe->stage, held, p->layers, &m, &unknown, false);
        *(dl_memory_fits(&m) ? &fits : &none) = held;
    }
    return fits;
}

static enum dl_code fill_part(const struct planner *p, int kind, int64_t n, int from, int to,
                              struct dl_err *err) {
    const struct dl_cost *cost = &p->kinds[kind].costs[n - 1];
    struct part *part = part_of(p, kind, n, from, to);
    struct pipe pipe;
    make_pipe(p, kind, n, from, to, &pipe);
    const int s = pipe.stage;
    dl_pipe_split(&pipe.p, &pipe.request, cost);
    *part = (struct part){.step_s = pipe.step_s[s],
                          .compute_s = pipe.compute_s[s],
                          .update_s = p->workload->parameters > 0
                                          ? cost->update.time_s * pipe.parameters[s] /
                                                p->workload->parameters
                                          : 0,
                          .forward_step_s = pipe.forward_s[s],
                          .backward_step_s = pipe.backward_s[s],
                          .held_max = held_max(p, &pipe)};
    for (int i = p->cut.first[from]; i < p->cut.first[to]; i++) {
        part->forward_s += cost->layers[i].forward.time_s;
        part->backward_s += cost->layers[i].backward.time_s;
    }
    if (part->held_max == 0) return DL_OK;
    DL_TRY(message_s(p, kind, n, p->cut.first[from], &part->in_s, err));
    DL_TRY(message_s(p, kind, n, p->cut.first[to], &part->out_s, err));
    return sync_s(p, kind, n, pipe.parameters[s], &part->sync_s, err);
}

static enum dl_code fill_kind(struct planner *p, int kind, struct dl_err *err) {
    const int64_t most = p->all->groups[kind].nodes;
    struct kind *k = &p->kinds[kind];
    k->costs = dl_arena_alloc(p->arena, (size_t)most, sizeof *k->costs);
    k->parts = dl_arena_alloc(p->arena, (size_t)(most * p->cut.count * (p->cut.count + 1)),
                              sizeof *k->parts); /* zero: no micro-batch fits */
    for (int64_t n = 1; n <= most; n++) {
        const struct dl_plan plan = stage_plan(p, kind, n);
        if (device_batch(p, kind, n) < 1) continue;
        const struct dl_cost_request wanted = {p->systems[kind].device, p->workload, p->framework,
                                               &plan, plan.micro_batch_samples};
        DL_TRY(dl_cost_compute(&wanted, p->arena, &k->costs[n - 1], err));
        for (int from = 0; from < p->cut.count; from++)
            for (int to = from + 1; to <= p->cut.count; to++)
                DL_TRY(fill_part(p, kind, n, from, to, err));
    }
    return DL_OK;
}

static const struct part *placed_part(const struct planner *p, const struct dl_stage *own) {
    return part_of(p, own->kind, own->nodes, own->from, own->to);
}

static bool cost_of(const void *data, const struct dl_stage *stage, int behind,
                    struct dl_stage_cost *out) {
    const struct planner *p = data;
    const struct part *part = placed_part(p, stage);
    if (fmin(p->micro_batches, behind + 1) > part->held_max) return false;
    const double message = 2 * fmax(part->in_s, part->out_s);
    *out = (struct dl_stage_cost){.through_s = part->step_s + 2 * part->in_s,
                                  .steady_s = (p->micro_batches - 1) * fmax(part->step_s, message) +
                                              part->update_s + part->sync_s};
    return true;
}

/* ---- the prediction of a placement ---- */

static struct dl_pipeline_spans spans_of(const struct planner *p, const struct dl_stages *placed) {
    double forward_s[DL_STAGES], backward_s[DL_STAGES], sync_s[DL_STAGES];
    struct dl_pipeline_order order = {.schedule = DL_1F1B,
                                      .stages = placed->count,
                                      .parts = 1,
                                      .forward_s = forward_s,
                                      .backward_s = backward_s};
    struct dl_arena scratch = {0};
    for (int s = 0; s < placed->count; s++) {
        const struct part *part = placed_part(p, &placed->stages[s]);
        forward_s[s] = part->forward_step_s;
        backward_s[s] = part->backward_step_s;
        sync_s[s] = part->sync_s;
        order.message_s = fmax(order.message_s, part->in_s);
    }
    const struct dl_pipeline_spans out =
        dl_pipeline_spans_of(&order, p->micro_batches, sync_s, true, &scratch);
    dl_arena_free(&scratch);
    return out;
}

/* What the device of a stage does in an iteration, all else as bubble. */
static void stage_evidence(const struct planner *p, const struct dl_stages *placed,
                           const struct dl_pipeline_spans *spans, int s, struct dl_evidence *e) {
    const struct dl_stage *own = &placed->stages[s];
    const struct part *part = placed_part(p, own);
    const struct dl_cost *cost = &p->kinds[own->kind].costs[own->nodes - 1];
    const struct dl_cost layers = {.layers = cost->layers + p->cut.first[own->from]};
    *e = (struct dl_evidence){.forward_s = p->micro_batches * part->forward_s,
                              .backward_s = p->micro_batches * part->backward_s,
                              .update_s = part->update_s};
    dl_evidence_of_cost(&layers, p->cut.first[own->to] - p->cut.first[own->from], p->micro_batches,
                        e);
    e->host_s =
        p->micro_batches * fmax(0, part->step_s - part->compute_s) + p->framework->host.iteration_s;
    e->exposed_comm_s = fmax(0, spans->end_s - spans->quiet_s);
    e->bubble_s = fmax(0, spans->quiet_s - p->micro_batches * part->step_s);
    e->comm_s = part->sync_s;
    e->comm.s[DL_ON_NETWORK] = p->micro_batches * (part->in_s + part->out_s);
    e->comm.s[own->nodes > 1 ? DL_ON_NETWORK : DL_ON_NODE_LINKS] += part->sync_s;
    for (int k = 0; k < placed->count; k++)
        e->comm_s += 2 * p->micro_batches * placed_part(p, &placed->stages[k])->in_s;
    e->comm_s = fmax(e->comm_s, e->exposed_comm_s);
    dl_evidence_serial_path(e);
}

/* The stage that sets the pace. */
static int slowest_of(const struct planner *p, const struct dl_stages *placed) {
    double most = -1;
    int at = 0;
    for (int s = 0; s < placed->count; s++) {
        const struct dl_stage *own = &placed->stages[s];
        struct dl_stage_cost c;
        if (!cost_of(p, own, placed->count - 1 - s, &c)) continue;
        if (c.steady_s > most) most = c.steady_s, at = s;
    }
    return at;
}

static void stage_memory(const struct planner *p, const struct dl_stages *placed, int s,
                         struct dl_memory *out) {
    const struct dl_stage *own = &placed->stages[s];
    struct pipe pipe;
    const char *unknown;
    make_pipe(p, own->kind, own->nodes, own->from, own->to, &pipe);
    dl_pipe_stage_memory(&pipe.p, pipe.stage,
                         dl_schedule_held_in_turn(s, placed->count, p->micro_batches, 1), p->layers,
                         out, &unknown, false);
}

/* The whole job's plan on the nodes of the stage that sets the pace. */
static struct dl_plan job_plan(const struct planner *p, const struct dl_stages *placed,
                               int slowest) {
    const struct dl_stage *own = &placed->stages[slowest];
    struct dl_plan plan = stage_plan(p, own->kind, own->nodes);
    plan.nodes = 0;
    for (int s = 0; s < placed->count; s++) plan.nodes += placed->stages[s].nodes;
    plan.pp = placed->count;
    plan.strategy = dl_strategy_find("pipeline");
    plan.global_batch_samples = p->samples;
    plan.micro_batch_samples = p->micro_samples;
    return plan;
}

static void compose(const struct planner *p, const struct dl_stages *placed,
                    const struct dl_pipeline_spans *spans, struct dl_staged *out) {
    const int slowest = slowest_of(p, placed);
    const struct dl_plan plan = job_plan(p, placed, slowest);
    const struct dl_system *system = &p->systems[placed->stages[slowest].kind];
    struct dl_evidence e;
    stage_evidence(p, placed, spans, slowest, &e);
    e.straggler_frac = dl_straggler_frac(system, p->framework, &plan);
    struct dl_plan first = stage_plan(p, placed->stages[0].kind, placed->stages[0].nodes);
    first.batch_per_device_samples *= p->micro_batches; /* the first stage reads all samples */
    const struct dl_input_time input =
        dl_input_compute(&p->systems[placed->stages[0].kind], p->workload, p->framework, &first);
    dl_compose_input(&input, p->framework, 0, &e);
    struct dl_prediction result = {0};
    dl_compose(&e, p->workload, &plan, 0, &result);
    result.max_batch_samples = NAN;
    for (int s = 0; s < placed->count; s++) {
        struct dl_memory m;
        stage_memory(p, placed, s, &m);
        if (s == 0 || m.total_bytes > result.memory.total_bytes) result.memory = m;
    }
    result.fits = true;
    const struct dl_diagnosis diagnosis = {.system = system,
                                           .framework = p->framework,
                                           .plan = &plan,
                                           .evidence = &e,
                                           .arena = p->arena};
    dl_diagnose(&diagnosis, &result);
    out->prediction = result;
}

static void describe_stage(const struct planner *p, const struct dl_stages *placed,
                           const struct dl_pipeline_spans *spans, int s, struct dl_staged *out) {
    const struct dl_stage *own = &placed->stages[s];
    const struct part *part = placed_part(p, own);
    const struct dl_plan plan = stage_plan(p, own->kind, own->nodes);
    struct dl_prediction alone = {0};
    struct dl_evidence e;
    struct dl_memory m;
    stage_evidence(p, placed, spans, s, &e);
    dl_compose(&e, p->workload, &plan, 0, &alone);
    alone.iteration_s = out->prediction.iteration_s;
    stage_memory(p, placed, s, &m);
    out->stages[s] = (struct dl_staged_stage){
        .first = p->workload->layers[p->cut.first[own->from]].name,
        .last = p->workload->layers[p->cut.first[own->to] - 1].name,
        .kind = own->kind,
        .nodes = own->nodes,
        .devices = own->nodes * devices_of(p, own->kind),
        .step_s = part->step_s,
        .busy_frac = (p->micro_batches * part->step_s + part->update_s) / alone.iteration_s,
        .memory_bytes = m.total_bytes,
        .power_w = dl_power_of(&p->systems[own->kind], &plan, &alone, NULL).job_w};
}

static void describe(const struct planner *p, const struct dl_stages *placed,
                     struct dl_staged *out) {
    *out = (struct dl_staged){.count = placed->count,
                              .micro_batch_samples = p->micro_samples,
                              .micro_batches = p->micro_batches};
    struct dl_heterogeneous_group groups[DL_MIXED_GROUPS];
    const struct dl_heterogeneous_job used = {.groups = groups, .group_count = p->all->group_count};
    for (int k = 0; k < p->all->group_count; k++) {
        out->nodes[k] = placed->used[k];
        groups[k] = (struct dl_heterogeneous_group){.system = p->all->groups[k].system,
                                                    .nodes = placed->used[k]};
    }
    const struct dl_pipeline_spans spans = spans_of(p, placed);
    compose(p, placed, &spans, out);
    double power_w = 0;
    for (int s = 0; s < placed->count; s++) {
        describe_stage(p, placed, &spans, s, out);
        power_w += out->stages[s].power_w;
    }
    out->sample_energy_j = power_w / out->prediction.throughput_samples_per_s;
    out->cost_per_sample =
        dl_placement_price_per_s(&used) / out->prediction.throughput_samples_per_s;
}

/* ---- all choices ---- */

static double score_of(const struct dl_staged *s, enum dl_placement_objective objective) {
    if (objective == DL_PLACE_ENERGY) return s->sample_energy_j;
    return objective == DL_PLACE_COST ? s->cost_per_sample : s->prediction.iteration_s;
}

static bool same_nodes(const struct dl_staged *a, const struct dl_staged *b) {
    return memcmp(a->nodes, b->nodes, sizeof a->nodes) == 0;
}

/* Keeps the better of two pipelines on the same nodes, and the list in order. */
static void insert(struct dl_staged *list, int *count, const struct dl_staged *one,
                   enum dl_placement_objective objective) {
    int at = 0;
    while (at < *count && !same_nodes(&list[at], one)) at++;
    if (at == *count)
        ++*count;
    else if (!(score_of(one, objective) < score_of(&list[at], objective)))
        return;
    for (; at > 0 && score_of(one, objective) < score_of(&list[at - 1], objective); at--)
        list[at] = list[at - 1];
    list[at] = *one;
}

static enum dl_code search_micro_batch(struct planner *p, enum dl_placement_objective objective,
                                       struct dl_staged *list, int *count, struct dl_err *err) {
    const struct dl_heterogeneous_job *all = p->all;
    struct dl_stages_request request = {
        .pieces = p->cut.count, .kinds = all->group_count, .cost = cost_of, .data = p};
    struct dl_stages *placed;
    struct dl_staged one;
    int placed_count;
    for (int k = 0; k < all->group_count; k++) {
        request.nodes[k] = all->groups[k].nodes;
        DL_TRY(fill_kind(p, k, err));
    }
    DL_TRY(dl_stages_place(&request, p->arena, &placed, &placed_count, err));
    for (int i = 0; i < placed_count; i++) {
        describe(p, &placed[i], &one);
        if (!dl_known(score_of(&one, objective)))
            return dl_fail(err, DL_ERR_USAGE,
                           "--objective %s: no %s of every kind of node is known",
                           dl_placement_objectives[objective],
                           objective == DL_PLACE_COST ? "price in one currency" : "power");
        insert(list, count, &one, objective);
    }
    return DL_OK;
}

static enum dl_code prepare(struct planner *p, struct dl_err *err) {
    const struct dl_heterogeneous_job *all = p->all;
    const struct dl_plan *plan = p->plan;
    double devices = 0;
    int64_t nodes = 0;
    if (p->framework->sync.asynchronous)
        return dl_fail(err, DL_ERR_USAGE, "%s: asynchronous workers have no pipeline",
                       p->framework->name);
    if (plan->tp > 1 || plan->sp > 1 || plan->ep > 1)
        return dl_fail(err, DL_ERR_USAGE, "--place stages: splits the network into stages alone");
    for (int k = 0; k < all->group_count; k++) {
        devices += (double)(all->groups[k].nodes * devices_of(p, k));
        nodes += all->groups[k].nodes;
    }
    p->samples = plan->global_batch_samples > 0 ? plan->global_batch_samples
                                                : plan->batch_per_device_samples * devices;
    DL_TRY(
        dl_heterogeneous_systems(all->groups, all->group_count, nodes, p->arena, &p->systems, err));
    p->cuts = dl_arena_alloc(p->arena, (size_t)p->workload->layer_count + 1, sizeof *p->cuts);
    p->layers = dl_arena_alloc(p->arena, (size_t)p->workload->layer_count, sizeof *p->layers);
    dl_pipeline_cuts(p->workload, p->cuts);
    return dl_stage_pieces(all, p->workload, p->cuts, p->arena, &p->cut, err);
}

enum dl_code dl_staged_search(const struct dl_heterogeneous_question *question,
                              enum dl_placement_objective objective, struct dl_arena *arena,
                              struct dl_staged **out, int *count, struct dl_err *err) {
    const struct dl_heterogeneous_job *all = question->job;
    const struct dl_plan *plan = question->plan;
    struct planner p = {all, question->workload, question->framework, plan, .arena = arena};
    struct dl_err refusal = {.code = DL_OK};
    int64_t uses = 1;
    DL_TRY(prepare(&p, err));
    for (int k = 0; k < all->group_count; k++) uses *= all->groups[k].nodes + 1;
    *out = dl_arena_alloc(arena, (size_t)uses, sizeof **out);
    *count = 0;
    for (int i = 0; i < MICRO_BATCH_CHOICES; i++) {
        const double asked = plan->micro_batch_samples;
        p.micro_batches = asked > 0 ? p.samples / asked : (double)(1 << i);
        p.micro_samples = p.samples / p.micro_batches;
        const bool whole = fabs(p.micro_batches - round(p.micro_batches)) < 1e-9 &&
                           fabs(p.micro_samples - round(p.micro_samples)) < 1e-9;
        if (asked > 0 && !whole)
            return dl_fail(err, DL_ERR_USAGE, "--micro-batch %g does not divide the %g samples",
                           asked, p.samples);
        if (!whole) continue;
        const enum dl_code code = search_micro_batch(&p, objective, *out, count, &refusal);
        if (code != DL_OK && code != DL_ERR_NO) return dl_fail(err, code, "%s", refusal.message);
        if (asked > 0) break;
    }
    return *count > 0 ? DL_OK
                      : dl_fail(err, DL_ERR_NO, "no pipeline over these nodes fits in memory");
}
