/* collect.c - `dlmodel slurm collect`: converts job logs and sacct data to a table of runs. It
 * never changes the folders and derives the table from them alone, so that it can be repeated: it
 * updates the rows of these runs in the file and keeps other rows. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/core/csv.h"
#include "model/core/file.h"
#include "model/core/text.h"
#include "slurm/commands/slurm_internal.h"

/* The columns that all tables of runs have, then those of collect. */
static const char column_names[] =
    "id,source,system,framework,strategy,backend,workload,input,precision,optimizer,nodes,"
    "devices_per_node,batch_per_device,global_batch,dp,tp,pp,micro_batch,metric,value,unit,notes,"
    "job_id,state,steps,outliers,warmup_steps,low_s,high_s,mean_s,disturbed,peak_memory_bytes,"
    "elapsed_s,energy_j,versions,quartile_s,core_s,framework_version";
enum { COLUMNS = 38, OLDEST_COLUMNS = 35, FEWEST_STEPS = 3 };

static const struct dl_column *make_columns(struct dl_arena *arena) {
    struct dl_column *columns = dl_arena_alloc(arena, COLUMNS, sizeof *columns);
    const char *rest = column_names;
    for (int i = 0; i < COLUMNS; i++) {
        const char *name = dl_list_next(&rest, arena);
        columns[i] = (struct dl_column){name, name, "", DL_COLUMN_STRING, 0, 0};
    }
    return columns;
}

struct collected {
    struct dl_table table;
    int complete, incomplete, empty, open, disturbed, unsubmitted, profiles, reported;
};

static const char *integer_text(struct dl_arena *arena, int64_t value) {
    return value == DL_ABSENT ? "" : dl_arena_printf(arena, "%" PRId64, value);
}
static const char *number_text(struct dl_arena *arena, double value) {
    return dl_known(value) ? dl_arena_printf(arena, "%.9g", value) : "";
}
static const char *or_empty(const char *text) { return text == NULL ? "" : text; }

static void report(struct dl_context *context, struct collected *c, const char *id,
                   const char *what) {
    enum { MAX_LINES = 20 };
    if (c->reported++ < MAX_LINES)
        context->note(context, "%s: %s", id, what);
    else if (c->reported == MAX_LINES + 1)
        context->note(context, "... and more; 'dlmodel slurm status' lists all runs");
}

/* A run that gets a row. */
struct collected_run {
    const struct dl_run_record *run;
    const struct dl_runlog *log;
    const struct dl_run_summary *sum;
    const struct dl_job_state *job; /* NULL: Slurm has forgotten it */
    bool complete;
    const char *disturbance; /* NULL: none */
};

/* Notes on the row for its users. */
static const char *notes_of(const struct collected_run *r, const char *state,
                            struct dl_arena *arena) {
    const struct dl_run_record *run = r->run;
    const struct dl_runlog *log = r->log;
    const struct dl_run_summary *sum = r->sum;
    const char *disturbance = r->disturbance;
    const char *notes = dl_arena_printf(arena, "median of %d steps", sum->kept);
    if (sum->outliers > 0)
        notes = dl_arena_printf(arena, "%s; %d outliers excluded", notes, sum->outliers);
    if (!r->complete)
        notes = dl_arena_printf(arena, "%s; incomplete: %s after %d of %" PRId64 " steps", notes,
                                state, log->step_count, run->steps);
    if (disturbance != NULL)
        notes = dl_arena_printf(arena, "%s; disturbed: %s", notes, disturbance);
    if (log->damaged_lines > 0)
        notes = dl_arena_printf(arena, "%s; %d damaged log lines", notes, log->damaged_lines);
    if (log->looks == 0) notes = dl_arena_printf(arena, "%s; no preflight", notes);
    if (run->dataset != NULL) notes = dl_arena_printf(arena, "%s; real input", notes);
    return notes;
}

/* Copies the cells, whose arena is freed with their run. */
static void append_row(struct dl_table *table, const char *const cells[COLUMNS]) {
    union dl_cell *row = dl_table_row(table);
    for (int i = 0; i < COLUMNS; i++) {
        row[i].string = dl_arena_strdup(table->arena, cells[i]);
    }
}

