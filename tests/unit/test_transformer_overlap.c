/* What hides communication of transformers, uneven stages, and what recomputation and 8-bit
 * training add; each worked by hand. */
#include "model/engine/transformer/micro_batch_builder.h"
#include "model/workload/layer.h"
#include "tests/fake_transformer.h"

static void make_of(struct gpt *g, const char *layers) {
    static struct dl_override overrides[4];
    overrides[0] = (struct dl_override){.key = "layers", .value = layers};
    overrides[1] = (struct dl_override){.key = "seq", .value = "512"};
    overrides[2] = (struct dl_override){.key = "heads", .value = "16"};
    overrides[3] = (struct dl_override){.key = "vocab", .value = "51200"};
    gpt_make(g, overrides, 4);
    g->f.framework.sync.overlaps_backward = true;
    g->f.framework.host.iteration_s = 0;
}

static void set_pass(struct dl_transformer_pass *pass, double seconds) {
    pass->device_s = pass->step_s = seconds;
}

/* F-TRANSFORMER-SHARD, stage 3: 4 layers of 2 s forward and 4 s backward; gathers of 1 s,
 * reductions of 2 s a layer, root 0.5 s and 0.25 s. Forward: the root's and the first gather show,
 * 1.5 s, the other 3 s hide behind 8 s. Backward: the last layer is still gathered; 3 gathers and 3
 * reductions hide, the last reduction and the root's show, 2.25 s. With backward of 1 s a layer the
 * lane never waits: 3 x 1 + 4 x 2 + 0.25 - 4 = 7.25. */
static void layers_are_gathered_ahead(void **state) {
    struct gpt g;
    make_of(&g, "4");
    struct dl_transformer_micro_batch cell = {.micro_samples = 0};
    struct dl_transformer_mapping layout = {.split = gpt_split(1, 1, 1, 1, 4),
                                            .shard = 3,
                                            .replicas = 4,
                                            .shard_ranks = 4,
                                            .stage_layers = 4,
                                            .buckets = 1,
                                            .gather = {.time_s = 0.5},
                                            .reduce = {.time_s = 0.25},
                                            .unit_gather = {.time_s = 1},
                                            .unit_reduce = {.time_s = 2}};
    const struct dl_collective_time none = {0};
    const struct dl_transformer_choice choice = {.micro_batches = 3, .virtual_stages = 1};
    struct dl_transformer_result r;
    set_pass(&cell.forward[DL_TRANSFORMER_BODY], 2);
    set_pass(&cell.backward[DL_TRANSFORMER_BODY][0], 4);
    dl_transformer_evaluate(&g.tf, &layout, &cell, &none, &choice, &r);
    check_close(r.data_exposed_s, 3 * (1.5 + 2.25), 1e-12);
    check_close(r.data_s, 3 * (4 * (1 + 1 + 2) - 1 + 0.75), 1e-12);
    set_pass(&cell.backward[DL_TRANSFORMER_BODY][0], 1);
    dl_transformer_evaluate(&g.tf, &layout, &cell, &none, &choice, &r);
    check_close(r.data_exposed_s, 3 * (1.5 + 7.25), 1e-12);
    /* F-TRANSFORMER-ACCUMULATE: 0.5 s a layer and micro-batch where there are several */
    layout.accumulate_s = 0.5;
    dl_transformer_evaluate(&g.tf, &layout, &cell, &none, &choice, &r);
    check_close(r.evidence.backward_s, 3 * 4 * 1.5, 1e-12);
    layout.accumulate_s = 0;
    /* copies of 0.1 s out, twice, and 0.2 s in, for each layer and micro-batch */
    layout.copy_out_s = 0.1;
    layout.copy_in_s = 0.2;
    dl_transformer_evaluate(&g.tf, &layout, &cell, &none, &choice, &r);
    check_close(r.evidence.forward_s, 3 * 4 * 2.1, 1e-12);
    check_close(r.evidence.backward_s, 3 * 4 * 1.3, 1e-12);
}

/* F-SLOWDOWN: two layers of 4 s forward, the second's gather of 2 s (the first one's shows) holds a
 * quarter: 1.5 s are done beside it, 2.5 s after it, 0.5 s more. With gathers of 6 s the first
 * layer takes 4/0.75 s and waits 2/3 s. Backward, 8 s each, the first layer's gather of 2 or 6 s
 * runs beside the second layer. */
static void kernels_during_gathers(void **state) {
    struct gpt g;
    make_of(&g, "2");
    struct dl_transformer_micro_batch cell = {.micro_samples = 0};
    struct dl_transformer_mapping layout = {.split = gpt_split(1, 1, 1, 1, 4),
                                            .shard = 3,
                                            .replicas = 4,
                                            .shard_ranks = 4,
                                            .stage_layers = 2,
                                            .buckets = 1,
                                            .slowdown_frac = 0.25,
                                            .unit_gather = {.time_s = 2}};
    const struct dl_collective_time none = {0};
    const struct dl_transformer_choice choice = {.micro_batches = 1, .virtual_stages = 1};
    struct dl_transformer_result r;
    set_pass(&cell.forward[DL_TRANSFORMER_BODY], 4);
    set_pass(&cell.backward[DL_TRANSFORMER_BODY][0], 8);
    dl_transformer_evaluate(&g.tf, &layout, &cell, &none, &choice, &r);
    check_close(r.data_exposed_s, 2, 1e-12);
    check_close(r.slowdown_s, 0.5 + 0.5, 1e-12);
    layout.unit_gather.time_s = 6;
    dl_transformer_evaluate(&g.tf, &layout, &cell, &none, &choice, &r);
    check_close(r.data_exposed_s, 6 + 2.0 / 3, 1e-12);
    check_close(r.slowdown_s, 4.0 / 3 + 1.5, 1e-12);
    check_close(r.evidence.backward_s, 16 + r.slowdown_s, 1e-12);
}

