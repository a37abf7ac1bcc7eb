/* memory_advice.c - F-MEM-ADVICE: the same memory model with one change at a time. */
#include "model/engine/memory_advice.h"

#include <math.h>

struct question {
    const struct dl_system *system;
    const struct dl_workload *workload;
    const struct dl_framework *framework;
    const struct dl_plan *plan;
    double batch, capacity_bytes;
    struct dl_arena *arena;
};
struct answer {
    const char *change;
    double saved_bytes;
    bool fits;
};

static double total(const struct question *q, const struct dl_plan *plan, double batch) {
    struct dl_memory m;
    dl_memory_compute(q->system, q->workload, q->framework, plan, batch, &m, NULL);
    return m.total_bytes;
}

static struct answer changed(const struct question *q, const char *change, double bytes) {
    const double now = total(q, q->plan, q->batch);
    return (struct answer){change, now - bytes, bytes <= q->capacity_bytes};
}

static struct answer recompute(const struct question *q, enum dl_recompute mode,
                               const char *change) {
    struct dl_plan plan = *q->plan;
    const bool possible = mode > plan.recompute &&
                          (mode != DL_RECOMPUTE_FULL || dl_known(q->workload->transformer_layers));
    plan.recompute = mode;
    return possible ? changed(q, change, total(q, &plan, q->batch))
                    : (struct answer){NULL, 0, false};
}

/* The largest micro-batch that divides the batch and fits; else 1. */
static struct answer micro_batch(const struct question *q) {
    double micro = 1;
    if (!(q->batch >= 2) || q->batch != floor(q->batch)) return (struct answer){NULL, 0, false};
    for (double parts = 2; parts <= fmin(q->batch, 1024); parts++) {
        if (fmod(q->batch, parts) != 0) continue;
        micro = q->batch / parts;
        if (total(q, q->plan, micro) <= q->capacity_bytes) break;
    }
    return changed(q, dl_arena_printf(q->arena, "--micro-batch %.0f", micro),
                   total(q, q->plan, micro));
}

/* Optimizer states, gradients and weights over all data-parallel ranks. */
static struct answer shard(const struct question *q) {
    struct dl_memory m;
    const double ranks = (double)q->plan->dp;
    dl_memory_compute(q->system, q->workload, q->framework, q->plan, q->batch, &m, NULL);
    const double states = m.weights_bytes + m.gradients_bytes + m.optimizer_bytes;
    return ranks > 1 ? changed(q, "--strategy zero3", m.total_bytes - states * (1 - 1 / ranks))
                     : (struct answer){NULL, 0, false};
}

static struct answer mixed(const struct question *q) {
    struct dl_plan plan = *q->plan;
    bool has_rate = false;
    for (int i = 0; i < q->system->device->rate_count; i++)
        has_rate = has_rate || q->system->device->rates[i].precision == DL_MIXED;
    plan.precision = DL_MIXED;
    return has_rate && q->plan->precision == DL_FP32
               ? changed(q, "--precision mixed", total(q, &plan, q->batch))
               : (struct answer){NULL, 0, false};
}

static struct answer fewer(const struct question *q) {
    const double batch = dl_memory_max_batch(q->system, q->workload, q->framework, q->plan, NULL);
    if (!(batch >= 1) || batch >= q->batch) return (struct answer){NULL, 0, false};
    return changed(q, dl_arena_printf(q->arena, "--batch-per-device %.0f", batch),
                   total(q, q->plan, batch));
}

static const char *gib(double bytes, struct dl_arena *arena) {
    const double value = bytes / (1024.0 * 1024 * 1024);
    return dl_arena_printf(arena, value < 1000 ? "%.3g GiB" : "%.0f GiB", value);
}

const char *dl_memory_advice(const struct dl_system *system, const struct dl_workload *workload,
                             const struct dl_framework *framework, const struct dl_plan *plan,
                             double batch, struct dl_arena *arena) {
    const struct question q = {
        system, workload, framework, plan, batch, system->device->memory_bytes, arena};
    const double over = total(&q, plan, batch) - q.capacity_bytes;
    if (!dl_known(q.capacity_bytes) || !(over > 0)) return NULL;
    const struct answer answers[] = {
        recompute(&q, DL_RECOMPUTE_SELECTIVE, "--recompute selective"),
        micro_batch(&q),
        recompute(&q, DL_RECOMPUTE_FULL, "--recompute full"),
        shard(&q),
        mixed(&q),
        fewer(&q),
    };
    const struct answer *best = NULL;
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        if (answers[i].change == NULL || !(answers[i].saved_bytes > 0)) continue;
        if (answers[i].fits) {
            return dl_arena_printf(arena, "does not fit, %s too much: %s saves %s and makes it fit",
                                   gib(over, arena), answers[i].change,
                                   gib(answers[i].saved_bytes, arena));
        }
        if (best == NULL || answers[i].saved_bytes > best->saved_bytes) best = &answers[i];
    }
    if (best == NULL)
        return dl_arena_printf(arena, "does not fit, %s too much: use a device with more memory",
                               gib(over, arena));
    return dl_arena_printf(arena,
                           "does not fit, %s too much: no single change is enough; %s saves most, "
                           "%s (dlmodel search combines changes)",
                           gib(over, arena), best->change, gib(best->saved_bytes, arena));
}
