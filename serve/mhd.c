/* mhd.c - finds libmicrohttpd and its functions. */
#include "serve/mhd.h"

#include <dlfcn.h>
#include <string.h>

struct dl_mhd dl_mhd;

static void *library;

/* dlsym returns a data pointer for a function (POSIX). */
static enum dl_code find(const char *name, void *out, struct dl_err *err) {
    void *found = dlsym(library, name);
    if (found == NULL)
        return dl_fail(err, DL_ERR_BACKEND, "libmicrohttpd has no function %s", name);
    memcpy(out, &found, sizeof found);
    return DL_OK;
}

#define FIND(name) DL_TRY(find(#name, &dl_mhd.name, err));

enum dl_code dl_mhd_load(struct dl_err *err) {
    library = dlopen(DL_MICROHTTPD, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return dl_fail(err, DL_ERR_BACKEND, "%s cannot be loaded: %s", DL_MICROHTTPD, dlerror());
    DL_MHD_FUNCTIONS(FIND)
    return DL_OK;
}
