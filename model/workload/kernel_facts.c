/* kernel_facts.c - passes of composed operations and types under mixed precision, from the sources
 * of the frameworks (key `kernels-of-frameworks`). F-KERNEL-FACTS */
#include "model/workload/kernel_facts.h"

/* Columns of the tables below. */
enum { FORWARD, DATA, WEIGHTS, COLUMNS };

static int column(enum dl_pass pass) {
    return pass == DL_FORWARD ? FORWARD : pass == DL_BACKWARD_DATA ? DATA : WEIGHTS;
}

/* Composed: 10 operations of TensorFlow forward, 15 passes; their gradients, about 20 kernels and
 * 41 passes, of which 2 belong to the weights. */
struct dl_passes dl_passes_layernorm(enum dl_layernorm_kernels how, enum dl_pass pass) {
    static const struct dl_passes table[][COLUMNS] = {
        [DL_LAYERNORM_FUSED] = {{1, 1, 1, 0}, {1, 2, 1, 0}, {1, 2, 0, 0}},
        [DL_LAYERNORM_MOMENTS] = {{2, 2, 1, 0}, {3, 4, 1, 0}, {1, 2, 0, 0}},
        [DL_LAYERNORM_BATCHNORM] = {{3, 4, 3, 0}, {3, 6, 2, 0}, {2, 3, 1, 0}},
        [DL_LAYERNORM_COMPILED] = {{3, 3, 1, 0}, {2, 4, 1, 0}, {1, 2, 0, 0}},
        [DL_LAYERNORM_COMPOSED] = {{10, 9, 6, 0}, {18, 24, 15, 0}, {2, 2, 0, 0}},
        [DL_LAYERNORM_ONE_KERNEL] = {{1, 1, 1, 0}, {1, 2, 1, 0}, {0, 0, 0, 0}},
    };
    return table[how][column(pass)];
}

struct dl_passes dl_passes_gelu(enum dl_gelu_kernels how, enum dl_pass pass) {
    static const struct dl_passes table[][COLUMNS] = {
        [DL_GELU_FUSED] = {{1, 1, 1, 0}, {1, 2, 1, 0}},
        [DL_GELU_ERF] = {{5, 6, 5, 0}, {7, 11, 7, 0}},
        [DL_GELU_COMPOSED] = {{8, 10, 8, 0}, {10, 16, 10, 0}},
    };
    return table[how][column(pass)];
}

/* Composed forward in fp32, 8.5 passes: random numbers w4, comparison r4 w1, cast r1, and in the
 * type of the data the cast's w1, r1w1 and r2w1. */
struct dl_passes dl_passes_dropout(enum dl_dropout_kernels how, enum dl_pass pass) {
    static const struct dl_passes table[][COLUMNS] = {
        [DL_DROPOUT_FUSED] = {{1, 1, 1, 1}, {1, 1, 1, 1}},
        [DL_DROPOUT_COMPILED] = {{0, 0, 0, 0}, {0, 1, 1, 0}},
        [DL_DROPOUT_COMPOSED] = {{5, 3, 3, 10}, {2, 3, 2, 0}},
    };
    return table[how][column(pass)];
}

struct dl_passes dl_passes_softmax(enum dl_softmax_kernels how, enum dl_pass pass) {
    static const struct dl_passes table[][COLUMNS] = {
        [DL_SOFTMAX_FUSED] = {{1, 1, 1, 0}, {1, 2, 1, 0}},
        [DL_SOFTMAX_COMPILED] = {{3, 3, 2, 0}, {3, 5, 1, 0}},
        [DL_SOFTMAX_COMPOSED] = {{3, 3, 1, 0}, {4, 6, 3, 0}},
    };
    return table[how][column(pass)];
}

/* Composed: copy, two products with vectors of ones and two of rank one, product, quotient, copy,
 * and the separate scale layer. */
struct dl_passes dl_passes_batchnorm(enum dl_batchnorm_kernels how, enum dl_pass pass) {
    static const struct dl_passes table[][COLUMNS] = {
        [DL_BATCHNORM_SPATIAL] = {{1, 2, 1, 0}, {1, 4, 1, 0}, {1, 2, 0, 0}},
        [DL_BATCHNORM_PERSISTENT] = {{1, 1, 1, 0}, {1, 2, 1, 0}, {1, 2, 0, 0}},
        [DL_BATCHNORM_TRANSPOSED] = {{3, 4, 3, 0}, {4, 7, 4, 0}, {1, 2, 0, 0}},
        [DL_BATCHNORM_COMPOSED] = {{9, 9, 7, 0}, {12, 13, 8, 0}, {1, 2, 0, 0}},
    };
    return table[how][column(pass)];
}

