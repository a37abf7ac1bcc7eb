/* Pipelines over kinds of nodes from the model: as the pipeline of one kind, by the formula from
 * the layers' costs, and within memory. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/collective/collective.h"
#include "model/framework/cost.h"
#include "model/search/stage_plan.h"
#include "tests/check.h"
#include "tests/fake.h"

struct pair {
    struct dl_fake fast, slow;
    struct dl_heterogeneous_group groups[2];
    struct dl_heterogeneous_job job;
};

/* Nodes of one device; the slow kind has half the rate and bandwidth. Four equal layers. */
static void make_pair(struct pair *p, int64_t fast, int64_t slow) {
    const double features[] = {2000, 2000, 2000, 2000, 2000};
    fake_make(&p->fast);
    fake_make(&p->slow);
    fake_layers(&p->fast, 4, features);
    for (int i = 0; i < 4; i++) { /* one after the other */
        int *input = dl_arena_alloc(&p->fast.arena, 1, sizeof *input);
        *input = i - 1;
        struct dl_layer *layer = (struct dl_layer *)&p->fast.workload.layers[i];
        layer->inputs = input;
        layer->input_count = 1;
    }
    p->fast.system.devices_per_node = p->slow.system.devices_per_node = 1;
    p->slow.rate.peak_flop_per_s /= 2;
    p->slow.device.memory_bandwidth_bytes_per_s /= 2;
    p->fast.device.tdp_w = p->slow.device.tdp_w = 200;
    p->fast.system.name = "fast", p->slow.system.name = "slow";
    p->groups[0] = (struct dl_heterogeneous_group){.system = &p->fast.system, .nodes = fast};
    p->groups[1] = (struct dl_heterogeneous_group){.system = &p->slow.system, .nodes = slow};
    p->job = (struct dl_heterogeneous_job){.groups = p->groups, .group_count = slow > 0 ? 2 : 1};
}

static void free_pair(struct pair *p) {
    dl_arena_free(&p->fast.arena);
    dl_arena_free(&p->slow.arena);
}

/* 1024 samples in 8 micro-batches unless the plan says otherwise. */
static enum dl_code search(struct pair *p, double micro, enum dl_placement_objective objective,
                           struct dl_staged **out, int *count, struct dl_err *err) {
    struct dl_plan plan = p->fast.plan;
    plan.nodes = 0, plan.dp = 0, plan.devices_per_node = 0;
    plan.batch_per_device_samples = 0;
    plan.global_batch_samples = 1024;
    plan.micro_batch_samples = micro;
    return dl_staged_search(&p->job, &p->fast.workload, &p->fast.framework, &plan, objective,
                            &p->fast.arena, out, count, err);
}

static const struct dl_staged *with_nodes(const struct dl_staged *list, int count, int64_t fast,
                                          int64_t slow) {
    for (int i = 0; i < count; i++)
        if (list[i].nodes[0] == fast && list[i].nodes[1] == slow) return &list[i];
    return NULL;
}

/* Two equal stages on two equal nodes are those of the strategy pipeline. */
static void as_pipeline(void **state) {
    (void)state;
    struct pair p;
    struct dl_staged *list;
    struct dl_err err = {0};
    struct dl_prediction whole;
    int count;
    make_pair(&p, 2, 0);
    p.fast.device.memory_bytes = 7.4e8; /* 5e8 for the context: half of the network fits */
    assert_int_equal(search(&p, 128, DL_PLACE_TIME, &list, &count, &err), DL_OK);
    const struct dl_staged *both = with_nodes(list, count, 2, 0);
    assert_non_null(both);
    assert_int_equal(both->count, 2);
    assert_string_equal(both->stages[0].last, "dense1");
    struct dl_plan plan = p.fast.plan;
    plan.strategy = dl_strategy_find("pipeline");
    plan.nodes = 2, plan.devices_per_node = 1, plan.pp = 2, plan.dp = 0;
    plan.batch_per_device_samples = 0, plan.global_batch_samples = 1024;
    plan.micro_batch_samples = 128;
    assert_int_equal(
        dl_plan_complete(&p.fast.system, &p.fast.workload, &p.fast.framework, &plan, &err), DL_OK);
    assert_int_equal(dl_predict(&p.fast.system, &p.fast.workload, &p.fast.framework, &plan, NULL,
                                &p.fast.arena, &whole, &err),
                     DL_OK);
    check_close(both->prediction.iteration_s, whole.iteration_s, 1e-9);
    check_close(both->prediction.memory.total_bytes, whole.memory.total_bytes, 1e-9);
    free_pair(&p);
}

