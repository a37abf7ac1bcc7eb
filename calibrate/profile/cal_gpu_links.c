/* cal_gpu_links.c - links.intra and links.inter of GPU nodes from the facts of the probes (NVLinks,
 * PCI distance, network adapters), their speed from NCCL samples, and the NCCL collectives. See
 * cal_gpu.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calibrate/profile/cal_gpu.h"
#include "model/network/collective.h"

static const struct {
    const char *probe, *operation;
} collectives[] = {{"nccl-allreduce", "all_reduce"}, {"nccl-reducescatter", "reduce_scatter"},
                   {"nccl-allgather", "all_gather"}, {"nccl-broadcast", "broadcast"},
                   {"nccl-alltoall", "all_to_all"},  {"nccl-sendrecv", "p2p"}};
enum { KINDS = sizeof collectives / sizeof *collectives, MAX_RANKS = 4096, MAX_EDGES = 256 };

static enum dl_code fit(struct dl_cal_maker *m, const struct dl_cal_messages *got,
                        struct dl_piece **pieces, int *count, struct dl_err *err) {
    *pieces = dl_arena_alloc(m->arena, DL_LINK_PIECES, sizeof **pieces);
    return dl_fit_pieces(got->points, got->count, *pieces, NULL, count, err);
}

static enum dl_code add_collective(struct dl_cal_maker *m, int kind, int64_t ranks, int64_t nodes,
                                   struct dl_err *err) {
    struct dl_cal_messages got;
    if (m->out->collective_count == DL_CAL_COLLECTIVES_MAX) return DL_OK;
    dl_cal_messages(m, collectives[kind].probe, NULL, ranks, nodes, &got);
    if (got.count < 2) return DL_OK;
    struct dl_coll_measured *c = &m->out->collectives[m->out->collective_count++];
    *c = (struct dl_coll_measured){.library = "nccl",
                                   .library_version = dl_cal_journal_find(m->journal, "nccl"),
                                   .operation = collectives[kind].operation,
                                   .source = "measured",
                                   .nodes = nodes,
                                   .ranks = ranks,
                                   .samples = got.samples,
                                   .sample_count = (int)got.count};
    return fit(m, &got, &c->pieces, &c->piece_count, err);
}

/* One entry per measured rank set. */
static enum dl_code add_collectives(struct dl_cal_maker *m, struct dl_err *err) {
    for (int kind = 0; kind < KINDS; kind++) {
        for (size_t i = 0; i < m->journal->sample_count; i++) {
            const struct dl_raw_sample *s = &m->journal->samples[i];
            const double given = dl_cal_number(s, "ranks"); /* NAN in samples of other probes */
            if (!dl_cal_is(s->probe, collectives[kind].probe) ||
                !(given >= 2 && given <= (double)MAX_RANKS))
                continue;
            const int64_t ranks = (int64_t)given, nodes = dl_cal_nodes_of(s);
            bool known = false;
            for (int j = 0; j < m->out->collective_count && !known; j++) {
                const struct dl_coll_measured *c = &m->out->collectives[j];
                known = dl_cal_is(c->library, "nccl") &&
                        dl_cal_is(c->operation, collectives[kind].operation) && c->ranks == ranks &&
                        c->nodes == nodes;
            }
            if (!known) DL_TRY(add_collective(m, kind, ranks, nodes, err));
        }
    }
    return DL_OK;
}

/* Bus bandwidth of all-reduce: the rate at which a device sends to its neighbour in the ring. The
 * best of all sizes. */
static double ring_bandwidth(const struct dl_cal_maker *m, int64_t ranks, int64_t nodes) {
    double most = NAN;
    for (int i = 0; i < m->out->collective_count; i++) {
        const struct dl_coll_measured *c = &m->out->collectives[i];
        if (!dl_cal_is(c->library, "nccl") || !dl_cal_is(c->operation, "all_reduce") ||
            c->ranks != ranks || c->nodes != nodes)
            continue;
        const double factor = 2 * (double)(ranks - 1) / (double)ranks;
        for (int j = 0; j < c->sample_count; j++)
            most = fmax(most, factor * c->samples[j].bytes / c->samples[j].time_s);
    }
    return most;
}

