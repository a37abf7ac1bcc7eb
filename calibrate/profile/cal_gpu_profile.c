/* cal_gpu_profile.c - the device of a profile from the samples of a GPU: see cal_gpu.h. Kernel
 * times include the gap to the next kernel (probe_gpu.h), so the profile's own gap is 0. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calibrate/profile/cal_gpu.h"

/* of a kernel-time model: with fewer, the peak and the generic model are better */
static const int LEAST_SAMPLES = 3;

static double fact(const struct dl_cal_maker *m, const char *key) {
    const char *text = dl_cal_journal_find(m->journal, key);
    return text == NULL ? NAN : strtod(text, NULL);
}

enum dl_precision dl_cal_gpu_precision(const struct dl_raw_sample *s) {
    for (int i = 0; i < DL_PRECISIONS; i++) {
        if (dl_cal_is(s->precision, dl_precision_names[i])) return (enum dl_precision)i;
    }
    return DL_FP32;
}

/* Elements as the layers in model/workload/layers count them. */
static bool streamed(const struct dl_raw_sample *s, struct dl_kernel *out) {
    const bool backward = dl_cal_is(s->pass, "bwd_data");
    const enum dl_pass pass = backward ? DL_BACKWARD_DATA : DL_FORWARD;
    const double n = dl_cal_number(s, "n") * dl_cal_number(s, "c") * dl_cal_number_or(s, "h", 1) *
                     dl_cal_number_or(s, "h", 1);
    const double words = dl_cal_number(s, "bytes") / 4;
    if (dl_cal_is(s->probe, "gpu-norm"))
        *out = dl_kernel_stream(pass, 5 * n, backward ? 4 * n : 2 * n, n);
    else if (dl_cal_is(s->probe, "gpu-act") || dl_cal_is(s->probe, "gpu-softmax"))
        *out = dl_kernel_stream(pass, n, backward ? 2 * n : n, n);
    else if (dl_cal_is(s->probe, "gpu-layernorm")) {
        *out = dl_kernel_stream(pass, 8 * n, backward ? 2 * n : n, n);
        out->extra_bytes = 8 * dl_cal_number(s, "n");
    } else if (dl_cal_is(s->probe, "gpu-update"))
        *out = dl_kernel_stream(DL_UPDATE, 2 * words, 4 * words,
                                2 * words); /* two calls: four arrays read, two written */
    else if (dl_cal_is(s->probe, "gpu-pool")) {
        const double side = floor((dl_cal_number(s, "h") - 1) / 2) + 1,
                     pooled = dl_cal_number(s, "n") * dl_cal_number(s, "c") * side * side;
        *out = dl_kernel_stream(pass, n, backward ? pooled : n, backward ? n : pooled);
        out->extra_bytes = 8 * pooled;
    } else if (dl_cal_is(s->probe, "gpu-copy"))
        *out = dl_kernel_stream(pass, 0, words * (dl_cal_is(s->pass, "axpy") ? 2 : 1), words);
    else
        return false;
    return true;
}

bool dl_cal_gpu_kernel(const struct dl_raw_sample *s, struct dl_kernel *out) {
    if (dl_cal_is(s->probe, "gpu-gemm") || dl_cal_is(s->probe, "gpu-batch")) {
        *out = dl_kernel_gemm(DL_FORWARD, dl_cal_number(s, "m"), dl_cal_number(s, "n"),
                              dl_cal_number(s, "k"), dl_cal_number_or(s, "b", 1));
        out->a_trans = dl_cal_number_or(s, "ta", 0) > 0;
        out->b_trans = dl_cal_number_or(s, "tb", 0) > 0;
        return true;
    }
    if (!dl_cal_is(s->probe, "gpu-conv")) return streamed(s, out);
    *out = dl_cal_convolution(s);
    return true;
}

double dl_cal_gpu_work(const struct dl_raw_sample *s) {
    struct dl_kernel kernel;
    if (s->probe == NULL) return NAN;
    if (strncmp(s->probe, "gpu-", 4) != 0)
        return strncmp(s->probe, "nccl-", 5) == 0 ? dl_cal_number(s, "bytes") : NAN;
    if (dl_cal_is(s->probe, "gpu-host")) return dl_cal_number(s, "bytes");
    if (dl_cal_is(s->probe, "gpu-attention")) return dl_cal_gpu_attention_flop(s);
    if (!dl_cal_gpu_kernel(s, &kernel)) return NAN;
    if (kernel.op != DL_OP_STREAM) return kernel.flop;
    return (kernel.read_elements + kernel.write_elements) *
               dl_precision_bytes(dl_cal_gpu_precision(s)) +
           kernel.extra_bytes;
}

