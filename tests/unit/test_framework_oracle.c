/* Input, parameter servers, arrays on owners, packs, cycles and shared hosts against their formulas
 * as docs/theory.md states them, written here case by case; random systems with members that are
 * unknown, counts of one and sizes at an edge. Then the tables of kernels per optimizer. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/framework/facts.h"
#include "model/framework/input.h"
#include "model/framework/key_owners.h"
#include "model/framework/servers.h"
#include "model/framework/shared_host.h"
#include "tests/gradient_bench.h"

static uint64_t seed = 20;

static int64_t upto(int64_t count) { return (int64_t)(check_random(&seed) % (uint64_t)count); }
static bool half(void) { return upto(2) == 0; }
static double of(const double *list, int count) { return list[upto(count)]; }
#define ONE_OF(...)                                                                                \
    of((const double[]){__VA_ARGS__}, (int)(sizeof((const double[]){__VA_ARGS__}) / sizeof(double)))

static double at_least(double a, double b) { return a > b ? a : b; }

/* What random_input chose, so that nothing is read back through the model. */
struct input_case {
    double batch, nodes, each, share, copy, pageable, cores, store, total, sample, dataset, tensor,
        decode, workers, feed, memory, replica;
    bool host, storage, whole, all, paged, single, first, ahead, in_step, led, device_decodes;
};

static struct input_case random_input(struct dl_fake *f) {
    const struct input_case c = {.batch = ONE_OF(1, 32, 256),
                                 .nodes = ONE_OF(1, 2, 5),
                                 .each = ONE_OF(1, 2, 4, 8),
                                 .share = ONE_OF(-1, 1, 2, 4),
                                 .copy = ONE_OF(NAN, 12e9, 5e7),
                                 .pageable = ONE_OF(NAN, 6e9),
                                 .cores = ONE_OF(-1, 1, 28),
                                 .store = ONE_OF(NAN, 1e9, 1e7),
                                 .total = ONE_OF(NAN, 1.6e9, 1e7),
                                 .sample = ONE_OF(0, 1e5),
                                 .dataset = ONE_OF(0, 1e6, 1.75e6, 1.76e6),
                                 .tensor = ONE_OF(NAN, 4000, 6e5),
                                 .decode = ONE_OF(0, 0.01, 1e-6),
                                 .workers = ONE_OF(0, 1, 3, 100),
                                 .feed = ONE_OF(NAN, 0, 1e9, 1e6),
                                 .memory = ONE_OF(NAN, 250e9),
                                 .replica = ONE_OF(0, 1, 2, 4),
                                 .host = upto(5) > 0,
                                 .storage = upto(4) > 0,
                                 .whole = half(),
                                 .all = upto(3) == 0,
                                 .paged = half(),
                                 .single = half(),
                                 .first = upto(3) == 0,
                                 .ahead = half(),
                                 .in_step = half(),
                                 .led = half(),
                                 .device_decodes = upto(5) == 0};
    f->plan.batch_per_device_samples = c.batch;
    f->plan.nodes = (int64_t)c.nodes, f->plan.devices_per_node = (int64_t)c.each;
    f->plan.replica_devices = (int64_t)c.replica;
    f->plan.synthetic_input = false, f->plan.first_epoch = c.first;
    f->plan.sample_bytes = c.sample, f->plan.dataset_samples = c.dataset;
    f->plan.decode_s_per_sample = c.decode, f->plan.decode_workers = (int64_t)c.workers;
    f->system.has_host = c.host, f->system.has_storage = c.storage;
    f->system.host.cores = c.cores < 0 ? DL_ABSENT : (int64_t)c.cores;
    f->system.host.devices_per_copy_link = c.share < 0 ? DL_ABSENT : (int64_t)c.share;
    f->system.host.copy_bandwidth_bytes_per_s = c.copy;
    f->system.host.pageable_bandwidth_bytes_per_s = c.pageable;
    f->system.host.memory_bytes = c.memory;
    f->system.storage.read_bytes_per_s = c.store;
    f->system.storage.total_read_bytes_per_s = c.total;
    f->workload.input_bytes_per_sample = c.tensor, f->workload.epoch_samples = 1.75e6;
    f->workload.sample_bytes = 1e5;
    f->framework.host.single_process = c.single;
    f->framework.activations.leader_input = c.led;
    f->framework.input = (struct dl_framework_input){.feed_bytes_per_s = c.feed,
                                                     .prefetch_batches = c.ahead ? 1 : 0,
                                                     .feeds_whole_batch = c.whole,
                                                     .feeds_each_device = c.all,
                                                     .feeds_pageable = c.paged,
                                                     .copies_in_step = c.in_step,
                                                     .decodes_on_device = c.device_decodes};
    return c;
}

