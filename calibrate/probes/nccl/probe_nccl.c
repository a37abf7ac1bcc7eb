/* probe_nccl.c - dlmodel-probe-nccl: NCCL's collectives in fp32. Shape "bytes= ranks= nodes=": the
 * first ranks/nodes GPUs of each of the first `nodes` nodes. `bytes` is the whole buffer of a rank,
 * which it gathers, scatters or sends in total. Times come from events on the stream of the slowest
 * rank; "nccl-sendrecv": half a round trip. When a rank exits, the others follow: they poll their
 * connections while they wait for the GPU. */
#include "calibrate/probes/nccl/probe_nccl.h"

#include <cuda_runtime_api.h>
#include <math.h>
#include <nccl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum operation { ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, BROADCAST, ALL_TO_ALL, SEND_RECEIVE };

/* One communicator is kept: points of the same rank set are consecutive. */
static struct {
    struct dl_members members;
    ncclComm_t comm;
    cudaStream_t stream;
    cudaEvent_t begin, end;
    bool ready;
} world;

struct collective {
    enum operation operation;
    int ranks, position; /* in the communicator */
    size_t count, share; /* floats of the whole buffer, and of one rank */
    float *send, *receive;
};
enum { OFFSET = 8192 }; /* floats between the data of two ranks in the pool */

static enum dl_code check(ncclResult_t code, const char *what, struct dl_err *err) {
    if (code == ncclSuccess) return DL_OK;
    return dl_fail(err, DL_ERR_BACKEND, "%s: NCCL: %s (NCCL_DEBUG=INFO shows more)", what,
                   ncclGetErrorString(code));
}

static enum dl_code prepare_stream(struct dl_err *err) {
    if (world.ready) return DL_OK;
    DL_TRY(dl_gpu_check((int)cudaStreamCreate(&world.stream), "creating a stream", err));
    DL_TRY(dl_gpu_check((int)cudaEventCreateWithFlags(&world.begin, cudaEventDefault),
                        "creating an event", err));
    DL_TRY(dl_gpu_check((int)cudaEventCreateWithFlags(&world.end, cudaEventDefault),
                        "creating an event", err));
    world.ready = true;
    return DL_OK;
}

static int position_of(int rank) {
    return rank / dl_meeting.per_node * world.members.per_node + rank % dl_meeting.per_node;
}

static void no_communicator(int number) {
    static const char words[] = "the communicator was not created: a rank or the network hangs "
                                "(NCCL_DEBUG=INFO shows more)\n";
    (void)number;
    if (write(STDERR_FILENO, words, sizeof words - 1) < 0) _exit(DL_ERR_SYSTEM);
    _exit(DL_ERR_BACKEND);
}

static enum dl_code join(const struct dl_members *wanted, struct dl_err *err) {
    ncclUniqueId id;
    if (world.comm != NULL && world.members.nodes == wanted->nodes &&
        world.members.per_node == wanted->per_node)
        return DL_OK;
    if (world.comm != NULL) ncclCommDestroy(world.comm);
    world.comm = NULL;
    world.members = *wanted;
    DL_TRY(prepare_stream(err));
    if (dl_meeting.rank == 0) DL_TRY(check(ncclGetUniqueId(&id), "creating a communicator", err));
    DL_TRY(dl_meet_tell(wanted, &id, sizeof id, err));
    /* NCCL waits forever for a rank that hangs: check that all are present, and limit the rest by
     * an alarm. */
    double here = 1;
    DL_TRY(dl_meet_max(wanted, &here, err));
    signal(SIGALRM, no_communicator);
    /* before calibrate's own time-out (cal_run.c) */
    alarm((unsigned)ceil(1.5 * dl_meet_patience_s()));
    const enum dl_code code = check(ncclCommInitRank(&world.comm, wanted->nodes * wanted->per_node,
                                                     id, position_of(dl_meeting.rank)),
                                    "joining a communicator", err);
    alarm(0);
    return code;
}

static size_t offset_of(int position) { return (size_t)(position % 61) * OFFSET; }

