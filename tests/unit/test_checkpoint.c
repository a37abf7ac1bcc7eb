/* Checkpoints: Young's and Daly's interval against a table found by minimizing the expected time,
 * what one costs by hand, who writes it, and what is refused (F-CKPT-YOUNG, F-CKPT-DALY,
 * F-CKPT-TIME, F-CKPT-COST). */
#include "model/search/checkpoint.h"
#include "tests/check.h"
#include "tests/fake.h"

/* Least expected time, by golden section over the interval. */
static double best_interval_s(double write_s, double mtbf_s) {
    const double golden = (sqrt(5.0) - 1) / 2;
    double low = 1, high = 10 * mtbf_s;
    while (high - low > 1e-4) {
        const double a = high - golden * (high - low), b = low + golden * (high - low);
        if (dl_checkpoint_stretch_ratio(a, write_s, mtbf_s, 0) <
            dl_checkpoint_stretch_ratio(b, write_s, mtbf_s, 0))
            high = b;
        else
            low = a;
    }
    return (low + high) / 2;
}

static void intervals(void **state) {
    static const struct {
        double write_s, mtbf_s, best_s, young_s, daly_s;
    } rows[] = {
        {60, 86400, 3180.0, 3219.9, 3180.1}, {300, 86400, 7001.5, 7200.0, 7001.4},
        {60, 3600, 618.0, 657.3, 617.9},     {300, 3600, 1277.0, 1469.7, 1276.5},
        {600, 3600, 1699.0, 2078.5, 1697.7},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const double d = rows[i].write_s, m = rows[i].mtbf_s;
        assert_float_equal(dl_checkpoint_young_s(d, m), rows[i].young_s, 0.06);
        assert_float_equal(dl_checkpoint_daly_s(d, m), rows[i].daly_s, 0.06);
        const double best_s = best_interval_s(d, m),
                     least = dl_checkpoint_stretch_ratio(best_s, d, m, 0);
        /* the minimum is flat, and the table's is of coarser steps */
        assert_float_equal(best_s, rows[i].best_s, 0.3);
        assert_true(dl_checkpoint_stretch_ratio(dl_checkpoint_young_s(d, m), d, m, 0) <
                    1.0101 * least);
        assert_true(dl_checkpoint_stretch_ratio(dl_checkpoint_daly_s(d, m), d, m, 0) <
                    1.00005 * least);
    }
    check_close(dl_checkpoint_daly_s(8000, 3600), 3600, 0); /* longer than two failures are apart */
}

/* M = 1000, t = 90, d = 10, R = 0: 1000 (e^0.1 - 1) / 90 = 105.1709 / 90. A restart of 100 s: times
 * e^0.1. */
static void expected_time(void **state) {
    check_close(dl_checkpoint_stretch_ratio(90, 10, 1000, 0), 1.1685657, 1e-7);
    check_close(dl_checkpoint_stretch_ratio(90, 10, 1000, 100), 1.1685657 * 1.1051709, 1e-7);
    /* no failures, free checkpoints */
    check_close(dl_checkpoint_stretch_ratio(100, 0, 1e12, 0), 1, 1e-9);
}

static struct dl_prediction prediction = {.iteration_s = 2, .epoch_s = 1000};

static enum dl_code plan(struct dl_fake *f, double interval_s, struct dl_checkpoint *out,
                         struct dl_err *err) {
    const struct dl_checkpoint_way way = {.interval_s = interval_s};
    return dl_checkpoint_plan(&f->system, &f->workload, &f->plan, &prediction, &way, out, err);
}

static void make(struct dl_fake *f) {
    fake_make(f);
    f->workload.parameters = 1e9; /* fp32 with momentum: 8 bytes a parameter */
    f->workload.buffer_elements = 0;
    f->system.operation.node_mtbf_s = 2e6, f->system.operation.restart_s = 60;
    f->system.has_storage = true;
    f->system.storage = (struct dl_storage){.read_bytes_per_s = NAN,
                                            .write_bytes_per_s = 2e9,
                                            .total_read_bytes_per_s = NAN,
                                            .total_write_bytes_per_s = NAN,
                                            .local_write_bytes_per_s = NAN,
                                            .local_recovery_frac = NAN,
                                            .open_s = NAN};
}

