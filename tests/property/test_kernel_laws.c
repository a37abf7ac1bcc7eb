/* Kernel times of every device of data/ obey the laws that its fit obeyed, also where a device
 * borrows a model (F-KERNEL-LAWS), and boards of one chip agree where arithmetic limits. */
#include "calibrate/fits/fit_laws.h"
#include "model/catalog/data.h"
#include "tests/check.h"

static const struct dl_device *device_of(const char *name, struct dl_arena *arena) {
    static char folder[4200];
    static const char *directories[] = {folder};
    const struct dl_data data = {.directories = directories, .directory_count = 1};
    const struct dl_device *device = NULL;
    struct dl_err err = {0};
    snprintf(folder, sizeof folder, "%s/data", check_root());
    if (dl_data_device(&data, name, arena, &device, &err) != DL_OK) fail_msg("%s", err.message);
    return device;
}

static void every_device(void **state) {
    char folder[4200];
    const char *directories[] = {folder}, **names = NULL;
    const struct dl_data data = {.directories = directories, .directory_count = 1};
    int devices = 0;
    snprintf(folder, sizeof folder, "%s/data", check_root());
    dl_data_names(&data, DL_DATA_DEVICE, &test_arena, &names);
    for (; names[devices] != NULL; devices++) {
        const struct dl_device *device = device_of(names[devices], &test_arena);
        for (int i = 0; i < DL_OPS * DL_PRECISIONS; i++) {
            const enum dl_op op = (enum dl_op)(i % DL_OPS);
            const enum dl_precision precision = (enum dl_precision)(i / DL_OPS);
            const struct dl_law_breach breach = dl_kernel_laws(device, op, precision);
            const struct dl_kernel *k = &breach.kernel;
            if (breach.law != NULL)
                fail_msg("%s %s %s: \"%s\" by %.3f, %d times: %g x %g x %g, %g heads of %g",
                         names[devices], dl_op_names[op], dl_precision_names[precision], breach.law,
                         breach.ratio, breach.count, k->m, k->n, k->k, k->heads, k->queries);
        }
    }
    assert_true(devices > 50);
}

/* The power limits of GB200 and B200 are 1,200 and 1,000 W, those of H100 and H200 the same. */
static void boards_of_one_chip(void **state) {
    static const char *const boards[][2] = {{"h100_sxm", "h200_sxm"}, {"gb200", "b200_sxm"}};
    static const enum dl_precision precisions[] = {DL_BF16, DL_FP8};
    for (int i = 0; i < 4; i++) {
        const char *const *pair = boards[i / 2];
        const struct dl_law_breach breach = dl_kernel_board_law(
            device_of(pair[0], &test_arena), device_of(pair[1], &test_arena), precisions[i % 2]);
        if (breach.law != NULL)
            fail_msg("%s and %s, %s: %.2f times above at %g x %g x %g", pair[0], pair[1],
                     dl_precision_names[precisions[i % 2]], breach.ratio, breach.kernel.m,
                     breach.kernel.n, breach.kernel.k);
    }
}

/* A board that has samples of the vector units alone (A100 PCIe) times convolutions in 16 bits as
 * the other board does: within the ratio of their memory and of F-POWER-CAP, here 1.5. */
static void convolutions_of_one_chip(void **state) {
    static const double in[] = {1, 56, 56}, kernel[] = {1, 3, 3}, one[] = {1, 1, 1},
                        pad[] = {0, 1, 1};
    static const char *const boards[] = {"a100_sxm4_80", "a100_sxm4_40", "a100_pcie80",
                                         "a100_pcie40"};
    const struct dl_conv_shape shape = {256, 64, 64, 1, in, kernel, one, pad, one};
    for (int pass = DL_FORWARD; pass <= DL_BACKWARD_WEIGHTS; pass++) {
        const struct dl_kernel conv = dl_kernel_conv((enum dl_pass)pass, &shape);
        double least = INFINITY, most = 0.0;
        for (int i = 0; i < 4; i++) {
            struct dl_kernel_time time;
            dl_kernel_time(device_of(boards[i], &test_arena), DL_MIXED, &conv, &time);
            least = fmin(least, time.time_s), most = fmax(most, time.time_s);
        }
        if (!(most < 1.5 * least)) fail_msg("%s: %g to %g s", dl_pass_names[pass], least, most);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_device),
                                       cmocka_unit_test(boards_of_one_chip),
                                       cmocka_unit_test(convolutions_of_one_chip)};
    return cmocka_run_group_tests(tests, NULL, check_free);
}
