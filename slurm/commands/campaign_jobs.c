/* campaign_jobs.c - `submit --campaign` and `collect --campaign`: the trials of a hyper-parameter
 * search as steps of one job or as an array of jobs, and the schedule as it ran. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/core/file.h"
#include "model/core/text.h"
#include "model/search/campaign/campaign_file.h"
#include "slurm/commands/slurm_internal.h"
#include "slurm/run/trial_log.h"

enum { MAX_BYTES = 64 << 20, MAX_SHOWN = 16 };

/* Programs that run a trial, by the program of the framework. */
static const struct {
    const char *program, *search;
} searches[] = {{"pytorch_bench.py", "pytorch_search.py"}};

static const char *search_of(const struct dl_launch *launch) {
    for (size_t i = 0; i < sizeof searches / sizeof *searches; i++) {
        if (launch->program != NULL && strcmp(launch->program, searches[i].program) == 0)
            return searches[i].search;
    }
    return NULL;
}

static enum dl_code check(const struct dl_campaign_file *file, const struct dl_slurm_plan *plan,
                          const char *path, struct dl_err *err) {
    if (file->devices_per_trial != 1)
        return dl_fail(err, DL_ERR_USAGE,
                       "--campaign: %.200s: trials on %" PRId64
                       " devices; Slurm runs trials of one: campaign --devices-per-trial 1",
                       path, file->devices_per_trial);
    if (search_of(plan->launches[0]) == NULL)
        return dl_fail(err, DL_ERR_USAGE,
                       "--campaign: no program runs trials of %s; those of pytorch-ddp do",
                       file->framework);
    return DL_OK;
}

enum dl_code dl_slurm_plan_campaign(struct dl_context *context, const struct dl_options *options,
                                    const char *path, struct dl_slurm_plan *plan,
                                    struct dl_err *err) {
    struct dl_campaign_file file;
    char *text = NULL;
    size_t length = 0;
    struct dl_script_trials *trials = dl_arena_alloc(context->arena, 1, sizeof *trials);
    DL_TRY(dl_campaign_read(path, context->arena, &file, err));
    DL_TRY(dl_file_read(path, MAX_BYTES, context->arena, &text, &length, err));
    if (dl_option_given(options, "framework") || dl_option_given(options, "workload") ||
        dl_option_given(options, "method"))
        return dl_fail(err, DL_ERR_USAGE,
                       "--campaign: the file says what runs: leave out --framework, --workload and "
                       "--method");
    struct dl_options full = dl_slurm_with(options, "framework", file.framework);
    full = dl_slurm_with(&full, "workload", file.workload);
    if (file.input != NULL) full = dl_slurm_with(&full, "input", file.input);
    DL_TRY(dl_slurm_plan_make(context, &full, plan, err));
    if (plan->count != 1)
        return dl_fail(err, DL_ERR_USAGE, "--campaign: expected one number of --nodes");
    DL_TRY(check(&file, plan, path, err));
    struct dl_run_record *run = &plan->runs[0];
    *trials = (struct dl_script_trials){.count = file.trial_count,
                                        .slots = run->nodes * run->devices_per_node,
                                        .is_array = plan->choice->campaign_form == 1,
                                        .program = search_of(plan->launches[0])};
    run->optimizer = file.optimizer;
    run->precision = file.precision;
    run->steps = file.steps;
    run->warmup_steps = 0;
    run->batch_per_device = file.trials[0].batch_per_device;
    run->id = dl_arena_printf(context->arena, "campaign-%s-%s-n%" PRId64 "-t%d", run->framework,
                              run->workload, run->nodes, file.trial_count);
    run->job_name = run->id;
    if (trials->is_array) run->nodes = 1, run->devices_per_node = 1;
    plan->trials = trials;
    plan->campaign = text;
    return DL_OK;
}

/* ---- collect ---- */

static const struct dl_column columns[] = {
    {"trial", "trial", NULL, DL_COLUMN_INTEGER, 0, 0},
    {"rung", NULL, NULL, DL_COLUMN_INTEGER, 0, 0},
    {"slot", "slot", NULL, DL_COLUMN_INTEGER, 0, 0},
    {"start_s", "start", "s", DL_COLUMN_NUMBER, 0, 6},
    {"train_s", "trains from", "s", DL_COLUMN_NUMBER, 0, 6},
    {"end_s", "end", "s", DL_COLUMN_NUMBER, 0, 6},
    {"failed", "failed", NULL, DL_COLUMN_BOOL, 0, 0},
    {"node", "node", NULL, DL_COLUMN_STRING, 0, 0},
    {"batch", "batch", NULL, DL_COLUMN_INTEGER, 0, 0},
    {"parameters", "parameters", NULL, DL_COLUMN_STRING, 0, 0},
    {"loss", "loss", NULL, DL_COLUMN_NUMBER, 0, 4},
    {"accuracy", "accuracy", "%", DL_COLUMN_NUMBER, 0.01, 4},
};

