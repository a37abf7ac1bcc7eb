/* import_keras_layers.c - what each class of layers of Keras computes. Shapes are followed:
 * "same" padding depends on them. */
#include <math.h>
#include <string.h>

#include "import/import_keras.h"

/* ---- writing ---- */

struct dl_json_writer dl_keras_begin(struct dl_keras *k, const char *name, const char *kind,
                                     const struct dl_keras_value *in, int count) {
    struct dl_json_writer w;
    dl_jw_init(&w, k->arena, true);
    dl_jw_object(&w, NULL);
    dl_jw_string(&w, "name", name);
    dl_jw_string(&w, "kind", kind);
    dl_jw_array(&w, "from");
    for (int i = 0; i < count; i++) dl_jw_string(&w, NULL, in[i].item);
    dl_jw_end(&w);
    return w;
}

void dl_keras_end(struct dl_keras *k, struct dl_json_writer *w) {
    dl_jw_end(w);
    dl_text_printf(&k->layers, "%s    ", k->written++ > 0 ? ",\n" : "");
    dl_text_add(&k->layers, dl_jw_text(w));
}

/* A layer without geometry; its value has the shape of the first input. */
void dl_keras_plain(struct dl_keras *k, const char *name, const char *kind,
                    const struct dl_keras_value *in, int count, struct dl_keras_value *out) {
    struct dl_json_writer w = dl_keras_begin(k, name, kind, in, count);
    dl_keras_end(k, &w);
    *out = in[0];
    out->item = name;
}

const char *dl_keras_join(struct dl_keras *k, const char *name, const char *part) {
    return dl_arena_printf(k->arena, "%s.%s", name, part);
}

double dl_keras_channels(const struct dl_keras_value *v) { return v->dims[v->rank - 1]; }

/* The value as a vector or sequence: a pooled image loses its extents. */
struct dl_keras_value dl_keras_vector_of(struct dl_keras *k, const char *name,
                                         const struct dl_keras_value *v) {
    struct dl_keras_value out = *v;
    if (v->pooled) dl_keras_plain(k, dl_keras_join(k, name, "flat"), "flatten", v, 1, &out);
    out.image = out.image && !v->pooled;
    out.pooled = false;
    return out;
}

/* ---- activations ---- */

static const struct {
    const char *theirs, *ours; /* ours NULL: nothing is computed */
} activations[] = {
    {"linear", NULL},
    {"relu", "relu"},
    {"relu6", "relu6"},
    {"sigmoid", "sigmoid"},
    {"tanh", "tanh"},
    {"gelu", "gelu"},
    {"swish", "swish"},
    {"silu", "swish"},
    {"softmax", "softmax"},
    {"leaky_relu", "relu"},
    {"elu", "relu"},
    {"selu", "relu"},
    {"softplus", "sigmoid"},
    {"hard_sigmoid", "relu6"},
    {"exponential", "sigmoid"},
    {"softsign", "sigmoid"},
    {"hard_swish", "swish"},
    {"hard_silu", "swish"},
    {"mish", "swish"},
    {"log_softmax", "softmax"},
};

/* "relu", or a function that a file describes as an object. */
static const char *activation_word(const struct dl_json_node *config, const char *key) {
    const struct dl_json_node *n = dl_keras_member(config, key);
    if (n == NULL || n->kind == DL_JSON_NULL) return "linear";
    if (n->kind == DL_JSON_STRING) return n->string;
    const char *name = dl_keras_word(n, "config");
    return name[0] != '\0' ? name : dl_keras_word(n, "class_name");
}

static enum dl_code activate(struct dl_keras *k, const struct dl_keras_call *call, const char *word,
                             const char *name, struct dl_keras_value *inout) {
    for (size_t i = 0; i < sizeof activations / sizeof activations[0]; i++) {
        if (strcmp(activations[i].theirs, word) != 0) continue;
        if (activations[i].ours == NULL) return DL_OK;
        if (strcmp(activations[i].ours, word) != 0 && strcmp(word, "silu") != 0)
            dl_keras_remark(k, dl_arena_printf(k->arena,
                                               "activation %.40s: as %s, of the same traffic", word,
                                               activations[i].ours));
        const struct dl_keras_value in = *inout;
        dl_keras_plain(k, name, activations[i].ours, &in, 1, inout);
        return DL_OK;
    }
    return dl_keras_fail(k, call->layer, call->name, "the activation \"%.60s\" has no kind", word);
}

