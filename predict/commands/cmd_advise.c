/* cmd_advise.c - which changes to settings or network pay on this machine, alone and together? */
#include <math.h>
#include <string.h>

#include "predict/output/advise_print.h"

static const char *const objectives[] = {"time", "energy", NULL};
enum { BY_ENERGY = 1 };
static const char *const rewrites[] = {"channels", "kernels", "depthwise", NULL};

struct asked {
    int objective, allowed;
    double least_gain_pct;
    const char *rewrite;
};
#define ASKED(member) struct asked, member

static const struct dl_option own_options[] = {
    {"objective", 0, "time|energy", "Advice", "samples per second or per joule; default time",
     DL_CHOICE(ASKED(objective), .choices = objectives)},
    {"allow", 0, "exact|rounding|model", "Advice",
     "changes that the combination may hold: the same numbers, also equal up to rounding, or also "
     "those that train differently; default rounding",
     DL_CHOICE(ASKED(allowed), .choices = dl_advise_effect_names)},
    {"least-gain", 0, "PERCENT", "Advice", "smallest gain that counts in %; default 0.5",
     DL_NUMBER(ASKED(least_gain_pct), .min = 0, .max = 1000)},
    {"rewrite", 0, "channels|kernels|depthwise", "Advice",
     "print the network rewritten in that way as a workload file (-o FILE), in place of advice",
     DL_WORD(ASKED(rewrite), .choices = rewrites)},
    {.name = NULL},
};
static const struct dl_option *const tables[] = {own_options, dl_input_options, dl_output_options,
                                                 NULL};
static const char *const examples[] = {
    "dlmodel advise --system iris-v100 --workload vgg16 --framework pytorch-ddp --nodes 8",
    "dlmodel advise --system iris-v100 --workload vgg16 --framework horovod-tensorflow --nodes 8 "
    "--allow model --json",
    "dlmodel advise --system iris-v100 --workload lenet --framework pytorch-ddp --rewrite channels",
    NULL,
};

struct adviser {
    struct dl_context *context;
    const struct asked *asked;
    struct dl_advise_report *report;
    struct dl_options options; /* with everything applied so far */
    struct dl_verdict now;     /* of these */
};

/* Samples per second, or per joule. */
static double score(const struct adviser *a, const struct dl_verdict *v) {
    const double rate = v->prediction.throughput_samples_per_s;
    return a->asked->objective == BY_ENERGY ? rate / v->job_w : rate;
}

/* Gain by the objective; the interval of time moves with it. */
static struct dl_gain gain_of(const struct adviser *a, const struct dl_verdict *before,
                              const struct dl_verdict *after) {
    struct dl_gain g = dl_gain_of(a->report->framework, &before->prediction, before->samples,
                                  &after->prediction, after->samples);
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
    out->command = command_of(a, merged, change);
    return out->command != NULL ? DL_OK : dl_fail(err, DL_ERR_SYSTEM, "out of memory");
}

