/* cal_gpu_profile.c - the device of a profile from a GPU's samples: see cal_gpu.h. Kernel times
 * hold the gap to the next kernel (probe_gpu.h), so the profile's own gap is 0. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calibrate/cal_gpu.h"
#include "calibrate/fits/fit_kernel.h"

/* of a surface: below, the peak and the model's generic shape say more */
static const int LEAST_SAMPLES = 3;

static bool is(const char *text, const char *other) {
    return text != NULL && strcmp(text, other) == 0;
}
static double number(const struct dl_raw_sample *s, const char *key) {
    return dl_cal_shape_number(s->shape, key);
}
static double number_or(const struct dl_raw_sample *s, const char *key, double fallback) {
    const double value = number(s, key);
    return dl_known(value) ? value : fallback;
}

static double fact(const struct dl_cal_maker *m, const char *key) {
    const char *text = dl_cal_journal_find(m->journal, key);
    return text == NULL ? NAN : strtod(text, NULL);
}

static enum dl_pass pass_of(const struct dl_raw_sample *s) {
    return is(s->pass, "bwd_data")     ? DL_BACKWARD_DATA
           : is(s->pass, "bwd_filter") ? DL_BACKWARD_WEIGHTS
                                       : DL_FORWARD;
}

enum dl_precision dl_cal_gpu_precision(const struct dl_raw_sample *s) {
    for (int i = 0; i < DL_PRECISIONS; i++) {
        if (is(s->precision, dl_precision_names[i])) return (enum dl_precision)i;
    }
    return DL_FP32;
}

static struct dl_kernel convolution(const struct dl_raw_sample *s) {
    const double depth = number_or(s, "d", 1), h = number(s, "h"), r = number(s, "r"),
                 stride = number_or(s, "s", 1), pad = number_or(s, "p", 0),
                 dilation = number_or(s, "e", 1);
    const bool deep = depth > 1;
    const double in[DL_DIMS] = {depth, h, number_or(s, "w", h)},
                 kernel[DL_DIMS] = {deep ? number_or(s, "z", r) : 1, r, number_or(s, "q", r)},
                 strides[DL_DIMS] = {deep ? stride : 1, stride, stride},
                 pads[DL_DIMS] = {deep ? pad : 0, pad, number_or(s, "t", pad)},
                 dilations[DL_DIMS] = {deep ? dilation : 1, dilation, dilation};
    return dl_kernel_conv(pass_of(s), number(s, "n"), number(s, "c"), number(s, "f"),
                          number_or(s, "g", 1), in, kernel, strides, pads, dilations);
}

/* Elements as the layers of model/ count them: layer_norm.c, layer_act.c, layer_pool.c, cost.c. */
static bool streamed(const struct dl_raw_sample *s, struct dl_kernel *out) {
    const bool backward = is(s->pass, "bwd_data");
    const enum dl_pass pass = backward ? DL_BACKWARD_DATA : DL_FORWARD;
    const double n = number(s, "n") * number(s, "c") * number_or(s, "h", 1) * number_or(s, "h", 1);
    const double words = number(s, "bytes") / 4;
    if (is(s->probe, "gpu-norm"))
        *out = dl_kernel_stream(pass, 5 * n, backward ? 4 * n : 2 * n, n);
    else if (is(s->probe, "gpu-act") || is(s->probe, "gpu-softmax"))
        *out = dl_kernel_stream(pass, n, backward ? 2 * n : n, n);
    else if (is(s->probe, "gpu-layernorm")) {
        *out = dl_kernel_stream(pass, 8 * n, backward ? 2 * n : n, n);
        out->extra_bytes = 8 * number(s, "n");
    } else if (is(s->probe, "gpu-update"))
        *out = dl_kernel_stream(DL_UPDATE, 2 * words, 4 * words,
                                2 * words); /* two calls: four arrays read, two written */
    else if (is(s->probe, "gpu-pool")) {
        const double side = floor((number(s, "h") - 1) / 2) + 1,
                     pooled = number(s, "n") * number(s, "c") * side * side;
        *out = dl_kernel_stream(pass, n, backward ? pooled : n, backward ? n : pooled);
        out->extra_bytes = 8 * pooled;
    } else if (is(s->probe, "gpu-copy"))
        *out = dl_kernel_stream(pass, 0, words * (is(s->pass, "axpy") ? 2 : 1), words);
    else
        return false;
    return true;
}

bool dl_cal_gpu_kernel(const struct dl_raw_sample *s, struct dl_kernel *out) {
    if (is(s->probe, "gpu-gemm") || is(s->probe, "gpu-batch")) {
        *out = dl_kernel_gemm(DL_FORWARD, number(s, "m"), number(s, "n"), number(s, "k"),
                              number_or(s, "b", 1));
        out->a_trans = number_or(s, "ta", 0) > 0;
        out->b_trans = number_or(s, "tb", 0) > 0;
        return true;
    }
    if (!is(s->probe, "gpu-conv")) return streamed(s, out);
    *out = convolution(s);
    return true;
}

double dl_cal_gpu_work(const struct dl_raw_sample *s) {
    struct dl_kernel kernel;
    if (s->probe == NULL) return NAN;
    if (strncmp(s->probe, "gpu-", 4) != 0)
        return strncmp(s->probe, "nccl-", 5) == 0 ? number(s, "bytes") : NAN;
    if (is(s->probe, "gpu-host")) return number(s, "bytes");
    if (is(s->probe, "gpu-attention")) return dl_cal_gpu_attention_flop(s);
    if (!dl_cal_gpu_kernel(s, &kernel)) return NAN;
    if (kernel.op != DL_OP_STREAM) return kernel.flop;
    return (kernel.read_elements + kernel.write_elements) *
               dl_precision_bytes(dl_cal_gpu_precision(s)) +
           kernel.extra_bytes;
}

