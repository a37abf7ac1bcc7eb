/* F-WHAT-IF of the links inside a node, of models and their spreads, by ratios written here; and
 * every key that no prediction reads, with the reason, next to keys that differ in a letter. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/machine/what_if.h"
#include "tests/check.h"
#include "tests/fake.h"

static uint64_t seed = 61;
static struct dl_err err;

static int upto(int count) { return (int)(check_random(&seed) % (uint64_t)count); }
static double of(const double *list, int count) { return list[upto(count)]; }
#define ONE_OF(...)                                                                                \
    of((const double[]){__VA_ARGS__}, (int)(sizeof((const double[]){__VA_ARGS__}) / sizeof(double)))

/* Changed or not, where both are known; from or to nothing is a change of its own. */
static double times(double now, double was) {
    return now > 0 && was > 0 && !isinf(now) ? now / was : 1;
}
static bool same(double a, double b) { return isnan(a) ? isnan(b) : a == b; }

struct links {
    struct dl_piece pieces[2], others[2];
    struct dl_system was, now;
};

static void random_links(struct links *l) {
    static const struct dl_piece pieces[] = {{1e4, 3e-6, 1e-10}, {1e9, 5e-6, 8e-11}};
    struct dl_fake f;
    fake_make(&f);
    memcpy(l->pieces, pieces, sizeof pieces), memcpy(l->others, pieces, sizeof pieces);
    l->was = f.system;
    dl_arena_free(&f.arena);
    struct dl_link *a = &l->was.intra;
    l->was.devices_per_node = upto(10) == 0 ? 40 : 1 + upto(9);
    l->was.has_intra = upto(9) > 0;
    a->assumed = true, a->bandwidth_bytes_per_s = ONE_OF(NAN, 50e9, 60e9);
    a->latency_s = ONE_OF(NAN, 2e-6), a->channels = upto(2) ? DL_ABSENT : 1 + upto(4);
    a->channel_bandwidth_bytes_per_s = ONE_OF(NAN, NAN, 20e9);
    a->nccl_bandwidth_bytes_per_s = ONE_OF(NAN, 9e9);
    a->pieces = upto(2) ? l->pieces : NULL, a->piece_count = a->pieces ? 2 : 0;
    for (int n = 0; n <= DL_LINK_DEVICES; n++) a->ring_channels[n] = upto(3) * 2;
    l->now = l->was;
    struct dl_link *b = &l->now.intra;
    if (upto(9) == 0) l->now.devices_per_node++;
    if (upto(9) == 0) l->now.has_intra = false;
    if (upto(2)) b->bandwidth_bytes_per_s = ONE_OF(NAN, 30e9, 120e9);
    if (upto(2)) b->latency_s = ONE_OF(NAN, 1e-6, 4e-6);
    if (upto(2)) b->channel_bandwidth_bytes_per_s = ONE_OF(NAN, 10e9, 25e9);
    if (upto(4) == 0) b->nccl_bandwidth_bytes_per_s = ONE_OF(NAN, 7e9);
    for (int n = 0; n <= DL_LINK_DEVICES; n++)
        if (upto(3) == 0) b->ring_channels[n] = upto(4);
    if (a->piece_count == 0) return;
    const int change = upto(8);
    if (change < 4) b->pieces = l->others; /* of the same numbers, or one set too */
    if (change == 0) l->others[0].alpha_s = 9e-6;
    if (change == 1) l->others[1].beta_s_per_byte = 2e-10;
    if (change == 2) b->piece_count = 1;
    if (change == 4) b->piece_count = 0;
}

/* What the rings, or a channel's rate, make of the attained bandwidth. */
static double of_rings(const struct dl_link *a, const struct dl_link *b, int devices) {
    const int most = devices < DL_LINK_DEVICES ? devices : DL_LINK_DEVICES;
    if (devices < 2) return 1;
    const double channel = b->channel_bandwidth_bytes_per_s;
    double was = a->channel_bandwidth_bytes_per_s, by = 1;
    if (a->ring_channels[most] >= 1 && b->ring_channels[most] >= 1)
        by = (double)b->ring_channels[most] / a->ring_channels[most];
    if (same(channel, was)) return by;
    if (isnan(was)) {
        double channels = a->channels >= 1 ? (double)a->channels : 1;
        if (a->channels < 1 && devices <= DL_LINK_DEVICES && a->ring_channels[devices] > 1)
            channels = a->ring_channels[devices];
        was = a->bandwidth_bytes_per_s / channels;
    }
    return by * times(channel, was);
}