/* Whether x is the better advice: possible, fits, gains more. */
static bool is_better(const struct dl_advised *x, const struct dl_advised *y) {
    if (x->verdict.possible != y->verdict.possible) return x->verdict.possible;
    if (!x->verdict.possible) return false;
    if (x->verdict.prediction.fits != y->verdict.prediction.fits) return x->verdict.prediction.fits;
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
    for (int i = 0; dl_advise_items[i] != NULL; i++) {
        if (dl_advise_items[i]->effect > most) continue;
        const int proposed = dl_advise_propose(dl_advise_items[i], &state, changes);
        if (proposed < 0) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
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

/* The best change at a time, of an item that is not in yet, until none pays. A rewritten network is
 * never in: its commands need a file first. */
static enum dl_code combine(struct adviser *a, struct dl_err *err) {
    struct dl_advise_report *r = a->report;
    struct dl_advised *rows = dl_arena_alloc(a->context->arena, DL_ADVISED, sizeof *rows);
    if (rows == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    while (r->step_count < DL_ADVISE_STEPS) {
        const struct dl_advised *best = NULL;
        int count;
        DL_TRY(judge_all(a, rows, &count, r->allowed, err));
        for (int i = 0; i < count && best == NULL; i++) {
            bool used = rows[i].change.item->rewrites || !rows[i].verdict.possible;
            for (int s = 0; s < r->step_count; s++)
                used = used || r->steps[s].change.item == rows[i].change.item;
            if (!used) best = &rows[i];
        }
        if (best == NULL) break;
        const bool rescues = best->verdict.prediction.fits && !a->now.prediction.fits,
                   pays = best->verdict.prediction.fits && a->now.prediction.fits &&
                          best->gain.ratio >= 1 + r->least_gain_frac;
        if (!rescues && !pays) break;
        DL_TRY(dl_advise_options(a->context->arena, &a->options, &best->change, &a->options, err));
        a->now = best->verdict;
        r->steps[r->step_count++] = *best;
    }
    r->gain = gain_of(a, &r->base, &a->now);
    r->command = command_of(a, &a->options, NULL);
    return r->command != NULL ? DL_OK : dl_fail(err, DL_ERR_SYSTEM, "out of memory");
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

static enum dl_code print_rewritten(struct adviser *a, const struct dl_options *options,
                                    struct dl_err *err) {
    struct dl_advise_state state;
    DL_TRY(dl_advise_state_of(a->context, &a->options, &state, err));
    for (int i = 0; dl_advise_items[i] != NULL; i++) {
        struct dl_advise_change changes[DL_ADVISE_CHANGES];
        struct dl_advised one;
        struct dl_options merged;
        if (strcmp(dl_advise_items[i]->name, a->asked->rewrite) != 0) continue;
        const int count = dl_advise_propose(dl_advise_items[i], &state, changes);
        if (count < 0) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
        if (count == 0)
            return dl_fail(err, DL_ERR_NO, "--rewrite %s: nothing in %s changes", a->asked->rewrite,
                           state.workload->name);
        DL_TRY(judge(a, &changes[0], &one, &merged, err));
        if (!one.verdict.possible) return dl_fail(err, DL_ERR_NO, "%s", one.verdict.why);
        a->context->note(a->context, "%s: %.4g samples/s in place of %.4g: %+.1f %% (%s)",
                         one.change.text, one.verdict.prediction.throughput_samples_per_s,
                         a->now.prediction.throughput_samples_per_s, 100 * (one.gain.ratio - 1),
                         one.change.item->mathematics);
        return a->context->output(
            options, dl_arena_printf(a->context->arena, "%s\n", changes[0].workload_text), err);
    }
    return dl_fail(err, DL_ERR_USAGE, "--rewrite: no such advice");
}

static enum dl_code run(struct dl_context *context, const struct dl_options *options,
                        struct dl_err *err) {
    enum dl_format format = DL_FORMAT_TEXT;
    struct asked asked = {.allowed = DL_EFFECT_ROUNDING, .least_gain_pct = 0.5};
    struct dl_inputs *inputs = dl_arena_alloc(context->arena, 1, sizeof *inputs);
    struct dl_advise_report *r = dl_arena_alloc(context->arena, 1, sizeof *r);
    if (inputs == NULL || r == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    struct adviser a = {.context = context, .asked = &asked, .report = r};
    DL_TRY(dl_output_format(options, &format, err));
    DL_TRY(dl_options_bind(options, own_options, &asked, err));
    *r = (struct dl_advise_report){.inputs = inputs,
                                   .objective = objectives[asked.objective],
                                   .allowed = (enum dl_advise_effect)asked.allowed,
                                   .least_gain_frac = asked.least_gain_pct / 100};
    DL_TRY(settle(&a, options, inputs, err));
    DL_TRY(dl_advise_judge(context, &a.options, NULL, &a.now, err));
    if (!a.now.possible) return dl_fail(err, DL_ERR_USAGE, "%s", a.now.why);
    if (asked.objective == BY_ENERGY && !dl_known(a.now.job_w))
        return dl_fail(err, DL_ERR_USAGE, "--objective energy: no power of %s is known",
                       inputs->system->device->name);
    r->base = a.now;
    if (asked.rewrite != NULL) return print_rewritten(&a, options, err);
    r->rows = dl_arena_alloc(context->arena, DL_ADVISED, sizeof *r->rows);
    if (r->rows == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    DL_TRY(judge_all(&a, r->rows, &r->count, DL_EFFECT_MODEL, err));
    DL_TRY(combine(&a, err));
    return dl_advise_print(context, options, r, format, err);
}

const struct dl_command dl_cmd_advise = {
    .name = "advise",
    .summary = "changes to settings and network that pay on this machine",
    .usage = "[options]",
    .purpose =
        "Predicts a plan with each change that dlmodel knows: precision, batch, gradient "
        "accumulation, buckets, Horovod's fusion and cycle, hierarchical all-reduce, narrow, "
        "sparse or 1-bit gradients, sufficient factors, local SGD, parameter servers, "
        "layouts, compilers, fused optimizers, attention, vocabulary, recomputation, "
        "overlap, input, and rewritten networks. Each line says what the change does to the "
        "mathematics (exact: the same numbers; rounding: equal up to rounding; model: other "
        "training, whose accuracy must be looked at), its gain in samples per second with "
        "an 80 % interval, and with --json the setting in the framework and the command of "
        "predict that gives the figure. Then it combines allowed changes, the best one at a "
        "time, and prints the settings and the command that predicts them together.",
    .examples = examples,
    .options = tables,
    .run = run,
};
