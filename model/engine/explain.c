/* explain.c - every term of a prediction with its formula, inputs and origin. */
#include <math.h>
#include <string.h>

#include "model/engine/memory.h"
#include "model/framework/facts.h"
#include "model/framework/gradient_width.h"
#include "model/framework/input.h"
#include "model/engine/explain_overhead.h"
#include "model/engine/prediction_internal.h"
#include "model/framework/shared_host.h"
#include "model/framework/workspace.h"

struct sink {
    const struct dl_prediction_inputs *parts;
    struct dl_term *terms;
    int count, capacity;
};

static void put(struct sink *s, struct dl_term term) {
    if (s->count < s->capacity) s->terms[s->count++] = term;
}

/* Whether GEMMs and convolutions of that precision run on matrix units (tensor cores). */
static bool on_matrix_units(const struct dl_device *device, enum dl_precision precision) {
    enum { MATRIX = 1 };
    const double peak = dl_device_peak(device, precision);
    for (int i = 0; i < device->rate_count; i++) {
        if (device->rates[i].unit == MATRIX && device->rates[i].peak_flop_per_s >= peak)
            return precision != DL_FP32;
    }
    return false;
}

struct limit_words {
    const char *key, *text;
};

static struct limit_words limit_of(const struct dl_prediction_inputs *parts,
                                   const struct dl_pass_cost *cost) {
    static const struct limit_words words[] = {
        [DL_LIMIT_COMPUTE] = {"arithmetic", "arithmetic"},
        [DL_LIMIT_MEMORY] = {"memory-bandwidth", "memory bandwidth"},
        [DL_LIMIT_LATENCY] = {"latency", "kernel latency"}};
    const struct dl_device *device = parts->system->device;
    int most = 0;
    for (int i = 1; i < 3; i++)
        if (cost->by_limit_s[i] > cost->by_limit_s[most]) most = i;
    if (most == DL_LIMIT_COMPUTE && on_matrix_units(device, parts->plan->precision)) {
        const bool nvidia = device->vendor != NULL && strcmp(device->vendor, "nvidia") == 0;
        return (struct limit_words){"matrix-units", nvidia ? "tensor cores" : "matrix units"};
    }
    return words[most];
}

/* ", ..." of a pass whose device shares its host, else "". F-SHARED-HOST */
static const char *sharing_of(const struct sink *s) {
    const struct dl_shared_host shared = dl_shared_host(s->parts->system, s->parts->plan);
    return shared.arithmetic_ratio > 1 || shared.memory_ratio > 1 ||
                   shared.core_oversubscription_ratio > 1
               ? ", on a shared host"
               : "";
}

static void put_pass(struct sink *s, const char *name, const char *group,
                     const struct dl_pass_cost *cost, double start_s) {
    if (cost->time_s <= 0) return;
    struct dl_arena *arena = s->parts->arena;
    const struct limit_words limit = limit_of(s->parts, cost);
    put(s,
        (struct dl_term){
            .name = dl_arena_printf(arena, "%s %s", name, group),
            .group = group,
            .formula = cost->formula,
            .inputs = dl_arena_printf(arena, "%.3g GFLOP, %.3g MB, %.0f kernel%s, limited by %s%s",
                                      cost->flop / 1e9, cost->bytes / 1e6, cost->launches,
                                      cost->launches == 1 ? "" : "s", limit.text, sharing_of(s)),
            .origin = cost->origin_device == NULL
                          ? cost->origin
                          : dl_arena_printf(arena, "%s: %s", cost->origin, cost->origin_device),
            .start_s = start_s,
            .value = cost->time_s,
            .sigma_log = cost->error_s / cost->time_s,
            .limit = limit.key,
            .lane = "compute",
            .flop = cost->flop,
            .bytes = cost->bytes,
        });
}

/* latency_s (with collective_launch_s) + bandwidth_s: what the formula adds up. "" when a behaviour
 * gives the sum alone. */
static const char *two_parts(struct dl_arena *arena, const struct dl_message *message) {
    if (!(message->latency_s > 0) && !(message->bandwidth_s > 0)) return "";
    const char *text = dl_arena_printf(arena, ", launch and latency %.4g us + transfer %.4g ms",
                                       message->latency_s * 1e6, message->bandwidth_s * 1e3);
    return text != NULL ? text : "";
}

