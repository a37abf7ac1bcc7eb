/* kernel_model_math.h - arithmetic of kernel times, which a prediction evaluates a thousand
 * times: a few operations inline instead of calls of the C library. The same bits on every
 * machine (no fused multiply-add, no instructions beyond the compiler's usual). */
#ifndef DL_MODEL_MACHINE_KERNEL_MODEL_MATH_H
#define DL_MODEL_MACHINE_KERNEL_MODEL_MATH_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* The same operations in the same order with and without wide vectors (no fused multiply-add), so
 * results do not depend on the machine. Sanitizers and clang get the plain version; so does
 * coverage (DL_ONE_COPY), which would count the branches of each copy. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) &&                             \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(DL_ONE_COPY)
/* glibc has asked the processor already. Asking again at each start, as GCC's own dispatch does,
 * takes 80 us on a virtual machine, where every answer comes from the hypervisor. */
#if __has_include(<sys/platform/x86.h>)
#include <sys/platform/x86.h>
#define DL_HAS(glibc_name, gcc_name) CPU_FEATURE_ACTIVE(glibc_name)
#else
#define DL_HAS(glibc_name, gcc_name) __builtin_cpu_supports(gcc_name)
#endif
#define DL_AVX512 "avx512f,avx512bw,avx512cd,avx512dq,avx512vl"
static inline bool dl_has_avx512(void) {
    return DL_HAS(AVX512F, "avx512f") && DL_HAS(AVX512BW, "avx512bw") &&
           DL_HAS(AVX512CD, "avx512cd") && DL_HAS(AVX512DQ, "avx512dq") &&
           DL_HAS(AVX512VL, "avx512vl");
}
/* Defines `name`, which does what name_inline (DL_INLINE) does, in copies for wider vectors. */
#define DL_WIDE(name, parameters, arguments)                                                       \
    __attribute__((target(DL_AVX512))) static void name##_avx512 parameters {                      \
        name##_inline arguments;                                                                   \
    }                                                                                              \
    __attribute__((target("avx2"))) static void name##_avx2 parameters {                           \
        name##_inline arguments;                                                                   \
    }                                                                                              \
    void name parameters {                                                                         \
        if (dl_has_avx512())                                                                       \
            name##_avx512 arguments;                                                               \
        else if (DL_HAS(AVX2, "avx2"))                                                             \
            name##_avx2 arguments;                                                                 \
        else                                                                                       \
            name##_inline arguments;                                                               \
    }
#else
#define DL_WIDE(name, parameters, arguments)                                                       \
    void name parameters { name##_inline arguments; }
#endif
#ifdef DL_ONE_COPY
#define DL_INLINE static inline
#else
#define DL_INLINE static inline __attribute__((always_inline))
#endif

static inline double dl_larger(double a, double b) { return a > b ? a : b; }
static inline double dl_smaller(double a, double b) { return a < b ? a : b; }

/* Smallest whole number that is not below x: one instruction where the machine has it, else a call.
 */
static inline double dl_whole_up(double x) { return __builtin_ceil(x); }

/* log2 of a positive, normal number, to 1e-11; exact for powers of two. ln m = 2 atanh((m - 1) / (m
 * + 1)), m within sqrt(1/2)..sqrt(2), by its power series; 2.885 is 2 / ln 2. */
static inline double dl_log2_near(double x) {
    const uint64_t root_half = 0x3fe6a09e667f3bcdu, one = 0x3ff0000000000000u,
                   exponent_bits = 0xfff0000000000000u;
    uint64_t bits;
    double m;
    memcpy(&bits, &x, sizeof bits);
    /* of x / sqrt(1/2): its exponent is the one sought */
    const uint64_t scaled = bits - root_half + one;
    bits -= (scaled & exponent_bits) - one;
    memcpy(&m, &bits, sizeof m);
    const double s = (m - 1) / (m + 1), q = s * s;
    const double f = (q * q); /* terms in pairs: shorter chains */
    return (double)(int)(scaled >> 52) - 1023 +
           2.8853900817779268 * s *
               ((1 + q * (1.0 / 3)) + f * ((1.0 / 5 + q * (1.0 / 7)) +
                                           f * ((1.0 / 9 + q * (1.0 / 11)) + f * (1.0 / 13))));
}

/* 2^x to 1e-12, exact for whole numbers, for |x| <= 1000; further out as at 1000. x = whole + r,
 * |r| <= 1/2: a polynomial through 1 of least relative error, its terms in pairs. */
static inline double dl_exp2_near(double x) {
    /* 1.5 x 2^52: adding it leaves the nearest whole number in the last bits. */
    const double round = 6755399441055744.0, within = dl_larger(-1000, dl_smaller(1000, x));
    const double shifted = within + round, r = within - (shifted - round), q = (r * r), f = (q * q);
    const double low =
        (1 + r * 0.69314718054658875) + q * (0.2402265069773642 + r * 0.0555041093910126);
    const double high = (0.0096181286953298337 + r * 0.0013333452255383364) +
                        q * (0.00015403775196323191 + r * 1.5309693158684353e-05);
    uint64_t bits;
    double power;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits + 1023) << 52;
    memcpy(&power, &bits, sizeof power);
    return power * (low + f * (high + f * 1.3188824029932322e-06));
}

/* Cube root of u in 1..2, to 1e-9: a parabola (to 1e-3), then one of Halley's steps, which cubes
 * the error. */
static inline double dl_cube_root_near(double u) {
    const double t = u - 1, y = 1 + (0.3189 - 0.059 * t) * t, cube = y * y * y;
    return y * (cube + 2 * u) / (2 * cube + u);
}

/* Eight numbers at a time: GCC's and clang's vector type, lowered to the machine's vector width. */
typedef float dl_lanes __attribute__((vector_size(32)));
typedef float dl_lanes_row __attribute__((vector_size(32), may_alias)); /* in memory, aligned */
typedef float dl_lanes_in_memory __attribute__((vector_size(32), aligned(4), may_alias));
typedef int32_t dl_lane_bits __attribute__((vector_size(32)));
enum { DL_LANES = 8 };

/* log2 of positive, normal numbers in place, to 3e-7; exact for powers of two. The polynomial is
 * the least-squares one for log2(1 + t) / t on t = sqrt(1/2) - 1 .. sqrt(2) - 1 in Chebyshev
 * points. */
static inline __attribute__((always_inline)) void dl_log2_lanes(dl_lanes *numbers) {
    const int32_t root_half = 0x3f3504f3, one = 0x3f800000;
    dl_lane_bits bits = (dl_lane_bits)*numbers;
    const dl_lane_bits exponent = ((bits - root_half + one) >> 23) - 127;
    bits -= exponent << 23;
    const dl_lanes t = (dl_lanes)bits - 1.0F;
    const dl_lanes q = t * t, f = q * q; /* terms in pairs: shorter chains */
    const dl_lanes low = (1.442695F - t * 0.721347333F) + q * (0.48091061F - t * 0.360704828F);
    const dl_lanes high = (0.287918324F - t * 0.23892034F) + q * (0.215669859F - t * 0.207421035F);
    const dl_lanes p = low + f * (high + f * 0.126148466F);
    *numbers = p * t + __builtin_convertvector(exponent, dl_lanes);
}

#endif
