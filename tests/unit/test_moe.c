/* A mixture of experts: parameters, multiply-adds, kernels, messages, states; each worked by hand.
 */
#include "model/framework/host_dispatch.h"
#include "model/framework/settings.h"
#include "model/engine/strategies/strategy.h"
#include "model/engine/transformer/micro_batch_builder.h"
#include "model/workload/layer.h"
#include "tests/fake_transformer.h"

static const struct dl_kernel_facts PLAIN = {.precision = DL_FP32};

/* 2 layers, hidden 128, f = 512, 2 heads, 64 tokens, vocabulary 1000; 4 experts, each token takes
 * 2, capacity factor as given. */
static void make(struct gpt *g, const char *capacity) {
    static struct dl_override o[] = {
        {.key = "layers", .value = "2"},   {.key = "hidden", .value = "128"},
        {.key = "heads", .value = "2"},    {.key = "seq", .value = "64"},
        {.key = "vocab", .value = "1000"}, {.key = "experts", .value = "4"},
        {.key = "topk", .value = "2"},     {.key = "capacity"}};
    enum { COUNT = sizeof o / sizeof o[0] };
    o[COUNT - 1].value = capacity;
    gpt_make(g, o, COUNT);
}

static struct dl_transformer_split split(int64_t tp, int64_t ep, int64_t dp) {
    return gpt_split(tp, 1, ep, 1, dp);
}

static const double H = 128, F = 512, E = 4, TOKENS = 64;

/* F-LAYER-MOE: h E + E (2 h f + f + h) parameters and h E + 2 k h f multiply-adds a token in place
 * of 2 h f + f + h and 2 h f. */
static void counts(void **state) {
    struct gpt g;
    make(&g, "1.25");
    const double attention = 4 * H * H + 4 * H, norms = 4 * H, experts = E * (2 * H * F + F + H);
    const double embeddings = 1000 * H + TOKENS * H, head = 2 * H;
    check_close(g.workload.parameters,
                embeddings + head + 2 * (attention + norms + H * E + experts), 0);
    check_close(g.workload.forward_macs_per_sample,
                TOKENS * (1000 * H + 2 * (4 * H * H + 2 * TOKENS * H + H * E + 2 * 2 * H * F)), 0);
    check_close(g.tf.experts, E, 0);
    check_close(g.tf.rows_per_token, 2.5, 0);
    check_close(g.tf.expert_elements[DL_TRANSFORMER_BODY], experts, 0);
    /* bias of the projection, and the router */
    check_close(g.tf.whole_elements[DL_TRANSFORMER_BODY], norms + 2 * H - H + H * E, 0);
}

static const struct dl_transformer_layer *moe_layer(const struct gpt *g) {
    for (int i = 0; i < g->tf.layer_count; i++) {
        if (g->tf.layers[i].role == DL_TRANSFORMER_EXPERTS) return &g->tf.layers[i];
    }
    fail_msg("no experts");
    return NULL;
}

/* 3 samples of 64 tokens, 2 experts each with room for 1.25: 480 rows. All experts here: 4 products
 * of 120 rows; one of 2 expert ranks: 2 products of 240; with 2 tensor ranks f is 256. Work of the
 * experts: 2 x 2 x 480 x h x f; with factor 2.5 twice that. */
static void kernels(void **state) {
    const struct {
        const char *capacity;
        int64_t tp, ep;
        double count, rows, inner;
    } cases[] = {
        {"1.25", 1, 1, 4, 120, 512},
        {"1.25", 1, 2, 2, 240, 512},
        {"1.25", 2, 4, 1, 480, 256},
        {"2.5", 1, 1, 4, 240, 512},
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        struct gpt g;
        struct dl_kernel k[DL_LAYER_KERNELS];
        make(&g, cases[c].capacity);
        const struct dl_transformer_split s = split(cases[c].tp, cases[c].ep, 1);
        const struct dl_layer layer = dl_transformer_layer_at(&g.tf, moe_layer(&g), &s);
        const int n = layer.kind->kernels(&layer, &PLAIN, DL_FORWARD, 3, k);
        assert_int_equal(n, 7);
        check_close(k[0].m, E, 0); /* router: all experts, wherever they are */
        check_close(k[0].n, 192, 0);
        for (int i = 3; i <= 5; i += 2) {
            check_close(k[i].count, cases[c].count, 0);
            check_close(k[i].n, cases[c].rows, 0);
            check_close(k[i].flop, 2 * cases[c].count * cases[c].rows * H * cases[c].inner, 0);
        }
        check_close(k[3].m, cases[c].inner, 0);
        check_close(k[5].m, H, 0);
        double flop = 0; /* backward: twice the products' work */
        const int data = layer.kind->kernels(&layer, &PLAIN, DL_BACKWARD_DATA, 3, k);
        for (int i = 0; i < data; i++) flop += k[i].op == DL_OP_GEMM ? k[i].flop : 0;
        const int weights = layer.kind->kernels(&layer, &PLAIN, DL_BACKWARD_WEIGHTS, 3, k);
        for (int i = 0; i < weights; i++) flop += k[i].op == DL_OP_GEMM ? k[i].flop : 0;
        check_close(
            flop,
            2 * (2 * 192 * H * E + 2 * 2 * cases[c].count * cases[c].rows * H * cases[c].inner),
            1e-12);
    }
}

