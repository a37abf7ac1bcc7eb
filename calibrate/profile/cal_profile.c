/* cal_profile.c - see the header. */
#include "calibrate/profile/cal_profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calibrate/profile/cal_gpu.h"
#include "calibrate/profile/cal_internal.h"

/* The loader sets all other fields to absent. */
static const char skeleton[] =
    "{\"format\": \"dlmodel-system\", \"version\": 1, \"name\": \"local\", \"summary\": \"this "
    "machine, measured by calibrate\","
    " \"source\": \"measured\", \"nodes\": 1, \"devices_per_node\": 1,"
    " \"device_profile\": {\"name\": \"local-cpu\", \"summary\": \"all cores of the node "
    "as one device\", \"source\": \"measured\","
    " \"kind\": \"cpu\", \"memory_bytes\": 1e9, \"memory_bandwidth_bytes_per_s\": 1e9, "
    "\"memory_efficiency\": 1, \"rates\": "
    "[]},"
    " \"host\": {\"source\": \"measured\"},"
    " \"links\": {\"intra\": {\"kind\": \"shm\", \"source\": \"measured\", \"peer_to_peer\": true},"
    " \"inter\": {\"kind\": \"loopback\", \"source\": \"measured\", \"adapters_per_node\": 1, "
    "\"assumed\": true,"
    " \"comment\": \"TCP between two processes of this node over loopback: one node cannot measure "
    "a network. Replace it.\"}},"
    " \"storage\": {\"kind\": \"local\", \"source\": \"measured\", \"comment\": \"One process, one "
    "file, large blocks; the "
    "write is"
    " synced, the read may come from the page cache where the kernel does not drop it.\"}}";

enum { KERNEL_MODELS_MAX = 32 };

/* "beside" is the older name of the probe. */
static bool is_concurrent(const struct dl_raw_sample *s) {
    return dl_cal_is(s->probe, "concurrent") || dl_cal_is(s->probe, "beside");
}

double dl_cal_work(const struct dl_raw_sample *s) {
    const double of_gpu = dl_cal_gpu_work(s);
    if (dl_known(of_gpu)) return of_gpu;
    if (dl_cal_is(s->probe, "gemm") || dl_cal_is(s->probe, "matmul") ||
        (is_concurrent(s) && !dl_cal_is(s->pass, "copy"))) {
        return 2 * dl_cal_number(s, "m") * dl_cal_number(s, "n") * dl_cal_number(s, "k");
    }
    const double bytes = dl_cal_number(s, "bytes");
    if (is_concurrent(s)) return 2 * bytes;
    if (dl_cal_is(s->probe, "stream")) return bytes * (dl_cal_is(s->pass, "triad") ? 3 : 2);
    if (!dl_cal_is(s->probe, "conv")) return bytes;
    const double r = dl_cal_number(s, "r"), stride = dl_cal_number(s, "s");
    const double side = floor((dl_cal_number(s, "h") + 2 * dl_cal_number(s, "p") - r) / stride) + 1;
    return 2 * dl_cal_number(s, "n") * dl_cal_number(s, "f") * side * side * dl_cal_number(s, "c") *
           r * r;
}

static void note_number(struct dl_cal_maker *m, const char *key, double value) {
    if (!dl_known(value) || m->out->calibration.measurement_count == DL_CAL_NOTES_MAX) return;
    m->out->calibration.measurement[m->out->calibration.measurement_count++] =
        (struct dl_map_entry){key, dl_arena_printf(m->arena, "%.4g", value),
                              strtod(dl_arena_printf(m->arena, "%.4g", value), NULL)};
}

