/* compare_print.h - the result of `compare`, for people, spreadsheets and programs. */
#ifndef DL_PREDICT_COMPARE_COMPARE_PRINT_H
#define DL_PREDICT_COMPARE_COMPARE_PRINT_H

#include "model/catalog/command.h"
#include "predict/compare/run_cases.h"

/* A table of measurements; its rows are a range of those of the comparison. */
struct dl_compare_table {
    bool streamed;
    struct dl_csv csv;         /* rows, or cases of a table that is read row by row */
    struct dl_run_cases cases; /* of such a table */
    int first_row, row_count;
};
struct dl_compare_tables {
    struct dl_compare_table *list;
    int count;
    const struct dl_filters *filters;
};

/* Prints it in the format of the options. *overall_out: mean absolute error, macro-averaged over
 * sources [%]; NAN: no row could be predicted, or this is a part (--shard). */
enum dl_code dl_compare_print(struct dl_context *context, const struct dl_options *options,
                              const struct dl_comparison *comparison,
                              const struct dl_compare_tables *tables, enum dl_format format,
                              double *overall_out, struct dl_err *err);

#endif
