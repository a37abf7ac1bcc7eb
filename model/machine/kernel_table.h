/* kernel_table.h - rows of tables with the columns `gpu` and `time_us` as kernels of kernel.h: GEMM
 * (m n k), attention (heads_q seq_q ...), convolution (stride_h ...), streams (elements bytes_min).
 * The header row determines the table's kind. For kernel_match.c. */
#ifndef DL_MODEL_MACHINE_KERNEL_TABLE_H
#define DL_MODEL_MACHINE_KERNEL_TABLE_H

#include "model/machine/kernel_match.h"

/* True when the header has the columns `gpu` and `time_us`. */
bool dl_kernel_table_header(const struct dl_csv *csv);

/* As dl_kernel_row_read. */
enum dl_code dl_kernel_table_row_read(const struct dl_csv *csv, int row, struct dl_kernel_row *out,
                                      struct dl_err *err);

/* A row of a table of streams: its kernel, or why it has none. */
enum dl_code dl_kernel_table_stream(const struct dl_csv *csv, int row, enum dl_pass pass,
                                    struct dl_kernel_row *out, struct dl_err *err);

/* The cell of a named column; "" when the table has no such column. */
const char *dl_kernel_table_cell(const struct dl_csv *csv, int row, const char *name);

#endif
