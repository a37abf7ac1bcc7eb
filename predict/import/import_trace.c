/* import_trace.c - see the header. PyTorch's profiler writes {"traceEvents": [...]} (Kineto) or the
 * list alone (before it); times are in us. What is used of an event: ph "X", name, cat, ts, dur,
 * pid, tid, args: correlation, "Sequence number", "Fwd thread id".
 */
#include "predict/import/import_trace.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/csv.h"
#include "model/base/json_node.h"

enum { FEWEST_STEPS = 8 }; /* for a standard deviation */

enum kind { KIND_FORWARD, KIND_BACKWARD, KIND_UPDATE, KIND_OPERATOR, KIND_SEQUENCE, KIND_LAUNCH };

struct event { /* a range, or a point that asks in which range it lies */
    enum kind kind;
    uint64_t thread;
    double ts_us, dur_us, number; /* number: correlation or sequence number */
    const char *layer;            /* FORWARD, BACKWARD; points into the document */
    size_t layer_length;
    double inside_us; /* of ranges within, and of kernels */
    double kernel_us, backward_us;
    int range; /* index of the innermost layer range around it, -1: none */
};

struct link {
    double number;
    int event;
}; /* sorted by number */

struct reader {
    const char *name;
    struct dl_arena *arena;
    struct dl_err *err;
    struct event *events;
    int count;
    struct link *kernels;
    double *kernel_us;
    int kernel_count; /* correlation of each kernel */
    /* ProfilerStep#I: how many, their sum and that of their squares */
    int steps;
    double steps_us, squares_us2;
    double *step_us; /* each */
};

static enum dl_code no_memory(struct dl_err *err) {
    return dl_fail(err, DL_ERR_SYSTEM, "out of memory while reading a trace");
}

static const struct dl_json_node *member(const struct dl_json_node *object, const char *key) {
    return object == NULL || object->kind != DL_JSON_OBJECT
               ? NULL
               : dl_json_member(object, key, strlen(key));
}

static const char *text_of(const struct dl_json_node *n) {
    return n != NULL && n->kind == DL_JSON_STRING ? n->string : "";
}
static double number_of(const struct dl_json_node *n) {
    return n != NULL && n->kind == DL_JSON_NUMBER ? n->number : NAN;
}

static uint64_t mix(uint64_t hash, const struct dl_json_node *n) {
    double number = number_of(n);
    const unsigned char *bytes = (const unsigned char *)&number;
    for (const char *at = text_of(n); *at != 0; at++)
        hash = (hash ^ (unsigned char)*at) * 1099511628211u;
    for (size_t i = 0; i < sizeof number; i++) hash = (hash ^ bytes[i]) * 1099511628211u;
    return hash;
}

static bool one_of(const char *text, const char *const *list) {
    for (int i = 0; list[i] != NULL; i++) {
        if (strcmp(text, list[i]) == 0) return true;
    }
    return false;
}

static bool starts(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
}

/* "layer:NAME:forward" */
static bool layer_range(const char *name, struct event *e) {
    if (!starts(name, "layer:")) return false;
    const char *from = name + 6, *colon = strrchr(from, ':');
    if (colon == NULL || colon == from) return false;
    if (strcmp(colon, ":forward") == 0)
        e->kind = KIND_FORWARD;
    else if (strcmp(colon, ":backward") == 0)
        e->kind = KIND_BACKWARD;
    else
        return false;
    e->layer = from;
    e->layer_length = (size_t)(colon - from);
    return true;
}

