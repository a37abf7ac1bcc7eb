/* The timeline against iterations worked by hand, with kernels and messages of round durations. */
#include "model/engine/timeline.h"
#include "tests/check.h"
#include "tests/fake.h"

/* Two layers; forward 1 s and 2 s, backward 2 s and 4 s, update 1 s. Backward of layer 1 ends at 3
 * + 4 = 7 s, of layer 0 at 9 s: gradient 0 (layer 1) is ready at 7, gradient 1 (layer 0) at 9. */
struct bench {
    struct dl_fake fake;
    struct dl_layer_cost layers[2];
    struct dl_cost cost;
    struct dl_gradient gradients[2];
    struct dl_timeline_request request;
};

static double message_s = 0, prologue_s = 0;
static bool each = false;

static enum dl_code synchronize(const struct dl_gradient_sync_request *r,
                                struct dl_gradient_sync *out, struct dl_err *err) {
    (void)err;
    dl_gradient_sync_messages(r, r->gradient_count, out);
    for (int g = 0; g < r->gradient_count; g++) {
        out->messages[g] = (struct dl_message){.name = "message",
                                               .first = g,
                                               .count = 1,
                                               .bytes = r->gradients[g].bytes,
                                               .ready_s = r->gradients[g].ready_s,
                                               .duration_s = message_s,
                                               .bandwidth_s = message_s,
                                               .returns = true};
    }
    out->per_layer_wait = each;
    out->prologue_s = prologue_s;
    return DL_OK;
}
/* Gradients ready in the last two fifths of a cycle wait for 5 s more. */
static enum dl_code synchronize_in_cycles(const struct dl_gradient_sync_request *r,
                                          struct dl_gradient_sync *out, struct dl_err *err) {
    DL_TRY(synchronize(r, out, err));
    for (int m = 0; m < out->message_count; m++)
        out->messages[m].ready_s += r->phase_frac > 0.6 ? 5 : 0;
    return DL_OK;
}
static const struct dl_framework_behaviour in_cycles = {
    .name = "cycles", .has_phase = true, .synchronize = synchronize_in_cycles};

static const struct dl_framework_behaviour behaviour = {.name = "test", .synchronize = synchronize};

static void make(struct bench *b) {
    fake_make(&b->fake);
    const double features[] = {10, 10, 10};
    fake_layers(&b->fake, 2, features);
    const double forward[] = {1, 2}, backward[] = {2, 4};
    memset(b->layers, 0, sizeof b->layers);
    for (int i = 0; i < 2; i++) {
        b->layers[i].forward = (struct dl_pass_cost){.time_s = forward[i], .launches = 1};
        b->layers[i].backward = (struct dl_pass_cost){.time_s = backward[i], .launches = 1};
        b->gradients[i] = (struct dl_gradient){.layer = 1 - i, .elements = 100, .bytes = 400};
    }
    b->cost = (struct dl_cost){.layers = b->layers, .update = {.time_s = 1, .launches = 1}};
    b->request = (struct dl_timeline_request){.cost = &b->cost,
                                              .behaviour = &behaviour,
                                              .gradients = b->gradients,
                                              .sync = {.system = &b->fake.system,
                                                       .workload = &b->fake.workload,
                                                       .framework = &b->fake.framework,
                                                       .plan = &b->fake.plan,
                                                       .gradients = b->gradients,
                                                       .gradient_count = 2,
                                                       .arena = &test_arena}};
    message_s = 0;
    prologue_s = 0;
    each = false;
}

static void run(struct bench *b, struct dl_timeline *t) {
    assert_int_equal(dl_timeline_run(&b->request, t, NULL), DL_OK);
}

static void without_exchange(void **state) {
    struct bench b;
    struct dl_timeline t;
    make(&b);
    b.request.behaviour = NULL;
    run(&b, &t);
    check_close(t.period_s, 1 + 2 + 4 + 2 + 1, 1e-12);
    check_close(t.backward_end_s, 9, 1e-12);
    check_close(b.gradients[0].ready_s, 7, 1e-12);
    check_close(b.gradients[1].ready_s, 9, 1e-12);
}

/* Messages of 3 s: the first runs 7..10, the second 10..13 (ready at 9, lane free at 10);
 * update 13..14. */
