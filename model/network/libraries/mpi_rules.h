/* mpi_rules.h - the algorithm that MPI chooses for operations other than all-reduce (F-MPI-CHOICE),
 * and its cost (F-MPI-OTHER).
 */
#ifndef DL_MODEL_NETWORK_LIBRARIES_MPI_RULES_H
#define DL_MODEL_NETWORK_LIBRARIES_MPI_RULES_H

#include "model/network/libraries/mpi_coll.h"

enum dl_mpi_other {
    DL_MPI_LINEAR,
    DL_MPI_SYNC,
    DL_MPI_PIPELINE,
    DL_MPI_SPLIT_BINARY,
    DL_MPI_BINARY,
    DL_MPI_BINOMIAL,
    DL_MPI_KNOMIAL,
    DL_MPI_SCATTER_DOUBLING,
    DL_MPI_SCATTER_RING,
    DL_MPI_REDUCE_GATHER,
    DL_MPI_BRUCK_OTHER,
    DL_MPI_DOUBLING_OTHER,
    DL_MPI_RING_OTHER,
    DL_MPI_NEIGHBOR,
    DL_MPI_PAIRWISE,
    DL_MPI_HALVING,
    DL_MPI_REDUCE_SCATTER,
    DL_MPI_OTHERS
};
/* Those of all-reduce (enum dl_mpi_algorithm), of other operations, of messages to neighbours. */
enum {
    DL_MPI_FIRST_OTHER = DL_MPI_ALGORITHMS,
    DL_MPI_DIRECT = DL_MPI_FIRST_OTHER + DL_MPI_OTHERS,
    DL_MPI_NEIGHBOURS
};
extern const struct dl_collective_algorithm dl_mpi_algorithms[]; /* ends with name NULL */

struct dl_mpi_choice {
    enum dl_mpi_other algorithm;
    double segment_bytes; /* 0: whole messages */
    double below_bytes;   /* largest smaller size at which another rule may serve; 0: none */
};

/* The choice for a broadcast, reduce, all-gather, reduce-scatter, all-to-all, gather or scatter;
 * bytes as dl_collective_request counts them. */
struct dl_mpi_choice dl_mpi_other_choice(enum dl_mpi_kind kind, enum dl_collective_op op,
                                         double ranks, double bytes);

/* F-MPI-OTHER: cost of the choice, with ranks placed node by node. Not modelled: ranks of one node
 * that send concurrently down a tree. */
struct dl_cost_parts dl_mpi_other_cost(enum dl_collective_op op, const struct dl_mpi_choice *choice,
                                       const struct dl_coll_links *links, double bytes);

#endif