/* 250 GB x 0.7 = 175 GB are 1.75 million samples of 100 kB.
 * Kept whole: one formula, stage by stage, of one random case. */
static void input(void **state) {
    (void)state;
    struct dl_fake f;
    fake_make(&f);
    for (int i = 0; i < 3000; i++) {
        const struct input_case c = random_input(&f);
        f.device.kind = upto(6) == 0 ? DL_DEVICE_CPU : DL_DEVICE_GPU;
        const struct dl_input_time t =
            dl_input_compute(&f.system, &f.workload, &f.framework, &f.plan);
        const double tensor = isnan(c.tensor) ? 0 : c.tensor,
                     bandwidth = c.paged && !isnan(c.pageable) ? c.pageable : c.copy;
        double copy_s = 0;
        if (c.host && !isnan(bandwidth) && f.device.kind == DL_DEVICE_GPU) {
            double loads = c.share < 0 ? 1 : c.share < c.each ? c.share : c.each;
            if (c.whole) loads = c.each;
            if (c.all) loads *= c.each;
            copy_s = c.batch * tensor * loads / bandwidth;
        }
        double feed_s = 0;
        if (c.feed > 0)
            feed_s = c.batch * tensor * (c.single || c.whole || c.all ? c.each : 1) / c.feed;
        double processes = c.led && c.replica > 1 ? c.each / c.replica : c.each;
        if (processes < 1) processes = 1;
        const double samples = c.batch * processes,
                     bytes = 1e5 * (c.dataset > 0 ? c.dataset : 1.75e6);
        const bool cached = !c.first && c.host && !isnan(c.memory) && bytes <= 1.75e11 * (1 + 1e-9);
        double storage_s = 0;
        if (!cached && c.storage && !isnan(c.store)) storage_s = samples * 1e5 / c.store;
        if (!cached && c.storage && !isnan(c.total))
            storage_s = at_least(storage_s, samples * 1e5 * c.nodes / c.total);
        double decode_s = 0, cores = c.host && c.cores > 0 ? c.cores : 0,
               workers = c.workers > 0 ? c.workers * processes : cores;
        if (cores > 0 && workers > cores) workers = cores;
        if (c.decode > 0 && workers > 0 && !c.device_decodes)
            decode_s = samples * c.decode / workers;
        check_close(t.copy_s, copy_s, 1e-12);
        check_close(t.storage_s, storage_s, 1e-12);
        check_close(t.decode_s, decode_s, 1e-12);
        check_close(t.transfer_s, 0, 0);
        assert_int_equal(t.cached, cached);
        const char *unknown = !c.storage && !cached ? "the storage of the system"
                              : c.decode > 0        ? NULL
                                                    : "the time to decode a sample";
        if (unknown == NULL)
            assert_null(t.unknown);
        else
            assert_string_equal(t.unknown, unknown);
        const struct {
            const char *name;
            double s;
        } parts[] = {{"decoding", decode_s},
                     {"storage", storage_s},
                     {"host-to-device copy", copy_s},
                     {"data loading", feed_s}};
        const char *slowest = NULL;
        double most_s = 0;
        for (int k = 0; k < 4; k++) {
            if (parts[k].s > most_s) slowest = parts[k].name, most_s = parts[k].s;
        }
        if (slowest == NULL)
            assert_null(t.slowest);
        else
            assert_string_equal(t.slowest, slowest);
        check_close(t.feed_s, feed_s + (c.in_step ? copy_s : 0), 1e-12);
        const double ahead_s = c.in_step ? 0 : copy_s;
        check_close(t.pipeline_s,
                    c.ahead ? at_least(ahead_s, at_least(storage_s, decode_s))
                            : ahead_s + storage_s + decode_s,
                    1e-12);
    }
    dl_arena_free(&f.arena);
}

