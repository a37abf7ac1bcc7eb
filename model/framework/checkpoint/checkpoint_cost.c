/* checkpoint_cost.c - see the header. */
#include "model/framework/checkpoint/checkpoint_cost.h"

#include <math.h>
#include <string.h>

enum probe { PROBE_ONE, PROBE_MANY, PROBE_MEDIUM, PROBE_LARGE, PROBE_ADAM, PROBES };
static const char *const probe_names[PROBES] = {"probe-one", "probe-many", "probe-medium",
                                                "probe-large", "probe-adam"};

/* One row of the probe; time_s NAN: not measured. */
struct measured {
    double time_s;   /* of the write, or what training waits for */
    double staged_s; /* part of it: the copy in memory of an asynchronous format */
    double layers, tensor_count, bytes;
};
/* By rank count: 1, 2. */
struct probes {
    struct measured rows[2][PROBES];
    double raw_s_per_byte;
};

/* Columns of the table that are read. */
struct places {
    int platform, format, state, ranks, layers, tensor_count, elements, bytes, write, blocking;
};

static enum dl_code find_places(const struct dl_csv *csv, struct places *p, struct dl_err *err) {
    const char *const names[] = {"platform", "format",   "state", "ranks",   "layers",
                                 "tensors",  "elements", "bytes", "write_s", "blocking_s"};
    int *const places[] = {&p->platform,     &p->format,   &p->state, &p->ranks, &p->layers,
                           &p->tensor_count, &p->elements, &p->bytes, &p->write, &p->blocking};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        *places[i] = dl_csv_column(csv, names[i]);
        if (*places[i] < 0)
            return dl_fail_at(err, csv->name, 1, 1, names[i],
                              "expected this column of a table of checkpoints");
    }
    return DL_OK;
}

/* The requested part of a row's time: all of it, with a separate copy in memory where there is one,
 * or the part that training waits for. */
enum asked { ASKED_WRITE, ASKED_WRITE_STAGED, ASKED_BLOCKING };

static enum dl_code read_row(const struct dl_csv *csv, const struct places *p, int row,
                             enum asked asked, struct measured *out, struct dl_err *err) {
    const int time = asked == ASKED_BLOCKING ? p->blocking : p->write;
    double elements;
    DL_TRY(dl_csv_number(csv, row, time, &out->time_s, err));
    out->staged_s = asked == ASKED_BLOCKING ? out->time_s : 0;
    if (asked == ASKED_WRITE_STAGED)
        DL_TRY(dl_csv_number(csv, row, p->blocking, &out->staged_s, err));
    DL_TRY(dl_csv_number(csv, row, p->layers, &out->layers, err));
    DL_TRY(dl_csv_number(csv, row, p->tensor_count, &out->tensor_count, err));
    DL_TRY(dl_csv_number(csv, row, p->elements, &elements, err));
    if (!(out->time_s > 0) || !(out->tensor_count > 0) || !(elements > 0) || !(out->layers >= 0))
        return dl_csv_fault(csv, row, time, err, "expected a time, tensors and elements above 0");
    if (!(out->staged_s >= 0 && out->staged_s <= out->time_s))
        return dl_csv_fault(csv, row, p->blocking, err, "expected 0 to write_s");
    out->bytes = 4 * elements;
    return DL_OK;
}

/* A platform writes raw files too: a format is compared with those of the same process. */
static const char *platform_of(const struct dl_csv *csv, const struct places *p,
                               const char *format) {
    for (int row = 0; row < csv->row_count; row++) {
        if (strcmp(csv->rows[row][p->format], format) == 0) return csv->rows[row][p->platform];
    }
    return NULL;
}

