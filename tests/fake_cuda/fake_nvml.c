/* fake_nvml.c - NVML of the fake device: the functions that the probes load, under their exported
 * names. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "calibrate/probes/gpu/nvml_abi.h"
#include "tests/fake_cuda/fake_scene.h"

enum { FIRST_BUS = 0x3b, LINKS_A_PEER = 2 };

/* Prototypes, because no header declares them. */
int nvmlInit_v2(void);
int nvmlSystemGetDriverVersion(char *out, unsigned size);
int nvmlDeviceGetHandleByPciBusId_v2(const char *name, void **out);
int nvmlDeviceGetClockInfo(void *device, int which, unsigned *mhz);
int nvmlDeviceGetPowerUsage(void *device, unsigned *mw);
int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned *mw);
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius);
int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *reasons);
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count,
                                            struct dl_nvml_process *list);
int nvmlDeviceGetUtilizationRates(void *device, struct dl_nvml_utilization *out);
int nvmlDeviceGetNvLinkState(void *device, unsigned link, int *active);
int nvmlDeviceGetNvLinkVersion(void *device, unsigned link, unsigned *version);
int nvmlDeviceGetNvLinkRemotePciInfo_v2(void *device, unsigned link, struct dl_nvml_pci *out);
int nvmlDeviceGetNvLinkRemoteDeviceType(void *device, unsigned link, int *type);
int nvmlDeviceGetCurrPcieLinkGeneration(void *device, unsigned *generation);
int nvmlDeviceGetCurrPcieLinkWidth(void *device, unsigned *width);

static const char *links(void) {
    return getenv("FAKE_CUDA_LINKS") == NULL ? "mesh" : getenv("FAKE_CUDA_LINKS");
}

static int devices[16];
static int number_of(const void *device) { return (int)((const int *)device - devices); }

int nvmlInit_v2(void) { return 0; }
int nvmlSystemGetDriverVersion(char *out, unsigned size) {
    snprintf(out, size, "580.00 (fake)");
    return 0;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char *name, void **out) {
    unsigned domain = 0, bus = 0;
    if (sscanf(name, "%x:%x:", &domain, &bus) != 2 || bus < FIRST_BUS ||
        bus - FIRST_BUS >= (unsigned)fake_number("FAKE_CUDA_COUNT", 1))
        return DL_NVML_NOT_FOUND;
    *out = &devices[bus - FIRST_BUS];
    return 0;
}
int nvmlDeviceGetClockInfo(void *device, int which, unsigned *mhz) {
    (void)device;
    *mhz = which == 2 ? 877 : fake_plays("hot") ? 765 : 1530;
    return 0;
}
int nvmlDeviceGetPowerUsage(void *device, unsigned *mw) {
    (void)device;
    *mw = 250000;
    return 0;
}
int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned *mw) {
    (void)device;
    *mw = 300000;
    return 0;
}
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius) {
    (void)device;
    (void)sensor;
    *celsius = fake_plays("hot") ? 90 : 55;
    return 0;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *reasons) {
    (void)device;
    *reasons =
        fake_plays("hot") ? 0x40 : 0x4; /* temperature, or the power limit, which is common */
    return 0;
}

/* This process once it has a context; "busy": another one from the start; "shared": another one
 * after the first two queries, which precede all samples. */
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count,
                                            struct dl_nvml_process *list) {
    static int asked;
    unsigned n = 0;
    (void)device;
    asked++;
    if (fake_plays("busy") && *count > n)
        list[n++] = (struct dl_nvml_process){.pid = 4242, .memory = 1 << 30};
    if (getenv("FAKE_CUDA_CONTEXT") != NULL && *count > n)
        list[n++] = (struct dl_nvml_process){.pid = (unsigned)getpid()};
    if (fake_plays("shared") && asked > 2 && *count > n)
        list[n++] = (struct dl_nvml_process){.pid = 4343};
    *count = n;
    return 0;
}
int nvmlDeviceGetUtilizationRates(void *device, struct dl_nvml_utilization *out) {
    (void)device;
    *out = (struct dl_nvml_utilization){fake_plays("loaded") ? 60 : 0, 0};
    return 0;
}

/* mesh: LINKS_A_PEER links to each other device; switch: twelve to switches */
static int peer_of(int device, unsigned link) {
    const int peer = (int)link / LINKS_A_PEER;
    return peer >= device ? peer + 1 : peer;
}
static bool has_link(int device, unsigned link) {
    if (fake_number("FAKE_CUDA_COUNT", 1) < 2 || strcmp(links(), "none") == 0) return false;
    return strcmp(links(), "switch") == 0
               ? link < 12
               : peer_of(device, link) < fake_number("FAKE_CUDA_COUNT", 1);
}
int nvmlDeviceGetNvLinkState(void *device, unsigned link, int *active) {
    if (link >= 18) return DL_NVML_NOT_SUPPORTED;
    *active = has_link(number_of(device), link);
    return 0;
}
int nvmlDeviceGetNvLinkVersion(void *device, unsigned link, unsigned *version) {
    (void)device;
    (void)link;
    *version = strcmp(links(), "switch") == 0 ? 4 : 2;
    return 0;
}
int nvmlDeviceGetNvLinkRemotePciInfo_v2(void *device, unsigned link, struct dl_nvml_pci *out) {
    memset(out, 0, sizeof *out);
    if (!has_link(number_of(device), link)) return DL_NVML_NOT_SUPPORTED;
    snprintf(out->name, sizeof out->name, "00000000:%02X:00.0",
             strcmp(links(), "switch") == 0
                 ? 0xc0u
                 : (unsigned)(FIRST_BUS + peer_of(number_of(device), link)));
    return 0;
}
int nvmlDeviceGetNvLinkRemoteDeviceType(void *device, unsigned link, int *type) {
    (void)device;
    (void)link;
    *type = strcmp(links(), "switch") == 0 ? 2 : 0;
    return 0;
}
int nvmlDeviceGetCurrPcieLinkGeneration(void *device, unsigned *generation) {
    (void)device;
    *generation = 3;
    return 0;
}
int nvmlDeviceGetCurrPcieLinkWidth(void *device, unsigned *width) {
    (void)device;
    *width = 16;
    return 0;
}
