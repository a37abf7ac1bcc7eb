/* import_times.c - `dlmodel import trace`: a profiler's traces as times of a workload's layers. */
#include <stdlib.h>
#include <string.h>

#include "model/core/file.h"
#include "model/core/text.h"
#include "import/import.h"
#include "import/import_trace.h"

enum { BATCHES_MAX = 32, SHOWN = 5 };

/* A trace has fewer than six significant digits. */
static double rounded(struct dl_arena *arena, double value) {
    return dl_known(value) ? strtod(dl_arena_printf(arena, "%.6g", value), NULL) : value;
}

static bool has_layer(const struct dl_workload *w, const char *name) {
    for (int i = 0; i < w->layer_count; i++) {
        if (strcmp(w->layers[i].name, name) == 0) return true;
    }
    return false;
}

/* Ranges that are not layers of the workload are omitted and reported. */
static int keep_known(struct dl_context *context, const struct dl_workload *w,
                      struct dl_trace_times *t, const char *path) {
    const char **names = dl_arena_alloc(context->arena, (size_t)w->layer_count + 1, sizeof *names);
    int kept = 0, unknown = 0;
    for (int i = 0; i < w->layer_count; i++) names[i] = w->layers[i].name;
    for (int i = 0; i < t->layer_count; i++) {
        if (has_layer(w, t->layers[i].name)) {
            t->layers[kept++] = t->layers[i];
            continue;
        }
        const char *near = dl_suggest(t->layers[i].name, names);
        if (unknown++ < SHOWN) {
            context->note(context, "%s: '%.80s' is not a layer of %s%s%s%s", path,
                          t->layers[i].name, w->name, near != NULL ? "; did you mean '" : "",
                          near != NULL ? near : "", near != NULL ? "'?" : "");
        }
    }
    if (unknown > SHOWN)
        context->note(context, "%s: and %d more names that are not layers of it", path,
                      unknown - SHOWN);
    t->layer_count = kept;
    return kept;
}

static void note_batch(struct dl_context *context, const struct dl_workload *w,
                       const struct dl_trace_times *t, const char *path, double batch) {
    double forward_s = 0, backward_s = 0;
    int without = 0;
    for (int i = 0; i < t->layer_count; i++) {
        if (dl_known(t->layers[i].forward_s)) forward_s += t->layers[i].forward_s;
        if (dl_known(t->layers[i].backward_s))
            backward_s += t->layers[i].backward_s;
        else
            without++;
    }
    context->note(
        context,
        "%s: batch %g, %lld iterations, %d of %d layers: forward %.4g ms, backward %.4g ms%s", path,
        batch, (long long)t->steps, t->layer_count, w->layer_count, 1e3 * forward_s,
        1e3 * backward_s, t->by_sequence ? " (by sequence numbers)" : "");
    if (without > 0)
        context->note(
            context, "%s: %d layers have no backward time; predictions use modelled times for them",
            path, without);
    if (t->on_device && t->unclaimed_s > 0) {
        context->note(context, "%s: %.3g %% of the device's time is outside all layers", path,
                      100 * t->unclaimed_s / t->kernel_s);
    }
}

/* A file, the batch that was measured, and how to read it. */
struct measured_file {
    const char *path;
    double batch;
    int64_t steps;
    bool quartile;
};

