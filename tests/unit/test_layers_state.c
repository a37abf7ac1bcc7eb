/* Layers that carry a state along the tokens (Mamba-2, gated delta rule, Lightning attention) by
 * hand, their models against published parameter counts, and stacks that mix them with attention.
 */
#include "model/workload/layer.h"
#include "tests/fake_transformer.h"
#include "tests/load_workload.h"

static const struct dl_kernel_facts PLAIN = {.precision = DL_FP32};

#define LAYER(channels, keys)                                                                      \
    "{'format':'dlmodel-workload','version':1,'name':'t','summary':'s','source':'x',"              \
    "'input':{'tokens':8},'layers':[{'kind':'embedding','rows':9,'out':" #channels "}," keys "]}"

struct totals {
    double flop, reads, writes, bytes; /* flop of products alone */
};

static struct totals totals_of(const struct dl_layer *layer, enum dl_pass pass) {
    struct dl_kernel k[DL_LAYER_KERNELS];
    struct totals t = {0};
    const int count = layer->kind->kernels(layer, &PLAIN, pass, 1.0, k);
    assert_true(count <= DL_LAYER_KERNELS);
    for (int i = 0; i < count; i++) {
        t.flop += k[i].op == DL_OP_GEMM ? k[i].flop : 0.0;
        t.reads += k[i].read_elements;
        t.writes += k[i].write_elements;
        t.bytes += k[i].extra_bytes;
    }
    return t;
}

/* F-LAYER-STATE: 8 tokens in chunks of 4, 4 heads of 2 channels, 2 groups with keys of 3, 4 taps:
 * 2 x 8 + 2 x 2 x 3 + 4 = 32 channels come in, 8 + 12 are convolved. */
static void state_space(void **state) {
    struct dl_workload w;
    build(&w, LAYER(32, "{'kind':'ssd','out':8,'heads':4,'kv_heads':2,'kernel':4,'size':4,'bias':1,"
                        "'gated':1}"));
    const struct dl_layer *l = &w.layers[1];
    check_close(l->attention.state, 3, 0);
    check_close(l->out.channels, 8, 0);
    check_close(l->parameter_elements, 4 * 20 + 20 + 4 + 4 + 4 + 8, 0);
    check_close(l->forward_macs, 8 * (4 * (2 * 3 * 2 + 4 * 2 / 2) + 2 * 4 * 3 / 2 + 4 * 20), 0);
    check_close(l->saved.own_elements, 8 * 8, 0);
    check_close(l->saved.bytes, 4 * 8 * 2, 0);
    const struct totals forward = totals_of(l, DL_FORWARD), back = totals_of(l, DL_BACKWARD_DATA);
    check_close(forward.flop, 2 * 8 * (4 * (2 * 6 + 4) + 12), 1e-12);
    check_close(back.flop, 2 * 8 * (4 * (5 * 6 + 3 * 4) + 3 * 12), 1e-12);
    /* 64 values, 48 of keys, 48 of states in 2 chunks, 64 of products; 160 convolved, 32 steps */
    check_close(forward.reads, 160 + 32 + (64 + 48) + 2 * 48 + (64 + 48 + 48 + 64) + 2 * 64, 0);
    check_close(forward.writes, 160 + 48 + 64 + 64 + 64, 0);
    check_close(forward.bytes, 8 * 32 + 8 * 48, 0);
    check_close(totals_of(l, DL_BACKWARD_WEIGHTS).reads, 0, 0);
}

/* F-LAYER-STATE: the same heads with two scalars each; keys repeat for each of the 4 heads. */
static void delta_rule(void **state) {
    struct dl_workload w;
    build(&w,
          LAYER(36, "{'kind':'delta_rule','out':8,'heads':4,'kv_heads':2,'kernel':4,'size':4}"));
    const struct dl_layer *l = &w.layers[1];
    check_close(l->attention.state, 3, 0);
    check_close(l->parameter_elements, 4 * 20 + 4 + 4 + 2, 0);
    check_close(l->forward_macs, 8 * (4 * (3 * 6 + 4 * (3 * 3 + 2 * 2)) + 4 * 20), 0);
    check_close(l->saved.own_elements, 8 * 4 * (2 * 3 + 2 * 2 + 4), 0);
    check_close(totals_of(l, DL_FORWARD).flop, 2 * 8 * 4 * (3 * 6 + 4 * (3 * 3 + 2 * 2)), 1e-12);
    check_close(totals_of(l, DL_BACKWARD_DATA).flop, 2 * 8 * 4 * (8 * 6 + 4 * (9 * 3 + 5 * 2)),
                1e-12);
}

