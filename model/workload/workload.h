/* workload.h - a neural network as a list of layers in execution order, with inferred shapes.
 *
 * The file (data/workloads/NAME.json) consists of blocks with repeats and parameters; loading
 * expands them. The result is flat and constant. Counts are per sample unless stated otherwise;
 * double holds them exactly to 2^53.
 *
 * The file is one JSON object (`dlmodel schema workload`):
 *
 *   "format": "dlmodel-workload", "version": 1, "name", "summary"
 *   "source": key of data/SOURCES.md
 *   "family": cnn, transformer, rnn or recommendation; "dataset", "epoch_samples", "sample_bytes"
 *   "extends": "NAME": starts from another workload. What this file gives replaces what that one
 *     gives: parameters and blocks one by one, input and layers as a whole.
 *   "parameters": {"hidden": 1024, "heads": "hidden/64"}: numbers, or expressions of each other
 *     (workload_expr.h)
 *   "choices": [{"parameter": "mlp", "words": ["gelu", "swiglu"]}]: the parameter's value is one of
 *     these words; expressions compare it with them ("mlp == swiglu ? 2 : 1"). With "letters":
 *     "M*-" instead of words it is a text of these letters, or 0 for none: its number of letters,
 *     and pattern[index] the letter at a place, from 0 and over again ("pattern[index] == 'M'")
 *   "limits": [{"parameter": "tied", "holds": "tied == 0 || tied == 1", "expected": "0 or 1"}]: a
 *     value for which the expression is 0 is refused
 *   "input": {"channels": 3, "size": ["height", "width"]} an image, {"tokens": "seq"} a sequence,
 *     {"channels": 13} a vector; "element_bytes" as copied to the device: default 4, of tokens 8
 *   "blocks": [{"name": "unit", "arguments": ["out", "stride"], "defaults": {"stride": 1},
 *     "layers": [...]}]
 *   "layers": [...]: entries in order of registration, which is also the order of execution
 *
 * An entry is a layer, {"kind": "conv", "name": "conv1", "out": 64, "kernel": 7, "stride": 2,
 * "pad": 3, "bias": true}, or the use of a block, {"block": "unit", "name": "layer1", "repeat":
 * "depth", "with": {"out": 64, "stride": "index == 0 ? 2 : 1"}}.
 *
 *   "from": inputs, by default the previous entry. Names of the same list: a block's name means its
 *     last output, "layer1.0.conv" an inner one. In a block "in", "in2", ... are its inputs; at the
 *     top "input" is the workload's.
 *   "when": the entry is left out when this is 0
 *   "repeat": copies one after another, named NAME.0, NAME.1, ...; each starts from the one before,
 *     and "index" counts them
 *   "kernel", "stride", "pad", "dilation", "size": one extent for all dimensions, or one for each,
 *     outermost first; "pad": 0.5 pads one element at one side only
 *   "tied": full name of the layer whose weight this one uses
 *
 * Expressions see parameters, arguments, "index" and "in_channels" (channels of the first
 * input). Tensor and pipeline parallelism also read the parameters layers, hidden, heads, seq
 * and vocab of the family "transformer". */
#ifndef DL_MODEL_WORKLOAD_WORKLOAD_H
#define DL_MODEL_WORKLOAD_WORKLOAD_H

#include "model/core/json.h"
#include "model/machine/kernel.h"
#include "model/workload/kernel_facts.h"

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

/* One kernel of a recorded layer: a stream, or with m a GEMM. Per sample; `once`: per call. */
enum dl_grows { DL_GROWS_COUNT, DL_GROWS_M, DL_GROWS_N, DL_GROWS_K, DL_GROWS_NONE };
struct dl_recorded_kernel {
    int pass; /* enum dl_pass */
    double read_elements, write_elements, once_elements, bytes, flop, launches;
    double m, n, k, count;
    int grows; /* enum dl_grows */
};
struct dl_recorded_work {
    struct dl_map_entry *weights; /* trainable tensors: name and elements */
    int weight_count;
    double buffer_elements;
    double kept_elements, kept_bytes; /* for backward, besides inputs and output */
    bool keeps_input, keeps_output;
    struct dl_recorded_kernel *kernels;
    int kernel_count;
};

