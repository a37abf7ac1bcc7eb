/* collective.c - one collective: measured samples first, else the rules of the library. See
 * collective.h. */
#include "model/network/collective.h"

#include "model/network/coll_internal.h"

static enum dl_code check(const struct dl_collective_request *request, struct dl_err *err) {
    if ((unsigned)request->op >= DL_COLL_OPS || (unsigned)request->library >= DL_LIBRARIES)
        return dl_fail(err, DL_ERR_USAGE, "unknown collective operation or library");
    if (!(request->bytes >= 0.0) || isinf(request->bytes))
        return dl_fail(err, DL_ERR_USAGE, "expected a collective of at least 0 bytes, got %g",
                       request->bytes);
    if (request->nodes < 1 || request->ranks_per_node < 1)
        return dl_fail(err, DL_ERR_USAGE,
                       "expected a collective over at least 1 node and 1 rank, got %lld x %lld",
                       (long long)request->nodes, (long long)request->ranks_per_node);
    return DL_OK;
}

enum dl_code dl_collective_time(const struct dl_system *system,
                                const struct dl_collective_request *request,
                                struct dl_collective_time *out, struct dl_err *err) {
    DL_TRY(check(request, err));
    struct dl_collective_request folded, grouped;
    if (dl_path_domain_nodes(system) > 1) {
        dl_collective_domain(system, request, &folded);
        request = &folded;
    }
    if (request->group_size > 0 || request->concurrent > 1) {
        DL_TRY(dl_collective_group(system, request, &grouped, err));
        request = &grouped;
    }
    static const struct dl_collective_time none = {
        .algorithm = "none", .formula = "F-COLL-NONE", .origin = "model"};
    dl_library_time_fn *model = dl_libraries[request->library]->time;
    *out = none;
    if (request->nodes == 1 && request->ranks_per_node == 1) return DL_OK;
    if (system->collective_count > 0) {
        bool found = false;
        DL_TRY(dl_coll_measured_time(system, request, model, out, &found, err));
        if (found) return DL_OK;
        *out = none;
    }
    return model(system, request, out, err);
}