/* Kernels per tensor and bytes per parameter; SGD, momentum, Adam, LAMB. */
static void optimizers(void **state) {
    (void)state;
    static const struct {
        enum dl_optimizer_kernels how;
        double costs[4][2];
    } rows[] = {{DL_OPTIMIZER_FUSED, {{1, 12}, {1, 20}, {1, 28}, {4, 44}}},
                {DL_OPTIMIZER_APEX, {{0.03, 12}, {0.03, 20}, {0.03, 28}, {0.15, 52}}},
                {DL_OPTIMIZER_TENSORFLOW, {{1, 12}, {2, 24}, {3, 40}, {27, 190}}},
                {DL_OPTIMIZER_TENSORFLOW2, {{1, 12}, {2, 24}, {4, 60}, {27, 190}}},
                {DL_OPTIMIZER_TENSORFLOW_SCRIPT, {{1, 12}, {2, 24}, {19, 168}, {29, 202}}},
                {DL_OPTIMIZER_PYTORCH_LOOP, {{3, 28}, {6, 60}, {10, 96}, {14, 120}}},
                {DL_OPTIMIZER_PYTORCH, {{0.1, 20}, {0.1, 44}, {0.2, 80}, {0.3, 104}}},
                {DL_OPTIMIZER_MXNET, {{0.25, 12}, {0.25, 20}, {1, 28}, {4, 50}}},
                {DL_OPTIMIZER_KERAS, {{3, 24}, {6, 48}, {12, 120}, {27, 190}}},
                {DL_OPTIMIZER_CAFFE, {{3, 32}, {4, 44}, {8, 80}, {14, 120}}},
                {DL_OPTIMIZER_PYTORCH_SCRIPT, {{3, 28}, {6, 60}, {14, 136}, {0.15, 52}}}};
    static const enum dl_optimizer optimizers[] = {DL_SGD, DL_MOMENTUM, DL_ADAM, DL_LAMB};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (int o = 0; o < 4; o++) {
            const struct dl_optimizer_cost cost = dl_optimizer_cost(rows[i].how, optimizers[o]);
            check_close(cost.kernels, rows[i].costs[o][0], 0);
            check_close(cost.bytes, rows[i].costs[o][1], 0);
        }
        for (int p = 0; p < DL_PRECISIONS; p++) {
            for (int policy = 0; policy < DL_MIXED_POLICIES; policy++) {
                const bool mixed = p == DL_MIXED, casts = mixed && policy != DL_MIXED_HALF;
                const bool script = rows[i].how == DL_OPTIMIZER_TENSORFLOW_SCRIPT,
                           apex = rows[i].how == DL_OPTIMIZER_APEX && mixed;
                const struct dl_optimizer_cost sum = dl_accumulation_cost(
                    rows[i].how, (enum dl_precision)p, (enum dl_mixed_policy)policy);
                check_close(sum.kernels,
                            (script ? mixed ? 6 : 3
                             : apex ? 0.03
                                    : 1) +
                                (casts ? 2 : 0),
                            0);
                check_close(sum.bytes,
                            (script ? mixed ? 38 : 24
                             : apex ? 10
                                    : 12) +
                                (casts ? 12 : 0),
                            0);
            }
        }
    }
    for (int policy = 0; policy < DL_MIXED_POLICIES; policy++)
        check_close(dl_mixed_update_bytes((enum dl_mixed_policy)policy),
                    policy == DL_MIXED_HALF ? 12 : 20, 0);
}

/* F-PS-QUEUE: the rates of a worker and of the fullest server.
 * Kept whole: one formula of one random case. */
