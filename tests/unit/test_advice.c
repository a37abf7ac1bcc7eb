/* How many nodes: each choice worked by hand. */
#include "model/engine/advice.h"
#include "tests/check.h"

/* 1, 2, 4, 8, 16 nodes: costs per sample 1, 1.05, 1.09, 1.3, 2.2 times a half; 16 000 samples. */
static const double SAMPLES = 16000;
static void make(struct dl_advice_point *p) {
    static const double cost[] = {0.5, 0.525, 0.545, 0.65, 1.1};
    for (int i = 0; i < 5; i++) {
        const double nodes = (double)(1 << i), rate = nodes / cost[i];
        p[i] = (struct dl_advice_point){.nodes = 1 << i,
                                        .samples_per_s = rate,
                                        .half_log = 0.12,
                                        .efficiency = 0.5 / cost[i],
                                        .cost_per_sample = cost[i],
                                        .run_s = SAMPLES / rate,
                                        .run_cost = SAMPLES * cost[i],
                                        .fits = true};
    }
}

/* F-KNEE */
static void knee_by_hand(void **state) {
    struct dl_advice_point p[5];
    const struct dl_advice_limits none = {0, 0};
    make(p);
    struct dl_advice a = dl_advice_of(p, 5, &none);
    assert_int_equal(a.knee, 2); /* 1.09; 1.3 is beyond 1.1 */
    assert_int_equal(a.cheapest, 0);
    assert_int_equal(a.fastest, 4);      /* 14.5 samples/s before 12.3 */
    assert_int_equal(a.inefficient, 3);  /* 0.77; 0.92 before it */
    assert_int_equal(a.tied_fastest, 3); /* log(14.5 / 12.3) = 0.167 < 0.12 sqrt(2) */
    assert_int_equal(a.in_time, -1);
    assert_int_equal(a.in_budget, -1);
    /* what does not fit is passed over */
    p[0].fits = p[4].fits = false;
    a = dl_advice_of(p, 5, &none);
    assert_int_equal(a.cheapest, 1);
    assert_int_equal(a.fastest, 3);
    assert_int_equal(a.tied_fastest, -1);
    for (int i = 0; i < 5; i++) p[i].fits = false;
    a = dl_advice_of(p, 5, &none);
    assert_int_equal(a.knee, -1);
    assert_int_equal(a.fastest, -1);
}

static void limits_by_hand(void **state) {
    struct dl_advice_point p[5];
    make(p);
    /* run times 8000, 4200, 2180, 1300, 1100 s; costs 8000, 8400, 8720, 10400, 17600 */
    struct dl_advice_limits limits = {.deadline_s = 2200, .budget = 10400};
    struct dl_advice a = dl_advice_of(p, 5, &limits);
    assert_int_equal(a.in_time, 2);
    assert_int_equal(a.in_budget, 3);
    limits = (struct dl_advice_limits){.deadline_s = 1000, .budget = 7999};
    a = dl_advice_of(p, 5, &limits);
    assert_int_equal(a.in_time, -1);
    assert_int_equal(a.in_budget, -1);
    for (int i = 0; i < 5; i++) p[i].run_s = p[i].run_cost = NAN; /* no length, no price */
    limits = (struct dl_advice_limits){.deadline_s = 1e9, .budget = 1e9};
    a = dl_advice_of(p, 5, &limits);
    assert_int_equal(a.in_time, -1);
    assert_int_equal(a.in_budget, -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knee_by_hand),
        cmocka_unit_test(limits_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
