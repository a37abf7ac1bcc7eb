/* units.h - quantities with units: the only place that knows 1e9 and 1024.
 *
 * Inside the program everything is SI without prefixes: s, byte, byte/s, flop, flop/s. People write
 * "25GB/s", "100Gb/s", "64MiB", "1.5us"; decimal prefixes (k M G T P E, n u m) are powers of ten,
 * binary ones (Ki Mi Gi Ti) powers of two, "b" is a bit and "B" a byte. GB and GiB are different.
 */
#ifndef DL_MODEL_CORE_UNITS_H
#define DL_MODEL_CORE_UNITS_H

#include <stdint.h>

#include <stddef.h>
#include "model/core/status.h"

enum dl_unit {
    DL_UNIT_NONE,  /* dimensionless */
    DL_UNIT_COUNT, /* whole number */
    DL_UNIT_S,
    DL_UNIT_BYTE,
    DL_UNIT_BYTE_PER_S,
    DL_UNIT_S_PER_BYTE,
    DL_UNIT_FLOP,
    DL_UNIT_FLOP_PER_S,
    DL_UNIT_HZ,
    DL_UNIT_W,
    DL_UNIT_J,
    DL_UNIT_SAMPLE,
    DL_UNIT_SAMPLE_PER_S,
    DL_UNITS
};

/* Parses all of `text` as a quantity of `unit`; a bare number is in SI units. *value_out is in SI.
 * DL_ERR_USAGE: not a number, not finite, trailing text, a unit of another kind. */
enum dl_code dl_units_parse(const char *text, enum dl_unit unit, double *value_out,
                            struct dl_err *err);

/* Text for people with 3 significant digits and an automatic prefix ("1.28 ms", "25.0 GB/s", "97.5
 * MiB": bytes print in binary prefixes, rates in decimal ones). NaN prints "unknown". */
void dl_units_format(double value, enum dl_unit unit, char *out, size_t out_size);

/* "s", "byte", "byte/s", ... ; "" for DL_UNIT_NONE. */
const char *dl_unit_name(enum dl_unit unit);

/* A LIST of whole numbers: "16", "1,2,4", "1-64*2" (1,2,4,...,64), "1-4" (1,2,3,4).
 * Each in [1, 1e9], at most `max` values. Error DL_ERR_USAGE names what was expected. */
enum dl_code dl_list_parse(const char *text, int64_t *values, size_t max, size_t *count_out,
                           struct dl_err *err);

#endif
