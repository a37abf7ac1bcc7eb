/* torchtitan_models.c - torchtitan/models: name, flavor and body layers of each, as a workload of
 * that shape. Source: the registries of pytorch/torchtitan at a96fb82e, cbdb3113 and b5bcd76c. */
#include "import/run/torchtitan_models.h"

#include <stddef.h>
#include <string.h>

#define LLAMA ",mlp=swiglu,norm=rmsnorm,pos=rope,flash=1"
#define QWEN ",head_dim=128,head_norm=1" LLAMA
#define SIZED(layers, hidden, heads, kv, ffn, vocab)                                               \
    "gpt:layers=" #layers ",hidden=" #hidden ",heads=" #heads ",kv_heads=" #kv ",ffn=" #ffn        \
    ",vocab=" #vocab

const struct dl_torchtitan_model dl_torchtitan_models[] = {
    {SIZED(16, 2048, 32, 8, 8192, 128256) LLAMA ",tied=1", "llama3", "1B", 16},
    {SIZED(28, 3072, 24, 8, 8192, 128256) LLAMA ",tied=1", "llama3", "3B", 28},
    {"llama3_8b", "llama3", "8B", 32},
    {"llama3_70b", "llama3", "70B", 80},
    {"llama3_405b", "llama3", "405B", 126},
    {SIZED(6, 256, 16, 16, 768, 2048) LLAMA, "llama3", "debugmodel", 6},
    {SIZED(2, 256, 16, 16, 768, 32000) LLAMA, "llama2", "debugmodel", 2},
    {SIZED(16, 1024, 8, 8, 2816, 32000) LLAMA, "llama2", "271M", 16},
    {SIZED(18, 2048, 16, 16, 5632, 32000) LLAMA, "llama2", "1B", 18},
    {"llama2_7b", "llama2", "7B", 32},
    {"llama2_13b", "llama2", "13B", 40},
    {SIZED(80, 5120, 40, 40, 13824, 32000) LLAMA, "llama2", "26B", 80},
    {"llama2_70b", "llama2", "70B", 80},
    {SIZED(48, 5120, 40, 8, 16384, 202048) LLAMA
     ",experts=16,topk=1,expert_ffn=8192,shared_experts=1",
     "llama4", "17bx16e", 48},
    {SIZED(48, 5120, 40, 8, 16384, 202048) LLAMA
     ",experts=128,topk=1,expert_ffn=8192,shared_experts=1,moe_every=2",
     "llama4", "17bx128e", 48},
    {"deepseek_v3", "deepseek_v3", "671B", 61},
    {"deepseek_v3:layers=60,hidden=5120,ffn=12288,expert_ffn=1536,experts=160,topk=6,"
     "shared_experts=2,dense_layers=1,vocab=102400,router_bias=0",
     "deepseek_v3", "236B", 60},
    {"deepseek_v3:layers=27,hidden=2048,heads=16,q_rank=0,ffn=10944,expert_ffn=1408,experts=64,"
     "topk=6,shared_experts=2,dense_layers=1,vocab=102400,router_bias=0",
     "deepseek_v3", "16B", 27},
    {"deepseek_v3:layers=27,hidden=2048,heads=16,q_rank=0,ffn=10944,expert_ffn=1408,experts=64,"
     "topk=6,shared_experts=2,dense_layers=1,vocab=102400,router_bias=0",
     "deepseek_v2", "deepseek-ai/DeepSeek-V2-Lite", 27},
    {"deepseek_v3:layers=6,hidden=256,heads=16,q_rank=0,ffn=1024,expert_ffn=256,experts=8,topk=3,"
     "shared_experts=2,dense_layers=1,vocab=2048,router_bias=0",
     "deepseek_v3", "debugmodel", 6},
    {"deepseek_v3:layers=27,hidden=2048,heads=16,q_rank=0,ffn=11264,expert_ffn=1408,experts=64,"
     "topk=6,shared_experts=2,dense_layers=1,vocab=163840,router_bias=1",
     "kimi_k2_7", "moonlight-16B-A3B", 27},
    {"gpt_oss_120b", "gpt_oss", "120b", 36},
    {"gpt_oss_120b:layers=24,experts=32", "gpt_oss", "20b", 24},
    {"gpt_oss_120b:layers=4,experts=8,hidden=256,vocab=2048", "gpt_oss", "debugmodel", 4},
    {SIZED(8, 256, 16, 8, 3072, 2048) QWEN ",tied=1", "qwen3", "debugmodel", 8},
    {SIZED(8, 256, 16, 8, 3072, 2048) QWEN ",experts=64,topk=8,expert_ffn=768", "qwen3",
     "debugmodel_moe", 8},
    {SIZED(28, 1024, 16, 8, 3072, 151936) QWEN ",tied=1", "qwen3", "0.6B", 28},
    {SIZED(28, 2048, 16, 8, 6144, 151936) QWEN ",tied=1", "qwen3", "1.7B", 28},
    {SIZED(36, 2560, 32, 8, 9728, 151936) QWEN ",tied=1", "qwen3", "4B", 36},
    {SIZED(36, 4096, 32, 8, 12288, 151936) QWEN, "qwen3", "8B", 36},
    {SIZED(40, 5120, 40, 8, 17408, 151936) QWEN, "qwen3", "14B", 40},
    {SIZED(64, 5120, 64, 8, 25600, 151936) QWEN, "qwen3", "32B", 64},
    {"qwen3_30b_a3b", "qwen3", "30B-A3B", 48},
    {"qwen3_235b_a22b", "qwen3", "235B-A22B", 94},
    {SIZED(6, 256, 16, 16, 768, 2048) LLAMA
     ",experts=8,topk=1,expert_ffn=512,shared_experts=1,moe_every=2",
     "llama4", "debugmodel", 6},
    {NULL, NULL, NULL, 0},
};

/* "llama3_ft", "simple_fsdp.llama3": the model of another trainer. */
static bool is_name(const char *name, const char *ours) {
    const size_t length = strlen(ours), size = strlen(name);
    if (size > length && name[size - length - 1] == '.') name += size - length;
    return strncmp(name, ours, length) == 0 &&
           (name[length] == '\0' || strcmp(name + length, "_ft") == 0);
}

/* Suffixes that choose an implementation of attention. */
static bool is_flavor(const char *flavor, const char *ours) {
    static const char *const suffixes[] = {"",        "_flex",        "_flex_attn",
                                           "_varlen", "_varlen_attn", "_irope",
                                           "_sdpa",   "_ft",          "_non_fused_qkv"};
    const size_t length = strlen(ours);
    if (strncmp(flavor, ours, length) != 0) return false;
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++)
        if (strcmp(flavor + length, suffixes[i]) == 0) return true;
    return false;
}

const struct dl_torchtitan_model *dl_torchtitan_model(const char *name, const char *flavor) {
    for (const struct dl_torchtitan_model *m = dl_torchtitan_models; m->workload != NULL; m++)
        if (is_name(name, m->name) && is_flavor(flavor, m->flavor)) return m;
    return NULL;
}
