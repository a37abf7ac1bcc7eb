/* probe_gpu.h - shared by the GPU probe programs: the device, random operands, timing by events,
 * NVML. No vendor header here; CUDA status codes are passed as int.
 *
 * Operands come from a pool in device memory, which repeats one tile of random numbers: no shape
 * waits for the host to fill it, and the host knows every element. The calls of a block cycle
 * through parts of the pool that exceed twice the L2 cache: operands are cold, as in a training
 * step. A block of short kernels is queued behind a long memset, so that the device never waits
 * for the host between them. Events then give the time per kernel including the gap to the next
 * one. */
#ifndef DL_CALIBRATE_PROBES_GPU_PROBE_GPU_H
#define DL_CALIBRATE_PROBES_GPU_PROBE_GPU_H

#include "calibrate/probes/common/probe_common.h"

/* Storage of an element. The values of fp32 also serve tf32. */
enum dl_gpu_type { DL_GPU_F32, DL_GPU_F16, DL_GPU_BF16, DL_GPU_F8, DL_GPU_TYPES };

struct dl_gpu_precision {
    const char *name;           /* as in dl_precision_names */
    enum dl_gpu_type type, out; /* of operands and of results */
    int capability;             /* 10 major + minor, at least */
    /* relative rounding of an operand (0: the type's own) and of a sum's terms */
    double input_error_frac, sum_error_frac;
    double output_error_frac; /* relative rounding of the result */
};
/* The precision of a shape ("prec=mixed"; absent: fp32); NULL: unknown. */
const struct dl_gpu_precision *dl_gpu_precision_of(const struct dl_point *point);

size_t dl_gpu_type_bytes(enum dl_gpu_type type);
double dl_gpu_round(enum dl_gpu_type type, double value); /* to the nearest value of the type */
void dl_gpu_encode(enum dl_gpu_type type, double value, void *out);
double dl_gpu_decode(enum dl_gpu_type type, const void *in);

struct dl_gpu {
    int ordinal, count;
    int capability; /* 70: 7.0 */
    int units;      /* streaming multiprocessors */
    int processes;  /* that NVML lists once this process uses the device */
    double l2_bytes, memory_bytes;
    char name[256], pci[32];
};

/* The reason why no GPU can be measured here, or NULL. Queries the driver once. */
const char *dl_gpu_absent(void);
/* The device with its context, warmed up; the same one in every call. */
enum dl_code dl_gpu_open(const struct dl_gpu **out, struct dl_err *err);
/* Call before dl_gpu_open: selects a visible device. -1 (default): the first. */
void dl_gpu_choose(int ordinal);
/* Prints facts of driver, device and topology, and what has disturbed the blocks so far. */
void dl_gpu_facts(void);

/* DL_ERR_SYSTEM when device memory is exhausted (other points go on), else DL_ERR_BACKEND with
 * `what` and CUDA's message. */
enum dl_code dl_gpu_check(int cuda_error, const char *what, struct dl_err *err);

/* Random elements of a type, at least `elements` of them, on the device; valid until the next call.
 * Element i has the value dl_gpu_pool_value(type, i). */
enum dl_code dl_gpu_pool(enum dl_gpu_type type, size_t elements, void **out, struct dl_err *err);
double dl_gpu_pool_value(enum dl_gpu_type type, size_t index);
/* Room for results, valid until the next call; contents undefined. */
enum dl_code dl_gpu_room(size_t bytes, void **out, struct dl_err *err);
/* Element `index` of an array on the device. */
enum dl_code dl_gpu_read(enum dl_gpu_type type, const void *array, size_t index, double *value,
                         struct dl_err *err);
/* on the device */
enum dl_code dl_gpu_copy(void *to, const void *from, size_t bytes, struct dl_err *err);
/* Number of operand sets of `bytes` each to cycle through so that none is still cached when it is
 * used again. */
long dl_gpu_sets(double bytes);

/* Seconds of `calls` calls of launch(state, 0), launch(state, 1), ... on the device; NAN with *err.
 */
double dl_gpu_time(enum dl_code (*launch)(void *state, long call, struct dl_err *err), void *state,
                   long calls, struct dl_err *err);
/* As dl_probe.preemptions: blocks disturbed by thermal or power throttling or by other processes on
 * the device. */
long dl_gpu_disturbances(void);
void dl_gpu_disturbance_facts(void);

/* main() of a probe program that uses one GPU. */
int dl_gpu_main(int argc, char **argv, const struct dl_probe *const *probes);
void dl_gpu_conditions(double *clock_hz, double *power_w); /* as dl_probe_conditions takes it */

/* DL_OK if |got - expected| is within the rounding of a dot product with `terms` terms of
 * numbers below 1 in this precision, times `slack` (Winograd, FFT). Else DL_ERR_BACKEND with
 * element and values. */
enum dl_code dl_gpu_judge(const struct dl_gpu_precision *precision, double terms, double slack,
                          size_t index, double got, double expected, struct dl_err *err);

/* NVML, loaded when installed (probe_gpu_nvml.c). Without it all values are NAN or 0. */
struct dl_nvml_state {
    double clock_hz, power_w, power_limit_w, busy_frac;
    long temperature_c; /* 0: unknown */
    bool thermal, brake,
        power_capped; /* why clocks are low: temperature, power brake, power limit */
    /* on the device, including this one (which may have another pid outside its container) */
    int processes;
    long other_pid; /* a process other than this one; 0: none */
};
/* what to read in addition to clock, power and throttle reasons */
enum { DL_NVML_PROCESSES = 1, DL_NVML_ALL = 2 };
bool dl_nvml_read(const char *pci, int what, struct dl_nvml_state *out);
const char *dl_nvml_driver(void); /* version, or NULL */
/* Facts "gpu_links", "gpu_link_kind", "gpu_pcie" of all `count` devices with these PCI names. */
void dl_nvml_link_facts(const char (*pci)[32], int count);
/* Facts "nic_N" and "gpudirect" of network adapters in /sys, with the distance to a device
 * (probe_gpu_nic.c). */
void dl_nic_facts(const char *sys, const char *pci);

#endif
