/* Which nodes of two kinds serve one job (F-HETEROGENEOUS-NODES): every choice once, each as it
 * is predicted alone, in the order of the objective; and why there is none. */
#include "model/engine/energy.h"
#include "model/search/placement.h"
#include "tests/check.h"
#include "tests/fake.h"

struct pair {
    struct dl_fake fast, slow;
    struct dl_heterogeneous_group groups[2];
    struct dl_heterogeneous_job job;
    struct dl_plan plan;
    struct dl_heterogeneous_question question;
};

static void make(struct pair *p, int64_t fast, int64_t slow) {
    fake_make(&p->fast);
    fake_make(&p->slow);
    p->slow.rate.peak_flop_per_s /= 2;
    p->fast.system.name = "fast", p->slow.system.name = "slow";
    p->fast.device.power.tdp_w = 300, p->slow.device.power.tdp_w = 200;
    p->fast.device.power.load_w = p->fast.device.power.idle_w = p->slow.device.power.load_w =
        p->slow.device.power.idle_w = NAN;
    p->fast.system.operation.host_w = p->slow.system.operation.host_w = 400;
    p->fast.system.operation.pue = p->slow.system.operation.pue = NAN;
    p->fast.system.operation.price_per_node_hour = 9,
    p->slow.system.operation.price_per_node_hour = 2;
    p->fast.system.operation.price_currency = p->slow.system.operation.price_currency = "USD";
    p->groups[0] = (struct dl_heterogeneous_group){.system = &p->fast.system, .nodes = fast};
    p->groups[1] = (struct dl_heterogeneous_group){.system = &p->slow.system, .nodes = slow};
    p->job = (struct dl_heterogeneous_job){.groups = p->groups, .group_count = 2};
    p->plan = p->fast.plan;
    p->plan.nodes = p->plan.dp = p->plan.devices_per_node = 0;
    p->plan.batch_per_device_samples = 0, p->plan.global_batch_samples = 960;
    p->question = (struct dl_heterogeneous_question){&p->job, &p->fast.workload, &p->fast.framework,
                                                     &p->plan};
}

static double value(const struct dl_subset *s, enum dl_placement_objective objective) {
    return objective == DL_PLACE_TIME     ? 1 / s->samples_per_s
           : objective == DL_PLACE_ENERGY ? s->sample_energy_j
                                          : s->cost_per_sample;
}

/* 3 x 2 - 1 = 5 choices of nodes, of which 2 have both kinds and are also balanced. */
static void every_choice_in_order(void **state) {
    struct pair p;
    for (int objective = DL_PLACE_TIME; objective <= DL_PLACE_COST; objective++) {
        struct dl_subset *list;
        struct dl_err err = {0};
        int count, seen[3][2][2] = {0};
        make(&p, 2, 1);
        if (dl_subsets(&p.question, (enum dl_placement_objective)objective, &test_arena, &list,
                       &count, &err) != DL_OK)
            fail_msg("%s", err.message);
        assert_int_equal(count, 7);
        for (int i = 0; i < count; i++) {
            const struct dl_subset *s = &list[i];
            seen[s->nodes[0]][s->nodes[1]][s->balanced]++;
            if (i > 0)
                assert_true(value(&list[i - 1], (enum dl_placement_objective)objective) <=
                            value(s, (enum dl_placement_objective)objective));
            struct dl_heterogeneous_group groups[2];
            struct dl_heterogeneous_job job = {.groups = groups, .balanced = s->balanced};
            for (int k = 0; k < 2; k++)
                if (s->nodes[k] > 0)
                    groups[job.group_count++] = (struct dl_heterogeneous_group){
                        .system = p.groups[k].system, .nodes = s->nodes[k]};
            struct dl_plan complete;
            struct dl_prediction alone;
            assert_int_equal(dl_heterogeneous_predict(
                                 &(struct dl_heterogeneous_question){&job, &p.fast.workload,
                                                                     &p.fast.framework, &p.plan},
                                 false, &test_arena, &complete, &alone, &err),
                             DL_OK);
            check_close(s->samples_per_s, alone.throughput_samples_per_s, 1e-12);
            check_close(s->iteration_s, alone.iteration_s, 1e-12);
            check_close(s->low_samples_per_s * alone.iteration_high_s, 960, 1e-9);
            check_close(s->high_samples_per_s * alone.iteration_low_s, 960, 1e-9);
            check_close(s->cost_per_sample * s->samples_per_s * 3600,
                        9.0 * (double)s->nodes[0] + 2.0 * (double)s->nodes[1], 1e-9);
            assert_int_equal(s->fits, alone.fits);
        }
        for (int a = 0; a < 3; a++)
            for (int b = 0; b < 2; b++) {
                assert_int_equal(seen[a][b][0], a + b > 0);
                assert_int_equal(seen[a][b][1], a > 0 && b > 0);
            }
    }
}

/* Those that do not fit come last, whatever they cost. */
static void what_does_not_fit_is_last(void **state) {
    struct pair p;
    struct dl_subset *list;
    int count;
    make(&p, 2, 2);
    p.fast.device.memory_bytes = 1e9; /* too small for the network's states */
    assert_int_equal(dl_subsets(&p.question, DL_PLACE_TIME, &test_arena, &list, &count, NULL),
                     DL_OK);
    assert_true(list[0].fits && !list[count - 1].fits);
    for (int i = 1; i < count; i++) assert_true(list[i - 1].fits || !list[i].fits);
    assert_int_equal(list[0].nodes[0], 0);
}

/* 99 nodes of each are too many to try all: powers of two, and all of a kind. */
static void many_nodes_by_powers_of_two(void **state) {
    struct pair p;
    struct dl_subset *list;
    int count, largest = 0;
    make(&p, 99, 99);
    p.plan.global_batch_samples = 8 * 9900;
    assert_int_equal(dl_subsets(&p.question, DL_PLACE_TIME, &test_arena, &list, &count, NULL),
                     DL_OK);
    for (int i = 0; i < count; i++)
        for (int k = 0; k < 2; k++) {
            const int64_t n = list[i].nodes[k];
            assert_true(n == 99 || (n & (n - 1)) == 0);
            largest += n == 99 && list[i].nodes[1 - k] == 99;
        }
    assert_true(largest > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_choice_in_order),
        cmocka_unit_test(what_does_not_fit_is_last),
        cmocka_unit_test(many_nodes_by_powers_of_two),
    };
    return cmocka_run_group_tests(tests, NULL, check_free);
}
