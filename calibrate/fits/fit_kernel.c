/* fit_kernel.c - fits one kernel-time model to samples and cross-validates it on unseen shapes. Not
 * here: the steps of the fit (fit_base.c, fit_process.c), reading samples (fit_samples.c). */
#include "calibrate/fits/fit_kernel.h"

#include <gsl/gsl_errno.h>
#include <math.h>

#include "calibrate/fits/fit_internal.h"
#include "calibrate/fits/fit_laws.h"
#include "model/statistics/stats.h"

enum { FOLDS = 5, FEW_CONVOLUTIONS = 60 };

static bool wanted(const struct dl_kernel_sample *sample, enum dl_op op, enum dl_pass pass,
                   enum dl_precision precision) {
    return sample->kernel.op == op && sample->kernel.pass == pass &&
           sample->precision == precision && isfinite(sample->time_s) && sample->time_s > 0.0;
}

static bool has_matrix_unit(const struct dl_device *device, enum dl_precision precision) {
    enum { MATRIX = 1 };
    enum dl_precision operands = precision == DL_MIXED ? DL_FP16 : precision;
    for (int i = 0; i < device->rate_count; i++)
        if (device->rates[i].precision == (int)operands && device->rates[i].unit == MATRIX)
            return true;
    return false;
}

/* The samples of one model. */
struct selection {
    struct dl_fit_set set;
    struct dl_kernel_model_shape *shapes;
    double *log_times;
};

static enum dl_code select_samples(const struct dl_fit_kernel_job *job, struct dl_arena *arena,
                                   struct selection *out, struct dl_err *err) {
    const struct dl_kernel_sample *samples = job->samples;
    const size_t n = job->count;
    const struct dl_device *device = job->device;
    const enum dl_op op = job->op;
    const enum dl_pass pass = job->pass;
    const enum dl_precision precision = job->precision;
    *out = (struct selection){.set = {.op = op, .pass = pass}};
    out->shapes = dl_arena_alloc(arena, n, sizeof *out->shapes);
    out->log_times = dl_arena_alloc(arena, n, sizeof *out->log_times);
    size_t count = 0, of_many = 0;
    for (size_t i = 0; i < n; i++) {
        if (!wanted(&samples[i], op, pass, precision)) continue;
        dl_kernel_model_shape_of(&samples[i].kernel,
                                 op == DL_OP_STREAM ? dl_precision_bytes(precision)
                                                    : dl_precision_operand_bytes(precision),
                                 device->unit_count, &out->shapes[count]);
        out->log_times[count] = log(samples[i].time_s);
        of_many += samples[i].of_many;
        count++;
    }
    if (count == 0)
        return dl_fail(err, DL_ERR_INPUT, "no samples of %s %s %s to fit kernel times to",
                       dl_op_names[op], dl_precision_names[precision], dl_pass_names[pass]);
    out->set.shapes = out->shapes;
    out->set.log_times = out->log_times;
    out->set.count = count;
    out->set.of_many = of_many == count;
    /* A correction from a few convolutions of any dimensions misleads far from them. */
    out->set.no_correction = op == DL_OP_CONV && out->set.of_many && count < FEW_CONVOLUTIONS;
    /* Half-precision convolutions may run on half-precision vector units (P100); GEMMs accumulate
     * in fp32. */
    bool half_conv =
        op == DL_OP_CONV && precision == DL_MIXED && isfinite(dl_device_peak(device, DL_FP16));
    out->set.peak_flop_per_s = dl_device_peak(device, half_conv ? DL_FP16 : precision);
    out->set.peak_bytes_per_s = device->memory_bandwidth_bytes_per_s;
    out->set.latency_s = device->kernel_latency_s;
    out->set.channel_multiple = op == DL_OP_CONV && has_matrix_unit(device, precision) ? 8.0 : 1.0;
    out->set.by_algorithm =
        op == DL_OP_CONV && out->set.channel_multiple <= 1.0 && device->kind == DL_DEVICE_GPU;
    if (job->own_cpu) {
        out->set.own_cpu = true;
        out->set.peak_flop_per_s = out->set.latency_s = NAN;
    }
    return DL_OK;
}

/* Robust standard deviation of errors around zero: the 90th percentile of a normal variable's
 * magnitude is 1.645. */
static double sigma_of(const double *errors, size_t n, double *scratch) {
    if (n == 0) return 0.0;
    for (size_t i = 0; i < n; i++) scratch[i] = fabs(errors[i]);
    dl_sort(scratch, n);
    return dl_quantile_sorted(scratch, n, 0.9) / 1.645;
}

/* Prior of base_sigma_log and its weight in samples: a few samples do not determine a spread. */
static const double SIGMA_PRIOR = 0.25;
static const double SIGMA_PRIOR_WEIGHT = 4.0;

