/* transformer_predict.c - a transformer's plan as a prediction: what is impossible and what is
 * nearest, then the cost of a micro-batch, the rank mapping, the evaluation and its diagnosis.
 */
#include <math.h>
#include <stdlib.h>

#include "model/core/figure.h"
#include "model/engine/strategies/strategy.h"
#include "model/engine/transformer/transformer_internal.h"
#include "model/engine/diagnose.h"
#include "model/framework/workspace.h"

/* Nearest number to `wanted` that divides `whole`, below it when two are as near. */
static int64_t nearest_divisor(double whole, int64_t wanted) {
    int64_t best = 1;
    for (int64_t d = 1; (double)d <= whole && d <= 1000000; d++) {
        if (fmod(whole, (double)d) != 0) continue;
        if (llabs(d - wanted) < llabs(best - wanted)) best = d;
    }
    return best;
}

static enum dl_code check_divides(const char *option, int64_t ranks, double whole,
                                  const char *of_what, const char *workload, struct dl_err *err) {
    if (ranks <= 1 || fmod(whole, (double)ranks) == 0) return DL_OK;
    const int64_t near = nearest_divisor(whole, ranks);
    if ((double)ranks > whole) {
        return dl_fail(err, DL_ERR_USAGE,
                       "--%s %lld: %s has only %.0f %s (scaling limit); at most %lld", option,
                       (long long)ranks, workload, whole, of_what, (long long)near);
    }
    return dl_fail(err, DL_ERR_USAGE,
                   "--%s %lld does not divide the %.0f %s of %s; nearest is %lld", option,
                   (long long)ranks, whole, of_what, workload, (long long)near);
}

struct dl_transformer_split dl_transformer_split_of(const struct dl_plan *plan) {
    return (struct dl_transformer_split){
        .tp = plan->tp,
        .sp = plan->sp,
        .ep = plan->ep,
        .ep_within_tp_cp = plan->experts.ep_within_tp_cp,
        .pp = plan->pp,
        .dp = plan->dp,
        .nodes = plan->nodes,
        .devices_per_node = plan->devices_per_node,
        .mapping = plan->mapping,
        .placing = plan->pp > 1 ? dl_schedules[plan->schedule]->placing : DL_PLACED_IN_TURN,
        .sequence_parallel = plan->sequence_parallel && plan->tp > 1,
        .shard_group = plan->shard_group};
}

int dl_transformer_shard_of(const struct dl_plan *plan) {
    return plan->strategy->shard > 0 ? plan->strategy->shard : (int)plan->shard;
}

void dl_transformer_choice_of(const struct dl_plan *plan, struct dl_transformer_choice *out,
                              double *micro_samples_out) {
    const double share = plan->global_batch_samples / (double)(plan->dp * plan->ep);
    /* at once: the rank that has most samples sets the pace */
    const bool at_once = plan->pp <= 1 && !(plan->micro_batch_samples > 0);
    const double micro = plan->micro_batch_samples > 0 ? plan->micro_batch_samples
                         : at_once                     ? ceil(share - 1e-9)
                                                       : 1;
    *micro_samples_out = micro;
    *out = (struct dl_transformer_choice){
        .micro_batches = at_once ? 1 : share / micro,
        .schedule = plan->schedule,
        .recompute = plan->recompute,
        .virtual_stages = (int64_t)dl_schedule_parts(plan->schedule, (double)plan->virtual_stages)};
}

