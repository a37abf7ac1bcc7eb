/* decimal.c - see decimal.h. Most numbers of data files have few digits: their digits and the
 * power of ten are exact doubles, so that one operation rounds correctly (Clinger 1990). Fractions
 * of up to 19 digits, as fits write them, are quotients of two whole numbers. strtod reads the
 * others. */
#include "model/core/decimal.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* 10^22 is the largest power of ten that a double holds exactly; 10^15 < 2^53. */
static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
enum { MOST_POWER = 22, MOST_DIGITS = 15 };

/* 10^19 is the largest power of ten below 2^64, and any 19 digits are below it. */
#ifdef __SIZEOF_INT128__
__extension__ typedef unsigned __int128 wide;
enum { LONG_DIGITS = 19 };
static const uint64_t whole_powers[LONG_DIGITS + 1] = {1,
                                                       10,
                                                       100,
                                                       1000,
                                                       10000,
                                                       100000,
                                                       1000000,
                                                       10000000,
                                                       100000000,
                                                       1000000000,
                                                       10000000000,
                                                       100000000000,
                                                       1000000000000,
                                                       10000000000000,
                                                       100000000000000,
                                                       1000000000000000,
                                                       10000000000000000,
                                                       100000000000000000,
                                                       1000000000000000000,
                                                       10000000000000000000U};

/* digits / 10^places, correctly rounded: at least 63 bits of the quotient, the last one set where
 * more follow, so that the conversion to 53 bits decides as it would on all of them. */
static double long_fraction(uint64_t digits, int places) {
    const uint64_t divisor = whole_powers[places];
    const int up = __builtin_clzll(digits | 1) /* of 0 it has none */,
              down = __builtin_clzll(divisor);
    const wide dividend = (wide)(digits << up) << 63;
    const uint64_t quotient = (uint64_t)(dividend / (divisor << down)),
                   more = dividend % (divisor << down) != 0;
    return ldexp((double)(quotient | more), down - up - 63);
}
#else
enum { LONG_DIGITS = MOST_DIGITS };
static double long_fraction(uint64_t digits, int places) { return (double)digits / powers[places]; }
#endif

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Digits and the power of ten of a number; false: more than this file can round. */
struct parts {
    uint64_t digits;
    int digit_count, power;
};

static const char *take_digits(const char *at, struct parts *p, int power_each) {
    for (; is_digit(*at); at++) {
        p->power += power_each;
        if (p->digit_count == 0 && *at == '0') continue; /* leading zeros */
        if (++p->digit_count <= LONG_DIGITS) p->digits = 10 * p->digits + (uint64_t)(*at - '0');
    }
    return at;
}

static const char *take_exponent(const char *at, struct parts *p) {
    const char *start = at + 1;
    int power = 0;
    const bool negative = *start == '-';
    if (*start == '+' || *start == '-') start++;
    if (!is_digit(*start)) return at;
    for (at = start; is_digit(*at); at++)
        if (power < 10000) power = 10 * power + (*at - '0');
    p->power += negative ? -power : power;
    return at;
}

/* Whether the value has a short way to it, which rounds as strtod does. */
static bool short_way(const struct parts *p, double *out) {
    if (p->digit_count <= MOST_DIGITS && p->power >= -MOST_POWER && p->power <= MOST_POWER) {
        const double digits = (double)p->digits;
        *out = p->power < 0 ? digits / powers[-p->power] : digits * powers[p->power];
        return true;
    }
    if (p->digit_count > LONG_DIGITS || p->power < -LONG_DIGITS || p->power > 0) return false;
    *out = long_fraction(p->digits, -p->power);
    return true;
}

double dl_decimal(const char *text, const char **end_out) {
    struct parts p = {0, 0, 0};
    const bool negative = *text == '-';
    const char *first = text + (negative ? 1 : 0), *at = take_digits(first, &p, 0);
    if (at > first && *at == '.' && is_digit(at[1])) at = take_digits(at + 1, &p, -1);
    if (at > first && (*at == 'e' || *at == 'E')) at = take_exponent(at, &p);
    const bool decimal =
        FLT_EVAL_METHOD == 0 && is_digit(*first) && *at != 'x' && *at != 'X' && *at != '.';
    double value;
    if (decimal && short_way(&p, &value)) {
        *end_out = at;
        return negative ? -value : value;
    }
    char *end;
    value = strtod(text, &end);
    *end_out = end;
    return value;
}

const char *dl_decimal_plain(const char *text, double *out) {
    const bool negative = *text == '-';
    const char *first = text + (negative ? 1 : 0), *at = first;
    uint64_t digits = 0;
    while (is_digit(*at)) digits = 10 * digits + (uint64_t)(*at++ - '0');
    long count = at - first, fraction = 0;
    if (count == 0 || (*first == '0' && count > 1)) return NULL;
    if (*at == '.') {
        const char *point = at++;
        while (is_digit(*at)) digits = 10 * digits + (uint64_t)(*at++ - '0');
        fraction = at - point - 1;
        if (fraction == 0) return NULL;
        count += fraction;
    }
    if (FLT_EVAL_METHOD != 0 || count > LONG_DIGITS || *at == 'e' || *at == 'E') return NULL;
    const double value = fraction == 0          ? (double)digits
                         : count <= MOST_DIGITS ? (double)digits / powers[fraction]
                                                : long_fraction(digits, (int)fraction);
    *out = negative ? -value : value;
    return at;
}
