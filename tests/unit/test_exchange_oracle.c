/* What one exchange of gradients costs, the cheapest way to move them, times that a profiler
 * measured, and what a framework's file leaves to another: each against an account written here
 * from docs/theory.md; random plans, systems and measurements. F-COPY-HOST, F-CAST,
 * F-HIERARCHICAL-SYNC, F-FW-IDEAL, F-LAYER-TIMES, F-KERNEL-FACTS. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/framework/layer_times.h"
#include "model/framework/shared_host.h"
#include "tests/gradient_bench.h"

static uint64_t seed = 23;
static struct bench b;

static int upto(int count) { return (int)(check_random(&seed) % (uint64_t)count); }
static bool half(void) { return upto(2) == 0; }
static double of(const double *list, int count) { return list[upto(count)]; }
#define ONE_OF(...)                                                                                \
    of((const double[]){__VA_ARGS__}, (int)(sizeof((const double[]){__VA_ARGS__}) / sizeof(double)))
static double at_least(double x, double y) { return x > y ? x : y; }
static double at_most(double x, double y) { return x < y ? x : y; }

static void start(void) {
    const double sizes[] = {4e6, 8e6, 4e3}, ready[] = {0.01, 0.011, 0.02};
    make(&b, 3, sizes, ready);
    b.request.parameter_bytes = b.request.total_bytes;
    b.request.backward_end_s = 0.021;
}

/* Seconds that all devices of a node take to copy `bytes` each. */
static double copied_s(double bytes, bool pinned) {
    const struct dl_host *h = &b.fake.system.host;
    const double each = (double)b.fake.plan.devices_per_node,
                 link = h->devices_per_copy_link < 1 ? 1 : (double)h->devices_per_copy_link;
    double rate = pinned ? h->copy_bandwidth_bytes_per_s : h->pageable_bandwidth_bytes_per_s;
    if (isnan(rate)) rate = h->copy_bandwidth_bytes_per_s;
    if (!b.fake.system.has_host || isnan(rate)) return NAN;
    double s = bytes * at_most(link, each) / rate;
    if (!isnan(h->memory_bandwidth_bytes_per_s))
        s = at_least(s, bytes * each / h->memory_bandwidth_bytes_per_s);
    return s;
}

struct parts {
    double time_s, latency_s, bandwidth_s, steps;
    const char *algorithm;
    bool failed, unknown;
};

/* One collective of groups of `dp` ranks, `stride` apart, in a job of nodes x each. */
static struct parts alone(enum dl_library library, enum dl_collective_op op, double bytes,
                          int64_t nodes, int64_t each, int64_t dp, int64_t stride, bool on_device) {
    const int64_t groups = dp > 0 ? nodes * each / dp : 1;
    const struct dl_collective_request wanted = {
        .op = op,
        .library = library,
        .bytes = bytes,
        .nodes = nodes,
        .ranks_per_node = each,
        .algorithm = library == DL_LIB_COPY ? b.fake.framework.sync.copy_pattern : NULL,
        .flows_per_adapter = at_least(1, b.request.flows_per_adapter),
        .group_size = groups > 1 ? dp : 0,
        .group_stride = stride,
        .concurrent = groups};
    struct dl_collective_time t;
    struct dl_err err = {0};
    struct parts p = {.failed = dl_collective_time(&b.fake.system, &wanted, &t, &err) != DL_OK};
    if (p.failed) return p;
    double staging_s = 0;
    if ((library == DL_LIB_MPI || library == DL_LIB_GLOO) && !on_device &&
        b.fake.device.kind == DL_DEVICE_GPU) {
        staging_s = 2 * copied_s(bytes, true);
    }
    struct dl_plan plan = b.fake.plan;
    plan.nodes = nodes, plan.devices_per_node = each;
    const double slices = dl_shared_host(&b.fake.system, &plan).turns_ratio,
                 launch_s = b.fake.framework.sync.collective_launch_s;
    p.unknown = isnan(staging_s);
    p.time_s = slices * t.time_s + staging_s + launch_s;
    p.latency_s = slices * t.latency_s + launch_s;
    p.bandwidth_s = slices * t.bandwidth_s + staging_s;
    p.steps = t.steps, p.algorithm = t.algorithm;
    return p;
}

