/* Recorded results (recorded.h: a regression net, no oracle) of one change at a time: every
 * framework on several machines, each member of the plan changed once. What reads a member shows
 * here, and what reads another one in its place.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/any_case.h"
#include "tests/recorded_outcome.h"

static void change_axes(struct dl_plan *p, int change) {
    static const char *const strategies[] = {
        "data+tensor", "3d",           "data+pipeline", "zero1",       "zero2", "zero3",
        "data+filter", "data+channel", "data+spatial",  "mlsl-hybrid", "expert"};
    if (change < 11) p->strategy = dl_strategy_find(strategies[change]);
    if (change <= 1 || change == 10) p->tp = 2;
    if (change == 1 || change == 2) p->pp = 2, p->micro_batch_samples = 4;
    switch (change) {
    case 11: p->tp = 2, p->sequence_parallel = true; break;
    case 12: p->tp = 2, p->sp = 2; break;
    case 13: p->ep = 2; break;
    case 14: p->pp = 2, p->micro_batch_samples = 2, p->schedule = DL_GPIPE; break;
    case 15: p->pp = 2, p->micro_batch_samples = 2, p->schedule = DL_INTERLEAVED; break;
    case 16: p->pp = 2, p->micro_batch_samples = 2, p->schedule = DL_ASYNC; break;
    case 17: p->pp = 2, p->tp = 2, p->mapping = DL_MAP_PIPELINE_INSIDE; break;
    case 18: p->tp = 2, p->shard = 1; break;
    case 19: p->tp = 2, p->shard = 3, p->shard_group = 2; break;
    default: break;
    }
}

enum { AXES = 20, IMPOSSIBLE = AXES + 28, CHANGES = IMPOSSIBLE + 18 };
static const char *const change_names[CHANGES + 1] = {"data+tensor",
                                                      "3d",
                                                      "data+pipeline",
                                                      "zero1",
                                                      "zero2",
                                                      "zero3",
                                                      "data+filter",
                                                      "data+channel",
                                                      "data+spatial",
                                                      "mlsl-hybrid",
                                                      "expert",
                                                      "tp 2, sequence parallel",
                                                      "tp 2, sp 2",
                                                      "ep 2",
                                                      "pp 2, gpipe",
                                                      "pp 2, interleaved",
                                                      "pp 2, async",
                                                      "pp 2, tp 2, pipeline inside",
                                                      "tp 2, shard 1",
                                                      "tp 2, shard 3 in groups of 2",
                                                      "mixed",
                                                      "bf16",
                                                      "adam",
                                                      "sgd",
                                                      "full recompute",
                                                      "selective recompute",
                                                      "the default recompute",
                                                      "1 node",
                                                      "8 nodes",
                                                      "1 device",
                                                      "1 sample a device",
                                                      "256 samples a device",
                                                      "24 samples in all",
                                                      "gloo",
                                                      "mpi",
                                                      "nccl",
                                                      "variables on the gpu",
                                                      "1 server",
                                                      "real input",
                                                      "first epoch",
                                                      "decoding",
                                                      "decoding by 2",
                                                      "another data set",
                                                      "1 backup worker",
                                                      "1.5 times the compute",
                                                      "xla",
                                                      "inductor",
                                                      "assume paradl",
                                                      "tp 3",
                                                      "sp 3",
                                                      "ep 3",
                                                      "pp 3",
                                                      "pp 2, interleaved, 3 parts",
                                                      "micro-batch 3",
                                                      "99 devices a node",
                                                      "100000 nodes",
                                                      "shard 4",
                                                      "4 virtual stages",
                                                      "99 servers",
                                                      "9 backup workers",
                                                      "25 samples in all",
                                                      "1e6 samples a device",
                                                      "fp8",
                                                      "spatial 5",
                                                      "filter 1000",
                                                      "pp 1000",
                                                      "as it is"};

/* What most frameworks or networks cannot do, at the edge of what some can. */
static void change_beyond(struct dl_plan *p, int change) {
    switch (change - IMPOSSIBLE) {
    case 0: p->tp = 3; break;
    case 1: p->sp = 3; break;
    case 2: p->ep = 3; break;
    case 3: p->pp = 3, p->micro_batch_samples = 1; break;
    case 4:
        p->pp = 2, p->batch_per_device_samples = 6, p->micro_batch_samples = 4;
        p->schedule = DL_INTERLEAVED;
        break;
    case 5: p->pp = 2, p->micro_batch_samples = 3; break;
    case 6: p->devices_per_node = 99; break;
    case 7: p->nodes = 100000; break;
    case 8: p->shard = 4; break;
    case 9: p->pp = 2, p->micro_batch_samples = 2, p->virtual_stages = 4; break;
    case 10: p->servers = 99; break;
    case 11: p->backup_workers = 9; break;
    case 12: p->batch_per_device_samples = 0, p->global_batch_samples = 25; break;
    case 13: p->batch_per_device_samples = 1e6; break;
    case 14: p->precision = DL_FP8; break;
    case 15: p->strategy = dl_strategy_find("data+spatial"), p->sp = 5; break;
    case 16: p->strategy = dl_strategy_find("filter"), p->nodes = 250; break;
    case 17: p->strategy = dl_strategy_find("pipeline"), p->pp = 1000; break;
    default: break;
    }
}

