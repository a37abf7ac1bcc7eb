/* coll_measured.c - measured collectives first (F-COLL-MEASURED, F-COLL-FITTED, F-COLL-SCALED).
 *
 * Between samples of the same library, operation and ranks: a monotone cubic in log-log. Below the smallest: its time.
 * Beyond the largest: the fitted piece, or the slope of the last two samples. Other rank counts, and groups that share
 * adapters: the model times measured / model at the nearest measured rank count on the same kind of link. */
#include "model/coll_parts.h"

#include <string.h>

static const double FLOOR_SIGMA_LOG = 0.02; /* run-to-run spread that samples of one session do not show (mem) */
static const double SIGMA_PER_DOUBLING =
    0.08;                              /* growth of the error of the scaled model with each doubling of ranks (mem) */
static const double INTERVAL_Z = 1.96; /* low_s..high_s is a 95 % interval */

struct reading {
    double time_s, latency_s, sigma_log;
    bool extrapolated, fitted;
};

/* samples[i - 1].bytes < bytes <= samples[i].bytes. *floor_s: longest time below, so that noise does not make longer
 * messages faster. */
static int locate(const struct dl_coll_measured *m, double bytes, double *floor_s)
{
    int i = 0;
    *floor_s = 0.0;
    for (; i < m->sample_count && m->samples[i].bytes < bytes; i++)
        if (m->samples[i].time_s > *floor_s) *floor_s = m->samples[i].time_s;
    return i;
}

static double sample_sigma(const struct dl_coll_sample *sample)
{
    double sigma = FLOOR_SIGMA_LOG;
    if (sample->low_s > 0.0 && sample->high_s > sample->low_s)
        sigma = fmax(sigma, log(sample->high_s / sample->low_s) / (2.0 * INTERVAL_Z));
    return sigma;
}

/* Slope of log time over log bytes of samples k and k + 1. */
static double slope_log(const struct dl_coll_measured *m, int k)
{
    const struct dl_coll_sample *low = &m->samples[k], *high = low + 1;
    if (!(high->bytes > low->bytes)) return 0.0;
    return log(high->time_s / low->time_s) / log(high->bytes / low->bytes);
}

/* Slope at a sample from those on both sides: their harmonic mean, 0 when they differ in sign, so that the curve stays
 * between its samples (Fritsch and Carlson 1980); the one side at an end. */
static double tangent_log(const struct dl_coll_measured *m, int k)
{
    if (k == 0 || m->samples[k - 1].bytes <= 0.0) return slope_log(m, k);
    if (k == m->sample_count - 1) return slope_log(m, k - 1);
    double left = slope_log(m, k - 1), right = slope_log(m, k);
    return left * right <= 0.0 ? 0.0 : 2.0 * left * right / (left + right);
}

/* Cubic in log-log through samples i - 1 and i: latency bends into bandwidth between two samples, a straight line would
 * cut the corner. */
static double between(const struct dl_coll_measured *m, int i, double bytes)
{
    const struct dl_coll_sample *low = &m->samples[i - 1], *high = &m->samples[i];
    if (low->bytes <= 0.0) return high->time_s;
    double width = log(high->bytes / low->bytes), t = log(bytes / low->bytes) / width,
           rise = log(high->time_s / low->time_s);
    double start = tangent_log(m, i - 1) * width, end = tangent_log(m, i) * width;
    double value = t * (start + t * (3.0 * rise - 2.0 * start - end + t * (start + end - 2.0 * rise)));
    return low->time_s * exp(value);
}

/* Beyond the largest sample: never faster than it, with the slope of the fit or of the last two samples. */
static double beyond(const struct dl_coll_measured *m, double bytes)
{
    const struct dl_coll_sample *last = &m->samples[m->sample_count - 1];
    double slope = last->time_s / last->bytes;
    if (m->piece_count > 0) {
        slope = m->pieces[m->piece_count - 1].beta_s_per_byte;
    } else if (m->sample_count > 1 && last->time_s > last[-1].time_s) {
        slope = (last->time_s - last[-1].time_s) / (last->bytes - last[-1].bytes);
    }
    return last->time_s + (bytes - last->bytes) * slope;
}

static struct reading read_pieces(const struct dl_coll_measured *m, double bytes)
{
    int i = 0;
    while (i + 1 < m->piece_count && bytes > m->pieces[i].max_bytes) i++;
    double time_s = m->pieces[i].alpha_s + bytes * m->pieces[i].beta_s_per_byte;
    for (int k = 0; k < i; k++)
        time_s = fmax(time_s, m->pieces[k].alpha_s + m->pieces[k].max_bytes * m->pieces[k].beta_s_per_byte);
    return (struct reading){time_s, fmin(time_s, m->pieces[0].alpha_s), 0.1,
                            bytes > m->pieces[m->piece_count - 1].max_bytes, true};
}

