/* job_status.c - states of jobs: `dlmodel slurm status` and `cancel`, and the states for collect.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "slurm/cluster/client.h"
#include "slurm/run/runlog.h"
#include "slurm/commands/slurm_internal.h"

static int by_job(const void *a, const void *b) {
    return strcmp(((const struct dl_job_state *)a)->job_id,
                  ((const struct dl_job_state *)b)->job_id);
}

const struct dl_job_state *dl_slurm_state_of(const struct dl_job_states *states,
                                             const char *job_id) {
    if (job_id == NULL || states->count == 0) return NULL;
    const struct dl_job_state key = {.job_id = job_id};
    return bsearch(&key, states->jobs, (size_t)states->count, sizeof *states->jobs, by_job);
}

bool dl_slurm_state_final(const char *state) {
    static const char *const open_states[] = {
        "PENDING",      "RUNNING",      "CONFIGURING", "COMPLETING",    "SUSPENDED",
        "REQUEUED",     "RESIZING",     "STAGE_OUT",   "SIGNALING",     "STOPPED",
        "SPECIAL_EXIT", "REQUEUE_HOLD", "REQUEUE_FED", "RESV_DEL_HOLD", NULL};
    for (const char *const *s = open_states; *s != NULL; s++) {
        if (strcmp(*s, state) == 0) return false;
    }
    return true;
}

bool dl_slurm_job_ended(const struct dl_job_state *job, const struct dl_runlog *log) {
    return job != NULL ? dl_slurm_state_final(job->state) : log->exited;
}

/* Returns the next field of a line separated by '|'; NULL after the last. */
static char *next_field(char **at) {
    char *field = *at;
    if (field == NULL) return NULL;
    char *bar = strchr(field, '|');
    if (bar != NULL) *bar = 0;
    *at = bar == NULL ? NULL : bar + 1;
    return field;
}

static double number_of(const char *text) {
    char *end = NULL;
    const double value = text == NULL ? NAN : strtod(text, &end);
    /* sacct has been seen to count backwards after a clock was set */
    const bool good = text != NULL && end != text && *end == 0 && isfinite(value) && value >= 0;
    return good ? value : (double)NAN;
}

enum { MAX_JOBS_PER_CALL = 2000 };

/* Job ids of runs[from..to), separated by commas. */
static const char *job_list(const struct dl_run_list *runs, int from, int to,
                            struct dl_arena *arena) {
    size_t length = 1;
    for (int i = from; i < to; i++)
        length += runs->runs[i].job_id == NULL ? 0 : strlen(runs->runs[i].job_id) + 1;
    char *list = dl_arena_alloc(arena, length, 1), *at = list;
    for (int i = from; i < to; i++) {
        if (runs->runs[i].job_id == NULL) continue;
        const size_t size = strlen(runs->runs[i].job_id);
        if (at != list) *at++ = ',';
        memcpy(at, runs->runs[i].job_id, size);
        at += size;
    }
    return list;
}

void dl_slurm_take_lines(struct dl_job_states *out, int capacity, char *text, bool accounting) {
    for (char *line = text; line != NULL && *line != 0;) {
        char *newline = strchr(line, '\n'), *at = line;
        if (newline != NULL) *newline = 0;
        struct dl_job_state job = {.elapsed_s = NAN, .energy_j = NAN};
        job.job_id = next_field(&at);
        char *state = next_field(&at);
        if (state != NULL && *job.job_id != 0 && out->count < capacity) {
            state[strcspn(state, " +")] = 0; /* "CANCELLED by 1000" */
            job.state = state;
            if (accounting) {
                job.elapsed_s = number_of(next_field(&at));
                job.nodes = next_field(&at);
                job.exit_code = next_field(&at);
                job.energy_j = number_of(next_field(&at));
                /* a site without energy meters reports 0 or nothing */
                if (!(job.energy_j > 0)) job.energy_j = NAN;
                /* the state came before the end: the clock of the accounting still runs */
                const char *end = next_field(&at);
                if (end != NULL && strcmp(end, "Unknown") == 0 && dl_slurm_state_final(job.state))
                    job.elapsed_s = job.energy_j = NAN;
            } else {
                job.folder = at; /* the rest of the line: a name may hold a bar */
            }
            out->jobs[out->count++] = job;
        }
        line = newline == NULL ? NULL : newline + 1;
    }
}

