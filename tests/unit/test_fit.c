/* Fits of message times: what is recovered from made-up samples of known truth, whether the
 * intervals hold, and where one line becomes several. */
#include "calibrate/fits/fit_link.h"
#include "tests/check.h"

static double normal(uint64_t *random) {
    double u = check_uniform(random), v = check_uniform(random);
    return sqrt(-2.0 * log(1.0 - u)) * cos(6.283185307179586 * v);
}

/* Sizes 8, 32, ... 2^27; times alpha + beta n with a relative error of `sigma`. */
static size_t series(struct dl_link_sample *out, double alpha_s, double beta, double sigma,
                     uint64_t *random) {
    size_t n = 0;
    for (double bytes = 8.0; bytes <= 0x1p27; bytes *= 4.0, n++)
        out[n] = (struct dl_link_sample){bytes,
                                         (alpha_s + beta * bytes) * (1.0 + sigma * normal(random))};
    return n;
}

static void two_samples_give_the_line_through_them(void **state) {
    /* 2 us + n / (10 GB/s): 1000 B take 2.1 us, 30000 B 5 us. */
    const struct dl_link_sample samples[] = {{30000.0, 5e-6}, {1000.0, 2.1e-6}};
    struct dl_link_line line;
    assert_int_equal(dl_fit_line(samples, 2, &line, NULL), DL_OK);
    check_close(line.alpha_s, 2e-6, 1e-9);
    check_close(line.beta_s_per_byte, 1e-10, 1e-9);
    check_nan(line.alpha_variance);
    check_nan(line.sigma_frac);
    check_nan(dl_line_alpha_half(&line, 0.95));
}

/* Samples (1, 1), (2, 2.2), (3, 2.8) with weights 1/t of the fitted line, solved by hand once: for
 * the line a + b n the conditions are sum((t - f)/f^2) = 0 and sum((t - f) n/f^2) = 0. Checked here
 * as conditions, not as numbers. */
static void relative_squares_are_least(void **state) {
    const struct dl_link_sample samples[] = {{1.0, 1.0}, {2.0, 2.2}, {3.0, 2.8}};
    struct dl_link_line line;
    double constant = 0.0, slope = 0.0;
    assert_int_equal(dl_fit_line(samples, 3, &line, NULL), DL_OK);
    for (int i = 0; i < 3; i++) {
        double fitted = line.alpha_s + line.beta_s_per_byte * samples[i].bytes;
        constant += (samples[i].time_s - fitted) / (fitted * fitted);
        slope += (samples[i].time_s - fitted) * samples[i].bytes / (fitted * fitted);
    }
    check_close(constant, 0.0, 1e-3);
    check_close(slope, 0.0, 1e-3);
    assert_true(line.samples == 3 && line.sigma_frac > 0.0);
    /* Student, 1 degree of freedom, 97.5 %: 12.706. */
    check_close(dl_line_beta_half(&line, 0.95), 12.7062047 * sqrt(line.beta_variance), 1e-7);
}

static void slope_below_zero_becomes_zero(void **state) {
    /* The geometric mean of 4, 2 and 1 us is 2 us. */
    const struct dl_link_sample samples[] = {{8.0, 4e-6}, {64.0, 2e-6}, {512.0, 1e-6}};
    struct dl_link_line line;
    assert_int_equal(dl_fit_line(samples, 3, &line, NULL), DL_OK);
    check_close(line.beta_s_per_byte, 0.0, 0);
    check_close(line.alpha_s, 2e-6, 1e-9);
}

/* 1000 seeded series with 5 % noise: alpha and beta within the noise, and the 95 % intervals miss
 * the truth in 5 % of them; 3 standard deviations of a binomial (1000, 0.95) are 2.1 %. */
