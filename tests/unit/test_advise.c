/* Advice: the gain's interval and the ways to synchronize that it proposes, by hand. */
#include "model/search/advise/advise.h"
#include "model/framework/gradient_sync.h"
#include "model/engine/interval.h"
#include "model/workload/layer.h"
#include "tests/gradient_bench.h"

/* F-GAIN. 10 samples in 1 s and 0.8 s. Without: kernels 0.6 s, slowdown 0.1 s, exposed 0.3 s; with:
 * kernels 0.6 s, exposed 0.2 s. Per sample: local 0.06 both, communication 0.04 and 0.02. */
static void gain_by_hand(void **state) {
    const struct dl_interval_model model = {
        .communication_sigma_log = 0.25,
        .row_communication_sigma_log = sqrt(3) / 4,
        .anchored_widths.half_log = {[DL_WIDTH_COMMUNICATION] = 0.5},
        /* mean of both ends: 1.2 */
        .widths.half_log = {[DL_WIDTH_COMMUNICATION] = 7, [DL_WIDTH_DEVICE] = 1.5},
        .fast_widths.half_log = {[DL_WIDTH_COMMUNICATION] = 3, [DL_WIDTH_DEVICE] = 0.9}};
    struct dl_framework framework = {.errors = {.intervals = &model}};
    const struct dl_prediction without = {.iteration_s = 1,
                                          .compute_s = 0.7,
                                          .by_limit_s = {0.4, 0.2, 0},
                                          .exposed_comm_s = 0.3,
                                          .comm_s = 0.4,
                                          .messages.count = 2},
                               with = {.iteration_s = 0.8,
                                       .iteration_low_s = 0.8 * exp(-0.1),
                                       .iteration_high_s = 0.8 * exp(0.3),
                                       .compute_s = 0.6,
                                       .by_limit_s = {0.4, 0.2, 0},
                                       .exposed_comm_s = 0.2,
                                       .comm_s = 0.4,
                                       .messages.count = 4,
                                       .spread.sigma_log = 0.2};
    struct dl_gain g = dl_gain_of(&framework, &without, 10, &with, 10, true);
    check_close(g.ratio, 1.25, 1e-12);
    /* r = (1/16) / (1/16 + 3/16) = 0.25;
     * 0.5 sqrt(0.04^2 + 0.02^2 - 2 * 0.25 * 0.04 * 0.02) / 0.08 = 0.25 */
    check_close(g.high, 1.25 * exp(0.25), 1e-9);
    check_close(g.low, 1.25 * exp(-0.25), 1e-9);
    /* on a device that nobody measured: sqrt(0.5^2 + 1.2^2) = 1.3 instead of 0.5 */
    g = dl_gain_of(&framework, &without, 10, &with, 10, false);
    check_close(g.high, 1.25 * exp(0.65), 1e-9);
    /* the same messages: their error cancels but for the change, 0.5 * 0.02 / 0.08 */
    struct dl_prediction same = with;
    same.messages.count = 2;
    g = dl_gain_of(&framework, &without, 10, &same, 10, true);
    check_close(g.high, 1.25 * exp(0.125), 1e-9);
    /* half the kernels and no communication in both: 0.2 * 0.03 / 0.03 */
    const struct dl_prediction slow = {.iteration_s = 0.6, .compute_s = 0.6, .by_limit_s = {0.6}},
                               fast = {.iteration_s = 0.3,
                                       .iteration_low_s = 0.3 * exp(-0.1),
                                       .iteration_high_s = 0.3 * exp(0.3),
                                       .compute_s = 0.3,
                                       .by_limit_s = {0.3},
                                       .spread.sigma_log = 0.2};
    g = dl_gain_of(&framework, &slow, 10, &fast, 10, true);
    check_close(g.ratio, 2, 1e-12);
    check_close(g.low, 2 * exp(-0.2), 1e-9);
}

static double collective_s(const struct bench *b, enum dl_collective_op op, double bytes) {
    struct dl_message m = {0};
    assert_int_equal(dl_gradient_sync_collective(&b->request, op, bytes, &m, NULL), DL_OK);
    return m.duration_s;
}

/* F-FW-TOP-K: 8 ranks send 1 % of 1e8 elements, 8 bytes each; 16 bytes for each element and for
 * each received pair at 400 GB/s, one kernel of 5 us. F-FW-LOCAL-STEPS: a quarter of the all-reduce
 * of 400 MB, and of 800 MB read and written. Both after backward. */
static void sparse_and_rare_by_hand(void **state) {
    struct bench b;
    const double sizes[] = {4e8}, ready[] = {1};
    make(&b, 1, sizes, ready);
    b.request.parameter_bytes = 4e8;
    b.request.backward_end_s = 1.5;
    fake_behaviour(&b.fake.framework, "top-k");
    fake_set(&b.fake.framework, "gradient_frac", 0.01);
    run(&b, "top-k");
    check_close(b.sync.messages[0].bytes, 8 * 8e6, 1e-12);
    check_close(b.sync.messages[0].duration_s, collective_s(&b, DL_COLL_ALL_GATHER, 64e6), 1e-12);
    check_close(b.sync.messages[0].ready_s, 1.5, 1e-12);
    check_close(b.sync.device_copy_s, (16e8 + 16 * 8e6) / 400e9 + 5e-6, 1e-9);
    fake_behaviour(&b.fake.framework, "local-steps");
    fake_set(&b.fake.framework, "local_step_count", 4);
    memset(&b.sync, 0, sizeof b.sync);
    run(&b, "local-steps");
    check_close(b.sync.messages[0].duration_s, collective_s(&b, DL_COLL_ALL_REDUCE, 4e8) / 4,
                1e-12);
    check_close(b.sync.messages[0].latency_s + b.sync.messages[0].bandwidth_s,
                b.sync.messages[0].duration_s, 1e-12);
    check_close(b.sync.device_copy_s, (8e8 / 400e9 + 5e-6) / 4, 1e-9);
}

