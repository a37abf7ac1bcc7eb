/* decisions.c - see decisions.h. */
#include "predict/compare/decisions.h"

#include <math.h>
#include <string.h>

#include "model/statistics/classes.h"
#include "model/statistics/ranking.h"
#include "model/core/text.h"
#include "model/engine/correct.h"
#include "model/engine/strategies/strategy.h"

/* Cells of plan options but for dp, which follows from the others. */
static void add_plan(struct dl_text *text, const struct dl_run_rows *r, int row) {
    dl_text_printf(text, "%s", r->rows[row].plan.strategy->name);
    for (int i = 0; i < r->plan_column_count; i++) {
        const struct dl_run_plan_column *c = &r->plan_columns[i];
        const char *cell = r->csv->rows[row][c->index];
        if (cell[0] != 0 && strcmp(c->name, "dp") != 0)
            dl_text_printf(text, " %s=%s", c->name, cell);
    }
}

struct dl_decision_keys dl_decision_keys(const struct dl_run_rows *r, int row) {
    const struct dl_run_row *run = &r->rows[row];
    struct dl_decision_keys keys = {"", "", "", ""};
    struct dl_text job = {.arena = r->arena}, plan = {.arena = r->arena};
    if (run->why != NULL) return keys;
    const char *input = dl_run_cell(r, row, DL_RUN_INPUT),
               *framework = dl_run_cell(r, row, DL_RUN_FRAMEWORK),
               *version = dl_run_version(r, row), *layout = dl_run_cell(r, row, DL_RUN_LAYOUT);
    dl_text_printf(&job, "%s%s%s %s, batch %.10g on %lld x %lld devices of %s (%s)",
                   dl_run_cell(r, row, DL_RUN_WORKLOAD), input[0] != 0 ? " " : "", input,
                   dl_precision_names[run->plan.precision], run->global_batch_samples,
                   (long long)run->plan.nodes, (long long)run->plan.devices_per_node,
                   dl_run_cell(r, row, DL_RUN_SYSTEM), dl_run_cell(r, row, DL_RUN_SOURCE));
    add_plan(&plan, r, row);
    const char *job_text = dl_text_string(&job), *plan_text = dl_text_string(&plan);
    const char *plans =
        dl_arena_printf(r->arena, "%s %s %s: %s", framework, version, layout, job_text);
    const char *frameworks =
        dl_arena_printf(r->arena, "%s: %s", run->plan.strategy->name, job_text);
    return (struct dl_decision_keys){plans, plan_text, frameworks, framework};
}

/* The alternatives of one job, or those of all jobs, one job after the other. */
struct job {
    const char **names;
    double *predicted, *measured, *half_log;
    int *times;
    int count;
};

/* Number of a case's alternative among those of the job, which begin at `first`; a new one is
 * added. */
static int alternative_of(struct job *all, int first, const char *name,
                          const struct dl_decision_row *row, bool frameworks) {
    int i = first;
    while (i < all->count && strcmp(all->names[i], name) != 0) i++;
    if (i < all->count) return i;
    all->names[all->count++] = name;
    all->predicted[i] = all->measured[i] = 0;
    all->times[i] = 0;
    all->half_log[i] = frameworks ? row->framework_half_log : row->plan_half_log;
    return i;
}

static void add_measurement(struct job *all, int i, double predicted_s, double measured_s) {
    const int n = ++all->times[i];
    all->predicted[i] += (predicted_s - all->predicted[i]) / n;
    all->measured[i] += (measured_s - all->measured[i]) / n;
}

/* The alternatives from number `first` on. */
static struct job job_at(const struct job *all, int first, int count) {
    return (struct job){all->names + first,    all->predicted + first, all->measured + first,
                        all->half_log + first, all->times + first,     count};
}

/* Whether the 80 % interval of no other alternative's difference from the best includes none. */
static bool distinguished(const struct job *job) {
    int best = 0;
    for (int i = 1; i < job->count; i++)
        if (job->predicted[i] < job->predicted[best]) best = i;
    for (int i = 0; i < job->count; i++) {
        const double apart = log(job->predicted[i] / job->predicted[best]);
        if (i != best && !(apart > hypot(job->half_log[i], job->half_log[best]))) return false;
    }
    return true;
}

static const char *group_of(const struct dl_decision_row *row, bool frameworks) {
    if (!dl_known(row->predicted_s) || !dl_known(row->measured_s)) return "";
    return frameworks ? row->keys.frameworks : row->keys.plans;
}

struct kind {
    const struct dl_decision_row *rows;
    bool frameworks;
};

static const char *group_at(const void *context, int row) {
    const struct kind *kind = context;
    return group_of(&kind->rows[row], kind->frameworks);
}