static enum dl_code check_batch(const struct dl_plan *plan, struct dl_err *err) {
    struct dl_transformer_choice choice;
    double micro;
    dl_transformer_choice_of(plan, &choice, &micro);
    const double share = choice.micro_batches * micro, ranks = (double)(plan->dp * plan->ep);
    const double whole = floor(choice.micro_batches + 0.5);
    if (whole >= 1 && fabs(choice.micro_batches - whole) < 1e-6) {
        if (!dl_schedules[choice.schedule]->in_groups || fmod(whole, (double)plan->pp) == 0)
            return dl_schedule_check(choice.schedule, (double)plan->virtual_stages,
                                     (double)plan->pp, whole, err);
        return dl_fail(err, DL_ERR_USAGE,
                       "--schedule %s: %.0f micro-batches of a data rank are no multiple "
                       "of %lld stages; "
                       "nearest --global-batch is %.0f",
                       dl_schedule_names[choice.schedule], whole, (long long)plan->pp,
                       ceil(whole / (double)plan->pp) * (double)plan->pp * micro * ranks);
    }
    return dl_fail(
        err, DL_ERR_USAGE,
        "--micro-batch %g does not divide the %g samples of each of %.0f data ranks; nearest "
        "--global-batch is %.0f",
        micro, share, ranks, fmax(1, whole) * micro * ranks);
}

static enum dl_code check_shards(const struct dl_plan *plan, int shard, struct dl_err *err) {
    const int64_t ranks = plan->dp * plan->sp * plan->ep, group = plan->shard_group;
    if (group <= 0) return DL_OK;
    if (shard == 0)
        return dl_fail(
            err, DL_ERR_USAGE,
            "--zero-group: goes with sharded states: --zero 1 to 3, or strategy zero1 to zero3");
    if (plan->ep > 1)
        return dl_fail(
            err, DL_ERR_USAGE,
            "--zero-group: not together with expert ranks; leave out --ep or --zero-group");
    if (ranks % group == 0) return DL_OK;
    return dl_fail(err, DL_ERR_USAGE,
                   "--zero-group %lld does not divide the %lld ranks that hold the same "
                   "parameters; nearest is %lld",
                   (long long)group, (long long)ranks,
                   (long long)nearest_divisor((double)ranks, group));
}

/* F-STAGE-LAYERS */
static enum dl_code check_listed(const struct dl_transformer *tf, const struct dl_plan *plan,
                                 struct dl_err *err) {
    const double lead = tf->dense_prefix_layers, wanted = tf->stack + lead;
    double sum = 0;
    if (tf->listed_stages != plan->pp)
        return dl_fail(err, DL_ERR_USAGE, "--stage-layers: lists %lld stages, of --pp %lld",
                       (long long)tf->listed_stages, (long long)plan->pp);
    for (int64_t i = 0; i < plan->pp; i++) {
        sum += tf->listed_layers[i];
        if (tf->listed_layers[i] < 1 && i > 0 && i < plan->pp - 1)
            return dl_fail(err, DL_ERR_USAGE,
                           "--stage-layers: only the first and the last stage may have no layer");
    }
    if (sum < wanted || sum > wanted)
        return dl_fail(err, DL_ERR_USAGE, "--stage-layers: lists %.0f layers, %s has %.0f", sum,
                       tf->workload->name, wanted);
    if (tf->listed_layers[0] < lead)
        return dl_fail(err, DL_ERR_USAGE,
                       "--stage-layers: the first stage of %s takes its %.0f leading layers of "
                       "another kind",
                       tf->workload->name, lead);
    return DL_OK;
}

