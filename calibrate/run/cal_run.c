/* cal_run.c - see the header. */
#include "calibrate/run/cal_run.h"

#include <math.h>

static const double SILENCE_S = 60; /* without a sample; grows with the shares */

struct run {
    const struct dl_cal_plan *plan;
    const struct dl_cal_tools *tools;
    const struct dl_cal_launch *launch;
    struct dl_cal_journal *journal;
    const struct dl_cal_progress *progress;
    struct dl_arena *arena;
    size_t done, all, samples_of_child;
};

static void warn(const struct run *r, const char *text) {
    if (text != NULL) r->progress->warn(r->progress->context, text);
}

static enum dl_code hear_sample(void *context, const char *text, size_t length,
                                struct dl_err *err) {
    struct run *r = context;
    struct dl_cal_line line;
    struct dl_err bad;
    /* mpirun and MPI libraries may print lines of their own. */
    if (length == 0 || text[0] != '{') return DL_OK;
    if (dl_cal_line_parse("probe", 0, text, length, r->arena, &line, &bad) != DL_OK) {
        return dl_fail(err, DL_ERR_BACKEND, "a probe printed a line that is not a sample: %.200s",
                       bad.message);
    }
    if (line.has_fact)
        return dl_cal_journal_fact(r->journal, line.fact.key, line.fact.value, r->arena, err);
    if (line.has_skipped) {
        warn(r, dl_arena_printf(r->arena, "%s skipped: %s", line.skipped.name,
                                line.skipped.unavailable));
        r->done++;
    }
    if (!line.has_sample) return DL_OK;
    DL_TRY(dl_cal_journal_sample(r->journal, &line.sample, r->arena, err));
    r->done++;
    r->samples_of_child++;
    r->progress->sample(r->progress->context, &line.sample, r->done, r->all);
    return DL_OK;
}

static bool missing(const struct run *r, const struct dl_cal_point *point,
                    enum dl_cal_child child) {
    return point->child == child && !dl_cal_journal_has(r->journal, point) &&
           dl_cal_unavailable(r->tools, point) == NULL;
}

/* Command line of a child for the missing points. */
static const char **command(const struct run *r, enum dl_cal_child child) {
    const struct dl_cal_child_row *row = &dl_cal_children[child];
    const size_t room = 4 * r->plan->count + 10;
    size_t n = 0;
    const char **argv = row->start == DL_CAL_START_HOSTS
                            ? dl_cal_launch_words(r->launch, r->launch->hosts,
                                                  r->launch->host_count, room, r->arena, &n)
                        : row->start == DL_CAL_START_LOCAL
                            ? dl_cal_local_words(r->tools, r->plan->choice.ranks,
                                                 child == DL_CAL_TCP, room, r->arena, &n)
                            : dl_arena_alloc(r->arena, room, sizeof *argv);
    argv[n++] = r->tools->program[row->program];
    if (child == DL_CAL_CPU && r->plan->choice.cores > 0) {
        argv[n++] = "--cores";
        argv[n++] = dl_arena_printf(r->arena, "%lld", (long long)r->plan->choice.cores);
    }
    if (child == DL_CAL_CPU) {
        argv[n++] = "--dir";
        argv[n++] = r->plan->choice.file_dir;
    }
    if (row->program == DL_CAL_PROGRAM_NCCL) {
        argv[n++] = "--spawn";
        argv[n++] = dl_arena_printf(r->arena, "%lld", (long long)r->plan->choice.gpus);
    }
    argv[n++] = "--points";
    for (size_t i = 0; i < r->plan->count; i++) {
        const struct dl_cal_point *p = &r->plan->points[i];
        if (!missing(r, p, child)) continue;
        argv[n++] = p->probe;
        argv[n++] = p->shape;
        argv[n++] = p->pass;
        argv[n++] = dl_arena_printf(r->arena, "%.6g", p->share_s);
    }
    argv[n] = NULL;
    return argv;
}

static const char *child_text(const struct run *r, enum dl_cal_child child) {
    const struct dl_cal_child_row *row = &dl_cal_children[child];
    const char *program = dl_cal_program_names[row->program];
    if (row->start == DL_CAL_START_PLAIN) return program;
    return dl_arena_printf(r->arena, "%s %s",
                           row->start == DL_CAL_START_LOCAL || r->launch->launcher == NULL
                               ? "mpirun"
                               : "the launcher of",
                           program);
}

