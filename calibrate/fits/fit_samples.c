/* fit_samples.c - reads kernel CSV files (DeepBench's columns) and fits all kernel-time models of a
 * device. Not here: the fit itself (fit_kernel.c). */
#include <math.h>
#include <string.h>

#include "calibrate/fits/fit_internal.h"
#include "model/core/csv.h"
#include "model/statistics/stats.h"
#include "model/machine/kernel_match.h"
#include "model/machine/kernel_table.h"

static bool is_of(const struct dl_device *device, const char *column) {
    const char *name = dl_kernel_match_device(column);
    if (name == NULL) return false;
    if (strcmp(name, device->name) == 0) return true;
    for (int i = 0; i < device->alias_count; i++)
        if (strcmp(device->aliases[i], column) == 0) return true;
    return false;
}

/* A sample as the models see it. Streams of 16-bit elements are one kind, those of 32 bits another.
 * All 16-bit operands count as mixed where the device runs them at one rate, bf16 convolutions if
 * they are few (join_few). */
static struct dl_kernel_sample sample_of(const struct dl_kernel_row *row,
                                         const struct dl_device *device) {
    struct dl_kernel_sample sample = {row->kernel, row->precision, row->measured_s, row->by_call,
                                      false};
    struct dl_kernel *kernel = &sample.kernel;
    if (kernel->op == DL_OP_STREAM) {
        const double width = dl_precision_bytes(sample.precision);
        kernel->extra_bytes += kernel->read_elements * width;
        kernel->read_elements = 0.0;
        sample.precision = width < 4.0 ? DL_MIXED : DL_FP32;
    } else if (sample.precision == DL_FP16 || sample.precision == DL_BF16) {
        const double rate = dl_device_peak(device, sample.precision);
        if (kernel->op == DL_OP_CONV && sample.precision == DL_BF16) return sample;
        if (rate >= dl_device_peak(device, DL_MIXED) && rate <= dl_device_peak(device, DL_MIXED))
            sample.precision = DL_MIXED;
    }
    return sample;
}

/* Leaves the time of a convolution without the copies around it; false: other kernels are in it. */
static bool take_off_copies(const struct dl_device *device, struct dl_kernel_row *row) {
    static const double LEAST_SHARE = 0.3; /* of the time */
    struct dl_kernel_time copies;
    if (row->kernel.op != DL_OP_CONV || row->more_count != 1 || row->more[0].op != DL_OP_STREAM)
        return false;
    dl_kernel_time(device, row->precision, &row->more[0], &copies);
    row->measured_s = fmax(row->measured_s - copies.time_s, LEAST_SHARE * row->measured_s);
    return true;
}

enum dl_code dl_fit_read_samples(const char *csv_path, const struct dl_device *device,
                                 struct dl_arena *arena, struct dl_kernel_samples *out,
                                 struct dl_err *err) {
    struct dl_csv csv;
    DL_TRY(dl_csv_read(csv_path, arena, &csv, err));
    *out = (struct dl_kernel_samples){
        .rows = dl_arena_alloc(arena, (size_t)csv.row_count, sizeof *out->rows)};
    const int library = dl_csv_column(&csv, "library");
    const bool by_gpu = dl_kernel_table_header(&csv);
    for (int row = 0; row < csv.row_count; row++) {
        struct dl_kernel_row read;
        DL_TRY(dl_kernel_row_read(&csv, row, &read, err));
        if (!is_of(device, read.device) || read.why != NULL) continue;
        if (read.more_count > 0 && !take_off_copies(device, &read)) continue;
        if (!(read.kernel.flop > 0.0) && read.kernel.op != DL_OP_STREAM) continue;
        if (read.kernel.variant == DL_VARIANT_FLASH2 && dl_kernel_has_later_attention(device))
            continue; /* a ratio to the models */
        out->rows[out->count] = sample_of(&read, device);
        out->rows[out->count++].of_many = by_gpu;
        if (library >= 0) out->library = csv.rows[row][library];
    }
    return DL_OK;
}

