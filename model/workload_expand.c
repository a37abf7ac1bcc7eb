/* workload_expand.c - from entries and blocks to a flat list of layers: names, expressions, shapes.
 *
 * Blocks are expanded depth first. Depth, visited entries and layers are bounded, and a block that uses itself is an
 * error, so that any document ends.
 */
#include "model/workload_build.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "model/workload_expr.h"

/* The list being expanded. */
struct frame {
    const struct frame *up;
    const struct dl_block *block;     /* NULL: the top list */
    int doc, block_index;
    const struct dl_entry *entries; int entry_count;
    const char *prefix;               /* "layer1.0." */
    const char *const *argument_names; const double *arguments; int argument_count;
    double index;                     /* of the repetition that this frame is */
    const int *inputs; int input_count;
    int depth;
};

/* What names in an expression of one entry mean. */
struct scope {
    struct dl_build *b;
    const struct frame *frame;
    double index;
    double in_channels;               /* NAN: not known here */
};

enum { PATH_BYTES = 256, NAME_MAX_BYTES = 512 };

static enum dl_code no_memory(struct dl_build *b)
{
    return dl_fail(b->err, DL_ERR_SYSTEM, "out of memory while building a workload");
}

/* ---- places ---- */

static enum dl_code fault(struct dl_build *b, const struct frame *frame, int entry, const char *key)
{
    char path[PATH_BYTES], dotted[80] = "";
    if (key != NULL && key[0] != '\0') snprintf(dotted, sizeof dotted, ".%.64s", key);
    if (frame->block == NULL) snprintf(path, sizeof path, "layers[%d]%s", entry, dotted);
    else snprintf(path, sizeof path, "blocks[%d].layers[%d]%s", frame->block_index, entry, dotted);
    return dl_build_at(b, frame->doc, path);
}

/* ---- names ---- */

static size_t hash_name(const char *name)
{
    uint64_t hash = 1469598103934665603u; /* FNV-1a, 64 bit */
    for (; *name != '\0'; name++) hash = (hash ^ (unsigned char)*name) * 1099511628211u;
    return (size_t)hash;
}

static struct dl_build_symbol *symbol_slot(const struct dl_build *b, const char *name)
{
    size_t mask = b->symbol_capacity - 1, at = hash_name(name) & mask;
    while (b->symbols[at].name != NULL && strcmp(b->symbols[at].name, name) != 0) at = (at + 1) & mask;
    return &b->symbols[at];
}

static enum dl_code grow_symbols(struct dl_build *b)
{
    struct dl_build_symbol *old = b->symbols;
    size_t old_capacity = b->symbol_capacity, capacity = old_capacity == 0 ? 256 : 2 * old_capacity;
    b->symbols = dl_arena_alloc(b->scratch, capacity, sizeof *b->symbols);
    if (b->symbols == NULL) return no_memory(b);
    b->symbol_capacity = capacity;
    for (size_t i = 0; i < old_capacity; i++) {
        if (old[i].name != NULL) *symbol_slot(b, old[i].name) = old[i];
    }
    return DL_OK;
}

/* `name` must outlive the building. again: it may be there already (a block's name means its last repetition). */
static enum dl_code define(struct dl_build *b, const char *name, int layer, bool again)
{
    if (2 * (b->symbol_count + 1) > b->symbol_capacity) DL_TRY(grow_symbols(b));
    struct dl_build_symbol *slot = symbol_slot(b, name);
    if (slot->name != NULL && !again) return dl_fail(b->err, DL_ERR_INPUT, "the name '%.200s' is taken; names must differ", name);
    if (slot->name == NULL) b->symbol_count++;
    slot->name = name;
    slot->layer = layer;
    return DL_OK;
}

static bool defined(const struct dl_build *b, const char *name)
{
    return b->symbol_capacity > 0 && symbol_slot(b, name)->name != NULL;
}

/* "in", "in2", ...: number of a block's input, from 0; -1: another name. */
static int input_number(const char *name)
{
    if (strncmp(name, "in", 2) != 0) return -1;
    if (name[2] == '\0') return 0;
    int number = 0;
    for (const char *c = name + 2; *c != '\0'; c++) {
        if (*c < '0' || *c > '9' || number > 9999) return -1;
        number = 10 * number + (*c - '0');
    }
    return number >= 2 ? number - 1 : -1;
}

