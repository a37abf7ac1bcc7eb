/* run_torchtitan.c - torchtitan's configuration as a workload and a plan: names and defaults of
 * torchtitan/config/job_config.py, in the sections of each release since 2024. Its models are
 * flavors; the number of devices is that of the launch (--ranks), unless all degrees are given. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "import/run/imported_run.h"
#include "import/run/toml.h"
#include "import/run/torchtitan_models.h"

struct reader {
    struct dl_run *run;
    struct dl_arguments *a;
    struct dl_plan_words *out;
    double seq, layers, replicas, shards, tp, cp, ep, etp, pp;
};

/* Where a key was in each release, the newest first: "a.x|b.x". */
#define PARALLEL(key) "parallelism." key "|training." key "|experimental." key

static enum dl_code whole(struct reader *r, const char *names, double low, double *inout) {
    const struct dl_argument *found = dl_arguments_find(r->a, names);
    double value = *inout;
    if (found == NULL) return DL_OK;
    DL_TRY(dl_arguments_number(r->a, names, low, 1e9, &value, r->run->err));
    if (value != floor(value))
        return dl_arguments_fail(r->a, names, r->run->err, "expected a whole number from %g on",
                                 low);
    *inout = value;
    return DL_OK;
}

/* The flavor's workload, unless one was given. */
static enum dl_code read_model(struct reader *r) {
    const char *name = dl_arguments_word(r->a, "model.name", "llama3"),
               *flavor = dl_arguments_word(r->a, "model.flavor", "debugmodel");
    const struct dl_torchtitan_model *m = dl_torchtitan_model(name, flavor);
    r->layers = m != NULL ? (double)m->layers : (double)NAN;
    if (r->run->workload != NULL) {
        dl_text_add(r->out->workload, r->run->workload);
        return DL_OK;
    }
    if (m == NULL)
        return dl_arguments_fail(r->a, "model.flavor", r->run->err,
                                 "no workload is known for %.60s %.60s%s: give one with --workload",
                                 name, flavor,
                                 strncmp(name, "flux", 4) == 0 ? " (an image generator)" : "");
    dl_text_add(r->out->workload, m->workload);
    return DL_OK;
}

static enum dl_code read_degrees(struct reader *r) {
    struct dl_run *run = r->run;
    double shards = -1;
    r->replicas = r->tp = r->cp = r->ep = r->pp = 1;
    r->etp = NAN;
    DL_TRY(whole(r, PARALLEL("data_parallel_replicate_degree"), 1, &r->replicas));
    DL_TRY(whole(r, PARALLEL("data_parallel_shard_degree") "|training.data_parallel_degree", -1,
                 &shards));
    DL_TRY(whole(r, PARALLEL("tensor_parallel_degree"), 1, &r->tp));
    DL_TRY(whole(r, PARALLEL("context_parallel_degree"), 1, &r->cp));
    DL_TRY(whole(r, PARALLEL("expert_parallel_degree"), 1, &r->ep));
    DL_TRY(whole(r, PARALLEL("expert_tensor_parallel_degree"), 1, &r->etp));
    DL_TRY(whole(r, PARALLEL("pipeline_parallel_degree"), 1, &r->pp));
    const double rest = r->replicas * r->tp * r->cp * r->pp;
    if (!dl_known(run->ranks) && dl_known(run->nodes) && dl_known(run->per_node))
        run->ranks = run->nodes * run->per_node;
    if (shards < 1 && !dl_known(run->ranks))
        return dl_fail_at(run->err, r->a->path, 1, 1, "parallelism.data_parallel_shard_degree",
                          "all devices that are left: how many are there? Give --ranks N");
    r->shards = shards >= 1 ? shards : floor(run->ranks / rest);
    if (!dl_known(run->ranks)) run->ranks = rest * r->shards;
    if (r->shards < 1 || rest * r->shards != run->ranks)
        return dl_fail_at(run->err, r->a->path, 1, 1, "parallelism",
                          "the degrees' product is not the number of devices, %.0f", run->ranks);
    if (fmod(r->replicas * r->shards * r->cp * r->tp, r->ep) != 0)
        return dl_fail_at(run->err, r->a->path, 1, 1, "parallelism.expert_parallel_degree",
                          "expert ranks of %.0f do not divide the %.0f data ranks", r->ep,
                          r->replicas * r->shards);
    return DL_OK;
}

