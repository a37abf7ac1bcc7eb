/* fuzz_rows.c - libFuzzer entry for tables of measurements, by their rows: kernel times, and cells
 * of the columns of runs and collectives. What is accepted is within the range that the column
 * declares; a refusal names the line and the column. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "model/core/csv_field.h"
#include "model/network/coll_match.h"
#include "model/machine/kernel_columns.h"
#include "model/machine/kernel_match.h"
#include "predict/compare/compare_runs.h"
#include "tests/fuzz/mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
MUTATE_CSV()

static void demand(bool truth) {
    if (!truth) abort();
}

static void judge_cell(const struct dl_csv *csv, int row, int column,
                       const struct dl_field *field) {
    struct dl_err err = {.code = DL_OK};
    double value = 0;
    if (dl_csv_field(csv, row, column, field, &value, &err) != DL_OK) {
        demand(err.line > 0 && err.message[0] != 0);
    } else if (isnan(value)) {
        demand(csv->rows[row][column][0] == 0);
    } else if (field->type == DL_FIELD_CHOICE) {
        demand(value >= 0 && field->choices[(int)value] != NULL);
    } else {
        demand(isfinite(value));
        demand((field->min == 0 && field->max == 0) ||
               (value >= field->min && value <= field->max));
        demand(field->type != DL_FIELD_INTEGER || value == floor(value));
    }
}

/* A column's field is found once: to compare its name with all of the table's takes most time. */
static void judge_columns(const struct dl_csv *csv, const struct dl_schema *schema) {
    for (int c = 0; c < csv->column_count; c++) {
        const struct dl_field *field = dl_csv_field_find(schema, csv->header[c]);
        if (field == NULL || (field->type != DL_FIELD_NUMBER && field->type != DL_FIELD_INTEGER &&
                              field->type != DL_FIELD_CHOICE))
            continue;
        for (int r = 0; r < csv->row_count; r++) judge_cell(csv, r, c, field);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct dl_arena arena = {0};
    struct dl_err err = {.code = DL_OK};
    struct dl_csv csv;
    if (dl_csv_parse("input", (const char *)data, size, &arena, &csv, &err) == DL_OK) {
        for (int r = 0; r < csv.row_count; r++) {
            struct dl_kernel_row kernel;
            struct dl_err fault = {.code = DL_OK};
            if (dl_kernel_row_read(&csv, r, &kernel, &fault) != DL_OK)
                demand(fault.message[0] != 0);
        }
        judge_columns(&csv, &dl_kernel_row_schema);
        judge_columns(&csv, &dl_coll_row_schema);
        judge_columns(&csv, &dl_run_row_schema);
    } else {
        demand(err.message[0] != 0);
    }
    dl_arena_free(&arena);
    return 0;
}
