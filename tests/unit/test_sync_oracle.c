/* What behaviours send, against a plain account of each: arrays on owners, keys on servers, one
 * node's parameter server, weights on a device, buckets and packs; with counts of one, members that
 * are unknown and sizes at a limit. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/framework/key_owners.h"
#include "tests/gradient_bench.h"

static uint64_t seed = 21;
static struct bench b;

static int64_t upto(int64_t count) { return (int64_t)(check_random(&seed) % (uint64_t)count); }
static bool half(void) { return upto(2) == 0; }
static double of(const double *list, int count) { return list[upto(count)]; }
#define ONE_OF(...)                                                                                \
    of((const double[]){__VA_ARGS__}, (int)(sizeof((const double[]){__VA_ARGS__}) / sizeof(double)))
static double at_least(double x, double y) { return x > y ? x : y; }

/* Up to 8 gradients of few sizes, ready in turn. */
static void start(void) {
    double sizes[8], ready[8], at_s = 1;
    const int count = 1 + (int)upto(8);
    for (int g = 0; g < count; g++) {
        sizes[g] = ONE_OF(4e3, 4e6, 4e6, 8e6, 40e6);
        ready[g] = at_s += ONE_OF(0, 1e-4, 1e-2);
    }
    make(&b, count, sizes, ready);
    b.request.parameter_bytes = b.request.total_bytes;
    b.request.backward_end_s += 1e-3;
    b.fake.plan.nodes = 1;
}

static enum dl_code run_one(const char *behaviour, struct dl_err *err) {
    memset(err, 0, sizeof *err);
    return dl_framework_behaviour_find(behaviour)->synchronize(&b.request, &b.sync, err);
}

/* F-KEY-OWNER.
 * Kept whole: one simulation of one random case. */
