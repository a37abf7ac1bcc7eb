/* Every term of a prediction of a replica, in its order and words, from numbers made up here:
 * names, groups, formulas, inputs, where they are from, when they start, values and spreads. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/statistics/stats.h"
#include "model/framework/input.h"
#include "model/framework/shared_host.h"
#include "model/framework/workspace.h"
#include "model/engine/explain_overhead.h"
#include "model/engine/prediction_parts.h"
#include "tests/check.h"
#include "tests/fake.h"

static uint64_t seed = 83;
static struct dl_err err;

static int upto(int count) { return (int)(check_random(&seed) % (uint64_t)count); }
static bool half(void) { return upto(2) == 0; }
static double of(const double *list, int count) { return list[upto(count)]; }
#define ONE_OF(...)                                                                                \
    of((const double[]){__VA_ARGS__}, (int)(sizeof((const double[]){__VA_ARGS__}) / sizeof(double)))

enum { MOST = 64, MESSAGES = 3 };
struct scene {
    struct dl_fake f;
    struct dl_rate rates[2];
    struct dl_layer_cost layers[4];
    double forward_s[4], backward_s[4]; /* starts */
    struct dl_cost cost;
    struct dl_message messages[MESSAGES];
    struct dl_timeline busy, quiet;
    struct dl_parts parts;
    struct dl_prediction p;
    struct dl_term want[MOST];
    int count;
};

static void add(struct scene *s, struct dl_term term) { s->want[s->count++] = term; }
#define TEXT(...) dl_arena_printf(&s->f.arena, __VA_ARGS__)

/* Without a start, a spread, a limit or a lane. */
static void plain(struct scene *s, const char *name, const char *group, const char *formula,
                  const char *inputs, const char *origin, double value) {
    if (!(value > 0)) return;
    add(s, (struct dl_term){.name = name,
                            .group = group,
                            .formula = formula,
                            .inputs = inputs,
                            .origin = origin,
                            .start_s = NAN,
                            .value = value,
                            .sigma_log = NAN});
}

/* ---- numbers ---- */

static struct dl_pass_cost random_pass(void) {
    struct dl_pass_cost c = {.time_s = upto(9) == 0 ? 0 : 1e-3 * (1 + check_uniform(&seed)),
                             .by_limit_s = {upto(3), upto(3), upto(3)},
                             .launches = upto(4),
                             .formula = half() ? "F-KERNEL-MODEL" : "F-KERNEL-STREAM",
                             .origin = half() ? "fitted" : "borrowed",
                             .origin_device = half() ? "v100" : NULL,
                             .flop = 1e9 * check_uniform(&seed),
                             .bytes = 1e6 * check_uniform(&seed)};
    c.error_s = c.time_s * 0.3 * check_uniform(&seed);
    return c;
}

static void random_device(struct scene *s) {
    struct dl_fake *f = &s->f;
    static const char *const vendors[] = {"nvidia", "amd", NULL};
    s->rates[0] = f->rate;
    s->rates[1] = (struct dl_rate){.precision = DL_FP16, .unit = upto(2)};
    s->rates[1].peak_flop_per_s = ONE_OF(9e12, 2e13);
    f->device.rates = s->rates, f->device.rate_count = 2, f->device.vendor = vendors[upto(3)];
    f->device.kind = upto(4) == 0 ? DL_DEVICE_CPU : DL_DEVICE_GPU;
    f->device.unit_count = 1 + upto(3), f->device.together_ratio = ONE_OF(NAN, 1.3);
    f->device.workspace_bytes = ONE_OF(NAN, 12345678), f->device.context_bytes = ONE_OF(NAN, 3e8);
    f->device.kernel_gap_s = ONE_OF(NAN, 0, 3e-6), f->device.launch_s = ONE_OF(NAN, 4e-6);
    f->device.memory_efficiency = ONE_OF(NAN, 0.8);
    f->system.host.cores = 1 + upto(6);
    f->system.jitter_frac = 0.02;
}

static void random_framework(struct scene *s) {
    struct dl_framework *w = &s->f.framework;
    w->host.iteration_s = ONE_OF(0, 1e-3), w->host.dispatch_s = ONE_OF(0, 2e-6, 5e-6);
    w->host.single_process = half();
    w->input.prefetch_batches = upto(2);
    w->sync.fusion.fusion_bytes = ONE_OF(NAN, 64e6),
    w->sync.bucketed.bucket_bytes = ONE_OF(NAN, 25e6);
    w->sync.messages.message_s = 3e-6, w->sync.replica_s = 7e-6;
    w->memory.fragmentation_frac = 0.125, w->memory.context_bytes = 2e7;
    w->memory.allocator = upto(2) - 1;
}