static void update_waits_for_all(void **state) {
    struct bench b;
    struct dl_timeline t;
    make(&b);
    message_s = 3;
    run(&b, &t);
    check_close(t.sync.messages[0].start_s, 7, 1e-12);
    check_close(t.sync.messages[1].start_s, 10, 1e-12);
    check_close(t.period_s, 14, 1e-12);
    check_close(t.comm_s, 6, 1e-12);
}

/* Messages of 1 s: the first is hidden (7..8), the second is exposed (9..10): 11 s. A prologue of
 * 0.5 s adds to it. */
static void hidden_but_for_the_last(void **state) {
    struct bench b;
    struct dl_timeline t;
    make(&b);
    message_s = 1;
    run(&b, &t);
    check_close(t.period_s, 11, 1e-12);
    prologue_s = 0.5;
    run(&b, &t);
    check_close(t.period_s, 11.5, 1e-12);
    check_close(t.comm_s, 2.5, 1e-12);
}

/* The host, far ahead, issues the exchange of layer 1's gradient before layer 0's backward pass,
 * which can begin at 7. 3 s of it are hidden; 8 s are not: the pass begins at 8 and ends at 10. */
static void exchanges_take_host_time(void **state) {
    struct bench b;
    struct dl_timeline t;
    make(&b);
    message_s = 1;
    b.request.gradient_host_s = 3;
    run(&b, &t);
    check_close(t.period_s, 11, 1e-12);
    b.request.gradient_host_s = 8;
    run(&b, &t);
    check_close(t.backward_end_s, 10, 1e-12);
}

/* Waiting per layer, messages of 1 s: layer 1's is back at 8, layer 0's at 10 = when the compute
 * lane (9 + update 1) begins the next forward: nothing exposed, period 10. With 3 s: layer 1's is
 * back at 10, layer 0's at 13, so that the next forward begins at 13: period 13. */
static void next_forward_hides_communication(void **state) {
    struct bench b;
    struct dl_timeline t;
    make(&b);
    each = true;
    message_s = 1;
    run(&b, &t);
    check_close(t.period_s, 10, 1e-9);
    message_s = 3;
    run(&b, &t);
    check_close(t.period_s, 13, 1e-9);
}

/* Messages of 20 s: the lane is busy 40 s an iteration and sets the period: gradients of the next
 * iteration queue behind. */
static void a_full_lane_sets_the_pace(void **state) {
    struct bench b;
    struct dl_timeline t;
    make(&b);
    each = true;
    message_s = 20;
    run(&b, &t);
    assert_true(t.period_s >= 40);
    /* at most the 7 s until the first gradient are not overlapped */
    assert_true(t.period_s <= 40 + 7 + 1e-9);
}

/* The host needs 3 s to issue each of 5 kernels: 1st starts at 3, the others at max(device, 3 k):
 * 3-4, 6-8, 9-13, 13-15 (issued at 12), 15-16 (issued at 15): period 16, of which 6 s the device
 * idles (3 + 2 + 1). */
static void a_slow_host_leaves_gaps(void **state) {
    struct bench b;
    struct dl_timeline t;
    make(&b);
    b.request.behaviour = NULL;
    b.request.dispatch_s = 3;
    run(&b, &t);
    check_close(t.period_s, 16, 1e-12);
    check_close(t.stall_s, 6, 1e-12);
}

/* The same, but the host reads the gradients, complete at 15 s, before it issues the update:
 * 18-19. */
static void the_host_reads_the_gradients_first(void **state) {
    struct bench b;
    struct dl_timeline t;
    make(&b);
    b.request.behaviour = NULL;
    b.request.dispatch_s = 3;
    b.request.checks_overflow = true;
    run(&b, &t);
    check_close(t.period_s, 19, 1e-12);
    check_close(t.stall_s, 9, 1e-12);
}

/* F-HOST-QUEUE: 600 kernels a pass, 1 ms each to issue. The device runs 0.6-1.6, 1.6-3.6, 3.6-7.6
 * and 7.6-9.6. Up to the third pass (1800 kernels) the first (600) must be done, at 1.6, but
 * issuing takes until 1.8; before the fourth (2400) the second (1200), at 3.6. Where the device is
 * no GPU nothing waits: 2.4. */
