/* submit.c - `dlmodel slurm script` and `submit`. The folder of a run is complete before sbatch is
 * called, and gets the job id afterwards; the job records its id too, so that nothing is lost if
 * this process dies in between. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "model/core/file.h"
#include "slurm/cluster/client.h"
#include "slurm/commands/slurm_internal.h"

static const struct dl_column columns[] = {
    {"id", "run", "", DL_COLUMN_STRING, 0, 0},
    {"framework", NULL, NULL, DL_COLUMN_STRING, 0, 0},
    {"workload", NULL, NULL, DL_COLUMN_STRING, 0, 0},
    {"nodes", "nodes", "", DL_COLUMN_INTEGER, 0, 0},
    {"tasks_per_node", "tasks", "/node", DL_COLUMN_INTEGER, 0, 0},
    {"cores_per_task", "cores", "/task", DL_COLUMN_INTEGER, 0, 0},
    {"batch_per_device_samples", "batch", "/dev", DL_COLUMN_INTEGER, 0, 0},
    {"steps", "steps", "", DL_COLUMN_INTEGER, 0, 0},
    {"job_id", "job", "", DL_COLUMN_STRING, 0, 0},
    {"folder", NULL, NULL, DL_COLUMN_STRING, 0, 0},
};
enum { COLUMNS = sizeof columns / sizeof columns[0] };

static void add_row(struct dl_table *table, const struct dl_slurm_plan *plan, int i,
                    const char *job_id) {
    const struct dl_run_record *run = &plan->runs[i];
    const struct dl_script script = {.site = plan->site, .launch = plan->launches[i], .run = run};
    dl_table_add(table, {.string = run->id}, {.string = run->framework}, {.string = run->workload},
                 {.integer = run->nodes}, {.integer = dl_script_tasks(&script)},
                 {.integer = dl_script_cores(&script)}, {.integer = run->batch_per_device},
                 {.integer = run->steps}, {.string = job_id}, {.string = run->folder});
}

/* The requested runs, or a campaign as one run. */
static enum dl_code make_plan(struct dl_context *context, const struct dl_options *options,
                              struct dl_slurm_plan *plan, struct dl_err *err) {
    const char *campaign = dl_option_text(options, "campaign");
    return campaign != NULL ? dl_slurm_plan_campaign(context, options, campaign, plan, err)
                            : dl_slurm_plan_make(context, options, plan, err);
}

enum dl_code dl_slurm_script(struct dl_context *context, const struct dl_options *options,
                             struct dl_err *err) {
    struct dl_slurm_plan plan;
    const char *text = NULL;
    DL_TRY(make_plan(context, options, &plan, err));
    if (plan.count != 1) {
        return dl_fail(err, DL_ERR_USAGE,
                       "script prints one job, but %d are requested; give one framework, workload "
                       "and node count",
                       plan.count);
    }
    DL_TRY(dl_slurm_plan_script(&plan, 0, context->arena, &text, err));
    return context->output(options, text, err);
}

enum dl_code dl_slurm_make_folder(const char *base, const char **name, struct dl_arena *arena,
                                  const char **out, struct dl_err *err) {
    const char *given = *name;
    for (int attempt = 1; attempt < 100000; attempt++) {
        if (attempt > 1) *name = dl_arena_printf(arena, "%s-%d", given, attempt);
        *out = dl_arena_printf(arena, "%s/%s", base, *name);
        if (mkdir(*out, 0777) == 0) return DL_OK;
        if (errno != EEXIST)
            return dl_fail(err, DL_ERR_SYSTEM, "%.400s: cannot create the folder: %s", *out,
                           strerror(errno));
    }
    return dl_fail(err, DL_ERR_SYSTEM, "%.400s: too many runs with this name; use another --dir",
                   given);
}

static enum dl_code write_folder(struct dl_slurm_plan *plan, int i, struct dl_arena *arena,
                                 struct dl_err *err) {
    struct dl_run_record *run = &plan->runs[i];
    const char *script = NULL;
    DL_TRY(dl_slurm_make_folder(plan->folder, &run->id, arena, &run->folder, err));
    DL_TRY(dl_slurm_plan_script(plan, i, arena, &script, err));
    const char *path = dl_arena_printf(arena, "%s/job.sh", run->folder),
               *network = dl_arena_printf(arena, "%s/network.json", run->folder);
    if (plan->networks[i] != NULL)
        DL_TRY(dl_file_write(network, plan->networks[i], strlen(plan->networks[i]), err));
    DL_TRY(dl_file_write(path, script, strlen(script), err));
    if (plan->campaign != NULL) {
        const char *trials = dl_arena_printf(arena, "%s/campaign.json", run->folder);
        DL_TRY(dl_file_write(trials, plan->campaign, strlen(plan->campaign), err));
    }
    return dl_run_write(run, arena, err);
}