/* 8 GB: out of the device at 12 GB/s and to storage at 2 GB/s: 0.667 + 4 s, from the one node of
 * rank 0. Two nodes fail every 1e6 s: Young sqrt(2 x 4.667 x 1e6) = 3055 s. */
static void by_hand(void **state) {
    struct dl_fake f;
    struct dl_checkpoint c;
    make(&f);
    assert_int_equal(plan(&f, 0, &c, NULL), DL_OK);
    check_close(c.bytes, 8e9, 0);
    assert_int_equal(c.writer_nodes, 1);
    check_close(c.write_s, 8.0 / 12 + 4, 1e-12);
    check_close(c.job_mtbf_s, 1e6, 0);
    check_close(c.young_s, 3055.05, 1e-5);
    check_close(c.steps, round(dl_checkpoint_daly_s(c.write_s, 1e6) / 2), 0);
    check_close(c.interval_s, 2 * c.steps, 0);
    check_close(c.loss_s, c.interval_s / 2 + 60, 1e-12);
    check_close(c.epoch_s, 1000 * c.stretch_ratio, 1e-12);
    assert_int_equal(plan(&f, 601, &c, NULL), DL_OK); /* 300.5 iterations: whole ones */
    assert_true(c.steps == 300 || c.steps == 301);
    f.plan.optimizer = DL_ADAM; /* 12 bytes */
    assert_int_equal(plan(&f, 0, &c, NULL), DL_OK);
    check_close(c.bytes, 12e9, 0);
    f.workload.buffer_elements = 1e6; /* statistics are fp32 */
    assert_int_equal(plan(&f, 0, &c, NULL), DL_OK);
    check_close(c.bytes, 12e9 + 4e6, 0);
    f.plan.precision = DL_MIXED, f.plan.optimizer = DL_SGD; /* both copies of the weights */
    assert_int_equal(plan(&f, 0, &c, NULL), DL_OK);
    check_close(c.bytes, 6e9 + 4e6, 0);
}

/* Shared out, both nodes write: 8 GB at 4 GB/s; each of 8 devices copies 1 GB, two of them over one
 * link: 2 / 12 s. A file system that takes 3 GB/s in all holds them to that. */
static void shared_out(void **state) {
    struct dl_fake f;
    struct dl_checkpoint c;
    make(&f);
    f.plan.strategy = dl_strategy_find("zero3");
    assert_int_equal(plan(&f, 0, &c, NULL), DL_OK);
    assert_int_equal(c.writer_nodes, 2);
    check_close(c.write_s, 2.0 / 12 + 2, 1e-12);
    f.system.storage.total_write_bytes_per_s = 3e9;
    assert_int_equal(plan(&f, 0, &c, NULL), DL_OK);
    check_close(c.write_s, 2.0 / 12 + 8.0 / 3, 1e-12);
}

/* d1 = 5, d2 = 100, M = 10000, f = 0.8: t1 = sqrt(125000) = 353.553, t2 = sqrt(1e7) = 3162.28, n =
 * round(8.94) = 9: one of 9 goes to the file system. Waste (5 x 8 + 100)/9/353.553 + (0.8 x
 * 353.553/2 + 0.2 x 3181.98/2 + 10)/10000 = 0.0439983 + 0.0469620. */
static void two_levels(void **state) {
    const struct dl_two_levels two = dl_checkpoint_two_level(5, 100, 1e4, 10, 0.8);
    check_close(two.local_interval_s, 353.5534, 1e-6);
    check_close(two.global_interval_s, 3181.981, 1e-6);
    check_close(two.goodput_frac, 1 / (1 + 0.0439983 + 0.0469620), 1e-6);
}

