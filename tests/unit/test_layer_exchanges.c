/* Collectives inside the layers of a transformer, against an account written here: what each sends
 * in random splits, networks and policies, and what of random times shows in which pass.
 * F-TRANSFORMER-TENSOR, F-TRANSFORMER-TENSOR-OVERLAP, F-TRANSFORMER-EXPERT, F-TRANSFORMER-CONTEXT,
 * F-TRANSFORMER-CONTENTION. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/engine/strategies/strategy.h"
#include "model/engine/transformer/transformer_maker.h"
#include "tests/fake_transformer.h"

static uint64_t seed = 43;

static int upto(int count) { return (int)(check_random(&seed) % (uint64_t)count); }
static bool half(void) { return upto(2) == 0; }
static double some(void) { return 0.1 + check_uniform(&seed); }
static double least(double x, double y) { return x < y ? x : y; }
static double most(double x, double y) { return x > y ? x : y; }

static struct dl_transformer_split random_split(void) {
    struct dl_transformer_split s =
        gpt_split(1 << upto(3), 1 << upto(3), 1 << upto(4), 1 << upto(2), 1 << upto(2));
    s.mapping = half() ? DL_MAP_PIPELINE_INSIDE : DL_MAP_DATA_INSIDE;
    s.sequence_parallel = s.tp > 1 && half();
    if (upto(4) == 0) s.folded = s.tp;
    return s;
}

/* What one group sends, as it is asked for alone. */
static struct dl_collective_time sent(const struct gpt *g, const struct dl_transformer_split *s,
                                      struct dl_transformer_group group, enum dl_collective_op op,
                                      double bytes) {
    struct dl_collective_time t;
    struct dl_err err = {0};
    assert_int_equal(dl_transformer_collective(&g->tf, s, group, op, bytes, &t, &err), DL_OK);
    return t;
}

static void same(const struct dl_collective_time *is, const struct dl_collective_time *expected) {
    check_close(is->time_s, expected->time_s, 1e-12);
    check_close(is->latency_s, expected->latency_s, 1e-12);
    check_close(is->bandwidth_s, expected->bandwidth_s, 1e-12);
}

/* Ways to take k of n, by Pascal's triangle. */
static double ways(int n, int k) {
    double row[65] = {1};
    for (int i = 1; i <= n; i++)
        for (int j = i; j > 0; j--) row[j] += row[j - 1];
    return k > n ? 0 : row[k];
}

/* Of `places` with as many experts each, those that hold some of a token's, on average: a place
 * holds none when all k are among the experts of the others. */
static double reached(int experts, int k, int places) {
    return places * (1 - ways(experts - experts / places, k) / ways(experts, k));
}

struct route {
    struct dl_collective_time there, back;
    double bytes;
};

/* Kept whole: each way to bring tokens to their experts. */
static struct route route_of(const struct gpt *g, const struct dl_transformer_split *s,
                             double token_bytes, double rows) {
    const struct dl_transformer_group group = dl_transformer_group_of(s, DL_AXIS_EP);
    const double own = s->sequence_parallel || s->folded > 0 ? (double)s->tp : 1;
    struct route r = {0};
    if (group.ranks <= 1) return r;
    switch (g->f.framework.transformer.expert_exchange) {
    case DL_EXPERT_ALL_TO_ALL:
        r.bytes = token_bytes * rows / own;
        r.there = sent(g, s, group, DL_COLL_ALL_TO_ALL, r.bytes);
        return r;
    case DL_EXPERT_ONCE: {
        const int64_t joined = g->f.system.intra.domain_nodes, nodes = joined > 1 ? joined : 1;
        const int k = (int)g->tf.chosen_count, experts = (int)g->tf.experts;
        struct dl_transformer_group near = {0, group.stride};
        for (int64_t i = 0; i < group.ranks; i++)
            near.ranks += i * group.stride < nodes * s->devices_per_node;
        const int places = (int)(group.ranks / near.ranks);
        const double copy = token_bytes / own * rows / k;
        r.bytes = copy * reached(experts, k, (int)group.ranks);
        r.there = sent(g, s, near, DL_COLL_ALL_TO_ALL, r.bytes);
        if (places == 1) return r;
        const struct dl_collective_time far =
            sent(g, s, group, DL_COLL_ALL_TO_ALL, copy * reached(experts, k, places));
        if (far.time_s > r.there.time_s) r.there = far;
        return r;
    }
    default:
        r.bytes = token_bytes / own * (double)group.ranks;
        r.there = sent(g, s, group, DL_COLL_ALL_GATHER, r.bytes);
        r.back = sent(g, s, group, DL_COLL_REDUCE_SCATTER, r.bytes);
        return r;
    }
}