static enum dl_code check_pipeline(const struct dl_transformer *tf, const struct dl_plan *plan,
                                   struct dl_err *err) {
    struct dl_transformer_choice choice;
    double micro;
    if ((double)plan->pp > tf->stack)
        DL_TRY(check_divides("pp", plan->pp, tf->stack, "layers", tf->workload->name, err));
    const double room = dl_transformer_frozen_room(tf, plan->pp);
    if (room < 1 || tf->dense_prefix_layers > room)
        return dl_fail(err, DL_ERR_USAGE,
                       "--frozen-layers: with %lld pipeline stages at most %.0f layers can be "
                       "frozen, one less than the first stage has; take fewer stages",
                       (long long)plan->pp, fmax(0, room));
    dl_transformer_choice_of(plan, &choice, &micro);
    if (tf->listed_stages > 0) {
        DL_TRY(check_listed(tf, plan, err));
        if (!dl_transformer_takes_schedule(tf, plan->pp, choice.schedule, choice.virtual_stages))
            return dl_fail(err, DL_ERR_USAGE,
                           "--stage-layers: the layers of each stage do not divide into %lld "
                           "virtual stages",
                           (long long)choice.virtual_stages);
        return DL_OK;
    }
    const int64_t parts =
        choice.virtual_stages / dl_placing_chains(dl_schedules[choice.schedule]->placing);
    if (dl_schedules[choice.schedule]->most_parts > 1) {
        if (plan->pp < 2)
            return dl_fail(err, DL_ERR_USAGE, "--schedule %s needs a pipeline: --pp 2 or more",
                           dl_schedule_names[choice.schedule]);
        const double layers = ceil(tf->stack / (double)plan->pp);
        const bool uneven = tf->framework->transformer.uneven_parts;
        if (uneven && (double)parts <= layers) return DL_OK;
        DL_TRY(check_divides("virtual-stages", parts, layers, "layers of a stage",
                             tf->workload->name, err));
    } else if (plan->virtual_stages > 1) {
        return dl_fail(err, DL_ERR_USAGE, "--virtual-stages: goes with --schedule interleaved");
    }
    return DL_OK;
}

bool dl_transformer_takes_context(const struct dl_transformer *tf, int64_t tp, int64_t sp) {
    const double ranks = (double)(tp * sp);
    if (tf->state_heads > 0 && fmod(tf->state_heads, ranks) != 0) return false;
    return sp <= 1 || tf->framework->transformer.context_exchange != DL_CONTEXT_ALL_TO_ALL ||
           (fmod(tf->heads, ranks) == 0 && fmod(tf->kv_heads, ranks) == 0);
}

static enum dl_code check_split(const struct dl_transformer *tf, const struct dl_plan *plan,
                                struct dl_err *err) {
    DL_TRY(check_divides("tp", plan->tp, tf->heads, "attention heads", tf->workload->name, err));
    if (tf->state_heads > 0) { /* F-STATE-SPLIT */
        DL_TRY(check_divides("tp", plan->tp, tf->state_groups,
                             "groups with keys of layers with a state", tf->workload->name, err));
        if (fmod(tf->state_heads, (double)(plan->tp * plan->sp)) != 0)
            return dl_fail(err, DL_ERR_USAGE,
                           "--cp: --tp %lld x --cp %lld does not divide the %.0f heads of the "
                           "layers with a state of %s",
                           (long long)plan->tp, (long long)plan->sp, tf->state_heads,
                           tf->workload->name);
    }
    if (plan->sp > 1 && !tf->by_tokens) {
        return dl_fail(err, DL_ERR_USAGE, "--cp: the input of %s is no sequence of tokens",
                       tf->workload->name);
    }
    DL_TRY(check_divides("cp", plan->sp, tf->tokens, "tokens", tf->workload->name, err));
    if (!dl_transformer_takes_context(tf, plan->tp, plan->sp))
        return dl_fail(
            err, DL_ERR_USAGE,
            "--cp-comm alltoall: --tp %lld x --cp %lld does not divide the %.0f query and "
            "%.0f key heads of %s",
            (long long)plan->tp, (long long)plan->sp, tf->heads, tf->kv_heads, tf->workload->name);
    if (plan->ep > 1 && tf->experts < 1) {
        return dl_fail(err, DL_ERR_USAGE, "--ep: %s has no experts to spread; nearest is --ep 1",
                       tf->workload->name);
    }
    DL_TRY(check_divides("ep", dl_plan_expert_ranks(plan), tf->experts, "experts",
                         tf->workload->name, err));
    DL_TRY(check_pipeline(tf, plan, err));
    if (plan->sequence_parallel && plan->tp < 2) {
        return dl_fail(err, DL_ERR_USAGE,
                       "--sequence-parallel: goes with tensor parallelism, --tp 2 or more");
    }
    if (plan->sequence_parallel && fmod(tf->tokens / (double)plan->sp, (double)plan->tp) != 0) {
        return dl_fail(err, DL_ERR_USAGE,
                       "--sequence-parallel: %.0f tokens of a rank do not divide by --tp %lld",
                       tf->tokens / (double)plan->sp, (long long)plan->tp);
    }
    return check_batch(plan, err);
}

