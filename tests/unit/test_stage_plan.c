/* Pipelines over kinds of nodes from the model: as the pipeline of one kind, by the formula from
 * the layers' costs, and within memory. */
#include "model/network/collective.h"
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
        int *input = dl_arena_alloc(&test_arena, 1, sizeof *input);
        *input = i - 1;
        struct dl_layer *layer = (struct dl_layer *)&p->fast.workload.layers[i];
        layer->inputs = input;
        layer->input_count = 1;
    }
    p->fast.system.devices_per_node = p->slow.system.devices_per_node = 1;
    p->slow.rate.peak_flop_per_s /= 2;
    p->slow.device.memory_bandwidth_bytes_per_s /= 2;
    p->fast.device.power.tdp_w = p->slow.device.power.tdp_w = 200;
    p->fast.system.name = "fast", p->slow.system.name = "slow";
    p->groups[0] = (struct dl_heterogeneous_group){.system = &p->fast.system, .nodes = fast};
    p->groups[1] = (struct dl_heterogeneous_group){.system = &p->slow.system, .nodes = slow};
    p->job = (struct dl_heterogeneous_job){.groups = p->groups, .group_count = slow > 0 ? 2 : 1};
}

/* 1024 samples in 8 micro-batches unless the plan says otherwise. */
static enum dl_code search(struct pair *p, double micro, enum dl_placement_objective objective,
                           struct dl_staged **out, int *count, struct dl_err *err) {
    struct dl_plan plan = p->fast.plan;
    plan.nodes = 0, plan.dp = 0, plan.devices_per_node = 0;
    plan.strategy = NULL; /* left open, as by the program */
    plan.batch_per_device_samples = 0;
    plan.global_batch_samples = 1024;
    plan.micro_batch_samples = micro;
    const struct dl_heterogeneous_question question = {&p->job, &p->fast.workload,
                                                       &p->fast.framework, &plan};
    return dl_staged_search(&question, objective, &test_arena, out, count, err);
}

static const struct dl_staged *with_nodes(const struct dl_staged *list, int count, int64_t fast,
                                          int64_t slow) {
    for (int i = 0; i < count; i++)
        if (list[i].nodes[0] == fast && list[i].nodes[1] == slow) return &list[i];
    return NULL;
}

/* Two equal stages on two equal nodes are those of the strategy pipeline. */
static void as_pipeline(void **state) {
    struct pair p;
    struct dl_staged *list;
    struct dl_prediction whole;
    int count;
    make_pair(&p, 2, 0);
    p.fast.device.memory_bytes = 7.4e8; /* 5e8 for the context: half of the network fits */
    assert_int_equal(search(&p, 128, DL_PLACE_TIME, &list, &count, NULL), DL_OK);
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
        dl_plan_complete(&p.fast.system, &p.fast.workload, &p.fast.framework, &plan, NULL), DL_OK);
    assert_int_equal(
        dl_predict(&(struct dl_predict_request){&p.fast.system, &p.fast.workload, &p.fast.framework,
                                                &plan, NULL, &test_arena},
                   &whole, NULL),
        DL_OK);
    check_close(both->prediction.iteration_s, whole.iteration_s, 1e-9);
    check_close(both->prediction.memory.total_bytes, whole.memory.total_bytes, 1e-9);
}

struct hand {
    double forward_s, backward_s, update_s;
};

/* One micro-batch of `samples` through `layers` of the four equal layers, and their update. */
static struct hand stage_by_hand(const struct pair *p, bool slow, double samples, int layers) {
    struct dl_cost cost;
    const struct dl_fake *f = slow ? &p->slow : &p->fast;
    struct dl_arena *arena = (struct dl_arena *)&test_arena;
    double forward_s = 0, backward_s = 0, launches = 0;
    assert_int_equal(
        dl_cost_compute(&(struct dl_cost_request){&f->device, &p->fast.workload, &p->fast.framework,
                                                  &p->fast.plan, samples},
                        arena, &cost, NULL),
        DL_OK);
    for (int i = 4 - layers; i < 4; i++) {
        forward_s += cost.layers[i].forward.time_s;
        backward_s += cost.layers[i].backward.time_s;
        launches += cost.layers[i].forward.launches + cost.layers[i].backward.launches;
    }
    const double kernels_s = forward_s + backward_s,
                 step_s = fmax(kernels_s + launches * f->device.kernel_gap_s, launches * 5e-6);
    return (struct hand){forward_s * step_s / kernels_s, backward_s * step_s / kernels_s,
                         cost.update.time_s * layers / 4};
}

