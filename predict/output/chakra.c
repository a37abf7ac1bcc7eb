/* chakra.c - the format: messages of Protocol Buffers, each after its length. First GlobalMetadata
 * (version = 1), then a Node for each operation: id = 1, name = 2, type = 3, data_deps = 5,
 * start_time_micros = 6, duration_micros = 7, attr = 10 (AttributeProto: name = 1, int32_val = 7,
 * int64_val = 9, uint64_val = 13, bool_val = 27). Source: schema/protobuf/et_def.proto of
 * mlcommons/chakra; the attributes are those that its feeder reads (src/feeder). */
#include "predict/output/chakra.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/core/file.h"
#include "model/core/text.h"
#include "model/engine/schedule.h"

enum { COMP_NODE = 4, COMM_SEND_NODE = 5, COMM_RECV_NODE = 6, COMM_COLL_NODE = 7 };
enum { VARINT = 0, BYTES = 2 };

/* Collectives by Chakra's numbers. */
static const char *const collectives[] = {"all_reduce", "reduce",        "all_gather",
                                          "gather",     "scatter",       "broadcast",
                                          "all_to_all", "reduce_scatter"};

static void add_varint(struct dl_text *b, uint64_t value) {
    do {
        const unsigned char low = (unsigned char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        dl_text_add_bytes(b, (const char *)&low, 1);
        value >>= 7;
    } while (value > 0);
}

static void add_number(struct dl_text *b, unsigned field, uint64_t value) {
    add_varint(b, (uint64_t)field << 3 | VARINT);
    add_varint(b, value);
}

static void add_field(struct dl_text *b, unsigned field, const void *value, size_t length) {
    add_varint(b, (uint64_t)field << 3 | BYTES);
    add_varint(b, length);
    dl_text_add_bytes(b, value, length);
}

static void add_message(struct dl_text *b, const struct dl_text *message) {
    add_varint(b, message->length);
    dl_text_add_bytes(b, message->bytes, message->length);
}

/* field: the type of its value. */
static void add_attribute(struct dl_text *node, const char *name, unsigned field, uint64_t value) {
    enum { INT64_FIELD = 9, UINT64_FIELD = 13, BOOL_FIELD = 27, ATTRIBUTE = 10 };
    struct dl_text attribute = {.arena = node->arena};
    add_field(&attribute, 1, name, strlen(name));
    add_number(&attribute, field, value);
    add_field(node, ATTRIBUTE, attribute.bytes, attribute.length);
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

/* The nodes of one rank in the order of their starts. */
struct rank {
    const struct dl_term **terms;
    int count;
    const struct dl_term *tasks; /* of all ranks */
    const int *node;             /* by task: its place among those of its rank */
};

/* The nodes that node i waits for; at most two. */
static int waits_for(const struct rank *rank, int i, int *out) {
    const struct dl_term *const *terms = rank->terms, *own = terms[i];
    int before = -1, other = -1, count = 0;
    for (int k = 0; k < i; k++) {
        const bool same = strcmp(terms[k]->lane, own->lane) == 0;
        /* times add up with rounding errors */
        const bool ended = end_of(terms[k]) <= own->start_s + 1e-9;
        if (same) before = k;
        if (!same && ended && (other < 0 || end_of(terms[k]) >= end_of(terms[other]))) other = k;
    }
    if (before >= 0) out[count++] = before;
    if (own->pass != NULL) { /* a pass waits for what it receives, a message for the pass */
        if (own->needs >= 0) out[count++] = rank->node[own->needs];
        return count;
    }
    const bool waited = before < 0 || end_of(terms[before]) < own->start_s - 1e-9;
    if (other >= 0 && waited) out[count++] = other;
    return count;
}

static int collective_of(const struct dl_term *t) {
    for (int i = 0; t->collective != NULL && i < (int)(sizeof collectives / sizeof *collectives);
         i++)
        if (strcmp(collectives[i], t->collective) == 0) return i;
    return -1;
}

enum { INT32_FIELD = 7, INT64_FIELD = 9, UINT64_FIELD = 13, BOOL_FIELD = 27 };

/* A message between stages, whose number tells its receiver which one it is. */
static void add_peer(struct dl_text *node, const struct dl_term *t, bool sends) {
    const struct dl_pipeline_pass *x = t->pass;
    const int tag = 2 * x->micro_batch + (x->kind == DL_PASS_BACKWARD) + 65536 * x->part;
    add_attribute(node, "comm_src", INT32_FIELD, (uint64_t)(sends ? t->stage : t->peer));
    add_attribute(node, "comm_dst", INT32_FIELD, (uint64_t)(sends ? t->peer : t->stage));
    add_attribute(node, "comm_tag", INT32_FIELD, (uint64_t)tag);
    add_attribute(node, "comm_size", INT64_FIELD, rounded(t->bytes));
}

static enum dl_code add_node(struct dl_text *out, const struct rank *rank, int i,
                             struct dl_err *err) {
    const struct dl_term *t = rank->terms[i];
    const bool sends = strncmp(t->lane, "send", 4) == 0,
               receives = strncmp(t->lane, "receive", 7) == 0,
               message = strcmp(t->lane, "communication") == 0;
    const int collective = message ? collective_of(t) : -1;
    struct dl_text node = {.arena = out->arena};
    int others[2];
    if (message && collective < 0)
        return dl_fail(err, DL_ERR_USAGE,
                       "--trace: '%.60s' is no collective, and a trace of Chakra has no other "
                       "message without its receiver",
                       t->name);
    add_number(&node, 1, (uint64_t)i + 1);
    add_field(&node, 2, t->name, strlen(t->name));
    add_number(&node, 3,
               sends      ? COMM_SEND_NODE
               : receives ? COMM_RECV_NODE
               : message  ? COMM_COLL_NODE
                          : COMP_NODE);
    const int count = waits_for(rank, i, others);
    for (int k = 0; k < count; k++) add_number(&node, 5, (uint64_t)others[k] + 1);
    add_number(&node, 6, rounded(1e6 * t->start_s));
    add_number(&node, 7, rounded(fmax(1, 1e6 * t->value))); /* 0 means that it is not known */
    add_attribute(&node, "is_cpu_op", BOOL_FIELD,
                  strcmp(t->lane, "host") == 0 || strcmp(t->lane, "copy") == 0 ? 1 : 0);
    if (sends || receives) {
        add_peer(&node, t, sends);
    } else if (message) {
        add_attribute(&node, "comm_type", INT64_FIELD, (uint64_t)collective);
        add_attribute(&node, "comm_size", INT64_FIELD, rounded(t->bytes));
    } else {
        add_attribute(&node, "num_ops", INT64_FIELD, rounded(t->flop));
        add_attribute(&node, "tensor_size", UINT64_FIELD, rounded(t->bytes));
    }
    add_message(out, &node);
    return DL_OK;
}

/* The nodes of a stage; their places go into node, by task. */
static void list_rank(const struct dl_course *course, int stage, int *node, struct rank *out) {
    out->count = 0;
    for (int i = 0; i < course->task_count; i++) {
        const struct dl_term *t = &course->tasks[i];
        if (dl_known(t->start_s) && t->lane != NULL && t->stage == stage)
            out->terms[out->count++] = t;
    }
    qsort(out->terms, (size_t)out->count, sizeof *out->terms, by_start);
    for (int i = 0; i < out->count; i++) node[out->terms[i] - course->tasks] = i;
}

static enum dl_code write_rank(const char *path, const struct rank *rank, struct dl_arena *arena,
                               struct dl_err *err) {
    static const char version[] = "1.0.0";
    struct dl_text out = {.arena = arena}, metadata = {.arena = arena};
    add_field(&metadata, 1, version, strlen(version));
    add_message(&out, &metadata);
    for (int i = 0; i < rank->count; i++) DL_TRY(add_node(&out, rank, i, err));
    return dl_file_write(path, dl_text_string(&out), out.length, err);
}

/* "rank.et", or of a pipeline's stages "rank.0.et", "rank.1.et", ... */
static const char *path_of(const char *path, int stage, int stages, struct dl_arena *arena) {
    const size_t length = strlen(path) - strlen(".et");
    return stages > 1 ? dl_arena_printf(arena, "%.*s.%d.et", (int)length, path, stage) : path;
}

enum dl_code dl_chakra_write(const char *path, const struct dl_prediction_row *row,
                             struct dl_arena *arena, struct dl_err *err) {
    const struct dl_course *course = &row->prediction->course;
    const int stages = course->memory_count > 1 ? course->memory_count : 1;
    const size_t tasks = (size_t)course->task_count + 1;
    int *node = dl_arena_alloc(arena, tasks, sizeof *node);
    struct rank rank = {.terms = dl_arena_alloc(arena, tasks, sizeof *rank.terms),
                        .tasks = course->tasks,
                        .node = node};
    if (course->left_out_micro_batches > 0)
        return dl_fail(err, DL_ERR_USAGE,
                       "--trace: a trace of Chakra repeats nothing, and this plan has %d "
                       "micro-batches more than are listed; give a smaller --global-batch",
                       course->left_out_micro_batches);
    for (int s = 0; s < stages; s++) {
        list_rank(course, s, node, &rank);
        if (rank.count == 0)
            return dl_fail(err, DL_ERR_USAGE,
                           "--trace: this plan's prediction has no timeline of single operations");
        DL_TRY(write_rank(path_of(path, s, stages, arena), &rank, arena, err));
    }
    return DL_OK;
}
