/* report_campaign.c - the page about a campaign: the schedule that `campaign --show schedule --csv`
 * predicts, or that `slurm collect --campaign` collected; with both files how far the prediction
 * was off. */
#include <math.h>
#include <stdlib.h>

#include "plots/reports/report.h"

static const struct dl_column columns[] = {
    {"rung", "rung", "", DL_COLUMN_INTEGER, 0, 0},
    {"tasks", "tasks", "", DL_COLUMN_INTEGER, 0, 0},
    {"failed", "failed", "", DL_COLUMN_INTEGER, 0, 0},
    {"mean", "training of a task", "s", DL_COLUMN_NUMBER, 0, 4},
    {"sum", "training in all", "h", DL_COLUMN_NUMBER, 3600, 4},
    {"first", "first begins", "s", DL_COLUMN_NUMBER, 0, 4},
    {"last", "last ends", "s", DL_COLUMN_NUMBER, 0, 4},
};
/* of the figure's table (plot_campaign.c) */
enum { TASK_GROUP, TASK_SLOT, TASK_START, TASK_TRAIN, TASK_END, TASK_FAILED };

struct schedule {
    const char *path;
    double makespan_s, busy_s, startup_s, slots, best_accuracy;
    int tasks, failed, best;
    struct dl_csv csv;
};

static double number(const struct dl_csv *csv, int row, const char *column) {
    const int c = dl_csv_column(csv, column);
    return c < 0 || csv->rows[row][c][0] == 0 ? NAN : strtod(csv->rows[row][c], NULL);
}

bool dl_report_is_schedule(const struct dl_csv *csv) {
    return dl_csv_column(csv, "trial") >= 0 && dl_csv_column(csv, "slot") >= 0 &&
           dl_csv_column(csv, "start_s") >= 0 && dl_csv_column(csv, "end_s") >= 0;
}

static enum dl_code read_schedule(const char *path, struct dl_arena *arena, struct schedule *out,
                                  struct dl_err *err) {
    *out = (struct schedule){.path = path, .best = -1, .best_accuracy = NAN};
    DL_TRY(dl_csv_read(path, arena, &out->csv, err));
    if (!dl_report_is_schedule(&out->csv))
        return dl_fail_at(err, path, 1, 1, NULL, "expected the schedule of a campaign");
    for (int row = 0; row < out->csv.row_count; row++) {
        const double start_s = number(&out->csv, row, "start_s"),
                     train_s = number(&out->csv, row, "train_s"),
                     end_s = number(&out->csv, row, "end_s"),
                     accuracy = number(&out->csv, row, "accuracy");
        const int failed = dl_csv_column(&out->csv, "failed");
        if (!(end_s >= start_s))
            return dl_csv_fault(&out->csv, row, dl_csv_column(&out->csv, "end_s"), err,
                                "expected an end after the start");
        out->tasks++;
        out->failed += failed >= 0 && out->csv.rows[row][failed][0] == 't';
        out->makespan_s = fmax(out->makespan_s, end_s);
        out->busy_s += end_s - train_s;
        out->startup_s += train_s - start_s;
        out->slots = fmax(out->slots, number(&out->csv, row, "slot") + 1);
        if (dl_known(accuracy) && !(accuracy <= out->best_accuracy))
            out->best_accuracy = accuracy, out->best = row;
    }
    return out->tasks > 0 ? DL_OK : dl_fail_at(err, path, 1, 1, NULL, "expected tasks");
}

static void facts(struct dl_report *r, const struct schedule *s) {
    struct dl_arena *arena = r->context->arena;
    const int parameters = dl_csv_column(&s->csv, "parameters"),
              batch = dl_csv_column(&s->csv, "batch");
    const struct dl_fact list[] = {
        {"Schedule", s->path},
        {"Tasks",
         dl_arena_printf(arena, "%d on %.0f slots, %d failed", s->tasks, s->slots, s->failed)},
        {"Makespan", dl_report_quantity(arena, s->makespan_s, DL_UNIT_S)},
        {"Training", dl_arena_printf(arena, "%.3g %% of the slots' time",
                                     100 * s->busy_s / (s->slots * s->makespan_s))},
        {"Start of a task", dl_report_quantity(arena, s->startup_s / s->tasks, DL_UNIT_S)},
        {"Best trial",
         s->best < 0 || parameters < 0 || batch < 0
             ? NULL
             : dl_arena_printf(arena, "batch %s %s: accuracy %.1f %%", s->csv.rows[s->best][batch],
                               s->csv.rows[s->best][parameters], 100 * s->best_accuracy)},
    };
    dl_document_facts(&r->page, list, sizeof list / sizeof *list);
}

