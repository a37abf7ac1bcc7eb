/* A device without samples borrows from one of its architecture: the error when the models of one
 * measured device predict the samples of another. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "calibrate/fits/fit_kernel.h"
#include "model/base/stats.h"
#include "model/cli/data.h"
#include "tests/check.h"

struct pair {
    const char *device, *lender, *table;
    enum dl_precision precision;
    double most; /* median of |error| */
};

static double median_error(const struct dl_data *data, const struct pair *pair,
                           struct dl_arena *arena) {
    struct dl_err err = {0};
    const struct dl_device *device, *lender;
    const char *path = dl_arena_printf(arena, "%s/data/kernels/%s", check_root(), pair->table);
    if (dl_data_device(data, pair->device, arena, &device, &err) != DL_OK ||
        dl_data_device(data, pair->lender, arena, &lender, &err) != DL_OK)
        fail_msg("%s", err.message);
    struct dl_device bare = *device; /* no sample of it: none that tells what it sustains either */
    bare.rates = dl_arena_alloc(arena, (size_t)bare.rate_count, sizeof *bare.rates);
    for (int i = 0; i < bare.rate_count; i++) {
        bare.rates[i] = device->rates[i];
        bare.rates[i].sustained_flop_per_s = NAN;
    }
    bare.kernel_models = NULL;
    bare.kernel_model_count = 0;
    struct dl_device alone = *lender; /* which may have borrowed from the device itself */
    alone.borrowed = NULL;
    bare.borrowed = &alone;
    struct dl_kernel_sample *samples;
    const char *library;
    size_t n, count = 0;
    if (dl_fit_read_samples(path, device, arena, &samples, &n, &library, &err) != DL_OK)
        fail_msg("%s", err.message);
    double *errors = dl_arena_alloc(arena, n, sizeof *errors),
           *scratch = dl_arena_alloc(arena, n, sizeof *scratch);
    for (size_t i = 0; i < n; i++) {
        struct dl_kernel_time time;
        if (samples[i].precision != pair->precision || samples[i].by_call ||
            samples[i].kernel.pass != DL_FORWARD)
            continue;
        dl_kernel_time(&bare, samples[i].precision, &samples[i].kernel, &time);
        assert_string_equal(time.origin, "borrowed");
        assert_string_equal(time.origin_device, lender->name);
        errors[count++] = fabs(time.time_s / samples[i].time_s - 1);
    }
    assert_true(count > 100);
    return dl_median(errors, count, scratch);
}

static void one_device_by_another(void **state) {
    (void)state;
    static const struct pair pairs[] = {
        {"h200_sxm", "h100_sxm", "by_gpu_gemm.csv", DL_MIXED, 0.22},
        {"h200_sxm", "h100_sxm", "by_gpu_gemm.csv", DL_FP8, 0.22},
        {"h200_sxm", "h100_sxm", "by_gpu_attention.csv", DL_MIXED, 0.22},
        {"h100_sxm", "h200_sxm", "by_gpu_gemm.csv", DL_MIXED, 0.22},
        {"h100_sxm", "h200_sxm", "by_gpu_gemm.csv", DL_FP8, 0.22},
        {"h100_sxm", "h200_sxm", "by_gpu_attention.csv", DL_MIXED, 0.22},
        {"h100_sxm", "h200_sxm", "by_gpu_attention.csv", DL_FP8, 0.22},
        {"gb200", "b200_sxm", "by_gpu_gemm.csv", DL_MIXED, 0.22},
        {"gb200", "b200_sxm", "by_gpu_gemm.csv", DL_FP8, 0.22},
        {"gb200", "b200_sxm", "by_gpu_gemm.csv", DL_NVFP4, 0.22},
        {"gb200", "b200_sxm", "by_gpu_attention.csv", DL_MIXED, 0.22},
        {"gb200", "b200_sxm", "by_gpu_attention.csv", DL_FP8, 0.22},
        {"b200_sxm", "gb200", "by_gpu_gemm.csv", DL_MIXED, 0.22},
        {"b200_sxm", "gb200", "by_gpu_gemm.csv", DL_NVFP4, 0.22},
        {"b200_sxm", "gb200", "by_gpu_gemm.csv", DL_FP8, 0.22},
        {"b200_sxm", "gb200", "by_gpu_attention.csv", DL_MIXED, 0.22},
    };
    struct dl_arena arena = {0};
    const char *const directories[] = {dl_arena_printf(&arena, "%s/data", check_root())};
    const struct dl_data data = {.directories = directories, .directory_count = 1};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        const double median = median_error(&data, &pairs[i], &arena);
        print_message("%s by %s, %s %s: median %.1f %%\n", pairs[i].device, pairs[i].lender,
                      pairs[i].table, dl_precision_names[pairs[i].precision], 100 * median);
        if (!(median < pairs[i].most)) fail_msg("%s by %s", pairs[i].device, pairs[i].lender);
    }
    dl_arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_device_by_another)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
