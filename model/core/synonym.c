/* synonym.c - see the header. */
#include "model/core/synonym.h"

#include <stddef.h>
#include <string.h>

struct pair {
    const char *theirs, *ours;
};
static const struct pair values[] = {
    {"bfloat16", "bf16"},  {"bf16-mixed", "bf16"}, {"amp_bf16", "bf16"},  {"float16", "fp16"},
    {"half", "fp16"},      {"16-mixed", "fp16"},   {"float32", "fp32"},   {"float", "fp32"},
    {"single", "fp32"},    {"amp", "mixed"},       {"float8", "fp8"},     {"adamw", "adam"},
    {"adam-w", "adam"},    {"fused_adam", "adam"}, {"fusedadam", "adam"}, {"zb", "zero-bubble"},
    {"fusedlamb", "lamb"}, {NULL, NULL},
};
static const struct pair frameworks[] = {
    {"ddp", "pytorch-ddp"},          {"fsdp", "pytorch-fsdp"},   {"fsdp2", "pytorch-fsdp2"},
    {"torchtitan", "pytorch-fsdp2"}, {"nemo", "megatron-core"},  {"megatron-lm", "megatron"},
    {"horovod", "horovod-pytorch"},  {"maxtext", "jax-maxtext"}, {NULL, NULL},
};

static const char *found(const struct pair *pairs, const char *word) {
    for (; pairs->theirs != NULL; pairs++)
        if (strcmp(pairs->theirs, word) == 0) return pairs->ours;
    return NULL;
}

const char *dl_value_synonym(const char *word) {
    const char *ours = found(values, word);
    return ours != NULL ? ours : word;
}

const char *dl_framework_synonym(const char *name) { return found(frameworks, name); }
