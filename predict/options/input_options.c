/* input_options.c - the options that name inputs and a plan: one row each with the field that it
 * fills. */
#include <string.h>

#include "model/engine/strategies/strategy.h"
#include "predict/options/dataset.h"
#include "predict/options/input_options.h"

#define INPUT(member) struct dl_inputs, member
#define PLAN(member) struct dl_inputs, plan.member

enum { MAX_RANKS = 100000000 };
static const char *const input_names[] = {"synthetic", "real", NULL};
static const char *const parameter_devices[] = {"cpu", "gpu", NULL};

const struct dl_option dl_input_options[] = {
    {"system", 's', "NAME|FILE", "What",
     "system, or devices of usual nodes: 8xh100_sxm, 4x8xh100_sxm (nodes x devices); predict and "
     "search: also a list, the best plan on each; default: this machine's calibrated profile "
     "(local) if there is one, else iris-v100",
     DL_TEXT_OF(INPUT(words.system), DL_GIVEN(INPUT(given.system)))},
    {"workload", 'w', "NAME|FILE", "What",
     "network, e.g. resnet50 or gpt:layers=24,hidden=1024,seq=1024,vocab=51200; an ONNX model, a "
     "config.json or its folder; default resnet50",
     DL_TEXT(INPUT(words.workload))},
    {"framework", 'f', "NAME,...|all", "What",
     "one framework (with its mode), or a comma-separated list; default all; explain, search and "
     "advise take one, by default a usual one for the workload",
     DL_TEXT(INPUT(words.framework))},
    {"all-frameworks", 0, NULL, "What",
     "with --framework all: also frameworks that are retired, lossy or asynchronous",
     DL_FLAG(INPUT(words.all_frameworks))},
    {"release", 0, "NAME", "What",
     "release or version of the framework (\"2.0\", \"NeMo 26.04\"), as in column "
     "framework_version; "
     "default: usual on the device",
     DL_TEXT(INPUT(words.release))},
    {"set", 0, "KEY=VALUE", "What",
     "what if: change any field of the system, device, workload or framework, e.g. "
     "links.inter.bandwidth=25GB/s",
     DL_REPEATED},
    {"layers", 0, "NAME|FILE", "What",
     "layer times written by import trace, used instead of modelled ones; default: matching files "
     "in data/layers/",
     DL_TEXT(INPUT(words.layers))},
    {"measured", 0, "FILE", "What",
     "table of your own runs (columns: dlmodel schema runs); those of the same system and "
     "framework correct the predictions",
     DL_TEXT(INPUT(words.measured))},
    {"plan", 0, "FILE", "What",
     "script, configuration or log of a training, or the environment.txt of a job: options that "
     "the command line leaves out (import FILE lists them)",
     NULL},
    {"nodes", 'n', "LIST", "Plan: size", "number of nodes: 16 or 1,2,4 or 1-64*2; default 1",
     DL_TEXT_OF(INPUT(words.nodes), DL_GIVEN(INPUT(given.nodes)))},
    {"gpus", 0, "N", "Plan: size",
     "total number of devices, instead of --nodes; the system determines the number of nodes",
     DL_INTEGER(INPUT(words.gpus), .min = 1, .max = MAX_RANKS, DL_GIVEN(INPUT(given.gpus)))},
    {"devices-per-node", 'g', "N", "Plan: size", "devices used on each node; default: all of them",
     DL_INTEGER(PLAN(devices_per_node), .min = 1, .max = MAX_RANKS)},
    {"batch-per-device", 'b', "N|max", "Plan: size",
     "samples per device and iteration, or max: as many as fit in memory (help theory "
     "F-MAX-BATCH); default 32 for images, 8 for sequences, a quarter of that on CPUs",
     DL_NUMBER(PLAN(batch_per_device_samples), .unit = DL_UNIT_COUNT, .min = 1, .max = 1e7,
               DL_GIVEN(INPUT(given.batch_per_device)), DL_OR_WORD("max", INPUT(max_batch)))},
    {"global-batch", 'B', "N", "Plan: size", "samples per iteration over all devices",
     DL_NUMBER(PLAN(global_batch_samples), .unit = DL_UNIT_COUNT, .min = 1, .max = 1e12)},
    {"strategy", 0, "NAME", "Plan: parallelism",
     "parallel strategy, whose open ranks fill the nodes; predict and plot strategies also take "
     "all; default: planned for transformers on frameworks that split or shard them, else that of "
     "the framework, usually data",
     DL_TEXT(INPUT(words.strategy))},
    {"precision", 'p', "fp32|tf32|mixed|fp16|bf16|fp8|mxfp8|nvfp4", "Plan: precision and optimizer",
     "arithmetic; default bf16 on devices that have it, else fp32",
     DL_CHOICE(PLAN(precision), .choices = dl_precision_names,
               DL_GIVEN(INPUT(given.plan.precision)))},
    {"optimizer", 0, "sgd|momentum|adam|lamb", "Plan: precision and optimizer",
     "optimizer; default adam for transformers, momentum for other networks",
     DL_CHOICE(PLAN(optimizer), .choices = dl_optimizer_names,
               DL_GIVEN(INPUT(given.plan.optimizer)))},
    {"master-weights", 0, "fp32|none", "Plan: precision and optimizer",
     "copy of the weights that the optimizer updates in bf16 and narrower precisions; default fp32",
     DL_CHOICE(PLAN(master_weights), .choices = dl_master_weights_names)},
    {"library", 0, "NAME", "Plan: framework settings",
     "collective library (nccl, mpi, gloo, ...); default: the framework's own",
     DL_TEXT(PLAN(library))},
    {"parameter-device", 0, "cpu|gpu", "Plan: framework settings",
     "tensorflow-ps on one node: device that holds the variables; default cpu",
     DL_WORD(PLAN(parameter_servers.variable_placement), .choices = parameter_devices,
             .alias = "placement")},
    {"dp", 0, "N", "Plan: parallelism",
     "data-parallel ranks, expert-parallel ones among them; default: all devices that the other "
     "axes leave",
     DL_INTEGER(PLAN(dp), .min = 1, .max = MAX_RANKS)},
    {"tp", 0, "N", "Plan: parallelism",
     "tensor-, filter- or channel-parallel ranks; default: planned (help theory F-DEFAULT-PLAN); "
     "with a strategy that splits inside nodes (3d, data+tensor, ...) the devices that other axes "
     "leave in a node, else 1",
     DL_INTEGER(PLAN(tp), .min = 1, .max = MAX_RANKS)},
    {"pp", 0, "N", "Plan: parallelism", "pipeline stages; default: planned, else 1",
     DL_INTEGER(PLAN(pp), .min = 1, .max = MAX_RANKS)},
    {"cp", 0, "N", "Plan: parallelism",
     "context-parallel ranks, which split the sequence in attention; default: planned, else 1",
     DL_INTEGER(PLAN(sp), .min = 1, .max = MAX_RANKS, .alias = "sp",
                DL_GIVEN(INPUT(given.context)))},
    {"spatial", 0, "N", "Plan: parallelism",
     "parts that spatial parallelism cuts an image into; default 1",
     DL_INTEGER(PLAN(sp), .min = 1, .max = MAX_RANKS, DL_GIVEN(INPUT(given.spatial)))},
    {"ep", 0, "N", "Plan: parallelism",
     "expert-parallel ranks of a mixture of experts (gpt:...,experts=8,topk=2,capacity=1.25); "
     "default 1",
     DL_INTEGER(PLAN(ep), .min = 1, .max = MAX_RANKS)},
    {"etp", 0, "N", "Plan: parallelism",
     "tensor ranks that split each expert: 1 (whole experts; --ep then counts tensor and context "
     "ranks too) or as many as --tp; default as --tp",
     DL_INTEGER(PLAN(experts.tp), .min = 1, .max = MAX_RANKS)},
    {"expert-imbalance", 0, "X", "Plan: parallelism",
     "tokens of the busiest expert-parallel rank / mean over the ranks, without a capacity limit: "
     "1 is balanced, at --ep one rank gets all; default: the framework's, for a trained router",
     DL_NUMBER(PLAN(experts.imbalance_ratio), .unit = DL_UNIT_NONE, .min = 1, .max = MAX_RANKS)},
    {"micro-batch", 0, "N|max", "Plan: size",
     "samples per micro-batch, or max: as many as divide the batch and fit in memory; default: "
     "planned, else the whole share of a data rank, and 1 with pipeline stages",
     DL_NUMBER(PLAN(micro_batch_samples), .unit = DL_UNIT_COUNT, .min = 1, .max = 1e7,
               DL_OR_WORD("max", INPUT(max_micro_batch)))},
    {"backup-workers", 0, "N", "Plan: framework settings",
     "tensorflow-ps: workers (one per node) that a synchronous step does not wait for; default 0",
     DL_INTEGER(PLAN(backup_workers), .min = 0, .max = MAX_RANKS)},
    {"recompute", 0, "none|selective|full|MODULE,...", "Plan: memory",
     "activations recomputed in backward: none, those of attention scores, all of each transformer "
     "layer, or those of the modules attention, mlp, norm, moe, latent; default: as the framework "
     "does",
     DL_CHOICE(PLAN(recompute), .choices = dl_recompute_names,
               DL_OR_MEMBERS(dl_module_names, PLAN(recomputed.modules), DL_RECOMPUTE_SELECTIVE),
               DL_GIVEN(INPUT(given.plan.recompute)))},
    {"recompute-layers", 0, "N", "Plan: memory",
     "full recomputation of N layers of each pipeline stage; default: all",
     DL_INTEGER(PLAN(recomputed.layers), .min = 1, .max = MAX_RANKS)},
    {"recompute-every", 0, "N", "Plan: memory",
     "full recomputation of one layer of N; default: all",
     DL_INTEGER(PLAN(recomputed.every), .min = 1, .max = MAX_RANKS)},
    {"attention", 0, "composed|fused-softmax|flash", "Plan: framework settings",
     "kernels of attention: scale, mask and softmax apart, in one kernel, or all of it in one; "
     "default: those of the framework's version",
     DL_CHOICE(PLAN(attention), .choices = dl_attention_kernel_names)},
    {"compiler", 0, "none|xla|inductor", "Plan: framework settings",
     "compiler that fuses the framework's operations; default: the framework's own",
     DL_CHOICE(PLAN(compiler), .choices = dl_compiler_names)},
    {"blocking-launches", 0, NULL, "Plan: framework settings",
     "with tensor or pipeline parallelism, or sharded states: the host waits for each kernel, as "
     "with CUDA_LAUNCH_BLOCKING=1",
     DL_FLAG(PLAN(blocking_launches))},
    {"servers", 0, "N", "Plan: framework settings",
     "tensorflow-ps, mxnet-dist-*: parameter servers; default: one per node, next to its workers",
     DL_INTEGER(PLAN(parameter_servers.count), .min = 1, .max = MAX_RANKS)},
    {"sequence-parallel", 0, NULL, "Plan: parallelism",
     "with tensor parallelism: split layer norms and dropout along the sequence, as Megatron does",
     DL_FLAG_OF(PLAN(sequence_parallel), DL_GIVEN(INPUT(given.plan.sequence_parallel)))},
    {"zero", 0, "STAGE", "Plan: parallelism",
     "shard over data ranks: optimizer states (1), gradients too (2), weights too (3); default: as "
     "the strategy or the framework has (zero1, ...), else 0",
     DL_INTEGER(PLAN(shard), .min = 0, .max = 3, DL_GIVEN(INPUT(given.plan.zero)))},
    {"zero-group", 0, "N", "Plan: parallelism",
     "hybrid sharding (HSDP): shard states over groups of N neighbouring data ranks and replicate "
     "them across groups; default: shard over all",
     DL_INTEGER(PLAN(shard_group), .min = 2, .max = MAX_RANKS)},
    {"mapping", 0, "data-inside|pipeline-inside", "Plan: parallelism",
     "neighbours of tensor and context ranks: data ranks or pipeline stages; default data-inside, "
     "Megatron's order",
     DL_CHOICE(PLAN(mapping), .choices = dl_mapping_names, DL_GIVEN(INPUT(given.plan.mapping)))},
    {"schedule", 0, DL_SCHEDULE_CHOICES, "Plan: parallelism", "pipeline schedule; default 1f1b",
     DL_CHOICE(PLAN(schedule), .choices = dl_schedule_names, DL_GIVEN(INPUT(given.plan.schedule)))},
    {"virtual-stages", 0, "N", "Plan: parallelism",
     "virtual pipeline stages per device, with --schedule interleaved; default 2",
     DL_INTEGER(PLAN(virtual_stages), .min = 1, .max = MAX_RANKS)},
    {"stage-layers", 0, "LIST", "Plan: parallelism",
     "layers of each pipeline stage in order, e.g. 15,6x16,15 (6x16: 6 stages of 16); default: as "
     "even as they go, the ends one less",
     DL_TEXT(PLAN(stage_layers))},
    {"overlap-grad-reduce", 0, "0|1", "Plan: framework settings",
     "reduce gradients behind the backward pass (1) or after it (0); default: as the framework's "
     "release does",
     DL_CHOICE(PLAN(settings.overlap_grad_reduce), .choices = dl_switch_names)},
    {"overlap-param-gather", 0, "0|1", "Plan: framework settings",
     "with ZeRO stages 1 and 2: gather the updated parameters behind the next forward pass (1) or "
     "before it (0); with stage 3: gather those of a layer while the one before it computes (1) or "
     "when it needs them (0); default: as the framework's release does, stage 3: 1",
     DL_CHOICE(PLAN(settings.overlap_param_gather), .choices = dl_switch_names)},
    {"tp-comm-overlap", 0, "0|1", "Plan: framework settings",
     "with tensor parallelism: exchange activations piece by piece behind the matrix products that "
     "read or write them; default: as the framework's release does",
     DL_CHOICE(PLAN(settings.tp_comm_overlap), .choices = dl_switch_names)},
    {"gradient-compression", 0, "none|fp16|bf16", "Plan: framework settings",
     "width of gradients in collectives; default: as the framework's release does",
     DL_CHOICE(PLAN(settings.gradient_compression), .choices = dl_gradient_compression_names)},
    {"allreduce", 0, "auto|flat|hierarchical", "Plan: framework settings",
     "all-reduce gradients over all ranks at once, or inside nodes, between them and inside nodes "
     "again; default auto: as the framework's release does",
     DL_CHOICE(PLAN(settings.allreduce), .choices = dl_allreduce_names)},
    {"moe-dispatch", 0, "alltoall|allgather|deepep|hybridep", "Plan: framework settings",
     "how tokens reach experts on other ranks: each copy to its expert's rank, all tokens to all "
     "ranks, or each token once to every node of its experts (DeepEP, HybridEP); default: as the "
     "framework's release does",
     DL_CHOICE(PLAN(settings.moe_dispatch), .choices = dl_moe_dispatch_names)},
    {"fp8-store", 0, "LIST", "Plan: framework settings",
     "with 8-bit precision: also keep in 8 bits what attention reads and writes (attention) and "
     "what the MLP's activation reads (mlp)",
     DL_SET(PLAN(settings.fp8_store), .choices = dl_fp8_store_names)},
    {"cp-comm", 0, "ring|allgather|alltoall", "Plan: framework settings",
     "with context parallelism: pass keys and values around a ring, gather them, or exchange "
     "shares "
     "of the tokens for shares of the heads (DeepSpeed-Ulysses); default: as the framework's "
     "release does",
     DL_CHOICE(PLAN(settings.cp_comm), .choices = dl_cp_comm_names)},
    {"offload", 0, "LIST", "Plan: framework settings",
     "what stays in host memory: optimizer (states, which its cores update), activations, weights "
     "(with --zero 3: shards, their gradients and states)",
     DL_SET(PLAN(offload.what), .choices = dl_offload_names)},
    {"offload-fraction", 0, "X", "Plan: framework settings",
     "share of it: of the parameters, of each stage's layers; default 1",
     DL_NUMBER(PLAN(offload.frac), .min = 0.001, .max = 1)},
    {"mtp-layers", 0, "N", "Plan: framework settings",
     "layers that predict further tokens (multi-token prediction), each with a loss, on the last "
     "pipeline stage; default: as the workload",
     DL_INTEGER(PLAN(tokens.mtp_layers), .min = 1, .max = 16)},
    {"packed-length", 0, "N", "Plan: framework settings",
     "mean length of a document [tokens] in packed sequences, whose attention stays inside "
     "documents; default: one document fills a sequence",
     DL_NUMBER(PLAN(tokens.packed_length_tokens), .min = 1, .max = 1e9)},
    {"lora-rank", 0, "N", "Plan: precision and optimizer",
     "fine-tuning: train an adapter of rank N for each linear layer, freeze all other weights",
     DL_INTEGER(PLAN(lora.rank), .min = 1, .max = 65536)},
    {"lora-targets", 0, "LIST", "Plan: precision and optimizer",
     "layers with adapters: qkv, proj, fc1, fc2; default qkv,proj",
     DL_SET(PLAN(lora.targets), .choices = dl_lora_target_names)},
    {"frozen-layers", 0, "LIST", "Plan: precision and optimizer",
     "fine-tuning: layers whose weights are not trained: a number of first ones (of a transformer "
     "with its embedding), backbone (all but the head), head, or names of layers or blocks",
     DL_TEXT(PLAN(frozen_layers))},
    {"moe-overlap", 0, NULL, "Plan: framework settings",
     "exchange the tokens of a micro-batch with their experts behind the kernels of another one",
     DL_FLAG(PLAN(settings.moe_overlap))},
    {"cuda-graphs", 0, "none|layer|iteration", "Plan: framework settings",
     "what the host launches at once: kernels, each pass of a layer, or the iteration; default: as "
     "the framework's release does",
     DL_CHOICE(PLAN(settings.cuda_graphs), .choices = dl_cuda_graphs_names)},
    {"transport", 0, "rdma|tcp", "Plan: framework settings",
     "between nodes: verbs, or sockets of the kernel; default: as the system has",
     DL_CHOICE(PLAN(settings.between_nodes.transport), .choices = dl_transport_names)},
    {"gpudirect", 0, "0|1", "Plan: framework settings",
     "adapters read and write GPU memory (1) or buffers of the host (0); default: as the system "
     "has",
     DL_CHOICE(PLAN(settings.between_nodes.gpudirect), .choices = dl_switch_names)},
    {"assume", 0, "NAME", "Plan: framework settings",
     "make the simplifying assumptions of another model, for comparison: nothing or paradl; "
     "default nothing",
     DL_CHOICE(PLAN(assume), .choices = dl_assume_names)},
    {"input", 0, "synthetic|real", "Plan: input and length",
     "data created on the device, or the workload's usual dataset read from storage and decoded; "
     "default synthetic",
     DL_CHOICE(INPUT(words.input), .choices = input_names, DL_GIVEN(INPUT(given.input)))},
    {"dataset", 0, "NAME", "Plan: input and length",
     "real input with that dataset's sizes: imagenet, openimages-v4, cifar10, ...; or synthetic",
     DL_TEXT(INPUT(words.dataset))},
    {"decode-workers", 0, "N", "Plan: input and length",
     "processes or threads per device that decode real input; default: all cores of the node",
     DL_NUMBER(PLAN(input.decode_workers), .unit = DL_UNIT_COUNT, .min = 1, .max = 1e5)},
    {"first-epoch", 0, NULL, "Plan: input and length",
     "read real input from storage even if it would fit in the page cache",
     DL_FLAG(PLAN(input.first_epoch))},
    {"tokens", 0, "N", "Plan: input and length",
     "also print how long training on N tokens takes, e.g. 300B or 15T: iterations, time, "
     "device-hours",
     DL_NUMBER(INPUT(length.tokens), .unit = DL_UNIT_COUNT, .min = 1, .max = 9e15)},
    {"epochs", 0, "N", "Plan: input and length", "the same for training on N epochs of the dataset",
     DL_NUMBER(INPUT(length.epoch_count), .unit = DL_UNIT_COUNT, .min = 1, .max = 1e9)},
    {"strict", 0, NULL, "Plan: input and length", "exit with 4 when a result is extrapolated",
     DL_FLAG(INPUT(strict))},
    {.name = NULL},
};

