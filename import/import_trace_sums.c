/* import_trace_sums.c - sums by layer, and the plain table that needs nothing else. */
#include "import/import_trace_sums.h"
#include "import/import_nsys.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/statistics/classes.h"
#include "model/core/csv.h"

static int by_layer(const void *a, const void *b) {
    const struct dl_trace_sample *x = a, *y = b;
    const int order = strcmp(x->layer, y->layer);
    if (order != 0) return order;
    if (x->part != y->part) return x->part - y->part;
    return x->time_us < y->time_us ? -1 : x->time_us > y->time_us;
}

/* The samples of a layer and a part of the iteration. */
struct group {
    const char *layer;
    int part;
    int64_t count, first; /* first: least place in the trace */
    double median_us;
};

/* The groups of sorted samples. */
static int group_samples(const struct dl_trace_sample *s, int64_t count, struct group *groups) {
    int made = 0;
    for (int64_t i = 0, end; i < count; i = end) {
        struct group *g = &groups[made++];
        *g = (struct group){s[i].layer, s[i].part, 0, s[i].first, NAN};
        for (end = i; end < count && s[end].part == g->part && strcmp(s[end].layer, g->layer) == 0;
             end++)
            if (s[end].first < g->first) g->first = s[end].first;
        g->count = end - i;
        g->median_us = 0.5 * (s[i + (g->count - 1) / 2].time_us + s[i + g->count / 2].time_us);
    }
    return made;
}

/* The count that most layers have: how often an iteration was seen. */
static int64_t usual_count(const struct group *groups, int count) {
    int64_t best = 1;
    int most = 0;
    for (int times = 1; times <= 1000; times++) {
        int layers = 0;
        for (int i = 0; i < count; i++) layers += groups[i].part == 0 && groups[i].count == times;
        if (layers > most) most = layers, best = times;
    }
    return best;
}

struct order {
    struct dl_layer_time time;
    int64_t first;
};
static int by_first(const void *a, const void *b) {
    const int64_t x = ((const struct order *)a)->first, y = ((const struct order *)b)->first;
    return x < y ? -1 : x > y;
}

/* repeats: samples of a layer are repeats of one iteration. */
static void sum(struct dl_trace_sample *samples, int64_t count, bool repeats, int64_t steps,
                struct dl_arena *arena, struct dl_trace_times *out) {
    struct group *groups = dl_arena_alloc(arena, (size_t)count, sizeof *groups);
    qsort(samples, (size_t)count, sizeof *samples, by_layer);
    const int group_count = group_samples(samples, count, groups);
    struct order *list = dl_arena_alloc(arena, (size_t)group_count, sizeof *list);
    struct dl_layer_time *layers = dl_arena_alloc(arena, (size_t)group_count, sizeof *layers);
    int made = 0;
    out->steps = steps > 0 ? steps : usual_count(groups, group_count);
    for (int i = 0; i < group_count; i++) {
        const struct group *g = &groups[i];
        if (repeats && g->count > out->steps) out->steps = g->count;
        const double time_s = repeats ? 1e-6 * g->median_us
                                      : 1e-6 * g->median_us * (double)g->count / (double)out->steps;
        if (made == 0 || strcmp(list[made - 1].time.name, g->layer) != 0)
            list[made++] = (struct order){{g->layer, NAN, NAN}, g->first};
        if (g->part == 0)
            list[made - 1].time.forward_s = time_s;
        else
            list[made - 1].time.backward_s = time_s;
    }
    qsort(list, (size_t)made, sizeof *list, by_first);
    for (int i = 0; i < made; i++) layers[i] = list[i].time;
    out->layers = layers;
    out->layer_count = made;
}

void dl_trace_sum(struct dl_records *samples, int64_t steps, struct dl_arena *arena,
                  struct dl_trace_times *out) {
    sum(samples->list, samples->count, false, steps, arena, out);
}

enum dl_code dl_trace_csv(const char *name, const char *text, size_t length, int64_t steps,
                          struct dl_arena *arena, struct dl_trace_times *out, struct dl_err *err) {
    struct dl_csv csv;
    const char *projected = dl_nsys_table(text, length);
    if (projected != NULL)
        return dl_nsys_csv(name, projected, length - (size_t)(projected - text), steps, arena, out,
                           err);
    DL_TRY(dl_csv_parse(name, text, length, arena, &csv, err));
    const int layer = dl_csv_column(&csv, "layer"), pass = dl_csv_column(&csv, "pass"),
              time = dl_csv_column(&csv, "time_s");
    struct dl_trace_sample *samples = dl_arena_alloc(arena, (size_t)csv.row_count, sizeof *samples);
    int count = 0;
    double update_s = NAN;
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
        samples[count++] = (struct dl_trace_sample){which, i, back, 1e6 * time_s};
    }
    if (count == 0)
        return dl_fail_at(err, name, 1, 1, NULL, "expected a row of a layer below the heading");
    dl_trace_sum_table(samples, count, update_s, arena, out);
    return DL_OK;
}

void dl_trace_sum_table(struct dl_trace_sample *samples, int64_t count, double update_s,
                        struct dl_arena *arena, struct dl_trace_times *out) {
    *out = (struct dl_trace_times){.update_s = update_s,
                                   .quartile_update_s = NAN,
                                   .quartile_jitter_frac = NAN,
                                   .kernel_s = 0,
                                   .jitter_frac = NAN,
                                   .core_s = NAN};
    sum(samples, count, true, 1, arena, out);
}

static size_t slot_of(const char *const *table, size_t capacity, const char *name, size_t length) {
    size_t at = dl_hash_bytes(DL_HASH_START, name, length) & (capacity - 1);
    while (table[at] != NULL && (strncmp(table[at], name, length) != 0 || table[at][length] != 0))
        at = (at + 1) & (capacity - 1);
    return at;
}

const char *dl_trace_name(struct dl_trace_names *names, const char *text, size_t length,
                          struct dl_arena *arena) {
    if (2 * names->count >= names->capacity) {
        const size_t larger = names->capacity > 0 ? 2 * names->capacity : 256;
        const char **table = dl_arena_alloc(arena, larger, sizeof *table);
        for (size_t i = 0; i < names->capacity; i++) {
            const char *name = names->list[i];
            if (name != NULL) table[slot_of(table, larger, name, strlen(name))] = name;
        }
        names->list = table;
        names->capacity = larger;
    }
    const char **slot = &names->list[slot_of(names->list, names->capacity, text, length)];
    if (*slot == NULL) {
        *slot = dl_arena_strndup(arena, text, length);
        names->count++;
    }
    return *slot;
}
