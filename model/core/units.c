/* units.c - the prefix and unit tables, and lists of whole numbers.
 * Does not convert between kinds (flop to s), and knows no calendar units beyond the hour.
 */
#include "model/core/units.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Decimal prefixes are added to the number's own exponent before it is converted, so that "1.5us"
 * and "4.1G" are the doubles nearest to 1.5e-6 and 4.1e9; binary ones multiply, which is exact. */
struct prefix {
    const char *text;
    int exponent;
    double times;
};

static const struct prefix small_prefixes[] = {
    {"p", -12, 1},       {"n", -9, 1}, {"u", -6, 1}, {"\xc2\xb5", -6, 1}, /* U+00B5 micro sign */
    {"\xce\xbc", -6, 1},                                                  /* U+03BC Greek mu */
    {"m", -3, 1},        {NULL, 0, 0},
};
static const struct prefix large_prefixes[] = {
    {"k", 3, 1},  {"K", 3, 1},  {"M", 6, 1},  {"G", 9, 1},
    {"T", 12, 1}, {"P", 15, 1}, {"E", 18, 1}, {NULL, 0, 0},
};
static const struct prefix binary_prefixes[] = {
    {"Ki", 0, 1024.0},          {"Mi", 0, 1048576.0},          {"Gi", 0, 1073741824.0},
    {"Ti", 0, 1099511627776.0}, {"Pi", 0, 1125899906842624.0}, {NULL, 0, 0},
};

/* As people count tokens: 300B. */
static const struct prefix count_prefixes[] = {{"B", 9, 1}, {NULL, 0, 0}};

enum { SMALL = 1, LARGE = 2, BINARY = 4, BILLION = 8 };

#define MAX_COUNT 9007199254740992.0 /* 2^53: all whole numbers up to here are doubles */

/* A spelling of a unit, the prefixes it takes, and its size in SI. Case counts: b is a bit, B a
 * byte. */
struct spelling {
    enum dl_unit unit;
    const char *text;
    int prefixes;
    double times, over;
};

static const struct spelling spellings[] = {
    {DL_UNIT_NONE, "", LARGE | BINARY, 1, 1},
    {DL_UNIT_NONE, "%", 0, 1, 100},
    {DL_UNIT_COUNT, "", LARGE | BINARY | BILLION, 1, 1},
    {DL_UNIT_S, "s", SMALL, 1, 1},
    {DL_UNIT_S, "min", 0, 60, 1},
    {DL_UNIT_S, "h", 0, 3600, 1},
    {DL_UNIT_S, "d", 0, 86400, 1},
    {DL_UNIT_S, "w", 0, 604800, 1},
    {DL_UNIT_BYTE, "B", LARGE | BINARY, 1, 1},
    {DL_UNIT_BYTE, "byte", LARGE | BINARY, 1, 1},
    {DL_UNIT_BYTE, "bytes", LARGE | BINARY, 1, 1},
    {DL_UNIT_BYTE, "b", LARGE | BINARY, 1, 8},
    {DL_UNIT_BYTE, "bit", LARGE | BINARY, 1, 8},
    {DL_UNIT_BYTE, "bits", LARGE | BINARY, 1, 8},
    {DL_UNIT_BYTE_PER_S, "B/s", LARGE | BINARY, 1, 1},
    {DL_UNIT_BYTE_PER_S, "byte/s", LARGE | BINARY, 1, 1},
    {DL_UNIT_BYTE_PER_S, "bytes/s", LARGE | BINARY, 1, 1},
    {DL_UNIT_BYTE_PER_S, "b/s", LARGE | BINARY, 1, 8},
    {DL_UNIT_BYTE_PER_S, "bit/s", LARGE | BINARY, 1, 8},
    {DL_UNIT_BYTE_PER_S, "bits/s", LARGE | BINARY, 1, 8},
    {DL_UNIT_BYTE_PER_S, "bps", LARGE, 1, 8},
    {DL_UNIT_S_PER_BYTE, "s/B", SMALL, 1, 1},
    {DL_UNIT_S_PER_BYTE, "s/byte", SMALL, 1, 1},
    {DL_UNIT_FLOP, "flop", LARGE, 1, 1},
    {DL_UNIT_FLOP, "FLOP", LARGE, 1, 1},
    {DL_UNIT_FLOP_PER_S, "flop/s", LARGE, 1, 1},
    {DL_UNIT_FLOP_PER_S, "FLOP/s", LARGE, 1, 1},
    {DL_UNIT_FLOP_PER_S, "FLOPS", LARGE, 1, 1},
    {DL_UNIT_HZ, "Hz", LARGE, 1, 1},
    {DL_UNIT_W, "W", SMALL | LARGE, 1, 1},
    {DL_UNIT_J, "J", SMALL | LARGE, 1, 1},
    {DL_UNIT_SAMPLE, "", LARGE, 1, 1},
    {DL_UNIT_SAMPLE, "sample", 0, 1, 1},
    {DL_UNIT_SAMPLE, "samples", 0, 1, 1},
    {DL_UNIT_SAMPLE_PER_S, "sample/s", 0, 1, 1},
    {DL_UNIT_SAMPLE_PER_S, "samples/s", 0, 1, 1},
};

