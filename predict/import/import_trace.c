/* import_trace.c - see the header. PyTorch's profiler writes {"traceEvents": [...]} (Kineto) or
 * the list alone (before it); times are in us. Used members of an event: ph "X", name, cat, ts,
 * dur, pid, tid, args: correlation, "Sequence number", "Fwd thread id". */
#include "model/base/hash.h"
#include "predict/import/import_trace.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/json_node.h"
#include "predict/import/import_trace_sums.h"
#include "predict/import/json_stream.h"

enum { FEWEST_STEPS = 8 }; /* for a standard deviation */

enum kind { KIND_FORWARD, KIND_BACKWARD, KIND_UPDATE, KIND_OPERATOR, KIND_SEQUENCE, KIND_LAUNCH };

/* An event of eleven days; a clock that counts from 1970 is at 1.8e15 us now. */
static const double MOST_US = 1e12, MOST_CLOCK_US = 1e17;

struct event { /* a range, or a point that asks in which range it lies */
    enum kind kind;
    uint64_t thread;
    double ts_us, dur_us, number; /* number: correlation or sequence number */
    const char *layer;            /* FORWARD, BACKWARD; one copy of each name */
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
    int count, capacity;
    struct link *kernels;
    double *kernel_us;
    int kernel_count, kernel_capacity; /* correlation of each kernel */
    /* ProfilerStep#I: how many, their sum and that of their squares */
    int steps, step_capacity;
    double steps_us, squares_us2;
    double *step_us; /* each */
    struct dl_trace_names layers;
    double core_s;
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
    const double number = number_of(n);
    return dl_hash_bytes(dl_hash_text(hash, text_of(n)), &number, sizeof number);
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

static bool is_update(const char *name) {
    return starts(name, "Optimizer.step") || strcmp(name, "update") == 0;
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

/* Room for one more in a list of the heap; false: out of memory. */
static bool room(void *list_at, int count, int *capacity, size_t bytes_each) {
    void **list = list_at;
    if (count < *capacity) return true;
    const int larger = *capacity > 0 ? 2 * *capacity : 1024;
    void *more = count < INT_MAX / 4 ? realloc(*list, (size_t)larger * bytes_each) : NULL;
    if (more == NULL) return false;
    *list = more;
    *capacity = larger;
    return true;
}

static enum dl_code add_kernel(struct reader *r, double correlation, double dur_us) {
    int same = r->kernel_capacity;
    if (!room(&r->kernels, r->kernel_count, &same, sizeof *r->kernels) ||
        !room(&r->kernel_us, r->kernel_count, &r->kernel_capacity, sizeof *r->kernel_us))
        return no_memory(r->err);
    r->kernels[r->kernel_count] =
        (struct link){dl_known(correlation) ? correlation : -1, r->kernel_count};
    r->kernel_us[r->kernel_count++] = dur_us;
    return DL_OK;
}

static enum dl_code add_step(struct reader *r, double dur_us) {
    if (!room(&r->step_us, r->steps, &r->step_capacity, sizeof *r->step_us))
        return no_memory(r->err);
    r->step_us[r->steps++] = dur_us;
    r->steps_us += dur_us;
    r->squares_us2 += dur_us * dur_us;
    return DL_OK;
}

static enum dl_code add_event(struct reader *r, struct event *e) {
    if (!room(&r->events, r->count, &r->capacity, sizeof *r->events)) return no_memory(r->err);
    if (e->layer != NULL) {
        e->layer = dl_trace_name(&r->layers, e->layer, e->layer_length, r->arena);
        if (e->layer == NULL) return no_memory(r->err);
    }
    r->events[r->count++] = *e;
    return DL_OK;
}

/* Kind and number of a host event; false: it does not count. */
static bool classify(const char *name, bool is_runtime, const struct dl_json_node *args,
                     struct event *e) {
    const double correlation = number_of(member(args, "correlation")),
                 sequence = number_of(member(args, "Sequence number"));
    if (is_runtime) {
        e->kind = KIND_LAUNCH;
        e->number = correlation;
        return dl_known(correlation);
    }
    if (is_update(name)) {
        e->kind = KIND_UPDATE;
        return true;
    }
    if (layer_range(name, e)) return true;
    if (!(sequence >= 0)) return false;
    const bool back = starts(name, "autograd::engine::evaluate_function");
    e->kind = back ? KIND_OPERATOR : KIND_SEQUENCE;
    e->number = sequence;
    /* others with a forward thread lie inside such an event */
    return back || !(number_of(member(args, "Fwd thread id")) > 0);
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
    const bool on_device = one_of(cat, device), is_step = starts(name, "ProfilerStep#");
    struct event e = {
        .ts_us = number_of(member(n, "ts")), .dur_us = number_of(member(n, "dur")), .range = -1};
    if (!(e.dur_us >= 0 && e.dur_us <= MOST_US) || !(fabs(e.ts_us) <= MOST_CLOCK_US)) {
        if (!starts(name, "layer:") && !is_step && !on_device && !is_update(name)) return DL_OK;
        return dl_fail_at(r->err, r->name, 0, 0, NULL,
                          "event %d ('%.60s'): expected numbers ts and dur, dur from 0 to 1e12 us",
                          index, name);
    }
    e.thread = mix(mix(DL_HASH_START, member(n, "pid")), member(n, "tid"));
    if (on_device) return add_kernel(r, number_of(member(args, "correlation")), e.dur_us);
    /* the same range once more, on the device's line */
    if (strcmp(cat, "gpu_user_annotation") == 0) return DL_OK;
    if (is_step) return add_step(r, e.dur_us);
    return classify(name, one_of(cat, runtime), args, &e) ? add_event(r, &e) : DL_OK;
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
    if (r->count == 0) return DL_OK;
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

/* Kernels to the ranges in which they were launched; returns the time outside all ranges. */
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

static int by_time(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Where the host is the device: the part of the median step outside all layers (clearing
 * gradients, the optimizer, the loop), at least the update. */
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

/* Layers' own times as samples, and the update's. */
struct samples {
    struct dl_trace_sample *list;
    int count;
    double update_us;
    bool update; /* the trace has updates */
};

static void collect(const struct reader *r, bool by_sequence, struct samples *out) {
    for (int i = 0; i < r->count; i++) {
        const struct event *e = &r->events[i];
        const double own_us =
            r->kernel_count > 0 ? e->kernel_us : fmax(e->dur_us - e->inside_us, 0);
        if (e->kind == KIND_UPDATE) out->update_us += own_us, out->update = true;
        if (e->kind != KIND_FORWARD && e->kind != KIND_BACKWARD) continue;
        out->list[out->count++] = (struct dl_trace_sample){e->layer, e->layer_length, i,
                                                           e->kind == KIND_BACKWARD, own_us};
        if (e->kind == KIND_FORWARD && by_sequence)
            out->list[out->count++] =
                (struct dl_trace_sample){e->layer, e->layer_length, i, 1, e->backward_us};
    }
}

static void set_update(struct reader *r, const struct samples *s, struct dl_trace_times *out) {
    out->update_s = s->update ? 1e-6 * s->update_us / (double)out->steps : NAN;
    out->quartile_update_s = NAN;
    if (r->kernel_count > 0 || r->steps == 0) return;
    const double own_s = s->update ? out->update_s : 0;
    out->update_s = rest_s(r, out, own_s, false);
    out->quartile_update_s = rest_s(r, out, own_s, true);
}

static void set_jitter(const struct reader *r, struct dl_trace_times *out) {
    out->jitter_frac = out->quartile_jitter_frac = out->core_s = NAN;
    if (r->steps < FEWEST_STEPS) return;
    const double mean_us = r->steps_us / r->steps;
    out->jitter_frac =
        sqrt(fmax(0, (r->squares_us2 - r->steps * mean_us * mean_us) / (r->steps - 1))) / mean_us;
    if (r->kernel_count > 0) return;
    /* of normal times these two lie 0.971 standard deviations apart; rest_s sorted the steps */
    const double quartile_us = r->step_us[(r->steps - 1) / 4],
                 low_us = r->step_us[(r->steps - 1) / 20];
    out->quartile_jitter_frac = (quartile_us - low_us) / 0.971 / quartile_us;
}

static enum dl_code finish(struct reader *r, int64_t steps, struct dl_trace_times *out) {
    struct samples s = {.list = dl_arena_alloc(r->arena, 2 * (size_t)r->count, sizeof *s.list)};
    double all_us = 0, unclaimed_us = 0;
    bool ranges = false, sequences = false;
    if (s.list == NULL) return no_memory(r->err);
    DL_TRY(nest(r));
    DL_TRY(place_kernels(r, &all_us, &unclaimed_us));
    for (int i = 0; i < r->count; i++) ranges = ranges || r->events[i].kind == KIND_BACKWARD;
    DL_TRY(place_operators(r, &unclaimed_us, &sequences));
    collect(r, !ranges && sequences, &s);
    if (s.count == 0) {
        return dl_fail_at(r->err, r->name, 0, 0, NULL,
                          "expected ranges named layer:NAME:forward (record_function); there are "
                          "none among %d events that count",
                          r->count + r->kernel_count);
    }
    *out = (struct dl_trace_times){.on_device = r->kernel_count > 0,
                                   .by_sequence = !ranges && sequences};
    DL_TRY(dl_trace_sum(s.list, s.count, steps > 0 ? steps : r->steps, r->arena, out, r->err));
    set_update(r, &s, out);
    set_jitter(r, out);
    out->kernel_s = 1e-6 * all_us / (double)out->steps;
    out->unclaimed_s = 1e-6 * unclaimed_us / (double)out->steps;
    return DL_OK;
}

/* The events, one at a time. */
static enum dl_code read_list(struct reader *r, struct dl_json_stream *s) {
    struct dl_err *err = r->err;
    DL_TRY(dl_json_stream_take(s, '[', "a list of events", err));
    if (dl_json_stream_peek(s) == ']') return dl_json_stream_take(s, ']', "']'", err);
    for (int index = 0;; index++) {
        struct dl_arena one = {0};
        struct dl_json *doc;
        enum dl_code code = dl_json_stream_value(s, &one, &doc, err);
        if (code == DL_OK) code = read_event(r, doc->root, index);
        dl_arena_free(&one);
        DL_TRY(code);
        if (dl_json_stream_peek(s) == ']') return dl_json_stream_take(s, ']', "']'", err);
        DL_TRY(dl_json_stream_take(s, ',', "',' or ']'", err));
    }
}

/* One member of the trace's object: the events, the benchmark program's own, or another. */
static enum dl_code read_member(struct reader *r, struct dl_json_stream *s, bool *listed) {
    struct dl_arena one = {0};
    struct dl_json *key, *own;
    if (dl_json_stream_peek(s) != '"')
        return dl_json_stream_fail(s, "a key in double quotes", r->err);
    enum dl_code code = dl_json_stream_value(s, &one, &key, r->err);
    if (code == DL_OK) code = dl_json_stream_take(s, ':', "':' after a key", r->err);
    const char *name = code == DL_OK ? text_of(key->root) : "";
    if (code == DL_OK && strcmp(name, "traceEvents") == 0 && !*listed &&
        dl_json_stream_peek(s) == '[') {
        *listed = true;
        code = read_list(r, s);
    } else if (code == DL_OK && strcmp(name, "dlmodel") == 0) {
        code = dl_json_stream_value(s, &one, &own, r->err);
        if (code == DL_OK) r->core_s = number_of(member(own->root, "core_s"));
    } else if (code == DL_OK) {
        code = dl_json_stream_skip(s, r->err);
    }
    dl_arena_free(&one);
    return code;
}

static enum dl_code read_trace(struct reader *r, struct dl_json_stream *s) {
    struct dl_err *err = r->err;
    bool listed = dl_json_stream_peek(s) == '[';
    if (listed) {
        DL_TRY(read_list(r, s));
    } else {
        DL_TRY(dl_json_stream_take(s, '{', "a Chrome trace: a list of events, or an object", err));
        while (dl_json_stream_peek(s) != '}') {
            DL_TRY(read_member(r, s, &listed));
            if (dl_json_stream_peek(s) == '}') break;
            DL_TRY(dl_json_stream_take(s, ',', "',' or '}'", err));
        }
        DL_TRY(dl_json_stream_take(s, '}', "'}'", err));
    }
    if (dl_json_stream_peek(s) >= 0)
        return dl_json_stream_fail(s, "nothing after the JSON value", err);
    if (listed) return DL_OK;
    return dl_fail_at(
        err, r->name, 1, 1, "traceEvents",
        "expected a Chrome trace: a list of events, or an object with one in traceEvents");
}

static enum dl_code parse(struct dl_json_stream *s, int64_t steps, struct dl_arena *arena,
                          struct dl_trace_times *out, struct dl_err *err) {
    struct reader r = {.name = s->name, .arena = arena, .err = err, .core_s = NAN};
    enum dl_code code = read_trace(&r, s);
    if (code == DL_OK) code = finish(&r, steps, out);
    if (code == DL_OK && r.core_s > 1e-9 && r.core_s < 1e3) out->core_s = r.core_s;
    free(r.events);
    free(r.kernels);
    free(r.kernel_us);
    free(r.step_us);
    return code;
}

enum dl_code dl_trace_parse(const char *name, const char *text, size_t length, int64_t steps,
                            struct dl_arena *arena, struct dl_trace_times *out,
                            struct dl_err *err) {
    struct dl_json_stream s;
    enum dl_code code = dl_json_stream_text(name, text, length, &s, err);
    if (code == DL_OK) code = parse(&s, steps, arena, out, err);
    dl_json_stream_close(&s);
    return code;
}

enum dl_code dl_trace_file(const char *path, int64_t steps, struct dl_arena *arena,
                           struct dl_trace_times *out, struct dl_err *err) {
    struct dl_json_stream s;
    enum dl_code code = dl_json_stream_file(path, &s, err);
    if (code == DL_OK) code = parse(&s, steps, arena, out, err);
    dl_json_stream_close(&s);
    return code;
}
