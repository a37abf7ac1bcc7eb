/* F-POWER-CAP: the clock under a power limit by hand, and against published slowdowns. */
#include "model/core/csv.h"
#include "model/catalog/data.h"
#include "model/framework/kernel_scale.h"
#include "model/machine/power_cap.h"
#include "tests/check.h"
#include "tests/fake.h"

/* 1100 W at load, 100 W idle: a span of 1000 W. */
static struct dl_device limited(double limit_w) {
    return (struct dl_device){.power.tdp_w = 1200,
                              .power.idle_w = 100,
                              .power.load_w = 1100,
                              .power.power_limit_w = limit_w,
                              .scales.direct_conv_scale = NAN,
                              .scales.load_scale = NAN};
}

/* 0.8 of the span is left: the clock falls to its cube root. 0.4 is below 0.887^3: the voltage is
 * at its floor. Kernels that draw 0.8 of the span are left 0.4 / 0.8 of it. */
static void by_hand(void **state) {
    struct dl_device d = limited(900);
    check_close(dl_power_cap_slowdown(&d, 1), 1.0772173450159417, 1e-12);
    check_close(dl_power_cap_slowdown(&d, DL_POWER_MEMORY_FRAC), 1, 0);
    d = limited(500);
    check_close(dl_power_cap_slowdown(&d, 1), 0.887 * 0.887 / 0.4, 1e-12);
    check_close(dl_power_cap_slowdown(&d, DL_POWER_MEMORY_FRAC), 0.887 * 0.887 / 0.5, 1e-12);
}

/* No limit, one above what is drawn, or unknown power: no slowdown. Without idle and load of its
 * own, a device has 0.15 and all of its rated power. Below idle the least clock stays. */
static void edges(void **state) {
    struct dl_device d = limited(NAN);
    check_close(dl_power_cap_slowdown(&d, 1), 1, 0);
    d = limited(1100);
    check_close(dl_power_cap_slowdown(&d, 1), 1, 0);
    d = limited(660);
    d.power.idle_w = d.power.load_w = NAN;
    check_close(dl_device_idle_w(&d), 180, 1e-12);
    check_close(dl_device_load_w(&d), 1200, 1e-12);
    check_close(dl_power_cap_slowdown(&d, 1), 0.887 * 0.887 / ((660.0 - 180) / 1020), 1e-12);
    d.power.tdp_w = NAN;
    check_close(dl_power_cap_slowdown(&d, 1), 1, 0);
    d = limited(50);
    check_close(dl_power_cap_slowdown(&d, 1), 0.887 * 0.887 / 0.05, 1e-12);
}

static void monotone(void **state) {
    double before = INFINITY;
    for (double limit_w = 60; limit_w < 1200; limit_w += 5) {
        const struct dl_device d = limited(limit_w);
        const double now = dl_power_cap_slowdown(&d, 1);
        assert_true(now <= before && now >= 1);
        assert_true(dl_power_cap_slowdown(&d, DL_POWER_MEMORY_FRAC) <= now);
        assert_true(before == INFINITY || before / now < 1.2); /* no jump at the floor */
        before = now;
    }
}

/* Products with 0.8 of the span left, streams with all of theirs. Attention of twice the time that
 * the device could take draws 0.75 of the span: 0.4 / 0.75 of it is left. */
static void by_kernel(void **state) {
    const struct dl_kernel_scales scales = {.stream_scale = 1, .attention_scale = 2};
    const struct dl_kernel gemm = dl_kernel_gemm(DL_FORWARD, 8, 8, 8, 1),
                           stream = dl_kernel_stream(DL_FORWARD, 1, 1, 1);
    struct dl_kernel attention = gemm;
    attention.op = DL_OP_ATTENTION;
    struct dl_device d = limited(900);
    check_close(dl_kernel_scale_of(&scales, &d, DL_FP32, &gemm), 1.0772173450159417, 1e-12);
    check_close(dl_kernel_scale_of(&scales, &d, DL_FP32, &stream), 1, 0);
    check_close(dl_kernel_scale_of(&scales, &d, DL_FP32, &attention), 2, 1e-12);
    d = limited(500);
    check_close(dl_kernel_scale_of(&scales, &d, DL_FP32, &attention),
                2 * 0.887 * 0.887 / (0.4 / 0.75), 1e-12);
    d = limited(NAN);
    check_close(dl_kernel_scale_of(&scales, &d, DL_FP32, &attention), 2, 0);
}

