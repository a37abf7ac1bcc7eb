/* Messages inside a replica: MLSL's hybrid (F-MLSL-ACTIVATION), the leader that hands its input out
 * (F-INPUT-LEADER), and the laws of docs/theory.md for splits, on a small network worked by
 * hand. */
#include "model/framework/input.h"
#include "model/engine/split_internal.h"
#include "model/engine/split_replica.h"
#include "model/statistics/stats.h"
#include "tests/check.h"
#include "tests/fake.h"
#include "tests/load_workload.h"

/* Three convolutions of 16x16: 8 -> 16 -> 32 -> 16 channels: 4096, 8192 and 4096 elements a sample;
 * then 16 -> 8 features. */
static const char network[] =
    "{'format': 'dlmodel-workload', 'version': 1, 'name': 'small', 'summary': 'test', 'source': "
    "'test', 'family': 'cnn',"
    " 'epoch_samples': 1000, 'input': {'channels': 8, 'size': [16, 16]}, 'layers': ["
    "{'name': 'a', 'kind': 'conv', 'out': 16, 'kernel': 3, 'pad': 1}, {'name': 'b', 'kind': "
    "'conv', 'out': 32, 'kernel': 3, 'pad': 1},"
    "{'name': 'c', 'kind': 'conv', 'out': 16, 'kernel': 1}, {'name': 'pool', 'kind': "
    "'global_pool'}, {'kind': 'flatten'},"
    "{'name': 'fc', 'kind': 'dense', 'out': 8}, {'kind': 'loss'}]}";
enum { A = 4096, B = 8192, C = 4096, FC = 8, INPUT = 2048, BATCH = 32 };

struct bench {
    struct dl_fake f;
    struct dl_workload workload;
    struct dl_predict_request request;
};

static void make(struct bench *b, const char *strategy) {
    struct dl_err err = {0};
    memset(b, 0, sizeof *b);
    fake_make(&b->f);
    if (load_text(network, NULL, 0, &test_arena, &b->workload, &err) != DL_OK)
        fail_msg("%s: %s", err.key, err.message);
    b->f.plan = (struct dl_plan){.strategy = dl_strategy_find(strategy),
                                 .nodes = 1,
                                 .devices_per_node = 4,
                                 .dp = 1,
                                 .batch_per_device_samples = BATCH / 4.0,
                                 .optimizer = DL_SGD,
                                 .input.synthetic = true};
    b->f.system.inter.adapters_per_node = 1;
    b->request = (struct dl_predict_request){.system = &b->f.system,
                                             .workload = &b->workload,
                                             .framework = &b->f.framework,
                                             .plan = &b->f.plan,
                                             .arena = &test_arena};
}

static struct dl_prediction predict(struct bench *b) {
    const struct dl_predict_options options = {.terms = true};
    struct dl_prediction out;
    struct dl_err err = {0};
    if (dl_predict(&(struct dl_predict_request){&b->f.system, &b->workload, &b->f.framework,
                                                &b->f.plan, &options, &test_arena},
                   &out, &err) != DL_OK) {
        fail_msg("%s", err.message);
    }
    return out;
}

static int terms_named(const struct dl_prediction *p, const char *text) {
    int count = 0;
    for (int i = 0; i < p->term_count; i++) count += strstr(p->terms[i].name, text) != NULL;
    return count;
}

/* A brief prediction ends with the message that takes the sum of what nothing hides beyond the
 * limit; where no sum does, it is the whole prediction. */