struct step {
    double from; /* use this prefix for magnitudes that round to at least this */
    double size;
    const char *prefix;
};

static const struct step time_steps[] = {
    {7200, 3600, "h"},       {999.5, 60, "min"},      {0.9995, 1, "s"}, {0.9995e-3, 1e-3, "ms"},
    {0.9995e-6, 1e-6, "us"}, {0.9995e-9, 1e-9, "ns"}, {0, 1e-12, "ps"}, {0, 0, NULL},
};
static const struct step per_byte_steps[] = {
    {0.9995, 1, ""},        {0.9995e-3, 1e-3, "m"}, {0.9995e-6, 1e-6, "u"},
    {0.9995e-9, 1e-9, "n"}, {0, 1e-12, "p"},        {0, 0, NULL},
};
static const struct step decimal_steps[] = {
    {0.9995e18, 1e18, "E"},
    {0.9995e15, 1e15, "P"},
    {0.9995e12, 1e12, "T"},
    {0.9995e9, 1e9, "G"},
    {0.9995e6, 1e6, "M"},
    {0.9995e3, 1e3, "k"},
    {0, 1, ""},
    {0, 0, NULL},
};
static const struct step binary_steps[] = {
    {1023.5 * 1099511627776.0, 1125899906842624.0, "Pi"},
    {1023.5 * 1073741824.0, 1099511627776.0, "Ti"},
    {1023.5 * 1048576.0, 1073741824.0, "Gi"},
    {1023.5 * 1024.0, 1048576.0, "Mi"},
    {1023.5, 1024.0, "Ki"},
    {0, 1, ""},
    {0, 0, NULL},
};

/* A unit: its name, what errors say was expected, and how values are printed: with prefixes in
 * steps before the suffix, or without (steps NULL). */
struct unit {
    const char *name, *wanted;
    const struct step *steps;
    const char *suffix;
};

/* clang-format off */
static const struct unit units[DL_UNITS] = {
    [DL_UNIT_NONE] = {"", "a number such as 0.5 or 50%", NULL, ""},
    [DL_UNIT_COUNT] = {"", "a whole number such as 16 or 64k", NULL, ""},
    [DL_UNIT_S] = {"s", "a time such as 1.5us, 20ms, 36h, 60d, 2w or 3 (seconds)", time_steps, ""},
    [DL_UNIT_BYTE] = {"byte", "a size such as 64MiB, 25MB or 4096 (bytes)", binary_steps, "B"},
    [DL_UNIT_BYTE_PER_S] = {"byte/s", "a bandwidth such as 25GB/s, 100Gb/s or 2.5e10 (byte/s)",
                            decimal_steps, "B/s"},
    [DL_UNIT_S_PER_BYTE] = {"s/byte", "a time per byte such as 40ps/B or 4e-11 (s/byte)",
                            per_byte_steps, "s/B"},
    [DL_UNIT_FLOP] = {"flop", "an amount of work such as 4.1GFLOP or 4.1e9 (flop)",
                      decimal_steps, "flop"},
    [DL_UNIT_FLOP_PER_S] = {"flop/s", "a rate such as 15.7TFLOP/s or 1.57e13 (flop/s)",
                            decimal_steps, "flop/s"},
    [DL_UNIT_HZ] = {"Hz", "a frequency such as 1.53GHz or 1.53e9 (Hz)", decimal_steps, "Hz"},
    [DL_UNIT_W] = {"W", "a power such as 300W or 300", decimal_steps, "W"},
    [DL_UNIT_J] = {"J", "an energy such as 5kJ or 5000 (J)", decimal_steps, "J"},
    [DL_UNIT_SAMPLE] = {"sample", "a number of samples such as 256 or 1.28M", NULL, "samples"},
    [DL_UNIT_SAMPLE_PER_S] = {"sample/s", "a throughput such as 1200samples/s or 1200",
                              NULL, "samples/s"},
};
/* clang-format on */