static void random_messages(struct scene *s) {
    static const char *const limits[] = {NULL, "intra", "inter"},
                             *const formulas[] = {"F-NCCL-RING", "F-NCCL", "F-COLL-RING", "F-NCC"},
                             *const algorithms[] = {NULL, "ring", "tree"},
                             *const protocols[] = {NULL, "LL", "Simple"};
    s->busy.sync.messages = s->messages, s->busy.sync.message_count = upto(MESSAGES + 1);
    for (int m = 0; m < MESSAGES; m++)
        s->messages[m] = (struct dl_message){.name = m == 1 ? "pull" : "all_reduce",
                                             .bytes = 1e7 * check_uniform(&seed),
                                             .duration_s = 1e-3 * check_uniform(&seed),
                                             .latency_s = ONE_OF(0, 5e-6),
                                             .bandwidth_s = ONE_OF(0, 2e-3),
                                             .start_s = check_uniform(&seed),
                                             .sigma_log = 0.2,
                                             .steps = upto(3),
                                             .channels = upto(3),
                                             .algorithm = algorithms[upto(3)],
                                             .protocol = protocols[upto(3)],
                                             .formula = formulas[upto(4)],
                                             .limit = limits[upto(3)],
                                             .origin = "model"};
    s->f.system.has_inter = upto(5) > 0;
    s->f.system.host.copy_bandwidth_bytes_per_s = ONE_OF(NAN, 1e9, 60e9);
    s->f.system.host.memory_bandwidth_bytes_per_s = ONE_OF(NAN, 5e9, 900e9);
    s->f.system.inter.gpudirect = half(), s->f.system.inter.distance = half() ? "SYS" : "NODE";
    s->f.system.intra.cross_bandwidth_bytes_per_s = ONE_OF(NAN, 2e9);
}

static double maybe(double most) { return upto(4) == 0 ? 0 : most * check_uniform(&seed); }

static void random_scene(struct scene *s) {
    memset(s, 0, sizeof *s);
    struct dl_fake *f = &s->f;
    fake_make(f);
    random_device(s), random_framework(s), random_messages(s);
    for (int i = 0; i < 4; i++) {
        s->layers[i] = (struct dl_layer_cost){random_pass(), random_pass()};
        s->forward_s[i] = check_uniform(&seed), s->backward_s[i] = check_uniform(&seed);
    }
    s->cost = (struct dl_cost){s->layers, random_pass(), random_pass()};
    f->workload.buffer_elements = 77, f->workload.input_bytes_per_sample = ONE_OF(NAN, 4e3);
    struct dl_plan *plan = &f->plan;
    plan->nodes = 1 + upto(3), plan->devices_per_node = 1 + upto(3);
    plan->backup_workers = plan->nodes > 1 && upto(3) == 0 ? 1 : 0;
    plan->precision = (enum dl_precision[]){DL_FP32, DL_FP16, DL_MIXED}[upto(3)];
    plan->optimizer = (enum dl_optimizer)upto(DL_OPTIMIZERS);
    plan->recompute = upto(2) ? DL_RECOMPUTE_NONE : DL_RECOMPUTE_SELECTIVE;
    plan->micro_batch_samples = ONE_OF(0, 0, 64, 100), plan->batch_per_device_samples = 256;
    plan->compute_scale = ONE_OF(0, 0.5), plan->pp = 1 + upto(4);
    plan->schedule = (enum dl_schedule)upto(4);
    s->busy.forward_start_s = s->forward_s, s->busy.backward_start_s = s->backward_s;
    s->busy.update_start_s = check_uniform(&seed);
    s->busy.slowdown_s = maybe(1e-3), s->busy.overlap_s = 1e-2;
    s->busy.sync.device_copy_s = maybe(1e-3), s->busy.sync.prologue_s = maybe(1e-3);
    s->busy.sync.host_s = maybe(1e-3);
    s->parts = (struct dl_parts){&f->system, &f->workload, &f->framework, plan,
                                 &s->cost,   &s->busy,     &s->quiet,     &f->arena};
    s->p = (struct dl_prediction){.compute_s = 0.02,
                                  .straggler_s = maybe(1e-3),
                                  .bubble_s = upto(3) ? 0 : 1e-3,
                                  .input_s = maybe(1e-2),
                                  .exposed_input_s = maybe(1e-3)};
    s->p.overhead_s = s->p.straggler_s + ONE_OF(0, 1e-13, 1e-6, 5e-4, 2e-2);
    struct dl_memory *m = &s->p.memory;
    m->weights_bytes = 1e9, m->gradients_bytes = maybe(1e9), m->optimizer_bytes = maybe(1e9);
    m->activations_bytes = 1e8, m->workspace_bytes = maybe(1e8), m->buffers_bytes = maybe(1e8);
    m->context_bytes = maybe(1e8);
    m->total_bytes = 8e9;
}

