/* snapshot.c - the format: what torch.cuda.memory._snapshot() returns, pickled with protocol 2.
 * Members: docs.pytorch.org, "Understanding CUDA Memory Usage", Snapshot API Reference. */
#include "predict/output/snapshot.h"

#include <math.h>
#include <string.h>

#include "model/core/file.h"
#include "model/core/text.h"

/* ---- pickle, protocol 2 ---- */

static void op(struct dl_text *p, const char *bytes) { dl_text_add(p, bytes); }

static void little(struct dl_text *p, uint64_t value, int width) {
    for (int i = 0; i < width; i++) {
        const unsigned char byte = (unsigned char)(value >> (8 * i));
        dl_text_add_bytes(p, (const char *)&byte, 1);
    }
}

static void text(struct dl_text *p, const char *value) {
    op(p, "X"); /* BINUNICODE */
    little(p, strlen(value), 4);
    dl_text_add(p, value);
}

static void whole(struct dl_text *p, double value) {
    op(p, "\x8a\x08"); /* LONG1 of 8 bytes, signed */
    little(p, value > 0 ? (uint64_t)value : 0, 8);
}

static void begin_dict(struct dl_text *p) { op(p, "}("); }
static void end_dict(struct dl_text *p) { op(p, "u"); }
static void begin_list(struct dl_text *p) { op(p, "]("); }
static void end_list(struct dl_text *p) { op(p, "e"); }

static void number(struct dl_text *p, const char *key, double value) {
    text(p, key);
    whole(p, value);
}

static void word(struct dl_text *p, const char *key, const char *value) {
    text(p, key);
    text(p, value);
}

/* What the block is, in place of a Python frame. */
static void frames(struct dl_text *p, const char *name) {
    text(p, "frames");
    begin_list(p);
    if (name != NULL) {
        begin_dict(p);
        word(p, "filename", "dlmodel");
        number(p, "line", 0);
        word(p, "name", name);
        end_dict(p);
    }
    end_list(p);
}

/* ---- the allocator ---- */

struct block {
    const char *name;
    double address, bytes;
};
struct device {
    struct dl_text *p;
    struct block *stack;
    int count;
    double top, now_us;
};

static const double FIRST_ADDRESS = 1099511627776.0; /* 2^40 */

static void event(struct device *d, const char *action, const struct block *b) {
    begin_dict(d->p);
    word(d->p, "action", action);
    number(d->p, "addr", b->address);
    number(d->p, "size", b->bytes);
    number(d->p, "stream", 0);
    number(d->p, "time_us", d->now_us);
    frames(d->p, b->name);
    end_dict(d->p);
}

static void allocate(struct device *d, const char *name, double bytes) {
    if (!(bytes >= 1)) return;
    d->stack = dl_arena_grow(d->p->arena, d->stack, (size_t)d->count, sizeof *d->stack);
    struct block *b = &d->stack[d->count++];
    *b = (struct block){name, d->top, bytes};
    d->top += bytes;
    event(d, "alloc", b);
}

/* The latest first, as a backward pass does; of a block in part, the rest is allocated again. */
static void release(struct device *d, double bytes) {
    while (bytes >= 1 && d->count > 0) {
        const struct block b = d->stack[--d->count];
        event(d, "free_requested", &b);
        event(d, "free_completed", &b);
        d->top -= b.bytes;
        if (b.bytes > bytes) allocate(d, b.name, b.bytes - bytes);
        bytes -= b.bytes;
    }
}

static double most_of(const struct dl_memory_curve *curve) {
    double most = 0;
    for (int i = 0; i < curve->count; i++) most = fmax(most, curve->points[i].bytes);
    return most;
}

/* What stays over the iteration; its bytes. */
static double allocate_states(struct device *d, const struct dl_memory *m) {
    const struct {
        const char *name;
        double bytes;
    } parts[] = {{"weights", m->weights_bytes},
                 {"optimizer states", m->optimizer_bytes},
                 {"gradients", m->gradients_bytes},
                 {"buffers", m->buffers_bytes},
                 {"workspace", m->workspace_bytes}};
    double sum = 0;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        const double bytes = floor(parts[i].bytes);
        allocate(d, parts[i].name, bytes);
        sum += bytes;
    }
    return sum;
}

static double reserved_bytes(const struct dl_memory_curve *curve) {
    return ceil(fmax(most_of(curve) - curve->parts.context_bytes, 0)) + 1;
}

/* The history of a device. */
static void history(struct dl_text *p, int stage, const struct dl_memory_curve *curve,
                    struct device *out) {
    *out = (struct device){.p = p, .top = FIRST_ADDRESS * (stage + 1)};
    const struct block all = {NULL, out->top, reserved_bytes(curve)};
    begin_list(p);
    event(out, "segment_alloc", &all);
    const double base = allocate_states(out, &curve->parts);
    double held = base;
    for (int i = 0; i < curve->count; i++) {
        const double bytes = floor(fmax(curve->points[i].bytes - curve->parts.context_bytes, base));
        out->now_us = 1e6 * curve->points[i].s;
        if (bytes > held)
            allocate(out, "activations", bytes - held);
        else
            release(out, held - bytes);
        held = bytes;
    }
    end_list(p);
}

static void segment(struct dl_text *p, const struct device *d, int stage,
                    const struct dl_memory_curve *curve) {
    const double start = FIRST_ADDRESS * (stage + 1), active = d->top - start;
    begin_dict(p);
    number(p, "device", stage);
    number(p, "address", start);
    number(p, "total_size", reserved_bytes(curve));
    number(p, "allocated_size", active);
    number(p, "active_size", active);
    number(p, "requested_size", active);
    number(p, "stream", 0);
    word(p, "segment_type", "large");
    frames(p, NULL);
    text(p, "blocks");
    begin_list(p);
    for (int i = 0; i < d->count; i++) {
        begin_dict(p);
        number(p, "address", d->stack[i].address);
        number(p, "size", d->stack[i].bytes);
        number(p, "requested_size", d->stack[i].bytes);
        word(p, "state", "active_allocated");
        frames(p, d->stack[i].name);
        end_dict(p);
    }
    end_list(p);
    end_dict(p);
}

enum dl_code dl_snapshot_write(const char *path, const struct dl_prediction_row *row,
                               struct dl_arena *arena, struct dl_err *err) {
    const struct dl_course *course = &row->prediction->course;
    struct dl_text p = {.arena = arena};
    if (course->memory_count == 0)
        return dl_fail(err, DL_ERR_USAGE,
                       "--trace: the course of memory of this plan is not modelled; a file whose "
                       "name does not end in .pickle takes its timeline");
    struct device *devices = dl_arena_alloc(arena, (size_t)course->memory_count, sizeof *devices);
    op(&p, "\x80\x02");
    begin_dict(&p);
    text(&p, "device_traces");
    begin_list(&p);
    for (int s = 0; s < course->memory_count; s++) history(&p, s, &course->memory[s], &devices[s]);
    end_list(&p);
    text(&p, "segments");
    begin_list(&p);
    for (int s = 0; s < course->memory_count; s++) segment(&p, &devices[s], s, &course->memory[s]);
    end_list(&p);
    end_dict(&p);
    op(&p, ".");
    return dl_file_write(path, p.bytes, p.length, err);
}
