/* workload_expand.c - expands entries and blocks to a flat list of layers: names, repeats,
 * arguments.
 *
 * Expansion is depth first. Depth, visited entries and layers are bounded, and a block that uses
 * itself is an error, so that every document ends. */
#include "model/workload/workload_build.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { PATH_BYTES = 256, NAME_MAX_BYTES = 512, NOWHERE = -2 };

/* ---- places ---- */

enum dl_code dl_build_fault(struct dl_build *b, const struct dl_frame *frame, int entry,
                            const char *key) {
    char path[PATH_BYTES], dotted[80] = "";
    if (key != NULL && key[0] != '\0') snprintf(dotted, sizeof dotted, ".%.64s", key);
    if (frame->block == NULL)
        snprintf(path, sizeof path, "layers[%d]%s", entry, dotted);
    else
        snprintf(path, sizeof path, "blocks[%d].layers[%d]%s", frame->block_index, entry, dotted);
    return dl_build_at(b, frame->doc, path);
}

/* ---- names ---- */

static size_t hash_name(const char *name) {
    uint64_t hash = 1469598103934665603u; /* FNV-1a, 64 bit */
    for (; *name != '\0'; name++) hash = (hash ^ (unsigned char)*name) * 1099511628211u;
    return (size_t)hash;
}

static struct dl_build_symbol *symbol_slot(const struct dl_build *b, const char *name) {
    size_t mask = b->symbol_capacity - 1, at = hash_name(name) & mask;
    while (b->symbols[at].name != NULL && strcmp(b->symbols[at].name, name) != 0)
        at = (at + 1) & mask;
    return &b->symbols[at];
}

static enum dl_code grow_symbols(struct dl_build *b) {
    struct dl_build_symbol *old = b->symbols;
    size_t old_capacity = b->symbol_capacity, capacity = old_capacity == 0 ? 256 : 2 * old_capacity;
    b->symbols = dl_arena_alloc(b->scratch, capacity, sizeof *b->symbols);
    b->symbol_capacity = capacity;
    for (size_t i = 0; i < old_capacity; i++) {
        if (old[i].name != NULL) *symbol_slot(b, old[i].name) = old[i];
    }
    return DL_OK;
}

enum dl_code dl_build_define(struct dl_build *b, const char *name, int layer) {
    if (2 * (b->symbol_count + 1) > b->symbol_capacity) DL_TRY(grow_symbols(b));
    struct dl_build_symbol *slot = symbol_slot(b, name);
    if (slot->name != NULL)
        return dl_fail(b->err, DL_ERR_INPUT, "the name '%.200s' is taken; names must differ", name);
    b->symbol_count++;
    slot->name = name;
    slot->layer = layer;
    return DL_OK;
}

int dl_build_find(const struct dl_build *b, const char *name, int otherwise) {
    if (b->symbol_capacity == 0) return otherwise;
    const struct dl_build_symbol *slot = symbol_slot(b, name);
    return slot->name != NULL ? slot->layer : otherwise;
}

/* The parts as one text, cut to the room for it; returns the length of all. */
static size_t join(char out[NAME_MAX_BYTES], const char *first, const char *second,
                   const char *third) {
    const char *const parts[] = {first, second, third};
    size_t length = 0;
    for (int i = 0; i < 3; i++) {
        const size_t bytes = strlen(parts[i]);
        if (length + bytes < NAME_MAX_BYTES) memcpy(out + length, parts[i], bytes);
        length += bytes;
    }
    out[length < NAME_MAX_BYTES ? length : 0] = '\0';
    return length;
}

/* Number of a block's input by its name "in", "in2", ..., from 0; -1: another name. */
static int input_number(const char *name) {
    if (strncmp(name, "in", 2) != 0) return -1;
    if (name[2] == '\0') return 0;
    int number = 0;
    for (const char *c = name + 2; *c != '\0'; c++) {
        if (*c < '0' || *c > '9' || number > 9999) return -1;
        number = 10 * number + (*c - '0');
    }
    return number >= 2 ? number - 1 : -1;
}

