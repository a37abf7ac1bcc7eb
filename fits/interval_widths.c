/* interval_widths.c - see interval_widths.h. One width after another, by the golden section of its
 * logarithm: the score is cheap, has kinks, and most widths concern few rows. */
#include "fits/interval_widths.h"

#include <math.h>
#include <stdlib.h>

#define MISS 10.0      /* 2 / (1 - coverage) */
#define SMOOTH 0.005   /* of the kink at the end of an interval */
#define USUAL -3.0     /* log(0.05): where the prior has its middle */
#define PRIOR 1e-4     /* a width e times smaller or larger than usual adds this to the score */
#define LEAST_LOG -7.0 /* 0.1 % */
/* Few sources expose much communication, too few to say that it is known better than the
 * collectives themselves (0.35 between nodes). */
#define LEAST_COMMUNICATION_LOG -1.05
#define MAX_LOG 1.5
#define GOLDEN 0.6180339887498949
enum { GRID = 12, SECTIONS = 18, MAX_SWEEPS = 60 };

struct search {
    const struct dl_width_row *rows;
    size_t count;
    double *rest; /* of each row: h^2 without the width that moves */
    double weights;
    int width;
};

static double square(double x) { return x * x; }

static double score(const struct search *s, double log_width) {
    const double variance = exp(2 * log_width);
    double sum = 0;
    for (size_t i = 0; i < s->count; i++) {
        const struct dl_width_row *row = &s->rows[i];
        if (!(row->weight_ratio > 0)) continue;
        const double h = sqrt(s->rest[i] + variance * square(row->covariate[s->width]));
        const double beyond = row->error_log - h;
        sum += row->weight_ratio * (2 * h + MISS * (beyond + hypot(beyond, SMOOTH)) / 2);
    }
    return sum / s->weights + PRIOR * square(log_width - USUAL);
}

/* The best of a grid, then by golden sections between its neighbours. */
static double best_width(const struct search *s) {
    const double low = s->width == DL_WIDTH_COMMUNICATION ? LEAST_COMMUNICATION_LOG : LEAST_LOG,
                 step = (MAX_LOG - low) / GRID;
    double middle = low, least = score(s, middle);
    for (int i = 1; i <= GRID; i++) {
        const double x = low + i * step, value = score(s, x);
        if (value < least) least = value, middle = x;
    }
    double a = fmax(low, middle - step), b = fmin(MAX_LOG, middle + step);
    double x = b - GOLDEN * (b - a), y = a + GOLDEN * (b - a), fx = score(s, x), fy = score(s, y);
    for (int i = 0; i < SECTIONS; i++) {
        if (fx < fy) {
            b = y, y = x, fy = fx;
            x = b - GOLDEN * (b - a), fx = score(s, x);
        } else {
            a = x, x = y, fx = fy;
            y = a + GOLDEN * (b - a), fy = score(s, y);
        }
    }
    return fx < fy ? x : y;
}

static void leave_out(struct search *s, const double logs[DL_WIDTHS], int width) {
    s->width = width;
    for (size_t i = 0; i < s->count; i++) {
        s->rest[i] = 0;
        for (int k = 0; k < DL_WIDTHS; k++)
            if (k != width) s->rest[i] += exp(2 * logs[k]) * square(s->rows[i].covariate[k]);
    }
}

enum dl_code dl_widths_fit(const struct dl_width_row *rows, size_t count,
                           struct dl_interval_widths *out, struct dl_err *err) {
    struct search s = {.rows = rows, .count = count};
    double logs[DL_WIDTHS], before = HUGE_VAL;
    s.rest = malloc((count + 1) * sizeof *s.rest);
    if (s.rest == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    for (size_t i = 0; i < count; i++) s.weights += rows[i].weight_ratio;
    for (int k = 0; k < DL_WIDTHS; k++) logs[k] = USUAL;
    for (int sweep = 0; sweep < MAX_SWEEPS; sweep++) {
        double after = 0;
        for (int k = 0; k < DL_WIDTHS; k++) {
            leave_out(&s, logs, k);
            logs[k] = best_width(&s);
            after = score(&s, logs[k]);
        }
        if (before - after < 1e-7) break;
        before = after;
    }
    free(s.rest);
    for (int k = 0; k < DL_WIDTHS; k++) out->half_log[k] = exp(logs[k]);
    return DL_OK;
}

enum dl_code dl_width_fit(const struct dl_width_row *rows, size_t count, int width,
                          struct dl_interval_widths *widths, struct dl_err *err) {
    struct search s = {.rows = rows, .count = count};
    double logs[DL_WIDTHS];
    s.rest = malloc((count + 1) * sizeof *s.rest);
    if (s.rest == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    for (size_t i = 0; i < count; i++) s.weights += rows[i].weight_ratio;
    for (int k = 0; k < DL_WIDTHS; k++) logs[k] = log(widths->half_log[k]);
    leave_out(&s, logs, width);
    widths->half_log[width] = exp(best_width(&s));
    free(s.rest);
    return DL_OK;
}
