/* cal_report.c - see the header. */
#include "calibrate/report/cal_report.h"

#include <stdio.h>
#include <string.h>

#include "model/network/collective.h"

static const struct dl_column probe_columns[] = {
    {"name", "probe", "", DL_COLUMN_STRING, 0, 0},
    {"available", "available", "", DL_COLUMN_BOOL, 0, 0},
    {"summary", "measures", "", DL_COLUMN_STRING, 0, 0},
    {"reason", "why not", "", DL_COLUMN_STRING, 0, 0},
};
static const struct dl_column plan_columns[] = {
    {"probe", "probe", "", DL_COLUMN_STRING, 0, 0},
    {"pass", "pass", "", DL_COLUMN_STRING, 0, 0},
    {"shape", "shape", "", DL_COLUMN_STRING, 0, 0},
    {"share_s", "at most", "s", DL_COLUMN_NUMBER, 0, 2},
    {"state", "state", "", DL_COLUMN_STRING, 0, 0},
};
static const struct dl_column sample_columns[] = {
    {"probe", "probe", "", DL_COLUMN_STRING, 0, 0},
    {"pass", "pass", "", DL_COLUMN_STRING, 0, 0},
    {"shape", "shape", "", DL_COLUMN_STRING, 0, 0},
    {"precision", "precision", "", DL_COLUMN_STRING, 0, 0},
    {"implementation", "by", "", DL_COLUMN_STRING, 0, 0},
    {"median_s", "median", "ms", DL_COLUMN_NUMBER, 1e-3, 0},
    {"low_s", "low", "ms", DL_COLUMN_NUMBER, 1e-3, 0},
    {"high_s", "high", "ms", DL_COLUMN_NUMBER, 1e-3, 0},
    {"repeats", "repeats", "", DL_COLUMN_INTEGER, 0, 0},
    {"outliers", "outliers", "", DL_COLUMN_INTEGER, 0, 0},
    {"preempted", "preempted", "", DL_COLUMN_INTEGER, 0, 0},
    {"work", "work", "", DL_COLUMN_NUMBER, 0, 0},
};

const char *dl_cal_probe_list(const struct dl_cal_tools *tools, enum dl_format format,
                              struct dl_arena *arena) {
    struct dl_table table;
    dl_table_init(&table, arena, probe_columns, 4);
    for (size_t i = 0; i < DL_CAL_PROBES_MAX && tools->probes[i].name != NULL; i++) {
        union dl_cell *cells = dl_table_row(&table);
        if (cells == NULL) return NULL;
        cells[0].string = tools->probes[i].name;
        cells[1].boolean = tools->probes[i].unavailable == NULL;
        cells[2].string = dl_cal_probes[i].summary;
        cells[3].string = tools->probes[i].unavailable;
    }
    return dl_table_render(&table, format);
}

const char *dl_cal_plan_text(const struct dl_cal_plan *plan, const struct dl_cal_tools *tools,
                             const struct dl_cal_journal *journal, enum dl_format format,
                             struct dl_arena *arena) {
    struct dl_table table;
    size_t left = 0;
    double left_s = 0, all_s = 0;
    dl_table_init(&table, arena, plan_columns, 5);
    for (size_t i = 0; i < plan->count; i++) {
        const struct dl_cal_point *p = &plan->points[i];
        union dl_cell *cells = dl_table_row(&table);
        if (cells == NULL) return NULL;
        const char *state = dl_cal_unavailable(tools, p) != NULL ? "cannot run here"
                            : dl_cal_journal_has(journal, p)     ? "done"
                                                                 : "to do";
        cells[0].string = p->probe;
        cells[1].string = p->pass;
        cells[2].string = p->shape;
        cells[3].number = p->share_s;
        cells[4].string = state;
        all_s += p->share_s;
        if (strcmp(state, "to do") != 0) continue;
        left++;
        left_s += p->share_s;
    }
    const char *rows = dl_table_render(&table, format);
    if (rows == NULL || format != DL_FORMAT_TEXT) return rows;
    return dl_arena_printf(
        arena,
        "%s%zu of %zu samples to measure, expected time at most %.0f s; nothing was measured\n",
        rows, left, plan->count, all_s > 0 ? plan->expected_s * left_s / all_s : 0);
}

const char *dl_cal_samples_csv(const struct dl_system *profile, struct dl_arena *arena) {
    struct dl_table table;
    dl_table_init(&table, arena, sample_columns, sizeof sample_columns / sizeof *sample_columns);
    for (int i = 0; i < profile->calibration.sample_count; i++) {
        const struct dl_raw_sample *s = &profile->calibration.samples[i];
        union dl_cell *cells = dl_table_row(&table);
        if (cells == NULL) return NULL;
        cells[0].string = s->probe;
        cells[1].string = s->pass;
        cells[2].string = s->shape;
        cells[3].string = s->precision;
        cells[4].string = s->implementation;
        cells[5].number = s->median_s;
        cells[6].number = s->low_s;
        cells[7].number = s->high_s;
        cells[8].integer = s->repeats;
        cells[9].integer = s->outliers;
        cells[10].integer = s->preempted;
        cells[11].number = dl_cal_work(s);
    }
    return dl_table_csv(&table);
}

