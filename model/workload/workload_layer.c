/* workload_layer.c - one entry of a workload file becomes one layer: its expressions, its geometry,
 * its shape.
 */
#include "model/workload/workload_build.h"

#include <stdio.h>
#include <string.h>

#include "model/workload/workload_expr.h"

/* ---- expressions ---- */

static enum dl_code find_name(void *context, const char *name, double *value_out,
                              struct dl_err *err) {
    const struct dl_scope *scope = context;
    if (strcmp(name, "index") == 0) {
        *value_out = scope->index;
        return DL_OK;
    }
    if (strcmp(name, "in_channels") == 0 && !isnan(scope->in_channels)) {
        *value_out = scope->in_channels;
        return DL_OK;
    }
    for (int i = 0; i < scope->frame->argument_count; i++) {
        if (strcmp(scope->frame->argument_names[i], name) == 0) {
            *value_out = scope->frame->numbers[i];
            return DL_OK;
        }
    }
    return dl_build_value(scope->b, name, value_out, err);
}

static enum dl_code find_letter(void *context, const char *name, double index, double *value_out,
                                struct dl_err *err) {
    const struct dl_scope *scope = context;
    return dl_build_letter(scope->b, name, index, value_out, err);
}

enum dl_code dl_build_number(struct dl_scope *scope, const char *text, double *out) {
    struct dl_expr_names names = {.find = find_name, .letter = find_letter, .context = scope};
    return dl_expr_eval(text, &names, out, scope->b->err);
}

/* A whole number from min to 2^53, or with half: a multiple of 0.5. */
enum dl_code dl_build_extent(struct dl_scope *scope, const char *text, double min, bool half,
                             double *out) {
    DL_TRY(dl_build_number(scope, text, out));
    double scaled = half ? 2.0 * *out : *out;
    if (scaled != floor(scaled) || *out < min || *out > 9007199254740992.0) {
        bool plain = text[strspn(text, "0123456789.eE+-")] == '\0'; /* the value alone suffices */
        return dl_fail(scope->b->err, DL_ERR_INPUT,
                       "expected a %s of at least %.0f, found %.10g%s%.80s%s",
                       half ? "multiple of 0.5" : "whole number", min, *out,
                       plain ? "" : " from \"", plain ? "" : text, plain ? "" : "\"");
    }
    return DL_OK;
}

static enum dl_code name_key(struct dl_err *err, const char *key, enum dl_code code) {
    snprintf(err->key, sizeof err->key, "%s", key);
    return code;
}

struct extents_rule {
    unsigned key;
    const char *const *texts;
    int count;
    /* unused: value in the dimensions that the input does not have */
    double min, fallback, unused;
    bool half;
    double *out;
};

static enum dl_code set_extents(struct dl_scope *scope, const struct extents_rule *rule, int dims) {
    for (int i = 0; i < DL_DIMS; i++)
        rule->out[i] = i < DL_DIMS - dims ? rule->unused : rule->fallback;
    if (rule->count == 0) return DL_OK;
    if (rule->count != 1 && rule->count != dims) {
        return dl_layer_fail(scope->b->err, rule->key,
                             "expected 1 extent or %d (the input's dimensions), found %d", dims,
                             rule->count);
    }
    double value = 0.0;
    for (int i = 0; i < dims; i++) {
        if (i < rule->count) {
            enum dl_code code =
                dl_build_extent(scope, rule->texts[i], rule->min, rule->half, &value);
            if (code != DL_OK)
                return name_key(scope->b->err, dl_layer_key_names[__builtin_ctz(rule->key)], code);
        }
        rule->out[DL_DIMS - dims + i] = value;
    }
    return DL_OK;
}

struct number_rule {
    const char *key, *text;
    double min;
    double *out;
};

static enum dl_code set_extents_of(struct dl_scope *scope, const struct number_rule *rules,
                                   size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (rules[i].text == NULL) continue;
        const enum dl_code code =
            dl_build_extent(scope, rules[i].text, rules[i].min, false, rules[i].out);
        if (code != DL_OK) return name_key(scope->b->err, rules[i].key, code);
    }
    return DL_OK;
}