/* Cases, and the rows that measured them. */
struct measured {
    const struct dl_decision_row *cases;
    int case_count;
    const struct dl_comparison *rows; /* NULL: each case is one row */
};

/* Measured iteration of a row. */
static double iteration_of(const struct dl_compared *row) {
    const bool rate = strcmp(row->unit, "s") != 0;
    return rate ? row->samples_per_iteration / row->measured : row->measured;
}

/* The means of the alternatives, over rows in their order. */
static void add_rows(const struct measured *m, const int *alternatives, struct job *all) {
    const int count = m->rows != NULL ? dl_comparison_row_count(m->rows) : m->case_count;
    for (int i = 0; i < count; i++) {
        const int of = m->rows != NULL ? dl_comparison_case(m->rows, i) : i;
        if (alternatives[of] < 0) continue;
        double measured_s = m->cases[of].measured_s;
        if (m->rows != NULL) {
            const struct dl_compared row = dl_comparison_row(m->rows, i, NULL);
            measured_s = iteration_of(&row);
        }
        add_measurement(all, alternatives[of], m->cases[of].predicted_s, measured_s);
    }
}

static struct dl_decision decision_of(const struct job *job, const char *group, bool frameworks,
                                      double *scratch) {
    const size_t n = (size_t)job->count;
    return (struct dl_decision){
        .group = group,
        .frameworks = frameworks,
        .alternatives = job->count,
        .distinguished = distinguished(job),
        .regret_pct = 100 * dl_regret_frac(job->predicted, job->measured, n),
        .rank_correlation = dl_rank_correlation(job->predicted, job->measured, n, scratch),
    };
}

struct deciding {
    struct dl_arena *arena;
    struct job all;    /* room for all cases */
    int *alternatives; /* twice as much */
    double *scratch;   /* likewise */
    struct dl_decision *list;
    int count;
};

/* Adds the decisions of one kind. */
static void decide(const struct kind *kind, const struct measured *m, struct deciding *d) {
    struct job *all = &d->all;
    int *alternatives = d->alternatives;
    const struct dl_classes groups = dl_text_classes(group_at, kind, m->case_count, d->arena);
    int *firsts = alternatives + m->case_count; /* of the job whose first case that is */
    all->count = 0;
    for (int i = 0; i < m->case_count; i++) alternatives[i] = -1;
    for (int i = 0; i < m->case_count; i++) {
        if (group_at(kind, i)[0] == 0 || groups.first[i] != i) continue;
        firsts[i] = all->count;
        for (int k = i; k >= 0; k = groups.next[k]) {
            const struct dl_decision_keys *names = &kind->rows[k].keys;
            alternatives[k] =
                alternative_of(all, firsts[i], kind->frameworks ? names->framework : names->plan,
                               &kind->rows[k], kind->frameworks);
        }
    }
    add_rows(m, alternatives, all);
    int end = all->count;
    const int first_out = d->count;
    for (int i = m->case_count - 1; i >= 0; i--) { /* each job ends where the next one begins */
        if (alternatives[i] < 0 || groups.first[i] != i) continue;
        const struct job job = job_at(all, firsts[i], end - firsts[i]);
        end = firsts[i];
        if (job.count < 2) continue;
        d->list[d->count++] = decision_of(&job, group_at(kind, i), kind->frameworks, d->scratch);
    }
    for (int a = first_out, b = d->count - 1; a < b; a++, b--) {
        const struct dl_decision other = d->list[a];
        d->list[a] = d->list[b];
        d->list[b] = other;
    }
}

static struct dl_decision_list decide_all(const struct measured *m, struct dl_arena *arena) {
    const size_t count = (size_t)m->case_count;
    double *scratch = dl_arena_alloc(arena, 5 * count + 1, sizeof *scratch);
    struct deciding d = {.arena = arena,
                         .all = {.names = dl_arena_alloc(arena, count + 1, sizeof *d.all.names),
                                 .predicted = scratch,
                                 .measured = scratch + count,
                                 .half_log = scratch + 4 * count,
                                 .times = dl_arena_alloc(arena, count + 1, sizeof *d.all.times)},
                         .alternatives = dl_arena_alloc(arena, 2 * count + 1, sizeof(int)),
                         .scratch = scratch + 2 * count,
                         .list = dl_arena_alloc(arena, 2 * count + 1, sizeof *d.list)};
    for (int i = 0; i < 2; i++) {
        const struct kind kind = {m->cases, i == 1};
        decide(&kind, m, &d);
    }
    return (struct dl_decision_list){d.list, d.count};
}

