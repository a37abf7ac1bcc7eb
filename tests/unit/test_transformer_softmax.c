/* Softmax that a fused kernel does not take, and how device and host hide each other; by hand. */
#include "model/workload/layer.h"
#include "model/engine/transformer/transformer.h"
#include "tests/check.h"
#include "tests/fake.h"

/* 16 heads over 8 ranks: 2 heads of 64 channels, 512 tokens. */
static struct dl_layer two_heads(void) {
    return (struct dl_layer){.kind = &dl_layer_attention,
                             .attention.heads = 2,
                             .requested.tokens = 512,
                             .out = {.dims = 1, .channels = 128, .size = {1, 1, 512}}};
}

/* F-TRANSFORMER-SOFTMAX: one sample is 2 matrices, no multiple of 4: 4 kernels more; two samples
 * are 4 and none. n = 2 x 512 x 512 scores; forward reads and writes 8 n more, backward reads 9 n.
 */
static void fused_when_matrices_divide(void **state) {
    const struct dl_framework framework = {
        .kernels = {.softmax_matrices = 4, .softmax_keys = 2048}};
    struct dl_layer layer = two_heads();
    struct dl_kernel kernels[DL_TRANSFORMER_SOFTMAX_KERNELS];
    const double n = 2.0 * 512 * 512;
    const struct {
        enum dl_pass pass;
        double reads;
    } passes[] = {{DL_FORWARD, 8 * n}, {DL_BACKWARD_DATA, 9 * n}};
    for (int p = 0; p < 2; p++) {
        double reads = 0, writes = 0, launches = 0;
        assert_int_equal(dl_transformer_softmax_kernels(&framework, DL_MIXED, &layer,
                                                        passes[p].pass, 1, kernels),
                         4);
        for (int i = 0; i < 4; i++)
            reads += kernels[i].read_elements, writes += kernels[i].write_elements,
                launches += kernels[i].launches;
        check_close(reads, passes[p].reads, 0);
        check_close(writes, 8 * n, 0);
        check_close(launches, 4, 0);
    }
    assert_int_equal(
        dl_transformer_softmax_kernels(&framework, DL_MIXED, &layer, DL_FORWARD, 2, kernels), 0);
    assert_int_equal(dl_transformer_softmax_kernels(&framework, DL_MIXED, &layer,
                                                    DL_BACKWARD_WEIGHTS, 1, kernels),
                     0);
    assert_int_equal(
        dl_transformer_softmax_kernels(&framework, DL_FP32, &layer, DL_FORWARD, 1, kernels), 0);
    layer.requested.tokens = 4096; /* more columns than the kernel takes */
    assert_int_equal(
        dl_transformer_softmax_kernels(&framework, DL_MIXED, &layer, DL_FORWARD, 2, kernels), 4);
    const struct dl_framework any_keys = {.kernels = {.softmax_matrices = 4}};
    assert_int_equal(
        dl_transformer_softmax_kernels(&any_keys, DL_MIXED, &layer, DL_FORWARD, 2, kernels), 0);
    layer.attention.flash = true;
    assert_int_equal(
        dl_transformer_softmax_kernels(&framework, DL_MIXED, &layer, DL_FORWARD, 2, kernels), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(fused_when_matrices_divide)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
