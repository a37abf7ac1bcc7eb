/* choices.c - see the header. */
#include "plots/figures/choices.h"

#include <math.h>
#include <string.h>

#include "model/core/text.h"

enum number { RATE, LOW, HIGH, ENERGY, COST, NUMBERS };
static const char *const number_names[NUMBERS] = {
    "throughput_samples_per_s", "throughput_low_samples_per_s", "throughput_high_samples_per_s",
    "sample_energy_j", "cost_per_sample"};

bool dl_choices_table(const struct dl_csv *csv) {
    for (int i = 0; i < NUMBERS; i++)
        if (dl_csv_column(csv, number_names[i]) < 0) return false;
    /* tables of predictions and plans name their systems */
    if (dl_csv_column(csv, "workers") >= 0) return dl_csv_column(csv, "servers") >= 0;
    return dl_csv_column(csv, "nodes") >= 0 &&
           (dl_csv_column(csv, "split") >= 0 ||
            (dl_csv_column(csv, "stages") >= 0 && dl_csv_column(csv, "stage_count") >= 0));
}

static const char *cell(const struct dl_csv *csv, int row, const char *column) {
    const int c = dl_csv_column(csv, column);
    return c < 0 ? NULL : csv->rows[row][c];
}

/* "A:2,B:1" as "A + B", or with the numbers as "A:2 + B:1". */
static const char *kinds_of(struct dl_arena *arena, const char *nodes, bool numbers) {
    struct dl_text text = {.arena = arena};
    for (const char *s = nodes; *s != 0;) {
        const size_t length = strcspn(s, ","), name = strcspn(s, ":,");
        dl_text_printf(&text, "%s%.*s", s == nodes ? "" : " + ", (int)(numbers ? length : name), s);
        s += length + (s[length] == ',');
    }
    return dl_text_string(&text);
}

static const char *part(struct dl_arena *arena, const char *what, const char *nodes) {
    const bool elsewhere = nodes != NULL && strchr(nodes, ':') != NULL;
    return elsewhere ? dl_arena_printf(arena, "; %s %s", what, nodes) : "";
}

static void name_choice(const struct dl_csv *csv, int row, struct dl_arena *arena,
                        struct dl_choice *out) {
    const char *nodes = cell(csv, row, "nodes"), *split = cell(csv, row, "split"),
               *workers = cell(csv, row, "workers"), *stages = cell(csv, row, "stage_count");
    out->stages = cell(csv, row, "stages");
    if (workers != NULL) {
        out->kinds = dl_arena_printf(arena, "work on %s", kinds_of(arena, workers, false));
        out->label = dl_arena_printf(arena, "%s%s%s", workers,
                                     part(arena, "serve", cell(csv, row, "servers")),
                                     part(arena, "decode", cell(csv, row, "input")));
    } else {
        out->kinds = kinds_of(arena, nodes, false);
        const char *numbers = kinds_of(arena, nodes, true);
        /* batches are equal on one kind */
        if (split != NULL)
            out->label = strchr(nodes, ',') == NULL
                             ? numbers
                             : dl_arena_printf(arena, "%s; %s", numbers, split);
        else
            out->label = dl_arena_printf(arena, "%s; %s stage%s", numbers, stages,
                                         strcmp(stages, "1") == 0 ? "" : "s");
    }
}

enum dl_code dl_choices_read(const struct dl_csv *csv, struct dl_arena *arena,
                             struct dl_choice **out, int *count, struct dl_err *err) {
    struct dl_choice *list = dl_arena_alloc(arena, (size_t)csv->row_count + 1, sizeof *list);
    *count = 0;
    if (!dl_choices_table(csv))
        return dl_fail_at(err, csv->name, 1, 1, NULL,
                          "expected what 'dlmodel search --heterogeneous ... --csv' prints");
    for (int row = 0; row < csv->row_count; row++) {
        struct dl_choice *one = &list[*count];
        const char *fits = cell(csv, row, "fits");
        double values[NUMBERS];
        for (int i = 0; i < NUMBERS; i++) {
            const int c = dl_csv_column(csv, number_names[i]);
            values[i] = NAN;
            if (csv->rows[row][c][0] != 0) DL_TRY(dl_csv_number(csv, row, c, &values[i], err));
        }
        if (!(values[RATE] > 0 && values[LOW] > 0 && values[HIGH] >= values[LOW]))
            return dl_csv_fault(csv, row, dl_csv_column(csv, number_names[RATE]), err,
                                "expected a rate above 0 and its interval");
        if (fits != NULL && strcmp(fits, "false") == 0) continue;
        *one = (struct dl_choice){.samples_per_s = values[RATE],
                                  .low_samples_per_s = values[LOW],
                                  .high_samples_per_s = values[HIGH],
                                  .sample_energy_j = values[ENERGY],
                                  .cost_per_sample = values[COST]};
        name_choice(csv, row, arena, one);
        *count += 1;
    }
    *out = list;
    return *count > 0
               ? DL_OK
               : dl_fail_at(err, csv->name, 1, 1, NULL, "expected a choice that fits in memory");
}
