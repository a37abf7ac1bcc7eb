/* import_keras.c - `dlmodel import keras`: what model.to_json() writes, or the archive that
 * model.save() writes (.keras), as a workload. Of Keras 2 and 3; weights are not read. */
#include "import/import_keras.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "import/import.h"
#include "import/zip.h"
#include "model/workload/workload.h"

enum { MAX_CALLS = 20000, MAX_BYTES = 2147483647, MAX_JSON = 64 << 20, DEEPEST = 16 };

enum dl_code dl_keras_fail(const struct dl_keras *k, const struct dl_json_node *at, const char *key,
                           const char *format, ...) {
    char message[512];
    int line = 0, col = 0;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    if (at != NULL && at->place != DL_NO_PLACE)
        dl_json_position(k->document->text, k->document->length, at->place, &line, &col);
    return dl_fail_at(k->err, k->path, line, col, key, "%s", message);
}

void dl_keras_remark(struct dl_keras *k, const char *text) {
    for (int i = 0; i < k->remark_count; i++)
        if (strcmp(k->remarks[i], text) == 0) return;
    if (k->remark_count < (int)(sizeof k->remarks / sizeof k->remarks[0]))
        k->remarks[k->remark_count++] = text;
}

const struct dl_json_node *dl_keras_member(const struct dl_json_node *object, const char *key) {
    return object != NULL && object->kind == DL_JSON_OBJECT
               ? dl_json_member(object, key, strlen(key))
               : NULL;
}

const char *dl_keras_word(const struct dl_json_node *object, const char *key) {
    const struct dl_json_node *n = dl_keras_member(object, key);
    return n != NULL && n->kind == DL_JSON_STRING ? n->string : "";
}

double dl_keras_number(const struct dl_json_node *object, const char *key, double otherwise) {
    const struct dl_json_node *n = dl_keras_member(object, key);
    if (n != NULL && n->kind == DL_JSON_ARRAY && n->child != NULL && n->child->next == NULL)
        n = n->child; /* axis: [3] */
    return n != NULL && n->kind == DL_JSON_NUMBER ? n->number : otherwise;
}

bool dl_keras_flag(const struct dl_json_node *object, const char *key, bool otherwise) {
    const struct dl_json_node *n = dl_keras_member(object, key);
    return n != NULL && n->kind == DL_JSON_BOOL ? n->boolean : otherwise;
}

/* ---- models: layers, and the values that they give ---- */

struct made {
    const char *layer; /* its name in the file */
    int call;
    struct dl_keras_value value;
};
struct model {
    struct dl_keras *k;
    const char *prefix; /* of names in the workload */
    struct made *made;
    int count;
};

static enum dl_code run_model(struct dl_keras *k, const struct dl_json_node *config,
                              const char *prefix, const struct dl_keras_value *inputs,
                              int input_count, int depth, struct dl_keras_value *out);

static void keep(struct model *m, const char *layer, int call, const struct dl_keras_value *value) {
    m->made = dl_arena_grow(m->k->arena, m->made, (size_t)m->count, sizeof *m->made);
    m->made[m->count++] = (struct made){layer, call, *value};
}

static const struct dl_keras_value *value_of(const struct model *m, const char *layer,
                                             double call) {
    for (int i = m->count - 1; i >= 0; i--)
        if ((double)m->made[i].call == call && strcmp(m->made[i].layer, layer) == 0)
            return &m->made[i].value;
    return NULL;
}

/* ["name", node, tensor, ...] */
static bool is_reference(const struct dl_json_node *n) {
    return n->kind == DL_JSON_ARRAY && n->child != NULL && n->child->kind == DL_JSON_STRING &&
           n->child->next != NULL && n->child->next->kind == DL_JSON_NUMBER;
}

/* Values that a call reads, in order: references and the tensors of Keras 3 wherever they are in
 * it. *ready false: one is not made yet. */
