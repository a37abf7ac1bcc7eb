/* probe_nccl_start.c - rank and address of this process; spawning the ranks of its node. See
 * probe_nccl.h. */
#define _GNU_SOURCE /* gethostname */
#include "calibrate/probes/nccl/probe_nccl.h"

#ifdef DL_HAVE_MPI
#include <mpi.h>
#endif
#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct dl_meeting dl_meeting = {.ranks = 1, .per_node = 1, .listener = -1};

static const char VARIABLE[] =
    "DLMODEL_NCCL_RANK"; /* carries rank and address to a spawned process */
enum { FIRST_PORT = 20000, PORTS = 20000 };

static int environment(const char *name, int fallback) {
    const char *text = getenv(name);
    return text == NULL || *text == 0 ? fallback : atoi(text);
}

/* A socket that listens on a port (0: any); on_loopback: for processes of this node alone. */
static enum dl_code listen_at(int port, bool on_loopback, struct dl_meeting *m,
                              struct dl_err *err) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    socklen_t length = sizeof at;
    const int yes = 1;
    at.sin_addr.s_addr = htonl(on_loopback ? INADDR_LOOPBACK : INADDR_ANY);
    m->listener = socket(AF_INET, SOCK_STREAM, 0);
    if (m->listener >= 0) setsockopt(m->listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (m->listener < 0 || bind(m->listener, (struct sockaddr *)&at, sizeof at) != 0 ||
        listen(m->listener, 1024) != 0 ||
        getsockname(m->listener, (struct sockaddr *)&at, &length) != 0)
        return dl_fail(err, DL_ERR_BACKEND, "cannot listen on TCP port %d: %s", port,
                       strerror(errno));
    m->port = ntohs(at.sin_port);
    if (on_loopback)
        snprintf(m->host, sizeof m->host, "127.0.0.1");
    else if (gethostname(m->host, sizeof m->host) != 0)
        return dl_fail(err, DL_ERR_BACKEND, "this host has no name");
    return DL_OK;
}

/* First host of "node[01-04,07],other": "node01". */
static void first_host(const char *list, char *out, size_t out_size) {
    const size_t plain = strcspn(list, "[,");
    size_t digits = 0;
    if (list[plain] == '[') digits = strcspn(list + plain + 1, "-,]");
    snprintf(out, out_size, "%.*s%.*s", (int)plain, list, (int)digits,
             list[plain] == '[' ? list + plain + 1 : "");
}

/* Slurm numbers the tasks; job and step id give the port, so that all ranks know it. */
static enum dl_code from_slurm(struct dl_meeting *m, struct dl_err *err) {
    const char *nodes = getenv("SLURM_STEP_NODELIST") != NULL ? getenv("SLURM_STEP_NODELIST")
                                                              : getenv("SLURM_JOB_NODELIST");
    m->rank = environment("SLURM_PROCID", 0);
    m->ranks = environment("SLURM_STEP_NUM_TASKS", environment("SLURM_NTASKS", 1));
    m->local = environment("SLURM_LOCALID", 0);
    const int nodes_count = environment("SLURM_STEP_NUM_NODES", environment("SLURM_NNODES", 1));
    m->per_node = nodes_count > 0 ? m->ranks / nodes_count : 1;
    if (nodes == NULL || m->ranks < 1 || m->per_node < 1 || m->per_node * nodes_count != m->ranks) {
        return dl_fail(
            err, DL_ERR_BACKEND,
            "%d tasks on %d nodes: start the same number on each node (srun --ntasks-per-node)",
            m->ranks, nodes_count);
    }
    m->port = FIRST_PORT +
              (environment("SLURM_JOB_ID", 0) * 31 + environment("SLURM_STEP_ID", 0) * 7) % PORTS;
    first_host(nodes, m->host, sizeof m->host);
    if (m->rank != 0) return DL_OK;
    char name[DL_HOST_BYTES];
    snprintf(name, sizeof name, "%s", m->host);
    DL_TRY(listen_at(m->port, false, m, err));
    snprintf(m->host, sizeof m->host, "%s", name);
    return DL_OK;
}

#ifdef DL_HAVE_MPI
static bool mpi_used;

static bool under_mpi(void) {
    static const char *const signs[] = {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_SIZE",
                                        "MPI_LOCALRANKID"};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        if (getenv(signs[i]) != NULL) return true;
    }
    return false;
}

