/* import_torchtitan.c - torchtitan's configuration as a workload and a plan: names and defaults of
 * torchtitan/config/job_config.py. Its models are flavors; the number of devices is that of the
 * launch (--ranks), unless all degrees are given. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/core/text.h"
#include "import/torchtitan_models.h"
#include "import/import_plan.h"
#include "import/toml.h"

struct reader {
    const struct dl_toml *toml;
    bool *used;
    struct dl_plan_words *out;
    struct dl_err *err;
    double seq, layers, replicas, shards, tp, cp, ep, pp, ranks;
};

static const struct dl_toml_entry *find(struct reader *r, const char *path) {
    const struct dl_toml_entry *e = dl_toml_find(r->toml, path);
    if (e != NULL) r->used[e - r->toml->entries] = true;
    return e;
}

static enum dl_code wrong(struct reader *r, const struct dl_toml_entry *e, const char *expected) {
    return dl_fail_at(r->err, r->toml->name, e->line, e->col, e->path, "expected %s", expected);
}

static enum dl_code number(struct reader *r, const char *path, double low, double *inout) {
    const struct dl_toml_entry *e = find(r, path);
    char text[64];
    if (e == NULL) return DL_OK;
    snprintf(text, sizeof text, "a whole number from %g on", low);
    if (e->type != DL_TOML_NUMBER || e->number < low || e->number > 1e9 ||
        e->number != floor(e->number))
        return wrong(r, e, text);
    *inout = e->number;
    return DL_OK;
}

/* A string; fallback where it is absent. */
static enum dl_code word(struct reader *r, const char *path, const char *fallback,
                         const char **out) {
    const struct dl_toml_entry *e = find(r, path);
    *out = fallback;
    if (e == NULL) return DL_OK;
    if (e->type != DL_TOML_STRING) return wrong(r, e, "a string");
    *out = e->text;
    return DL_OK;
}

static bool flag(struct reader *r, const char *path) {
    const struct dl_toml_entry *e = find(r, path);
    return e != NULL && e->type == DL_TOML_BOOL && e->number > 0;
}

/* The flavor's workload, unless one was given. */
static enum dl_code read_model(struct reader *r) {
    const char *name, *flavor, *given = dl_text_string(r->out->workload);
    const struct dl_torchtitan_model *m = dl_torchtitan_models;
    DL_TRY(word(r, "model.name", "llama3", &name));
    DL_TRY(word(r, "model.flavor", "debugmodel", &flavor));
    while (m->workload != NULL && (strcmp(m->name, name) != 0 || strcmp(m->flavor, flavor) != 0))
        m++;
    r->layers = m->workload != NULL ? (double)m->layers : (double)NAN;
    if (given != NULL && given[0] != '\0') return DL_OK;
    if (m->workload == NULL)
        return dl_fail_at(r->err, r->toml->name, 1, 1, "model.flavor",
                          "no workload is known for %.60s %.60s: give one with --workload", name,
                          flavor);
    dl_text_add(r->out->workload, m->workload);
    return DL_OK;
}

static enum dl_code read_degrees(struct reader *r) {
    double shards = -1;
    r->replicas = r->tp = r->cp = r->ep = r->pp = 1;
    DL_TRY(number(r, "parallelism.data_parallel_replicate_degree", 1, &r->replicas));
    DL_TRY(number(r, "parallelism.data_parallel_shard_degree", -1, &shards));
    DL_TRY(number(r, "parallelism.tensor_parallel_degree", 1, &r->tp));
    DL_TRY(number(r, "parallelism.context_parallel_degree", 1, &r->cp));
    DL_TRY(number(r, "parallelism.expert_parallel_degree", 1, &r->ep));
    DL_TRY(number(r, "parallelism.pipeline_parallel_degree", 1, &r->pp));
    const double rest = r->replicas * r->tp * r->cp * r->pp;
    if (shards < 1 && r->ranks <= 0)
        return dl_fail_at(r->err, r->toml->name, 1, 1, "parallelism.data_parallel_shard_degree",
                          "all devices that are left: how many are there? Give --ranks N");
    r->shards = shards >= 1 ? shards : floor(r->ranks / rest);
    if (r->ranks <= 0) r->ranks = rest * r->shards;
    if (r->shards < 1 || rest * r->shards != r->ranks)
        return dl_fail_at(r->err, r->toml->name, 1, 1, "parallelism",
                          "the degrees' product is not the number of devices, %.0f", r->ranks);
    if (fmod(r->replicas * r->shards, r->ep) != 0)
        return dl_fail_at(r->err, r->toml->name, 1, 1, "parallelism.expert_parallel_degree",
                          "expert ranks of %.0f do not divide the %.0f data ranks", r->ep,
                          r->replicas * r->shards);
    return DL_OK;
}

/* FSDP gathers again in backward, unless a pipeline runs (its default) or it is told not to. */
static enum dl_code add_sharding(struct reader *r) {
    const char *reshard;
    DL_TRY(word(r, "parallelism.fsdp_reshard_after_forward", "default", &reshard));
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
    if (alone) return DL_OK;
    dl_plan_words_add(r->out, "tp", "%.0f", r->tp);
    dl_plan_words_add(r->out, "pp", "%.0f", r->pp);
    dl_plan_words_add(r->out, "cp", "%.0f", r->cp);
    if (r->ep > 1) dl_plan_words_add(r->out, "ep", "%.0f", r->ep);
    if (r->tp > 1) dl_plan_words_flag(r->out, "sequence-parallel");
    return DL_OK;
}

