/* cmd_predict.c - how long do an iteration and an epoch take, where does the time go, and does
 * the plan fit in memory? */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/base/text.h"
#include "model/parallel/strategy.h"
#include "model/predict/correct.h"
#include "predict/export/export.h"
#include "predict/inputs/checkpoint_inputs.h"
#include "predict/inputs/inputs.h"
#include "predict/inputs/heterogeneous_inputs.h"
#include "predict/inputs/what_if_note.h"
#include "predict/inputs/rates.h"
#include "predict/output/advice_print.h"
#include "predict/output/rows.h"
#include "predict/plot/trace.h"

struct asked {
    const char *trace, *export;
};
#define ASKED(member) struct asked, member

static const struct dl_option predict_options[] = {
    {"trace", 0, "FILE", "Output",
     "write the timeline of the iteration to FILE, for chrome://tracing or Perfetto",
     DL_TEXT(ASKED(trace))},
    {"export", 0, "megatron|torchtitan|deepspeed|sbatch", "Output",
     "print the plan as that framework's arguments or configuration, or as a job script, in place "
     "of the prediction",
     DL_WORD(ASKED(export), .choices = dl_export_names)},
    {.name = NULL},
};
static const struct dl_option *const tables[] = {
    dl_input_options,  dl_heterogeneous_options, dl_checkpoint_options, dl_rates_options,
    dl_limits_options, predict_options,          dl_output_options,     NULL};
static const char *const examples[] = {
    "dlmodel predict --nodes 16",
    "dlmodel predict --system iris-v100 --workload vgg16 --framework horovod-tensorflow --nodes "
    "1-16*2 --json",
    "dlmodel predict --system dgx-a100-80 --workload bert_large --nodes 64 --checkpoint best --set "
    "node_mtbf=20000h",
    "dlmodel predict --heterogeneous dgx1-v100:4,dgx1-p100:4 --split balanced --framework "
    "pytorch-ddp",
    "dlmodel predict --system dgx1-v100 --workload resnet50 --precision mixed --batch-per-device "
    "256 --set links.intra.bandwidth=50GB/s",
    NULL,
};

struct result {
    struct dl_plan plan;
    struct dl_prediction prediction;
    const struct dl_framework *framework;
};
/* strategy NULL: the only one requested */
struct skipped {
    const char *framework, *strategy, *why;
    int64_t nodes;
    bool is_bound;
};

struct results {
    struct result *rows;
    struct skipped *skipped;
    int count, skipped_count;
    bool every_strategy; /* --strategy all */
    struct dl_advice_limits limits;
};

static int strategy_count(void) {
    int count = 0;
    while (dl_strategies[count] != NULL) count++;
    return count;
}

/* No framework can run the plan: a reason that also excludes `ideal` lies in the plan, not in a
 * framework. */
static enum dl_code fail_all(const struct results *results, struct dl_err *err) {
    for (int i = 0; i < results->skipped_count; i++) {
        if (results->skipped[i].is_bound)
            return dl_fail(err, DL_ERR_USAGE, "%s", results->skipped[i].why);
    }
    return dl_fail(err, DL_ERR_USAGE, "no framework can run this, for instance: %s",
                   results->skipped[0].why);
}