static void owners(void **state) {
    (void)state;
    static const char *const kinds[] = {"nvswitch", "nvlink2", "pcie3", "nodes", NULL};
    for (int i = 0; i < 2000; i++) {
        start();
        struct dl_system *s = &b.fake.system;
        const int n = (int)ONE_OF(1, 2, 4, 8, 9, 10, 16), kind = (int)upto(5);
        const bool peer = upto(4) > 0, linked = upto(6) > 0, has_host = upto(6) > 0;
        const double B = ONE_OF(NAN, 16e9, 120e9), H = ONE_OF(NAN, 12e9), bridge = ONE_OF(NAN, 9e9);
        const int64_t group = (int64_t)ONE_OF(0, 1, 4, 8), link = (int64_t)ONE_OF(-1, 1, 2, 32);
        b.fake.plan.devices_per_node = n;
        s->has_intra = linked, s->intra.peer_to_peer = peer, s->intra.kind = kinds[kind];
        s->intra.bandwidth_bytes_per_s = B, s->host.copy_bandwidth_bytes_per_s = H;
        s->intra.cross_bandwidth_bytes_per_s = bridge, s->intra.peer_group = group;
        s->has_host = has_host;
        s->host.devices_per_copy_link = link < 0 ? DL_ABSENT : link;
        struct dl_key_owners got;
        struct dl_err err = {0};
        const enum dl_code code = dl_key_owners_of(&b.request, &got, &err);
        const int most = !linked || !peer ? 0 : kind == 0 ? 1000000 : 8;
        const bool nv = most > 0 && kind<2, staged = n> most + 1;
        if ((most > 0 && isnan(B)) || (staged && (isnan(H) || !has_host))) {
            assert_int_equal(code, DL_ERR_INPUT);
            assert_string_equal(err.message,
                                "system fake lacks links.intra or host.copy_bandwidth_bytes_per_s");
            dl_arena_free(&b.fake.arena);
            continue;
        }
        assert_int_equal(code, DL_OK);
        const int per_slot = nv || !has_host || link < 2 ? 1 : link < n ? (int)link : n;
        assert_int_equal(got.per_slot, per_slot);
        const double over =
            most > 0 && !isnan(bridge) && group > 0 && n > group ? (double)(n - group) / bridge : 0;
        check_close(got.bridge_s_per_byte, over, 1e-12);
        /* largest first to the least loaded; equal ones in the order of registration, which is
         * backwards */
        double load[16] = {0}, slot_s[16] = {0}, bridge_s = 0;
        int owner[8], done[8] = {0};
        for (int k = 0; k < b.request.gradient_count; k++) {
            int next = -1, least = 0;
            for (int g = b.request.gradient_count - 1; g >= 0; g--) {
                if (done[g]) continue;
                if (next < 0 || b.gradients[g].bytes > b.gradients[next].bytes) next = g;
            }
            for (int d = 1; d < n; d++)
                if (load[d] < load[least]) least = d;
            load[least] += b.gradients[next].bytes;
            owner[next] = least, done[next] = 1;
        }
        for (int g = 0; g < b.request.gradient_count; g++) {
            const double bytes = b.gradients[g].bytes, ready_s = b.gradients[g].ready_s;
            const int ways = 1 + (int)upto(2),
                      far = owner[g] >= most && n > most + 1 ? n - 1 - most : 0;
            assert_int_equal(got.owner_of[g], owner[g]);
            assert_int_equal(dl_key_owner_staged(&got, owner[g]), far);
            const double near_s = most > 0 ? (n - 1 - far) / B : 0,
                         copy_s = bytes * (near_s + (far > 0 ? far * 2 / H : 0));
            check_close(dl_key_owner_copy_s(&got, g, bytes), copy_s, 1e-12);
            double end_s = ready_s;
            if (n > 1) {
                double *slot = &slot_s[owner[g] / per_slot];
                *slot = at_least(*slot, ready_s) + ways * copy_s;
                end_s = *slot;
                if (over > 0) {
                    bridge_s = at_least(bridge_s, ready_s) + 0.5 * ways * over * bytes;
                    end_s = at_least(end_s, bridge_s);
                }
                end_s += got.sum_s_per_byte * bytes;
            }
            check_close(dl_key_owner_pass(&got, g, bytes, ways, ready_s), end_s, 1e-12);
        }
        dl_arena_free(&b.fake.arena);
    }
}

/* F-FW-PS on one node: the host adds and updates (5 passes over its memory for each byte), copies
 * of two devices share a link; or the devices keep the variables.
 * Kept whole: one account of one random case. */
