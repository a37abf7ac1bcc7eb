/* framework.c - fields of data/frameworks/NAME.json and the table of behaviours. */
#include "model/framework/framework.h"

#include <string.h>

#include "model/collective/collective.h"
#include "model/framework/gradient_sync.h"

extern const struct dl_framework_behaviour dl_fw_bucketed, dl_fw_fused_ticks, dl_fw_one_pack,
    dl_fw_parameter_server, dl_fw_keyed_device, dl_fw_keyed_server, dl_fw_central_weights,
    dl_fw_per_layer, dl_fw_ideal, dl_fw_replicated, dl_fw_quantized;

const struct dl_framework_behaviour *const dl_framework_behaviours[] = {
    &dl_fw_bucketed,     &dl_fw_fused_ticks,  &dl_fw_one_pack,        &dl_fw_parameter_server,
    &dl_fw_keyed_device, &dl_fw_keyed_server, &dl_fw_central_weights, &dl_fw_per_layer,
    &dl_fw_ideal,        &dl_fw_replicated,   &dl_fw_quantized,       NULL,
};

const struct dl_framework_behaviour *dl_framework_behaviour_find(const char *name) {
    for (int i = 0; dl_framework_behaviours[i] != NULL; i++) {
        if (strcmp(dl_framework_behaviours[i]->name, name) == 0) return dl_framework_behaviours[i];
    }
    return NULL;
}

#define STRING(member, need, text)                                                                 \
    {                                                                                              \
        .key = #member, .type = DL_FIELD_STRING, .offset = offsetof(struct dl_framework, member),  \
        .required = need, .help = text                                                             \
    }
#define NUMBER(member, low, high, measure, text)                                                   \
    {                                                                                              \
        .key = #member, .type = DL_FIELD_NUMBER, .offset = offsetof(struct dl_framework, member),  \
        .min = low, .max = high, .unit = measure, .help = text                                     \
    }
#define DEFAULT(member, low, high, measure, value, text)                                           \
    {                                                                                              \
        .key = #member, .type = DL_FIELD_NUMBER, .offset = offsetof(struct dl_framework, member),  \
        .min = low, .max = high, .unit = measure, .has_fallback = true, .fallback = value,         \
        .help = text                                                                               \
    }
#define FLAG(member, text)                                                                         \
    {                                                                                              \
        .key = #member, .type = DL_FIELD_BOOL, .offset = offsetof(struct dl_framework, member),    \
        .help = text                                                                               \
    }

#define RELEASE(member) offsetof(struct dl_framework_release, member)
static const struct dl_field release_fields[] = {
    {.key = "name",
     .type = DL_FIELD_STRING,
     .offset = RELEASE(name),
     .required = true,
     .help = "as in --release"},
    {.key = "source",
     .type = DL_FIELD_STRING,
     .offset = RELEASE(source),
     .required = true,
     .help = "key of SOURCES.md of its constants"},
    {.key = "words",
     .type = DL_FIELD_STRINGS,
     .offset = RELEASE(words),
     .count_offset = RELEASE(word_count),
     .required = true,
     .help = "a run whose source or notes hold one of these is of this release"},
    {.key = "set",
     .type = DL_FIELD_MAP,
     .offset = RELEASE(set),
     .count_offset = RELEASE(set_count),
     .help = "member of the framework -> its value in this release"},
    {.key = "workloads",
     .type = DL_FIELD_MAP,
     .offset = RELEASE(workloads),
     .count_offset = RELEASE(workload_count),
     .help = "network -> how this release builds it, e.g. mobilenet_v2:transposed=1"},
    {.key = NULL},
};
static const struct dl_schema release_schema = {
    .name = "release",
    .summary = "constants of one release",
    .size = sizeof(struct dl_framework_release),
    .fields = release_fields,
};

