/* Messages inside a replica whose layers are split, in their order, against an account written
 * here: random batches, splits, libraries and policies on a small network with a residual block, a
 * pool and two convolutions of other strides. F-FILTER, F-CHANNEL, F-SPATIAL, F-HALO, F-HALO-CHAIN,
 * F-INPUT-LEADER. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "model/engine/split_parts.h"
#include "model/engine/split_replica.h"
#include "tests/check.h"
#include "tests/fake.h"
#include "tests/load_workload.h"

static uint64_t seed = 53;

static int upto(int count) { return (int)(check_random(&seed) % (uint64_t)count); }
static bool half(void) { return upto(2) == 0; }
static double some(void) { return 0.1 + check_uniform(&seed); }
static double most(double x, double y) { return x > y ? x : y; }

/* Images of 16 x 16 positions, or volumes of 16 of them; s adds a and c; what is between a and s
 * lies in a block. */
#define NETWORK(size)                                                                              \
    "{'format': 'dlmodel-workload', 'version': 1, 'name': 'small', 'summary': 'test', 'source': "  \
    "'test', 'family': 'cnn', 'epoch_samples': 1000, "                                             \
    "'input': {'channels': 8, 'size': " size "}, "                                                 \
    "'layers': ["                                                                                  \
    "{'name': 'a', 'kind': 'conv', 'out': 16, 'kernel': 3, 'pad': 1},"                             \
    "{'name': 'b', 'kind': 'conv', 'out': 32, 'kernel': 5, 'pad': 2},"                             \
    "{'name': 'c', 'kind': 'conv', 'out': 16, 'kernel': 1},"                                       \
    "{'name': 's', 'kind': 'add', 'from': ['c', 'a']},"                                            \
    "{'name': 'p', 'kind': 'maxpool', 'kernel': 2, 'stride': 2},"                                  \
    "{'name': 'd', 'kind': 'conv', 'out': 8, 'kernel': 3, 'stride': 2, 'pad': 1},"                 \
    "{'name': 'g', 'kind': 'global_pool'}, {'name': 'f', 'kind': 'flatten'},"                      \
    "{'name': 'h', 'kind': 'dense', 'out': 8}, {'name': 'l', 'kind': 'loss'}]}"
enum { LAYERS = 10, FIRST_READ_TWICE = 0, LAST_ADD = 3, LAST_CONV = 5 };

struct bench {
    struct dl_fake f;
    struct dl_workload workload;
    struct dl_predict_request request;
};

static void make(struct bench *b, const char *network) {
    struct dl_err err = {0};
    memset(b, 0, sizeof *b);
    fake_make(&b->f);
    if (load_text(network, NULL, 0, &b->f.arena, &b->workload, &err) != DL_OK)
        fail_msg("%s: %s", err.key, err.message);
    assert_int_equal(b->workload.layer_count, LAYERS);
    b->request = (struct dl_predict_request){.system = &b->f.system,
                                             .workload = &b->workload,
                                             .framework = &b->f.framework,
                                             .plan = &b->f.plan,
                                             .arena = &b->f.arena};
}

/* One message as the documents say it. */
struct talk {
    enum dl_collective_op op;
    int library;
    double bytes, host_s, copies, hops;
    int64_t group, stride;
};

struct list {
    int count;
    double least_s, buffer_bytes;
};

