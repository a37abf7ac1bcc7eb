/* cal_network.c - see cal_parts.h. What MPI measured over shared memory is links.intra; over the network, links.inter; where
 * no other node took part, TCP over loopback stands in for links.inter and is marked as assumed. */
#include <stdio.h>
#include <string.h>

#include "calibrate/cal_parts.h"
#include "calibrate/fit_link.h"

static bool is(const char *text, const char *other) { return text != NULL && strcmp(text, other) == 0; }

struct messages {
    struct dl_link_sample points[DL_LINK_SAMPLES_MAX];
    struct dl_coll_sample *samples;
    int64_t ranks;
    size_t count;
};

/* Samples of one probe over one transport, ascending in bytes (the order of the plan, unless they were resumed). */
static enum dl_code collect(const struct dl_cal_maker *m, const char *probe, const char *transport, struct messages *out,
                            struct dl_err *err) {
    out->count = 0;
    out->samples = dl_arena_alloc(m->arena, m->journal->sample_count, sizeof *out->samples);
    if (out->samples == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    for (size_t i = 0; i < m->journal->sample_count; i++) {
        const struct dl_raw_sample *s = &m->journal->samples[i];
        const double bytes = dl_cal_shape_number(s->shape, "bytes");
        if (!is(s->probe, probe) || !is(s->pass, transport) || out->count == DL_LINK_SAMPLES_MAX) continue;
        size_t at = out->count;
        for (; at > 0 && out->samples[at - 1].bytes > bytes; at--) out->samples[at] = out->samples[at - 1];
        if (at > 0 && out->samples[at - 1].bytes == bytes) {
            for (; at < out->count; at++) out->samples[at] = out->samples[at + 1]; /* measured twice: the first counts */
            continue;
        }
        out->samples[at] = (struct dl_coll_sample){bytes, s->median_s, s->low_s, s->high_s};
        out->ranks = (int64_t)dl_cal_shape_number(s->shape, "ranks");
        out->count++;
    }
    for (size_t i = 0; i < out->count; i++)
        out->points[i] = (struct dl_link_sample){out->samples[i].bytes, out->samples[i].time_s};
    return DL_OK;
}

static enum dl_code fit_messages(struct dl_cal_maker *m, const struct messages *got, const char *key, struct dl_piece **pieces,
                                 int *count, struct dl_err *err) {
    struct dl_link_line lines[DL_LINK_PIECES];
    *pieces = dl_arena_alloc(m->arena, DL_LINK_PIECES, sizeof **pieces);
    if (*pieces == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    DL_TRY(dl_fit_pieces(got->points, got->count, *pieces, lines, count, err));
    for (int i = 0; i < *count; i++) {
        dl_cal_note(m, dl_arena_printf(m->arena, "fit_%s_%d", key, i + 1),
             dl_arena_printf(m->arena,
                             "up to %.0f byte: alpha %.3g +- %.2g s, beta %.4g +- %.2g s/byte (95 %%), covariance %.2g, "
                             "scatter %.1f %%, %zu samples",
                             (*pieces)[i].max_bytes, lines[i].alpha_s, dl_line_alpha_half(&lines[i], 0.95),
                             lines[i].beta_s_per_byte, dl_line_beta_half(&lines[i], 0.95), lines[i].covariance,
                             100 * lines[i].sigma_frac, lines[i].samples));
    }
    return DL_OK;
}

static enum dl_code make_link(struct dl_cal_maker *m, const char *transport, struct dl_link *link, bool *present, struct dl_err *err) {
    struct messages got;
    DL_TRY(collect(m, "pingpong", transport, &got, err));
    if (got.count < 2) return DL_OK;
    DL_TRY(fit_messages(m, &got, dl_arena_printf(m->arena, "pingpong_%s", transport), &link->pieces, &link->piece_count, err));
    const struct dl_coll_sample *last = &got.samples[got.count - 1];
    const double beta = link->pieces[link->piece_count - 1].beta_s_per_byte;
    link->latency_s = got.samples[0].time_s;
    link->bandwidth_bytes_per_s = beta > 0 ? 1 / beta : last->bytes / last->time_s;
    *present = m->out->has_links = true;
    return DL_OK;
}

/* Without MPI nothing of a network is known: 10 Gb/s Ethernet with TCP, as an assumption that predictions name. */
static void assume_network(struct dl_cal_maker *m) {
    static const double LINE_BYTES_PER_S = 1.25e9;
    static const double TCP_SHARE = 0.94; /* 1448 bytes of payload in the 1538 that a full frame takes on the wire */
    static const double TCP_LATENCY_S = 25e-6;                       /* small message, one way (mem) */
    struct dl_link *link = &m->out->inter;
    if (m->out->has_inter) return;
    link->kind = "ethernet";
    link->source = "mem";
    link->bandwidth_bytes_per_s = LINE_BYTES_PER_S * TCP_SHARE;
    link->latency_s = TCP_LATENCY_S;
    link->comment = "Assumed, not measured: 10 Gb/s Ethernet, TCP. --set links.inter.bandwidth and links.inter.latency say what there is.";
    m->out->has_inter = m->out->has_links = true;
}

/* Only over shared memory: that is how the ranks of one node talk. */
static enum dl_code make_collective(struct dl_cal_maker *m, struct dl_err *err) {
    struct messages got;
    DL_TRY(collect(m, "allreduce", "shm", &got, err));
    if (got.count < 2) return DL_OK;
    struct dl_coll_measured *c = &m->out->collectives[m->out->collective_count++];
    *c = (struct dl_coll_measured){.library = "mpi",
                                   .library_version = dl_cal_journal_find(m->journal, "mpi"),
                                   .operation = "all_reduce",
                                   .source = "measured",
                                   .nodes = 1,
                                   .ranks = got.ranks,
                                   .samples = got.samples,
                                   .sample_count = (int)got.count};
    return fit_messages(m, &got, "allreduce_shm", &c->pieces, &c->piece_count, err);
}

enum dl_code dl_cal_network(struct dl_cal_maker *m, struct dl_err *err) {
    DL_TRY(make_link(m, "shm", &m->out->intra, &m->out->has_intra, err));
    DL_TRY(make_link(m, "tcp", &m->out->inter, &m->out->has_inter, err));
    assume_network(m);
    return make_collective(m, err);
}
