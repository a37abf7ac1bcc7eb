/* cmd_campaign.c - how long do many trainings take on this machine, on how many devices each? */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/plan/plan_defaults.h"
#include "model/core/file.h"
#include "model/search/campaign/campaign_file.h"
#include "model/search/checkpoint.h"
#include "model/machine/power_cap.h"
#include "predict/inputs/rates.h"
#include "predict/output/campaign_print.h"

enum { MAX_TRIALS = 1000000 };

static const char *const shown_names[] = {"widths", "schedule", NULL};
#define ASKED(member) struct dl_campaign_asked, member

static const struct dl_option own_options[] = {
    {"search", 0, "NAME", "Campaign",
     "which trials run how far: grid, random, successive-halving, hyperband, asha, median-stop; "
     "default grid",
     DL_CHOICE(ASKED(search), .choices = dl_campaign_search_names)},
    {"space", 0, "NAME=V,...", "Campaign",
     "one hyper-parameter and its values, e.g. lr=0.1,0.01; batch=32,64 are samples per device and "
     "change the time of a step; once per parameter",
     DL_REPEATED},
    {"trials", 0, "N", "Campaign",
     "number of trials; default: all points of the space; more than that repeat it with other "
     "seeds",
     DL_INTEGER(ASKED(trials), .min = 1, .max = MAX_TRIALS)},
    {"until-step", 0, "N", "Campaign",
     "iterations of a trial in full, in place of --epochs or --tokens",
     DL_NUMBER(ASKED(until_step), .unit = DL_UNIT_COUNT, .min = 1, .max = 1e12)},
    {"devices-per-trial", 0, "N|best", "Campaign",
     "devices that a trial trains on; default best: each power of two up to the machine is tried",
     DL_INTEGER(ASKED(devices_per_trial), .min = 1, .max = 100000000,
                DL_OR_WORD("best", ASKED(best)))},
    {"order", 0, "fifo|longest-first", "Campaign", "which waiting task starts first; default fifo",
     DL_CHOICE(ASKED(order), .choices = dl_campaign_order_names)},
    {"reduction", 0, "ETA", "Campaign",
     "of halving, hyperband and asha: one trial of ETA is kept at each rung; default 3",
     DL_NUMBER(ASKED(reduction), .min = 1.01, .max = 1000)},
    {"rungs", 0, "N", "Campaign",
     "of them: a trial is compared after ETA^-(N-1), ..., 1/ETA and all of its training; default 4",
     DL_INTEGER(ASKED(rungs), .min = 1, .max = 32)},
    {"survive", 0, "F,...", "Campaign",
     "of median-stop: fraction of trials kept at each of the evenly spaced evaluations; "
     "default 0.5,0.5,0.5",
     DL_TEXT(ASKED(survive))},
    {"dispatch", 0, "TIME", "Campaign",
     "the scheduler starts one task per this time; default 0.1s (unverified)",
     DL_NUMBER(ASKED(dispatch_s), .unit = DL_UNIT_S, .min = 0, .max = 1e6)},
    {"startup", 0, "TIME", "Campaign",
     "launch, imports and graph of a task; default 20s (unverified)",
     DL_NUMBER(ASKED(startup_s), .unit = DL_UNIT_S, .min = 0, .max = 1e6)},
    {"resume", 0, "TIME", "Campaign",
     "further start-up of a task that goes on from a checkpoint; default 5s (unverified)",
     DL_NUMBER(ASKED(resume_s), .unit = DL_UNIT_S, .min = 0, .max = 1e6)},
    {"stage", 0, "BYTES", "Campaign",
     "data that each node copies from the shared file system before its first task; default none",
     DL_NUMBER(ASKED(stage_bytes), .unit = DL_UNIT_BYTE, .min = 0, .max = 1e18)},
    {"checkpoint-every", 0, "TIME", "Campaign",
     "training between checkpoints, from which failed tasks go on; default: they begin again",
     DL_NUMBER(ASKED(checkpoint_s), .unit = DL_UNIT_S, .min = 0, .max = 1e9)},
    {"repair", 0, "TIME", "Campaign",
     "until the devices of a failed task are back; the rate of failures is that of the "
     "system's node_mtbf, 0 without it; default 10min",
     DL_NUMBER(ASKED(repair_s), .unit = DL_UNIT_S, .min = 0, .max = 1e9)},
    {"seed", 0, "N", "Campaign", "of random trials, scores and failures; default 1",
     DL_INTEGER(ASKED(seed), .min = 0, .max = 1000000000)},
    {"show", 0, "widths|schedule", "Campaign",
     "one row for each number of devices per trial, or one for each task of the best; default "
     "widths",
     DL_CHOICE(ASKED(shown), .choices = shown_names)},
    {"export", 0, "FILE", "Campaign",
     "also write the trials to FILE, which 'dlmodel slurm submit --campaign FILE' runs; grid and "
     "random search",
     DL_TEXT(ASKED(exported))},
    {.name = NULL},
};
static const struct dl_option *const tables[] = {own_options, dl_input_options, dl_rates_options,
                                                 dl_output_options, NULL};