static const struct unit *unit_of(enum dl_unit unit) {
    return &units[(int)unit < 0 || unit >= DL_UNITS ? DL_UNIT_NONE : unit];
}

const char *dl_unit_name(enum dl_unit unit) { return unit_of(unit)->name; }

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Length of the decimal number that `text` starts with, 0 when there is none. strtod alone would
 * also take hex floats, "inf" and "nan"; an "E" that no digit follows is the prefix exa. */
static size_t number_length(const char *text) {
    size_t i = 0, digits = 0;

    if (text[i] == '+' || text[i] == '-') i++;
    for (; is_digit(text[i]); i++) digits++;
    if (text[i] == '.') {
        i++;
        for (; is_digit(text[i]); i++) digits++;
    }
    if (digits == 0) return 0;
    if (text[i] == 'e' || text[i] == 'E') {
        size_t e = i + 1;

        if (text[e] == '+' || text[e] == '-') e++;
        if (is_digit(text[e])) {
            while (is_digit(text[e])) e++;
            i = e;
        }
    }
    return i;
}

/* What a suffix does to the number before it: value = number * 10^exponent * times / over. */
struct factor {
    int exponent;
    double times, over;
};

static bool match_prefix(const struct prefix *table, const char *text, size_t length,
                         struct factor *factor) {
    for (; table->text != NULL; table++) {
        if (strlen(table->text) == length && strncmp(table->text, text, length) == 0) {
            factor->exponent = table->exponent;
            factor->times = table->times;
            return true;
        }
    }
    return false;
}

/* Factor of a suffix "GiB/s"; false when it is not one of `unit`. */
static bool match_suffix(const char *suffix, enum dl_unit unit, struct factor *factor) {
    size_t length = strlen(suffix);

    *factor = (struct factor){0, 1, 1};
    if (length == 0) return true;
    for (size_t i = 0; i < sizeof spellings / sizeof spellings[0]; i++) {
        const struct spelling *s = &spellings[i];
        size_t unit_length = strlen(s->text), prefix;

        if (s->unit != unit || unit_length > length) continue;
        prefix = length - unit_length;
        if (strcmp(suffix + prefix, s->text) != 0) continue;
        if (prefix > 0 &&
            !((s->prefixes & SMALL) && match_prefix(small_prefixes, suffix, prefix, factor)) &&
            !((s->prefixes & LARGE) && match_prefix(large_prefixes, suffix, prefix, factor)) &&
            !((s->prefixes & BINARY) && match_prefix(binary_prefixes, suffix, prefix, factor)) &&
            !((s->prefixes & BILLION) && match_prefix(count_prefixes, suffix, prefix, factor)))
            continue;
        factor->times *= s->times;
        factor->over = s->over;
        return true;
    }
    return false;
}

/* `number` passed number_length. */
static double apply(const char *number, const struct factor *factor) {
    size_t mantissa = strcspn(number, "eE");
    /* saturates */
    long exponent = number[mantissa] != '\0' ? strtol(number + mantissa + 1, NULL, 10) : 0;
    char text[96];

    if (exponent > 100000) exponent = 100000;
    if (exponent < -100000) exponent = -100000;
    snprintf(text, sizeof text, "%.*se%ld", (int)mantissa, number, exponent + factor->exponent);
    return strtod(text, NULL) * factor->times / factor->over;
}

enum dl_code dl_units_parse(const char *text, enum dl_unit unit, double *value_out,
                            struct dl_err *err) {
    const char *start = text, *end, *wanted = unit_of(unit)->wanted;
    char number[64], suffix[32];
    size_t length, rest;
    struct factor factor;
    double value;

    if ((int)unit < 0 || unit >= DL_UNITS) unit = DL_UNIT_NONE;
    if (text == NULL) return dl_fail(err, DL_ERR_USAGE, "expected %s, got nothing", wanted);
    while (*start == ' ') start++;
    end = start + strlen(start);
    while (end > start && end[-1] == ' ') end--;
    length = number_length(start);
    if (length == 0 || length >= sizeof number || length > (size_t)(end - start)) goto wrong;
    memcpy(number, start, length);
    number[length] = '\0';
    start += length;
    while (start < end && *start == ' ') start++;
    rest = (size_t)(end - start);
    if (rest >= sizeof suffix) goto wrong;
    memcpy(suffix, start, rest);
    suffix[rest] = '\0';
    if (!match_suffix(suffix, unit, &factor)) goto wrong;
    value = apply(number, &factor);
    if (!isfinite(value))
        return dl_fail(err, DL_ERR_USAGE, "expected %s, got \"%.80s\": too large", wanted, text);
    if (unit == DL_UNIT_COUNT && (value != floor(value) || fabs(value) > MAX_COUNT)) goto wrong;
    *value_out = value;
    return DL_OK;
wrong:
    return dl_fail(err, DL_ERR_USAGE, "expected %s, got \"%.80s\"", wanted, text);
}

