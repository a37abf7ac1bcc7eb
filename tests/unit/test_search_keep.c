/* What a search keeps (search_keep.c): the best in their order, one of plans that differ in the
 * mapping alone, and the front against all pairs. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/parallel/strategy.h"
#include "model/search/search.h"
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

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(in_their_order),
                                       cmocka_unit_test(one_of_each_mapping),
                                       cmocka_unit_test(all_that_differ_otherwise),
                                       cmocka_unit_test(front_against_all_pairs),
                                       cmocka_unit_test(full_front),
                                       cmocka_unit_test(cleared)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