static enum dl_code join_samples(const char *const *csv_paths, size_t csv_count,
                                 const struct dl_device *device, struct dl_arena *arena,
                                 struct dl_kernel_samples *all, struct dl_err *err) {
    *all = (struct dl_kernel_samples){0};
    for (size_t i = 0; i < csv_count; i++) {
        struct dl_kernel_samples part;
        DL_TRY(dl_fit_read_samples(csv_paths[i], device, arena, &part, err));
        struct dl_kernel_sample *joined =
            dl_arena_alloc(arena, all->count + part.count, sizeof *joined);
        if (all->count > 0) memcpy(joined, all->rows, all->count * sizeof *joined);
        if (part.count > 0) memcpy(joined + all->count, part.rows, part.count * sizeof *joined);
        all->rows = joined;
        all->count += part.count;
        if (part.library != NULL)
            all->library = all->library == NULL
                               ? part.library
                               : dl_arena_printf(arena, "%s; %s", all->library, part.library);
    }
    return DL_OK;
}

/* Times of calls timed from outside that the launch does not hide. *call_s: the shortest of them;
 * NAN: no sample was timed so. */
static size_t drop_hidden(struct dl_kernel_sample *samples, size_t n, double *call_s,
                          double *scratch) {
    static const double SHORTEST = 0.05, HIDDEN = 2.5; /* quantile; multiple of call_s */
    static const double LONGEST_LAUNCH_S = 6e-5;
    size_t calls = 0, kept = 0;
    for (size_t i = 0; i < n; i++)
        if (samples[i].by_call) scratch[calls++] = samples[i].time_s;
    *call_s = NAN;
    if (calls == 0) return n;
    dl_sort(scratch, calls);
    const double shortest_s = dl_quantile_sorted(scratch, calls, SHORTEST);
    if (samples[0].kernel.op == DL_OP_STREAM && shortest_s > LONGEST_LAUNCH_S)
        return n; /* no call is as short as a launch */
    *call_s = dl_fit_round(shortest_s, 3);
    for (size_t i = 0; i < n; i++)
        if (!samples[i].by_call || samples[i].time_s > HIDDEN * *call_s)
            samples[kept++] = samples[i];
    return kept;
}

/* Kernels with separate models: those of a serving engine, depthwise and three-dimensional
 * convolutions. */
static bool is_of_model(const struct dl_kernel *kernel, enum dl_variant variant) {
    static const enum dl_variant apart[DL_OPS][3] = {
        [DL_OP_STREAM] = {DL_VARIANT_ENGINE, DL_VARIANT_STRIDED},
        [DL_OP_CONV] = {DL_VARIANT_DEPTHWISE, DL_VARIANT_VOLUME}};
    if (kernel->op == DL_OP_GEMM &&
        (kernel->variant == DL_VARIANT_ENGINE || kernel->variant == DL_VARIANT_BLOCKS))
        return variant == DL_VARIANT_ENGINE;
    for (const enum dl_variant *v = apart[kernel->op]; *v != DL_VARIANT_PLAIN; v++)
        if (kernel->variant == *v) return variant == *v;
    return variant == DL_VARIANT_PLAIN;
}

static size_t take(const struct dl_kernel_sample *samples, size_t n,
                   const struct dl_fit_report_row *row, struct dl_kernel_sample *out) {
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        if (samples[i].kernel.op == row->op && samples[i].kernel.pass == row->pass &&
            samples[i].precision == row->precision &&
            (row->op != DL_OP_STREAM || samples[i].kernel.work == row->work) &&
            is_of_model(&samples[i].kernel, row->variant))
            out[count++] = samples[i];
    return count;
}

/* A library may have other convolution kernels for bf16 than for fp16 (MIOpen has). Fewer samples
 * of bf16 than a model of their own needs join the others. */
static void join_few(struct dl_kernel_sample *samples, size_t n, const struct dl_device *device) {
    enum { FEW = 60 };
    size_t convolutions = 0;
    const double ratio = dl_device_peak(device, DL_BF16) / dl_device_peak(device, DL_MIXED);
    for (size_t i = 0; i < n; i++)
        convolutions += samples[i].kernel.op == DL_OP_CONV && samples[i].precision == DL_BF16;
    if (convolutions >= FEW || !(ratio > 0.99 && ratio < 1.01)) return;
    for (size_t i = 0; i < n; i++)
        if (samples[i].kernel.op == DL_OP_CONV && samples[i].precision == DL_BF16)
            samples[i].precision = DL_MIXED;
}

/* Keys of data/SOURCES.md. */
static const char DEEPBENCH[] = "deepbench", BY_GPU[] = "kernels-by-gpu";

static bool is_by_gpu(const char *path, struct dl_arena *arena) {
    struct dl_csv csv;
    struct dl_err ignored;
    return dl_csv_read(path, arena, &csv, &ignored) == DL_OK && dl_kernel_table_header(&csv);
}

