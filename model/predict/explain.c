/* explain.c - every term of a prediction with its formula, inputs and origin. */
#include <math.h>
#include <string.h>

#include "model/predict/memory.h"
#include "model/collective/libraries/nccl.h"
#include "model/hardware/net_share.h"
#include "model/predict/prediction_parts.h"
#include "model/framework/shared_host.h"
#include "model/framework/workspace.h"

struct sink {
    const struct dl_parts *parts;
    struct dl_term *terms;
    int count, capacity;
};

static void put(struct sink *s, struct dl_term term) {
    if (s->count < s->capacity) s->terms[s->count++] = term;
}

/* Whether products and convolutions of that precision run on matrix units (tensor cores): their
 * rate is none of a vector unit. */
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

static struct limit_words limit_of(const struct dl_parts *parts, const struct dl_pass_cost *cost) {
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
    return shared.arithmetic_ratio > 1 || shared.memory_ratio > 1 || shared.turns_ratio > 1
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
            .inputs = dl_arena_printf(arena, "%.3g GFLOP, %.3g MB, %.0f kernels, limited by %s%s",
                                      cost->flop / 1e9, cost->bytes / 1e6, cost->launches,
                                      limit.text, sharing_of(s)),
            .origin = cost->origin_device == NULL
                          ? cost->origin
                          : dl_arena_printf(arena, "%s from %s", cost->origin, cost->origin_device),
            .start_s = start_s,
            .value = cost->time_s,
            .sigma_log = cost->error_s / cost->time_s,
            .limit = limit.key,
            .lane = "compute",
        });
}

/* What narrows NCCL's way between nodes when it is not the adapter itself, which a faster network
 * would not help (F-NETWORK). */
static const char *narrower_than_adapter(const struct dl_parts *parts,
                                         const struct dl_message *message) {
    static const char *const texts[DL_NET_LINKS] = {
        [DL_NET_ADAPTERS] = "",
        [DL_NET_COPY] = " (on its way through the host: host.copy_bandwidth)",
        [DL_NET_MEMORY] = " (on its way through the host: host.memory_bandwidth)",
        [DL_NET_CROSS] = " (between sockets: links.intra.cross_bandwidth)"};
    const struct dl_system *system = parts->system;
    if (message->limit == NULL || strcmp(message->limit, "inter") != 0 || !system->has_inter ||
        strncmp(message->formula, "F-NCCL", strlen("F-NCCL")) != 0)
        return "";
    return texts[dl_network_share(system, dl_nccl_adapter_bytes_per_s(&system->inter),
                                  (double)parts->plan->nodes, (double)parts->plan->devices_per_node,
                                  1, true)
                     .limit];
}

static void put_messages(struct sink *s) {
    struct dl_arena *arena = s->parts->arena;
    const struct dl_gradient_sync *x = &s->parts->with_comm->exchange;
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
                       arena, "p=%lldx%lld S=%.4g MB %s%s%s%s%s, limited by %s link%s",
                       (long long)plan->nodes, (long long)plan->devices_per_node,
                       message->bytes / 1e6, message->algorithm != NULL ? message->algorithm : "",
                       message->protocol != NULL ? "/" : "",
                       message->protocol != NULL ? message->protocol : "",
                       channels != NULL ? channels : "", steps != NULL ? steps : "",
                       message->limit != NULL ? message->limit : "no",
                       narrower_than_adapter(s->parts, message)),
                   .origin = message->origin,
                   .start_s = message->start_s,
                   .value = message->duration_s,
                   .sigma_log = message->sigma_log,
                   .lane = "communication",
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

