/* kernel_table_stream.c - tables of streams: what each named operation reads and writes. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/machine/kernel_columns.h"
#include "model/machine/kernel_table.h"

/* Operations of one kernel by name (see canonical); elements read and written, per element of the
 * longest tensor, by a fused kernel. NAN: the table's bytes alone say. */
static const struct operation {
    const char *name;
    enum dl_work work;
    double read, write, backward_read, backward_write;
} operations[] = {
    {"rmsnorm", DL_WORK_RMSNORM, 1, 1, 4, 1},
    {"fusedaddrmsnorm", DL_WORK_RMSNORM, 2, 2, 3, 1},
    {"layernorm", DL_WORK_LAYERNORM, 1, 1, 4, 1},
    {"batchnorm", DL_WORK_BATCHNORM, 2, 1, 4, 1},
    {"batchnormstats", DL_WORK_BATCHNORM, 1, 0, NAN, NAN},
    {"groupnorm", DL_WORK_ANY, NAN, NAN, NAN, NAN},
    {"instancenorm", DL_WORK_ANY, NAN, NAN, NAN, NAN},
    {"maxpool", DL_WORK_POOLING, NAN, NAN, NAN, NAN},
    {"avgpool", DL_WORK_POOLING, NAN, NAN, NAN, NAN},
    {"softmax", DL_WORK_SOFTMAX, 1, 1, 2, 1},
    {"logsoftmax", DL_WORK_SOFTMAX, 1, 1, 2, 1},
    {"gelu", DL_WORK_ACTIVATION, 1, 1, 2, 1},
    {"relu", DL_WORK_ACTIVATION, 1, 1, 2, 1},
    {"leakyrelu", DL_WORK_ACTIVATION, 1, 1, 2, 1},
    {"elu", DL_WORK_ACTIVATION, 1, 1, 2, 1},
    {"selu", DL_WORK_ACTIVATION, 1, 1, 2, 1},
    {"silu", DL_WORK_ACTIVATION, 1, 1, 2, 1},
    {"sigmoid", DL_WORK_ACTIVATION, 1, 1, 2, 1},
    {"hardsigmoid", DL_WORK_ACTIVATION, 1, 1, 2, 1},
    {"tanh", DL_WORK_ACTIVATION, 1, 1, 2, 1},
    {"hardtanh", DL_WORK_ACTIVATION, 1, 1, 2, 1},
    {"softplus", DL_WORK_ACTIVATION, 1, 1, 2, 1},
    {"clampmin", DL_WORK_ACTIVATION, 1, 1, 2, 1},
    {"threshold", DL_WORK_ANY, 2, 1, 2, 1},
    {"siluandmul", DL_WORK_GATED, NAN, NAN, NAN, NAN},
    {"swiglu", DL_WORK_GATED, NAN, NAN, NAN, NAN},
    {"geglu", DL_WORK_GATED, NAN, NAN, NAN, NAN},
    {"rope", DL_WORK_ROPE, NAN, NAN, NAN, NAN},
    {"crossentropy", DL_WORK_CROSS_ENTROPY, NAN, NAN, NAN, NAN},
    {"dropout", DL_WORK_DROPOUT, 1, 1, 1, 1},
    {"embedding", DL_WORK_EMBEDDING, NAN, NAN, NAN, NAN},
    {"embeddinglookup", DL_WORK_EMBEDDING, NAN, NAN, NAN, NAN},
    {"add", DL_WORK_ANY, 2, 1, 2, 1},
    {"residualadd", DL_WORK_ANY, 2, 1, 2, 1},
    {"addtensor+tensor", DL_WORK_ANY, 2, 1, NAN, NAN},
    {"addscalar", DL_WORK_ANY, 1, 1, NAN, NAN},
    {"mul", DL_WORK_ANY, 2, 1, NAN, NAN},
    {"mulscalar", DL_WORK_ANY, 1, 1, NAN, NAN},
    {"multensor*tensor", DL_WORK_ANY, 2, 1, NAN, NAN},
    {"div", DL_WORK_ANY, 2, 1, NAN, NAN},
    {"divscalar", DL_WORK_ANY, 1, 1, NAN, NAN},
    {"divtensor/tensor", DL_WORK_ANY, 2, 1, NAN, NAN},
    {"neg", DL_WORK_ANY, 1, 1, NAN, NAN},
    {"rsqrt", DL_WORK_ANY, 1, 1, NAN, NAN},
    {"zero", DL_WORK_ANY, 0, 1, NAN, NAN},
    {"copy", DL_WORK_ANY, 1, 1, NAN, NAN},
    {"fp8quantizationwithagivenscale", DL_WORK_CAST, NAN, NAN, NAN, NAN},
    {"fp8blockwisequantization", DL_WORK_CAST, NAN, NAN, NAN, NAN},
    /* Updates, per element of all parameters; of lists, per element of all lists together */
    {"adam", DL_WORK_OPTIMIZER, 4, 3, NAN, NAN},
    {"adamw", DL_WORK_OPTIMIZER, 4, 3, NAN, NAN},
    {"foreachadd", DL_WORK_OPTIMIZER, 1, 1, NAN, NAN},
    {"foreachmul", DL_WORK_OPTIMIZER, 1, 1, NAN, NAN},
    {"foreachdiv", DL_WORK_OPTIMIZER, 1, 1, NAN, NAN},
    {"foreachsqrt", DL_WORK_OPTIMIZER, 1, 1, NAN, NAN},
    {"foreachlerp", DL_WORK_OPTIMIZER, 1, 1.0 / 2.0, NAN, NAN},
    {"foreachaddcmul", DL_WORK_OPTIMIZER, 1, 1.0 / 3.0, NAN, NAN},
    {"foreachaddcdiv", DL_WORK_OPTIMIZER, 1, 1.0 / 3.0, NAN, NAN},
};

