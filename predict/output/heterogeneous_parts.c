/* heterogeneous_parts.c - `search --heterogeneous --place stages|parts`: where the stages of a
 * pipeline run, and workers, parameter servers and the decoding of samples. */

#include "model/core/columns.h"
#include "model/core/text.h"
#include "model/framework/gradient_sync.h"
#include "model/search/parts.h"
#include "model/search/stage_plan.h"
#include "predict/output/heterogeneous_search.h"

/* What the columns show: of one pipeline, of one of its stages, of one choice of roles. */
struct staged_facts {
    struct dl_staged s;
    const char *nodes, *stages;
    double low, high; /* samples/s */
};
struct stage_facts {
    struct dl_staged_stage s;
    const char *system;
    int stage;
};
struct role_facts {
    struct dl_role_assignment p;
    const char *workers, *servers, *input;
};
#define STAGED(member, key, heading, unit, scale, digits)                                          \
    DL_SHOWN(struct staged_facts, member, key, heading, unit, scale, digits, 0, NULL)
#define STAGE(member, key, heading, unit, scale, digits)                                           \
    DL_SHOWN(struct stage_facts, member, key, heading, unit, scale, digits, 0, NULL)
#define ROLE(member, key, heading, unit, scale, digits)                                            \
    DL_SHOWN(struct role_facts, member, key, heading, unit, scale, digits, 0, NULL)
static const struct dl_list_column staged_columns[] = {
    STAGED(nodes, "nodes", "nodes", "", 0, 0),
    STAGED(s.count, "stage_count", "stages", "", 0, 0),
    STAGED(s.micro_batches, "micro_batches", "micro-batches", "", 1, 0),
    STAGED(s.prediction.throughput_samples_per_s, "throughput_samples_per_s", "samples", "1/s", 1,
           4),
    STAGED(low, "throughput_low_samples_per_s", "low", "1/s", 1, 3),
    STAGED(high, "throughput_high_samples_per_s", "high", "1/s", 1, 3),
    STAGED(s.prediction.iteration_s, "iteration_s", "iter", "ms", 1e-3, 3),
    STAGED(s.sample_energy_j, "sample_energy_j", "energy", "J", 1, 3),
    STAGED(s.cost_per_sample, "cost_per_sample", "cost", "per sample", 0, 3),
    DL_HIDDEN(struct staged_facts, stages, "stages", NULL),
};
static const struct dl_list_column stage_columns[] = {
    STAGE(stage, "stage", "stage", "", 0, 0),
    STAGE(system, "system", "system", "", 0, 0),
    STAGE(s.nodes, "nodes", "nodes", "", 0, 0),
    STAGE(s.devices, "devices", "devices", "", 0, 0),
    STAGE(s.first, "first_layer", "from", "", 0, 0),
    STAGE(s.last, "last_layer", "to", "", 0, 0),
    STAGE(s.step_s, "step_s", "micro-batch", "ms", 1e-3, 3),
    STAGE(s.busy_frac, "busy_frac", "busy", "%", 0.01, 3),
    STAGE(s.memory_bytes, "memory_bytes", "memory", "GiB", 1 << 30, 3),
};
static const struct dl_list_column role_columns[] = {
    ROLE(workers, "workers", "workers", "", 0, 0),
    ROLE(servers, "servers", "servers", "", 0, 0),
    ROLE(input, "input", "input", "", 0, 0),
    ROLE(p.samples_per_s, "throughput_samples_per_s", "samples", "1/s", 1, 4),
    ROLE(p.low_samples_per_s, "throughput_low_samples_per_s", "low", "1/s", 1, 3),
    ROLE(p.high_samples_per_s, "throughput_high_samples_per_s", "high", "1/s", 1, 3),
    ROLE(p.iteration_s, "iteration_s", "iter", "ms", 1e-3, 3),
    ROLE(p.exposed_comm_s, "exposed_comm_s", "exposed", "ms", 1e-3, 3),
    ROLE(p.exposed_input_s, "exposed_input_s", "input", "ms", 1e-3, 3),
    ROLE(p.sample_energy_j, "sample_energy_j", "energy", "J", 1, 3),
    ROLE(p.cost_per_sample, "cost_per_sample", "cost", "per sample", 0, 3),
    ROLE(p.fits, "fits", "fits", "", 0, 0),
};

/* "dgx1-v100:2", or the word for none. */
static const char *part_text(struct dl_arena *arena, const struct dl_heterogeneous_job *all,
                             int kind, int64_t nodes, const char *none) {
    return nodes == 0 ? none
                      : dl_arena_printf(arena, "%s:%lld", all->groups[kind].system->name,
                                        (long long)nodes);
}

/* ---- stages ---- */

static const char *staged_nodes(struct dl_arena *arena, const struct dl_heterogeneous_job *all,
                                const struct dl_staged *s) {
    struct dl_text text = {.arena = arena};
    const char *comma = "";
    for (int k = 0; k < all->group_count; k++) {
        if (s->nodes[k] == 0) continue;
        dl_text_printf(&text, "%s%s", comma, part_text(arena, all, k, s->nodes[k], ""));
        comma = ",";
    }
    return dl_text_string(&text);
}

