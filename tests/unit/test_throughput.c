/* Model flop, MFU and HFU, and the length of a run, each worked by hand. */
#include "model/engine/throughput.h"
#include "tests/check.h"
#include "tests/fake_transformer.h"

/* 2 layers, hidden 128, 2 heads, 64 tokens, vocabulary 1000. */
static void make(struct gpt *g, const char *experts) {
    static struct dl_override o[] = {
        {.key = "layers", .value = "2"},   {.key = "hidden", .value = "128"},
        {.key = "heads", .value = "2"},    {.key = "seq", .value = "64"},
        {.key = "vocab", .value = "1000"}, {.key = "topk", .value = "2"},
        {.key = "capacity", .value = "2"}, {.key = "experts"}};
    enum { COUNT = sizeof o / sizeof o[0] };
    o[COUNT - 1].value = experts;
    gpt_make(g, o, COUNT);
}

static const double H = 128, S = 64, V = 1000;

/* Of a dense layer 12 h^2 multiply-adds a token in matrices, and 2 s h of scores, of which the mask
 * leaves (s + 1)/2 of s; the head h v. */
static const double BODY = 2 * (12 * 128.0 * 128 + 65.0 * 128);

/* F-MODEL-FLOP */
static void model_flop_by_hand(void **state) {
    struct gpt g;
    struct dl_prediction p = {.throughput_samples_per_s = 10, .iteration_s = 3.2};
    struct dl_plan plan = {
        .nodes = 2, .devices_per_node = 4, .global_batch_samples = 32, .precision = DL_FP32};
    make(&g, "0");
    struct dl_throughput t = dl_throughput_of(&g.f.device, &g.workload, &plan, &p);
    check_close(t.model_flop, 6 * S * (BODY + H * V), 1e-12);
    check_close(t.hardware_flop, t.model_flop, 1e-12);
    /* experts: the router and two experts a token; their capacity of 2 changes nothing */
    make(&g, "4");
    t = dl_throughput_of(&g.f.device, &g.workload, &plan, &p);
    check_close(t.model_flop,
                6 * S * (2 * (4 * H * H + (S + 1) * H + 4 * H + 2 * 8 * H * H) + H * V), 1e-12);
}

/* F-MFU: 10 samples/s on 8 devices of 10 TFLOP/s. */
static void rates_by_hand(void **state) {
    struct gpt g;
    struct dl_prediction p = {.throughput_samples_per_s = 10, .iteration_s = 3.2};
    struct dl_plan plan = {
        .nodes = 2, .devices_per_node = 4, .global_batch_samples = 32, .precision = DL_FP32};
    make(&g, "0");
    g.f.rate.peak_flop_per_s = 1e13; /* whatever the fixture has */
    g.f.rate.precision = DL_FP32;
    const struct dl_throughput t = dl_throughput_of(&g.f.device, &g.workload, &plan, &p),
                               mixed = dl_throughput_of(NULL, &g.workload, &plan, &p);
    const double flop = 6 * S * (BODY + H * V);
    check_close(t.tokens_per_s, 640, 1e-12);
    check_close(t.device_tokens_per_s, 80, 1e-12);
    check_close(t.device_model_flop_per_s, 10 * flop / 8, 1e-12);
    check_close(t.mfu_frac, 10 * flop / 8 / 1e13, 1e-12);
    check_close(t.hfu_frac, t.mfu_frac, 1e-12);
    assert_true(isnan(mixed.mfu_frac)); /* devices that differ have no one peak */
    check_close(mixed.tokens_per_s, 640, 1e-12);
    /* images have no tokens */
    const struct dl_throughput images = dl_throughput_of(&g.f.device, &g.f.workload, &plan, &p);
    assert_true(isnan(images.tokens_per_s));
}

/* F-HFU: all layers but the head again, or the scores of attention alone. */
static void recomputation_counts_in_hfu(void **state) {
    struct gpt g;
    struct dl_prediction p = {.throughput_samples_per_s = 10, .iteration_s = 3.2};
    struct dl_plan plan = {
        .nodes = 1, .devices_per_node = 1, .global_batch_samples = 32, .precision = DL_FP32};
    make(&g, "0");
    plan.recompute = DL_RECOMPUTE_FULL;
    struct dl_throughput t = dl_throughput_of(&g.f.device, &g.workload, &plan, &p);
    check_close(t.hardware_flop - t.model_flop, 2 * S * BODY, 1e-12);
    check_close(t.hfu_frac / t.mfu_frac, t.hardware_flop / t.model_flop, 1e-12);
    plan.recompute = DL_RECOMPUTE_SELECTIVE;
    t = dl_throughput_of(&g.f.device, &g.workload, &plan, &p);
    check_close(t.hardware_flop - t.model_flop, 2 * S * 2 * (S + 1) * H, 1e-12);
}

/* F-RUN-LENGTH: 64 tokens a sample, 32 samples an iteration of 3.2 s on 8 devices. */
static void length_of_a_run(void **state) {
    struct gpt g;
    struct dl_prediction p = {.throughput_samples_per_s = 10, .iteration_s = 3.2};
    struct dl_plan plan = {.nodes = 2, .devices_per_node = 4, .global_batch_samples = 32};
    make(&g, "0");
    struct dl_run_length length = {.tokens = 64 * 32 * 10 + 1};
    struct dl_run_total t = dl_run_total_of(&g.workload, &plan, &p, &length);
    check_close(t.iteration_count, 11, 0); /* the last one is whole */
    check_close(t.time_s, 35.2, 1e-12);
    check_close(t.device_time_s, 35.2 * 8, 1e-12);
    length.tokens = 64 * 32 * 10;
    check_close(dl_run_total_of(&g.workload, &plan, &p, &length).iteration_count, 10, 0);
    length = (struct dl_run_length){.epoch_count = 2};
    plan.input.dataset_samples = 100;
    check_close(dl_run_total_of(&g.workload, &plan, &p, &length).iteration_count, 7, 0);
    p.first_epoch_iteration_s = 10; /* 4 of the 7 iterations */
    t = dl_run_total_of(&g.workload, &plan, &p, &length);
    check_close(t.time_s, 4 * 10 + 3 * 3.2, 1e-12);
    check_close(t.first_epoch_s, 40, 1e-12);
    assert_true(
        isnan(dl_run_total_of(&g.f.workload, &plan, &p, &(struct dl_run_length){0}).time_s));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(model_flop_by_hand),
        cmocka_unit_test(rates_by_hand),
        cmocka_unit_test(recomputation_counts_in_hfu),
        cmocka_unit_test(length_of_a_run),
    };
    return cmocka_run_group_tests(tests, NULL, check_free);
}
