/* What each behaviour sends (F-FW-*), against cases worked by hand from the sources that
 * data/frameworks/ cites. */
#include "tests/check.h"
#include "model/network/libraries/coll_copy.h"
#include "model/machine/topology.h"
#include "tests/gradient_bench.h"

/* Limits 1 MB then 25 MB: 0.6 + 0.6 closes the first; 20 + 10 the second (30 >= 25); 400 is one
 * bucket; 3 is the rest. */
static void ddp_buckets(void **state) {
    struct bench b;
    const double sizes[] = {0.6e6, 0.6e6, 20e6, 10e6, 400e6, 3e6}, ready[] = {1, 2, 3, 4, 5, 6};
    make(&b, 6, sizes, ready);
    run(&b, "bucketed");
    assert_int_equal(b.sync.message_count, 4);
    const double bytes[] = {1.2e6, 30e6, 400e6, 3e6}, starts[] = {2, 4, 5, 6};
    for (int i = 0; i < 4; i++) {
        check_close(b.sync.messages[i].bytes, bytes[i], 1e-12);
        check_close(b.sync.messages[i].ready_s, starts[i], 1e-12);
    }
    assert_false(b.sync.per_layer_wait);
}

/* 434.2 MB in two equal buckets of 217.1 MB: 1.2 + 30 + 400 fill the first, 3 MB are left. Views
 * are not copied. */
static void equal_buckets(void **state) {
    struct bench b;
    const double sizes[] = {0.6e6, 0.6e6, 20e6, 10e6, 400e6, 3e6}, ready[] = {1, 2, 3, 4, 5, 6};
    make(&b, 6, sizes, ready);
    fake_set(&b.fake.framework, "bucket_count", 2);
    run(&b, "bucketed");
    assert_int_equal(b.sync.message_count, 2);
    check_close(b.sync.messages[0].bytes, 431.2e6, 1e-12);
    check_close(b.sync.device_copy_s, 4 * 434.2e6 / 400e9, 0.01);
    fake_set(&b.fake.framework, "bucket_views", true);
    memset(&b.sync, 0, sizeof b.sync);
    run(&b, "bucketed");
    check_close(b.sync.device_copy_s, 0, 0);
}

/* Four trees of small MPI messages. */
static double control_round_s(const struct bench *b) {
    const struct dl_collective_request tree = {.op = DL_COLL_BROADCAST,
                                               .library = DL_LIB_MPI,
                                               .bytes = 64,
                                               .nodes = b->fake.plan.nodes,
                                               .ranks_per_node = b->fake.plan.devices_per_node,
                                               .flows_per_adapter = 1};
    struct dl_collective_time t;
    assert_int_equal(dl_collective_time(&b->fake.system, &tree, &t, NULL), DL_OK);
    return 4 * t.time_s;
}

/* Cycle 5 ms, threshold 64 MB; a control round takes as long as four small trees. The first cycle
 * ends half a cycle after the first gradient: 12.5 ms. It sees gradients ready at 10, 11 and 12 ms
 * (10 + 20 + 30 MB = 60 MB: one group). The next, at 17.5 ms, sees those of 15 and 16 ms: 50 + 20
 * MB exceed 64 MB: two groups. The one of 30 ms is seen at 32.5 ms; 100 MB goes alone. */
static void horovod_cycles(void **state) {
    struct bench b;
    const double sizes[] = {10e6, 20e6, 30e6, 50e6, 20e6, 100e6},
                 ready[] = {.010, .011, .012, .015, .016, .030};
    make(&b, 6, sizes, ready);
    run(&b, "tensor-fusion");
    assert_int_equal(b.sync.message_count, 4);
    const double bytes[] = {60e6, 50e6, 20e6, 100e6}, ends[] = {.0125, .0175, .0175, .0325};
    assert_true(control_round_s(&b) > 0);
    for (int i = 0; i < 4; i++) {
        check_close(b.sync.messages[i].bytes, bytes[i], 1e-12);
        check_close(b.sync.messages[i].ready_s, ends[i] + control_round_s(&b), 1e-9);
    }
}

