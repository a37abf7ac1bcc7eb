/* collective.h - the time of one collective, as a library would run it.
 *
 * dl_collective_time() asks: measured samples first (interpolated), then the library's own decision
 * among the registered algorithms, each a row (model/coll_*.c) with its formula and source. Pure.
 */
#ifndef DL_MODEL_COLLECTIVE_COLLECTIVE_H
#define DL_MODEL_COLLECTIVE_COLLECTIVE_H

#include "model/hardware/system.h"

enum dl_collective_op {
    DL_COLL_P2P,
    DL_COLL_BROADCAST,
    DL_COLL_REDUCE,
    DL_COLL_ALL_REDUCE,
    DL_COLL_REDUCE_SCATTER,
    DL_COLL_ALL_GATHER,
    DL_COLL_ALL_TO_ALL,
    DL_COLL_GATHER,
    DL_COLL_SCATTER,
    DL_COLL_HALO,
    DL_COLL_OPS
};
/* "p2p", "broadcast", "reduce", "all_reduce", "reduce_scatter", "all_gather", "all_to_all",
 * "gather", "scatter", "halo" */
extern const char *const dl_collective_op_names[]; /* NULL-terminated */
enum dl_library {
    DL_LIB_NCCL,
    DL_LIB_MPI,
    DL_LIB_GLOO,
    DL_LIB_GRPC,
    DL_LIB_PSLITE,
    DL_LIB_COPY,
    DL_LIB_MLSL,
    DL_LIBRARIES
};
/* "nccl","mpi","gloo","grpc","ps-lite","copy","mlsl", NULL */
extern const char *const dl_library_names[];

/* Row of dl_collective_op_names or dl_library_names; -1: no such name. The words of published
 * tables
 * ("NCCL", "Intel MLSL") are mapped by coll_match.h. */
int dl_collective_op_find(const char *name);
int dl_library_find(const char *name);

struct dl_nccl_memo;

struct dl_collective_request {
    enum dl_collective_op op;
    enum dl_library library;
    /* S: all-reduce, broadcast, reduce, p2p: the message; all-gather, reduce-scatter and
     * all-to-all: the full (concatenated) size of one rank's buffer; gather, scatter: the root's
     * buffer; halo: what goes to each of two neighbours */
    double bytes;
    /* that take part */
    int64_t nodes;
    /* that take part */
    int64_t ranks_per_node;
    /* like groups that use the same adapter at once; 1: alone */
    double flows_per_adapter;
    /* forced ("ring", "tree"); NULL: as the library chooses */
    const char *algorithm;
    /* forced ("LL"); NULL */
    const char *protocol;
    /* MPI on device memory that stages every message through the host; other libraries know where
     * their buffers are */
    bool device_buffers;
    /* MPI that moves device memory itself, inside a node over links.intra */
    bool device_direct;
    /* the library's cost as its own rules have it, which falls where a rule drops to a cheaper
     * algorithm; false: a prediction never falls with size */
    bool as_run;
    /* A group of ranks inside a larger job (tensor groups in the nodes, data groups across them).
     * All 0: the ranks are those of nodes x ranks_per_node, alone. F-COLL-CONCURRENT. */
    /* p: ranks of the group, which stand group_stride apart; nodes x ranks_per_node is then the job
     * that holds the groups. 0: the group is nodes x ranks_per_node */
    int64_t group_size;
    /* in ranks, node by node; 0, 1: neighbours */
    int64_t group_stride;
    /* such groups that communicate at the same time on the nodes of the job (with group_size 0: on
     * each node), this one included; 0, 1: alone */
    int64_t concurrent;
    /* scratch of a caller that asks for many sizes on one system, which stays as it is meanwhile
     * (nccl.h; zero at first): the graph of the last rank set. NULL: none */
    struct dl_nccl_memo *memo;
};

/* F-COLL-CONCURRENT: the request as one group sees it: its own nodes and ranks per node,
 * flows_per_adapter raised by the groups that share each node's adapters; group_size 0,
 * group_stride inside the node, concurrent: groups on a node. DL_ERR_USAGE: a group that does not
 * fit into the job. */
