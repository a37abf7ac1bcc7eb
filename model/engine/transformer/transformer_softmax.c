/* transformer_softmax.c - softmax of attention where the framework's fused kernel does not take its
 * shape.
 *
 * F-TRANSFORMER-SOFTMAX: Megatron scales, masks and normalises scores of 16 bits in one kernel when
 * the b a/t score matrices of a rank are a multiple of `softmax_matrices` (4, the warps of a block)
 * and have at most `softmax_keys` columns. Otherwise it does it in fp32 step by step: to fp32,
 * scale, mask, softmax, back to 16 bits, which is 4 kernels more forward and 4 more backward, 8R +
 * 8W and 9R + 8W elements of 16 bits more for each score. So 8 tensor ranks of 16 heads with one
 * sample a micro-batch pay for it (2 matrices a rank) and those with two samples do not. Not
 * modelled: the fp32 copies in memory.
 */
#include <math.h>

#include "model/workload/layer.h"
#include "model/engine/transformer/transformer.h"

int dl_transformer_softmax_kernels(const struct dl_framework *framework,
                                   enum dl_precision precision, const struct dl_layer *layer,
                                   enum dl_pass pass, double samples,
                                   struct dl_kernel out[DL_TRANSFORMER_SOFTMAX_KERNELS]) {
    const double matrices = samples * layer->attention.heads,
                 queries = layer->out.size[DL_DIMS - 1], keys = layer->requested.tokens;
    const bool narrow = precision == DL_MIXED || precision == DL_FP16 || precision == DL_BF16;
    if (layer->kind != &dl_layer_attention || layer->attention.flash || !narrow ||
        framework->kernels.softmax_matrices <= 0)
        return 0;
    if (pass != DL_FORWARD && pass != DL_BACKWARD_DATA) return 0;
    const bool fits =
        !(framework->kernels.softmax_keys > 0) || keys <= framework->kernels.softmax_keys;
    if (fits && fmod(matrices, framework->kernels.softmax_matrices) == 0) return 0;
    const double n = matrices * queries * keys;
    for (int i = 0; i < DL_TRANSFORMER_SOFTMAX_KERNELS; i++) {
        /* the gradient and the output of softmax */
        const double reads = pass == DL_BACKWARD_DATA && i == 0 ? 3 * n : 2 * n;
        out[i] = dl_kernel_stream(pass, n, reads, 2 * n);
    }
    return DL_TRANSFORMER_SOFTMAX_KERNELS;
}