static void ends_beyond_the_limit(void **state) {
    struct bench b;
    make(&b, "filter");
    b.f.plan.tp = 0;
    struct dl_prediction p, whole = predict(&b);
    double first_s = NAN, sum_s = 0;
    for (int i = 0; i < whole.term_count; i++) {
        if (strcmp(whole.terms[i].group, "communication") != 0) continue;
        sum_s += whole.terms[i].value;
        if (strstr(whole.terms[i].name, "all_gather of a") != NULL) first_s = whole.terms[i].value;
    }
    assert_int_equal(terms_named(&whole, "all_"), 7);
    const struct {
        double limit_s, least_s;
    } cases[] = {
        {0.5 * first_s, first_s}, {sum_s * (1 - 1e-6), sum_s}, {10 * whole.iteration_s, NAN}};
    for (int i = 0; i < 3; i++) {
        const struct dl_predict_options options = {.brief = true, .limit_s = cases[i].limit_s};
        assert_int_equal(
            dl_predict(&(struct dl_predict_request){&b.f.system, &b.workload, &b.f.framework,
                                                    &b.f.plan, &options, &test_arena},
                       &p, NULL),
            DL_OK);
        assert_int_equal(p.beyond_limit, i < 2);
        check_close(p.iteration_s, i < 2 ? cases[i].least_s : whole.iteration_s, 1e-9);
    }
}

/* MLSL between layers that are all split over 4 sockets: forward every output is gathered, backward
 * the partial sums of all but the last split layer's are reduced and scattered (cases 1 and 3); no
 * gradient synchronization, as there is one replica. Bytes of 32 samples of 4 bytes: (A + B + C +
 * FC)
 * + (A + B + C). */
static void mlsl_activations(void **state) {
    struct bench b;
    make(&b, "mlsl-hybrid");
    b.f.device.kind = DL_DEVICE_CPU;
    b.f.framework.sync.cpu_library = DL_LIB_MPI;
    const struct dl_prediction p = predict(&b);
    assert_int_equal(terms_named(&p, "all_gather of"), 4);
    assert_int_equal(terms_named(&p, "reduce_scatter of"), 3);
    assert_int_equal(terms_named(&p, "reduce_scatter of fc"), 0);
    check_close(p.messages.bytes, 4.0 * BATCH * ((A + B + C + FC) + (A + B + C)), 1e-12);
    /* A filter-parallel framework that sums gradients in full has the same sizes, in all-reduces
     * that take longer. */
    b.f.plan.strategy = dl_strategy_find("filter");
    b.f.plan.dp = 0, b.f.plan.tp = 0;
    const struct dl_prediction full = predict(&b);
    assert_int_equal(terms_named(&full, "all_reduce of"), 3);
    check_close(full.messages.bytes, p.messages.bytes, 1e-12);
    assert_true(full.comm_s > p.comm_s);
    b.f.device.kind = DL_DEVICE_GPU;
    b.f.plan.strategy = dl_strategy_find("mlsl-hybrid");
    struct dl_prediction none;
    assert_int_equal(
        dl_predict(&(struct dl_predict_request){&b.f.system, &b.workload, &b.f.framework, &b.f.plan,
                                                NULL, &test_arena},
                   &none, NULL),
        DL_ERR_USAGE);
}

/* One device to a node, links of 10 us and 1 GB/s. 32 samples of 2048 x 4 bytes = 262144 bytes: the
 * leader's broadcast to 4, whose last link carries all bytes. Packing and unpacking at 2 GB/s adds
 * 2 bytes / 2e9. */
