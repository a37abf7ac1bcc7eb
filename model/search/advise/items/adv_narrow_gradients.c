/* adv_narrow_gradients.c - gradients travel in 16 bits. */
#include <math.h>

#include "model/framework/gradient_width.h"
#include "model/search/advise/advise.h"

static int propose(const struct dl_advise_state *s, struct dl_advise_change *changes) {
    const enum dl_precision precision = s->plan->precision;
    const double now = dl_framework_gradient_width(s->framework, precision).sent_bytes;
    const bool horovod = dl_advise_behaves(s, "tensor-fusion");
    int count = 0;
    if (!dl_advise_synchronizes(s) || now != 4 || (precision != DL_MIXED && precision != DL_FP32) ||
        (!horovod && !dl_advise_behaves(s, "bucketed")))
        return 0;
    dl_advise_add(changes, &count, "set",
                  precision == DL_MIXED ? "mixed_gradient_bytes=2" : "gradient_bytes=2",
                  "fp16 gradient all-reduce",
                  horovod ? "DistributedOptimizer(..., compression=hvd.Compression.fp16)"
                          : "ddp.register_comm_hook(None, default_hooks.fp16_compress_hook)");
    return count;
}

const struct dl_advise_item dl_adv_narrow_gradients = {
    .name = "narrow-gradients",
    .summary = "fp16 gradient all-reduce",
    .effect = DL_EFFECT_ROUNDING,
    .mathematics = "sums of gradients are rounded to 10 bits of mantissa",
    .source = "pytorch-ddp-source",
    .propose = propose,
};
