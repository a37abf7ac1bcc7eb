/* csv_field.h - reads cells by the fields that describe their columns (type, unit, range, choices),
 * as printed by `dlmodel schema`. */
#ifndef DL_MODEL_CORE_CSV_FIELD_H
#define DL_MODEL_CORE_CSV_FIELD_H

#include "model/core/csv.h"
#include "model/core/json.h"

/* The field of a column; NULL: none. */
const struct dl_field *dl_csv_field_find(const struct dl_schema *schema, const char *column);

/* The cell of a NUMBER or INTEGER column, in the column's unit, or the index of a CHOICE's word;
 * NAN when empty. DL_ERR_INPUT with line and column when it is not a number, not an integer,
 * outside the field's range or an unknown word. */
enum dl_code dl_csv_field(const struct dl_csv *csv, int row, int column,
                          const struct dl_field *field, double *out, struct dl_err *err);

#endif
