/* memory.c - weights, gradients, optimizer state, activations, buffers, context. */
#include "model/engine/memory.h"

#include <math.h>
#include <string.h>

#include "model/framework/gradient_sync.h"
#include "model/framework/gradient_width.h"
#include "model/framework/facts.h"
#include "model/framework/workspace.h"
#include "model/workload/layer.h"

double dl_memory_weight_bytes(enum dl_precision precision, enum dl_master_weights masters) {
    switch (precision) {
    case DL_MIXED: return 6;
    case DL_FP16: return 2;
    case DL_BF16:
    case DL_FP8:
    case DL_MXFP8:
    case DL_NVFP4: return masters == DL_MASTERS_NONE ? 2 : 6;
    default: return 4;
    }
}

double dl_memory_frozen_bytes(enum dl_precision precision, enum dl_master_weights masters) {
    const double trained = dl_memory_weight_bytes(precision, masters);
    return precision == DL_MIXED ? trained : fmin(trained, dl_precision_bytes(precision));
}

double dl_memory_optimizer_bytes(enum dl_optimizer optimizer) {
    switch (optimizer) {
    case DL_SGD: return 0;
    case DL_MOMENTUM: return 4;
    default: return 8; /* two fp32 moments */
    }
}

static double known_or_zero(double value) { return dl_known(value) ? value : 0; }

/* F-MEM-BUFFERS: memory that the framework keeps for gradient synchronization. */
static double sync_buffer_bytes(const struct dl_workload *workload,
                                const struct dl_framework *framework, const struct dl_plan *plan) {
    if (plan->nodes * plan->devices_per_node <= 1) return 0;
    const double all =
        workload->parameters * dl_framework_gradient_width(framework, plan->precision).sent_bytes;
    return dl_gradient_sync_buffer(framework, all).bytes;
}

/* "h.7.mlp.fc1": with a number between dots. */
bool dl_memory_is_repeated(const struct dl_layer *layer) {
    for (const char *dot = strchr(layer->name, '.'); dot != NULL; dot = strchr(dot + 1, '.')) {
        const size_t digits = strspn(dot + 1, "0123456789");
        if (digits > 0 && dot[1 + digits] == '.') return true;
    }
    return false;
}

double dl_memory_layer_bytes(const struct dl_layer *layer, enum dl_precision precision,
                             enum dl_recompute recompute, enum dl_attention_kernel attention) {
    const double element_bytes = dl_precision_bytes(precision);
    struct dl_layer changed;
    if (layer->kind == &dl_layer_attention && attention != DL_ATTENTION_OPEN) {
        changed = *layer; /* its kernel decides what it keeps */
        dl_layer_set_attention(&changed, attention);
        layer = &changed;
    }
    const bool repeats = recompute == DL_RECOMPUTE_SELECTIVE && layer->recomputable;
    return (layer->saved.elements - (repeats ? layer->saved.own_elements : 0)) * element_bytes +
           (repeats ? 0 : layer->saved.bytes);
}

static bool same_block(const struct dl_layer *a, const struct dl_layer *b) {
    return a->block.prefix == b->block.prefix && strncmp(a->name, b->name, a->block.prefix) == 0;
}

void dl_memory_recompute(const struct dl_workload *workload, enum dl_precision precision,
                         enum dl_attention_kernel attention, struct dl_recomputed *out) {
    const double width = dl_precision_bytes(precision);
    const struct dl_layer *last = NULL;
    double inside = 0, block = 0;
    *out = (struct dl_recomputed){0};
    for (int i = 0; i < workload->layer_count; i++) {
        const struct dl_layer *layer = &workload->layers[i];
        const double bytes = dl_memory_layer_bytes(layer, precision, DL_RECOMPUTE_NONE, attention);
        const bool repeated = dl_memory_is_repeated(layer);
        *(repeated ? &inside : inside > 0 ? &out->after_bytes : &out->before_bytes) += bytes;
        if (!repeated) continue;
        if (last == NULL || !same_block(last, layer)) {
            out->inputs_bytes += width * dl_shape_elements(&layer->in);
            block = 0;
        }
        last = layer;
        block += bytes;
        out->one_bytes = fmax(out->one_bytes, block);
        out->repeated++;
    }
    if (last == NULL) out->inputs_bytes = NAN;
    if (!dl_known(workload->transformer_layers)) return;
    out->inputs_bytes =
        workload->transformer_layers * workload->hidden * workload->sequence * width;
    out->one_bytes = inside / workload->transformer_layers;
}

double dl_memory_activation_bytes(const struct dl_workload *workload, enum dl_precision precision,
                                  enum dl_recompute recompute, enum dl_attention_kernel attention) {
    double bytes = 0;
    if (recompute == DL_RECOMPUTE_FULL) {
        struct dl_recomputed r;
        dl_memory_recompute(workload, precision, attention, &r);
        return r.inputs_bytes + r.before_bytes + fmax(r.after_bytes, r.one_bytes);
    }
    for (int i = 0; i < workload->layer_count; i++)
        bytes += dl_memory_layer_bytes(&workload->layers[i], precision, recompute, attention);
    return bytes;
}

