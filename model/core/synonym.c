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
static const struct pair names[] = {
    {"ddp", "pytorch-ddp"},
    {"fsdp", "pytorch-fsdp"},
    {"fsdp2", "pytorch-fsdp2"},
    {"hsdp", "pytorch-fsdp2"},
    {"torchtitan", "pytorch-fsdp2"},
    {"nemo", "megatron-core"},
    {"megatron-lm", "megatron"},
    {"horovod", "horovod-pytorch"},
    {"maxtext", "jax-maxtext"},
    {"BertForPreTraining", "bert_base"},
    {"bert-base-uncased", "bert_base"},
    {"bert-large-uncased", "bert_large"},
    {NULL, NULL},
};
/* Instances by the devices that their clouds name (unverified but for the count and kind). */
#define USUAL(devices) "-s " devices " (host and links of the usual node)"
static const struct pair advice[] = {
    {"a3highgpu8g", USUAL("8xh100_sxm")},        {"a3megagpu8g", USUAL("8xh100_sxm")},
    {"a3ultragpu8g", USUAL("8xh200_sxm")},       {"a2highgpu8g", USUAL("8xa100_sxm4_40")},
    {"a2ultragpu8g", USUAL("8xa100_sxm4_80")},   {"nd96isrh100v5", USUAL("8xh100_sxm")},
    {"nd96isrh200v5", USUAL("8xh200_sxm")},      {"nd96asrv4", USUAL("8xa100_sxm4_40")},
    {"nd96amsra100v4", USUAL("8xa100_sxm4_80")}, {"p5e48xlarge", USUAL("8xh200_sxm")},
    {"p5en48xlarge", USUAL("8xh200_sxm")},       {NULL, NULL},
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

static bool is_plain(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static char small(char c) { return (char)(c >= 'A' && c <= 'Z' ? c + 'a' - 'A' : c); }

static bool same_letters(const char *a, const char *b) {
    for (;;) {
        while (*a != '\0' && !is_plain(*a)) a++;
        while (*b != '\0' && !is_plain(*b)) b++;
        if (small(*a) != small(*b)) return false;
        if (*a == '\0') return true;
        a++;
        b++;
    }
}

const char *dl_name_synonym(const char *name) {
    for (const struct pair *p = names; p->theirs != NULL; p++)
        if (same_letters(name, p->theirs)) return p->ours;
    return NULL;
}

bool dl_name_shards_in_nodes(const char *framework) { return same_letters(framework, "hsdp"); }

bool dl_same_name(const char *name, const char *ours) {
    static const char *const clouds[] = {"aws-", "azure-", "gcp-", "oci-"};
    const bool instance = strchr(name, '.') != NULL; /* their names have a dot */
    if (same_letters(name, ours)) return true;
    for (size_t i = 0; i < sizeof clouds / sizeof clouds[0]; i++) {
        const size_t length = strlen(clouds[i]);
        if (instance && strncmp(ours, clouds[i], length) == 0 && same_letters(name, ours + length))
            return true;
    }
    return false;
}

const char *dl_name_advice(const char *name) {
    if (strncmp(name, "Standard_", 9) == 0) name += 9; /* of Azure */
    for (const struct pair *p = advice; p->theirs != NULL; p++)
        if (same_letters(name, p->theirs)) return p->ours;
    return NULL;
}