static void links_inside_a_node(void **state) {
    (void)state;
    struct dl_arena arena = {0};
    int scaled = 0;
    for (int round = 0; round < 20000; round++) {
        struct links l;
        random_links(&l);
        const struct dl_link before = l.now.intra, *a = &l.was.intra, *b = &l.now.intra;
        assert_int_equal(dl_system_what_if(&l.was, &l.now, &arena, &err), DL_OK);
        if (!l.was.has_intra || !l.now.has_intra ||
            l.was.devices_per_node != l.now.devices_per_node) {
            assert_memory_equal(&before, b, sizeof before);
            continue;
        }
        const double was_bandwidth = !isnan(a->bandwidth_bytes_per_s) ? a->bandwidth_bytes_per_s
                                     : a->piece_count > 0             ? 1 / 8e-11
                                                                      : (double)NAN,
                     was_latency = !isnan(a->latency_s) ? a->latency_s
                                   : a->piece_count > 0 ? 3e-6
                                                        : (double)NAN;
        const double faster = times(before.bandwidth_bytes_per_s, was_bandwidth),
                     later = times(before.latency_s, was_latency);
        const bool kept = same(before.bandwidth_bytes_per_s, a->bandwidth_bytes_per_s);
        struct dl_link want = before;
        want.assumed = kept;
        if (same(before.nccl_bandwidth_bytes_per_s, a->nccl_bandwidth_bytes_per_s))
            want.nccl_bandwidth_bytes_per_s *= faster;
        if (same(before.channel_bandwidth_bytes_per_s, a->channel_bandwidth_bytes_per_s))
            want.channel_bandwidth_bytes_per_s *= faster;
        /* the channel's rate as it then is: a changed bandwidth is not changed again */
        if (kept) want.bandwidth_bytes_per_s *= of_rings(a, &want, (int)l.was.devices_per_node);
        assert_int_equal(b->assumed, want.assumed);
        check_close(b->nccl_bandwidth_bytes_per_s, want.nccl_bandwidth_bytes_per_s, 1e-12);
        check_close(b->channel_bandwidth_bytes_per_s, want.channel_bandwidth_bytes_per_s, 1e-12);
        check_close(b->bandwidth_bytes_per_s, want.bandwidth_bytes_per_s, 1e-12);
        check_close(b->latency_s, want.latency_s, 0);
        const bool set = before.piece_count != a->piece_count ||
                         (before.pieces == l.others &&
                          (l.others[0].alpha_s > 4e-6 || l.others[1].beta_s_per_byte > 1e-10));
        assert_int_equal(b->piece_count, before.piece_count);
        for (int i = 0; i < b->piece_count; i++) {
            check_close(b->pieces[i].alpha_s, before.pieces[i].alpha_s * (set ? 1 : later), 1e-12);
            check_close(b->pieces[i].beta_s_per_byte,
                        before.pieces[i].beta_s_per_byte / (set ? 1 : faster), 1e-12);
        }
        scaled += !kept || later < 1;
    }
    assert_true(scaled > 5000);
    dl_arena_free(&arena);
}

/* ---- models of kernels ---- */

/* Rates of fp32 by the file or the fit, of fp16 by the peak; spreads grow where anything changed.
 * Kept whole: one random device and what follows from it. */
