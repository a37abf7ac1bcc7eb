/* predicted_table.c - predicted rows as a table. */
#include "predict/output/predicted.h"

#include <math.h>
#include <string.h>

#include "model/core/text.h"
#include "model/engine/strategies/strategy.h"
#include "predict/manual/wrap.h"

enum { WIDTH = 100 };

struct brief {
    enum dl_format format;
    const struct dl_predicted *p;
    struct dl_arena *arena;
    const struct dl_predicted_row **rows;
    int count;
    struct dl_rows_style style;
};

static bool fits(const struct dl_predicted_row *r) { return r->prediction.fits; }

static bool is_fleet(const struct dl_predicted *p) {
    return (p->inputs->framework_count > 1 || p->every_strategy) && p->inputs->node_count == 1;
}

static const char *table_text(const struct brief *b) {
    struct dl_table table;
    dl_rows_init(&table, b->arena, &b->style);
    for (int i = 0; i < b->count; i++) {
        const struct dl_prediction_row row = dl_predicted_row_of(b->p->inputs, b->rows[i]);
        dl_rows_add(&table, &row, &b->style);
    }
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
        if (step == 0) b->style.short_plan = true;
        if (step == 1) b->style.no_share = true;
        if (step == 2) b->style.show &= ~(unsigned)DL_ROWS_SCALING;
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

/* "Releases: pytorch-ddp 1.8, ...": of the rows of several frameworks. */
static void add_releases(const struct brief *b, struct dl_text *out) {
    struct dl_text list = {.arena = b->arena};
    const struct dl_framework *before = NULL;
    if (b->p->every_strategy || b->p->inputs->framework_count < 2) return;
    for (int i = 0; i < b->count; i++) {
        const struct dl_framework *framework = b->rows[i]->framework;
        if (framework != before && framework->release != NULL)
            name(&list, dl_arena_printf(b->arena, "%s %s", framework->name, framework->release));
        before = framework;
    }
    if (list.length > 0) dl_text_printf(out, "Releases: %s. ", dl_text_string(&list));
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
    add_releases(b, &out);
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

static bool asks_run(const struct dl_predicted *p) {
    return p->inputs->length.tokens > 0 || p->inputs->length.epoch_count > 0;
}

/* The columns that the rows need. */
static void choose_columns(struct brief *b, bool every_row) {
    const struct dl_predicted *p = b->p;
    struct dl_rows_style *s = &b->style;
    double least_s = INFINITY;
    s->tokens = dl_known(dl_tokens_per_sample(p->inputs->workload));
    s->no_gpus = p->inputs->system->device->kind != DL_DEVICE_GPU;
    if (p->every_strategy) s->show |= DL_ROWS_STRATEGY;
    if (p->inputs->framework_count > 1)
        s->show |= every_row ? DL_ROWS_FRAMEWORK | DL_ROWS_RELEASE : DL_ROWS_FRAMEWORK;
    if (!is_fleet(p) || every_row) s->show |= DL_ROWS_NODES;
    if (asks_run(p)) s->show |= every_row ? DL_ROWS_RUN | DL_ROWS_LONG_RUN : DL_ROWS_RUN;
    if (every_row) s->show |= s->tokens ? DL_ROWS_LONG | DL_ROWS_TOKENS : DL_ROWS_LONG;
    for (int i = 0; i < b->count; i++) {
        const struct dl_prediction *q = &b->rows[i]->prediction;
        least_s = fmin(least_s, q->iteration_s);
        if (q->exposed_input_s > 0.005 * q->iteration_s) s->show |= DL_ROWS_INPUT;
        if (!p->every_strategy && dl_rows_is_chosen(&b->rows[i]->plan)) s->show |= DL_ROWS_PLAN;
    }
    s->in_s = least_s >= 1;
}

const char *dl_predicted_table(struct dl_context *context, const struct dl_predicted *p,
                               enum dl_format format, bool every_row) {
    struct dl_arena *arena = context->arena;
    struct brief b = {.format = format,
                      .p = p,
                      .arena = arena,
                      .rows = dl_arena_alloc(arena, (size_t)p->count, sizeof(void *)),
                      .style = {.show = DL_ROWS_SCALING}};
    const char *others = "";
    for (int i = 0; every_row && i < p->count; i++) b.rows[b.count++] = &p->rows[i];
    if (!every_row) others = choose(&b);
    if (is_fleet(p) && format != DL_FORMAT_CSV) sort(&b);
    choose_columns(&b, every_row);
    if (format != DL_FORMAT_TEXT || every_row) return table_text(&b);
    const char *text = narrow_text(&b);
    return dl_arena_printf(arena, "%s%s", text, others);
}
