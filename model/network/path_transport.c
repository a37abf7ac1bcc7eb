/* path_transport.c - the links between nodes under another transport than the system's own.
 * F-PLAN-SETTINGS */
#include <math.h>

#include "model/network/path.h"

/* One TCP connection through the kernel between two hosts. Rate: 4 to 6 GB/s on 100 Gb/s adapters
 * (nccl-tcp-issues); latency and host time of a message as in the systems of data/ whose nodes have
 * no RDMA. */
static const double TCP_CONNECTION_BYTES_PER_S = 5e9, TCP_LATENCY_S = 30e-6, TCP_MESSAGE_S = 5e-6;

/* Sockets instead of verbs: through host memory, one connection a ring. */
static void use_tcp(struct dl_link *link) {
    link->rdma = link->gpudirect = false;
    link->sockets_instead = true;
    link->latency_s = fmax(link->latency_s, TCP_LATENCY_S);
    link->per_message_cpu_s = TCP_MESSAGE_S;
    link->flow_bandwidth_bytes_per_s =
        fmin(TCP_CONNECTION_BYTES_PER_S, link->bandwidth_bytes_per_s);
    link->sockets_per_ring = 1;
    link->nccl_bandwidth_bytes_per_s = NAN;
    link->pieces = NULL; /* measured with verbs */
    link->piece_count = 0;
}

enum dl_code dl_path_over(const struct dl_system *system, const struct dl_path_choice *choice,
                          struct dl_arena *arena, const struct dl_system **out,
                          struct dl_err *err) {
    *out = system;
    if (!system->has_inter ||
        (choice->transport == DL_TRANSPORT_OPEN && choice->gpudirect == DL_SWITCH_OPEN))
        return DL_OK;
    if (choice->transport == DL_TRANSPORT_RDMA && !system->inter.rdma)
        return dl_fail(err, DL_ERR_USAGE,
                       "--transport rdma: nodes of %s have no RDMA; describe its adapters: --set "
                       "links.inter.rdma=true --set links.inter.latency_s=... --set "
                       "links.inter.bandwidth=...",
                       system->name);
    struct dl_system *copy = dl_arena_alloc(arena, 1, sizeof *copy);
    *copy = *system;
    if (choice->transport == DL_TRANSPORT_TCP && system->inter.rdma) use_tcp(&copy->inter);
    if (choice->gpudirect != DL_SWITCH_OPEN)
        copy->inter.gpudirect = choice->gpudirect == DL_SWITCH_ON && copy->inter.rdma;
    *out = copy;
    return DL_OK;
}
