/* framework_fields.c - the fields of data/frameworks/NAME.json: `dlmodel schema framework` prints
 * this table. Keys are flat; struct dl_framework groups them. */
#include "model/network/collective.h"
#include "model/framework/framework.h"
#include "model/framework/kernel_names.h"
#include "model/framework/workspace.h"
#include "model/plan/plan.h"

/* The member of `group` that is called like its key. */
#define AT(group, member) .key = #member, .offset = offsetof(struct dl_framework, group.member)
/* A key that differs from its member: a workload has a parameter of the name of the member. */
#define NAMED(key_, group, member)                                                                 \
    .key = key_, .offset = offsetof(struct dl_framework, group.member)
/* A key that had another name in the previous release. */
#define WAS(place, old) place, .alias = old
#define TOP(member) .key = #member, .offset = offsetof(struct dl_framework, member)
#define STRING(place, need, text)                                                                  \
    { place, .type = DL_FIELD_STRING, .required = need, .help = text }
#define CHOICE(place, names, text)                                                                 \
    { place, .type = DL_FIELD_CHOICE, .choices = names, .help = text }
#define NUMBER(place, low, high, measure, text)                                                    \
    { place, .type = DL_FIELD_NUMBER, .min = low, .max = high, .unit = measure, .help = text }
#define DEFAULT(place, low, high, measure, value, text)                                            \
    {                                                                                              \
        place, .type = DL_FIELD_NUMBER, .min = low, .max = high, .unit = measure,                  \
               .has_fallback = true, .fallback = value, .help = text                               \
    }
#define FLAG(place, text)                                                                          \
    { place, .type = DL_FIELD_BOOL, .help = text }

static const char *const filter_backward_names[] = {[DL_FILTER_ALL_REDUCE] = "all_reduce",
                                                    [DL_FILTER_REDUCE_SCATTER] = "reduce_scatter",
                                                    [DL_FILTER_ALL_TO_ALL] = "all_to_all",
                                                    NULL};

static const char *const assignment_names[] = {[DL_SERVERS_ROUND_ROBIN] = "round-robin",
                                               [DL_SERVERS_LEAST_LOADED] = "least-loaded",
                                               [DL_SERVERS_HASHED] = "hashed",
                                               NULL};

static const char *const default_names[] = {[DL_DEFAULT_DATA_PARALLEL] = "data-parallel",
                                            [DL_DEFAULT_TRANSFORMER] = "transformer",
                                            [DL_DEFAULT_TRANSFORMER_8_BITS] = "transformer-8-bits",
                                            NULL};

static const char *const tensor_overlap_names[] = {[DL_TENSOR_EXPOSED] = "none",
                                                   [DL_TENSOR_BACKWARD] = "backward",
                                                   [DL_TENSOR_PIECES] = "pieces",
                                                   NULL};
static const char *const context_names[] = {[DL_CONTEXT_RING] = "ring",
                                            [DL_CONTEXT_GATHER] = "all-gather",
                                            [DL_CONTEXT_ALL_TO_ALL] = "all-to-all",
                                            NULL};
static const char *const expert_row_names[] = {
    [DL_ROWS_DIRECT] = "direct", [DL_ROWS_SORTED] = "sorted", [DL_ROWS_INDEXED] = "indexed", NULL};
static const char *const expert_names[] = {[DL_EXPERT_ALL_TO_ALL] = "all-to-all",
                                           [DL_EXPERT_GATHER] = "all-gather",
                                           [DL_EXPERT_ONCE] = "once-per-node",
                                           NULL};
static const char *const selective_names[] = {[DL_SELECTIVE_ATTENTION] = "attention",
                                              [DL_SELECTIVE_OPERATIONS] = "operations",
                                              [DL_SELECTIVE_BLOCKS] = "blocks",
                                              NULL};
static const char *const attention_library_names[] = {[DL_ATTENTION_NATIVE] = "native",
                                                      [DL_ATTENTION_TRITON] = "triton",
                                                      [DL_ATTENTION_FLASH2] = "flash2",
                                                      [DL_ATTENTION_SDPA] = "sdpa",
                                                      NULL};