static void one_node_of_variables(void **state) {
    (void)state;
    static const char *const places[] = {NULL, "cpu", "gpu"};
    for (int i = 0; i < 1000; i++) {
        start();
        struct dl_system *s = &b.fake.system;
        struct dl_err err;
        const double n = ONE_OF(1, 2, 4), H = ONE_OF(NAN, 12e9), M = ONE_OF(NAN, 200e9, 4e9),
                     replica_s = ONE_OF(0, 1e-4);
        const int place = (int)upto(3);
        const bool linked = upto(4) > 0, cpu = upto(4) == 0;
        b.fake.plan.devices_per_node = (int64_t)n, b.fake.plan.variable_placement = places[place];
        s->has_intra = linked, s->host.copy_bandwidth_bytes_per_s = H;
        s->host.memory_bandwidth_bytes_per_s = M, s->host.pageable_bandwidth_bytes_per_s = NAN;
        b.fake.device.kind = cpu ? DL_DEVICE_CPU : DL_DEVICE_GPU;
        b.fake.framework.sync.replica_s = replica_s;
        b.fake.framework.sync.messages.servers_colocated = true;
        const bool gpu = place == 2, among = gpu && linked;
        double local = 0, sum = 0, apply = 0;
        if (among)
            local = (n - 1) / n / 120e9;
        else if (!cpu) {
            local = (n < 2 ? 1 : 2) / H;
            if (n / M > local) local = n / M;
            if (n > 1) sum = (n + 1) / M;
        }
        if (!gpu) apply = (2 + 3) / M;
        const enum dl_code code = run_one("parameter-server", &err);
        if (isnan(local) || isnan(sum) || isnan(apply)) {
            assert_int_equal(code, DL_ERR_INPUT);
            assert_string_equal(
                err.message,
                "system fake lacks host.copy_bandwidth_bytes_per_s, "
                "host.memory_bandwidth_bytes_per_s or links.inter, which parameter servers need");
            dl_arena_free(&b.fake.arena);
            continue;
        }
        assert_int_equal(code, DL_OK);
        const int count = b.request.gradient_count;
        assert_int_equal(b.sync.message_count, 2 * count);
        assert_true(b.sync.wait_each && b.sync.update_remote);
        assert_string_equal(b.sync.bound, "parameter-server");
        double pushed_s = 0, last_s = 0;
        for (int m = 0; m < 2 * count; m++) {
            const bool push = m < count;
            const int g = push ? m : 2 * count - 1 - m;
            const double bytes = b.gradients[g].bytes, add = push ? sum : 0,
                         pace_s = at_least(local, add) * bytes;
            const struct dl_message *got = &b.sync.messages[m];
            double wait_s = 0;
            if (push) {
                pushed_s += replica_s * n + pace_s;
                last_s = (local + add) * bytes - pace_s + apply * bytes;
            } else if (m == count) {
                const double hidden_s =
                    at_least(b.request.backward_end_s - b.gradients[0].ready_s, pushed_s);
                wait_s = last_s + at_least(0, apply * b.request.total_bytes - hidden_s);
            }
            assert_string_equal(got->name, push ? "push" : "pull");
            assert_string_equal(got->algorithm,
                                among ? "parameter server (gpu)" : "parameter server (host)");
            assert_string_equal(got->limit, "intra");
            assert_string_equal(got->formula, "F-FW-PS");
            assert_string_equal(got->origin, "model");
            assert_true(got->first == g && got->count == 1 && got->returns == !push);
            check_close(got->bytes, bytes, 0);
            check_close(got->bandwidth_s, pace_s, 1e-12);
            check_close(got->latency_s, replica_s * n + wait_s, 1e-9);
            check_close(got->duration_s, replica_s * n + wait_s + pace_s, 1e-9);
            check_close(got->tail_s, (local + add) * bytes - pace_s, 1e-9);
            check_close(got->sigma_log, 0.25, 0);
            if (push) check_close(got->ready_s, b.gradients[g].ready_s, 0);
            if (m == count) check_close(got->ready_s, b.request.backward_end_s, 0);
        }
        dl_arena_free(&b.fake.arena);
    }
}

