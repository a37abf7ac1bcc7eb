/* settings.c - see the header. */
#include "model/framework/settings.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

enum { COMPRESS_NONE = 1 };          /* of dl_gradient_compression_names */
enum { FLAT = 1, HIERARCHICAL = 2 }; /* of dl_allreduce_names */

enum { DISPATCH_ALL_TO_ALL = 1, DISPATCH_GATHER, DISPATCH_DEEP_EP, DISPATCH_HYBRID_EP };

static int switch_of(bool on) { return on ? DL_SWITCH_ON : DL_SWITCH_OFF; }

static int grad_reduce(const struct dl_framework *f) {
    return switch_of(f->sync.overlaps_backward);
}
/* Gathers are hidden only where sums are, unless the plan says so (Megatron-LM requires it). */
static void set_grad_reduce(struct dl_framework *f, int value) {
    f->sync.overlaps_backward = value == DL_SWITCH_ON;
    if (value == DL_SWITCH_OFF) f->transformer.overlaps_gather = false;
}

static int param_gather(const struct dl_framework *f) {
    return switch_of(f->transformer.overlaps_gather);
}
static void set_param_gather(struct dl_framework *f, int value) {
    f->transformer.overlaps_gather = value == DL_SWITCH_ON;
}

/* Without user buffers Megatron overlaps what it can behind whole GEMMs in backward. */
static int tensor_overlap(const struct dl_framework *f) {
    return switch_of(f->transformer.tensor_overlap == DL_TENSOR_PIECES);
}
static void set_tensor_overlap(struct dl_framework *f, int value) {
    f->transformer.tensor_overlap = value == DL_SWITCH_ON ? DL_TENSOR_PIECES : DL_TENSOR_BACKWARD;
}

static int compression(const struct dl_framework *f) {
    return f->sync.gradient_bytes >= 4 ? COMPRESS_NONE : 0;
}
static void set_compression(struct dl_framework *f, int value) {
    if (value == COMPRESS_NONE) {
        f->sync.gradient_bytes = fmax(4, f->sync.gradient_bytes);
        return;
    }
    f->sync.gradient_bytes = fmin(2, f->sync.gradient_bytes);
    f->sync.mixed_gradient_bytes = fmin(2, f->sync.mixed_gradient_bytes);
    f->transformer.bf16_gradient_bytes = fmin(2, f->transformer.bf16_gradient_bytes);
}

static int allreduce(const struct dl_framework *f) {
    return f->sync.hierarchical ? HIERARCHICAL : FLAT;
}
static void set_allreduce(struct dl_framework *f, int value) {
    f->sync.hierarchical = value == HIERARCHICAL;
}

/* DeepEP sends a token once to each node and leaves the order of rows to kernels after it; HybridEP
 * orders them itself (megatron-dispatchers). */
static int dispatch(const struct dl_framework *f) {
    const struct dl_transformer_policy *p = &f->transformer;
    if (p->experts.exchange == DL_EXPERT_ALL_TO_ALL) return DISPATCH_ALL_TO_ALL;
    if (p->experts.exchange == DL_EXPERT_GATHER) return DISPATCH_GATHER;
    return p->experts.rows == DL_ROWS_DIRECT ? DISPATCH_HYBRID_EP : DISPATCH_DEEP_EP;
}
static void set_dispatch(struct dl_framework *f, int value) {
    static const int exchanges[] = {[DISPATCH_ALL_TO_ALL] = DL_EXPERT_ALL_TO_ALL,
                                    [DISPATCH_GATHER] = DL_EXPERT_GATHER,
                                    [DISPATCH_DEEP_EP] = DL_EXPERT_ONCE,
                                    [DISPATCH_HYBRID_EP] = DL_EXPERT_ONCE};
    struct dl_transformer_policy *p = &f->transformer;
    p->experts.exchange = exchanges[value];
    if (value == DISPATCH_HYBRID_EP)
        p->experts.rows = DL_ROWS_DIRECT;
    else if (p->experts.rows == DL_ROWS_DIRECT)
        p->experts.rows = DL_ROWS_SORTED;
}