/* Kept whole: how one message gets from device to device. */
static void expect(const struct bench *b, const struct dl_replica *r, const struct talk *t,
                   int layer, bool backward, double hidden_frac, struct list *list) {
    const struct dl_plan *plan = &b->f.plan;
    const struct dl_activation_policy *policy = &b->f.framework.activations;
    const bool gpu = b->f.device.kind == DL_DEVICE_GPU,
               sums = t->op == DL_COLL_ALL_REDUCE || t->op == DL_COLL_REDUCE_SCATTER;
    enum dl_library library = (enum dl_library)b->f.framework.sync.library;
    if (!gpu) library = (enum dl_library)b->f.framework.sync.cpu_library;
    if (gpu && plan->library == NULL && t->library >= 0) library = (enum dl_library)t->library;
    if (plan->library != NULL) library = (enum dl_library)dl_library_find(plan->library);
    const bool of_host = library != DL_LIB_NCCL && library != DL_LIB_COPY,
               collective = t->op != DL_COLL_HALO && t->op != DL_COLL_P2P;
    bool direct = gpu && of_host && collective && policy->activation_direct;
    if (policy->managed_memory || (library == DL_LIB_MPI && sums)) direct = false;
    const bool staged = gpu && of_host && !direct,
               in_pieces = staged && library == DL_LIB_MPI && !sums;
    if (!(t->bytes > 0)) return;
    const int64_t devices = plan->nodes * plan->devices_per_node;
    const struct dl_collective_request request = {.op = t->op,
                                                  .library = library,
                                                  .bytes = t->bytes,
                                                  .nodes = plan->nodes,
                                                  .ranks_per_node = plan->devices_per_node,
                                                  .device_buffers = staged,
                                                  .device_direct = direct,
                                                  .group_size = t->group == devices ? 0 : t->group,
                                                  .group_stride = t->stride,
                                                  .concurrent = devices / t->group};
    struct dl_collective_time time;
    struct dl_err err = {0};
    assert_int_equal(dl_collective_time(&b->f.system, &request, &time, &err), DL_OK);
    const struct dl_gradient_sync_request x = {.system = &b->f.system, .plan = plan};
    const double p = (double)t->group;
    double passes = 2, copies_s = 0, moved_s = time.bandwidth_s;
    if (t->op == DL_COLL_ALL_GATHER || t->op == DL_COLL_REDUCE_SCATTER) passes = 1;
    if (t->op == DL_COLL_ALL_TO_ALL) passes = 2 * (p - 1) / p;
    if (staged)
        copies_s =
            passes * dl_gradient_sync_host_copy_s(&x, t->bytes, !(library == DL_LIB_MPI && sums));
    if (in_pieces && t->hops > 1)
        moved_s /= 2, copies_s = 0;
    else if (in_pieces)
        copies_s = most(0, copies_s - moved_s);
    copies_s += dl_gradient_sync_device_stream_s(&x, 2 * t->copies * t->bytes);
    const double times = t->hops > 1 ? t->hops : 1,
                 host_s = t->host_s + b->f.framework.sync.collective_launch_s;
    assert_true(list->count < r->message_count);
    const struct dl_layer_message *is = &r->messages[list->count++];
    char name[64];
    snprintf(name, sizeof name, "%s of %s%s", dl_collective_op_names[t->op],
             b->workload.layers[layer].name, backward ? " backward" : "");
    assert_string_equal(is->message.name, name);
    assert_int_equal(is->layer, layer);
    assert_int_equal(is->backward, backward);
    check_close(is->hidden_frac, hidden_frac, 1e-12);
    check_close(is->message.bytes, t->bytes, 1e-12);
    check_close(is->message.latency_s, times * (time.latency_s + host_s), 1e-12);
    check_close(is->message.bandwidth_s, times * (moved_s + copies_s), 1e-12);
    check_close(is->message.duration_s, times * (time.latency_s + host_s + moved_s + copies_s),
                1e-9);
    check_close(is->message.sigma_log, time.sigma_log, 0);
    assert_string_equal(is->message.algorithm,
                        t->hops > 1 ? "chain of synchronous sends" : time.algorithm);
    assert_string_equal(is->message.formula, t->hops > 1 ? "F-HALO-CHAIN" : time.formula);
    assert_true(is->message.limit == time.limit && is->message.origin == time.origin);
    assert_true(is->message.protocol == time.protocol);
    assert_false(is->message.extrapolated);
    if (!(hidden_frac > 0)) list->least_s += is->message.duration_s;
}

