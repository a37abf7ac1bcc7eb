/* probe_mpi_device.h - device buffers for MPI, through the CUDA driver library, which is loaded
 * when installed: one dlmodel-probe-mpi serves nodes with and without GPUs. The ranks of a node use
 * its GPUs round-robin. */
#ifndef DL_CALIBRATE_PROBES_MPI_PROBE_MPI_DEVICE_H
#define DL_CALIBRATE_PROBES_MPI_PROBE_MPI_DEVICE_H

#include <stddef.h>

#include "model/core/status.h"

/* The reason why MPI cannot use device buffers (no driver, no GPU, an MPI without CUDA support), or
 * NULL. Call after MPI_Init. DLMODEL_MPI_CUDA=1 declares support for an MPI that has no query for
 * it. */
const char *dl_mpi_device_absent(void);
/* On this rank's GPU; freed by dl_mpi_device_free. */
enum dl_code dl_mpi_device_alloc(size_t bytes, void **out, struct dl_err *err);
void dl_mpi_device_free(void *memory);
enum dl_code dl_mpi_device_put(void *device, const void *host, size_t bytes, struct dl_err *err);
enum dl_code dl_mpi_device_get(void *host, const void *device, size_t bytes, struct dl_err *err);

#endif
