/* layer_times.c - see the header. */
#include "model/framework/layer_times.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char origin[] = "measured by framework profiler";
static const double SIGMA_LOG = 0.03;         /* run-to-run spread of a layer's time (unverified) */
static const double SIGMA_LOG_OUTSIDE = 0.15; /* scaled beyond the measured batches (unverified) */

#define LAYER(field_key, member, text)                                                             \
    {                                                                                              \
        .key = field_key, .type = DL_FIELD_NUMBER,                                                 \
        .offset = offsetof(struct dl_layer_time, member), .min = 0, .max = 1e4, .unit = DL_UNIT_S, \
        .help = text                                                                               \
    }

static const struct dl_field layer_fields[] = {
    {.key = "name",
     .type = DL_FIELD_STRING,
     .offset = offsetof(struct dl_layer_time, name),
     .required = true,
     .help = "full name of the workload's layer"},
    LAYER("forward_s", forward_s, "forward pass of the whole batch"),
    LAYER("backward_s", backward_s, "backward pass: data and weights"),
    {.key = NULL},
};
static const struct dl_schema layer_schema = {.name = "layer-time",
                                              .summary = "one layer",
                                              .size = sizeof(struct dl_layer_time),
                                              .fields = layer_fields};

#define BATCH(field_key, member) .key = field_key, .offset = offsetof(struct dl_layer_batch, member)

static const struct dl_field batch_fields[] = {
    {BATCH("batch_samples", batch_samples), .type = DL_FIELD_NUMBER, .min = 1, .max = 1e9,
     .unit = DL_UNIT_SAMPLE, .required = true, .help = "on one device"},
    {BATCH("update_s", update_s), .type = DL_FIELD_NUMBER, .min = 0, .max = 1e4, .unit = DL_UNIT_S,
     .help = "optimizer step; on a CPU everything of an iteration that belongs to no layer"},
    {BATCH("jitter_frac", jitter_frac), .type = DL_FIELD_NUMBER, .min = 0, .max = 10,
     .unit = DL_UNIT_NONE, .help = "standard deviation of iterations / their mean"},
    {BATCH("core_s", core_s), .type = DL_FIELD_NUMBER, .min = 1e-9, .max = 1e3, .unit = DL_UNIT_S,
     .help = "median of a fixed GEMM timed between the iterations: speed of the core"},
    {BATCH("steps", steps), .type = DL_FIELD_INTEGER, .min = 1, .max = 1e9, .unit = DL_UNIT_COUNT,
     .help = "measured iterations"},
    {BATCH("layers", layers), .type = DL_FIELD_LIST,
     .count_offset = offsetof(struct dl_layer_batch, layer_count), .child = &layer_schema,
     .required = true, .help = "times of layers"},
    {.key = NULL},
};
static const struct dl_schema batch_schema = {.name = "batch",
                                              .summary = "all layers at one batch",
                                              .size = sizeof(struct dl_layer_batch),
                                              .fields = batch_fields};

#define TEXT(member, need, text)                                                                   \
    {                                                                                              \
        .key = #member, .type = DL_FIELD_STRING,                                                   \
        .offset = offsetof(struct dl_layer_times, member), .required = need, .help = text          \
    }

static const struct dl_field fields[] = {
    TEXT(name, true, "name of this set of times"),
    TEXT(summary, true, "description in one line"),
    TEXT(source, true, "key of data/SOURCES.md, or measured"),
    TEXT(workload, true, "name of the workload"),
    TEXT(framework, true, "framework, or a part of its name (pytorch)"),
    TEXT(device, false, "name of the device; absent: any"),
    {.key = "precision",
     .type = DL_FIELD_CHOICE,
     .offset = offsetof(struct dl_layer_times, precision),
     .choices = dl_precision_names,
     .required = true,
     .help = "of the training"},
    {.key = "batches",
     .type = DL_FIELD_LIST,
     .offset = offsetof(struct dl_layer_times, batches),
     .count_offset = offsetof(struct dl_layer_times, batch_count),
     .child = &batch_schema,
     .required = true,
     .help = "ascending"},
    TEXT(measured_on, false, "host name"),
    TEXT(measured_at, false, "date and time"),
    TEXT(comment, false, "free text"),
    {.key = NULL},
};

