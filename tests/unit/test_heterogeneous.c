/* Jobs on nodes of different kinds, spare workers, samples that do not go evenly into devices. */
#include "model/search/heterogeneous.h"
#include "model/statistics/stats.h"
#include "model/engine/energy.h"
#include "tests/check.h"
#include "tests/fake.h"

/* A fast and a slow system: half the rate and bandwidth, twice the latencies; a slower network on
 * the fast one. */
struct pair {
    struct dl_fake fast, slow;
    struct dl_heterogeneous_group groups[2];
    struct dl_heterogeneous_job job;
};

static void make_pair(struct pair *p) {
    fake_make(&p->fast);
    fake_make(&p->slow);
    p->slow.rate.peak_flop_per_s /= 2;
    p->slow.device.memory_bandwidth_bytes_per_s /= 2;
    p->slow.device.kernel_latency_s *= 2;
    p->fast.system.inter.bandwidth_bytes_per_s = 6e9;
    p->fast.system.name = "fast", p->slow.system.name = "slow";
    p->groups[0] = (struct dl_heterogeneous_group){.system = &p->fast.system, .nodes = 3};
    p->groups[1] = (struct dl_heterogeneous_group){.system = &p->slow.system, .nodes = 1};
    p->job = (struct dl_heterogeneous_job){.groups = p->groups, .group_count = 2};
}

static enum dl_code mixed(struct pair *p, double samples, struct dl_prediction *out,
                          struct dl_err *err) {
    struct dl_plan plan = p->fast.plan, complete;
    plan.nodes = 0, plan.dp = 0, plan.devices_per_node = 0;
    plan.batch_per_device_samples = 0;
    plan.global_batch_samples = samples;
    const struct dl_heterogeneous_question question = {&p->job, &p->fast.workload,
                                                       &p->fast.framework, &plan};
    return dl_heterogeneous_predict(&question, false, &test_arena, &complete, out, err);
}

/* The step of 4 nodes all of one kind over the slow network. */
static double step_s(struct pair *p, bool slow, double batch) {
    struct dl_system system = slow ? p->slow.system : p->fast.system;
    struct dl_plan plan = p->fast.plan;
    struct dl_prediction out;
    system.inter = p->fast.system.inter;
    plan.nodes = 4, plan.dp = 0, plan.devices_per_node = 4;
    plan.batch_per_device_samples = batch, plan.global_batch_samples = 0;
    assert_int_equal(dl_plan_complete(&system, &p->fast.workload, &p->fast.framework, &plan, NULL),
                     DL_OK);
    assert_int_equal(
        dl_predict(&(struct dl_predict_request){&system, &p->fast.workload, &p->fast.framework,
                                                &plan, NULL, &test_arena},
                   &out, NULL),
        DL_OK);
    return out.iteration_s;
}

/* 16 devices, 80000 samples: 5000 a device, and the slow ones set the pace. F-HETEROGENEOUS */
static void equal_batches_wait_for_the_slowest(void **state) {
    struct pair p;
    struct dl_prediction out;
    make_pair(&p);
    assert_int_equal(mixed(&p, 80000, &out, NULL), DL_OK);
    const double fast_s = step_s(&p, false, 5000), slow_s = step_s(&p, true, 5000);
    assert_true(slow_s > 1.2 * fast_s);
    check_close(out.iteration_s, slow_s, 1e-12);
    check_close(out.throughput_samples_per_s, 80000 / slow_s, 1e-12);
    assert_int_equal(out.group_count, 2);
    check_close(out.groups[0].samples, 60000, 1e-12);
    check_close(out.groups[1].samples, 20000, 1e-12);
    check_close(out.groups[0].iteration_s, fast_s, 1e-12);
    check_close(out.groups[0].busy_frac, fast_s / slow_s, 1e-12);
    check_close(out.groups[1].busy_frac, 1, 1e-12);
}

