/* advise_gradients.c - which gradients travel, in what pieces, by which collectives: rows of
 * dl_advise_items. */
#include <math.h>

#include "model/framework/gradient_sync.h"
#include "model/framework/gradient_width.h"
#include "model/search/advise/advise.h"
#include "model/workload/layer.h"

void dl_advise_bucket(const struct dl_advise_state *s, struct dl_advise_list *out) {
    static const int sizes_mib[] = {1, 4, 10, 25, 50, 100, 400};
    const double now = s->framework->sync.bucket_bytes;
    if (dl_framework_number(s->framework, "bucket_count") > 0 || !dl_known(now)) return;
    for (int i = 0; i < 7; i++) {
        const double bytes = sizes_mib[i] * 1048576.0;
        if (bytes == now) continue;
        dl_advise_add(out, "set", dl_arena_printf(s->arena, "bucket_bytes=%dMiB", sizes_mib[i]),
                      dl_arena_printf(s->arena, "buckets of %d MiB", sizes_mib[i]),
                      dl_arena_printf(s->arena, "DistributedDataParallel(..., bucket_cap_mb=%d)",
                                      sizes_mib[i]));
    }
}

void dl_advise_bucket_views(const struct dl_advise_state *s, struct dl_advise_list *out) {
    if (dl_framework_number(s->framework, "bucket_views") > 0) return;
    dl_advise_add(out, "set", "bucket_views=true", "gradients are views of the buckets",
                  "DistributedDataParallel(..., gradient_as_bucket_view=True)");
}

void dl_advise_buffers(const struct dl_advise_state *s, struct dl_advise_list *out) {
    if (!(dl_framework_number(s->framework, "buffers_broadcast") > 0) ||
        !(s->workload->buffer_elements > 0))
        return;
    dl_advise_add(out, "set", "buffers_broadcast=false", "running statistics stay on their rank",
                  "DistributedDataParallel(..., broadcast_buffers=False)");
}

void dl_advise_fusion(const struct dl_advise_state *s, struct dl_advise_list *out) {
    static const int sizes_mib[] = {8, 16, 32, 64, 128, 256};
    for (int i = 0; i < 6; i++) {
        if (sizes_mib[i] * 1048576.0 == dl_framework_number(s->framework, "fusion_bytes")) continue;
        dl_advise_add(
            out, "set", dl_arena_printf(s->arena, "fusion_bytes=%dMiB", sizes_mib[i]),
            dl_arena_printf(s->arena, "fusion buffer of %d MiB", sizes_mib[i]),
            dl_arena_printf(s->arena, "HOROVOD_FUSION_THRESHOLD=%d", sizes_mib[i] * 1048576));
    }
}

void dl_advise_cycle(const struct dl_advise_state *s, struct dl_advise_list *out) {
    static const double cycles_ms[] = {0.5, 1, 2.5, 5, 10, 25};
    for (int i = 0; i < 6; i++) {
        if (fabs(cycles_ms[i] * 1e-3 - dl_framework_number(s->framework, "cycle_s")) < 1e-9)
            continue;
        dl_advise_add(out, "set", dl_arena_printf(s->arena, "cycle_s=%gms", cycles_ms[i]),
                      dl_arena_printf(s->arena, "a cycle of %g ms", cycles_ms[i]),
                      dl_arena_printf(s->arena, "HOROVOD_CYCLE_TIME=%g", cycles_ms[i]));
    }
}

void dl_advise_hierarchical(const struct dl_advise_state *s, struct dl_advise_list *out) {
    if (s->framework->sync.hierarchical || s->plan->nodes < 2 || s->plan->devices_per_node < 2 ||
        s->system->device->kind != DL_DEVICE_GPU)
        return;
    dl_advise_add(out, "set", "hierarchical=true", "hierarchical all-reduce",
                  "HOROVOD_HIERARCHICAL_ALLREDUCE=1");
}

void dl_advise_nccl_algorithm(const struct dl_advise_state *s, struct dl_advise_list *out) {
    static const char *const names[] = {"ring", "tree"}, *const spelled[] = {"Ring", "Tree"};
    if (dl_libraries[s->framework->sync.library]->algorithm_key == NULL ||
        s->system->device->kind != DL_DEVICE_GPU || s->system->software.nccl_algorithm != NULL)
        return;
    for (int i = 0; i < 2; i++)
        dl_advise_add(out, "set", dl_arena_printf(s->arena, "nccl_algorithm=%s", names[i]),
                      dl_arena_printf(s->arena, "NCCL's %s algorithm", names[i]),
                      dl_arena_printf(s->arena, "NCCL_ALGO=%s", spelled[i]));
}

