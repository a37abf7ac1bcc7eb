/* plan.h - how the work is split: strategy, framework, devices, batch, precision.
 */
#ifndef DL_MODEL_PLAN_PLAN_H
#define DL_MODEL_PLAN_PLAN_H

#include "model/hardware/kernel.h"
#include "model/base/status.h"

enum dl_optimizer { DL_SGD, DL_MOMENTUM, DL_ADAM, DL_LAMB, DL_OPTIMIZERS };
extern const char *const dl_optimizer_names[]; /* "sgd","momentum","adam","lamb", NULL */
enum dl_recompute { DL_RECOMPUTE_NONE, DL_RECOMPUTE_SELECTIVE, DL_RECOMPUTE_FULL };
extern const char *const dl_recompute_names[]; /* "none","selective","full", NULL */
int dl_recompute_find(const char *name);       /* -1: no such name */

enum dl_schedule { DL_1F1B, DL_GPIPE, DL_INTERLEAVED, DL_ASYNC };
extern const char *const dl_schedule_names[]; /* "1f1b","gpipe","interleaved","async", NULL */
enum dl_assume { DL_ASSUME_NOTHING, DL_ASSUME_PARADL };
extern const char *const dl_assume_names[]; /* "nothing","paradl", NULL */

/* Which ranks are neighbours after those of tensor and sequence parallelism: data (then pipeline),
 * or the pipeline. */
enum dl_mapping { DL_MAP_DATA_INSIDE, DL_MAP_PIPELINE_INSIDE };
extern const char *const dl_mapping_names[]; /* "data-inside","pipeline-inside", NULL */

struct dl_strategy; /* strategy.h */

struct dl_layer_times;

struct dl_plan {
    const struct dl_strategy *strategy;
    /* in use */
    int64_t nodes, devices_per_node;
    /* product = nodes * devices_per_node */
    int64_t dp, tp, pp, sp, ep;
    double batch_per_device_samples, global_batch_samples;
    /* 0: no micro-batches */
    double micro_batch_samples;
    enum dl_precision precision;
    enum dl_optimizer optimizer;
    enum dl_recompute recompute;
    /* tensor parallelism: what is not split by heads is split along the sequence */
    bool sequence_parallel;
    /* of a pipeline's micro-batches */
    enum dl_schedule schedule;
    /* interleaved schedule: parts of the network on each device; 0: 2 there, else 1 */
    int64_t virtual_stages;
    /* simplifications of another model, to compare with it */
    enum dl_assume assume;
    /* tensorflow-ps: "cpu", "gpu"; NULL: the default */
    const char *variable_placement;
    /* collective library instead of the framework's own; NULL: the framework's */
    const char *library;
    bool synthetic_input;
    /* of --dataset; 0: the workload's */
    double sample_bytes, dataset_samples;
    /* on one core; 0: not counted */
    double decode_s_per_sample;
    /* per device; 0: all cores of the node */
    double decode_workers;
    /* of the nodes: a synchronous step goes on without so many, the slowest */
    int64_t backup_workers;
    /* nothing is in the page cache yet */
    bool first_epoch;
    /* measured by a framework's profiler, in place of the surfaces'; NULL: none */
    const struct dl_layer_times *layer_times;
    /* times kernels and the host's issue of them: `compare --anchor` corrects them by a measured
     * run; 0: 1 */
    double compute_scale;
    /* nobody said whether to recompute: as the framework does by default */
    bool recompute_open;
    /* ZeRO stage beside tensor and pipeline parallelism, 0: none; strategies zero1..3 imply it */
    int64_t shard;
    enum dl_mapping mapping;
    /* hybrid sharding: states are shared out among so many neighbouring data ranks; 0: all */
    int64_t shard_group;
};

/* The factor on local work that the plan asks for; 1 when it asks for none. */
static inline double dl_plan_compute_scale(const struct dl_plan *plan) {
    return plan->compute_scale > 0 ? plan->compute_scale : 1;
}

#endif
