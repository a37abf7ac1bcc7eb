/* Recorded results (recorded.h: a regression net, no oracle) of collectives of every library,
 * algorithm, size and group of ranks on whatever system is in data/, of kernels of every shape on
 * whatever device is there, and of parameter servers.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "model/framework/checkpoint/checkpoint_format.h"
#include "model/network/collective.h"
#include "model/search/checkpoint.h"
#include "tests/any_case.h"
#include "tests/recorded.h"

enum { COLLECTIVES = 1500, KERNELS = 1500, TEXTBOOK = 20 };

static double some_bytes(void) {
    return once_in(8) ? floor(log_between(1, 1e3)) : floor(log_between(8, 4e9));
}

static struct dl_collective_request random_request(const struct dl_system *system) {
    static const char *const algorithms[] = {
        "ring", "tree", "Ring", "Tree", "nvls", "rabenseifner", "recursive-doubling", "binomial"};
    static const char *const protocols[] = {"LL", "LL128", "Simple", "ll", "none"};
    struct dl_collective_request r = {.op = (enum dl_collective_op)upto(DL_COLL_OPS),
                                      .library = once_in(2) ? DL_LIB_NCCL
                                                            : (enum dl_library)upto(DL_LIBRARIES),
                                      .bytes = some_bytes(),
                                      .nodes = once_in(3) ? 1 + upto(12) : (int64_t)1 << upto(6),
                                      .ranks_per_node = 1 + upto((int)system->devices_per_node),
                                      .flows_per_adapter = once_in(4) ? 1 + upto(4) : 1,
                                      .device_buffers = once_in(3),
                                      .device_direct = once_in(3),
                                      .as_run = once_in(3)};
    if (once_in(4)) r.algorithm = algorithms[upto(8)];
    if (once_in(4)) r.protocol = protocols[upto(5)];
    if (once_in(4)) {
        r.group_size = (int64_t)1 << upto(5);
        r.group_stride = (int64_t)1 << upto(4);
        r.concurrent = 1 + upto(8);
    }
    if (once_in(10)) r.domain_nodes = 1 + upto(4);
    return r;
}

static void record_time(const struct dl_system *system, const struct dl_collective_request *r) {
    struct dl_collective_time t;
    struct dl_err err = {0};
    if (dl_collective_time(system, r, &t, &err) != DL_OK) {
        recorded_error("refusal", &err);
        return;
    }
    uint32_t words = 0;
    const char *const texts[] = {t.algorithm, t.protocol, t.formula, t.limit, t.origin};
    for (int i = 0; i < 5; i++) words = recorded_hash(words, texts[i]);
    recorded_result("time_s", t.time_s);
    recorded_number("latency_s", t.latency_s);
    recorded_number("bandwidth_s", t.bandwidth_s);
    recorded_number("sigma_log", t.sigma_log);
    recorded_number("steps, channels", 1 + t.steps + 1000 * t.channels + 0.5 * t.extrapolated);
    recorded_text_hash("algorithm, protocol, formula, limit, origin", words, t.algorithm);
}

/* Neighbours, together with another, and a bundle of requests that share a node. */
static void record_beside(const struct dl_system *system, const struct dl_collective_request *r) {
    struct dl_collective_request requests[3] = {*r, *r, *r}, next = *r;
    struct dl_err err = {0};
    struct recorded_sum sum = {0};
    double frac[3];
    requests[1].op = DL_COLL_ALL_GATHER, requests[1].bytes = some_bytes();
    requests[2].ranks_per_node = 1 + upto((int)system->devices_per_node);
    if (dl_collective_together(system, requests, 2 + upto(2), frac, &err) == DL_OK)
        for (int i = 0; i < 2; i++) recorded_add(&sum, frac[i]);
    else
        recorded_error("refused together", &err);
    const int64_t ranks = (int64_t)1 << upto(5);
    dl_collective_neighbours(system, r->nodes, r->ranks_per_node, ranks, (int64_t)1 << upto(4),
                             &next);
    recorded_add(&sum, (double)next.nodes);
    recorded_add(&sum, (double)next.ranks_per_node);
    recorded_add(&sum, (double)next.domain_nodes);
    recorded_add(&sum, next.flows_per_adapter);
    recorded_sum_of("together, neighbours", &sum);
}

