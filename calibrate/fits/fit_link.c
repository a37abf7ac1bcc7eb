/* fit_link.c - see the header. */
#include "calibrate/fits/fit_link.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_errno.h>
#include <gsl/gsl_multifit.h>
#include <math.h>

/* Message times of two runs on a quiet machine agree within 5 % at best: smaller misfits do not
 * justify another segment. The floor also keeps a straight line through a dozen noisy samples whole
 * (without it, 4 of 10 such lines with 3 % noise are split). */
static const double SCATTER_FLOOR_FRAC = 0.03;
/* iterations of the weights, which are relative to the fitted, not the measured time */
enum { PASSES = 4 };

/* Weighting by measured times would favour low samples and underestimate alpha. */
static double fitted_time(const struct dl_link_line *line, const struct dl_link_sample *s) {
    const double time_s = line->alpha_s + line->beta_s_per_byte * s->bytes;
    return time_s > 0.1 * s->time_s ? time_s : 0.1 * s->time_s;
}

static void flatten(const struct dl_link_sample *samples, size_t n, struct dl_link_line *line) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += log(samples[i].time_s);
    line->alpha_s = exp(sum / (double)n);
    line->beta_s_per_byte = 0;
}

/* alpha is a start-up time. A curve that bends upwards (messages outgrow a cache) would make it
 * negative, and an algorithm that splits a message into many steps would get a negative cost. */
static void through_origin(const struct dl_link_sample *samples, size_t n,
                           struct dl_link_line *line) {
    double first = 0, second = 0;
    for (size_t i = 0; i < n; i++) {
        const double x = samples[i].bytes / samples[i].time_s;
        first += x;
        second += x * x;
    }
    line->alpha_s = 0;
    line->beta_s_per_byte = first / second;
}

static double relative_squares(const struct dl_link_sample *samples, size_t n,
                               const struct dl_link_line *line) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        const double time_s = fitted_time(line, &samples[i]),
                     residual = (samples[i].time_s - time_s) / time_s;
        sum += residual * residual;
    }
    return sum;
}

/* Sizes are scaled to 1; else the normal matrix is nearly singular (1 against 1e8). */
static int solve(const struct dl_link_sample *samples, size_t n, double scale,
                 struct dl_link_line *line) {
    gsl_matrix *x = gsl_matrix_alloc(n, 2), *covariance = gsl_matrix_alloc(2, 2);
    gsl_vector *y = gsl_vector_alloc(n), *c = gsl_vector_alloc(2);
    gsl_multifit_linear_workspace *work = gsl_multifit_linear_alloc(n, 2);
    int status = x == NULL || covariance == NULL || y == NULL || c == NULL || work == NULL
                     ? GSL_ENOMEM
                     : GSL_SUCCESS;
    *line = (struct dl_link_line){.samples = n};
    for (int pass = 0; pass < PASSES && status == GSL_SUCCESS; pass++) {
        for (size_t i = 0; i < n; i++) {
            const double time_s = pass == 0 ? samples[i].time_s : fitted_time(line, &samples[i]);
            gsl_matrix_set(x, i, 0, 1 / time_s);
            gsl_matrix_set(x, i, 1, samples[i].bytes / scale / time_s);
            gsl_vector_set(y, i, samples[i].time_s / time_s);
        }
        double squares;
        status = gsl_multifit_linear(x, y, c, covariance, &squares, work);
        line->alpha_s = gsl_vector_get(c, 0);
        line->beta_s_per_byte = gsl_vector_get(c, 1) / scale;
        line->alpha_variance = n > 2 ? gsl_matrix_get(covariance, 0, 0) : NAN;
        line->beta_variance = n > 2 ? gsl_matrix_get(covariance, 1, 1) / (scale * scale) : NAN;
        line->covariance = n > 2 ? gsl_matrix_get(covariance, 0, 1) / scale : NAN;
    }
    gsl_multifit_linear_free(work);
    gsl_matrix_free(x);
    gsl_matrix_free(covariance);
    gsl_vector_free(y);
    gsl_vector_free(c);
    return status;
}

enum dl_code dl_fit_line(const struct dl_link_sample *samples, size_t n, struct dl_link_line *out,
                         struct dl_err *err) {
    double low = INFINITY, high = -INFINITY;
    for (size_t i = 0; i < n; i++) {
        if (!(samples[i].time_s > 0) || !(samples[i].bytes >= 0)) {
            return dl_fail(err, DL_ERR_INPUT,
                           "line fit: expected bytes >= 0 and a time above 0, got %g byte, %g s",
                           samples[i].bytes, samples[i].time_s);
        }
        low = fmin(low, samples[i].bytes);
        high = fmax(high, samples[i].bytes);
    }
    if (n < 2 || !(high > low))
        return dl_fail(err, DL_ERR_INPUT, "line fit: expected samples of at least two sizes");
    gsl_error_handler_t *old = gsl_set_error_handler_off();
    const int status = solve(samples, n, high, out);
    gsl_set_error_handler(old);
    if (status != GSL_SUCCESS)
        return dl_fail(err, DL_ERR_SYSTEM, "line fit: %s", gsl_strerror(status));
    if (!(out->beta_s_per_byte >= 0))
        flatten(samples, n, out);
    else if (!(out->alpha_s >= 0))
        through_origin(samples, n, out);
    out->sigma_frac = n > 2 ? sqrt(relative_squares(samples, n, out) / (double)(n - 2)) : NAN;
    return DL_OK;
}

