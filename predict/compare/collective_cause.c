/* collective_cause.c - see collective_cause.h. */
#include "predict/compare/collective_cause.h"

#include <math.h>
#include <string.h>

#include "model/network/path.h"

/* Chosen: as a run about a cause, and as slow links or start-ups (compare_cause.c). */
#define NOISE_LOG 0.1
#define REACH_LOG 0.3
#define SCALE_LOG 0.7
#define MOST 20
#define UNKNOWN_WEIGHT 0.05

struct ranking {
    const struct dl_compared *row;
    const struct dl_collective_request *request;
    struct dl_collective_time now;
    struct dl_cause_weight list[DL_MOST_CAUSES];
    int count;
    struct dl_arena *arena;
};

static void add(struct ranking *r, double weight, struct dl_cause cause) {
    if (!(weight > 0) || r->count == DL_MOST_CAUSES) return;
    r->list[r->count++] = (struct dl_cause_weight){cause, weight};
}

/* A machine that differs in one thing, as the model has it. */
static void differs(struct ranking *r, const struct dl_system *system, const char *algorithm,
                    struct dl_cause cause) {
    struct dl_system bare = *system;
    struct dl_collective_request request = *r->request;
    struct dl_collective_time t;
    struct dl_err err = {0};
    bare.collectives = NULL, bare.collective_count = 0; /* samples are of the machine as it is */
    if (algorithm != NULL) request.algorithm = algorithm;
    if (dl_collective_time(&bare, &request, &t, &err) != DL_OK) return;
    const double slower = t.time_s / r->now.time_s,
                 off_log = log(r->row->measured / (slower * r->row->predicted));
    if (!(slower > 1.05) || fabs(off_log) > REACH_LOG) return;
    cause.text = dl_arena_printf(r->arena, "%s: %.2f times as long is predicted, %.2f was measured",
                                 cause.text, slower, r->row->measured / r->row->predicted);
    cause.factor = slower;
    add(r, dl_cause_noise(off_log, NOISE_LOG), cause);
}

static void without_adapters(struct ranking *r, const struct dl_system *system) {
    struct dl_system fewer = *system;
    for (int64_t n = system->inter.adapters_per_node / 2; n >= 1; n /= 2) {
        fewer.inter.adapters_per_node = n;
        differs(r, &fewer, NULL,
                (struct dl_cause){.name = "adapters",
                                  .text = dl_arena_printf(
                                      r->arena, "%lld of %lld adapters of a node in use",
                                      (long long)n, (long long)system->inter.adapters_per_node),
                                  .test = "NCCL_DEBUG=INFO: the NET/ lines list the adapters",
                                  .bottleneck = "inter-link"});
    }
}

static void other_paths(struct ranking *r, const struct dl_system *system) {
    const struct dl_path_choice direct = {.gpudirect = DL_SWITCH_OFF},
                                tcp = {.transport = DL_TRANSPORT_TCP};
    const struct dl_system *other;
    struct dl_err err = {0};
    if (system->inter.gpudirect && dl_path_over(system, &direct, r->arena, &other, &err) == DL_OK)
        differs(r, other, NULL,
                (struct dl_cause){.name = "gpudirect",
                                  .text = "no GPUDirect: messages pass through host memory",
                                  .test = "NCCL_DEBUG=INFO says GDRDMA for each channel with it",
                                  .bottleneck = "host-copy"});
    if (system->inter.rdma && dl_path_over(system, &tcp, r->arena, &other, &err) == DL_OK)
        differs(r, other, NULL,
                (struct dl_cause){.name = "transport",
                                  .text = "sockets in place of RDMA",
                                  .test = "NCCL_DEBUG=INFO says NET/Socket, not NET/IB",
                                  .bottleneck = "inter-link"});
}

static void slower_links(struct ranking *r, double ratio) {
    const bool start = r->now.latency_s > r->now.bandwidth_s;
    add(r, dl_cause_excess(log(ratio), SCALE_LOG, start ? 1000 : MOST),
        (struct dl_cause){
            .name = start ? "start-up" : "links",
            .text = start ? dl_arena_printf(r->arena,
                                            "start-up of messages %.1f times as long as in the "
                                            "system's file, or another algorithm than %s",
                                            ratio, r->now.algorithm)
                          : dl_arena_printf(
                                r->arena,
                                "%s slower than in the system's file: %.3g of %.3g GB/s of the "
                                "buffer, as with %.0f %% of its links or adapters; or another "
                                "algorithm than %s",
                                r->row->bottleneck, r->request->bytes / r->row->measured / 1e9,
                                r->request->bytes / r->row->predicted / 1e9, 100 / ratio,
                                r->now.algorithm),
            .test = start ? "repeat with NCCL_ALGO set to each algorithm"
                          : "send between pairs of ranks: a slow link is slow alone",
            .factor = ratio,
            .bottleneck = start ? "latency" : r->row->bottleneck});
}

const struct dl_causes *dl_collective_causes(const struct dl_system *system,
                                             const struct dl_collective_request *request,
                                             const struct dl_compared *row,
                                             struct dl_arena *arena) {
    struct ranking r = {.row = row, .request = request, .arena = arena};
    struct dl_system bare = *system;
    struct dl_err err = {0};
    const double ratio = row->measured / row->predicted;
    bare.collectives = NULL, bare.collective_count = 0;
    if (!(row->measured > row->high) || row->bottleneck == NULL ||
        dl_collective_time(&bare, request, &r.now, &err) != DL_OK)
        return NULL;
    if (r.now.algorithm != NULL && strncmp(r.now.algorithm, "nvls", 4) == 0)
        differs(&r, system, request->nodes > 1 ? "tree" : "ring",
                (struct dl_cause){.name = "nvls",
                                  .text = "NVLS off",
                                  .test = "NCCL_DEBUG=INFO says NVLS; NCCL_NVLS_ENABLE is not 0, "
                                          "the fabric manager runs",
                                  .bottleneck = "intra-link"});
    if (request->nodes > 1) {
        without_adapters(&r, system);
        other_paths(&r, system);
    }
    slower_links(&r, ratio);
    add(&r, UNKNOWN_WEIGHT * dl_cause_excess(log(ratio), 1, HUGE_VAL),
        (struct dl_cause){
            .name = "unknown",
            .text = dl_arena_printf(arena, "not explained: %.2f times the prediction", ratio),
            .factor = NAN});
    return dl_causes_rank(r.list, r.count, arena);
}