/* Gradients that are no dense weights wait for each other: one message of 6 MB. */
static void the_rest_in_one_bucket(void **state) {
    struct bench b;
    const double sizes[] = {1e6, 2e6, 3e6}, ready[] = {1, 2, 3};
    make(&b, 3, sizes, ready);
    run(&b, "sufficient-factors");
    assert_int_equal(b.sync.message_count, 1);
    assert_int_equal(b.sync.messages[0].first, 0);
    assert_int_equal(b.sync.messages[0].count, 3);
    check_close(b.sync.messages[0].bytes, 6e6, 1e-12);
    check_close(b.sync.messages[0].ready_s, 3, 1e-12);
}

/* F-FW-SUFFICIENT-FACTORS: of 10000 x 10000 weights and 4 samples on each of 8 ranks, factors are
 * 8 * 4 * 20000 * 4 = 2.56 MB in place of 400 MB; the product has a depth of 32 in place of 4. With
 * 40000 samples they would be 25.6 GB: the gradient itself is summed. */
static void factors_by_hand(void **state) {
    struct bench b;
    const double sizes[] = {4e8, 1e6}, ready[] = {1, 2};
    make(&b, 2, sizes, ready);
    struct dl_layer layers[2];
    memcpy(layers, b.fake.workload.layers, sizeof layers);
    layers[1].kind = &dl_layer_dense; /* gradients are in backward order */
    layers[1].in.channels = layers[1].out.channels = 1e4;
    b.fake.workload.layers = layers;
    b.fake.plan.batch_per_device_samples = 4;
    run(&b, "sufficient-factors");
    assert_int_equal(b.sync.message_count, 2);
    check_close(b.sync.messages[0].bytes, 2.56e6, 1e-12);
    check_close(b.sync.messages[0].duration_s, collective_s(&b, DL_COLL_ALL_GATHER, 2.56e6), 1e-12);
    check_close(b.sync.messages[1].bytes, 1e6, 1e-12);
    struct dl_kernel deep = dl_kernel_gemm(DL_BACKWARD_WEIGHTS, 1e4, 1e4, 32, 1),
                     own = dl_kernel_gemm(DL_BACKWARD_WEIGHTS, 1e4, 1e4, 4, 1);
    deep.b_trans = own.b_trans = true;
    struct dl_kernel_time all, local;
    dl_kernel_time(&b.fake.device, DL_FP32, &deep, &all);
    dl_kernel_time(&b.fake.device, DL_FP32, &own, &local);
    check_close(b.sync.device_copy_s, fmax(0, all.time_s - local.time_s), 1e-9);
    b.fake.plan.batch_per_device_samples = 40000;
    memset(&b.sync, 0, sizeof b.sync);
    run(&b, "sufficient-factors");
    check_close(b.sync.messages[0].bytes, 4e8, 1e-12);
    check_close(b.sync.device_copy_s, 0, 0);
}

/* F-HIERARCHICAL-SYNC: NCCL inside the node of 4, MPI between two nodes on a quarter of the bytes.
 * F-CAST: fp32 to 2 bytes and back, 12 bytes for each of 1e8 elements. */
static void levels_and_casts_by_hand(void **state) {
    struct bench b;
    const double sizes[] = {4e8}, ready[] = {1};
    make(&b, 1, sizes, ready);
    b.request.parameter_bytes = 4e8;
    const struct dl_plan all = b.fake.plan;
    b.fake.plan.nodes = 1, b.fake.plan.dp = 4;
    const double inside_s =
        collective_s(&b, DL_COLL_REDUCE_SCATTER, 4e8) + collective_s(&b, DL_COLL_ALL_GATHER, 4e8);
    b.fake.plan = all;
    b.fake.plan.dp = 2, b.fake.plan.tp = 4;
    b.request.library = DL_LIB_MPI;
    const double across_s = collective_s(&b, DL_COLL_ALL_REDUCE, 1e8);
    b.fake.plan = all;
    b.request.library = DL_LIB_NCCL;
    b.fake.framework.sync.hierarchical = true;
    check_close(collective_s(&b, DL_COLL_ALL_REDUCE, 4e8), inside_s + across_s, 1e-9);
    check_close(dl_gradient_sync_cast_s(&b.request), 0, 0);
    b.fake.framework.sync.gradient_bytes = 2;
    check_close(dl_gradient_sync_cast_s(&b.request), 12e8 / 400e9 + 5e-6, 1e-9);
    b.fake.plan.precision = DL_MIXED; /* its gradients have that width */
    check_close(dl_gradient_sync_cast_s(&b.request), 0, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gain_by_hand), cmocka_unit_test(sparse_and_rare_by_hand),
        cmocka_unit_test(the_rest_in_one_bucket), cmocka_unit_test(factors_by_hand),
        cmocka_unit_test(levels_and_casts_by_hand)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
