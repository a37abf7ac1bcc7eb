/* chakra.c - the format: messages of Protocol Buffers, each after its length. First GlobalMetadata
 * (version = 1), then a Node for each operation: id = 1, name = 2, type = 3, data_deps = 5,
 * start_time_micros = 6, duration_micros = 7, attr = 10 (AttributeProto: name = 1, int64_val = 9,
 * uint64_val = 13, bool_val = 27). Source: schema/protobuf/et_def.proto of mlcommons/chakra;
 * the attributes are those that its feeder reads (src/feeder). */
#include "predict/output/chakra.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/core/file.h"

enum { COMP_NODE = 4, COMM_COLL_NODE = 7 };
enum { VARINT = 0, BYTES = 2 };

/* Collectives by Chakra's numbers. */
static const char *const collectives[] = {"all_reduce", "reduce",        "all_gather",
                                          "gather",     "scatter",       "broadcast",
                                          "all_to_all", "reduce_scatter"};

struct bytes {
    struct dl_arena *arena;
    unsigned char *list;
    size_t count, capacity;
};

static void add(struct bytes *b, const void *more, size_t count) {
    if (b->count + count > b->capacity) {
        const size_t larger = 2 * (b->count + count) + 256;
        unsigned char *list = dl_arena_alloc(b->arena, larger, 1);
        if (b->count > 0) memcpy(list, b->list, b->count);
        b->list = list;
        b->capacity = larger;
    }
    if (count > 0) memcpy(b->list + b->count, more, count);
    b->count += count;
}

static void add_varint(struct bytes *b, uint64_t value) {
    do {
        const unsigned char low = (unsigned char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        add(b, &low, 1);
        value >>= 7;
    } while (value > 0);
}

static void add_number(struct bytes *b, unsigned field, uint64_t value) {
    add_varint(b, (uint64_t)field << 3 | VARINT);
    add_varint(b, value);
}

static void add_field(struct bytes *b, unsigned field, const void *value, size_t length) {
    add_varint(b, (uint64_t)field << 3 | BYTES);
    add_varint(b, length);
    add(b, value, length);
}

static void add_message(struct bytes *b, const struct bytes *message) {
    add_varint(b, message->count);
    add(b, message->list, message->count);
}

/* field: the type of its value. */
static void add_attribute(struct bytes *node, const char *name, unsigned field, uint64_t value) {
    enum { INT64_FIELD = 9, UINT64_FIELD = 13, BOOL_FIELD = 27, ATTRIBUTE = 10 };
    struct bytes attribute = {.arena = node->arena};
    add_field(&attribute, 1, name, strlen(name));
    add_number(&attribute, field, value);
    add_field(node, ATTRIBUTE, attribute.list, attribute.count);
}

static uint64_t rounded(double value) {
    return value > 0 && value < 9e18 ? (uint64_t)llround(value) : 0;
}

static int by_start(const void *a, const void *b) {
    const struct dl_term *x = *(const struct dl_term *const *)a,
                         *y = *(const struct dl_term *const *)b;
    if (x->start_s != y->start_s) return x->start_s < y->start_s ? -1 : 1;
    return x < y ? -1 : x > y;
}

static double end_of(const struct dl_term *t) { return t->start_s + t->value; }

/* The nodes that node i waits for; at most two. Terms are in the order of their starts. */
static int waits_for(const struct dl_term *const *terms, int i, int *out) {
    int before = -1, other = -1, count = 0;
    for (int k = 0; k < i; k++) {
        const bool same = strcmp(terms[k]->lane, terms[i]->lane) == 0;
        /* times add up with rounding errors */
        const bool ended = end_of(terms[k]) <= terms[i]->start_s + 1e-9;
        if (same) before = k;
        if (!same && ended && (other < 0 || end_of(terms[k]) >= end_of(terms[other]))) other = k;
    }
    if (before >= 0) out[count++] = before;
    const bool waited = before < 0 || end_of(terms[before]) < terms[i]->start_s - 1e-9;
    if (other >= 0 && waited) out[count++] = other;
    return count;
}

static int collective_of(const struct dl_term *t) {
    for (int i = 0; t->collective != NULL && i < (int)(sizeof collectives / sizeof *collectives);
         i++)
        if (strcmp(collectives[i], t->collective) == 0) return i;
    return -1;
}

static enum dl_code add_node(struct bytes *out, const struct dl_term *const *terms, int i,
                             struct dl_err *err) {
    enum { INT64_FIELD = 9, UINT64_FIELD = 13, BOOL_FIELD = 27 };
    const struct dl_term *t = terms[i];
    const bool message = strcmp(t->lane, "communication") == 0;
    const int collective = message ? collective_of(t) : -1;
    struct bytes node = {.arena = out->arena};
    int others[2];
    if (message && collective < 0)
        return dl_fail(err, DL_ERR_USAGE,
                       "--trace: '%.60s' is no collective, and a trace of Chakra has no other "
                       "message without its receiver",
                       t->name);
    add_number(&node, 1, (uint64_t)i + 1);
    add_field(&node, 2, t->name, strlen(t->name));
    add_number(&node, 3, message ? COMM_COLL_NODE : COMP_NODE);
    const int count = waits_for(terms, i, others);
    for (int k = 0; k < count; k++) add_number(&node, 5, (uint64_t)others[k] + 1);
    add_number(&node, 6, rounded(1e6 * t->start_s));
    add_number(&node, 7, rounded(fmax(1, 1e6 * t->value))); /* 0 means that it is not known */
    add_attribute(&node, "is_cpu_op", BOOL_FIELD,
                  !message && strcmp(t->lane, "compute") != 0 ? 1 : 0);
    if (message) {
        add_attribute(&node, "comm_type", INT64_FIELD, (uint64_t)collective);
        add_attribute(&node, "comm_size", INT64_FIELD, rounded(t->bytes));
    } else {
        add_attribute(&node, "num_ops", INT64_FIELD, rounded(t->flop));
        add_attribute(&node, "tensor_size", UINT64_FIELD, rounded(t->bytes));
    }
    add_message(out, &node);
    return DL_OK;
}

enum dl_code dl_chakra_write(const char *path, const struct dl_prediction_row *row,
                             struct dl_arena *arena, struct dl_err *err) {
    static const char version[] = "1.0.0";
    const struct dl_prediction *p = row->prediction;
    const struct dl_term **terms =
        dl_arena_alloc(arena, (size_t)p->course.task_count + 1, sizeof *terms);
    int count = 0;
    for (int i = 0; i < p->course.task_count; i++)
        if (dl_known(p->course.tasks[i].start_s) && p->course.tasks[i].lane != NULL)
            terms[count++] = &p->course.tasks[i];
    if (count == 0)
        return dl_fail(err, DL_ERR_USAGE,
                       "--trace: this plan's prediction has no timeline of single operations");
    qsort(terms, (size_t)count, sizeof *terms, by_start);
    struct bytes out = {.arena = arena}, metadata = {.arena = arena};
    add_field(&metadata, 1, version, strlen(version));
    add_message(&out, &metadata);
    for (int i = 0; i < count; i++) DL_TRY(add_node(&out, terms, i, err));
    return dl_file_write(path, (const char *)out.list, out.count, err);
}
