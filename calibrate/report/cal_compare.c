/* cal_compare.c - see the header. */
#include "calibrate/report/cal_compare.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/statistics/stats.h"

/* Calibrations of one quiet machine agree within about 3 % (judgement): less is no change. */
static const double CHANGED_FRAC = 0.03;

static const struct dl_column columns[] = {
    {"what", "what", "", DL_COLUMN_STRING, 0, 0},
    {"before", "before", "", DL_COLUMN_STRING, 0, 0},
    {"now", "now", "", DL_COLUMN_STRING, 0, 0},
    {"change_pct", "change", "%", DL_COLUMN_NUMBER, 0, 1},
    {"changed", "changed", "", DL_COLUMN_BOOL, 0, 0},
    {"samples", "samples", "", DL_COLUMN_INTEGER, 0, 0},
};

struct comparison {
    struct dl_table table;
    struct dl_arena *arena;
    int changed;
};

/* Adds a row; the caller may set its number of samples. */
static union dl_cell *add(struct comparison *c, const char *what, const char *before,
                          const char *now, double change_frac, bool changed) {
    union dl_cell *cells = dl_table_row(&c->table);
    cells[0].string = what;
    cells[1].string = before;
    cells[2].string = now;
    cells[3].number = 100 * change_frac;
    cells[4].boolean = changed;
    cells[5].integer = DL_ABSENT;
    c->changed += changed;
    return cells;
}

static void add_text(struct comparison *c, const char *what, const char *before, const char *now) {
    if (before == NULL && now == NULL) return;
    add(c, what, before, now, NAN, before == NULL || now == NULL || strcmp(before, now) != 0);
}

static const char *quantity(struct comparison *c, double value, enum dl_unit unit) {
    char text[64];
    if (!dl_known(value)) return NULL;
    dl_units_format(value, unit, text, sizeof text);
    return dl_arena_strdup(c->arena, text);
}

static void add_number(struct comparison *c, const char *what, double before, double now,
                       enum dl_unit unit) {
    if (!dl_known(before) && !dl_known(now)) return;
    const double change = now / before - 1;
    add(c, what, quantity(c, before, unit), quantity(c, now, unit), change,
        !dl_known(before) || !dl_known(now) || fabs(change) > CHANGED_FRAC);
}

static const char *fact(const struct dl_system *s, const char *key) {
    for (int i = 0; i < s->calibration.measurement_count; i++) {
        if (strcmp(s->calibration.measurement[i].key, key) == 0)
            return s->calibration.measurement[i].text;
    }
    return NULL;
}

/* Facts of the calibration, not of the machine. */
static bool of_the_run(const char *key) {
    static const char *const names[] = {"started", "mode",        "budget_s",   "seconds",
                                        "resumed", "load_before", "load_after", "implementations",
                                        "pairs",   NULL};
    for (int i = 0; names[i] != NULL; i++) {
        if (strcmp(key, names[i]) == 0) return true;
    }
    return strncmp(key, "fit_", 4) == 0;
}

static void add_facts(struct comparison *c, const struct dl_system *before,
                      const struct dl_system *now) {
    add_text(c, "host", before->calibration.measured_on, now->calibration.measured_on);
    for (int i = 0; i < now->calibration.measurement_count; i++) {
        const char *key = now->calibration.measurement[i].key;
        if (!of_the_run(key))
            add_text(c, key, fact(before, key), now->calibration.measurement[i].text);
    }
    for (int i = 0; i < before->calibration.measurement_count; i++) {
        const char *key = before->calibration.measurement[i].key;
        if (!of_the_run(key) && fact(now, key) == NULL)
            add_text(c, key, before->calibration.measurement[i].text, NULL);
    }
}

