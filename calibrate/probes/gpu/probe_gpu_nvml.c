/* probe_gpu_nvml.c - clocks, power, heat, other processes and links, from NVML where its library is
 * there. The few declarations needed are written here: their layout is part of the library's
 * interface (nvml.h, "_v2" and "_v3" names). */
#include "calibrate/probes/gpu/probe_gpu.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef void *device;
enum { OK = 0, TOO_SMALL = 7, CLOCK_SM = 1, CLOCK_MEMORY = 2, MOST_LINKS = 36, MOST_GPUS = 16 };
/* why clocks are below the highest */
enum { POWER_CAP = 0x4, HARDWARE = 0x8, SOFT_HEAT = 0x20, HARD_HEAT = 0x40, POWER_BRAKE = 0x80 };
enum { REMOTE_SWITCH = 2 };

struct process {
    unsigned pid;
    unsigned long long memory;
    unsigned gpu_instance, compute_instance;
};
struct utilization {
    unsigned gpu, memory;
};
struct pci {
    char legacy[16];
    unsigned domain, bus, device, id, subsystem;
    char name[32];
};

static struct {
    void *library;
    bool tried;
    int (*by_pci)(const char *, device *);
    int (*clock)(device, int, unsigned *);
    int (*power)(device, unsigned *);
    int (*power_limit)(device, unsigned *);
    int (*temperature)(device, int, unsigned *);
    int (*reasons)(device, unsigned long long *);
    int (*processes)(device, unsigned *, struct process *);
    int (*busy)(device, struct utilization *);
    int (*link_state)(device, unsigned, int *);
    int (*link_version)(device, unsigned, unsigned *);
    int (*link_remote)(device, unsigned, struct pci *);
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
    if (init == NULL || nvml.by_pci == NULL || init() != OK) {
        dlclose(nvml.library);
        nvml.library = NULL;
        return false;
    }
    if (driver == NULL || driver(nvml.driver, sizeof nvml.driver) != OK) nvml.driver[0] = 0;
    return true;
}

const char *dl_nvml_driver(void) { return load() && nvml.driver[0] != 0 ? nvml.driver : NULL; }

static void read_processes(device gpu, struct dl_nvml_state *out) {
    enum { MOST = 64 };
    struct process list[MOST];
    unsigned count = MOST;
    const int code = nvml.processes == NULL ? -1 : nvml.processes(gpu, &count, list);
    if (code != OK && code != TOO_SMALL) return;
    out->processes = (int)count;
    for (unsigned i = 0; code == OK && i < count && i < MOST; i++) {
        if (list[i].pid != (unsigned)getpid()) out->other_pid = (long)list[i].pid;
    }
}

bool dl_nvml_read(const char *pci, int what, struct dl_nvml_state *out) {
    device gpu = NULL;
    unsigned value = 0;
    unsigned long long reasons = 0;
    struct utilization busy;
    *out = (struct dl_nvml_state){.clock_hz = NAN,
                                  .memory_clock_hz = NAN,
                                  .power_w = NAN,
                                  .power_limit_w = NAN,
                                  .busy_frac = NAN};
    if (!load() || nvml.by_pci(pci, &gpu) != OK) return false;
    if (nvml.reasons != NULL && nvml.reasons(gpu, &reasons) == OK) {
        out->thermal = (reasons & (SOFT_HEAT | HARD_HEAT)) != 0;
        out->brake = (reasons & POWER_BRAKE) != 0 ||
                     ((reasons & HARDWARE) != 0 && (reasons & HARD_HEAT) == 0);
        out->power_capped = (reasons & POWER_CAP) != 0;
    }
    if (nvml.clock != NULL && nvml.clock(gpu, CLOCK_SM, &value) == OK) out->clock_hz = 1e6 * value;
    if (nvml.power != NULL && nvml.power(gpu, &value) == OK) out->power_w = 1e-3 * value;
    if (what & (DL_NVML_PROCESSES | DL_NVML_ALL)) read_processes(gpu, out);
    if (!(what & DL_NVML_ALL)) return true;
    if (nvml.clock != NULL && nvml.clock(gpu, CLOCK_MEMORY, &value) == OK)
        out->memory_clock_hz = 1e6 * value;
    if (nvml.power_limit != NULL && nvml.power_limit(gpu, &value) == OK)
        out->power_limit_w = 1e-3 * value;
    if (nvml.temperature != NULL && nvml.temperature(gpu, 0, &value) == OK)
        out->temperature_c = (long)value;
    if (nvml.busy != NULL && nvml.busy(gpu, &busy) == OK) out->busy_frac = 0.01 * busy.gpu;
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
    int between[MOST_GPUS][MOST_GPUS], to_switch[MOST_GPUS];
    unsigned version;
};

static void read_links(device gpu, int from, const char (*pci)[32], int count, struct links *out) {
    for (unsigned link = 0; link < MOST_LINKS; link++) {
        int active = 0, type = -1;
        unsigned version = 0;
        struct pci remote = {.name = ""};
        if (nvml.link_state == NULL || nvml.link_state(gpu, link, &active) != OK || !active)
            continue;
        if (nvml.link_version != NULL && nvml.link_version(gpu, link, &version) == OK &&
            version > out->version)
            out->version = version;
        const bool typed =
            nvml.link_remote_type != NULL && nvml.link_remote_type(gpu, link, &type) == OK;
        int to = -1;
        if (nvml.link_remote != NULL && nvml.link_remote(gpu, link, &remote) == OK) {
            for (int i = 0; i < count; i++) {
                if (same_place(remote.name, pci[i])) to = i;
            }
        }
        if (to >= 0)
            out->between[from][to]++;
        else if (typed ? type == REMOTE_SWITCH
                       : true) /* neither a GPU that is visible here nor typed: a switch's port */
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
    if (!load() || count > MOST_GPUS) return;
    for (int i = 0; i < count; i++) {
        if (nvml.by_pci(pci[i], &gpu) == OK) read_links(gpu, i, pci, count, &found);
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
    if (nvml.by_pci(pci[0], &gpu) == OK && nvml.pcie_generation != NULL &&
        nvml.pcie_width != NULL && nvml.pcie_generation(gpu, &generation) == OK &&
        nvml.pcie_width(gpu, &width) == OK) {
        snprintf(text, sizeof text, "pcie%u x%u", generation, width);
        dl_print_fact("gpu_pcie", text);
    }
}
