/* plot_pipeline.c - the run of a pipeline as a Gantt chart: which micro-batch passes through which
 * stage when, and where a stage is idle (F-PIPE-ORDER, F-PIPE-PERIOD); what happens once in an
 * iteration follows as one bar: exposed communication, update, overhead. */
#include <math.h>
#include <string.h>

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
enum { FORWARD = 1, BACKWARD, REST, WEIGHTS, LEFT_OUT, NAMED_PASSES = 400 };
static const char *const kinds[] = {"",
                                    "forward",
                                    "backward",
                                    "communication, update, overhead",
                                    "gradients of weights",
                                    "equal periods"};
static const int kind_of[] = {FORWARD, BACKWARD, WEIGHTS}; /* of a pass */

struct bar {
    int stage, kind;
    double start_s, end_s;
    int64_t micro_batch, part; /* from 1; DL_ABSENT: none */
};

static void add(struct dl_figure *out, const struct bar *bar) {
    dl_table_add(&out->table, {.integer = bar->stage + 1}, {.string = out->labels[bar->stage]},
                 {.number = bar->start_s}, {.number = bar->end_s}, {.integer = bar->kind},
                 {.string = kinds[bar->kind]}, {.integer = bar->micro_batch},
                 {.integer = bar->part});
}

/* What is drawn, in numbers. */
struct chart {
    int stages, parts, passes;
    bool splits;
    double end_s; /* of the last pass */
    double busy_s[DL_PLOT_GROUPS];
};

static bool is_pass(const struct dl_term *t) {
    return t->pass != NULL && strcmp(t->lane, "compute") == 0;
}

static void measure(const struct dl_course *course, struct chart *out) {
    *out = (struct chart){.stages = course->memory_count, .parts = 1};
    for (int i = 0; i < course->task_count; i++) {
        const struct dl_term *t = &course->tasks[i];
        if (!is_pass(t)) continue;
        out->passes++;
        out->parts = t->pass->part >= out->parts ? t->pass->part + 1 : out->parts;
        out->splits = out->splits || t->pass->kind == DL_PASS_WEIGHTS;
        out->end_s = fmax(out->end_s, t->start_s + t->value);
        out->busy_s[t->stage] += t->value;
    }
    const double listed = (double)out->passes / out->stages / out->parts / (out->splits ? 3 : 2);
    for (int s = 0; s < out->stages; s++)
        out->busy_s[s] *= 1 + course->left_out_micro_batches / listed;
}

/* The passes of all stages, and after the last one what happens once. */
static void fill(const struct chart *chart, const struct dl_prediction *p, struct dl_figure *out) {
    for (int s = 0; s < chart->stages; s++) {
        for (int i = 0; i < p->course.task_count; i++) {
            const struct dl_term *t = &p->course.tasks[i];
            if (t->stage != s) continue;
            if (is_pass(t))
                add(out, &(struct bar){s, kind_of[t->pass->kind], t->start_s, t->start_s + t->value,
                                       t->pass->micro_batch + 1, t->pass->part + 1});
            else if (strcmp(t->group, "other micro-batches") == 0)
                add(out, &(struct bar){s, LEFT_OUT, t->start_s, t->start_s + t->value, DL_ABSENT,
                                       DL_ABSENT});
        }
        if (p->iteration_s > chart->end_s)
            add(out, &(struct bar){s, REST, chart->end_s, p->iteration_s, DL_ABSENT, DL_ABSENT});
    }
}

static void name(struct dl_arena *arena, const struct dl_plot_one *p, const struct chart *chart,
                 struct dl_figure *out) {
    double all_s = 0, most_s = 0;
    int slowest = -1, slow = 0;
    for (int s = 0; s < chart->stages; s++) {
        all_s += chart->busy_s[s];
        most_s = fmax(most_s, chart->busy_s[s]);
    }
    for (int s = 0; s < chart->stages; s++) {
        if (chart->busy_s[s] < 0.9999 * most_s) continue;
        slowest = s;
        slow++;
    }
    dl_plot_time_unit(p->prediction.iteration_s, out->parameters);
    out->title = dl_arena_printf(
        arena, "%s, %s pipeline: stages idle for %.0f %% of the first %.4g %s%s",
        p->inputs.workload->name, dl_schedule_names[p->plan.schedule],
        100 * (1 - all_s / (chart->stages * chart->end_s)),
        chart->end_s / out->parameters[1].number, out->parameters[0].text,
        slow == 1 ? dl_arena_printf(arena, "; stage %d is the slowest", slowest + 1) : "");
    out->subtitle = dl_plot_join(arena, p->details,
                                 dl_arena_printf(arena, "%lld-way tensor, %lld-way data parallel",
                                                 (long long)p->plan.tp, (long long)p->plan.dp));
    out->blocks =
        (struct dl_plot_blocks){.lanes = true,
                                .first = 2,
                                .count = p->prediction.course.left_out_micro_batches > 0 ? LEFT_OUT
                                         : chart->splits                                 ? WEIGHTS
                                                                                         : REST,
                                .names = &kinds[1],
                                .unit_scale = out->parameters[1].number,
                                .unit_name = out->parameters[0].text};
    dl_plot_set(out, 2, "iteration_s", p->prediction.iteration_s);
    dl_plot_set(out, 3, "chunks", chart->parts);
    dl_plot_set(out, 4, "named", chart->passes <= NAMED_PASSES);
    for (int s = 0; s < chart->stages; s++) {
        out->labels[s] = dl_arena_printf(arena, "stage %d", s + 1);
        out->notes[s] =
            dl_arena_printf(arena, "idle %.0f %%", 100 * (1 - chart->busy_s[s] / chart->end_s));
    }
    out->group_count = chart->stages;
}

enum dl_code dl_plot_pipeline(struct dl_context *context, const struct dl_options *options,
                              struct dl_figure *out, struct dl_err *err) {
    struct dl_plot_one *p = dl_arena_alloc(context->arena, 1, sizeof *p);
    struct chart chart;
    DL_TRY(dl_plot_predict_one(context, options, "pipeline", p, err));
    const int stages = p->prediction.course.memory_count;
    if (stages < 2)
        return dl_fail(err, DL_ERR_USAGE,
                       "plot pipeline: this plan has no pipeline; give --pp 2 or more, and a "
                       "framework that pipelines (--framework megatron)");
    if (stages > DL_PLOT_GROUPS)
        return dl_fail(err, DL_ERR_USAGE, "plot pipeline: %d stages, and a figure holds %d", stages,
                       (int)DL_PLOT_GROUPS);
    measure(&p->prediction.course, &chart);
    name(context->arena, p, &chart, out);
    dl_table_init(&out->table, context->arena, columns, sizeof columns / sizeof columns[0]);
    out->height = 240 + 34 * (stages < 10 ? 10 : stages);
    fill(&chart, &p->prediction, out);
    return DL_OK;
}
