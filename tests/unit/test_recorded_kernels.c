/* Recorded results (recorded.h: a regression net, no oracle) of kernels of any shape: dimensions
 * around the tiles and thresholds of the models, every variant, work, type and pass, on every
 * device as it is and without something that its file says.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "tests/any_case.h"
#include "tests/recorded.h"

enum { KERNELS = 40, FIELDS = 12 };

/* Around the multiples that libraries care for. */
static double size(void) {
    static const double sizes[] = {1,   2,   3,   4,   7,   8,   9,    12,  15, 16,
                                   17,  24,  31,  32,  33,  48,  63,   64,  65, 96,
                                   127, 128, 129, 256, 500, 512, 1000, 1024};
    const int drawn = upto(32);
    return drawn < 28 ? sizes[drawn] : floor(log_between(1024, 65536));
}
static double small(void) { return 1 + upto(3); }

static struct dl_kernel any_conv(enum dl_pass pass) {
    static const double windows[] = {1, 1, 3, 3, 3, 5, 7, 2}, planes[] = {1, 4, 7, 14, 28, 56, 13};
    double in[DL_DIMS], window[DL_DIMS], stride[DL_DIMS], pad[DL_DIMS], dilation[DL_DIMS];
    const double plane = planes[upto(7)], wide = windows[upto(8)], step = once_in(3) ? small() : 1,
                 around = once_in(3) ? 0 : floor(wide / 2), apart = once_in(8) ? 2 : 1;
    const bool volume = once_in(6), flat = once_in(8);
    for (int d = 0; d < DL_DIMS; d++) {
        const bool used = d == 0 || (d == 1 && !flat) || (d == 2 && volume);
        in[d] = used ? plane : 1, window[d] = used ? wide : 1;
        stride[d] = used ? step : 1, pad[d] = used ? around : 0, dilation[d] = used ? apart : 1;
    }
    const double batch = (double)(1 << upto(8)), channels = size();
    double filters = size(), groups = 1;
    if (once_in(5))
        groups = channels, filters = channels * small();
    else if (once_in(6) && fmod(channels, 2) == 0)
        groups = 2, filters = channels * small();
    struct dl_kernel k =
        dl_kernel_conv(pass, batch, channels, filters, groups, in, window, stride, pad, dilation);
    if (once_in(6)) k.variant = once_in(2) ? DL_VARIANT_DEPTHWISE : DL_VARIANT_VOLUME;
    return k;
}

static struct dl_kernel any_attention(enum dl_pass pass) {
    static const double dims[] = {32, 64, 80, 96, 128, 192, 256};
    const double heads = (double)(1 << upto(6)), dim = dims[upto(7)];
    struct dl_attention_shape shape = {.heads = heads, .head_dim = dim};
    shape.batch = small();
    shape.kv_heads = once_in(2) ? heads : fmax(1, heads / 4);
    shape.queries = once_in(6) ? 1 : size();
    shape.keys = size();
    shape.value_dim = once_in(4) ? 64 : dim;
    shape.window = once_in(4) ? size() : 0;
    shape.causal = once_in(2);
    struct dl_kernel k = dl_kernel_attention(pass, &shape);
    if (once_in(2)) k.variant = (enum dl_variant)upto(DL_VARIANTS);
    return k;
}

static struct dl_kernel any_kernel(void) {
    const enum dl_pass pass = (enum dl_pass)upto(3);
    struct dl_kernel k;
    switch (upto(4)) {
    case 0: {
        const double m = size(), n = size(), depth = size();
        k = dl_kernel_gemm(pass, m, n, depth, once_in(4) ? small() : 1);
        k.a_trans = once_in(2), k.b_trans = once_in(2);
        if (once_in(8)) k.variant = DL_VARIANT_BLOCKS;
        break;
    }
    case 1: k = any_conv(pass); break;
    case 2: k = any_attention(pass == DL_FORWARD ? pass : DL_BACKWARD_DATA); break;
    default: {
        const double elements = log_between(1, 1e9);
        const double read = elements * small(), written = elements / small();
        k = dl_kernel_stream(pass, elements, read, written);
        if (once_in(3)) k.extra_bytes = log_between(1, 1e6);
        if (once_in(3)) k.variant = once_in(2) ? DL_VARIANT_VENDOR : DL_VARIANT_STRIDED;
        if (once_in(12)) k.variant = DL_VARIANT_ENGINE;
        break;
    }
    }
    if (once_in(2)) k.work = (enum dl_work)upto(DL_WORKS);
    if (once_in(6)) k.has_type = true, k.type = (enum dl_precision)upto(DL_PRECISIONS);
    if (once_in(6)) k.launches = small();
    return k;
}