/* F-LAYER-STATE: 4 heads of 3 channels; gate, queries, keys and values are 4 x 12. */
static void lightning(void **state) {
    struct dl_workload w;
    build(&w, LAYER(48, "{'kind':'lightning','out':12,'heads':4,'size':4}"));
    const struct dl_layer *l = &w.layers[1];
    check_close(l->attention.state, 3, 0);
    check_close(l->parameter_elements, 12, 0);
    check_close(l->forward_macs, 8 * (4 * (2 * 9 + 4 * 3 / 2) + 4 * 4 * 3 / 2), 0);
    check_close(l->saved.own_elements, 8 * (36 + 2 * 12), 0);
    check_close(totals_of(l, DL_FORWARD).flop, 2 * l->forward_macs, 1e-12);
}

static void faults(void **state) {
    static const struct {
        const char *text, *key, *message;
    } cases[] = {
        {LAYER(31, "{'kind':'ssd','out':8,'heads':4,'kv_heads':2,'size':4}"), "out", "leave 11"},
        {LAYER(32, "{'kind':'ssd','out':8,'heads':3,'size':4}"), "heads", "3 heads"},
        {LAYER(32, "{'kind':'ssd','out':8,'heads':4}"), "layers[1]", "need 'size'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct dl_workload w;
        struct dl_err err = {0};
        assert_int_equal(load_text(cases[i].text, NULL, 0, &test_arena, &w, &err), DL_ERR_INPUT);
        if (strstr(err.key, cases[i].key) == NULL || strstr(err.message, cases[i].message) == NULL)
            fail_msg("%s: %s", err.key, err.message);
    }
}

/* Parameters: Mamba-2 and MiniMax as their checkpoints hold, the others from their configurations
 * (data/SOURCES.md); idle experts by hand. */
static void published_parameters(void **state) {
    static const struct {
        const char *name;
        double parameters, idle;
    } models[] = {
        {"mamba2_2_7b", 2702599680, 0},
        {"nemotron_h_8b", 8100852736, 0},
        {"nemotron_h_56b", 56324350464, 0},
        {"nemotron3_nano_30b_a3b", 31577940288, 23.0 * 122 * 2 * 2688 * 1856},
        {"qwen3_next_80b_a3b", 79674391296, 48.0 * 502 * 3 * 2048 * 512},
        {"minimax_text_01", 456089655296, 80.0 * 30 * 3 * 6144 * 9216},
        {"granite4_h_small", 32207337984, 40.0 * 62 * 3 * 4096 * 768},
        {"falcon_h1_34b", 33642221312, 0},
    };
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        struct dl_workload w;
        load_name(models[i].name, NULL, 0, &test_arena, &w);
        if (w.parameters != models[i].parameters)
            fail_msg("%s: %.0f parameters", models[i].name, w.parameters);
        check_close(w.active_parameters, models[i].parameters - models[i].idle, 1e-12);
        assert_true(dl_transformer_is_stack(&w));
        assert_true(dl_workload_has_state(&w));
    }
}

/* 1024 channels, 16 heads, 512 tokens. */
static void make(struct gpt *g, const char *pattern) {
    struct dl_override overrides[] = {{.key = "pattern", .value = pattern},
                                      {.key = "seq", .value = "512"},
                                      {.key = "norm", .value = "rmsnorm"},
                                      {.key = "heads", .value = "16"}};
    gpt_make(g, overrides, sizeof overrides / sizeof overrides[0]);
}

struct mean { /* of a body layer; all_s: backward, all layers and the head */
    double forward_s, all_s, kept_bytes, elements;
};