static enum dl_code collect(const struct model *m, const struct dl_json_node *n,
                            struct dl_keras_call *call, bool *ready, int depth) {
    const struct dl_json_node *history = dl_keras_member(n, "keras_history");
    if (history != NULL) n = history;
    if (is_reference(n)) {
        const struct dl_keras_value *value = value_of(m, n->child->string, n->child->next->number);
        if (call->count == DL_KERAS_INPUTS)
            return dl_keras_fail(m->k, n, call->name, "more than %d inputs", DL_KERAS_INPUTS);
        if (value == NULL)
            *ready = false;
        else
            call->in[call->count++] = *value;
        n = n->child->next->next;
        for (; n != NULL; n = n->next) /* Keras 2: arguments by name, some of them tensors */
            if (n->kind == DL_JSON_OBJECT && depth < DEEPEST)
                DL_TRY(collect(m, n, call, ready, depth + 1));
        return DL_OK;
    }
    if (n->kind != DL_JSON_ARRAY && n->kind != DL_JSON_OBJECT) return DL_OK;
    for (const struct dl_json_node *e = n->child; e != NULL && depth < DEEPEST; e = e->next)
        DL_TRY(collect(m, e, call, ready, depth + 1));
    return DL_OK;
}

static bool is_model(const char *class) {
    return strcmp(class, "Functional") == 0 || strcmp(class, "Sequential") == 0 ||
           strcmp(class, "Model") == 0;
}

static const char *name_of(const struct dl_json_node *layer) {
    const char *name = dl_keras_word(layer, "name");
    return name[0] != '\0' ? name : dl_keras_word(dl_keras_member(layer, "config"), "name");
}

/* Layers whose calls share no weights. */
static bool is_shared_harmlessly(const char *class) {
    static const char harmless[] = " Activation ReLU Add Dropout Flatten Reshape Concatenate "
                                   "Multiply ZeroPadding2D InputLayer ";
    return strstr(harmless, class) != NULL;
}

/* The input shape recorded when the layer was built. */
static enum dl_code check_shape(struct dl_keras *k, const struct dl_keras_call *call) {
    const struct dl_json_node *shape =
        dl_keras_member(dl_keras_member(call->layer, "build_config"), "input_shape");
    int i = 0;
    if (shape == NULL || shape->kind != DL_JSON_ARRAY || call->count != 1 || shape->child == NULL)
        return DL_OK;
    for (const struct dl_json_node *e = shape->child->next; e != NULL; e = e->next, i++)
        if (i < call->in[0].rank && e->kind == DL_JSON_NUMBER &&
            e->number != call->in[0].dims[i] + (i + 1 < call->in[0].rank ? call->in[0].pad[i] : 0))
            return dl_keras_fail(k, call->layer, call->name,
                                 "it was built with another shape than its inputs have");
    return DL_OK;
}

static enum dl_code run_call(struct model *m, struct dl_keras_call *call, int number, int depth) {
    struct dl_keras *k = m->k;
    struct dl_keras_value out;
    const char *suffix = number > 0 ? dl_arena_printf(k->arena, ".%d", number) : "";
    call->name = dl_arena_printf(k->arena, "%s%s%s", m->prefix, name_of(call->layer), suffix);
    if (strcmp(call->class, "TimeDistributed") == 0) {
        const struct dl_json_node *inner = dl_keras_member(call->config, "layer");
        call->class = dl_keras_word(inner, "class_name");
        call->config = dl_keras_member(inner, "config");
    }
    if (is_model(call->class)) {
        DL_TRY(run_model(k, call->config, dl_arena_printf(k->arena, "%s/", call->name), call->in,
                         call->count, depth + 1, &out));
    } else {
        if (call->count == 0) return dl_keras_fail(k, call->layer, call->name, "it has no input");
        DL_TRY(check_shape(k, call));
        DL_TRY(dl_keras_layer(k, call, &out));
    }
    keep(m, name_of(call->layer), number, &out);
    return DL_OK;
}

