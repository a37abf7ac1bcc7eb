/* Laws that hold for whatever is in data/: any system, workload and framework there, with any plan.
 * About half of the plans are impossible; those are refused as wrong input, with a sentence. No
 * figure of data/ is repeated here.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "model/collective/collective.h"
#include "model/cli/data.h"
#include "model/framework/gradient_sync.h"
#include "model/search/limits.h"
#include "model/predict/memory_advice.h"
#include "model/parallel/strategy.h"
#include "tests/catalog.h"
#include "tests/check.h"

enum { CASES = 3000 };

static uint64_t seed;

static int upto(int count) { return (int)(check_random(&seed) % (uint64_t)count); }
static bool once_in(int count) { return upto(count) == 0; }
static double log_between(double low, double high) {
    return low * pow(high / low, check_uniform(&seed));
}

struct a_case {
    struct dl_system system;
    struct dl_framework framework;
    const struct dl_workload *workload;
    struct dl_plan plan;
};

/* The system as it is, or with something that its file does not say, or says otherwise. */
static void change_system(struct dl_system *system) {
    static const char *const mpis[] = {"openmpi-3.1", "openmpi-4.1", "mpich-3", "intel", NULL};
    static const char *const protocols[] = {"LL", "LL128", "Simple"}, *const algorithms[] = {
                                                                          "Ring", "Tree"};
    static const char *const kinds[] = {"shm", "upi", "qpi", "pcie3", "tcp"};
    if (once_in(4)) system->mpi = mpis[upto(5)];
    if (once_in(12)) system->has_host = false;
    if (once_in(12)) system->has_intra = false;
    if (once_in(12)) system->has_inter = false;
    if (once_in(12)) system->inter.rdma = !system->inter.rdma;
    if (once_in(12)) system->intra.kind = kinds[upto(5)];
    if (once_in(12)) system->nccl_algorithm = algorithms[upto(2)];
    if (once_in(12)) system->nccl_protocol = protocols[upto(3)];
    if (once_in(6)) system->jitter_frac = once_in(2) ? NAN : 0.2 * check_uniform(&seed);
    if (once_in(6)) system->nodes_share_host = !system->nodes_share_host;
    if (once_in(3)) {
        system->has_storage = true;
        system->storage = (struct dl_storage){
            .kind = "nvme",
            .source = "test",
            .open_s = once_in(2) ? NAN : 1e-4,
            .read_bytes_per_s = once_in(3) ? NAN : log_between(1e7, 1e10),
            .write_bytes_per_s = NAN,
            .total_read_bytes_per_s = once_in(2) ? NAN : log_between(1e7, 1e11)};
    } else if (once_in(3)) {
        system->has_storage = false;
    }
}

/* The ranks along each axis, the pipeline's schedule, and the states that are sharded. */
static void change_parallelism(struct dl_plan *p, const double *batches) {
    if (once_in(3)) p->tp = (int64_t)1 << upto(4);
    if (once_in(3)) p->pp = (int64_t)1 << upto(4);
    if (once_in(6)) p->sp = (int64_t)1 << upto(3);
    if (once_in(6)) p->ep = (int64_t)1 << upto(3);
    if (once_in(3)) p->micro_batch_samples = batches[upto(4)];
    if (!p->recompute_open) p->recompute = (enum dl_recompute)upto(3);
    if (once_in(4)) p->sequence_parallel = true;
    if (once_in(2)) p->schedule = (enum dl_schedule)upto(4);
    if (p->schedule == DL_INTERLEAVED && once_in(2)) p->virtual_stages = 2 + upto(3);
    if (once_in(4)) p->shard = upto(4);
    if (once_in(8)) p->shard_group = (int64_t)1 << upto(4);
    if (once_in(4)) p->mapping = DL_MAP_PIPELINE_INSIDE;
}

/* Where variables stand, what sends them, and what the input costs. */
static void change_surroundings(struct dl_plan *p) {
    static const char *const libraries[] = {"nccl", "mpi", "gloo", "grpc", "mlsl"};
    if (once_in(20)) p->assume = DL_ASSUME_PARADL;
    if (once_in(4)) p->variable_placement = once_in(2) ? "cpu" : "gpu";
    if (once_in(4)) p->library = libraries[upto(5)];
    if (once_in(4))
        p->sample_bytes = log_between(1e3, 1e7), p->dataset_samples = floor(log_between(1e3, 1e8));
    if (once_in(4)) p->decode_s_per_sample = log_between(1e-5, 1e-1);
    if (once_in(4)) p->decode_workers = 1 + upto(16);
    if (once_in(4)) p->first_epoch = true;
    if (once_in(4)) p->backup_workers = upto(3);
    if (once_in(6)) p->compute_scale = log_between(0.5, 2);
}

