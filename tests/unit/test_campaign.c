/* test_campaign.c - campaigns whose schedule is worked out by hand, and properties of random
 * ones. */
#include "model/search/campaign/campaign_internal.h"
#include "tests/check.h"

static struct dl_campaign_result simulate(const struct dl_campaign *c, struct dl_arena *arena) {
    struct dl_campaign_result r;
    struct dl_err err = {0};
    if (dl_campaign_simulate(c, true, arena, &r, &err) != DL_OK) fail_msg("%s", err.message);
    return r;
}

static struct dl_campaign plain(const double *trial_s, int count, int64_t nodes) {
    return (struct dl_campaign){.nodes = nodes,
                                .devices_per_node = 1,
                                .devices_per_trial = 1,
                                .trial_s = trial_s,
                                .trial_count = count,
                                .seed = 1};
}

/* Whatever is added and taken, the least key comes first, of equal ones the one that came first:
 * against a search of all that are in. */
static void heap_in_order(void **state) {
    enum { STEPS = 4000 };
    static struct {
        double key;
        int id;
        bool in;
    } all[STEPS];
    struct dl_heap heap = {.arena = &test_arena};
    uint64_t seed = 3;
    int added = 0, inside = 0;
    for (int step = 0; step < STEPS; step++) {
        const bool grows = check_random(&seed) % 8 < (step / 500 % 2 == 0 ? 6u : 2u);
        if (grows || inside == 0) {
            all[added].key = (double)(check_random(&seed) % 50);
            all[added].id = (int)(check_random(&seed) % 1000) - 500, all[added].in = true;
            dl_heap_add(&heap, all[added].key, all[added].id);
            added++, inside++;
        } else {
            int least = -1;
            for (int i = 0; i < added; i++)
                if (all[i].in && (least < 0 || all[i].key < all[least].key)) least = i;
            const struct dl_heap_entry first = dl_heap_take(&heap);
            check_close(first.key, all[least].key, 0);
            assert_int_equal(first.id, all[least].id);
            assert_int_equal(first.order, least);
            all[least].in = false;
            inside--;
        }
        assert_int_equal(heap.count, inside);
    }
}

static void lists_by_hand(void **state) {
    const double same[] = {10, 10, 10, 10}, mixed[] = {2, 2, 2, 3, 3};
    struct dl_campaign c = plain(same, 4, 2);
    struct dl_campaign_result r = simulate(&c, &test_arena);
    check_close(r.makespan_s, 20, 1e-12);
    check_close(r.utilization_frac, 1, 1e-12);
    check_close(r.lower_bound_s, 20, 1e-12);
    /* in order: 2 2 | 2 3 | 3: slot 0: 2 + 2 + 3, slot 1: 2 + 3; longest first: 3 + 2 + 2, 3 + 2 */
    c = plain(mixed, 5, 2);
    check_close(simulate(&c, &test_arena).makespan_s, 7, 1e-12);
    c.order = DL_CAMPAIGN_LONGEST_FIRST;
    r = simulate(&c, &test_arena);
    check_close(r.makespan_s, 7, 1e-12);
    check_close(r.lower_bound_s, 6, 1e-12);
    check_close(r.list_bound_s, 6 + 0.5 * 3, 1e-12);
    check_close(r.longest_first_bound_s, 7 / (4.0 / 3 - 1.0 / 6), 1e-12);
    assert_int_equal(r.task_count, 5);
    assert_int_equal(r.full_count, 5);
    /* 4 devices a node, 2 for a trial: 2 slots a node; 8 for a trial: 2 nodes together */
    c = plain(same, 4, 3);
    c.devices_per_node = 4;
    c.devices_per_trial = 2;
    assert_int_equal(simulate(&c, &test_arena).slots, 6);
    c.devices_per_trial = 8;
    r = simulate(&c, &test_arena);
    assert_int_equal(r.slots, 1);
    check_close(r.makespan_s, 40, 1e-12);
}

/* More tasks than a first list holds, and than a second: each of them in its place, one after the
 * other on one slot. */
