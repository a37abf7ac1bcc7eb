/* fit_laws.h - laws that the kernel times of a device obey (F-KERNEL-LAWS), whatever its samples:
 *
 *   - a GEMM of a larger side takes at least 1/1.1 of the time: monotone within 10 %
 *   - no kernel of GEMM or attention is faster than 1.1 of the datasheet's peak
 *   - a GEMM of sides of 2,048 and more takes in 8 bits at most 1.1 of its time in 16 bits
 *   - causal attention takes at most as long as full attention
 *   - the backward pass of attention takes at least as long as the forward pass
 *
 *   - boards of one chip take within 15 % of the same time where arithmetic limits
 *
 * The fit of a device is refused if it breaks one. */
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

/* The worst breach over a grid of shapes; none for a precision that the device does not have, and
 * for other operations. */
struct dl_law_breach dl_kernel_laws(const struct dl_device *device, enum dl_op op,
                                    enum dl_precision precision);

/* One chip's boards: GEMMs long enough for the power limits to act take within 15 % of the same
 * time. */
struct dl_law_breach dl_kernel_board_law(const struct dl_device *device,
                                         const struct dl_device *board,
                                         enum dl_precision precision);

#endif
