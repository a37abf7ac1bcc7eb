/* run_table.c - see the header. */
#include "import/run/run_table.h"

#include <fnmatch.h>
#include <math.h>
#include <string.h>

const struct dl_word_pair dl_precision_pairs[] = {
    {"bf16|bfloat16|amp_bf16|bf16-mixed", "bf16"},
    {"fp16|float16|16|16-mixed", "fp16"},
    {"amp_fp16|amp", "mixed"},
    {"no|fp32|float32|32", "fp32"},
    {"tf32", "tf32"},
    {"fp8|amp_fp8|fp8_full|fp8_gpu|fp8_nanoo|te_fp8_delayedscaling|te_fp8_currentscaling", "fp8"},
    {"te_mxfp8", "mxfp8"},
    {"te_nvfp4", "nvfp4"},
    {NULL, NULL}};
const struct dl_word_pair dl_optimizer_pairs[] = {
    {"adam|adamw|fusedadam|decoupled_adamw|adamw_torch|adamw_torch_fused|adamw_hf|adamw_apex_fused|"
     "adam_pax|fused_adam",
     "adam"},
    {"sgd", "momentum"},
    {"lamb|fusedlamb", "lamb"},
    {NULL, NULL}};

/* Models by the names of their files on hubs, in small letters. */
static const struct {
    const char *pattern, *workload;
} models[] = {
    {"*llama-2-7b*", "llama2_7b"},
    {"*llama2-7b*", "llama2_7b"},
    {"*llama-2-13b*", "llama2_13b"},
    {"*llama2-13b*", "llama2_13b"},
    {"*llama-2-70b*", "llama2_70b"},
    {"*llama2-70b*", "llama2_70b"},
    {"*llama-3*405b*", "llama3_405b"},
    {"*llama3*405b*", "llama3_405b"},
    {"*llama-3*70b*", "llama3_70b"},
    {"*llama3*70b*", "llama3_70b"},
    {"*llama-3*8b*", "llama3_8b"},
    {"*llama3*8b*", "llama3_8b"},
    {"*mixtral-8x7b*", "mixtral_8x7b"},
    {"*mixtral-8x22b*", "mixtral_8x22b"},
    {"*mistral-7b*", "mistral_7b"},
    {"*qwen2-72b*", "qwen2_72b"},
    {"*qwen2-7b*", "qwen2_7b"},
    {"*qwen3-30b-a3b*", "qwen3_30b_a3b"},
    {"*qwen3-235b-a22b*", "qwen3_235b_a22b"},
    {"*deepseek-v3*", "deepseek_v3"},
    {"*deepseek3-671b*", "deepseek_v3"},
    {"*kimi-k2*", "deepseek_v3:heads=64,experts=384,dense_layers=1,vocab=163840"},
    {"*bert-large-*", "bert_large"},
    {"*gpt-oss-120b*", "gpt_oss_120b"},
    {"*mpt-7b*", "mpt_7b"},
    {"*mpt-30b*", "mpt_30b"},
    {"*bert-large*", "bert_large"},
    {"*bert-base*", "bert_base"},
    {"*gpt2-xl*", "gpt2_xl"},
    {"*gpt2-large*", "gpt2_large"},
    {"*gpt2-medium*", "gpt2_medium"},
    {"gpt3-175b", "gpt3_175b"},
};

const char *dl_run_workload_of(struct dl_run *run, const char *name) {
    struct dl_err ignored;
    const char *path;
    char *plain = dl_arena_strdup(run->arguments.arena, dl_base_name(name));
    for (char *c = plain; *c != '\0'; c++)
        *c = (char)(*c >= 'A' && *c <= 'Z' ? *c + 32 : *c == '_' ? '-' : *c);
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++)
        if (fnmatch(models[i].pattern, plain, 0) == 0) return models[i].workload;
    for (char *c = plain; *c != '\0'; c++) *c = *c == '-' || *c == '.' ? '_' : *c;
    if (run->context == NULL ||
        plain[strspn(plain, "abcdefghijklmnopqrstuvwxyz0123456789_")] != '\0')
        return NULL;
    return dl_data_path(&run->context->data, DL_DATA_WORKLOAD, plain, run->arguments.arena, &path,
                        &ignored) == DL_OK
               ? plain
               : NULL;
}

static enum dl_code read_word(struct dl_run *run, const struct dl_run_key *key,
                              struct dl_run_slots *out) {
    struct dl_arguments *a = &run->arguments;
    const char *value = dl_arguments_word(a, key->names, NULL);
    if (dl_arguments_find(a, key->names) == NULL) return DL_OK;
    if (key->words == NULL) {
        if (dl_arguments_flag(a, key->names))
            out->words[key->slot] = key->on != NULL ? key->on : value;
        return DL_OK;
    }
    if (value == NULL) return DL_OK;
    const char *ours = dl_paired(key->words, value);
    if (ours == NULL && key->slot == DL_SLOT_OPTIMIZER) {
        dl_arguments_note(a, "optimizer: \"%.40s\" is not modelled; predicted as adam", value);
        ours = "adam";
    }
    if (ours == NULL && dl_is_off(value)) return DL_OK;
    if (ours == NULL)
        return dl_arguments_fail(
            a, key->names, run->err,
            "\"%.60s\" is no value that is known; give a file without it, and the "
            "option to predict",
            value);
    if (out->words[key->slot] == NULL) out->words[key->slot] = ours;
    return DL_OK;
}