static void long_lists(void **state) {
    enum { TRIALS = 5000 };
    static double trial_s[TRIALS];
    for (int i = 0; i < TRIALS; i++) trial_s[i] = 1 + i % 7;
    const struct dl_campaign c = plain(trial_s, TRIALS, 1);
    const struct dl_campaign_result r = simulate(&c, &test_arena);
    assert_int_equal(r.task_count, TRIALS);
    double now_s = 0;
    for (int i = 0; i < TRIALS; i++) {
        assert_int_equal(r.tasks[i].trial, i);
        assert_int_equal(r.tasks[i].rung, 0);
        assert_int_equal(r.tasks[i].slot, 0);
        assert_false(r.tasks[i].failed);
        check_close(r.tasks[i].start_s, now_s, 1e-12);
        check_close(r.tasks[i].train_s, now_s, 1e-12);
        check_close(r.tasks[i].end_s, now_s + trial_s[i], 1e-12);
        now_s += trial_s[i];
    }
    check_close(r.makespan_s, now_s, 1e-12);
}

static void rungs_by_hand(void **state) {
    double nine[27];
    for (int i = 0; i < 27; i++) nine[i] = 9;
    struct dl_campaign c = plain(nine, 9, 9);
    c.policy = DL_CAMPAIGN_HALVING;
    c.reduction = 3;
    c.rungs = 3;
    /* 9 for 1 s, 3 for 2 s, 1 for 6 s */
    struct dl_campaign_result r = simulate(&c, &test_arena);
    check_close(r.makespan_s, 9, 1e-12);
    check_close(r.train_s, 9 * 1 + 3 * 2 + 6, 1e-12);
    assert_int_equal(r.task_count, 13);
    assert_int_equal(r.full_count, 1);
    c.nodes = 3;
    check_close(simulate(&c, &test_arena).makespan_s, 3 + 2 + 6, 1e-12);
    c.startup_s = 0.5;
    c.resume_s = 0.25;
    check_close(simulate(&c, &test_arena).makespan_s, 3 * 1.5 + 2.75 + 6.75, 1e-12);
    /* hyperband with 3 rungs: brackets of 9, 5 and 3 trials */
    c = plain(nine, 17, 17);
    c.policy = DL_CAMPAIGN_HYPERBAND;
    c.reduction = 3;
    c.rungs = 3;
    r = simulate(&c, &test_arena);
    /* 9 x 1 + 3 x 2 + 1 x 6; 5 x 3 + 1 x 6; 3 x 9 */
    check_close(r.train_s, 21 + 21 + 27, 1e-12);
    check_close(r.makespan_s, 9, 1e-12);
    assert_int_equal(r.full_count, 1 + 1 + 3);
}

static void asynchronous_by_hand(void **state) {
    const double two[] = {2, 2, 2, 2};
    struct dl_campaign c = plain(two, 2, 1);
    c.policy = DL_CAMPAIGN_ASHA;
    c.reduction = 2;
    c.rungs = 2;
    /* 1 s each, then the better one for another second */
    struct dl_campaign_result r = simulate(&c, &test_arena);
    check_close(r.makespan_s, 3, 1e-12);
    assert_int_equal(r.task_count, 3);
    assert_int_equal(r.tasks[2].rung, 1);
    /* two slots: 0 and 1 end at 1 s; one is promoted beside trial 2; at 2 s trial 3; it ends at 3 s
     * and a second one of four is promoted until 4 s */
    c = plain(two, 4, 2);
    c.policy = DL_CAMPAIGN_ASHA;
    c.reduction = 2;
    c.rungs = 2;
    r = simulate(&c, &test_arena);
    assert_int_equal(r.task_count, 4 + 2);
    check_close(r.train_s, 6, 1e-12);
    /* half of four stop after half of the training */
    c = plain(two, 4, 4);
    c.policy = DL_CAMPAIGN_MEDIAN_STOP;
    c.check_count = 1;
    c.survive_frac[0] = 0.5;
    r = simulate(&c, &test_arena);
    check_close(r.makespan_s, 2, 1e-12);
    check_close(r.train_s, 2 * 1 + 2 * 2, 1e-12);
    assert_int_equal(r.full_count, 2);
}

