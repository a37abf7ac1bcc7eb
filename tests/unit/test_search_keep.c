/* What a search keeps (search_keep.c): the best in their order, one of plans that differ in the
 * mapping alone, and the front against all pairs. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/engine/strategies/strategy.h"
#include "model/search/search_parts.h"
#include "tests/check.h"

static struct dl_search_worker w;

static struct dl_found found_at(double score, double iteration_s, double memory_bytes,
                                int64_t order) {
    return (struct dl_found){
        .split = {.tp = order + 1, .nodes = 1, .devices_per_node = 1}, /* another plan each */
        .score = score,
        .iteration_s = iteration_s,
        .memory_bytes = memory_bytes,
        .order = order,
    };
}

static void keep(int most, struct dl_found found) {
    const struct dl_search_request r = {.keep = most};
    dl_search_keep(&r, &w, &found);
}

/* Rank by rank: the score decides, then time, then memory, then the place in the enumeration, each
 * against all that come after it. */
static void in_their_order(void **state) {
    (void)state;
    const struct dl_found ranked[] = {
        found_at(1, 9, 9, 9), found_at(2, 3, 8, 8), found_at(2, 4, 5, 7), found_at(2, 4, 6, 2),
        found_at(2, 4, 6, 6), found_at(3, 1, 1, 1), found_at(3, 1, 2, 0),
    };
    enum { ALL = sizeof ranked / sizeof *ranked };
    for (int most = 1; most <= ALL + 1; most++) {
        for (int first = 0; first < ALL; first++) {
            for (int step = 1; step < ALL; step++) { /* 7 is prime: each step takes all */
                dl_search_worker_clear(&w);
                for (int i = 0; i < ALL; i++) keep(most, ranked[(first + i * step) % ALL]);
                assert_int_equal(w.best_count, most < ALL ? most : ALL);
                for (int i = 0; i < w.best_count; i++)
                    assert_int_equal(w.best[i].order, ranked[i].order);
            }
        }
    }
    assert_int_equal(w.front_count, 0); /* not asked for */
}

/* The same in everything but the mapping: the first of them stays, whichever came first; different
 * in anything else: both. */
static void one_of_each_mapping(void **state) {
    (void)state;
    struct dl_found a = found_at(1, 2, 3, 5), b = a;
    b.split.mapping = (enum dl_mapping)1;
    for (int swap = 0; swap < 2; swap++) {
        a.order = swap ? 5 : 4, b.order = swap ? 4 : 5;
        dl_search_worker_clear(&w);
        keep(4, found_at(0, 1, 1, 9));
        keep(4, a);
        keep(4, b);
        assert_int_equal(w.best_count, 2);
        assert_int_equal(w.best[0].order, 9);
        assert_int_equal(w.best[1].order, 4);
        assert_int_equal(w.best[1].split.mapping, swap);
        keep(4, w.best[1]); /* itself once more, and where all places are taken */
        keep(2, b);
        assert_int_equal(w.best_count, 2);
        assert_int_equal(w.best[1].order, 4);
    }
}

/* The plan with one of its members changed. */
static struct dl_found changed(struct dl_found f, int member) {
    int64_t *const counts[] = {&f.split.tp,
                               &f.split.sp,
                               &f.split.ep,
                               &f.split.pp,
                               &f.split.dp,
                               &f.split.nodes,
                               &f.choice.virtual_stages};
    double *const numbers[] = {&f.iteration_s, &f.memory_bytes, &f.micro_samples};
    if (member < 7) ++*counts[member];
    if (member >= 7 && member < 10) ++*numbers[member - 7];
    if (member == 10) f.strategy = dl_strategy_find("zero3");
    if (member == 11) f.shard++;
    if (member == 12) f.split.sequence_parallel = true;
    if (member == 13) f.choice.schedule = (enum dl_schedule)(f.choice.schedule + 1);
    if (member == 14) f.choice.recompute = (enum dl_recompute)(f.choice.recompute + 1);
    f.order++;
    return f;
}

static void all_that_differ_otherwise(void **state) {
    (void)state;
    const struct dl_found a = found_at(1, 2, 3, 4);
    for (int member = 0; member < 15; member++) {
        const struct dl_found c = changed(a, member);
        for (int swap = 0; swap < 2; swap++) {
            dl_search_worker_clear(&w);
            keep(4, swap ? c : a);
            keep(4, swap ? a : c);
            if (w.best_count != 2) fail_msg("member %d makes no other plan", member);
            assert_int_equal(w.best[0].order, a.order);
            assert_int_equal(w.best[1].order, c.order);
        }
    }
}

static int64_t devices_of(const struct dl_found *f) {
    return f->split.nodes * f->split.devices_per_node;
}

