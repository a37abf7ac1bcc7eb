/* cal_gpu.h - evaluates the samples of a GPU: device, kernel-time model, topology, collectives.
 * Pure. */
#ifndef DL_CALIBRATE_PROFILE_CAL_GPU_H
#define DL_CALIBRATE_PROFILE_CAL_GPU_H

#include "calibrate/profile/cal_internal.h"

/* Whether the journal has GEMM samples of a GPU, which is then the device of the profile. */
bool dl_cal_gpu_measured(const struct dl_cal_journal *journal);
/* The device from samples and facts: rates, bandwidth, kernel-time models, launch cost.
 * DL_ERR_BACKEND when memory bandwidth was not measured. */
enum dl_code dl_cal_gpu_device(struct dl_cal_maker *m, struct dl_err *err);
/* The kernel that a sample measured; false: several kernels, or not on a GPU. */
bool dl_cal_gpu_kernel(const struct dl_raw_sample *sample, struct dl_kernel *out);
enum dl_precision dl_cal_gpu_precision(const struct dl_raw_sample *sample);
/* F-KERNEL-WORK: the factor of each kind of work over the kernel-time models of m->out, which must
 * be fitted already (cal_gpu_work.c). */
void dl_cal_gpu_works(struct dl_cal_maker *m);
/* Flop of an attention sample; NAN for other samples. */
double dl_cal_gpu_attention_flop(const struct dl_raw_sample *sample);
/* Topology and collectives; after dl_cal_network. */
enum dl_code dl_cal_gpu_links(struct dl_cal_maker *m, struct dl_err *err);
/* Flop of a GEMM or convolution on a GPU, bytes of other samples; NAN: not a sample of a GPU. */
double dl_cal_gpu_work(const struct dl_raw_sample *sample);

#endif
