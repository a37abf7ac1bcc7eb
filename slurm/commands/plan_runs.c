/* plan_runs.c - converts the options of script and submit to a list of runs, and checks for
 * errors that would otherwise occur on the cluster. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/core/text.h"
#include "model/framework/capabilities.h"
#include "model/plan/plan_defaults.h"
#include "slurm/run/network.h"
#include "slurm/script/quote.h"
#include "slurm/commands/slurm_internal.h"

enum { MAX_RUNS = 4096, MAX_NODES = 128, MAX_NAMES = 64 };

/* Values common to all runs. */
struct wanted {
    struct dl_run_record run;
    int64_t nodes[MAX_NODES];
    size_t node_count;
    int64_t repeats, batch, global_batch;
    const char *frameworks[MAX_NAMES], *workloads[MAX_NAMES], *name;
    int framework_count, workload_count;
};

static enum dl_code split(struct dl_arena *arena, const char *option, const char *list,
                          const char **names, int *count, struct dl_err *err) {
    *count = 0;
    for (const char *name; (name = dl_list_next(&list, arena)) != NULL;) {
        if (*name == 0 || *count >= MAX_NAMES)
            return dl_fail(err, DL_ERR_USAGE, "--%s: expected 1 to 64 names separated by commas",
                           option);
        names[(*count)++] = name;
    }
    return DL_OK;
}

/* A workload with options contains commas ("gpt:layers=2,hidden=64"): it is one name. */
static enum dl_code read_names(struct dl_arena *arena, const struct dl_slurm_choice *choice,
                               struct wanted *w, struct dl_err *err) {
    const char *framework = choice->frameworks, *workload = choice->workloads;
    if (framework == NULL)
        return dl_fail(err, DL_ERR_USAGE,
                       "missing --framework NAME; 'dlmodel list frameworks' prints the names");
    DL_TRY(split(arena, "framework", framework, w->frameworks, &w->framework_count, err));
    if (workload == NULL) workload = dl_launch_is_custom(framework) ? framework : "resnet50";
    if (strchr(workload, ':') == NULL)
        return split(arena, "workload", workload, w->workloads, &w->workload_count, err);
    w->workloads[0] = workload;
    w->workload_count = 1;
    return DL_OK;
}

/* The nodes of --gpus: full ones, or a part of one. */
static enum dl_code read_gpus(const struct dl_slurm_choice *choice, struct wanted *w,
                              struct dl_err *err) {
    const int64_t each = w->run.devices_per_node;
    if (choice->nodes != NULL)
        return dl_fail(err, DL_ERR_USAGE, "give --nodes or --gpus, not both");
    if (choice->gpus > each && choice->gpus % each != 0)
        return dl_fail(err, DL_ERR_USAGE,
                       "--gpus: expected at most %" PRId64 ", or a multiple of the %" PRId64
                       " devices of a node, got %" PRId64,
                       each, each, choice->gpus);
    if (choice->gpus < each) w->run.devices_per_node = choice->gpus;
    w->nodes[0] = choice->gpus / w->run.devices_per_node;
    return DL_OK;
}

static enum dl_code read_counts(const struct dl_slurm_choice *choice, struct wanted *w,
                                struct dl_err *err) {
    const struct dl_run_record *run = &w->run;
    const struct dl_site *site = &choice->site;
    if (w->batch != DL_ABSENT && w->global_batch != DL_ABSENT) {
        return dl_fail(err, DL_ERR_USAGE, "give --batch-per-device or --global-batch, not both");
    }
    if (run->devices_per_node > site->devices_per_node) {
        return dl_fail(err, DL_ERR_USAGE,
                       "--devices-per-node: a node of site '%.60s' has %" PRId64 ", got %" PRId64,
                       site->name, site->devices_per_node, run->devices_per_node);
    }
    DL_TRY(dl_list_parse(choice->nodes != NULL ? choice->nodes : "1", w->nodes, MAX_NODES,
                         &w->node_count, err));
    if (choice->gpus != DL_ABSENT) DL_TRY(read_gpus(choice, w, err));
    if (run->profile && run->devices_per_node != 1) {
        return dl_fail(err, DL_ERR_USAGE,
                       "--profile measures the layers of one device, or with --nodes above 1 the "
                       "collectives of one device per node; omit --devices-per-node");
    }
    return DL_OK;
}

