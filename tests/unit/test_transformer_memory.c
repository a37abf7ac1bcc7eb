/* Memory of a transformer's rank, worked by hand: F-MEM-STATES, F-TRANSFORMER-STATES,
 * F-TRANSFORMER-MEMORY, F-TRANSFORMER-RECOMPUTE. */
#include "model/engine/memory.h"
#include "tests/fake_transformer.h"

enum { LAYERS = 4, SEQ = 512, HIDDEN = 1024 };

static void make_of(struct gpt *g, const char *vocab, const char *tied) {
    static struct dl_override overrides[5];
    overrides[0] = (struct dl_override){.key = "layers", .value = "4"};
    overrides[1] = (struct dl_override){.key = "seq", .value = "512"};
    overrides[2] = (struct dl_override){.key = "heads", .value = "16"};
    overrides[3] = (struct dl_override){.key = "vocab", .value = vocab};
    overrides[4] = (struct dl_override){.key = "tied", .value = tied};
    gpt_make(g, overrides, 5);
}

/* An fp32 master beside the 16-bit copy, unless the plan has none; fp16 alone never has one. */
static void master_weights(void **state) {
    static const enum dl_precision narrow[] = {DL_BF16, DL_FP8, DL_MXFP8, DL_NVFP4};
    for (int i = 0; i < 4; i++) {
        check_close(dl_memory_weight_bytes(narrow[i], DL_MASTERS_FP32), 6, 0);
        check_close(dl_memory_weight_bytes(narrow[i], DL_MASTERS_NONE), 2, 0);
    }
    static const enum dl_precision other[] = {DL_FP32, DL_TF32, DL_FP16, DL_MIXED};
    static const double weights[] = {4, 4, 2, 6};
    for (int i = 0; i < 4; i++) {
        check_close(dl_memory_weight_bytes(other[i], DL_MASTERS_FP32), weights[i], 0);
        check_close(dl_memory_weight_bytes(other[i], DL_MASTERS_NONE), weights[i], 0);
    }
}

static void map(struct gpt *g, const struct dl_transformer_split *s, int shard,
                struct dl_transformer_mapping *out) {
    assert_int_equal(dl_transformer_mapping_make(&g->tf, s, shard, out, NULL), DL_OK);
}

/* ZeRO stage 3 of 8 ranks in bf16: 2 + 4 + 2 + 8 bytes a parameter, all shared out, and in use a
 * layer's weights (12 h^2 + 13 h) and the head's (vocabulary x h, and the last norm). With shards
 * in fp32 that are cast when gathered: 4 + 4 + 8. Without masters: 2 + 2 + 8. */
static void shards_in_fp32(void **state) {
    struct gpt g;
    struct dl_transformer_mapping at;
    make_of(&g, "51200", "0");
    g.tf.precision = DL_BF16;
    struct dl_transformer_policy *policy = &g.f.framework.transformer;
    policy->bf16_gradient_bytes = 2;
    const struct dl_transformer_split s = gpt_split(1, 1, 1, 1, 8);
    const double p = g.workload.parameters, h = HIDDEN;
    map(&g, &s, 2, &at);
    const double buckets = at.states[0].buffers_bytes;
    map(&g, &s, 3, &at);
    check_close(at.states[0].weights_bytes, 6 * p / 8, 1e-12);
    check_close(at.states[0].gradients_bytes, 2 * p / 8, 1e-12);
    check_close(at.states[0].optimizer_bytes, 8 * p / 8, 1e-12);
    check_close(at.states[0].buffers_bytes - buckets,
                2 * (12 * h * h + 13 * h) + 2 * (51200 * h + 2 * h), 1e-12);
    policy->casts_gathered = true;
    map(&g, &s, 3, &at);
    check_close(at.states[0].weights_bytes, 4 * p / 8, 1e-12);
    check_close(at.states[0].gradients_bytes, 4 * p / 8, 1e-12);
    map(&g, &s, 1, &at); /* the cast copy is whole */
    check_close(at.states[0].weights_bytes, 2 * p + 4 * p / 8, 1e-12);
    g.tf.input.master_weights = DL_MASTERS_NONE;
    map(&g, &s, 3, &at);
    check_close(at.states[0].weights_bytes, 2 * p / 8, 1e-12);
}

/* What is gathered in 8 bits: weights with one scale a tensor, where the framework casts shards;
 * those with scales of blocks are cast after, and are gathered in 16 bits. */
static void gathered_in_8_bits(void **state) {
    static const struct {
        enum dl_precision precision;
        double width;
    } cases[] = {{DL_BF16, 2}, {DL_FP8, 1}, {DL_MXFP8, 2}, {DL_NVFP4, 2}};
    struct gpt g;
    struct dl_transformer_mapping at;
    const struct dl_transformer_split s = gpt_split(1, 1, 1, 1, 8);
    make_of(&g, "51200", "0");
    g.f.framework.transformer.fp8_gather_bytes = 1;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        g.tf.precision = cases[i].precision;
        map(&g, &s, 1, &at);
        check_close(at.gather_bytes, cases[i].width * g.workload.parameters, 1e-12);
    }
}