/* ---- what is said of them ---- */

static void pass_of(struct scene *s, const char *name, const char *group,
                    const struct dl_pass_cost *c, double start_s) {
    const struct dl_device *d = &s->f.device;
    const double *l = c->by_limit_s;
    const int most = l[0] >= l[1] && l[0] >= l[2] ? 0 : l[1] >= l[2] ? 1 : 2;
    const enum dl_precision type = s->f.plan.precision;
    const bool units = s->rates[1].unit == 1 && type != DL_FP32 &&
                       s->rates[1].peak_flop_per_s >= dl_device_peak(d, type);
    static const char *const keys[] = {"arithmetic", "memory-bandwidth", "latency"},
                             *const words[] = {"arithmetic", "memory bandwidth", "kernel latency"};
    const char *key = keys[most], *text = words[most];
    if (most == 0 && units) {
        key = "matrix-units";
        text = d->vendor != NULL && d->vendor[0] == 'n' ? "tensor cores" : "matrix units";
    }
    const struct dl_shared_host h = dl_shared_host(&s->f.system, &s->f.plan);
    const bool shares = h.arithmetic_ratio > 1 || h.memory_ratio > 1 || h.turns_ratio > 1;
    if (!(c->time_s > 0)) return;
    add(s, (struct dl_term){
               .name = TEXT("%s %s", name, group),
               .group = group,
               .formula = c->formula,
               .inputs = TEXT("%.3g GFLOP, %.3g MB, %.0f kernel%s, limited by %s%s", c->flop * 1e-9,
                              c->bytes * 1e-6, c->launches, c->launches == 1 ? "" : "s", text,
                              shares ? ", on a shared host" : ""),
               .origin = c->origin_device != NULL ? TEXT("%s: %s", c->origin, c->origin_device)
                                                  : c->origin,
               .start_s = start_s,
               .value = c->time_s,
               .sigma_log = c->error_s / c->time_s,
               .limit = key,
               .lane = "compute"});
}

/* What lies between the device and the adapter and is narrower, of the rates above: four passes
 * through the host's memory, a copy, or the link between sockets. */
static const char *on_the_way(const struct scene *s, const struct dl_message *m) {
    const struct dl_system *y = &s->f.system;
    if (m->limit == NULL || strcmp(m->limit, "inter") != 0 || !y->has_inter ||
        m->formula[2] != 'N' || strlen(m->formula) < 6)
        return "";
    double rate = 12e9;
    const char *text = "";
    if (!y->inter.gpudirect && y->host.copy_bandwidth_bytes_per_s < rate)
        rate = 1e9, text = " (on its way through the host: host.copy_bandwidth)";
    if (!y->inter.gpudirect && y->host.memory_bandwidth_bytes_per_s / 4 < rate)
        rate = 1.25e9, text = " (on its way through the host: host.memory_bandwidth)";
    if (y->inter.gpudirect && y->inter.distance[0] == 'S' &&
        y->intra.cross_bandwidth_bytes_per_s < rate)
        text = " (between sockets: links.intra.cross_bandwidth)";
    return text;
}