static const struct dl_field framework_fields[] = {
    STRING(name, true, "name, as in --framework"),
    STRING(summary, true, "one line"),
    STRING(source, true, "key of SOURCES.md for every number without its own"),
    STRING(release, true, "release whose constants these are"),
    STRING(behaviour, true, "how gradients are exchanged: a row of `list behaviours`"),
    STRING(library, true, "collective library on GPUs: nccl, mpi, gloo, grpc, ps-lite, copy, mlsl"),
    STRING(copy_pattern, false,
           "how library copy sums: star (default), tree, host, sharded, ring or hierarchical"),
    STRING(cpu_library, false, "collective library on CPUs; absent: this mode needs GPUs"),
    NUMBER(bucket_bytes, 1, 1e12, DL_UNIT_BYTE, "gradient bucket is closed at this size"),
    NUMBER(first_bucket_bytes, 1, 1e12, DL_UNIT_BYTE, "the first bucket is closed at this size"),
    NUMBER(fusion_bytes, 1, 1e12, DL_UNIT_BYTE,
           "fusion buffer: most bytes of one fused collective"),
    NUMBER(cycle_s, 1e-6, 1, DL_UNIT_S, "time between two looks for ready gradients"),
    NUMBER(pack_bytes, 0, 1e12, DL_UNIT_BYTE,
           "gradients are concatenated up to this size; 0: all in one"),
    NUMBER(big_key_elements, 1, 1e12, DL_UNIT_COUNT,
           "arrays of at least this many elements are split over all servers"),
    DEFAULT(message_s, 0, 1, DL_UNIT_S, 0, "host time of one message or remote call"),
    DEFAULT(staged_message_s, 0, 1, DL_UNIT_S, 0,
            "host time of one message between devices that only the host joins; 0: message_s"),
    NUMBER(message_copy_bytes_per_s, 1e6, 1e13, DL_UNIT_BYTE_PER_S,
           "serialisation and host copies of one message stream"),
    DEFAULT(collective_launch_s, 0, 1, DL_UNIT_S, 0, "host time of one collective call"),
    DEFAULT(negotiation_s, 0, 1, DL_UNIT_S, 0,
            "control round that agrees on ready tensors, per doubling of nodes"),
    DEFAULT(socket_negotiation_s, 0, 1, DL_UNIT_S, 0,
            "the same in jobs that reach other nodes through sockets; 0: negotiation_s"),
    DEFAULT(dispatch_s, 0, 1, DL_UNIT_S, 0, "host time to issue one kernel"),
    DEFAULT(iteration_s, 0, 10, DL_UNIT_S, 0, "fixed host time of one iteration"),
    DEFAULT(replica_s, 0, 1, DL_UNIT_S, 0, "host time per parameter tensor and device"),
    FLAG(fuses_elementwise,
         "activations and additions run inside the preceding normalisation's kernel"),
    DEFAULT(gradient_bytes, 0.03125, 8, DL_UNIT_BYTE, 4,
            "width of one exchanged gradient element in fp32"),
    DEFAULT(mixed_gradient_bytes, 0.03125, 8, DL_UNIT_BYTE, 4, "the same in mixed precision"),
    DEFAULT(overlap_slowdown_frac, 0, 1, DL_UNIT_NONE, 0,
            "compute is slower by this while a collective runs"),
    FLAG(buffers_broadcast, "batch-norm statistics are broadcast before each forward pass"),
    FLAG(host_staged, "gradients of GPUs go through host memory"),
    FLAG(servers_colocated, "parameter servers run on the workers' nodes"),
    DEFAULT(context_bytes, 0, 1e12, DL_UNIT_BYTE, 0,
            "framework's device memory beside the runtime's context"),
    DEFAULT(fragmentation_frac, 0, 0.5, DL_UNIT_NONE, 0,
            "share of device memory lost to the allocator"),
    DEFAULT(prefetch_batches, 0, 64, DL_UNIT_COUNT, 1,
            "batches prepared ahead; 0: input is not overlapped"),
    FLAG(single_node, "one host only"),
    FLAG(single_process, "one process drives all devices of a node and issues their kernels"),
    FLAG(overlaps_backward, "the exchange starts before the last gradient is there"),
    DEFAULT(update_launches_per_tensor, 0, 100, DL_UNIT_COUNT, 1,
            "optimizer kernels per parameter tensor"),
    DEFAULT(replicate_s, 0, 1, DL_UNIT_S, 0, "host time per iteration and device beyond the first"),
    DEFAULT(residual_sigma_log, 0, 2, DL_UNIT_NONE, 0.15,
            "spread of log(predicted / measured) beyond kernels and collectives; for the interval"),
    FLAG(asynchronous,
         "servers apply each worker's gradients at once; nobody waits for the others"),
    FLAG(feeds_pageable, "input is copied to the device from pageable memory"),
    FLAG(feeds_whole_batch, "input of all devices goes to the first one, which passes parts on"),
    FLAG(feeds_each_device, "input of all devices goes to every one, which keeps its part"),
    FLAG(weights_on_device, "central weights live on the first device, not on the host"),
    NUMBER(feed_bytes_per_s, 1e6, 1e13, DL_UNIT_BYTE_PER_S,
           "copy of a batch inside the framework before each step, not overlapped"),
    NUMBER(conv_scale, 0.1, 10, DL_UNIT_NONE,
           "time of convolutions / time by the device's samples; absent, as those below: 1"),
    NUMBER(grouped_scale, 0.1, 50, DL_UNIT_NONE, "the same of grouped and depthwise convolutions"),
    NUMBER(stream_scale, 0.1, 10, DL_UNIT_NONE,
           "the same of bandwidth-bound layers (normalisation, activation, pooling, addition)"),
    NUMBER(composed_scale, 0.1, 20, DL_UNIT_NONE,
           "the same of layers composed of many kernels (layer norm, GELU, softmax, dropout)"),
    NUMBER(mixed_conv_scale, 0.1, 10, DL_UNIT_NONE, "conv_scale in mixed precision"),
    NUMBER(mixed_grouped_scale, 0.1, 50, DL_UNIT_NONE, "grouped_scale in mixed precision"),
    NUMBER(mixed_stream_scale, 0.1, 10, DL_UNIT_NONE, "stream_scale in mixed precision"),
    NUMBER(mixed_composed_scale, 0.1, 20, DL_UNIT_NONE,
           "composed_scale in mixed precision; absent: composed_scale, the same kernels with half "
           "the bytes"),
    STRING(kernels_from, false,
           "framework that runs the same kernels: the factors above and below that this file does "
           "not give are its"),
    FLAG(mixed_fuses_elementwise, "fuses_elementwise in mixed precision"),
    STRING(
        activation_library, false,
        "library of collectives inside a replica that is split within layers; absent: `library`"),
    STRING(reduce_library, false,
           "library of those collectives that sum activations; absent: activation_library"),
    STRING(halo_library, false, "library of halo messages; absent: activation_library"),
    STRING(
        filter_backward, false,
        "how filter parallelism sums gradients: all_reduce (absent), reduce_scatter or all_to_all"),
    FLAG(channel_detached,
         "channel parallelism's sums end the graph, so that backward stops at the last of them"),
    DEFAULT(activation_s, 0, 1, DL_UNIT_S, 0, "host time of one collective inside a replica"),
    DEFAULT(activation_peer_s, 0, 1, DL_UNIT_S, 0, "the same, for each device that takes part"),
    DEFAULT(halo_message_s, 0, 1, DL_UNIT_S, 0, "host time of one halo message"),
    NUMBER(staged_above_bytes, 1, 1e12, DL_UNIT_BYTE,
           "activations of a layer above this go through host memory; absent: none do"),
    NUMBER(staged_bytes_per_s, 1e6, 1e13, DL_UNIT_BYTE_PER_S,
           "rate at which a device's activations pass through host memory"),
    DEFAULT(spatial_dims, 0, 3, DL_UNIT_COUNT, 0,
            "dimensions that spatial parallelism splits at most; 0: all"),
    NUMBER(staged_sum_bytes_per_s, 1e6, 1e13, DL_UNIT_BYTE_PER_S,
           "the same of activations that are summed; absent: staged_bytes_per_s"),
    FLAG(activation_direct,
         "activation_library moves device memory itself, not through host memory"),
    FLAG(halo_overlaps, "inner positions are computed while halos travel"),
    FLAG(leader_input, "the first device of a replica reads its input and hands it out"),
    NUMBER(conv_workspace_bytes, 0, 1e12, DL_UNIT_BYTE,
           "device memory that a convolution may work in; absent: as much as it wants"),
    {.key = "workloads",
     .type = DL_FIELD_MAP,
     .offset = offsetof(struct dl_framework, workloads),
     .count_offset = offsetof(struct dl_framework, workload_count),
     .help = "network -> how this framework builds it"},
    {.key = "releases",
     .type = DL_FIELD_LIST,
     .offset = offsetof(struct dl_framework, releases),
     .count_offset = offsetof(struct dl_framework, release_count),
     .child = &release_schema,
     .help = "releases whose constants differ; the members above are those of `release`"},
    {.key = "sources",
     .type = DL_FIELD_MAP,
     .offset = offsetof(struct dl_framework, sources),
     .count_offset = offsetof(struct dl_framework, source_count),
     .help = "member -> key of SOURCES.md"},
    STRING(strategy, false,
           "strategy when none is asked for: a row of `list strategies`; absent: data"),
    STRING(recompute, false,
           "activations computed again when nothing is asked for: none, selective or full; absent: "
           "none"),
    FLAG(splits_layers, "tensor, pipeline, sequence and expert parallelism"),
    FLAG(shards, "can shard optimizer states, gradients and weights (ZeRO)"),
    NUMBER(unequal_scale, 0.1, 10, DL_UNIT_NONE,
           "the same of convolutions with unequal sides (1x7), besides conv_scale"),
    NUMBER(norm_scale, 0.1, 20, DL_UNIT_NONE,
           "the same of batch normalisations, besides stream_scale; absent: the device's"),
    NUMBER(loss_scale, 0.01, 100, DL_UNIT_NONE,
           "the same of the loss, besides composed_scale: cross-entropy in many passes"),
    DEFAULT(softmax_matrices, 0, 1024, DL_UNIT_COUNT, 0,
            "fused softmax of attention takes multiples of so many score matrices of a rank; 0: "
            "any number"),
    DEFAULT(softmax_keys, 0, 1e6, DL_UNIT_COUNT, 0, "keys that it takes at most; 0: any number"),
    {.key = NULL},
};

