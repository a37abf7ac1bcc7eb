/* learning.c - how far predictions are off after 0, 1, 2, 4 and 8 measured runs of the same system
 * and framework: the rest of the group is predicted with the posterior of those given. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fits/learning.h"
#include "model/engine/agreement.h"

enum { TRIALS = 20 };
static const int given_runs[DL_LEARNING_STEPS] = {0, 1, 2, 4, 8};

struct curve {
    const struct dl_fit_rows *rows;
    const struct dl_fit_prediction *predictions;
    const struct dl_interval_model *model;
};

struct group {
    size_t *rows; /* of dl_fit_rows */
    size_t count;
};

struct sums {
    double error, inside, rows;
};

static bool same_group(const struct dl_fit_row *a, const struct dl_fit_row *b) {
    return strcmp(a->system, b->system) == 0 && strcmp(a->framework, b->framework) == 0 &&
           strcmp(a->source, b->source) == 0;
}

static struct dl_measured_run run_of(const struct dl_fit_row *row,
                                     const struct dl_fit_prediction *p) {
    return (struct dl_measured_run){
        .log_ratio = log(row->measured_s / p->iteration_s),
        .what = dl_fit_case(row, p),
        .workload = row->workload,
    };
}

/* Errors of all rows of the group but the first `given`. */
static enum dl_code judge(const struct curve *c, const struct group *g, int given, struct sums *out,
                          struct dl_err *err) {
    const struct dl_fit_rows *f = c->rows;
    const struct dl_fit_prediction *p = c->predictions;
    const struct dl_interval_model *model = c->model;
    struct dl_arena arena = {0};
    struct dl_measured_run runs[8];
    struct dl_agreement agreed;
    for (int i = 0; i < given; i++) runs[i] = run_of(&f->rows[g->rows[i]], &p[g->rows[i]]);
    const enum dl_code code = dl_runs_agree(model, runs, (size_t)given, &arena, &agreed, err);
    for (size_t i = (size_t)given; i < g->count && code == DL_OK; i++) {
        const struct dl_fit_row *row = &f->rows[g->rows[i]];
        const struct dl_fit_prediction *q = &p[g->rows[i]];
        double predicted_s = q->iteration_s, slow = log(q->high_s / q->iteration_s),
               fast = log(q->iteration_s / q->low_s);
        if (agreed.posterior != NULL) {
            const struct dl_interval_case what = dl_fit_case(row, q);
            const struct dl_posterior_shift s =
                dl_posterior_shift(agreed.posterior, row->workload, &what);
            predicted_s *= dl_posterior_factor(&s, &what);
            slow = dl_posterior_end_log(agreed.posterior, &s, slow * agreed.widened_ratio);
            fast = dl_posterior_end_log(agreed.posterior, &s, fast * agreed.widened_ratio);
        }
        const double error = log(row->measured_s / predicted_s);
        out->error += fabs(row->throughput ? row->measured_s / predicted_s - 1
                                           : predicted_s / row->measured_s - 1);
        out->inside += error <= slow && -error <= fast;
        out->rows++;
    }
    dl_arena_free(&arena);
    return code;
}

/* Fisher and Yates with a generator of fixed seed (Knuth's MMIX constants). */
static void shuffle(struct group *g, uint64_t *state) {
    for (size_t i = g->count; i > 1; i--) {
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        const size_t k = (size_t)((*state >> 33) % i), kept = g->rows[i - 1];
        g->rows[i - 1] = g->rows[k];
        g->rows[k] = kept;
    }
}

static void sort_by_devices(const struct dl_fit_rows *f, struct group *g) {
    for (size_t i = 1; i < g->count; i++) {
        for (size_t k = i; k > 0; k--) {
            const size_t a = g->rows[k - 1], b = g->rows[k];
            if (f->rows[a].devices < f->rows[b].devices ||
                (f->rows[a].devices == f->rows[b].devices && a < b))
                break;
            g->rows[k - 1] = b;
            g->rows[k] = a;
        }
    }
}

static enum dl_code add_group(const struct curve *c, struct group *g, struct dl_learning *out,
                              struct dl_err *err) {
    struct sums random = {0, 0, 0}, smallest = {0, 0, 0};
    uint64_t state = 1;
    if (g->count < 2 * (size_t)given_runs[DL_LEARNING_STEPS - 1]) return DL_OK;
    sort_by_devices(c->rows, g);
    DL_TRY(judge(c, g, out->given, &smallest, err));
    for (int t = 0; t < TRIALS; t++) {
        shuffle(g, &state);
        DL_TRY(judge(c, g, out->given, &random, err));
    }
    const double n = ++out->groups;
    out->mape_pct += (100 * random.error / random.rows - out->mape_pct) / n;
    out->coverage_pct += (100 * random.inside / random.rows - out->coverage_pct) / n;
    out->smallest_mape_pct += (100 * smallest.error / smallest.rows - out->smallest_mape_pct) / n;
    return DL_OK;
}

enum dl_code dl_learning_curve(const struct dl_fit_rows *f,
                               const struct dl_fit_prediction *predictions,
                               const struct dl_interval_model *model, struct dl_arena *arena,
                               struct dl_learning out[DL_LEARNING_STEPS], struct dl_err *err) {
    const struct curve c = {f, predictions, model};
    struct group g = {.rows = dl_arena_alloc(arena, f->count + 1, sizeof *g.rows)};
    bool *done = dl_arena_alloc(arena, f->count + 1, sizeof *done);
    for (int step = 0; step < DL_LEARNING_STEPS; step++)
        out[step] = (struct dl_learning){.given = given_runs[step]};
    for (size_t i = 0; i < f->count; i++) {
        if (done[i]) continue;
        g.count = 0;
        for (size_t k = i; k < f->count; k++) {
            if (!same_group(&f->rows[i], &f->rows[k])) continue;
            done[k] = true;
            if (!isnan(log(f->rows[k].measured_s / predictions[k].iteration_s)))
                g.rows[g.count++] = k;
        }
        for (int step = 0; step < DL_LEARNING_STEPS; step++)
            DL_TRY(add_group(&c, &g, &out[step], err));
    }
    return DL_OK;
}

enum dl_code dl_learning_choose(const struct dl_fit_rows *rows,
                                const struct dl_fit_prediction *predictions,
                                struct dl_interval_model *model, struct dl_arena *arena,
                                struct dl_err *err) {
    double best = INFINITY, chosen = 1;
    for (double ratio = 1; ratio > 0.05; ratio /= 2) {
        struct dl_learning curve[DL_LEARNING_STEPS];
        double sum = 0;
        model->update_ratio = ratio;
        DL_TRY(dl_learning_curve(rows, predictions, model, arena, curve, err));
        for (int step = 1; step < DL_LEARNING_STEPS; step++)
            sum += curve[step].mape_pct + curve[step].smallest_mape_pct;
        if (sum < best) best = sum, chosen = ratio;
    }
    model->update_ratio = chosen;
    return DL_OK;
}