enum dl_code dl_transformer_check(const struct dl_system *system,
                                  const struct dl_workload *workload,
                                  const struct dl_framework *framework, const struct dl_plan *plan,
                                  struct dl_err *err) {
    struct dl_arena arena = {0};
    struct dl_transformer tf;
    const bool splits = plan->tp * plan->pp * plan->sp * plan->ep > 1,
               shards = dl_transformer_shard_of(plan) > 0;
    if (splits && !framework->splits_layers) {
        return dl_fail(err, DL_ERR_USAGE,
                       "%s does not split layers over devices; take --framework megatron-core, "
                       "pytorch-fsdp2 or ideal",
                       framework->name);
    }
    if (shards && !framework->shards) {
        return dl_fail(
            err, DL_ERR_USAGE,
            "%s does not shard states; take --framework pytorch-fsdp2, deepspeed-zero1 to "
            "deepspeed-zero3, megatron-core or ideal",
            framework->name);
    }
    DL_TRY(check_shards(plan, dl_transformer_shard_of(plan), err));
    DL_TRY(dl_transformer_check_offload(system, plan, dl_transformer_shard_of(plan), err));
    enum dl_code code = dl_transformer_prepare(system, workload, framework, plan, &arena, &tf, err);
    if (code == DL_OK) code = check_split(&tf, plan, err);
    dl_arena_free(&arena);
    return code;
}

static double recomputed_frac(const struct dl_transformer_parts *t) {
    return dl_plan_recomputed_frac(t->plan, t->mapping.stage_layers);
}

/* One device that computes a device's share of the samples, in the same micro-batches. */
static enum dl_code alone_s(const struct dl_transformer_parts *t, double *out, struct dl_err *err) {
    struct dl_transformer_split one = {
        .tp = 1, .sp = 1, .ep = 1, .pp = 1, .dp = 1, .nodes = 1, .devices_per_node = 1};
    struct dl_transformer tf = *t->tf;
    struct dl_transformer_micro_batch micro_batch;
    struct dl_transformer_mapping mapping;
    struct dl_transformer_result result;
    const struct dl_collective_time none = {0};
    const double samples = t->plan->batch_per_device_samples;
    const struct dl_transformer_choice choice = {.micro_batches = samples / t->micro_samples,
                                                 .recompute = t->choice.recompute,
                                                 .virtual_stages = 1};
    tf.input.global_batch_samples = samples;
    DL_TRY(dl_transformer_micro_batch_make(&tf, &one, t->micro_samples, &micro_batch, err));
    dl_transformer_recompute_some(recomputed_frac(t), &micro_batch);
    dl_transformer_offload_activations(&tf, &one, &micro_batch);
    DL_TRY(dl_transformer_mapping_make(&tf, &one, 0, &mapping, err));
    dl_transformer_evaluate(&tf, &mapping, &micro_batch, &none, &choice, &result);
    *out = result.iteration.iteration_s;
    return DL_OK;
}

/* Largest batch of a device whose activations fit, where the micro-batch is the whole batch. */
static double max_batch(const struct dl_transformer_parts *t, const struct dl_prediction *p) {
    const struct dl_memory *m = &p->memory;
    if (t->choice.micro_batches > 1 || !dl_known(m->capacity_bytes))
        return p->fits ? t->plan->batch_per_device_samples : 0;
    const double fixed =
        m->total_bytes * (1 - dl_fragmentation_frac(t->tf->framework)) - m->activations_bytes;
    const double each = m->activations_bytes / t->micro_samples; /* bytes a sample of a data rank */
    const double samples =
        floor((m->capacity_bytes * (1 - dl_fragmentation_frac(t->tf->framework)) - fixed) / each);
    return fmax(0, samples) * t->plan->batch_per_device_samples / t->micro_samples;
}