static const char *const cast_names[] = {
    [DL_CASTS_ALL] = "all", [DL_CASTS_AFTER_NORM] = "after-norm", [DL_CASTS_FUSED] = "fused", NULL};

static const char *const trains_names[] = {"any", "transformers", NULL};

#define CHOOSE(place, names, value, text)                                                          \
    {                                                                                              \
        place, .type = DL_FIELD_CHOICE, .choices = names, .has_fallback = true, .fallback = value, \
               .help = text                                                                        \
    }

static const struct dl_field framework_fields[] = {
    STRING(TOP(name), true, "name, as in --framework"),
    STRING(TOP(summary), true, "description in one line"),
    STRING(TOP(source), true, "key of SOURCES.md for every number without its own"),
    STRING(TOP(release), true, "release that these constants describe"),
    CHOOSE(TOP(status), dl_framework_status_names, DL_MAINTAINED,
           "all but maintained ones are shown on request, never recommended"),
    CHOOSE(TOP(trains), trains_names, DL_TRAINS_ANY, "networks that it has implementations of"),
    STRING(TOP(last_architecture), false,
           "newest GPU architecture that its last release runs on; absent: no limit"),
    STRING(TOP(first_architecture), false,
           "oldest NVIDIA GPU architecture that it runs on; absent: not stated"),
    STRING(TOP(checkpoint), false,
           "what its programs write as a checkpoint: a row of `dlmodel list checkpoints`"),
    {TOP(versions), .count_offset = offsetof(struct dl_framework, version_count),
     .type = DL_FIELD_STRINGS,
     .help = "further values of framework_version that the members of this file cover"},
    {.key = "behaviour",
     .type = DL_FIELD_STRING,
     .offset = offsetof(struct dl_framework, behaviour_name),
     .required = true,
     .help = "how gradients are synchronized: a row of `dlmodel list behaviours`"},
    {AT(sync, library), .type = DL_FIELD_CHOICE, .choices = dl_library_names, .required = true,
     .help = "collective library on GPUs"},
    STRING(AT(sync, copy_pattern), false,
           "how library copy sums: star (default), tree, host, sharded, ring or hierarchical"),
    CHOICE(AT(sync, cpu_library), dl_library_names,
           "collective library on CPUs (absent: this mode needs GPUs)"),
    NUMBER(AT(sync, bucket_bytes), 1, 1e12, DL_UNIT_BYTE,
           "size at which a gradient bucket is closed"),
    NUMBER(AT(sync, pack_bytes), 0, 1e12, DL_UNIT_BYTE,
           "gradients are concatenated up to this size; 0: all into one tensor"),
    NUMBER(AT(sync, big_key_elements), 1, 1e12, DL_UNIT_COUNT,
           "arrays of at least this many elements are split over all servers"),
    DEFAULT(AT(sync.messages, message_s), 0, 1, DL_UNIT_S, 0,
            "host time of one message or remote call"),
    NUMBER(
        AT(sync.messages, message_copy_bytes_per_s), 1e6, 1e13, DL_UNIT_BYTE_PER_S,
        "rate at which the one receiving thread of a process copies and parses messages; absent: "
        "no limit"),
    DEFAULT(AT(sync, collective_launch_s), 0, 1, DL_UNIT_S, 0, "host time of one collective call"),
    DEFAULT(AT(sync, check_peer_s), 0, 1, DL_UNIT_S, 0,
            "transformers on several nodes: host time of one collective for each other rank of its "
            "group, where ranks check each other before it (debugging)"),
    NUMBER(AT(host, dispatch_s), 0, 1, DL_UNIT_S,
           "host time to issue one kernel (absent: that of kernels_from, else 0)"),
    FLAG(AT(host, checks_overflow),
         "mixed precision: the host reads whether gradients overflowed, then issues the update"),
    STRING(AT(host, host_counts), false,
           "what the host runs for each layer: a release of host_counts.json; absent: that of "
           "kernels_from, else launches alone; none: launches alone"),
    DEFAULT(AT(host, iteration_s), 0, 10, DL_UNIT_S, 0, "fixed host time of one iteration"),
    DEFAULT(AT(sync, replica_s), 0, 1, DL_UNIT_S, 0, "host time per parameter tensor and device"),
    DEFAULT(AT(sync, gradient_bytes), 0.03125, 8, DL_UNIT_BYTE, 4,
            "width of one synchronized gradient element in fp32 and tf32"),
    DEFAULT(AT(sync, mixed_gradient_bytes), 0.03125, 8, DL_UNIT_BYTE, 4,
            "the same in mixed precision"),
    DEFAULT(AT(sync, gradient_launches_per_tensor), 0, 10, DL_UNIT_COUNT, 0,
            "operations that the host issues for the exchange of one gradient tensor"),
    FLAG(AT(sync, hierarchical),
         "all-reduces run inside nodes, then between nodes by the shard of each device (MPI), then "
         "inside nodes again"),
    DEFAULT(WAS(AT(sync, communication_cores), "endpoint_cores"), 0, 64, DL_UNIT_COUNT, 0,
            "cores of a CPU device that communicate instead of computing, in jobs of several "
            "devices"),
    DEFAULT(WAS(AT(sync, knl_communication_cores), "knl_endpoint_cores"), 0, 64, DL_UNIT_COUNT, 0,
            "the same on a Xeon Phi; 0: communication_cores"),
    FLAG(AT(sync.messages, servers_colocated), "parameter servers share the workers' nodes"),
    {AT(sync.messages, server_assignment), .type = DL_FIELD_CHOICE, .choices = assignment_names,
     .has_fallback = true, .fallback = DL_SERVERS_ROUND_ROBIN,
     .help = "server of a variable: in turn, the one with the fewest bytes, or by its number"},
    NUMBER(AT(sync.messages, send_bytes_per_s), 1e6, 1e13, DL_UNIT_BYTE_PER_S,
           "rate at which one process serializes the messages that it sends; absent: no limit"),
    NUMBER(AT(sync.messages, flow_bytes_per_s), 1e6, 1e13, DL_UNIT_BYTE_PER_S,
           "rate between one process and another; absent: no limit"),
    NUMBER(AT(sync.messages, sum_bytes_per_s), 1e6, 1e13, DL_UNIT_BYTE_PER_S,
           "rate at which a server's thread adds gradients of workers; absent: memory bandwidth"),
    NUMBER(AT(memory, fragmentation_frac), 0, 0.5, DL_UNIT_NONE,
           "share of device memory lost to the allocator (absent: that of `allocator`)"),
    CHOICE(AT(memory, allocator), dl_allocator_names,
           "allocator of device memory (absent: that of kernels_from, else no rounding)"),
    DEFAULT(AT(input, prefetch_batches), 0, 64, DL_UNIT_COUNT, 1,
            "batches prepared ahead; 0: input does not overlap with the step"),
    DEFAULT(AT(input, crop_skip_frac), 0, 0.99, DL_UNIT_NONE, 0,
            "share of an image that is not decoded, in the mean, where a random part is used"),
    FLAG(AT(host, single_node), "runs on one host only"),
    FLAG(AT(host, single_process), "one process issues the kernels of all devices of a node"),
    FLAG(AT(sync, overlaps_backward), "gradient synchronization starts before backward ends"),
    FLAG(AT(sync, each_micro_batch),
         "gradients are synchronized after each micro-batch (DDP without no_sync)"),
    DEFAULT(AT(kernels, update_launches_per_tensor), 0, 100, DL_UNIT_COUNT, 1,
            "optimizer kernels per parameter tensor"),
    DEFAULT(AT(errors, residual_sigma_log), 0, 2, DL_UNIT_NONE, 0.15,
            "spread of log(predicted / measured) beyond kernels and collectives; in intervals"),
    FLAG(AT(sync, asynchronous),
         "servers apply each worker's gradients at once; no worker waits for another"),
    FLAG(AT(input, feeds_pageable), "host-to-device copies of input read pageable memory"),
    FLAG(AT(input, feeds_one_array),
         "the batches of a node's devices are slices of one array in the memory of one socket"),
    FLAG(AT(input, feeds_whole_batch),
         "input of all devices is copied to the first one, which passes slices on"),
    FLAG(AT(input, feeds_each_device),
         "input of all devices is copied to each of them, which keeps its slice"),
    FLAG(AT(input, decodes_on_device),
         "samples are decoded on the devices (DALI), whose time for it is not counted"),
    FLAG(AT(input, copies_in_step),
         "the step begins with the copy of the batch; only reading and decoding are ahead"),
    NUMBER(AT(input, feed_bytes_per_s), 1e6, 1e13, DL_UNIT_BYTE_PER_S,
           "rate of the framework's copy of the batch before each step; absent: no copy"),
    STRING(AT(kernels, kernels_from), false,
           "framework that runs the same kernels and supplies the facts that are absent here"),
    CHOICE(AT(kernels, layernorm), layernorm_names,
           "kernels of a layer norm: one forward, two backward; moments and row; batch norm of a "
           "view; those of a compiler; ten operations; one each way"),
    CHOICE(AT(kernels, gelu), gelu_names,
           "kernels of GELU: one; five operations (erf); eight operations (tanh)"),
    CHOICE(NAMED("dropout_kernels", kernels, dropout), dropout_names,
           "kernels of dropout: one with a byte mask; part of its neighbours; five operations"),
    CHOICE(AT(kernels, attention), dl_attention_kernel_names,
           "kernels of attention, unless the plan gives them; absent or open: what the workload "
           "says (flash)"),
    CHOICE(AT(kernels, softmax), softmax_names,
           "kernels of attention's softmax: one; those of a compiler; three, and four backward"),
    CHOICE(AT(kernels, batchnorm), batchnorm_names,
           "kernels of batch norm: cuDNN's spatial or persistent ones, spatial between copies to "
           "NCHW and back, or "
           "many operations"),
    CHOICE(AT(kernels, pooling), pooling_names,
           "backward kernel of max pooling: cuDNN's, or PyTorch's, which looks for each element at "
           "the index of every window"),
    CHOICE(NAMED("bias_kernels", kernels, bias), bias_names,
           "bias of dense layers: in the matrix product, or a kernel of its own"),
    CHOICE(AT(kernels, loss), loss_names, "kernels of the loss: fused, or log-softmax and one-hot"),
    CHOICE(AT(kernels, sums), sum_names,
           "sum of the gradients of a tensor with several readers: in pairs, or at once"),
    CHOICE(AT(kernels, fusion), fusion_names,
           "passes in which activations and additions run inside the batch norm or addition before "
           "them"),
    CHOICE(AT(kernels, mixed_fusion), fusion_names, "fusion in mixed precision"),
    CHOICE(AT(kernels, layout), layout_names, "order of a convolution's activations in memory"),
    CHOICE(AT(kernels, mixed_layout), layout_names,
           "the same in mixed precision; matrix units compute channels-last, so that nchw copies "
           "both activations in each pass"),
    CHOICE(AT(kernels, mixed_policy), policy_names,
           "what mixed precision keeps in fp32 and which casts it inserts"),
    STRING(AT(kernels, optimizer_kernels), false,
           "kernels and traffic of the optimizer: a row of optimizers.json; fused or absent: the "
           "least traffic, update_launches_per_tensor"),
    CHOICE(AT(kernels, weight_copies), yes_names,
           "each convolution copies its weights to another layout in each pass"),
    CHOICE(AT(kernels, aligned_gemm), yes_names,
           "16-bit GEMMs with a side that is not a multiple of 8 run outside Volta's tensor cores: "
           "cuBLAS before 11"),
    CHOICE(AT(kernels, weight_decay), decay_names,
           "weight decay: part of the update, or a term of the loss for each parameter tensor"),
    CHOICE(AT(kernels, mixed_batchnorm), batchnorm_names, "batchnorm in mixed precision"),
    CHOICE(
        AT(kernels, compiler), dl_compiler_names,
        "compiler that --compiler (column compiler) may ask for; absent: none, the request has no "
        "effect"),
    CHOICE(AT(kernels, compiled_fusion), fusion_names, "fusion by that compiler; absent: both"),
    NUMBER(AT(kernels, head_copies), 0, 8, DL_UNIT_COUNT,
           "copies of queries, keys, values and context to the order of heads, in each pass"),
    NUMBER(AT(kernels, score_kernels), 0, 2, DL_UNIT_COUNT,
           "kernels of attention's scale and mask next to its softmax: 2, 1 or none"),
    NUMBER(AT(kernels, norm_small_kernels), 0, 20, DL_UNIT_COUNT,
           "short kernels per batch norm and step: moving averages, a counter"),
    CHOICE(
        AT(activations, activation_library), dl_library_names,
        "library of collectives inside a replica that is split within layers (absent: `library`)"),
    CHOICE(AT(activations, reduce_library), dl_library_names,
           "the same for collectives that sum activations (absent: activation_library)"),
    {AT(activations, filter_backward), .type = DL_FIELD_CHOICE, .choices = filter_backward_names,
     .has_fallback = true, .fallback = DL_FILTER_ALL_REDUCE,
     .help = "collective that sums gradients of activations in filter parallelism"},
    DEFAULT(AT(activations, activation_s), 0, 1, DL_UNIT_S, 0,
            "host time of one collective inside a replica"),
    DEFAULT(AT(activations, activation_peer_s), 0, 1, DL_UNIT_S, 0,
            "the same, for each device that takes part"),
    DEFAULT(AT(activations, halo_message_s), 0, 1, DL_UNIT_S, 0, "host time of one halo message"),
    DEFAULT(AT(activations, spatial_dims), 0, 3, DL_UNIT_COUNT, 0,
            "maximum number of dimensions that spatial parallelism splits; 0: all"),
    FLAG(AT(activations, activation_direct),
         "activation_library moves device memory itself, not through host memory"),
    FLAG(AT(activations, halo_overlaps), "inner positions are computed during the halo transfer"),
    DEFAULT(AT(activations, activation_copies), 0, 16, DL_UNIT_COUNT, 0,
            "passes over a gathered or summed activation on the device (joining its pieces)"),
    NUMBER(AT(memory, conv_workspace_bytes), 0, 1e12, DL_UNIT_BYTE,
           "maximum workspace of a convolution in device memory; absent: no limit"),
    DEFAULT(AT(memory, loss_logit_bytes), 0, 64, DL_UNIT_BYTE, 0,
            "device memory at the peak of the loss for each logit of 16 bits; 0: that of its "
            "kernels"),
    {TOP(workloads), .type = DL_FIELD_MAP,
     .count_offset = offsetof(struct dl_framework, workload_count),
     .help = "network -> how this framework builds it"},
    {TOP(releases), .type = DL_FIELD_LIST,
     .count_offset = offsetof(struct dl_framework, release_count),
     .child = &dl_framework_release_schema,
     .help = "releases whose constants differ; the members above are those of `release`"},
    {TOP(device_releases), .type = DL_FIELD_MAP,
     .count_offset = offsetof(struct dl_framework, device_releases.count),
     .help = "GPU architecture -> release that is usual there, where the file's own is not"},
    {TOP(run_releases), .type = DL_FIELD_MAP,
     .count_offset = offsetof(struct dl_framework, run_releases.count),
     .help = "GPU architecture -> release of measured runs there that name none: that of their "
             "time, before device_releases"},
    {TOP(sources), .type = DL_FIELD_MAP,
     .count_offset = offsetof(struct dl_framework, source_count),
     .help = "member -> key of SOURCES.md"},
    STRING(TOP(strategy), false,
           "strategy when the plan names none: a row of `dlmodel list strategies`; absent: data"),
    {TOP(recompute), .type = DL_FIELD_CHOICE, .choices = dl_recompute_names, .has_fallback = true,
     .fallback = DL_RECOMPUTE_NONE, .help = "activation recomputation when the plan says nothing"},
    FLAG(TOP(splits_layers), "supports tensor, pipeline, sequence and expert parallelism"),
    FLAG(TOP(shards), "can shard optimizer states, gradients and weights (ZeRO)"),
    {AT(capabilities, zero_stages), .type = DL_FIELD_NUMBERS, .min = 0, .max = 3,
     .count_offset = offsetof(struct dl_framework, capabilities.zero_stage_count),
     .help = "stages of ZeRO that it has; absent: all where it shards, else 0"},
    {AT(capabilities, schedules), .type = DL_FIELD_STRINGS,
     .count_offset = offsetof(struct dl_framework, capabilities.schedule_count),
     .help = "pipeline schedules that it has, values of --schedule; absent: all"},
    {AT(capabilities, precisions), .type = DL_FIELD_STRINGS,
     .count_offset = offsetof(struct dl_framework, capabilities.precision_count),
     .help = "precisions that it trains in, values of --precision; absent: all, 8 bits and less "
             "where `casts` says how"},
    {AT(capabilities, settings), .type = DL_FIELD_STRINGS,
     .count_offset = offsetof(struct dl_framework, capabilities.setting_count),
     .help = "options of a plan that it has a switch for, as overlap-grad-reduce or "
             "gradient-compression=fp16; absent: unknown"},
    CHOICE(AT(capabilities, context_parallel), yes_names,
           "has context parallelism (absent means unknown)"),
    FLAG(AT(capabilities, context_shards), "context parallelism needs sharded states"),
    FLAG(AT(capabilities, tensor_sequence), "tensor parallelism is always sequence parallel"),
    FLAG(AT(capabilities, pipeline_outermost), "pipeline ranks are outside of data ranks"),
    FLAG(AT(capabilities, pipeline_zero1), "pipelines run with ZeRO stages 0 and 1 alone"),
    DEFAULT(AT(kernels, softmax_matrices), 0, 1024, DL_UNIT_COUNT, 0,
            "the fused softmax of attention takes multiples of this many score matrices of a rank; "
            "0: any number"),
    DEFAULT(AT(kernels, softmax_keys), 0, 1e6, DL_UNIT_COUNT, 0,
            "maximum number of keys of the fused softmax; 0: any number"),
    CHOICE(TOP(default_for), default_names,
           "command that uses this framework when the user names none: explain and plot timeline, "
           "or search of a transformer, on devices with 8-bit matrix units or on others"),
    DEFAULT(AT(transformer, bf16_gradient_bytes), 0.03125, 8, DL_UNIT_BYTE, 2,
            "the same in bf16, fp16 and 8-bit training"),
    DEFAULT(
        AT(transformer, accumulate_bytes), 0, 32, DL_UNIT_BYTE, 0,
        "traffic for each parameter with which a micro-batch adds its gradients to those before "
        "it, in bf16 and 8-bit training"),
    DEFAULT(AT(transformer, fp8_gather_bytes), 0.5, 4, DL_UNIT_BYTE, 2,
            "width of a parameter that is gathered in fp8 training; in mxfp8 and nvfp4 it is 2"),
    NUMBER(AT(transformer, bucket_elements), 1, 1e12, DL_UNIT_COUNT,
           "parameters of a gradient bucket of a transformer; absent: bucket_bytes, else a layer"),
    DEFAULT(AT(transformer, bucket_elements_per_rank), 0, 1e9, DL_UNIT_COUNT, 0,
            "the same for each data rank, where that is more"),
    FLAG(AT(transformer, overlaps_gather),
         "parameters of sharded optimizers are gathered behind the next forward pass"),
    FLAG(WAS(AT(transformer, p2p_overlap), "boundary_overlaps"),
         "messages between interleaved stages move behind the work of other micro-batches"),
    FLAG(WAS(AT(transformer, no_reshard_with_pipeline), "pipeline_keeps_gathered"),
         "in a pipeline weights of ZeRO stage 3 stay gathered: the states of stage 1"),
    FLAG(AT(transformer, sums_each_round),
         "with ZeRO stage 2 interleaved stages sum the gradients of a part once for as many "
         "micro-batches as there are stages; absent: for each"),
    FLAG(AT(transformer, casts_gathered),
         "weights are kept in fp32 alone and cast when they are gathered (ZeRO stage 3)"),
    FLAG(AT(transformer, copies_gathered),
         "gathered parameters are copied out of the buffer of the collective (ZeRO stage 3)"),
    FLAG(AT(transformer, copies_gradients),
         "gradients are copied into the buffer of the collective (ZeRO stage 3)"),
    CHOOSE(AT(transformer, tensor_overlap), tensor_overlap_names, DL_TENSOR_EXPOSED,
           "collectives of tensor parallelism that GEMMs hide"),
    CHOOSE(AT(transformer, context_exchange), context_names, DL_CONTEXT_RING,
           "how context-parallel ranks exchange keys and values"),
    CHOOSE(NAMED("expert_exchange", transformer, experts.exchange), expert_names,
           DL_EXPERT_ALL_TO_ALL, "how tokens reach experts on other ranks"),
    DEFAULT(NAMED("expert_imbalance", transformer, experts.imbalance_ratio), 1, 8, DL_UNIT_NONE, 1,
            "tokens of the fullest rank of experts / mean, where no capacity limits them"),
    CHOOSE(NAMED("expert_rows", transformer, experts.rows), expert_row_names, DL_ROWS_DIRECT,
           "rows between their exchange and the products of experts: untouched, sorted by expert, "
           "or weighted, padded and gathered by operations of eager PyTorch"),
    FLAG(NAMED("loops_experts", transformer, experts.loops),
         "each expert's products, and casts with scales of their own, are launched by themselves"),
    FLAG(NAMED("adds_expert_bias", transformer, experts.adds_bias),
         "the bias of experts' second product is added by expert in fp32, times router weights"),
    DEFAULT(NAMED("routing_operation_count", transformer, experts.routing_operation_count), 0, 1000,
            DL_UNIT_COUNT, 0,
            "operations of the host around a router and its dispatcher, beside their kernels"),
    STRING(NAMED("captured_on", transformer, experts.captured_on), false,
           "GPU architecture on which an iteration of a mixture with a capacity is one CUDA graph; "
           "absent: none"),
    FLAG(AT(transformer, captures_layers), "each pass of a layer is one CUDA graph"),
    CHOOSE(AT(transformer, selective), selective_names, DL_SELECTIVE_ATTENTION,
           "what selective recomputation repeats: attention, all operations but some linear "
           "layers, or some blocks"),
    DEFAULT(AT(transformer, selective_frac), 0, 1, DL_UNIT_NONE, 0.5,
            "share of the linear layers (operations) or blocks that it repeats"),
    CHOOSE(AT(transformer, attention_library), attention_library_names, DL_ATTENTION_NATIVE,
           "fused attention: kernels written for the device, FlashAttention 1 or 2 on every "
           "device, or what PyTorch chooses (sdpa: cuDNN on Blackwell, FlashAttention 2 before)"),
    FLAG(AT(transformer, recomputes_cudnn), "selective operations repeat attention by cuDNN, too"),
    FLAG(AT(transformer, uneven_parts), "virtual stages of a device may differ by a layer"),
    FLAG(AT(transformer, stages_by_cost),
         "layers and the head are shared out over pipeline stages by their parameters; absent: "
         "layers alone, evenly"),
    FLAG(AT(transformer, zero1_all_reduce),
         "ZeRO stage 1 sums whole gradients with one all-reduce after backward"),
    FLAG(AT(transformer, gathers_pieces),
         "ZeRO stage 1 gathers into lists of tensors: one copy for each tensor and data rank"),
    FLAG(AT(transformer, whole_boundaries),
         "every tensor rank sends all that a stage hands on; absent: its share, gathered after"),
    DEFAULT(
        AT(transformer, host_update_bytes), 0, 1000, DL_UNIT_BYTE, 80,
        "memory traffic of the host's cores for the update of a parameter (--offload optimizer)"),
    DEFAULT(AT(transformer, p2p_host_s), 0, 10, DL_UNIT_S, 0,
            "time that the hosts of two pipeline stages take for each message between them"),
    FLAG(NAMED("grouped_gemms", transformer, experts.grouped_gemms),
         "experts by PyTorch's grouped GEMMs, whose time is grouped_scale of the device"),
    FLAG(WAS(AT(transformer, fp32_norm_input), "wide_norms"),
         "RMS norms take their input cast to fp32"),
    FLAG(AT(transformer, recomputes_norms), "norms are computed again where nothing else is"),
    FLAG(AT(transformer, unfused_gate),
         "gated activations are two operations, and the result of the first one is kept"),
    FLAG(AT(transformer, half_gradients),
         "16-bit gradients of a micro-batch stay in buckets next to those that are summed"),
    FLAG(AT(transformer, eager_operations),
         "RMS norm, rotary embedding and gated activations are many operations: eager PyTorch"),
    CHOICE(AT(transformer, casts), cast_names,
           "casts to 8 or 4 bits that are kernels of their own; absent: no such training"),
    DEFAULT(AT(transformer, recompute_operation_count), 0, 1000, DL_UNIT_COUNT, 0,
            "operations that save and restore random states around a recomputed layer"),
    DEFAULT(AT(transformer, dropout_operation_count), 0, 1000, DL_UNIT_COUNT, 0,
            "the same around the dropout of attention"),
    DEFAULT(AT(transformer, gradient_operation_count), 0, 100, DL_UNIT_COUNT, 0,
            "operations that add one tensor's gradient to those of earlier micro-batches"),
    FLAG(WAS(AT(transformer, current_scaling), "scales_currently"),
         "8-bit scale factors come from the tensor itself: one more pass before each cast"),
    FLAG(AT(transformer, casts_weights_once),
         "weights are cast once an iteration, not with every micro-batch"),
    {TOP(launch), .type = DL_FIELD_OBJECT,
     .count_offset = offsetof(struct dl_framework, has_launch),
     .child = &dl_framework_launch_schema,
     .help = "how a Slurm job starts it; absent: not supported by `dlmodel slurm`"},
    {.key = NULL},
};

