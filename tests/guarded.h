/* guarded.h - for tests: copies of arrays between pages that cannot be touched, so that a read of
 * the element before the first or after the last ends the program, as it does not on the heap.
 * Define _DEFAULT_SOURCE before the first header.
 */
#ifndef TESTS_GUARDED_H
#define TESTS_GUARDED_H

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/check.h"

enum guard { GUARD_BEFORE, GUARD_AFTER, GUARDS };

/* A copy of `bytes` at the beginning or the end of what can be touched; it stays. */
static inline void *guarded(const void *data, size_t bytes, enum guard guard) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE),
                 inside = bytes > 0 ? (bytes + page - 1) / page * page : page;
    char *all = mmap(NULL, inside + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED || mprotect(all + page, inside, PROT_READ | PROT_WRITE) != 0)
        fail_msg("no memory for %zu bytes", bytes);
    char *at = all + page + (guard == GUARD_AFTER ? inside - bytes : 0);
    return memcpy(at, data, bytes);
}

#endif
