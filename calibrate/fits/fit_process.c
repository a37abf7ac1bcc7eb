/* fit_process.c - Gaussian process on the logarithm of (time / base). Covariance signal^2 / (1 + d)
 * + noise^2 [x = x'], d the sum of ((x - x') / length)^2 (rational quadratic with alpha = 1,
 * Rasmussen and Williams 2006, section 4.2.1) or of |x - x'| / length (a mixture of exponential
 * covariances: times that change in steps); hyperparameters by maximum a posteriori (section 5.4.1)
 * with BFGS. */
#include "calibrate/fits/fit_internal.h"

#include <gsl/gsl_blas.h>
#include <gsl/gsl_errno.h>
#include <gsl/gsl_linalg.h>
#include <gsl/gsl_multimin.h>
#include <math.h>
#include <string.h>

#include "model/statistics/stats.h"

/* Priors of the logarithms of length (octaves), signal and noise: median and standard deviation. A
 * length of 2 octaves means that kernels within a factor of 4 resemble each other. */
static const double LENGTH_MEDIAN[] = {[DL_DISTANCE_SQUARES] = 2.0, [DL_DISTANCE_MAGNITUDES] = 4.0};
static const double LENGTH_SD[] = {[DL_DISTANCE_SQUARES] = 0.5, [DL_DISTANCE_MAGNITUDES] = 0.3};
static const double SIGNAL_MEDIAN = 0.35, SIGNAL_SD = 1.0;
static const double NOISE_MEDIAN = 0.06, NOISE_SD = 0.5;

/* Hyperparameters are fitted to at most this many samples, evenly spaced: they are few, and the fit
 * is cubic in the samples. */
enum { MANY = DL_FIT_MANY, MAX_POINTS = 256 };

struct process {
    size_t n, axes;
    int distance;           /* DL_DISTANCE_* */
    const double *features; /* of the samples, feature by feature */
    const double *y;        /* residuals minus their mean */
    gsl_matrix *covariance; /* then its Cholesky factor, then its inverse */
    gsl_matrix *shape_part; /* 1 / (1 + d^2) */
    gsl_vector *alpha;      /* covariance^-1 y */
    struct dl_arena *scratch;
};

static gsl_vector *new_vector(struct dl_arena *arena, size_t n) {
    gsl_vector *v = dl_arena_alloc(arena, 1, sizeof *v);
    *v = gsl_vector_view_array(dl_arena_alloc(arena, n, sizeof(double)), n).vector;
    return v;
}

static gsl_matrix *new_matrix(struct dl_arena *arena, size_t rows, size_t columns) {
    gsl_matrix *m = dl_arena_alloc(arena, 1, sizeof *m);
    *m = gsl_matrix_view_array(dl_arena_alloc(arena, rows * columns, sizeof(double)), rows, columns)
             .matrix;
    return m;
}

/* Over n samples, of which it gets the features and y later. */
static void allocate(struct process *p, size_t n) {
    p->n = n;
    p->covariance = new_matrix(p->scratch, n, n);
    p->shape_part = new_matrix(p->scratch, n, n);
    p->alpha = new_vector(p->scratch, n);
}

static double prior(double log_value, double median, double sd, double *gradient) {
    double z = (log_value - log(median)) / sd;
    if (gradient != NULL) *gradient += z / sd;
    return 0.5 * z * z;
}

static double prior_of(const struct process *p, size_t i, double log_value, double *gradient) {
    if (i < p->axes)
        return prior(log_value, LENGTH_MEDIAN[p->distance], LENGTH_SD[p->distance], gradient);
    if (i == p->axes) return prior(log_value, SIGNAL_MEDIAN, SIGNAL_SD, gradient);
    return prior(log_value, NOISE_MEDIAN, NOISE_SD, gradient);
}

/* Contribution of one feature to the distance of two kernels. */
static double apart(const struct process *p, size_t i, size_t j, size_t f, const double *lengths) {
    double d = (p->features[f * p->n + i] - p->features[f * p->n + j]) / lengths[f];
    return p->distance == DL_DISTANCE_MAGNITUDES ? fabs(d) : d * d;
}