static enum dl_code read_probes(const struct dl_csv *csv, const struct places *p,
                                const char *format, const char *raw, enum asked asked,
                                struct probes *out, struct dl_err *err) {
    const char *platform = platform_of(csv, p, format);
    *out = (struct probes){.raw_s_per_byte = NAN};
    for (int r = 0; r < 2; r++)
        for (int i = 0; i < PROBES; i++) out->rows[r][i].time_s = NAN;
    for (int row = 0; row < csv->row_count && platform != NULL; row++) {
        const char *const *cells = csv->rows[row];
        double ranks;
        DL_TRY(dl_csv_number(csv, row, p->ranks, &ranks, err));
        if (strcmp(cells[p->platform], platform) != 0 || !(ranks == 1 || ranks == 2)) continue;
        struct measured m;
        for (int i = 0; i < PROBES; i++) {
            if (strcmp(cells[p->state], probe_names[i]) != 0) continue;
            const bool is_own = strcmp(cells[p->format], format) == 0;
            DL_TRY(read_row(csv, p, row, is_own ? asked : ASKED_WRITE, &m, err));
            if (is_own) out->rows[(int)ranks - 1][i] = m;
            if (strcmp(cells[p->format], raw) == 0 && ranks == 1) {
                double bytes;
                DL_TRY(dl_csv_number(csv, row, p->bytes, &bytes, err));
                out->raw_s_per_byte = m.time_s / bytes;
            }
        }
    }
    return DL_OK;
}

/* Of a tensor, from many small ones and one: without the copies in memory. */
static double tensor_s(const struct measured rows[PROBES], double layer_s) {
    const struct measured *many = &rows[PROBE_MANY], *one = &rows[PROBE_ONE];
    const double layers_s = (many->layers - one->layers) * layer_s;
    return fmax(0, (many->time_s - many->staged_s - (one->time_s - one->staged_s) - layers_s) /
                       (many->tensor_count - one->tensor_count));
}

/* The same of the copy in memory. */
static double staged_tensor_s(const struct measured rows[PROBES]) {
    const struct measured *many = &rows[PROBE_MANY], *one = &rows[PROBE_ONE];
    return fmax(0, (many->staged_s - one->staged_s) / (many->tensor_count - one->tensor_count));
}

static double staged_byte_s(const struct measured *m, const struct measured *one, double each_s) {
    return fmax(0, (m->staged_s - one->staged_s - m->tensor_count * each_s) / m->bytes);
}

static double byte_s(const struct measured *m, const struct dl_checkpoint_cost *c,
                     double staged_s_per_byte) {
    const double each_s = c->tensor_s + c->rank_tensor_s + c->every_tensor_s + c->shared_tensor_s;
    const double fixed_s = c->base_s + m->layers * c->layer_s + m->tensor_count * each_s;
    return fmax(0, (m->time_s - fixed_s) / m->bytes - staged_s_per_byte - c->storage_s_per_byte);
}

/* What a rank and the first rank do for all tensors, and a collection, by the table's rows of the
 * format's pieces; those that it lacks cost nothing. */
struct pieces {
    double plan_s, coordinate_s; /* per tensor; coordinate_s for one more rank */
    double collection_s, object_count;
};

static enum dl_code read_pieces(const struct dl_csv *csv, const struct places *p,
                                const struct dl_checkpoint_planning *planning, struct pieces *out,
                                struct dl_err *err) {
    double one_s = NAN, two_s = NAN;
    *out = (struct pieces){0};
    for (int row = 0; row < csv->row_count && planning != NULL; row++) {
        const char *format = csv->rows[row][p->format];
        const bool plans = strcmp(format, planning->plan_probe) == 0,
                   coordinates = strcmp(format, planning->coordinate_probe) == 0,
                   collects = strcmp(format, planning->collect_probe) == 0;
        struct measured m;
        double ranks;
        if (!plans && !coordinates && !collects) continue;
        DL_TRY(read_row(csv, p, row, ASKED_WRITE, &m, err));
        DL_TRY(dl_csv_number(csv, row, p->ranks, &ranks, err));
        if (plans) out->plan_s = m.time_s / m.tensor_count;
        if (coordinates) *(ranks == 1 ? &one_s : &two_s) = m.time_s / m.tensor_count;
        if (collects) out->collection_s = m.time_s, out->object_count = m.tensor_count;
    }
    if (dl_known(one_s) && dl_known(two_s)) out->coordinate_s = fmax(0, two_s - one_s);
    return DL_OK;
}