/* F-FW-CENTRAL on the host. */
static void central_weights(void **state) {
    (void)state;
    for (int i = 0; i < 500; i++) {
        start();
        struct dl_system *s = &b.fake.system;
        struct dl_err err;
        const double n = ONE_OF(1, 2, 4), H = ONE_OF(NAN, 12e9), M = ONE_OF(NAN, 200e9, 4e9),
                     message_s = ONE_OF(0, 1e-5);
        b.fake.plan.devices_per_node = (int64_t)n;
        s->host.copy_bandwidth_bytes_per_s = H, s->host.memory_bandwidth_bytes_per_s = M;
        b.fake.framework.sync.messages.message_s = message_s;
        const double way = at_least((n < 2 ? 1 : 2) / H, n / M), apply = (n + 1 + 3) / M;
        const enum dl_code code = run_one("central-weights", &err);
        if (isnan(H) || isnan(M)) {
            assert_int_equal(code, DL_ERR_INPUT);
            assert_string_equal(err.message,
                                "system fake lacks host.copy_bandwidth_bytes_per_s or "
                                "host.memory_bandwidth_bytes_per_s, which copies through the host "
                                "need");
            dl_arena_free(&b.fake.arena);
            continue;
        }
        assert_int_equal(code, DL_OK);
        const int count = b.request.gradient_count;
        assert_int_equal(b.sync.message_count, 2 * count);
        check_close(b.sync.host_s, 2 * count * n * message_s, 1e-12);
        assert_true(b.sync.wait_each && b.sync.update_remote);
        for (int m = 0; m < 2 * count; m++) {
            const bool push = m < count;
            const int g = push ? m : 2 * count - 1 - m;
            const struct dl_message *got = &b.sync.messages[m];
            assert_string_equal(got->name, push ? "gradient to host" : "weights from host");
            assert_string_equal(got->algorithm, "host copy");
            assert_string_equal(got->formula, "F-COPY-HOST");
            assert_string_equal(got->limit, "intra");
            assert_string_equal(got->origin, "model");
            assert_true(got->first == g && got->count == 1 && got->returns == !push);
            check_close(got->bytes, b.gradients[g].bytes * n, 1e-12);
            check_close(got->duration_s, b.gradients[g].bytes * way, 1e-12);
            check_close(got->bandwidth_s, b.gradients[g].bytes * way, 1e-12);
            check_close(got->ready_s,
                        push         ? b.gradients[g].ready_s
                        : m == count ? b.request.backward_end_s + apply * b.request.total_bytes
                                     : 0,
                        1e-12);
        }
        dl_arena_free(&b.fake.arena);
    }
}

/* F-FW-CENTRAL on the first of n GPUs that all have links of 120 GB/s: each byte goes to or from
 * n - 1 others; the first reads n gradients, writes the sum and updates. */
static void weights_on_the_first_device(void **state) {
    (void)state;
    static const double size = 64e6, ready = 1;
    for (int optimizer = 0; optimizer < DL_OPTIMIZERS; optimizer++) {
        make(&b, 1, &size, &ready);
        b.fake.plan.nodes = 1, b.fake.plan.optimizer = (enum dl_optimizer)optimizer;
        b.fake.framework.sync.messages.weights_on_device = true;
        b.fake.framework.sync.messages.message_s = 1e-5;
        run(&b, "central-weights");
        const double mib = 1 << 20;
        static const double words[] = {3, 5, 7, 11};
        const double apply =
            dl_gradient_sync_device_stream_s(&b.request, (4 + 1 + words[optimizer]) * mib) / mib;
        check_close(b.sync.messages[1].ready_s, 1 + apply * size, 1e-12);
        check_close(b.sync.messages[0].bytes, 3 * size, 1e-12);
        check_close(b.sync.host_s, 2 * 3 * 1e-5, 1e-12);
        assert_string_equal(b.sync.messages[0].name, "gradient to first device");
        assert_string_equal(b.sync.messages[1].name, "weights from first device");
        assert_string_equal(b.sync.messages[0].algorithm, "copies of one device");
        assert_string_equal(b.sync.messages[0].formula, "F-COPY-STAR");
        dl_arena_free(&b.fake.arena);
    }
}