enum { NAME_SIZE = 64 };

static bool drop_start(char *name, const char *start) {
    const size_t length = strlen(start);
    if (strncmp(name, start, length) != 0) return false;
    memmove(name, name + length, strlen(name + length) + 1);
    return true;
}

static bool drop_end(char *name, const char *end) {
    const size_t length = strlen(name), short_length = strlen(end);
    if (length <= short_length || strcmp(name + length - short_length, end) != 0) return false;
    name[length - short_length] = '\0';
    return true;
}

/* The name of an operation without what its library adds: "aten::cudnn_batch_norm_backward",
 * "Max_Pooling_2D", "adam (fused)" become "batchnorm", "maxpool", "adam". Returns whether the name
 * itself says backward. */
static bool canonical(const char *name, size_t length, char out[NAME_SIZE]) {
    static const char *const starts[] = {"aten::", "native", "cudnn", "miopen", "torch.", "nn."};
    static const char *const ends[] = {"1d", "2d", "3d", "withindices"};
    size_t n = 0;
    for (size_t i = 0; i < length && name[i] != '(' && n + 1 < NAME_SIZE; i++)
        if (name[i] != '_' && name[i] != ' ') out[n++] = (char)tolower((unsigned char)name[i]);
    out[n] = '\0';
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) drop_start(out, starts[i]);
    const bool backward = drop_end(out, "backward");
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        if (drop_end(out, ends[i])) drop_end(out, ends[i == 3 ? 1 : i]);
    if (drop_end(out, "pooling")) strcat(out, "pool"); /* shorter than what it replaces */
    if (drop_start(out, "average")) {
        memmove(out + 3, out, strlen(out) + 1);
        memcpy(out, "avg", 3);
    }
    return backward;
}