void dl_inputs_open_recompute(struct dl_inputs *in) {
    const struct dl_plan_recomputed *some = &in->plan.recomputed;
    in->plan.recompute_open = !in->given.plan.recompute;
    if (!in->plan.recompute_open || (some->layers == 0 && some->every == 0)) return;
    in->plan.recompute = DL_RECOMPUTE_FULL;
    in->plan.recompute_open = false;
}

static enum dl_code unknown_strategy(const char *given, struct dl_err *err) {
    const char *names[64], *near;
    int count = 0;
    for (; count < 63 && dl_strategies[count] != NULL; count++)
        names[count] = dl_strategies[count]->name;
    names[count] = NULL;
    near = dl_suggest(given, names);
    if (near != NULL)
        return dl_fail(err, DL_ERR_USAGE, "--strategy: no strategy \"%.60s\"; did you mean \"%s\"?",
                       given, near);
    return dl_fail(err, DL_ERR_USAGE,
                   "--strategy: no strategy \"%.60s\"; see 'dlmodel list strategies'", given);
}

static enum dl_code find_strategy(struct dl_inputs *in, struct dl_err *err) {
    if (in->words.strategy == NULL) return DL_OK;
    in->plan.strategy = dl_strategy_find(in->words.strategy);
    return in->plan.strategy != NULL ? DL_OK : unknown_strategy(in->words.strategy, err);
}