/* F-TRANSFORMER-SHARD, stage 3: 3 layers of 2 s forward and 4 s backward, 1 s before them each way,
 * a head of 2 and 3 s; gathers of 3 s, reductions of 2 s, root 1 and 0.5 s. Forward: root 0 to 1,
 * gathers 1 to 4 (behind the 1 s before the layers), 4 to 7, 7 to 10, layers from 4, 7 and 10:
 * waits of 1 + 2 + 1 + 1. Backward: layers from 3 and 7; the gather for the first one, asked for at
 * 7, comes after the reduction of 7 to 9 and ends at 12, 1 s late; its reduction takes 16 to 18,
 * the root's ends at 18.5, kernels at 17: waits of 1 + 1.5. */
static void prefetch_hides_part(void **state) {
    struct gpt g;
    make_of(&g, "4");
    struct dl_transformer_micro_batch cell = {.micro_samples = 0};
    struct dl_transformer_mapping layout = {
        .split = gpt_split(1, 1, 1, 1, 4),
        .shard = 3,
        .replicas = 4,
        .shard_ranks = 4,
        .stage_layers = 3,
        .buckets = 1,
        .gather = {.time_s = 1, .bandwidth_s = 1, .limit = "intra"},
        .reduce = {.time_s = 0.5, .bandwidth_s = 0.5, .limit = "inter"},
        .unit_gather = {.time_s = 3, .bandwidth_s = 3, .limit = "intra"},
        .unit_reduce = {.time_s = 2, .bandwidth_s = 2, .limit = "inter"}};
    const struct dl_collective_time none = {0};
    const struct dl_transformer_choice choice = {.micro_batches = 2, .virtual_stages = 1};
    const double seconds[] = {1, 2, 2, 1, 4, 3};
    struct dl_transformer_result r;
    for (int p = 0; p < DL_TRANSFORMER_PARTS; p++) {
        set_pass(&cell.forward[p], seconds[p]);
        set_pass(&cell.backward[p][0], seconds[3 + p]);
        cell.forward[p].by_limit_s[DL_LIMIT_COMPUTE] = seconds[p];
        cell.backward[p][0].by_limit_s[DL_LIMIT_MEMORY] = seconds[3 + p];
    }
    dl_transformer_evaluate(&g.tf, &layout, &cell, &none, &choice, &r);
    check_close(r.data_exposed_s, 2 * (5 + 2.5), 1e-12);
    /* the path: root, 3 gathers, layer 3, head; head, layer 3, its reduction, the gather for
     * layer 1, layer 1, its reduction and the root's */
    const struct dl_resource_use *path = &r.evidence.path;
    check_close(path->s[DL_ON_NODE_LINKS], 2 * (1 + 3 * 3 + 3), 1e-12);
    check_close(path->s[DL_ON_NETWORK], 2 * (2 + 2 + 0.5), 1e-12);
    check_close(path->s[DL_ON_ARITHMETIC], 2 * (2 + 2), 1e-12);
    check_close(path->s[DL_ON_MEMORY], 2 * (3 + 4 + 4), 1e-12);
}

/* F-TRANSFORMER-SHARD, stage 2: 2 layers of 2 s forward and 3 s backward, sums of 8 s in two
 * buckets: 3 to 7 and 7 to 11, 5 s after 6 s of backward, in each of 3 micro-batches. Parameters of
 * 5 s after the update, or in two buckets: 2.5 s before the first layer, 0.5 s before the other. */
static void two_buckets(void **state) {
    struct gpt g;
    make_of(&g, "4");
    struct dl_transformer_micro_batch cell = {.micro_samples = 0};
    struct dl_transformer_mapping layout = {.split = gpt_split(1, 1, 1, 1, 4),
                                            .shard = 2,
                                            .replicas = 4,
                                            .shard_ranks = 4,
                                            .stage_layers = 2,
                                            .unit_elements = {0, 1, 0},
                                            .buckets = 2,
                                            .reduce = {.time_s = 8},
                                            .gather = {.time_s = 5}};
    const struct dl_collective_time none = {0};
    const struct dl_transformer_choice choice = {.micro_batches = 3, .virtual_stages = 1};
    struct dl_transformer_result r;
    set_pass(&cell.forward[DL_TRANSFORMER_BODY], 2);
    set_pass(&cell.backward[DL_TRANSFORMER_BODY][0], 3);
    dl_transformer_evaluate(&g.tf, &layout, &cell, &none, &choice, &r);
    check_close(r.data_exposed_s, 3 * 5 + 5, 1e-12);
    g.f.framework.transformer.overlaps_gather = true;
    dl_transformer_evaluate(&g.tf, &layout, &cell, &none, &choice, &r);
    check_close(r.data_exposed_s, 3 * 5 + 3, 1e-12);
    check_close(dl_resource_sum_s(&r.evidence.path), 3 * (4 + 6 + 5) + 3, 1e-12);
}

/* A pipeline whose stages shard their layers: 2 stages of 2 layers of 2 and 4 s, gathers of 1 s and
 * reductions of 2 s. A forward pass takes 1 + 4 s, a backward pass 8 + 2 s; 4 micro-batches on 2
 * equal stages 5 x 15 s, of which a stage works 48, waits 12 for its messages and 15 for the other.
 */
