/* heterogeneous_parts.c - `search --heterogeneous --place stages|parts`: where the stages of a
 * pipeline run, and workers, parameter servers and the decoding of samples. */
#include <math.h>

#include "model/core/text.h"
#include "model/framework/gradient_sync.h"
#include "model/search/parts.h"
#include "model/search/stage_plan.h"
#include "predict/output/heterogeneous_search.h"

static const struct dl_column staged_columns[] = {
    {"nodes", "nodes", "", DL_COLUMN_STRING, 0, 0},
    {"stage_count", "stages", "", DL_COLUMN_INTEGER, 0, 0},
    {"micro_batches", "micro-batches", "", DL_COLUMN_NUMBER, 1, 0},
    {"throughput_samples_per_s", "samples", "1/s", DL_COLUMN_NUMBER, 1, 4},
    {"throughput_low_samples_per_s", "low", "1/s", DL_COLUMN_NUMBER, 1, 3},
    {"throughput_high_samples_per_s", "high", "1/s", DL_COLUMN_NUMBER, 1, 3},
    {"iteration_s", "iter", "ms", DL_COLUMN_NUMBER, 1e-3, 3},
    {"sample_energy_j", "energy", "J", DL_COLUMN_NUMBER, 1, 3},
    {"cost_per_sample", "cost", "per sample", DL_COLUMN_NUMBER, 0, 3},
    {"stages", NULL, NULL, DL_COLUMN_STRING, 0, 0},
};
static const struct dl_column stage_columns[] = {
    {"stage", "stage", "", DL_COLUMN_INTEGER, 0, 0},
    {"system", "system", "", DL_COLUMN_STRING, 0, 0},
    {"nodes", "nodes", "", DL_COLUMN_INTEGER, 0, 0},
    {"devices", "devices", "", DL_COLUMN_INTEGER, 0, 0},
    {"first_layer", "from", "", DL_COLUMN_STRING, 0, 0},
    {"last_layer", "to", "", DL_COLUMN_STRING, 0, 0},
    {"step_s", "micro-batch", "ms", DL_COLUMN_NUMBER, 1e-3, 3},
    {"busy_frac", "busy", "%", DL_COLUMN_NUMBER, 0.01, 3},
    {"memory_bytes", "memory", "GiB", DL_COLUMN_NUMBER, 1 << 30, 3},
};
static const struct dl_column parted_columns[] = {
    {"workers", "workers", "", DL_COLUMN_STRING, 0, 0},
    {"servers", "servers", "", DL_COLUMN_STRING, 0, 0},
    {"input", "input", "", DL_COLUMN_STRING, 0, 0},
    {"throughput_samples_per_s", "samples", "1/s", DL_COLUMN_NUMBER, 1, 4},
    {"throughput_low_samples_per_s", "low", "1/s", DL_COLUMN_NUMBER, 1, 3},
    {"throughput_high_samples_per_s", "high", "1/s", DL_COLUMN_NUMBER, 1, 3},
    {"iteration_s", "iter", "ms", DL_COLUMN_NUMBER, 1e-3, 3},
    {"exposed_comm_s", "exposed", "ms", DL_COLUMN_NUMBER, 1e-3, 3},
    {"exposed_input_s", "input", "ms", DL_COLUMN_NUMBER, 1e-3, 3},
    {"sample_energy_j", "energy", "J", DL_COLUMN_NUMBER, 1, 3},
    {"cost_per_sample", "cost", "per sample", DL_COLUMN_NUMBER, 0, 3},
    {"fits", "fits", "", DL_COLUMN_BOOL, 0, 0},
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
    const double rate = p->throughput_samples_per_s;
    const double values[] = {s->micro_batches,
                             rate,
                             rate * p->iteration_s / p->iteration_high_s,
                             rate * p->iteration_s / p->iteration_low_s,
                             p->iteration_s,
                             s->sample_energy_j,
                             s->cost_per_sample};
    union dl_cell *c = dl_table_row(table);
    c[0].string = staged_nodes(table->arena, all, s);
    c[1].integer = s->count;
    for (int k = 0; k < 7; k++) c[2 + k].number = values[k];
    c[9].string = stages_text(table->arena, all, s);
}

static void stage_table(struct dl_table *table, const struct dl_heterogeneous_job *all,
                        const struct dl_staged *s) {
    for (int i = 0; i < s->count; i++) {
        const struct dl_staged_stage *own = &s->stages[i];
        union dl_cell *c = dl_table_row(table);
        c[0].integer = i;
        c[1].string = all->groups[own->kind].system->name;
        c[2].integer = own->nodes;
        c[3].integer = own->devices;
        c[4].string = own->first;
        c[5].string = own->last;
        c[6].number = own->step_s;
        c[7].number = own->busy_frac;
        c[8].number = own->memory_bytes;
    }
}