const struct dl_schema dl_layer_times_schema = {
    .name = "dlmodel-layers",
    .summary = "times of a workload's layers, measured by a framework's profiler",
    .size = sizeof(struct dl_layer_times),
    .fields = fields,
    .top_level = true,
};

enum dl_code dl_layer_times_check(const struct dl_layer_times *t, const struct dl_json *doc,
                                  struct dl_err *err) {
    char where[64];
    if (t->batch_count == 0)
        return dl_json_fail(doc, "batches", err, "expected at least one batch");
    for (int b = 0; b < t->batch_count; b++) {
        const struct dl_layer_batch *batch = &t->batches[b];
        snprintf(where, sizeof where, "batches[%d].batch_samples", b);
        if (b > 0 && !(batch->batch_samples > t->batches[b - 1].batch_samples))
            return dl_json_fail(doc, where, err, "expected ascending batches");
        if (batch->layer_count == 0)
            return dl_json_fail(doc, where, err, "expected the times of at least one layer");
        for (int i = 0; i < batch->layer_count; i++) {
            snprintf(where, sizeof where, "batches[%d].layers[%d].name", b, i);
            for (int k = 0; k < i && batch->layer_count <= 20000; k++) {
                if (strcmp(batch->layers[i].name, batch->layers[k].name) == 0)
                    return dl_json_fail(doc, where, err, "'%.80s' is named twice",
                                        batch->layers[i].name);
            }
        }
    }
    return DL_OK;
}

bool dl_layer_times_fit(const struct dl_layer_times *t, const struct dl_workload *workload,
                        const struct dl_framework *framework, const struct dl_device *device,
                        enum dl_precision precision) {
    return strcmp(t->workload, workload->name) == 0 &&
           strstr(framework->name, t->framework) != NULL && t->precision == precision &&
           (t->device == NULL || strcmp(t->device, device->name) == 0);
}

static const struct dl_layer_time *find(const struct dl_layer_batch *batch, const char *name) {
    for (int i = 0; i < batch->layer_count; i++) {
        if (strcmp(batch->layers[i].name, name) == 0) return &batch->layers[i];
    }
    return NULL;
}

int dl_layer_times_known(const struct dl_layer_times *t, const struct dl_workload *workload) {
    int count = 0;
    for (int i = 0; i < workload->layer_count; i++) {
        bool known = false;
        for (int b = 0; b < t->batch_count; b++)
            known = known || find(&t->batches[b], workload->layers[i].name) != NULL;
        count += known;
    }
    return count;
}

/* Which pass of a layer, or the update, is read. */
enum part { PART_FORWARD, PART_BACKWARD, PART_UPDATE };

static double measured(const struct dl_layer_batch *batch, const char *layer, enum part part) {
    if (part == PART_UPDATE) return batch->update_s;
    const struct dl_layer_time *t = find(batch, layer);
    return t == NULL ? NAN : part == PART_FORWARD ? t->forward_s : t->backward_s;
}

static const struct dl_pass_cost *pass_of(const struct dl_cost *cost, int layer, enum part part) {
    return part == PART_UPDATE    ? &cost->update
           : part == PART_FORWARD ? &cost->layers[layer].forward
                                  : &cost->layers[layer].backward;
}

struct reading {
    double time_s;
    bool outside;
};

/* The nearest batches around `batch` at which a time was measured; NULL: none on that side. */
struct around {
    const struct dl_layer_batch *below, *above;
};

static struct around find_around(const struct dl_layer_times *t, const char *layer, enum part part,
                                 double batch) {
    struct around a = {NULL, NULL};
    for (int b = 0; b < t->batch_count; b++) {
        if (!dl_known(measured(&t->batches[b], layer, part))) continue;
        if (t->batches[b].batch_samples <= batch) a.below = &t->batches[b];
        if (t->batches[b].batch_samples >= batch && a.above == NULL) a.above = &t->batches[b];
    }
    return a;
}

/* Log-log between two measured batches; the larger where one of them is zero. */
static double interpolate_s(const struct around *a, double batch, double low_s, double high_s) {
    if (!(low_s > 0) || !(high_s > 0)) return fmax(low_s, high_s);
    const double share = log(batch / a->below->batch_samples) /
                         log(a->above->batch_samples / a->below->batch_samples);
    return low_s * pow(high_s / low_s, share);
}

