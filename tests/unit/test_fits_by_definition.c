/* The two fits that models rest on, against their definitions: random effects in closed form
 * (F-MIXED), robust least squares by the conditions of a minimum (F-ROBUST-FIT). */
#include "model/statistics/mixed_model.h"
#include "model/statistics/robust_fit.h"
#include "tests/check.h"

/* ---- random effects ---- */

/* Given variances: a level of n rows has the mean sum(y) / (n + s2 / t2), and 1 / (n / s2 + 1 / t2)
 * is left of its variance. Rows without a value or a level do not count. */
static void levels_by_hand(void **state) {
    const double y[] = {1, 3, 5, (double)NAN, 100, 8};
    const int level[] = {0, 0, 1, 0, -1, 2};
    double mean[4], left[4];
    struct dl_mixed_model m = {.row_count = 6, .y = y, .effect_count = 1, .row_variance = 2};
    m.effects[0] = (struct dl_mixed_effect){
        .level_count = 4, .level = level, .variance = 4, .mean = mean, .mean_variance = left};
    assert_int_equal(dl_mixed_fit(&m, 0, NULL), DL_OK);
    const double means[] = {4 / 2.5, 5 / 1.5, 8 / 1.5, 0},
                 variances[] = {1 / 1.25, 1 / 0.75, 1 / 0.75, 4};
    for (int l = 0; l < 4; l++) {
        check_close(mean[l], means[l], 1e-12);
        check_close(left[l], variances[l], 1e-12);
    }
    check_close(m.effects[0].variance, 4, 0);
    check_close(m.row_variance, 2, 0);
    /* slopes: sum(z y) / (sum(z^2) + s2 / t2) */
    const double z[] = {1, 2, -1, 1, 1, 0.5};
    m.effects[0].covariate = z;
    assert_int_equal(dl_mixed_fit(&m, 0, NULL), DL_OK);
    check_close(mean[0], 7 / 5.5, 1e-12);
    check_close(mean[1], -5 / 1.5, 1e-12);
    check_close(mean[2], 4 / 0.75, 1e-12);
    check_close(left[0], 1 / (5 / 2.0 + 0.25), 1e-12);
    /* rows whose variance grows: 2 + w^2 3 */
    const double w[] = {0, 1, 2, 0, 0, 1};
    m.effects[0].covariate = NULL;
    m.parts[0] = (struct dl_mixed_part){.covariate = w, .variance = 3};
    m.part_count = 1;
    check_close(dl_mixed_row_variance(&m, 2), 14, 1e-12);
    check_close(dl_mixed_row_variance(&m, 0), 2, 1e-12);
    assert_int_equal(dl_mixed_fit(&m, 0, NULL), DL_OK);
    check_close(mean[0], (1 / 2.0 + 3 / 5.0) / (1 / 2.0 + 1 / 5.0 + 0.25), 1e-12);
    check_close(mean[1], (5 / 14.0) / (1 / 14.0 + 0.25), 1e-12);
}

/* Two effects on the same rows: the conditions of the best linear predictor, for each level
 * sum over its rows of (y - u - v) / s2 = u / t2. */
static void crossed_effects(void **state) {
    enum { ROWS = 40, A = 5, B = 3 };
    double y[ROWS], a_mean[A], b_mean[B], slope[ROWS];
    int a[ROWS], b[ROWS];
    uint64_t seed = 3;
    for (int i = 0; i < ROWS; i++) {
        y[i] = check_uniform(&seed) * 10 - 4;
        slope[i] = check_uniform(&seed) + 0.5;
        a[i] = (int)(check_random(&seed) % A);
        b[i] = (int)(check_random(&seed) % (B + 1)) - 1;
    }
    struct dl_mixed_model m = {.row_count = ROWS, .y = y, .effect_count = 2, .row_variance = 0.7};
    m.effects[0] =
        (struct dl_mixed_effect){.level_count = A, .level = a, .variance = 1.5, .mean = a_mean};
    m.effects[1] = (struct dl_mixed_effect){
        .level_count = B, .level = b, .covariate = slope, .variance = 0.4, .mean = b_mean};
    assert_int_equal(dl_mixed_fit(&m, 0, NULL), DL_OK);
    double a_sum[A] = {0}, b_sum[B] = {0};
    for (int i = 0; i < ROWS; i++) {
        const double left = y[i] - a_mean[a[i]] - (b[i] >= 0 ? slope[i] * b_mean[b[i]] : 0);
        a_sum[a[i]] += left / 0.7;
        if (b[i] >= 0) b_sum[b[i]] += slope[i] * left / 0.7;
    }
    for (int l = 0; l < A; l++) check_close(a_sum[l], a_mean[l] / 1.5, 1e-9);
    for (int l = 0; l < B; l++) check_close(b_sum[l], b_mean[l] / 0.4, 1e-9);
}