static void messages_of(struct scene *s) {
    for (int i = 0; i < s->busy.sync.message_count; i++) {
        const struct dl_message *m = &s->messages[i];
        const char *inputs =
            TEXT("p=%dx%d S=%.4g MB %s", (int)s->f.plan.nodes, (int)s->f.plan.devices_per_node,
                 m->bytes * 1e-6, m->algorithm != NULL ? m->algorithm : "");
        if (m->protocol != NULL) inputs = TEXT("%s/%s", inputs, m->protocol);
        if (m->channels > 0)
            inputs = TEXT("%s, %d %s", inputs, (int)m->channels,
                          m->channels > 1 ? "channels" : "channel");
        if (m->steps > 0)
            inputs = TEXT("%s, %d %s", inputs, (int)m->steps, m->steps > 1 ? "steps" : "step");
        if (m->latency_s > 0 || m->bandwidth_s > 0)
            inputs = TEXT("%s, launch and latency %.4g us + transfer %.4g ms", inputs,
                          1e6 * m->latency_s, 1e3 * m->bandwidth_s);
        add(s, (struct dl_term){
                   .name = TEXT("%s %d of %d", m->name, i + 1, s->busy.sync.message_count),
                   .group = "communication",
                   .formula = m->formula,
                   .inputs = TEXT("%s, limited by %s link%s", inputs,
                                  m->limit != NULL ? m->limit : "no", on_the_way(s, m)),
                   .origin = "model",
                   .start_s = m->start_s,
                   .value = m->duration_s,
                   .sigma_log = 0.2,
                   .lane = "communication"});
    }
}

static void around_messages(struct scene *s) {
    const struct dl_device *d = &s->f.device;
    const double rate = isnan(d->memory_efficiency) ? 0 : 400;
    plain(s, "packing and unpacking", "communication", "F-KERNEL-STREAM",
          TEXT("gradients read and written twice at %.4g GB/s", rate), "device file",
          s->busy.sync.device_copy_s);
    plain(s, "broadcast before forward", "communication", "F-FW-BUCKETS",
          TEXT("P=%.0f parameters, 77 buffer elements x 4 B", s->f.workload.parameters), "model",
          s->busy.sync.prologue_s);
    plain(s, "host loop over devices", "communication", "F-FW-CENTRAL",
          TEXT("message_s=3 us, replica_s=7 us; %d devices", (int)s->f.plan.devices_per_node),
          "framework file", s->busy.sync.host_s);
}

/* Fixed time first, then gaps, as far as there is overhead; the rest waits for the host. */
static void overhead_of(struct scene *s) {
    const struct dl_plan *plan = &s->f.plan;
    const struct dl_framework *w = &s->f.framework;
    const double steps = plan->micro_batch_samples > 0 ? ceil(256 / plan->micro_batch_samples) : 1,
                 scale = plan->compute_scale > 0 ? plan->compute_scale : 1;
    double kernels = s->cost.update.launches + (steps - 1) * s->cost.accumulation.launches;
    for (int i = 0; i < 4; i++)
        kernels += steps * (s->layers[i].forward.launches + s->layers[i].backward.launches);
    const double gap_s = isnan(s->f.device.kernel_gap_s) ? 0 : scale * s->f.device.kernel_gap_s,
                 all_s = fmax(0, s->p.overhead_s - s->p.straggler_s),
                 counts = s->p.bubble_s > 0 ? 1 : steps;
    const double fixed_s = fmin(all_s, counts * w->host.iteration_s),
                 gaps_s = fmin(all_s - fixed_s, kernels * gap_s), late_s = all_s - fixed_s - gaps_s;
    double dispatch_s = w->host.dispatch_s > 0 && s->f.device.launch_s > w->host.dispatch_s
                            ? s->f.device.launch_s
                            : w->host.dispatch_s;
    if (w->host.single_process) dispatch_s *= (double)plan->devices_per_node;
    plain(s, "pipeline bubble", "overhead", "F-PIPE-BUBBLE",
          TEXT("%d stages, %g micro-batches, %s", (int)plan->pp, steps,
               dl_schedule_names[plan->schedule]),
          "model", s->p.bubble_s);
    plain(s, "launch gaps", "overhead", "F-HOST-GAP",
          TEXT("kernel_gap=%.3g us x %.0f kernels", 1e6 * gap_s, kernels), "device file", gaps_s);
    plain(s, "host time per iteration", "overhead", "F-HOST-GAP",
          TEXT("iteration_s=%.3g ms x %.0f", 1e3 * w->host.iteration_s, counts), "framework file",
          fixed_s);
    plain(s, "device waits for launches", "overhead", "F-HOST-GAP",
          TEXT("dispatch_s=%.3g us x %.0f kernels, minus what kernels hide",
               1e6 * scale * dispatch_s, kernels),
          "framework file", late_s > 1e-12 ? late_s : 0);
    const int nodes = (int)plan->nodes, spare = (int)plan->backup_workers,
              each = (int)plan->devices_per_node;
    const double order = spare > 0 ? dl_normal_expected_order(nodes - spare, nodes, each)
                                   : dl_normal_expected_max(nodes * each),
                 sigmas = order > 0 ? order : 0;
    plain(s, "straggler wait", "overhead", spare > 0 ? "F-BACKUP" : "F-STRAGGLER",
          TEXT("jitter=%.3g x E[%s]=%.3g x compute=20 ms",
               sigmas > 0 ? s->p.straggler_s / (sigmas * 0.02) : 0,
               spare > 0 ? TEXT("worker %d of %d", nodes - spare, nodes)
                         : TEXT("max of %d devices", nodes * each),
               sigmas),
          "system file", s->p.straggler_s);
}