static enum dl_code predict_all(struct dl_context *context, const struct dl_inputs *inputs,
                                bool terms, struct results *out, struct dl_err *err) {
    const int strategies = out->every_strategy ? strategy_count() : 1;
    const size_t most = (size_t)inputs->framework_count * inputs->node_count * (size_t)strategies;
    struct dl_inputs own = *inputs;
    out->rows = dl_arena_alloc(context->arena, most, sizeof *out->rows);
    out->skipped = dl_arena_alloc(context->arena, most, sizeof *out->skipped);
    if (out->rows == NULL || out->skipped == NULL)
        return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    /* each framework with each strategy */
    for (int f = 0; f < inputs->framework_count * strategies; f++) {
        const struct dl_framework *framework = inputs->frameworks[f / strategies];
        if (out->every_strategy) own.plan.strategy = dl_strategies[f % strategies];
        for (size_t n = 0; n < inputs->node_count; n++) {
            struct result *row = &out->rows[out->count];
            struct dl_err inner = {0};
            row->framework = framework;
            const enum dl_code code =
                dl_inputs_predict(&own, framework, inputs->nodes[n], terms, context->arena,
                                  &row->plan, &row->prediction, &inner);
            if (code == DL_OK) {
                out->count++;
            } else if (code == DL_ERR_USAGE && (inputs->framework_all || out->every_strategy) &&
                       most > 1) {
                out->skipped[out->skipped_count++] = (struct skipped){
                    framework->name, out->every_strategy ? own.plan.strategy->name : NULL,
                    dl_arena_strdup(context->arena, inner.message), inputs->nodes[n],
                    dl_framework_is_bound(framework)};
            } else {
                *err = inner;
                return code;
            }
        }
    }
    return out->count > 0 ? DL_OK : fail_all(out, err);
}

static struct dl_prediction_row row_of(const struct dl_inputs *inputs, const struct result *r) {
    return (struct dl_prediction_row){inputs->system, inputs->workload, r->framework,  &r->plan,
                                      &r->prediction, &inputs->length,  &inputs->rates};
}

/* 3: as one device; 2: retired; 1: asynchronous, lossy; 0: a bound. The highest of all wins. */
static int worth_of(const struct result *r) {
    const struct dl_framework *f = r->framework;
    if (dl_framework_is_bound(f)) return 0;
    if ((f->sync.asynchronous && r->plan.nodes > 1) || f->status == DL_LOSSY) return 1;
    return f->status == DL_MAINTAINED ? 3 : 2;
}

static const struct result *best_of(const struct results *results, int most_worth) {
    const struct result *best = NULL;
    for (int i = 0; i < results->count; i++) {
        const struct result *r = &results->rows[i];
        const int worth = worth_of(r), before = best == NULL ? -1 : worth_of(best);
        if (!r->prediction.fits || worth > most_worth || worth < before) continue;
        if (worth > before ||
            r->prediction.throughput_samples_per_s > best->prediction.throughput_samples_per_s)
            best = r;
    }
    return best;
}

/* The best framework on each number of nodes. NULL: out of memory. */
static struct dl_advice_request *advice_of(struct dl_context *context,
                                           const struct dl_inputs *inputs,
                                           const struct results *results) {
    struct dl_advice_request *q = dl_arena_alloc(context->arena, 1, sizeof *q);
    const struct result *best = best_of(results, 3);
    if (q == NULL) return NULL;
    q->count = 0;
    q->limits = results->limits;
    q->arena = context->arena;
    for (int i = 0; i < results->count && best != NULL && !results->every_strategy; i++) {
        const struct dl_prediction_row row = row_of(inputs, &results->rows[i]);
        if (row.framework == best->framework) dl_advice_add(q, &row);
    }
    return q;
}

