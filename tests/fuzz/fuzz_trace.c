/* fuzz_trace.c - libFuzzer entry for traces and tables of times: none is negative. */
#define _XOPEN_SOURCE 700 /* mkstemp */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "import/import_trace.h"
#include "tests/fuzz/mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
MUTATE_JSON()

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct dl_arena arena = {0};
    struct dl_err err = {.code = DL_OK};
    struct dl_trace_times times;
    const char *text = (const char *)data;
    char path[] = "/tmp/dlmodel-fuzz-XXXXXX"; /* SQLite opens no memory file by its number */
    const int fd = mkstemp(path);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size) abort();

    for (int csv = 0; csv < 2; csv++) {
        err.code = DL_OK;
        const enum dl_code code = csv ? dl_trace_csv("input", text, size, 0, &arena, &times, &err)
                                      : dl_trace_file(path, 0, &arena, &times, &err);
        if (code != DL_OK) {
            if (err.code == DL_OK || err.message[0] == '\0') abort();
            continue;
        }
        if (times.steps < 1 || times.layer_count < 1) abort();
        for (int i = 0; i < times.layer_count; i++) {
            if (times.layers[i].forward_s < 0 || times.layers[i].backward_s < 0 ||
                times.layers[i].name[0] == '\0')
                abort();
        }
    }
    unlink(path);
    close(fd);
    dl_arena_free(&arena);
    return 0;
}
