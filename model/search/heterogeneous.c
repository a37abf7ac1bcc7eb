/* heterogeneous.c - F-HETEROGENEOUS. See heterogeneous.h. */
#include "model/search/heterogeneous.h"

#include <math.h>
#include <string.h>

#include "model/engine/strategies/strategy.h"
#include "model/engine/energy.h"
#include "model/network/path.h"

enum { ROUNDS = 5 };

struct mix {
    bool terms; /* of the predictions */
    const struct dl_workload *workload;
    const struct dl_framework *framework;
    const struct dl_plan *plan;
    struct dl_arena *arena;
    struct dl_system *systems; /* of the groups, over the slowest network */
    struct dl_heterogeneous_group *groups;
    int group_count;
    int64_t nodes, each; /* of the job; devices of a node in use */
    double samples;      /* of the job, per iteration */
};

static double devices_of(const struct mix *m, int group) {
    return (double)(m->groups[group].nodes * m->each);
}

static double network_bytes_per_s(const struct dl_system *system) {
    struct dl_path_adapter adapter;
    return dl_path_adapter_of(system, true, &adapter) && dl_known(adapter.bytes_per_s)
               ? adapter.bytes_per_s * adapter.count
               : 0;
}

static double known_or_zero(double value) { return dl_known(value) ? value : 0; }

/* Which network sets the pace. One order for all: of equal rates the later one, then the one that
 * costs hosts more, then by name, so that the order of the groups does not matter. */
static bool is_slower(const struct dl_system *a, const struct dl_system *b) {
    struct dl_path_adapter of_a, of_b;
    dl_path_adapter_of(a, true, &of_a);
    dl_path_adapter_of(b, true, &of_b);
    const double rates[] = {network_bytes_per_s(a), network_bytes_per_s(b)},
                 late_s[] = {known_or_zero(of_a.latency_s), known_or_zero(of_b.latency_s)},
                 host_s[] = {of_a.message_cpu_s, of_b.message_cpu_s};
    if (rates[0] < rates[1] || rates[0] > rates[1]) return rates[0] < rates[1];
    if (late_s[0] < late_s[1] || late_s[0] > late_s[1]) return late_s[0] > late_s[1];
    if (host_s[0] < host_s[1] || host_s[0] > host_s[1]) return host_s[0] > host_s[1];
    if (of_a.rdma != of_b.rdma) return !of_a.rdma;
    return a->name != NULL && b->name != NULL && strcmp(a->name, b->name) < 0;
}

enum dl_code dl_heterogeneous_systems(const struct dl_heterogeneous_group *groups, int group_count,
                                      int64_t nodes, struct dl_arena *arena, struct dl_system **out,
                                      struct dl_err *err) {
    const struct dl_system *slowest = groups[0].system;
    struct dl_system *systems = dl_arena_alloc(arena, (size_t)group_count, sizeof *systems);
    for (int i = 1; i < group_count; i++) {
        if (is_slower(groups[i].system, slowest)) slowest = groups[i].system;
    }
    for (int i = 0; i < group_count; i++) {
        const struct dl_system *own = groups[i].system;
        if (groups[i].nodes > own->nodes) {
            return dl_fail(err, DL_ERR_USAGE, "%s has %lld nodes, not %lld", own->name,
                           (long long)own->nodes, (long long)groups[i].nodes);
        }
        systems[i] = *own;
        systems[i].nodes = nodes;
        if (own == slowest) continue;
        systems[i].inter = slowest->inter;
        systems[i].has_inter = slowest->has_inter;
        systems[i].fabric = slowest->fabric;
        systems[i].has_fabric = slowest->has_fabric;
        systems[i].collective_count = 0; /* they were measured over its own network */
    }
    *out = systems;
    return DL_OK;
}

static enum dl_code make_systems(struct mix *m, struct dl_err *err) {
    for (int i = 0; i < m->group_count; i++) {
        const struct dl_system *own = m->groups[i].system;
        if (m->each > own->devices_per_node) {
            return dl_fail(err, DL_ERR_USAGE, "%s has %lld devices a node, not %lld", own->name,
                           (long long)own->devices_per_node, (long long)m->each);
        }
    }
    return dl_heterogeneous_systems(m->groups, m->group_count, m->nodes, m->arena, &m->systems,
                                    err);
}

/* The step of a job of this group's kind alone. */
static enum dl_code predict_group(const struct mix *m, int group, double batch,
                                  struct dl_plan *plan, struct dl_prediction *out,
                                  struct dl_err *err) {
    const struct dl_predict_options options = {.terms = m->terms};
    *plan = *m->plan;
    plan->nodes = m->nodes;
    plan->devices_per_node = m->each;
    plan->batch_per_device_samples = batch;
    plan->global_batch_samples = 0;
    DL_TRY(dl_plan_complete(&m->systems[group], m->workload, m->framework, plan, err));
    return dl_predict(&(struct dl_predict_request){.system = &m->systems[group],
                                                   .workload = m->workload,
                                                   .framework = m->framework,
                                                   .plan = plan,
                                                   .options = &options,
                                                   .arena = m->arena},
                      out, err);
}

