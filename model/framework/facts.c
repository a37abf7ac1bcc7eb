/* facts.c - see the header. */
#include "model/framework/facts.h"

static int or_zero(int choice) { return choice < 0 ? 0 : choice; }
static double or_none(double number) { return dl_known(number) ? number : 0; }

enum { MATRIX = 1 }; /* of the device's `unit` */

static bool has_matrix_units(const struct dl_device *device) {
    for (int i = 0; i < device->rate_count; i++) {
        if (device->rates[i].unit == MATRIX) return true;
    }
    return false;
}

/* FlashAttention-2 and cuDNN's fused attention multiply 16-bit numbers on matrix units that know
 * bfloat16: compute capability 8 and up, CDNA. */
static bool runs_flash(const struct dl_device *device, enum dl_precision precision) {
    if (precision == DL_FP32 || precision == DL_TF32) return false;
    for (int i = 0; i < device->rate_count; i++) {
        if (device->rates[i].unit == MATRIX && device->rates[i].precision == DL_BF16) return true;
    }
    return false;
}

enum dl_attention_kernel dl_framework_attention(const struct dl_framework *framework,
                                                const struct dl_device *device,
                                                enum dl_precision precision,
                                                enum dl_attention_kernel chosen) {
    const enum dl_attention_kernel usual =
        (enum dl_attention_kernel)or_zero(framework->kernels.attention);
    if (chosen != DL_ATTENTION_OPEN) return chosen;
    return usual == DL_ATTENTION_FLASH && !runs_flash(device, precision) ? DL_ATTENTION_COMPOSED
                                                                         : usual;
}

void dl_facts_on_device(struct dl_kernel_facts *facts, const struct dl_device *device) {
    const enum dl_generation generation = dl_generation_of(device->architecture);
    const bool old = generation == DL_KEPLER || generation == DL_MAXWELL;
    facts->activation_copies = facts->activation_copies && has_matrix_units(device);
    facts->aligned_gemm = facts->aligned_gemm && has_matrix_units(device) && generation == DL_VOLTA;
    /* read in the code of CUDA kernels; oneDNN and MKL keep weights in their own layout */
    if (device->kind == DL_DEVICE_CPU) {
        facts->weight_copies = false;
        facts->norm_small_kernels = 0;
        facts->batchnorm = DL_BATCHNORM_SPATIAL;
        facts->pooling = DL_POOLING_CUDNN;
    }
    if (old && facts->batchnorm == DL_BATCHNORM_PERSISTENT) facts->batchnorm = DL_BATCHNORM_SPATIAL;
}

/* Scale and mask: separate kernels in composed attention that the plan requests, part of the
 * softmax in fused-softmax; else as in the framework. Megatron's shapes decide for themselves
 * (F-TRANSFORMER-SOFTMAX). */
static double score_kernels(const struct dl_framework_kernels *k, enum dl_attention_kernel asked) {
    if (asked == DL_ATTENTION_FUSED_SOFTMAX) return 0;
    return asked == DL_ATTENTION_COMPOSED && !(k->softmax_matrices > 0) ? 2
                                                                        : or_none(k->score_kernels);
}

