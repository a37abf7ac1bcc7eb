/* run_classes.c - which arguments of training runs cost no time, and which would change a
 * prediction and are not modelled. What costs no time is listed by its whole name, or by a section
 * that is about nothing else; any other name is shown as not known. */
#include <string.h>
#include <unistd.h>

#include "import/run/imported_run.h"
#include "model/core/csv.h"

enum { FORMAT, USE, NAME, COLUMNS };

static enum dl_code read_row(const struct dl_csv *csv, int row, const int *at,
                             struct dl_argument_class *out, struct dl_err *err) {
    static const struct {
        const char *word;
        enum dl_argument_use use;
    } uses[] = {{"no effect", DL_COSTS_NOTHING},
                {"not modelled", DL_NOT_MODELLED},
                {"not modelled even if off", DL_NOT_MODELLED_EVEN_OFF}};
    for (size_t i = 0; i < sizeof uses / sizeof uses[0]; i++) {
        if (strcmp(csv->rows[row][at[USE]], uses[i].word) != 0) continue;
        *out = (struct dl_argument_class){uses[i].use, csv->rows[row][at[NAME]]};
        return DL_OK;
    }
    return dl_csv_fault(csv, row, at[USE], err,
                        "expected no effect, not modelled or not modelled even if off");
}

/* Rows of "every" format are the first of each format's own. */
enum dl_code dl_argument_classes_read(const struct dl_data *data, const char *format,
                                      struct dl_arena *arena, const struct dl_argument_class **own,
                                      const struct dl_argument_class **common, struct dl_err *err) {
    static const char *const names[COLUMNS] = {"format", "use", "name"};
    const char *path = "run_arguments.csv";
    struct dl_csv csv;
    int at[COLUMNS];
    for (int d = 0; d < data->directory_count; d++) {
        path = dl_arena_printf(arena, "%s/run_arguments.csv", data->directories[d]);
        if (access(path, F_OK) == 0) break;
    }
    DL_TRY(dl_data_csv(data, path, arena, &csv, err));
    for (int i = 0; i < COLUMNS; i++)
        if ((at[i] = dl_csv_column(&csv, names[i])) < 0)
            return dl_fail_at(err, path, 1, 1, names[i], "the table needs this column");
    const size_t room = (size_t)csv.row_count + 1;
    struct dl_argument_class *mine = dl_arena_alloc(arena, room, sizeof *mine),
                             *others = dl_arena_alloc(arena, room, sizeof *others);
    *own = mine;
    *common = others;
    for (int r = 0; r < csv.row_count; r++) {
        const char *word = csv.rows[r][at[FORMAT]];
        if (strcmp(word, "every") == 0 || strcmp(word, format) == 0)
            DL_TRY(read_row(&csv, r, at, mine++, err));
        else if (strcmp(word, "common") == 0)
            DL_TRY(read_row(&csv, r, at, others++, err));
    }
    return DL_OK;
}
