/* Shares of a network and of memory under a power limit, what follows a changed member, and the
 * memory of a pipeline's stages, each against its formula written here apart; random members that
 * are unknown, counts of one, values at an edge. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/machine/net_share.h"
#include "model/machine/power_cap.h"
#include "model/machine/what_if.h"
#include "model/engine/transformer/transformer_maker.h"
#include "tests/fake_transformer.h"

static uint64_t seed = 22;
static struct dl_err err;

static int64_t upto(int64_t count) { return (int64_t)(check_random(&seed) % (uint64_t)count); }
static bool half(void) { return upto(2) == 0; }
static double of(const double *list, int count) { return list[upto(count)]; }
#define ONE_OF(...)                                                                                \
    of((const double[]){__VA_ARGS__}, (int)(sizeof((const double[]){__VA_ARGS__}) / sizeof(double)))
static double at_least(double x, double y) { return x > y ? x : y; }

/* F-NET-SHARE: equal flows, so that each gets its demand or an equal part of the link that gives
 * least.
 * Kept whole: one formula of one random case. */
static void shares(void **state) {
    (void)state;
    static const char *const distances[] = {NULL, "PIX", "PXB", "PHB", "NODE", "SYS"};
    static const char *const topologies[] = {NULL, "fat-tree", "dragonfly"};
    struct dl_fake f;
    fake_make(&f);
    for (int i = 0; i < 4000; i++) {
        struct dl_system *s = &f.system;
        const int at = (int)upto(6), shape = (int)upto(3);
        const double adapters = ONE_OF(-1, 1, 2, 4), rate = ONE_OF(12e9, 25e9),
                     nodes = ONE_OF(1, 2, 16, 17, 64), each = ONE_OF(1, 2, 8),
                     groups = ONE_OF(1, 5), joined = ONE_OF(0, 1, 2),
                     copy = ONE_OF(NAN, 3e9, 12e9, 24e9, 60e9),
                     memory = ONE_OF(NAN, 0, 40e9, 900e9), cross = ONE_OF(NAN, 0, 9e9),
                     leaf = ONE_OF(-1, 0, 16, 32), over = ONE_OF(NAN, 0.5, 1, 3),
                     hop = ONE_OF(NAN, 1e-7);
        const bool device = half(), direct = half(), host = upto(5) > 0, intra = upto(5) > 0,
                   fabric = half();
        s->inter.adapters_per_node = adapters < 0 ? DL_ABSENT : (int64_t)adapters;
        s->inter.distance = distances[at], s->inter.gpudirect = direct;
        s->has_host = host, s->has_intra = intra, s->has_fabric = fabric;
        s->host.copy_bandwidth_bytes_per_s = copy, s->host.memory_bandwidth_bytes_per_s = memory;
        s->intra.cross_bandwidth_bytes_per_s = cross;
        s->fabric.nodes_per_leaf = leaf < 0 ? DL_ABSENT : (int64_t)leaf;
        s->fabric.oversubscription = over, s->fabric.hop_latency_s = hop;
        s->fabric.topology = topologies[shape];
        const double m = joined > 1 ? joined : 1, rails = (adapters > 1 ? adapters : 1) * m,
                     used = rails < each ? rails : each, flows = used * groups;
        enum dl_network_link limit = DL_NET_ADAPTERS;
        double each_s = rate;
        if (device && !direct && host) {
            const double staged = copy / (at == 1 || at == 2 ? 2 : 1);
            if (staged < each_s) each_s = staged, limit = DL_NET_COPY;
        }
        if (rails * rate / flows < each_s) each_s = rails * rate / flows, limit = DL_NET_ADAPTERS;
        if (device && !direct && host && memory > 0 && memory * m / (4 * flows) < each_s)
            each_s = memory * m / (4 * flows), limit = DL_NET_MEMORY;
        if (device && direct && at == 5 && intra && cross > 0 && cross / flows < each_s)
            each_s = cross / flows, limit = DL_NET_CROSS;
        const bool far = fabric && leaf > 0 && nodes * m > leaf;
        const struct dl_network_share got =
            dl_network_share_joined(s, rate, nodes, each, groups, device, joined);
        check_close(got.rail_count, used, 0);
        check_close(got.bytes_per_s, each_s * used, 1e-9);
        assert_int_equal(got.limit, limit);
        check_close(got.latency_s, far && !isnan(hop) ? (shape == 2 ? 3 : 2) * hop : 0, 1e-12);
        check_close(got.bisection, far ? (over > 1 ? over : 1) * (shape == 2 ? 2 : 1) : 1, 1e-12);
        if (joined <= 1)
            check_close(dl_network_share(s, rate, nodes, each, groups, device).bytes_per_s,
                        got.bytes_per_s, 0);
    }
    dl_arena_free(&f.arena);
}

