/* An iteration of a transformer from the times of its parts, stage by stage: what the pipeline, the
 * gradients and the sharded states add, against an account that goes through all stages one after
 * the other; random times, so that each place where they meet counts. F-TRANSFORMER-ITERATION,
 * F-TRANSFORMER-BUBBLE, F-TRANSFORMER-BOUNDARY, F-TRANSFORMER-SHARD, F-TRANSFORMER-STAGES. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/fake_transformer.h"

static uint64_t seed = 26;

static int upto(int count) { return (int)(check_random(&seed) % (uint64_t)count); }
static bool half(void) { return upto(2) == 0; }
static double some(void) { return 0.1 + check_uniform(&seed); }
static double at_least(double x, double y) { return x > y ? x : y; }

static struct dl_collective_time collective(void) {
    struct dl_collective_time t = {.latency_s = some(), .bandwidth_s = some(), .sigma_log = some()};
    t.time_s = upto(5) == 0 ? 0 : t.latency_s + t.bandwidth_s;
    t.limit = upto(3) == 0 ? NULL : half() ? "inter" : "intra";
    return t;
}

static struct dl_transformer_pass pass(void) {
    struct dl_transformer_pass p = {.device_s = some(),
                                    .error_s = some(),
                                    .outside_s = some(),
                                    .comm_s = some(),
                                    .comm_latency_s = some(),
                                    .comm_inter_s = some(),
                                    .comm_error_s = some(),
                                    .comm_bytes = 100 * some()};
    for (int i = 0; i < 3; i++) p.by_limit_s[i] = some();
    p.step_s = p.device_s + p.comm_s + (half() ? some() : -0.05);
    p.paced_s = 3 * p.device_s;
    return p;
}

static struct dl_transformer_mapping m;
static struct dl_transformer_micro_batch cell;
static struct dl_transformer_choice choice;
static struct dl_collective_time boundary;

static void random_case(struct gpt *g) {
    static const enum dl_schedule schedules[] = {DL_1F1B, DL_GPIPE, DL_INTERLEAVED, DL_ASYNC};
    const int pp = 1 + upto(5);
    memset(&m, 0, sizeof m), memset(&cell, 0, sizeof cell);
    m.split = gpt_split(1, 1, 1, pp, 4);
    m.shard = upto(4), m.replicas = 1 + upto(8);
    m.shard_ranks = half() ? m.replicas : at_least(1, floor(m.replicas / 2));
    m.expert_replicas = upto(3), m.stage_layers = 2 + upto(3);
    m.end_layers[0] = m.stage_layers - upto(2), m.end_layers[1] = m.stage_layers - upto(2);
    m.all_layers =
        m.end_layers[0] + m.end_layers[1] + (pp - 2) * m.stage_layers - (pp > 2 ? upto(2) : 0);
    m.buckets = 1 + upto(4);
    m.reduce = collective(), m.gather = collective(), m.tied = collective();
    m.unit_gather = collective(), m.unit_reduce = collective(), boundary = collective();
    m.gradient_bytes = upto(5) == 0 ? 0 : 4e3 * some();
    m.expert_gradient_bytes = m.gradient_bytes * (half() ? 0 : 0.25);
    m.gather_bytes = upto(5) == 0 ? 0 : 2e3 * some();
    m.most_parameters = 1e3 * some(), m.expert_parameters = half() ? 0 : 100;
    m.update_s = some(), m.update_error_s = some(), m.straggler_frac = 0.1 * some();
    for (int i = 0; i < 3; i++) m.update_by_limit_s[i] = some();
    m.bound = upto(4) == 0, m.before_frac = 0.5 * some(), m.slowdown_frac = half() ? 0 : 0.1;
    m.copy_out_s = half() ? 0 : 0.1, m.copy_in_s = half() ? 0 : 0.05;
    m.accumulate_s = half() ? 0 : 0.02;
    for (int p = 0; p < DL_TRANSFORMER_PARTS; p++) {
        cell.forward[p] = pass();
        for (int r = 0; r < DL_TRANSFORMER_RECOMPUTES; r++) cell.backward[p][r] = pass();
    }
    cell.boundary_bytes = 100 * some(), cell.micro_samples = 1;
    choice.micro_batches = 1 + upto(9), choice.schedule = schedules[upto(4)];
    choice.virtual_stages = choice.schedule == DL_INTERLEAVED ? 2 + upto(2) : 1 + upto(2);
    choice.recompute = (enum dl_recompute)upto(DL_TRANSFORMER_RECOMPUTES);
    g->f.framework.sync.overlaps_backward = half();
    g->f.framework.transformer.overlaps_gather = half();
    g->f.framework.transformer.boundary_overlaps = half();
    g->f.framework.host.iteration_s = 0.01;
}

struct stage {
    double layers, forward_s, backward_s, ahead_s, back_s; /* the last two: exposed gathers, sums */
    bool first, last;
};