static enum dl_code run_child(struct run *r, enum dl_cal_child child, struct dl_err *err) {
    size_t count = 0;
    double longest_s = 0;
    /* Count first: a child whose program is missing has no command line. */
    for (size_t i = 0; i < r->plan->count; i++) {
        if (!missing(r, &r->plan->points[i], child)) continue;
        count++;
        longest_s = fmax(longest_s, r->plan->points[i].share_s);
    }
    if (count == 0) return DL_OK;
    const char **argv = command(r, child);
    struct dl_child_ending ending;
    r->samples_of_child = 0;
    DL_TRY(dl_cal_child_run(argv, SILENCE_S + 20 * longest_s, hear_sample, r, &ending, err));
    if (ending.exit_status == 0) return DL_OK;
    for (char *c = ending.last_words; *c != 0; c++) {
        if (*c == '\n') *c = ' ';
    }
    const char *what = child_text(r, child);
    const char *how = ending.exit_status >= 0
                          ? dl_arena_printf(r->arena, "exit status %d", ending.exit_status)
                          : dl_arena_printf(r->arena, "signal %d", ending.signal);
    /* MPI does not work on this node: the profile is useful without it. */
    if (dl_cal_children[child].start == DL_CAL_START_LOCAL && r->samples_of_child == 0) {
        warn(r, dl_arena_printf(r->arena, "MPI probes (%s) skipped: %s: %s: %.300s",
                                dl_cal_children[child].name, what, how, ending.last_words));
        return DL_OK;
    }
    return dl_fail(err, DL_ERR_BACKEND,
                   "%s failed (%s): %.300s; finished samples are in %.200s, continue with --resume",
                   what, how, ending.last_words, r->journal->path);
}

/* Each reason once. */
static void warn_unavailable(struct run *r) {
    const char *last = NULL;
    for (size_t i = 0; i < r->plan->count; i++) {
        const char *reason = dl_cal_unavailable(r->tools, &r->plan->points[i]);
        if (reason != NULL && reason != last)
            warn(r, dl_arena_printf(r->arena, "%s skipped: %s", r->plan->points[i].probe, reason));
        last = reason;
    }
}

static enum dl_code measure_all(struct run *r, struct dl_err *err) {
    for (int child = 0; child < DL_CAL_CHILDREN; child++) {
        if (dl_signal_caught() != 0) return dl_fail(err, DL_ERR_SYSTEM, "interrupted");
        DL_TRY(run_child(r, (enum dl_cal_child)child, err));
    }
    return DL_OK;
}

/* Surveys the nodes first, so that failures show before minutes of samples on this node. */
static enum dl_code find_nodes(struct run *r, struct dl_cal_tools *tools,
                               struct dl_cal_launch *launch, struct dl_err *err) {
    bool wanted = false;
    for (size_t i = 0; i < r->plan->count && launch != NULL; i++) {
        const struct dl_cal_point *p = &r->plan->points[i];
        wanted = wanted ||
                 (dl_cal_children[p->child].start == DL_CAL_START_HOSTS && missing(r, p, p->child));
    }
    return wanted ? dl_cal_nodes_survey(launch, tools, r->journal, r->progress, r->arena, err)
                  : DL_OK;
}

enum dl_code dl_cal_measure(const struct dl_cal_job *job, struct dl_arena *arena,
                            struct dl_err *err) {
    const struct dl_cal_plan *plan = job->plan;
    struct run r = {.plan = plan,
                    .tools = job->tools,
                    .launch = job->launch,
                    .journal = job->journal,
                    .progress = job->progress,
                    .arena = arena};
    enum dl_code code = find_nodes(&r, job->tools, job->launch, err);
    warn_unavailable(&r);
    for (size_t i = 0; i < plan->count; i++) {
        if (dl_cal_unavailable(r.tools, &plan->points[i]) != NULL) continue;
        r.all++;
        r.done += dl_cal_journal_has(r.journal, &plan->points[i]);
    }
    if (code == DL_OK) code = measure_all(&r, err);
    if (code == DL_OK || dl_signal_caught() == 0) return code;
    return dl_fail(
        err, DL_ERR_SYSTEM,
        "interrupted after %zu of %zu samples; 'dlmodel calibrate --resume' continues from %.300s",
        r.done, r.all, r.journal->path);
}
