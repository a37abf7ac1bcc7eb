/* trace.h - one iteration as a file in Chrome's trace format, which chrome://tracing and Perfetto
 * open. */
#ifndef DL_PREDICT_OUTPUT_TRACE_H
#define DL_PREDICT_OUTPUT_TRACE_H

#include "predict/output/rows.h"

/* Writes the tasks on the timeline, with a lane each for computation, communication, copies and
 * host, of each pipeline stage also for what it sends and receives, and below them the breakdown:
 * compute, exposed communication, exposed input, bubble, overhead, end to end; its lengths are the
 * printed numbers and add up to the iteration. The prediction must have been made with its terms.
 * Atomic. DL_ERR_SYSTEM. */
enum dl_code dl_trace_write(const char *path, const struct dl_prediction_row *row,
                            struct dl_arena *arena, struct dl_err *err);

#endif
