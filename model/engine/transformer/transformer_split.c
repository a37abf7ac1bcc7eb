/* transformer_split.c - which layers of a workload are the stack of a transformer, and what tensor,
 * sequence and context parallelism make of each.
 *
 * F-TRANSFORMER-SPLIT, after Megatron: inside the stack a dense layer that reads whole channels is
 * split by its columns (its output channels), the next one by its rows, attention by its heads;
 * embedding and logits by the vocabulary; the layers between work on split channels, the rest on
 * whole ones, or with sequence parallelism on a share of the tokens. Context parallelism splits the
 * tokens of everything; queries meet the keys of all ranks.
 * F-TOWER: an encoder before the stack (vision tower, projector) runs on the first stage, split by
 * tensor parallelism as the stack is; its tokens are not shared out.
 */
#include <math.h>
#include <string.h>

#include "model/framework/facts.h"
#include "model/framework/kernel_scale.h"
#include "model/workload/layer.h"
#include "model/engine/strategies/strategy.h"
#include "model/engine/transformer/transformer.h"
#include "model/engine/replica.h"

static enum dl_code no_stack(const struct dl_workload *workload, struct dl_err *err) {
    return dl_fail(
        err, DL_ERR_USAGE,
        "workload %s is no single stack of equal transformer layers, which tensor, expert and 3d "
        "parallelism need; nearest is --strategy data or zero1 to zero3",
        workload->name);
}

bool dl_transformer_is_stack(const struct dl_workload *workload) {
    for (int i = 0; i < workload->layer_count && workload->stack.count > 0; i++) {
        if (workload->layers[i].kind->mixing != DL_MIXES_NOTHING) return true;
    }
    return false;
}

static enum dl_transformer_part part_of(const struct dl_stack *stack, int index) {
    if (index < stack->first) return DL_TRANSFORMER_BEFORE;
    return index < stack->first + stack->count * stack->each ? DL_TRANSFORMER_BODY
                                                             : DL_TRANSFORMER_AFTER;
}

/* Role and output of one layer from the state of its first input. `block`: in a block that is split
 * as those of the body are. */
static void assign_role(const struct dl_workload *workload, bool block,
                        struct dl_transformer_layer *l) {
    const struct dl_layer *layer = &workload->layers[l->index];
    const bool vocabulary = layer->out.channels == workload->vocabulary || layer->tied_to >= 0;
    l->role = DL_TRANSFORMER_SAME;
    l->out = l->in;
    if (layer->kind == &dl_layer_embedding) {
        l->out = DL_TRANSFORMER_WHOLE;
        if (layer->rows == workload->vocabulary) l->role = DL_TRANSFORMER_VOCABULARY;
    } else if (layer->kind->mixing != DL_MIXES_NOTHING) {
        if (l->in == DL_TRANSFORMER_SPLIT) l->role = DL_TRANSFORMER_HEADS;
    } else if (layer->kind == &dl_layer_moe) {
        l->role = DL_TRANSFORMER_EXPERTS;
        l->out = DL_TRANSFORMER_WHOLE;
    } else if (layer->kind == &dl_layer_loss) {
        l->role = DL_TRANSFORMER_LOSS;
    } else if (layer->kind == &dl_layer_dense) {
        if (l->in == DL_TRANSFORMER_SPLIT) {
            l->role = DL_TRANSFORMER_ROW;
            l->out = DL_TRANSFORMER_WHOLE;
        } else if (block || (l->part == DL_TRANSFORMER_AFTER && vocabulary)) {
            l->role = DL_TRANSFORMER_COLUMN;
            l->out = DL_TRANSFORMER_SPLIT;
        }
    }
}

/* The body layer that represents the others: the second, where there is one. */
static int middle_of(const struct dl_stack *stack) {
    return stack->first + (stack->count > 1 ? stack->each : 0);
}

static int body_end(const struct dl_stack *stack) {
    return stack->first + stack->count * stack->each;
}

/* After layer i comes the next one; after those of the middle body layer, which has the roles of
 * all further ones, what comes after the body. */
static int next_layer(const struct dl_stack *stack, int i) {
    return i + 1 == middle_of(stack) + stack->each ? body_end(stack) : i + 1;
}

