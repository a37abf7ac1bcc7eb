/* cost.c - sums kernel times into layer times. */
#include "model/framework/cost.h"

#include <math.h>
#include <string.h>

#include "model/framework/facts.h"
#include "model/framework/host_dispatch.h"
#include "model/framework/kernel_scale.h"
#include "model/framework/layer_times.h"
#include "model/workload/layer.h"

static void add_kernel(const struct dl_device *device, enum dl_precision precision,
                       const struct dl_kernel *kernel, double scale, struct dl_pass_cost *cost,
                       double *longest_s) {
    struct dl_kernel_time t;
    if (kernel->has_type) precision = kernel->type;
    dl_kernel_time(device, precision, kernel, &t);
    t.time_s *= scale;
    const double error_s = t.time_s * t.sigma_log;
    cost->time_s += t.time_s;
    cost->by_limit_s[t.limit] += t.time_s;
    if (kernel->pass == DL_BACKWARD_WEIGHTS) cost->weights_s += t.time_s;
    cost->launches += kernel->launches;
    cost->error_s += error_s;
    cost->error_square_s2 += error_s * error_s;
    cost->extrapolated = cost->extrapolated || t.extrapolated;
    cost->flop += kernel->flop;
    cost->bytes +=
        (kernel->read_elements + kernel->write_elements) * dl_precision_bytes(precision) +
        kernel->extra_bytes;
    if (t.time_s > *longest_s) {
        *longest_s = t.time_s;
        cost->formula = t.formula;
        cost->origin = t.origin;
        cost->origin_device = t.origin_device;
    }
}

bool dl_cost_fuses(const struct dl_framework *framework, const struct dl_device *device,
                   enum dl_precision precision) {
    return dl_framework_facts(framework, device, precision, DL_ATTENTION_OPEN).fusion ==
           DL_FUSION_BOTH;
}

/* The passes from `first` to `last` of a layer. */
static struct dl_pass_cost pass_cost(const struct dl_cost_request *r, const struct dl_layer *layer,
                                     const struct dl_kernel_facts *facts, enum dl_pass first,
                                     enum dl_pass last) {
    const enum dl_precision precision = r->plan->precision;
    const struct dl_kernel_scales scales = dl_kernel_scales(r->framework, r->device, layer);
    struct dl_pass_cost cost = {0};
    double longest_s = -1;
    for (int pass = first; pass <= (int)last; pass++) {
        struct dl_kernel kernels[DL_LAYER_KERNELS];
        const int count =
            layer->kind->kernels(layer, facts, (enum dl_pass)pass, r->batch_samples, kernels);
        for (int i = 0; i < count; i++) {
            add_kernel(r->device, precision, &kernels[i],
                       dl_kernel_scale_of(&scales, r->device, precision, &kernels[i]), &cost,
                       &longest_s);
        }
    }
    return cost;
}

/* An activation or addition that the framework fuses into the normalization or addition before it
 * needs no pass over memory. Assumes that it is the only consumer, which holds in the workloads. */
bool dl_cost_fused(const struct dl_workload *workload, int index) {
    const struct dl_layer *layer = &workload->layers[index];
    if (layer->kind != &dl_layer_relu && layer->kind != &dl_layer_add) return false;
    for (int i = 0; i < layer->input_count; i++) {
        const int from = layer->inputs[i];
        if (from < 0) continue;
        const struct dl_layer_kind *kind = workload->layers[from].kind;
        if (kind == &dl_layer_batchnorm || kind == &dl_layer_add) return true;
    }
    return false;
}

double dl_update_bytes_per_parameter(enum dl_optimizer optimizer, enum dl_precision precision) {
    static const double words[DL_OPTIMIZERS] = {
        [DL_SGD] = 3,      /* read w, g; write w */
        [DL_MOMENTUM] = 5, /* and read, write m */
        [DL_ADAM] = 7,     /* read w, g, m, v; write w, m, v */
        /* as Adam, and two norm passes over w and the update (read, read; write, read) */
        [DL_LAMB] = 11,
    };
    const double copy_bytes = precision == DL_MIXED ? 2 : 0;
    return 4 * words[optimizer] + copy_bytes;
}

void dl_cost_scale(struct dl_pass_cost *cost, double factor) {
    cost->time_s *= factor;
    cost->weights_s *= factor;
    for (int i = 0; i < 3; i++) cost->by_limit_s[i] *= factor;
    cost->error_s *= factor;
    cost->error_square_s2 *= factor * factor;
}

/* Weight decay as a term of the loss: for each tensor except those of batch norm a norm (read), the
 * product with its gradient (read, write) and the sum with the data's (two reads, write), in fp32.
 * Source: kernels-of-frameworks, section 3. F-KERNEL-FACTS */
