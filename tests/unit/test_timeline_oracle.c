/* The timeline against a plain account of three lanes, iteration after iteration without any
 * shortcut: random layers, hosts and exchanges, in 64ths of a second, whose sums are exact. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/framework/timeline.h"
#include "tests/check.h"
#include "tests/fake.h"

/* The timeline ends where iterations differ by 1e-9. */
static const double CLOSE = 1e-7;
enum { LAYERS = 4, ITERATIONS = 96, HALF = 48 };

static uint64_t seed = 77;
static int upto(int count) { return (int)(check_random(&seed) % (uint64_t)count); }
static bool one_in(int count) { return upto(count) == 0; }
static double parts(int most) { return upto(most + 1) / 64.0; }

/* What one case consists of; a gradient of each layer. */
static struct {
    int layers;
    struct dl_message messages[LAYERS]; /* ready_s: after their gradients */
    double device_copy_s, host_s, prologue_s;
    bool wait_each, update_remote;
    double after_s[LAYERS], before_s[LAYERS];
    bool blocks;
} world;

static enum dl_code synchronize(const struct dl_gradient_sync_request *r,
                                struct dl_gradient_sync *out, struct dl_err *err) {
    DL_TRY(dl_gradient_sync_messages(r, world.layers, out, err));
    for (int g = 0; g < world.layers; g++) {
        out->messages[g] = world.messages[g];
        out->messages[g].ready_s += r->gradients[g].ready_s;
    }
    /* the last begins only when backward has ended */
    out->messages[world.layers - 1].ready_s =
        r->backward_end_s + world.messages[world.layers - 1].ready_s;
    out->device_copy_s = world.device_copy_s, out->host_s = world.host_s;
    out->prologue_s = world.prologue_s;
    out->wait_each = world.wait_each, out->update_remote = world.update_remote;
    return DL_OK;
}
static const struct dl_framework_behaviour
    behaviour = {.name = "any", .synchronize = synchronize},
    /* whose phase changes nothing: each phase begins anew, and the mean is one of them */
    in_cycles = {.name = "cycles", .has_phase = true, .synchronize = synchronize};

static struct dl_pass_cost any_pass(void) {
    return (struct dl_pass_cost){.time_s = parts(16), .launches = upto(4)};
}

static void make_world(bool exchanges) {
    memset(&world, 0, sizeof world);
    world.layers = 1 + upto(LAYERS);
    const int most = one_in(3) ? 80 : 12;
    for (int g = 0; g < world.layers; g++) {
        const double duration_s = parts(most);
        world.messages[g] = (struct dl_message){.first = g,
                                                .count = 1,
                                                .ready_s = one_in(2) ? parts(8) : 0,
                                                .duration_s = duration_s,
                                                .latency_s = duration_s / 4,
                                                .tail_s = one_in(2) ? parts(8) : 0,
                                                .returns = !one_in(4)};
        world.after_s[g] = one_in(3) ? parts(8) : 0;
        world.before_s[g] = one_in(3) ? parts(8) : 0;
    }
    world.blocks = one_in(3);
    if (!exchanges) return;
    world.device_copy_s = one_in(2) ? parts(8) : 0;
    world.host_s = one_in(2) ? parts(8) : 0;
    world.prologue_s = one_in(2) ? parts(8) : 0;
    world.wait_each = one_in(2), world.update_remote = one_in(3);
}

/* The account: times since the first iteration began. */
struct account {
    double host_s, device_s, lane_s, begin_s;
    double usable_s[LAYERS];
    double stall_s, comm_s, latency_s, slowdown_s, overlap_s, period_s, backward_end_s, sent_s;
    double forward_s[LAYERS], backward_s[LAYERS], start_s[LAYERS], end_s[LAYERS], update_s;
};

static double later(double a, double b) { return a > b ? a : b; }

/* Issues a pass and runs it; returns its begin within the iteration. */
static double pass(struct account *a, const struct dl_timeline_request *r,
                   const struct dl_pass_cost *cost, double usable_s) {
    a->host_s += cost->launches * r->dispatch_s;
    double at_s = a->device_s;
    if (cost->launches > 0 && a->host_s > at_s) {
        a->stall_s += a->host_s - at_s;
        at_s = a->host_s;
    }
    at_s = later(at_s, usable_s);
    a->device_s = at_s + cost->time_s + cost->launches * r->gap_s;
    a->stall_s += cost->launches * r->gap_s;
    return at_s - a->begin_s;
}

