/* input.h - time of one batch from storage to the devices of a node: reading, decoding, data
 * loading, host-to-device copy. F-INPUT. */
#ifndef DL_MODEL_FRAMEWORK_INPUT_H
#define DL_MODEL_FRAMEWORK_INPUT_H

#include "model/framework/framework.h"
#include "model/plan/plan.h"
#include "model/machine/system.h"
#include "model/workload/workload.h"

struct dl_input_time {
    /* reading the node's batch from its own or the shared file system; 0 from the page cache */
    double storage_s;
    double decode_s; /* decoding and augmentation on the node's cores */
    /* decoded samples from the plan's input_nodes; 0: the node decodes itself */
    double transfer_s;
    double copy_s; /* host-to-device copy, all devices of the node at once */
    /* the framework's own copy of the batch before the step, and the copy to the device where
     * copies_in_step says so: not overlapped */
    double feed_s;
    /* with prefetching the slowest of reading, decoding and copy, else their sum */
    double pipeline_s;
    /* what takes longest, in words ("decoding"); NULL: nothing takes time */
    const char *slowest;
    /* the dataset fits into the host's memory: later epochs read the page cache */
    bool cached;
    /* missing data for real input ("the storage of the system"); NULL: nothing */
    const char *unknown;
};

/* Times for plan->batch_per_device_samples on each device of a node. Pure. Synthetic input costs
 * the copy and the feed only. F-INPUT: storage = bytes / min(node's rate, shared rate / nodes);
 * decode = samples x seconds per sample / workers. With input_nodes all samples of the job go over
 * their cores, storage and adapters, and the tensors over the adapters of both sides; a core
 * decodes as fast there as here. */
struct dl_input_time dl_input_compute(const struct dl_system *system,
                                      const struct dl_workload *workload,
                                      const struct dl_framework *framework,
                                      const struct dl_plan *plan);

#endif
