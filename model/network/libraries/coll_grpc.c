/* coll_grpc.c - TensorFlow's collectives over gRPC (F-GRPC-RING): a ring over all devices, chunks
 * of at most 4 MiB, each an RPC whose payload is copied and serialized on the host. Subdivisions
 * overlap the copies of one chunk with the transfer of the next, so the slower of the two counts.
 * Other operations cost what dl_mpi_plain_time() says, plus an RPC per message. */
#include "model/network/coll_internal.h"

static const double RPC_S = 100e-6; /* one unary RPC beyond the wire, both ends (unverified) */
/* serialization and socket copies of one stream (unverified) */
static const double STREAM_BYTES_PER_S = 2.5e9;
/* ring chunk of TensorFlow's collective executor (unverified) */
static const double CHUNK_BYTES = 4194304.0;

static const struct dl_collective_algorithm algorithms[] = {
    {"ring", "reduce-scatter, then all-gather around a ring of devices, in RPCs of 4 MiB",
     DL_ON(ALL_REDUCE), "F-GRPC-RING", "tf-source"},
    {.name = NULL}};

static enum dl_code grpc_time(const struct dl_system *system,
                              const struct dl_collective_request *request,
                              struct dl_collective_time *out, struct dl_err *err) {
    struct dl_coll_links links;
    const double ranks = (double)request->nodes * (double)request->ranks_per_node;
    DL_TRY(dl_coll_links(system, request, request->bytes / ranks, &links, err));
    if (request->op != DL_COLL_ALL_REDUCE) {
        DL_TRY(dl_mpi_plain_time(system, request, out, err));
        out->latency_s += out->steps * RPC_S;
        out->time_s = out->latency_s + out->bandwidth_s;
        return DL_OK;
    }
    struct dl_hockney link = dl_coll_slowest_link(&links);
    link.alpha_s += RPC_S;
    link.beta_s_per_byte = fmax(link.beta_s_per_byte, 1.0 / STREAM_BYTES_PER_S);
    const double chunks = dl_segments(request->bytes / ranks, CHUNK_BYTES);
    dl_coll_set(out, dl_coll_ring_cost(&link, ranks, request->bytes, 2.0,
                                       2.0 * (ranks - 1.0) * chunks, true));
    out->algorithm = algorithms[0].name, out->formula = algorithms[0].formula,
    out->sigma_log = DL_COLL_UNCHECKED_SIGMA_LOG;
    const bool network = links.inter.beta_s_per_byte >= links.intra.beta_s_per_byte;
    out->limit = link.beta_s_per_byte <= 1.0 / STREAM_BYTES_PER_S ? "host"
                 : network                                        ? "inter"
                                                                  : links.inside_limit;
    return DL_OK;
}

static const char *const spellings[] = {NULL};

const struct dl_collective_library dl_library_grpc = {
    .summary = "TensorFlow's collectives over gRPC, in host memory",
    .formula = "F-GRPC-RING",
    .source = "tf-source",
    .spellings = spellings,
    .on_gpus = true,
    .on_cpus = true,
    .algorithms = algorithms,
    .time = grpc_time,
};