static enum dl_code resolve(struct dl_build *b, const struct frame *frame, const char *name, int *out)
{
    char full[NAME_MAX_BYTES];
    if (frame->block == NULL && strcmp(name, "input") == 0) {
        *out = -1;
        return DL_OK;
    }
    int number = frame->block == NULL ? -1 : input_number(name);
    if (number >= 0) {
        if (number >= frame->input_count) {
            return dl_fail(b->err, DL_ERR_INPUT, "the block has %d input(s) here, there is no '%.80s'",
                           frame->input_count, name);
        }
        *out = frame->inputs[number];
        return DL_OK;
    }
    int length = snprintf(full, sizeof full, "%s%s", frame->prefix, name);
    if (length > 0 && (size_t)length < sizeof full && b->symbol_capacity > 0) {
        const struct dl_build_symbol *slot = symbol_slot(b, full);
        if (slot->name != NULL) {
            *out = slot->layer;
            return DL_OK;
        }
    }
    return dl_fail(b->err, DL_ERR_INPUT, "'%.80s' is no earlier layer or block of this list", name);
}

/* ---- expressions ---- */

static enum dl_code find_name(void *context, const char *name, double *value_out, struct dl_err *err)
{
    const struct scope *scope = context;
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
            *value_out = scope->frame->arguments[i];
            return DL_OK;
        }
    }
    return dl_build_value(scope->b, name, value_out, err);
}

static enum dl_code evaluate(struct scope *scope, const char *text, double *out)
{
    struct dl_expr_names names = {.find = find_name, .context = scope};
    return dl_expr_eval(text, &names, out, scope->b->err);
}

/* A whole number from min to 2^53, or with half: a multiple of 0.5. */
static enum dl_code evaluate_extent(struct scope *scope, const char *text, double min, bool half, double *out)
{
    DL_TRY(evaluate(scope, text, out));
    double scaled = half ? 2.0 * *out : *out;
    if (scaled != floor(scaled) || *out < min || *out > 9007199254740992.0) {
        return dl_fail(scope->b->err, DL_ERR_INPUT, "expected a %s of at least %.0f, found %.10g from \"%.80s\"",
                       half ? "multiple of 0.5" : "whole number", min, *out, text);
    }
    return DL_OK;
}

struct extents_rule {
    unsigned key;
    const char *const *texts; int count;
    double min, fallback, unused;     /* unused: value in the dimensions that the input does not have */
    bool half;
    double *out;
};

static enum dl_code set_extents(struct scope *scope, const struct extents_rule *rule, int dims)
{
    for (int i = 0; i < DL_DIMS; i++) rule->out[i] = i < DL_DIMS - dims ? rule->unused : rule->fallback;
    if (rule->count == 0) return DL_OK;
    if (rule->count != 1 && rule->count != dims) {
        return dl_layer_fail(scope->b->err, rule->key, "expected 1 extent or %d (the input's dimensions), found %d", dims,
                             rule->count);
    }
    double value = 0.0;
    for (int i = 0; i < dims; i++) {
        if (i < rule->count) {
            enum dl_code code = evaluate_extent(scope, rule->texts[i], rule->min, rule->half, &value);
            if (code != DL_OK) {
                snprintf(scope->b->err->key, sizeof scope->b->err->key, "%s", dl_layer_key_names[__builtin_ctz(rule->key)]);
                return code;
            }
        }
        rule->out[DL_DIMS - dims + i] = value;
    }
    return DL_OK;
}

static enum dl_code set_numbers(struct scope *scope, const struct dl_entry *e, struct dl_layer *layer)
{
    double causal = 0.0, flash = 0.0;
    const struct {
        const char *key, *text;
        double min;
        double *out;
    } numbers[] = {
        {"out", e->out, 1.0, &layer->hidden},       {"groups", e->groups, 1.0, &layer->groups},
        {"heads", e->heads, 1.0, &layer->heads},    {"kv_heads", e->kv_heads, 1.0, &layer->kv_heads},
        {"rows", e->rows, 1.0, &layer->rows},       {"tokens", e->tokens, 1.0, &layer->tokens},
        {"scale", e->scale, 1.0, &layer->scale},    {"causal", e->causal, 0.0, &causal},
        {"flash", e->flash, 0.0, &flash},
    };
    layer->groups = 1.0;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (numbers[i].text == NULL) continue;
        enum dl_code code = evaluate_extent(scope, numbers[i].text, numbers[i].min, false, numbers[i].out);
        if (code != DL_OK) {
            snprintf(scope->b->err->key, sizeof scope->b->err->key, "%s", numbers[i].key);
            return code;
        }
    }
    if (e->dropout != NULL) {
        enum dl_code code = evaluate(scope, e->dropout, &layer->dropout);
        if (code == DL_OK && !(layer->dropout >= 0.0 && layer->dropout < 1.0)) {
            code = dl_fail(scope->b->err, DL_ERR_INPUT, "expected a probability from 0 to below 1, found %g", layer->dropout);
        }
        if (code != DL_OK) {
            snprintf(scope->b->err->key, sizeof scope->b->err->key, "dropout");
            return code;
        }
    }
    layer->causal = causal != 0.0;
    layer->flash = flash != 0.0;
    layer->bias = e->bias;
    layer->ceil_mode = e->ceil;
    layer->in_place = e->in_place;
    layer->bidirectional = e->bidirectional;
    layer->sparse = e->sparse;
    layer->additive = e->additive;
    return DL_OK;
}