static enum dl_code read_wanted(struct dl_context *context, const struct dl_options *o,
                                const struct dl_slurm_choice *choice, struct wanted *w,
                                struct dl_err *err) {
    *w = (struct wanted){.run = choice->run,
                         .name = choice->name,
                         .repeats = choice->repeats,
                         .batch = choice->batch_per_device,
                         .global_batch = choice->global_batch};
    w->run.site = choice->site.name;
    w->run.system = choice->site.system;
    w->run.dlmodel = dl_version_text;
    DL_TRY(read_names(context->arena, choice, w, err));
    if (o->positional_count > 1) {
        w->run.command =
            dl_arena_alloc(context->arena, (size_t)o->positional_count, sizeof *w->run.command);
        for (int i = 1; i < o->positional_count; i++)
            w->run.command[w->run.command_count++] = o->positional[i];
    }
    return read_counts(choice, w, err);
}

/* What predict takes on the site's system for this network; an own command has no network, and a
 * site may name no system. */
static void take_defaults(struct dl_context *context, const struct dl_site *site,
                          const struct dl_launch *launch, const struct dl_workload *workload,
                          struct dl_run_record *run) {
    const struct dl_system *system = NULL;
    struct dl_err unknown;
    const bool cpu = site->device == DL_SITE_CPU;
    const bool known =
        site->system != NULL &&
        dl_data_system(&context->data, site->system, context->arena, &system, &unknown) == DL_OK;
    if (run->batch_per_device <= 0)
        run->batch_per_device = (int64_t)dl_default_batch(cpu, workload);
    if (run->precision == NULL)
        run->precision =
            dl_precision_names[known && launch->file != NULL
                                   ? dl_default_precision(system->device, &launch->file, 1)
                                   : DL_FP32];
    if (run->optimizer == NULL) run->optimizer = dl_optimizer_names[dl_default_optimizer(workload)];
}

static enum dl_code load_workload(struct dl_context *context, const struct wanted *w,
                                  const char *name, const struct dl_workload **out,
                                  struct dl_err *err) {
    const bool sequence = w->run.input != NULL && strncmp(w->run.input, "seq", 3) == 0;
    struct dl_override input = {.key = sequence ? "seq" : "input",
                                .value = w->run.input != NULL ? w->run.input + (sequence ? 3 : 0)
                                                              : NULL};
    struct dl_data data = context->data;
    data.overrides = &input;
    data.override_count = w->run.input != NULL ? 1 : 0;
    DL_TRY(dl_data_workload(&data, name, context->arena, out, err));
    if (w->run.input != NULL && !input.used)
        return dl_fail(err, DL_ERR_USAGE, "--input: %.60s does not accept '%.60s'", name,
                       w->run.input);
    return DL_OK;
}

/* What the runs of one network under one framework share. */
struct series {
    const struct wanted *wanted;
    const struct dl_launch *launch;
    const struct dl_workload *workload; /* NULL: the user's command */
    const char *workload_name, *network;
};