static enum dl_code resolve(struct dl_build *b, const struct dl_frame *frame, const char *name,
                            int *out) {
    char full[NAME_MAX_BYTES];
    if (frame->block == NULL && strcmp(name, "input") == 0) {
        *out = -1;
        return DL_OK;
    }
    int number = frame->block == NULL ? -1 : input_number(name);
    if (number >= 0) {
        if (number >= frame->input_count) {
            return dl_fail(b->err, DL_ERR_INPUT, "the block has %d input(s), there is no '%.80s'",
                           frame->input_count, name);
        }
        *out = frame->inputs[number];
        return DL_OK;
    }
    const size_t length = join(full, frame->prefix, name, "");
    *out = length > 0 && length < sizeof full ? dl_build_find(b, full, NOWHERE) : NOWHERE;
    if (*out != NOWHERE) return DL_OK;
    return dl_fail(b->err, DL_ERR_INPUT,
                   "expected an earlier layer or block of this list, found '%.80s'", name);
}

/* Full name of an entry in its frame; without its own name the kind, numbered from the second on.
 */
enum dl_code dl_build_name(struct dl_build *b, const struct dl_frame *frame,
                           const struct dl_entry *e, double index, const char **out) {
    const char *own = e->name != NULL ? e->name : e->kind != NULL ? e->kind : e->block;
    char suffix[24] = "", text[NAME_MAX_BYTES];
    if (own[0] == '\0') return dl_fail(b->err, DL_ERR_INPUT, "a name must not be empty");
    if (e->repeat != NULL) snprintf(suffix, sizeof suffix, ".%.0f", index);
    size_t length = join(text, frame->prefix, own, suffix);
    for (int number = 2; e->name == NULL && dl_build_find(b, text, NOWHERE) != NOWHERE; number++) {
        const int numbered =
            snprintf(text, sizeof text, "%s%s%d%s", frame->prefix, own, number, suffix);
        length = numbered < 0 ? sizeof text : (size_t)numbered;
    }
    if (length >= sizeof text) {
        return dl_fail(b->err, DL_ERR_INPUT, "expected a name of at most %d letters",
                       NAME_MAX_BYTES - 1);
    }
    *out = dl_arena_strdup(b->arena, text);
    return DL_OK;
}

/* ---- blocks ---- */

static enum dl_code expand(struct dl_build *b, const struct dl_frame *frame, int *out);

static const struct dl_block *find_block(const struct dl_build *b, const char *name, int *doc,
                                         int *index) {
    for (*doc = 0; *doc < b->doc_count; (*doc)++) { /* a nearer document may redefine a block */
        for (*index = 0; *index < b->files[*doc].block_count; (*index)++) {
            if (strcmp(b->files[*doc].blocks[*index].name, name) == 0)
                return &b->files[*doc].blocks[*index];
        }
    }
    return NULL;
}

static const char *map_text(const struct dl_map_entry *entries, int count, const char *key) {
    for (int i = 0; i < count; i++) {
        if (strcmp(entries[i].key, key) == 0) return entries[i].text;
    }
    return NULL;
}

/* The value of each argument: from `with` in the caller's scope, else from the block's defaults. */
static enum dl_code pass_arguments(struct dl_scope *scope, const struct dl_entry *e,
                                   const struct dl_block *block, double *out) {
    struct dl_build *b = scope->b;
    for (int i = 0; i < e->with_count; i++) {
        bool known = false;
        for (int j = 0; j < block->argument_count; j++)
            known |= strcmp(block->arguments[j], e->with[i].key) == 0;
        if (!known) {
            return dl_fail(b->err, DL_ERR_INPUT, "block '%.60s' has no argument '%.60s'",
                           block->name, e->with[i].key);
        }
    }
    for (int i = 0; i < block->argument_count; i++) {
        const char *text = map_text(e->with, e->with_count, block->arguments[i]);
        if (text == NULL)
            text = map_text(block->defaults, block->default_count, block->arguments[i]);
        if (text == NULL) {
            return dl_fail(b->err, DL_ERR_INPUT, "block '%.60s' needs the argument '%.60s'",
                           block->name, block->arguments[i]);
        }
        DL_TRY(dl_build_number(scope, text, &out[i]));
    }
    return DL_OK;
}

