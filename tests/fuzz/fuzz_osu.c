/* fuzz_osu.c - libFuzzer entry for output of OSU micro-benchmarks: rows have positive times. */
#include "tests/fuzz/bench_rows.h"
#include "tests/fuzz/mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
MUTATE_BY_PIECES(" \n")

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    return fuzz_bench_rows(dl_osu_parse, data, size);
}