/* Kept whole: all messages of one random split. */
static void messages(void **state) {
    (void)state;
    static const enum dl_precision precisions[] = {DL_FP32, DL_MIXED, DL_BF16, DL_FP8};
    static const int exchanges[] = {DL_EXPERT_ALL_TO_ALL, DL_EXPERT_GATHER, DL_EXPERT_ONCE};
    static const struct dl_collective_time none = {0};
    struct gpt g;
    gpt_make(&g, NULL, 0);
    for (int n = 0; n < 3000; n++) {
        const struct dl_transformer_split s = random_split();
        const double samples = 1 + upto(4);
        struct dl_transformer *tf = &g.tf;
        struct dl_transformer_policy *policy = &g.f.framework.transformer;
        tf->precision = precisions[upto(4)];
        const double width = tf->precision == DL_FP32 ? 4 : 2;
        tf->tokens = (double)s.sp * (32 << upto(4)), tf->hidden = 64 << upto(3);
        tf->kv_channels = (double)s.tp * 16;
        tf->experts = upto(4) > 0 || s.ep > 1 || s.folded > 0 ? 32 : 0;
        tf->chosen_count = 1 + upto(4);
        tf->dropless = half(), tf->routed = tf->chosen_count * (tf->dropless ? 1 : 1.25);
        tf->input.expert_imbalance = upto(3) == 0 ? 0 : 0.5 * (1 + upto(6));
        policy->expert_imbalance = half() ? 0.5 : 1.1;
        policy->context_exchange = half() ? DL_CONTEXT_RING : DL_CONTEXT_GATHER;
        policy->expert_exchange = exchanges[upto(3)];
        g.f.system.intra.domain_nodes = upto(3);
        struct dl_transformer_micro_batch b = {0};
        struct dl_transformer_maker m = {
            .tf = tf, .split = &s, .micro_batch = &b, .micro_samples = samples};
        struct dl_err err = {0};
        assert_int_equal(dl_transformer_make_collectives(&m, &err), DL_OK);
        /* the fullest rank's rows / mean: no fewer than the mean, no more than all of them */
        const double ranks = (double)(s.folded > 0 ? s.ep * s.folded : s.ep),
                     given = tf->input.expert_imbalance;
        double fullest = 1;
        if (tf->dropless)
            fullest = given > 0 ? most(1, least(given, ranks)) : most(1, policy->expert_imbalance);
        const double rows = tf->routed * fullest,
                     bytes = samples * tf->tokens / (double)s.sp * tf->hidden * width;
        check_close(dl_transformer_imbalance(tf, &s), fullest, 0);
        check_close(b.collective_bytes, bytes, 1e-15);
        check_close(b.boundary_bytes, bytes / (double)s.tp, 1e-15);
        check_close(b.expert_bytes, bytes * rows, 1e-15);
        const struct dl_transformer_group tensor = {s.tp, 1}, context = {s.sp, s.tp};
        struct dl_collective_time reduce = none, gather = none, scatter = none, more = none,
                                  less = none, ring = none, keys = none, gradients = none;
        if (!s.sequence_parallel) {
            reduce = sent(&g, &s, tensor, DL_COLL_ALL_REDUCE, bytes);
        } else {
            gather = sent(&g, &s, tensor, DL_COLL_ALL_GATHER, bytes);
            scatter = sent(&g, &s, tensor, DL_COLL_REDUCE_SCATTER, bytes);
            if (tf->experts > 0) {
                more = sent(&g, &s, tensor, DL_COLL_ALL_GATHER, bytes * rows);
                less = sent(&g, &s, tensor, DL_COLL_REDUCE_SCATTER, bytes * rows);
            }
        }
        /* keys and values of a rank's tokens and heads; of all tokens */
        const double pair =
            2 * samples * tf->tokens / (double)s.sp * tf->kv_channels / (double)s.tp * width;
        if (policy->context_exchange == DL_CONTEXT_RING) {
            ring = sent(&g, &s, context, DL_COLL_P2P, pair);
        } else {
            keys = sent(&g, &s, context, DL_COLL_ALL_GATHER, pair * (double)s.sp);
            gradients = sent(&g, &s, context, DL_COLL_REDUCE_SCATTER, pair * (double)s.sp);
        }
        const struct route route = route_of(&g, &s, bytes, rows);
        same(&b.reduce, &reduce), same(&b.gather, &gather), same(&b.scatter, &scatter);
        same(&b.expert_gather, &more), same(&b.expert_scatter, &less);
        same(&m.ring, &ring), same(&m.keys, &keys), same(&m.key_gradients, &gradients);
        same(&b.route, &route.there), same(&b.route_back, &route.back);
        check_close(b.route_bytes, route.bytes, 1e-12);
        assert_false(b.extrapolated);
    }
    dl_arena_free(&g.f.arena);
}

