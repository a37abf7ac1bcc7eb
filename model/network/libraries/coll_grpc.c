/* coll_grpc.c - TensorFlow's collectives over gRPC (F-GRPC-RING): a ring over all devices, chunks
 * of at most 4 MiB, each an RPC whose payload is copied and serialized on the host. Subdivisions
 * overlap the copies of one chunk with the transfer of the next, so the slower of the two counts.
 * Other operations cost what dl_mpi_plain_time() says, plus an RPC per message. */
#include "model/network/coll_parts.h"

static const double RPC_S = 100e-6; /* one unary RPC beyond the wire, both ends (unverified) */
/* serialization and socket copies of one stream (unverified) */
static const double STREAM_BYTES_PER_S = 2.5e9;
/* ring chunk of TensorFlow's collective executor (unverified) */
static const double CHUNK_BYTES = 4194304.0;

enum dl_code dl_grpc_time(const struct dl_system *system,
                          const struct dl_collective_request *request,
                          struct dl_collective_time *out, struct dl_err *err) {
    struct dl_coll_links links;
    double ranks = (double)request->nodes * (double)request->ranks_per_node;
    DL_TRY(dl_coll_links(system, request, request->bytes / ranks, &links, err));
    if (request->op != DL_COLL_ALL_REDUCE) {
        DL_TRY(dl_mpi_plain_time(system, request, out, err));
        out->latency_s += out->steps * RPC_S;
        out->time_s = out->latency_s + out->bandwidth_s;
        return DL_OK;
    }
    double in_s = links.per_node > 1.0 ? links.intra.beta_s_per_byte : 0.0;
    double out_s = links.nodes > 1.0 ? links.inter.beta_s_per_byte : 0.0;
    double alpha_s = fmax(links.intra.alpha_s, links.inter.alpha_s) + RPC_S,
           block = request->bytes / ranks;
    double steps = 2.0 * (ranks - 1.0) * dl_segments(block, CHUNK_BYTES);
    double wire_s = fmax(fmax(in_s, out_s), 1.0 / STREAM_BYTES_PER_S);
    struct dl_cost_parts cost = {
        steps * alpha_s, (ranks - 1.0) * block * (2.0 * wire_s + links.inter.gamma_s_per_byte),
        steps};
    dl_coll_set(out, cost);
    out->algorithm = "ring", out->formula = "F-GRPC-RING",
    out->sigma_log = DL_COLL_UNCHECKED_SIGMA_LOG;
    out->limit = request->nodes > 1 ? "inter" : "intra";
    return DL_OK;
}
