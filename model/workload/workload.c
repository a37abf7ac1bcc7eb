/* workload.c - from documents to a workload: chain of extends, parameters, overrides and totals.
 *
 * F-MEM-ACTIVATIONS: tensors that backward needs are counted once each. The output of a layer
 * counts once, whether the layer itself (relu) or a reader (convolution, dense) needs it. The
 * workload's input is not an activation; it is input_bytes_per_sample. */
#include "model/workload/workload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/workload/workload_build.h"
#include "model/workload/workload_expr.h"

enum dl_code dl_build_at(struct dl_build *b, int doc, const char *path) {
    char message[sizeof b->err->message];
    if (b->err->code != DL_ERR_INPUT) return b->err->code;
    snprintf(message, sizeof message, "%s", b->err->message);
    return dl_json_fail(b->docs[doc], path, b->err, "%s", message);
}

enum dl_code dl_workload_extends(const struct dl_json *doc, struct dl_arena *arena,
                                 const char **name_out, struct dl_err *err) {
    struct dl_arena scratch = {0};
    struct dl_workload_file file;
    enum dl_code code = dl_json_load(doc, &dl_workload_schema, &scratch, &file, err);
    if (code == DL_OK) *name_out = dl_arena_strdup(arena, file.extends);
    dl_arena_free(&scratch);
    return code;
}

/* ---- parameters ---- */

static struct dl_build_value *find_value(const struct dl_build *b, const char *name) {
    for (int i = 0; i < b->value_count; i++)
        if (strcmp(b->values[i].key, name) == 0) return &b->values[i];
    return NULL;
}

bool dl_build_has_value(const struct dl_build *b, const char *name) {
    return find_value(b, name) != NULL;
}

static const char *suggest_value(const struct dl_build *b, const char *name) {
    const char *names[DL_WORKLOAD_PARAMETERS + 1];
    for (int i = 0; i < b->value_count; i++) names[i] = b->values[i].key;
    names[b->value_count] = NULL;
    return dl_suggest(name, names);
}

static enum dl_code find_parameter(void *context, const char *name, double *value_out,
                                   struct dl_err *err) {
    return dl_build_value(context, name, value_out, err);
}

static enum dl_code find_letter(void *context, const char *name, double index, double *value_out,
                                struct dl_err *err) {
    return dl_build_letter(context, name, index, value_out, err);
}

