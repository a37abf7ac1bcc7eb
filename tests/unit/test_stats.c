/* Order statistics and the normal distribution, against values worked by hand or by quadrature. */
#include "model/statistics/stats.h"
#include "tests/check.h"

static void test_moments(void **state) {
    const double x[] = {2, 4, 4, 4, 5, 5, 7, 9}, wide[] = {1e16, 1, -1e16, 1};

    check_close(dl_mean(x, 8), 5, 0);      /* 40 / 8 */
    check_close(dl_mean(wide, 4), 0.5, 0); /* a plain sum gives 0.25 */
    check_nan(dl_mean(x, 0));
    check_nan(dl_mean((double[]){1, (double)NAN}, 2));
}

static void test_quantiles(void **state) {
    const double x[] = {10, 20, 30, 40};
    const double unsorted[] = {3, 1, 2};
    double scratch[5];

    check_close(dl_quantile_sorted(x, 4, 0.5), 25, 1e-15);    /* position 1.5 */
    check_close(dl_quantile_sorted(x, 4, 0.25), 17.5, 1e-15); /* position 0.75 */
    check_close(dl_quantile_sorted(x, 4, 0.9), 37, 1e-14);    /* position 2.7 */
    check_close(dl_quantile_sorted(x, 4, 0), 10, 0);
    check_close(dl_quantile_sorted(x, 4, 1), 40, 0);
    check_close(dl_quantile_sorted(x, 3, 1.5), 30, 0); /* beyond the ends: the ends */
    check_close(dl_quantile_sorted(x + 1, 3, -0.5), 20, 0);
    check_close(dl_quantile_sorted(x, 1, 0.3), 10, 0);
    check_nan(dl_quantile_sorted(x, 0, 0.5));
    check_nan(dl_quantile_sorted(x, 4, (double)NAN));
    check_close(dl_median(unsorted, 3, scratch), 2, 0);
    assert_true(unsorted[0] == 3); /* the input stays as it is */
    check_nan(dl_median((double[]){1, (double)NAN, 3}, 3, scratch));
    check_nan(dl_median(x, 0, scratch));
    /* median 2; deviations 1 1 0 0 8 */
    check_close(dl_mad((double[]){1, 1, 2, 2, 10}, 5, scratch), 1, 0);
    check_nan(dl_mad((double[]){1, (double)NAN}, 2, scratch));
}

static void test_sort(void **state) {
    double x[] = {3, (double)NAN, -1, (double)INFINITY, 2, -0.5};

    dl_sort(x, 6);
    assert_true(x[0] == -1 && x[1] == -0.5 && x[2] == 2 && x[3] == 3 && isinf(x[4]) && isnan(x[5]));
    dl_sort(x, 0);
}

/* Tables of the sign test: the largest l with 2 P(B(n, 1/2) <= l - 1) <= 0.05. */
static void test_median_interval(void **state) {
    static const struct {
        size_t n, low;
    } cases[] = {
        {5, 1},    /* too few: the extremes */
        {6, 1},    /* P(B <= 0) = 1/64 = 0.0156; P(B <= 1) = 7/64 */
        {8, 1},    /* P(B <= 0) = 1/256, P(B <= 1) = 9/256 = 0.035 */
        {9, 2},    /* P(B <= 1) = 10/512 = 0.0195 */
        {10, 2},   /* P(B <= 1) = 11/1024 = 0.0107, P(B <= 2) = 56/1024 */
        {20, 6},   /* P(B <= 5) = 21700/1048576 = 0.0207, P(B <= 6) = 60460/1048576 */
        {100, 40}, /* P(B <= 39) = 0.0176, P(B <= 40) = 0.0284 */
    };
    double sorted[3000], low, high;

    for (size_t i = 0; i < 3000; i++) sorted[i] = (double)(i + 1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        dl_median_interval(sorted, cases[i].n, &low, &high);
        check_close(low, (double)cases[i].low, 0);
        check_close(high, (double)(cases[i].n + 1 - cases[i].low), 0);
    }
    dl_median_interval(sorted, 2000, &low, &high); /* exact; 1000 - 1.96 sqrt(2000) / 2 = 956.2 */
    check_close(low, 956, 0.0011);
    dl_median_interval(sorted, 2002, &low, &high); /* normal; no step where the method changes */
    check_close(low, 957, 0);
    check_close(high, 1046, 0);
    dl_median_interval(sorted, 3000, &low, &high); /* 1500 - 53.68 */
    check_close(low, 1446, 0);
    dl_median_interval((double[]){1, 2, (double)NAN}, 3, &low, &high);
    check_nan(low);
    check_nan(high);
    dl_median_interval(sorted, 0, &low, &high);
    check_nan(low);
}