static enum dl_code set_geometry(struct scope *scope, const struct dl_entry *e, struct dl_layer *layer)
{
    bool pools = (layer->kind->needs & DL_KEY_KERNEL) != 0 && (layer->kind->needs & DL_KEY_OUT) == 0;
    const struct extents_rule rules[] = {
        {DL_KEY_KERNEL, e->kernel, e->kernel_count, 1.0, 1.0, 1.0, false, layer->kernel},
        {DL_KEY_STRIDE, e->stride, e->stride_count, 1.0, 1.0, 1.0, false, layer->stride},
        {DL_KEY_PAD, e->pad, e->pad_count, 0.0, 0.0, 0.0, true, layer->pad},
        {DL_KEY_DILATION, e->dilation, e->dilation_count, 1.0, 1.0, 1.0, false, layer->dilation},
        {DL_KEY_SIZE, e->size, e->size_count, 1.0, 1.0, 1.0, false, layer->target},
    };
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) DL_TRY(set_extents(scope, &rules[i], layer->in.dims));
    if (pools && e->stride_count == 0) memcpy(layer->stride, layer->kernel, sizeof layer->stride);
    return set_numbers(scope, e, layer);
}

/* ---- layers ---- */

static enum dl_code check_keys(struct dl_build *b, const struct dl_entry *e, const struct dl_layer_kind *kind)
{
    unsigned keys = dl_entry_keys(e), missing = kind->needs & ~keys, extra = keys & ~(kind->needs | kind->takes);
    if (missing != 0) {
        return dl_fail(b->err, DL_ERR_INPUT, "a %s needs '%s'", kind->name, dl_layer_key_names[__builtin_ctz(missing)]);
    }
    if (extra != 0) {
        return dl_layer_fail(b->err, extra & (~extra + 1u), "a %s has no '%s'", kind->name,
                             dl_layer_key_names[__builtin_ctz(extra)]);
    }
    if (e->with_count > 0) return dl_fail(b->err, DL_ERR_INPUT, "'with' goes with a block, not with a layer");
    return DL_OK;
}

static enum dl_code tie(struct dl_build *b, const struct dl_entry *e, struct dl_layer *layer)
{
    layer->tied_to = -1;
    if (e->tied == NULL) return DL_OK;
    int owner = defined(b, e->tied) ? symbol_slot(b, e->tied)->layer : -1;
    if (owner >= 0 && b->layers[owner].tied_to >= 0) owner = b->layers[owner].tied_to;
    if (owner < 0 || b->layers[owner].parameter_count == 0 ||
        b->layers[owner].parameters[0].elements != layer->parameters[0].elements) {
        return dl_layer_fail(b->err, DL_KEY_TIED, "expected the full name of an earlier layer with a weight of %.0f "
                             "elements, found '%.80s'", layer->parameters[0].elements, e->tied);
    }
    layer->tied_to = owner;
    layer->parameter_elements -= layer->parameters[0].elements;
    layer->parameters++;
    layer->parameter_count--;
    return DL_OK;
}

static enum dl_code check_size(struct dl_build *b, const struct dl_layer *layer)
{
    const double most = 9007199254740992.0; /* 2^53 */
    double elements = dl_shape_elements(&layer->out);
    if (elements >= 1.0 && elements <= most && layer->forward_macs <= most) return DL_OK;
    return dl_fail(b->err, DL_ERR_INPUT, "%g output elements and %g multiply-adds a sample; expected at most 2^53", elements,
                   layer->forward_macs);
}