static enum dl_code setup(struct collective *c, const struct dl_point *point, struct dl_err *err) {
    const struct dl_gpu *gpu;
    void *pool, *room;
    const int nodes = (int)dl_point_number(point, "nodes", 1),
              ranks = (int)dl_point_number(point, "ranks", dl_meeting.ranks);
    const struct dl_members members = {nodes, nodes > 0 ? ranks / nodes : 0};
    if (nodes < 1 || ranks < 2 || members.per_node * nodes != ranks ||
        members.per_node > dl_meeting.per_node || nodes > dl_meeting.ranks / dl_meeting.per_node)
        return dl_fail(err, DL_ERR_SYSTEM,
                       "%d ranks on %d nodes requested; there are %d on each of %d", ranks, nodes,
                       dl_meeting.per_node, dl_meeting.ranks / dl_meeting.per_node);
    if (!dl_is_member(&dl_meeting, &members, dl_meeting.rank))
        return dl_fail(err, DL_ERR_SYSTEM, "this rank takes no part in the point");
    DL_TRY(dl_gpu_open(&gpu, err));
    DL_TRY(join(&members, err));
    c->ranks = ranks;
    c->position = position_of(dl_meeting.rank);
    c->count = (size_t)dl_point_number(point, "bytes", 8) / sizeof(float);
    if (c->count < 1) c->count = 1;
    c->share = (c->count + (size_t)ranks - 1) / (size_t)ranks;
    const size_t room_count = c->share * (size_t)ranks;
    /* All ranks fail if one does; else the others would wait forever. */
    enum dl_code code = dl_gpu_pool(DL_GPU_F32, room_count + offset_of(60), &pool, err);
    if (code == DL_OK) code = dl_gpu_room(room_count * sizeof(float), &room, err);
    double failed = code != DL_OK;
    struct dl_err lost;
    if (dl_meet_max(&members, &failed, &lost) != DL_OK) {
        *err = lost;
        return err->code;
    }
    if (failed > 0)
        return code != DL_OK
                   ? code
                   : dl_fail(err, DL_ERR_SYSTEM, "another rank lacks memory for %s", point->shape);
    c->send = (float *)pool + offset_of(c->position);
    c->receive = room;
    return DL_OK;
}

static enum dl_code collective_open(const struct dl_point *point, void *state, struct dl_err *err) {
    struct collective *c = state;
    double zero = 0;
    c->operation = (enum operation)point->variant;
    DL_TRY(dl_meet_max(NULL, &zero, err)); /* all ranks start a point together */
    return setup(c, point, err);
}

static enum dl_code exchange_shares(const struct collective *c, struct dl_err *err) {
    DL_TRY(check(ncclGroupStart(), "all-to-all", err));
    for (int peer = 0; peer < c->ranks; peer++) {
        DL_TRY(check(ncclSend(c->send + (size_t)peer * c->share, c->share, ncclFloat, peer,
                              world.comm, world.stream),
                     "all-to-all", err));
        DL_TRY(check(ncclRecv(c->receive + (size_t)peer * c->share, c->share, ncclFloat, peer,
                              world.comm, world.stream),
                     "all-to-all", err));
    }
    return check(ncclGroupEnd(), "all-to-all", err);
}

static enum dl_code there_and_back(const struct collective *c, struct dl_err *err) {
    if (c->position > 1) return DL_OK;
    for (int leg = 0; leg < 2; leg++) {
        const bool sends = leg == c->position;
        DL_TRY(check(sends ? ncclSend(c->send, c->count, ncclFloat, 1 - c->position, world.comm,
                                      world.stream)
                           : ncclRecv(c->receive, c->count, ncclFloat, 1 - c->position, world.comm,
                                      world.stream),
                     "send and receive", err));
    }
    return DL_OK;
}

static enum dl_code once(const struct collective *c, struct dl_err *err) {
    switch (c->operation) {
    case ALL_REDUCE:
        return check(ncclAllReduce(c->send, c->receive, c->count, ncclFloat, ncclSum, world.comm,
                                   world.stream),
                     "all-reduce", err);
    case REDUCE_SCATTER:
        return check(ncclReduceScatter(c->send, c->receive, c->share, ncclFloat, ncclSum,
                                       world.comm, world.stream),
                     "reduce-scatter", err);
    case ALL_GATHER:
        return check(
            ncclAllGather(c->send, c->receive, c->share, ncclFloat, world.comm, world.stream),
            "all-gather", err);
    case BROADCAST:
        return check(
            ncclBroadcast(c->send, c->receive, c->count, ncclFloat, 0, world.comm, world.stream),
            "broadcast", err);
    case ALL_TO_ALL: return exchange_shares(c, err);
    case SEND_RECEIVE: break;
    }
    return there_and_back(c, err);
}

