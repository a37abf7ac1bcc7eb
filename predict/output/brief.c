/* brief.c - see the header. */
#include "predict/output/brief.h"

#include <math.h>
#include <string.h>

#include "model/core/columns.h"
#include "model/core/figure.h"
#include "model/core/text.h"
#include "model/engine/strategies/strategy.h"
#include "predict/manual/wrap.h"

enum { GIB = 1 << 30, WIDTH = 100 };

/* What the columns show of one row. */
struct facts {
    const char *framework, *strategy, *plan, *iteration, *run, *cost, *memory, *bottleneck;
    int64_t nodes, devices;
    double rate, efficiency, exposed_input_s;
};
enum show { FRAMEWORK = 1, STRATEGY = 2, PLAN = 4, NODES = 8, RUN = 16, INPUT = 32, SCALING = 64 };
#define SHOWN(member, heading, unit, scale, digits, show)                                          \
    DL_SHOWN(struct facts, member, heading, heading, unit, scale, digits, show, NULL)
static const struct dl_list_column columns[] = {
    SHOWN(framework, "framework", "", 0, 0, FRAMEWORK),
    SHOWN(strategy, "strategy", "", 0, 0, STRATEGY),
    SHOWN(plan, "plan", "", 0, 0, PLAN),
    SHOWN(nodes, "nodes", "", 0, 0, NODES),
    SHOWN(devices, "GPUs", "", 0, 0, NODES),
    SHOWN(iteration, "iteration", "ms (80 %)", 0, 0, 0),
    SHOWN(rate, "samples/s", "", 0, 4, 0),
    SHOWN(efficiency, "scaling", "%", 0.01, 3, SCALING),
    SHOWN(exposed_input_s, "input", "ms", 1e-3, 3, INPUT),
    SHOWN(run, "run", "", 0, 0, RUN),
    SHOWN(cost, "cost", "", 0, 0, RUN),
    SHOWN(memory, "memory", "GiB", 0, 0, 0),
    SHOWN(bottleneck, "bottleneck", "", 0, 0, 0),
};
enum { COLUMNS = sizeof columns / sizeof columns[0] };

struct brief {
    enum dl_format format;
    const struct dl_predicted *p;
    struct dl_arena *arena;
    const struct dl_predicted_row **rows;
    int count;
    unsigned show;
    bool in_s, short_plan, no_share;
    double tokens_per_sample; /* NAN: no sequences */
};

static bool fits(const struct dl_predicted_row *r) { return r->prediction.fits; }

static bool is_fleet(const struct dl_predicted *p) {
    return (p->inputs->framework_count > 1 || p->every_strategy) && p->inputs->node_count == 1;
}

/* "tp4 pp2 selective zero1": without micro-batch and virtual stages. */
static const char *short_plan(const struct dl_plan *plan, struct dl_arena *arena) {
    struct dl_plan ranks = *plan;
    ranks.micro_batch_samples = 0;
    ranks.virtual_stages = 1;
    ranks.schedule = DL_1F1B;
    return dl_rows_plan_words(&ranks, arena);
}

static const char *iteration_text(const struct brief *b, const struct dl_prediction *p) {
    const double unit_s = b->in_s ? 1 : 1e-3;
    const char *mid = dl_figure_text(b->arena, p->iteration_s / unit_s, 3);
    return dl_arena_printf(b->arena, "%s (%s-%s)", mid,
                           dl_figure_text(b->arena, p->iteration_low_s / unit_s, 3),
                           dl_figure_text(b->arena, p->iteration_high_s / unit_s, 3));
}

static const char *memory_text(const struct brief *b, const struct dl_memory *m) {
    const char *total = dl_figure_text(b->arena, m->total_bytes / GIB, 3);
    return dl_known(m->capacity_bytes)
               ? dl_arena_printf(b->arena, "%s of %.3g", total, m->capacity_bytes / GIB)
               : total;
}

static const char *bottleneck_text(const struct brief *b, const struct dl_prediction *p) {
    const char *name = dl_bottleneck_names[p->bottleneck];
    return b->no_share ? name
                       : dl_arena_printf(b->arena, "%s %.0f %%", name, 100 * p->bottleneck_share);
}

static void add(const struct brief *b, struct dl_table *table, const struct dl_predicted_row *r) {
    const struct dl_prediction *p = &r->prediction;
    const struct dl_prediction_row row = dl_predicted_row_of(b->p, r);
    const double run_s = dl_rows_total(&row).time_s, cost = dl_rows_spending(&row, run_s).cost;
    const struct facts facts = {
        .framework = r->framework->name,
        .strategy = r->plan.strategy->name,
        .plan =
            b->short_plan ? short_plan(&r->plan, b->arena) : dl_rows_plan_words(&r->plan, b->arena),
        .nodes = r->plan.nodes,
        .devices = r->plan.nodes * r->plan.devices_per_node,
        .iteration = iteration_text(b, p),
        .rate = !p->fits ? NAN
                         : p->throughput_samples_per_s *
                               (dl_known(b->tokens_per_sample) ? b->tokens_per_sample : 1),
        .efficiency = p->fits ? p->scaling_efficiency : NAN,
        .exposed_input_s = p->exposed_input_s,
        .run = p->fits && dl_known(run_s) ? dl_duration_text(b->arena, run_s) : NULL,
        .cost = p->fits && dl_known(cost) ? dl_figure_text(b->arena, cost, 4) : NULL,
        .memory = memory_text(b, &p->memory),
        .bottleneck = bottleneck_text(b, p)};
    dl_list_add(table, columns, &facts);
}