static const char *const examples[] = {
    "dlmodel campaign --nodes 8 --workload resnet50 --framework pytorch-ddp --epochs 2 --space "
    "batch=32,64 --space lr=0.1,0.03,0.01,0.003",
    "dlmodel campaign --system dgx-a100-80 --nodes 16 --workload bert_base --framework pytorch-ddp "
    "--precision mixed --until-step 20000 --search asha --trials 500 --devices-per-trial 1",
    NULL,
};

static enum dl_code read_survivors(struct dl_campaign_job *job, struct dl_err *err) {
    struct dl_campaign *c = &job->campaign;
    const char *at = job->asked.survive != NULL ? job->asked.survive : "0.5,0.5,0.5";
    while (c->check_count < DL_CAMPAIGN_CHECKS) {
        char *end;
        const double value = strtod(at, &end);
        if (end == at || !(value > 0 && value <= 1) || (*end != 0 && *end != ',')) break;
        c->survive_frac[c->check_count++] = value;
        if (*end == 0) return DL_OK;
        at = end + 1;
    }
    return dl_fail(err, DL_ERR_USAGE,
                   "--survive: expected 1 to %d fractions above 0, at most 1, between commas",
                   DL_CAMPAIGN_CHECKS);
}

static enum dl_code read_campaign(struct dl_campaign_job *job, struct dl_err *err) {
    static const enum dl_campaign_policy policies[] = {
        DL_CAMPAIGN_ALL,       DL_CAMPAIGN_ALL,  DL_CAMPAIGN_HALVING,
        DL_CAMPAIGN_HYPERBAND, DL_CAMPAIGN_ASHA, DL_CAMPAIGN_MEDIAN_STOP};
    const struct dl_campaign_asked *a = &job->asked;
    const struct dl_system *system = job->inputs.system;
    struct dl_campaign *c = &job->campaign;
    *c = (struct dl_campaign){.nodes = job->inputs.nodes[0],
                              .devices_per_node = system->devices_per_node,
                              .policy = policies[a->search],
                              .order = a->order,
                              .reduction = a->reduction,
                              .rungs = (int)a->rungs,
                              .dispatch_s = a->dispatch_s,
                              .startup_s = a->startup_s,
                              .resume_s = a->resume_s,
                              .stage_bytes = a->stage_bytes,
                              .repair_s = a->repair_s,
                              .checkpoint_s = a->checkpoint_s,
                              .seed = (uint64_t)a->seed};
    if (c->policy == DL_CAMPAIGN_MEDIAN_STOP) DL_TRY(read_survivors(job, err));
    if (dl_known(system->operation.node_mtbf_s))
        c->device_failures_per_s =
            1 / (system->operation.node_mtbf_s * (double)system->devices_per_node);
    if (a->stage_bytes <= 0) return DL_OK;
    const struct dl_storage *storage = &system->storage;
    const bool node = system->has_storage && dl_known(storage->read_bytes_per_s),
               total = system->has_storage && dl_known(storage->total_read_bytes_per_s);
    if (!node && !total)
        return dl_fail(err, DL_ERR_USAGE,
                       "--stage: %s has no storage rate; give it by --set "
                       "storage.read_bytes_per_s=2GB/s",
                       system->name);
    c->node_bytes_per_s = node ? storage->read_bytes_per_s : storage->total_read_bytes_per_s;
    c->shared_bytes_per_s =
        total ? storage->total_read_bytes_per_s : c->node_bytes_per_s * (double)c->nodes;
    return DL_OK;
}