/* One fast and one slow node, 8 micro-batches of 128 samples, p for a message of 2000 floats x 128.
 * The second stage is the faster one. Before its last pass the first one waits for that of the
 * second, f1 + b1 + 2 p - b0, and before its first backward pass f1 + b1 + 2 p - f0; between the
 * two it works on 8 micro-batches without a break. */
static void two_kinds_by_hand(void **state) {
    struct pair p;
    struct dl_staged *list;
    int count;
    make_pair(&p, 1, 1);
    assert_int_equal(search(&p, 128, DL_PLACE_TIME, &list, &count, NULL), DL_OK);
    const struct dl_collective_request one = {.op = DL_COLL_P2P,
                                              .library = DL_LIB_NCCL,
                                              .bytes = 2000 * 128 * 4.0,
                                              .nodes = 2,
                                              .ranks_per_node = 1,
                                              .flows_per_adapter = 1};
    struct dl_collective_time message;
    assert_int_equal(dl_collective_time(&p.fast.system, &one, &message, NULL), DL_OK);
    const struct dl_staged *both = with_nodes(list, count, 1, 1);
    assert_non_null(both);
    const struct dl_prediction *b = &both->prediction;
    const int layers = both->stages[0].last[5] - '0' + 1; /* dense0, ... */
    const struct hand first = stage_by_hand(&p, both->stages[0].kind == 1, 128, layers),
                      second = stage_by_hand(&p, both->stages[1].kind == 1, 128, 4 - layers);
    const double answer_s = second.forward_s + second.backward_s + 2 * message.time_s;
    assert_true(answer_s < first.forward_s + first.backward_s);
    check_close(b->iteration_s - b->exposed_input_s - b->straggler_s,
                8 * (first.forward_s + first.backward_s) + fmax(0, answer_s - first.forward_s) +
                    fmax(0, answer_s - first.backward_s) + first.update_s +
                    p.fast.framework.host.iteration_s,
                1e-9);
    assert_true(list[0].prediction.iteration_s <= b->iteration_s);
    assert_true(both->stages[0].busy_frac <= 1 && both->stages[1].busy_frac <= 1);
    /* 8 micro-batches are among those that the search tries by itself */
    struct dl_staged *free_choice;
    assert_int_equal(search(&p, 0, DL_PLACE_ENERGY, &free_choice, &count, NULL), DL_OK);
    for (int i = 1; i < count; i++)
        assert_true(free_choice[i - 1].sample_energy_j <= free_choice[i].sample_energy_j);
    assert_int_equal(search(&p, 0, DL_PLACE_COST, &free_choice, &count, NULL), DL_ERR_USAGE);
}

/* No device holds a layer: refused, with the reason. */
static void within_memory(void **state) {
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
}

/* What every pipeline says of itself: its stages hold all layers on the nodes in use, the fullest
 * device is the job's, energy is that of all stages, and each choice of nodes stands there once,
 * the fastest first. */
static void figures(void **state) {
    struct pair p;
    struct dl_staged *list;
    int count;
    make_pair(&p, 2, 2);
    const double micros[] = {0, 64, 512, 1024};
    for (int round = 0; round < 8; round++) {
        const enum dl_placement_objective objective = round < 4 ? DL_PLACE_TIME : DL_PLACE_ENERGY;
        assert_int_equal(search(&p, micros[round % 4], objective, &list, &count, NULL), DL_OK);
        assert_true(count >= 5);
        for (int i = 0; i < count; i++) {
            const struct dl_staged *one = &list[i];
            const struct dl_prediction *all = &one->prediction;
            int64_t nodes[2] = {0, 0};
            double power_w = 0, most_bytes = 0;
            for (int s = 0; s < one->count; s++) {
                const struct dl_staged_stage *stage = &one->stages[s];
                nodes[stage->kind] += stage->nodes;
                assert_int_equal(stage->devices, stage->nodes);
                power_w += stage->power_w;
                most_bytes = fmax(most_bytes, stage->memory_bytes);
                const int from = stage->first[5] - '0', to = stage->last[5] - '0';
                assert_int_equal(from, s == 0 ? 0 : one->stages[s - 1].last[5] - '0' + 1);
                const struct hand hand =
                    stage_by_hand(&p, stage->kind == 1,
                                  one->micro_batch_samples / (double)stage->nodes, to - from + 1);
                if (from > 0) check_close(stage->step_s, hand.forward_s + hand.backward_s, 1e-6);
                check_close(stage->busy_frac,
                            (one->micro_batches * stage->step_s + hand.update_s) / all->iteration_s,
                            1e-6);
            }
            assert_string_equal(one->stages[0].first, "dense0");
            assert_string_equal(one->stages[one->count - 1].last, "dense3");
            assert_true(nodes[0] == one->nodes[0] && nodes[1] == one->nodes[1]);
            check_close(one->micro_batches * one->micro_batch_samples, 1024, 1e-12);
            if (micros[round % 4] > 0) check_close(one->micro_batch_samples, micros[round % 4], 0);
            check_close(all->memory.total_bytes, most_bytes, 1e-12);
            assert_true(all->fits);
            check_close(all->throughput_samples_per_s, 1024 / all->iteration_s, 1e-12);
            check_close(one->sample_energy_j, power_w / all->throughput_samples_per_s, 1e-12);
            check_close(all->iteration_s,
                        all->compute_s + all->exposed_comm_s + all->exposed_input_s +
                            all->bubble_s + all->overhead_s,
                        1e-9);
            if (one->count == 1) check_close(all->bubble_s, 0, 1e-15);
            for (int k = 0; k < i; k++) {
                const struct dl_staged *before = &list[k];
                assert_true(before->nodes[0] != one->nodes[0] || before->nodes[1] != one->nodes[1]);
                assert_true(objective == DL_PLACE_TIME
                                ? before->prediction.iteration_s <= all->iteration_s
                                : before->sample_energy_j <= one->sample_energy_j);
            }
        }
    }
}

