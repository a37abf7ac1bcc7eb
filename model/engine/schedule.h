/* schedule.h - which pass of which micro-batch runs when on each stage of a pipeline. F-PIPE-ORDER:
 *
 *   GPipe         all forward passes, then all backward passes
 *   1F1B          stage s of p begins with min(m, p - 1 - s) forward passes, then one forward and
 *                 one backward pass alternate, then the backward passes that are left; asynchronous
 *                 pipelines do the same and do not wait for the end
 *   interleaved   v parts on each stage; stage s begins with min(v m, 2 (p - 1 - s) + (v - 1) p)
 *                 forward passes; groups of p micro-batches pass through part after part
 *
 * A pass begins when its stage is free and the neighbour has finished the same micro-batch. Source:
 * megatron-source (schedules.py).
 */
#ifndef DL_MODEL_ENGINE_SCHEDULE_H
#define DL_MODEL_ENGINE_SCHEDULE_H

#include "model/core/arena.h"
#include "model/core/status.h"
#include "model/plan/plan.h"

struct dl_pipeline_pass {
    int stage, part; /* the part of the stage, from 0 */
    int micro_batch; /* from 0 */
    bool backward;
    double start_s, end_s;
};

struct dl_pipeline_order {
    enum dl_schedule schedule;
    int stages, parts;                    /* parts: of each stage; 1 unless interleaved */
    int micro_batches;                    /* interleaved: a multiple of stages */
    const double *forward_s, *backward_s; /* of each stage, one micro-batch through all its parts */
};

/* 2 x stages x parts x micro-batches passes in the arena, stage by stage in the order in which each
 * runs them. Messages between stages take no time here. DL_ERR_USAGE: an interleaved schedule whose
 * micro-batches are no multiple of the stages. */
enum dl_code dl_pipeline_passes(const struct dl_pipeline_order *order, struct dl_arena *arena,
                                struct dl_pipeline_pass **out, int *count, struct dl_err *err);

#endif