/* Two equations: layers with a tensor each, and with two more of the optimizer. */
static double layer_s(const struct measured rows[PROBES]) {
    const struct measured *one = &rows[PROBE_ONE], *many = &rows[PROBE_MANY],
                          *adam = &rows[PROBE_ADAM];
    if (!(adam->time_s > 0)) return 0;
    const double more = adam->tensor_count - many->tensor_count;
    const double each_s = fmax(0, (adam->time_s - many->time_s) / more);
    const double layers = many->layers - one->layers;
    return fmax(0, (many->time_s - one->time_s - layers * each_s) / layers);
}

/* Of a tensor's time on one rank, all_s = t + e + v + s, and on two, t + 2 e + v + s/2, what is the
 * first rank's (t), what it does for each rank (e, given), each rank's (v, given), and shared (s).
 */
static void split_tensor_s(const struct measured two[PROBES], const struct pieces *pieces,
                           double staged_s, bool shards, struct dl_checkpoint_cost *c) {
    const double all_s = c->tensor_s;
    const double planned_s = fmin(all_s, pieces->plan_s);
    c->rank_tensor_s = fmin(all_s - planned_s, pieces->coordinate_s);
    c->every_tensor_s = planned_s + staged_s;
    c->tensor_s = all_s - planned_s - c->rank_tensor_s;
    if (!shards || !(two[PROBE_MANY].time_s > 0)) return;
    c->shared_tensor_s =
        fmin(c->tensor_s, fmax(0, 2 * (all_s + c->rank_tensor_s - tensor_s(two, c->layer_s))));
    c->tensor_s -= c->shared_tensor_s;
}

static bool has_all(const struct probes *probes) {
    const struct measured *one = probes->rows[0];
    return one[PROBE_ONE].time_s > 0 && one[PROBE_MANY].time_s > 0 &&
           one[PROBE_MEDIUM].time_s > 0 && one[PROBE_LARGE].time_s > 0 &&
           dl_known(probes->raw_s_per_byte);
}

enum dl_code dl_checkpoint_cost_read(const struct dl_csv *csv,
                                     const struct dl_checkpoint_format *format, bool blocking,
                                     struct dl_checkpoint_cost *out, bool *known,
                                     struct dl_err *err) {
    struct places places;
    struct probes probes;
    struct pieces pieces = {0};
    const char *name = format->probe != NULL ? format->probe : format->name;
    const bool waits = blocking && format->is_async;
    const enum asked asked = waits              ? ASKED_BLOCKING
                             : format->is_async ? ASKED_WRITE_STAGED
                                                : ASKED_WRITE;
    DL_TRY(find_places(csv, &places, err));
    DL_TRY(read_probes(csv, &places, name, format->syncs && !waits ? "raw-sync" : "raw", asked,
                       &probes, err));
    *known = has_all(&probes);
    if (!*known) return DL_OK;
    /* the copy in memory that training waits for is not planned yet */
    if (!waits) DL_TRY(read_pieces(csv, &places, format->planning, &pieces, err));
    const struct measured *one = probes.rows[0], *two = probes.rows[1];
    const double staged_s = staged_tensor_s(one);
    struct dl_checkpoint_cost c = {
        .layer_s = layer_s(one),
        .storage_s_per_byte = waits ? 0 : probes.raw_s_per_byte,
        .collection_s = pieces.collection_s,
        .object_count = pieces.object_count,
        .staged_cached_s_per_byte = staged_byte_s(&one[PROBE_MEDIUM], &one[PROBE_ONE], staged_s),
        .staged_large_s_per_byte = staged_byte_s(&one[PROBE_LARGE], &one[PROBE_ONE], staged_s)};
    c.base_s = fmax(0, one[PROBE_ONE].time_s - one[PROBE_ONE].layers * c.layer_s);
    c.tensor_s = tensor_s(one, c.layer_s);
    split_tensor_s(two, &pieces, staged_s, format->writers == DL_WRITER_SHARD, &c);
    if (two[PROBE_ONE].time_s > 0)
        c.rank_s = fmax(0, two[PROBE_ONE].time_s - one[PROBE_ONE].time_s);
    c.cached_s_per_byte = byte_s(&one[PROBE_MEDIUM], &c, c.staged_cached_s_per_byte);
    c.large_s_per_byte = byte_s(&one[PROBE_LARGE], &c, c.staged_large_s_per_byte);
    *out = c;
    return DL_OK;
}