enum dl_code dl_heterogeneous_stages(struct dl_context *context, const struct dl_options *options,
                                     const struct dl_heterogeneous_request *r, struct dl_err *err) {
    const struct dl_heterogeneous_job *all = r->inputs->heterogeneous;
    struct dl_arena *arena = context->arena;
    struct dl_staged *list;
    struct dl_table table, best;
    int count;
    DL_TRY(dl_staged_search(all, r->inputs->workload, r->framework, &r->inputs->plan, r->objective,
                            arena, &list, &count, err));
    dl_table_init(&table, arena, staged_columns, sizeof staged_columns / sizeof *staged_columns);
    dl_table_init(&best, arena, stage_columns, sizeof stage_columns / sizeof *stage_columns);
    for (int i = 0; i < count && i < r->top; i++) fill_staged(&table, all, &list[i]);
    stage_table(&best, all, &list[0]);
    return dl_heterogeneous_put(
        context, options, "dlmodel-stages", &table,
        dl_arena_printf(arena,
                        "Best by %s of %d choices of nodes with %s (F-HETEROGENEOUS-STAGES): %s, "
                        "%.0f micro-batch%s of %g samples.\n\n%s",
                        dl_placement_objectives[r->objective], count, r->framework->name,
                        staged_nodes(arena, all, &list[0]), list[0].micro_batches,
                        list[0].micro_batches == 1 ? "" : "es", list[0].micro_batch_samples,
                        dl_table_text(&best)),
        r->format, err);
}

/* ---- parts ---- */

static void fill_parted(struct dl_table *table, const struct dl_heterogeneous_job *all,
                        const struct dl_framework *framework, const struct dl_role_assignment *p,
                        bool decodes) {
    const double values[] = {p->samples_per_s,   p->low_samples_per_s, p->high_samples_per_s,
                             p->iteration_s,     p->exposed_comm_s,    p->exposed_input_s,
                             p->sample_energy_j, p->cost_per_sample};
    const char *const none = framework->behaviour->has_servers ? "with workers" : "none";
    union dl_cell *c = dl_table_row(table);
    c[0].string = part_text(table->arena, all, p->worker_kind, p->worker_nodes, "");
    c[1].string = part_text(table->arena, all, p->server_kind, p->server_nodes, none);
    c[2].string = part_text(table->arena, all, p->input_kind, p->input_nodes,
                            decodes ? "with workers" : "none");
    for (int k = 0; k < 8; k++) c[3 + k].number = values[k];
    c[11].boolean = p->fits;
}

enum dl_code dl_heterogeneous_parts(struct dl_context *context, const struct dl_options *options,
                                    const struct dl_heterogeneous_request *r, struct dl_err *err) {
    const struct dl_heterogeneous_job *all = r->inputs->heterogeneous;
    const struct dl_plan *plan = &r->inputs->plan;
    const bool decodes = !plan->synthetic_input && plan->decode_s_per_sample > 0;
    struct dl_role_assignment *list;
    struct dl_table table;
    int count;
    if (!r->framework->behaviour->has_servers && !decodes)
        return dl_fail(err, DL_ERR_USAGE,
                       "--place parts: %s has no parameter servers and synthetic input is not "
                       "decoded; give --input real, or --framework tensorflow-ps",
                       r->framework->name);
    DL_TRY(dl_parts_search(all, r->inputs->workload, r->framework, plan, r->objective,
                           context->arena, &list, &count, err));
    if (!list[0].fits) return dl_fail(err, DL_ERR_NO, "no choice of nodes fits in memory");
    dl_table_init(&table, context->arena, parted_columns,
                  sizeof parted_columns / sizeof *parted_columns);
    for (int i = 0; i < count && i < r->top; i++)
        fill_parted(&table, all, r->framework, &list[i], decodes);
    const union dl_cell *best = table.cells;
    return dl_heterogeneous_put(
        context, options, "dlmodel-parts", &table,
        dl_arena_printf(context->arena,
                        "Best by %s of %d choices with %s (F-HETEROGENEOUS-PARTS): workers on %s, "
                        "servers: %s, decoding: %s.",
                        dl_placement_objectives[r->objective], count, r->framework->name,
                        best[0].string, best[1].string, best[2].string),
        r->format, err);
}