static void sharded_pipeline(void **state) {
    struct gpt g;
    make_of(&g, "4");
    struct dl_transformer_micro_batch cell = {.micro_samples = 0};
    struct dl_transformer_mapping layout = {.split = gpt_split(1, 1, 1, 2, 4),
                                            .shard = 3,
                                            .replicas = 4,
                                            .shard_ranks = 4,
                                            .stage_layers = 2,
                                            .end_layers = {2, 2},
                                            .all_layers = 4,
                                            .buckets = 1,
                                            .unit_gather = {.time_s = 1},
                                            .unit_reduce = {.time_s = 2}};
    const struct dl_collective_time none = {0};
    const struct dl_transformer_choice choice = {.micro_batches = 4, .virtual_stages = 1};
    struct dl_transformer_result r;
    set_pass(&cell.forward[DL_TRANSFORMER_BODY], 2);
    set_pass(&cell.backward[DL_TRANSFORMER_BODY][0], 4);
    dl_transformer_evaluate(&g.tf, &layout, &cell, &none, &choice, &r);
    check_close(r.evidence.forward_s + r.evidence.backward_s, 48, 1e-12);
    check_close(r.data_exposed_s, 12, 1e-12);
    check_close(r.evidence.bubble_s, 15, 1e-12);
    check_close(dl_resource_sum_s(&r.evidence.path), 75, 1e-12);
    check_close(r.evidence.path.s[DL_ON_STAGES], 15, 1e-12);
}

/* F-TRANSFORMER-SHARD, stage 1: gradients of 10 s in 5 buckets behind 6 s of backward, from 1.2 s
 * on: 5.2 s. Parameters of 5 s, or in 5 buckets behind 3 s of forward: 1 s before the first fifth,
 * 0.4 s before each other one. On 4 stages of 2 parts three passes of others, 9 and 4.5 s, are
 * between the parts: buckets from 1.2, 3.2, 12.6, 14.6 and 16.6 s, 3.6 s after 15 s; parameters
 * show 1 + 0.4 + 0.4, the last two come behind the passes of others. */
static void distributed_optimizer(void **state) {
    struct gpt g;
    make_of(&g, "4");
    struct dl_transformer_micro_batch cell = {.micro_samples = 0};
    struct dl_transformer_mapping layout = {.split = gpt_split(1, 1, 1, 1, 4),
                                            .shard = 1,
                                            .replicas = 4,
                                            .shard_ranks = 4,
                                            .stage_layers = 3,
                                            .end_layers = {3, 3},
                                            .all_layers = 12,
                                            .unit_elements = {0, 1, 0},
                                            .buckets = 5,
                                            .reduce = {.time_s = 10},
                                            .gather = {.time_s = 5}};
    const struct dl_collective_time none = {0};
    struct dl_transformer_choice choice = {.micro_batches = 8, .virtual_stages = 1};
    struct dl_transformer_result r;
    set_pass(&cell.forward[DL_TRANSFORMER_BODY], 1);
    set_pass(&cell.backward[DL_TRANSFORMER_BODY][0], 2);
    dl_transformer_evaluate(&g.tf, &layout, &cell, &none, &choice, &r);
    check_close(r.data_exposed_s, 5.2 + 5, 1e-12);
    g.f.framework.transformer.overlaps_gather = true;
    dl_transformer_evaluate(&g.tf, &layout, &cell, &none, &choice, &r);
    check_close(r.data_exposed_s, 5.2 + 2.6, 1e-12);
    layout.split = gpt_split(1, 1, 1, 4, 4);
    choice.schedule = DL_INTERLEAVED;
    choice.virtual_stages = 2;
    dl_transformer_evaluate(&g.tf, &layout, &cell, &none, &choice, &r);
    check_close(r.data_exposed_s, 3.6 + 1.8, 1e-12);
}

/* F-TRANSFORMER-STAGES: 126 layers on 16 stages are 14 of 8 between two of 7; 70 on 12 are 5, ten
 * of 6, 5; 7 on 2 are 4 and 3. 7 layers of 3 s on 4 stages (2, 2, 2, 1), head 1 s: m = 8
 * micro-batches of 6 s on the slowest. The third stage gets the first after 4 s, has its gradient
 * 2 s after the second forward pass, never waits again and ends at 54; two backward passes of 4 s
 * follow: 62. */
