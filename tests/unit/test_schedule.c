/* F-PIPE-ORDER, F-PIPE-ZERO-BUBBLE, F-PIPE-ZBV, F-PIPE-DUALPIPE: the schedules against the closed
 * forms of F-PIPE-GPIPE and of their papers, and orders by hand. */
#include <limits.h>

#include "model/engine/schedule.h"
#include "tests/check.h"

static const double ones[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
                    twos[16] = {2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2}, fours[] = {4, 4};

static struct dl_pipeline_order order_of(enum dl_schedule schedule, int stages, int parts,
                                         int micro_batches) {
    return (struct dl_pipeline_order){.schedule = schedule,
                                      .stages = stages,
                                      .parts = parts,
                                      .micro_batches = micro_batches,
                                      .forward_s = ones,
                                      .backward_s = twos,
                                      .weights_s = ones};
}

static double makespan_s(const struct dl_pipeline_passes *all) {
    double end_s = 0;
    for (int i = 0; i < all->count; i++) end_s = fmax(end_s, all->list[i].end_s);
    return end_s;
}

/* Passes of one stage as "f0@0 F0@3.5": letters as in struct dl_schedule_block, micro-batch,
 * start. */
static void stage_runs(const struct dl_pipeline_passes *all, int stage, const char *wanted) {
    static const char letters[DL_PASS_KINDS][3] = {"fF", "iI", "wW"};
    char text[1024] = "";
    for (int i = 0; i < all->count; i++) {
        const struct dl_pipeline_pass *x = &all->list[i];
        if (x->stage != stage) continue;
        const size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%c%d@%g", used > 0 ? " " : "",
                 letters[x->kind][x->part], x->micro_batch, x->start_s);
    }
    assert_string_equal(text, wanted);
}

/* Equal stages take m (t_f + t_b) and the bubble; nothing runs twice on one stage at a time. F = 1,
 * B = 2, with it W = 1. Bubbles: (p - 1)/v (F + B); ZB-V (p - 1) F/2; DualPipe (p/2 - 1) (F&B + B
 * - 3 W). Long runs leave out periods. */
static void closed_forms(void **state) {
    static const struct {
        enum dl_schedule schedule;
        int stages, parts, micro_batches;
        double bubble_s;
    } cases[] = {{DL_1F1B, 4, 1, 8, 9},        {DL_1F1B, 4, 1, 2, 9},
                 {DL_GPIPE, 4, 1, 8, 9},       {DL_INTERLEAVED, 4, 2, 8, 4.5},
                 {DL_INTERLEAVED, 4, 3, 4, 3}, {DL_INTERLEAVED, 4, 2, 12, 4.5},
                 {DL_ZERO_BUBBLE, 4, 1, 8, 3}, {DL_ZBV, 4, 2, 7, 1.5},
                 {DL_ZBV, 4, 2, 20, 1.5},      {DL_ZBV, 16, 2, 40, 7.5},
                 {DL_ZBV, 4, 2, 1001, 1.5},    {DL_DUALPIPE, 2, 2, 4, 0},
                 {DL_DUALPIPE, 4, 2, 8, 2},    {DL_DUALPIPE, 6, 2, 14, 4},
                 {DL_DUALPIPE, 16, 2, 64, 14}, {DL_DUALPIPE, 4, 2, 1002, 2},
                 {DL_DUALPIPEV, 1, 2, 2, 0},   {DL_DUALPIPEV, 4, 2, 8, 3},
                 {DL_DUALPIPEV, 8, 2, 1001, 7}};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        struct dl_arena arena = {0};
        struct dl_pipeline_passes all;
        double ends_s[16];
        const struct dl_schedule_row *row = dl_schedules[cases[c].schedule];
        const int m = cases[c].micro_batches, chains = dl_placing_chains(row->placing);
        const struct dl_pipeline_order order =
            order_of(cases[c].schedule, cases[c].stages, cases[c].parts, m);
        assert_int_equal(dl_pipeline_list(&order, INT_MAX, NULL, &arena, &all, NULL), DL_OK);
        assert_int_equal(all.count, (row->splits_backward ? 3 : 2) * cases[c].stages *
                                        cases[c].parts * m / chains);
        check_close(makespan_s(&all), 3 * m + cases[c].bubble_s, 1e-12);
        check_close(dl_pipeline_span(&order, m, &arena, ends_s), 3 * m + cases[c].bubble_s, 1e-12);
        assert_true(dl_pipeline_least_s(&order, m) <= (3 * m + cases[c].bubble_s) * (1 + 1e-12));
        for (int i = 1; i < all.count; i++) {
            if (all.list[i].stage == all.list[i - 1].stage)
                assert_true(all.list[i].start_s >= all.list[i - 1].end_s - 1e-12);
        }
        dl_arena_free(&arena);
    }
}

