/* stage_plan.h - a pipeline over nodes of several kinds: cost and memory of its possible stages
 * from the model, the best placement (stages.h) for each choice of nodes, and its prediction.
 * F-HETEROGENEOUS-STAGES.
 *
 * A stage takes n nodes of one kind; their devices share each micro-batch and sum the stage's
 * gradients at the end of an iteration. The slowest of the kinds' networks carries all messages.
 * The network is cut only where one tensor crosses.
 */
#ifndef DL_MODEL_SEARCH_STAGE_PLAN_H
#define DL_MODEL_SEARCH_STAGE_PLAN_H

#include "model/search/placement.h"
#include "model/search/stages.h"

struct dl_staged_stage {
    const char *first, *last; /* layers */
    int kind;                 /* of the job's groups */
    int64_t nodes, devices;   /* devices: of all nodes of the stage */
    double step_s;            /* one micro-batch, forward and backward */
    double busy_frac;         /* of the iteration */
    double memory_bytes;      /* of one device */
    double power_w;           /* of its nodes; NAN: unknown */
};

struct dl_staged {
    int64_t nodes[DL_MIXED_GROUPS]; /* of each kind, in use */
    double micro_batch_samples, micro_batches;
    struct dl_staged_stage stages[DL_STAGES];
    int count;
    struct dl_prediction prediction; /* of the whole job: memory is that of the fullest device */
    double sample_energy_j, cost_per_sample; /* NAN: unknown */
};

/* The fastest pipeline for each choice of 0 to N_k nodes of each kind for which there is one, by
 * the objective per sample. `plan`: batch of the job, or per device of all nodes; micro-batch of
 * the whole pipeline, 0: the best of those with 1, 2, 4, ... micro-batches. Errors: DL_ERR_NO when
 * nothing fits; DL_ERR_USAGE: asynchronous frameworks, too many nodes, an objective without power
 * or prices. */
enum dl_code dl_staged_search(const struct dl_heterogeneous_question *question,
                              enum dl_placement_objective objective, struct dl_arena *arena,
                              struct dl_staged **out, int *count, struct dl_err *err);

#endif