enum dl_code dl_run_slots_read(struct dl_run *run, const struct dl_run_key *keys,
                               struct dl_run_slots *out) {
    *out = (struct dl_run_slots){.words = {NULL}};
    for (int i = 0; i < DL_SLOT_NUMBERS; i++) out->numbers[i] = NAN;
    for (; keys->names != NULL; keys++) {
        if (keys->slot == DL_SLOT_MODEL || keys->slot >= DL_SLOT_NUMBERS)
            DL_TRY(read_word(run, keys, out));
        else if (!dl_known(out->numbers[keys->slot]))
            DL_TRY(dl_arguments_number(&run->arguments, keys->names, 1, 1e12,
                                       &out->numbers[keys->slot], run->err));
    }
    return DL_OK;
}

enum dl_code dl_run_shape_add(struct dl_run *run, const struct dl_run_shape *rows,
                              struct dl_text *out) {
    for (; rows->names != NULL; rows++) {
        double value = NAN;
        DL_TRY(dl_arguments_number(&run->arguments, rows->names, -1, 1e9, &value, run->err));
        if (!(value >= 1)) value = rows->fallback;
        if (dl_known(value)) dl_text_printf(out, ",%s=%.0f", rows->parameter, value);
    }
    return DL_OK;
}

static double known_or(double value, double otherwise) {
    return dl_known(value) ? value : otherwise;
}

static enum dl_code add_workload(struct dl_run *run, const struct dl_run_slots *s,
                                 const char *text) {
    const char *name = s->words[DL_SLOT_MODEL];
    if (run->workload != NULL)
        text = run->workload;
    else if (text == NULL && name != NULL)
        text = dl_run_workload_of(run, name);
    if (text == NULL)
        return dl_fail_at(
            run->err, run->arguments.path, 1, 1, NULL, "%s%.80s%s: give it by --workload NAME",
            name != NULL ? "no workload is known for the model \"" : "",
            name != NULL ? name : "the file does not describe the model", name != NULL ? "\"" : "");
    dl_text_add(run->out->workload, text);
    if (dl_known(s->numbers[DL_SLOT_SEQ]) && strstr(text, "seq=") == NULL)
        dl_plan_words_add(run->out, "set", "seq=%.0f", s->numbers[DL_SLOT_SEQ]);
    return DL_OK;
}

static void add_batch(struct dl_run *run, const struct dl_run_slots *s, double data) {
    const double *n = s->numbers;
    double micro = n[DL_SLOT_MICRO], batch = n[DL_SLOT_BATCH];
    const double accumulate = known_or(n[DL_SLOT_ACCUMULATE], 1);
    if (!dl_known(batch) && dl_known(n[DL_SLOT_EACH])) batch = n[DL_SLOT_EACH] * data * accumulate;
    if (!dl_known(batch) && dl_known(micro)) batch = micro * data * accumulate;
    if (dl_known(batch) && !dl_known(micro) && accumulate > 1) micro = batch / data / accumulate;
    if (dl_known(batch)) dl_plan_words_add(run->out, "global-batch", "%.15g", batch);
    if (dl_known(batch) && dl_known(micro) && micro * data < batch)
        dl_plan_words_add(run->out, "micro-batch", "%.15g", micro);
    if (dl_known(n[DL_SLOT_STEPS]) && dl_known(batch) && dl_known(n[DL_SLOT_SEQ]))
        dl_plan_words_add(run->out, "tokens", "%.17g", n[DL_SLOT_STEPS] * batch * n[DL_SLOT_SEQ]);
}

enum dl_code dl_run_slots_plan(struct dl_run *run, struct dl_run_slots *s, const char *text) {
    static const struct {
        enum dl_run_slot slot;
        const char *option;
    } words[] = {{DL_SLOT_PRECISION, "precision"},
                 {DL_SLOT_OPTIMIZER, "optimizer"},
                 {DL_SLOT_RECOMPUTE, "recompute"},
                 {DL_SLOT_COMPILER, "compiler"},
                 {DL_SLOT_COMPRESSION, "gradient-compression"}};
    double *n = s->numbers;
    const double tp = known_or(n[DL_SLOT_TP], 1), pp = known_or(n[DL_SLOT_PP], 1),
                 cp = known_or(n[DL_SLOT_CP], 1), ep = known_or(n[DL_SLOT_EP], 1);
    if (dl_known(n[DL_SLOT_NODES])) run->nodes = n[DL_SLOT_NODES];
    if (dl_known(n[DL_SLOT_PER_NODE])) run->per_node = n[DL_SLOT_PER_NODE];
    if (!dl_known(run->ranks)) run->ranks = n[DL_SLOT_RANKS];
    if (s->words[DL_SLOT_FRAMEWORK] != NULL && !run->framework_asked)
        run->out->framework = s->words[DL_SLOT_FRAMEWORK];
    DL_TRY(add_workload(run, s, text));
    dl_launch_devices(run, tp * pp * cp * ep);
    if (tp * pp * cp * ep > 1) {
        dl_plan_words_add(run->out, "strategy", "%s", ep > 1 ? "expert" : "3d");
        dl_plan_words_add(run->out, "tp", "%.0f", tp);
        dl_plan_words_add(run->out, "pp", "%.0f", pp);
        dl_plan_words_add(run->out, "cp", "%.0f", cp);
        if (ep > 1) dl_plan_words_add(run->out, "ep", "%.0f", ep);
    }
    if (s->words[DL_SLOT_SHARDING] != NULL)
        dl_plan_words_add(run->out, "zero", "%s", s->words[DL_SLOT_SHARDING]);
    if (dl_known(n[DL_SLOT_GROUP]))
        dl_plan_words_add(run->out, "zero-group", "%.0f", n[DL_SLOT_GROUP]);
    add_batch(run, s, run->ranks / (tp * pp * cp));
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (s->words[words[i].slot] != NULL)
            dl_plan_words_add(run->out, words[i].option, "%s", s->words[words[i].slot]);
    return DL_OK;
}
