/* Alpha-beta pieces by hand, and the step of MLSL on Xeon Phi and Omni-Path, which needs more than
 * one. */
#include "model/network/coll_fit.h"
#include "predict/compare/series.h"
#include "tests/check.h"

static struct dl_coll_sample at(double bytes, double time_s) {
    return (struct dl_coll_sample){bytes, time_s, NAN, NAN};
}

/* F-COLL-FIT. One line 10 us + S / 1 GB/s; then a step of 1 ms beyond 1 MB at the same rate. */
static void pieces_by_hand(void **state) {
    struct dl_coll_sample samples[12];
    struct dl_piece pieces[DL_COLL_FIT_PIECES];
    double error = 1;
    for (int i = 0; i < 12; i++) samples[i] = at(1000.0 * (1 << i), 10e-6 + 1e-6 * (1 << i));
    assert_int_equal(dl_coll_fit(samples, 12, DL_COLL_FIT_PIECES, pieces, &error), 1);
    check_close(pieces[0].alpha_s, 10e-6, 1e-9);
    check_close(pieces[0].beta_s_per_byte, 1e-9, 1e-9);
    assert_true(isinf(pieces[0].max_bytes) && error < 1e-9);
    for (int i = 10; i < 12; i++) samples[i].time_s += 1e-3;
    assert_int_equal(dl_coll_fit(samples, 12, DL_COLL_FIT_PIECES, pieces, &error), 2);
    /* half way between samples 9 and 10 */
    check_close(pieces[0].max_bytes, 1000.0 * 512 * sqrt(2), 1e-9);
    check_close(pieces[0].alpha_s, 10e-6, 1e-9);
    check_close(pieces[1].alpha_s, 1.01e-3, 1e-9);
    check_close(dl_coll_fit_s(pieces, 2, 3e6), 1.01e-3 + 3e-3, 1e-9);
    check_close(dl_coll_fit_s(pieces, 2, 1e5), 1.1e-4, 1e-9);
    assert_int_equal(dl_coll_fit(samples, 12, 1, pieces, &error), 1); /* no more than asked for */
    assert_int_equal(dl_coll_fit(samples, 1, 1, pieces, &error), 0);
    assert_true(isnan(error) && isnan(dl_coll_fit_s(pieces, 0, 1)));
    /* beta stays 0, alpha not negative */
    struct dl_coll_sample falling[] = {at(1, 3e-6), at(2, 2e-6)};
    assert_int_equal(dl_coll_fit(falling, 2, 1, pieces, &error), 1);
    assert_true(pieces[0].beta_s_per_byte >= 0.0 && pieces[0].alpha_s > 0.0);
}

/* The line of two samples goes through both, unless it would fall or begin below zero: then it is
 * flat, the weighted mean of times (weights 1 / t^2), or starts at zero. The error may be left
 * out. */
static void two_samples(void **state) {
    struct dl_piece piece;
    double error = 1;
    const struct dl_coll_sample rising[] = {at(100, 3e-6), at(300, 5e-6)},
                                falling[] = {at(100, 4e-6), at(300, 2e-6)},
                                steep[] = {at(100, 1e-6), at(300, 5e-6)},
                                same[] = {at(100, 1e-6), at(100, 3e-6)};
    assert_int_equal(dl_coll_fit(rising, 2, 1, &piece, &error), 1);
    check_close(piece.alpha_s, 2e-6, 1e-9);
    check_close(piece.beta_s_per_byte, 1e-8, 1e-9);
    assert_true(error < 1e-9 && isinf(piece.max_bytes));
    assert_int_equal(dl_coll_fit(rising, 2, 1, &piece, NULL), 1);
    check_close(piece.alpha_s, 2e-6, 1e-9);
    /* (1/4 + 1/2) / (1/16 + 1/4) = 2.4 us; off by 0.4 and 0.2 */
    assert_int_equal(dl_coll_fit(falling, 2, 1, &piece, &error), 1);
    check_close(piece.alpha_s, 2.4e-6, 1e-9);
    check_close(piece.beta_s_per_byte, 0, 0);
    check_close(error, 0.3, 1e-9);
    /* (100 + 60) / (100^2 + 60^2) us a byte, with 300 bytes in 5 us as 60 in 1 us */
    assert_int_equal(dl_coll_fit(steep, 2, 1, &piece, &error), 1);
    check_close(piece.alpha_s, 0, 0);
    check_close(piece.beta_s_per_byte, 160e-6 / 13600, 1e-9);
    /* of one size: (1 + 1/3) / (1 + 1/9) = 1.2 us */
    assert_int_equal(dl_coll_fit(same, 2, 1, &piece, &error), 1);
    check_close(piece.alpha_s, 1.2e-6, 1e-9);
    check_close(piece.beta_s_per_byte, 0, 0);
    check_close(error, (0.2 + 0.6) / 2, 1e-9);
    for (int count = 0; count < 3; count++) {
        for (int most = -1; most < 2; most++) {
            const int fits = count == 2 && most == 1;
            error = 1;
            assert_int_equal(dl_coll_fit(rising, count, most, &piece, &error), fits);
            assert_int_equal(isnan(error), !fits);
            assert_int_equal(dl_coll_fit(rising, count, most, &piece, NULL), fits);
        }
    }
}

