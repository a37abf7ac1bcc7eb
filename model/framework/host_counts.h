/* host_counts.h - what the host runs for each pass of each kind of layer, as tools/count_host.py
 * counts it in a framework's release: data/host_counts.json. Launches of kernels are not among
 * them; the kernels of a pass say how many there are. */
#ifndef DL_MODEL_FRAMEWORK_HOST_COUNTS_H
#define DL_MODEL_FRAMEWORK_HOST_COUNTS_H

#include "model/core/json.h"

struct dl_host_count {
    double call_count;      /* of functions by Python */
    double view_count;      /* operations that move no data */
    double operation_count; /* all others, of a library too */
    double node_count;      /* of autograd */
    double rest_s;          /* measured time beyond that of these counts, on that processor: what
                               the guards of compiled functions and functions in C take */
};

struct dl_host_kind {
    const char *kind;      /* of layers; "expert": one expert of a rank; "other": without a row */
    const char *precision; /* of narrow products that it counts; NULL: 16 bits and wider */
    struct dl_host_count forward, backward;
    double forward_s, backward_s; /* measured; NAN: as the counts say */
};

struct dl_host_release {
    const char *name, *summary, *source;
    struct dl_host_kind *kinds;
    int kind_count;
};

/* Host time of each on the processor that was measured. */
struct dl_host_cost {
    double call_s, view_s, operation_s, node_s;
    const char *source;
    double scale; /* of another processor, which these times hold already */
};

/* Time on another processor over that on the measured one. */
struct dl_host_processor {
    const char *word; /* part of its name in a system's host.cpu; "": any other */
    double scale;
    const char *source;
};

struct dl_host_table {
    struct dl_host_cost cost;
    struct dl_host_processor *processors;
    int processor_count;
    struct dl_host_release *releases;
    int release_count;
};
extern const struct dl_schema dl_host_table_schema;

void dl_host_count_add(struct dl_host_count *to, const struct dl_host_count *from, double times);

#endif