static void leader_hands_out(void **state) {
    struct bench b;
    struct dl_replica replica;
    make(&b, "spatial");
    b.f.plan.nodes = 4, b.f.plan.devices_per_node = 1, b.f.plan.sp = 4;
    b.f.system.inter = (struct dl_link){.kind = "infiniband",
                                        .bandwidth_bytes_per_s = 1e9,
                                        .latency_s = 10e-6,
                                        .adapters_per_node = 1,
                                        .rdma = true,
                                        .per_message_cpu_s = NAN,
                                        .channel_bandwidth_bytes_per_s = NAN,
                                        .cross_bandwidth_bytes_per_s = NAN,
                                        .nccl_bandwidth_bytes_per_s = NAN};
    b.f.framework.sync.messages.message_copy_bytes_per_s = NAN;
    assert_int_equal(dl_split_replica_replica(&b.request, DL_SPLIT_SPATIAL, 4, &replica, NULL),
                     DL_OK);
    check_close(replica.input_extra_s, 0, 0);
    fake_behaviour(&b.f.framework, "chainermn");
    const double bytes = BATCH * INPUT * 4.0;
    const struct dl_collective_request broadcast = {.op = DL_COLL_BROADCAST,
                                                    .library = DL_LIB_MPI,
                                                    .bytes = bytes,
                                                    .nodes = 4,
                                                    .ranks_per_node = 1,
                                                    .concurrent = 1};
    struct dl_collective_time sent;
    assert_int_equal(dl_collective_time(&b.f.system, &broadcast, &sent, NULL), DL_OK);
    assert_int_equal(dl_split_replica_replica(&b.request, DL_SPLIT_SPATIAL, 4, &replica, NULL),
                     DL_OK);
    check_close(replica.input_extra_s, sent.time_s, 1e-9);
    assert_true(replica.input_extra_s >= 2 * 10e-6 + bytes / 1e9);
    b.f.framework.sync.messages.message_copy_bytes_per_s = 2e9;
    assert_int_equal(dl_split_replica_replica(&b.request, DL_SPLIT_SPATIAL, 4, &replica, NULL),
                     DL_OK);
    check_close(replica.input_extra_s, sent.time_s + 2 * bytes / 2e9, 1e-9);
}

/* A leader that broadcasts: a spatial replica's devices copy the whole batch, the leader joins it
 * at 4 GB/s before. Its node of four has one process that decodes instead of four. */
static void leader_broadcasts(void **state) {
    struct bench b;
    struct dl_replica replica, general;
    make(&b, "spatial");
    b.f.plan.sp = 4;
    b.f.framework.input.feed_bytes_per_s = NAN;
    assert_int_equal(dl_split_replica_replica(&b.request, DL_SPLIT_SPATIAL, 4, &general, NULL),
                     DL_OK);
    check_close(general.workload->input_bytes_per_sample, INPUT * 4.0 / 4, 1e-12);
    check_close(general.input_extra_s, 0, 0);
    fake_behaviour(&b.f.framework, "chainermn");
    assert_int_equal(dl_split_replica_replica(&b.request, DL_SPLIT_SPATIAL, 4, &replica, NULL),
                     DL_OK);
    check_close(replica.workload->input_bytes_per_sample, INPUT * 4.0, 1e-12);
    const double sent_s = replica.input_extra_s;
    assert_true(sent_s > 0);
    b.f.framework.input.feed_bytes_per_s = 4e9;
    assert_int_equal(dl_split_replica_replica(&b.request, DL_SPLIT_SPATIAL, 4, &replica, NULL),
                     DL_OK);
    check_close(replica.input_extra_s - sent_s, BATCH * INPUT * 4.0 / 4e9, 1e-9);
    /* 32 samples of 1 ms on two workers of the one leader: 16 ms */
    struct dl_plan plan = replica.plan;
    plan.batch_per_device_samples = BATCH;
    plan.input.synthetic = false, plan.input.decode_s_per_sample = 1e-3,
    plan.input.decode_workers = 2;
    check_close(dl_input_compute(&b.f.system, &b.workload, &b.f.framework, &plan).decode_s, 0.016,
                1e-12);
    /* The copy to the device in the step: 4 x 262144 bytes, two devices a link of 6 GB/s pageable;
     * and the own copy of a device's batch. */
    b.f.framework.input.copies_in_step = b.f.framework.input.feeds_pageable = true;
    plan.input.synthetic = true;
    const struct dl_input_time t =
        dl_input_compute(&b.f.system, &b.workload, &b.f.framework, &plan);
    check_close(t.feed_s, BATCH * INPUT * 4.0 * (2 / 6e9 + 1 / 4e9), 1e-9);
    check_close(t.pipeline_s, 0, 0);
}

static const struct dl_message *message_named(const struct dl_replica *replica, const char *text) {
    for (int m = 0; m < replica->message_count; m++) {
        if (strcmp(replica->messages[m].message.name, text) == 0)
            return &replica->messages[m].message;
    }
    return NULL;
}