/* The activation that a layer with weights has. */
enum dl_code dl_keras_finish(struct dl_keras *k, const struct dl_keras_call *call,
                             struct dl_keras_value *inout) {
    return activate(k, call, activation_word(call->config, "activation"),
                    dl_keras_join(k, call->name, "act"), inout);
}

static enum dl_code activation(struct dl_keras *k, struct dl_keras_call *call,
                               struct dl_keras_value *out) {
    const char *word = strcmp(call->class, "Activation") == 0
                           ? activation_word(call->config, "activation")
                       : strcmp(call->class, "Softmax") == 0                ? "softmax"
                       : strcmp(call->class, "LeakyReLU") == 0              ? "leaky_relu"
                       : strcmp(call->class, "ELU") == 0                    ? "elu"
                       : dl_keras_number(call->config, "max_value", 0) == 6 ? "relu6"
                                                                            : "relu";
    *out = call->in[0];
    return activate(k, call, word, call->name, out);
}

/* ---- windows ---- */

/* The i-th number of a list, or one for all. */
static double nth(const struct dl_json_node *config, const char *key, int i, double otherwise) {
    const struct dl_json_node *n = dl_keras_member(config, key);
    if (n == NULL || n->kind == DL_JSON_NULL) return otherwise;
    if (n->kind == DL_JSON_NUMBER) return n->number;
    for (n = n->child; n != NULL && i-- > 0;) n = n->next;
    return n != NULL && n->kind == DL_JSON_NUMBER ? n->number : otherwise;
}

/* Kernel, stride, padding; the output's extents. */
static enum dl_code window(struct dl_keras *k, const struct dl_keras_call *call, const char *kernel,
                           const char *stride, struct dl_json_writer *w,
                           struct dl_keras_value *out) {
    const struct dl_keras_value *in = &call->in[0];
    const int dims = in->rank - 1;
    const bool same = strcmp(dl_keras_word(call->config, "padding"), "same") == 0,
               transposed = strstr(call->class, "Transpose") != NULL;
    double size[3], step[3], pad[3], apart[3];
    for (int i = 0; i < dims; i++) {
        const double from = in->dims[i] + in->pad[i];
        size[i] = nth(call->config, kernel, i, 2);
        step[i] = nth(call->config, stride, i, strcmp(kernel, "pool_size") == 0 ? size[i] : 1);
        apart[i] = nth(call->config, "dilation_rate", i, 1);
        const double reach = apart[i] * (size[i] - 1) + 1;
        double all = 0;
        if (!(size[i] >= 1) || !(step[i] >= 1) || !(apart[i] >= 1) || !(in->dims[i] >= 1))
            return dl_keras_fail(k, call->layer, call->name, "expected whole extents");
        if (transposed) {
            out->dims[i] = same ? from * step[i] : (from - 1) * step[i] + reach;
            all = (from - 1) * step[i] + reach - out->dims[i];
        } else {
            if (same) all = fmax((ceil(from / step[i]) - 1) * step[i] + reach - from, 0);
            out->dims[i] = floor((from + all - reach) / step[i]) + 1;
        }
        pad[i] = (all + in->pad[i]) / 2;
        out->pad[i] = 0;
        if (!(out->dims[i] >= 1) || pad[i] < 0)
            return dl_keras_fail(k, call->layer, call->name, "the window leaves nothing");
    }
    const struct {
        const char *key;
        const double *values;
        bool needed;
    } all[] = {{"kernel", size, true},
               {"stride", step, true},
               {"pad", pad, true},
               {"dilation", apart, strcmp(kernel, "pool_size") != 0 && !transposed}};
    for (int a = 0; a < 4; a++) {
        if (!all[a].needed) continue;
        dl_jw_array(w, all[a].key);
        for (int i = 0; i < dims; i++) dl_jw_number(w, NULL, all[a].values[i]);
        dl_jw_end(w);
    }
    return DL_OK;
}

static enum dl_code need_image(struct dl_keras *k, const struct dl_keras_call *call) {
    if (strcmp(dl_keras_word(call->config, "data_format"), "channels_first") == 0)
        return dl_keras_fail(k, call->layer, call->name, "channels_first is not read");
    if (call->in[0].image && call->in[0].rank >= 2) return DL_OK;
    return dl_keras_fail(k, call->layer, call->name, "its input is not an image");
}

