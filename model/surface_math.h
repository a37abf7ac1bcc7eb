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
 * sqrt(1/2)..sqrt(2), by its power series; 2.885 is 2 / ln 2. */
static inline double dl_log2_near(double x) {
    const uint64_t root_half = 0x3fe6a09e667f3bcdu, one = 0x3ff0000000000000u, exponent_bits = 0xfff0000000000000u;
    uint64_t bits;
    double m;
    memcpy(&bits, &x, sizeof bits);
    const uint64_t scaled = bits - root_half + one; /* of x / sqrt(1/2): its exponent is the one sought */
    bits -= (scaled & exponent_bits) - one;
    memcpy(&m, &bits, sizeof m);
    const double s = (m - 1) / (m + 1), q = s * s;
    return (double)(int)(scaled >> 52) - 1023 +
           2.8853900817779268 * s * (1 + q * (1.0 / 3 + q * (1.0 / 5 + q * (1.0 / 7 + q * (1.0 / 9 + q * (1.0 / 11 + q / 13))))));
}

/* Cube root of u in 1..2, to 1e-9: a parabola (to 1e-3), then one of Halley's steps, which cubes the error. */
static inline double dl_cube_root_near(double u) {
    const double t = u - 1, y = 1 + (0.3189 - 0.059 * t) * t, cube = y * y * y;
    return y * (cube + 2 * u) / (2 * cube + u);
}

/* Eight numbers at a time: GCC's and clang's vector type, lowered to what the machine has. */
typedef float dl_lanes __attribute__((vector_size(32)));
typedef float dl_lanes_in_memory __attribute__((vector_size(32), aligned(4), may_alias));
typedef int32_t dl_lane_bits __attribute__((vector_size(32)));
enum { DL_LANES = 8 };

/* log2 of eight positive, normal numbers in place, to 3e-7; exact for powers of two. The polynomial is the least-squares one for
 * log2(1 + t) / t on t = sqrt(1/2) - 1 .. sqrt(2) - 1 in Chebyshev points. */
static inline void dl_log2_lanes(float *numbers) {
    const int32_t root_half = 0x3f3504f3, one = 0x3f800000;
    dl_lane_bits bits;
    dl_lanes mantissa;
    memcpy(&bits, numbers, sizeof bits);
    const dl_lane_bits exponent = ((bits - root_half + one) >> 23) - 127;
    bits -= exponent << 23;
    memcpy(&mantissa, &bits, sizeof mantissa);
    const dl_lanes t = mantissa - 1.0F;
    dl_lanes p = t * 0.126148466F - 0.207421035F;
    p = p * t + 0.215669859F;
    p = p * t - 0.23892034F;
    p = p * t + 0.287918324F;
    p = p * t - 0.360704828F;
    p = p * t + 0.48091061F;
    p = p * t - 0.721347333F;
    p = p * t + 1.442695F;
    const dl_lanes log2s = p * t + __builtin_convertvector(exponent, dl_lanes);
    memcpy(numbers, &log2s, sizeof log2s);
}

#endif
