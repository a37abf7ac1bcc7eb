/* Iteration, stragglers, interval, bottleneck and small costs of exchanges against values worked by
 * hand. */
#include "model/engine/diagnose.h"
#include "tests/check.h"
#include "tests/fake.h"

/* Two layers and one message of 2 s, 1 s of it exposed; the iteration takes 10 s. */
struct bench {
    struct dl_fake fake;
    struct dl_layer_cost layers[2];
    struct dl_cost cost;
    struct dl_message message;
    struct dl_evidence evidence;
    struct dl_prediction p;
};

static void make(struct bench *b) {
    const double features[] = {10, 10, 10};
    memset(b, 0, sizeof *b);
    fake_make(&b->fake);
    fake_layers(&b->fake, 2, features);
    b->layers[0].forward = (struct dl_pass_cost){
        .time_s = 3, .by_limit_s = {2, 1, 0}, .error_s = 0.3, .error_square_s2 = 0.09};
    b->layers[1].backward = (struct dl_pass_cost){.time_s = 4,
                                                  .by_limit_s = {0.5, 3, 0.5},
                                                  .error_s = 0.4,
                                                  .error_square_s2 = 0.16,
                                                  .extrapolated = true};
    b->cost.layers = b->layers;
    b->message = (struct dl_message){
        .duration_s = 2, .latency_s = 0.1, .bandwidth_s = 1.9, .sigma_log = 0.25, .limit = "inter"};
    b->evidence = (struct dl_evidence){
        .forward_s = 3, .backward_s = 4, .comm_s = 2, .exposed_comm_s = 1, .host_s = 2};
    dl_evidence_of_cost(&b->cost, 2, 1, &b->evidence);
    dl_evidence_of_messages(&b->message, 1, false, &b->evidence);
    b->p.fits = true;
    b->fake.plan.nodes = b->fake.plan.devices_per_node = 1;
    b->fake.plan.global_batch_samples = 5;
    dl_compose(&b->evidence, &b->fake.workload, &b->fake.plan, 9, &b->p);
}

/* F-ITERATION: 3 + 4 of compute, 1 exposed, 2 of the host; 5 samples in 10 s, 1000 an epoch; one
 * device would take 9 s. With input of 12 s: prefetched, what the step does not hide and the feed;
 * else all. */
static void iteration_by_hand(void **state) {
    struct bench b;
    make(&b);
    check_close(b.p.iteration_s, 10, 1e-12);
    check_close(b.p.throughput_samples_per_s, 0.5, 1e-12);
    check_close(b.p.epoch_s, 2000, 1e-12);
    check_close(b.p.scaling_efficiency, 0.9, 1e-12);
    b.evidence.load_s = 12, b.evidence.feed_s = 0.5, b.evidence.prefetches = true;
    dl_compose(&b.evidence, &b.fake.workload, &b.fake.plan, 9, &b.p);
    check_close(b.p.exposed_input_s, 2.5, 1e-12);
    check_close(b.p.iteration_s, 12.5, 1e-12);
    b.evidence.prefetches = false;
    dl_compose(&b.evidence, &b.fake.workload, &b.fake.plan, 9, &b.p);
    check_close(b.p.iteration_s, 22.5, 1e-12);
    b.evidence.straggler_frac = 0.1; /* of 7 s of compute */
    dl_compose(&b.evidence, &b.fake.workload, &b.fake.plan, 9, &b.p);
    check_close(b.p.straggler_s, 0.7, 1e-12);
    check_close(b.p.overhead_s, 2.7, 1e-12);
}

/* F-STRAGGLER: jitter x E[max]: of 2 normal variables 1/sqrt(pi) = 0.56419. Nobody waits where one
 * device is alone, where servers do not wait, and in the bound. */
static void stragglers_by_hand(void **state) {
    struct bench b;
    make(&b);
    b.fake.system.jitter_frac = 0.1;
    b.fake.plan.nodes = 2;
    check_close(dl_straggler_frac(&b.fake.system, &b.fake.framework, &b.fake.plan), 0.056419, 2e-3);
    b.fake.framework.sync.asynchronous = true;
    check_close(dl_straggler_frac(&b.fake.system, &b.fake.framework, &b.fake.plan), 0, 0);
    b.fake.framework.sync.asynchronous = false;
    fake_behaviour(&b.fake.framework, "ideal");
    check_close(dl_straggler_frac(&b.fake.system, &b.fake.framework, &b.fake.plan), 0, 0);
    fake_behaviour(&b.fake.framework, "bucketed");
    b.fake.plan.nodes = 1;
    check_close(dl_straggler_frac(&b.fake.system, &b.fake.framework, &b.fake.plan), 0, 0);
}

/* F-INTERVAL: compute variance (0.7^2 + 0.25) / 2 = 0.37, of communication (1 s x 0.25)^2 = 0.0625;
 * residual 0.1: sigma^2 = 0.4325 / 100 + 0.01 = 0.014325; exp(-1.28155 x 0.119687) = 0.857799. */