static void add_row(struct collected *c, const struct collected_run *r, struct dl_arena *arena) {
    const struct dl_run_record *run = r->run;
    const struct dl_runlog *log = r->log;
    const struct dl_run_summary *sum = r->sum;
    const struct dl_job_state *job = r->job;
    const char *state = job != NULL ? job->state : "unknown";
    const int64_t devices = run->nodes * run->devices_per_node;
    const int64_t batch =
        log->global_batch != DL_ABSENT ? log->global_batch : devices * run->batch_per_device;
    const char *const cells[] = {
        run->id,
        dl_arena_printf(arena, "dlmodel slurm, site %s", run->site),
        run->system,
        run->framework,
        run->strategy,
        or_empty(run->backend),
        run->workload,
        or_empty(run->input),
        run->precision,
        run->optimizer,
        integer_text(arena, run->nodes),
        integer_text(arena, run->devices_per_node),
        integer_text(arena, run->batch_per_device),
        integer_text(arena, batch),
        integer_text(arena, run->dp),
        integer_text(arena, run->tp),
        integer_text(arena, run->pp),
        "",
        "iteration",
        number_text(arena, sum->median_s),
        "s",
        notes_of(r, state, arena),
        or_empty(run->job_id),
        state,
        integer_text(arena, sum->kept),
        integer_text(arena, sum->outliers),
        integer_text(arena, log->warmup_count),
        number_text(arena, sum->low_s),
        number_text(arena, sum->high_s),
        number_text(arena, sum->mean_s),
        r->disturbance != NULL          ? "yes"
        : log->watches + log->looks > 0 ? "no"
                                        : "",
        number_text(arena, log->peak_memory_bytes),
        number_text(arena, job != NULL ? job->elapsed_s : (double)NAN),
        number_text(arena, job != NULL ? job->energy_j : (double)NAN),
        or_empty(log->versions),
        number_text(arena, sum->quartile_s),
        number_text(arena, log->core_s),
        or_empty(log->framework_version),
    };
    _Static_assert(sizeof cells / sizeof cells[0] == COLUMNS, "a cell for each column");
    append_row(&c->table, cells);
}

/* A run whose job may still write is left for the next collection. */
static enum dl_code collect_run(struct dl_context *context, struct collected *c,
                                const struct dl_run_record *run, const struct dl_job_state *job,
                                struct dl_arena *arena, struct dl_err *err) {
    struct dl_runlog log;
    struct dl_run_summary sum;
    int cold;
    DL_TRY(dl_runlog_read(run->folder, arena, &log, err));
    /* the log has more than Slurm about a job it has purged */
    if (job != NULL && strcmp(job->state, DL_SLURM_LOST) == 0 && log.exited) job = NULL;
    const bool ended = dl_slurm_job_ended(job, &log);
    const char *state = job != NULL ? job->state : log.exited ? "ended" : "unknown";
    if (run->job_id == NULL) {
        c->unsubmitted++;
        report(context, c, run->id, "was never submitted");
        return DL_OK;
    }
    if (!ended) {
        c->open++;
        return DL_OK;
    }
    if (access(dl_arena_printf(arena, "%s/campaign.json", run->folder), F_OK) == 0) {
        report(context, c, run->id, "is a campaign: slurm collect --campaign FOLDER");
        return DL_OK;
    }
    if (run->profile) {
        c->profiles++;
        return DL_OK;
    }
    dl_runlog_summarize(&log, arena, &sum, &cold);
    log.warmup_count += cold;
    const bool complete = log.ended && log.step_count >= run->steps;
    const char *cause = log.failure != NULL ? log.failure
                        : log.files == 0    ? "it wrote no log"
                                            : "see slurm-*.out in its folder";
    if (log.step_count < FEWEST_STEPS) {
        c->empty++;
        report(context, c, run->id,
               dl_arena_printf(arena, "%s, %d measured steps, no row: %.300s", state,
                               log.step_count, cause));
        return DL_OK;
    }
    const char *disturbance = dl_runlog_disturbance(&log, arena);
    if (complete)
        c->complete++;
    else {
        c->incomplete++;
        report(context, c, run->id,
               dl_arena_printf(arena, "%s after %d of %" PRId64 " steps, which are kept: %.300s",
                               state, log.step_count, run->steps, cause));
    }
    if (disturbance != NULL) {
        c->disturbed++;
        report(context, c, run->id, dl_arena_printf(arena, "disturbed: %s", disturbance));
    }
    add_row(c, &(struct collected_run){run, &log, &sum, job, complete, disturbance}, arena);
    return DL_OK;
}

/* A device or a pipe has no rows to keep. */
static bool is_table(const char *path) {
    struct stat info;
    return path != NULL && strcmp(path, "-") != 0 && stat(path, &info) == 0 &&
           S_ISREG(info.st_mode);
}

