/* run_rates.c - collectives that a run measured itself, and what they say of it: whether its links
 * were disturbed, and whether its ranks checked each other before each call (F-HOST-CHECKS), which
 * makes a call take as long as the checks. */
#include "predict/compare/run_rates.h"

#include <math.h>

#include "model/network/coll_match.h"
#include "model/network/collective.h"
#include "predict/compare/compare_runs_files.h"

/* Measured / predicted bus rate of 1 GiB; NAN: not measured, or no collective. */
static enum dl_code rate_frac(const struct dl_run_rows *r, int row, enum dl_run_column column,
                              const struct dl_system *system, struct dl_collective_request *request,
                              double *out, struct dl_err *err) {
    const double ranks = (double)(request->nodes * request->ranks_per_node);
    struct dl_collective_time t;
    double rate;
    DL_TRY(dl_run_number(r, row, column, &rate, err));
    *out = NAN;
    if (!(rate > 0) || ranks < 2) return DL_OK;
    request->library = DL_LIB_NCCL;
    request->bytes = 1073741824;
    DL_TRY(dl_collective_time(system, request, &t, err));
    *out = rate * 1e9 * t.time_s / (request->bytes * dl_collective_bus_factor(request->op, ranks));
    return DL_OK;
}

enum dl_code dl_run_links(const struct dl_run_rows *r, int row, struct dl_run_row *run,
                          struct dl_err *err) {
    struct dl_collective_request request = {
        .op = DL_COLL_ALL_REDUCE, .nodes = 1, .ranks_per_node = run->plan.devices_per_node};
    double frac;
    DL_TRY(rate_frac(r, row, DL_RUN_NODE_RATE, run->system, &request, &frac, err));
    if (frac < 0.5)
        run->why = dl_arena_printf(r->arena,
                                   "the run measured %.0f %% of the usual rate of an all-reduce "
                                   "inside a node: its links were disturbed",
                                   100 * frac);
    return DL_OK;
}

enum dl_code dl_run_checked_version(const struct dl_run_rows *r, int row,
                                    const struct dl_run_row *run, const char **out,
                                    struct dl_err *err) {
    /* on 2 to 64 nodes calls take 1.0 to 1.34 times the predicted time, 1.5 to 8 with checks */
    const double CHECKED_FRAC = 0.7;
    struct dl_collective_request request = {.op = DL_COLL_ALL_GATHER,
                                            .nodes = run->plan.nodes,
                                            .ranks_per_node = run->plan.devices_per_node};
    double frac;
    *out = dl_run_version(r, row);
    if (dl_run_cell(r, row, DL_RUN_PP_FIX)[0] == '\0' ||
        dl_run_cell(r, row, DL_RUN_FRAMEWORK_VERSION)[0] != '\0' || run->plan.nodes < 2)
        return DL_OK;
    DL_TRY(rate_frac(r, row, DL_RUN_GATHER_RATE, run->system, &request, &frac, err));
    if (dl_known(frac))
        *out =
            dl_arena_printf(r->arena, "%s checks=%s", *out, frac < CHECKED_FRAC ? "True" : "False");
    return DL_OK;
}
