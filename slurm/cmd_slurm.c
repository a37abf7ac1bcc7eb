/* cmd_slurm.c - `dlmodel slurm`: the table of subcommands and their options. */
#include <string.h>

#include "slurm/slurm_parts.h"

static const struct dl_option slurm_options[] = {
    {"framework", 0, "NAME,...", "Runs",
     "frameworks to run ('dlmodel list frameworks'), or custom for a command after --", false},
    {"workload", 0, "NAME,...", "Runs", "workloads ('dlmodel list workloads'); default resnet50",
     false},
    {"input", 0, "SIZE", "Runs", "size of the input: 64x64, seq128; default: the workload's own",
     false},
    {"nodes", 0, "LIST", "Runs", "nodes: 16, 1,2,4 or 1-16*2; one job each; default 1", false},
    {"devices-per-node", 0, "N", "Runs", "devices of a node that train; default: all of the site",
     false},
    {"batch-per-device", 0, "N", "Runs",
     "samples of a device and step; default 32 images or 8 sequences on a GPU, a quarter on a CPU",
     false},
    {"global-batch", 0, "N", "Runs", "samples of a step over all devices, instead", false},
    {"precision", 0, "fp32|tf32|mixed|fp16|bf16|fp8", "Runs", "arithmetic; default fp32", false},
    {"optimizer", 0, "sgd|momentum|adam|lamb", "Runs", "default sgd", false},
    {"tp", 0, "N", "Runs", "tensor-parallel devices (megatron)", false},
    {"pp", 0, "N", "Runs", "pipeline stages (megatron)", false},
    {"dataset", 0, "FOLDER", "Runs",
     "images to train on, CLASS/FILE below it; default: synthetic input", false},
    {"repeat", 0, "N", "Runs", "jobs of each kind; default 1", false},
    {"steps", 0, "N", "Runs", "steps to measure; default 50", false},
    {"warmup", 0, "N", "Runs", "steps before, that do not count; default 10", false},
    {"profile", 0, NULL, "Runs",
     "one task: times of layers, for 'dlmodel import trace'; with --nodes N: the library's "
     "all-reduce by size, for 'dlmodel import osu'",
     false},
    {"site", 0, "NAME|FILE", "Cluster",
     "site file (fields: dlmodel schema site); default $DLMODEL_SITE, ~/.config/dlmodel/site.json",
     false},
    {"partition", 0, "NAME", "Cluster", "instead of the site's", false},
    {"account", 0, "NAME", "Cluster", "instead of the site's", false},
    {"qos", 0, "NAME", "Cluster", "instead of the site's", false},
    {"constraint", 0, "FEATURES", "Cluster", "instead of the site's", false},
    {"reservation", 0, "NAME", "Cluster", "instead of the site's", false},
    {"time", 0, "DURATION", "Cluster", "limit of a job: 600s; default: the site's", false},
    {"name", 0, "TEXT", "Cluster", "name of the jobs; default: that of the run", false},
    {"dir", 0, "FOLDER", "Cluster",
     "folder of runs, seen by all nodes; default: the site's scratch, else dlmodel-runs", false},
    {"dry-run", 0, NULL, "Cluster", "submit: say what would be submitted, write nothing", false},
    {"all", 0, NULL, "Cluster", "cancel: all runs of the folder", false},
    {"format", 0, "table|csv|json", "Output",
     "of submit and status; script prints bash, collect a table of runs", false},
    {"json", 0, NULL, "Output", "the same as --format json", false},
    {"csv", 0, NULL, "Output", "the same as --format csv", false},
    {"output", 'o', "FILE", "Output",
     "write to FILE; collect: rows of runs that it holds already are made anew, others stay",
     false},
    {"help", 'h', NULL, "Output", "this text", false},
    {.name = NULL},
};
static const struct dl_option *const tables[] = {slurm_options, NULL};
static const char *const examples[] = {
    "dlmodel slurm submit --site iris --framework horovod-tensorflow --workload resnet50 --nodes "
    "1-4*2 --repeat 3 --dry-run",
    "dlmodel slurm script --site iris --framework pytorch-ddp --workload resnet50 --nodes 4",
    NULL,
};

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
                           "unexpected argument \"%.100s\"; the folder of runs is given with --dir",
                           options->positional[1]);
        }
        return a->run(context, options, err);
    }
    const char *near = dl_suggest(options->positional[0], action_names);
    if (near != NULL)
        return dl_fail(err, DL_ERR_USAGE, "no subcommand '%.60s'; did you mean '%s'?",
                       options->positional[0], near);
    return dl_fail(err, DL_ERR_USAGE, "no subcommand '%.60s'; %s", options->positional[0], all);
}

const struct dl_command dl_cmd_slurm = {
    .name = "slurm",
    .summary = "run frameworks on a Slurm cluster and collect the measurements",
    .usage = "script|submit|status|collect|cancel [options] [RUN...] [-- COMMAND...]",
    .purpose = "script prints the job script of one run, submit writes a folder for each run and "
               "submits it, status shows how far the runs "
               "are, collect brings job logs and sacct into a table of runs that 'dlmodel compare' "
               "reads, cancel ends jobs of named runs. "
               "How a cluster is to be used stands in a site file. Each job looks at its nodes "
               "before and during the run; a run that "
               "was disturbed says so.",
    .examples = examples,
    .words = "script submit status collect",
    .options = tables,
    .exit_notes =
        "6: Slurm refused or did not answer; collect then still writes what the logs hold",
    .run = run,
};
