/* split.c - layers at the shape of one of several devices. See split.h. */
#include "model/engine/split.h"

#include <math.h>
#include <string.h>

#include "model/workload/layer.h"

static bool is_kind(const struct dl_layer *layer, const struct dl_layer_kind *const *kinds) {
    for (int i = 0; kinds[i] != NULL; i++) {
        if (layer->kind == kinds[i]) return true;
    }
    return false;
}

static bool has_filters(const struct dl_layer *layer) {
    static const struct dl_layer_kind *const kinds[] = {&dl_layer_conv, &dl_layer_conv_transpose,
                                                        &dl_layer_dense, NULL};
    return is_kind(layer, kinds) && layer->tied_to < 0;
}

/* Layers that a part of an image can pass with no more than its neighbours' halos. */
static bool is_local(const struct dl_layer *layer) {
    static const struct dl_layer_kind *const kinds[] = {&dl_layer_conv,
                                                        &dl_layer_conv_transpose,
                                                        &dl_layer_batchnorm,
                                                        &dl_layer_lrn,
                                                        &dl_layer_relu,
                                                        &dl_layer_relu6,
                                                        &dl_layer_sigmoid,
                                                        &dl_layer_tanh,
                                                        &dl_layer_gelu,
                                                        &dl_layer_swish,
                                                        &dl_layer_dropout,
                                                        &dl_layer_maxpool,
                                                        &dl_layer_avgpool,
                                                        &dl_layer_upsample,
                                                        &dl_layer_add,
                                                        &dl_layer_mul,
                                                        &dl_layer_concat,
                                                        &dl_layer_scale,
                                                        NULL};
    return is_kind(layer, kinds);
}

static bool splits_channels(const struct dl_layer *whole, const struct dl_split *split) {
    const bool filter = split->kind == DL_SPLIT_FILTER;
    return has_filters(whole) &&
           (filter ? whole->out.channels : whole->in.channels) >= split->parts;
}

/* F-GROUPS: groups of channels are partitioned first; with more parts than groups each device has
 * filters of one group. */
static void split_channels(const struct dl_layer *whole, const struct dl_split *split,
                           struct dl_layer *local) {
    const double parts = split->parts, groups = whole->groups;
    const bool filter = split->kind == DL_SPLIT_FILTER;
    if (groups > 1) {
        const double own = ceil(groups / parts);
        local->groups = own;
        local->in.channels = whole->in.channels / groups * own;
        local->out.channels = whole->out.channels / groups * own;
        if (groups >= parts) return;
        if (filter)
            local->out.channels = fmin(local->out.channels, ceil(whole->out.channels / parts));
        else
            local->in.channels = fmin(local->in.channels, ceil(whole->in.channels / parts));
        return;
    }
    if (filter)
        local->out.channels = ceil(whole->out.channels / parts);
    else
        local->in.channels = ceil(whole->in.channels / parts);
}

static void scale_parameters(const struct dl_layer *whole, struct dl_layer *local,
                             struct dl_arena *arena) {
    const double groups = whole->groups > 1 ? whole->groups : 1,
                 own = local->groups > 1 ? local->groups : 1;
    const double weights = local->out.channels * local->in.channels / own /
                           (whole->out.channels * whole->in.channels / groups);
    struct dl_parameter *list =
        dl_arena_alloc(arena, (size_t)whole->parameter_count + 1, sizeof *list);
    local->parameter_elements = 0;
    for (int p = 0; p < whole->parameter_count; p++) {
        list[p] = whole->parameters[p];
        list[p].elements *=
            strcmp(list[p].name, "bias") == 0 ? local->out.channels / whole->out.channels : weights;
        local->parameter_elements += list[p].elements;
    }
    local->parameters = list;
    local->frozen_elements *= weights;
    local->requested.hidden = local->out.channels;
    local->in_elements = whole->in_elements * local->in.channels / whole->in.channels;
    local->forward_macs = whole->forward_macs * weights;
}