/* F-POWER-CAP */
static void power_limits(void **state) {
    (void)state;
    struct dl_device d = {.name = "d"};
    for (int i = 0; i < 2000; i++) {
        const double limit = ONE_OF(NAN, 0, 40, 100, 200, 300, 500), idle = ONE_OF(NAN, 0, 60),
                     load = ONE_OF(NAN, 0, 280, 450), tdp = ONE_OF(300, 400),
                     frac = ONE_OF(0, 0.5, 1);
        d.power_limit_w = limit, d.idle_w = idle, d.load_w = load, d.tdp_w = tdp;
        const double from = idle > 0 ? idle : 0.15 * tdp, to = load > 0 ? load : tdp,
                     most = limit > 0 ? limit : tdp;
        check_close(dl_device_idle_w(&d), from, 1e-12);
        check_close(dl_device_load_w(&d), to, 1e-12);
        double slower = 1;
        const double span = frac * (to - from);
        check_close(dl_device_limit_w(&d), most, 0);
        if (span > 0) {
            const double left = at_least(0.05, (most - from) / span);
            if (left < 1) slower = 1 / cbrt(left);
            if (left < 0.887 * 0.887 * 0.887) slower = 0.887 * 0.887 / left;
        }
        check_close(dl_power_cap_slowdown(&d, frac), slower, 1e-12);
    }
}

/* Peaks follow units and clock where both devices state them and the peak was not set itself.
 * Kept whole: one device before and after its change. */
static void clocks_and_units(void **state) {
    (void)state;
    struct dl_arena arena = {0};
    for (int i = 0; i < 1000; i++) {
        const double units = ONE_OF(-1, 80, 100), was_units = ONE_OF(-1, 80, 160),
                     clock = ONE_OF(NAN, 1e9, 2e9), was_clock = ONE_OF(NAN, 0, 1e9),
                     set = ONE_OF(1e13, 3e13), sustained = ONE_OF(NAN, 0, 8e12),
                     memory = ONE_OF(5e11, 1e12), latency = ONE_OF(5e-6, 1e-5);
        struct dl_rate was_rates[] = {{.precision = DL_FP32,
                                       .unit = 0,
                                       .peak_flop_per_s = 1e13,
                                       .sustained_flop_per_s = sustained},
                                      {.precision = DL_FP16,
                                       .unit = 1,
                                       .peak_flop_per_s = 1e14,
                                       .sustained_flop_per_s = NAN}},
                       rates[] = {was_rates[0], was_rates[1]};
        struct dl_kernel_model model = {.op = DL_OP_CONV,
                                        .precision = DL_FP32,
                                        .rate_flop_per_s = 7e12,
                                        .bandwidth_bytes_per_s = 4e11,
                                        .transform_bytes_per_s = 3e11,
                                        .gather_bytes_per_s = 2e11,
                                        .latency_s = 6e-6,
                                        .sigma_log = 0.05,
                                        .base_sigma_log = 0.16};
        struct dl_device was = {.name = "d",
                                .unit_count = was_units < 0 ? DL_ABSENT : (int64_t)was_units,
                                .clock_hz = was_clock,
                                .memory_bandwidth_bytes_per_s = 5e11,
                                .memory_efficiency = 0.8,
                                .kernel_latency_s = 5e-6,
                                .rates = was_rates,
                                .rate_count = 2,
                                .kernel_models = &model,
                                .kernel_model_count = 1},
                         now = was;
        rates[0].peak_flop_per_s = set, now.rates = rates;
        now.unit_count = units < 0 ? DL_ABSENT : (int64_t)units, now.clock_hz = clock;
        now.memory_bandwidth_bytes_per_s = memory, now.kernel_latency_s = latency;
        if (half()) now.kernel_model_count = 0, now.kernel_models = NULL;
        assert_int_equal(dl_device_what_if(&was, &now, &arena, &err), DL_OK);
        double by = 1;
        if (units > 0 && was_units > 0) by *= units / was_units;
        if (clock > 0 && was_clock > 0) by *= clock / was_clock;
        const double peak = set < 2e13 ? set * by : set;
        check_close(now.rates[0].peak_flop_per_s, peak, 1e-12);
        check_close(now.rates[1].peak_flop_per_s, 1e14 * by, 1e-12);
        check_close(now.rates[0].sustained_flop_per_s,
                    sustained > 0 ? sustained * peak / 1e13 : sustained, 1e-12);
        assert_int_equal(now.kernel_model_count, 1);
        const struct dl_kernel_model *got = &now.kernel_models[0];
        const bool other = fabs(peak / 1e13 - 1) > 1e-9 || memory > 6e11 || latency > 6e-6;
        check_close(got->rate_flop_per_s, 7e12 * peak / 1e13, 1e-9);
        check_close(got->bandwidth_bytes_per_s, 4e11 * memory / 5e11, 1e-12);
        check_close(got->transform_bytes_per_s, 3e11 * memory / 5e11, 1e-12);
        check_close(got->gather_bytes_per_s, 2e11 * memory / 5e11, 1e-12);
        check_close(got->latency_s, 6e-6 * latency / 5e-6, 1e-12);
        check_close(got->sigma_log, other ? 0.13 : 0.05, 1e-12);
        check_close(got->base_sigma_log, other ? 0.2 : 0.16, 1e-12);
    }
    dl_arena_free(&arena);
}

