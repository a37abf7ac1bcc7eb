/* memory_advice.h - the first change to make when a plan does not fit. F-MEM-ADVICE. */
#ifndef DL_MODEL_ENGINE_MEMORY_ADVICE_H
#define DL_MODEL_ENGINE_MEMORY_ADVICE_H

#include "model/engine/memory.h"

/* A sentence in the arena: the excess in bytes, the first change that makes the plan fit, and
 * the bytes that it saves. Changes are tried in order of their cost in time: selective
 * recomputation, smaller micro-batches, full recomputation, states sharded over the
 * data-parallel ranks, mixed precision, fewer samples. When no single change suffices, the one
 * that saves most. NULL when it fits or the capacity is unknown. `batch`: samples that a device
 * processes at once. */
const char *dl_memory_advice(const struct dl_system *system, const struct dl_workload *workload,
                             const struct dl_framework *framework, const struct dl_plan *plan,
                             double batch, struct dl_arena *arena);

#endif
