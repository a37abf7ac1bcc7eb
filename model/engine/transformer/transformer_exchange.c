/* transformer_exchange.c - the collectives inside the layers of a transformer, and what hides them.
 *
 * F-TRANSFORMER-TENSOR: with tensor parallelism t, a micro-batch of b samples and m = b s h
 * bytes(element): one all-reduce of m forward for each layer split by rows, one backward for each
 * input of layers split by columns. Sequence parallelism makes all-gather + reduce-scatter of each,
 * the same bytes. Experts exchange the rows that were routed to them instead: k times that.
 *
 * F-TRANSFORMER-TENSOR-OVERLAP: by the framework's policy, backward of a layer split by columns
 * reduces (or reduce-scatters) the gradient of its input behind the GEMM of its weight's gradient,
 * and with sequence parallelism gathers its input a second time behind the GEMM of that gradient.
 * In pieces, forward too: t - 1 of t pieces of a gathered input arrive behind the GEMMs of those
 * before, and 3 of 4 pieces of a reduce-scatter leave behind the next (Transformer Engine's ring
 * exchange and its pipeline of 4). GEMM and collective are tasks on two lanes that share the
 * multiprocessors (F-TRANSFORMER-CONTENTION, F-SLOWDOWN).
 *
 * F-TRANSFORMER-EXPERT: with e expert ranks each layer's tokens go to their experts and back: 2
 * all-to-all forward and 2 backward of b s h k c bytes(element), of which a rank sends (e-1)/e; k
 * experts for each token, capacity factor c or the imbalance that F-TRANSFORMER-IMBALANCE says: the
 * fullest rank receives, computes and keeps so many times the mean, and the others wait for it.
 * With the all-gather dispatcher all tokens of e ranks instead. Once per node: of E experts on n
 * nodes a token's k lie on n (1 - prod_{i<k} (E - E/n - i)/(E - i)) of them on average, when all
 * are equally likely; so many copies cross the network, and those for the ranks (e in place of n)
 * go from there inside the node, at the same time: the longer of both.
 *
 * F-TRANSFORMER-CONTEXT: with context parallelism c, keys and values go around a ring: c - 1
 * messages of 2 b (s/c) h_kv / t elements forward, twice that backward; hidden behind the attention
 * of one share each. Or an all-gather before attention, a second one and a reduce-scatter of their
 * gradients backward, exposed.
 *
 * F-TRANSFORMER-CONTENTION: a collective in C channels occupies C of a device's M multiprocessors:
 * compute next to it loses C/M of the time that both take.
 */
#include <math.h>

#include "model/engine/strategies/strategy.h"
#include "model/engine/transformer/micro_batch_builder.h"
#include "model/workload/layer.h"
#include "model/network/path.h"

double dl_transformer_contention(const struct dl_transformer *tf,
                                 const struct dl_collective_time *collective) {
    const struct dl_framework_behaviour *behaviour = tf->framework->behaviour;
    const double units = (double)tf->system->device->unit_count;
    if (behaviour != NULL && behaviour->is_bound) return 0;
    if (!dl_known(units) || !(units > 0) || !(collective->channels > 0)) return 0;
    return fmin(0.5, collective->channels / units);
}

/* Megatron-Core gives DeepEP 20 multiprocessors and HybridEP 16 (megatron-dispatchers). */
double dl_transformer_exchange_contention(const struct dl_transformer *tf,
                                          const struct dl_collective_time *exchange) {
    const struct dl_transformer_policy *policy = &tf->framework->transformer;
    const double units = (double)tf->system->device->unit_count;
    if (policy->experts.exchange != DL_EXPERT_ONCE || !dl_known(units) || !(units > 0))
        return dl_transformer_contention(tf, exchange);
    return fmin(0.5, (policy->experts.rows == DL_ROWS_DIRECT ? 16 : 20) / units);
}

static void add_comm(const struct dl_collective_time *t, double times, double sent_bytes,
                     struct dl_transformer_pass *pass) {
    pass->comm_s += times * t->time_s;
    pass->comm.s[DL_ON_LATENCY] += times * t->latency_s;
    pass->comm.s[dl_resource_of_link(t->limit)] += times * (t->time_s - t->latency_s);
    pass->comm_error_s += times * t->time_s * t->sigma_log;
    pass->comm_bytes += times * sent_bytes;
    pass->collective_count += times;
    pass->check_s += times * t->host_s;
}