static const char *quantity(double value, enum dl_unit unit, struct dl_arena *arena) {
    char text[64];
    dl_units_format(value, unit, text, sizeof text);
    return dl_arena_strdup(arena, text);
}

static const char *link_text(const struct dl_link *link, bool present, struct dl_arena *arena) {
    if (!present) return "not measured";
    return dl_arena_printf(arena, "%s, latency %s, fit of %d pieces",
                           quantity(link->bandwidth_bytes_per_s, DL_UNIT_BYTE_PER_S, arena),
                           quantity(link->latency_s, DL_UNIT_S, arena), link->piece_count);
}

static const char *collective_text(const struct dl_system *p, struct dl_arena *arena) {
    if (p->collective_count == 0) return "not measured";
    const struct dl_coll_measured *c = &p->collectives[0];
    /* on GPUs that of NCCL over the most ranks, else the first */
    for (int i = 1; i < p->collective_count; i++) {
        const struct dl_coll_measured *other = &p->collectives[i];
        const char *nccl = dl_library_names[DL_LIB_NCCL];
        if (strcmp(other->library, nccl) == 0 && strcmp(other->operation, "all_reduce") == 0 &&
            (strcmp(c->library, nccl) != 0 || other->ranks > c->ranks))
            c = other;
    }
    const struct dl_coll_sample *last = &c->samples[c->sample_count - 1];
    return dl_arena_printf(arena, "%s for %s, %s for %s (%lld ranks)",
                           quantity(c->samples[0].time_s, DL_UNIT_S, arena),
                           quantity(c->samples[0].bytes, DL_UNIT_BYTE, arena),
                           quantity(last->time_s, DL_UNIT_S, arena),
                           quantity(last->bytes, DL_UNIT_BYTE, arena), (long long)c->ranks);
}

/* Samples in which more than a tenth of the blocks were preempted or outliers: a sign of other
 * work. */
static int disturbed(const struct dl_system *p) {
    int count = 0;
    for (int i = 0; i < p->calibration.sample_count; i++) {
        const struct dl_raw_sample *s = &p->calibration.samples[i];
        const int64_t lost = s->preempted == DL_ABSENT ? 0 : s->preempted;
        count += (lost + s->outliers) * 10 > s->repeats + lost;
    }
    return count;
}

const char *dl_cal_summary(const struct dl_system *profile, const char *path, double elapsed_s,
                           struct dl_arena *arena) {
    const struct dl_device *d = &profile->profile;
    const bool gpu = d->kind == DL_DEVICE_GPU;
    const char *fits = "";
    for (int i = 0; i < profile->calibration.measurement_count; i++) {
        const struct dl_map_entry *m = &profile->calibration.measurement[i];
        if (strncmp(m->key, "fit_conv", 8) != 0 && strncmp(m->key, "fit_gemm", 8) != 0) continue;
        fits = dl_arena_printf(arena, "%s  %-20s %s\n", fits, m->key + 4, m->text);
    }
    return dl_arena_printf(
        arena,
        "%s\n"
        "  %-20s %s (best GEMM, %s, %lld %s)\n  %-20s %s\n  %-20s %s\n  %-20s %s\n  %-20s %s\n  "
        "%-20s write %s, read "
        "%s\n"
        "%s%d samples in %.0f s; %d of them with more than a tenth of the repeats preempted or "
        "outliers\nprofile: %s\n",
        profile->summary, "rate", quantity(d->rates[0].peak_flop_per_s, DL_UNIT_FLOP_PER_S, arena),
        dl_precision_names[d->rates[0].precision], (long long)d->unit_count,
        gpu                  ? "multiprocessors"
        : d->unit_count == 1 ? "core"
                             : "cores",
        "memory bandwidth",
        quantity(d->memory_bandwidth_bytes_per_s *
                     (dl_known(d->memory_efficiency) ? d->memory_efficiency : 1),
                 DL_UNIT_BYTE_PER_S, arena),
        gpu ? "GPU to GPU" : "MPI, shared memory",
        link_text(&profile->intra, profile->has_intra, arena),
        gpu                      ? "between nodes"
        : profile->inter.assumed ? "MPI, TCP loopback"
                                 : "MPI, network",
        link_text(&profile->inter, profile->has_inter && profile->inter.piece_count > 0, arena),
        gpu ? "all-reduce" : "MPI all-reduce", collective_text(profile, arena), "files",
        quantity(profile->storage.write_bytes_per_s, DL_UNIT_BYTE_PER_S, arena),
        quantity(profile->storage.read_bytes_per_s, DL_UNIT_BYTE_PER_S, arena), fits,
        profile->calibration.sample_count, elapsed_s, disturbed(profile), path);
}
