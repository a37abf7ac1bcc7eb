/* transformer_explain.c - every term of a transformer's prediction with its formula, inputs and
 * origin. */
#include <math.h>

#include "model/engine/explain_overhead.h"
#include "model/engine/memory.h"
#include "model/engine/transformer/transformer_internal.h"
#include "model/framework/workspace.h"

enum { MAX_TERMS = 48 };

struct sink {
    const struct dl_transformer_parts *t;
    struct dl_term *terms;
    int count;
};

static void put(struct sink *s, const char *name, const char *group, const char *formula,
                const char *inputs, const char *origin, double value, double sigma) {
    if (!(value > 0) || s->count >= MAX_TERMS) return;
    s->terms[s->count++] = (struct dl_term){.name = name,
                                            .group = group,
                                            .formula = formula,
                                            .inputs = inputs,
                                            .origin = origin,
                                            .start_s = NAN,
                                            .value = value,
                                            .sigma_log = sigma};
}

static bool has_tower(const struct dl_transformer *tf) {
    return tf->workload->stack.lead < tf->workload->stack.own;
}

const char *dl_transformer_part_name(const struct dl_transformer *tf, int part) {
    static const char *const names[] = {"embedding", "layer", "head"};
    return part == DL_TRANSFORMER_BEFORE && has_tower(tf) ? "tower" : names[part];
}

const char *dl_transformer_part_formula(const struct dl_transformer *tf, int part) {
    return part == DL_TRANSFORMER_BEFORE && has_tower(tf) ? "F-TOWER" : "F-TRANSFORMER-LAYER";
}

/* How often the stage runs the part; stages that are cut evenly have a share of all. */
static double times_of(const struct dl_transformer_parts *t, int part) {
    const double m = t->choice.micro_batches;
    return m * t->result.part_count[part];
}

static void put_pass(struct sink *s, int part, bool forward) {
    const struct dl_transformer_parts *t = s->t;
    struct dl_arena *arena = t->arena;
    const struct dl_transformer_pass *pass =
        forward ? &t->micro_batch.forward[part]
                : &t->micro_batch.backward[part][t->choice.recompute];
    const double times = times_of(t, part);
    if (pass->device_s <= 0 || times <= 0) return;
    /* without a head: what the last layer takes less than the others */
    const struct dl_transformer_pass *after =
        forward ? &t->micro_batch.forward[DL_TRANSFORMER_AFTER]
                : &t->micro_batch.backward[DL_TRANSFORMER_AFTER][t->choice.recompute];
    const double less_s = part == DL_TRANSFORMER_BODY ? fmin(0, after->device_s) : 0,
                 value_s = times * pass->device_s + times_of(t, DL_TRANSFORMER_AFTER) * less_s;
    const char *group = forward ? "forward" : "backward";
    put(s,
        dl_arena_printf(arena, "%s %s x %g", dl_transformer_part_name(t->tf, part), group, times),
        group, dl_transformer_part_formula(t->tf, part),
        dl_arena_printf(
            arena, "%g samples, tp=%lld cp=%lld: %.3g GFLOP, %.3g MB, %.0f kernels, %.4g ms each%s",
            t->micro_samples, (long long)t->mapping.split.tp, (long long)t->mapping.split.sp,
            pass->flop / 1e9, pass->moved_bytes / 1e6, pass->launches, 1e3 * pass->device_s,
            forward || t->choice.recompute == DL_RECOMPUTE_NONE ? "" : ", with recomputation"),
        t->tf->system->device->name, value_s, pass->error_s / pass->device_s);
}

/* What is compute besides the network's kernels. */
static void put_copies(struct sink *s, bool forward) {
    const struct dl_transformer_parts *t = s->t;
    const struct dl_transformer_mapping *mapping = &t->mapping;
    const double m = t->choice.micro_batches, layers = t->result.part_count[DL_TRANSFORMER_BODY],
                 times = m * layers;
    const char *group = forward ? "forward" : "backward", *device = t->tf->system->device->name,
               *each = dl_arena_printf(t->arena, "%g layers x %g micro-batches", layers, m);
    put(s, "copies of gathered parameters", group, "F-TRANSFORMER-SHARD", each, device,
        times * mapping->copy_out_s, NAN);
    if (forward) return;
    put(s, "copies of gradients", group, "F-TRANSFORMER-SHARD", each, device,
        times * mapping->copy_in_s, NAN);
    put(s, "sums of gradients", group, "F-TRANSFORMER-ACCUMULATE", each, device,
        m > 1 ? times * mapping->accumulate_s : 0, NAN);
    put(s, "slowdown while communicating", group, "F-SLOWDOWN",
        dl_arena_printf(t->arena, "share held=%.3g for %.4g ms", mapping->slowdown_frac,
                        1e3 * (t->result.data_s - t->result.data_exposed_s)),
        "framework or device file", t->result.slowdown_s, NAN);
}