const struct dl_schema dl_framework_schema = {
    .name = "dlmodel-framework",
    .summary = "a framework in one distributed mode: which behaviour, and its constants by version",
    .size = sizeof(struct dl_framework),
    .fields = framework_fields,
    .top_level = true,
};

const struct dl_framework_release *dl_framework_release_find(const struct dl_framework *framework,
                                                             const char *name) {
    for (int i = 0; i < framework->release_count; i++) {
        if (strcmp(framework->releases[i].name, name) == 0) return &framework->releases[i];
    }
    return NULL;
}

const struct dl_framework_release *dl_framework_release_match(const struct dl_framework *framework,
                                                              const char *text) {
    for (int i = 0; i < framework->release_count; i++) {
        for (int w = 0; w < framework->releases[i].word_count; w++) {
            if (strstr(text, framework->releases[i].words[w]) != NULL)
                return &framework->releases[i];
        }
    }
    return NULL;
}

enum dl_code dl_framework_release_set(const struct dl_framework_release *release,
                                      struct dl_json *doc, struct dl_arena *arena,
                                      struct dl_err *err) {
    struct dl_override *list = dl_arena_alloc(arena, (size_t)release->set_count + 2, sizeof *list);
    if (list == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    for (int i = 0; i < release->set_count; i++)
        list[i] = (struct dl_override){.key = release->set[i].key, .value = release->set[i].text};
    list[release->set_count] = (struct dl_override){.key = "release", .value = release->name};
    DL_TRY(dl_json_set(doc, &dl_framework_schema, list, release->set_count + 1, err));
    for (int i = 0; i < release->set_count; i++) {
        if (!list[i].used)
            return dl_json_fail(doc, "releases", err,
                                "release %s sets '%s', which a framework does not have",
                                release->name, list[i].key);
    }
    return DL_OK;
}

const char *dl_framework_workload(const struct dl_framework *framework,
                                  const struct dl_framework_release *release, const char *name) {
    for (int i = 0; release != NULL && i < release->workload_count; i++) {
        if (strcmp(release->workloads[i].key, name) == 0) return release->workloads[i].text;
    }
    for (int i = 0; i < framework->workload_count; i++) {
        if (strcmp(framework->workloads[i].key, name) == 0) return framework->workloads[i].text;
    }
    return name;
}

void dl_framework_share_kernels(struct dl_framework *framework, const struct dl_framework *from) {
    static const size_t scales[] = {
        offsetof(struct dl_framework, conv_scale),
        offsetof(struct dl_framework, grouped_scale),
        offsetof(struct dl_framework, stream_scale),
        offsetof(struct dl_framework, composed_scale),
        offsetof(struct dl_framework, mixed_conv_scale),
        offsetof(struct dl_framework, mixed_grouped_scale),
        offsetof(struct dl_framework, mixed_stream_scale),
        offsetof(struct dl_framework, mixed_composed_scale),
        offsetof(struct dl_framework, unequal_scale),
        offsetof(struct dl_framework, norm_scale),
        offsetof(struct dl_framework, loss_scale),
    };
    for (size_t i = 0; i < sizeof scales / sizeof scales[0]; i++) {
        double *own = (void *)((char *)framework + scales[i]);
        const double *theirs = (const void *)((const char *)from + scales[i]);
        if (!dl_known(*own)) *own = *theirs;
    }
}

static enum dl_code check_library(const struct dl_json *doc, const char *key, const char *name,
                                  struct dl_err *err) {
    if (name == NULL || dl_library_find(name) >= 0) return DL_OK;
    const char *near = dl_suggest(name, dl_library_names);
    return near != NULL
               ? dl_json_fail(doc, key, err, "no such collective library '%s'; did you mean '%s'?",
                              name, near)
               : dl_json_fail(doc, key, err, "no such collective library '%s'", name);
}

enum dl_code dl_framework_check(const struct dl_framework *framework, const struct dl_json *doc,
                                struct dl_err *err) {
    if (dl_framework_behaviour_find(framework->behaviour) == NULL) {
        return dl_json_fail(doc, "behaviour", err, "no such behaviour '%s'", framework->behaviour);
    }
    DL_TRY(check_library(doc, "library", framework->library, err));
    DL_TRY(check_library(doc, "cpu_library", framework->cpu_library, err));
    if (framework->recompute != NULL && dl_recompute_find(framework->recompute) < 0) {
        return dl_json_fail(doc, "recompute", err, "expected none, selective or full, found '%s'",
                            framework->recompute);
    }
    if (dl_known(framework->first_bucket_bytes) && !dl_known(framework->bucket_bytes)) {
        return dl_json_fail(doc, "first_bucket_bytes", err, "needs bucket_bytes beside it");
    }
    return DL_OK;
}
