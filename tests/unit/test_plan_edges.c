/* Edges of the composition of a plan, one condition at a time: what a device's file leaves out,
 * replicas and shards of a transformer, jitter, balanced stages, warnings. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/framework/cost.h"
#include "model/framework/layer_times.h"
#include "model/engine/pipeline.h"
#include "model/engine/compose.h"
#include "tests/fake_transformer.h"

static struct dl_err err;

/* 34 million parameters, five words of 4 B each, at 400 GB/s; four tensors of 5 us each take
 * less than that, 4000 take more. */
static void time_of_an_update(void **state) {
    (void)state;
    struct dl_fake f;
    struct dl_cost cost;
    fake_make(&f);
    const double stream_s = f.workload.parameters * 20 / 400e9;
    assert_int_equal(
        dl_cost_compute(&f.device, &f.workload, &f.framework, &f.plan, 8, &f.arena, &cost, &err),
        DL_OK);
    check_close(cost.update.launches, 4, 0);
    check_close(cost.update.time_s, stream_s, 0.02);
    f.framework.kernels.update_launches_per_tensor = 1000;
    assert_int_equal(
        dl_cost_compute(&f.device, &f.workload, &f.framework, &f.plan, 8, &f.arena, &cost, &err),
        DL_OK);
    check_close(cost.update.time_s, 4000 * 5e-6, 1e-9);
    f.device.kernel_latency_s = NAN;
    assert_int_equal(
        dl_cost_compute(&f.device, &f.workload, &f.framework, &f.plan, 8, &f.arena, &cost, &err),
        DL_OK);
    check_close(cost.update.time_s, stream_s, 0.02);
    f.rate.peak_flop_per_s = NAN;
    assert_int_equal(
        dl_cost_compute(&f.device, &f.workload, &f.framework, &f.plan, 8, &f.arena, &cost, &err),
        DL_ERR_USAGE);
    check_contains(err.message, "has no rate for fp32 (layer dense0)");
    dl_arena_free(&f.arena);
}

/* Two stages of {3, 1, 1, 1}: 3 and 3. As many stages as layers, the longest; more, none. */
static void balanced_stages(void **state) {
    (void)state;
    const double cost[] = {3, 1, 1, 1};
    double work[64];
    int first[8];
    check_close(dl_pipeline_balance(cost, 4, 2, first, work), 3, 0);
    assert_int_equal(first[1], 1);
    check_close(dl_pipeline_balance(cost, 4, 1, first, work), 6, 0);
    check_close(dl_pipeline_balance(cost, 4, 4, first, work), 3, 0);
    check_nan(dl_pipeline_balance(cost, 4, 5, first, work));
    check_nan(dl_pipeline_balance(cost, 4, 0, first, work));
}

static void jitter_of_a_step(void **state) {
    (void)state;
    struct dl_fake f;
    struct dl_layer_batch batch = {.batch_samples = 256, .jitter_frac = 0.2, .core_s = NAN};
    const struct dl_layer_times times = {.batches = &batch, .batch_count = 1};
    fake_make(&f);
    check_close(dl_straggler_frac(&f.system, &f.framework, &f.plan), 0, 0); /* unknown */
    f.plan.layer_times = &times;
    const double profiled = dl_straggler_frac(&f.system, &f.framework, &f.plan);
    assert_true(profiled > 0.2); /* of 8 devices the slowest */
    f.system.jitter_frac = 0.1;
    check_close(dl_straggler_frac(&f.system, &f.framework, &f.plan), profiled / 2, 1e-12);
    f.plan.layer_times = NULL;
    check_close(dl_straggler_frac(&f.system, &f.framework, &f.plan), profiled / 2, 1e-12);
    f.framework.sync.asynchronous = true;
    check_close(dl_straggler_frac(&f.system, &f.framework, &f.plan), 0, 0);
    f.framework.sync.asynchronous = false,
    f.framework.behaviour = dl_framework_behaviour_find("ideal");
    check_close(dl_straggler_frac(&f.system, &f.framework, &f.plan), 0, 0);
    f.framework.behaviour = NULL;
    check_close(dl_straggler_frac(&f.system, &f.framework, &f.plan), profiled / 2, 1e-12);
    f.plan.nodes = f.plan.devices_per_node = 1;
    check_close(dl_straggler_frac(&f.system, &f.framework, &f.plan), 0, 0);
    dl_arena_free(&f.arena);
}

static struct dl_transformer_mapping mapping(struct gpt *g, struct dl_transformer_split s,
                                             int shard) {
    struct dl_transformer_mapping out;
    memset(&err, 0, sizeof err);
    if (dl_transformer_mapping_make(&g->tf, &s, shard, &out, &err) != DL_OK)
        fail_msg("%s", err.message);
    return out;
}

/* Copies into buffers are made for others alone; states are shared by a group only where they
 * are sharded. */