static void put_messages(struct sink *s) {
    struct dl_arena *arena = s->parts->arena;
    const struct dl_gradient_sync *x = &s->parts->with_comm->sync;
    const struct dl_plan *plan = s->parts->plan;
    for (int m = 0; m < x->message_count; m++) {
        const struct dl_message *message = &x->messages[m];
        const char *channels = message->channels > 0
                                   ? dl_arena_printf(arena, ", %.0f channel%s", message->channels,
                                                     message->channels > 1 ? "s" : "")
                                   : "";
        const char *steps = message->steps > 0
                                ? dl_arena_printf(arena, ", %.0f step%s", message->steps,
                                                  message->steps > 1 ? "s" : "")
                                : "";
        put(s, (struct dl_term){
                   .name = dl_arena_printf(arena, "%s %d of %d", message->name, m + 1,
                                           x->message_count),
                   .group = "communication",
                   .formula = message->formula,
                   .inputs = dl_arena_printf(
                       arena, "p=%lldx%lld S=%.4g MB %s%s%s%s%s%s, limited by %s",
                       (long long)plan->nodes, (long long)plan->devices_per_node,
                       message->bytes / 1e6, message->algorithm != NULL ? message->algorithm : "",
                       message->protocol != NULL ? "/" : "",
                       message->protocol != NULL ? message->protocol : "",
                       channels != NULL ? channels : "", steps != NULL ? steps : "",
                       two_parts(arena, message), dl_resource_link_text(message->limit)),
                   .origin = message->origin,
                   .start_s = message->start_s,
                   .value = message->duration_s,
                   .sigma_log = message->sigma_log,
                   .lane = "communication",
                   .bytes = message->bytes,
                   .collective = message->name,
               });
    }
}

static void put_plain(struct sink *s, const char *name, const char *group, const char *formula,
                      const char *inputs, const char *origin, double value) {
    if (!(value > 0)) return;
    put(s, (struct dl_term){.name = name,
                            .group = group,
                            .formula = formula,
                            .inputs = inputs,
                            .origin = origin,
                            .start_s = NAN,
                            .value = value,
                            .sigma_log = NAN,
                            .lane = NULL});
}

static void put_states(struct sink *s, const struct dl_memory *m) {
    struct dl_arena *arena = s->parts->arena;
    const struct dl_plan *plan = s->parts->plan;
    const double parameters = s->parts->workload->parameters;
    put_plain(s, "weights", "memory", "F-MEM-STATES",
              dl_arena_printf(arena, "P=%.0f x %g B", parameters,
                              dl_memory_weight_bytes(plan->precision, plan->master_weights)),
              "workload file", m->weights_bytes);
    put_plain(s, "gradients", "memory", "F-MEM-STATES",
              dl_arena_printf(
                  arena, "P=%.0f x %g B", parameters,
                  dl_framework_gradient_width(s->parts->framework, plan->precision).kept_bytes),
              "workload file", m->gradients_bytes);
    put_plain(s, "optimizer", "memory", "F-MEM-STATES",
              dl_arena_printf(arena, "%s: P=%.0f x %g B", dl_optimizer_names[plan->optimizer],
                              parameters, dl_memory_optimizer_bytes(plan->optimizer)),
              "workload file", m->optimizer_bytes);
}

static void put_activations(struct sink *s, const struct dl_memory *m) {
    struct dl_arena *arena = s->parts->arena;
    const struct dl_workload *workload = s->parts->workload;
    const struct dl_plan *plan = s->parts->plan;
    const double rounding_bytes =
        plan->recompute != DL_RECOMPUTE_NONE
            ? 0
            : dl_rounding_bytes(workload, s->parts->framework, plan->precision,
                                plan->batch_per_device_samples);
    const struct dl_kernel_facts facts =
        dl_plan_facts(s->parts->framework, s->parts->system->device, plan);
    const double composed_bytes =
        plan->recompute != DL_RECOMPUTE_NONE
            ? 0
            : plan->batch_per_device_samples * dl_memory_composed_bytes(workload, &facts);
    put_plain(s, "activations", "memory", "F-MEM-ACTIVATIONS",
              dl_arena_printf(arena, "%.0f elements per sample x %g B x %g samples, and masks",
                              workload->activation_elements_per_sample,
                              dl_precision_bytes(plan->precision), plan->batch_per_device_samples),
              "workload file", m->activations_bytes - rounding_bytes - composed_bytes);
    if (composed_bytes > 0)
        put_plain(s, "composed kernels", "memory", "F-MEM-COMPOSED",
                  "what GELU, layer norms and softmax keep between their kernels",
                  "kernels-of-frameworks", composed_bytes);
    put_plain(s, "rounding", "memory", "F-MEM-ROUNDING",
              "each saved tensor rounded up to the allocator's blocks", "framework's allocator",
              rounding_bytes);
}