/* Place of layer i, one of those, among them. */
static int place_of(const struct dl_stack *stack, int i) {
    const int kept = middle_of(stack) + stack->each;
    return i < kept ? i : i - (body_end(stack) - kept);
}

static enum dl_transformer_state output_of(const struct dl_stack *stack,
                                           const struct dl_transformer_layer *all, int from) {
    if (from < 0) return DL_TRANSFORMER_WHOLE;
    const int middle = middle_of(stack);
    if (from >= middle + stack->each && from < body_end(stack))
        from = middle + (from - stack->first) % stack->each;
    return all[place_of(stack, from)].out;
}

/* Whether a column layer reads the output of layer `from`. Those of the body that others stand for
 * have places behind all others. */
static bool *gathered_of(const struct dl_workload *workload, const struct dl_stack *stack,
                         struct dl_transformer_layer *all, int from) {
    const bool stands = from < middle_of(stack) + stack->each || from >= body_end(stack);
    const int place =
        stands ? place_of(stack, from)
               : place_of(stack, workload->layer_count) + (from - stack->first) % stack->each;
    return &all[place].gathered;
}

/* Roles of the layers that differ, in one pass: a layer comes after those that it reads. */
static void mark_roles(const struct dl_workload *workload, const struct dl_stack *stack,
                       struct dl_transformer_layer *all) {
    bool input_gathered = false, predicts = false; /* F-MTP: after the loss */
    for (int i = 0; i < workload->layer_count; i = next_layer(stack, i)) {
        const struct dl_layer *layer = &workload->layers[i];
        struct dl_transformer_layer *l = &all[place_of(stack, i)];
        const int from = layer->inputs[0];
        *l = (struct dl_transformer_layer){
            .index = i, .part = part_of(stack, i), .in = output_of(stack, all, from)};
        l->in_layer =
            l->part == DL_TRANSFORMER_BODY || (predicts && layer->block.prefix > 0 &&
                                               layer->tied_to < 0 && layer->kind != &dl_layer_loss);
        predicts = predicts || layer->kind == &dl_layer_loss;
        assign_role(workload, l->in_layer || (i >= stack->lead && i < stack->first), l);
        if (l->role != DL_TRANSFORMER_COLUMN) continue;
        bool *gathered = from < 0 ? &input_gathered : gathered_of(workload, stack, all, from);
        l->gathers = !*gathered;
        *gathered = true;
    }
}

/* A layer's tensors by how they are split; the bias of a layer that is split by rows is whole. */
static struct dl_transformer_elements elements_of(const struct dl_transformer_layer *l,
                                                  const struct dl_parameter *tensors, int count,
                                                  bool adapters) {
    const bool columns =
        adapters || l->role == DL_TRANSFORMER_COLUMN || l->role == DL_TRANSFORMER_HEADS;
    const bool rows = l->role == DL_TRANSFORMER_ROW || l->role == DL_TRANSFORMER_VOCABULARY;
    struct dl_transformer_elements out = {0};
    for (int i = 0; i < count; i++) {
        const bool expert =
            l->role == DL_TRANSFORMER_EXPERTS && strncmp(tensors[i].name, "router", 6) != 0;
        *(columns || (rows && i == 0) ? &out.split_elements
          : expert                    ? &out.expert_elements
                                      : &out.whole_elements) += tensors[i].elements;
    }
    return out;
}

static void count_parameters(struct dl_transformer *tf, const struct dl_transformer_layer *l) {
    const struct dl_layer *layer = &tf->workload->layers[l->index];
    if (layer->tied_to >= 0) return;
    const struct dl_transformer_elements trained = elements_of(l, layer->parameters,
                                                               layer->parameter_count,
                                                               layer->adapter_rank > 0),
                                         frozen = elements_of(l, layer->frozen_tensors.list,
                                                              layer->frozen_tensors.count, false);
    tf->split_elements[l->part] += l->share * trained.split_elements;
    tf->whole_elements[l->part] += l->share * trained.whole_elements;
    tf->expert_elements[l->part] += l->share * trained.expert_elements;
    tf->tensor_count[l->part] += l->share * layer->parameter_count;
    tf->frozen[l->part].split_elements += l->share * frozen.split_elements;
    tf->frozen[l->part].whole_elements += l->share * frozen.whole_elements;
    tf->frozen[l->part].expert_elements += l->share * frozen.expert_elements;
}

