/* fake_memory.h - memory of the fake device, for the files of the fake CUDA runtime only. */
#ifndef TESTS_FAKE_CUDA_FAKE_MEMORY_H
#define TESTS_FAKE_CUDA_FAKE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

struct fake_area {
    char *base;
    size_t bytes;
    size_t period, filled; /* the first `filled` bytes repeat the first `period` */
    int fd;                /* by which other processes map it */
    bool written;          /* calls have results in it */
};
struct fake_area *fake_area_of(const void *address);
void *fake_area_make(size_t bytes);
bool fake_area_free(void *base);
size_t fake_area_bytes(void); /* of all */
bool fake_to_device(void *to, const void *from, size_t bytes);
bool fake_on_device(void *to, const void *from, size_t bytes);
bool fake_to_host(void *to, const void *from, size_t bytes);

#endif
