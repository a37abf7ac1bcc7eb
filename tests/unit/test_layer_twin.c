/* Layers whose kernels are the same (layer_twin.c): one member that differs makes another layer. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/workload/layer.h"
#include "model/workload/workload.h"
#include "tests/check.h"

static struct dl_layer plain(void) {
    struct dl_layer l;
    memset(&l, 0, sizeof l);
    l.kind = &dl_layer_conv;
    l.tied_to = -1;
    return l;
}

/* Layer 1 with one member changed, up or down. */
static bool change(struct dl_layer *l, int member, double by) {
    double *const numbers[] = {&l->parameter_elements,
                               &l->buffer_elements,
                               &l->forward_macs,
                               &l->saved_elements,
                               &l->saved_bytes,
                               &l->own_elements,
                               &l->in.channels,
                               &l->out.size[0],
                               &l->in_elements,
                               &l->kernel[0],
                               &l->stride[1],
                               &l->pad[2],
                               &l->dilation[0],
                               &l->groups,
                               &l->heads,
                               &l->kv_heads,
                               &l->rows,
                               &l->hidden,
                               &l->experts,
                               &l->top_k,
                               &l->capacity,
                               &l->window,
                               &l->dropout,
                               &l->target[0],
                               &l->tokens,
                               &l->scale};
    int *const counts[] = {&l->input_count, &l->parameter_count, &l->consumers, &l->tied_to};
    bool *const flags[] = {&l->detached,     &l->first,     &l->dropless, &l->gated,
                           &l->causal,       &l->bias,      &l->in_place, &l->bidirectional,
                           &l->recomputable, &l->flash,     &l->view,     &l->sparse,
                           &l->router_bias,  &l->ceil_mode, &l->sinks,    &l->additive};
    enum {
        NUMBERS = sizeof numbers / sizeof *numbers,
        COUNTS = sizeof counts / sizeof *counts,
        FLAGS = sizeof flags / sizeof *flags
    };
    if (member < NUMBERS)
        *numbers[member] += by;
    else if (member < NUMBERS + COUNTS)
        *counts[member - NUMBERS] += (int)by;
    else if (member < NUMBERS + COUNTS + FLAGS)
        *flags[member - NUMBERS - COUNTS] = true;
    else if (member == NUMBERS + COUNTS + FLAGS)
        l->keeps = DL_KEEPS_OUTPUT;
    else if (member == NUMBERS + COUNTS + FLAGS + 1)
        l->kind = &dl_layer_dense;
    else
        return false;
    return true;
}

static void one_member_differs(void **state) {
    (void)state;
    int member = 0;
    for (;; member++) {
        for (int side = 0; side < 2; side++) {
            struct dl_layer layers[3] = {plain(), plain(), plain()};
            if (!change(&layers[side], member, side == 0 ? 1 : -1)) break;
            dl_layer_find_twins(layers, 3);
            if (dl_layer_twin(layers, 1) != 1) fail_msg("member %d is not compared", member);
            assert_int_equal(dl_layer_twin(layers, 2), 1 - side);
        }
        struct dl_layer any = plain();
        if (!change(&any, member, 1)) break;
    }
    assert_int_equal(member, 26 + 4 + 16 + 2);
}

/* Names and places in the network do not count; what is known is compared again, so it holds for
 * layers that changed since. */
static void equal_layers(void **state) {
    (void)state;
    struct dl_layer layers[5] = {plain(), plain(), plain(), plain(), plain()};
    layers[1].forward_macs = 7;
    layers[3].forward_macs = 7;
    layers[2].name = "other", layers[2].block = 3;
    dl_layer_find_twins(layers, 5);
    const int twins[] = {0, 1, 0, 1, 0};
    for (int i = 0; i < 5; i++) assert_int_equal(dl_layer_twin(layers, i), twins[i]);
    /* a part of the network, from layer 2 on: the first of each kind lies before it */
    for (int i = 0; i < 3; i++) assert_int_equal(dl_layer_twin(layers + 2, i), i);
    layers[3].forward_macs = 8;
    assert_int_equal(dl_layer_twin(layers, 3), 3);
    layers[3].forward_macs = 7, layers[1].saved_bytes = 1;
    assert_int_equal(dl_layer_twin(layers, 3), 3);
}

/* Of 64 kinds of layers the first is known; further ones are kernels of their own. */
static void many_kinds(void **state) {
    (void)state;
    enum { KINDS = 66 };
    static struct dl_layer layers[2 * KINDS];
    for (int i = 0; i < 2 * KINDS; i++) {
        layers[i] = plain();
        layers[i].forward_macs = i % KINDS;
    }
    dl_layer_find_twins(layers, 2 * KINDS);
    for (int i = 0; i < 2 * KINDS; i++)
        assert_int_equal(dl_layer_twin(layers, i), i >= KINDS && i - KINDS < 64 ? i - KINDS : i);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_member_differs),
                                       cmocka_unit_test(equal_layers),
                                       cmocka_unit_test(many_kinds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
