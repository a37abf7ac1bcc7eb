/* plan_check.c - completes a plan from what it is for, and says what is wrong with it. */
#include <math.h>
#include <string.h>

#include "model/engine/canonical.h"
#include "model/engine/memory.h"
#include "model/engine/strategies/strategy.h"
#include "model/engine/transformer/transformer.h"
#include "model/framework/gradient_sync.h"
#include "model/workload/layer.h"

enum { MAX_DEVICES = 100000000 };

static enum dl_code check_devices(const struct dl_system *system, struct dl_plan *plan,
                                  struct dl_err *err) {
    if (plan->nodes < 1)
        return dl_fail(err, DL_ERR_USAGE, "nodes: expected at least 1, got %lld",
                       (long long)plan->nodes);
    if (plan->devices_per_node <= 0) plan->devices_per_node = system->devices_per_node;
    if (plan->devices_per_node > system->devices_per_node) {
        return dl_fail(err, DL_ERR_USAGE, "devices per node: system %s has %lld, got %lld",
                       system->name, (long long)system->devices_per_node,
                       (long long)plan->devices_per_node);
    }
    if (plan->nodes > MAX_DEVICES / plan->devices_per_node) {
        return dl_fail(err, DL_ERR_USAGE,
                       "nodes: expected at most %d devices in all, got %lld nodes", MAX_DEVICES,
                       (long long)plan->nodes);
    }
    return DL_OK;
}

static int64_t experts_of(const struct dl_workload *workload) {
    for (int i = 0; i < workload->layer_count; i++) {
        if (workload->layers[i].moe.experts > 0) return (int64_t)workload->layers[i].moe.experts;
    }
    return 1;
}

/* Whoever counts all data ranks in dp (Megatron-Core, DeepSpeed, torchtitan) has the expert ranks
 * among them; a plan counts them apart. More of them than data ranks hold is possible only where
 * they count tensor and context ranks too (F-TRANSFORMER-FOLD). */
static void take_experts_from_data(struct dl_plan *plan, int64_t devices) {
    const int64_t tp = plan->tp > 0 ? plan->tp : 1, pp = plan->pp > 0 ? plan->pp : 1,
                  cp = plan->sp > 0 ? plan->sp : 1;
    if (plan->ep <= 1 || plan->experts.ep_within_tp_cp > 0 || plan->dp * tp * pp * cp != devices)
        return;
    if (plan->experts.tp <= 0 && plan->dp % plan->ep != 0 && tp > 1) plan->experts.tp = 1;
    const int64_t folded =
                      plan->experts.tp == 1 && tp > 1 ? dl_common_divisor(plan->ep, tp * cp) : 1,
                  beside = plan->ep / folded;
    if (plan->dp % beside == 0) plan->dp /= beside;
}

/* F-TRANSFORMER-FOLD: of the expert ranks that were given, those among the tensor and sequence
 * ranks. */
static enum dl_code fold_experts(struct dl_plan *plan, struct dl_err *err) {
    const int64_t tp = plan->tp > 0 ? plan->tp : 1, sp = plan->sp > 0 ? plan->sp : 1;
    if (plan->experts.tp <= 0 || plan->experts.tp == tp || plan->experts.ep_within_tp_cp > 0)
        return DL_OK;
    if (plan->experts.tp != 1)
        return dl_fail(err, DL_ERR_USAGE,
                       "--etp %lld: expected 1, or the %lld tensor ranks of the other layers",
                       (long long)plan->experts.tp, (long long)tp);
    if (plan->mapping == DL_MAP_PIPELINE_INSIDE)
        return dl_fail(err, DL_ERR_USAGE, "--etp 1: goes with --mapping data-inside");
    if (plan->ep <= 0) plan->ep = 1;
    plan->experts.ep_within_tp_cp = dl_common_divisor(plan->ep, tp * sp);
    plan->ep /= plan->experts.ep_within_tp_cp;
    return DL_OK;
}

/* Axes that the strategy has and the plan leaves open: the one inside the node takes what a node
 * has left, then the first open one takes the rest and others are 1. */
