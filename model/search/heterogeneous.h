/* heterogeneous.h - one data-parallel job on nodes of different kinds. F-HETEROGENEOUS.
 *
 * All devices finish a step together: the slowest group sets the pace, T = max T_i(b_i). T_i is the
 * step of a job of as many nodes all of kind i, over the slowest of the groups' networks: what an
 * all-reduce over all of them waits for. With equal batches b_i is the same; balanced, the
 * samples are distributed such that the T_i differ as little as whole samples allow. Not modelled:
 * rings whose nodes differ inside.
 */
#ifndef DL_MODEL_SEARCH_HETEROGENEOUS_H
#define DL_MODEL_SEARCH_HETEROGENEOUS_H

#include "model/engine/predict.h"

enum { DL_MIXED_GROUPS = 8 };

struct dl_heterogeneous_group {
    const struct dl_system *system;
    int64_t nodes;
    /* results */
    double batch_per_device_samples; /* of its fullest device */
    double samples;                  /* of the whole group, per iteration */
    double iteration_s;              /* that it would need by itself */
    /* its step / the job's step; the rest is spent waiting for the slowest group */
    double busy_frac;
    double power_w; /* of its nodes while the job runs, F-POWER; NAN: unknown */
    struct dl_memory memory;
    bool fits;
};

struct dl_heterogeneous_job {
    const struct dl_heterogeneous_group *groups;
    int group_count;
    bool balanced; /* batches by speed; else equal ones */
};

struct dl_heterogeneous_question {
    const struct dl_heterogeneous_job *job;
    const struct dl_workload *workload;
    const struct dl_framework *framework;
    const struct dl_plan *plan;
};

/* The prediction of the slowest group as that of the job, with the job's throughput, epoch and
 * efficiency (samples per second / those of all devices alone), and groups in the arena
 * (out->groups). `plan`: batch per device or of the job, nodes ignored; devices per node 0: as many
 * as the smallest node has. Errors: DL_ERR_USAGE for other strategies than data parallelism, fewer
 * samples than devices, and what dl_predict refuses for one of the groups. */
enum dl_code dl_heterogeneous_predict(const struct dl_heterogeneous_question *question, bool terms,
                                      struct dl_arena *arena, struct dl_plan *plan_out,
                                      struct dl_prediction *out, struct dl_err *err);

/* Every group's system as if all `nodes` were of its kind, over the slowest of the groups'
 * networks: an array of group_count in the arena. DL_ERR_USAGE: a system has fewer nodes than
 * its group. */
enum dl_code dl_heterogeneous_systems(const struct dl_heterogeneous_group *groups, int group_count,
                                      int64_t nodes, struct dl_arena *arena, struct dl_system **out,
                                      struct dl_err *err);

#endif
