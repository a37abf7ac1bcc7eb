/* input.h - time to bring one batch to the devices of a node: storage, decoding, feeding, copying.
 * F-INPUT. */
#ifndef DL_MODEL_FRAMEWORK_INPUT_H
#define DL_MODEL_FRAMEWORK_INPUT_H

#include "model/framework/framework.h"
#include "model/plan/plan.h"
#include "model/hardware/system.h"
#include "model/workload/workload.h"

struct dl_input_time {
    /* the node's batch from its file system, or its share of the shared one; 0 from the page cache
     */
    double storage_s;
    double decode_s; /* decoding and augmenting it on the node's cores */
    double copy_s;   /* host to device, all devices of the node at once */
    /* the framework's own copy of the batch before the step, which nothing overlaps */
    double feed_s;
    /* with prefetching the slowest of storage, decoding and copy, else their sum */
    double pipeline_s;
    /* the dataset fits in the host's memory: read once, then from the page cache */
    bool cached;
    const char *unknown; /* what real input lacks ("the storage of iris-v100"), NULL: nothing */
};

/* Seconds for plan->batch_per_device_samples on each device of a node. Pure. Synthetic input costs
 * the copy and the feed only. F-INPUT: storage = bytes / min(node's rate, shared rate / nodes);
 * decode = samples x seconds per sample / workers. Source: formulas.md section 12. */
struct dl_input_time dl_input_compute(const struct dl_system *system,
                                      const struct dl_workload *workload,
                                      const struct dl_framework *framework,
                                      const struct dl_plan *plan);

#endif
