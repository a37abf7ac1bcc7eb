/* coll_mlsl.c - Intel MLSL on CPU nodes (F-MLSL): halving and doubling, with progress threads
 * ("endpoints") that add to each message, and a step in time for very long messages. Not modelled:
 * the number of endpoints, priorities.
 *
 * Constants are fitted to all rows of DeepBench's all-reduce on KNL and Omni-Path (key "deepbench",
 * 2 to 32 nodes). Latency of a message: 50, 84, 155, 161, 190 us / 2 lg p = 19 to 26 us. Between 67
 * and 153 MB the time rises by 17.5, 19, 19.6, 16 and 11.4 ms (2 to 32 nodes) beyond what the rate
 * explains; above that the rate is as before: a step of 17 ms. */
#include "model/network/libraries/mpi_coll.h"

static const double ENDPOINT_S = 20e-6;
static const double STEP_BYTES = 134217728.0;
static const double STEP_S = 17e-3;

static const struct dl_collective_algorithm algorithms[] = {
    {"halving_doubling", "recursive halving and doubling by progress threads", DL_ON(ALL_REDUCE),
     "F-MLSL", "deepbench"},
    {.name = NULL}};

static enum dl_code mlsl_time(const struct dl_system *system,
                              const struct dl_collective_request *request,
                              struct dl_collective_time *out, struct dl_err *err) {
    struct dl_coll_links links;
    if (request->op != DL_COLL_ALL_REDUCE) return dl_mpi_time(system, request, out, err);
    DL_TRY(dl_coll_links(system, request, request->bytes, &links, err));
    double in_steps = 2.0 * dl_ceil_log2(links.per_node),
           out_steps = 2.0 * dl_ceil_log2(links.nodes);
    double in_bytes = request->bytes * (links.per_node - 1.0) / links.per_node;
    double out_bytes = request->bytes * (links.nodes - 1.0) / links.nodes;
    double step_s = request->bytes > STEP_BYTES ? STEP_S : 0.0;
    /* The progress threads add while the adapter moves the next part: the sums are hidden. */
    const double in_s = 2.0 * in_bytes * links.intra.beta_s_per_byte,
                 out_s = 2.0 * out_bytes * links.inter.beta_s_per_byte * links.bisection;
    struct dl_cost_parts cost = {in_steps * links.intra.alpha_s +
                                     out_steps * (links.inter.alpha_s + ENDPOINT_S) + step_s,
                                 in_s + out_s, in_steps + out_steps};
    dl_coll_set(out, cost);
    out->protocol = request->bytes > STEP_BYTES ? "long" : "short";
    out->algorithm = algorithms[0].name, out->formula = algorithms[0].formula;
    out->sigma_log = 0.25; /* 35 published rows: median / 0.6745 = 0.23, 90 % / 1.645 = 0.25 */
    out->limit = in_s > out_s ? links.inside_limit : "inter";
    return DL_OK;
}

static const char *const spellings[] = {"MLSL", "mlsl", NULL};

const struct dl_collective_library dl_library_mlsl = {
    .summary = "Intel MLSL: collectives of CPU nodes with progress threads",
    .formula = "F-MLSL",
    .source = "deepbench",
    .spellings = spellings,
    .on_cpus = true,
    .waits_per_layer = true,
    .algorithms = algorithms,
    .time = mlsl_time,
};
