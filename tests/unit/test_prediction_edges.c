/* Times of layers between and beyond measured batches, factors of kinds of work, what two 16-bit
 * types share, samples that are whole but for rounding, advice on memory, and what `explain` says
 * of a transformer's memory; each by hand. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/framework/layer_times.h"
#include "model/machine/kernel.h"
#include "model/engine/memory.h"
#include "model/engine/memory_advice.h"
#include "model/workload/layer.h"
#include "tests/fake_transformer.h"
#include "tests/gradient_bench.h"
#include "tests/guarded.h"

static struct dl_err err;

/* Two batches, 16 and 64, of which the second lacks a layer and the first an update.
 * Kept whole: one set of times and all that is read from it. */
static void batches_and_no_others(void **state) {
    (void)state;
    struct dl_fake f;
    fake_make(&f);
    struct dl_layer_time low[] = {{"dense0", 1, 2}, {"dense1", 3, NAN}},
                         high[] = {{"dense0", 4, 8}};
    const struct dl_layer_batch batches[] = {{.batch_samples = 16,
                                              .update_s = NAN,
                                              .jitter_frac = 0.25,
                                              .core_s = NAN,
                                              .layers = low,
                                              .layer_count = 2},
                                             {.batch_samples = 64,
                                              .update_s = 0.5,
                                              .jitter_frac = NAN,
                                              .core_s = 0.125,
                                              .layers = high,
                                              .layer_count = 1}};
    for (int guard = 0; guard < GUARDS; guard++) {
        const struct dl_layer_times t = {.name = "times",
                                         .workload = "fake",
                                         .framework = "ak",
                                         .precision = DL_FP32,
                                         .batches =
                                             guarded(batches, sizeof batches, (enum guard)guard),
                                         .batch_count = 2};
        assert_int_equal(dl_layer_times_known(&t, &f.workload), 2);
        assert_true(dl_layer_times_fit(&t, &f.workload, &f.framework, &f.device, DL_FP32));
        assert_false(dl_layer_times_fit(&t, &f.workload, &f.framework, &f.device, DL_FP16));
        check_close(dl_layer_times_jitter_frac(&t, 1e3), 0.25, 0);
        check_close(dl_layer_times_core_s(&t, 1), 0.125, 0);
        static const struct {
            double batch, forward_s, backward_s;
        } cases[] = {{16, 1, 2}, {64, 4, 8}, {32, 2, 4}};
        for (int i = 0; i < 3; i++) {
            struct dl_cost cost, same;
            assert_int_equal(dl_cost_compute(&f.device, &f.workload, &f.framework, &f.plan,
                                             cases[i].batch, &f.arena, &cost, &err),
                             DL_OK);
            same = cost;
            const double modelled_s = cost.layers[2].forward.time_s;
            assert_int_equal(
                dl_layer_times_apply(&t, &f.workload, cases[i].batch, &same, &same, &cost, &err),
                DL_OK);
            check_close(cost.layers[0].forward.time_s, cases[i].forward_s, 1e-12);
            check_close(cost.layers[0].backward.time_s, cases[i].backward_s, 1e-12);
            check_close(cost.layers[1].forward.time_s, 3, 1e-12);
            assert_int_equal(cost.layers[1].forward.extrapolated, cases[i].batch > 16);
            check_close(cost.layers[2].forward.time_s, modelled_s, 0);
            check_close(cost.update.time_s, 0.5, 0);
        }
    }
    struct dl_layer_times other = {.name = "times", .batch_count = 0};
    struct dl_cost cost;
    assert_int_equal(dl_layer_times_apply(&other, &f.workload, 1, &cost, &cost, &cost, &err),
                     DL_ERR_USAGE);
    assert_string_equal(err.message, "the layer times 'times' name no layer of fake");
    static const char *const keys[] = {"name",        "summary",     "source",    "workload",
                                       "framework",   "device",      "precision", "batches",
                                       "measured_on", "measured_at", "comment"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        assert_string_equal(dl_layer_times_schema.fields[i].key, keys[i]);
    dl_arena_free(&f.arena);
}

/* A factor is that of its own kind, pass and type; kernels of no kind have none. */
static void kinds_of_work(void **state) {
    (void)state;
    struct dl_fake f;
    fake_make(&f);
    struct dl_work_factor works[] = {
        {.work = DL_WORK_ANY, .pass = DL_FORWARD, .precision = DL_FP32, .factor = 9},
        {.work = DL_WORK_LAYERNORM, .pass = DL_FORWARD, .precision = DL_FP32, .factor = 2},
        {.work = DL_WORK_LAYERNORM, .pass = DL_BACKWARD_DATA, .precision = DL_FP32, .factor = 3}};
    static const struct {
        enum dl_work work;
        enum dl_pass pass;
        double factor;
    } cases[] = {{DL_WORK_ANY, DL_FORWARD, 1},
                 {DL_WORK_LAYERNORM, DL_FORWARD, 2},
                 {DL_WORK_LAYERNORM, DL_BACKWARD_DATA, 3},
                 {DL_WORK_LAYERNORM, DL_BACKWARD_WEIGHTS, 3},
                 {DL_WORK_ACTIVATION, DL_FORWARD, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dl_kernel kernel = dl_kernel_stream(cases[i].pass, 0, 1e8, 1e8);
        struct dl_kernel_time plain, got;
        kernel.work = cases[i].work;
        f.device.works = NULL, f.device.work_count = 0;
        dl_kernel_time(&f.device, DL_FP32, &kernel, &plain);
        f.device.works = works, f.device.work_count = 3;
        dl_kernel_time(&f.device, DL_FP32, &kernel, &got);
        check_close(got.time_s, plain.time_s * cases[i].factor, 1e-12);
    }
    dl_arena_free(&f.arena);
}

/* F-FW-SUFFICIENT-FACTORS: 4 samples but for rounding are 4, and a little more is 5. */
static void samples_but_for_rounding(void **state) {
    (void)state;
    static const double size = 4.0 * 1000 * 4000, ready = 1;
    static const double batches[] = {4, 4 + 1e-11, 5, 4 + 1e-6};
    double bytes[4];
    for (int i = 0; i < 4; i++) {
        struct bench b;
        make(&b, 1, &size, &ready);
        struct dl_layer *layers = dl_arena_alloc(&b.fake.arena, 4, sizeof *layers);
        memcpy(layers, b.fake.workload.layers, 4 * sizeof *layers);
        layers[0].kind = &dl_layer_dense;
        b.fake.workload.layers = layers;
        b.fake.plan.batch_per_device_samples = batches[i];
        run(&b, "sufficient-factors");
        assert_int_equal(b.sync.message_count, 1);
        assert_string_equal(b.sync.messages[0].name, "all_gather");
        bytes[i] = b.sync.messages[0].bytes;
        dl_arena_free(&b.fake.arena);
    }
    check_close(bytes[0], 8 * 4 * 4 * 5000, 1e-12); /* 8 ranks, 4 samples of 4 B */
    check_close(bytes[1], bytes[0], 0);
    check_close(bytes[2], 8 * 5 * 4 * 5000, 1e-12);
    check_close(bytes[3], bytes[2], 0);
}

/* Half the bytes of activations are enough, and mixed precision alone gives them. */
static void mixed_precision_fits(void **state) {
    (void)state;
    struct dl_fake f;
    struct dl_memory fp32, mixed;
    fake_make(&f);
    struct dl_rate rates[] = {{.precision = DL_FP32, .peak_flop_per_s = 1e13},
                              {.precision = DL_MIXED, .peak_flop_per_s = 1e14}};
    f.device.rates = rates, f.device.rate_count = 2;
    f.plan.dp = 1, f.plan.batch_per_device_samples = 20000.5; /* no parts of micro-batches */
    dl_memory_compute(&f.system, &f.workload, &f.framework, &f.plan, 20000.5, &fp32, NULL);
    f.plan.precision = DL_MIXED;
    dl_memory_compute(&f.system, &f.workload, &f.framework, &f.plan, 20000.5, &mixed, NULL);
    assert_true(mixed.total_bytes < fp32.total_bytes);
    f.plan.precision = DL_FP32;
    f.device.memory_bytes = 0.5 * (mixed.total_bytes + fp32.total_bytes);
    const char *text =
        dl_memory_advice(&f.system, &f.workload, &f.framework, &f.plan, 20000.5, &f.arena);
    assert_non_null(text);
    check_contains(text, " too much: --precision mixed saves ");
    check_contains(text, " and makes it fit");
    f.device.rate_count = 1; /* without the rate it is not named */
    text = dl_memory_advice(&f.system, &f.workload, &f.framework, &f.plan, 20000.5, &f.arena);
    assert_null(strstr(text, "mixed"));
    dl_arena_free(&f.arena);
}

/* The parts of the memory that `explain` shows sum up to the whole; groups and formulas of each. */
static void parts_of_memory(void **state) {
    (void)state;
    static const struct {
        const char *name, *formula;
    } parts[] = {{"weights", "F-TRANSFORMER-STATES"},   {"gradients", "F-TRANSFORMER-STATES"},
                 {"optimizer", "F-TRANSFORMER-STATES"}, {"activations", "F-TRANSFORMER-MEMORY"},
                 {"workspace", "F-MEM-WORKSPACE"},      {"communication buffers", "F-MEM-BUFFERS"},
                 {"context", "F-MEM-CONTEXT"},          {"fragmentation", "F-MEM-FRAGMENTATION"}};
    for (int c = 0; c < 2; c++) {
        struct gpt g;
        struct dl_prediction p;
        gpt_make(&g, NULL, 0);
        struct dl_fake *f = &g.f;
        struct dl_rate rates[] = {{.precision = DL_FP32, .peak_flop_per_s = 1e13},
                                  {.precision = DL_FP16, .unit = 1, .peak_flop_per_s = 1e14}};
        f->device.rates = rates, f->device.rate_count = 2;
        f->framework.memory.fragmentation_frac = 0.125;
        f->plan.strategy = dl_strategy_find("3d"), f->plan.tp = 2, f->plan.pp = c ? 2 : 1;
        f->plan.dp = 0, f->plan.batch_per_device_samples = 4;
        assert_int_equal(dl_plan_complete(&f->system, &g.workload, &f->framework, &f->plan, &err),
                         DL_OK);
        const struct dl_predict_options options = {.terms = true};
        if (dl_predict(&f->system, &g.workload, &f->framework, &f->plan, &options, &f->arena, &p,
                       &err) != DL_OK)
            fail_msg("%s", err.message);
        double sum = 0;
        int count = 0;
        for (int i = 0; i < p.term_count; i++) {
            const struct dl_term *term = &p.terms[i];
            if (strcmp(term->group, "memory") != 0) continue;
            assert_true(count < 8);
            assert_string_equal(term->name, parts[count].name);
            assert_string_equal(term->formula, parts[count].formula);
            if (count++ == 7) {
                assert_string_equal(
                    term->inputs, dl_arena_printf(&f->arena, "sum=%.4g MiB x f / (1 - f), f=0.125",
                                                  sum / 1048576));
                check_close(term->value, sum / 7, 1e-9);
            }
            sum += term->value;
        }
        assert_int_equal(count, 8);
        check_close(sum, p.memory.total_bytes, 1e-9);
        dl_arena_free(&f->arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_and_no_others),    cmocka_unit_test(kinds_of_work),
        cmocka_unit_test(samples_but_for_rounding), cmocka_unit_test(mixed_precision_fits),
        cmocka_unit_test(parts_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