/* L levels of n rows each: the most likely variances are s2 = SSW / (L (n - 1)) and t2 = mean of
 * the squared means of levels - s2 / n; EM ends there. One of them known to be tiny stays above
 * 1e-8. */
static void most_likely_variances(void **state) {
    enum { LEVELS = 6, EACH = 4, ROWS = LEVELS * EACH };
    double y[ROWS];
    int level[ROWS];
    uint64_t seed = 9;
    for (int i = 0; i < ROWS; i++) {
        level[i] = i / EACH;
        y[i] = 3 * sin(level[i] * 1.7) + check_uniform(&seed);
    }
    double within = 0, between = 0;
    for (int l = 0; l < LEVELS; l++) {
        double mean = 0;
        for (int i = 0; i < EACH; i++) mean += y[l * EACH + i] / EACH;
        for (int i = 0; i < EACH; i++)
            within += (y[l * EACH + i] - mean) * (y[l * EACH + i] - mean);
        between += mean * mean / LEVELS;
    }
    struct dl_mixed_model m = {.row_count = ROWS, .y = y, .effect_count = 1, .row_variance = 1};
    m.effects[0] = (struct dl_mixed_effect){.level_count = LEVELS, .level = level, .variance = 1};
    assert_int_equal(dl_mixed_fit(&m, 500, NULL), DL_OK);
    const double s2 = within / (LEVELS * (EACH - 1));
    check_close(m.row_variance, s2, 1e-6);
    check_close(m.effects[0].variance, between - s2 / EACH, 1e-6);
    for (int i = 0; i < ROWS; i++) y[i] = 0; /* nothing varies */
    assert_int_equal(dl_mixed_fit(&m, 500, NULL), DL_OK);
    check_close(m.row_variance, 1e-8, 1e-12);
    assert_true(m.effects[0].variance >= 1e-8);
    m.effects[0].level_count = 0; /* no level: nothing to do */
    m.row_variance = 7;
    assert_int_equal(dl_mixed_fit(&m, 5, NULL), DL_OK);
    check_close(m.row_variance, 7, 0);
}

/* ---- robust least squares ---- */

enum { MAX_ROWS = 12, MAX_PARAMETERS = 3 };
struct line {
    double design[MAX_ROWS][MAX_PARAMETERS], y[MAX_ROWS];
    size_t rows, parameters;
    int asked;
};

static enum dl_code residuals_of(void *context, const double *x, double *out, struct dl_err *err) {
    const struct line *l = context;
    (void)err;
    for (size_t i = 0; i < l->rows; i++) {
        out[i] = -l->y[i];
        for (size_t j = 0; j < l->parameters; j++) out[i] += l->design[i][j] * x[j];
    }
    return DL_OK;
}
static enum dl_code derivatives_of(void *context, const double *x, const double *residuals,
                                   size_t parameter, double *jacobian, struct dl_err *err) {
    struct line *l = context;
    (void)x, (void)residuals, (void)err;
    l->asked++;
    for (size_t i = 0; i < l->rows; i++)
        jacobian[i * l->parameters + parameter] = l->design[i][parameter];
    return DL_OK;
}

/* Huber's loss: 0.5 of the scale 0.25, 1 of it 1, 3 of it 5; with weights, the prior's squares. */
static void objective_by_hand(void **state) {
    const double weights[] = {1, 2, 0.5, 0, 1, -1}, prior[] = {1}, sigma[] = {2}, x[] = {2},
                 residuals[] = {1, -2, 6, 9, (double)NAN, 9};
    const struct dl_robust_problem p = {.row_count = 6,
                                        .parameter_count = 1,
                                        .weights = weights,
                                        .loss_scale = 2,
                                        .prior = prior,
                                        .prior_sigma = sigma};
    check_close(dl_robust_objective(&p, x, residuals), 0.25 + 2 * 1 + 0.5 * 5 + 0.25, 1e-12);
}