static double distance_between(const struct process *p, size_t i, size_t j, const double *lengths) {
    double distance = 0.0;
    for (size_t f = 0; f < p->axes; f++) distance += apart(p, i, j, f, lengths);
    return distance;
}

static void fill_covariance(struct process *p, const double *lengths, double signal, double noise) {
    for (size_t i = 0; i < p->n; i++)
        for (size_t j = 0; j <= i; j++) {
            double part = 1.0 / (1.0 + distance_between(p, i, j, lengths));
            double value = signal * signal * part + (i == j ? noise * noise : 0.0);
            gsl_matrix_set(p->shape_part, i, j, part);
            gsl_matrix_set(p->shape_part, j, i, part);
            gsl_matrix_set(p->covariance, i, j, value);
            gsl_matrix_set(p->covariance, j, i, value);
        }
}

/* Factorizes the covariance and solves for alpha; returns 0.5 y' alpha + 0.5 log det, or a huge
 * value if the matrix is singular. */
static double factorize(struct process *p) {
    static const double REFUSED = 1e10;
    if (gsl_linalg_cholesky_decomp1(p->covariance) != GSL_SUCCESS) return REFUSED;
    gsl_vector_const_view y = gsl_vector_const_view_array(p->y, p->n);
    gsl_linalg_cholesky_solve(p->covariance, &y.vector, p->alpha);
    double product, log_det = 0.0;
    gsl_blas_ddot(&y.vector, p->alpha, &product);
    for (size_t i = 0; i < p->n; i++) log_det += log(gsl_matrix_get(p->covariance, i, i));
    return 0.5 * product + log_det;
}

static double evaluate(struct process *p, const gsl_vector *theta, gsl_vector *gradient) {
    double lengths[DL_FEATURES_MAX] = {0};
    for (size_t f = 0; f < p->axes; f++) lengths[f] = exp(gsl_vector_get(theta, f));
    double signal = exp(gsl_vector_get(theta, p->axes)),
           noise = exp(gsl_vector_get(theta, p->axes + 1));
    fill_covariance(p, lengths, signal, noise);
    double value = factorize(p);
    double slope[DL_FEATURES_MAX + 2] = {0};
    /* dd/dlog(length) = -2 power d */
    const double power = p->distance == DL_DISTANCE_MAGNITUDES ? 0.5 : 1.0;
    for (size_t i = 0; i < p->axes + 2; i++)
        value += prior_of(p, i, gsl_vector_get(theta, i), gradient != NULL ? &slope[i] : NULL);
    if (gradient == NULL || !(value < 1e9)) return value;
    gsl_linalg_cholesky_invert(p->covariance);
    /* d/dtheta = 0.5 sum_ij (K^-1 - alpha alpha')_ij dK_ij/dtheta */
    for (size_t i = 0; i < p->n; i++)
        for (size_t j = 0; j <= i; j++) {
            double w = gsl_matrix_get(p->covariance, i, j) -
                       gsl_vector_get(p->alpha, i) * gsl_vector_get(p->alpha, j);
            if (i == j) {
                slope[p->axes] += w * signal * signal;
                slope[p->axes + 1] += w * noise * noise;
                continue;
            }
            double part = gsl_matrix_get(p->shape_part, i, j), k = 2.0 * w * signal * signal * part;
            slope[p->axes] += k;
            for (size_t f = 0; f < p->axes; f++)
                slope[f] += power * k * part * apart(p, i, j, f, lengths);
        }
    for (size_t i = 0; i < p->axes + 2; i++) gsl_vector_set(gradient, i, slope[i]);
    return value;
}

static double value_of(const gsl_vector *theta, void *data) { return evaluate(data, theta, NULL); }

static void gradient_of(const gsl_vector *theta, void *data, gsl_vector *gradient) {
    evaluate(data, theta, gradient);
}

static void both_of(const gsl_vector *theta, void *data, double *value, gsl_vector *gradient) {
    *value = evaluate(data, theta, gradient);
}