/* Device and host wait for the exchange. */
static void block(struct account *a, double seconds) {
    if (!world.blocks || seconds == 0) return;
    if (a->host_s > a->device_s) a->stall_s += a->host_s - a->device_s;
    a->host_s = a->device_s = later(a->host_s, a->device_s) + seconds;
}

/* Messages in order; returns how long they run beside forward and backward. */
static double lane(struct account *a, const double *ready_s) {
    const double carried_s = later(0, a->lane_s - a->begin_s), until_s = a->backward_end_s;
    double free_s = carried_s, beside_s = carried_s < until_s ? carried_s : until_s;
    for (int m = 0; m < world.layers; m++) {
        const struct dl_message *sent = &world.messages[m];
        const bool last = m == world.layers - 1;
        a->start_s[m] = later(free_s, (last ? until_s : ready_s[m]) + sent->ready_s);
        a->end_s[m] = free_s = a->start_s[m] + sent->duration_s;
        a->sent_s += sent->duration_s, a->latency_s += sent->latency_s;
        if (a->start_s[m] < until_s)
            beside_s += (a->end_s[m] < until_s ? a->end_s[m] : until_s) - a->start_s[m];
        double *usable_s = &a->usable_s[world.layers - 1 - m];
        if (sent->returns) *usable_s = later(*usable_s, a->begin_s + a->end_s[m] + sent->tail_s);
    }
    a->lane_s = a->begin_s + free_s;
    return beside_s;
}

static void iterate(struct account *a, const struct dl_timeline_request *r, int i) {
    const bool exchanges = r->behaviour != NULL;
    const bool each = exchanges && i > 0 && world.wait_each; /* known once it was asked */
    double ready_s[LAYERS];
    a->stall_s = a->latency_s = a->sent_s = a->slowdown_s = a->overlap_s = a->comm_s = 0;
    a->host_s = a->begin_s + r->iteration_host_s;
    a->device_s = a->begin_s + (exchanges && i > 0 ? world.prologue_s : 0);
    for (int l = 0; l < world.layers; l++) {
        a->forward_s[l] = pass(a, r, &r->cost->layers[l].forward, each ? a->usable_s[l] : 0);
        block(a, world.after_s[l]);
    }
    const double ahead_s = a->stall_s;
    for (int l = world.layers - 1; l >= 0; l--) {
        block(a, world.before_s[l]);
        a->backward_s[l] = pass(a, r, &r->cost->layers[l].backward, 0);
        ready_s[world.layers - 1 - l] = a->device_s - a->begin_s;
        a->host_s += r->gradient_host_s;
    }
    a->backward_end_s = a->device_s - a->begin_s;
    if (exchanges) {
        const double idle_s = a->stall_s - ahead_s;
        a->overlap_s = lane(a, ready_s);
        a->slowdown_s = later(0, r->slowdown_frac * a->overlap_s - idle_s);
        a->comm_s = a->sent_s + world.device_copy_s + world.host_s + world.prologue_s;
        a->device_s += a->slowdown_s + world.device_copy_s;
        if (!world.wait_each) a->device_s = later(a->device_s, a->lane_s);
        a->device_s += world.host_s;
    }
    if (r->checks_overflow) a->host_s = later(a->host_s, a->device_s);
    a->update_s = a->device_s - a->begin_s;
    if (!(exchanges && world.update_remote))
        a->update_s = pass(a, r, r->accumulates ? &r->cost->accumulation : &r->cost->update, 0);
    a->period_s = a->device_s - a->begin_s;
}

/* Steady: nothing changes in the last ten iterations, and messages do not fall behind. Else the
 * period is the mean of the second half, at least what the lane takes. */
