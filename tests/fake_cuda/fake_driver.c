/* fake_driver.c - the CUDA driver of the fake device for the MPI probes: device memory is memory of
 * the process, so that an MPI without CUDA support can transfer it. */
#include <stdlib.h>
#include <string.h>

#include "tests/fake_cuda/fake_scene.h"

int cuInit(unsigned flags);
int cuDeviceGetCount(int *count);
int cuDeviceGet(int *device, int ordinal);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxSetCurrent(void *context);
int cuMemAlloc_v2(unsigned long long *out, size_t bytes);
int cuMemFree_v2(unsigned long long memory);
int cuMemcpyHtoD_v2(unsigned long long to, const void *from, size_t bytes);
int cuMemcpyDtoH_v2(void *to, unsigned long long from, size_t bytes);
int cuGetErrorString(int code, const char **text);

static int context_of[16];
static const int NO_DEVICE = 100, OUT_OF_MEMORY = 2;

int cuInit(unsigned flags) {
    (void)flags;
    return fake_plays("nodevice") ? NO_DEVICE : 0;
}
int cuDeviceGetCount(int *count) {
    *count = fake_number("FAKE_CUDA_COUNT", 1);
    return 0;
}
int cuDeviceGet(int *device, int ordinal) {
    *device = ordinal;
    return 0;
}
int cuDevicePrimaryCtxRetain(void **context, int device) {
    *context = &context_of[device];
    return 0;
}
int cuCtxSetCurrent(void *context) { return context == NULL; }
int cuMemAlloc_v2(unsigned long long *out, size_t bytes) {
    void *memory = malloc(bytes);
    *out = (unsigned long long)memory;
    return memory == NULL ? OUT_OF_MEMORY : 0;
}
int cuMemFree_v2(unsigned long long memory) {
    free((void *)memory);
    return 0;
}
int cuMemcpyHtoD_v2(unsigned long long to, const void *from, size_t bytes) {
    memcpy((void *)to, from, bytes);
    return 0;
}
int cuMemcpyDtoH_v2(void *to, unsigned long long from, size_t bytes) {
    const char *played = getenv("FAKE_CUDA");
    memcpy(to, (const void *)from, bytes);
    if (played != NULL && strcmp(played, "wrong") == 0) memset(to, 1, bytes);
    return 0;
}
int cuGetErrorString(int code, const char **text) {
    *text = code == OUT_OF_MEMORY ? "out of memory" : "an error of the fake";
    return 0;
}