static void describe_comm(const struct dl_transformer_parts *t, struct dl_prediction *p) {
    const struct dl_collective_time *all[] = {&t->micro_batch.reduce, &t->micro_batch.gather,
                                              &t->mapping.reduce, &t->mapping.unit_gather,
                                              &t->boundary};
    double longest_s = -1;
    for (int i = 0; i < 5; i++) {
        if (all[i]->time_s <= 0 || all[i]->time_s <= longest_s) continue;
        longest_s = all[i]->time_s;
        p->messages.algorithm = all[i]->algorithm;
        p->messages.protocol = all[i]->protocol;
    }
    p->messages.bytes = t->result.sent_bytes;
}

/* Devices that hold states and activations, split evenly; 0: none do. */
static double holding_devices(const struct dl_transformer_parts *t) {
    const struct dl_memory *m = &t->result.memory;
    const struct dl_plan *plan = t->plan;
    const double model = (double)(plan->tp * plan->pp), shared = (double)t->mapping.shard_ranks;
    const double split = m->weights_bytes * (t->mapping.shard >= 3 ? shared : 1) +
                         m->gradients_bytes * (t->mapping.shard >= 2 ? shared : 1) +
                         m->optimizer_bytes * (t->mapping.shard >= 1 ? shared : 1) +
                         m->activations_bytes;
    const double fixed = m->buffers_bytes + m->context_bytes;
    if (plan->ep > 1 || fixed >= m->capacity_bytes) return 0;
    return model * ceil(split / (m->capacity_bytes - fixed));
}

/* Only what is not set already. */
static const char *advice_of(const struct dl_transformer_parts *t, double most_micro_samples) {
    const struct dl_memory *m = &t->result.memory;
    const struct dl_plan *plan = t->plan;
    const double gib = 1073741824, devices = holding_devices(t);
    if (t->result.fits) return NULL;
    return dl_arena_printf(
        t->arena,
        "does not fit: %s GiB of %s GiB; states %s, activations %s: %s%s%s%smore --tp or --pp%s",
        dl_figure_text(t->arena, m->total_bytes / gib, 3),
        dl_figure_text(t->arena, m->capacity_bytes / gib, 3),
        dl_figure_text(t->arena, (m->weights_bytes + m->gradients_bytes + m->optimizer_bytes) / gib,
                       3),
        dl_figure_text(t->arena, m->activations_bytes / gib, 3),
        plan->tp > 1 && !plan->sequence_parallel ? "--sequence-parallel, " : "",
        t->mapping.shard == 0 && plan->dp > 1 ? "sharded states, " : "",
        t->micro_samples > 1 && most_micro_samples >= 1 ? "a smaller --micro-batch, " : "",
        t->choice.recompute != DL_RECOMPUTE_FULL ? "--recompute full, " : "",
        devices > (double)(plan->nodes * plan->devices_per_node)
            ? dl_arena_printf(t->arena, " (%.0f devices would hold states and activations)",
                              devices)
            : "");
}

/* One device alone updates all parameters. */
static const char *superlinear(const struct dl_transformer_parts *t) {
    const struct dl_transformer_mapping *mapping = &t->mapping;
    const bool sharded = mapping->shard > 0 && mapping->shard_ranks > 1;
    if (!sharded && t->plan->tp * t->plan->pp * t->plan->ep <= 1) return NULL;
    return dl_arena_printf(t->arena, "the update is sharded, a rank updates %s million parameters",
                           dl_figure_text(t->arena, mapping->updated_elements / 1e6, 3));
}