/* Leaves the best hyperparameters in theta; returns the negative logarithm of their posterior. */
static double maximize(struct process *p, gsl_vector *theta) {
    enum { ITERATIONS = 80 };
    static const double FIRST_STEP = 0.3, LINE_TOLERANCE = 0.1, GRADIENT_TOLERANCE = 1e-3;
    gsl_multimin_function_fdf function = {
        .f = value_of, .df = gradient_of, .fdf = both_of, .n = theta->size, .params = p};
    gsl_multimin_fdfminimizer *minimizer =
        gsl_multimin_fdfminimizer_alloc(gsl_multimin_fdfminimizer_vector_bfgs2, theta->size);
    if (minimizer == NULL) return INFINITY;
    gsl_multimin_fdfminimizer_set(minimizer, &function, theta, FIRST_STEP, LINE_TOLERANCE);
    for (int i = 0; i < ITERATIONS; i++) {
        if (gsl_multimin_fdfminimizer_iterate(minimizer) != GSL_SUCCESS) break;
        if (gsl_multimin_test_gradient(gsl_multimin_fdfminimizer_gradient(minimizer),
                                       GRADIENT_TOLERANCE) == GSL_SUCCESS)
            break;
    }
    gsl_vector_memcpy(theta, gsl_multimin_fdfminimizer_x(minimizer));
    double least = gsl_multimin_fdfminimizer_minimum(minimizer);
    gsl_multimin_fdfminimizer_free(minimizer);
    return least;
}

/* maximize() on at most MANY of the samples. */
static double maximize_thinned(struct process *p, gsl_vector *theta) {
    if (p->n <= MANY) return maximize(p, theta);
    struct process thin = *p;
    allocate(&thin, MANY);
    double *features = dl_arena_alloc(p->scratch, MANY * p->axes, sizeof *features),
           *y = dl_arena_alloc(p->scratch, MANY, sizeof *y);
    for (size_t i = 0; i < MANY; i++) {
        const size_t from = i * p->n / MANY;
        for (size_t f = 0; f < p->axes; f++) features[f * MANY + i] = p->features[f * p->n + from];
        y[i] = p->y[from];
    }
    thin.features = features;
    thin.y = y;
    return maximize(&thin, theta);
}

/* The samples that the model keeps: all, else MAX_POINTS, half of them evenly and half each as far
 * as possible from those before it. */
static size_t choose_points(const struct process *p, const double *lengths, size_t *chosen,
                            double *nearest) {
    if (p->n <= MAX_POINTS) {
        for (size_t i = 0; i < p->n; i++) chosen[i] = i;
        return p->n;
    }
    for (size_t i = 0; i < p->n; i++) nearest[i] = INFINITY;
    for (size_t m = 0; m < MAX_POINTS; m++) {
        size_t next = 2 * m * p->n / MAX_POINTS;
        if (2 * m >= MAX_POINTS) {
            next = 0;
            for (size_t i = 1; i < p->n; i++)
                if (nearest[i] > nearest[next]) next = i;
        }
        chosen[m] = next;
        for (size_t i = 0; i < p->n; i++)
            nearest[i] = fmin(nearest[i], distance_between(p, i, next, lengths));
    }
    return MAX_POINTS;
}

struct hyper {
    const double *lengths;
    double signal, noise;
};

/* Weights of the chosen samples in the sum of their covariances that is nearest to all samples
 * (subset of regressors: Rasmussen and Williams 2006, section 8.3.1):
 * (K_mn K_nm + noise^2 K_mm) w = K_mn y. */