static enum dl_code complete_axes(const struct dl_workload *workload, struct dl_plan *plan,
                                  int64_t devices, struct dl_err *err) {
    const struct dl_strategy *strategy = plan->strategy;
    const struct {
        const char *name;
        unsigned axis;
        int64_t *ranks;
    } axes[] = {
        {"dp", DL_AXIS_DP, &plan->dp}, {"tp", DL_AXIS_TP, &plan->tp},
        {"pp", DL_AXIS_PP, &plan->pp}, {"cp or --spatial", DL_AXIS_SP, &plan->sp},
        {"ep", DL_AXIS_EP, &plan->ep},
    };
    enum { AXES = sizeof axes / sizeof axes[0] };
    int64_t product = 1;
    for (int i = 0; i < AXES; i++) {
        if ((strategy->axes & axes[i].axis) == 0) {
            if (*axes[i].ranks > 1) {
                return dl_fail(
                    err, DL_ERR_USAGE,
                    "--%s: strategy %s does not split over it; leave it out, or take another "
                    "--strategy",
                    axes[i].name, strategy->name);
            }
            *axes[i].ranks = 1;
        }
        if (*axes[i].ranks > 0 && product <= MAX_DEVICES) product *= *axes[i].ranks;
    }
    for (int i = 0; i < AXES; i++) { /* what a node has left */
        if (axes[i].axis != strategy->inside || *axes[i].ranks > 0) continue;
        int64_t left = plan->devices_per_node / product;
        if (axes[i].axis == DL_AXIS_TP && dl_known(workload->heads))
            left = dl_common_divisor(left, (int64_t)workload->heads);
        if (axes[i].axis == DL_AXIS_EP) left = dl_common_divisor(left, experts_of(workload));
        *axes[i].ranks = left > 1 && devices % (product * left) == 0 ? left : 1;
        product *= *axes[i].ranks;
    }
    for (int i = 0; i < AXES; i++) {
        if (*axes[i].ranks > 0) continue;
        *axes[i].ranks = devices % product == 0 ? devices / product : 1;
        product *= *axes[i].ranks;
    }
    if (product == devices) return DL_OK;
    for (int i = 0; i < AXES; i++) {
        if (strategy->axes != axes[i].axis) continue;
        return dl_fail(err, DL_ERR_USAGE, "--%s %lld is not nodes x devices per node = %lld",
                       axes[i].name, (long long)*axes[i].ranks, (long long)devices);
    }
    return dl_fail(
        err, DL_ERR_USAGE,
        "dp %lld x tp %lld x pp %lld x sp %lld x ep %lld is not nodes x devices per node = %lld",
        (long long)plan->dp, (long long)plan->tp, (long long)plan->pp, (long long)plan->sp,
        (long long)plan->ep, (long long)devices);
}

/* F-TRANSFORMER-IMBALANCE: a rank that takes every token has as many times the mean as there are
 * ranks. */
static enum dl_code check_imbalance(const struct dl_plan *plan, struct dl_err *err) {
    const double ranks = (double)dl_plan_expert_ranks(plan);
    if (!(plan->experts.imbalance_ratio > ranks)) return DL_OK;
    return dl_fail(err, DL_ERR_USAGE,
                   "--expert-imbalance %g: expected at most the %g expert ranks, the share of one "
                   "that takes every token",
                   plan->experts.imbalance_ratio, ranks);
}

static enum dl_code complete_batch(struct dl_plan *plan, double devices, struct dl_err *err) {
    const bool global = plan->global_batch_samples > 0, each = plan->batch_per_device_samples > 0;
    if (!global && !each)
        return dl_fail(err, DL_ERR_USAGE, "give --batch-per-device or --global-batch");
    if (!each) plan->batch_per_device_samples = plan->global_batch_samples / devices;
    if (!global) plan->global_batch_samples = plan->batch_per_device_samples * devices;
    if (fabs(plan->global_batch_samples - plan->batch_per_device_samples * devices) >
        1e-3 * plan->global_batch_samples) {
        return dl_fail(err, DL_ERR_USAGE,
                       "batch: %g a device on %g devices is not a global batch of %g",
                       plan->batch_per_device_samples, devices, plan->global_batch_samples);
    }
    if (plan->global_batch_samples < (double)plan->dp) {
        return dl_fail(
            err, DL_ERR_USAGE,
            "batch: %g samples are fewer than %lld data-parallel ranks (scaling limit of data "
            "parallelism)",
            plan->global_batch_samples, (long long)plan->dp);
    }
    if (plan->batch_per_device_samples > 1e7) {
        return dl_fail(err, DL_ERR_USAGE, "batch: expected at most 1e7 samples a device, got %g",
                       plan->batch_per_device_samples);
    }
    return DL_OK;
}

