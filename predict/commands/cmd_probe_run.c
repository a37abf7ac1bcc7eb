/* cmd_probe_run.c - which short runs would make the prediction of a long one surer? Prints a job
 * script. */
#include <string.h>

#include "model/core/columns.h"
#include "model/core/text.h"
#include "predict/inputs/probe_runs.h"
#include "predict/output/rows.h"

static const struct dl_option *const tables[] = {dl_input_options, dl_output_options, NULL};
static const char *const examples[] = {
    "dlmodel probe-run --system iris-v100 --workload resnet50 --framework pytorch-ddp "
    "--precision mixed --nodes 16",
    "dlmodel probe-run --system dgx-h100 --workload gpt2_xl --framework pytorch-fsdp2 --nodes 8 "
    "--json",
    NULL,
};

struct shown {
    int64_t nodes, devices_per_node;
    double samples, iteration_s, duration_s, device_time_s, alone_ratio;
    bool chosen;
};
#define SHOWN(member, key, heading, unit, scale)                                                   \
    DL_SHOWN(struct shown, member, key, heading, unit, scale, 3, 0, NULL)
static const struct dl_list_column columns[] = {
    SHOWN(nodes, "nodes", "nodes", "", 0),
    SHOWN(devices_per_node, "devices_per_node", "dev", "", 0),
    SHOWN(samples, "batch_per_device_samples", "batch", "", 1),
    SHOWN(iteration_s, "iteration_s", "iter", "ms", 1e-3),
    SHOWN(duration_s, "duration_s", "job", "s", 1),
    SHOWN(device_time_s, "device_time_s", "device time", "s", 1),
    SHOWN(alone_ratio, "interval_end_ratio", "interval end", "", 1),
    SHOWN(chosen, "chosen", "chosen", "", 0),
};

static bool is_chosen(const struct dl_probe_choice *c, const struct dl_probe_run *run) {
    for (int i = 0; i < c->count; i++)
        if (memcmp(&c->runs[i].plan, &run->plan, sizeof run->plan) == 0) return true;
    return false;
}

static void fill(const struct dl_probe_choice *c, struct dl_arena *arena, struct dl_table *table) {
    dl_list_table(table, arena, DL_LIST(columns), 0);
    for (int i = 0; i < c->candidate_count; i++) {
        const struct dl_probe_run *run = &c->candidates[i];
        const struct shown shown = {.nodes = run->plan.nodes,
                                    .devices_per_node = run->plan.devices_per_node,
                                    .samples = run->as_measured.what.batch_per_device_samples,
                                    .iteration_s = run->iteration_s,
                                    .duration_s = run->duration_s,
                                    .device_time_s = run->device_time_s,
                                    .alone_ratio = run->alone_ratio,
                                    .chosen = is_chosen(c, run)};
        dl_list_add(table, columns, &shown);
    }
}

static double device_hours(const struct dl_probe_choice *c) {
    double sum_s = 0;
    for (int i = 0; i < c->count; i++) sum_s += c->runs[i].device_time_s;
    return sum_s / 3600;
}

static double percent(double end_ratio) { return 100 * (end_ratio - 1); }

/* A job for each run; the framework's own launcher starts it. */
static void add_runs(const struct dl_inputs *inputs, const struct dl_probe_choice *c,
                     struct dl_arena *arena, struct dl_text *text) {
    const char *optimizer = dl_optimizer_names[c->plan.optimizer];
    for (int i = 0; i < c->count; i++) {
        const struct dl_plan *plan = &c->runs[i].plan;
        dl_text_printf(
            text,
            "# %.0f s on %lld device%s; this run alone: %+.0f %%\n"
            "dlmodel slurm submit --framework %s --workload %s --nodes %lld --devices-per-node "
            "%lld \\\n    --batch-per-device %.0f --precision %s --optimizer %s --warmup %d "
            "--steps "
            "%d \\\n    --dir probe-runs \"$@\"\n",
            c->runs[i].duration_s, (long long)(plan->nodes * plan->devices_per_node),
            plan->nodes * plan->devices_per_node == 1 ? "" : "s", percent(c->runs[i].alone_ratio),
            dl_shell_quote(arena, inputs->frameworks[0]->name),
            dl_shell_quote(arena, inputs->words.workload), (long long)plan->nodes,
            (long long)plan->devices_per_node, c->runs[i].as_measured.what.batch_per_device_samples,
            dl_precision_names[plan->precision], optimizer, DL_PROBE_WARMUP, DL_PROBE_STEPS);
    }
}