static enum dl_code add_run(struct dl_context *context, struct dl_slurm_plan *plan,
                            const struct series *s, int64_t nodes, int64_t repeat,
                            struct dl_err *err) {
    const struct wanted *w = s->wanted;
    const struct dl_launch *launch = s->launch;
    if (plan->count >= MAX_RUNS)
        return dl_fail(err, DL_ERR_USAGE, "more than %d runs requested; submit fewer at once",
                       MAX_RUNS);
    struct dl_run_record *run = &plan->runs[plan->count];
    *run = w->run;
    const int64_t devices = nodes * run->devices_per_node;
    run->framework = launch->framework;
    run->strategy = launch->strategy;
    run->backend = plan->site->device == DL_SITE_GPU ? launch->backend_gpu : launch->backend_cpu;
    run->workload = s->workload_name;
    run->nodes = nodes;
    run->repeat = repeat;
    run->batch_per_device = w->batch != DL_ABSENT ? w->batch : 0;
    take_defaults(context, plan->site, launch, s->workload, run);
    if (w->global_batch != DL_ABSENT) {
        if (w->global_batch % devices != 0) {
            return dl_fail(err, DL_ERR_USAGE,
                           "--global-batch: %" PRId64 " samples are not divisible by %" PRId64
                           " devices",
                           w->global_batch, devices);
        }
        run->batch_per_device = w->global_batch / devices;
    }
    const char *size = run->input == NULL ? "" : dl_arena_printf(context->arena, "-%s", run->input);
    const char *kind = strcmp(run->precision, "fp32") == 0
                           ? ""
                           : dl_arena_printf(context->arena, "-%s", run->precision);
    const char *id = dl_arena_printf(
        context->arena, "%s-%s%s%s-n%" PRId64 "x%" PRId64 "-b%" PRId64 "%s-r%" PRId64,
        run->framework, run->workload, size, kind, nodes, run->devices_per_node,
        run->batch_per_device, run->profile ? "-profile" : "", repeat);
    run->id = dl_sl_tame(context->arena, id);
    run->job_name = dl_sl_tame(context->arena, w->name != NULL ? w->name : id);
    plan->launches[plan->count] = launch;
    plan->networks[plan->count++] = s->network;
    return DL_OK;
}

static enum dl_code add_runs(struct dl_context *context, struct dl_slurm_plan *plan,
                             const struct wanted *w, const struct dl_launch *launch,
                             const char *workload_name, struct dl_err *err) {
    struct series s = {.wanted = w, .launch = launch, .workload_name = workload_name};
    const bool custom = launch->program == NULL;
    if (custom && w->run.command_count == 0)
        return dl_fail(err, DL_ERR_USAGE, "--framework custom: expected -- COMMAND ARGUMENTS...");
    if (!custom && w->run.command_count > 0) {
        return dl_fail(err, DL_ERR_USAGE,
                       "unexpected argument \"%.100s\"; your own command needs --framework custom",
                       w->run.command[0]);
    }
    if (!custom) {
        DL_TRY(load_workload(context, w, workload_name, &s.workload, err));
        s.network = dl_network_text(s.workload, context->arena);
    }
    for (size_t n = 0; n < w->node_count; n++) {
        if (w->nodes[n] > 1 && launch->tasks == DL_TASKS_ONE) {
            const char *before = plan->refused;
            plan->refused = dl_arena_printf(
                context->arena, "%s%s%s runs as one process on one node; got --nodes %" PRId64,
                before != NULL ? before : "", before != NULL ? "; " : "", launch->framework,
                w->nodes[n]);
            continue;
        }
        for (int64_t r = 1; r <= w->repeats; r++)
            DL_TRY(add_run(context, plan, &s, w->nodes[n], r, err));
    }
    return DL_OK;
}

const char *dl_slurm_folder(const struct dl_options *options, const struct dl_site *site) {
    const char *given = dl_option_text(options, "dir");
    if (given != NULL) return given;
    return site != NULL && site->scratch != NULL ? site->scratch : "dlmodel-runs";
}

enum dl_code dl_slurm_absolute(struct dl_arena *arena, const char *path, const char **out,
                               struct dl_err *err) {
    char here[4096];
    if (path[0] == 0) return dl_fail(err, DL_ERR_USAGE, "--dir: expected the name of a folder");
    *out = path;
    if (path[0] == '/') return DL_OK;
    if (getcwd(here, sizeof here) == NULL)
        return dl_fail(err, DL_ERR_SYSTEM, "cannot read the current folder: %s", strerror(errno));
    *out = dl_arena_printf(arena, "%s/%s", here, path);
    return DL_OK;
}

