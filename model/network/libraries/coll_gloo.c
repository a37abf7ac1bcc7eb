/* coll_gloo.c - Gloo's all-reduces over TCP or verbs, from host memory (F-GLOO-RING,
 * F-GLOO-HALVING, F-GLOO-BCUBE; key "gloo-docs"). The ring is chunked: 4(p-1) messages for the
 * bytes of a ring. Other operations cost what dl_mpi_plain_time() says. */
#include "model/network/coll_parts.h"

#include <string.h>

static struct dl_cost_parts ring_cost(const struct dl_coll_links *links, double bytes) {
    double in_s = links->per_node > 1.0 ? links->intra.beta_s_per_byte : 0.0;
    double out_s = links->nodes > 1.0 ? links->inter.beta_s_per_byte : 0.0;
    double share = (links->ranks - 1.0) / links->ranks, messages = 4.0 * (links->ranks - 1.0);
    return (struct dl_cost_parts){
        messages * fmax(links->intra.alpha_s, links->inter.alpha_s),
        share * bytes * (2.0 * fmax(in_s, out_s) + links->inter.gamma_s_per_byte), messages};
}

/* The textbook algorithm, once inside and once between nodes; a node's ranks share its adapters. */
static struct dl_cost_parts level_cost(const struct dl_collective_algorithm *row,
                                       const struct dl_coll_links *links, double bytes) {
    struct dl_hockney out = links->inter,
                      only_alpha[2] = {{links->intra.alpha_s, 0, 0}, {links->inter.alpha_s, 0, 0}};
    out.beta_s_per_byte *= links->bisection;
    double in_s = row->time_s(&links->intra, links->per_node, bytes, 0.0);
    double out_s = row->time_s(&out, links->nodes, bytes, 0.0); /* S/g each, g concurrently */
    double alpha_s = row->time_s(&only_alpha[0], links->per_node, 0.0, 0.0) +
                     row->time_s(&only_alpha[1], links->nodes, 0.0, 0.0);
    return (struct dl_cost_parts){alpha_s, in_s + out_s - alpha_s, 2.0 * dl_lg_ceil(links->ranks)};
}

enum dl_code dl_gloo_time(const struct dl_system *system,
                          const struct dl_collective_request *request,
                          struct dl_collective_time *out, struct dl_err *err) {
    const char *algorithm = request->algorithm != NULL ? request->algorithm : "ring";
    struct dl_coll_links links;
    if (request->op != DL_COLL_ALL_REDUCE) return dl_mpi_plain_time(system, request, out, err);
    double ranks = (double)request->nodes * (double)request->ranks_per_node;
    DL_TRY(dl_coll_links(system, request, request->bytes / ranks, &links, err));
    out->sigma_log = DL_COLL_UNCHECKED_SIGMA_LOG,
    out->limit = request->nodes > 1 ? "inter" : "intra";
    if (strcmp(algorithm, "ring") == 0) {
        dl_coll_set(out, ring_cost(&links, request->bytes));
        out->algorithm = "ring", out->formula = "F-GLOO-RING";
    } else if (strcmp(algorithm, "halving_doubling") == 0) {
        dl_coll_set(out, level_cost(&dl_coll_halving_doubling, &links, request->bytes));
        out->algorithm = "halving_doubling", out->formula = "F-GLOO-HALVING";
    } else if (strcmp(algorithm, "bcube") == 0) {
        dl_coll_set(out, level_cost(&dl_coll_bcube, &links, request->bytes));
        out->algorithm = "bcube", out->formula = "F-GLOO-BCUBE";
    } else {
        return dl_fail(err, DL_ERR_USAGE,
                       "Gloo has no all-reduce '%s'; expected ring, halving_doubling or bcube",
                       algorithm);
    }
    return DL_OK;
}
