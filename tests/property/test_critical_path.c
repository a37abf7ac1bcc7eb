/* Laws of a run (F-CRITICAL-PATH) on random iterations of data parallelism: the path's parts sum
 * to the iteration; each is the derivative of the iteration by the logarithm of its resource, by
 * finite differences; the bottleneck is the resource with the largest derivative. */
#include "model/engine/diagnose.h"
#include "model/engine/timeline.h"
#include "tests/check.h"
#include "tests/fake.h"

enum { LAYERS = 6, CASES = 1500 };

static uint64_t seed = 4711;
static double any(double most) { return most * check_uniform(&seed); }
static bool one_in(int count) { return check_random(&seed) % (uint64_t)count == 0; }

/* One case; `more` of a resource makes what depends on it shorter. */
static struct {
    struct dl_layer_cost layers[LAYERS];
    struct dl_pass_cost update;
    struct dl_message messages[LAYERS];
    double dispatch_s, iteration_host_s, slowdown_frac;
    bool per_layer_wait, update_remote;
} world;
static double more[DL_RESOURCES];

static enum dl_code synchronize(const struct dl_gradient_sync_request *r,
                                struct dl_gradient_sync *out, struct dl_err *err) {
    (void)err;
    dl_gradient_sync_messages(r, LAYERS, out);
    for (int g = 0; g < LAYERS; g++) {
        struct dl_message *m = &out->messages[g];
        *m = world.messages[g];
        m->latency_s /= more[DL_ON_LATENCY];
        m->bandwidth_s /= more[strcmp(m->limit, "inter") == 0 ? DL_ON_NETWORK : DL_ON_NODE_LINKS];
        m->duration_s = m->latency_s + m->bandwidth_s;
        m->ready_s = r->gradients[g].ready_s;
    }
    out->per_layer_wait = world.per_layer_wait, out->update_remote = world.update_remote;
    return DL_OK;
}
static const struct dl_framework_behaviour behaviour = {.name = "any", .synchronize = synchronize};

static struct dl_pass_cost any_pass(void) {
    struct dl_pass_cost pass = {.launches = (double)(check_random(&seed) % 5)};
    for (int i = 0; i < 3; i++) pass.by_limit_s[i] = one_in(3) ? any(1) : any(0.1);
    return pass;
}
static struct dl_pass_cost faster(struct dl_pass_cost pass) {
    static const enum dl_resource limits[] = {
        [DL_LIMIT_COMPUTE] = DL_ON_ARITHMETIC,
        [DL_LIMIT_MEMORY] = DL_ON_MEMORY,
        [DL_LIMIT_LATENCY] = DL_ON_LATENCY,
    };
    for (int i = 0; i < 3; i++) pass.time_s += pass.by_limit_s[i] /= more[limits[i]];
    return pass;
}

static void make_world(void) {
    memset(&world, 0, sizeof world);
    for (int i = 0; i < LAYERS; i++) {
        world.layers[i] = (struct dl_layer_cost){any_pass(), any_pass()};
        world.messages[i] = (struct dl_message){.first = i,
                                                .count = 1,
                                                .latency_s = any(0.1),
                                                .bandwidth_s = one_in(2) ? any(3) : any(0.3),
                                                .limit = one_in(2) ? "inter" : "intra",
                                                .returns = !one_in(4)};
    }
    world.update = any_pass();
    world.dispatch_s = one_in(2) ? any(0.3) : any(0.02);
    world.iteration_host_s = one_in(3) ? any(2) : 0;
    world.slowdown_frac = one_in(2) ? any(0.5) : 0;
    world.per_layer_wait = one_in(2), world.update_remote = one_in(3);
}

static void run(struct dl_timeline *out) {
    struct dl_fake f;
    struct dl_layer_cost layers[LAYERS];
    struct dl_gradient gradients[LAYERS] = {{0}};
    const double features[LAYERS + 1] = {10, 10, 10, 10, 10, 10, 10};
    fake_make(&f);
    fake_layers(&f, LAYERS, features);
    for (int i = 0; i < LAYERS; i++) {
        layers[i].forward = faster(world.layers[i].forward);
        layers[i].backward = faster(world.layers[i].backward);
        gradients[i].layer = LAYERS - 1 - i;
    }
    const struct dl_cost cost = {.layers = layers, .update = faster(world.update)};
    struct dl_timeline_request request = {.cost = &cost,
                                          .behaviour = &behaviour,
                                          .gradients = gradients,
                                          .sync = {.system = &f.system,
                                                   .workload = &f.workload,
                                                   .framework = &f.framework,
                                                   .plan = &f.plan,
                                                   .gradients = gradients,
                                                   .gradient_count = LAYERS,
                                                   .arena = &test_arena},
                                          .slowdown_frac = world.slowdown_frac,
                                          .dispatch_s = world.dispatch_s / more[DL_ON_HOST],
                                          .iteration_host_s =
                                              world.iteration_host_s / more[DL_ON_HOST]};
    assert_int_equal(dl_timeline_run(&request, out, NULL), DL_OK);
    dl_arena_free(&test_arena);
}

static void the_path_is_the_derivative(void **state) {
    const double step = 1e-7;
    int smooth = 0;
    for (int c = 0; c < CASES; c++) {
        struct dl_timeline t, less, greater;
        make_world();
        for (int r = 0; r < DL_RESOURCES; r++) more[r] = 1;
        run(&t);
        check_close(dl_resource_sum_s(&t.path), t.period_s, 1e-9);
        int most = 0;
        bool kink = false;
        double derivatives_s[DL_RESOURCES];
        for (int r = 0; r < DL_RESOURCES; r++) {
            more[r] = 1 + step;
            run(&less);
            more[r] = 1 / (1 + step);
            run(&greater);
            more[r] = 1;
            const double down_s = (t.period_s - less.period_s) / step,
                         up_s = (greater.period_s - t.period_s) / step;
            kink = kink || fabs(down_s - up_s) > 1e-4 * t.period_s;
            derivatives_s[r] = (up_s + down_s) / 2;
            if (derivatives_s[r] > derivatives_s[most]) most = r;
        }
        if (kink) continue; /* another path becomes critical, or no period was found */
        smooth++;
        for (int r = 0; r < DL_RESOURCES; r++)
            assert_true(fabs(derivatives_s[r] - t.path.s[r]) < 1e-3 * t.period_s);
        static const enum dl_bottleneck causes[DL_RESOURCES] = {
            [DL_ON_ARITHMETIC] = DL_BOUND_COMPUTE, [DL_ON_MEMORY] = DL_BOUND_MEMORY_BANDWIDTH,
            [DL_ON_LATENCY] = DL_BOUND_LATENCY,    [DL_ON_NODE_LINKS] = DL_BOUND_INTRA,
            [DL_ON_NETWORK] = DL_BOUND_INTER,      [DL_ON_HOST] = DL_BOUND_FRAMEWORK};
        const struct dl_evidence e = {.path = t.path};
        struct dl_prediction p = {.fits = true, .iteration_s = t.period_s};
        dl_diagnose_bottleneck(&e, &p);
        assert_int_equal(p.bottleneck, causes[most]);
    }
    assert_true(smooth > CASES * 3 / 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_path_is_the_derivative)};
    return cmocka_run_group_tests(tests, NULL, check_free);
}
