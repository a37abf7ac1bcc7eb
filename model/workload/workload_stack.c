/* workload_stack.c - the repeated part of a network.
 *
 * Blocks (h.0, h.1, ...) need not be equal: models begin with dense layers before those with
 * experts, or alternate (windows, experts in every second layer). The body is the longest end of
 * the blocks that repeats after a period of them; one body layer is that many blocks. Blocks before
 * it, the lead, are split as it is and belong to what comes before.
 *
 * F-MIXED-STACK: layers of several kinds, some with a state, follow one another in patterns that no
 * short period describes ("M-M-M*-"). All blocks are then one body, and the engine's body layer is
 * their mean: each kind of block counts by its share. Sums over the network are exact; a pipeline
 * stage has the mean mix.
 */
#include <string.h>

#include "model/workload/layer.h"

/* All blocks: numbers from 0 up, one after another; of several stacks the last, those before it are
 * encoders (F-TOWER). */
struct blocks {
    int lead;       /* first of an encoder's blocks before them, else first */
    int first, end; /* workload layers */
    long count;
};

static bool find_blocks(const struct dl_workload *workload, struct blocks *out) {
    *out = (struct blocks){.lead = -1, .first = -1};
    const char *prefix = NULL;
    size_t prefix_length = 0;
    long last = -1;
    for (int i = 0; i < workload->layer_count; i++) {
        if (workload->layers[i].kind == &dl_layer_loss) break; /* F-MTP: no part of the stack */
        const char *name = workload->layers[i].name;
        const long number = workload->layers[i].block.number;
        if (workload->layers[i].block.prefix == 0) continue;
        const size_t stem = (size_t)(strchr(name, '.') - name);
        if (prefix == NULL || stem != prefix_length || strncmp(name, prefix, stem) != 0) {
            prefix = name;
            prefix_length = stem;
            out->first = i;
            if (out->lead < 0) out->lead = i;
            last = -1;
        } else if (out->end != i) {
            return false; /* something lies between them */
        }
        if (number != last && number != last + 1) return false;
        last = number;
        out->end = i + 1;
    }
    out->count = last + 1;
    return out->first >= 0 && (double)out->count == workload->transformer_layers;
}

/* Whether two layers do the same at the same place of their blocks. */
static bool alike(const struct dl_layer *a, const struct dl_layer *b) {
    return a->kind == b->kind && a->parameter_elements == b->parameter_elements &&
           a->attention.window == b->attention.window && a->attention.heads == b->attention.heads &&
           strcmp(a->name + a->block.prefix, b->name + b->block.prefix) == 0;
}

/* Workload layers of the last `period` blocks. */
static int layers_of(const struct dl_workload *workload, const struct blocks *blocks, int period) {
    int i = blocks->end;
    while (i > blocks->first && workload->layers[i - 1].block.number >= blocks->count - period) i--;
    return blocks->end - i;
}

/* Blocks before the first that is trained need not be like the others (F-FROZEN). */
static int after_frozen(const struct dl_workload *workload, const struct blocks *blocks) {
    int i = blocks->first;
    while (i < blocks->end && workload->layers[i].detached) i++;
    return i < blocks->end ? i : blocks->first;
}

/* Whether two blocks have the same layers: those that begin at a and b. */
static bool same_block(const struct dl_workload *workload, int a, int b, int end) {
    const struct dl_layer *layers = workload->layers;
    const int first = layers[a].block.number, second = layers[b].block.number;
    for (; a < end && layers[a].block.number == first; a++, b++)
        if (b >= end || layers[b].block.number != second || !alike(&layers[a], &layers[b]))
            return false;
    return b == end || layers[b].block.number != second;
}

double dl_workload_stack_share(const struct dl_workload *workload, int index) {
    const struct dl_stack *stack = &workload->stack;
    const int end = stack->first + stack->each;
    if (stack->mixed == 0) return 1.0;
    const struct dl_layer *layers = workload->layers;
    while (index > stack->first && layers[index - 1].block.number == layers[index].block.number)
        index--;
    double same = 0.0;
    for (int i = stack->first; i < end; i++) {
        const bool begins =
            i == stack->first || layers[i - 1].block.number != layers[i].block.number;
        if (!begins || !same_block(workload, i, index, end)) continue;
        if (i < index) return 0.0;
        same += 1.0;
    }
    return same / stack->mixed;
}

bool dl_workload_has_state(const struct dl_workload *workload) {
    for (int i = 0; i < workload->layer_count; i++)
        if (workload->layers[i].kind->mixing == DL_MIXES_BY_STATE) return true;
    return false;
}

static bool find(const struct dl_workload *workload, const struct blocks *blocks,
                 struct dl_stack *out) {
    enum { LONGEST_PERIOD = 8 };
    *out = (struct dl_stack){.first = -1};
    const int trained = after_frozen(workload, blocks);
    for (int period = 1; period <= LONGEST_PERIOD && period <= blocks->count; period++) {
        const int each = layers_of(workload, blocks, period);
        int i = blocks->end - each;
        while (i > blocks->first &&
               alike(&workload->layers[i - 1], &workload->layers[i - 1 + each]))
            i--;
        const int count = (blocks->end - i) / each, first = blocks->end - count * each;
        /* nothing repeats */
        if (count == 1 && (period > 1 || blocks->end - trained > each)) continue;
        if (out->first < 0 || first < out->first)
            *out = (struct dl_stack){.lead = blocks->lead,
                                     .own = blocks->first,
                                     .first = first,
                                     .count = count,
                                     .each = each};
        if (first == blocks->first) break;
    }
    /* most of the blocks must repeat */
    return out->first >= 0 && 2 * (blocks->end - out->first) > blocks->end - trained;
}

struct dl_stack dl_workload_find_stack(const struct dl_workload *workload) {
    struct dl_stack stack;
    struct blocks blocks;
    if (!dl_known(workload->transformer_layers) || !find_blocks(workload, &blocks))
        return (struct dl_stack){.count = 0};
    if (find(workload, &blocks, &stack) &&
        (!dl_workload_has_state(workload) || stack.count == blocks.count))
        return stack;
    if (!dl_workload_has_state(workload)) return (struct dl_stack){.count = 0};
    return (struct dl_stack){.lead = blocks.lead,
                             .own = blocks.first,
                             .first = blocks.first,
                             .count = 1,
                             .each = blocks.end - blocks.first,
                             .mixed = (int)blocks.count};
}

const char *dl_workload_layers(const struct dl_workload *workload) {
    const struct dl_stack *stack = &workload->stack;
    bool causal = false;
    for (int i = 0; i < stack->each && stack->count > 0; i++)
        causal |= workload->layers[stack->first + i].attention.causal;
    causal = causal && !dl_workload_has_state(workload); /* measured ones have no such layers */
    if (!causal) return NULL;
    return workload->active_parameters < workload->parameters + workload->frozen_elements
               ? "decoder-experts"
               : "decoder";
}
