/* Power, energy and cost: by hand, and against published power of training runs. */
#include "model/core/csv.h"
#include "model/statistics/stats.h"
#include "model/catalog/data.h"
#include "model/engine/energy.h"
#include "tests/check.h"

/* 4 devices of 100 W, 10 W idle, in a node of 60 W. An iteration of 1 s: 0.5 s of arithmetic, 0.2 s
 * of streams, 0.1 s of short kernels, 0.2 s of waiting. */
static struct dl_device device = {
    .name = "d", .power.tdp_w = 120, .power.idle_w = 10, .power.load_w = 100};
static struct dl_system nodes = {.name = "s",
                                 .device = &device,
                                 .devices_per_node = 4,
                                 .operation.host_w = 60,
                                 .operation.pue = 1.5,
                                 .operation.price_per_node_hour = 2,
                                 .operation.price_currency = "EUR"};
static const struct dl_prediction one_second = {
    .iteration_s = 1, .compute_s = 0.8, .by_limit_s = {0.5, 0.2, 0.1}};
static const double BY_HAND = 0.5 * 100 + 0.2 * (10 + 0.8 * 90) + 0.3 * (10 + 0.5 * 90);

/* F-POWER */
static void power_by_hand(void **state) {
    const struct dl_plan plan = {.nodes = 3, .devices_per_node = 4},
                         half = {.nodes = 1, .devices_per_node = 2};
    struct dl_power p = dl_power_of(&nodes, &plan, &one_second, NULL);
    check_close(p.device_w, BY_HAND, 1e-12);
    check_close(p.node_w, 4 * BY_HAND + 60, 1e-12);
    check_close(p.job_w, 1.5 * 3 * (4 * BY_HAND + 60), 1e-12);
    assert_false(p.load_assumed || p.host_assumed);
    p = dl_power_of(&nodes, &half, &one_second, NULL);
    check_close(p.node_w, 2 * BY_HAND + 2 * 10 + 60, 1e-12);
    check_close(p.sigma_log, 0.065, 1e-12);
    /* what the user says replaces the node alone */
    const struct dl_rates rates = {.node_w = 500};
    check_close(dl_power_of(&nodes, &plan, &one_second, &rates).job_w, 1.5 * 3 * 500, 1e-12);
    /* slowdowns of compute share out as the kernels do */
    struct dl_prediction slower = one_second;
    slower.iteration_s = 2, slower.compute_s = 1.6;
    for (int i = 0; i < 3; i++) slower.by_limit_s[i] = one_second.by_limit_s[i];
    slower.bubble_s = 0.4;
    check_close(dl_power_of(&nodes, &plan, &slower, NULL).device_w, BY_HAND, 1e-12);
}

static void assumptions_are_reported(void **state) {
    struct dl_device plain = {.name = "d",
                              .power.tdp_w = 100,
                              .power.idle_w = NAN,
                              .power.load_w = NAN,
                              .power.power_limit_w = NAN};
    struct dl_system system = {.name = "s",
                               .device = &plain,
                               .devices_per_node = 2,
                               .operation.host_w = NAN,
                               .operation.pue = NAN,
                               .operation.price_per_node_hour = NAN};
    const struct dl_plan plan = {.nodes = 1, .devices_per_node = 2};
    const struct dl_prediction busy = {.iteration_s = 1, .compute_s = 1, .by_limit_s = {1, 0, 0}},
                               idle = {.iteration_s = 1};
    struct dl_power p = dl_power_of(&system, &plan, &busy, NULL);
    assert_true(p.load_assumed && p.host_assumed);
    check_close(p.job_w, 2 * 100 + 0.3 * 200, 1e-12);
    check_close(p.sigma_log, hypot(0.065, 0.3 * 60 / 260), 1e-12);
    check_close(dl_power_of(&system, &plan, &idle, NULL).device_w, 15 + 0.5 * 85, 1e-12);
    plain.power.power_limit_w = 60;
    check_close(dl_power_of(&system, &plan, &busy, NULL).device_w, 60, 1e-12);
    plain.power.tdp_w = NAN;
    assert_true(isnan(dl_power_of(&system, &plan, &busy, NULL).job_w));
}

/* F-ENERGY, F-COST: half an hour on 3 nodes. */
static void spending_by_hand(void **state) {
    const struct dl_plan plan = {.nodes = 3, .devices_per_node = 4};
    const struct dl_power power = {.job_w = 1000};
    struct dl_rates rates = {.carbon_g_per_kwh = 300};
    struct dl_spending s = dl_spending_of(&nodes, &plan, &power, &rates, 1800);
    check_close(s.energy_j, 1.8e6, 1e-12);
    check_close(s.carbon_g, 150, 1e-12);
    check_close(s.cost, 3, 1e-12);
    assert_string_equal(dl_currency_of(&nodes, &rates), "EUR");
    rates.price_per_node_hour = 10;
    check_close(dl_spending_of(&nodes, &plan, &power, &rates, 1800).cost, 15, 1e-12);
    assert_null(dl_currency_of(&nodes, &rates));
    struct dl_system unpriced = nodes;
    unpriced.operation.price_per_node_hour = NAN;
    s = dl_spending_of(&unpriced, &plan, &power, NULL, 1800);
    assert_true(isnan(s.cost) && isnan(s.carbon_g));
}

