/* import_trace.c - see the header. PyTorch's profiler writes {"traceEvents": [...]} (Kineto) or
 * the list alone (before it); times are in us. Used members of an event: ph "X", name, cat, ts,
 * dur, pid, tid, args: correlation, "Sequence number", "Fwd thread id". */
#include "model/core/hash.h"
#include "import/import_trace.h"

#include <math.h>
#include <string.h>

#include "model/core/json_node.h"
#include "import/import_trace_reader.h"
#include "import/json_stream.h"

enum { FEWEST_STEPS = 8 }; /* for a standard deviation */

/* An event of eleven days; a clock that counts from 1970 is at 1.8e15 us now. */
static const double MAX_US = 1e12, MAX_CLOCK_US = 1e17;

const char *dl_trace_text(const struct dl_json_node *n) {
    return n != NULL && n->kind == DL_JSON_STRING ? n->string : "";
}

static uint64_t mix(uint64_t hash, const struct dl_json_node *n) {
    const double number = dl_json_number_of(n);
    return dl_hash_bytes(dl_hash_text(hash, dl_trace_text(n)), &number, sizeof number);
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

bool dl_trace_is_update(const char *name) {
    return starts(name, "Optimizer.step") || strcmp(name, "update") == 0;
}

bool dl_trace_layer_range(const char *name, struct dl_trace_event *e, size_t *layer_length) {
    if (!starts(name, "layer:")) return false;
    const char *from = name + 6, *colon = strrchr(from, ':');
    if (colon == NULL || colon == from) return false;
    if (strcmp(colon, ":forward") == 0)
        e->kind = DL_TRACE_FORWARD;
    else if (strcmp(colon, ":backward") == 0)
        e->kind = DL_TRACE_BACKWARD;
    else
        return false;
    e->layer = from;
    *layer_length = (size_t)(colon - from);
    return true;
}

/* Kind and number of a host event; false: it does not count. */
static bool classify(const struct dl_trace_record *record, struct dl_trace_event *e,
                     size_t *layer_length) {
    if (record->place == DL_TRACE_IN_RUNTIME) {
        e->kind = DL_TRACE_LAUNCH;
        e->number = record->correlation;
        return dl_known(record->correlation);
    }
    if (dl_trace_is_update(record->name)) {
        e->kind = DL_TRACE_UPDATE;
        return true;
    }
    if (dl_trace_layer_range(record->name, e, layer_length)) return true;
    if (!(record->sequence >= 0)) return false;
    const bool back = starts(record->name, "autograd::engine::evaluate_function");
    e->kind = back ? DL_TRACE_OPERATOR : DL_TRACE_SEQUENCE;
    e->number = record->sequence;
    /* others with a forward thread lie inside such an event */
    return back || !record->has_forward_thread;
}

enum dl_code dl_trace_add(struct dl_trace_reader *r, const struct dl_trace_record *record,
                          int64_t index) {
    const char *name = record->name;
    const bool on_device = record->place == DL_TRACE_ON_DEVICE,
               is_step = starts(name, "ProfilerStep#");
    size_t layer_length = 0;
    struct dl_trace_event e = {
        .ts_us = record->ts_us, .dur_us = record->dur_us, .thread = record->thread};
    if (!(e.dur_us >= 0 && e.dur_us <= MAX_US) || !(fabs(e.ts_us) <= MAX_CLOCK_US)) {
        if (!starts(name, "layer:") && !is_step && !on_device && !dl_trace_is_update(name))
            return DL_OK;
        return dl_fail_at(r->err, r->name, 0, 0, NULL,
                          "event %lld ('%.60s'): expected a start and a duration from 0 to 1e12 us",
                          (long long)index, name);
    }
    if (on_device) {
        dl_records_add(&r->join.kernels, &(struct dl_trace_kernel){record->correlation, e.dur_us});
        r->kernels_us += e.dur_us;
        return DL_OK;
    }
    if (is_step) {
        r->steps_us += e.dur_us;
        r->squares_us2 += e.dur_us * e.dur_us;
        dl_records_add(&r->steps, &e.dur_us);
        return DL_OK;
    }
    if (!classify(record, &e, &layer_length)) return DL_OK;
    if (e.layer != NULL) e.layer = dl_trace_name(&r->layers, e.layer, layer_length, r->arena);
    e.order = r->join.events.count;
    dl_records_add(&r->join.events, &e);
    return DL_OK;
}

static enum dl_code read_event(struct dl_trace_reader *r, const struct dl_json_node *n, int index) {
    static const char *const device[] = {"kernel",     "Kernel", "gpu_memcpy",
                                         "gpu_memset", "gpu_op", NULL};
    static const char *const runtime[] = {"cuda_runtime", "cuda_driver", "Runtime", "hip_runtime",
                                          NULL};
    if (n->kind != DL_JSON_OBJECT)
        return dl_fail_at(r->err, r->name, 0, 0, NULL, "event %d: expected an object", index);
    const char *cat = dl_trace_text(dl_json_get(n, "cat"));
    /* the same range once more, on the device's line */
    if (strcmp(dl_trace_text(dl_json_get(n, "ph")), "X") != 0 ||
        strcmp(cat, "gpu_user_annotation") == 0)
        return DL_OK;
    const struct dl_json_node *args = dl_json_get(n, "args");
    const struct dl_trace_record record = {
        .name = dl_trace_text(dl_json_get(n, "name")),
        .place = one_of(cat, device)    ? DL_TRACE_ON_DEVICE
                 : one_of(cat, runtime) ? DL_TRACE_IN_RUNTIME
                                        : DL_TRACE_ON_HOST,
        .thread = mix(mix(DL_HASH_START, dl_json_get(n, "pid")), dl_json_get(n, "tid")),
        .ts_us = dl_json_number_of(dl_json_get(n, "ts")),
        .dur_us = dl_json_number_of(dl_json_get(n, "dur")),
        .correlation = dl_json_number_of(dl_json_get(args, "correlation")),
        .sequence = dl_json_number_of(dl_json_get(args, "Sequence number")),
        .has_forward_thread = dl_json_number_of(dl_json_get(args, "Fwd thread id")) > 0};
    return dl_trace_add(r, &record, index);
}

/* Order statistics of the steps' times. */
struct step_times {
    double median_us, quartile_us, low_us; /* low: the 5th percentile */
};

static int by_time(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static struct step_times sort_steps(struct dl_records *steps) {
    const int64_t count = steps->count;
    dl_records_sort(steps, by_time);
    const double *us = steps->list;
    if (count == 0) return (struct step_times){NAN, NAN, NAN};
    return (struct step_times){0.5 * (us[(count - 1) / 2] + us[count / 2]), us[(count - 1) / 4],
                               us[(count - 1) / 20]};
}

/* Where the host is the device: the part of such a step outside all layers (clearing gradients,
 * the optimizer, the loop), at least the update. */
static double rest_s(const struct dl_trace_times *t, double update_s, double step_us) {
    double layers_s = 0;
    for (int i = 0; i < t->layer_count; i++) {
        layers_s += (dl_known(t->layers[i].forward_s) ? t->layers[i].forward_s : 0) +
                    (dl_known(t->layers[i].backward_s) ? t->layers[i].backward_s : 0);
    }
    return fmax(update_s, 1e-6 * step_us - layers_s);
}

static void set_update(const struct dl_trace_reader *r, const struct dl_trace_joined *j,
                       const struct step_times *steps, struct dl_trace_times *out) {
    out->update_s = j->update ? 1e-6 * j->update_us / (double)out->steps : NAN;
    out->quartile_update_s = NAN;
    if (r->join.kernels.count > 0 || r->steps.count == 0) return;
    const double own_s = j->update ? out->update_s : 0;
    out->update_s = rest_s(out, own_s, steps->median_us);
    out->quartile_update_s = rest_s(out, own_s, steps->quartile_us);
}

static void set_jitter(const struct dl_trace_reader *r, const struct step_times *steps,
                       struct dl_trace_times *out) {
    const double count = (double)r->steps.count;
    out->jitter_frac = out->quartile_jitter_frac = out->core_s = NAN;
    if (count < FEWEST_STEPS) return;
    const double mean_us = r->steps_us / count;
    out->jitter_frac =
        sqrt(fmax(0, (r->squares_us2 - count * mean_us * mean_us) / (count - 1))) / mean_us;
    if (r->join.kernels.count > 0) return;
    /* of normal times these two lie 0.971 standard deviations apart */
    out->quartile_jitter_frac = (steps->quartile_us - steps->low_us) / 0.971 / steps->quartile_us;
}

static enum dl_code finish(struct dl_trace_reader *r, int64_t steps, struct dl_trace_joined *j,
                           struct dl_trace_times *out) {
    const int64_t events = r->join.events.count + r->join.kernels.count;
    dl_trace_join_all(&r->join, j);
    if (j->samples.count == 0) {
        return dl_fail_at(r->err, r->name, 0, 0, NULL,
                          "expected ranges named layer:NAME:forward (record_function); there are "
                          "none among %lld events that count",
                          (long long)events);
    }
    const bool on_device = r->join.kernels.count > 0;
    *out = (struct dl_trace_times){.on_device = on_device, .by_sequence = j->by_sequence};
    dl_trace_sum(&j->samples, steps > 0 ? steps : r->steps.count, r->arena, out);
    const struct step_times times = sort_steps(&r->steps);
    set_update(r, j, &times, out);
    set_jitter(r, &times, out);
    out->kernel_s = 1e-6 * r->kernels_us / (double)out->steps;
    out->unclaimed_s = 1e-6 * j->unclaimed_us / (double)out->steps;
    return DL_OK;
}

/* The events, one at a time. */
static enum dl_code read_list(struct dl_trace_reader *r, struct dl_json_stream *s) {
    struct dl_err *err = r->err;
    DL_TRY(dl_json_stream_take(s, '[', "a list of events", err));
    if (dl_json_stream_peek(s) == ']') return dl_json_stream_take(s, ']', "']'", err);
    for (int index = 0;; index++) {
        struct dl_arena one = {0};
        struct dl_json *doc;
        enum dl_code code = dl_json_stream_value(s, &one, &doc, err);
        if (code == DL_OK) code = (r->event != NULL ? r->event : read_event)(r, doc->root, index);
        dl_arena_free(&one);
        DL_TRY(code);
        const int next = dl_json_stream_peek(s);
        if (next < 0) return DL_OK; /* the format allows the end to be missing */
        if (next == ']') return dl_json_stream_take(s, ']', "']'", err);
        DL_TRY(dl_json_stream_take(s, ',', "',' or ']'", err));
        if (dl_json_stream_peek(s) < 0) return DL_OK;
    }
}

/* One member of the trace's object: the events, the benchmark program's own, or another. */
static enum dl_code read_member(struct dl_trace_reader *r, struct dl_json_stream *s, bool *listed) {
    struct dl_arena one = {0};
    struct dl_json *key, *own;
    if (dl_json_stream_peek(s) != '"')
        return dl_json_stream_fail(s, "a key in double quotes", r->err);
    enum dl_code code = dl_json_stream_value(s, &one, &key, r->err);
    if (code == DL_OK) code = dl_json_stream_take(s, ':', "':' after a key", r->err);
    const char *name = code == DL_OK ? dl_trace_text(key->root) : "";
    if (code == DL_OK && strcmp(name, "traceEvents") == 0 && !*listed &&
        dl_json_stream_peek(s) == '[') {
        *listed = true;
        code = read_list(r, s);
    } else if (code == DL_OK && strcmp(name, "dlmodel") == 0) {
        code = dl_json_stream_value(s, &one, &own, r->err);
        if (code == DL_OK) r->core_s = dl_json_number_of(dl_json_get(own->root, "core_s"));
    } else if (code == DL_OK && strcmp(name, "distributedInfo") == 0) {
        code = dl_json_stream_value(s, &one, &own, r->err);
        if (code == DL_OK) r->ranks = dl_json_number_of(dl_json_get(own->root, "world_size"));
    } else if (code == DL_OK) {
        code = dl_json_stream_skip(s, r->err);
    }
    dl_arena_free(&one);
    return code;
}

static enum dl_code read_trace(struct dl_trace_reader *r, struct dl_json_stream *s) {
    struct dl_err *err = r->err;
    bool listed = dl_json_stream_peek(s) == '[';
    if (listed) {
        DL_TRY(read_list(r, s));
    } else {
        DL_TRY(dl_json_stream_take(s, '{', "a Chrome trace: a list of events, or an object", err));
        while (dl_json_stream_peek(s) != '}') {
            DL_TRY(read_member(r, s, &listed));
            if (dl_json_stream_peek(s) == '}') break;
            if (listed && dl_json_stream_peek(s) < 0) return DL_OK;
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

enum dl_code dl_trace_read(struct dl_trace_reader *r) {
    struct dl_json_stream s;
    if (dl_trace_is_sqlite(r->name)) return dl_trace_read_sqlite(r);
    enum dl_code code = dl_json_stream_file(r->name, &s, r->err);
    if (code == DL_OK) code = read_trace(r, &s);
    dl_json_stream_close(&s);
    return code;
}

enum dl_code dl_trace_file(const char *path, int64_t steps, struct dl_arena *arena,
                           struct dl_trace_times *out, struct dl_err *err) {
    struct dl_trace_reader r = {.name = path,
                                .arena = arena,
                                .err = err,
                                .join.events.record_bytes = sizeof(struct dl_trace_event),
                                .join.kernels.record_bytes = sizeof(struct dl_trace_kernel),
                                .steps.record_bytes = sizeof(double),
                                .core_s = NAN,
                                .ranks = NAN};
    struct dl_trace_joined joined = {.update_us = 0};
    enum dl_code code = dl_trace_read(&r);
    if (code == DL_OK) code = finish(&r, steps, &joined, out);
    if (code == DL_OK && r.core_s > 1e-9 && r.core_s < 1e3) out->core_s = r.core_s;
    dl_records_free(&joined.samples);
    dl_records_free(&r.join.events);
    dl_records_free(&r.join.kernels);
    dl_records_free(&r.steps);
    return code;
}
