/* probe_runs.c - see probe_runs.h. */
#include "predict/inputs/probe_runs.h"

#include <math.h>

#include "model/engine/correct.h"
#include "model/engine/interval.h"

enum { CANDIDATES = 32 };
static const double START_S = 120; /* of a job until its first step; chosen */
static const double ENOUGH_FRAC = 0.9, SURE_TO_FIT = 0.9; /* chosen */

struct probe {
    const struct dl_inputs *inputs;
    const struct dl_framework *framework;
    const struct dl_workload *workload;
    struct dl_interval_case target;
    double before_log; /* end of the interval */
    double samples_per_device;
    struct dl_probe_run *candidates;
    int count;
    struct dl_arena *arena;
};

/* The end of the planned run's interval once the runs are measured. */
static enum dl_code after_log(const struct probe *p, const struct dl_probe_run *const *runs,
                              size_t count, double *out, struct dl_err *err) {
    struct dl_measured_run measured[DL_PROBE_MOST];
    const struct dl_posterior *posterior;
    struct dl_arena arena = {0};
    for (size_t i = 0; i < count; i++) measured[i] = runs[i]->as_measured;
    const enum dl_code code =
        dl_posterior_make(p->framework->errors.intervals, measured, count, &arena, &posterior, err);
    if (code == DL_OK) {
        const struct dl_posterior_shift shift =
            dl_posterior_shift(posterior, p->workload->name, &p->target);
        *out = dl_posterior_end_log(posterior, &shift, p->before_log);
    }
    dl_arena_free(&arena);
    return code;
}

/* A smaller run, unless it cannot run or may not fit. */
static enum dl_code add(struct probe *p, int64_t nodes, int64_t devices_per_node, double samples,
                        struct dl_err *err) {
    struct dl_inputs own = *p->inputs;
    struct dl_probe_run *run = &p->candidates[p->count];
    struct dl_prediction q;
    struct dl_err inner = {0};
    if (p->count == CANDIDATES || samples < 1) return DL_OK;
    own.plan.devices_per_node = devices_per_node;
    own.max_batch = false;
    own.given.batch_per_device = own.plan.global_batch_samples > 0 ? false : true;
    if (own.plan.global_batch_samples > 0)
        own.plan.global_batch_samples = samples * (double)(nodes * devices_per_node);
    else
        own.plan.batch_per_device_samples = samples;
    const enum dl_code code =
        dl_inputs_predict(&(struct dl_inputs_case){&own, p->framework, nodes, false}, p->arena,
                          &run->plan, &q, &inner);
    if (code == DL_ERR_USAGE || code == DL_ERR_NO) return DL_OK;
    if (code != DL_OK) *err = inner;
    DL_TRY(code);
    if (!q.fits || q.fits_probability_frac < SURE_TO_FIT) return DL_OK;
    run->iteration_s = q.iteration_s;
    run->duration_s = START_S + (DL_PROBE_WARMUP + DL_PROBE_STEPS) * q.iteration_high_s;
    run->device_time_s = run->duration_s * (double)(nodes * devices_per_node);
    run->as_measured = (struct dl_measured_run){
        .what = dl_interval_case_of(p->inputs->system, p->workload, p->framework, &run->plan, &q),
        .workload = p->workload->name};
    double after;
    DL_TRY(after_log(p, (const struct dl_probe_run *const[]){run}, 1, &after, err));
    run->alone_ratio = exp(after);
    p->count++;
    return DL_OK;
}

static enum dl_code add_batches(struct probe *p, int64_t nodes, int64_t devices_per_node,
                                struct dl_err *err) {
    for (double part = 1; part >= 0.25; part /= 2)
        DL_TRY(add(p, nodes, devices_per_node, floor(p->samples_per_device * part + 1e-6), err));
    return DL_OK;
}

/* On one device, one node and so on, up to half of the planned nodes; a job on one node on fewer
 * devices. */
static enum dl_code add_all(struct probe *p, const struct dl_plan *planned, struct dl_err *err) {
    const int64_t each = planned->devices_per_node;
    for (int64_t devices = 1; devices < each; devices *= 2) DL_TRY(add_batches(p, 1, devices, err));
    for (int64_t nodes = 1; 2 * nodes <= planned->nodes; nodes *= 2)
        DL_TRY(add_batches(p, nodes, each, err));
    return DL_OK;
}

