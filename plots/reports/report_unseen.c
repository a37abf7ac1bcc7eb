/* report_unseen.c - errors for what no fit has seen: rows of the tables that
 * `compare --generalize --tables` wrote (docs/generalize, next to the program or installed). */
#include <string.h>
#include <unistd.h>

#include "plots/reports/report.h"

static const struct dl_column columns[] = {
    {"group", "left out of all fits", "", DL_COLUMN_STRING, 0, 0},
    {"rows", "rows", "", DL_COLUMN_INTEGER, 0, 0},
    {"mean", "mean", "%", DL_COLUMN_NUMBER, 0, 3},
    {"median", "median", "%", DL_COLUMN_NUMBER, 0, 3},
    {"p90", "90th percentile", "%", DL_COLUMN_NUMBER, 0, 3},
    {"bias", "bias", "%", DL_COLUMN_NUMBER, 0, 3},
    {"coverage", "interval coverage", "%", DL_COLUMN_NUMBER, 0, 3},
    {"in_sample", "mean in-sample", "%", DL_COLUMN_NUMBER, 0, 3},
};
enum { GROUP, ROWS, NUMBERS };
static const char *const read_names[] = {"mape_pct", "median_ape_pct", "p90_ape_pct",
                                         "bias_pct", "coverage_pct",   "in_sample_mape_pct"};
enum { READ = sizeof read_names / sizeof read_names[0] };

static const char *table_path(const struct dl_context *context, const char *by) {
    for (int i = 0; i < context->script_root_count; i++) {
        const char *path = dl_arena_printf(context->arena, "%s/docs/generalize/%s.csv",
                                           context->script_roots[i], by);
        if (access(path, R_OK) == 0) return path;
    }
    return NULL;
}

/* The row of `group` in the table of one kind; nothing where there is none. */
static enum dl_code add(struct dl_report *r, const char *by, const char *group, const char *label,
                        struct dl_table *table, struct dl_err *err) {
    const char *path = table_path(r->context, by);
    struct dl_csv csv;
    if (path == NULL) return DL_OK;
    DL_TRY(dl_csv_read(path, r->context->arena, &csv, err));
    const int name = dl_csv_column(&csv, "group"), rows = dl_csv_column(&csv, "rows");
    for (int i = 0; i < csv.row_count && name >= 0 && rows >= 0; i++) {
        double count;
        if (strcmp(csv.rows[i][name], group) != 0) continue;
        union dl_cell *c = dl_table_row(table);
        DL_TRY(dl_csv_number(&csv, i, rows, &count, err));
        c[GROUP].string = label;
        c[ROWS].integer = dl_known(count) && count >= 0 && count < 1e9 ? (int64_t)count : DL_ABSENT;
        for (int n = 0; n < READ; n++) {
            const int at = dl_csv_column(&csv, read_names[n]);
            if (at < 0) return dl_fail_at(err, path, 1, 1, read_names[n], "expected this column");
            DL_TRY(dl_csv_number(&csv, i, at, &c[NUMBERS + n].number, err));
        }
    }
    return DL_OK;
}

enum dl_code dl_report_unseen(struct dl_report *r, const struct dl_modelled *m,
                              struct dl_err *err) {
    struct dl_arena *arena = r->context->arena;
    struct dl_table table;
    dl_table_init(&table, arena, columns, sizeof columns / sizeof columns[0]);
    DL_TRY(add(r, "system", m->system->name,
               dl_arena_printf(arena, "this system (%s)", m->system->name), &table, err));
    DL_TRY(add(r, "device", m->system->device->name,
               dl_arena_printf(arena, "this device (%s)", m->system->device->name), &table, err));
    DL_TRY(add(r, "framework", m->framework->name,
               dl_arena_printf(arena, "this framework (%s)", m->framework->name), &table, err));
    DL_TRY(add(r, "source", "macro-average", "each source (mean over sources)", &table, err));
    if (table.row_count > 0)
        dl_document_table(&r->page, &table,
                          "Error for runs that no fit has seen: all constants were fitted again "
                          "without them.");
    return DL_OK;
}
