/* Transformers split over ranks: activations against Korthikanti et al. (docs/theory.md),
 * states of ZeRO, volumes, pipeline schedules, groups; each worked by hand. */
#include "model/framework/host_dispatch.h"
#include "model/engine/strategies/strategy.h"
#include "tests/fake_transformer.h"

/* 4 layers, hidden 1024, 16 heads, 512 tokens, vocabulary 51200. */
static void make(struct gpt *g) {
    static struct dl_override overrides[] = {{.key = "layers", .value = "4"},
                                             {.key = "seq", .value = "512"},
                                             {.key = "heads", .value = "16"},
                                             {.key = "vocab", .value = "51200"}};
    gpt_make(g, overrides, sizeof overrides / sizeof overrides[0]);
}

static struct dl_transformer_split split(int64_t tp, int64_t sp, int64_t pp, int64_t dp) {
    return gpt_split(tp, sp, 1, pp, dp);
}

static void finds_the_stack(void **state) {
    struct gpt g;
    make(&g);
    check_close(g.tf.stack, 4, 0);
    check_close(g.tf.heads, 16, 0);
    check_close(g.tf.hidden, 1024, 0);
    check_close(g.tf.tokens, 512, 0);
    /* 12 h^2 + 13 h: 8 h^2 of columns and rows split with the 7 h biases of columns; 2 h + 2 h of
     * rows' biases, 4 h of norms */
    check_close(g.tf.split_elements[DL_TRANSFORMER_BODY], 12.0 * 1024 * 1024 + 7 * 1024, 0);
    check_close(g.tf.whole_elements[DL_TRANSFORMER_BODY], 6.0 * 1024, 0);
    check_close(g.tf.tied_elements, 51200.0 * 1024, 0);
    const double all = g.tf.split_elements[0] + g.tf.whole_elements[0] +
                       4 * (g.tf.split_elements[1] + g.tf.whole_elements[1]) +
                       g.tf.split_elements[2] + g.tf.whole_elements[2];
    check_close(all, g.workload.parameters, 0);
}

/* F-TRANSFORMER-SPLIT, F-TRANSFORMER-ACTIVATIONS: s b h (34 + 5 a s/h), (10 + 24/t + 5 a s/(h t)),
 * (34 + 5 a s/h)/t, 34/t; the norms' statistics (8 bytes a token, twice) besides. a s/h = 8. */