/* A pipeline costs the hours of the nodes in use, 3.60 an hour or 7.20, so 1 or 2 thousandths a
 * second; the cheapest sample first. Prices in two currencies have no sum, unless one kind alone is
 * there. */
static void prices(void **state) {
    struct pair p;
    struct dl_staged *list;
    int count;
    make_pair(&p, 2, 2);
    p.fast.system.operation.price_per_node_hour = 3.6,
    p.slow.system.operation.price_per_node_hour = 7.2;
    p.fast.system.operation.price_currency = p.slow.system.operation.price_currency = "EUR";
    for (int round = 0; round < 2; round++) {
        assert_int_equal(search(&p, round == 0 ? 0 : 64, DL_PLACE_COST, &list, &count, NULL),
                         DL_OK);
        assert_int_equal(count, 8); /* 3 x 3 choices but that of none */
        for (int i = 0; i < count; i++) {
            const double price = 1e-3 * (double)list[i].nodes[0] + 2e-3 * (double)list[i].nodes[1];
            check_close(list[i].cost_per_sample,
                        price / list[i].prediction.throughput_samples_per_s, 1e-12);
            if (i > 0) assert_true(list[i - 1].cost_per_sample <= list[i].cost_per_sample);
        }
    }
    p.slow.system.operation.price_currency = "USD";
    assert_int_equal(search(&p, 64, DL_PLACE_COST, &list, &count, NULL), DL_ERR_USAGE);
    p.job.group_count = 1;
    assert_int_equal(search(&p, 64, DL_PLACE_COST, &list, &count, NULL), DL_OK);
    assert_int_equal(count, 2);
}

/* Two devices of one node as one stage: each has half of the micro-batch, and the gradients are
 * summed over the links of the node; over the network where they are two nodes. */
static void gradients_of_a_stage(void **state) {
    for (int64_t nodes = 1; nodes <= 2; nodes++) {
        struct pair p;
        struct dl_staged *list;
        int count;
        make_pair(&p, nodes, 0);
        p.fast.system.devices_per_node = nodes == 1 ? 2 : 1;
        p.fast.rate.peak_flop_per_s = p.fast.device.memory_bandwidth_bytes_per_s = 1e18;
        p.fast.workload.input_bytes_per_sample = 1;
        p.fast.workload.layer_count = 1; /* one layer is one stage */
        p.fast.workload.parameters = 2000.0 * 2000;
        assert_int_equal(search(&p, 1024, DL_PLACE_TIME, &list, &count, NULL), DL_OK);
        const struct dl_staged *one = with_nodes(list, count, nodes, 0);
        assert_non_null(one);
        assert_int_equal(one->count, 1);
        /* nearly all of the time */
        assert_int_equal(one->prediction.bottleneck, nodes == 1 ? DL_BOUND_INTRA : DL_BOUND_INTER);
        const struct dl_collective_request sum = {.op = DL_COLL_ALL_REDUCE,
                                                  .library = DL_LIB_NCCL,
                                                  .bytes = 4 * 2000.0 * 2000,
                                                  .nodes = nodes,
                                                  .ranks_per_node = nodes == 1 ? 2 : 1,
                                                  .flows_per_adapter = 1};
        struct dl_collective_time t;
        assert_int_equal(dl_collective_time(&p.fast.system, &sum, &t, NULL), DL_OK);
        check_close(one->prediction.exposed_comm_s, t.time_s, 1e-9);
        check_close(one->prediction.comm_s, t.time_s, 1e-9);
        assert_string_equal(one->stages[0].last, "dense0");
        assert_int_equal(one->stages[0].devices, 2);
    }
}

