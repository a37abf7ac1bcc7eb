/* collective.h - the time of one collective, as a library would run it.
 *
 * dl_collective_time() interpolates measured samples where the system has them; else the library's
 * own rules (coll_library.h) choose among its algorithms. Pure.
 */
#ifndef DL_MODEL_NETWORK_COLLECTIVE_H
#define DL_MODEL_NETWORK_COLLECTIVE_H

#include "model/machine/system.h"
#include "model/network/coll_library.h"

struct dl_nccl_memo;

struct dl_collective_request {
    enum dl_collective_op op;
    enum dl_library library;
    /* S. All-reduce, broadcast, reduce, p2p: the message. All-gather, reduce-scatter, all-to-all:
     * the full (concatenated) buffer of one rank. Gather, scatter: the root's buffer. Halo: the
     * bytes to each of two neighbours. */
    double bytes;
    int64_t nodes;          /* that take part */
    int64_t ranks_per_node; /* that take part */
    int64_t domain_nodes; /* F-COLL-DOMAIN: 0: `nodes` are those of the system, and NCCL finds those
                             that share a switch domain; n: `nodes` are domains of n nodes each */
    double flows_per_adapter;        /* groups like this one that share its adapters; 0, 1: alone */
    int64_t node_stride, span_nodes; /* as in struct dl_rank_group */
    const char *algorithm;           /* imposed ("ring", "tree"); NULL: the library chooses */
    const char *protocol;            /* imposed ("LL"); NULL: the library chooses */
    bool device_buffers; /* MPI that stages messages from device memory through the host */
    bool device_direct;  /* MPI that moves device memory itself, inside a node over links.intra */
    /* the library's own cost, which falls where its rules switch to a cheaper algorithm; false: a
     * prediction, which never falls with size */
    bool allow_decreasing;

    /* F-COLL-CONCURRENT: a group of ranks inside a larger job (tensor groups inside nodes, data
     * groups across them). All 0: the ranks are those of nodes x ranks_per_node, alone. */
    int64_t group_size; /* ranks of the group; nodes x ranks_per_node is then the job that holds the
                           groups. 0: the group is nodes x ranks_per_node */
    int64_t group_stride; /* distance of its ranks, numbered node by node; 0, 1: neighbours */
    int64_t concurrent;   /* groups that communicate concurrently on the nodes of the job (on each
                             node with group_size 0), this one included; 0, 1: alone */

    /* Scratch of a caller that asks for many sizes on one system, which must not change meanwhile:
     * the graph of the last rank set (nccl.h; zero at first). NULL: none. */
    struct dl_nccl_memo *memo;
};

/* F-COLL-DOMAIN: sets *out to the request with the nodes that links.intra.domain_nodes joins
 * counted as one: a rank set inside a domain uses its switches alone, one that spans several uses
 * the adapters of all nodes of a domain together. Nodes fill as few domains as hold them, evenly;
 * of domains that are not equally full the fullest counts. Only for NCCL; the request itself where
 * the system has no such domain, or where domain_nodes is given already. */
void dl_collective_domain(const struct dl_system *system,
                          const struct dl_collective_request *request,
                          struct dl_collective_request *out);

/* F-COLL-CONCURRENT: sets *out to the request as one group sees it: its own nodes and ranks per
 * node, flows_per_adapter raised by the groups that share each node's adapters, group_size 0,
 * group_stride inside the node, concurrent the groups on a node. DL_ERR_USAGE when the group does
 * not fit into the job. */
enum dl_code dl_collective_group(const struct dl_system *system,
                                 const struct dl_collective_request *request,
                                 struct dl_collective_request *out, struct dl_err *err);

/* F-COLL-NEIGHBOURS: sets where a P2P transfer of `request` runs (nodes, ranks_per_node,
 * domain_nodes, flows_per_adapter) when `ranks` ranks, `stride` apart in a job of nodes x
 * ranks_per_node, send to their next neighbour at the same time as all other chains of the job:
 * inside a node or NVLink domain where all ranks fit into one, else between two, which is the
 * slowest pair. */
void dl_collective_neighbours(const struct dl_system *system, int64_t nodes, int64_t ranks_per_node,
                              int64_t ranks, int64_t stride, struct dl_collective_request *request);

struct dl_collective_time {
    double time_s;      /* latency_s + bandwidth_s */
    double latency_s;   /* independent of bytes */
    double bandwidth_s; /* dependent on bytes */
    double sigma_log;   /* standard deviation of log(time) */
    double steps;       /* sequential messages */
    double channels;    /* concurrent rings or trees (NCCL); 0: none */
    double host_s;      /* that a framework's host is busy with checks before it; not in time_s */
    const char *algorithm;
    const char *protocol; /* "Simple"; NULL when the library has none */
    const char *formula;  /* id "F-COLL-RING" */
    const char *limit;    /* what limits: "intra", "inter", "host-copy", "host" (its cores and
                             memory); NULL: 1 rank */
    const char *origin;   /* "measured", "fitted", "model" */
    bool extrapolated;
};

/* Time of one collective; *out is valid only with DL_OK. All zero for 1 rank. Monotone in bytes
 * (measured samples of the system may fall) and in latency; doubling a bandwidth never slows.
 * DL_ERR_INPUT when the system lacks a link that is needed, DL_ERR_USAGE for an invalid request
 * or an algorithm that the library does not have. */
enum dl_code dl_collective_time(const struct dl_system *system,
                                const struct dl_collective_request *request,
                                struct dl_collective_time *out, struct dl_err *err);

/* Sets the derived members of system->collectives, the model at every sample, which saves model
 * evaluations later. The loader calls it; results do not depend on it. */
void dl_coll_measured_fill(struct dl_system *system, struct dl_arena *arena);

/* F-PS-PUSH-PULL: synchronous push of gradients to parameter servers and pull of weights. */
struct dl_parameter_server_request {
    double workers;              /* nodes */
    double servers;              /* nodes; they are workers too when colocated */
    double total_bytes;          /* S: of all parameters, each way, one worker */
    double largest_server_bytes; /* of the fullest server; balanced: total_bytes / servers */
    bool colocated;              /* servers share the workers' nodes */
    bool half_duplex;     /* push and pull do not overlap (a TCP stack bound by one host thread) */
    double message_count; /* messages of one worker, each way (variables or slices) */
    double message_s;     /* host time of a message or RPC, sender and receiver together */
    double copy_bytes_per_s;   /* serialization and host copies on one node; NAN: free */
    double update_bytes_per_s; /* rate at which a server adds gradients; NAN: host memory
                                  bandwidth / 3, else free */
};
struct dl_parameter_server_time {
    double time_s, latency_s, bandwidth_s; /* time_s = latency_s + bandwidth_s */
    double push_s, pull_s, server_s; /* parts: gradients, weights, sums on the fullest server */
    const char *formula;
    const char *limit; /* "worker", "server", "message", "update" */
};
/* Time of one push and pull. One node with a colocated server costs only copies and sums.
 * DL_ERR_INPUT when several nodes lack links.inter. */
enum dl_code dl_parameter_server_time(const struct dl_system *system,
                                      const struct dl_parameter_server_request *request,
                                      struct dl_parameter_server_time *out, struct dl_err *err);

#endif
