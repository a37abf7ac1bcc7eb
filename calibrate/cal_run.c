/* cal_run.c - see the header. */
#include "calibrate/cal_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef DLMODEL_LIBEXECDIR
#define DLMODEL_LIBEXECDIR "/usr/local/libexec/dlmodel"
#endif

static const double SURVEY_SILENCE_S = 20; /* a probe program that lists itself, at most */
static const double SILENCE_S = 60;        /* without a sample; grows with the shares */

static const char *find_tool(const char *program, const char *name, struct dl_arena *arena) {
    const char *slash = strrchr(program, '/');
    const char *beside = slash == NULL ? NULL : dl_arena_printf(arena, "%.*s", (int)(slash - program), program);
    const char *moved = slash == NULL ? NULL : dl_arena_printf(arena, "%s/../libexec/dlmodel", beside);
    const char *directories[] = {beside, getenv("DLMODEL_LIBEXEC"), moved, DLMODEL_LIBEXECDIR};
    for (size_t i = 0; i < sizeof directories / sizeof *directories; i++) {
        const char *path = directories[i] == NULL ? NULL : dl_arena_printf(arena, "%s/%s", directories[i], name);
        if (path != NULL && access(path, X_OK) == 0) return path;
    }
    return NULL;
}

struct survey {
    struct dl_cal_tools *tools;
    struct dl_arena *arena;
};

static enum dl_code hear_survey(void *context, const char *text, size_t length, struct dl_err *err) {
    struct survey *s = context;
    struct dl_cal_line line;
    DL_TRY(dl_cal_line_parse("dlmodel-probe-cpu --list", 0, text, length, s->arena, &line, err));
    for (int i = 0; line.has_probe && dl_cal_probes[i].name != NULL; i++) {
        if (strcmp(line.probe.name, dl_cal_probes[i].name) == 0) s->tools->probes[i] = line.probe;
    }
    const int room = (int)(sizeof s->tools->facts / sizeof *s->tools->facts);
    if (line.has_fact && s->tools->fact_count < room) s->tools->facts[s->tools->fact_count++] = line.fact;
    return DL_OK;
}

static enum dl_code hear_version(void *context, const char *text, size_t length, struct dl_err *err) {
    (void)err;
    struct survey *s = context;
    const char *line = dl_arena_strndup(s->arena, text, length);
    if (line != NULL && (strstr(line, "Open MPI") != NULL || strstr(line, "OpenRTE") != NULL)) s->tools->open_mpi = true;
    return DL_OK;
}