struct dl_transformer_overlap dl_transformer_overlap_of(double message_s, double kernels_s,
                                                        double contention) {
    enum { COMPUTE, GROUP, LANES };
    const struct dl_instant begin = {0, DL_BEGIN};
    struct dl_instant lanes[LANES];
    struct dl_task room[LANES];
    struct dl_run run;
    dl_run_begin_in(&run, lanes, LANES, room, LANES, NULL);
    dl_run_share(&run, GROUP, COMPUTE, contention, DL_NONE);
    const double sent_s = dl_run_add(&run, GROUP, begin, message_s, DL_TASK_MESSAGE, NULL).s,
                 done_s = dl_run_add(&run, COMPUTE, begin, kernels_s, DL_TASK_KERNELS, NULL).s,
                 exposed_s = fmax(0, sent_s - done_s), lost_s = done_s - kernels_s;
    return (struct dl_transformer_overlap){exposed_s, lost_s, exposed_s > 0 ? sent_s : lost_s};
}

void dl_transformer_hide(const struct dl_collective_time *t, double times, double all_s,
                         const struct dl_transformer_overlap *o, struct dl_transformer_pass *pass) {
    const double shown = times * (o->exposed_s / all_s - 1),
                 critical = times * (o->path_s / all_s - 1),
                 lost_s = times * t->time_s * o->lost_s / all_s;
    pass->comm_s += shown * t->time_s;
    pass->comm.s[DL_ON_LATENCY] += critical * t->latency_s;
    pass->comm.s[dl_resource_of_link(t->limit)] += critical * (t->time_s - t->latency_s);
    pass->comm_error_s += shown * t->time_s * t->sigma_log;
    pass->device_s += lost_s;
    pass->by_limit_s[DL_LIMIT_COMPUTE] += lost_s;
}

/* `times` collectives, each while kernels run for behind_s. */
static void add_hidden(const struct dl_micro_batch_builder *m, const struct dl_collective_time *t,
                       double times, double behind_s, double sent_bytes,
                       struct dl_transformer_pass *pass) {
    if (!(t->time_s > 0)) return;
    add_comm(t, times, sent_bytes, pass);
    if (m->tf->input.blocking_launches || !(behind_s > 0)) return; /* F-HOST-BLOCKING */
    const struct dl_transformer_overlap o =
        dl_transformer_overlap_of(t->time_s, behind_s, dl_transformer_contention(m->tf, t));
    dl_transformer_hide(t, times, t->time_s, &o, pass);
}

/* A layer split by columns: its input comes, the gradient of it goes. */
static void add_columns(const struct dl_micro_batch_builder *m, double half_bytes,
                        struct dl_transformer_layer_passes *p) {
    const struct dl_transformer_micro_batch *b = m->micro_batch;
    const int overlap = m->tf->framework->transformer.tensor_overlap;
    const double ranks = (double)m->split->tp;
    const double forward_s = p->forward.device_s, data_s = p->data.device_s,
                 weights_s = overlap == DL_TENSOR_EXPOSED ? 0 : p->weights.device_s;
    if (!m->split->sequence_parallel) {
        add_hidden(m, &b->reduce, 1, weights_s, 2 * half_bytes, &p->data);
        return;
    }
    add_hidden(m, &b->gather, 1, overlap == DL_TENSOR_PIECES ? forward_s * (ranks - 1) / ranks : 0,
               half_bytes, &p->forward);
    if (overlap != DL_TENSOR_EXPOSED) add_hidden(m, &b->gather, 1, data_s, half_bytes, &p->data);
    add_hidden(m, &b->scatter, 1, weights_s, half_bytes, &p->data);
}

/* A layer split by rows: its output is summed, the gradient of it comes. */
static void add_rows(const struct dl_micro_batch_builder *m, const struct dl_transformer_layer *l,
                     double half_bytes, struct dl_transformer_layer_passes *p) {
    enum { PIECES = 4 };
    const struct dl_transformer_micro_batch *b = m->micro_batch;
    const bool pieces = m->tf->framework->transformer.tensor_overlap == DL_TENSOR_PIECES &&
                        l->role == DL_TRANSFORMER_ROW;
    const double ranks = (double)m->split->tp, forward_s = p->forward.device_s,
                 data_s = p->data.device_s,
                 hidden = pieces ? (PIECES - 1.0) / PIECES : 0; /* all but the last piece */
    if (!m->split->sequence_parallel) {
        add_comm(&b->reduce, 1, 2 * half_bytes, &p->forward);
        return;
    }
    add_hidden(m, &b->scatter, hidden, forward_s, hidden * half_bytes, &p->forward);
    add_hidden(m, &b->scatter, 1 - hidden, 0, (1 - hidden) * half_bytes, &p->forward);
    add_hidden(m, &b->gather, 1, pieces ? data_s * (ranks - 1) / ranks : 0, half_bytes, &p->data);
}