/* Three significant digits without an exponent where that is readable. */
static void format_plain(double value, const char *suffix, char *out, size_t out_size) {
    double size = fabs(value);
    const char *space = suffix[0] != '\0' ? " " : "";
    int decimals = size < 0.9995 ? 3 : size < 9.995 ? 2 : size < 99.95 ? 1 : 0;

    if (value == 0)
        snprintf(out, out_size, "0%s%s", space, suffix);
    else if (size < 0.09995 || size >= 1e15)
        snprintf(out, out_size, "%.3g%s%s", value, space, suffix);
    else
        snprintf(out, out_size, "%.*f%s%s", decimals, value, space, suffix);
}

static void format_steps(double value, const struct step *steps, const char *unit, char *out,
                         size_t out_size) {
    char suffix[32];

    while (steps[1].prefix != NULL && fabs(value) < steps->from) steps++;
    snprintf(suffix, sizeof suffix, "%s%s", steps->prefix, unit);
    format_plain(value / steps->size, suffix, out, out_size);
}

void dl_units_format(double value, enum dl_unit unit, char *out, size_t out_size) {
    const struct unit *u = unit_of(unit);

    if (out_size == 0) return;
    if (isnan(value))
        snprintf(out, out_size, "unknown");
    else if (isinf(value))
        snprintf(out, out_size, "%sinfinite", value < 0 ? "-" : "");
    else if (u->steps != NULL && value != 0)
        format_steps(value, u->steps, u->suffix, out, out_size);
    else if (unit == DL_UNIT_COUNT)
        snprintf(out, out_size, fabs(value) <= MAX_COUNT ? "%.0f" : "%.6g", value);
    else if (unit == DL_UNIT_SAMPLE && fabs(value) == 1)
        format_plain(value, u->name, out, out_size);
    else /* 0 has no prefix: the unit alone */
        format_plain(value, unit == DL_UNIT_S ? u->name : u->suffix, out, out_size);
}

enum { LIST_LIMIT = 1000000000 }; /* largest value in a list */

/* Digits only; false when there are none or the value is outside [1, LIST_LIMIT]. */
static bool list_number(const char **cursor, int64_t *value) {
    const char *c = *cursor;

    *value = 0;
    while (is_digit(*c)) {
        *value = *value * 10 + (*c++ - '0');
        if (*value > LIST_LIMIT) return false;
    }
    if (c == *cursor || *value < 1) return false;
    *cursor = c;
    return true;
}

/* One item "16", "1-4" or "1-64*2". */
static bool list_item(const char **cursor, int64_t *from, int64_t *to, int64_t *factor) {
    *factor = 1;
    if (!list_number(cursor, from)) return false;
    *to = *from;
    if (**cursor != '-') return true;
    ++*cursor;
    if (!list_number(cursor, to) || *to < *from) return false;
    if (**cursor != '*') return true;
    ++*cursor;
    return list_number(cursor, factor) && *factor >= 2;
}

enum dl_code dl_list_parse(const char *text, int64_t *values, size_t max, size_t *count_out,
                           struct dl_err *err) {
    const char *cursor = text != NULL ? text : "";
    size_t count = 0;

    for (;;) {
        int64_t from, to, factor;

        if (!list_item(&cursor, &from, &to, &factor)) goto wrong;
        for (int64_t value = from; value <= to; value = factor > 1 ? value * factor : value + 1) {
            if (count == max)
                return dl_fail(err, DL_ERR_USAGE, "expected at most %zu values, got \"%.80s\"", max,
                               text);
            values[count++] = value;
        }
        if (*cursor == '\0') break;
        if (*cursor++ != ',') goto wrong;
    }
    *count_out = count;
    return DL_OK;
wrong:
    return dl_fail(err, DL_ERR_USAGE,
                   "expected a count or range such as 16, 1,2,4 or 1-64*2, got \"%.80s\"",
                   text != NULL ? text : "");
}