static void intervals_cover_the_truth(void **state) {
    const double alpha_s = 1.7e-6, beta = 1.0 / 6.3e9;
    size_t alpha_inside = 0, beta_inside = 0, beta_inside_80 = 0, trials = 1000;
    double alpha_sum = 0.0, beta_sum = 0.0, variance_sum = 0.0, squares = 0.0;
    uint64_t random = 20240229;
    for (size_t i = 0; i < trials; i++) {
        struct dl_link_sample samples[16];
        struct dl_link_line line;
        size_t n = series(samples, alpha_s, beta, 0.05, &random);
        assert_int_equal(dl_fit_line(samples, n, &line, NULL), DL_OK);
        check_close(line.alpha_s, alpha_s, 0.2);
        check_close(line.beta_s_per_byte, beta, 0.2);
        alpha_inside += fabs(line.alpha_s - alpha_s) <= dl_line_alpha_half(&line, 0.95);
        beta_inside += fabs(line.beta_s_per_byte - beta) <= dl_line_beta_half(&line, 0.95);
        beta_inside_80 += fabs(line.beta_s_per_byte - beta) <= dl_line_beta_half(&line, 0.8);
        alpha_sum += line.alpha_s;
        beta_sum += line.beta_s_per_byte;
        variance_sum += line.alpha_variance;
        squares += (line.alpha_s - alpha_s) * (line.alpha_s - alpha_s);
    }
    assert_in_range(alpha_inside, 929, 971);
    assert_in_range(beta_inside, 929, 971);
    assert_in_range(beta_inside_80, 762, 838);
    /* The mean over the trials: no pull towards short times. Its standard error is below 0.1 %. */
    check_close(alpha_sum / (double)trials, alpha_s, 0.004);
    check_close(beta_sum / (double)trials, beta, 0.004);
    check_close(variance_sum, squares, 0.15);
}

static void one_line_stays_one_piece(void **state) {
    struct dl_link_sample samples[16];
    struct dl_piece pieces[DL_LINK_PIECES];
    uint64_t random = 7;
    int count = 0;
    size_t split = 0, n = series(samples, 3e-6, 2e-10, 0.0, &random);
    assert_int_equal(dl_fit_pieces(samples, n, pieces, NULL, &count, NULL), DL_OK);
    assert_int_equal(count, 1);
    check_close(pieces[0].alpha_s, 3e-6, 1e-6);
    check_close(pieces[0].beta_s_per_byte, 2e-10, 1e-6);
    check_close(pieces[0].max_bytes, 0x1p27, 0);
    /* Of 200 lines with 3 % noise few are taken for two. */
    for (int i = 0; i < 200; i++) {
        n = series(samples, 3e-6, 2e-10, 0.03, &random);
        assert_int_equal(dl_fit_pieces(samples, n, pieces, NULL, &count, NULL), DL_OK);
        split += count > 1;
    }
    assert_in_range(split, 0, 10);
}

/* Truth: eager up to 16 KiB (1 us + n / 2 GB/s), then rendezvous (8 us + n / 10 GB/s). */
static void a_change_of_protocol_is_found(void **state) {
    struct dl_link_sample samples[32];
    size_t n = 0;
    uint64_t random = 99;
    for (double bytes = 8.0; bytes <= 0x1p27; bytes *= 2.0, n++) {
        double time_s = bytes <= 16384.0 ? 1e-6 + bytes / 2e9 : 8e-6 + bytes / 10e9;
        samples[n] = (struct dl_link_sample){bytes, time_s * (1.0 + 0.01 * normal(&random))};
    }
    struct dl_piece pieces[DL_LINK_PIECES];
    struct dl_link_line lines[DL_LINK_PIECES];
    int count = 0;
    assert_int_equal(dl_fit_pieces(samples, n, pieces, lines, &count, NULL), DL_OK);
    assert_int_equal(count, 2);
    check_close(pieces[0].alpha_s, 1e-6, 0.03);
    check_close(pieces[0].beta_s_per_byte, 1.0 / 2e9, 0.05);
    check_close(pieces[1].alpha_s, 8e-6, 0.05);
    check_close(pieces[1].beta_s_per_byte, 1.0 / 10e9, 0.03);
    assert_true(pieces[0].max_bytes >= 16384.0 && pieces[0].max_bytes <= 32768.0);
    check_close(pieces[1].max_bytes, 0x1p27, 0);
    check_close(lines[1].alpha_s, pieces[1].alpha_s, 0);
    assert_int_equal(lines[0].samples + lines[1].samples, n);
}

/* Any positive samples of ascending size: pieces ascend, betas are not negative, times are positive
 * at every sample. */