bool dl_cal_gpu_measured(const struct dl_cal_journal *journal) {
    for (size_t i = 0; i < journal->sample_count; i++) {
        if (dl_cal_is(journal->samples[i].probe, "gpu-gemm")) return true;
    }
    return false;
}

/* Largest work per second of a probe's samples in a precision and pass (NULL: any); NAN: none. */
static double best(const struct dl_cal_maker *m, const char *probe, const char *pass,
                   const char *precision) {
    double most = NAN;
    for (size_t i = 0; i < m->journal->sample_count; i++) {
        const struct dl_raw_sample *s = &m->journal->samples[i];
        if (!dl_cal_is(s->probe, probe) || (pass != NULL && !dl_cal_is(s->pass, pass)) ||
            (precision != NULL && !dl_cal_is(s->precision, precision)))
            continue;
        most = fmax(most, dl_cal_gpu_work(s) / s->median_s);
    }
    return most;
}

static double median_of(const struct dl_cal_maker *m, const char *probe, const char *pass) {
    for (size_t i = 0; i < m->journal->sample_count; i++) {
        const struct dl_raw_sample *s = &m->journal->samples[i];
        if (dl_cal_is(s->probe, probe) && dl_cal_is(s->pass, pass)) return s->median_s;
    }
    return NAN;
}

/* fp16 rates are those of GEMMs with fp16 operands and fp32 accumulation. Matrix units exist since
 * compute capability 7.0. */
static void make_rates(struct dl_cal_maker *m, double capability) {
    static const struct {
        const char *samples;
        enum dl_precision precision;
    } rows[] = {{"fp32", DL_FP32},
                {"tf32", DL_TF32},
                {"mixed", DL_FP16},
                {"bf16", DL_BF16},
                {"fp8", DL_FP8}};
    struct dl_device *d = &m->out->profile;
    d->rate_count = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const double rate = best(m, "gpu-gemm", NULL, rows[i].samples);
        const bool matrix = rows[i].precision != DL_FP32 && capability >= 70;
        if (dl_known(rate))
            d->rates[d->rate_count++] = (struct dl_rate){.precision = (int)rows[i].precision,
                                                         .unit = matrix ? 1 : 0,
                                                         .peak_flop_per_s = rate,
                                                         .sustained_flop_per_s = NAN,
                                                         .source = "measured"};
    }
}

static const char *architecture(double capability) {
    const int c = (int)capability;
    return c < 50    ? "kepler"
           : c < 60  ? "maxwell"
           : c < 70  ? "pascal"
           : c < 75  ? "volta"
           : c < 80  ? "turing"
           : c < 89  ? "ampere"
           : c == 89 ? "ada"
           : c < 100 ? "hopper"
                     : "blackwell";
}

static enum dl_code make_memory(struct dl_cal_maker *m, struct dl_err *err) {
    /* a peak of which less is attained is implausible (a wrong attribute) */
    static const double PLAUSIBLE_FRAC = 0.3;
    struct dl_device *d = &m->out->profile;
    const double attained = best(m, "gpu-copy", NULL, NULL), peak = fact(m, "gpu_peak_bytes_per_s");
    if (!dl_known(attained))
        return dl_fail(err, DL_ERR_BACKEND,
                       "memory bandwidth of the device was not measured: run the probe gpu-copy");
    const bool plausible = dl_known(peak) && attained <= peak && attained > PLAUSIBLE_FRAC * peak;
    d->memory_bandwidth_bytes_per_s = plausible ? peak : attained;
    d->memory_efficiency = plausible ? attained / peak : 1;
    return DL_OK;
}

