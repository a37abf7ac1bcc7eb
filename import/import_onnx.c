/* import_onnx.c - an ONNX file becomes a graph of values and nodes. The only file that knows
 * protobuf-c. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/core/file.h"
#include "model/core/json.h"
#include "import/import_graph.h"

/* ---- values by name ---- */

static size_t hash_of(const char *name) {
    size_t hash = 5381;
    for (; *name != 0; name++) hash = hash * 33 + (unsigned char)*name;
    return hash;
}

static void grow_table(struct dl_onnx_graph *g) {
    const int size = g->table_size == 0 ? 1024 : 2 * g->table_size;
    int *table = dl_arena_alloc(g->arena, (size_t)size, sizeof *table);
    for (int v = 0; v < g->value_count; v++) {
        size_t at = hash_of(g->values[v].name) % (size_t)size;
        while (table[at] != 0) at = (at + 1) % (size_t)size;
        table[at] = v + 1;
    }
    g->table = table;
    g->table_size = size;
}

int dl_onnx_value(struct dl_onnx_graph *g, const char *name) {
    if (2 * g->value_count >= g->table_size) grow_table(g);
    size_t at = hash_of(name) % (size_t)g->table_size;
    for (; g->table[at] != 0; at = (at + 1) % (size_t)g->table_size) {
        if (strcmp(g->values[g->table[at] - 1].name, name) == 0) return g->table[at] - 1;
    }
    g->values = dl_arena_grow(g->arena, g->values, (size_t)g->value_count, sizeof *g->values);
    struct dl_onnx_value *v = &g->values[g->value_count];
    *v = (struct dl_onnx_value){.name = dl_arena_strdup(g->arena, name),
                                .origin = g->value_count,
                                .node = -1,
                                .declared_rank = -1};
    g->table[at] = ++g->value_count;
    return g->value_count - 1;
}

const struct dl_onnx_attribute *dl_onnx_attribute(const struct dl_onnx_node *node,
                                                  const char *name) {
    for (int i = 0; i < node->attribute_count; i++) {
        if (strcmp(node->attributes[i].name, name) == 0) return &node->attributes[i];
    }
    return NULL;
}

double dl_onnx_list_at(const struct dl_onnx_node *node, const char *name, int i, double otherwise) {
    const struct dl_onnx_attribute *a = dl_onnx_attribute(node, name);
    return a != NULL && i < a->count ? a->list[i] : otherwise;
}

double dl_onnx_number(const struct dl_onnx_node *node, const char *name, double otherwise) {
    const struct dl_onnx_attribute *a = dl_onnx_attribute(node, name);
    return a == NULL ? otherwise : a->number;
}

double dl_onnx_elements(const struct dl_onnx_value *v) {
    double product = 1;
    if (!v->known) return NAN;
    for (int i = 0; i < v->rank; i++) product *= (double)v->dims[i];
    return product;
}

/* ---- the graph's inputs ---- */

enum { DIMS_USED = 64 };

/* The number that --dim gives to a symbol, the last one; 0: none. */
static int64_t given_extent(const struct dl_onnx_dim *dims, int count, const char *symbol,
                            bool *used) {
    int64_t extent = 0;
    for (int k = 0; k < count && k < DIMS_USED; k++) {
        if (strcmp(dims[k].name, symbol) != 0) continue;
        extent = dims[k].extent;
        used[k] = true;
    }
    return extent;
}

/* Whether all products of some of its extents are whole numbers of a double. */
static bool is_countable(const struct dl_onnx_value *v) {
    double elements = 1;
    for (int d = 0; d < v->rank; d++) elements *= v->dims[d] > 0 ? (double)v->dims[d] : 1;
    return elements <= 9007199254740992.0;
}

