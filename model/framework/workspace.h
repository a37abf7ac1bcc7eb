/* workspace.h - scratch memory of the libraries, and how a framework's allocator rounds.
 * F-MEM-WORKSPACE, F-MEM-ROUNDING. Not modelled: reserve space of recurrent layers, caches of
 * searched algorithms, memory that other processes hold.
 */
#ifndef DL_MODEL_FRAMEWORK_WORKSPACE_H
#define DL_MODEL_FRAMEWORK_WORKSPACE_H

#include "model/hardware/device.h"
#include "model/framework/framework.h"
#include "model/workload/workload.h"

/* How a family of frameworks ("pytorch", "tensorflow", ...) hands out memory. */
struct dl_memory_manager {
    const char *family;          /* word in the framework's name */
    double blas_workspace_bytes; /* kept for matrix products */
    double block_bytes;          /* tensors are rounded up to a multiple of this */
    /* from here on to a multiple of large_block_bytes; INFINITY: no such size */
    double large_bytes;
    double large_block_bytes;
    const char *source; /* key of data/SOURCES.md */
};

/* That of a framework, or of the one whose kernels it runs; NULL: none is known (`ideal`): no
 * limit, no rounding. */
const struct dl_memory_manager *dl_memory_manager_of(const struct dl_framework *framework);

/* Device memory that a convolution may work in: conv_workspace_bytes of the framework or its
 * release; INFINITY: no limit. */
double dl_workspace_limit_bytes(const struct dl_framework *framework);

/* Bytes of the convolution algorithm that a GPU would take for one layer and `batch` samples:
 * Winograd's transformed tensors for 3x3 kernels of stride 1 on vector units (36 of 4 x 4 outputs),
 * copies in the layout of matrix units, else the table of offsets of the implicit matrix product. 0
 * for layers that are no convolution. */
double dl_workspace_layer_bytes(const struct dl_device *device, const struct dl_layer *layer,
                                enum dl_precision precision, double batch);

/* Workspace of a training step: that of the layer that needs most, within the framework's limit
 * (what needs more takes the implicit matrix product instead), and the matrix library's. NAN on
 * CPUs: their libraries' scratch memory is not known. */
double dl_workspace_bytes(const struct dl_device *device, const struct dl_workload *workload,
                          const struct dl_framework *framework, enum dl_precision precision,
                          double batch);

/* What rounding adds to the saved activations of `batch` samples, bytes. */
double dl_rounding_bytes(const struct dl_workload *workload, const struct dl_framework *framework,
                         enum dl_precision precision, double batch);

#endif
