/* cal_network.c - see cal_internal.h. links.intra comes from MPI over shared memory, links.inter
 * from MPI over the network. Without other nodes, TCP over loopback stands in for links.inter,
 * marked as assumed. */
#include <stdio.h>
#include <string.h>

#include "calibrate/profile/cal_internal.h"

static enum dl_code fit_messages(struct dl_cal_maker *m, const struct dl_cal_messages *got,
                                 const char *key, struct dl_piece **pieces, int *count,
                                 struct dl_err *err) {
    struct dl_link_line lines[DL_LINK_PIECES];
    *pieces = dl_arena_alloc(m->arena, DL_LINK_PIECES, sizeof **pieces);
    DL_TRY(dl_fit_pieces(got->points, got->count, *pieces, lines, count, err));
    for (int i = 0; i < *count; i++) {
        dl_cal_note(m, dl_arena_printf(m->arena, "fit_%s_%d", key, i + 1),
                    dl_arena_printf(m->arena,
                                    "up to %.0f byte: alpha %.3g +- %.2g s, beta %.4g +- %.2g "
                                    "s/byte (95 %%), covariance %.2g, "
                                    "scatter %.1f %%, %zu samples",
                                    (*pieces)[i].max_bytes, lines[i].alpha_s,
                                    dl_line_alpha_half(&lines[i], 0.95), lines[i].beta_s_per_byte,
                                    dl_line_beta_half(&lines[i], 0.95), lines[i].covariance,
                                    100 * lines[i].sigma_frac, lines[i].samples));
    }
    return DL_OK;
}

static enum dl_code make_link(struct dl_cal_maker *m, const char *transport, struct dl_link *link,
                              bool *present, struct dl_err *err) {
    struct dl_cal_messages got;
    dl_cal_messages(m, "pingpong", transport, 0, 0, &got);
    if (got.count < 2) return DL_OK;
    DL_TRY(fit_messages(m, &got, dl_arena_printf(m->arena, "pingpong_%s", transport), &link->pieces,
                        &link->piece_count, err));
    const struct dl_coll_sample *last = &got.samples[got.count - 1];
    const double beta = link->pieces[link->piece_count - 1].beta_s_per_byte;
    link->latency_s = got.samples[0].time_s;
    link->bandwidth_bytes_per_s = beta > 0 ? 1 / beta : last->bytes / last->time_s;
    *present = m->out->has_links = true;
    return DL_OK;
}

/* The bandwidth of MPI between two nodes, one rank on each, over all adapters that it uses. */
static enum dl_code make_network(struct dl_cal_maker *m, struct dl_err *err) {
    const char *nics = dl_cal_journal_find(m->journal, "nics"),
               *hosts = dl_cal_journal_find(m->journal, "hosts");
    struct dl_link *link = &m->out->inter;
    DL_TRY(make_link(m, "net", link, &m->out->has_inter, err));
    if (!m->out->has_inter) return DL_OK;
    link->rdma = nics != NULL && strstr(nics, "infiniband") != NULL;
    link->kind = link->rdma ? "infiniband" : "ethernet";
    link->assumed = false;
    link->comment = "MPI messages between two nodes, one rank on each; all adapters that MPI uses "
                    "count as one.";
    m->out->nodes = 1;
    for (const char *at = hosts; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        m->out->nodes += at != hosts;
    }
    return DL_OK;
}

/* Range of the survey's times at its larger message size: shows how uniform the nodes are. */
static void note_pairs(struct dl_cal_maker *m) {
    double largest = 0, least = INFINITY, most = 0;
    size_t count = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < m->journal->sample_count; i++) {
            const struct dl_raw_sample *s = &m->journal->samples[i];
            const double bytes = dl_cal_number(s, "bytes");
            if (!dl_cal_is(s->probe, "pair")) continue;
            if (pass == 0) largest = fmax(largest, bytes);
            if (pass == 0 || bytes != largest) continue;
            least = fmin(least, s->median_s);
            most = fmax(most, s->median_s);
            count++;
        }
    }
    if (count == 0) return;
    dl_cal_note(m, "pairs",
                dl_arena_printf(m->arena, "%zu pairs of nodes, %.0f byte: %.4g to %.4g s", count,
                                largest, least, most));
}

/* Without MPI, nothing is known about the network: assume TCP over 10 Gb/s Ethernet; predictions
 * name the assumption. */
