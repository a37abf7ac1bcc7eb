/* import_trace_join.c - see import_trace_join.h. Sums are made in the order of the file, so that
 * they do not depend on what was sorted on the way. */
#include "import/import_trace_join.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "import/import_trace_sums.h"

enum { MAX_NESTED = 1 << 16 };

/* A number that is looked for (correlation, sequence), and where. */
struct link {
    double number;
    int64_t place; /* range, or event of a launch */
    int64_t range; /* of a launch; -1: none */
};

/* A time on its way to a range. */
struct share {
    int64_t range; /* -1: none */
    int64_t order; /* in which it is added */
    double time_us;
};

struct kernel {
    double number; /* -1: unknown */
    int64_t order;
    double dur_us;
};

/* A range whose end has been seen. `id` is its place among all events by thread and time. */
struct range {
    int64_t id;
    enum dl_trace_kind kind;
    const char *layer;
    double dur_us, inside_us, number; /* inside_us: of ranges directly within */
};

/* An operator of the backward pass. */
struct operator_time {
    double number;
    int64_t id;
    double time_us, kernel_us;
};

static int order_of(double a, double b) { return a < b ? -1 : a > b; }
static int order_of_ids(int64_t a, int64_t b) { return a < b ? -1 : a > b; }

/* By thread, then start; of two that start together the outer one first, and ranges before points.
 */
static int by_start(const void *a, const void *b) {
    const struct dl_trace_event *x = a, *y = b;
    if (x->thread != y->thread) return x->thread < y->thread ? -1 : 1;
    if (x->ts_us != y->ts_us) return x->ts_us < y->ts_us ? -1 : 1;
    const int px = x->kind >= DL_TRACE_SEQUENCE, py = y->kind >= DL_TRACE_SEQUENCE;
    if (px != py) return px - py;
    if (x->dur_us != y->dur_us) return x->dur_us > y->dur_us ? -1 : 1;
    return order_of_ids(x->order, y->order);
}

static int by_link(const void *a, const void *b) {
    const struct link *x = a, *y = b;
    const int order = order_of(x->number, y->number);
    return order != 0 ? order : order_of_ids(x->place, y->place);
}

static int by_share(const void *a, const void *b) {
    const struct share *x = a, *y = b;
    const int order = order_of_ids(x->range, y->range);
    return order != 0 ? order : order_of_ids(x->order, y->order);
}

static int by_kernel(const void *a, const void *b) {
    const struct kernel *x = a, *y = b;
    const int order = order_of(x->number, y->number);
    return order != 0 ? order : order_of_ids(x->order, y->order);
}

static int by_range(const void *a, const void *b) {
    return order_of_ids(((const struct range *)a)->id, ((const struct range *)b)->id);
}

static int by_operator(const void *a, const void *b) {
    const struct operator_time *x = a, *y = b;
    const int order = order_of(x->number, y->number);
    return order != 0 ? order : order_of_ids(x->id, y->id);
}

static int by_time(const void *a, const void *b) {
    return order_of(*(const double *)a, *(const double *)b);
}

void dl_trace_join_init(struct dl_trace_join *j) {
    *j = (struct dl_trace_join){.kernels_us = 0};
    dl_disk_sort_init(&j->events, sizeof(struct dl_trace_event), by_start);
    dl_disk_sort_init(&j->kernels, sizeof(struct kernel), by_kernel);
    dl_disk_sort_init(&j->steps, sizeof(double), by_time);
}

void dl_trace_join_close(struct dl_trace_join *j) {
    dl_disk_sort_close(&j->events);
    dl_disk_sort_close(&j->kernels);
    dl_disk_sort_close(&j->steps);
}

enum dl_code dl_trace_join_event(struct dl_trace_join *j, struct dl_trace_event *event,
                                 struct dl_err *err) {
    event->order = j->events.total;
    return dl_disk_sort_add(&j->events, event, err);
}

enum dl_code dl_trace_join_kernel(struct dl_trace_join *j, double correlation, double dur_us,
                                  struct dl_err *err) {
    const struct kernel kernel = {isnan(correlation) ? -1 : correlation, j->kernels.total, dur_us};
    j->kernels_us += dur_us;
    return dl_disk_sort_add(&j->kernels, &kernel, err);
}