static enum dl_code set_numbers(struct dl_scope *scope, const struct dl_entry *e,
                                struct dl_layer *layer) {
    const struct number_rule rules[] = {
        {"out", e->out, 1.0, &layer->requested.hidden},
        {"groups", e->groups, 1.0, &layer->groups},
        {"heads", e->attention.heads, 1.0, &layer->attention.heads},
        {"kv_heads", e->attention.kv_heads, 1.0, &layer->attention.kv_heads},
        {"rows", e->rows, 1.0, &layer->rows},
        {"tokens", e->tokens, 1.0, &layer->requested.tokens},
        {"scale", e->scale, 1.0, &layer->requested.scale},
        {"experts", e->mixture.experts, 1.0, &layer->moe.experts},
        {"topk", e->mixture.topk, 1.0, &layer->moe.top_k},
        {"window", e->attention.window, 0.0, &layer->attention.window},
        {"rotary", e->attention.rotary, 1.0, &layer->attention.rotary},
    };
    layer->groups = 1.0;
    return set_extents_of(scope, rules, sizeof rules / sizeof rules[0]);
}

/* What is true or false: an expression that is not 0, or a boolean. */
static enum dl_code set_flags(struct dl_scope *scope, const struct dl_entry *e,
                              struct dl_layer *layer) {
    double causal = 0.0, flash = 0.0, gated = 0.0, router_bias = 0.0, sinks = 0.0;
    double bias = layer->kind == &dl_layer_layernorm ? 1.0 : 0.0;
    const struct number_rule rules[] = {
        {"causal", e->attention.causal, 0.0, &causal},
        {"flash", e->attention.flash, 0.0, &flash},
        {"bias", e->bias, 0.0, &bias},
        {"gated", e->mixture.gated, 0.0, &gated},
        {"sinks", e->attention.sinks, 0.0, &sinks},
        {"router_bias", e->mixture.router_bias, 0.0, &router_bias},
    };
    DL_TRY(set_extents_of(scope, rules, sizeof rules / sizeof rules[0]));
    layer->attention.causal = causal != 0.0;
    layer->attention.flash = flash != 0.0;
    layer->bias = bias != 0.0;
    layer->moe.gated = gated != 0.0;
    layer->attention.sinks = sinks != 0.0;
    layer->moe.router_bias = router_bias != 0.0;
    layer->window.ceil_mode = e->ceil;
    layer->in_place = e->in_place;
    layer->bidirectional = e->bidirectional;
    layer->sparse = e->sparse;
    layer->additive = e->additive;
    return DL_OK;
}

static enum dl_code set_fractions(struct dl_scope *scope, const struct dl_entry *e,
                                  struct dl_layer *layer) {
    if (e->dropout != NULL) {
        enum dl_code code = dl_build_number(scope, e->dropout, &layer->dropout);
        if (code == DL_OK && !(layer->dropout >= 0.0 && layer->dropout < 1.0)) {
            code = dl_fail(scope->b->err, DL_ERR_INPUT,
                           "expected a probability from 0 to below 1, found %g", layer->dropout);
        }
        if (code != DL_OK) return name_key(scope->b->err, "dropout", code);
    }
    if (e->mixture.capacity != NULL) {
        enum dl_code code = dl_build_number(scope, e->mixture.capacity, &layer->moe.capacity);
        if (code == DL_OK && layer->moe.capacity != 0.0 &&
            !(layer->moe.capacity >= 0.1 && layer->moe.capacity <= 1e6)) {
            code = dl_fail(scope->b->err, DL_ERR_INPUT,
                           "expected a factor from 0.1 to 1e6, or 0 to drop no token; found %g",
                           layer->moe.capacity);
        }
        if (code != DL_OK) return name_key(scope->b->err, "capacity", code);
    }
    return DL_OK;
}

