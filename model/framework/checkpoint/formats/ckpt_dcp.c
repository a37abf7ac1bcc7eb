/* ckpt_dcp.c - PyTorch's distributed checkpoint: a file of each rank, in which every tensor is an
 * archive of torch.save of its own, and .metadata, a pickle that says where each one is. Ranks that
 * hold the same tensors share the writing. Files are synced.
 */
#include "model/framework/checkpoint/formats/formats.h"

/* An archive of one tensor is 1577 bytes larger than 64 elements, and up to 63 more. */
static const double ARCHIVE_BYTES = 1577 + 31.5, METADATA_TENSOR_BYTES = 226, METADATA_BYTES = 900;
/* A setting of the optimizer is an object of its own: an archive without a tensor, and where. */
static const double SETTING_BYTES = 1261, METADATA_SETTING_BYTES = 148;

static double dcp_bytes(const struct dl_checkpoint_content *c, double ranks) {
    (void)ranks;
    return METADATA_BYTES +
           c->tensor_count * (ARCHIVE_BYTES + METADATA_TENSOR_BYTES + c->name_char_count) +
           c->setting_count * (SETTING_BYTES + METADATA_SETTING_BYTES);
}

/* Of PyTorch 2.15 on CPython 3.11, whose save gathers and scatters pickled plans: a plan is a
 * WriteItem with index, type, sizes, chunk and properties for each tensor. Objects: collections
 * counted over 40 checkpoints of 400 tensors on 1, 2 and 4 ranks (tests/checkpoint/objects.py).
 */
static const struct dl_checkpoint_planning planning = {
    .plan_probe = "dcp-plan",
    .coordinate_probe = "dcp-coordinate",
    .collect_probe = "collect",
    .first_object_count = 8.4,
    .plan_object_count = 16.9,
    .other_object_count = 12.7,
    .written_object_count = 33.7,
};

#define DCP                                                                                        \
    .source = "pytorch-checkpoint-source", .writers = DL_WRITER_SHARD,                             \
    .counters = DL_COUNTERS_TORCH, .planning = &planning, .syncs = true,                           \
    .saves = DL_SAVES_WEIGHTS | DL_SAVES_OPTIMIZER,                                                \
    .also = "RNG states, position of the sampler, GradScaler: a script adds them as Stateful "     \
            "objects",                                                                             \
    .overhead_bytes = dcp_bytes, .ratio = 1

const struct dl_checkpoint_format dl_checkpoint_torch_dcp = {
    .name = "torch-dcp",
    .summary = "torch.distributed.checkpoint.save: every rank writes its shards",
    DCP,
};
const struct dl_checkpoint_format dl_checkpoint_torch_dcp_async = {
    .name = "torch-dcp-async",
    .summary = "the same, async_save: training goes on after a copy to host memory",
    .is_async = true,
    DCP,
};