static void add_tensor(const struct dl_micro_batch_builder *m, const struct dl_transformer_layer *l,
                       struct dl_transformer_layer_passes *p) {
    const struct dl_transformer_micro_batch *b = m->micro_batch;
    const double ranks = (double)m->split->tp, share = (ranks - 1) / ranks,
                 half = share * b->collective_bytes, routed = share * b->expert_bytes;
    if (m->split->tp <= 1) return;
    if (l->role == DL_TRANSFORMER_ROW || l->role == DL_TRANSFORMER_VOCABULARY)
        add_rows(m, l, half, p);
    if (l->gathers) add_columns(m, half, p);
    if (l->role != DL_TRANSFORMER_EXPERTS || m->split->ep_within_tp_cp > 0) return;
    if (!m->split->sequence_parallel) {
        add_comm(&b->reduce, 1, 2 * half, &p->forward);
        add_comm(&b->reduce, 1, 2 * half, &p->data);
        return;
    }
    struct dl_transformer_pass *passes[] = {&p->forward, &p->data};
    for (int i = 0; i < 2; i++) {
        add_comm(&b->expert_gather, 1, routed, passes[i]);
        add_comm(&b->expert_scatter, 1, routed, passes[i]);
    }
}

/* Tokens to their experts and back, forward; gradients the same ways, backward. */
static void add_experts(const struct dl_micro_batch_builder *m,
                        const struct dl_transformer_layer *l,
                        struct dl_transformer_layer_passes *p) {
    const struct dl_transformer_micro_batch *b = m->micro_batch;
    const double ranks = (double)dl_transformer_expert_ranks(m->split),
                 sent_bytes = b->route_bytes * (ranks - 1) / ranks;
    if (l->role != DL_TRANSFORMER_EXPERTS || ranks <= 1) return;
    struct dl_transformer_pass *passes[] = {&p->forward, &p->data};
    for (int i = 0; i < 2; i++) {
        add_comm(&b->route, 1, sent_bytes, passes[i]);
        add_comm(b->route_back.time_s > 0 ? &b->route_back : &b->route, 1, sent_bytes, passes[i]);
    }
}

static void add_context(const struct dl_micro_batch_builder *m,
                        struct dl_transformer_layer_passes *p) {
    const double ranks = (double)m->split->sp, steps = ranks - 1;
    struct dl_transformer_pass *const passes[] = {&p->forward, &p->data};
    if (steps <= 0) return;
    for (int i = 0;
         i < 2 && m->tf->framework->transformer.context_exchange == DL_CONTEXT_ALL_TO_ALL; i++) {
        add_comm(&m->queries, 2, 0, passes[i]);
        add_comm(&m->keys, 2, 0, passes[i]);
    }
    if (m->tf->framework->transformer.context_exchange == DL_CONTEXT_ALL_TO_ALL) return;
    if (m->tf->framework->transformer.context_exchange == DL_CONTEXT_GATHER) {
        add_comm(&m->keys, 1, 0, &p->forward);
        add_comm(&m->keys, 1, 0, &p->data);
        add_comm(&m->key_gradients, 1, 0, &p->data);
        return;
    }
    const double forward_s = p->forward.device_s / ranks, back_s = p->data.device_s / ranks;
    add_hidden(m, &m->ring, steps, forward_s, 0, &p->forward);
    add_hidden(m, &m->ring, 2 * steps, back_s / 2, 0, &p->data);
}

/* F-STATE-SPLIT: from a share of the tokens to a share of the heads, and back. */
static void add_state(const struct dl_micro_batch_builder *m,
                      struct dl_transformer_layer_passes *p) {
    if (m->split->sp <= 1) return;
    add_comm(&m->state_in, 1, 0, &p->forward);
    add_comm(&m->state_out, 1, 0, &p->forward);
    add_comm(&m->state_in, 1, 0, &p->data);
    add_comm(&m->state_out, 1, 0, &p->data);
}

void dl_transformer_add_exchanges(const struct dl_micro_batch_builder *m,
                                  const struct dl_transformer_layer *l,
                                  struct dl_transformer_layer_passes *passes) {
    add_tensor(m, l, passes);
    add_experts(m, l, passes);
    const enum dl_mixing mixing = m->tf->workload->layers[l->index].kind->mixing;
    if (mixing == DL_MIXES_BY_ATTENTION) add_context(m, passes);
    if (mixing == DL_MIXES_BY_STATE) add_state(m, passes);
}

