/* collective.c - names, the table of algorithms, and the dispatch of one collective: measured
 * samples first, else the model of the library. See collective.h. */
#include "model/network/collective.h"

#include <string.h>

#include "model/network/coll_parts.h"

const char *const dl_collective_op_names[] = {
    "p2p",    "broadcast", "reduce", "all_reduce", "reduce_scatter", "all_gather", "all_to_all",
    "gather", "scatter",   "halo",   NULL};
const char *const dl_library_names[] = {"nccl",    "mpi",  "gloo", "grpc",
                                        "ps-lite", "copy", "mlsl", NULL};

const struct dl_collective_algorithm *const dl_collective_algorithms[] = {
    &dl_coll_ring,
    &dl_coll_segmented_ring,
    &dl_coll_recursive_doubling,
    &dl_coll_rabenseifner,
    &dl_coll_reduce_broadcast,
    &dl_coll_nonoverlapping,
    &dl_coll_binary_tree,
    &dl_coll_double_tree,
    &dl_coll_halving_doubling,
    &dl_coll_bcube,
    &dl_coll_linear,
    &dl_coll_hierarchical2,
    &dl_coll_hierarchical3,
    &dl_coll_torus2d,
    &dl_coll_leader,
    &dl_coll_ring_all_gather,
    &dl_coll_doubling_all_gather,
    &dl_coll_bruck_all_gather,
    &dl_coll_ring_reduce_scatter,
    &dl_coll_halving_reduce_scatter,
    &dl_coll_binomial_broadcast,
    &dl_coll_chain_broadcast,
    &dl_coll_scatter_broadcast,
    &dl_coll_binomial_reduce,
    &dl_coll_pairwise,
    &dl_coll_bruck,
    &dl_coll_p2p,
    &dl_coll_binomial_gather,
    &dl_coll_binomial_scatter,
    &dl_coll_halo,
    &dl_coll_collnet,
    &dl_coll_nvls,
    &dl_coll_pat_all_gather,
    &dl_coll_pat_reduce_scatter,
    NULL};

static dl_library_time_fn *const libraries[DL_LIBRARIES] = {
    [DL_LIB_NCCL] = dl_nccl_time, [DL_LIB_MPI] = dl_mpi_time,   [DL_LIB_GLOO] = dl_gloo_time,
    [DL_LIB_GRPC] = dl_grpc_time, [DL_LIB_COPY] = dl_copy_time, [DL_LIB_PSLITE] = dl_pslite_time,
    [DL_LIB_MLSL] = dl_mlsl_time};

dl_library_time_fn *dl_coll_library(enum dl_library library) { return libraries[library]; }

static int find(const char *const *names, const char *name) {
    for (int i = 0; names[i] != NULL; i++)
        if (strcmp(names[i], name) == 0) return i;
    return -1;
}

int dl_collective_op_find(const char *name) { return find(dl_collective_op_names, name); }
int dl_library_find(const char *name) { return find(dl_library_names, name); }

const struct dl_collective_algorithm *dl_collective_algorithm_find(const char *name) {
    for (const struct dl_collective_algorithm *const *row = dl_collective_algorithms; *row != NULL;
         row++)
        if (strcmp((*row)->name, name) == 0) return *row;
    return NULL;
}

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

/* Member by member: clearing the whole structure would take a third of the time of this function.
 */
static void clear(struct dl_collective_time *out) {
    out->time_s = out->latency_s = out->bandwidth_s = out->sigma_log = out->steps = out->channels =
        0.0;
    out->algorithm = "none", out->protocol = NULL, out->formula = "F-COLL-NONE", out->limit = NULL,
    out->origin = "model";
    out->extrapolated = false;
}

enum dl_code dl_collective_time(const struct dl_system *system,
                                const struct dl_collective_request *request,
                                struct dl_collective_time *out, struct dl_err *err) {
    DL_TRY(check(request, err));
    struct dl_collective_request folded, grouped;
    if (system->intra.domain_nodes > 1 && system->has_intra) {
        dl_collective_domain(system, request, &folded);
        request = &folded;
    }
    if (request->group_size > 0 || request->concurrent > 1) {
        DL_TRY(dl_collective_group(system, request, &grouped, err));
        request = &grouped;
    }
    dl_library_time_fn *model = libraries[request->library];
    clear(out);
    if (request->nodes == 1 && request->ranks_per_node == 1) return DL_OK;
    if (system->collective_count > 0) {
        bool found = false;
        DL_TRY(dl_coll_measured_time(system, request, model, out, &found, err));
        if (found) return DL_OK;
        clear(out);
    }
    return model(system, request, out, err);
}
