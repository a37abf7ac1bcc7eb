/* cmd_slurm.c - `dlmodel slurm`: the table of subcommands and their options. */
#include <string.h>

#include "slurm/commands/slurm_internal.h"

#define CHOICE(member) struct dl_slurm_choice, member

static const char *const precisions[] = {"fp32", "tf32", "mixed", "fp16", "bf16", "fp8", NULL};
static const char *const optimizers[] = {"sgd", "momentum", "adam", "lamb", NULL};

static const char *const campaign_forms[] = {"steps", "array", NULL};
static const char *const methods[] = {"deep500", NULL};

static const struct dl_option slurm_options[] = {
    {"framework", 'f', "NAME,...", "Runs",
     "frameworks to run ('dlmodel list frameworks'), or custom for a command after --",
     DL_TEXT(CHOICE(frameworks))},
    {"workload", 'w', "NAME,...", "Runs",
     "workload to train ('dlmodel list workloads'); default resnet50", DL_TEXT(CHOICE(workloads))},
    {"input", 0, "SIZE", "Runs", "input size, e.g. 64x64 or seq128; default: that of the workload",
     DL_TEXT(CHOICE(run.input))},
    {"nodes", 'n', "LIST", "Runs",
     "node counts, e.g. 16 or 1,2,4 or 1-16*2, one job per count; default 1",
     DL_TEXT(CHOICE(nodes))},
    {"gpus", 0, "N", "Runs", "devices of one job, instead of --nodes",
     DL_INTEGER(CHOICE(gpus), .min = 1, .max = 1000000000)},
    {"devices-per-node", 'g', "N", "Runs",
     "training devices per node; default: all that the site file lists",
     DL_INTEGER(CHOICE(run.devices_per_node), .min = 1, .max = 1024)},
    {"batch-per-device", 'b', "N", "Runs",
     "samples per device and step; default 32 images or 8 sequences on a GPU, a quarter on a CPU",
     DL_INTEGER(CHOICE(batch_per_device), .min = 1, .max = 1000000000)},
    {"global-batch", 'B', "N", "Runs",
     "samples per step over all devices, instead of --batch-per-device",
     DL_INTEGER(CHOICE(global_batch), .min = 1, .max = 1000000000)},
    {"precision", 'p', "fp32|tf32|mixed|fp16|bf16|fp8", "Runs",
     "arithmetic precision; default as predict: bf16 where the devices have it, else fp32",
     DL_WORD(CHOICE(run.precision), .choices = precisions)},
    {"optimizer", 0, "sgd|momentum|adam|lamb", "Runs",
     "optimizer; default as predict: adam for transformers, momentum for other networks",
     DL_WORD(CHOICE(run.optimizer), .choices = optimizers)},
    {"tp", 0, "N", "Runs", "tensor-parallel degree (megatron)",
     DL_INTEGER(CHOICE(run.tp), .min = 1, .max = 1000000)},
    {"pp", 0, "N", "Runs", "pipeline stages (megatron)",
     DL_INTEGER(CHOICE(run.pp), .min = 1, .max = 1000000)},
    {"dataset", 0, "FOLDER", "Runs",
     "folder of training images as CLASS/FILE; default: synthetic input",
     DL_TEXT(CHOICE(run.dataset))},
    {"repeat", 0, "N", "Runs", "number of jobs per configuration; default 1",
     DL_INTEGER(CHOICE(repeats), .min = 1, .max = 1000)},
    {"steps", 0, "N", "Runs", "measured steps per run; default 50",
     DL_INTEGER(CHOICE(run.steps), .min = 1, .max = 1000000)},
    {"warmup", 0, "N", "Runs", "warm-up steps before them; default 10",
     DL_INTEGER(CHOICE(run.warmup_steps), .min = 0, .max = 1000000)},
    {"profile", 0, NULL, "Runs",
     "profile one task: layer times for 'dlmodel import trace'; with --nodes N: times of the\n"
     "library's all-reduce by size, for 'dlmodel import osu'",
     DL_FLAG(CHOICE(run.profile))},
    {"campaign", 0, "FILE", "Runs",
     "submit: run the trials that 'dlmodel campaign --export FILE' wrote, one device each, on "
     "--nodes N;\n"
     "collect: print the schedule of that folder of a campaign",
     DL_TEXT(CHOICE(campaign))},
    {"as", 0, "steps|array", "Runs",
     "a campaign is one job with a step for each trial, or an array of jobs; default steps",
     DL_CHOICE(CHOICE(campaign_form), .choices = campaign_forms)},
    {"method", 0, "deep500", "Runs",
     "submit: repeat each configuration until the 95 % interval of the median of its runs is "
     "narrow enough;\n"
     "submit again after the jobs have ended, until none is missing",
     DL_CHOICE(CHOICE(method), .choices = methods, DL_GIVEN(CHOICE(has_method)))},
    {"interval-width", 0, "PCT", "Runs", "of --method: width of the interval / median; default 5%",
     DL_NUMBER(CHOICE(interval_width_frac), .unit = DL_UNIT_NONE, .min = 1e-4, .max = 10)},
    {"most-repeats", 0, "N", "Runs", "of --method: maximum runs of a configuration; default 60",
     DL_INTEGER(CHOICE(most_repeats), .min = 6, .max = 1000)},
    {"sweep", 0, "FILE", "Runs",
     "submit: instead of runs a job array of 'dlmodel search --sweep FILE'; options of search "
     "after --",
     DL_TEXT(CHOICE(sweep))},
    {"parts", 0, "N", "Runs", "tasks of the array of --sweep; default 4",
     DL_INTEGER(CHOICE(parts), .min = 1, .max = 100000)},
    {"site", 0, "NAME|FILE", "Cluster",
     "site file (fields: dlmodel schema site); default $DLMODEL_SITE, else\n"
     "~/.config/dlmodel/site.json",
     NULL},
    {"system", 's', "NAME|FILE", "Cluster",
     "system of the nodes, recorded with each run; default: that of the site",
     DL_TEXT(CHOICE(site.system))},
    {"partition", 0, "NAME", "Cluster", "partition of the jobs; default: that of the site",
     DL_TEXT(CHOICE(site.partition))},
    {"account", 0, "NAME", "Cluster", "account of the jobs; default: that of the site",
     DL_TEXT(CHOICE(site.account))},
    {"qos", 0, "NAME", "Cluster", "QOS of the jobs; default: that of the site",
     DL_TEXT(CHOICE(site.qos))},
    {"constraint", 0, "FEATURES", "Cluster", "node features of the jobs; default: that of the site",
     DL_TEXT(CHOICE(site.constraint))},
    {"reservation", 0, "NAME", "Cluster", "reservation of the jobs; default: that of the site",
     DL_TEXT(CHOICE(site.reservation))},
    {"time", 0, "DURATION", "Cluster", "time limit of a job, e.g. 600s; default: that of the site",
     DL_NUMBER(CHOICE(time_limit_s), .unit = DL_UNIT_S, .min = 60, .max = 1e7)},
    {"name", 0, "TEXT", "Cluster", "job name; default: the name of the run", DL_TEXT(CHOICE(name))},
    {"dir", 0, "FOLDER", "Cluster",
     "folder for the runs, visible to all nodes; default: the scratch of the site, else "
     "dlmodel-runs",
     NULL},
    {"dry-run", 0, NULL, "Cluster", "submit: show what would be submitted; write nothing", NULL},
    {"all", 0, NULL, "Cluster", "cancel: all runs in the folder", NULL},
    {"format", 0, "table|csv|json", "Output",
     "format for submit and status; script prints bash, collect a table of runs", NULL},
    {"json", 0, NULL, "Output", "same as --format json", NULL},
    {"csv", 0, NULL, "Output", "same as --format csv", NULL},
    {"output", 'o', "FILE", "Output",
     "write to FILE; collect updates the rows of its runs in FILE and keeps all other rows", NULL},
    {"help", 'h', NULL, "Output", "show this help", NULL},
    {.name = NULL},
};
static const struct dl_option *const tables[] = {slurm_options, NULL};
static const char *const examples[] = {
    "dlmodel slurm submit --site iris --framework horovod-tensorflow --workload resnet50 --nodes "
    "1-4*2 --repeat 3 --dry-run",
    "dlmodel slurm script --site iris --framework pytorch-ddp --workload resnet50 --nodes 4",
    NULL,
};

