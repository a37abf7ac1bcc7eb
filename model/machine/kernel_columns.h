/* kernel_columns.h - the columns of tables of kernel times, with their ranges and words. */
#ifndef DL_MODEL_MACHINE_KERNEL_COLUMNS_H
#define DL_MODEL_MACHINE_KERNEL_COLUMNS_H

#include "model/core/csv_field.h"

extern const struct dl_schema dl_kernel_row_schema; /* "dlmodel-kernels" */

/* A cell of one of its columns of numbers or words, by name; NAN: the cell is empty or the table
 * has no such column. DL_ERR_INPUT: the cell is out of range. */
enum dl_code dl_kernel_number(const struct dl_csv *csv, int row, const char *name, double *out,
                              struct dl_err *err);

/* DL_ERR_INPUT: the operation is none of DeepBench's. Tables by GPU name operations as their
 * sources do; a row of an unknown one is not predicted. */
enum dl_code dl_kernel_deepbench_op(const struct dl_csv *csv, int row, struct dl_err *err);

#endif