static bool has_row(const struct dl_table *table, const char *id) {
    for (int r = 0; r < table->row_count; r++) {
        if (strcmp(table->cells[r * COLUMNS].string, id) == 0) return true;
    }
    return false;
}

/* Old rows of other runs come first, in their order. */
static enum dl_code merge(const char *path, const struct dl_table *made, struct dl_table *out,
                          struct dl_arena *arena, struct dl_err *err) {
    struct dl_csv old = {.row_count = 0};
    dl_table_init(out, arena, made->columns, COLUMNS);
    if (is_table(path)) {
        DL_TRY(dl_csv_read(path, arena, &old, err));
        /* columns of later versions are empty in old rows */
        bool same = old.column_count >= OLDEST_COLUMNS && old.column_count <= COLUMNS;
        for (int i = 0; same && i < old.column_count; i++)
            same = strcmp(old.header[i], made->columns[i].key) == 0;
        if (!same)
            return dl_fail_at(
                err, path, 1, 1, NULL,
                "expected the columns that collect writes; give another file with -o");
    }
    for (int r = 0; r < old.row_count; r++) {
        if (has_row(made, old.rows[r][0])) continue;
        union dl_cell *row = dl_table_row(out);
        for (int i = 0; i < COLUMNS; i++)
            row[i].string = i < old.column_count ? old.rows[r][i] : "";
    }
    for (int r = 0; r < made->row_count; r++) {
        union dl_cell *row = dl_table_row(out);
        memcpy(row, &made->cells[r * COLUMNS], COLUMNS * sizeof *row);
    }
    return DL_OK;
}

/* Does not touch a file whose contents would not change. */
static enum dl_code put(struct dl_context *context, const struct dl_options *options,
                        const char *path, const char *text, struct dl_err *err) {
    char *old = NULL;
    size_t length = 0;
    struct dl_err none;
    enum { MAX_BYTES = 64 << 20 };
    if (text != NULL && is_table(path) &&
        dl_file_read(path, MAX_BYTES, context->arena, &old, &length, &none) == DL_OK &&
        length == strlen(text) && memcmp(old, text, length) == 0) {
        return DL_OK;
    }
    return context->output(options, text, err);
}

static void summary(struct dl_context *context, const struct collected *c) {
    context->note(context,
                  "%d runs complete (%d disturbed in all), %d incomplete but kept, %d ended "
                  "without measured steps, %d not ended yet, %d never submitted, %d profiles",
                  c->complete, c->disturbed, c->incomplete, c->empty, c->open, c->unsubmitted,
                  c->profiles);
}

enum dl_code dl_slurm_collect(struct dl_context *context, const struct dl_options *options,
                              struct dl_err *err) {
    bool accounting = true;
    struct dl_run_list runs;
    struct dl_job_states states;
    struct collected c = {.complete = 0};
    struct dl_table all;
    struct dl_err slurm = {0};
    const char *path = dl_option_text(options, "output"),
               *campaign = dl_option_text(options, "campaign");
    if (campaign != NULL) return dl_slurm_collect_campaign(context, options, campaign, err);
    DL_TRY(dl_slurm_read_runs(context, options, &runs, &accounting, err));
    const enum dl_code asked = dl_slurm_states(&runs, accounting, context->arena, &states, &slurm);
    if (asked == DL_ERR_SYSTEM) { /* this machine failed, not Slurm: keep the old table */
        *err = slurm;
        return asked;
    }
    dl_table_init(&c.table, context->arena, make_columns(context->arena), COLUMNS);
    for (int i = 0; i < runs.count; i++) {
        struct dl_arena arena = {0};
        const enum dl_code code =
            collect_run(context, &c, &runs.runs[i], dl_slurm_state_of(&states, runs.runs[i].job_id),
                        &arena, err);
        dl_arena_free(&arena);
        if (code != DL_OK) return code;
    }
    DL_TRY(merge(path, &c.table, &all, context->arena, err));
    DL_TRY(put(context, options, path, dl_table_csv(&all), err));
    summary(context, &c);
    if (states.queue.code != DL_OK)
        context->note(context, "warning: %s; ends are taken from %s", states.queue.message,
                      accounting && asked == DL_OK ? "the accounting, else from the logs"
                                                   : "the logs");
    if (asked != DL_OK) {
        *err = slurm;
        context->note(context, "the states of the jobs are unknown; the rows use the logs alone. "
                               "Collect again when Slurm answers");
    }
    return asked;
}