struct dl_kernel_facts dl_framework_facts(const struct dl_framework *framework,
                                          const struct dl_device *device,
                                          enum dl_precision precision,
                                          enum dl_attention_kernel chosen) {
    const enum dl_attention_kernel attention =
        dl_framework_attention(framework, device, precision, chosen);
    const struct dl_framework_kernels *k = &framework->kernels;
    const bool mixed = precision == DL_MIXED || precision == DL_FP16 || precision == DL_BF16;
    const int layout = mixed && k->mixed_layout >= 0 ? k->mixed_layout : k->layout,
              fusion = mixed && k->mixed_fusion >= 0 ? k->mixed_fusion : k->fusion;
    int batchnorm = or_zero(mixed && k->mixed_batchnorm >= 0 ? k->mixed_batchnorm : k->batchnorm);
    if (batchnorm == DL_BATCHNORM_TRANSPOSED && layout != DL_LAYOUT_NHWC)
        batchnorm = DL_BATCHNORM_SPATIAL;
    return (struct dl_kernel_facts){.precision = precision,
                                    .attention = attention,
                                    .layernorm = (enum dl_layernorm_kernels)or_zero(k->layernorm),
                                    .gelu = (enum dl_gelu_kernels)or_zero(k->gelu),
                                    .dropout = (enum dl_dropout_kernels)or_zero(k->dropout),
                                    .softmax = (enum dl_softmax_kernels)or_zero(k->softmax),
                                    .batchnorm = (enum dl_batchnorm_kernels)batchnorm,
                                    .pooling = (enum dl_pooling_kernels)or_zero(k->pooling),
                                    .bias = (enum dl_bias_kernels)or_zero(k->bias),
                                    .loss = (enum dl_loss_kernels)or_zero(k->loss),
                                    .sums = (enum dl_sum_kernels)or_zero(k->sums),
                                    .fusion = (enum dl_fusion)or_zero(fusion),
                                    .policy = (enum dl_mixed_policy)or_zero(k->mixed_policy),
                                    .head_copies = or_none(k->head_copies),
                                    .score_kernels = score_kernels(k, attention),
                                    .norm_small_kernels = or_none(k->norm_small_kernels),
                                    .weight_copies = k->weight_copies == DL_YES,
                                    .aligned_gemm = k->aligned_gemm == DL_YES,
                                    .activation_copies =
                                        (mixed || precision == DL_TF32) && layout == DL_LAYOUT_NCHW,
                                    .channels_first = layout == DL_LAYOUT_NCHW,
                                    .eager = framework->transformer.eager_operations,
                                    .unfused_gate = framework->transformer.eager_operations ||
                                                    framework->transformer.unfused_gate,
                                    .fp32_norm_input = framework->transformer.fp32_norm_input};
}

void dl_facts_compile(struct dl_kernel_facts *facts, const struct dl_framework *framework,
                      enum dl_compiler compiler) {
    const int fusion = framework->kernels.compiled_fusion;
    if ((compiler != DL_COMPILER_XLA && compiler != DL_COMPILER_INDUCTOR) ||
        framework->kernels.compiler != (int)compiler)
        return;
    facts->layernorm = compiler == DL_COMPILER_XLA ? DL_LAYERNORM_COMPILED : DL_LAYERNORM_FUSED;
    facts->gelu = DL_GELU_FUSED;
    facts->dropout = DL_DROPOUT_COMPILED;
    facts->softmax = compiler == DL_COMPILER_XLA ? DL_SOFTMAX_COMPILED : DL_SOFTMAX_FUSED;
    facts->bias = DL_BIAS_EPILOGUE;
    facts->loss = DL_LOSS_FUSED;
    facts->batchnorm = DL_BATCHNORM_SPATIAL;
    facts->fusion = fusion < 0 ? DL_FUSION_BOTH : (enum dl_fusion)fusion;
    facts->score_kernels = 0;
    facts->norm_small_kernels = 0;
    facts->activation_copies = false;
    facts->aligned_gemm = facts->aligned_gemm && compiler != DL_COMPILER_XLA; /* it pads them */
    facts->eager = false;
    facts->unfused_gate = false;
    facts->compiled = true;
    facts->fp32_norm_input = false;
    if (facts->policy != DL_MIXED_HALF) facts->policy = DL_MIXED_REWRITE_COMPILED;
}

struct dl_kernel_facts dl_plan_facts(const struct dl_framework *framework,
                                     const struct dl_device *device, const struct dl_plan *plan) {
    struct dl_kernel_facts facts =
        dl_framework_facts(framework, device, plan->precision, plan->attention);
    dl_facts_compile(&facts, framework, plan->compiler);
    return facts;
}

/* A sum reads both and writes one. Mixed precision with fp32 weights casts each weight (6 bytes)
 * and gradient (6). Source: kernels-of-frameworks. */
struct dl_optimizer_cost dl_accumulation_cost(const struct dl_optimizer_row *row,
                                              enum dl_precision precision,
                                              enum dl_mixed_policy policy) {
    const bool mixed = precision == DL_MIXED;
    struct dl_optimizer_cost cost = {1, 12};
    if (row != NULL && dl_known(row->accumulation.bytes)) cost = row->accumulation;
    if (row != NULL && mixed && dl_known(row->mixed_accumulation.bytes))
        cost = row->mixed_accumulation;
    if (mixed && policy != DL_MIXED_HALF) cost.kernels += 2, cost.bytes += 12;
    return cost;
}

/* Bytes per parameter of casts and scaling in mixed precision, on top of the optimizer's: weights
 * to 16 bit and gradients back 12, gradients scaled 8; with masters the copy of the weights and the
 * unscaling read and write both types. */
double dl_mixed_update_bytes(enum dl_mixed_policy policy) {
    return policy == DL_MIXED_HALF ? 12 : 20;
}
