/* compare_checkpoints.c - measured sizes and times of checkpoints against F-CKPT-BYTES and
 * F-CKPT-SERIALIZE. Costs come from the probe in the same table, as a calibration of the machine;
 * networks are predicted from their workload files. */
#include <math.h>
#include <string.h>

#include "model/framework/checkpoint/checkpoint_cost.h"
#include "predict/compare/compare.h"
#include "model/catalog/data.h"

struct row {
    const char *format, *state, *optimizer;
    double ranks, bytes, write_s, cores;
};

static enum dl_code read_row(const struct dl_csv *csv, int r, struct row *out, struct dl_err *err) {
    const struct {
        const char *name;
        const char **text;
        double *number;
    } columns[] = {{"format", &out->format, NULL},       {"state", &out->state, NULL},
                   {"optimizer", &out->optimizer, NULL}, {"ranks", NULL, &out->ranks},
                   {"bytes", NULL, &out->bytes},         {"write_s", NULL, &out->write_s},
                   {"cores", NULL, &out->cores}};
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        const int place = dl_csv_column(csv, columns[i].name);
        if (place < 0)
            return dl_fail_at(err, csv->name, 1, 1, columns[i].name,
                              "expected this column of a table of checkpoints");
        if (columns[i].text != NULL) *columns[i].text = csv->rows[r][place];
        if (columns[i].number == NULL) continue;
        DL_TRY(dl_csv_number(csv, r, place, columns[i].number, err));
        if (!(*columns[i].number > 0))
            return dl_csv_fault(csv, r, place, err, "expected a number above 0");
    }
    return DL_OK;
}

static int optimizer_of(const char *name) {
    for (int i = 0; dl_optimizer_names[i] != NULL; i++) {
        if (strcmp(dl_optimizer_names[i], name) == 0) return i;
    }
    return -1;
}

static struct dl_compared *add(struct dl_comparison *out, const struct dl_csv *csv, int r,
                               const struct row *row, const char *what, double measured) {
    struct dl_compared *compared = dl_comparison_add(out);
    *compared = (struct dl_compared){
        .id = dl_arena_printf(out->arena, "%s:%d %s", csv->name, csv->row_lines[r], what),
        .source = dl_arena_printf(out->arena, "%s of %s", what, row->format),
        .system = what,
        .framework = row->format,
        .workload = row->state,
        .unit = strcmp(what, "size") == 0 ? "B" : "s",
        .measured = measured,
        .predicted = NAN,
        .error_pct = NAN,
        .low = NAN,
        .high = NAN,
        .devices = (int64_t)row->ranks,
        .skipped = true,
    };
    return compared;
}

static void set(struct dl_compared *compared, double predicted) {
    compared->predicted = predicted;
    compared->error_pct = 100 * (predicted - compared->measured) / compared->measured;
    compared->skipped = false;
}

static enum dl_code compare_row(const struct dl_data *data, const struct dl_csv *csv, int r,
                                const struct row *row, struct dl_comparison *out,
                                struct dl_err *err) {
    struct dl_compared *size, *time;
    const struct dl_checkpoint_format *format = dl_checkpoint_format_find(row->format);
    const struct dl_workload *workload = NULL;
    struct dl_err inner = {0};
    const int optimizer = optimizer_of(row->optimizer);
    const char *why = NULL;
    if (format == NULL)
        why = "no such format";
    else if (optimizer < 0)
        why = "no such optimizer";
    else if (dl_data_workload(data, row->state, out->arena, &workload, &inner) != DL_OK)
        why = dl_arena_strdup(out->arena, inner.message);
    size = add(out, csv, r, row, "size", row->bytes);
    size->why = why;
    if (why == NULL) {
        struct dl_checkpoint_content content;
        dl_checkpoint_content(format, workload, (enum dl_optimizer)optimizer, 4, &content);
        set(size, dl_checkpoint_bytes(format, &content, row->ranks));
    }
    time = add(out, csv, r, row, "time", row->write_s);
    time->why = why;
    if (why != NULL) return DL_OK;
    struct dl_checkpoint_content content;
    struct dl_checkpoint_cost cost;
    bool known;
    dl_checkpoint_content(format, workload, (enum dl_optimizer)optimizer, 4, &content);
    DL_TRY(dl_checkpoint_cost_read(csv, format, false, &cost, &known, err));
    if (!known) {
        time->why = "the table has no probe of this format";
        return DL_OK;
    }
    const struct dl_checkpoint_scale scale = {.ranks = row->ranks,
                                              .node_rank_count = row->ranks,
                                              .node_core_count = row->cores,
                                              .storage_s_per_byte = NAN};
    set(time, dl_checkpoint_write_s(format, &cost, &content, &scale));
    return DL_OK;
}

enum dl_code dl_compare_checkpoints(const struct dl_data *data, const struct dl_csv *csv,
                                    struct dl_comparison *out, struct dl_err *err) {
    for (int r = 0; r < csv->row_count; r++) {
        struct row row;
        DL_TRY(read_row(csv, r, &row, err));
        if (strncmp(row.state, "probe-", 6) == 0) continue;
        DL_TRY(compare_row(data, csv, r, &row, out, err));
    }
    return DL_OK;
}
