/* import_trace_join.h - events of a trace in the order of the file, joined to times of layers:
 * kernels to the ranges in which they were launched, backward operators to forward ranges. All
 * joins are of sorted records (disk_sort.h): memory does not grow with the trace. Private to the
 * import of traces. */
#ifndef DL_IMPORT_IMPORT_TRACE_JOIN_H
#define DL_IMPORT_IMPORT_TRACE_JOIN_H

#include "import/disk_sort.h"
#include "import/import_trace.h"

enum dl_trace_kind {
    DL_TRACE_FORWARD,
    DL_TRACE_BACKWARD,
    DL_TRACE_UPDATE,
    DL_TRACE_OPERATOR,
    DL_TRACE_SEQUENCE, /* from here on points, that ask in which range they lie */
    DL_TRACE_LAUNCH
};

struct dl_trace_event { /* a range or a point */
    uint64_t thread;
    double ts_us, dur_us, number; /* number: correlation or sequence number */
    const char *layer;            /* FORWARD, BACKWARD; one copy of each name */
    int64_t order;                /* in the file */
    enum dl_trace_kind kind;
};

/* What is joined, filled event by event. */
struct dl_trace_join {
    struct dl_disk_sort events;  /* dl_trace_event */
    struct dl_disk_sort kernels; /* with their correlations */
    struct dl_disk_sort steps;   /* durations of ProfilerStep#I [us] */
    double kernels_us;           /* of all kernels */
};
void dl_trace_join_init(struct dl_trace_join *join);
void dl_trace_join_close(struct dl_trace_join *join);
enum dl_code dl_trace_join_event(struct dl_trace_join *join, struct dl_trace_event *event,
                                 struct dl_err *err);
/* correlation NAN: unknown */
enum dl_code dl_trace_join_kernel(struct dl_trace_join *join, double correlation, double dur_us,
                                  struct dl_err *err);
enum dl_code dl_trace_join_step(struct dl_trace_join *join, double dur_us, struct dl_err *err);

/* The result. */
struct dl_trace_joined {
    struct dl_disk_sort samples; /* dl_trace_sample, by layer */
    double update_us, unclaimed_us;
    bool update;      /* the trace has updates */
    bool by_sequence; /* backward times were found by sequence numbers */
};
void dl_trace_joined_close(struct dl_trace_joined *joined);
/* `name` of the file, for errors. After it, also where it failed, dl_trace_joined_close. */
enum dl_code dl_trace_join_all(struct dl_trace_join *join, const char *name,
                               struct dl_trace_joined *out, struct dl_err *err);

#endif
