/* transformer_mapping.c - the devices of each group of ranks, and what does not depend on the
 * micro-batch: synchronization of gradients and parameters, the update, the states.
 *
 * F-TRANSFORMER-GROUPS: devices are numbered with tensor ranks fastest, then sequence ranks, then
 * data and pipeline ranks as the mapping says. A group of R ranks at stride S has min(R, g/S) of
 * them on a node of g devices; all like groups communicate at once and share the adapters
 * (F-COLL-CONCURRENT). A message between stages crosses nodes when their ranks do. Experts of e
 * expert ranks are held by every e-th data rank: N/e ranks add up their gradients and share their
 * states. Hybrid sharding partitions states over g neighbouring data ranks: N above is g;
 * gradients are reduce-scattered among g, and the shares of S/g all-reduced among the N/g ranks
 * that hold the same (F-TRANSFORMER-HYBRID). F-TRANSFORMER-BOUNDARY: a stage sends b s h / t
 * elements of each micro-batch to the next, and gets as many gradients back. F-TRANSFORMER-STATES:
 * bytes per parameter of ZeRO with N data ranks, 16-bit weights w, gradients d, masters and moments
 * o: none w + d + o, stage 1 w + d + o/N, stage 2 w + (d + o)/N, stage 3 (w + d + o)/N and in use
 * the weights of a layer and of the next, or of the head. Where the shards are in fp32 and cast
 * when they are gathered (casts_gathered), masters are the weights: w is 0 at stage 3, d at least
 * 4. With no_reshard_with_pipeline stage 3 of a pipeline is stage 1. Stage 3 shares out and gathers
 * frozen weights as the others.
 */
#include <math.h>
#include <string.h>

#include "model/framework/gradient_width.h"
#include "model/framework/cost.h"
#include "model/framework/gradient_sync.h"
#include "model/framework/workspace.h"
#include "model/engine/memory.h"
#include "model/engine/replica.h"
#include "model/engine/strategies/strategy.h"
#include "model/engine/transformer/micro_batch_builder.h"
#include "model/engine/transformer/transformer_internal.h"

int dl_transformer_chains(const struct dl_transformer_split *s) {
    return dl_placing_chains(s->placing);
}

int64_t dl_transformer_expert_ranks(const struct dl_transformer_split *s) {
    return s->ep * (s->ep_within_tp_cp > 0 ? s->ep_within_tp_cp : 1);
}

int64_t dl_transformer_expert_replicas(const struct dl_transformer_split *s) {
    return dl_transformer_chains(s) * s->dp * s->sp * (s->ep_within_tp_cp > 0 ? s->tp : 1) /
           (s->ep_within_tp_cp > 0 ? s->ep_within_tp_cp : 1);
}

/* Parts into which the ranks of a stage divide the experts' parameters. */
static double expert_parts(const struct dl_transformer_split *s) {
    return (double)(dl_transformer_expert_ranks(s) * (s->ep_within_tp_cp > 0 ? 1 : s->tp));
}

struct dl_transformer_group dl_transformer_group_of(const struct dl_transformer_split *s,
                                                    unsigned axis) {
    const bool pipeline_inside = s->mapping == DL_MAP_PIPELINE_INSIDE;
    const int64_t inner = s->tp * s->sp, data = s->ep * s->dp, chains = dl_transformer_chains(s);
    switch (axis) {
    case DL_AXIS_TP: return (struct dl_transformer_group){s->tp, 1};
    case DL_AXIS_SP: return (struct dl_transformer_group){s->sp, s->tp};
    case DL_AXIS_EP:
        if (s->ep_within_tp_cp > 0)
            return (struct dl_transformer_group){dl_transformer_expert_ranks(s), 1};
        return (struct dl_transformer_group){s->ep, inner * (pipeline_inside ? s->pp : 1)};
    case DL_AXIS_PP:
        return (struct dl_transformer_group){s->pp, inner * (pipeline_inside ? 1 : data)};
    default: /* all that hold a parameter; sequence ranks alone are neighbours in either mapping */
        return (struct dl_transformer_group){
            chains * data * s->sp, s->tp * (pipeline_inside && data > 1 ? s->pp / chains : 1)};
    }
}