static struct dl_optimizer_cost decay_cost(const struct dl_workload *workload,
                                           const struct dl_framework_kernels *kernels) {
    struct dl_optimizer_cost cost = {0, 0};
    if (kernels->weight_decay != DL_DECAY_LOSS || workload->parameter_tensors == 0) return cost;
    int decayed = workload->parameter_tensors;
    for (int i = 0; i < workload->layer_count; i++) {
        const struct dl_layer *layer = &workload->layers[i];
        if (strcmp(layer->kind->name, "batchnorm") == 0) decayed -= layer->parameter_count;
    }
    cost.kernels = 3.0 * decayed / workload->parameter_tensors;
    cost.bytes = 24;
    return cost;
}

/* A stream over all parameters, of so many bytes each, in so many kernels per tensor. */
static struct dl_pass_cost parameters_cost(const struct dl_device *device,
                                           const struct dl_workload *workload, double bytes,
                                           double kernels_per_tensor) {
    struct dl_pass_cost cost = {0};
    double longest_s = -1;
    const double words = workload->parameters * bytes / 4;
    if (words <= 0) return cost;
    struct dl_kernel kernel =
        dl_kernel_stream(DL_UPDATE, 2 * workload->parameters, words / 2, words / 2);
    add_kernel(device, DL_FP32, &kernel, 1, &cost, &longest_s);
    cost.launches = workload->parameter_tensors * kernels_per_tensor;
    /* many small tensors: latency, not bandwidth */
    if (dl_known(device->kernel_latency_s) && cost.launches > 1) {
        const double extra_s = cost.launches * device->kernel_latency_s - cost.time_s;
        if (extra_s > 0) {
            cost.time_s += extra_s;
            cost.by_limit_s[DL_LIMIT_LATENCY] += extra_s;
        }
    }
    return cost;
}

static struct dl_pass_cost update_cost(const struct dl_device *device,
                                       const struct dl_workload *workload,
                                       const struct dl_framework *framework,
                                       const struct dl_plan *plan) {
    const struct dl_framework_kernels *kernels = &framework->kernels;
    /* the facts are of CUDA kernels */
    if (kernels->optimizer == NULL || device->kind != DL_DEVICE_GPU)
        return parameters_cost(device, workload,
                               dl_update_bytes_per_parameter(plan->optimizer, plan->precision),
                               kernels->update_launches_per_tensor);
    const struct dl_optimizer_cost update = kernels->optimizer->update[plan->optimizer],
                                   decay = decay_cost(workload, kernels);
    double bytes = update.bytes + decay.bytes;
    if (plan->precision == DL_MIXED)
        bytes += dl_mixed_update_bytes((enum dl_mixed_policy)fmax(kernels->mixed_policy, 0));
    return parameters_cost(device, workload, bytes, update.kernels + decay.kernels);
}

/* The sum of gradients with those of earlier micro-batches. On CPUs it is not counted: gradients
 * come from the cache there, and gains measured on two cores exceed those predicted without it.
 * F-ACCUMULATE */
static struct dl_pass_cost accumulation_cost(const struct dl_device *device,
                                             const struct dl_workload *workload,
                                             const struct dl_framework *framework,
                                             const struct dl_plan *plan) {
    const struct dl_framework_kernels *kernels = &framework->kernels;
    if (device->kind == DL_DEVICE_CPU) return (struct dl_pass_cost){0};
    const struct dl_optimizer_cost sum = dl_accumulation_cost(
        kernels->optimizer, plan->precision, (enum dl_mixed_policy)fmax(kernels->mixed_policy, 0));
    return parameters_cost(device, workload, sum.bytes, sum.kernels);
}

/* Recomputation runs forward kernels again before backward: of recomputable layers, or of all.
 * F-RECOMPUTE */
static void add_recomputation(struct dl_layer_cost *cost, const struct dl_layer *layer,
                              enum dl_recompute recompute) {
    if (recompute == DL_RECOMPUTE_NONE ||
        (recompute == DL_RECOMPUTE_FULL && layer->block.prefix == 0) ||
        (recompute == DL_RECOMPUTE_SELECTIVE && !layer->recomputable))
        return;
    const struct dl_pass_cost *again = &cost->forward;
    cost->backward.time_s += again->time_s;
    for (int i = 0; i < 3; i++) cost->backward.by_limit_s[i] += again->by_limit_s[i];
    cost->backward.launches += again->launches;
    dl_host_count_add(&cost->backward.host, &again->host, 1);
    cost->backward.error_s += again->error_s;
    cost->backward.error_square_s2 += again->error_square_s2;
    cost->backward.flop += again->flop;
    cost->backward.bytes += again->bytes;
    if (cost->backward.formula == NULL) {
        cost->backward.formula = again->formula;
        cost->backward.origin = again->origin;
        cost->backward.origin_device = again->origin_device;
    }
}