static void a_full_queue_holds_the_host(void **state) {
    struct bench b;
    struct dl_timeline t;
    make(&b);
    for (int i = 0; i < 2; i++) b.layers[i].forward.launches = b.layers[i].backward.launches = 600;
    b.request.behaviour = NULL;
    b.request.dispatch_s = 1e-3;
    run(&b, &t);
    check_close(b.gradients[0].issued_s, 1.8, 1e-12);
    check_close(b.gradients[1].issued_s, 3.6, 1e-12);
    check_close(b.gradients[1].ready_s, 9.6, 1e-12);
    check_close(t.period_s, 10.6, 1e-12);
    b.fake.device.kind = DL_DEVICE_CPU;
    run(&b, &t);
    check_close(b.gradients[1].issued_s, 2.4, 1e-12);
}

/* F-SLOWDOWN: a message of 3 s runs 7..10 beside 2 s of backward, which it leaves 90 %: 2/0.9 s, so
 * that the second message still runs 10..13. Messages of 1 s: 0.9 of the 2 s are done at 8, the
 * rest at 9.1, then the second message comes: 11.1 s with the update. Beside a message of 1 s that
 * holds all for 1.5 s, 2 s take 3.5. */
static void compute_is_slower_during_messages(void **state) {
    struct bench b;
    struct dl_timeline t;
    make(&b);
    message_s = 3;
    b.request.slowdown_frac = 0.1;
    run(&b, &t);
    check_close(t.slowdown_s, 2 / 0.9 - 2, 1e-12);
    check_close(t.period_s, 14, 1e-12);
    message_s = 1;
    run(&b, &t);
    check_close(t.slowdown_s, 0.1, 1e-12);
    check_close(t.period_s, 11.1, 1e-12);
    b.request.slowdown_frac = 1.5;
    run(&b, &t);
    check_close(t.slowdown_s, 1.5, 1e-12);
}

/* F-CYCLE-PHASE: 12 s without the wait, in two of five phases 5 s more; the lanes are those of the
 * middle phase, without it. */
static void a_mean_over_phases(void **state) {
    struct bench b;
    struct dl_timeline t;
    make(&b);
    b.request.behaviour = &in_cycles;
    message_s = 2;
    run(&b, &t);
    check_close(t.period_s, 12 + 5 * 0.4, 1e-12);
    check_close(t.comm_s, 4, 1e-12);
    check_close(t.sync.messages[1].end_s, 11, 1e-12);
}

/* Two halos of the second layer, 2 s and 1 s on one link, travel while half of its forward pass of
 * 2 s runs; the other half waits for both: 3 s + 1 s. The output of the first layer is gathered in
 * 0.5 s, for which device and host wait. The critical path has the halos, not the inner half. */
static void halos_travel_behind_the_inner_part(void **state) {
    struct dl_layer_message messages[] = {
        {.message = {.duration_s = 0.5, .bandwidth_s = 0.5, .limit = "inter"}, .layer = 0},
        {.message = {.duration_s = 2, .bandwidth_s = 2}, .layer = 1, .hidden_frac = 0.5},
        {.message = {.duration_s = 1, .bandwidth_s = 1}, .layer = 1, .hidden_frac = 0.5},
    };
    struct bench b;
    struct dl_timeline t;
    make(&b);
    b.request.behaviour = NULL;
    b.request.layer_messages = messages;
    b.request.layer_message_count = 3;
    run(&b, &t);
    check_close(t.period_s, 1 + 0.5 + (3 + 1) + 4 + 2 + 1, 1e-12);
    check_close(messages[0].message.start_s, 1, 1e-12);
    check_close(messages[2].message.start_s, 3.5, 1e-12);
    check_close(t.path.s[DL_ON_NETWORK], 0.5, 1e-12);
    check_close(t.path.s[DL_ON_NODE_LINKS], 3, 1e-12);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_exchange),
        cmocka_unit_test(update_waits_for_all),
        cmocka_unit_test(hidden_but_for_the_last),
        cmocka_unit_test(exchanges_take_host_time),
        cmocka_unit_test(next_forward_hides_communication),
        cmocka_unit_test(a_full_lane_sets_the_pace),
        cmocka_unit_test(compute_is_slower_during_messages),
        cmocka_unit_test(a_slow_host_leaves_gaps),
        cmocka_unit_test(a_full_queue_holds_the_host),
        cmocka_unit_test(the_host_reads_the_gradients_first),
        cmocka_unit_test(a_mean_over_phases),
        cmocka_unit_test(halos_travel_behind_the_inner_part),
    };
    return cmocka_run_group_tests(tests, NULL, check_free);
}
