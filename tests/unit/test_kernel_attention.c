/* Fused attention: pairs, work and time in hand-computed limits; kernels with a type of their
 * own. */
#include "model/machine/device.h"
#include "model/machine/kernel.h"
#include "model/machine/kernel_model.h"
#include "tests/check.h"
#include "tests/plain_device.h"

static struct dl_rate RATES[] = {{DL_FP32, 0, 10e12, NULL, NAN}, {DL_FP16, 1, 80e12, NULL, NAN}};

static struct dl_kernel_model attention_model(void) {
    struct dl_kernel_model model = plain_model(DL_OP_ATTENTION, DL_FP16);
    model.latency_s = 1e-9;
    model.rate_flop_per_s = 40e12;
    model.correction.call_s = 3e-5;
    return model;
}

static void pairs_of_attention(void **state) {
    check_close(dl_attention_pairs(4, 6, false, 0), 24, 0);
    check_close(dl_attention_pairs(4, 4, true, 0), 10, 0);    /* 1 + 2 + 3 + 4 */
    check_close(dl_attention_pairs(2, 5, true, 0), 9, 0);     /* 4 + 5: the last sees all */
    check_close(dl_attention_pairs(5, 5, true, 2), 9, 0);     /* 1 + 2 + 2 + 2 + 2 */
    check_close(dl_attention_pairs(4, 6, false, 3), 12, 0);   /* 3 each */
    check_close(dl_attention_pairs(1, 100, true, 0), 100, 0); /* one new token sees all */
}

static void work_of_attention(void **state) {
    const struct dl_attention_shape shape = {.batch = 2,
                                             .heads = 8,
                                             .kv_heads = 2,
                                             .queries = 4,
                                             .keys = 4,
                                             .head_dim = 16,
                                             .value_dim = 8,
                                             .causal = true};
    const struct dl_kernel forward = dl_kernel_attention(DL_FORWARD, &shape),
                           backward = dl_kernel_attention(DL_BACKWARD_DATA, &shape);
    check_close(forward.flop, 2 * 16 * 10 * (16 + 8), 0);
    check_close(backward.flop, 2 * 16 * 10 * (3 * 16 + 2 * 8), 0);
    /* Q 2 x 8 x 4 x 16, K and V 2 x 2 x 4 x (16 + 8); O 2 x 8 x 4 x 8 */
    check_close(forward.read_elements, 1024 + 384, 0);
    check_close(forward.write_elements, 512, 0);
    check_close(backward.read_elements, 1024 + 384 + 2 * 512, 0);
    check_close(backward.write_elements, 1024 + 384, 0);
    check_close(forward.extra_bytes, 4 * 64, 0);
}

static void time_of_attention(void **state) {
    struct dl_kernel_model model = attention_model();
    struct dl_device device = plain_device(RATES, 2, 5e-6);
    device.kernel_models = &model;
    device.kernel_model_count = 1;
    struct dl_attention_shape shape = {.batch = 1,
                                       .heads = 32,
                                       .kv_heads = 32,
                                       .queries = 8192,
                                       .keys = 8192,
                                       .head_dim = 128,
                                       .value_dim = 128};
    struct dl_kernel kernel = dl_kernel_attention(DL_FORWARD, &shape);
    struct dl_kernel_time whole, causal, backward, wide;
    dl_kernel_time(&device, DL_FP16, &kernel, &whole);
    /* far above the memory's 4 x 8192 x 4096 x 2 bytes: 2 x 32 x 8192^2 x 256 / 40e12 */
    check_close(whole.time_s, 2.0 * 32 * 8192.0 * 8192 * 256 / 40e12, 1e-3);
    assert_int_equal(whole.limit, DL_LIMIT_COMPUTE);
    shape.causal = true;
    kernel = dl_kernel_attention(DL_FORWARD, &shape);
    dl_kernel_time(&device, DL_FP16, &kernel, &causal);
    check_close(causal.time_s / whole.time_s, 8193.0 / 16384, 1e-3);
    /* no backward samples: the forward rate by the ratio of FlashAttention-2 */
    kernel = dl_kernel_attention(DL_BACKWARD_DATA, &shape);
    dl_kernel_time(&device, DL_FP16, &kernel, &backward);
    check_close(backward.time_s / causal.time_s, 2.5 * 73 / 63, 1e-3);
    assert_true(backward.extrapolated && backward.sigma_log > causal.sigma_log);
    /* few queries of many keys: the keys and values are read once, at 500 GB/s */
    shape = (struct dl_attention_shape){.batch = 64,
                                        .heads = 8,
                                        .kv_heads = 8,
                                        .queries = 1,
                                        .keys = 65536,
                                        .head_dim = 128,
                                        .value_dim = 128};
    kernel = dl_kernel_attention(DL_FORWARD, &shape);
    dl_kernel_time(&device, DL_FP16, &kernel, &wide);
    check_close(wide.time_s, 64.0 * 8 * 65536 * 256 * 2 / 500e9, 0.03);
    assert_int_equal(wide.limit, DL_LIMIT_MEMORY);
    check_close(dl_kernel_call_s(&device, DL_FP16, &kernel), 3e-5, 0);
}