static void memory_of(struct scene *s) {
    static const char *const optimizers[] = {"sgd", "momentum", "adam", "lamb"};
    static const int states[] = {0, 4, 8, 8};
    const struct dl_fake *f = &s->f;
    const struct dl_memory *m = &s->p.memory;
    const enum dl_precision type = f->plan.precision;
    const double count = f->workload.parameters, fusion = f->framework.sync.fusion.fusion_bytes,
                 bucket = f->framework.sync.bucketed.bucket_bytes;
    const double rounding = f->plan.recompute != DL_RECOMPUTE_NONE
                                ? 0
                                : dl_rounding_bytes(&f->workload, &f->framework, type, 256);
    plain(s, "weights", "memory", "F-MEM-STATES",
          TEXT("P=%.0f x %d B", count,
               type == DL_FP32    ? 4
               : type == DL_MIXED ? 6
                                  : 2),
          "workload file", m->weights_bytes);
    plain(s, "gradients", "memory", "F-MEM-STATES",
          TEXT("P=%.0f x %d B", count, type == DL_FP32 ? 4 : 2), "workload file",
          m->gradients_bytes);
    plain(
        s, "optimizer", "memory", "F-MEM-STATES",
        TEXT("%s: P=%.0f x %d B", optimizers[f->plan.optimizer], count, states[f->plan.optimizer]),
        "workload file", m->optimizer_bytes);
    plain(s, "activations", "memory", "F-MEM-ACTIVATIONS",
          TEXT("%.0f elements per sample x %d B x 256 samples, and masks",
               f->workload.activation_elements_per_sample, type == DL_FP32 ? 4 : 2),
          "workload file", m->activations_bytes - rounding);
    plain(s, "rounding", "memory", "F-MEM-ROUNDING",
          "each saved tensor rounded up to the allocator's blocks", "framework's allocator",
          rounding);
    const bool limit = !isnan(f->device.workspace_bytes);
    plain(s, "workspace", "memory", "F-MEM-WORKSPACE",
          limit ? "convolution library's limit, 12.35 MB"
                : "the layer that needs most, within the framework's limit",
          limit ? "device file" : "workload file", m->workspace_bytes);
    plain(s, "communication buffers", "memory", "F-MEM-BUFFERS",
          !isnan(fusion)   ? "fusion buffer of 64 MB"
          : !isnan(bucket) ? "all gradients, in buckets of 25 MB"
                           : "concatenated gradients",
          "framework file", m->buffers_bytes);
    plain(s, "context", "memory", "F-MEM-CONTEXT",
          TEXT("runtime %d MB + framework 20 MB", isnan(f->device.context_bytes) ? 0 : 300),
          "device and framework file", m->context_bytes);
    const double sum = m->weights_bytes + m->gradients_bytes + m->optimizer_bytes +
                       m->activations_bytes + m->workspace_bytes + m->buffers_bytes +
                       m->context_bytes;
    plain(s, "fragmentation", "memory", "F-MEM-FRAGMENTATION",
          TEXT("sum=%.4g MiB x f / (1 - f), f=0.125", sum / 1048576), "framework file", 8e9 - sum);
}

