/* import_trace_join.h - events of a trace in the order of the file, joined to times of layers:
 * kernels to the ranges in which they were launched, backward operators to forward ranges. Private
 * to the import of traces. */
#ifndef DL_IMPORT_IMPORT_TRACE_JOIN_H
#define DL_IMPORT_IMPORT_TRACE_JOIN_H

#include "import/import_trace.h"
#include "import/records.h"

enum dl_trace_kind {
    DL_TRACE_FORWARD,
    DL_TRACE_BACKWARD,
    DL_TRACE_UPDATE,
    DL_TRACE_OPERATOR,
    DL_TRACE_NESTED,   /* an operator inside another range, which has its time */
    DL_TRACE_SEQUENCE, /* this and the next are points: they only mark the range around them */
    DL_TRACE_LAUNCH
};

struct dl_trace_event { /* a range or a point */
    uint64_t thread;
    double ts_us, dur_us, number; /* number: correlation or sequence number */
    const char *layer;            /* FORWARD, BACKWARD; one copy of each name */
    int64_t order;                /* in the file */
    enum dl_trace_kind kind;
    /* set by dl_trace_join_all: ranges directly inside, kernels, backward operators */
    double inside_us, kernel_us, backward_us;
};

struct dl_trace_kernel {
    double number; /* correlation; NAN: unknown */
    double dur_us;
};

/* What the reader adds. */
struct dl_trace_join {
    struct dl_records events;  /* dl_trace_event */
    struct dl_records kernels; /* dl_trace_kernel */
};

/* The result. */
struct dl_trace_joined {
    struct dl_records samples; /* dl_trace_sample */
    double update_us, unclaimed_us;
    bool update;      /* the trace has updates */
    bool by_sequence; /* backward times were found by sequence numbers */
};
/* Sorts the events. out->samples is to be freed. */
void dl_trace_join_all(struct dl_trace_join *join, struct dl_trace_joined *out);

#endif