static enum dl_code fit_set(const struct dl_fit_set *set, struct dl_arena *arena,
                            struct dl_kernel_model *model, struct dl_err *err) {
    static const struct dl_kernel_model_scale own = {1.0, 1.0, 1.0, 1.0};
    DL_TRY(dl_fit_base(set, model, err));
    double *residuals = dl_arena_alloc(arena, set->count, sizeof *residuals);
    double *scratch = dl_arena_alloc(arena, set->count, sizeof *scratch);
    for (size_t i = 0; i < set->count; i++)
        residuals[i] =
            set->log_times[i] - log(dl_kernel_model_base(model, &own, &set->shapes[i], NULL));
    double n = (double)set->count, sigma = sigma_of(residuals, set->count, scratch);
    sigma = sqrt((n * sigma * sigma + SIGMA_PRIOR_WEIGHT * SIGMA_PRIOR * SIGMA_PRIOR) /
                 (n + SIGMA_PRIOR_WEIGHT));
    model->base_sigma_log = model->correction.sigma_log = dl_fit_round(sigma, 4);
    model->correction.samples = (int64_t)set->count;
    model->correction.offset = 0.0;
    if (set->count < DL_FIT_MIN_SAMPLES || set->no_correction) {
        if (set->no_correction)
            model->correction.offset = dl_fit_round(dl_fit_level(set, residuals, scratch), 6);
        return DL_OK;
    }
    return dl_fit_process(set, residuals, arena, model, err);
}

static bool same_shape(const struct dl_kernel_model_shape *a,
                       const struct dl_kernel_model_shape *b) {
    /* Storage order and alignment follow from the sizes: compare only what identifies the kernel.
     */
    return a->flop == b->flop && a->m == b->m && a->n == b->n && a->k == b->k &&
           (a->op != DL_OP_STREAM || !(a->bytes < b->bytes || a->bytes > b->bytes)) &&
           (a->op != DL_OP_ATTENTION || !(a->count < b->count || a->count > b->count)) &&
           (a->op != DL_OP_CONV || !(a->features[DL_AXIS_STRIDE] < b->features[DL_AXIS_STRIDE] ||
                                     a->features[DL_AXIS_STRIDE] > b->features[DL_AXIS_STRIDE]));
}

/* Assigns the distinct shapes to folds in a fixed shuffled order. */
static void deal_folds(const struct dl_fit_set *set, size_t folds, size_t *fold, size_t *shape,
                       size_t *order) {
    size_t shapes = 0;
    for (size_t i = 0; i < set->count; i++) {
        size_t j = 0;
        while (j < i && !same_shape(&set->shapes[i], &set->shapes[j])) j++;
        shape[i] = j < i ? shape[j] : shapes++;
    }
    for (size_t s = 0; s < shapes; s++) order[s] = s;
    uint64_t state = 20180601; /* any fixed seed */
    for (size_t s = shapes; s > 1; s--) {
        state = state * 6364136223846793005u + 1442695040888963407u; /* Knuth's MMIX generator */
        size_t other = (size_t)((state >> 33) % s), swap = order[s - 1];
        order[s - 1] = order[other];
        order[other] = swap;
    }
    for (size_t i = 0; i < set->count; i++) fold[i] = order[shape[i]] % folds;
}

static double work_of(const struct dl_fit_set *set, size_t i) {
    return set->op == DL_OP_STREAM ? set->shapes[i].bytes : set->shapes[i].flop;
}

static void fill_quality(const struct dl_fit_set *set, const double *log_predicted,
                         struct dl_fit_quality *quality, double *scratch, double *signed_errors) {
    size_t n = set->count;
    for (size_t i = 0; i < n; i++) {
        signed_errors[i] = exp(log_predicted[i] - set->log_times[i]) - 1.0;
        scratch[i] = fabs(signed_errors[i]);
    }
    dl_sort(scratch, n);
    quality->median_ape = dl_quantile_sorted(scratch, n, 0.5);
    quality->p90_ape = dl_quantile_sorted(scratch, n, 0.9);
    quality->max_ape = scratch[n - 1];
    quality->bias = dl_median(signed_errors, n, scratch);
    /* Baseline: time = work / rate, with the one rate that is right for the median kernel. */
    for (size_t i = 0; i < n; i++)
        signed_errors[i] = set->log_times[i] - log(fmax(work_of(set, i), 1.0));
    double middle = dl_median(signed_errors, n, scratch);
    for (size_t i = 0; i < n; i++) scratch[i] = fabs(exp(middle - signed_errors[i]) - 1.0);
    dl_sort(scratch, n);
    quality->one_factor_median_ape = dl_quantile_sorted(scratch, n, 0.5);
    quality->one_factor_p90_ape = dl_quantile_sorted(scratch, n, 0.9);
}