/* Median of sorted numbers but the i-th. */
static double middle_of_others(const double *sorted, size_t n, size_t i) {
    if (n < 2) return sorted[0];
    const size_t high = (n - 1) / 2, low = (n - 2) / 2;
    return 0.5 * (sorted[low + (low >= i)] + sorted[high + (high >= i)]);
}

/* Where few samples are of a kind (backward passes of attention, one kind of stream): the model of
 * the kind that they are most like, times the ratio that they show. The errors are those of each
 * sample by the ratio of the others. */
static void fit_ratio(const struct dl_fit_kernel_job *job, const struct dl_kernel_model *like,
                      struct dl_arena *arena, struct dl_kernel_model *model,
                      struct dl_fit_quality *quality) {
    static const struct dl_kernel_model_scale own = {1.0, 1.0, 1.0, 1.0};
    static const double NORMAL_90 = 1.645;
    const struct dl_kernel_sample *samples = job->samples;
    const size_t n = job->count;
    double *scratch = dl_arena_alloc(arena, n, sizeof *scratch),
           *errors = dl_arena_alloc(arena, n, sizeof *errors);
    const bool stream = samples[0].kernel.op == DL_OP_STREAM;
    struct dl_kernel_model base = *like;
    base.pass = (int)samples[0].kernel.pass;
    base.correction.samples = (int64_t)n;
    for (size_t i = 0; i < n; i++) {
        struct dl_kernel_model_shape shape;
        struct dl_kernel_time time;
        dl_kernel_model_shape_of(&samples[i].kernel,
                                 stream ? dl_precision_bytes(samples[i].precision)
                                        : dl_precision_operand_bytes(samples[i].precision),
                                 job->device->unit_count, &shape);
        dl_kernel_model_eval(like, &own, &shape, &time);
        scratch[i] = log(samples[i].time_s / time.time_s);
    }
    dl_sort(scratch, n);
    const double ratio = dl_quantile_sorted(scratch, n, 0.5);
    base.correction.offset = dl_fit_round(like->correction.offset + ratio, 6);
    for (size_t i = 0; i < n; i++) errors[i] = fabs(scratch[i] - middle_of_others(scratch, n, i));
    dl_sort(errors, n);
    base.correction.sigma_log = base.base_sigma_log =
        dl_fit_round(fmax(dl_quantile_sorted(errors, n, 0.9) / NORMAL_90, 0.1), 4);
    *quality = (struct dl_fit_quality){.samples = n,
                                       .median_ape = dl_quantile_sorted(errors, n, 0.5),
                                       .p90_ape = dl_quantile_sorted(errors, n, 0.9),
                                       .max_ape = errors[n - 1],
                                       .one_factor_median_ape = exp(ratio)};
    *model = base;
}

static const struct dl_kernel_model *forward_of(const struct dl_kernel_model_set *set,
                                                const struct dl_fit_report_row *row) {
    for (int i = 0; i < set->kernel_model_count; i++)
        if (set->kernel_models[i].op == (int)row->op && set->kernel_models[i].pass == DL_FORWARD &&
            set->kernel_models[i].precision == (int)row->precision)
            return &set->kernel_models[i];
    return NULL;
}

/* The model that a few samples of one kind of stream scale: of the kernels without a kind. */
static const struct dl_kernel_model *any_of(const struct dl_kernel_model_set *set,
                                            const struct dl_fit_report_row *row) {
    for (int i = 0; i < set->kernel_model_count; i++) {
        const struct dl_kernel_model *m = &set->kernel_models[i];
        if (m->op == DL_OP_STREAM && m->pass == (int)row->pass && m->work == DL_WORK_ANY &&
            m->precision == (int)row->precision && m->variant == DL_VARIANT_PLAIN)
            return m;
    }
    return NULL;
}

/* The model that the samples of `row` are a multiple of; NULL: they have their own model. */
static const struct dl_kernel_model *like_of(const struct dl_kernel_model_set *set,
                                             const struct dl_fit_report_row *row, size_t count) {
    enum { FEW_OF_A_WORK = 12, LEAST_OF_A_WORK = 4, FEW_BACKWARD = 8 };
    if (row->op == DL_OP_ATTENTION && row->pass != DL_FORWARD && count < FEW_BACKWARD)
        return forward_of(set, row);
    const bool few = row->op == DL_OP_STREAM && row->work != DL_WORK_ANY &&
                     row->variant == DL_VARIANT_PLAIN && count >= LEAST_OF_A_WORK &&
                     count < FEW_OF_A_WORK;
    return few ? any_of(set, row) : NULL;
}