/* Servers, input and what else surrounds the work of devices. */
static void change_input(struct dl_plan *p, int change) {
    switch (change) {
    case AXES + 16: p->variable_placement = "gpu"; break;
    case AXES + 17: p->servers = 1; break;
    case AXES + 18: p->synthetic_input = false; break;
    case AXES + 19: p->synthetic_input = false, p->first_epoch = true; break;
    case AXES + 20: p->synthetic_input = false, p->decode_s_per_sample = 0.02; break;
    case AXES + 21:
        p->synthetic_input = false, p->decode_s_per_sample = 0.02, p->decode_workers = 2;
        break;
    case AXES + 22:
        p->synthetic_input = false, p->sample_bytes = 4e6, p->dataset_samples = 1e6;
        break;
    case AXES + 23: p->backup_workers = 1; break;
    case AXES + 24: p->compute_scale = 1.5; break;
    case AXES + 25: p->compiler = DL_COMPILER_XLA; break;
    case AXES + 26: p->compiler = DL_COMPILER_INDUCTOR; break;
    case AXES + 27: p->assume = DL_ASSUME_PARADL; break;
    default: change_beyond(p, change); break;
    }
}

static void change(struct dl_plan *p, int change) {
    if (change < AXES) change_axes(p, change);
    switch (change) {
    case AXES: p->precision = DL_MIXED; break;
    case AXES + 1: p->precision = DL_BF16; break;
    case AXES + 2: p->optimizer = DL_ADAM; break;
    case AXES + 3: p->optimizer = DL_SGD; break;
    case AXES + 4: p->recompute = DL_RECOMPUTE_FULL; break;
    case AXES + 5: p->recompute = DL_RECOMPUTE_SELECTIVE; break;
    case AXES + 6: p->recompute_open = true; break;
    case AXES + 7: p->nodes = 1; break;
    case AXES + 8: p->nodes = 8; break;
    case AXES + 9: p->nodes = 1, p->devices_per_node = 1; break;
    case AXES + 10: p->batch_per_device_samples = 1; break;
    case AXES + 11: p->batch_per_device_samples = 256; break;
    case AXES + 12: p->batch_per_device_samples = 0, p->global_batch_samples = 24; break;
    case AXES + 13: p->library = "gloo"; break;
    case AXES + 14: p->library = "mpi"; break;
    case AXES + 15: p->library = "nccl"; break;
    default: change_input(p, change); break;
    }
}

static bool runs(const struct dl_system *system, const struct dl_workload *workload,
                 const struct dl_framework *framework) {
    struct dl_plan plan = {.nodes = 2, .batch_per_device_samples = 8, .synthetic_input = true};
    struct dl_arena arena = {0};
    struct dl_prediction p;
    const bool good =
        dl_plan_complete(system, workload, framework, &plan, NULL) == DL_OK &&
        dl_predict(system, workload, framework, &plan, NULL, &arena, &p, NULL) == DL_OK;
    dl_arena_free(&arena);
    return good;
}

static void options(void **state) {
    (void)state;
    static const struct place places[] = {
        {"iris-v100", "alexnet", 32}, {"cartesius-knl", "lenet", 16}, {"dgx-a100-80", NULL, 8}};
    recorded_open("options");
    for (int f = 0; f < all.framework_count; f++) {
        for (int k = 0; k < 3; k++) {
            const struct place *place = &places[k];
            const struct dl_workload *workload =
                place->workload != NULL ? workload_named(place->workload)
                                        : all.workloads[all.workload_count - 2 + f % 2];
            if (!runs(system_named(place->system), workload, all.frameworks[f]))
                workload = all.workloads[all.workload_count - 2];
            char title[300];
            snprintf(title, sizeof title, "%s on %s", all.frameworks[f]->name, place->system);
            recorded_case(title);
            for (int i = 0; i <= CHANGES; i++) {
                struct dl_plan plan = {.nodes = 2,
                                       .batch_per_device_samples = place->batch_samples,
                                       .precision = DL_FP32,
                                       .optimizer = DL_MOMENTUM,
                                       .synthetic_input = true};
                change(&plan, i);
                if (plan.pp > 1 && plan.strategy == NULL && !dl_known(workload->transformer_layers))
                    plan.strategy = dl_strategy_find("data+pipeline");
                record_outcome(change_names[i], system_named(place->system), workload,
                               all.frameworks[f], &plan);
            }
            recorded_end_case();
        }
    }
    recorded_close();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(options)};
    return cmocka_run_group_tests(tests, catalog_load, catalog_free);
}