static enum dl_code read_event(struct reader *r, const struct dl_json_node *n, int index) {
    static const char *const device[] = {"kernel",     "Kernel", "gpu_memcpy",
                                         "gpu_memset", "gpu_op", NULL};
    static const char *const runtime[] = {"cuda_runtime", "cuda_driver", "Runtime", "hip_runtime",
                                          NULL};
    if (n->kind != DL_JSON_OBJECT)
        return dl_fail_at(r->err, r->name, 0, 0, NULL, "event %d: expected an object", index);
    if (strcmp(text_of(member(n, "ph")), "X") != 0) return DL_OK;
    const char *name = text_of(member(n, "name")), *cat = text_of(member(n, "cat"));
    const struct dl_json_node *args = member(n, "args");
    struct event e = {
        .ts_us = number_of(member(n, "ts")), .dur_us = number_of(member(n, "dur")), .range = -1};
    const bool relevant = starts(name, "layer:") || starts(name, "ProfilerStep#") ||
                          one_of(cat, device) || starts(name, "Optimizer.step") ||
                          strcmp(name, "update") == 0;
    if (!(e.dur_us >= 0) || !dl_known(e.ts_us)) {
        return relevant
                   ? dl_fail_at(r->err, r->name, 0, 0, NULL,
                                "event %d ('%.60s'): expected numbers ts and dur, dur at least 0",
                                index, name)
                   : DL_OK;
    }
    e.thread = mix(mix(14695981039346656037u, member(n, "pid")), member(n, "tid"));
    const double correlation = number_of(member(args, "correlation")),
                 sequence = number_of(member(args, "Sequence number"));
    if (one_of(cat, device)) {
        r->kernels[r->kernel_count] =
            (struct link){dl_known(correlation) ? correlation : -1, r->kernel_count};
        r->kernel_us[r->kernel_count++] = e.dur_us;
        return DL_OK;
    }
    /* the same range once more, on the device's line */
    if (strcmp(cat, "gpu_user_annotation") == 0) return DL_OK;
    if (starts(name, "ProfilerStep#")) {
        r->step_us[r->steps++] = e.dur_us;
        r->steps_us += e.dur_us;
        r->squares_us2 += e.dur_us * e.dur_us;
        return DL_OK;
    }
    if (one_of(cat, runtime)) {
        if (!dl_known(correlation)) return DL_OK;
        e.kind = KIND_LAUNCH;
        e.number = correlation;
    } else if (starts(name, "Optimizer.step") || strcmp(name, "update") == 0) {
        e.kind = KIND_UPDATE;
    } else if (!layer_range(name, &e)) {
        if (!(sequence >= 0)) return DL_OK;
        const bool back = starts(name, "autograd::engine::evaluate_function");
        /* inside such an event */
        if (!back && number_of(member(args, "Fwd thread id")) > 0) return DL_OK;
        e.kind = back ? KIND_OPERATOR : KIND_SEQUENCE;
        e.number = sequence;
    }
    r->events[r->count++] = e;
    return DL_OK;
}

/* By thread, then start; of two that start together the outer one first, and ranges before points.
 */
static int by_start(const void *a, const void *b) {
    const struct event *x = a, *y = b;
    if (x->thread != y->thread) return x->thread < y->thread ? -1 : 1;
    if (x->ts_us != y->ts_us) return x->ts_us < y->ts_us ? -1 : 1;
    const int px = x->kind >= KIND_SEQUENCE, py = y->kind >= KIND_SEQUENCE;
    if (px != py) return px - py;
    return x->dur_us > y->dur_us ? -1 : x->dur_us < y->dur_us;
}

static int by_number(const void *a, const void *b) {
    const struct link *x = a, *y = b;
    return x->number < y->number ? -1 : x->number > y->number ? 1 : x->event - y->event;
}