/* Keeps the layers that represent the others: everything before, the second layer of the body, its
 * last one, everything after. */
static void choose_layers(struct dl_transformer *tf, const struct dl_stack *stack,
                          const struct dl_transformer_layer *all, struct dl_arena *arena) {
    const struct dl_workload *workload = tf->workload;
    const int most = place_of(stack, workload->layer_count);
    tf->layers = dl_arena_alloc(arena, (size_t)most, sizeof *tf->layers);
    const int middle = middle_of(stack);
    tf->layer_count = 0;
    for (int i = 0; i < workload->layer_count; i = next_layer(stack, i)) {
        const struct dl_transformer_layer *l = &all[place_of(stack, i)];
        if (l->part == DL_TRANSFORMER_BODY && i < middle) continue;
        const double share =
            l->part == DL_TRANSFORMER_BODY ? dl_workload_stack_share(workload, i) : 1;
        if (!(share > 0)) continue;
        tf->layers[tf->layer_count] = *l;
        tf->layers[tf->layer_count].share = share;
        count_parameters(tf, &tf->layers[tf->layer_count++]);
    }
    tf->body_count = stack->each;
}

double dl_transformer_imbalance(const struct dl_transformer *tf,
                                const struct dl_transformer_split *split) {
    const double given = tf->input.experts.imbalance_ratio,
                 usual = tf->framework->transformer.experts.imbalance_ratio;
    if (!tf->dropless) return 1;
    if (given > 0) return fmax(1, fmin(given, (double)dl_transformer_expert_ranks(split)));
    return usual > 1 ? usual : 1;
}

double dl_transformer_rows_per_token(const struct dl_transformer *tf,
                                     const struct dl_transformer_split *split) {
    return tf->rows_per_token * dl_transformer_imbalance(tf, split);
}

static enum dl_code find_limits(struct dl_transformer *tf, const struct dl_stack *stack,
                                struct dl_err *err) {
    tf->hidden = tf->workload->layers[stack->first + stack->each - 1].out.channels;
    for (int i = 0; i < tf->layer_count; i++) {
        const struct dl_layer *layer = &tf->workload->layers[tf->layers[i].index];
        if (tf->layers[i].index < stack->own) continue; /* F-TOWER */
        if (layer->kind == &dl_layer_attention && tf->heads == 0) {
            tf->heads = layer->attention.heads;
            tf->kv_heads = layer->attention.kv_heads;
            tf->tokens = layer->out.size[DL_DIMS - 1];
            tf->kv_channels = layer->attention.kv_heads * layer->in.channels /
                              (layer->attention.heads + 2 * layer->attention.kv_heads);
            if (layer->input_count > 1)
                tf->kv_channels =
                    layer->attention.kv_heads * layer->in.channels / layer->attention.heads;
        }
        if (layer->kind->mixing == DL_MIXES_BY_STATE) dl_transformer_add_state(tf, layer);
        if (layer->kind == &dl_layer_moe && tf->experts == 0) {
            tf->experts = layer->moe.experts;
            tf->top_k = layer->moe.top_k;
            tf->rows_per_token = layer->moe.top_k * layer->moe.capacity;
            tf->dropless = layer->moe.dropless;
        }
        if (tf->layers[i].part != DL_TRANSFORMER_AFTER || layer->tied_to < 0 ||
            layer->tied_to >= stack->first)
            continue;
        if (!layer->frozen)
            tf->tied_elements = tf->workload->layers[layer->tied_to].parameters[0].elements;
    }
    if (tf->heads == 0) { /* no attention */
        tf->heads = tf->state_heads;
        tf->kv_heads = tf->state_groups;
    }
    if (tf->heads == 0) return no_stack(tf->workload, err);
    tf->by_tokens =
        tf->workload->input.dims == 1 && tf->workload->input.size[DL_DIMS - 1] == tf->tokens;
    return DL_OK;
}

/* A network that is no stack, for sharded data parallelism: as many equal units as pieces in which
 * its parameters move. */
