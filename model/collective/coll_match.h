/* coll_match.h - rows of a published collectives table (the CSV of the contract) to a system file
 * and a request.
 *
 * Tables name systems in words. A row is matched only where data/systems has that machine or its
 * class; the reason why not is told otherwise. Pure: text in, names out.
 */
#ifndef DL_MODEL_COLLECTIVE_COLL_MATCH_H
#define DL_MODEL_COLLECTIVE_COLL_MATCH_H

#include "model/collective/collective.h"
#include "model/base/csv.h"

/* As in the file; NULL or "": unknown. Numbers NAN when empty. */
struct dl_coll_row {
    const char *library, *lib_version, *collective, *device, *system, *network, *notes;
    double nodes, ranks, size_bytes, time_s;
    double bus_bytes_per_s; /* published bus bandwidth, for rows that give only it */
};

struct dl_coll_match {
    const char *system; /* file in data/systems; NULL: none */
    const char *why;    /* reason when system is NULL */
    struct dl_collective_request request;
    /* for rows without size and time: of a 1 GiB message at the published bus bandwidth */
    double measured_s;
    const char *nccl_version, *mpi; /* to put in place of the system's own; NULL: keep */
    /* kernels that one host thread starts for each call (nccl-tests -g N): add this many times the
     * device's launch_s; 0: one process per device */
    int launches;
};

/* F-COLL-BUS: bus bandwidth / algorithm bandwidth for `ranks`: 2(n-1)/n all-reduce, (n-1)/n
 * all-gather, reduce-scatter, all-to-all; else 1. */
double dl_collective_bus_factor(enum dl_collective_op op, double ranks);

/* Row of a table with the columns of the contract (time_us, busbw_GBs); text stays in the table's
 * arena. DL_ERR_INPUT: a column is missing or a number is none. */
enum dl_code dl_coll_row_read(const struct dl_csv *csv, int row, struct dl_coll_row *out,
                              struct dl_err *err);

struct dl_coll_match dl_coll_match(const struct dl_coll_row *row);

#endif
