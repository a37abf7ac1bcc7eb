/* layer_recorded.c - layers of networks that were recorded from their framework: views, copies, and
 * operations for which there is no other kind.
 *
 * F-LAYER-RECORDED: the workload file lists what each pass of the layer runs: streams with the
 * elements and bytes that they read and write, and GEMMs. Work is per sample, `once` per call
 * (weights, tables of positions). A view moves nothing forward; where it shows a part of a tensor,
 * backward writes the gradient of the whole. A copy changes the order of elements, 1R + 1W each
 * way.
 */
#include "model/workload/layer.h"

static enum dl_code reshape_infer(struct dl_layer *layer, const struct dl_shape *inputs,
                                  struct dl_err *err) {
    layer->out = (struct dl_shape){.dims = layer->requested.target_dims,
                                   .channels = layer->requested.hidden};
    for (int i = 0; i < DL_DIMS; i++) layer->out.size[i] = layer->requested.target[i];
    const double from = dl_shape_elements(&inputs[0]), to = dl_shape_elements(&layer->out);
    if (to <= from) return DL_OK;
    return dl_layer_fail(err, DL_KEY_OUT, "expected at most the input's %.0f elements, found %.0f",
                         from, to);
}

static enum dl_code view_infer(struct dl_layer *layer, const struct dl_shape *inputs,
                               struct dl_arena *arena, struct dl_err *err) {
    (void)arena;
    layer->view = true;
    return reshape_infer(layer, inputs, err);
}

static int view_kernels(const struct dl_layer *layer, const struct dl_kernel_facts *facts,
                        enum dl_pass pass, double batch, struct dl_kernel *out) {
    struct dl_emit emit = dl_emit_begin(layer, facts, pass, batch, out);
    if (pass == DL_BACKWARD_DATA && emit.out_elements < emit.in_elements)
        dl_emit_stream(&emit, 0.0, emit.out_elements, emit.in_elements, 0.0);
    return emit.count;
}

const struct dl_layer_kind dl_layer_view = {
    .name = "view",
    .summary = "another shape of the same elements, or of some of them; moves nothing forward",
    .source = "formulas",
    .reshapes = true,
    .needs = DL_KEY_OUT,
    .takes = DL_KEY_SIZE,
    .inputs_min = 1,
    .inputs_max = 1,
    .infer = view_infer,
    .kernels = view_kernels,
};

static enum dl_code copy_infer(struct dl_layer *layer, const struct dl_shape *inputs,
                               struct dl_arena *arena, struct dl_err *err) {
    (void)arena;
    return reshape_infer(layer, inputs, err);
}

static int copy_kernels(const struct dl_layer *layer, const struct dl_kernel_facts *facts,
                        enum dl_pass pass, double batch, struct dl_kernel *out) {
    struct dl_emit emit = dl_emit_begin(layer, facts, pass, batch, out);
    if (pass == DL_FORWARD || pass == DL_BACKWARD_DATA)
        dl_emit_stream(&emit, 0.0, emit.out_elements, emit.out_elements, 0.0);
    return emit.count;
}

const struct dl_layer_kind dl_layer_copy = {
    .name = "copy",
    .summary = "copies the elements, or some of them, to another shape or order",
    .source = "formulas",
    .reshapes = true,
    .needs = DL_KEY_OUT,
    .takes = DL_KEY_SIZE,
    .inputs_min = 1,
    .inputs_max = 1,
    .infer = copy_infer,
    .kernels = copy_kernels,
};

static double macs_of(const struct dl_recorded_kernel *kernel) {
    return kernel->m * kernel->n * kernel->k * kernel->count;
}

static enum dl_code recorded_infer(struct dl_layer *layer, const struct dl_shape *inputs,
                                   struct dl_arena *arena, struct dl_err *err) {
    const struct dl_recorded_work *work = layer->work;
    (void)inputs;
    layer->out = (struct dl_shape){.dims = layer->requested.target_dims,
                                   .channels = layer->requested.hidden};
    for (int i = 0; i < DL_DIMS; i++) layer->out.size[i] = layer->requested.target[i];
    layer->requested.scale = 1.0 / dl_shape_elements(&layer->out);
    if (work == NULL) return DL_OK;
    if (work->kernel_count > DL_LAYER_KERNELS - 1) {
        return dl_layer_fail(err, DL_KEY_WORK, "expected at most %d kernels, found %d",
                             DL_LAYER_KERNELS - 1, work->kernel_count);
    }
    for (int i = 0; i < work->kernel_count; i++) {
        if (work->kernels[i].pass == DL_FORWARD) layer->forward_macs += macs_of(&work->kernels[i]);
    }
    layer->saved.keeps =
        (work->keeps_input ? DL_KEEPS_INPUT : 0u) | (work->keeps_output ? DL_KEEPS_OUTPUT : 0u);
    layer->saved.own_elements = work->kept_elements;
    layer->saved.bytes = work->kept_bytes;
    layer->buffer_elements = work->buffer_elements;
    for (int i = 0; i < work->weight_count; i++) {
        if (!(work->weights[i].number >= 1.0)) {
            return dl_layer_fail(err, DL_KEY_WORK, "weights.%s: expected at least 1 element",
                                 work->weights[i].key);
        }
        DL_TRY(
            dl_layer_parameter(layer, arena, work->weights[i].key, work->weights[i].number, err));
    }
    return DL_OK;
}

/* share: of the recorded work that is left where ranks share the layer's elements out. */
static void emit_recorded(struct dl_emit *emit, const struct dl_recorded_kernel *r, double share) {
    const double samples = emit->batch * share;
    if (r->m > 0.0) {
        double m = r->m, n = r->n, k = r->k, count = r->count;
        double *grows = r->grows == DL_GROWS_M   ? &m
                        : r->grows == DL_GROWS_N ? &n
                        : r->grows == DL_GROWS_K ? &k
                                                 : &count;
        if (r->grows != DL_GROWS_NONE) *grows *= samples;
        dl_emit_gemm(emit, m, n, k, count, false, false);
        return;
    }
    const int before = emit->count;
    dl_emit_stream(emit, samples * r->flop, samples * r->read_elements + r->once_elements,
                   samples * r->write_elements, samples * r->bytes);
    if (emit->count > before) emit->out[emit->count - 1].launches = r->launches;
}

static int recorded_kernels(const struct dl_layer *layer, const struct dl_kernel_facts *facts,
                            enum dl_pass pass, double batch, struct dl_kernel *out) {
    struct dl_emit emit = dl_emit_begin(layer, facts, pass, batch, out);
    const double share = layer->requested.scale * dl_shape_elements(&layer->out);
    for (int i = 0; layer->work != NULL && i < layer->work->kernel_count; i++) {
        const struct dl_recorded_kernel *kernel = &layer->work->kernels[i];
        if ((enum dl_pass)kernel->pass == pass) emit_recorded(&emit, kernel, share);
    }
    return emit.count;
}

const struct dl_layer_kind dl_layer_recorded = {
    .name = "recorded",
    .summary = "operations as recorded from a framework: 'work' lists their kernels",
    .source = "formulas",
    .reshapes = true,
    .needs = DL_KEY_OUT,
    .takes = DL_KEY_SIZE | DL_KEY_WORK,
    .inputs_min = 1,
    .inputs_max = 4096,
    .infer = recorded_infer,
    .kernels = recorded_kernels,
};