static void change_plan(struct dl_plan *p) {
    static const double batches[] = {1, 2, 4, 8, 16, 32, 64, 96};
    int strategies = 0;
    while (dl_strategies[strategies] != NULL) strategies++;
    *p =
        (struct dl_plan){.strategy = once_in(4) ? NULL : dl_strategies[upto(strategies)],
                         .nodes = (int64_t)1 << upto(5),
                         .synthetic_input = !once_in(3),
                         .precision = once_in(2) ? DL_FP32 : (enum dl_precision)upto(DL_PRECISIONS),
                         .optimizer = (enum dl_optimizer)upto(DL_OPTIMIZERS),
                         .recompute_open = once_in(2)};
    if (once_in(3)) p->devices_per_node = 1 + upto(4);
    if (once_in(3))
        p->global_batch_samples = batches[upto(8)] * (double)(p->nodes * 4);
    else
        p->batch_per_device_samples = batches[upto(8)];
    change_parallelism(p, batches);
    change_surroundings(p);
}

/* Most plans ask only for what their strategy and network have; the others ask for anything. */
static void tame(struct a_case *c) {
    struct dl_plan *p = &c->plan;
    const unsigned axes = p->strategy != NULL ? p->strategy->axes : 0;
    const bool transformer = dl_known(c->workload->transformer_layers);
    const struct dl_framework_behaviour *behaviour = c->framework.behaviour;
    if ((axes & DL_AXIS_TP) == 0) p->tp = 0, p->sequence_parallel = false;
    if ((axes & DL_AXIS_PP) == 0) p->pp = 0;
    if ((axes & DL_AXIS_SP) == 0) p->sp = 0;
    if ((axes & DL_AXIS_EP) == 0) p->ep = 0;
    if ((axes & (DL_AXIS_TP | DL_AXIS_PP)) == 0) p->shard = 0;
    if (p->tp <= 1) p->sequence_parallel = false;
    if ((axes & DL_AXIS_PP) == 0) p->micro_batch_samples = 0;
    if (!once_in(8)) p->precision = once_in(2) ? DL_FP32 : DL_MIXED;
    if (!transformer) p->recompute = DL_RECOMPUTE_NONE;
    if (!once_in(8)) p->shard_group = 0, p->backup_workers = 0;
    if (p->pp <= 1 && !once_in(8)) p->schedule = DL_1F1B, p->virtual_stages = 0;
    if (behaviour != NULL && behaviour->refuse != NULL && behaviour->refuse(&c->system, p) != NULL)
        p->nodes = 1;
    if (!once_in(8)) p->devices_per_node = 0;
}

static void random_case(struct a_case *c) {
    c->system = *all.systems[upto(all.system_count)];
    c->framework = *all.frameworks[upto(all.framework_count)];
    c->workload = all.workloads[upto(all.workload_count)];
    change_system(&c->system);
    if (once_in(6)) c->framework.shards = c->framework.splits_layers = true;
    if (once_in(8)) c->framework.sync.overlaps_backward = !c->framework.sync.overlaps_backward;
    if (once_in(8)) c->framework.input.prefetch_batches = upto(3);
    if (once_in(8)) c->framework.sync.bucketed.buffers_broadcast = true;
    change_plan(&c->plan);
    if (!once_in(5)) tame(c);
}

static const char *name_of(const struct a_case *c, int number) {
    static char text[512];
    snprintf(text, sizeof text, "case %d: %s, %s, %s, %s, %lld nodes", number, c->system.name,
             c->workload->name, c->framework.name,
             c->plan.strategy != NULL ? c->plan.strategy->name : "own strategy",
             (long long)c->plan.nodes);
    return text;
}
#define HOLDS(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) fail_msg("%s: %s", name_of(c, number), #condition);                      \
    } while (0)

static bool near(double a, double b) {
    return fabs(a - b) <= 1e-9 * fmax(fabs(a), fabs(b)) + 1e-15;
}

/* A refusal names what is wrong, in words, as a fault of what was asked for. */
static void check_refusal(const struct a_case *c, int number, enum dl_code code,
                          const struct dl_err *err) {
    HOLDS(code == DL_ERR_USAGE || code == DL_ERR_INPUT || code == DL_ERR_NO);
    HOLDS(err->code == code && strlen(err->message) > 10);
    HOLDS(strstr(err->message, "(null)") == NULL && strstr(err->message, "nan") == NULL &&
          strstr(err->message, "inf") != err->message);
}