static enum dl_code add_rungs(struct dl_report *r, const struct dl_options *one,
                              struct dl_err *err) {
    struct dl_figure drawn = {.group_count = 0}, *figure = &drawn;
    DL_TRY(dl_plot_campaign(r->context, one, figure, err));
    struct dl_table table;
    dl_table_init(&table, r->context->arena, columns, sizeof columns / sizeof columns[0]);
    for (int g = 1; g <= figure->group_count; g++) {
        int tasks = 0, failed = 0;
        double sum_s = 0, first_s = INFINITY, last_s = 0;
        for (int i = 0; i < figure->table.row_count; i++) {
            const union dl_cell *t = dl_table_cells(&figure->table, i);
            if (t[TASK_GROUP].integer != g) continue;
            tasks++;
            failed += t[TASK_FAILED].integer != 0;
            sum_s += t[TASK_END].number - t[TASK_TRAIN].number;
            first_s = fmin(first_s, t[TASK_START].number);
            last_s = fmax(last_s, t[TASK_END].number);
        }
        if (tasks == 0) continue;
        dl_table_add(&table, {.integer = g - 1}, {.integer = tasks}, {.integer = failed},
                     {.number = sum_s / tasks}, {.number = sum_s}, {.number = first_s},
                     {.number = last_s});
    }
    dl_document_table(&r->page, &table, "The tasks by rung; a search without rungs has one.");
    return DL_OK;
}

enum dl_code dl_report_of_campaign(struct dl_report *r, const char *title, struct dl_err *err) {
    struct dl_arena *arena = r->context->arena;
    const int count = r->options.positional_count - 1;
    struct schedule s[2];
    if (count > 2)
        return dl_fail(err, DL_ERR_USAGE,
                       "report: expected one schedule of a campaign, or two: predicted, measured");
    for (int i = 0; i < count; i++)
        DL_TRY(read_schedule(r->options.positional[i + 1], arena, &s[i], err));
    dl_document_begin(&r->page, arena, r->page.markdown,
                      title != NULL ? title : "A campaign of trainings",
                      dl_arena_printf(arena, "%d tasks", s[0].tasks));
    dl_document_section(&r->page, "Question and answer");
    dl_document_paragraph(&r->page, "How long does the search take, and what takes the time?");
    if (count == 2)
        dl_document_answer(
            &r->page,
            dl_arena_printf(arena, "Predicted %s, measured %s: the prediction is %+.1f %% off.",
                            dl_report_quantity(arena, s[0].makespan_s, DL_UNIT_S),
                            dl_report_quantity(arena, s[1].makespan_s, DL_UNIT_S),
                            100 * (s[0].makespan_s / s[1].makespan_s - 1)));
    else
        dl_document_answer(&r->page,
                           dl_arena_printf(arena, "%d tasks on %.0f slots take %s.", s[0].tasks,
                                           s[0].slots,
                                           dl_report_quantity(arena, s[0].makespan_s, DL_UNIT_S)));
    for (int i = 0; i < count; i++) {
        struct dl_options one = r->options;
        one.positional[1] = s[i].path;
        one.positional_count = 2;
        dl_document_section(&r->page, count == 1 ? "The schedule"
                                      : i == 0   ? "Predicted"
                                                 : "Measured");
        facts(r, &s[i]);
        DL_TRY(add_rungs(r, &one, err));
        DL_TRY(dl_report_figure(r, &one, dl_plot_campaign, "campaign",
                                "Which task ran on which slot; grey: start and data.", err));
    }
    const char *files[] = {s[0].path, count == 2 ? s[1].path : NULL};
    dl_report_method(r, NULL, files, count);
    return DL_OK;
}