/* What the fit did not see. cuBLAS on a GB300 made 617 Tflop/s at 500 W and about 1600 to 2174 at
 * 1400 W (triton-power). GEMMs in 16 bits of more than 4096 rows on GB200 (1200 W) and B200
 * (1000 W), one chip, both at their limits: 1.061 in the median of 60 shapes
 * (aiconfigurator-power). */
static void blackwell(void **state) {
    const struct dl_device gb300 = {
        .power.tdp_w = 1400, .power.idle_w = NAN, .power.load_w = NAN, .power.power_limit_w = 500};
    const struct dl_device capped = {
        .power.tdp_w = 1200, .power.idle_w = NAN, .power.load_w = NAN, .power.power_limit_w = 1000};
    const double slowdown = dl_power_cap_slowdown(&gb300, 1);
    assert_true(slowdown > 1600.0 / 617 && slowdown < 2174.0 / 617);
    check_close(dl_power_cap_slowdown(&capped, 1), 1.061, 0.02);
}

/* Kernels were timed at 1000 W, where 0.8 of a span of 1000 W above 200 W is left; at 600 W 0.4 is.
 * Only what the lower limit adds counts, and streams know the rated span alone. */
static void rated_power_binds(void **state) {
    const struct dl_kernel_scales scales = {.stream_scale = 1, .attention_scale = 1};
    const struct dl_kernel gemm = dl_kernel_gemm(DL_FORWARD, 8, 8, 8, 1),
                           stream = dl_kernel_stream(DL_FORWARD, 1, 1, 1);
    struct dl_device d = {.power.tdp_w = 1000,
                          .power.idle_w = 200,
                          .power.load_w = NAN,
                          .power.uncapped_load_w = 1200,
                          .power.power_limit_w = NAN,
                          .scales.direct_conv_scale = NAN,
                          .scales.load_scale = NAN};
    check_close(dl_power_cap_arithmetic(&d, 1), 1, 0);
    check_close(dl_kernel_scale_of(&scales, &d, DL_FP32, &gemm), 1, 0);
    d.power.power_limit_w = 600;
    const double added = 0.887 * 0.887 / 0.4 * cbrt(0.8);
    check_close(dl_power_cap_arithmetic(&d, 1), added, 1e-12);
    check_close(dl_kernel_scale_of(&scales, &d, DL_FP32, &gemm), added, 1e-12);
    check_close(dl_kernel_scale_of(&scales, &d, DL_FP32, &stream), 0.887 * 0.887 / (0.5 / 0.8),
                1e-12);
    d.power.power_limit_w = 1100; /* above the rated power: times are not known to fall */
    check_close(dl_power_cap_arithmetic(&d, 1), 1, 0);
    d.power.uncapped_load_w = NAN;
    d.power.power_limit_w = 600;
    check_close(dl_power_cap_arithmetic(&d, 1), dl_power_cap_slowdown(&d, 1), 0);
}

/* Without a limit of its own a device that would draw 1100 W has its rated 900 W. */
static void rated_power(void **state) {
    const struct dl_kernel_scales scales = {.stream_scale = 1, .attention_scale = 1};
    const struct dl_kernel gemm = dl_kernel_gemm(DL_FORWARD, 8, 8, 8, 1);
    struct dl_device d = limited(NAN);
    d.power.tdp_w = 900;
    check_close(dl_device_limit_w(&d), 900, 0);
    check_close(dl_power_cap_slowdown(&d, 1), 1.0772173450159417, 1e-12);
    check_close(dl_power_cap_slowdown(&d, DL_POWER_MEMORY_FRAC), 1, 0);
    check_close(dl_kernel_scale_of(&scales, &d, DL_FP32, &gemm), 1.0772173450159417, 1e-12);
    d.power.power_limit_w = 1000; /* one that was set counts, also above the rated power */
    check_close(dl_power_cap_slowdown(&d, 1), 1 / cbrt(0.9), 1e-12);
}

