/* What must hold for any prediction, over random ones: $DL_INVARIANTS of them (30000; `make
 * check-all` asks for a million), drawn anew with each $DL_INVARIANTS_SEED.
 *
 *   identities   parts add up to the whole; throughput x iteration = samples
 *   bounds       the ideal framework is never beaten, no arithmetic above the peak, no memory below
 *                the states, efficiency in (0, 1]
 *   monotony     more bandwidth, less latency, fewer bytes, a faster device or host never make a
 * job                slower; what is known to break this stands at `known_cause`
 *   scale        a device with all rates doubled and all times halved takes half the time; so does
 *                a collective
 *   permutation  groups of nodes, and links of a node, in any order
 */
#include "model/network/collective.h"
#include "model/framework/gradient_sync.h"
#include "model/machine/topology.h"
#include "model/machine/what_if.h"
#include "model/engine/strategies/strategy.h"
#include "model/framework/workspace.h"
#include "model/search/heterogeneous.h"
#include "tests/catalog.h"
#include "tests/check.h"
#include "tests/fake.h"

/* A part of the predictions, and at least this many. */
enum { USUAL = 30000, FEWEST = 1000, SMALL_LAYERS = 64, REPORTED = 12 };

static uint64_t seed;
static int64_t asked, made;
static double unit(void) { return check_uniform(&seed); }
static int upto(int count) { return (int)(check_random(&seed) % (uint64_t)count); }
static bool once_in(int count) { return upto(count) == 0; }
static double between(double low, double high) { return low * pow(high / low, unit()); }

/* What is predicted, and the copies that a change may write to. */
struct subject {
    struct dl_system system;
    struct dl_device device;
    struct dl_rate rates[16];
    struct dl_framework framework;
    const struct dl_workload *workload;
    struct dl_plan plan;
};

static int failures;
static void broken(const struct subject *s, const char *law, double before, double after) {
    if (failures++ < REPORTED)
        print_error(
            "%s: %s, %s, %s (%s), %s, %lld x %lld devices: %.12g, then %.12g (%+.3g %%)\n", law,
            s->system.name, s->workload->name, s->framework.name, s->framework.behaviour->name,
            s->plan.strategy != NULL ? s->plan.strategy->name : "-", (long long)s->plan.nodes,
            (long long)s->plan.devices_per_node, before, after, 100 * (after / before - 1));
}
static void require(const struct subject *s, const char *law, bool holds, double a, double b) {
    if (!holds) broken(s, law, a, b);
}
static bool near(double a, double b) {
    return fabs(a - b) <= 1e-9 * fmax(fabs(a), fabs(b)) + 1e-15;
}

static bool predict(const struct subject *s, struct dl_arena *arena, struct dl_prediction *out) {
    struct dl_plan plan = s->plan;
    made++;
    return dl_predict(&(struct dl_predict_request){&s->system, s->workload, &s->framework, &plan,
                                                   NULL, arena},
                      out, NULL) == DL_OK;
}

/* Points into the copies of the subject itself. */
static void own(struct subject *s, const struct dl_device *device) {
    s->device = *device;
    if (device->rate_count > 0 && device->rate_count <= 16) {
        memcpy(s->rates, device->rates, (size_t)device->rate_count * sizeof *s->rates);
        s->device.rates = s->rates;
    }
    s->system.device = &s->device;
}

/* Subjects. */

static struct dl_fake fake;

