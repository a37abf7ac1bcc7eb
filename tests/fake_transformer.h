/* fake_transformer.h - a small GPT on the fake system, prepared for tensor, pipeline and expert
 * parallelism: mixed precision, Adam, gradients of 2 bytes. */
#ifndef DL_TESTS_FAKE_TRANSFORMER_H
#define DL_TESTS_FAKE_TRANSFORMER_H

#include <stdint.h>

#include "model/engine/transformer/transformer.h"
#include "tests/check.h"
#include "tests/fake.h"
#include "tests/load_workload.h"

struct gpt {
    struct dl_fake f;
    struct dl_workload workload;
    struct dl_transformer tf;
};

/* overrides: of the parameters of data/workloads/gpt.json; they must outlive the workload. */
static inline void gpt_make(struct gpt *g, struct dl_override *overrides, int count) {
    struct dl_err err = {0};
    fake_make(&g->f);
    load_name("gpt", overrides, count, &test_arena, &g->workload);
    g->f.framework.sync.mixed_gradient_bytes = 2;
    g->f.framework.splits_layers = g->f.framework.shards = true;
    g->f.plan.precision = DL_MIXED;
    g->f.plan.optimizer = DL_ADAM;
    g->f.plan.tp = g->f.plan.pp = g->f.plan.sp = g->f.plan.ep = 1;
    assert_int_equal(dl_transformer_prepare(&g->f.system, &g->workload, &g->f.framework, &g->f.plan,
                                            &test_arena, &g->tf, &err),
                     DL_OK);
}

/* A split over nodes of up to 4 devices. */
static inline struct dl_transformer_split gpt_split(int64_t tp, int64_t sp, int64_t ep, int64_t pp,
                                                    int64_t dp) {
    const int64_t devices = tp * sp * ep * pp * dp, each = devices < 4 ? devices : 4;
    return (struct dl_transformer_split){.tp = tp,
                                         .sp = sp,
                                         .ep = ep,
                                         .pp = pp,
                                         .dp = dp,
                                         .nodes = devices / each,
                                         .devices_per_node = each};
}

/* Bytes that a layer keeps for backward at the split. */
static inline double gpt_kept_bytes(const struct gpt *g, const struct dl_transformer_layer *l,
                                    const struct dl_transformer_split *split,
                                    enum dl_recompute recompute) {
    const struct dl_layer layer = dl_transformer_layer_at(&g->tf, l, split);
    return dl_transformer_kept_bytes(&g->tf, l, &layer, split, recompute);
}

#endif