struct dl_decision_list dl_decisions(const struct dl_decision_row *rows, size_t count,
                                     struct dl_arena *arena) {
    const struct measured each = {rows, (int)count, NULL};
    return decide_all(&each, arena);
}

struct dl_decision_list dl_decisions_of(const struct dl_comparison *c) {
    const size_t n = (size_t)c->count;
    struct dl_decision_row *cases = dl_arena_alloc(c->arena, n + 1, sizeof *cases);
    for (size_t i = 0; i < n; i++) {
        const struct dl_compared *row = &c->rows[i];
        cases[i].predicted_s = NAN;
        if (row->decision.plans == NULL || row->skipped) continue; /* not a run */
        const struct dl_prediction *p = row->modelled.prediction;
        cases[i] =
            (struct dl_decision_row){.keys = row->decision,
                                     .predicted_s = row->iteration_s,
                                     .measured_s = iteration_of(row),
                                     .plan_half_log = dl_prediction_plan_half_log(p),
                                     .framework_half_log = dl_prediction_framework_half_log(p)};
    }
    const struct measured m = {cases, c->count, c};
    return decide_all(&m, c->arena);
}

struct dl_decision_summary dl_decision_summary(const struct dl_decision_list *all,
                                               bool frameworks) {
    struct dl_decision_summary s = {.regret_mean_pct = 0, .regret_max_pct = 0};
    for (int i = 0; i < all->count; i++) {
        const struct dl_decision *d = &all->list[i];
        if (d->frameworks != frameworks) continue;
        s.jobs++;
        s.regret_mean_pct += d->regret_pct;
        s.regret_max_pct = fmax(s.regret_max_pct, d->regret_pct);
        if (d->distinguished) {
            s.distinguished_jobs++;
            s.distinguished_mean_pct += d->regret_pct;
            s.distinguished_max_pct = fmax(s.distinguished_max_pct, d->regret_pct);
        }
        if (d->alternatives < 3 || !dl_known(d->rank_correlation)) continue;
        s.ranked_jobs++;
        s.rank_correlation += d->rank_correlation;
    }
    s.regret_mean_pct = s.jobs > 0 ? s.regret_mean_pct / s.jobs : NAN;
    s.regret_max_pct = s.jobs > 0 ? s.regret_max_pct : NAN;
    s.distinguished_mean_pct =
        s.distinguished_jobs > 0 ? s.distinguished_mean_pct / s.distinguished_jobs : NAN;
    s.distinguished_max_pct = s.distinguished_jobs > 0 ? s.distinguished_max_pct : NAN;
    s.rank_correlation = s.ranked_jobs > 0 ? s.rank_correlation / s.ranked_jobs : NAN;
    return s;
}

void dl_decisions_json(const struct dl_decision_list *all, struct dl_json_writer *w) {
    dl_jw_array(w, "decisions");
    for (int i = 0; i < all->count; i++) {
        const struct dl_decision *d = &all->list[i];
        dl_jw_object(w, NULL);
        dl_jw_string(w, "group", d->group);
        dl_jw_string(w, "kind", d->frameworks ? "frameworks" : "plans");
        dl_jw_integer(w, "alternatives", d->alternatives);
        dl_jw_bool(w, "distinguished", d->distinguished);
        dl_jw_number(w, "regret_pct", d->regret_pct);
        dl_jw_number(w, "rank_correlation", d->rank_correlation);
        dl_jw_end(w);
    }
    dl_jw_end(w);
}

const char *dl_decisions_text(const struct dl_decision_list *all, struct dl_arena *arena) {
    struct dl_text text = {.arena = arena};
    for (int kind = 0; kind < 2; kind++) {
        const struct dl_decision_summary s = dl_decision_summary(all, kind == 1);
        if (s.jobs == 0) continue;
        dl_text_printf(
            &text,
            "Choosing among %s by prediction costs %.2g %% on average, %.2g %% at worst, "
            "over %d job%s",
            kind == 1 ? "frameworks" : "plans", s.regret_mean_pct, s.regret_max_pct, s.jobs,
            s.jobs == 1 ? "" : "s");
        if (s.distinguished_jobs > 0 && s.distinguished_jobs < s.jobs)
            dl_text_printf(
                &text,
                "; %.2g %% and %.2g %% over the %d whose best alternative the intervals separate",
                s.distinguished_mean_pct, s.distinguished_max_pct, s.distinguished_jobs);
        if (s.ranked_jobs > 0)
            dl_text_printf(&text, "; rank correlation %.2f over %d with three and more",
                           s.rank_correlation, s.ranked_jobs);
        dl_text_add(&text, ".\n");
    }
    return dl_text_string(&text);
}