/* FSDP gathers again in backward, unless a pipeline runs (its default) or the option is off. */
static enum dl_code add_sharding(struct reader *r) {
    const char *reshard =
        dl_arguments_word(r->a, PARALLEL("fsdp_reshard_after_forward"), "default");
    const bool alone = r->tp * r->cp * r->ep * r->pp == 1, shares = r->shards * r->cp > 1,
               again = strcmp(reshard, "always") == 0 ||
                       (strcmp(reshard, "default") == 0 && r->pp == 1);
    const int stage = !shares ? 0 : again ? 3 : 2;
    if (alone && stage > 0)
        dl_plan_words_add(r->out, "strategy", "zero%d", stage);
    else
        dl_plan_words_add(r->out, "strategy", "%s", alone ? "data" : r->ep > 1 ? "expert" : "3d");
    if (!alone && stage > 0) dl_plan_words_add(r->out, "zero", "%d", stage);
    if (stage > 0 && r->replicas > 1)
        dl_plan_words_add(r->out, "zero-group", "%.0f", r->shards * r->cp);
    dl_run_offload_fsdp(r->run, "training.enable_cpu_offload", stage);
    if (alone) return DL_OK;
    dl_plan_words_add(r->out, "tp", "%.0f", r->tp);
    dl_plan_words_add(r->out, "pp", "%.0f", r->pp);
    dl_plan_words_add(r->out, "cp", "%.0f", r->cp);
    if (r->ep > 1) dl_plan_words_add(r->out, "ep", "%.0f", r->ep);
    if (r->ep > 1 && r->tp > 1 && dl_known(r->etp))
        dl_plan_words_add(r->out, "etp", "%.0f", r->etp);
    if (r->tp > 1 && strcmp(dl_arguments_word(r->a, "parallelism.enable_sequence_parallel", "true"),
                            "false") != 0)
        dl_plan_words_flag(r->out, "sequence-parallel");
    return DL_OK;
}

/* Releases since 2026 count tokens: of a micro-batch, and of a step of all devices. */
static enum dl_code read_tokens(struct reader *r, double *local, double *batch, double *micro) {
    static const char name[] = "training.num_tokens_per_microbatch_per_dp_rank";
    double tokens = NAN, all = -1, count = 1;
    DL_TRY(whole(r, name, 1, &tokens));
    DL_TRY(whole(r, "training.num_tokens_per_train_step", -1, &all));
    DL_TRY(whole(r, "parallelism.num_pp_microbatches", 1, &count));
    if (!dl_known(tokens)) return DL_OK;
    if (fmod(tokens, r->seq) != 0 || fmod(all, r->seq) != (all < 0 ? -1 : 0))
        return dl_arguments_fail(r->a, name, r->run->err,
                                 "expected a multiple of max_context_length, %.0f", r->seq);
    *micro = tokens / r->seq;
    *local = r->pp > 1 ? *micro * count : *micro;
    if (all > 0) *batch = all / r->seq;
    return DL_OK;
}

static enum dl_code add_batch(struct reader *r) {
    double local = 8, batch = -1, micro = 1, steps = 0, count = NAN;
    const double data = r->replicas * r->shards;
    struct dl_text *workload = r->out->workload;
    r->seq = 2048;
    DL_TRY(whole(r, "training.local_batch_size|training.batch_size", 1, &local));
    DL_TRY(whole(r, "training.global_batch_size", -1, &batch));
    DL_TRY(whole(r, "training.seq_len|training.max_context_length", 1, &r->seq));
    DL_TRY(whole(r, "training.steps", 1, &steps));
    DL_TRY(whole(r, PARALLEL("pipeline_parallel_microbatch_size"), 1, &micro));
    DL_TRY(whole(r, PARALLEL("pipeline_parallel_microbatches"), 1, &count));
    if (dl_known(count)) micro = fmax(1, floor(local / count));
    DL_TRY(read_tokens(r, &local, &batch, &micro));
    if (batch < 1) batch = local * data;
    const char *text = dl_text_string(workload);
    if (r->run->workload == NULL && strncmp(text, "gpt:", 4) == 0)
        dl_text_printf(workload, ",seq=%.0f", r->seq);
    else
        dl_plan_words_add(r->out, "set", "seq=%.0f", r->seq);
    dl_launch_devices(r->run, 1);
    dl_plan_words_add(r->out, "global-batch", "%.0f", batch);
    dl_plan_words_add(r->out, "micro-batch", "%.0f", r->pp > 1 ? micro : local);
    if (steps > 0) dl_plan_words_add(r->out, "tokens", "%.17g", steps * batch * r->seq);
    return DL_OK;
}