/* F-TRANSFORMER-EXPERT: 2 all-to-all forward and 2 backward of b s h k c 2 bytes, (e-1)/e of it
 * sent; with 2 tensor ranks besides 2 all-reduces more each way, as a dense feed-forward layer has:
 * one forward, one backward for the experts and as much for attention. */
static void messages(void **state) {
    struct gpt g;
    struct dl_transformer_micro_batch cell;
    make(&g, "1.25");
    const double routed = 3 * TOKENS * H * 2.5 * 2, exchange = 3 * TOKENS * H * 2;
    struct dl_transformer_split s = split(1, 4, 1);
    assert_int_equal(dl_transformer_micro_batch_make(&g.tf, &s, 3, &cell, NULL), DL_OK);
    check_close(cell.route_bytes, routed, 0);
    check_close(cell.forward[DL_TRANSFORMER_BODY].comm_bytes, 2 * 0.75 * routed, 1e-12);
    check_close(cell.backward[DL_TRANSFORMER_BODY][DL_RECOMPUTE_NONE].comm_bytes, 2 * 0.75 * routed,
                1e-12);
    check_close(cell.backward[DL_TRANSFORMER_BODY][DL_RECOMPUTE_FULL].comm_bytes, 4 * 0.75 * routed,
                1e-12);
    check_close(cell.forward[DL_TRANSFORMER_BODY].comm_s, 2 * cell.route.time_s, 1e-12);
    s = split(2, 2, 1);
    assert_int_equal(dl_transformer_micro_batch_make(&g.tf, &s, 3, &cell, NULL), DL_OK);
    check_close(cell.forward[DL_TRANSFORMER_BODY].comm_bytes,
                2 * 0.5 * routed + 2 * (2 * 0.5 * exchange), 1e-12);
    check_close(cell.backward[DL_TRANSFORMER_BODY][DL_RECOMPUTE_NONE].comm_bytes,
                2 * 0.5 * routed + 2 * (2 * 0.5 * exchange), 1e-12);
}

/* F-TRANSFORMER-FOLD: 4 expert ranks, of which 2 are the tensor ranks and 2 data ranks: a rank
 * holds one whole expert, sends the rows of its half of the tokens and gathers none for them; 2
 * further data ranks hold the same. The multiply-adds are those of 2 x 2 ranks that split experts
 * and tokens. */
static void folded(void **state) {
    struct gpt g;
    struct dl_transformer_micro_batch cell, split_cell;
    struct dl_transformer_mapping layout;
    make(&g, "1");
    struct dl_transformer_split s = split(2, 2, 2);
    s.sequence_parallel = true;
    assert_int_equal(dl_transformer_micro_batch_make(&g.tf, &s, 3, &split_cell, NULL), DL_OK);
    s.ep_within_tp_cp = 2;
    assert_int_equal(dl_transformer_expert_ranks(&s), 4);
    assert_int_equal(dl_transformer_expert_replicas(&s), 2);
    const struct dl_transformer_group group = dl_transformer_group_of(&s, DL_AXIS_EP);
    assert_int_equal(group.ranks, 4);
    assert_int_equal(group.stride, 1);
    assert_int_equal(dl_transformer_micro_batch_make(&g.tf, &s, 3, &cell, NULL), DL_OK);
    const double routed = 3 * TOKENS / 2 * H * 2 * 2, whole = 3 * TOKENS * H * 2 * 2,
                 exchange = 3 * TOKENS * H * 2;
    check_close(cell.route_bytes, routed, 1e-12);
    /* beside the exchanges of experts: one gather and one scatter of attention's rows, and of the
     * router's input */
    const double others =
        split_cell.forward[DL_TRANSFORMER_BODY].comm_bytes - 2 * 0.5 * routed - 2 * 0.5 * whole;
    check_close(cell.forward[DL_TRANSFORMER_BODY].comm_bytes, 2 * 0.75 * routed + others, 1e-12);
    assert_true(others >= 2 * 0.5 * exchange);
    /* the router takes the rank's own tokens alone */
    const double flop = cell.forward[DL_TRANSFORMER_BODY].flop,
                 both = split_cell.forward[DL_TRANSFORMER_BODY].flop;
    assert_true(flop < both && flop > both - 2 * 3 * TOKENS * H * E);
    assert_int_equal(dl_transformer_mapping_make(&g.tf, &s, 0, &layout, NULL), DL_OK);
    check_close(layout.experts.parameters, 2 * (2 * H * F + F + H), 1e-12);
    check_close(layout.experts.replicas, 2, 0);
}