static enum dl_code describe(struct dl_cal_maker *m, struct dl_err *err) {
    struct dl_device *d = &m->out->profile;
    const char *name = dl_cal_journal_find(m->journal, "gpu");
    const double capability = fact(m, "gpu_capability"), units = fact(m, "gpu_units"),
                 count = fact(m, "gpu_count");
    d->name = "local-gpu";
    d->kind = DL_DEVICE_GPU;
    d->vendor = "nvidia";
    d->summary = name != NULL ? name : "GPU";
    if (dl_known(capability)) d->architecture = architecture(capability);
    d->unit_count = dl_known(units) ? (int64_t)units : DL_ABSENT;
    if (dl_known(fact(m, "gpu_memory_bytes"))) d->memory_bytes = fact(m, "gpu_memory_bytes");
    d->l2_bytes = fact(m, "gpu_l2_bytes") > 0 ? fact(m, "gpu_l2_bytes") : NAN;
    d->clock_hz = fact(m, "gpu_clock_max_hz") > 0 ? fact(m, "gpu_clock_max_hz") : NAN;
    d->power.tdp_w = fact(m, "gpu_power_limit_w");
    d->context_bytes = fact(m, "gpu_context_bytes");
    d->workspace_bytes = fact(m, "gpu_workspace_bytes");
    d->kernel_latency_s = median_of(m, "gpu-launch", "train");
    d->launch_s = median_of(m, "gpu-launch", "queue");
    d->kernel_gap_s = 0;
    make_rates(m, dl_known(capability) ? capability : 0);
    d->comment =
        "Rates are the best that measured GEMMs attained, not those of a datasheet. "
        "memory_bandwidth follows from clock and bus width of the memory, memory_efficiency is the "
        "share that copies attained. Kernel times include the gap to the next kernel.";
    m->out->devices_per_node = dl_known(count) && count >= 1 ? (int64_t)count : 1;
    m->out->summary = dl_arena_printf(m->arena, "%s: %lld x %s", m->run->host.name,
                                      (long long)m->out->devices_per_node, d->summary);
    m->out->comment = "Written by dlmodel calibrate. Kernel times are those of the first GPU.";
    m->out->software.nccl_version = dl_cal_journal_find(m->journal, "nccl");
    m->out->host.copy_bandwidth_bytes_per_s =
        fmin(best(m, "gpu-host", "h2d_pinned", NULL), best(m, "gpu-host", "d2h_pinned", NULL));
    m->out->host.pageable_bandwidth_bytes_per_s =
        fmin(best(m, "gpu-host", "h2d_pageable", NULL), best(m, "gpu-host", "d2h_pageable", NULL));
    return make_memory(m, err);
}

static void gather(struct dl_cal_maker *m) {
    for (size_t i = 0; i < m->journal->sample_count; i++) {
        const struct dl_raw_sample *s = &m->journal->samples[i];
        struct dl_kernel_sample *k = &m->kernels[m->kernel_count];
        /* Kernels with row sums are not plain streams: they get a factor (cal_gpu_work.c) and
         * stay out of the fit. */
        if (dl_cal_is(s->probe, "gpu-layernorm") || dl_cal_is(s->probe, "gpu-softmax") ||
            !dl_cal_gpu_kernel(s, &k->kernel))
            continue;
        k->precision = dl_cal_gpu_precision(s);
        k->time_s = s->median_s;
        m->kernel_count++;
    }
}

/* The device for the fit: its units without rates, because no datasheet is known. The best sample
 * then centres the prior (fit_base.c). */
static void without_rates(const struct dl_cal_maker *m, struct dl_device *out) {
    *out = m->out->profile;
    out->rates = dl_arena_alloc(m->arena, (size_t)out->rate_count + 1, sizeof *out->rates);
    for (int i = 0; i < out->rate_count; i++) {
        out->rates[i] = m->out->profile.rates[i];
        out->rates[i].peak_flop_per_s = NAN;
    }
    out->memory_bandwidth_bytes_per_s = NAN;
}

enum dl_code dl_cal_gpu_device(struct dl_cal_maker *m, struct dl_err *err) {
    struct dl_device bare, *d = &m->out->profile;
    DL_TRY(describe(m, err));
    without_rates(m, &bare);
    gather(m);
    for (int c = 0; c < DL_OPS * DL_PASSES * DL_PRECISIONS; c++) {
        const enum dl_precision precision = (enum dl_precision)(c % DL_PRECISIONS);
        const enum dl_pass pass = (enum dl_pass)(c / DL_PRECISIONS % DL_PASSES);
        const enum dl_op op = (enum dl_op)(c / DL_PRECISIONS / DL_PASSES);
        int there = 0;
        for (size_t i = 0; i < m->kernel_count; i++) {
            const struct dl_kernel_sample *k = &m->kernels[i];
            there += k->kernel.op == op && k->kernel.pass == pass && k->precision == precision;
        }
        if (there < LEAST_SAMPLES) continue;
        struct dl_fit_quality quality;
        struct dl_kernel_model *surface = &d->kernel_models[d->kernel_model_count];
        const struct dl_fit_kernel_job job = {.samples = m->kernels,
                                              .count = m->kernel_count,
                                              .device = &bare,
                                              .op = op,
                                              .pass = pass,
                                              .precision = precision};
        DL_TRY(dl_fit_kernel_model(&job, m->arena, surface, &quality, err));
        surface->source = "measured";
        d->kernel_model_count++;
        dl_cal_note_fit(m,
                        dl_arena_printf(m->arena, "fit_%s_%s_%s", dl_op_names[op],
                                        dl_pass_names[pass], dl_precision_names[precision]),
                        &quality);
    }
    dl_cal_gpu_works(m);
    return DL_OK;
}