static void weigh(const struct process *p, const struct hyper *h, const size_t *chosen, size_t m,
                  double *weights) {
    const double *lengths = h->lengths, noise = h->noise, square = h->signal * h->signal;
    gsl_matrix *to_all = new_matrix(p->scratch, p->n, m), *sum = new_matrix(p->scratch, m, m);
    gsl_vector *w = new_vector(p->scratch, m);
    for (size_t i = 0; i < p->n; i++)
        for (size_t j = 0; j < m; j++)
            gsl_matrix_set(to_all, i, j,
                           square / (1.0 + distance_between(p, i, chosen[j], lengths)));
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < m; j++)
            gsl_matrix_set(sum, i, j, noise * noise * gsl_matrix_get(to_all, chosen[i], j));
    gsl_blas_dsyrk(CblasLower, CblasTrans, 1.0, to_all, 1.0, sum);
    gsl_vector_const_view y = gsl_vector_const_view_array(p->y, p->n);
    gsl_blas_dgemv(CblasTrans, 1.0, to_all, &y.vector, 0.0, w);
    for (size_t i = 0; i < m; i++)
        gsl_matrix_set(sum, i, i, gsl_matrix_get(sum, i, i) * (1.0 + 1e-9) + 1e-12);
    gsl_linalg_cholesky_decomp1(sum);
    gsl_linalg_cholesky_svx(sum, w);
    for (size_t j = 0; j < m; j++) weights[j] = square * gsl_vector_get(w, j);
}

/* Rounds the lengths, then points from the rounded lengths, then weights from the rounded points,
 * so that the numbers in the file are consistent. */
static void write_model(struct process *p, const gsl_vector *theta, struct dl_kernel_model *model) {
    enum { HYPER_DIGITS = 3, POINT_DIGITS = 6, WEIGHT_DIGITS = 8 };
    double lengths[DL_FEATURES_MAX] = {0};
    size_t *chosen = dl_arena_alloc(p->scratch, p->n, sizeof *chosen);
    double *scratch = dl_arena_alloc(p->scratch, p->n, sizeof *scratch);
    for (size_t f = 0; f < p->axes; f++)
        lengths[f] = model->correction.lengths[f] =
            dl_fit_round(exp(gsl_vector_get(theta, f)), HYPER_DIGITS);
    const size_t count = choose_points(p, lengths, chosen, scratch);
    for (size_t f = 0; f < p->axes; f++) {
        model->correction.domain_low[f] = INFINITY;
        model->correction.domain_high[f] = -INFINITY;
        for (size_t i = 0; i < p->n; i++) {
            const double x = dl_fit_round(p->features[f * p->n + i], POINT_DIGITS);
            model->correction.domain_low[f] = fmin(model->correction.domain_low[f], x);
            model->correction.domain_high[f] = fmax(model->correction.domain_high[f], x);
        }
        for (size_t i = 0; i < count; i++)
            model->correction.points[f * count + i] =
                dl_fit_round(p->features[f * p->n + chosen[i]] / lengths[f], POINT_DIGITS);
    }
    double signal = dl_fit_round(exp(gsl_vector_get(theta, p->axes)), HYPER_DIGITS);
    double noise = dl_fit_round(exp(gsl_vector_get(theta, p->axes + 1)), HYPER_DIGITS);
    if (count == p->n) {
        fill_covariance(p, lengths, signal, noise);
        factorize(p);
        for (size_t i = 0; i < p->n; i++)
            scratch[i] = signal * signal * gsl_vector_get(p->alpha, i);
    } else {
        weigh(p, &(struct hyper){lengths, signal, noise}, chosen, count, scratch);
    }
    for (size_t i = 0; i < count; i++)
        model->correction.weights[i] = dl_fit_round(scratch[i], WEIGHT_DIGITS);
    model->correction.point_count = (int)(p->axes * count);
    model->correction.weight_count = (int)count;
}

/* Leave-one-out means of each sample (Rasmussen and Williams 2006, section 5.4.2); for many
 * samples, where one has little weight, the mean itself. */
static void others_say(struct process *p, const struct hyper *h, size_t *chosen, double *scratch,
                       double *mean) {
    const double *lengths = h->lengths;
    const size_t count = choose_points(p, lengths, chosen, scratch);
    if (count < p->n) {
        weigh(p, h, chosen, count, scratch);
        for (size_t i = 0; i < p->n; i++) {
            mean[i] = 0.0;
            for (size_t j = 0; j < count; j++)
                mean[i] += scratch[j] / (1.0 + distance_between(p, i, chosen[j], lengths));
        }
        return;
    }
    fill_covariance(p, lengths, h->signal, h->noise);
    factorize(p);
    gsl_linalg_cholesky_invert(p->covariance);
    for (size_t i = 0; i < p->n; i++)
        mean[i] = p->y[i] - gsl_vector_get(p->alpha, i) / gsl_matrix_get(p->covariance, i, i);
}

