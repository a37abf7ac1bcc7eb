/* nvml_abi.h - the parts of NVML's binary interface that the probes use, from its nvml.h ("_v2" and
 * "_v3" names): a machine without the CUDA toolkit has the library but not the header.
 */
#ifndef DL_CALIBRATE_PROBES_GPU_NVML_ABI_H
#define DL_CALIBRATE_PROBES_GPU_NVML_ABI_H

enum { DL_NVML_OK = 0, DL_NVML_NOT_SUPPORTED = 3, DL_NVML_NOT_FOUND = 6, DL_NVML_TOO_SMALL = 7 };
enum { DL_NVML_CLOCK_SM = 1 };
/* reasons why clocks are below the maximum */
enum {
    DL_NVML_POWER_CAP = 0x4,
    DL_NVML_HARDWARE = 0x8,
    DL_NVML_SOFT_HEAT = 0x20,
    DL_NVML_HARD_HEAT = 0x40,
    DL_NVML_POWER_BRAKE = 0x80
};
enum { DL_NVML_REMOTE_SWITCH = 2 };

struct dl_nvml_process {
    unsigned pid;
    unsigned long long memory;
    unsigned gpu_instance, compute_instance;
};
struct dl_nvml_utilization {
    unsigned gpu, memory;
};
struct dl_nvml_pci {
    char legacy[16];
    unsigned domain, bus, device, id, subsystem;
    char name[32];
};

#endif
