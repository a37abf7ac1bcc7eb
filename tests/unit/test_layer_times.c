/* Measured times of layers in place of the model's, by hand: F-LAYER-TIMES. */
#include "model/workload/layer.h"
#include "model/framework/layer_times.h"
#include "tests/check.h"

static const struct dl_kernel_facts PLAIN = {.precision = DL_FP32};

#define CHECK(condition) assert_true(condition)

static struct dl_layer_time at_8[] = {{"conv", 0.004, 0.010}, {"relu", 0.001, NAN}};
static struct dl_layer_time at_32[] = {{"conv", 0.016, 0.040}, {"relu", 0.004, NAN}};
static struct dl_layer_batch batches[] = {
    {.batch_samples = 8, .update_s = 0.002, .steps = 3, .layers = at_8, .layer_count = 2},
    {.batch_samples = 32, .update_s = 0.003, .steps = 3, .layers = at_32, .layer_count = 2},
};
static const struct dl_layer_times times = {.name = "t",
                                            .summary = "s",
                                            .source = "measured",
                                            .workload = "w",
                                            .framework = "pytorch",
                                            .device = "d",
                                            .precision = DL_FP32,
                                            .batches = batches,
                                            .batch_count = 2};
static const struct dl_layer layers[] = {{.name = "conv"}, {.name = "relu"}, {.name = "other"}};
static const struct dl_workload workload = {.name = "w", .layers = layers, .layer_count = 3};

/* Costs of three layers: forward, backward of each, and the update. */
struct costs {
    struct dl_layer_cost list[3];
    struct dl_cost cost;
};
static void fill(struct costs *c, double scale) {
    memset(c, 0, sizeof *c);
    for (int i = 0; i < 3; i++) {
        c->list[i].forward = (struct dl_pass_cost){.time_s = 0.5 * scale,
                                                   .by_limit_s = {0.4 * scale, 0.1 * scale, 0},
                                                   .origin = "model",
                                                   .extrapolated = true};
        c->list[i].backward = (struct dl_pass_cost){
            .time_s = 1.0 * scale, .by_limit_s = {1.0 * scale, 0, 0}, .origin = "model"};
    }
    c->cost.layers = c->list;
    c->cost.update = (struct dl_pass_cost){.time_s = 0.1, .origin = "model"};
}

static void apply(double batch, struct costs *c, double scale) {
    struct costs low, high;
    struct dl_err err = {.code = DL_OK};
    fill(&low, 8);
    fill(&high, 32);
    fill(c, scale);
    CHECK(dl_layer_times_apply(&times, &workload, batch,
                               &(struct dl_layer_costs){&low.cost, &high.cost, &c->cost},
                               &err) == DL_OK);
}

/* At a measured batch: the measured time; its parts by limit keep their shares; what was not
 * measured stays. F-LAYER-TIMES */
static void at_a_measured_batch(void **state) {
    struct costs c;
    apply(8, &c, 8);
    CHECK(c.list[0].forward.time_s == 0.004);
    CHECK(fabs(c.list[0].forward.by_limit_s[0] - 0.8 * 0.004) < 1e-15);
    CHECK(!c.list[0].forward.extrapolated);
    CHECK(strcmp(c.list[0].forward.origin, "measured by framework profiler") == 0);
    CHECK(strcmp(c.list[0].forward.formula, "F-LAYER-TIMES") == 0);
    CHECK(c.list[0].backward.time_s == 0.010);
    CHECK(c.list[1].backward.time_s == 8.0 && strcmp(c.list[1].backward.origin, "model") == 0);
    CHECK(c.list[2].forward.time_s == 4.0);
    CHECK(c.cost.update.time_s == 0.002);
}

/* Half way in the logarithm of the batch: sqrt(4 ms * 16 ms) = 8 ms. */
static void between_batches(void **state) {
    struct costs c;
    apply(16, &c, 16);
    CHECK(fabs(c.list[0].forward.time_s - 0.008) < 1e-12);
    CHECK(fabs(c.list[0].backward.time_s - 0.020) < 1e-12);
    CHECK(!c.list[0].forward.extrapolated);
}

