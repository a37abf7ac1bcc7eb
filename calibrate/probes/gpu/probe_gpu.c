/* probe_gpu.c - see the header: the device, its memory, facts. */
#include "calibrate/probes/gpu/probe_gpu.h"

#include <cuda_runtime_api.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A tile has 1 Mi elements: larger than the caches of a multiprocessor, small enough to generate at
 * once. */
enum { TILE = 1 << 20 };
static const double SETS_BYTES_PER_L2 = 2.0;
enum { MAX_SETS = 256 };

/* A process uses one device; its memory outlives the points. */
static struct {
    struct dl_gpu gpu;
    bool open;
    int chosen;
    float *tile, *rounded; /* the random numbers, and the same rounded to the type of the pool */
    void *pool, *room;
    enum dl_gpu_type pool_type;
    size_t pool_elements, room_bytes;
    double context_bytes;
} here = {.chosen = -1};

void dl_gpu_choose(int ordinal) { here.chosen = ordinal; }

enum dl_code dl_gpu_check(int cuda_error, const char *what, struct dl_err *err) {
    const cudaError_t code = (cudaError_t)cuda_error;
    if (code == cudaSuccess) return DL_OK;
    cudaGetLastError(); /* clears the error, which the next call would report */
    return dl_fail(err, code == cudaErrorMemoryAllocation ? DL_ERR_SYSTEM : DL_ERR_BACKEND,
                   "%s: CUDA: %s (%d)", what, cudaGetErrorString(code), cuda_error);
}

