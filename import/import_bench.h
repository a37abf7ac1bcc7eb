/* import_bench.h - printed output of nccl-tests and of the OSU micro-benchmarks as rows of
 * data/collectives/. */
#ifndef DL_IMPORT_IMPORT_BENCH_H
#define DL_IMPORT_IMPORT_BENCH_H

#include "model/network/collective.h"

enum { DL_BENCH_TOKENS = 32 };
#define DL_BENCH_MOST_BYTES 1e15 /* more than any memory holds */
#define DL_BENCH_LEAST_US 1e-6   /* a picosecond; of bandwidths 1 byte/s */
#define DL_BENCH_MOST_US 1e12    /* eleven days */

struct dl_bench_row {
    int op; /* enum dl_collective_op */
    /* NULL: unknown */
    const char *version, *device, *dtype, *notes, *library;
    int64_t nodes, ranks;      /* 0: unknown */
    double size_bytes, time_s; /* size as the collective's bytes: the whole buffer of a rank */
    double alg_bytes_per_s, bus_bytes_per_s;
    /* windowed: many messages at once (OSU bandwidth); wrong: failed the tool's check */
    bool in_place, windowed, wrong;
    int line;
};

/* Facts that the output lacks, from options. */
/* op -1, numbers 0: not given */
struct dl_bench_given {
    int op;
    int64_t nodes, ranks;
    const char *dtype;
};

struct dl_bench {
    struct dl_bench_row *rows;
    int count;
    struct dl_arena *arena;
    const char *damaged; /* lines of rows that were left out, and why; NULL: none */
};

/* Append the rows of one file. DL_ERR_INPUT with the line: truncated, not this tool's output, or
 * inconsistent. */
enum dl_code dl_nccl_tests_parse(const char *name, const char *text, size_t length,
                                 const struct dl_bench_given *given, struct dl_bench *out,
                                 struct dl_err *err);
enum dl_code dl_osu_parse(const char *name, const char *text, size_t length,
                          const struct dl_bench_given *given, struct dl_bench *out,
                          struct dl_err *err);

/* A trace of torch.profiler: the file of that name, of any size; `text` is not used. */
enum dl_code dl_torch_nccl_parse(const char *name, const char *text, size_t length,
                                 const struct dl_bench_given *given, struct dl_bench *out,
                                 struct dl_err *err);

/* Shared: the next line without its end and without what a launcher or a clock puts before it:
 * "N: " (srun --label), "[1,0]<stdout>:" (mpirun --tag-output), "node1: ", "[2026-05-04 12:30:00]",
 * "2026-05-04T12:30:00.123Z"; NULL at the end. */
struct dl_bench_lines {
    const char *at, *end;
    int line;
};
const char *dl_bench_line(struct dl_bench_lines *lines, struct dl_arena *arena);
/* Words of a line; at most DL_BENCH_TOKENS, more are counted but not kept. The line is cut up. */
int dl_bench_tokens(char *line, char **tokens);
/* a finite number of at least 0, whole token */
bool dl_bench_number(const char *token, double *out);
struct dl_bench_row *dl_bench_add(struct dl_bench *bench);

#endif
