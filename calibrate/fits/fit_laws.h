/* fit_laws.h - laws that the kernel times of a device obey (F-KERNEL-LAWS), against samples too:
 *
 *   - a GEMM of a larger side takes at least 1/1.1 of the time: monotone within 10 %
 *   - no kernel of GEMM or attention is faster than the datasheet's peak
 *   - a GEMM of sides of 2,048 and more takes in 8 bits at most 1.1 of its time in 16 bits
 *   - causal attention takes at most as long as full attention
 *   - the backward pass of attention takes at least as long as the forward pass
 *
 * The fit of a device is refused if it breaks one. Not here: boards of one chip, which need two
 * devices (tests/property/test_kernel_laws.c). */
#ifndef DL_CALIBRATE_FITS_FIT_LAWS_H
#define DL_CALIBRATE_FITS_FIT_LAWS_H

#include "model/machine/device.h"

struct dl_law_breach {
    const char *law; /* NULL: none is broken */
    enum dl_precision precision;
    struct dl_kernel kernel, other; /* `kernel` takes too long or too short compared with `other` */
    double ratio;                   /* by which the law is broken, above 1 */
    int count;                      /* of pairs that break a law */
};

/* The worst breach over a grid of shapes, in the precisions that the device has. */
struct dl_law_breach dl_kernel_laws(const struct dl_device *device);

#endif
