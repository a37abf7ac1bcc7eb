/* probe_gpu_nvml.c - clocks, power, temperature, other processes and links, from NVML where its
 * library is installed. */
#include "calibrate/probes/gpu/probe_gpu.h"
#include "calibrate/probes/gpu/nvml_abi.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef void *device;
enum { MAX_LINKS = 36, MAX_GPUS = 16 };

static struct {
    void *library;
    bool tried;
    int (*by_pci)(const char *, device *);
    int (*clock)(device, int, unsigned *);
    int (*power)(device, unsigned *);
    int (*power_limit)(device, unsigned *);
    int (*temperature)(device, int, unsigned *);
    int (*reasons)(device, unsigned long long *);
    int (*processes)(device, unsigned *, struct dl_nvml_process *);
    int (*busy)(device, struct dl_nvml_utilization *);
    int (*link_state)(device, unsigned, int *);
    int (*link_version)(device, unsigned, unsigned *);
    int (*link_remote)(device, unsigned, struct dl_nvml_pci *);
    int (*link_remote_type)(device, unsigned, int *);
    int (*pcie_generation)(device, unsigned *);
    int (*pcie_width)(device, unsigned *);
    char driver[96];
} nvml;

/* A function by its names, newest first; NULL when there is none. The copy avoids a cast between
 * object and function. */
static void find(void *out, const char *name, const char *older) {
    void *symbol = dlsym(nvml.library, name);
    if (symbol == NULL && older != NULL) symbol = dlsym(nvml.library, older);
    memcpy(out, &symbol, sizeof symbol);
}

static bool load(void) {
    if (nvml.tried) return nvml.library != NULL;
    nvml.tried = true;
    nvml.library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (nvml.library == NULL) return false;
    int (*init)(void) = NULL;
    int (*driver)(char *, unsigned) = NULL;
    find(&init, "nvmlInit_v2", NULL);
    find(&driver, "nvmlSystemGetDriverVersion", NULL);
    find(&nvml.by_pci, "nvmlDeviceGetHandleByPciBusId_v2", NULL);
    find(&nvml.clock, "nvmlDeviceGetClockInfo", NULL);
    find(&nvml.power, "nvmlDeviceGetPowerUsage", NULL);
    find(&nvml.power_limit, "nvmlDeviceGetEnforcedPowerLimit", NULL);
    find(&nvml.temperature, "nvmlDeviceGetTemperature", NULL);
    find(&nvml.reasons, "nvmlDeviceGetCurrentClocksEventReasons",
         "nvmlDeviceGetCurrentClocksThrottleReasons");
    find(&nvml.processes, "nvmlDeviceGetComputeRunningProcesses_v3",
         "nvmlDeviceGetComputeRunningProcesses_v2");
    find(&nvml.busy, "nvmlDeviceGetUtilizationRates", NULL);
    find(&nvml.link_state, "nvmlDeviceGetNvLinkState", NULL);
    find(&nvml.link_version, "nvmlDeviceGetNvLinkVersion", NULL);
    find(&nvml.link_remote, "nvmlDeviceGetNvLinkRemotePciInfo_v2", NULL);
    find(&nvml.link_remote_type, "nvmlDeviceGetNvLinkRemoteDeviceType", NULL);
    find(&nvml.pcie_generation, "nvmlDeviceGetCurrPcieLinkGeneration", NULL);
    find(&nvml.pcie_width, "nvmlDeviceGetCurrPcieLinkWidth", NULL);
    if (init == NULL || nvml.by_pci == NULL || init() != DL_NVML_OK) {
        dlclose(nvml.library);
        nvml.library = NULL;
        return false;
    }
    if (driver == NULL || driver(nvml.driver, sizeof nvml.driver) != DL_NVML_OK) nvml.driver[0] = 0;
    return true;
}

const char *dl_nvml_driver(void) { return load() && nvml.driver[0] != 0 ? nvml.driver : NULL; }

static void read_processes(device gpu, struct dl_nvml_state *out) {
    enum { MOST = 64 };
    struct dl_nvml_process list[MOST];
    unsigned count = MOST;
    const int code = nvml.processes == NULL ? -1 : nvml.processes(gpu, &count, list);
    if (code != DL_NVML_OK && code != DL_NVML_TOO_SMALL) return;
    out->processes = (int)count;
    for (unsigned i = 0; code == DL_NVML_OK && i < count && i < MOST; i++) {
        if (list[i].pid != (unsigned)getpid()) out->other_pid = (long)list[i].pid;
    }
}

/* A value of the device in SI units; NAN when this NVML or this device does not report it. */
static double quantity(int (*query)(device, unsigned *), device gpu, double unit) {
    unsigned value = 0;
    return query != NULL && query(gpu, &value) == DL_NVML_OK ? unit * value : NAN;
}

static double clock_of(device gpu, int which) {
    unsigned mhz = 0;
    return nvml.clock != NULL && nvml.clock(gpu, which, &mhz) == DL_NVML_OK ? 1e6 * mhz : NAN;
}

static void read_reasons(device gpu, struct dl_nvml_state *out) {
    unsigned long long reasons = 0;
    if (nvml.reasons == NULL || nvml.reasons(gpu, &reasons) != DL_NVML_OK) return;
    out->thermal = (reasons & (DL_NVML_SOFT_HEAT | DL_NVML_HARD_HEAT)) != 0;
    out->brake = (reasons & DL_NVML_POWER_BRAKE) != 0 ||
                 ((reasons & DL_NVML_HARDWARE) != 0 && (reasons & DL_NVML_HARD_HEAT) == 0);
    out->power_capped = (reasons & DL_NVML_POWER_CAP) != 0;
}

