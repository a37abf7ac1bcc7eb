/* probe_mpi_survey.h - the survey of nodes by dlmodel-probe-mpi. All ranks call each function. */
#ifndef DL_CALIBRATE_PROBES_MPI_PROBE_MPI_SURVEY_H
#define DL_CALIBRATE_PROBES_MPI_PROBE_MPI_SURVEY_H

#include <stddef.h>

/* Waits for all ranks, asleep between polls, so that no core is taken from the ranks that measure.
 */
void dl_mpi_gather_ranks(void);

/* Rank 0 prints host names and network interfaces as facts. */
void dl_mpi_print_hosts(void);

/* Network interfaces of this host: "eth0 1000 Mb/s mtu 1500; ...". */
void dl_mpi_describe_nics(char *text, size_t size);

/* Messages between every pair of ranks (above 16 ranks: at distances 1, 2, 4, ...): rank 0 prints a
 * sample "pair" for each. Returns the exit status. */
int dl_mpi_survey(void);

#endif
