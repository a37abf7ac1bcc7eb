/* parts.c - see parts.h. */
#include "model/search/parts.h"

#include <math.h>
#include <stdlib.h>

#include "model/framework/gradient_sync.h"
#include "model/framework/servers.h"
#include "model/engine/energy.h"

enum { EVERY_COUNT = 8 }; /* nodes of a kind up to which each number is tried */

struct search {
    const struct dl_heterogeneous_job *all;
    const struct dl_workload *workload;
    const struct dl_framework *framework;
    const struct dl_plan *plan;
    enum dl_placement_objective objective;
    struct dl_arena *arena;
    struct dl_role_assignment *list;
    int count, room;
    struct dl_err refusal;
};

static double score_of(const struct dl_role_assignment *p, enum dl_placement_objective objective) {
    if (objective == DL_PLACE_ENERGY) return p->sample_energy_j;
    return objective == DL_PLACE_COST ? p->cost_per_sample : 1 / p->samples_per_s;
}

static int64_t next_count(int64_t n, int64_t most) {
    if (most <= EVERY_COUNT) return n + 1;
    return n < most && 2 * n > most ? most : 2 * n;
}

static const struct dl_system *system_of(const struct search *s, int kind) {
    return kind < 0 ? NULL : s->all->groups[kind].system;
}

/* Nodes of `kind` that this choice takes. */
static int64_t taken(const struct dl_role_assignment *p, int kind) {
    return (p->worker_kind == kind ? p->worker_nodes : 0) +
           (p->server_kind == kind ? p->server_nodes : 0) +
           (p->input_kind == kind ? p->input_nodes : 0);
}

/* Power of nodes with idle devices. */
static double waiting_w(const struct dl_system *system, int64_t nodes, double iteration_s) {
    if (system == NULL || nodes == 0) return 0;
    const struct dl_plan plan = {.nodes = nodes, .devices_per_node = system->devices_per_node};
    const struct dl_prediction waits = {.iteration_s = iteration_s};
    return dl_power_of(system, &plan, &waits, NULL).job_w;
}

static enum dl_code spend(const struct search *s, const struct dl_plan *plan,
                          const struct dl_prediction *prediction, struct dl_role_assignment *p,
                          struct dl_err *err) {
    struct dl_heterogeneous_group groups[DL_MIXED_GROUPS];
    const struct dl_heterogeneous_job used = {.groups = groups, .group_count = s->all->group_count};
    for (int k = 0; k < s->all->group_count; k++)
        groups[k] = (struct dl_heterogeneous_group){.system = s->all->groups[k].system,
                                                    .nodes = taken(p, k)};
    const double power_w =
        dl_power_of(system_of(s, p->worker_kind), plan, prediction, NULL).job_w +
        waiting_w(system_of(s, p->server_kind), p->server_nodes, prediction->iteration_s) +
        waiting_w(system_of(s, p->input_kind), p->input_nodes, prediction->iteration_s);
    p->sample_energy_j = power_w / p->samples_per_s;
    p->cost_per_sample = dl_placement_price_per_s(&used) / p->samples_per_s;
    if (dl_known(score_of(p, s->objective))) return DL_OK;
    return dl_fail(err, DL_ERR_USAGE, "--objective %s: no %s of every kind of node is known",
                   dl_placement_objectives[s->objective],
                   s->objective == DL_PLACE_COST ? "price in one currency" : "power");
}

/* The plan of the workers of a choice. */
static struct dl_plan plan_of(const struct search *s, const struct dl_role_assignment *p) {
    const struct dl_system *workers = system_of(s, p->worker_kind);
    struct dl_plan plan = *s->plan;
    plan.nodes = p->worker_nodes;
    plan.dp = 0;
    if (plan.devices_per_node > workers->devices_per_node)
        plan.devices_per_node = workers->devices_per_node;
    if (plan.global_batch_samples > 0) plan.batch_per_device_samples = 0;
    plan.parameter_servers.nodes = system_of(s, p->server_kind);
    if (p->server_nodes > 0) plan.parameter_servers.count = p->server_nodes;
    plan.input.nodes = system_of(s, p->input_kind);
    plan.input.node_count = p->input_nodes;
    return plan;
}

static enum dl_code predict(struct search *s, struct dl_role_assignment *p, struct dl_err *err) {
    const struct dl_system *workers = system_of(s, p->worker_kind);
    struct dl_plan plan = plan_of(s, p);
    struct dl_prediction out;
    enum dl_code code = dl_plan_complete(workers, s->workload, s->framework, &plan, &s->refusal);
    if (code == DL_OK)
        code = dl_predict(&(struct dl_predict_request){.system = workers,
                                                       .workload = s->workload,
                                                       .framework = s->framework,
                                                       .plan = &plan,
                                                       .arena = s->arena},
                          &out, &s->refusal);
    if (code == DL_ERR_SYSTEM) return dl_fail(err, code, "%s", s->refusal.message);
    if (code != DL_OK) return DL_OK; /* this choice cannot run */
    p->fits = out.fits;
    p->iteration_s = out.iteration_s;
    p->exposed_comm_s = out.exposed_comm_s;
    p->exposed_input_s = out.exposed_input_s;
    p->samples_per_s = out.throughput_samples_per_s;
    p->low_samples_per_s = p->samples_per_s * out.iteration_s / out.iteration_high_s;
    p->high_samples_per_s = p->samples_per_s * out.iteration_s / out.iteration_low_s;
    DL_TRY(spend(s, &plan, &out, p, err));
    if (s->count == s->room)
        return dl_fail(err, DL_ERR_USAGE, "more than %d choices of nodes", DL_PARTS_CHOICES);
    s->list[s->count++] = *p;
    return DL_OK;
}

