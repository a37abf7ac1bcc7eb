/* fake_nccl.c - NCCL between processes of one host. A file in shared memory holds, per rank, the
 * number of started collectives and the location of its operands; elements of a result are read
 * from the device memory of the other process on demand. A collective ends when all ranks have
 * started it: a rank that never does leaves the others waiting. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <nccl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "tests/fake_cuda/fake_gpu.h"

enum { MOST = 16 };

struct place { /* of an operand */
    size_t period, offset;
    int fd;
};
struct slot {
    atomic_uint begun;
    pid_t pid;
    struct place send, to[MOST]; /* of a collective; of messages to each rank */
};
struct board {
    atomic_int joined;
    struct slot slots[MOST];
};
struct ncclComm {
    struct board *board;
    int ranks, rank;
    unsigned begun;
    char path[128];
};
static struct ncclComm *waiting; /* whose last collective cudaEventQuery checks */

ncclResult_t ncclGetVersion(int *version) {
    *version = 22809;
    return ncclSuccess;
}
const char *ncclGetErrorString(ncclResult_t result) {
    return result == ncclSystemError ? "unhandled system error" : "an error of the fake";
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *out) {
    static int number;
    const char *directory = getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/tmp";
    snprintf(out->internal, sizeof out->internal, "%.90s/fake-nccl-%ld-%d", directory,
             (long)getpid(), number++);
    const int fd = open(out->internal, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, sizeof(struct board)) != 0) return ncclSystemError;
    close(fd);
    return ncclSuccess;
}

static void pause_us(long us) {
    const struct timespec pause = {.tv_nsec = us * 1000};
    nanosleep(&pause, NULL);
}