enum dl_code dl_onnx_set_inputs(struct dl_onnx_graph *g, const struct dl_onnx_dim *dims,
                                int dim_count, struct dl_err *err) {
    bool used[DIMS_USED] = {false};
    g->batch = 1;
    const char *batch_name = NULL;
    for (int i = 0; i < g->input_count; i++) {
        struct dl_onnx_value *v = &g->values[g->inputs[i]];
        for (int d = 0; d < v->rank; d++) {
            if (v->symbols[d] == NULL) continue;
            const bool is_batch = batch_name != NULL && strcmp(batch_name, v->symbols[d]) == 0;
            int64_t extent = given_extent(dims, dim_count, v->symbols[d], used);
            if (extent == 0 && (is_batch || (d == 0 && (i == 0 || batch_name == NULL)))) extent = 1;
            if (extent == 0) {
                const char *name = v->symbols[d][0] == 0 ? "?" : v->symbols[d];
                return dl_fail(
                    err, DL_ERR_USAGE,
                    "input '%.60s' has a dimension '%.60s' without a number; give --dim %.60s=N",
                    v->name, name, name);
            }
            if (i == 0 && d == 0) batch_name = v->symbols[d];
            v->dims[d] = extent;
        }
        if (!is_countable(v))
            return dl_fail(err, DL_ERR_INPUT, "%.200s: input '%.60s' has more than 2^53 elements",
                           g->file, v->name);
        v->known = true;
        if (i == 0 && v->rank > 0) g->batch = v->dims[0];
    }
    for (int k = 0; k < dim_count && k < DIMS_USED; k++) {
        if (!used[k])
            return dl_fail(err, DL_ERR_USAGE,
                           "--dim: no input of the model has a dimension '%.60s'", dims[k].name);
    }
    return DL_OK;
}

#ifndef DL_HAVE_PROTOBUF_C

enum dl_code dl_onnx_parse(const char *name, const unsigned char *bytes, size_t length,
                           struct dl_arena *arena, struct dl_onnx_graph *out, struct dl_err *err) {
    (void)bytes, (void)length, (void)arena, (void)out;
    return dl_fail(
        err, DL_ERR_BACKEND,
        "%.200s: this dlmodel was built without protobuf-c, which reads ONNX models; install "
        "libprotobuf-c-dev and protobuf-c-compiler (make deps) and build again",
        name);
}

#else

#include "import/onnx.pb-c.h"
#include "import/onnx_budget.h"

static enum dl_code bad(const struct dl_onnx_graph *g, struct dl_err *err, const char *what,
                        const char *name) {
    return dl_fail_at(err, g->file, 0, 0, NULL, "%s '%.80s'", what, name != NULL ? name : "");
}

static bool is_float(int type) { return type == 1 || type == 10 || type == 11 || type == 16; }

/* IEEE half: only its value matters for the few scalars that are stored so. */
static double from_half(unsigned bits) {
    const int exponent = (int)((bits >> 10) & 31u);
    const double fraction = (double)(bits & 1023u), sign = (bits & 32768u) != 0 ? -1 : 1;
    if (exponent == 31) return NAN;
    return exponent == 0 ? sign * ldexp(fraction, -24)
                         : sign * ldexp(1024 + fraction, exponent - 25);
}

static double raw_number(const uint8_t *at, int type) {
    union {
        float f;
        double d;
        int64_t i;
        int32_t n;
    } u;
    switch (type) {
    case 1: memcpy(&u.f, at, 4); return (double)u.f;
    case 11: memcpy(&u.d, at, 8); return u.d;
    case 7: memcpy(&u.i, at, 8); return (double)u.i;
    case 6: memcpy(&u.n, at, 4); return (double)u.n;
    case 10: return from_half((unsigned)at[0] | (unsigned)at[1] << 8);
    case 9:
    case 2: return (double)at[0];
    case 3: return (double)(int8_t)at[0];
    default: return NAN;
    }
}

static size_t raw_width(int type) {
    switch (type) {
    case 1:
    case 6:
    case 12: return 4;
    case 7:
    case 11:
    case 13: return 8;
    case 4:
    case 5:
    case 10:
    case 16: return 2;
    default: return 1;
    }
}

/* From the list of the tensor's own type; false: none has `count` numbers. */
static bool typed_numbers(const DlOnnx__TensorProto *t, size_t count, double *numbers) {
    enum { HALF = 10 };
    if (t->n_float_data == count) {
        for (size_t i = 0; i < count; i++) numbers[i] = (double)t->float_data[i];
    } else if (t->n_int64_data == count) {
        for (size_t i = 0; i < count; i++) numbers[i] = (double)t->int64_data[i];
    } else if (t->n_int32_data == count) {
        for (size_t i = 0; i < count; i++)
            numbers[i] = t->data_type == HALF ? from_half((unsigned)t->int32_data[i])
                                              : (double)t->int32_data[i];
    } else if (t->n_double_data == count) {
        for (size_t i = 0; i < count; i++) numbers[i] = t->double_data[i];
    } else {
        return false;
    }
    return true;
}

