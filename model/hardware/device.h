/* device.h - one accelerator (or CPU socket): peaks, memory, kernel-time surfaces, host costs.
 * A device is data (data/devices/NAME.json, or a profile written by calibrate); unknown members are
 * NAN.
 */
#ifndef DL_MODEL_HARDWARE_DEVICE_H
#define DL_MODEL_HARDWARE_DEVICE_H

#include "model/base/json.h"
#include "model/hardware/kernel.h"
#include "model/hardware/kernel_model.h"

enum dl_device_kind { DL_DEVICE_GPU, DL_DEVICE_CPU };
extern const char *const dl_device_kinds[]; /* "gpu", "cpu", NULL */

struct dl_rate {
    /* enum dl_precision; DL_MIXED is not a rate of its own: it uses fp16 */
    int precision;
    int unit;               /* 0 "vector", 1 "matrix" (tensor cores, AMX) */
    double peak_flop_per_s; /* dense */
    const char *source;
};

struct dl_work_factor {        /* F-KERNEL-WORK */
    int work, pass, precision; /* enum dl_work, dl_pass, dl_precision */
    double factor;             /* measured / what the surface of all kinds says */
    const char *source;
};

struct dl_device {
    /* source: key of data/SOURCES.md, for every number without its own */
    const char *name, *summary, *source;
    int kind;                            /* enum dl_device_kind */
    const char *vendor, *architecture;   /* "nvidia", "volta" */
    double memory_bytes;                 /* capacity */
    double memory_bandwidth_bytes_per_s; /* datasheet */
    double memory_efficiency;            /* attained / datasheet for long streams, 0..1 */
    double l2_bytes;                     /* last-level cache; NAN: unknown */
    int64_t unit_count;                  /* SMs or cores */
    double clock_hz, tdp_w;
    /* its arithmetic while all other devices of the host work too / alone; NAN: unknown */
    double together_ratio;
    double kernel_latency_s; /* shortest kernel, start to end, on the device */
    double kernel_gap_s;     /* between two queued kernels on the device */
    /* compute lost beside NCCL / its transfers; NAN: as the framework says */
    double collective_slowdown_frac;
    double launch_s;        /* host time to queue one kernel with the bare runtime */
    double context_bytes;   /* memory that the runtime and libraries take */
    double workspace_bytes; /* default workspace limit of the convolution library */
    struct dl_rate *rates;
    int rate_count;
    struct dl_kernel_model *surfaces;
    int surface_count; /* fitted; ordered as in the file */
    /* kinds of work that a calibration measured by themselves */
    struct dl_work_factor *works;
    int work_count;
    /* another device whose surfaces are borrowed, scaled by peaks; NULL: none */
    const char *surfaces_from;
    /* time of convolutions without a fast algorithm / by borrowed surfaces; NAN: 1. F-DIRECT-CONV
     */
    double direct_conv_scale;
    /* time of batch normalisations by libraries of the device's time / by bandwidth; NAN: 1.
     * F-DEVICE-NORM */
    double norm_scale;
    const struct dl_device *borrowed; /* loaded from surfaces_from (not in the file) */
    struct dl_map_entry *sources;
    int source_count;    /* key -> source of single members */
    const char *comment; /* choices between sources that disagree; free text */
};

extern const struct dl_schema dl_device_schema;

/* Peak [flop/s] of the fastest unit that serves `precision`, or NAN when the device has none or it
 * is unknown. mixed: the fp16 matrix units. A device without them runs fp16 on its fp16 vector rate
 * if it has one, else on the fp32 one, and mixed on the fp32 vector rate (16-bit storage, fp32
 * arithmetic). tf32, bf16 and fp8 have no fallback. */
double dl_device_peak(const struct dl_device *device, enum dl_precision precision);

/* Checks across members; name for errors. */
enum dl_code dl_device_check(const struct dl_device *device, const struct dl_json *doc,
                             struct dl_err *err);
/* The same for a device at `path` of a larger document ("device_profile"). */
enum dl_code dl_device_check_at(const struct dl_device *device, const struct dl_json *doc,
                                const char *path, struct dl_err *err);

#endif