/* Values in the order of enum dl_context_exchange, after "open". */
static int context_exchange(const struct dl_framework *f) {
    return f->transformer.context_exchange + 1;
}
static void set_context_exchange(struct dl_framework *f, int value) {
    f->transformer.context_exchange = value - 1;
}

/* A graph of the iteration leaves the host nothing to issue; one of a layer, its launch. */
static int cuda_graphs(const struct dl_framework *f) {
    const struct dl_transformer_policy *p = &f->transformer;
    return p->experts.captured_on != NULL ? 0
           : p->captures_layers           ? DL_GRAPHS_LAYER
                                          : DL_GRAPHS_NONE;
}
static void set_cuda_graphs(struct dl_framework *f, int value) {
    f->transformer.experts.captured_on = NULL;
    f->transformer.captures_layers = value == DL_GRAPHS_LAYER;
    if (value != DL_GRAPHS_ITERATION) return;
    f->host.dispatch_s = f->sync.collective_launch_s = 0;
    f->host.counts = NULL;
}

static const struct setting {
    const char *name; /* the option */
    const char *const *values;
    size_t at;                                       /* of struct dl_plan_settings */
    int (*of_release)(const struct dl_framework *f); /* 0: none of the values */
    void (*set)(struct dl_framework *f, int value);
} settings[] = {
    {"overlap-grad-reduce", dl_switch_names, offsetof(struct dl_plan_settings, overlap_grad_reduce),
     grad_reduce, set_grad_reduce},
    {"overlap-param-gather", dl_switch_names,
     offsetof(struct dl_plan_settings, overlap_param_gather), param_gather, set_param_gather},
    {"tp-comm-overlap", dl_switch_names, offsetof(struct dl_plan_settings, tp_comm_overlap),
     tensor_overlap, set_tensor_overlap},
    {"gradient-compression", dl_gradient_compression_names,
     offsetof(struct dl_plan_settings, gradient_compression), compression, set_compression},
    {"allreduce", dl_allreduce_names, offsetof(struct dl_plan_settings, allreduce), allreduce,
     set_allreduce},
    {"moe-dispatch", dl_moe_dispatch_names, offsetof(struct dl_plan_settings, moe_dispatch),
     dispatch, set_dispatch},
    {"cp-comm", dl_cp_comm_names, offsetof(struct dl_plan_settings, cp_comm), context_exchange,
     set_context_exchange},
    {"cuda-graphs", dl_cuda_graphs_names, offsetof(struct dl_plan_settings, cuda_graphs),
     cuda_graphs, set_cuda_graphs},
};
enum { SETTINGS = sizeof settings / sizeof *settings };

/* Settings that the engine reads in the plan itself: no constant of a framework has them. */
static bool recomputes_layers(const struct dl_plan *plan) { return plan->recomputed.layers > 0; }
static bool recomputes_every(const struct dl_plan *plan) { return plan->recomputed.every > 1; }
static bool recomputes_modules(const struct dl_plan *plan) {
    return plan->recompute == DL_RECOMPUTE_SELECTIVE && plan->recomputed.modules != 0;
}
static bool overlaps_experts(const struct dl_plan *plan) { return plan->settings.moe_overlap; }
static bool lists_stages(const struct dl_plan *plan) { return plan->stage_layers != NULL; }
static bool predicts_further(const struct dl_plan *plan) { return plan->tokens.mtp_layers > 0; }
static bool packs(const struct dl_plan *plan) { return plan->tokens.packed_length_tokens > 0; }
static bool offloads(const struct dl_plan *plan) { return plan->offload.what != 0; }
static bool stores_8_bits(const struct dl_plan *plan) { return plan->settings.fp8_store != 0; }
static bool adapts(const struct dl_plan *plan) { return plan->lora.rank > 0; }
static const struct own {
    const char *name, *text;
    bool (*used)(const struct dl_plan *plan);
} owns[] = {
    {"recompute-layers", "--recompute-layers", recomputes_layers},
    {"recompute-every", "--recompute-every", recomputes_every},
    {"recompute-modules", "--recompute of modules", recomputes_modules},
    {"moe-overlap", "--moe-overlap", overlaps_experts},
    {"lora", "--lora-rank", adapts},
    {"fp8-store", "--fp8-store", stores_8_bits},
    {"mtp-layers", "--mtp-layers", predicts_further},
    {"packed-length", "--packed-length", packs},
    {"offload", "--offload", offloads},
    {"stage-layers", "--stage-layers", lists_stages},
};
enum { OWNS = sizeof owns / sizeof *owns };