/* Rows over four devices of a node, halos of half a window. a and b (3x3) exchange one row of 16
 * forward, c (1x1) none: of a: 8 channels x 16 x 32 samples x 4 bytes = 16384 bytes. Backward the
 * rows of the gradients of a (16 channels) and b (32). In synchronous sends: 2 x 3 hops, each of
 * host time and a message whose pieces one core copies out of the device while the next copies them
 * in. */
static void halos_in_a_chain(void **state) {
    struct bench b;
    struct dl_replica replica;
    make(&b, "spatial");
    b.f.plan.sp = 4;
    struct dl_activation_policy *policy = &b.f.framework.activations;
    policy->spatial_dims = 1, policy->activation_library = DL_LIB_MPI;
    fake_behaviour(&b.f.framework, "chainermn");
    policy->halo_message_s = 1e-3;
    assert_int_equal(dl_split_replica_replica(&b.request, DL_SPLIT_SPATIAL, 4, &replica, NULL),
                     DL_OK);
    const struct dl_message *a = message_named(&replica, "p2p of a"),
                            *back = message_named(&replica, "p2p of a backward");
    assert_non_null(a);
    assert_non_null(back);
    assert_non_null(message_named(&replica, "p2p of b backward"));
    assert_null(message_named(&replica, "p2p of c"));
    const double bytes = 8 * 16 * BATCH * 4.0;
    check_close(a->bytes, bytes, 1e-12);
    check_close(back->bytes, 2 * bytes, 1e-12);
    const struct dl_collective_request request = {.op = DL_COLL_P2P,
                                                  .library = DL_LIB_MPI,
                                                  .bytes = bytes,
                                                  .nodes = 1,
                                                  .ranks_per_node = 4,
                                                  .flows_per_adapter = 1,
                                                  .device_buffers = true};
    struct dl_collective_time one;
    assert_int_equal(dl_collective_time(&b.f.system, &request, &one, NULL), DL_OK);
    check_close(a->duration_s, 6 * (1e-3 + one.latency_s + one.bandwidth_s / 2), 1e-9);
    assert_string_equal(a->formula, "F-HALO-CHAIN");
    /* The pool cannot be split: c's output is gathered before it, and its gradient returns. */
    assert_non_null(message_named(&replica, "all_gather of c"));
    check_close(message_named(&replica, "all_to_all of c backward")->bytes, C * BATCH * 4.0, 1e-12);
}

/* Filters on four devices of a node, MPI through the host: pieces of a gather pass side by side
 * with their copies (16384 elements x 32 x 4 bytes once, over links of 12 GB/s that two share), so
 * that the slower counts; sums are copied out of the device as a whole and back, to pageable memory
 * (6 GB/s). Joining the pieces of a gather reads and writes them once more. */
static void activations_through_the_host(void **state) {
    struct bench b;
    struct dl_replica replica;
    make(&b, "filter");
    b.f.plan.tp = 4;
    struct dl_activation_policy *policy = &b.f.framework.activations;
    policy->activation_library = policy->reduce_library = DL_LIB_MPI;
    policy->activation_direct = true;
    fake_behaviour(&b.f.framework, "chainermn");
    fake_set(&b.f.framework, "managed_memory", true);
    assert_int_equal(dl_split_replica_replica(&b.request, DL_SPLIT_FILTER, 4, &replica, NULL),
                     DL_OK);
    const double bytes = B * BATCH * 4.0;
    struct dl_collective_request wanted = {.op = DL_COLL_ALL_GATHER,
                                           .library = DL_LIB_MPI,
                                           .bytes = bytes,
                                           .nodes = 1,
                                           .ranks_per_node = 4,
                                           .flows_per_adapter = 1,
                                           .device_buffers = true,
                                           .concurrent = 1};
    struct dl_collective_time gather, sum;
    assert_int_equal(dl_collective_time(&b.f.system, &wanted, &gather, NULL), DL_OK);
    wanted.op = DL_COLL_ALL_REDUCE;
    assert_int_equal(dl_collective_time(&b.f.system, &wanted, &sum, NULL), DL_OK);
    const double plain_s = message_named(&replica, "all_gather of b")->duration_s;
    check_close(plain_s, gather.latency_s + fmax(gather.bandwidth_s, bytes * 2 / 12e9), 1e-9);
    check_close(message_named(&replica, "all_reduce of b backward")->duration_s,
                sum.time_s + 2 * bytes * 2 / 6e9, 1e-9);
    policy->activation_copies = 1;
    assert_int_equal(dl_split_replica_replica(&b.request, DL_SPLIT_FILTER, 4, &replica, NULL),
                     DL_OK);
    const struct dl_gradient_sync_request x = {.system = &b.f.system, .plan = &b.f.plan};
    check_close(message_named(&replica, "all_gather of b")->duration_s - plain_s,
                dl_gradient_sync_device_stream_s(&x, 2 * bytes), 1e-9);
}