/* F-TRANSFORMER-IMBALANCE: 4 expert ranks, the fullest with 3 times the mean: it receives 3 times
 * the rows, computes and keeps 3 times the experts' share; the router has its own tokens alone. 2
 * ranks cannot differ by more than 2, and a capacity leaves no imbalance. */
static void crowded_experts(void **state) {
    struct gpt g;
    struct dl_transformer_micro_batch even, full;
    const struct dl_transformer_split s = split(1, 4, 1), two = split(1, 2, 1);
    make(&g, "0");
    const struct dl_transformer_layer *l = moe_layer(&g);
    g.tf.input.experts.imbalance_ratio = 1;
    struct dl_layer layer = dl_transformer_layer_at(&g.tf, l, &s);
    const double kept = TOKENS * 2 * (H + 2 * F);
    check_close(layer.saved.own_elements, kept + TOKENS * E, 1e-12);
    assert_int_equal(dl_transformer_micro_batch_make(&g.tf, &s, 3, &even, NULL), DL_OK);
    g.tf.input.experts.imbalance_ratio = 3;
    layer = dl_transformer_layer_at(&g.tf, l, &s);
    check_close(layer.saved.own_elements, 3 * kept + TOKENS * E, 1e-12);
    check_close(dl_transformer_rows_per_token(&g.tf, &s), 6, 0);
    check_close(dl_transformer_rows_per_token(&g.tf, &two), 4, 0);
    assert_int_equal(dl_transformer_micro_batch_make(&g.tf, &s, 3, &full, NULL), DL_OK);
    check_close(full.route_bytes, 3 * even.route_bytes, 1e-12);
    /* two GEMMs of 2 h f for each of 2 x 2 more rows of a token */
    const double more =
        full.forward[DL_TRANSFORMER_BODY].flop - even.forward[DL_TRANSFORMER_BODY].flop;
    const double gemms = 3 * TOKENS * 4 * (2 * 2 * H * F);
    assert_true(more >= gemms && more < 1.02 * gemms); /* and the activation between them */
    /* as the framework's file says, where the plan does not */
    g.tf.input.experts.imbalance_ratio = 0;
    g.f.framework.transformer.experts.imbalance_ratio = 1.25;
    check_close(dl_transformer_imbalance(&g.tf, &s), 1.25, 0);
    make(&g, "1");
    g.tf.input.experts.imbalance_ratio = 3;
    check_close(dl_transformer_imbalance(&g.tf, &s), 1, 0);
}

/* One pass of the first layer of experts over 3 samples. */
static struct dl_transformer_pass
expert_pass(const struct gpt *g, const struct dl_transformer_split *s, enum dl_pass which) {
    struct dl_transformer_micro_batch cell = {.micro_samples = 3};
    const struct dl_micro_batch_builder m = {.tf = &g->tf,
                                             .split = s,
                                             .micro_batch = &cell,
                                             .micro_samples = 3,
                                             .facts = {.precision = g->tf.precision}};
    const struct dl_transformer_layer *l = moe_layer(g);
    const struct dl_layer layer = dl_transformer_layer_at(&g->tf, l, s);
    struct dl_transformer_pass pass = {0};
    dl_transformer_add_kernels(&m, l, &layer, which, 1, &pass);
    return pass;
}

static double moved_by_experts(const struct gpt *g, const struct dl_transformer_split *s,
                               enum dl_pass which) {
    return expert_pass(g, s, which).moved_bytes;
}

/* Time of one kernel that reads and writes so many values of 16 bits, and extra bytes. */
static double stream_s(const struct gpt *g, enum dl_pass pass, double reads, double writes,
                       double extra_bytes) {
    struct dl_kernel kernel = dl_kernel_stream(pass, reads, reads, writes);
    struct dl_kernel_time t;
    kernel.extra_bytes = extra_bytes;
    dl_kernel_time(&g->f.device, g->tf.precision, &kernel, &t);
    return t.time_s;
}