static void compare(const struct dl_message *m, const struct parts *p, double bytes) {
    check_close(m->duration_s, p->time_s, 1e-12);
    check_close(m->latency_s, p->latency_s, 1e-12);
    check_close(m->bandwidth_s, p->bandwidth_s, 1e-12);
    check_close(m->steps, p->steps, 1e-12);
    check_close(m->bytes, bytes, 0);
    assert_true(m->returns);
}

/* Kept whole: one account of one random exchange. */
static void exchanges(void **state) {
    (void)state;
    static const enum dl_library libraries[] = {DL_LIB_NCCL, DL_LIB_MPI, DL_LIB_GLOO, DL_LIB_COPY};
    static const enum dl_collective_op ops[] = {DL_COLL_ALL_REDUCE, DL_COLL_ALL_GATHER,
                                                DL_COLL_BROADCAST};
    int levels = 0, refused = 0;
    for (int n = 0; n < 3000; n++) {
        start();
        struct dl_system *s = &b.fake.system;
        struct dl_plan *plan = &b.fake.plan;
        struct dl_sync_policy *sync = &b.fake.framework.sync;
        b.request.library = libraries[upto(4)];
        plan->nodes = b.request.library == DL_LIB_COPY ? 1 : (int64_t)ONE_OF(1, 2, 4);
        plan->devices_per_node = (int64_t)ONE_OF(1, 2, 4);
        plan->tp = upto(3), plan->sp = upto(4) == 0 ? 2 : upto(2);
        plan->pp = upto(2), plan->ep = upto(2);
        const int64_t inner = (plan->tp > 1 ? plan->tp : 1) * (plan->sp > 1 ? plan->sp : 1),
                      ranks = plan->nodes * plan->devices_per_node;
        plan->dp = ranks % inner == 0 && (inner > 1 || half()) ? ranks / inner : 0;
        sync->hierarchical = upto(3) > 0, sync->collective_launch_s = ONE_OF(0, 2e-5);
        sync->copy_pattern = half() ? NULL : "ring";
        b.request.flows_per_adapter = ONE_OF(0, 1, 2);
        b.fake.device.kind = upto(4) == 0 ? DL_DEVICE_CPU : DL_DEVICE_GPU;
        b.fake.device.unit_count = (int64_t)ONE_OF(7, 14, 28);
        s->nodes_share_host = upto(4) == 0, s->has_host = upto(8) > 0;
        s->host.copy_bandwidth_bytes_per_s = ONE_OF(12e9, 12e9, NAN);
        const int64_t link = (int64_t)ONE_OF(0, 1, 2, 8);
        s->host.devices_per_copy_link = link < 1 ? DL_ABSENT : link;
        s->host.memory_bandwidth_bytes_per_s = ONE_OF(200e9, 20e9, NAN);
        const enum dl_collective_op op = ops[upto(3)];
        const double bytes = ONE_OF(1e3, 1e6, 1e8);
        struct dl_message m = {.name = NULL};
        struct dl_err err = {0};
        const enum dl_code code = dl_gradient_sync_collective(&b.request, op, bytes, &m, &err);
        struct parts p;
        const bool two = sync->hierarchical && op == DL_COLL_ALL_REDUCE && plan->nodes > 1 &&
                         plan->devices_per_node > 1 &&
                         plan->tp * plan->pp * plan->sp * plan->ep < 2;
        if (two) {
            const double each = (double)plan->devices_per_node;
            const int64_t nodes = plan->nodes, devices = plan->devices_per_node,
                          near = plan->tp > 1 ? plan->tp : 1, far = plan->sp > 1 ? plan->sp : 1;
            const struct parts scatter = alone(b.request.library, DL_COLL_REDUCE_SCATTER, bytes, 1,
                                               devices, devices, near * far, false),
                               gather = alone(b.request.library, DL_COLL_ALL_GATHER, bytes, 1,
                                              devices, devices, near * far, false);
            p = alone(DL_LIB_MPI, DL_COLL_ALL_REDUCE, bytes / each, nodes, devices, nodes,
                      devices * far, false);
            p.failed = p.failed || scatter.failed || gather.failed;
            p.unknown = p.unknown || scatter.unknown || gather.unknown;
            p.time_s += scatter.time_s + gather.time_s;
            p.latency_s += scatter.latency_s + gather.latency_s;
            p.bandwidth_s += scatter.bandwidth_s + gather.bandwidth_s;
            p.steps += scatter.steps + gather.steps;
            levels++;
        } else {
            p = alone(b.request.library, op, bytes, plan->nodes, plan->devices_per_node, plan->dp,
                      inner, false);
        }
        if (p.failed || p.unknown) {
            assert_int_not_equal(code, DL_OK);
            if (!p.failed) {
                char text[128];
                snprintf(text, sizeof text,
                         "system fake lacks host.copy_bandwidth_bytes_per_s, which %s needs",
                         b.request.library == DL_LIB_GLOO ? "gloo" : "mpi");
                if (!two) assert_string_equal(err.message, text);
                refused++;
            }
        } else {
            assert_int_equal(code, DL_OK);
            compare(&m, &p, bytes);
            assert_string_equal(m.formula, two ? "F-HIERARCHICAL-SYNC" : m.formula);
            assert_string_equal(m.algorithm, two ? "hierarchical" : p.algorithm);
            assert_string_equal(m.name, dl_collective_op_names[op]);
        }
        check_close(dl_gradient_sync_host_copy_s(&b.request, bytes, false), copied_s(bytes, false),
                    1e-12);
        dl_arena_free(&b.fake.arena);
    }
    assert_true(levels > 50 && refused > 50);
}

