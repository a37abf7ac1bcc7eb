/* search_brief.c - the best plans on one screen: at most ten, one for each split. */
#include "predict/output/search_print.h"

#include <math.h>
#include <string.h>

#include "model/core/columns.h"
#include "model/core/figure.h"
#include "model/core/text.h"
#include "model/engine/strategies/strategy.h"
#include "model/framework/settings.h"
#include "predict/manual/wrap.h"

enum { WIDTH = 100 };

/* What the columns show of one plan. */
struct facts {
    const char *strategy, *plan, *iteration, *run, *cost, *memory, *bottleneck;
    int64_t nodes;
    double rate, spent;
};
enum show { STRATEGY = 1, NODES = 2, RUN = 4, COST = 8, SPENT = 16 };
#define SHOWN(member, heading, unit, digits, show)                                                 \
    DL_SHOWN(struct facts, member, heading, heading, unit, 0, digits, show, NULL)
static const struct dl_list_column columns[] = {
    SHOWN(strategy, "strategy", "", 0, STRATEGY),
    SHOWN(plan, "plan", "", 0, 0),
    SHOWN(nodes, "nodes", "", 0, NODES),
    SHOWN(iteration, "iteration", "ms (80 %)", 0, 0),
    SHOWN(rate, "samples/s", "", 4, 0),
    SHOWN(run, "run", "", 0, RUN),
    SHOWN(cost, "cost", "", 0, COST),
    SHOWN(spent, "energy", "J/sample", 4, SPENT),
    SHOWN(memory, "memory", "GiB", 0, 0),
    SHOWN(bottleneck, "bottleneck", "", 0, 0),
};

const char *dl_search_plan_text(const struct dl_plan *plan, struct dl_arena *arena) {
    const char *words = dl_rows_plan_words(plan, arena);
    struct dl_text text = {.arena = arena};
    dl_text_printf(&text, "dp%lld%s%s%s", (long long)plan->dp, words != NULL ? " " : "",
                   words != NULL ? words : "", plan->sequence_parallel ? " sp" : "");
    for (int n = 1; dl_settings_varied[n] != NULL; n++) {
        const char *value = dl_settings_text(plan, n, arena);
        if (value == NULL) continue;
        dl_text_printf(&text, " %s%s%s", dl_settings_varied[n], value[0] != 0 ? "=" : "", value);
    }
    return dl_text_string(&text);
}

/* Of a stack of layers the ranks, of other networks also the strategy. */
static bool same_split(const struct dl_plan *a, const struct dl_plan *b, bool stack) {
    return (stack || a->strategy == b->strategy) && a->nodes == b->nodes && a->tp == b->tp &&
           a->pp == b->pp && a->sp == b->sp && a->ep == b->ep;
}

/* Row i is the first of its split. */
static bool is_first(const struct dl_search_report *report, int i) {
    const bool stack = dl_known(report->inputs->workload->transformer_layers);
    for (int k = 0; k < i; k++) {
        if (same_split(report->rows[k].plan, report->rows[i].plan, stack)) return false;
    }
    return true;
}

static bool is_by(const struct dl_search_report *report, const char *objective) {
    return strcmp(report->objective, objective) == 0;
}

/* What an iteration takes per sample of the objective: energy, or cost of a million samples. */
static double spent_of(const struct dl_search_report *report, const struct dl_searched *row) {
    const struct dl_prediction_row r = dl_searched_row(report, row);
    const struct dl_spending once = dl_rows_spending(&r, row->prediction->iteration_s);
    const double samples = row->plan->global_batch_samples;
    return is_by(report, "cost") ? 1e6 * once.cost / samples : once.energy_j / samples;
}