static void random_fake(struct subject *s) {
    fake_make(&fake);
    double features[7];
    const int layers = 1 + upto(6);
    for (int i = 0; i <= layers; i++) features[i] = floor(between(8, 8192));
    fake_layers(&fake, layers, features);
    fake.workload.buffer_elements = once_in(2) ? 0 : floor(between(10, 1e5));
    fake.rate.peak_flop_per_s = between(1e12, 1e14);
    fake.device.memory_bandwidth_bytes_per_s = between(1e11, 4e12);
    fake.device.memory_bytes = between(1e8, 1e12);
    fake.system.intra.bandwidth_bytes_per_s = between(1e9, 4e11);
    fake.system.intra.channel_bandwidth_bytes_per_s = fake.system.intra.bandwidth_bytes_per_s / 6;
    fake.system.inter.bandwidth_bytes_per_s = between(1e8, 5e10);
    fake.system.inter.latency_s = between(1e-6, 1e-4);
    int behaviours = 0;
    while (dl_framework_behaviours[behaviours] != NULL) behaviours++;
    struct dl_framework *f = &fake.framework;
    fake_behaves(f, dl_framework_behaviours[upto(behaviours)]);
    f->host.dispatch_s = once_in(3) ? 0 : between(1e-6, 1e-4);
    f->host.iteration_s = once_in(2) ? 0 : between(1e-5, 1e-2);
    f->sync.bucket_bytes = between(1e5, 1e8);
    fake_try(f, "buffers_broadcast", once_in(2));
    f->sync.messages.message_s = once_in(2) ? 0 : between(1e-6, 1e-3);
    fake.plan.nodes = (int64_t)between(1, 64);
    fake.plan.devices_per_node = 1 + upto(4);
    fake.plan.batch_per_device_samples = floor(between(1, 4096));
    if (f->behaviour->refuse != NULL && f->behaviour->refuse(&fake.system, &fake.plan) != NULL)
        fake.plan.nodes = 1;
    *s = (struct subject){
        .system = fake.system, .framework = *f, .workload = &fake.workload, .plan = fake.plan};
    own(s, &fake.device);
}

static const struct dl_workload *small[MOST];
static int small_count;

static void random_catalog(struct subject *s) {
    static const double batches[] = {1, 2, 4, 8, 16, 32, 64, 96};
    memset(&fake, 0, sizeof fake);
    *s = (struct subject){.system = *all.systems[upto(all.system_count)],
                          .framework = *all.frameworks[upto(all.framework_count)],
                          .workload = small[upto(small_count)]};
    int strategies = 0;
    while (dl_strategies[strategies] != NULL) strategies++;
    s->plan = (struct dl_plan){.strategy = dl_strategy_find("data"),
                               .nodes = (int64_t)1 << upto(6),
                               .batch_per_device_samples = batches[upto(8)],
                               .precision = once_in(3) ? DL_MIXED : DL_FP32,
                               .optimizer = (enum dl_optimizer)upto(DL_OPTIMIZERS),
                               .input.synthetic = !once_in(4)};
    if (once_in(4)) s->plan.strategy = dl_strategies[upto(strategies)];
    if (once_in(6)) s->plan.pp = 2, s->plan.micro_batch_samples = 1;
    if (once_in(6)) s->plan.tp = 2;
    own(s, s->system.device);
}

/* Identities and bounds. */

static void check_one(const struct subject *s, const struct dl_prediction *p) {
    const struct dl_memory *m = &p->memory;
    const double parts =
        p->compute_s + p->exposed_comm_s + p->exposed_input_s + p->bubble_s + p->overhead_s;
    const double states = m->weights_bytes + m->gradients_bytes + m->optimizer_bytes;
    const double memory =
        states + m->activations_bytes + m->workspace_bytes + m->buffers_bytes + m->context_bytes;
    require(s, "finite", isfinite(p->iteration_s) && p->iteration_s > 0, p->iteration_s, 0);
    require(s, "sum of parts", near(p->iteration_s, parts), p->iteration_s, parts);
    require(s, "compute", near(p->compute_s, p->forward_s + p->backward_s + p->update_s),
            p->compute_s, p->forward_s + p->backward_s + p->update_s);
    require(s, "negative part",
            fmin(fmin(p->exposed_comm_s, p->exposed_input_s), fmin(p->bubble_s, p->overhead_s)) >=
                0,
            1, 1);
    require(s, "exposed above all communication", p->exposed_comm_s <= p->comm_s * (1 + 1e-9),
            p->comm_s, p->exposed_comm_s);
    require(s, "interval",
            p->iteration_low_s <= p->iteration_s && p->iteration_s <= p->iteration_high_s,
            p->iteration_low_s, p->iteration_high_s);
    require(s, "memory below the states", m->total_bytes >= states * (1 - 1e-12), states,
            m->total_bytes);
    require(s, "memory", near(m->total_bytes, memory) || dl_fragmentation_frac(&s->framework) > 0,
            memory, m->total_bytes);
    require(s, "fits", p->fits == (isnan(m->capacity_bytes) || m->total_bytes <= m->capacity_bytes),
            m->capacity_bytes, m->total_bytes);
    require(s, "efficiency", p->scaling_efficiency > 0, p->scaling_efficiency, 0);
    require(s, "throughput",
            p->throughput_samples_per_s > 0 &&
                p->throughput_samples_per_s * p->iteration_s >= 1 - 1e-9,
            p->throughput_samples_per_s, p->iteration_s);
}