/* What a stage holds at most is what held() says: in parts of micro-batches, equal ones. */
static void held_is_counted(void **state) {
    static const enum dl_schedule schedules[] = {DL_1F1B, DL_GPIPE, DL_ZBV, DL_DUALPIPE,
                                                 DL_DUALPIPEV};
    for (int c = 0; c < 5 * 12; c++) {
        struct dl_arena arena = {0};
        struct dl_pipeline_passes all;
        const enum dl_schedule schedule = schedules[c % 5];
        const struct dl_schedule_row *row = dl_schedules[schedule];
        const int stages = 2 + c / 5 % 3 * 2,
                  m = row->refuses != NULL ? 2 * stages + c / 5 % 2 * 2 : 1 + c / 5 * 2;
        const struct dl_pipeline_order order = order_of(schedule, stages, row->most_parts, m);
        assert_int_equal(dl_pipeline_list(&order, INT_MAX, NULL, &arena, &all, NULL), DL_OK);
        const enum dl_pass_kind frees = row->splits_backward ? DL_PASS_WEIGHTS : DL_PASS_BACKWARD;
        const int own = all.count / stages;
        for (int s = 0; s < stages; s++) {
            int now = 0, most = 0;
            for (int i = 0; i < own; i++) {
                const struct dl_pipeline_pass *x = &all.list[s * own + i];
                now += (x->kind == DL_PASS_FORWARD) - (x->kind == frees);
                most = now > most ? now : most;
            }
            check_close(most,
                        row->held(s, stages, m, row->most_parts) *
                            (row->placing == DL_PLACED_IN_V ? 2 : 1),
                        1e-12);
        }
        dl_arena_free(&arena);
    }
}

/* 2 stages, by hand. 1F1B, 3 micro-batches: B1 of stage 1 waits until 4 for that of stage 2. ZB-H1,
 * 2 micro-batches: a third of 1F1B's bubble is left. ZB-V, parts of unit length: stage 2 begins
 * and ends one pass after stage 1, without a wait between. DualPipe: F and B of the two directions
 * as one (F1, i0, w0 of stage 1); stage 2 does the same with its parts exchanged; none waits. */
static void orders_by_hand(void **state) {
    struct dl_pipeline_passes all;
    struct dl_pipeline_order order = order_of(DL_1F1B, 2, 1, 3);
    assert_int_equal(dl_pipeline_list(&order, INT_MAX, NULL, &test_arena, &all, NULL), DL_OK);
    stage_runs(&all, 0, "f0@0 f1@1 i0@4 f2@6 i1@7 i2@10");
    stage_runs(&all, 1, "f0@1 i0@2 f1@4 i1@5 f2@7 i2@8");
    order = order_of(DL_ZERO_BUBBLE, 2, 1, 2);
    assert_int_equal(dl_pipeline_list(&order, INT_MAX, NULL, &test_arena, &all, NULL), DL_OK);
    stage_runs(&all, 0, "f0@0 f1@1 i0@3 w0@4 i1@5 w1@6");
    stage_runs(&all, 1, "f0@1 i0@2 f1@3 i1@4 w0@5 w1@6");
    order = order_of(DL_ZBV, 2, 2, 3);
    order.forward_s = order.weights_s = twos;
    order.backward_s = fours;
    assert_int_equal(dl_pipeline_list(&order, INT_MAX, NULL, &test_arena, &all, NULL), DL_OK);
    stage_runs(&all, 0,
               "f0@0 f1@1 f2@2 F0@3 I0@4 W0@5 F1@6 I1@7 W1@8 i0@9 w0@10 F2@11 I2@12 W2@13 "
               "i1@14 w1@15 i2@16 w2@17");
    stage_runs(&all, 1,
               "f0@1 F0@2 f1@3 F1@4 I0@5 W0@6 f2@7 i0@8 w0@9 F2@10 I1@11 W1@12 i1@13 I2@14 "
               "i2@15 w1@16 W2@17 w2@18");
    order = order_of(DL_DUALPIPE, 2, 2, 4);
    assert_int_equal(dl_pipeline_list(&order, INT_MAX, NULL, &test_arena, &all, NULL), DL_OK);
    stage_runs(&all, 0, "f0@0 F0@1 f1@2 I0@3 W0@4 F1@5 i0@6 w0@7 I1@8 W1@9 i1@10 w1@11");
    stage_runs(&all, 1, "F0@0 f0@1 F1@2 i0@3 w0@4 f1@5 I0@6 W0@7 i1@8 w1@9 I1@10 W1@11");
}

static void refused(void **state) {
    struct dl_arena arena = {0};
    struct dl_pipeline_passes all;
    const struct dl_pipeline_order order = order_of(DL_INTERLEAVED, 4, 2, 6); /* groups of 4 */
    assert_int_equal(dl_pipeline_list(&order, INT_MAX, NULL, &arena, &all, NULL), DL_ERR_USAGE);
    dl_arena_free(&arena);
    assert_int_equal(dl_schedule_check(DL_DUALPIPE, 0, 4, 8, NULL), DL_OK);
    assert_int_equal(dl_schedule_check(DL_DUALPIPE, 0, 3, 8, NULL), DL_ERR_USAGE);
    assert_int_equal(dl_schedule_check(DL_DUALPIPE, 0, 4, 9, NULL), DL_ERR_USAGE);
    assert_int_equal(dl_schedule_check(DL_DUALPIPE, 0, 4, 6, NULL), DL_ERR_USAGE);
    assert_int_equal(dl_schedule_check(DL_ZBV, 2, 4, 1, NULL), DL_OK);
    assert_int_equal(dl_schedule_check(DL_ZBV, 3, 4, 8, NULL), DL_ERR_USAGE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(closed_forms),
        cmocka_unit_test(held_is_counted),
        cmocka_unit_test(orders_by_hand),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, NULL, check_free);
}