/* By its definition: no worse in anything, and better in something or earlier. */
static bool beats(const struct dl_found *a, const struct dl_found *b) {
    const bool no_worse = a->iteration_s <= b->iteration_s && a->memory_bytes <= b->memory_bytes &&
                          devices_of(a) <= devices_of(b);
    const bool same = a->iteration_s == b->iteration_s && a->memory_bytes == b->memory_bytes &&
                      devices_of(a) == devices_of(b);
    return no_worse && (!same || a->order < b->order);
}

/* Few values, so that many are equal: what no other one beats, in the order of the enumeration,
 * whatever the order in which they were tried. */
static void front_against_all_pairs(void **state) {
    (void)state;
    enum { ALL = 40 };
    uint64_t seed = 17;
    const struct dl_search_request r = {.keep = 1, .front = true};
    for (int round = 0; round < 300; round++) {
        struct dl_found all[ALL];
        const int values = 2 + round % 9;
        for (int i = 0; i < ALL; i++) {
            all[i] = found_at(1, (double)(check_random(&seed) % (uint64_t)values),
                              (double)(check_random(&seed) % (uint64_t)values), i);
            all[i].split.nodes = 1 + (int64_t)(check_random(&seed) % 3);
            all[i].split.devices_per_node = 1 + (int64_t)(check_random(&seed) % 2);
        }
        dl_search_worker_clear(&w);
        for (int i = 0; i < ALL; i++) dl_search_keep(&r, &w, &all[(i * 7 + round) % ALL]);
        int at = 0;
        for (int i = 0; i < ALL; i++) {
            bool beaten = false;
            for (int k = 0; k < ALL; k++) beaten = beaten || beats(&all[k], &all[i]);
            if (beaten) continue;
            assert_true(at < w.front_count);
            assert_int_equal(w.front[at].order, i);
            check_close(w.front[at].iteration_s, all[i].iteration_s, 0);
            at++;
        }
        assert_int_equal(w.front_count, at);
    }
}

/* A full front takes no more, unless what comes beats something on it. */
static void full_front(void **state) {
    (void)state;
    dl_search_worker_clear(&w);
    for (int i = 0; i <= DL_SEARCH_FRONT; i++) {
        const struct dl_found f = found_at(1, i, DL_SEARCH_FRONT - i, i);
        dl_search_keep_front(&w, &f);
        assert_int_equal(w.front_count, i < DL_SEARCH_FRONT ? i + 1 : DL_SEARCH_FRONT);
    }
    assert_int_equal(w.front[0].order, 0);
    assert_int_equal(w.front[DL_SEARCH_FRONT - 1].order, DL_SEARCH_FRONT - 1);
    const struct dl_found best = found_at(1, -1, -1, 600);
    dl_search_keep_front(&w, &best);
    assert_int_equal(w.front_count, 1);
    assert_int_equal(w.front[0].order, 600);
}

/* Cleared, a worker has found, tried and refused nothing. */
static void cleared(void **state) {
    (void)state;
    memset(&w, 0x7f, sizeof w);
    dl_search_worker_clear(&w);
    assert_int_equal(w.best_count, 0);
    assert_int_equal(w.front_count, 0);
    assert_false(w.has_nearest);
    assert_int_equal(w.evaluated_count, 0);
    assert_int_equal(w.feasible_count, 0);
    for (int i = 0; i < DL_REJECTIONS; i++) {
        assert_int_equal(w.rejected_count[i], 0);
        assert_non_null(dl_rejection_names[i]);
    }
    assert_null(dl_rejection_names[DL_REJECTIONS]);
    assert_string_equal(dl_rejection_names[DL_NOT_HEADS], "tensor ranks do not divide the heads");
    assert_string_equal(dl_rejection_names[DL_NOT_MEMORY], "does not fit in memory");
    assert_string_equal(dl_rejection_names[DL_NOT_PARTS], "more parts than layers allow");
    assert_string_equal(dl_objective_names[DL_BY_TIME], "time");
    assert_string_equal(dl_objective_names[DL_BY_ENERGY], "energy");
    assert_string_equal(dl_objective_names[DL_BY_COST], "cost");
    assert_null(dl_objective_names[DL_BY_COST + 1]);
}

/* What was found as a plan: the strategy by its axes unless it has one, what was found in place of
 * what was asked, and nothing that another schedule or strategy has. */