/* Counted in TensorFlow's graph of a BERT layer by tools/count_kept.py: GELU keeps its input, tanh
 * and 1 + tanh in fp32 and half of its input in the type of the plan; a layer norm its input and
 * the scale over the deviation, a softmax its output, in fp32 each. A fused kernel keeps one tensor
 * in the type of the plan. */
double dl_memory_composed_layer_bytes(const struct dl_layer *layer,
                                      const struct dl_kernel_facts *facts) {
    const double n = dl_shape_elements(&layer->out), width = dl_precision_bytes(facts->precision);
    if (layer->kind == &dl_layer_gelu && facts->gelu == DL_GELU_COMPOSED) return 12 * n;
    if (layer->kind == &dl_layer_layernorm && facts->layernorm == DL_LAYERNORM_COMPOSED)
        return (8 - width) * n;
    const bool scores = facts->attention == DL_ATTENTION_OPEN
                            ? !layer->attention.flash
                            : facts->attention != DL_ATTENTION_FLASH;
    if (layer->kind == &dl_layer_attention && facts->softmax == DL_SOFTMAX_COMPOSED && scores)
        return (4 - width) * layer->attention.heads * layer->out.size[DL_DIMS - 1] *
               layer->requested.tokens;
    return 0;
}

double dl_memory_composed_bytes(const struct dl_workload *workload,
                                const struct dl_kernel_facts *facts) {
    double bytes = 0;
    for (int i = 0; i < workload->layer_count; i++)
        bytes += dl_memory_composed_layer_bytes(&workload->layers[i], facts);
    return bytes;
}

/* Activations of one sample, without its input. */
static double sample_bytes(const struct dl_system *system, const struct dl_workload *workload,
                           const struct dl_framework *framework, const struct dl_plan *plan) {
    const struct dl_kernel_facts facts = dl_plan_facts(framework, system->device, plan);
    const double bytes =
        dl_memory_activation_bytes(workload, plan->precision, plan->recompute, facts.attention);
    return plan->recompute == DL_RECOMPUTE_NONE ? bytes + dl_memory_composed_bytes(workload, &facts)
                                                : bytes;
}

static void memory_of(const struct dl_system *system, const struct dl_workload *workload,
                      const struct dl_framework *framework, const struct dl_plan *plan,
                      double per_sample, double batch, struct dl_memory *out,
                      const char **unknown) {
    const struct dl_device *device = system->device;
    out->weights_bytes =
        workload->parameters * dl_memory_weight_bytes(plan->precision, plan->master_weights) +
        4 * workload->buffer_elements;
    out->weights_bytes +=
        workload->frozen_elements * dl_memory_frozen_bytes(plan->precision, plan->master_weights);
    out->gradients_bytes =
        workload->parameters * dl_framework_gradient_width(framework, plan->precision).kept_bytes;
    out->optimizer_bytes = workload->parameters * dl_memory_optimizer_bytes(plan->optimizer);
    out->activations_bytes = batch * (per_sample + known_or_zero(workload->input_bytes_per_sample));
    if (plan->recompute == DL_RECOMPUTE_NONE) {
        out->activations_bytes += dl_rounding_bytes(workload, framework, plan->precision, batch);
    }
    /* A limit in the device's file takes precedence over the usual limit of the framework's
     * family. */
    const double workspace_bytes =
        dl_known(device->workspace_bytes)
            ? device->workspace_bytes
            : dl_workspace_bytes(device, workload, framework, plan->precision, batch);
    out->workspace_bytes = known_or_zero(workspace_bytes);
    out->buffers_bytes = sync_buffer_bytes(workload, framework, plan);
    out->context_bytes = known_or_zero(device->context_bytes);
    const double sum = out->weights_bytes + out->gradients_bytes + out->optimizer_bytes +
                       out->activations_bytes + out->workspace_bytes + out->buffers_bytes +
                       out->context_bytes;
    out->total_bytes = sum / (1 - dl_fragmentation_frac(framework));
    out->capacity_bytes = device->memory_bytes;
    if (unknown != NULL) {
        *unknown = NULL;
        if (!dl_known(device->context_bytes)) *unknown = "runtime context";
        if (!dl_known(workspace_bytes))
            *unknown = *unknown == NULL ? "workspace" : "runtime context and workspace";
    }
}

void dl_memory_compute(const struct dl_system *system, const struct dl_workload *workload,
                       const struct dl_framework *framework, const struct dl_plan *plan,
                       double batch, struct dl_memory *out, const char **unknown) {
    memory_of(system, workload, framework, plan, sample_bytes(system, workload, framework, plan),
              batch, out, unknown);
}