static void split_extents(const struct dl_layer *whole, const struct dl_split *split,
                          struct dl_layer *local) {
    double ratio = 1;
    for (int d = 0; d < DL_DIMS; d++) {
        if (split->grid[d] <= 1) continue;
        local->out.size[d] = ceil(whole->out.size[d] / split->grid[d]);
        local->in.size[d] = ceil(whole->in.size[d] / split->grid[d]);
        ratio *= local->out.size[d] / whole->out.size[d];
        if (whole->kind == &dl_layer_conv) { /* with the halo for exactly these outputs */
            const double reach = whole->window.dilation[d] * (whole->window.kernel[d] - 1) + 1;
            local->in.size[d] = fmax(1, (local->out.size[d] - 1) * whole->window.stride[d] + reach -
                                            2 * whole->window.pad[d]);
        }
    }
    local->in_elements *= ratio;
    local->forward_macs *= ratio;
    local->saved.elements *= ratio;
    local->saved.bytes *= ratio;
    local->saved.own_elements *= ratio;
}

/* True when the layer has at least one position for each part, in and out. */
static bool extents_allow(const struct dl_layer *layer, const double grid[DL_DIMS]) {
    for (int d = 0; d < DL_DIMS; d++) {
        if (grid[d] > layer->in.size[d] || grid[d] > layer->out.size[d]) return false;
    }
    return true;
}

static bool splits_space(const struct dl_workload *whole, int index, const struct dl_split *split,
                         const bool *is_split) {
    const struct dl_layer *layer = &whole->layers[index];
    for (int i = 0; i < layer->input_count; i++) {
        if (layer->inputs[i] >= 0 && !is_split[layer->inputs[i]]) return false;
    }
    return extents_allow(layer, split->grid) && is_local(layer);
}

void dl_split_layers(const struct dl_workload *whole, const struct dl_split *split,
                     bool *is_split) {
    for (int i = 0; i < whole->layer_count; i++) {
        is_split[i] = split->parts > 1 &&
                      (split->kind == DL_SPLIT_SPATIAL ? splits_space(whole, i, split, is_split)
                                                       : splits_channels(&whole->layers[i], split));
    }
}

static void sum_totals(struct dl_workload *out) {
    out->parameters = out->frozen_elements = 0;
    out->forward_macs_per_sample = out->activation_elements_per_sample = 0;
    for (int i = 0; i < out->layer_count; i++) {
        const struct dl_layer *layer = &out->layers[i];
        if (layer->tied_to < 0) out->parameters += layer->parameter_elements;
        out->frozen_elements += layer->frozen_elements;
        out->forward_macs_per_sample += layer->forward_macs;
        out->activation_elements_per_sample += layer->saved.elements;
    }
}

void dl_split_workload(const struct dl_workload *whole, const struct dl_split *split,
                       const bool *is_split, struct dl_arena *arena, struct dl_workload *out) {
    struct dl_layer *layers = dl_arena_alloc(arena, (size_t)whole->layer_count, sizeof *layers);
    *out = *whole;
    out->layers = layers;
    for (int i = 0; i < whole->layer_count; i++) {
        layers[i] = whole->layers[i];
        if (!is_split[i]) continue;
        if (split->kind == DL_SPLIT_SPATIAL) {
            split_extents(&whole->layers[i], split, &layers[i]);
        } else {
            split_channels(&whole->layers[i], split, &layers[i]);
            scale_parameters(&whole->layers[i], &layers[i], arena);
        }
    }
    if (split->parts <= 1) return;
    sum_totals(out);
    if (split->kind == DL_SPLIT_SPATIAL) out->input_bytes_per_sample /= split->parts;
}

