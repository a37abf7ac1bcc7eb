/* fake_gpu.h - a simulated GPU: the core of the fake CUDA libraries of these tests. No kernel runs.
 * Each call advances a clock by the time of a simple machine (see fake_kernel) and is recorded as a
 * rule for the elements of its result; an element is computed when it is copied to the host. Layers
 * of any size are therefore cheap, and a probe that passes wrong sizes, pointers or strides gets
 * wrong numbers, as on a real device. */
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

/* The result of one call: `count` elements at `out`. value() uses the operands as they were before
 * the call. */
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
/* For a device allocation filled with a repeated pattern: file descriptor of the memory, length of
 * the pattern, offset of `address`. false: other memory. The NCCL fakes read each other's operands
 * this way. */
bool fake_pattern(const void *address, int *fd, size_t *period, size_t *offset);

/* Advances the clock of the device. */
void fake_spend(double seconds);
/* time = 4 us + the larger of flop / rate and bytes / 800 GB/s, with a deterministic scatter of 2
 * %; rate by precision and by the sides of the GEMM (a side of 48 runs at half rate). */
void fake_kernel(double flop, double bytes, enum fake_type type, bool tf32, double m, double n,
                 double k);
double fake_clock(void);

/* Whether the device still waits for another process; NULL: it never does. */
extern bool (*fake_pending)(void);

#endif
