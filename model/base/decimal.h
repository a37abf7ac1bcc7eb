/* decimal.h - numbers in text, as strtod reads them. */
#ifndef DL_MODEL_BASE_DECIMAL_H
#define DL_MODEL_BASE_DECIMAL_H

#include <stdbool.h>
#include <stdint.h>

/* The number at the beginning of the text, correctly rounded: what strtod returns in the "C" locale
 * for text that begins with a digit or a minus sign. *end_out: behind it. */
double dl_decimal(const char *text, const char **end_out);

/* Digits of a number without leading zeros, as an integer (of more than 19 digits only the
 * remainder modulo 2^64), how many they are, and the power of ten that multiplies them. */
struct dl_digits {
    uint64_t digits;
    int digit_count, power;
};

/* Takes the digits at `at`, each of which adds power_each to the power; what follows them. */
static inline const char *dl_digits_take(const char *at, struct dl_digits *d, int power_each) {
    const char *const start = at;
    if (d->digit_count == 0)
        while (*at == '0') at++;
    const char *const significant = at;
    for (; *at >= '0' && *at <= '9'; at++) d->digits = 10 * d->digits + (uint64_t)(*at - '0');
    d->digit_count += (int)(at - significant);
    d->power += power_each * (int)(at - start);
    return at;
}

/* Takes a power of ten: digits after a sign or none; what follows them, NULL without a digit. */
const char *dl_digits_power(const char *at, struct dl_digits *d);

/* The number when one operation on doubles rounds it correctly; false: strtod must read it. */
bool dl_digits_round(const struct dl_digits *d, double *out);

#endif
