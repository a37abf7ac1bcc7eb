/* interval_ends.c - see interval_ends.h. */
#include "fits/interval_ends.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "fits/interval_widths.h"
#include "model/core/text.h"

/* The part of a new source's measurements beyond an end. Sources that were left out lie outside
 * more often than those of the fit: with 0.1 72 % of their measurements were inside on average over
 * sources, with this 80. */
#define TAIL 0.07
#define ANCHORED_TAIL 0.2 /* both ends alike */
/* Every source weighs the same, and one of data/runs, whose rows were in view while mechanisms were
 * sought, half as much as one of the first sights. */
#define RUNS_WEIGHT 0.5
#define ANCHORED_POWER 0.75 /* rows that share an anchor carry less information */
enum { KNOWN_FRAMEWORK, KNOWN_RELEASE, KNOWN_NETWORK, KNOWN_PAIR, KNOWN_DEVICE, KNOWN };
enum { WORDS = 4, MOST_PAIRS = 64 * WORDS };
struct pairs {
    uint64_t bits[WORDS];
};

/* Runs and first sights, one list. */
struct evidence {
    struct dl_generalized *g;
    struct dl_strangers *strangers;
    size_t run_count, count;
    size_t *group_of; /* of each row; groups of first sights follow those of the runs */
    const char **groups;
    size_t group_count;
    double *weights; /* 0: the row is counted elsewhere; below: not predicted */
    struct dl_width_row *rows[2];
    /* sources within groups that measured runs, and which of them know what of each row */
    const char *pair_source[MOST_PAIRS];
    size_t pair_group[MOST_PAIRS];
    size_t pair_count;
    struct pairs *known[KNOWN];
};

static const struct dl_fit_row *row_of(const struct evidence *e, size_t i) {
    return i < e->run_count ? &e->g->rows->rows[i] : &e->strangers->rows.rows[i - e->run_count];
}

static bool same(const char *a, const char *b) {
    return a != NULL && b != NULL && strcmp(a, b) == 0;
}

static void find_groups(struct evidence *e, struct dl_arena *arena) {
    const struct dl_generalized *g = e->g;
    e->groups = dl_arena_alloc(arena, g->group_count + e->count + 1, sizeof *e->groups);
    e->group_of = dl_arena_alloc(arena, e->count + 1, sizeof *e->group_of);
    int count = (int)g->group_count;
    memcpy(e->groups, g->groups, g->group_count * sizeof *e->groups);
    for (size_t i = 0; i < e->count; i++)
        e->group_of[i] = (size_t)dl_text_place(e->groups, &count, INT_MAX,
                                               dl_fit_row_group(row_of(e, i), g->by));
    e->group_count = (size_t)count;
}

static void weigh(struct evidence *e, struct dl_arena *arena) {
    e->weights = dl_arena_alloc(arena, e->count + 1, sizeof *e->weights);
    for (size_t i = 0; i < e->count; i++) {
        if (i < e->run_count)
            e->weights[i] = !dl_known(e->g->held_out[i].iteration_s)           ? -1
                            : dl_stranger_recorded(e->strangers, row_of(e, i)) ? 0
                                                                               : 1;
        else
            e->weights[i] = e->strangers->seen[i - e->run_count] != NULL ? 1 : -1;
    }
    double *same_source = dl_arena_alloc(arena, e->count + 1, sizeof *same_source);
    for (size_t i = 0; i < e->count; i++) {
        const bool run = i < e->run_count;
        for (size_t k = run ? 0 : e->run_count; k < (run ? e->run_count : e->count); k++)
            same_source[i] +=
                e->weights[k] > 0 && strcmp(row_of(e, k)->source, row_of(e, i)->source) == 0;
    }
    for (size_t i = 0; i < e->count; i++)
        if (e->weights[i] > 0)
            e->weights[i] = (i < e->run_count ? RUNS_WEIGHT : 1) / same_source[i];
}

static bool knows(int what, const struct dl_fit_row *a, const struct dl_fit_row *b) {
    switch (what) {
    case KNOWN_FRAMEWORK: return same(a->framework, b->framework);
    case KNOWN_RELEASE:
        return same(a->framework, b->framework) && same(a->release, b->release) &&
               a->precision == b->precision;
    case KNOWN_DEVICE:
        return same(a->kernels, b->kernels) && same(a->architecture, b->architecture) &&
               a->precision == b->precision;
    case KNOWN_PAIR: return same(a->framework, b->framework) && same(a->system, b->system);
    default: /* F-SAME-LAYERS */
        return same(a->layers, b->layers) || dl_interval_same_network(a->parameters, b->parameters);
    }
}

