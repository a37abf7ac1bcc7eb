/* import_trace_join.c - see import_trace_join.h. Times are added in the order of the file or of the
 * sorted events, so that sums do not depend on the sort. */
#include "import/import_trace_join.h"

#include <math.h>

#include "import/import_trace_sums.h"

/* A correlation or sequence number and the range that it leads to. */
struct link {
    double number;
    int64_t event;                /* of equal numbers the first event counts */
    struct dl_trace_event *range; /* NULL: a launch outside all ranges */
};

struct joining {
    struct dl_trace_joined *out;
    struct dl_trace_event *events;
    int64_t count;
    bool on_device;             /* there are kernels */
    bool has_backward;          /* there are ranges of the backward pass */
    struct dl_records launches; /* link, by correlation */
    struct dl_records forward;  /* link, by sequence number: forward ranges */
};

static bool is_point(const struct dl_trace_event *e) { return e->kind >= DL_TRACE_SEQUENCE; }

/* By thread, then start; of two that start together the outer one first, and ranges before points.
 */
static int by_start(const void *a, const void *b) {
    const struct dl_trace_event *x = a, *y = b;
    if (x->thread != y->thread) return x->thread < y->thread ? -1 : 1;
    if (x->ts_us != y->ts_us) return x->ts_us < y->ts_us ? -1 : 1;
    if (is_point(x) != is_point(y)) return is_point(x) - is_point(y);
    if (x->dur_us != y->dur_us) return x->dur_us > y->dur_us ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static int by_number(const void *a, const void *b) {
    const struct link *x = a, *y = b;
    if (x->number != y->number) return x->number < y->number ? -1 : 1;
    return x->event < y->event ? -1 : x->event > y->event;
}

/* The first link with the number; NULL: none. */
static const struct link *find(const struct dl_records *links, double number) {
    const struct link *list = links->list;
    int64_t low = 0, high = links->count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (list[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low < links->count && list[low].number == number ? &list[low] : NULL;
}

/* ---- ranges, and the points in them ---- */

static bool ended(const struct dl_trace_event *e, const struct dl_trace_event *now) {
    return e->thread != now->thread || e->ts_us + e->dur_us <= now->ts_us;
}

static void add_point(struct joining *j, const struct dl_trace_event *e,
                      struct dl_trace_event *around) {
    const struct link link = {e->number, e - j->events, around};
    if (e->kind == DL_TRACE_LAUNCH)
        dl_records_add(&j->launches, &link);
    else if (around != NULL && around->kind == DL_TRACE_FORWARD)
        dl_records_add(&j->forward, &link);
}

/* Finds the innermost range around each event, thread by thread. */
static void nest(struct joining *j) {
    struct dl_records open = {.record_bytes = sizeof(struct dl_trace_event *)};
    for (int64_t i = 0; i < j->count; i++) {
        struct dl_trace_event *e = &j->events[i], **stack = open.list;
        while (open.count > 0 && ended(stack[open.count - 1], e)) open.count--;
        struct dl_trace_event *around = open.count > 0 ? stack[open.count - 1] : NULL;
        if (is_point(e)) {
            add_point(j, e, around);
            continue;
        }
        if (e->kind == DL_TRACE_OPERATOR && around != NULL && around->kind != DL_TRACE_OPERATOR) {
            e->kind = DL_TRACE_NESTED;
            continue;
        }
        if (around != NULL && e->kind != DL_TRACE_OPERATOR) around->inside_us += e->dur_us;
        j->has_backward = j->has_backward || e->kind == DL_TRACE_BACKWARD;
        dl_records_add(&open, &e);
    }
    dl_records_free(&open);
    dl_records_sort(&j->launches, by_number);
    dl_records_sort(&j->forward, by_number);
}

/* ---- joins ---- */

/* Kernels to the ranges in which they were launched. */
static void place_kernels(struct joining *j, const struct dl_records *kernels) {
    const struct dl_trace_kernel *list = kernels->list;
    for (int64_t i = 0; i < kernels->count; i++) {
        const struct link *launch = find(&j->launches, list[i].number);
        if (launch != NULL && launch->range != NULL)
            launch->range->kernel_us += list[i].dur_us;
        else
            j->out->unclaimed_us += list[i].dur_us;
    }
}

/* Backward operators to the forward ranges whose operators had the same sequence number. */
static void place_operators(struct joining *j) {
    bool any = false;
    for (int64_t i = 0; i < j->count; i++) {
        const struct dl_trace_event *e = &j->events[i];
        if (e->kind != DL_TRACE_OPERATOR) continue;
        const struct link *forward = find(&j->forward, e->number);
        any = any || forward != NULL;
        if (forward != NULL)
            forward->range->backward_us += j->on_device ? e->kernel_us : e->dur_us;
        else
            j->out->unclaimed_us += e->kernel_us;
    }
    j->out->by_sequence = any && !j->has_backward;
}

static void add_sample(struct joining *j, const struct dl_trace_event *e, int part,
                       double time_us) {
    const struct dl_trace_sample sample = {e->layer, e - j->events, part, time_us};
    dl_records_add(&j->out->samples, &sample);
}

/* The time of a range is that of its kernels or, without any kernels, its duration. */
static void take_ranges(struct joining *j) {
    for (int64_t i = 0; i < j->count; i++) {
        const struct dl_trace_event *e = &j->events[i];
        const double own_us = j->on_device ? e->kernel_us : fmax(e->dur_us - e->inside_us, 0);
        if (e->kind == DL_TRACE_UPDATE) {
            j->out->update_us += own_us;
            j->out->update = true;
        }
        if (e->kind == DL_TRACE_FORWARD || e->kind == DL_TRACE_BACKWARD)
            add_sample(j, e, e->kind == DL_TRACE_BACKWARD, own_us);
        if (e->kind == DL_TRACE_FORWARD && j->out->by_sequence) add_sample(j, e, 1, e->backward_us);
    }
}

void dl_trace_join_all(struct dl_trace_join *in, struct dl_trace_joined *out) {
    *out = (struct dl_trace_joined){.samples.record_bytes = sizeof(struct dl_trace_sample)};
    dl_records_sort(&in->events, by_start);
    struct joining j = {.out = out,
                        .events = in->events.list,
                        .count = in->events.count,
                        .on_device = in->kernels.count > 0,
                        .launches.record_bytes = sizeof(struct link),
                        .forward.record_bytes = sizeof(struct link)};
    nest(&j);
    place_kernels(&j, &in->kernels);
    place_operators(&j);
    take_ranges(&j);
    dl_records_free(&j.launches);
    dl_records_free(&j.forward);
}
