/* series.h - rows of a table of collectives as series, each measured in one way.
 *
 * One series: system, device, library and release, operation, nodes and ranks, and the column
 * `series`. Series that differ only in nodes and ranks are one machine with several rank counts. */
#ifndef DL_PREDICT_COMPARE_SERIES_H
#define DL_PREDICT_COMPARE_SERIES_H

#include "model/network/coll_match.h"
#include "model/catalog/data.h"

struct dl_series_row {
    struct dl_coll_row text;
    struct dl_coll_match match;
    const char *id, *source;
    /* index of the first row of the series, of the machine; -1: no system, size or time */
    int series, machine;
    int order; /* of its size in the series */
    int sizes; /* of the series */
};

struct dl_series {
    struct dl_series_row *rows;
    int count;
    struct dl_arena *arena;
};

enum { DL_SERIES_FOLDS = 5 };

enum dl_code dl_series_read(const struct dl_csv *csv, struct dl_arena *arena, struct dl_series *out,
                            struct dl_err *err);

/* Samples of the series that begins at row `first`, without those of `fold` (by size; -1: all);
 * a size that was measured twice counts with the mean of logs. */
void dl_series_measured(const struct dl_series *series, int first, int fold,
                        struct dl_coll_measured *out);

/* The system of a row with the row's library release, without samples. *why_out: the reason if
 * there is no such system; *out is then untouched. */
enum dl_code dl_series_system(const struct dl_data *data, const struct dl_series_row *row,
                              struct dl_arena *arena, struct dl_system *out, const char **why_out,
                              struct dl_err *err);

#endif