static bool same(const char *a, const char *b) {
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static const struct dl_raw_sample *twin(const struct dl_system *other,
                                        const struct dl_raw_sample *s) {
    for (int i = 0; i < other->calibration.sample_count; i++) {
        const struct dl_raw_sample *o = &other->calibration.samples[i];
        if (same(o->probe, s->probe) && same(o->shape, s->shape) && same(o->pass, s->pass))
            return o;
    }
    return NULL;
}

/* One row for a probe and pass: the median of now / before. It has changed when the intervals of
 * most samples do not overlap. */
static void add_probe(struct comparison *c, const struct dl_system *before,
                      const struct dl_system *now, int first) {
    const struct dl_raw_sample *like = &now->calibration.samples[first];
    const size_t room = (size_t)now->calibration.sample_count;
    double *ratios = dl_arena_alloc(c->arena, 2 * room, sizeof *ratios);
    size_t count = 0, apart = 0;
    for (int i = first; i < now->calibration.sample_count; i++) {
        const struct dl_raw_sample *s = &now->calibration.samples[i], *old;
        if (!same(s->probe, like->probe) || !same(s->pass, like->pass) ||
            (old = twin(before, s)) == NULL)
            continue;
        ratios[count++] = s->median_s / old->median_s;
        apart += s->low_s > old->high_s || s->high_s < old->low_s;
    }
    if (count == 0) return;
    const double ratio = dl_median(ratios, count, ratios + room);
    add(c,
        dl_arena_printf(c->arena, "time of %s %s", like->probe,
                        like->pass != NULL ? like->pass : ""),
        NULL, NULL, ratio - 1, 2 * apart > count && fabs(ratio - 1) > CHANGED_FRAC)[5]
        .integer = (int64_t)count;
}

static void add_samples(struct comparison *c, const struct dl_system *before,
                        const struct dl_system *now) {
    for (int i = 0; i < now->calibration.sample_count; i++) {
        bool first = true;
        for (int j = 0; j < i && first; j++)
            first = !same(now->calibration.samples[j].probe, now->calibration.samples[i].probe) ||
                    !same(now->calibration.samples[j].pass, now->calibration.samples[i].pass);
        if (first) add_probe(c, before, now, i);
    }
}

static void add_links(struct comparison *c, const char *name, const struct dl_link *before,
                      bool had, const struct dl_link *now, bool has) {
    if (!had && !has) return;
    add_text(c, dl_arena_printf(c->arena, "links.%s kind", name), had ? before->kind : NULL,
             has ? now->kind : NULL);
    add_number(c, dl_arena_printf(c->arena, "links.%s bandwidth", name),
               had ? before->bandwidth_bytes_per_s : NAN, has ? now->bandwidth_bytes_per_s : NAN,
               DL_UNIT_BYTE_PER_S);
    add_number(c, dl_arena_printf(c->arena, "links.%s latency", name),
               had ? before->latency_s : NAN, has ? now->latency_s : NAN, DL_UNIT_S);
}

static double rate(const struct dl_system *s, enum dl_precision precision) {
    double best = NAN;
    for (int i = 0; s->has_profile && i < s->profile.rate_count; i++) {
        if (s->profile.rates[i].precision == (int)precision)
            best = fmax(best, s->profile.rates[i].peak_flop_per_s);
    }
    return best;
}

const char *dl_cal_compare(const struct dl_system *before, const struct dl_system *now,
                           enum dl_format format, struct dl_arena *arena, int *changed_count) {
    struct comparison c = {.arena = arena};
    dl_table_init(&c.table, arena, columns, sizeof columns / sizeof *columns);
    add_facts(&c, before, now);
    for (int p = 0; dl_precision_names[p] != NULL; p++)
        add_number(&c, dl_arena_printf(arena, "rate %s", dl_precision_names[p]),
                   rate(before, (enum dl_precision)p), rate(now, (enum dl_precision)p),
                   DL_UNIT_FLOP_PER_S);
    add_number(&c, "memory bandwidth",
               before->has_profile ? before->profile.memory_bandwidth_bytes_per_s : NAN,
               now->has_profile ? now->profile.memory_bandwidth_bytes_per_s : NAN,
               DL_UNIT_BYTE_PER_S);
    add_links(&c, "intra", &before->intra, before->has_intra, &now->intra, now->has_intra);
    add_links(&c, "inter", &before->inter, before->has_inter, &now->inter, now->has_inter);
    add_number(&c, "storage write", before->has_storage ? before->storage.write_bytes_per_s : NAN,
               now->has_storage ? now->storage.write_bytes_per_s : NAN, DL_UNIT_BYTE_PER_S);
    add_number(&c, "storage read", before->has_storage ? before->storage.read_bytes_per_s : NAN,
               now->has_storage ? now->storage.read_bytes_per_s : NAN, DL_UNIT_BYTE_PER_S);
    add_samples(&c, before, now);
    *changed_count = c.changed;
    const char *rows = dl_table_render(&c.table, format);
    if (format != DL_FORMAT_TEXT) return rows;
    return dl_arena_printf(arena, "%s%d of these changed since %s\n", rows, c.changed,
                           before->calibration.measured_at != NULL ? before->calibration.measured_at
                                                                   : "then");
}
