/* rewrite.c - see rewrite.h. */
#include "model/search/advise/rewrite.h"

#include <string.h>

#include "model/workload/layer.h"

static void write_extents(struct dl_json_writer *w, const char *key, const double *values,
                          int dims) {
    const double *own = values + DL_DIMS - dims;
    dl_jw_array(w, key);
    for (int i = 0; i < dims; i++) dl_jw_number(w, NULL, own[i]);
    dl_jw_end(w);
}

static void write_geometry(struct dl_json_writer *w, const struct dl_layer *l) {
    const unsigned keys = l->kind->needs | l->kind->takes;
    const struct {
        unsigned key;
        const char *name;
        const double *values;
        int dims;
    } all[] = {{DL_KEY_KERNEL, "kernel", l->window.kernel, l->in.dims},
               {DL_KEY_STRIDE, "stride", l->window.stride, l->in.dims},
               {DL_KEY_PAD, "pad", l->window.pad, l->in.dims},
               {DL_KEY_DILATION, "dilation", l->window.dilation, l->in.dims},
               {DL_KEY_SIZE, "size", l->requested.target, l->out.dims}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const bool given = all[i].key != DL_KEY_SIZE || l->requested.target[DL_DIMS - 1] > 0;
        if ((keys & all[i].key) != 0 && given && all[i].dims > 0)
            write_extents(w, all[i].name, all[i].values, all[i].dims);
    }
}

static void write_keys(struct dl_json_writer *w, const struct dl_layer *l) {
    const unsigned keys = l->kind->needs | l->kind->takes;
    if ((keys & DL_KEY_OUT) != 0) dl_jw_number(w, "out", l->requested.hidden);
    if ((keys & DL_KEY_GROUPS) != 0 && l->groups > 1) dl_jw_number(w, "groups", l->groups);
    if ((keys & DL_KEY_SCALE) != 0 && l->requested.scale > 0)
        dl_jw_number(w, "scale", l->requested.scale);
    if ((keys & DL_KEY_DROPOUT) != 0 && l->dropout > 0) dl_jw_number(w, "dropout", l->dropout);
    write_geometry(w, l);
    if ((keys & DL_KEY_BIAS) != 0) dl_jw_bool(w, "bias", l->bias);
    if ((keys & DL_KEY_CEIL) != 0 && l->window.ceil_mode) dl_jw_bool(w, "ceil", true);
    if ((keys & DL_KEY_IN_PLACE) != 0 && l->in_place) dl_jw_bool(w, "in_place", true);
}

static void write_layer(struct dl_json_writer *w, const struct dl_workload *workload,
                        const struct dl_layer *l, const char *name, const char *before) {
    dl_jw_object(w, NULL);
    dl_jw_string(w, "kind", l->kind->name);
    dl_jw_string(w, "name", name);
    dl_jw_array(w, "from");
    for (int i = 0; i < (before != NULL ? 1 : l->input_count); i++)
        dl_jw_string(w, NULL,
                     before != NULL     ? before
                     : l->inputs[i] < 0 ? "input"
                                        : workload->layers[l->inputs[i]].name);
    dl_jw_end(w);
    write_keys(w, l);
    dl_jw_end(w);
}

static void write_head(struct dl_json_writer *w, const struct dl_workload *workload,
                       const char *suffix) {
    const struct dl_shape *input = &workload->input;
    dl_jw_string(w, "format", "dlmodel-workload");
    dl_jw_integer(w, "version", 1);
    dl_jw_string(w, "name", dl_arena_printf(w->arena, "%s-%s", workload->name, suffix));
    dl_jw_string(w, "summary",
                 dl_arena_printf(w->arena, "%s, rewritten: %s", workload->name, suffix));
    dl_jw_string(w, "source", workload->source);
    dl_jw_string(w, "family", workload->family);
    if (workload->dataset != NULL) dl_jw_string(w, "dataset", workload->dataset);
    if (dl_known(workload->epoch_samples))
        dl_jw_number(w, "epoch_samples", workload->epoch_samples);
    if (dl_known(workload->sample_bytes)) dl_jw_number(w, "sample_bytes", workload->sample_bytes);
    dl_jw_object(w, "input");
    dl_jw_number(w, "channels", input->channels);
    write_extents(w, "size", input->size, input->dims);
    dl_jw_end(w);
}

/* What write_keys writes; no layer is tied. */
static const unsigned WRITTEN = DL_KEY_OUT | DL_KEY_KERNEL | DL_KEY_STRIDE | DL_KEY_PAD |
                                DL_KEY_DILATION | DL_KEY_SIZE | DL_KEY_GROUPS | DL_KEY_SCALE |
                                DL_KEY_DROPOUT | DL_KEY_BIAS | DL_KEY_CEIL | DL_KEY_IN_PLACE |
                                DL_KEY_TIED;

static bool can_write(const struct dl_workload *workload) {
    if (workload->family == NULL || strcmp(workload->family, "cnn") != 0 ||
        workload->input.dims == 0)
        return false;
    for (int i = 0; i < workload->layer_count; i++)
        if (workload->layers[i].tied_to >= 0 ||
            ((workload->layers[i].kind->needs | workload->layers[i].kind->takes) & ~WRITTEN) != 0)
            return false;
    return true;
}

/* The layers that take the place of one: NAME.0, NAME.1, ..., NAME. */
static void write_replaced(struct dl_json_writer *w, const struct dl_workload *workload,
                           const struct dl_layer *own, const struct dl_rewritten *by, int count) {
    const char *before = NULL;
    for (int k = 0; k < count; k++) {
        const char *name =
            k == count - 1 ? own->name : dl_arena_printf(w->arena, "%s_%d", own->name, k);
        write_layer(w, workload, &by[k].layer, name, before);
        before = name;
    }
}

const char *dl_rewrite(const struct dl_workload *workload, const char *suffix,
                       dl_rewrite_rule *rule, struct dl_arena *arena) {
    struct dl_json_writer w;
    bool changed = false;
    if (!can_write(workload)) return NULL;
    dl_jw_init(&w, arena, false);
    dl_jw_object(&w, NULL);
    write_head(&w, workload, suffix);
    dl_jw_array(&w, "layers");
    for (int i = 0; i < workload->layer_count; i++) {
        const struct dl_layer *own = &workload->layers[i];
        struct dl_rewritten by[DL_REWRITTEN_LAYERS] = {{.layer = *own}};
        const int count = rule(workload, i, by);
        changed = changed || count > 0;
        if (count > 0)
            write_replaced(&w, workload, own, by, count);
        else
            write_layer(&w, workload, own, own->name, NULL);
    }
    dl_jw_end(&w);
    dl_jw_end(&w);
    return changed ? w.text : NULL;
}

void dl_advise_add_rewritten(const struct dl_advise_state *state, struct dl_advise_list *out,
                             const char *suffix, dl_rewrite_rule *rule, const char *text) {
    const char *file = dl_rewrite(state->workload, suffix, rule, state->arena);
    if (file == NULL) return;
    struct dl_advise_change *c = dl_advise_add(
        out, NULL, NULL, text,
        dl_arena_printf(state->arena, "the network that --rewrite %s prints", suffix));
    c->workload_text = file;
}