static enum dl_code fit_all(const struct dl_kernel_samples *samples, const struct dl_device *device,
                            struct dl_arena *arena, struct dl_fit_report *out, struct dl_err *err) {
    enum { COMBINATIONS = DL_WORKS * DL_OPS * DL_PASSES * DL_PRECISIONS, FEW_OF_A_WORK = 12 };
    struct dl_kernel_model_set *set = &out->set;
    struct dl_kernel_sample *part = dl_arena_alloc(arena, samples->count, sizeof *part);
    double *scratch = dl_arena_alloc(arena, samples->count, sizeof *scratch);
    static const enum dl_variant variants[] = {DL_VARIANT_PLAIN, DL_VARIANT_ENGINE,
                                               DL_VARIANT_DEPTHWISE, DL_VARIANT_VOLUME,
                                               DL_VARIANT_STRIDED};
    const int variant_count = (int)(sizeof variants / sizeof variants[0]);
    for (int c = 0; c < variant_count * COMBINATIONS; c++) {
        struct dl_fit_report_row row = {
            .precision = (enum dl_precision)(c % DL_PRECISIONS),
            .pass = (enum dl_pass)(c / DL_PRECISIONS % DL_PASSES),
            .op = (enum dl_op)(c / DL_PRECISIONS / DL_PASSES % DL_OPS),
            .work = (enum dl_work)(c / DL_PRECISIONS / DL_PASSES / DL_OPS % DL_WORKS),
            .variant = variants[c / COMBINATIONS]};
        if (row.op != DL_OP_STREAM && row.work != DL_WORK_ANY) continue;
        /* by the model of 16 bits and the rate that large ones sustain (model/machine/kernel.c) */
        if (row.op == DL_OP_GEMM && row.variant == DL_VARIANT_PLAIN &&
            dl_precision_is_narrow(row.precision))
            continue;
        double call_s;
        size_t count = take(samples->rows, samples->count, &row, part);
        count = drop_hidden(part, count, &call_s, scratch);
        /* A few shapes of convolutions, by one program with its layout, tell less of a network than
         * the datasheet. */
        const bool special =
            row.work != DL_WORK_ANY || row.variant != DL_VARIANT_PLAIN || row.op == DL_OP_CONV;
        const struct dl_kernel_model *like = like_of(set, &row, count);
        if (count == 0 || (special && count < FEW_OF_A_WORK && like == NULL)) continue;
        struct dl_kernel_model *model = &set->kernel_models[set->kernel_model_count];
        const struct dl_fit_kernel_job job = {.samples = part,
                                              .count = count,
                                              .device = device,
                                              .op = row.op,
                                              .pass = row.pass,
                                              .precision = row.precision};
        if (like != NULL)
            fit_ratio(&job, like, arena, model, &row.quality);
        else
            DL_TRY(dl_fit_kernel_model(&job, arena, model, &row.quality, err));
        model->source = set->source;
        model->work = (int)row.work;
        model->variant = (int)row.variant;
        model->correction.call_s = call_s;
        out->rows[set->kernel_model_count++] = row;
    }
    return DL_OK;
}

enum dl_code dl_fit_kernel_files(const char *const *csv_paths, size_t csv_count,
                                 const struct dl_device *device, struct dl_arena *arena,
                                 struct dl_fit_report *out, struct dl_err *err) {
    enum { MAX_MODELS = 2 * DL_OPS * DL_PASSES * DL_PRECISIONS + 4 * DL_WORKS * DL_PASSES };
    struct dl_kernel_samples samples;
    DL_TRY(join_samples(csv_paths, csv_count, device, arena, &samples, err));
    join_few(samples.rows, samples.count, device);
    if (samples.count == 0)
        return dl_fail(err, DL_ERR_INPUT,
                       "no kernel times of device %s in the tables (column device)", device->name);
    out->set = (struct dl_kernel_model_set){
        .device = device->name,
        .library = samples.library,
        .source = is_by_gpu(csv_paths[0], arena) ? BY_GPU : DEEPBENCH,
        .kernel_models = dl_arena_alloc(arena, MAX_MODELS, sizeof *out->set.kernel_models)};
    out->rows = dl_arena_alloc(arena, MAX_MODELS, sizeof *out->rows);
    return fit_all(&samples, device, arena, out, err);
}
