/* Workers, parameter servers and decoding on kinds of nodes (F-HETEROGENEOUS-PARTS). */
#include "model/framework/servers.h"
#include "model/search/parts.h"
#include "tests/check.h"
#include "tests/gradient_bench.h"

struct two {
    struct bench b; /* its system is the workers' */
    struct dl_system cpu;
    struct dl_heterogeneous_group groups[2];
    struct dl_heterogeneous_job job;
};

/* CPU nodes with twice the network of the workers' and 10 times the cores. */
static void make_two(struct two *t) {
    const double sizes[] = {70e6, 10e6}, ready[] = {1, 2};
    make(&t->b, 2, sizes, ready);
    t->b.fake.framework.sync.messages.servers_colocated = true;
    fake_behaviour(&t->b.fake.framework, "parameter-server");
    t->b.fake.system.inter.bandwidth_bytes_per_s = 1e9;
    t->b.fake.device.power.tdp_w = 200;
    t->cpu = t->b.fake.system;
    t->cpu.name = "cpu";
    t->cpu.inter.bandwidth_bytes_per_s = 2e9;
    t->cpu.host.memory_bandwidth_bytes_per_s = 100e9;
    t->cpu.host.cores = 280;
    t->groups[0] = (struct dl_heterogeneous_group){.system = &t->b.fake.system, .nodes = 2};
    t->groups[1] = (struct dl_heterogeneous_group){.system = &t->cpu, .nodes = 2};
    t->job = (struct dl_heterogeneous_job){.groups = t->groups, .group_count = 2};
}

/* Two workers of 1 GB/s and one server of 2 GB/s apart from them: all bytes leave the worker, 1 ns
 * each; the server takes those of both at 2 x 0.5 = 1 ns, its memory 3 bytes of 100 GB/s, 0.03 ns.
 * Next to the workers (one server): 1 ns, and one worker's bytes come from the other node: 1 ns. */
static void servers_apart(void **state) {
    struct two t;
    struct dl_servers s;
    struct dl_err err = {0};
    make_two(&t);
    struct dl_plan plan = t.b.fake.plan;
    plan.nodes = 2, plan.devices_per_node = 1, plan.parameter_servers.count = 1;
    const struct dl_gradient_sync_request r = {.system = &t.b.fake.system,
                                               .workload = &t.b.fake.workload,
                                               .framework = &t.b.fake.framework,
                                               .plan = &plan,
                                               .arena = &test_arena};
    assert_int_equal(dl_servers_of(&r, &s, &err), DL_OK);
    check_close(s.worker_push_s_per_byte, 1e-9, 1e-12);
    check_close(s.server_push_s_per_byte, 1e-9, 1e-12);
    plan.parameter_servers.nodes = &t.cpu;
    assert_int_equal(dl_servers_of(&r, &s, &err), DL_OK);
    check_close(s.worker_push_s_per_byte, 1e-9, 1e-12);
    check_close(s.server_push_s_per_byte, 1e-9, 1e-12);
    plan.parameter_servers.count =
        2; /* each half of the variables, so a byte still meets one server */
    t.cpu.inter.bandwidth_bytes_per_s = 0.5e9;
    assert_int_equal(dl_servers_of(&r, &s, &err), DL_OK);
    check_close(s.server_push_s_per_byte, 4e-9, 1e-12);
    check_close(dl_servers_sum_s(&r, 1e9, 2), 3 * 1e9 / 100e9, 1e-12);
    t.cpu.has_inter = false;
    assert_int_equal(dl_servers_of(&r, &s, &err), DL_ERR_INPUT);
    check_contains(err.message, "cpu");
}

static enum dl_code search(struct two *t, enum dl_placement_objective objective,
                           struct dl_role_assignment **out, int *count, struct dl_err *err) {
    struct dl_plan plan = t->b.fake.plan;
    plan.nodes = 0, plan.dp = 0, plan.devices_per_node = 0;
    const struct dl_heterogeneous_question question = {&t->job, &t->b.fake.workload,
                                                       &t->b.fake.framework, &plan};
    return dl_parts_search(&question, objective, &test_arena, out, count, err);
}

/* Workers on 1 or 2 nodes of either kind; servers next to them or on what is left. Of one
 * kind's two nodes: 1 worker node leaves 1 there and 2 of the other kind, 2 leave 2: (1 + 1 +
 * 2) + (1 + 2) = 7, for both kinds 14. With input likewise: worker nodes 1: servers none, 1
 * own, 1 or 2 other; each with input none or on what is left: (1 + 1 + 2) + (1 + 0 + 2) + (1 +
 * 1 + 1) + (1 + 1 + 0) = 12; worker nodes 2: (1 + 2) + (1 + 1) + (1 + 0) = 6; 36 for both
 * kinds. */
