/* fit_laws.c - see the header. */
#include "calibrate/fits/fit_laws.h"

#include <math.h>
#include <stddef.h>

/* GEMM: sides from 64 to 16,384 by factors of 2. */
enum { SIDES = 9, LEAST_SIDE = 64, NARROW_FROM = 2048 };
/* Clocks exceed those of a datasheet's peak by up to a tenth (GTX 1080 Ti). */
static const double MONOTONE = 1.1, NARROW = 1.1, ABOVE_PEAK = 1.1, ROUNDING = 1.0 + 1e-9;

static double time_of(const struct dl_device *device, enum dl_precision precision,
                      const struct dl_kernel *kernel) {
    struct dl_kernel_time time;
    dl_kernel_time(device, precision, kernel, &time);
    return time.time_s;
}

/* ratio: of a time to the longest that the law allows. */
static void check(struct dl_law_breach *worst, const char *law, enum dl_precision precision,
                  const struct dl_kernel *kernel, const struct dl_kernel *other, double ratio) {
    if (!(ratio > ROUNDING)) return;
    const int count = worst->count + 1;
    if (ratio > worst->ratio)
        *worst = (struct dl_law_breach){law, precision, *kernel, *other, ratio, 0};
    worst->count = count;
}

static bool has_rate(const struct dl_device *device, enum dl_precision precision) {
    return dl_device_peak(device, precision) > 0.0;
}

static void check_peak(const struct dl_device *device, enum dl_precision precision,
                       const struct dl_kernel *kernel, double time_s, struct dl_law_breach *worst) {
    check(worst, "no faster than the peak", precision, kernel, kernel,
          (kernel->flop / dl_device_peak(device, precision)) / (ABOVE_PEAK * time_s));
}

static void check_gemms(const struct dl_device *device, enum dl_precision precision,
                        struct dl_law_breach *worst) {
    double times[SIDES][SIDES][SIDES];
    for (int i = 0; i < SIDES * SIDES * SIDES; i++) {
        const int at[] = {i / SIDES / SIDES, i / SIDES % SIDES, i % SIDES};
        const double m = ldexp(LEAST_SIDE, at[0]), n = ldexp(LEAST_SIDE, at[1]),
                     k = ldexp(LEAST_SIDE, at[2]);
        const struct dl_kernel gemm = dl_kernel_gemm(DL_FORWARD, m, n, k, 1);
        const double time_s = time_of(device, precision, &gemm);
        times[at[0]][at[1]][at[2]] = time_s;
        check_peak(device, precision, &gemm, time_s, worst);
        for (int side = 0; side < 3; side++) {
            if (at[side] == 0) continue;
            int of[] = {at[0], at[1], at[2]};
            of[side]--;
            const struct dl_kernel shorter =
                dl_kernel_gemm(DL_FORWARD, ldexp(LEAST_SIDE, of[0]), ldexp(LEAST_SIDE, of[1]),
                               ldexp(LEAST_SIDE, of[2]), 1);
            check(worst, "monotone in m, n, k within 10 %", precision, &shorter, &gemm,
                  times[of[0]][of[1]][of[2]] / (MONOTONE * time_s));
        }
        if (precision < DL_FP8 || fmin(fmin(m, n), k) < NARROW_FROM || !has_rate(device, DL_BF16))
            continue;
        check(worst, "8 bits at most 1.1 of 16 bits", precision, &gemm, &gemm,
              time_s / (NARROW * time_of(device, DL_BF16, &gemm)));
    }
}

static void check_attention(const struct dl_device *device, enum dl_precision precision,
                            struct dl_law_breach *worst) {
    static const double tokens[] = {512, 1024, 2048, 4096, 8192, 16384, 32768},
                        heads[] = {8, 16, 32, 128}, dims[] = {64, 128}, batches[] = {1, 4, 16};
    enum { TOKENS = 7, HEADS = 4, DIMS = 2, BATCHES = 3 };
    for (int i = 0; i < TOKENS * HEADS * DIMS * BATCHES; i++) {
        const double t = tokens[i % TOKENS], h = heads[i / TOKENS % HEADS],
                     d = dims[i / TOKENS / HEADS % DIMS], b = batches[i / TOKENS / HEADS / DIMS];
        const struct dl_attention_shape full = {.batch = b,
                                                .heads = h,
                                                .kv_heads = h,
                                                .queries = t,
                                                .keys = t,
                                                .head_dim = d,
                                                .value_dim = d};
        struct dl_attention_shape causal = full;
        causal.causal = true;
        const struct dl_kernel kernels[] = {dl_kernel_attention(DL_FORWARD, &full),
                                            dl_kernel_attention(DL_FORWARD, &causal),
                                            dl_kernel_attention(DL_BACKWARD_DATA, &full),
                                            dl_kernel_attention(DL_BACKWARD_DATA, &causal)};
        double times[4];
        for (int j = 0; j < 4; j++) {
            times[j] = time_of(device, precision, &kernels[j]);
            check_peak(device, precision, &kernels[j], times[j], worst);
        }
        for (int j = 0; j < 2; j++) {
            check(worst, "causal attention at most full", precision, &kernels[2 * j + 1],
                  &kernels[2 * j], times[2 * j + 1] / times[2 * j]);
            check(worst, "backward attention at least forward", precision, &kernels[j],
                  &kernels[j + 2], times[j] / (times[j + 2]));
        }
    }
}

struct dl_law_breach dl_kernel_laws(const struct dl_device *device, enum dl_op op,
                                    enum dl_precision precision) {
    struct dl_law_breach worst = {.law = NULL};
    if (!has_rate(device, precision)) return worst;
    if (op == DL_OP_GEMM) check_gemms(device, precision, &worst);
    if (op == DL_OP_ATTENTION && precision != DL_FP32) check_attention(device, precision, &worst);
    return worst;
}

struct dl_law_breach dl_kernel_board_law(const struct dl_device *device,
                                         const struct dl_device *board,
                                         enum dl_precision precision) {
    enum { LEAST = 4096, STEPS = 3 };
    static const double LONG_FLOP = 1e12, APART = 1.15;
    struct dl_law_breach worst = {.law = NULL};
    for (int i = 0; i < STEPS * STEPS * STEPS; i++) {
        const struct dl_kernel gemm =
            dl_kernel_gemm(DL_FORWARD, ldexp(LEAST, i % STEPS), ldexp(LEAST, i / STEPS % STEPS),
                           ldexp(LEAST, i / STEPS / STEPS), 1);
        if (gemm.flop < LONG_FLOP) continue;
        const double own_s = time_of(device, precision, &gemm),
                     board_s = time_of(board, precision, &gemm);
        check(&worst, "boards of one chip within 15 %", precision, &gemm, &gemm,
              own_s / (APART * board_s));
        check(&worst, "boards of one chip within 15 %", precision, &gemm, &gemm,
              board_s / (APART * own_s));
    }
    return worst;
}
