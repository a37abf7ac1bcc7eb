/* workload_frozen.c - networks of which a part alone is trained.
 *
 * F-FROZEN: a frozen layer has no gradients of its weights; it passes gradients on where something
 * below it is trained, else it has no backward pass and keeps nothing. F-LORA: adapters of frozen
 * linear layers (engine/transformer/transformer_lora.c).
 */
#include <stdlib.h>
#include <string.h>

#include "model/workload/layer.h"

const char *const dl_lora_target_names[] = {"qkv", "proj", "fc1", "fc2", NULL};

/* Its layers may be changed. */
static struct dl_workload *copy_of(const struct dl_workload *workload, struct dl_arena *arena,
                                   struct dl_layer **layers) {
    const size_t count = (size_t)workload->layer_count;
    struct dl_workload *copy = dl_arena_alloc(arena, 1, sizeof *copy);
    *copy = *workload;
    *layers = dl_arena_alloc(arena, count + 1, sizeof **layers);
    memcpy(*layers, workload->layers, count * sizeof **layers);
    copy->layers = *layers;
    return copy;
}

static void freeze(struct dl_layer *layer) {
    if (layer->frozen || (layer->parameter_count == 0 && layer->tied_to < 0)) return;
    layer->frozen = true;
    layer->frozen_tensors.list = layer->parameters;
    layer->frozen_tensors.count = layer->parameter_count;
    layer->frozen_elements = layer->parameter_elements;
    layer->parameters = NULL;
    layer->parameter_count = 0;
    layer->parameter_elements = 0.0;
}

/* What follows from which layers are frozen. */
static void finish(struct dl_workload *w, struct dl_layer *layers, struct dl_arena *arena) {
    bool adapted = false;
    w->parameters = w->frozen_elements = w->activation_elements_per_sample = 0.0;
    w->parameter_tensors = 0;
    for (int i = 0; i < w->layer_count; i++) { /* one tensor is trained or not */
        if (layers[i].tied_to >= 0) layers[i].frozen = layers[layers[i].tied_to].frozen;
        adapted |= layers[i].adapter_rank > 0;
    }
    dl_layers_mark_gradients(layers, w->layer_count, arena);
    for (int i = 0; i < w->layer_count; i++) {
        struct dl_layer *layer = &layers[i];
        layer->detached =
            layer->first && layer->parameter_count == 0 && (layer->tied_to < 0 || layer->frozen);
        w->parameters += layer->parameter_elements;
        w->parameter_tensors += layer->parameter_count;
        w->frozen_elements += layer->frozen_elements;
        w->activation_elements_per_sample += layer->saved.elements;
    }
    dl_layer_find_twins(layers, w->layer_count);
    if (w->stack.count > 0 && !adapted) w->stack = dl_workload_find_stack(w);
}

/* Whether its layers have numbered blocks, which are what is counted. */
static bool has_blocks(const struct dl_workload *w) {
    return dl_known(w->transformer_layers) && w->stack.count > 0;
}

static int first_block(const struct dl_workload *w) { return w->stack.lead; }
static int end_of_blocks(const struct dl_workload *w) {
    return w->stack.first + w->stack.count * w->stack.each;
}

/* The first layer of the head. */
static int head_of(const struct dl_workload *w) {
    if (has_blocks(w)) return end_of_blocks(w);
    int head = 0;
    for (int i = 0; i < w->layer_count; i++)
        if (w->layers[i].parameter_count > 0) head = i;
    return head;
}

/* The layer after the first `wanted` ones that are counted; *most: how many there are. */
static int after_first(const struct dl_workload *w, long wanted, long *most) {
    long count = 0, seen = -1;
    int after = w->layer_count;
    for (int i = has_blocks(w) ? first_block(w) : 0; i < w->layer_count; i++) {
        const struct dl_layer *layer = &w->layers[i];
        if (has_blocks(w) && i >= end_of_blocks(w)) {
            if (count == wanted && after > i) after = i;
            break;
        }
        const bool next = has_blocks(w) ? layer->block.number != seen
                                        : layer->parameter_count > 0 && !dl_layer_is_norm(layer);
        if (!next) continue;
        if (count == wanted && after > i) after = i;
        seen = layer->block.number;
        count++;
    }
    *most = count;
    return after;
}

static void freeze_range(struct dl_layer *layers, int from, int to) {
    for (int i = from; i < to; i++) freeze(&layers[i]);
}

