/* probe_cudnn.c - dlmodel-probe-cudnn: the table of its probes, and the library handle. A separate
 * program, so that a machine without libcudnn still runs the other probes. */
#include "calibrate/probes/cudnn/probe_cudnn.h"

#include <cudnn.h>
#include <stdio.h>

static const struct dl_probe *const probes[] = {
    &dl_probe_gpu_conv,    &dl_probe_gpu_norm,      &dl_probe_gpu_act,       &dl_probe_gpu_pool,
    &dl_probe_gpu_softmax, &dl_probe_gpu_layernorm, &dl_probe_gpu_attention, NULL,
};

enum dl_code dl_cudnn_check(int status, const char *what, struct dl_err *err) {
    if (status == CUDNN_STATUS_SUCCESS) return DL_OK;
    /* cuDNN 9 has several codes per kind; the thousands give the kind (3000: not supported) */
    const bool refused = status == CUDNN_STATUS_NOT_SUPPORTED || status / 1000 == 3;
    return dl_fail(err, refused ? DL_ERR_SYSTEM : DL_ERR_BACKEND, "%s: cuDNN: %s", what,
                   cudnnGetErrorString((cudnnStatus_t)status));
}

enum dl_code dl_cudnn_open(void **handle, struct dl_err *err) {
    static cudnnHandle_t made;
    const struct dl_gpu *gpu;
    DL_TRY(dl_gpu_open(&gpu, err));
    if (made == NULL) {
        char text[32];
        DL_TRY(dl_cudnn_check((int)cudnnCreate(&made), "creating a cuDNN handle", err));
        snprintf(text, sizeof text, "%lu", (unsigned long)cudnnGetVersion());
        dl_print_fact("cudnn", text);
    }
    *handle = made;
    return DL_OK;
}

int dl_cudnn_type(enum dl_gpu_type type) {
    return (int)(type == DL_GPU_F32   ? CUDNN_DATA_FLOAT
                 : type == DL_GPU_F16 ? CUDNN_DATA_HALF
                                      : CUDNN_DATA_BFLOAT16);
}

int main(int argc, char **argv) { return dl_gpu_main(argc, argv, probes); }