/* Convolutions: depthwise, the first half of separable, transposed ones too. */
static enum dl_code convolve(struct dl_keras *k, const struct dl_keras_call *call, const char *name,
                             double out_channels, double groups, bool bias,
                             struct dl_keras_value *out) {
    const bool transposed = strstr(call->class, "Transpose") != NULL;
    DL_TRY(need_image(k, call));
    struct dl_json_writer w =
        dl_keras_begin(k, name, transposed ? "conv_transpose" : "conv", call->in, 1);
    if (!(out_channels >= 1) || !(groups >= 1))
        return dl_keras_fail(k, call->layer, call->name, "expected a number of filters");
    k->cnn = true;
    *out = call->in[0];
    dl_jw_number(&w, "out", out_channels);
    if (groups > 1) dl_jw_number(&w, "groups", groups);
    if (bias) dl_jw_bool(&w, "bias", true);
    DL_TRY(window(k, call, "kernel_size", "strides", &w, out));
    dl_keras_end(k, &w);
    out->dims[out->rank - 1] = out_channels;
    out->item = name;
    out->pooled = false;
    return DL_OK;
}

/* A convolution of single pixels. */
void dl_keras_write_pointwise(struct dl_keras *k, const char *name, const struct dl_keras_value *in,
                              double filters, bool bias, struct dl_keras_value *out) {
    struct dl_json_writer w = dl_keras_begin(k, name, "conv", in, 1);
    dl_jw_number(&w, "out", filters);
    dl_jw_number(&w, "kernel", 1);
    if (bias) dl_jw_bool(&w, "bias", true);
    dl_keras_end(k, &w);
    *out = *in;
    out->item = name;
    out->dims[out->rank - 1] = filters;
}

static enum dl_code conv(struct dl_keras *k, struct dl_keras_call *call,
                         struct dl_keras_value *out) {
    const double in = dl_keras_channels(&call->in[0]),
                 depth = dl_keras_number(call->config, "depth_multiplier", 1),
                 filters = dl_keras_number(call->config, "filters", 0);
    const bool bias = dl_keras_flag(call->config, "use_bias", true);
    if (strncmp(call->class, "Depthwise", 9) == 0) {
        DL_TRY(convolve(k, call, call->name, in * depth, in, bias, out));
    } else if (strncmp(call->class, "Separable", 9) == 0) {
        struct dl_keras_value between;
        DL_TRY(convolve(k, call, dl_keras_join(k, call->name, "depthwise"), in * depth, in, false,
                        &between));
        dl_keras_write_pointwise(k, call->name, &between, filters, bias, out);
    } else {
        DL_TRY(convolve(k, call, call->name, filters, dl_keras_number(call->config, "groups", 1),
                        bias, out));
    }
    return dl_keras_finish(k, call, out);
}

static enum dl_code pool(struct dl_keras *k, struct dl_keras_call *call,
                         struct dl_keras_value *out) {
    DL_TRY(need_image(k, call));
    struct dl_json_writer w = dl_keras_begin(
        k, call->name, strncmp(call->class, "Max", 3) == 0 ? "maxpool" : "avgpool", call->in, 1);
    *out = call->in[0];
    DL_TRY(window(k, call, "pool_size", "strides", &w, out));
    dl_keras_end(k, &w);
    out->item = call->name;
    return DL_OK;
}

static enum dl_code global_pool(struct dl_keras *k, struct dl_keras_call *call,
                                struct dl_keras_value *out) {
    const double last = dl_keras_channels(&call->in[0]);
    const bool keeps = dl_keras_flag(call->config, "keepdims", false);
    dl_keras_plain(k, call->name, "global_pool", call->in, 1, out);
    for (int i = 0; i + 1 < out->rank; i++) out->dims[i] = 1;
    out->pooled = call->in[0].image && !keeps;
    if (!keeps) out->dims[0] = last;
    if (!keeps) out->rank = 1;
    return DL_OK;
}

static double sum_of(const struct dl_json_node *list) {
    double sum = 0;
    for (const struct dl_json_node *e = list->child; e != NULL; e = e->next)
        sum += e->kind == DL_JSON_NUMBER ? e->number : NAN;
    return sum;
}

