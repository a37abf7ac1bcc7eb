/* gradient_bench.h - gradients and a request, for tests of what behaviours send. */
#ifndef DL_TESTS_GRADIENT_BENCH_H
#define DL_TESTS_GRADIENT_BENCH_H

#include "tests/check.h"
#include "tests/fake.h"

struct bench {
    struct dl_fake fake;
    struct dl_gradient gradients[16];
    struct dl_gradient_sync_request request;
    struct dl_gradient_sync sync;
};

/* Gradients of `sizes` bytes, ready at `ready` seconds. */
static inline void make(struct bench *b, int count, const double *sizes, const double *ready) {
    memset(b, 0, sizeof *b);
    fake_make(&b->fake);
    for (int g = 0; g < count; g++) {
        const int layer = count - 1 - g, last = b->fake.workload.layer_count - 1;
        b->gradients[g] = (struct dl_gradient){.layer = layer < last ? layer : last,
                                               .elements = sizes[g] / 4,
                                               .bytes = sizes[g],
                                               .ready_s = ready[g]};
        b->request.total_bytes += sizes[g];
    }
    b->request.system = &b->fake.system;
    b->request.workload = &b->fake.workload;
    b->request.framework = &b->fake.framework;
    b->request.plan = &b->fake.plan;
    b->request.gradients = b->gradients;
    b->request.gradient_count = count;
    b->request.backward_end_s = ready[count - 1];
    b->request.phase_frac = 0.5;
    b->request.library = DL_LIB_NCCL;
    b->request.arena = &test_arena;
}

static inline void run(struct bench *b, const char *behaviour) {
    struct dl_err err = {0};
    if (strcmp(b->fake.framework.behaviour->name, behaviour) != 0)
        fake_behaviour(&b->fake.framework, behaviour);
    const enum dl_code code = b->fake.framework.behaviour->synchronize(&b->request, &b->sync, &err);
    if (code != DL_OK) fail_msg("%s: %s", behaviour, err.message);
}

#endif