/* Without a device, its rated power, or where kinds of devices differ, only what the user says. */
static void power_that_nobody_knows(void **state) {
    const struct dl_plan plan = {.nodes = 2, .devices_per_node = 4};
    const struct dl_rates rates = {.node_w = 300};
    for (int i = 0; i < 4; i++) {
        struct dl_device d = device;
        struct dl_system s = nodes;
        struct dl_prediction p = one_second;
        s.device = i == 0 ? NULL : &d;
        if (i == 1) d.power.tdp_w = NAN;
        if (i == 2) d.power.tdp_w = 0;
        if (i == 3) p.group_count = 1;
        struct dl_power is = dl_power_of(&s, &plan, &p, NULL);
        check_nan(is.device_w);
        check_nan(is.host_w);
        check_nan(is.node_w);
        check_nan(is.job_w);
        check_nan(is.sigma_log);
        assert_false(is.load_assumed || is.host_assumed);
        is = dl_power_of(&s, &plan, &p, &rates);
        check_close(is.job_w, 1.5 * 2 * 300, 1e-12);
        check_close(is.sigma_log, 0, 0);
    }
}

/* F-COST: a price of the user's goes with the user's currency, others with the system's. */
static void prices_and_currencies(void **state) {
    static const double prices[] = {(double)NAN, 0, -3, 0.5, 7};
    for (int i = 0; i < 5; i++) {
        for (int j = 0; j < 5; j++) {
            struct dl_system s = nodes;
            s.operation.price_per_node_hour = prices[i];
            const struct dl_rates rates = {.price_per_node_hour = prices[j], .currency = "CHF"};
            const double own = prices[i] > 0 ? prices[i] : (double)NAN;
            check_close(dl_price_of(&s, NULL), own, 0);
            check_close(dl_price_of(&s, &rates), prices[j] > 0 ? prices[j] : own, 0);
            const char *currency = dl_currency_of(&s, NULL);
            assert_true(prices[i] > 0 ? currency == s.operation.price_currency : currency == NULL);
            currency = dl_currency_of(&s, &rates);
            assert_true(prices[j] > 0   ? currency == rates.currency
                        : prices[i] > 0 ? currency == s.operation.price_currency
                                        : currency == NULL);
        }
    }
    const struct dl_plan plan = {.nodes = 5};
    const struct dl_power power = {.job_w = 720};
    for (int i = 0; i < 5; i++) {
        const struct dl_rates rates = {.carbon_g_per_kwh = prices[i]};
        const struct dl_spending is = dl_spending_of(&nodes, &plan, &power, &rates, 7200);
        check_close(is.energy_j, 720.0 * 7200, 1e-12);
        check_close(is.carbon_g, prices[i] > 0 ? 1.44 * prices[i] : (double)NAN, 1e-12);
        check_close(is.cost, 5 * 2 * 2, 1e-12);
    }
}

enum { MAX_ROWS = 64 };
struct table {
    struct dl_arena arena;
    struct dl_data data;
    struct dl_csv csv;
    const char *directories[1];
    char directory[4096];
};

static const char *cell(const struct table *t, int row, const char *column) {
    const int at = dl_csv_column(&t->csv, column);
    assert_true(at >= 0);
    return t->csv.rows[row][at];
}

/* NAN where the cell is empty. */
static double number(const struct table *t, int row, const char *column) {
    const char *text = cell(t, row, column);
    return *text != 0 ? atof(text) : NAN;
}

static void predict_row(struct table *t, int row, const struct dl_system *system,
                        struct dl_plan *plan, struct dl_prediction *p) {
    struct dl_err err = {0};
    const struct dl_workload *workload;
    const struct dl_framework *framework;
    assert_int_equal(
        dl_data_workload(&t->data, cell(t, row, "workload"), &t->arena, &workload, &err), DL_OK);
    assert_int_equal(
        dl_data_framework(&t->data, cell(t, row, "framework"), &t->arena, &framework, &err), DL_OK);
    plan->recompute_open = true;
    plan->input.synthetic = true;
    plan->batch_per_device_samples = number(t, row, "batch_per_device");
    if (*cell(t, row, "tp") != 0) {
        plan->tp = (int64_t)number(t, row, "tp");
        plan->pp = (int64_t)number(t, row, "pp");
    }
    if (dl_plan_complete(system, workload, framework, plan, &err) != DL_OK ||
        dl_predict(&(struct dl_predict_request){system, workload, framework, plan, NULL, &t->arena},
                   p, &err) != DL_OK)
        fail_msg("%s: %s", cell(t, row, "id"), err.message);
}