static const char *driver_reason(int code) {
    static char text[256];
    if (code == cudaErrorInsufficientDriver) {
        int driver = 0, runtime = 0;
        cudaDriverGetVersion(&driver);
        cudaRuntimeGetVersion(&runtime);
        if (driver == 0)
            return "no NVIDIA driver here (libcuda.so.1): run on a GPU node or install the driver";
        snprintf(text, sizeof text,
                 "the NVIDIA driver supports CUDA %d.%d, but dlmodel was built with %d.%d: update "
                 "the driver or build with an older CUDA",
                 driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
        return text;
    }
    if (code == cudaErrorNoDevice)
        return "no GPU is visible (check CUDA_VISIBLE_DEVICES and the allocation's --gpus)";
    snprintf(text, sizeof text, "CUDA cannot be initialized: %s (%d)",
             cudaGetErrorString((cudaError_t)code), code);
    return text;
}

const char *dl_gpu_absent(void) {
    static bool asked;
    static const char *reason;
    if (asked) return reason;
    asked = true;
    const cudaError_t code = cudaGetDeviceCount(&here.gpu.count);
    if (code != cudaSuccess) {
        here.gpu.count = 0;
        reason = driver_reason((int)code);
    } else if (here.gpu.count == 0) {
        reason = driver_reason((int)cudaErrorNoDevice);
    }
    return reason;
}

static int attribute(enum cudaDeviceAttr what) {
    int value = 0;
    if (cudaDeviceGetAttribute(&value, what, here.gpu.ordinal) != cudaSuccess) value = 0;
    return value;
}

static int capability(void) {
    return 10 * attribute(cudaDevAttrComputeCapabilityMajor) +
           attribute(cudaDevAttrComputeCapabilityMinor);
}

/* Work of other processes would appear as slowness of this device. */
static enum dl_code check_quiet(const struct dl_nvml_state *state, struct dl_err *err) {
    const struct dl_gpu *g = &here.gpu;
    static const double BUSY_FRAC = 0.1;
    if (getenv("DLMODEL_GPU_BUSY") != NULL) return DL_OK;
    if (state->processes > 0) {
        return dl_fail(err, DL_ERR_BACKEND,
                       "GPU %d is in use by process %ld (%d in all): wait for it, choose another "
                       "GPU with CUDA_VISIBLE_DEVICES, or set DLMODEL_GPU_BUSY=1 to measure anyway",
                       g->ordinal, state->other_pid, state->processes);
    }
    if (state->busy_frac > BUSY_FRAC) {
        return dl_fail(err, DL_ERR_BACKEND,
                       "GPU %d is %.0f %% busy with other work: wait for it, choose another GPU "
                       "with CUDA_VISIBLE_DEVICES, or set DLMODEL_GPU_BUSY=1 to measure anyway",
                       g->ordinal, 100 * state->busy_frac);
    }
    return DL_OK;
}

static enum dl_code start(struct dl_err *err) {
    struct dl_gpu *g = &here.gpu;
    struct cudaDeviceProp properties;
    const char *absent = dl_gpu_absent();
    if (absent != NULL) return dl_fail(err, DL_ERR_BACKEND, "%s", absent);
    g->ordinal = here.chosen < 0 ? 0 : here.chosen;
    if (g->ordinal >= g->count)
        return dl_fail(err, DL_ERR_BACKEND, "GPU %d requested, but only %d are visible", g->ordinal,
                       g->count);
    size_t free_bytes = 0, total = 0;
    struct dl_nvml_state state;
    /* Before this process has a context, every process on the device is another one. */
    if (cudaDeviceGetPCIBusId(g->pci, (int)sizeof g->pci, g->ordinal) != cudaSuccess) g->pci[0] = 0;
    if (dl_nvml_read(g->pci, DL_NVML_ALL, &state)) DL_TRY(check_quiet(&state, err));
    const cudaError_t code = cudaSetDevice(g->ordinal);
    if (code == cudaErrorDevicesUnavailable || code == cudaErrorDeviceAlreadyInUse) {
        return dl_fail(err, DL_ERR_BACKEND,
                       "GPU %d is in exclusive use by another process: wait for it or choose "
                       "another with CUDA_VISIBLE_DEVICES",
                       g->ordinal);
    }
    DL_TRY(dl_gpu_check((int)code, "selecting the GPU", err));
    DL_TRY(dl_gpu_check((int)cudaFree(NULL), "creating a context", err));
    DL_TRY(dl_gpu_check((int)cudaMemGetInfo(&free_bytes, &total), "querying device memory", err));
    g->processes = dl_nvml_read(g->pci, DL_NVML_PROCESSES, &state) ? state.processes : 0;
    if (cudaGetDeviceProperties(&properties, g->ordinal) == cudaSuccess)
        snprintf(g->name, sizeof g->name, "%s", properties.name);
    g->capability = capability();
    g->units = attribute(cudaDevAttrMultiProcessorCount);
    g->l2_bytes = attribute(cudaDevAttrL2CacheSize);
    g->memory_bytes = (double)total;
    here.context_bytes = (double)(total - free_bytes);
    here.tile = malloc(TILE * sizeof *here.tile);
    here.rounded = malloc(TILE * sizeof *here.rounded);
    if (here.tile == NULL || here.rounded == NULL)
        return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    dl_fill_random(here.tile, TILE, 2024);
    memcpy(here.rounded, here.tile, TILE * sizeof *here.rounded); /* fp32, the first of the types */
    return DL_OK;
}

enum dl_code dl_gpu_open(const struct dl_gpu **out, struct dl_err *err) {
    if (!here.open) {
        DL_TRY(start(err));
        here.open = true;
    }
    *out = &here.gpu;
    return DL_OK;
}

static void drop_pool(void) {
    if (here.pool != NULL) cudaFree(here.pool);
    here.pool = NULL;
    here.pool_elements = 0;
}

double dl_gpu_pool_value(enum dl_gpu_type type, size_t index) {
    return type == here.pool_type ? (double)here.rounded[index % TILE]
                                  : dl_gpu_round(type, (double)here.tile[index % TILE]);
}

/* The first tile from the host, then doubled on the device. */
static enum dl_code fill(enum dl_gpu_type type, size_t tiles, struct dl_err *err) {
    const size_t each = dl_gpu_type_bytes(type), tile_bytes = TILE * each;
    unsigned char *coded = malloc(tile_bytes);
    if (coded == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    for (size_t i = 0; i < TILE; i++) {
        dl_gpu_encode(type, (double)here.tile[i], coded + i * each);
        here.rounded[i] = (float)dl_gpu_decode(type, coded + i * each);
    }
    const cudaError_t code = cudaMemcpy(here.pool, coded, tile_bytes, cudaMemcpyHostToDevice);
    free(coded);
    DL_TRY(dl_gpu_check((int)code, "copying random numbers to the GPU", err));
    for (size_t done = 1; done < tiles;) {
        const size_t more = done < tiles - done ? done : tiles - done;
        DL_TRY(
            dl_gpu_copy((char *)here.pool + done * tile_bytes, here.pool, more * tile_bytes, err));
        done += more;
    }
    return DL_OK;
}

enum dl_code dl_gpu_pool(enum dl_gpu_type type, size_t elements, void **out, struct dl_err *err) {
    /* one more tile: views may begin inside the first */
    const size_t tiles = (elements + TILE - 1) / TILE + 1;
    if (here.pool == NULL || here.pool_type != type || here.pool_elements < tiles * TILE) {
        drop_pool();
        DL_TRY(dl_gpu_check((int)cudaMalloc(&here.pool, tiles * TILE * dl_gpu_type_bytes(type)),
                            "allocating operands", err));
        here.pool_type = type;
        here.pool_elements = tiles * TILE;
        const enum dl_code code = fill(type, tiles, err);
        if (code != DL_OK) {
            drop_pool();
            return code;
        }
    }
    *out = here.pool;
    return DL_OK;
}

enum dl_code dl_gpu_room(size_t bytes, void **out, struct dl_err *err) {
    if (bytes > here.room_bytes) {
        if (here.room != NULL) cudaFree(here.room);
        here.room = NULL;
        here.room_bytes = 0;
        DL_TRY(dl_gpu_check((int)cudaMalloc(&here.room, bytes), "allocating results", err));
        here.room_bytes = bytes;
    }
    *out = here.room;
    return DL_OK;
}

enum dl_code dl_gpu_read(enum dl_gpu_type type, const void *array, size_t index, double *value,
                         struct dl_err *err) {
    const size_t each = dl_gpu_type_bytes(type);
    unsigned char bits[4] = {0};
    DL_TRY(dl_gpu_check(
        (int)cudaMemcpy(bits, (const char *)array + index * each, each, cudaMemcpyDeviceToHost),
        "reading a result", err));
    *value = dl_gpu_decode(type, bits);
    return DL_OK;
}

enum dl_code dl_gpu_copy(void *to, const void *from, size_t bytes, struct dl_err *err) {
    return dl_gpu_check((int)cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, NULL),
                        "copying on the GPU", err);
}

long dl_gpu_sets(double bytes) {
    const double sets = 1 + ceil(SETS_BYTES_PER_L2 * here.gpu.l2_bytes / fmax(bytes, 1));
    return sets < 2 ? 2 : sets > MAX_SETS ? MAX_SETS : (long)sets;
}

static void number_fact(const char *key, double value) {
    char text[32];
    if (isnan(value)) return;
    snprintf(text, sizeof text, "%.6g", value);
    dl_print_fact(key, text);
}

/* Prints PCI names, peer access, links and adapters of all visible devices. */
static void topology_facts(void) {
    enum { MOST = 16 };
    char pci[MOST][32], text[MOST * 33] = "";
    const int count = here.gpu.count < MOST ? here.gpu.count : MOST;
    for (int i = 0; i < count; i++) {
        if (cudaDeviceGetPCIBusId(pci[i], (int)sizeof pci[i], i) != cudaSuccess) return;
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i > 0 ? " " : "", pci[i]);
    }
    dl_print_fact("gpu_pci", text);
    bool peers = count > 1;
    for (int i = 0; i < count; i++) {
        for (int j = 0; j < count; j++) {
            int can = 0;
            if (i != j && (cudaDeviceCanAccessPeer(&can, i, j) != cudaSuccess || !can))
                peers = false;
        }
    }
    if (count > 1) dl_print_fact("gpu_peer_access", peers ? "yes" : "no");
    dl_nvml_link_facts((const char(*)[32])pci, count);
    const char *sys = getenv("DLMODEL_SYS"); /* tests use a tree of their own */
    dl_nic_facts(sys != NULL ? sys : "/sys", pci[here.gpu.ordinal < count ? here.gpu.ordinal : 0]);
}