/* Numbers of a small tensor; *out = NULL when the file leaves them out. */
static enum dl_code tensor_numbers(struct dl_onnx_graph *g, const DlOnnx__TensorProto *t,
                                   size_t count, const double **out, struct dl_err *err) {
    const int type = t->data_type;
    const size_t width = raw_width(type);
    double *numbers = dl_arena_alloc(g->arena, count, sizeof *numbers);
    *out = NULL;
    if (t->has_raw_data && t->raw_data.len > 0) {
        if (t->raw_data.len != count * width)
            return bad(g, err, "the data of a tensor do not fill its shape: ", t->name);
        for (size_t i = 0; i < count; i++)
            numbers[i] = raw_number(t->raw_data.data + i * width, type);
    } else if (count > 0 && typed_numbers(t, count, numbers)) {
        /* filled */
    } else if (t->n_float_data + t->n_int64_data + t->n_int32_data + t->n_double_data > 0) {
        return bad(g, err, "the data of a tensor do not fill its shape: ", t->name);
    } else if (count > 0) {
        return DL_OK;
    }
    for (size_t i = 0; i < count; i++) {
        if (isnan(numbers[i])) return DL_OK; /* of a type that nothing here needs */
    }
    *out = numbers;
    return DL_OK;
}

static enum dl_code read_tensor(struct dl_onnx_graph *g, const DlOnnx__TensorProto *t, int index,
                                struct dl_err *err) {
    struct dl_onnx_value *v = &g->values[index];
    double elements = 1;
    if (t->n_dims > DL_ONNX_RANK)
        return bad(g, err, "expected at most 8 dimensions of tensor", t->name);
    for (size_t i = 0; i < t->n_dims; i++) {
        if (t->dims[i] < 0) return bad(g, err, "a negative dimension of tensor", t->name);
        v->dims[i] = t->dims[i];
        if (t->dims[i] > 0) elements *= (double)t->dims[i];
    }
    if (!(elements <= 9007199254740992.0))
        return bad(g, err, "more than 2^53 elements in tensor", t->name);
    v->rank = (int)t->n_dims;
    v->known = v->constant = v->made = true;
    elements = dl_onnx_elements(v);
    v->floating = is_float(t->data_type);
    const bool data = t->n_float_data + t->n_int64_data + t->n_int32_data + t->n_double_data > 0 ||
                      t->raw_data.len > 0;
    if (!data && elements > 0) g->stripped_count++;
    if (elements > DL_ONNX_NUMBERS) return DL_OK;
    return tensor_numbers(g, t, (size_t)elements, &v->numbers, err);
}

/* "" names nothing: an input or output that is left out. */
static enum dl_code value_list(struct dl_onnx_graph *g, char **names, size_t count, int **out,
                               int *out_count, struct dl_err *err) {
    if (count > DL_ONNX_INPUTS)
        return bad(g, err, "more than 4096 inputs or outputs of a node in graph", g->name);
    int *list = dl_arena_alloc(g->arena, count, sizeof *list);
    for (size_t i = 0; i < count; i++) {
        list[i] = names[i][0] == 0 ? -1 : dl_onnx_value(g, names[i]);
    }
    *out = list;
    *out_count = (int)count;
    return DL_OK;
}

static enum dl_code read_attribute(struct dl_onnx_graph *g, const DlOnnx__AttributeProto *a,
                                   int node, struct dl_onnx_attribute *out, struct dl_err *err) {
    const size_t count = a->n_ints > 0 ? a->n_ints : a->n_floats;
    double *list = dl_arena_alloc(g->arena, count, sizeof *list);
    out->name = dl_arena_strdup(g->arena, a->name != NULL ? a->name : "");
    if (count > DL_ONNX_INPUTS) return bad(g, err, "more than 4096 numbers in attribute", a->name);
    for (size_t i = 0; i < count; i++)
        list[i] = a->n_ints > 0 ? (double)a->ints[i] : (double)a->floats[i];
    out->number = a->has_i ? (double)a->i : (double)a->f;
    out->list = list;
    out->count = (int)count;
    out->text = NULL;
    if (a->has_s) {
        out->text =
            dl_arena_strndup(g->arena, (const char *)a->s.data, a->s.len < 256 ? a->s.len : 256);
    }
    out->value = -1;
    if (a->t == NULL) return DL_OK;
    const char *name =
        dl_arena_printf(g->arena, " tensor %d of node %d", (int)g->value_count, node);
    out->value = name == NULL ? -1 : dl_onnx_value(g, name);
    return read_tensor(g, a->t, out->value, err);
}

