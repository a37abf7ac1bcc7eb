/* fake.h - small systems, workloads and frameworks made in memory, for tests of the composition. */
#ifndef DL_TESTS_FAKE_H
#define DL_TESTS_FAKE_H

#include <stdlib.h>
#include <string.h>

#include "model/framework/gradient_sync.h"
#include "model/engine/strategies/strategy.h"
#include "tests/check.h"

struct dl_fake {
    struct dl_device device;
    struct dl_rate rate;
    struct dl_system system;
    struct dl_workload workload;
    struct dl_framework framework;
    struct dl_plan plan;
};

/* A layer that is one matrix product: in -> out features, forward, and both backward passes. */
static int fake_kernels(const struct dl_layer *layer, const struct dl_kernel_facts *facts,
                        enum dl_pass pass, double batch, struct dl_kernel *out) {
    const double c = layer->in.channels, f = layer->out.channels;
    (void)facts;
    if (pass == DL_FORWARD)
        out[0] = dl_kernel_gemm(pass, batch, f, c, 1);
    else if (pass == DL_BACKWARD_DATA)
        out[0] = dl_kernel_gemm(pass, batch, c, f, 1);
    else
        out[0] = dl_kernel_gemm(pass, f, c, batch, 1);
    return 1;
}
static const struct dl_layer_kind fake_kind = {
    .name = "dense", .summary = "test", .source = "test", .kernels = fake_kernels};

static inline void fake_layers(struct dl_fake *f, int count, const double *features) {
    struct dl_layer *layers = dl_arena_alloc(&test_arena, (size_t)count, sizeof *layers);
    f->workload = (struct dl_workload){.name = "fake",
                                       .family = "cnn",
                                       .layers = layers,
                                       .layer_count = count,
                                       .epoch_samples = 1000,
                                       .sample_bytes = NAN,
                                       .input_bytes_per_sample = 4 * features[0],
                                       .transformer_layers = NAN,
                                       .hidden = NAN,
                                       .heads = NAN,
                                       .sequence = NAN,
                                       .vocabulary = NAN};
    for (int i = 0; i < count; i++) {
        struct dl_parameter *weight = dl_arena_alloc(&test_arena, 1, sizeof *weight);
        *weight =
            (struct dl_parameter){.name = "weight", .elements = features[i] * features[i + 1]};
        layers[i] = (struct dl_layer){.name = dl_arena_printf(&test_arena, "dense%d", i),
                                      .kind = &fake_kind,
                                      .in = {.channels = features[i], .size = {1, 1, 1}},
                                      .out = {.channels = features[i + 1], .size = {1, 1, 1}},
                                      .parameters = weight,
                                      .parameter_count = 1,
                                      .parameter_elements = weight->elements,
                                      .forward_macs = weight->elements,
                                      .saved.elements = features[i],
                                      .tied_to = -1};
        f->workload.parameters += weight->elements;
        f->workload.parameter_tensors++;
        f->workload.forward_macs_per_sample += weight->elements;
        f->workload.activation_elements_per_sample += features[i];
    }
}

/* 10 TFLOP/s and 500 GB/s. */
static inline void fake_device(struct dl_fake *f) {
    f->rate = (struct dl_rate){.precision = DL_FP32, .unit = 0, .peak_flop_per_s = 1e13};
    f->device = (struct dl_device){.name = "fake-gpu",
                                   .kind = DL_DEVICE_GPU,
                                   .vendor = "test",
                                   .architecture = "volta",
                                   .memory_bytes = 16e9,
                                   .memory_bandwidth_bytes_per_s = 500e9,
                                   .memory_efficiency = 0.8,
                                   .l2_bytes = NAN,
                                   .unit_count = 80,
                                   .clock_hz = NAN,
                                   .power.tdp_w = NAN,
                                   .kernel_latency_s = 5e-6,
                                   .kernel_gap_s = 1e-6,
                                   .launch_s = 4e-6,
                                   .context_bytes = 5e8,
                                   .workspace_bytes = 1e8,
                                   .scales.load_scale = NAN,
                                   .scales.flash2_scale = NAN,
                                   .rates = &f->rate,
                                   .rate_count = 1};
}

/* Nodes of four devices, joined by NVLink inside and by 12 GB/s between them. */
static inline void fake_system(struct dl_fake *f) {
    const struct dl_link blank = {.bandwidth_bytes_per_s = NAN,
                                  .latency_s = NAN,
                                  .channels = DL_ABSENT,
                                  .channel_bandwidth_bytes_per_s = NAN,
                                  .peer_group = DL_ABSENT,
                                  .cross_bandwidth_bytes_per_s = NAN,
                                  .adapters_per_node = DL_ABSENT,
                                  .per_message_cpu_s = NAN,
                                  .nccl_bandwidth_bytes_per_s = NAN};
    f->system = (struct dl_system){.name = "fake",
                                   .device_name = "fake-gpu",
                                   .device = &f->device,
                                   .nodes = 1024,
                                   .devices_per_node = 4,
                                   .jitter_frac = NAN,
                                   .operation.node_mtbf_s = NAN,
                                   .operation.restart_s = NAN,
                                   .has_host = true,
                                   .intra = blank,
                                   .inter = blank,
                                   .has_intra = true,
                                   .has_inter = true};
    f->system.host = (struct dl_host){.sockets = 2,
                                      .cores = 28,
                                      .memory_bytes = 256e9,
                                      .memory_bandwidth_bytes_per_s = 200e9,
                                      .copy_bandwidth_bytes_per_s = 12e9,
                                      .pageable_bandwidth_bytes_per_s = 6e9,
                                      .devices_per_copy_link = 2};
    f->system.intra.kind = "nvlink2";
    f->system.intra.bandwidth_bytes_per_s = 120e9;
    f->system.intra.latency_s = 2e-6;
    f->system.intra.channels = 6;
    f->system.intra.channel_bandwidth_bytes_per_s = 20e9;
    f->system.intra.peer_to_peer = true;
    f->system.inter.kind = "infiniband";
    f->system.inter.bandwidth_bytes_per_s = 12e9;
    f->system.inter.latency_s = 1.5e-6;
    f->system.inter.adapters_per_node = 1;
    f->system.inter.rdma = true;
    f->system.inter.distance = "NODE";
    f->system.fabric.oversubscription = NAN;
    f->system.fabric.hop_latency_s = NAN;
    f->system.fabric.nodes_per_leaf = DL_ABSENT;
}

