/* F-PIPE-ORDER: the schedules against the closed forms of F-PIPE-GPIPE, and an order by hand. */
#include <limits.h>

#include "model/engine/schedule.h"
#include "tests/check.h"

static const double forward_s[] = {1, 1, 1, 1}, backward_s[] = {2, 2, 2, 2};

static double makespan_s(const struct dl_pipeline_pass *passes, int count) {
    double end_s = 0;
    for (int i = 0; i < count; i++) end_s = fmax(end_s, passes[i].end_s);
    return end_s;
}

/* Equal stages: (m + bubble steps) (t_f + t_b), nothing twice on one stage at a time. */
static void closed_forms(void **state) {
    static const struct {
        enum dl_schedule schedule;
        int parts, micro_batches;
    } cases[] = {{DL_1F1B, 1, 8},        {DL_1F1B, 1, 2},        {DL_GPIPE, 1, 8},
                 {DL_INTERLEAVED, 2, 8}, {DL_INTERLEAVED, 3, 4}, {DL_INTERLEAVED, 2, 12}};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        struct dl_arena arena = {0};
        struct dl_err err = {0};
        struct dl_pipeline_passes all;
        const struct dl_pipeline_order order = {.schedule = cases[c].schedule,
                                                .stages = 4,
                                                .parts = cases[c].parts,
                                                .micro_batches = cases[c].micro_batches,
                                                .forward_s = forward_s,
                                                .backward_s = backward_s};
        assert_int_equal(dl_pipeline_list(&order, INT_MAX, NULL, &arena, &all, &err), DL_OK);
        assert_int_equal(all.count, 2 * 4 * cases[c].parts * cases[c].micro_batches);
        check_close(makespan_s(all.list, all.count),
                    3 * (cases[c].micro_batches + 3.0 / cases[c].parts), 1e-12);
        for (int i = 1; i < all.count; i++) {
            if (all.list[i].stage == all.list[i - 1].stage)
                assert_true(all.list[i].start_s >= all.list[i - 1].end_s - 1e-12);
        }
        dl_arena_free(&arena);
    }
}

/* 1F1B, 2 stages, 3 micro-batches: stage 1 runs F1 F2 B1 F3 B2 B3, stage 2 F1 B1 F2 B2 F3 B3. B1 of
 * stage 1 waits until 4 for that of stage 2. */
static void an_order_by_hand(void **state) {
    struct dl_arena arena = {0};
    struct dl_err err = {0};
    struct dl_pipeline_passes all;
    const struct dl_pipeline_order order = {.schedule = DL_1F1B,
                                            .stages = 2,
                                            .parts = 1,
                                            .micro_batches = 3,
                                            .forward_s = forward_s,
                                            .backward_s = backward_s};
    static const struct {
        int stage, micro_batch;
        bool backward;
        double start_s;
    } wanted[] = {{0, 0, false, 0}, {0, 1, false, 1}, {0, 0, true, 4},  {0, 2, false, 6},
                  {0, 1, true, 7},  {0, 2, true, 10}, {1, 0, false, 1}, {1, 0, true, 2},
                  {1, 1, false, 4}, {1, 1, true, 5},  {1, 2, false, 7}, {1, 2, true, 8}};
    assert_int_equal(dl_pipeline_list(&order, INT_MAX, NULL, &arena, &all, &err), DL_OK);
    assert_int_equal(all.count, 12);
    for (int i = 0; i < all.count; i++) {
        assert_int_equal(all.list[i].stage, wanted[i].stage);
        assert_int_equal(all.list[i].micro_batch, wanted[i].micro_batch);
        assert_int_equal(all.list[i].kind == DL_PASS_BACKWARD, wanted[i].backward);
        check_close(all.list[i].start_s, wanted[i].start_s, 1e-12);
    }
    dl_arena_free(&arena);
}

/* ZB-H1, 2 stages, 2 micro-batches, F = B = W = 1: stage 1 runs F1 F2 B1 W1 B2 W2, stage 2 F1 B1 F2
 * B2 W1 W2: W1 waits until one more backward pass is through. 1F1B needs 3 more for its bubble: a
 * third of it is left, as the paper's table 2 has it. */
static void zero_bubble_by_hand(void **state) {
    struct dl_arena arena = {0};
    struct dl_err err = {0};
    struct dl_pipeline_passes all;
    const struct dl_pipeline_order order = {.schedule = DL_ZERO_BUBBLE,
                                            .stages = 2,
                                            .parts = 1,
                                            .micro_batches = 2,
                                            .forward_s = forward_s,
                                            .backward_s = backward_s,
                                            .weights_s = forward_s};
    static const struct {
        int stage, micro_batch;
        enum dl_pass_kind kind;
        double start_s;
    } wanted[] = {
        {0, 0, DL_PASS_FORWARD, 0},  {0, 1, DL_PASS_FORWARD, 1},  {0, 0, DL_PASS_BACKWARD, 3},
        {0, 0, DL_PASS_WEIGHTS, 4},  {0, 1, DL_PASS_BACKWARD, 5}, {0, 1, DL_PASS_WEIGHTS, 6},
        {1, 0, DL_PASS_FORWARD, 1},  {1, 0, DL_PASS_BACKWARD, 2}, {1, 1, DL_PASS_FORWARD, 3},
        {1, 1, DL_PASS_BACKWARD, 4}, {1, 0, DL_PASS_WEIGHTS, 5},  {1, 1, DL_PASS_WEIGHTS, 6}};
    assert_int_equal(dl_pipeline_list(&order, INT_MAX, NULL, &arena, &all, &err), DL_OK);
    assert_int_equal(all.count, 12);
    for (int i = 0; i < all.count; i++) {
        assert_int_equal(all.list[i].stage, wanted[i].stage);
        assert_int_equal(all.list[i].micro_batch, wanted[i].micro_batch);
        assert_int_equal(all.list[i].kind, wanted[i].kind);
        check_close(all.list[i].start_s, wanted[i].start_s, 1e-12);
    }
    dl_arena_free(&arena);
}

static void groups_of_stages(void **state) {
    struct dl_arena arena = {0};
    struct dl_err err = {0};
    struct dl_pipeline_passes all;
    const struct dl_pipeline_order order = {.schedule = DL_INTERLEAVED,
                                            .stages = 4,
                                            .parts = 2,
                                            .micro_batches = 6,
                                            .forward_s = forward_s,
                                            .backward_s = backward_s};
    assert_int_equal(dl_pipeline_list(&order, INT_MAX, NULL, &arena, &all, &err), DL_ERR_USAGE);
    dl_arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(closed_forms),
        cmocka_unit_test(an_order_by_hand),
        cmocka_unit_test(zero_bubble_by_hand),
        cmocka_unit_test(groups_of_stages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
