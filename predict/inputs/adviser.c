/* adviser.c - see adviser.h. */
#include "predict/inputs/adviser.h"

#include <math.h>
#include <string.h>

#include "model/engine/interval.h"

struct adviser {
    struct dl_context *context;
    struct dl_advise_report *report;
    struct dl_options options; /* with everything applied so far */
    struct dl_verdict now;     /* of these */
};

/* Samples per second, or per joule. */
static double score(const struct adviser *a, const struct dl_verdict *v) {
    const double rate = v->prediction.throughput_samples_per_s;
    return a->report->by_energy ? rate / v->job_w : rate;
}

/* Gain by the objective; the interval of time moves with it. */
static struct dl_gain gain_of(const struct adviser *a, const struct dl_verdict *before,
                              const struct dl_verdict *after) {
    const struct dl_interval_model *intervals = a->report->framework->errors.intervals;
    const struct dl_device *device = a->report->inputs->system->device;
    const bool measured =
        intervals == NULL || dl_interval_measured_device(intervals, dl_device_kernels_name(device),
                                                         dl_device_architecture(device));
    struct dl_gain g = dl_gain_of(a->report->framework, &before->prediction, before->samples,
                                  &after->prediction, after->samples, measured);
    const double by = score(a, after) / score(a, before) / g.ratio;
    return (struct dl_gain){g.ratio * by, g.low * by, g.high * by};
}

/* The command that predicts these options; a rewritten network is written first. */
static const char *command_of(const struct adviser *a, const struct dl_options *options,
                              const struct dl_advise_change *change) {
    struct dl_arena *arena = a->context->arena;
    const char *predict = dl_inputs_command(a->context, options, "predict", a->report->framework,
                                            a->report->inputs->nodes[0]);
    if (change == NULL || change->workload_text == NULL) return predict;
    const struct dl_options plain = dl_options_without(options, "workload");
    return dl_arena_printf(arena,
                           "%s --rewrite %s -o rewritten.json && %s --workload rewritten.json",
                           dl_inputs_command(a->context, options, "advise", a->report->framework,
                                             a->report->inputs->nodes[0]),
                           change->item->name,
                           dl_inputs_command(a->context, &plain, "predict", a->report->framework,
                                             a->report->inputs->nodes[0]));
}

static enum dl_code judge(struct adviser *a, const struct dl_advise_change *change,
                          struct dl_advised *out, struct dl_options *merged, struct dl_err *err) {
    *out = (struct dl_advised){.change = *change};
    DL_TRY(dl_advise_options(a->context->arena, &a->options, change, merged, err));
    DL_TRY(dl_advise_judge(a->context, merged, change->workload_text, &out->verdict, err));
    if (out->verdict.possible) out->gain = gain_of(a, &a->now, &out->verdict);
    if (change->unmeasured != NULL) out->gain.low = fmin(out->gain.low, 1);
    out->command = command_of(a, merged, change);
    return DL_OK;
}

/* Whether x is the better advice: possible, fits, has measured evidence, gains more. */
static bool is_better(const struct dl_advised *x, const struct dl_advised *y) {
    if (x->verdict.possible != y->verdict.possible) return x->verdict.possible;
    if (!x->verdict.possible) return false;
    if (x->verdict.prediction.fits != y->verdict.prediction.fits) return x->verdict.prediction.fits;
    const bool x_measured = x->change.unmeasured == NULL, y_measured = y->change.unmeasured == NULL;
    if (x_measured != y_measured) return x_measured;
    return x->gain.ratio > y->gain.ratio;
}

/* All proposals from the present state, the best first. */
static enum dl_code judge_all(struct adviser *a, struct dl_advised *rows, int *count,
                              enum dl_advise_effect most, struct dl_err *err) {
    struct dl_advise_state state;
    struct dl_advise_change changes[DL_ADVISE_CHANGES];
    struct dl_options merged;
    *count = 0;
    DL_TRY(dl_advise_state_of(a->context, &a->options, &state, err));
    for (int i = 0; dl_advise_items[i].name != NULL; i++) {
        if (dl_advise_items[i].effect > most) continue;
        const int proposed = dl_advise_propose(&dl_advise_items[i], &state, changes);
        for (int k = 0; k < proposed && *count < DL_ADVISED; k++) {
            struct dl_advised one;
            int at = (*count)++;
            DL_TRY(judge(a, &changes[k], &one, &merged, err));
            for (; at > 0 && is_better(&one, &rows[at - 1]); at--) rows[at] = rows[at - 1];
            rows[at] = one;
        }
    }
    return DL_OK;
}

/* The best change at a time, of an item that is not in yet, until none saves time. A rewritten
 * network is never in: its commands need a file first. */
