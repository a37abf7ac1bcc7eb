/* F-CAUSE: causes of a made-up run, ranked by what is known of it. */
#include "predict/compare/compare_cause.h"
#include "tests/check.h"

/* 100 ms of compute, 60 ms of communication of which 10 are exposed; the interval ends at 120 ms.
 */
static const struct dl_prediction usual = {.iteration_s = 0.110,
                                           .iteration_high_s = 0.120,
                                           .compute_s = 0.100,
                                           .comm_s = 0.060,
                                           .exposed_comm_s = 0.010};

static const struct dl_plan one_device = {.nodes = 1, .devices_per_node = 1},
                            one_node = {.nodes = 1, .devices_per_node = 4},
                            four_nodes = {.nodes = 4, .devices_per_node = 4};

/* A run of 16 devices whose configuration on one device took `base` times its prediction, in one
 * node `node` times; NAN: not measured. */
static const struct dl_causes *causes(struct dl_arena *arena, double measured_s, double base,
                                      double node) {
    struct dl_shortfall run = {.prediction = &usual,
                               .plan = &four_nodes,
                               .measured_s = measured_s,
                               .base_ratio = base,
                               .base_devices = 1,
                               .base = dl_known(base) ? &usual : NULL,
                               .benchmark = "nccl-tests"};
    if (dl_known(node))
        run.others[run.other_count++] = (struct dl_other_run){&usual, &one_node, node};
    return dl_compare_causes(&run, arena);
}

static void is(const struct dl_causes *causes, const char *name, double least) {
    assert_non_null(causes);
    assert_string_equal(causes->list[0].name, name);
    assert_true(causes->list[0].probability_frac >= least);
}

static void each_cause(void **state) {
    assert_null(causes(&test_arena, 0.119, 1, 1)); /* inside the interval */
    /* one device takes half as long again: kernels, or the host of 45 ms in place of 11 */
    is(causes(&test_arena, 0.165, 1.3, 1.3), "kernels", 0.5);
    /* 110 - 10 + 60 = 160 ms when nothing overlaps, in one node as well */
    is(causes(&test_arena, 0.160, 1, 1.45), "overlap", 0.5);
    is(causes(&test_arena, 0.220, 1, 1), "network", 0.6);
    /* as much is lost in one node: what its devices share, or its links */
    is(causes(&test_arena, 0.220, 1, 2), "links", 0.3);
    /* 20 times 60 ms of communication would explain 1.25 s: more is named by nothing */
    is(causes(&test_arena, 1.24, 1, 1), "network", 0.5);
    is(causes(&test_arena, 1.26, 1, 1), "unknown", 1);
    assert_null(causes(&test_arena, 1.26, 1, 1)->list[0].bottleneck);
}

static void of_one_device(void **state) {
    const struct dl_shortfall run = {
        .prediction = &usual, .plan = &one_device, .measured_s = 0.2, .base_ratio = NAN};
    const struct dl_causes *both = dl_compare_causes(&run, &test_arena);
    /* 90 ms: 1.9 times the kernels, or 8.2 times the least of the host, a tenth of 110 ms. Weights:
     * exp(-ln 1.9 / 0.15) / 0.15 and exp(-ln 9.18 / 0.7) / 0.7, each over d ln t / d ln f = 190 and
     * 101 of 200; unknown: 0.05 exp(-ln (200 / 110)). */
    const double kernels = pow(1.9, -1 / 0.15) / 0.15 / 0.95,
                 host = pow(1 + 90 / 11.0, -1 / 0.7) / 0.7 / (101 / 200.0), unknown = 0.05 * 0.55;
    assert_string_equal(both->list[0].name, "host");
    check_close(both->list[0].probability_frac, host / (host + kernels + unknown), 1e-4);
    check_contains(both->list[0].text, "90.0 ms more of each iteration");
    check_contains(both->list[0].test, "double the batch");
}

static void the_factor_of_the_network(void **state) {
    /* 220 ms: 100 ms without communication, of which 50 ms hide: 170 ms are needed, 2.8 times 60 ms
     */
    const struct dl_causes *network = causes(&test_arena, 0.220, 1, 1);
    check_contains(network->list[0].text,
                   "communication 2.8 times as long (170 ms instead of 60.0 ms)");
    check_contains(network->list[0].test, "run nccl-tests on the same 4 nodes: 1/2.8 of the");
    assert_string_equal(network->list[0].bottleneck, "inter-link"); /* 120 of 220 ms */
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_cause),
                                       cmocka_unit_test(of_one_device),
                                       cmocka_unit_test(the_factor_of_the_network)};
    return cmocka_run_group_tests(tests, NULL, check_free);
}