static void plans_of_found(void **state) {
    (void)state;
    static const struct {
        int64_t tp, pp, sp, ep;
        int shard;
        const char *strategy, *name;
        int shard_out;
    } rows[] = {{1, 1, 1, 1, 0, NULL, "3d", 0},        {1, 1, 1, 1, 1, NULL, "zero1", 0},
                {1, 1, 1, 1, 2, NULL, "zero2", 0},     {1, 1, 1, 1, 3, NULL, "zero3", 0},
                {2, 1, 1, 1, 0, NULL, "3d", 0},        {2, 1, 1, 1, 2, NULL, "3d", 2},
                {1, 2, 1, 1, 1, NULL, "3d", 1},        {1, 1, 2, 1, 1, NULL, "3d", 1},
                {1, 1, 1, 4, 1, NULL, "expert", 1},    {2, 1, 1, 4, 0, NULL, "expert", 0},
                {2, 1, 1, 1, 0, "filter", "filter", 0}};
    static const enum dl_schedule schedules[] = {DL_1F1B, DL_INTERLEAVED, DL_GPIPE, DL_ASYNC};
    static struct dl_search search; /* of its request alone */
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct dl_found found = {
            .split = {.tp = rows[i].tp,
                      .pp = rows[i].pp,
                      .sp = rows[i].sp,
                      .ep = rows[i].ep,
                      .dp = 3,
                      .nodes = 5,
                      .devices_per_node = 7,
                      .sequence_parallel = i % 2 == 0,
                      .mapping = (enum dl_mapping)(i % 2)},
            .choice = {.schedule = schedules[i % 4],
                       .virtual_stages = 6,
                       .recompute = (enum dl_recompute)(i % 3)},
            .micro_samples = 2,
            .shard = rows[i].shard,
            .strategy = rows[i].strategy != NULL ? dl_strategy_find(rows[i].strategy) : NULL};
        search.request.fixed = (struct dl_plan){.global_batch_samples = 100,
                                                .batch_per_device_samples = 9,
                                                .virtual_stages = 11,
                                                .recompute_open = true,
                                                .expert_imbalance = 2.5,
                                                .precision = DL_MIXED};
        const struct dl_plan p = dl_search_plan(&search, &found);
        assert_string_equal(p.strategy->name, rows[i].name);
        assert_true(p.tp == rows[i].tp && p.pp == rows[i].pp && p.sp == rows[i].sp &&
                    p.ep == rows[i].ep && p.dp == 3 && p.nodes == 5 && p.devices_per_node == 7);
        assert_int_equal(p.shard, rows[i].shard_out);
        assert_int_equal(p.schedule, schedules[i % 4]);
        assert_int_equal(p.virtual_stages, schedules[i % 4] == DL_INTERLEAVED ? 6 : 0);
        assert_int_equal(p.recompute, i % 3);
        assert_false(p.recompute_open);
        assert_int_equal(p.sequence_parallel, i % 2 == 0);
        assert_int_equal(p.mapping, i % 2);
        check_close(p.micro_batch_samples, 2, 0);
        check_close(p.batch_per_device_samples, 0, 0);
        check_close(p.global_batch_samples, 100, 0);
        /* no rank has more than all of the tokens */
        check_close(p.expert_imbalance, rows[i].ep > 2 ? 2.5 : (double)rows[i].ep, 0);
        assert_int_equal(p.precision, DL_MIXED);
    }
}

/* What an objective makes of a plan on 2 x 4 devices of 250 W, 36 an hour a node, that takes 10 s;
 * the bound of the time follows from it. */
static void scores_and_bounds(void **state) {
    (void)state;
    static const struct {
        enum dl_objective objective;
        double score;
        bool bounds;
    } rows[] = {{DL_BY_TIME, 10, true},    {DL_BY_THROUGHPUT, 10, true}, {DL_BY_MEMORY, 7e9, false},
                {DL_BY_DEVICES, 8, false}, {DL_BY_ENERGY, 20000, true},  {DL_BY_COST, 0.2, true}};
    const struct dl_found found = {
        .split = {.nodes = 2, .devices_per_node = 4}, .iteration_s = 10, .memory_bytes = 7e9};
    static struct dl_search s;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        s.request = (struct dl_search_request){
            .objective = rows[i].objective, .device_w = 250, .node_price_per_hour = 36, .keep = 2};
        check_close(dl_search_score(&s.request, &found), rows[i].score, 1e-12);
        assert_int_equal(dl_search_bounds_time(&s), rows[i].bounds);
        dl_search_worker_clear(&w);
        w.best_count = 1, w.best[0].score = w.best[1].score = 3 * rows[i].score;
        check_close(dl_search_limit_s(&s, &w, &found.split), INFINITY, 0); /* room for another */
        w.best_count = 2;
        check_close(dl_search_limit_s(&s, &w, &found.split), rows[i].bounds ? 30 : INFINITY, 1e-12);
        s.request.every = true;
        assert_false(dl_search_bounds_time(&s));
        check_close(dl_search_limit_s(&s, &w, &found.split), INFINITY, 0);
        s.request.every = false, s.request.front = true;
        assert_false(dl_search_bounds_time(&s));
    }
    assert_false(dl_search_is_beyond(1, 1));
    assert_false(dl_search_is_beyond(1 + 0.9e-9, 1));
    assert_true(dl_search_is_beyond(1 + 1.1e-9, 1));
}