/* Ranks that hold the same experts; with sequence ranks too their stride is that of the data ranks.
 */
static struct dl_transformer_group expert_group(const struct dl_transformer_split *s) {
    const int64_t chains = dl_transformer_chains(s), copies = chains * s->dp,
                  stages = s->mapping == DL_MAP_PIPELINE_INSIDE && s->dp > 1 ? s->pp / chains : 1;
    if (s->ep_within_tp_cp > 0)
        return (struct dl_transformer_group){dl_transformer_expert_replicas(s),
                                             dl_transformer_expert_ranks(s)};
    return (struct dl_transformer_group){copies * s->sp,
                                         copies > 1 ? s->tp * s->ep * stages : s->tp};
}

enum dl_code dl_transformer_collective(const struct dl_transformer *tf,
                                       const struct dl_transformer_split *split,
                                       struct dl_transformer_group group, enum dl_collective_op op,
                                       double bytes, struct dl_collective_time *out,
                                       struct dl_err *err) {
    const int64_t each = split->devices_per_node;
    memset(out, 0, sizeof *out);
    if (group.ranks <= 1) return DL_OK;
    struct dl_collective_request request = {.op = op, .library = tf->library, .bytes = bytes};
    if (op == DL_COLL_P2P) { /* neighbours; the pair that crosses a node is the slowest */
        dl_collective_neighbours(tf->system, split->nodes, each, group.ranks, group.stride,
                                 &request);
    } else {
        request.nodes = split->nodes;
        request.ranks_per_node = each;
        request.group_size = group.ranks;
        request.group_stride = group.stride;
        request.concurrent = split->nodes * each / group.ranks;
    }
    DL_TRY(dl_collective_time(tf->system, &request, out, err));
    if (op != DL_COLL_P2P) out->host_s = dl_transformer_check_s(tf, split, (double)group.ranks);
    return DL_OK;
}

static double gradient_width(const struct dl_transformer *tf) {
    return dl_framework_gradient_width(tf->framework, tf->precision).sent_bytes;
}

/* Bytes of a parameter element, as gathered. One scale for a tensor can be agreed on before its
 * shards are cast; formats with a scale for each block are cast after, along both dimensions. */
static double gather_width(const struct dl_transformer *tf) {
    return tf->precision == DL_FP8 ? tf->framework->transformer.fp8_gather_bytes
                                   : dl_precision_bytes(tf->precision);
}

double dl_transformer_rank_elements(const struct dl_transformer_elements *all,
                                    const struct dl_transformer_split *s) {
    return all->split_elements / (double)s->tp + all->whole_elements +
           all->expert_elements / expert_parts(s);
}

static double part_elements(const struct dl_transformer *tf, const struct dl_transformer_split *s,
                            enum dl_transformer_part part) {
    const struct dl_transformer_elements trained = {
        tf->split_elements[part], tf->whole_elements[part], tf->expert_elements[part]};
    return dl_transformer_rank_elements(&trained, s);
}

/* F-FROZEN: elements of a part that are not trained, in what ZeRO stage 3 gathers. */
static double frozen_elements(const struct dl_transformer *tf,
                              const struct dl_transformer_mapping *l,
                              enum dl_transformer_part part) {
    return l->shard >= 3 ? dl_transformer_rank_elements(&tf->frozen[part], &l->split) : 0;
}

/* Whether the head has a copy of the embedding that is on another device. */
static bool copies_tied(const struct dl_transformer *tf, const struct dl_transformer_split *s) {
    return s->pp > 1 && s->placing == DL_PLACED_IN_TURN && tf->tied_elements > 0;
}