/* F-POWER-CLOCK: 100 W idle, 1000 W more at the highest clock. At 0.9 of it 0.9^3 of these, at half
 * of it the voltage is at its floor; a clock above takes the cube too. The clock that a limit
 * leaves draws the limit. */
static void clock_by_hand(void **state) {
    check_close(dl_power_at_clock_w(100, 1100, 1), 1100, 1e-12);
    check_close(dl_power_at_clock_w(100, 1100, 0.9), 100 + 729, 1e-12);
    check_close(dl_power_at_clock_w(100, 1100, 0.5), 100 + 500 * 0.887 * 0.887, 1e-12);
    check_close(dl_power_at_clock_w(100, 1100, 1.1), 100 + 1331, 1e-12);
    for (double limit_w = 160; limit_w < 1100; limit_w += 20) {
        const struct dl_device d = limited(limit_w);
        check_close(dl_power_at_clock_w(100, 1100, 1 / dl_power_cap_slowdown(&d, 1)), limit_w,
                    1e-12);
    }
}

/* The boards of one chip: what the PCIe part draws above idle at its clock says what the others
 * draw at theirs. The SXM2 part cannot hold its clock at 300 W, that of the DGX-2H can at 450. */
static void one_chip(void **state) {
    static const struct {
        const char *name;
        double rated_w, clock; /* that it holds / its highest */
    } boards[] = {{"v100_sxm2_16", 300, 0.958},
                  {"v100_sxm2_32", 300, 0.958},
                  {"v100_sxm3_32", 350, 0.975},
                  {"v100_sxm3_32h", 450, 1}};
    const char *const directories[] = {dl_arena_printf(&test_arena, "%s/data", check_root())};
    const struct dl_data data = {.directories = directories, .directory_count = 1};
    const struct dl_device *pcie = NULL, *board = NULL;
    assert_int_equal(dl_data_device(&data, "v100_pcie16", &test_arena, &pcie, NULL), DL_OK);
    const double span_w = dl_device_load_w(pcie) - dl_device_idle_w(pcie);
    for (size_t i = 0; i < sizeof boards / sizeof boards[0]; i++) {
        assert_int_equal(dl_data_device(&data, boards[i].name, &test_arena, &board, NULL), DL_OK);
        const double idle_w = dl_device_idle_w(board), ratio = board->clock_hz / pcie->clock_hz;
        check_close(board->power.tdp_w, boards[i].rated_w, 0);
        check_close(idle_w, 45, 1e-12);
        check_close(board->power.load_w, idle_w + dl_power_at_clock_w(0, span_w, ratio), 0.002);
        check_close(1 / dl_power_cap_slowdown(board, 1), boards[i].clock, 0.001);
        /* the peaks are the SXM2 part's at the clock */
        check_close(dl_device_peak(board, DL_FP16), 81920 * board->clock_hz, 0.003);
        check_close(dl_device_peak(board, DL_FP32), 10240 * board->clock_hz, 0.003);
    }
}

static double number(const struct dl_csv *csv, int row, const char *column) {
    return atof(csv->rows[row][dl_csv_column(csv, column)]);
}

/* The run of the same job with the highest limit. */
static int unlimited(const struct dl_csv *csv, int row) {
    int best = row;
    for (int i = 0; i < csv->row_count; i++) {
        const bool same = strcmp(csv->rows[i][dl_csv_column(csv, "device")],
                                 csv->rows[row][dl_csv_column(csv, "device")]) == 0 &&
                          strcmp(csv->rows[i][dl_csv_column(csv, "job")],
                                 csv->rows[row][dl_csv_column(csv, "job")]) == 0;
        if (same && number(csv, i, "power_limit_w") > number(csv, best, "power_limit_w")) best = i;
    }
    return best;
}

/* Each ratio of cap_chip.csv against the load that the files of both boards give: what fit_cap.py
 * prints of their spread. */