/* predicted / published */
static double ratio_of(struct table *t, int row) {
    const struct dl_system *found;
    const char *scope = cell(t, row, "scope");
    assert_int_equal(dl_data_system(&t->data, cell(t, row, "system"), &t->arena, &found, NULL),
                     DL_OK);
    struct dl_system system = *found;
    struct dl_device limited = *found->device;
    system.device = &limited;
    if (*cell(t, row, "power_limit_w") != 0)
        limited.power.power_limit_w = number(t, row, "power_limit_w");
    struct dl_plan plan = {.nodes = (int64_t)number(t, row, "nodes"),
                           .devices_per_node = (int64_t)number(t, row, "devices_per_node"),
                           .optimizer = DL_MOMENTUM};
    /* a GEMM repeated: arithmetic alone */
    struct dl_prediction p = {.iteration_s = 1, .compute_s = 1, .by_limit_s = {1, 0, 0}};
    for (int i = 0; dl_precision_names[i] != NULL; i++) {
        if (strcmp(dl_precision_names[i], cell(t, row, "precision")) == 0)
            plan.precision = (enum dl_precision)i;
    }
    if (*cell(t, row, "workload") != 0) predict_row(t, row, &system, &plan, &p);
    const struct dl_power power = dl_power_of(&system, &plan, &p, NULL);
    const double predicted_w = strcmp(scope, "node") == 0 ? power.node_w
                               : strcmp(scope, "device") == 0
                                   ? power.device_w
                                   : power.node_w / (double)system.devices_per_node;
    print_message("%s %-18s %-10s %8.1f W, published %8.1f W: %+5.1f %%\n", cell(t, row, "id"),
                  cell(t, row, "system"), cell(t, row, "workload"), predicted_w,
                  number(t, row, "value_w"), 100 * (predicted_w / number(t, row, "value_w") - 1));
    return predicted_w / number(t, row, "value_w");
}

/* At least 20 published figures; half of them within 6 %, all within 25 %. The constants were
 * chosen by the rows marked `in`; of the others half are within 10 %. F-POWER-INTERVAL: 80 %
 * intervals hold at least 80 % of either. */
static void published_power(void **state) {
    static struct table t;
    char path[4200];
    double errors[MAX_ROWS], out[MAX_ROWS];
    int out_count = 0, held = 0, out_held = 0;
    snprintf(t.directory, sizeof t.directory, "%s/data", check_root());
    snprintf(path, sizeof path, "%s/energy/power.csv", t.directory);
    t.directories[0] = t.directory;
    t.data = (struct dl_data){.directories = t.directories, .directory_count = 1, .training = true};
    assert_int_equal(dl_csv_read(path, &t.arena, &t.csv, NULL), DL_OK);
    assert_in_range(t.csv.row_count, 20, MAX_ROWS);
    for (int i = 0; i < t.csv.row_count; i++) {
        errors[i] = fabs(ratio_of(&t, i) - 1);
        assert_true(errors[i] < 0.25);
        const bool inside = errors[i] < exp(1.2816 * 0.065) - 1; /* rows of known hosts alone */
        held += inside;
        if (strcmp(cell(&t, i, "sample"), "out") != 0) continue;
        out[out_count++] = errors[i];
        out_held += inside;
    }
    dl_sort(errors, (size_t)t.csv.row_count);
    print_message("median %.1f %%, largest %.1f %% of %d\n", 100 * errors[t.csv.row_count / 2],
                  100 * errors[t.csv.row_count - 1], t.csv.row_count);
    assert_true(errors[t.csv.row_count / 2] < 0.06);
    assert_true(out_count >= 10);
    dl_sort(out, (size_t)out_count);
    print_message(
        "out of sample: median %.1f %%, largest %.1f %% of %d; intervals hold %d of %d, %d "
        "of %d\n",
        100 * out[out_count / 2], 100 * out[out_count - 1], out_count, held, t.csv.row_count,
        out_held, out_count);
    assert_true(out[out_count / 2] < 0.1);
    assert_true(held >= 0.8 * t.csv.row_count && out_held >= 0.8 * out_count);
    dl_arena_free(&t.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(power_by_hand),         cmocka_unit_test(assumptions_are_reported),
        cmocka_unit_test(spending_by_hand),      cmocka_unit_test(power_that_nobody_knows),
        cmocka_unit_test(prices_and_currencies), cmocka_unit_test(published_power),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