static struct reading read_samples(const struct dl_coll_measured *m, double bytes)
{
    if (m->sample_count == 0) return read_pieces(m, bytes);
    double floor_s = 0.0;
    int i = locate(m, bytes, &floor_s);
    struct reading out = {.latency_s = m->samples[0].time_s};
    if (i == 0) {
        out.time_s = m->samples[0].time_s;
        out.sigma_log = sample_sigma(&m->samples[0]);
        out.extrapolated = bytes < m->samples[0].bytes && bytes > 0.0 && m->samples[0].bytes > 65536.0;
    } else if (i == m->sample_count) {
        out.time_s = beyond(m, bytes);
        out.sigma_log = sample_sigma(&m->samples[i - 1]) + 0.05 * log2(bytes / m->samples[i - 1].bytes);
        out.extrapolated = true, out.fitted = m->piece_count > 0;
    } else {
        const struct dl_coll_sample *low = &m->samples[i - 1], *high = &m->samples[i];
        out.time_s = between(m, i, bytes);
        out.sigma_log = fmax(sample_sigma(low), sample_sigma(high));
    }
    out.time_s = fmax(out.time_s, floor_s);
    out.latency_s = fmin(out.latency_s, out.time_s);
    return out;
}

/* Nearest rank set with the same library and operation on the same kind of link; NULL: none. */
static const struct dl_coll_measured *nearest(const struct dl_system *system,
                                              const struct dl_collective_request *request, bool *exact,
                                              double *doublings)
{
    const char *library = dl_library_names[request->library], *op = dl_collective_op_names[request->op];
    double ranks = (double)request->nodes * (double)request->ranks_per_node;
    const struct dl_coll_measured *best = NULL;
    *exact = false;
    for (int i = 0; i < system->collective_count; i++) {
        const struct dl_coll_measured *m = &system->collectives[i];
        if (m->library == NULL || m->operation == NULL || strcmp(m->library, library) != 0 ||
            strcmp(m->operation, op) != 0)
            continue;
        if (m->sample_count + m->piece_count == 0 || m->nodes < 1 || m->ranks < 2) continue;
        if ((m->nodes > 1) != (request->nodes > 1) || m->ranks % m->nodes != 0) continue;
        double distance =
            fabs(log2((double)m->ranks / ranks)) + 0.5 * fabs(log2((double)m->nodes / (double)request->nodes));
        if (best != NULL && distance >= *doublings) continue;
        best = m, *doublings = distance;
        *exact = m->nodes == request->nodes && (double)m->ranks == ranks;
    }
    return best;
}

static void fill(struct dl_collective_time *out, const struct reading *reading,
                 const struct dl_collective_request *request)
{
    *out = (struct dl_collective_time){.time_s = reading->time_s,
                                       .latency_s = reading->latency_s,
                                       .bandwidth_s = reading->time_s - reading->latency_s,
                                       .sigma_log = reading->sigma_log,
                                       .steps = NAN,
                                       .algorithm = "as measured",
                                       .formula = reading->fitted ? "F-COLL-FITTED" : "F-COLL-MEASURED",
                                       .limit = request->nodes > 1 ? "inter" : "intra",
                                       .origin = reading->fitted ? "fitted" : "measured",
                                       .extrapolated = reading->extrapolated};
}

enum dl_code dl_coll_measured_time(const struct dl_system *system, const struct dl_collective_request *request,
                                   dl_library_time_fn *model, struct dl_collective_time *out, bool *found,
                                   struct dl_err *err)
{
    bool exact = false, forced = request->algorithm != NULL || request->protocol != NULL;
    double doublings = 0.0;
    const struct dl_coll_measured *m = nearest(system, request, &exact, &doublings);
    *found = false;
    if (m == NULL) return DL_OK;
    struct reading reading = read_samples(m, request->bytes);
    if (exact && !forced && request->flows_per_adapter <= 1.0) {
        fill(out, &reading, request);
        *found = true;
        return DL_OK;
    }
    struct dl_collective_request as_measured = *request;
    as_measured.nodes = m->nodes, as_measured.ranks_per_node = m->ranks / m->nodes;
    as_measured.flows_per_adapter = 1.0, as_measured.algorithm = as_measured.protocol = NULL;
    struct dl_collective_time wanted = {.origin = "model"}, reference = {.origin = "model"};
    DL_TRY(model(system, request, &wanted, err));
    DL_TRY(model(system, &as_measured, &reference, err));
    if (!(reference.time_s > 0.0)) return DL_OK;
    double ratio = reading.time_s / reference.time_s;
    wanted.latency_s *= ratio, wanted.bandwidth_s *= ratio;
    wanted.time_s = wanted.latency_s + wanted.bandwidth_s;
    double scaling = SIGMA_PER_DOUBLING * doublings;
    wanted.sigma_log = sqrt(reading.sigma_log * reading.sigma_log + scaling * scaling);
    wanted.origin = "fitted", wanted.formula = "F-COLL-SCALED";
    wanted.extrapolated = reading.extrapolated || doublings > 1.0;
    *out = wanted;
    *found = true;
    return DL_OK;
}