static void replicas_and_shards(void **state) {
    (void)state;
    struct gpt g;
    gpt_make(&g, NULL, 0);
    struct dl_transformer_policy *policy = &g.f.framework.transformer;
    struct dl_transformer_split four = gpt_split(1, 1, 1, 1, 4), one = gpt_split(4, 1, 1, 1, 1);
    check_close(mapping(&g, four, 3).copy_out_s, 0, 0);
    policy->copies_gathered = policy->copies_gradients = true;
    assert_true(mapping(&g, four, 3).copy_out_s > 0 && mapping(&g, four, 3).copy_in_s > 0);
    check_close(mapping(&g, one, 3).copy_out_s, 0, 0);
    check_close(mapping(&g, one, 3).copy_in_s, 0, 0);
    four.shard_group = 2;
    check_close(mapping(&g, four, 1).shard_ranks, 2, 0);
    check_close(mapping(&g, four, 0).shard_ranks, 4, 0);
    four.shard_group = 0;
    check_close(mapping(&g, four, 1).shard_ranks, 4, 0);
    four.shard_group = 8; /* more than there are */
    check_close(mapping(&g, four, 1).shard_ranks, 4, 0);
    four.shard_group = 0;
    check_close(mapping(&g, four, 0).accumulate_s, 0, 0);
    policy->accumulate_bytes = 8, g.tf.precision = DL_BF16, policy->bf16_gradient_bytes = 4;
    assert_true(mapping(&g, four, 0).accumulate_s > 0);
    g.tf.precision = DL_FP32;
    check_close(mapping(&g, four, 0).accumulate_s, 0, 0);
    g.tf.precision = DL_BF16, g.f.framework.behaviour = dl_framework_behaviour_find("ideal");
    check_close(mapping(&g, four, 0).accumulate_s, 0, 0);
    assert_true(mapping(&g, four, 0).bound);
    g.f.framework.behaviour = NULL;
    assert_false(mapping(&g, four, 0).bound);
    dl_arena_free(&g.f.arena);
}

static enum dl_code check(struct gpt *g, struct dl_plan plan) {
    memset(&err, 0, sizeof err);
    return dl_transformer_check(&g->f.system, &g->workload, &g->f.framework, &plan, &err);
}

static void axes_that_a_network_lacks(void **state) {
    (void)state;
    struct gpt g;
    gpt_make(&g, NULL, 0);
    struct dl_plan plan = g.f.plan;
    plan.strategy = dl_strategy_find("3d"), plan.dp = 8;
    assert_int_equal(check(&g, plan), DL_OK);
    plan.ep = 2, plan.dp = 4;
    assert_int_equal(check(&g, plan), DL_ERR_USAGE);
    check_contains(err.message, "has no experts to spread");
    plan.ep = 1, plan.sp = 2;
    assert_int_equal(check(&g, plan), DL_OK);
    g.workload.input.dims = 2; /* an image */
    assert_int_equal(check(&g, plan), DL_ERR_USAGE);
    check_contains(err.message, "no sequence of tokens");
    plan.sp = 1, plan.dp = 8, plan.sequence_parallel = true;
    assert_int_equal(check(&g, plan), DL_ERR_USAGE);
    check_contains(err.message, "goes with tensor parallelism");
    plan.tp = 2, plan.dp = 4;
    assert_int_equal(check(&g, plan), DL_OK);
    plan.tp = 3;
    assert_int_equal(check(&g, plan), DL_ERR_USAGE);
    check_contains(err.message, "attention heads");
    dl_arena_free(&g.f.arena);
}

static bool warns(struct dl_fake *f, const char *words) {
    struct dl_prediction p;
    assert_int_equal(fake_predict(f, &p), DL_OK);
    for (int i = 0; i < p.warning_count; i++)
        if (strstr(p.warnings[i], words) != NULL) return true;
    return false;
}

static void warnings_of_a_prediction(void **state) {
    (void)state;
    struct dl_fake f;
    fake_make(&f);
    f.plan.dp = 8;
    assert_false(warns(&f, "is assumed"));
    f.system.inter.assumed = true;
    assert_true(warns(&f, "links.inter of fake is assumed"));
    f.plan.nodes = 1, f.plan.dp = 4;
    assert_false(warns(&f, "is assumed"));
    f.plan.nodes = 2, f.plan.dp = 8, f.system.nodes = 2;
    assert_false(warns(&f, "are extrapolated"));
    f.system.nodes = 1;
    assert_true(warns(&f, "fake has 1 node; 2 are extrapolated"));
    f.system.nodes = DL_ABSENT;
    assert_false(warns(&f, "are extrapolated"));
    dl_arena_free(&f.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(time_of_an_update),         cmocka_unit_test(balanced_stages),
        cmocka_unit_test(jitter_of_a_step),          cmocka_unit_test(replicas_and_shards),
        cmocka_unit_test(axes_that_a_network_lacks), cmocka_unit_test(warnings_of_a_prediction)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
