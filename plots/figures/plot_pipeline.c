/* plot_pipeline.c - the schedule of a pipeline as a Gantt chart: which micro-batch passes through
 * which stage when, and where a stage is idle. F-PIPE-ORDER with the model's times of each stage;
 * what happens once in an iteration follows as one bar: exposed communication (messages between
 * stages too), update, overhead. */
#include <math.h>
#include <string.h>

#include "model/engine/pipe.h"
#include "model/engine/schedule.h"
#include "plots/figures/plot.h"

static const struct dl_column columns[] = {
    {"group", NULL, NULL, DL_COLUMN_INTEGER, 0, 0},
    {"label", "stage", "", DL_COLUMN_STRING, 0, 0},
    {"start_s", "start", "ms", DL_COLUMN_NUMBER, 1e-3, 0},
    {"end_s", "end", "ms", DL_COLUMN_NUMBER, 1e-3, 0},
    {"kind", NULL, NULL, DL_COLUMN_INTEGER, 0, 0},
    {"what", "what", "", DL_COLUMN_STRING, 0, 0},
    {"micro_batch", "micro-batch", "", DL_COLUMN_INTEGER, 0, 0},
    {"part", "part", "", DL_COLUMN_INTEGER, 0, 0},
};
enum { FORWARD = 1, BACKWARD, REST, WEIGHTS, MAX_PASSES = 20000, NAMED_PASSES = 400 };
static const char *const kinds[] = {"", "forward", "backward", "communication, update, overhead",
                                    "gradients of weights"};
static const int kind_of[] = {FORWARD, BACKWARD, WEIGHTS}; /* of a pass */

struct bar {
    int stage, kind;
    double start_s, end_s;
    int64_t micro_batch, part; /* from 1; DL_ABSENT: none */
};

static void add(struct dl_figure *out, const struct bar *bar) {
    union dl_cell *c = dl_table_row(&out->table);
    c[0].integer = bar->stage + 1;
    c[1].string = out->labels[bar->stage];
    c[2].number = bar->start_s;
    c[3].number = bar->end_s;
    c[4].integer = bar->kind;
    c[5].string = kinds[bar->kind];
    c[6].integer = bar->micro_batch;
    c[7].integer = bar->part;
}

/* The passes of all stages, and after the last one what happens once. */
static void fill(const struct dl_pipeline_pass *passes, int count, double end_s,
                 const struct dl_prediction *p, struct dl_figure *out) {
    for (int i = 0; i < count; i++) {
        const struct dl_pipeline_pass *x = &passes[i];
        add(out, &(struct bar){x->stage, kind_of[x->kind], x->start_s, x->end_s, x->micro_batch + 1,
                               x->part + 1});
        const bool last = i + 1 == count || passes[i + 1].stage != x->stage;
        if (last && p->iteration_s > end_s)
            add(out, &(struct bar){x->stage, REST, end_s, p->iteration_s, DL_ABSENT, DL_ABSENT});
    }
}

static enum dl_code name(struct dl_context *context, const struct dl_plot_one *p,
                         const struct dl_pipeline_order *o, double end_s, const double *busy_s,
                         struct dl_figure *out, struct dl_err *err) {
    (void)err;
    struct dl_arena *arena = context->arena;
    double all_s = 0, most_s = 0;
    for (int s = 0; s < o->stages; s++) {
        all_s += busy_s[s];
        most_s = fmax(most_s, busy_s[s]);
    }
    int slowest = -1, slow = 0;
    for (int s = 0; s < o->stages; s++) {
        if (busy_s[s] < 0.9999 * most_s) continue;
        slowest = s;
        slow++;
    }
    dl_plot_time_unit(p->prediction.iteration_s, out->parameters);
    out->title = dl_arena_printf(
        arena, "%s, %s pipeline: stages idle for %.0f %% of the first %.4g %s%s",
        p->inputs.workload->name, dl_schedule_names[o->schedule],
        100 * (1 - all_s / (o->stages * end_s)), end_s / out->parameters[1].number,
        out->parameters[0].text,
        slow == 1 ? dl_arena_printf(arena, "; stage %d is the slowest", slowest + 1) : "");
    out->subtitle = dl_plot_join(arena, p->details,
                                 dl_arena_printf(arena, "%lld-way tensor, %lld-way data parallel",
                                                 (long long)p->plan.tp, (long long)p->plan.dp));
    out->blocks = (struct dl_plot_blocks){
        .lanes = true,
        .first = 2,
        .count = dl_schedules[o->schedule]->splits_backward ? WEIGHTS : REST,
        .names = &kinds[1],
        .unit_scale = out->parameters[1].number,
        .unit_name = out->parameters[0].text};
    out->parameters[2] =
        (struct dl_plot_parameter){.name = "iteration_s", .number = p->prediction.iteration_s};
    out->parameters[3] = (struct dl_plot_parameter){.name = "chunks", .number = o->parts};
    for (int s = 0; s < o->stages; s++) {
        out->labels[s] = dl_arena_printf(arena, "stage %d", s + 1);
        out->notes[s] = dl_arena_printf(arena, "idle %.0f %%", 100 * (1 - busy_s[s] / end_s));
    }
    out->group_count = o->stages;
    return DL_OK;
}

