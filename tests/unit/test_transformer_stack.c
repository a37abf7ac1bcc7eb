/* Which networks are stacks of blocks (dl_transformer_is_stack), one condition at a time; what
 * shares a device's multiprocessors; how layers divide over stages. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/engine/strategies/strategy.h"
#include "model/engine/transformer/transformer_maker.h"
#include "model/workload/layer.h"
#include "tests/fake_transformer.h"

enum { BLOCKS = 4, EACH = 2, LAYERS = BLOCKS * EACH + 2 };

struct made {
    struct dl_layer layers[LAYERS];
    char names[LAYERS][32];
    struct dl_workload workload;
};

/* embedding, 4 blocks of attention and dense ("h.2.attn", "h.2.fc"), head */
static void make(struct made *m) {
    memset(m, 0, sizeof *m);
    m->workload = (struct dl_workload){
        .name = "made", .layers = m->layers, .layer_count = LAYERS, .transformer_layers = BLOCKS};
    for (int i = 0; i < LAYERS; i++) {
        struct dl_layer *l = &m->layers[i];
        const int block = (i - 1) / EACH;
        const bool inside = i > 0 && i < LAYERS - 1, attention = inside && (i - 1) % EACH == 0;
        snprintf(m->names[i], sizeof m->names[i], inside ? "h.%d.%s" : "%.0d%s", inside ? block : 0,
                 inside ? (attention ? "attn" : "fc") : (i == 0 ? "embedding" : "head"));
        *l = (struct dl_layer){.name = m->names[i],
                               .kind = attention ? &dl_layer_attention : &dl_layer_dense,
                               .parameter_elements = 100,
                               .heads = 8,
                               .block = inside ? block : -1,
                               .block_prefix = inside ? (int)strlen("h.0.") : 0};
    }
}

/* The stack is found when a workload is built. */
static bool is_stack(struct dl_workload *workload) {
    workload->stack = dl_workload_find_stack(workload);
    return dl_transformer_is_stack(workload);
}

static void stacks_and_none(void **state) {
    (void)state;
    struct made m;
    make(&m);
    assert_true(is_stack(&m.workload));
    m.workload.transformer_layers = 5;
    assert_false(is_stack(&m.workload));
    m.workload.transformer_layers = NAN;
    assert_false(is_stack(&m.workload));
    make(&m), strcpy(m.names[8], "g.3.fc"); /* a second stack */
    assert_false(is_stack(&m.workload));
    make(&m), strcpy(m.names[8], "hh.3.fc"), m.layers[8].block_prefix = 5;
    assert_false(is_stack(&m.workload));
    make(&m), m.layers[7].block = m.layers[8].block = 4; /* one is missing */
    assert_false(is_stack(&m.workload));
    make(&m), m.layers[8].block = 2; /* and one comes back */
    assert_false(is_stack(&m.workload));
    make(&m), m.layers[4].block_prefix = 0; /* something lies between */
    assert_false(is_stack(&m.workload));
    make(&m);
    for (int i = 0; i < LAYERS; i++) m.layers[i].block_prefix = 0;
    assert_false(is_stack(&m.workload));
    m.workload.transformer_layers = 0;
    assert_false(is_stack(&m.workload));
    make(&m);
    for (int i = 0; i < LAYERS; i++) m.layers[i].kind = &dl_layer_dense; /* nothing attends */
    assert_false(is_stack(&m.workload));
}

enum member { PARAMETERS, WINDOW, HEADS, KIND, NAME, MEMBERS };

static void differ(struct made *m, int block, enum member member, int by) {
    struct dl_layer *l = &m->layers[1 + block * EACH + 1];
    if (member == PARAMETERS) l->parameter_elements += by;
    if (member == WINDOW) l->window = 64 * by;
    if (member == HEADS) l->heads += by;
    if (member == KIND && by > 0)
        l->kind = by == 1   ? &dl_layer_attention
                  : by == 2 ? &dl_layer_embedding
                  : by == 3 ? &dl_layer_loss
                            : &dl_layer_moe;
    if (member == NAME) snprintf(m->names[1 + block * EACH + 1], 32, "h.%d.f%d", block, by);
}

/* Blocks that differ at the front are a lead; that take turns, a period; that all differ, no
 * stack. */
static void blocks_that_differ(void **state) {
    (void)state;
    struct made m;
    for (enum member member = PARAMETERS; member < MEMBERS; member++) {
        make(&m), differ(&m, 0, member, 1); /* three of four are alike */
        assert_true(is_stack(&m.workload));
        make(&m), differ(&m, 0, member, 1), differ(&m, 2, member, 1); /* two by two */
        assert_true(is_stack(&m.workload));
        make(&m), differ(&m, 0, member, 1), differ(&m, 1, member, 2), differ(&m, 2, member, 3),
            differ(&m, 3, member, 4);
        assert_false(is_stack(&m.workload));
        make(&m), differ(&m, 0, member, 1), differ(&m, 1, member, 2); /* two of four are not most */
        assert_false(is_stack(&m.workload));
    }
}

/* 20 channels of 100 multiprocessors take a fifth, 80 no more than half. */
static void shares_of_a_device(void **state) {
    (void)state;
    struct gpt g;
    gpt_make(&g, NULL, 0);
    struct dl_collective_time c = {.channels = 20};
    g.f.device.unit_count = 100;
    check_close(dl_transformer_contention(&g.tf, &c), 0.2, 1e-12);
    c.channels = 80;
    check_close(dl_transformer_contention(&g.tf, &c), 0.5, 1e-12);
    c.channels = 0;
    check_close(dl_transformer_contention(&g.tf, &c), 0, 0);
    c.channels = 20, g.f.device.unit_count = 0;
    check_close(dl_transformer_contention(&g.tf, &c), 0, 0);
    g.f.device.unit_count = DL_ABSENT;
    check_close(dl_transformer_contention(&g.tf, &c), 0, 0);
    g.f.device.unit_count = 100, g.f.framework.behaviour = dl_framework_behaviour_find("ideal");
    check_close(dl_transformer_contention(&g.tf, &c), 0, 0);
    g.f.framework.behaviour = NULL;
    check_close(dl_transformer_contention(&g.tf, &c), 0.2, 1e-12);
    dl_arena_free(&g.f.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(stacks_and_none),
                                       cmocka_unit_test(blocks_that_differ),
                                       cmocka_unit_test(shares_of_a_device)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
