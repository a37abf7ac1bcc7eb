/* fuzz_osu.c - libFuzzer entry for output of OSU micro-benchmarks: rows have positive times. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "predict/import/import_bench.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct dl_arena arena = {0};
    struct dl_err err = {.code = DL_OK};
    const struct dl_bench_given given = {.op = DL_COLL_ALL_REDUCE, .nodes = 2, .ranks = 8};
    struct dl_bench bench = {.arena = &arena};

    if (dl_osu_parse("input", (const char *)data, size, &given, &bench, &err) == DL_OK) {
        if (bench.count < 1) abort();
        for (int i = 0; i < bench.count; i++) {
            if (!(bench.rows[i].time_s > 0) || !(bench.rows[i].size_bytes >= 0) ||
                bench.rows[i].ranks < bench.rows[i].nodes)
                abort();
        }
    } else if (err.code == DL_OK || err.message[0] == '\0') {
        abort();
    }
    dl_arena_free(&arena);
    return 0;
}