/* Where buckets and packs end. */
static void cuts(void **state) {
    (void)state;
    for (int i = 0; i < 1000; i++) {
        start();
        struct dl_framework *f = &b.fake.framework;
        const double limit = ONE_OF(4e6, 8e6, 25e6), first = ONE_OF(NAN, 4e6, 1e6, 50e6),
                     equal = ONE_OF(0, 0, 1, 2, 3), pack = ONE_OF(0, 4e6, 8e6, 30e6);
        const int tensors = (int)ONE_OF(0, 0, 1, 2, 3);
        const bool overlaps = half();
        f->sync.bucketed.bucket_bytes = limit, f->sync.bucketed.first_bucket_bytes = first;
        f->sync.bucketed.bucket_count = equal, f->sync.overlaps_backward = overlaps;
        f->sync.concatenated.pack_bytes = pack, f->sync.concatenated.pack_tensors = tensors;
        const int count = b.request.gradient_count;
        for (int packs = 0; packs < 2; packs++) {
            run(&b, packs ? "concatenated" : "bucketed");
            double bytes = 0, several = 0;
            int m = 0, from = 0;
            for (int g = 0; g < count; g++) {
                bytes += b.gradients[g].bytes;
                double most = equal > 0                 ? b.request.total_bytes / equal
                              : m == 0 && !isnan(first) ? first
                                                        : limit;
                bool ends = g == count - 1 || bytes >= most;
                if (packs)
                    ends = g == count - 1 || (tensors > 0 ? (count - 1 - g) % tensors == 0
                                                          : pack > 0 && bytes > pack);
                if (!ends) continue;
                const struct dl_message *got = &b.sync.messages[m++];
                assert_int_equal(got->first, from);
                assert_int_equal(got->count, g + 1 - from);
                check_close(got->bytes, bytes, 1e-12);
                check_close(got->ready_s,
                            !packs || overlaps ? b.gradients[g].ready_s : b.request.backward_end_s,
                            0);
                if (g > from) several += bytes;
                from = g + 1, bytes = 0;
            }
            assert_int_equal(b.sync.message_count, m);
            if (packs)
                check_close(b.sync.device_copy_s,
                            dl_gradient_sync_device_stream_s(&b.request, 4 * several), 1e-12);
        }
        dl_arena_free(&b.fake.arena);
    }
}

/* F-FW-KVSTORE-SERVER on one core a node: the fullest of the servers sets the pace. */
static void keys_on_cores(void **state) {
    (void)state;
    for (int i = 0; i < 300; i++) {
        start();
        const int64_t nodes = (int64_t)ONE_OF(1, 2, 3, 5);
        const double big = ONE_OF(1e3, 1e6, 2e6, 1e9);
        const int count = b.request.gradient_count;
        b.fake.plan.nodes = nodes, b.fake.plan.devices_per_node = 1;
        b.fake.device.kind = DL_DEVICE_CPU, b.fake.system.inter.kind = "loopback";
        b.request.library = DL_LIB_MPI;
        b.fake.framework.sync.kvstore.big_key_elements = big;
        b.fake.framework.sync.messages.message_s = 1e-4;
        double load[8] = {0}, most = 0, split = 0;
        for (int g = 0; g < count; g++) {
            double *at = &load[(count - 1 - g) * 9973 % nodes];
            if (b.gradients[g].elements >= big)
                split += b.gradients[g].bytes / (double)nodes;
            else
                *at += b.gradients[g].bytes;
            most = at_least(most, *at);
        }
        const double uneven =
                         nodes > 1 ? (most + split) * (double)nodes / b.request.total_bytes : 1,
                     s_per_byte = dl_gradient_sync_server_s_per_byte(&b.request, uneven);
        run(&b, "kvstore-server");
        assert_int_equal(b.sync.message_count, count);
        assert_string_equal(b.sync.bound, "parameter-server");
        assert_false(b.sync.wait_each || b.sync.update_remote);
        for (int g = 0; g < count; g++) {
            const struct dl_message *got = &b.sync.messages[g];
            check_close(got->duration_s, 1e-4 + 2 * s_per_byte * b.gradients[g].bytes, 1e-12);
            check_close(got->ready_s, b.request.backward_end_s, 0);
            check_close(got->tail_s, 0, 0);
            check_close(got->latency_s, 1e-4, 1e-12);
            assert_string_equal(got->name, "push and pull");
            assert_string_equal(got->algorithm, "keys on servers");
            assert_string_equal(got->limit, "inter");
            assert_string_equal(got->formula, "F-FW-KVSTORE-SERVER");
        }
        dl_arena_free(&b.fake.arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(owners),
        cmocka_unit_test(one_node_of_variables),
        cmocka_unit_test(central_weights),
        cmocka_unit_test(weights_on_the_first_device),
        cmocka_unit_test(cuts),
        cmocka_unit_test(keys_on_cores),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