static bool takes_every_token(const struct dl_workload *workload) {
    for (int i = 0; i < workload->layer_count; i++)
        if (workload->layers[i].moe.experts > 0 && workload->layers[i].moe.dropless) return true;
    return false;
}

/* Whether tokens can crowd on some experts. */
static enum dl_code check_router(const struct dl_workload *workload, const struct dl_plan *plan,
                                 struct dl_err *err) {
    if (!(plan->experts.imbalance_ratio > 0)) return DL_OK;
    for (int i = 0; i < workload->layer_count; i++) {
        if (workload->layers[i].moe.experts == 0) continue;
        if (workload->layers[i].moe.dropless) return DL_OK;
        return dl_fail(err, DL_ERR_USAGE,
                       "--expert-imbalance: a capacity bounds what each expert of %s takes; leave "
                       "one of both out",
                       workload->name);
    }
    return dl_fail(err, DL_ERR_USAGE, "--expert-imbalance: %s has no mixture of experts",
                   workload->name);
}

enum dl_code dl_plan_check_support(const struct dl_system *system,
                                   const struct dl_workload *workload,
                                   const struct dl_framework *framework, const struct dl_plan *plan,
                                   struct dl_err *err) {
    const struct dl_device *device = system->device;
    const char *family = workload->family != NULL ? workload->family : "";
    const enum dl_generation generation = dl_generation_of(device->architecture);
    if (framework->trains == DL_TRAINS_TRANSFORMERS && !dl_known(workload->transformer_layers))
        return dl_fail(err, DL_ERR_USAGE, "%s trains language models only, and %s is not one",
                       framework->name, workload->name);
    if (framework->last_architecture != NULL && device->kind == DL_DEVICE_GPU &&
        (generation == DL_NO_GENERATION ||
         generation > dl_generation_of(framework->last_architecture)))
        return dl_fail(err, DL_ERR_USAGE, "%s: its last release runs on GPUs up to %s; %s is %s",
                       framework->name, framework->last_architecture, device->name,
                       device->architecture != NULL ? device->architecture : "of another vendor");
    if (framework->first_architecture != NULL && generation != DL_NO_GENERATION &&
        generation < dl_generation_of(framework->first_architecture))
        return dl_fail(err, DL_ERR_USAGE, "%s needs GPUs of %s or newer; %s is %s", framework->name,
                       framework->first_architecture, device->name, device->architecture);
    if (dl_precision_is_narrow(plan->precision) && strcmp(family, "cnn") == 0)
        return dl_fail(err, DL_ERR_USAGE,
                       "--precision %s: frameworks cast linear layers, not convolutions; use bf16 "
                       "for %s",
                       dl_precision_names[plan->precision], workload->name);
    return check_router(workload, plan, err);
}

static enum dl_code check_precision(const struct dl_framework *framework,
                                    enum dl_precision precision, struct dl_err *err) {
    if (!dl_precision_is_narrow(precision) || dl_framework_takes_8_bits(framework)) return DL_OK;
    return dl_fail(err, DL_ERR_USAGE,
                   "%s does not train in %s: its file states no casts; megatron-core, "
                   "pytorch-fsdp2 and jax-maxtext do",
                   framework->name, dl_precision_names[precision]);
}