static void models_of_a_device(void **state) {
    (void)state;
    struct dl_arena arena = {0};
    for (int round = 0; round < 5000; round++) {
        struct dl_rate rates[] = {{.precision = DL_FP32, .peak_flop_per_s = 10e12},
                                  {.precision = DL_FP16, .unit = 1, .peak_flop_per_s = 80e12}},
                       changed[2];
        rates[0].sustained_flop_per_s = ONE_OF(NAN, 8e12);
        rates[1].sustained_flop_per_s = NAN;
        struct dl_kernel_model models[3] = {{.op = DL_OP_CONV, .precision = DL_FP32},
                                            {.op = DL_OP_GEMM, .precision = DL_FP32},
                                            {.op = DL_OP_GEMM, .precision = DL_FP16}};
        for (int i = 0; i < 3; i++) {
            models[i].rate_flop_per_s = 6e12 + 1e12 * i, models[i].bandwidth_bytes_per_s = 4e11;
            models[i].transform_bytes_per_s = 3e11, models[i].gather_bytes_per_s = 2e11;
            models[i].latency_s = 4e-6, models[i].sigma_log = 0.1, models[i].base_sigma_log = 0.3;
        }
        const struct dl_device was = {.clock_hz = ONE_OF(NAN, 1e9),
                                      .unit_count = upto(3) ? 80 : DL_ABSENT,
                                      .memory_bandwidth_bytes_per_s = 1e12,
                                      .memory_efficiency = ONE_OF(NAN, 0.8),
                                      .kernel_latency_s = ONE_OF(NAN, 5e-6),
                                      .load_w = NAN,
                                      .rates = rates,
                                      .rate_count = 2,
                                      .kernel_models = models,
                                      .kernel_model_count = 3};
        struct dl_device now = was;
        memcpy(changed, rates, sizeof rates), now.rates = changed;
        if (upto(3) == 0) now.clock_hz = 1.25e9;
        if (upto(3) == 0) now.unit_count = 100;
        if (upto(4) == 0) now.memory_bandwidth_bytes_per_s = 2e12;
        if (upto(4) == 0) now.memory_efficiency = 0.4;
        if (upto(4) == 0) now.kernel_latency_s = ONE_OF(NAN, 10e-6);
        if (upto(4) == 0) changed[0].peak_flop_per_s = 30e12;
        if (upto(4) == 0) changed[0].sustained_flop_per_s = 4e12;
        const bool reads_file = upto(5) == 0; /* the models of the name that was */
        if (reads_file) now.kernel_models = NULL, now.kernel_model_count = 0;
        const double units = was.unit_count > 0 && now.unit_count == 100 ? 1.25 : 1,
                     faster = units * times(now.clock_hz, was.clock_hz);
        const double peak = changed[0].peak_flop_per_s > 20e12 ? 30e12 : 10e12 * faster,
                     set = changed[0].sustained_flop_per_s, was_set = rates[0].sustained_flop_per_s;
        const double sustained = same(set, was_set) ? was_set * peak / 10e12 : set;
        const double rate32 = isnan(sustained) ? peak / 10e12
                              : isnan(was_set) ? sustained / 7e12 /* the fit of GEMMs */
                                               : sustained / was_set;
        const double bandwidth = now.memory_bandwidth_bytes_per_s / 1e12 *
                                 times(now.memory_efficiency, was.memory_efficiency),
                     latency = times(now.kernel_latency_s, was.kernel_latency_s);
        assert_int_equal(dl_device_what_if(&was, &now, &arena, &err), DL_OK);
        check_close(now.rates[0].peak_flop_per_s, peak, 1e-12);
        check_close(now.rates[0].sustained_flop_per_s, sustained, 1e-12);
        check_close(now.rates[1].peak_flop_per_s, 80e12 * faster, 1e-12);
        check_nan(now.rates[1].sustained_flop_per_s);
        check_nan(now.load_w);
        assert_int_equal(now.kernel_model_count, 3);
        for (int i = 0; i < 3; i++) {
            const struct dl_kernel_model *m = &now.kernel_models[i];
            const double rate = i == 2 ? faster : rate32;
            const double apart = fabs(rate - 1) + fabs(bandwidth - 1) + fabs(latency - 1),
                         more = apart > 1e-9 ? 0.12 : 0; /* but for rounding */
            check_close(m->rate_flop_per_s, models[i].rate_flop_per_s * rate, 1e-12);
            check_close(m->bandwidth_bytes_per_s, 4e11 * bandwidth, 1e-12);
            check_close(m->transform_bytes_per_s, 3e11 * bandwidth, 1e-12);
            check_close(m->gather_bytes_per_s, 2e11 * bandwidth, 1e-12);
            check_close(m->latency_s, 4e-6 * latency, 1e-12);
            check_close(m->sigma_log, hypot(0.1, more), 1e-12);
            check_close(m->base_sigma_log, hypot(0.3, more), 1e-12);
            check_close(models[i].sigma_log, 0.1, 0); /* those of the file stay */
        }
    }
    dl_arena_free(&arena);
}

/* ---- keys ---- */

static const char NODE[] = "only links inside a node (links.intra) have it",
                  NETWORK[] = "only links between nodes (links.inter) have it",
                  WORDS[] = "it describes; no formula reads it",
                  RECORD[] = "it records how a profile was measured; predictions use what was "
                             "fitted to it";

/* Each key with its reason; with a letter more or less it is another key, which has none.
 * Kept whole: a list of keys. */
