/* compare_fit.c - one value of a constant for a whole device, library or release, found from many
 * runs. F-FIT-RUNS. */
#include "fits/compare_fit.h"

#include <gsl/gsl_multimin.h>
#include <math.h>
#include <string.h>

enum { MAX_STEPS = 400 };
#define FIRST_STEP 0.2 /* of log(value) */
#define SMALLEST_STEP 2e-4
#define SMOOTH_LOG 0.01 /* smaller errors have quadratic weight */

struct problem {
    const struct dl_fit_tables *tables;
    const struct dl_fit *fit;
    enum dl_code code;
    struct dl_err err;
};

/* All tables with the given values set; the rows live in the arena. */
static enum dl_code evaluate(const struct problem *p, const double *values, struct dl_arena *arena,
                             struct dl_comparison *out, struct dl_err *err) {
    const struct dl_fit_tables *t = p->tables;
    struct dl_data data = *t->data;
    data.overrides =
        dl_arena_alloc(arena, (size_t)data.override_count + DL_FIT_KEYS, sizeof *data.overrides);
    for (int i = 0; i < data.override_count; i++) data.overrides[i] = t->data->overrides[i];
    for (int i = 0; i < p->fit->count; i++) {
        const char *text = dl_arena_printf(arena, "%.17g", values[i]);
        data.overrides[data.override_count++] =
            (struct dl_override){.key = p->fit->values[i].key, .value = text};
    }
    *out = (struct dl_comparison){.arena = arena};
    for (int i = 0; i < t->count; i++) {
        if (t->csvs[i].row_count > 0)
            DL_TRY(dl_compare_table(&data, &t->csvs[i], t->anchor, out, err));
    }
    for (int i = 0; i < t->data->override_count; i++)
        t->data->overrides[i].used |= data.overrides[i].used;
    for (int i = t->data->override_count; i < data.override_count; i++) {
        if (!data.overrides[i].used)
            return dl_fail(err, DL_ERR_USAGE, "--fit: no row has the field '%s'",
                           data.overrides[i].key);
    }
    return DL_OK;
}

/* Mean over sources of the mean of a row's |log error|; NAN without a row. */
static double objective_of(const struct dl_comparison *c) {
    double sum = 0;
    int sources = 0;
    for (int i = 0; i < c->count; i++) {
        bool first = true;
        for (int k = 0; k < i && first; k++)
            first = strcmp(c->rows[k].source, c->rows[i].source) != 0;
        if (!first) continue;
        double errors = 0;
        int rows = 0;
        for (int k = i; k < c->count; k++) {
            if (c->rows[k].skipped || strcmp(c->rows[k].source, c->rows[i].source) != 0) continue;
            errors += hypot(log(c->rows[k].predicted / c->rows[k].measured), SMOOTH_LOG);
            rows++;
        }
        if (rows == 0) continue;
        sum += errors / rows;
        sources++;
    }
    return sources > 0 ? sum / sources : NAN;
}

static double objective(const gsl_vector *x, void *context) {
    struct problem *p = context;
    double values[DL_FIT_KEYS];
    struct dl_arena arena = {0};
    struct dl_comparison c;
    struct dl_err err = {0};
    for (int i = 0; i < p->fit->count; i++) values[i] = exp(gsl_vector_get(x, (size_t)i));
    const enum dl_code code = evaluate(p, values, &arena, &c, &err);
    const double result = code == DL_OK ? objective_of(&c) : NAN;
    dl_arena_free(&arena);
    if (code == DL_ERR_USAGE && p->code == DL_OK) return 1e3; /* outside the range of the field */
    if (code != DL_OK && p->code == DL_OK) {
        p->code = code;
        p->err = err;
    }
    return dl_known(result) ? result : 1e3;
}

enum dl_code dl_compare_fit_error(const struct dl_fit_tables *tables, const struct dl_fit *fit,
                                  double *error_pct, int *rows, struct dl_err *err) {
    struct problem p = {.tables = tables, .fit = fit};
    double values[DL_FIT_KEYS];
    struct dl_arena arena = {0};
    struct dl_comparison c;
    struct dl_error_summary *list = NULL;
    int count = 0;
    for (int i = 0; i < fit->count; i++) values[i] = fit->values[i].value;
    enum dl_code code = evaluate(&p, values, &arena, &c, err);
    if (code == DL_OK) {
        dl_compare_summarize(&c, &list, &count);
        *error_pct = count > 0 ? list[count - 1].mape_pct : NAN;
        *rows = count > 0 ? (int)list[count - 1].rows : 0;
    }
    dl_arena_free(&arena);
    return code;
}

enum dl_code dl_compare_fit(const struct dl_fit_tables *tables, struct dl_fit *fit,
                            struct dl_err *err) {
    struct problem p = {.tables = tables, .fit = fit};
    const size_t n = (size_t)fit->count;
    for (int i = 0; i < fit->count; i++) fit->values[i].value = fit->values[i].start_value;
    DL_TRY(dl_compare_fit_error(tables, fit, &fit->error_before_pct, &fit->rows, err));
    if (fit->rows == 0) return dl_fail(err, DL_ERR_INPUT, "--fit: no row can be predicted");
    gsl_vector *x = gsl_vector_alloc(n), *step = gsl_vector_alloc(n);
    gsl_multimin_fminimizer *minimizer =
        gsl_multimin_fminimizer_alloc(gsl_multimin_fminimizer_nmsimplex2, n);
    gsl_multimin_function function = {.f = objective, .n = n, .params = &p};
    for (int i = 0; i < fit->count; i++)
        gsl_vector_set(x, (size_t)i, log(fit->values[i].start_value));
    gsl_vector_set_all(step, FIRST_STEP);
    gsl_multimin_fminimizer_set(minimizer, &function, x, step);
    for (int i = 0; i < MAX_STEPS && p.code == DL_OK; i++) {
        if (gsl_multimin_fminimizer_iterate(minimizer) != 0) break;
        if (gsl_multimin_fminimizer_size(minimizer) < SMALLEST_STEP) break;
    }
    for (int i = 0; i < fit->count; i++)
        fit->values[i].value = exp(gsl_vector_get(minimizer->x, (size_t)i));
    gsl_multimin_fminimizer_free(minimizer);
    gsl_vector_free(x);
    gsl_vector_free(step);
    if (p.code != DL_OK) {
        *err = p.err;
        return p.code;
    }
    return dl_compare_fit_error(tables, fit, &fit->error_after_pct, &fit->rows, err);
}