/* Which sources of measured runs know what of each row. */
static enum dl_code find_known(struct evidence *e, struct dl_arena *arena, struct dl_err *err) {
    size_t *pair = dl_arena_alloc(arena, e->run_count + 1, sizeof *pair);
    for (size_t i = 0; i < e->run_count; i++) {
        size_t k = 0;
        while (k < e->pair_count && (e->pair_group[k] != e->group_of[i] ||
                                     strcmp(e->pair_source[k], row_of(e, i)->source) != 0))
            k++;
        if (k == MOST_PAIRS)
            return dl_fail(err, DL_ERR_INPUT, "more than %d sources in groups", MOST_PAIRS);
        if (k == e->pair_count) {
            e->pair_source[k] = row_of(e, i)->source;
            e->pair_group[e->pair_count++] = e->group_of[i];
        }
        pair[i] = k;
    }
    for (int what = 0; what < KNOWN; what++) {
        e->known[what] = dl_arena_alloc(arena, e->count + 1, sizeof *e->known[what]);
        for (size_t i = 0; i < e->count; i++)
            for (size_t k = 0; k < e->run_count; k++)
                if (dl_known(e->g->held_out[k].iteration_s) &&
                    knows(what, row_of(e, i), row_of(e, k)))
                    e->known[what][i].bits[pair[k] / 64] |= (uint64_t)1 << pair[k] % 64;
    }
    return DL_OK;
}

/* Sources outside two groups that know something of a row. */
static int64_t sources(const struct evidence *e, int what, size_t row, size_t without) {
    int count = 0;
    const char *counted[MOST_PAIRS];
    for (size_t k = 0; k < e->pair_count; k++) {
        if ((e->known[what][row].bits[k / 64] >> k % 64 & 1) == 0 ||
            e->pair_group[k] == e->group_of[row] || e->pair_group[k] == without)
            continue;
        dl_text_place(counted, &count, MOST_PAIRS, e->pair_source[k]);
    }
    return count;
}

/* log(measured / predicted) of a row when a group is not known (group_count: all are): of runs with
 * the constants fitted without it, so that nothing of it is in the widths. */
static double error_of(const struct evidence *e, size_t i, size_t without) {
    if (i >= e->run_count) return dl_stranger_error_log(e->strangers->seen[i - e->run_count]);
    const double iteration_s = without < e->g->group_count && e->g->without_s != NULL
                                   ? e->g->without_s[without * e->run_count + i]
                                   : e->g->held_out[i].iteration_s;
    return log(e->g->rows->rows[i].measured_s / iteration_s);
}

static struct dl_interval_case case_of(const struct evidence *e, size_t i) {
    return i < e->run_count
               ? dl_fit_case(row_of(e, i), &e->g->in_sample[i])
               : dl_fit_case(row_of(e, i), &e->strangers->predictions[i - e->run_count]);
}

static void fill_rows(struct evidence *e, size_t without) {
    for (size_t i = 0; i < e->count; i++) {
        struct dl_width_row *slow = &e->rows[DL_SLOW_END][i], *fast = &e->rows[DL_FAST_END][i];
        *slow = *fast = (struct dl_width_row){.weight_ratio = 0};
        if (e->weights[i] < 0) continue;
        const struct dl_interval_case c = case_of(e, i);
        const struct dl_interval_known known = {
            sources(e, KNOWN_FRAMEWORK, i, without) > 0, sources(e, KNOWN_RELEASE, i, without) > 0,
            sources(e, KNOWN_NETWORK, i, without) > 0, sources(e, KNOWN_PAIR, i, without) > 0,
            sources(e, KNOWN_DEVICE, i, without)};
        dl_interval_covariates(&c, &known, slow->covariate);
        slow->weight_ratio = e->group_of[i] == without ? 0 : e->weights[i];
        *fast = *slow;
        const double error = error_of(e, i, without);
        slow->error_log = fmax(0, error);
        fast->error_log = fmax(0, -error);
    }
}

static double half_of(const struct dl_interval_widths *widths, const struct dl_width_row *row) {
    double sum = 0;
    for (int k = 0; k < DL_WIDTHS; k++)
        sum += widths->half_log[k] * widths->half_log[k] * row->covariate[k] * row->covariate[k];
    return sqrt(sum);
}

static void set_interval(struct dl_fit_prediction *p, double centre_s, double slow, double fast) {
    p->low_s = centre_s * exp(-fast);
    p->high_s = centre_s * exp(slow);
}