static enum dl_code add_schedule(struct reader *r) {
    static const struct dl_word_pair
        schedules[] = {{"1F1B", "1f1b"},
                       {"GPipe", "gpipe"},
                       {"Interleaved1F1B|interleaved_1f1b", "interleaved"},
                       {"ZBVZeroBubble", "zbv"},
                       {"DualPipeV", "dualpipev"},
                       {NULL, NULL}},
        near[] = {
            {"InterleavedZeroBubble|FlexibleInterleaved1F1B|flexible_interleaved_1f1b|LoopedBFS",
             "interleaved"},
            {NULL, NULL}};
    const char *word = dl_arguments_word(r->a, PARALLEL("pipeline_parallel_schedule"), "1F1B"),
               *schedule = dl_paired(schedules, word);
    double each = 0, v = 2;
    DL_TRY(whole(r, PARALLEL("pipeline_parallel_layers_per_stage"), 1, &each));
    if (r->pp <= 1) return DL_OK;
    if (each > 0 && dl_known(r->layers)) v = ceil(r->layers / each / r->pp);
    if (schedule == NULL && (schedule = dl_paired(near, word)) != NULL)
        dl_arguments_note(r->a,
                          "schedule: %.40s is predicted as --schedule interleaved, the nearest "
                          "that is modelled",
                          word);
    if (schedule == NULL)
        return dl_arguments_fail(
            r->a, PARALLEL("pipeline_parallel_schedule"), r->run->err,
            "expected 1F1B, GPipe, Interleaved1F1B, ZBVZeroBubble or DualPipeV");
    dl_plan_words_add(r->out, "schedule", "%s", schedule);
    if (strcmp(schedule, "interleaved") == 0)
        dl_plan_words_add(r->out, "virtual-stages", "%.0f", fmax(v, 2));
    return DL_OK;
}

/* Whether a list has the word: elements one a line, or a text with commas. */
static bool lists(const char *text, const char *word) {
    const size_t length = strlen(word);
    while (*text != '\0') {
        const size_t size = strcspn(text, "\n, ");
        if (size == length && strncmp(text, word, length) == 0) return true;
        text += size;
        text += strspn(text, "\n, ");
    }
    return false;
}

static enum dl_code read_recompute(struct reader *r) {
    static const struct dl_word_pair modes[] = {
        {"none", "none"}, {"selective|memory_budget", "selective"}, {"full", "full"}, {NULL, NULL}};
    const char *word = dl_arguments_word(r->a, "activation_checkpoint.mode", "selective"),
               *mode = dl_paired(modes, word),
               *option = dl_arguments_word(
                   r->a,
                   "activation_checkpoint.selective_ac_option|activation_checkpoint."
                   "selective_ac_type",
                   "op");
    if (mode == NULL)
        return dl_arguments_fail(r->a, "activation_checkpoint.mode", r->run->err,
                                 "expected none, selective or full");
    const double every = strcmp(mode, "selective") == 0 ? strtod(option, NULL) : 0;
    if (every >= 1) mode = "full";
    if (every >= 2) dl_plan_words_add(r->out, "recompute-every", "%.0f", every);
    if (strcmp(word, "memory_budget") == 0)
        dl_arguments_note(r->a, "recomputation: by a memory budget; predicted as --recompute "
                                "selective");
    dl_plan_words_add(r->out, "recompute", "%s", mode);
    return DL_OK;
}

static enum dl_code add_arithmetic(struct reader *r) {
    static const struct dl_word_pair optimizers[] = {{"Adam|AdamW", "adam"}, {NULL, NULL}};
    const char *list = dl_arguments_word(r->a, "model.converters", ""),
               *parameters = dl_arguments_word(r->a, "training.mixed_precision_param", "bfloat16"),
               *name = dl_arguments_word(r->a, "optimizer.name", "AdamW"),
               *optimizer = dl_paired(optimizers, name);
    const char *precision = strcmp(parameters, "float32") == 0 ? "fp32" : "bf16";
    (void)dl_arguments_find(r->a, "training.dtype");
    if (lists(list, "float8") || lists(list, "quantize.linear.float8") ||
        dl_arguments_flag(r->a, "float8.enable_float8_linear|training.enable_float8_linear|"
                                "training.enable_fp8_linear"))
        precision = "fp8";
    if (lists(list, "mx") || lists(list, "quantize.linear.mx")) precision = "mxfp8";
    if (lists(list, "nvfp4")) precision = "nvfp4";
    dl_plan_words_add(r->out, "precision", "%s", precision);
    if (optimizer == NULL) {
        dl_arguments_note(r->a, "optimizer: \"%.40s\" is not modelled; predicted as adam", name);
        optimizer = "adam";
    }
    dl_plan_words_add(r->out, "optimizer", "%s", optimizer);
    DL_TRY(read_recompute(r));
    if (dl_arguments_flag(r->a, "compile.enable|training.compile")) {
        if (lists(dl_arguments_word(r->a, "compile.components", "model"), "model"))
            dl_plan_words_add(r->out, "compiler", "inductor");
        else
            dl_arguments_note(r->a, "compiler: only the loss is compiled");
    }
    return DL_OK;
}

enum dl_code dl_torchtitan_plan(struct dl_run *run) {
    static enum dl_code (*const steps[])(struct reader *) = {
        read_model, read_degrees, add_sharding, add_batch, add_schedule, add_arithmetic};
    struct reader r = {.run = run, .a = &run->arguments, .out = run->out};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) DL_TRY(steps[i](&r));
    return DL_OK;
}