/* DL_OK also when the program fails: its silence says enough. */
static enum dl_code ask(const char *path, const char *option, dl_cal_on_line *hear, struct survey *s, struct dl_err *err) {
    char *const argv[] = {dl_arena_strdup(s->arena, path), dl_arena_strdup(s->arena, option), NULL};
    struct dl_cal_ending ending;
    if (argv[0] == NULL || argv[1] == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    return dl_cal_child_run(argv, SURVEY_SILENCE_S, hear, s, &ending, err);
}

enum dl_code dl_cal_survey(const char *program, struct dl_arena *arena, struct dl_cal_tools *out, struct dl_err *err) {
    struct survey s = {out, arena};
    *out = (struct dl_cal_tools){.cpu = find_tool(program, "dlmodel-probe-cpu", arena),
                                 .mpi = find_tool(program, "dlmodel-probe-mpi", arena),
                                 .mpirun = dl_cal_find_program("mpirun", arena)};
    const char *no_mpi = out->mpi == NULL
                             ? "dlmodel-probe-mpi is not there: built without MPI (install libopenmpi-dev and build again)"
                         : out->mpirun == NULL ? "mpirun is not in PATH (install openmpi-bin)"
                                               : NULL;
    for (int i = 0; dl_cal_probes[i].name != NULL; i++) {
        out->probes[i] = (struct dl_cal_report){
            dl_cal_probes[i].name,
            dl_cal_probes[i].mpi ? no_mpi
                                 : "dlmodel-probe-cpu is not there, or does not run (set DLMODEL_LIBEXEC to its directory)"};
    }
    if (out->cpu != NULL) DL_TRY(ask(out->cpu, "--list", hear_survey, &s, err));
    if (no_mpi == NULL) DL_TRY(ask(out->mpirun, "--version", hear_version, &s, err));
    return DL_OK;
}

const char *dl_cal_unavailable(const struct dl_cal_tools *tools, const struct dl_cal_point *point) {
    for (int i = 0; dl_cal_probes[i].name != NULL; i++) {
        if (strcmp(dl_cal_probes[i].name, point->probe) == 0 && tools->probes[i].unavailable != NULL)
            return tools->probes[i].unavailable;
    }
    if (point->child == DL_CAL_TCP && !tools->open_mpi) return "only Open MPI can be told to use TCP on one host";
    return NULL;
}

struct run {
    const struct dl_cal_plan *plan;
    const struct dl_cal_tools *tools;
    struct dl_cal_journal *journal;
    const struct dl_cal_progress *progress;
    struct dl_arena *arena;
    size_t done, all, samples_of_child;
};

static void warn(const struct run *r, const char *text) {
    if (text != NULL) r->progress->warn(r->progress->context, text);
}

static enum dl_code hear_sample(void *context, const char *text, size_t length, struct dl_err *err) {
    struct run *r = context;
    struct dl_cal_line line;
    struct dl_err bad;
    /* mpirun and MPI libraries may print words of their own. */
    if (length == 0 || text[0] != '{') return DL_OK;
    if (dl_cal_line_parse("probe", 0, text, length, r->arena, &line, &bad) != DL_OK) {
        return dl_fail(err, DL_ERR_BACKEND, "a probe wrote a line that is not a sample: %.200s", bad.message);
    }
    if (line.has_fact) return dl_cal_journal_fact(r->journal, line.fact.key, line.fact.value, r->arena, err);
    if (line.has_skipped) {
        warn(r, dl_arena_printf(r->arena, "%s left out: %s", line.skipped.name, line.skipped.unavailable));
        r->done++;
    }
    if (!line.has_sample) return DL_OK;
    DL_TRY(dl_cal_journal_sample(r->journal, &line.sample, r->arena, err));
    r->done++;
    r->samples_of_child++;
    r->progress->sample(r->progress->context, &line.sample, r->done, r->all);
    return DL_OK;
}

static bool missing(const struct run *r, const struct dl_cal_point *point, enum dl_cal_child child) {
    return point->child == child && !dl_cal_journal_has(r->journal, point) && dl_cal_unavailable(r->tools, point) == NULL;
}

/* Command line of a child for the points that are missing. NULL: out of memory. */
static char **command(const struct run *r, enum dl_cal_child child) {
    enum { FIXED = 32 };
    char **argv = dl_arena_alloc(r->arena, FIXED + 4 * r->plan->count, sizeof *argv);
    size_t n = 0;
    if (argv == NULL) return NULL;
#define PUSH(text) (argv[n++] = dl_arena_strdup(r->arena, text))
    if (child != DL_CAL_CPU) {
        PUSH(r->tools->mpirun);
        static const char *const open_mpi[] = {"--allow-run-as-root",
                                               "--oversubscribe",
                                               "--bind-to",
                                               "none",
                                               "--mca",
                                               "pml",
                                               "ob1",
                                               "--mca",
                                               "mpi_yield_when_idle",
                                               "1", /* a rank that waits leaves its core to others */
                                               NULL};
        for (int i = 0; r->tools->open_mpi && open_mpi[i] != NULL; i++) PUSH(open_mpi[i]);
        if (r->tools->open_mpi) {
            PUSH("--mca");
            PUSH("btl");
            PUSH(child == DL_CAL_TCP ? "tcp,self" : "vader,self");
        }
        if (child == DL_CAL_TCP) {
            PUSH("--mca");
            PUSH("btl_tcp_if_include");
            PUSH("lo");
        }
        PUSH("-np");
        argv[n++] = dl_arena_printf(r->arena, "%lld", (long long)r->plan->choice.ranks);
        PUSH(r->tools->mpi);
    } else {
        PUSH(r->tools->cpu);
        PUSH("--dir");
        PUSH(r->plan->choice.file_dir);
    }
    PUSH("--points");
    for (size_t i = 0; i < r->plan->count; i++) {
        const struct dl_cal_point *p = &r->plan->points[i];
        if (!missing(r, p, child)) continue;
        PUSH(p->probe);
        PUSH(p->shape);
        PUSH(p->pass);
        argv[n++] = dl_arena_printf(r->arena, "%.6g", p->share_s);
    }
#undef PUSH
    for (size_t i = 0; i < n; i++) {
        if (argv[i] == NULL) return NULL;
    }
    return argv;
}

static enum dl_code run_child(struct run *r, enum dl_cal_child child, struct dl_err *err) {
    size_t count = 0;
    double longest_s = 0;
    /* Without its programs a child has no command line. */
    for (size_t i = 0; i < r->plan->count; i++) count += missing(r, &r->plan->points[i], child);
    if (count == 0) return DL_OK;
    char **argv = command(r, child);
    if (argv == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    if (count == 0) return DL_OK;
    struct dl_cal_ending ending;
    r->samples_of_child = 0;
    DL_TRY(dl_cal_child_run(argv, SILENCE_S + 20 * longest_s, hear_sample, r, &ending, err));
    if (ending.exit_status == 0) return DL_OK;
    for (char *c = ending.last_words; *c != 0; c++) {
        if (*c == '\n') *c = ' ';
    }
    const char *what = child == DL_CAL_CPU ? "dlmodel-probe-cpu" : "mpirun dlmodel-probe-mpi";
    const char *how = ending.exit_status >= 0 ? dl_arena_printf(r->arena, "exit status %d", ending.exit_status)
                                              : dl_arena_printf(r->arena, "signal %d", ending.signal);
    if (child != DL_CAL_CPU && r->samples_of_child == 0) { /* no MPI that works: a profile without it is still a profile */
        warn(r, dl_arena_printf(r->arena, "MPI probes (%s) left out: %s: %s: %.300s", child == DL_CAL_TCP ? "tcp" : "shm", what,
                                how, ending.last_words));
        return DL_OK;
    }
    return dl_fail(err, DL_ERR_BACKEND, "%s failed (%s): %.300s; finished samples are in %.200s, --resume goes on", what, how,
                   ending.last_words, r->journal->path);
}

/* Each reason once. */
static void warn_unavailable(struct run *r) {
    const char *last = NULL;
    for (size_t i = 0; i < r->plan->count; i++) {
        const char *reason = dl_cal_unavailable(r->tools, &r->plan->points[i]);
        if (reason != NULL && reason != last)
            warn(r, dl_arena_printf(r->arena, "%s left out: %s", r->plan->points[i].probe, reason));
        last = reason;
    }
}

enum dl_code dl_cal_measure(const struct dl_cal_plan *plan, const struct dl_cal_tools *tools, struct dl_cal_journal *journal,
                            const struct dl_cal_progress *progress, struct dl_arena *arena, struct dl_err *err) {
    struct run r = {.plan = plan, .tools = tools, .journal = journal, .progress = progress, .arena = arena};
    warn_unavailable(&r);
    for (size_t i = 0; i < plan->count; i++) {
        if (dl_cal_unavailable(tools, &plan->points[i]) != NULL) continue;
        r.all++;
        r.done += dl_cal_journal_has(journal, &plan->points[i]);
    }
    for (int child = 0; child < DL_CAL_CHILDREN; child++) {
        enum dl_code code =
            dl_cal_interrupted() ? dl_fail(err, DL_ERR_SYSTEM, "interrupted") : run_child(&r, (enum dl_cal_child)child, err);
        if (code != DL_OK && dl_cal_interrupted()) {
            return dl_fail(err, DL_ERR_SYSTEM,
                           "interrupted after %zu of %zu samples; 'dlmodel calibrate --resume' goes on from %.300s", r.done,
                           r.all, journal->path);
        }
        DL_TRY(code);
    }
    return DL_OK;
}