double dl_checkpoint_collections(double kept_objects, double object_count) {
    return floor(kept_objects / (object_count / 4) + 0.5);
}

/* Of the first rank, and, at another time, of the others all at once. */
static double collections_s(const struct dl_checkpoint_planning *p,
                            const struct dl_checkpoint_cost *cost, double item_count,
                            const struct dl_checkpoint_scale *scale, double written, double busy) {
    if (p == NULL || !(cost->object_count > 0)) return 0;
    const double first = p->first_object_count + p->plan_object_count * scale->ranks,
                 other = p->other_object_count, own = p->written_object_count * written;
    double count = dl_checkpoint_collections((first + own) * item_count, cost->object_count);
    if (scale->ranks > 1)
        count += busy * dl_checkpoint_collections((other + own) * item_count, cost->object_count);
    return cost->collection_s * count;
}

double dl_checkpoint_write_s(const struct dl_checkpoint_format *format,
                             const struct dl_checkpoint_cost *cost,
                             const struct dl_checkpoint_content *content,
                             const struct dl_checkpoint_scale *scale) {
    const double slices = dl_known(scale->node_core_count)
                              ? fmax(1, scale->node_rank_count / scale->node_core_count)
                              : 1;
    const bool shards = format->writers == DL_WRITER_SHARD,
               all_write = format->writers != DL_WRITER_FIRST;
    const double busy = all_write ? slices : 1, each = busy / (shards ? scale->ranks : 1);
    const double copies = format->writers == DL_WRITER_EVERY ? scale->ranks : 1;
    /* of all tensors, those of which a rank writes something: where ranks plan, sharded tensors
     * stay apart; of all bytes, those that it copies */
    const bool parts = format->planning != NULL && scale->is_sharded;
    const double written = shards && !parts ? 1 / scale->ranks : 1,
                 held = shards && scale->is_sharded ? 1 / scale->ranks : 1;
    const double cached = content->data_bytes - content->large_bytes;
    const double storage =
        dl_known(scale->storage_s_per_byte) ? scale->storage_s_per_byte : cost->storage_s_per_byte;
    const double of_tensor_s = cost->tensor_s + cost->rank_tensor_s * scale->ranks +
                               cost->every_tensor_s * busy + cost->shared_tensor_s * written * busy;
    /* what is planned one by one */
    const double items =
        content->tensor_count + (format->planning != NULL ? content->setting_count : 0);
    /* the first rank serves one rank after the other, while they wait */
    return cost->base_s + cost->rank_s * (scale->ranks - 1) * (shards ? 1 : busy) +
           cost->layer_s * content->layers * busy + items * of_tensor_s +
           (cost->cached_s_per_byte * cached + cost->large_s_per_byte * content->large_bytes) *
               each +
           (cost->staged_cached_s_per_byte * cached +
            cost->staged_large_s_per_byte * content->large_bytes) *
               held * busy +
           storage * format->ratio * content->data_bytes * copies +
           collections_s(format->planning, cost, items, scale, written, busy);
}