static void servers(void **state) {
    (void)state;
    static const double size = 4e6, ready = 1;
    struct bench b;
    struct dl_err err;
    make(&b, 1, &size, &ready);
    struct dl_system other = b.fake.system;
    for (int i = 0; i < 3000; i++) {
        const double nodes = ONE_OF(1, 2, 3, 8), devices = ONE_OF(1, 2, 4),
                     asked = ONE_OF(0, 0, 1, 3, 8, 20), per_node = ONE_OF(0, 0.5, 1, 2),
                     B = ONE_OF(12e9, 1e9, NAN), adapters = ONE_OF(-1, 1, 2),
                     M = ONE_OF(2e11, 1e9, NAN), receive = ONE_OF(NAN, 0, 1e9),
                     send = ONE_OF(NAN, 0, 2e9), sum = ONE_OF(NAN, 0, 3e9),
                     message_s = ONE_OF(0, 1e-4);
        const bool each = half(), beside = half(), named = upto(4) == 0;
        struct dl_system *s = &b.fake.system;
        struct dl_framework *fw = &b.fake.framework;
        b.fake.plan.nodes = (int64_t)nodes, b.fake.plan.devices_per_node = (int64_t)devices;
        b.fake.plan.servers = (int64_t)asked;
        s->inter.bandwidth_bytes_per_s = B, s->host.memory_bandwidth_bytes_per_s = M;
        s->inter.adapters_per_node = adapters < 0 ? DL_ABSENT : (int64_t)adapters;
        fw->sync.messages.servers_per_node = per_node, fw->sync.messages.worker_per_device = each,
        fw->sync.messages.servers_colocated = beside;
        fw->sync.messages.message_copy_bytes_per_s = receive,
        fw->sync.messages.send_bytes_per_s = send;
        fw->sync.messages.sum_bytes_per_s = sum, fw->sync.messages.message_s = message_s;
        b.fake.plan.server_nodes = named ? &other : NULL;
        const bool near = beside && !named;
        assert_int_equal(dl_servers_colocated(&b.fake.framework, &b.fake.plan), near);
        const double count = asked > 0 ? asked : nodes * (per_node >= 1 ? per_node : 1);
        assert_int_equal(dl_server_count(&b.fake.framework, &b.fake.plan), (int64_t)count);
        const bool leaves = nodes > 1 || !near;
        const double M_there = named ? 200e9 : M, B_there = named ? 12e9 : B,
                     a = adapters < 0 ? 1 : adapters, a_there = named ? 1 : a;
        struct dl_servers got;
        memset(&err, 0, sizeof err);
        const enum dl_code code = dl_servers_of(&b.request, &got, &err);
        if (isnan(M_there) || (leaves && (isnan(B) || isnan(B_there)))) {
            assert_int_equal(code, DL_ERR_INPUT);
            assert_string_equal(err.message,
                                "system fake lacks links.inter or "
                                "host.memory_bandwidth_bytes_per_s, which parameter servers need");
            continue;
        }
        assert_int_equal(code, DL_OK);
        const double k = each ? devices : 1, W = nodes * k,
                     places = near ? fmin(nodes, count) : count, fullest = ceil(count / places);
        const double r = near && count >= nodes ? (nodes - 1) / nodes : 1, R = near ? W - k : W;
        const double receive_s = receive > 0 ? 1 / receive : 0, send_s = send > 0 ? 1 / send : 0,
                     sum_s = sum > 0 ? 1 / sum : 0, wire_s = leaves ? 1 / (B * a) : 0,
                     there_s = leaves ? 1 / (B_there * a_there) : 0;
        assert_int_equal(got.count, (int)count);
        check_close(got.workers, W, 0);
        check_close(got.workers_per_node, k, 0);
        check_close(got.worker_push_s_per_byte, at_least(r * k * wire_s, send_s), 1e-12);
        check_close(got.worker_pull_s_per_byte, at_least(r * k * wire_s, receive_s), 1e-12);
        check_close(got.server_push_s_per_byte,
                    at_least(at_least(R * fullest * there_s, (W + 1) * fullest / M_there),
                             W * at_least(receive_s, sum_s)),
                    1e-12);
        check_close(got.server_pull_s_per_byte, at_least(R * fullest * there_s, W * send_s), 1e-12);
        check_close(got.worker_message_s, message_s, 0);
        check_close(got.server_message_s, W * message_s, 1e-12);
    }
    dl_arena_free(&b.fake.arena);
}

