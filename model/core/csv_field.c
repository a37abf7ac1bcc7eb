/* csv_field.c - see the header. */
#include "model/core/csv_field.h"
#include "model/core/synonym.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const struct dl_field *dl_csv_field_find(const struct dl_schema *schema, const char *column) {
    for (const struct dl_field *field = schema->fields; field->key != NULL; field++)
        if (strcmp(field->key, column) == 0) return field;
    return NULL;
}

static enum dl_code word(const struct dl_csv *csv, int row, int column,
                         const struct dl_field *field, double *out, struct dl_err *err) {
    const char *cell = csv->rows[row][column], *other = dl_value_synonym(cell);
    char words[256] = "";
    for (int i = 0; field->choices[i] != NULL; i++) {
        const size_t used = strlen(words);
        if (strcmp(field->choices[i], cell) == 0 || strcmp(field->choices[i], other) == 0) {
            *out = i;
            return DL_OK;
        }
        snprintf(words + used, sizeof words - used, "%s%s", i > 0 ? ", " : "", field->choices[i]);
    }
    return dl_csv_fault(csv, row, column, err, "expected one of %s, got \"%.60s\"", words, cell);
}

enum dl_code dl_csv_field(const struct dl_csv *csv, int row, int column,
                          const struct dl_field *field, double *out, struct dl_err *err) {
    *out = NAN;
    if (csv->rows[row][column][0] == '\0') return DL_OK;
    if (field->type == DL_FIELD_CHOICE) return word(csv, row, column, field, out, err);
    DL_TRY(dl_csv_number(csv, row, column, out, err));
    const bool whole = field->type == DL_FIELD_INTEGER,
               ranged = field->min < field->max || field->min > field->max;
    if ((!whole || *out == floor(*out)) && (!ranged || (*out >= field->min && *out <= field->max)))
        return DL_OK;
    return dl_csv_fault(csv, row, column, err,
                        "expected a %snumber from %.15g to %.15g, got "
                        "\"%.60s\"",
                        whole ? "whole " : "", field->min, field->max, csv->rows[row][column]);
}
