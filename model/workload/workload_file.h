/* workload_file.h - a workload's document as its field table reads it: text of expressions, nothing
 * evaluated. For workload*.c alone; the format is described in workload.h.
 */
#ifndef DL_MODEL_WORKLOAD_WORKLOAD_FILE_H
#define DL_MODEL_WORKLOAD_WORKLOAD_FILE_H

#include "model/workload/layer.h"

/* Of attention layers. */
struct dl_attention_entry {
    const char *heads, *kv_heads, *causal, *flash, *window, *sinks, *rotary;
};
/* Of mixtures of experts. */
struct dl_experts_entry {
    const char *experts, *topk, *capacity, *gated, *router_bias;
};

/* One entry of a list of layers: a layer (kind) or the use of a block. */
struct dl_entry {
    const char *kind, *block, *name;
    const char **from;
    int from_count;
    const char *when, *repeat;
    struct dl_map_entry *with;
    int with_count;
    const char **kernel;
    int kernel_count;
    const char **stride;
    int stride_count;
    const char **pad;
    int pad_count;
    const char **dilation;
    int dilation_count;
    const char **size;
    int size_count;
    const char *out, *groups, *rows, *tokens, *scale, *dropout, *bias;
    struct dl_attention_entry attention;
    struct dl_experts_entry mixture;
    struct dl_recorded_work work;
    bool has_work;
    bool ceil, in_place, bidirectional, sparse, additive;
    const char *tied;
};

struct dl_block {
    const char *name;
    const char **arguments;
    int argument_count;
    struct dl_map_entry *defaults;
    int default_count;
    struct dl_entry *layers;
    int layer_count;
};

struct dl_choice { /* words that are the values of a parameter, or letters of a text */
    const char *parameter, *letters;
    const char **words;
    int word_count;
};

struct dl_value_limit { /* values that a parameter may have */
    const char *parameter, *holds, *expected;
};

struct dl_workload_input {
    const char *channels, *tokens;
    const char **size;
    int size_count;
    const char *element_bytes;
};

struct dl_workload_file {
    const char *name, *summary, *source, *family, *dataset, *extends;
    double epoch_samples, sample_bytes;
    struct dl_map_entry *parameters;
    int parameter_count;
    struct dl_choice *choices;
    int choice_count;
    struct dl_value_limit *limits;
    int limit_count;
    struct dl_workload_input input;
    bool has_input;
    struct dl_block *blocks;
    int block_count;
    struct dl_entry *layers;
    int layer_count;
};

/* DL_KEY_* of the keys that the entry has; a boolean counts when it is true. */
unsigned dl_entry_keys(const struct dl_entry *entry);

#endif