struct dl_layer_attention {
    double heads, kv_heads;
    double window;        /* keys that a query sees at most; 0: all */
    double rotary;        /* channels of each head that turn; 0: all */
    double state;         /* of a layer with a state: channels of its keys */
    double document_frac; /* F-PACKED: mean length of a document / sequence; 0: one document */
    bool causal, flash, sinks;
};

struct dl_layer_experts {
    double experts, held_experts; /* all, those on this device */
    double top_k;                 /* experts per token */
    double capacity;              /* room of an expert / mean number of its tokens */
    bool dropless;                /* experts compute every token; then capacity is 1 */
    bool gated;                   /* the first matrix is doubled and gated */
    bool router_bias;
};

struct dl_layer_request {                  /* what the entry asks of the output; 0: not given */
    double hidden;                         /* channels */
    double target[DL_DIMS], tokens, scale; /* extents */
    int target_dims;
};

struct dl_layer_saved {  /* for backward */
    double elements;     /* distinct activation elements that this layer keeps */
    double bytes;        /* further bytes of fixed width: masks, indices, statistics */
    double own_elements; /* part of elements that only this layer reads (attention scores); with
                            bytes what recomputing a `recomputable` layer frees */
    unsigned keeps;      /* DL_KEEPS_*: what its backward reads, to count distinct tensors */
};

/* Of convolutions and pooling. */
struct dl_layer_window {
    double kernel[DL_DIMS], stride[DL_DIMS], pad[DL_DIMS], dilation[DL_DIMS];
    bool ceil_mode; /* the output's size is rounded up */
};

struct dl_layer_frozen {
    const struct dl_parameter *list;
    int count;
};

/* Of "h.7.attn.qkv": 7 and the length of "h.7."; the length is 0 for other names. */
struct dl_layer_block {
    int number;
    size_t prefix;
};

struct dl_layer {
    const char *name; /* unique in the workload: "layer1.0.conv2" */
    const struct dl_layer_kind *kind;
    const int *inputs; /* indexes of earlier layers, -1: the workload's input */
    int input_count;
    struct dl_shape in, out; /* in: of the first input */
    double in_elements;      /* of all inputs together */

    /* Geometry; which members count depends on the kind. */
    struct dl_layer_window window;
    double groups;
    double rows; /* of an embedding table */
    double tables;
    struct dl_layer_attention attention;
    struct dl_layer_experts moe;
    bool bias, in_place, bidirectional, recomputable;
    double dropout;
    struct dl_layer_request requested;
    bool sparse, additive;
    bool view; /* the output is the input's memory (flatten) */

    /* Results of shape inference. */
    const struct dl_parameter *parameters;
    int parameter_count;
    double parameter_elements; /* trainable */
    /* F-FROZEN: tensors that are not trained; `frozen` too for what uses those of another layer */
    bool frozen;
    struct dl_layer_frozen frozen_tensors;
    double frozen_elements;
    int64_t adapter_rank;   /* F-LORA: of its adapter; 0: none */
    double buffer_elements; /* not trained, kept and broadcast: batch-norm statistics */
    double forward_macs;
    struct dl_layer_saved saved;
    int consumers; /* layers whose backward adds to the gradient of this output */
    int tied_to;   /* layer whose parameters this one shares, or -1 */
    bool detached; /* backward stops after this layer */
    bool first;    /* reads the workload's input: needs no backward-data */
    struct dl_layer_block block;
    /* so many layers before it, one of equal shapes was the first: dl_layer_twin; 0: none known */
    int twin_before;
    const struct dl_recorded_work *work; /* of a recorded layer; NULL: none */
};