/* F-TRANSFORMER-CASTS: experts cast the rows that they read, k h and k f a token, 16 bits to two
 * copies of 8, also where a norm stands before the router, because they move in 16; before
 * PyTorch's grouped kernels a second kernel reads them again where blocks have scales, and weights
 * are cast, too. */
static void casts_of_experts(void **state) {
    struct gpt g;
    const struct dl_transformer_split s = split(1, 2, 1);
    const double rows = 3 * TOKENS * 2 * (H + F), weights = 2 * 2 * H * F;
    static const struct {
        enum dl_precision precision;
        bool grouped;
        double width; /* of an element with its share of a block's scale */
    } cases[] = {{DL_FP8, true, 1},
                 {DL_MXFP8, false, 1 + 1.0 / 32},
                 {DL_MXFP8, true, 1 + 1.0 / 32},
                 {DL_NVFP4, true, 0.5 + 1.0 / 16}};
    make(&g, "0");
    struct dl_transformer_policy *policy = &g.f.framework.transformer;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        g.tf.precision = cases[i].precision;
        policy->experts.grouped_gemms = cases[i].grouped;
        policy->casts = DL_CASTS_FUSED;
        const double none = moved_by_experts(&g, &s, DL_FORWARD),
                     none_back = moved_by_experts(&g, &s, DL_BACKWARD_DATA),
                     none_weights = moved_by_experts(&g, &s, DL_BACKWARD_WEIGHTS);
        policy->casts = i % 2 == 0 ? DL_CASTS_ALL : DL_CASTS_AFTER_NORM;
        const double twice = 2 * cases[i].width;
        const bool again = cases[i].grouped && cases[i].precision != DL_FP8;
        check_close(moved_by_experts(&g, &s, DL_FORWARD) - none,
                    again ? (2 + 2 + twice) * (rows + weights) : (2 + twice) * rows, 1e-9);
        /* the gradients of both products' outputs, as many as their inputs; not again */
        check_close(moved_by_experts(&g, &s, DL_BACKWARD_DATA) - none_back,
                    ((again ? 2 : 0) + 2 + twice) * rows, 1e-9);
        check_close(moved_by_experts(&g, &s, DL_BACKWARD_WEIGHTS), none_weights, 0);
    }
}

/* F-TRANSFORMER-CASTS, F-TRANSFORMER-EXPERT-ROWS: torchao's two kernels for each operand take 1.88
 * times the time of their bytes; adding by index 3.9 times, so that ten kernels backward take 2.9
 * of its time more. */
static void slower_than_bytes(void **state) {
    struct gpt g;
    const struct dl_transformer_split s = split(1, 1, 1);
    const double rows = 3 * TOKENS * 2;
    static const struct {
        bool received;
        double reads, writes;
    } back[] = {{true, 1, 2},  {true, 1, 1},  {true, 2, 1},  {true, 2, 2},  {false, 1, 2},
                {false, 2, 2}, {false, 4, 2}, {false, 2, 0}, {false, 2, 1}, {false, 1, 1}};
    make(&g, "1.25");
    struct dl_transformer_policy *policy = &g.f.framework.transformer;
    policy->experts.rows = DL_ROWS_DIRECT;
    double expected_s = expert_pass(&g, &s, DL_BACKWARD_DATA).device_s;
    for (int i = 0; i < 10; i++) {
        const double values = (back[i].received ? 1.25 : 1) * rows * H;
        expected_s += (i == 3 ? 3.9 : 1) * stream_s(&g, DL_BACKWARD_DATA, back[i].reads * values,
                                                    back[i].writes * values, 0);
    }
    policy->experts.rows = DL_ROWS_INDEXED;
    check_close(expert_pass(&g, &s, DL_BACKWARD_DATA).device_s, expected_s, 1e-9);
    make(&g, "0");
    policy = &g.f.framework.transformer;
    g.tf.precision = DL_MXFP8;
    policy->experts.grouped_gemms = true;
    policy->casts = DL_CASTS_FUSED;
    expected_s = expert_pass(&g, &s, DL_FORWARD).device_s;
    const double cast[] = {rows * H, rows * F, 2 * 4 * H * F};
    for (int i = 0; i < 3; i++) {
        const double both = 2 * (1 + 1.0 / 32) * cast[i];
        expected_s += 1.88 * (stream_s(&g, DL_FORWARD, cast[i], 0, both) +
                              stream_s(&g, DL_FORWARD, cast[i], 0, 0));
    }
    policy->casts = DL_CASTS_ALL;
    check_close(expert_pass(&g, &s, DL_FORWARD).device_s, expected_s, 1e-9);
}