static enum dl_code check_block_entry(struct dl_build *b, const struct dl_frame *frame,
                                      const struct dl_entry *e, const struct dl_block *block) {
    unsigned keys = dl_entry_keys(e);
    if (block == NULL)
        return dl_fail(b->err, DL_ERR_INPUT, "no block '%.60s' in this file", e->block);
    if (keys != 0) {
        return dl_fail(b->err, DL_ERR_INPUT,
                       "'%s' belongs to a layer; arguments of a block belong in 'with'",
                       dl_layer_key_names[__builtin_ctz(keys)]);
    }
    for (const struct dl_frame *f = frame; f != NULL; f = f->up) {
        if (f->block == block)
            return dl_fail(b->err, DL_ERR_INPUT, "block '%.60s' uses itself", block->name);
    }
    if (frame->depth >= DL_WORKLOAD_DEPTH) {
        return dl_fail(b->err, DL_ERR_INPUT, "blocks are nested deeper than %d", DL_WORKLOAD_DEPTH);
    }
    return DL_OK;
}

static enum dl_code add_block(struct dl_build *b, const struct dl_frame *frame, int at,
                              double index, const int *inputs, int input_count, int *out) {
    const struct dl_entry *e = &frame->entries[at];
    struct dl_frame inner = {
        .up = frame, .index = index, .inputs = inputs, .input_count = input_count};
    const char *name = "";
    inner.depth = frame->depth + 1;
    inner.block = find_block(b, e->block, &inner.doc, &inner.block_index);
    if (check_block_entry(b, frame, e, inner.block) != DL_OK)
        return dl_build_fault(b, frame, at, "block");
    if (dl_build_name(b, frame, e, index, &name) != DL_OK)
        return dl_build_fault(b, frame, at, "name");
    double *values =
        dl_arena_alloc(b->scratch, (size_t)inner.block->argument_count, sizeof *values);
    inner.prefix = dl_arena_printf(b->scratch, "%s.", name);
    struct dl_scope scope = {.b = b, .frame = frame, .index = index};
    scope.in_channels = dl_build_shape(b, inputs[0])->channels;
    if (pass_arguments(&scope, e, inner.block, values) != DL_OK)
        return dl_build_fault(b, frame, at, "with");
    inner.numbers = values;
    inner.argument_names = inner.block->arguments;
    inner.argument_count = inner.block->argument_count;
    inner.entries = inner.block->layers;
    inner.entry_count = inner.block->layer_count;
    DL_TRY(expand(b, &inner, out));
    if (dl_build_define(b, name, *out) != DL_OK) return dl_build_fault(b, frame, at, "name");
    return DL_OK;
}

/* ---- lists ---- */

static enum dl_code resolve_inputs(struct dl_build *b, const struct dl_frame *frame, int at,
                                   int previous, int **out, int *count) {
    const struct dl_entry *e = &frame->entries[at];
    *count = e->from_count > 0 ? e->from_count : 1;
    *out = dl_arena_alloc(b->scratch, (size_t)*count, sizeof **out);
    (*out)[0] = previous;
    for (int i = 0; i < e->from_count; i++) {
        if (resolve(b, frame, e->from[i], &(*out)[i]) != DL_OK)
            return dl_build_fault(b, frame, at, "from");
    }
    return DL_OK;
}

/* Expands an entry as often as it repeats. *previous: output of the entry before, then of this one.
 */
