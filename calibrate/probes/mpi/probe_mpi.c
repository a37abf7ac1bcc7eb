/* probe_mpi.c - dlmodel-probe-mpi, started by mpirun, srun or another launcher. Probes "pingpong"
 * (ranks 0 and 1, one way = half a round trip) and the collectives. Shape "bytes= ranks=", pass:
 * the transport that the caller chose. `bytes` is the whole buffer of a rank, which it gathers,
 * scatters or sends in total. Ranks beyond `ranks` sleep until the next point. The time of a block
 * is that of the slowest rank; all ranks know it, so that they decide alike when to stop. Rank 0
 * prints. "gpu-pingpong" and "gpu-allreduce" are the same with device buffers, where MPI supports
 * them (probe_mpi_device.c).
 *   --survey: pairs of nodes (probe_mpi_survey.c). --hello: start and end, to see who can.
 * Not modelled: placement of ranks (the caller binds nothing). */
#include "calibrate/probes/common/probe_common.h"

#include <math.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "calibrate/probes/mpi/probe_mpi_device.h"
#include "calibrate/probes/mpi/probe_mpi_survey.h"

enum { HOST, DEVICE };
struct exchange {
    MPI_Comm comm; /* the ranks that take part */
    int rank, ranks, bytes;
    int share;     /* floats of one rank: count / ranks, rounded up */
    size_t count;  /* of floats, at least 1 */
    double last_s; /* of the last call; all ranks have the same */
    bool device;
    float *send, *receive; /* as MPI has them */
    /* in host memory: the same buffers, or copies of the device buffers */
    float *host_send, *host_receive;
};

/* Ranks leave a barrier up to a message apart, and the first call after it waits for the last of
 * them: for short calls, an untimed call comes first. */
static const double SKEWED_BELOW_S = 0.05;

/* of the current point: `preemptions` gets no state */
static MPI_Comm current = MPI_COMM_NULL;

static const char *unavailable(void) { return NULL; }

static void exchange_close(void *state) {
    struct exchange *e = state;
    if (e->device) {
        dl_mpi_device_free(e->send);
        dl_mpi_device_free(e->receive);
    }
    free(e->host_send);
    free(e->host_receive);
    if (e->comm != MPI_COMM_NULL) MPI_Comm_free(&e->comm);
    current = MPI_COMM_NULL;
}

static enum dl_code on_device(struct exchange *e, size_t room, struct dl_err *err) {
    void *send = NULL, *receive = NULL;
    enum dl_code code = dl_mpi_device_alloc(room * sizeof(float), &send, err);
    if (code == DL_OK) code = dl_mpi_device_alloc(room * sizeof(float), &receive, err);
    e->send = send;
    e->receive = receive;
    if (code == DL_OK) code = dl_mpi_device_put(e->send, e->host_send, room * sizeof(float), err);
    return code == DL_OK ? dl_mpi_device_put(e->receive, e->host_receive, room * sizeof(float), err)
                         : code;
}

/* Copies the received data to host memory for a check. */
static bool fetch(const struct exchange *e) {
    struct dl_err err;
    const size_t room = (size_t)e->share * (size_t)e->ranks + 1;
    return !e->device ||
           dl_mpi_device_get(e->host_receive, e->receive, room * sizeof(float), &err) == DL_OK;
}

/* All ranks fail if one does; else the others would wait forever. Buffers hold a full share for
 * each rank. */
static enum dl_code exchange_fill(struct exchange *e, const struct dl_point *point,
                                  struct dl_err *err) {
    int failed, any = 0;
    MPI_Comm_rank(e->comm, &e->rank);
    MPI_Comm_size(e->comm, &e->ranks);
    e->bytes = (int)dl_point_number(point, "bytes", 8);
    e->count = (size_t)e->bytes / sizeof(float);
    e->share = (int)((e->count + (size_t)e->ranks - 1) / (size_t)e->ranks);
    const size_t room = (size_t)e->share * (size_t)e->ranks + 1;
    e->host_send = malloc(room * sizeof(float));
    e->host_receive = calloc(room, sizeof(float));
    failed = e->host_send == NULL || e->host_receive == NULL;
    if (!failed) {
        dl_fill_random(e->host_send, room, (uint64_t)e->rank + 1);
        if (e->device)
            failed = on_device(e, room, err) != DL_OK;
        else
            e->send = e->host_send, e->receive = e->host_receive;
    }
    MPI_Allreduce(&failed, &any, 1, MPI_INT, MPI_MAX, e->comm);
    return any ? dl_fail(err, DL_ERR_SYSTEM, "out of memory for messages %s", point->shape) : DL_OK;
}

/* DL_ERR_SYSTEM on a rank that does not take part in this point: it continues to the next one and
 * waits there. */
