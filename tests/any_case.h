/* any_case.h - for tests: a random plan of a random system, workload and framework of data/, which
 * about half of the time is impossible.
 */
#ifndef TESTS_ANY_CASE_H
#define TESTS_ANY_CASE_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>

#include "model/framework/gradient_sync.h"
#include "model/engine/strategies/strategy.h"
#include "tests/catalog.h"
#include "tests/fake.h"

static uint64_t seed; /* not 0 */

static inline int upto(int count) { return (int)(check_random(&seed) % (uint64_t)count); }
static inline bool once_in(int count) { return upto(count) == 0; }
static inline double log_between(double low, double high) {
    return low * pow(high / low, check_uniform(&seed));
}

struct a_case {
    struct dl_system system;
    struct dl_framework framework;
    const struct dl_workload *workload;
    struct dl_plan plan;
};

/* The system as it is, or with something that its file does not say, or says otherwise. */
static inline void change_system(struct dl_system *system) {
    static const char *const mpis[] = {"openmpi-3.1", "openmpi-4.1", "mpich-3", "intel", NULL};
    static const char *const protocols[] = {"LL", "LL128", "Simple"}, *const algorithms[] = {
                                                                          "Ring", "Tree"};
    static const char *const kinds[] = {"shm", "upi", "qpi", "pcie3", "tcp"};
    if (once_in(4)) system->software.mpi = mpis[upto(5)];
    if (once_in(12)) system->has_host = false;
    if (once_in(12)) system->has_intra = false;
    if (once_in(12)) system->has_inter = false;
    if (once_in(12)) system->inter.rdma = !system->inter.rdma;
    if (once_in(12)) system->intra.kind = kinds[upto(5)];
    if (once_in(12)) system->software.nccl_algorithm = algorithms[upto(2)];
    if (once_in(12)) system->software.nccl_protocol = protocols[upto(3)];
    if (once_in(6)) system->jitter_frac = once_in(2) ? NAN : 0.2 * check_uniform(&seed);
    if (once_in(6)) system->nodes_share_host = !system->nodes_share_host;
    if (once_in(3)) {
        system->has_storage = true;
        system->storage = (struct dl_storage){
            .kind = "nvme",
            .source = "test",
            .open_s = once_in(2) ? NAN : 1e-4,
            .read_bytes_per_s = once_in(3) ? NAN : log_between(1e7, 1e10),
            .write_bytes_per_s = NAN,
            .total_read_bytes_per_s = once_in(2) ? NAN : log_between(1e7, 1e11)};
    } else if (once_in(3)) {
        system->has_storage = false;
    }
}

/* The ranks along each axis, the pipeline's schedule, and the states that are sharded. */
static inline void change_parallelism(struct dl_plan *p, const double *batches) {
    if (once_in(3)) p->tp = (int64_t)1 << upto(4);
    if (once_in(3)) p->pp = (int64_t)1 << upto(4);
    if (once_in(6)) p->sp = (int64_t)1 << upto(3);
    if (once_in(6)) p->ep = (int64_t)1 << upto(3);
    if (once_in(3)) p->micro_batch_samples = batches[upto(4)];
    if (!p->recompute_open) p->recompute = (enum dl_recompute)upto(3);
    if (once_in(4)) p->sequence_parallel = true;
    if (once_in(2)) p->schedule = (enum dl_schedule)upto(DL_SCHEDULES);
    if (p->schedule == DL_INTERLEAVED && once_in(2)) p->virtual_stages = 2 + upto(3);
    if (once_in(4)) p->shard = upto(4);
    if (once_in(8)) p->shard_group = (int64_t)1 << upto(4);
    if (once_in(4)) p->mapping = DL_MAP_PIPELINE_INSIDE;
}