static struct mean mean_of(const char *pattern, const struct dl_transformer_split *split) {
    struct gpt g;
    struct dl_transformer_micro_batch m;
    make(&g, pattern);
    check_close(g.tf.stack, (double)strlen(pattern), 0);
    double all = 0;
    for (int p = 0; p < DL_TRANSFORMER_PARTS; p++)
        all += (p == DL_TRANSFORMER_BODY ? g.tf.stack : 1) *
               (g.tf.split_elements[p] + g.tf.whole_elements[p]);
    check_close(all, g.workload.parameters, 1e-12);
    assert_int_equal(dl_transformer_micro_batch_make(&g.tf, split, 1, &m, NULL), DL_OK);
    const struct mean out = {
        m.forward[DL_TRANSFORMER_BODY].device_s,
        g.tf.stack * m.backward[DL_TRANSFORMER_BODY][DL_RECOMPUTE_NONE].device_s +
            m.backward[DL_TRANSFORMER_AFTER][DL_RECOMPUTE_NONE].device_s,
        m.kept_bytes[DL_TRANSFORMER_BODY][DL_RECOMPUTE_NONE],
        g.tf.split_elements[DL_TRANSFORMER_BODY] + g.tf.whole_elements[DL_TRANSFORMER_BODY]};
    return out;
}

/* F-MIXED-STACK: "M-M*" is half "M-" and half "M*", in any order; as many again take as long. */
static void mixed_stacks(void **state) {
    const struct dl_transformer_split one = gpt_split(1, 1, 1, 1, 1);
    const struct mean a = mean_of("M-", &one), b = mean_of("M*", &one);
    static const char *const both[] = {"M-M*", "MM-*", "*M-M", "M-*M", "MM*-MM-*M-M*"};
    const double four_s = mean_of("M-M*", &one).all_s, eight_s = mean_of("*M-MM-M*", &one).all_s;
    for (size_t i = 0; i < sizeof both / sizeof *both; i++) {
        const struct mean c = mean_of(both[i], &one);
        check_close(c.forward_s, (a.forward_s + b.forward_s) / 2, 1e-9);
        check_close(c.all_s, i < 4 ? four_s : 2 * eight_s - four_s, 1e-9);
        check_close(c.kept_bytes, (a.kept_bytes + b.kept_bytes) / 2, 1e-9);
        check_close(c.elements, (a.elements + b.elements) / 2, 1e-9);
    }
}

/* F-STATE-SPLIT: tensor parallelism splits a Mamba layer's projections, heads and groups; context
 * parallelism gives a rank all tokens of 1/c of its heads. 32 heads of 64, 8 groups with keys of
 * 128, in chunks of 256. */
static void state_is_split(void **state) {
    struct gpt g;
    make(&g, "M");
    check_close(g.tf.heads, 32, 0);
    assert_int_equal(dl_transformer_tensor_parts(&g.tf), 8);
    assert_false(dl_transformer_takes_context(&g.tf, 8, 8));
    assert_true(dl_transformer_takes_context(&g.tf, 8, 4));
    const struct dl_transformer_split s = gpt_split(2, 2, 1, 1, 1);
    for (int i = 0; i < g.tf.layer_count; i++) {
        if (g.workload.layers[g.tf.layers[i].index].kind != &dl_layer_ssd) continue;
        const struct dl_layer l = dl_transformer_layer_at(&g.tf, &g.tf.layers[i], &s);
        check_close(l.attention.heads, 8, 0);
        check_close(l.attention.kv_heads, 2, 0);
        check_close(l.out.channels, 512, 0);
        check_close(l.out.size[DL_DIMS - 1], 512, 0);
        /* a quarter of H (2 N P + Q P / 2) + G Q N / 2 */
        check_close(totals_of(&l, DL_FORWARD).flop,
                    2 * 512.0 * (8 * (2 * 128 * 64 + 256 * 64 / 2) + 2 * 256 * 128 / 2), 1e-12);
        /* input of its projection, its own result: whole = x the projection keeps */
        check_close(gpt_kept_bytes(&g, &g.tf.layers[i], &s, DL_RECOMPUTE_NONE),
                    2 * (512 * 512.0 + 512 * 512.0) + 4 * 512 * 2, 1e-12);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(state_space),
        cmocka_unit_test(delta_rule),
        cmocka_unit_test(lightning),
        cmocka_unit_test(faults),
        cmocka_unit_test(published_parameters),
        cmocka_unit_test(mixed_stacks),
        cmocka_unit_test(state_is_split),
    };
    return cmocka_run_group_tests(tests, NULL, check_free);
}