static enum dl_code exchange_open(const struct dl_point *point, void *state, struct dl_err *err) {
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const long wanted = dl_point_number(point, "ranks", ranks);
    struct exchange *e = state;
    e->comm = MPI_COMM_NULL;
    e->device = point->variant == DEVICE;
    dl_mpi_gather_ranks();
    if (wanted > ranks)
        return dl_fail(err, DL_ERR_SYSTEM, "needs %ld ranks, but only %d were started", wanted,
                       ranks);
    MPI_Comm_split(MPI_COMM_WORLD, rank < wanted ? 0 : MPI_UNDEFINED, rank, &e->comm);
    if (e->comm == MPI_COMM_NULL)
        return dl_fail(err, DL_ERR_SYSTEM, "this rank takes no part in the point");
    return exchange_fill(e, point, err);
}

static double slowest(const struct exchange *e, double elapsed) {
    double most = elapsed;
    MPI_Allreduce(&elapsed, &most, 1, MPI_DOUBLE, MPI_MAX, e->comm);
    return most;
}

static long any_preemptions(void) {
    long own = dl_preemptions(), all = own;
    if (current != MPI_COMM_NULL) MPI_Allreduce(&own, &all, 1, MPI_LONG, MPI_SUM, current);
    return all;
}

static double start(const struct exchange *e) {
    current = e->comm;
    MPI_Barrier(e->comm);
    return MPI_Wtime();
}

