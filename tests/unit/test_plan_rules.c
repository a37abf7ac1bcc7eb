/* Plans that are refused, each for its own reason and next to one that is not; what a plan
 * leaves open; messages beyond the sizes that were measured, which a transformer's collectives
 * report (F-COLL-MEASURED). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/fake_transformer.h"

static struct dl_err err;

static enum dl_code complete(struct dl_fake *f, struct dl_plan plan, struct dl_plan *out) {
    memset(&err, 0, sizeof err);
    const enum dl_code code =
        dl_plan_complete(&f->system, &f->workload, &f->framework, &plan, &err);
    if (out != NULL) *out = plan;
    return code;
}

#define refused(f, plan, words)                                                                    \
    do {                                                                                           \
        assert_int_equal(complete(f, plan, NULL), DL_ERR_USAGE);                                   \
        check_contains(err.message, words);                                                        \
    } while (0)

/* 2 nodes of 4 devices. */
static void batches(void **state) {
    (void)state;
    struct dl_fake f;
    struct dl_plan plan, out;
    fake_make(&f);
    plan = f.plan;
    assert_int_equal(complete(&f, plan, &out), DL_OK);
    check_close(out.global_batch_samples, 2048, 0);
    assert_int_equal(out.dp, 8);
    plan.batch_per_device_samples = 0, plan.global_batch_samples = 64;
    assert_int_equal(complete(&f, plan, &out), DL_OK);
    check_close(out.batch_per_device_samples, 8, 0);
    plan.batch_per_device_samples = 8;
    assert_int_equal(complete(&f, plan, &out), DL_OK);
    plan.batch_per_device_samples = 9;
    refused(&f, plan, "9 a device on 8 devices is not a global batch of 64");
    plan.batch_per_device_samples = 7;
    refused(&f, plan, "7 a device on 8 devices is not a global batch of 64");
    plan.batch_per_device_samples = plan.global_batch_samples = 0;
    refused(&f, plan, "give --batch-per-device or --global-batch");
    plan.global_batch_samples = 7;
    refused(&f, plan, "7 samples are fewer than 8 data-parallel ranks");
    plan.global_batch_samples = 8;
    assert_int_equal(complete(&f, plan, &out), DL_OK);
    plan.global_batch_samples = 8e7;
    assert_int_equal(complete(&f, plan, &out), DL_OK);
    plan.global_batch_samples = 8.1e7;
    refused(&f, plan, "at most 1e7 samples a device");
    plan = f.plan, plan.library = "smoke signals";
    refused(&f, plan, "no collective library 'smoke signals'");
    plan.library = "gloo";
    assert_int_equal(complete(&f, plan, &out), DL_OK);
    plan = f.plan, plan.dp = 4;
    assert_int_equal(complete(&f, plan, NULL), DL_ERR_USAGE);
    plan.dp = 8;
    assert_int_equal(complete(&f, plan, NULL), DL_OK);
    dl_arena_free(&f.arena);
}

