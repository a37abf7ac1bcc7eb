/* workload_expr.h - arithmetic in workload files: "4*hidden", "index == 0 ? 2 : 1", "ceil(width /
 * 2)".
 *
 * Numbers, names, ( ), unary - and !, * / // (rounded down) %, + -, comparisons, && ||, ?:, and the
 * functions min, max, floor, ceil, round. Truth is 1 and 0; `true` and `false` are 1 and 0. 'M' is
 * the number of a letter, NAME[index] that of a letter of a text.
 */
#ifndef DL_MODEL_WORKLOAD_WORKLOAD_EXPR_H
#define DL_MODEL_WORKLOAD_WORKLOAD_EXPR_H

#include "model/core/status.h"

/* Value of a name; fails (with a message, without a place) when the name is unknown. `name`
 * lives only during the call. */
struct dl_expr_names {
    enum dl_code (*find)(void *context, const char *name, double *value_out, struct dl_err *err);
    /* of NAME[index]; NULL: there are no texts */
    enum dl_code (*letter)(void *context, const char *name, double index, double *value_out,
                           struct dl_err *err);
    void *context;
};

/* Evaluate all of `text`. Errors (DL_ERR_INPUT, no place): bad syntax, unknown name, division by
 * zero, a result that is not finite, nesting deeper than 32. */
enum dl_code dl_expr_eval(const char *text, const struct dl_expr_names *names, double *value_out,
                          struct dl_err *err);

#endif