#define FACTS "state the kernels instead (layernorm, gelu, dropout, softmax, batchnorm, ...)"
#define LAYOUT "state layout, mixed_layout and mixed_policy instead"
#define RATE "a rate of the device; remove it"
#define CHAINERMN "behaviour chainermn does so; remove it"
static const char *const removed_keys[] = {
    "group_sums_first",
    CHAINERMN,
    "gather_returns",
    CHAINERMN,
    "halo_forward",
    CHAINERMN,
    "halo_exchange",
    CHAINERMN,
    "leader_broadcasts",
    CHAINERMN,
    "leader_input",
    CHAINERMN,
    "conv_scale",
    RATE,
    "grouped_scale",
    RATE,
    "unequal_scale",
    RATE,
    "norm_scale",
    "state batchnorm instead; the rate is norm_scale of the device",
    "stream_scale",
    FACTS,
    "composed_scale",
    FACTS,
    "loss_scale",
    "state loss instead",
    "mixed_conv_scale",
    LAYOUT,
    "mixed_grouped_scale",
    LAYOUT,
    "mixed_stream_scale",
    LAYOUT,
    "mixed_composed_scale",
    "state mixed_policy instead",
    "fuses_elementwise",
    "state fusion instead (none, forward, both)",
    "mixed_fuses_elementwise",
    "state mixed_fusion instead (none, forward, both)",
    NULL};

const struct dl_schema dl_framework_schema = {
    .name = "dlmodel-framework",
    .summary = "a framework in one distributed mode: its behaviour and its constants by version",
    .size = sizeof(struct dl_framework),
    .fields = framework_fields,
    .removed = removed_keys,
    .top_level = true,
};
