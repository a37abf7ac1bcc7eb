/* The likely cause of a shortfall, one made-up run for each. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "predict/compare/compare_cause.h"
#include "tests/check.h"

/* 100 ms of compute, 60 ms of communication of which 10 are exposed; the interval ends at 120 ms.
 */
static const struct dl_prediction usual = {.iteration_s = 0.110,
                                           .iteration_high_s = 0.120,
                                           .compute_s = 0.100,
                                           .comm_s = 0.060,
                                           .exposed_comm_s = 0.010};

static const char *cause(struct dl_arena *arena, int64_t nodes, double measured_s, double base,
                         double node, double fewer) {
    const struct dl_plan plan = {.nodes = nodes, .devices_per_node = 4};
    const struct dl_shortfall run = {.prediction = &usual,
                                     .plan = &plan,
                                     .measured_s = measured_s,
                                     .base_ratio = base,
                                     .base_devices = 1,
                                     .node_ratio = node,
                                     .fewer_ratio = fewer};
    return dl_compare_cause(&run, arena);
}

static void each_cause(void **state) {
    (void)state;
    struct dl_arena arena = {0};
    assert_null(cause(&arena, 4, 0.119, 1, 1, 1)); /* inside the interval */
    check_contains(cause(&arena, 4, 0.165, 1.5, 1.5, 1.5),
                   "kernels slower than their samples: the run on 1 device takes 1.50");
    /* 110 - 10 + 60 = 160 ms when nothing overlaps */
    check_contains(cause(&arena, 4, 0.160, 1, 1.0, 1.1), "not overlapped");
    check_contains(cause(&arena, 4, 0.220, 1, 1.0, 1.1), "network between nodes slower");
    check_contains(cause(&arena, 1, 0.220, 1, NAN, 1.1), "links inside the node slower");
    check_contains(cause(&arena, 4, 0.220, 1, 1.6, 1.6), "devices of a node share");
    check_contains(cause(&arena, 4, 0.128, 1, 1.0, 1.05), "stragglers");
    /* 20 times 60 ms of communication would explain 1.25 s: more is named by nothing */
    check_contains(cause(&arena, 4, 1.24, 1, 1.0, 1.1), "network between nodes slower");
    check_contains(cause(&arena, 4, 1.26, 1, 1.0, 1.1), "not explained: 11.45 times");
    dl_arena_free(&arena);
}

static void the_factor_of_the_network(void **state) {
    (void)state;
    struct dl_arena arena = {0};
    /* 220 ms: 100 ms without communication, of which 50 ms hide: 170 ms are needed, 2.8 times 60 ms
     */
    check_contains(cause(&arena, 4, 0.220, 1, 1.0, 1.1),
                   "communication 2.8 times as long (170 instead of 60 ms)");
    dl_arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_cause),
                                       cmocka_unit_test(the_factor_of_the_network)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
