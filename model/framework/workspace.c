/* workspace.c - see the header. */
#include "model/framework/workspace.h"

#include <math.h>

#include "model/workload/layer.h"

enum { PYTORCH, TENSORFLOW, MXNET, CHAINER, CAFFE };

const char *const dl_allocator_names[] = {
    [PYTORCH] = "pytorch", [TENSORFLOW] = "tensorflow", [MXNET] = "mxnet",
    [CHAINER] = "chainer", [CAFFE] = "caffe",           NULL};

/* Sources: pytorch-memory-source (c10/cuda/CUDACachingAllocator.cpp, cuBLAS :4096:2:16:8),
 * tf-memory-source (bfc_allocator.h), caffe-memory-source, chainer-memory-source. The 512 B blocks
 * of MXNet and CuPy are unverified. Fragmentation of PyTorch: tools/memory_fit.py. */
static const struct dl_memory_manager managers[] = {
    [PYTORCH] = {8320 * 1024.0, 32 * 1024 * 1024.0, 512, 10 * 1024 * 1024.0, 2 * 1024 * 1024.0,
                 0.104, "pytorch-memory-source"},
    [TENSORFLOW] = {0, 0, 256, INFINITY, 0, 0, "tf-memory-source"},
    [MXNET] = {0, 0, 512, INFINITY, 0, 0, "unverified"},
    [CHAINER] = {0, 0, 512, INFINITY, 0, 0, "chainer-memory-source"},
    [CAFFE] = {0, 0, 256, INFINITY, 0, 0, "caffe-memory-source"},
};

const struct dl_memory_manager *dl_memory_manager_of(const struct dl_framework *framework) {
    const int row = framework->memory.allocator;
    return row >= 0 ? &managers[row] : NULL;
}

double dl_fragmentation_frac(const struct dl_framework *framework) {
    const struct dl_memory_manager *m = dl_memory_manager_of(framework);
    const double own = framework->memory.fragmentation_frac;
    return dl_known(own) ? own : m != NULL ? m->fragmentation_frac : 0;
}

static bool on_matrix_units(const struct dl_device *device, enum dl_precision precision) {
    enum { MATRIX = 1 };
    if (precision == DL_FP32 || precision == DL_TF32) return false;
    for (int i = 0; i < device->rate_count; i++) {
        if (device->rates[i].unit == MATRIX) return true;
    }
    return false;
}

/* Implicit GEMM: one 4-byte offset for each summed element. */
static double offset_table_bytes(const struct dl_layer *layer) {
    double taps = 1;
    for (int d = 0; d < DL_DIMS; d++) taps *= layer->window.kernel[d];
    return 4 * taps * layer->in.channels / fmax(layer->groups, 1);
}

double dl_workspace_limit_bytes(const struct dl_framework *framework) {
    return framework->memory.conv_workspace_bytes > 0 ? framework->memory.conv_workspace_bytes
                                                      : INFINITY;
}

double dl_workspace_layer_bytes(const struct dl_device *device, const struct dl_layer *layer,
                                enum dl_precision precision, double batch) {
    if (layer->kind != &dl_layer_conv) return 0;
    const double element_bytes = dl_precision_bytes(precision);
    /* channels-last copies of both activations and of the weights */
    if (on_matrix_units(device, precision)) {
        const double x = batch * dl_shape_elements(&layer->in),
                     y = batch * dl_shape_elements(&layer->out);
        return element_bytes * (x + y + layer->parameter_elements + layer->frozen_elements);
    }
    const struct dl_kernel kernel = dl_kernel_conv(
        DL_FORWARD,
        &(struct dl_conv_shape){batch, layer->in.channels, layer->out.channels, layer->groups,
                                layer->in.size, layer->window.kernel, layer->window.stride,
                                layer->window.pad, layer->window.dilation});
    return fmax(dl_kernel_workspace_bytes(&kernel, element_bytes), offset_table_bytes(layer));
}

double dl_blas_workspace_bytes(const struct dl_device *device,
                               const struct dl_framework *framework) {
    enum { HANDLES = 2 };
    const struct dl_memory_manager *m = dl_memory_manager_of(framework);
    if (m == NULL || device->kind != DL_DEVICE_GPU) return 0;
    const bool hopper = dl_generation_of(device->architecture) >= DL_HOPPER;
    return HANDLES * (hopper ? m->hopper_blas_workspace_bytes : m->blas_workspace_bytes);
}

double dl_workspace_bytes(const struct dl_device *device, const struct dl_workload *workload,
                          const struct dl_framework *framework, enum dl_precision precision,
                          double batch) {
    if (device->kind != DL_DEVICE_GPU) return NAN;
    const double limit_bytes = dl_workspace_limit_bytes(framework);
    double most_bytes = 0;
    for (int i = 0; i < workload->layer_count; i++) {
        if (workload->layers[i].kind != &dl_layer_conv) continue; /* needs none */
        if (dl_layer_twin(workload->layers, i) < i) continue;     /* needs no more */
        double bytes = dl_workspace_layer_bytes(device, &workload->layers[i], precision, batch);
        if (bytes > limit_bytes) bytes = offset_table_bytes(&workload->layers[i]);
        most_bytes = fmax(most_bytes, bytes);
    }
    return most_bytes + dl_blas_workspace_bytes(device, framework);
}

static double rounded(double bytes, double multiple) {
    return multiple > 0 ? ceil(bytes / multiple) * multiple : bytes;
}

double dl_rounding_layer_bytes(const struct dl_layer *layer, const struct dl_framework *framework,
                               enum dl_precision precision, double batch) {
    const struct dl_memory_manager *m = dl_memory_manager_of(framework);
    const double bytes =
        batch * (layer->saved.elements * dl_precision_bytes(precision) + layer->saved.bytes);
    if (m == NULL) return 0;
    return rounded(bytes, bytes >= m->large_bytes ? m->large_block_bytes : m->block_bytes) - bytes;
}

double dl_rounding_bytes(const struct dl_workload *workload, const struct dl_framework *framework,
                         enum dl_precision precision, double batch) {
    double added = 0;
    for (int i = 0; i < workload->layer_count; i++)
        added += dl_rounding_layer_bytes(&workload->layers[i], framework, precision, batch);
    return added;
}