static void count_parameters(const struct dl_transformer *tf, struct dl_transformer_mapping *out) {
    const struct dl_transformer_split *s = &out->split;
    const double chains = dl_transformer_chains(s);
    dl_transformer_place_layers(tf, (double)s->pp, out);
    for (int i = 0; i < DL_TRANSFORMER_PARTS; i++)
        out->unit_elements[i] = part_elements(tf, s, (enum dl_transformer_part)i);
    out->experts.replicas = (double)dl_transformer_expert_replicas(s);
    if (dl_transformer_expert_ranks(s) > 1)
        out->experts.parameters =
            chains * out->stage_layers * tf->expert_elements[DL_TRANSFORMER_BODY] / expert_parts(s);
    const double body = out->experts.parameters,
                 after = body > 0
                             ? chains * tf->expert_elements[DL_TRANSFORMER_AFTER] / expert_parts(s)
                             : 0;
    for (int kind = 0; kind < DL_TRANSFORMER_STAGE_KINDS; kind++) {
        double times[DL_TRANSFORMER_PARTS];
        dl_transformer_kind_times(out, (enum dl_transformer_stage_kind)kind, times);
        for (int p = 0; p < DL_TRANSFORMER_PARTS; p++)
            out->parameters[kind] += chains * times[p] * out->unit_elements[p];
        if (kind == DL_TRANSFORMER_LAST && copies_tied(tf, s))
            out->parameters[kind] += tf->tied_elements / (double)s->tp;
        out->expert_parameters[kind] = body + times[DL_TRANSFORMER_AFTER] * after;
        if ((kind == DL_TRANSFORMER_BETWEEN && s->pp <= 2) ||
            out->parameters[kind] <= out->most_parameters)
            continue;
        out->most_parameters = out->parameters[kind];
        if (out->shard < 3) out->experts.parameters = out->expert_parameters[kind];
    }
}

/* Optimizer: a stream over what this rank updates, and one latency for each of its kernels.
 * F-UPDATE-BYTES */
static void time_update(const struct dl_transformer *tf, double elements, double tensors,
                        struct dl_transformer_mapping *out) {
    const struct dl_device *device = tf->system->device;
    const double words = elements * dl_update_bytes_per_parameter(tf->optimizer, tf->precision) / 4;
    const double scale = tf->compute_scale > 0 ? tf->compute_scale : 1;
    const double launches = tf->framework->kernels.update_launches_per_tensor * tensors;
    const struct dl_kernel kernel = dl_kernel_stream(DL_UPDATE, 2 * elements, words / 2, words / 2);
    struct dl_kernel_time t;
    dl_kernel_time(device, DL_FP32, &kernel, &t);
    double extra_s = 0;
    if (dl_known(device->kernel_latency_s) && launches > 1)
        extra_s = fmax(0, launches * device->kernel_latency_s - t.time_s);
    out->update_s = scale * (t.time_s + extra_s);
    out->update_by_limit_s[t.limit] += scale * t.time_s;
    out->update_by_limit_s[DL_LIMIT_LATENCY] += scale * extra_s;
    out->update_error_s = scale * t.time_s * t.sigma_log;
}

static double known_or_zero(double value) { return dl_known(value) ? value : 0; }

/* Of p parameters, some of them of experts, those whose states a rank holds. */
static double sharded_elements(const struct dl_transformer_mapping *mapping, double p,
                               double experts) {
    return (p - experts) / mapping->shard_ranks + experts / mapping->experts.replicas;
}

