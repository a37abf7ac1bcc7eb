/* The stack of a transformer: equal blocks, a lead of other blocks, blocks that alternate. What is
 * counted for a body layer, times the body layers, with all before and after is the workload. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/framework/facts.h"
#include "model/engine/strategies/strategy.h"
#include "model/engine/memory.h"
#include "model/workload/layer.h"
#include "tests/fake_transformer.h"

static void prepare(struct gpt *g, const char *keys) {
    static struct dl_override o[16];
    static char text[400];
    int count = 0;
    char *save = NULL;
    snprintf(text, sizeof text, "hidden=128,heads=4,seq=64,vocab=1000,dropout=0,%s", keys);
    for (char *part = strtok_r(text, ",", &save); part != NULL; part = strtok_r(NULL, ",", &save)) {
        char *equals = strchr(part, '=');
        assert_true(equals != NULL && count < 16);
        *equals = '\0';
        o[count++] = (struct dl_override){.key = part, .value = equals + 1};
    }
    gpt_make(g, o, count);
}

/* Parameters and multiply-adds of the parts add up to the workload's. */
static void check_sums(const struct dl_transformer *tf) {
    double parameters = 0, macs = 0;
    for (int part = 0; part < DL_TRANSFORMER_PARTS; part++)
        parameters +=
            (part == DL_TRANSFORMER_BODY ? tf->stack : 1) *
            (tf->split_elements[part] + tf->whole_elements[part] + tf->expert_elements[part]);
    for (int i = 0; i < tf->layer_count; i++)
        macs += (tf->layers[i].part == DL_TRANSFORMER_BODY ? tf->stack : 1) *
                tf->workload->layers[tf->layers[i].index].forward_macs;
    check_close(parameters, tf->workload->parameters, 1e-12);
    check_close(macs, tf->workload->forward_macs_per_sample, 1e-12);
}

