/* probe_cudnn.h - the probes of dlmodel-probe-cudnn. */
#ifndef DL_CALIBRATE_PROBES_CUDNN_PROBE_CUDNN_H
#define DL_CALIBRATE_PROBES_CUDNN_PROBE_CUDNN_H

#include "calibrate/probes/gpu/probe_gpu.h"

extern const struct dl_probe dl_probe_gpu_conv, dl_probe_gpu_norm, dl_probe_gpu_act,
    dl_probe_gpu_pool, dl_probe_gpu_softmax, dl_probe_gpu_layernorm, dl_probe_gpu_attention;

/* A cudnnHandle_t, created by the first call. */
enum dl_code dl_cudnn_open(void **handle, struct dl_err *err);
enum dl_code dl_cudnn_check(int status, const char *what, struct dl_err *err);
int dl_cudnn_type(enum dl_gpu_type type); /* cudnnDataType_t */

#endif