enum dl_code dl_build_value(struct dl_build *b, const char *name, double *value_out,
                            struct dl_err *err) {
    struct dl_build_value *value = find_value(b, name);
    if (value == NULL && dl_known(dl_build_word(b, name))) {
        *value_out = dl_build_word(b, name);
        return DL_OK;
    }
    if (value == NULL) {
        const char *near = suggest_value(b, name);
        return dl_fail(err, DL_ERR_INPUT, "no parameter or argument '%.60s' here%s%s%s", name,
                       near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    }
    if (value->state == DL_VALUE_BUSY || b->value_depth >= DL_WORKLOAD_CHAIN) {
        return dl_fail(err, DL_ERR_INPUT,
                       "the value of '%.60s' depends on itself or on too long a chain", name);
    }
    const char *letters = dl_build_letters(b, value);
    if (letters != NULL) {
        value->value = (double)strlen(letters);
        value->state = DL_VALUE_DONE;
    }
    if (value->state == DL_VALUE_OPEN) {
        struct dl_expr_names names = {.find = find_parameter, .letter = find_letter, .context = b};
        value->state = DL_VALUE_BUSY;
        b->value_depth++;
        enum dl_code code = dl_expr_eval(value->text, &names, &value->value, err);
        b->value_depth--;
        value->state = code == DL_OK ? DL_VALUE_DONE : DL_VALUE_OPEN;
        if (code != DL_OK) return code;
    }
    *value_out = value->value;
    return DL_OK;
}

static enum dl_code collect_values(struct dl_build *b) {
    b->values = dl_arena_alloc(b->scratch, DL_WORKLOAD_PARAMETERS, sizeof *b->values);
    int layers_doc = dl_build_layers_doc(b);
    for (int doc = b->doc_count - 1; doc >= 0; doc--) {
        const struct dl_workload_file *file = &b->files[doc];
        for (int i = 0; i < file->parameter_count; i++) {
            const struct dl_map_entry *entry = &file->parameters[i];
            struct dl_build_value *value = find_value(b, entry->key);
            if (value == NULL && doc < layers_doc) {
                const char *near = suggest_value(b, entry->key);
                return dl_json_fail(b->docs[doc], "parameters", b->err,
                                    "the workload that this one extends has no '%.60s'%s%s%s",
                                    entry->key, near ? "; did you mean '" : "", near ? near : "",
                                    near ? "'?" : "");
            }
            if (value == NULL && b->value_count == DL_WORKLOAD_PARAMETERS)
                return dl_json_fail(b->docs[doc], "parameters", b->err, "more than %d parameters",
                                    DL_WORKLOAD_PARAMETERS);
            if (value == NULL) value = &b->values[b->value_count++];
            *value = (struct dl_build_value){.key = entry->key, .text = entry->text, .doc = doc};
        }
    }
    return DL_OK;
}

static enum dl_code evaluate_values(struct dl_build *b) {
    for (int i = 0; i < b->value_count; i++) {
        char path[256];
        double ignored;
        if (dl_build_check_text(b, &b->values[i]) == DL_OK &&
            dl_build_value(b, b->values[i].key, &ignored, b->err) == DL_OK &&
            dl_build_check_word(b, &b->values[i]) == DL_OK)
            continue;
        if (b->values[i].doc < 0) return b->err->code;
        snprintf(path, sizeof path, "parameters.%.200s", b->values[i].key);
        return dl_build_at(b, b->values[i].doc, path);
    }
    return DL_OK;
}

/* ---- overrides ---- */

static enum dl_code bad_override(struct dl_err *err, const char *key, const char *format,
                                 const char *found) {
    enum dl_code code = dl_fail(err, DL_ERR_USAGE, format, found);
    if (err != NULL) snprintf(err->key, sizeof err->key, "%s", key);
    return code;
}

static enum dl_code set_value(struct dl_build *b, const char *key, const char *name,
                              const char *text, size_t length) {
    struct dl_build_value *value = find_value(b, name);
    if (value == NULL)
        return bad_override(b->err, key, "this workload has no parameter '%s' to set", name);
    char *copy = dl_arena_strndup(b->scratch, text, length);
    value->text = copy;
    value->doc = -1;
    return DL_OK;
}

/* "226x226", "3x226x226", "226" (all extents), "seq128". */
static enum dl_code override_input(struct dl_build *b, const char *key, const char *text) {
    static const char *const names[DL_DIMS] = {"depth", "height", "width"};
    const char *parts[DL_DIMS + 1];
    size_t lengths[DL_DIMS + 1];
    int count = 0, dims = find_value(b, "depth") != NULL    ? 3
                          : find_value(b, "height") != NULL ? 2
                                                            : 0;
    if (strncmp(text, "seq", 3) == 0) return set_value(b, key, "seq", text + 3, strlen(text + 3));
    for (const char *at = text; count <= DL_DIMS; at += lengths[count - 1] + 1) {
        parts[count] = at;
        lengths[count] = strspn(at, "0123456789");
        bool more = at[lengths[count]] == 'x';
        /* no digits, something else behind them, or more than channels and three extents */
        const bool bad = more ? count == DL_DIMS : at[lengths[count]] != '\0';
        count = lengths[count] == 0 || bad ? DL_DIMS + 2 : count + 1;
        if (!more || count > DL_DIMS) break;
    }
    if (dims == 0)
        return bad_override(b->err, key, "this workload has no input size to set; found \"%s\"",
                            text);
    int skip = count == dims + 1 ? 1 : 0; /* the channels come first and stay as they are */
    if (count != 1 && count != dims && skip == 0) {
        return bad_override(b->err, key,
                            "expected extents like 224x224 (one for each dimension), found \"%s\"",
                            text);
    }
    for (int i = 0; i < dims; i++) {
        int part = count == 1 ? 0 : i + skip;
        DL_TRY(set_value(b, key, names[DL_DIMS - dims + i], parts[part], lengths[part]));
    }
    return DL_OK;
}

static const char *strip_prefix(const char *key) {
    static const char *const prefixes[] = {"workload.", "parameters."};
    for (int i = 0; i < 2; i++) {
        size_t length = strlen(prefixes[i]);
        if (strncmp(key, prefixes[i], length) == 0) key += length;
    }
    return key;
}

static enum dl_code apply_overrides(struct dl_build *b, struct dl_override *overrides, int count,
                                    int *taken) {
    *taken = -1;
    for (int i = 0; i < count; i++) {
        const char *name = strip_prefix(overrides[i].key);
        bool input = strcmp(name, "input") == 0;
        if (!input && find_value(b, name) == NULL) continue;
        overrides[i].used = true;
        *taken = i;
        if (input)
            DL_TRY(override_input(b, overrides[i].key, overrides[i].value));
        else
            DL_TRY(set_value(b, overrides[i].key, name, overrides[i].value,
                             strlen(overrides[i].value)));
    }
    return DL_OK;
}

/* ---- documents ---- */

int dl_build_layers_doc(const struct dl_build *b) {
    for (int i = 0; i < b->doc_count; i++) {
        if (b->files[i].layer_count > 0) return i;
    }
    return -1;
}

static enum dl_code load_files(struct dl_build *b) {
    struct dl_workload_file *files =
        dl_arena_alloc(b->scratch, (size_t)b->doc_count, sizeof *files);
    b->files = files;
    for (int i = 0; i < b->doc_count; i++) {
        DL_TRY(dl_json_load(b->docs[i], &dl_workload_schema, b->scratch, &files[i], b->err));
        for (int j = 0; j < i; j++) {
            if (strcmp(files[i].name, files[j].name) == 0) {
                return dl_json_fail(b->docs[i - 1], "extends", b->err, "'%.60s' extends itself",
                                    files[i].name);
            }
        }
    }
    int last = b->doc_count - 1;
    if (files[last].extends != NULL) {
        return dl_json_fail(b->docs[last], "extends", b->err,
                            "a chain of at most %d workloads, found more or a cycle",
                            DL_WORKLOAD_EXTENDS);
    }
    if (dl_build_layers_doc(b) < 0)
        return dl_json_fail(b->docs[0], "layers", b->err, "expected at least one layer");
    return DL_OK;
}

static enum dl_code input_extent(struct dl_build *b, const char *text, double *out) {
    struct dl_expr_names names = {.find = find_parameter, .context = b};
    DL_TRY(dl_expr_eval(text, &names, out, b->err));
    if (*out >= 1.0 && *out == floor(*out) && *out <= 9007199254740992.0) return DL_OK;
    return dl_fail(b->err, DL_ERR_INPUT,
                   "expected a whole number of at least 1, found %.10g from \"%.80s\"", *out, text);
}

static enum dl_code build_input(struct dl_build *b, struct dl_workload *out) {
    int doc = 0;
    while (doc < b->doc_count && !b->files[doc].has_input) doc++;
    if (doc == b->doc_count)
        return dl_json_fail(b->docs[0], "input", b->err, "expected the shape of a sample");
    const struct dl_workload_input *input = &b->files[doc].input;
    struct dl_shape *shape = &out->input;
    double element_bytes = input->tokens != NULL ? 8.0 : 4.0; /* int64 indices, fp32 values */
    *shape = (struct dl_shape){.channels = 1.0, .size = {1.0, 1.0, 1.0}};
    if (input->tokens != NULL && input->size_count > 0) {
        return dl_json_fail(b->docs[doc], "input.tokens", b->err,
                            "expected either tokens or a size");
    }
    if (input->size_count > DL_DIMS) {
        return dl_json_fail(b->docs[doc], "input.size", b->err, "expected at most %d extents",
                            DL_DIMS);
    }
    if (input->channels != NULL && input_extent(b, input->channels, &shape->channels) != DL_OK) {
        return dl_build_at(b, doc, "input.channels");
    }
    shape->dims = input->tokens != NULL ? 1 : input->size_count;
    if (input->tokens != NULL &&
        input_extent(b, input->tokens, &shape->size[DL_DIMS - 1]) != DL_OK) {
        return dl_build_at(b, doc, "input.tokens");
    }
    for (int i = 0; i < input->size_count; i++) {
        if (input_extent(b, input->size[i], &shape->size[DL_DIMS - input->size_count + i]) !=
            DL_OK) {
            return dl_build_at(b, doc, "input.size");
        }
    }
    if (input->element_bytes != NULL &&
        input_extent(b, input->element_bytes, &element_bytes) != DL_OK) {
        return dl_build_at(b, doc, "input.element_bytes");
    }
    out->input_bytes_per_sample = element_bytes * dl_shape_elements(shape);
    b->input = *shape;
    if (out->input_bytes_per_sample <= 9007199254740992.0) return DL_OK;
    return dl_json_fail(b->docs[doc], "input", b->err, "a sample has more than 2^53 bytes");
}

/* ---- results ---- */

static void sum_layers(const struct dl_build *b, struct dl_workload *out) {
    for (int i = 0; i < b->layer_count; i++) {
        const struct dl_layer *layer = &b->layers[i];
        out->parameters += layer->parameter_elements;
        out->parameter_tensors += layer->parameter_count;
        out->buffer_elements += layer->buffer_elements;
        out->forward_macs_per_sample += layer->forward_macs;
        out->activation_elements_per_sample += layer->saved.elements;
        out->active_parameters += dl_layer_active_parameters(layer);
        out->model_macs_per_sample += dl_layer_model_macs(layer);
        if (layer->kind == &dl_layer_given) /* fp32, copied with the input */
            out->input_bytes_per_sample += 4.0 * dl_shape_elements(&layer->out);
    }
}

static double value_or_nan(const struct dl_build *b, const char *name) {
    const struct dl_build_value *value = find_value(b, name);
    return value != NULL ? value->value : NAN;
}

/* A model is GPT-like when it has the parameters layers, hidden, heads and seq. */
static enum dl_code fill_transformer(struct dl_build *b, struct dl_workload *out) {
    out->transformer_layers = value_or_nan(b, "layers");
    out->hidden = value_or_nan(b, "hidden");
    out->heads = value_or_nan(b, "heads");
    out->sequence = value_or_nan(b, "seq");
    out->vocabulary = value_or_nan(b, "vocab");
    bool like = out->family != NULL && strcmp(out->family, "transformer") == 0 &&
                dl_known(out->transformer_layers) && dl_known(out->hidden) &&
                dl_known(out->heads) && dl_known(out->sequence);
    if (like && out->transformer_layers < 1.0) {
        return dl_json_fail(b->docs[0], "parameters", b->err, "layers: expected at least 1");
    }
    if (!like)
        out->transformer_layers = out->hidden = out->heads = out->sequence = out->vocabulary = NAN;
    return DL_OK;
}

static enum dl_code copy_names(struct dl_build *b, struct dl_workload *out) {
    const char *texts[5] = {NULL, NULL, NULL, NULL, NULL};
    out->epoch_samples = out->sample_bytes = NAN;
    for (int i = b->doc_count - 1; i >= 0; i--) { /* the nearest document wins */
        const struct dl_workload_file *file = &b->files[i];
        const char *said[5] = {file->name, file->summary, file->source, file->family,
                               file->dataset};
        for (int j = 0; j < 5; j++) texts[j] = said[j] != NULL ? said[j] : texts[j];
        if (dl_known(file->epoch_samples)) out->epoch_samples = file->epoch_samples;
        if (dl_known(file->sample_bytes)) out->sample_bytes = file->sample_bytes;
    }
    const char **members[5] = {&out->name, &out->summary, &out->source, &out->family,
                               &out->dataset};
    for (int j = 0; j < 5; j++) *members[j] = dl_arena_strdup(b->arena, texts[j]);
    return DL_OK;
}

static enum dl_code copy_results(struct dl_build *b, struct dl_workload *out) {
    const bool few = b->layer_capacity == DL_FEW_LAYERS; /* they are where they belong */
    struct dl_layer *layers =
        few ? b->layers : dl_arena_alloc(b->arena, (size_t)b->layer_count, sizeof *layers);
    struct dl_map_entry *values = dl_arena_alloc(b->arena, (size_t)b->value_count, sizeof *values);
    for (int i = 0; i < b->layer_count; i++) {
        if (!few) layers[i] = b->layers[i];
        layers[i].block = dl_layer_block(layers[i].name);
    }
    dl_layer_find_twins(layers, b->layer_count);
    out->layers = layers;
    out->layer_count = b->layer_count;
    out->stack = dl_workload_find_stack(out);
    for (int i = 0; i < b->value_count; i++) {
        values[i].key = dl_arena_strdup(b->arena, b->values[i].key);
        const char *word = dl_build_word_of(b, &b->values[i]);
        values[i].text = word != NULL ? dl_arena_strdup(b->arena, word)
                                      : dl_arena_printf(b->arena, "%.17g", b->values[i].value);
        values[i].number = b->values[i].value;
    }
    out->values = values;
    out->value_count = b->value_count;
    return DL_OK;
}

static enum dl_code build(struct dl_build *b, struct dl_override *overrides, int override_count,
                          struct dl_workload *out, int *taken) {
    DL_TRY(load_files(b));
    DL_TRY(collect_values(b));
    DL_TRY(apply_overrides(b, overrides, override_count, taken));
    DL_TRY(dl_build_check_choices(b));
    DL_TRY(evaluate_values(b));
    DL_TRY(copy_names(b, out));
    DL_TRY(build_input(b, out));
    DL_TRY(dl_build_expand(b));
    if (b->layer_count == 0)
        return dl_json_fail(b->docs[0], "layers", b->err,
                            "expected at least one layer, but 'when' leaves out all of them");
    dl_layers_mark_gradients(b->layers, b->layer_count, b->scratch);
    sum_layers(b, out);
    DL_TRY(fill_transformer(b, out));
    return copy_results(b, out);
}

static bool quotes(const char *message, const char *text) {
    char quoted[80];
    const int length = snprintf(quoted, sizeof quoted, "\"%s\"", text);
    return length < (int)sizeof quoted && strstr(message, quoted) != NULL;
}

/* The override whose key or value a message quotes (found 0 from "seq"), else the last one that
 * applied. */
static int blamed(const struct dl_override *overrides, int count, int taken, const char *message) {
    for (int i = 0; i < count; i++) {
        const struct dl_override *o = &overrides[i];
        if (o->used && (quotes(message, o->key) || quotes(message, o->value))) return i;
    }
    return taken;
}

enum dl_code dl_workload_build(const struct dl_json *const *docs, int doc_count,
                               struct dl_override *overrides, int override_count,
                               struct dl_arena *arena, struct dl_workload *out,
                               struct dl_err *err) {
    struct dl_arena scratch = {0};
    struct dl_err local = {0};
    struct dl_workload workload = {0};
    struct dl_build b = {
        .docs = docs, .doc_count = doc_count, .arena = arena, .scratch = &scratch, .err = &local};
    int taken = -1;
    dl_arena_reserve(&scratch, DL_BUILD_BYTES);
    /* then the last one extends another */
    if (b.doc_count > DL_WORKLOAD_EXTENDS) b.doc_count = DL_WORKLOAD_EXTENDS;
    enum dl_code code = build(&b, overrides, override_count, &workload, &taken);
    dl_arena_free(&scratch);
    if (code == DL_OK) {
        *out = workload;
    } else if (err != NULL) {
        *err = local;
        /* the files are valid; the user's value does not fit them */
        if (code == DL_ERR_INPUT && taken >= 0) {
            taken = blamed(overrides, override_count, taken, local.message);
            code = dl_fail(err, DL_ERR_USAGE, "%.60s does not fit the workload: %s%s%s",
                           overrides[taken].value, local.key, local.key[0] == 0 ? "" : ": ",
                           local.message);
            snprintf(err->key, sizeof err->key, "%.180s", overrides[taken].key);
        }
    }
    return code;
}