/* Elements of the operands in "16x559x1024; 1024", and of the longest; false: no such list. */
static bool operands(const char *shape, double *all, double *longest) {
    *all = *longest = 0.0;
    for (const char *at = shape; *at != '\0';) {
        double product = 1.0;
        char *end = NULL;
        do {
            product *= strtod(at, &end);
            if (end == at) return false;
            at = *end == 'x' ? end + 1 : end;
        } while (*end == 'x');
        *all += product;
        *longest = fmax(*longest, product);
        if (*at != ';' && *at != '\0') return false;
        at += strspn(at, "; ");
    }
    return *longest > 0.0;
}

/* The number after "NAME=" in "H=1024; M=2048"; NAN: none. */
static double named(const char *shape, const char *name) {
    const size_t length = strlen(name);
    for (const char *at = shape; at != NULL; at = strchr(at, ';')) {
        at += strspn(at, "; ");
        if (strncmp(at, name, length) == 0 && at[length] == '=')
            return strtod(at + length + 1, NULL);
    }
    return NAN;
}

/* Rows of a normalization or softmax, and rows times columns, by such names; NAN: not given. */
static double rows_by_columns(const char *shape, double *rows_out) {
    static const char *const rows[] = {"BT", "M", "T"}, *const columns[] = {"hidden_size", "H",
                                                                            "N"};
    double row = NAN, column = NAN;
    for (int i = 2; i >= 0; i--) {
        if (!isnan(named(shape, rows[i]))) row = named(shape, rows[i]);
        if (!isnan(named(shape, columns[i]))) column = named(shape, columns[i]);
    }
    *rows_out = row;
    return row * column;
}

/* Rows of "8x3137x768; 768; 768": all but the last dimension of the first operand; NAN: no list. */
static double rows_of(const char *shape) {
    double rows = 1.0, last = NAN;
    for (const char *at = shape;; at++) {
        char *end = NULL;
        const double size = strtod(at, &end);
        if (end == at) return NAN;
        if (!isnan(last)) rows *= last;
        last = size;
        at = end;
        if (*at != 'x') return rows;
    }
}

/* A normalization that PyTorch composes of several kernels; the activation of a Hugging Face MLP,
 * timed with the product that follows it (five passes in the table's two: 3.0 TB/s on an H100,
 * where two would be 1.2 and the same kernel alone attains 2.6). */
static bool composed(const struct operation *op, const char *published, const char *library) {
    const char *name = op->name;
    const bool norm = op->work == DL_WORK_RMSNORM;
    if (strcmp(name, "silu") == 0 && strstr(library, "(Hugging Face)") != NULL) return true;
    if (strstr(published, "several kernels") != NULL) return true;
    return norm && (strcmp(library, "huggingface") == 0 || strcmp(library, "torch") == 0 ||
                    (name[0] == 'f' && strstr(library, "fused_add") == NULL &&
                     strncmp(library, "liger", 5) == 0));
}

/* Whether a kernel cannot read its operands in their order, several elements at once: one of them
 * is repeated along a dimension ("1x64x512x512; 64x1x1"; a scalar is none), or the result has
 * another order (a copy). Kernels that can attain twice the rate. */
static bool is_strided(const struct operation *op, const char *shape) {
    double all, longest;
    if (op->work != DL_WORK_ANY) return false;
    if (strncmp(op->name, "copy", 4) == 0) return true;
    if (strchr(shape, ';') == NULL || !operands(shape, &all, &longest)) return false;
    const double count = round(all / longest), rest = all - longest;
    return rest > 1.0 && fabs(all - count * longest) > 0.0;
}

/* A serving engine's own kernels, the vendor library's, or those of a framework. */
static enum dl_variant variant_of(const struct operation *op, const char *shape,
                                  const char *library) {
    const enum dl_work work = op->work;
    const bool own = work == DL_WORK_RMSNORM || work == DL_WORK_LAYERNORM ||
                     work == DL_WORK_GATED || work == DL_WORK_ACTIVATION;
    if (is_strided(op, shape)) return DL_VARIANT_STRIDED;
    if (strcmp(library, "cudnn") == 0) return DL_VARIANT_VENDOR;
    if (strcmp(library, "torch_compile") == 0) return DL_VARIANT_COMPILED;
    return own && strstr(library, "vLLM") != NULL ? DL_VARIANT_ENGINE : DL_VARIANT_PLAIN;
}