enum { DL_KEEPS_INPUT = 1, DL_KEEPS_OUTPUT = 2 };

/* The first layer whose kernels are those of layer `index`, maybe itself: what one takes, the other
 * takes. Compares, so that it holds for changed copies of a workload, and for parts of one. */
int dl_layer_twin(const struct dl_layer *layers, int index);
/* Finds twin_before. */
void dl_layer_find_twins(struct dl_layer *layers, int count);

/* Whether tokens see others, and how: then tensor parallelism splits the layer by its heads. */
enum dl_mixing { DL_MIXES_NOTHING, DL_MIXES_BY_ATTENTION, DL_MIXES_BY_STATE };

enum { DL_LAYER_KERNELS = 24 }; /* most kernels one layer emits in one pass */

/* One kind of layer: a file in model/workload/layers/, one row in dl_layer_kinds. */
struct dl_layer_kind {
    const char *name, *summary, *source;
    const char *alias; /* its name in the previous release: read, never printed; NULL: none */
    unsigned needs;    /* DL_KEY_* of layer.h: keys that its entry must have */
    unsigned takes;    /* keys that its entry may also have */
    enum dl_work work; /* of its bandwidth-bound kernels */
    enum dl_mixing mixing;
    bool reshapes; /* its 'size' has the dimensions of its output, not of its input */
    int inputs_min, inputs_max;
    /* From in-shapes and geometry to out-shape, parameters, MACs, saved activations. */
    enum dl_code (*infer)(struct dl_layer *layer, const struct dl_shape *inputs,
                          struct dl_arena *arena, struct dl_err *err);
    /* Writes the kernels of one pass over `batch` samples to out[DL_LAYER_KERNELS] and returns
     * their number. Backward-data begins with the additions that merge the gradients of this
     * layer's output when several layers read it. */
    int (*kernels)(const struct dl_layer *layer, const struct dl_kernel_facts *facts,
                   enum dl_pass pass, double batch, struct dl_kernel *out);
};
extern const struct dl_layer_kind *const dl_layer_kinds[]; /* NULL-terminated */
/* The kind with that name or alias; NULL: none. */
const struct dl_layer_kind *dl_layer_kind_find(const char *name);

/* The repeated part of a network (workload_stack.c): layers of the workload. */
struct dl_stack {
    int lead, own, first; /* first of all blocks, of those of the body's stack, of the body */
    int count, each;      /* body layers, 0: none; workload layers of one */
    /* of layers of several kinds in no short order, all of which are then one body layer: their
     * number; 0: body layers are equal */
    int mixed;
};

struct dl_workload {
    const char *name, *summary, *source;
    const char *family;   /* "cnn", "transformer", "rnn", "recommendation" */
    const char *dataset;  /* usual one: "imagenet"; NULL: none */
    double epoch_samples; /* of that dataset; NAN: unknown */
    double sample_bytes;  /* stored (compressed) size of a sample on disk; NAN: unknown */
    struct dl_shape input;
    double input_bytes_per_sample; /* as copied to the device */
    const struct dl_layer *layers;
    int layer_count;
    double parameters; /* trainable elements, tied ones once */
    int parameter_tensors;
    double frozen_elements; /* elements that are not trained */
    double buffer_elements;
    double forward_macs_per_sample;
    double activation_elements_per_sample; /* saved for backward */
    /* Parameters that one token uses: of a mixture of experts only those that it goes to. */
    double active_parameters;
    /* Multiply-adds of a forward pass as model flop count them (6 flop each for forward and
     * backward): attention by the pairs that its mask leaves, so half of it when it is causal;
     * experts that a token goes to, without capacity; nothing is recomputed. */
    double model_macs_per_sample;
    /* of GPT-like models, for tensor and pipeline parallelism; NAN for others */
    double transformer_layers, hidden, heads, sequence, vocabulary;
    struct dl_stack stack;
    struct dl_map_entry *values; /* parameters in force (input size, seq, classes, ...) */
    int value_count;
};