/* Without some of what the file says, or with what few files say. */
static void change_device(struct dl_device *d) {
    static struct dl_work_factor works[3];
    switch (upto(12)) {
    case 0: d->architecture = NULL; break;
    case 1: d->l2_bytes = NAN; break;
    case 2: d->memory_efficiency = NAN; break;
    case 3: d->kernel_latency_s = NAN; break;
    case 4: d->unit_count = 0; break;
    case 5: d->load_scale = 1.2, d->narrow_load_scale = 1.3; break;
    case 6: d->attention_scale = 0.8, d->flash2_scale = 1.1, d->triton_attention_scale = 1.4; break;
    case 7: d->grouped_scale = 1.5, d->narrow_grouped_scale = 1.7; break;
    case 8: d->direct_conv_scale = 1.25, d->norm_scale = 1.35; break;
    case 9: d->kernel_models = NULL, d->kernel_model_count = 0; break;
    case 10: d->borrowed = NULL; break;
    default:
        for (int i = 0; i < 3; i++) {
            works[i] = (struct dl_work_factor){.factor = 1.1 + 0.1 * i};
            works[i].work = 1 + upto(DL_WORKS - 1);
            works[i].pass = upto(2);
            works[i].precision = upto(DL_PRECISIONS);
        }
        d->works = works, d->work_count = 3;
        break;
    }
}

static void record_device(const struct dl_device *given) {
    static char names[FIELDS][16];
    recorded_case(given->name);
    for (int field = 0; field < FIELDS; field++) {
        struct dl_device device = *given;
        struct recorded_sum sum = {0};
        uint32_t words = 0;
        if (field >= FIELDS / 3) change_device(&device);
        for (int i = 0; i < KERNELS; i++) {
            const enum dl_precision precision = (enum dl_precision)upto(DL_PRECISIONS);
            const struct dl_kernel kernel = any_kernel();
            const double granted = once_in(2) ? device.workspace_bytes : log_between(1, 1e9);
            struct dl_kernel_time t;
            dl_kernel_time(&device, precision, &kernel, &t);
            recorded_add(&sum, t.time_s), recorded_add(&sum, t.sigma_log);
            recorded_add(&sum, 1 + 2 * t.limit + t.extrapolated);
            recorded_add(&sum, kernel.flop), recorded_add(&sum, kernel.read_elements);
            recorded_add(&sum, kernel.write_elements);
            recorded_add(&sum, dl_kernel_call_s(&device, precision, &kernel));
            recorded_add(&sum, 1 + dl_kernel_workspace_bytes(&kernel, 2));
            recorded_add(&sum, dl_kernel_workspace_factor(&device, precision, &kernel, granted));
            words = recorded_hash(recorded_hash(words, t.formula), t.origin);
            words = recorded_hash(words, t.origin_device);
        }
        snprintf(names[field], sizeof names[0], "kernels %d", field);
        recorded_sum_of(names[field], &sum);
        recorded_text_hash(names[field], words, "(formulas, origins)");
    }
    recorded_end_case();
}

static void kernels(void **state) {
    (void)state;
    recorded_open("kernel_shapes");
    seed = 883;
    for (int i = 0; i < all.system_count; i++) {
        bool seen = false;
        for (int k = 0; k < i; k++) seen = seen || all.systems[k]->device == all.systems[i]->device;
        if (!seen) record_device(all.systems[i]->device);
    }
    recorded_close();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(kernels)};
    return cmocka_run_group_tests(tests, catalog_load, catalog_free);
}