double dl_split_limit(const struct dl_workload *whole, enum dl_split_kind kind, int dims,
                      const char **layer_out) {
    double limit = HUGE_VAL;
    const char *name = NULL;
    for (int i = 0; i < whole->layer_count; i++) {
        const struct dl_layer *layer = &whole->layers[i];
        double most;
        if (kind == DL_SPLIT_SPATIAL) {
            if (layer->kind != &dl_layer_conv) continue;
            most = 1;
            for (int d = DL_DIMS - layer->out.dims;
                 d < DL_DIMS && d < DL_DIMS - layer->out.dims + dims; d++) {
                most *= fmin(layer->in.size[d], layer->out.size[d]);
            }
        } else {
            /* dense ones follow if they can */
            if (!has_filters(layer) || layer->kind == &dl_layer_dense) continue;
            if (kind == DL_SPLIT_CHANNEL && layer->first) continue;
            most = kind == DL_SPLIT_FILTER ? layer->out.channels : layer->in.channels;
        }
        if (most >= limit) continue;
        limit = most;
        name = layer->name;
    }
    if (layer_out != NULL) *layer_out = name;
    return name == NULL ? 1 : limit;
}

double dl_split_halo_elements(const struct dl_layer *layer, const struct dl_split *split, int dim,
                              bool of_output) {
    const double reach = layer->window.kernel[dim] > 0
                             ? layer->window.dilation[dim] * (layer->window.kernel[dim] - 1) + 1
                             : 1;
    const double beyond = reach - layer->window.stride[dim];
    if (split->grid[dim] <= 1 || !(beyond > 0)) return 0;
    const struct dl_shape *shape = of_output ? &layer->out : &layer->in;
    double elements =
        shape->channels * (of_output ? ceil(beyond / layer->window.stride[dim]) : beyond);
    for (int d = 0; d < DL_DIMS; d++) {
        if (d == dim) continue;
        const double over = layer->window.kernel[d] > 0
                                ? layer->window.dilation[d] * (layer->window.kernel[d] - 1) + 1 -
                                      layer->window.stride[d]
                                : 0;
        elements *= ceil(shape->size[d] / split->grid[d]) +
                    (d < dim && split->grid[d] > 1 && over > 0 ? over : 0);
    }
    return elements;
}

/* Elements of all halos of the network: what a grid is chosen by. */
static double halos(const struct dl_workload *whole, const struct dl_split *split) {
    double sum = 0;
    for (int i = 0; i < whole->layer_count; i++) {
        const struct dl_layer *layer = &whole->layers[i];
        if (!is_local(layer) || !extents_allow(layer, split->grid)) continue;
        for (int d = 0; d < DL_DIMS; d++) sum += dl_split_halo_elements(layer, split, d, false);
    }
    return sum;
}

static bool grid_allowed(const struct dl_workload *whole, const double grid[DL_DIMS]) {
    for (int i = 0; i < whole->layer_count; i++) {
        if (whole->layers[i].kind == &dl_layer_conv && !extents_allow(&whole->layers[i], grid))
            return false;
    }
    return true;
}

bool dl_split_grid(const struct dl_workload *whole, double parts, int dims, double grid[DL_DIMS]) {
    struct dl_split split = {.kind = DL_SPLIT_SPATIAL, .parts = parts};
    const int first = DL_DIMS - whole->input.dims; /* outermost dimension of the input */
    double least = HUGE_VAL;
    for (double a = 1; a <= parts; a++) {
        if (fmod(parts, a) > 0) continue;
        for (double b = 1; b <= parts / a; b++) {
            if (fmod(parts / a, b) > 0) continue;
            const double factors[DL_DIMS] = {a, b, parts / a / b};
            bool possible = whole->input.dims > 0;
            for (int d = 0; d < DL_DIMS; d++) split.grid[d] = 1;
            for (int k = 0; k < DL_DIMS; k++) {
                if (k < dims && first + k < DL_DIMS)
                    split.grid[first + k] = factors[k];
                else
                    possible = possible && factors[k] <= 1;
            }
            if (!possible || !grid_allowed(whole, split.grid)) continue;
            const double cost = halos(whole, &split);
            if (cost >= least) continue;
            least = cost;
            memcpy(grid, split.grid, sizeof split.grid);
        }
    }
    return least < HUGE_VAL;
}