/* sbatch prints "123" or "123;cluster". */
enum dl_code dl_slurm_sbatch(const char *folder, struct dl_arena *arena, const char **job_id,
                             struct dl_err *err) {
    char *answer;
    const char *const argv[] = {"sbatch", "--parsable",
                                dl_arena_printf(arena, "--chdir=%s", folder),
                                dl_arena_printf(arena, "%s/job.sh", folder), NULL};
    DL_TRY(dl_client_run(argv, arena, &answer, err));
    const size_t digits = strspn(answer, "0123456789");
    if (digits == 0) return dl_fail(err, DL_ERR_BACKEND, "sbatch printed no job id");
    *job_id = dl_arena_strndup(arena, answer, digits);
    return DL_OK;
}

static enum dl_code submit_one(struct dl_run_record *run, struct dl_arena *arena,
                               struct dl_err *err) {
    DL_TRY(dl_slurm_sbatch(run->folder, arena, &run->job_id, err));
    char stamp[32];
    const time_t now = time(NULL);
    struct tm utc;
    strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    run->submitted_at = dl_arena_strdup(arena, stamp);
    return dl_run_write(run, arena, err);
}

/* What to do after the jobs have ended. */
static void note_next(struct dl_context *context, const struct dl_slurm_plan *plan) {
    if (plan->count == 0) return;
    if (plan->campaign != NULL)
        context->note(context,
                      "after the job has ended, run: dlmodel slurm collect --campaign %s -o "
                      "schedule.csv",
                      plan->runs[0].folder);
    else
        context->note(context,
                      "after the jobs have ended, run: dlmodel slurm collect --dir %s -o runs.csv",
                      plan->folder);
}

enum dl_code dl_slurm_submit(struct dl_context *context, const struct dl_options *options,
                             struct dl_err *err) {
    struct dl_slurm_plan plan;
    struct dl_table table;
    enum dl_code code = DL_OK;
    int submitted = 0;
    enum dl_format format = DL_FORMAT_TEXT;
    if (dl_option_given(options, "sweep")) return dl_slurm_submit_sweep(context, options, err);
    DL_TRY(dl_output_format(options, &format, err)); /* before any job is submitted */
    DL_TRY(make_plan(context, options, &plan, err));
    if (!plan.choice->has_method &&
        (dl_option_given(options, "interval-width") || dl_option_given(options, "most-repeats")))
        return dl_fail(err, DL_ERR_USAGE, "--interval-width and --most-repeats belong to --method");
    if (plan.choice->has_method) DL_TRY(dl_slurm_plan_repeats(context, options, &plan, err));
    dl_table_init(&table, context->arena, columns, COLUMNS);
    if (dl_option_given(options, "dry-run")) {
        for (int i = 0; i < plan.count; i++) {
            const char *script = NULL;
            /* to report its errors now */
            DL_TRY(dl_slurm_plan_script(&plan, i, context->arena, &script, err));
            add_row(&table, &plan, i, NULL);
        }
        context->note(
            context,
            "%d jobs would be submitted; nothing was written (dlmodel slurm script prints one)",
            plan.count);
        return dl_slurm_print(context, options, format, "dlmodel-slurm-runs", &table, err);
    }
    DL_TRY(dl_file_mkdirs(plan.folder, err));
    for (int i = 0; i < plan.count && code == DL_OK; i++) {
        code = write_folder(&plan, i, context->arena, err);
        if (code == DL_OK) code = submit_one(&plan.runs[i], context->arena, err);
        if (plan.runs[i].job_id != NULL) {
            add_row(&table, &plan, i, plan.runs[i].job_id);
            submitted++;
        }
    }
    struct dl_err print = {0};
    const enum dl_code printed =
        submitted > 0
            ? dl_slurm_print(context, options, format, "dlmodel-slurm-runs", &table, &print)
            : DL_OK;
    if (code != DL_OK) {
        context->note(context, "%d of %d jobs were submitted and remain in the queue", submitted,
                      plan.count);
        return code;
    }
    if (printed != DL_OK) {
        *err = print;
        return printed;
    }
    note_next(context, &plan);
    return DL_OK;
}