static void put_collective(struct sink *s, const char *name, const struct dl_collective_time *c,
                           double bytes, double times, const char *formula) {
    if (!(c->time_s > 0)) return;
    const char *size = bytes > 0 ? dl_arena_printf(s->t->arena, "%.4g MB ", bytes / 1e6) : "";
    put(s, dl_arena_printf(s->t->arena, "%s x %g", name, times), "communication", formula,
        dl_arena_printf(s->t->arena, "%s%s%s%s (%s), %.4g ms each, limited by %s", size,
                        c->algorithm != NULL ? c->algorithm : "", c->protocol != NULL ? "/" : "",
                        c->protocol != NULL ? c->protocol : "",
                        c->formula != NULL ? c->formula : "-", 1e3 * c->time_s,
                        dl_resource_link_text(c->limit)),
        c->origin, times * c->time_s, c->sigma_log);
}

static void put_communication(struct sink *s) {
    const struct dl_transformer_parts *t = s->t;
    const struct dl_transformer_micro_batch *micro_batch = &t->micro_batch;
    const struct dl_transformer_mapping *mapping = &t->mapping;
    const double m = t->choice.micro_batches,
                 each = dl_transformer_sums(t->tf, mapping, &t->choice),
                 pp = (double)mapping->split.pp;
    const double routings = 2 * m * mapping->stage_layers *
                            (t->choice.recompute == DL_RECOMPUTE_FULL
                                 ? 2 + dl_plan_recomputed_frac(t->plan, mapping->stage_layers)
                                 : 2);
    /* but the experts' */
    struct dl_collective_time reduce = mapping->reduce, gather = mapping->gather;
    reduce.time_s -= mapping->experts.reduce.time_s;
    gather.time_s -= mapping->experts.gather.time_s;
    put(s, "inside layers", "communication", "F-TRANSFORMER-TENSOR",
        dl_arena_printf(t->arena,
                        "%g micro-batches x %g layers, %.4g MB each, all-reduce %.4g ms, "
                        "all-gather %.4g ms, reduce-scatter %.4g ms",
                        m, mapping->stage_layers, micro_batch->collective_bytes / 1e6,
                        1e3 * micro_batch->reduce.time_s, 1e3 * micro_batch->gather.time_s,
                        1e3 * micro_batch->scatter.time_s),
        "model",
        t->result.tensor_s - (dl_transformer_expert_ranks(&mapping->split) > 1
                                  ? routings * micro_batch->route.time_s
                                  : 0),
        NAN);
    if (dl_transformer_expert_ranks(&mapping->split) > 1) {
        put_collective(s, "expert all-to-all", &micro_batch->route, micro_batch->route_bytes,
                       routings, "F-TRANSFORMER-EXPERT");
    }
    put_collective(
        s, "between stages", &t->boundary, micro_batch->boundary_bytes,
        2 * (m * (double)t->choice.virtual_stages / dl_transformer_chains(&mapping->split) + pp -
             2),
        "F-TRANSFORMER-BOUNDARY");
    put_collective(s, mapping->shard > 0 ? "gradients, reduce-scatter" : "gradients, all-reduce",
                   &reduce, mapping->gradient_bytes - mapping->experts.gradient_bytes, each,
                   "F-TRANSFORMER-DATA");
    put_collective(s, "parameters, all-gather", &gather,
                   mapping->gather_bytes - mapping->experts.gather_bytes,
                   mapping->shard == 3 ? m : 1, "F-TRANSFORMER-DATA");
    put_collective(s, "expert gradients", &mapping->experts.reduce, mapping->experts.gradient_bytes,
                   each, "F-TRANSFORMER-DATA");
    put_collective(s, "expert all-gather", &mapping->experts.gather, mapping->experts.gather_bytes,
                   1, "F-TRANSFORMER-DATA");
    put_collective(s, "layer all-gather", &mapping->unit_gather, 0,
                   m * (2 * mapping->stage_layers - 1), "F-TRANSFORMER-SHARD");
    put_collective(s, "layer reduce-scatter", &mapping->unit_reduce, 0, m * mapping->stage_layers,
                   "F-TRANSFORMER-SHARD");
    put_collective(s, "tied embedding", &mapping->tied, 0, 1, "F-TRANSFORMER-DATA");
}

