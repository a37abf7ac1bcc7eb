/* probe_gpu_number.c - 16-bit and 8-bit floating point numbers on the host: IEEE binary16,
 * bfloat16, and E4M3 as in Micikevicius et al. 2022 (no infinities, largest 448). Rounds to
 * nearest, ties to even. */
#include "calibrate/probes/gpu/probe_gpu.h"

#include <math.h>
#include <string.h>

struct format {
    int exponent_bits, fraction_bits;
    double largest;
};
static const struct format formats[DL_GPU_TYPES] = {
    [DL_GPU_F32] = {8, 23, 3.4028234663852886e38},
    [DL_GPU_F16] = {5, 10, 65504},
    [DL_GPU_BF16] = {8, 7, 3.3895313892515355e38},
    [DL_GPU_F8] = {4, 3, 448},
};

size_t dl_gpu_type_bytes(enum dl_gpu_type type) {
    return type == DL_GPU_F32 ? 4 : type == DL_GPU_F8 ? 1 : 2;
}

/* Exponent field (0: subnormal) and significand in units of the last place. */
static void split(const struct format *f, double magnitude, long *field, long *units) {
    const int bias = (1 << (f->exponent_bits - 1)) - 1;
    int exponent = 0;
    frexp(magnitude, &exponent);
    exponent -= 1;
    if (exponent < 1 - bias) exponent = 1 - bias;
    *units = lrint(ldexp(magnitude, f->fraction_bits - exponent));
    if (*units >= 2l << f->fraction_bits) { /* rounded up to the next power of two */
        *units /= 2;
        exponent++;
    }
    *field = *units < 1l << f->fraction_bits ? 0 : exponent + bias;
}

void dl_gpu_encode(enum dl_gpu_type type, double value, void *out) {
    const struct format *f = &formats[type];
    if (type == DL_GPU_F32) {
        const float x = (float)value;
        memcpy(out, &x, sizeof x);
        return;
    }
    long field, units;
    split(f, fmin(fabs(value), f->largest), &field, &units);
    const long fraction = units - (field > 0 ? 1l << f->fraction_bits : 0);
    const long sign = signbit(value) ? 1 : 0;
    const long bits =
        sign << (f->exponent_bits + f->fraction_bits) | field << f->fraction_bits | fraction;
    const uint16_t two = (uint16_t)bits;
    const uint8_t one = (uint8_t)bits;
    if (type == DL_GPU_F8)
        memcpy(out, &one, 1);
    else
        memcpy(out, &two, 2);
}

double dl_gpu_decode(enum dl_gpu_type type, const void *in) {
    const struct format *f = &formats[type];
    float x;
    uint16_t two = 0;
    uint8_t one = 0;
    if (type == DL_GPU_F32) {
        memcpy(&x, in, sizeof x);
        return (double)x;
    }
    if (type == DL_GPU_F8)
        memcpy(&one, in, 1);
    else
        memcpy(&two, in, 2);
    const long bits = type == DL_GPU_F8 ? one : two;
    const int bias = (1 << (f->exponent_bits - 1)) - 1;
    const long field = bits >> f->fraction_bits & ((1l << f->exponent_bits) - 1);
    const long fraction = bits & ((1l << f->fraction_bits) - 1);
    const long top = (1l << f->exponent_bits) - 1;
    if (field == top && (type != DL_GPU_F8 || fraction == 7))
        return type != DL_GPU_F8 && fraction == 0 ? INFINITY : NAN;
    const long units = fraction + (field > 0 ? 1l << f->fraction_bits : 0);
    const double magnitude =
        ldexp((double)units, (int)(field > 0 ? field : 1) - bias - f->fraction_bits);
    return bits >> (f->exponent_bits + f->fraction_bits) & 1 ? -magnitude : magnitude;
}

double dl_gpu_round(enum dl_gpu_type type, double value) {
    unsigned char bits[4];
    dl_gpu_encode(type, value, bits);
    return dl_gpu_decode(type, bits);
}

/* fp32 sums in any order: a few 1e-7 per term. tf32 keeps 11 bits of an operand. Hopper
 * accumulates fp8 with about 14 bits (unverified). */
static const struct dl_gpu_precision precisions[] = {
    {"fp32", DL_GPU_F32, DL_GPU_F32, 0, 0, 1e-6, 1e-6},
    {"tf32", DL_GPU_F32, DL_GPU_F32, 80, 1e-3, 1e-6, 1e-6},
    {"mixed", DL_GPU_F16, DL_GPU_F16, 53, 0, 1e-5, 1e-3},
    {"bf16", DL_GPU_BF16, DL_GPU_BF16, 80, 0, 1e-5, 8e-3},
    {"fp8", DL_GPU_F8, DL_GPU_BF16, 89, 0, 1e-3, 8e-3},
};

const struct dl_gpu_precision *dl_gpu_precision_of(const struct dl_point *point) {
    const char *at = strstr(point->shape, "prec=");
    if (at == NULL) return &precisions[0];
    at += strlen("prec=");
    const size_t length = strcspn(at, " ");
    for (size_t i = 0; i < sizeof precisions / sizeof *precisions; i++) {
        if (strncmp(precisions[i].name, at, length) == 0 && precisions[i].name[length] == 0)
            return &precisions[i];
    }
    return NULL;
}

enum dl_code dl_gpu_judge(const struct dl_gpu_precision *p, double terms, double slack,
                          size_t index, double got, double expected, struct dl_err *err) {
    const double sum =
        (p->input_error_frac * fmin(slack, 5) + p->sum_error_frac * slack) * (10 + sqrt(terms));
    if (fabs(got - expected) <= sum + p->output_error_frac * fabs(expected)) return DL_OK;
    return dl_fail(err, DL_ERR_BACKEND, "wrong result at element %zu (%s): %g, expected %g", index,
                   p->name, got, expected);
}