/* A collective of all parts. */
static void expect_collective(const struct bench *b, const struct dl_replica *r,
                              enum dl_collective_op op, double elements, int layer, bool backward,
                              struct list *list) {
    const struct dl_activation_policy *policy = &b->f.framework.activations;
    const bool sums = op == DL_COLL_ALL_REDUCE || op == DL_COLL_REDUCE_SCATTER;
    struct talk t = {.op = op,
                     .library = sums && policy->reduce_library >= 0 ? policy->reduce_library
                                                                    : policy->activation_library,
                     .bytes = r->samples * elements * dl_precision_bytes(b->f.plan.precision),
                     .host_s = policy->activation_s + policy->activation_peer_s * r->parts,
                     .copies = policy->activation_copies,
                     .group = (int64_t)r->parts};
    if (op == DL_COLL_ALL_GATHER && policy->gathers_by_root) {
        t.op = DL_COLL_GATHER;
        expect(b, r, &t, layer, backward, 0, list);
        t.op = DL_COLL_BROADCAST;
        expect(b, r, &t, layer, backward, 0, list);
        return;
    }
    list->buffer_bytes = most(list->buffer_bytes, t.bytes);
    expect(b, r, &t, layer, backward, 0, list);
}

/* Elements to one neighbour along d. */
static double to_neighbour(const struct bench *b, const struct dl_split *split, int index, int d,
                           bool backward) {
    const struct dl_layer *layer = &b->workload.layers[index];
    const bool conv = strcmp(layer->kind->name, "conv") == 0,
               pool = strcmp(layer->kind->name, "maxpool") == 0,
               in_block = index > FIRST_READ_TWICE && index < LAST_ADD;
    if (b->f.framework.activations.halo_forward == DL_HALO_WINDOWS)
        return backward && index == 0 ? 0 : dl_split_halo_elements(layer, split, d, backward) / 2;
    if (backward ? !conv : (!conv && !pool) || in_block) return 0;
    const struct dl_shape *shape = backward ? &layer->out : &layer->in;
    double elements = shape->channels * floor(layer->kernel[d] / 2);
    for (int k = 0; k < DL_DIMS; k++)
        elements *= k == d ? 1 : ceil(shape->size[k] / split->grid[k]);
    return elements;
}

static void expect_halos(const struct bench *b, const struct dl_replica *r,
                         const struct dl_split *split, int index, bool backward,
                         struct list *list) {
    const struct dl_activation_policy *policy = &b->f.framework.activations;
    const struct dl_layer *layer = &b->workload.layers[index];
    const bool serial = policy->halo_exchange == DL_HALO_SERIAL;
    /* outputs that no neighbour's input reaches, along each dimension */
    double inner = 1;
    for (int d = 0; d < DL_DIMS; d++) {
        if (split->grid[d] == 1 || layer->kernel[d] <= 1) continue;
        const double rows = ceil(layer->out.size[d] / split->grid[d]),
                     over = layer->dilation[d] * (layer->kernel[d] - 1) + 1 - layer->stride[d];
        inner *= most(0, rows - ceil(most(0, over) / layer->stride[d])) / rows;
    }
    int64_t stride = 1;
    for (int d = DL_DIMS - 1; d >= 0; d--) {
        const double parts = split->grid[d];
        if (parts == 1) continue;
        const struct talk t = {.op = serial ? DL_COLL_P2P : DL_COLL_HALO,
                               .library = policy->halo_library >= 0 ? policy->halo_library
                                                                    : policy->activation_library,
                               .bytes = r->samples * to_neighbour(b, split, index, d, backward) *
                                        dl_precision_bytes(b->f.plan.precision),
                               .host_s = policy->halo_message_s * (parts == 2 || serial ? 1 : 2),
                               .hops = serial ? 2 * (parts - 1) : 1,
                               .group = (int64_t)parts,
                               .stride = stride};
        expect(b, r, &t, index, backward, policy->halo_overlaps ? inner : 0, list);
        list->buffer_bytes += 2 * t.bytes;
        stride *= (int64_t)parts;
    }
}