static void hold_states(const struct dl_transformer *tf, struct dl_transformer_mapping *out) {
    const struct dl_framework *framework = tf->framework;
    const double n = out->replicas,
                 weight = dl_memory_weight_bytes(tf->precision, tf->input.master_weights);
    const double used = fmin(weight, dl_precision_bytes(tf->precision)), master = weight - used;
    const bool cast = out->shard >= 3 && framework->transformer.casts_gathered && master > 0;
    const double copy = cast ? 0 : used;
    const double unit = (part_elements(tf, &out->split, DL_TRANSFORMER_BODY) +
                         frozen_elements(tf, out, DL_TRANSFORMER_BODY)) *
                        used,
                 head = (part_elements(tf, &out->split, DL_TRANSFORMER_AFTER) +
                         frozen_elements(tf, out, DL_TRANSFORMER_AFTER)) *
                        used;
    for (int i = 0; i < DL_TRANSFORMER_STAGE_KINDS; i++) {
        struct dl_memory *m = &out->states[i];
        const double p = out->parameters[i],
                     mine = sharded_elements(out, p, out->expert_parameters[i]),
                     width = dl_framework_gradient_width(framework, tf->precision).kept_bytes,
                     gradients = p * width;
        memset(m, 0, sizeof *m);
        m->weights_bytes =
            (out->shard >= 3 ? mine : p) * copy + (out->shard >= 1 ? mine : p) * master;
        m->weights_bytes +=
            dl_transformer_frozen_elements(tf, out, (enum dl_transformer_stage_kind)i) /
            (out->shard >= 3 ? out->shard_ranks : 1) *
            (cast ? master : fmin(used, dl_precision_operand_bytes(tf->precision)));
        m->gradients_bytes = out->shard >= 2 ? mine * width : gradients;
        m->optimizer_bytes =
            (out->shard >= 1 ? mine : p) * dl_memory_optimizer_bytes(tf->optimizer);
        if (n > 1) {
            const struct dl_sync_buffer buffer = dl_gradient_sync_buffer(framework, gradients);
            /* concatenated gradients are computed in place */
            if (dl_known(buffer.unit_bytes))
                m->buffers_bytes =
                    out->shard > 0 ? fmin(buffer.unit_bytes, buffer.bytes) : buffer.bytes;
            /* gathered parameters of the layer at work and of the next, or of the head and the last
             * layer */
            if (out->shard >= 3) m->buffers_bytes += unit + fmax(unit, head);
            if (framework->transformer.half_gradients)
                m->buffers_bytes = p * dl_precision_bytes(tf->precision);
        }
        m->workspace_bytes = dl_known(tf->system->device->workspace_bytes)
                                 ? tf->system->device->workspace_bytes
                                 : dl_blas_workspace_bytes(tf->system->device, framework);
        m->context_bytes = known_or_zero(tf->system->device->context_bytes);
        m->capacity_bytes = tf->system->device->memory_bytes;
    }
}

static void add_time(struct dl_collective_time *to, const struct dl_collective_time *from) {
    struct dl_collective_time sum = from->time_s > to->time_s ? *from : *to;
    sum.time_s = to->time_s + from->time_s;
    sum.latency_s = to->latency_s + from->latency_s;
    sum.bandwidth_s = to->bandwidth_s + from->bandwidth_s;
    sum.extrapolated = to->extrapolated || from->extrapolated;
    *to = sum;
}

static void repeat(struct dl_collective_time *time, double times) {
    time->time_s *= times, time->latency_s *= times, time->bandwidth_s *= times;
}

/* F-TRANSFORMER-HYBRID: gradients summed over all data ranks so that each has its share; parameters
 * gathered from those that share them out. *between: the part between such groups. */
static enum dl_code sum_gradients(const struct dl_transformer *tf,
                                  const struct dl_transformer_mapping *l, double bytes,
                                  struct dl_collective_time *out,
                                  struct dl_collective_time *between, struct dl_err *err) {
    struct dl_transformer_group group = dl_transformer_group_of(&l->split, DL_AXIS_DP);
    memset(between, 0, sizeof *between);
    const int64_t shares = (int64_t)l->shard_ranks, copies = group.ranks / shares;
    const bool whole = l->shard == 0 ||
                       (l->shard == 1 && tf->framework->transformer.zero1_all_reduce && !l->bound);
    if (whole && l->bound)
        return dl_transformer_bound_reduce(tf, &l->split, group, bytes, out, err);
    if (whole)
        return dl_transformer_collective(tf, &l->split, group, DL_COLL_ALL_REDUCE, bytes, out, err);
    group.ranks = shares;
    if (l->bound)
        DL_TRY(dl_transformer_bound_half(tf, &l->split, group, DL_COLL_REDUCE_SCATTER, bytes,
                                         l->most_parameters * gradient_width(tf), out, err));
    else
        DL_TRY(dl_transformer_collective(tf, &l->split, group, DL_COLL_REDUCE_SCATTER, bytes, out,
                                         err));
    if (copies <= 1) return DL_OK;
    const struct dl_transformer_group across = {copies, group.stride * shares};
    if (l->bound)
        DL_TRY(dl_transformer_bound_reduce(tf, &l->split, across, bytes / (double)shares, between,
                                           err));
    else
        DL_TRY(dl_transformer_collective(tf, &l->split, across, DL_COLL_ALL_REDUCE,
                                         bytes / (double)shares, between, err));
    add_time(out, between);
    return DL_OK;
}