static void uneven_stages(void **state) {
    const struct {
        double layers, stages, first, last;
    } cases[] = {{126, 16, 7, 7}, {70, 12, 5, 5}, {7, 2, 4, 3}, {8, 4, 2, 2}, {7, 4, 2, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        check_close(dl_transformer_end_layers(cases[i].layers, cases[i].stages, 0), cases[i].first,
                    0);
        check_close(dl_transformer_end_layers(cases[i].layers, cases[i].stages, 1), cases[i].last,
                    0);
    }
    struct gpt g;
    make_of(&g, "7");
    struct dl_transformer_mapping layout;
    struct dl_transformer_micro_batch cell = {.micro_samples = 1};
    const struct dl_transformer_split s = gpt_split(1, 1, 1, 4, 1);
    const struct dl_collective_time none = {0};
    const struct dl_transformer_choice choice = {.micro_batches = 8, .virtual_stages = 1};
    struct dl_transformer_result r;
    assert_int_equal(dl_transformer_mapping_make(&g.tf, &s, 0, &layout, NULL), DL_OK);
    set_pass(&cell.forward[DL_TRANSFORMER_BODY], 1);
    set_pass(&cell.backward[DL_TRANSFORMER_BODY][0], 2);
    set_pass(&cell.forward[DL_TRANSFORMER_AFTER], 1);
    dl_transformer_evaluate(&g.tf, &layout, &cell, &none, &choice, &r);
    check_close(r.evidence.forward_s + r.evidence.backward_s, 48, 1e-12);
    check_close(r.evidence.bubble_s, 14, 1e-12);
    /* 12 h^2 + 13 h a layer; the last stage has one, its norm and the tied embedding */
    const double layer = 12 * 1024.0 * 1024 + 13 * 1024;
    check_close(layout.parameters[1], layer + 2 * 1024 + 51200 * 1024.0, 1e-12);
    check_close(dl_transformer_stage_in_flight(&layout, &choice, 1), 3, 0);
}

/* F-TRANSFORMER-STAGES: 3 layers of another kind before those of the body. With 7 of these, 5 + 5
 * on 2 stages, so 2 of the body and 5; on 4 stages they fill the first, the others take 3 + 2 + 2.
 * With 11, 3 + 4 + 4 + 3 on 4 stages, so none of the body on the first. */
static void leading_layers_count(void **state) {
    const struct {
        const char *body;
        int64_t stages;
        double most, first, last;
    } cases[] = {{"7", 1, 7, 7, 7}, {"7", 2, 5, 2, 5}, {"7", 4, 3, 0, 2}, {"11", 4, 4, 0, 3}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct gpt g;
        make_of(&g, cases[i].body);
        g.tf.dense_prefix_layers = 3;
        struct dl_transformer_mapping layout;
        const struct dl_transformer_split s = gpt_split(1, 1, 1, cases[i].stages, 1);
        assert_int_equal(dl_transformer_mapping_make(&g.tf, &s, 0, &layout, NULL), DL_OK);
        check_close(layout.stage_layers, cases[i].most, 0);
        check_close(layout.end_layers[0], cases[i].first, 0);
        check_close(layout.end_layers[1], cases[i].last, 0);
    }
}

/* F-TRANSFORMER-BOUNDARY: 4 stages of 2 parts, 8 micro-batches, messages of 0.1 s: 29 of the 64
 * of a stage show where it waits for each, 14 where they overlap with its work: those of the first
 * and of the last micro-batches, which find no other pass to hide behind. Messages of 5 s outlast a
 * part's (3 + 6)/4 s: the links work without a pause, 186 s. By a simulation of every pass written
 * apart (test_oracle_pipeline has one). */
static void messages_between_parts(void **state) {
    struct gpt g;
    make_of(&g, "4");
    struct dl_transformer_micro_batch cell = {.micro_samples = 0};
    struct dl_transformer_mapping layout = {.split = gpt_split(1, 1, 1, 4, 1),
                                            .replicas = 1,
                                            .stage_layers = 3,
                                            .end_layers = {3, 3},
                                            .all_layers = 12,
                                            .buckets = 1};
    struct dl_collective_time boundary = {.time_s = 0.1};
    const struct dl_transformer_choice choice = {
        .micro_batches = 8, .schedule = DL_INTERLEAVED, .virtual_stages = 2};
    struct dl_transformer_result r;
    set_pass(&cell.forward[DL_TRANSFORMER_BODY], 1);
    set_pass(&cell.backward[DL_TRANSFORMER_BODY][0], 2);
    dl_transformer_evaluate(&g.tf, &layout, &cell, &boundary, &choice, &r);
    check_close(r.boundary_s, 2.9, 1e-9);
    g.f.framework.transformer.p2p_overlap = true;
    dl_transformer_evaluate(&g.tf, &layout, &cell, &boundary, &choice, &r);
    check_close(r.boundary_s, 1.4, 1e-9);
    boundary.time_s = 5;
    dl_transformer_evaluate(&g.tf, &layout, &cell, &boundary, &choice, &r);
    check_close(r.boundary_s, 186 - 85.5, 1e-9);
}

/* F-HOST-BLOCKING: what the three tests above hide shows in full. Stage 3: forward the root and 4
 * layers, 0.5 + 4 x 1, backward 3 x 1 + 4 x 2 + 0.25; stage 1: 10 + 5; messages: 29 x 0.1. */
static void nothing_hides_behind_a_blocked_host(void **state) {
    struct gpt g;
    make_of(&g, "4");
    struct dl_transformer_micro_batch cell = {.micro_samples = 0};
    struct dl_transformer_mapping layout = {.split = gpt_split(1, 1, 1, 1, 4),
                                            .shard = 3,
                                            .replicas = 4,
                                            .shard_ranks = 4,
                                            .stage_layers = 4,
                                            .end_layers = {3, 3},
                                            .all_layers = 12,
                                            .buckets = 1,
                                            .gather = {.time_s = 0.5},
                                            .reduce = {.time_s = 0.25},
                                            .unit_gather = {.time_s = 1},
                                            .unit_reduce = {.time_s = 2}};
    struct dl_collective_time boundary = {.time_s = 0.1};
    struct dl_transformer_choice choice = {.micro_batches = 3, .virtual_stages = 1};
    struct dl_transformer_result r;
    g.tf.input.blocking_launches = true;
    g.f.framework.transformer.overlaps_gather = true;
    g.f.framework.transformer.p2p_overlap = true;
    set_pass(&cell.forward[DL_TRANSFORMER_BODY], 2);
    set_pass(&cell.backward[DL_TRANSFORMER_BODY][0], 4);
    dl_transformer_evaluate(&g.tf, &layout, &cell, &boundary, &choice, &r);
    check_close(r.data_exposed_s, 3 * (0.5 + 4 + 3 + 4 * 2 + 0.25), 1e-12);
    layout.shard = 1;
    layout.buckets = 5;
    layout.reduce.time_s = 10;
    layout.gather.time_s = 5;
    dl_transformer_evaluate(&g.tf, &layout, &cell, &boundary, &choice, &r);
    check_close(r.data_exposed_s, 10 + 5, 1e-12);
    layout.split = gpt_split(1, 1, 1, 4, 1);
    layout.replicas = 1;
    layout.stage_layers = 3;
    choice = (struct dl_transformer_choice){
        .micro_batches = 8, .schedule = DL_INTERLEAVED, .virtual_stages = 2};
    dl_transformer_evaluate(&g.tf, &layout, &cell, &boundary, &choice, &r);
    check_close(r.boundary_s, 2.9, 1e-9);
}

/* F-TRANSFORMER-TENSOR-OVERLAP: a layer split by columns on 4 ranks with GEMMs of 4 s forward, 3 s
 * and 2 s backward; its input is gathered in 2 s, its gradient scattered in 5 s. Exposed forward:
 * 2, 2, max(0, 2 - 4 x 3/4) = 0. F-TRANSFORMER-CONTENTION: 8 channels of 80 units take a tenth of
 * what GEMMs next to them run on. Backward: 5; behind GEMMs: the gather hides in 3 s, which take
 * 0.2 s more, and the GEMM of 2 s takes 2/0.9 s next to the scatter, which shows 5 - 2/0.9. The
 * critical path has the scatter alone, and of the gather the 0.2 s. By rows in pieces: the last of
 * four pieces of the scatter shows 5/4 s, the others 3/4 (5 - 4/0.9); the gather hides in 3 s. */
static void tensor_collectives_hide(void **state) {
    struct gpt g;
    make_of(&g, "4");
    const struct dl_transformer_split s = {.tp = 4, .sequence_parallel = true, .sp = 1, .ep = 1};
    struct dl_transformer_micro_batch cell = {.gather = {.time_s = 2, .channels = 8},
                                              .scatter = {.time_s = 5, .channels = 8}};
    const struct dl_micro_batch_builder m = {.tf = &g.tf, .split = &s, .micro_batch = &cell};
    const struct {
        int overlap;
        enum dl_transformer_role role;
        double forward_s, backward_s, lost_s, path_s; /* lost_s, path_s: backward */
        bool blocked; /* F-HOST-BLOCKING: backward the input's second gather, 2 s, shows too */
    } cases[] = {
        {DL_TENSOR_EXPOSED, DL_TRANSFORMER_COLUMN, 2, 5, 0, 5, false},
        {DL_TENSOR_BACKWARD, DL_TRANSFORMER_COLUMN, 2, 5 - 2 / 0.9, 0.2 + 2 / 9.0, 5.2, false},
        {DL_TENSOR_PIECES, DL_TRANSFORMER_COLUMN, 0, 5 - 2 / 0.9, 0.2 + 2 / 9.0, 5.2, false},
        {DL_TENSOR_BACKWARD, DL_TRANSFORMER_ROW, 5, 2, 0, 2, false},
        {DL_TENSOR_PIECES, DL_TRANSFORMER_ROW, 5 - 3 / 0.9, 0, 0.2, 0.2, false},
        {DL_TENSOR_BACKWARD, DL_TRANSFORMER_COLUMN, 2, 7, 0, 7, true},
        {DL_TENSOR_PIECES, DL_TRANSFORMER_ROW, 5, 2, 0, 2, true},
    };
    g.f.device.unit_count = 80;
    g.f.system.device = &g.f.device;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct dl_transformer_layer l = {.role = cases[i].role,
                                         .gathers = cases[i].role == DL_TRANSFORMER_COLUMN};
        struct dl_transformer_layer_passes p = {
            .forward = {.device_s = 4}, .data = {.device_s = 3}, .weights = {.device_s = 2}};
        g.f.framework.transformer.tensor_overlap = cases[i].overlap;
        g.tf.input.blocking_launches = cases[i].blocked;
        dl_transformer_add_exchanges(&m, &l, &p);
        check_close(p.forward.comm_s, cases[i].forward_s, 1e-12);
        check_close(p.data.comm_s, cases[i].backward_s, 1e-12);
        check_close(p.data.device_s, 3 + cases[i].lost_s, 1e-12);
        check_close(dl_resource_sum_s(&p.data.comm), cases[i].path_s, 1e-12);
    }
}