/* How much less the objective is anywhere around x in the range, as far as steps along and across
 * the parameters find out; of a convex one that is none. */
static double least_around(const struct dl_robust_problem *p, const double *x, uint64_t *seed) {
    double least = INFINITY;
    for (int i = 0; i < 200; i++) {
        double at[MAX_PARAMETERS], residuals[MAX_ROWS];
        const double size = pow(10, -i % 4);
        for (size_t j = 0; j < p->parameter_count; j++) {
            const double step = size * (2 * check_uniform(seed) - 1);
            at[j] = fmin(p->high[j], fmax(p->low[j], x[j] + step));
        }
        residuals_of(p->context, at, residuals, NULL);
        least = fmin(least, dl_robust_objective(p, at, residuals));
    }
    return least;
}

/* Of random lines with outliers: nothing around the solution is better. */
static void conditions_of_a_minimum(void **state) {
    uint64_t seed = 77;
    int bounded = 0, open = 0;
    for (int round = 0; round < 300; round++) {
        const bool squares = round % 2 == 0; /* no residual is far, no bound near */
        struct line l = {.rows = 5 + (size_t)(round % 8), .parameters = 1 + (size_t)(round % 3)};
        double weights[MAX_ROWS], jacobian[MAX_ROWS * MAX_PARAMETERS], residuals[MAX_ROWS];
        double low[3], high[3], prior[3], sigma[3], x[3];
        for (size_t i = 0; i < l.rows; i++) {
            weights[i] = i % 5 == 4 ? 0 : 0.5 + check_uniform(&seed);
            l.y[i] = 4 * check_uniform(&seed) - 2 + (i % 4 == 0 ? 10 : 0);
            for (size_t j = 0; j < l.parameters; j++)
                l.design[i][j] = check_random(&seed) % 3 == 0 ? 0 : 2 * check_uniform(&seed) - 1;
        }
        for (size_t j = 0; j < l.parameters; j++) {
            low[j] = (squares ? -100 : -1) - check_uniform(&seed);
            high[j] = (squares ? 100 : 1) + check_uniform(&seed);
            prior[j] = check_uniform(&seed), sigma[j] = 1 + check_uniform(&seed), x[j] = prior[j];
        }
        const struct dl_robust_problem p = {.row_count = l.rows,
                                            .parameter_count = l.parameters,
                                            .weights = weights,
                                            .loss_scale = squares ? 100 : 0.5,
                                            .low = low,
                                            .high = high,
                                            .prior = prior,
                                            .prior_sigma = sigma,
                                            .residuals = residuals_of,
                                            .derivatives = derivatives_of,
                                            .context = &l,
                                            .most_steps = 500,
                                            .smallest = 1e-10,
                                            .refresh = 1e9};
        struct dl_robust_fit fit = {.x = x, .residuals = residuals};
        for (size_t j = 0; j < l.parameters; j++)
            derivatives_of(&l, x, residuals, j, jacobian, NULL);
        assert_int_equal(dl_robust_fit(&p, jacobian, &fit, NULL), DL_OK);
        assert_int_equal(l.asked, l.parameters); /* a line's do not change */
        check_close(fit.objective, dl_robust_objective(&p, x, residuals), 1e-12);
        for (size_t j = 0; j < l.parameters; j++) {
            assert_true(x[j] >= low[j] - 1e-12 && x[j] <= high[j] + 1e-12);
            if (x[j] <= low[j] + 1e-9 || x[j] >= high[j] - 1e-9)
                bounded++;
            else
                open++;
        }
        const double least = least_around(&p, x, &seed);
        if (least < fit.objective * (1 - (squares ? 1e-7 : 0.05)))
            fail_msg("round %d: %g, and %g next to it", round, fit.objective, least);
    }
    assert_true(bounded > 50 && open > 200);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels_by_hand), cmocka_unit_test(crossed_effects),
        cmocka_unit_test(most_likely_variances), cmocka_unit_test(objective_by_hand),
        cmocka_unit_test(conditions_of_a_minimum)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
