/* workload_file.c - field tables of workload files.
 */
#include "model/workload/workload_file.h"

#include <string.h>

#define ENTRY(member, type_, ...) DL_FIELD(struct dl_entry, member, type_, __VA_ARGS__)
#define ENTRY_IN(group, member, type_, ...)                                                        \
    DL_FIELD_IN(struct dl_entry, group, member, type_, __VA_ARGS__)
#define ENTRY_LIST(member, type_, ...)                                                             \
    DL_FIELD(struct dl_entry, member, type_,                                                       \
             .count_offset = offsetof(struct dl_entry, member##_count), __VA_ARGS__)

static const char *const pass_names[] = {"forward", "backward_data", "backward_weights", NULL};
static const char *const grows_names[] = {"count", "m", "n", "k", "none", NULL};

#define AMOUNT(member, unit_, ...)                                                                 \
    DL_FIELD(struct dl_recorded_kernel, member, NUMBER, DL_RANGE(0, 9007199254740992.0, unit_),    \
             .has_fallback = true, __VA_ARGS__)

static const struct dl_field kernel_fields[] = {
    DL_FIELD(struct dl_recorded_kernel, pass, CHOICE, .choices = pass_names, .required = true,
             .help = "pass that runs it"),
    AMOUNT(read_elements, DL_UNIT_NONE, .help = "reads of the activation type"),
    AMOUNT(write_elements, DL_UNIT_NONE, .help = "writes of the activation type"),
    AMOUNT(once_elements, DL_UNIT_NONE,
           .help = "reads and writes of a call at any batch: weights, tables"),
    AMOUNT(bytes, DL_UNIT_BYTE, .help = "further traffic of fixed width"),
    AMOUNT(flop, DL_UNIT_FLOP, .help = "elementwise operations"),
    AMOUNT(launches, DL_UNIT_NONE, .fallback = 1, .help = "device kernels; default 1"),
    AMOUNT(m, DL_UNIT_NONE, .help = "GEMM C[m,n] = A[m,k] B[k,n]; default 0: a stream"),
    AMOUNT(n, DL_UNIT_NONE, .help = "columns of C"),
    AMOUNT(k, DL_UNIT_NONE, .help = "inner extent"),
    AMOUNT(count, DL_UNIT_NONE, .fallback = 1, .help = "GEMMs of one call; default 1"),
    DL_FIELD(struct dl_recorded_kernel, grows, CHOICE, .choices = grows_names, .has_fallback = true,
             .fallback = DL_GROWS_COUNT, .help = "extent that grows with the batch; default count"),
    {0},
};

static const struct dl_schema kernel_schema = {
    .name = "kernel",
    .summary = "what a recorded layer runs in one pass, per sample",
    .size = sizeof(struct dl_recorded_kernel),
    .fields = kernel_fields,
};

#define WORK(member, type_, ...) DL_FIELD(struct dl_recorded_work, member, type_, __VA_ARGS__)

static const struct dl_field work_fields[] = {
    WORK(weights, MAP, .count_offset = offsetof(struct dl_recorded_work, weight_count),
         .help = "trainable tensors: elements by name"),
    WORK(buffer_elements, NUMBER, DL_RANGE(0, 9007199254740992.0, DL_UNIT_NONE),
         .has_fallback = true, .help = "tensors that are kept and not trained"),
    WORK(keeps_input, BOOL, .help = "backward reads the inputs"),
    WORK(keeps_output, BOOL, .help = "backward reads the output"),
    WORK(kept_elements, NUMBER, DL_RANGE(0, 9007199254740992.0, DL_UNIT_NONE), .has_fallback = true,
         .help = "further elements that backward reads"),
    WORK(kept_bytes, NUMBER, DL_RANGE(0, 9007199254740992.0, DL_UNIT_BYTE), .has_fallback = true,
         .help = "further bytes of fixed width that backward reads"),
    WORK(kernels, LIST, .count_offset = offsetof(struct dl_recorded_work, kernel_count),
         .child = &kernel_schema, .help = "what its passes run"),
    {0},
};

static const struct dl_schema work_schema = {
    .name = "work",
    .summary = "parameters and kernels of a recorded layer",
    .size = sizeof(struct dl_recorded_work),
    .fields = work_fields,
};

static const struct dl_field entry_fields[] = {
    ENTRY(kind, STRING, .help = "kind of layer; an entry has either this or a block"),
    ENTRY(block, STRING, .help = "name of a block to use here"),
    ENTRY(name, STRING, .help = "name within the list; default: the kind, numbered"),
    ENTRY_LIST(
        from, STRINGS,
        .help = "inputs: earlier names, in a block 'in', 'in2', ..., at the top 'input'; default: "
                "the previous entry"),
    ENTRY(when, EXPR, .help = "the entry is left out when this is 0"),
    ENTRY(repeat, EXPR, .help = "number of copies, one after another; 'index' counts from 0"),
    ENTRY_LIST(with, MAP, .help = "arguments of the block"),
    ENTRY_LIST(kernel, EXPRS, .help = "extents of the kernel or window, or one for all"),
    ENTRY_LIST(stride, EXPRS, .help = "strides; default 1; pooling: the window"),
    ENTRY_LIST(pad, EXPRS,
               .help = "padding at each side; 0.5 is one element at one side; default 0"),
    ENTRY_LIST(dilation, EXPRS, .help = "distance between kernel elements; default 1"),
    ENTRY_LIST(
        size, EXPRS,
        .help =
            "output extents of an adaptive pool, a view, a copy, recorded work or a given tensor"),
    ENTRY(out, EXPR, .help = "output channels, features or hidden size"),
    ENTRY(groups, EXPR, .help = "groups of a convolution or a group norm; default 1"),
    ENTRY_IN(attention, heads, EXPR, .help = "attention heads"),
    ENTRY_IN(attention, kv_heads, EXPR,
             .help = "heads of keys and values (grouped-query attention); default: heads"),
    ENTRY(rows, EXPR, .help = "rows of an embedding table"),
    ENTRY(tokens, EXPR, .help = "tokens that an embedding reads, a slice keeps or a prepend adds"),
    ENTRY(scale, EXPR, .help = "factor of an upsample"),
    ENTRY(dropout, EXPR, .help = "probability of dropping an element, from 0 to below 1"),
    ENTRY_IN(attention, causal, EXPR, .help = "1: a token attends only to itself and earlier ones"),
    ENTRY_IN(attention, flash, EXPR, .help = "1: fused attention that keeps no scores"),
    ENTRY_IN(mixture, experts, EXPR, .help = "experts of a mixture of experts"),
    ENTRY_IN(mixture, topk, EXPR, .help = "experts per token; default 1"),
    ENTRY_IN(mixture, capacity, EXPR,
             .help =
                 "capacity factor: room of an expert / mean number of its tokens; default 1, and 0 "
                 "drops no token"),
    ENTRY(bias, EXPR, .or_bool = true,
          .help = "has a bias: true or 1; default: no, of a layernorm: yes"),
    ENTRY_IN(mixture, gated, EXPR,
             .help = "1: the experts' first matrix is doubled and gated (SwiGLU, GeGLU)"),
    ENTRY_IN(mixture, router_bias, EXPR, .help = "1: the router has a bias for each expert"),
    ENTRY_IN(attention, window, EXPR, .help = "keys that a query sees at most; default 0: all"),
    ENTRY_IN(attention, sinks, EXPR, .help = "1: a learned logit for each head in the softmax"),
    ENTRY_IN(attention, rotary, EXPR, .help = "channels of each head that turn; default: all"),
    ENTRY(ceil, BOOL, .help = "pooling rounds its output extent up"),
    ENTRY(in_place, BOOL, .help = "the output overwrites the input"),
    ENTRY(bidirectional, BOOL, .help = "an LSTM in both directions"),
    ENTRY(sparse, BOOL, .help = "the gradient of the table holds only the rows used"),
    ENTRY(additive, BOOL, .help = "additive attention with its own weights (Bahdanau)"),
    ENTRY(tied, STRING,
          .help =
              "full name of the layer whose weight, of one of its kind all tensors, this one uses"),
    ENTRY(work, OBJECT, .count_offset = offsetof(struct dl_entry, has_work), .child = &work_schema,
          .help = "parameters and kernels of a recorded layer"),
    {0},
};

static const struct dl_schema entry_schema = {
    .name = "layer",
    .summary = "a layer, or the use of a block",
    .size = sizeof(struct dl_entry),
    .fields = entry_fields,
};

static const struct dl_field block_fields[] = {
    DL_FIELD(struct dl_block, name, STRING, .required = true, .help = "name of the block"),
    DL_FIELD(struct dl_block, arguments, STRINGS,
             .count_offset = offsetof(struct dl_block, argument_count),
             .help = "names in its expressions, with values from 'with'"),
    DL_FIELD(struct dl_block, defaults, MAP,
             .count_offset = offsetof(struct dl_block, default_count),
             .help = "values of arguments absent from 'with'"),
    DL_FIELD(struct dl_block, layers, LIST, .count_offset = offsetof(struct dl_block, layer_count),
             .child = &entry_schema, .required = true, .help = "its layers in order"),
    {0},
};

static const struct dl_schema block_schema = {
    .name = "block",
    .summary = "a named list of layers",
    .size = sizeof(struct dl_block),
    .fields = block_fields,
};

static const struct dl_field choice_fields[] = {
    DL_FIELD(struct dl_choice, parameter, STRING, .required = true, .help = "name of a parameter"),
    DL_FIELD(struct dl_choice, words, STRINGS,
             .count_offset = offsetof(struct dl_choice, word_count), .required = true,
             .help = "its values, which expressions may compare with"),
    {0},
};

static const struct dl_schema choice_schema = {
    .name = "choice",
    .summary = "a parameter whose value is a word",
    .size = sizeof(struct dl_choice),
    .fields = choice_fields,
};

static const struct dl_field limit_fields[] = {
    DL_FIELD(struct dl_value_limit, parameter, STRING, .required = true,
             .help = "name of a parameter"),
    DL_FIELD(struct dl_value_limit, holds, STRING, .required = true,
             .help = "condition that must hold (0 = invalid)"),
    DL_FIELD(struct dl_value_limit, expected, STRING, .required = true,
             .help = "in words, for the error: expected ..."),
    {0},
};

static const struct dl_schema limit_schema = {
    .name = "limit",
    .summary = "values that a parameter may have",
    .size = sizeof(struct dl_value_limit),
    .fields = limit_fields,
};

static const struct dl_field input_fields[] = {
    DL_FIELD(struct dl_workload_input, channels, EXPR,
             .help = "channels of an image, or features of a vector; default 1"),
    DL_FIELD(struct dl_workload_input, size, EXPRS,
             .count_offset = offsetof(struct dl_workload_input, size_count),
             .help = "spatial extents, outermost first: [height, width]"),
    DL_FIELD(struct dl_workload_input, tokens, EXPR, .help = "length of a sequence of tokens"),
    DL_FIELD(struct dl_workload_input, element_bytes, EXPR,
             .help = "bytes of an element as copied to the device; default 4; tokens: 8"),
    {0},
};

static const struct dl_schema input_schema = {
    .name = "input",
    .summary = "one sample",
    .size = sizeof(struct dl_workload_input),
    .fields = input_fields,
};

static const struct dl_field file_fields[] = {
    DL_FIELD(struct dl_workload_file, name, STRING, .required = true,
             .help = "name of the workload"),
    DL_FIELD(struct dl_workload_file, summary, STRING, .required = true,
             .help = "description in one line"),
    DL_FIELD(struct dl_workload_file, source, STRING, .required = true,
             .help = "key of data/SOURCES.md"),
    DL_FIELD(struct dl_workload_file, extends, STRING,
             .help = "name of the workload that this one modifies"),
    DL_FIELD(struct dl_workload_file, family, STRING,
             .help = "cnn, transformer, rnn or recommendation"),
    DL_FIELD(struct dl_workload_file, dataset, STRING, .help = "usual dataset"),
    DL_FIELD(struct dl_workload_file, epoch_samples, NUMBER, DL_RANGE(1.0, 1e15, DL_UNIT_SAMPLE),
             .help = "samples of the dataset"),
    DL_FIELD(struct dl_workload_file, sample_bytes, NUMBER, DL_RANGE(0.0, 1e15, DL_UNIT_BYTE),
             .help = "mean size of a sample in storage"),
    DL_FIELD(struct dl_workload_file, parameters, MAP,
             .count_offset = offsetof(struct dl_workload_file, parameter_count),
             .help = "named numbers or expressions; --set changes them"),
    DL_FIELD(struct dl_workload_file, choices, LIST,
             .count_offset = offsetof(struct dl_workload_file, choice_count),
             .child = &choice_schema, .help = "parameters whose values are words"),
    DL_FIELD(struct dl_workload_file, limits, LIST,
             .count_offset = offsetof(struct dl_workload_file, limit_count), .child = &limit_schema,
             .help = "values that parameters may have"),
    DL_FIELD(struct dl_workload_file, input, OBJECT,
             .count_offset = offsetof(struct dl_workload_file, has_input), .child = &input_schema,
             .help = "one sample"),
    DL_FIELD(struct dl_workload_file, blocks, LIST,
             .count_offset = offsetof(struct dl_workload_file, block_count), .child = &block_schema,
             .help = "named lists of layers"),
    DL_FIELD(struct dl_workload_file, layers, LIST,
             .count_offset = offsetof(struct dl_workload_file, layer_count), .child = &entry_schema,
             .help = "the layers in order of registration"),
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
        e->attention.heads != NULL,
        e->attention.kv_heads != NULL,
        e->rows != NULL,
        e->tokens != NULL,
        e->scale != NULL,
        e->dropout != NULL,
        e->attention.causal != NULL,
        e->attention.flash != NULL,
        e->bias != NULL && strcmp(e->bias, "false") != 0,
        e->ceil,
        e->in_place,
        e->bidirectional,
        e->sparse,
        e->additive,
        e->tied != NULL,
        e->mixture.experts != NULL,
        e->mixture.topk != NULL,
        e->mixture.capacity != NULL,
        e->mixture.gated != NULL,
        e->mixture.router_bias != NULL,
        e->attention.window != NULL,
        e->attention.sinks != NULL,
        e->attention.rotary != NULL,
        e->has_work,
    };
    unsigned keys = 0;
    for (unsigned i = 0; i < DL_LAYER_KEYS; i++) keys |= present[i] ? 1u << i : 0u;
    return keys;
}