static enum dl_code read_node(struct dl_onnx_graph *g, const DlOnnx__NodeProto *from, int index,
                              struct dl_err *err) {
    struct dl_onnx_node *n = &g->nodes[index];
    n->op = dl_arena_strdup(g->arena, from->op_type != NULL ? from->op_type : "");
    n->name = dl_arena_strdup(g->arena, from->name != NULL ? from->name : "");
    n->domain = dl_arena_strdup(
        g->arena, from->domain != NULL && strcmp(from->domain, "ai.onnx") != 0 ? from->domain : "");
    n->attributes = dl_arena_alloc(g->arena, from->n_attribute, sizeof *n->attributes);
    if (n->op[0] == 0) return bad(g, err, "a node without operator:", n->name);
    if (from->n_attribute > DL_ONNX_INPUTS)
        return bad(g, err, "more than 4096 attributes of node", n->name);
    for (size_t i = 0; i < from->n_attribute; i++) {
        DL_TRY(read_attribute(g, from->attribute[i], index, &n->attributes[i], err));
        n->attribute_count++;
    }
    DL_TRY(value_list(g, from->input, from->n_input, &n->inputs, &n->input_count, err));
    DL_TRY(value_list(g, from->output, from->n_output, &n->outputs, &n->output_count, err));
    for (int i = 0; i < n->input_count; i++) {
        if (n->inputs[i] < 0 || g->values[n->inputs[i]].made) continue;
        return bad(g, err,
                   "expected nodes in order of execution; this value is used before it is made:",
                   g->values[n->inputs[i]].name);
    }
    for (int i = 0; i < n->output_count; i++) {
        if (n->outputs[i] < 0) continue;
        struct dl_onnx_value *v = &g->values[n->outputs[i]];
        if (v->made) return bad(g, err, "made twice: value", v->name);
        v->made = true;
        v->node = index;
    }
    return DL_OK;
}

static enum dl_code read_declared(struct dl_onnx_graph *g, const DlOnnx__ValueInfoProto *info,
                                  bool input, struct dl_err *err) {
    const int index = dl_onnx_value(g, info->name != NULL ? info->name : "");
    struct dl_onnx_value *v = &g->values[index];
    const DlOnnx__TypeProto__Tensor *type = info->type != NULL ? info->type->tensor_type : NULL;
    if (type == NULL || type->shape == NULL) {
        return input ? bad(g, err, "expected a tensor with a shape as input", v->name) : DL_OK;
    }
    if (type->shape->n_dim > DL_ONNX_RANK)
        return bad(g, err, "expected at most 8 dimensions of", v->name);
    const int rank = (int)type->shape->n_dim;
    for (int d = 0; d < rank; d++) {
        const DlOnnx__TensorShapeProto__Dimension *from = type->shape->dim[d];
        if (from->has_dim_value && from->dim_value > 0 && from->dim_value <= 9007199254740992) {
            v->declared[d] = from->dim_value;
        } else {
            v->symbols[d] =
                dl_arena_strdup(g->arena, from->dim_param != NULL ? from->dim_param : "");
        }
    }
    v->declared_rank = rank;
    if (input) {
        v->rank = rank;
        memcpy(v->dims, v->declared, sizeof v->dims);
        v->floating = is_float(type->elem_type);
        v->made = true;
    }
    return DL_OK;
}

static enum dl_code read_inputs(struct dl_onnx_graph *g, const DlOnnx__GraphProto *from,
                                struct dl_err *err) {
    g->inputs = dl_arena_alloc(g->arena, from->n_input, sizeof *g->inputs);
    g->outputs = dl_arena_alloc(g->arena, from->n_output, sizeof *g->outputs);
    for (size_t i = 0; i < from->n_input; i++) {
        const int index =
            dl_onnx_value(g, from->input[i]->name != NULL ? from->input[i]->name : "");
        if (g->values[index].initializer) continue; /* older files list weights among the inputs */
        if (g->values[index].made) return bad(g, err, "made twice: input", g->values[index].name);
        DL_TRY(read_declared(g, from->input[i], true, err));
        g->inputs[g->input_count++] = index;
    }
    return DL_OK;
}

