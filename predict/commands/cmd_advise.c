/* cmd_advise.c - which changes to settings or network make a job faster, alone and together? */
#include "model/core/figure.h"
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

static enum dl_code print_rewritten(struct dl_context *context, const struct dl_options *options,
                                    const char *item, struct dl_advise_report *r,
                                    struct dl_err *err) {
    struct dl_advised one;
    DL_TRY(dl_adviser_rewrite(context, options, item, r, &one, err));
    context->note(
        context, "%s: %s samples/s in place of %s: %+.1f %% (%s)", one.change.text,
        dl_figure_text(context->arena, one.verdict.prediction.throughput_samples_per_s, 4),
        dl_figure_text(context->arena, r->base.prediction.throughput_samples_per_s, 4),
        100 * (one.gain.ratio - 1), one.change.item->mathematics);
    return context->output(options,
                           dl_arena_printf(context->arena, "%s\n", one.change.workload_text), err);
}

static enum dl_code run(struct dl_context *context, const struct dl_options *options,
                        struct dl_err *err) {
    enum dl_format format = DL_FORMAT_TEXT;
    struct asked asked = {.allowed = DL_EFFECT_ROUNDING, .least_gain_pct = 0.5};
    struct dl_advise_report *r = dl_arena_alloc(context->arena, 1, sizeof *r);
    DL_TRY(dl_output_format(options, &format, err));
    DL_TRY(dl_options_bind(options, own_options, &asked, err));
    *r = (struct dl_advise_report){.by_energy = asked.objective == BY_ENERGY,
                                   .allowed = (enum dl_advise_effect)asked.allowed,
                                   .least_gain_frac = asked.least_gain_pct / 100};
    if (asked.rewrite != NULL) return print_rewritten(context, options, asked.rewrite, r, err);
    DL_TRY(dl_adviser_run(context, options, r, err));
    return dl_advise_print(context, options, r, format, err);
}

const struct dl_command dl_cmd_advise = {
    .name = "advise",
    .summary = "settings and model changes worth making on this machine",
    .usage = "[options]",
    .purpose =
        "Predicts a plan with each of these changes: precision, batch, gradient "
        "accumulation, buckets, Horovod's fusion and cycle, hierarchical all-reduce, narrow, "
        "sparse or 1-bit gradients, sufficient factors, local SGD, parameter servers, "
        "layouts, compilers, fused optimizers, attention, vocabulary, recomputation, "
        "overlap, input, and rewritten networks. Each line shows the effect on the "
        "mathematics (exact: the same numbers; rounding: equal up to rounding; model: other "
        "training, whose accuracy must be checked), its gain in samples per second with "
        "an 80 % interval, and with --json the setting in the framework and the command of "
        "predict that gives the figure. Then it combines allowed changes, the best one at a "
        "time, and prints the settings and the command that predicts them together.",
    .examples = examples,
    .options = tables,
    .latex = true,
    .few_notes = true,
    .common = DL_COMMON_INPUTS "objective allow rewrite json help",
    .instead = "For the best split, batch and schedule of a transformer use search; advise tries "
               "settings, layouts and rewritten layers one by one.",
    .run = run,
};