/* A pageable copy keeps what it takes beyond the pinned one; a measured line follows both ends. */
static void hosts_and_links(void **state) {
    (void)state;
    struct dl_fake f;
    fake_make(&f);
    for (int i = 0; i < 1000; i++) {
        struct dl_system was = f.system, now;
        struct dl_piece pieces[] = {{.alpha_s = 3e-6, .beta_s_per_byte = 1e-10},
                                    {.alpha_s = 5e-6, .beta_s_per_byte = 8e-11}};
        const double copy = ONE_OF(NAN, 12e9, 24e9), pageable = ONE_OF(NAN, 6e9, 20e9),
                     bandwidth = ONE_OF(12e9, 24e9), latency = ONE_OF(1.5e-6, 3e-6),
                     nccl = ONE_OF(NAN, 9e9);
        const bool fitted = half(), given = half();
        was.host.copy_bandwidth_bytes_per_s = 12e9;
        was.host.pageable_bandwidth_bytes_per_s = pageable;
        was.inter.nccl_bandwidth_bytes_per_s = nccl;
        was.inter.pieces = fitted ? pieces : NULL, was.inter.piece_count = fitted ? 2 : 0;
        was.inter.assumed = true;
        now = was;
        now.host.copy_bandwidth_bytes_per_s = copy;
        if (given) now.host.pageable_bandwidth_bytes_per_s = 5e9;
        now.inter.bandwidth_bytes_per_s = bandwidth, now.inter.latency_s = latency;
        assert_int_equal(dl_system_what_if(&was, &now, &f.arena, &err), DL_OK);
        double want = given ? 5e9 : pageable;
        if (!given && copy > 13e9 && pageable > 0)
            want = 1 / (1 / copy + at_least(0, 1 / pageable - 1 / 12e9));
        check_close(now.host.pageable_bandwidth_bytes_per_s, want, 1e-12);
        check_close(now.inter.nccl_bandwidth_bytes_per_s, nccl * bandwidth / 12e9, 1e-12);
        assert_int_equal(now.inter.assumed, bandwidth < 13e9);
        for (int k = 0; fitted && k < 2; k++) {
            check_close(now.inter.pieces[k].alpha_s, pieces[k].alpha_s * latency / 1.5e-6, 1e-12);
            check_close(now.inter.pieces[k].beta_s_per_byte,
                        pieces[k].beta_s_per_byte * 12e9 / bandwidth, 1e-12);
        }
    }
    dl_arena_free(&f.arena);
}

/* F-TRANSFORMER-MEMORY and F-TRANSFORMER-IN-FLIGHT with numbers that tell all parts apart.
 * Kept whole: one formula of one random case. */
