/* import_nccl.h - shared by the readers of nccl-tests' printed output and of its JSON (-J). */
#ifndef DL_IMPORT_IMPORT_NCCL_H
#define DL_IMPORT_IMPORT_NCCL_H

#include "import/import_bench.h"
#include "model/core/text.h"

enum { DL_NCCL_HOSTS_MAX = 4096 };

/* Where the columns of the printed table are; -1: not in this table. */
struct dl_nccl_columns {
    int count, size, type, time[2], alg[2], bus[2], wrong[2];
    bool clock;  /* further words at the end: a time of day */
    bool of_cpu; /* times of the CPU, not of the collective */
};

struct dl_nccl_reader {
    const char *name;
    const struct dl_bench_given *given;
    struct dl_bench *out;
    struct dl_err *err;
    struct dl_nccl_columns columns;
    int op;
    int64_t ranks, host_count;
    const char *hosts[DL_NCCL_HOSTS_MAX], *device, *version, *library;
    int line, rows;
    struct dl_text damaged; /* lines of rows that are left out */
    struct dl_err first;    /* of the damaged rows */
};

/* A time of a row, out of place or in place, in the tool's units. */
struct dl_nccl_time {
    double size_bytes, time_us, alg_gb_per_s, bus_gb_per_s;
    const char *type; /* NULL: unknown */
    bool in_place, wrong;
};

/* An error at the reader's line; `found` NULL: nothing to quote. */
enum dl_code dl_nccl_bad(const struct dl_nccl_reader *r, const char *key, const char *message,
                         const char *found);
extern const char dl_nccl_cpu_times[]; /* why times of the CPU are refused */
/* The collective of a program's name, "all_reduce_perf" in a text; -1: none. */
int dl_nccl_operation(const char *text);
/* "2.28.5" of NCCL_VERSION_CODE 22805; NULL: no such code. */
const char *dl_nccl_version(struct dl_arena *arena, double code);
void dl_nccl_add_host(struct dl_nccl_reader *r, const char *host);
/* DL_ERR_INPUT: facts of the run are missing or contradict the numbers. */
enum dl_code dl_nccl_add(struct dl_nccl_reader *r, const struct dl_nccl_time *time);
/* A damaged row costs itself alone: two processes wrote one line, or it is cut off. */
void dl_nccl_leave_out(struct dl_nccl_reader *r);

/* The file of -J. */
enum dl_code dl_nccl_read_json(struct dl_nccl_reader *r, const char *text, size_t length);

#endif
