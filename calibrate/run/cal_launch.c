/* cal_launch.c - see the header. For the options of the launchers see the manual pages mpirun(1) of
 * Open MPI 4.1, mpiexec(1) of MPICH Hydra and srun(1) of Slurm. */
#include "calibrate/run/cal_launch.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "model/core/file.h"

static const double QUERY_SILENCE_S = 20;
enum { MAX_FILE_BYTES = 1 << 20, FIXED_WORDS = 48 };

struct words {
    struct dl_arena *arena;
    const char **argv;
    size_t count, capacity;
};

static void push(struct words *w, const char *text) {
    if (w->count < w->capacity) w->argv[w->count++] = text;
}

static void push_all(struct words *w, const char *const *texts) {
    for (; *texts != NULL; texts++) push(w, *texts);
}

static struct words begin(size_t room, struct dl_arena *arena) {
    return (struct words){.arena = arena,
                          .argv = dl_arena_alloc(arena, FIXED_WORDS + room + 1, sizeof(char *)),
                          .capacity = FIXED_WORDS};
}

/* ---- hosts ---- */

struct list {
    const char **names;
    size_t count;
    struct dl_arena *arena;
};

/* A host with several slots may be listed several times: it is one node. */
static void add_host(struct list *list, const char *name, size_t length) {
    const char *copy = dl_arena_strndup(list->arena, name, length);
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(list->names[i], copy) == 0) return;
    }
    list->names = dl_arena_grow(list->arena, list->names, list->count, sizeof *list->names);
    list->names[list->count++] = copy;
}

/* "node1 slots=2 # comment" or "node1:2": the name is the first word. */
static enum dl_code add_line(void *context, const char *line, size_t length, struct dl_err *err) {
    (void)err;
    size_t start = 0, stop;
    while (start < length && isspace((unsigned char)line[start])) start++;
    for (stop = start; stop < length && strchr(" \t\r:#", line[stop]) == NULL; stop++) {
    }
    if (stop > start) add_host(context, line + start, stop - start);
    return DL_OK;
}

static enum dl_code read_hosts(const char *path, struct list *list, struct dl_err *err) {
    char *text;
    size_t length;
    DL_TRY(dl_file_read(path, MAX_FILE_BYTES, list->arena, &text, &length, err));
    for (char *at = text; at < text + length;) {
        const char *newline = memchr(at, '\n', (size_t)(text + length - at));
        const size_t size = newline != NULL ? (size_t)(newline - at) : (size_t)(text + length - at);
        DL_TRY(add_line(list, at, size, err));
        at += size + 1;
    }
    return list->count > 0 ? DL_OK
                           : dl_fail_at(err, path, 1, 1, NULL, "expected host names, one per line");
}

/* Slurm writes "node[01-04,07]"; scontrol expands it. */
static enum dl_code expand_nodelist(const char *nodes, struct list *list, struct dl_err *err) {
    struct dl_child_ending ending;
    const char *scontrol = dl_cal_find_program("scontrol", list->arena);
    if (scontrol == NULL)
        return dl_fail(err, DL_ERR_BACKEND,
                       "inside a Slurm allocation, but scontrol is not in PATH; give --hostfile");
    const char *const argv[] = {scontrol, "show", "hostnames", nodes, NULL};
    DL_TRY(dl_cal_child_run(argv, QUERY_SILENCE_S, add_line, list, &ending, err));
    if (ending.exit_status == 0 && list->count > 0) return DL_OK;
    return dl_fail(err, DL_ERR_BACKEND,
                   "scontrol show hostnames %.100s failed: %.200s; give --hostfile", nodes,
                   ending.last_words);
}

static enum dl_code hear_pmix(void *context, const char *line, size_t length, struct dl_err *err) {
    (void)err;
    bool *pmix = context;
    for (size_t i = 0; i + 4 <= length; i++) *pmix = *pmix || memcmp(line + i, "pmix", 4) == 0;
    return DL_OK;
}