static enum dl_code gather_parameters(const struct dl_transformer *tf,
                                      const struct dl_transformer_mapping *l, double bytes,
                                      struct dl_collective_time *out, struct dl_err *err) {
    struct dl_transformer_group group = dl_transformer_group_of(&l->split, DL_AXIS_DP);
    group.ranks = (int64_t)l->shard_ranks;
    if (l->bound)
        return dl_transformer_bound_half(tf, &l->split, group, DL_COLL_ALL_GATHER, bytes,
                                         l->most_parameters * gather_width(tf), out, err);
    return dl_transformer_collective(tf, &l->split, group, DL_COLL_ALL_GATHER, bytes, out, err);
}

/* Synchronizes the experts' parameters after all others. */
static enum dl_code time_expert_sync(const struct dl_transformer *tf,
                                     struct dl_transformer_mapping *out, double width,
                                     struct dl_err *err) {
    const struct dl_transformer_split *s = &out->split;
    const struct dl_transformer_group group = expert_group(s);
    const double layers = dl_transformer_chains(s) * out->stage_layers,
                 elements = out->experts.parameters / (out->shard >= 3 ? layers : 1);
    struct dl_collective_time reduce, gather = {0};
    if (!(elements > 0)) return DL_OK;
    DL_TRY(dl_transformer_collective(tf, s, group,
                                     out->shard > 0 ? DL_COLL_REDUCE_SCATTER : DL_COLL_ALL_REDUCE,
                                     elements * gradient_width(tf), &reduce, err));
    if (out->shard > 0)
        DL_TRY(dl_transformer_collective(tf, s, group, DL_COLL_ALL_GATHER, elements * width,
                                         &gather, err));
    add_time(out->shard >= 3 ? &out->unit_reduce : &out->reduce, &reduce);
    add_time(out->shard >= 3 ? &out->unit_gather : &out->gather, &gather);
    if (out->shard >= 3) return DL_OK;
    out->experts.reduce = reduce;
    out->experts.gather = gather;
    out->gradient_bytes += elements * gradient_width(tf);
    out->gather_bytes += elements * width;
    out->experts.gradient_bytes = elements * gradient_width(tf);
    out->experts.gather_bytes = elements * width;
    return DL_OK;
}

/* F-TRANSFORMER-DATA: gradients of the fullest stage, all-reduced, or reduce-scattered with the
 * parameters gathered afterwards. */