static enum dl_code read_trials(struct dl_campaign_job *job, struct dl_err *err) {
    struct dl_arena *arena = job->context->arena;
    const double points = job->asked.trials > 0 ? (double)job->asked.trials : job->space.size;
    if (points > MAX_TRIALS)
        return dl_fail(err, DL_ERR_USAGE,
                       "--space: %.0f points are more than %d trials; give --trials", points,
                       MAX_TRIALS);
    if (job->asked.trials == 0 && job->space.axis_count == 0)
        return dl_fail(err, DL_ERR_USAGE, "give --trials N or a --space to search");
    const size_t count = (size_t)points;
    job->batch = dl_arena_alloc(arena, count, sizeof *job->batch);
    job->trial_s = dl_arena_alloc(arena, count, sizeof *job->trial_s);
    job->low_s = dl_arena_alloc(arena, count, sizeof *job->low_s);
    job->high_s = dl_arena_alloc(arena, count, sizeof *job->high_s);
    job->campaign.trial_count = (int)count;
    dl_space_batches(&job->space, job->asked.search != DL_SEARCH_GRID, (uint64_t)job->asked.seed,
                     (int)count, job->batch);
    return DL_OK;
}

/* ---- the time of a trial ---- */

/* Trains on `devices` with the batch of one point; times of the whole trial. DL_ERR_USAGE: this
 * width cannot be. */
static enum dl_code time_trial(const struct dl_campaign_job *job, int64_t devices, int batch,
                               double times_s[3], struct dl_power *power, struct dl_err *err) {
    struct dl_inputs inputs = job->inputs;
    struct dl_plan plan;
    struct dl_prediction p;
    const int64_t each = inputs.system->devices_per_node;
    inputs.plan.devices_per_node = devices < each ? devices : each;
    if (job->space.batch_axis >= 0) {
        inputs.plan.batch_per_device_samples = job->space.batch_samples[batch];
        inputs.plan.global_batch_samples = 0;
    }
    DL_TRY(dl_inputs_predict(
        &(struct dl_inputs_case){&inputs, job->framework, (devices + each - 1) / each, false},
        job->context->arena, &plan, &p, err));
    if (!p.fits) return dl_fail(err, DL_ERR_NO, "does not fit in memory");
    double iterations = job->asked.until_step;
    if (iterations <= 0)
        iterations = dl_run_total_of(inputs.workload, &plan, &p, &inputs.length).iteration_count;
    if (!(iterations > 0))
        return dl_fail(err, DL_ERR_USAGE,
                       "--epochs: the size of %s's dataset is unknown; give --until-step or "
                       "--dataset",
                       inputs.workload->name);
    times_s[0] = iterations * p.iteration_s;
    times_s[1] = iterations * p.iteration_low_s;
    times_s[2] = iterations * p.iteration_high_s;
    *power = dl_power_of(inputs.system, &plan, &p, &inputs.rates);
    return DL_OK;
}