/* The terms that explain prints add up to the parts of the prediction. */
static void check_terms(const struct subject *s, struct dl_arena *arena) {
    const struct dl_predict_options with_terms = {.terms = true};
    struct dl_prediction p;
    double forward_s = 0, backward_s = 0, comm_s = 0, memory_bytes = 0;
    struct dl_plan plan = s->plan;
    if (dl_predict(&(struct dl_predict_request){&s->system, s->workload, &s->framework, &plan,
                                                &with_terms, arena},
                   &p, NULL) != DL_OK)
        return;
    for (int i = 0; i < p.term_count; i++) {
        const struct dl_term *term = &p.terms[i];
        if (strcmp(term->group, "forward") == 0) forward_s += term->value;
        if (strcmp(term->group, "backward") == 0) backward_s += term->value;
        if (strcmp(term->group, "communication") == 0) comm_s += term->value;
        if (strcmp(term->group, "memory") == 0) memory_bytes += term->value;
    }
    require(s, "forward terms", near(forward_s, p.forward_s), p.forward_s, forward_s);
    require(s, "backward terms", near(backward_s, p.backward_s), p.backward_s, backward_s);
    require(s, "communication terms", comm_s <= p.comm_s * (1 + 1e-9) + 1e-15, p.comm_s, comm_s);
    require(s, "memory terms", near(memory_bytes, p.memory.total_bytes), p.memory.total_bytes,
            memory_bytes);
}

/* Monotony: one change for the better. */

static void scale(double *value, double by) {
    if (dl_known(*value)) *value *= by;
}

enum change {
    NETWORK,
    NETWORK_LATENCY,
    LINKS,
    LINK_LATENCY,
    COPIES,
    PEAK,
    MEMORY,
    LATENCY,
    DISPATCH,
    SAMPLES,
    CHANGES
};
static const char *const change_names[CHANGES] = {"more network bandwidth",
                                                  "less network latency",
                                                  "more bandwidth in the node",
                                                  "less latency in the node",
                                                  "faster host copies",
                                                  "more arithmetic",
                                                  "more memory bandwidth",
                                                  "less kernel latency",
                                                  "faster host",
                                                  "fewer samples"};

static bool improve(struct subject *s, enum change what, double by, struct dl_arena *arena,
                    const struct subject *from) {
    *s = *from;
    own(s, &from->device);
    if (s->system.as_measured == NULL) s->system.as_measured = &from->system;
    switch (what) {
    case NETWORK: scale(&s->system.inter.bandwidth_bytes_per_s, by); break;
    case NETWORK_LATENCY:
        scale(&s->system.inter.latency_s, 1 / by);
        scale(&s->system.inter.per_message_cpu_s, 1 / by);
        break;
    case LINKS:
        scale(&s->system.intra.bandwidth_bytes_per_s, by);
        scale(&s->system.intra.cross_bandwidth_bytes_per_s, by);
        break;
    case LINK_LATENCY: scale(&s->system.intra.latency_s, 1 / by); break;
    case COPIES:
        scale(&s->system.host.copy_bandwidth_bytes_per_s, by);
        scale(&s->system.host.pageable_bandwidth_bytes_per_s, by);
        scale(&s->system.host.memory_bandwidth_bytes_per_s, by);
        break;
    case PEAK:
        for (int i = 0; i < s->device.rate_count; i++) s->rates[i].peak_flop_per_s *= by;
        break;
    case MEMORY: s->device.memory_bandwidth_bytes_per_s *= by; break;
    case LATENCY: scale(&s->device.kernel_latency_s, 1 / by); break;
    case DISPATCH:
        s->framework.host.dispatch_s /= by;
        s->framework.host.iteration_s /= by;
        s->framework.sync.messages.message_s /= by;
        s->framework.sync.collective_launch_s /= by;
        break;
    default:
        s->plan.batch_per_device_samples = fmax(1, floor(s->plan.batch_per_device_samples / by));
        s->plan.global_batch_samples = 0;
    }
    return (dl_device_what_if(&from->device, &s->device, arena), DL_OK) == DL_OK &&
           (dl_system_what_if(&from->system, &s->system, arena), DL_OK) == DL_OK;
}