static void put_memory(struct sink *s, const struct dl_prediction *p) {
    struct dl_arena *arena = s->parts->arena;
    const struct dl_workload *workload = s->parts->workload;
    const struct dl_plan *plan = s->parts->plan;
    const struct dl_memory *m = &p->memory;
    put_plain(s, "weights", "memory", "F-MEM-STATES",
              dl_arena_printf(arena, "P=%.0f x %g B", workload->parameters,
                              dl_memory_weight_bytes(plan->precision)),
              "workload file", m->weights_bytes);
    put_plain(s, "gradients", "memory", "F-MEM-STATES",
              dl_arena_printf(arena, "P=%.0f x %g B", workload->parameters,
                              dl_memory_gradient_bytes(plan->precision)),
              "workload file", m->gradients_bytes);
    put_plain(s, "optimizer", "memory", "F-MEM-STATES",
              dl_arena_printf(arena, "%s: P=%.0f x %g B", dl_optimizer_names[plan->optimizer],
                              workload->parameters, dl_memory_optimizer_bytes(plan->optimizer)),
              "workload file", m->optimizer_bytes);
    const double rounding_bytes =
        plan->recompute != DL_RECOMPUTE_NONE
            ? 0
            : dl_rounding_bytes(workload, s->parts->framework, plan->precision,
                                plan->batch_per_device_samples);
    put_plain(s, "activations", "memory", "F-MEM-ACTIVATIONS",
              dl_arena_printf(arena, "%.0f elements a sample x %g B x %g samples, and masks",
                              workload->activation_elements_per_sample,
                              dl_precision_bytes(plan->precision), plan->batch_per_device_samples),
              "workload file", m->activations_bytes - rounding_bytes);
    put_plain(s, "rounding", "memory", "F-MEM-ROUNDING",
              "each saved tensor to the allocator's blocks", "framework's allocator",
              rounding_bytes);
    const bool limited = dl_known(s->parts->system->device->workspace_bytes);
    put_plain(s, "workspace", "memory", "F-MEM-WORKSPACE",
              limited ? "limit of the convolution library"
                      : "the layer that needs most, within the framework's limit",
              limited ? "device file" : "workload file", m->workspace_bytes);
    put_plain(s, "communication buffers", "memory", "F-MEM-BUFFERS",
              "buckets, fusion buffer or pack", "framework file", m->buffers_bytes);
    put_plain(s, "context", "memory", "F-MEM-CONTEXT", "runtime and framework",
              "device and framework file", m->context_bytes);
    const double parts = m->weights_bytes + m->gradients_bytes + m->optimizer_bytes +
                         m->activations_bytes + m->workspace_bytes + m->buffers_bytes +
                         m->context_bytes;
    put_plain(s, "lost to the allocator", "memory", "F-MEM-FRAGMENTATION", "sum x f / (1 - f)",
              "framework file", m->total_bytes - parts);
}

const char *dl_explain_straggler(const struct dl_plan *plan, const struct dl_prediction *p,
                                 struct dl_arena *arena) {
    return dl_arena_printf(arena, "jitter x E[max of %.0f] = %.4g of compute",
                           (double)(plan->nodes * plan->devices_per_node),
                           p->compute_s > 0 ? p->straggler_s / p->compute_s : 0);
}

enum dl_code dl_explain_terms(const struct dl_parts *parts, struct dl_prediction *p,
                              struct dl_err *err) {
    const struct dl_workload *workload = parts->workload;
    const struct dl_timeline *t = parts->with_comm;
    struct sink s = {.parts = parts,
                     .capacity = 2 * workload->layer_count + t->exchange.message_count + 26};
    s.terms = dl_arena_alloc(parts->arena, (size_t)s.capacity, sizeof *s.terms);
    if (s.terms == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    for (int i = 0; i < workload->layer_count; i++) {
        put_pass(&s, workload->layers[i].name, "forward", &parts->cost->layers[i].forward,
                 t->forward_start_s[i]);
    }
    for (int i = workload->layer_count - 1; i >= 0; i--) {
        put_pass(&s, workload->layers[i].name, "backward", &parts->cost->layers[i].backward,
                 t->backward_start_s[i]);
    }
    if (t->slowdown_s > 0) {
        put_plain(&s, "slowdown while a collective runs", "backward", "F-SLOWDOWN",
                  "overlap_slowdown_frac x overlapped time", "framework file", t->slowdown_s);
    }
    put_pass(&s, "optimizer", "update", &parts->cost->update, t->update_start_s);
    put_messages(&s);
    put_plain(&s, "packing and unpacking", "communication", "F-KERNEL-STREAM",
              "read and write of all bytes twice", "model", t->exchange.device_copy_s);
    put_plain(&s, "before forward", "communication", "F-FW-BUCKETS", "broadcast of buffers",
              "model", t->exchange.prologue_s);
    put_plain(&s, "host loop of the exchange", "communication", "F-FW-CENTRAL",
              "message_s of each copy, replicate_s x devices", "framework file",
              t->exchange.host_s);
    put_plain(&s, "input", "input", "F-INPUT", "host link and storage", "system file", p->input_s);
    put_plain(&s, "pipeline fills and drains", "overhead", "F-PIPE-BUBBLE",
              "(p - 1) steps of the slowest stage", "model", p->bubble_s);
    put_plain(&s, "launch gaps, host", "overhead", "F-HOST-GAP", "dispatch_s, iteration_s",
              "framework and system file", p->overhead_s - p->straggler_s);
    put_plain(&s, "straggler wait", "overhead",
              parts->plan->backup_workers > 0 ? "F-BACKUP" : "F-STRAGGLER",
              dl_explain_straggler(parts->plan, p, parts->arena), "system file", p->straggler_s);
    put_memory(&s, p);
    p->terms = s.terms;
    p->term_count = s.count;
    return DL_OK;
}