static const double NO_TIMER_IS_BETTER = 1e-3; /* log */

/* Draws samples that the others contradict by more than *most towards them: y becomes the
 * pseudo-observations of Huber's estimate (Huber 1981, section 7.8). One time can be that of two
 * kernels, or of a library that chose badly; the length scales and the noise of plain least squares
 * follow such times. */
static void draw_in(struct process *p, const gsl_vector *theta, const double *measured, double *y,
                    double *most) {
    enum { ROUNDS = 3 };
    static const double DEVIATIONS = 1.0, NORMAL_50 = 0.6745;
    double lengths[DL_FEATURES_MAX] = {0};
    double *mean = dl_arena_alloc(p->scratch, p->n, sizeof *mean),
           *scratch = dl_arena_alloc(p->scratch, p->n, sizeof *scratch);
    size_t *chosen = dl_arena_alloc(p->scratch, p->n, sizeof *chosen);
    for (size_t f = 0; f < p->axes; f++) lengths[f] = exp(gsl_vector_get(theta, f));
    const struct hyper h = {lengths, exp(gsl_vector_get(theta, p->axes)),
                            exp(gsl_vector_get(theta, p->axes + 1))};
    for (int round = 0; round < ROUNDS; round++) {
        others_say(p, &h, chosen, scratch, mean);
        for (size_t i = 0; i < p->n; i++) scratch[i] = fabs(measured[i] - mean[i]);
        dl_sort(scratch, p->n);
        *most = fmax(DEVIATIONS / NORMAL_50 * dl_quantile_sorted(scratch, p->n, 0.5),
                     NO_TIMER_IS_BETTER);
        for (size_t i = 0; i < p->n; i++)
            y[i] = mean[i] + fmax(-*most, fmin(measured[i] - mean[i], *most));
    }
}

static int axis_named(enum dl_op op, const char *name) {
    int axis = 0;
    while (strcmp(dl_kernel_model_features[op][axis], name) != 0) axis++;
    return axis;
}

/* Fits one form: writes its features to *p and *model, the best hyperparameters to theta. */
static double fit_form(struct process *p, const struct dl_fit_form *form,
                       const struct dl_fit_set *set, double *features, gsl_vector *theta,
                       struct dl_kernel_model *model) {
    p->axes = 0;
    p->distance = model->correction.distance = form->distance;
    for (; form->features[p->axes] != NULL; p->axes++) {
        model->correction.features[p->axes] = form->features[p->axes];
        int axis = axis_named(set->op, form->features[p->axes]);
        for (size_t i = 0; i < p->n; i++)
            features[p->axes * p->n + i] = (double)set->shapes[i].features[axis];
        gsl_vector_set(theta, p->axes, log(LENGTH_MEDIAN[p->distance]));
    }
    gsl_vector_set(theta, p->axes, log(SIGNAL_MEDIAN));
    gsl_vector_set(theta, p->axes + 1, log(NOISE_MEDIAN));
    gsl_vector_view used = gsl_vector_subvector(theta, 0, p->axes + 2);
    double least = maximize_thinned(p, &used.vector);
    model->correction.feature_count = model->correction.length_count =
        model->correction.domain_low_count = model->correction.domain_high_count = (int)p->axes;
    return least;
}

/* Fits the hyperparameters again without contradicted samples; y: the samples of *p. Where that
 * explains the samples worse (without any noise the covariance is nearly singular), they stay. */
static void make_robust(struct process *p, double *y, gsl_vector *theta) {
    enum { TIMES = 2 };
    double *measured = dl_arena_alloc(p->scratch, p->n, sizeof *measured);
    double before[DL_FEATURES_MAX + 2];
    double most[TIMES] = {0};
    gsl_vector_view used = gsl_vector_subvector(theta, 0, p->axes + 2);
    for (size_t i = 0; i < p->axes + 2; i++) before[i] = gsl_vector_get(theta, i);
    memcpy(measured, y, p->n * sizeof *y);
    for (int i = 0; i < TIMES; i++) {
        draw_in(p, theta, measured, y, &most[i]);
        maximize_thinned(p, &used.vector);
    }
    if (!(most[TIMES - 1] <= 2.0 * most[0])) {
        memcpy(y, measured, p->n * sizeof *y);
        for (size_t i = 0; i < p->axes + 2; i++) gsl_vector_set(theta, i, before[i]);
    }
}