static enum dl_code add_batch(struct reader *r) {
    double local = 8, batch = -1, micro = 1, steps = 0;
    const double data = r->replicas * r->shards;
    r->seq = 2048;
    DL_TRY(number(r, "training.local_batch_size", 1, &local));
    DL_TRY(number(r, "training.batch_size", 1, &local)); /* before it was called local */
    DL_TRY(number(r, "training.global_batch_size", -1, &batch));
    DL_TRY(number(r, "training.seq_len", 1, &r->seq));
    DL_TRY(number(r, "training.steps", 1, &steps));
    DL_TRY(number(r, "parallelism.pipeline_parallel_microbatch_size", 1, &micro));
    if (batch < 1) batch = local * data;
    if (strncmp(dl_text_string(r->out->workload), "gpt:", 4) != 0)
        dl_plan_words_add(r->out, "set", "seq=%.0f", r->seq);
    dl_plan_words_add(r->out, "gpus", "%.0f", r->ranks);
    dl_plan_words_add(r->out, "global-batch", "%.0f", batch);
    dl_plan_words_add(r->out, "micro-batch", "%.0f", r->pp > 1 ? micro : local);
    if (steps > 0) dl_plan_words_add(r->out, "tokens", "%.17g", steps * batch * r->seq);
    return DL_OK;
}

static enum dl_code add_schedule(struct reader *r) {
    static const struct {
        const char *theirs, *ours;
    } schedules[] = {{"1F1B", "1f1b"}, {"GPipe", "gpipe"}, {"Interleaved1F1B", "interleaved"}};
    const char *schedule;
    double each = 0, v = 2;
    if (r->pp <= 1) return DL_OK;
    DL_TRY(word(r, "parallelism.pipeline_parallel_schedule", "1F1B", &schedule));
    DL_TRY(number(r, "parallelism.pipeline_parallel_layers_per_stage", 1, &each));
    if (each > 0 && dl_known(r->layers)) v = ceil(r->layers / each / r->pp);
    for (int i = 0; i < 3; i++) {
        if (strcmp(schedules[i].theirs, schedule) != 0) continue;
        dl_plan_words_add(r->out, "schedule", "%s", schedules[i].ours);
        if (i == 2) dl_plan_words_add(r->out, "virtual-stages", "%.0f", v);
        return DL_OK;
    }
    return wrong(r, dl_toml_find(r->toml, "parallelism.pipeline_parallel_schedule"),
                 "1F1B, GPipe or Interleaved1F1B");
}

static bool has_line(const char *text, const char *line) {
    const size_t length = strlen(line);
    for (; text != NULL && *text != '\0'; text = strchr(text, '\n') + 1) {
        if (strncmp(text, line, length) == 0 && text[length] == '\n') return true;
    }
    return false;
}

static enum dl_code add_arithmetic(struct reader *r) {
    static const char *const modes[] = {"none", "selective", "full", NULL};
    const struct dl_toml_entry *converters = find(r, "model.converters");
    const char *list =
        converters != NULL && converters->type == DL_TOML_ARRAY ? converters->text : "";
    const char *mode, *parameters, *optimizer, *precision;
    DL_TRY(word(r, "activation_checkpoint.mode", "selective", &mode));
    DL_TRY(word(r, "training.mixed_precision_param", "bfloat16", &parameters));
    DL_TRY(word(r, "optimizer.name", "AdamW", &optimizer));
    (void)find(r, "activation_checkpoint.selective_ac_option");
    int known = 0;
    while (modes[known] != NULL && strcmp(modes[known], mode) != 0) known++;
    if (modes[known] == NULL)
        return wrong(r, dl_toml_find(r->toml, "activation_checkpoint.mode"),
                     "none, selective or full");
    precision = strcmp(parameters, "float32") == 0 ? "fp32" : "bf16";
    if (has_line(list, "float8") || has_line(list, "quantize.linear.float8")) precision = "fp8";
    if (has_line(list, "mx") || has_line(list, "quantize.linear.mx")) precision = "mxfp8";
    dl_plan_words_add(r->out, "precision", "%s", precision);
    if (strncmp(optimizer, "Adam", 4) != 0)
        return wrong(r, dl_toml_find(r->toml, "optimizer.name"), "Adam or AdamW");
    dl_plan_words_add(r->out, "optimizer", "adam");
    dl_plan_words_add(r->out, "recompute", "%s", mode);
    if (flag(r, "compile.enable")) dl_plan_words_add(r->out, "compiler", "inductor");
    return DL_OK;
}

enum dl_code dl_torchtitan_plan(const struct dl_toml *toml, int64_t ranks,
                                const char *const **ignored_out, struct dl_plan_words *out,
                                struct dl_err *err) {
    struct reader r = {.toml = toml, .out = out, .err = err, .ranks = (double)ranks};
    const char **ignored = dl_arena_alloc(out->arena, (size_t)toml->count + 1, sizeof *ignored);
    r.used = dl_arena_alloc(out->arena, (size_t)toml->count + 1, sizeof *r.used);
    DL_TRY(read_model(&r));
    DL_TRY(read_degrees(&r));
    DL_TRY(add_sharding(&r));
    DL_TRY(add_batch(&r));
    DL_TRY(add_schedule(&r));
    DL_TRY(add_arithmetic(&r));
    int count = 0;
    for (int i = 0; i < toml->count; i++) {
        if (!r.used[i]) ignored[count++] = toml->entries[i].path;
    }
    *ignored_out = ignored;
    return DL_OK;
}