/* Waits for the end event, and meanwhile polls the other processes and NCCL's asynchronous errors.
 */
static enum dl_code wait_end(struct dl_err *err) {
    static const double LOOK_S = 0.05;
    const double start = dl_now_s(), limit_s = dl_meet_patience_s();
    for (double looked = start;;) {
        const cudaError_t code = cudaEventQuery(world.end);
        if (code != cudaErrorNotReady)
            return dl_gpu_check((int)code, "waiting for a collective", err);
        const double now = dl_now_s();
        if (now - looked < LOOK_S) continue;
        looked = now;
        ncclResult_t asynchronous = ncclSuccess;
        DL_TRY(dl_meet_alive(err));
        DL_TRY(check(ncclCommGetAsyncError(world.comm, &asynchronous), "querying NCCL", err));
        DL_TRY(check(asynchronous, "a collective", err));
        if (now - start > limit_s) return dl_meet_blame(&world.members, "a collective", err);
    }
}

static double run(void *state, long calls, struct dl_err *err) {
    const struct collective *c = state;
    double seconds = 0;
    float ms = 0;
    if (dl_meet_max(&world.members, &seconds, err) != DL_OK) return NAN; /* start together */
    if (dl_gpu_check((int)cudaEventRecord(world.begin, world.stream), "recording an event", err) !=
        DL_OK)
        return NAN;
    for (long i = 0; i < calls; i++) {
        if (once(c, err) != DL_OK) return NAN;
    }
    if (dl_gpu_check((int)cudaEventRecord(world.end, world.stream), "recording an event", err) !=
            DL_OK ||
        wait_end(err) != DL_OK ||
        dl_gpu_check((int)cudaEventElapsedTime(&ms, world.begin, world.end), "reading the time",
                     err) != DL_OK)
        return NAN;
    seconds = 1e-3 * (double)ms * (c->operation == SEND_RECEIVE ? 0.5 : 1);
    return dl_meet_max(&world.members, &seconds, err) == DL_OK ? seconds : NAN;
}

static double sent_by(int position, size_t index) {
    return dl_gpu_pool_value(DL_GPU_F32, offset_of(position) + index);
}

static double expected(const struct collective *c, size_t i) {
    double sum = 0;
    switch (c->operation) {
    case ALL_REDUCE:
        for (int r = 0; r < c->ranks; r++) sum += sent_by(r, i);
        return sum;
    case REDUCE_SCATTER:
        for (int r = 0; r < c->ranks; r++) sum += sent_by(r, (size_t)c->position * c->share + i);
        return sum;
    case ALL_GATHER: return sent_by((int)(i / c->share), i % c->share);
    case ALL_TO_ALL:
        return sent_by((int)(i / c->share), (size_t)c->position * c->share + i % c->share);
    case BROADCAST: return sent_by(0, i);
    case SEND_RECEIVE: break;
    }
    return sent_by(1 - c->position, i);
}

/* All ranks check, and all learn the outcome. */
static enum dl_code verify(void *state, struct dl_err *err) {
    static const struct dl_gpu_precision fp32 = {"fp32", DL_GPU_F32, DL_GPU_F32, 0, 0, 1e-6, 1e-5};
    const struct collective *c = state;
    const size_t count = c->operation == REDUCE_SCATTER ? c->share
                         : c->operation == ALL_GATHER || c->operation == ALL_TO_ALL
                             ? c->share * (size_t)c->ranks
                             : c->count;
    struct dl_err own = {0};
    uint64_t random = 83;
    double wrong = 0;
    const bool reads = c->operation != SEND_RECEIVE || c->position < 2;
    for (int t = 0; t < 16 && reads && wrong <= 0; t++) {
        const size_t i = dl_random_next(&random) % count;
        double got = 0;
        if (dl_gpu_read(DL_GPU_F32, c->receive, i, &got, &own) != DL_OK ||
            dl_gpu_judge(&fp32, c->ranks, 1, i, got, expected(c, i), &own) != DL_OK)
            wrong = 1;
    }
    const bool mine = wrong > 0;
    DL_TRY(dl_meet_max(&world.members, &wrong, err));
    if (wrong <= 0) return DL_OK;
    return dl_fail(err, DL_ERR_BACKEND, "%s",
                   mine ? own.message : "another rank got a wrong result");
}

