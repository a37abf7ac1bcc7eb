/* cal_kernels.h - `calibrate --kernels CSV...`: fits the kernel-time models of a device to
 * published samples. */
#ifndef DL_CALIBRATE_FITS_CAL_KERNELS_H
#define DL_CALIBRATE_FITS_CAL_KERNELS_H

#include "model/catalog/command.h"

/* Positional arguments: further CSV files; --device NAME; -o FILE for the models. Prints the
 * cross-validation. */
enum dl_code dl_cal_kernels(struct dl_context *context, const struct dl_options *options,
                            enum dl_format format, struct dl_err *err);

#endif
