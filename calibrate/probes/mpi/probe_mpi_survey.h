/* probe_mpi_survey.h - what dlmodel-probe-mpi finds out about its nodes. Every rank calls each of
 * these. */
#ifndef DL_CALIBRATE_PROBES_MPI_PROBE_MPI_SURVEY_H
#define DL_CALIBRATE_PROBES_MPI_PROBE_MPI_SURVEY_H

#include <stddef.h>

/* Wait for all ranks without taking a core from those that measure: asleep between looks. */
void dl_mpi_gather_ranks(void);

/* Host names and network interfaces: facts, which rank 0 prints. */
void dl_mpi_print_hosts(void);

/* Network interfaces of this host: "eth0 1000 Mb/s mtu 1500; ...". */
void dl_mpi_describe_nics(char *text, size_t size);

/* Messages between every pair of ranks (up to 16 ranks; between neighbours at distances 1, 2, 4,
 * ... above): one sample "pair" each, from rank 0. Returns the exit status. */
int dl_mpi_survey(void);

#endif