static enum dl_code time_sync(const struct dl_transformer *tf, struct dl_transformer_mapping *out,
                              struct dl_err *err) {
    const struct dl_transformer_split *s = &out->split;
    const double width = gather_width(tf), layers = dl_transformer_chains(s) * out->stage_layers,
                 body =
                     part_elements(tf, s, DL_TRANSFORMER_BODY) - out->experts.parameters / layers;
    double elements = out->most_parameters - out->experts.parameters;
    if (out->shard >= 3) {
        out->unit_gradient_bytes = body * gradient_width(tf);
        out->unit_gather_bytes = (body + frozen_elements(tf, out, DL_TRANSFORMER_BODY)) * width;
        DL_TRY(gather_parameters(tf, out, out->unit_gather_bytes, &out->unit_gather, err));
        DL_TRY(sum_gradients(tf, out, body * gradient_width(tf), &out->unit_reduce,
                             &out->unit_across, err));
        elements -= layers * body; /* the embedding and the head go by themselves */
    }
    out->gradient_bytes = elements * gradient_width(tf);
    out->gather_bytes = (elements + frozen_elements(tf, out, DL_TRANSFORMER_BEFORE) +
                         frozen_elements(tf, out, DL_TRANSFORMER_AFTER)) *
                        width;
    if (elements > 0) {
        struct dl_collective_time across;
        const double calls = dl_transformer_gradient_calls(tf, out);
        DL_TRY(sum_gradients(tf, out, out->gradient_bytes / calls, &out->reduce, &across, err));
        repeat(&out->reduce, calls);
    }
    if (out->shard > 0 && out->gather_bytes > 0)
        DL_TRY(gather_parameters(tf, out, out->gather_bytes, &out->gather, err));
    DL_TRY(time_expert_sync(tf, out, width, err));
    if (copies_tied(tf, s)) {
        const struct dl_transformer_group pipe = dl_transformer_group_of(s, DL_AXIS_PP),
                                          ends = {2, pipe.stride * (s->pp - 1)};
        DL_TRY(dl_transformer_collective(tf, s, ends, DL_COLL_ALL_REDUCE,
                                         tf->tied_elements / (double)s->tp * gradient_width(tf),
                                         &out->tied, err));
    }
    const struct dl_collective_time *all[] = {&out->reduce, &out->gather, &out->unit_gather,
                                              &out->unit_reduce, &out->tied};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i]->extrapolated) out->extrapolated = true;
    return DL_OK;
}

/* F-TRANSFORMER-CONTENTION of the collectives that run next to backward. */
static double data_contention(const struct dl_transformer *tf,
                              const struct dl_transformer_mapping *mapping) {
    const struct dl_collective_time *all[] = {&mapping->reduce, &mapping->gather,
                                              &mapping->unit_gather, &mapping->unit_reduce};
    double most = 0;
    for (int i = 0; i < 4; i++) most = fmax(most, dl_transformer_contention(tf, all[i]));
    return most;
}

/* F-TRANSFORMER-SHARD: copies of one body layer between the buffers of collectives and tensors. */
static void time_copies(const struct dl_transformer *tf, struct dl_transformer_mapping *out) {
    const struct dl_transformer_policy *policy = &tf->framework->transformer;
    const double elements = part_elements(tf, &out->split, DL_TRANSFORMER_BODY);
    struct dl_kernel_time t;
    if (policy->copies_gathered && out->replicas > 1) {
        const double gathered = elements + frozen_elements(tf, out, DL_TRANSFORMER_BODY);
        const struct dl_kernel copy = dl_kernel_stream(DL_UPDATE, 0, gathered, gathered);
        dl_kernel_time(tf->system->device, DL_BF16, &copy, &t);
        out->copy_out_s = dl_known(t.time_s) ? t.time_s : 0;
    }
    if (policy->copies_gradients && out->replicas > 1) {
        struct dl_kernel copy = dl_kernel_stream(DL_UPDATE, 0, elements, 0);
        copy.extra_bytes = elements * gradient_width(tf);
        dl_kernel_time(tf->system->device, DL_BF16, &copy, &t);
        out->copy_in_s = dl_known(t.time_s) ? t.time_s : 0;
    }
}

/* F-TRANSFORMER-ACCUMULATE */
static void time_accumulation(const struct dl_transformer *tf, struct dl_transformer_mapping *out) {
    const double bytes = tf->framework->transformer.accumulate_bytes,
                 elements = part_elements(tf, &out->split, DL_TRANSFORMER_BODY);
    struct dl_kernel kernel = dl_kernel_stream(DL_UPDATE, elements, 0, 0);
    struct dl_kernel_time t;
    if (!(bytes > 0) || tf->precision < DL_BF16 || out->bound) return;
    kernel.extra_bytes = bytes * elements;
    dl_kernel_time(tf->system->device, DL_FP32, &kernel, &t);
    out->accumulate_s = dl_known(t.time_s) ? t.time_s : 0;
}

