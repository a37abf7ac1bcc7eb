/* interval_widths.c - see interval_widths.h. BFGS in the logarithms of the widths, from two starts:
 * the mean score is smooth, but not convex. */
#include "fits/interval_widths.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SMOOTH 0.005 /* of the kink at the end of an interval */
#define USUAL -3.0   /* log(0.05): where the prior has its middle */
#define PRIOR 1e-4   /* a width e times smaller or larger than usual adds this to the score */
#define WIDE -1.5    /* the other start */
/* Few sources expose much communication, too few to say that it is known better than the
 * collectives themselves (0.35 between nodes). */
#define LEAST_COMMUNICATION_LOG -1.05
#define MOST_LOG 1.5
#define WALL 10.0 /* of the square by which a width is beyond these */
enum { STEPS = 300, HALVINGS = 30 };

struct search {
    const struct dl_width_row *rows;
    size_t count;
    double weights, tail;
};

static double square(double x) { return x * x; }

/* Prior and walls. */
static double prior(const double x[DL_WIDTHS], double gradient[DL_WIDTHS]) {
    double sum = 0;
    for (int k = 0; k < DL_WIDTHS; k++) {
        const double below =
            k == DL_WIDTH_COMMUNICATION ? fmax(0, LEAST_COMMUNICATION_LOG - x[k]) : 0;
        const double above = fmax(0, x[k] - MOST_LOG);
        sum += PRIOR * square(x[k] - USUAL) + WALL * (square(below) + square(above));
        gradient[k] = 2 * PRIOR * (x[k] - USUAL) + 2 * WALL * (above - below);
    }
    return sum;
}

static double score(const struct search *s, const double x[DL_WIDTHS], double gradient[DL_WIDTHS]) {
    double variance[DL_WIDTHS], slope[DL_WIDTHS] = {0}, sum = 0;
    for (int k = 0; k < DL_WIDTHS; k++) variance[k] = exp(2 * x[k]);
    for (size_t i = 0; i < s->count; i++) {
        const struct dl_width_row *row = &s->rows[i];
        if (!(row->weight_ratio > 0)) continue;
        double h2 = 0;
        for (int k = 0; k < DL_WIDTHS; k++) h2 += variance[k] * square(row->covariate[k]);
        const double h = sqrt(h2), beyond = row->error_log - h, bend = hypot(beyond, SMOOTH);
        sum += row->weight_ratio * (h + (beyond + bend) / 2 / s->tail);
        const double by_h = row->weight_ratio * (1 - (1 + beyond / bend) / 2 / s->tail) / h;
        for (int k = 0; k < DL_WIDTHS; k++) slope[k] += by_h * square(row->covariate[k]);
    }
    sum = sum / s->weights + prior(x, gradient);
    for (int k = 0; k < DL_WIDTHS; k++) gradient[k] += slope[k] * variance[k] / s->weights;
    return sum;
}

static double dot(const double a[DL_WIDTHS], const double b[DL_WIDTHS]) {
    double sum = 0;
    for (int k = 0; k < DL_WIDTHS; k++) sum += a[k] * b[k];
    return sum;
}

/* Inverse Hessian of BFGS. */
struct hessian {
    double cell[DL_WIDTHS][DL_WIDTHS];
};

static void reset(struct hessian *h) {
    for (int a = 0; a < DL_WIDTHS; a++)
        for (int b = 0; b < DL_WIDTHS; b++) h->cell[a][b] = a == b ? 1 : 0;
}

static void update(struct hessian *h, const double step[DL_WIDTHS], const double bend[DL_WIDTHS]) {
    double along[DL_WIDTHS];
    const double curvature = dot(step, bend);
    if (!(curvature > 1e-14)) return;
    for (int a = 0; a < DL_WIDTHS; a++) along[a] = dot(h->cell[a], bend);
    const double scale = (1 + dot(bend, along) / curvature) / curvature;
    for (int a = 0; a < DL_WIDTHS; a++)
        for (int b = 0; b < DL_WIDTHS; b++)
            h->cell[a][b] +=
                scale * step[a] * step[b] - (along[a] * step[b] + step[a] * along[b]) / curvature;
}

/* Moves x by the direction as far as the score falls. false: it does not. */
static bool descend(const struct search *s, const double direction[DL_WIDTHS], double x[DL_WIDTHS],
                    double *value, double gradient[DL_WIDTHS]) {
    double most = 0, at[DL_WIDTHS], there[DL_WIDTHS];
    const double slope = dot(direction, gradient);
    for (int k = 0; k < DL_WIDTHS; k++) most = fmax(most, fabs(direction[k]));
    double length = most > 1 ? 1 / most : 1; /* a factor of e at once */
    for (int i = 0; i < HALVINGS && slope < 0; i++, length /= 2) {
        for (int k = 0; k < DL_WIDTHS; k++) at[k] = x[k] + length * direction[k];
        const double y = score(s, at, there);
        if (!(y < *value + 1e-4 * length * slope)) continue;
        *value = y;
        memcpy(x, at, sizeof at);
        memcpy(gradient, there, sizeof there);
        return true;
    }
    return false;
}

static double minimize(const struct search *s, double x[DL_WIDTHS]) {
    struct hessian h;
    double gradient[DL_WIDTHS], value = score(s, x, gradient);
    bool fresh = true;
    reset(&h);
    for (int i = 0; i < STEPS; i++) {
        double direction[DL_WIDTHS], step[DL_WIDTHS], bend[DL_WIDTHS];
        const double before = value;
        for (int k = 0; k < DL_WIDTHS; k++) {
            direction[k] = -dot(h.cell[k], gradient);
            step[k] = x[k];
            bend[k] = gradient[k];
        }
        if (!descend(s, direction, x, &value, gradient)) {
            if (fresh) break;
            reset(&h);
            fresh = true;
            continue;
        }
        for (int k = 0; k < DL_WIDTHS; k++) {
            step[k] = x[k] - step[k];
            bend[k] = gradient[k] - bend[k];
        }
        update(&h, step, bend);
        fresh = false;
        if (before - value < 1e-9) break;
    }
    return value;
}

enum dl_code dl_widths_fit(const struct dl_width_row *rows, size_t count, double tail,
                           struct dl_interval_widths *out, struct dl_err *err) {
    static const double starts[] = {USUAL, WIDE};
    struct search s = {.rows = rows, .count = count, .tail = tail};
    double least = HUGE_VAL;
    for (size_t i = 0; i < count; i++) s.weights += rows[i].weight_ratio;
    if (!(s.weights > 0)) return dl_fail(err, DL_ERR_INPUT, "no errors to fit intervals to");
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
        double x[DL_WIDTHS];
        for (int k = 0; k < DL_WIDTHS; k++) x[k] = starts[i];
        const double value = minimize(&s, x);
        if (!(value < least)) continue;
        least = value;
        for (int k = 0; k < DL_WIDTHS; k++) out->half_log[k] = exp(x[k]);
    }
    return DL_OK;
}