static enum dl_code set_geometry(struct dl_scope *scope, const struct dl_entry *e,
                                 struct dl_layer *layer) {
    bool pools =
        (layer->kind->needs & DL_KEY_KERNEL) != 0 && (layer->kind->needs & DL_KEY_OUT) == 0;
    const struct extents_rule rules[] = {
        {DL_KEY_KERNEL, e->kernel, e->kernel_count, 1.0, 1.0, 1.0, false, layer->window.kernel},
        {DL_KEY_STRIDE, e->stride, e->stride_count, 1.0, 1.0, 1.0, false, layer->window.stride},
        {DL_KEY_PAD, e->pad, e->pad_count, 0.0, 0.0, 0.0, true, layer->window.pad},
        {DL_KEY_DILATION, e->dilation, e->dilation_count, 1.0, 1.0, 1.0, false,
         layer->window.dilation},
        {DL_KEY_SIZE, e->size, e->size_count, 1.0, 1.0, 1.0, false, layer->requested.target},
    };
    const bool reshapes = layer->kind->reshapes;
    if (e->size_count > DL_DIMS)
        return dl_layer_fail(scope->b->err, DL_KEY_SIZE, "expected at most %d extents", DL_DIMS);
    layer->requested.target_dims = reshapes ? e->size_count : 0;
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        const bool own = reshapes && rules[i].key == DL_KEY_SIZE;
        DL_TRY(set_extents(scope, &rules[i], own ? e->size_count : layer->in.dims));
    }
    if (pools && e->stride_count == 0)
        memcpy(layer->window.stride, layer->window.kernel, sizeof layer->window.stride);
    DL_TRY(set_numbers(scope, e, layer));
    DL_TRY(set_flags(scope, e, layer));
    return set_fractions(scope, e, layer);
}

/* ---- layers ---- */

static enum dl_code check_keys(struct dl_build *b, const struct dl_entry *e,
                               const struct dl_layer_kind *kind) {
    unsigned keys = dl_entry_keys(e), missing = kind->needs & ~keys,
             extra = keys & ~(kind->needs | kind->takes);
    if (missing != 0) {
        return dl_fail(b->err, DL_ERR_INPUT, "layers of kind %s need '%s'", kind->name,
                       dl_layer_key_names[__builtin_ctz(missing)]);
    }
    if (extra != 0) {
        return dl_layer_fail(b->err, extra & (~extra + 1u), "layers of kind %s have no '%s'",
                             kind->name, dl_layer_key_names[__builtin_ctz(extra)]);
    }
    if (e->with_count > 0)
        return dl_fail(b->err, DL_ERR_INPUT, "'with' belongs to a block, not to a layer");
    return DL_OK;
}

static enum dl_code tie(struct dl_build *b, const struct dl_entry *e, struct dl_layer *layer) {
    layer->tied_to = -1;
    if (e->tied == NULL) return DL_OK;
    int owner = dl_build_find(b, e->tied, -1);
    if (owner >= 0 && b->layers[owner].tied_to >= 0) owner = b->layers[owner].tied_to;
    if (owner < 0 || b->layers[owner].parameter_count == 0 ||
        b->layers[owner].parameters[0].elements != layer->parameters[0].elements) {
        return dl_layer_fail(b->err, DL_KEY_TIED,
                             "expected the full name of an earlier layer with a weight of %.0f "
                             "elements, found '%.80s'",
                             layer->parameters[0].elements, e->tied);
    }
    layer->tied_to = owner;
    const struct dl_layer *first = &b->layers[owner];
    if (first->kind == layer->kind && first->parameter_count == layer->parameter_count) {
        layer->parameter_elements = 0.0; /* the same layer once more: all its tensors */
        layer->parameter_count = 0;
        return DL_OK;
    }
    layer->parameter_elements -= layer->parameters[0].elements;
    layer->parameters++;
    layer->parameter_count--;
    return DL_OK;
}

static enum dl_code check_size(struct dl_build *b, const struct dl_layer *layer) {
    const double most = 9007199254740992.0; /* 2^53 */
    double elements = dl_shape_elements(&layer->out);
    if (elements >= 1.0 && elements <= most && layer->forward_macs <= most) return DL_OK;
    return dl_fail(b->err, DL_ERR_INPUT,
                   "%g output elements and %g multiply-adds a sample; expected at most 2^53",
                   elements, layer->forward_macs);
}

const struct dl_shape *dl_build_shape(const struct dl_build *b, int index) {
    return index < 0 ? &b->input : &b->layers[index].out;
}

static struct dl_layer *new_layer(struct dl_build *b) {
    if (b->layer_count >= DL_WORKLOAD_LAYERS) {
        dl_fail(b->err, DL_ERR_INPUT, "more than %d layers", DL_WORKLOAD_LAYERS);
        return NULL;
    }
    if (b->layer_count == b->layer_capacity) {
        /* few networks have more; memory that no layer needs is not touched */
        const bool more = b->layer_capacity > 0;
        int capacity = more ? 2 * b->layer_capacity : DL_FEW_LAYERS;
        struct dl_layer *grown =
            dl_arena_alloc(more ? b->scratch : b->arena, (size_t)capacity, sizeof *grown);
        if (b->layer_count > 0) memcpy(grown, b->layers, (size_t)b->layer_count * sizeof *grown);
        b->layers = grown;
        b->layer_capacity = capacity;
    }
    struct dl_layer *layer = &b->layers[b->layer_count];
    memset(layer, 0, sizeof *layer);
    return layer;
}