/* Both ends of dimension i: one number, or one or two for each dimension. */
static double padding_of(const struct dl_json_node *n, int dims, int i) {
    if (n == NULL) return 2;
    if (n->kind == DL_JSON_NUMBER) return 2 * n->number;
    if (dims == 1) return sum_of(n);
    for (n = n->child; n != NULL && i-- > 0;) n = n->next;
    if (n == NULL) return NAN;
    return n->kind == DL_JSON_NUMBER ? 2 * n->number : sum_of(n);
}

/* Padding is that of the window behind it. */
static enum dl_code zero_padding(struct dl_keras *k, struct dl_keras_call *call,
                                 struct dl_keras_value *out) {
    *out = call->in[0];
    DL_TRY(need_image(k, call));
    for (int i = 0; i + 1 < out->rank; i++) {
        out->pad[i] += padding_of(dl_keras_member(call->config, "padding"), out->rank - 1, i);
        if (!(out->pad[i] >= 0))
            return dl_keras_fail(k, call->layer, call->name, "expected a padding");
    }
    return DL_OK;
}

static enum dl_code upsample(struct dl_keras *k, struct dl_keras_call *call,
                             struct dl_keras_value *out) {
    const double factor = nth(call->config, "size", 0, 2);
    DL_TRY(need_image(k, call));
    struct dl_json_writer w = dl_keras_begin(k, call->name, "upsample", call->in, 1);
    dl_jw_number(&w, "scale", factor);
    dl_keras_end(k, &w);
    *out = call->in[0];
    for (int i = 0; i + 1 < out->rank; i++) {
        if (nth(call->config, "size", i, 2) != factor)
            return dl_keras_fail(k, call->layer, call->name, "expected one factor for all extents");
        out->dims[i] *= factor;
    }
    out->item = call->name;
    return DL_OK;
}

/* Of keras.applications: a learned factor for each channel. */
static enum dl_code layer_scale(struct dl_keras *k, struct dl_keras_call *call,
                                struct dl_keras_value *out) {
    dl_keras_plain(k, call->name, "scale", call->in, 1, out);
    return DL_OK;
}

enum dl_code dl_keras_layer(struct dl_keras *k, struct dl_keras_call *call,
                            struct dl_keras_value *out) {
    static const struct {
        const char *names; /* between blanks */
        dl_keras_layer_fn *write;
    } all[] = {
        {" Conv1D Conv2D Conv3D DepthwiseConv1D DepthwiseConv2D SeparableConv1D SeparableConv2D "
         "Conv2DTranspose Conv1DTranspose Conv3DTranspose Convolution2D ",
         conv},
        {" MaxPooling1D MaxPooling2D MaxPooling3D AveragePooling1D AveragePooling2D "
         "AveragePooling3D MaxPool2D AvgPool2D ",
         pool},
        {" GlobalAveragePooling1D GlobalAveragePooling2D GlobalAveragePooling3D GlobalMaxPooling1D "
         "GlobalMaxPooling2D GlobalMaxPooling3D ",
         global_pool},
        {" ZeroPadding1D ZeroPadding2D ZeroPadding3D ", zero_padding},
        {" UpSampling1D UpSampling2D UpSampling3D ", upsample},
        {" Dense ", dl_keras_dense},
        {" Embedding ", dl_keras_embedding},
        {" MultiHeadAttention ", dl_keras_attention},
        {" LSTM Bidirectional ", dl_keras_lstm},
        {" LayerScale ", layer_scale},
        {" Add CustomScaleLayer Average Maximum Minimum Subtract Multiply Concatenate ",
         dl_keras_merge},
        {" Dropout SpatialDropout1D SpatialDropout2D GaussianDropout AlphaDropout ",
         dl_keras_dropout},
        {" BatchNormalization LayerNormalization RMSNormalization ", dl_keras_normalize},
        {" Activation ReLU Softmax LeakyReLU ELU ", activation},
        {" Flatten ", dl_keras_flatten},
        {" Reshape ", dl_keras_reshape},
        {" InputLayer Masking ActivityRegularization Rescaling Normalization RandomFlip RandomCrop "
         "RandomRotation RandomZoom RandomContrast RandomTranslation Resizing CenterCrop ",
         dl_keras_pass},
    };
    const char *word = dl_arena_printf(k->arena, " %.60s ", call->class);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (strstr(all[i].names, word) != NULL) return all[i].write(k, call, out);
    return dl_keras_fail(k, call->layer, call->name, "a layer of the class %.60s has no kind",
                         call->class);
}