static enum dl_code fill_trials(struct dl_campaign_job *job, struct dl_campaign_width *w,
                                struct dl_err *err) {
    double times[DL_SPACE_VALUES][3], trial_j = 0;
    struct dl_power power[DL_SPACE_VALUES];
    const int axis = job->space.batch_axis, values = axis < 0 ? 1 : job->space.axes[axis].count;
    for (int i = 0; i < values; i++)
        DL_TRY(time_trial(job, w->devices, i, times[i], &power[i], err));
    const int count = job->campaign.trial_count;
    for (int i = 0; i < count; i++) {
        job->trial_s[i] = times[job->batch[i]][0];
        job->low_s[i] = times[job->batch[i]][1];
        job->high_s[i] = times[job->batch[i]][2];
        trial_j += power[job->batch[i]].device_w * job->trial_s[i];
        w->trial_s += job->trial_s[i] / count;
        w->low_s += job->low_s[i] / count;
        w->high_s += job->high_s[i] / count;
    }
    w->device_w = trial_j / (w->trial_s * count);
    w->host_w = power[0].host_w;
    return DL_OK;
}

static enum dl_code simulate(struct dl_campaign_job *job, const double *trial_s,
                             struct dl_campaign_result *out, struct dl_err *err) {
    struct dl_arena scratch = {0};
    job->campaign.trial_s = trial_s;
    const enum dl_code code = dl_campaign_simulate(&job->campaign, false, &scratch, out, err);
    dl_arena_free(&scratch);
    return code;
}

/* F-CAMPAIGN-ENERGY: nodes x (host + devices x (u load + (1 - u) idle)) x PUE x makespan, u: share
 * of the devices' time that trains; the nodes are paid whole. */
static void spend(const struct dl_campaign_job *job, struct dl_campaign_width *w) {
    const struct dl_system *system = job->inputs.system;
    const struct dl_rates *rates = &job->inputs.rates;
    const struct dl_campaign *c = &job->campaign;
    const double span_s = w->result.makespan_s, nodes = (double)c->nodes,
                 devices = (double)c->devices_per_node;
    const double used = w->result.train_s * (double)w->devices / (nodes * devices * span_s);
    const double devices_w =
        devices * (used * w->device_w + (1 - used) * dl_device_idle_w(system->device));
    const double node_w =
        dl_known(rates->node_w) && rates->node_w > 0 ? rates->node_w : w->host_w + devices_w;
    w->energy_j =
        nodes * node_w * (dl_known(system->operation.pue) ? system->operation.pue : 1) * span_s;
    w->cost = nodes * span_s / 3600 * dl_price_of(system, rates);
}

static enum dl_code try_width(struct dl_campaign_job *job, int64_t devices, struct dl_err *err) {
    struct dl_campaign_width *w = &job->widths[job->width_count++];
    struct dl_err inner = {0};
    *w = (struct dl_campaign_width){.devices = devices};
    enum dl_code code = fill_trials(job, w, &inner);
    job->campaign.devices_per_trial = devices;
    if (code == DL_OK) code = simulate(job, job->trial_s, &w->result, &inner);
    if (code == DL_OK) code = simulate(job, job->low_s, &w->low, &inner);
    if (code == DL_OK) code = simulate(job, job->high_s, &w->high, &inner);
    if (code == DL_OK) spend(job, w);
    if (code == DL_OK) return DL_OK;
    if (code != DL_ERR_USAGE && code != DL_ERR_NO) {
        *err = inner;
        return code;
    }
    w->why = dl_arena_strdup(job->context->arena, inner.message);
    return DL_OK;
}

static enum dl_code try_widths(struct dl_campaign_job *job, struct dl_err *err) {
    const int64_t each = job->campaign.devices_per_node, most = each * job->campaign.nodes;
    if (job->asked.devices_per_trial > 0) return try_width(job, job->asked.devices_per_trial, err);
    for (int64_t devices = 1; devices <= each; devices *= 2) DL_TRY(try_width(job, devices, err));
    if ((each & (each - 1)) != 0) DL_TRY(try_width(job, each, err));
    for (int64_t devices = 2 * each; devices <= most; devices *= 2)
        DL_TRY(try_width(job, devices, err));
    return DL_OK;
}