static void copies_and_dispatch_by_hand(void **state) {
    const double three[] = {3, 3, 3, 3};
    struct dl_campaign c = plain(three, 2, 2);
    c.stage_bytes = 10;
    c.node_bytes_per_s = 10;
    c.shared_bytes_per_s = 10;
    /* two copies at half the rate: 2 s; the start-up of 1 s goes on meanwhile */
    c.startup_s = 1;
    struct dl_campaign_result r = simulate(&c, &test_arena);
    check_close(r.makespan_s, 5, 1e-12);
    check_close(r.stage_wait_s, 2, 1e-12);
    /* the second starts 0.5 s later: 5 bytes alone, then both at 5 bytes/s: ends at 1.5 and 2 s */
    c.dispatch_s = 0.5;
    r = simulate(&c, &test_arena);
    check_close(r.tasks[0].train_s, 1.5, 1e-12);
    check_close(r.tasks[1].train_s, 2, 1e-12);
    /* a node copies once: two tasks one after another wait once */
    c = plain(three, 2, 1);
    c.stage_bytes = 10;
    c.node_bytes_per_s = c.shared_bytes_per_s = 10;
    check_close(simulate(&c, &test_arena).makespan_s, 1 + 6, 1e-12);
    /* the scheduler starts one a second: the fourth at 3 s */
    c = plain(three, 4, 4);
    c.dispatch_s = 1;
    check_close(simulate(&c, &test_arena).makespan_s, 6, 1e-12);
    struct dl_campaign_limits limits;
    assert_int_equal(dl_campaign_find_limits(&c, 6, &test_arena, &limits, NULL), DL_OK);
    check_close(limits.dispatch_frac, -0.5, 1e-12);
    check_close(limits.slots_frac, 0, 1e-12);
}

/* A task that begins again after each failure takes (e^(rate T) - 1) / rate on average. */
static void failures(void **state) {
    enum { COUNT = 40000 };
    static double trial_s[COUNT];
    for (int i = 0; i < COUNT; i++) trial_s[i] = 1;
    struct dl_campaign c = plain(trial_s, COUNT, 1);
    c.device_failures_per_s = 0.5;
    struct dl_campaign_result r = simulate(&c, &test_arena);
    check_close(r.makespan_s / COUNT, (exp(0.5) - 1) / 0.5, 0.02);
    check_close(r.train_s - r.lost_s, COUNT, 1e-9);
    /* with a checkpoint every tenth little is lost: each tenth for itself */
    c.checkpoint_s = 0.1;
    r = simulate(&c, &test_arena);
    check_close(r.makespan_s / COUNT, 10 * (exp(0.05) - 1) / 0.5, 0.01);
    const double lost_s = r.lost_s;
    c.repair_s = 2;
    const struct dl_campaign_result repaired = simulate(&c, &test_arena);
    check_close(repaired.makespan_s, r.makespan_s + 2.0 * r.failure_count, 1e-9);
    check_close(repaired.lost_s, lost_s, 1e-9);
    /* nothing would ever end */
    c.checkpoint_s = 0;
    c.device_failures_per_s = 1e3;
    c.trial_count = 10;
    assert_int_equal(dl_campaign_simulate(&c, false, &test_arena, &r, NULL), DL_ERR_USAGE);
}

static void bounds_hold(void **state) {
    uint64_t seed = 20261123;
    for (int round = 0; round < 400; round++) {
        struct dl_arena arena = {0};
        double trial_s[60];
        const int count = 1 + (int)(check_random(&seed) % 60);
        for (int i = 0; i < count; i++) trial_s[i] = 0.5 + (double)(check_random(&seed) % 1000);
        struct dl_campaign c = plain(trial_s, count, 1 + (int64_t)(check_random(&seed) % 9));
        c.policy = (enum dl_campaign_policy)(check_random(&seed) % DL_CAMPAIGN_POLICIES);
        c.order = (enum dl_campaign_order)(check_random(&seed) % 2);
        c.reduction = 2 + (double)(check_random(&seed) % 3);
        c.rungs = 1 + (int)(check_random(&seed) % 4);
        c.check_count = 2;
        c.survive_frac[0] = c.survive_frac[1] = 0.5;
        c.startup_s = (double)(check_random(&seed) % 3);
        const struct dl_campaign_result r = simulate(&c, &arena);
        const double close = 1 + 1e-9;
        if (c.policy != DL_CAMPAIGN_HYPERBAND && c.policy != DL_CAMPAIGN_ASHA)
            assert_true(r.makespan_s * close >= r.train_s / (double)r.slots);
        if (isfinite(r.list_bound_s)) {
            assert_true(r.makespan_s <= r.list_bound_s * close);
            assert_true(r.makespan_s * close >= r.lower_bound_s);
        }
        if (isfinite(r.longest_first_bound_s))
            assert_true(r.longest_first_bound_s <= r.lower_bound_s * (4.0 / 3) * close);
        assert_true(r.utilization_frac <= close);
        /* no slot runs two tasks at once, and every trial at most one */
        for (int i = 0; i < r.task_count; i++) {
            for (int k = 0; k < i; k++) {
                const struct dl_campaign_task *a = &r.tasks[i], *b = &r.tasks[k];
                if (a->slot != b->slot && a->trial != b->trial) continue;
                assert_true(a->start_s >= b->end_s - 1e-9 || b->start_s >= a->end_s - 1e-9);
            }
        }
        dl_arena_free(&arena);
    }
}

