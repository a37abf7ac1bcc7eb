/* report_limits.c - the limits of a plan and the first change to make, in sentences and tables. */
#include <math.h>
#include <stdlib.h>

#include "model/search/limits.h"
#include "model/engine/memory_advice.h"
#include "plots/reports/report.h"

static const struct dl_column active_columns[] = {
    {"limit", "limit", "", DL_COLUMN_STRING, 0, 0},
    {"category", "kind", "", DL_COLUMN_STRING, 0, 0},
    {"cost_s", "time", "ms", DL_COLUMN_NUMBER, 1e-3, 3},
    {"share", "of iteration", "%", DL_COLUMN_NUMBER, 0.01, 3},
    {"cost_bytes", "memory", "GiB", DL_COLUMN_NUMBER, 1073741824, 3},
    {"detail", "detail", "", DL_COLUMN_STRING, 0, 0},
};
static const struct dl_column elasticity_columns[] = {
    {"resource", "1 % more of", "", DL_COLUMN_STRING, 0, 0},
    {"value", "changes the iteration by", "%", DL_COLUMN_NUMBER, 0, 2},
};
static const struct dl_column change_columns[] = {
    {"change", "change", "", DL_COLUMN_STRING, 0, 0},
    {"of", "of", "", DL_COLUMN_STRING, 0, 0},
    {"iteration_s", "iteration", "ms", DL_COLUMN_NUMBER, 1e-3, 4},
    {"gain", "faster by", "%", DL_COLUMN_NUMBER, 0.01, 3},
};

static void put_active(struct dl_report *r, const struct dl_limits *l, double iteration_s) {
    struct dl_table table;
    dl_table_init(&table, r->context->arena, active_columns,
                  sizeof active_columns / sizeof active_columns[0]);
    for (int i = 0; i < l->active_count; i++) {
        dl_table_add(&table, {.string = l->active[i].name}, {.string = l->active[i].category},
                     {.number = l->active[i].cost_s}, {.number = l->active[i].cost_s / iteration_s},
                     {.number = l->active[i].cost_bytes}, {.string = l->active[i].detail});
    }
    if (table.row_count > 0)
        dl_document_table(&r->page, &table, "Limits of the plan, and what each costs.");
}

static void put_elasticities(struct dl_report *r, const struct dl_limits *l) {
    struct dl_table table;
    dl_table_init(&table, r->context->arena, elasticity_columns, 2);
    for (int i = 0; i < l->elasticity_count; i++) {
        dl_table_add(&table, {.string = l->elasticity[i].resource},
                     {.number = fabs(l->elasticity[i].value) < 5e-4 ? 0 : l->elasticity[i].value});
    }
    if (table.row_count > 0)
        dl_document_table(&r->page, &table,
                          "How the iteration reacts to each resource (F-ELASTICITY).");
}

static void put_changes(struct dl_report *r, const struct dl_limits *l, double iteration_s) {
    struct dl_table table;
    dl_table_init(&table, r->context->arena, change_columns,
                  sizeof change_columns / sizeof change_columns[0]);
    for (int i = 0; i < l->change_count && i < 8; i++) {
        dl_table_add(&table, {.string = l->changes[i].text},
                     {.string = l->changes[i].of_plan ? "the plan" : "the machine"},
                     {.number = l->changes[i].iteration_s},
                     {.number = iteration_s / l->changes[i].iteration_s - 1});
    }
    if (table.row_count > 0)
        dl_document_table(&r->page, &table,
                          "Changes, the most effective first. Each line is a separate prediction.");
    else
        dl_document_paragraph(&r->page, "No single change (twice each resource, or a neighbouring "
                                        "plan) shortens the iteration.");
}

enum dl_code dl_report_limits(struct dl_report *r, const struct dl_modelled *m,
                              struct dl_err *err) {
    struct dl_arena *arena = r->context->arena;
    struct dl_limits *l = dl_arena_alloc(arena, 1, sizeof *l);
    const struct dl_prediction *p = m->prediction;
    DL_TRY(dl_limits_of(&(struct dl_predict_request){.system = m->system,
                                                     .workload = m->workload,
                                                     .framework = m->framework,
                                                     .plan = m->plan,
                                                     .arena = arena},
                        l, err));
    dl_document_paragraph(
        &r->page,
        dl_arena_printf(arena, "%s with %s on %s of %s: %.0f %% of an iteration is %s.",
                        m->workload->name, m->framework->name,
                        dl_report_count(arena, (long long)m->plan->nodes, "node"), m->system->name,
                        100 * p->bottleneck_share, dl_bottleneck_names[p->bottleneck]));
    put_active(r, l, p->iteration_s);
    put_changes(r, l, p->iteration_s);
    put_elasticities(r, l);
    const char *advice = p->fits ? NULL
                                 : dl_memory_advice(m->system, m->workload, m->framework, m->plan,
                                                    m->plan->batch_per_device_samples, arena);
    if (advice != NULL) dl_document_paragraph(&r->page, advice);
    return DL_OK;
}
