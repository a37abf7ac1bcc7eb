/* bench_rows.h - what the fuzzers of benchmark output share: a parser answers with rows of positive
 * times, or with an error that says why. */
#ifndef DL_TESTS_FUZZ_BENCH_ROWS_H
#define DL_TESTS_FUZZ_BENCH_ROWS_H

#include <stdint.h>
#include <stdlib.h>

#include "import/import_bench.h"

typedef enum dl_code bench_parser(const char *name, const char *text, size_t length,
                                  const struct dl_bench_given *given, struct dl_bench *out,
                                  struct dl_err *err);

static inline int fuzz_bench_rows(bench_parser *parse, const uint8_t *data, size_t size) {
    struct dl_arena arena = {0};
    struct dl_err err = {.code = DL_OK};
    const struct dl_bench_given given = {.op = DL_COLL_ALL_REDUCE, .nodes = 2, .ranks = 8};
    struct dl_bench bench = {.arena = &arena};

    if (parse("input", (const char *)data, size, &given, &bench, &err) == DL_OK) {
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

#endif