/* Whether the slot runs a task or is repaired at that time. */
static bool is_busy(const struct dl_campaign_result *r, int64_t slot, double time_s,
                    double repair_s) {
    for (int i = 0; i < r->task_count; i++) {
        const struct dl_campaign_task *t = &r->tasks[i];
        if (t->slot == slot && t->start_s <= time_s &&
            time_s <= t->end_s + (t->failed ? repair_s : 0))
            return true;
    }
    return false;
}

/* A task takes the first slot that is free, also one that was repaired; what failed is done again
 * from the last checkpoint; trials in full are as many as the policy leaves. */
static void slots_and_failures(void **state) {
    uint64_t seed = 5;
    int failed = 0;
    for (int round = 0; round < 200; round++) {
        struct dl_arena arena = {0};
        double trial_s[40], trained_s[40] = {0};
        const int count = 4 + (int)(check_random(&seed) % 36);
        for (int i = 0; i < count; i++) trial_s[i] = 1 + 100 * check_uniform(&seed);
        struct dl_campaign c = plain(trial_s, count, 2 + (int64_t)(check_random(&seed) % 8));
        c.policy = (enum dl_campaign_policy)(check_random(&seed) % DL_CAMPAIGN_POLICIES);
        c.reduction = 2, c.rungs = 3;
        c.check_count = 1, c.survive_frac[0] = 0.5;
        c.device_failures_per_s = 0.005;
        c.repair_s = 10 * check_uniform(&seed);
        c.checkpoint_s = round % 2 == 0 ? 0 : 1 + 10 * check_uniform(&seed);
        c.seed = check_random(&seed);
        const struct dl_campaign_result r = simulate(&c, &arena);
        double train_s = 0, last_s = 0;
        int failures = 0;
        for (int i = 0; i < r.task_count; i++) {
            const struct dl_campaign_task *t = &r.tasks[i];
            assert_true(t->slot >= 0 && t->slot < r.slots);
            for (int64_t k = 0; k < t->slot; k++)
                if (!is_busy(&r, k, t->start_s, c.repair_s))
                    fail_msg("slot %d is free at %g s", (int)k, t->start_s);
            const double own_s = t->end_s - t->train_s;
            train_s += own_s;
            failures += t->failed;
            if (!t->failed) last_s = fmax(last_s, t->end_s);
            trained_s[t->trial] +=
                t->failed ? c.checkpoint_s > 0 ? floor(own_s / c.checkpoint_s) * c.checkpoint_s : 0
                          : own_s;
        }
        check_close(r.train_s, train_s, 1e-9);
        check_close(r.makespan_s, last_s, 1e-12);
        assert_int_equal(r.failure_count, failures);
        failed += failures;
        double kept_s = 0;
        int full = 0;
        for (int i = 0; i < count; i++) {
            kept_s += trained_s[i];
            assert_true(trained_s[i] <= trial_s[i] * (1 + 1e-9));
            full += trained_s[i] > trial_s[i] * (1 - 1e-9);
        }
        check_close(r.train_s - r.lost_s, kept_s, 1e-9);
        assert_int_equal(r.full_count, full);
        check_close(r.utilization_frac, kept_s / ((double)r.slots * r.makespan_s), 1e-9);
        dl_arena_free(&arena);
    }
    assert_true(failed > 500);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(heap_in_order),
                                       cmocka_unit_test(long_lists),
                                       cmocka_unit_test(lists_by_hand),
                                       cmocka_unit_test(rungs_by_hand),
                                       cmocka_unit_test(asynchronous_by_hand),
                                       cmocka_unit_test(copies_and_dispatch_by_hand),
                                       cmocka_unit_test(failures),
                                       cmocka_unit_test(bounds_hold),

                                       cmocka_unit_test(slots_and_failures)};
    return cmocka_run_group_tests(tests, NULL, check_free);
}