/* Stage 3 in a pipeline, where a framework gathers once an iteration, is stage 1. */
static void no_reshard_with_pipeline(void **state) {
    struct gpt g;
    struct dl_transformer_mapping first, third;
    make_of(&g, "51200", "0");
    g.f.framework.transformer.no_reshard_with_pipeline = true;
    struct dl_transformer_split s = gpt_split(1, 1, 1, 2, 4);
    map(&g, &s, 1, &first);
    map(&g, &s, 3, &third);
    assert_int_equal(third.shard, 1);
    assert_memory_equal(&third.states[0], &first.states[0], sizeof third.states[0]);
    assert_true(third.gather.time_s == first.gather.time_s && third.unit_gather.time_s == 0);
    g.f.framework.transformer.no_reshard_with_pipeline = false;
    map(&g, &s, 3, &third);
    assert_int_equal(third.shard, 3);
    g.f.framework.transformer.no_reshard_with_pipeline = true;
    s = gpt_split(1, 1, 1, 1, 8);
    map(&g, &s, 3, &third);
    assert_int_equal(third.shard, 3);
}

/* By operations a layer keeps its input (2 s h bytes), half of what its linear layers write (of 3 h
 * + h + 4 h + h = 9 h, 9 s h bytes), and all of attention: its output and 4 bytes for each query
 * and head. */
static void kept_by_operations(void **state) {
    struct gpt g;
    struct dl_transformer_micro_batch cell;
    make_of(&g, "51200", "1");
    g.f.framework.transformer.selective = DL_SELECTIVE_OPERATIONS;
    g.f.framework.transformer.selective_frac = 0.5;
    g.tf.input.attention = DL_ATTENTION_FLASH;
    const struct dl_transformer_split one = gpt_split(1, 1, 1, 1, 1);
    assert_int_equal(dl_transformer_micro_batch_make(&g.tf, &one, 3, &cell, NULL), DL_OK);
    const double sh = (double)SEQ * HIDDEN;
    check_close(cell.kept_bytes[DL_TRANSFORMER_BODY][DL_RECOMPUTE_SELECTIVE],
                3 * (2 * sh + 9 * sh + 2 * sh + 4 * 16 * SEQ), 1e-12);
    check_close(cell.kept_bytes[DL_TRANSFORMER_BODY][DL_RECOMPUTE_FULL], 3 * 2 * sh, 1e-12);
}

/* Bytes for each logit at the peak: eager 4 + 4 + 4 + 2, in one kernel 4. */
static void eager_loss(void **state) {
    struct gpt g;
    make_of(&g, "51200", "1");
    const struct dl_transformer_split one = gpt_split(1, 1, 1, 1, 1);
    const struct dl_transformer_layer *loss = NULL;
    for (int i = 0; i < g.tf.layer_count; i++)
        if (g.tf.layers[i].role == DL_TRANSFORMER_LOSS) loss = &g.tf.layers[i];
    assert_non_null(loss);
    const double logits = (double)SEQ * 51200;
    check_close(gpt_kept_bytes(&g, loss, &one, DL_RECOMPUTE_NONE), 4 * logits, 1e-12);
    g.f.framework.kernels.loss = DL_LOSS_EAGER;
    check_close(gpt_kept_bytes(&g, loss, &one, DL_RECOMPUTE_NONE), 14 * logits, 1e-12);
    check_close(gpt_kept_bytes(&g, loss, &one, DL_RECOMPUTE_FULL), 14 * logits, 1e-12);
    g.f.framework.kernels.compiler = DL_COMPILER_INDUCTOR;
    g.tf.input.compiler = DL_COMPILER_INDUCTOR;
    check_close(gpt_kept_bytes(&g, loss, &one, DL_RECOMPUTE_NONE), 4 * logits, 1e-12);
}

/* Bytes of activations with full recomputation beyond the inputs of the layers, the embedding's
 * and the sample's; *layer, *head: what one layer and the head keep. */
static double peak_of(const char *vocab, double *layer, double *head) {
    struct gpt g;
    struct dl_transformer_micro_batch cell;
    struct dl_transformer_mapping at;
    struct dl_memory m;
    make_of(&g, vocab, "1");
    const struct dl_transformer_split one = gpt_split(1, 1, 1, 1, 1);
    const struct dl_transformer_choice choice = {
        .micro_batches = 1, .virtual_stages = 1, .recompute = DL_RECOMPUTE_FULL};
    map(&g, &one, 0, &at);
    assert_int_equal(dl_transformer_micro_batch_make(&g.tf, &one, 1, &cell, NULL), DL_OK);
    dl_transformer_stage_memory(&g.tf, &at, &cell, &choice, 0, &m);
    *layer = cell.kept_bytes[DL_TRANSFORMER_BODY][DL_RECOMPUTE_NONE];
    *head = cell.kept_bytes[DL_TRANSFORMER_AFTER][DL_RECOMPUTE_FULL];
    const double before = cell.kept_bytes[DL_TRANSFORMER_BEFORE][DL_RECOMPUTE_FULL] +
                          g.workload.input_bytes_per_sample;
    return m.activations_bytes - LAYERS * 2.0 * SEQ * HIDDEN - before;
}

/* The logits are gone when the last layer is computed again: the larger of the two counts. */
static void peak_of_recomputation(void **state) {
    double layer, head;
    const double large = peak_of("51200", &layer, &head);
    assert_true(head > layer);
    check_close(large, head, 1e-9);
    const double small = peak_of("128", &layer, &head);
    assert_true(layer > head);
    check_close(small, layer, 1e-9);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(master_weights),        cmocka_unit_test(shards_in_fp32),
        cmocka_unit_test(kept_by_operations),    cmocka_unit_test(no_reshard_with_pipeline),
        cmocka_unit_test(gathered_in_8_bits),    cmocka_unit_test(eager_loss),
        cmocka_unit_test(peak_of_recomputation),
    };
    return cmocka_run_group_tests(tests, NULL, check_free);
}