/* Seconds of one micro-batch of `samples` through `layers` layers and of their update. */
static void stage_s(const struct pair *p, bool slow, double samples, int layers, double *step_s,
                    double *update_s) {
    struct dl_cost cost;
    struct dl_err err = {0};
    const struct dl_fake *f = slow ? &p->slow : &p->fast;
    struct dl_plan plan = p->fast.plan;
    struct dl_arena *arena = (struct dl_arena *)&p->fast.arena;
    assert_int_equal(dl_cost_compute(&f->device, &p->fast.workload, &p->fast.framework, &plan,
                                     samples, arena, &cost, &err),
                     DL_OK);
    double sum_s = 0, launches = 0;
    for (int i = 4 - layers; i < 4; i++) {
        sum_s += cost.layers[i].forward.time_s + cost.layers[i].backward.time_s;
        launches += cost.layers[i].forward.launches + cost.layers[i].backward.launches;
    }
    *step_s = fmax(sum_s + launches * f->device.kernel_gap_s, launches * 5e-6);
    *update_s = cost.update.time_s * layers / 4;
}

/* One fast and one slow node, 8 micro-batches of 128 samples: the slow one gets the least that the
 * sum allows. T = t_0 + t_1 + 2 p + max((m - 1) t + u) with p for 2000 floats x 128 over the
 * network; every stage order and cut is compared. */
static void two_kinds_by_hand(void **state) {
    (void)state;
    struct pair p;
    struct dl_staged *list;
    struct dl_err err = {0};
    int count;
    make_pair(&p, 1, 1);
    assert_int_equal(search(&p, 128, DL_PLACE_TIME, &list, &count, &err), DL_OK);
    const struct dl_collective_request one = {.op = DL_COLL_P2P,
                                              .library = DL_LIB_NCCL,
                                              .bytes = 2000 * 128 * 4.0,
                                              .nodes = 2,
                                              .ranks_per_node = 1,
                                              .flows_per_adapter = 1};
    struct dl_collective_time message;
    assert_int_equal(dl_collective_time(&p.fast.system, &one, &message, &err), DL_OK);
    double best_s = INFINITY;
    for (int fast_layers = 1; fast_layers < 4; fast_layers++) {
        double fast_s, slow_s, fast_update_s, slow_update_s;
        stage_s(&p, false, 128, fast_layers, &fast_s, &fast_update_s);
        stage_s(&p, true, 128, 4 - fast_layers, &slow_s, &slow_update_s);
        best_s = fmin(best_s, fast_s + slow_s + 2 * message.time_s +
                                  fmax(7 * fmax(fast_s, 2 * message.time_s) + fast_update_s,
                                       7 * fmax(slow_s, 2 * message.time_s) + slow_update_s));
    }
    const struct dl_staged *both = with_nodes(list, count, 1, 1);
    assert_non_null(both);
    const struct dl_prediction *b = &both->prediction;
    check_close(b->iteration_s - b->exposed_input_s, best_s, 1e-6);
    assert_true(list[0].prediction.iteration_s <= b->iteration_s);
    assert_true(both->stages[0].busy_frac <= 1 && both->stages[1].busy_frac <= 1);
    /* 8 micro-batches are among those that the search tries by itself */
    struct dl_staged *free_choice;
    assert_int_equal(search(&p, 0, DL_PLACE_ENERGY, &free_choice, &count, &err), DL_OK);
    for (int i = 1; i < count; i++)
        assert_true(free_choice[i - 1].sample_energy_j <= free_choice[i].sample_energy_j);
    assert_int_equal(search(&p, 0, DL_PLACE_COST, &free_choice, &count, &err), DL_ERR_USAGE);
    free_pair(&p);
}

/* No device holds a layer: refused, with the reason. */
static void within_memory(void **state) {
    (void)state;
    struct pair p;
    struct dl_staged *list;
    struct dl_err err = {0};
    int count;
    make_pair(&p, 2, 2);
    p.fast.device.memory_bytes = p.slow.device.memory_bytes = 5.1e8;
    assert_int_equal(search(&p, 0, DL_PLACE_TIME, &list, &count, &err), DL_ERR_NO);
    check_contains(err.message, "fits in memory");
    p.fast.framework.sync.asynchronous = true;
    assert_int_equal(search(&p, 0, DL_PLACE_TIME, &list, &count, &err), DL_ERR_USAGE);
    free_pair(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_pipeline),
                                       cmocka_unit_test(two_kinds_by_hand),
                                       cmocka_unit_test(within_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
