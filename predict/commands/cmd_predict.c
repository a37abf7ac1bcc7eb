/* cmd_predict.c - how long do an iteration and an epoch take, where does the time go, and does
 * the plan fit in memory? */
#include <stdio.h>
#include <string.h>

#include "model/core/text.h"
#include "model/engine/strategies/strategy.h"
#include "predict/export/export.h"
#include "predict/output/checkpoint_inputs.h"
#include "predict/inputs/inputs.h"
#include "predict/inputs/heterogeneous_inputs.h"
#include "predict/output/what_if_note.h"
#include "predict/inputs/rates.h"
#include "predict/output/advice_print.h"
#include "predict/output/gains.h"
#include "predict/output/best_of_each.h"
#include "predict/output/predicted.h"
#include "predict/output/chakra.h"
#include "predict/output/snapshot.h"
#include "predict/output/trace.h"

struct asked {
    const char *trace, *export;
    bool rows;
};
#define ASKED(member) struct asked, member

static const struct dl_option predict_options[] = {
    {"long", 0, NULL, "Output", "print every row with all columns, also plans that do not fit",
     DL_FLAG(ASKED(rows))},
    {"trace", 0, "FILE", "Output",
     "write the timeline of the iteration to FILE: for Perfetto and chrome://tracing, or, where "
     "its name ends in .et, a rank's execution trace of Chakra, which ASTRA-sim reads (of a "
     "pipeline NAME.0.et, NAME.1.et, ...: a rank of each stage), and in .pickle memory as a "
     "snapshot of PyTorch's allocator (pytorch.org/memory_viz)",
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

static int strategy_count(void) {
    int count = 0;
    while (dl_strategies[count] != NULL) count++;
    return count;
}

/* No framework can run the plan: a reason that also excludes `ideal` lies in the plan, not in a
 * framework. */
static enum dl_code fail_all(const struct dl_predicted *results, enum dl_code code,
                             struct dl_err *err) {
    if (results->inputs->framework_count == 1 && !results->every_strategy)
        return dl_fail(err, code, "%s", results->skipped[0].why);
    for (int i = 0; i < results->skipped_count; i++) {
        if (results->skipped[i].is_bound)
            return dl_fail(err, DL_ERR_USAGE, "%s", results->skipped[i].why);
    }
    return dl_fail(err, DL_ERR_USAGE, "no framework can run this, for instance: %s",
                   results->skipped[0].why);
}

static enum dl_code predict_all(struct dl_context *context, const struct dl_inputs *inputs,
                                bool terms, struct dl_predicted *out, struct dl_err *err) {
    const int strategies = out->every_strategy ? strategy_count() : 1;
    const size_t most = (size_t)inputs->framework_count * inputs->node_count * (size_t)strategies;
    struct dl_inputs own = *inputs;
    enum dl_code refusal = DL_OK; /* the first */
    out->rows = dl_arena_alloc(context->arena, most, sizeof *out->rows);
    out->skipped = dl_arena_alloc(context->arena, most, sizeof *out->skipped);
    /* each framework with each strategy */
    for (int f = 0; f < inputs->framework_count * strategies; f++) {
        const struct dl_framework *framework = inputs->frameworks[f / strategies];
        if (out->every_strategy) own.plan.strategy = dl_strategies[f % strategies];
        for (size_t n = 0; n < inputs->node_count; n++) {
            struct dl_predicted_row *row = &out->rows[out->count];
            struct dl_err inner = {0};
            row->framework = framework;
            const enum dl_code code = dl_inputs_predict(
                &(struct dl_inputs_case){&own, framework, inputs->nodes[n], terms}, context->arena,
                &row->plan, &row->prediction, &inner);
            if (code == DL_OK) {
                out->count++;
            } else if ((code == DL_ERR_USAGE || code == DL_ERR_NO) && most > 1) {
                if (refusal == DL_OK) refusal = code;
                out->skipped[out->skipped_count++] = (struct dl_predicted_skip){
                    framework->name, out->every_strategy ? own.plan.strategy->name : NULL,
                    dl_arena_strdup(context->arena, inner.message), inputs->nodes[n],
                    dl_framework_is_bound(framework)};
            } else {
                *err = inner;
                return code;
            }
        }
    }
    return out->count > 0 ? DL_OK : fail_all(out, refusal, err);
}

/* The best framework on each number of nodes. */
static struct dl_advice_request *advice_of(struct dl_context *context,
                                           const struct dl_predicted *results) {
    struct dl_advice_request *q = dl_arena_alloc(context->arena, 1, sizeof *q);
    const struct dl_predicted_row *best = dl_recommend(results);
    q->count = 0;
    q->limits = results->limits;
    q->arena = context->arena;
    for (int i = 0; i < results->count && best != NULL && !results->every_strategy; i++) {
        const struct dl_prediction_row row =
            dl_predicted_row_of(results->inputs, &results->rows[i]);
        if (row.framework == best->framework) dl_advice_add(q, &row);
    }
    return q;
}

static enum dl_code print_json(struct dl_context *context, const struct dl_options *options,
                               const struct dl_inputs *inputs, const struct dl_predicted *results,
                               struct dl_err *err) {
    struct dl_json_writer w;
    dl_jw_init(&w, context->arena, false);
    dl_output_header(&w, "dlmodel-prediction");
    dl_inputs_json(context, inputs, options, &w);
    dl_jw_array(&w, "results");
    for (int i = 0; i < results->count; i++) {
        const struct dl_prediction_row row =
            dl_predicted_row_of(results->inputs, &results->rows[i]);
        dl_rows_json_open(&w, &row);
        dl_heterogeneous_json(&w, &results->rows[i].prediction);
        DL_TRY(dl_checkpoint_json(context, options, &row, &w, err));
        dl_jw_end(&w);
    }
    dl_jw_end(&w);
    const struct dl_advice_request *advice = advice_of(context, results);
    const struct dl_predicted_row *best = dl_recommend(results);
    struct dl_gains gains = {.count = 0};
    if (best != NULL) {
        const struct dl_prediction_row row = dl_predicted_row_of(results->inputs, best);
        DL_TRY(dl_gains_find(&row, inputs->memo, context->arena, &gains, err));
    }
    dl_recommend_json(&w, results, &gains);
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
    return context->output(options, dl_jw_text(&w), err);
}

static double samples_of(const struct dl_predicted_row *r) {
    return r->plan.batch_per_device_samples;
}

static const char *batch_text(struct dl_context *context, const struct dl_inputs *inputs,
                              const struct dl_predicted *results) {
    const struct dl_predicted_row *low = &results->rows[0], *high = low;
    for (int i = 1; i < results->count; i++) { /* with --batch-per-device max they differ */
        const struct dl_predicted_row *r = &results->rows[i];
        if (samples_of(r) < samples_of(low)) low = r;
        if (samples_of(r) > samples_of(high)) high = r;
    }
    return inputs->max_batch && samples_of(low) < samples_of(high)
               ? dl_arena_printf(context->arena, "%.0f to %.0f samples per device", samples_of(low),
                                 samples_of(high))
               : dl_inputs_batch(inputs, &low->plan, context->arena);
}

/* "data parallel", or that each framework has its own. */
static const char *strategy_text(struct dl_context *context, const struct dl_predicted *results) {
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

/* "resnet50 bf16 (this device's default), data parallel, 32 samples per device, on ..." */
static const char *heading(struct dl_context *context, const struct dl_predicted *results) {
    const struct dl_inputs *inputs = results->inputs;
    const struct dl_plan *plan = &results->rows[0].plan;
    const char *measured = inputs->system->calibration.measured_on == NULL
                               ? ""
                               : dl_arena_printf(context->arena, ", calibrated %s on %s",
                                                 inputs->system->calibration.measured_at,
                                                 inputs->system->calibration.measured_on);
    return dl_arena_printf(
        context->arena, "%s %s%s, %s, %s, on %s (%s%s)\n\n", inputs->workload->name,
        dl_precision_names[plan->precision],
        !inputs->given.plan.precision && plan->precision != DL_FP32 ? " (this device's default)"
                                                                    : "",
        strategy_text(context, results), batch_text(context, inputs, results), inputs->system->name,
        inputs->heterogeneous != NULL ? "several devices" : inputs->system->device->name, measured);
}

static enum dl_code print_text(struct dl_context *context, const struct dl_options *options,
                               const struct dl_predicted *results, bool every_row,
                               struct dl_err *err) {
    const struct dl_inputs *inputs = results->inputs;
    const struct dl_predicted_row *best = dl_recommend(results);
    const struct dl_prediction_row shown =
        dl_predicted_row_of(results->inputs, best != NULL ? best : &results->rows[0]);
    const bool matrix = !every_row && !results->every_strategy && inputs->node_count > 1 &&
                        inputs->framework_count > 1 && inputs->heterogeneous == NULL;
    const struct dl_advice_request *q = advice_of(context, results);
    struct dl_text text = {.arena = context->arena};
    const char *rows, *checkpoint;
    struct dl_gains gains;
    rows = matrix ? dl_predicted_matrix(context, results)
                  : dl_predicted_table(context, results, DL_FORMAT_TEXT, every_row);
    DL_TRY(dl_checkpoint_text(context, options, &shown, &checkpoint, err));
    DL_TRY(dl_gains_find(&shown, inputs->memo, context->arena, &gains, err));
    dl_text_add(&text, dl_recommend_text(context->arena, results));
    dl_text_add(&text, "\n");
    dl_text_add(&text, heading(context, results));
    dl_text_add(&text, rows);
    if (inputs->heterogeneous != NULL)
        dl_text_add(&text, dl_heterogeneous_text(context->arena, shown.prediction));
    dl_text_add(&text, "\n");
    dl_text_add(&text, dl_gains_text(&shown, &gains, context->arena));
    if (matrix) dl_text_add(&text, dl_rows_plan_text(&shown, context->arena));
    dl_text_add(&text, dl_rows_stages_text(shown.prediction, context->arena));
    dl_text_add(&text, dl_rows_length_text(&shown, context->arena));
    dl_text_add(&text, dl_spending_text(&shown, context->arena));
    dl_text_add(&text, checkpoint);
    dl_text_add(&text, dl_advice_text(q));
    dl_text_add(&text, dl_recommend_command(context, options, results));
    return context->output(options, dl_text_string(&text), err);
}

static enum dl_code print_csv(struct dl_context *context, const struct dl_options *options,
                              const struct dl_predicted *results, struct dl_err *err) {
    DL_TRY(
        context->output(options, dl_predicted_table(context, results, DL_FORMAT_CSV, true), err));
    context->note(context, "%s", one_line(context, dl_recommend_text(context->arena, results)));
    return DL_OK;
}

static enum dl_code write_trace(const char *path, const struct dl_predicted *results,
                                struct dl_arena *arena, struct dl_err *err) {
    if (results->count != 1) {
        return dl_fail(
            err, DL_ERR_USAGE,
            "--trace writes one timeline: give one --framework and one number of --nodes");
    }
    const struct dl_prediction_row row = dl_predicted_row_of(results->inputs, &results->rows[0]);
    return dl_ends_in(path, ".et")       ? dl_chakra_write(path, &row, arena, err)
           : dl_ends_in(path, ".pickle") ? dl_snapshot_write(path, &row, arena, err)
                                         : dl_trace_write(path, &row, arena, err);
}

/* The one plan in a framework's words. */
static enum dl_code print_export(struct dl_context *context, const struct dl_options *options,
                                 const struct dl_inputs *inputs, const struct dl_predicted *results,
                                 const char *format, struct dl_err *err) {
    const char *text;
    if (results->count != 1 || inputs->heterogeneous != NULL)
        return dl_fail(err, DL_ERR_USAGE,
                       "--export prints one plan: give one --framework and one number of --nodes");
    const struct dl_prediction_row row = dl_predicted_row_of(results->inputs, &results->rows[0]);
    struct dl_export_request request = {.row = &row, .arena = context->arena};
    const struct dl_export *found = dl_export_find(format);
    if (found != NULL && found->framework != NULL)
        DL_TRY(dl_data_framework(&context->data, found->framework, context->arena, &request.target,
                                 err));
    DL_TRY(dl_export_write(format, &request, &text, err));
    return context->output(options, text, err);
}

static enum dl_code load(struct dl_context *context, const struct dl_options *options,
                         struct dl_inputs *inputs, struct dl_predicted *results,
                         struct dl_err *err) {
    struct dl_cost_memo *memo = dl_arena_alloc(context->arena, 1, sizeof *memo);
    DL_TRY(dl_inputs_load(context, options, inputs, err));
    DL_TRY(dl_rates_read(options, context->arena, &inputs->rates, err));
    DL_TRY(dl_limits_read(options, inputs, context->arena, &results->limits, err));
    memo->arena = context->arena;
    inputs->memo = context->memo != NULL ? context->memo : memo;
    results->inputs = inputs;
    return DL_OK;
}

/* On one system of a list: the recommended row. */
static enum dl_code find_best(struct dl_context *context, const struct dl_options *options,
                              struct dl_best *out, struct dl_err *err) {
    struct dl_inputs *inputs = dl_arena_alloc(context->arena, 1, sizeof *inputs);
    struct dl_predicted results = {.count = 0};
    DL_TRY(load(context, options, inputs, &results, err));
    DL_TRY(predict_all(context, inputs, false, &results, err));
    const struct dl_predicted_row *best = dl_recommend(&results);
    if (best == NULL) return dl_fail(err, DL_ERR_NO, "no plan fits in memory");
    const char *words = dl_rows_plan_words(&best->plan, context->arena);
    *out = (struct dl_best){.system = inputs->system->name,
                            .framework = best->framework->name,
                            .precision = dl_precision_names[best->plan.precision],
                            .plan = words != NULL ? words : best->plan.strategy->name,
                            .command = dl_inputs_command(context, options, "predict",
                                                         best->framework, best->plan.nodes),
                            .prediction = &best->prediction,
                            .devices = best->plan.nodes * best->plan.devices_per_node};
    return DL_OK;
}

/* A list of systems: a line for each. */
static enum dl_code run_list(struct dl_context *context, const struct dl_options *options,
                             struct dl_err *err) {
    const char *single = dl_option_first(options, "trace export strategy heterogeneous");
    if (single != NULL) return dl_fail(err, DL_ERR_USAGE, "--%s: for one system at a time", single);
    return dl_best_of_each(context, options, find_best, false, err);
}

static enum dl_code run(struct dl_context *context, const struct dl_options *options,
                        struct dl_err *err) {
    enum dl_format format = DL_FORMAT_TEXT;
    struct dl_inputs inputs;
    if (dl_best_is_list(options, "system")) return run_list(context, options, err);
    const char *strategy = dl_option_text(options, "strategy");
    struct dl_predicted results = {.every_strategy =
                                       strategy != NULL && strcmp(strategy, "all") == 0};
    const struct dl_options without =
        results.every_strategy ? dl_options_without(options, "strategy") : *options;
    options = &without;
    struct asked asked = {.trace = NULL};
    DL_TRY(dl_options_bind(options, predict_options, &asked, err));
    DL_TRY(dl_output_format(options, &format, err));
    DL_TRY(load(context, options, &inputs, &results, err));
    DL_TRY(predict_all(context, &inputs, asked.trace != NULL, &results, err));
    if (asked.trace != NULL) DL_TRY(write_trace(asked.trace, &results, context->arena, err));
    dl_inputs_note_files(context, &inputs);
    if (asked.export != NULL)
        DL_TRY(print_export(context, options, &inputs, &results, asked.export, err));
    else if (format == DL_FORMAT_JSON)
        DL_TRY(print_json(context, options, &inputs, &results, err));
    else if (format == DL_FORMAT_LATEX)
        DL_TRY(context->output(options, dl_predicted_table(context, &results, format, asked.rows),
                               err));
    else if (format == DL_FORMAT_CSV)
        DL_TRY(print_csv(context, options, &results, err));
    else
        DL_TRY(print_text(context, options, &results, asked.rows, err));
    dl_predicted_note_warnings(context, &results);
    dl_predicted_note_skipped(context, &results);
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
               "device, and the bottleneck with its share of the iteration. With a list of systems "
               "(-s A,B): the best row of each.",
    .examples = examples,
    .options = tables,
    .common = DL_COMMON_INPUTS "tokens epochs price long json help",
    .instead =
        "For the best plan use search, for changes to a job that runs already advise, for a choice "
        "of machines match, for every term of one row explain, for many small trainings campaign.",
    .exit_notes = "1 when no plan fits in memory, 4 with --strict when a result "
                  "is extrapolated",
    .latex = true,
    .few_notes = true,
    .run = run,
};