static const struct dl_shape *shape_of(const struct dl_build *b, int index)
{
    return index < 0 ? &b->input : &b->layers[index].out;
}

static enum dl_code new_layer(struct dl_build *b, struct dl_layer **out)
{
    if (b->layer_count >= DL_WORKLOAD_LAYERS) {
        return dl_fail(b->err, DL_ERR_INPUT, "more than %d layers", DL_WORKLOAD_LAYERS);
    }
    if (b->layer_count == b->layer_capacity) {
        int capacity = b->layer_capacity == 0 ? 64 : 2 * b->layer_capacity;
        struct dl_layer *grown = dl_arena_alloc(b->scratch, (size_t)capacity, sizeof *grown);
        if (grown == NULL) return no_memory(b);
        if (b->layer_count > 0) memcpy(grown, b->layers, (size_t)b->layer_count * sizeof *grown);
        b->layers = grown;
        b->layer_capacity = capacity;
    }
    *out = &b->layers[b->layer_count];
    memset(*out, 0, sizeof **out);
    return DL_OK;
}

/* Full name of an entry in its frame; without one of its own the kind, numbered from the second on. */
static enum dl_code full_name(struct dl_build *b, const struct frame *frame, const struct dl_entry *e, double index,
                              const char **out)
{
    const char *own = e->name != NULL ? e->name : e->kind != NULL ? e->kind : e->block;
    char suffix[24] = "", text[NAME_MAX_BYTES];
    if (own[0] == '\0') return dl_fail(b->err, DL_ERR_INPUT, "a name must not be empty");
    if (e->repeat != NULL) snprintf(suffix, sizeof suffix, ".%.0f", index);
    int length = snprintf(text, sizeof text, "%s%s%s", frame->prefix, own, suffix);
    for (int number = 2; e->name == NULL && defined(b, text); number++) {
        length = snprintf(text, sizeof text, "%s%s%d%s", frame->prefix, own, number, suffix);
    }
    if (length < 0 || (size_t)length >= sizeof text) return dl_fail(b->err, DL_ERR_INPUT, "a name has more than %d letters", NAME_MAX_BYTES - 1);
    *out = dl_arena_strdup(b->arena, text);
    return *out == NULL ? no_memory(b) : DL_OK;
}

static enum dl_code infer_layer(struct dl_build *b, struct dl_layer *layer, const struct dl_entry *e)
{
    const struct dl_shape *shapes = &layer->in;
    if (layer->input_count > 1) {
        struct dl_shape *all = dl_arena_alloc(b->scratch, (size_t)layer->input_count, sizeof *all);
        if (all == NULL) return no_memory(b);
        for (int i = 0; i < layer->input_count; i++) all[i] = *shape_of(b, layer->inputs[i]);
        shapes = all;
    }
    for (int i = 0; i < layer->input_count; i++) layer->in_elements += dl_shape_elements(&shapes[i]);
    DL_TRY(layer->kind->infer(layer, shapes, b->arena, b->err));
    DL_TRY(tie(b, e, layer));
    return check_size(b, layer);
}

static enum dl_code add_layer(struct dl_build *b, const struct frame *frame, int at, double index, const int *inputs,
                              int input_count, int *out)
{
    const struct dl_entry *e = &frame->entries[at];
    struct dl_layer *layer;
    const struct dl_layer_kind *kind = dl_layer_kind_find(e->kind);
    if (kind == NULL) {
        const char *names[64];
        size_t count = 0;
        for (; dl_layer_kinds[count] != NULL && count < 63; count++) names[count] = dl_layer_kinds[count]->name;
        names[count] = NULL;
        const char *near = dl_suggest(e->kind, names);
        dl_fail(b->err, DL_ERR_INPUT, "no kind of layer '%.40s'%s%s%s", e->kind, near ? "; did you mean '" : "",
                near ? near : "", near ? "'?" : "");
        return fault(b, frame, at, "kind");
    }
    if (check_keys(b, e, kind) != DL_OK) return fault(b, frame, at, b->err->key);
    if (input_count < kind->inputs_min || input_count > kind->inputs_max) {
        dl_fail(b->err, DL_ERR_INPUT, "a %s has %d to %d inputs, found %d", kind->name, kind->inputs_min,
                kind->inputs_max, input_count);
        return fault(b, frame, at, "from");
    }
    if (new_layer(b, &layer) != DL_OK) return fault(b, frame, at, "repeat");
    int *copied = dl_arena_alloc(b->arena, (size_t)input_count, sizeof *copied);
    if (copied == NULL) return no_memory(b);
    memcpy(copied, inputs, (size_t)input_count * sizeof *copied);
    layer->kind = kind;
    layer->inputs = copied;
    layer->input_count = input_count;
    layer->in = *shape_of(b, inputs[0]);
    if (full_name(b, frame, e, index, &layer->name) != DL_OK) return fault(b, frame, at, "name");
    struct scope scope = {.b = b, .frame = frame, .index = index, .in_channels = layer->in.channels};
    if (set_geometry(&scope, e, layer) != DL_OK) return fault(b, frame, at, b->err->key);
    if (infer_layer(b, layer, e) != DL_OK) return fault(b, frame, at, b->err->key);
    if (define(b, layer->name, b->layer_count, false) != DL_OK) return fault(b, frame, at, "name");
    *out = b->layer_count++;
    return DL_OK;
}