/* F-TRANSFORMER-EXPERT-ROWS: 3 samples of 64 tokens go to 2 experts each, 384 rows; experts have
 * room for 480. Values read and written of each, by hand: sorted there and back, 2 + 2 a value
 * each way. Indexed, forward: to fp32 1 + 2, weighted 2 + 2, to 16 bits 2 + 1 and added 2 + 1 of
 * 384 rows; padded, gathered, scattered 1 + 1 each of 480. Backward: 1 + 2, 2 + 2, 4 + 2, 2, 2 + 1,
 * 1 + 1 of 384; 1 + 2, 1 + 1, 2 + 1, 2 + 2 of 480, the last in 3.9 times the time of its bytes.
 * Biases of experts, forward: 2, 3 + 2, 2 + 2, 2 + 1; backward: 1 + 2, 2 + 1, 2 + 2, 2, 2 + 2, 2,
 * 1 + 1. */
static void rows_of_experts(void **state) {
    static const struct {
        int rows;
        bool bias;
        double sent, received, sent_back, received_back; /* values for each one */
        double kernels, kernels_back;
    } cases[] = {{DL_ROWS_SORTED, false, 0, 4, 0, 4, 2, 2},
                 {DL_ROWS_INDEXED, false, 13, 6, 20, 12, 7, 10},
                 {DL_ROWS_DIRECT, true, 0, 14, 0, 20, 4, 7}};
    struct gpt g;
    make(&g, "1.25");
    struct dl_transformer_policy *policy = &g.f.framework.transformer;
    const struct dl_transformer_split here = split(1, 1, 1), alone = split(1, 4, 1);
    const double sent = 3 * TOKENS * 2 * H, received = 3 * TOKENS * 2.5 * H;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        policy->experts.rows = DL_ROWS_DIRECT;
        policy->experts.adds_bias = false;
        const struct dl_transformer_pass none = expert_pass(&g, &here, DL_FORWARD),
                                         none_back = expert_pass(&g, &here, DL_BACKWARD_DATA),
                                         weights = expert_pass(&g, &here, DL_BACKWARD_WEIGHTS);
        policy->experts.rows = cases[i].rows;
        policy->experts.adds_bias = cases[i].bias;
        const struct dl_transformer_pass more = expert_pass(&g, &here, DL_FORWARD),
                                         back = expert_pass(&g, &here, DL_BACKWARD_DATA);
        check_close(more.moved_bytes - none.moved_bytes,
                    2 * (cases[i].sent * sent + cases[i].received * received), 1e-9);
        check_close(back.moved_bytes - none_back.moved_bytes,
                    2 * (cases[i].sent_back * sent + cases[i].received_back * received), 1e-9);
        check_close(more.launches - none.launches, cases[i].kernels, 1e-9);
        check_close(back.launches - none_back.launches, cases[i].kernels_back, 1e-9);
        assert_true(more.device_s > none.device_s && back.device_s > none_back.device_s);
        check_close(expert_pass(&g, &here, DL_BACKWARD_WEIGHTS).moved_bytes, weights.moved_bytes,
                    0);
    }
    /* one expert here: its rows are in order */
    policy->experts.adds_bias = false;
    policy->experts.rows = DL_ROWS_DIRECT;
    const double direct = moved_by_experts(&g, &alone, DL_FORWARD);
    policy->experts.rows = DL_ROWS_SORTED;
    check_close(moved_by_experts(&g, &alone, DL_FORWARD), direct, 0);
}

/* F-TRANSFORMER-EXPERT-CALLS: 4 experts here: 3 launches more for each of two products a pass; as
 * many for casts by blocks, twice that where a scale of the tensor comes first (not in mxfp8), none
 * with delayed scales; 2 and 5 for each of 4 biases; 25 for routing. */