/* Stage `index` with that many layers; what it exposes is that of `full` layers. */
static struct stage stage_of(const struct gpt *g, int index, double layers, double full) {
    const int pp = (int)m.split.pp, r = (int)choice.recompute;
    struct stage s = {.layers = layers, .first = index == 0, .last = index == pp - 1};
    const double add_s = choice.micro_batches > 1 ? m.accumulate_s : 0;
    const struct dl_transformer_pass *f = cell.forward;
    const double each_forward_s = f[DL_TRANSFORMER_BODY].step_s + m.copy_out_s,
                 each_backward_s = cell.backward[DL_TRANSFORMER_BODY][r].step_s + m.copy_out_s +
                                   m.copy_in_s + add_s;
    double forward_s = full * each_forward_s, backward_s = full * each_backward_s;
    if (s.first) forward_s += f[DL_TRANSFORMER_BEFORE].step_s;
    if (s.last) forward_s += f[DL_TRANSFORMER_AFTER].step_s;
    if (s.first) backward_s += cell.backward[DL_TRANSFORMER_BEFORE][r].step_s;
    if (s.last) backward_s += cell.backward[DL_TRANSFORMER_AFTER][r].step_s;
    s.forward_s = forward_s - (full - layers) * each_forward_s;
    s.backward_s = backward_s - (full - layers) * each_backward_s;
    if (m.replicas <= 1 || m.shard < 2) return s;
    const bool hides = g->f.framework.sync.overlaps_backward;
    if (m.shard == 2) {
        const double piece_s = m.reduce.time_s / m.buckets;
        s.back_s =
            hides ? piece_s + at_least(0, m.reduce.time_s - piece_s - backward_s) : m.reduce.time_s;
        return s;
    }
    const double gathers_s = full * m.unit_gather.time_s, sums_s = full * m.unit_reduce.time_s;
    s.ahead_s = m.gather.time_s + gathers_s;
    s.back_s = gathers_s + sums_s + m.reduce.time_s;
    if (!hides) return s;
    s.ahead_s = m.gather.time_s + m.unit_gather.time_s +
                at_least(0, (full - 1) * m.unit_gather.time_s - forward_s);
    s.back_s = m.reduce.time_s + at_least(m.unit_reduce.time_s, gathers_s + sums_s - backward_s);
    return s;
}

static double all_of(const struct stage *s) {
    return s->forward_s + s->backward_s + s->ahead_s + s->back_s;
}

struct causes {
    double latency_s, inter_s, intra_s, error_s;
};

static void show(struct causes *c, const struct dl_collective_time *t, double shown_s) {
    if (t->time_s == 0) return;
    const double share = shown_s / t->time_s, latency_s = share * t->latency_s,
                 inter_s = t->limit != NULL && strcmp(t->limit, "inter") == 0
                               ? share * t->bandwidth_s
                               : 0;
    c->latency_s += latency_s, c->inter_s += inter_s;
    c->intra_s += shown_s - latency_s - inter_s, c->error_s += shown_s * t->sigma_log;
}