static enum dl_code start(struct dl_cal_maker *m, struct dl_err *err) {
    struct dl_json *doc;
    DL_TRY(dl_json_parse("profile", skeleton, sizeof skeleton - 1, m->arena, &doc, err));
    DL_TRY(dl_json_load(doc, &dl_system_schema, m->arena, m->out, err));
    m->out->has_storage = m->out->has_intra = m->out->has_inter = m->out->has_links = false;
    m->out->calibration.measurement =
        dl_arena_alloc(m->arena, DL_CAL_NOTES_MAX, sizeof *m->out->calibration.measurement);
    m->out->collectives =
        dl_arena_alloc(m->arena, DL_CAL_COLLECTIVES_MAX, sizeof *m->out->collectives);
    m->out->profile.kernel_models =
        dl_arena_alloc(m->arena, KERNEL_MODELS_MAX, sizeof *m->out->profile.kernel_models);
    m->out->profile.rates = dl_arena_alloc(m->arena, DL_PRECISIONS, sizeof *m->out->profile.rates);
    m->kernels = dl_arena_alloc(m->arena, m->journal->sample_count, sizeof *m->kernels);
    m->out->calibration.samples = m->journal->samples;
    m->out->calibration.sample_count = (int)m->journal->sample_count;
    return DL_OK;
}

/* Best work per second among the samples of a probe; NAN: none. */
static double best_rate(const struct dl_cal_maker *m, const char *probe) {
    double best = NAN;
    for (size_t i = 0; i < m->journal->sample_count; i++) {
        const struct dl_raw_sample *s = &m->journal->samples[i];
        if (dl_cal_is(s->probe, probe)) best = fmax(best, dl_cal_work(s) / s->median_s);
    }
    return best;
}

static enum dl_code make_device(struct dl_cal_maker *m, struct dl_err *err) {
    struct dl_device *d = &m->out->profile;
    const struct dl_cal_host *host = &m->run->host;
    d->unit_count = m->journal->header.choice.cores > 0 ? m->journal->header.choice.cores
                    : host->allowed > 0                 ? host->allowed
                                                        : host->cores;
    d->summary = dl_arena_printf(m->arena, "%s, %lld core%s as one device", host->cpu,
                                 (long long)d->unit_count, d->unit_count == 1 ? "" : "s");
    if (dl_known(host->memory_bytes)) d->memory_bytes = host->memory_bytes;
    d->l2_bytes = host->last_cache_bytes;
    d->clock_hz = host->clock_hz;
    d->memory_bandwidth_bytes_per_s = best_rate(m, "stream");
    const double peak = fmax(best_rate(m, "gemm"), best_rate(m, "matmul"));
    if (!dl_known(d->memory_bandwidth_bytes_per_s))
        return dl_fail(err, DL_ERR_BACKEND,
                       "memory bandwidth was not measured: run the probe stream");
    if (!dl_known(peak)) {
        return dl_fail(
            err, DL_ERR_BACKEND,
            "no GEMM was measured: run the probe gemm or matmul, which need OpenBLAS or oneDNN "
            "(make deps)");
    }
    d->rates[0] = (struct dl_rate){.precision = DL_FP32,
                                   .unit = 0,
                                   .peak_flop_per_s = peak,
                                   .sustained_flop_per_s = NAN,
                                   .source = "measured"};
    d->rate_count = 1;
    d->comment = "The rate is the best that a measured GEMM attained, not that of a datasheet. "
                 "Bandwidth: STREAM copy or triad. The calling thread runs each kernel: no launch "
                 "cost and no gap.";
    d->kernel_gap_s = 0;
    d->launch_s = 0;
    d->context_bytes = 0; /* no device context: memory is that of the host */
    d->kernel_latency_s = NAN;
    for (size_t i = 0; i < m->journal->sample_count; i++) {
        const struct dl_raw_sample *s = &m->journal->samples[i];
        if (dl_cal_is(s->probe, "gemm") || dl_cal_is(s->probe, "matmul"))
            d->kernel_latency_s = fmin(d->kernel_latency_s, s->median_s);
    }
    return DL_OK;
}

/* The three passes of a GEMM differ in the transposed operand, which is in the
 * shape. */