static int value_of(const struct dl_plan *plan, const struct setting *s) {
    return *(const int *)((const char *)&plan->settings + s->at);
}

/* "overlap-grad-reduce": each of its values; "gradient-compression=fp16": that one. */
static bool is_listed(const struct dl_framework *framework, const struct setting *s, int value) {
    const struct dl_framework_capabilities *c = &framework->capabilities;
    const size_t length = strlen(s->name);
    for (int i = 0; i < c->setting_count; i++) {
        const char *name = c->settings[i];
        if (strncmp(name, s->name, length) != 0) continue;
        if (name[length] == 0) return true;
        if (name[length] == '=' && strcmp(name + length + 1, s->values[value]) == 0) return true;
    }
    return false;
}

static bool lists(const struct dl_framework *framework, const char *name) {
    const struct dl_framework_capabilities *c = &framework->capabilities;
    for (int i = 0; i < c->setting_count; i++)
        if (strcmp(c->settings[i], name) == 0) return true;
    return false;
}

/* A copy that knows what its release lacks. */
static const struct dl_framework *without(const struct dl_framework *framework, const char *what,
                                          struct dl_arena *arena) {
    struct dl_framework *copy = dl_arena_alloc(arena, 1, sizeof *copy);
    *copy = *framework;
    copy->capabilities.lacking = dl_arena_printf(
        arena, framework->capabilities.setting_count > 0 ? "has no %s" : "may have no %s (unknown)",
        what);
    return copy;
}

static const struct dl_framework *with_setting(const struct dl_framework *framework,
                                               const struct setting *s, int value,
                                               struct dl_arena *arena) {
    struct dl_framework *copy = dl_arena_alloc(arena, 1, sizeof *copy);
    *copy = *framework;
    s->set(copy, value);
    if (is_listed(framework, s, value) || copy->capabilities.lacking != NULL) return copy;
    return without(copy, dl_arena_printf(arena, "--%s %s", s->name, s->values[value]), arena);
}

enum dl_code dl_settings_apply(const struct dl_plan *plan, struct dl_arena *arena,
                               const struct dl_system **system,
                               const struct dl_framework **framework, struct dl_err *err) {
    const bool bound = dl_framework_is_bound(*framework);
    for (int i = 0; i < SETTINGS; i++) {
        const struct setting *s = &settings[i];
        const int value = value_of(plan, s);
        if (value == 0 || value == s->of_release(*framework)) continue;
        if (bound && s->values == dl_switch_names) continue;
        *framework = with_setting(*framework, s, value, arena);
    }
    for (int i = 0; i < OWNS && !bound; i++) {
        if (!owns[i].used(plan) || lists(*framework, owns[i].name) ||
            (*framework)->capabilities.lacking != NULL)
            continue;
        *framework = without(*framework, owns[i].text, arena);
    }
    return dl_path_over(*system, &plan->settings.between_nodes, arena, system, err);
}