static void put_memory(struct sink *s, const struct dl_memory *m) {
    const struct dl_transformer_parts *t = s->t;
    struct dl_arena *arena = t->arena;
    const double parameters = t->mapping.most_parameters;
    const char *inputs = dl_arena_printf(arena, "%.4g parameters of a rank, ZeRO stage %d over %g",
                                         parameters, t->mapping.shard, t->mapping.shard_ranks);
    put(s, "weights", "memory", "F-TRANSFORMER-STATES", inputs, "workload file", m->weights_bytes,
        NAN);
    put(s, "gradients", "memory", "F-TRANSFORMER-STATES", inputs, "workload file",
        m->gradients_bytes, NAN);
    put(s, "optimizer", "memory", "F-TRANSFORMER-STATES", inputs, "workload file",
        m->optimizer_bytes, NAN);
    put(s, "activations", "memory", "F-TRANSFORMER-MEMORY",
        dl_arena_printf(arena,
                        "%.4g micro-batches in flight (F-TRANSFORMER-IN-FLIGHT) x %g layers x %.4g "
                        "MB (F-TRANSFORMER-ACTIVATIONS)",
                        dl_transformer_in_flight(&t->mapping, &t->choice, 0),
                        t->mapping.stage_layers,
                        t->micro_batch.kept_bytes[DL_TRANSFORMER_BODY][t->choice.recompute] / 1e6),
        "workload file", m->activations_bytes, NAN);
    const double lost_frac = dl_fragmentation_frac(t->tf->framework),
                 lost_bytes = lost_frac * m->total_bytes,
                 kept_bytes = m->workspace_bytes - lost_bytes;
    put(s, "workspace", "memory", "F-MEM-WORKSPACE",
        dl_arena_printf(arena, "libraries keep %.4g MB", kept_bytes / 1e6), "device file",
        kept_bytes, NAN);
    put(s, "communication buffers", "memory", "F-MEM-BUFFERS", "gradient buckets", "framework file",
        m->buffers_bytes, NAN);
    const double runtime_bytes = t->tf->system->device->context_bytes;
    put(s, "context", "memory", "F-MEM-CONTEXT",
        dl_arena_printf(arena, "runtime %.4g MB",
                        dl_known(runtime_bytes) ? runtime_bytes / 1e6 : 0),
        "device file", m->context_bytes, NAN);
    put(s, "fragmentation", "memory", "F-MEM-FRAGMENTATION",
        dl_arena_printf(arena, "%.3g of what is reserved", lost_frac), "framework file", lost_bytes,
        NAN);
}

static void put_overhead(struct sink *s, const struct dl_prediction *p) {
    const struct dl_transformer_parts *t = s->t;
    struct dl_overhead_inputs in = {.system = t->tf->system,
                                    .framework = t->tf->framework,
                                    .plan = t->plan,
                                    .micro_batches = t->choice.micro_batches,
                                    .host_count = 1};
    for (int part = 0; part < DL_TRANSFORMER_PARTS; part++) {
        const double times = times_of(t, part) / t->choice.micro_batches;
        const struct dl_transformer_pass *passes[] = {
            &t->micro_batch.forward[part], &t->micro_batch.backward[part][t->choice.recompute]};
        for (int i = 0; i < 2; i++) {
            in.kernel_count += times * passes[i]->launches;
            in.operation_count += times * passes[i]->host_operation_count;
            dl_host_count_add(&in.host, &passes[i]->host, times);
        }
    }
    struct dl_term terms[DL_OVERHEAD_TERMS];
    const int count = dl_explain_overhead(&in, p, t->arena, terms);
    for (int i = 0; i < count && s->count < MAX_TERMS; i++) s->terms[s->count++] = terms[i];
}

void dl_transformer_explain(const struct dl_transformer_parts *t, struct dl_prediction *p) {
    struct sink s = {.t = t, .terms = dl_arena_alloc(t->arena, MAX_TERMS, sizeof *s.terms)};
    for (int part = 0; part < DL_TRANSFORMER_PARTS; part++) put_pass(&s, part, true);
    put_copies(&s, true);
    for (int part = DL_TRANSFORMER_PARTS - 1; part >= 0; part--) put_pass(&s, part, false);
    put_copies(&s, false);
    put(&s, "optimizer step", "update", "F-UPDATE-BYTES",
        dl_arena_printf(t->arena, "%.4g parameters%s", t->mapping.updated_elements,
                        t->mapping.shard > 0 ? ", the rank's shard" : ""),
        t->tf->system->device->name, p->update_s, NAN);
    if (t->mapping.host.update_s > 0) {
        put(&s, "optimizer step on the host", "overhead", "F-OFFLOAD",
            dl_arena_printf(t->arena, "%.4g GB of each rank in host memory",
                            t->mapping.host.bytes / 1e9),
            "system file", t->mapping.host.update_s, NAN);
        put(&s, "gradients to the host and weights back", "overhead", "F-OFFLOAD", "",
            "system file", t->mapping.host.copy_s, NAN);
    }
    put_communication(&s);
    put(&s, "input", "input", "F-INPUT",
        dl_arena_printf(t->arena, "%g samples x %.4g B over the host link; exposed=%.3g ms",
                        t->choice.micro_batches * t->micro_samples,
                        t->tf->workload->input_bytes_per_sample, 1e3 * p->exposed_input_s),
        "system file", p->input_s, NAN);
    put(&s, "pipeline bubble", "overhead", "F-TRANSFORMER-BUBBLE",
        dl_arena_printf(t->arena, "%lld stages, %g micro-batches, %s",
                        (long long)t->mapping.split.pp, t->choice.micro_batches,
                        dl_schedule_names[t->choice.schedule]),
        "model", p->bubble_s, NAN);
    put_overhead(&s, p);
    put_memory(&s, &p->memory);
    p->terms = s.terms;
    p->term_count = s.count;
    dl_transformer_course(t, p);
}
