/* Memory per device against docs/theory.md, worked by hand. */
#include "model/engine/memory.h"
#include "model/engine/memory_advice.h"
#include "model/framework/gradient_width.h"
#include "tests/check.h"
#include "tests/fake.h"

/* Mixed-precision Adam: 2 + 4 (weights and master) + 2 (gradients) + 8 (moments) = 16 bytes a
 * parameter; fp32 momentum: 12. */
static void states_per_parameter(void **state) {
    struct dl_framework half = {.sync = {.gradient_bytes = 4, .mixed_gradient_bytes = 2}};
    check_close(dl_memory_weight_bytes(DL_MIXED, DL_MASTERS_FP32) +
                    dl_framework_gradient_width(&half, DL_MIXED).kept_bytes +
                    dl_memory_optimizer_bytes(DL_ADAM),
                16, 0);
    check_close(dl_memory_weight_bytes(DL_FP32, DL_MASTERS_FP32) +
                    dl_framework_gradient_width(&half, DL_FP32).kept_bytes +
                    dl_memory_optimizer_bytes(DL_MOMENTUM),
                12, 0);
    check_close(dl_memory_optimizer_bytes(DL_SGD), 0, 0);
}

/* 1000 x 4000 + 4000 x 4000 + 4000 x 2000 + 2000 x 500 = 29e6 parameters. Activations saved: 1000 +
 * 4000 + 4000 + 2000 = 11000 elements a sample, and the input 4000 bytes: (44000 + 4000) x 256. DDP
 * buckets copy the gradients once. */
static void data_parallel_by_hand(void **state) {
    struct dl_fake f;
    struct dl_memory m;
    const char *unknown;
    fake_make(&f);
    fake_behaviour(&f.framework, "tensor-fusion");
    dl_memory_compute(&f.system, &f.workload, &f.framework, &f.plan, 256, &m, &unknown);
    check_close(m.weights_bytes, 116e6, 1e-12);
    check_close(m.gradients_bytes, 116e6, 1e-12);
    check_close(m.optimizer_bytes, 116e6, 1e-12);
    check_close(m.activations_bytes, 256 * 48000.0, 1e-12);
    check_close(m.buffers_bytes, 64e6, 1e-12); /* Horovod's fusion buffer */
    fake_behaviour(&f.framework, "bucketed");
    dl_memory_compute(&f.system, &f.workload, &f.framework, &f.plan, 256, &m, &unknown);
    check_close(m.buffers_bytes, 116e6, 1e-12);
    check_close(m.total_bytes, 4 * 116e6 + 256 * 48000.0 + 1e8 + 5e8, 1e-12);
    assert_null(unknown);
}

/* 16e9 = fixed + 48000 b: the largest b is floor((16e9 - 4 x 116e6 - 6e8) / 48000) = 311166; one
 * more does not fit. */
static void largest_batch(void **state) {
    struct dl_fake f;
    fake_make(&f);
    const double batch = dl_memory_max_batch(&f.system, &f.workload, &f.framework, &f.plan, NULL);
    check_close(batch, 311166, 0);
    struct dl_memory m;
    dl_memory_compute(&f.system, &f.workload, &f.framework, &f.plan, batch, &m, NULL);
    assert_true(m.total_bytes <= 16e9);
    dl_memory_compute(&f.system, &f.workload, &f.framework, &f.plan, batch + 1, &m, NULL);
    assert_true(m.total_bytes > 16e9);
    f.device.memory_bytes = 1e9; /* less than weights, states and context */
    check_close(dl_memory_max_batch(&f.system, &f.workload, &f.framework, &f.plan, NULL), 0, 0);
}

static void unknown_is_said(void **state) {
    struct dl_fake f;
    struct dl_memory m;
    const char *unknown = NULL;
    fake_make(&f);
    f.device.context_bytes = NAN;
    dl_memory_compute(&f.system, &f.workload, &f.framework, &f.plan, 1, &m, &unknown);
    assert_string_equal(unknown, "runtime context");
    f.device.memory_bytes = NAN;
    assert_true(isnan(dl_memory_max_batch(&f.system, &f.workload, &f.framework, &f.plan, NULL)));
}

