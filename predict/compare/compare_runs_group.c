/* compare_runs_group.c - runs that differ only in the number of devices, as evidence for a run
 * that is slower than predicted. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/engine/correct.h"
#include "model/statistics/stats.h"
#include "model/engine/replica.h"
#include "predict/compare/compare_cause.h"
#include "predict/compare/compare_runs.h"

/* Equal within 1 %: batches are printed with rounding. */
static bool same_batch(double a, double b) {
    return a > 0 && b > 0 && fabs(a - b) <= 0.01 * fmax(a, b);
}

static const enum dl_run_column same[] = {
    DL_RUN_SOURCE, DL_RUN_SYSTEM,    DL_RUN_FRAMEWORK, DL_RUN_STRATEGY, DL_RUN_WORKLOAD,
    DL_RUN_INPUT,  DL_RUN_PRECISION, DL_RUN_OPTIMIZER, DL_RUN_METRIC,   DL_RUN_DATA};
enum { SAME = sizeof same / sizeof same[0] };

static uint64_t hash_of(const void *context, int row) {
    const struct dl_run_rows *r = context;
    uint64_t hash = DL_HASH_START;
    for (int i = 0; i < SAME; i++) hash = dl_hash_text(hash, dl_run_cell(r, row, same[i]));
    return hash;
}

/* Where no backend is given, as for many runs on one device, a run has its framework's library. */
static bool same_backend(const struct dl_run_rows *r, int a, int b) {
    const struct dl_run_row *x = &r->rows[a], *y = &r->rows[b];
    if (x->why != NULL || y->why != NULL) return x->why != NULL && y->why != NULL;
    return dl_replica_library(x->system, x->framework, &x->plan) ==
               dl_replica_library(y->system, y->framework, &y->plan) &&
           strcmp(x->plan.parameter_servers.variable_placement,
                  y->plan.parameter_servers.variable_placement) == 0;
}

/* The same run and release but for the number of devices and the batch. */
static bool alike(const void *context, int a, int b) {
    const struct dl_run_rows *r = context;
    for (int i = 0; i < SAME; i++) {
        if (strcmp(dl_run_cell(r, a, same[i]), dl_run_cell(r, b, same[i])) != 0) return false;
    }
    return r->rows[a].release == r->rows[b].release && same_backend(r, a, b) &&
           dl_run_plan_same(r, a, b);
}

/* Tables of transformers give the global batch alone. */
static double samples_per_device(const struct dl_run_row *run) {
    return run->plan.batch_per_device_samples > 0
               ? run->plan.batch_per_device_samples
               : run->global_batch_samples / (double)dl_run_devices(run);
}

/* More devices either get the batch that each had (weak scaling) or share the same global batch
 * (`whole`: strong scaling). */
static double batch_of(const struct dl_run_row *run, bool whole) {
    const double samples = whole ? run->global_batch_samples : samples_per_device(run);
    return samples > 0 ? samples : 0;
}

static int by_kind_and_batch(const void *a, const void *b) {
    const struct dl_run_batch *x = a, *y = b;
    if (x->kind != y->kind) return x->kind < y->kind ? -1 : 1;
    if (x->samples != y->samples) return x->samples < y->samples ? -1 : 1;
    return x->row - y->row;
}

