/* cal_report.c - see the header. */
#include "calibrate/report/cal_report.h"

#include <stdio.h>
#include <string.h>

#include "model/core/columns.h"
#include "model/network/collective.h"

struct probe_facts {
    const char *name, *summary, *reason;
    bool available;
};
struct point_facts {
    const char *probe, *pass, *shape, *state;
    double share_s;
};
struct sample_facts {
    struct dl_raw_sample s;
    double work;
};
#define PROBE(member, key, heading)                                                                \
    DL_SHOWN(struct probe_facts, member, key, heading, "", 0, 0, 0, NULL)
#define POINT(member, key, heading, unit, digits)                                                  \
    DL_SHOWN(struct point_facts, member, key, heading, unit, 0, digits, 0, NULL)
#define SAMPLE(member, key, heading, unit, scale)                                                  \
    DL_SHOWN(struct sample_facts, member, key, heading, unit, scale, 0, 0, NULL)
static const struct dl_list_column probe_columns[] = {
    PROBE(name, "name", "probe"), PROBE(available, "available", "available"),
    PROBE(summary, "summary", "measures"), PROBE(reason, "reason", "why not")};
static const struct dl_list_column plan_columns[] = {
    POINT(probe, "probe", "probe", "", 0), POINT(pass, "pass", "pass", "", 0),
    POINT(shape, "shape", "shape", "", 0), POINT(share_s, "share_s", "at most", "s", 2),
    POINT(state, "state", "state", "", 0)};
static const struct dl_list_column sample_columns[] = {
    SAMPLE(s.probe, "probe", "probe", "", 0),
    SAMPLE(s.pass, "pass", "pass", "", 0),
    SAMPLE(s.shape, "shape", "shape", "", 0),
    SAMPLE(s.precision, "precision", "precision", "", 0),
    SAMPLE(s.implementation, "implementation", "by", "", 0),
    SAMPLE(s.median_s, "median_s", "median", "ms", 1e-3),
    SAMPLE(s.low_s, "low_s", "low", "ms", 1e-3),
    SAMPLE(s.high_s, "high_s", "high", "ms", 1e-3),
    SAMPLE(s.repeats, "repeats", "repeats", "", 0),
    SAMPLE(s.outliers, "outliers", "outliers", "", 0),
    SAMPLE(s.preempted, "preempted", "preempted", "", 0),
    SAMPLE(work, "work", "work", "", 0),
};

const char *dl_cal_probe_list(const struct dl_cal_tools *tools, enum dl_format format,
                              struct dl_arena *arena) {
    struct dl_table table;
    dl_list_table(&table, arena, DL_LIST(probe_columns), 0);
    for (size_t i = 0; i < DL_CAL_PROBES_MAX && tools->probes[i].name != NULL; i++) {
        const struct probe_facts facts = {tools->probes[i].name, dl_cal_probes[i].summary,
                                          tools->probes[i].unavailable,
                                          tools->probes[i].unavailable == NULL};
        dl_list_add(&table, probe_columns, &facts);
    }
    return dl_table_render(&table, format);
}

const char *dl_cal_plan_text(const struct dl_cal_plan *plan, const struct dl_cal_tools *tools,
                             const struct dl_cal_journal *journal, enum dl_format format,
                             struct dl_arena *arena) {
    struct dl_table table;
    size_t left = 0;
    double left_s = 0, all_s = 0;
    dl_list_table(&table, arena, DL_LIST(plan_columns), 0);
    for (size_t i = 0; i < plan->count; i++) {
        const struct dl_cal_point *p = &plan->points[i];
        const bool runs = dl_cal_unavailable(tools, p) == NULL,
                   done = dl_cal_journal_has(journal, p);
        const struct point_facts facts = {p->probe, p->pass, p->shape,
                                          !runs  ? "cannot run here"
                                          : done ? "done"
                                                 : "to do",
                                          p->share_s};
        dl_list_add(&table, plan_columns, &facts);
        all_s += p->share_s;
        if (!runs || done) continue;
        left++;
        left_s += p->share_s;
    }
    const char *rows = dl_table_render(&table, format);
    if (format != DL_FORMAT_TEXT) return rows;
    return dl_arena_printf(
        arena,
        "%s%zu of %zu samples to measure, expected time at most %.0f s; nothing was measured\n",
        rows, left, plan->count, all_s > 0 ? plan->expected_s * left_s / all_s : 0);
}

const char *dl_cal_samples_csv(const struct dl_system *profile, struct dl_arena *arena) {
    struct dl_table table;
    dl_list_table(&table, arena, DL_LIST(sample_columns), 0);
    for (int i = 0; i < profile->calibration.sample_count; i++) {
        const struct dl_raw_sample *s = &profile->calibration.samples[i];
        const struct sample_facts facts = {*s, dl_cal_work(s)};
        dl_list_add(&table, sample_columns, &facts);
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