static enum dl_code query_sacct(const struct dl_run_list *runs, int capacity,
                                struct dl_arena *arena, struct dl_job_states *out,
                                struct dl_err *err) {
    for (int from = 0; from < runs->count; from += MAX_JOBS_PER_CALL) {
        const int to =
            from + MAX_JOBS_PER_CALL < runs->count ? from + MAX_JOBS_PER_CALL : runs->count;
        const char *list = job_list(runs, from, to, arena);
        char *answer;
        if (list != NULL && *list == 0) continue;
        const char *jobs = list == NULL ? NULL : dl_arena_printf(arena, "--jobs=%s", list);
        const char *const argv[] = {
            "sacct",
            "--allocations",
            "--parsable2",
            "--noheader",
            "--format=JobIDRaw,State,ElapsedRaw,NodeList,ExitCode,ConsumedEnergyRaw,End",
            jobs,
            NULL};
        DL_TRY(dl_client_run(argv, arena, &answer, err));
        const int before = out->count;
        dl_slurm_take_lines(out, capacity, answer, true);
        if (out->count > before) qsort(out->jobs, (size_t)out->count, sizeof *out->jobs, by_job);
    }
    return DL_OK;
}

/* The user's jobs, including those that ended in the last minutes; squeue lists a job immediately,
 * accounting may lag. */
static enum dl_code query_squeue(int capacity, struct dl_arena *arena, struct dl_job_states *out,
                                 struct dl_err *err) {
    const char *const argv[] = {"squeue", "--me", "--noheader", "--states=all", "--format=%A|%T|%Z",
                                NULL};
    char *answer;
    *out = (struct dl_job_states){
        .jobs = dl_arena_alloc(arena, (size_t)capacity + 1, sizeof *out->jobs)};
    DL_TRY(dl_client_run(argv, arena, &answer, err));
    dl_slurm_take_lines(out, capacity, answer, false);
    qsort(out->jobs, (size_t)out->count, sizeof *out->jobs, by_job);
    return DL_OK;
}

static void add_new(struct dl_job_states *out, int capacity, const struct dl_job_states *queue) {
    const struct dl_job_states known = *out; /* sorted */
    for (int i = 0; i < queue->count && out->count < capacity; i++) {
        if (dl_slurm_state_of(&known, queue->jobs[i].job_id) == NULL)
            out->jobs[out->count++] = queue->jobs[i];
    }
    qsort(out->jobs, (size_t)out->count, sizeof *out->jobs, by_job);
}