/* Kept whole: one pass over one layer. */
static void expect_layer(const struct bench *b, const struct dl_replica *r,
                         const struct dl_split *split, const bool *is_split, int i, bool backward,
                         struct list *list) {
    static const enum dl_collective_op filters[] = {[DL_FILTER_ALL_REDUCE] = DL_COLL_ALL_REDUCE,
                                                    [DL_FILTER_REDUCE_SCATTER] =
                                                        DL_COLL_REDUCE_SCATTER,
                                                    [DL_FILTER_ALL_TO_ALL] = DL_COLL_ALL_TO_ALL};
    const struct dl_activation_policy *policy = &b->f.framework.activations;
    const struct dl_layer *layer = &b->workload.layers[i];
    const double out = dl_shape_elements(&layer->out), in = dl_shape_elements(&layer->in);
    if (!is_split[i]) return;
    if (split->kind == DL_SPLIT_FILTER) {
        bool last = true;
        for (int k = i + 1; k < LAYERS; k++) last = last && !is_split[k];
        if (!backward || !last)
            expect_collective(b, r,
                              backward ? filters[policy->filter_backward] : DL_COLL_ALL_GATHER, out,
                              i, backward, list);
    } else if (split->kind == DL_SPLIT_CHANNEL) {
        if (!backward)
            expect_collective(b, r, DL_COLL_ALL_REDUCE, out, i, false, list);
        else if (i > (policy->channel_detached ? LAST_CONV : 0))
            expect_collective(b, r, DL_COLL_ALL_GATHER, in, i, true, list);
    } else {
        bool read_whole = false; /* by a layer that is not split */
        for (int k = 0; k < LAYERS; k++)
            for (int n = 0; n < b->workload.layers[k].input_count; n++)
                if (b->workload.layers[k].inputs[n] == i && !is_split[k]) read_whole = true;
        expect_halos(b, r, split, i, backward, list);
        if (read_whole && !backward)
            expect_collective(b, r, DL_COLL_ALL_GATHER, out, i, false, list);
        if (read_whole && backward && policy->gather_returns)
            expect_collective(b, r, DL_COLL_ALL_TO_ALL, out, i, true, list);
    }
}

/* Seconds until all have the leader's samples. */
static double leader_s(const struct bench *b, const struct dl_replica *r, enum dl_split_kind kind) {
    const struct dl_framework *fw = &b->f.framework;
    const double bytes = r->samples * b->workload.input_bytes_per_sample;
    const int64_t devices = b->f.plan.nodes * b->f.plan.devices_per_node, parts = (int64_t)r->parts;
    if (!fw->activations.leader_input) return 0;
    const struct dl_collective_request request = {
        .op = kind == DL_SPLIT_SPATIAL && !fw->activations.leader_broadcasts ? DL_COLL_SCATTER
                                                                             : DL_COLL_BROADCAST,
        .library = DL_LIB_MPI,
        .bytes = bytes,
        .nodes = b->f.plan.nodes,
        .ranks_per_node = b->f.plan.devices_per_node,
        .group_size = parts == devices ? 0 : parts,
        .concurrent = devices / parts};
    struct dl_collective_time t;
    struct dl_err err = {0};
    assert_int_equal(dl_collective_time(&b->f.system, &request, &t, &err), DL_OK);
    double sum_s = t.time_s;
    if (fw->sync.messages.message_copy_bytes_per_s > 0)
        sum_s += 2 * bytes / fw->sync.messages.message_copy_bytes_per_s;
    if (fw->input.feed_bytes_per_s > 0) sum_s += bytes / fw->input.feed_bytes_per_s;
    return sum_s;
}

static void random_case(struct bench *b, int64_t parts) {
    static const int libraries[] = {-1, DL_LIB_NCCL, DL_LIB_MPI, DL_LIB_GLOO};
    static const enum dl_precision precisions[] = {DL_FP32, DL_MIXED};
    struct dl_activation_policy *policy = &b->f.framework.activations;
    *policy = (struct dl_activation_policy){
        .activation_library = libraries[upto(4)],
        .reduce_library = libraries[upto(4)],
        .halo_library = libraries[upto(4)],
        .filter_backward = upto(3),
        .activation_s = half() ? 0 : 1e-5 * some(),
        .activation_peer_s = half() ? 0 : 1e-6 * some(),
        .halo_message_s = half() ? 0 : 1e-5 * some(),
        .spatial_dims = upto(4),
        .activation_direct = half(),
        .halo_overlaps = half(),
        .leader_input = half(),
        .halo_exchange = half() ? DL_HALO_SERIAL : DL_HALO_CONCURRENT,
        .halo_forward = half() ? DL_HALO_WINDOWS : DL_HALO_OUTSIDE_BLOCKS,
        .activation_copies = upto(3),
        .gathers_by_root = upto(4) == 0,
        .leader_broadcasts = half(),
        .gather_returns = half(),
        .managed_memory = upto(4) == 0,
        .channel_detached = half()};
    b->f.framework.sync.collective_launch_s = half() ? 0 : 1e-6;
    b->f.framework.sync.messages.message_copy_bytes_per_s = half() ? NAN : 1e9;
    b->f.framework.input.feed_bytes_per_s = half() ? 0 : 2e9;
    b->f.plan.devices_per_node = 1 << upto(3);
    b->f.plan.nodes = parts / b->f.plan.devices_per_node * (1 + upto(2));
    if (b->f.plan.nodes == 0) b->f.plan.nodes = 1 + upto(2);
    b->f.plan.dp = b->f.plan.devices_per_node * b->f.plan.nodes / parts;
    b->f.plan.batch_per_device_samples = 1 + upto(8);
    b->f.plan.precision = precisions[upto(2)];
    b->f.plan.library = upto(5) == 0 ? "mpi" : upto(5) == 0 ? "gloo" : NULL;
    b->f.framework.sync.cpu_library = half() ? DL_LIB_GLOO : DL_LIB_MPI;
    b->f.device.kind = upto(5) == 0 ? DL_DEVICE_CPU : DL_DEVICE_GPU;
}