static struct reading read_time(const struct dl_layer_times *t, const char *layer, int index,
                                enum part part, double batch, const struct dl_layer_costs *m) {
    const struct around a = find_around(t, layer, part, batch);
    const bool has_below = a.below != NULL, has_above = a.above != NULL;
    if (!has_below && !has_above) return (struct reading){NAN, false};
    const double low_s = has_below ? measured(a.below, layer, part) : NAN,
                 high_s = has_above ? measured(a.above, layer, part) : NAN;
    if (part == PART_UPDATE) /* does not depend on the batch */
        return (struct reading){has_below ? low_s : high_s, false};
    if (a.below == a.above) return (struct reading){low_s, false};
    if (has_below && has_above)
        return (struct reading){interpolate_s(&a, batch, low_s, high_s), false};
    /* the model's time is known at the first and the last batch */
    const struct dl_layer_batch *from = has_below ? a.below : a.above;
    const struct dl_cost *there = from == t->batches                        ? m->lowest
                                  : from == &t->batches[t->batch_count - 1] ? m->highest
                                                                            : NULL;
    const double there_s = there != NULL ? pass_of(there, index, part)->time_s : 0;
    const double ratio =
        there_s > 0 ? pass_of(m->here, index, part)->time_s / there_s : batch / from->batch_samples;
    return (struct reading){(has_below ? low_s : high_s) * ratio, true};
}

/* Replaces the time; what bounds the layer and its launches stay as modelled. */
static void replace(struct dl_pass_cost *cost, struct reading reading) {
    if (!dl_known(reading.time_s)) return;
    const double sigma = reading.outside ? SIGMA_LOG_OUTSIDE : SIGMA_LOG;
    if (cost->time_s > 0) {
        for (int i = 0; i < 3; i++) cost->by_limit_s[i] *= reading.time_s / cost->time_s;
        cost->weights_s *= reading.time_s / cost->time_s;
    } else {
        cost->by_limit_s[DL_LIMIT_MEMORY] = reading.time_s;
    }
    cost->time_s = reading.time_s;
    cost->error_s = sigma * reading.time_s;
    cost->error_square_s2 = cost->error_s * cost->error_s;
    cost->extrapolated = reading.outside;
    cost->formula = "F-LAYER-TIMES";
    cost->origin = origin;
    cost->origin_device = NULL;
}

/* The member of the nearest batch that has it. */
static double nearest_of(const struct dl_layer_times *t, double batch, size_t member) {
    double found = NAN, nearest = INFINITY;
    for (int b = 0; b < t->batch_count; b++) {
        const double away = fabs(log(t->batches[b].batch_samples / batch));
        const double value = *(const double *)(const void *)((const char *)&t->batches[b] + member);
        if (!dl_known(value) || away >= nearest) continue;
        nearest = away;
        found = value;
    }
    return found;
}

double dl_layer_times_jitter_frac(const struct dl_layer_times *t, double batch) {
    return nearest_of(t, batch, offsetof(struct dl_layer_batch, jitter_frac));
}

double dl_layer_times_core_s(const struct dl_layer_times *t, double batch) {
    return nearest_of(t, batch, offsetof(struct dl_layer_batch, core_s));
}

enum dl_code dl_layer_times_apply(const struct dl_layer_times *t,
                                  const struct dl_workload *workload, double batch,
                                  const struct dl_layer_costs *costs, struct dl_err *err) {
    struct dl_cost *cost = costs->here;
    if (dl_layer_times_known(t, workload) == 0) {
        return dl_fail(err, DL_ERR_USAGE, "the layer times '%.80s' name no layer of %.80s", t->name,
                       workload->name);
    }
    for (int i = 0; i < workload->layer_count; i++) {
        const char *name = workload->layers[i].name;
        /* read both before replacing either */
        const struct reading forward = read_time(t, name, i, PART_FORWARD, batch, costs);
        const struct reading backward = read_time(t, name, i, PART_BACKWARD, batch, costs);
        replace(&cost->layers[i].forward, forward);
        replace(&cost->layers[i].backward, backward);
    }
    replace(&cost->update, read_time(t, "", -1, PART_UPDATE, batch, costs));
    return DL_OK;
}
