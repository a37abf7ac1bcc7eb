/* probe_mpi_device.c - see the header. The few declarations of the driver's interface are written
 * here: its exported names with "_v2" are fixed. */
#include "calibrate/probes/mpi/probe_mpi_device.h"

#include <dlfcn.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#if defined(OPEN_MPI) && OPEN_MPI
#include <mpi-ext.h>
#endif

typedef unsigned long long address; /* of device memory, as the driver has it */

static struct {
    bool asked;
    const char *reason; /* why not */
    int (*allocate)(address *, size_t);
    int (*release)(address);
    int (*put)(address, const void *, size_t);
    int (*get)(void *, address, size_t);
    int (*words)(int, const char **);
} driver;

static bool mpi_takes_device_memory(void) {
    const char *declared = getenv("DLMODEL_MPI_CUDA");
    if (declared != NULL) return strcmp(declared, "0") != 0;
#if defined(OPEN_MPI) && OPEN_MPI && defined(MPIX_CUDA_AWARE_SUPPORT)
    return MPIX_Query_cuda_support() == 1;
#else
    return false;
#endif
}

/* The copy avoids a cast between object and function. */
static bool find(void *library, const char *name, void *out) {
    void *symbol = dlsym(library, name);
    memcpy(out, &symbol, sizeof symbol);
    return symbol != NULL;
}

static enum dl_code check(int code, const char *what, struct dl_err *err) {
    const char *text = NULL;
    if (code == 0) return DL_OK;
    driver.words(code, &text);
    return dl_fail(err, DL_ERR_SYSTEM, "%s: CUDA driver: %s (%d)", what,
                   text != NULL ? text : "nothing", code);
}

static int rank_on_node(void) {
    MPI_Comm node;
    int rank = 0;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &rank);
    MPI_Comm_free(&node);
    return rank;
}

static const char *start(int local) {
    int (*init)(unsigned) = NULL, (*count_of)(int *) = NULL, (*device_of)(int *, int) = NULL,
        (*retain)(void **, int) = NULL, (*use)(void *) = NULL;
    const struct {
        const char *name;
        void *out;
    } functions[] = {{"cuInit", &init},
                     {"cuDeviceGetCount", &count_of},
                     {"cuDeviceGet", &device_of},
                     {"cuDevicePrimaryCtxRetain", &retain},
                     {"cuCtxSetCurrent", &use},
                     {"cuMemAlloc_v2", &driver.allocate},
                     {"cuMemFree_v2", &driver.release},
                     {"cuMemcpyHtoD_v2", &driver.put},
                     {"cuMemcpyDtoH_v2", &driver.get},
                     {"cuGetErrorString", &driver.words}};
    int count = 0, device = 0;
    void *context = NULL, *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) return "no NVIDIA driver here (libcuda.so.1)";
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        if (!find(library, functions[i].name, functions[i].out))
            return "the NVIDIA driver lacks functions (is it too old?)";
    }
    if (init(0) != 0 || count_of(&count) != 0 || count < 1)
        return "no GPU is visible to the MPI ranks";
    if (device_of(&device, local % count) != 0 || retain(&context, device) != 0 ||
        use(context) != 0)
        return "the MPI ranks cannot use a GPU";
    return NULL;
}

const char *dl_mpi_device_absent(void) {
    if (driver.asked) return driver.reason;
    driver.asked = true;
    /* All ranks call this and must return alike, or some would wait for the others. */
    driver.reason = start(rank_on_node());
    if (driver.reason == NULL && !mpi_takes_device_memory())
        driver.reason = "this MPI does not support device buffers, or has no query for it "
                        "(set DLMODEL_MPI_CUDA=1 if it does)";
    int lacks = driver.reason != NULL, any = 0;
    MPI_Allreduce(&lacks, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (any && driver.reason == NULL)
        driver.reason = "another rank has no GPU, or an MPI without CUDA support";
    return driver.reason;
}

enum dl_code dl_mpi_device_alloc(size_t bytes, void **out, struct dl_err *err) {
    address at = 0;
    DL_TRY(check(driver.allocate(&at, bytes), "allocating messages", err));
    *out = (void *)(uintptr_t)at;
    return DL_OK;
}

void dl_mpi_device_free(void *memory) {
    if (memory != NULL) driver.release((address)(uintptr_t)memory);
}

enum dl_code dl_mpi_device_put(void *device, const void *host, size_t bytes, struct dl_err *err) {
    return check(driver.put((address)(uintptr_t)device, host, bytes), "a copy to the GPU", err);
}

enum dl_code dl_mpi_device_get(void *host, const void *device, size_t bytes, struct dl_err *err) {
    return check(driver.get(host, (address)(uintptr_t)device, bytes), "a copy from the GPU", err);
}