/* Kept whole: one random replica. */
static void messages(void **state) {
    (void)state;
    static const enum dl_split_kind kinds[] = {DL_SPLIT_FILTER, DL_SPLIT_CHANNEL, DL_SPLIT_SPATIAL};
    struct bench benches[2];
    make(&benches[0], NETWORK("[16, 16]")), make(&benches[1], NETWORK("[16, 16, 16]"));
    for (int n = 0; n < 1500; n++) {
        struct bench *b = &benches[upto(2)];
        const enum dl_split_kind kind = kinds[upto(3)];
        const int64_t parts = 2 << upto(kind == DL_SPLIT_SPATIAL ? 2 : 3);
        random_case(b, parts);
        const int dims = (int)b->f.framework.activations.spatial_dims;
        struct dl_split split = {.kind = kind, .parts = (double)parts, .grid = {1, 1, 1}};
        struct dl_replica r;
        struct dl_err err = {0};
        if (kind == DL_SPLIT_SPATIAL)
            assert_true(
                dl_split_grid(&b->workload, (double)parts, dims > 0 ? dims : 3, split.grid));
        assert_int_equal(dl_split_replica_replica(&b->request, kind, parts, &r, &err), DL_OK);
        bool is_split[LAYERS];
        dl_split_layers(&b->workload, &split, is_split);
        check_close(r.samples, b->f.plan.batch_per_device_samples * (double)parts, 0);
        check_close(r.parts, (double)parts, 0);
        assert_int_equal(r.plan.replica_devices, parts);
        assert_int_equal(r.plan.dp, b->f.plan.dp * (kind == DL_SPLIT_SPATIAL ? parts : 1));
        assert_int_equal(r.synchronizes, kind == DL_SPLIT_SPATIAL || b->f.plan.dp > 1);
        struct list list = {0};
        for (int i = 0; i < LAYERS; i++) expect_layer(b, &r, &split, is_split, i, false, &list);
        for (int i = LAYERS - 1; i >= 0; i--) expect_layer(b, &r, &split, is_split, i, true, &list);
        assert_int_equal(r.message_count, list.count);
        check_close(r.least_wait_s, list.least_s, 1e-9);
        check_close(r.buffer_bytes, list.buffer_bytes, 1e-12);
        check_close(r.input_extra_s, leader_s(b, &r, kind), 1e-12);
        const bool whole_input =
            kind != DL_SPLIT_SPATIAL || b->f.framework.activations.leader_broadcasts;
        check_close(r.workload->input_bytes_per_sample,
                    b->workload.input_bytes_per_sample / (whole_input ? 1 : (double)parts), 1e-12);
        for (int i = 0; i < LAYERS; i++)
            assert_int_equal(r.workload->layers[i].detached,
                             kind == DL_SPLIT_CHANNEL && b->f.framework.activations.channel_detached
                                 ? i <= LAST_CONV
                                 : b->workload.layers[i].detached);
    }
    dl_arena_free(&benches[0].f.arena), dl_arena_free(&benches[1].f.arena);
}