/* What a pass gains. */
struct gain {
    double comm_s, latency_s, inter_s, error_s, bytes, count, lost_s;
};

/* `times` collectives of which `hidden_s` at most pass behind kernels, which they slow. */
static void expose(struct gain *to, const struct gpt *g, const struct dl_collective_time *t,
                   double times, double hidden_s, double bytes) {
    if (g->tf.input.blocking_launches) hidden_s = 0;
    hidden_s = most(0, least(t->time_s, hidden_s));
    const double share = (t->time_s - hidden_s) / t->time_s;
    to->comm_s += times * (t->time_s - hidden_s), to->latency_s += times * share * t->latency_s;
    if (t->limit != NULL && strcmp(t->limit, "inter") == 0)
        to->inter_s += times * share * t->bandwidth_s;
    to->error_s += times * share * t->time_s * t->sigma_log;
    to->bytes += times * bytes, to->count += times;
    if (!g->f.framework.behaviour->is_bound && g->f.device.unit_count > 0)
        to->lost_s += times * hidden_s * least(0.5, t->channels / (double)g->f.device.unit_count);
}

static struct dl_collective_time random_time(void) {
    struct dl_collective_time t = {.latency_s = some(), .bandwidth_s = some(), .sigma_log = some()};
    t.time_s = t.latency_s + t.bandwidth_s;
    t.limit = upto(3) == 0 ? NULL : half() ? "inter" : "intra";
    t.channels = upto(3) == 0 ? 0 : 1 + upto(60);
    return t;
}

static void check_gain(const struct dl_transformer_pass *is, const struct gain *gain,
                       double device_s) {
    check_close(is->comm_s, gain->comm_s, 1e-9);
    check_close(is->comm_latency_s, gain->latency_s, 1e-9);
    check_close(is->comm_inter_s, gain->inter_s, 1e-9);
    check_close(is->comm_error_s, gain->error_s, 1e-9);
    check_close(is->comm_bytes, gain->bytes, 1e-12);
    check_close(is->collective_count, gain->count, 1e-12);
    check_close(is->device_s, device_s + gain->lost_s, 1e-12);
    check_close(is->by_limit_s[DL_LIMIT_COMPUTE], gain->lost_s, 1e-12);
    check_close(is->by_limit_s[DL_LIMIT_MEMORY] + is->by_limit_s[DL_LIMIT_LATENCY], 0, 0);
}