/* Outside: times the ratio of the model's times, and said. 64 : 32 in the model is 2. */
static void outside_the_batches(void **state) {
    struct costs c;
    apply(64, &c, 64);
    CHECK(fabs(c.list[0].forward.time_s - 0.032) < 1e-12);
    CHECK(c.list[0].forward.extrapolated);
    apply(4, &c, 4);
    CHECK(fabs(c.list[0].forward.time_s - 0.002) < 1e-12);
    CHECK(c.cost.update.time_s == 0.002); /* the optimizer does not see the batch */
}

/* Each pass grows as its own does in the model: backward here 6 times from 32 to 64, forward twice.
 */
static void each_pass_by_its_own_ratio(void **state) {
    struct costs low, high, c;
    struct dl_err err = {.code = DL_OK};
    fill(&low, 8), fill(&high, 32), fill(&c, 64);
    c.list[0].backward.time_s *= 3;
    CHECK(dl_layer_times_apply(&times, &workload, 64,
                               &(struct dl_layer_costs){&low.cost, &high.cost, &c.cost},
                               &err) == DL_OK);
    check_close(c.list[0].forward.time_s, 2 * 0.016, 1e-12);
    check_close(c.list[0].backward.time_s, 6 * 0.040, 1e-12);
}

/* A layer that was timed at 8 of 8, 16 and 32 samples, and another at 16: 64 samples take 8 times
 * as long as 8 in the model (twice as long as 32 would be wrong), and 4 times as long as 16, which
 * the model does not know. One that takes no time in the model: by the samples. */
static void beyond_the_batch_that_has_the_layer(void **state) {
    struct dl_layer_time one[] = {{"conv", 0.004, 0.010}}, two[] = {{"relu", 0.001, NAN}},
                         three[] = {{"other", 0.002, 0.003}};
    struct dl_layer_batch some[] = {{.batch_samples = 8, .layers = one, .layer_count = 1},
                                    {.batch_samples = 16, .layers = two, .layer_count = 1},
                                    {.batch_samples = 32, .layers = three, .layer_count = 1}};
    struct dl_layer_times t = times;
    struct costs low, high, c;
    struct dl_err err = {.code = DL_OK};
    t.batches = some, t.batch_count = 3;
    fill(&low, 8), fill(&high, 32), fill(&c, 64);
    low.list[0].backward.time_s = high.list[2].forward.time_s = 0;
    c.list[0].forward.time_s *= 2; /* the model's own ratio is 16 */
    CHECK(dl_layer_times_apply(&t, &workload, 64,
                               &(struct dl_layer_costs){&low.cost, &high.cost, &c.cost},
                               &err) == DL_OK);
    check_close(c.list[0].forward.time_s, 16 * 0.004, 1e-12);
    check_close(c.list[0].backward.time_s, 8 * 0.010, 1e-12);
    check_close(c.list[1].forward.time_s, 4 * 0.001, 1e-12);
    check_close(c.list[2].forward.time_s, 2 * 0.002, 1e-12);
    check_close(c.list[2].backward.time_s, 2 * 0.003, 1e-12);
    fill(&c, 4);
    CHECK(dl_layer_times_apply(&t, &workload, 4,
                               &(struct dl_layer_costs){&low.cost, &high.cost, &c.cost},
                               &err) == DL_OK);
    check_close(c.list[0].backward.time_s, 0.010 / 2, 1e-12);
    check_close(c.list[2].forward.time_s, 0.002 / 8, 1e-12);
}

/* 50 ms of the model, 40 and 10 by what bounds them, against 4 ms that were measured; a layer that
 * takes no time in the model is bound by memory. */
static void shares_of_a_measured_time(void **state) {
    struct costs c;
    apply(8, &c, 0.1);
    check_close(c.list[0].forward.by_limit_s[0], 3.2e-3, 1e-12);
    check_close(c.list[0].forward.by_limit_s[1], 0.8e-3, 1e-12);
    check_close(c.list[0].forward.by_limit_s[2], 0, 0);
    check_close(c.list[0].backward.by_limit_s[0], 10e-3, 1e-12);
    const double inside_s = c.list[0].forward.error_s;
    CHECK(inside_s > 0);
    check_close(c.list[0].forward.error_square_s2, inside_s * inside_s, 1e-12);
    apply(8, &c, 0);
    check_close(c.list[0].forward.time_s, 4e-3, 0);
    check_close(c.list[0].forward.by_limit_s[DL_LIMIT_MEMORY], 4e-3, 0);
    check_close(c.list[0].forward.error_s, inside_s, 1e-12);
    apply(64, &c, 64); /* beyond what was measured: less sure */
    CHECK(c.list[0].forward.error_s > inside_s * 32e-3 / 4e-3);
}