static enum dl_code read_one(struct dl_context *context, const struct dl_workload *w,
                             const struct measured_file *file, struct dl_layer_batch *out,
                             struct dl_err *err) {
    const char *path = file->path;
    const double batch = file->batch;
    const int64_t steps = file->steps;
    const bool quartile = file->quartile;
    char *text = NULL;
    size_t length = 0;
    struct dl_trace_times t;
    if (dl_ends_in(path, ".csv")) {
        DL_TRY(dl_data_read(&context->data, path, 64u << 20, context->arena, &text, &length, err));
        DL_TRY(dl_trace_csv(path, text, length, steps, context->arena, &t, err));
    } else {
        DL_TRY(dl_trace_file(path, steps, context->arena, &t, err));
    }
    if (keep_known(context, w, &t, path) == 0)
        return dl_fail_at(
            err, path, 0, 0, NULL,
            "none of its ranges is a layer of %.80s; see 'dlmodel explain --workload'", w->name);
    note_batch(context, w, &t, path, batch);
    t.update_s =
        rounded(context->arena,
                quartile && dl_known(t.quartile_update_s) ? t.quartile_update_s : t.update_s);
    if (quartile && dl_known(t.quartile_jitter_frac)) t.jitter_frac = t.quartile_jitter_frac;
    for (int i = 0; i < t.layer_count; i++) {
        t.layers[i].forward_s = rounded(context->arena, t.layers[i].forward_s);
        t.layers[i].backward_s = rounded(context->arena, t.layers[i].backward_s);
    }
    *out = (struct dl_layer_batch){.batch_samples = batch,
                                   .update_s = t.update_s,
                                   .jitter_frac = rounded(context->arena, t.jitter_frac),
                                   .core_s = t.core_s,
                                   .steps = t.steps,
                                   .layers = t.layers,
                                   .layer_count = t.layer_count};
    return DL_OK;
}

static int by_batch(const void *a, const void *b) {
    const double x = ((const struct dl_layer_batch *)a)->batch_samples,
                 y = ((const struct dl_layer_batch *)b)->batch_samples;
    return x < y ? -1 : x > y;
}

static const struct dl_layer_time *time_of(const struct dl_layer_batch *b, const char *name) {
    for (int i = 0; i < b->layer_count; i++) {
        if (strcmp(b->layers[i].name, name) == 0) return &b->layers[i];
    }
    return NULL;
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* NAN: none of them was measured. */
static double median(struct dl_arena *arena, double *values, size_t count) {
    size_t known = 0;
    for (size_t i = 0; i < count; i++) {
        if (dl_known(values[i])) values[known++] = values[i];
    }
    if (known == 0) return NAN;
    qsort(values, known, sizeof *values, by_value);
    return rounded(arena, 0.5 * (values[(known - 1) / 2] + values[known / 2]));
}

/* Files of one batch are repeats: the median of their times, into the first of them. */
static void join_group(struct dl_arena *arena, struct dl_layer_batch *list, size_t count) {
    struct dl_layer_batch *to = &list[0];
    double update_s[BATCHES_MAX], jitter_frac[BATCHES_MAX], core_s[BATCHES_MAX],
        forward_s[BATCHES_MAX], backward_s[BATCHES_MAX];
    for (size_t i = 0; i < count; i++) {
        update_s[i] = list[i].update_s, jitter_frac[i] = list[i].jitter_frac,
        core_s[i] = list[i].core_s;
        if (i > 0) to->steps += list[i].steps;
    }
    to->update_s = median(arena, update_s, count),
    to->jitter_frac = median(arena, jitter_frac, count);
    to->core_s = median(arena, core_s, count);
    for (int k = 0; k < to->layer_count; k++) {
        for (size_t i = 0; i < count; i++) {
            const struct dl_layer_time *t = time_of(&list[i], to->layers[k].name);
            forward_s[i] = t != NULL ? t->forward_s : NAN,
            backward_s[i] = t != NULL ? t->backward_s : NAN;
        }
        to->layers[k].forward_s = median(arena, forward_s, count),
        to->layers[k].backward_s = median(arena, backward_s, count);
    }
}

/* Returns the batches that are left. */
static size_t join_repeats(struct dl_arena *arena, struct dl_layer_batch *list, size_t count) {
    size_t kept = 0;
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && list[end].batch_samples == list[i].batch_samples;) end++;
        if (end - i > 1) join_group(arena, &list[i], end - i);
        list[kept++] = list[i];
    }
    return kept;
}