enum dl_code dl_plan_check_framework(const struct dl_system *system,
                                     const struct dl_framework *framework,
                                     const struct dl_plan *plan, struct dl_err *err) {
    const struct dl_framework_behaviour *behaviour = framework->behaviour;
    if (system->device->kind == DL_DEVICE_CPU && framework->sync.cpu_library < 0) {
        return dl_fail(err, DL_ERR_USAGE, "%s needs GPUs; %s has CPUs only", framework->name,
                       system->name);
    }
    if (system->device->kind == DL_DEVICE_GPU && !dl_libraries[framework->sync.library]->on_gpus) {
        return dl_fail(err, DL_ERR_USAGE, "%s runs on CPUs; %s has GPUs", framework->name,
                       system->name);
    }
    DL_TRY(check_precision(framework, plan->precision, err));
    if (framework->host.single_node && plan->nodes > 1) {
        return dl_fail(err, DL_ERR_USAGE, "%s runs inside one node: use --nodes 1",
                       framework->name);
    }
    if (plan->backup_workers > 0 && !behaviour->takes_backup_workers) {
        return dl_fail(
            err, DL_ERR_USAGE,
            "%s: backup workers belong to TensorFlow's synchronous parameter servers: use "
            "--framework tensorflow-ps",
            framework->name);
    }
    if (plan->backup_workers >= plan->nodes && plan->backup_workers > 0) {
        return dl_fail(
            err, DL_ERR_USAGE,
            "--backup-workers %lld: at most %lld of %lld nodes, one worker each, can be spare",
            (long long)plan->backup_workers, (long long)plan->nodes - 1, (long long)plan->nodes);
    }
    if (plan->parameter_servers.count > 0 && !behaviour->has_servers) {
        return dl_fail(err, DL_ERR_USAGE,
                       "--servers: %s has no parameter servers; tensorflow-ps, mxnet-dist-sync and "
                       "mxnet-dist-device-sync have",
                       framework->name);
    }
    const char *why = behaviour->refuse == NULL ? NULL : behaviour->refuse(system, plan);
    if (why != NULL) return dl_fail(err, DL_ERR_USAGE, "%s: %s", framework->name, why);
    return DL_OK;
}

static enum dl_code check_library(const struct dl_system *system, const struct dl_plan *plan,
                                  struct dl_err *err) {
    const int library = plan->library != NULL ? dl_library_find(plan->library) : -1;
    if (plan->library == NULL) return DL_OK;
    if (library < 0)
        return dl_fail(err, DL_ERR_USAGE,
                       "library: no collective library '%s'; see 'dlmodel list libraries'",
                       plan->library);
    const bool cpu = system->device->kind == DL_DEVICE_CPU;
    if (cpu ? dl_libraries[library]->on_cpus : dl_libraries[library]->on_gpus) return DL_OK;
    return dl_fail(err, DL_ERR_USAGE, "library: %s does not run on %s; system %s has %s",
                   plan->library, cpu ? "CPUs" : "GPUs", system->name, cpu ? "CPUs alone" : "GPUs");
}

/* The strategy of a transformer with ranks for axes that `own` does not split over: the one that
 * has them all; otherwise `own`. */
static const struct dl_strategy *strategy_with(const struct dl_strategy *own,
                                               const struct dl_workload *workload,
                                               const struct dl_plan *plan) {
    const unsigned given = (plan->tp > 1 ? DL_AXIS_TP : 0u) | (plan->pp > 1 ? DL_AXIS_PP : 0u) |
                           (plan->sp > 1 ? DL_AXIS_SP : 0u) | (plan->ep > 1 ? DL_AXIS_EP : 0u);
    const struct dl_strategy *all = dl_strategy_find(plan->ep > 1 ? "expert" : "3d");
    const bool more = (given & ~own->axes) != 0 && (given & ~all->axes) == 0;
    return more && dl_known(workload->transformer_layers) ? all : own;
}

/* Data parallelism with sharded states: zero1, zero2 or zero3. */
static const struct dl_strategy *strategy_of_shards(const struct dl_strategy *own, int64_t shard) {
    static const char *const names[] = {"zero1", "zero2", "zero3"};
    const bool shards =
        shard >= 1 && shard <= 3 && (own->shard > 0 || strcmp(own->name, "data") == 0);
    return shards ? dl_strategy_find(names[shard - 1]) : own;
}

/* Sharded states go together with every axis: zero1 to zero3 with further ranks are 3d or expert
 * with that stage, and data parallelism with a stage is zero1 to zero3. */
void dl_plan_complete_strategy(const struct dl_workload *workload,
                               const struct dl_framework *framework, struct dl_plan *plan) {
    const struct dl_strategy *given = plan->strategy, *own = given;
    if (own == NULL)
        own = dl_strategy_find(framework->strategy != NULL ? framework->strategy : "data");
    const bool open =
        given == NULL || own->shard > 0 || (strcmp(own->name, "3d") == 0 && plan->ep > 1);
    plan->strategy = open ? strategy_with(own, workload, plan) : own;
    if (plan->strategy != own) {
        if (own->shard > 0 && plan->shard == 0) plan->shard = own->shard;
        /* nobody named a strategy that fills nodes */
        if (plan->tp <= 0 && plan->dp <= 0) plan->tp = 1;
        return;
    }
    plan->strategy = strategy_of_shards(own, plan->shard);
    if (plan->strategy != own || plan->strategy->shard > 0) plan->shard = 0;
}