static void prepare_plain(struct dl_transformer *tf, struct dl_arena *arena) {
    const struct dl_workload *workload = tf->workload;
    tf->layers = dl_arena_alloc(arena, (size_t)workload->layer_count, sizeof *tf->layers);
    tf->layer_count = workload->layer_count;
    double holders = 0;
    for (int i = 0; i < workload->layer_count; i++) {
        tf->layers[i] = (struct dl_transformer_layer){
            .index = i, .part = DL_TRANSFORMER_BODY, .in_layer = true, .share = 1};
        if (workload->layers[i].parameter_elements > 0) holders++;
    }
    const double bytes = tf->framework->sync.bucket_bytes,
                 width = dl_precision_bytes(tf->precision);
    const double pieces = dl_known(bytes) ? ceil(workload->parameters * width / bytes) : 1;
    tf->is_generic_stack = true;
    tf->stack = fmax(1, fmin(pieces, holders));
    tf->whole_elements[DL_TRANSFORMER_BODY] = workload->parameters / tf->stack;
    tf->tensor_count[DL_TRANSFORMER_BODY] = workload->parameter_tensors / tf->stack;
    tf->frozen[DL_TRANSFORMER_BODY].whole_elements = workload->frozen_elements / tf->stack;
}

enum dl_code dl_transformer_prepare(const struct dl_system *system,
                                    const struct dl_workload *workload,
                                    const struct dl_framework *framework,
                                    const struct dl_plan *plan, struct dl_arena *arena,
                                    struct dl_transformer *out, struct dl_err *err) {
    const struct dl_stack *stack = &workload->stack;
    const bool stacked = stack->count > 0;
    if (!stacked && plan->tp * plan->sp * plan->pp * plan->ep != 1) return no_stack(workload, err);
    struct dl_transformer tf = {.system = system,
                                .workload = workload,
                                .framework = framework,
                                .precision = plan->precision,
                                .optimizer = plan->optimizer,
                                .compute_scale = plan->measured.compute_scale,
                                .input = *plan,
                                .stack = stack->mixed > 0 ? stack->mixed : stack->count,
                                .library = dl_replica_library(system, framework, plan)};
    if (!stacked) {
        prepare_plain(&tf, arena);
        *out = tf;
        return DL_OK;
    }
    const int places = place_of(stack, workload->layer_count) + stack->each;
    struct dl_transformer_layer *all = dl_arena_alloc(arena, (size_t)places, sizeof *all);
    mark_roles(workload, stack, all);
    for (int i = stack->own; i < stack->first; i++)
        if (workload->layers[i].kind == &dl_layer_attention) tf.dense_prefix_layers++;
    choose_layers(&tf, stack, all, arena);
    if (plan->stage_layers != NULL) {
        const int count = dl_plan_stage_layers(plan->stage_layers, NULL, 0);
        double *listed = dl_arena_alloc(arena, (size_t)count + 1, sizeof *listed);
        tf.listed_stages = dl_plan_stage_layers(plan->stage_layers, listed, count);
        tf.listed_layers = listed;
    }
    DL_TRY(find_limits(&tf, stack, err));
    dl_transformer_mark_modules(&tf);
    *out = tf;
    return DL_OK;
}

static void divide_tokens(const struct dl_transformer *tf, struct dl_shape *shape, double by) {
    if (shape->dims == 1 && shape->size[DL_DIMS - 1] == tf->tokens) shape->size[DL_DIMS - 1] /= by;
}