/* Where a change for the better can make a job slower, and by how much at most. */
enum cause { NONE, CYCLES, WAITS, CHOICE, CHANNELS, CUT, SERVERS, CAUSES };
static const struct {
    const char *why;
    double most;
} causes[CAUSES] = {
    [NONE] = {"", 1e-9},
    /* Horovod's cycles: a gradient that is ready earlier can leave with fewer others
     * (test_oracle_timeline has the same times); those wait for the next cycle: at most one, and
     * not a share of the job. */
    [CYCLES] = {"what is ready when a cycle ends", 0},
    /* The farther the host is ahead, the more tensors share a message of Horovod and wait for the
     * last of them (F-FUSION-WAIT): at worst the message with all of them begins after backward,
     * and nothing of what was hidden before still is. */
    [WAITS] = {"tensors that wait for others of their message", 0},
    /* NCCL chooses by the rate that it assumes of NVLink; a link that attains more has it choose
     * Simple where LL is faster. */
    [CHOICE] = {"NCCL chooses by an assumed rate", 0.05},
    /* NCCL doubles its channels on faster links, and each holds a multiprocessor. */
    [CHANNELS] = {"more channels of NCCL", 0.1},
    /* Messages that slow concurrent kernels move from the next iteration's start into backward. */
    /* Layers are balanced one by one; that the host is ahead in one part of a stage and behind in
     * another shows only after the cut. */
    [CUT] = {"another cut of a pipeline", 0.2},
    /* Periods that alternate are known as a mean of 48. */
    [SERVERS] = {"a mean of alternating periods", 1e-4},
};
static int64_t pairs, known[CAUSES];

static bool is_cut(const struct subject *s) {
    return s->plan.pp > 1 || s->plan.strategy->partitioning == DL_PARTITION_STAGES;
}

static enum cause known_cause(const struct subject *s, enum change what, bool is_fake) {
    if (is_cut(s)) return CUT;
    if (s->framework.behaviour->has_phase)
        return dl_framework_number(&s->framework, "queued_when_issued") > 0 ? WAITS : CYCLES;
    if (s->framework.behaviour->has_servers) return SERVERS;
    if (is_fake || what != LINKS) return NONE;
    return s->plan.strategy->partitioning == DL_PARTITION_TRANSFORMER ? CHANNELS : CHOICE;
}

/* A pipeline is cut where compute balances, whatever crosses the cut and whichever stage then has
 * the largest tables to update: the law is for what the cut balances. */
static double judged_s(const struct subject *s, const struct dl_prediction *p) {
    return is_cut(s) ? p->forward_s + p->backward_s + p->bubble_s + p->overhead_s - p->straggler_s
                     : p->iteration_s;
}

static void check_better(const struct subject *s, const struct dl_prediction *p, bool is_fake,
                         struct dl_arena *arena) {
    static struct subject better;
    struct dl_prediction after;
    const enum change what = (enum change)upto(CHANGES);
    const double by = once_in(2) ? 2 : 1 + unit();
    /* another batch is other kernels: libraries choose among algorithms, times were measured */
    if (s->device.rate_count > 16 || (what == SAMPLES && !is_fake)) return;
    if (!improve(&better, what, by, arena, s) || !predict(&better, arena, &after)) return;
    const double before_s = judged_s(s, p), after_s = judged_s(s, &after);
    const enum cause cause = known_cause(s, what, is_fake);
    const double cycle_s = dl_framework_number(&s->framework, "cycle_s"),
                 late_s = cause == CYCLES  ? cycle_s
                          : cause == WAITS ? cycle_s + after.comm_s - p->exposed_comm_s
                                           : 0;
    pairs++;
    if (after_s <= before_s * (1 + causes[NONE].most)) return;
    if (after_s <= before_s * (1 + causes[cause].most) + late_s)
        known[cause]++;
    else
        broken(s, change_names[what], before_s, after_s);
}

