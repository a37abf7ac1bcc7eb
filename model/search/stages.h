/* stages.h - where the stages of a pipeline run when nodes are of several kinds: which layers form
 * a stage, which kind of node it gets, and how many of them. Exact. F-HETEROGENEOUS-STAGES.
 *
 * Stages hold consecutive pieces of the network; one stage takes n nodes of one kind, which share
 * each micro-batch. With t_s the seconds that a micro-batch adds on its way through stage s, and
 * w_s what all later micro-batches and the update hold that stage up, an iteration takes
 *
 *   T = sum_s t_s + max_s w_s
 *
 * Nothing orders these pairs in full, so the search keeps for each state (pieces placed, stages
 * behind, nodes in use) all sums and maxima that no other beats in both.
 */
#ifndef DL_MODEL_SEARCH_STAGES_H
#define DL_MODEL_SEARCH_STAGES_H

#include "model/core/arena.h"
#include "model/core/status.h"
#include "model/search/heterogeneous.h"

enum { DL_STAGES = 12, DL_STAGE_PIECES = 48, DL_STAGE_STATES = 200000, DL_STAGE_LABELS = 4000000 };

struct dl_stage_cost {
    double through_s; /* t: of one micro-batch, forward and backward, with its messages */
    double steady_s;  /* w: of all further micro-batches, and of the update */
};

struct dl_stage {
    int from, to; /* pieces [from, to) */
    int kind;
    int64_t nodes; /* of this kind, 1 or more */
};

struct dl_stages_request {
    int pieces; /* of the network, in order; a stage holds one or more */
    int kinds;
    int64_t nodes[DL_MIXED_GROUPS]; /* of each kind */
    /* of a stage with `behind` stages after it; false: it cannot run there */
    bool (*cost)(const void *data, const struct dl_stage *stage, int behind,
                 struct dl_stage_cost *out);
    const void *data;
};

struct dl_stages {
    double time_s;
    int64_t used[DL_MIXED_GROUPS]; /* nodes of each kind */
    struct dl_stage stages[DL_STAGES];
    int count;
};

/* The fastest pipeline for each choice of nodes in use for which there is one, in any order.
 * DL_ERR_USAGE: too many nodes or pieces to search them all; DL_ERR_NO: no pipeline can run. */
enum dl_code dl_stages_place(const struct dl_stages_request *request, struct dl_arena *arena,
                             struct dl_stages **out, int *count, struct dl_err *err);

#endif