static void pieces_are_usable_for_any_samples(void **state) {
    uint64_t random = 4;
    for (int trial = 0; trial < 300; trial++) {
        struct dl_link_sample samples[32];
        size_t n = 2 + (size_t)(check_uniform(&random) * 29.0);
        for (size_t i = 0; i < n; i++)
            samples[i] =
                (struct dl_link_sample){exp2((double)i), 1e-7 * exp(12.0 * check_uniform(&random))};
        struct dl_piece pieces[DL_LINK_PIECES];
        struct dl_link_line lines[DL_LINK_PIECES];
        int count = 0;
        assert_int_equal(dl_fit_pieces(samples, n, pieces, lines, &count, NULL), DL_OK);
        assert_in_range(count, 1, DL_LINK_PIECES);
        size_t used = 0;
        for (int k = 0; k < count; k++) {
            assert_true(isfinite(pieces[k].alpha_s) && isfinite(pieces[k].beta_s_per_byte));
            assert_true(pieces[k].beta_s_per_byte >= 0.0);
            assert_true(k == 0 || pieces[k].max_bytes > pieces[k - 1].max_bytes);
            /* the last one may rest on the upper end of its samples alone */
            const size_t from = k + 1 == count ? n - lines[k].samples : used;
            for (size_t i = from; count > 1 && i < from + lines[k].samples; i++)
                assert_true(pieces[k].alpha_s + pieces[k].beta_s_per_byte * samples[i].bytes > 0.0);
            used += lines[k].samples;
        }
        assert_true(used == n || (used < n && pieces[count - 1].alpha_s == 0.0));
        check_close(pieces[count - 1].max_bytes, samples[n - 1].bytes, 0);
    }
}

/* A token bucket of 32 KiB: (S - 32 KiB) / (125 MB/s) from 64 KiB on. The line through the origin
 * that fits all messages best is 5 % off; the rate is that of the large ones: at 16 MiB the bucket
 * is worth 0.2 %. */
static void the_rate_of_a_token_bucket(void **state) {
    struct dl_link_sample samples[9];
    struct dl_piece pieces[DL_LINK_PIECES];
    int count = 0;
    for (int i = 0; i < 9; i++) {
        const double bytes = exp2(16 + i);
        samples[i] = (struct dl_link_sample){bytes, (bytes - 32768) * 8e-9};
    }
    assert_int_equal(dl_fit_pieces(samples, 9, pieces, NULL, &count, NULL), DL_OK);
    check_close(pieces[count - 1].beta_s_per_byte, 8e-9, 0.01);
    check_close(pieces[count - 1].max_bytes, samples[8].bytes, 0);
}

static void bad_samples_are_refused(void **state) {
    static const struct dl_link_sample bad[] = {
        {8.0, 0.0}, {8.0, -1.0}, {-8.0, 1.0}, {8.0, (double)NAN}};
    struct dl_link_line line;
    struct dl_piece pieces[DL_LINK_PIECES];
    int count = 0;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct dl_link_sample samples[] = {{1.0, 1e-6}, bad[i], {20.0, 2e-6}};
        struct dl_err err = {0};
        assert_int_equal(dl_fit_line(samples, 3, &line, &err), DL_ERR_INPUT);
        check_contains(err.message, "expected bytes >= 0 and a time above 0");
    }
    const struct dl_link_sample one_size[] = {{8.0, 1e-6}, {8.0, 2e-6}},
                                unsorted[] = {{9.0, 1e-6}, {8.0, 2e-6}};
    struct dl_err err = {0};
    assert_int_equal(dl_fit_line(one_size, 2, &line, &err), DL_ERR_INPUT);
    assert_int_equal(dl_fit_line(one_size, 1, &line, &err), DL_ERR_INPUT);
    assert_int_equal(dl_fit_pieces(unsorted, 2, pieces, NULL, &count, &err), DL_ERR_INPUT);
    check_contains(err.message, "ascending");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_samples_give_the_line_through_them),
        cmocka_unit_test(relative_squares_are_least),
        cmocka_unit_test(slope_below_zero_becomes_zero),
        cmocka_unit_test(intervals_cover_the_truth),
        cmocka_unit_test(one_line_stays_one_piece),
        cmocka_unit_test(a_change_of_protocol_is_found),
        cmocka_unit_test(pieces_are_usable_for_any_samples),
        cmocka_unit_test(the_rate_of_a_token_bucket),
        cmocka_unit_test(bad_samples_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
