/* coll_samples.c - see coll_samples.h. */
#include "model/network/coll_samples.h"

#include <string.h>

/* run-to-run spread that samples of one session do not show (unverified) */
static const double FLOOR_SIGMA_LOG = 0.02;
static const double INTERVAL_Z = 1.96; /* low_s..high_s is a 95 % interval */
/* samples of the same algorithm count up to 8 times the size */
static const double FAR_LOG = 2.1;
/* of a trend's slope, with every doubling beyond the samples (Gardner and McKenzie 1985) */
static const double TREND_DAMPING = 0.4;
/* growth of the error beyond the samples with each doubling (unverified) */
static const double SIGMA_PER_DOUBLING = 0.05;

static double sample_sigma(const struct dl_coll_sample *sample) {
    double sigma = FLOOR_SIGMA_LOG;
    if (sample->low_s > 0.0 && sample->high_s > sample->low_s)
        sigma = fmax(sigma, log(sample->high_s / sample->low_s) / (2.0 * INTERVAL_Z));
    return sigma;
}

static bool same(const struct dl_coll_base *a, const struct dl_coll_base *b) {
    if (a->algorithm == NULL || b->algorithm == NULL) return a->algorithm == b->algorithm;
    if ((a->protocol == NULL) != (b->protocol == NULL) || strcmp(a->algorithm, b->algorithm) != 0)
        return false;
    return a->protocol == NULL || strcmp(a->protocol, b->protocol) == 0;
}

struct dl_coll_base dl_coll_samples_base(const struct dl_system *system,
                                         const struct dl_coll_measured *measured,
                                         dl_library_time_fn *model,
                                         const struct dl_collective_request *request,
                                         double bytes) {
    struct dl_collective_request as_measured = *request;
    struct dl_collective_time time = {.origin = "model"};
    as_measured.nodes = measured->nodes,
    as_measured.ranks_per_node = measured->ranks / measured->nodes;
    as_measured.flows_per_adapter = 1.0, as_measured.algorithm = as_measured.protocol = NULL;
    as_measured.group_stride = 1, as_measured.concurrent = 1;
    as_measured.bytes = bytes, as_measured.allow_decreasing = true;
    if (model(system, &as_measured, &time, NULL) != DL_OK || !(time.time_s > 0.0))
        return (struct dl_coll_base){1.0, NULL, NULL};
    return (struct dl_coll_base){time.time_s, time.algorithm, time.protocol};
}

/* One walk through the samples. */
struct point {
    double x_log, ratio_log; /* of the size, of measured / model */
    struct dl_coll_base base;
    int index; /* -1: none */
};

static struct point point_at(const struct dl_coll_samples *walk, int k) {
    const struct dl_coll_sample *sample = &walk->measured->samples[k];
    struct dl_coll_base base = walk->measured->bases != NULL
                                   ? walk->measured->bases[k]
                                   : dl_coll_samples_base(walk->system, walk->measured, walk->model,
                                                          walk->request, sample->bytes);
    return (struct point){log(fmax(sample->bytes, 1.0)), log(sample->time_s / base.time_s), base,
                          k};
}

/* The next sample from k on, in steps of `step`, whose algorithm and protocol are those of `base`
 * (NULL: any). */
static struct point next_of(const struct dl_coll_samples *walk, int k, int step,
                            const struct dl_coll_base *base) {
    for (; k >= 0 && k < walk->measured->sample_count; k += step) {
        struct point point = point_at(walk, k);
        if (base == NULL || same(&point.base, base)) return point;
    }
    return (struct point){.index = -1};
}

/* Whether sample k ran the algorithm and protocol of `base`. */
static bool covered_by_sample(const struct dl_coll_samples *walk, int k,
                              const struct dl_coll_base *base) {
    if (base->algorithm == NULL) return true;
    const struct point point = point_at(walk, k);
    return point.base.algorithm == NULL || same(&point.base, base);
}

static double slope(const struct point *a, const struct point *b) {
    return b->x_log > a->x_log ? (b->ratio_log - a->ratio_log) / (b->x_log - a->x_log) : 0.0;
}

/* Slope at a point from those on both sides: their harmonic mean, 0 when they differ in sign, so
 * that the curve stays between its samples (Fritsch and Carlson 1980); the one side at an end. */
static double tangent(const struct point *before, const struct point *at,
                      const struct point *after) {
    if (before->index < 0) return slope(at, after);
    if (after->index < 0) return slope(before, at);
    double left = slope(before, at), right = slope(at, after);
    return left * right <= 0.0 ? 0.0 : 2.0 * left * right / (left + right);
}

static double cubic(const struct point p[4], double x_log) {
    double width = p[2].x_log - p[1].x_log, rise = p[2].ratio_log - p[1].ratio_log;
    if (!(width > 0.0)) return p[2].ratio_log;
    double t = (x_log - p[1].x_log) / width;
    double start = tangent(&p[0], &p[1], &p[2]) * width, end = tangent(&p[1], &p[2], &p[3]) * width;
    return p[1].ratio_log +
           t * (start + t * (3.0 * rise - 2.0 * start - end + t * (start + end - 2.0 * rise)));
}

/* Beyond the samples of one algorithm: from the last one on, the trend of the last two, damped with
 * each doubling, so that it ends at 0.4 / 0.6 of a doubling's slope, and no further than the last
 * two are apart. */