static void assume_network(struct dl_cal_maker *m) {
    static const double LINE_BYTES_PER_S = 1.25e9;
    /* 1448 bytes of payload of 1538 bytes per full frame on the wire */
    static const double TCP_SHARE = 0.94;
    /* small message, one way (unverified) */
    static const double TCP_LATENCY_S = 25e-6;
    struct dl_link *link = &m->out->inter;
    if (m->out->has_inter) return;
    link->kind = "ethernet";
    link->source = "unverified";
    link->bandwidth_bytes_per_s = LINE_BYTES_PER_S * TCP_SHARE;
    link->latency_s = TCP_LATENCY_S;
    link->comment =
        "Assumed, not measured: TCP over 10 Gb/s Ethernet. Set the real values with --set "
        "links.inter.bandwidth and links.inter.latency.";
    m->out->has_inter = m->out->has_links = true;
}

static bool there(const struct dl_cal_maker *m, const char *operation, int64_t nodes,
                  int64_t ranks) {
    for (int i = 0; i < m->out->collective_count; i++) {
        const struct dl_coll_measured *c = &m->out->collectives[i];
        if (dl_cal_is(c->library, "mpi") && dl_cal_is(c->operation, operation) &&
            c->nodes == nodes && (ranks == 0 || c->ranks == ranks))
            return true;
    }
    return false;
}

/* The first sample set per operation and rank set counts: with device buffers where MPI supports
 * them, else with host buffers. */
static enum dl_code make_collective(struct dl_cal_maker *m, const char *probe,
                                    const char *operation, int64_t nodes, struct dl_err *err) {
    const char *transport = nodes > 1 ? "net" : "shm";
    const int64_t ranks = nodes > 1 ? nodes : 0; /* 0: any number of ranks on one node */
    struct dl_cal_messages got;
    if (there(m, operation, nodes, ranks)) return DL_OK;
    dl_cal_messages(m, probe, transport, ranks, 0, &got);
    if (got.count < 2 || m->out->collective_count == DL_CAL_COLLECTIVES_MAX) return DL_OK;
    struct dl_coll_measured *c = &m->out->collectives[m->out->collective_count++];
    *c = (struct dl_coll_measured){.library = "mpi",
                                   .library_version = dl_cal_journal_find(m->journal, "mpi"),
                                   .operation = operation,
                                   .source = "measured",
                                   .buffers = strncmp(probe, "gpu-", 4) == 0 ? "device" : NULL,
                                   .nodes = nodes,
                                   .ranks = got.ranks,
                                   .samples = got.samples,
                                   .sample_count = (int)got.count};
    const char *key = dl_arena_printf(m->arena, nodes > 1 ? "%s_%s_%lld" : "%s_%s", probe,
                                      transport, (long long)got.ranks);
    return fit_messages(m, &got, key, &c->pieces, &c->piece_count, err);
}

/* Rank sets of a probe in the journal, ascending. */
static size_t rank_sets(const struct dl_cal_maker *m, const char *probe, int64_t sets[],
                        size_t room) {
    size_t count = 0;
    for (size_t i = 0; i < m->journal->sample_count; i++) {
        const struct dl_raw_sample *s = &m->journal->samples[i];
        const double ranks = dl_cal_number(s, "ranks");
        if (!dl_cal_is(s->probe, probe) || !dl_cal_is(s->pass, "net") ||
            !(ranks >= 2 && ranks < 1e6))
            continue;
        size_t at = count;
        while (at > 0 && sets[at - 1] > (int64_t)ranks) at--;
        if ((at > 0 && sets[at - 1] == (int64_t)ranks) || count == room) continue;
        memmove(sets + at + 1, sets + at, (count - at) * sizeof *sets);
        sets[at] = (int64_t)ranks;
        count++;
    }
    return count;
}

/* Collectives within a node over shared memory, and over the network with one rank per node. */
static enum dl_code make_collectives(struct dl_cal_maker *m, struct dl_err *err) {
    static const char *const names[][2] = {
        {"gpu-allreduce", "all_reduce"},     {"allreduce", "all_reduce"},
        {"allgather", "all_gather"},         {"broadcast", "broadcast"},
        {"reducescatter", "reduce_scatter"}, {"alltoall", "all_to_all"}};
    enum { SETS = 24 };
    DL_TRY(make_collective(m, "gpu-allreduce", "all_reduce", 1, err));
    DL_TRY(make_collective(m, "allreduce", "all_reduce", 1, err));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        int64_t sets[SETS + 1];
        const size_t count = rank_sets(m, names[i][0], sets, SETS);
        for (size_t k = 0; k < count; k++)
            DL_TRY(make_collective(m, names[i][0], names[i][1], sets[k], err));
    }
    return DL_OK;
}

enum dl_code dl_cal_network(struct dl_cal_maker *m, struct dl_err *err) {
    DL_TRY(make_link(m, "shm", &m->out->intra, &m->out->has_intra, err));
    DL_TRY(make_network(m, err));
    if (!m->out->has_inter) DL_TRY(make_link(m, "tcp", &m->out->inter, &m->out->has_inter, err));
    assume_network(m);
    note_pairs(m);
    return make_collectives(m, err);
}
