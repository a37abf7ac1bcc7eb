/* decimal.c - see decimal.h. Most numbers of data files have few digits: their digits and the power
 * of ten are exact doubles, so that one operation rounds correctly (Clinger 1990). strtod reads the
 * others. */
#include "model/base/decimal.h"

#include <float.h>
#include <stdlib.h>

/* 10^22 is the largest power of ten that a double holds exactly; 10^15 < 2^53. */
static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
enum { MOST_POWER = 22, MOST_DIGITS = 15 };

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

const char *dl_digits_power(const char *at, struct dl_digits *d) {
    int power = 0;
    const bool negative = *at == '-';
    if (*at == '+' || *at == '-') at++;
    if (!is_digit(*at)) return NULL;
    for (; is_digit(*at); at++)
        if (power < 10000) power = 10 * power + (*at - '0');
    d->power += negative ? -power : power;
    return at;
}

bool dl_digits_round(const struct dl_digits *d, double *out) {
    if (FLT_EVAL_METHOD != 0 || d->digit_count > MOST_DIGITS || d->power < -MOST_POWER ||
        d->power > MOST_POWER)
        return false;
    const double digits = (double)d->digits;
    *out = d->power < 0 ? digits / powers[-d->power] : digits * powers[d->power];
    return true;
}

double dl_decimal(const char *text, const char **end_out) {
    struct dl_digits d = {0, 0, 0};
    const bool negative = *text == '-';
    const char *first = text + (negative ? 1 : 0), *at = dl_digits_take(first, &d, 0);
    if (at > first && *at == '.' && is_digit(at[1])) at = dl_digits_take(at + 1, &d, -1);
    if (at > first && (*at == 'e' || *at == 'E')) {
        const char *behind = dl_digits_power(at + 1, &d);
        if (behind != NULL) at = behind;
    }
    double value;
    if (is_digit(*first) && *at != 'x' && *at != 'X' && *at != '.' && dl_digits_round(&d, &value)) {
        *end_out = at;
        return negative ? -value : value;
    }
    char *end;
    value = strtod(text, &end);
    *end_out = end;
    return value;
}