bool dl_nvml_read(const char *pci, int what, struct dl_nvml_state *out) {
    device gpu = NULL;
    unsigned celsius = 0;
    struct dl_nvml_utilization busy;
    *out = (struct dl_nvml_state){
        .clock_hz = NAN, .power_w = NAN, .power_limit_w = NAN, .busy_frac = NAN};
    if (!load() || nvml.by_pci(pci, &gpu) != DL_NVML_OK) return false;
    read_reasons(gpu, out);
    out->clock_hz = clock_of(gpu, DL_NVML_CLOCK_SM);
    out->power_w = quantity(nvml.power, gpu, 1e-3);
    if (what & (DL_NVML_PROCESSES | DL_NVML_ALL)) read_processes(gpu, out);
    if (!(what & DL_NVML_ALL)) return true;
    out->power_limit_w = quantity(nvml.power_limit, gpu, 1e-3);
    if (nvml.temperature != NULL && nvml.temperature(gpu, 0, &celsius) == DL_NVML_OK)
        out->temperature_c = (long)celsius;
    if (nvml.busy != NULL && nvml.busy(gpu, &busy) == DL_NVML_OK) out->busy_frac = 0.01 * busy.gpu;
    return true;
}

/* "0000:3B:00.0" and "00000000:3B:00.0" are the same place: compare without the domain's leading
 * zeros. */
static bool same_place(const char *a, const char *b) {
    while (*a == '0') a++;
    while (*b == '0') b++;
    for (; *a != 0 && *b != 0; a++, b++) {
        const int x = *a >= 'a' && *a <= 'z' ? *a - 'a' + 'A' : *a,
                  y = *b >= 'a' && *b <= 'z' ? *b - 'a' + 'A' : *b;
        if (x != y) return false;
    }
    return *a == *b;
}

struct links {
    int between[MAX_GPUS][MAX_GPUS], to_switch[MAX_GPUS];
    unsigned version;
};

/* Device at the other end of a link, or -1. */
static int peer_of(device gpu, unsigned link, const char (*pci)[32], int count) {
    struct dl_nvml_pci remote = {.name = ""};
    if (nvml.link_remote == NULL || nvml.link_remote(gpu, link, &remote) != DL_NVML_OK) return -1;
    int peer = -1;
    for (int i = 0; i < count; i++) {
        if (same_place(remote.name, pci[i])) peer = i;
    }
    return peer;
}

/* A link of unknown type that ends at no visible GPU ends at a switch. */
static bool may_end_at_switch(device gpu, unsigned link) {
    int type = -1;
    const bool typed =
        nvml.link_remote_type != NULL && nvml.link_remote_type(gpu, link, &type) == DL_NVML_OK;
    return !typed || type == DL_NVML_REMOTE_SWITCH;
}

static void read_links(device gpu, int from, const char (*pci)[32], int count, struct links *out) {
    for (unsigned link = 0; link < MAX_LINKS; link++) {
        int active = 0;
        unsigned version = 0;
        if (nvml.link_state == NULL || nvml.link_state(gpu, link, &active) != DL_NVML_OK || !active)
            continue;
        if (nvml.link_version != NULL && nvml.link_version(gpu, link, &version) == DL_NVML_OK &&
            version > out->version)
            out->version = version;
        const int to = peer_of(gpu, link, pci, count);
        if (to >= 0)
            out->between[from][to]++;
        else if (may_end_at_switch(gpu, link))
            out->to_switch[from]++;
    }
}

/* "0-1:2 0-3:1", each pair once. */
static void print_links(const struct links *found, int count) {
    char text[2048] = "";
    for (int i = 0; i < count; i++) {
        for (int j = i + 1; j < count; j++) {
            if (found->between[i][j] == 0 || strlen(text) > sizeof text - 32) continue;
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s%d-%d:%d",
                     text[0] != 0 ? " " : "", i, j, found->between[i][j]);
        }
    }
    if (text[0] != 0) dl_print_fact("gpu_links", text);
}

void dl_nvml_link_facts(const char (*pci)[32], int count) {
    static struct links found;
    unsigned generation = 0, width = 0;
    char text[64];
    device gpu = NULL;
    if (!load() || count > MAX_GPUS) return;
    for (int i = 0; i < count; i++) {
        if (nvml.by_pci(pci[i], &gpu) == DL_NVML_OK) read_links(gpu, i, pci, count, &found);
    }
    if (found.version > 0) {
        /* NVML counts 1.0, 2.0, 2.2, 3.0, 3.1, 4.0, 5.0, 6.0 */
        static const int names[] = {1, 1, 2, 2, 3, 3, 4, 5, 6};
        snprintf(text, sizeof text, "nvlink%d", names[found.version < 9 ? found.version : 8]);
        dl_print_fact("gpu_link_kind", text);
    }
    print_links(&found, count);
    if (found.to_switch[0] > 0) {
        snprintf(text, sizeof text, "%d", found.to_switch[0]);
        dl_print_fact("gpu_switch_links", text);
    }
    if (nvml.by_pci(pci[0], &gpu) == DL_NVML_OK && nvml.pcie_generation != NULL &&
        nvml.pcie_width != NULL && nvml.pcie_generation(gpu, &generation) == DL_NVML_OK &&
        nvml.pcie_width(gpu, &width) == DL_NVML_OK) {
        snprintf(text, sizeof text, "pcie%u x%u", generation, width);
        dl_print_fact("gpu_pcie", text);
    }
}
