/* kernel_table_stream.c - tables of streams: what each named operation reads and writes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/machine/kernel_columns.h"
#include "model/machine/kernel_table.h"

/* Operations that one kernel does, by the words of the tables; elements read and written, per
 * element of the longest tensor, by a fused kernel. NAN: the table's bytes alone say. */
static const struct operation {
    const char *name;
    enum dl_work work;
    double read, write, backward_read, backward_write;
} operations[] = {
    {"rms_norm", DL_WORK_RMSNORM, 1, 1, 4, 1},
    {"rmsnorm", DL_WORK_RMSNORM, 1, 1, 4, 1},
    {"fused_add_rms_norm", DL_WORK_RMSNORM, 2, 2, 3, 1},
    {"layer_norm", DL_WORK_LAYERNORM, 1, 1, 4, 1},
    {"layernorm", DL_WORK_LAYERNORM, 1, 1, 4, 1},
    {"native_layer_norm", DL_WORK_LAYERNORM, 1, 1, 4, 1},
    {"softmax", DL_WORK_SOFTMAX, 1, 1, 2, 1},
    {"gelu", DL_WORK_ACTIVATION, 1, 1, 2, 1},
    {"GELU_", DL_WORK_ACTIVATION, 1, 1, 2, 1},
    {"relu", DL_WORK_ACTIVATION, 1, 1, 2, 1},
    {"relu_", DL_WORK_ACTIVATION, 1, 1, 2, 1},
    {"silu", DL_WORK_ACTIVATION, 1, 1, 2, 1},
    {"sigmoid", DL_WORK_ACTIVATION, 1, 1, 2, 1},
    {"tanh", DL_WORK_ACTIVATION, 1, 1, 2, 1},
    {"clamp_min", DL_WORK_ACTIVATION, 1, 1, 2, 1},
    {"clamp_min_", DL_WORK_ACTIVATION, 1, 1, 2, 1},
    {"silu_and_mul", DL_WORK_GATED, NAN, NAN, NAN, NAN},
    {"dropout", DL_WORK_DROPOUT, 1, 1, 1, 1},
    {"embedding lookup", DL_WORK_EMBEDDING, NAN, NAN, NAN, NAN},
    {"add", DL_WORK_ANY, 2, 1, 2, 1},
    {"add_", DL_WORK_ANY, 2, 1, 2, 1},
    {"add tensor+tensor", DL_WORK_ANY, 2, 1, NAN, NAN},
    {"add scalar", DL_WORK_ANY, 1, 1, NAN, NAN},
    {"mul", DL_WORK_ANY, 2, 1, NAN, NAN},
    {"mul scalar", DL_WORK_ANY, 1, 1, NAN, NAN},
    {"mul tensor*tensor", DL_WORK_ANY, 2, 1, NAN, NAN},
    {"mul_", DL_WORK_ANY, 2, 1, NAN, NAN},
    {"div", DL_WORK_ANY, 2, 1, NAN, NAN},
    {"div scalar", DL_WORK_ANY, 1, 1, NAN, NAN},
    {"div tensor/tensor", DL_WORK_ANY, 2, 1, NAN, NAN},
    {"neg", DL_WORK_ANY, 1, 1, NAN, NAN},
    {"rsqrt", DL_WORK_ANY, 1, 1, NAN, NAN},
    {"threshold_backward", DL_WORK_ANY, 2, 1, 2, 1},
    {"copy_", DL_WORK_ANY, 1, 1, NAN, NAN},
    {"fp8 quantization with a given scale", DL_WORK_CAST, NAN, NAN, NAN, NAN},
};

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
static bool composed(const char *name, const char *library) {
    const bool norm = strcmp(name, "rms_norm") == 0 || strcmp(name, "fused_add_rms_norm") == 0;
    if (strcmp(name, "silu") == 0 && strstr(library, "(Hugging Face)") != NULL) return true;
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

static const struct operation *operation_of(const char *name) {
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++)
        if (strcmp(operations[i].name, name) == 0) return &operations[i];
    return NULL;
}

/* Backward normalizations of cuDNN and Liger sum the gradient of the weights while they compute
 * that of the input; PyTorch and its compiler read both tensors once more for it. */
static bool in_one_kernel(const char *library) {
    return strcmp(library, "cudnn") == 0 || strncmp(library, "liger", 5) == 0;
}

/* Work and traffic, by the table's bytes, else by its operands, else by its elements. */
static void move(const struct operation *op, const char *shape, double bytes, double elements,
                 bool one_kernel, struct dl_kernel_row *out, enum dl_pass pass) {
    const bool forward = pass == DL_FORWARD;
    const double read = forward ? op->read
                                : op->backward_read -
                                      (one_kernel && op->backward_read > 3.0 ? 2.0 : 0.0),
                 write = forward ? op->write : op->backward_write;
    double all, longest;
    if (bytes > 0.0) {
        const double width = dl_precision_bytes(out->precision),
                     written = elements > 0.0 ? fmin(elements, bytes / width) : 0.0;
        out->kernel = dl_kernel_stream(pass, 0.0, 0.0, written);
        out->kernel.extra_bytes = bytes - written * width;
    } else if (operands(shape, &all, &longest) && forward && op->work == DL_WORK_ANY) {
        /* Words that name two tensors may come with the shape of one. */
        const bool two = strstr(op->name, "tensor") != NULL && all <= longest;
        out->kernel = dl_kernel_stream(pass, longest, two ? 2.0 * longest : all, longest);
        if (strncmp(op->name, "copy", 4) == 0) out->kernel.read_elements = longest;
    } else if (elements > 0.0 && !isnan(read)) {
        out->kernel = dl_kernel_stream(pass, elements, read * elements, write * elements);
    } else {
        out->why = "neither bytes nor elements are given";
    }
}

enum dl_code dl_kernel_table_stream(const struct dl_csv *csv, int row, enum dl_pass pass,
                                    struct dl_kernel_row *out, struct dl_err *err) {
    const char *name = dl_kernel_table_cell(csv, row, "op"),
               *shape = dl_kernel_table_cell(csv, row, "shape"),
               *library = dl_kernel_table_cell(csv, row, "library");
    const struct operation *op = operation_of(name);
    if (op == NULL)
        out->why = "no kernel of this operation is described";
    else if (strcmp(dl_kernel_table_cell(csv, row, "pass"), "fwd_bwd") == 0)
        out->why = "forward and backward in one time";
    else if (composed(name, library))
        out->why = "composed of several kernels";
    if (out->why != NULL) return DL_OK;
    double numbers[2] = {NAN, NAN};
    static const char *const columns[] = {"bytes_min", "elements"};
    for (int i = 0; i < 2; i++) DL_TRY(dl_kernel_number(csv, row, columns[i], &numbers[i], err));
    double rows = rows_of(shape);
    if (!(numbers[0] > 0.0) && !(numbers[1] > 0.0)) numbers[1] = rows_by_columns(shape, &rows);
    move(op, shape, numbers[0], numbers[1], in_one_kernel(library), out, pass);
    const bool norm = op->work == DL_WORK_LAYERNORM || op->work == DL_WORK_RMSNORM;
    if (norm && rows > 0.0) out->kernel.m = rows;
    out->kernel.work = op->work;
    out->kernel.variant = variant_of(op, shape, library);
    return DL_OK;
}