bool dl_memory_fits(const struct dl_memory *memory) {
    return !dl_known(memory->capacity_bytes) || memory->total_bytes <= memory->capacity_bytes;
}

void dl_memory_weigh(struct dl_prediction *prediction) {
    struct dl_memory *m = &prediction->memory;
    const double margin_log = log(m->capacity_bytes / m->total_bytes);
    m->reserved_bytes = m->total_bytes - m->context_bytes;
    m->workspace_bytes =
        m->reserved_bytes - (m->weights_bytes + m->gradients_bytes + m->optimizer_bytes +
                             m->activations_bytes + m->buffers_bytes);
    prediction->fits_probability_frac = erfc(-margin_log / (sqrt(2) * DL_MEMORY_SIGMA_LOG)) / 2;
    /* managed memory moves to the host what does not fit */
    if (prediction->fits && prediction->fits_probability_frac < 0.5)
        prediction->fits_probability_frac = 1;
}

static double max_batch(const struct dl_system *system, const struct dl_workload *workload,
                        const struct dl_framework *framework, const struct dl_plan *plan,
                        double per_sample) {
    const double capacity_bytes = system->device->memory_bytes;
    struct dl_memory m;
    memory_of(system, workload, framework, plan, per_sample, 0, &m, NULL);
    const double fixed_bytes = m.total_bytes;
    if (fixed_bytes > capacity_bytes) return 0;
    memory_of(system, workload, framework, plan, per_sample, 1, &m, NULL);
    if (!(m.total_bytes > fixed_bytes)) return NAN;
    if (m.total_bytes > capacity_bytes) return 0;
    /* Memory rises with the batch almost in proportion: the secant gets near, then `fits` and
     * `too_many` close in on each other. Workspace and rounding have steps, and a stage of a
     * pipeline may keep next to nothing: where the secant converges slowly, doubling and halving
     * take over. */
    double fits = 1, fits_bytes = m.total_bytes, too_many = INFINITY;
    /* samples; far above any capacity, and whole numbers are exact */
    static const double MOST = 1e9;
    enum { SECANTS = 8 };
    for (int step = 0; too_many - fits > 1 && fits < MOST; step++) {
        const double slope = (fits_bytes - fixed_bytes) / fits;
        double batch = 2 * fits;
        if (slope > 0 && step < SECANTS)
            batch = fmax(floor(fits + (capacity_bytes - fits_bytes) / slope), fits + 1);
        if (batch >= too_many) batch = floor((fits + too_many) / 2);
        memory_of(system, workload, framework, plan, per_sample, batch, &m, NULL);
        if (m.total_bytes <= capacity_bytes) {
            fits = batch;
            fits_bytes = m.total_bytes;
        } else {
            too_many = batch;
        }
    }
    return fits;
}

/* What max_batch() reads, and its result. */
struct kept {
    struct dl_memo_entry entry; /* first; its samples: bytes of one */
    enum dl_precision precision;
    enum dl_optimizer optimizer;
    enum dl_master_weights master_weights;
    bool recomputes, alone;
    double max_batch;
};

static bool same_plan(const struct kept *a, const struct kept *b) {
    return a->precision == b->precision && a->optimizer == b->optimizer &&
           a->master_weights == b->master_weights && a->recomputes == b->recomputes &&
           a->alone == b->alone;
}

double dl_memory_max_batch(const struct dl_system *system, const struct dl_workload *workload,
                           const struct dl_framework *framework, const struct dl_plan *plan,
                           struct dl_cost_memo *memo) {
    if (!dl_known(system->device->memory_bytes)) return NAN;
    const double per_sample = sample_bytes(system, workload, framework, plan);
    const struct kept asked = {.entry = {.device = system->device,
                                         .workload = workload,
                                         .framework = framework,
                                         .samples = per_sample},
                               .precision = plan->precision,
                               .optimizer = plan->optimizer,
                               .master_weights = plan->master_weights,
                               .recomputes = plan->recompute != DL_RECOMPUTE_NONE,
                               .alone = plan->nodes * plan->devices_per_node <= 1};
    if (!dl_known(per_sample)) memo = NULL; /* no key */
    const struct dl_memo_entry *e =
        memo != NULL ? dl_cost_memo_first(memo, DL_MEMO_BATCH, &asked.entry) : NULL;
    for (; e != NULL; e = e->next)
        if (dl_memo_entry_same(e, &asked.entry) && same_plan((const struct kept *)e, &asked))
            return ((const struct kept *)e)->max_batch;
    const double batch = max_batch(system, workload, framework, plan, per_sample);
    if (memo == NULL) return batch;
    struct kept *made = dl_arena_alloc(memo->arena, 1, sizeof *made);
    *made = asked;
    made->max_batch = batch;
    dl_cost_memo_add(memo, DL_MEMO_BATCH, &made->entry);
    return batch;
}