/* Open MPI under srun needs PMIx; `srun --mpi=list` shows whether this Slurm supports it. */
static enum dl_code query_srun(struct dl_cal_launch *launch, struct dl_err *err) {
    struct dl_child_ending ending;
    const char *const argv[] = {launch->tools->srun, "--mpi=list", NULL};
    bool heard = false;
    DL_TRY(dl_cal_child_run(argv, QUERY_SILENCE_S, hear_pmix, &heard, &ending, err));
    launch->pmix = heard || strstr(ending.last_words, "pmix") != NULL;
    launch->slurm = launch->pmix || !launch->tools->open_mpi;
    return DL_OK;
}

enum dl_code dl_cal_launch_find(const struct dl_cal_choice *choice,
                                const struct dl_cal_tools *tools, struct dl_arena *arena,
                                struct dl_cal_launch *out, struct dl_err *err) {
    struct list list = {.arena = arena};
    const char *slurm = getenv("SLURM_JOB_NODELIST"), *pbs = getenv("PBS_NODEFILE");
    *out = (struct dl_cal_launch){
        .tools = tools, .launcher = choice->launcher, .host_count = (size_t)choice->nodes};
    if (choice->hostfile != NULL)
        DL_TRY(read_hosts(choice->hostfile, &list, err));
    else if (slurm != NULL && getenv("SLURM_JOB_ID") != NULL)
        DL_TRY(expand_nodelist(slurm, &list, err));
    else if (pbs != NULL)
        DL_TRY(read_hosts(pbs, &list, err));
    else if (choice->launcher != NULL)
        return DL_OK;
    else
        return dl_fail(err, DL_ERR_USAGE,
                       "--nodes %lld: no allocation here (neither SLURM_JOB_NODELIST nor "
                       "PBS_NODEFILE is set); run inside one (salloc, sbatch), or give --hostfile "
                       "FILE or --launcher CMD",
                       (long long)choice->nodes);
    if (list.count < (size_t)choice->nodes) {
        return dl_fail(err, DL_ERR_USAGE, "--nodes %lld: %s has only %zu hosts",
                       (long long)choice->nodes,
                       choice->hostfile != NULL ? choice->hostfile : "the allocation", list.count);
    }
    out->hosts = list.names;
    if (choice->launcher == NULL && choice->hostfile == NULL && slurm != NULL &&
        tools->srun != NULL)
        DL_TRY(query_srun(out, err));
    if (choice->launcher == NULL && !out->slurm && tools->mpirun == NULL)
        return dl_fail(
            err, DL_ERR_BACKEND,
            "--nodes %lld: mpirun is not in PATH; install openmpi-bin or give --launcher",
            (long long)choice->nodes);
    return DL_OK;
}

/* ---- command lines ---- */

bool dl_cal_launch_chooses(const struct dl_cal_launch *launch) {
    return launch->hosts != NULL &&
           (launch->launcher == NULL || strstr(launch->launcher, "{hosts}") != NULL);
}

static const char *join(const char *const *hosts, size_t count, struct dl_arena *arena) {
    size_t length = 1;
    for (size_t i = 0; hosts != NULL && i < count; i++) length += strlen(hosts[i]) + 1;
    char *text = dl_arena_alloc(arena, length, 1), *at = text;
    for (size_t i = 0; hosts != NULL && i < count; i++) {
        if (i > 0) *at++ = ',';
        const size_t size = strlen(hosts[i]);
        memcpy(at, hosts[i], size);
        at += size;
    }
    *at = 0;
    return text;
}

/* One word of --launcher, with its placeholders substituted. */
static const char *fill_in(const char *word, const char *hosts, const char *ranks,
                           struct dl_arena *arena) {
    static const char *const names[] = {"{hosts}", "{ranks}"};
    const char *const values[] = {hosts, ranks};
    for (int i = 0; i < 2; i++) {
        const char *at = strstr(word, names[i]);
        if (at != NULL)
            word = dl_arena_printf(arena, "%.*s%s%s", (int)(at - word), word, values[i],
                                   at + strlen(names[i]));
    }
    return word;
}

