/* mpi_coll.h - MPI collectives in host memory: the algorithm that the implementation chooses
 * (decision tables of Open MPI before 4.1, of 4.1 and later, of MPICH; the switch of HPC-X) and its
 * cost with ranks placed node by node (rank r on node r / ranks_per_node). Not modelled: vendor
 * libraries that replace these, such as HCOLL's trees. Intel MPI takes MPICH's rules, and its ring
 * for large messages of rank counts that are no power of two.
 */
#ifndef DL_MODEL_NETWORK_LIBRARIES_MPI_COLL_H
#define DL_MODEL_NETWORK_LIBRARIES_MPI_COLL_H

#include "model/network/coll_internal.h"

dl_library_time_fn dl_mpi_time;

enum dl_mpi_kind {
    DL_MPI_OPEN_OLD,
    DL_MPI_OPEN,
    DL_MPI_MPICH,
    DL_MPI_HPCX,
    DL_MPI_HPCX_OLD,
    DL_MPI_INTEL
};
enum dl_mpi_algorithm {
    DL_MPI_RING,
    DL_MPI_DOUBLING,
    DL_MPI_SEGMENTED,
    DL_MPI_RABENSEIFNER,
    DL_MPI_NONOVERLAPPING,
    DL_MPI_ALGORITHMS
};

/* The implementation by name: "openmpi-3.1", "openmpi-4.1", "hpcx-2.18", "hpcx" (older, without
 * UCC), "mpich-3", "intel", "mvapich2". NULL: Open MPI 4.1 or later. */
enum dl_mpi_kind dl_mpi_kind_of(const char *mpi);

/* F-MPI-CHOICE: algorithm for an all-reduce of a commutative operation. *below_out: largest smaller
 * size [byte] at which another algorithm may serve; 0: none. */
enum dl_mpi_algorithm dl_mpi_all_reduce_choice(enum dl_mpi_kind kind, double ranks, double bytes,
                                               double *below_out);

/* F-MPI-COST: cost of an all-reduce algorithm over nodes, with elements of 4 bytes. With fewer
 * elements than ranks the rings cost recursive doubling, as Open MPI runs it. */
struct dl_cost_parts dl_mpi_all_reduce_cost(enum dl_mpi_kind kind, enum dl_mpi_algorithm algorithm,
                                            const struct dl_coll_links *links, double bytes);

#endif