/* Korthikanti et al.: per layer s b h (34 + 5 a s / h) bytes in 16 bit, 34 without the scores, 2
 * with full recomputation; here by hand on a network of two layers, the second recomputable with
 * 100 own elements and 10 bytes of masks. */
static void recomputation_frees_activations(void **state) {
    struct dl_fake f;
    fake_make(&f);
    const double features[] = {10, 20, 30};
    fake_layers(&f, 2, features);
    struct dl_layer *second = (struct dl_layer *)(void *)&f.workload.layers[1];
    second->saved.elements = 150;
    second->saved.own_elements = 100;
    second->saved.bytes = 10;
    second->recomputable = true;
    check_close(
        dl_memory_activation_bytes(&f.workload, DL_MIXED, DL_RECOMPUTE_NONE, DL_ATTENTION_OPEN),
        2 * (10 + 150) + 10, 1e-12);
    check_close(dl_memory_activation_bytes(&f.workload, DL_MIXED, DL_RECOMPUTE_SELECTIVE,
                                           DL_ATTENTION_OPEN),
                2 * (10 + 50), 1e-12);
    assert_true(isnan(
        dl_memory_activation_bytes(&f.workload, DL_MIXED, DL_RECOMPUTE_FULL, DL_ATTENTION_OPEN)));
    f.workload.transformer_layers = 3;
    f.workload.hidden = 8;
    f.workload.sequence = 16;
    /* Three inputs of 8 x 16, the first layer outside of the stack, and a third of the second,
     * which stands for three layers. */
    second->name = "h.0.dense";
    check_close(
        dl_memory_activation_bytes(&f.workload, DL_MIXED, DL_RECOMPUTE_FULL, DL_ATTENTION_OPEN),
        2 * 3 * 8 * 16 + 2 * 10 + (2 * 150 + 10) / 3.0, 1e-12);
    /* Selective recomputation runs the second layer's forward twice. */
    f.workload.transformer_layers = NAN;
    /* Of another network: the 20 inputs of its one block, what lies before, all of the block. */
    check_close(
        dl_memory_activation_bytes(&f.workload, DL_MIXED, DL_RECOMPUTE_FULL, DL_ATTENTION_OPEN),
        2 * 20 + 2 * 10 + (2 * 150 + 10), 1e-12);
    struct dl_prediction none, selective;
    assert_int_equal(fake_predict(&f, &none), DL_OK);
    f.plan.recompute = DL_RECOMPUTE_SELECTIVE;
    assert_int_equal(fake_predict(&f, &selective), DL_OK);
    double again = 0;
    for (int t = 0; t < none.term_count; t++) {
        if (strcmp(none.terms[t].name, "h.0.dense forward") == 0) again = none.terms[t].value;
    }
    assert_true(again > 0);
    check_close(selective.backward_s - none.backward_s, again, 1e-9);
    f.plan.recompute = DL_RECOMPUTE_FULL;
    second->name = "dense"; /* no block */
    assert_int_equal(fake_predict(&f, &selective), DL_ERR_USAGE);
}

/* 16 GB are too few: what is said first depends on what a change saves. */
static void advice_when_it_does_not_fit(void **state) {
    struct dl_fake f;
    fake_make(&f);
    f.plan.dp = 8;
    /* fits */
    assert_null(dl_memory_advice(&f.system, &f.workload, &f.framework, &f.plan, 256, &test_arena));
    struct dl_memory m = {0};
    dl_memory_compute(&f.system, &f.workload, &f.framework, &f.plan, 256, &m, NULL);
    struct dl_memory half = {0};
    dl_memory_compute(&f.system, &f.workload, &f.framework, &f.plan, 128, &half, NULL);
    assert_true(half.total_bytes < m.total_bytes);
    f.device.memory_bytes = (m.total_bytes + half.total_bytes) / 2; /* half the batch would do */
    check_contains(
        dl_memory_advice(&f.system, &f.workload, &f.framework, &f.plan, 256, &test_arena),
        "--micro-batch 128 saves");
    const double states = (m.weights_bytes + m.gradients_bytes + m.optimizer_bytes) * 7 / 8;
    struct dl_memory one = {0};
    dl_memory_compute(&f.system, &f.workload, &f.framework, &f.plan, 1, &one, NULL);
    /* nothing does alone */
    f.device.memory_bytes = fmin(one.total_bytes, m.total_bytes - states) - 1e6;
    check_contains(
        dl_memory_advice(&f.system, &f.workload, &f.framework, &f.plan, 256, &test_arena),
        "no single change is enough");
}