static void stacks(void **state) {
    (void)state;
    static const struct {
        const char *keys;
        double stack;
        int blocks; /* of one body layer */
        int lead;   /* blocks before */
    } cases[] = {
        {"layers=6", 6, 1, 0},
        {"layers=1", 1, 1, 0},
        {"layers=6,mlp=swiglu,norm=rmsnorm,pos=rope,tied=0,kv_heads=2", 6, 1, 0},
        {"layers=6,window=8", 6, 1, 0},
        {"layers=6,window=8,full_every=2", 3, 2, 0},
        {"layers=5,window=8,full_every=2", 2, 2, 1},
        {"layers=6,window=8,full_every=3", 2, 3, 0},
        {"layers=6,experts=4,dense_layers=2", 4, 1, 2},
        {"layers=6,experts=4,moe_every=2,shared_experts=1", 3, 2, 0},
        {"layers=6,experts=4,dense_layers=1,kv_rank=32,rotary=8,head_dim=24,q_rank=48", 5, 1, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct gpt g;
        prepare(&g, cases[i].keys);
        assert_true(dl_transformer_is_stack(&g.workload));
        check_close(g.tf.stack, cases[i].stack, 0);
        check_close(g.tf.hidden, 128, 0);
        int leading = 0, last = -1;
        for (int k = 0; k < g.tf.layer_count; k++) {
            const char *name = g.workload.layers[g.tf.layers[k].index].name;
            if (strncmp(name, "h.", 2) != 0 || g.tf.layers[k].part != DL_TRANSFORMER_BEFORE)
                continue;
            if (atoi(name + 2) != last) leading++;
            last = atoi(name + 2);
        }
        if (leading != cases[i].lead) fail_msg("%s: %d blocks lead", cases[i].keys, leading);
        check_close(cases[i].stack * cases[i].blocks + leading, g.workload.transformer_layers, 0);
        check_sums(&g.tf);
        dl_arena_free(&g.f.arena);
    }
}

/* Dense layers of the lead are split as those of the body: columns, heads, rows. */
static void lead_is_split(void **state) {
    (void)state;
    struct gpt g;
    prepare(&g, "layers=6,experts=4,dense_layers=2,router_bias=1");
    int column = 0, row = 0, heads = 0, experts = 0;
    for (int i = 0; i < g.tf.layer_count; i++) {
        const struct dl_transformer_layer *l = &g.tf.layers[i];
        if (l->part != DL_TRANSFORMER_BEFORE) continue;
        column += l->role == DL_TRANSFORMER_COLUMN;
        row += l->role == DL_TRANSFORMER_ROW;
        heads += l->role == DL_TRANSFORMER_HEADS;
        experts += l->role == DL_TRANSFORMER_EXPERTS;
    }
    assert_int_equal(column, 4);
    assert_int_equal(row, 4);
    assert_int_equal(heads, 2);
    assert_int_equal(experts, 0);
    /* 4 experts of 2 x 128 x 512 with biases; the router and its bias are on every rank */
    check_close(g.tf.expert_elements[DL_TRANSFORMER_BODY], 4 * (2 * 128 * 512 + 512 + 128), 0);
    dl_arena_free(&g.f.arena);
}

/* Latents are whole on every rank, what all heads have is split; keys of 24 channels for each of 4
 * heads. */
static void latents_are_whole(void **state) {
    (void)state;
    struct gpt g;
    prepare(&g, "layers=4,kv_rank=32,rotary=8,head_dim=24,value_dim=16,q_rank=48,norm=rmsnorm,"
                "pos=rope,bias=0");
    const struct dl_transformer_split split = gpt_split(2, 1, 1, 1, 1);
    check_close(g.tf.kv_channels, 4 * 24, 0);
    for (int i = 0; i < g.tf.layer_count; i++) {
        const struct dl_transformer_layer *l = &g.tf.layers[i];
        const struct dl_layer *whole = &g.workload.layers[l->index];
        const struct dl_layer layer = dl_transformer_layer_at(&g.tf, l, &split);
        if (whole->kind == &dl_layer_latent) {
            assert_int_equal(l->role, DL_TRANSFORMER_SAME);
            check_close(layer.out.channels, whole->out.channels, 0);
        }
        if (whole->kind == &dl_layer_latent_keys)
            check_close(layer.out.channels, whole->out.channels / 2, 0);
        if (whole->kind != &dl_layer_attention) continue;
        struct dl_kernel k[DL_LAYER_KERNELS];
        const struct dl_kernel_facts facts = {.precision = DL_BF16,
                                              .attention = DL_ATTENTION_FLASH};
        assert_int_equal(l->role, DL_TRANSFORMER_HEADS);
        assert_int_equal(layer.kind->kernels(&layer, &facts, DL_FORWARD, 1, k), 1);
        check_close(k[0].heads, 2, 0);
        check_close(k[0].head_dim, 24, 0);
        check_close(k[0].value_dim, 16, 0);
    }
    check_sums(&g.tf);
    dl_arena_free(&g.f.arena);
}

/* The kernel of attention decides what a layer keeps: composed, in 16 bit, 4 heads x 64 x 64
 * scores; flash, 4 bytes for each head and token. The plan decides, else the framework, else the
 * layer. */
static void kept_by_attention(void **state) {
    (void)state;
    static const struct {
        enum dl_attention_kernel plan;
        int framework;
        const char *flash;
        bool kept; /* the scores */
    } cases[] = {
        {DL_ATTENTION_OPEN, -1, "flash=0", true},
        {DL_ATTENTION_OPEN, -1, "flash=1", false},
        {DL_ATTENTION_OPEN, DL_ATTENTION_FLASH, "flash=0", false},
        {DL_ATTENTION_COMPOSED, DL_ATTENTION_FLASH, "flash=1", true},
        {DL_ATTENTION_FLASH, DL_ATTENTION_COMPOSED, "flash=0", false},
        {DL_ATTENTION_FUSED_SOFTMAX, -1, "flash=1", true},
    };
    const double scores = 2.0 * 4 * 64 * 64, rows = 4.0 * 4 * 64, context = 2.0 * 128 * 64;
    const struct dl_transformer_split split = gpt_split(1, 1, 1, 1, 1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct gpt g;
        char keys[64];
        snprintf(keys, sizeof keys, "layers=3,%s", cases[i].flash);
        prepare(&g, keys);
        g.f.framework.kernels.attention = cases[i].framework;
        g.tf.input.attention = cases[i].plan;
        for (int k = 0; k < g.tf.layer_count; k++) {
            const struct dl_transformer_layer *l = &g.tf.layers[k];
            if (l->role != DL_TRANSFORMER_HEADS) continue;
            check_close(gpt_kept_bytes(&g, l, &split, DL_RECOMPUTE_NONE),
                        context + (cases[i].kept ? scores : rows), 0);
        }
        const enum dl_attention_kernel run = dl_framework_attention(&g.f.framework, cases[i].plan);
        const double all = dl_memory_activation_bytes(&g.workload, DL_BF16, DL_RECOMPUTE_NONE, run),
                     flash = dl_memory_activation_bytes(&g.workload, DL_BF16, DL_RECOMPUTE_NONE,
                                                        DL_ATTENTION_FLASH);
        check_close(all - flash, cases[i].kept ? 3 * (scores - rows) : 0, 1e-12);
        dl_arena_free(&g.f.arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stacks),
        cmocka_unit_test(lead_is_split),
        cmocka_unit_test(latents_are_whole),
        cmocka_unit_test(kept_by_attention),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