/* Kept whole: one account of one random iteration. */
static void iterations(void **state) {
    (void)state;
    struct gpt g;
    gpt_make(&g, NULL, 0);
    for (int n = 0; n < 6000; n++) {
        random_case(&g);
        struct dl_transformer_result got;
        dl_transformer_evaluate(&g.tf, &m, &cell, &boundary, &choice, &got);
        const int pp = (int)m.split.pp;
        const double count = choice.micro_batches,
                     parts = choice.schedule == DL_INTERLEAVED ? (double)choice.virtual_stages : 1;
        /* all stages: the fullest of those between stands for them, some have less */
        struct stage slowest = {.layers = -1};
        double sum_s = 0, most_s = -1, ahead_s = 0, back_s = 0;
        for (int s = 0; s < pp; s++) {
            const bool between = s > 0 && s < pp - 1;
            const double full = pp == 1 || between ? m.stage_layers : m.end_layers[s > 0],
                         left = (m.all_layers - m.end_layers[0] - m.end_layers[1]) / (pp - 2);
            const struct stage at = stage_of(&g, s, full, full),
                               own = stage_of(&g, s, between ? left : full, full);
            sum_s += all_of(&own);
            ahead_s = at_least(ahead_s, at.forward_s + at.ahead_s);
            back_s = at_least(back_s, at.backward_s + at.back_s);
            if (all_of(&at) > most_s * (1 + 1e-12)) slowest = at, most_s = all_of(&at);
        }
        double bubble_s = 0;
        if (choice.schedule == DL_GPIPE)
            bubble_s = (count - 1) * (ahead_s + back_s) + sum_s - count * most_s;
        else if (choice.schedule != DL_ASYNC)
            bubble_s = (sum_s - most_s) / parts;
        if (pp == 1) bubble_s = 0;
        const struct dl_evidence *e = &got.evidence;
        assert_int_equal(got.before, slowest.first);
        assert_int_equal(got.after, slowest.last);
        check_close(got.layers, slowest.layers, 0);
        check_close(e->bubble_s, bubble_s, 1e-9);
        /* the slowest stage's kernels and collectives, part by part */
        const double add_s = count > 1 ? slowest.layers * m.accumulate_s : 0,
                     out_s = slowest.layers * m.copy_out_s, in_s = slowest.layers * m.copy_in_s;
        double forward_s = out_s, backward_s = out_s + in_s + add_s, comm_s = 0, latency_s = 0,
               inter_s = 0, comm_error_s = 0, error_s = 0, outside_s = 0, bytes = 0, steps_s = 0,
               paced_s = 0, limits_s[3] = {0, 2 * out_s + in_s + add_s, 0}, kernels_s = 0;
        for (int p = 0; p < DL_TRANSFORMER_PARTS; p++) {
            const double times = p == DL_TRANSFORMER_BODY     ? slowest.layers
                                 : p == DL_TRANSFORMER_BEFORE ? slowest.first
                                                              : slowest.last;
            const struct dl_transformer_pass *both[] = {&cell.forward[p],
                                                        &cell.backward[p][choice.recompute]};
            forward_s += times * both[0]->device_s, backward_s += times * both[1]->device_s;
            for (int k = 0; k < 2; k++) {
                comm_s += times * both[k]->comm_s, latency_s += times * both[k]->comm_latency_s;
                inter_s += times * both[k]->comm_inter_s, bytes += times * both[k]->comm_bytes;
                comm_error_s += times * both[k]->comm_error_s, error_s += times * both[k]->error_s;
                outside_s += times * both[k]->outside_s, steps_s += times * both[k]->step_s;
                kernels_s += times * both[k]->device_s, paced_s += times * both[k]->paced_s;
                for (int i = 0; i < 3; i++) limits_s[i] += times * both[k]->by_limit_s[i];
            }
        }
        check_close(e->forward_s, count * forward_s, 1e-9);
        check_close(e->host_s, 0.01 + count * at_least(0, steps_s - kernels_s - comm_s), 1e-9);
        check_close(e->paced_s, 0.01 + count * paced_s, 1e-9);
        check_close(e->error_s, count * error_s + m.update_error_s, 1e-9);
        check_close(e->outside_s, count * outside_s, 1e-9);
        check_close(e->update_s, m.update_s, 0);
        check_close(e->straggler_frac, m.straggler_frac, 0);
        check_close(got.tensor_s, count * comm_s, 1e-9);
        for (int i = 0; i < 3; i++)
            check_close(e->by_limit_s[i], count * limits_s[i] + m.update_by_limit_s[i], 1e-9);
        struct causes c = {count * latency_s, count * inter_s,
                           count * (comm_s - latency_s - inter_s), count * comm_error_s};
        double sent = count * bytes, between_s = 0;
        if (pp > 1) {
            const double message_s = boundary.time_s,
                         hides_s = (slowest.forward_s + slowest.backward_s) / 2 / parts;
            between_s =
                choice.schedule == DL_INTERLEAVED && g.f.framework.transformer.boundary_overlaps
                    ? 2 * (pp - 1) * message_s +
                          2 * (count * parts - 1) * at_least(0, message_s - hides_s)
                    : 2 * message_s * (count * parts + pp - 2);
            sent += 2 * count * parts * cell.boundary_bytes;
            show(&c, &boundary, between_s);
        }
        check_close(got.boundary_s, between_s, 1e-9);
        /* gradients and parameters */
        const double each_s = slowest.ahead_s + slowest.back_s, R = m.replicas, G = m.shard_ranks,
                     E = m.expert_replicas > 1 ? m.expert_replicas : 1,
                     of_experts =
                         m.gradient_bytes > 0 ? m.expert_gradient_bytes / m.gradient_bytes : 0,
                     share = (1 - of_experts) * (G - 1) / G + of_experts * (E - 1) / E,
                     across = G < R ? 2 * (R - G) / (R * G) : 0, window = 1 + (parts - 1) * pp;
        double data_s = m.tied.time_s, data_shown_s = m.tied.time_s;
        show(&c, &m.tied, m.tied.time_s);
        if (R > 1 && m.shard < 2) {
            const double all_s = m.reduce.time_s, piece_s = all_s / m.buckets;
            double shown_s = all_s;
            if (g.f.framework.sync.overlaps_backward)
                shown_s = m.bound ? at_least(m.before_frac * all_s,
                                             all_s - slowest.backward_s - slowest.forward_s)
                                  : piece_s + at_least(0, all_s - piece_s -
                                                              slowest.backward_s * window / parts);
            data_s += all_s, data_shown_s += shown_s;
            sent += m.gradient_bytes * (m.shard == 0 ? 2 * share : share + across);
            show(&c, &m.reduce, shown_s);
        }
        if (R > 1 && m.shard == 2) {
            data_s += count * m.reduce.time_s;
            sent += count * m.gradient_bytes * (share + across);
            show(&c, &m.reduce, count * each_s);
        }
        if (R > 1 && (m.shard == 1 || m.shard == 2)) {
            const double all_s = m.gather.time_s, piece_s = all_s / m.buckets;
            const double shown_s =
                g.f.framework.transformer.overlaps_gather
                    ? piece_s + at_least(0, all_s - piece_s - slowest.forward_s * window / parts)
                    : all_s;
            data_s += all_s, data_shown_s += shown_s, sent += m.gather_bytes * share;
            show(&c, &m.gather, shown_s);
        }
        if (R > 1 && m.shard == 3) {
            data_s += count * (slowest.layers * (2 * m.unit_gather.time_s + m.unit_reduce.time_s) +
                               m.gather.time_s + m.reduce.time_s);
            const double sums = m.gather_bytes > 0 ? m.gradient_bytes / m.gather_bytes : 1,
                         moved = (G - 1) / G * (m.most_parameters - m.expert_parameters) +
                                 (E - 1) / E * m.expert_parameters;
            sent += count * 2 * (moved * (2 + sums) + across * m.most_parameters * sums);
            show(&c, &m.unit_gather, count * each_s);
        }
        data_shown_s += count * each_s;
        check_close(got.data_s, data_s, 1e-9);
        check_close(got.data_exposed_s, data_shown_s, 1e-9);
        check_close(got.sent_bytes, sent, 1e-9);
        check_close(e->comm_s, count * comm_s + between_s + data_s, 1e-9);
        check_close(e->exposed_comm_s, count * comm_s + between_s + data_shown_s, 1e-9);
        check_close(e->backward_s,
                    count * backward_s + m.slowdown_frac * at_least(0, data_s - data_shown_s),
                    1e-9);
        check_close(e->latency_s, c.latency_s, 1e-9);
        check_close(e->inter_s, c.inter_s, 1e-9);
        check_close(e->intra_s, c.intra_s, 1e-6);
        check_close(e->comm_error_s, c.error_s, 1e-9);
    }
    dl_arena_free(&g.f.arena);
}

