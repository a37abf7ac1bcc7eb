/* network.c - see the header. A layer has a name, kind, inputs (indices of earlier layers, -1: the
 * network input), in and out (channels, then extents), and its nonzero geometry. */
#include "slurm/run/network.h"

static void shape(struct dl_json_writer *w, const char *key, const struct dl_shape *s) {
    dl_jw_array(w, key);
    dl_jw_number(w, NULL, s->channels);
    for (int i = DL_DIMS - s->dims; i < DL_DIMS; i++) dl_jw_number(w, NULL, s->size[i]);
    dl_jw_end(w);
}

static void extents(struct dl_json_writer *w, const char *key, const double *values, int dims) {
    bool any = false;
    for (int i = DL_DIMS - dims; i < DL_DIMS; i++) any = any || values[i] != 0;
    if (!any) return;
    dl_jw_array(w, key);
    for (int i = DL_DIMS - dims; i < DL_DIMS; i++) dl_jw_number(w, NULL, values[i]);
    dl_jw_end(w);
}

static void number(struct dl_json_writer *w, const char *key, double value) {
    if (value != 0) dl_jw_number(w, key, value);
}

static void flag(struct dl_json_writer *w, const char *key, bool value) {
    if (value) dl_jw_bool(w, key, true);
}

static void layer(struct dl_json_writer *w, const struct dl_workload *workload, int index) {
    const struct dl_layer *l = &workload->layers[index];
    dl_jw_object(w, NULL);
    dl_jw_string(w, "name", l->name);
    dl_jw_string(w, "kind", l->kind->name);
    dl_jw_array(w, "inputs");
    for (int i = 0; i < l->input_count; i++) dl_jw_integer(w, NULL, l->inputs[i]);
    dl_jw_end(w);
    shape(w, "in", &l->in);
    shape(w, "out", &l->out);
    extents(w, "kernel", l->window.kernel, l->in.dims);
    extents(w, "stride", l->window.stride, l->in.dims);
    extents(w, "pad", l->window.pad, l->in.dims);
    extents(w, "dilation", l->window.dilation, l->in.dims);
    number(w, "groups", l->groups);
    number(w, "heads", l->attention.heads);
    number(w, "kv_heads", l->attention.kv_heads);
    number(w, "rows", l->rows);
    number(w, "hidden", l->requested.hidden);
    number(w, "tokens", l->requested.tokens);
    number(w, "scale", l->requested.scale);
    number(w, "dropout", l->dropout);
    flag(w, "bias", l->bias);
    flag(w, "causal", l->attention.causal);
    flag(w, "in_place", l->in_place);
    flag(w, "ceil", l->window.ceil_mode);
    flag(w, "bidirectional", l->bidirectional);
    flag(w, "sparse", l->sparse);
    if (l->tied_to >= 0) dl_jw_string(w, "tied", workload->layers[l->tied_to].name);
    dl_jw_end(w);
}

const char *dl_network_text(const struct dl_workload *workload, struct dl_arena *arena) {
    struct dl_json_writer w;
    dl_jw_init(&w, arena, true);
    dl_jw_object(&w, NULL);
    dl_jw_string(&w, "format", "dlmodel-network");
    dl_jw_integer(&w, "version", 1);
    dl_jw_string(&w, "name", workload->name);
    dl_jw_string(&w, "family", workload->family);
    shape(&w, "input", &workload->input);
    dl_jw_number(&w, "parameters", workload->parameters);
    if (dl_known(workload->vocabulary)) dl_jw_number(&w, "vocabulary", workload->vocabulary);
    dl_jw_array(&w, "layers");
    for (int i = 0; i < workload->layer_count; i++) layer(&w, workload, i);
    return dl_jw_text(&w);
}
