/* workload.h - a neural network as a list of layers in execution order, shapes inferred and
 * checked.
 *
 * The file (data/workloads/NAME.json) is made of blocks with repeats and parameters; loading
 * expands it. The result is flat and constant. Counts are per sample unless said otherwise; double
 * holds them exactly to 2^53.
 *
 * The file, one JSON object (dlmodel schema workload):
 *   "format": "dlmodel-workload", "version": 1, "name", "summary", "source" (key of
 * data/SOURCES.md) "family" (cnn, transformer, rnn, recommendation), "dataset", "epoch_samples",
 * "sample_bytes" "extends": "NAME"      starts from another workload: what this file gives replaces
 * what that one gives; parameters and blocks one by one, input and layers as a whole "parameters":
 * {"hidden": 1024, "heads": "hidden/64"}   numbers or expressions (workload_expr.h) of each other
 *   "input": {"channels": 3, "size": ["height", "width"]}  an image; {"tokens": "seq"} a sequence;
 * {"channels": 13} a vector. "element_bytes": as copied to the device (default 4, of tokens 8)
 *   "blocks": [{"name": "unit", "arguments": ["out", "stride"], "defaults": {"stride": 1},
 * "layers": [...]}] "layers": [...]        entries in order of registration, which is also the
 * order of execution An entry is a layer {"kind": "conv", "name": "conv1", "out": 64, "kernel": 7,
 * "stride": 2, "pad": 3, "bias": true} or a block {"block": "unit", "name": "layer1", "repeat":
 * "depth", "with": {"out": 64, "stride": "index == 0 ? 2 : 1"}}. "from": inputs, default the
 * previous entry: names in the same list (a block's name is its last output, "layer1.0.conv" an
 * inner one), in a block "in", "in2", ... for its inputs, at the top "input" "when": left out when
 * 0. "repeat": one after another, named NAME.0, NAME.1, ...; each starts from the one before,
 *           "index" counts
 *   expressions see parameters, arguments, "index", and "in_channels" (channels of the first input)
 *   extents ("kernel", "stride", "pad", "dilation", "size") are one for all dimensions or one for
 * each, outermost first; "pad": 0.5 pads one element at one side only "tied": full name of the
 * layer whose weight this one uses The parameters layers, hidden, heads, seq and vocab of a family
 * "transformer" are also what tensor and pipeline parallelism use.
 */
#ifndef DL_MODEL_WORKLOAD_WORKLOAD_H
#define DL_MODEL_WORKLOAD_WORKLOAD_H

#include "model/base/json.h"
#include "model/hardware/kernel.h"

/* A tensor of one sample: channels x spatial extents. A sequence has dims = 1, size = {1, 1,
 * tokens} and channels = hidden. A vector has dims = 0. */
struct dl_shape {
    int dims;
    double channels;
    double size[DL_DIMS]; /* depth, height, width; unused ones are 1 */
};
double dl_shape_elements(const struct dl_shape *shape);

struct dl_parameter { /* a trainable tensor, in registration order within its layer */
    const char *name; /* "weight", "bias" */
    double elements;
};

struct dl_layer {
    /* unique in the workload: "layer1.0.conv2" */
    const char *name;
    const struct dl_layer_kind *kind;
    const int *inputs;
    /* indexes of earlier layers, -1: the workload's input */
    int input_count;
    /* in: of the first input */
    struct dl_shape in, out;
    /* of all inputs together */
    double in_elements;
    /* geometry, as far as the kind uses it */
    double kernel[DL_DIMS], stride[DL_DIMS], pad[DL_DIMS], dilation[DL_DIMS];
    /* rows: embedding; hidden: channels that "out" asks for */
    double groups, heads, kv_heads, rows, hidden, tables;
    /* mixture of experts: all, computed here, for each token, room / mean share */
    double experts, held_experts, top_k, capacity;
    bool causal, bias, in_place, bidirectional, recomputable, flash;
    double dropout;
    /* output extents asked for: "size", "tokens", "scale"; 0: not given */
    double target[DL_DIMS], tokens, scale;
    /* view: the output is its input's memory (flatten) */
    bool ceil_mode, sparse, additive, view;
    /* results of shape inference */
    const struct dl_parameter *parameters;
    int parameter_count;
    /* trainable */
    double parameter_elements;
    /* not trained, kept and broadcast: batch-norm statistics */
    double buffer_elements;
    double forward_macs;
    /* activation elements kept for backward, distinct tensors, of this layer */
    double saved_elements;
    /* besides, of fixed width: masks, indices, statistics */
    double saved_bytes;
    /* part of saved_elements that only this layer knows (attention scores): with saved_bytes what
     * recomputing a `recomputable` layer frees */
    double own_elements;
    /* DL_KEEPS_*: what its backward reads, for counting distinct tensors */
    unsigned keeps;
    /* layers whose backward adds to the gradient of this output */
    int consumers;
    /* layer whose parameters this one shares, or -1 */
    int tied_to;
    /* backward stops after this layer */
    bool detached;
    /* reads the workload's input: needs no backward-data */
    bool first;
};