/* ResNet: conv1 and the pool behind it lie outside of residual blocks, all else inside; VGG has no
 * blocks: each of its 13 convolutions and 5 pools fetches a halo. */
static void residual_blocks(void **state) {
    static const struct {
        const char *name;
        int halos;
    } cases[] = {{"resnet50", 2}, {"vgg16", 18}};
    for (int c = 0; c < 2; c++) {
        struct bench b;
        struct dl_replica replica;
        make(&b, "spatial");
        b.f.plan.sp = 2;
        load_name(cases[c].name, NULL, 0, &test_arena, &b.workload);
        fake_behaviour(&b.f.framework, "chainermn");
        b.f.framework.activations.spatial_dims = 1;
        assert_int_equal(dl_split_replica_replica(&b.request, DL_SPLIT_SPATIAL, 2, &replica, NULL),
                         DL_OK);
        int halos = 0;
        for (int m = 0; m < replica.message_count; m++)
            halos += !replica.messages[m].backward &&
                     strncmp(replica.messages[m].message.name, "p2p", 3) == 0;
        assert_int_equal(halos, cases[c].halos);
    }
}

/* Two nodes of four devices that hold all weights: the four of a node sum 80 MB, then the first
 * devices, and at the same time the three others of both nodes. */
static void sums_in_groups(void **state) {
    struct bench b;
    make(&b, "data+spatial");
    struct dl_gradient gradient = {.elements = 20e6, .bytes = 80e6, .ready_s = 1};
    struct dl_plan plan = b.f.plan;
    plan.nodes = 2, plan.dp = 8, plan.replica_devices = 4, plan.tp = 1, plan.sp = 1;
    fake_behaviour(&b.f.framework, "chainermn");
    const struct dl_gradient_sync_request request = {.system = &b.f.system,
                                                     .workload = &b.workload,
                                                     .framework = &b.f.framework,
                                                     .plan = &plan,
                                                     .gradients = &gradient,
                                                     .gradient_count = 1,
                                                     .total_bytes = 80e6,
                                                     .parameter_bytes = 80e6,
                                                     .backward_end_s = 1,
                                                     .library = DL_LIB_NCCL,
                                                     .arena = &test_arena};
    const struct dl_framework_behaviour *one = dl_framework_behaviour_find("chainermn");
    struct dl_gradient_sync sync = {0};
    assert_int_equal(one->synchronize(&request, &sync, NULL), DL_OK);
    assert_string_equal(sync.messages[0].formula, "F-GROUP-SUMS");
    struct dl_collective_request part = {.op = DL_COLL_ALL_REDUCE,
                                         .library = DL_LIB_NCCL,
                                         .bytes = 80e6,
                                         .nodes = 1,
                                         .ranks_per_node = 4,
                                         .flows_per_adapter = 1};
    struct dl_collective_time inside, across;
    assert_int_equal(dl_collective_time(&b.f.system, &part, &inside, NULL), DL_OK);
    part.nodes = 2, part.ranks_per_node = 3, part.flows_per_adapter = 2;
    assert_int_equal(dl_collective_time(&b.f.system, &part, &across, NULL), DL_OK);
    check_close(sync.messages[0].duration_s, inside.time_s + across.time_s, 1e-9);
    /* Replicas that share filters hold different weights: across alone. */
    plan.tp = 4, plan.dp = 2;
    assert_int_equal(one->synchronize(&request, &sync, NULL), DL_OK);
    check_close(sync.messages[0].duration_s, across.time_s, 1e-9);
}