/* Passes over the device's memory: half read, half written; casts of gradients to `width` bytes and
 * back. */
static void streams(void **state) {
    (void)state;
    for (int n = 0; n < 500; n++) {
        start();
        b.fake.device.kind = half() ? DL_DEVICE_CPU : DL_DEVICE_GPU;
        b.fake.device.unit_count = (int64_t)ONE_OF(7, 28);
        b.fake.device.together_ratio = ONE_OF(NAN, 1.5);
        b.fake.plan.precision = half() ? DL_FP32 : DL_MIXED;
        const double bytes = ONE_OF(-1, 0, 1, 1e6), width = ONE_OF(1, 2, 4);
        b.fake.framework.sync.gradient_bytes = width;
        double expected_s = 0;
        struct dl_kernel_time t;
        const struct dl_shared_host host = dl_shared_host(&b.fake.system, &b.fake.plan);
        const double slower = host.memory_ratio * host.turns_ratio;
        if (bytes > 0) {
            const struct dl_kernel k = dl_kernel_stream(DL_UPDATE, 0, bytes / 8, bytes / 8);
            dl_kernel_time(&b.fake.device, DL_FP32, &k, &t);
            expected_s = t.time_s * slower;
        }
        check_close(dl_gradient_sync_device_stream_s(&b.request, bytes), expected_s, 1e-12);
        expected_s = 0;
        if (width < 4 && b.fake.plan.precision == DL_FP32) {
            const double all = (width == 1 ? 2.5 : 3) * b.request.parameter_bytes;
            const struct dl_kernel k = dl_kernel_stream(DL_UPDATE, 0, all / 8, all / 8);
            dl_kernel_time(&b.fake.device, DL_FP32, &k, &t);
            expected_s = t.time_s * slower;
        }
        check_close(dl_gradient_sync_cast_s(&b.request), expected_s, 1e-12);
        dl_arena_free(&b.fake.arena);
    }
}

/* F-PS-LINK: what a byte takes to servers on the workers' nodes; on cores that carry all messages
 * half of the library's push and pull. */