/* An asynchronous format blocks for the copies; a failure costs what is not complete too. */
static void asynchronous(void **state) {
    struct dl_fake f;
    struct dl_checkpoint c;
    const struct dl_checkpoint_cost cost = {.cached_s_per_byte = 1e-9, .large_s_per_byte = 1e-9},
                                    blocking = {.cached_s_per_byte = 0.25e-9,
                                                .large_s_per_byte = 0.25e-9};
    const struct dl_checkpoint_way way = {.format = dl_checkpoint_format_find("torch-dcp-async"),
                                          .cost = &cost,
                                          .blocking = &blocking};
    make(&f);
    f.system.storage.local_write_bytes_per_s = 8e9, f.system.storage.local_recovery_frac = 0.8;
    assert_int_equal(
        dl_checkpoint_plan(&f.system, &f.workload, &f.plan, &prediction, &way, &c, NULL), DL_OK);
    assert_int_equal(c.writer_nodes, 2);
    assert_true(c.blocked_s < c.write_s);
    check_close(c.young_s, dl_checkpoint_young_s(c.blocked_s, c.job_mtbf_s), 1e-12);
    check_close(c.loss_s, c.interval_s / 2 + 60 + c.write_s - c.blocked_s, 1e-12);
    check_close(c.goodput_frac * c.stretch_ratio, 1, 1e-12);
    assert_true(c.local_write_s < c.write_s);
    assert_true(c.two_level_goodput_frac > 0.9 && c.two_level_goodput_frac < 1);
}

/* What training waits for: each rank of data parallelism copies the whole state, each rank of ZeRO
 * its part. */
static void whole_copies(void **state) {
    struct dl_fake f;
    struct dl_checkpoint all, part;
    const struct dl_checkpoint_cost cost = {.staged_cached_s_per_byte = 1e-9,
                                            .staged_large_s_per_byte = 1e-9,
                                            .large_s_per_byte = 1e-9},
                                    blocking = {.staged_cached_s_per_byte = 1e-9,
                                                .staged_large_s_per_byte = 1e-9};
    const struct dl_checkpoint_way way = {.format = dl_checkpoint_format_find("torch-dcp-async"),
                                          .cost = &cost,
                                          .blocking = &blocking};
    make(&f);
    assert_int_equal(
        dl_checkpoint_plan(&f.system, &f.workload, &f.plan, &prediction, &way, &all, NULL), DL_OK);
    f.plan.shard = 1;
    assert_int_equal(
        dl_checkpoint_plan(&f.system, &f.workload, &f.plan, &prediction, &way, &part, NULL), DL_OK);
    const double ranks = (double)(f.plan.nodes * f.plan.devices_per_node);
    assert_true(ranks > 1);
    check_close(all.blocked_s, ranks * part.blocked_s, 1e-9);
}

/* Whatever splits layers, states or the network makes every node write its part; else one does. */
static void who_writes(void **state) {
    static const char *const names[] = {"data", "zero1", "zero2", "zero3", "3d"};
    struct dl_fake f;
    struct dl_checkpoint c;
    make(&f);
    for (int i = 0; i < 5; i++) {
        f.plan.strategy = dl_strategy_find(names[i]);
        f.plan.tp = f.plan.pp = f.plan.sp = f.plan.ep = 1, f.plan.shard = 0;
        assert_int_equal(plan(&f, 0, &c, NULL), DL_OK);
        assert_int_equal(c.writer_nodes, i >= 1 && i <= 3 ? 2 : 1);
        int64_t *const axes[] = {&f.plan.tp, &f.plan.pp, &f.plan.ep};
        for (int a = 0; a < 3; a++) {
            *axes[a] = 2;
            assert_int_equal(plan(&f, 0, &c, NULL), DL_OK);
            assert_int_equal(c.writer_nodes, 2);
            *axes[a] = 1;
        }
        f.plan.shard = 1;
        assert_int_equal(plan(&f, 0, &c, NULL), DL_OK);
        assert_int_equal(c.writer_nodes, 2);
    }
}

/* What is not known: the copy without a host or a GPU costs nothing, a restart the usual start-up
 * and reading. Of storage one of both rates is enough. */