/* A stage has a sample for each of its devices: with micro-batches of two, no more than two of six;
 * with those of the search's choice, which reach from all samples to one, up to all of them. */
static void samples_for_every_device(void **state) {
    struct pair p;
    struct dl_staged *list;
    int count;
    make_pair(&p, 3, 0);
    p.fast.system.devices_per_node = 2;
    p.fast.workload.layer_count = 1;
    p.fast.workload.parameters = 2000.0 * 2000;
    for (int micro = 1; micro <= 8; micro *= 2) {
        const enum dl_code code = search(&p, micro, DL_PLACE_TIME, &list, &count, NULL);
        assert_int_equal(code, micro < 2 ? DL_ERR_NO : DL_OK);
        if (code != DL_OK) continue;
        assert_int_equal(count, micro == 2 ? 1 : micro == 4 ? 2 : 3);
        for (int n = 1; n <= 3; n++)
            assert_int_equal(with_nodes(list, count, n, 0) != NULL, 2 * n <= micro);
    }
    assert_int_equal(search(&p, 0, DL_PLACE_TIME, &list, &count, NULL), DL_OK);
    assert_int_equal(count, 3);
}

/* The host's work of an iteration is that of one; where messages between two stages take longest,
 * the network limits, although each stage sums its gradients inside its node. */
static void host_and_messages(void **state) {
    struct pair p;
    struct dl_staged *list;
    double overhead_s[2];
    int count;
    for (int host = 0; host < 2; host++) {
        make_pair(&p, 1, 0);
        p.fast.framework.host.iteration_s = host * 2e-3;
        assert_int_equal(search(&p, 128, DL_PLACE_TIME, &list, &count, NULL), DL_OK);
        overhead_s[host] = with_nodes(list, count, 1, 0)->prediction.overhead_s;
    }
    check_close(overhead_s[1] - overhead_s[0], 2e-3, 1e-9);
    make_pair(&p, 2, 0);
    p.fast.system.devices_per_node = 2;
    p.fast.system.inter.bandwidth_bytes_per_s = 2e8;
    assert_int_equal(search(&p, 512, DL_PLACE_TIME, &list, &count, NULL), DL_OK);
    const struct dl_staged *both = with_nodes(list, count, 2, 0);
    assert_non_null(both);
    assert_int_equal(both->count, 2); /* 64 MB of gradients would take longer than the messages */
    assert_true(both->prediction.exposed_comm_s > both->prediction.compute_s);
    assert_int_equal(both->prediction.bottleneck, DL_BOUND_INTER);
}

/* One device has nobody to sum gradients with, whatever the start of a collective takes; two take
 * that too. The stages of two nodes send a message each way for each micro-batch, which takes it as
 * well. */
static void starts_of_collectives(void **state) {
    double iteration_s[2][2], comm_s[2][2];
    for (int start = 0; start < 2; start++) {
        for (int64_t nodes = 1; nodes <= 2; nodes++) {
            struct pair p;
            struct dl_staged *list;
            int count;
            make_pair(&p, nodes, 0);
            p.fast.framework.sync.collective_launch_s = start * 1e-3;
            p.fast.workload.layer_count = 1; /* one layer is one stage */
            p.fast.workload.parameters = 2000.0 * 2000;
            assert_int_equal(search(&p, 1024, DL_PLACE_TIME, &list, &count, NULL), DL_OK);
            const struct dl_staged *one = with_nodes(list, count, nodes, 0);
            assert_non_null(one);
            iteration_s[start][nodes - 1] = one->prediction.iteration_s;
            comm_s[start][nodes - 1] = one->prediction.comm_s;
        }
    }
    check_close(iteration_s[1][0], iteration_s[0][0], 1e-12);
    check_close(comm_s[1][0], 0, 0);
    check_close(iteration_s[1][1] - iteration_s[0][1], 1e-3, 1e-6);
    check_close(comm_s[1][1] - comm_s[0][1], 1e-3, 1e-6);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_pipeline),
        cmocka_unit_test(two_kinds_by_hand),
        cmocka_unit_test(within_memory),
        cmocka_unit_test(figures),
        cmocka_unit_test(gradients_of_a_stage),
        cmocka_unit_test(starts_of_collectives),
        cmocka_unit_test(samples_for_every_device),
        cmocka_unit_test(host_and_messages),
        cmocka_unit_test(prices),
    };
    return cmocka_run_group_tests(tests, NULL, check_free);
}
