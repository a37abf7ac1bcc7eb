/* import_pt2.c - reads a torch.export archive (.pt2): values with their shapes, parameters, inputs
 * and outputs of its graph. import_pt2_operators.c translates the calls.
 *
 * Format: models/MODEL.json holds an ExportedProgram of torch/_export/serde/schema.py. */
#include "import/import_pt2.h"

#include <math.h>
#include <string.h>

#include "import/zip.h"
#include "model/core/file.h"
#include "model/core/text.h"

enum { SCHEMA = 8 };

static const char *word(const struct dl_json_node *object, const char *key) {
    const struct dl_json_node *n = dl_json_get(object, key);
    return n != NULL && n->kind == DL_JSON_STRING ? n->string : "";
}

/* Numbers are whole in this format, but for as_float. */
static double number(const struct dl_json_node *n, double otherwise) {
    if (n == NULL) return otherwise;
    if (n->kind == DL_JSON_BOOL) return n->boolean ? 1 : 0;
    return n->kind == DL_JSON_NUMBER ? n->number : otherwise;
}

static enum dl_code bad(const struct dl_onnx_graph *g, struct dl_err *err, const char *what,
                        const char *name) {
    return dl_fail_at(err, g->file, 0, 0, NULL, "%s '%.100s'", what, name);
}

/* ---- arguments ---- */

const struct dl_json_node *dl_pt2_argument(const struct dl_pt2_call *call, const char *name) {
    for (const struct dl_json_node *e = call->inputs; e != NULL; e = e->next) {
        const struct dl_json_node *value = dl_json_get(e, "arg");
        if (strcmp(word(e, "name"), name) != 0 || value == NULL || value->child == NULL) continue;
        return strcmp(value->child->key, "as_none") == 0 ? NULL : value->child;
    }
    return NULL;
}

static bool add_tensor(const struct dl_pt2_call *call, const struct dl_json_node *tensor,
                       int out[DL_PT2_LIST], int *count) {
    if (word(tensor, "name")[0] == '\0' || *count == DL_PT2_LIST) return false;
    out[(*count)++] = dl_onnx_value(call->graph, word(tensor, "name"));
    return true;
}

int dl_pt2_tensors(const struct dl_pt2_call *call, const struct dl_json_node *argument,
                   int out[DL_PT2_LIST]) {
    int count = 0;
    if (argument == NULL || argument->key == NULL) return 0;
    if (strcmp(argument->key, "as_tensor") == 0) add_tensor(call, argument, out, &count);
    if (strcmp(argument->key, "as_tensors") == 0)
        for (const struct dl_json_node *e = argument->child; e != NULL; e = e->next)
            if (!add_tensor(call, e, out, &count)) return 0;
    return count;
}

double dl_pt2_number(const struct dl_pt2_call *call, const char *name, double otherwise) {
    return number(dl_pt2_argument(call, name), otherwise);
}

int dl_pt2_numbers(const struct dl_pt2_call *call, const char *name, double out[DL_PT2_LIST]) {
    const struct dl_json_node *n = dl_pt2_argument(call, name);
    int count = 0;
    if (n == NULL || (n->kind != DL_JSON_ARRAY && n->kind != DL_JSON_NUMBER)) return 0;
    if (n->kind == DL_JSON_NUMBER) {
        out[0] = n->number;
        return 1;
    }
    for (const struct dl_json_node *e = n->child; e != NULL; e = e->next) {
        if (e->kind != DL_JSON_NUMBER || count == DL_PT2_LIST) return 0;
        out[count++] = e->number;
    }
    return count;
}

/* ---- values ---- */

static bool is_float(double type) { /* ScalarType: half, float, double, bfloat16 */
    return type == 6 || type == 7 || type == 8 || type == 13;
}

/* An extent, of a dynamic one the extent of the example. */
static double extent(const struct dl_json_node *n) {
    const struct dl_json_node *expression = dl_json_get(n, "as_expr");
    return expression != NULL ? number(dl_json_get(dl_json_get(expression, "hint"), "as_int"), NAN)
                              : number(dl_json_get(n, "as_int"), NAN);
}