/* Without a response cache the coordinator takes 20 us for each tensor of each of 32 ranks. Cycles
 * of 0.5 ms: the first ends at 10.25 ms and finds one tensor, 0.64 ms and a control round, more
 * than the cycle, before its collective. The next, then, sees nothing; the one that ends 0.5 ms
 * later finds the two of 11 and 11.1 ms: 1.28 ms. */
static void horovod_negotiates(void **state) {
    struct bench b;
    const double sizes[] = {10e6, 20e6, 30e6}, ready[] = {.010, .011, .0111};
    make(&b, 3, sizes, ready);
    fake_behaviour(&b.fake.framework, "tensor-fusion");
    fake_set(&b.fake.framework, "cycle_s", 0.5e-3), fake_set(&b.fake.framework, "request_s", 20e-6);
    b.fake.plan.nodes = 8;
    run(&b, "tensor-fusion");
    const double round_s = control_round_s(&b), first_s = .01025 + .00064 + round_s;
    assert_int_equal(b.sync.message_count, 2);
    check_close(b.sync.messages[0].ready_s, first_s, 1e-12);
    check_close(b.sync.messages[1].ready_s, first_s + .0005 + .00128 + round_s, 1e-12);
}

/* 30 and 30 MB in one message: copied into the fusion buffer and back, each tensor by itself (four
 * launches) or all at once (two), 240 MB at 400 GB/s; a message of one tensor is not copied. With
 * MPI each tensor also passes back from the host, at 0.5 ms. */
static void horovod_copies(void **state) {
    struct bench b;
    const double sizes[] = {30e6, 30e6, 100e6}, ready[] = {.010, .0101, .020};
    make(&b, 3, sizes, ready);
    run(&b, "tensor-fusion");
    assert_int_equal(b.sync.message_count, 2);
    const double each_s = b.sync.messages[0].duration_s, alone_s = b.sync.messages[1].duration_s;
    fake_set(&b.fake.framework, "batched_copies", true);
    run(&b, "tensor-fusion");
    const double batched_s = b.sync.messages[0].duration_s;
    check_close(b.sync.messages[1].duration_s, alone_s, 1e-12);
    struct dl_message plain = {0};
    assert_int_equal(
        dl_gradient_sync_collective(&b.request, DL_COLL_ALL_REDUCE, 60e6, &plain, NULL), DL_OK);
    check_close(batched_s - plain.duration_s, 240e6 / 400e9, 0.05);
    assert_true(each_s > batched_s);
    check_close(b.sync.device_copy_s, 0, 0);
    b.fake.framework.sync.messages.message_s = 0.5e-3;
    run(&b, "tensor-fusion"); /* NCCL: no copies to the host */
    check_close(b.sync.messages[0].duration_s, batched_s, 1e-12);
    b.request.library = DL_LIB_MPI;
    run(&b, "tensor-fusion");
    const double host_s = b.sync.messages[0].duration_s;
    b.fake.framework.sync.messages.message_s = 0;
    run(&b, "tensor-fusion");
    check_close(host_s - b.sync.messages[0].duration_s, 2 * 0.5e-3, 1e-9);
}

/* F-FUSION-THREAD: tensors ready at 10, 10.1, 12.4 and 20 ms. With NCCL cycles that end at 12.5 and
 * 22.5 ms find the first three and the last. With MPI and copies of 2 ms to the host they arrive
 * there at 12, 14, 16 and 22 ms: the first goes alone at 12.5 ms; the thread that reduces its 60
 * MB for more than 9.5 ms finds all others at once when it ends. */
