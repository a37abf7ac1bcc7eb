/* collective_cause.h - why a collective is slower than its prediction. */
#ifndef DL_PREDICT_COMPARE_COLLECTIVE_CAUSE_H
#define DL_PREDICT_COMPARE_COLLECTIVE_CAUSE_H

#include "predict/compare/compare.h"
#include "predict/compare/compare_cause.h"
#include "model/network/collective.h"

/* F-CAUSE of a collective that is slower than its interval: the machine without NVLS, with fewer
 * adapters, without GPUDirect or with TCP is predicted, each; else its links or its start-up take a
 * factor longer. */
const struct dl_causes *dl_collective_causes(const struct dl_system *system,
                                             const struct dl_collective_request *request,
                                             const struct dl_compared *row, struct dl_arena *arena);

#endif