ncclResult_t ncclCommInitRank(ncclComm_t *out, int ranks, ncclUniqueId id, int rank) {
    if (ranks > MOST || rank >= ranks) return ncclInvalidArgument;
    if (fake_plays("late") && rank == fake_number("FAKE_RANK", 1)) {
        for (;;) pause_us(900000);
    }
    struct ncclComm *c = calloc(1, sizeof *c);
    const int fd = open(id.internal, O_RDWR | O_CLOEXEC);
    if (c == NULL || fd < 0) return ncclSystemError;
    c->board = mmap(NULL, sizeof *c->board, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (c->board == MAP_FAILED) return ncclSystemError;
    c->ranks = ranks;
    c->rank = rank;
    snprintf(c->path, sizeof c->path, "%s", id.internal);
    c->board->slots[rank].pid = getpid();
    atomic_fetch_add(&c->board->joined, 1);
    for (int i = 0; atomic_load(&c->board->joined) < ranks; i++) {
        if (i > 60000) return ncclSystemError;
        pause_us(1000);
    }
    if (rank == 0) unlink(c->path); /* all have it */
    *out = c;
    return ncclSuccess;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
    munmap(comm->board, sizeof *comm->board);
    if (waiting == comm) waiting = NULL;
    free(comm);
    return ncclSuccess;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *out) {
    (void)comm;
    *out = ncclSuccess;
    return ncclSuccess;
}
ncclResult_t ncclGroupStart(void) { return ncclSuccess; }
ncclResult_t ncclGroupEnd(void) { return ncclSuccess; }

/* Who asks again and again would keep the others from their core. */
static bool pending(void) {
    for (int r = 0; waiting != NULL && r < waiting->ranks; r++) {
        if (atomic_load(&waiting->board->slots[r].begun) < waiting->begun) {
            pause_us(20);
            return true;
        }
    }
    return false;
}

static struct place place_of(const void *address) {
    struct place p = {0, 0, -1};
    if (!fake_pattern(address, &p.fd, &p.period, &p.offset)) {
        fprintf(stderr, "the fake NCCL: an operand is not memory that was filled\n");
        abort();
    }
    return p;
}

/* Element of another process's memory. */
static double remote(const struct slot *slot, const struct place *place, size_t index) {
    static struct mapped {
        pid_t pid;
        int fd;
        size_t period;
        const char *base;
    } maps[64];
    static size_t count;
    struct mapped *m = NULL;
    for (size_t i = 0; i < count && m == NULL; i++) {
        if (maps[i].pid == slot->pid && maps[i].fd == place->fd && maps[i].period == place->period)
            m = &maps[i];
    }
    if (m == NULL) {
        char path[64];
        snprintf(path, sizeof path, "/proc/%ld/fd/%d", (long)slot->pid, place->fd);
        const int fd = open(path, O_RDONLY | O_CLOEXEC);
        const char *base =
            fd < 0 ? MAP_FAILED : mmap(NULL, place->period, PROT_READ, MAP_SHARED, fd, 0);
        if (fd >= 0) close(fd);
        if (base == MAP_FAILED) {
            fprintf(stderr, "the fake NCCL: cannot read the memory of process %ld: %s\n",
                    (long)slot->pid, strerror(errno));
            abort();
        }
        m = &maps[count < 64 ? count++ : 63];
        *m = (struct mapped){slot->pid, place->fd, place->period, base};
    }
    return fake_decode(FAKE_F32, m->base + (place->offset + index * sizeof(float)) % place->period);
}

static const struct ncclComm *comm_of(const struct fake_op *op) { return op->more; }
static double sum_all(const struct fake_op *op, size_t i) {
    const struct ncclComm *c = comm_of(op);
    double sum = 0;
    for (int r = 0; r < c->ranks; r++)
        sum += remote(&c->board->slots[r], &c->board->slots[r].send, (size_t)op->n[0] + i);
    return sum;
}
static double gathered(const struct fake_op *op, size_t i) {
    const struct ncclComm *c = comm_of(op);
    const struct slot *s = &c->board->slots[i / (size_t)op->n[0]];
    return remote(s, &s->send, i % (size_t)op->n[0]);
}
static double of_root(const struct fake_op *op, size_t i) {
    const struct slot *s = &comm_of(op)->board->slots[op->n[0]];
    return remote(s, &s->send, i);
}
static double of_peer(const struct fake_op *op, size_t i) {
    const struct ncclComm *c = comm_of(op);
    const struct slot *s = &c->board->slots[op->n[0]];
    return remote(s, &s->to[c->rank], i);
}

/* Waits for all ranks; `share` of the bytes crosses each link at 100 GB/s. */
static ncclResult_t begin(ncclComm_t c, const void *send, double bytes, double factor) {
    struct slot *s = &c->board->slots[c->rank];
    c->begun++;
    if (fake_plays("die") && c->rank == fake_number("FAKE_RANK", 1) &&
        c->begun == (unsigned)fake_number("FAKE_CALL", 5))
        raise(SIGKILL);
    if (fake_plays("mute") && c->rank == fake_number("FAKE_RANK", 1) &&
        c->begun == (unsigned)fake_number("FAKE_CALL", 5)) {
        for (;;) pause_us(900000);
    }
    s->send = place_of(send);
    atomic_store(&s->begun, c->begun);
    waiting = c;
    fake_pending = pending;
    fake_spend(6e-6 + 2e-6 * c->ranks + factor * (c->ranks - 1) / c->ranks * bytes / 100e9);
    return ncclSuccess;
}
static void result(ncclComm_t c, void *receive, size_t count,
                   double (*value)(const struct fake_op *, size_t), long n) {
    fake_record((struct fake_op){
        .out = receive, .count = count, .type = FAKE_F32, .value = value, .n = {n}, .more = c});
}

ncclResult_t ncclAllReduce(const void *send, void *receive, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
    (void)type, (void)op, (void)stream;
    result(comm, receive, count, sum_all, 0);
    return begin(comm, send, 4.0 * (double)count, 2);
}
ncclResult_t ncclReduceScatter(const void *send, void *receive, size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
    (void)type, (void)op, (void)stream;
    result(comm, receive, count, sum_all, (long)count * comm->rank);
    return begin(comm, send, 4.0 * (double)count * comm->ranks, 1);
}
ncclResult_t ncclAllGather(const void *send, void *receive, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
    (void)type, (void)stream;
    result(comm, receive, count * (size_t)comm->ranks, gathered, (long)count);
    return begin(comm, send, 4.0 * (double)count * comm->ranks, 1);
}
ncclResult_t ncclBroadcast(const void *send, void *receive, size_t count, ncclDataType_t type,
                           int root, ncclComm_t comm, cudaStream_t stream) {
    (void)type, (void)stream;
    result(comm, receive, count, of_root, root);
    return begin(comm, send, 4.0 * (double)count, 1);
}
ncclResult_t ncclSend(const void *send, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
    (void)type, (void)stream;
    comm->board->slots[comm->rank].to[peer] = place_of(send);
    fake_spend(4e-6 + 4.0 * (double)count / 100e9);
    return ncclSuccess;
}
ncclResult_t ncclRecv(void *receive, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
    (void)type, (void)stream;
    result(comm, receive, count, of_peer, peer);
    fake_spend(4e-6 + 4.0 * (double)count / 100e9);
    waiting = NULL;
    fake_pending = pending;
    return ncclSuccess;
}
