/* Pieces of a network for stages (stage_pieces.c): where it may be cut, which neighbours are
 * joined, and how many pieces the nodes leave room for. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "model/plan/plan.h"
#include "model/search/stage_pieces.h"
#include "tests/check.h"

enum { MOST = 80 };
static struct dl_layer layers[MOST];
static double cuts[MOST + 1];
static struct dl_workload workload;
static struct dl_heterogeneous_group groups[2];
static struct dl_heterogeneous_job job;
static struct dl_arena arena;
static int first[DL_STAGE_PIECES + 1], pieces;

/* Layers that multiply so much, each with an output of 10 elements that alone crosses behind it. */
static int setup(void **state) {
    (void)state;
    memset(layers, 0, sizeof layers);
    for (int i = 0; i < MOST; i++) {
        layers[i].forward_macs = 100 + i;
        layers[i].out = (struct dl_shape){.channels = 10, .size = {1, 1, 1}};
        cuts[i] = 10;
    }
    workload = (struct dl_workload){.layers = layers, .layer_count = 6};
    groups[0] = groups[1] = (struct dl_heterogeneous_group){.nodes = 1};
    job = (struct dl_heterogeneous_job){.groups = groups, .group_count = 1};
    return 0;
}
static int teardown(void **state) {
    (void)state;
    dl_arena_free(&arena);
    return 0;
}

static enum dl_code cut(struct dl_err *err) {
    return dl_stage_pieces(&job, &workload, cuts, &arena, first, &pieces, err);
}

static void check_pieces(int count, const int *expected) {
    struct dl_err err = {0};
    if (cut(&err) != DL_OK) fail_msg("%s", err.message);
    assert_int_equal(pieces, count);
    for (int i = 0; i <= count; i++) assert_int_equal(first[i], expected[i]);
}

static void where_it_may_be_cut(void **state) {
    (void)state;
    check_pieces(6, (int[]){0, 1, 2, 3, 4, 5, 6});
    layers[2].forward_macs = 0; /* an activation stays with what it follows */
    check_pieces(5, (int[]){0, 1, 3, 4, 5, 6});
    cuts[4] = 10.001; /* a shortcut crosses too */
    check_pieces(4, (int[]){0, 1, 3, 5, 6});
    cuts[4] = 9;
    check_pieces(5, (int[]){0, 1, 3, 4, 5, 6});
    layers[3].out.size[2] = 0.5; /* half the output: 10 are more than it */
    cuts[4] = 10;
    check_pieces(4, (int[]){0, 1, 3, 5, 6});
    workload.layer_count = 1;
    check_pieces(1, (int[]){0, 1});
}

/* More layers than pieces: those of the least work together are joined, the first of equals, until
 * 48 are left. */
static void the_least_are_joined(void **state) {
    (void)state;
    int expected[DL_STAGE_PIECES + 1], at = 0;
    workload.layer_count = DL_STAGE_PIECES + 2;
    for (int i = 0; i < MOST; i++) layers[i].forward_macs = 1000;
    layers[7].forward_macs = layers[8].forward_macs = 1;
    layers[20].forward_macs = 10; /* with the layer before it: 1010, as with the one behind */
    for (int i = 0; i <= workload.layer_count; i++)
        if (i != 8 && i != 7) expected[at++] = i;
    /* 7 and 8 join to 2; then 6 with them (1002) is less than 19 with 20 (1010) */
    check_pieces(DL_STAGE_PIECES, expected);
    layers[7].forward_macs = layers[8].forward_macs = 501;
    at = 0; /* 1002 for 7 and 8, then 1010 for 19 and 20, the first of the two */
    for (int i = 0; i <= workload.layer_count; i++)
        if (i != 8 && i != 20) expected[at++] = i;
    check_pieces(DL_STAGE_PIECES, expected);
    workload.layer_count = DL_STAGE_PIECES; /* no more than there is room for */
    for (int i = 0; i <= DL_STAGE_PIECES; i++) expected[i] = i;
    check_pieces(DL_STAGE_PIECES, expected);
}

/* States: choices of nodes x (pieces + 1) x (12 stages + 1), at most 200000. With 99 x 51 choices
 * ((98 + 1) (50 + 1) = 5049) 3.04 remain, so 2 pieces; with 5151 2.98, too few. */
static void room_for_pieces(void **state) {
    (void)state;
    struct dl_err err = {0};
    assert_int_equal(DL_STAGE_STATES, 200000);
    assert_int_equal(DL_STAGES, 12);
    job.group_count = 2;
    groups[0].nodes = 98, groups[1].nodes = 50;
    assert_int_equal(cut(&err), DL_OK);
    assert_int_equal(pieces, 2);
    assert_int_equal(first[0], 0);
    assert_int_equal(first[2], 6);
    groups[0].nodes = 100;
    assert_int_equal(cut(&err), DL_ERR_USAGE);
    assert_string_equal(err.message, "too many nodes to place stages exactly: at most 5128 choices "
                                     "of nodes");
    groups[0].nodes = 1000000; /* the product ends early */
    assert_int_equal(cut(&err), DL_ERR_USAGE);
    job.group_count = 1;
    groups[0].nodes = 2564; /* 6 pieces: 15384 / 2565 = 5.998 - 1, so 4 */
    assert_int_equal(cut(&err), DL_OK);
    assert_int_equal(pieces, 4);
    groups[0].nodes = 2196; /* 15384 / 2197 = 7.002 - 1 */
    assert_int_equal(cut(&err), DL_OK);
    assert_int_equal(pieces, 6);
    groups[0].nodes = 2197; /* 6.999 - 1 */
    assert_int_equal(cut(&err), DL_OK);
    assert_int_equal(pieces, 5);
}

/* Names of a plan's choices, in the order of their numbers; how recomputation is found. */
static void names_of_plans(void **state) {
    (void)state;
    static const struct {
        const char *const *names;
        const char *all;
    } rows[] = {
        {dl_optimizer_names, "sgd momentum adam lamb "},
        {dl_recompute_names, "none selective full "},
        {dl_schedule_names, "1f1b gpipe interleaved async "},
        {dl_assume_names, "nothing paradl "},
        {dl_master_weights_names, "fp32 none "},
        {dl_compiler_names, "open none xla inductor "},
        {dl_mapping_names, "data-inside pipeline-inside "},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char all[100] = "";
        for (const char *const *name = rows[i].names; *name != NULL; name++)
            snprintf(all + strlen(all), sizeof all - strlen(all), "%s ", *name);
        assert_string_equal(all, rows[i].all);
    }
    assert_int_equal(dl_recompute_find("none"), DL_RECOMPUTE_NONE);
    assert_int_equal(dl_recompute_find("selective"), DL_RECOMPUTE_SELECTIVE);
    assert_int_equal(dl_recompute_find("full"), DL_RECOMPUTE_FULL);
    assert_int_equal(dl_recompute_find("some"), -1);
    assert_int_equal(dl_plan_expert_ranks(&(struct dl_plan){.ep = 4}), 4);
    assert_int_equal(dl_plan_expert_ranks(&(struct dl_plan){.ep = 4, .folded = 1}), 4);
    assert_int_equal(dl_plan_expert_ranks(&(struct dl_plan){.ep = 4, .folded = 2}), 8);
}

#define test(function) cmocka_unit_test_setup_teardown(function, setup, teardown)
int main(void) {
    const struct CMUnitTest tests[] = {test(where_it_may_be_cut), test(the_least_are_joined),
                                       test(room_for_pieces), test(names_of_plans)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
