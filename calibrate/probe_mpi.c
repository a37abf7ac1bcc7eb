/* probe_mpi.c - dlmodel-probe-mpi, started under mpirun. Probes "pingpong" (ranks 0 and 1, one way = half a round trip) and
 * "allreduce" (all ranks, sum of fp32). Shape "bytes= ranks=", pass: the transport that the caller chose. The time of a
 * block is the slowest rank's, and all ranks know it: they decide alike when to stop. Rank 0 prints.
 * Not modelled: placement of ranks (the caller binds nothing), several nodes. */
#include "calibrate/probe_common.h"

#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct exchange {
    int rank, ranks, bytes;
    size_t count; /* of floats, at least 1 */
    float *send, *receive;
};

static const char *unavailable(void) { return NULL; }

static void exchange_close(void *state) {
    struct exchange *e = state;
    free(e->send);
    free(e->receive);
    free(e);
}

/* Ranks must fail together, else the others wait for ever. */
static enum dl_code exchange_open(const struct dl_point *point, void **state, struct dl_err *err) {
    struct exchange *e = calloc(1, sizeof *e);
    int failed = e == NULL, any = 0;
    if (e != NULL) {
        MPI_Comm_rank(MPI_COMM_WORLD, &e->rank);
        MPI_Comm_size(MPI_COMM_WORLD, &e->ranks);
        e->bytes = (int)dl_point_number(point, "bytes", 8);
        e->count = (size_t)e->bytes / sizeof(float);
        e->send = malloc(e->count * sizeof(float) + 1);
        e->receive = calloc(e->count * sizeof(float) + 1, 1);
        failed = e->send == NULL || e->receive == NULL;
    }
    MPI_Allreduce(&failed, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (any) {
        if (e != NULL) exchange_close(e);
        return dl_fail(err, DL_ERR_SYSTEM, "out of memory for messages %s", point->shape);
    }
    dl_fill_random(e->send, e->count, (uint64_t)e->rank + 1);
    *state = e;
    return DL_OK;
}

static double slowest(double elapsed) {
    double most = elapsed;
    MPI_Allreduce(&elapsed, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return most;
}

static long any_preemptions(void) {
    long own = dl_preemptions(), all = own;
    MPI_Allreduce(&own, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

static double pingpong_run(void *state, long calls, struct dl_err *err) {
    (void)err;
    const struct exchange *e = state;
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    for (long i = 0; i < calls && e->rank < 2; i++) {
        if (e->rank == 0) {
            MPI_Send(e->send, e->bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
            MPI_Recv(e->receive, e->bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(e->receive, e->bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(e->receive, e->bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
        }
    }
    return slowest(e->rank < 2 ? 0.5 * (MPI_Wtime() - start) : 0);
}

static double allreduce_run(void *state, long calls, struct dl_err *err) {
    (void)err;
    const struct exchange *e = state;
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    for (long i = 0; i < calls; i++) MPI_Allreduce(e->send, e->receive, (int)e->count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    return slowest(MPI_Wtime() - start);
}

static enum dl_code agree(bool wrong, const char *what, struct dl_err *err) {
    int mine = wrong, any = 0;
    MPI_Allreduce(&mine, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    return any ? dl_fail(err, DL_ERR_BACKEND, "%s", what) : DL_OK;
}

/* Rank 0 gets its own message back; rank 1 has that of rank 0. */
static enum dl_code pingpong_verify(void *state, struct dl_err *err) {
    const struct exchange *e = state;
    bool wrong = false;
    if (e->rank < 2) {
        dl_fill_random(e->send, e->count, 1);
        wrong = memcmp(e->send, e->receive, (size_t)e->bytes / sizeof(float) * sizeof(float)) != 0;
    }
    return agree(wrong, "a message arrived changed", err);
}

static enum dl_code allreduce_verify(void *state, struct dl_err *err) {
    const struct exchange *e = state;
    double *sum = calloc(e->count, sizeof *sum);
    bool wrong = sum == NULL;
    for (int r = 0; r < e->ranks && sum != NULL; r++) {
        dl_fill_random(e->send, e->count, (uint64_t)r + 1);
        for (size_t i = 0; i < e->count; i++) sum[i] += (double)e->send[i];
    }
    for (size_t i = 0; i < e->count && !wrong; i++) wrong = !(fabs(sum[i] - (double)e->receive[i]) <= 1e-6 * e->ranks);
    free(sum);
    return agree(wrong, "the sum of an all-reduce is wrong", err);
}

static void facts(void) {
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    MPI_Get_library_version(text, &length);
    text[strcspn(text, ",\n")] = 0;
    dl_print_fact("mpi", text);
}

/* A block of many calls: the barrier before it and the agreement after it take microseconds themselves. */
static const struct dl_probe pingpong = {"pingpong",   "MPI point to point", 200e-6, unavailable,    exchange_open,
                                         pingpong_run, pingpong_verify,      NULL,   exchange_close, any_preemptions};
static const struct dl_probe allreduce = {"allreduce",   "MPI all-reduce", 200e-6, unavailable,    exchange_open,
                                          allreduce_run, allreduce_verify, NULL,   exchange_close, any_preemptions};
static const struct dl_probe *const probes[] = {&pingpong, &allreduce, NULL};

int main(int argc, char **argv) {
    int rank = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const int status = dl_probe_main(argc, argv, probes, rank != 0, facts);
    if (status != 0) MPI_Abort(MPI_COMM_WORLD, status);
    MPI_Finalize();
    return status;
}