static void collectives(void **state) {
    (void)state;
    recorded_open("collectives");
    seed = 71;
    for (int i = 0; i < COLLECTIVES; i++) {
        struct dl_system system = *all.systems[upto(all.system_count)];
        change_system(&system);
        const struct dl_collective_request r = random_request(&system);
        char title[256];
        snprintf(title, sizeof title, "%s of %s, %g bytes on %s, %lld x %lld",
                 dl_collective_op_names[r.op], dl_library_names[r.library], r.bytes, system.name,
                 (long long)r.nodes, (long long)r.ranks_per_node);
        recorded_case(title);
        record_time(&system, &r);
        if (i % 4 == 0) record_beside(&system, &r);
        recorded_end_case();
    }
    recorded_close();
}

static struct dl_kernel random_conv(enum dl_pass pass) {
    static const double sizes[] = {1, 3, 5, 7};
    const double size = 4 + upto(60), kernel = sizes[upto(4)], stride = 1 + upto(2);
    const double channels = floor(log_between(3, 1024)), groups = once_in(6) ? channels : 1;
    const double in[DL_DIMS] = {size, size, once_in(8) ? 8 : 1},
                 window[DL_DIMS] = {kernel, once_in(8) ? 1 : kernel, in[2] > 1 ? 3 : 1},
                 strides[DL_DIMS] = {stride, stride, 1},
                 pads[DL_DIMS] = {floor(kernel / 2), floor(kernel / 2), 0},
                 dilations[DL_DIMS] = {1, 1, 1};
    const double samples = 1 + upto(128), filters = floor(log_between(8, 1024));
    return dl_kernel_conv(pass, samples, channels, groups > 1 ? channels : filters, groups, in,
                          window, strides, pads, dilations);
}

static struct dl_kernel random_kernel(void) {
    const enum dl_pass pass = (enum dl_pass)upto(3);
    struct dl_kernel kernel;
    const int kind = upto(4);
    if (kind == 0) {
        const double m = floor(log_between(1, 2e4)), n = floor(log_between(1, 2e4)),
                     k = floor(log_between(1, 2e4)), count = once_in(3) ? 1 + upto(64) : 1;
        kernel = dl_kernel_gemm(pass, m, n, k, count);
        kernel.a_trans = once_in(2), kernel.b_trans = once_in(2);
    } else if (kind == 1) {
        kernel = random_conv(pass);
    } else if (kind == 2) {
        const double heads = 1 << upto(6), tokens = 1 << (5 + upto(8)), dim = 32 << upto(3);
        const struct dl_attention_shape shape = {1 + upto(16),
                                                 heads,
                                                 once_in(3) ? 1 : heads,
                                                 tokens,
                                                 once_in(4) ? 2 * tokens : tokens,
                                                 dim,
                                                 once_in(5) ? dim / 2 : dim,
                                                 once_in(5) ? tokens / 2 : 0,
                                                 once_in(2)};
        kernel = dl_kernel_attention(pass == DL_FORWARD ? pass : DL_BACKWARD_DATA, &shape);
    } else {
        const double flop = log_between(1, 1e9), reads = floor(log_between(1, 1e9));
        kernel = dl_kernel_stream(pass, flop, reads, floor(log_between(1, 1e9)));
        kernel.extra_bytes = once_in(3) ? log_between(1, 1e8) : 0;
        kernel.work = (enum dl_work)upto(DL_WORKS);
    }
    if (once_in(8)) kernel.variant = (enum dl_variant)upto(DL_VARIANTS);
    if (once_in(8)) kernel.has_type = true, kernel.type = (enum dl_precision)upto(DL_PRECISIONS);
    if (once_in(8)) kernel.launches = 1 + upto(5);
    return kernel;
}

static void kernels(void **state) {
    (void)state;
    recorded_open("kernels");
    seed = 72;
    for (int i = 0; i < KERNELS; i++) {
        struct dl_device device = *all.systems[upto(all.system_count)]->device;
        const struct dl_kernel kernel = random_kernel();
        const enum dl_precision precision = (enum dl_precision)upto(DL_PRECISIONS);
        struct dl_kernel_time t;
        uint32_t words = 0;
        char title[200];
        if (once_in(4)) device.kernel_model_count = 0, device.borrowed = NULL;
        snprintf(title, sizeof title, "operation %d, pass %d, work %d on %s, precision %d",
                 kernel.op, kernel.pass, kernel.work, device.name, precision);
        recorded_case(title);
        dl_kernel_time(&device, precision, &kernel, &t);
        words = recorded_hash(recorded_hash(words, t.formula), t.origin);
        words = recorded_hash(words, t.origin_device);
        recorded_result("time_s", t.time_s);
        recorded_number("sigma_log", t.sigma_log);
        recorded_number("limit, extrapolated", 1 + 2 * t.limit + t.extrapolated);
        recorded_text_hash("formula, origin", words, t.formula);
        recorded_number("call_s", dl_kernel_call_s(&device, precision, &kernel));
        const double workspace = dl_kernel_workspace_bytes(&kernel, 1 << upto(3));
        recorded_number("workspace_bytes", workspace);
        recorded_number("workspace factor",
                        dl_kernel_workspace_factor(&device, precision, &kernel,
                                                   workspace * check_uniform(&seed)));
        recorded_number("traffic", kernel.flop + kernel.read_elements + 3 * kernel.write_elements);
        recorded_end_case();
    }
    recorded_close();
}

