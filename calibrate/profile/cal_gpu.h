/* cal_gpu.h - what the samples of a GPU say: device, kernel-time model, topology, collectives.
 * Pure.
 */
#ifndef DL_CALIBRATE_PROFILE_CAL_GPU_H
#define DL_CALIBRATE_PROFILE_CAL_GPU_H

#include "calibrate/profile/cal_parts.h"

/* Are there samples of a GPU's products in the journal: is the device of the profile a GPU? */
bool dl_cal_gpu_measured(const struct dl_cal_journal *journal);
/* The device: rates, bandwidth, kernel-time surfaces, launch costs, from samples and facts.
 * DL_ERR_BACKEND when memory bandwidth was not measured. */
enum dl_code dl_cal_gpu_device(struct dl_cal_maker *m, struct dl_err *err);
/* The kernel that a sample measured; false: not one kernel, or not a GPU's. Precision of its
 * numbers. */
bool dl_cal_gpu_kernel(const struct dl_raw_sample *sample, struct dl_kernel *out);
enum dl_precision dl_cal_gpu_precision(const struct dl_raw_sample *sample);
/* F-KERNEL-WORK: the factors of each kind of work over the surfaces of m->out, which are there
 * already (cal_gpu_work.c). */
enum dl_code dl_cal_gpu_works(struct dl_cal_maker *m, struct dl_err *err);
/* Flop of an attention sample; NAN: it is none. */
double dl_cal_gpu_attention_flop(const struct dl_raw_sample *sample);
/* Topology and collectives; after dl_cal_network. */
enum dl_code dl_cal_gpu_links(struct dl_cal_maker *m, struct dl_err *err);
/* Flop of a GPU product or convolution, bytes of the others; NAN: not a GPU's sample. */
double dl_cal_gpu_work(const struct dl_raw_sample *sample);

#endif
