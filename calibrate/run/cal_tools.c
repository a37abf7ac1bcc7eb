/* cal_tools.c - see the header. */
#include "calibrate/run/cal_tools.h"
#include "calibrate/run/cal_launch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef DLMODEL_LIBEXECDIR
#define DLMODEL_LIBEXECDIR "/usr/local/libexec/dlmodel"
#endif

static const double SURVEY_SILENCE_S = 20; /* time-out of --list */

static const char *find_tool(const char *program, const char *name, struct dl_arena *arena) {
    const char *slash = strrchr(program, '/');
    const char *own =
        slash == NULL ? NULL : dl_arena_printf(arena, "%.*s", (int)(slash - program), program);
    const char *moved = slash == NULL ? NULL : dl_arena_printf(arena, "%s/../libexec/dlmodel", own);
    const char *directories[] = {own, getenv("DLMODEL_LIBEXEC"), moved, DLMODEL_LIBEXECDIR};
    for (size_t i = 0; i < sizeof directories / sizeof *directories; i++) {
        const char *path =
            directories[i] == NULL ? NULL : dl_arena_printf(arena, "%s/%s", directories[i], name);
        if (path != NULL && access(path, X_OK) == 0) return path;
    }
    return NULL;
}

struct survey {
    struct dl_cal_tools *tools;
    struct dl_arena *arena;
};

static enum dl_code hear_survey(void *context, const char *text, size_t length,
                                struct dl_err *err) {
    struct survey *s = context;
    struct dl_cal_line line;
    DL_TRY(dl_cal_line_parse("a probe's --list", 0, text, length, s->arena, &line, err));
    for (int i = 0; line.has_probe && dl_cal_probes[i].name != NULL; i++) {
        if (strcmp(line.probe.name, dl_cal_probes[i].name) == 0) s->tools->probes[i] = line.probe;
    }
    const int room = (int)(sizeof s->tools->facts / sizeof *s->tools->facts);
    if (line.has_fact && s->tools->fact_count < room)
        s->tools->facts[s->tools->fact_count++] = line.fact;
    return DL_OK;
}

static enum dl_code hear_version(void *context, const char *text, size_t length,
                                 struct dl_err *err) {
    (void)err;
    struct survey *s = context;
    const char *line = dl_arena_strndup(s->arena, text, length);
    if (strstr(line, "Open MPI") != NULL || strstr(line, "OpenRTE") != NULL)
        s->tools->open_mpi = true;
    return DL_OK;
}

/* DL_OK also when the program fails: see *ending. */
static enum dl_code query(const char *path, const char *option, dl_child_output *hear,
                          struct survey *s, struct dl_child_ending *ending, struct dl_err *err) {
    const char *const argv[] = {path, option, NULL};
    return dl_cal_child_run(argv, SURVEY_SILENCE_S, hear, s, ending, err);
}

/* Why a program cannot run at all; NULL: it is installed. */
static const char *missing_program(const struct dl_cal_tools *tools, enum dl_cal_program program) {
    if (program == DL_CAL_PROGRAM_MPI && tools->program[program] == NULL)
        return "dlmodel-probe-mpi is missing: built without MPI (install libopenmpi-dev and "
               "rebuild)";
    if (program == DL_CAL_PROGRAM_CUDA && tools->program[program] == NULL)
        return "dlmodel-probe-cuda is missing: built without CUDA (set CUDA_HOME to the toolkit "
               "and rebuild)";
    if (program == DL_CAL_PROGRAM_CUDNN && tools->program[program] == NULL)
        return "dlmodel-probe-cudnn is missing: built without cuDNN (install it into CUDA_HOME "
               "and rebuild)";
    if (program == DL_CAL_PROGRAM_NCCL && tools->program[program] == NULL)
        return "dlmodel-probe-nccl is missing: built without NCCL (install it into CUDA_HOME and "
               "rebuild)";
    if (program == DL_CAL_PROGRAM_MPI && tools->mpirun == NULL && tools->srun == NULL)
        return "mpirun is not in PATH (install openmpi-bin)";
    return tools->program[program] == NULL ? "dlmodel-probe-cpu is missing or does not run (set "
                                             "DLMODEL_LIBEXEC to its directory)"
                                           : NULL;
}

/* Usually an error of the loader: a library of the build machine is missing here. */
static void does_not_run(struct dl_cal_tools *tools, enum dl_cal_program program,
                         struct dl_child_ending *ending, struct dl_arena *arena) {
    ending->last_words[strcspn(ending->last_words, "\n")] = 0;
    const char *reason =
        dl_arena_printf(arena, "%s does not run: %s (check LD_LIBRARY_PATH and loaded modules)",
                        dl_cal_program_names[program], ending->last_words);
    for (int i = 0; dl_cal_probes[i].name != NULL && reason != NULL; i++) {
        if (dl_cal_probes[i].program == program) tools->probes[i].unavailable = reason;
    }
}

