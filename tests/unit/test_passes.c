/* F-KERNEL-FACTS: kernels and passes of composed operations, and the types of mixed precision, each
 * written once more from the sources of the frameworks. */
#include "model/workload/kernel_facts.h"
#include "tests/check.h"

static const enum dl_pass passes[] = {DL_FORWARD, DL_BACKWARD_DATA, DL_BACKWARD_WEIGHTS};

/* "kernels reads writes bytes" of forward, of backward for the input and, where there are weights,
 * for them. */
static void check_row(const char *name, int how, struct dl_passes (*of)(int, enum dl_pass),
                      const char *expected) {
    char text[200] = "";
    const int count = strchr(expected, ';') != strrchr(expected, ';') ? 3 : 2;
    for (int p = 0; p < count; p++) {
        const struct dl_passes got = of(how, passes[p]);
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%g %g %g %g",
                 p > 0 ? "; " : "", got.kernels, got.reads, got.writes, got.fixed_bytes);
    }
    if (strcmp(text, expected) != 0)
        fail_msg("%s %d: \"%s\", expected \"%s\"", name, how, text, expected);
}

static struct dl_passes layernorm(int how, enum dl_pass pass) {
    return dl_passes_layernorm((enum dl_layernorm_kernels)how, pass);
}
static struct dl_passes gelu(int how, enum dl_pass pass) {
    return dl_passes_gelu((enum dl_gelu_kernels)how, pass);
}
static struct dl_passes dropout(int how, enum dl_pass pass) {
    return dl_passes_dropout((enum dl_dropout_kernels)how, pass);
}
static struct dl_passes softmax(int how, enum dl_pass pass) {
    return dl_passes_softmax((enum dl_softmax_kernels)how, pass);
}
static struct dl_passes batchnorm(int how, enum dl_pass pass) {
    return dl_passes_batchnorm((enum dl_batchnorm_kernels)how, pass);
}
static struct dl_passes loss(int how, enum dl_pass pass) {
    return dl_passes_loss((enum dl_loss_kernels)how, pass);
}

static void composed_operations(void **state) {
    check_row("layernorm", DL_LAYERNORM_FUSED, layernorm, "1 1 1 0; 1 2 1 0; 1 2 0 0");
    check_row("layernorm", DL_LAYERNORM_MOMENTS, layernorm, "2 2 1 0; 3 4 1 0; 1 2 0 0");
    check_row("layernorm", DL_LAYERNORM_BATCHNORM, layernorm, "3 4 3 0; 3 6 2 0; 2 3 1 0");
    check_row("layernorm", DL_LAYERNORM_COMPILED, layernorm, "3 3 1 0; 2 4 1 0; 1 2 0 0");
    check_row("layernorm", DL_LAYERNORM_COMPOSED, layernorm, "10 9 6 0; 18 24 15 0; 2 2 0 0");
    check_row("layernorm", DL_LAYERNORM_ONE_KERNEL, layernorm, "1 1 1 0; 1 2 1 0; 0 0 0 0");
    check_row("gelu", DL_GELU_FUSED, gelu, "1 1 1 0; 1 2 1 0");
    check_row("gelu", DL_GELU_ERF, gelu, "5 6 5 0; 7 11 7 0");
    check_row("gelu", DL_GELU_COMPOSED, gelu, "8 10 8 0; 10 16 10 0");
    check_row("dropout", DL_DROPOUT_FUSED, dropout, "1 1 1 1; 1 1 1 1");
    check_row("dropout", DL_DROPOUT_COMPILED, dropout, "0 0 0 0; 0 1 1 0");
    check_row("dropout", DL_DROPOUT_COMPOSED, dropout, "5 3 3 10; 2 3 2 0");
    check_row("softmax", DL_SOFTMAX_FUSED, softmax, "1 1 1 0; 1 2 1 0");
    check_row("softmax", DL_SOFTMAX_COMPILED, softmax, "3 3 2 0; 3 5 1 0");
    check_row("softmax", DL_SOFTMAX_COMPOSED, softmax, "3 3 1 0; 4 6 3 0");
    check_row("batchnorm", DL_BATCHNORM_SPATIAL, batchnorm, "1 2 1 0; 1 4 1 0; 1 2 0 0");
    check_row("batchnorm", DL_BATCHNORM_PERSISTENT, batchnorm, "1 1 1 0; 1 2 1 0; 1 2 0 0");
    check_row("batchnorm", DL_BATCHNORM_TRANSPOSED, batchnorm, "3 4 3 0; 4 7 4 0; 1 2 0 0");
    check_row("batchnorm", DL_BATCHNORM_COMPOSED, batchnorm, "9 9 7 0; 12 13 8 0; 1 2 0 0");
    check_row("loss", DL_LOSS_FUSED, loss, "1 1 0 4; 1 0 1 4");
    check_row("loss", DL_LOSS_COMPOSED, loss, "6 6 3 0; 5 6 4 0");
    check_row("loss", DL_LOSS_EAGER, loss, "3 1.5 2 0; 3 3 2.5 0");
    check_row("loss", DL_LOSS_PARALLEL, loss, "6 5.5 4 0; 3 2 1.5 0");
    check_row("loss", DL_LOSS_COMPILED, loss, "3 2.5 4 0; 1 1 0.5 0");
    check_row("loss", DL_LOSS_SCORED, loss, "9 8.5 3 0; 2 2 1.5 0");
}

/* Of each policy the casts of what works in fp32: layer norm, GELU, dropout, residual, bias,
 * softmax, scores, embedding; '-': in 16 bits. In other precisions nothing is cast. */
static void mixed_precision(void **state) {
    static const struct {
        enum dl_mixed_policy policy;
        const char *casts;
    } rows[] = {
        {DL_MIXED_HALF, "--------"},
        {DL_MIXED_AUTOCAST, "2--0-010"},
        {DL_MIXED_AUTOCAST_GELU, "22-0-010"},
        {DL_MIXED_REWRITE, "12100--0"},
        {DL_MIXED_REWRITE_SOFTMAX, "12100110"},
        {DL_MIXED_REWRITE_COMPILED, "0--0---0"},
        {DL_MIXED_KERAS, "2------0"},
    };
    assert_int_equal(sizeof rows / sizeof rows[0], DL_MIXED_POLICIES);
    for (int i = 0; i < DL_MIXED_POLICIES; i++) {
        struct dl_kernel_facts facts = {.precision = DL_MIXED, .policy = rows[i].policy};
        for (int op = 0; op < DL_FACT_OPS; op++) {
            const char own = rows[i].casts[op];
            facts.precision = DL_MIXED;
            if (dl_fact_is_fp32(&facts, (enum dl_fact_op)op) != (own != '-') ||
                dl_fact_casts(&facts, (enum dl_fact_op)op) != (own == '-' ? 0 : own - '0'))
                fail_msg("policy %d, operation %d", i, op);
            for (int p = 0; p < 3; p++) {
                facts.precision = p == 0 ? DL_FP32 : p == 1 ? DL_BF16 : DL_FP16;
                assert_false(dl_fact_is_fp32(&facts, (enum dl_fact_op)op));
                check_close(dl_fact_casts(&facts, (enum dl_fact_op)op), 0, 0);
            }
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(composed_operations),
                                       cmocka_unit_test(mixed_precision)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