static const struct operation *operation_of(const char *name, size_t length, bool *backward) {
    char words[NAME_SIZE];
    *backward = canonical(name, length, words);
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++)
        if (strcmp(operations[i].name, words) == 0) return &operations[i];
    return NULL;
}

/* Backward normalizations of cuDNN, Liger and the like sum the gradient of the weights while they
 * compute that of the input; PyTorch and its compiler read both tensors once more for it. */
static bool in_one_kernel(const char *library) {
    return strcmp(library, "cudnn") == 0 || strncmp(library, "liger", 5) == 0 ||
           strncmp(library, "Oink", 4) == 0 || strstr(library, "FastLayerNorm") != NULL;
}

/* What a kernel moves beyond a table's least, both in elements: the second kernel of a
 * normalization's gradient; index and gradient of each window in PyTorch's gradient of max pooling
 * (F-POOL-BACKWARD), whose usual windows of 3 x 3 every 2 points meet in 4. */
static double beyond_least(const struct operation *op, const char *library, bool forward,
                           double elements, double least) {
    enum { WINDOWS = 4 };
    const bool norm = op->work == DL_WORK_LAYERNORM || op->work == DL_WORK_RMSNORM;
    if (forward || !(elements > 0.0)) return 0.0;
    if (norm && !in_one_kernel(library)) return 2.0 * elements;
    return strcmp(op->name, "maxpool") == 0 && strstr(library, "torch") != NULL
               ? fmax((2.0 * WINDOWS + 1.0) * elements - least, 0.0)
               : 0.0;
}

/* What the columns of a row say. */
struct columns {
    const char *op, *pass, *shape, *library;
    double bytes, elements;
};

/* Work and traffic of one pass, by the table's bytes, else by its operands, else by its elements.
 * Batch norm reads its input twice, which a table's least bytes do not count. */
static bool move(const struct operation *op, const struct columns *c, double elements,
                 enum dl_precision precision, enum dl_pass pass, struct dl_kernel *out) {
    const double bytes = c->bytes;
    const bool one_kernel = in_one_kernel(c->library);
    const bool forward = pass == DL_FORWARD || op->work == DL_WORK_OPTIMIZER;
    const double read = forward ? op->read
                                : op->backward_read -
                                      (one_kernel && op->backward_read > 3.0 ? 2.0 : 0.0),
                 write = forward ? op->write : op->backward_write;
    double all, longest;
    if (op->work == DL_WORK_BATCHNORM && elements > 0.0 && !isnan(read)) {
        *out = dl_kernel_stream(pass, elements, read * elements, write * elements);
    } else if (bytes > 0.0) {
        const double width = dl_precision_bytes(precision),
                     written = elements > 0.0 ? fmin(elements, bytes / width) : 0.0;
        *out = dl_kernel_stream(pass, 0.0, 0.0, written);
        out->extra_bytes = bytes - written * width +
                           beyond_least(op, c->library, forward, elements, bytes / width) * width;
    } else if (operands(c->shape, &all, &longest) && forward && op->work == DL_WORK_ANY) {
        /* Words that name two tensors may come with the shape of one. */
        const bool two = strstr(op->name, "tensor") != NULL && all <= longest;
        *out = dl_kernel_stream(pass, longest, two ? 2.0 * longest : all, longest);
        if (strncmp(op->name, "copy", 4) == 0) out->read_elements = longest;
    } else if (elements > 0.0 && !isnan(read)) {
        *out = dl_kernel_stream(pass, elements, read * elements, write * elements);
    } else {
        return false;
    }
    return true;
}