/* All calls of a layer whose inputs are made; *open: how many are not. */
static enum dl_code run_layer(struct model *m, const struct dl_json_node *layer, int depth,
                              int *open) {
    const struct dl_json_node *nodes = dl_keras_member(layer, "inbound_nodes");
    const char *class = dl_keras_word(layer, "class_name"), *name = name_of(layer);
    int number = 0;
    if (nodes != NULL && nodes->child_count > 1 && !is_shared_harmlessly(class))
        return dl_keras_fail(m->k, layer, name,
                             "its weights are shared by %d calls, which is not read",
                             nodes->child_count);
    for (const struct dl_json_node *n = nodes != NULL ? nodes->child : NULL; n != NULL;
         n = n->next, number++) {
        struct dl_keras_call call = {.layer = layer,
                                     .config = dl_keras_member(layer, "config"),
                                     .options = dl_keras_member(n, "kwargs"),
                                     .class = class,
                                     .name = name};
        bool ready = true;
        if (value_of(m, name, number) != NULL) continue;
        DL_TRY(collect(m, n, &call, &ready, 0));
        if (call.options == NULL && n->child != NULL && is_reference(n->child)) /* of Keras 2 */
            for (const struct dl_json_node *e = n->child->child; e != NULL; e = e->next)
                if (e->kind == DL_JSON_OBJECT) call.options = e;
        if (!ready)
            ++*open;
        else
            DL_TRY(run_call(m, &call, number, depth));
    }
    return DL_OK;
}

static enum dl_code run_functional(struct model *m, const struct dl_json_node *config,
                                   const struct dl_keras_value *inputs, int count, int depth,
                                   struct dl_keras_value *out) {
    const struct dl_json_node *layers = dl_keras_member(config, "layers"),
                              *outputs = dl_keras_member(config, "output_layers"),
                              *entries = dl_keras_member(config, "input_layers");
    int open = 1, before = -1, at = 0;
    if (entries != NULL && is_reference(entries))
        keep(m, entries->child->string, 0, &inputs[0]);
    else
        for (const struct dl_json_node *e = entries != NULL ? entries->child : NULL; e != NULL;
             e = e->next, at++)
            if (is_reference(e) && at < count) keep(m, e->child->string, 0, &inputs[at]);
    while (open > 0) {
        open = 0;
        for (const struct dl_json_node *l = layers->child; l != NULL; l = l->next)
            if (strcmp(dl_keras_word(l, "class_name"), "InputLayer") != 0)
                DL_TRY(run_layer(m, l, depth, &open));
        if (open == before)
            return dl_keras_fail(m->k, layers, "layers", "%d calls read what nothing makes", open);
        before = open;
    }
    const struct dl_json_node *last =
        outputs != NULL && !is_reference(outputs) ? outputs->child : outputs;
    const struct dl_keras_value *value =
        last != NULL && is_reference(last)
            ? value_of(m, last->child->string, last->child->next->number)
        : m->count > 0 ? &m->made[m->count - 1].value
                       : NULL;
    if (value == NULL) return dl_keras_fail(m->k, config, "output_layers", "expected an output");
    *out = *value;
    return DL_OK;
}

static enum dl_code run_model(struct dl_keras *k, const struct dl_json_node *config,
                              const char *prefix, const struct dl_keras_value *inputs,
                              int input_count, int depth, struct dl_keras_value *out) {
    struct model m = {.k = k, .prefix = prefix};
    const struct dl_json_node *layers = dl_keras_member(config, "layers");
    if (layers == NULL || layers->kind != DL_JSON_ARRAY || layers->child == NULL ||
        depth > DEEPEST || layers->child_count > MAX_CALLS || input_count < 1)
        return dl_keras_fail(k, config, "layers", "expected layers of a Keras model");
    if (dl_keras_member(config, "input_layers") != NULL)
        return run_functional(&m, config, inputs, input_count, depth, out);
    *out = inputs[0];
    for (const struct dl_json_node *l = layers->child; l != NULL; l = l->next) {
        struct dl_keras_call call = {.layer = l,
                                     .config = dl_keras_member(l, "config"),
                                     .class = dl_keras_word(l, "class_name"),
                                     .count = 1};
        if (strcmp(call.class, "InputLayer") == 0) continue;
        call.in[0] = *out;
        DL_TRY(run_call(&m, &call, 0, depth));
        *out = m.made[m.count - 1].value;
    }
    return DL_OK;
}

/* ---- the input ---- */

static const struct dl_json_node *shape_of(const struct dl_json_node *config) {
    static const char *const keys[] = {"batch_shape", "batch_input_shape", "build_input_shape"};
    for (int i = 0; i < 3; i++)
        if (dl_keras_member(config, keys[i]) != NULL) return dl_keras_member(config, keys[i]);
    return NULL;
}

