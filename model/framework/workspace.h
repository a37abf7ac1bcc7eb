/* workspace.h - scratch memory of the libraries, and rounding by a framework's allocator.
 * F-MEM-WORKSPACE, F-MEM-ROUNDING. Not modelled: reserve space of recurrent layers, caches of
 * searched algorithms, memory that other processes hold.
 */
#ifndef DL_MODEL_FRAMEWORK_WORKSPACE_H
#define DL_MODEL_FRAMEWORK_WORKSPACE_H

#include "model/machine/device.h"
#include "model/framework/framework.h"
#include "model/workload/workload.h"

/* An allocator of device memory and the workspace that comes with it. */
struct dl_memory_manager {
    /* reserved for GEMMs of a handle, and the same from Hopper on */
    double blas_workspace_bytes, hopper_blas_workspace_bytes;
    double block_bytes; /* tensors are rounded up to a multiple of this */
    /* tensors from this size on are rounded to large_block_bytes; INFINITY: none */
    double large_bytes;
    double large_block_bytes;
    double fragmentation_frac; /* of what it reserves, held by no tensor at the peak */
    const char *source;        /* key of data/SOURCES.md */
};

/* "pytorch", "tensorflow", ...: what a framework's `allocator` may be; NULL-terminated */
extern const char *const dl_allocator_names[];

/* The framework's; NULL: unknown (`ideal`), no reserved workspace and no rounding. */
const struct dl_memory_manager *dl_memory_manager_of(const struct dl_framework *framework);

/* F-MEM-FRAGMENTATION: the framework's, else the allocator's, else 0. */
double dl_fragmentation_frac(const struct dl_framework *framework);

/* Maximum workspace of a convolution: conv_workspace_bytes of the framework or its release;
 * INFINITY: no limit. */
double dl_workspace_limit_bytes(const struct dl_framework *framework);

/* Workspace of the algorithm that a GPU would choose for one layer and `batch` samples: Winograd's
 * transformed tensors for 3x3 kernels of stride 1 on vector units (36 elements for 4 x 4 outputs),
 * copies in the layout of matrix units, else the offset table of the implicit GEMM. 0 for layers
 * that are not convolutions. */
double dl_workspace_layer_bytes(const struct dl_device *device, const struct dl_layer *layer,
                                enum dl_precision precision, double batch);

/* Workspaces of the GEMM library: one for each handle, of the thread that runs forward and of the
 * one that runs backward. 0: the allocator reserves none, or is unknown. */
double dl_blas_workspace_bytes(const struct dl_device *device,
                               const struct dl_framework *framework);

/* Workspace of a training step: the largest over the layers, within the framework's limit (a layer
 * above it falls back to the implicit GEMM), plus the GEMM library's. NAN on CPUs, whose libraries'
 * workspace is unknown. */
double dl_workspace_bytes(const struct dl_device *device, const struct dl_workload *workload,
                          const struct dl_framework *framework, enum dl_precision precision,
                          double batch);

/* Bytes that rounding adds to the saved activations of `batch` samples, of one layer and of all. */
double dl_rounding_layer_bytes(const struct dl_layer *layer, const struct dl_framework *framework,
                               enum dl_precision precision, double batch);
double dl_rounding_bytes(const struct dl_workload *workload, const struct dl_framework *framework,
                         enum dl_precision precision, double batch);

#endif