/* Managed memory: a device of 1 GB too few pages it out and in, over a link of 6 GB/s that two
 * share, and the plan still fits. */
static void managed_memory_pages(void **state) {
    struct bench b;
    make(&b, "spatial");
    b.f.plan.sp = 4;
    fake_behaviour(&b.f.framework, "chainermn");
    const struct dl_prediction p = predict(&b);
    fake_set(&b.f.framework, "managed_memory", true);
    const struct dl_prediction free = predict(&b);
    check_close(free.iteration_s, p.iteration_s, 1e-12);
    b.f.device.memory_bytes = p.memory.total_bytes - 0.1e9;
    const struct dl_prediction paged = predict(&b);
    assert_true(paged.fits);
    check_close(paged.iteration_s - p.iteration_s, 2 * 0.1e9 * 2 / 6e9, 1e-6);
    fake_set(&b.f.framework, "managed_memory", false);
    assert_false(predict(&b).fits);
}

/* One part sends nothing inside a replica. */
static void one_part_is_silent(void **state) {
    static const enum dl_split_kind kinds[] = {DL_SPLIT_FILTER, DL_SPLIT_CHANNEL, DL_SPLIT_SPATIAL};
    for (int k = 0; k < 3; k++) {
        struct bench b;
        struct dl_replica replica;
        make(&b, "filter");
        assert_int_equal(dl_split_replica_replica(&b.request, kinds[k], 1, &replica, NULL), DL_OK);
        assert_int_equal(replica.message_count, 0);
    }
}

/* A ring's all-reduce takes as long as its reduce-scatter and its all-gather of the same 8 MB. */
static void ring_is_its_halves(void **state) {
    struct bench b;
    make(&b, "data");
    for (int nodes = 2; nodes <= 8; nodes *= 2) {
        struct dl_collective_request r = {.library = DL_LIB_NCCL,
                                          .bytes = 8e6,
                                          .nodes = nodes,
                                          .ranks_per_node = 1,
                                          .flows_per_adapter = 1,
                                          .algorithm = "ring"};
        struct dl_collective_time whole, halves[2];
        r.op = DL_COLL_ALL_REDUCE;
        assert_int_equal(dl_collective_time(&b.f.system, &r, &whole, NULL), DL_OK);
        r.op = DL_COLL_REDUCE_SCATTER;
        assert_int_equal(dl_collective_time(&b.f.system, &r, &halves[0], NULL), DL_OK);
        r.op = DL_COLL_ALL_GATHER;
        assert_int_equal(dl_collective_time(&b.f.system, &r, &halves[1], NULL), DL_OK);
        check_close(whole.bandwidth_s, halves[0].bandwidth_s + halves[1].bandwidth_s, 1e-9);
    }
}

/* F-STRAGGLER: the expected maximum of 2, 4, ... 1024 standard normal numbers. */
static void largest_of_many(void **state) {
    static const double table[] = {0.5642, 1.0294, 1.4236, 1.7660, 2.0697,
                                   2.3437, 2.5946, 2.8269, 3.0439, 3.2482};
    for (int i = 0; i < 10; i++)
        assert_true(fabs(dl_normal_expected_max(ldexp(2, i)) - table[i]) < 1e-4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mlsl_activations),
        cmocka_unit_test(leader_hands_out),
        cmocka_unit_test(leader_broadcasts),
        cmocka_unit_test(halos_in_a_chain),
        cmocka_unit_test(activations_through_the_host),
        cmocka_unit_test(residual_blocks),
        cmocka_unit_test(sums_in_groups),
        cmocka_unit_test(managed_memory_pages),
        cmocka_unit_test(one_part_is_silent),
        cmocka_unit_test(ring_is_its_halves),
        cmocka_unit_test(ends_beyond_the_limit),
        cmocka_unit_test(largest_of_many),
    };
    return cmocka_run_group_tests(tests, NULL, check_free);
}