static enum dl_code print_json(struct dl_context *context, const struct dl_options *options,
                               const struct dl_inputs *inputs, const struct results *results,
                               struct dl_err *err) {
    struct dl_json_writer w;
    dl_jw_init(&w, context->arena, false);
    dl_output_header(&w, "dlmodel-prediction");
    dl_inputs_json(context, inputs, options, &w);
    dl_jw_array(&w, "results");
    for (int i = 0; i < results->count; i++) {
        const struct dl_prediction_row row = row_of(inputs, &results->rows[i]);
        dl_rows_json_open(&w, &row);
        dl_heterogeneous_json(&w, &results->rows[i].prediction);
        DL_TRY(dl_checkpoint_json(options, &row, &w, err));
        dl_jw_end(&w);
    }
    dl_jw_end(&w);
    const struct dl_advice_request *advice = advice_of(context, inputs, results);
    if (advice == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    dl_advice_json(&w, advice);
    dl_jw_array(&w, "skipped");
    for (int i = 0; i < results->skipped_count; i++) {
        dl_jw_object(&w, NULL);
        dl_jw_string(&w, "framework", results->skipped[i].framework);
        if (results->skipped[i].strategy != NULL)
            dl_jw_string(&w, "strategy", results->skipped[i].strategy);
        dl_jw_integer(&w, "nodes", results->skipped[i].nodes);
        dl_jw_string(&w, "why", results->skipped[i].why);
        dl_jw_end(&w);
    }
    dl_jw_end(&w);
    dl_jw_end(&w);
    return context->output(options,
                           w.failed ? NULL : dl_arena_printf(context->arena, "%s\n", w.text), err);
}

/* F-TIE: frameworks on as many nodes that are not known to be slower than the best. */
static const char *ties(struct dl_context *context, const struct results *results,
                        const struct result *best) {
    struct dl_text names = {.arena = context->arena};
    int tied = 0;
    for (int i = 0; i < results->count && !results->every_strategy; i++) {
        const struct result *r = &results->rows[i];
        if (r == best || r->plan.nodes != best->plan.nodes || worth_of(r) < worth_of(best) ||
            !r->prediction.fits || !dl_prediction_ties(&r->prediction, &best->prediction))
            continue;
        if (tied++ < 3) dl_text_printf(&names, "%s%s", tied > 1 ? ", " : "", r->framework->name);
    }
    if (tied == 0) return "";
    if (tied > 3) dl_text_printf(&names, " and %d more", tied - 3);
    return dl_arena_printf(context->arena, " A tie, by the intervals, with %s.",
                           dl_text_string(&names));
}

/* Sentences on the fastest plan: its interval, its bottleneck, and the command that shows every
 * term. */
static const char *sentence(struct dl_context *context, const struct dl_options *options,
                            const struct results *results) {
    const struct result *best = best_of(results, 3);
    if (best == NULL) return "No plan fits in memory.\n";
    const struct result *loose = best_of(results, worth_of(best) - 1);
    const bool passed =
        loose != NULL && worth_of(loose) > 0 && loose->plan.nodes == best->plan.nodes &&
        loose->prediction.throughput_samples_per_s > best->prediction.throughput_samples_per_s;
    const char *faster =
        !passed
            ? ""
            : dl_arena_printf(context->arena, " (%s reaches %.0f samples/s, but %s.)",
                              loose->framework->name, loose->prediction.throughput_samples_per_s,
                              dl_reservation_text(loose->framework));
    const struct dl_prediction *p = &best->prediction;
    const double samples = p->throughput_samples_per_s;
    char low[32], high[32];
    dl_units_format(p->iteration_low_s, DL_UNIT_S, low, sizeof low);
    dl_units_format(p->iteration_high_s, DL_UNIT_S, high, sizeof high);
    return dl_arena_printf(
        context->arena,
        "%s%s%s%s on %lld node%s: %.*f samples/s; with 80 %% probability an iteration takes %s to "
        "%s. Bottleneck: %s, %.0f %% of the iteration.%s%s\n"
        "Every term: %s%s%s\n",
        results->count > 1 ? "The fastest is " : "", best->framework->name,
        results->every_strategy ? ", " : "",
        results->every_strategy ? best->plan.strategy->name : "", (long long)best->plan.nodes,
        best->plan.nodes == 1 ? "" : "s", samples < 100 ? 1 : 0, samples, low, high,
        dl_bottleneck_names[p->bottleneck], 100 * p->bottleneck_share, faster,
        ties(context, results, best),
        dl_inputs_command(context, options, "explain", best->framework, best->plan.nodes),
        results->every_strategy ? " --strategy " : "",
        results->every_strategy ? best->plan.strategy->name : "");
}

static bool said_before(const struct results *results, int row, const char *text) {
    for (int i = 0; i < row; i++) {
        for (int k = 0; k < results->rows[i].prediction.warning_count; k++) {
            if (strcmp(results->rows[i].prediction.warnings[k], text) == 0) return true;
        }
    }
    return false;
}

/* The part of the reason for an omitted framework that follows its name. */
static const char *reason_of(const struct skipped *s) {
    const size_t length = strlen(s->framework);
    return strncmp(s->why, s->framework, length) == 0
               ? s->why + length + strspn(s->why + length, ": ")
               : s->why;
}

/* Each strategy that the one framework cannot run, with its reason; for all frameworks, only
 * their number. */
static void note_strategies(struct dl_context *context, const struct results *results) {
    for (int i = 0; i < results->skipped_count; i++) {
        const struct skipped *s = &results->skipped[i];
        if (strcmp(s->framework, results->skipped[0].framework) != 0 ||
            strcmp(s->framework, results->rows[0].framework->name) != 0) {
            context->note(context,
                          "%d plans of other frameworks cannot run; --framework NAME or --json "
                          "gives the reasons",
                          results->skipped_count - i);
            return;
        }
        if (i == 0 || strcmp(s->strategy, s[-1].strategy) != 0)
            context->note(context, "not shown: %s (%s)", s->strategy, s->why);
    }
}

/* Frameworks omitted for the same reason on one line. */
static void note_skipped(struct dl_context *context, const struct results *results) {
    for (int i = 0; i < results->skipped_count; i++) {
        const struct skipped *first = &results->skipped[i];
        bool listed = false;
        for (int k = 0; k < i && !listed; k++)
            listed = strcmp(reason_of(&results->skipped[k]), reason_of(first)) == 0;
        if (listed) continue;
        const char *names = first->framework;
        for (int k = i + 1; k < results->skipped_count; k++) {
            const struct skipped *s = &results->skipped[k];
            if (strcmp(reason_of(s), reason_of(first)) != 0 ||
                strcmp(s->framework, results->skipped[k - 1].framework) == 0)
                continue;
            names = dl_arena_printf(context->arena, "%s, %s", names, s->framework);
        }
        if (first->nodes == 1)
            context->note(context, "not shown: %s (%s)", names, reason_of(first));
        else
            context->note(context, "not shown from %lld nodes on: %s (%s)", (long long)first->nodes,
                          names, reason_of(first));
    }
}

static void note_all(struct dl_context *context, const struct dl_inputs *inputs,
                     const struct results *results) {
    for (int i = 0; i < results->count; i++) {
        for (int k = 0; k < results->rows[i].prediction.warning_count; k++) {
            const char *text = results->rows[i].prediction.warnings[k];
            if (!said_before(results, i, text)) context->note(context, "warning: %s", text);
        }
    }
    if (results->every_strategy)
        note_strategies(context, results);
    else
        note_skipped(context, results);
    if (inputs->left_out > 0)
        context->note(context,
                      "not shown: %d retired, lossy or asynchronous framework%s "
                      "(--all-frameworks shows them, dlmodel list frameworks names them)",
                      inputs->left_out, inputs->left_out == 1 ? "" : "s");
}

static double samples_of(const struct result *r) { return r->plan.batch_per_device_samples; }

static const char *batch_text(struct dl_context *context, const struct dl_inputs *inputs,
                              const struct results *results) {
    const struct result *low = &results->rows[0], *high = low;
    for (int i = 1; i < results->count; i++) { /* with --batch-per-device max they differ */
        const struct result *r = &results->rows[i];
        if (samples_of(r) < samples_of(low)) low = r;
        if (samples_of(r) > samples_of(high)) high = r;
    }
    return inputs->max_batch && samples_of(low) < samples_of(high)
               ? dl_arena_printf(context->arena, "%.0f to %.0f samples per device", samples_of(low),
                                 samples_of(high))
               : dl_inputs_batch(inputs, &low->plan, context->arena);
}

/* "data parallel", or that each framework has its own. */
static const char *strategy_text(struct dl_context *context, const struct results *results) {
    const struct dl_strategy *strategy = results->rows[0].plan.strategy;
    if (results->every_strategy) return "every strategy that can run";
    for (int i = 1; i < results->count; i++) {
        if (results->rows[i].plan.strategy != strategy) return "each framework's own strategy";
    }
    return dl_arena_printf(context->arena, "%s parallel", strategy->name);
}

static const char *one_line(struct dl_context *context, const char *text) {
    return text == NULL ? ""
                        : dl_arena_printf(context->arena, "%.*s", (int)strcspn(text, "\n"), text);
}

static enum dl_code print_rows(struct dl_context *context, const struct dl_options *options,
                               const struct dl_inputs *inputs, const struct results *results,
                               enum dl_format format, struct dl_err *err) {
    struct dl_table table;
    const struct dl_prediction_row first = row_of(inputs, &results->rows[0]);
    const bool tokens = dl_known(dl_rows_throughput(&first).tokens);
    DL_TRY(dl_rows_init(
        &table, context->arena,
        (results->every_strategy ? DL_ROWS_STRATEGY : 0u) | (tokens ? DL_ROWS_TOKENS : 0u), err));
    for (int i = 0; i < results->count; i++) {
        const struct dl_prediction_row row = row_of(inputs, &results->rows[i]);
        DL_TRY(dl_rows_add(&table, &row, err));
    }
    if (format == DL_FORMAT_CSV) {
        DL_TRY(context->output(options, dl_table_csv(&table), err));
        context->note(context, "%s", one_line(context, sentence(context, options, results)));
        return DL_OK;
    }
    const struct dl_plan *plan = &results->rows[0].plan;
    const char *measured =
        inputs->system->measured_on == NULL
            ? ""
            : dl_arena_printf(context->arena, ", calibrated %s on %s", inputs->system->measured_at,
                              inputs->system->measured_on);
    const char *text = dl_table_text(&table);
    const struct result *best = best_of(results, 3);
    if (text != NULL && inputs->heterogeneous != NULL) {
        const char *groups = dl_heterogeneous_text(
            context->arena, &(best != NULL ? best : &results->rows[0])->prediction);
        text = groups == NULL ? NULL : dl_arena_printf(context->arena, "%s%s", text, groups);
    }
    const struct dl_prediction_row shown = row_of(inputs, best != NULL ? best : &results->rows[0]);
    const char *checkpoint, *length = dl_rows_length_text(&shown, context->arena),
                            *stages = dl_rows_stages_text(shown.prediction, context->arena),
                            *spending = dl_spending_text(&shown, context->arena);
    const struct dl_advice_request *q = advice_of(context, inputs, results);
    const char *advice = q == NULL ? NULL : dl_advice_text(q);
    DL_TRY(dl_checkpoint_text(context, options, &shown, &checkpoint, err));
    return context->output(
        options,
        text == NULL || length == NULL || stages == NULL || spending == NULL || advice == NULL
            ? NULL
            : dl_arena_printf(context->arena, "%s %s, %s, %s, on %s (%s%s)\n\n%s\n%s%s%s%s%s%s",
                              inputs->workload->name, dl_precision_names[plan->precision],
                              strategy_text(context, results), batch_text(context, inputs, results),
                              inputs->system->name,
                              inputs->heterogeneous != NULL ? "several devices"
                                                            : inputs->system->device->name,
                              measured, text, sentence(context, options, results), stages, length,
                              spending, checkpoint, advice),
        err);
}

static enum dl_code write_trace(const char *path, const struct dl_inputs *inputs,
                                const struct results *results, struct dl_arena *arena,
                                struct dl_err *err) {
    if (results->count != 1) {
        return dl_fail(
            err, DL_ERR_USAGE,
            "--trace writes one timeline: give one --framework and one number of --nodes");
    }
    const struct dl_prediction_row row = row_of(inputs, &results->rows[0]);
    return dl_trace_write(path, &row, arena, err);
}

/* The one plan in a framework's words. */
static enum dl_code print_export(struct dl_context *context, const struct dl_options *options,
                                 const struct dl_inputs *inputs, const struct results *results,
                                 const char *format, struct dl_err *err) {
    const char *text;
    if (results->count != 1 || inputs->heterogeneous != NULL)
        return dl_fail(err, DL_ERR_USAGE,
                       "--export prints one plan: give one --framework and one number of --nodes");
    const struct dl_prediction_row row = row_of(inputs, &results->rows[0]);
    const struct dl_export_request request = {.row = &row, .arena = context->arena};
    DL_TRY(dl_export_write(format, &request, &text, err));
    return context->output(options, text, err);
}

static enum dl_code run(struct dl_context *context, const struct dl_options *options,
                        struct dl_err *err) {
    enum dl_format format = DL_FORMAT_TEXT;
    struct dl_inputs inputs;
    const char *strategy = dl_option_text(options, "strategy");
    struct results results = {.every_strategy = strategy != NULL && strcmp(strategy, "all") == 0};
    const struct dl_options without =
        results.every_strategy ? dl_options_without(options, "strategy") : *options;
    options = &without;
    struct asked asked = {.trace = NULL};
    DL_TRY(dl_options_bind(options, predict_options, &asked, err));
    DL_TRY(dl_output_format(options, &format, err));
    DL_TRY(dl_inputs_load(context, options, &inputs, err));
    DL_TRY(dl_rates_read(options, context->arena, &inputs.rates, err));
    DL_TRY(dl_limits_read(options, &inputs, context->arena, &results.limits, err));
    DL_TRY(predict_all(context, &inputs, asked.trace != NULL, &results, err));
    if (asked.trace != NULL)
        DL_TRY(write_trace(asked.trace, &inputs, &results, context->arena, err));
    dl_inputs_note_files(context, &inputs);
    if (asked.export != NULL)
        DL_TRY(print_export(context, options, &inputs, &results, asked.export, err));
    else if (format == DL_FORMAT_JSON)
        DL_TRY(print_json(context, options, &inputs, &results, err));
    else
        DL_TRY(print_rows(context, options, &inputs, &results, format, err));
    note_all(context, &inputs, &results);
    DL_TRY(dl_what_if_note(context, options, &inputs, NULL, err));
    bool any_fits = false, extrapolated = false;
    for (int i = 0; i < results.count; i++) {
        any_fits = any_fits || results.rows[i].prediction.fits;
        extrapolated = extrapolated || results.rows[i].prediction.extrapolated;
    }
    if (inputs.strict && extrapolated)
        return dl_fail(err, DL_ERR_RANGE, "a result is extrapolated (--strict)");
    if (!any_fits)
        return dl_fail(err, DL_ERR_NO,
                       "no plan fits in memory; the largest batch per device that fits is %.0f",
                       results.rows[0].prediction.max_batch_samples);
    return DL_OK;
}

const struct dl_command dl_cmd_predict = {
    .name = "predict",
    .summary = "predict time per iteration and epoch, its parts, and memory",
    .usage = "[options]",
    .purpose = "Predicts training of a workload on a system, in one row per framework and number "
               "of nodes: compute time, communication time and its exposed part, iteration time "
               "with an 80 % interval, samples per second, weak-scaling efficiency, memory of one "
               "device, and the bottleneck with its share of the iteration.",
    .examples = examples,
    .options = tables,
    .exit_notes = "1 when no plan fits in memory, 4 with --strict when a result "
                  "is extrapolated",
    .run = run,
};
