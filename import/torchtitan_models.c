/* torchtitan_models.c - torchtitan/models: name, flavor and body layers of each. */
#include "import/torchtitan_models.h"

#include <stddef.h>

const struct dl_torchtitan_model dl_torchtitan_models[] = {
    {"llama3_8b", "llama3", "8B", 32},
    {"llama3_70b", "llama3", "70B", 80},
    {"llama3_405b", "llama3", "405B", 126},
    {"deepseek_v3", "deepseek_v3", "671B", 61},
    {"qwen3_30b_a3b", "qwen3", "30B-A3B", 48},
    {"qwen3_235b_a22b", "qwen3", "235B-A22B", 94},
    {NULL, NULL, NULL, 0},
};