/* Whether the layer behind the input reads token ids, or extents of a signal. */
static bool has_class(const struct dl_json_node *layers, const char *start) {
    for (const struct dl_json_node *l = layers->child; l != NULL; l = l->next) {
        const char *class = dl_keras_word(l, "class_name");
        if (strncmp(class, start, strlen(start)) == 0) return true;
        const struct dl_json_node *inner = dl_keras_member(dl_keras_member(l, "config"), "layers");
        if (is_model(class) && inner != NULL && has_class(inner, start)) return true;
    }
    return false;
}

static enum dl_code read_input(struct dl_keras *k, const struct dl_json_node *config,
                               struct dl_keras_value *out, bool *tokens) {
    const struct dl_json_node *layers = dl_keras_member(config, "layers"), *shape = NULL;
    int inputs = 0;
    for (const struct dl_json_node *l = layers != NULL ? layers->child : NULL; l != NULL;
         l = l->next) {
        const bool is = strcmp(dl_keras_word(l, "class_name"), "InputLayer") == 0;
        inputs += is;
        if (shape == NULL) shape = shape_of(dl_keras_member(l, "config"));
        if (is && inputs > 1)
            return dl_keras_fail(k, l, name_of(l), "several inputs, of which a workload has one");
    }
    if (shape == NULL) shape = shape_of(config);
    if (shape == NULL || shape->child == NULL)
        return dl_keras_fail(k, config, "layers",
                             "the shape of the input is not in the file: build the model first");
    *out = (struct dl_keras_value){.item = "input"};
    for (const struct dl_json_node *e = shape->child->next; e != NULL; e = e->next) {
        if (e->kind != DL_JSON_NUMBER || !(e->number >= 1 && e->number <= 1e9) ||
            out->rank == DL_KERAS_RANK)
            return dl_keras_fail(
                k, e, "batch_shape",
                "expected a number for each of 1 to %d dimensions after the batch: build the model "
                "with the shape of its input",
                DL_KERAS_RANK);
        out->dims[out->rank++] = e->number;
    }
    if (out->rank == 0) return dl_keras_fail(k, shape, "batch_shape", "expected dimensions");
    *tokens = out->rank == 1 && has_class(layers, "Embedding");
    out->image = out->rank > 2 || (out->rank == 2 && has_class(layers, "Conv1D"));
    return DL_OK;
}

static void write_input(struct dl_keras *k, struct dl_text *text, const struct dl_keras_value *in,
                        bool tokens) {
    static const char *const names[] = {"height", "width"};
    const int dims = in->image ? in->rank - 1 : 0;
    struct dl_json_writer w;
    dl_jw_init(&w, k->arena, true);
    dl_jw_object(&w, NULL);
    if (tokens) {
        dl_jw_number(&w, "tokens", in->dims[0]);
    } else {
        dl_jw_number(&w, "channels", in->dims[in->rank - 1]);
        if (in->rank > 1) dl_jw_array(&w, "size");
        for (int i = 0; i + 1 < in->rank; i++)
            if (dims == 2)
                dl_jw_string(&w, NULL, names[i]);
            else
                dl_jw_number(&w, NULL, in->dims[i]);
        if (in->rank > 1) dl_jw_end(&w);
    }
    dl_jw_end(&w);
    if (dims == 2)
        dl_text_printf(text, "  \"parameters\": {\"height\": %.0f, \"width\": %.0f},\n",
                       in->dims[0], in->dims[1]);
    dl_text_printf(text, "  \"input\": %s,\n", dl_jw_text(&w));
}

/* A sequence of vectors comes as an image of one extent. */
static void input_sequence(struct dl_keras *k, struct dl_keras_value *in) {
    if (in->rank != 2 || in->image) return;
    dl_text_add(&k->layers,
                "    {\"name\":\"input_tokens\",\"kind\":\"tokens\",\"from\":[\"input\"]}");
    k->written++;
    in->item = "input_tokens";
}

/* ---- the file ---- */

static void write_head(struct dl_text *text, const char *name) {
    struct dl_json_writer w;
    dl_jw_init(&w, text->arena, true);
    dl_jw_object(&w, NULL);
    dl_jw_string(&w, "format", "dlmodel-workload");
    dl_jw_integer(&w, "version", 1);
    dl_jw_string(&w, "name", name);
    dl_jw_string(&w, "summary", "imported from Keras");
    dl_jw_string(&w, "source", "imported");
    const char *object = dl_jw_text(&w);
    /* without its end: other members follow */
    dl_text_printf(text, "%.*s,\n", (int)strlen(object) - 2, object);
}

