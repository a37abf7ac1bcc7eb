/* import_trace_sums.c - sums by layer, and the plain table that needs nothing else. */
#include "import/import_trace_sums.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/statistics/classes.h"
#include "model/core/csv.h"

static int by_layer(const void *a, const void *b) {
    const struct dl_trace_sample *x = a, *y = b;
    const int order = strncmp(x->layer, y->layer, x->length < y->length ? x->length : y->length);
    if (order != 0) return order;
    if (x->length != y->length) return x->length < y->length ? -1 : 1;
    if (x->part != y->part) return x->part - y->part;
    return x->time_us < y->time_us ? -1 : x->time_us > y->time_us;
}

/* Of a layer and a part of the iteration: how many samples, and what is between the middle ones. */
struct group {
    const char *layer;
    size_t length;
    int part;
    int64_t count, first; /* first: least place in the trace */
    double middle_us[2];
};
struct groups {
    struct group *list;
    int count, capacity;
    struct dl_arena *arena;
};

static bool same_group(const struct group *g, const struct dl_trace_sample *s) {
    return g->part == s->part && g->length == s->length &&
           strncmp(g->layer, s->layer, g->length) == 0;
}

static struct group *add_group(struct groups *g, const struct dl_trace_sample *s) {
    if (g->count == g->capacity) {
        const int capacity = g->capacity == 0 ? 256 : 2 * g->capacity;
        struct group *list = dl_arena_alloc(g->arena, (size_t)capacity, sizeof *list);
        if (g->count > 0) memcpy(list, g->list, (size_t)g->count * sizeof *list);
        g->list = list;
        g->capacity = capacity;
    }
    g->list[g->count] = (struct group){s->layer, s->length, s->part, 0, s->first, {NAN, NAN}};
    return &g->list[g->count++];
}

/* Counts the samples of each group; the groups come in the order of the samples. */
static enum dl_code count_groups(struct dl_disk_sort *samples, struct groups *g,
                                 struct dl_err *err) {
    struct group *now = NULL;
    const void *next;
    DL_TRY(dl_disk_sort_start(samples, err));
    for (;;) {
        DL_TRY(dl_disk_sort_next(samples, &next, err));
        if (next == NULL) return DL_OK;
        const struct dl_trace_sample *s = next;
        if (now == NULL || !same_group(now, s)) now = add_group(g, s);
        now->count++;
        if (s->first < now->first) now->first = s->first;
    }
}

/* The middle samples of each group: of one whose count is known they are at known places. */
static enum dl_code find_middles(struct dl_disk_sort *samples, const struct groups *g,
                                 struct dl_err *err) {
    const void *next;
    DL_TRY(dl_disk_sort_start(samples, err));
    for (int i = 0; i < g->count; i++) {
        struct group *now = &g->list[i];
        for (int64_t k = 0; k < now->count; k++) {
            DL_TRY(dl_disk_sort_next(samples, &next, err));
            const double time_us = ((const struct dl_trace_sample *)next)->time_us;
            if (k == (now->count - 1) / 2) now->middle_us[0] = time_us;
            if (k == now->count / 2) now->middle_us[1] = time_us;
        }
    }
    return DL_OK;
}

/* The count that most layers have: how often an iteration was seen. */
static int64_t usual_count(const struct groups *g) {
    int64_t best = 1;
    int most = 0;
    for (int times = 1; times <= 1000; times++) {
        int layers = 0;
        for (int i = 0; i < g->count; i++)
            layers += g->list[i].part == 0 && g->list[i].count == times;
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

void dl_trace_samples_init(struct dl_disk_sort *samples) {
    dl_disk_sort_init(samples, sizeof(struct dl_trace_sample), by_layer);
}

enum dl_code dl_trace_sum(struct dl_disk_sort *samples, int64_t steps, struct dl_arena *arena,
                          struct dl_trace_times *out, struct dl_err *err) {
    struct groups groups = {.arena = arena};
    DL_TRY(count_groups(samples, &groups, err));
    DL_TRY(find_middles(samples, &groups, err));
    struct order *list = dl_arena_alloc(arena, (size_t)groups.count, sizeof *list);
    struct dl_layer_time *layers = dl_arena_alloc(arena, (size_t)groups.count, sizeof *layers);
    int made = 0;
    out->steps = steps > 0 ? steps : usual_count(&groups);
    for (int i = 0; i < groups.count; i++) {
        const struct group *g = &groups.list[i];
        const double middle =
            g->count % 2 == 1 ? g->middle_us[0] : 0.5 * (g->middle_us[0] + g->middle_us[1]);
        const double time_s = 1e-6 * middle * (double)g->count / (double)out->steps;
        const bool same = made > 0 && strlen(list[made - 1].time.name) == g->length &&
                          strncmp(list[made - 1].time.name, g->layer, g->length) == 0;
        if (!same) {
            const char *name = dl_arena_strndup(arena, g->layer, g->length);
            list[made++] = (struct order){{name, NAN, NAN}, g->first};
        }
        if (g->part == 0)
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

static enum dl_code sum_rows(const struct dl_trace_sample *samples, int count,
                             struct dl_arena *arena, struct dl_trace_times *out,
                             struct dl_err *err) {
    struct dl_disk_sort sorted;
    enum dl_code code = DL_OK;
    dl_trace_samples_init(&sorted);
    for (int i = 0; i < count && code == DL_OK; i++)
        code = dl_disk_sort_add(&sorted, &samples[i], err);
    if (code == DL_OK) code = dl_trace_sum(&sorted, 1, arena, out, err);
    dl_disk_sort_close(&sorted);
    return code;
}

enum dl_code dl_trace_csv(const char *name, const char *text, size_t length, struct dl_arena *arena,
                          struct dl_trace_times *out, struct dl_err *err) {
    struct dl_csv csv;
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
        samples[count++] = (struct dl_trace_sample){which, strlen(which), i, back, 1e6 * time_s};
    }
    if (count == 0)
        return dl_fail_at(err, name, 1, 1, NULL, "expected a row of a layer below the heading");
    *out = (struct dl_trace_times){.update_s = update_s,
                                   .quartile_update_s = NAN,
                                   .quartile_jitter_frac = NAN,
                                   .kernel_s = 0,
                                   .jitter_frac = NAN,
                                   .core_s = NAN};
    DL_TRY(sum_rows(samples, count, arena, out, err));
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