static struct dl_cal_report *report_of(struct dl_cal_tools *tools, const char *probe) {
    for (int i = 0; dl_cal_probes[i].name != NULL; i++) {
        if (strcmp(dl_cal_probes[i].name, probe) == 0) return &tools->probes[i];
    }
    return NULL;
}

/* Only MPI itself knows whether it supports device buffers: where there is a GPU, query one rank.
 */
static enum dl_code query_device_buffers(struct survey *s, struct dl_err *err) {
    static const char *const names[] = {"gpu-pingpong", "gpu-allreduce"};
    struct dl_cal_tools *tools = s->tools;
    struct dl_child_ending ending;
    const char *no_gpu = dl_cal_unavailable_probe(tools, "gpu-gemm");
    size_t n = 0;
    if (report_of(tools, names[0])->unavailable != NULL) return DL_OK;
    for (int i = 0; i < 2; i++)
        report_of(tools, names[i])->unavailable =
            no_gpu != NULL ? no_gpu : "MPI did not report whether it supports device buffers";
    if (no_gpu != NULL || tools->mpirun == NULL) return DL_OK;
    const char **argv = dl_cal_local_words(tools, 1, false, 4, s->arena, &n);
    argv[n++] = tools->program[DL_CAL_PROGRAM_MPI];
    argv[n++] = "--list";
    argv[n] = NULL;
    return dl_cal_child_run(argv, SURVEY_SILENCE_S, hear_survey, s, &ending, err);
}

double dl_cal_tool_fact(const struct dl_cal_tools *tools, const char *key) {
    for (int i = 0; i < tools->fact_count; i++) {
        if (strcmp(tools->facts[i].key, key) == 0) return strtod(tools->facts[i].value, NULL);
    }
    return NAN;
}

enum dl_code dl_cal_survey(const char *program, struct dl_arena *arena, struct dl_cal_tools *out,
                           struct dl_err *err) {
    struct survey s = {out, arena};
    struct dl_child_ending version;
    *out = (struct dl_cal_tools){.mpirun = dl_cal_find_program("mpirun", arena),
                                 .srun = dl_cal_find_program("srun", arena)};
    for (int i = 0; i < DL_CAL_PROGRAMS; i++)
        out->program[i] = find_tool(program, dl_cal_program_names[i], arena);
    for (int i = 0; dl_cal_probes[i].name != NULL; i++) {
        const char *reason = missing_program(out, dl_cal_probes[i].program);
        /* until the program reports its probes */
        if (reason == NULL && dl_cal_probes[i].program != DL_CAL_PROGRAM_MPI)
            reason = dl_arena_printf(arena, "%s does not run",
                                     dl_cal_program_names[dl_cal_probes[i].program]);
        out->probes[i] = (struct dl_cal_report){dl_cal_probes[i].name, reason};
    }
    /* The MPI program needs its launcher and can always run its probes, except those with device
     * buffers: see query_device_buffers. */
    for (int i = 0; i < DL_CAL_PROGRAMS; i++) {
        struct dl_child_ending ending;
        if (i == DL_CAL_PROGRAM_MPI || out->program[i] == NULL) continue;
        DL_TRY(query(out->program[i], "--list", hear_survey, &s, &ending, err));
        if (ending.exit_status != 0) does_not_run(out, (enum dl_cal_program)i, &ending, arena);
    }
    if (missing_program(out, DL_CAL_PROGRAM_MPI) == NULL && out->mpirun != NULL)
        DL_TRY(query(out->mpirun, "--version", hear_version, &s, &version, err));
    return query_device_buffers(&s, err);
}

const char *dl_cal_unavailable_probe(const struct dl_cal_tools *tools, const char *probe) {
    for (int i = 0; dl_cal_probes[i].name != NULL; i++) {
        if (strcmp(dl_cal_probes[i].name, probe) == 0) return tools->probes[i].unavailable;
    }
    return "no such probe";
}

const char *dl_cal_unavailable(const struct dl_cal_tools *tools, const struct dl_cal_point *point) {
    const struct dl_cal_child_row *child = &dl_cal_children[point->child];
    const char *reason = dl_cal_unavailable_probe(tools, point->probe);
    if (reason != NULL) return reason;
    if (child->start == DL_CAL_START_LOCAL && tools->mpirun == NULL)
        return "mpirun is not in PATH (install openmpi-bin)";
    if (point->child == DL_CAL_TCP && !tools->open_mpi)
        return "only Open MPI can be forced to use TCP within a host";
    if (child->start != DL_CAL_START_HOSTS) return NULL;
    if (tools->no_hosts != NULL) return tools->no_hosts;
    if (tools->hosts_left > 0 &&
        dl_cal_shape_number(point->shape, "ranks") > (double)tools->hosts_left)
        return "too few nodes are left";
    return NULL;
}