struct best {
    const struct dl_probe_run *runs[DL_PROBE_MOST];
    size_t count;
    double end_log, device_time_s;
};

/* All sets in turn: `visit` sees each with its end. */
struct sets {
    const struct probe *p;
    double enough_log; /* NAN: look for the narrowest */
    struct best best;
};

static enum dl_code visit(struct sets *s, const struct dl_probe_run *const *runs, size_t count,
                          struct dl_err *err) {
    struct best one = {.count = count, .device_time_s = 0};
    DL_TRY(after_log(s->p, runs, count, &one.end_log, err));
    for (size_t i = 0; i < count; i++) {
        one.runs[i] = runs[i];
        one.device_time_s += runs[i]->device_time_s;
    }
    const bool better = isnan(s->enough_log) ? one.end_log < s->best.end_log
                                             : one.end_log <= s->enough_log &&
                                                   one.device_time_s < s->best.device_time_s;
    if (better) s->best = one;
    return DL_OK;
}

static enum dl_code visit_all(struct sets *s, struct dl_err *err) {
    const struct dl_probe_run *all = s->p->candidates, *runs[DL_PROBE_MOST];
    const int n = s->p->count;
    for (int i = 0; i < n; i++) {
        runs[0] = &all[i];
        DL_TRY(visit(s, runs, 1, err));
        for (int j = i + 1; j < n; j++) {
            runs[1] = &all[j];
            DL_TRY(visit(s, runs, 2, err));
            for (int k = j + 1; k < n; k++) {
                runs[2] = &all[k];
                DL_TRY(visit(s, runs, 3, err));
            }
        }
    }
    return DL_OK;
}

static enum dl_code choose(const struct probe *p, struct dl_probe_choice *out, struct dl_err *err) {
    struct sets s = {.p = p, .enough_log = NAN, .best.end_log = p->before_log};
    DL_TRY(visit_all(&s, err));
    const double gained_log = p->before_log - s.best.end_log;
    out->best_ratio = exp(s.best.end_log);
    if (!(gained_log > 0)) return DL_OK;
    s.enough_log = p->before_log - ENOUGH_FRAC * gained_log;
    s.best.device_time_s = INFINITY;
    DL_TRY(visit_all(&s, err));
    out->after_ratio = exp(s.best.end_log);
    out->count = (int)s.best.count;
    for (size_t i = 0; i < s.best.count; i++) out->runs[i] = *s.best.runs[i];
    return DL_OK;
}

enum dl_code dl_probe_choose(struct dl_context *context, const struct dl_inputs *inputs,
                             struct dl_probe_choice *out, struct dl_err *err) {
    struct probe p = {.inputs = inputs,
                      .framework = inputs->frameworks[0],
                      .workload = dl_inputs_workload(inputs, inputs->frameworks[0]),
                      .arena = context->arena};
    *out = (struct dl_probe_choice){.count = 0};
    if (inputs->node_count != 1 || inputs->heterogeneous != NULL)
        return dl_fail(err, DL_ERR_USAGE, "probe-run takes one number of --nodes of one system");
    if (inputs->words.measured != NULL)
        return dl_fail(err, DL_ERR_USAGE,
                       "probe-run plans the first runs; predict --measured takes those that are "
                       "there");
    if (p.framework->errors.intervals == NULL)
        return dl_fail(err, DL_ERR_USAGE, "probe-run: no intervals.json in the data directories");
    DL_TRY(dl_inputs_predict(&(struct dl_inputs_case){inputs, p.framework, inputs->nodes[0], false},
                             context->arena, &out->plan, &out->prediction, err));
    const struct dl_prediction *q = &out->prediction;
    p.target = dl_interval_case_of(inputs->system, p.workload, p.framework, &out->plan, q);
    p.before_log = log(q->iteration_high_s / q->iteration_s);
    p.samples_per_device = p.target.batch_per_device_samples;
    p.candidates = dl_arena_alloc(context->arena, CANDIDATES, sizeof *p.candidates);
    out->before_ratio = out->after_ratio = out->best_ratio = exp(p.before_log);
    DL_TRY(add_all(&p, &out->plan, err));
    out->candidates = p.candidates, out->candidate_count = p.count;
    return choose(&p, out, err);
}