static void kernels_of_their_own_type(void **state) {
    struct dl_device device = plain_device(RATES, 2, 5e-6);
    struct dl_kernel kernel = dl_kernel_stream(DL_FORWARD, 0, 1e9, 1e9);
    struct dl_kernel_time plain, typed;
    dl_kernel_time(&device, DL_FP32, &kernel, &plain);
    kernel.has_type = true;
    kernel.type = DL_FP32;
    dl_kernel_time(&device, DL_FP16, &kernel, &typed);
    check_close(typed.time_s, plain.time_s, 0);
    /* 8-bit operands, 16-bit results: 2 x 4096^2 bytes in, 2 x 4096^2 out; all of 16 bits: 6 */
    struct dl_kernel gemm = dl_kernel_gemm(DL_FORWARD, 4096, 4096, 4096, 1);
    struct dl_kernel_model_shape narrow, wide;
    dl_kernel_model_shape_of(&gemm, dl_precision_operand_bytes(DL_FP8), 100, &narrow);
    dl_kernel_model_shape_of(&gemm, dl_precision_operand_bytes(DL_FP16), 100, &wide);
    check_close(narrow.bytes, 4.0 * 4096 * 4096, 0);
    check_close(wide.bytes, 6.0 * 4096 * 4096, 0);
}

/* A model of the kind of work and width of a stream before one for all. */
static void streams_by_work(void **state) {
    struct dl_kernel_model models[3];
    for (int i = 0; i < 3; i++) {
        models[i] = attention_model();
        models[i].op = DL_OP_STREAM;
        models[i].precision = i == 1 ? DL_FP32 : DL_MIXED;
        models[i].work = i == 2 ? DL_WORK_RMSNORM : DL_WORK_ANY;
        models[i].bandwidth_bytes_per_s = (i + 1) * 100e9;
    }
    struct dl_device device = plain_device(RATES, 2, 5e-6);
    device.kernel_models = models;
    device.kernel_model_count = 3;
    struct dl_kernel kernel = dl_kernel_stream(DL_BACKWARD_DATA, 0, 1e9, 0);
    struct dl_kernel_time time;
    dl_kernel_time(&device, DL_BF16, &kernel, &time);
    check_close(time.time_s, 2e9 / 100e9, 1e-3);
    dl_kernel_time(&device, DL_FP32, &kernel, &time);
    check_close(time.time_s, 4e9 / 200e9, 1e-3);
    kernel.work = DL_WORK_RMSNORM;
    dl_kernel_time(&device, DL_BF16, &kernel, &time);
    check_close(time.time_s, 2e9 / 300e9, 1e-3);
}

/* Where large GEMMs were measured on both devices, a borrowed time scales with what they
 * sustain. */
static void sustained_rates(void **state) {
    struct dl_kernel_model model = attention_model();
    struct dl_rate measured[] = {{DL_FP16, 1, 80e12, NULL, 60e12}},
                   faster[] = {{DL_FP16, 1, 160e12, NULL, 90e12}};
    struct dl_device owner = plain_device(measured, 1, 5e-6),
                     device = plain_device(faster, 1, 5e-6);
    owner.kernel_models = &model;
    owner.kernel_model_count = 1;
    device.borrowed = &owner;
    const struct dl_attention_shape shape = {.batch = 8,
                                             .heads = 64,
                                             .kv_heads = 64,
                                             .queries = 8192,
                                             .keys = 8192,
                                             .head_dim = 128,
                                             .value_dim = 128};
    const struct dl_kernel kernel = dl_kernel_attention(DL_FORWARD, &shape);
    struct dl_kernel_time own, lent;
    dl_kernel_time(&owner, DL_FP16, &kernel, &own);
    dl_kernel_time(&device, DL_FP16, &kernel, &lent);
    check_close(own.time_s / lent.time_s, 1.5, 1e-3);
    faster[0].sustained_flop_per_s = NAN;
    dl_kernel_time(&device, DL_FP16, &kernel, &lent);
    check_close(own.time_s / lent.time_s, 2, 1e-3);
    assert_string_equal(lent.origin, "borrowed");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_of_attention), cmocka_unit_test(work_of_attention),
        cmocka_unit_test(time_of_attention),  cmocka_unit_test(kernels_of_their_own_type),
        cmocka_unit_test(streams_by_work),    cmocka_unit_test(sustained_rates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