static void by_hand(void **state) {
    struct two t;
    struct dl_role_assignment *list;
    struct dl_err err = {0};
    int count;
    make_two(&t);
    assert_int_equal(search(&t, DL_PLACE_TIME, &list, &count, &err), DL_OK);
    assert_int_equal(count, 14);
    for (int i = 1; i < count; i++) assert_true(list[i - 1].samples_per_s >= list[i].samples_per_s);
    t.b.fake.plan.input.synthetic = false;
    t.b.fake.plan.input.sample_bytes = 1e5;
    t.b.fake.plan.input.dataset_samples = 1e4;
    t.b.fake.plan.input.decode_s_per_sample = 0.1;
    assert_int_equal(search(&t, DL_PLACE_TIME, &list, &count, &err), DL_OK);
    assert_int_equal(count, 36);
    /* 28 cores decode 280 samples/s, 280 decode 2,800: that limits every choice */
    assert_true(list[0].input_kind == 1 || list[0].worker_kind == 1);
    assert_true(list[0].samples_per_s <= 5600 * (1 + 1e-9));
    assert_int_equal(search(&t, DL_PLACE_ENERGY, &list, &count, &err), DL_OK);
    for (int i = 1; i < count; i++)
        assert_true(list[i - 1].sample_energy_j <= list[i].sample_energy_j);
    /* of these, the one that needs no further nodes: 4 devices of 200 W and 30 % for the host at
     * most */
    const struct dl_role_assignment *least = &list[0];
    const int64_t nodes = least->worker_nodes + least->server_nodes + least->input_nodes;
    assert_true(least->sample_energy_j * least->samples_per_s <=
                (double)nodes * 4 * 200 * 1.3 * (1 + 1e-9));
    assert_int_equal(search(&t, DL_PLACE_COST, &list, &count, &err), DL_ERR_USAGE);
    check_contains(err.message, "price");
}

/* Workers alone, with servers next to them, are the prediction of their plan; every choice costs
 * the hours of its nodes, 3.60 an hour or 7.20, so 1 or 2 thousandths a second. */
static void figures_of_a_choice(void **state) {
    struct two t;
    struct dl_role_assignment *list;
    struct dl_err err = {0};
    int count, checked = 0;
    make_two(&t);
    t.b.fake.system.operation.price_per_node_hour = 3.6, t.cpu.operation.price_per_node_hour = 7.2;
    t.b.fake.system.operation.price_currency = t.cpu.operation.price_currency = "EUR";
    assert_int_equal(search(&t, DL_PLACE_COST, &list, &count, &err), DL_OK);
    assert_int_equal(count, 14);
    for (int i = 0; i < count; i++) {
        const struct dl_role_assignment *p = &list[i];
        const int64_t nodes[2] = {
            (p->worker_kind == 0) * p->worker_nodes + (p->server_kind == 0) * p->server_nodes,
            (p->worker_kind == 1) * p->worker_nodes + (p->server_kind == 1) * p->server_nodes};
        assert_true(nodes[0] <= 2 && nodes[1] <= 2 && p->input_kind == -1 && p->input_nodes == 0);
        check_close(p->cost_per_sample,
                    (1e-3 * (double)nodes[0] + 2e-3 * (double)nodes[1]) / p->samples_per_s, 1e-12);
        if (i > 0) assert_true(list[i - 1].cost_per_sample <= p->cost_per_sample);
        assert_true(p->low_samples_per_s < p->samples_per_s &&
                    p->samples_per_s < p->high_samples_per_s);
        if (p->server_kind >= 0) continue;
        struct dl_plan plan = t.b.fake.plan;
        struct dl_prediction whole;
        const struct dl_system *system = p->worker_kind == 0 ? &t.b.fake.system : &t.cpu;
        plan.nodes = p->worker_nodes, plan.dp = 0, plan.devices_per_node = 4;
        assert_int_equal(
            dl_plan_complete(system, &t.b.fake.workload, &t.b.fake.framework, &plan, &err), DL_OK);
        assert_int_equal(
            dl_predict(&(struct dl_predict_request){system, &t.b.fake.workload, &t.b.fake.framework,
                                                    &plan, NULL, &test_arena},
                       &whole, &err),
            DL_OK);
        check_close(p->iteration_s, whole.iteration_s, 1e-12);
        check_close(p->exposed_comm_s, whole.exposed_comm_s, 1e-12);
        check_close(p->exposed_input_s, whole.exposed_input_s, 1e-12);
        check_close(p->samples_per_s, whole.throughput_samples_per_s, 1e-12);
        const double samples = whole.throughput_samples_per_s * whole.iteration_s;
        check_close(p->low_samples_per_s, samples / whole.iteration_high_s, 1e-12);
        check_close(p->high_samples_per_s, samples / whole.iteration_low_s, 1e-12);
        assert_int_equal(p->fits, whole.fits);
        checked++;
    }
    assert_int_equal(checked, 4);
    t.cpu.operation.price_currency = "USD";
    assert_int_equal(search(&t, DL_PLACE_COST, &list, &count, &err), DL_ERR_USAGE);
    assert_string_equal(err.message, "--objective cost: no price in one currency of every kind of "
                                     "node is known");
    t.b.fake.device.power.tdp_w = NAN;
    assert_int_equal(search(&t, DL_PLACE_ENERGY, &list, &count, &err), DL_ERR_USAGE);
    assert_string_equal(err.message, "--objective energy: no power of every kind of node is known");
    assert_int_equal(search(&t, DL_PLACE_TIME, &list, &count, &err), DL_OK);
    assert_int_equal(count, 14);
}
int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(servers_apart),
        cmocka_unit_test(by_hand),
        cmocka_unit_test(figures_of_a_choice),
    };
    return cmocka_run_group_tests(tests, NULL, check_free);
}
