/* surface_math.h - arithmetic of kernel times, which are asked for a thousand times a prediction: a few operations inline instead
 * of calls of the C library. The same bits on every machine (no fused multiply-add, no instructions beyond the compiler's usual).
 */
#ifndef DL_MODEL_SURFACE_MATH_H
#define DL_MODEL_SURFACE_MATH_H

#include <stdint.h>
#include <string.h>

static inline double dl_larger(double a, double b) { return a > b ? a : b; }
static inline double dl_smaller(double a, double b) { return a < b ? a : b; }

/* Smallest whole number that is not below x; x itself beyond 2^52, where every double is whole. */
static inline double dl_whole_up(double x) {
    if (!(x < 4503599627370496.0 && x > -4503599627370496.0)) return x;
    const double whole = (double)(int64_t)x;
    return whole < x ? whole + 1 : whole;
}

/* log2 of a positive, normal number, to 1e-11; exact for powers of two. ln m = 2 atanh((m - 1) / (m + 1)), m within
 * sqrt(1/2)..sqrt(2), by its power series. */
static inline double dl_log2_near(double x) {
    const double per_ln2 = 2.8853900817779268; /* 2 / ln 2 */
    const uint64_t root_half = 0x3fe6a09e667f3bcdu, one = 0x3ff0000000000000u, exponent_bits = 0xfff0000000000000u;
    uint64_t bits;
    double m;
    memcpy(&bits, &x, sizeof bits);
    const uint64_t scaled = bits - root_half + one; /* of x / sqrt(1/2): its exponent is the one sought */
    bits -= (scaled & exponent_bits) - one;
    memcpy(&m, &bits, sizeof m);
    const double s = (m - 1) / (m + 1), q = s * s;
    return (double)(int)(scaled >> 52) - 1023 +
           per_ln2 * s * (1 + q * (1.0 / 3 + q * (1.0 / 5 + q * (1.0 / 7 + q * (1.0 / 9 + q * (1.0 / 11 + q / 13))))));
}

/* Cube root of u in 1..2, to 1e-9: a parabola (to 1e-3), then one of Halley's steps, which cubes the error. */
static inline double dl_cube_root_near(double u) {
    const double t = u - 1, y = 1 + (0.3189 - 0.059 * t) * t, cube = y * y * y;
    return y * (cube + 2 * u) / (2 * cube + u);
}

#endif
