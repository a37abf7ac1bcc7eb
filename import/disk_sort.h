/* disk_sort.h - records in order, any number of them: what does not fit into some megabytes waits,
 * sorted, in a temporary file that has no name. */
#ifndef DL_IMPORT_DISK_SORT_H
#define DL_IMPORT_DISK_SORT_H

#include <stddef.h>
#include <stdint.h>

#include "model/core/status.h"

enum { DL_DISK_SORT_BYTES = 4 << 20 }; /* of records in memory */

struct dl_disk_run;
struct dl_disk_sort {
    size_t record_bytes;
    int (*compare)(const void *a, const void *b); /* a total order, or equal ones are alike */
    unsigned char *records;                       /* added last, or being read */
    size_t count, capacity;
    int64_t total, given; /* records added; given out since dl_disk_sort_start */
    int file;             /* -1: none yet */
    struct dl_disk_run *runs;
    int run_count, run_capacity;
    int *heap; /* runs with records left, the one with the next record first */
    int heap_count;
};

/* {0} may be closed too. */
void dl_disk_sort_init(struct dl_disk_sort *sort, size_t record_bytes,
                       int (*compare)(const void *a, const void *b));
void dl_disk_sort_close(struct dl_disk_sort *sort);
/* Before the first start. DL_ERR_SYSTEM: out of memory, or the temporary file cannot be written. */
enum dl_code dl_disk_sort_add(struct dl_disk_sort *sort, const void *record, struct dl_err *err);
/* Begins with the least record, again if need be. */
enum dl_code dl_disk_sort_start(struct dl_disk_sort *sort, struct dl_err *err);
/* The next record, *out NULL at the end; it stays until the next call. */
enum dl_code dl_disk_sort_next(struct dl_disk_sort *sort, const void **out, struct dl_err *err);

#endif
