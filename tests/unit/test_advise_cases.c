/* Each piece of advice in every one of its cases: what it proposes, with which options of predict,
 * in which words, and when it stays silent. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "model/search/advise/advise.h"
#include "model/core/file.h"
#include "model/workload/layer.h"
#include "tests/check.h"
#include "tests/fake.h"
#include "tests/load_workload.h"

static struct dl_fake f;
static struct dl_prediction prediction;
static const struct dl_framework_behaviour *bucketed, *fusion, *servers;

static int setup(void **state) {
    (void)state;
    fake_make(&f);
    f.plan.dp = 8;
    f.plan.batch_per_device_samples = 32;
    f.plan.tp = f.plan.pp = f.plan.sp = f.plan.ep = 1;
    prediction = (struct dl_prediction){.max_batch_samples = NAN, .fits = true};
    bucketed = dl_framework_behaviour_find("bucketed");
    fusion = dl_framework_behaviour_find("tensor-fusion");
    servers = dl_framework_behaviour_find("parameter-server");
    return 0;
}

static int teardown(void **state) {
    (void)state;
    dl_arena_free(&f.arena);
    return 0;
}

/* All that an item proposes: a line "option=value ...: text: setting" each. */
static const char *said(const char *name) {
    const struct dl_advise_state s = {.system = &f.system,
                                      .workload = &f.workload,
                                      .framework = &f.framework,
                                      .plan = &f.plan,
                                      .prediction = &prediction,
                                      .arena = &f.arena};
    struct dl_advise_change changes[DL_ADVISE_CHANGES];
    const struct dl_advise_item *item = NULL;
    for (int i = 0; dl_advise_items[i] != NULL; i++)
        if (strcmp(dl_advise_items[i]->name, name) == 0) item = dl_advise_items[i];
    assert_non_null(item);
    const int count = dl_advise_propose(item, &s, changes);
    const char *all = "";
    for (int i = 0; i < count; i++) {
        assert_ptr_equal(changes[i].item, item);
        for (int o = 0; o < changes[i].option_count; o++)
            all = dl_arena_printf(&f.arena, "%s%s%s=%s", all, o > 0 ? " " : "",
                                  changes[i].options[o].name, changes[i].options[o].value);
        all = dl_arena_printf(&f.arena, "%s: %s: %s\n", all, changes[i].text, changes[i].setting);
    }
    return all;
}
#define check_said(name, expected) assert_string_equal(said(name), expected)
/* Once the assignment is made the item says nothing; then what it changed is as before. */
#define check_silent(name, lvalue, value)                                                          \
    do {                                                                                           \
        const struct dl_fake before = f;                                                           \
        const struct dl_prediction predicted = prediction;                                         \
        lvalue = (value);                                                                          \
        if (said(name)[0] != '\0') fail_msg("%s in spite of %s = %s", name, #lvalue, #value);      \
        const struct dl_arena arena = f.arena;                                                     \
        f = before, prediction = predicted, f.arena = arena;                                       \
    } while (0)

static const struct {
    const char *name;
    enum dl_advise_effect effect;
    bool rewrites;
    const char *source, *summary, *mathematics;
} items[] = {
    {"precision", DL_EFFECT_ROUNDING, false, "nvidia-tensor-cores",
     "products in TF32, fp16 or bf16",
     "products are rounded to 10 or 7 bits of mantissa; sums stay fp32"},
    {"batch", DL_EFFECT_MODEL, false, "large-minibatch-sgd", "more samples per device and step",
     "fewer, larger steps: learning rate and epochs must be tuned again"},
    {"accumulate", DL_EFFECT_MODEL, false, "pytorch-ddp-source",
     "gradient accumulation over micro-batches",
     "as a batch that is larger as many times; batch norm sees the micro-batches"},
    {"bucket", DL_EFFECT_ROUNDING, false, "pytorch-ddp-source", "the size of gradient buckets",
     "the same sums in another order"},
    {"bucket-views", DL_EFFECT_EXACT, false, "pytorch-ddp-source",
     "gradients computed in their buckets, without copies", "nothing changes"},
    {"buffers", DL_EFFECT_EXACT, false, "pytorch-ddp-source",
     "no broadcast of batch-norm statistics in each step",
     "weights are the same; running statistics of other ranks than the first are never used"},
    {"fusion", DL_EFFECT_ROUNDING, false, "horovod-source", "the size of Horovod's fusion buffer",
     "the same sums in another order"},
    {"cycle", DL_EFFECT_ROUNDING, false, "horovod-source",
     "how often Horovod looks for ready gradients", "the same sums in another order"},
    {"hierarchical", DL_EFFECT_ROUNDING, false, "horovod-source",
     "all-reduce inside nodes by NCCL, between them by MPI", "the same sums in another order"},
    {"nccl-algorithm", DL_EFFECT_ROUNDING, false, "nccl-source", "ring or tree imposed on NCCL",
     "the same sums in another order"},
    {"narrow-gradients", DL_EFFECT_ROUNDING, false, "pytorch-ddp-source",
     "gradients summed in fp16", "sums of gradients are rounded to 10 bits of mantissa"},
    {"top-k", DL_EFFECT_MODEL, false, "deep-gradient-compression",
     "only the largest gradients of each rank travel", "small gradients arrive steps later"},
    {"one-bit", DL_EFFECT_MODEL, false, "cntk-docs",
     "gradients quantized to one bit, after backward", "rounding errors arrive steps later"},
    {"local-sgd", DL_EFFECT_MODEL, false, "local-sgd",
     "local SGD: parameters averaged every few steps", "replicas drift apart between averagings"},
    {"factors", DL_EFFECT_ROUNDING, false, "poseidon-2017",
     "dense layers exchange the factors of their gradients", "the same sums in another order"},
    {"servers", DL_EFFECT_EXACT, false, "tf-source", "the number of parameter servers",
     "nothing changes"},
    {"split-variables", DL_EFFECT_EXACT, false, "tf-source",
     "large variables (VGG's fc6) split over all servers", "nothing changes"},
    {"nhwc", DL_EFFECT_EXACT, false, "nvidia-layouts",
     "activations in the order NHWC, for matrix units", "nothing changes"},
    {"compiler", DL_EFFECT_ROUNDING, false, "kernels-of-frameworks",
     "elementwise operations fused by a compiler",
     "the same operations, intermediate results are not rounded to memory"},
    {"optimizer", DL_EFFECT_ROUNDING, false, "kernels-of-frameworks",
     "the update of all tensors in few kernels",
     "the same operations, intermediate results are not rounded to memory"},
    {"attention", DL_EFFECT_ROUNDING, false, "flash-attention",
     "attention whose scores stay on chip", "the same sums in another order"},
    {"grouped-queries", DL_EFFECT_MODEL, false, "gqa-2023", "grouped-query attention",
     "another network with fewer parameters"},
    {"vocabulary", DL_EFFECT_EXACT, false, "megatron-lm",
     "the vocabulary padded to a multiple of 128",
     "nothing changes, with the logits of padded rows masked"},
    {"recompute", DL_EFFECT_EXACT, false, "megatron-lm",
     "activations recomputed in backward, or no longer", "nothing changes"},
    {"overlap", DL_EFFECT_EXACT, false, "megatron-lm", "collectives of transformers behind compute",
     "nothing changes"},
    {"input", DL_EFFECT_EXACT, false, "pytorch-ddp-source",
     "pinned, prefetched input with workers on all cores", "nothing changes"},
    {"channels", DL_EFFECT_MODEL, true, "nvidia-tensor-cores",
     "channels rounded up to multiples of 8, for matrix units", "a network with more parameters"},
    {"kernels", DL_EFFECT_MODEL, true, "vgg-paper", "large kernels split into several of 3x3",
     "another network with the same field of view"},
    {"depthwise", DL_EFFECT_MODEL, true, "mobilenet-paper",
     "dense convolutions replaced by depthwise and pointwise ones",
     "another network with fewer parameters"},
};
enum { ITEMS = sizeof items / sizeof items[0] };

/* What is said about each item, in the order in which they are asked; its source is listed. */
static void table(void **state) {
    (void)state;
    char path[512], line[128], *text;
    size_t length;
    struct dl_err err = {0};
    snprintf(path, sizeof path, "%s/data/SOURCES.md", check_root());
    assert_int_equal(dl_file_read(path, 1 << 20, &f.arena, &text, &length, &err), DL_OK);
    for (int i = 0; i < ITEMS; i++) {
        const struct dl_advise_item *item = dl_advise_items[i];
        assert_non_null(item);
        assert_string_equal(item->name, items[i].name);
        assert_int_equal(item->effect, items[i].effect);
        assert_int_equal(item->rewrites, items[i].rewrites);
        assert_string_equal(item->source, items[i].source);
        assert_string_equal(item->summary, items[i].summary);
        assert_string_equal(item->mathematics, items[i].mathematics);
        snprintf(line, sizeof line, "\n- `%s`:", item->source);
        check_contains(text, line);
    }
    assert_null(dl_advise_items[ITEMS]);
    assert_string_equal(dl_advise_effect_names[DL_EFFECT_EXACT], "exact");
    assert_string_equal(dl_advise_effect_names[DL_EFFECT_ROUNDING], "rounding");
    assert_string_equal(dl_advise_effect_names[DL_EFFECT_MODEL], "model");
    assert_null(dl_advise_effect_names[DL_EFFECT_MODEL + 1]);
}

/* Matrix units have rates of their own; plain units of the same precision count for nothing. */
static void precisions(void **state) {
    (void)state;
    struct dl_rate rates[] = {{.precision = DL_FP32, .unit = 0},
                              {.precision = DL_TF32, .unit = 1},
                              {.precision = DL_FP16, .unit = 1},
                              {.precision = DL_BF16, .unit = 1}};
    const char *mixed = "precision=mixed: mixed precision (fp16): automatic mixed precision of the "
                        "framework, with loss scaling\n",
               *bf16 = "precision=bf16: bf16 with fp32 master weights: autocast to bfloat16\n";
    check_said("precision", "");
    f.device.rates = rates, f.device.rate_count = 4;
    check_said("precision",
               dl_arena_printf(&f.arena,
                               "precision=tf32: products in TF32: NVIDIA_TF32_OVERRIDE=1\n%s%s",
                               mixed, bf16));
    f.plan.precision = DL_TF32;
    check_said("precision", dl_arena_printf(&f.arena, "%s%s", mixed, bf16));
    rates[2].unit = 0;
    check_said("precision", bf16);
    f.device.rate_count = 3;
    check_said("precision", "");
    rates[2].unit = 1;
    f.plan.precision = DL_FP32;
    f.framework.name = "pytorch-ddp";
    check_said("precision",
               "precision=tf32: products in TF32: torch.backends.cuda.matmul.allow_tf32 = "
               "torch.backends.cudnn.allow_tf32 = True\n"
               "precision=mixed: mixed precision (fp16): torch.autocast('cuda', torch.float16) and "
               "torch.cuda.amp.GradScaler()\n");
    check_silent("precision", f.plan.precision, DL_MIXED);
    check_silent("precision", f.plan.precision, DL_BF16);
    check_silent("precision", f.plan.precision, DL_FP16);
}

/* 8, 2, 4 and 8 times, but for what is the same, no more, or does not fit. */
static void batches(void **state) {
    (void)state;
    const char *form = "batch-per-device=%d: %d samples per device: batch size %d on each device; "
                       "scale the learning rate\n";
    const struct {
        double now, most;
        int expected[5];
    } rows[] = {
        {32, NAN, {64, 128, 256}}, {32, 128, {64, 128}},    {32, 127, {64}}, {4, NAN, {8, 16, 32}},
        {5, NAN, {8, 10, 20, 40}}, {1.25, NAN, {8, 5, 10}}, {32, 63, {0}}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char expected[1000] = "";
        f.plan.batch_per_device_samples = rows[i].now;
        prediction.max_batch_samples = rows[i].most;
        for (const int *b = rows[i].expected; *b > 0; b++)
            snprintf(expected + strlen(expected), sizeof expected - strlen(expected), form, *b, *b,
                     *b);
        check_said("batch", expected);
    }
    f.plan.batch_per_device_samples = 32;
    prediction.max_batch_samples = NAN;
    check_silent("batch", f.plan.micro_batch_samples, 1);
    check_said("accumulate",
               "batch-per-device=64 micro-batch=32: 2 micro-batches of 32 before each "
               "synchronization: 2 backward passes per step, all but the last under no_sync()\n"
               "batch-per-device=128 micro-batch=32: 4 micro-batches of 32 before each "
               "synchronization: 4 backward passes per step, all but the last under no_sync()\n"
               "batch-per-device=256 micro-batch=32: 8 micro-batches of 32 before each "
               "synchronization: 8 backward passes per step, all but the last under no_sync()\n");
    f.framework.name = "horovod-tensorflow";
    check_contains(said("accumulate"), "DistributedOptimizer(..., backward_passes_per_step=4)");
    check_silent("accumulate", f.plan.micro_batch_samples, 1);
    check_silent("accumulate", f.plan.tp, 2);
    check_silent("accumulate", f.plan.pp, 2);
    check_silent("accumulate", f.plan.sp, 2);
}

static void buckets(void **state) {
    (void)state;
    f.framework.sync.bucketed.bucket_bytes = 25 * 1048576.0;
    check_said("bucket",
               "set=bucket_bytes=1MiB: buckets of 1 MiB: DistributedDataParallel(..., "
               "bucket_cap_mb=1)\n"
               "set=bucket_bytes=4MiB: buckets of 4 MiB: DistributedDataParallel(..., "
               "bucket_cap_mb=4)\n"
               "set=bucket_bytes=10MiB: buckets of 10 MiB: DistributedDataParallel(..., "
               "bucket_cap_mb=10)\n"
               "set=bucket_bytes=50MiB: buckets of 50 MiB: DistributedDataParallel(..., "
               "bucket_cap_mb=50)\n"
               "set=bucket_bytes=100MiB: buckets of 100 MiB: DistributedDataParallel(..., "
               "bucket_cap_mb=100)\n"
               "set=bucket_bytes=400MiB: buckets of 400 MiB: DistributedDataParallel(..., "
               "bucket_cap_mb=400)\n");
    check_silent("bucket", f.plan.dp, 1);
    check_silent("bucket", f.framework.behaviour, fusion);
    check_silent("bucket", f.framework.behaviour, NULL);
    check_silent("bucket", f.framework.sync.bucketed.bucket_count, 1);
    check_silent("bucket", f.framework.sync.bucketed.bucket_bytes, NAN);
    check_said("bucket-views", "set=bucket_views=true: gradients are views of the buckets: "
                               "DistributedDataParallel(..., gradient_as_bucket_view=True)\n");
    check_silent("bucket-views", f.plan.dp, 1);
    check_silent("bucket-views", f.framework.behaviour, fusion);
    check_silent("bucket-views", f.framework.sync.bucketed.bucket_views, true);
    check_said("buffers", "");
    f.framework.sync.bucketed.buffers_broadcast = true;
    f.workload.buffer_elements = 1;
    check_said("buffers", "set=buffers_broadcast=false: running statistics stay on their rank: "
                          "DistributedDataParallel(..., broadcast_buffers=False)\n");
    check_silent("buffers", f.plan.dp, 1);
    check_silent("buffers", f.workload.buffer_elements, 0);
    check_silent("buffers", f.framework.sync.bucketed.buffers_broadcast, false);
}

static void horovod(void **state) {
    (void)state;
    check_said("fusion", ""), check_said("cycle", ""), check_said("hierarchical", "");
    f.framework.behaviour = fusion;
    f.framework.sync.fusion.fusion_bytes = 64 * 1048576.0;
    check_said(
        "fusion",
        "set=fusion_bytes=8MiB: fusion buffer of 8 MiB: HOROVOD_FUSION_THRESHOLD=8388608\n"
        "set=fusion_bytes=16MiB: fusion buffer of 16 MiB: HOROVOD_FUSION_THRESHOLD=16777216\n"
        "set=fusion_bytes=32MiB: fusion buffer of 32 MiB: HOROVOD_FUSION_THRESHOLD=33554432\n"
        "set=fusion_bytes=128MiB: fusion buffer of 128 MiB: HOROVOD_FUSION_THRESHOLD=134217728\n"
        "set=fusion_bytes=256MiB: fusion buffer of 256 MiB: HOROVOD_FUSION_THRESHOLD=268435456\n");
    check_silent("fusion", f.plan.dp, 1);
    f.framework.sync.fusion.cycle_s = 0.005;
    check_said("cycle", "set=cycle_s=0.5ms: a cycle of 0.5 ms: HOROVOD_CYCLE_TIME=0.5\n"
                        "set=cycle_s=1ms: a cycle of 1 ms: HOROVOD_CYCLE_TIME=1\n"
                        "set=cycle_s=2.5ms: a cycle of 2.5 ms: HOROVOD_CYCLE_TIME=2.5\n"
                        "set=cycle_s=10ms: a cycle of 10 ms: HOROVOD_CYCLE_TIME=10\n"
                        "set=cycle_s=25ms: a cycle of 25 ms: HOROVOD_CYCLE_TIME=25\n");
    check_silent("cycle", f.plan.dp, 1);
    check_said("hierarchical", "set=hierarchical=true: hierarchical all-reduce: "
                               "HOROVOD_HIERARCHICAL_ALLREDUCE=1\n");
    check_silent("hierarchical", f.plan.dp, 1);
    check_silent("hierarchical", f.plan.nodes, 1);
    check_silent("hierarchical", f.plan.devices_per_node, 1);
    check_silent("hierarchical", f.device.kind, DL_DEVICE_CPU);
    check_silent("hierarchical", f.framework.sync.hierarchical, true);
    check_silent("hierarchical", f.framework.behaviour, servers);
}

static void nccl(void **state) {
    (void)state;
    check_said("nccl-algorithm", "set=nccl_algorithm=ring: NCCL's ring algorithm: NCCL_ALGO=Ring\n"
                                 "set=nccl_algorithm=tree: NCCL's tree algorithm: "
                                 "NCCL_ALGO=Tree\n");
    check_silent("nccl-algorithm", f.plan.dp, 1);
    check_silent("nccl-algorithm", f.framework.sync.library, DL_LIB_MPI);
    check_silent("nccl-algorithm", f.device.kind, DL_DEVICE_CPU);
    check_silent("nccl-algorithm", f.system.nccl_algorithm, "ring");
}

/* Fewer bytes, by either behaviour that has a hook for it. */
static void compression(void **state) {
    (void)state;
    check_said("narrow-gradients",
               "set=gradient_bytes=2: gradients summed in fp16: "
               "ddp.register_comm_hook(None, default_hooks.fp16_compress_hook)\n");
    check_silent("narrow-gradients", f.plan.dp, 1);
    check_silent("narrow-gradients", f.plan.precision, DL_BF16);
    check_silent("narrow-gradients", f.framework.sync.gradient_bytes, 2);
    check_silent("narrow-gradients", f.framework.behaviour, servers);
    const char *top_k = "set=behaviour=top-k set=gradient_frac=0.01: the largest 0.01 of the "
                        "gradients: deep gradient compression: top-k with error feedback in a "
                        "communication hook\n"
                        "set=behaviour=top-k set=gradient_frac=0.001: the largest 0.001 of the "
                        "gradients: deep gradient compression: top-k with error feedback in a "
                        "communication hook\n",
               *one_bit = "set=behaviour=quantized set=gradient_bytes=0.125 "
                          "set=mixed_gradient_bytes=0.125: gradients of one bit: 1-bit SGD or "
                          "1-bit Adam with error feedback\n",
               *local = "set=behaviour=local-steps set=local_step_count=4: local SGD, averaged "
                        "every 4 steps: PostLocalSGDOptimizer with "
                        "PeriodicModelAverager(period=4)\n"
                        "set=behaviour=local-steps set=local_step_count=8: local SGD, averaged "
                        "every 8 steps: PostLocalSGDOptimizer with "
                        "PeriodicModelAverager(period=8)\n"
                        "set=behaviour=local-steps set=local_step_count=16: local SGD, averaged "
                        "every 16 steps: PostLocalSGDOptimizer with "
                        "PeriodicModelAverager(period=16)\n";
    for (int i = 0; i < 2; i++) {
        f.framework.behaviour = i == 0 ? bucketed : fusion;
        check_said("top-k", top_k);
        check_said("one-bit", one_bit);
        check_said("local-sgd", local);
    }
    check_silent("top-k", f.plan.dp, 1);
    check_silent("one-bit", f.plan.dp, 1);
    check_silent("local-sgd", f.plan.dp, 1);
    check_silent("local-sgd", f.plan.tp, 2);
    check_silent("local-sgd", f.plan.pp, 2);
    check_silent("local-sgd", f.plan.sp, 2);
    check_silent("top-k", f.framework.behaviour, servers);
    check_silent("one-bit", f.framework.behaviour, servers);
    check_silent("local-sgd", f.framework.behaviour, servers);
    f.plan.precision = DL_MIXED;
    check_said("narrow-gradients", "set=mixed_gradient_bytes=2: gradients summed in fp16: "
                                   "DistributedOptimizer(..., "
                                   "compression=hvd.Compression.fp16)\n");
    check_silent("narrow-gradients", f.framework.sync.mixed_gradient_bytes, 2);
}

static void factors(void **state) {
    (void)state;
    struct dl_layer layers[2] = {{.kind = &dl_layer_conv}, {.kind = &dl_layer_conv}};
    f.workload.layers = layers, f.workload.layer_count = 2;
    check_said("factors", "");
    for (int i = 0; i < 4; i++) {
        layers[i % 2].kind = &dl_layer_dense, layers[1 - i % 2].kind = &dl_layer_conv;
        f.framework.behaviour = i < 2 ? bucketed : fusion;
        check_said("factors", "set=behaviour=sufficient-factors: dense layers exchange factors: "
                              "all-gather inputs and output gradients of dense layers, as "
                              "Poseidon does\n");
    }
    check_silent("factors", f.plan.dp, 1);
    check_silent("factors", f.plan.micro_batch_samples, 1);
    check_silent("factors", f.framework.behaviour, servers);
    check_silent("factors", f.workload.layer_count, 0);
}

/* 1, 2, 4, ... servers, at most two a node and six numbers, but those in use. */
static void parameter_servers(void **state) {
    (void)state;
    check_said("servers", ""), check_said("split-variables", "");
    f.framework.behaviour = servers;
    f.framework.sync.kvstore.big_key_elements = NAN;
    f.plan.servers = 2;
    check_said("servers", "servers=1: 1 parameter servers: 1 server processes (ps hosts)\n"
                          "servers=4: 4 parameter servers: 4 server processes (ps hosts)\n");
    f.plan.servers = 3;
    f.plan.nodes = 1000;
    check_said("servers", "servers=1: 1 parameter servers: 1 server processes (ps hosts)\n"
                          "servers=2: 2 parameter servers: 2 server processes (ps hosts)\n"
                          "servers=4: 4 parameter servers: 4 server processes (ps hosts)\n"
                          "servers=8: 8 parameter servers: 8 server processes (ps hosts)\n"
                          "servers=16: 16 parameter servers: 16 server processes (ps hosts)\n"
                          "servers=32: 32 parameter servers: 32 server processes (ps hosts)\n");
    check_silent("servers", f.plan.dp, 1);
    check_silent("servers", f.plan.nodes, 1);
    check_said("split-variables",
               "set=big_key_elements=1000000: variables of a million elements and more split over "
               "all servers: tf.compat.v1.fixed_size_partitioner(number of servers)\n");
    f.plan.nodes = 2;
    assert_true(said("split-variables")[0] != '\0');
    check_silent("split-variables", f.plan.dp, 1);
    check_silent("split-variables", f.plan.nodes, 1);
    check_silent("split-variables", f.framework.behaviour, bucketed);
    check_silent("split-variables", f.framework.sync.kvstore.big_key_elements, 1e6);
}

static void kernels_and_layouts(void **state) {
    (void)state;
    struct dl_rate rate = {.precision = DL_FP16, .unit = 1};
    f.device.rates = &rate;
    f.plan.precision = DL_MIXED;
    f.framework.kernels.mixed_layout = DL_LAYOUT_NCHW;
    check_said("nhwc", "set=mixed_layout=nhwc: channels-last activations (NHWC): data format "
                       "NHWC\n");
    check_silent("nhwc", f.plan.precision, DL_FP32);
    check_silent("nhwc", f.plan.precision, DL_BF16);
    check_silent("nhwc", f.framework.kernels.mixed_layout, DL_LAYOUT_NHWC);
    check_silent("nhwc", f.workload.family, NULL);
    check_silent("nhwc", f.workload.family, "transformer");
    check_silent("nhwc", rate.unit, 0);
    rate.unit = 1;
    check_silent("nhwc", rate.precision, DL_BF16);
    rate.precision = DL_FP16;
    check_silent("nhwc", f.device.rate_count, 0);
    f.framework.name = "pytorch-ddp";
    check_contains(said("nhwc"),
                   ": model.to(memory_format=torch.channels_last), and the input alike\n");
    f.framework.kernels.optimizer_kernels = DL_OPTIMIZER_APEX;
    check_said("optimizer", "set=optimizer_kernels=fused: a fused optimizer: fused=True of the "
                            "optimizer, or apex.optimizers\n");
    f.framework.name = "fake";
    check_said("optimizer", "set=optimizer_kernels=fused: a fused optimizer: an optimizer that is "
                            "one operation\n");
    check_silent("optimizer", f.framework.kernels.optimizer_kernels, DL_OPTIMIZER_FUSED);
}

/* The framework's own compiler, or that of the first release that has one everywhere. */
static void compilers(void **state) {
    (void)state;
    struct dl_map_entry other[] = {{.key = "dispatch_s", .text = "1us"}},
                        both[] = {{.key = "dispatch_s", .text = "1us"},
                                  {.key = "compiler", .text = "xla"}};
    struct dl_framework_release releases[] = {
        {.name = "1.0", .set = other, .set_count = 1},
        {.name = "1.1", .set = both, .set_count = 2, .where_count = 1},
        {.name = "2.0", .set = both, .set_count = 2},
        {.name = "2.1", .set = both, .set_count = 2},
    };
    check_said("compiler", "");
    f.framework.releases = releases, f.framework.release_count = 2;
    check_said("compiler", "");
    f.framework.release_count = 4;
    check_said("compiler", "compiler=xla release=2.0: release 2.0 with its compiler: "
                           "tf.function(jit_compile=True)\n");
    f.framework.name = "pytorch-ddp";
    check_said("compiler", "compiler=inductor release=2.0: release 2.0 with its compiler: "
                           "torch.compile(model)\n");
    f.plan.compiler = DL_COMPILER_NONE;
    assert_true(said("compiler")[0] != '\0');
    check_silent("compiler", f.plan.compiler, DL_COMPILER_XLA);
    f.framework.kernels.compiler = DL_COMPILER_NONE;
    check_contains(said("compiler"), "release=2.0");
    f.framework.kernels.compiler = DL_COMPILER_XLA;
    check_said("compiler", "compiler=xla: operations fused by the compiler: "
                           "torch.compile(model)\n");
    check_silent("compiler", f.plan.compiler, DL_COMPILER_XLA);
}

static void transformers(void **state) {
    (void)state;
    check_said("attention", "");
    f.workload.heads = 8;
    check_said("attention", "attention=flash: FlashAttention: scaled_dot_product_attention, or "
                            "flash-attn\n"
                            "attention=fused-softmax: scale, mask and softmax fused: a fused "
                            "softmax kernel\n");
    f.framework.name = "megatron-core";
    check_contains(said("attention"), "attention=flash: FlashAttention: --use-flash-attn\n");
    for (int a = DL_ATTENTION_OPEN + 1; a < DL_ATTENTION_KERNELS; a++)
        check_silent("attention", f.plan.attention, (enum dl_attention_kernel)a);
    check_said("recompute", "");
    f.workload.transformer_layers = 2;
    check_said("recompute", "");
    prediction.fits = false;
    const char *form = "recompute=%s: recomputation: %s: activation checkpointing: %s\n",
               *none = dl_arena_printf(&f.arena, form, "none", "none", "none"),
               *some = dl_arena_printf(&f.arena, form, "selective", "selective", "selective"),
               *full = dl_arena_printf(&f.arena, form, "full", "full", "full");
    check_said("recompute", dl_arena_printf(&f.arena, "%s%s", some, full));
    f.plan.recompute = DL_RECOMPUTE_SELECTIVE;
    check_said("recompute", dl_arena_printf(&f.arena, "%s%s", none, full));
    prediction.fits = true;
    check_said("recompute", none);
    f.plan.recompute = DL_RECOMPUTE_FULL;
    check_said("recompute", dl_arena_printf(&f.arena, "%s%s", none, some));
    /* what a policy overlaps is not proposed; one rank or stage has nothing to overlap */
    const char *gather = "set=overlaps_gather=true: parameters gathered behind the next forward "
                         "pass: --overlap-param-gather\n",
               *reduce = "set=overlaps_backward=true: gradients reduced behind backward: "
                         "--overlap-grad-reduce\n",
               *stages = "set=boundary_overlaps=true: messages between stages behind other "
                         "micro-batches: --overlap-p2p-communication\n";
    f.plan.pp = 2, f.plan.schedule = DL_INTERLEAVED, f.framework.sync.overlaps_backward = false;
    check_said("overlap", "");
    prediction.stage_count = 1;
    check_said("overlap", dl_arena_printf(&f.arena, "%s%s%s", gather, reduce, stages));
    f.plan.schedule = DL_1F1B;
    check_said("overlap", dl_arena_printf(&f.arena, "%s%s", gather, reduce));
    f.framework.transformer.overlaps_gather = true;
    check_said("overlap", reduce);
    f.framework.sync.overlaps_backward = true;
    check_said("overlap", "");
    f.plan.schedule = DL_INTERLEAVED;
    check_said("overlap", stages);
    check_silent("overlap", f.plan.pp, 1);
    check_silent("overlap", f.framework.transformer.boundary_overlaps, true);
    f.framework.transformer.overlaps_gather = f.framework.sync.overlaps_backward = false;
    f.plan.dp = 1;
    check_said("overlap", stages);
}

static void parameters_of_networks(void **state) {
    (void)state;
    struct dl_map_entry values[] = {{.key = "heads", .text = "16"},
                                    {.key = "kv_heads", .text = "16"},
                                    {.key = "vocab", .text = "50257"}};
    check_said("grouped-queries", ""), check_said("vocabulary", "");
    f.workload.values = values, f.workload.value_count = 3;
    check_said("grouped-queries", "set=kv_heads=4: grouped queries: 4 heads share keys and values: "
                                  "--group-query-attention, kv_heads=4\n"
                                  "set=kv_heads=2: grouped queries: 8 heads share keys and values: "
                                  "--group-query-attention, kv_heads=2\n");
    values[0].text = values[1].text = "12";
    check_said("grouped-queries", "set=kv_heads=3: grouped queries: 4 heads share keys and values: "
                                  "--group-query-attention, kv_heads=3\n");
    check_silent("grouped-queries", values[1].text, "6");
    values[1].text = "12";
    check_silent("grouped-queries", values[1].text, "0");
    values[1].text = "12";
    check_silent("grouped-queries", values[0].text, "0");
    values[0].text = "12";
    check_said("vocabulary", "set=vocab=50304: vocabulary padded from 50257 to 50304: "
                             "--make-vocab-size-divisible-by 128, padded logits masked\n");
    check_silent("vocabulary", values[2].text, "50304");
    check_silent("vocabulary", values[2].text, "0");
    check_silent("vocabulary", f.workload.value_count, 2);
}

static void inputs(void **state) {
    (void)state;
    const char *pinned = "set=feeds_pageable=false: input in pinned memory: DataLoader(..., "
                         "pin_memory=True)\n",
               *ahead = "set=prefetch_batches=2: batches prepared ahead: prefetch of 2 batches\n",
               *copied = "set=copies_in_step=false: the next batch is copied during the step: "
                         "prefetch_to_device, or copies with non_blocking=True\n",
               *workers = "decode-workers=7: 7 decoding workers per device: DataLoader(..., "
                          "num_workers=7)\n";
    f.framework.input = (struct dl_framework_input){.feeds_pageable = true, .copies_in_step = true};
    f.plan.decode_workers = 4;
    check_said("input", "");
    prediction.exposed_input_s = 1e-3;
    check_said("input", dl_arena_printf(&f.arena, "%s%s%s%s", pinned, ahead, copied, workers));
    f.framework.input.prefetch_batches = 1;
    check_said("input", dl_arena_printf(&f.arena, "%s%s%s", pinned, copied, workers));
    f.framework.input.feeds_pageable = false;
    check_said("input", dl_arena_printf(&f.arena, "%s%s", copied, workers));
    f.framework.input.copies_in_step = false;
    f.plan.decode_workers = 6;
    check_said("input", workers); /* 28 cores for 4 devices */
    check_silent("input", f.plan.decode_workers, 7);
    check_silent("input", f.plan.decode_workers, 0);
    check_silent("input", f.system.has_host, false);
    check_silent("input", f.system.host.cores, 0);
    check_silent("input", f.plan.devices_per_node, 5);
}

/* The rewritten file of an item on a network of one block; NULL: it proposes nothing. */
static const char *rewritten(const char *name, const char *layers) {
    struct dl_err err;
    const char *text = dl_arena_printf(
        &f.arena,
        "{'format': 'dlmodel-workload', 'version': 1, 'name': 'n', 'summary': 's', 'source': 'y', "
        "'family': 'cnn', 'input': {'channels': 16, 'size': [32, 32]}, 'layers': [%s]}",
        layers);
    if (load_text(text, NULL, 0, &f.arena, &f.workload, &err) != DL_OK)
        fail_msg("%s: %s", err.key, err.message);
    const struct dl_advise_state s = {.system = &f.system,
                                      .workload = &f.workload,
                                      .framework = &f.framework,
                                      .plan = &f.plan,
                                      .prediction = &prediction,
                                      .arena = &f.arena};
    struct dl_advise_change changes[DL_ADVISE_CHANGES];
    for (int i = 0; dl_advise_items[i] != NULL; i++) {
        if (strcmp(dl_advise_items[i]->name, name) != 0) continue;
        if (dl_advise_propose(dl_advise_items[i], &s, changes) == 0) return NULL;
        check_contains(changes[0].setting,
                       dl_arena_printf(&f.arena, "the network that --rewrite %s prints", name));
        return changes[0].workload_text;
    }
    return NULL;
}

static void check_layers(const char *name, const char *layers, const char *expected) {
    const char *text = rewritten(name, layers);
    assert_non_null(text);
    const char *from = strstr(text, "\"layers\":");
    assert_non_null(from);
    char *packed = dl_arena_strdup(&f.arena, from + strlen("\"layers\":")), *to = packed;
    for (const char *c = packed; *c != '\0'; c++)
        if (*c != ' ' && *c != '\n') *to++ = *c;
    *to = '\0';
    assert_string_equal(packed, quoted(expected, &f.arena));
}

#define CONV(more) "{'name': 'c', 'kind': 'conv', 'out': 16" more "}"
#define LAYER(kind, name, from, more)                                                              \
    "{'kind':'" kind "','name':'" name "','from':['" from "']" more "}"
#define FILE_CONV(name, from, out, kernel, stride, pad)                                            \
    LAYER("conv", name, from,                                                                      \
          ",'out':" out ",'kernel':" kernel ",'stride':" stride ",'pad':" pad                      \
          ",'dilation':[1,1],'bias':false")

static void rewrites(void **state) {
    (void)state;
    /* 7 x 7 with stride 2: three of 3 x 3, the first with the stride; 5 x 5: two, without padding
     * none */
    check_layers("kernels", CONV(", 'kernel': 7, 'stride': 2, 'pad': 3"),
                 "[" FILE_CONV("c_0", "input", "16", "[3,3]", "[2,2]", "[1,1]") "," FILE_CONV(
                     "c_1", "c_0", "16", "[3,3]", "[1,1]",
                     "[1,1]") "," FILE_CONV("c", "c_1", "16", "[3,3]", "[1,1]", "[1,1]") "]}");
    check_layers("kernels", CONV(", 'kernel': 5"),
                 "[" FILE_CONV("c_0", "input", "16", "[3,3]", "[1,1]", "[0,0]") "," FILE_CONV(
                     "c", "c_0", "16", "[3,3]", "[1,1]", "[0,0]") "]}");
    static const char *const kept[] = {CONV(", 'kernel': 3"),
                                       CONV(", 'kernel': 4"),
                                       CONV(", 'kernel': 6"),
                                       CONV(", 'kernel': 9"),
                                       CONV(", 'kernel': [5, 7]"),
                                       CONV(", 'kernel': [7, 5]"),
                                       CONV(", 'kernel': 5, 'dilation': 2"),
                                       CONV(", 'kernel': 5, 'groups': 2"),
                                       "{'name': 'p', 'kind': 'maxpool', 'kernel': 5}"};
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
        if (rewritten("kernels", kept[i]) != NULL) fail_msg("kernels changes %s", kept[i]);
    /* 12 channels become 16; those of a sum, of groups or before the loss stay */
    check_layers("channels", "{'name': 'c', 'kind': 'conv', 'out': 12, 'kernel': 3}",
                 "[" FILE_CONV("c", "input", "16", "[3,3]", "[1,1]", "[0,0]") "]}");
    check_layers(
        "channels",
        "{'kind': 'flatten', 'name': 'f'}, {'name': 'd', 'kind': 'dense', 'out': 9}, "
        "{'name': 'e', 'kind': 'dense', 'out': 9}, {'kind': 'loss', 'name': 'l'}",
        "[" LAYER("flatten", "f", "input", "") "," LAYER(
            "dense", "d", "f",
            ",'out':16,'bias':false") "," LAYER("dense", "e", "d",
                                                ",'out':9,'bias':"
                                                "false") "," LAYER("loss", "l", "e", "") "]}");
    assert_null(rewritten("channels", CONV(", 'kernel': 3")));
    assert_null(rewritten("channels", "{'name': 'c', 'kind': 'conv', 'out': 12, 'kernel': 3}, "
                                      "{'name': 'a', 'kind': 'conv', 'out': 12, 'kernel': 1}, "
                                      "{'kind': 'add', 'name': 's', 'from': ['c', 'a']}"));
    assert_null(rewritten("channels", "{'name': 'c', 'kind': 'conv', 'out': 12, 'kernel': 3}, "
                                      "{'name': 'g', 'kind': 'conv', 'out': 12, 'kernel': 3, "
                                      "'groups': 12}"));
    /* not the first layer, nor pointwise, grouped or with few channels */
    check_layers("depthwise",
                 "{'name': 'a', 'kind': 'conv', 'out': 8, 'kernel': 3, 'pad': 1}, "
                 "{'name': 'c', 'kind': 'conv', 'out': 24, 'kernel': 3, 'stride': 2, 'pad': 1}",
                 "[" FILE_CONV("a", "input", "8", "[3,3]", "[1,1]", "[1,1]") "," LAYER(
                     "conv", "c_0", "a",
                     ",'out':8,'groups':8,'kernel':[3,3],'stride':[2,2],'pad':[1,1],"
                     "'dilation':[1,1],'bias':false") "," FILE_CONV("c", "c_0", "24", "[1,1]",
                                                                    "[1,1]", "[0,0]") "]}");
    assert_null(rewritten("depthwise", CONV(", 'kernel': 3")));
    assert_null(rewritten("depthwise", "{'name': 'a', 'kind': 'conv', 'out': 7, 'kernel': 3}, "
                                       "{'name': 'c', 'kind': 'conv', 'out': 24, 'kernel': 3}"));
    assert_null(rewritten("depthwise", "{'name': 'a', 'kind': 'conv', 'out': 8, 'kernel': 3}, "
                                       "{'name': 'c', 'kind': 'conv', 'out': 24, 'kernel': 2}"));
    assert_null(rewritten("depthwise", "{'name': 'a', 'kind': 'conv', 'out': 8, 'kernel': 3}, "
                                       "{'name': 'c', 'kind': 'conv', 'out': 24, 'kernel': 3, "
                                       "'groups': 2}"));
}

/* A change has room for four options, a list for eight changes: what is beyond is left out. */
static void room_for_changes(void **state) {
    (void)state;
    struct dl_advise_change changes[DL_ADVISE_CHANGES + 1] = {0};
    int count = 0;
    for (int i = 0; i < DL_ADVISE_CHANGES; i++) {
        const struct dl_advise_change *c =
            dl_advise_add(changes, &count, i % 2 == 0 ? "a" : NULL, "1", "text", "setting");
        assert_ptr_equal(c, &changes[i]);
        assert_string_equal(c->text, "text");
        assert_string_equal(c->setting, "setting");
        assert_int_equal(c->option_count, i % 2 == 0 ? 1 : 0);
    }
    assert_null(dl_advise_add(changes, &count, "a", "1", "text", NULL));
    assert_int_equal(count, DL_ADVISE_CHANGES);
    dl_advise_also(NULL, "b", "2");
    for (int i = 0; i < 2 * DL_ADVISE_OPTIONS; i++) dl_advise_also(&changes[0], "b", "2");
    assert_int_equal(changes[0].option_count, DL_ADVISE_OPTIONS);
    assert_string_equal(changes[0].options[0].name, "a");
    for (int i = 1; i < DL_ADVISE_OPTIONS; i++) {
        assert_string_equal(changes[0].options[i].name, "b");
        assert_string_equal(changes[0].options[i].value, "2");
    }
    assert_string_equal(changes[1].text, "text");
    assert_null(changes[DL_ADVISE_CHANGES].text);
}

#define test(function) cmocka_unit_test_setup_teardown(function, setup, teardown)
int main(void) {
    const struct CMUnitTest tests[] = {
        test(table),
        test(precisions),
        test(batches),
        test(buckets),
        test(horovod),
        test(nccl),
        test(compression),
        test(factors),
        test(parameter_servers),
        test(kernels_and_layouts),
        test(compilers),
        test(transformers),
        test(parameters_of_networks),
        test(inputs),
        test(rewrites),
        test(room_for_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