static void one_blackwell_chip(void **state) {
    char path[4200], folder[4200];
    const char *directories[] = {folder};
    const struct dl_data data = {.directories = directories, .directory_count = 1};
    const struct dl_device *b200 = NULL, *gb200 = NULL;
    struct dl_csv csv;
    double squares = 0;
    snprintf(folder, sizeof folder, "%s/data", check_root());
    snprintf(path, sizeof path, "%s/data/energy/cap_chip.csv", check_root());
    assert_int_equal(dl_csv_read(path, &test_arena, &csv, NULL), DL_OK);
    assert_int_equal(dl_data_device(&data, "b200_sxm", &test_arena, &b200, NULL), DL_OK);
    assert_int_equal(dl_data_device(&data, "gb200", &test_arena, &gb200, NULL), DL_OK);
    check_close(gb200->power.uncapped_load_w, b200->power.uncapped_load_w, 0);
    struct dl_device chip = {.power.tdp_w = b200->power.tdp_w,
                             .power.idle_w = NAN,
                             .power.load_w = b200->power.uncapped_load_w};
    for (int i = 0; i < csv.row_count; i++) {
        const double than_w = number(&csv, i, "than_limit_w"); /* 0: none */
        chip.power.power_limit_w = number(&csv, i, "limit_w");
        double ratio = dl_power_cap_slowdown(&chip, 1);
        chip.power.power_limit_w = than_w > 0 ? than_w : 1e4;
        ratio /= dl_power_cap_slowdown(&chip, 1);
        const double error = log(ratio / number(&csv, i, "time_ratio"));
        assert_true(fabs(error) < 0.09);
        squares += error * error;
    }
    assert_int_equal(csv.row_count, 5);
    check_close(sqrt(squares / csv.row_count), 0.058, 0.01);
}

/* Training of five networks on four GPUs under limits from 100 W: the spread that fit_cap.py
 * prints. */
static void published(void **state) {
    struct dl_csv csv;
    char path[4200];
    double squares = 0;
    int count = 0;
    snprintf(path, sizeof path, "%s/data/energy/cap.csv", check_root());
    assert_int_equal(dl_csv_read(path, &test_arena, &csv, NULL), DL_OK);
    for (int i = 0; i < csv.row_count; i++) {
        const int free = unlimited(&csv, i);
        const double limit_w = number(&csv, i, "power_limit_w");
        if (limit_w >= number(&csv, free, "power_limit_w")) continue;
        const struct dl_device d = {.power.tdp_w = number(&csv, i, "rated_w"),
                                    .power.idle_w = NAN,
                                    .power.load_w = number(&csv, free, "value_w"),
                                    .power.power_limit_w = limit_w};
        const double measured = number(&csv, i, "time_s") / number(&csv, free, "time_s"),
                     error = log(measured / dl_power_cap_slowdown(&d, 1));
        squares += error * error;
        count++;
    }
    assert_int_equal(count, 54);
    check_close(sqrt(squares / count), 0.146, 0.01);
}

/* Training of three networks on two DGX-2 under locked clocks: the power at 990 to 1455 MHz from
 * the one at 1530 MHz. Nothing was fitted to it. */
static void locked_clocks(void **state) {
    struct dl_csv csv;
    char path[4200];
    double squares = 0, top_w = NAN, top_hz = NAN;
    int count = 0;
    snprintf(path, sizeof path, "%s/data/energy/clock.csv", check_root());
    assert_int_equal(dl_csv_read(path, &test_arena, &csv, NULL), DL_OK);
    for (int i = csv.row_count - 1; i >= 0; i--) { /* of each job the highest clock is last */
        const double clock = number(&csv, i, "clock_mhz"), power_w = number(&csv, i, "value_w"),
                     idle_w = 45 * number(&csv, i, "devices");
        if (clock >= 1530) {
            top_w = power_w, top_hz = clock;
            continue;
        }
        const double modelled_w = dl_power_at_clock_w(idle_w, top_w, clock / top_hz);
        squares += pow(log(power_w / modelled_w), 2);
        count++;
    }
    assert_int_equal(count, 20);
    check_close(sqrt(squares / count), 0.0445, 0.01);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_hand),           cmocka_unit_test(edges),
        cmocka_unit_test(monotone),          cmocka_unit_test(by_kernel),
        cmocka_unit_test(rated_power),       cmocka_unit_test(clock_by_hand),
        cmocka_unit_test(one_chip),          cmocka_unit_test(locked_clocks),
        cmocka_unit_test(blackwell),         cmocka_unit_test(published),
        cmocka_unit_test(rated_power_binds), cmocka_unit_test(one_blackwell_chip),
    };
    return cmocka_run_group_tests(tests, NULL, check_free);
}
