/* import_trace.h - layer times from a framework profiler's trace (Chrome trace JSON) or a plain
 * table. */
#ifndef DL_IMPORT_IMPORT_TRACE_H
#define DL_IMPORT_IMPORT_TRACE_H

#include "model/framework/layer_times.h"

struct dl_trace_times {
    /* in order of first appearance; of one iteration */
    struct dl_layer_time *layers;
    int layer_count;
    double update_s; /* NAN: no optimizer in it */
    /* as jitter_frac, from the steps below the lower quartile alone */
    double quartile_jitter_frac;
    /* on a CPU: with the lower quartile of the iterations in place of the median; NAN: no such
     * iterations */
    double quartile_update_s;
    double kernel_s, unclaimed_s; /* device time of one iteration; part of it in no layer */
    /* standard deviation of the iterations / their mean; NAN: unknown */
    double jitter_frac;
    /* of the benchmark program's trace: a fixed matrix multiplication next to the steps; NAN:
     * unknown */
    double core_s;
    int64_t steps;
    bool on_device;   /* times are of kernels; otherwise of the ranges themselves */
    bool by_sequence; /* backward found by sequence numbers, not by ranges */
};

/* Ranges named "layer:NAME:forward" and "layer:NAME:backward" (record_function) mark layers.
 * Kernels count for the range in which they were launched; without kernels (CPU) the range's own
 * time counts, less that of ranges inside. Backward operators without a range belong to the forward
 * range that has their sequence number. steps: iterations, 0: count "ProfilerStep#" ranges, else
 * how often most layers occur. A trace in JSON, or the
 * database that nsys exports. The file is read event by event: what stays in memory takes a
 * fraction of its size. */
enum dl_code dl_trace_file(const char *path, int64_t steps, struct dl_arena *arena,
                           struct dl_trace_times *out, struct dl_err *err);
/* "layer,pass,time_s" with pass forward, backward or update; other columns are ignored. Repeats of
 * a row: the median. Or the table of nsys (import_nsys.h), of `steps` iterations. */
enum dl_code dl_trace_csv(const char *name, const char *text, size_t length, int64_t steps,
                          struct dl_arena *arena, struct dl_trace_times *out, struct dl_err *err);

#endif