enum dl_code dl_trace_join_step(struct dl_trace_join *j, double dur_us, struct dl_err *err) {
    return dl_disk_sort_add(&j->steps, &dur_us, err);
}

/* Between the events and the times of layers. */
struct joining {
    struct dl_trace_join *in;
    struct dl_trace_joined *out;
    const char *name;
    struct dl_err *err;
    struct dl_disk_sort launches;  /* link, by correlation */
    struct dl_disk_sort made;      /* link: forward ranges by sequence number */
    struct dl_disk_sort ranges;    /* range, by place */
    struct dl_disk_sort claimed;   /* share: kernels to ranges */
    struct dl_disk_sort operators; /* operator_time, by sequence number */
    struct dl_disk_sort backward;  /* share: operators to forward ranges */
    struct dl_disk_sort forward;   /* range: forward ones, by place */
    bool has_backward;             /* the trace has ranges of the backward pass */
};

/* ---- ranges, and the points in them ---- */

static bool ended(const struct dl_trace_event *e, const struct dl_trace_event *now) {
    return e->thread != now->thread || e->ts_us + e->dur_us <= now->ts_us;
}

struct open_range {
    struct dl_trace_event event;
    struct range range;
};

static enum dl_code add_point(struct joining *j, const struct dl_trace_event *e, int64_t id,
                              const struct open_range *around) {
    const int64_t range = around != NULL ? around->range.id : -1;
    if (e->kind == DL_TRACE_LAUNCH)
        return dl_disk_sort_add(&j->launches, &(struct link){e->number, id, range}, j->err);
    if (around == NULL || around->range.kind != DL_TRACE_FORWARD) return DL_OK;
    return dl_disk_sort_add(&j->made, &(struct link){e->number, range, range}, j->err);
}

/* Closes the ranges that end before `now`, or all of them (NULL). */
static enum dl_code close_ranges(struct joining *j, const struct open_range *stack, int *depth,
                                 const struct dl_trace_event *now) {
    while (*depth > 0 && (now == NULL || ended(&stack[*depth - 1].event, now)))
        DL_TRY(dl_disk_sort_add(&j->ranges, &stack[--*depth].range, j->err));
    return DL_OK;
}

static enum dl_code nest_event(struct joining *j, const struct dl_trace_event *e, int64_t id,
                               struct open_range *stack, int *depth) {
    DL_TRY(close_ranges(j, stack, depth, e));
    struct open_range *around = *depth > 0 ? &stack[*depth - 1] : NULL;
    if (e->kind >= DL_TRACE_SEQUENCE) return add_point(j, e, id, around);
    /* an operator in a layer's own range counts there */
    if (e->kind == DL_TRACE_OPERATOR && around != NULL && around->range.kind != DL_TRACE_OPERATOR)
        return DL_OK;
    if (around != NULL && e->kind != DL_TRACE_OPERATOR) around->range.inside_us += e->dur_us;
    if (*depth == MAX_NESTED)
        return dl_fail_at(j->err, j->name, 0, 0, NULL,
                          "expected ranges nested at most %d deep on a thread", MAX_NESTED);
    j->has_backward = j->has_backward || e->kind == DL_TRACE_BACKWARD;
    stack[(*depth)++] = (struct open_range){*e, {id, e->kind, e->layer, e->dur_us, 0, e->number}};
    return DL_OK;
}

static enum dl_code no_memory(struct dl_err *err) {
    return dl_fail(err, DL_ERR_SYSTEM, "out of memory while reading a trace");
}

/* For each event the innermost range around it, thread by thread. */
static enum dl_code nest(struct joining *j) {
    int depth = 0, room = 0;
    struct open_range *stack = NULL;
    const void *event;
    enum dl_code code = dl_disk_sort_start(&j->in->events, j->err);
    for (int64_t id = 0; code == DL_OK; id++) {
        code = dl_disk_sort_next(&j->in->events, &event, j->err);
        if (code != DL_OK || event == NULL) break;
        if (depth == room && room < MAX_NESTED) {
            const int larger = room == 0 ? 64 : 2 * room;
            struct open_range *more = realloc(stack, (size_t)larger * sizeof *more);
            if (more == NULL) {
                code = no_memory(j->err);
                break;
            }
            stack = more;
            room = larger;
        }
        code = nest_event(j, event, id, stack, &depth);
    }
    if (code == DL_OK) code = close_ranges(j, stack, &depth, NULL);
    free(stack);
    return code;
}