static const struct link *find(const struct link *links, int count, double number) {
    int low = 0, high = count;
    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (links[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && links[low].number == number ? &links[low] : NULL;
}

/* For each event the innermost range around it, thread by thread. */
static enum dl_code nest(struct reader *r) {
    int *stack = dl_arena_alloc(r->arena, (size_t)r->count, sizeof *stack), depth = 0;
    if (stack == NULL) return no_memory(r->err);
    qsort(r->events, (size_t)r->count, sizeof *r->events, by_start);
    for (int i = 0; i < r->count; i++) {
        struct event *e = &r->events[i];
        while (depth > 0 &&
               (r->events[stack[depth - 1]].thread != e->thread ||
                r->events[stack[depth - 1]].ts_us + r->events[stack[depth - 1]].dur_us <= e->ts_us))
            depth--;
        e->range = depth > 0 ? stack[depth - 1] : -1;
        if (e->kind >= KIND_SEQUENCE) continue;
        /* in a layer's own range */
        if (e->kind == KIND_OPERATOR && e->range >= 0 && r->events[e->range].kind != KIND_OPERATOR)
            continue;
        if (e->range >= 0 && e->kind != KIND_OPERATOR) r->events[e->range].inside_us += e->dur_us;
        stack[depth++] = i;
    }
    return DL_OK;
}

/* Kernels to the ranges in which they were launched; returns what no range claims. */
static enum dl_code place_kernels(struct reader *r, double *all_us, double *unclaimed_us) {
    struct link *launches = dl_arena_alloc(r->arena, (size_t)r->count, sizeof *launches);
    int count = 0;
    if (launches == NULL) return no_memory(r->err);
    for (int i = 0; i < r->count; i++) {
        if (r->events[i].kind == KIND_LAUNCH)
            launches[count++] = (struct link){r->events[i].number, i};
    }
    qsort(launches, (size_t)count, sizeof *launches, by_number);
    for (int k = 0; k < r->kernel_count; k++) {
        const struct link *launch =
            r->kernels[k].number >= 0 ? find(launches, count, r->kernels[k].number) : NULL;
        const int range = launch == NULL ? -1 : r->events[launch->event].range;
        *all_us += r->kernel_us[k];
        if (range < 0)
            *unclaimed_us += r->kernel_us[k];
        else
            r->events[range].kernel_us += r->kernel_us[k];
    }
    return DL_OK;
}

/* Backward operators to the forward ranges whose operators had the same sequence number. */
static enum dl_code place_operators(struct reader *r, double *unclaimed_us, bool *any) {
    struct link *made = dl_arena_alloc(r->arena, (size_t)r->count, sizeof *made);
    int count = 0;
    if (made == NULL) return no_memory(r->err);
    for (int i = 0; i < r->count; i++) {
        const struct event *e = &r->events[i];
        if (e->kind == KIND_SEQUENCE && e->range >= 0 && r->events[e->range].kind == KIND_FORWARD)
            made[count++] = (struct link){e->number, e->range};
    }
    qsort(made, (size_t)count, sizeof *made, by_number);
    for (int i = 0; i < r->count; i++) {
        const struct event *e = &r->events[i];
        if (e->kind != KIND_OPERATOR) continue;
        if (e->range >= 0 && r->events[e->range].kind != KIND_OPERATOR) continue;
        const double time_us = r->kernel_count > 0 ? e->kernel_us : e->dur_us;
        const struct link *layer = find(made, count, e->number);
        if (layer == NULL)
            *unclaimed_us += r->kernel_count > 0 ? e->kernel_us : 0;
        else {
            r->events[layer->event].backward_us += time_us;
            *any = true;
        }
    }
    return DL_OK;
}

/* ---- sums by layer ---- */

/* part: 0 forward, 1 backward */
struct sample {
    const char *layer;
    size_t length;
    int first, part;
    double time_us;
};

static int by_layer(const void *a, const void *b) {
    const struct sample *x = a, *y = b;
    const int order = strncmp(x->layer, y->layer, x->length < y->length ? x->length : y->length);
    if (order != 0) return order;
    if (x->length != y->length) return x->length < y->length ? -1 : 1;
    if (x->part != y->part) return x->part - y->part;
    return x->time_us < y->time_us ? -1 : x->time_us > y->time_us;
}

struct order {
    struct dl_layer_time time;
    int first;
};
static int by_first(const void *a, const void *b) {
    return ((const struct order *)a)->first - ((const struct order *)b)->first;
}

/* The count that most layers have: how often an iteration was seen. */
static int64_t usual_count(const struct sample *s, int count) {
    int64_t best = 1;
    int most = 0;
    for (int times = 1; times <= 1000; times++) {
        int layers = 0;
        for (int i = 0, end; i < count; i = end) {
            for (end = i + 1; end < count && s[end].part == s[i].part &&
                              s[end].length == s[i].length &&
                              strncmp(s[end].layer, s[i].layer, s[i].length) == 0;)
                end++;
            layers += s[i].part == 0 && end - i == times;
        }
        if (layers > most) most = layers, best = times;
    }
    return best;
}

static enum dl_code sum_layers(struct reader *r, struct sample *s, int count, int64_t steps,
                               struct dl_trace_times *out) {
    struct order *list = dl_arena_alloc(r->arena, (size_t)count, sizeof *list);
    struct dl_layer_time *layers = dl_arena_alloc(r->arena, (size_t)count, sizeof *layers);
    int made = 0;
    if (list == NULL || layers == NULL) return no_memory(r->err);
    qsort(s, (size_t)count, sizeof *s, by_layer);
    out->steps = steps > 0 ? steps : usual_count(s, count);
    for (int i = 0, end; i < count; i = end) {
        int first = s[i].first;
        for (end = i; end < count && s[end].part == s[i].part && s[end].length == s[i].length &&
                      strncmp(s[end].layer, s[i].layer, s[i].length) == 0;
             end++) {
            if (s[end].first < first) first = s[end].first;
        }
        const int n = end - i;
        const double middle = n % 2 == 1 ? s[i + n / 2].time_us
                                         : 0.5 * (s[i + n / 2 - 1].time_us + s[i + n / 2].time_us);
        const double time_s = 1e-6 * middle * (double)n / (double)out->steps;
        const bool same = made > 0 && strlen(list[made - 1].time.name) == s[i].length &&
                          strncmp(list[made - 1].time.name, s[i].layer, s[i].length) == 0;
        if (!same) {
            const char *name = dl_arena_strndup(r->arena, s[i].layer, s[i].length);
            if (name == NULL) return no_memory(r->err);
            list[made++] = (struct order){{name, NAN, NAN}, first};
        }
        if (s[i].part == 0)
            list[made - 1].time.forward_s = time_s;
        else
            list[made - 1].time.backward_s = time_s;
    }
    qsort(list, (size_t)made, sizeof *list, by_first);
    for (int i = 0; i < made; i++) layers[i] = list[i].time;
    out->layers = layers;
    out->layer_count = made;
    return DL_OK;
}

static int by_time(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Where the host is the device: of the median step what is in no layer (clearing gradients, the
 * optimizer, the loop), at least the update. */
static double rest_s(const struct reader *r, const struct dl_trace_times *t, double update_s,
                     bool quartile) {
    double layers_s = 0;
    for (int i = 0; i < t->layer_count; i++) {
        layers_s += (dl_known(t->layers[i].forward_s) ? t->layers[i].forward_s : 0) +
                    (dl_known(t->layers[i].backward_s) ? t->layers[i].backward_s : 0);
    }
    qsort(r->step_us, (size_t)r->steps, sizeof *r->step_us, by_time);
    const double middle_us = 0.5 * (r->step_us[(r->steps - 1) / 2] + r->step_us[r->steps / 2]);
    return fmax(update_s,
                1e-6 * (quartile ? r->step_us[(r->steps - 1) / 4] : middle_us) - layers_s);
}

static enum dl_code finish(struct reader *r, int64_t steps, struct dl_trace_times *out) {
    struct sample *samples = dl_arena_alloc(r->arena, 2 * (size_t)r->count, sizeof *samples);
    double all_us = 0, unclaimed_us = 0, update_us = 0;
    int count = 0;
    bool ranges = false, sequences = false, update = false;
    if (samples == NULL) return no_memory(r->err);
    DL_TRY(nest(r));
    DL_TRY(place_kernels(r, &all_us, &unclaimed_us));
    for (int i = 0; i < r->count; i++) ranges = ranges || r->events[i].kind == KIND_BACKWARD;
    DL_TRY(place_operators(r, &unclaimed_us, &sequences));
    for (int i = 0; i < r->count; i++) {
        const struct event *e = &r->events[i];
        const double own_us =
            r->kernel_count > 0 ? e->kernel_us : fmax(e->dur_us - e->inside_us, 0);
        if (e->kind == KIND_UPDATE) update_us += own_us, update = true;
        if (e->kind != KIND_FORWARD && e->kind != KIND_BACKWARD) continue;
        samples[count++] =
            (struct sample){e->layer, e->layer_length, i, e->kind == KIND_BACKWARD, own_us};
        if (e->kind == KIND_FORWARD && !ranges && sequences)
            samples[count++] = (struct sample){e->layer, e->layer_length, i, 1, e->backward_us};
    }
    if (count == 0) {
        return dl_fail_at(r->err, r->name, 0, 0, NULL,
                          "expected ranges named layer:NAME:forward (record_function); there are "
                          "none among %d events that count",
                          r->count + r->kernel_count);
    }
    *out = (struct dl_trace_times){.on_device = r->kernel_count > 0,
                                   .by_sequence = !ranges && sequences};
    DL_TRY(sum_layers(r, samples, count, steps > 0 ? steps : r->steps, out));
    out->update_s = update ? 1e-6 * update_us / (double)out->steps : NAN;
    out->quartile_update_s = NAN;
    if (r->kernel_count == 0 && r->steps > 0) {
        const double own_s = update ? out->update_s : 0;
        out->update_s = rest_s(r, out, own_s, false);
        out->quartile_update_s = rest_s(r, out, own_s, true);
    }
    out->jitter_frac = out->quartile_jitter_frac = out->core_s = NAN;
    if (r->steps >= FEWEST_STEPS) {
        const double mean_us = r->steps_us / r->steps;
        out->jitter_frac =
            sqrt(fmax(0, (r->squares_us2 - r->steps * mean_us * mean_us) / (r->steps - 1))) /
            mean_us;
    }
    /* of normal times these two lie 0.971 standard deviations apart; rest_s sorted the steps */
    if (r->kernel_count == 0 && r->steps >= FEWEST_STEPS) {
        const double quartile_us = r->step_us[(r->steps - 1) / 4],
                     low_us = r->step_us[(r->steps - 1) / 20];
        out->quartile_jitter_frac = (quartile_us - low_us) / 0.971 / quartile_us;
    }
    out->kernel_s = 1e-6 * all_us / (double)out->steps;
    out->unclaimed_s = 1e-6 * unclaimed_us / (double)out->steps;
    return DL_OK;
}

enum dl_code dl_trace_parse(const char *name, const char *text, size_t length, int64_t steps,
                            struct dl_arena *arena, struct dl_trace_times *out,
                            struct dl_err *err) {
    struct dl_json *doc;
    DL_TRY(dl_json_parse(name, text, length, arena, &doc, err));
    const struct dl_json_node *list =
        doc->root->kind == DL_JSON_ARRAY ? doc->root : member(doc->root, "traceEvents");
    if (list == NULL || list->kind != DL_JSON_ARRAY) {
        return dl_fail_at(
            err, name, 1, 1, "traceEvents",
            "expected a Chrome trace: a list of events, or an object with one in traceEvents");
    }
    const size_t most = (size_t)list->child_count;
    struct reader r = {.name = name, .arena = arena, .err = err};
    r.events = dl_arena_alloc(arena, most, sizeof *r.events);
    r.kernels = dl_arena_alloc(arena, most, sizeof *r.kernels);
    r.kernel_us = dl_arena_alloc(arena, most, sizeof *r.kernel_us);
    r.step_us = dl_arena_alloc(arena, most, sizeof *r.step_us);
    if (r.step_us == NULL || r.events == NULL || r.kernels == NULL || r.kernel_us == NULL)
        return no_memory(err);
    int index = 0;
    for (const struct dl_json_node *n = list->child; n != NULL; n = n->next)
        DL_TRY(read_event(&r, n, index++));
    DL_TRY(finish(&r, steps, out));
    const double core_s = number_of(member(member(doc->root, "dlmodel"), "core_s"));
    if (core_s > 1e-9 && core_s < 1e3) out->core_s = core_s;
    return DL_OK;
}

enum dl_code dl_trace_csv(const char *name, const char *text, size_t length, struct dl_arena *arena,
                          struct dl_trace_times *out, struct dl_err *err) {
    struct dl_csv csv;
    struct reader r = {.name = name, .arena = arena, .err = err};
    DL_TRY(dl_csv_parse(name, text, length, arena, &csv, err));
    const int layer = dl_csv_column(&csv, "layer"), pass = dl_csv_column(&csv, "pass"),
              time = dl_csv_column(&csv, "time_s");
    struct sample *samples = dl_arena_alloc(arena, (size_t)csv.row_count, sizeof *samples);
    int count = 0;
    double update_s = NAN;
    if (samples == NULL) return no_memory(err);
    if (layer < 0 || pass < 0 || time < 0)
        return dl_fail_at(err, name, 1, 1, NULL, "expected the columns layer, pass and time_s");
    for (int i = 0; i < csv.row_count; i++) {
        const char *part = csv.rows[i][pass], *which = csv.rows[i][layer];
        double time_s;
        DL_TRY(dl_csv_number(&csv, i, time, &time_s, err));
        if (!(time_s >= 0 && time_s <= 1e4))
            return dl_fail_at(err, name, csv.row_lines[i], 1, "time_s",
                              "expected seconds from 0 to 1e4");
        if (strcmp(part, "update") == 0) {
            update_s = time_s;
            continue;
        }
        const bool back = strcmp(part, "backward") == 0;
        if (!back && strcmp(part, "forward") != 0)
            return dl_fail_at(err, name, csv.row_lines[i], 1, "pass",
                              "expected forward, backward or update, found \"%.40s\"", part);
        if (which[0] == 0)
            return dl_fail_at(err, name, csv.row_lines[i], 1, "layer",
                              "expected the name of a layer");
        samples[count++] = (struct sample){which, strlen(which), i, back, 1e6 * time_s};
    }
    if (count == 0)
        return dl_fail_at(err, name, 1, 1, NULL, "expected a row of a layer below the heading");
    *out = (struct dl_trace_times){.update_s = update_s,
                                   .quartile_update_s = NAN,
                                   .quartile_jitter_frac = NAN,
                                   .kernel_s = 0,
                                   .jitter_frac = NAN,
                                   .core_s = NAN};
    DL_TRY(sum_layers(&r, samples, count, 1, out));
    /* Rows of one layer are repeats here, not parts of an iteration: the median as it is. */
    qsort(samples, (size_t)count, sizeof *samples, by_layer);
    for (int k = 0; k < out->layer_count; k++) {
        int n[2] = {0, 0};
        for (int i = 0; i < count; i++) {
            if (strlen(out->layers[k].name) == samples[i].length &&
                strncmp(out->layers[k].name, samples[i].layer, samples[i].length) == 0)
                n[samples[i].part]++;
        }
        if (n[0] > 0) out->layers[k].forward_s /= n[0];
        if (n[1] > 0) out->layers[k].backward_s /= n[1];
        if (n[0] > out->steps) out->steps = n[0];
    }
    return DL_OK;
}