/* Every split in whole samples, tried out: none is faster. 12 fast and 4 slow devices. */
static void balanced_is_the_best_of_all_splits(void **state) {
    const double counts[] = {80003, 8003, 1600, 17, 16};
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        struct pair p;
        struct dl_prediction equal, out;
        make_pair(&p);
        assert_int_equal(mixed(&p, counts[c], &equal, NULL), DL_OK);
        p.job.balanced = true;
        assert_int_equal(mixed(&p, counts[c], &out, NULL), DL_OK);
        double best_s = INFINITY;
        const double most = (counts[c] - 4) / 12; /* the slow devices have one each at least */
        for (double fast = fmax(1, floor(0.8 * counts[c] / 16)); fast <= ceil(most); fast++) {
            const double slow = fmax(1, ceil((counts[c] - 12 * fast) / 4));
            best_s = fmin(best_s, fmax(step_s(&p, false, fast), step_s(&p, true, slow)));
        }
        check_close(out.iteration_s, best_s, 1e-9);
        assert_true(out.iteration_s <= equal.iteration_s * (1 + 1e-12));
        check_close(out.groups[0].samples + out.groups[1].samples, counts[c], 1e-12);
        for (int g = 0; g < 2; g++) {
            const double devices = g == 0 ? 12 : 4, batch = out.groups[g].batch_per_device_samples;
            assert_true(batch >= 1 && batch == floor(batch));
            assert_true(out.groups[g].samples <= devices * batch &&
                        out.groups[g].samples > devices * (batch - 1) - 1e-9);
        }
    }
}

/* The same for other shares of nodes and slower kinds: the best split, or one that is as good to 3
 * parts in 10^4 where a step has kinks. */
static void balanced_whatever_the_kinds(void **state) {
    uint64_t seed = 5;
    int best = 0;
    for (int round = 0; round < 24; round++) {
        static const double slower[] = {1.25, 3, 12};
        struct pair p;
        struct dl_prediction out;
        make_pair(&p);
        p.slow.rate.peak_flop_per_s *= 2 / slower[round % 3];
        p.slow.device.memory_bandwidth_bytes_per_s *= 2 / slower[round % 3];
        p.groups[0].nodes = 1 + round % 3, p.groups[1].nodes = 4 - p.groups[0].nodes;
        const double fast_devices = 4 * (double)p.groups[0].nodes, slow_devices = 16 - fast_devices,
                     samples = 16 + floor((double)(check_random(&seed) >> 40) / (1 << 24) *
                                          (round < 12 ? 500 : 20000));
        p.job.balanced = true;
        assert_int_equal(mixed(&p, samples, &out, NULL), DL_OK);
        double best_s = INFINITY, low = 1,
               high = floor((samples - slow_devices) / fast_devices) + 1;
        /* the fast kind's step grows and the slow kind's falls: where they cross */
        while (high - low > 1) {
            const double middle = floor((low + high) / 2),
                         rest = fmax(1, ceil((samples - fast_devices * middle) / slow_devices));
            *(step_s(&p, false, middle) < step_s(&p, true, rest) ? &low : &high) = middle;
        }
        for (double fast = low; fast <= high; fast++) {
            const double rest = fmax(1, ceil((samples - fast_devices * fast) / slow_devices));
            best_s = fmin(best_s, fmax(step_s(&p, false, fast), step_s(&p, true, rest)));
        }
        best += out.iteration_s <= best_s * (1 + 1e-9);
        check_close(out.iteration_s, best_s, 3e-4);
        check_close(out.groups[0].samples + out.groups[1].samples, samples, 1e-12);
    }
    assert_true(best > 20);
}

/* One kind in two groups is a plain job, balanced or not. */
static void the_same_nodes_twice_change_nothing(void **state) {
    for (int balanced = 0; balanced < 2; balanced++) {
        struct pair p;
        struct dl_prediction out;
        make_pair(&p);
        p.groups[1].system = p.groups[0].system;
        p.job.balanced = balanced == 1;
        assert_int_equal(mixed(&p, 8000, &out, NULL), DL_OK);
        check_close(out.iteration_s, step_s(&p, false, 500), 1e-12);
        check_close(out.groups[0].samples, 6000, 1e-12);
    }
}

/* Which of two networks sets the pace of both, whatever their order: the lower rate of all adapters
 * (what NCCL reaches, where it is known), then the later one, the one that costs hosts more, the
 * one without RDMA, the first by name. Collectives that were measured over the other do not count.
 */