static void interval_by_hand(void **state) {
    struct bench b;
    make(&b);
    dl_diagnose_interval(&b.evidence, 0.1, &b.p);
    check_close(b.p.iteration_low_s, 8.57799, 1e-5);
    check_close(b.p.iteration_high_s, 11.65774, 1e-5);
    b.evidence.comm_error_s = 0; /* sigma = sqrt(0.0037) = 0.0608276 */
    dl_diagnose_interval(&b.evidence, 0, &b.p);
    check_close(b.p.iteration_high_s / b.p.iteration_s, 1.081068, 1e-5);
}

/* F-BOUND: on memory depend 4 s, on arithmetic 2.5, on the host 2 and on the network 0.95 of the
 * 10; with 8 s more of messages it is the network, or the servers behind it; latency of kernels and
 * of messages counts together; a wait for the slowest of 50 s is the framework's; capacity is
 * first. */
static void bottleneck_by_hand(void **state) {
    struct bench b;
    make(&b);
    dl_evidence_serial_path(&b.evidence);
    check_close(dl_resource_sum_s(&b.evidence.path), 10, 1e-12);
    dl_diagnose_bottleneck(&b.evidence, &b.p);
    assert_int_equal(b.p.bottleneck, DL_BOUND_MEMORY_BANDWIDTH);
    check_close(b.p.bottleneck_share, 0.4, 1e-12);
    struct dl_evidence messages = b.evidence;
    dl_resource_message(&b.message, 8, false, &messages.path);
    dl_diagnose_bottleneck(&messages, &b.p);
    assert_int_equal(b.p.bottleneck, DL_BOUND_INTER);
    check_close(b.p.bottleneck_share, (0.95 + 7.6) / 10, 1e-12);
    messages = b.evidence;
    dl_resource_message(&b.message, 8, true, &messages.path);
    dl_diagnose_bottleneck(&messages, &b.p);
    assert_int_equal(b.p.bottleneck, DL_BOUND_PS);
    b.evidence.path.s[DL_ON_LATENCY] += 4;
    dl_diagnose_bottleneck(&b.evidence, &b.p);
    assert_int_equal(b.p.bottleneck, DL_BOUND_LATENCY);
    b.p.straggler_s = 50;
    dl_diagnose_bottleneck(&b.evidence, &b.p);
    assert_int_equal(b.p.bottleneck, DL_BOUND_FRAMEWORK);
    b.p.fits = false;
    dl_diagnose_bottleneck(&b.evidence, &b.p);
    assert_int_equal(b.p.bottleneck, DL_BOUND_CAPACITY);
    check_close(b.p.bottleneck_share, 1, 1e-12);
}

/* Two micro-batches: kernels, their spread and what lies outside the samples count twice. */
static void evidence_by_hand(void **state) {
    struct bench b;
    struct dl_evidence e = {0};
    make(&b);
    dl_evidence_of_cost(&b.cost, 2, 2, &e);
    check_close(e.by_limit_s[1], 8, 1e-12);
    check_close(e.error_s, 1.4, 1e-12);
    check_close(e.error_square_s2, 1.0, 1e-12);
    check_close(e.outside_s, 8, 1e-12);
}

/* F-HOST-SUM: 3 terms of 1 GB read and one written at 200 GB/s. F-PS-LINK: 3/4 of the bytes cross
 * an adapter of 12 GB/s, twice as many at the fullest of 4 servers. F-FW-QUANTIZED: 5 passes over
 * 400 MB at 400 GB/s, and one kernel of 5 us. */
static void sums_and_passes_by_hand(void **state) {
    struct bench b;
    make(&b);
    b.fake.plan.nodes = 4;
    struct dl_gradient gradient = {.elements = 1e8, .bytes = 4e8 / 32, .ready_s = 1};
    struct dl_gradient_sync_request request = {.system = &b.fake.system,
                                               .workload = &b.fake.workload,
                                               .framework = &b.fake.framework,
                                               .plan = &b.fake.plan,
                                               .gradients = &gradient,
                                               .gradient_count = 1,
                                               .total_bytes = gradient.bytes,
                                               .parameter_bytes = 4e8,
                                               .backward_end_s = 1,
                                               .library = DL_LIB_NCCL,
                                               .arena = &test_arena};
    struct dl_gradient_sync exchange = {.messages = NULL};
    check_close(dl_gradient_sync_host_sum_s(&request, 1e9, 3), 0.02, 1e-12);
    check_close(dl_gradient_sync_server_s_per_byte(&request, 2), 0.75 * 2 / 12e9, 1e-12);
    assert_int_equal(
        dl_framework_behaviour_find("quantized")->synchronize(&request, &exchange, NULL), DL_OK);
    assert_int_equal(exchange.message_count, 1);
    check_close(exchange.messages[0].bytes, 12.5e6, 1e-12);
    check_close(exchange.device_copy_s, 5 * 4e8 / (0.8 * 500e9) + 5e-6, 1e-9);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(iteration_by_hand),  cmocka_unit_test(stragglers_by_hand),
        cmocka_unit_test(evidence_by_hand),   cmocka_unit_test(interval_by_hand),
        cmocka_unit_test(bottleneck_by_hand), cmocka_unit_test(sums_and_passes_by_hand)};
    return cmocka_run_group_tests(tests, NULL, check_free);
}