/* "0-1:2 0-3:1" */
static void read_edges(struct dl_cal_maker *m, struct dl_link *link) {
    const char *text = dl_cal_journal_find(m->journal, "gpu_links");
    if (text == NULL) return;
    link->edges = dl_arena_alloc(m->arena, MAX_EDGES, sizeof *link->edges);
    while (*text != 0 && link->edge_count < MAX_EDGES) {
        long from = 0, to = 0, links = 0;
        if (sscanf(text, "%ld-%ld:%ld", &from, &to, &links) != 3) break;
        if (to < m->out->devices_per_node)
            link->edges[link->edge_count++] =
                (struct dl_edge){.from = from, .to = to, .links = links};
        text += strcspn(text, " ");
        text += strspn(text, " ");
    }
}

/* Without NCCL samples: the rates that NCCL's topology search assumes per link and generation
 * (nccl-tuning in data/SOURCES.md). */
static void assume_intra(struct dl_cal_maker *m, struct dl_link *link) {
    static const double nvlink_bytes_per_s[] = {0, 18e9, 20e9, 20e9, 20.6e9, 40.1e9},
                        PCIE3_BYTES_PER_S = 12e9;
    static const double LATENCY_S = 5e-6; /* small message between two devices (unverified) */
    const char *kind = dl_cal_journal_find(m->journal, "gpu_link_kind"),
               *ports = dl_cal_journal_find(m->journal, "gpu_switch_links");
    const long version = kind != NULL ? strtol(kind + strlen("nvlink"), NULL, 10) : 0;
    double links = ports != NULL ? strtod(ports, NULL) : 0;
    for (int i = 0; i < link->edge_count; i++)
        links += (link->edges[i].from == 0) * (double)link->edges[i].links;
    if (version >= 1 && version <= 5 && links > 0) {
        link->bandwidth_bytes_per_s = links * nvlink_bytes_per_s[version];
    } else { /* each PCIe generation doubles the rate */
        const long generation =
            strncmp(link->kind, "pcie", 4) == 0 ? strtol(link->kind + 4, NULL, 10) : 3;
        link->bandwidth_bytes_per_s = PCIE3_BYTES_PER_S * pow(2, (double)(generation - 3));
    }
    link->latency_s = LATENCY_S;
    link->source = "nccl-tuning";
    link->assumed = true;
    link->comment = "Assumed from the kind and number of links, because the NCCL probes did not "
                    "run. 'dlmodel calibrate --list' shows why.";
}

static enum dl_code make_intra(struct dl_cal_maker *m, struct dl_err *err) {
    struct dl_link *link = &m->out->intra;
    struct dl_cal_messages pairs;
    const int64_t gpus = m->out->devices_per_node;
    const char *kind = dl_cal_journal_find(m->journal, "gpu_link_kind"),
               *pcie = dl_cal_journal_find(m->journal, "gpu_pcie");
    if (gpus < 2) return DL_OK;
    dl_cal_messages(m, "nccl-sendrecv", NULL, 2, 1, &pairs);
    const double ring = ring_bandwidth(m, gpus, 1);
    /* Replaces the values from MPI messages through host memory. */
    link->source = "measured";
    link->bandwidth_bytes_per_s = ring;
    link->latency_s = NAN;
    link->pieces = NULL;
    link->piece_count = 0;
    if (dl_cal_journal_find(m->journal, "gpu_switch_links") != NULL)
        link->kind = "nvswitch";
    else if (dl_cal_journal_find(m->journal, "gpu_links") != NULL && kind != NULL)
        link->kind = kind;
    else
        link->kind = pcie != NULL ? dl_arena_strndup(m->arena, pcie, strcspn(pcie, " ")) : "pcie3";
    if (!dl_cal_is(link->kind, "nvswitch")) read_edges(m, link);
    link->peer_to_peer = !dl_cal_is(dl_cal_journal_find(m->journal, "gpu_peer_access"), "no");
    if (pairs.count > 1) {
        DL_TRY(fit(m, &pairs, &link->pieces, &link->piece_count, err));
        link->latency_s = pairs.samples[0].time_s;
        if (!dl_known(ring))
            link->bandwidth_bytes_per_s =
                pairs.samples[pairs.count - 1].bytes / pairs.samples[pairs.count - 1].time_s;
    }
    if (!dl_known(link->bandwidth_bytes_per_s)) assume_intra(m, link);
    m->out->has_intra = m->out->has_links = true;
    return DL_OK;
}

