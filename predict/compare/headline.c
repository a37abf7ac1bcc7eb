/* headline.c - see headline.h. */
#include "predict/compare/headline.h"

static enum dl_code add_line(const struct dl_csv *csv, int row, const char **text,
                             struct dl_arena *arena, struct dl_err *err) {
    static const char *const keys[] = {"sources", "rows", "time_mape_pct", "coverage_pct"};
    const int met = dl_csv_column(csv, "met");
    double v[4];
    for (int k = 0; k < 4; k++) {
        const int column = dl_csv_column(csv, keys[k]);
        if (column < 0 || met < 0)
            return dl_fail_at(err, csv->name, 1, 1, keys[k], "expected a column of this name");
        DL_TRY(dl_csv_number(csv, row, column, &v[k], err));
    }
    *text = dl_arena_printf(arena,
                            "%s%s %.*f %% (%.0f sources, %.0f runs; %.0f %% inside the 80 %% "
                            "interval)",
                            (*text)[0] == 0 ? "Mean error of the predicted time over sources: "
                                            : dl_arena_printf(arena, "%s; ", *text),
                            csv->rows[row][met], v[2] < 9.95 ? 1 : 0, v[2], v[0], v[1], v[3]);
    return DL_OK;
}

enum dl_code dl_headline(const struct dl_data *data, struct dl_arena *arena, const char **out,
                         struct dl_err *err) {
    *out = "";
    const char *path = dl_data_file(data, "headline.csv", arena), *text = "";
    struct dl_csv csv;
    if (path == NULL) return DL_OK;
    DL_TRY(dl_csv_read(path, arena, &csv, err));
    for (int row = 0; row < csv.row_count; row++) DL_TRY(add_line(&csv, row, &text, arena, err));
    if (text[0] != 0) *out = dl_arena_printf(arena, "%s.", text);
    return DL_OK;
}