static int by_row(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

/* Rows that are alike `row` and have the same batch, in the order of the table: r->near, their
 * count. They are neighbours in by_batch, so that a table of many batches is no square. */
static int same_group(const struct dl_run_rows *r, bool whole, int row) {
    const struct dl_run_batch *order = r->by_batch[whole];
    const double samples = batch_of(&r->rows[row], whole);
    const struct dl_run_batch least = {.kind = r->alike.first[row], .samples = 0.98 * samples};
    int first = 0, end = r->csv->row_count, count = 0;
    if (!(samples > 0)) return 0;
    while (first < end) {
        const int middle = first + (end - first) / 2;
        if (by_kind_and_batch(&order[middle], &least) < 0)
            first = middle + 1;
        else
            end = middle;
    }
    for (int i = first; i < r->csv->row_count; i++) {
        if (order[i].kind != least.kind || order[i].samples > 1.02 * samples) break;
        if (same_batch(order[i].samples, samples)) r->near[count++] = order[i].row;
    }
    qsort(r->near, (size_t)count, sizeof *r->near, by_row);
    return count;
}

static void order_by_batch(struct dl_run_rows *r) {
    const size_t count = (size_t)r->csv->row_count;
    r->near = dl_arena_alloc(r->arena, count, sizeof *r->near);
    for (int whole = 0; whole < 2; whole++) {
        struct dl_run_batch *order = dl_arena_alloc(r->arena, count, sizeof *order);
        for (int row = 0; row < r->csv->row_count; row++)
            order[row] = (struct dl_run_batch){
                .kind = r->alike.first[row], .samples = batch_of(&r->rows[row], whole), .row = row};
        qsort(order, count, sizeof *order, by_kind_and_batch);
        r->by_batch[whole] = order;
    }
}

/* The median of repeats: one disturbed run must not move all that it corrects. Those that name
 * their backend count before those that leave it open. */
static struct dl_run_group group_with(const struct dl_run_rows *r, bool whole, int row,
                                      double *room) {
    const struct dl_run_row *all = r->rows;
    struct dl_run_group group = {.whole = whole, .anchor = -1};
    double *measured = room, *scratch = room + r->csv->row_count;
    int64_t fewest = INT64_MAX, most = 0;
    size_t repeats = 0;
    bool named = false;
    const int count = same_group(r, whole, row);
    for (int k = 0; k < count; k++) {
        const int i = r->near[k];
        const int64_t devices = dl_run_devices(&all[i]);
        if (all[i].why != NULL) continue;
        const bool names = dl_run_cell(r, i, DL_RUN_BACKEND)[0] != 0;
        if (devices > most) most = devices;
        if (devices > fewest || (devices == fewest && named && !names)) continue;
        if (devices < fewest || (names && !named)) group.anchor = i, repeats = 0;
        fewest = devices, named = names;
        measured[repeats++] = all[i].measured;
    }
    group.measured = repeats > 0 ? dl_median(measured, repeats, scratch) : 0;
    if (most <= fewest) group.anchor = -1;
    return group;
}

/* Rows that are alike and have the same batches are in the same group. */
static uint64_t batch_hash(const void *context, int row) {
    const struct dl_run_rows *r = context;
    const struct dl_run_row *run = &r->rows[row];
    const double batches[] = {samples_per_device(run), run->global_batch_samples};
    const int kind = r->alike.first[row];
    return dl_hash_bytes(dl_hash_bytes(DL_HASH_START, &kind, sizeof kind), batches, sizeof batches);
}

static bool batch_equal(const void *context, int a, int b) {
    const struct dl_run_rows *r = context;
    const struct dl_run_row *x = &r->rows[a], *y = &r->rows[b];
    return r->alike.first[a] == r->alike.first[b] &&
           samples_per_device(x) == samples_per_device(y) &&
           x->global_batch_samples == y->global_batch_samples;
}

void dl_run_groups_make(struct dl_run_rows *r) {
    const struct dl_class_keys kinds = {hash_of, alike, r}, batches = {batch_hash, batch_equal, r};
    const int count = r->csv->row_count;
    r->alike = dl_classes_make(&kinds, count, r->arena);
    r->batches = dl_classes_make(&batches, count, r->arena);
    order_by_batch(r);
    r->groups = dl_arena_alloc(r->arena, (size_t)count, sizeof *r->groups);
    double *room = dl_arena_alloc(r->arena, 2 * (size_t)count, sizeof *room);
    for (int row = 0; row < count; row++) {
        if (r->batches.first[row] != row) continue;
        r->groups[row] = group_with(r, false, row, room);
        if (r->groups[row].anchor < 0) r->groups[row] = group_with(r, true, row, room);
    }
}

struct dl_run_group dl_run_group_of(const struct dl_run_rows *r, int row) {
    return r->groups[r->batches.first[row]];
}

/* Measured / predicted iteration of a row with that measured value; NAN when it was not predicted.
 */
static double ratio_with(const struct dl_run_row *run, const struct dl_compared *row,
                         double measured) {
    if (row->skipped || !dl_known(row->predicted)) return NAN;
    return run->throughput ? row->predicted / measured : measured / row->predicted;
}

static double ratio_of(const struct dl_run_row *run, const struct dl_compared *row) {
    return ratio_with(run, row, row->measured);
}

const char *dl_run_benchmark(const struct dl_run_row *run) {
    switch (dl_replica_library(run->system, run->framework, &run->plan)) {
    case DL_LIB_NCCL: return "nccl-tests (on AMD rccl-tests)";
    case DL_LIB_MPI: return "the OSU micro-benchmarks";
    default: return NULL;
    }
}

static void add_other(struct dl_shortfall *s, const struct dl_run_evidence *e, int row) {
    if (row < 0) return;
    s->others[s->other_count++] =
        (struct dl_other_run){.prediction = &e->kept[row],
                              .plan = &e->runs.rows[row].plan,
                              .ratio = ratio_of(&e->runs.rows[row], &e->rows[row])};
}

/* The evidence for run `row` from the runs of its group with fewer devices. */
static struct dl_shortfall shortfall_of(const struct dl_run_evidence *e, int row) {
    const struct dl_run_rows *r = &e->runs;
    const struct dl_run_row *all = r->rows;
    const struct dl_run_group group = dl_run_group_of(r, row);
    const int64_t devices = dl_run_devices(&all[row]);
    struct dl_shortfall s = {.plan = &all[row].plan, .base_ratio = NAN};
    int base = -1, node = -1, fewer = -1;
    const int count = same_group(r, group.whole, row);
    for (int i = 0; i < count; i++) {
        const int k = r->near[i];
        const int64_t n = dl_run_devices(&all[k]);
        if (!dl_known(ratio_of(&all[k], &e->rows[k])) || n >= devices) continue;
        if (base < 0 || n < dl_run_devices(&all[base])) base = k;
        if (all[k].plan.nodes == 1 && all[row].plan.nodes > 1 &&
            (node < 0 || n > dl_run_devices(&all[node])))
            node = k;
        if (fewer < 0 || n > dl_run_devices(&all[fewer])) fewer = k;
    }
    const bool anchored = e->anchored && group.anchor >= 0;
    if (anchored) {
        s.base_ratio = 1;
        s.base_devices = dl_run_devices(&all[group.anchor]);
    } else if (base >= 0) {
        s.base_ratio = ratio_of(&all[base], &e->rows[base]);
        s.base_devices = dl_run_devices(&all[base]);
        s.base = &e->kept[base];
    }
    if (anchored || node != base) add_other(&s, e, node);
    if (fewer != node && (anchored || fewer != base)) add_other(&s, e, fewer);
    return s;
}

/* Runs of one group on as many devices and nodes have the same evidence. */
static uint64_t place_hash(const void *context, int row) {
    const struct dl_run_rows *r = context;
    const int64_t place[] = {r->batches.first[row], r->rows[row].plan.nodes,
                             r->rows[row].plan.devices_per_node};
    return dl_hash_bytes(DL_HASH_START, place, sizeof place);
}

static bool place_equal(const void *context, int a, int b) {
    const struct dl_run_rows *r = context;
    return r->batches.first[a] == r->batches.first[b] &&
           r->rows[a].plan.nodes == r->rows[b].plan.nodes &&
           r->rows[a].plan.devices_per_node == r->rows[b].plan.devices_per_node;
}

void dl_run_evidence_make(struct dl_run_evidence *e) {
    const int count = e->runs.csv->row_count;
    const struct dl_class_keys keys = {place_hash, place_equal, &e->runs};
    e->found = dl_arena_alloc(e->runs.arena, (size_t)count, sizeof *e->found);
    e->places = dl_classes_make(&keys, count, e->runs.arena);
}

bool dl_run_is_slow(const struct dl_run_evidence *e, int row, double measured) {
    const double ratio = ratio_with(&e->runs.rows[row], &e->rows[row], measured);
    return dl_known(ratio) &&
           dl_prediction_is_slow(&e->kept[row], ratio * e->kept[row].iteration_s);
}

const struct dl_causes *dl_run_causes(const struct dl_run_evidence *e, int row, double measured,
                                      struct dl_arena *arena) {
    const struct dl_run_row *run = &e->runs.rows[row];
    struct dl_shortfall *known = &e->found[e->places.first[row]];
    if (known->plan == NULL) *known = shortfall_of(e, row);
    struct dl_shortfall s = *known;
    s.plan = &run->plan;
    s.prediction = &e->kept[row];
    s.measured_s = ratio_with(run, &e->rows[row], measured) * e->kept[row].iteration_s;
    s.real_input = !run->plan.input.synthetic;
    s.benchmark = dl_run_benchmark(run);
    s.host_remark = run->host_remark;
    return dl_compare_causes(&s, arena);
}
