/* first_sight.h - the record of first sights (data/first_sight): predictions of each source of runs
 * by the version that met it first, before anything was changed for it. Append-only: `chain` holds
 * one line per file, the hash of the line before and of the file. docs/first_sight.md */
#ifndef DL_PREDICT_COMPARE_FIRST_SIGHT_H
#define DL_PREDICT_COMPARE_FIRST_SIGHT_H

#include "predict/compare/compare.h"

struct dl_first_sight_row {
    const char *file, *id, *source; /* file: of the table, without its folder */
    const char *kind;               /* "dense/one-node/samples"; "": not predicted */
    const char *unit, *version, *date;
    double predicted, low, high, measured; /* NAN: not predicted */
    double time_error_pct;                 /* of the time, positive: predicted too slow */
    int64_t in_interval;                   /* 1, 0; DL_ABSENT: not predicted */
};

struct dl_first_sight {
    struct dl_first_sight_row *rows;
    int count;
    const char *folder; /* NULL: no data directory has a record */
    uint64_t hash;      /* of the last line of the chain */
    const char *chain;  /* its text */
};

/* Reads the record of the data directories. DL_ERR_INPUT where a file is not the one that was
 * recorded. */
enum dl_code dl_first_sight_read(const struct dl_data *data, struct dl_arena *arena,
                                 struct dl_first_sight *out, struct dl_err *err);

/* Adds the rows of a comparison, predicted now, as data/first_sight/NAME.csv. DL_ERR_USAGE where
 * NAME or a row is recorded already. `files`: the name of the table of each row. */
enum dl_code dl_first_sight_add(const struct dl_data *data, const char *name,
                                const struct dl_comparison *comparison, const char *const *files,
                                struct dl_arena *arena, struct dl_err *err);

/* A table of the record: rows that are compared as they were recorded. */
bool dl_first_sight_is(const struct dl_csv *csv);
enum dl_code dl_compare_first_sight(const struct dl_data *data, const struct dl_csv *csv,
                                    struct dl_comparison *out, struct dl_err *err);

#endif