/* Each piece serves up to its border, with it. */
static void borders(void **state) {
    const struct dl_piece pieces[] = {{100, 1, 0}, {200, 2, 0.5}, {HUGE_VAL, 3, 0}};
    check_close(dl_coll_fit_s(pieces, 3, 0), 1, 0);
    check_close(dl_coll_fit_s(pieces, 3, 100), 1, 0);
    check_close(dl_coll_fit_s(pieces, 3, 100.5), 52.25, 0);
    check_close(dl_coll_fit_s(pieces, 3, 200), 102, 0);
    check_close(dl_coll_fit_s(pieces, 3, 201), 3, 0);
    check_close(dl_coll_fit_s(pieces, 2, 201), 102.5, 0); /* the last one serves beyond */
    check_close(dl_coll_fit_s(pieces, 1, 201), 1, 0);
    check_nan(dl_coll_fit_s(pieces, 0, 1));
}

/* Three parameters a piece: two pieces need seven samples. */
static void enough_samples(void **state) {
    struct dl_coll_sample samples[9];
    struct dl_piece pieces[DL_COLL_FIT_PIECES];
    for (int count = 4; count <= 9; count++) {
        for (int i = 0; i < count; i++)
            samples[i] = at(1000.0 * (1 << i), (i < 2 ? 1e-6 : 1e-3) + 1e-9 * (1 << i));
        assert_int_equal(dl_coll_fit(samples, count, DL_COLL_FIT_PIECES, pieces, NULL),
                         count > 6 ? 2 : 1);
        if (count > 6) check_close(pieces[0].max_bytes, 1000 * sqrt(2.0 * 4), 1e-9);
    }
}

/* Six parameters at most for seven sizes: a series cannot be met by as many numbers as it has. */
static void mlsl_needs_a_step(void **state) {
    const char *root = getenv("DLMODEL_ROOT");
    struct dl_series series;
    struct dl_csv csv;
    struct dl_err err = {0};
    const char *path = dl_arena_printf(&test_arena, "%s/data/collectives/published.csv",
                                       root != NULL ? root : ".");
    if (dl_csv_read(path, &test_arena, &csv, &err) != DL_OK ||
        dl_series_read(&csv, &test_arena, &series, &err) != DL_OK)
        fail_msg("%s", err.message);
    double sum = 0, one_sum = 0;
    int count = 0;
    for (int r = 0; r < series.count; r++) {
        if (series.rows[r].series != r || series.rows[r].match.request.library != DL_LIB_MLSL)
            continue;
        struct dl_coll_measured m;
        struct dl_piece pieces[DL_COLL_FIT_PIECES];
        double error, one;
        dl_series_measured(&series, r, -1, &m);
        dl_coll_fit(m.samples, m.sample_count, 1, pieces, &one);
        const int pieces_count =
            dl_coll_fit(m.samples, m.sample_count, DL_COLL_FIT_PIECES, pieces, &error);
        printf("%2d nodes: one piece %4.1f %%, %d pieces %4.1f %%\n", (int)m.nodes, 100 * one,
               pieces_count, 100 * error);
        assert_true(pieces_count <= 2);
        sum += error, one_sum += one, count++;
    }
    assert_int_equal(count, 5);
    printf("mean: one piece %.1f %%, pieces %.1f %%\n", 100 * one_sum / count, 100 * sum / count);
    assert_true(sum / count < 0.05 && one_sum / count > 0.1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_by_hand), cmocka_unit_test(two_samples), cmocka_unit_test(borders),
        cmocka_unit_test(enough_samples), cmocka_unit_test(mlsl_needs_a_step)};
    return cmocka_run_group_tests(tests, NULL, check_free);
}