static long disturbances(void) {
    struct dl_err err;
    double all = (double)dl_gpu_disturbances();
    return dl_meet_sum(&world.members, &all, &err) == DL_OK ? (long)all : 0;
}

static void facts(void) {
    char text[32];
    int version = 0;
    dl_gpu_facts();
    if (ncclGetVersion(&version) == ncclSuccess) {
        const int major = version >= 10000 ? version / 10000 : version / 1000,
                  rest = version >= 10000 ? version % 10000 : version % 1000;
        snprintf(text, sizeof text, "%d.%d.%d", major, rest / 100, rest % 100);
        dl_print_fact("nccl", text);
    }
    snprintf(text, sizeof text, "%d", dl_meeting.ranks);
    if (dl_meeting.ranks > 1) dl_print_fact("nccl_ranks", text);
}

static const char *unavailable(void) {
    if (dl_gpu_absent() != NULL) return dl_gpu_absent();
    return NULL;
}

static const char *implementation(const void *state) {
    (void)state;
    return "nccl";
}

#define PROBE(variable, name, summary, operation)                                                  \
    static const struct dl_probe variable =                                                        \
        DL_PROBE(name, summary, 200e-6, unavailable, struct collective, collective_open, run,      \
                 .verify = verify, .implementation = implementation, .preemptions = disturbances,  \
                 .variant = operation)
PROBE(all_reduce, "nccl-allreduce", "NCCL all-reduce", ALL_REDUCE);
PROBE(reduce_scatter, "nccl-reducescatter", "NCCL reduce-scatter", REDUCE_SCATTER);
PROBE(all_gather, "nccl-allgather", "NCCL all-gather", ALL_GATHER);
PROBE(broadcast, "nccl-broadcast", "NCCL broadcast", BROADCAST);
PROBE(all_to_all, "nccl-alltoall", "NCCL all-to-all", ALL_TO_ALL);
PROBE(send_receive, "nccl-sendrecv", "NCCL send and receive", SEND_RECEIVE);
static const struct dl_probe *const probes[] = {
    &all_reduce, &reduce_scatter, &all_gather, &broadcast, &all_to_all, &send_receive, NULL};

/* One rank: measures, or exits with a message. */
static int measure(int argc, char **argv, const struct dl_meeting *meeting) {
    const struct dl_gpu *gpu;
    struct dl_err err = {0};
    if (dl_meet(meeting, &err) != DL_OK) {
        fprintf(stderr, "%s\n", err.message);
        return DL_ERR_BACKEND;
    }
    if (dl_gpu_absent() == NULL) {
        int count = 1;
        cudaGetDeviceCount(&count);
        dl_gpu_choose(meeting->local % count); /* Slurm may show each task only its own GPU */
    }
    if (dl_gpu_open(&gpu, &err) != DL_OK) {
        fprintf(stderr, "rank %d of %d: %s\n", meeting->rank, meeting->ranks, err.message);
        return DL_ERR_BACKEND;
    }
    dl_probe_conditions(dl_gpu_conditions);
    const int status = dl_probe_main(argc, argv, probes, meeting->rank != 0, facts);
    /* A rank without a part in the last points must not exit before those that still measure: all
     * end together. */
    double zero = 0;
    if (status != 0 || dl_meet_max(NULL, &zero, &err) == DL_OK) return status;
    fprintf(stderr, "%s\n", err.message);
    return DL_ERR_BACKEND;
}

int main(int argc, char **argv) {
    struct dl_meeting meeting;
    struct dl_err err = {0};
    int spawn = 0;
    if (argc > 1 && strcmp(argv[1], "--list") == 0)
        return dl_probe_main(argc, argv, probes, false, facts);
    if (argc > 2 && strcmp(argv[1], "--spawn") == 0) {
        spawn = atoi(argv[2]);
        argv[2] = argv[0];
        argv += 2;
        argc -= 2;
        if (dl_gpu_absent() != NULL) {
            fprintf(stderr, "%s\n", dl_gpu_absent());
            return DL_ERR_BACKEND;
        }
    }
    if (dl_meeting_find(spawn, &meeting, &err) != DL_OK) {
        fprintf(stderr, "%s\n", err.message);
        return DL_ERR_BACKEND;
    }
    const int status =
        spawn > 0 ? dl_meeting_spawn(&meeting, spawn, argv) : measure(argc, argv, &meeting);
    /* after a failure the others would never reach it: the exit status informs the launcher */
    if (status == 0) dl_meeting_end();
    return status;
}