/* Where several numbers of parts are too many: the words and the nearest.
 * Kept whole: a list of refusals. */
static void refusals(void **state) {
    (void)state;
    struct bench b;
    make(&b, NETWORK("[16, 16]"));
    b.f.plan.strategy = dl_strategy_find("filter");
    static const struct {
        enum dl_split_kind kind;
        int64_t parts;
        double dims;
        const char *words; /* NULL: possible */
    } cases[] = {
        {DL_SPLIT_FILTER, 1, 0, NULL},
        {DL_SPLIT_FILTER, 8, 0, NULL},
        {DL_SPLIT_FILTER, 9, 0,
         "--tp 9: layer d of small has 8 filters to share; nearest is --tp 8 (scaling limit)"},
        {DL_SPLIT_CHANNEL, 16, 0, NULL},
        {DL_SPLIT_CHANNEL, 17, 0,
         "--tp 17: layer b of small has 16 input channels to share; nearest is --tp 16 (scaling "
         "limit)"},
        {DL_SPLIT_SPATIAL, 4, 1, NULL},
        {DL_SPLIT_SPATIAL, 5, 1,
         "--spatial 5: layer d of small has 4 positions to share; nearest is --spatial 4 (scaling "
         "limit)"},
        {DL_SPLIT_SPATIAL, 16, 2, NULL},
        {DL_SPLIT_SPATIAL, 16, 0, NULL},
        {DL_SPLIT_SPATIAL, 17, 2,
         "--spatial 17: layer d of small has 16 positions to share; nearest is --spatial 16 "
         "(scaling limit)"},
        {DL_SPLIT_SPATIAL, 5, 2,
         "--spatial 5: no grid of so many parts fits all layers of small; nearest is --spatial 4 "
         "(scaling limit)"},
        {DL_SPLIT_SPATIAL, 15, 2,
         "--spatial 15: no grid of so many parts fits all layers of small; nearest is --spatial 12 "
         "(scaling limit)"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct dl_err err = {0};
        b.f.framework.activations.spatial_dims = cases[i].dims;
        const enum dl_code code = dl_split_replica_check(&b.workload, &b.f.framework, cases[i].kind,
                                                         cases[i].parts, &b.f.plan, &err);
        assert_int_equal(code, cases[i].words == NULL ? DL_OK : DL_ERR_USAGE);
        if (cases[i].words != NULL) assert_string_equal(err.message, cases[i].words);
    }
    struct dl_err err = {0};
    b.f.plan.sequence_parallel = true;
    assert_int_equal(
        dl_split_replica_check(&b.workload, &b.f.framework, DL_SPLIT_FILTER, 2, &b.f.plan, &err),
        DL_ERR_USAGE);
    assert_string_equal(err.message, "--sequence-parallel: goes with tensor parallelism");
    b.f.plan.sequence_parallel = false, b.f.plan.micro_batch_samples = 1;
    assert_int_equal(
        dl_split_replica_check(&b.workload, &b.f.framework, DL_SPLIT_FILTER, 2, &b.f.plan, &err),
        DL_ERR_USAGE);
    assert_string_equal(err.message,
                        "--micro-batch: strategy filter takes its whole batch at once");
    b.f.plan.micro_batch_samples = 0;
    fake_layers(&b.f, 2, (const double[]){8, 8, 8});
    assert_int_equal(
        dl_split_replica_check(&b.f.workload, &b.f.framework, DL_SPLIT_SPATIAL, 2, &b.f.plan, &err),
        DL_ERR_USAGE);
    assert_string_equal(err.message,
                        "--spatial: strategy filter splits convolutions, and fake has none that "
                        "can be split; take 'tensor' or 'pipeline'");
    b.f.framework.activations.spatial_dims = 2;
    struct dl_replica r;
    assert_int_equal(dl_split_replica_replica(&b.request, DL_SPLIT_SPATIAL, 5, &r, &err),
                     DL_ERR_USAGE);
    assert_string_equal(err.message,
                        "--spatial 5: no grid of as many parts fits the layers of small");
    dl_arena_free(&b.f.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(messages), cmocka_unit_test(refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