/* Of batches of 8 and 32 the nearer in the logarithm, which 16 divides, of those that have it. */
static void members_of_the_nearest_batch(void **state) {
    struct dl_layer_batch two[] = {{.batch_samples = 8, .jitter_frac = 0.1, .core_s = NAN},
                                   {.batch_samples = 32, .jitter_frac = 0.2, .core_s = 3}};
    const struct dl_layer_times t = {.batches = two, .batch_count = 2};
    check_close(dl_layer_times_jitter_frac(&t, 1), 0.1, 0);
    check_close(dl_layer_times_jitter_frac(&t, 15), 0.1, 0);
    check_close(dl_layer_times_jitter_frac(&t, 17), 0.2, 0);
    check_close(dl_layer_times_jitter_frac(&t, 100), 0.2, 0);
    check_close(dl_layer_times_core_s(&t, 1), 3, 0);
    two[0].core_s = 5, two[1].core_s = NAN;
    check_close(dl_layer_times_core_s(&t, 100), 5, 0);
    two[0].core_s = NAN;
    check_nan(dl_layer_times_core_s(&t, 8));
}

static void fits_only_what_was_measured(void **state) {
    const struct dl_framework ddp = {.name = "pytorch-ddp"}, chainer = {.name = "chainermn"};
    const struct dl_device d = {.name = "d"}, e = {.name = "e"};
    CHECK(dl_layer_times_fit(&times, &workload, &ddp, &d, DL_FP32));
    CHECK(!dl_layer_times_fit(&times, &workload, &ddp, &d, DL_MIXED));
    CHECK(!dl_layer_times_fit(&times, &workload, &ddp, &e, DL_FP32));
    CHECK(!dl_layer_times_fit(&times, &workload, &chainer, &d, DL_FP32));
    CHECK(dl_layer_times_known(&times, &workload) == 2);
    struct dl_layer_times last = times; /* and no batch before the first */
    last.batches = &batches[1], last.batch_count = 1;
    at_8[1].name = "other";
    CHECK(dl_layer_times_known(&times, &workload) == 3);
    CHECK(dl_layer_times_known(&last, &workload) == 2);
    at_8[1].name = "relu";
}

static void split_takes_channels(void **state) {
    struct dl_err err = {.code = DL_OK};
    const struct dl_layer_kind *split = dl_layer_kind_find("split");
    const struct dl_shape in = {.dims = 2, .channels = 64, .size = {1, 7, 7}};
    struct dl_layer layer = {.kind = split, .requested.hidden = 24, .in = in};
    struct dl_kernel kernels[DL_LAYER_KERNELS];
    layer.in_elements = 64 * 49;
    CHECK(dl_layer_kind_find("part") == split); /* its name in release 0.1 */
    CHECK(split->infer(&layer, &in, &test_arena, &err) == DL_OK);
    CHECK(layer.out.channels == 24 && layer.out.size[2] == 7);
    CHECK(split->kernels(&layer, &PLAIN, DL_FORWARD, 2, kernels) == 0);
    CHECK(split->kernels(&layer, &PLAIN, DL_BACKWARD_DATA, 2, kernels) == 1);
    CHECK(kernels[0].read_elements == 2 * 24 * 49 && kernels[0].write_elements == 2 * 64 * 49);
    layer.requested.hidden = 65;
    CHECK(split->infer(&layer, &in, &test_arena, &err) == DL_ERR_INPUT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(at_a_measured_batch),
        cmocka_unit_test(between_batches),
        cmocka_unit_test(outside_the_batches),
        cmocka_unit_test(fits_only_what_was_measured),
        cmocka_unit_test(split_takes_channels),
        cmocka_unit_test(shares_of_a_measured_time),
        cmocka_unit_test(members_of_the_nearest_batch),
        cmocka_unit_test(each_pass_by_its_own_ratio),
        cmocka_unit_test(beyond_the_batch_that_has_the_layer),
    };
    return cmocka_run_group_tests(tests, NULL, check_free);
}
