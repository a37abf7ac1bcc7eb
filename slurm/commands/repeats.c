/* repeats.c - `submit --method deep500`: repeats of each configuration until the distribution-free
 * 95 % interval of the median of its runs is narrow enough (Ben-Nun et al. 2019: A Modular
 * Benchmarking Infrastructure for High-Performance and Reproducible Deep Learning). A run's value
 * is the median of its steps without warm-up and outliers; disturbed runs are counted and reported.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "model/statistics/stats.h"
#include "slurm/run/runlog.h"
#include "slurm/commands/slurm_internal.h"

enum { MAX_RUNS = 4096 };

/* One configuration of the plan with the results of its runs in the folder. */
struct state {
    const struct dl_run_record *run;
    double values_s[MAX_RUNS];
    size_t ended;
    int open, disturbed, warm;
    double median_s, low_s, high_s, width_frac;
    int64_t wanted, missing;
};

static bool same_text(const char *a, const char *b) {
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static bool same(const struct dl_run_record *a, const struct dl_run_record *b) {
    return same_text(a->framework, b->framework) && same_text(a->workload, b->workload) &&
           same_text(a->input, b->input) && same_text(a->precision, b->precision) &&
           same_text(a->optimizer, b->optimizer) && same_text(a->system, b->system) &&
           same_text(a->dataset, b->dataset) && same_text(a->backend, b->backend) &&
           a->nodes == b->nodes && a->devices_per_node == b->devices_per_node &&
           a->batch_per_device == b->batch_per_device && a->tp == b->tp && a->pp == b->pp &&
           a->profile == b->profile;
}

/* Levels of Deep500: 0 operators, 1 a network, 2 training on one device, 3 on several. */
static int64_t level_of(const struct dl_run_record *run) {
    if (run->profile) return 1;
    return run->nodes * run->devices_per_node > 1 ? 3 : 2;
}

static enum dl_code take_run(struct state *s, const struct dl_run_record *run,
                             const struct dl_job_state *job, struct dl_err *err) {
    struct dl_arena arena = {0};
    struct dl_runlog log;
    struct dl_run_summary sum;
    enum dl_code code = dl_runlog_read(run->folder, &arena, &log, err);
    const bool ended = code == DL_OK && dl_slurm_job_ended(job, &log);
    if (code == DL_OK && !ended) s->open += run->job_id != NULL;
    if (ended && log.step_count >= 3 && s->ended < MAX_RUNS) {
        int cold;
        dl_runlog_summarize(&log, &arena, &sum, &cold);
        s->values_s[s->ended++] = sum.median_s;
        s->warm += cold;
        s->disturbed += dl_runlog_disturbance(&log, &arena) != NULL;
    }
    dl_arena_free(&arena);
    return code;
}

/* F-REPEATS */
static void plan_state(struct state *s, const struct dl_slurm_choice *choice) {
    dl_sort(s->values_s, s->ended);
    s->median_s = s->ended > 0 ? dl_quantile_sorted(s->values_s, s->ended, 0.5) : NAN;
    s->low_s = s->high_s = s->width_frac = NAN;
    if (s->ended >= 6) {
        dl_median_interval(s->values_s, s->ended, &s->low_s, &s->high_s);
        s->width_frac = (s->high_s - s->low_s) / s->median_s;
    }
    s->wanted = (int64_t)dl_repeats_wanted(s->values_s, s->ended, choice->interval_width_frac);
    if (s->wanted > choice->most_repeats) s->wanted = choice->most_repeats;
    const int64_t missing = s->wanted - (int64_t)s->ended - s->open;
    s->missing = missing > 0 ? missing : 0;
}

static const struct dl_column columns[] = {
    {"configuration", "configuration", "", DL_COLUMN_STRING, 0, 0},
    {"level", "level", "", DL_COLUMN_INTEGER, 0, 0},
    {"ended", "ended", "", DL_COLUMN_INTEGER, 0, 0},
    {"open", "open", "", DL_COLUMN_INTEGER, 0, 0},
    {"disturbed", "disturbed", "", DL_COLUMN_INTEGER, 0, 0},
    {"warmup_steps", "warm-up", "steps", DL_COLUMN_INTEGER, 0, 0},
    {"median_s", "median", "ms", DL_COLUMN_NUMBER, 1e-3, 4},
    {"low_s", "low", "ms", DL_COLUMN_NUMBER, 1e-3, 4},
    {"high_s", "high", "ms", DL_COLUMN_NUMBER, 1e-3, 4},
    {"width_frac", "width", "%", DL_COLUMN_NUMBER, 0.01, 3},
    {"missing", "submitted", "", DL_COLUMN_INTEGER, 0, 0},
};

static void add_state(struct dl_table *table, const struct state *s) {
    const char *id = s->run->id, *end = strrchr(id, '-');
    dl_table_add(table,
                 {.string = dl_arena_strndup(table->arena, id,
                                             end == NULL ? strlen(id) : (size_t)(end - id))},
                 {.integer = level_of(s->run)}, {.integer = (int64_t)s->ended},
                 {.integer = s->open}, {.integer = s->disturbed}, {.integer = s->warm},
                 {.number = s->median_s}, {.number = s->low_s}, {.number = s->high_s},
                 {.number = s->width_frac}, {.integer = s->missing});
}

/* The missing repeats of one configuration, in place of its one run. */
static enum dl_code add_repeats(struct dl_context *context, const struct dl_slurm_plan *old, int i,
                                const struct state *s, struct dl_slurm_plan *plan,
                                struct dl_err *err) {
    const struct dl_run_record *run = &old->runs[i];
    const size_t name = (size_t)(strrchr(run->id, '-') - run->id);
    for (int64_t r = 0; r < s->missing; r++) {
        if (plan->count == MAX_RUNS)
            return dl_fail(err, DL_ERR_USAGE, "more than %d runs are missing: fewer configurations",
                           (int)MAX_RUNS);
        struct dl_run_record *out = &plan->runs[plan->count];
        *out = *run;
        out->repeat = (int64_t)s->ended + s->open + r + 1;
        out->id =
            dl_arena_printf(context->arena, "%.*s-r%" PRId64, (int)name, run->id, out->repeat);
        plan->launches[plan->count] = old->launches[i];
        plan->networks[plan->count++] = old->networks[i];
    }
    return DL_OK;
}

/* Runs of the folder; none where it does not exist yet. */
static enum dl_code read_folder(struct dl_context *context, const struct dl_options *options,
                                const struct dl_slurm_plan *plan, struct dl_run_list *runs,
                                struct dl_job_states *states, struct dl_err *err) {
    bool accounting = true;
    struct dl_err none = {0};
    *runs = (struct dl_run_list){.count = 0};
    *states = (struct dl_job_states){.count = 0};
    if (dl_runs_read(plan->folder, context->arena, runs, &none) != DL_OK) return DL_OK;
    DL_TRY(dl_slurm_read_runs(context, options, runs, &accounting, err));
    if (runs->count == 0) return DL_OK;
    /* without Slurm's answer the logs show which runs have ended */
    (void)dl_slurm_states(runs, accounting, context->arena, states, &none);
    return DL_OK;
}

static enum dl_code find_states(struct dl_context *context, const struct dl_options *options,
                                const struct dl_slurm_plan *plan, struct state *states,
                                struct dl_err *err) {
    struct dl_run_list runs;
    struct dl_job_states jobs;
    DL_TRY(read_folder(context, options, plan, &runs, &jobs, err));
    for (int i = 0; i < plan->count; i++) {
        states[i].run = &plan->runs[i];
        for (int k = 0; k < runs.count; k++) {
            const struct dl_run_record *run = &runs.runs[k];
            if (!same(&plan->runs[i], run)) continue;
            DL_TRY(take_run(&states[i], run,
                            run->job_id == NULL ? NULL : dl_slurm_state_of(&jobs, run->job_id),
                            err));
        }
        plan_state(&states[i], plan->choice);
    }
    return DL_OK;
}

enum dl_code dl_slurm_plan_repeats(struct dl_context *context, const struct dl_options *options,
                                   struct dl_slurm_plan *plan, struct dl_err *err) {
    struct dl_table table;
    struct dl_slurm_plan old = *plan;
    int narrow = 0;
    if (dl_option_given(options, "repeat"))
        return dl_fail(err, DL_ERR_USAGE,
                       "--method plans the repeats itself: leave out --repeat; --most-repeats "
                       "limits them");
    struct state *states = dl_arena_alloc(context->arena, (size_t)plan->count, sizeof *states);
    old.runs = dl_arena_alloc(context->arena, (size_t)plan->count, sizeof *old.runs);
    old.launches = dl_arena_alloc(context->arena, (size_t)plan->count, sizeof *old.launches);
    old.networks = dl_arena_alloc(context->arena, (size_t)plan->count, sizeof *old.networks);
    for (int i = 0; i < plan->count; i++) {
        old.runs[i] = plan->runs[i];
        old.launches[i] = plan->launches[i];
        old.networks[i] = plan->networks[i];
    }
    DL_TRY(find_states(context, options, &old, states, err));
    dl_table_init(&table, context->arena, columns, sizeof columns / sizeof *columns);
    plan->count = 0;
    for (int i = 0; i < old.count; i++) {
        add_state(&table, &states[i]);
        DL_TRY(add_repeats(context, &old, i, &states[i], plan, err));
        narrow += states[i].width_frac <= plan->choice->interval_width_frac;
    }
    context->note(context, "%s", dl_table_text(&table));
    context->note(context,
                  "%d of %d configurations have a 95 %% interval of the median of at most %.3g %%; "
                  "%d runs are missing",
                  narrow, old.count, 100 * plan->choice->interval_width_frac, plan->count);
    return DL_OK;
}