static void keys_with_reasons(void **state) {
    (void)state;
    static const struct {
        const char *key, *reason;
        bool path; /* what follows a dot belongs to it */
    } keys[] = {
        {"storage.kind", "its rates say what it does", false},
        {"links.inter.channels", NODE, true},
        {"links.inter.channel_bandwidth_bytes_per_s", NODE, true},
        {"links.inter.channel_bandwidth", NODE, true},
        {"links.inter.edges", NODE, true},
        {"links.inter.cross_bandwidth_bytes_per_s", NODE, true},
        {"links.inter.cross_bandwidth", NODE, true},
        {"links.inter.peer_group", NODE, true},
        {"links.inter.peer_to_peer", NODE, true},
        {"links.inter.domain_nodes", NODE, true},
        {"links.intra.adapters_per_node", NETWORK, true},
        {"links.intra.rdma", NETWORK, true},
        {"links.intra.nccl_bandwidth_bytes_per_s", NETWORK, true},
        {"links.intra.nccl_bandwidth", NETWORK, true},
        {"links.intra.flow_bandwidth_bytes_per_s", NETWORK, true},
        {"links.intra.flow_bandwidth", NETWORK, true},
        {"links.intra.sockets_per_ring", NETWORK, true},
        {"links.intra.gpudirect", NETWORK, true},
        {"links.intra.distance", NETWORK, true},
        {"links.intra.per_message_cpu_s", NETWORK, true},
        {"links.intra.per_message_cpu", NETWORK, true},
        {"name", WORDS, true},
        {"summary", WORDS, true},
        {"aliases", WORDS, true},
        {"source", WORDS, true},
        {"sources", WORDS, true},
        {"comment", WORDS, true},
        {"vendor", WORDS, true},
        {"price_currency", WORDS, true},
        {"price_date", WORDS, true},
        {"assumed", "it makes predictions say that nobody measured the link", true},
        {"measured_on", RECORD, true},
        {"measured_at", RECORD, true},
        {"measurement", RECORD, true},
        {"samples", RECORD, true},
        {"open_s", "workers of the loader open files ahead; its time is not modelled", true},
        {"open", "workers of the loader open files ahead; its time is not modelled", true}};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        char other[120];
        const char *key = keys[i].key, *last = strrchr(key, '.');
        assert_string_equal(dl_what_if_reason(key), keys[i].reason);
        snprintf(other, sizeof other, "%sx", key);
        assert_null(dl_what_if_reason(other));
        if (strcmp(key, "sources") != 0) { /* one letter less is the key above */
            snprintf(other, sizeof other, "%.*s", (int)strlen(key) - 1, key);
            assert_null(dl_what_if_reason(other));
        }
        snprintf(other, sizeof other, "%s.3", key);
        if (keys[i].path) {
            assert_string_equal(dl_what_if_reason(other), keys[i].reason);
        } else {
            assert_null(dl_what_if_reason(other));
        }
        if (last == NULL) { /* inside another member; profiles record at the top alone */
            snprintf(other, sizeof other, "host.%s", key);
            const char *inside = dl_what_if_reason(other);
            if (keys[i].reason == RECORD)
                assert_null(inside);
            else
                assert_string_equal(inside, keys[i].reason);
            snprintf(other, sizeof other, "kernel_models.12.%s", key);
            assert_int_equal(dl_what_if_reason(other) != NULL, keys[i].reason != RECORD);
        } else if (strncmp(key, "links", 5) == 0) { /* of the links that have it, and no links */
            snprintf(other, sizeof other, "links.%s%s",
                     strncmp(key, "links.inter", 11) == 0 ? "intra" : "inter", last);
            assert_null(dl_what_if_reason(other));
            snprintf(other, sizeof other, "%.11sx%s", key, last + 1);
            assert_null(dl_what_if_reason(other));
            snprintf(other, sizeof other, "linkx.%.5s%s", key + 6, last);
            assert_null(dl_what_if_reason(other));
        }
    }
    assert_null(dl_what_if_reason("tdp_w"));
    assert_null(dl_what_if_reason("links.inter"));
    assert_null(dl_what_if_reason("links.inter."));
    assert_null(dl_what_if_reason("links.intra."));
    assert_null(dl_what_if_reason("storage"));
    assert_null(dl_what_if_reason(""));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(links_inside_a_node),
                                       cmocka_unit_test(models_of_a_device),
                                       cmocka_unit_test(keys_with_reasons)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