/* Between stages of several tensor ranks each sends its share, and the receivers gather them; not
 * where the tokens are split, or one rank holds all. F-TRANSFORMER-BOUNDARY */
static void messages_between(void **state) {
    (void)state;
    struct gpt g;
    gpt_make(&g, NULL, 0);
    for (int way = 0; way < 4; way++) {
        struct dl_err err = {0};
        struct dl_collective_time got, send, gather;
        memset(&m, 0, sizeof m), memset(&cell, 0, sizeof cell);
        m.split = cell.split = gpt_split(way == 1 ? 1 : 2, 1, 1, way == 3 ? 1 : 2, 2);
        cell.split.sequence_parallel = way == 2;
        cell.boundary_bytes = 1e6, cell.collective_bytes = 4e6;
        assert_int_equal(dl_transformer_boundary(&g.tf, &m, &cell, &got, &err), DL_OK);
        assert_int_equal(dl_transformer_collective(&g.tf, &m.split,
                                                   dl_transformer_group_of(&m.split, DL_AXIS_PP),
                                                   DL_COLL_P2P, 1e6, &send, &err),
                         DL_OK);
        assert_int_equal(dl_transformer_collective(&g.tf, &m.split,
                                                   dl_transformer_group_of(&m.split, DL_AXIS_TP),
                                                   DL_COLL_ALL_GATHER, 4e6, &gather, &err),
                         DL_OK);
        if (way > 0) gather.time_s = gather.latency_s = gather.bandwidth_s = 0;
        check_close(got.time_s, send.time_s + gather.time_s, 1e-12);
        check_close(got.latency_s, send.latency_s + gather.latency_s, 1e-12);
        check_close(got.bandwidth_s, send.bandwidth_s + gather.bandwidth_s, 1e-12);
        assert_int_equal(got.time_s > 0, way != 3);
    }
    dl_arena_free(&g.f.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(iterations),
                                       cmocka_unit_test(messages_between)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