static void links_of_servers(void **state) {
    (void)state;
    for (int n = 0; n < 500; n++) {
        start();
        struct dl_link *inter = &b.fake.system.inter;
        const bool carried = half();
        const double nodes = ONE_OF(1, 2, 5), uneven = ONE_OF(0.5, 1, 2.5),
                     rate = ONE_OF(12e9, NAN), copies = ONE_OF(NAN, 1e9, 1e11);
        const int adapters = upto(3);
        b.fake.plan.nodes = (int64_t)nodes, b.fake.plan.devices_per_node = 1;
        b.fake.framework.sync.messages.message_copy_bytes_per_s = copies;
        inter->adapters_per_node = adapters > 0 ? adapters : DL_ABSENT;
        b.fake.system.has_inter = carried || upto(4) > 0;
        double expected = 0;
        if (carried) {
            b.fake.device.kind = DL_DEVICE_CPU, inter->kind = "loopback";
            b.fake.device.unit_count = 28;
            b.fake.system.nodes_share_host = half();
            b.request.library = DL_LIB_MPI, b.request.total_bytes = ONE_OF(0, 4e6);
            const double bytes = b.request.total_bytes > 0 ? 4e6 : 1;
            const struct dl_collective_request two = {.op = DL_COLL_ALL_REDUCE,
                                                      .library = DL_LIB_MPI,
                                                      .bytes = bytes,
                                                      .nodes = nodes > 1 ? (int64_t)nodes : 2,
                                                      .ranks_per_node = 1};
            struct dl_collective_time t;
            assert_int_equal(dl_collective_time(&b.fake.system, &two, &t, NULL), DL_OK);
            /* each node's 28 cores of the one host of 28 */
            const double turns = b.fake.system.nodes_share_host ? nodes : 1;
            expected = turns * t.time_s / (2 * bytes) * (1 + at_least(1, uneven)) / 2;
        } else {
            double bandwidth = rate * (adapters > 0 ? adapters : 1);
            inter->bandwidth_bytes_per_s = rate;
            if (copies < bandwidth) bandwidth = copies;
            expected = (nodes - 1) / nodes * at_least(1, uneven) / bandwidth;
            if (nodes > 1 && !b.fake.system.has_inter) expected = NAN;
            if (nodes < 2) expected = 0;
        }
        check_close(dl_gradient_sync_server_s_per_byte(&b.request, uneven), expected, 1e-12);
        dl_arena_free(&b.fake.arena);
    }
}

/* Copies out and back are left out for the library that was measured on device memory alone. */
static void device_memory(void **state) {
    (void)state;
    struct dl_coll_measured sets[2] = {
        {.library = "gloo", .buffers = "device", .operation = "none"},
        {.library = "mpi", .operation = "none"}};
    for (int way = 0; way < 4; way++) {
        start();
        sets[1].buffers = way == 0 ? NULL : way == 1 ? "host" : "device";
        b.fake.system.collectives = sets;
        b.fake.system.collective_count = way == 3 ? 1 : 2;
        b.request.library = DL_LIB_MPI;
        struct dl_message m = {.name = NULL};
        struct dl_err err = {0};
        assert_int_equal(dl_gradient_sync_collective(&b.request, DL_COLL_BROADCAST, 1e8, &m, &err),
                         DL_OK);
        const struct parts p = alone(DL_LIB_MPI, DL_COLL_BROADCAST, 1e8, 2, 4, 0, 1, way == 2);
        compare(&m, &p, 1e8);
        dl_arena_free(&b.fake.arena);
    }
}

/* F-FW-IDEAL: the least time per byte over halves of the whole and libraries, or servers; then each
 * gradient is usable when those of the layers before it could have been moved.
 * Kept whole: one account of one random case. */