/* "dgx1-v100:2 conv1..layer2.3.relu; dgx1-p100:1 layer3.0.conv1..fc" */
static const char *stages_text(struct dl_arena *arena, const struct dl_heterogeneous_job *all,
                               const struct dl_staged *s) {
    struct dl_text text = {.arena = arena};
    for (int i = 0; i < s->count; i++)
        dl_text_printf(&text, "%s%s %s..%s", i > 0 ? "; " : "",
                       part_text(arena, all, s->stages[i].kind, s->stages[i].nodes, ""),
                       s->stages[i].first, s->stages[i].last);
    return dl_text_string(&text);
}

static void fill_staged(struct dl_table *table, const struct dl_heterogeneous_job *all,
                        const struct dl_staged *s) {
    const struct dl_prediction *p = &s->prediction;
    const double samples = p->throughput_samples_per_s * p->iteration_s;
    const struct staged_facts facts = {*s, staged_nodes(table->arena, all, s),
                                       stages_text(table->arena, all, s),
                                       samples / p->iteration_high_s, samples / p->iteration_low_s};
    dl_list_add(table, staged_columns, &facts);
}

static void stage_table(struct dl_table *table, const struct dl_heterogeneous_job *all,
                        const struct dl_staged *s) {
    for (int i = 0; i < s->count; i++) {
        const struct stage_facts facts = {s->stages[i], all->groups[s->stages[i].kind].system->name,
                                          i};
        dl_list_add(table, stage_columns, &facts);
    }
}

enum dl_code dl_heterogeneous_stages(struct dl_context *context,
                                     const struct dl_heterogeneous_request *r, struct dl_err *err) {
    const struct dl_heterogeneous_job *all = r->inputs->heterogeneous;
    struct dl_arena *arena = context->arena;
    struct dl_staged *list;
    struct dl_table table, best;
    int count;
    const struct dl_heterogeneous_question question = {all, r->inputs->workload, r->framework,
                                                       &r->inputs->plan};
    DL_TRY(dl_staged_search(&question, r->objective, arena, &list, &count, err));
    dl_list_table(&table, arena, DL_LIST(staged_columns), 0);
    dl_list_table(&best, arena, DL_LIST(stage_columns), 0);
    for (int i = 0; i < count && i < r->top; i++) fill_staged(&table, all, &list[i]);
    stage_table(&best, all, &list[0]);
    return dl_heterogeneous_put(
        context, r, "dlmodel-stages", &table,
        dl_arena_printf(arena,
                        "Best by %s of %d choices of nodes with %s (F-HETEROGENEOUS-STAGES): %s, "
                        "%.0f micro-batch%s of %g samples.\n\n%s",
                        dl_placement_objectives[r->objective], count, r->framework->name,
                        staged_nodes(arena, all, &list[0]), list[0].micro_batches,
                        list[0].micro_batches == 1 ? "" : "es", list[0].micro_batch_samples,
                        dl_table_text(&best)),
        err);
}

/* ---- parts ---- */

static void fill_roles(struct dl_table *table, const struct dl_heterogeneous_job *all,
                       const struct dl_framework *framework, const struct dl_role_assignment *p,
                       bool decodes) {
    const char *const none = framework->behaviour->has_servers ? "with workers" : "none";
    const struct role_facts facts = {
        *p, part_text(table->arena, all, p->worker_kind, p->worker_nodes, ""),
        part_text(table->arena, all, p->server_kind, p->server_nodes, none),
        part_text(table->arena, all, p->input_kind, p->input_nodes,
                  decodes ? "with workers" : "none")};
    dl_list_add(table, role_columns, &facts);
}

enum dl_code dl_heterogeneous_parts(struct dl_context *context,
                                    const struct dl_heterogeneous_request *r, struct dl_err *err) {
    const struct dl_heterogeneous_job *all = r->inputs->heterogeneous;
    const struct dl_plan *plan = &r->inputs->plan;
    const bool decodes = !plan->input.synthetic && plan->input.decode_s_per_sample > 0;
    struct dl_role_assignment *list;
    struct dl_table table;
    int count;
    if (!r->framework->behaviour->has_servers && !decodes)
        return dl_fail(err, DL_ERR_USAGE,
                       "--place parts: %s has no parameter servers and synthetic input is not "
                       "decoded; give --input real, or --framework tensorflow-ps",
                       r->framework->name);
    const struct dl_heterogeneous_question question = {all, r->inputs->workload, r->framework,
                                                       plan};
    DL_TRY(dl_parts_search(&question, r->objective, context->arena, &list, &count, err));
    if (!list[0].fits) return dl_fail(err, DL_ERR_NO, "no choice of nodes fits in memory");
    dl_list_table(&table, context->arena, DL_LIST(role_columns), 0);
    for (int i = 0; i < count && i < r->top; i++)
        fill_roles(&table, all, r->framework, &list[i], decodes);
    const union dl_cell *best = table.cells;
    return dl_heterogeneous_put(
        context, r, "dlmodel-parts", &table,
        dl_arena_printf(context->arena,
                        "Best by %s of %d choices with %s (F-HETEROGENEOUS-PARTS): workers on %s, "
                        "servers: %s, decoding: %s.",
                        dl_placement_objectives[r->objective], count, r->framework->name,
                        best[0].string, best[1].string, best[2].string),
        err);
}