void dl_gpu_facts(void) {
    const struct dl_gpu *g;
    struct dl_err err;
    struct dl_nvml_state state;
    static bool printed;
    int runtime = 0, driver = 0;
    char text[64];
    if (dl_gpu_absent() != NULL) return;
    /* Printed for a busy device too, so that calibrate tries to measure it and reports the reason.
     */
    if (!printed) {
        here.gpu.ordinal = here.chosen < 0 ? 0 : here.chosen;
        number_fact("gpu_count", here.gpu.count);
        number_fact("gpu_capability", capability());
    }
    if (dl_gpu_open(&g, &err) != DL_OK) return;
    if (!printed) {
        printed = true;
        cudaRuntimeGetVersion(&runtime);
        cudaDriverGetVersion(&driver);
        snprintf(text, sizeof text, "%d.%d, driver for %d.%d", runtime / 1000, runtime % 1000 / 10,
                 driver / 1000, driver % 1000 / 10);
        dl_print_fact("cuda", text);
        if (dl_nvml_driver() != NULL) dl_print_fact("gpu_driver", dl_nvml_driver());
        dl_print_fact("gpu", g->name);
        number_fact("gpu_units", g->units);
        number_fact("gpu_l2_bytes", g->l2_bytes);
        number_fact("gpu_memory_bytes", g->memory_bytes);
        number_fact("gpu_context_bytes", here.context_bytes);
        number_fact("gpu_clock_max_hz", 1e3 * attribute(cudaDevAttrClockRate));
        number_fact("gpu_peak_bytes_per_s", 2e3 * attribute(cudaDevAttrMemoryClockRate) *
                                                attribute(cudaDevAttrGlobalMemoryBusWidth) / 8);
        topology_facts();
    }
    if (!dl_nvml_read(g->pci, DL_NVML_ALL, &state)) {
        dl_print_fact("nvml",
                      "not installed: clocks, power and other processes were not monitored");
        return;
    }
    number_fact("gpu_clock_hz", state.clock_hz);
    number_fact("gpu_power_w", state.power_w);
    number_fact("gpu_power_limit_w", state.power_limit_w);
    number_fact("gpu_temperature_c", (double)state.temperature_c);
    dl_gpu_disturbance_facts();
}

/* Without a free GPU, --list still works, and measuring ends with the reason. */
int dl_gpu_main(int argc, char **argv, const struct dl_probe *const *probes) {
    const struct dl_gpu *gpu;
    struct dl_err err = {0};
    const bool listing = argc > 1 && strcmp(argv[1], "--list") == 0;
    if (!listing && argc > 1 && dl_gpu_open(&gpu, &err) != DL_OK) {
        fprintf(stderr, "%s\n", err.message);
        return DL_ERR_BACKEND;
    }
    dl_probe_conditions(dl_gpu_conditions);
    return dl_probe_main(argc, argv, probes, false, dl_gpu_facts);
}

void dl_gpu_conditions(double *clock_hz, double *power_w) {
    struct dl_nvml_state state;
    if (!here.open || !dl_nvml_read(here.gpu.pci, 0, &state)) return;
    *clock_hz = state.clock_hz;
    *power_w = state.power_w;
}