enum dl_code dl_slurm_bind(const struct dl_options *options, struct dl_slurm_choice *out,
                           struct dl_err *err) {
    return dl_options_bind(options, slurm_options, out, err);
}

struct dl_options dl_slurm_with(const struct dl_options *options, const char *name,
                                const char *value) {
    struct dl_options out = *options;
    for (const struct dl_option *o = slurm_options; o->name != NULL; o++) {
        if (strcmp(o->name, name) != 0 || out.given_count == DL_MAX_REPEATS) continue;
        out.given[out.given_count].option = o;
        out.given[out.given_count++].value = value;
    }
    return out;
}

enum dl_code dl_slurm_print(struct dl_context *context, const struct dl_options *options,
                            enum dl_format format, const char *kind, const struct dl_table *table,
                            struct dl_err *err) {
    struct dl_json_writer w;
    if (format != DL_FORMAT_JSON)
        return context->output(options, dl_table_render(table, format), err);
    dl_jw_init(&w, context->arena, false);
    dl_output_header(&w, kind);
    dl_jw_array(&w, "runs");
    dl_table_json(table, &w);
    return context->output(options, dl_jw_text(&w), err);
}

static const struct action {
    const char *name;
    dl_slurm_action *run;
    bool arguments;
} actions[] = {
    {"script", dl_slurm_script, true},  {"submit", dl_slurm_submit, true},
    {"status", dl_slurm_status, false}, {"collect", dl_slurm_collect, false},
    {"cancel", dl_slurm_cancel, true},  {.name = NULL},
};
static const char *const action_names[] = {"script", "submit", "status", "collect", "cancel", NULL};

