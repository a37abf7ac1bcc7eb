/* layer_inputs.c - see the header. */
#include "predict/inputs/layer_inputs.h"

#include <string.h>

static enum dl_code load(struct dl_context *context, const char *name,
                         const struct dl_layer_times **out, struct dl_err *err) {
    const char *path;
    struct dl_json *doc;
    struct dl_layer_times *times = dl_arena_alloc(context->arena, 1, sizeof *times);
    struct dl_err unknown = {.code = DL_OK};
    if (dl_data_path(&context->data, DL_DATA_LAYERS, name, context->arena, &path, &unknown) !=
        DL_OK) {
        return dl_fail(err, DL_ERR_USAGE,
                       "--layers: no layer times '%.80s' in layers/ of the data directories; a "
                       "path has a '/' or ends in .json",
                       name);
    }
    DL_TRY(dl_data_json(&context->data, path, context->arena, &doc, err));
    DL_TRY(dl_json_load(doc, &dl_layer_times_schema, context->arena, times, err));
    DL_TRY(dl_layer_times_check(times, doc, err));
    *out = times;
    return DL_OK;
}

static bool fits_any(const struct dl_layer_times *t, const struct dl_inputs *in) {
    for (int i = 0; i < in->framework_count; i++) {
        if (dl_layer_times_fit(t, in->workload, in->frameworks[i], in->system->device,
                               in->plan.precision))
            return true;
    }
    return false;
}

/* Requested by name: it must match. */
static enum dl_code check(const struct dl_layer_times *t, const struct dl_inputs *in,
                          struct dl_err *err) {
    const char *device = in->system->device->name,
               *precision = dl_precision_names[in->plan.precision];
    if (strcmp(t->workload, in->workload->name) != 0)
        return dl_fail(err, DL_ERR_USAGE, "--layers: the times are of workload %.80s, not of %.80s",
                       t->workload, in->workload->name);
    if (t->device != NULL && strcmp(t->device, device) != 0)
        return dl_fail(err, DL_ERR_USAGE, "--layers: the times are of device %.80s, not of %.80s",
                       t->device, device);
    if (t->precision != in->plan.precision)
        return dl_fail(err, DL_ERR_USAGE, "--layers: the times are of precision %s, not of %s",
                       dl_precision_names[t->precision], precision);
    if (!fits_any(t, in))
        return dl_fail(err, DL_ERR_USAGE,
                       "--layers: the times are of framework %.80s, not of %.80s", t->framework,
                       in->framework_count == 1 ? in->frameworks[0]->name
                                                : "any that was asked for");
    if (in->plan.recompute != DL_RECOMPUTE_NONE)
        return dl_fail(err, DL_ERR_USAGE,
                       "--layers: the times were measured without recomputation; omit --recompute");
    if (dl_layer_times_known(t, in->workload) == 0)
        return dl_fail(err, DL_ERR_USAGE, "--layers: the file names no layer of %.80s",
                       in->workload->name);
    return DL_OK;
}

static void note(struct dl_context *context, const struct dl_inputs *in,
                 const struct dl_layer_times *t) {
    const double first = t->batches[0].batch_samples,
                 last = t->batches[t->batch_count - 1].batch_samples;
    context->note(context,
                  "%d of %d layers have times measured by framework profiler (%s, batch %g%s%s)",
                  dl_layer_times_known(t, in->workload), in->workload->layer_count, t->name, first,
                  last > first ? " to " : "",
                  last > first ? dl_arena_printf(context->arena, "%g", last) : "");
}

enum dl_code dl_layer_inputs_load(struct dl_context *context, struct dl_inputs *in,
                                  struct dl_err *err) {
    const char *asked = in->words.layers;
    const char **names;
    if (asked != NULL) {
        DL_TRY(load(context, asked, &in->layer_times[0], err));
        DL_TRY(check(in->layer_times[0], in, err));
        in->layer_times_count = 1;
        note(context, in, in->layer_times[0]);
        return DL_OK;
    }
    dl_data_names(&context->data, DL_DATA_LAYERS, context->arena, &names);
    for (int i = 0; names[i] != NULL && in->layer_times_count < DL_MAX_LAYER_TIMES; i++) {
        const struct dl_layer_times *t;
        DL_TRY(load(context, names[i], &t, err));
        if (!fits_any(t, in) || in->plan.recompute != DL_RECOMPUTE_NONE ||
            dl_layer_times_known(t, in->workload) == 0)
            continue;
        in->layer_times[in->layer_times_count++] = t;
        in->words.layers = names[i];
        note(context, in, t);
    }
    return DL_OK;
}

const struct dl_layer_times *dl_layer_inputs_for(const struct dl_inputs *in,
                                                 const struct dl_framework *framework) {
    for (int i = 0; i < in->layer_times_count; i++) {
        if (dl_layer_times_fit(in->layer_times[i], in->workload, framework, in->system->device,
                               in->plan.precision))
            return in->layer_times[i];
    }
    return NULL;
}

enum dl_code dl_layer_inputs_all(struct dl_context *context, const struct dl_options *options,
                                 struct dl_data *data, struct dl_err *err) {
    enum { MOST = 256 };
    const struct dl_layer_times **list = dl_arena_alloc(context->arena, MOST, sizeof *list);
    const char **names;
    int count = 0;
    for (int i = 0; i < options->given_count; i++) {
        if (strcmp(options->given[i].option->name, "layers") != 0) continue;
        if (count == MOST) return dl_fail(err, DL_ERR_USAGE, "--layers: more than %d files", MOST);
        DL_TRY(load(context, options->given[i].value, &list[count++], err));
    }
    if (count == 0) {
        dl_data_names(&context->data, DL_DATA_LAYERS, context->arena, &names);
        for (int i = 0; names[i] != NULL && count < MOST; i++)
            DL_TRY(load(context, names[i], &list[count++], err));
    }
    data->layer_times = list;
    data->layer_times_count = count;
    return DL_OK;
}