/* Channels of "32x64x112x112", channels first; NAN: another shape. */
static double channels_of(const char *shape) {
    char *end = NULL;
    strtod(shape, &end);
    if (end == shape || *end != 'x') return NAN;
    const char *second = end + 1;
    const double channels = strtod(second, &end);
    return end != second && *end == 'x' ? channels : NAN;
}

/* The kernel of one operation in one pass; returns why it has none, or NULL. */
static const char *kernel_of(const struct columns *c, const char *name, size_t length,
                             enum dl_pass pass, enum dl_precision precision,
                             struct dl_kernel *out) {
    bool backward;
    const struct operation *op = operation_of(name, length, &backward);
    if (op == NULL) return "no kernel of this operation is described";
    if (composed(op, c->op, c->library)) return "composed of several kernels";
    double rows = rows_of(c->shape), elements = c->elements;
    if (!(c->bytes > 0.0) && !(elements > 0.0)) elements = rows_by_columns(c->shape, &rows);
    if (backward && pass == DL_FORWARD) pass = DL_BACKWARD_DATA;
    if (!move(op, c, elements, precision, pass, out)) return "neither bytes nor elements are given";
    if (op->work == DL_WORK_BATCHNORM)
        rows = strstr(c->library, "NHWC") != NULL ? NAN : channels_of(c->shape);
    const bool norm = op->work == DL_WORK_LAYERNORM || op->work == DL_WORK_RMSNORM ||
                      op->work == DL_WORK_BATCHNORM;
    if (norm && rows > 0.0) out->m = rows;
    out->work = op->work;
    out->variant = variant_of(op, c->shape, c->library);
    return NULL;
}

static struct dl_kernel *next_kernel(struct dl_kernel_row *out, int i) {
    return i == 0 ? &out->kernel : &out->more[i - 1];
}

/* "dropout + residual add + layer_norm": a kernel each. */
static const char *kernels_of_list(struct columns c, enum dl_pass pass, struct dl_kernel_row *out) {
    const char *at = c.op;
    c.bytes = NAN; /* of all together */
    for (int i = 0; i <= DL_ROW_MORE; i++) {
        const char *end = strstr(at, " + "), *why;
        const size_t length = end != NULL ? (size_t)(end - at) : strlen(at);
        why = kernel_of(&c, at, length, pass, out->precision, next_kernel(out, i));
        if (why != NULL) return why;
        out->more_count = i;
        if (end == NULL) return NULL;
        at = end + 3;
    }
    return "more kernels in one time than are read";
}

enum dl_code dl_kernel_table_stream(const struct dl_csv *csv, int row, enum dl_pass pass,
                                    struct dl_kernel_row *out, struct dl_err *err) {
    struct columns c = {.op = dl_kernel_table_cell(csv, row, "op"),
                        .pass = dl_kernel_table_cell(csv, row, "pass"),
                        .shape = dl_kernel_table_cell(csv, row, "shape"),
                        .library = dl_kernel_table_cell(csv, row, "library")};
    DL_TRY(dl_kernel_number(csv, row, "bytes_min", &c.bytes, err));
    DL_TRY(dl_kernel_number(csv, row, "elements", &c.elements, err));
    out->kernel.op = DL_OP_STREAM; /* also of a row without a kernel */
    const char *last = c.op;
    for (const char *at = c.op; (at = strstr(at, " + ")) != NULL;) last = at += 3;
    if (last != c.op && strstr(c.library, "eager") != NULL) {
        out->why = kernels_of_list(c, pass, out);
        return DL_OK;
    }
    const bool both = strcmp(c.pass, "fwd_bwd") == 0;
    if (both) c.bytes = NAN; /* of which pass is not known */
    const enum dl_precision precision = out->precision;
    out->why = kernel_of(&c, last, strlen(last), pass, precision, &out->kernel);
    if (out->why != NULL || !both) return DL_OK;
    out->why = kernel_of(&c, last, strlen(last), DL_BACKWARD_DATA, precision, &out->more[0]);
    out->more_count = 1;
    return DL_OK;
}
