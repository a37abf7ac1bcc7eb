/* kernel_facts.h - what a framework runs for a layer: discrete facts that decide which kernels a
 * layer emits, how many passes over memory they make and in which type. A framework file states
 * them (model/framework); layers read them and nothing else of the framework. F-KERNEL-FACTS
 *
 * A pass is one full read or one full write of a tensor. The first value of each enumeration is
 * one fused kernel, so that facts of zeros describe a framework that composes nothing.
 * Source of all counts: key `kernels-of-frameworks` of data/SOURCES.md. Not modelled: passes inside
 * cuDNN's kernels beyond those named here.
 */
#ifndef DL_MODEL_WORKLOAD_KERNEL_FACTS_H
#define DL_MODEL_WORKLOAD_KERNEL_FACTS_H

#include "model/machine/kernel.h"

enum dl_layernorm_kernels {
    DL_LAYERNORM_FUSED,      /* one kernel forward, two backward: apex, MXNet, recent PyTorch */
    DL_LAYERNORM_MOMENTS,    /* moments, then the row: PyTorch 1.4 to 1.10 */
    DL_LAYERNORM_BATCHNORM,  /* batch norm of a view, then scale and shift: PyTorch to 1.3 */
    DL_LAYERNORM_COMPILED,   /* two reductions and one elementwise kernel: XLA */
    DL_LAYERNORM_COMPOSED,   /* ten operations: TensorFlow */
    DL_LAYERNORM_ONE_KERNEL, /* one kernel each way: Transformer Engine, cuDNN, Liger */
};
enum dl_gelu_kernels {
    DL_GELU_FUSED,
    DL_GELU_ERF,     /* five elementwise operations: PyTorch scripts of 2019 */
    DL_GELU_COMPOSED /* the tanh form in eight operations: TensorFlow */
};
enum dl_dropout_kernels {
    DL_DROPOUT_FUSED,    /* one kernel, a mask of bytes */
    DL_DROPOUT_COMPILED, /* inside the kernels around it: XLA */
    DL_DROPOUT_COMPOSED, /* random numbers, comparison, cast, two products: TensorFlow */
};
enum dl_softmax_kernels {
    DL_SOFTMAX_FUSED,    /* the row stays on chip */
    DL_SOFTMAX_COMPILED, /* scale, mask and dropout inside its three kernels: XLA */
    DL_SOFTMAX_COMPOSED, /* maximum, sum, quotient; four operations backward: TensorFlow */
};
enum dl_batchnorm_kernels {
    DL_BATCHNORM_SPATIAL,    /* cuDNN: statistics, then the normalization */
    DL_BATCHNORM_PERSISTENT, /* cuDNN: what it read of a channel stays on chip if it fits */
    DL_BATCHNORM_TRANSPOSED, /* the spatial ones between copies to NCHW and back: TensorFlow */
    DL_BATCHNORM_COMPOSED,   /* Caffe: products with vectors of ones */
};
enum dl_pooling_kernels {
    DL_POOLING_CUDNN,
    DL_POOLING_INDICES, /* backward: looks for each element at every window: PyTorch */
};
enum dl_bias_kernels {
    DL_BIAS_EPILOGUE, /* in the matrix product or the elementwise kernel after it */
    DL_BIAS_KERNEL,   /* reads and writes the output once more */
};
enum dl_loss_kernels {
    DL_LOSS_FUSED,
    DL_LOSS_COMPOSED, /* log-softmax, one-hot, product, sum */
    DL_LOSS_EAGER,    /* logits to fp32, log-softmax, its gradient, back to 16 bits: PyTorch */
    DL_LOSS_PARALLEL, /* to fp32, maximum, difference, exponential, sum, quotient: Megatron */
    DL_LOSS_COMPILED, /* the same in three compiled kernels, and one backward: Megatron-Core */
    DL_LOSS_SCORED, /* to fp32, fused; then the loss by kinds of data, accuracy (maximum twice, its
                         place) and perplexity (difference, exponential, sum): InternEvo */
};
enum dl_sum_kernels {
    DL_SUM_PAIRS,  /* gradients of a tensor with several readers are added two at a time */
    DL_SUM_AT_ONCE /* in one kernel: AddN of TensorFlow */
};
/* Activations that run inside the kernel of the batch norm or addition before them. */
enum dl_fusion { DL_FUSION_NONE, DL_FUSION_FORWARD, DL_FUSION_BOTH };
enum dl_layout { DL_LAYOUT_NCHW, DL_LAYOUT_NHWC };