static void stages_of_a_pipeline(void **state) {
    (void)state;
    static const double per_layer[] = {1000, 600, 70}, before[] = {11, 7, 5},
                        after[] = {4e3, 3e3, 9};
    struct gpt g;
    gpt_make(&g, NULL, 0);
    g.workload.input_bytes_per_sample = 3;
    g.f.framework.memory.fragmentation_frac = 0.2;
    struct dl_transformer_micro_batch mb = {.micro_samples = 2};
    for (int r = 0; r < 3; r++) {
        mb.kept_bytes[DL_TRANSFORMER_BODY][r] = per_layer[r];
        mb.kept_bytes[DL_TRANSFORMER_BEFORE][r] = before[r];
        mb.kept_bytes[DL_TRANSFORMER_AFTER][r] = after[r];
    }
    for (int i = 0; i < 3000; i++) {
        const int64_t pp = (int64_t)ONE_OF(1, 2, 3, 4), v = (int64_t)ONE_OF(1, 2, 3);
        const double m = ONE_OF(1, 2, 4, 12), capacity = ONE_OF(NAN, 2e4, 5e4, 1e6);
        const enum dl_schedule schedule = (enum dl_schedule)upto(4);
        const enum dl_recompute r = (enum dl_recompute)upto(3);
        struct dl_transformer_mapping mapping = {
            .split = {.pp = pp}, .stage_layers = 6, .end_layers = {5, 4}, .parameters = {300, 200}};
        for (int k = 0; k < 3; k++)
            mapping.states[k] = (struct dl_memory){.weights_bytes = 1e3 * (k + 1),
                                                   .gradients_bytes = 2e3 + k,
                                                   .optimizer_bytes = 3e3 + 10 * k,
                                                   .workspace_bytes = 50,
                                                   .buffers_bytes = 60,
                                                   .context_bytes = 70,
                                                   .capacity_bytes = capacity};
        const struct dl_transformer_choice choice = {
            .micro_batches = m, .schedule = schedule, .virtual_stages = v, .recompute = r};
        double most = 0, samples = HUGE_VAL;
        for (int64_t s = 0; s < pp; s++) {
            double flight = (double)(pp - s) < m ? (double)(pp - s) : m;
            if (schedule == DL_GPIPE) flight = m;
            if (schedule == DL_INTERLEAVED) {
                flight = ((double)(v - 1) * (double)pp + 2 * (double)(pp - s) - 1) / (double)v;
                if (m < flight) flight = m;
            }
            if (pp == 1) flight = 1;
            const bool first = s == 0, last = s == pp - 1;
            const double layers = pp == 1 ? 6 : first ? 5 : last ? 4 : 6;
            double head = last ? after[r] : 0;
            if (schedule == DL_GPIPE && pp > 1) head *= flight;
            const double again =
                r == DL_RECOMPUTE_FULL ? per_layer[0] : per_layer[0] - per_layer[r];
            const double kept = flight * layers * per_layer[r] +
                                (first ? flight * (before[r] + 2 * 3) : 0) + at_least(head, again);
            struct dl_memory want = mapping.states[first ? 0 : last ? 1 : 2], got;
            if (schedule == DL_ASYNC && !last)
                want.weights_bytes += 300 * dl_precision_bytes(DL_MIXED) * (flight - 1);
            const double fixed =
                want.weights_bytes + want.gradients_bytes + want.optimizer_bytes + 50 + 60 + 70;
            dl_transformer_stage_memory(&g.tf, &mapping, &mb, &choice, s, &got);
            check_close(dl_transformer_stage_in_flight(&mapping, &choice, s), flight, 1e-12);
            check_close(got.activations_bytes, kept, 1e-12);
            check_close(got.weights_bytes, want.weights_bytes, 1e-12);
            check_close(got.total_bytes, (fixed + kept) / 0.8, 1e-12);
            if (!first && !last && s > 1) continue; /* the first of those between stands for all */
            most = at_least(most, (fixed + kept) / 0.8);
            const double room = floor((capacity * 0.8 - fixed) / (kept / 2));
            samples = isnan(capacity) ? NAN : room < samples ? room : samples;
        }
        struct dl_transformer_result result = {.fits = false};
        dl_transformer_hold(&g.tf, &mapping, &mb, &choice, &result);
        check_close(result.memory.total_bytes, most, 1e-12);
        assert_int_equal(result.fits, isnan(capacity) || most <= capacity);
        check_close(dl_transformer_largest_micro_batch(&g.tf, &mapping, &mb, &choice),
                    isnan(samples) ? NAN : at_least(0, samples), 0);
    }
    dl_arena_free(&g.f.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares),
        cmocka_unit_test(power_limits),
        cmocka_unit_test(clocks_and_units),
        cmocka_unit_test(hosts_and_links),
        cmocka_unit_test(stages_of_a_pipeline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