static double known_or_zero(double value) { return dl_known(value) ? value : 0; }

static const char *buffer_inputs(struct dl_arena *arena, const struct dl_framework *f) {
    const struct dl_sync_buffer buffer = dl_gradient_sync_buffer(f, 0);
    return dl_known(buffer.unit_bytes)
               ? dl_arena_printf(arena, "%s of %.4g MB", buffer.what, buffer.unit_bytes / 1e6)
               : buffer.what;
}

static void put_memory(struct sink *s, const struct dl_prediction *p) {
    struct dl_arena *arena = s->parts->arena;
    const struct dl_device *device = s->parts->system->device;
    const struct dl_framework *framework = s->parts->framework;
    const struct dl_memory *m = &p->memory;
    const double lost_frac = dl_fragmentation_frac(framework),
                 lost_bytes = lost_frac * m->total_bytes;
    put_states(s, m);
    put_activations(s, m);
    const bool limited = dl_known(device->workspace_bytes);
    put_plain(s, "workspace", "memory", "F-MEM-WORKSPACE",
              limited ? dl_arena_printf(arena, "convolution library's limit, %.4g MB",
                                        device->workspace_bytes / 1e6)
                      : "the layer that needs most, within the framework's limit",
              limited ? "device file" : "workload file", m->workspace_bytes - lost_bytes);
    put_plain(s, "communication buffers", "memory", "F-MEM-BUFFERS",
              buffer_inputs(arena, framework), "framework file", m->buffers_bytes);
    put_plain(s, "context", "memory", "F-MEM-CONTEXT",
              dl_arena_printf(arena, "runtime %.4g MB", known_or_zero(device->context_bytes) / 1e6),
              "device file", m->context_bytes);
    put_plain(s, "fragmentation", "memory", "F-MEM-FRAGMENTATION",
              dl_arena_printf(arena, "%.3g of what is reserved", lost_frac), "framework file",
              lost_bytes);
}

/* F-INPUT with the times of loader and copies. */
static void put_input(struct sink *s, const struct dl_prediction *p) {
    const struct dl_prediction_inputs *parts = s->parts;
    const struct dl_input_time t =
        dl_input_compute(parts->system, parts->workload, parts->framework, parts->plan);
    put_plain(s, "input", "input", "F-INPUT",
              dl_arena_printf(parts->arena,
                              "%s of storage=%.3g, decoding=%.3g, host-to-device copy=%.3g ms; "
                              "feed=%.3g ms; exposed=%.3g ms",
                              parts->framework->input.prefetch_batches > 0 ? "slowest" : "sum",
                              1e3 * t.storage_s, 1e3 * t.decode_s, 1e3 * t.copy_s,
                              1e3 * (p->input_s - t.pipeline_s), 1e3 * p->exposed_input_s),
              "system file", p->input_s);
}

static void put_overhead(struct sink *s, const struct dl_prediction *p) {
    const struct dl_prediction_inputs *parts = s->parts;
    const struct dl_plan *plan = parts->plan;
    const bool pipeline = p->bubble_s > 0;
    const double steps = plan->micro_batch_samples > 0
                             ? ceil(plan->batch_per_device_samples / plan->micro_batch_samples)
                             : 1;
    struct dl_overhead_inputs in = {
        .system = parts->system,
        .framework = parts->framework,
        .plan = plan,
        .kernel_count =
            (parts->cost->update.launches + (steps - 1) * parts->cost->accumulation.launches) /
            steps,
        .micro_batches = steps,
        .host_count = pipeline ? 1 : steps};
    for (int i = 0; i < parts->workload->layer_count; i++)
        in.kernel_count +=
            parts->cost->layers[i].forward.launches + parts->cost->layers[i].backward.launches;
    for (int i = 0; i < parts->workload->layer_count; i++) {
        dl_host_count_add(&in.host, &parts->cost->layers[i].forward.host, 1);
        dl_host_count_add(&in.host, &parts->cost->layers[i].backward.host, 1);
    }
    put_plain(s, "pipeline bubble", "overhead", "F-PIPE-BUBBLE",
              dl_arena_printf(parts->arena, "%lld stages, %g micro-batches, %s",
                              (long long)plan->pp, steps, dl_schedule_names[plan->schedule]),
              "model", p->bubble_s);
    struct dl_term terms[DL_OVERHEAD_TERMS];
    const int count = dl_explain_overhead(&in, p, parts->arena, terms);
    for (int i = 0; i < count; i++) put(s, terms[i]);
}