/* Intervals of the rows of a group: of first sights around the prediction that was recorded. */
static void set_intervals(const struct evidence *e, size_t group,
                          const struct dl_interval_widths ends[2]) {
    for (size_t i = 0; i < e->count; i++) {
        if (e->group_of[i] != group || e->weights[i] < 0) continue;
        const double slow = half_of(&ends[DL_SLOW_END], &e->rows[DL_SLOW_END][i]),
                     fast = half_of(&ends[DL_FAST_END], &e->rows[DL_FAST_END][i]);
        if (i < e->run_count)
            set_interval(&e->g->held_out[i], e->g->held_out[i].iteration_s, slow, fast);
        else
            set_interval(&e->strangers->predictions[i - e->run_count],
                         row_of(e, i)->measured_s / exp(error_of(e, i, group)), slow, fast);
    }
}

static enum dl_code fit_ends(struct evidence *e, struct dl_interval_model *out,
                             struct dl_err *err) {
    struct dl_interval_widths ends[2];
    /* first sights are judged by source */
    const size_t judged = e->g->by == DL_LEAVE_SOURCE ? e->group_count : e->g->group_count;
    for (size_t i = 0; i <= judged; i++) {
        const size_t group = i < judged ? i : e->group_count;
        fill_rows(e, group);
        for (int end = 0; end < 2; end++)
            DL_TRY(dl_widths_fit(e->rows[end], e->count, TAIL, &ends[end], err));
        if (group < e->group_count) set_intervals(e, group, ends);
    }
    out->widths = ends[DL_SLOW_END];
    out->fast_widths = ends[DL_FAST_END];
    return DL_OK;
}

/* Where a run of the same job was measured; others' errors with the constants of the files. */
static enum dl_code fit_anchored(struct evidence *e, struct dl_interval_model *out,
                                 struct dl_err *err) {
    struct dl_generalized *g = e->g;
    static const struct dl_interval_known known = {.framework = false};
    for (size_t group = 0; group <= g->group_count; group++) {
        struct dl_width_row *rows = e->rows[0];
        const bool all = group == g->group_count;
        for (size_t i = 0; i < e->run_count; i++) {
            const struct dl_fit_prediction *p =
                all || g->group_of[i] == group ? &g->anchored[i] : &g->in_sample_anchored[i];
            struct dl_interval_case c = dl_fit_case(&g->rows->rows[i], p);
            size_t count = 0;
            rows[i] = (struct dl_width_row){.weight_ratio = 0};
            if (!dl_known(p->iteration_s)) continue;
            for (size_t k = 0; k < e->run_count; k++)
                count += dl_known(g->anchored[k].iteration_s) && g->group_of[k] == g->group_of[i];
            c.anchored = true;
            dl_interval_covariates(&c, &known, rows[i].covariate);
            rows[i].error_log = fabs(log(g->rows->rows[i].measured_s / p->iteration_s));
            rows[i].weight_ratio =
                g->group_of[i] == group ? 0 : pow((double)count, -ANCHORED_POWER);
        }
        double weights = 0;
        for (size_t i = 0; i < e->run_count; i++) weights += rows[i].weight_ratio;
        out->anchored_widths = out->widths; /* no job was measured twice: no more is known */
        if (weights > 0)
            DL_TRY(dl_widths_fit(rows, e->run_count, ANCHORED_TAIL, &out->anchored_widths, err));
        for (size_t i = 0; i < e->run_count; i++) {
            const double half = half_of(&out->anchored_widths, &rows[i]);
            if (g->group_of[i] == group && dl_known(g->anchored[i].iteration_s))
                set_interval(&g->anchored[i], g->anchored[i].iteration_s, half, half);
        }
    }
    return DL_OK;
}

enum dl_code dl_interval_ends_fit(struct dl_generalized *g, struct dl_strangers *strangers,
                                  struct dl_arena *arena, struct dl_interval_model *out,
                                  struct dl_err *err) {
    struct evidence *e = dl_arena_alloc(arena, 1, sizeof *e);
    e->g = g;
    e->strangers = strangers;
    e->run_count = g->rows->count;
    e->count = e->run_count + strangers->rows.count;
    for (int end = 0; end < 2; end++)
        e->rows[end] = dl_arena_alloc(arena, e->count + 1, sizeof *e->rows[end]);
    find_groups(e, arena);
    weigh(e, arena);
    DL_TRY(find_known(e, arena, err));
    DL_TRY(fit_ends(e, out, err));
    return fit_anchored(e, out, err);
}
