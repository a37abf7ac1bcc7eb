/* fake_cudart.c - the CUDA runtime of the fake device. */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/fake_cuda/fake_gpu.h"
#include "tests/fake_cuda/fake_memory.h"

struct CUevent_st {
    double time_s;
    bool pending; /* recorded, but not waited for */
};
struct CUstream_st {
    int unused;
};

static struct pinned {
    const char *base;
    size_t bytes;
} pinned[16];
static bool own_context;
static int chosen; /* device */

static size_t total_memory(void) {
    return fake_plays("small") ? (size_t)160 << 20 : (size_t)16 << 30;
}

static cudaError_t start(void) {
    if (fake_plays("nodriver")) return cudaErrorInsufficientDriver;
    if (fake_plays("nodevice")) return cudaErrorNoDevice;
    if (fake_plays("exclusive")) return cudaErrorDevicesUnavailable;
    if (!own_context) { /* NVML's fake sees it */
        own_context = true;
        setenv("FAKE_CUDA_CONTEXT", "1", 1);
    }
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version) {
    *version = fake_plays("nodriver") ? 0 : 13000;
    return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int *version) {
    *version = 13000;
    return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int *count) {
    if (fake_plays("nodriver")) return cudaErrorInsufficientDriver;
    if (fake_plays("nodevice")) return cudaErrorNoDevice;
    *count = fake_number("FAKE_CUDA_COUNT", 1);
    return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
    chosen = device;
    return device < fake_number("FAKE_CUDA_COUNT", 1) ? start() : cudaErrorInvalidValue;
}
cudaError_t cudaGetLastError(void) { return cudaSuccess; }
const char *cudaGetErrorString(cudaError_t error) {
    return error == cudaErrorMemoryAllocation ? "out of memory"
           : error == cudaErrorInvalidValue   ? "invalid argument"
                                              : "an error of the fake";
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device) {
    (void)device;
    switch (attribute) {
    case cudaDevAttrClockRate: *value = 1530000; break;
    case cudaDevAttrMultiProcessorCount: *value = 80; break;
    case cudaDevAttrMemoryClockRate: *value = 877000; break;
    case cudaDevAttrGlobalMemoryBusWidth: *value = 4096; break;
    case cudaDevAttrL2CacheSize: *value = 6 << 20; break;
    case cudaDevAttrComputeCapabilityMajor: *value = fake_capability() / 10; break;
    case cudaDevAttrComputeCapabilityMinor: *value = fake_capability() % 10; break;
    default: return cudaErrorInvalidValue;
    }
    return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *name, int length, int device) {
    snprintf(name, (size_t)length, "0000:%02X:00.0", 0x3b + device);
    return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer) {
    *can = device != peer;
    return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *out, int device) {
    (void)device;
    snprintf(out->name, sizeof out->name, "Fake GPU (synthetic, not a measurement)");
    return cudaSuccess;
}
/* its name in CUDA 12 */
cudaError_t cudaGetDeviceProperties_v2(struct cudaDeviceProp *out, int device);
cudaError_t cudaGetDeviceProperties_v2(struct cudaDeviceProp *out, int device) {
    return cudaGetDeviceProperties(out, device);
}

static void finish(void) {
    while (fake_pending != NULL && fake_pending()) {
    }
}
cudaError_t cudaDeviceSynchronize(void) {
    finish();
    return start();
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes) {
    *total_bytes = total_memory();
    *free_bytes = total_memory() - ((size_t)12 << 20) - fake_area_bytes();
    return cudaSuccess;
}
cudaError_t cudaMalloc(void **out, size_t bytes) {
    const cudaError_t code = start();
    if (code != cudaSuccess) return code;
    if (bytes + fake_area_bytes() + ((size_t)12 << 20) > total_memory())
        return cudaErrorMemoryAllocation;
    *out = fake_area_make(bytes);
    return *out == NULL ? cudaErrorMemoryAllocation : cudaSuccess;
}
cudaError_t cudaFree(void *memory) {
    if (memory == NULL) return start();
    return fake_area_free(memory) ? cudaSuccess : cudaErrorInvalidValue;
}
cudaError_t cudaMallocHost(void **out, size_t bytes) {
    *out = calloc(bytes, 1);
    for (size_t i = 0; i < sizeof pinned / sizeof *pinned && *out != NULL; i++) {
        if (pinned[i].base != NULL) continue;
        pinned[i] = (struct pinned){*out, bytes};
        return cudaSuccess;
    }
    free(*out);
    return cudaErrorMemoryAllocation;
}
cudaError_t cudaFreeHost(void *memory) {
    for (size_t i = 0; i < sizeof pinned / sizeof *pinned; i++) {
        if (pinned[i].base == memory) pinned[i].base = NULL;
    }
    free(memory);
    return cudaSuccess;
}

static bool is_pinned(const void *host) {
    for (size_t i = 0; i < sizeof pinned / sizeof *pinned; i++) {
        if (pinned[i].base != NULL && (const char *)host >= pinned[i].base &&
            (const char *)host < pinned[i].base + pinned[i].bytes)
            return true;
    }
    return false;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream) {
    (void)stream;
    bool good = false;
    /* a pageable copy is staged by the driver, which takes host time */
    static char *scratch;
    enum { SCRATCH = 1 << 20 };
    if (scratch == NULL) scratch = malloc(SCRATCH);
    if (kind == cudaMemcpyHostToDevice) {
        good = fake_to_device(to, from, bytes);
        for (size_t done = 0; done + SCRATCH <= bytes && !is_pinned(from) && scratch != NULL;
             done += SCRATCH)
            memcpy(scratch, (const char *)from + done, SCRATCH);
        fake_spend(8e-6 + (double)bytes / (is_pinned(from) ? 12e9 : 6e9));
    } else if (kind == cudaMemcpyDeviceToHost) {
        good = fake_to_host(to, from, bytes);
        fake_spend(8e-6 + (double)bytes / (is_pinned(to) ? 12.5e9 : 6e9));
    } else if (kind == cudaMemcpyDeviceToDevice) {
        good = fake_on_device(to, from, bytes);
        fake_kernel(0, 2 * (double)bytes, FAKE_F32, false, 1e9, 1e9, 1e9);
    }
    return good ? cudaSuccess : cudaErrorInvalidValue;
}
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind) {
    finish();
    return cudaMemcpyAsync(to, from, bytes, kind, NULL);
}
cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream) {
    (void)value;
    (void)stream;
    fake_kernel(0, (double)bytes, FAKE_F32, false, 1e9, 1e9, 1e9);
    return fake_area_of(to) != NULL ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t cudaStreamCreate(cudaStream_t *out) {
    while (fake_plays("stopped") && chosen == fake_number("FAKE_RANK", 1)) sleep(1);
    *out = calloc(1, sizeof **out);
    return *out == NULL ? cudaErrorMemoryAllocation : cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags) {
    (void)flags;
    *out = calloc(1, sizeof **out);
    return *out == NULL ? cudaErrorMemoryAllocation : cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    (void)stream;
    event->time_s = fake_clock();
    event->pending = true;
    return cudaSuccess;
}
/* The host is infinitely fast: the first query returns not ready, the next one ready unless another
 * process is pending. */
cudaError_t cudaEventQuery(cudaEvent_t event) {
    const bool first = event->pending;
    if (fake_pending != NULL) return fake_pending() ? cudaErrorNotReady : cudaSuccess;
    event->pending = false;
    return first ? cudaErrorNotReady : cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    finish();
    event->pending = false;
    return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to) {
    *ms = (float)(1e3 * (to->time_s - from->time_s));
    return cudaSuccess;
}