static enum dl_code read_graph(struct dl_onnx_graph *g, const DlOnnx__GraphProto *from,
                               struct dl_err *err) {
    g->name = dl_arena_strdup(g->arena, from->name != NULL ? from->name : "");
    if (from->n_node == 0) return bad(g, err, "expected at least one node in graph", g->name);
    if (from->n_node > 1000000)
        return bad(g, err, "expected at most 1000000 nodes in graph", g->name);
    for (size_t i = 0; i < from->n_initializer; i++) {
        const char *name = from->initializer[i]->name;
        const int index = dl_onnx_value(g, name != NULL ? name : "");
        if (g->values[index].made) return bad(g, err, "made twice: initializer", name);
        g->values[index].initializer = true;
        DL_TRY(read_tensor(g, from->initializer[i], index, err));
    }
    DL_TRY(read_inputs(g, from, err));
    if (g->input_count == 0) return bad(g, err, "expected an input of graph", g->name);
    g->nodes = dl_arena_alloc(g->arena, from->n_node, sizeof *g->nodes);
    for (size_t i = 0; i < from->n_node; i++) {
        DL_TRY(read_node(g, from->node[i], (int)i, err));
        g->node_count++;
    }
    for (size_t i = 0; i < from->n_output; i++) {
        const int index =
            dl_onnx_value(g, from->output[i]->name != NULL ? from->output[i]->name : "");
        if (!g->values[index].made)
            return bad(g, err, "nothing makes output", g->values[index].name);
        DL_TRY(read_declared(g, from->output[i], false, err));
        g->outputs[g->output_count++] = index;
    }
    for (size_t i = 0; i < from->n_value_info; i++)
        DL_TRY(read_declared(g, from->value_info[i], false, err));
    return DL_OK;
}

static enum dl_code read_model(struct dl_onnx_graph *g, const DlOnnx__ModelProto *model,
                               struct dl_err *err) {
    if (model->graph == NULL)
        return dl_fail_at(err, g->file, 0, 0, NULL,
                          "expected an ONNX model, found one without graph");
    for (size_t i = 0; i < model->n_opset_import; i++) {
        const char *domain = model->opset_import[i]->domain;
        if (domain == NULL || domain[0] == 0 || strcmp(domain, "ai.onnx") == 0)
            g->opset = model->opset_import[i]->version;
    }
    g->producer = dl_arena_printf(g->arena, "%.60s%s%.60s",
                                  model->producer_name != NULL ? model->producer_name : "",
                                  model->producer_version != NULL ? " " : "",
                                  model->producer_version != NULL ? model->producer_version : "");
    return read_graph(g, model->graph, err);
}

enum dl_code dl_onnx_parse(const char *name, const unsigned char *bytes, size_t length,
                           struct dl_arena *arena, struct dl_onnx_graph *out, struct dl_err *err) {
    struct dl_onnx_graph g = {
        .file = name, .name = "", .producer = "", .format = "ONNX", .arena = arena};
    struct dl_onnx_budget budget = {.left = 16 * length + (64u << 20)};
    ProtobufCAllocator allocator = {
        .alloc = dl_onnx_take, .free = dl_onnx_give, .allocator_data = &budget};
    if (length == 0)
        return dl_fail_at(err, name, 0, 0, NULL, "expected an ONNX model, found an empty file");
    DlOnnx__ModelProto *model = dl_onnx__model_proto__unpack(&allocator, length, bytes);
    if (model == NULL && budget.refused) {
        return dl_fail_at(err, name, 0, 0, NULL,
                          "the model does not fit in %zu MiB of memory; export it without weights",
                          (16 * length + (64u << 20)) >> 20);
    }
    if (model == NULL) {
        return dl_fail_at(err, name, 0, 0, NULL,
                          "expected an ONNX model: this is not its protobuf format, or the file is "
                          "cut off or damaged");
    }
    const enum dl_code code = read_model(&g, model, err);
    dl_onnx__model_proto__free_unpacked(model, &allocator);
    if (code == DL_OK) *out = g;
    return code;
}

#endif

enum dl_code dl_onnx_read(const struct dl_data *data, const char *path, struct dl_arena *arena,
                          struct dl_onnx_graph *out, struct dl_err *err) {
    char *bytes = NULL;
    size_t length = 0;
    const size_t most = 2147483647; /* protobuf's own limit */
    DL_TRY(dl_data_read(data, path, most, arena, &bytes, &length, err));
    return dl_onnx_parse(path, (const unsigned char *)bytes, length, arena, out, err);
}