/* The cost of gradient synchronization in addition to its messages. */
static void put_around_messages(struct sink *s) {
    const struct dl_prediction_inputs *parts = s->parts;
    const struct dl_gradient_sync *x = &parts->with_comm->sync;
    const struct dl_framework *f = parts->framework;
    put_plain(s, "packing and unpacking", "communication", "F-KERNEL-STREAM",
              dl_arena_printf(parts->arena, "gradients read and written twice at %.4g GB/s",
                              parts->system->device->memory_bandwidth_bytes_per_s *
                                  known_or_zero(parts->system->device->memory_efficiency) / 1e9),
              "device file", x->device_copy_s);
    put_plain(s, "broadcast before forward", "communication", "F-FW-BUCKETS",
              dl_arena_printf(parts->arena, "P=%.0f parameters, %.0f buffer elements x 4 B",
                              parts->workload->parameters, parts->workload->buffer_elements),
              "model", x->prologue_s);
    put_plain(s, "host loop over devices", "communication", "F-FW-CENTRAL",
              dl_arena_printf(parts->arena, "message_s=%.3g us, replica_s=%.3g us; %lld devices",
                              1e6 * f->sync.messages.message_s, 1e6 * f->sync.replica_s,
                              (long long)parts->plan->devices_per_node),
              "framework file", x->host_s);
}

static void put_slowdown(struct sink *s) {
    const struct dl_timeline *t = s->parts->with_comm;
    put_plain(s, "slowdown while communicating", "backward", "F-SLOWDOWN",
              dl_arena_printf(s->parts->arena, "slowdown=%.3g x overlap=%.4g ms",
                              t->slowdown_s / t->overlap_s, 1e3 * t->overlap_s),
              "framework or device file", t->slowdown_s);
}

static void put_accumulation(struct sink *s) {
    const struct dl_plan *plan = s->parts->plan;
    const struct dl_pass_cost *sum = &s->parts->cost->accumulation;
    const double before = plan->micro_batch_samples > 0
                              ? ceil(plan->batch_per_device_samples / plan->micro_batch_samples) - 1
                              : 0;
    put_plain(s, "sums of gradients", "update", "F-ACCUMULATE",
              dl_arena_printf(s->parts->arena, "%.4g MB in %.0f kernels x %.0f micro-batches",
                              sum->bytes / 1e6, sum->launches, before),
              "framework's kernels", before * sum->time_s);
}

void dl_explain_terms(const struct dl_prediction_inputs *parts, struct dl_prediction *p) {
    const struct dl_workload *workload = parts->workload;
    const struct dl_timeline *t = parts->with_comm;
    struct sink s = {.parts = parts,
                     .capacity = 2 * workload->layer_count + t->sync.message_count + 32};
    s.terms = dl_arena_alloc(parts->arena, (size_t)s.capacity, sizeof *s.terms);
    for (int i = 0; i < workload->layer_count; i++) {
        put_pass(&s, workload->layers[i].name, "forward", &parts->cost->layers[i].forward,
                 t->forward_start_s[i]);
    }
    for (int i = workload->layer_count - 1; i >= 0; i--) {
        put_pass(&s, workload->layers[i].name, "backward", &parts->cost->layers[i].backward,
                 t->backward_start_s[i]);
    }
    put_slowdown(&s);
    put_pass(&s, "optimizer", "update", &parts->cost->update, t->update_start_s);
    put_accumulation(&s);
    put_messages(&s);
    put_around_messages(&s);
    put_input(&s, p);
    put_overhead(&s, p);
    put_memory(&s, p);
    p->terms = s.terms;
    p->term_count = s.count;
    p->course.tasks = s.terms;
    p->course.task_count = s.count;
}