struct dl_layer dl_transformer_layer_at(const struct dl_transformer *tf,
                                        const struct dl_transformer_layer *l,
                                        const struct dl_transformer_split *split) {
    struct dl_layer layer = tf->workload->layers[l->index];
    const bool by_heads = l->role == DL_TRANSFORMER_HEADS &&
                          (layer.kind->mixing == DL_MIXES_BY_STATE ||
                           tf->framework->transformer.context_exchange == DL_CONTEXT_ALL_TO_ALL);
    const double sp = by_heads ? 1 : (double)split->sp,
                 tp = (double)(split->tp * (by_heads ? split->sp : 1));
    const double in = dl_shape_elements(&layer.in), out = dl_shape_elements(&layer.out);
    const bool shares =
        l->role == DL_TRANSFORMER_SAME && l->in == DL_TRANSFORMER_WHOLE && split->sequence_parallel;
    const bool own = l->role == DL_TRANSFORMER_EXPERTS && split->ep_within_tp_cp > 0;
    const double tokens = sp * (shares || own ? tp : 1);
    divide_tokens(tf, &layer.in, tokens);
    divide_tokens(tf, &layer.out, tokens);
    const bool split_in = l->in == DL_TRANSFORMER_SPLIT, split_out = l->out == DL_TRANSFORMER_SPLIT;
    if (split_in) layer.in.channels /= tp;
    if (split_out) layer.out.channels /= tp;
    if (l->role == DL_TRANSFORMER_HEADS) {
        layer.attention.heads /= tp;
        layer.attention.kv_heads = fmax(1, layer.attention.kv_heads / tp);
        layer.requested.hidden /= tp;
    }
    if (l->role == DL_TRANSFORMER_VOCABULARY) layer.rows /= tp;
    if (in > 0) layer.in_elements *= dl_shape_elements(&layer.in) / in;
    const double share = l->role == DL_TRANSFORMER_LOSS ? dl_shape_elements(&layer.in) / in
                                                        : dl_shape_elements(&layer.out) / out;
    layer.saved.bytes *= share;
    layer.saved.own_elements *= share;
    dl_layer_set_attention(&layer, dl_framework_attention(tf->framework, tf->system->device,
                                                          tf->precision, tf->input.attention));
    if (l->role == DL_TRANSFORMER_EXPERTS) {
        layer.moe.held_experts /= (double)dl_transformer_expert_ranks(split);
        layer.moe.capacity *= dl_transformer_imbalance(tf, split);
        if (split->ep_within_tp_cp <= 0) layer.requested.hidden /= tp;
        layer.saved.own_elements = dl_layer_moe_own_elements(&layer);
    }
    return layer;
}

/* Whether attention keeps its scores on chip, by the plan, the framework or the layer. */
static bool is_flash(const struct dl_transformer *tf, const struct dl_layer *layer) {
    const enum dl_attention_kernel kernel =
        dl_framework_facts(tf->framework, tf->system->device, tf->precision, tf->input.attention)
            .attention;
    return kernel == DL_ATTENTION_OPEN ? layer->attention.flash : kernel == DL_ATTENTION_FLASH;
}

/* F-NARROW-STORE: whether the plan keeps this result in 8 bits. */
static bool is_stored_narrow(const struct dl_transformer *tf, const struct dl_transformer_layer *l,
                             const struct dl_layer *layer) {
    const unsigned store = tf->input.settings.fp8_store;
    const bool attention = (store >> DL_FP8_STORE_ATTENTION & 1) != 0,
               mlp = (store >> DL_FP8_STORE_MLP & 1) != 0;
    if (store == 0) return false;
    if (layer->kind == &dl_layer_attention) return attention;
    for (int i = 0; i < tf->layer_count; i++) {
        const struct dl_layer *reader = &tf->workload->layers[tf->layers[i].index];
        const bool reads = (attention && reader->kind == &dl_layer_attention) ||
                           (mlp && reader->kind->work == DL_WORK_ACTIVATION);
        for (int j = 0; j < reader->input_count && reads; j++)
            if (reader->inputs[j] == l->index) return true;
    }
    return false;
}

/* Bytes of an element that is kept: what normalizations and activations write, linear layers alone
 * read, in 8-bit training as 8 bits (F-TRANSFORMER-CASTS). */
static double kept_width(const struct dl_transformer *tf, const struct dl_transformer_layer *l,
                         const struct dl_layer *layer) {
    const double width = dl_precision_bytes(tf->precision),
                 operand = dl_precision_operand_bytes(tf->precision);
    const enum dl_work work = layer->kind->work;
    const bool linear = work == DL_WORK_LAYERNORM || work == DL_WORK_ACTIVATION;
    const bool narrow = linear || is_stored_narrow(tf, l, layer);
    return l->in_layer && narrow ? fmin(width, operand) : width;
}

