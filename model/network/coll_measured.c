/* coll_measured.c - times from measured collectives (F-COLL-MEASURED, F-COLL-FITTED,
 * F-COLL-SCALED, F-WHAT-IF).
 *
 * For the measured rank set: the model times measured / model, read from its samples
 * (coll_samples.h). For other rank counts, and groups that share adapters: the same ratio from the
 * nearest measured rank sets on the same kind of link, between them by log ranks. */
#include "model/network/coll_samples.h"

#include <string.h>

/* growth of the error of the scaled model with each doubling of ranks (unverified) */
static const double SIGMA_PER_DOUBLING = 0.08;

/* Nearest rank sets with the same library and operation on the same kind of link, with fewer and
 * with more ranks. */
struct nearest {
    const struct dl_coll_measured *exact, *fewer, *more;
    double fewer_log2, more_log2; /* distance in doublings of ranks and nodes */
};

static struct nearest find_nearest(const struct dl_system *system,
                                   const struct dl_collective_request *request) {
    const char *library = dl_library_names[request->library],
               *op = dl_collective_op_names[request->op];
    const double ranks = (double)request->nodes * (double)request->ranks_per_node;
    struct nearest out = {NULL, NULL, NULL, HUGE_VAL, HUGE_VAL};
    for (int i = 0; i < system->collective_count; i++) {
        const struct dl_coll_measured *m = &system->collectives[i];
        if (m->library == NULL || m->operation == NULL || strcmp(m->library, library) != 0 ||
            strcmp(m->operation, op) != 0)
            continue;
        if (m->sample_count + m->piece_count == 0 || m->nodes < 1 || m->ranks < 2) continue;
        /* measured over nodes of one NVLink domain: neither inside a node nor over adapters */
        if (m->nodes > 1 && m->nodes <= dl_path_domain_nodes(system)) continue;
        if ((m->nodes > 1) != (request->nodes > 1) || m->ranks % m->nodes != 0) continue;
        if (m->nodes == request->nodes && m->ranks == m->nodes * request->ranks_per_node) {
            out.exact = m;
            return out;
        }
        const double distance = fabs(log2((double)m->ranks / ranks)) +
                                0.5 * fabs(log2((double)m->nodes / (double)request->nodes));
        const bool fewer = (double)m->ranks <= ranks;
        if (distance >= (fewer ? out.fewer_log2 : out.more_log2)) continue;
        if (fewer)
            out.fewer = m, out.fewer_log2 = distance;
        else
            out.more = m, out.more_log2 = distance;
    }
    return out;
}

static void scale(struct dl_collective_time *time, const struct dl_coll_reading *reading,
                  const char *formula, const char *origin) {
    const double ratio = exp(reading->ratio_log);
    time->latency_s *= ratio, time->bandwidth_s *= ratio;
    time->time_s = time->latency_s + time->bandwidth_s;
    time->sigma_log = reading->sigma_log;
    time->formula = formula, time->origin = origin;
    time->extrapolated = reading->extrapolated;
}

/* F-WHAT-IF: the samples were taken on the machine as it is, so that measured / model is read with
 * its model, and scales the model of the requested machine. */
static const struct dl_system *as_measured(const struct dl_system *system) {
    return system->as_measured != NULL ? system->as_measured : system;
}

/* Whether a what-if changes the modeled time of a measured rank set. */
static bool changed(const struct dl_system *system, const struct dl_collective_request *request,
                    dl_library_time_fn *model, const struct dl_collective_time *now) {
    struct dl_collective_time then = {.origin = "model"};
    if (system->as_measured == NULL || model(system->as_measured, request, &then, NULL) != DL_OK)
        return false;
    return fabs(then.time_s - now->time_s) > 1e-12 * now->time_s;
}

/* measured / model from the samples of a rank set. `wanted`: what the library runs on the
 * requested rank set, so that samples of the same algorithm count; NULL: the model of their own
 * rank set. */
static enum dl_code read_set(const struct dl_coll_samples *asked,
                             const struct dl_collective_time *wanted, struct dl_coll_reading *out,
                             struct dl_err *err) {
    struct dl_coll_samples s = *asked;
    s.system = as_measured(asked->system);
    struct dl_coll_base base =
        dl_coll_samples_base(s.system, s.measured, s.model, s.request, s.request->bytes);
    if (wanted != NULL && base.algorithm != NULL)
        base.algorithm = wanted->algorithm, base.protocol = wanted->protocol;
    return dl_coll_samples_read(&s, &base, out, err);
}