static bool has_latent_keys(const struct dl_workload *workload) {
    for (int i = 0; i < workload->layer_count; i++)
        if (workload->layers[i].kind == &dl_layer_latent_keys) return true;
    return false;
}

/* F-RECOMPUTE-SOME, F-RECOMPUTE-MODULES */
static enum dl_code check_recomputed(const struct dl_workload *workload,
                                     const struct dl_framework *framework,
                                     const struct dl_plan *plan, struct dl_err *err) {
    const struct dl_plan_recomputed *r = &plan->recomputed;
    const bool some = r->layers > 0 || r->every > 0, has_experts = experts_of(workload) > 1;
    if (some && plan->recompute != DL_RECOMPUTE_FULL)
        return dl_fail(err, DL_ERR_USAGE,
                       "--recompute-layers and --recompute-every: go with --recompute full");
    if (r->layers > 0 && r->every > 0)
        return dl_fail(err, DL_ERR_USAGE, "give --recompute-layers or --recompute-every, not both");
    if ((some || r->modules != 0) &&
        dl_plan_canonical(workload, framework, plan).strategy->check != dl_transformer_check)
        return dl_fail(err, DL_ERR_USAGE,
                       "--recompute of some layers or modules: goes with a stack of equal "
                       "transformer layers and whole micro-batches");
    if ((r->modules & 1u << DL_MODULE_MOE) != 0 && !has_experts)
        return dl_fail(err, DL_ERR_USAGE, "--recompute moe: %s has no mixture of experts",
                       workload->name);
    if ((r->modules & 1u << DL_MODULE_LATENT) != 0 && !has_latent_keys(workload))
        return dl_fail(err, DL_ERR_USAGE, "--recompute latent: %s has no latent attention",
                       workload->name);
    if ((r->modules & 1u << DL_MODULE_MLP) != 0 && has_experts)
        return dl_fail(err, DL_ERR_USAGE,
                       "--recompute mlp: the MLPs of %s are experts; give --recompute moe",
                       workload->name);
    return DL_OK;
}

/* Settings of a stack of equal layers. */
static enum dl_code check_stacked(const struct dl_workload *workload,
                                  const struct dl_framework *framework, const struct dl_plan *plan,
                                  struct dl_err *err) {
    const char *name = plan->settings.cuda_graphs == DL_GRAPHS_LAYER ? "cuda-graphs layer"
                       : plan->settings.moe_overlap                  ? "moe-overlap"
                       : plan->lora.rank > 0                         ? "lora-rank"
                       : plan->stage_layers != NULL                  ? "stage-layers"
                       : plan->offload.what != 0                     ? "offload"
                                                                     : NULL;
    if (plan->stage_layers != NULL && dl_plan_stage_layers(plan->stage_layers, NULL, 0) < 1)
        return dl_fail(err, DL_ERR_USAGE,
                       "--stage-layers: expected layers of each stage, e.g. 15,6x16,15, got "
                       "'%.40s'",
                       plan->stage_layers);
    if (name == NULL ||
        dl_plan_canonical(workload, framework, plan).strategy->check == dl_transformer_check)
        return DL_OK;
    return dl_fail(err, DL_ERR_USAGE,
                   "--%s: goes with a stack of equal transformer layers and whole micro-batches",
                   name);
}

/* F-MOE-OVERLAP, F-CUDA-GRAPHS: what they do not go with. */
enum dl_code dl_plan_check_settings(const struct dl_workload *workload,
                                    const struct dl_framework *framework,
                                    const struct dl_plan *plan, struct dl_err *err) {
    const struct dl_plan_settings *s = &plan->settings;
    const bool by_layer = s->cuda_graphs == DL_GRAPHS_LAYER;
    DL_TRY(check_recomputed(workload, framework, plan, err));
    if (s->moe_overlap && experts_of(workload) <= 1)
        return dl_fail(err, DL_ERR_USAGE, "--moe-overlap: %s has no mixture of experts",
                       workload->name);
    if (dl_plan_excludes_full(plan) && plan->recompute == DL_RECOMPUTE_FULL)
        return dl_fail(err, DL_ERR_USAGE, "--%s: not with --recompute full",
                       by_layer ? "cuda-graphs layer" : "moe-overlap");
    if (s->fp8_store != 0 && dl_precision_operand_bytes(plan->precision) > 1)
        return dl_fail(err, DL_ERR_USAGE, "--fp8-store: goes with --precision fp8");
    if (plan->lora.targets != 0 && plan->lora.rank <= 0)
        return dl_fail(err, DL_ERR_USAGE, "--lora-targets: goes with --lora-rank");
    DL_TRY(check_stacked(workload, framework, plan, err));
    if (s->cuda_graphs == DL_GRAPHS_ITERATION && takes_every_token(workload))
        return dl_fail(err, DL_ERR_USAGE,
                       "--cuda-graphs iteration: experts of %s take every token, whose number the "
                       "host waits for; give layer, or the experts a capacity",
                       workload->name);
    return DL_OK;
}