static void test_outliers(void **state) {
    const double x[] = {10, 11, 10.5, 9.5, 10.2, 30};
    const double same[] = {5, 5, 5, 5, 5}, one_off[] = {5, 5, 5, 5, 5, 5, 5, 5, 5, 9};
    bool outlier[10];
    double scratch[10];

    /* median 10.35; deviations .35 .65 .15 .85 .15 19.65, MAD 0.5: limit 3.5 * 1.4826 * 0.5 = 2.59
     */
    assert_int_equal(dl_outliers(x, 6, outlier, scratch), 1);
    assert_true(outlier[5] && !outlier[0] && !outlier[3]);
    assert_int_equal(dl_outliers(same, 5, outlier, scratch), 0);
    /* MAD 0; mean deviation 0.4: limit 3.5 * 1.2533 * 0.4 = 1.75 < 4 */
    assert_int_equal(dl_outliers(one_off, 10, outlier, scratch), 1);
    assert_true(outlier[9]);
    assert_int_equal(dl_outliers((double[]){1, (double)NAN, 100}, 3, outlier, scratch), 0);
    assert_int_equal(dl_outliers(x, 0, outlier, scratch), 0);
    /* MAD 0, mean deviation 5/8: limit 2.74, so 9 is far and 6 is not */
    const double near[] = {5, 6, 5, 5, 9, 5, 5, 5};
    assert_int_equal(dl_outliers(near, 8, outlier, scratch), 1);
    assert_true(outlier[4] && !outlier[1]);
    /* MAD 0, mean deviation 1/8: limit 0.548 */
    assert_int_equal(dl_outliers((double[]){1, 1, 1, 2, 1, 1, 1, 1}, 8, outlier, scratch), 1);
    assert_true(outlier[3]);
    /* the mean deviation of one off by d is d / n: beyond 3.5 x 1.2533 of it from n = 5 on */
    assert_int_equal(dl_outliers((double[]){1, 1, 1, 2}, 4, outlier, scratch), 0);
    assert_int_equal(dl_outliers((double[]){1, 1, 1, 1, 2}, 5, outlier, scratch), 1);
    /* with what is no number none is: the list says so too */
    memset(outlier, 1, sizeof outlier);
    assert_int_equal(dl_outliers((double[]){1, (double)NAN, 100}, 3, outlier, scratch), 0);
    assert_false(outlier[0] || outlier[1] || outlier[2]);
    /* MAD 1: limit 5.1891 */
    assert_int_equal(dl_outliers((double[]){0, 1, 2, 3, 7.18}, 5, outlier, scratch), 0);
    assert_int_equal(dl_outliers((double[]){0, 1, 2, 3, 7.2}, 5, outlier, scratch), 1);
}

/* E = int_0^inf (1 - Phi^k) - int_-inf^0 Phi^k by the trapezoid rule on another grid than the
 * table's. */
static double expected_by_quadrature(double k) {
    const double h = 1.0 / 256;
    double sum = 0;

    for (int i = 0; i <= 12 * 256; i++) {
        double x = i * h, weight = i == 0 ? 0.5 : 1;
        double above = -expm1(k * log1p(-0.5 * erfc(x / sqrt(2.0))));
        double below = exp(k * log(0.5 * erfc(x / sqrt(2.0)) + 1e-300));

        sum += weight * (above - below);
    }
    return sum * h;
}

