/* workload_build.h - the state of one building, shared by workload.c (documents, parameters,
 * totals) and workload_expand.c (blocks, names, layers). For these two alone.
 */
#ifndef DL_MODEL_WORKLOAD_WORKLOAD_BUILD_H
#define DL_MODEL_WORKLOAD_WORKLOAD_BUILD_H

#include "model/workload/workload_file.h"

enum {
    DL_WORKLOAD_LAYERS = 100000, /* most layers of a workload */
    DL_WORKLOAD_STEPS = 200000,  /* most entries visited: also blocks that emit nothing end */
    DL_WORKLOAD_PARAMETERS = 256,
    DL_WORKLOAD_DEPTH = 16, /* blocks within blocks */
    DL_WORKLOAD_CHAIN = 32, /* parameters that use parameters */
};

enum dl_value_state { DL_VALUE_OPEN, DL_VALUE_BUSY, DL_VALUE_DONE };

struct dl_build_value { /* a parameter in force */
    const char *key, *text;
    int doc; /* document that defines it, or -1: an override */
    enum dl_value_state state;
    double value;
};

/* Room for as many is made at once, among the results; more layers are copied there at the end. */
enum { DL_FEW_LAYERS = 512 };
enum { DL_BUILD_BYTES = 256 << 10 }; /* of memory, what building most workloads takes */

struct dl_build_symbol {
    const char *name; /* NULL: a free slot */
    int layer;        /* whose output it is; -1: the workload's input */
};

struct dl_build {
    const struct dl_json *const *docs;
    const struct dl_workload_file *files;
    int doc_count;
    struct dl_arena *arena, *scratch; /* of the result; temporary */
    struct dl_err *err;
    struct dl_build_value *values;
    int value_count, value_depth;
    struct dl_shape input;
    struct dl_layer *layers;
    int layer_count, layer_capacity;
    struct dl_build_symbol *symbols;
    size_t symbol_count, symbol_capacity;
    long steps;
};

/* The list being expanded. */
struct dl_frame {
    const struct dl_frame *up;
    const struct dl_block *block; /* NULL: the top list */
    int doc, block_index;
    const struct dl_entry *entries;
    int entry_count;
    const char *prefix; /* "layer1.0." */
    const char *const *argument_names;
    const double *numbers;
    int argument_count;
    double index; /* of the repetition that this frame is */
    const int *inputs;
    int input_count;
    int depth;
};

/* The values of names in an expression of one entry. */
struct dl_scope {
    struct dl_build *b;
    const struct dl_frame *frame;
    double index;
    double in_channels; /* NAN: not known here */
};

/* Value of a parameter; DL_ERR_INPUT when the name is unknown. */
enum dl_code dl_build_value(struct dl_build *b, const char *name, double *value_out,
                            struct dl_err *err);
bool dl_build_has_value(const struct dl_build *b, const char *name);

/* Words (workload_words.c). The number that a word stands for in expressions; NAN: no such word. */
double dl_build_word(const struct dl_build *b, const char *name);
/* The text of a parameter that consists of letters; NULL: it has none. */
const char *dl_build_letters(const struct dl_build *b, const struct dl_build_value *value);
/* The letter of that parameter's text at `index`, which goes over again; 0 of no text. */
enum dl_code dl_build_letter(struct dl_build *b, const char *name, double index, double *out,
                             struct dl_err *err);
/* The word or text that is the value of a parameter; NULL: a number. */
const char *dl_build_word_of(const struct dl_build *b, const struct dl_build_value *value);
/* Whether the text of a parameter, and once it is known its value, is one of its words. */
enum dl_code dl_build_check_text(struct dl_build *b, const struct dl_build_value *value);
enum dl_code dl_build_check_word(struct dl_build *b, const struct dl_build_value *value);
/* Whether each choice belongs to a parameter and its words are none. */
enum dl_code dl_build_check_choices(struct dl_build *b);

/* Expands the layers of the nearest document that has some into b->layers. */
enum dl_code dl_build_expand(struct dl_build *b);
/* Adds a place, `path` in document `doc`, to the error just set. Returns its code. */
enum dl_code dl_build_at(struct dl_build *b, int doc, const char *path);
/* The nearest document that has layers; -1: none. */
int dl_build_layers_doc(const struct dl_build *b);

/* The same for an entry of a list; key: the member at fault, or NULL. */
enum dl_code dl_build_fault(struct dl_build *b, const struct dl_frame *frame, int entry,
                            const char *key);

/* The layer with that full name (-1: the workload's input), else `otherwise`. */
int dl_build_find(const struct dl_build *b, const char *name, int otherwise);
/* Gives a layer's output a full name, which must outlive the build. DL_ERR_INPUT when it is taken.
 */
enum dl_code dl_build_define(struct dl_build *b, const char *name, int layer);
/* Full name of an entry in its frame; without its own name the kind, numbered from the second on.
 */
enum dl_code dl_build_name(struct dl_build *b, const struct dl_frame *frame,
                           const struct dl_entry *e, double index, const char **out);
const struct dl_shape *dl_build_shape(const struct dl_build *b, int layer);

/* Values of expressions: any number; a whole number (half: a multiple of 0.5) in [min, 2^53]. */
enum dl_code dl_build_number(struct dl_scope *scope, const char *text, double *out);
enum dl_code dl_build_extent(struct dl_scope *scope, const char *text, double min, bool half,
                             double *out);

/* Appends the layer of entry `at`. Errors carry its place. */
enum dl_code dl_build_layer(struct dl_build *b, const struct dl_frame *frame, int at, double index,
                            const int *inputs, int input_count, int *out);

#endif