/* Where variables stand, what sends them, and what the input costs. */
static inline void change_surroundings(struct dl_plan *p) {
    static const char *const libraries[] = {"nccl", "mpi", "gloo", "grpc", "mlsl"};
    if (once_in(20)) p->assume = DL_ASSUME_PARADL;
    if (once_in(4)) p->parameter_servers.variable_placement = once_in(2) ? "cpu" : "gpu";
    if (once_in(4)) p->library = libraries[upto(5)];
    if (once_in(4))
        p->input.sample_bytes = log_between(1e3, 1e7),
        p->input.dataset_samples = floor(log_between(1e3, 1e8));
    if (once_in(4)) p->input.decode_s_per_sample = log_between(1e-5, 1e-1);
    if (once_in(4)) p->input.decode_workers = 1 + upto(16);
    if (once_in(4)) p->input.first_epoch = true;
    if (once_in(4)) p->backup_workers = upto(3);
    if (once_in(6)) p->measured.compute_scale = log_between(0.5, 2);
}

static inline void change_plan(struct dl_plan *p) {
    static const double batches[] = {1, 2, 4, 8, 16, 32, 64, 96};
    int strategies = 0;
    while (dl_strategies[strategies] != NULL) strategies++;
    *p =
        (struct dl_plan){.strategy = once_in(4) ? NULL : dl_strategies[upto(strategies)],
                         .nodes = (int64_t)1 << upto(5),
                         .input.synthetic = !once_in(3),
                         .precision = once_in(2) ? DL_FP32 : (enum dl_precision)upto(DL_PRECISIONS),
                         .optimizer = (enum dl_optimizer)upto(DL_OPTIMIZERS),
                         .recompute_open = once_in(2)};
    if (once_in(3)) p->devices_per_node = 1 + upto(4);
    if (once_in(3))
        p->global_batch_samples = batches[upto(8)] * (double)(p->nodes * 4);
    else
        p->batch_per_device_samples = batches[upto(8)];
    change_parallelism(p, batches);
    change_surroundings(p);
}

/* Most plans ask only for what their strategy and network have; the others ask for anything. */
static inline void tame(struct a_case *c) {
    struct dl_plan *p = &c->plan;
    const unsigned axes = p->strategy != NULL ? p->strategy->axes : 0;
    const bool transformer = dl_known(c->workload->transformer_layers);
    const struct dl_framework_behaviour *behaviour = c->framework.behaviour;
    if ((axes & DL_AXIS_TP) == 0) p->tp = 0, p->sequence_parallel = false;
    if ((axes & DL_AXIS_PP) == 0) p->pp = 0;
    if ((axes & DL_AXIS_SP) == 0) p->sp = 0;
    if ((axes & DL_AXIS_EP) == 0) p->ep = 0;
    if ((axes & (DL_AXIS_TP | DL_AXIS_PP)) == 0) p->shard = 0;
    if (p->tp <= 1) p->sequence_parallel = false;
    if ((axes & DL_AXIS_PP) == 0) p->micro_batch_samples = 0;
    if (!once_in(8)) p->precision = once_in(2) ? DL_FP32 : DL_MIXED;
    if (!transformer) p->recompute = DL_RECOMPUTE_NONE;
    if (!once_in(8)) p->shard_group = 0, p->backup_workers = 0;
    if (p->pp <= 1 && !once_in(8)) p->schedule = DL_1F1B, p->virtual_stages = 0;
    if (behaviour != NULL && behaviour->refuse != NULL && behaviour->refuse(&c->system, p) != NULL)
        p->nodes = 1;
    if (!once_in(8)) p->devices_per_node = 0;
}

static inline void random_case(struct a_case *c) {
    c->system = *all.systems[upto(all.system_count)];
    c->framework = *all.frameworks[upto(all.framework_count)];
    c->workload = all.workloads[upto(all.workload_count)];
    change_system(&c->system);
    if (once_in(6)) c->framework.shards = c->framework.splits_layers = true;
    if (once_in(8)) c->framework.sync.overlaps_backward = !c->framework.sync.overlaps_backward;
    if (once_in(8)) c->framework.input.prefetch_batches = upto(3);
    if (once_in(8)) fake_try(&c->framework, "buffers_broadcast", true);
    change_plan(&c->plan);
    if (!once_in(5)) tame(c);
}

static inline const char *name_of(const struct a_case *c, int number) {
    static char text[512];
    snprintf(text, sizeof text, "case %d: %s, %s, %s, %s, %lld nodes", number, c->system.name,
             c->workload->name, c->framework.name,
             c->plan.strategy != NULL ? c->plan.strategy->name : "own strategy",
             (long long)c->plan.nodes);
    return text;
}

#endif