static enum dl_code from_mpi(struct dl_meeting *m, struct dl_err *err) {
    MPI_Comm node;
    MPI_Init(NULL, NULL);
    mpi_used = true;
    MPI_Comm_rank(MPI_COMM_WORLD, &m->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &m->ranks);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, m->rank, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &m->local);
    MPI_Comm_size(node, &m->per_node);
    MPI_Comm_free(&node);
    int failed = m->rank == 0 && listen_at(0, false, m, err) != DL_OK;
    MPI_Bcast(&failed, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (failed)
        return m->rank == 0 ? err->code
                            : dl_fail(err, DL_ERR_BACKEND, "rank 0 cannot listen on a port");
    MPI_Bcast(m->host, (int)sizeof m->host, MPI_CHAR, 0, MPI_COMM_WORLD);
    MPI_Bcast(&m->port, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return DL_OK;
}

void dl_meeting_end(void) {
    if (mpi_used) MPI_Finalize();
}
#else
static bool under_mpi(void) { return false; }
static enum dl_code from_mpi(struct dl_meeting *m, struct dl_err *err) {
    (void)m;
    return dl_fail(err, DL_ERR_BACKEND, "built without MPI");
}
void dl_meeting_end(void) {}
#endif

enum dl_code dl_meeting_find(int spawn, struct dl_meeting *out, struct dl_err *err) {
    const char *given = getenv(VARIABLE);
    *out = (struct dl_meeting){.ranks = 1, .per_node = 1, .listener = -1};
    if (given != NULL && spawn == 0) {
        char *at = NULL;
        out->rank = (int)strtol(given, &at, 10);
        out->ranks = (int)strtol(at, &at, 10);
        out->local = (int)strtol(at, &at, 10);
        out->per_node = (int)strtol(at, &at, 10);
        out->listener = (int)strtol(at, &at, 10);
        out->port = (int)strtol(at, &at, 10);
        snprintf(out->host, sizeof out->host, "%s", at + strspn(at, " "));
        if (out->ranks > 0 && out->per_node > 0 && out->rank >= 0 && out->rank < out->ranks)
            return DL_OK;
        return dl_fail(err, DL_ERR_BACKEND, "%s is set, but not by dlmodel-probe-nccl: unset it",
                       VARIABLE);
    }
    if (under_mpi()) return from_mpi(out, err);
    /* With --spawn, one process on one node suffices, even inside an allocation. */
    if (getenv("SLURM_PROCID") != NULL &&
        environment("SLURM_STEP_NUM_TASKS", environment("SLURM_NTASKS", 1)) > 1)
        return from_slurm(out, err);
    if (spawn > 0) return listen_at(0, true, out, err);
    return dl_fail(err, DL_ERR_BACKEND,
                   "neither --spawn N nor a launcher: start this program with mpirun or srun, one "
                   "process per GPU");
}

static void become_rank(const struct dl_meeting *node, int spawn, int local, char **argv) {
    char text[DL_HOST_BYTES + 128];
    const int rank = node->rank * spawn + local;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (rank != 0 && node->listener >= 0) close(node->listener);
    snprintf(text, sizeof text, "%d %d %d %d %d %d %s", rank, node->ranks * spawn, local, spawn,
             rank == 0 ? node->listener : -1, node->port, node->host);
    setenv(VARIABLE, text, 1);
    /* The launcher's variables describe the parent, not this process. */
    static const char *const signs[] = {
        "OMPI_COMM_WORLD_SIZE", "PMIX_RANK",   "PMI_RANK", "PMI_SIZE",
        "MPI_LOCALRANKID",      "SLURM_PROCID"};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) unsetenv(signs[i]);
    execv("/proc/self/exe", argv);
    _exit(127);
}

/* Why a rank ended, if it could not report it itself; else "". */
static void describe_end(const struct dl_meeting *node, int spawn, int local, int status, char *out,
                         size_t out_size) {
    const int rank = node->rank * spawn + local;
    out[0] = 0;
    if (WIFSIGNALED(status))
        snprintf(out, out_size, "rank %d of %d (GPU %d of its node) was killed by signal %d\n",
                 rank, node->ranks * spawn, local, WTERMSIG(status));
    else if (WEXITSTATUS(status) == 127)
        snprintf(out, out_size, "cannot start rank %d\n", rank);
}

static int index_of(const pid_t *pids, int count, pid_t pid) {
    for (int i = 0; i < count; i++)
        if (pids[i] == pid) return i;
    return -1;
}

/* The first failing rank decides the status; the others get a moment to report, then are killed.
 * Ranks that miss a dead one end too, and this process may learn of them first: a rank that was
 * killed is the cause in whatever order they are found. */
static int wait_for_ranks(const struct dl_meeting *node, int spawn, const pid_t *pids) {
    static const double GRACE_S = 5;
    char cause[160] = ""; /* printed last: calibrate shows the end of this output */
    bool killed = false;
    int left = spawn, result = 0;
    double end_s = HUGE_VAL;
    while (left > 0) {
        int status = 0;
        const pid_t pid = waitpid(-1, &status, WNOHANG);
        if (pid <= 0) {
            const struct timespec pause = {.tv_nsec = 20000000};
            if (pid < 0 && errno != EINTR) break;
            if (dl_now_s() > end_s) {
                for (int i = 0; i < spawn; i++) kill(pids[i], SIGKILL);
                end_s = HUGE_VAL;
                killed = true;
            }
            nanosleep(&pause, NULL);
            continue;
        }
        left--;
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
        const int local = index_of(pids, spawn, pid);
        if (cause[0] == 0 && !killed && local >= 0)
            describe_end(node, spawn, local, status, cause, sizeof cause);
        if (result == 0) {
            result = DL_ERR_BACKEND;
            end_s = dl_now_s() + GRACE_S;
        }
    }
    fputs(cause, stderr);
    return result;
}

int dl_meeting_spawn(const struct dl_meeting *node, int spawn, char **argv) {
    enum { MOST = 64 };
    pid_t pids[MOST];
    if (spawn > MOST) {
        fprintf(stderr, "--spawn %d: at most %d\n", spawn, MOST);
        return DL_ERR_USAGE;
    }
    for (int i = 0; i < spawn; i++) {
        pids[i] = fork();
        if (pids[i] == 0) become_rank(node, spawn, i, argv);
        if (pids[i] < 0) {
            fprintf(stderr, "cannot start rank %d: %s\n", i, strerror(errno));
            for (int j = 0; j < i; j++) kill(pids[j], SIGTERM);
            return DL_ERR_SYSTEM;
        }
    }
    if (node->listener >= 0) close(node->listener);
    return wait_for_ranks(node, spawn, pids);
}