static double damped(const struct point *before, const struct point *last, double x_log) {
    const double log_2 = 0.69314718055994531;
    if (before->index < 0) return last->ratio_log;
    const double doublings = fabs(x_log - last->x_log) / log_2,
                 apart = last->ratio_log - before->ratio_log;
    const double per_doubling =
        apart * log_2 / fmax(log_2 / 16.0, fabs(last->x_log - before->x_log));
    const double reach =
        TREND_DAMPING * (1.0 - pow(TREND_DAMPING, doublings)) / (1.0 - TREND_DAMPING);
    return last->ratio_log + copysign(fmin(fabs(per_doubling * reach), fabs(apart)), apart);
}

static double read_between(const struct dl_coll_samples *walk, int above, double x_log,
                           const struct dl_coll_base *base) {
    struct point p[4] = {{.index = -1},
                         next_of(walk, above - 1, -1, base),
                         next_of(walk, above, 1, base),
                         {.index = -1}};
    if (p[1].index >= 0 && p[2].index >= 0) {
        p[0] = next_of(walk, p[1].index - 1, -1, base),
        p[3] = next_of(walk, p[2].index + 1, 1, base);
        return cubic(p, x_log);
    }
    if (p[1].index >= 0 && x_log - p[1].x_log < FAR_LOG) {
        p[0] = next_of(walk, p[1].index - 1, -1, base);
        return damped(&p[0], &p[1], x_log);
    }
    if (p[2].index >= 0 && p[2].x_log - x_log < FAR_LOG) {
        p[3] = next_of(walk, p[2].index + 1, 1, base);
        return damped(&p[3], &p[2], x_log);
    }
    p[1] = next_of(walk, above - 1, -1, NULL), p[2] = next_of(walk, above, 1, NULL);
    if (p[1].index < 0) return p[2].ratio_log;
    if (p[2].index < 0) return p[1].ratio_log;
    return p[1].ratio_log + (x_log - p[1].x_log) * slope(&p[1], &p[2]);
}

/* The pieces of the fit, never below what the pieces before them end with. */
static double pieces_s(const struct dl_coll_measured *m, double bytes) {
    int i = 0;
    while (i + 1 < m->piece_count && bytes > m->pieces[i].max_bytes) i++;
    double time_s = m->pieces[i].alpha_s + bytes * m->pieces[i].beta_s_per_byte;
    for (int k = 0; k < i; k++)
        time_s = fmax(time_s,
                      m->pieces[k].alpha_s + m->pieces[k].max_bytes * m->pieces[k].beta_s_per_byte);
    return time_s;
}

/* Beyond the largest sample when no model provides the slope: that of the last two, and never
 * faster than the last. */
static double beyond_s(const struct dl_coll_measured *m, double bytes) {
    const struct dl_coll_sample *last = &m->samples[m->sample_count - 1];
    double slope_s_per_byte = last->bytes > 0.0 ? last->time_s / last->bytes : 0.0;
    if (m->sample_count > 1 && last->time_s > last[-1].time_s)
        slope_s_per_byte = (last->time_s - last[-1].time_s) / (last->bytes - last[-1].bytes);
    return last->time_s + (bytes - last->bytes) * slope_s_per_byte;
}

/* log(time / base) beyond the largest sample where no model provides the slope. */
static double beyond_log(const struct dl_coll_measured *m, double bytes, double base_s) {
    const double last_s = m->sample_count > 0 ? m->samples[m->sample_count - 1].time_s : 0.0;
    return log((m->piece_count > 0 ? fmax(last_s, pieces_s(m, bytes)) : beyond_s(m, bytes)) /
               base_s);
}

/* Spread of the samples around position `above`, and what grows with the distance beyond them. */
static double spread_at(const struct dl_coll_measured *m, int above, double bytes) {
    const int count = m->sample_count;
    const int low = above > 0 ? above - 1 : 0, high = above < count ? above : count - 1;
    double sigma = fmax(sample_sigma(&m->samples[low]), sample_sigma(&m->samples[high]));
    if (above == count)
        sigma +=
            SIGMA_PER_DOUBLING * log2(fmax(1.0, bytes / fmax(1.0, m->samples[count - 1].bytes)));
    return sigma;
}

enum dl_code dl_coll_samples_read(const struct dl_coll_samples *samples,
                                  const struct dl_coll_base *base, struct dl_coll_reading *out,
                                  struct dl_err *err) {
    const struct dl_coll_measured *measured = samples->measured;
    const double bytes = samples->request->bytes, x_log = log(fmax(bytes, 1.0));
    const int count = measured->sample_count;
    int above = 0;
    if (count == 0 && measured->piece_count == 0)
        return dl_fail(err, DL_ERR_INPUT, "a measured collective without samples");
    while (above < count && measured->samples[above].bytes < bytes) above++;
    /* measured at this size */
    if (above < count && !(measured->samples[above].bytes > bytes) &&
        covered_by_sample(samples, above, base)) {
        *out = (struct dl_coll_reading){log(measured->samples[above].time_s / base->time_s),
                                        sample_sigma(&measured->samples[above]), false, false};
        return DL_OK;
    }
    struct dl_coll_reading reading = {.sigma_log = 0.1};
    if (above == count && (measured->piece_count > 0 || base->algorithm == NULL)) {
        reading.ratio_log = beyond_log(measured, bytes, base->time_s);
        reading.fitted = measured->piece_count > 0;
        reading.extrapolated =
            count > 0 || bytes > measured->pieces[measured->piece_count - 1].max_bytes;
    } else {
        reading.ratio_log = read_between(samples, above, x_log, base);
        reading.extrapolated =
            above == count || (above == 0 && bytes > 0.0 && measured->samples[0].bytes > 65536.0);
    }
    if (count > 0) reading.sigma_log = spread_at(measured, above, bytes);
    *out = reading;
    return DL_OK;
}
