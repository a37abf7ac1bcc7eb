/* cal_gpu.h - the part of calibrate that is about GPUs: what to measure on them, and what their
 * samples say. Pure. */
#ifndef DL_CALIBRATE_CAL_GPU_H
#define DL_CALIBRATE_CAL_GPU_H

#include "calibrate/cal_parts.h"
#include "calibrate/cal_plan.h"
#include "model/workload/workload.h"

/* Takes a point into the plan; shape NULL: out of memory. */
struct dl_cal_adder {
    void *context;
    struct dl_arena *arena;
    void (*add)(void *context, const char *probe, const char *shape, const char *pass,
                enum dl_cal_child child, double weight);
};

/* Points for a node of choice->gpus devices with choice->capability: products, convolutions and
 * layers in every precision that the device has, over shapes that fill the space which the
 * workloads use (Halton's sequence), the exact layers of choice->workload, copies, launches, and
 * NCCL over every number of devices. */
void dl_cal_gpu_points(const struct dl_cal_choice *choice, const struct dl_cal_adder *adder);

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