static enum dl_code read_shape(struct dl_onnx_graph *g, const struct dl_json_node *tensor,
                               struct dl_err *err) {
    const struct dl_json_node *sizes = dl_json_get(tensor, "sizes");
    const int index = dl_onnx_value(g, tensor->key);
    struct dl_onnx_value *v = &g->values[index];
    double elements = 1;
    v->declared_rank = 0;
    for (const struct dl_json_node *e = sizes != NULL ? sizes->child : NULL; e != NULL;
         e = e->next) {
        const double of = extent(e);
        if (v->declared_rank == DL_ONNX_RANK)
            return bad(g, err, "expected at most 8 dimensions of", v->name);
        if (!(of >= 0) || of != floor(of) || !((elements *= fmax(of, 1)) <= 9007199254740992.0))
            return bad(g, err, "expected the extents of the example inputs in the shape of",
                       v->name);
        v->declared[v->declared_rank++] = (int64_t)of;
    }
    v->floating = is_float(number(dl_json_get(tensor, "dtype"), 0));
    return DL_OK;
}

static void take_shape(struct dl_onnx_value *v) {
    v->rank = v->declared_rank < 0 ? 0 : v->declared_rank;
    memcpy(v->dims, v->declared, sizeof v->dims);
    v->made = true;
}

static void make_constant(struct dl_onnx_value *v) {
    take_shape(v);
    v->known = v->constant = v->initializer = true;
}

/* Parameters, buffers and constants are initializers; what the user gives are inputs. */
static enum dl_code read_inputs(struct dl_onnx_graph *g, const struct dl_json_node *specs,
                                struct dl_err *err) {
    g->inputs = dl_arena_alloc(g->arena, (size_t)(specs != NULL ? specs->child_count : 0),
                               sizeof *g->inputs);
    for (const struct dl_json_node *e = specs != NULL ? specs->child : NULL; e != NULL;
         e = e->next) {
        const struct dl_json_node *given = e->child, *arg = dl_json_get(given, "arg"),
                                  *tensor = dl_json_get(arg, "as_tensor");
        if (given == NULL) return bad(g, err, "expected inputs of", "signature");
        const bool user = strcmp(given->key, "user_input") == 0;
        const char *name = word(tensor != NULL ? tensor : arg, "name");
        if (name[0] == '\0') continue; /* a number among the inputs */
        const int index = dl_onnx_value(g, name);
        struct dl_onnx_value *v = &g->values[index];
        if (v->made) return bad(g, err, "made twice: input", name);
        if (v->declared_rank < 0) return bad(g, err, "no shape of", name);
        if (!user) {
            make_constant(v);
        } else if (v->declared_rank > 0) {
            take_shape(v);
            g->inputs[g->input_count++] = index;
        } else {
            return bad(g, err, "expected a batch of", name);
        }
    }
    return g->input_count > 0 ? DL_OK : bad(g, err, "expected an input of graph", g->name);
}

/* ---- calls ---- */

static bool all_constant(const struct dl_pt2_call *call) {
    int list[DL_PT2_LIST];
    for (const struct dl_json_node *e = call->inputs; e != NULL; e = e->next) {
        const struct dl_json_node *value = dl_json_get(e, "arg");
        const int count = dl_pt2_tensors(call, value != NULL ? value->child : NULL, list);
        for (int i = 0; i < count; i++)
            if (!call->graph->values[list[i]].initializer) return false;
    }
    return true;
}

/* Views of parameters stay operators: a layer finds the parameter behind them. */
static bool is_view(const char *name) {
    return dl_has_word("t transpose permute view reshape unsqueeze squeeze expand alias contiguous "
                       "to _to_copy detach clone slice select flatten",
                       name);
}

static enum dl_code read_call(struct dl_onnx_graph *g, int *capacity,
                              const struct dl_json_node *node, struct dl_err *err) {
    static const char prefix[] = "torch.ops.aten.";
    const char *target = word(node, "target");
    struct dl_pt2_call call = {.graph = g, .node_capacity = capacity};
    const struct dl_json_node *inputs = dl_json_get(node, "inputs"),
                              *outputs = dl_json_get(node, "outputs");
    if (strncmp(target, prefix, sizeof prefix - 1) != 0) {
        if (outputs == NULL || outputs->child == NULL) return DL_OK; /* an assertion */
        call.operator_name = dl_arena_strdup(g->arena, target);
    } else {
        const char *at = target + sizeof prefix - 1;
        size_t length = strcspn(at, ".");
        if (length > 1 && at[length - 1] == '_') length--;
        call.operator_name = dl_arena_printf(g->arena, "%.*s", (int)length, at);
    }
    call.inputs = inputs != NULL ? inputs->child : NULL;
    for (const struct dl_json_node *e = outputs != NULL ? outputs->child : NULL; e != NULL;
         e = e->next) {
        int list[DL_PT2_LIST];
        const int count = dl_pt2_tensors(&call, e->child, list);
        for (int i = 0; i < count && call.output_count < DL_PT2_LIST; i++)
            call.outputs[call.output_count++] = list[i];
    }
    if (call.output_count == 0) return DL_OK; /* numbers of shapes, assertions */
    call.name = g->values[call.outputs[0]].name;
    for (int i = 0; i < call.output_count; i++)
        if (g->values[call.outputs[i]].made) return bad(g, err, "made twice: value", call.name);
    if (all_constant(&call) && !is_view(call.operator_name))
        for (int i = 0; i < call.output_count; i++) make_constant(&g->values[call.outputs[i]]);
    else
        dl_pt2_translate(&call);
    return DL_OK;
}