struct nic {
    char name[64], kind[16], distance[8];
    double bytes_per_s;
};

/* "mlx5_0 infiniband 100 Gb/s PIX" */
static int read_nics(const struct dl_cal_maker *m, struct nic *best) {
    int count = 0;
    for (int i = 0; i < 16; i++) {
        char key[16];
        struct nic n;
        snprintf(key, sizeof key, "nic_%d", i);
        const char *text = dl_cal_journal_find(m->journal, key);
        if (text == NULL ||
            sscanf(text, "%63s %15s %lf Gb/s %7s", n.name, n.kind, &n.bytes_per_s, n.distance) != 4)
            break;
        n.bytes_per_s *= 1e9 / 8;
        if (count == 0 || n.bytes_per_s > best->bytes_per_s) {
            *best = n;
            count = 1;
        } else if (n.bytes_per_s == best->bytes_per_s && strcmp(n.kind, best->kind) == 0) {
            count++; /* a slower adapter is for management */
        }
    }
    return count;
}

/* NCCL samples between nodes show the network as training uses it; without them, the line rate of
 * the adapter is assumed and marked so. */
static enum dl_code make_inter(struct dl_cal_maker *m, struct dl_err *err) {
    /* share of the line rate that NCCL attains at best (unverified) */
    static const double PAYLOAD_FRAC = 0.92;
    /* small message through two adapters and a switch (unverified) */
    static const double RDMA_LATENCY_S = 2e-6;
    struct dl_link *link = &m->out->inter;
    struct dl_cal_messages pairs;
    struct nic nic;
    const int adapters = read_nics(m, &nic);
    dl_cal_messages(m, "nccl-sendrecv", NULL, 2, 2, &pairs);
    if (adapters > 0) {
        const bool verbs = strcmp(nic.kind, "ethernet") != 0;
        link->kind = verbs && strcmp(nic.kind, "infiniband") == 0 ? "infiniband" : "ethernet";
        link->adapters_per_node = adapters;
        link->rdma = verbs;
        link->gpudirect = dl_cal_journal_find(m->journal, "gpudirect") != NULL;
        link->distance = dl_arena_strdup(m->arena, nic.distance);
        const bool measured = pairs.count > 1 || (link->piece_count > 0 && !link->assumed);
        if (!measured) {
            link->bandwidth_bytes_per_s = PAYLOAD_FRAC * nic.bytes_per_s;
            if (verbs) link->latency_s = RDMA_LATENCY_S;
            link->pieces = NULL;
            link->piece_count = 0;
            link->assumed = true;
            link->source = "unverified";
            link->comment =
                dl_arena_printf(m->arena,
                                "Assumed, not measured: %.0f %% of the line rate of %s. "
                                "'dlmodel calibrate --nodes 2' measures it.",
                                100 * PAYLOAD_FRAC, nic.name);
        }
    }
    if (pairs.count < 2) return DL_OK;
    const struct dl_coll_sample *last = &pairs.samples[pairs.count - 1];
    const int64_t gpus = m->out->devices_per_node;
    const double ring = ring_bandwidth(m, 2 * gpus, 2);
    DL_TRY(fit(m, &pairs, &link->pieces, &link->piece_count, err));
    link->source = "measured";
    link->comment = "Point-to-point transfers and rings between GPUs of two nodes, by NCCL.";
    link->latency_s = pairs.samples[0].time_s;
    link->bandwidth_bytes_per_s = last->bytes / last->time_s;
    /* a ring over two nodes uses every adapter: count the share of one */
    if (dl_known(ring) && adapters > 1)
        link->bandwidth_bytes_per_s = fmax(link->bandwidth_bytes_per_s, ring / adapters);
    link->assumed = false;
    m->out->has_inter = m->out->has_links = true;
    return DL_OK;
}

enum dl_code dl_cal_gpu_links(struct dl_cal_maker *m, struct dl_err *err) {
    DL_TRY(add_collectives(m, err));
    DL_TRY(make_intra(m, err));
    return make_inter(m, err);
}