/* A profile takes one device and few steps. */
static enum dl_code read_choice(struct dl_context *context, const struct dl_options *o,
                                struct dl_slurm_choice *out, struct dl_err *err) {
    const struct dl_site *site = NULL;
    const bool profile = dl_option_given(o, "profile");
    DL_TRY(dl_site_load(context, dl_option_text(o, "site"), &site, err));
    *out =
        (struct dl_slurm_choice){.site = *site,
                                 .time_limit_s = site->time_limit_s,
                                 .repeats = 1,
                                 .interval_width_frac = 0.05,
                                 .most_repeats = 60,
                                 .batch_per_device = DL_ABSENT,
                                 .global_batch = DL_ABSENT,
                                 .gpus = DL_ABSENT,
                                 .run = {.devices_per_node = profile ? 1 : site->devices_per_node,
                                         .steps = profile ? 5 : 50,
                                         .warmup_steps = profile ? 3 : 10,
                                         .tp = DL_ABSENT,
                                         .pp = DL_ABSENT,
                                         .dp = DL_ABSENT}};
    return dl_slurm_bind(o, out, err);
}

/* A job would wait in the queue to find that its program is missing. */
static void note_missing_program(struct dl_context *context, const struct dl_slurm_plan *plan,
                                 const struct dl_launch *launch) {
    if (launch->program == NULL) return;
    const char *path = dl_arena_printf(context->arena, "%s/%s", plan->programs, launch->program);
    if (access(path, R_OK) != 0)
        context->note(context, "warning: %s: launch.program: no readable file %s",
                      launch->framework, path);
}

enum dl_code dl_slurm_plan_make(struct dl_context *context, const struct dl_options *o,
                                struct dl_slurm_plan *plan, struct dl_err *err) {
    static struct wanted w; /* too large for the stack; a process runs one command */
    *plan = (struct dl_slurm_plan){.count = 0};
    struct dl_slurm_choice *choice = dl_arena_alloc(context->arena, 1, sizeof *choice);
    DL_TRY(read_choice(context, o, choice, err));
    plan->site = &choice->site;
    plan->choice = choice;
    plan->time_limit_s = choice->time_limit_s;
    DL_TRY(read_wanted(context, o, choice, &w, err));
    DL_TRY(dl_site_programs(context, &plan->programs, err));
    DL_TRY(dl_slurm_absolute(context->arena, dl_slurm_folder(o, plan->site), &plan->folder, err));
    plan->runs = dl_arena_alloc(context->arena, MAX_RUNS, sizeof *plan->runs);
    plan->launches = dl_arena_alloc(context->arena, MAX_RUNS, sizeof(void *));
    plan->networks = dl_arena_alloc(context->arena, MAX_RUNS, sizeof(void *));
    for (int f = 0; f < w.framework_count; f++) {
        const struct dl_launch *launch = NULL;
        DL_TRY(dl_launch_find(context, w.frameworks[f], &launch, err));
        note_missing_program(context, plan, launch);
        for (int i = 0; i < w.workload_count; i++)
            DL_TRY(add_runs(context, plan, &w, launch, w.workloads[i], err));
    }
    if (plan->count == 0) return dl_fail(err, DL_ERR_USAGE, "%s", plan->refused);
    if (plan->refused != NULL) context->note(context, "warning: left out: %s", plan->refused);
    if (plan->site->device == DL_SITE_GPU && plan->site->cores_per_node == DL_ABSENT)
        context->note(context,
                      "warning: site '%s' has no cores_per_node: each task gets one core, which is "
                      "too few to decode input",
                      plan->site->name);
    for (int i = 0; i < plan->count; i++) {
        if (plan->site->max_nodes == DL_ABSENT || plan->runs[i].nodes <= plan->site->max_nodes)
            continue;
        context->note(context,
                      "warning: site '%s' limits jobs to %" PRId64 " nodes (max_nodes); Slurm may "
                      "refuse larger ones",
                      plan->site->name, plan->site->max_nodes);
        break;
    }
    return DL_OK;
}

enum dl_code dl_slurm_plan_script(const struct dl_slurm_plan *plan, int i, struct dl_arena *arena,
                                  const char **out, struct dl_err *err) {
    const char *folder = dl_arena_printf(arena, "%s/%s", plan->folder, plan->runs[i].id);
    const struct dl_script script = {.site = plan->site,
                                     .launch = plan->launches[i],
                                     .run = &plan->runs[i],
                                     .run_folder = folder,
                                     .program_folder = plan->programs,
                                     .time_limit_s = plan->time_limit_s,
                                     .trials = plan->trials};
    return dl_script_text(&script, arena, out, err);
}
