/* report_campaign.c - the page about a campaign: what its schedule came to, rung by rung, and the
 * schedule as a figure. Reads what `campaign --show schedule --csv` wrote. */
#include <math.h>
#include <string.h>

#include "predict/report/report.h"

static const struct dl_column columns[] = {
    {"rung", "rung", "", DL_COLUMN_INTEGER, 0, 0},
    {"tasks", "tasks", "", DL_COLUMN_INTEGER, 0, 0},
    {"failed", "failed", "", DL_COLUMN_INTEGER, 0, 0},
    {"mean", "training of a task", "s", DL_COLUMN_NUMBER, 0, 4},
    {"sum", "training in all", "h", DL_COLUMN_NUMBER, 3600, 4},
    {"first", "first begins", "s", DL_COLUMN_NUMBER, 0, 4},
    {"last", "last ends", "s", DL_COLUMN_NUMBER, 0, 4},
};
enum { RUNG, TASKS, FAILED, MEAN, SUM, FIRST, LAST };
/* of the figure's table (plot_campaign.c) */
enum { TASK_GROUP, TASK_SLOT, TASK_START, TASK_TRAIN, TASK_END, TASK_FAILED };

bool dl_report_is_campaign(const struct dl_csv *csv) {
    return dl_csv_column(csv, "trial") >= 0 && dl_csv_column(csv, "slot") >= 0 &&
           dl_csv_column(csv, "train_s") >= 0;
}

static enum dl_code rungs(struct dl_report *r, const struct dl_figure *figure, struct dl_err *err) {
    struct dl_table table;
    dl_table_init(&table, r->context->arena, columns, sizeof columns / sizeof columns[0]);
    for (int g = 1; g <= figure->group_count; g++) {
        int tasks = 0, failed = 0;
        double sum_s = 0, first_s = INFINITY, last_s = 0;
        for (int i = 0; i < figure->table.row_count; i++) {
            const union dl_cell *t =
                &figure->table.cells[(size_t)i * (size_t)figure->table.column_count];
            if (t[TASK_GROUP].integer != g) continue;
            tasks++;
            failed += t[TASK_FAILED].integer != 0;
            sum_s += t[TASK_END].number - t[TASK_TRAIN].number;
            first_s = fmin(first_s, t[TASK_START].number);
            last_s = fmax(last_s, t[TASK_END].number);
        }
        if (tasks == 0) continue;
        union dl_cell *c = dl_table_row(&table);
        if (c == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
        c[RUNG].integer = g - 1;
        c[TASKS].integer = tasks;
        c[FAILED].integer = failed;
        c[MEAN].number = sum_s / tasks;
        c[SUM].number = sum_s;
        c[FIRST].number = first_s;
        c[LAST].number = last_s;
    }
    dl_document_table(&r->page, &table, "The tasks by rung; a search without rungs has one.");
    return DL_OK;
}

enum dl_code dl_report_of_campaign(struct dl_report *r, const char *title, struct dl_err *err) {
    struct dl_figure figure = {.group_count = 0};
    const char *file = r->options.positional[1];
    DL_TRY(dl_plot_campaign(r->context, &r->options, &figure, err));
    dl_document_begin(&r->page, r->context->arena, r->page.markdown,
                      title != NULL ? title : "A campaign of trainings", file);
    dl_document_section(&r->page, "Question and answer");
    dl_document_paragraph(&r->page,
                          "How long do all trainings take on this machine, and is it used well?");
    dl_document_answer(
        &r->page, dl_arena_printf(r->context->arena, "%s; %s.", figure.title, figure.subtitle));
    dl_document_section(&r->page, "The tasks");
    DL_TRY(rungs(r, &figure, err));
    if (r->figures) {
        dl_document_section(&r->page, "The schedule");
        DL_TRY(dl_report_drawn(r, &figure, "campaign",
                               "Which task trained on which slot, when; a slot holds the devices "
                               "of one trial.",
                               err));
    }
    return dl_report_method(r, NULL, &file, 1, err);
}
