/* coll_library.h - communication libraries: one row each, from one file each (libraries/).
 *
 * Whatever depends on the library of a collective asks its row. A new library is a file that
 * defines its row, and a line of DL_LIBRARY_ROWS.
 */
#ifndef DL_MODEL_NETWORK_COLL_LIBRARY_H
#define DL_MODEL_NETWORK_COLL_LIBRARY_H

#include <stdbool.h>

#include "model/core/status.h"

/* ROW(index, row, name): DL_LIB_index is the value in structs, dl_library_row the row, `name` the
 * word of options and files. */
#define DL_LIBRARY_ROWS(ROW)                                                                       \
    ROW(NCCL, nccl, "nccl")                                                                        \
    ROW(MPI, mpi, "mpi")                                                                           \
    ROW(GLOO, gloo, "gloo")                                                                        \
    ROW(GRPC, grpc, "grpc")                                                                        \
    ROW(PSLITE, pslite, "ps-lite")                                                                 \
    ROW(COPY, copy, "copy")                                                                        \
    ROW(MLSL, mlsl, "mlsl")                                                                        \
    ROW(ONECCL, oneccl, "oneccl")

#define DL_LIBRARY_INDEX(index, row, name) DL_LIB_##index,
enum dl_library { DL_LIBRARY_ROWS(DL_LIBRARY_INDEX) DL_LIBRARIES };
#undef DL_LIBRARY_INDEX

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
/* "p2p", "broadcast", "reduce", "all_reduce", ..., NULL */
extern const char *const dl_collective_op_names[];

/* A set of operations. */
#define DL_ON(operation) (1u << DL_COLL_##operation)

/* An algorithm that the rules of a library choose from, or that a request imposes. */
struct dl_collective_algorithm {
    const char *name, *summary;
    unsigned operations; /* DL_ON(...) | ... */
    const char *formula; /* id in docs/theory.md */
    const char *source;  /* key of data/SOURCES.md */
};

struct dl_system;
struct dl_collective_request;
struct dl_collective_time;
/* The cost of a request by the library's own rules. `out` is zero before the call. */
typedef enum dl_code dl_library_time_fn(const struct dl_system *system,
                                        const struct dl_collective_request *request,
                                        struct dl_collective_time *out, struct dl_err *err);

struct dl_collective_library {
    const char *summary;
    const char *formula, *source; /* id in docs/theory.md, key of data/SOURCES.md */
    const char *const *spellings; /* words of published tables that name it; ends with NULL */
    bool on_gpus, on_cpus;        /* devices whose ranks it serves */
    bool single_node;             /* one process: ranks of one node alone */
    bool takes_gpu_memory;        /* reads and writes GPU memory itself; else callers copy it */
    bool queues_on_gpu;           /* its kernels run on the GPU, in the order of its queue */
    bool stages_gpu_memory;       /* given GPU memory, copies it in pieces through its own buffers
                                      on the host, where it also sums */
    bool polls;                   /* a rank that waits keeps its core busy */
    bool waits_per_layer;         /* its frameworks wait for a layer's own reduction before that
                                      layer's next forward pass, not for all */
    bool spans_domains;           /* uses links.intra between the nodes of a domain */
    bool has_own_rate;            /* attains links.inter.nccl_bandwidth on an adapter */
    const char *algorithm_key;    /* key of a system that imposes its algorithm; NULL: none */
    const struct dl_collective_algorithm *algorithms; /* ends with name NULL */
    dl_library_time_fn *time;
};

/* In the order of enum dl_library; ends with NULL. */
extern const struct dl_collective_library *const dl_libraries[];
extern const char *const dl_library_names[]; /* NULL-terminated */

/* Index in dl_collective_op_names or dl_library_names; -1: no such name. coll_match.h maps the
 * words of published tables ("NCCL", "Intel MLSL"). */
int dl_collective_op_find(const char *name);
int dl_library_find(const char *name);

/* Index of the algorithm of this name that serves the operation; -1: none. */
int dl_library_algorithm_find(enum dl_library library, enum dl_collective_op op, const char *name);

#endif