static void calls_of_experts(void **state) {
    static const struct {
        enum dl_precision precision;
        bool loops, currently, bias;
        double routing, forward, data, weights;
    } cases[] = {{DL_BF16, false, true, true, 0, 0, 0, 0},
                 {DL_BF16, false, false, false, 25, 25, 0, 0},
                 {DL_BF16, true, true, false, 0, 6, 6, 6},
                 {DL_BF16, true, false, true, 25, 25 + 6 + 8, 6 + 20, 6},
                 {DL_FP8, true, false, false, 0, 6, 6, 6},
                 {DL_FP8, true, true, false, 0, 6 + 12, 6 + 12, 6},
                 {DL_MXFP8, true, false, false, 0, 6 + 6, 6 + 6, 6},
                 {DL_MXFP8, true, true, false, 0, 6 + 6, 6 + 6, 6},
                 {DL_NVFP4, true, true, false, 0, 6 + 12, 6 + 12, 6},
                 {DL_NVFP4, true, false, false, 0, 6 + 6, 6 + 6, 6}};
    struct gpt g;
    make(&g, "1");
    struct dl_transformer_policy *policy = &g.f.framework.transformer;
    policy->casts = DL_CASTS_AFTER_NORM;
    const struct dl_transformer_split here = split(1, 1, 1), alone = split(1, 4, 1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        g.tf.precision = cases[i].precision;
        policy->experts.loops = cases[i].loops;
        policy->current_scaling = cases[i].currently;
        policy->experts.adds_bias = cases[i].bias;
        policy->experts.routing_operation_count = cases[i].routing;
        check_close(expert_pass(&g, &here, DL_FORWARD).host_operation_count, cases[i].forward, 0);
        check_close(expert_pass(&g, &here, DL_BACKWARD_DATA).host_operation_count, cases[i].data,
                    0);
        check_close(expert_pass(&g, &here, DL_BACKWARD_WEIGHTS).host_operation_count,
                    cases[i].weights, 0);
    }
    policy->casts = DL_CASTS_FUSED; /* producers write 8 bits */
    check_close(expert_pass(&g, &here, DL_FORWARD).host_operation_count, 6, 0);
    /* one expert: as one product */
    policy->casts = DL_CASTS_ALL;
    check_close(expert_pass(&g, &alone, DL_FORWARD).host_operation_count, 0, 0);
    check_close(expert_pass(&g, &alone, DL_BACKWARD_WEIGHTS).host_operation_count, 0, 0);
}

/* F-HOST-COUNT: a row of the plan's precision comes before the one in 16 bits; each of 4 experts
 * counts; a measured time takes the place of the counts'. */
static void host_of_experts(void **state) {
    struct dl_host_kind kinds[] = {
        {.kind = "moe", .forward = {.call_count = 100}},
        {.kind = "expert", .forward = {.call_count = 7}, .forward_s = 20},
        {.kind = "expert", .precision = "fp8", .forward = {.call_count = 9}},
        {.kind = "other", .forward = {.call_count = 1000}},
    };
    const struct dl_host_release counts = {.kinds = kinds, .kind_count = 4};
    const struct dl_host_table table = {.cost = {.call_s = 1}};
    const struct dl_host_cost twice = {.call_s = 2, .scale = 2};
    struct gpt g;
    make(&g, "1");
    struct dl_framework *f = &g.f.framework;
    f->host.counts = &counts;
    f->host.table = &table;
    struct dl_layer layer = {.kind = &dl_layer_moe, .moe = {.held_experts = 4}};
    static const struct {
        const char *narrow;
        double call_count, time_s;
    } cases[] = {{NULL, 100 + 4 * 7, 2 * (100 + 4 * 20)},
                 {"mxfp8", 100 + 4 * 7, 2 * (100 + 4 * 20)},
                 {"fp8", 100 + 4 * 9, 2 * (100 + 4 * 9)}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct dl_host_count c =
            dl_host_count_of(f, &layer, false, false, 1, cases[i].narrow);
        check_close(c.call_count, cases[i].call_count, 0);
        check_close(dl_host_count_s(&twice, &c), cases[i].time_s, 1e-12);
    }
    layer.kind = &dl_layer_dense;
    layer.moe.held_experts = 0;
    check_close(dl_host_count_of(f, &layer, false, false, 1, NULL).call_count, 1000, 0);
    check_close(dl_host_count_of(f, &layer, false, true, 5, NULL).operation_count, 5, 0);
    check_close(dl_host_count_of(f, &layer, false, false, 0, NULL).call_count, 0, 0);
}

/* F-TRANSFORMER-CAPTURE: what the host needs to issue a layer hides it, unless a graph of the whole
 * iteration does: on the architecture that the framework names, with a capacity. Recomputation
 * issues the forward pass again. */