/* Replaces modelled times by those that the framework's profiler measured. F-LAYER-TIMES */
static enum dl_code use_measured(const struct dl_cost_request *r, struct dl_arena *arena,
                                 struct dl_cost *out, struct dl_err *err) {
    const struct dl_layer_times *times = r->plan->measured.layer_times;
    const double first = times->batches[0].batch_samples,
                 last = times->batches[times->batch_count - 1].batch_samples;
    struct dl_plan bare = *r->plan;
    struct dl_cost lowest = {0}, highest = {0};
    bare.measured.layer_times = NULL;
    bare.measured.compute_scale = 0;
    struct dl_cost_request modelled = *r;
    modelled.plan = &bare, modelled.batch_samples = first;
    DL_TRY(dl_cost_compute(&modelled, arena, &lowest, err));
    modelled.batch_samples = last;
    DL_TRY(dl_cost_compute(&modelled, arena, &highest, err));
    return dl_layer_times_apply(times, r->workload, r->batch_samples,
                                &(struct dl_layer_costs){&lowest, &highest, out}, err);
}

bool dl_cost_fused_rest(const struct dl_layer *layer, enum dl_pass pass, double batch,
                        struct dl_kernel *out) {
    const double n = batch * dl_shape_elements(&layer->out);
    if (layer->kind != &dl_layer_add || pass == DL_BACKWARD_WEIGHTS) return false;
    *out = pass == DL_FORWARD ? dl_kernel_stream(pass, 0, (layer->input_count - 1) * n, 0)
                              : dl_kernel_stream(pass, 0, 0, n);
    return true;
}

static struct dl_pass_cost fused_cost(const struct dl_cost_request *r, const struct dl_layer *layer,
                                      enum dl_pass pass) {
    struct dl_pass_cost cost = {0};
    struct dl_kernel kernel;
    double longest_s = -1;
    if (!dl_cost_fused_rest(layer, pass, r->batch_samples, &kernel)) return cost;
    add_kernel(r->device, r->plan->precision, &kernel, 1, &cost, &longest_s);
    cost.launches = 0;
    return cost;
}

/* One layer in the passes that it has. `forward`: its forward pass is not fused into another. */
static struct dl_layer_cost layer_cost(const struct dl_cost_request *r,
                                       const struct dl_layer *layer,
                                       const struct dl_kernel_facts *facts, bool forward) {
    struct dl_layer_cost cost = {0};
    if (forward) {
        cost.forward = pass_cost(r, layer, facts, DL_FORWARD, DL_FORWARD);
        cost.forward.host = dl_host_count_of(r->framework, layer, false, facts->compiled,
                                             cost.forward.launches, NULL);
    }
    if (layer->detached) return cost;
    cost.backward = pass_cost(r, layer, facts, DL_BACKWARD_DATA, DL_BACKWARD_WEIGHTS);
    cost.backward.host =
        dl_host_count_of(r->framework, layer, true, facts->compiled, cost.backward.launches, NULL);
    add_recomputation(&cost, layer, r->plan->recompute);
    return cost;
}

/* Both passes of a layer on the device, with the gap after each kernel. */
static double device_s(const struct dl_cost_request *r, const struct dl_layer_cost *cost) {
    const double gap_s = dl_device_gap_s(r->device);
    return cost->forward.time_s + cost->backward.time_s +
           gap_s * (cost->forward.launches + cost->backward.launches);
}

/* The bound takes the fastest attention kernel, whichever one the layer names. */
static void choose_attention(const struct dl_cost_request *r, const struct dl_layer *layer,
                             const struct dl_kernel_facts *facts, struct dl_layer_cost *least) {
    static const enum dl_attention_kernel kernels[] = {DL_ATTENTION_COMPOSED, DL_ATTENTION_FLASH};
    if (!dl_framework_is_bound(r->framework) || facts->attention != DL_ATTENTION_OPEN ||
        layer->kind != &dl_layer_attention)
        return;
    for (int i = 0; i < 2; i++) {
        struct dl_kernel_facts other = *facts;
        other.attention = kernels[i];
        const struct dl_layer_cost cost = layer_cost(r, layer, &other, true);
        if (device_s(r, &cost) < device_s(r, least)) *least = cost;
    }
}

enum dl_code dl_cost_compute(const struct dl_cost_request *request, struct dl_arena *arena,
                             struct dl_cost *out, struct dl_err *err) {
    const size_t layers = (size_t)request->workload->layer_count;
    out->layers = dl_arena_alloc(arena, layers, sizeof *out->layers);
    return dl_cost_fill(request, arena, out, err);
}