static void the_slowest_network(void **state) {
    enum { CASES = 9 };
    for (int which = 0; which < CASES; which++) {
        struct dl_fake f;
        fake_make(&f);
        struct dl_system slow = f.system, fast = f.system;
        slow.name = "a", fast.name = "b"; /* equal in all else: the first by name */
        slow.has_fabric = true, slow.fabric.oversubscription = 3;
        fast.collective_count = 2, slow.collective_count = 1;
        if (which > 0) slow.name = "c";
        switch (which) {
        case 0: break;
        case 1: slow.inter.bandwidth_bytes_per_s /= 2, fast.inter.latency_s *= 2; break;
        case 2:
            slow.inter.latency_s *= 2, fast.inter.per_message_cpu_s = 1e-6;
            fast.inter.rdma = false;
            break;
        case 3: slow.inter.per_message_cpu_s = 1e-6, fast.inter.rdma = false; break;
        case 4: slow.inter.rdma = false; break;
        case 5: fast.inter.adapters_per_node = 2; break;
        case 6: slow.inter.nccl_bandwidth_bytes_per_s = 11e9; break;
        case 7: slow.has_inter = false; break;
        default: slow.inter.bandwidth_bytes_per_s = NAN, fast.inter.adapters_per_node = DL_ABSENT;
        }
        for (int order = 0; order < 2; order++) {
            struct dl_system *out;
            const struct dl_heterogeneous_group groups[] = {
                {.system = order == 0 ? &slow : &fast, .nodes = 2},
                {.system = order == 0 ? &fast : &slow, .nodes = 1}};
            assert_int_equal(dl_heterogeneous_systems(groups, 2, 7, &test_arena, &out, NULL),
                             DL_OK);
            const struct dl_system *of_slow = &out[order], *of_fast = &out[1 - order];
            if (of_fast->fabric.oversubscription != 3) fail_msg("case %d", which);
            assert_true(of_fast->has_fabric);
            assert_int_equal(of_fast->has_inter, slow.has_inter);
            check_close(of_fast->inter.latency_s, slow.inter.latency_s, 0);
            check_close(of_fast->inter.bandwidth_bytes_per_s, slow.inter.bandwidth_bytes_per_s, 0);
            assert_int_equal(of_fast->collective_count, 0);
            assert_int_equal(of_slow->collective_count, 1);
            assert_int_equal(of_fast->nodes, 7);
            assert_int_equal(of_slow->nodes, 7);
            assert_string_equal(of_fast->name, "b");
        }
    }
}

/* All figures of the job: the slowest group's step, the samples of all, the epoch of the network or
 * of the dataset that is given, memory and power of each group; what waits draws less. */
static void figures_of_the_job(void **state) {
    struct pair p;
    struct dl_prediction out;
    make_pair(&p);
    p.fast.device.power.tdp_w = p.slow.device.power.tdp_w = 300;
    assert_int_equal(mixed(&p, 80000, &out, NULL), DL_OK);
    const double slow_s = step_s(&p, true, 5000), fast_s = step_s(&p, false, 5000);
    check_close(out.epoch_s, p.fast.workload.epoch_samples * slow_s / 80000, 1e-12);
    assert_true(out.fits);
    assert_true(out.groups[0].fits && out.groups[1].fits);
    check_close(out.groups[0].batch_per_device_samples, 5000, 0);
    /* 12 devices of 16 keep their own rate without the others: 5000 each in fast_s */
    struct dl_plan plan = p.fast.plan;
    plan.nodes = 4, plan.devices_per_node = 4, plan.dp = 0, plan.batch_per_device_samples = 5000;
    struct dl_prediction of[2];
    double alone = 0;
    for (int slow = 0; slow < 2; slow++) {
        struct dl_system system = slow ? p.slow.system : p.fast.system;
        struct dl_plan own = plan;
        system.inter = p.fast.system.inter;
        assert_int_equal(dl_plan_complete(&system, &p.fast.workload, &p.fast.framework, &own, NULL),
                         DL_OK);
        assert_int_equal(
            dl_predict(&(struct dl_predict_request){&system, &p.fast.workload, &p.fast.framework,
                                                    &own, NULL, &test_arena},
                       &of[slow], NULL),
            DL_OK);
        alone += (slow ? 4 : 12) * 5000 / (of[slow].scaling_efficiency * of[slow].iteration_s);
        check_close(out.groups[slow].memory.total_bytes, of[slow].memory.total_bytes, 1e-12);
        const struct dl_plan mine = {.nodes = slow ? 1 : 3, .devices_per_node = 4};
        of[slow].iteration_s = slow_s;
        check_close(out.groups[slow].power_w, dl_power_of(&system, &mine, &of[slow], NULL).job_w,
                    1e-12);
    }
    check_close(out.scaling_efficiency, 80000 / slow_s / alone, 1e-12);
    assert_true(fast_s < slow_s);
    /* memory for half of it: that group does not fit, so neither does the job */
    p.slow.device.memory_bytes = out.groups[1].memory.total_bytes / 2;
    p.fast.plan.input.dataset_samples = 123;
    assert_int_equal(mixed(&p, 80000, &out, NULL), DL_OK);
    assert_false(out.fits);
    assert_true(out.groups[0].fits && !out.groups[1].fits);
    check_close(out.epoch_s, 123 * slow_s / 80000, 1e-12);
}

