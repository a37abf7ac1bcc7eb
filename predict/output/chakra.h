/* chakra.h - one iteration as an execution trace of Chakra (MLCommons), which simulators such as
 * ASTRA-sim read. */
#ifndef DL_PREDICT_OUTPUT_CHAKRA_H
#define DL_PREDICT_OUTPUT_CHAKRA_H

#include "predict/output/rows.h"

/* Writes the trace of one rank: compute nodes with duration, operations and bytes, collectives with
 * type and size (the whole buffer of a rank), host and copy nodes as those of the CPU. A node
 * depends on the one before it in its lane and, where the lane waited, on the latest that ended
 * before it in another. Of a pipeline one file for each stage, a rank of its own (NAME.0.et, ...),
 * which sends to and receives from the others. The prediction must have been made with its terms.
 * Each file is atomic. DL_ERR_USAGE: the plan has no timeline of one device, messages that are no
 * collectives, or too many micro-batches to list all. */
enum dl_code dl_chakra_write(const char *path, const struct dl_prediction_row *row,
                             struct dl_arena *arena, struct dl_err *err);

#endif