/* A simulation: every message passes the worker's thread, then that of its server or of all. */
static void queues(void **state) {
    (void)state;
    struct dl_fake f;
    struct dl_err err;
    fake_make(&f);
    for (int i = 0; i < 500; i++) {
        enum { MOST = 4 };
        const struct dl_servers servers = {.count = 1 + (int)upto(MOST),
                                           .worker_push_s_per_byte = ONE_OF(1, 2),
                                           .worker_pull_s_per_byte = ONE_OF(1, 3),
                                           .server_push_s_per_byte = ONE_OF(0.5, 5),
                                           .server_pull_s_per_byte = ONE_OF(0.5, 7),
                                           .worker_message_s = ONE_OF(0, 0.25),
                                           .server_message_s = ONE_OF(0, 0.125)};
        const bool pull = half();
        struct dl_server_queue queue;
        double worker_s = 0, server_s[MOST] = {0};
        assert_int_equal(dl_server_queue_init(&servers, pull, &f.arena, &queue, &err), DL_OK);
        for (int m = 0; m < 6; m++) {
            const int to = (int)upto(servers.count + 1) - 1; /* -1: DL_SERVER_ALL */
            const double bytes = ONE_OF(1, 4, 10), ready_s = ONE_OF(0, 3, 20),
                         n = to < 0 ? servers.count : 1;
            double start_s = ready_s, got_start_s, got_sent_s, end_s;
            if (pull && to >= 0) start_s = at_least(start_s, server_s[to]);
            const double asked_s = start_s;
            start_s = at_least(start_s, worker_s);
            worker_s =
                start_s + n * servers.worker_message_s +
                bytes * (pull ? servers.worker_pull_s_per_byte : servers.worker_push_s_per_byte);
            end_s = worker_s;
            for (int s = 0; s < servers.count; s++) {
                if (to >= 0 && s != to) continue;
                server_s[s] =
                    at_least(pull ? asked_s : start_s, server_s[s]) + servers.server_message_s +
                    bytes / n *
                        (pull ? servers.server_pull_s_per_byte : servers.server_push_s_per_byte);
                end_s = at_least(end_s, server_s[s]);
            }
            check_close(dl_server_queue_pass(&queue, to, bytes, ready_s, &got_start_s, &got_sent_s),
                        end_s, 1e-12);
            check_close(got_start_s, start_s, 1e-12);
            check_close(got_sent_s, worker_s, 1e-12);
        }
        dl_arena_free(&f.arena);
    }
}

/* Variables in the order of registration, the last gradient first. */
static void assignments(void **state) {
    (void)state;
    for (int i = 0; i < 500; i++) {
        double sizes[16], ready[16];
        const int count = 1 + (int)upto(16);
        for (int g = 0; g < count; g++) sizes[g] = ONE_OF(4, 8, 8, 40, 400), ready[g] = g;
        struct bench b;
        make(&b, count, sizes, ready);
        const struct dl_servers servers = {.count = 1 + (int)upto(12)};
        const double split = ONE_OF(NAN, 2, 10, 100);
        const int how = (int)upto(3);
        static const int ways[] = {DL_SERVERS_ROUND_ROBIN, DL_SERVERS_LEAST_LOADED,
                                   DL_SERVERS_HASHED};
        b.fake.framework.sync.messages.server_assignment = ways[how];
        const int *got = dl_servers_assign(&b.request, &servers, split);
        double load[12] = {0};
        for (int k = 0; k < count; k++) {
            const int g = count - 1 - k;
            int want = k % servers.count;
            if (ways[how] == DL_SERVERS_HASHED) want = k * 9973 % servers.count;
            if (ways[how] == DL_SERVERS_LEAST_LOADED) {
                want = 0;
                for (int s = 1; s < servers.count; s++)
                    if (load[s] < load[want]) want = s;
            }
            if (sizes[g] / 4 >= split)
                want = DL_SERVER_ALL;
            else
                load[want] += sizes[g];
            assert_int_equal(got[g], want);
        }
        dl_arena_free(&b.fake.arena);
    }
}

/* F-SHARED-HOST.
 * Kept whole: one formula of one random case. */