static enum dl_code read_text(const struct dl_context *context, const char *path, char **text,
                              size_t *length, struct dl_err *err) {
    char *bytes;
    DL_TRY(dl_data_read(&context->data, path, MAX_BYTES, context->arena, &bytes, length, err));
    *text = bytes;
    if (*length < 4 || memcmp(bytes, "PK\003\004", 4) != 0) return DL_OK;
    DL_TRY(dl_zip_file(&(struct dl_zip){path, (const unsigned char *)bytes, *length}, "config.json",
                       MAX_JSON, context->arena, text, length, err));
    return *text != NULL ? DL_OK
                         : dl_fail_at(err, path, 0, 0, NULL,
                                      "expected an archive of Keras, with config.json in it");
}

enum dl_code dl_keras_text(const struct dl_keras_source *source, struct dl_arena *arena,
                           struct dl_keras *k, const char **out, struct dl_err *err) {
    const char *path = source->path, *name = source->name;
    struct dl_text text = {.arena = arena};
    struct dl_json *document;
    struct dl_keras_value in, last;
    bool tokens = false;
    DL_TRY(dl_json_parse(path, source->json, source->length, arena, &document, err));
    *k = (struct dl_keras){.document = document, .path = path, .arena = arena, .err = err};
    k->layers.arena = arena;
    const struct dl_json_node *config = dl_keras_member(document->root, "config");
    if (!is_model(dl_keras_word(document->root, "class_name")) ||
        dl_keras_member(config, "layers") == NULL)
        return dl_keras_fail(k, document->root, "class_name",
                             "expected a Functional or Sequential model, found \"%.60s\": a model "
                             "that is a class of its own can be exported as ONNX",
                             dl_keras_word(document->root, "class_name"));
    if (name == NULL) name = dl_keras_word(config, "name");
    DL_TRY(read_input(k, config, &in, &tokens));
    write_head(&text, name[0] != '\0' ? name : "keras-model");
    write_input(k, &text, &in, tokens);
    if (!tokens) input_sequence(k, &in);
    DL_TRY(run_model(k, config, "", &in, 1, 0, &last));
    if (k->written == 0) return dl_keras_fail(k, config, "layers", "no layer computes anything");
    if (k->transformer || k->rnn || k->cnn)
        dl_text_printf(&text, "  \"family\": \"%s\",\n",
                       k->transformer ? "transformer"
                       : k->rnn       ? "rnn"
                                      : "cnn");
    dl_text_printf(&text, "  \"layers\": [\n%s\n  ]\n}\n", dl_text_string(&k->layers));
    *out = dl_text_string(&text);
    return DL_OK;
}

enum dl_code dl_import_keras(struct dl_context *context, const struct dl_options *options,
                             const struct dl_import_asked *asked, struct dl_err *err) {
    struct dl_keras *k = dl_arena_alloc(context->arena, 1, sizeof *k);
    struct dl_workload workload;
    struct dl_json *made;
    char *json;
    const char *text, *path;
    size_t length;
    DL_TRY(dl_import_files(options, 1, err));
    path = options->positional[1];
    DL_TRY(read_text(context, path, &json, &length, err));
    DL_TRY(dl_keras_text(&(struct dl_keras_source){path, json, length, asked->name}, context->arena,
                         k, &text, err));
    DL_TRY(dl_json_parse("imported workload", text, strlen(text), context->arena, &made, err));
    const struct dl_json *const documents[] = {made};
    struct dl_err inner = {.code = DL_OK};
    if (dl_workload_build(documents, 1, NULL, 0, context->arena, &workload, &inner) != DL_OK)
        return dl_fail_at(err, path, 0, 0, NULL,
                          "its layers do not make a workload: %.300s: %.300s", inner.key,
                          inner.message);
    DL_TRY(context->output(options, text, err));
    for (int i = 0; i < k->remark_count; i++) context->note(context, "%s", k->remarks[i]);
    context->note(context, "%s: %d layers: %.0f parameters, %.6g GMAC a sample", workload.name,
                  k->written, workload.parameters, workload.forward_macs_per_sample / 1e9);
    return DL_OK;
}
