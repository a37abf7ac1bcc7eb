/* probe_mpi_device.h - buffers of a GPU for MPI, through the driver's own library, which is loaded
 * when it is there: so one dlmodel-probe-mpi serves nodes with and without GPUs. Ranks of a node
 * take its GPUs in turn. */
#ifndef DL_CALIBRATE_PROBES_MPI_PROBE_MPI_DEVICE_H
#define DL_CALIBRATE_PROBES_MPI_PROBE_MPI_DEVICE_H

#include <stddef.h>

#include "model/base/status.h"

/* Why no message can begin and end in device memory: no driver, no GPU, an MPI that does not know
 * of GPUs; NULL: it can. After MPI_Init. MPIs that cannot be asked are believed with
 * DLMODEL_MPI_CUDA=1. */
const char *dl_mpi_device_absent(void);
/* On this rank's GPU; freed by dl_mpi_device_free. */
enum dl_code dl_mpi_device_alloc(size_t bytes, void **out, struct dl_err *err);
void dl_mpi_device_free(void *memory);
enum dl_code dl_mpi_device_put(void *device, const void *host, size_t bytes, struct dl_err *err);
enum dl_code dl_mpi_device_get(void *host, const void *device, size_t bytes, struct dl_err *err);

#endif
