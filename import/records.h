/* records.h - a growing array of records of one type. */
#ifndef DL_IMPORT_RECORDS_H
#define DL_IMPORT_RECORDS_H

#include <stdint.h>

#include "model/core/arena.h"

/* {.record_bytes = sizeof(type)} is empty. */
struct dl_records {
    size_t record_bytes;
    void *list;
    int64_t count, capacity;
    struct dl_arena memory; /* holds the list alone */
};

void dl_records_add(struct dl_records *records, const void *record);
void dl_records_sort(struct dl_records *records, int (*compare)(const void *a, const void *b));
void dl_records_free(struct dl_records *records);

#endif