static void captured_iterations(void **state) {
    static const struct {
        const char *on, *capacity;
        bool captured;
    } cases[] = {
        {NULL, "1", false}, {"hopper", "1", false}, {"volta", "1", true}, {"volta", "0", false}};
    const struct dl_transformer_split here = split(1, 1, 1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct gpt g;
        struct dl_transformer_micro_batch cell;
        make(&g, cases[i].capacity);
        g.f.framework.transformer.experts.captured_on = cases[i].on;
        g.f.framework.transformer.experts.loops = true;
        g.f.framework.host.dispatch_s = 1; /* longer than any kernel */
        assert_int_equal(dl_transformer_micro_batch_make(&g.tf, &here, 3, &cell, NULL), DL_OK);
        const struct dl_transformer_pass *body = &cell.forward[DL_TRANSFORMER_BODY],
                                         *back = cell.backward[DL_TRANSFORMER_BODY];
        const double calls = body->launches + body->host_operation_count;
        check_close(body->host_operation_count, 6, 0);
        check_close(back[DL_RECOMPUTE_FULL].host_operation_count -
                        back[DL_RECOMPUTE_NONE].host_operation_count,
                    6, 1e-12);
        if (cases[i].captured)
            assert_true(body->step_s < 0.1);
        else
            check_close(body->step_s, calls, 1e-6);
    }
}

/* What no run could meet is refused, with what would be possible. */
static void impossible_crowds(void **state) {
    static const struct {
        const char *capacity;
        double imbalance;
        const char *says;
    } cases[] = {{"0", 2.5, "at most the 2 expert ranks"},
                 {"1", 1.5, "a capacity bounds"},
                 {"0", 2, ""},
                 {"1", 0, ""}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct gpt g;
        struct dl_err err = {0};
        make(&g, cases[i].capacity);
        struct dl_plan plan = g.f.plan;
        plan.strategy = NULL;
        plan.nodes = plan.ep = 2;
        plan.devices_per_node = 1;
        plan.dp = 1;
        plan.batch_per_device_samples = 0;
        plan.global_batch_samples = 8;
        plan.experts.imbalance_ratio = cases[i].imbalance;
        const bool refused = cases[i].says[0] != 0;
        assert_int_equal(dl_plan_complete(&g.f.system, &g.workload, &g.f.framework, &plan, &err),
                         refused ? DL_ERR_USAGE : DL_OK);
        if (refused && strstr(err.message, cases[i].says) == NULL) fail_msg("%s", err.message);
    }
}

/* 4 experts on 4 ranks of 2 nodes, 2 a token: 2 ranks, on 2 (1 - 1/2 x 1/3) = 5/3 nodes. */
static void once_per_node(void **state) {
    struct gpt g;
    struct dl_transformer_micro_batch cell;
    struct dl_collective_time inside, across, slower;
    make(&g, "1.25");
    g.f.framework.transformer.experts.exchange = DL_EXPERT_ONCE;
    struct dl_transformer_split s = split(1, 4, 1);
    const double copy = 3 * TOKENS * H * 2 * 1.25;
    s.nodes = s.devices_per_node = 2;
    assert_int_equal(dl_transformer_micro_batch_make(&g.tf, &s, 3, &cell, NULL), DL_OK);
    check_close(cell.route_bytes, 2 * copy, 1e-12);
    const struct dl_transformer_group all = {4, 1}, node = {2, 1};
    assert_int_equal(
        dl_transformer_collective(&g.tf, &s, node, DL_COLL_ALL_TO_ALL, 2 * copy, &inside, NULL),
        DL_OK);
    assert_int_equal(
        dl_transformer_collective(&g.tf, &s, all, DL_COLL_ALL_TO_ALL, 5 * copy / 3, &across, NULL),
        DL_OK);
    assert_true(across.time_s > inside.time_s);
    check_close(cell.route.time_s, across.time_s, 1e-12);
    check_close(cell.forward[DL_TRANSFORMER_BODY].comm_s, 2 * across.time_s, 1e-12);
    g.f.framework.transformer.experts.exchange = DL_EXPERT_ALL_TO_ALL;
    assert_int_equal(dl_transformer_micro_batch_make(&g.tf, &s, 3, &cell, NULL), DL_OK);
    slower = cell.route;
    assert_true(slower.time_s > across.time_s);
    /* one node: nothing to save, as each rank holds one expert */
    s = split(1, 4, 1);
    assert_int_equal(dl_transformer_micro_batch_make(&g.tf, &s, 3, &cell, NULL), DL_OK);
    slower = cell.route;
    g.f.framework.transformer.experts.exchange = DL_EXPERT_ONCE;
    assert_int_equal(dl_transformer_micro_batch_make(&g.tf, &s, 3, &cell, NULL), DL_OK);
    check_close(cell.route.time_s, slower.time_s, 1e-12);
    /* two experts a rank: 2 (1 - 1/3 x ...) = 5/3 copies instead of 2 */
    s = split(1, 2, 2);
    assert_int_equal(dl_transformer_micro_batch_make(&g.tf, &s, 3, &cell, NULL), DL_OK);
    check_close(cell.route_bytes, 5 * copy / 3, 1e-12);
}