/* Writes the best form of the operation and pass to *model; y: the samples of *p. */
static void fit_forms(struct process *p, const struct dl_fit_set *set, double *features, double *y,
                      gsl_vector *theta, struct dl_kernel_model *model) {
    double least = INFINITY;
    int best = -1, last = -1;
    for (int i = 0; i < dl_fit_form_count; i++) {
        if (!dl_fit_form_applies(&dl_fit_forms[i], set)) continue;
        double value = fit_form(p, &dl_fit_forms[i], set, features, theta, model);
        last = i;
        if (best < 0 || value < least) {
            least = value;
            best = i;
        }
    }
    if (best != last) fit_form(p, &dl_fit_forms[best], set, features, theta, model);
    if (set->of_many) make_robust(p, y, theta);
    write_model(p, theta, model);
}

double dl_fit_level(const struct dl_fit_set *set, const double *residuals, double *scratch) {
    double mean = 0.0;
    if (set->op == DL_OP_STREAM && set->of_many) return dl_median(residuals, set->count, scratch);
    for (size_t i = 0; i < set->count; i++) mean += residuals[i] / (double)set->count;
    return mean;
}

/* Clips residuals: for single kernels the library selects an algorithm that is ten times slower
 * than for their neighbours (V100: weight gradients of 512 to 512 channels at 7 x 7 run 12 times
 * slower than those of 2048 to 512; not so on T4). */
static double outlier_bound(const double *residuals, size_t n, double middle, double *scratch) {
    /* 90th percentile of the magnitude of a normal variable, in standard deviations */
    static const double DEVIATIONS = 4.0, Q90 = 1.645;
    for (size_t i = 0; i < n; i++) scratch[i] = fabs(residuals[i] - middle);
    dl_sort(scratch, n);
    return DEVIATIONS / Q90 * dl_quantile_sorted(scratch, n, 0.9);
}

static void model_alloc(struct dl_kernel_model *model, size_t n, struct dl_arena *arena) {
    model->correction.features =
        dl_arena_alloc(arena, DL_FEATURES_MAX, sizeof *model->correction.features);
    model->correction.lengths = dl_arena_alloc(arena, DL_FEATURES_MAX, sizeof(double));
    model->correction.domain_low = dl_arena_alloc(arena, DL_FEATURES_MAX, sizeof(double));
    model->correction.domain_high = dl_arena_alloc(arena, DL_FEATURES_MAX, sizeof(double));
    model->correction.points = dl_arena_alloc(arena, DL_FEATURES_MAX * n, sizeof(double));
    model->correction.weights = dl_arena_alloc(arena, n, sizeof(double));
}

enum dl_code dl_fit_process(const struct dl_fit_set *set, const double *residuals,
                            struct dl_arena *arena, struct dl_kernel_model *model,
                            struct dl_err *err) {
    struct dl_arena scratch = {0};
    const size_t n = set->count;
    double *y = dl_arena_alloc(&scratch, n, sizeof(double)),
           *features = dl_arena_alloc(&scratch, DL_FEATURES_MAX * n, sizeof(double));
    struct process p = {.features = features, .y = y, .scratch = &scratch};
    allocate(&p, n);
    model_alloc(model, n, arena);
    model->correction.offset = dl_fit_round(dl_fit_level(set, residuals, y), 6);
    const double bound = outlier_bound(residuals, n, model->correction.offset, y);
    for (size_t i = 0; i < n; i++)
        y[i] = fmax(-bound, fmin(residuals[i] - model->correction.offset, bound));
    fit_forms(&p, set, features, y, new_vector(&scratch, DL_FEATURES_MAX + 2), model);
    dl_arena_free(&scratch);
    return dl_kernel_model_pack(model, arena, err);
}
