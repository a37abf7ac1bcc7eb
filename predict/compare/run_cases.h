/* run_cases.h - a table of runs of any length, read row by row: runs that differ in their name, in
 * their measured value and in columns that compare does not read are one case. Memory grows by 12
 * bytes a row, and by some kilobytes a case. */
#ifndef DL_PREDICT_COMPARE_RUN_CASES_H
#define DL_PREDICT_COMPARE_RUN_CASES_H

#include "model/core/csv_stream.h"
#include "predict/compare/compare.h"
#include "predict/options/where.h"

struct dl_run_cases {
    struct dl_csv csv; /* cases, with the cells of their first rows; rows is NULL before they are
                          read */
    struct dl_row_list rows;    /* those that the filters let pass */
    bool any;                   /* the table has a row, of those that the filters drop too */
    struct dl_file_reader file; /* as it was when it was read */
};

/* The header of a table of runs in a regular file. *is_runs_out: false for any other file, which
 * has to be read whole. */
enum dl_code dl_run_cases_open(const char *path, struct dl_arena *arena, struct dl_run_cases *out,
                               bool *is_runs_out, struct dl_err *err);
/* Its cases and rows. */
enum dl_code dl_run_cases_read(struct dl_run_cases *cases, const struct dl_filters *filters,
                               struct dl_arena *arena, struct dl_err *err);
/* Calls `visit` with the name of each row that passes, reading the file again; DL_ERR_INPUT when it
 * has changed since. */
enum dl_code dl_run_cases_names(const struct dl_run_cases *cases, const struct dl_filters *filters,
                                enum dl_code (*visit)(void *user, const char *id,
                                                      struct dl_err *err),
                                void *user, struct dl_err *err);

#endif