static void add(const struct dl_search_report *report, const struct dl_searched *row, bool in_ms,
                struct dl_table *table) {
    struct dl_arena *arena = table->arena;
    const struct dl_prediction *p = row->prediction;
    const struct dl_prediction_row r = dl_searched_row(report, row);
    const double unit_s = in_ms ? 1e-3 : 1, tokens = dl_tokens_per_sample(r.workload),
                 run_s = dl_rows_total(&r).time_s, cost = dl_rows_spending(&r, run_s).cost;
    const struct facts facts = {
        .strategy = row->plan->strategy->name,
        .plan = dl_search_plan_text(row->plan, arena),
        .nodes = row->plan->nodes,
        .iteration =
            dl_arena_printf(arena, "%s (%s-%s)", dl_figure_text(arena, p->iteration_s / unit_s, 3),
                            dl_figure_text(arena, p->iteration_low_s / unit_s, 3),
                            dl_figure_text(arena, p->iteration_high_s / unit_s, 3)),
        .rate = p->throughput_samples_per_s * (dl_known(tokens) ? tokens : 1),
        .run = dl_known(run_s) ? dl_duration_text(arena, run_s) : NULL,
        .cost = dl_known(cost) ? dl_figure_text(arena, cost, 4) : NULL,
        .spent = spent_of(report, row),
        .memory = dl_arena_printf(arena, "%.3g of %.3g", p->memory.total_bytes / 1073741824,
                                  p->memory.capacity_bytes / 1073741824),
        .bottleneck = dl_bottleneck_names[p->bottleneck]};
    dl_list_add(table, columns, &facts);
}

static const char *table_text(struct dl_arena *arena, const struct dl_search_report *report,
                              enum dl_format format, int *shown) {
    enum { MOST = 10 };
    const bool in_ms = report->rows[0].prediction->iteration_s < 1;
    const struct dl_inputs *in = report->inputs;
    struct dl_table table;
    unsigned show = 0;
    for (int i = 1; i < report->row_count; i++) {
        if (report->rows[i].plan->nodes != report->rows[0].plan->nodes) show |= NODES;
    }
    if (!dl_known(in->workload->transformer_layers)) show |= STRATEGY;
    if (in->length.tokens > 0 || in->length.epoch_count > 0) {
        const struct dl_prediction_row best = dl_searched_row(report, &report->rows[0]);
        show |= RUN;
        if (dl_known(dl_rows_spending(&best, 1).cost)) show |= COST;
    }
    if (is_by(report, "energy") || is_by(report, "cost")) show |= SPENT;
    struct dl_column *c =
        dl_list_table(&table, arena, columns, (int)(sizeof columns / sizeof columns[0]), show);
    for (int i = 0; i < table.column_count; i++) {
        if (strcmp(c[i].key, "energy") == 0 && is_by(report, "cost"))
            c[i].heading = "cost", c[i].unit = "/Msample";
        if (strcmp(c[i].key, "iteration") == 0 && !in_ms) c[i].unit = "s (80 %)";
        if (strcmp(c[i].key, "samples/s") == 0 && dl_known(dl_tokens_per_sample(in->workload)))
            c[i].heading = "tokens/s";
    }
    for (int i = 0; i < report->row_count && table.row_count < MOST; i++) {
        if (is_first(report, i)) add(report, &report->rows[i], in_ms, &table);
    }
    *shown = table.row_count;
    return dl_table_render(&table, format);
}

/* "Why not: tp 8: 9 % slower; tp 2: out of memory." */
static void add_neighbors(struct dl_text *text, const struct dl_search_report *report) {
    const double best_s = report->rows[0].prediction->iteration_s;
    struct dl_text line = {.arena = text->arena};
    for (int i = 0; i < report->neighbor_count; i++) {
        const struct dl_search_neighbor *n = &report->neighbors[i];
        const double more = 100 * (n->iteration_s / best_s - 1);
        dl_text_printf(&line, "%s%s %lld: ", i == 0 ? "Why not " : "; ", n->axis,
                       (long long)n->ranks);
        if (isinf(n->iteration_s))
            dl_text_add(&line, "out of memory");
        else if (fabs(more) < 0.5)
            dl_text_add(&line, "as fast, less simple");
        else
            dl_text_printf(&line, "%.0f %% %s", fabs(more),
                           more > 0 ? "slower" : "faster, but less simple");
    }
    if (line.length == 0) return;
    dl_text_add(&line, ".");
    dl_text_wrap(text, dl_text_string(&line), 0, WIDTH);
}

static void add_changes(struct dl_text *text, const struct dl_search_report *report) {
    const struct dl_limits *limits = report->limits;
    const double best_s = report->rows[0].prediction->iteration_s;
    for (int of_plan = 1; of_plan >= 0; of_plan--) {
        for (int i = 0; i < limits->change_count; i++) {
            const struct dl_change *c = &limits->changes[i];
            if (c->of_plan != (bool)of_plan || !(c->iteration_s < best_s)) continue;
            dl_text_printf(text, "Best %s: %s (%s, -%.1f %%)\n",
                           of_plan ? "change of the plan" : "hardware upgrade", c->text,
                           dl_duration_text(text->arena, c->iteration_s),
                           100 * (1 - c->iteration_s / best_s));
            break;
        }
    }
}

