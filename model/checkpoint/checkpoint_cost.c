/* checkpoint_cost.c - see the header. */
#include "model/checkpoint/checkpoint_cost.h"

#include <math.h>
#include <string.h>

enum probe { PROBE_ONE, PROBE_MANY, PROBE_MEDIUM, PROBE_LARGE, PROBE_ADAM, PROBES };
static const char *const probe_names[PROBES] = {"probe-one", "probe-many", "probe-medium",
                                                "probe-large", "probe-adam"};

/* One row of the probe; time_s NAN: not measured. */
struct measured {
    double time_s, layers, tensor_count, bytes;
};
/* By rank count: 1, 2. */
struct probes {
    struct measured rows[2][PROBES];
    double raw_s_per_byte;
};

/* Columns of the table that are read. */
struct places {
    int platform, format, state, ranks, layers, tensor_count, elements, bytes, time;
};

static enum dl_code find_places(const struct dl_csv *csv, bool blocking, struct places *p,
                                struct dl_err *err) {
    const char *const names[] = {"platform", "format", "state",
                                 "ranks",    "layers", "tensors",
                                 "elements", "bytes",  blocking ? "blocking_s" : "write_s"};
    int *const places[] = {&p->platform,     &p->format,   &p->state, &p->ranks, &p->layers,
                           &p->tensor_count, &p->elements, &p->bytes, &p->time};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        *places[i] = dl_csv_column(csv, names[i]);
        if (*places[i] < 0)
            return dl_fail_at(err, csv->name, 1, 1, names[i],
                              "expected this column of a table of checkpoints");
    }
    return DL_OK;
}

static enum dl_code read_row(const struct dl_csv *csv, const struct places *p, int row,
                             struct measured *out, struct dl_err *err) {
    double elements;
    DL_TRY(dl_csv_number(csv, row, p->time, &out->time_s, err));
    DL_TRY(dl_csv_number(csv, row, p->layers, &out->layers, err));
    DL_TRY(dl_csv_number(csv, row, p->tensor_count, &out->tensor_count, err));
    DL_TRY(dl_csv_number(csv, row, p->elements, &elements, err));
    if (!(out->time_s > 0) || !(out->tensor_count > 0) || !(elements > 0) || !(out->layers >= 0))
        return dl_csv_fault(csv, row, p->time, err,
                            "expected a time, tensors and elements above 0");
    out->bytes = 4 * elements;
    return DL_OK;
}

/* A platform writes raw files too: formats are compared with those of their own process. */
static const char *platform_of(const struct dl_csv *csv, const struct places *p,
                               const char *format) {
    for (int row = 0; row < csv->row_count; row++) {
        if (strcmp(csv->rows[row][p->format], format) == 0) return csv->rows[row][p->platform];
    }
    return NULL;
}

static enum dl_code read_probes(const struct dl_csv *csv, const struct places *p,
                                const char *format, const char *raw, struct probes *out,
                                struct dl_err *err) {
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
            DL_TRY(read_row(csv, p, row, &m, err));
            if (strcmp(cells[p->format], format) == 0) out->rows[(int)ranks - 1][i] = m;
            if (strcmp(cells[p->format], raw) == 0 && ranks == 1) {
                double bytes;
                DL_TRY(dl_csv_number(csv, row, p->bytes, &bytes, err));
                out->raw_s_per_byte = m.time_s / bytes;
            }
        }
    }
    return DL_OK;
}

/* Of a tensor, from many small ones and one. */
static double tensor_s(const struct measured rows[PROBES], double layer_s) {
    const struct measured *many = &rows[PROBE_MANY], *one = &rows[PROBE_ONE];
    const double layers_s = (many->layers - one->layers) * layer_s;
    return fmax(0,
                (many->time_s - one->time_s - layers_s) / (many->tensor_count - one->tensor_count));
}

static double byte_s(const struct measured *m, const struct dl_checkpoint_cost *c) {
    const double fixed_s =
        c->base_s + m->layers * c->layer_s + m->tensor_count * (c->tensor_s + c->shared_tensor_s);
    return fmax(0, (m->time_s - fixed_s) / m->bytes - c->storage_s_per_byte);
}

enum dl_code dl_checkpoint_cost_read(const struct dl_csv *csv,
                                     const struct dl_checkpoint_format *format, bool blocking,
                                     struct dl_checkpoint_cost *out, bool *known,
                                     struct dl_err *err) {
    struct places places;
    struct probes probes;
    const char *name = format->probe != NULL ? format->probe : format->name;
    DL_TRY(find_places(csv, blocking, &places, err));
    const bool waits = blocking && format->is_async;
    DL_TRY(read_probes(csv, &places, name, format->syncs && !waits ? "raw-sync" : "raw", &probes,
                       err));
    const struct measured *one = probes.rows[0], *two = probes.rows[1], *adam = &one[PROBE_ADAM];
    struct dl_checkpoint_cost c = {.base_s = one[PROBE_ONE].time_s};
    /* an asynchronous write blocks for a copy in memory alone */
    c.storage_s_per_byte = waits ? 0 : probes.raw_s_per_byte;
    *known = one[PROBE_ONE].time_s > 0 && one[PROBE_MANY].time_s > 0 &&
             one[PROBE_MEDIUM].time_s > 0 && one[PROBE_LARGE].time_s > 0 &&
             dl_known(c.storage_s_per_byte);
    if (!*known) return DL_OK;
    /* two equations: layers with a tensor each, and with two more of the optimizer */
    if (adam->time_s > 0) {
        const double more = adam->tensor_count - one[PROBE_MANY].tensor_count;
        const double each_s = fmax(0, (adam->time_s - one[PROBE_MANY].time_s) / more);
        const double layers = one[PROBE_MANY].layers - one[PROBE_ONE].layers;
        c.layer_s = fmax(0, (one[PROBE_MANY].time_s - c.base_s - layers * each_s) / layers);
    }
    c.base_s = fmax(0, c.base_s - one[PROBE_ONE].layers * c.layer_s);
    c.tensor_s = tensor_s(one, c.layer_s);
    if (two[PROBE_ONE].time_s > 0)
        c.rank_s = fmax(0, two[PROBE_ONE].time_s - one[PROBE_ONE].time_s);
    if (format->writers == DL_WRITER_SHARD && two[PROBE_MANY].time_s > 0) {
        const double all_s = c.tensor_s;
        c.shared_tensor_s = fmin(all_s, fmax(0, 2 * (all_s - tensor_s(two, c.layer_s))));
        c.tensor_s = all_s - c.shared_tensor_s;
    }
    c.cached_s_per_byte = byte_s(&one[PROBE_MEDIUM], &c);
    c.large_s_per_byte = byte_s(&one[PROBE_LARGE], &c);
    *out = c;
    return DL_OK;
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
    const double cached = content->data_bytes - content->large_bytes;
    const double storage =
        dl_known(scale->storage_s_per_byte) ? scale->storage_s_per_byte : cost->storage_s_per_byte;
    return cost->base_s + cost->rank_s * (scale->ranks - 1) * busy +
           cost->layer_s * content->layers * busy +
           content->tensor_count * (cost->tensor_s + cost->shared_tensor_s * each) +
           (cost->cached_s_per_byte * cached + cost->large_s_per_byte * content->large_bytes) *
               each +
           storage * format->ratio * content->data_bytes * copies;
}