static bool same_folder(const char *left, const char *right) {
    struct stat a, b;
    return left != NULL && stat(left, &a) == 0 && stat(right, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

/* submit may have died after sbatch had taken the job. */
static void find_lost_ids(struct dl_run_list *runs, const struct dl_job_states *queue) {
    for (int i = 0; i < runs->count; i++) {
        struct dl_run_record *run = &runs->runs[i];
        for (int k = 0; run->job_id == NULL && k < queue->count; k++)
            if (same_folder(queue->jobs[k].folder, run->folder))
                run->job_id = queue->jobs[k].job_id;
    }
}

/* squeue --me does not list other users' jobs. */
static bool is_own(const struct dl_run_record *run) {
    struct stat info;
    return stat(run->folder, &info) == 0 && info.st_uid == geteuid();
}

/* For jobs that the accounting lists as running, the queue is newer. */
static void update_open(const struct dl_run_list *runs, struct dl_job_states *out,
                        const struct dl_job_states *queue) {
    for (int i = 0; i < runs->count; i++) {
        const struct dl_run_record *run = &runs->runs[i];
        const struct dl_job_state *job = dl_slurm_state_of(out, run->job_id),
                                  *listed = dl_slurm_state_of(queue, run->job_id);
        if (job == NULL || dl_slurm_state_final(job->state)) continue;
        if (listed != NULL && !dl_slurm_state_final(listed->state)) continue;
        if (listed == NULL && !is_own(run)) continue;
        struct dl_job_state *newer = &out->jobs[job - out->jobs];
        newer->state = listed != NULL ? listed->state : DL_SLURM_LOST;
        newer->elapsed_s = newer->energy_j = NAN; /* not the last word */
    }
}

/* Jobs unknown to both. */
static void add_lost(const struct dl_run_list *runs, int capacity, struct dl_job_states *out) {
    const struct dl_job_states known = *out; /* sorted */
    for (int i = 0; i < runs->count && out->count < capacity; i++) {
        const struct dl_run_record *run = &runs->runs[i];
        if (run->job_id == NULL || !is_own(run) || dl_slurm_state_of(&known, run->job_id) != NULL)
            continue;
        out->jobs[out->count++] = (struct dl_job_state){
            .job_id = run->job_id, .state = DL_SLURM_LOST, .elapsed_s = NAN, .energy_j = NAN};
    }
    qsort(out->jobs, (size_t)out->count, sizeof *out->jobs, by_job);
}

enum dl_code dl_slurm_states(struct dl_run_list *runs, bool accounting, struct dl_arena *arena,
                             struct dl_job_states *out, struct dl_err *err) {
    const int capacity = 4 * runs->count + 20000; /* the user may have other jobs in the queue */
    struct dl_job_states listed = {.count = 0};
    *out = (struct dl_job_states){
        .jobs = dl_arena_alloc(arena, (size_t)capacity + 1, sizeof *out->jobs)};
    const enum dl_code code = accounting ? query_sacct(runs, capacity, arena, out, err) : DL_OK;
    bool ask = false;
    for (int i = 0; i < runs->count; i++) {
        const struct dl_job_state *job = dl_slurm_state_of(out, runs->runs[i].job_id);
        ask = ask || job == NULL || !dl_slurm_state_final(job->state);
    }
    if (ask && query_squeue(capacity, arena, &listed, &out->queue) == DL_OK) {
        find_lost_ids(runs, &listed);
        update_open(runs, out, &listed);
        add_new(out, capacity, &listed);
        if (code == DL_OK) add_lost(runs, capacity, out);
    }
    return code;
}

static const struct dl_column columns[] = {
    {"id", "run", "", DL_COLUMN_STRING, 0, 0},
    {"job_id", "job", "", DL_COLUMN_STRING, 0, 0},
    {"state", "state", "", DL_COLUMN_STRING, 0, 0},
    {"elapsed_s", "elapsed", "s", DL_COLUMN_NUMBER, 0, 4},
    {"warmup_steps", "warmup", "steps", DL_COLUMN_INTEGER, 0, 0},
    {"steps", "measured", "steps", DL_COLUMN_INTEGER, 0, 0},
    {"steps_wanted", "of", "steps", DL_COLUMN_INTEGER, 0, 0},
    {"node_list", "nodes", "", DL_COLUMN_STRING, 0, 0},
    {"failure", "message", "", DL_COLUMN_STRING, 0, 0},
};

enum dl_code dl_slurm_read_runs(struct dl_context *context, const struct dl_options *options,
                                struct dl_run_list *runs, bool *accounting, struct dl_err *err) {
    const struct dl_site *site = NULL;
    const char *name = dl_option_text(options, "site");
    *accounting = true;
    if (name != NULL) {
        DL_TRY(dl_site_load(context, name, &site, err));
        *accounting = site->accounting;
    }
    DL_TRY(dl_runs_read(dl_slurm_folder(options, site), context->arena, runs, err));
    if (runs->unreadable > 0) {
        char text[2048];
        dl_err_text(&runs->fault, "dlmodel slurm", text, sizeof text);
        context->note(context, "warning: %d folders were skipped; the first: %s", runs->unreadable,
                      text);
    }
    for (int i = 0; i < runs->count; i++) {
        struct dl_runlog log;
        if (runs->runs[i].job_id != NULL) continue;
        DL_TRY(dl_runlog_read(runs->runs[i].folder, context->arena, &log, err));
        runs->runs[i].job_id = log.job_id;
    }
    return DL_OK;
}

enum dl_code dl_slurm_status(struct dl_context *context, const struct dl_options *options,
                             struct dl_err *err) {
    struct dl_run_list runs;
    struct dl_job_states states;
    struct dl_table table;
    bool accounting = true;
    struct dl_err slurm = {0};
    enum dl_format format = DL_FORMAT_TEXT;
    DL_TRY(dl_output_format(options, &format, err));
    DL_TRY(dl_slurm_read_runs(context, options, &runs, &accounting, err));
    enum dl_code asked = dl_slurm_states(&runs, accounting, context->arena, &states, &slurm);
    if (asked == DL_OK && states.queue.code != DL_OK) {
        slurm = states.queue; /* the current state matters */
        asked = slurm.code;
    }
    dl_table_init(&table, context->arena, columns, sizeof columns / sizeof columns[0]);
    for (int i = 0; i < runs.count; i++) {
        const struct dl_run_record *run = &runs.runs[i];
        const struct dl_job_state *state = dl_slurm_state_of(&states, run->job_id);
        struct dl_runlog log;
        DL_TRY(dl_runlog_read(run->folder, context->arena, &log, err));
        union dl_cell *cells = dl_table_row(&table);
        cells[0].string = run->id;
        cells[1].string = run->job_id;
        cells[2].string = state != NULL         ? state->state
                          : run->job_id == NULL ? "not submitted"
                                                : "unknown";
        if (state != NULL) cells[3].number = state->elapsed_s;
        cells[4].integer = log.warmup_count;
        cells[5].integer = log.step_count;
        cells[6].integer = run->steps;
        cells[7].string = state != NULL && state->nodes != NULL ? state->nodes : log.nodes;
        cells[8].string = log.failure != NULL ? log.failure : "";
    }
    DL_TRY(dl_slurm_print(context, options, format, "dlmodel-slurm-status", &table, err));
    if (asked != DL_OK) *err = slurm;
    return asked;
}

/* scancel ignores jobs that have ended. Only runs in this folder are cancelled. */
enum dl_code dl_slurm_cancel(struct dl_context *context, const struct dl_options *options,
                             struct dl_err *err) {
    struct dl_run_list runs;
    bool accounting = true;
    DL_TRY(dl_slurm_read_runs(context, options, &runs, &accounting, err));
    for (int i = 0; i < runs.count; i++) {
        struct dl_job_states queue;
        if (runs.runs[i].job_id != NULL) continue;
        DL_TRY(query_squeue(20000, context->arena, &queue, err));
        find_lost_ids(&runs, &queue);
        break;
    }
    const char **argv = dl_arena_alloc(context->arena, (size_t)runs.count + 2, sizeof *argv);
    int count = 0, named = 0;
    argv[count++] = "scancel";
    for (int i = 0; i < runs.count; i++) {
        bool wanted = options->positional_count == 1 && dl_option_given(options, "all");
        for (int k = 1; k < options->positional_count; k++)
            wanted = wanted || strcmp(options->positional[k], runs.runs[i].id) == 0;
        named += wanted;
        if (wanted && runs.runs[i].job_id != NULL) argv[count++] = runs.runs[i].job_id;
    }
    if (options->positional_count == 1 && !dl_option_given(options, "all")) {
        return dl_fail(err, DL_ERR_USAGE,
                       "missing names of runs ('dlmodel slurm status' lists them) or --all");
    }
    if (options->positional_count > 1 && named < options->positional_count - 1) {
        return dl_fail(err, DL_ERR_USAGE,
                       "%d of the named runs are not in %.300s; nothing was cancelled",
                       options->positional_count - 1 - named, dl_slurm_folder(options, NULL));
    }
    if (count == 1) return dl_fail(err, DL_ERR_USAGE, "none of these runs was submitted");
    char *answer;
    DL_TRY(dl_client_run(argv, context->arena, &answer, err));
    context->note(context, "cancelled the jobs of %d runs; their measurements are kept", count - 1);
    return DL_OK;
}