enum dl_code dl_settings_check(const struct dl_framework *framework, const struct dl_json *doc,
                               struct dl_err *err) {
    const struct dl_framework_capabilities *c = &framework->capabilities;
    for (int i = 0; i < c->setting_count; i++) {
        bool known = false;
        for (int s = 0; s < OWNS; s++) known = known || strcmp(c->settings[i], owns[s].name) == 0;
        for (int s = 0; s < SETTINGS; s++) {
            const size_t length = strlen(settings[s].name);
            const char *end = c->settings[i] + length;
            known = known || (strncmp(c->settings[i], settings[s].name, length) == 0 &&
                              (*end == 0 || *end == '='));
        }
        if (!known)
            return dl_json_fail(doc, "settings", err,
                                "expected OPTION or OPTION=VALUE (overlap-grad-reduce, "
                                "gradient-compression=fp16, ...), got \"%.60s\"",
                                c->settings[i]);
    }
    return DL_OK;
}

const char *const dl_settings_varied[] = {"all",
                                          "overlap-grad-reduce",
                                          "overlap-param-gather",
                                          "tp-comm-overlap",
                                          "allreduce",
                                          "moe-dispatch",
                                          "cp-comm",
                                          "cuda-graphs",
                                          "moe-overlap",
                                          "recompute-layers",
                                          "recompute-every",
                                          "recompute-modules",
                                          "offload",
                                          NULL};

/* Whether the plan leaves open what this recomputation repeats. */
static bool repeats_anything(const struct dl_plan *plan, enum dl_recompute recompute) {
    const struct dl_plan_recomputed *r = &plan->recomputed;
    return (plan->recompute_open || plan->recompute == recompute) && r->layers == 0 &&
           r->every == 0 && r->modules == 0;
}
static bool recompute_layers(struct dl_plan *plan, int value) {
    if (!repeats_anything(plan, DL_RECOMPUTE_FULL)) return false;
    plan->recompute = DL_RECOMPUTE_FULL;
    plan->recompute_open = false;
    plan->recomputed.layers = value;
    return true;
}
static bool recompute_every(struct dl_plan *plan, int value) {
    if (value == 1 || !recompute_layers(plan, 0)) return false;
    plan->recomputed.every = value;
    return true;
}
static bool recompute_modules(struct dl_plan *plan, int value) {
    if (!repeats_anything(plan, DL_RECOMPUTE_SELECTIVE) || value >= 1 << DL_MODULES) return false;
    plan->recompute = DL_RECOMPUTE_SELECTIVE;
    plan->recompute_open = false;
    plan->recomputed.modules = (unsigned)value;
    return true;
}
static bool overlap_experts(struct dl_plan *plan, int value) {
    if (value > 1 || plan->settings.moe_overlap) return false;
    plan->settings.moe_overlap = true;
    return true;
}
/* Optimizer states or, with them, weights; with or without activations, of which recomputation
 * decides what there is. */
static bool offload(struct dl_plan *plan, int value) {
    static const unsigned states[] = {0, 1u << DL_OFFLOAD_OPTIMIZER, 1u << DL_OFFLOAD_WEIGHTS};
    const int kept = value % (1 + DL_RECOMPUTE_FULL + 1);
    if (plan->offload.what != 0 || value / (2 + DL_RECOMPUTE_FULL) > 2) return false;
    plan->offload.what = states[value / (2 + DL_RECOMPUTE_FULL)];
    if (kept == 0) return true;
    if (!plan->recompute_open && (int)plan->recompute != kept - 1) return false;
    plan->offload.what |= 1u << DL_OFFLOAD_ACTIVATIONS;
    plan->recompute = (enum dl_recompute)(kept - 1);
    plan->recompute_open = false;
    return true;
}

/* Of the settings that the engine reads in the plan: gives it value i, from 1 on; false: there is
 * no such value here. */
static const struct axis {
    const char *name;
    bool (*set)(struct dl_plan *plan, int value);
} axes[] = {
    {"moe-overlap", overlap_experts},
    {"recompute-layers", recompute_layers},
    {"recompute-every", recompute_every},
    {"recompute-modules", recompute_modules},
    {"offload", offload},
};
enum { AXES = sizeof axes / sizeof *axes };

