/* advise_compute.c - precision, batch, kernels of the framework, input: rows of dl_advise_items. */
#include <math.h>
#include <string.h>

#include "model/framework/capabilities.h"
#include "model/framework/framework.h"
#include "model/plan/plan.h"
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

void dl_advise_precision(const struct dl_advise_state *s, struct dl_advise_list *out) {
    if (s->plan->precision != DL_FP32 && s->plan->precision != DL_TF32) return;
    if (s->plan->precision == DL_FP32 && has_rate(s, DL_TF32))
        dl_advise_add(out, "precision", "tf32", "products in TF32",
                      dl_advise_is(s, "pytorch") ? "torch.backends.cuda.matmul.allow_tf32 = "
                                                   "torch.backends.cudnn.allow_tf32 = True"
                                                 : "NVIDIA_TF32_OVERRIDE=1");
    if (has_rate(s, DL_FP16))
        dl_advise_add(out, "precision", "mixed", "mixed precision (fp16)",
                      dl_advise_is(s, "pytorch")
                          ? "torch.autocast('cuda', torch.float16) and torch.cuda.amp.GradScaler()"
                          : "automatic mixed precision of the framework, with loss scaling");
    if (has_rate(s, DL_BF16))
        dl_advise_add(out, "precision", "bf16", "bf16 with fp32 master weights",
                      "autocast to bfloat16");
}

void dl_advise_batch(const struct dl_advise_state *s, struct dl_advise_list *out) {
    const double now = s->plan->batch_per_device_samples, most = s->prediction->max_batch_samples;
    const double wanted[] = {8 * ceil(now / 8), 2 * now, 4 * now, 8 * now};
    if (s->plan->micro_batch_samples > 0) return;
    for (int i = 0; i < 4; i++) {
        bool seen = false; /* of 4 samples, the next 8 are twice as many */
        for (int k = 0; k < i; k++) seen = seen || wanted[k] == wanted[i];
        if (seen || wanted[i] <= now || wanted[i] != floor(wanted[i]) ||
            (dl_known(most) && wanted[i] > most))
            continue;
        const char *value = dl_arena_printf(s->arena, "%.0f", wanted[i]);
        dl_advise_add(out, "batch-per-device", value,
                      dl_arena_printf(s->arena, "%s samples per device", value),
                      dl_arena_printf(s->arena,
                                      "batch size %s on each device; scale the learning "
                                      "rate",
                                      value));
    }
}

void dl_advise_accumulate(const struct dl_advise_state *s, struct dl_advise_list *out) {
    const double now = s->plan->batch_per_device_samples;
    if (s->plan->micro_batch_samples > 0 || s->plan->tp * s->plan->pp * s->plan->sp > 1) return;
    for (int k = 2; k <= 8; k *= 2) {
        const char *micro = dl_arena_printf(s->arena, "%.0f", now);
        struct dl_advise_change *c = dl_advise_add(
            out, "batch-per-device", dl_arena_printf(s->arena, "%.0f", k * now),
            dl_arena_printf(s->arena, "accumulate gradients over %d micro-batches of %s", k, micro),
            dl_advise_is(s, "horovod")
                ? dl_arena_printf(s->arena,
                                  "DistributedOptimizer(..., backward_passes_per_step=%d)", k)
                : dl_arena_printf(s->arena,
                                  "%d backward passes per step, all but the last under "
                                  "no_sync()",
                                  k));
        dl_advise_also(c, "micro-batch", micro);
    }
}

void dl_advise_layout(const struct dl_advise_state *s, struct dl_advise_list *out) {
    const int now = s->framework->kernels.mixed_layout;
    if (s->plan->precision != DL_MIXED || now == DL_LAYOUT_NHWC || s->workload->family == NULL ||
        s->workload->family[0] != 'c' || !dl_advise_matrix_units(s))
        return;
    dl_advise_add(out, "set", "mixed_layout=nhwc", "channels-last activations (NHWC)",
                  dl_advise_is(s, "pytorch")
                      ? "model.to(memory_format=torch.channels_last), and the input alike"
                      : "data format NHWC");
}

/* The first release whose kernels a compiler may fuse; NULL: none. */
static const char *release_with(const struct dl_framework *framework) {
    for (int r = 0; r < framework->release_count; r++) {
        const struct dl_framework_release *release = &framework->releases[r];
        for (int i = 0; i < release->set_count && release->where_count == 0; i++)
            if (strcmp(release->set[i].key, "compiler") == 0) return release->name;
    }
    return NULL;
}

void dl_advise_compiler(const struct dl_advise_state *s, struct dl_advise_list *out) {
    const int now = s->framework->kernels.compiler;
    const bool has = now > DL_COMPILER_NONE;
    const char *release = has ? NULL : release_with(s->framework);
    if (s->plan->compiler > DL_COMPILER_NONE || (!has && release == NULL)) return;
    const bool torch = dl_advise_is(s, "pytorch");
    const char *name = has ? dl_compiler_names[now] : torch ? "inductor" : "xla";
    struct dl_advise_change *c = dl_advise_add(
        out, "compiler", name,
        release == NULL ? "compiler that fuses operations"
                        : dl_arena_printf(s->arena, "release %s with its compiler", release),
        torch ? "torch.compile(model)" : "tf.function(jit_compile=True)");
    if (release != NULL) dl_advise_also(c, "release", release);
    /* data/runs has language models alone with inductor; tests/cli/advise.sh holds that */
    if (strcmp(name, "inductor") == 0 && !dl_known(s->workload->transformer_layers)) {
        c->unmeasured = "no measured run compiles a network that is not a transformer";
        c->text = dl_arena_printf(s->arena, "%s (unmeasured)", c->text);
    }
}

void dl_advise_optimizer(const struct dl_advise_state *s, struct dl_advise_list *out) {
    if (s->framework->kernels.optimizer == NULL) return;
    dl_advise_add(out, "set", "optimizer_kernels=fused", "a fused optimizer",
                  dl_advise_is(s, "pytorch") ? "fused=True of the optimizer, or apex.optimizers"
                                             : "an optimizer that is one operation");
}

void dl_advise_input(const struct dl_advise_state *s, struct dl_advise_list *out) {
    const struct dl_framework_input *input = &s->framework->input;
    if (!(s->prediction->exposed_input_s > 0)) return;
    if (input->feeds_pageable)
        dl_advise_add(out, "set", "feeds_pageable=false", "input in pinned memory",
                      "DataLoader(..., pin_memory=True)");
    if (!(input->prefetch_batches > 0))
        dl_advise_add(out, "set", "prefetch_batches=2", "batches prepared ahead",
                      "prefetch of 2 batches");
    if (input->copies_in_step)
        dl_advise_add(out, "set", "copies_in_step=false",
                      "the next batch is copied during the step",
                      "prefetch_to_device, or copies with non_blocking=True");
    if (s->plan->input.decode_workers > 0 && s->system->has_host && s->system->host.cores > 0) {
        const double all = floor((double)s->system->host.cores / (double)s->plan->devices_per_node);
        if (all > s->plan->input.decode_workers)
            dl_advise_add(out, "decode-workers", dl_arena_printf(s->arena, "%.0f", all),
                          dl_arena_printf(s->arena, "%.0f decoding workers per device", all),
                          dl_arena_printf(s->arena, "DataLoader(..., num_workers=%.0f)", all));
    }
}