static double half_width(const struct dl_link_line *line, double variance, double probability) {
    if (line->samples < 3) return NAN;
    return gsl_cdf_tdist_Pinv(0.5 + 0.5 * probability, (double)(line->samples - 2)) *
           sqrt(variance);
}

double dl_line_alpha_half(const struct dl_link_line *line, double probability) {
    return half_width(line, line->alpha_variance, probability);
}

double dl_line_beta_half(const struct dl_link_line *line, double probability) {
    return half_width(line, line->beta_variance, probability);
}

/* A segment must not predict times of 0 or less inside itself. */
static double segment_cost(const struct dl_link_sample *samples, size_t n,
                           struct dl_link_line *line) {
    if (n < DL_LINK_PIECE_SAMPLES || dl_fit_line(samples, n, line, NULL) != DL_OK) return INFINITY;
    if (!(line->alpha_s + line->beta_s_per_byte * samples[0].bytes > 0)) return INFINITY;
    return relative_squares(samples, n, line);
}

struct split {
    /* least squares of the first j samples in p + 1 segments */
    double cost[DL_LINK_PIECES][DL_LINK_SAMPLES_MAX + 1];
    size_t begin[DL_LINK_PIECES][DL_LINK_SAMPLES_MAX + 1];
};

static void fill(const struct dl_link_sample *samples, size_t n, struct split *s) {
    struct dl_link_line line;
    for (size_t p = 0; p < DL_LINK_PIECES; p++) {
        for (size_t j = 0; j <= n; j++) s->cost[p][j] = INFINITY;
    }
    for (size_t i = 0; i < n; i++) {
        for (size_t j = i + DL_LINK_PIECE_SAMPLES; j <= n; j++) {
            const double here = segment_cost(samples + i, j - i, &line);
            for (size_t p = i == 0 ? 0 : 1; p < (i == 0 ? 1 : DL_LINK_PIECES); p++) {
                const double total = p == 0 ? here : s->cost[p - 1][i] + here;
                if (!(total < s->cost[p][j])) continue;
                s->cost[p][j] = total;
                s->begin[p][j] = i;
            }
        }
    }
}

/* p segments have 2 p parameters, p - 1 break points and a common scatter. */
static size_t choose(const struct split *s, size_t n) {
    size_t best = 0;
    double least = INFINITY;
    for (size_t p = 0; p < DL_LINK_PIECES; p++) {
        const double scatter = s->cost[p][n] / (double)n + SCATTER_FLOOR_FRAC * SCATTER_FLOOR_FRAC;
        const double criterion = (double)n * log(scatter) + (double)(3 * (p + 1)) * log((double)n);
        if (!isfinite(s->cost[p][n]) || criterion >= least) continue;
        least = criterion;
        best = p;
    }
    return best;
}

/* The last piece also extrapolates beyond the samples. Where it bends upwards (a token bucket
 * passes the first bytes at once, a cache holds the smaller messages), the line through the origin
 * is too low at its end: fit it to messages of at least an eighth of the largest. */
static enum dl_code fit_end(const struct dl_link_sample *samples, size_t n,
                            struct dl_link_line *line, struct dl_err *err) {
    size_t first = 0;
    while (n - first > DL_LINK_PIECE_SAMPLES && samples[first].bytes < samples[n - 1].bytes / 8)
        first++;
    if (line->alpha_s > 0 || first == 0) return DL_OK;
    struct dl_link_line upper;
    DL_TRY(dl_fit_line(samples + first, n - first, &upper, err));
    if (!(upper.alpha_s > 0)) *line = upper; /* else it does not bend all the way */
    return DL_OK;
}

enum dl_code dl_fit_pieces(const struct dl_link_sample *samples, size_t n,
                           struct dl_piece pieces[DL_LINK_PIECES], struct dl_link_line *lines,
                           int *count, struct dl_err *err) {
    struct dl_link_line own[DL_LINK_PIECES], *line = lines != NULL ? lines : own;
    if (n > DL_LINK_SAMPLES_MAX)
        return dl_fail(err, DL_ERR_INPUT, "piecewise fit: at most %d samples, got %zu",
                       (int)DL_LINK_SAMPLES_MAX, n);
    for (size_t i = 1; i < n; i++) {
        if (!(samples[i].bytes > samples[i - 1].bytes))
            return dl_fail(err, DL_ERR_INPUT, "piecewise fit: expected ascending sizes");
    }
    struct split s;
    fill(samples, n, &s);
    size_t p = choose(&s, n), end = n;
    if (!isfinite(s.cost[p][n])) p = 0;
    *count = (int)p + 1;
    for (size_t i = p + 1; i-- > 0;) {
        const size_t begin = p == 0 ? 0 : s.begin[i][end];
        DL_TRY(dl_fit_line(samples + begin, end - begin, &line[i], err));
        if (end == n) DL_TRY(fit_end(samples + begin, end - begin, &line[i], err));
        pieces[i] =
            (struct dl_piece){samples[end - 1].bytes, line[i].alpha_s, line[i].beta_s_per_byte};
        end = begin;
    }
    return DL_OK;
}