static double pingpong_run(void *state, long calls, struct dl_err *err) {
    (void)err;
    const struct exchange *e = state;
    const double began = start(e);
    for (long i = 0; i < calls && e->rank < 2; i++) {
        if (e->rank == 0) {
            MPI_Send(e->send, e->bytes, MPI_BYTE, 1, 0, e->comm);
            MPI_Recv(e->receive, e->bytes, MPI_BYTE, 1, 0, e->comm, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(e->receive, e->bytes, MPI_BYTE, 0, 0, e->comm, MPI_STATUS_IGNORE);
            MPI_Send(e->receive, e->bytes, MPI_BYTE, 0, 0, e->comm);
        }
    }
    return slowest(e, e->rank < 2 ? 0.5 * (MPI_Wtime() - began) : 0);
}

/* Each of these needs data of every rank before it ends, so the calls can follow each other
 * directly. */
#define COLLECTIVE(name, call)                                                                     \
    static double name(void *state, long calls, struct dl_err *err) {                              \
        (void)err;                                                                                 \
        struct exchange *e = state;                                                                \
        double began = start(e);                                                                   \
        if (e->last_s < SKEWED_BELOW_S) {                                                          \
            call;                                                                                  \
            began = MPI_Wtime();                                                                   \
        }                                                                                          \
        for (long i = 0; i < calls; i++) call;                                                     \
        const double elapsed = slowest(e, MPI_Wtime() - began);                                    \
        e->last_s = elapsed / (double)calls;                                                       \
        return elapsed;                                                                            \
    }
COLLECTIVE(allreduce_run,
           MPI_Allreduce(e->send, e->receive, (int)e->count, MPI_FLOAT, MPI_SUM, e->comm))
COLLECTIVE(allgather_run,
           MPI_Allgather(e->send, e->share, MPI_FLOAT, e->receive, e->share, MPI_FLOAT, e->comm))
COLLECTIVE(reducescatter_run,
           MPI_Reduce_scatter_block(e->send, e->receive, e->share, MPI_FLOAT, MPI_SUM, e->comm))
COLLECTIVE(alltoall_run,
           MPI_Alltoall(e->send, e->share, MPI_FLOAT, e->receive, e->share, MPI_FLOAT, e->comm))

/* The root could start a broadcast while the previous one is in flight: an untimed barrier
 * separates them. */
static double broadcast_run(void *state, long calls, struct dl_err *err) {
    (void)err;
    const struct exchange *e = state;
    float *buffer = e->rank == 0 ? e->send : e->receive;
    double sum = 0;
    for (long i = 0; i < calls; i++) {
        const double began = start(e);
        MPI_Bcast(buffer, (int)e->count, MPI_FLOAT, 0, e->comm);
        sum += MPI_Wtime() - began;
    }
    return slowest(e, sum);
}

static enum dl_code any_wrong(const struct exchange *e, bool wrong, const char *what,
                              struct dl_err *err) {
    int mine = wrong, any = 0;
    MPI_Allreduce(&mine, &any, 1, MPI_INT, MPI_MAX, e->comm);
    return any ? dl_fail(err, DL_ERR_BACKEND, "%s", what) : DL_OK;
}

/* Fills the host send buffer with what `rank` sends. */
static void fill_as(const struct exchange *e, int rank) {
    dl_fill_random(e->host_send, (size_t)e->share * (size_t)e->ranks + 1, (uint64_t)rank + 1);
}

/* Rank 0 gets its own message back; rank 1 has that of rank 0. */
static enum dl_code pingpong_verify(void *state, struct dl_err *err) {
    const struct exchange *e = state;
    bool wrong = false;
    if (e->rank < 2) {
        fill_as(e, 0);
        wrong = !fetch(e) || memcmp(e->host_send, e->host_receive,
                                    (size_t)e->bytes / sizeof(float) * sizeof(float)) != 0;
    }
    return any_wrong(e, wrong, "a message delivered wrong data", err);
}

/* received[i], i < count, is the sum over ranks of what they have at first + i. */
static bool is_sum(const struct exchange *e, size_t first, size_t count) {
    double *sum = calloc(count, sizeof *sum);
    bool wrong = sum == NULL || !fetch(e);
    for (int r = 0; r < e->ranks && sum != NULL; r++) {
        fill_as(e, r);
        for (size_t i = 0; i < count; i++) sum[i] += (double)e->host_send[first + i];
    }
    for (size_t i = 0; i < count && !wrong; i++)
        wrong = !(fabs(sum[i] - (double)e->host_receive[i]) <= 1e-6 * e->ranks);
    free(sum);
    return !wrong;
}

static enum dl_code allreduce_verify(void *state, struct dl_err *err) {
    const struct exchange *e = state;
    return any_wrong(e, !is_sum(e, 0, e->count), "the sum of an all-reduce is wrong", err);
}

static enum dl_code reducescatter_verify(void *state, struct dl_err *err) {
    const struct exchange *e = state;
    const size_t share = (size_t)e->share;
    return any_wrong(e, !is_sum(e, share * (size_t)e->rank, share),
                     "the sum of a reduce-scatter is wrong", err);
}

/* Share r of the received data equals what rank r sends at `first`. */
static bool has_shares(const struct exchange *e, size_t first) {
    bool good = true;
    const size_t share = (size_t)e->share;
    for (int r = 0; r < e->ranks; r++) {
        fill_as(e, r);
        good = good && memcmp(e->host_send + first, e->host_receive + share * (size_t)r,
                              share * sizeof(float)) == 0;
    }
    return good;
}

static enum dl_code allgather_verify(void *state, struct dl_err *err) {
    const struct exchange *e = state;
    return any_wrong(e, !has_shares(e, 0), "an all-gather delivered wrong data", err);
}

static enum dl_code alltoall_verify(void *state, struct dl_err *err) {
    const struct exchange *e = state;
    return any_wrong(e, !has_shares(e, (size_t)e->share * (size_t)e->rank),
                     "an all-to-all delivered wrong data", err);
}

static enum dl_code broadcast_verify(void *state, struct dl_err *err) {
    const struct exchange *e = state;
    fill_as(e, 0);
    const bool wrong =
        e->rank != 0 && memcmp(e->host_send, e->host_receive, e->count * sizeof(float)) != 0;
    return any_wrong(e, wrong, "a broadcast delivered wrong data", err);
}

static void facts(void) {
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    MPI_Get_library_version(text, &length);
    text[strcspn(text, ",\n")] = 0;
    dl_print_fact("mpi", text);
}

/* A block holds many calls: the barrier before it and the reduction after it take microseconds
 * themselves, and the skew of the ranks at the start of a collective counts as its time. */
#define PROBE(probe, text, block_s)                                                                \
    static const struct dl_probe probe = DL_PROBE(                                                 \
        #probe, text, block_s, unavailable, struct exchange, exchange_open, probe##_run,           \
        .verify = probe##_verify, .close = exchange_close, .preemptions = any_preemptions)
PROBE(pingpong, "MPI point-to-point", 200e-6);
PROBE(allreduce, "MPI all-reduce", 10e-3);
PROBE(allgather, "MPI all-gather", 10e-3);
PROBE(broadcast, "MPI broadcast", 2e-3);
PROBE(reducescatter, "MPI reduce-scatter", 10e-3);
PROBE(alltoall, "MPI all-to-all", 10e-3);
static const struct dl_probe gpu_pingpong =
    DL_PROBE("gpu-pingpong", "MPI point-to-point, device buffers", 200e-6, dl_mpi_device_absent,
             struct exchange, exchange_open, pingpong_run, .verify = pingpong_verify,
             .close = exchange_close, .preemptions = any_preemptions, .variant = DEVICE);
static const struct dl_probe gpu_allreduce =
    DL_PROBE("gpu-allreduce", "MPI all-reduce, device buffers", 10e-3, dl_mpi_device_absent,
             struct exchange, exchange_open, allreduce_run, .verify = allreduce_verify,
             .close = exchange_close, .preemptions = any_preemptions, .variant = DEVICE);
static const struct dl_probe *const probes[] = {&gpu_pingpong,  &gpu_allreduce, &pingpong,
                                                &allreduce,     &allgather,     &broadcast,
                                                &reducescatter, &alltoall,      NULL};

int main(int argc, char **argv) {
    int rank = 0, status = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "--hello") == 0) {
        MPI_Barrier(MPI_COMM_WORLD);
    } else if (strcmp(what, "--survey") == 0) {
        dl_mpi_print_hosts();
        status = dl_mpi_survey();
    } else {
        /* collective over all ranks; only rank 0 lists */
        if (strcmp(what, "--list") == 0) dl_mpi_device_absent();
        status = dl_probe_main(argc, argv, probes, rank != 0, facts);
    }
    if (status != 0) MPI_Abort(MPI_COMM_WORLD, status);
    MPI_Finalize();
    return status;
}