static void what_is_not_known(void **state) {
    struct dl_fake f;
    struct dl_checkpoint c;
    make(&f);
    f.system.operation.restart_s = NAN;
    assert_int_equal(plan(&f, 100, &c, NULL), DL_OK);
    check_close(c.loss_s, 50 + c.restart_s, 1e-12);
    check_close(c.restart_s, 20 + fmax(5, c.write_s), 1e-12);
    check_nan(c.local_write_s);
    check_nan(c.local_interval_s);
    check_nan(c.global_interval_s);
    check_nan(c.two_level_goodput_frac);
    check_nan(c.serialize_s);
    f.system.storage.write_bytes_per_s = NAN, f.system.storage.total_write_bytes_per_s = 1e9;
    assert_int_equal(plan(&f, 100, &c, NULL), DL_OK);
    check_close(c.write_s, 8.0 / 12 + 8, 1e-12);
    f.system.storage.write_bytes_per_s = 2e9; /* the lower one counts */
    assert_int_equal(plan(&f, 100, &c, NULL), DL_OK);
    check_close(c.write_s, 8.0 / 12 + 8, 1e-12);
    f.system.has_host = false;
    assert_int_equal(plan(&f, 100, &c, NULL), DL_OK);
    check_close(c.write_s, 8, 1e-12);
    check_close(c.blocked_s, 8, 1e-12);
    f.system.has_host = true, f.device.kind = DL_DEVICE_CPU;
    assert_int_equal(plan(&f, 100, &c, NULL), DL_OK);
    check_close(c.write_s, 8, 1e-12);
    f.system.has_storage = false;
    assert_int_equal(plan(&f, 100, &c, NULL), DL_ERR_INPUT);
}

/* An interval is at least one step. Where storage of the nodes' own takes copies too, and most
 * failures leave it, the two levels of the formula. */
static void steps_and_levels(void **state) {
    static const double fracs[] = {0.8, 0.01, 0, 1, -1, 2, NAN};
    struct dl_fake f;
    struct dl_checkpoint c;
    make(&f);
    assert_int_equal(plan(&f, 0.1, &c, NULL), DL_OK);
    check_close(c.steps, 1, 0);
    check_close(c.interval_s, 2, 0);
    f.plan.strategy = dl_strategy_find("zero3");
    f.system.storage.local_write_bytes_per_s = 8e9;
    for (int i = 0; i < 7; i++) {
        f.system.storage.local_recovery_frac = fracs[i];
        assert_int_equal(plan(&f, 0, &c, NULL), DL_OK);
        check_close(c.write_s, 2.0 / 12 + 2, 1e-12);
        check_close(c.local_write_s, 2.0 / 12 + 0.5, 1e-12); /* 8 GB at 2 x 8 GB/s */
        if (i > 1) {
            check_nan(c.two_level_goodput_frac);
            check_nan(c.local_interval_s);
            check_nan(c.global_interval_s);
            continue;
        }
        const struct dl_two_levels two =
            dl_checkpoint_two_level(c.local_write_s, c.write_s, 1e6, 60, fracs[i]);
        check_close(c.two_level_goodput_frac, two.goodput_frac, 1e-12);
        check_close(c.local_interval_s, two.local_interval_s, 1e-12);
        check_close(c.global_interval_s, two.global_interval_s, 1e-12);
    }
    /* failures that the file system alone outlives: no more often than it is written */
    const struct dl_two_levels two = dl_checkpoint_two_level(100, 5, 1e4, 10, 0.1);
    /* round(333.3 / 4472) is 0: each goes there */
    check_close(two.global_interval_s, two.local_interval_s, 1e-12);
    check_close(two.local_interval_s, sqrt(2 * 100 * 1e4 / 0.1), 1e-12);
}

/* Daly's series ends where a checkpoint takes twice the time between failures. */
static void end_of_daly(void **state) {
    check_close(dl_checkpoint_daly_s(2000, 1000), 1000, 0);
    const double d = 1999, share = d / 2000;
    check_close(dl_checkpoint_daly_s(d, 1000),
                sqrt(2 * d * 1000) * (1 + sqrt(share) / 3 + share / 9) - d, 1e-12);
}