enum dl_code dl_cost_fill(const struct dl_cost_request *request, struct dl_arena *arena,
                          struct dl_cost *out, struct dl_err *err) {
    const struct dl_device *device = request->device;
    const struct dl_workload *workload = request->workload;
    const struct dl_framework *framework = request->framework;
    const struct dl_plan *plan = request->plan;
    struct dl_layer_cost *layers = out->layers;
    struct dl_kernel_facts facts = dl_plan_facts(framework, device, plan);
    dl_facts_on_device(&facts, device);
    const bool fuses = facts.fusion != DL_FUSION_NONE;
    for (int i = 0; i < workload->layer_count; i++) {
        const struct dl_layer *layer = &workload->layers[i];
        const bool fused = fuses && dl_cost_fused(workload, i);
        const int twin = dl_layer_twin(workload->layers, i);
        if (twin < i && fused == (fuses && dl_cost_fused(workload, twin))) {
            layers[i] = layers[twin];
            continue;
        }
        if (fused && facts.fusion == DL_FUSION_BOTH && !layer->detached)
            layers[i].backward = fused_cost(request, layer, DL_BACKWARD_DATA);
        else
            layers[i] = layer_cost(request, layer, &facts, !fused);
        if (fused) layers[i].forward = fused_cost(request, layer, DL_FORWARD);
        choose_attention(request, layer, &facts, &layers[i]);
        if (!dl_known(layers[i].forward.time_s) || !dl_known(layers[i].backward.time_s)) {
            return dl_fail(err, DL_ERR_USAGE,
                           "device %s has no rate for %s (layer %s); choose another --precision or "
                           "add the rate to its file",
                           device->name, dl_precision_names[plan->precision], layer->name);
        }
    }
    out->quiet = NULL;
    out->update = update_cost(device, workload, framework, plan);
    out->accumulation = accumulation_cost(device, workload, framework, plan);
    if (plan->measured.layer_times != NULL) DL_TRY(use_measured(request, arena, out, err));
    if (plan->measured.compute_scale > 0) {
        for (int i = 0; i < workload->layer_count; i++) {
            dl_cost_scale(&layers[i].forward, plan->measured.compute_scale);
            dl_cost_scale(&layers[i].backward, plan->measured.compute_scale);
        }
        dl_cost_scale(&out->update, plan->measured.compute_scale);
        dl_cost_scale(&out->accumulation, plan->measured.compute_scale);
    }
    return DL_OK;
}

/* Further inputs of dl_cost_compute, and its result. */
struct kept {
    struct dl_memo_entry entry; /* first */
    enum dl_precision precision;
    enum dl_optimizer optimizer;
    enum dl_attention_kernel attention;
    enum dl_compiler compiler;
    enum dl_recompute recompute;
    double compute_scale;
    struct dl_cost cost;
    struct dl_quiet_period quiet;
};

static struct kept key_of(const struct dl_cost_request *r) {
    const struct dl_plan *plan = r->plan;
    return (struct kept){.entry = {.device = r->device,
                                   .workload = r->workload,
                                   .framework = r->framework,
                                   .layer_times = plan->measured.layer_times,
                                   .samples = r->batch_samples},
                         .precision = plan->precision,
                         .optimizer = plan->optimizer,
                         .attention = plan->attention,
                         .compiler = plan->compiler,
                         .recompute = plan->recompute,
                         .compute_scale = plan->measured.compute_scale};
}

static bool same_cost(const struct kept *a, const struct kept *b) {
    return dl_memo_entry_same(&a->entry, &b->entry) && a->precision == b->precision &&
           a->optimizer == b->optimizer && a->attention == b->attention &&
           a->compiler == b->compiler && a->recompute == b->recompute &&
           a->compute_scale == b->compute_scale;
}

enum dl_code dl_cost_recall(struct dl_cost_memo *memo, const struct dl_cost_request *request,
                            struct dl_arena *arena, struct dl_cost *out, struct dl_err *err) {
    const struct kept asked = key_of(request);
    if (memo == NULL) return dl_cost_compute(request, arena, out, err);
    for (const struct dl_memo_entry *e = dl_cost_memo_first(memo, DL_MEMO_LAYERS, &asked.entry);
         e != NULL; e = e->next) {
        const struct kept *known = (const struct kept *)e;
        if (!same_cost(known, &asked)) continue;
        *out = known->cost;
        return DL_OK;
    }
    DL_TRY(dl_cost_compute(request, memo->arena, out, err));
    struct kept *made = dl_arena_alloc(memo->arena, 1, sizeof *made);
    *made = asked;
    out->quiet = &made->quiet;
    made->cost = *out;
    dl_cost_memo_add(memo, DL_MEMO_LAYERS, &made->entry);
    return DL_OK;
}
