/* tokenizers.c - vocabularies of tokenizers that configurations name without their size: words
 * before padding, from the models' published config.json and tokenizer files. */
#include <fnmatch.h>
#include <math.h>
#include <string.h>

#include "import/run/imported_run.h"

/* Patterns of the name in small letters; the first that matches counts. */
static const struct {
    const char *pattern;
    int words;
} tokenizers[] = {
    {"gpt2bpe*", 50257},
    {"gpt2*", 50257},
    {"bertwordpiecelowercase", 30522},
    {"bertwordpiececase", 28996},
    {"*bert*uncased*", 30522},
    {"*bert*cased*", 28996},
    {"*llama-4*", 201135},
    {"*llama-3*", 128256},
    {"*llama3*", 128256},
    {"*llama*", 32000},
    {"*mistral-nemo*", 131072},
    {"*mistral-large*", 32768},
    {"*mistral_nemo*", 131072},
    {"*mixtral-8x22b*", 32768},
    {"*mixtral*", 32000},
    {"*mistral*", 32000},
    {"*deepseek-v3*", 128815},
    {"*deepseek-r1*", 128815},
    {"*deepseek-v2*", 100015},
    {"*moonlight*", 163842},
    {"*kimi*", 163842},
    {"*qwen*", 151936},
    {"*gemma*", 256000},
    {"*nemotron*", 256000},
    {"*baichuan2*", 125696},
    {"*chatglm*", 65024},
    {"*falcon*", 65024},
    {"*starcoder2*", 49152},
    {"*starcoder*", 49152},
    {"*gpt-neox*", 50277},
    {"*gpt_neox*", 50277},
    {"*mt5*", 250112},
    {"*t5*", 32128},
    {"*opt-*", 50265},
    {"*phi-3*", 32011},
    {"*grok*", 131072},
    {"*bloom*", 250680},
    {"bigscience/tokenizer", 250680},
    {"*bpe-tokenizer-no-norm-250k*", 250680},
    {"*olmo*", 100278},
    {"*smollm*", 49152},
    {"*gpt-oss*", 200019},
    {"*glm-4*", 151329},
    {"*granite*", 49152},
    {"*c4_en_301*", 50257},
    {"tiktokenizer", 131072}, /* Megatron's own, without --vocab-size */
};

/* Tokenizer types of Pai-Megatron-Patch (megatron_patch/tokenizer): to their words
 * --extra-vocab-size is added, and nothing is padded. of: a pattern of the folder that has the
 * tokenizer. */
static const struct {
    const char *type, *of;
    int words;
    bool fixed; /* whatever is extra */
} patched[] = {
    {"BloomTokenizerFromHF", "*", 250880, true},
    {"ChatGLMTokenizerFromHF", "*", 130528, true},
    {"GLM10BZHTokenizerFromHF", "*", 50048, true},
    {"IcetkGLM130BTokenizer", "*", 150528, true},
    {"StarcoderTokenizerFromHF", "*", 49152, true},
    {"VicunaTokenizerFromHF", "*", 32000, true},
    {"OPTTokenizer", "*", 50265, false},
    {"LLamaTokenizer", "*[Qq]wen*", 151643, false}, /* the tokenizer of the folder, of any model */
    {"LLamaTokenizer", "*lama-3*", 128000, false},
    {"LLamaTokenizer", "*lama3*", 128000, false},
    {"LLamaTokenizer", "*ode[Ll]lama*", 32016, false},
    {"LLamaTokenizer", "*", 32000, false},
    {"LLama2Tokenizer", "*", 32000, false},
    {"MixtralTokenizer", "*", 32000, false},
    {"MistralTokenizer", "*", 32000, false},
    {"YiTokenizer", "*", 64000, false},
    {"LLama3Tokenizer", "*", 128000, false},
    {"FalconTokenizer", "*", 65024, false},
    {"BaichuanTokenizer", "*aichuan2*", 125696, false},
    {"BaichuanTokenizer", "*", 64000, false},
    {"QwenTokenizer", "*", 151643, false},
    {"Qwen2Tokenizer", "*", 151643, false},
    {"Qwen3Tokenizer", "*", 151643, false},
    {"DeepSeekV2Tokenizer", "*oonlight*", 163840, false},
    {"DeepSeekV2Tokenizer", "*[Vv]3*", 128813, false},
    {"DeepSeekV2Tokenizer", "*[Vv]2*", 100000, false},
};

double dl_patched_tokenizer_words(const char *type, const char *folder, double extra) {
    for (size_t i = 0; i < sizeof patched / sizeof patched[0]; i++)
        if (strcmp(patched[i].type, type) == 0 && fnmatch(patched[i].of, folder, 0) == 0)
            return patched[i].words + (patched[i].fixed ? 0 : extra);
    return NAN;
}

double dl_tokenizer_words(const char *name) {
    char small[256];
    size_t length = 0;
    for (; name[length] != '\0' && length < sizeof small - 1; length++) {
        const char c = name[length];
        small[length] = (char)(c >= 'A' && c <= 'Z' ? c + 'a' - 'A' : c);
    }
    small[length] = '\0';
    for (size_t i = 0; i < sizeof tokenizers / sizeof tokenizers[0]; i++)
        if (fnmatch(tokenizers[i].pattern, small, 0) == 0) return tokenizers[i].words;
    return NAN;
}
