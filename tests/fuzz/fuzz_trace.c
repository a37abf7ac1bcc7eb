/* fuzz_trace.c - libFuzzer entry for traces and tables of times, and for the collectives in
 * a trace: no time is negative. */
#define _XOPEN_SOURCE 700 /* mkstemp */
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "import/import_bench.h"
#include "import/import_trace.h"
#include "tests/fuzz/mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
MUTATE_JSON()

static void check_collectives(const char *path, struct dl_arena *arena) {
    const struct dl_bench_given given = {.op = -1, .nodes = 2, .ranks = 16};
    struct dl_bench bench = {.arena = arena};
    struct dl_err err = {.code = DL_OK};
    if (dl_torch_nccl_parse(path, NULL, 0, &given, &bench, &err) != DL_OK) {
        if (err.code == DL_OK || err.message[0] == '\0') abort();
        return;
    }
    if (bench.count < 1) abort();
    for (int i = 0; i < bench.count; i++) {
        const struct dl_bench_row *row = &bench.rows[i];
        if (!(row->time_s > 0) || !(row->size_bytes >= 1) || row->ranks < 2 || row->nodes < 1 ||
            row->nodes > row->ranks)
            abort();
    }
}

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
    check_collectives(path, &arena);
    unlink(path);
    close(fd);
    dl_arena_free(&arena);
    return 0;
}