static void cheapest(void **state) {
    (void)state;
    static const enum dl_library hosts[] = {DL_LIB_MPI, DL_LIB_GLOO, DL_LIB_GRPC, DL_LIB_MLSL};
    int served = 0, others = 0;
    for (int n = 0; n < 800; n++) {
        start();
        struct dl_system *s = &b.fake.system;
        const bool cpu = half();
        b.fake.device.kind = cpu ? DL_DEVICE_CPU : DL_DEVICE_GPU;
        b.request.library = !cpu ? DL_LIB_NCCL : half() ? DL_LIB_GLOO : DL_LIB_GRPC;
        b.fake.plan.nodes = 1 + upto(2), b.fake.plan.devices_per_node = 2 + 2 * upto(2);
        b.fake.plan.library = upto(4) == 0 ? "mpi" : NULL;
        s->intra.peer_to_peer = half(), s->has_intra = upto(4) > 0 || !cpu;
        s->host.memory_bandwidth_bytes_per_s = ONE_OF(200e9, 1e9, 1e13);
        s->host.copy_bandwidth_bytes_per_s = ONE_OF(12e9, 1e9, 1e13);
        s->intra.bandwidth_bytes_per_s = ONE_OF(120e9, 1e9, 1e13);
        b.fake.framework.sync.messages.message_copy_bytes_per_s = ONE_OF(NAN, 1e6);
        b.request.total_bytes = ONE_OF(12.004e6, 3, 1e9);
        const double devices = (double)b.fake.plan.devices_per_node;
        double least = INFINITY, at = 0;
        enum dl_library own = b.request.library, found = own;
        for (int l = -1; l < (cpu && b.fake.plan.library == NULL ? 4 : 0); l++) {
            b.request.library = l < 0 ? own : hosts[l];
            double bytes = b.request.total_bytes;
            for (int i = 0; i < 12 && bytes > 1; i++, bytes /= 2) {
                struct dl_message m;
                struct dl_err err = {0};
                assert_int_equal(
                    dl_gradient_sync_collective(&b.request, DL_COLL_ALL_REDUCE, bytes, &m, &err),
                    DL_OK);
                if (m.duration_s / bytes < least * (1 - 1e-12))
                    least = m.duration_s / bytes, at = bytes, found = b.request.library;
            }
        }
        b.request.library = own;
        double servers = dl_gradient_sync_server_s_per_byte(&b.request, 1);
        if (b.fake.plan.nodes == 1) {
            servers = (devices + 1) / s->host.memory_bandwidth_bytes_per_s;
            if (!cpu) servers = at_least(servers, copied_s(1, true));
            if (s->has_intra && s->intra.peer_to_peer)
                servers =
                    at_most(servers, 2 * (devices - 1) / devices / s->intra.bandwidth_bytes_per_s);
        }
        const bool serve = b.fake.plan.library == NULL && servers < least;
        struct dl_message way;
        struct dl_err err = {0};
        assert_int_equal(dl_gradient_sync_cheapest(&b.request, &way, &err), DL_OK);
        check_close(way.duration_s / way.bytes, serve ? servers : least, 1e-9);
        check_close(way.bytes, at, 1e-12);
        if (serve) {
            assert_string_equal(way.algorithm, "servers");
            assert_string_equal(way.formula, "F-PS-LINK");
            assert_string_equal(way.limit, b.fake.plan.nodes > 1 ? "inter" : "intra");
            assert_string_equal(way.origin, "model");
            assert_null(way.protocol);
            check_close(way.latency_s, 0, 0);
            check_close(way.bandwidth_s, way.duration_s, 0);
        }
        served += serve, others += !serve && found != own;
        run(&b, "ideal");
        assert_int_equal(b.sync.message_count, 3);
        assert_true(b.sync.wait_each);
        double end_s = 0, ends_s[3], usable_s = 0, bytes = 0;
        for (int g = 0; g < 3; g++) {
            const double own_s = b.gradients[g].bytes * (serve ? servers : least);
            const struct dl_message *m = &b.sync.messages[g];
            check_close(m->duration_s, own_s, 1e-9);
            check_close(m->latency_s + m->bandwidth_s, own_s, 1e-9);
            check_close(m->bytes, b.gradients[g].bytes, 0);
            check_close(m->ready_s, b.gradients[g].ready_s, 0);
            assert_true(m->first == g && m->count == 1);
            ends_s[g] = end_s = at_least(end_s, b.gradients[g].ready_s) + own_s;
        }
        for (int g = 2; g >= 0; g--) {
            bytes += b.gradients[g].bytes;
            usable_s =
                at_least(usable_s, b.gradients[g].ready_s + bytes * (serve ? servers : least));
            check_close(b.sync.messages[g].tail_s + ends_s[g], usable_s, 1e-9);
        }
        dl_arena_free(&b.fake.arena);
    }
    assert_true(served > 50 && others > 30);
}

enum { MOST_BATCHES = 4, NAMES = 3 };

/* F-LAYER-TIMES. `pass`: 0 forward, 1 backward, 2 the update. *outside: beyond the measurements. */
static double read_apart(const struct dl_layer_times *t, int name, int pass, double batch,
                         double lowest_s, double highest_s, double here_s, bool *outside) {
    double below = NAN, below_s = NAN, above = NAN, above_s = NAN;
    *outside = false;
    for (int i = 0; i < t->batch_count; i++) {
        const struct dl_layer_batch *at = &t->batches[i];
        const double s = pass == 2   ? at->update_s
                         : pass == 1 ? at->layers[name].backward_s
                                     : at->layers[name].forward_s;
        if (isnan(s)) continue;
        if (at->batch_samples <= batch) below = at->batch_samples, below_s = s;
        if (at->batch_samples >= batch && isnan(above)) above = at->batch_samples, above_s = s;
    }
    if (isnan(below) && isnan(above)) return NAN;
    if (pass == 2) return isnan(below) ? above_s : below_s;
    if (below == above) return below_s;
    if (!isnan(below) && !isnan(above)) {
        if (below_s == 0 || above_s == 0) return at_least(below_s, above_s);
        const double exponent = log(above_s / below_s) / log(above / below);
        return below_s * pow(batch / below, exponent);
    }
    *outside = true;
    if (!isnan(below))
        return below_s * (highest_s > 0 ? here_s / highest_s
                                        : batch / t->batches[t->batch_count - 1].batch_samples);
    return above_s * (lowest_s > 0 ? here_s / lowest_s : batch / t->batches[0].batch_samples);
}