/* --dataset is real input of one dataset's sizes; with only --input real, the workload's usual
 * dataset is looked up once the workload is loaded. */
static enum dl_code apply_dataset(struct dl_context *context, struct dl_inputs *in,
                                  struct dl_err *err) {
    in->plan.input.synthetic = in->words.input == 0;
    if (in->words.dataset == NULL) return DL_OK;
    if (in->given.input &&
        in->plan.input.synthetic != (strcmp(in->words.dataset, "synthetic") == 0)) {
        return dl_fail(err, DL_ERR_USAGE,
                       "--input and --dataset contradict each other; give --dataset alone");
    }
    return dl_dataset_apply(&context->data, in->words.dataset, context->arena, &in->plan, err);
}

static enum dl_code read_nodes(struct dl_inputs *in, struct dl_err *err) {
    struct dl_err inner = {0};
    if (dl_list_parse(in->words.nodes, in->nodes, DL_MAX_LIST, &in->node_count, &inner) == DL_OK)
        return DL_OK;
    return dl_fail(err, DL_ERR_USAGE, "--nodes: %s", inner.message);
}

enum dl_code dl_inputs_read(struct dl_context *context, const struct dl_options *options,
                            struct dl_inputs *out, struct dl_err *err) {
    *out = (struct dl_inputs){
        .words = {.workload = "resnet50", .framework = "all", .nodes = "1"},
        .plan = {.precision = DL_FP32,
                 .optimizer = DL_MOMENTUM,
                 .recompute = DL_RECOMPUTE_NONE,
                 .schedule = DL_1F1B,
                 .assume = DL_ASSUME_NOTHING,
                 .mapping = DL_MAP_DATA_INSIDE,
                 .parameter_servers.variable_placement = parameter_devices[0]},
    };
    DL_TRY(dl_options_bind(options, dl_input_options, out, err));
    DL_TRY(read_nodes(out, err));
    DL_TRY(find_strategy(out, err));
    if (out->given.context && out->given.spatial)
        return dl_fail(err, DL_ERR_USAGE, "give --cp (sequences) or --spatial (images), not both");
    if (out->given.batch_per_device && out->plan.global_batch_samples > 0)
        return dl_fail(err, DL_ERR_USAGE, "give --batch-per-device or --global-batch, not both");
    if (out->given.nodes && out->given.gpus)
        return dl_fail(err, DL_ERR_USAGE, "give --nodes or --gpus, not both");
    if (out->max_batch && out->max_micro_batch)
        return dl_fail(err, DL_ERR_USAGE,
                       "max: of --batch-per-device or of --micro-batch, not of both");
    if (out->length.tokens > 0 && out->length.epoch_count > 0)
        return dl_fail(err, DL_ERR_USAGE, "give --tokens or --epochs, not both");
    dl_inputs_open_recompute(out);
    return apply_dataset(context, out, err);
}
