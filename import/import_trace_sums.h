/* import_trace_sums.h - times of ranges, summed by layer. Private to the import of traces. */
#ifndef DL_IMPORT_IMPORT_TRACE_SUMS_H
#define DL_IMPORT_IMPORT_TRACE_SUMS_H

#include <stddef.h>

#include "import/import_trace.h"
#include "import/records.h"

/* One time of one layer. */
struct dl_trace_sample {
    const char *layer;
    int64_t first; /* place in the trace */
    int part;      /* 0 forward, 1 backward */
    double time_us;
};

/* Layers in order of first appearance, each with the median of its samples times how often an
 * iteration has it. steps: iterations, 0: the count that most layers have. Sorts the samples. */
void dl_trace_sum(struct dl_records *samples, int64_t steps, struct dl_arena *arena,
                  struct dl_trace_times *out);

/* Of a table: samples of a layer are repeats of one iteration. update_s NAN: unknown. */
void dl_trace_sum_table(struct dl_trace_sample *samples, int64_t count, double update_s,
                        struct dl_arena *arena, struct dl_trace_times *out);

/* Names seen: a hash table, half empty. {0} is empty. */
struct dl_trace_names {
    const char **list;
    size_t count, capacity;
};
/* The one copy of a name in the arena. */
const char *dl_trace_name(struct dl_trace_names *names, const char *text, size_t length,
                          struct dl_arena *arena);

#endif