enum dl_code dl_transformer_mapping_make(const struct dl_transformer *tf,
                                         const struct dl_transformer_split *split, int shard,
                                         struct dl_transformer_mapping *out, struct dl_err *err) {
    memset(out, 0, sizeof *out);
    out->split = *split;
    out->asked_shard = shard;
    if (shard == 3 && split->pp > 1 && tf->framework->transformer.no_reshard_with_pipeline)
        shard = 1;
    out->shard = shard;
    out->replicas = (double)(dl_transformer_chains(split) * split->dp * split->ep * split->sp);
    out->shard_ranks = split->shard_group > 0 && shard > 0
                           ? fmin((double)split->shard_group, out->replicas)
                           : out->replicas;
    count_parameters(tf, out);
    const struct dl_framework_behaviour *behaviour = tf->framework->behaviour;
    out->bound = behaviour != NULL && behaviour->is_bound;
    /* what comes before the layers, or the last of the most pieces that others send */
    out->last_frac = fmin(part_elements(tf, split, DL_TRANSFORMER_BEFORE) / out->parameters[0],
                          1 / (out->stage_layers + 2));
    DL_TRY(time_sync(tf, out, err));
    out->buckets = dl_transformer_bucket_count(tf, out);
    const double fullest = out->most_parameters;
    const double tensors =
        tf->tensor_count[DL_TRANSFORMER_BEFORE] + tf->tensor_count[DL_TRANSFORMER_AFTER] +
        dl_transformer_chains(split) * out->stage_layers * tf->tensor_count[DL_TRANSFORMER_BODY];
    out->updated_elements =
        shard > 0 ? sharded_elements(out, fullest, out->experts.parameters) : fullest;
    time_update(tf, out->updated_elements, tensors, out);
    struct dl_plan plan = tf->input;
    plan.nodes = split->nodes;
    plan.devices_per_node = split->devices_per_node;
    plan.batch_per_device_samples =
        plan.global_batch_samples / (double)(split->nodes * split->devices_per_node);
    out->straggler_frac = dl_straggler_frac(tf->system, tf->framework, &plan);
    out->slowdown_frac =
        fmax(dl_replica_slowdown_frac(tf->system, tf->framework, &plan), data_contention(tf, out));
    if (shard >= 3) time_copies(tf, out);
    time_accumulation(tf, out);
    out->input = dl_input_compute(tf->system, tf->workload, tf->framework, &plan);
    hold_states(tf, out);
    dl_transformer_offload_states(tf, out);
    return DL_OK;
}

enum dl_code dl_transformer_boundary(const struct dl_transformer *tf,
                                     const struct dl_transformer_mapping *mapping,
                                     const struct dl_transformer_micro_batch *micro_batch,
                                     struct dl_collective_time *out, struct dl_err *err) {
    const struct dl_transformer_split *s = &mapping->split;
    DL_TRY(dl_transformer_collective(tf, s, dl_transformer_group_of(s, DL_AXIS_PP), DL_COLL_P2P,
                                     micro_batch->boundary_bytes, out, err));
    out->time_s += s->pp > 1 ? tf->framework->transformer.p2p_host_s : 0;
    out->latency_s += s->pp > 1 ? tf->framework->transformer.p2p_host_s : 0;
    if (s->pp <= 1 || s->tp <= 1 || micro_batch->split.sequence_parallel ||
        tf->framework->transformer.whole_boundaries)
        return DL_OK;
    /* every rank sends its share; the receivers put them together */
    struct dl_collective_time gather;
    DL_TRY(dl_transformer_collective(tf, s, dl_transformer_group_of(s, DL_AXIS_TP),
                                     DL_COLL_ALL_GATHER, micro_batch->collective_bytes, &gather,
                                     err));
    out->time_s += gather.time_s;
    out->latency_s += gather.latency_s;
    out->bandwidth_s += gather.bandwidth_s;
    return DL_OK;
}