/* What mixed precision keeps in fp32 and which casts it inserts. */
enum dl_mixed_policy {
    DL_MIXED_HALF,            /* nothing but statistics and loss: apex O2, MXNet, half models */
    DL_MIXED_AUTOCAST,        /* layer norm, softmax, residuals: PyTorch autocast, apex O1, MXNet */
    DL_MIXED_AUTOCAST_GELU,   /* and GELU: autocast of PyTorch 1.6 to 1.8, apex O1 */
    DL_MIXED_REWRITE,         /* all but products and what lies between them: TensorFlow 2 */
    DL_MIXED_REWRITE_SOFTMAX, /* and softmax: TensorFlow 1.14 */
    DL_MIXED_REWRITE_COMPILED, /* TensorFlow under XLA: casts are part of the kernels */
    DL_MIXED_KERAS,            /* layer norms: mixed_float16 of tf.keras */
    DL_MIXED_POLICIES
};

struct dl_kernel_facts {
    enum dl_precision precision;        /* of the plan */
    enum dl_attention_kernel attention; /* kernels of attention; DL_ATTENTION_OPEN: the layer's */
    enum dl_layernorm_kernels layernorm;
    enum dl_gelu_kernels gelu;
    enum dl_dropout_kernels dropout;
    enum dl_softmax_kernels softmax;
    enum dl_batchnorm_kernels batchnorm;
    enum dl_pooling_kernels pooling;
    enum dl_bias_kernels bias; /* of dense layers */
    enum dl_loss_kernels loss;
    enum dl_sum_kernels sums;
    enum dl_fusion fusion;
    enum dl_mixed_policy policy;
    double head_copies; /* copies of queries, keys, values or context to another order, one pass */
    double score_kernels;      /* scale and mask of attention that are kernels of their own */
    double norm_small_kernels; /* short kernels per batch norm and step: moving averages, counter */
    bool weight_copies; /* each convolution copies its weights to another layout in every pass */
    bool aligned_gemm;  /* matrix units take no 16-bit GEMM with an odd side (F-GEMM-ALIGNED) */
    /* convolutions copy their activations to channels-last and back: matrix units, NCHW; in TF32
     * those that need it (F-CONV-LAYOUT) */
    bool activation_copies;
    bool channels_first; /* activations in NCHW */
    /* RMS norm, rotary embedding, gated activations are composed of the operations of PyTorch, in
     * fp32 where the reference code of Llama casts */
    bool eager;
    bool unfused_gate;    /* gated activations alone are composed so */
    bool compiled;        /* kernels of a compiler, which the host launches without the framework */
    bool fp32_norm_input; /* RMS norms take their input cast to fp32 by a kernel of its own */
};

/* No framework: each operation is one fused kernel in the precision of the plan. */
static inline struct dl_kernel_facts dl_kernel_facts_plain(enum dl_precision precision) {
    return (struct dl_kernel_facts){.precision = precision};
}

/* Operations whose type and casts the policy of mixed precision decides. */
enum dl_fact_op {
    DL_FACT_LAYERNORM,
    DL_FACT_GELU,
    DL_FACT_DROPOUT,  /* of hidden states */
    DL_FACT_RESIDUAL, /* additions between tokens */
    DL_FACT_BIAS,
    DL_FACT_SOFTMAX, /* of attention */
    DL_FACT_SCORES,  /* dropout of attention */
    DL_FACT_EMBEDDING,
    DL_FACT_OPS
};
/* Whether the operation works on fp32 elements under mixed precision. */
bool dl_fact_is_fp32(const struct dl_kernel_facts *facts, enum dl_fact_op op);
/* Casts between fp32 and 16 bit that the policy inserts next to the operation, in each pass: reads
 * of one type and writes of the other of the operation's output. 0 in other precisions. */
double dl_fact_casts(const struct dl_kernel_facts *facts, enum dl_fact_op op);

/* Kernels of one pass of an operation over a tensor of n elements. */
struct dl_passes {
    double kernels, reads, writes; /* of n elements in the operation's type */
    double fixed_bytes;            /* per element: random numbers, masks */
};
/* Forward, and backward for the gradient of the input; that of the weights of a layer norm is
 * DL_BACKWARD_WEIGHTS. F-KERNEL-FACTS */
struct dl_passes dl_passes_layernorm(enum dl_layernorm_kernels how, enum dl_pass pass);
struct dl_passes dl_passes_gelu(enum dl_gelu_kernels how, enum dl_pass pass);
struct dl_passes dl_passes_dropout(enum dl_dropout_kernels how, enum dl_pass pass);
struct dl_passes dl_passes_softmax(enum dl_softmax_kernels how, enum dl_pass pass);
struct dl_passes dl_passes_batchnorm(enum dl_batchnorm_kernels how, enum dl_pass pass);
struct dl_passes dl_passes_loss(enum dl_loss_kernels how, enum dl_pass pass);

#endif
