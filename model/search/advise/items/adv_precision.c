/* adv_precision.c - matrix units, or fewer bytes: another precision. */
#include <math.h>

#include "model/framework/capabilities.h"
#include "model/search/advise/advise.h"

/* The device computes in it with matrix units, and the framework trains in it. */
static bool has_rate(const struct dl_advise_state *s, enum dl_precision precision) {
    const struct dl_device *device = s->system->device;
    if (!dl_framework_has_precision(s->framework, precision)) return false;
    for (int i = 0; i < device->rate_count; i++) {
        if (device->rates[i].precision == (int)precision && device->rates[i].unit == 1) return true;
    }
    return false;
}

static int propose(const struct dl_advise_state *s, struct dl_advise_change *changes) {
    int count = 0;
    if (s->plan->precision != DL_FP32 && s->plan->precision != DL_TF32) return 0;
    if (s->plan->precision == DL_FP32 && has_rate(s, DL_TF32))
        dl_advise_add(changes, &count, "precision", "tf32", "products in TF32",
                      dl_advise_is(s, "pytorch") ? "torch.backends.cuda.matmul.allow_tf32 = "
                                                   "torch.backends.cudnn.allow_tf32 = True"
                                                 : "NVIDIA_TF32_OVERRIDE=1");
    if (has_rate(s, DL_FP16))
        dl_advise_add(changes, &count, "precision", "mixed", "mixed precision (fp16)",
                      dl_advise_is(s, "pytorch")
                          ? "torch.autocast('cuda', torch.float16) and torch.cuda.amp.GradScaler()"
                          : "automatic mixed precision of the framework, with loss scaling");
    if (has_rate(s, DL_BF16))
        dl_advise_add(changes, &count, "precision", "bf16", "bf16 with fp32 master weights",
                      "autocast to bfloat16");
    return count;
}

const struct dl_advise_item dl_adv_precision = {
    .name = "precision",
    .summary = "products in TF32, fp16 or bf16",
    .effect = DL_EFFECT_ROUNDING,
    .mathematics = "products are rounded to 10 or 7 bits of mantissa; sums stay fp32",
    .source = "nvidia-tensor-cores",
    .propose = propose,
};