/* ---- joins ---- */

/* The first link with a number, for numbers that come in their order. */
struct finder {
    struct dl_disk_sort *links;
    struct link now;
    bool any;
};

static enum dl_code step(struct finder *f, struct dl_err *err) {
    const void *link;
    DL_TRY(dl_disk_sort_next(f->links, &link, err));
    f->any = link != NULL;
    if (f->any) f->now = *(const struct link *)link;
    return DL_OK;
}

static enum dl_code find(struct finder *f, double number, bool *found, struct dl_err *err) {
    while (f->any && f->now.number < number) DL_TRY(step(f, err));
    *found = f->any && f->now.number == number;
    return DL_OK;
}

static enum dl_code begin_find(struct finder *f, struct dl_disk_sort *links, struct dl_err *err) {
    *f = (struct finder){.links = links};
    DL_TRY(dl_disk_sort_start(links, err));
    return step(f, err);
}

/* Kernels to the ranges in which they were launched. */
static enum dl_code place_kernels(struct joining *j) {
    struct finder launches;
    const void *next;
    DL_TRY(begin_find(&launches, &j->launches, j->err));
    DL_TRY(dl_disk_sort_start(&j->in->kernels, j->err));
    for (;;) {
        DL_TRY(dl_disk_sort_next(&j->in->kernels, &next, j->err));
        if (next == NULL) return DL_OK;
        const struct kernel *kernel = next;
        bool found = false;
        if (kernel->number >= 0) DL_TRY(find(&launches, kernel->number, &found, j->err));
        DL_TRY(dl_disk_sort_add(
            &j->claimed,
            &(struct share){found ? launches.now.range : -1, kernel->order, kernel->dur_us},
            j->err));
    }
}

/* Backward operators to the forward ranges whose operators had the same sequence number. */
static enum dl_code place_operators(struct joining *j) {
    struct finder made;
    const void *next;
    bool any = false;
    DL_TRY(begin_find(&made, &j->made, j->err));
    DL_TRY(dl_disk_sort_start(&j->operators, j->err));
    for (;;) {
        DL_TRY(dl_disk_sort_next(&j->operators, &next, j->err));
        if (next == NULL) break;
        const struct operator_time *o = next;
        bool found;
        DL_TRY(find(&made, o->number, &found, j->err));
        any = any || found;
        DL_TRY(dl_disk_sort_add(&j->backward,
                                found ? &(struct share){made.now.range, o->id, o->time_us}
                                      : &(struct share){-1, o->id, o->kernel_us},
                                j->err));
    }
    j->out->by_sequence = any && !j->has_backward;
    return DL_OK;
}

/* Shares of ranges that come in their order. */
struct adder {
    struct dl_disk_sort *shares;
    const struct share *now; /* NULL: no more */
};

static enum dl_code next_share(struct adder *a, struct dl_err *err) {
    const void *share;
    DL_TRY(dl_disk_sort_next(a->shares, &share, err));
    a->now = share;
    return DL_OK;
}

static enum dl_code begin_add(struct adder *a, struct dl_disk_sort *shares, struct dl_err *err) {
    *a = (struct adder){.shares = shares};
    DL_TRY(dl_disk_sort_start(shares, err));
    return next_share(a, err);
}

/* Adds the shares of a range; those of ranges before it, which do not ask, are dropped. */
static enum dl_code add_shares(struct adder *a, int64_t range, double *sum_us, struct dl_err *err) {
    while (a->now != NULL && a->now->range <= range) {
        if (a->now->range == range) *sum_us += a->now->time_us;
        DL_TRY(next_share(a, err));
    }
    return DL_OK;
}

static enum dl_code add_sample(struct joining *j, const struct range *r, int part, double time_us) {
    /* the place in the trace matters for its order alone */
    const struct dl_trace_sample sample = {r->layer, strlen(r->layer), r->id, part, time_us};
    return dl_disk_sort_add(&j->out->samples, &sample, j->err);
}