static void activations_of_a_layer(void **state) {
    struct gpt g;
    make(&g);
    struct {
        int64_t tp;
        bool sequence;
        enum dl_recompute recompute;
        double factor;
    } cases[] = {
        {1, false, DL_RECOMPUTE_NONE, 34 + 40},
        {4, false, DL_RECOMPUTE_NONE, 10 + 6 + 10},
        {4, true, DL_RECOMPUTE_NONE, (34 + 40) / 4.0},
        {4, true, DL_RECOMPUTE_SELECTIVE, 34 / 4.0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct dl_transformer_split s = split(cases[i].tp, 1, 1, 1);
        s.sequence_parallel = cases[i].sequence;
        double bytes = 0;
        for (int k = 0; k < g.tf.layer_count; k++) {
            if (g.tf.layers[k].part == DL_TRANSFORMER_BODY)
                bytes += gpt_kept_bytes(&g, &g.tf.layers[k], &s, cases[i].recompute);
        }
        const double statistics = 16 * 512.0 / (cases[i].sequence ? (double)cases[i].tp : 1);
        check_close(bytes - statistics, 512.0 * 1024 * cases[i].factor, 1e-9);
    }
    struct dl_transformer_micro_batch cell;
    const struct dl_transformer_split one = split(1, 1, 1, 1);
    assert_int_equal(dl_transformer_micro_batch_make(&g.tf, &one, 3, &cell, NULL), DL_OK);
    check_close(cell.kept_bytes[DL_TRANSFORMER_BODY][DL_RECOMPUTE_FULL], 2 * 3 * 512.0 * 1024, 0);
}

/* F-TRANSFORMER-STATES: 16 P; 4 P + 12 P/N; 2 P + 14 P/N; 16 P/N. N = 8. Stage 3 gathers the
 * weights of two layers into a buffer. */
static void states_of_zero(void **state) {
    struct gpt g;
    make(&g);
    const struct dl_transformer_split s = split(1, 1, 1, 8);
    const double p = g.workload.parameters, layer = 2 * (12 * 1024.0 * 1024 + 13 * 1024);
    double plain = 0;
    const double wanted[] = {16 * p, 4 * p + 12 * p / 8, 2 * p + 14 * p / 8, 16 * p / 8};
    for (int shard = 0; shard <= 3; shard++) {
        struct dl_transformer_mapping layout;
        assert_int_equal(dl_transformer_mapping_make(&g.tf, &s, shard, &layout, NULL), DL_OK);
        const struct dl_memory *m = &layout.states[0];
        if (shard < 3) plain = m->buffers_bytes; /* what the framework's buckets take */
        check_close(m->weights_bytes + m->gradients_bytes + m->optimizer_bytes, wanted[shard],
                    1e-12);
        check_close(m->buffers_bytes, plain + (shard == 3 ? 2 * layer : 0), 1e-12);
    }
}

/* F-TRANSFORMER-DATA, F-TRANSFORMER-SHARD: bytes sent in one iteration of one micro-batch, of S = 2
 * P: 2 S, 2 S, 2 S, 3 S, times (N - 1)/N. */
static void volumes_of_zero(void **state) {
    struct gpt g;
    make(&g);
    const struct dl_transformer_split s = split(1, 1, 1, 8);
    const struct dl_collective_time none = {0};
    const struct dl_transformer_choice choice = {.micro_batches = 1, .virtual_stages = 1};
    const double each = 7.0 / 8 * 2 * g.workload.parameters, wanted[] = {2, 2, 2, 3};
    struct dl_transformer_micro_batch cell;
    assert_int_equal(dl_transformer_micro_batch_make(&g.tf, &s, 1, &cell, NULL), DL_OK);
    for (int shard = 0; shard <= 3; shard++) {
        struct dl_transformer_mapping layout;
        struct dl_transformer_result r;
        assert_int_equal(dl_transformer_mapping_make(&g.tf, &s, shard, &layout, NULL), DL_OK);
        dl_transformer_evaluate(&g.tf, &layout, &cell, &none, &choice, &r);
        check_close(r.sent_bytes, wanted[shard] * each, 1e-9);
    }
}

/* F-TRANSFORMER-HYBRID: 8 data ranks, states shared out among 4 of a node: 4 P + 12 P/4 and so on;
 * a rank sends 3/4 S for each scatter and gather, and 2 x 1/2 x S/4 to its fellow on the other
 * node. Within the node they are faster than among all 8. */
static void hybrid_sharding(void **state) {
    struct gpt g;
    make(&g);
    struct dl_transformer_split s = split(1, 1, 1, 8);
    const double p = g.workload.parameters, bytes = 2 * p;
    const double wanted[] = {16 * p, 4 * p + 12 * p / 4, 2 * p + 14 * p / 4, 16 * p / 4};
    const struct dl_collective_time none = {0};
    const struct dl_transformer_choice choice = {.micro_batches = 1, .virtual_stages = 1};
    struct dl_transformer_micro_batch cell;
    struct dl_err err = {0};
    assert_int_equal(dl_transformer_micro_batch_make(&g.tf, &s, 1, &cell, &err), DL_OK);
    for (int shard = 1; shard <= 3; shard++) {
        struct dl_transformer_mapping hybrid, all;
        struct dl_transformer_result r;
        s.shard_group = 4;
        assert_int_equal(dl_transformer_mapping_make(&g.tf, &s, shard, &hybrid, &err), DL_OK);
        s.shard_group = 0;
        assert_int_equal(dl_transformer_mapping_make(&g.tf, &s, shard, &all, &err), DL_OK);
        const struct dl_memory *m = &hybrid.states[0];
        check_close(m->weights_bytes + m->gradients_bytes + m->optimizer_bytes, wanted[shard],
                    1e-12);
        dl_transformer_evaluate(&g.tf, &hybrid, &cell, &none, &choice, &r);
        check_close(r.sent_bytes, ((shard == 3 ? 3 : 2) * 0.75 + 0.25) * bytes, 1e-9);
        assert_true(hybrid.gather.time_s < all.gather.time_s);
    }
    struct dl_plan plan = g.f.plan;
    plan.strategy = dl_strategy_find("zero3");
    plan.nodes = 2;
    plan.dp = 8;
    plan.shard_group = 3;
    plan.batch_per_device_samples = 1;
    assert_int_equal(dl_plan_complete(&g.f.system, &g.workload, &g.f.framework, &plan, &err),
                     DL_ERR_USAGE);
    check_contains(err.message,
                   "does not divide the 8 ranks that hold the same parameters; nearest is");
}

/* F-TRANSFORMER-TENSOR: 4 all-reduces of b s h 2 bytes a layer, 2(t-1)/t of it sent; sequence
 * parallelism sends the same. Context parallelism (F-TRANSFORMER-CONTEXT) halves what each of them
 * moves. */
static void volumes_of_tensor(void **state) {
    struct gpt g;
    make(&g);
    struct dl_transformer_micro_batch plain, sequence, context;
    struct dl_transformer_split s = split(4, 1, 1, 1);
    const double message = 2 * 512.0 * 1024 * 2;
    assert_int_equal(dl_transformer_micro_batch_make(&g.tf, &s, 2, &plain, NULL), DL_OK);
    s.sequence_parallel = true;
    assert_int_equal(dl_transformer_micro_batch_make(&g.tf, &s, 2, &sequence, NULL), DL_OK);
    s = split(4, 2, 1, 1);
    assert_int_equal(dl_transformer_micro_batch_make(&g.tf, &s, 2, &context, NULL), DL_OK);
    check_close(plain.collective_bytes, message, 0);
    check_close(plain.forward[DL_TRANSFORMER_BODY].comm_bytes +
                    plain.backward[DL_TRANSFORMER_BODY][0].comm_bytes,
                4 * 2 * 0.75 * message, 1e-12);
    check_close(sequence.forward[DL_TRANSFORMER_BODY].comm_bytes +
                    sequence.backward[DL_TRANSFORMER_BODY][0].comm_bytes,
                4 * 2 * 0.75 * message, 1e-12);
    check_close(plain.backward[DL_TRANSFORMER_BODY][DL_RECOMPUTE_FULL].comm_bytes,
                4 * 2 * 0.75 * message, 1e-12);
    check_close(context.collective_bytes, message / 2, 0);
}

/* F-TRANSFORMER-GROUPS: 2 tensor, 2 sequence, 3 data, 4 pipeline ranks. */
static void groups_of_ranks(void **state) {
    struct dl_transformer_split s = split(2, 2, 4, 3);
    struct dl_transformer_group data = dl_transformer_group_of(&s, DL_AXIS_DP),
                                pipe = dl_transformer_group_of(&s, DL_AXIS_PP);
    assert_int_equal(dl_transformer_group_of(&s, DL_AXIS_TP).stride, 1);
    assert_int_equal(dl_transformer_group_of(&s, DL_AXIS_SP).stride, 2);
    assert_int_equal(data.ranks, 6);
    assert_int_equal(data.stride, 2);
    assert_int_equal(pipe.ranks, 4);
    assert_int_equal(pipe.stride, 12);
    s.mapping = DL_MAP_PIPELINE_INSIDE;
    pipe = dl_transformer_group_of(&s, DL_AXIS_PP);
    data = dl_transformer_group_of(&s, DL_AXIS_DP);
    assert_int_equal(pipe.stride, 4);
    assert_int_equal(data.stride, 8);
}

/* A pipeline of equal stages by hand: 8 layers of 1 s forward and 2 s backward, 4 stages, so 6 s a
 * stage and micro-batch. F-TRANSFORMER-BUBBLE, F-TRANSFORMER-ITERATION: 1F1B with m = 8: 8 x 6 + 3
 * x 6 = 66; GPipe the same; interleaved with v = 2: 48 + 9 = 57; asynchronous 48.
 * F-TRANSFORMER-BOUNDARY, 1F1B: the third stage gets the first message after 2, has the answer of
 * the last stage after 2 more, waits for 13 of its other 14 (one came meanwhile), and 2 lead back
 * to the first stage: 19. GPipe: 8 + 2 each way. Asynchronous: two for each micro-batch.
 * F-TRANSFORMER-IN-FLIGHT, F-TRANSFORMER-MEMORY: 4, 8, 4 (1 + 3/8) = 5.5 micro-batches. */
static void schedules(void **state) {
    struct gpt g;
    make(&g);
    struct dl_transformer_micro_batch cell = {.micro_samples = 0};
    struct dl_transformer_mapping layout = {.split = split(1, 1, 4, 1),
                                            .replicas = 1,
                                            .stage_layers = 2,
                                            .end_layers = {2, 2},
                                            .all_layers = 8,
                                            .buckets = 1};
    cell.forward[DL_TRANSFORMER_BODY].device_s = cell.forward[DL_TRANSFORMER_BODY].step_s = 1;
    cell.backward[DL_TRANSFORMER_BODY][0].device_s = cell.backward[DL_TRANSFORMER_BODY][0].step_s =
        2;
    cell.kept_bytes[DL_TRANSFORMER_BODY][0] = 100;
    const struct dl_collective_time boundary = {.time_s = 0.001};
    const struct {
        enum dl_schedule schedule;
        int64_t v;
        double seconds, messages, flight;
    } cases[] = {
        {DL_1F1B, 1, 66, 19, 4},
        {DL_GPIPE, 1, 66, 20, 8},
        {DL_INTERLEAVED, 2, 57, 29, 5.5},
        {DL_ASYNC, 1, 48, 16, 4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct dl_transformer_choice choice = {
            .micro_batches = 8, .schedule = cases[i].schedule, .virtual_stages = cases[i].v};
        struct dl_transformer_result r;
        dl_transformer_evaluate(&g.tf, &layout, &cell, &boundary, &choice, &r);
        check_close(r.iteration.compute_s + r.evidence.bubble_s, cases[i].seconds, 1e-12);
        check_close(r.boundary_s, cases[i].messages * 0.001, 1e-9);
        check_close(dl_transformer_in_flight(&layout, &choice, 0), cases[i].flight, 1e-12);
        check_close(r.memory.activations_bytes, cases[i].flight * 200, 1e-12);
        check_close(r.iteration.iteration_s,
                    cases[i].seconds + r.evidence.exposed_comm_s + r.iteration.exposed_input_s +
                        r.iteration.overhead_s,
                    1e-12);
    }
}

/* What overlap leaves of 10 s of reduction in 5 buckets behind backward of 6 s: the first is ready
 * after 1.2 s, the lane is busy from then on, 5.2 s longer. F-TRANSFORMER-SHARD */
static void overlap_leaves(void **state) {
    struct gpt g;
    make(&g);
    g.f.framework.sync.overlaps_backward = true;
    g.f.framework.host.iteration_s = 0;
    struct dl_transformer_micro_batch cell = {.micro_samples = 0};
    struct dl_transformer_mapping layout = {.split = split(1, 1, 1, 4),
                                            .replicas = 4,
                                            .stage_layers = 3,
                                            .unit_elements = {0, 1, 0},
                                            .buckets = 5};
    const struct dl_collective_time none = {0};
    const struct dl_transformer_choice choice = {.micro_batches = 1, .virtual_stages = 1};
    struct dl_transformer_result r;
    layout.reduce.time_s = 10;
    cell.backward[DL_TRANSFORMER_BODY][0].step_s = cell.backward[DL_TRANSFORMER_BODY][0].device_s =
        2;
    dl_transformer_evaluate(&g.tf, &layout, &cell, &none, &choice, &r);
    check_close(r.data_exposed_s, 5.2, 1e-12);
    check_close(r.data_s, 10, 1e-12);
}

/* One layer on one rank is what its kinds' kernels take: F-TRANSFORMER-LAYER equals the layers'
 * costs of data parallelism. */
static void one_rank_is_data(void **state) {
    struct gpt g;
    make(&g);
    struct dl_prediction data, tensor;
    struct dl_plan plan = g.f.plan;
    plan.nodes = 1;
    plan.devices_per_node = 1;
    plan.dp = 1;
    plan.batch_per_device_samples = 4;
    const struct dl_predict_options options = {.terms = true};
    struct dl_framework replicates = g.f.framework; /* its plans are never of the stack */
    replicates.splits_layers = replicates.shards = false;
    assert_int_equal(dl_predict(&(struct dl_predict_request){&g.f.system, &g.workload, &replicates,
                                                             &plan, &options, &test_arena},
                                &data, NULL),
                     DL_OK);
    plan.strategy = dl_strategy_find("3d");
    assert_int_equal(
        dl_predict(&(struct dl_predict_request){&g.f.system, &g.workload, &g.f.framework, &plan,
                                                &options, &test_arena},
                   &tensor, NULL),
        DL_OK);
    check_close(tensor.forward_s, data.forward_s, 1e-9);
    check_close(tensor.backward_s, data.backward_s, 1e-9);
    check_close(tensor.update_s, data.update_s, 1e-9);
    check_close(tensor.memory.activations_bytes, data.memory.activations_bytes, 1e-9);
    check_close(tensor.iteration_s, data.iteration_s, 0.02);
    assert_true(tensor.term_count > 8);
    const double most = tensor.max_batch_samples; /* fits, and one more does not */
    for (int more = 0; more < 2; more++) {
        plan.batch_per_device_samples = plan.micro_batch_samples = most + more;
        assert_int_equal(
            dl_predict(&(struct dl_predict_request){&g.f.system, &g.workload, &g.f.framework, &plan,
                                                    &options, &test_arena},
                       &tensor, NULL),
            DL_OK);
        assert_int_equal(tensor.fits, more == 0);
    }
}

/* F-TRANSFORMER-HIDE: a host that needs as long as the device makes the pass 2^(1/8) = 1.0905 times
 * as long; a host of half that, 1.0005 times. */
static void host_and_device(void **state) {
    struct gpt g;
    make(&g);
    struct dl_transformer_micro_batch cell;
    const struct dl_transformer_split s = split(1, 1, 1, 1);
    g.f.framework.host.dispatch_s = 0;
    assert_int_equal(dl_transformer_micro_batch_make(&g.tf, &s, 1, &cell, NULL), DL_OK);
    const struct dl_transformer_pass alone = cell.forward[DL_TRANSFORMER_BODY];
    check_close(alone.step_s, alone.device_s + alone.launches * 1e-6, 1e-12);
    const double factors[] = {1, 0.5}, wanted[] = {1.090507732665258, 1.0004874488165387};
    g.f.device.launch_s = 0;
    for (int i = 0; i < 2; i++) {
        g.f.framework.host.dispatch_s = factors[i] * alone.step_s / alone.launches;
        assert_int_equal(dl_transformer_micro_batch_make(&g.tf, &s, 1, &cell, NULL), DL_OK);
        check_close(cell.forward[DL_TRANSFORMER_BODY].step_s / alone.step_s, wanted[i], 1e-9);
    }
}

/* F-PACED: what a host a millionth slower and faster changes, over that change: of one that hides,
 * one as long as the device, and one that is three times as long. */
static void the_hosts_pace(void **state) {
    struct gpt g;
    make(&g);
    struct dl_transformer_micro_batch cell;
    const struct dl_transformer_split s = split(1, 1, 1, 1);
    g.f.framework.host.dispatch_s = 0;
    assert_int_equal(dl_transformer_micro_batch_make(&g.tf, &s, 1, &cell, NULL), DL_OK);
    const struct dl_transformer_pass alone = cell.forward[DL_TRANSFORMER_BODY];
    check_close(alone.host_bound_s, 0, 0);
    const double factors[] = {0.1, 1, 3}, shares[] = {0, 0.5, 1}, change = 1e-6;
    g.f.device.launch_s = 0;
    for (int i = 0; i < 3; i++) {
        double step_s[2];
        const double dispatch_s = factors[i] * alone.step_s / alone.launches;
        for (int k = 0; k < 2; k++) {
            g.f.framework.host.dispatch_s = dispatch_s * (k == 0 ? 1 - change : 1 + change);
            assert_int_equal(dl_transformer_micro_batch_make(&g.tf, &s, 1, &cell, NULL), DL_OK);
            step_s[k] = cell.forward[DL_TRANSFORMER_BODY].step_s;
        }
        g.f.framework.host.dispatch_s = dispatch_s;
        assert_int_equal(dl_transformer_micro_batch_make(&g.tf, &s, 1, &cell, NULL), DL_OK);
        const struct dl_transformer_pass pass = cell.forward[DL_TRANSFORMER_BODY];
        const double grown = (step_s[1] - step_s[0]) / (2 * change);
        assert_true(fabs(pass.host_bound_s - grown) < 1e-6 * pass.step_s);
        assert_true(fabs(pass.host_bound_s / pass.step_s - shares[i]) < 1e-3);
    }
}

/* F-HOST-BLOCKING: the device has worked for T when the host, which takes T or T/2 for its calls,
 * has waited for every kernel: 2 T and 1.5 T, forward and backward. */
static void blocked_host(void **state) {
    struct gpt g;
    make(&g);
    struct dl_transformer_micro_batch cell;
    const struct dl_transformer_split s = split(1, 1, 1, 1);
    g.f.framework.host.dispatch_s = 0;
    g.tf.input.blocking_launches = true;
    assert_int_equal(dl_transformer_micro_batch_make(&g.tf, &s, 1, &cell, NULL), DL_OK);
    const struct dl_transformer_pass forward = cell.forward[DL_TRANSFORMER_BODY],
                                     back = cell.backward[DL_TRANSFORMER_BODY][DL_RECOMPUTE_FULL];
    check_close(forward.step_s, forward.device_s + forward.launches * 1e-6, 1e-12);
    const double factors[] = {1, 0.5};
    g.f.device.launch_s = 0;
    for (int i = 0; i < 2; i++) {
        const double dispatch_s = factors[i] * forward.step_s / forward.launches;
        g.f.framework.host.dispatch_s = dispatch_s;
        assert_int_equal(dl_transformer_micro_batch_make(&g.tf, &s, 1, &cell, NULL), DL_OK);
        check_close(cell.forward[DL_TRANSFORMER_BODY].step_s / forward.step_s, 1 + factors[i],
                    1e-9);
        check_close(cell.forward[DL_TRANSFORMER_BODY].host_bound_s, factors[i] * forward.step_s,
                    1e-9);
        check_close(cell.backward[DL_TRANSFORMER_BODY][DL_RECOMPUTE_FULL].step_s,
                    back.step_s + back.launches * dispatch_s, 1e-9);
    }
}

/* F-HOST-COUNT: operations of seconds, so that the host decides: each of the four dense layers of
 * the body has 2 calls forward (3 s each on this processor) and 5 nodes backward; a recomputed
 * layer has 8 operations more, each dropout 4, each parameter tensor one. */
static void counted_host(void **state) {
    struct gpt g;
    make(&g);
    struct dl_transformer_micro_batch cell;
    const struct dl_transformer_split s = split(1, 1, 1, 1);
    struct dl_framework *f = &g.f.framework;
    struct dl_host_kind kind = {
        .kind = "dense", .forward = {.call_count = 2}, .backward = {.node_count = 5}};
    const struct dl_host_release counts = {.kinds = &kind, .kind_count = 1};
    struct dl_host_processor processors[] = {{"EPYC", 9, NULL}, {"Xeon", 3, NULL}, {"", 9, NULL}};
    const struct dl_host_table table = {.cost = {.call_s = 1, .operation_s = 10, .node_s = 100},
                                        .processors = processors,
                                        .processor_count = 3};
    f->host.dispatch_s = 1e-9;
    f->host.counts = &counts;
    f->host.table = &table;
    f->transformer.recompute_operation_count = 8;
    f->transformer.dropout_operation_count = 4;
    f->transformer.gradient_operation_count = 1;
    g.f.device.launch_s = 0;
    g.f.system.has_host = true;
    g.f.system.host.cpu = "2x Xeon Gold 6132";
    g.f.system.host.call_scale = NAN;
    assert_int_equal(dl_transformer_micro_batch_make(&g.tf, &s, 1, &cell, NULL), DL_OK);
    const struct dl_transformer_pass *forward = &cell.forward[DL_TRANSFORMER_BODY],
                                     *back = cell.backward[DL_TRANSFORMER_BODY];
    const double tensors = g.tf.tensor_count[DL_TRANSFORMER_BODY], nodes_s = 4 * 5 * 300;
    check_close(forward->step_s, 4 * 2 * 3 + 4 * 30, 1e-6);
    check_close(back[DL_RECOMPUTE_NONE].step_s, nodes_s + 30 * tensors, 1e-6);
    check_close(back[DL_RECOMPUTE_FULL].step_s, nodes_s + 4 * 2 * 3 + 30 * (8 + 4 + tensors), 1e-6);
    g.f.system.host.call_scale = 1; /* of the system's file */
    assert_int_equal(dl_transformer_micro_batch_make(&g.tf, &s, 1, &cell, NULL), DL_OK);
    check_close(forward->step_s, 4 * 2 + 4 * 10, 1e-6);
    f->host.counts = NULL; /* launches alone */
    assert_int_equal(dl_transformer_micro_batch_make(&g.tf, &s, 1, &cell, NULL), DL_OK);
    assert_true(forward->step_s < 0.1);
    f->host.dispatch_s = 0; /* compiled: the host does nothing */
    check_close(dl_dispatch_s(f, &g.f.device), 0, 0);
}

/* What cannot be says why and what is nearest. */
static void impossible(void **state) {
    struct gpt g;
    make(&g);
    const struct {
        const char *strategy;
        int64_t tp, pp, dp;
        double batch, micro;
        const char *says;
    } cases[] = {
        {"tensor", 32, 0, 0, 32, 0, "only 16 attention heads"},
        {"3d", 1, 8, 4, 32, 0, "only 4 layers"},
        {"3d", 1, 2, 16, 32, 3, "nearest --global-batch is 48"},
        {"data+tensor", 1, 1, 32, 32, 5, "does not divide"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct dl_err err = {0};
        struct dl_plan plan = g.f.plan;
        plan.strategy = dl_strategy_find(cases[i].strategy);
        plan.nodes = 8;
        plan.devices_per_node = 4;
        plan.tp = cases[i].tp;
        plan.pp = cases[i].pp;
        plan.dp = cases[i].dp;
        plan.batch_per_device_samples = 0;
        plan.global_batch_samples = cases[i].batch;
        plan.micro_batch_samples = cases[i].micro;
        assert_int_equal(dl_plan_complete(&g.f.system, &g.workload, &g.f.framework, &plan, &err),
                         DL_ERR_USAGE);
        if (strstr(err.message, cases[i].says) == NULL) fail_msg("case %zu: %s", i, err.message);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_stack),   cmocka_unit_test(activations_of_a_layer),
        cmocka_unit_test(states_of_zero),    cmocka_unit_test(volumes_of_zero),
        cmocka_unit_test(volumes_of_tensor), cmocka_unit_test(groups_of_ranks),
        cmocka_unit_test(schedules),         cmocka_unit_test(overlap_leaves),
        cmocka_unit_test(one_rank_is_data),  cmocka_unit_test(hybrid_sharding),
        cmocka_unit_test(host_and_device),   cmocka_unit_test(counted_host),
        cmocka_unit_test(the_hosts_pace),    cmocka_unit_test(blocked_host),
        cmocka_unit_test(impossible),
    };
    return cmocka_run_group_tests(tests, NULL, check_free);
}