/* F-MTP: the override of the layers that predict further tokens, and the refusal of a workload that
 * has no such parameter. */
#define DL_MTP_KEY "workload.mtp_layers"
enum dl_code dl_workload_no_mtp(const struct dl_workload *workload, struct dl_err *err);

/* F-PACKED: a copy whose sequences hold documents of `document_tokens` each, at most the sequence.
 * DL_ERR_USAGE: a network without attention. */
enum dl_code dl_workload_packed(const struct dl_workload *workload, double document_tokens,
                                struct dl_arena *arena, const struct dl_workload **out,
                                struct dl_err *err);

/* F-FROZEN: a copy of which `list` is not trained: a number of first layers (of a transformer its
 * blocks, with what comes before them; of others those with weights, normalizations not counted),
 * "backbone" (all but the head), "head" (what follows the blocks; else the last layer with
 * weights), or names of layers or blocks. DL_ERR_USAGE: none of these, or nothing is left to train.
 */
enum dl_code dl_workload_frozen(const struct dl_workload *workload, const char *list,
                                struct dl_arena *arena, const struct dl_workload **out,
                                struct dl_err *err);

/* F-LORA: a copy that trains adapters of this rank, for the dense layers of its blocks that are in
 * `targets` (bits of enum dl_lora_target; 0: qkv and proj), and nothing else. */
enum dl_lora_target { DL_LORA_QKV, DL_LORA_PROJ, DL_LORA_FC1, DL_LORA_FC2 };
extern const char *const dl_lora_target_names[]; /* "qkv","proj","fc1","fc2", NULL */
const struct dl_workload *dl_workload_adapted(const struct dl_workload *workload, int64_t rank,
                                              unsigned targets, struct dl_arena *arena);

/* F-SAME-LAYERS: kind of the layers that it repeats in its own sizes: "decoder" with attention to
 * earlier tokens alone, "decoder-experts" with a mixture of experts too; NULL: no such layers. */
const char *dl_workload_layers(const struct dl_workload *workload);

/* Its repeated part, from its layers. */
struct dl_stack dl_workload_find_stack(const struct dl_workload *workload);
/* F-MIXED-STACK: the part of all blocks of a mixed body that the block of layer `index` stands for;
 * 0: an earlier block of the same layers stands for it. 1 of equal body layers. */
double dl_workload_stack_share(const struct dl_workload *workload, int index);
/* Whether it has a layer that carries a state along the tokens. */
bool dl_workload_has_state(const struct dl_workload *workload);

/* Name of the workload that the document "extends" (not a path); *name_out = NULL when there is
 * none. The caller (dl_data_workload) reads that file too, and so on up the chain.
 * dl_workload_build refuses a chain with a cycle or of more than DL_WORKLOAD_EXTENDS documents, so
 * the caller may stop there. */
enum { DL_WORKLOAD_EXTENDS = 8 };
enum dl_code dl_workload_extends(const struct dl_json *doc, struct dl_arena *arena,
                                 const char **name_out, struct dl_err *err);

/* Builds a workload: expands blocks, evaluates expressions, infers shapes. docs[0] is the
 * requested document, docs[1..] the chain of those that it extends, nearest first. Overrides
 * come from "gpt:..." and --set. A key is the name of a parameter in force ("seq", "classes"),
 * optionally with the prefix "workload.", "workload.parameters." or "parameters."; or "input",
 * whose value "226x226" sets height and width (three numbers: depth too) and "seq128" the length
 * of a sequence. An override that applies gets used = true; other keys are left alone.
 * DL_ERR_INPUT carries the place in the file; DL_ERR_USAGE names the key of a bad override.
 * Recursion is bounded. */
enum dl_code dl_workload_build(const struct dl_json *const *docs, int doc_count,
                               struct dl_override *overrides, int override_count,
                               struct dl_arena *arena, struct dl_workload *out, struct dl_err *err);

extern const struct dl_schema dl_workload_schema;

#endif