/* A table to fill in: no program of 'dlmodel slurm' runs this plan. */
static void add_table(const struct dl_inputs *inputs, const struct dl_probe_choice *c,
                      struct dl_text *text) {
    dl_text_add(text,
                "# 'dlmodel slurm' has no program for this plan: run these yourself, and write the "
                "samples/s that you measure\n# at the ends of the lines.\ncat > probe.csv "
                "<<'END_OF_TABLE'\nid,source,system,framework,workload,precision,optimizer,nodes,"
                "devices_per_node,global_batch,"
                "micro_batch,tp,pp,cp,ep,sequence_parallel,zero,recompute,metric,value\n");
    for (int i = 0; i < c->count; i++) {
        const struct dl_plan *plan = &c->runs[i].plan;
        const double devices = (double)(plan->nodes * plan->devices_per_node);
        dl_text_printf(
            text,
            "probe%d,mine,\"%s\",\"%s\",\"%s\",%s,%s,%lld,%lld,%.0f,%.0f,%lld,%lld,%lld,"
            "%lld,%d,%d,%s,throughput,\n",
            i + 1, inputs->words.system, inputs->frameworks[0]->name, inputs->words.workload,
            dl_precision_names[plan->precision], dl_optimizer_names[plan->optimizer],
            (long long)plan->nodes, (long long)plan->devices_per_node,
            devices * c->runs[i].as_measured.what.batch_per_device_samples,
            plan->micro_batch_samples, (long long)plan->tp, (long long)plan->pp,
            (long long)plan->sp, (long long)dl_plan_expert_ranks(plan), plan->sequence_parallel,
            (int)dl_rows_zero(plan), dl_recompute_names[plan->recompute]);
    }
    dl_text_add(text, "END_OF_TABLE\n# When the values are there:\n");
}

static const char *script(struct dl_context *context, const struct dl_options *options,
                          const struct dl_inputs *inputs, const struct dl_probe_choice *c) {
    struct dl_text text = {.arena = context->arena};
    const struct dl_framework *framework = inputs->frameworks[0];
    dl_text_printf(&text,
                   "#!/bin/sh\n# Runs that narrow a prediction: %s in %s with %s on %lld node%s of "
                   "%s.\n# 80 %% interval of its iteration: up to %+.0f %% now, %+.0f %% after "
                   "%s, in %.2g device-hours.\nset -eu\n",
                   inputs->workload->name, dl_precision_names[c->plan.precision], framework->name,
                   (long long)c->plan.nodes, c->plan.nodes == 1 ? "" : "s", inputs->system->name,
                   percent(c->before_ratio), percent(c->after_ratio),
                   c->count == 1 ? "this run" : "these runs", device_hours(c));
    if (framework->launch.program == NULL || c->plan.tp * c->plan.pp * c->plan.sp > 1) {
        add_table(inputs, c, &text);
    } else {
        dl_text_add(&text, "# Arguments go to slurm submit: --site, --partition, --account.\n");
        add_runs(inputs, c, context->arena, &text);
        dl_text_add(&text, "# When they have ended:\n#   dlmodel slurm collect --dir probe-runs -o "
                           "probe.csv\n");
    }
    dl_text_printf(&text, "#   %s --measured probe.csv\n",
                   dl_inputs_command(context, options, "predict", framework, c->plan.nodes));
    return dl_text_string(&text);
}

static enum dl_code run(struct dl_context *context, const struct dl_options *options,
                        struct dl_err *err) {
    enum dl_format format = DL_FORMAT_TEXT;
    struct dl_inputs inputs;
    struct dl_probe_choice choice;
    struct dl_table table;
    struct dl_json_writer w;
    DL_TRY(dl_output_format(options, &format, err));
    DL_TRY(dl_inputs_load(context, options, &inputs, err));
    struct dl_cost_memo memo = {.arena = context->arena};
    inputs.memo = context->memo != NULL ? context->memo : &memo;
    DL_TRY(dl_inputs_one_framework(&inputs, "probe-run", err));
    if (inputs.framework_count != 1)
        return dl_fail(err, DL_ERR_USAGE, "--framework: probe-run takes one, which was not given");
    DL_TRY(dl_probe_choose(context, &inputs, &choice, err));
    if (choice.count == 0)
        return dl_fail(err, DL_ERR_NO, "no run on fewer devices narrows this prediction");
    fill(&choice, context->arena, &table);
    if (format == DL_FORMAT_CSV) return context->output(options, dl_table_csv(&table), err);
    if (format == DL_FORMAT_TEXT)
        return context->output(options, script(context, options, &inputs, &choice), err);
    dl_jw_init(&w, context->arena, false);
    dl_output_header(&w, "dlmodel-probe-runs");
    dl_inputs_json(context, &inputs, options, &w);
    dl_jw_number(&w, "iteration_s", choice.prediction.iteration_s);
    dl_jw_number(&w, "interval_end_ratio", choice.before_ratio);
    dl_jw_number(&w, "interval_end_ratio_after", choice.after_ratio);
    dl_jw_number(&w, "interval_end_ratio_best", choice.best_ratio);
    dl_jw_number(&w, "device_hours", device_hours(&choice));
    dl_jw_array(&w, "candidates");
    dl_table_json(&table, &w);
    dl_jw_end(&w);
    dl_jw_string(&w, "script", script(context, options, &inputs, &choice));
    return context->output(options, dl_jw_text(&w), err);
}

const struct dl_command dl_cmd_probe_run = {
    .name = "probe-run",
    .summary = "the short runs that narrow a prediction's interval most, as a job script",
    .usage = "[options]",
    .purpose =
        "Takes the options of predict for one framework and number of nodes. Considers sets of up "
        "to "
        "three runs on fewer devices, with the planned batch per device, half or a quarter of it, "
        "and prints the set that needs the least device time and still narrows the interval by "
        "90 % of what is possible (help theory F-POSTERIOR). The script submits the runs with "
        "'dlmodel slurm'; 'predict --measured' reads their results. --csv and --json list every "
        "candidate with the interval that it alone would leave.",
    .examples = examples,
    .options = tables,
    .common = DL_COMMON_INPUTS "json help",
    .exit_notes = "1 when no run on fewer devices would narrow the prediction",
    .run = run,
};