/* ---- blocks ---- */

static enum dl_code expand(struct dl_build *b, const struct frame *frame, int *out);

static const struct dl_block *find_block(const struct dl_build *b, const char *name, int *doc, int *index)
{
    for (*doc = 0; *doc < b->doc_count; (*doc)++) { /* a nearer document may redefine a block */
        for (*index = 0; *index < b->files[*doc].block_count; (*index)++) {
            if (strcmp(b->files[*doc].blocks[*index].name, name) == 0) return &b->files[*doc].blocks[*index];
        }
    }
    return NULL;
}

static const char *map_text(const struct dl_map_entry *entries, int count, const char *key)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(entries[i].key, key) == 0) return entries[i].text;
    }
    return NULL;
}

/* The value of each argument: from `with` in the caller's scope, else from the block's defaults. */
static enum dl_code pass_arguments(struct scope *scope, const struct dl_entry *e, const struct dl_block *block, double *out)
{
    struct dl_build *b = scope->b;
    for (int i = 0; i < e->with_count; i++) {
        bool known = false;
        for (int j = 0; j < block->argument_count; j++) known |= strcmp(block->arguments[j], e->with[i].key) == 0;
        if (!known) {
            return dl_fail(b->err, DL_ERR_INPUT, "block '%.60s' has no argument '%.60s'", block->name, e->with[i].key);
        }
    }
    for (int i = 0; i < block->argument_count; i++) {
        const char *text = map_text(e->with, e->with_count, block->arguments[i]);
        if (text == NULL) text = map_text(block->defaults, block->default_count, block->arguments[i]);
        if (text == NULL) {
            return dl_fail(b->err, DL_ERR_INPUT, "block '%.60s' needs the argument '%.60s'", block->name, block->arguments[i]);
        }
        DL_TRY(evaluate(scope, text, &out[i]));
    }
    return DL_OK;
}

static enum dl_code check_block_entry(struct dl_build *b, const struct frame *frame, const struct dl_entry *e,
                                      const struct dl_block *block)
{
    unsigned keys = dl_entry_keys(e);
    if (block == NULL) return dl_fail(b->err, DL_ERR_INPUT, "no block '%.60s' in this file", e->block);
    if (keys != 0) {
        return dl_fail(b->err, DL_ERR_INPUT, "'%s' goes with a layer; arguments of a block go into 'with'",
                       dl_layer_key_names[__builtin_ctz(keys)]);
    }
    for (const struct frame *f = frame; f != NULL; f = f->up) {
        if (f->block == block) return dl_fail(b->err, DL_ERR_INPUT, "block '%.60s' uses itself", block->name);
    }
    if (frame->depth >= DL_WORKLOAD_DEPTH) {
        return dl_fail(b->err, DL_ERR_INPUT, "blocks are nested deeper than %d", DL_WORKLOAD_DEPTH);
    }
    return DL_OK;
}