/* The parts are times, and the iteration is their sum. */
static void check_times(const struct a_case *c, int number, const struct dl_prediction *p) {
    HOLDS(isfinite(p->iteration_s) && p->iteration_s > 0);
    HOLDS(near(p->iteration_s, p->compute_s + p->exposed_comm_s + p->exposed_input_s + p->bubble_s +
                                   p->overhead_s));
    HOLDS(near(p->compute_s, p->forward_s + p->backward_s + p->update_s));
    HOLDS(p->forward_s > 0 && p->backward_s > 0 && p->update_s >= 0 && p->bubble_s >= 0 &&
          p->overhead_s >= 0);
    HOLDS(p->exposed_comm_s >= 0 && p->exposed_comm_s <= p->comm_s * (1 + 1e-9) + 1e-15);
    HOLDS(p->exposed_input_s >= 0);
    HOLDS(p->iteration_low_s <= p->iteration_s && p->iteration_s <= p->iteration_high_s);
}

static void check_memory(const struct a_case *c, int number, const struct dl_prediction *p) {
    const struct dl_memory *m = &p->memory;
    HOLDS(near(m->total_bytes, m->weights_bytes + m->gradients_bytes + m->optimizer_bytes +
                                   m->activations_bytes + m->workspace_bytes + m->buffers_bytes +
                                   m->context_bytes));
    HOLDS(p->fits == (isnan(m->capacity_bytes) || m->total_bytes <= m->capacity_bytes));
}

static void check_term(const struct a_case *c, int number, const struct dl_term *term) {
    HOLDS(term->name != NULL && term->group != NULL && term->formula != NULL &&
          strncmp(term->formula, "F-", 2) == 0);
    HOLDS(term->inputs == NULL ||
          (strstr(term->inputs, "(null)") == NULL && strstr(term->inputs, "-nan") == NULL));
    HOLDS(term->value >= 0);
}

static void check_prediction(const struct a_case *c, int number, const struct dl_plan *plan,
                             const struct dl_prediction *p) {
    check_times(c, number, p);
    check_memory(c, number, p);
    HOLDS(near(p->throughput_samples_per_s * p->iteration_s, plan->global_batch_samples) ||
          plan->backup_workers > 0);
    HOLDS(p->scaling_efficiency > 0);
    HOLDS(p->bottleneck >= 0 && p->bottleneck < DL_BOUNDS && p->bottleneck_share > 0 &&
          p->bottleneck_share <= 1 + 1e-9);
    HOLDS(plan->nodes * plan->devices_per_node > 1 || p->comm_s <= 0);
    for (int i = 0; i < p->warning_count; i++)
        HOLDS(p->warnings[i] != NULL && strstr(p->warnings[i], "(null)") == NULL);
    for (int t = 0; t < p->term_count; t++) check_term(c, number, &p->terms[t]);
}

/* Completed, a plan is complete: all ranks are given and their product is the devices. */
static void check_plan(const struct a_case *c, int number, const struct dl_plan *plan) {
    struct dl_plan again = *plan;
    struct dl_err err = {0};
    HOLDS(plan->strategy != NULL && plan->dp >= 1 && plan->tp >= 1 && plan->pp >= 1 &&
          plan->sp >= 1 && plan->ep >= 1);
    HOLDS(plan->dp * plan->tp * plan->pp * plan->sp * plan->ep ==
          plan->nodes * plan->devices_per_node);
    HOLDS(plan->batch_per_device_samples > 0 && plan->global_batch_samples >= 1);
    HOLDS(dl_plan_complete(&c->system, c->workload, &c->framework, &again, &err) == DL_OK);
    HOLDS(again.dp == plan->dp && again.tp == plan->tp && again.pp == plan->pp &&
          again.sp == plan->sp && again.ep == plan->ep && again.shard == plan->shard &&
          near(again.global_batch_samples, plan->global_batch_samples) &&
          near(again.batch_per_device_samples, plan->batch_per_device_samples));
}

static void check_limits(const struct a_case *c, int number, const struct dl_plan *plan,
                         struct dl_arena *arena) {
    static struct dl_limits limits;
    struct dl_err err = {0};
    HOLDS(dl_limits_of(&c->system, c->workload, &c->framework, plan, arena, &limits, &err) ==
          DL_OK);
    for (int i = 0; i < limits.active_count; i++) {
        const struct dl_limit_active *a = &limits.active[i];
        HOLDS(a->name != NULL && a->category != NULL && (a->cost_s > 0 || a->cost_bytes > 0));
        HOLDS(i == 0 || isnan(a->cost_s) || a->cost_s <= a[-1].cost_s);
    }
    for (int i = 0; i < limits.elasticity_count; i++) HOLDS(isfinite(limits.elasticity[i].value));
    for (int i = 0; i < limits.change_count; i++)
        HOLDS(limits.changes[i].iteration_s > 0 && limits.changes[i].text != NULL);
}