static void horovod_thread(void **state) {
    struct bench b;
    const double sizes[] = {60e6, 1e6, 1e6, 1e6}, ready[] = {.010, .0101, .0124, .020};
    make(&b, 4, sizes, ready);
    const double round_s = control_round_s(&b);
    b.fake.framework.sync.messages.message_s = 2e-3;
    run(&b, "tensor-fusion");
    assert_int_equal(b.sync.message_count, 2);
    assert_int_equal(b.sync.messages[0].count, 3);
    check_close(b.sync.messages[1].ready_s, .0225 + round_s, 1e-9);
    b.request.library = DL_LIB_MPI;
    run(&b, "tensor-fusion");
    const struct dl_message *m = b.sync.messages;
    assert_int_equal(b.sync.message_count, 2);
    assert_int_equal(m[0].count, 1);
    assert_int_equal(m[1].count, 3);
    check_close(m[0].ready_s, .0125 + round_s, 1e-9);
    assert_true(m[0].duration_s > .0095);
    check_close(m[1].ready_s, m[0].ready_s + m[0].duration_s + round_s, 1e-9);
}

/* F-FUSION-WAIT: issued at 1, 2, 3 and 9 ms, ready at 10, 11, 12 and 30 ms. The cycle that ends at
 * 3.5 ms negotiates the first three, 60 MB, and the thread waits for them until 12 ms. Then it
 * negotiates the last, and waits until 30 ms. The operations of a host library are queued when it
 * can read their tensors: the first cycle ends at 12.5 ms. */
static void horovod_waits(void **state) {
    struct bench b;
    const double sizes[] = {10e6, 20e6, 30e6, 50e6}, ready[] = {.010, .011, .012, .030},
                 issued[] = {.001, .002, .003, .009};
    make(&b, 4, sizes, ready);
    for (int g = 0; g < 4; g++) b.gradients[g].issued_s = issued[g];
    fake_behaviour(&b.fake.framework, "tensor-fusion");
    fake_set(&b.fake.framework, "queued_when_issued", true);
    run(&b, "tensor-fusion");
    assert_int_equal(b.sync.message_count, 2);
    assert_int_equal(b.sync.messages[0].count, 3);
    check_close(b.sync.messages[0].ready_s, .012, 1e-12);
    check_close(b.sync.messages[1].ready_s, .030, 1e-12);
    b.gradients[3].ready_s = .0121; /* before the round that follows 12 ms is over, perhaps */
    run(&b, "tensor-fusion");
    const double agreed_s = .012 + control_round_s(&b);
    check_close(b.sync.messages[1].ready_s, agreed_s > .0121 ? agreed_s : .0121, 1e-12);
    b.request.library = DL_LIB_MPI;
    run(&b, "tensor-fusion");
    check_close(b.sync.messages[0].ready_s, .0125 + control_round_s(&b), 1e-9);
}

/* Compressed gradients, 160 MB in fp32: in half the width (Horovod's Compression.fp16, DDP's hook)
 * 80 MB, of 1 bit 5 MB, and the part of the time that bytes take falls with them. */
static void compressed_gradients(void **state) {
    struct bench b;
    const double widths[] = {4, 2, 0.125};
    double bandwidth_s[3];
    for (int i = 0; i < 3; i++) {
        const double size = 40e6 * widths[i], ready = 1;
        make(&b, 1, &size, &ready);
        b.request.library = DL_LIB_MPI;
        b.request.parameter_bytes = 160e6;
        run(&b, i < 2 ? "per-layer" : "quantized");
        check_close(b.sync.messages[0].bytes, size, 1e-12);
        bandwidth_s[i] = b.sync.messages[0].bandwidth_s;
    }
    check_close(bandwidth_s[1] / bandwidth_s[0], 1.0 / 2, 0.01);
    check_close(bandwidth_s[2] / bandwidth_s[0], 1.0 / 32, 0.05);
}

/* The width is the plan's: of each parameter fp32 sends 4 bytes, a 1-bit code an eighth, fp16 two.
 */