/* Input on the workers' nodes, then on 1, 2, ... nodes of every kind that are left. */
static enum dl_code each_input(struct search *s, struct dl_role_assignment p, struct dl_err *err) {
    DL_TRY(predict(s, &p, err));
    const bool decodes = !s->plan->input.synthetic && s->plan->input.decode_s_per_sample > 0;
    for (int k = 0; k < s->all->group_count && decodes; k++) {
        const int64_t most = s->all->groups[k].nodes, left = most - taken(&p, k);
        for (int64_t n = 1; n <= left; n = next_count(n, most)) {
            struct dl_role_assignment one = p;
            one.input_kind = k;
            one.input_nodes = n;
            DL_TRY(predict(s, &one, err));
        }
    }
    return DL_OK;
}

/* Servers next to the workers, then on 1, 2, ... nodes of every kind that are left. */
static enum dl_code each_server(struct search *s, struct dl_role_assignment p, struct dl_err *err) {
    DL_TRY(each_input(s, p, err));
    const struct dl_framework_behaviour *behaviour = s->framework->behaviour;
    const bool serves = behaviour != NULL && behaviour->has_servers;
    for (int k = 0; k < s->all->group_count && serves; k++) {
        const int64_t most = s->all->groups[k].nodes, left = most - taken(&p, k);
        for (int64_t n = 1; n <= left; n = next_count(n, most)) {
            struct dl_role_assignment one = p;
            one.server_kind = k;
            one.server_nodes = n;
            DL_TRY(each_input(s, one, err));
        }
    }
    return DL_OK;
}

static int by_score(double a, double b) { return a < b ? -1 : b < a; }

/* qsort() has no context: one comparison for each objective. */
static int compare(const struct dl_role_assignment *a, const struct dl_role_assignment *b,
                   enum dl_placement_objective objective) {
    const int64_t a_nodes = a->worker_nodes + a->server_nodes + a->input_nodes,
                  b_nodes = b->worker_nodes + b->server_nodes + b->input_nodes;
    if (a->fits != b->fits) return a->fits ? -1 : 1;
    const int by = by_score(score_of(a, objective), score_of(b, objective));
    return by != 0 ? by : a_nodes < b_nodes ? -1 : a_nodes > b_nodes;
}
static int by_time(const void *a, const void *b) { return compare(a, b, DL_PLACE_TIME); }
static int by_energy(const void *a, const void *b) { return compare(a, b, DL_PLACE_ENERGY); }
static int by_cost(const void *a, const void *b) { return compare(a, b, DL_PLACE_COST); }

static void sort(const struct search *s) {
    int (*const by[])(const void *, const void *) = {by_time, by_energy, by_cost};
    qsort(s->list, (size_t)s->count, sizeof *s->list, by[s->objective]);
}

/* Upper bound of the number of choices: workers x (servers or none) x (input nodes or none). */
static double choices(const struct dl_heterogeneous_job *all) {
    double counts = 0;
    for (int k = 0; k < all->group_count; k++)
        for (int64_t n = 1; n <= all->groups[k].nodes; n = next_count(n, all->groups[k].nodes))
            counts++;
    return counts * (counts + 1) * (counts + 1);
}

enum dl_code dl_parts_search(const struct dl_heterogeneous_question *question,
                             enum dl_placement_objective objective, struct dl_arena *arena,
                             struct dl_role_assignment **out, int *count, struct dl_err *err) {
    const struct dl_heterogeneous_job *all = question->job;
    struct search s = {.all = all,
                       .workload = question->workload,
                       .framework = question->framework,
                       .plan = question->plan,
                       .objective = objective,
                       .arena = arena,
                       .refusal = {.code = DL_OK},
                       .room = (int)fmin(DL_PARTS_CHOICES, choices(all))};
    s.list = dl_arena_alloc(arena, (size_t)s.room, sizeof *s.list);
    for (int k = 0; k < all->group_count; k++) {
        const int64_t most = all->groups[k].nodes;
        for (int64_t n = 1; n <= most; n = next_count(n, most)) {
            const struct dl_role_assignment p = {
                .worker_kind = k, .server_kind = -1, .input_kind = -1, .worker_nodes = n};
            DL_TRY(each_server(&s, p, err));
        }
    }
    if (s.count == 0) return dl_fail(err, DL_ERR_USAGE, "%s", s.refusal.message);
    sort(&s);
    *out = s.list;
    *count = s.count;
    return DL_OK;
}