static double total_of(const struct dl_fake *f, double batch) {
    struct dl_memory m = {0};
    dl_memory_compute(&f->system, &f->workload, &f->framework, &f->plan, batch, &m, NULL);
    return m.total_bytes;
}

/* What the advice says in full where `change` brings the total from `now` to `then`. */
static void check_advice(struct dl_fake *f, double batch, const char *change, double now,
                         double then) {
    const double gib = 1073741824;
    assert_string_equal(
        dl_memory_advice(&f->system, &f->workload, &f->framework, &f->plan, batch, &test_arena),
        dl_arena_printf(&test_arena,
                        "does not fit, %.3g GiB too much: %s saves %.3g GiB and makes it fit",
                        (now - f->device.memory_bytes) / gib, change, (now - then) / gib));
}

/* On one device nothing is sharded; a network of dense layers recomputes nothing. */
static void advice_of_each_kind(void **state) {
    struct dl_fake f;
    fake_make(&f);
    struct dl_rate rates[] = {f.rate, f.rate};
    f.device.rates = rates, f.device.rate_count = 2;
    f.plan.dp = f.plan.nodes = f.plan.devices_per_node = 1;
    const double many = 4000.5; /* no micro-batch divides them */
    f.plan.precision = DL_MIXED;
    const double mixed = total_of(&f, many);
    f.plan.precision = DL_FP32;
    const double now = total_of(&f, many);
    assert_true(mixed < now - 1e6);
    f.device.memory_bytes = (now + mixed) / 2;
    rates[1].precision = DL_MIXED;
    check_advice(&f, many, "--precision mixed", now, mixed);
    rates[1].precision = DL_FP32; /* without that rate fewer samples are left */
    check_contains(
        dl_memory_advice(&f.system, &f.workload, &f.framework, &f.plan, many, &test_arena),
        ": --batch-per-device ");
    f.device.memory_bytes = total_of(&f, 1) - 1e6;
    check_contains(dl_memory_advice(&f.system, &f.workload, &f.framework, &f.plan, 1, &test_arena),
                   "too much: use a device with more memory");
    /* 2.5 samples a device: no micro-batch divides them, two fit */
    f.device.memory_bytes = (total_of(&f, 2.5) + total_of(&f, 2)) / 2;
    check_advice(&f, 2.5, "--batch-per-device 2", total_of(&f, 2.5), total_of(&f, 2));
    f.device.memory_bytes = (total_of(&f, 6) + total_of(&f, 3)) / 2;
    check_advice(&f, 6, "--micro-batch 3", total_of(&f, 6), total_of(&f, 3));
    f.device.memory_bytes = (total_of(&f, 6) + 2 * total_of(&f, 2)) / 3;
    check_contains(dl_memory_advice(&f.system, &f.workload, &f.framework, &f.plan, 6, &test_arena),
                   "saves");
    f.plan.dp = 8; /* the micro-batches do not free enough, all ranks' memory does */
    struct dl_memory m = {0};
    dl_memory_compute(&f.system, &f.workload, &f.framework, &f.plan, 1, &m, NULL);
    const double sharded =
        m.total_bytes - (m.weights_bytes + m.gradients_bytes + m.optimizer_bytes) * 7 / 8;
    f.device.memory_bytes = (m.total_bytes + sharded) / 2;
    check_advice(&f, 1, "--strategy zero3", m.total_bytes, sharded);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states_per_parameter),
        cmocka_unit_test(data_parallel_by_hand),
        cmocka_unit_test(largest_batch),
        cmocka_unit_test(unknown_is_said),
        cmocka_unit_test(advice_when_it_does_not_fit),
        cmocka_unit_test(advice_of_each_kind),
        cmocka_unit_test(recomputation_frees_activations),
    };
    return cmocka_run_group_tests(tests, NULL, check_free);
}