const char *dl_search_latex(struct dl_arena *arena, const struct dl_search_report *report) {
    int shown;
    return table_text(arena, report, DL_FORMAT_LATEX, &shown);
}

const char *dl_search_brief(struct dl_arena *arena, const struct dl_search_report *report) {
    const struct dl_searched *best = &report->rows[0];
    const struct dl_prediction *p = best->prediction;
    const struct dl_inputs *in = report->inputs;
    struct dl_text text = {.arena = arena};
    int shown;
    const char *table = table_text(arena, report, DL_FORMAT_TEXT, &shown);
    dl_text_printf(&text,
                   "Best plan: %s%s%s: %s per iteration (80 %% prediction interval %s), %s GiB of "
                   "%s. Bottleneck: %s.\n\n",
                   dl_known(in->workload->transformer_layers) ? "" : best->plan->strategy->name,
                   dl_known(in->workload->transformer_layers) ? "" : " ",
                   dl_search_plan_text(best->plan, arena), dl_duration_text(arena, p->iteration_s),
                   dl_duration_range(arena, p->iteration_low_s, p->iteration_high_s),
                   dl_figure_text(arena, p->memory.total_bytes / 1073741824, 3),
                   dl_figure_text(arena, p->memory.capacity_bytes / 1073741824, 3),
                   dl_bottleneck_names[p->bottleneck]);
    dl_text_printf(&text, "%s %s on %s (%s), %s, global batch %s: best plans by %s\n\n%s\n",
                   in->workload->name, dl_precision_names[in->plan.precision], in->system->name,
                   in->system->device->name, report->framework->name,
                   dl_whole_text(arena, best->plan->global_batch_samples), report->objective,
                   table);
    add_neighbors(&text, report);
    dl_text_add(&text, dl_search_remarks(arena, report));
    if (report->limits != NULL) add_changes(&text, report);
    dl_text_printf(&text,
                   "Reproduce: %s\n%d splits shown, one plan of each; all plans, their commands, "
                   "terms and limits: --long\n",
                   best->command, shown);
    return dl_text_string(&text);
}

enum dl_code dl_search_nothing(struct dl_arena *arena, const struct dl_search *search,
                               const struct dl_search_request *r,
                               const struct dl_search_worker *found, struct dl_err *err) {
    const double gib = 1073741824,
                 capacity = r->memory_bytes > 0 ? r->memory_bytes : r->system->device->memory_bytes;
    if (found->rejected_count[DL_NOT_DEADLINE] > 0) {
        return dl_fail(
            err, DL_ERR_NO,
            "no plan meets the deadline of %g s per iteration; %lld fit in memory; search "
            "without --deadline and --max-iteration for the fastest",
            r->iteration_limit_s, (long long)found->rejected_count[DL_NOT_DEADLINE]);
    }
    if (!found->has_nearest) {
        return dl_fail(
            err, DL_ERR_NO,
            "no plan fits: sharded over all %lld devices, weights, gradients and optimizer states "
            "still exceed the %.4g GiB of a device; nearest: more --nodes, or a device with more "
            "memory",
            (long long)(r->nodes[r->node_count - 1] * r->fixed.devices_per_node), capacity / gib);
    }
    const struct dl_plan plan = dl_search_plan(search, &found->nearest);
    return dl_fail(err, DL_ERR_NO,
                   "no plan fits in the %.4g GiB of a device; nearest needs %.4g GiB: --dp %lld "
                   "--tp %lld --pp %lld --cp %lld "
                   "--micro-batch %g --recompute %s --zero %d%s; more --nodes or --memory",
                   capacity / gib, found->nearest.memory_bytes / gib, (long long)plan.dp,
                   (long long)plan.tp, (long long)plan.pp, (long long)plan.sp,
                   plan.micro_batch_samples, dl_plan_recompute_text(&plan, arena),
                   found->nearest.shard, plan.sequence_parallel ? " --sequence-parallel" : "");
}
