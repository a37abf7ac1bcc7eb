/* workload_build.h - the state of one building, shared by workload.c (documents, parameters, totals) and
 * workload_expand.c (blocks, names, layers). For these two alone.
 */
#ifndef DL_MODEL_WORKLOAD_BUILD_H
#define DL_MODEL_WORKLOAD_BUILD_H

#include "model/workload_file.h"

enum {
    DL_WORKLOAD_LAYERS = 1000000,    /* most layers of a workload */
    DL_WORKLOAD_STEPS = 2000000,     /* most entries visited: also blocks that emit nothing end */
    DL_WORKLOAD_PARAMETERS = 256,
    DL_WORKLOAD_DEPTH = 16,          /* blocks within blocks */
    DL_WORKLOAD_CHAIN = 32,          /* parameters that use parameters */
};

enum dl_value_state { DL_VALUE_OPEN, DL_VALUE_BUSY, DL_VALUE_DONE };

struct dl_build_value { /* a parameter in force */
    const char *key, *text;
    int doc;                         /* document that gives it, or -1: an override */
    enum dl_value_state state;
    double value;
};

struct dl_build_symbol {
    const char *name;                /* NULL: a free slot */
    int layer;                       /* whose output it is; -1: the workload's input */
};

struct dl_build {
    const struct dl_json *const *docs;
    const struct dl_workload_file *files; int doc_count;
    struct dl_arena *arena, *scratch; /* of the result; of what dies with the building */
    struct dl_err *err;
    struct dl_build_value *values; int value_count, value_depth;
    struct dl_shape input;
    struct dl_layer *layers; int layer_count, layer_capacity;
    struct dl_build_symbol *symbols; size_t symbol_count, symbol_capacity;
    long steps;
};

/* Value of a parameter; DL_ERR_INPUT when there is none of that name. */
enum dl_code dl_build_value(struct dl_build *b, const char *name, double *value_out, struct dl_err *err);
/* Expands the layers of the nearest document that has some into b->layers. */
enum dl_code dl_build_expand(struct dl_build *b);
/* Puts a place into the error that was just filled: path of the document `doc`. Returns its code. */
enum dl_code dl_build_at(struct dl_build *b, int doc, const char *path);
/* Which document has layers; -1: none. */
int dl_build_layers_doc(const struct dl_build *b);

#endif
