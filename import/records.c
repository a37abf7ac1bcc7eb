/* records.c - see records.h. */
#include "import/records.h"

#include <stdlib.h>
#include <string.h>

void dl_records_add(struct dl_records *r, const void *record) {
    if (r->count == r->capacity) {
        struct dl_arena memory = {0};
        const int64_t capacity = r->capacity == 0 ? 64 : 2 * r->capacity;
        void *list = dl_arena_alloc(&memory, (size_t)capacity, r->record_bytes);
        if (r->count > 0) memcpy(list, r->list, (size_t)r->count * r->record_bytes);
        dl_arena_free(&r->memory);
        r->memory = memory;
        r->list = list;
        r->capacity = capacity;
    }
    memcpy((char *)r->list + (size_t)r->count++ * r->record_bytes, record, r->record_bytes);
}

void dl_records_sort(struct dl_records *r, int (*compare)(const void *a, const void *b)) {
    if (r->count > 1) qsort(r->list, (size_t)r->count, r->record_bytes, compare);
}

void dl_records_free(struct dl_records *r) {
    dl_arena_free(&r->memory);
    *r = (struct dl_records){.record_bytes = r->record_bytes};
}