/* A range's own time: that of its kernels or, without any kernels, its own. */
static enum dl_code take_range(struct joining *j, const struct range *r, double kernel_us) {
    const bool on_device = j->in->kernels.total > 0;
    const double own_us = on_device ? kernel_us : fmax(r->dur_us - r->inside_us, 0);
    switch (r->kind) {
    case DL_TRACE_UPDATE:
        j->out->update_us += own_us;
        j->out->update = true;
        return DL_OK;
    case DL_TRACE_BACKWARD: return add_sample(j, r, 1, own_us);
    case DL_TRACE_FORWARD:
        DL_TRY(dl_disk_sort_add(&j->forward, r, j->err));
        return add_sample(j, r, 0, own_us);
    case DL_TRACE_OPERATOR:
        return dl_disk_sort_add(&j->operators,
                                &(struct operator_time){r->number, r->id,
                                                        on_device ? kernel_us : r->dur_us,
                                                        on_device ? kernel_us : 0},
                                j->err);
    default: return DL_OK;
    }
}

static enum dl_code take_ranges(struct joining *j) {
    struct adder kernels;
    const void *range;
    DL_TRY(begin_add(&kernels, &j->claimed, j->err));
    DL_TRY(add_shares(&kernels, -1, &j->out->unclaimed_us, j->err));
    DL_TRY(dl_disk_sort_start(&j->ranges, j->err));
    for (;;) {
        double kernel_us = 0;
        DL_TRY(dl_disk_sort_next(&j->ranges, &range, j->err));
        if (range == NULL) return DL_OK;
        DL_TRY(add_shares(&kernels, ((const struct range *)range)->id, &kernel_us, j->err));
        DL_TRY(take_range(j, range, kernel_us));
    }
}

/* The backward times of forward ranges, where there are no ranges of their own. */
static enum dl_code take_backward(struct joining *j) {
    struct adder operators;
    const void *range;
    DL_TRY(begin_add(&operators, &j->backward, j->err));
    DL_TRY(add_shares(&operators, -1, &j->out->unclaimed_us, j->err));
    if (!j->out->by_sequence) return DL_OK;
    DL_TRY(dl_disk_sort_start(&j->forward, j->err));
    for (;;) {
        double backward_us = 0;
        DL_TRY(dl_disk_sort_next(&j->forward, &range, j->err));
        if (range == NULL) return DL_OK;
        DL_TRY(add_shares(&operators, ((const struct range *)range)->id, &backward_us, j->err));
        DL_TRY(add_sample(j, range, 1, backward_us));
    }
}

/* What is read again gives its memory back as soon as it was read. */
static enum dl_code join_in_turn(struct joining *j) {
    DL_TRY(nest(j));
    dl_disk_sort_close(&j->in->events);
    DL_TRY(place_kernels(j));
    dl_disk_sort_close(&j->launches);
    DL_TRY(take_ranges(j));
    dl_disk_sort_close(&j->ranges);
    dl_disk_sort_close(&j->claimed);
    DL_TRY(place_operators(j));
    dl_disk_sort_close(&j->operators);
    dl_disk_sort_close(&j->made);
    return take_backward(j);
}

enum dl_code dl_trace_join_all(struct dl_trace_join *in, const char *name,
                               struct dl_trace_joined *out, struct dl_err *err) {
    struct joining j = {.in = in, .out = out, .name = name, .err = err};
    *out = (struct dl_trace_joined){.update_us = 0};
    dl_trace_samples_init(&out->samples);
    dl_disk_sort_init(&j.launches, sizeof(struct link), by_link);
    dl_disk_sort_init(&j.made, sizeof(struct link), by_link);
    dl_disk_sort_init(&j.ranges, sizeof(struct range), by_range);
    dl_disk_sort_init(&j.claimed, sizeof(struct share), by_share);
    dl_disk_sort_init(&j.operators, sizeof(struct operator_time), by_operator);
    dl_disk_sort_init(&j.backward, sizeof(struct share), by_share);
    dl_disk_sort_init(&j.forward, sizeof(struct range), by_range);
    const enum dl_code code = join_in_turn(&j);
    struct dl_disk_sort *const all[] = {&j.launches,  &j.made,     &j.ranges, &j.claimed,
                                        &j.operators, &j.backward, &j.forward};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) dl_disk_sort_close(all[i]);
    return code;
}

void dl_trace_joined_close(struct dl_trace_joined *out) { dl_disk_sort_close(&out->samples); }