/* Interpolates by log ranks between the rank sets on both sides, or takes the only one. */
static enum dl_code read_ranks(struct dl_coll_samples samples, const struct nearest *near,
                               const struct dl_collective_time *wanted, struct dl_coll_reading *out,
                               struct dl_err *err) {
    struct dl_coll_reading fewer = {0}, more = {0};
    samples.measured = near->fewer;
    if (near->fewer != NULL) DL_TRY(read_set(&samples, wanted, &fewer, err));
    samples.measured = near->more;
    if (near->more != NULL) DL_TRY(read_set(&samples, wanted, &more, err));
    double doublings = near->fewer_log2 < near->more_log2 ? near->fewer_log2 : near->more_log2;
    if (near->fewer == NULL)
        *out = more;
    else if (near->more == NULL)
        *out = fewer;
    else {
        const double t = near->fewer_log2 / (near->fewer_log2 + near->more_log2);
        *out = fewer;
        out->ratio_log += t * (more.ratio_log - fewer.ratio_log);
        out->sigma_log = fmax(fewer.sigma_log, more.sigma_log);
        out->extrapolated = fewer.extrapolated && more.extrapolated;
        doublings *= 0.5;
    }
    const double spread = SIGMA_PER_DOUBLING * doublings;
    out->sigma_log = sqrt(out->sigma_log * out->sigma_log + spread * spread);
    out->extrapolated = out->extrapolated || doublings > 1.0;
    return DL_OK;
}

/* `exact`: the samples are those of the request. */
static void finish(const struct dl_system *system, const struct dl_collective_request *request,
                   dl_library_time_fn *model, bool exact, const struct dl_coll_reading *reading,
                   struct dl_collective_time *time) {
    if (!exact)
        scale(time, reading, "F-COLL-SCALED", "fitted");
    else if (changed(system, request, model, time))
        scale(time, reading, "F-WHAT-IF", "fitted");
    else if (reading->fitted)
        scale(time, reading, "F-COLL-FITTED", "fitted");
    else
        scale(time, reading, "F-COLL-MEASURED", "measured");
}

enum dl_code dl_coll_measured_time(const struct dl_system *system,
                                   const struct dl_collective_request *request,
                                   dl_library_time_fn *model, struct dl_collective_time *out,
                                   bool *found, struct dl_err *err) {
    const struct nearest near = find_nearest(system, request);
    const bool plain = request->algorithm == NULL && request->protocol == NULL &&
                       request->flows_per_adapter <= 1.0 && request->concurrent <= 1 &&
                       request->group_stride <= 1;
    struct dl_collective_request exact = *request;
    struct dl_collective_time wanted = {.origin = "model"};
    const struct dl_coll_samples samples = {system, near.exact, request, model};
    struct dl_coll_reading reading;
    *found = false;
    if (near.exact == NULL && near.fewer == NULL && near.more == NULL) return DL_OK;
    exact.allow_decreasing = true;
    /* the samples alone */
    if (near.exact != NULL && plain && model(system, &exact, &wanted, NULL) != DL_OK) {
        wanted = (struct dl_collective_time){
            .time_s = 1.0, .bandwidth_s = 1.0, .steps = NAN, .algorithm = "as measured"};
        wanted.limit = request->nodes > 1 ? "inter" : "intra";
        const struct dl_coll_base none = {1.0, NULL, NULL};
        DL_TRY(dl_coll_samples_read(&samples, &none, &reading, err));
    } else if (near.exact != NULL) {
        DL_TRY(read_set(&samples, NULL, &reading, err));
        if (!plain) DL_TRY(model(system, request, &wanted, err));
    } else {
        DL_TRY(model(system, &exact, &wanted, err));
        DL_TRY(read_ranks(samples, &near, &wanted, &reading, err));
    }
    if (!(wanted.time_s > 0.0)) return DL_OK;
    finish(system, &exact, model, near.exact != NULL && plain, &reading, &wanted);
    *out = wanted;
    *found = true;
    return DL_OK;
}

void dl_coll_measured_fill(struct dl_system *system, struct dl_arena *arena) {
    for (int i = 0; i < system->collective_count; i++) {
        struct dl_coll_measured *m = &system->collectives[i];
        const int library = m->library != NULL ? dl_library_find(m->library) : -1;
        const int op = m->operation != NULL ? dl_collective_op_find(m->operation) : -1;
        if (library < 0 || op < 0 || m->sample_count == 0 || m->nodes < 1 || m->ranks < 2) continue;
        const struct dl_collective_request request = {.library = (enum dl_library)library,
                                                      .op = (enum dl_collective_op)op};
        struct dl_coll_base *bases = dl_arena_alloc(arena, (size_t)m->sample_count, sizeof *bases);
        for (int k = 0; k < m->sample_count; k++)
            bases[k] =
                dl_coll_samples_base(as_measured(system), m, dl_libraries[request.library]->time,
                                     &request, m->samples[k].bytes);
        m->bases = bases;
    }
}