static enum dl_code step_s(const struct mix *m, int group, double batch, double *out,
                           struct dl_err *err) {
    struct dl_plan plan;
    struct dl_prediction p = {0};
    DL_TRY(predict_group(m, group, batch, &plan, &p, err));
    *out = p.iteration_s;
    return DL_OK;
}

/* Batches at which the steps meet: each step taken as a line through two batches around the present
 * one, closer to it in each round: what overlaps ends in kinks. */
static enum dl_code meet(const struct mix *m, double *batch, struct dl_err *err) {
    for (int round = 0; round < ROUNDS; round++) {
        double base_s[DL_MIXED_GROUPS] = {0}, slope_s[DL_MIXED_GROUPS] = {0}, per_s = 0, offset = 0;
        const double span = 0.25 / (double)(1 << 2 * round);
        for (int i = 0; i < m->group_count; i++) {
            const double low = fmax(1, floor((1 - span) * batch[i])),
                         high = ceil((1 + span) * batch[i]); /* above `low`: a batch is 1 or more */
            double low_s = 0, high_s = 0;
            DL_TRY(step_s(m, i, low, &low_s, err));
            DL_TRY(step_s(m, i, high, &high_s, err));
            /* flat: as much as one likes */
            slope_s[i] = fmax((high_s - low_s) / (high - low), 1e-6 * low_s / low);
            base_s[i] = low_s - slope_s[i] * low;
            per_s += devices_of(m, i) / slope_s[i];
            offset += devices_of(m, i) * base_s[i] / slope_s[i];
        }
        const double all_s = (m->samples + offset) / per_s;
        double sum = 0, change = 0;
        for (int i = 0; i < m->group_count; i++)
            sum += devices_of(m, i) * fmax(1, (all_s - base_s[i]) / slope_s[i]);
        /* those held at one sample leave less to the others */
        for (int i = 0; i < m->group_count; i++) {
            const double next =
                fmax(1, fmax(1, (all_s - base_s[i]) / slope_s[i]) * m->samples / sum);
            change = fmax(change, fabs(next - batch[i]));
            batch[i] = next;
        }
        if (change < 0.5) break;
    }
    return DL_OK;
}

/* Of all ways to round down or up that leave room for every sample, the one with the shortest step.
 */
static enum dl_code round_batches(const struct mix *m, double *batch, struct dl_err *err) {
    double steps_s[DL_MIXED_GROUPS][2], best_s = INFINITY;
    unsigned best = (1u << m->group_count) - 1;
    for (int i = 0; i < m->group_count; i++) {
        batch[i] = floor(batch[i] + 1e-6);
        DL_TRY(step_s(m, i, batch[i], &steps_s[i][0], err));
        DL_TRY(step_s(m, i, batch[i] + 1, &steps_s[i][1], err));
    }
    for (unsigned up = 0; up < 1u << m->group_count; up++) {
        double room = 0, longest_s = 0;
        for (int i = 0; i < m->group_count; i++) {
            const unsigned one = up >> i & 1u;
            room += devices_of(m, i) * (batch[i] + one);
            longest_s = fmax(longest_s, steps_s[i][one]);
        }
        if (room >= m->samples && longest_s < best_s) best_s = longest_s, best = up;
    }
    for (int i = 0; i < m->group_count; i++) batch[i] += best >> i & 1u;
    return DL_OK;
}

static enum dl_code choose_batches(const struct mix *m, bool balanced, double *batch,
                                   struct dl_err *err) {
    const double devices = (double)(m->nodes * m->each);
    for (int i = 0; i < m->group_count; i++)
        batch[i] = balanced ? m->samples / devices : ceil(m->samples / devices - 1e-9);
    if (!balanced) return DL_OK;
    DL_TRY(meet(m, batch, err));
    return round_batches(m, batch, err);
}

/* Room that no sample needs stays free where it is worth most: on the slowest groups. */
static void share_out(struct mix *m) {
    double surplus = -m->samples;
    for (int i = 0; i < m->group_count; i++) {
        m->groups[i].samples = devices_of(m, i) * m->groups[i].batch_per_device_samples;
        surplus += m->groups[i].samples;
    }
    for (int left = m->group_count; left > 0 && surplus > 0; left--) {
        struct dl_heterogeneous_group *slowest = NULL;
        for (int i = 0; i < m->group_count; i++) {
            struct dl_heterogeneous_group *g = &m->groups[i];
            const bool touched = g->samples < devices_of(m, i) * g->batch_per_device_samples;
            if (!touched && (slowest == NULL || g->iteration_s > slowest->iteration_s)) slowest = g;
        }
        if (slowest == NULL) break;
        const double less = fmin(surplus, (double)(slowest->nodes * m->each));
        slowest->samples -= less;
        surplus -= less;
    }
}