static void widths_of_a_plan(void **state) {
    struct dl_fake f;
    struct dl_prediction p;
    fake_make(&f);
    const double parameters = f.workload.parameters;
    assert_int_equal(fake_predict(&f, &p), DL_OK);
    check_close(p.messages.bytes, 4 * parameters, 1e-12);
    f.framework.sync.gradient_bytes = 0.125;
    assert_int_equal(fake_predict(&f, &p), DL_OK);
    check_close(p.messages.bytes, parameters / 8, 1e-12);
    f.framework.sync.gradient_bytes = 4, f.framework.sync.mixed_gradient_bytes = 2;
    f.rate.precision = DL_FP16, f.plan.precision = DL_FP16;
    assert_int_equal(fake_predict(&f, &p), DL_OK);
    check_close(p.messages.bytes, 2 * parameters, 1e-12);
}

/* pack_bytes = 0: one message after the last gradient. 50 MB: a new pack begins when the previous
 * exceeds it: 30 + 30 | 10. */
static void packs(void **state) {
    struct bench b;
    const double sizes[] = {30e6, 30e6, 10e6}, ready[] = {1, 2, 3};
    make(&b, 3, sizes, ready);
    run(&b, "concatenated");
    assert_int_equal(b.sync.message_count, 1);
    check_close(b.sync.messages[0].bytes, 70e6, 1e-12);
    check_close(b.sync.messages[0].ready_s, 3, 1e-12);
    b.fake.framework.sync.pack_bytes = 50e6;
    run(&b, "concatenated");
    assert_int_equal(b.sync.message_count, 2);
    check_close(b.sync.messages[0].bytes, 60e6, 1e-12);
    check_close(b.sync.messages[0].ready_s, 2, 1e-12);
}

/* Six variables in packs of four, counted from the first one: the pack of the last two goes first,
 * when the second of them is ready; the others follow when all are. Two packs of 30 and 40 MB are
 * copied in and out (4 x 70 MB at 400 GB/s and a launch); in place nothing is, and a division of
 * its own reads and writes all once. */
static void packs_of_variables(void **state) {
    struct bench b;
    const double sizes[] = {10e6, 20e6, 10e6, 10e6, 10e6, 10e6}, ready[] = {1, 2, 3, 4, 5, 6};
    make(&b, 6, sizes, ready);
    fake_behaviour(&b.fake.framework, "concatenated");
    fake_set(&b.fake.framework, "pack_tensors", 4);
    run(&b, "concatenated");
    assert_int_equal(b.sync.message_count, 2);
    check_close(b.sync.messages[0].bytes, 30e6, 1e-12);
    check_close(b.sync.messages[0].ready_s, 2, 1e-12);
    assert_int_equal(b.sync.messages[1].first, 2);
    check_close(b.sync.messages[1].bytes, 40e6, 1e-12);
    check_close(b.sync.messages[1].ready_s, 6, 1e-12);
    check_close(b.sync.device_copy_s, 4 * 70e6 / 400e9, 0.01);
    fake_set(&b.fake.framework, "in_place", true);
    run(&b, "concatenated");
    check_close(b.sync.device_copy_s, 0, 0);
    fake_set(&b.fake.framework, "divides", true);
    run(&b, "concatenated");
    check_close(b.sync.device_copy_s, 2 * 70e6 / 400e9, 0.02);
}

/* Weights on the host: every GPU of four reads and returns all bytes over links that two share: 2
 * bytes / 12e9 a byte. */
static void keras_central_weights(void **state) {
    struct bench b;
    const double sizes[] = {60e6, 12e6}, ready[] = {1, 2};
    make(&b, 2, sizes, ready);
    b.fake.plan.nodes = 1;
    run(&b, "central-weights");
    assert_int_equal(b.sync.message_count, 4);
    check_close(b.sync.messages[0].bandwidth_s, 60e6 * 2 / 12e9, 1e-12);
    check_close(b.sync.messages[2].bandwidth_s, 12e6 * 2 / 12e9, 1e-12); /* first layer first */
    assert_non_null(dl_framework_behaviour_find("central-weights")
                        ->refuse(&b.fake.system, &(struct dl_plan){.nodes = 2}));
}

