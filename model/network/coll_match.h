/* coll_match.h - a row of a collectives table (the CSV of the contract) as a request to the
 * model.
 *
 * The columns alone decide. `system` names a file of data/systems; the caller checks that it
 * exists. Pure: text in, names out. */
#ifndef DL_MODEL_NETWORK_COLL_MATCH_H
#define DL_MODEL_NETWORK_COLL_MATCH_H

#include "model/core/csv.h"
#include "model/core/json.h"
#include "model/network/collective.h"

/* As in the file; NULL or "": unknown. Numbers NAN when empty. */
struct dl_coll_row {
    const char *library, *lib_version, *collective, *device, *system, *network;
    /* columns that a table may leave out */
    const char *buffers;   /* "device": MPI was given device memory */
    const char *algorithm; /* that the library was made to run */
    const char *series;    /* distinguishes series that are equal in the other columns */
    double nodes, ranks, size_bytes, time_s;
    double bus_bytes_per_s;     /* published bus bandwidth, for rows that have nothing else */
    double devices_per_process; /* nccl-tests -g N */
};

struct dl_coll_match {
    const char *system;  /* as the row names it; NULL: the row cannot be predicted */
    const char *why;     /* reason when system is NULL */
    const char *unknown; /* word of the row that the reason is about; NULL: none */
    struct dl_collective_request request;
    /* for rows without size and time: of a 1 GiB message at the published bus bandwidth */
    double measured_s;
    const char *nccl_version, *mpi; /* to put in place of the system's own; NULL: keep */
    bool version_ignored; /* lib_version is present, but is not a release of its library */
    /* kernels that one host thread starts for each call (nccl-tests -g N): add this many times the
     * device's launch_s; 0: one process per device */
    int launches;
};

/* The columns of a table of collectives, for `dlmodel schema collectives`. */
extern const struct dl_schema dl_coll_row_schema;

/* F-COLL-BUS: bus bandwidth / algorithm bandwidth for `ranks`: 2(n-1)/n all-reduce, (n-1)/n
 * all-gather, reduce-scatter, all-to-all; else 1. */
double dl_collective_bus_factor(enum dl_collective_op op, double ranks);

/* Row of a table with the columns of the contract (time_us, busbw_GBs); text stays in the
 * table's arena. DL_ERR_INPUT: a column is missing or a cell is not a number. */
enum dl_code dl_coll_row_read(const struct dl_csv *csv, int row, struct dl_coll_row *out,
                              struct dl_err *err);

struct dl_coll_match dl_coll_match(const struct dl_coll_row *row);
/* The reason with the row's own word; NULL without a reason. */
const char *dl_coll_match_why(const struct dl_coll_match *match, struct dl_arena *arena);

#endif