static struct dl_transformer_pass forward_of(const struct gpt *g, const char *kind,
                                             const struct dl_transformer_split *s) {
    struct dl_transformer_micro_batch cell = {.micro_samples = 1};
    const struct dl_micro_batch_builder m = {
        .tf = &g->tf,
        .split = s,
        .micro_batch = &cell,
        .micro_samples = 1,
        .facts = {.precision = g->tf.precision, .attention = g->f.plan.attention}};
    struct dl_transformer_pass pass = {0};
    for (int i = 0; i < g->tf.layer_count; i++) {
        const struct dl_transformer_layer *l = &g->tf.layers[i];
        const struct dl_layer layer = dl_transformer_layer_at(&g->tf, l, s);
        if (l->part != DL_TRANSFORMER_BODY || strcmp(layer.kind->name, kind) != 0) continue;
        dl_transformer_add_kernels(&m, l, &layer, DL_FORWARD, 1, &pass);
    }
    return pass;
}

/* F-TRANSFORMER-CONTEXT: causal scores on 4 ranks: a quarter of the flop each (s^2/32 of the causal
 * share, 3 x s^2/32 without a mask), within what the diagonal has more. The ring: 3 messages of 2 s
 * behind 8/4 = 2 s forward, 6 behind 12/8 = 1.5 s backward: 0 and 6 x 0.5 s. */