static void test_normal_expected_max(void **state) {
    static const struct {
        double k, e;
    } table[] = {
        /* F-STRAGGLER */
        {16, 1.7660},  {32, 2.0697},  {64, 2.3437},   {128, 2.5946},
        {256, 2.8269}, {512, 3.0439}, {1024, 3.2482},
    };
    double last = 0;

    check_close(dl_normal_expected_max(1), 0, 1e-15);
    /* closed forms */
    check_close(dl_normal_expected_max(2), 1 / sqrt(3.14159265358979323846), 1e-11);
    check_close(dl_normal_expected_max(3), 1.5 / sqrt(3.14159265358979323846), 1e-5);
    check_close(dl_normal_expected_max(5), 1.1629644736405196, 1e-5);
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        check_close(dl_normal_expected_max(table[i].k), table[i].e, 3e-5);
    for (double k = 1.05; k < 1.1e9; k *= 1.37)
        check_close(dl_normal_expected_max(k), expected_by_quadrature(k), k < 1.1 ? 3e-4 : 1e-4);
    for (double k = 2; k < 2e9; k *= 2)
        check_close(dl_normal_expected_max(fmin(k, 1073741824.0)),
                    expected_by_quadrature(fmin(k, 1073741824.0)), 1e-7);
    check_close(dl_normal_expected_max(1e12), dl_normal_expected_max(1073741824.0), 0);
    for (double k = 1; k < 4e9; k *= 1.01) {
        double e = dl_normal_expected_max(k);

        if (e < last) fail_msg("falls at k = %.17g", k);
        last = e;
    }
    check_nan(dl_normal_expected_max(0.5));
    check_nan(dl_normal_expected_max((double)NAN));
}

/* Ten runs of 100 to 109: ranks 2 and 9 enclose the median 104.5 in 101..108: 7 / 104.5 = 6.70 %.
 * For 5 %: 10 x 1.3397^2 = 17.9; for 1 %, 449, but at most twice as many. */
static void repeats_by_hand(void **state) {
    double x[10];
    for (int i = 0; i < 10; i++) x[i] = 100 + i;
    assert_int_equal(dl_repeats_wanted(x, 10, 0.05), 18);
    assert_int_equal(dl_repeats_wanted(x, 10, 0.01), 20);
    assert_int_equal(dl_repeats_wanted(x, 10, 0.07), 10);
    assert_int_equal(dl_repeats_wanted(x, 5, 0.5), 6);
    assert_int_equal(dl_repeats_wanted(x, 0, 0.5), 6);
}

static void warm_up_by_hand(void **state) {
    double x[20], scratch[20];
    for (int i = 0; i < 20; i++) x[i] = 10 + 0.1 * (i % 3);
    assert_int_equal(dl_warmup_samples(x, 20, scratch), 0);
    x[0] = 30, x[1] = 15, x[2] = 11;
    assert_int_equal(dl_warmup_samples(x, 20, scratch), 3);
    x[1] = 10; /* one step that is fast by chance ends it, for the next four are steady but x[2] */
    assert_int_equal(dl_warmup_samples(x, 20, scratch), 1);
    for (int i = 0; i < 10; i++) x[i] = 20; /* never: half of them */
    assert_int_equal(dl_warmup_samples(x, 20, scratch), 10);
    assert_int_equal(dl_warmup_samples(x, 11, scratch), 0);
    for (int i = 0; i < 20; i++) x[i] = i < 3 ? 20 : 10 + 0.1 * (i % 3);
    assert_int_equal(dl_warmup_samples(x, 11, scratch), 0); /* too few to tell */
    assert_int_equal(dl_warmup_samples(x, 12, scratch), 3);
}

/* The median of the second half over that of the first, where their intervals do not meet: ranks 1
 * and 6 of 6. */
static void drift_by_hand(void **state) {
    double x[12], scratch[12];
    for (int i = 0; i < 12; i++) x[i] = 10 + (i < 6 ? 0.1 * i : 2 + 0.1 * i);
    check_close(dl_drift_frac(x, 12, scratch), 12.85 / 10.25 - 1, 1e-12);
    for (int i = 0; i < 12; i++) x[i] = 10 + (i < 6 ? 2 + 0.1 * i : 0.1 * i);
    check_close(dl_drift_frac(x, 12, scratch), 10.85 / 12.25 - 1, 1e-12);
    check_nan(dl_drift_frac(x, 11, scratch));
    x[11] = 12; /* the slowest of the second half meets the fastest of the first */
    check_nan(dl_drift_frac(x, 12, scratch));
    x[11] = 11.99;
    check_close(dl_drift_frac(x, 12, scratch), 10.85 / 12.25 - 1, 1e-12);
    for (int i = 0; i < 12; i++) x[i] = 10;
    check_nan(dl_drift_frac(x, 12, scratch));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_moments),    cmocka_unit_test(test_quantiles),
        cmocka_unit_test(test_sort),       cmocka_unit_test(test_median_interval),
        cmocka_unit_test(test_outliers),   cmocka_unit_test(test_normal_expected_max),
        cmocka_unit_test(repeats_by_hand), cmocka_unit_test(warm_up_by_hand),
        cmocka_unit_test(drift_by_hand),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
