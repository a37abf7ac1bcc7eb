/* import_nsys.h - the table of nsys stats --report nvtx_gpu_proj_sum --format csv. Private to the
 * import of traces. */
#ifndef DL_IMPORT_IMPORT_NSYS_H
#define DL_IMPORT_IMPORT_NSYS_H

#include "import/import_trace.h"

/* Where the table begins, behind the program's messages; NULL: it is another. */
const char *dl_nsys_table(const char *text, size_t length);
/* Times of its ranges layer:NAME:forward and layer:NAME:backward on the device, with the gaps
 * between their kernels. steps: iterations; 0: the number of instances that most ranges have. */
enum dl_code dl_nsys_csv(const char *name, const char *text, size_t length, int64_t steps,
                         struct dl_arena *arena, struct dl_trace_times *out, struct dl_err *err);

#endif