static const char *table_text(const struct brief *b) {
    struct dl_table table;
    struct dl_column *shown = dl_list_table(&table, b->arena, columns, COLUMNS, b->show);
    for (int i = 0; i < table.column_count; i++) {
        struct dl_column *c = &shown[i];
        if (strcmp(c->key, "iteration") == 0 && b->in_s) c->unit = "s (80 %)";
        if (strcmp(c->key, "samples/s") == 0 && dl_known(b->tokens_per_sample) &&
            c->heading != NULL)
            c->heading = "tokens/s";
        if (strcmp(c->key, "GPUs") == 0 && c->heading != NULL &&
            b->p->inputs->system->device->kind != DL_DEVICE_GPU)
            c->heading = "devices";
    }
    for (int i = 0; i < b->count; i++) add(b, &table, b->rows[i]);
    return dl_table_render(&table, b->format);
}

static size_t width_of(const char *text) {
    size_t width = 0;
    for (const char *at = text; *at != 0;) {
        const size_t length = strcspn(at, "\n");
        width = length > width ? length : width;
        at += length + (at[length] != 0);
    }
    return width;
}

/* The table that fits in WIDTH columns with the fewest omissions. */
static const char *narrow_text(struct brief *b) {
    const char *text = table_text(b);
    for (int step = 0; step < 3 && width_of(text) > WIDTH; step++) {
        if (step == 0) b->short_plan = true;
        if (step == 1) b->no_share = true;
        if (step == 2) b->show &= ~(unsigned)SCALING;
        text = table_text(b);
    }
    return text;
}

/* Of the rows before `count`, the one whose framework behaves exactly as that of `r`. */
static const struct dl_predicted_row *twin_of(const struct brief *b,
                                              const struct dl_predicted_row *r) {
    for (int i = 0; i < b->count && !b->p->every_strategy; i++) {
        if (b->rows[i]->prediction.iteration_s == r->prediction.iteration_s && fits(b->rows[i]))
            return b->rows[i];
    }
    return NULL;
}

static void name(struct dl_text *list, const char *text) {
    dl_text_printf(list, "%s%s", list->length > 0 ? ", " : "", text);
}

/* Chooses the rows; returns the line that names the others, or "". */
static const char *choose(struct brief *b) {
    const struct dl_predicted *p = b->p;
    const bool fleet = is_fleet(p);
    struct dl_text full = {.arena = b->arena}, same = {.arena = b->arena},
                   out = {.arena = b->arena};
    bool any = false, bound = false;
    for (int i = 0; i < p->count; i++) any = any || fits(&p->rows[i]);
    for (int i = 0; i < p->count; i++) {
        const struct dl_predicted_row *r = &p->rows[i], *twin = fleet ? twin_of(b, r) : NULL;
        if (fleet && !p->every_strategy && p->inputs->framework_all &&
            dl_framework_is_bound(r->framework) && any)
            bound = true;
        else if (fleet && any && !fits(r))
            name(&full, p->every_strategy ? r->plan.strategy->name : r->framework->name);
        else if (twin != NULL)
            name(&same, dl_arena_printf(b->arena, "%s (as %s)", r->framework->name,
                                        twin->framework->name));
        else
            b->rows[b->count++] = r;
    }
    if (full.length > 0) dl_text_printf(&out, "Out of memory: %s. ", dl_text_string(&full));
    if (same.length > 0) dl_text_printf(&out, "Equal: %s. ", dl_text_string(&same));
    if (bound) dl_text_add(&out, "The upper bound `ideal` is left out. ");
    if (out.length > 0) dl_text_add(&out, "All rows and columns: --long");
    if (out.length == 0) return "";
    struct dl_text lines = {.arena = b->arena};
    dl_text_wrap(&lines, dl_text_string(&out), 0, WIDTH);
    return dl_text_string(&lines);
}

/* The fastest first; those that do not fit last. */
static void sort(struct brief *b) {
    for (int i = 1; i < b->count; i++) {
        const struct dl_predicted_row *one = b->rows[i];
        int at = i;
        for (; at > 0; at--) {
            const struct dl_predicted_row *before = b->rows[at - 1];
            if (fits(before) != fits(one) ? fits(before)
                                          : before->prediction.throughput_samples_per_s >=
                                                one->prediction.throughput_samples_per_s)
                break;
            b->rows[at] = before;
        }
        b->rows[at] = one;
    }
}

const char *dl_predicted_brief(struct dl_context *context, const struct dl_predicted *p,
                               enum dl_format format) {
    struct dl_arena *arena = context->arena;
    const struct dl_run_length *length = &p->inputs->length;
    struct brief b = {.format = format,
                      .p = p,
                      .arena = arena,
                      .rows = dl_arena_alloc(arena, (size_t)p->count, sizeof(void *)),
                      .show = SCALING,
                      .tokens_per_sample = dl_tokens_per_sample(p->inputs->workload)};
    const char *others = choose(&b);
    double least_s = INFINITY;
    if (is_fleet(p)) sort(&b);
    if (p->every_strategy) b.show |= STRATEGY;
    if (p->inputs->framework_count > 1) b.show |= FRAMEWORK;
    if (!is_fleet(p)) b.show |= NODES;
    if (length->tokens > 0 || length->epoch_count > 0) b.show |= RUN;
    for (int i = 0; i < b.count; i++) {
        const struct dl_prediction *q = &b.rows[i]->prediction;
        least_s = fmin(least_s, q->iteration_s);
        if (q->exposed_input_s > 0.005 * q->iteration_s) b.show |= INPUT;
        if (!p->every_strategy && dl_rows_is_chosen(&b.rows[i]->plan)) b.show |= PLAN;
    }
    b.in_s = least_s >= 1;
    if (format == DL_FORMAT_LATEX) return table_text(&b);
    const char *text = narrow_text(&b);
    return dl_arena_printf(arena, "%s%s", text, others);
}