static void gather(struct dl_cal_maker *m) {
    const char *gemm = dl_known(best_rate(m, "gemm")) ? "gemm" : "matmul";
    for (size_t i = 0; i < m->journal->sample_count; i++) {
        const struct dl_raw_sample *s = &m->journal->samples[i];
        struct dl_kernel_sample *k = &m->kernels[m->kernel_count];
        k->precision = DL_FP32;
        k->time_s = s->median_s;
        if (dl_cal_is(s->probe, "conv")) {
            k->kernel = dl_cal_convolution(s);
        } else if (dl_cal_is(s->probe, gemm)) {
            k->kernel = dl_kernel_gemm(DL_FORWARD, dl_cal_number(s, "m"), dl_cal_number(s, "n"),
                                       dl_cal_number(s, "k"), 1);
            k->kernel.a_trans = dl_cal_number(s, "ta") > 0;
            k->kernel.b_trans = dl_cal_number(s, "tb") > 0;
        } else {
            continue;
        }
        m->kernel_count++;
    }
}

static enum dl_code make_kernel_models(struct dl_cal_maker *m, struct dl_err *err) {
    struct dl_device *d = &m->out->profile;
    static const struct {
        enum dl_op op;
        enum dl_pass pass;
    } wanted[] = {{DL_OP_GEMM, DL_FORWARD},
                  {DL_OP_CONV, DL_FORWARD},
                  {DL_OP_CONV, DL_BACKWARD_DATA},
                  {DL_OP_CONV, DL_BACKWARD_WEIGHTS}};
    gather(m);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        size_t there = 0;
        for (size_t j = 0; j < m->kernel_count; j++) {
            there += m->kernels[j].kernel.op == wanted[i].op &&
                     m->kernels[j].kernel.pass == wanted[i].pass;
        }
        if (there < 3) continue; /* the peak and the generic model are better */
        struct dl_fit_quality quality;
        struct dl_kernel_model *surface = &d->kernel_models[d->kernel_model_count];
        const struct dl_fit_kernel_job job = {.samples = m->kernels,
                                              .count = m->kernel_count,
                                              .device = d,
                                              .op = wanted[i].op,
                                              .pass = wanted[i].pass,
                                              .precision = DL_FP32,
                                              .own_cpu = true};
        DL_TRY(dl_fit_kernel_model(&job, m->arena, surface, &quality, err));
        surface->source = "measured";
        d->kernel_model_count++;
        dl_cal_note_fit(m,
                        dl_arena_printf(m->arena, "fit_%s_%s", dl_op_names[wanted[i].op],
                                        dl_pass_names[wanted[i].pass]),
                        &quality);
    }
    return DL_OK;
}

static void make_storage(struct dl_cal_maker *m) {
    struct dl_storage *s = &m->out->storage;
    s->write_bytes_per_s = best_rate(m, "write");
    s->read_bytes_per_s = best_rate(m, "read");
    m->out->has_storage = dl_known(s->write_bytes_per_s) || dl_known(s->read_bytes_per_s);
}

/* Implementations of all samples, each name once. */
static const char *implementations(const struct dl_cal_maker *m) {
    char text[1024] = "";
    for (size_t i = 0; i < m->journal->sample_count; i++) {
        const char *name = m->journal->samples[i].implementation;
        if (name == NULL) continue;
        const char *at = strstr(text, name);
        const size_t length = strlen(name), used = strlen(text);
        while (at != NULL && !(at[length] == 0 || at[length] == ',')) at = strstr(at + 1, name);
        if (at == NULL && used + length + 3 < sizeof text)
            snprintf(text + used, sizeof text - used, "%s%s", used > 0 ? ", " : "", name);
    }
    return text[0] == 0 ? NULL : dl_arena_strdup(m->arena, text);
}

/* The sample of the probe "concurrent" (older name: "beside", pass "product") for this number of
 * devices, or NULL. */
static const struct dl_raw_sample *concurrent(const struct dl_cal_maker *m, bool copy,
                                              double devices) {
    for (size_t i = 0; i < m->journal->sample_count; i++) {
        const struct dl_raw_sample *s = &m->journal->samples[i];
        if (is_concurrent(s) && dl_cal_is(s->pass, "copy") == copy &&
            dl_cal_number(s, "devices") == devices)
            return s;
    }
    return NULL;
}

static double fastest_s(const struct dl_raw_sample *s) {
    return dl_known(s->min_s) ? s->min_s : s->median_s;
}