static enum dl_code combine(struct adviser *a, struct dl_err *err) {
    struct dl_advise_report *r = a->report;
    struct dl_advised *rows = dl_arena_alloc(a->context->arena, DL_ADVISED, sizeof *rows);
    while (r->step_count < DL_ADVISE_STEPS) {
        const struct dl_advised *best = NULL;
        int count;
        DL_TRY(judge_all(a, rows, &count, r->allowed, err));
        for (int i = 0; i < count && best == NULL; i++) {
            bool used = rows[i].change.item->rewrites || rows[i].change.unmeasured != NULL ||
                        !rows[i].verdict.possible;
            for (int s = 0; s < r->step_count; s++)
                used = used || r->steps[s].change.item == rows[i].change.item;
            if (!used) best = &rows[i];
        }
        if (best == NULL) break;
        const bool rescues = best->verdict.prediction.fits && !a->now.prediction.fits,
                   saves = best->verdict.prediction.fits && a->now.prediction.fits &&
                           best->gain.ratio >= 1 + r->least_gain_frac;
        if (!rescues && !saves) break;
        DL_TRY(dl_advise_options(a->context->arena, &a->options, &best->change, &a->options, err));
        a->now = best->verdict;
        r->steps[r->step_count++] = *best;
    }
    r->gain = gain_of(a, &r->base, &a->now);
    r->command = command_of(a, &a->options, NULL);
    return DL_OK;
}

/* Exactly one framework and one number of nodes: what the user gave, else the default. */
static enum dl_code settle(struct adviser *a, const struct dl_options *options,
                           struct dl_inputs *inputs, struct dl_err *err) {
    DL_TRY(dl_inputs_load(a->context, options, inputs, err));
    DL_TRY(dl_inputs_one_framework(inputs, "advise", err));
    if (inputs->node_count > 1)
        return dl_fail(err, DL_ERR_USAGE, "--nodes: advise takes one number, got a list");
    a->report->framework = inputs->frameworks[0];
    a->options = *options;
    if (!inputs->framework_all) return DL_OK;
    a->report->framework =
        dl_framework_default(inputs->frameworks, inputs->framework_count, DL_DEFAULT_DATA_PARALLEL);
    if (a->report->framework == NULL) return dl_fail(err, DL_ERR_USAGE, "--framework: name one");
    a->context->note(a->context, "using framework %s; choose another with --framework",
                     a->report->framework->name);
    const struct dl_advise_change chosen = {.options = {{"framework", a->report->framework->name}},
                                            .option_count = 1};
    DL_TRY(dl_advise_options(a->context->arena, options, &chosen, &a->options, err));
    return dl_inputs_load(a->context, &a->options, inputs, err);
}

static enum dl_code begin(struct adviser *a, const struct dl_options *options, struct dl_err *err) {
    struct dl_advise_report *r = a->report;
    struct dl_inputs *inputs = dl_arena_alloc(a->context->arena, 1, sizeof *inputs);
    r->inputs = inputs;
    DL_TRY(settle(a, options, inputs, err));
    DL_TRY(dl_advise_judge(a->context, &a->options, NULL, &a->now, err));
    if (!a->now.possible) return dl_fail(err, DL_ERR_USAGE, "%s", a->now.why);
    if (r->by_energy && !dl_known(a->now.job_w))
        return dl_fail(err, DL_ERR_USAGE, "--objective energy: no power of %s is known",
                       inputs->system->device->name);
    r->base = a->now;
    return DL_OK;
}

enum dl_code dl_adviser_run(struct dl_context *context, const struct dl_options *options,
                            struct dl_advise_report *r, struct dl_err *err) {
    struct adviser a = {.context = context, .report = r};
    DL_TRY(begin(&a, options, err));
    r->rows = dl_arena_alloc(context->arena, DL_ADVISED, sizeof *r->rows);
    DL_TRY(judge_all(&a, r->rows, &r->count, DL_EFFECT_MODEL, err));
    return combine(&a, err);
}

enum dl_code dl_adviser_rewrite(struct dl_context *context, const struct dl_options *options,
                                const char *item, struct dl_advise_report *r,
                                struct dl_advised *out, struct dl_err *err) {
    struct adviser a = {.context = context, .report = r};
    struct dl_advise_state state;
    DL_TRY(begin(&a, options, err));
    DL_TRY(dl_advise_state_of(context, &a.options, &state, err));
    for (int i = 0; dl_advise_items[i].name != NULL; i++) {
        struct dl_advise_change changes[DL_ADVISE_CHANGES];
        struct dl_options merged;
        if (strcmp(dl_advise_items[i].name, item) != 0) continue;
        const int count = dl_advise_propose(&dl_advise_items[i], &state, changes);
        if (count == 0)
            return dl_fail(err, DL_ERR_NO, "--rewrite %s: nothing in %s changes", item,
                           state.workload->name);
        DL_TRY(judge(&a, &changes[0], out, &merged, err));
        return out->verdict.possible ? DL_OK : dl_fail(err, DL_ERR_NO, "%s", out->verdict.why);
    }
    return dl_fail(err, DL_ERR_USAGE, "--rewrite: no such advice");
}

bool dl_advised_is_first(const struct dl_advise_report *r, int row) {
    for (int i = 0; i < row; i++) {
        if (r->rows[i].change.item == r->rows[row].change.item) return false;
    }
    return true;
}