/* "layer1": the layer of that name, or all of that block. */
static bool freeze_named(struct dl_layer *layers, int count, const char *name, size_t length) {
    bool found = false;
    for (int i = 0; i < count; i++) {
        const char *own = layers[i].name;
        if (strncmp(own, name, length) != 0 || (own[length] != 0 && own[length] != '.')) continue;
        freeze(&layers[i]);
        found = true;
    }
    return found;
}

static enum dl_code freeze_item(const struct dl_workload *w, struct dl_layer *layers,
                                const char *item, size_t length, struct dl_err *err) {
    char *end;
    const long wanted = strtol(item, &end, 10);
    if (length > 0 && item[0] >= '0' && item[0] <= '9' && end == item + length) {
        long most;
        const int after = after_first(w, wanted, &most);
        if (wanted < 1 || wanted > most)
            return dl_fail(err, DL_ERR_USAGE, "--frozen-layers: %s has %ld layers, got %ld",
                           w->name, most, wanted);
        freeze_range(layers, 0, after);
    } else if (length == 8 && strncmp(item, "backbone", length) == 0) {
        freeze_range(layers, 0, head_of(w));
    } else if (length == 4 && strncmp(item, "head", length) == 0) {
        freeze_range(layers, head_of(w), w->layer_count);
    } else if (length == 0 || !freeze_named(layers, w->layer_count, item, length)) {
        return dl_fail(err, DL_ERR_USAGE,
                       "--frozen-layers: expected a number of first layers, backbone, head, or "
                       "names of layers or blocks of %s, as 'dlmodel explain' prints them; got "
                       "'%.*s'",
                       w->name, (int)(length < 40 ? length : 40), item);
    }
    return DL_OK;
}

enum dl_code dl_workload_frozen(const struct dl_workload *workload, const char *list,
                                struct dl_arena *arena, const struct dl_workload **out,
                                struct dl_err *err) {
    struct dl_layer *layers;
    struct dl_workload *copy = copy_of(workload, arena, &layers);
    for (const char *at = list;; at++) {
        const size_t length = strcspn(at, ",");
        DL_TRY(freeze_item(workload, layers, at, length, err));
        at += length;
        if (*at == 0) break;
    }
    finish(copy, layers, arena);
    if (copy->parameter_tensors == 0)
        return dl_fail(err, DL_ERR_USAGE, "--frozen-layers %s: nothing of %s is left to train",
                       list, workload->name);
    *out = copy;
    return DL_OK;
}

/* Targets: qkv before attention, proj after it; of the MLP's layers fc2 is the last one. */
static void adapt_block(struct dl_layer *layers, int from, int to, int64_t rank, unsigned targets,
                        struct dl_arena *arena) {
    bool after = false, projected = false;
    int last = -1;
    for (int i = from; i < to; i++)
        if (layers[i].kind == &dl_layer_dense || layers[i].kind == &dl_layer_moe) last = i;
    for (int i = from; i < to; i++) {
        struct dl_layer *layer = &layers[i];
        after = after || layer->kind == &dl_layer_attention;
        if (layer->kind != &dl_layer_dense) continue;
        const enum dl_lora_target target = !after       ? DL_LORA_QKV
                                           : !projected ? DL_LORA_PROJ
                                           : i == last  ? DL_LORA_FC2
                                                        : DL_LORA_FC1;
        projected = after;
        if ((targets >> target & 1) == 0) continue;
        struct dl_parameter *both = dl_arena_alloc(arena, 2, sizeof *both);
        both[0] = (struct dl_parameter){"lora_A", (double)rank * layer->in.channels};
        both[1] = (struct dl_parameter){"lora_B", (double)rank * layer->out.channels};
        layer->adapter_rank = rank;
        layer->parameters = both;
        layer->parameter_count = 2;
        layer->parameter_elements = both[0].elements + both[1].elements;
    }
}

const struct dl_workload *dl_workload_adapted(const struct dl_workload *workload, int64_t rank,
                                              unsigned targets, struct dl_arena *arena) {
    struct dl_layer *layers;
    struct dl_workload *copy = copy_of(workload, arena, &layers);
    const int end = has_blocks(workload) ? end_of_blocks(workload) : 0;
    if (targets == 0) targets = 1u << DL_LORA_QKV | 1u << DL_LORA_PROJ;
    freeze_range(layers, 0, workload->layer_count);
    for (int i = first_block(workload), next; i < end; i = next) {
        for (next = i; next < end && layers[next].block.number == layers[i].block.number;) next++;
        adapt_block(layers, i, next, rank, targets, arena);
    }
    finish(copy, layers, arena);
    return copy;
}