static bool has_blocks(const struct dl_workload *workload) {
    for (int i = 0; i < workload->layer_count; i++)
        if (dl_memory_is_repeated(&workload->layers[i])) return true;
    return false;
}

enum dl_code dl_plan_complete(const struct dl_system *system, const struct dl_workload *workload,
                              const struct dl_framework *framework, struct dl_plan *plan,
                              struct dl_err *err) {
    if (plan->recompute_open && framework->recompute != DL_RECOMPUTE_NONE &&
        dl_known(workload->transformer_layers)) {
        plan->recompute = (enum dl_recompute)framework->recompute;
    }
    plan->recompute_open = false;
    if (plan->recompute == DL_RECOMPUTE_FULL && !has_blocks(workload)) {
        return dl_fail(err, DL_ERR_USAGE,
                       "--recompute full: %s has no numbered blocks (layer1.0.conv1), whose inputs "
                       "would be kept; use selective or none",
                       workload->name);
    }
    dl_plan_complete_strategy(workload, framework, plan);
    if (plan->strategy->predict == NULL) {
        return dl_fail(err, DL_ERR_USAGE,
                       "strategy %s is not in this version; see 'dlmodel list strategies'",
                       plan->strategy->name);
    }
    if ((plan->strategy->axes & DL_AXIS_EP) != 0 && experts_of(workload) <= 1) {
        return dl_fail(err, DL_ERR_USAGE,
                       "--strategy expert: %s has no mixture of experts; give one, e.g. --workload "
                       "gpt:layers=24,hidden=1024,experts=8,topk=2, or take --strategy %s",
                       workload->name, dl_known(workload->transformer_layers) ? "3d" : "data");
    }
    if (plan->nodes == 0) plan->nodes = 1;
    DL_TRY(check_devices(system, plan, err));
    const int64_t devices = plan->nodes * plan->devices_per_node;
    take_experts_from_data(plan, devices);
    DL_TRY(fold_experts(plan, err));
    DL_TRY(complete_axes(workload, plan, devices, err));
    DL_TRY(check_imbalance(plan, err));
    DL_TRY(check_library(system, plan, err));
    DL_TRY(complete_batch(plan, (double)devices, err));
    DL_TRY(dl_plan_check_support(system, workload, framework, plan, err));
    DL_TRY(dl_plan_check_framework(system, framework, plan, err));
    if (plan->shard > 0 && (plan->strategy->axes & (DL_AXIS_TP | DL_AXIS_PP)) == 0) {
        return dl_fail(err, DL_ERR_USAGE,
                       "--zero: goes with data, tensor, pipeline and expert parallelism of "
                       "transformers; strategy %s shards no states",
                       plan->strategy->name);
    }
    if (plan->shard_group > 0 && plan->strategy->check != dl_transformer_check) {
        return dl_fail(
            err, DL_ERR_USAGE,
            "--zero-group: goes with sharded states: strategies zero1 to zero3, or --zero 1 to 3");
    }
    if (plan->blocking_launches && plan->strategy->check != dl_transformer_check) {
        return dl_fail(err, DL_ERR_USAGE,
                       "--blocking-launches: goes with tensor, pipeline or expert parallelism, or "
                       "sharded states; strategy %s has none",
                       plan->strategy->name);
    }
    DL_TRY(dl_plan_check_settings(workload, framework, plan, err));
    return plan->strategy->check == NULL
               ? DL_OK
               : plan->strategy->check(system, workload, framework, plan, err);
}