/* What the document holds, among the results. */
static const struct dl_recorded_work *copy_work(struct dl_build *b,
                                                const struct dl_recorded_work *work) {
    struct dl_recorded_work *copy = dl_arena_alloc(b->arena, 1, sizeof *copy);
    const size_t weights = (size_t)work->weight_count, kernels = (size_t)work->kernel_count;
    *copy = *work;
    copy->weights = dl_arena_alloc(b->arena, weights, sizeof *copy->weights);
    copy->kernels = dl_arena_alloc(b->arena, kernels, sizeof *copy->kernels);
    if (kernels > 0) memcpy(copy->kernels, work->kernels, kernels * sizeof *copy->kernels);
    for (size_t i = 0; i < weights; i++) {
        copy->weights[i] = work->weights[i];
        copy->weights[i].key = dl_arena_strdup(b->arena, work->weights[i].key);
        copy->weights[i].text = "";
    }
    return copy;
}

static enum dl_code infer_layer(struct dl_build *b, struct dl_layer *layer,
                                const struct dl_entry *e) {
    const struct dl_shape *shapes = &layer->in;
    if (layer->input_count > 1) {
        struct dl_shape *all = dl_arena_alloc(b->scratch, (size_t)layer->input_count, sizeof *all);
        for (int i = 0; i < layer->input_count; i++) all[i] = *dl_build_shape(b, layer->inputs[i]);
        shapes = all;
    }
    for (int i = 0; i < layer->input_count; i++)
        layer->in_elements += dl_shape_elements(&shapes[i]);
    DL_TRY(layer->kind->infer(layer, shapes, b->arena, b->err));
    DL_TRY(tie(b, e, layer));
    return check_size(b, layer);
}

enum dl_code dl_build_layer(struct dl_build *b, const struct dl_frame *frame, int at, double index,
                            const int *inputs, int input_count, int *out) {
    const struct dl_entry *e = &frame->entries[at];
    const struct dl_layer_kind *kind = dl_layer_kind_find(e->kind);
    if (kind == NULL) {
        const char *names[64];
        size_t count = 0;
        for (; count < 63 && dl_layer_kinds[count] != NULL; count++)
            names[count] = dl_layer_kinds[count]->name;
        names[count] = NULL;
        const char *near = dl_suggest(e->kind, names);
        dl_fail(b->err, DL_ERR_INPUT, "no kind of layer '%.40s'%s%s%s", e->kind,
                near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
        return dl_build_fault(b, frame, at, "kind");
    }
    if (check_keys(b, e, kind) != DL_OK) return dl_build_fault(b, frame, at, b->err->key);
    if (input_count < kind->inputs_min || input_count > kind->inputs_max) {
        dl_fail(b->err, DL_ERR_INPUT, "layers of kind %s have %d to %d inputs, found %d",
                kind->name, kind->inputs_min, kind->inputs_max, input_count);
        return dl_build_fault(b, frame, at, "from");
    }
    struct dl_layer *layer = new_layer(b);
    if (layer == NULL) return dl_build_fault(b, frame, at, "repeat");
    int *copied = dl_arena_alloc(b->arena, (size_t)input_count, sizeof *copied);
    memcpy(copied, inputs, (size_t)input_count * sizeof *copied);
    layer->kind = kind;
    layer->inputs = copied;
    layer->input_count = input_count;
    layer->in = *dl_build_shape(b, inputs[0]);
    if (dl_build_name(b, frame, e, index, &layer->name) != DL_OK)
        return dl_build_fault(b, frame, at, "name");
    struct dl_scope scope = {
        .b = b, .frame = frame, .index = index, .in_channels = layer->in.channels};
    if (e->has_work) layer->work = copy_work(b, &e->work);
    if (set_geometry(&scope, e, layer) != DL_OK) return dl_build_fault(b, frame, at, b->err->key);
    if (infer_layer(b, layer, e) != DL_OK) return dl_build_fault(b, frame, at, b->err->key);
    if (dl_build_define(b, layer->name, b->layer_count) != DL_OK)
        return dl_build_fault(b, frame, at, "name");
    *out = b->layer_count++;
    return DL_OK;
}
