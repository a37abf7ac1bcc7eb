/* where.h - choosing rows of tables by the values of their columns: --where
 * COLUMN=VALUE[,VALUE...], or COLUMN~TEXT for cells that hold the text. */
#ifndef DL_PREDICT_OPTIONS_WHERE_H
#define DL_PREDICT_OPTIONS_WHERE_H

#include "model/catalog/command.h"
#include "model/core/csv.h"

/* option: the option to blame for a wrong column */
struct dl_filter {
    const char *option, *column, *value;
    bool part;
};
struct dl_filters {
    struct dl_filter list[DL_MAX_REPEATS + 8];
    int count;
};

/* `text` is one of the comma-separated values of `list`, or all of it. */
bool dl_filter_listed(const char *list, const char *text);
/* The options "where" of the command line, added to the filters. DL_ERR_USAGE when one is not
 * COLUMN=VALUE. */
enum dl_code dl_filters_read(const struct dl_options *options, struct dl_arena *arena,
                             struct dl_filters *out, struct dl_err *err);
/* DL_ERR_USAGE with a suggestion when a filter names a column that no table has. */
enum dl_code dl_filters_check(const struct dl_filters *filters, const struct dl_csv *csvs,
                              int count, struct dl_err *err);
/* All filters hold for the row. */
bool dl_filters_pass(const struct dl_filters *filters, const struct dl_csv *csv, int row);
/* Text of a row's cell; "" when there is no such column, "fp32" for an empty precision. */
const char *dl_filter_cell(const struct dl_csv *csv, int row, const char *column);
/* At most `most` different values of a column in order of appearance, without "" unless `empty`;
 * returns how many. */
int dl_filter_values(const struct dl_csv *csvs, int count, const char *column, bool empty,
                     const char **out, int most);
/* The rows that pass, as a table with the original lines; cells are shared. */
void dl_filters_apply(const struct dl_filters *filters, const struct dl_csv *csv,
                      struct dl_arena *arena, struct dl_csv *out);

#endif
