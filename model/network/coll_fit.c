/* coll_fit.c - see coll_fit.h. */
#include "model/network/coll_fit.h"

#include <math.h>

static const double FLOOR_FRAC = 0.01; /* smaller errors count as noise */
static const double PARAMETERS = 3.0;  /* of one piece: alpha, beta, max_bytes */

struct line {
    double alpha_s, beta_s_per_byte, square_sum;
};

/* Least squares of (alpha + beta S - t) / t over samples [first, last]. */
static struct line fit_line(const struct dl_coll_sample *samples, int first, int last) {
    double w = 0, ws = 0, wss = 0, wt = 0, wst = 0;
    for (int i = first; i <= last; i++) {
        const double s = samples[i].bytes, t = samples[i].time_s, weight = 1.0 / (t * t);
        w += weight, ws += weight * s, wss += weight * s * s, wt += weight * t,
            wst += weight * s * t;
    }
    const double det = w * wss - ws * ws;
    struct line line = {wt / w, 0.0, 0.0};
    if (det > 1e-12 * w * wss)
        line.beta_s_per_byte = (w * wst - ws * wt) / det,
        line.alpha_s = (wt - line.beta_s_per_byte * ws) / w;
    if (line.beta_s_per_byte < 0.0) line.beta_s_per_byte = 0.0, line.alpha_s = wt / w;
    if (line.alpha_s < 0.0) line.alpha_s = 0.0, line.beta_s_per_byte = wst / wss;
    for (int i = first; i <= last; i++) {
        const double error =
            (line.alpha_s + line.beta_s_per_byte * samples[i].bytes) / samples[i].time_s - 1.0;
        line.square_sum += error * error;
    }
    return line;
}

struct table {
    /* [pieces][samples covered]: least sum of squares */
    double cost[DL_COLL_FIT_PIECES + 1][DL_COLL_FIT_SAMPLES + 1];
    int from[DL_COLL_FIT_PIECES + 1][DL_COLL_FIT_SAMPLES + 1];
};

static void fill(struct table *table, const struct dl_coll_sample *samples, int count, int most) {
    for (int k = 0; k <= most; k++)
        for (int n = 0; n <= count; n++)
            table->cost[k][n] = k == 0 && n == 0 ? 0.0 : HUGE_VAL, table->from[k][n] = 0;
    for (int first = 0; first + 1 < count; first++) {
        for (int last = first + 1; last < count; last++) {
            const double square_sum = fit_line(samples, first, last).square_sum;
            for (int k = 1; k <= most; k++) {
                const double cost = table->cost[k - 1][first] + square_sum;
                if (cost < table->cost[k][last + 1])
                    table->cost[k][last + 1] = cost, table->from[k][last + 1] = first;
            }
        }
    }
}

int dl_coll_fit(const struct dl_coll_sample *samples, int sample_count, int most,
                struct dl_piece *out, double *error_frac_out) {
    struct table table;
    const int count = sample_count < DL_COLL_FIT_SAMPLES ? sample_count : DL_COLL_FIT_SAMPLES;
    int best = 0;
    double best_score = HUGE_VAL, error = 0.0;
    if (most > DL_COLL_FIT_PIECES) most = DL_COLL_FIT_PIECES;
    if (error_frac_out != NULL) *error_frac_out = NAN;
    if (count < 2 || most < 1) return 0;
    fill(&table, samples, count, most);
    for (int k = 1; k <= most && (k == 1 || PARAMETERS * k < count); k++) {
        const double variance = fmax(table.cost[k][count] / count, FLOOR_FRAC * FLOOR_FRAC);
        const double score = count * log(variance) + PARAMETERS * k * log(count);
        if (score < best_score) best_score = score, best = k;
    }
    for (int k = best, end = count; k > 0; k--) {
        const int first = table.from[k][end];
        const struct line line = fit_line(samples, first, end - 1);
        const double border =
            end == count ? HUGE_VAL : sqrt(fmax(1.0, samples[end - 1].bytes) * samples[end].bytes);
        out[k - 1] = (struct dl_piece){border, line.alpha_s, line.beta_s_per_byte};
        end = first;
    }
    for (int i = 0; i < count; i++)
        error += fabs(dl_coll_fit_s(out, best, samples[i].bytes) / samples[i].time_s - 1.0);
    if (error_frac_out != NULL) *error_frac_out = error / count;
    return best;
}

double dl_coll_fit_s(const struct dl_piece *pieces, int piece_count, double bytes) {
    int i = 0;
    if (piece_count < 1) return NAN;
    while (i + 1 < piece_count && bytes > pieces[i].max_bytes) i++;
    return pieces[i].alpha_s + bytes * pieces[i].beta_s_per_byte;
}
