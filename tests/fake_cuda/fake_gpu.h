/* fake_gpu.h - a GPU that is none: the core of the fake CUDA libraries of these tests. No kernel
 * runs. Each call moves a clock by the time that a simple machine would take (see fake_kernel), and
 * is remembered as a rule for the elements of its result; an element is computed when it is copied
 * to the host. So layers of any size cost nothing, and a probe that passes wrong sizes, pointers or
 * strides gets wrong numbers, as on a real device. */
#ifndef TESTS_FAKE_CUDA_FAKE_GPU_H
#define TESTS_FAKE_CUDA_FAKE_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/fake_cuda/fake_scene.h"

enum fake_type { FAKE_F32, FAKE_F16, FAKE_BF16, FAKE_F8 };
size_t fake_bytes(enum fake_type type);
double fake_decode(enum fake_type type, const void *in);
void fake_encode(enum fake_type type, double value, void *out);

int fake_capability(void);

/* Result of one call: `count` elements at `out`. value() may use the operands as they were before
 * it. */
struct fake_op {
    char *out;
    size_t count;
    enum fake_type type, in_type;
    double (*value)(const struct fake_op *op, size_t index);
    const void *in[4];
    long n[24];
    double f[4];
    const void *more; /* of a library */
    unsigned sequence;
};
void fake_record(struct fake_op op);
/* Element `index` of an array as it was before the call `before` (of `op->sequence`). */
double fake_load(const void *array, enum fake_type type, size_t index, unsigned before);
/* Of a device allocation that was filled from its beginning with a repeated pattern: descriptor of
 * the memory, length of the pattern, offset of `address` in it. false: not such memory. NCCL's
 * fakes read each other's operands this way. */
bool fake_pattern(const void *address, int *fd, size_t *period, size_t *offset);

/* The device works for so long. */
void fake_spend(double seconds);
/* time = 4 us + the larger of flop / rate and bytes / 800 GB/s, with a deterministic scatter of 2
 * %; rate by precision and by the sides of the product (a side of 48 runs at half rate). */
void fake_kernel(double flop, double bytes, enum fake_type type, bool tf32, double m, double n,
                 double k);
double fake_clock(void);

/* Something outside that must happen before the device is done; NULL: nothing. */
extern bool (*fake_pending)(void);

#endif