static enum dl_code read_graph(struct dl_onnx_graph *g, const struct dl_json_node *module,
                               struct dl_err *err) {
    const struct dl_json_node *graph = dl_json_get(module, "graph"),
                              *tensors = dl_json_get(graph, "tensor_values"),
                              *nodes = dl_json_get(graph, "nodes"),
                              *outputs = dl_json_get(graph, "outputs");
    int capacity = 0;
    if (tensors == NULL || nodes == NULL || outputs == NULL)
        return bad(g, err, "expected nodes, tensor_values and outputs of", "graph");
    for (const struct dl_json_node *e = tensors->child; e != NULL; e = e->next)
        DL_TRY(read_shape(g, e, err));
    DL_TRY(read_inputs(g, dl_json_get(dl_json_get(module, "signature"), "input_specs"), err));
    for (const struct dl_json_node *e = nodes->child; e != NULL; e = e->next)
        DL_TRY(read_call(g, &capacity, e, err));
    if (g->node_count == 0) return bad(g, err, "expected at least one node in graph", g->name);
    g->outputs = dl_arena_alloc(g->arena, (size_t)outputs->child_count, sizeof *g->outputs);
    for (const struct dl_json_node *e = outputs->child; e != NULL; e = e->next) {
        const char *name = word(dl_json_get(e, "as_tensor"), "name");
        if (name[0] == '\0') continue;
        const int index = dl_onnx_value(g, name);
        if (!g->values[index].made) return bad(g, err, "nothing makes output", name);
        if (!g->values[index].constant) g->outputs[g->output_count++] = index;
    }
    return DL_OK;
}

enum dl_code dl_pt2_parse(const char *path, const char *json, size_t length, struct dl_arena *arena,
                          struct dl_onnx_graph *out, struct dl_err *err) {
    struct dl_json *document;
    struct dl_onnx_graph g = {
        .file = path, .name = "graph", .format = "torch.export", .arena = arena};
    DL_TRY(dl_json_parse(path, json, length, arena, &document, err));
    const struct dl_json_node *version = dl_json_get(document->root, "schema_version"),
                              *module = dl_json_get(document->root, "graph_module");
    if (module == NULL || number(dl_json_get(version, "major"), 0) != SCHEMA)
        return dl_fail_at(err, path, 0, 0, "schema_version",
                          "expected a program of torch.export, schema %d; `python -m dlmodel "
                          "export %.200s` reads it with its own PyTorch",
                          SCHEMA, path);
    g.producer = dl_arena_printf(arena, "PyTorch %.60s", word(document->root, "torch_version"));
    g.opset = (int64_t)number(dl_json_get(dl_json_get(document->root, "opset_version"), "aten"), 0);
    DL_TRY(read_graph(&g, module, err));
    *out = g;
    return DL_OK;
}

enum dl_code dl_pt2_read(const struct dl_data *data, const char *path, struct dl_arena *arena,
                         struct dl_onnx_graph *out, struct dl_err *err) {
    char *bytes, *json;
    size_t length, size;
    DL_TRY(dl_data_read(data, path, (size_t)1 << 36, arena, &bytes, &length, err));
    DL_TRY(dl_zip_file(&(struct dl_zip){path, (const unsigned char *)bytes, length},
                       "models/model.json", DL_JSON_BYTES, arena, &json, &size, err));
    if (json == NULL)
        return dl_fail_at(err, path, 0, 0, NULL,
                          "expected a torch.export archive with models/model.json in it; older "
                          "ones are read by `python -m dlmodel export %.200s`",
                          path);
    return dl_pt2_parse(path, json, size, arena, out, err);
}