/* The shortest makespan; widths whose intervals hold it are ties. */
static struct dl_campaign_width *choose(struct dl_campaign_job *job) {
    struct dl_campaign_width *best = NULL;
    for (int i = 0; i < job->width_count; i++) {
        struct dl_campaign_width *w = &job->widths[i];
        if (w->why == NULL && (best == NULL || w->result.makespan_s < best->result.makespan_s))
            best = w;
    }
    if (best != NULL) best->best = true;
    for (int i = 0; i < job->width_count && best != NULL; i++) {
        struct dl_campaign_width *w = &job->widths[i];
        w->tie = !w->best && w->why == NULL && w->low.makespan_s <= best->result.makespan_s;
    }
    return best;
}

static enum dl_code find_limits(struct dl_campaign_job *job, struct dl_campaign_width *best,
                                struct dl_arena *scratch, struct dl_err *err) {
    struct dl_campaign_width refilled = {.devices = best->devices};
    DL_TRY(fill_trials(job, &refilled, err));
    job->campaign.trial_s = job->trial_s;
    job->campaign.devices_per_trial = best->devices;
    return dl_campaign_find_limits(&job->campaign, best->result.makespan_s, scratch, &best->limits,
                                   err);
}

/* Simulates the best width once more, for its schedule. */
static enum dl_code keep_tasks(struct dl_campaign_job *job, const struct dl_campaign_width *best,
                               struct dl_campaign_result *out, struct dl_err *err) {
    struct dl_campaign_width refilled = {.devices = best->devices};
    DL_TRY(fill_trials(job, &refilled, err));
    job->campaign.trial_s = job->trial_s;
    job->campaign.devices_per_trial = best->devices;
    return dl_campaign_simulate(&job->campaign, true, job->context->arena, out, err);
}

static void export_trial(const struct dl_campaign_job *job, int i, struct dl_campaign_trial *out) {
    const struct dl_space *space = &job->space;
    const bool drawn = job->asked.search != DL_SEARCH_GRID;
    double batch = job->inputs.plan.batch_per_device_samples;
    if (space->batch_axis >= 0)
        batch = space->batch_samples[job->batch[i]];
    else if (!(batch > 0))
        batch = dl_default_batch(job->inputs.system->device->kind == DL_DEVICE_CPU,
                                 job->inputs.workload);
    *out = (struct dl_campaign_trial){.batch_per_device = (int64_t)batch};
    out->parameters = dl_arena_alloc(job->context->arena, DL_SPACE_AXES, sizeof *out->parameters);
    for (int a = 0; a < space->axis_count; a++) {
        if (a == space->batch_axis) continue;
        const int value = dl_space_value(space, a, drawn, (uint64_t)job->asked.seed, i);
        out->parameters[out->parameter_count++] = (struct dl_map_entry){
            .key = space->axes[a].name, .text = space->axes[a].values[value], .number = NAN};
    }
}

/* Writes the trials for `slurm submit --campaign`. */
static enum dl_code export_trials(const struct dl_campaign_job *job, int64_t devices,
                                  struct dl_err *err) {
    const struct dl_inputs *in = &job->inputs;
    struct dl_arena *arena = job->context->arena;
    if (job->asked.search != DL_SEARCH_GRID && job->asked.search != DL_SEARCH_RANDOM)
        return dl_fail(err, DL_ERR_USAGE, "--export: Slurm runs trials of grid and random search");
    if (!(job->asked.until_step > 0))
        return dl_fail(err, DL_ERR_USAGE, "--export: give the length of a trial by --until-step");
    struct dl_campaign_file file = {.workload = in->words.workload,
                                    .framework = job->framework->name,
                                    .precision = dl_precision_names[in->plan.precision],
                                    .optimizer = dl_optimizer_names[in->plan.optimizer],
                                    .steps = (int64_t)job->asked.until_step,
                                    .devices_per_trial = devices,
                                    .trial_count = job->campaign.trial_count};
    file.trials = dl_arena_alloc(arena, (size_t)file.trial_count, sizeof *file.trials);
    for (int i = 0; i < file.trial_count; i++) export_trial(job, i, &file.trials[i]);
    const char *text = dl_json_text(&dl_campaign_schema, &file, arena);
    return dl_file_write(job->asked.exported, text, strlen(text), err);
}