/* Composed: three kernels of the log-softmax, one-hot, product, sum; backward exponential, sum,
 * product, difference, product. Fused: read once, the probabilities kept. All in fp32. */
struct dl_passes dl_passes_loss(enum dl_loss_kernels how, enum dl_pass pass) {
    static const struct dl_passes table[][COLUMNS] = {
        [DL_LOSS_FUSED] = {{1, 1, 0, 4}, {1, 0, 1, 4}},
        [DL_LOSS_COMPOSED] = {{6, 6, 3, 0}, {5, 6, 4, 0}},
        [DL_LOSS_EAGER] = {{3, 1.5, 2, 0}, {3, 3, 2.5, 0}}, /* the 16-bit passes count half */
        [DL_LOSS_PARALLEL] = {{6, 5.5, 4, 0}, {3, 2, 1.5, 0}},
        [DL_LOSS_COMPILED] = {{3, 2.5, 4, 0}, {1, 1, 0.5, 0}},
        [DL_LOSS_SCORED] = {{9, 8.5, 3, 0}, {2, 2, 1.5, 0}},
    };
    return table[how][column(pass)];
}

/* fp32 elements, and casts of the output. Autocast casts the fp32 output of a layer norm anew for
 * each product that reads it: three (queries, keys, values) and one, on average two; and that of
 * the softmax for the product with the values. The graph rewrite casts once at each border between
 * the types: before and after GELU, after a layer norm, before a hidden dropout. */
static const struct {
    bool fp32;
    double casts;
} policies[DL_MIXED_POLICIES][DL_FACT_OPS] = {
    [DL_MIXED_AUTOCAST] = {[DL_FACT_LAYERNORM] = {true, 2},
                           [DL_FACT_RESIDUAL] = {true, 0},
                           [DL_FACT_SOFTMAX] = {true, 0},
                           [DL_FACT_SCORES] = {true, 1},
                           [DL_FACT_EMBEDDING] = {true, 0}},
    [DL_MIXED_AUTOCAST_GELU] = {[DL_FACT_LAYERNORM] = {true, 2},
                                [DL_FACT_GELU] = {true, 2},
                                [DL_FACT_RESIDUAL] = {true, 0},
                                [DL_FACT_SOFTMAX] = {true, 0},
                                [DL_FACT_SCORES] = {true, 1},
                                [DL_FACT_EMBEDDING] = {true, 0}},
    [DL_MIXED_REWRITE] = {[DL_FACT_LAYERNORM] = {true, 1},
                          [DL_FACT_GELU] = {true, 2},
                          [DL_FACT_DROPOUT] = {true, 1},
                          [DL_FACT_RESIDUAL] = {true, 0},
                          [DL_FACT_BIAS] = {true, 0},
                          [DL_FACT_EMBEDDING] = {true, 0}},
    [DL_MIXED_REWRITE_SOFTMAX] = {[DL_FACT_LAYERNORM] = {true, 1},
                                  [DL_FACT_GELU] = {true, 2},
                                  [DL_FACT_DROPOUT] = {true, 1},
                                  [DL_FACT_RESIDUAL] = {true, 0},
                                  [DL_FACT_BIAS] = {true, 0},
                                  [DL_FACT_SOFTMAX] = {true, 1},
                                  [DL_FACT_SCORES] = {true, 1},
                                  [DL_FACT_EMBEDDING] = {true, 0}},
    /* casts around each layer norm */
    [DL_MIXED_KERAS] = {[DL_FACT_LAYERNORM] = {true, 2}, [DL_FACT_EMBEDDING] = {true, 0}},
    [DL_MIXED_REWRITE_COMPILED] = {[DL_FACT_LAYERNORM] = {true, 0},
                                   [DL_FACT_RESIDUAL] = {true, 0},
                                   [DL_FACT_EMBEDDING] = {true, 0}},
};

bool dl_fact_is_fp32(const struct dl_kernel_facts *facts, enum dl_fact_op op) {
    return facts->precision == DL_MIXED && policies[facts->policy][op].fp32;
}

double dl_fact_casts(const struct dl_kernel_facts *facts, enum dl_fact_op op) {
    return facts->precision == DL_MIXED ? policies[facts->policy][op].casts : 0;
}