static void context_shares(void **state) {
    struct gpt g;
    make_of(&g, "4");
    g.f.plan.attention = DL_ATTENTION_FLASH;
    const struct dl_transformer_split one = gpt_split(1, 1, 1, 1, 1),
                                      four = gpt_split(1, 4, 1, 1, 1);
    struct dl_transformer_pass all = forward_of(&g, "attention", &one),
                               part = forward_of(&g, "attention", &four);
    assert_true(all.flop > 0);
    check_close(part.flop / all.flop, 0.25, 0.01);
    for (int i = 0; i < g.tf.layer_count; i++) {
        const struct dl_transformer_layer *l = &g.tf.layers[i];
        if (strcmp(g.workload.layers[l->index].kind->name, "attention") != 0) continue;
        struct dl_transformer_micro_batch cell = {.micro_samples = 1};
        const struct dl_micro_batch_builder m = {
            .tf = &g.tf, .split = &four, .micro_batch = &cell, .ring = {.time_s = 2}};
        struct dl_transformer_layer_passes p = {.forward = {.device_s = 8},
                                                .data = {.device_s = 12}};
        dl_transformer_add_exchanges(&m, l, &p);
        check_close(p.forward.comm_s, 0, 1e-12);
        check_close(p.data.comm_s, 3, 1e-12);
    }
}

/* F-TRANSFORMER-RECOMPUTE: operations: all but attention and half of the linear layers; blocks: a
 * third of the forward pass. */
static void selective_recomputation(void **state) {
    struct gpt g;
    make_of(&g, "4");
    const struct dl_transformer_split one = gpt_split(1, 1, 1, 1, 1);
    const double linear = forward_of(&g, "dense", &one).device_s,
                 attention = forward_of(&g, "attention", &one).device_s;
    struct dl_transformer_micro_batch cell;
    struct dl_transformer_policy *policy = &g.f.framework.transformer;
    policy->selective = DL_SELECTIVE_OPERATIONS;
    policy->selective_frac = 0.5;
    assert_int_equal(dl_transformer_micro_batch_make(&g.tf, &one, 1, &cell, NULL), DL_OK);
    const struct dl_transformer_pass *back = cell.backward[DL_TRANSFORMER_BODY];
    const double forward = cell.forward[DL_TRANSFORMER_BODY].device_s;
    check_close(back[DL_RECOMPUTE_SELECTIVE].device_s - back[DL_RECOMPUTE_NONE].device_s,
                forward - attention - linear / 2, 1e-9);
    policy->selective = DL_SELECTIVE_BLOCKS;
    policy->selective_frac = 1.0 / 3;
    assert_int_equal(dl_transformer_micro_batch_make(&g.tf, &one, 1, &cell, NULL), DL_OK);
    check_close(back[DL_RECOMPUTE_SELECTIVE].device_s - back[DL_RECOMPUTE_NONE].device_s,
                forward / 3, 1e-9);
}

/* What a layer repeats by operations / its forward pass without half of the linear layers. */
static double repeated_frac(struct gpt *g, const struct dl_transformer_split *one) {
    struct dl_transformer_micro_batch cell;
    const double linear = forward_of(g, "dense", one).device_s;
    assert_int_equal(dl_transformer_micro_batch_make(&g->tf, one, 1, &cell, NULL), DL_OK);
    const struct dl_transformer_pass *back = cell.backward[DL_TRANSFORMER_BODY];
    return (back[DL_RECOMPUTE_SELECTIVE].device_s - back[DL_RECOMPUTE_NONE].device_s) /
           (cell.forward[DL_TRANSFORMER_BODY].device_s - linear / 2);
}

/* PyTorch's list of results that are kept names FlashAttention's, not cuDNN's, which PyTorch
 * chooses on Blackwell: all of the layer but half of its linear layers is repeated. */
static void attention_by_cudnn_is_repeated(void **state) {
    struct gpt g;
    make_of(&g, "4");
    const struct dl_transformer_split one = gpt_split(1, 1, 1, 1, 1);
    struct dl_transformer_policy *policy = &g.f.framework.transformer;
    policy->selective = DL_SELECTIVE_OPERATIONS;
    policy->selective_frac = 0.5;
    policy->attention_library = DL_ATTENTION_SDPA;
    policy->recomputes_cudnn = true;
    g.tf.input.attention = DL_ATTENTION_FLASH;
    g.f.device.architecture = "hopper";
    assert_true(repeated_frac(&g, &one) < 0.99);
    g.f.device.architecture = "blackwell";
    check_close(repeated_frac(&g, &one), 1, 1e-9);
    policy->recomputes_cudnn = false;
    assert_true(repeated_frac(&g, &one) < 0.99);
}

/* A compiler that the framework has makes one kernel of what eager PyTorch runs as many; another
 * one is not there. */
static void compiled_operations(void **state) {
    struct gpt g;
    make_of(&g, "4");
    const struct dl_transformer_split one = gpt_split(1, 1, 1, 1, 1);
    struct dl_transformer_policy *policy = &g.f.framework.transformer;
    double moved_bytes[3];
    static const enum dl_compiler asked[] = {DL_COMPILER_OPEN, DL_COMPILER_XLA,
                                             DL_COMPILER_INDUCTOR};
    g.f.framework.kernels.compiler = DL_COMPILER_INDUCTOR;
    g.f.framework.kernels.gelu = DL_GELU_COMPOSED;
    policy->eager_operations = true;
    for (int i = 0; i < 3; i++) {
        struct dl_transformer_micro_batch cell;
        g.tf.input.compiler = asked[i];
        assert_int_equal(dl_transformer_micro_batch_make(&g.tf, &one, 1, &cell, NULL), DL_OK);
        moved_bytes[i] = cell.forward[DL_TRANSFORMER_BODY].moved_bytes;
    }
    check_close(moved_bytes[1], moved_bytes[0], 1e-12);
    assert_true(moved_bytes[2] < moved_bytes[0]);
}