static enum dl_code make_tensor(struct dl_micro_batch_builder *m, struct dl_err *err) {
    const struct dl_transformer *tf = m->tf;
    const struct dl_transformer_split *split = m->split;
    struct dl_transformer_micro_batch *b = m->micro_batch;
    const struct dl_transformer_group tensor = dl_transformer_group_of(split, DL_AXIS_TP);
    if (!split->sequence_parallel)
        return dl_transformer_collective(tf, split, tensor, DL_COLL_ALL_REDUCE, b->collective_bytes,
                                         &b->reduce, err);
    DL_TRY(dl_transformer_collective(tf, split, tensor, DL_COLL_ALL_GATHER, b->collective_bytes,
                                     &b->gather, err));
    DL_TRY(dl_transformer_collective(tf, split, tensor, DL_COLL_REDUCE_SCATTER, b->collective_bytes,
                                     &b->scatter, err));
    if (!(tf->experts > 0)) return DL_OK;
    DL_TRY(dl_transformer_collective(tf, split, tensor, DL_COLL_ALL_GATHER, b->expert_bytes,
                                     &b->expert_gather, err));
    return dl_transformer_collective(tf, split, tensor, DL_COLL_REDUCE_SCATTER, b->expert_bytes,
                                     &b->expert_scatter, err);
}

static enum dl_code make_context(struct dl_micro_batch_builder *m, double tokens, double width,
                                 struct dl_err *err) {
    const struct dl_transformer *tf = m->tf;
    const struct dl_transformer_group context = dl_transformer_group_of(m->split, DL_AXIS_SP);
    const double kv = tf->kv_channels / (double)m->split->tp,
                 share = 2 * m->micro_samples * tokens * kv * width,
                 all = share * (double)m->split->sp;
    if (tf->state_heads > 0) {
        const double channel_bytes = m->micro_samples * tokens * width / (double)m->split->tp;
        DL_TRY(dl_transformer_collective(tf, m->split, context, DL_COLL_ALL_TO_ALL,
                                         channel_bytes * tf->state_in_channels, &m->state_in, err));
        DL_TRY(dl_transformer_collective(tf, m->split, context, DL_COLL_ALL_TO_ALL,
                                         channel_bytes * tf->state_out_channels, &m->state_out,
                                         err));
    }
    if (tf->framework->transformer.context_exchange == DL_CONTEXT_RING)
        return dl_transformer_collective(tf, m->split, context, DL_COLL_P2P, share, &m->ring, err);
    if (tf->framework->transformer.context_exchange == DL_CONTEXT_ALL_TO_ALL) {
        DL_TRY(dl_transformer_collective(tf, m->split, context, DL_COLL_ALL_TO_ALL,
                                         share / 2 * tf->heads / tf->kv_heads, &m->queries, err));
        return dl_transformer_collective(tf, m->split, context, DL_COLL_ALL_TO_ALL, share / 2,
                                         &m->keys, err);
    }
    DL_TRY(
        dl_transformer_collective(tf, m->split, context, DL_COLL_ALL_GATHER, all, &m->keys, err));
    return dl_transformer_collective(tf, m->split, context, DL_COLL_REDUCE_SCATTER, all,
                                     &m->key_gradients, err);
}

/* Places among n, with E/n experts each, that hold some of the k experts of a token, on average. */
static double places_of(double experts, double chosen, double n) {
    double none = 1; /* the probability that a place holds none of them */
    for (double i = 0; i < chosen; i++) none *= fmax(0, experts - experts / n - i) / (experts - i);
    return n * (1 - none);
}

/* Ranks of a group that share the links inside a node, or inside a domain of several nodes. */
static int64_t ranks_together(const struct dl_transformer *tf,
                              const struct dl_transformer_split *split,
                              struct dl_transformer_group group) {
    const int64_t nodes = dl_path_domain_nodes(tf->system),
                  fit = nodes * split->devices_per_node / group.stride;
    return fit < 1 ? 1 : fit < group.ranks ? fit : group.ranks;
}