static enum dl_code load(struct dl_campaign_job *job, const struct dl_options *options,
                         struct dl_err *err) {
    struct dl_inputs *in = &job->inputs;
    DL_TRY(dl_options_bind(options, own_options, &job->asked, err));
    DL_TRY(dl_inputs_load(job->context, options, in, err));
    DL_TRY(dl_inputs_one_framework(in, "campaign", err));
    if (in->framework_all) return dl_fail(err, DL_ERR_USAGE, "campaign needs one --framework");
    if (in->node_count != 1)
        return dl_fail(err, DL_ERR_USAGE, "--nodes: campaign takes one number of nodes");
    const int lengths =
        (in->length.epoch_count > 0) + (in->length.tokens > 0) + (job->asked.until_step > 0);
    if (lengths != 1)
        return dl_fail(err, DL_ERR_USAGE,
                       "give one of --epochs, --tokens and --until-step: how long a trial is");
    job->framework = in->frameworks[0];
    DL_TRY(dl_rates_read(options, job->context->arena, &in->rates, err));
    DL_TRY(dl_space_read(options, job->context->arena, &job->space, err));
    if (job->space.batch_axis >= 0 &&
        (in->given.batch_per_device || in->plan.global_batch_samples > 0))
        return dl_fail(err, DL_ERR_USAGE,
                       "--space batch is the batch: leave out --batch-per-device and "
                       "--global-batch");
    DL_TRY(read_campaign(job, err));
    return read_trials(job, err);
}

static enum dl_code run(struct dl_context *context, const struct dl_options *options,
                        struct dl_err *err) {
    struct dl_campaign_job *job = dl_arena_alloc(context->arena, 1, sizeof *job);
    job->context = context;
    job->asked = (struct dl_campaign_asked){.reduction = 3,
                                            .rungs = 4,
                                            .dispatch_s = 0.1,
                                            .startup_s = DL_JOB_STARTUP_S,
                                            .resume_s = DL_JOB_RESUME_S,
                                            .repair_s = 600,
                                            .seed = 1};
    DL_TRY(load(job, options, err));
    DL_TRY(try_widths(job, err));
    struct dl_campaign_width *best = choose(job);
    if (best == NULL)
        return dl_fail(err, DL_ERR_NO, "no number of devices per trial works: %s",
                       job->widths[0].why);
    struct dl_arena scratch = {0};
    const enum dl_code code = find_limits(job, best, &scratch, err);
    dl_arena_free(&scratch);
    DL_TRY(code);
    dl_inputs_note_files(context, &job->inputs);
    struct dl_campaign_result tasks = {0};
    if (job->asked.exported != NULL) DL_TRY(export_trials(job, best->devices, err));
    if (job->asked.shown == 1) DL_TRY(keep_tasks(job, best, &tasks, err));
    return dl_campaign_print(job, options, best, &tasks, err);
}

const struct dl_command dl_cmd_campaign = {
    .name = "campaign",
    .summary = "plan a hyperparameter search: many training runs on one cluster",
    .usage = "[options]",
    .purpose =
        "Simulates trials as tasks on the nodes of a machine: each trains on some devices, a "
        "search policy stops or continues them, the scheduler starts them one after another, and "
        "nodes copy the data first. Prints the makespan with its interval for each number of "
        "devices per trial, the bounds that no schedule beats (work / slots or the longest trial) "
        "and that every list schedule keeps (list), utilization, and what would shorten the "
        "campaign. Which trials survive is drawn at random; the time of a trial is that of "
        "predict.",
    .examples = examples,
    .options = tables,
    .common = "search space trials until-step devices-per-trial show export " DL_COMMON_INPUTS
              "epochs price json help",
    .exit_notes = "1: no number of devices per trial works",
    .run = run,
};