/* Serialization on the cores of a node, as the format's cost gives it, comes on top. */
static void serialized(void **state) {
    struct dl_fake f;
    struct dl_checkpoint c;
    const struct dl_checkpoint_format *format = dl_checkpoint_format_find("torch-dcp");
    assert_non_null(format);
    const struct dl_checkpoint_cost cost = {.cached_s_per_byte = 2e-9,
                                            .large_s_per_byte = 1e-9,
                                            .tensor_s = 1e-4,
                                            .every_tensor_s = 1e-5,
                                            .storage_s_per_byte = 5e-9};
    const struct dl_checkpoint_way way = {.format = format, .cost = &cost};
    make(&f);
    for (int cores = 0; cores < 3; cores++) {
        struct dl_checkpoint_content content;
        f.system.host.cores = cores == 0 ? DL_ABSENT : cores == 1 ? 2 : 28;
        f.plan.strategy = dl_strategy_find(cores == 2 ? "zero3" : "data");
        assert_int_equal(
            dl_checkpoint_plan(&f.system, &f.workload, &f.plan, &prediction, &way, &c, NULL),
            DL_OK);
        dl_checkpoint_content(format, &f.workload, f.plan.optimizer, 4, &content);
        const struct dl_checkpoint_scale scale = {.ranks = 8,
                                                  .is_sharded = cores == 2,
                                                  .node_rank_count = 4,
                                                  .node_core_count = cores == 0   ? NAN
                                                                     : cores == 1 ? 2
                                                                                  : 28,
                                                  .storage_s_per_byte = 0};
        const double serialize_s = dl_checkpoint_write_s(format, &cost, &content, &scale),
                     bytes = dl_checkpoint_bytes(format, &content, 8);
        assert_true(serialize_s > 0);
        check_close(c.bytes, bytes, 1e-12);
        check_close(c.serialize_s, serialize_s, 1e-12);
        assert_int_equal(c.writer_nodes, 2); /* every rank writes its part */
        /* each of two devices of a link copies an eighth */
        check_close(c.write_s, serialize_s + bytes / 8 * 2 / 12e9 + bytes / 4e9, 1e-9);
        check_close(c.blocked_s, c.write_s, 0);
    }
}

/* Both sides of what is hopeless: a million times as long as without failures. */
static void hopeless(void **state) {
    struct dl_fake f;
    struct dl_checkpoint c;
    struct dl_err err = {0};
    make(&f);
    f.system.operation.restart_s = 0;
    double low_s = 50, high_s = 5000; /* of the job */
    while (high_s - low_s > 1e-9 * low_s) {
        const double middle_s = (low_s + high_s) / 2;
        *(dl_checkpoint_stretch_ratio(3600, 8.0 / 12 + 4, middle_s, 0) > 1e6 ? &low_s : &high_s) =
            middle_s;
    }
    f.system.operation.node_mtbf_s = 2 * high_s * 1.001;
    assert_int_equal(plan(&f, 3600, &c, &err), DL_OK);
    assert_true(c.stretch_ratio > 9e5);
    f.system.operation.node_mtbf_s = 2 * low_s / 1.001;
    assert_int_equal(plan(&f, 3600, &c, &err), DL_ERR_NO);
    char expected[300];
    snprintf(expected, sizeof expected,
             "with a failure every %.3g s and a checkpoint of 4.67 s every 3.6e+03 s the job does "
             "not get through: fewer nodes, faster storage or shorter intervals",
             low_s / 1.001);
    assert_string_equal(err.message, expected);
}

static void refused(void **state) {
    struct dl_fake f;
    struct dl_checkpoint c;
    struct dl_err err = {0};
    make(&f);
    f.system.operation.node_mtbf_s = NAN;
    assert_int_equal(plan(&f, 0, &c, &err), DL_OK);
    assert_true(c.mtbf_assumed); /* 54 days of 16,384 devices / 419: 50,677 device-hours */
    check_close(c.job_mtbf_s * (double)(2 * f.system.devices_per_node) / 3600, 50677.2, 1e-5);
    f.system.operation.node_mtbf_s = 10; /* a failure every 5 s, 4.7 s a checkpoint, one an hour */
    assert_int_equal(plan(&f, 3600, &c, &err), DL_ERR_NO);
    f.system.storage.write_bytes_per_s = NAN;
    assert_int_equal(plan(&f, 0, &c, &err), DL_ERR_INPUT);
    assert_string_equal(
        err.message, "system fake does not say what a node writes to storage, which checkpoints "
                     "need: give storage.kind and storage.write_bytes_per_s in its file, or --set "
                     "storage.write=2GB/s where it has storage");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(intervals),    cmocka_unit_test(expected_time),
        cmocka_unit_test(by_hand),      cmocka_unit_test(shared_out),
        cmocka_unit_test(two_levels),   cmocka_unit_test(asynchronous),
        cmocka_unit_test(whole_copies), cmocka_unit_test(refused),
        cmocka_unit_test(who_writes),   cmocka_unit_test(what_is_not_known),
        cmocka_unit_test(end_of_daly),  cmocka_unit_test(steps_and_levels),
        cmocka_unit_test(serialized),   cmocka_unit_test(hopeless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
