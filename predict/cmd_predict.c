/* cmd_predict.c - how long an iteration and an epoch take, where the time goes, does it fit in memory? */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "predict/inputs.h"
#include "predict/rows.h"

static const struct dl_option *const tables[] = {dl_input_options, dl_output_options, NULL};
static const char *const examples[] = {
    "dlmodel predict --nodes 16",
    "dlmodel predict --system iris-v100 --workload vgg16 --framework horovod-tensorflow --nodes 1-16*2 --json",
    "dlmodel predict --system dgx1-v100 --workload resnet50 --precision mixed --batch-per-device 256 --set links.intra.bandwidth=50GB/s",
    NULL,
};

struct result {
    struct dl_plan plan;
    struct dl_prediction prediction;
    const struct dl_framework *framework;
};
struct skipped { const char *framework, *why; int64_t nodes; };

struct results {
    struct result *rows;
    struct skipped *skipped;
    int count, skipped_count;
};

static enum dl_code predict_all(struct dl_context *context, const struct dl_inputs *inputs, struct results *out,
                                struct dl_err *err) {
    const size_t most = (size_t)inputs->framework_count * inputs->node_count;
    out->rows = dl_arena_alloc(context->arena, most, sizeof *out->rows);
    out->skipped = dl_arena_alloc(context->arena, most, sizeof *out->skipped);
    if (out->rows == NULL || out->skipped == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    for (int f = 0; f < inputs->framework_count; f++) {
        for (size_t n = 0; n < inputs->node_count; n++) {
            struct result *row = &out->rows[out->count];
            struct dl_err inner = {0};
            row->framework = inputs->frameworks[f];
            const enum dl_code code = dl_inputs_predict(inputs, inputs->frameworks[f], inputs->nodes[n], false, context->arena,
                                                        &row->plan, &row->prediction, &inner);
            if (code == DL_OK) {
                out->count++;
            } else if (code == DL_ERR_USAGE && inputs->framework_all && most > 1) {
                out->skipped[out->skipped_count++] = (struct skipped){inputs->frameworks[f]->name,
                    dl_arena_strdup(context->arena, inner.message), inputs->nodes[n]};
            } else {
                *err = inner;
                return code;
            }
        }
    }
    if (out->count == 0) {
        return dl_fail(err, DL_ERR_USAGE, "no framework can run this: %s: %s", out->skipped[0].framework, out->skipped[0].why);
    }
    return DL_OK;
}

static struct dl_prediction_row row_of(const struct dl_inputs *inputs, const struct result *r) {
    return (struct dl_prediction_row){inputs->system, inputs->workload, r->framework, &r->plan, &r->prediction};
}

static enum dl_code print_json(struct dl_context *context, const struct dl_options *options, const struct dl_inputs *inputs,
                               const struct results *results, struct dl_err *err) {
    struct dl_json_writer w;
    dl_jw_init(&w, context->arena, false);
    dl_output_header(&w, "dlmodel-prediction");
    dl_inputs_json(inputs, options, &w);
    dl_jw_array(&w, "results");
    for (int i = 0; i < results->count; i++) {
        const struct dl_prediction_row row = row_of(inputs, &results->rows[i]);
        dl_rows_json(&w, &row);
    }
    dl_jw_end(&w);
    dl_jw_array(&w, "skipped");
    for (int i = 0; i < results->skipped_count; i++) {
        dl_jw_object(&w, NULL);
        dl_jw_string(&w, "framework", results->skipped[i].framework);
        dl_jw_integer(&w, "nodes", results->skipped[i].nodes);
        dl_jw_string(&w, "why", results->skipped[i].why);
        dl_jw_end(&w);
    }
    dl_jw_end(&w);
    dl_jw_end(&w);
    return context->output(options, w.failed ? NULL : dl_arena_printf(context->arena, "%s\n", w.text), err);
}

/* One plain sentence: the fastest, what limits it, and the first thing to look at. */
static const char *sentence(struct dl_context *context, const struct dl_inputs *inputs, const struct results *results) {
    const struct result *best = &results->rows[0];
    for (int i = 1; i < results->count; i++) {
        const struct result *r = &results->rows[i];
        if (strcmp(r->framework->name, "ideal") == 0) continue;
        const bool worse = strcmp(best->framework->name, "ideal") != 0 &&
                           r->prediction.throughput_samples_per_s <= best->prediction.throughput_samples_per_s;
        if (!worse) best = r;
    }
    const struct dl_prediction *p = &best->prediction;
    char low[32], high[32];
    dl_units_format(p->iteration_low_s, DL_UNIT_S, low, sizeof low);
    dl_units_format(p->iteration_high_s, DL_UNIT_S, high, sizeof high);
    return dl_arena_printf(context->arena,
                           "Fastest: %s on %lld nodes, %.4g samples/s (an iteration takes %s to %s with 80 %% probability); "
                           "%s takes %.0f %% of its iteration.\nEvery term: dlmodel explain --system %s --workload %s --framework "
                           "%s --nodes %lld\n",
                           best->framework->name, (long long)best->plan.nodes, p->throughput_samples_per_s, low, high,
                           dl_bottleneck_names[p->bottleneck], 100 * p->bottleneck_share, inputs->system_name,
                           inputs->workload_name, best->framework->name, (long long)best->plan.nodes);
}

static bool said_before(const struct results *results, int row, const char *text) {
    for (int i = 0; i < row; i++) {
        for (int k = 0; k < results->rows[i].prediction.warning_count; k++) {
            if (strcmp(results->rows[i].prediction.warnings[k], text) == 0) return true;
        }
    }
    return false;
}

static void note_all(struct dl_context *context, const struct results *results) {
    for (int i = 0; i < results->count; i++) {
        for (int k = 0; k < results->rows[i].prediction.warning_count; k++) {
            const char *text = results->rows[i].prediction.warnings[k];
            if (!said_before(results, i, text)) context->note(context, "warning: %s", text);
        }
    }
    for (int i = 0; i < results->skipped_count; i++) {
        const struct skipped *s = &results->skipped[i];
        if (i > 0 && strcmp(results->skipped[i - 1].framework, s->framework) == 0) continue;
        context->note(context, "skipped: %s (from %lld nodes)", s->why, (long long)s->nodes);
    }
}

static enum dl_code print_rows(struct dl_context *context, const struct dl_options *options, const struct dl_inputs *inputs,
                               const struct results *results, enum dl_format format, struct dl_err *err) {
    struct dl_table table;
    dl_rows_init(&table, context->arena);
    for (int i = 0; i < results->count; i++) {
        const struct dl_prediction_row row = row_of(inputs, &results->rows[i]);
        DL_TRY(dl_rows_add(&table, &row, err));
    }
    if (format == DL_FORMAT_CSV) return context->output(options, dl_table_csv(&table), err);
    const struct dl_plan *plan = &results->rows[0].plan;
    const char *measured = inputs->system->measured_on == NULL ? "" :
        dl_arena_printf(context->arena, ", calibrated %s on %s", inputs->system->measured_at, inputs->system->measured_on);
    const char *batch = inputs->plan.global_batch_samples > 0
        ? dl_arena_printf(context->arena, "%g samples in all", plan->global_batch_samples)
        : dl_arena_printf(context->arena, "%g samples per device", plan->batch_per_device_samples);
    const char *text = dl_table_text(&table);
    return context->output(options, text == NULL ? NULL :
        dl_arena_printf(context->arena, "%s %s, %s parallel, %s, on %s (%s%s)\n\n%s\n%s", inputs->workload->name,
                        dl_precision_names[plan->precision], plan->strategy->name, batch, inputs->system->name,
                        inputs->system->device->name, measured, text, sentence(context, inputs, results)), err);
}

static enum dl_code run(struct dl_context *context, const struct dl_options *options, struct dl_err *err) {
    enum dl_format format = DL_FORMAT_TEXT;
    struct dl_inputs inputs;
    struct results results = {0};
    DL_TRY(dl_output_format(options, &format, err));
    DL_TRY(dl_inputs_load(context, options, &inputs, err));
    DL_TRY(predict_all(context, &inputs, &results, err));
    if (format == DL_FORMAT_JSON) DL_TRY(print_json(context, options, &inputs, &results, err));
    else DL_TRY(print_rows(context, options, &inputs, &results, format, err));
    note_all(context, &results);
    bool any_fits = false, extrapolated = false;
    for (int i = 0; i < results.count; i++) {
        any_fits = any_fits || results.rows[i].prediction.fits;
        extrapolated = extrapolated || results.rows[i].prediction.extrapolated;
    }
    if (inputs.strict && extrapolated) return dl_fail(err, DL_ERR_RANGE, "a result is extrapolated (--strict)");
    if (!any_fits) return dl_fail(err, DL_ERR_NO, "nothing fits in memory; the largest batch per device that does is %.0f",
                                  results.rows[0].prediction.max_batch_samples);
    return DL_OK;
}

const struct dl_command dl_cmd_predict = {
    .name = "predict",
    .summary = "time of an iteration and an epoch, where it goes, memory",
    .usage = "[options]",
    .purpose = "Predicts training of a workload on a system, one row for each framework and number of nodes: compute, "
               "communication and how much of it is exposed, iteration with its 80 % interval, samples per second, weak-scaling "
               "efficiency, memory of one device, and the bottleneck with its share of the iteration.",
    .examples = examples,
    .options = tables,
    .exit_notes = "1 when nothing that was asked for fits in memory, 4 with --strict when a result is extrapolated",
    .run = run,
};