/* F-SHARED-HOST: how devices of one host slow each other down; virtual nodes. */
static void share_host(struct dl_cal_maker *m) {
    const struct dl_cal_choice *h = &m->journal->header.choice;
    struct dl_device *d = &m->out->profile;
    const int64_t devices = h->cores > 0 ? m->run->host.cores / h->cores : 1;
    const struct dl_raw_sample *one = concurrent(m, false, 1),
                               *all = concurrent(m, false, (double)devices),
                               *copies = concurrent(m, true, (double)devices);
    if (h->virtual_nodes > 0)
        m->out->nodes = h->virtual_nodes, m->out->nodes_share_host = true;
    else if (devices > 1 && m->out->has_intra)
        m->out->devices_per_node = devices;
    if (devices < 2) return;
    /* Other guests of a machine slow a core for seconds: the fastest blocks show the contention
     * between the devices alone. */
    if (one != NULL && all != NULL)
        d->all_sockets_slowdown_ratio = fmax(1, fastest_s(all) / fastest_s(one));
    if (copies == NULL) return;
    const double aggregate =
        (double)devices * 2 * dl_cal_shape_number(copies->shape, "bytes") / copies->median_s;
    m->out->host.memory_bandwidth_bytes_per_s = fmax(aggregate, d->memory_bandwidth_bytes_per_s);
}

static void describe(struct dl_cal_maker *m) {
    const struct dl_cal_host *host = &m->run->host;
    struct dl_host *h = &m->out->host;
    m->out->summary = dl_arena_printf(m->arena, "%s: %s", host->name, host->cpu);
    h->cpu = host->cpu;
    h->sockets = host->sockets;
    h->cores = host->cores;
    h->memory_bytes = host->memory_bytes;
    h->memory_bandwidth_bytes_per_s = best_rate(m, "stream");
    m->out->has_host = true;
    m->out->calibration.measured_on = host->name;
    m->out->calibration.measured_at = m->run->finished;
    m->out->software.mpi = dl_cal_journal_find(m->journal, "mpi");
    m->out->comment =
        "Written by dlmodel calibrate. The samples behind all numbers are in \"samples\".";
    dl_cal_note(m, "started", m->journal->header.started);
    dl_cal_note(m, "mode", m->journal->header.choice.quick ? "quick" : "full");
    note_number(m, "budget_s", m->journal->header.choice.budget_s);
    note_number(m, "seconds", m->run->seconds);
    dl_cal_note(m, "resumed", m->run->resumed ? "yes; seconds counts the last part only" : NULL);
    dl_cal_note(m, "cpu", host->cpu);
    dl_cal_note(m, "kernel", host->kernel);
    dl_cal_note(m, "load_before", m->journal->header.load);
    note_number(m, "load_after", m->run->load_after);
    for (size_t i = 0; i < m->journal->fact_count; i++)
        dl_cal_note(m, m->journal->facts[i].key, m->journal->facts[i].value);
    dl_cal_note(m, "implementations", implementations(m));
}

enum dl_code dl_cal_profile(const struct dl_cal_journal *journal, const struct dl_cal_run *run,
                            struct dl_arena *arena, struct dl_system *out, struct dl_err *err) {
    struct dl_cal_maker m = {.journal = journal, .run = run, .arena = arena, .out = out};
    DL_TRY(start(&m, err));
    const bool gpu = dl_cal_gpu_measured(journal);
    if (!gpu) DL_TRY(make_device(&m, err));
    describe(&m);
    DL_TRY(gpu ? dl_cal_gpu_device(&m, err) : make_kernel_models(&m, err));
    DL_TRY(dl_cal_network(&m, err));
    if (gpu) DL_TRY(dl_cal_gpu_links(&m, err));
    make_storage(&m);
    if (!gpu) share_host(&m);
    return DL_OK;
}

enum dl_code dl_cal_profile_text(const struct dl_system *profile, const char *name,
                                 struct dl_arena *arena, char **text, struct dl_err *err) {
    struct dl_json *doc;
    struct dl_system again;
    *text = dl_json_text(&dl_system_schema, profile, arena);
    DL_TRY(dl_json_parse(name, *text, strlen(*text), arena, &doc, err));
    DL_TRY(dl_json_load(doc, &dl_system_schema, arena, &again, err));
    return dl_system_check(&again, doc, err);
}