static void record_servers(void) {
    struct dl_parameter_server_time t;
    struct dl_err err = {0};
    const struct dl_system *system = all.systems[upto(all.system_count)];
    const double total = log_between(1e3, 1e9), servers = 1 + upto(8);
    const struct dl_parameter_server_request r = {
        .workers = 1 + upto(16),
        .servers = servers,
        .total_bytes = total,
        .largest_server_bytes = fmin(total, total / servers * (1 + check_uniform(&seed))),
        .colocated = once_in(2),
        .half_duplex = once_in(2),
        .message_count = 1 + upto(100),
        .message_s = once_in(3) ? 0 : log_between(1e-6, 1e-3),
        .copy_bytes_per_s = once_in(3) ? NAN : log_between(1e8, 1e11),
        .update_bytes_per_s = once_in(3) ? NAN : log_between(1e8, 1e11)};
    recorded_case(system->name);
    if (dl_parameter_server_time(system, &r, &t, &err) != DL_OK) {
        recorded_error("refusal", &err);
    } else {
        recorded_result("time_s", t.time_s);
        recorded_number("latency_s", t.latency_s);
        recorded_number("push_s", t.push_s);
        recorded_number("pull_s", t.pull_s);
        recorded_number("server_s", t.server_s);
        recorded_text("limit", t.limit);
    }
    recorded_end_case();
}

static void record_formats(const struct dl_workload *workload) {
    recorded_case(workload->name);
    for (int i = 0; dl_checkpoint_formats[i] != NULL; i++) {
        const struct dl_checkpoint_format *format = dl_checkpoint_formats[i];
        struct dl_checkpoint_content c;
        struct recorded_sum sum = {0};
        const enum dl_optimizer optimizer = (enum dl_optimizer)upto(DL_OPTIMIZERS);
        dl_checkpoint_content(format, workload, optimizer, once_in(2) ? 4 : 2, &c);
        const double values[] = {c.layers,
                                 c.tensor_count,
                                 c.data_bytes,
                                 c.large_bytes,
                                 c.name_char_count,
                                 c.dim_count,
                                 dl_checkpoint_bytes(format, &c, 1 + upto(16))};
        for (size_t k = 0; k < sizeof values / sizeof values[0]; k++) recorded_add(&sum, values[k]);
        recorded_sum_of(format->name, &sum);
        recorded_number("writers, counters, saves",
                        1 + (double)format->writers + 4 * (double)format->counters +
                            16 * (double)format->saves + 1024 * format->syncs +
                            2048 * format->is_async);
        const uint32_t words = recorded_hash(recorded_hash(0, format->summary), format->also);
        recorded_text_hash("words", recorded_hash(words, format->probe), format->summary);
    }
    recorded_end_case();
}

static void textbook(void **state) {
    (void)state;
    recorded_open("textbook");
    seed = 73;
    for (int i = 0; dl_collective_algorithms[i] != NULL; i++) {
        const struct dl_collective_algorithm *a = dl_collective_algorithms[i];
        recorded_case(a->name);
        for (int k = 0; k < TEXTBOOK; k++) {
            const struct dl_hockney link = {log_between(1e-7, 1e-4), log_between(1e-12, 1e-8),
                                            once_in(2) ? 0 : log_between(1e-12, 1e-9)};
            const double ranks = 1 + upto(33);
            const bool valid = a->valid == NULL || a->valid(ranks);
            const double bytes = some_bytes(), segment_bytes = log_between(1e2, 1e6);
            recorded_number(a->formula, valid ? a->time_s(&link, ranks, bytes, segment_bytes) : -1);
        }
        recorded_end_case();
    }
    for (int i = 0; i < 200; i++) record_servers();
    for (int i = 0; i < all.workload_count; i++) record_formats(all.workloads[i]);
    recorded_close();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(collectives), cmocka_unit_test(kernels),
                                       cmocka_unit_test(textbook)};
    return cmocka_run_group_tests(tests, catalog_load, catalog_free);
}