/* Weights on device 0 of a square of NVLinks 0-1, 0-2, 1-3, 2-3: device 3, beyond the peer group of
 * 3, is reached through the host and the bridge of 6 GB/s, which sets the pace: 60 MB take 10 ms.
 * The process issues 2 x 2 tensors to two neighbours at 0.1 ms and to device 3 at 0.3 ms: 4 x 0.5
 * ms. Without links all devices but one of the group are apart. */
static void keras_weights_on_a_device(void **state) {
    struct bench b;
    const double sizes[] = {60e6, 12e6}, ready[] = {1, 2};
    struct dl_edge edges[] = {{0, 1, 1, NULL}, {0, 2, 1, NULL}, {1, 3, 1, NULL}, {2, 3, 1, NULL}};
    make(&b, 2, sizes, ready);
    b.fake.plan.nodes = 1;
    struct dl_link *intra = &b.fake.system.intra;
    intra->edges = edges, intra->edge_count = 4, intra->peer_group = 3,
    intra->cross_bandwidth_bytes_per_s = 6e9;
    intra->peer_to_peer = true;
    dl_topology_fill(intra, 4);
    fake_behaviour(&b.fake.framework, "central-weights");
    fake_set(&b.fake.framework, "weights_on_device", true);
    b.fake.framework.sync.messages.message_s = 1e-4,
    fake_set(&b.fake.framework, "staged_message_s", 3e-4);
    run(&b, "central-weights");
    assert_int_equal(b.sync.message_count, 4);
    check_close(b.sync.messages[0].bandwidth_s, 10e-3, 1e-12);
    check_close(b.sync.messages[2].bandwidth_s, 2e-3, 1e-12); /* first layer first */
    assert_string_equal(b.sync.messages[0].formula, "F-COPY-STAR");
    check_close(b.sync.host_s, 4 * 0.5e-3, 1e-12);
    assert_int_equal(dl_copy_staged_devices(&b.fake.system, 4), 1);
    intra->edge_count = 0, intra->peer_group = 2;
    assert_int_equal(dl_copy_staged_devices(&b.fake.system, 4), 2);
    intra->peer_to_peer = false;
    assert_int_equal(dl_copy_staged_devices(&b.fake.system, 4), 3);
}

/* NCCL 1 on a chain of NVLinks 0-1-2-3, peer groups of two: the ring closes from 3 to 0 through the
 * host and the bridge of 6 GB/s, which sets the pace: 60 MB x 6/4 / 6 GB/s = 15 ms and 6 hops of 2
 * us. Tensors go one by one as they come, nothing is packed. */
static void a_ring_in_order(void **state) {
    struct bench b;
    const double sizes[] = {60e6, 12e6}, ready[] = {1, 2};
    struct dl_edge edges[] = {
        {0, 1, 1, NULL}, {1, 2, 1, NULL}, {2, 3, 1, NULL}, {0, 2, 1, NULL}, {1, 3, 1, NULL}};
    make(&b, 2, sizes, ready);
    b.fake.plan.nodes = 1;
    struct dl_link *intra = &b.fake.system.intra;
    intra->edges = edges, intra->edge_count = 5, intra->peer_group = 2,
    intra->cross_bandwidth_bytes_per_s = 6e9;
    dl_topology_fill(intra, 4);
    b.request.library = DL_LIB_COPY;
    b.fake.framework.sync.copy_pattern = "ring";
    b.fake.framework.sync.pack_bytes = 1, b.fake.framework.sync.overlaps_backward = true;
    run(&b, "concatenated");
    assert_int_equal(b.sync.message_count, 2);
    assert_string_equal(b.sync.messages[0].formula, "F-COPY-RING");
    check_close(b.sync.messages[0].ready_s, 1, 1e-12);
    check_close(b.sync.messages[0].bandwidth_s, 15e-3, 1e-12);
    check_close(b.sync.messages[0].latency_s, 12e-6, 1e-12);
    check_close(b.sync.device_copy_s, 0, 0);
}

