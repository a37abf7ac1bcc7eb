/* import_trace_sums.c - sums by layer, and the plain table that needs nothing else. */
#include "predict/import/import_trace_sums.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/classes.h"
#include "model/base/csv.h"

static enum dl_code no_memory(struct dl_err *err) {
    return dl_fail(err, DL_ERR_SYSTEM, "out of memory while reading a trace");
}

static int by_layer(const void *a, const void *b) {
    const struct dl_trace_sample *x = a, *y = b;
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
static int64_t usual_count(const struct dl_trace_sample *s, int count) {
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

enum dl_code dl_trace_sum(struct dl_trace_sample *s, int count, int64_t steps,
                          struct dl_arena *arena, struct dl_trace_times *out, struct dl_err *err) {
    struct order *list = dl_arena_alloc(arena, (size_t)count, sizeof *list);
    struct dl_layer_time *layers = dl_arena_alloc(arena, (size_t)count, sizeof *layers);
    int made = 0;
    if (list == NULL || layers == NULL) return no_memory(err);
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
            const char *name = dl_arena_strndup(arena, s[i].layer, s[i].length);
            if (name == NULL) return no_memory(err);
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

enum dl_code dl_trace_csv(const char *name, const char *text, size_t length, struct dl_arena *arena,
                          struct dl_trace_times *out, struct dl_err *err) {
    struct dl_csv csv;
    DL_TRY(dl_csv_parse(name, text, length, arena, &csv, err));
    const int layer = dl_csv_column(&csv, "layer"), pass = dl_csv_column(&csv, "pass"),
              time = dl_csv_column(&csv, "time_s");
    struct dl_trace_sample *samples = dl_arena_alloc(arena, (size_t)csv.row_count, sizeof *samples);
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
    DL_TRY(dl_trace_sum(samples, count, 1, arena, out, err));
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
        if (table == NULL) return NULL;
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