static struct dl_pass_cost some_cost(void) {
    const double s = ONE_OF(0, 0.25, 0.5, 2);
    return (struct dl_pass_cost){.time_s = s,
                                 .by_limit_s = {0.25 * s, 0.5 * s, 0.25 * s},
                                 .origin_device = "another",
                                 .launches = 3,
                                 .extrapolated = half()};
}

static void check_reading(const struct dl_pass_cost *is, const struct dl_pass_cost *was,
                          double read_s, bool outside) {
    const bool known = !isnan(read_s);
    const double s = known ? read_s : was->time_s;
    check_close(is->time_s, s, 1e-12);
    check_close(is->launches, 3, 0);
    for (int i = 0; i < 3; i++)
        check_close(is->by_limit_s[i],
                    was->time_s > 0        ? (i == 1 ? 0.5 : 0.25) * s
                    : i == DL_LIMIT_MEMORY ? s
                                           : 0,
                    1e-12);
    if (!known) {
        assert_int_equal(is->extrapolated, was->extrapolated);
        assert_string_equal(is->origin_device, "another");
        return;
    }
    check_close(is->error_s, (outside ? 0.15 : 0.03) * s, 1e-12);
    check_close(is->error_square_s2, pow((outside ? 0.15 : 0.03) * s, 2), 1e-12);
    assert_int_equal(is->extrapolated, outside);
    assert_string_equal(is->formula, "F-LAYER-TIMES");
    assert_null(is->origin_device);
}

/* Kept whole: one random set of measurements and each of its readings. */
static void measured_layers(void **state) {
    (void)state;
    static const double sizes[] = {2, 4, 8, 16, 32};
    const struct dl_layer layers[NAMES + 1] = {
        {.name = "a"}, {.name = "b"}, {.name = "c"}, {.name = "other"}};
    const struct dl_workload workload = {.name = "w", .layers = layers, .layer_count = NAMES + 1};
    for (int n = 0; n < 3000; n++) {
        struct dl_layer_time times[MOST_BATCHES][NAMES];
        struct dl_layer_batch batches[MOST_BATCHES];
        struct dl_layer_times t = {.name = "t", .batches = batches};
        for (int i = 0; i < 5 && t.batch_count < MOST_BATCHES; i++) {
            if (upto(2) == 0 && t.batch_count + 5 - i > 1) continue;
            struct dl_layer_batch *at = &batches[t.batch_count];
            *at = (struct dl_layer_batch){.batch_samples = sizes[i],
                                          .update_s = ONE_OF(NAN, 0.125, 1),
                                          .jitter_frac = ONE_OF(NAN, 0.5, 0.25),
                                          .core_s = ONE_OF(NAN, 1, 3),
                                          .layers = times[t.batch_count++],
                                          .layer_count = NAMES};
            for (int k = 0; k < NAMES; k++)
                at->layers[k] = (struct dl_layer_time){.name = layers[k].name,
                                                       .forward_s = ONE_OF(NAN, 0, 0.5, 0.75),
                                                       .backward_s = ONE_OF(NAN, 0, 1.5, 4)};
        }
        struct dl_layer_cost list[3][NAMES + 1], was[NAMES + 1];
        struct dl_cost cost[3];
        for (int c = 0; c < 3; c++) {
            cost[c] = (struct dl_cost){.layers = list[c], .update = some_cost()};
            for (int i = 0; i <= NAMES; i++)
                list[c][i] =
                    (struct dl_layer_cost){.forward = some_cost(), .backward = some_cost()};
        }
        memcpy(was, list[2], sizeof was);
        const struct dl_pass_cost update = cost[2].update;
        const double batch = ONE_OF(1, 2, 3, 4, 8, 12, 16, 32, 64);
        struct dl_err err = {0};
        if (t.batch_count == 0) {
            assert_int_equal(
                dl_layer_times_apply(&t, &workload, batch, &cost[0], &cost[1], &cost[2], &err),
                DL_ERR_USAGE);
            assert_string_equal(err.message, "the layer times 't' name no layer of w");
            continue;
        }
        assert_int_equal(
            dl_layer_times_apply(&t, &workload, batch, &cost[0], &cost[1], &cost[2], &err), DL_OK);
        bool outside;
        for (int i = 0; i < NAMES; i++) {
            double s = read_apart(&t, i, 0, batch, list[0][i].forward.time_s,
                                  list[1][i].forward.time_s, was[i].forward.time_s, &outside);
            check_reading(&list[2][i].forward, &was[i].forward, s, outside);
            s = read_apart(&t, i, 1, batch, list[0][i].backward.time_s, list[1][i].backward.time_s,
                           was[i].backward.time_s, &outside);
            check_reading(&list[2][i].backward, &was[i].backward, s, outside);
        }
        check_reading(&list[2][NAMES].forward, &was[NAMES].forward, NAN, false);
        check_reading(&cost[2].update, &update, read_apart(&t, 0, 2, batch, 0, 0, 0, &outside),
                      false);
        double jitter = NAN, core_s = NAN, near_jitter = 1e9, near_core = 1e9;
        for (int i = 0; i < t.batch_count; i++) {
            double away = batches[i].batch_samples / batch;
            if (away < 1) away = 1 / away;
            if (!isnan(batches[i].jitter_frac) && away < near_jitter * (1 - 1e-12))
                jitter = batches[i].jitter_frac, near_jitter = away;
            if (!isnan(batches[i].core_s) && away < near_core * (1 - 1e-12))
                core_s = batches[i].core_s, near_core = away;
        }
        check_close(dl_layer_times_jitter_frac(&t, batch), jitter, 0);
        check_close(dl_layer_times_core_s(&t, batch), core_s, 0);
    }
}