/* Fits up to the capacity, wherever that is not known; in time up to the deadline. The nearest of
 * what does not fit is kept. */
static void considered(void **state) {
    (void)state;
    static struct dl_search s;
    struct dl_found found = {.split = {.nodes = 1, .devices_per_node = 1}, .memory_bytes = 10};
    s.request = (struct dl_search_request){.objective = DL_BY_MEMORY, .keep = 3};
    dl_search_worker_clear(&w);
    s.capacity_bytes = NAN;
    dl_search_consider(&s, &w, &found);
    assert_true(found.fits);
    s.capacity_bytes = 10;
    found.split.tp = 1;
    dl_search_consider(&s, &w, &found);
    assert_true(found.fits);
    assert_int_equal(w.best_count, 2);
    check_close(w.best[0].score, 10, 0);
    static const double bytes[] = {13, 12, 14, 12};
    for (int i = 0; i < 4; i++) {
        found.memory_bytes = bytes[i], found.order = i;
        dl_search_consider(&s, &w, &found);
        assert_false(found.fits);
        assert_true(w.has_nearest);
        check_close(w.nearest.memory_bytes, i == 0 ? 13 : 12, 0);
        assert_int_equal(w.nearest.order, i == 0 ? 0 : 1); /* of equals the first */
    }
    assert_int_equal(w.rejected_count[DL_NOT_MEMORY], 4);
    assert_int_equal(w.evaluated_count, 6);
    assert_int_equal(w.feasible_count, 2);
    s.request.deadline_s = 5, found.memory_bytes = 1, found.split.tp = 2;
    for (int late = 0; late < 2; late++) {
        found.iteration_s = late ? 5.001 : 5;
        dl_search_consider(&s, &w, &found);
        assert_true(found.fits);
        assert_int_equal(w.feasible_count, 3);
        assert_int_equal(w.rejected_count[DL_NOT_DEADLINE], late);
    }
    assert_int_equal(w.best_count, 3);
    check_close(w.best[0].score, 1, 0);
}

/* The work of two together is that of one that did both. */
static void merged(void **state) {
    (void)state;
    static struct dl_search s;
    static struct dl_search_worker a, b, whole;
    for (int front = 0; front < 2; front++) {
        for (int parts = 0; parts < 4; parts++) { /* which of both has refused anything */
            s.request =
                (struct dl_search_request){.objective = DL_BY_TIME, .keep = 3, .front = front == 1};
            s.capacity_bytes = 100;
            dl_search_worker_clear(&a), dl_search_worker_clear(&b), dl_search_worker_clear(&whole);
            for (int i = 0; i < 12; i++) {
                struct dl_found found = found_at(0, 1 + i * 7 % 5, 40 + i * 5 % 7, i), again;
                if (i % 4 == 3 && (parts & (i % 2 == i / 4 % 2 ? 1 : 2)) != 0)
                    found.memory_bytes = 200 - i * 3 % 8;
                again = found;
                dl_search_consider(&s, i / 4 % 2 == 0 ? &a : &b, &found);
                dl_search_consider(&s, &whole, &again);
            }
            dl_search_merge(&s, &a, &b);
            assert_int_equal(a.best_count, whole.best_count);
            for (int i = 0; i < a.best_count; i++)
                assert_int_equal(a.best[i].order, whole.best[i].order);
            assert_int_equal(a.front_count, whole.front_count);
            assert_int_equal(a.front_count > 0, front);
            for (int i = 0; i < a.front_count; i++)
                assert_int_equal(a.front[i].order, whole.front[i].order);
            assert_int_equal(a.has_nearest, whole.has_nearest);
            if (whole.has_nearest)
                check_close(a.nearest.memory_bytes, whole.nearest.memory_bytes, 0);
            assert_int_equal(a.evaluated_count, 12);
            assert_int_equal(a.feasible_count, whole.feasible_count);
            for (int i = 0; i < DL_REJECTIONS; i++)
                assert_int_equal(a.rejected_count[i], whole.rejected_count[i]);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(in_their_order),
                                       cmocka_unit_test(one_of_each_mapping),
                                       cmocka_unit_test(all_that_differ_otherwise),
                                       cmocka_unit_test(front_against_all_pairs),
                                       cmocka_unit_test(full_front),
                                       cmocka_unit_test(plans_of_found),
                                       cmocka_unit_test(scores_and_bounds),
                                       cmocka_unit_test(considered),
                                       cmocka_unit_test(merged),
                                       cmocka_unit_test(cleared)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