/* Predicts the samples of `set` in fold `left_out` (fold NULL: all). */
static void predict_samples(const struct dl_kernel_model *model, const struct dl_fit_set *set,
                            const size_t *fold, size_t left_out, double *log_predicted) {
    static const struct dl_kernel_model_scale own = {1.0, 1.0, 1.0, 1.0};
    for (size_t i = 0; i < set->count; i++) {
        if (fold != NULL && fold[i] != left_out) continue;
        struct dl_kernel_time time;
        dl_kernel_model_eval(model, &own, &set->shapes[i], &time);
        log_predicted[i] = log(time.time_s);
    }
}

/* Fits without the samples of `fold`, predicts them. */
static enum dl_code leave_out(const struct dl_fit_set *set, const size_t *fold, size_t left_out,
                              struct dl_arena *arena, double *log_predicted, struct dl_err *err) {
    struct dl_kernel_model_shape *shapes = dl_arena_alloc(arena, set->count, sizeof *shapes);
    double *log_times = dl_arena_alloc(arena, set->count, sizeof *log_times);
    struct dl_fit_set rest = *set;
    rest.shapes = shapes;
    rest.log_times = log_times;
    rest.count = 0;
    for (size_t i = 0; i < set->count; i++) {
        if (fold[i] == left_out) continue;
        shapes[rest.count] = set->shapes[i];
        log_times[rest.count++] = set->log_times[i];
    }
    if (rest.count == 0) return DL_OK; /* one shape only: its in-sample prediction stays */
    struct dl_kernel_model model = {.op = (int)set->op, .pass = (int)set->pass};
    DL_TRY(fit_set(&rest, arena, &model, err));
    predict_samples(&model, set, fold, left_out, log_predicted);
    return DL_OK;
}

/* Predictions of all samples, each by a fit that did not see its shape. */
static enum dl_code predict_folds(const struct dl_fit_set *set, size_t folds,
                                  struct dl_arena *arena, double *log_predicted,
                                  struct dl_err *err) {
    size_t n = set->count, *fold = dl_arena_alloc(arena, n, sizeof *fold),
           *shape = dl_arena_alloc(arena, n, sizeof *shape),
           *order = dl_arena_alloc(arena, n, sizeof *order);
    deal_folds(set, folds, fold, shape, order);
    for (size_t f = 0; f < folds; f++) DL_TRY(leave_out(set, fold, f, arena, log_predicted, err));
    return DL_OK;
}

static enum dl_code cross_validate(const struct dl_fit_set *set, size_t folds,
                                   struct dl_fit_quality *quality, double *log_predicted,
                                   double *sigma_log, struct dl_err *err) {
    struct dl_arena arena = {0};
    size_t n = set->count;
    double *scratch = dl_arena_alloc(&arena, n, sizeof *scratch),
           *errors = dl_arena_alloc(&arena, n, sizeof *errors);
    enum dl_code code;
    *quality = (struct dl_fit_quality){.samples = n, .base_only = n < DL_FIT_MIN_SAMPLES};
    /* Too few samples to leave any out: the errors are those of one fit to all of them. */
    bool in_sample = n < DL_FIT_MIN_SAMPLES || folds < 2;
    if (!in_sample) quality->folds = folds;
    if (in_sample) {
        struct dl_kernel_model model = {.op = (int)set->op, .pass = (int)set->pass};
        code = fit_set(set, &arena, &model, err);
        if (code == DL_OK) predict_samples(&model, set, NULL, 0, log_predicted);
    } else {
        code = predict_folds(set, folds, &arena, log_predicted, err);
    }
    if (code == DL_OK) {
        for (size_t i = 0; i < n; i++) errors[i] = log_predicted[i] - set->log_times[i];
        if (sigma_log != NULL) *sigma_log = sigma_of(errors, n, scratch);
        fill_quality(set, log_predicted, quality, scratch, errors);
    }
    dl_arena_free(&arena);
    return code;
}

/* Streams whose times scatter at equal bytes (caches warm or cold) are better left to the base:
 * sets no_correction where the correction predicts left-out samples worse. */
static enum dl_code try_without(struct dl_fit_set *set, double *log_predicted, struct dl_err *err) {
    struct dl_fit_quality with, without;
    struct dl_fit_set bare = *set;
    bare.no_correction = true;
    DL_TRY(cross_validate(set, FOLDS, &with, log_predicted, NULL, err));
    DL_TRY(cross_validate(&bare, FOLDS, &without, log_predicted, NULL, err));
    set->no_correction = without.median_ape < with.median_ape;
    return DL_OK;
}

/* Whether the device that lends its models is another board of the same chip. */
static bool is_board(const struct dl_device *device) {
    static const double APART = 1.15;
    if (device->borrowed == NULL || !dl_device_same_architecture(device, device->borrowed))
        return false;
    const double ratio =
        dl_device_peak(device, DL_MIXED) / dl_device_peak(device->borrowed, DL_MIXED);
    return ratio < APART && ratio > 1.0 / APART;
}

