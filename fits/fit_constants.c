/* fit_constants.c - `compare --fit-constants`: the constants of data/constants.json fitted to all
 * rows, how certain they are, and which of them the runs do not support. F-JACKKNIFE */
#include <math.h>

#include "model/core/columns.h"
#include "model/catalog/command.h"
#include "fits/generalize_print.h"

#define Z95 1.959963984540054
#define SERVES 0.01    /* a row is served when its iteration changes by this part of a constant's */
#define LEAST_LOG 0.02 /* intervals are at least this wide: fits stop there */
enum { MAX_SOURCES = 256 };

/* What the columns show of one constant. */
struct facts {
    const char *key, *without, *refused;
    double value, fitted, low, high, largest_move_pct;
    int sources, rows;
};
#define SHOWN(member, heading, unit, digits)                                                       \
    DL_SHOWN(struct facts, member, #member, heading, unit, 0, digits, 0, NULL)
static const struct dl_list_column columns[] = {
    SHOWN(key, "constant", "", 0),    SHOWN(value, "in its file", "", 4),
    SHOWN(fitted, "fitted", "", 4),   SHOWN(low, "low", "", 4),
    SHOWN(high, "high", "", 4),       SHOWN(sources, "sources", "", 0),
    SHOWN(rows, "rows", "", 0),       SHOWN(largest_move_pct, "moves", "%", 3),
    SHOWN(without, "without", "", 0), SHOWN(refused, "refused because", "", 0),
};

/* What leaving out each source that a constant serves does to it. */
struct jackknife {
    double moves[MAX_SOURCES]; /* log(without / with all) */
    const char *names[MAX_SOURCES];
    int sources, rows;
};

static void leave_out(const struct dl_generalized *g, size_t constant, struct jackknife *out) {
    const size_t k = (size_t)g->constants->count;
    *out = (struct jackknife){.sources = 0};
    for (size_t s = 0; s < g->group_count && out->sources < MAX_SOURCES; s++) {
        int served = 0;
        for (size_t i = 0; i < g->rows->count; i++) {
            served += g->group_of[i] == s && dl_known(g->rows->rows[i].measured_s) &&
                      fabs(g->sensitivity[i * k + constant]) > SERVES;
        }
        if (served == 0) continue;
        out->rows += served;
        out->names[out->sources] = g->groups[s];
        out->moves[out->sources++] = log(g->values[s * k + constant] / g->all_values[constant]);
    }
}

/* Jackknife's standard error of the estimate, from the moves but `except` (-1: all). */
static double standard_error(const struct jackknife *j, int except) {
    double mean = 0, square = 0;
    const int n = j->sources - (except >= 0);
    if (n < 1) return NAN;
    for (int i = 0; i < j->sources; i++)
        if (i != except) mean += j->moves[i] / n;
    for (int i = 0; i < j->sources; i++)
        if (i != except) square += (j->moves[i] - mean) * (j->moves[i] - mean);
    return sqrt((double)(n - 1) / n * square);
}

struct verdict {
    double half_width_log; /* of the 95 % interval */
    int mover;             /* the source whose absence moves the constant most */
    const char *refused;   /* NULL: it stands */
};

/* A move is judged by the interval of the other moves: its own would always hold it. */
static struct verdict judge(const struct jackknife *j, struct dl_arena *arena) {
    struct verdict v = {.half_width_log = fmax(LEAST_LOG, Z95 * standard_error(j, -1)), .mover = 0};
    for (int i = 1; i < j->sources; i++)
        if (fabs(j->moves[i]) > fabs(j->moves[v.mover])) v.mover = i;
    if (j->sources == 0)
        v.refused = "no row needs it";
    else if (j->sources == 1)
        v.refused = dl_arena_printf(arena, "it serves one source: %s", j->names[0]);
    else if (j->sources > 2 &&
             fabs(j->moves[v.mover]) >
                 fmax(5 * LEAST_LOG, Z95 * sqrt((double)j->sources) * standard_error(j, v.mover)))
        v.refused = dl_arena_printf(arena, "it hangs on one source: %s", j->names[v.mover]);
    else if (j->sources == 2 && fabs(j->moves[0] - j->moves[1]) > 10 * LEAST_LOG)
        v.refused = "its two sources disagree";
    return v;
}

static void add(const struct dl_generalized *g, size_t i, const struct jackknife *j,
                const struct verdict *v, struct dl_table *table) {
    const struct dl_constant *c = &g->constants->list[i];
    const double value = g->all_values[i];
    const struct facts facts = {.key = c->key,
                                .without = j->sources > 0 ? j->names[v->mover] : "",
                                .refused = v->refused,
                                .value = c->value,
                                .fitted = value,
                                .low = fmax(c->low, value * exp(-v->half_width_log)),
                                .high = fmin(c->high, value * exp(v->half_width_log)),
                                .largest_move_pct =
                                    j->sources > 0 ? 100 * expm1(j->moves[v->mover]) : NAN,
                                .sources = j->sources,
                                .rows = j->rows};
    dl_list_add(table, columns, &facts);
}

void dl_fit_constants_table(const struct dl_generalized *g, struct dl_arena *arena,
                            struct dl_table *table) {
    dl_list_table(table, arena, DL_LIST(columns), 0);
    for (size_t i = 0; i < (size_t)g->constants->count; i++) {
        struct jackknife j;
        leave_out(g, i, &j);
        const struct verdict v = judge(&j, arena);
        add(g, i, &j, &v, table);
    }
}

enum dl_code dl_fit_constants_run(struct dl_context *context, const struct dl_options *options,
                                  const struct dl_data *data, const struct dl_generalized *g,
                                  struct dl_err *err) {
    struct dl_table table;
    const char *refused = "";
    int refusals = 0;
    dl_fit_constants_table(g, context->arena, &table);
    for (size_t i = 0; i < (size_t)g->constants->count; i++) {
        struct jackknife j;
        leave_out(g, i, &j);
        const struct verdict v = judge(&j, context->arena);
        if (v.refused == NULL) {
            if (dl_option_given(options, "write"))
                DL_TRY(dl_constants_write(data, &g->constants->list[i], g->all_values[i],
                                          context->arena, err));
            continue;
        }
        refused = dl_arena_printf(context->arena, "%s%s%s", refused, refusals++ > 0 ? ", " : "",
                                  g->constants->list[i].key);
    }
    DL_TRY(dl_output_table(context, options, &table, "dlmodel-constants-fit", "constants", err));
    if (refusals == 0) return DL_OK;
    return dl_fail(err, DL_ERR_NO, "%d constant%s refused: %.600s", refusals,
                   refusals == 1 ? " is" : "s are", refused);
}