/* Splits at blanks outside quotes. */
static void push_launcher(struct words *w, const char *text, const char *hosts, const char *ranks) {
    char *word = dl_arena_alloc(w->arena, strlen(text) + 1, 1);
    for (const char *at = text + strspn(text, " \t"); *at != 0; at += strspn(at, " \t")) {
        size_t length = 0;
        for (char quote = 0; *at != 0 && (quote != 0 || strchr(" \t", *at) == NULL); at++) {
            if (quote == 0 && (*at == '\'' || *at == '"'))
                quote = *at;
            else if (*at == quote)
                quote = 0;
            else
                word[length++] = *at;
        }
        word[length] = 0;
        const char *full =
            w->count == 0 && strchr(word, '/') == NULL ? dl_cal_find_program(word, w->arena) : NULL;
        push(w, full != NULL ? full
                             : fill_in(dl_arena_strdup(w->arena, word), hosts, ranks, w->arena));
    }
}

const char **dl_cal_launch_words(const struct dl_cal_launch *launch, const char *const *hosts,
                                 size_t count, size_t room, struct dl_arena *arena,
                                 size_t *word_count) {
    struct words w = begin(room, arena);
    const char *list = join(hosts, count, arena), *ranks = dl_arena_printf(arena, "%zu", count);
    if (launch->launcher != NULL) {
        w.capacity += strlen(launch->launcher) / 2; /* an upper bound of its words */
        w.argv = dl_arena_alloc(arena, w.capacity + room + 1, sizeof(char *));
        push_launcher(&w, launch->launcher, list, ranks);
    } else if (launch->slurm) {
        push(&w, launch->tools->srun);
        if (launch->pmix) push(&w, "--mpi=pmix");
        push_all(&w, (const char *const[]){"--nodes", ranks, "--ntasks", ranks, "--ntasks-per-node",
                                           "1", "--nodelist", list, "--kill-on-bad-exit=1", NULL});
    } else if (launch->tools->open_mpi) {
        push(&w, launch->tools->mpirun);
        push_all(&w, (const char *const[]){"--allow-run-as-root", "--host", list, "--map-by",
                                           "ppr:1:node", "--bind-to", "none", "-np", ranks, NULL});
    } else {
        push(&w, launch->tools->mpirun);
        push_all(&w, (const char *const[]){"-hosts", list, "-ppn", "1", "-n", ranks, NULL});
    }
    *word_count = w.count;
    return w.argv;
}

/* Inside an allocation of several nodes, mpirun would spread the ranks over them; unset its
 * variables to stay on this node. */
static void push_outside(struct words *w) {
    static const char *const names[] = {
        "SLURM_JOB_ID", "SLURM_JOBID", "SLURM_JOB_NODELIST", "SLURM_NODELIST", "PBS_JOBID",
        "PBS_NODEFILE", NULL};
    const char *env = dl_cal_find_program("env", w->arena);
    bool any = false;
    for (int i = 0; names[i] != NULL; i++) any = any || getenv(names[i]) != NULL;
    if (!any || env == NULL) return;
    push(w, env);
    for (int i = 0; names[i] != NULL; i++) push_all(w, (const char *const[]){"-u", names[i], NULL});
}

const char **dl_cal_local_words(const struct dl_cal_tools *tools, int64_t ranks, bool tcp,
                                size_t room, struct dl_arena *arena, size_t *word_count) {
    /* A waiting rank yields its core. */
    static const char *const open_mpi[] = {"--allow-run-as-root",
                                           "--oversubscribe",
                                           "--bind-to",
                                           "none",
                                           "--mca",
                                           "pml",
                                           "ob1",
                                           "--mca",
                                           "mpi_yield_when_idle",
                                           "1",
                                           NULL};
    struct words w = begin(room, arena);
    push_outside(&w);
    push(&w, tools->mpirun);
    if (tools->open_mpi) {
        push_all(&w, open_mpi);
        push_all(&w, (const char *const[]){"--mca", "btl", tcp ? "tcp,self" : "vader,self", NULL});
    }
    if (tcp) push_all(&w, (const char *const[]){"--mca", "btl_tcp_if_include", "lo", NULL});
    push_all(&w, (const char *const[]){"-np", NULL});
    push(&w, dl_arena_printf(arena, "%lld", (long long)ranks));
    *word_count = w.count;
    return w.argv;
}