static bool account(struct account *a, const struct dl_timeline_request *r) {
    double half_s = 0, periods_s[ITERATIONS], behind_s[ITERATIONS];
    bool steady = true;
    memset(a, 0, sizeof *a);
    for (int i = 0; i < ITERATIONS; i++) {
        if (i == HALF) half_s = a->begin_s;
        iterate(a, r, i);
        periods_s[i] = a->period_s;
        behind_s[i] = later(0, a->lane_s - a->device_s);
        a->begin_s = a->device_s;
    }
    for (int i = ITERATIONS - 10; i < ITERATIONS; i++)
        steady = steady && fabs(periods_s[i] - periods_s[i - 1]) <= CLOSE &&
                 fabs(behind_s[i] - behind_s[i - 1]) <= CLOSE;
    if (!steady) a->period_s = later((a->begin_s - half_s) / HALF, a->sent_s);
    return steady;
}

static void check_lanes(const struct dl_timeline *t, const struct account *a, bool exchanges) {
    check_close(t->stall_s, a->stall_s, CLOSE);
    check_close(t->slowdown_s, a->slowdown_s, CLOSE);
    check_close(t->overlap_s, a->overlap_s, CLOSE);
    check_close(t->backward_end_s, a->backward_end_s, CLOSE);
    check_close(t->update_start_s, a->update_s, CLOSE);
    for (int l = 0; l < world.layers; l++) {
        check_close(t->forward_start_s[l], a->forward_s[l], CLOSE);
        check_close(t->backward_start_s[l], a->backward_s[l], CLOSE);
        if (!exchanges) continue;
        check_close(t->sync.messages[l].start_s, a->start_s[l], CLOSE);
        check_close(t->sync.messages[l].end_s, a->end_s[l], CLOSE);
    }
}

static void three_lanes(void **state) {
    (void)state;
    int steady_cases = 0, others = 0;
    for (int i = 0; i < 4000; i++) {
        struct dl_fake f;
        struct dl_layer_cost layers[LAYERS];
        struct dl_gradient gradients[LAYERS] = {{0}};
        const double features[LAYERS + 1] = {10, 10, 10, 10, 10};
        const bool exchanges = !one_in(8);
        fake_make(&f);
        make_world(exchanges);
        fake_layers(&f, world.layers, features);
        memset(layers, 0, sizeof layers);
        for (int l = 0; l < world.layers; l++) {
            layers[l].forward = any_pass(), layers[l].backward = any_pass();
            gradients[l].layer = world.layers - 1 - l;
        }
        layers[0].forward.time_s += 0.125; /* an iteration takes time */
        const struct dl_cost cost = {
            .layers = layers, .update = any_pass(), .accumulation = any_pass()};
        struct dl_timeline_request request = {.cost = &cost,
                                              .behaviour = !exchanges  ? NULL
                                                           : one_in(2) ? &in_cycles
                                                                       : &behaviour,
                                              .gradients = gradients,
                                              .sync = {.system = &f.system,
                                                       .workload = &f.workload,
                                                       .framework = &f.framework,
                                                       .plan = &f.plan,
                                                       .gradients = gradients,
                                                       .gradient_count = world.layers,
                                                       .arena = &f.arena},
                                              .dispatch_s = one_in(2) ? parts(4) : 0,
                                              .gap_s = one_in(2) ? parts(1) : 0,
                                              .iteration_host_s = one_in(3) ? parts(8) : 0,
                                              .gradient_host_s = one_in(3) ? parts(4) : 0,
                                              .checks_overflow = one_in(3),
                                              .accumulates = one_in(3),
                                              .slowdown_frac = one_in(2) ? 0.25 : 0};
        if (world.blocks)
            request.after_forward_s = world.after_s, request.before_backward_s = world.before_s;
        struct dl_timeline t;
        struct dl_err err = {0};
        struct account a;
        assert_int_equal(dl_timeline_run(&request, &t, &err), DL_OK);
        const bool steady = account(&a, &request);
        check_close(t.period_s, a.period_s, CLOSE);
        check_close(t.comm_s, a.comm_s, CLOSE);
        check_close(t.comm_latency_s, a.latency_s, CLOSE);
        if (steady) check_lanes(&t, &a, exchanges);
        steady_cases += steady, others += !steady;
        dl_arena_free(&f.arena);
    }
    assert_true(steady_cases > 3500 && others > 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(three_lanes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