static enum dl_code make_once(struct dl_micro_batch_builder *m, struct dl_transformer_group group,
                              double share, struct dl_err *err) {
    const struct dl_transformer *tf = m->tf;
    struct dl_transformer_micro_batch *b = m->micro_batch;
    const struct dl_transformer_group inside = {ranks_together(tf, m->split, group), group.stride};
    const double nodes = ceil((double)group.ranks / (double)inside.ranks),
                 /* of one copy of each token, with what a capacity or imbalance adds */
        copy_bytes =
            b->collective_bytes / share * dl_transformer_rows_per_token(tf, m->split) / tf->top_k;
    struct dl_collective_time across;
    b->route_bytes = copy_bytes * places_of(tf->experts, tf->top_k, (double)group.ranks);
    DL_TRY(dl_transformer_collective(tf, m->split, inside, DL_COLL_ALL_TO_ALL, b->route_bytes,
                                     &b->route, err));
    if (nodes <= 1) return DL_OK;
    DL_TRY(dl_transformer_collective(tf, m->split, group, DL_COLL_ALL_TO_ALL,
                                     copy_bytes * places_of(tf->experts, tf->top_k, nodes), &across,
                                     err));
    if (across.time_s > b->route.time_s) b->route = across;
    return DL_OK;
}

/* F-FW-IDEAL: every token to its experts, or once to each node: what takes less. */
static enum dl_code make_cheapest(struct dl_micro_batch_builder *m,
                                  struct dl_transformer_group group, double share,
                                  struct dl_err *err) {
    struct dl_transformer_micro_batch *b = m->micro_batch;
    const double bytes = b->expert_bytes / share;
    struct dl_collective_time each;
    DL_TRY(
        dl_transformer_collective(m->tf, m->split, group, DL_COLL_ALL_TO_ALL, bytes, &each, err));
    DL_TRY(make_once(m, group, share, err));
    if (b->route.time_s <= each.time_s) return DL_OK;
    b->route = each;
    b->route_bytes = bytes;
    return DL_OK;
}

static enum dl_code make_experts(struct dl_micro_batch_builder *m, struct dl_err *err) {
    const struct dl_transformer *tf = m->tf;
    const struct dl_transformer_split *split = m->split;
    struct dl_transformer_micro_batch *b = m->micro_batch;
    const struct dl_transformer_group group = dl_transformer_group_of(split, DL_AXIS_EP);
    const bool own =
        split->sequence_parallel || split->ep_within_tp_cp > 0; /* tokens of a tensor rank */
    const double share = own ? (double)split->tp : 1,
                 ranks = (double)dl_transformer_expert_ranks(split);
    if (ranks <= 1) return DL_OK;
    if (dl_framework_is_bound(tf->framework)) return make_cheapest(m, group, share, err);
    if (tf->framework->transformer.experts.exchange == DL_EXPERT_ALL_TO_ALL) {
        b->route_bytes = b->expert_bytes / share;
        return dl_transformer_collective(tf, split, group, DL_COLL_ALL_TO_ALL, b->route_bytes,
                                         &b->route, err);
    }
    if (tf->framework->transformer.experts.exchange == DL_EXPERT_ONCE)
        return make_once(m, group, share, err);
    b->route_bytes = b->collective_bytes / share * ranks;
    DL_TRY(dl_transformer_collective(tf, split, group, DL_COLL_ALL_GATHER, b->route_bytes,
                                     &b->route, err));
    return dl_transformer_collective(tf, split, group, DL_COLL_REDUCE_SCATTER, b->route_bytes,
                                     &b->route_back, err);
}

enum dl_code dl_transformer_make_collectives(struct dl_micro_batch_builder *m, struct dl_err *err) {
    const struct dl_transformer *tf = m->tf;
    struct dl_transformer_micro_batch *b = m->micro_batch;
    const double width = dl_precision_bytes(tf->precision),
                 tokens = tf->tokens / (double)m->split->sp;
    b->collective_bytes = m->micro_samples * tokens * tf->hidden * width;
    b->boundary_bytes = b->collective_bytes;
    if (!tf->framework->transformer.whole_boundaries || m->split->sequence_parallel)
        b->boundary_bytes /= (double)m->split->tp;
    b->expert_bytes = b->collective_bytes * dl_transformer_rows_per_token(tf, m->split);
    DL_TRY(make_tensor(m, err));
    DL_TRY(make_context(m, tokens, width, err));
    DL_TRY(make_experts(m, err));
    const struct dl_collective_time *all[] = {
        &b->reduce,        &b->gather,         &b->scatter,  &b->route, &b->route_back,
        &b->expert_gather, &b->expert_scatter, &m->ring,     &m->keys,  &m->key_gradients,
        &m->queries,       &m->state_in,       &m->state_out};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i]->extrapolated) b->extrapolated = true;
    return DL_OK;
}
