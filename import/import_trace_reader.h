/* import_trace_reader.h - what the readers of traces share: records of any profiler, collected for
 * dl_trace_join_all. Private to the import of traces. */
#ifndef DL_IMPORT_IMPORT_TRACE_READER_H
#define DL_IMPORT_IMPORT_TRACE_READER_H

#include "import/import_trace_join.h"
#include "import/import_trace_sums.h"
#include "model/core/json_node.h"

struct dl_trace_reader {
    const char *name; /* of the file */
    struct dl_arena *arena;
    struct dl_err *err;
    struct dl_trace_join join;
    struct dl_records steps; /* double: durations of ProfilerStep#I [us] */
    struct dl_trace_names layers;
    double steps_us, squares_us2; /* of the steps */
    double kernels_us;
    double core_s;
    double ranks; /* of distributedInfo; NAN: unknown */
    /* what a reader of other events does with each; NULL: layers and steps */
    enum dl_code (*event)(struct dl_trace_reader *r, const struct dl_json_node *event, int index);
    void *owner;
};

/* The string of a node; "" where it is NULL or no string. */
const char *dl_trace_text(const struct dl_json_node *node);

/* The file of r->name, event by event. */
enum dl_code dl_trace_read(struct dl_trace_reader *r);

enum dl_trace_place { DL_TRACE_ON_HOST, DL_TRACE_IN_RUNTIME, DL_TRACE_ON_DEVICE };

/* A range, a call of the runtime or a kernel. */
struct dl_trace_record {
    const char *name;
    enum dl_trace_place place;
    uint64_t thread;
    double ts_us, dur_us;
    double correlation, sequence; /* NAN: unknown */
    bool has_forward_thread;      /* of an operator of the backward pass */
};

/* index: its number in the file, for errors. DL_ERR_INPUT: a record that counts has no time. */
enum dl_code dl_trace_add(struct dl_trace_reader *r, const struct dl_trace_record *record,
                          int64_t index);

bool dl_trace_is_update(const char *name);
/* Of "layer:NAME:forward" sets e->kind and e->layer; false: another name. */
bool dl_trace_layer_range(const char *name, struct dl_trace_event *e, size_t *layer_length);

/* Whether the file is a database of SQLite, as nsys exports. */
bool dl_trace_is_sqlite(const char *path);
/* Adds the ranges of NVTX, calls of the runtime and kernels; DL_ERR_BACKEND: built without SQLite.
 */
enum dl_code dl_trace_read_sqlite(struct dl_trace_reader *r);

#endif