/* Kept whole: what one random layer shows. */
static void layers(void **state) {
    (void)state;
    static const enum dl_transformer_role roles[] = {
        DL_TRANSFORMER_SAME,       DL_TRANSFORMER_COLUMN, DL_TRANSFORMER_ROW,
        DL_TRANSFORMER_VOCABULARY, DL_TRANSFORMER_HEADS,  DL_TRANSFORMER_LOSS,
        DL_TRANSFORMER_EXPERTS};
    static const int overlaps[] = {DL_TENSOR_EXPOSED, DL_TENSOR_BACKWARD, DL_TENSOR_PIECES};
    struct gpt g;
    gpt_make(&g, NULL, 0);
    int attention = 0, other = 0;
    for (int i = 0; i < g.workload.layer_count; i++) {
        const bool is = strcmp(g.workload.layers[i].kind->name, "attention") == 0;
        *(is ? &attention : &other) = i;
    }
    for (int n = 0; n < 6000; n++) {
        const struct dl_transformer_split s = random_split();
        struct dl_transformer_micro_batch b = {.reduce = random_time(),
                                               .gather = random_time(),
                                               .scatter = random_time(),
                                               .route = random_time(),
                                               .expert_gather = random_time(),
                                               .expert_scatter = random_time()};
        if (half()) b.route_back = random_time();
        b.collective_bytes = some(), b.expert_bytes = some(), b.route_bytes = some();
        const struct dl_transformer_maker m = {.tf = &g.tf,
                                               .split = &s,
                                               .micro_batch = &b,
                                               .ring = random_time(),
                                               .keys = random_time(),
                                               .key_gradients = random_time()};
        const enum dl_transformer_role role = roles[upto(7)];
        const bool of_heads = role == DL_TRANSFORMER_HEADS;
        const struct dl_transformer_layer l = {.index = of_heads ? attention : other,
                                               .role = role,
                                               .gathers =
                                                   role == DL_TRANSFORMER_COLUMN && upto(4) > 0};
        struct dl_transformer_policy *policy = &g.f.framework.transformer;
        policy->tensor_overlap = overlaps[upto(3)];
        policy->context_exchange = half() ? DL_CONTEXT_RING : DL_CONTEXT_GATHER;
        g.tf.input.blocking_launches = upto(4) == 0;
        g.f.framework.behaviour = dl_framework_behaviour_find(upto(5) == 0 ? "ideal" : "bucketed");
        g.f.device.unit_count = upto(5) == 0 ? 0 : 80;
        const double f = 2 * some(), d = 2 * some(), w = 2 * some(), t = (double)s.tp,
                     half_bytes = (t - 1) / t * b.collective_bytes;
        struct dl_transformer_layer_passes p = {
            .forward.device_s = f, .data.device_s = d, .weights.device_s = w};
        dl_transformer_add_exchanges(&m, &l, &p);
        struct gain forward = {0}, data = {0};
        const bool pieces = policy->tensor_overlap == DL_TENSOR_PIECES,
                   hides = policy->tensor_overlap != DL_TENSOR_EXPOSED,
                   rows = role == DL_TRANSFORMER_ROW || role == DL_TRANSFORMER_VOCABULARY,
                   experts = role == DL_TRANSFORMER_EXPERTS;
        if (s.tp > 1 && !s.sequence_parallel) {
            if (rows) expose(&forward, &g, &b.reduce, 1, 0, 2 * half_bytes);
            if (l.gathers) expose(&data, &g, &b.reduce, 1, hides ? w : 0, 2 * half_bytes);
            if (experts && s.folded == 0) {
                expose(&forward, &g, &b.reduce, 1, 0, 2 * half_bytes);
                expose(&data, &g, &b.reduce, 1, 0, 2 * half_bytes);
            }
        }
        if (s.tp > 1 && s.sequence_parallel) {
            const bool in_pieces = pieces && role == DL_TRANSFORMER_ROW;
            if (rows) {
                expose(&forward, &g, &b.scatter, 1,
                       in_pieces ? 0.75 * least(f, b.scatter.time_s) : 0, half_bytes);
                expose(&data, &g, &b.gather, 1, in_pieces ? d * (t - 1) / t : 0, half_bytes);
            }
            if (l.gathers) {
                expose(&forward, &g, &b.gather, 1, pieces ? f * (t - 1) / t : 0, half_bytes);
                if (hides) expose(&data, &g, &b.gather, 1, d, half_bytes);
                expose(&data, &g, &b.scatter, 1, hides ? w : 0, half_bytes);
            }
            for (int i = 0; i < 2 && experts && s.folded == 0; i++) {
                struct gain *to = i == 0 ? &forward : &data;
                expose(to, &g, &b.expert_gather, 1, 0, (t - 1) / t * b.expert_bytes);
                expose(to, &g, &b.expert_scatter, 1, 0, (t - 1) / t * b.expert_bytes);
            }
        }
        const double e = (double)(s.folded > 0 ? s.ep * s.folded : s.ep), c = (double)s.sp;
        for (int i = 0; i < 2 && experts && e > 1; i++) {
            struct gain *to = i == 0 ? &forward : &data;
            const double bytes = (e - 1) / e * b.route_bytes;
            expose(to, &g, &b.route, 1, 0, bytes);
            expose(to, &g, b.route_back.time_s > 0 ? &b.route_back : &b.route, 1, 0, bytes);
        }
        if (of_heads && c > 1 && policy->context_exchange == DL_CONTEXT_GATHER) {
            expose(&forward, &g, &m.keys, 1, 0, 0);
            expose(&data, &g, &m.keys, 1, 0, 0);
            expose(&data, &g, &m.key_gradients, 1, 0, 0);
        } else if (of_heads && c > 1) { /* each share's attention hides one message, backward two */
            expose(&forward, &g, &m.ring, c - 1, f / c, 0);
            expose(&data, &g, &m.ring, 2 * (c - 1), d / c / 2, 0);
        }
        check_gain(&p.forward, &forward, f);
        check_gain(&p.data, &data, d);
        check_gain(&p.weights, &(struct gain){0}, w);
    }
    dl_arena_free(&g.f.arena);
}

/* What takes no time hides nothing, shows nothing and is not counted where it could hide. */
static void no_time(void **state) {
    (void)state;
    struct gpt g;
    gpt_make(&g, NULL, 0);
    const struct dl_transformer_split s = {.tp = 2, .sp = 1, .ep = 1};
    struct dl_transformer_micro_batch b = {.collective_bytes = 8};
    const struct dl_transformer_maker m = {.tf = &g.tf, .split = &s, .micro_batch = &b};
    const struct dl_transformer_layer l = {.role = DL_TRANSFORMER_COLUMN, .gathers = true};
    struct dl_transformer_layer_passes p = {.weights.device_s = 1};
    dl_transformer_add_exchanges(&m, &l, &p);
    check_gain(&p.data, &(struct gain){0}, 0);
    dl_arena_free(&g.f.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(messages), cmocka_unit_test(layers),
                                       cmocka_unit_test(no_time)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