/* With the memo as without it. */
static void check_remembered(const struct a_case *c, int number, const struct dl_system *system,
                             const struct dl_plan *plan, struct dl_cost_memo *memo) {
    const struct dl_predict_options with = {.times_only = true, .memo = memo};
    struct dl_prediction p, plain;
    struct dl_err err = {0};
    for (int i = 0; i < 2; i++) {
        if (dl_predict(system, c->workload, &c->framework, plan, NULL, memo->arena, &plain, &err) !=
            DL_OK)
            return; /* this variant is impossible */
        HOLDS(dl_predict(system, c->workload, &c->framework, plan, &with, memo->arena, &p, &err) ==
              DL_OK);
        HOLDS(p.iteration_s == plain.iteration_s);
    }
}

/* What is remembered of kernels changes nothing: on another system of equal devices, which shares
 * them, nor for other devices, batches and factors, which do not. */
static void check_memo(const struct a_case *c, int number, const struct dl_plan *plan,
                       struct dl_arena *arena) {
    struct dl_cost_memo memo = {.arena = arena};
    struct dl_system links = c->system, devices = c->system;
    struct dl_device bare = *c->system.device;
    struct dl_plan twice = *plan, slower = *plan;
    links.inter.bandwidth_bytes_per_s *= 2;
    links.intra.latency_s *= 3;
    bare.memory_bandwidth_bytes_per_s /= 2;
    bare.kernel_model_count = 0;
    bare.borrowed = NULL;
    devices.device = &bare;
    twice.batch_per_device_samples *= 2;
    twice.global_batch_samples *= 2;
    slower.compute_scale = 2;
    check_remembered(c, number, &c->system, plan, &memo);
    check_remembered(c, number, &links, plan, &memo);
    check_remembered(c, number, &devices, plan, &memo);
    check_remembered(c, number, &c->system, &twice, &memo);
    check_remembered(c, number, &c->system, &slower, &memo);
}

/* A layer takes what its twin takes; a twin before the part of a network that one looks at (a stage
 * of a pipeline) is none. */
static void check_twins(const struct a_case *c, int number, const struct dl_plan *plan,
                        double iteration_s, struct dl_arena *arena) {
    struct dl_workload apart = *c->workload;
    struct dl_layer *layers = dl_arena_alloc(arena, (size_t)apart.layer_count, sizeof *layers);
    struct dl_prediction p = {0};
    struct dl_err err = {0};
    HOLDS(layers != NULL);
    for (int i = 0; i < apart.layer_count; i++) {
        layers[i] = c->workload->layers[i];
        const int twin = dl_layer_twin(c->workload->layers + i / 2, i - i / 2);
        HOLDS(twin >= 0 && twin <= i - i / 2);
        layers[i].twin_before = 0;
    }
    apart.layers = layers;
    HOLDS(dl_predict(&c->system, &apart, &c->framework, plan, NULL, arena, &p, &err) == DL_OK);
    HOLDS(p.iteration_s == iteration_s);
}

static void any_plan(void **state) {
    (void)state;
    int made = 0, refused = 0, too_large = 0;
    seed = 20261122;
    for (int number = 0; number < CASES; number++) {
        struct a_case one;
        const struct a_case *c = &one;
        struct dl_arena arena = {0};
        struct dl_err err = {0};
        struct dl_prediction p, plain;
        const struct dl_predict_options with_terms = {.terms = true};
        random_case(&one);
        struct dl_plan plan = one.plan;
        enum dl_code code =
            dl_plan_complete(&one.system, one.workload, &one.framework, &plan, &err);
        if (code == DL_OK) check_plan(c, number, &plan);
        if (code == DL_OK)
            code = dl_predict(&one.system, one.workload, &one.framework, &plan, &with_terms, &arena,
                              &p, &err);
        if (code != DL_OK) {
            check_refusal(c, number, code, &err);
            refused++;
        } else {
            check_prediction(c, number, &plan, &p);
            HOLDS(dl_predict(&one.system, one.workload, &one.framework, &one.plan, NULL, &arena,
                             &plain, &err) == DL_OK);
            HOLDS(plain.term_count == 0 && plain.iteration_s == p.iteration_s &&
                  plain.memory.total_bytes == p.memory.total_bytes);
            check_memo(c, number, &plan, &arena);
            check_twins(c, number, &plan, p.iteration_s, &arena);
            if (made++ % 16 == 0) check_limits(c, number, &plan, &arena);
            const char *advice = dl_memory_advice(&one.system, one.workload, &one.framework, &plan,
                                                  plan.batch_per_device_samples, &arena);
            HOLDS(advice == NULL || (strlen(advice) > 10 && strstr(advice, "nan") == NULL));
            too_large += !p.fits;
        }
        dl_arena_free(&arena);
    }
    print_message("%d predicted (%d too large), %d refused\n", made, too_large, refused);
    /* else this tests little */
    assert_true(made > CASES / 6 && refused > CASES / 20 && too_large > 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(any_plan)};
    return cmocka_run_group_tests(tests, catalog_load, catalog_free);
}