/* Each member that a file leaves open is the other framework's; each that it gives stays.
 * Kept whole: two lists of the same members. */
static void members_of_another(void **state) {
    (void)state;
    struct dl_framework own, from, had;
    struct dl_framework_kernels *o = &own.kernels, *t = &from.kernels;
    int *const mine[] = {&o->layernorm,
                         &o->gelu,
                         &o->dropout,
                         &o->softmax,
                         &o->batchnorm,
                         &o->bias,
                         &o->loss,
                         &o->sums,
                         &o->fusion,
                         &o->mixed_fusion,
                         &o->layout,
                         &o->mixed_layout,
                         &o->mixed_policy,
                         &o->optimizer_kernels,
                         &o->weight_copies,
                         &o->weight_decay,
                         &o->mixed_batchnorm,
                         &o->compiler,
                         &o->compiled_fusion,
                         &o->attention,
                         &own.memory.allocator};
    int *const theirs[] = {&t->layernorm,
                           &t->gelu,
                           &t->dropout,
                           &t->softmax,
                           &t->batchnorm,
                           &t->bias,
                           &t->loss,
                           &t->sums,
                           &t->fusion,
                           &t->mixed_fusion,
                           &t->layout,
                           &t->mixed_layout,
                           &t->mixed_policy,
                           &t->optimizer_kernels,
                           &t->weight_copies,
                           &t->weight_decay,
                           &t->mixed_batchnorm,
                           &t->compiler,
                           &t->compiled_fusion,
                           &t->attention,
                           &from.memory.allocator};
    double *const numbers[] = {&o->head_copies, &o->score_kernels, &o->norm_small_kernels,
                               &own.host.dispatch_s};
    double *const others[] = {&t->head_copies, &t->score_kernels, &t->norm_small_kernels,
                              &from.host.dispatch_s};
    enum { CHOICES = sizeof mine / sizeof *mine };
    for (int n = 0; n < 200; n++) {
        int given[CHOICES];
        double said[4];
        memset(&own, 0, sizeof own), memset(&from, 0, sizeof from);
        for (int i = 0; i < CHOICES; i++) {
            *mine[i] = given[i] = upto(4) - 1;
            *theirs[i] = 100 + i;
        }
        for (int i = 0; i < 4; i++) {
            *numbers[i] = said[i] = ONE_OF(NAN, 0, 2);
            *others[i] = 100 + i;
        }
        had = own;
        dl_framework_share_kernels(&own, &from);
        for (int i = 0; i < CHOICES; i++)
            assert_int_equal(*mine[i], given[i] < 0 ? 100 + i : given[i]);
        for (int i = 0; i < 4; i++) check_close(*numbers[i], isnan(said[i]) ? 100 + i : said[i], 0);
        check_close(o->softmax_keys, had.kernels.softmax_keys, 0);
        check_close(o->update_launches_per_tensor, had.kernels.update_launches_per_tensor, 0);
    }
}

