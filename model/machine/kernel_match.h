/* kernel_match.h - rows of a published table of kernel times as kernels of kernel.h: DeepBench's
 * columns (`device`, `time_ms`) or those by GPU (`gpu`, `time_us`; kernel_table.h).
 *
 * Reads GEMM, convolution, attention and stream tables; recurrent rows have no kernel. Pure: text
 * in, kernels out. */
#ifndef DL_MODEL_MACHINE_KERNEL_MATCH_H
#define DL_MODEL_MACHINE_KERNEL_MATCH_H

#include "model/core/csv.h"
#include "model/machine/kernel.h"

enum { DL_ROW_MORE = 3 };
struct dl_kernel_row {
    const char *device; /* as in the table */
    struct dl_kernel kernel;
    /* further kernels of the time: other passes ("bwd" and "fwd_bwd" of layers with weights),
     * casts, copies to another layout */
    struct dl_kernel more[DL_ROW_MORE];
    int more_count;
    enum dl_precision precision;
    double measured_s;
    bool by_call;    /* timed call by call from the host: no shorter than a launch */
    const char *why; /* why the row is not a kernel (missing time or size); NULL: it is one */
};

/* Device file for a name in a table's device column: "V100" -> "v100_sxm2_16"; the name of a device
 * file stays as it is. NULL: a device of the published tables that no file describes. */
const char *dl_kernel_match_device(const char *column);

/* True when the header is that of a table of kernel times. */
bool dl_kernel_header(const struct dl_csv *csv);

/* DL_ERR_INPUT with the line: a missing column, a cell that is not a number, an unknown
 * precision or pass. */
enum dl_code dl_kernel_row_read(const struct dl_csv *csv, int row, struct dl_kernel_row *out,
                                struct dl_err *err);

#endif