enum { DL_KEEPS_INPUT = 1, DL_KEEPS_OUTPUT = 2 };

enum { DL_LAYER_KERNELS = 12 }; /* most kernels one layer emits in one pass */

/* One kind of layer: a file in model/workload/layers/, one row in dl_layer_kinds. */
struct dl_layer_kind {
    const char *name, *summary, *source;
    /* its name in the release before: read, never printed; NULL: none */
    const char *alias;
    /* DL_KEY_* of layer.h: keys that its entry must, and besides may have */
    unsigned needs, takes;
    /* of its bandwidth-bound kernels */
    enum dl_work work;
    int inputs_min, inputs_max;
    /* From in-shapes and geometry to out-shape, parameters, MACs, saved activations. */
    enum dl_code (*infer)(struct dl_layer *layer, const struct dl_shape *inputs,
                          struct dl_arena *arena, struct dl_err *err);
    /* Kernels of one pass for `batch` samples; returns how many were written to
     * out[DL_LAYER_KERNELS]. Backward-data begins with the additions that join the gradients of
     * this layer's output where several layers read it. */
    int (*kernels)(const struct dl_layer *layer, enum dl_pass pass, double batch,
                   struct dl_kernel *out);
};
extern const struct dl_layer_kind *const dl_layer_kinds[]; /* NULL-terminated */
/* The kind with that name or alias; NULL: none. */
const struct dl_layer_kind *dl_layer_kind_find(const char *name);

struct dl_workload {
    const char *name, *summary, *source;
    /* "cnn", "transformer", "rnn", "recommendation" */
    const char *family;
    /* usual one: "imagenet"; NULL: none */
    const char *dataset;
    /* of that dataset; NAN: unknown */
    double epoch_samples;
    /* stored (compressed) bytes of a sample on disk; NAN: unknown */
    double sample_bytes;
    struct dl_shape input;
    /* as copied to the device */
    double input_bytes_per_sample;
    const struct dl_layer *layers;
    int layer_count;
    /* trainable elements, tied ones once */
    double parameters;
    int parameter_tensors;
    double buffer_elements;
    double forward_macs_per_sample;
    /* saved for backward */
    double activation_elements_per_sample;
    /* GPT-like models, for tensor and pipeline parallelism; NAN for others */
    double transformer_layers, hidden, heads, sequence, vocabulary;
    /* parameters in force (input size, seq, classes, ...) */
    struct dl_map_entry *values;
    int value_count;
};

/* Name of the workload that the document "extends" (not a path), *name_out = NULL when there is
 * none. The caller (dl_data_workload) reads that file too, and so on up the chain;
 * dl_workload_build refuses a chain with a cycle or of more than DL_WORKLOAD_EXTENDS documents, so
 * the caller may stop reading at that many. */
enum { DL_WORKLOAD_EXTENDS = 8 };
enum dl_code dl_workload_extends(const struct dl_json *doc, struct dl_arena *arena,
                                 const char **name_out, struct dl_err *err);

/* Build a workload: docs[0] is the document asked for, docs[1..] the chain of those that it
 * extends, nearest first. Expands blocks, evaluates expressions, infers shapes. Overrides are those
 * of "gpt:..." and of --set: a key is the name of a parameter in force ("seq", "classes"; an
 * optional prefix "workload.", "workload.parameters." or "parameters." is allowed) or "input"
 * ("226x226": sets height and width, or depth too with three numbers, or of a sequence "seq128").
 * Each override that was taken gets used = true; keys that are not of a workload are left alone.
 * Errors carry the place in the file; a bad override is DL_ERR_USAGE naming its key. Never recurses
 * without bound. */
enum dl_code dl_workload_build(const struct dl_json *const *docs, int doc_count,
                               struct dl_override *overrides, int override_count,
                               struct dl_arena *arena, struct dl_workload *out, struct dl_err *err);

extern const struct dl_schema dl_workload_schema;

#endif
