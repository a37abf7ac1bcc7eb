/* compare_worst.h - the few rows of a comparison that are named: those with the largest errors, and
 * the slowest. */
#ifndef DL_PREDICT_COMPARE_COMPARE_WORST_H
#define DL_PREDICT_COMPARE_COMPARE_WORST_H

#include "predict/compare/compare.h"

enum { DL_WORST_ROWS = 8 };
struct dl_worst_row {
    int row;
    double error_pct; /* of the time, absolute */
    const char *id;
};
struct dl_worst {
    struct dl_worst_row list[DL_WORST_ROWS]; /* the worst first */
    int count;
};

/* Call dl_worst_name once per row, in the order of the rows. */
struct dl_worst_names {
    const struct dl_comparison *c;
    struct dl_arena *arena;
    struct dl_worst *worst; /* equal errors in the order of names; NULL: not wanted */
    struct dl_worst *slow;  /* runs slower than their interval, the first of those with one error */
    double least_pct;       /* no smaller error is among the worst */
    int next, wanted;       /* wanted: 0: no name is */
};
/* Finds the slow rows, and what an error among the worst must reach. */
void dl_worst_begin(struct dl_worst_names *names);
enum dl_code dl_worst_name(void *names, const char *id, struct dl_err *err);
/* The row with its name and its cause. */
struct dl_compared dl_worst_row(const struct dl_comparison *c, const struct dl_worst_row *row,
                                struct dl_arena *arena);

#endif