static const struct setting *setting_of(const char *name) {
    for (int i = 0; i < SETTINGS; i++)
        if (strcmp(settings[i].name, name) == 0) return &settings[i];
    return NULL;
}

/* Value i of the setting in the plan; false: the release has none, or the plan has it already. */
static bool take(const struct dl_framework *framework, const char *name, int value,
                 struct dl_plan *plan) {
    const struct setting *s = setting_of(name);
    if (s == NULL) {
        for (int i = 0; i < AXES; i++)
            if (strcmp(axes[i].name, name) == 0)
                return lists(framework, name) && axes[i].set(plan, value);
        return false;
    }
    if (value_of(plan, s) != 0 || value == s->of_release(framework) ||
        !is_listed(framework, s, value))
        return false;
    *(int *)((char *)&plan->settings + s->at) = value;
    return true;
}

static int values_of(const char *name, const struct dl_settings_scope *scope) {
    const struct setting *s = setting_of(name);
    int count = 0;
    if (strncmp(name, "moe-", 4) == 0 && !scope->has_experts) return 0;
    while (s != NULL && s->values[count + 1] != NULL) count++;
    if (s != NULL) return count;
    const bool of_layers =
        strcmp(name, "recompute-layers") == 0 || strcmp(name, "recompute-every") == 0;
    if (!of_layers) return 15;
    return scope->layers <= DL_SETTINGS_VARIANTS ? (int)scope->layers : DL_SETTINGS_VARIANTS;
}

enum dl_code dl_settings_variants(const struct dl_framework *framework, const struct dl_plan *plan,
                                  unsigned which, const struct dl_settings_scope *scope,
                                  struct dl_arena *arena, struct dl_plan **out, int *count_out,
                                  struct dl_err *err) {
    const int room = which != 0 ? DL_SETTINGS_VARIANTS : 1;
    struct dl_plan *plans = dl_arena_alloc(arena, (size_t)room, sizeof *plans);
    int count = 1;
    plans[0] = *plan;
    for (int n = 1; dl_settings_varied[n] != NULL; n++) {
        const char *name = dl_settings_varied[n];
        const int before = count;
        const bool of_all = strncmp(name, "recompute-", 10) != 0;
        if ((which >> n & 1) == 0 && ((which & 1) == 0 || !of_all)) continue;
        for (int value = 1; value <= values_of(name, scope); value++) {
            for (int i = 0; i < before; i++) {
                struct dl_plan varied = plans[i];
                if (!take(framework, name, value, &varied)) continue;
                if (count == room)
                    return dl_fail(err, DL_ERR_USAGE,
                                   "--vary: more than %d combinations of settings; name fewer",
                                   (int)DL_SETTINGS_VARIANTS);
                plans[count++] = varied;
            }
        }
    }
    *out = plans;
    *count_out = count;
    return DL_OK;
}

static const char *offload_text(unsigned what, struct dl_arena *arena) {
    const char *text = NULL;
    for (int i = 0; dl_offload_names[i] != NULL; i++) {
        if ((what >> i & 1) == 0) continue;
        text = text == NULL ? dl_offload_names[i]
                            : dl_arena_printf(arena, "%s,%s", text, dl_offload_names[i]);
    }
    return text;
}

const char *dl_settings_text(const struct dl_plan *plan, int n, struct dl_arena *arena) {
    const char *name = dl_settings_varied[n];
    const struct setting *s = setting_of(name);
    if (s != NULL) return value_of(plan, s) != 0 ? s->values[value_of(plan, s)] : NULL;
    if (strcmp(name, "moe-overlap") == 0) return plan->settings.moe_overlap ? "" : NULL;
    if (strcmp(name, "offload") == 0) return offload_text(plan->offload.what, arena);
    const int64_t count = strcmp(name, "recompute-layers") == 0  ? plan->recomputed.layers
                          : strcmp(name, "recompute-every") == 0 ? plan->recomputed.every
                                                                 : 0;
    return count > 0 ? dl_arena_printf(arena, "%lld", (long long)count) : NULL;
}