/* F-TRANSFORMER-STATES, F-TRANSFORMER-DATA with 2 expert ranks and 4 data ranks: half of the
 * experts on a rank, held by 4; all else by 8. */
static void states_and_gradients(void **state) {
    struct gpt g;
    make(&g, "1");
    const struct dl_transformer_split s = split(1, 2, 4);
    const double experts = 2 * g.tf.expert_elements[DL_TRANSFORMER_BODY] / 2,
                 dense = g.workload.parameters - 2 * experts, all = dense + experts;
    const double mine = dense / 8 + experts / 4,
                 wanted[] = {16 * all, 4 * all + 12 * mine, 2 * all + 14 * mine, 16 * mine};
    const struct dl_collective_time none = {0};
    const struct dl_transformer_choice choice = {.micro_batches = 1, .virtual_stages = 1};
    struct dl_transformer_micro_batch cell = {.micro_samples = 1};
    for (int shard = 0; shard <= 3; shard++) {
        struct dl_transformer_mapping layout;
        struct dl_transformer_result r;
        assert_int_equal(dl_transformer_mapping_make(&g.tf, &s, shard, &layout, NULL), DL_OK);
        const struct dl_memory *m = &layout.states[0];
        check_close(layout.parameters[0], all, 1e-12);
        check_close(m->weights_bytes + m->gradients_bytes + m->optimizer_bytes, wanted[shard],
                    1e-12);
        check_close(layout.updated_elements, shard == 0 ? all : mine, 1e-12);
        dl_transformer_evaluate(&g.tf, &layout, &cell, &none, &choice, &r);
        check_close(r.sent_bytes, (shard == 3 ? 3 : 2) * 2 * (7.0 / 8 * dense + 3.0 / 4 * experts),
                    1e-9);
        assert_true(shard == 3 || (layout.experts.reduce.time_s > 0 &&
                                   layout.experts.reduce.time_s < layout.reduce.time_s));
    }
}

/* Without expert ranks experts are parameters as all others; more experts in memory than a rank
 * computes with. */
static void limits(void **state) {
    struct gpt g;
    make(&g, "1");
    const struct {
        int64_t ep, dp;
        double batch;
        const char *says;
    } cases[] = {
        {8, 1, 8, "only 4 experts"},
        {3, 1, 9, "does not divide the 4 experts of"},
        {4, 2, 12, "nearest --global-batch"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct dl_err err = {0};
        struct dl_plan plan = g.f.plan;
        plan.strategy = NULL; /* found by --ep */
        plan.nodes = cases[i].ep * cases[i].dp;
        plan.devices_per_node = 1;
        plan.ep = cases[i].ep;
        plan.dp = cases[i].dp;
        plan.batch_per_device_samples = 0;
        plan.global_batch_samples = cases[i].batch;
        plan.micro_batch_samples = i == 2 ? 1 : 0;
        assert_int_equal(dl_plan_complete(&g.f.system, &g.workload, &g.f.framework, &plan, &err),
                         DL_ERR_USAGE);
        if (strstr(err.message, cases[i].says) == NULL) fail_msg("case %zu: %s", i, err.message);
    }
}

/* As an option of the command: a flag has no value. */
static void text_of_a_setting(void **state) {
    const struct dl_plan plan = {.settings.moe_overlap = true};
    int n = 0;
    while (strcmp(dl_settings_varied[n], "moe-overlap") != 0) n++;
    assert_string_equal(dl_settings_text(&plan, n, NULL), "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts),
        cmocka_unit_test(kernels),
        cmocka_unit_test(messages),
        cmocka_unit_test(states_and_gradients),
        cmocka_unit_test(limits),
        cmocka_unit_test(once_per_node),
        cmocka_unit_test(folded),
        cmocka_unit_test(crowded_experts),
        cmocka_unit_test(impossible_crowds),
        cmocka_unit_test(casts_of_experts),
        cmocka_unit_test(slower_than_bytes),
        cmocka_unit_test(rows_of_experts),
        cmocka_unit_test(calls_of_experts),
        cmocka_unit_test(host_of_experts),
        cmocka_unit_test(captured_iterations),
        cmocka_unit_test(text_of_a_setting),
    };
    return cmocka_run_group_tests(tests, NULL, check_free);
}