static enum dl_code read_batches(const char *text, int files, int64_t *list, size_t *count,
                                 struct dl_err *err) {
    struct dl_err inner = {.code = DL_OK};
    if (text == NULL)
        return dl_fail(err, DL_ERR_USAGE,
                       "--batch: give the samples per device, one number for each file");
    if (dl_list_parse(text, list, BATCHES_MAX, count, &inner) != DL_OK)
        return dl_fail(err, DL_ERR_USAGE, "--batch: %s", inner.message);
    if (*count != (size_t)files)
        return dl_fail(err, DL_ERR_USAGE,
                       "--batch: expected one number for each of %d files, got %zu", files, *count);
    return DL_OK;
}

/* The device: named, or that of a system. */
static enum dl_code find_device(struct dl_context *context, const struct dl_import_asked *asked,
                                const char **out, struct dl_err *err) {
    const char *system = asked->system;
    *out = asked->device;
    if (asked->device != NULL && system != NULL)
        return dl_fail(err, DL_ERR_USAGE, "give --device or --system, not both");
    if (system != NULL) {
        const struct dl_system *s;
        DL_TRY(dl_data_system(&context->data, system, context->arena, &s, err));
        *out = s->device->name;
    }
    if (*out == NULL)
        return dl_fail(err, DL_ERR_USAGE,
                       "give --device NAME or --system NAME: what it was measured on");
    return DL_OK;
}

static void describe(struct dl_context *context, const struct dl_import_asked *asked,
                     struct dl_layer_times *times) {
    struct dl_arena *arena = context->arena;
    times->framework = asked->framework != NULL ? asked->framework : "pytorch";
    times->precision = asked->precision;
    times->name = asked->name != NULL ? asked->name
                                      : dl_arena_printf(arena, "%s-%s-%s", times->framework,
                                                        times->workload, times->device);
    times->summary =
        dl_arena_printf(arena, "%s under %s on %s, %s, measured layer by layer", times->workload,
                        times->framework, times->device, dl_precision_names[asked->precision]);
}

/* The file as text, loaded again: predict must accept what import writes. */
static enum dl_code times_text(const struct dl_layer_times *times, struct dl_arena *arena,
                               char **out, struct dl_err *err) {
    struct dl_layer_times again;
    struct dl_json *doc;
    *out = dl_json_text(&dl_layer_times_schema, times, arena);
    DL_TRY(dl_json_parse("layer times", *out, strlen(*out), arena, &doc, err));
    DL_TRY(dl_json_load(doc, &dl_layer_times_schema, arena, &again, err));
    return dl_layer_times_check(&again, doc, err);
}

enum dl_code dl_import_trace(struct dl_context *context, const struct dl_options *options,
                             const struct dl_import_asked *asked, struct dl_err *err) {
    struct dl_layer_batch batches[BATCHES_MAX];
    struct dl_layer_times times = {.source = "measured"};
    const struct dl_workload *w;
    int64_t list[BATCHES_MAX];
    size_t count = 0;
    char *text;
    DL_TRY(dl_import_files(options, BATCHES_MAX, err));
    if (asked->workload == NULL)
        return dl_fail(err, DL_ERR_USAGE, "give --workload NAME: the network that was traced");
    DL_TRY(read_batches(asked->batch, options->positional_count - 1, list, &count, err));
    DL_TRY(find_device(context, asked, &times.device, err));
    DL_TRY(dl_data_workload(&context->data, asked->workload, context->arena, &w, err));
    for (size_t i = 0; i < count; i++) {
        if (list[i] < 1)
            return dl_fail(err, DL_ERR_USAGE, "--batch: expected numbers of at least 1");
        DL_TRY(read_one(context, w,
                        &(struct measured_file){options->positional[1 + i], (double)list[i],
                                                asked->steps, asked->quartile},
                        &batches[i], err));
    }
    qsort(batches, count, sizeof *batches, by_batch);
    times.batches = batches;
    times.batch_count = (int)join_repeats(context->arena, batches, count);
    times.workload = w->name;
    describe(context, asked, &times);
    DL_TRY(times_text(&times, context->arena, &text, err));
    return context->output(options, text, err);
}
