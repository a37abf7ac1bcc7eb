/* cal_gpu_plan.h - the points to measure on GPUs. Pure. */
#ifndef DL_CALIBRATE_PLAN_CAL_GPU_PLAN_H
#define DL_CALIBRATE_PLAN_CAL_GPU_PLAN_H

#include "calibrate/plan/cal_plan.h"

/* Adds a point to the plan. */
struct dl_cal_adder {
    void *context;
    struct dl_arena *arena;
    void (*add)(void *context, const char *probe, const char *shape, const char *pass,
                enum dl_cal_child child, double weight);
};

/* Points for a node of choice->gpus devices with choice->capability: GEMMs, convolutions and layers
 * in every precision that the device supports, over shapes that fill the range of the workloads
 * (Halton sequence), the exact layers of choice->workload, copies, launches, and NCCL over every
 * number of devices. */
void dl_cal_gpu_points(const struct dl_cal_choice *choice, const struct dl_cal_adder *adder);

#endif
