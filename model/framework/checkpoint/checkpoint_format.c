/* checkpoint_format.c - see the header. */
#include "model/framework/checkpoint/checkpoint_format.h"

#include <math.h>
#include <string.h>

#include "model/core/text.h"
#include "model/framework/checkpoint/formats/formats.h"

const char *const dl_checkpoint_writer_names[] = {"rank 0", "all, shards", "all, copies", NULL};

const struct dl_checkpoint_format *const dl_checkpoint_formats[] = {
    &dl_checkpoint_torch_save,
    &dl_checkpoint_safetensors,
    &dl_checkpoint_torch_dcp,
    &dl_checkpoint_torch_dcp_async,
    &dl_checkpoint_tensorflow_v2,
    &dl_checkpoint_keras,
    &dl_checkpoint_keras_h5,
    &dl_checkpoint_keras_weights_h5,
    &dl_checkpoint_mxnet_params,
    &dl_checkpoint_npz,
    &dl_checkpoint_npz_compressed,
    &dl_checkpoint_chainermn,
    &dl_checkpoint_megatron,
    &dl_checkpoint_deepspeed_zero,
    NULL,
};

const struct dl_checkpoint_format *dl_checkpoint_format_find(const char *name) {
    for (int i = 0; dl_checkpoint_formats[i] != NULL; i++) {
        if (strcmp(dl_checkpoint_formats[i]->name, name) == 0) return dl_checkpoint_formats[i];
    }
    return NULL;
}

const char *dl_checkpoint_saves_text(const struct dl_checkpoint_format *format,
                                     struct dl_arena *arena) {
    static const char *const names[] = {"weights", "optimizer", "RNG", "loader position",
                                        "loss scale"};
    struct dl_text t = {.arena = arena};
    const char *comma = "";
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        if ((format->saves & 1U << i) == 0) continue;
        dl_text_printf(&t, "%s%s", comma, names[i]);
        comma = ", ";
    }
    return dl_text_string(&t);
}

/* Tensors that the optimizer keeps for each parameter. */
static int slots_of(enum dl_optimizer optimizer) {
    return optimizer == DL_SGD ? 0 : optimizer == DL_MOMENTUM ? 1 : 2;
}

/* Members of an element of param_groups (one for all parameters): those of torch.optim.SGD and Adam
 * of PyTorch 2.15. LAMB, which PyTorch does not have, is taken as Adam. */
static double settings_of(enum dl_optimizer optimizer) {
    return optimizer == DL_SGD || optimizer == DL_MOMENTUM ? 10 : 12;
}

static void add(struct dl_checkpoint_content *c, double tensors, double elements,
                double element_bytes, double chars, double dims) {
    c->tensor_count += tensors;
    c->data_bytes += tensors * elements * element_bytes;
    if (elements * element_bytes > DL_CHECKPOINT_CACHED_BYTES)
        c->large_bytes += tensors * elements * element_bytes;
    c->name_char_count += tensors * chars;
    c->dim_count += tensors * dims;
}

static void add_tensors(const struct dl_checkpoint_format *format, const struct dl_layer *layer,
                        const struct dl_parameter *tensors, int count, int slots,
                        double weight_bytes, struct dl_checkpoint_content *c) {
    const double chars = (double)strlen(layer->name);
    for (int p = 0; p < count && layer->tied_to < 0; p++) {
        const struct dl_parameter *parameter = &tensors[p];
        const double full = chars + 1 + (double)strlen(parameter->name);
        const bool is_vector = strcmp(parameter->name, "bias") == 0 || layer->buffer_elements > 0;
        const double dims =
            is_vector ? 1 : 2 + layer->in.dims * (layer->window.kernel[DL_DIMS - 1] > 0);
        add(c, 1, parameter->elements, weight_bytes, full, dims);
        add(c, slots, parameter->elements, 4, full, dims);
        if (slots == 2 && format->counters == DL_COUNTERS_TORCH) add(c, 1, 1, 4, full, 0);
    }
}

static void add_layer(const struct dl_checkpoint_format *format, const struct dl_layer *layer,
                      int slots, double weight_bytes, struct dl_checkpoint_content *c) {
    const double chars = (double)strlen(layer->name);
    add_tensors(format, layer, layer->parameters, layer->parameter_count, slots, weight_bytes, c);
    add_tensors(format, layer, layer->frozen_tensors.list, layer->frozen_tensors.count, 0,
                weight_bytes, c);
    if (layer->buffer_elements > 0) { /* mean, variance, a counter */
        add(c, 2, floor(layer->buffer_elements / 2), 4, chars + 13, 1);
        if (format->counters == DL_COUNTERS_TORCH) add(c, 1, 1, 8, chars + 20, 0);
    }
    if (layer->dropout > 0 && format->counters == DL_COUNTERS_KERAS) add(c, 1, 2, 4, chars + 20, 1);
}

void dl_checkpoint_content(const struct dl_checkpoint_format *format,
                           const struct dl_workload *workload, enum dl_optimizer optimizer,
                           double weight_bytes, struct dl_checkpoint_content *out) {
    struct dl_checkpoint_content c = {.layers = workload->layer_count};
    for (int i = 0; i < workload->layer_count; i++)
        add_layer(format, &workload->layers[i], slots_of(optimizer), weight_bytes, &c);
    if (format->counters == DL_COUNTERS_KERAS) add(&c, 2, 1, 4, 13, 0);
    if (format->counters == DL_COUNTERS_TORCH && (format->saves & DL_SAVES_OPTIMIZER) != 0)
        c.setting_count = settings_of(optimizer);
    if (c.tensor_count > 0) c.name_char_count /= c.tensor_count, c.dim_count /= c.tensor_count;
    *out = c;
}

double dl_checkpoint_bytes(const struct dl_checkpoint_format *format,
                           const struct dl_checkpoint_content *content, double ranks) {
    const double copies = format->writers == DL_WRITER_EVERY ? ranks : 1;
    return copies * (content->data_bytes * format->ratio + format->overhead_bytes(content, ranks));
}

double dl_checkpoint_zip_bytes(double name_chars, double other_bytes) {
    return 30 + name_chars + other_bytes + 46 + name_chars;
}