static enum dl_code run(struct dl_context *context, const struct dl_options *options,
                        struct dl_err *err) {
    const char *all = "expected one of script, submit, status, collect or cancel";
    if (options->positional_count == 0) return dl_fail(err, DL_ERR_USAGE, "%s", all);
    for (const struct action *a = actions; a->name != NULL; a++) {
        if (strcmp(a->name, options->positional[0]) != 0) continue;
        if (!a->arguments && options->positional_count > 1) {
            return dl_fail(err, DL_ERR_USAGE,
                           "unexpected argument \"%.100s\"; use --dir to name the folder of runs",
                           options->positional[1]);
        }
        return a->run(context, options, err);
    }
    const char *near = dl_suggest(options->positional[0], action_names);
    if (near != NULL)
        return dl_fail(err, DL_ERR_USAGE, "unknown subcommand '%.60s'; did you mean '%s'?",
                       options->positional[0], near);
    return dl_fail(err, DL_ERR_USAGE, "unknown subcommand '%.60s'; %s", options->positional[0],
                   all);
}

const struct dl_command dl_cmd_slurm = {
    .name = "slurm",
    .summary = "run frameworks on a Slurm cluster and collect the measurements",
    .usage = "script|submit|status|collect|cancel [options] [RUN...] [-- COMMAND...]",
    .purpose =
        "script prints the job script of one run; submit creates a folder per run and submits it; "
        "status shows the progress of the runs; collect converts job logs and sacct data to a "
        "table of runs for 'dlmodel compare'; cancel cancels the jobs of the named runs. A site "
        "file describes the cluster. Each job monitors its nodes before and during the run, and "
        "marks a disturbed run. State LOST: Slurm no longer knows the job; what it measured is "
        "kept. Of a requeued job the last attempt counts.",
    .examples = examples,
    .words = "script submit status collect",
    .options = tables,
    .common = "framework workload nodes gpus devices-per-node batch-per-device global-batch "
              "precision optimizer repeat steps site system partition account time dir dry-run "
              "json output help",
    .exit_notes = "6: Slurm refused a request or did not answer; collect still writes the contents "
                  "of the logs",
    .run = run,
};