void dl_advise_narrow_gradients(const struct dl_advise_state *s, struct dl_advise_list *out) {
    const enum dl_precision precision = s->plan->precision;
    const double now = dl_framework_gradient_width(s->framework, precision).sent_bytes;
    const bool horovod = dl_advise_behaves(s, "tensor-fusion");
    if (now != 4 || (precision != DL_MIXED && precision != DL_FP32)) return;
    dl_advise_add(out, "set", precision == DL_MIXED ? "mixed_gradient_bytes=2" : "gradient_bytes=2",
                  "fp16 gradient all-reduce",
                  horovod ? "DistributedOptimizer(..., compression=hvd.Compression.fp16)"
                          : "ddp.register_comm_hook(None, default_hooks.fp16_compress_hook)");
}

void dl_advise_top_k(const struct dl_advise_state *s, struct dl_advise_list *out) {
    for (int i = 0; i < 2; i++) {
        const char *part = i == 0 ? "0.01" : "0.001";
        struct dl_advise_change *c = dl_advise_add(
            out, "set", "behaviour=top-k",
            dl_arena_printf(s->arena, "top-k gradient sparsification (largest %s)", part),
            "deep gradient compression: top-k with error feedback in a communication hook");
        dl_advise_also(c, "set", dl_arena_printf(s->arena, "gradient_frac=%s", part));
    }
}

void dl_advise_one_bit(const struct dl_advise_state *s, struct dl_advise_list *out) {
    (void)s;
    struct dl_advise_change *c =
        dl_advise_add(out, "set", "behaviour=quantized", "1-bit gradient compression",
                      "1-bit SGD or 1-bit Adam with error feedback");
    dl_advise_also(c, "set", "gradient_bytes=0.125");
    dl_advise_also(c, "set", "mixed_gradient_bytes=0.125");
    dl_advise_also(c, "set", "bf16_gradient_bytes=0.125");
}

void dl_advise_local_steps(const struct dl_advise_state *s, struct dl_advise_list *out) {
    if (s->plan->tp * s->plan->pp * s->plan->sp > 1) return;
    for (int steps = 4; steps <= 16; steps *= 2) {
        struct dl_advise_change *c =
            dl_advise_add(out, "set", "behaviour=local-steps",
                          dl_arena_printf(s->arena, "local SGD, averaged every %d steps", steps),
                          dl_arena_printf(s->arena,
                                          "PostLocalSGDOptimizer with "
                                          "PeriodicModelAverager(period=%d)",
                                          steps));
        dl_advise_also(c, "set", dl_arena_printf(s->arena, "local_step_count=%d", steps));
    }
}

void dl_advise_factors(const struct dl_advise_state *s, struct dl_advise_list *out) {
    bool dense = false;
    for (int i = 0; i < s->workload->layer_count; i++)
        dense = dense || s->workload->layers[i].kind == &dl_layer_dense;
    if (!dense || s->plan->micro_batch_samples > 0) return;
    dl_advise_add(out, "set", "behaviour=sufficient-factors",
                  "sufficient-factor broadcasting (Poseidon)",
                  "all-gather inputs and output gradients of dense layers, as Poseidon does");
}

void dl_advise_servers(const struct dl_advise_state *s, struct dl_advise_list *out) {
    if (!s->framework->behaviour->has_servers || s->plan->nodes < 2) return;
    for (int64_t servers = 1; servers <= 2 * s->plan->nodes && out->count < 6; servers *= 2) {
        if (servers == s->plan->parameter_servers.count) continue;
        const char *value = dl_arena_printf(s->arena, "%lld", (long long)servers);
        dl_advise_add(out, "servers", value,
                      dl_arena_printf(s->arena, "%s parameter servers", value),
                      dl_arena_printf(s->arena, "%s server processes (ps hosts)", value));
    }
}

void dl_advise_split_variables(const struct dl_advise_state *s, struct dl_advise_list *out) {
    if (s->plan->nodes < 2 || !dl_advise_behaves(s, "parameter-server") ||
        dl_known(s->framework->sync.big_key_elements))
        return;
    dl_advise_add(out, "set", "big_key_elements=1000000",
                  "variables of a million elements and more split over all servers",
                  "tf.compat.v1.fixed_size_partitioner(number of servers)");
}

void dl_advise_overlap(const struct dl_advise_state *s, struct dl_advise_list *out) {
    const struct dl_transformer_policy *policy = &s->framework->transformer;
    if (s->prediction->stage_count == 0) return;
    if (!policy->overlaps_gather && s->plan->dp > 1)
        dl_advise_add(out, "set", "overlaps_gather=true",
                      "parameters gathered behind the next forward pass", "--overlap-param-gather");
    if (!s->framework->sync.overlaps_backward && s->plan->dp > 1)
        dl_advise_add(out, "set", "overlaps_backward=true", "gradients reduced behind backward",
                      "--overlap-grad-reduce");
    if (!policy->p2p_overlap && s->plan->pp > 1 && s->plan->schedule == DL_INTERLEAVED)
        dl_advise_add(out, "set", "p2p_overlap=true",
                      "messages between stages behind other micro-batches",
                      "--overlap-p2p-communication");
}