/* The worst breach of a model alone, in its precision and in those that may go by it. */
static struct dl_law_breach breach_of(const struct dl_device *alone,
                                      const struct dl_kernel_model *model) {
    const enum dl_op op = (enum dl_op)model->op;
    struct dl_law_breach breach = dl_kernel_laws(alone, op, (enum dl_precision)model->precision);
    for (int p = DL_MIXED; p <= DL_NVFP4 && model->precision <= DL_MIXED; p++)
        if (breach.law == NULL) breach = dl_kernel_laws(alone, op, (enum dl_precision)p);
    return breach;
}

/* Moves the rate of 16-bit GEMMs towards that of another board of the chip, in steps of 1 %, until
 * both obey the law of boards. */
static void approach_board(const struct dl_device *device, const struct dl_device *alone,
                           struct dl_kernel_model *model) {
    enum { STEPS = 30, DIGITS = 5 };
    static const double STEP = 1.01;
    if (!is_board(device) || model->op != DL_OP_GEMM || model->precision != DL_MIXED) return;
    for (int step = 0; step < STEPS; step++) {
        const struct dl_law_breach breach = dl_kernel_board_law(alone, device->borrowed, DL_MIXED);
        struct dl_kernel_time own, board;
        if (breach.law == NULL) return;
        dl_kernel_time(alone, DL_MIXED, &breach.kernel, &own);
        dl_kernel_time(device->borrowed, DL_MIXED, &breach.kernel, &board);
        model->rate_flop_per_s = dl_fit_round(
            model->rate_flop_per_s * (own.time_s < board.time_s ? 1.0 / STEP : STEP), DIGITS);
    }
}

/* F-KERNEL-LAWS: the correction keeps the largest share, in steps, at which the model obeys the
 * laws; a base that breaks one is refused. */
static enum dl_code obey(const struct dl_device *device, struct dl_kernel_model *model,
                         struct dl_arena *arena, struct dl_err *err) {
    enum { STEPS = 12, DIGITS = 8 };
    static const double SHARE = 0.8;
    struct dl_device alone = *device;
    struct dl_law_breach breach;
    alone.kernel_models = model;
    alone.kernel_model_count = 1;
    alone.borrowed = NULL;
    for (int step = 0; step <= STEPS; step++) {
        approach_board(device, &alone, model);
        breach = breach_of(&alone, model);
        if (breach.law == NULL) return DL_OK;
        const double share = step + 1 < STEPS ? SHARE : 0.0;
        for (int i = 0; i < model->correction.weight_count; i++)
            model->correction.weights[i] =
                dl_fit_round(share * model->correction.weights[i], DIGITS);
        DL_TRY(dl_kernel_model_pack(model, arena, err));
    }
    return dl_fail(err, DL_ERR_INPUT, "kernel times of %s %s break the law \"%s\" by %.2f",
                   dl_op_names[model->op], dl_precision_names[model->precision], breach.law,
                   breach.ratio);
}

enum dl_code dl_fit_kernel_model(const struct dl_fit_kernel_job *job, struct dl_arena *arena,
                                 struct dl_kernel_model *out, struct dl_fit_quality *quality,
                                 struct dl_err *err) {
    struct selection chosen;
    DL_TRY(select_samples(job, arena, &chosen, err));
    struct dl_kernel_model model = {.op = (int)job->op,
                                    .pass = (int)job->pass,
                                    .precision = (int)job->precision,
                                    .correction.call_s = NAN};
    double *log_predicted = dl_arena_alloc(arena, chosen.set.count, sizeof *log_predicted);
    /* else GSL calls abort() */
    gsl_error_handler_t *handler = gsl_set_error_handler_off();
    enum dl_code code = DL_OK;
    if (job->op == DL_OP_STREAM && quality != NULL)
        code = try_without(&chosen.set, log_predicted, err);
    if (code == DL_OK) code = fit_set(&chosen.set, arena, &model, err);
    /* Kernels of serving engines hold more than a product. */
    const enum dl_variant variant = job->samples[0].kernel.variant;
    const bool product = variant != DL_VARIANT_ENGINE && variant != DL_VARIANT_BLOCKS;
    if (code == DL_OK && product && !job->own_cpu) code = obey(job->device, &model, arena, err);
    if (code == DL_OK && quality != NULL) {
        double sigma_log = model.correction.sigma_log;
        code = cross_validate(&chosen.set, FOLDS, quality, log_predicted, &sigma_log, err);
        if (quality->folds > 0) model.correction.sigma_log = dl_fit_round(sigma_log, 4);
    }
    gsl_set_error_handler(handler);
    if (code == DL_OK) *out = model;
    return code;
}