bool dl_cal_gpu_measured(const struct dl_cal_journal *journal) {
    for (size_t i = 0; i < journal->sample_count; i++) {
        if (is(journal->samples[i].probe, "gpu-gemm")) return true;
    }
    return false;
}

/* Largest work per second of a probe's samples in a precision and pass (NULL: any); NAN: none. */
static double best(const struct dl_cal_maker *m, const char *probe, const char *pass,
                   const char *precision) {
    double most = NAN;
    for (size_t i = 0; i < m->journal->sample_count; i++) {
        const struct dl_raw_sample *s = &m->journal->samples[i];
        if (!is(s->probe, probe) || (pass != NULL && !is(s->pass, pass)) ||
            (precision != NULL && !is(s->precision, precision)))
            continue;
        most = fmax(most, dl_cal_gpu_work(s) / s->median_s);
    }
    return most;
}

static double median_of(const struct dl_cal_maker *m, const char *probe, const char *pass) {
    for (size_t i = 0; i < m->journal->sample_count; i++) {
        const struct dl_raw_sample *s = &m->journal->samples[i];
        if (is(s->probe, probe) && is(s->pass, pass)) return s->median_s;
    }
    return NAN;
}

/* fp16 rates are those of products with fp16 operands summed in fp32. Before compute capability 7.0
 * no matrix units. */
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
    /* a peak of which less is attained is not believed (a wrong attribute) */
    static const double PLAUSIBLE_FRAC = 0.3;
    struct dl_device *d = &m->out->profile;
    const double attained = best(m, "gpu-copy", NULL, NULL), peak = fact(m, "gpu_peak_bytes_per_s");
    if (!dl_known(attained))
        return dl_fail(err, DL_ERR_BACKEND,
                       "no sample of the device's memory bandwidth: run the probe gpu-copy");
    const bool believed = dl_known(peak) && attained <= peak && attained > PLAUSIBLE_FRAC * peak;
    d->memory_bandwidth_bytes_per_s = believed ? peak : attained;
    d->memory_efficiency = believed ? attained / peak : 1;
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
    d->tdp_w = fact(m, "gpu_power_limit_w");
    d->context_bytes = fact(m, "gpu_context_bytes");
    d->workspace_bytes = fact(m, "gpu_workspace_bytes");
    d->kernel_latency_s = median_of(m, "gpu-launch", "train");
    d->launch_s = median_of(m, "gpu-launch", "queue");
    d->kernel_gap_s = 0;
    make_rates(m, dl_known(capability) ? capability : 0);
    d->comment = "Rates are the best that measured products attained, not a datasheet's; "
                 "memory_bandwidth is what clock and bus of "
                 "the memory give, memory_efficiency the share that copies attained. Kernel times "
                 "hold the gap to the next kernel.";
    m->out->devices_per_node = dl_known(count) && count >= 1 ? (int64_t)count : 1;
    m->out->summary = dl_arena_printf(m->arena, "%s: %lld x %s", m->run->host.name,
                                      (long long)m->out->devices_per_node, d->summary);
    m->out->comment = "Written by dlmodel calibrate. Times of kernels are those of the first GPU.";
    m->out->nccl_version = dl_cal_journal_find(m->journal, "nccl");
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
        /* Rows that are summed are no plain streams: they have a factor over the surface
         * (cal_gpu_work.c), and no part in it. */
        if (is(s->probe, "gpu-layernorm") || is(s->probe, "gpu-softmax") ||
            !dl_cal_gpu_kernel(s, &k->kernel))
            continue;
        k->precision = dl_cal_gpu_precision(s);
        k->time_s = s->median_s;
        m->kernel_count++;
    }
}

/* What a fit may know of the device: which units there are, not a datasheet's rates, for there is
 * none. Then the samples' best is the centre of the prior (fit_base.c). */
static enum dl_code strip(const struct dl_cal_maker *m, struct dl_device *out, struct dl_err *err) {
    *out = m->out->profile;
    out->rates = dl_arena_alloc(m->arena, (size_t)out->rate_count + 1, sizeof *out->rates);
    if (out->rates == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    for (int i = 0; i < out->rate_count; i++) {
        out->rates[i] = m->out->profile.rates[i];
        out->rates[i].peak_flop_per_s = NAN;
    }
    out->memory_bandwidth_bytes_per_s = NAN;
    return DL_OK;
}

enum dl_code dl_cal_gpu_device(struct dl_cal_maker *m, struct dl_err *err) {
    struct dl_device bare, *d = &m->out->profile;
    DL_TRY(describe(m, err));
    DL_TRY(strip(m, &bare, err));
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
        struct dl_kernel_model *surface = &d->surfaces[d->surface_count];
        DL_TRY(dl_fit_surface(m->kernels, m->kernel_count, &bare, op, pass, precision, m->arena,
                              surface, &quality, err));
        surface->source = "measured";
        d->surface_count++;
        dl_cal_note(
            m,
            dl_arena_printf(m->arena, "fit_%s_%s_%s", dl_op_names[op], dl_pass_names[pass],
                            dl_precision_names[precision]),
            dl_arena_printf(m->arena, "%zu samples, %s: median error %.1f %%, 90 %% below %.1f %%",
                            quality.samples, quality.folds > 0 ? "cross-validated" : "in-sample",
                            100 * quality.median_ape, 100 * quality.p90_ape));
    }
    return dl_cal_gpu_works(m, err);
}