static int by_start(const void *a, const void *b) {
    const struct dl_trial_line *x = a, *y = b;
    return x->asked_s < y->asked_s ? -1 : x->asked_s > y->asked_s ? 1 : 0;
}

/* The lowest slot that is free at a time; ends: of the last trial of each. */
static int slot_at(double *ends, int *count, double start_s) {
    for (int i = 0; i < *count; i++) {
        if (ends[i] <= start_s) return i;
    }
    return (*count)++;
}

static const char *parameters_text(const struct dl_campaign_trial *trial, struct dl_arena *arena) {
    struct dl_text t = {.arena = arena};
    for (int i = 0; i < trial->parameter_count; i++)
        dl_text_printf(&t, "%s%s=%s", i == 0 ? "" : " ", trial->parameters[i].key,
                       trial->parameters[i].text);
    return dl_text_string(&t);
}

static void add_trial(struct dl_table *table, const struct dl_campaign_file *file,
                      const struct dl_trial_line *line, int slot, double first_s) {
    const struct dl_campaign_trial *trial = &file->trials[line->trial];
    dl_table_add(table, {.integer = line->trial}, {.integer = 0}, {.integer = slot},
                 {.number = line->asked_s - first_s},
                 {.number = (dl_known(line->train_s) ? line->train_s : line->end_s) - first_s},
                 {.number = line->end_s - first_s}, {.boolean = line->failed},
                 {.string = line->node}, {.integer = trial->batch_per_device},
                 {.string = parameters_text(trial, table->arena)}, {.number = line->test_loss},
                 {.number = line->accuracy_frac});
}

/* Best result of the search and its duration, as text. */
static void summarize(struct dl_context *context, const struct dl_campaign_file *file,
                      const struct dl_trial_line *lines, int count) {
    const struct dl_trial_line *best = NULL;
    double end_s = 0;
    int failed = 0;
    for (int i = 0; i < count; i++) {
        end_s = fmax(end_s, lines[i].end_s - lines[0].asked_s);
        failed += lines[i].failed;
        if (dl_known(lines[i].accuracy_frac) &&
            (best == NULL || lines[i].accuracy_frac > best->accuracy_frac))
            best = &lines[i];
    }
    context->note(context, "%d of %d trials ended in %.1f s, %d of them failed", count,
                  file->trial_count, end_s, failed);
    if (best != NULL)
        context->note(context, "best: trial %" PRId64 ", accuracy %.1f %%, batch %" PRId64 " %s",
                      best->trial, 100 * best->accuracy_frac,
                      file->trials[best->trial].batch_per_device,
                      parameters_text(&file->trials[best->trial], context->arena));
}

enum dl_code dl_slurm_collect_campaign(struct dl_context *context, const struct dl_options *options,
                                       const char *folder, struct dl_err *err) {
    struct dl_campaign_file file;
    struct dl_trial_line *lines;
    struct dl_table table;
    enum dl_format format = DL_FORMAT_CSV;
    int count, slots = 0;
    const char *path = dl_arena_printf(context->arena, "%s/campaign.json", folder);
    DL_TRY(dl_campaign_read(path, context->arena, &file, err));
    dl_trials_read(folder, file.trial_count, context->arena, &lines, &count);
    if (count == 0) return dl_fail(err, DL_ERR_INPUT, "%.400s: no trial has ended yet", folder);
    double *ends = dl_arena_alloc(context->arena, (size_t)count, sizeof *ends);
    qsort(lines, (size_t)count, sizeof *lines, by_start);
    dl_table_init(&table, context->arena, columns, sizeof columns / sizeof *columns);
    for (int i = 0; i < count; i++) {
        const int slot = slot_at(ends, &slots, lines[i].asked_s);
        ends[slot] = lines[i].end_s;
        add_trial(&table, &file, &lines[i], slot, lines[0].asked_s);
    }
    if (dl_option_given(options, "format") || dl_option_given(options, "json"))
        DL_TRY(dl_output_format(options, &format, err));
    summarize(context, &file, lines, count);
    return dl_slurm_print(context, options, format, "dlmodel-schedule", &table, err);
}