static enum dl_code expand_entry(struct dl_build *b, const struct dl_frame *frame, int at,
                                 int *previous) {
    const struct dl_entry *e = &frame->entries[at];
    struct dl_scope scope = {.b = b, .frame = frame, .index = frame->index};
    double wanted = 1.0, times = 1.0;
    int *inputs = NULL, input_count = 0;
    scope.in_channels = dl_build_shape(b, *previous)->channels;
    if (e->when != NULL && dl_build_number(&scope, e->when, &wanted) != DL_OK) {
        return dl_build_fault(b, frame, at, "when");
    }
    if (wanted == 0.0) return DL_OK;
    if ((e->kind == NULL) == (e->block == NULL)) {
        dl_fail(b->err, DL_ERR_INPUT, "expected either a 'kind' or a 'block'");
        return dl_build_fault(b, frame, at, NULL);
    }
    if (e->repeat != NULL && dl_build_extent(&scope, e->repeat, 0.0, false, &times) != DL_OK) {
        return dl_build_fault(b, frame, at, "repeat");
    }
    if (times == 0.0) return DL_OK;
    DL_TRY(resolve_inputs(b, frame, at, *previous, &inputs, &input_count));
    for (double i = 0.0; i < times; i += 1.0) {
        double index = e->repeat != NULL ? i : frame->index;
        if (++b->steps > DL_WORKLOAD_STEPS) {
            dl_fail(b->err, DL_ERR_INPUT, "the blocks expand to more than %d entries",
                    DL_WORKLOAD_STEPS);
            return dl_build_fault(b, frame, at, "repeat");
        }
        if (e->kind != NULL)
            DL_TRY(dl_build_layer(b, frame, at, index, inputs, input_count, previous));
        else
            DL_TRY(add_block(b, frame, at, index, inputs, input_count, previous));
        inputs[0] = *previous;
    }
    if (e->repeat != NULL && e->name != NULL) { /* the bare name means the last repetition */
        const char *name = dl_arena_printf(b->scratch, "%s%s", frame->prefix, e->name);
        if (dl_build_define(b, name, *previous) != DL_OK)
            return dl_build_fault(b, frame, at, "name");
    }
    return DL_OK;
}

static enum dl_code expand(struct dl_build *b, const struct dl_frame *frame, int *out) {
    int previous = frame->input_count > 0 ? frame->inputs[0] : -1;
    for (int i = 0; i < frame->entry_count; i++) {
        b->steps++;
        DL_TRY(expand_entry(b, frame, i, &previous));
    }
    *out = previous;
    return DL_OK;
}

/* A parameter whose value its limit does not allow; the place is that of the value. */
static enum dl_code outside(struct dl_build *b, int doc, int index) {
    const struct dl_value_limit *limit = &b->files[doc].limits[index];
    char path[PATH_BYTES];
    for (int i = 0; i < b->value_count; i++) {
        const struct dl_build_value *value = &b->values[i];
        if (strcmp(value->key, limit->parameter) != 0) continue;
        dl_fail(b->err, DL_ERR_INPUT, "expected %.80s, found %.10g from \"%.40s\"", limit->expected,
                value->value, value->doc < 0 ? value->key : value->text);
        snprintf(path, sizeof path, "parameters.%.200s", value->key);
        return value->doc < 0 ? b->err->code : dl_build_at(b, value->doc, path);
    }
    snprintf(path, sizeof path, "limits[%d].parameter", index);
    return dl_json_fail(b->docs[doc], path, b->err, "no parameter '%.60s'", limit->parameter);
}

/* Limits of the file and of those that it extends. */
static enum dl_code check_limits(struct dl_build *b, const struct dl_frame *top) {
    struct dl_scope scope = {.b = b, .frame = top};
    double holds = 0;
    for (int doc = 0; doc < b->doc_count; doc++) {
        for (int i = 0; i < b->files[doc].limit_count; i++) {
            char path[PATH_BYTES];
            snprintf(path, sizeof path, "limits[%d].holds", i);
            if (dl_build_number(&scope, b->files[doc].limits[i].holds, &holds) != DL_OK)
                return dl_build_at(b, doc, path);
            if (holds == 0) return outside(b, doc, i);
        }
    }
    return DL_OK;
}

enum dl_code dl_build_expand(struct dl_build *b) {
    static const int from_input[] = {-1};
    int last, doc = dl_build_layers_doc(b);
    struct dl_frame top = {.doc = doc, .prefix = "", .inputs = from_input, .input_count = 1};
    top.entries = b->files[doc].layers;
    top.entry_count = b->files[doc].layer_count;
    DL_TRY(check_limits(b, &top));
    return expand(b, &top, &last);
}
