/* plot_campaign.c - the schedule of a campaign: which task trained on which slot, when. Reads what
 * `campaign --show schedule --csv` wrote. */
#include <math.h>
#include <stdio.h>

#include "model/core/units.h"
#include "plots/figures/plot.h"

static const struct dl_column columns[] = {
    {"group", NULL, NULL, DL_COLUMN_INTEGER, 0, 0},
    {"slot", "slot", "", DL_COLUMN_INTEGER, 0, 0},
    {"start_s", "start", "s", DL_COLUMN_NUMBER, 0, 0},
    {"train_s", "", "s", DL_COLUMN_NUMBER, 0, 0},
    {"end_s", "end", "s", DL_COLUMN_NUMBER, 0, 0},
    {"failed", "", "", DL_COLUMN_INTEGER, 0, 0},
    {"trial", "trial", "", DL_COLUMN_INTEGER, 0, 0},
};
enum { TRIAL, RUNG, SLOT, START, TRAIN, END, READ };
static const char *const read_names[READ] = {"trial",   "rung",    "slot",
                                             "start_s", "train_s", "end_s"};

struct schedule {
    int places[READ], failed; /* columns of the file */
    double most_slot, end_s, busy_s;
    int rungs;
};

static enum dl_code find_columns(const struct dl_csv *csv, struct schedule *s, struct dl_err *err) {
    s->failed = dl_csv_column(csv, "failed");
    for (int i = 0; i < READ; i++) {
        s->places[i] = dl_csv_column(csv, read_names[i]);
        if (s->places[i] < 0)
            return dl_fail_at(err, csv->name, 1, 1, read_names[i],
                              "expected the schedule of a campaign: dlmodel campaign ... --show "
                              "schedule --csv");
    }
    return DL_OK;
}

static enum dl_code add_task(const struct dl_csv *csv, int row, struct schedule *s,
                             struct dl_table *table, struct dl_err *err) {
    double v[READ];
    for (int i = 0; i < READ; i++) {
        DL_TRY(dl_csv_number(csv, row, s->places[i], &v[i], err));
        const double most = i == RUNG ? DL_PLOT_GROUPS - 1 : i == TRIAL || i == SLOT ? 1e8 : 1e12;
        if (!(v[i] >= 0 && v[i] <= most) || (i <= SLOT && v[i] != floor(v[i])))
            return dl_csv_fault(csv, row, s->places[i], err, "expected a %s from 0 to %g",
                                i <= SLOT ? "whole number" : "time in s", most);
    }
    if (v[END] < v[START])
        return dl_csv_fault(csv, row, s->places[END], err, "expected an end after the start");
    dl_table_add(table, {.integer = (int64_t)v[RUNG] + 1}, {.integer = (int64_t)v[SLOT]},
                 {.number = v[START]}, {.number = v[TRAIN]}, {.number = v[END]},
                 {.integer = s->failed >= 0 && csv->rows[row][s->failed][0] == 't'},
                 {.integer = (int64_t)v[TRIAL]});
    s->most_slot = fmax(s->most_slot, v[SLOT]);
    s->end_s = fmax(s->end_s, v[END]);
    s->busy_s += v[END] - v[TRAIN];
    s->rungs = (int)fmax(s->rungs, v[RUNG] + 1);
    return DL_OK;
}

enum dl_code dl_plot_campaign(struct dl_context *context, const struct dl_options *options,
                              struct dl_figure *out, struct dl_err *err) {
    struct dl_csv csv;
    struct schedule s = {.rungs = 0};
    char end[32];
    if (options->positional_count != 2)
        return dl_fail(err, DL_ERR_USAGE,
                       "plot campaign: expected one file, the schedule of dlmodel campaign ... "
                       "--show schedule --csv");
    DL_TRY(dl_csv_read(options->positional[1], context->arena, &csv, err));
    DL_TRY(find_columns(&csv, &s, err));
    dl_table_init(&out->table, context->arena, columns, sizeof columns / sizeof *columns);
    for (int row = 0; row < csv.row_count; row++) DL_TRY(add_task(&csv, row, &s, &out->table, err));
    if (csv.row_count == 0) return dl_fail_at(err, csv.name, 1, 1, NULL, "expected tasks");
    const double slots = s.most_slot + 1;
    const struct {
        const char *name;
        double length_s;
    } units[] = {{"s", 1}, {"min", 60}, {"h", 3600}, {"days", 86400}};
    int unit = 0;
    while (unit < 3 && s.end_s > 5 * units[unit + 1].length_s) unit++;
    dl_units_format(s.end_s, DL_UNIT_S, end, sizeof end);
    out->title =
        dl_arena_printf(context->arena, "%d tasks on %.0f slots in %s", csv.row_count, slots, end);
    out->subtitle = dl_arena_printf(context->arena, "training fills %.3g %% of the slots' time",
                                    100 * s.busy_s / (slots * s.end_s));
    out->group_count = s.rungs;
    for (int i = 0; i < s.rungs; i++) {
        out->labels[i] =
            s.rungs == 1 ? "training" : dl_arena_printf(context->arena, "training, rung %d", i);
    }
    out->parameters[0] = (struct dl_plot_parameter){.name = "unit", .text = units[unit].name};
    dl_plot_set(out, 1, "unit_s", units[unit].length_s);
    dl_plot_set(out, 2, "slots", slots);
    dl_plot_set(out, 3, "named", csv.row_count <= 60 ? 1 : 0);
    return DL_OK;
}
