/* snapshot.h - predicted memory over one iteration as a snapshot of PyTorch's CUDA allocator, which
 * pytorch.org/memory_viz and torch.cuda._memory_viz show next to a measured one. */
#ifndef DL_PREDICT_OUTPUT_SNAPSHOT_H
#define DL_PREDICT_OUTPUT_SNAPSHOT_H

#include "predict/output/rows.h"

/* Writes a pickle: a device for each pipeline stage, its history of allocations and the blocks that
 * stay. The context, which lies outside of the allocator, is left out. The prediction must have
 * been made with its terms. Atomic. DL_ERR_USAGE: the plan has no course of memory;
 * DL_ERR_SYSTEM. */
enum dl_code dl_snapshot_write(const char *path, const struct dl_prediction_row *row,
                               struct dl_arena *arena, struct dl_err *err);

#endif