/* The first of a list, and none. */
static void frameworks_of_a_list(void **state) {
    (void)state;
    const struct dl_framework_behaviour *ideal = dl_framework_behaviour_find("ideal"),
                                        *ddp = dl_framework_behaviour_find("bucketed");
    struct dl_framework a = {.behaviour = ddp, .default_for = -1, .transformer = {.casts = -1}},
                        c = {.behaviour = ideal,
                             .default_for = DL_DEFAULT_TRANSFORMER,
                             .transformer = {.casts = -1}},
                        d = {.behaviour = ideal, .default_for = DL_DEFAULT_DATA_PARALLEL},
                        e = {.behaviour = ddp, .default_for = DL_DEFAULT_DATA_PARALLEL};
    const struct dl_framework *list[] = {&a, &c, &d, &e};
    assert_null(dl_framework_bound(list, 0));
    assert_null(dl_framework_bound(list, 1));
    assert_ptr_equal(dl_framework_bound(list, 2), &c);
    assert_ptr_equal(dl_framework_bound(list, 4), &c);
    assert_ptr_equal(dl_framework_bound(&list[1], 1), &c);
    assert_null(dl_framework_default(list, 2, DL_DEFAULT_DATA_PARALLEL));
    assert_ptr_equal(dl_framework_default(list, 4, DL_DEFAULT_DATA_PARALLEL), &d);
    assert_ptr_equal(dl_framework_default(list, 3, DL_DEFAULT_DATA_PARALLEL), &d);
    assert_ptr_equal(dl_framework_default(list, 2, DL_DEFAULT_TRANSFORMER), &c);
    assert_null(dl_framework_default(list, 1, DL_DEFAULT_TRANSFORMER));
    assert_false(dl_framework_takes_8_bits(&a));
    assert_true(dl_framework_takes_8_bits(&c) && dl_framework_takes_8_bits(&e));
}

/* How a release, else the file, builds a network; else its name. */
static void networks_of_a_release(void **state) {
    (void)state;
    struct dl_map_entry own[] = {{.key = "vgg16", .text = "vgg16:own"},
                                 {.key = "alexnet", .text = "alexnet:own"}},
                        theirs[] = {{.key = "resnet50", .text = "resnet50:first"},
                                    {.key = "vgg16", .text = "vgg16:release"}};
    struct dl_framework_release releases[] = {
        {.name = "1.0", .workloads = theirs, .workload_count = 2}, {.name = "2.0"}};
    const struct dl_framework f = {
        .workloads = own, .workload_count = 2, .releases = releases, .release_count = 2};
    assert_string_equal(dl_framework_workload(&f, NULL, "vgg16"), "vgg16:own");
    assert_string_equal(dl_framework_workload(&f, &releases[0], "vgg16"), "vgg16:release");
    assert_string_equal(dl_framework_workload(&f, &releases[0], "resnet50"), "resnet50:first");
    assert_string_equal(dl_framework_workload(&f, &releases[0], "alexnet"), "alexnet:own");
    assert_string_equal(dl_framework_workload(&f, &releases[1], "resnet50"), "resnet50");
    assert_string_equal(dl_framework_workload(&f, NULL, "bert"), "bert");
    assert_ptr_equal(dl_framework_release_find(&f, "1.0"), &releases[0]);
    assert_ptr_equal(dl_framework_release_find(&f, "2.0"), &releases[1]);
    assert_null(dl_framework_release_find(&f, "3.0"));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(exchanges),
                                       cmocka_unit_test(streams),
                                       cmocka_unit_test(device_memory),
                                       cmocka_unit_test(links_of_servers),
                                       cmocka_unit_test(cheapest),
                                       cmocka_unit_test(measured_layers),
                                       cmocka_unit_test(members_of_another),
                                       cmocka_unit_test(frameworks_of_a_list),
                                       cmocka_unit_test(networks_of_a_release)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