static void shared_hosts(void **state) {
    (void)state;
    struct dl_fake f;
    fake_make(&f);
    for (int i = 0; i < 3000; i++) {
        const double cores = ONE_OF(-1, 1, 4, 8), host = ONE_OF(-1, 1, 4, 8, 32),
                     together = ONE_OF(NAN, 0.5, 1, 1.5), devices = ONE_OF(1, 2, 4, 16),
                     nodes = ONE_OF(1, 2), cache = ONE_OF(NAN, 32e6), B = ONE_OF(NAN, 2e11, 1e12);
        const bool cpu = upto(4) > 0, has_host = upto(4) > 0, shares = half();
        f.device.kind = cpu ? DL_DEVICE_CPU : DL_DEVICE_GPU;
        f.device.unit_count = cores < 0 ? DL_ABSENT : (int64_t)cores;
        f.device.together_ratio = together, f.device.l2_bytes = cache;
        f.device.memory_bandwidth_bytes_per_s = 1e11, f.device.memory_efficiency = 0.8;
        f.system.has_host = has_host, f.system.nodes_share_host = shares;
        f.system.host.cores = host < 0 ? DL_ABSENT : (int64_t)host;
        f.system.host.memory_bandwidth_bytes_per_s = B;
        f.plan.nodes = (int64_t)nodes, f.plan.devices_per_node = (int64_t)devices;
        const double k = devices * (shares ? nodes : 1);
        double turns = 1, arithmetic = 1, memory = 1, kept = INFINITY;
        if (cpu && has_host && cores >= 1 && host >= cores) {
            const double K = host / cores, busy = k < K ? k : K;
            turns = k > K ? k / K : 1;
            kept = isnan(cache) ? 0 : cache / busy;
            if (together >= 1 && busy > 1) {
                arithmetic = 1 + (together - 1) * (busy - 1) / (K - 1);
                if (busy * 8e10 > B) memory = busy * 8e10 / B;
            }
        }
        const struct dl_shared_host got = dl_shared_host(&f.system, &f.plan);
        check_close(got.device_count, k, 0);
        check_close(got.turns_ratio, turns, 1e-12);
        check_close(got.arithmetic_ratio, arithmetic, 1e-12);
        check_close(got.memory_ratio, memory, 1e-12);
        check_close(got.cache_bytes, kept, 1e-12);
        assert_int_equal(dl_shared_host_matters(&f.system), cpu && (shares || together >= 1));
        const bool loops = half(), linked = upto(4) > 0;
        f.system.has_inter = linked, f.system.inter.kind = loops ? "loopback" : "infiniband";
        if (upto(8) == 0) f.system.inter.kind = NULL;
        const bool carries = cpu && linked && f.system.inter.kind != NULL && loops;
        assert_int_equal(dl_shared_host_carries(&f.system), carries);
        check_close(dl_shared_host_stop_frac(&f.system, &f.plan),
                    nodes < 2 || !carries ? 0
                    : cores >= 1          ? 1 / cores
                                          : 1,
                    1e-12);
        check_close(dl_shared_host_poll_ratio(&f.system, &f.plan, 4e-3),
                    cpu && nodes * devices > 1 ? 1 + 0.5 / (cores >= 1 ? cores : 1) : 1, 1e-12);
        const double own = ONE_OF(0, 1, 2), knl = ONE_OF(0, 3);
        f.device.architecture = half() ? "knl" : half() ? "skylake" : NULL;
        f.framework.sync.endpoint_cores = own, f.framework.sync.knl_endpoint_cores = knl;
        const bool phi = f.device.architecture != NULL && f.device.architecture[0] == 'k';
        const double taken = phi && knl > 0 ? knl : own;
        check_close(dl_shared_host_endpoint_ratio(&f.system, &f.framework, &f.plan),
                    cpu && nodes * devices > 1 && cores > taken ? cores / (cores - taken) : 1,
                    1e-12);
    }
    dl_arena_free(&f.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(input),  cmocka_unit_test(optimizers),  cmocka_unit_test(servers),
        cmocka_unit_test(queues), cmocka_unit_test(assignments), cmocka_unit_test(shared_hosts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
