/* workload_file.c - field tables of workload files.
 */
#include "model/workload/workload_file.h"

#define ENTRY(field_key, field_type, member, text)                                                 \
    {                                                                                              \
        .key = field_key, .type = field_type, .offset = offsetof(struct dl_entry, member),         \
        .help = text                                                                               \
    }
#define ENTRY_LIST(field_key, field_type, member, text)                                            \
    {                                                                                              \
        .key = field_key, .type = field_type, .offset = offsetof(struct dl_entry, member),         \
        .count_offset = offsetof(struct dl_entry, member##_count), .help = text                    \
    }

static const struct dl_field entry_fields[] = {
    ENTRY("kind", DL_FIELD_STRING, kind, "kind of layer; an entry has this or a block"),
    ENTRY("block", DL_FIELD_STRING, block, "name of a block to put here"),
    ENTRY("name", DL_FIELD_STRING, name, "name within the list; default: the kind, numbered"),
    ENTRY_LIST("from", DL_FIELD_STRINGS, from,
               "inputs: earlier names, in a block 'in', 'in2', ..., at the top 'input'; default: "
               "the previous entry"),
    ENTRY("when", DL_FIELD_EXPR, when, "left out when this is 0"),
    ENTRY("repeat", DL_FIELD_EXPR, repeat, "how often, one after another; 'index' counts from 0"),
    ENTRY_LIST("with", DL_FIELD_MAP, with, "arguments of the block"),
    ENTRY_LIST("kernel", DL_FIELD_EXPRS, kernel, "extents of the kernel or window, or one for all"),
    ENTRY_LIST("stride", DL_FIELD_EXPRS, stride, "steps; default 1, of pooling the window"),
    ENTRY_LIST("pad", DL_FIELD_EXPRS, pad,
               "padding at each side; 0.5 is one element at one side; default 0"),
    ENTRY_LIST("dilation", DL_FIELD_EXPRS, dilation, "distance of kernel elements; default 1"),
    ENTRY_LIST("size", DL_FIELD_EXPRS, size, "output extents of an adaptive pool"),
    ENTRY("out", DL_FIELD_EXPR, out, "output channels, features or hidden size"),
    ENTRY("groups", DL_FIELD_EXPR, groups, "groups of a convolution; default 1"),
    ENTRY("heads", DL_FIELD_EXPR, heads, "heads of an attention"),
    ENTRY("kv_heads", DL_FIELD_EXPR, kv_heads, "heads of keys and values; default: all"),
    ENTRY("rows", DL_FIELD_EXPR, rows, "rows of an embedding table"),
    ENTRY("tokens", DL_FIELD_EXPR, tokens,
          "tokens that an embedding reads, a slice leaves or a prepend adds"),
    ENTRY("scale", DL_FIELD_EXPR, scale, "factor of an upsample"),
    ENTRY("dropout", DL_FIELD_EXPR, dropout, "probability of dropping, from 0 to below 1"),
    ENTRY("causal", DL_FIELD_EXPR, causal, "1: a token sees only earlier ones"),
    ENTRY("flash", DL_FIELD_EXPR, flash, "1: fused attention that keeps no scores"),
    ENTRY("experts", DL_FIELD_EXPR, experts, "experts of a mixture"),
    ENTRY("topk", DL_FIELD_EXPR, topk, "experts that each token takes; default 1"),
    ENTRY("capacity", DL_FIELD_EXPR, capacity,
          "capacity factor: room of an expert / mean share of the tokens; default 1"),
    ENTRY("bias", DL_FIELD_BOOL, bias, "has a bias"),
    ENTRY("ceil", DL_FIELD_BOOL, ceil, "pooling rounds its output extent up"),
    ENTRY("in_place", DL_FIELD_BOOL, in_place, "overwrites its input"),
    ENTRY("bidirectional", DL_FIELD_BOOL, bidirectional, "an LSTM in both directions"),
    ENTRY("sparse", DL_FIELD_BOOL, sparse, "the gradient of the table has the used rows alone"),
    ENTRY("additive", DL_FIELD_BOOL, additive,
          "additive attention with its own weights (Bahdanau)"),
    ENTRY("tied", DL_FIELD_STRING, tied, "full name of the layer whose weight this one uses"),
    {0},
};

static const struct dl_schema entry_schema = {
    .name = "layer",
    .summary = "a layer, or the use of a block",
    .size = sizeof(struct dl_entry),
    .fields = entry_fields,
};

#define BLOCK(field_key, field_type, member)                                                       \
    .key = field_key, .type = field_type, .offset = offsetof(struct dl_block, member)

static const struct dl_field block_fields[] = {
    {BLOCK("name", DL_FIELD_STRING, name), .required = true, .help = "name of the block"},
    {BLOCK("arguments", DL_FIELD_STRINGS, arguments),
     .count_offset = offsetof(struct dl_block, argument_count),
     .help = "names that its expressions use; 'with' gives their values"},
    {BLOCK("defaults", DL_FIELD_MAP, defaults),
     .count_offset = offsetof(struct dl_block, default_count),
     .help = "values of arguments that 'with' leaves out"},
    {BLOCK("layers", DL_FIELD_LIST, layers), .count_offset = offsetof(struct dl_block, layer_count),
     .child = &entry_schema, .required = true, .help = "its layers in order"},
    {0},
};

static const struct dl_schema block_schema = {
    .name = "block",
    .summary = "a named list of layers",
    .size = sizeof(struct dl_block),
    .fields = block_fields,
};

#define INPUT(field_key, field_type, member)                                                       \
    .key = field_key, .type = field_type, .offset = offsetof(struct dl_workload_input, member)

static const struct dl_field input_fields[] = {
    {INPUT("channels", DL_FIELD_EXPR, channels),
     .help = "channels of an image, or features of a vector; default 1"},
    {INPUT("size", DL_FIELD_EXPRS, size),
     .count_offset = offsetof(struct dl_workload_input, size_count),
     .help = "spatial extents, outermost first: [height, width]"},
    {INPUT("tokens", DL_FIELD_EXPR, tokens), .help = "length of a sequence of tokens"},
    {INPUT("element_bytes", DL_FIELD_EXPR, element_bytes),
     .help = "bytes of an element as copied to the device; default 4, of tokens 8"},
    {0},
};

static const struct dl_schema input_schema = {
    .name = "input",
    .summary = "one sample",
    .size = sizeof(struct dl_workload_input),
    .fields = input_fields,
};

#define FILE_FIELD(field_key, field_type, member)                                                  \
    .key = field_key, .type = field_type, .offset = offsetof(struct dl_workload_file, member)

static const struct dl_field file_fields[] = {
    {FILE_FIELD("name", DL_FIELD_STRING, name), .required = true, .help = "name of the workload"},
    {FILE_FIELD("summary", DL_FIELD_STRING, summary), .required = true,
     .help = "one line about it"},
    {FILE_FIELD("source", DL_FIELD_STRING, source), .required = true,
     .help = "key of data/SOURCES.md"},
    {FILE_FIELD("extends", DL_FIELD_STRING, extends),
     .help = "name of a workload that this one changes"},
    {FILE_FIELD("family", DL_FIELD_STRING, family),
     .help = "cnn, transformer, rnn or recommendation"},
    {FILE_FIELD("dataset", DL_FIELD_STRING, dataset), .help = "usual data set"},
    {FILE_FIELD("epoch_samples", DL_FIELD_NUMBER, epoch_samples), .min = 1.0, .max = 1e15,
     .unit = DL_UNIT_SAMPLE, .help = "samples of the data set"},
    {FILE_FIELD("sample_bytes", DL_FIELD_NUMBER, sample_bytes), .min = 0.0, .max = 1e15,
     .unit = DL_UNIT_BYTE, .help = "mean size of a stored sample"},
    {FILE_FIELD("parameters", DL_FIELD_MAP, parameters),
     .count_offset = offsetof(struct dl_workload_file, parameter_count),
     .help = "named numbers or expressions; --set changes them"},
    {FILE_FIELD("input", DL_FIELD_OBJECT, input),
     .count_offset = offsetof(struct dl_workload_file, has_input), .child = &input_schema,
     .help = "one sample"},
    {FILE_FIELD("blocks", DL_FIELD_LIST, blocks),
     .count_offset = offsetof(struct dl_workload_file, block_count), .child = &block_schema,
     .help = "named lists of layers"},
    {FILE_FIELD("layers", DL_FIELD_LIST, layers),
     .count_offset = offsetof(struct dl_workload_file, layer_count), .child = &entry_schema,
     .help = "the layers in order of registration"},
    {0},
};

const struct dl_schema dl_workload_schema = {
    .name = "dlmodel-workload",
    .summary = "a neural network, layer by layer",
    .size = sizeof(struct dl_workload_file),
    .fields = file_fields,
    .top_level = true,
};

unsigned dl_entry_keys(const struct dl_entry *e) {
    const bool present[DL_LAYER_KEYS] = {
        e->out != NULL,
        e->kernel_count > 0,
        e->stride_count > 0,
        e->pad_count > 0,
        e->dilation_count > 0,
        e->size_count > 0,
        e->groups != NULL,
        e->heads != NULL,
        e->kv_heads != NULL,
        e->rows != NULL,
        e->tokens != NULL,
        e->scale != NULL,
        e->dropout != NULL,
        e->causal != NULL,
        e->flash != NULL,
        e->bias,
        e->ceil,
        e->in_place,
        e->bidirectional,
        e->sparse,
        e->additive,
        e->tied != NULL,
        e->experts != NULL,
        e->topk != NULL,
        e->capacity != NULL,
    };
    unsigned keys = 0;
    for (unsigned i = 0; i < DL_LAYER_KEYS; i++) keys |= present[i] ? 1u << i : 0u;
    return keys;
}
