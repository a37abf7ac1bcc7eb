/* device.h - one accelerator or CPU socket: peaks, memory, kernel-time models, host costs.
 *
 * A device is data: data/devices/NAME.json, or a profile that calibrate wrote. Unknown numbers are
 * NAN.
 */
#ifndef DL_MODEL_MACHINE_DEVICE_H
#define DL_MODEL_MACHINE_DEVICE_H

#include "model/core/json.h"
#include "model/machine/kernel.h"
#include "model/machine/kernel_model.h"

enum dl_device_kind { DL_DEVICE_GPU, DL_DEVICE_CPU };
extern const char *const dl_device_kinds[]; /* "gpu", "cpu", NULL */

struct dl_rate {
    int precision;          /* enum dl_precision; DL_MIXED has no rate of its own: it uses fp16 */
    int unit;               /* 0 "vector", 1 "matrix" (tensor cores, AMX) */
    double peak_flop_per_s; /* dense */
    const char *source;
    double sustained_flop_per_s; /* of large GEMMs, under the power limit; 0 or NAN: unknown */
};

struct dl_work_factor {        /* F-KERNEL-WORK */
    int work, pass, precision; /* enum dl_work, dl_pass, dl_precision */
    double factor;             /* measured time / time from the model that all kinds share */
    const char *source;
};

struct dl_device_power {
    double tdp_w;
    double idle_w, load_w;  /* no work; kernels bound by arithmetic, NAN: assumed (F-POWER) */
    double uncapped_load_w; /* load_w at a clock that tdp_w does not allow; NAN: it allows it */
    double power_limit_w;   /* that an administrator set below tdp_w; NAN: none */
};

/* Time of kernels / by the kernel-time models. */
struct dl_device_scales {
    /* F-KERNEL-LOAD: in training; NAN: that of the borrowed device, else 1 */
    double load_scale, triton_attention_scale, flash2_scale;
    double attention_scale; /* of fused attention / on the borrowed device; NAN: 1 */
    /* F-KERNEL-GROUPED: of PyTorch's grouped GEMMs / one GEMM for each group, 16 bits and less;
     * NAN: that of the borrowed device, else 1 */
    double grouped_scale, narrow_grouped_scale;
    /* F-DIRECT-CONV: of convolutions without a fast algorithm / by the borrowed models; NAN: 1 */
    double direct_conv_scale;
    /* F-UNEQUAL-CONV: of convolutions with unequal sides by the libraries of the device's time / as
     * of others; NAN: 1 */
    double unequal_conv_scale;
    /* F-DEVICE-NORM: of batch normalization by the libraries of the device's time / by bandwidth;
     * NAN: 1 */
    double norm_scale;
};

struct dl_device {
    const char *name, *summary;
    const char **aliases; /* names in tables of measurements */
    int alias_count;
    const char *source;                  /* key of data/SOURCES.md for numbers without their own */
    int kind;                            /* enum dl_device_kind */
    const char *vendor, *architecture;   /* "nvidia", "volta" */
    double memory_bytes;                 /* capacity */
    double memory_bandwidth_bytes_per_s; /* datasheet */
    double memory_efficiency;            /* long streams: attained / datasheet, 0..1 */
    double l2_bytes;                     /* last-level cache */
    int64_t unit_count;                  /* SMs or cores */
    double clock_hz;
    struct dl_device_power power;
    double
        all_sockets_slowdown_ratio;  /* CPU: time with all devices of the host busy / time alone */
    double kernel_latency_s;         /* shortest kernel, start to end, on the device */
    double kernel_gap_s;             /* between two queued kernels on the device */
    double collective_slowdown_frac; /* compute time lost while NCCL runs / time of its transfers;
                                        NAN: the framework's value */
    struct dl_device_scales scales;
    double launch_s;        /* host time to queue one kernel with the bare runtime */
    double context_bytes;   /* device memory of the runtime and libraries */
    double workspace_bytes; /* default workspace limit of the convolution library */
    struct dl_rate *rates;
    int rate_count;
    struct dl_kernel_model *kernel_models; /* in the order of the file */
    int kernel_model_count;
    struct dl_work_factor *works; /* kinds of work that a calibration measured separately */
    int work_count;
    const char *kernel_models_from; /* device that lends its models, scaled by peaks; NULL: none */
    const struct dl_device *borrowed; /* loaded from kernel_models_from; not in the file */
    struct dl_map_entry *sources;     /* member -> source */
    int source_count;
    const char *comment; /* free text: how conflicting sources were weighed */
};

extern const struct dl_schema dl_device_schema;

/* Peak [flop/s] of the fastest unit that serves `precision`; NAN when the device has none or its
 * rate is unknown. mixed takes the fp16 matrix units. A device without them runs fp16 at its fp16
 * vector rate, else its fp32 one, and mixed at the fp32 vector rate (16-bit storage, fp32
 * arithmetic). tf32, bf16 and fp8 have no fallback. */
double dl_device_peak(const struct dl_device *device, enum dl_precision precision);

/* Time between two queued kernels [s]; 0 where it is unknown. */
double dl_device_gap_s(const struct dl_device *device);
/* Whether that rate is of matrix units. */
bool dl_device_on_matrix_units(const struct dl_device *device, enum dl_precision precision);

/* Rate [flop/s] of the same unit that large GEMMs attain under the power limit; NAN: not
 * measured. */
double dl_device_sustained(const struct dl_device *device, enum dl_precision precision);

/* Attained by long streams [byte/s]. */
double dl_device_stream_bandwidth(const struct dl_device *device);
/* Integer instructions per second: they compute indices. Before Volta they run on all fp32 lanes,
 * from then on on 64 of a unit. NAN: no fp32 rate. */
double dl_device_integer_rate(const struct dl_device *device);

bool dl_device_same_architecture(const struct dl_device *a, const struct dl_device *b);

/* What large GEMMs sustain [flop/s]; where that is not measured, the share of the peak that a
 * device of the same architecture sustains, from which this one borrows; mxfp8 runs on the units
 * of fp8. NAN: not known. */
double dl_device_attained(const struct dl_device *device, enum dl_precision precision);

/* Checks conditions between members. DL_ERR_INPUT at the member of `doc` that breaks one. */
enum dl_code dl_device_check(const struct dl_device *device, const struct dl_json *doc,
                             struct dl_err *err);
/* The same for a device at `path` of a larger document ("device_profile"). */
enum dl_code dl_device_check_at(const struct dl_device *device, const struct dl_json *doc,
                                const char *path, struct dl_err *err);

/* The device that has the kernel-time models: itself, or the one that it borrows them from. */
const char *dl_device_kernels_name(const struct dl_device *device);
/* "" where the file names none. */
const char *dl_device_architecture(const struct dl_device *device);

/* Generations of NVIDIA's GPUs, oldest first, by the kernels that they run: blackwell-rtx has the
 * matrix instructions of Ada. DL_NO_GENERATION: another vendor's architecture, or unknown. */
enum dl_generation {
    DL_NO_GENERATION = -1,
    DL_KEPLER,
    DL_MAXWELL,
    DL_PASCAL,
    DL_VOLTA,
    DL_TURING,
    DL_AMPERE,
    DL_ADA,
    DL_HOPPER,
    DL_BLACKWELL,
};
enum dl_generation dl_generation_of(const char *architecture);

#endif