/* F-TRANSFORMER-CASTS: of the four linear layers of a GPT layer on m = 512 tokens, h = 1024: inputs
 * h, h, h, 4h of which norms write two; weights 12 h^2. Each value is read in 2 bytes and written
 * twice in 1. */
static void casts_of_a_layer(void **state) {
    struct gpt g;
    make_of(&g, "4");
    const struct dl_transformer_split one = gpt_split(1, 1, 1, 1, 1);
    const double m = 512, h = 1024, weights = 12 * h * h;
    struct dl_transformer_policy *policy = &g.f.framework.transformer;
    g.tf.precision = DL_FP8;
    policy->casts = DL_CASTS_FUSED;
    policy->casts_weights_once = true;
    const double none = forward_of(&g, "dense", &one).moved_bytes;
    policy->casts = DL_CASTS_ALL;
    check_close(forward_of(&g, "dense", &one).moved_bytes - none, 4 * 7 * m * h, 1e-9);
    policy->casts = DL_CASTS_AFTER_NORM;
    check_close(forward_of(&g, "dense", &one).moved_bytes - none, 4 * 5 * m * h, 1e-9);
    policy->current_scaling = true;
    check_close(forward_of(&g, "dense", &one).moved_bytes - none, 6 * 5 * m * h, 1e-9);
    policy->current_scaling = policy->casts_weights_once = false;
    check_close(forward_of(&g, "dense", &one).moved_bytes - none, 4 * (5 * m * h + weights), 1e-9);
}

/* F-KERNEL-LOAD: linear layers take load_scale times as long, FlashAttention-2 flash2_scale times.
 */
static void loaded_device(void **state) {
    struct gpt g;
    make_of(&g, "4");
    const struct dl_transformer_split one = gpt_split(1, 1, 1, 1, 1);
    g.f.plan.attention = DL_ATTENTION_FLASH;
    g.f.device.scales.load_scale = g.f.device.scales.flash2_scale = NAN;
    const double linear_s = forward_of(&g, "dense", &one).device_s,
                 attention_s = forward_of(&g, "attention", &one).device_s;
    g.f.device.scales.load_scale = 1.25;
    g.f.device.scales.flash2_scale = 2;
    check_close(forward_of(&g, "dense", &one).device_s, 1.25 * linear_s, 1e-9);
    check_close(forward_of(&g, "attention", &one).device_s, attention_s, 1e-9);
    g.f.framework.transformer.attention_library = DL_ATTENTION_FLASH2;
    check_close(forward_of(&g, "attention", &one).device_s, 2 * attention_s, 1e-9);
    g.f.framework.transformer.attention_library = DL_ATTENTION_SDPA;
    check_close(forward_of(&g, "attention", &one).device_s, 2 * attention_s, 1e-9);
    g.f.device.architecture = "blackwell";    /* cuDNN's kernels */
    g.f.device.scales.attention_scale = 0.75; /* on faster units than those of the samples */
    check_close(forward_of(&g, "attention", &one).device_s, 0.75 * attention_s, 1e-9);
}

/* Eager PyTorch, m = 512 tokens of h = 1024: two RMS norms of 36 bytes an element forward, rotary
 * embedding of queries and keys 20 bytes, gate times value of f = 4096 5 passes of 2 bytes; fused
 * 4, 4 and 6 bytes, and 4 bytes a token and norm for the statistics. */
static void eager_operations(void **state) {
    static struct dl_override overrides[] = {
        {.key = "layers", .value = "4"},    {.key = "seq", .value = "512"},
        {.key = "hidden", .value = "1024"}, {.key = "heads", .value = "16"},
        {.key = "ffn", .value = "4096"},    {.key = "norm", .value = "rmsnorm"},
        {.key = "mlp", .value = "swiglu"},  {.key = "pos", .value = "rope"},
        {.key = "vocab", .value = "51200"}};
    struct gpt g;
    gpt_make(&g, overrides, sizeof overrides / sizeof overrides[0]);
    const double m = 512, h = 1024, f = 4096;
    const struct {
        const char *kind;
        double fused, eager;
    } cases[] = {{"rmsnorm", 2 * (4 * m * h + 4 * m), 2 * 36 * m * h},
                 {"rope", 4 * m * 2 * h, 20 * m * 2 * h},
                 {"swiglu", 6 * m * f, 10 * m * f}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (int eager = 0; eager < 2; eager++) {
            double bytes = 0;
            for (int k = 0; k < g.tf.layer_count; k++) {
                const struct dl_layer *layer = &g.workload.layers[g.tf.layers[k].index];
                if (g.tf.layers[k].part != DL_TRANSFORMER_BODY ||
                    strcmp(layer->kind->name, cases[i].kind) != 0)
                    continue;
                const struct dl_kernel_facts facts = {
                    .precision = DL_BF16, .eager = eager, .unfused_gate = eager};
                struct dl_kernel kernels[DL_LAYER_KERNELS];
                const int n = layer->kind->kernels(layer, &facts, DL_FORWARD, 1, kernels);
                for (int j = 0; j < n; j++)
                    bytes += 2 * (kernels[j].read_elements + kernels[j].write_elements) +
                             kernels[j].extra_bytes;
            }
            check_close(bytes, eager ? cases[i].eager : cases[i].fused, 1e-9);
        }
    }
}