/* Order statistics of normal variables from tables (Harter 1961): of 4 the 3rd 0.29701, of 5 the
 * 4th 0.49502, the middle of 3 is 0; the largest of pairs: of 2 pairs the largest of 4. F-BACKUP */
static void order_statistics(void **state) {
    check_close(dl_normal_expected_order(3, 4, 1), 0.2970113823, 1e-6);
    check_close(dl_normal_expected_order(4, 5, 1), 0.4950189705, 1e-6);
    check_close(dl_normal_expected_order(1, 2, 1), -0.5641895835, 1e-6);
    assert_true(fabs(dl_normal_expected_order(2, 3, 1)) < 1e-9);
    check_close(dl_normal_expected_order(2, 2, 2), 1.0293753730, 1e-6);
    check_close(dl_normal_expected_order(1024, 1024, 1), dl_normal_expected_max(1024), 1e-3);
    check_close(dl_normal_expected_order(64, 64, 8), dl_normal_expected_max(512), 1e-3);
    assert_true(isnan(dl_normal_expected_order(5, 4, 1)) &&
                isnan(dl_normal_expected_order(0, 4, 1)));
    assert_true(dl_normal_expected_order(90, 100, 4) < dl_normal_expected_order(91, 100, 4));
}

/* 8 workers of 4 devices, 2 spare: waiting for the 6th of 8 largest of 4 instead of the largest of
 * 32; 6/8 of the samples count. */
static void spare_workers(void **state) {
    struct dl_fake f;
    struct dl_prediction all, spare;
    fake_make(&f);
    fake_behaviour(&f.framework, "parameter-server");
    f.framework.sync.library = DL_LIB_GRPC;
    f.framework.sync.messages.message_copy_bytes_per_s = NAN;
    f.system.jitter_frac = 0.05;
    f.plan.nodes = 8, f.plan.dp = 0;
    assert_int_equal(fake_predict(&f, &all), DL_OK);
    f.plan.backup_workers = 2;
    assert_int_equal(fake_predict(&f, &spare), DL_OK);
    const double saved =
        0.05 * (dl_normal_expected_max(32) - dl_normal_expected_order(6, 8, 4)) * all.compute_s;
    assert_true(saved > 0);
    check_close(all.overhead_s - spare.overhead_s, saved, 1e-9);
    check_close(spare.throughput_samples_per_s,
                0.75 * all.throughput_samples_per_s * all.iteration_s / spare.iteration_s, 1e-12);
    bool said = false;
    for (int i = 0; i < spare.warning_count; i++)
        said = said || strstr(spare.warnings[i], "2 of 8 workers (25 %)") != NULL;
    assert_true(said);
    f.plan.backup_workers = 8;
    assert_int_equal(fake_predict(&f, &spare), DL_ERR_USAGE);
    f.plan.backup_workers = 1;
    fake_behaviour(&f.framework, "bucketed");
    f.framework.sync.library = DL_LIB_NCCL;
    assert_int_equal(fake_predict(&f, &spare), DL_ERR_USAGE);
}

/* 10 samples on 4 devices: two have 3. The step is that of 3 a device, the rate that of 10. */
static void samples_that_do_not_go_evenly(void **state) {
    struct dl_fake f;
    struct dl_prediction odd, three;
    fake_make(&f);
    f.plan.nodes = 1, f.plan.dp = 0;
    f.plan.batch_per_device_samples = 3, f.plan.global_batch_samples = 0;
    assert_int_equal(fake_predict(&f, &three), DL_OK);
    f.plan.dp = 0;
    f.plan.batch_per_device_samples = 0, f.plan.global_batch_samples = 10;
    assert_int_equal(fake_predict(&f, &odd), DL_OK);
    check_close(odd.iteration_s, three.iteration_s, 1e-12);
    check_close(odd.throughput_samples_per_s, 10 / three.iteration_s, 1e-12);
    bool said = false;
    for (int i = 0; i < odd.warning_count; i++)
        said = said ||
               strstr(odd.warnings[i], "10 samples do not divide evenly among 4 devices") != NULL;
    assert_true(said);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_batches_wait_for_the_slowest),
        cmocka_unit_test(balanced_is_the_best_of_all_splits),
        cmocka_unit_test(balanced_whatever_the_kinds),
        cmocka_unit_test(the_same_nodes_twice_change_nothing),

        cmocka_unit_test(the_slowest_network),
        cmocka_unit_test(figures_of_the_job),

        cmocka_unit_test(order_statistics),
        cmocka_unit_test(spare_workers),
        cmocka_unit_test(samples_that_do_not_go_evenly),
    };
    return cmocka_run_group_tests(tests, NULL, check_free);
}