/* Memory of every stage, and the largest micro-batch. */
static void describe_stages(const struct dl_transformer_parts *t, struct dl_prediction *p) {
    const int count = (int)t->plan->pp;
    struct dl_memory *stages = dl_arena_alloc(t->arena, (size_t)count, sizeof *stages);
    for (int i = 0; i < count; i++)
        dl_transformer_stage_memory(t->tf, &t->mapping, &t->micro_batch, &t->choice, i, &stages[i]);
    p->stages = stages;
    p->stage_count = count;
    p->max_micro_batch_samples =
        dl_transformer_largest_micro_batch(t->tf, &t->mapping, &t->micro_batch, &t->choice);
}

static enum dl_code finish(const struct dl_transformer_parts *t,
                           const struct dl_predict_options *options, struct dl_prediction *out,
                           struct dl_err *err) {
    const struct dl_transformer_result *r = &t->result;
    const struct dl_system *system = t->tf->system;
    const bool brief = options != NULL && options->brief;
    struct dl_prediction p = {.memory = r->memory, .fits = r->fits};
    double single_s = NAN;
    if (!brief) DL_TRY(alone_s(t, &single_s, err));
    dl_compose(&r->evidence, t->tf->workload, t->plan, single_s, &p);
    if (!brief) {
        p.max_batch_samples = max_batch(t, &p);
        describe_stages(t, &p);
    }
    describe_comm(t, &p);
    const struct dl_diagnosis diagnosis = {
        .system = system,
        .framework = t->tf->framework,
        .plan = t->plan,
        .evidence = &r->evidence,
        .messages_extrapolated =
            t->micro_batch.extrapolated || t->mapping.extrapolated || t->boundary.extrapolated,
        .superlinear = brief ? NULL : superlinear(t),
        .unknown_memory = dl_known(system->device->context_bytes) ? NULL : "runtime context",
        .advice = brief ? NULL : advice_of(t, p.max_micro_batch_samples),
        .brief = brief,
        .arena = t->arena};
    dl_diagnose(&diagnosis, &p);
    if (options != NULL && options->terms) dl_transformer_explain(t, &p);
    *out = p;
    return DL_OK;
}

enum dl_code dl_transformer_predict(const struct dl_predict_request *request,
                                    struct dl_prediction *out, struct dl_err *err) {
    struct dl_plan plan = *request->plan;
    const struct dl_transformer_split split = dl_transformer_split_of(&plan);
    struct dl_transformer tf;
    struct dl_transformer_parts t = {.tf = &tf, .plan = &plan, .arena = request->arena};
    DL_TRY(dl_transformer_prepare(request->system, request->workload, request->framework, &plan,
                                  request->arena, &tf, err));
    if (request->options != NULL) tf.memo = request->options->memo;
    dl_transformer_choice_of(&plan, &t.choice, &t.micro_samples);
    if (plan.tp * plan.pp * plan.sp * plan.ep == 1)
        plan.batch_per_device_samples = t.choice.micro_batches * t.micro_samples;
    DL_TRY(dl_transformer_micro_batch_make(&tf, &split, t.micro_samples, &t.micro_batch, err));
    DL_TRY(
        dl_transformer_mapping_make(&tf, &split, dl_transformer_shard_of(&plan), &t.mapping, err));
    dl_transformer_overlap_experts(&tf, t.choice.micro_batches, &t.micro_batch);
    dl_transformer_recompute_some(recomputed_frac(&t), &t.micro_batch);
    dl_transformer_offload_activations(&tf, &split, &t.micro_batch);
    DL_TRY(dl_transformer_boundary(&tf, &t.mapping, &t.micro_batch, &t.boundary, err));
    DL_TRY(dl_transformer_check_host(&t, err));
    dl_transformer_evaluate(&tf, &t.mapping, &t.micro_batch, &t.boundary, &t.choice, &t.result);
    return finish(&t, request->options, out, err);
}