static void devices_and_releases(void **state) {
    (void)state;
    struct dl_fake f;
    fake_make(&f);
    static const struct {
        const char *last, *architecture;
        bool runs;
    } cases[] = {
        {"volta", "volta", true},     {"volta", "pascal", true},  {"volta", "turing", false},
        {"volta", "ampere", false},   {"hopper", "hopper", true}, {"hopper", "blackwell", false},
        {"ampere", "cdna2", false},   {"ampere", NULL, false},    {"kepler", "kepler", true},
        {"kepler", "maxwell", false}, {NULL, "blackwell", true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        f.framework.last_architecture = cases[i].last,
        f.device.architecture = cases[i].architecture;
        if (cases[i].runs)
            assert_int_equal(complete(&f, f.plan, NULL), DL_OK);
        else
            refused(&f, f.plan, "its last release runs on GPUs up to");
    }
    f.framework.last_architecture = "volta", f.device.architecture = "skylake",
    f.device.kind = DL_DEVICE_CPU;
    assert_int_equal(complete(&f, f.plan, NULL), DL_OK); /* a CPU has no such limit */
    f.framework.sync.cpu_library = -1;
    refused(&f, f.plan, "needs GPUs");
    f.device.kind = DL_DEVICE_GPU, f.framework.last_architecture = NULL;
    assert_int_equal(complete(&f, f.plan, NULL), DL_OK);
    f.framework.sync.library = DL_LIB_MLSL;
    refused(&f, f.plan, "runs on CPUs");
    f.framework.sync.library = DL_LIB_NCCL, f.framework.host.single_node = true;
    refused(&f, f.plan, "runs inside one node");
    f.plan.nodes = 1;
    assert_int_equal(complete(&f, f.plan, NULL), DL_OK);
    dl_arena_free(&f.arena);
}

static void precisions_and_families(void **state) {
    (void)state;
    struct dl_fake f;
    struct dl_plan plan;
    fake_make(&f);
    plan = f.plan, plan.precision = DL_FP8;
    refused(&f, plan, "cast linear layers, not convolutions");
    f.workload.family = NULL;
    assert_int_equal(complete(&f, plan, NULL), DL_OK);
    f.framework.transformer.casts = -1;
    refused(&f, plan, "its file states no casts");
    f.framework.trains = DL_TRAINS_TRANSFORMERS;
    refused(&f, f.plan, "is made for language models");
    f.workload.transformer_layers = 4;
    assert_int_equal(complete(&f, f.plan, NULL), DL_OK);
    f.workload.transformer_layers = NAN, f.framework.trains = 0;
    plan = f.plan, plan.recompute = DL_RECOMPUTE_FULL;
    refused(&f, plan, "only transformers say which activations are kept");
    plan = f.plan, plan.strategy = dl_strategy_find("expert");
    refused(&f, plan, "has no mixture of experts");
    plan = f.plan, plan.shard = 1, plan.strategy = dl_strategy_find("spatial");
    refused(&f, plan, "strategy spatial shards no states");
    plan = f.plan, plan.shard_group = 4;
    refused(&f, plan, "--zero-group: goes with sharded states");
    dl_arena_free(&f.arena);
}

static void servers_and_spare_workers(void **state) {
    (void)state;
    struct dl_fake f;
    struct dl_plan plan;
    fake_make(&f);
    plan = f.plan, plan.servers = 1;
    refused(&f, plan, "has no parameter servers");
    plan = f.plan, plan.backup_workers = 1;
    refused(&f, plan, "backup workers belong to");
    f.framework.behaviour = dl_framework_behaviour_find("parameter-server");
    f.framework.sync.library = DL_LIB_GRPC;
    assert_int_equal(complete(&f, plan, NULL), DL_OK);
    plan.backup_workers = 2;
    refused(&f, plan, "at most 1 of 2 nodes");
    plan.backup_workers = 0, plan.servers = 1;
    assert_int_equal(complete(&f, plan, NULL), DL_OK);
    dl_arena_free(&f.arena);
}

/* Ranks that the strategy does not split over make it 3d, or expert; sharded states go along as
 * a stage. */
static void strategies_that_follow_from_ranks(void **state) {
    (void)state;
    struct gpt g;
    struct dl_plan plan, out;
    gpt_make(&g, NULL, 0);
    g.f.workload = g.workload;
    plan = g.f.plan, plan.strategy = NULL, plan.tp = plan.pp = plan.sp = plan.ep = plan.dp = 0;
    assert_int_equal(complete(&g.f, plan, &out), DL_OK);
    assert_string_equal(out.strategy->name, "data");
    plan.tp = 2;
    assert_int_equal(complete(&g.f, plan, &out), DL_OK);
    assert_string_equal(out.strategy->name, "3d");
    assert_int_equal(out.dp, 4);
    plan.strategy = dl_strategy_find("zero2");
    assert_int_equal(complete(&g.f, plan, &out), DL_OK);
    assert_string_equal(out.strategy->name, "3d");
    assert_int_equal(out.shard, 2);
    plan.tp = 0;
    assert_int_equal(complete(&g.f, plan, &out), DL_OK);
    assert_string_equal(out.strategy->name, "zero2");
    plan.shard = 3; /* a stage goes before the strategy's own */
    assert_int_equal(complete(&g.f, plan, &out), DL_OK);
    assert_string_equal(out.strategy->name, "zero3");
    assert_int_equal(out.shard, 0);
    plan.strategy = dl_strategy_find("data"), plan.shard = 1;
    assert_int_equal(complete(&g.f, plan, &out), DL_OK);
    assert_string_equal(out.strategy->name, "zero1");
    plan.shard = 0, plan.sp = 2, plan.strategy = NULL; /* no strategy that fills nodes is named */
    assert_int_equal(complete(&g.f, plan, &out), DL_OK);
    assert_int_equal(out.tp, 1);
    assert_int_equal(out.dp, 4);
    plan.strategy = dl_strategy_find("3d");
    assert_int_equal(complete(&g.f, plan, &out), DL_OK);
    assert_int_not_equal(out.tp, 1);
    plan.sp = 0;
    plan.strategy = dl_strategy_find("data"), plan.tp = 2; /* asked for: kept, and refused */
    assert_int_equal(complete(&g.f, plan, &out), DL_ERR_USAGE);
    plan.strategy = NULL, plan.tp = 0, plan.ep = 2;
    refused(&g.f, plan, "has no mixture of experts");
    g.f.workload.transformer_layers = NAN; /* no transformer: no such strategy */
    plan.ep = 0, plan.pp = 2;
    assert_int_not_equal(complete(&g.f, plan, &out), DL_OK);
    g.f.workload.transformer_layers = g.workload.transformer_layers;
    plan.pp = 0, plan.recompute_open = true, g.f.framework.recompute = DL_RECOMPUTE_SELECTIVE;
    assert_int_equal(complete(&g.f, plan, &out), DL_OK);
    assert_int_equal(out.recompute, DL_RECOMPUTE_SELECTIVE);
    plan.recompute_open = false;
    assert_int_equal(complete(&g.f, plan, &out), DL_OK);
    assert_int_equal(out.recompute, DL_RECOMPUTE_NONE);
    dl_arena_free(&g.f.arena);
}

static struct dl_override mixture[] = {
    {.key = "layers", .value = "4"},  {.key = "seq", .value = "512"},
    {.key = "heads", .value = "16"},  {.key = "vocab", .value = "51200"},
    {.key = "experts", .value = "8"}, {.key = "topk", .value = "2"}};

/* One small sample of an operation on the 4 devices of a node: everything longer lies beyond it. */
static bool beyond(struct gpt *g, const char *operation, struct dl_transformer_split s,
                   bool of_mapping, int shard) {
    struct dl_coll_sample sample = {8, 1e-5, NAN, NAN};
    struct dl_coll_measured measured = {.library = "nccl",
                                        .operation = operation,
                                        .nodes = 1,
                                        .ranks = 4,
                                        .samples = &sample,
                                        .sample_count = 1};
    struct dl_transformer_micro_batch cell;
    struct dl_transformer_mapping layout;
    memset(&err, 0, sizeof err);
    g->f.system.collectives = &measured, g->f.system.collective_count = operation != NULL;
    const enum dl_code code = of_mapping
                                  ? dl_transformer_mapping_make(&g->tf, &s, shard, &layout, &err)
                                  : dl_transformer_micro_batch_make(&g->tf, &s, 1, &cell, &err);
    if (code != DL_OK) fail_msg("%s", err.message);
    return of_mapping ? layout.extrapolated : cell.extrapolated;
}

static void collectives_beyond_their_samples(void **state) {
    (void)state;
    struct gpt g;
    gpt_make(&g, mixture, sizeof mixture / sizeof *mixture);
    struct dl_transformer_split tensor = gpt_split(4, 1, 1, 1, 1), sequence = tensor;
    const struct dl_transformer_split context = gpt_split(1, 4, 1, 1, 1),
                                      experts = gpt_split(1, 1, 4, 1, 1),
                                      data = gpt_split(1, 1, 1, 1, 4),
                                      pipe = gpt_split(1, 1, 1, 4, 1);
    sequence.sequence_parallel = true;
    assert_false(beyond(&g, NULL, tensor, false, 0));
    assert_true(beyond(&g, "all_reduce", tensor, false, 0));
    assert_false(beyond(&g, "all_gather", tensor, false, 0));
    assert_false(beyond(&g, "all_reduce", sequence, false, 0));
    assert_true(beyond(&g, "all_gather", sequence, false, 0));
    assert_true(beyond(&g, "reduce_scatter", sequence, false, 0));
    g.f.framework.transformer.context_exchange = DL_CONTEXT_GATHER;
    assert_true(beyond(&g, "all_gather", context, false, 0));
    assert_true(beyond(&g, "reduce_scatter", context, false, 0)); /* of the gradients of keys */
    assert_false(beyond(&g, "all_to_all", context, false, 0));
    g.f.framework.transformer.expert_exchange = DL_EXPERT_ALL_TO_ALL;
    assert_true(beyond(&g, "all_to_all", experts, false, 0));
    assert_false(beyond(&g, "reduce_scatter", experts, false, 0));
    g.f.framework.transformer.expert_exchange = DL_EXPERT_GATHER;
    assert_true(beyond(&g, "all_gather", experts, false, 0));
    assert_true(beyond(&g, "reduce_scatter", experts, false, 0)); /* on the way back */
    assert_true(beyond(&g, "all_reduce", data, true, 0));
    assert_false(beyond(&g, "all_gather", data, true, 0));
    assert_true(beyond(&g, "all_gather", data, true, 1));
    assert_true(beyond(&g, "reduce_scatter", data, true, 1));
    assert_true(beyond(&g, "all_gather", data, true, 3));
    assert_true(beyond(&g, "reduce_scatter", data, true, 3));
    assert_false(beyond(&g, "all_reduce", data, true, 3));
    assert_false(beyond(&g, "all_gather", pipe, true, 0));
    dl_arena_free(&g.f.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(batches),
                                       cmocka_unit_test(devices_and_releases),
                                       cmocka_unit_test(precisions_and_families),
                                       cmocka_unit_test(servers_and_spare_workers),
                                       cmocka_unit_test(strategies_that_follow_from_ranks),
                                       cmocka_unit_test(collectives_beyond_their_samples)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