enum dl_code dl_collective_group(const struct dl_system *system,
                                 const struct dl_collective_request *request,
                                 struct dl_collective_request *out, struct dl_err *err);

struct dl_collective_time {
    double time_s;
    double latency_s;   /* part that does not depend on bytes */
    double bandwidth_s; /* part that does; time_s = latency_s + bandwidth_s */
    double sigma_log;
    double steps;                     /* sequential messages */
    double channels;                  /* rings or trees side by side (NCCL); 0: no such thing */
    const char *algorithm, *protocol; /* "ring"; "Simple", NULL when the library has none */
    const char *formula;              /* id "F-COLL-RING" */
    const char *limit;  /* "intra" or "inter": the link that limits; NULL for 1 rank */
    const char *origin; /* "measured", "fitted", "model" */
    bool extrapolated;
};

/* *out holds an answer only with DL_OK. 1 rank or 0 bytes of payload on 1 rank: all zero. Monotone
 * in bytes (measured samples of the system may fall) and in latency; doubling a bandwidth never
 * slows. DL_ERR_INPUT when the system lacks a link that is needed. */
enum dl_code dl_collective_time(const struct dl_system *system,
                                const struct dl_collective_request *request,
                                struct dl_collective_time *out, struct dl_err *err);

/* Fill the derived members of system->collectives (the model at every sample), so that reading
 * samples costs a few model evaluations less. To be called by the loader; not needed for
 * correctness. */
enum dl_code dl_coll_measured_fill(struct dl_system *system, struct dl_arena *arena,
                                   struct dl_err *err);

/* Textbook algorithm over one uniform link, the building block of the rest and of the property
 * tests. */
struct dl_hockney {
    double alpha_s, beta_s_per_byte, gamma_s_per_byte;
};
struct dl_collective_algorithm {
    /* "all_reduce.ring", ..., "F-COLL-RING", SOURCES.md key */
    const char *name, *summary, *formula, *source;
    enum dl_collective_op op;
    double (*time_s)(const struct dl_hockney *link, double ranks, double bytes,
                     double segment_bytes);
    /* NULL: any */
    bool (*valid)(double ranks);
};
extern const struct dl_collective_algorithm *const dl_collective_algorithms[]; /* NULL-terminated */
const struct dl_collective_algorithm *dl_collective_algorithm_find(const char *name);

/* F-PS-PUSH-PULL: synchronous push of gradients to servers and pull of weights between nodes. */
struct dl_parameter_server_request {
    /* nodes; server nodes that are also workers when colocated */
    double workers, servers;
    /* S: of all parameters, each way, one worker */
    double total_bytes;
    /* what the fullest server holds; total_bytes / servers when perfectly balanced */
    double largest_server_bytes;
    /* servers share the workers' nodes */
    bool colocated;
    /* push and pull do not overlap (a TCP stack bound by one host thread) */
    bool half_duplex;
    /* messages of one worker, each way (variables or slices) */
    double message_count;
    /* host time of one message or RPC, sender and receiver together */
    double message_s;
    /* serialisation and host copies on one node; NAN: free */
    double copy_bytes_per_s;
    /* server's rate of adding gradients; NAN: host memory bandwidth / 3, or free */
    double update_bytes_per_s;
};
struct dl_parameter_server_time {
    /* time_s = latency_s + bandwidth_s */
    double time_s, latency_s, bandwidth_s;
    /* parts: gradients in, weights out, sums on the fullest server */
    double push_s, pull_s, server_s;
    /* limit: "worker", "server", "message", "update" */
    const char *formula, *limit;
};
/* DL_ERR_INPUT without links.inter (more than one node). One node with colocated server: only
 * copies and sums. */
enum dl_code dl_parameter_server_time(const struct dl_system *system,
                                      const struct dl_parameter_server_request *request,
                                      struct dl_parameter_server_time *out, struct dl_err *err);

#endif
