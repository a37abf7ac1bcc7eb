/* cal_gpu_work.c - F-KERNEL-WORK: all kinds of bandwidth-bound kernels share one kernel-time model;
 * the factor of a kind is the ratio of its samples to that model. Attention is measured as a
 * framework composes it: its factor applies to the sum of its GEMMs and softmax. See cal_gpu.h. */
#include <math.h>
#include <string.h>

#include "calibrate/profile/cal_gpu.h"
#include "model/statistics/stats.h"

static const size_t LEAST_SAMPLES = 2; /* of a kind, pass and precision */

static const struct {
    const char *probe;
    enum dl_work work;
} probes[] = {{"gpu-norm", DL_WORK_BATCHNORM},  {"gpu-layernorm", DL_WORK_LAYERNORM},
              {"gpu-act", DL_WORK_ACTIVATION},  {"gpu-pool", DL_WORK_POOLING},
              {"gpu-softmax", DL_WORK_SOFTMAX}, {"gpu-attention", DL_WORK_ATTENTION}};

enum { PARTS = 5 }; /* most kernels of a pass of attention */

/* The kernels of a pass as layer_attention.c composes them, without mask and dropout. */
static int attention(const struct dl_raw_sample *s, struct dl_kernel out[PARTS]) {
    const double count =
                     dl_cal_shape_number(s->shape, "n") * dl_cal_shape_number(s->shape, "heads"),
                 q = dl_cal_shape_number(s->shape, "q"), d = dl_cal_shape_number(s->shape, "d"),
                 n = count * q * q;
    const bool backward = strcmp(s->pass, "fwd") != 0;
    const enum dl_pass pass = backward ? DL_BACKWARD_DATA : DL_FORWARD;
    int made = 0;
    if (!backward) {
        out[made] = dl_kernel_gemm(pass, q, q, d, count);
        out[made++].a_trans = true;
        out[made++] = dl_kernel_stream(pass, 10 * n, n, n);
        out[made++] = dl_kernel_gemm(pass, d, q, q, count);
        return made;
    }
    out[made] = dl_kernel_gemm(pass, d, q, q, count);
    out[made++].b_trans = true;
    out[made] = dl_kernel_gemm(pass, q, q, d, count);
    out[made++].a_trans = true;
    out[made++] = dl_kernel_stream(pass, 4 * n, 2 * n, n);
    out[made++] = dl_kernel_gemm(pass, d, q, q, count);
    out[made] = dl_kernel_gemm(pass, d, q, q, count);
    out[made++].b_trans = true;
    return made;
}

double dl_cal_gpu_attention_flop(const struct dl_raw_sample *sample) {
    struct dl_kernel parts[PARTS];
    double flop = 0;
    if (strcmp(sample->probe, "gpu-attention") != 0) return NAN;
    for (int i = 0, count = attention(sample, parts); i < count; i++)
        flop += parts[i].op == DL_OP_GEMM ? parts[i].flop : 0;
    return flop;
}

/* Time of a sample by the kernel-time models, before any factor of its kind. */
static double model_time_s(const struct dl_device *device, const struct dl_raw_sample *s) {
    struct dl_kernel parts[PARTS];
    double sum = 0;
    int count = 1;
    if (strcmp(s->probe, "gpu-attention") == 0)
        count = attention(s, parts);
    else if (!dl_cal_gpu_kernel(s, &parts[0]))
        return NAN;
    for (int i = 0; i < count; i++) {
        struct dl_kernel_time t;
        dl_kernel_time(device, dl_cal_gpu_precision(s), &parts[i], &t);
        sum += t.time_s;
    }
    return sum;
}

static bool is_of(const struct dl_raw_sample *s, const char *probe, enum dl_pass pass,
                  enum dl_precision precision) {
    return s->probe != NULL && s->pass != NULL && strcmp(s->probe, probe) == 0 &&
           strcmp(s->pass, dl_pass_names[pass]) == 0 && dl_cal_gpu_precision(s) == precision;
}

/* Logarithms of measured / modelled time of the samples of a probe, pass and precision. */
static size_t ratios(const struct dl_cal_maker *m, const char *probe, enum dl_pass pass,
                     enum dl_precision precision, double *logs) {
    size_t count = 0;
    for (size_t i = 0; i < m->journal->sample_count; i++) {
        const struct dl_raw_sample *s = &m->journal->samples[i];
        if (!is_of(s, probe, pass, precision)) continue;
        const double ratio = s->median_s / model_time_s(&m->out->profile, s);
        if (ratio > 0 && isfinite(ratio)) logs[count++] = log(ratio);
    }
    return count;
}

void dl_cal_gpu_works(struct dl_cal_maker *m) {
    struct dl_device *d = &m->out->profile;
    enum { ROWS = DL_WORKS * 2 * DL_PRECISIONS };
    const size_t all = m->journal->sample_count + 1;
    double *logs = dl_arena_alloc(m->arena, all, sizeof *logs),
           *scratch = dl_arena_alloc(m->arena, all, sizeof *scratch);
    struct dl_work_factor *rows = dl_arena_alloc(m->arena, ROWS, sizeof *rows);
    int row_count = 0;
    for (size_t kind = 0; kind < sizeof probes / sizeof *probes; kind++) {
        for (int c = 0; c < 2 * DL_PRECISIONS; c++) {
            const enum dl_pass pass = c < DL_PRECISIONS ? DL_FORWARD : DL_BACKWARD_DATA;
            const enum dl_precision precision = (enum dl_precision)(c % DL_PRECISIONS);
            const size_t count = ratios(m, probes[kind].probe, pass, precision, logs);
            if (count < LEAST_SAMPLES) continue;
            const double factor = fmin(fmax(exp(dl_median(logs, count, scratch)), 0.01), 100);
            rows[row_count++] = (struct dl_work_factor){(int)probes[kind].work, (int)pass,
                                                        (int)precision, factor, "measured"};
        }
    }
    d->works = rows; /* only now: model_time_s must not see them */
    d->work_count = row_count;
}