/* What one device does alone, with all of it twice as fast. */
static void check_scale(const struct subject *s, struct dl_arena *arena) {
    static struct subject one, twice;
    struct dl_prediction before, after;
    one = *s;
    own(&one, &s->device);
    one.plan.nodes = one.plan.devices_per_node = 1;
    if (!predict(&one, arena, &before)) return;
    twice = one;
    own(&twice, &one.device);
    struct dl_device *d = &twice.device;
    for (int i = 0; i < d->rate_count; i++) {
        twice.rates[i].peak_flop_per_s *= 2;
    }
    d->memory_bandwidth_bytes_per_s *= 2;
    scale(&d->kernel_latency_s, 0.5), scale(&d->kernel_gap_s, 0.5), scale(&d->launch_s, 0.5);
    twice.framework.host.dispatch_s /= 2, twice.framework.host.iteration_s /= 2;
    twice.framework.sync.messages.message_s /= 2, twice.framework.sync.collective_launch_s /= 2;
    struct dl_host *h = &twice.system.host;
    scale(&h->copy_bandwidth_bytes_per_s, 2), scale(&h->memory_bandwidth_bytes_per_s, 2),
        scale(&h->pageable_bandwidth_bytes_per_s, 2);
    if (!predict(&twice, arena, &after)) return;
    require(s, "everything twice as fast", near(2 * after.iteration_s, before.iteration_s),
            before.iteration_s, 2 * after.iteration_s);
}

/* Collectives of fewer bytes. */
static void check_collective(void) {
    const struct dl_system *system = all.systems[upto(all.system_count)];
    struct dl_collective_request more = {.op = (enum dl_collective_op)upto(DL_COLL_OPS),
                                         .library = (enum dl_library)upto(DL_LIBRARIES),
                                         .bytes = between(1, 1e9),
                                         .nodes = 1 + upto(64),
                                         .ranks_per_node = 1 + upto(8),
                                         .flows_per_adapter = 1},
                                 less = more;
    struct dl_collective_time a, b;
    less.bytes *= unit();
    made += 2;
    if (dl_collective_time(system, &more, &a, NULL) == DL_OK &&
        dl_collective_time(system, &less, &b, NULL) == DL_OK) {
        /* samples are as they were measured */
        const bool modelled =
            strncmp(a.origin, "model", 5) == 0 && strncmp(b.origin, "model", 5) == 0;
        pairs++;
        if (modelled && b.time_s > a.time_s * (1 + 1e-9) && failures++ < REPORTED)
            print_error(
                "fewer bytes: %s, %s, %s, %lld x %lld: %g bytes %.12g s, %g bytes %.12g s\n",
                system->name, dl_library_names[more.library], dl_collective_op_names[more.op],
                (long long)more.nodes, (long long)more.ranks_per_node, more.bytes, a.time_s,
                less.bytes, b.time_s);
    }
}

/* The links of a node in another order, its devices under other numbers: the same rings. */
static void check_topology(void) {
    struct dl_edge edges[28], other[28];
    int count = 0, names[8];
    for (int i = 0; i < 8; i++) names[i] = i;
    for (int i = 7; i > 0; i--) {
        const int j = upto(i + 1), kept = names[i];
        names[i] = names[j], names[j] = kept;
    }
    for (int a = 0; a < 8; a++)
        for (int b = a + 1; b < 8; b++)
            if (once_in(2))
                edges[count++] = (struct dl_edge){.from = a, .to = b, .links = 1 + upto(2)};
    for (int i = 0; i < count; i++)
        other[count - 1 - i] = (struct dl_edge){
            .from = names[edges[i].to], .to = names[edges[i].from], .links = edges[i].links};
    const int rings = dl_topology_rings(edges, count, 8),
              again = dl_topology_rings(other, count, 8);
    made += 2;
    if (rings != again && failures++ < REPORTED)
        print_error("%d rings, %d after a permutation\n", rings, again);
}