/* F-MEM-LOSS: what the loss holds at its peak for each 16-bit logit; NAN: what the layer says. */
static double loss_logit_bytes(const struct dl_framework *framework, enum dl_loss_kernels loss) {
    if (framework->memory.loss_logit_bytes > 0) return framework->memory.loss_logit_bytes;
    /* backward: log-softmax, its gradient, that of the fp32 copy of the logits, that in 16 bits */
    return loss == DL_LOSS_EAGER ? 4 + 4 + 4 + 2 : NAN;
}

/* Bytes of a sample that a layer keeps for itself: scores of attention or, where they stay on chip,
 * 4 bytes for each query and head; the activated gate where its product with the value is an
 * operation of its own. */
static double own_bytes(const struct dl_transformer *tf, const struct dl_layer *layer) {
    const double width = dl_precision_bytes(tf->precision);
    struct dl_kernel_facts facts =
        dl_framework_facts(tf->framework, tf->system->device, tf->precision, tf->input.attention);
    dl_facts_compile(&facts, tf->framework, tf->input.compiler);
    if (layer->kind == &dl_layer_loss && width <= 2) {
        const double bytes = loss_logit_bytes(tf->framework, facts.loss);
        if (dl_known(bytes)) return bytes * dl_shape_elements(&layer->in);
    }
    if (facts.unfused_gate && (layer->kind == &dl_layer_swiglu || layer->kind == &dl_layer_geglu))
        return width * dl_shape_elements(&layer->out);
    if (layer->kind != &dl_layer_attention || !is_flash(tf, layer))
        return layer->saved.own_elements * width + layer->saved.bytes;
    return 4 * layer->attention.heads * layer->out.size[DL_DIMS - 1];
}

bool dl_transformer_keeps_attention(const struct dl_transformer *tf, const struct dl_layer *layer) {
    return layer->kind == &dl_layer_attention &&
           !(tf->framework->transformer.recomputes_cudnn && is_flash(tf, layer) &&
             dl_attention_is_cudnn(tf->framework, tf->system->device));
}

/* F-TRANSFORMER-RECOMPUTE: of the `all` bytes of a layer, what selective recomputation keeps;
 * `out`: of its output, where backward reads that; `result`: whether it does or not. */
static double kept_selectively(const struct dl_transformer *tf,
                               const struct dl_transformer_layer *l, double all, double out,
                               double result) {
    const struct dl_layer *layer = &tf->workload->layers[l->index];
    const struct dl_transformer_policy *policy = &tf->framework->transformer;
    const double share = 1 - policy->selective_frac;
    const unsigned modules = tf->input.recomputed.modules;
    if (modules != 0) {
        if ((modules & l->modules) == 0) return all;
        if ((modules & l->modules & 1u << DL_MODULE_NORM) != 0) return all - out;
        return layer->recomputable || l->ends_module ? out : 0;
    }
    if (policy->selective == DL_SELECTIVE_ATTENTION) return layer->recomputable ? out : all;
    if (!l->in_layer) return all;
    if (policy->selective == DL_SELECTIVE_BLOCKS) return share * all;
    if (dl_transformer_keeps_attention(tf, layer)) return all;
    return l->role == DL_TRANSFORMER_COLUMN || l->role == DL_TRANSFORMER_ROW ? share * result : 0;
}

double dl_transformer_kept_bytes(const struct dl_transformer *tf,
                                 const struct dl_transformer_layer *l, const struct dl_layer *layer,
                                 const struct dl_transformer_split *split,
                                 enum dl_recompute recompute) {
    const struct dl_layer *whole = &tf->workload->layers[l->index];
    const double tp = (double)split->tp, width = kept_width(tf, l, whole);
    struct dl_shape kept = whole->out;
    divide_tokens(tf, &kept,
                  (double)split->sp *
                      (l->out == DL_TRANSFORMER_WHOLE && split->sequence_parallel ? tp : 1));
    if (l->out == DL_TRANSFORMER_SPLIT) kept.channels /= tp;
    const double result = dl_shape_elements(&kept) * width,
                 out = whole->saved.elements > whole->saved.own_elements ? result : 0;
    const double all =
        out +
        (whole->detached ? 0 : own_bytes(tf, layer) + dl_transformer_lora_bytes(tf, l, layer));
    return recompute == DL_RECOMPUTE_SELECTIVE ? kept_selectively(tf, l, all, out, result) : all;
}