/* Sets a number, flag or choice by its key. fake_try: where the behaviour has it. */
static inline bool fake_try(struct dl_framework *f, const char *key, double value) {
    char *own = (char *)&f->own;
    const bool flag = value != 0;
    const int choice = isnan(value) ? -1 : (int)value;
    for (const struct dl_field *field = f->behaviour->fields; field != NULL && field->key != NULL;
         field++) {
        if (strcmp(field->key, key) != 0) continue;
        if (field->type == DL_FIELD_NUMBER) memcpy(own + field->offset, &value, sizeof value);
        if (field->type == DL_FIELD_BOOL) memcpy(own + field->offset, &flag, sizeof flag);
        if (field->type == DL_FIELD_CHOICE) memcpy(own + field->offset, &choice, sizeof choice);
        return true;
    }
    return false;
}
static inline void fake_set(struct dl_framework *f, const char *key, double value) {
    if (!fake_try(f, key, value)) abort();
}

/* Another behaviour, with its keys as in a file that leaves them out, or plain values. */
static inline void fake_behaves(struct dl_framework *f,
                                const struct dl_framework_behaviour *behaviour) {
    f->behaviour = behaviour;
    memset(&f->own, 0, sizeof f->own);
    for (const struct dl_field *field = behaviour->fields; field != NULL && field->key != NULL;
         field++)
        fake_set(f, field->key,
                 field->has_fallback              ? field->fallback
                 : field->type == DL_FIELD_NUMBER ? NAN
                                                  : 0);
    fake_try(f, "first_bucket_bytes", 1e6);
    fake_try(f, "fusion_bytes", 64e6);
    fake_try(f, "cycle_s", 0.005);
    fake_try(f, "gradient_frac", 0.01);
    fake_try(f, "local_step_count", 4);
}

static inline void fake_behaviour(struct dl_framework *f, const char *name) {
    fake_behaves(f, dl_framework_behaviour_find(name));
}

/* Overlapped buckets as in PyTorch DDP; nothing that is particular to one framework. */
static inline void fake_framework(struct dl_fake *f) {
    f->framework = (struct dl_framework){.name = "fake",
                                         .sync = {.library = DL_LIB_NCCL,
                                                  .cpu_library = DL_LIB_MPI,
                                                  .gradient_bytes = 4,
                                                  .mixed_gradient_bytes = 4,
                                                  .overlaps_backward = true,
                                                  .bucket_bytes = 25e6,
                                                  .big_key_elements = 1e6,
                                                  .messages = {.message_copy_bytes_per_s = NAN,
                                                               .send_bytes_per_s = NAN,
                                                               .sum_bytes_per_s = NAN}},
                                         .transformer = {.bf16_gradient_bytes = 2},
                                         .capabilities = {.context_parallel = DL_YES},
                                         .kernels = {.update_launches_per_tensor = 1},
                                         .host = {.dispatch_s = 5e-6},
                                         .input = {.prefetch_batches = 1},
                                         .memory = {.allocator = -1},
                                         .activations = {.activation_library = -1,
                                                         .reduce_library = -1,
                                                         .filter_backward = DL_FILTER_ALL_REDUCE},
                                         .default_for = -1,
                                         .errors = {.residual_sigma_log = 0.1}};
    fake_behaviour(&f->framework, "bucketed");
}

/* Round numbers, no real machine. */
static inline void fake_make(struct dl_fake *f) {
    memset(f, 0, sizeof *f);
    fake_device(f);
    fake_system(f);
    fake_framework(f);
    const double features[] = {1000, 4000, 4000, 2000, 500};
    fake_layers(f, 4, features);
    f->plan = (struct dl_plan){.strategy = dl_strategy_find("data"),
                               .nodes = 2,
                               .devices_per_node = 4,
                               .batch_per_device_samples = 256,
                               .precision = DL_FP32,
                               .optimizer = DL_MOMENTUM,
                               .input.synthetic = true};
}

static inline enum dl_code fake_predict(struct dl_fake *f, struct dl_prediction *out) {
    struct dl_err err = {0};
    struct dl_predict_options options = {.terms = true};
    return dl_predict(&(struct dl_predict_request){&f->system, &f->workload, &f->framework,
                                                   &f->plan, &options, &test_arena},
                      out, &err);
}

#endif