static enum dl_code check(const struct dl_heterogeneous_job *job,
                          const struct dl_framework *framework, const struct dl_plan *plan,
                          struct dl_err *err) {
    const struct dl_strategy *own =
        dl_strategy_find(framework->strategy != NULL ? framework->strategy : "data");
    const struct dl_strategy *strategy = plan->strategy != NULL ? plan->strategy : own;
    if (job->group_count < 1 || job->group_count > DL_MIXED_GROUPS) {
        return dl_fail(err, DL_ERR_USAGE, "expected 1 to %d kinds of nodes, got %d",
                       DL_MIXED_GROUPS, job->group_count);
    }
    if (framework->sync.asynchronous) {
        return dl_fail(err, DL_ERR_USAGE,
                       "%s: asynchronous workers do not wait for each other: predict each kind of "
                       "node by itself",
                       framework->name);
    }
    const bool splits = plan->tp > 1 || plan->pp > 1 || plan->sp > 1 || plan->ep > 1;
    if (splits || strategy->partitioning != DL_PARTITION_DATA) {
        return dl_fail(err, DL_ERR_USAGE,
                       "%s: nodes of different kinds go with data parallelism, not with %s",
                       framework->name, strategy->name);
    }
    return DL_OK;
}

/* The job's figures in place of the deciding group's. */
static void make_job(const struct mix *m, const struct dl_prediction *of,
                     double alone_samples_per_s, struct dl_prediction *out) {
    out->throughput_samples_per_s = m->samples / out->iteration_s;
    const double epoch = m->plan->input.dataset_samples > 0 ? m->plan->input.dataset_samples
                                                            : m->workload->epoch_samples;
    out->epoch_s = epoch / out->throughput_samples_per_s;
    out->scaling_efficiency = out->throughput_samples_per_s / alone_samples_per_s;
    out->groups = m->groups;
    out->group_count = m->group_count;
    out->fits = true;
    for (int i = 0; i < m->group_count; i++) {
        /* it waits for the rest of the job's step */
        struct dl_prediction own = of[i];
        const struct dl_plan plan = {.nodes = m->groups[i].nodes, .devices_per_node = m->each};
        own.iteration_s = out->iteration_s;
        m->groups[i].power_w = dl_power_of(&m->systems[i], &plan, &own, NULL).job_w;
        m->groups[i].busy_frac = m->groups[i].iteration_s / out->iteration_s;
        out->fits = out->fits && m->groups[i].fits;
    }
}

enum dl_code dl_heterogeneous_predict(const struct dl_heterogeneous_question *question, bool terms,
                                      struct dl_arena *arena, struct dl_plan *plan_out,
                                      struct dl_prediction *out, struct dl_err *err) {
    const struct dl_heterogeneous_job *job = question->job;
    const struct dl_plan *plan = question->plan;
    struct mix m = {.workload = question->workload,
                    .framework = question->framework,
                    .plan = plan,
                    .arena = arena,
                    .group_count = job->group_count,
                    .each = plan->devices_per_node};
    DL_TRY(check(job, m.framework, plan, err));
    m.groups = dl_arena_alloc(arena, (size_t)job->group_count, sizeof *m.groups);
    for (int i = 0; i < job->group_count; i++) {
        m.groups[i] = (struct dl_heterogeneous_group){.system = job->groups[i].system,
                                                      .nodes = job->groups[i].nodes};
        m.nodes += m.groups[i].nodes;
        const int64_t devices = m.groups[i].system->devices_per_node;
        if (plan->devices_per_node <= 0 && (m.each <= 0 || devices < m.each)) m.each = devices;
    }
    const double devices = (double)(m.nodes * m.each);
    m.samples = plan->global_batch_samples > 0 ? plan->global_batch_samples
                                               : plan->batch_per_device_samples * devices;
    if (!(m.samples >= devices)) {
        return dl_fail(err, DL_ERR_USAGE,
                       "batch: %g samples are fewer than %g data-parallel ranks (scaling limit of "
                       "data parallelism)",
                       m.samples, devices);
    }
    double batch[DL_MIXED_GROUPS], alone = 0;
    struct dl_prediction slowest = {0}, all[DL_MIXED_GROUPS];
    DL_TRY(make_systems(&m, err));
    DL_TRY(choose_batches(&m, job->balanced, batch, err));
    m.terms = terms; /* not while batches are chosen */
    for (int i = 0; i < m.group_count; i++) {
        struct dl_plan own;
        struct dl_prediction p;
        DL_TRY(predict_group(&m, i, batch[i], &own, &p, err));
        struct dl_heterogeneous_group *g = &m.groups[i];
        g->batch_per_device_samples = batch[i];
        g->iteration_s = p.iteration_s;
        g->memory = p.memory;
        g->fits = p.fits;
        all[i] = p;
        alone += devices_of(&m, i) * batch[i] / (p.scaling_efficiency * p.iteration_s);
        if (i > 0 && p.iteration_s <= slowest.iteration_s) continue;
        slowest = p;
        *plan_out = own;
    }
    share_out(&m);
    make_job(&m, all, alone, &slowest);
    plan_out->global_batch_samples = m.samples;
    *out = slowest;
    return DL_OK;
}