/* Two tensors of one layer go together. */
static void caffe_layers(void **state) {
    struct bench b;
    const double sizes[] = {4e3, 16e6, 8e6}, ready[] = {1, 1, 2};
    make(&b, 3, sizes, ready);
    b.gradients[0].layer = b.gradients[1].layer = 1;
    b.gradients[2].layer = 0;
    run(&b, "per-layer");
    assert_int_equal(b.sync.message_count, 2);
    check_close(b.sync.messages[0].bytes, 16.004e6, 1e-12);
    assert_false(b.sync.per_layer_wait);
}

/* Simulated time that does not advance is an error, not a loop without end. */
static void cycles_that_do_not_advance(void **state) {
    const double sizes[] = {10e6, 20e6}, ready[] = {.010, 1e12};
    const double cycles_s[] = {NAN, 0, 1e-6};
    for (int i = 0; i < 3; i++) {
        struct bench b;
        struct dl_err err = {0};
        make(&b, 2, sizes, ready);
        fake_behaviour(&b.fake.framework, "tensor-fusion");
        fake_set(&b.fake.framework, "cycle_s", cycles_s[i]);
        if (i < 2) b.gradients[1].ready_s = .012;
        assert_int_equal(
            dl_framework_behaviour_find("tensor-fusion")->synchronize(&b.request, &b.sync, &err),
            i < 2 ? DL_ERR_INPUT : DL_OK);
        if (i < 2) assert_non_null(strstr(err.message, "never reach a gradient"));
        b.gradients[1].ready_s = NAN;
        assert_int_equal(
            dl_framework_behaviour_find("tensor-fusion")->synchronize(&b.request, &b.sync, &err),
            DL_ERR_INPUT);
    }
}

static void every_row_is_complete(void **state) {
    for (int i = 0; dl_framework_behaviours[i] != NULL; i++) {
        const struct dl_framework_behaviour *row = dl_framework_behaviours[i];
        assert_true(row->name != NULL && row->summary != NULL && row->source != NULL &&
                    row->synchronize != NULL);
        assert_ptr_equal(dl_framework_behaviour_find(row->name), row);
        if (row->old_name != NULL)
            assert_ptr_equal(dl_framework_behaviour_find(row->old_name), row);
        /* --set behaviour keeps its keys in one place that all others use, too */
        for (const struct dl_field *f = row->fields; f != NULL && f->key != NULL; f++)
            assert_true(f->type == DL_FIELD_NUMBER || f->type == DL_FIELD_BOOL ||
                        f->type == DL_FIELD_CHOICE);
        /* what it requires are numbers that a file may leave out */
        for (int k = 0; row->required != NULL && row->required[k] != NULL; k++) {
            const struct dl_field *field = dl_framework_schema.fields;
            while (field->key != NULL && strcmp(field->key, row->required[k]) != 0) field++;
            assert_non_null(field->key);
            assert_true(field->type == DL_FIELD_NUMBER && !field->has_fallback && !field->required);
        }
    }
    assert_null(dl_framework_behaviour_find("no such"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ddp_buckets),
        cmocka_unit_test(equal_buckets),
        cmocka_unit_test(horovod_cycles),
        cmocka_unit_test(horovod_negotiates),
        cmocka_unit_test(horovod_copies),
        cmocka_unit_test(horovod_thread),
        cmocka_unit_test(horovod_waits),
        cmocka_unit_test(cycles_that_do_not_advance),
        cmocka_unit_test(compressed_gradients),
        cmocka_unit_test(widths_of_a_plan),
        cmocka_unit_test(packs),
        cmocka_unit_test(packs_of_variables),
        cmocka_unit_test(keras_central_weights),
        cmocka_unit_test(keras_weights_on_a_device),
        cmocka_unit_test(a_ring_in_order),
        cmocka_unit_test(caffe_layers),
        cmocka_unit_test(every_row_is_complete),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
