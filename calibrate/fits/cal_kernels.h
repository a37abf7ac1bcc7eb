/* cal_kernels.h - `calibrate --kernels CSV...`: refit the kernel-time surfaces of a device from
 * published samples. */
#ifndef DL_CALIBRATE_FITS_CAL_KERNELS_H
#define DL_CALIBRATE_FITS_CAL_KERNELS_H

#include "model/cli/command.h"

/* Positional arguments are the CSV files; --device NAME; -o FILE for the surfaces. Prints the
 * cross-validation. */
enum dl_code dl_cal_kernels(struct dl_context *context, const struct dl_options *options,
                            enum dl_format format, struct dl_err *err);

#endif