/* Groups of nodes of one job in any order. */
static void check_groups(const struct subject *s, struct dl_arena *arena) {
    struct dl_prediction a, b;
    struct dl_plan plan_a, plan_b, plan = s->plan;
    const struct dl_system *others[] = {&s->system, all.systems[upto(all.system_count)],
                                        all.systems[upto(all.system_count)]};
    struct dl_heterogeneous_group groups[3], turned[3];
    for (int i = 0; i < 3; i++)
        turned[2 - i] = groups[i] =
            (struct dl_heterogeneous_group){.system = others[i], .nodes = 1 + upto(4)};
    const struct dl_heterogeneous_job one = {groups, 3, once_in(2)},
                                      two = {turned, 3, one.balanced};
    made += 2;
    plan.devices_per_node = 1;
    struct dl_heterogeneous_question question = {&one, s->workload, &s->framework, &plan};
    const bool first =
        dl_heterogeneous_predict(&question, false, arena, &plan_a, &a, NULL) == DL_OK;
    question.job = &two;
    if (dl_heterogeneous_predict(&question, false, arena, &plan_b, &b, NULL) == DL_OK && first)
        require(s, "order of groups", near(a.iteration_s, b.iteration_s), a.iteration_s,
                b.iteration_s);
}

/* The bound of every framework that keeps gradients whole and waits for all devices. */
static const struct dl_framework *ideal;
static void check_bound(const struct subject *s, const struct dl_prediction *p,
                        struct dl_arena *arena) {
    static struct subject best;
    struct dl_prediction bound;
    const struct dl_framework_behaviour *b = s->framework.behaviour;
    if (s->framework.sync.asynchronous || b->lossy || b->is_bound ||
        strcmp(s->plan.strategy->name, "data") != 0 || s->plan.tp > 1 || s->plan.pp > 1)
        return;
    best = *s;
    own(&best, &s->device);
    best.framework = *ideal;
    if (!predict(&best, arena, &bound)) return;
    const double least = bound.iteration_s - fmax(0, bound.update_s - p->update_s);
    require(s, "faster than ideal", p->iteration_s >= least * (1 - 1e-9), least, p->iteration_s);
}

static void check_laws(struct subject *s, const struct dl_prediction *p, bool is_fake,
                       struct dl_arena *arena) {
    check_one(s, p);
    for (int i = 0; i < 3; i++) check_better(s, p, is_fake, arena);
    if (!is_fake && once_in(16)) check_groups(s, arena);
    if (!is_fake && once_in(2)) check_bound(s, p, arena);
    if (is_fake && once_in(4)) check_scale(s, arena);
    if (is_fake && made % 16 == 0) check_terms(s, arena);
}

static void any_prediction(void **state) {
    const char *count = getenv("DL_INVARIANTS"), *first = getenv("DL_INVARIANTS_SEED");
    asked = count != NULL ? atoll(count) : USUAL;
    seed = 0x9e3779b97f4a7c15u ^ (first != NULL ? strtoull(first, NULL, 10) : 20261123u);
    for (int i = 0; i < all.workload_count; i++)
        if (all.workloads[i]->layer_count <= SMALL_LAYERS) small[small_count++] = all.workloads[i];
    for (int i = 0; i < all.framework_count; i++)
        if (strcmp(all.frameworks[i]->name, "ideal") == 0) ideal = all.frameworks[i];
    assert_true(small_count > 4 && ideal != NULL && asked >= FEWEST);
    int64_t refused = 0;
    while (made < asked) {
        static struct subject s;
        struct dl_arena arena = {0};
        struct dl_prediction p;
        const bool is_fake = !once_in(3);
        if (is_fake)
            random_fake(&s);
        else
            random_catalog(&s);
        if (predict(&s, &arena, &p))
            check_laws(&s, &p, is_fake, &arena);
        else
            refused++;
        check_collective();
        if (once_in(64)) check_topology();
        dl_arena_free(&arena);
        dl_arena_free(&test_arena);
    }
    print_message("# %lld predictions, %lld refused, %lld pairs, %d laws broken\n", (long long)made,
                  (long long)refused, (long long)pairs, failures);
    for (int c = NONE + 1; c < CAUSES; c++)
        print_message("# slower by at most %g %%%s, because of %s: %lld\n", 100 * causes[c].most,
                      c == CYCLES  ? " and a cycle"
                      : c == WAITS ? ", a cycle and all communication"
                                   : "",
                      causes[c].why, (long long)known[c]);
    assert_int_equal(failures, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(any_prediction)};
    return cmocka_run_group_tests(tests, catalog_load, catalog_free);
}