static void write_terms(struct scene *s) {
    const struct dl_fake *f = &s->f;
    const struct dl_pass_cost *sum = &s->cost.accumulation;
    const double micro = f->plan.micro_batch_samples,
                 before = micro > 0 ? ceil(256 / micro) - 1 : 0;
    for (int i = 0; i < 4; i++)
        pass_of(s, f->workload.layers[i].name, "forward", &s->layers[i].forward, s->forward_s[i]);
    for (int i = 3; i >= 0; i--)
        pass_of(s, f->workload.layers[i].name, "backward", &s->layers[i].backward,
                s->backward_s[i]);
    plain(s, "slowdown while communicating", "backward", "F-SLOWDOWN",
          TEXT("slowdown=%.3g x overlap=10 ms", s->busy.slowdown_s / 1e-2),
          "framework or device file", s->busy.slowdown_s);
    pass_of(s, "optimizer", "update", &s->cost.update, s->busy.update_start_s);
    plain(s, "sums of gradients", "update", "F-ACCUMULATE",
          TEXT("%.4g MB in %.0f kernels x %.0f micro-batches", sum->bytes * 1e-6, sum->launches,
               before),
          "framework's kernels", before * sum->time_s);
    messages_of(s);
    around_messages(s);
    const struct dl_input_time t =
        dl_input_compute(&f->system, &f->workload, &f->framework, &f->plan);
    plain(s, "input", "input", "F-INPUT",
          TEXT("%s of storage=%.3g, decoding=%.3g, host-to-device copy=%.3g ms; feed=%.3g ms; "
               "exposed=%.3g ms",
               f->framework.input.prefetch_batches > 0 ? "slowest" : "sum", 1e3 * t.storage_s,
               1e3 * t.decode_s, 1e3 * t.copy_s, 1e3 * (s->p.input_s - t.pipeline_s),
               1e3 * s->p.exposed_input_s),
          "system file", s->p.input_s);
    overhead_of(s);
    memory_of(s);
}

static void same_text(const char *is, const char *want) {
    if (want == NULL)
        assert_null(is);
    else
        assert_string_equal(is, want);
}

static void terms(void **state) {
    (void)state;
    int compared = 0;
    for (int round = 0; round < 4000; round++) {
        struct scene s;
        random_scene(&s);
        write_terms(&s);
        assert_int_equal(dl_explain_terms(&s.parts, &s.p, &err), DL_OK);
        for (int i = 0; i < s.p.term_count && i < s.count; i++) {
            const struct dl_term *is = &s.p.terms[i], *want = &s.want[i];
            same_text(is->name, want->name);
            same_text(is->group, want->group);
            same_text(is->formula, want->formula);
            same_text(is->inputs, want->inputs);
            same_text(is->origin, want->origin);
            same_text(is->limit, want->limit);
            same_text(is->lane, want->lane);
            check_close(is->start_s, want->start_s, 0);
            check_close(is->value, want->value, 1e-9);
            check_close(is->sigma_log, want->sigma_log, 1e-12);
        }
        assert_int_equal(s.p.term_count, s.count);
        compared += s.count;
        dl_arena_free(&s.f.arena);
    }
    assert_true(compared > 60000);
}

/* Beside kernels, operations of the host, where there are any. */
static void operations_of_the_host(void **state) {
    (void)state;
    static const struct {
        double operations;
        const char *words;
    } cases[] = {{0, "dispatch_s=5 us x 30 kernels, minus what kernels hide"},
                 {0.5, "dispatch_s=5 us x 30 kernels and 2 operations, minus what kernels hide"},
                 {1, "dispatch_s=5 us x 30 kernels and 3 operations, minus what kernels hide"},
                 {7, "dispatch_s=5 us x 30 kernels and 21 operations, minus what kernels hide"}};
    for (int i = 0; i < 4; i++) {
        struct dl_fake f;
        struct dl_term out[DL_OVERHEAD_TERMS];
        fake_make(&f);
        f.device.kernel_gap_s = NAN;
        const struct dl_prediction p = {.compute_s = 1, .overhead_s = 0.25};
        const struct dl_overhead_inputs in = {.system = &f.system,
                                              .framework = &f.framework,
                                              .plan = &f.plan,
                                              .kernel_count = 10,
                                              .operation_count = cases[i].operations,
                                              .micro_batches = 3,
                                              .host_count = 3};
        assert_int_equal(dl_explain_overhead(&in, &p, &f.arena, out), 1);
        assert_string_equal(out[0].name, "device waits for launches");
        assert_string_equal(out[0].inputs, cases[i].words);
        check_close(out[0].value, 0.25, 0);
        dl_arena_free(&f.arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(terms),
                                       cmocka_unit_test(operations_of_the_host)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