static enum dl_code add_block(struct dl_build *b, const struct frame *frame, int at, double index, const int *inputs,
                              int input_count, int *out)
{
    const struct dl_entry *e = &frame->entries[at];
    struct frame inner = {.up = frame, .index = index, .inputs = inputs, .input_count = input_count, .depth = frame->depth + 1};
    const char *name;
    inner.block = find_block(b, e->block, &inner.doc, &inner.block_index);
    if (check_block_entry(b, frame, e, inner.block) != DL_OK) return fault(b, frame, at, "block");
    if (full_name(b, frame, e, index, &name) != DL_OK) return fault(b, frame, at, "name");
    double *values = dl_arena_alloc(b->scratch, (size_t)inner.block->argument_count, sizeof *values);
    inner.prefix = dl_arena_printf(b->scratch, "%s.", name);
    if (values == NULL || inner.prefix == NULL) return no_memory(b);
    struct scope scope = {.b = b, .frame = frame, .index = index, .in_channels = shape_of(b, inputs[0])->channels};
    if (pass_arguments(&scope, e, inner.block, values) != DL_OK) return fault(b, frame, at, "with");
    inner.arguments = values;
    inner.argument_names = inner.block->arguments;
    inner.argument_count = inner.block->argument_count;
    inner.entries = inner.block->layers;
    inner.entry_count = inner.block->layer_count;
    DL_TRY(expand(b, &inner, out));
    if (define(b, name, *out, false) != DL_OK) return fault(b, frame, at, "name");
    return DL_OK;
}

/* ---- lists ---- */

static enum dl_code resolve_inputs(struct dl_build *b, const struct frame *frame, int at, int previous, int **out,
                                   int *count)
{
    const struct dl_entry *e = &frame->entries[at];
    *count = e->from_count > 0 ? e->from_count : 1;
    *out = dl_arena_alloc(b->scratch, (size_t)*count, sizeof **out);
    if (*out == NULL) return no_memory(b);
    (*out)[0] = previous;
    for (int i = 0; i < e->from_count; i++) {
        if (resolve(b, frame, e->from[i], &(*out)[i]) != DL_OK) return fault(b, frame, at, "from");
    }
    return DL_OK;
}

/* One entry as often as it repeats; *previous: output of the entry before, then of this one. */
static enum dl_code expand_entry(struct dl_build *b, const struct frame *frame, int at, int *previous)
{
    const struct dl_entry *e = &frame->entries[at];
    struct scope scope = {.b = b, .frame = frame, .index = frame->index, .in_channels = shape_of(b, *previous)->channels};
    double wanted = 1.0, times = 1.0;
    int *inputs = NULL, input_count = 0;
    if (e->when != NULL && evaluate(&scope, e->when, &wanted) != DL_OK) return fault(b, frame, at, "when");
    if (wanted == 0.0) return DL_OK;
    if ((e->kind == NULL) == (e->block == NULL)) {
        dl_fail(b->err, DL_ERR_INPUT, "expected either a 'kind' or a 'block'");
        return fault(b, frame, at, NULL);
    }
    if (e->repeat != NULL && evaluate_extent(&scope, e->repeat, 0.0, false, &times) != DL_OK) return fault(b, frame, at, "repeat");
    if (times == 0.0) return DL_OK;
    DL_TRY(resolve_inputs(b, frame, at, *previous, &inputs, &input_count));
    for (double i = 0.0; i < times; i += 1.0) {
        double index = e->repeat != NULL ? i : frame->index;
        if (++b->steps > DL_WORKLOAD_STEPS) {
            dl_fail(b->err, DL_ERR_INPUT, "the blocks expand to more than %d entries", DL_WORKLOAD_STEPS);
            return fault(b, frame, at, "repeat");
        }
        if (e->kind != NULL) DL_TRY(add_layer(b, frame, at, index, inputs, input_count, previous));
        else DL_TRY(add_block(b, frame, at, index, inputs, input_count, previous));
        inputs[0] = *previous;
    }
    if (e->repeat != NULL && e->name != NULL) { /* the bare name: the last repetition */
        const char *name = dl_arena_printf(b->scratch, "%s%s", frame->prefix, e->name);
        if (name == NULL) return no_memory(b);
        if (define(b, name, *previous, false) != DL_OK) return fault(b, frame, at, "name");
    }
    return DL_OK;
}

static enum dl_code expand(struct dl_build *b, const struct frame *frame, int *out)
{
    int previous = frame->input_count > 0 ? frame->inputs[0] : -1;
    for (int i = 0; i < frame->entry_count; i++) {
        b->steps++;
        DL_TRY(expand_entry(b, frame, i, &previous));
    }
    *out = previous;
    return DL_OK;
}

enum dl_code dl_build_expand(struct dl_build *b)
{
    static const int from_input[] = {-1};
    int last, doc = dl_build_layers_doc(b);
    struct frame top = {.doc = doc, .prefix = "", .inputs = from_input, .input_count = 1};
    top.entries = b->files[doc].layers;
    top.entry_count = b->files[doc].layer_count;
    return expand(b, &top, &last);
}