/* The schedule of the plan; DL_ERR_USAGE where it has none that can be drawn. */
static enum dl_code order_of(struct dl_context *context, const struct dl_plot_one *p,
                             struct dl_pipeline_order *out, struct dl_err *err) {
    const struct dl_prediction *one = &p->prediction;
    const int stages = (int)p->plan.pp;
    if (one->schedule.times == NULL)
        return dl_fail(err, DL_ERR_USAGE,
                       "plot pipeline: this plan has no pipeline; give --pp 2 or more, and a "
                       "framework that pipelines (--framework megatron)");
    const double parts = dl_pipe_virtual_stages(&p->plan);
    if (stages > DL_PLOT_GROUPS || 2 * stages * parts * one->schedule.micro_batches > MAX_PASSES)
        return dl_fail(err, DL_ERR_USAGE,
                       "plot pipeline: %.0f passes on %d stages, and a figure holds %d on %d; give "
                       "a smaller --global-batch",
                       2 * stages * parts * one->schedule.micro_batches, stages, (int)MAX_PASSES,
                       (int)DL_PLOT_GROUPS);
    double *forward_s = dl_arena_alloc(context->arena, 3 * (size_t)stages, sizeof *forward_s);
    for (int s = 0; s < stages; s++) {
        forward_s[s] = one->schedule.times[s].forward_s;
        forward_s[stages + s] = one->schedule.times[s].backward_s;
        forward_s[2 * stages + s] = one->schedule.times[s].weights_s;
    }
    *out = (struct dl_pipeline_order){.schedule = p->plan.schedule,
                                      .stages = stages,
                                      .parts = (int)parts,
                                      .micro_batches = (int)one->schedule.micro_batches,
                                      .forward_s = forward_s,
                                      .backward_s = forward_s + stages,
                                      .weights_s = forward_s + 2 * stages,
                                      .message_s = one->schedule.message_s,
                                      .blocks = one->schedule.blocks};
    return DL_OK;
}

enum dl_code dl_plot_pipeline(struct dl_context *context, const struct dl_options *options,
                              struct dl_figure *out, struct dl_err *err) {
    struct dl_plot_one *p = dl_arena_alloc(context->arena, 1, sizeof *p);
    struct dl_pipeline_order order;
    struct dl_pipeline_passes all;
    double end_s = 0, busy_s[DL_PLOT_GROUPS] = {0};
    DL_TRY(dl_plot_predict_one(context, options, "pipeline", p, err));
    DL_TRY(order_of(context, p, &order, err));
    DL_TRY(dl_pipeline_list(&order, MAX_PASSES, context->arena, &all, err));
    const struct dl_pipeline_pass *passes = all.list;
    const int count = all.count;
    for (int i = 0; i < count; i++) {
        end_s = fmax(end_s, passes[i].end_s);
        busy_s[passes[i].stage] += passes[i].end_s - passes[i].start_s;
    }
    DL_TRY(name(context, p, &order, end_s, busy_s, out, err));
    out->parameters[4] =
        (struct dl_plot_parameter){.name = "named", .number = count <= NAMED_PASSES};
    dl_table_init(&out->table, context->arena, columns, sizeof columns / sizeof columns[0]);
    out->height = 190 + 34 * (order.stages < 10 ? 10 : order.stages);
    fill(passes, count, end_s, &p->prediction, out);
    return DL_OK;
}