static double norm_bytes(const struct dl_layer *norm, const struct dl_kernel_facts *facts,
                         enum dl_pass pass) {
    struct dl_kernel kernels[DL_LAYER_KERNELS];
    double bytes = 0;
    const int n = norm->kind->kernels(norm, facts, pass, 1, kernels);
    for (int j = 0; j < n; j++)
        bytes +=
            2 * (kernels[j].read_elements + kernels[j].write_elements) + kernels[j].extra_bytes;
    return bytes;
}

/* InternEvo, m = 512 tokens of h = 1024: an RMS norm of fp32 moves 2 + 4 + 4 + 2 bytes an element
 * forward, 2 + 4 + 4 + 4 + 2 and 2 + 4 backward; recomputed, backward has the forward kernels too,
 * with full recomputation once as everything else. */
static void fp32_norm_input(void **state) {
    static struct dl_override overrides[] = {
        {.key = "layers", .value = "4"},    {.key = "seq", .value = "512"},
        {.key = "hidden", .value = "1024"}, {.key = "heads", .value = "16"},
        {.key = "ffn", .value = "4096"},    {.key = "norm", .value = "rmsnorm"},
        {.key = "vocab", .value = "51200"}};
    struct gpt g;
    gpt_make(&g, overrides, sizeof overrides / sizeof overrides[0]);
    const struct dl_kernel_facts facts = {.precision = DL_BF16, .fp32_norm_input = true};
    const struct dl_layer *norm = NULL;
    for (int k = 0; k < g.tf.layer_count && norm == NULL; k++) {
        const struct dl_layer *layer = &g.workload.layers[g.tf.layers[k].index];
        if (strcmp(layer->kind->name, "rmsnorm") == 0) norm = layer;
    }
    assert_non_null(norm);
    const double elements = 512.0 * 1024;
    check_close(norm_bytes(norm, &facts, DL_FORWARD), 12 * elements, 1e-9);
    check_close(norm_bytes(norm, &facts, DL_BACKWARD_DATA), 16 * elements, 1e-9);
    check_close(norm_bytes(norm, &facts, DL_BACKWARD_WEIGHTS), 6 * elements, 1e-9);
    const struct dl_transformer_split one = gpt_split(1, 1, 1, 1, 1);
    struct dl_transformer_micro_batch kept, again;
    assert_int_equal(dl_transformer_micro_batch_make(&g.tf, &one, 1, &kept, NULL), DL_OK);
    g.f.framework.transformer.recomputes_norms = true;
    assert_int_equal(dl_transformer_micro_batch_make(&g.tf, &one, 1, &again, NULL), DL_OK);
    const enum dl_transformer_part body = DL_TRANSFORMER_BODY;
    check_close(again.backward[body][DL_RECOMPUTE_NONE].moved_bytes -
                    kept.backward[body][DL_RECOMPUTE_NONE].moved_bytes,
                2 * norm_bytes(norm, &(struct dl_kernel_facts){.precision = DL_BF16}, DL_FORWARD),
                1e-9);
    check_close(again.backward[body][DL_RECOMPUTE_FULL].moved_bytes,
                kept.backward[body][DL_RECOMPUTE_FULL].moved_bytes, 1e-12);
}

/* F-TRANSFORMER-ACTIVATIONS: with scores on chip a layer keeps 34 s h bytes of a sample
 * (Korthikanti et al. without 5 a s^2), the norms' statistics (16 s) and 4 bytes for each of a
 * heads and query. */
static void flash_keeps_no_scores(void **state) {
    struct gpt g;
    make_of(&g, "4");
    const struct dl_transformer_split one = gpt_split(1, 1, 1, 1, 1);
    double bytes = 0;
    g.tf.input.attention = DL_ATTENTION_FLASH;
    for (int i = 0; i < g.tf.layer_count; i++) {
        if (g.tf.layers[i].part == DL_TRANSFORMER_BODY)
            bytes += gpt_kept_bytes(&g, &g.tf.layers[i], &one, DL_RECOMPUTE_NONE);
    }
    check_close(bytes, 512.0 * 1024 * 34 + 16 * 512 + 4 * 16 * 512, 1e-9);
    /* F-TRANSFORMER-CASTS: 8-bit linear layers keep what two norms (h each) and GELU (4 h) write in
     * one byte an element instead of two */
    g.tf.precision = DL_FP8;
    double narrow_bytes = 0;
    for (int i = 0; i < g.tf.layer_count; i++) {
        if (g.tf.layers[i].part == DL_TRANSFORMER_BODY)
            narrow_bytes += gpt_kept_bytes(&g, &g.tf.layers[i], &one, DL_RECOMPUTE_NONE);
    }
    check_close(bytes - narrow_bytes, 512.0 * 1024 * 6, 1e-9);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_are_gathered_ahead),
        cmocka_unit_test(prefetch_hides_part),
        cmocka_unit_test(kernels_during_gathers),
        cmocka_unit_test(two_buckets),
        cmocka_unit_test(sharded_pipeline),
        cmocka_unit_test(distributed_optimizer),
        cmocka_unit_test(uneven_stages),
        cmocka_unit_test(leading_layers_count),
        cmocka_unit_test(messages_between_parts),
        cmocka_unit_test(nothing_hides_behind_a_blocked_host),
        cmocka_unit_test(tensor_collectives_hide),
        cmocka_unit_test(context_shares),
        cmocka_unit_test(selective_recomputation),
        cmocka_unit_test(attention_by_cudnn_is_repeated),
        cmocka_unit_test(compiled_operations),
        cmocka_unit_test(casts_of_a_layer),
        cmocka_unit_test(loaded_device),
        cmocka_unit_test(flash_keeps_no_scores),
        cmocka_unit_test(eager_operations),
        cmocka_unit_test(fp32_norm_input),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
